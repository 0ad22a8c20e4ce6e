//! Runs sysbench programs concurrently, with their output in files. An interruption ends them.

use std::fs::{self, OpenOptions};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::failure::Explain;
use crate::process::server::command_killed_with_parent;
use crate::sysbench::complaints_of;
use crate::{Failure, Outcome};

const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// Whether the user has interrupted the run with Ctrl-C or SIGTERM.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Installs handlers of SIGINT and SIGTERM.
    ///
    /// # Errors
    /// The handlers cannot be installed.
    pub fn install() -> Outcome<Interrupt> {
        let interrupt = Interrupt::default();
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&interrupt.0))?;
        }
        Ok(interrupt)
    }

    /// Fails if the user has interrupted the run.
    ///
    /// # Errors
    /// The user interrupted.
    pub fn check(&self) -> Outcome<()> {
        if self.0.load(Ordering::Relaxed) { Err(Failure::new("interrupted")) } else { Ok(()) }
    }

    /// Sleeps for `time`.
    ///
    /// # Errors
    /// The user interrupts the run meanwhile.
    pub fn pause(&self, time: Duration) -> Outcome<()> {
        let end = Instant::now() + time;
        while Instant::now() < end {
            self.check()?;
            thread::sleep(CHECK_INTERVAL.min(end.saturating_duration_since(Instant::now())));
        }
        self.check()
    }
}

/// A program to run, and the file that gets its output.
#[derive(Clone, Debug)]
pub struct Job {
    /// The command and its arguments.
    pub words: Vec<String>,
    /// File that standard output and errors are appended to.
    pub output: PathBuf,
}

/// Runs programs concurrently until all have ended. Returns the output of each.
///
/// # Errors
/// A program failed, printed errors or ran longer than `time_max`, or the user interrupted the run. The
/// remaining programs are then killed.
pub fn run_all(jobs: &[Job], time_max: Duration, interrupt: &Interrupt) -> Outcome<Vec<String>> {
    let mut running = Vec::new();
    for job in jobs {
        running.push(Running::start(job)?);
    }
    let end = Instant::now() + time_max;
    let mut finished = Vec::new();
    for program in &mut running {
        program.wait(end, interrupt)?;
        finished.push(program.finish()?);
    }
    Ok(finished)
}

/// A running program; killed on drop unless it has ended.
struct Running<'a> {
    job: &'a Job,
    child: Child,
    /// Length of the file before the program began.
    before: u64,
}

impl<'a> Running<'a> {
    fn start(job: &'a Job) -> Outcome<Running<'a>> {
        let file = OpenOptions::new().create(true).append(true).open(&job.output).explain(job.output.display())?;
        let before = file.metadata()?.len();
        let mut command: Command = command_killed_with_parent(&job.words[0]);
        command.args(&job.words[1..]);
        // In its own process group, the program does not receive the terminal's SIGINT; `Running` ends it
        // instead.
        command.process_group(0).stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
        let child = command.spawn().explain(&job.words[0])?;
        Ok(Running { job, child, before })
    }

    fn wait(&mut self, end: Instant, interrupt: &Interrupt) -> Outcome<()> {
        while self.child.try_wait()?.is_none() {
            interrupt.check()?;
            if Instant::now() > end {
                return Err(Failure::new(format!("{} still runs after its time limit", self.job.words.join(" "))));
            }
            thread::sleep(CHECK_INTERVAL);
        }
        Ok(())
    }

    fn finish(&mut self) -> Outcome<String> {
        let status = self.child.wait()?;
        let bytes = fs::read(&self.job.output).explain(self.job.output.display())?;
        let text = String::from_utf8_lossy(bytes.get(self.before as usize..).unwrap_or_default()).into_owned();
        match complaints_of(&text, status) {
            None => Ok(text),
            Some(complaints) => {
                let command = self.job.words.last().map_or("", String::as_str);
                Err(Failure::new(format!("sysbench {command}: {complaints}\nsee {}", self.job.output.display())))
            }
        }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        // This fails if the program has already ended, which is harmless.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
