//! Runs a program to its end within a time limit.

use std::fs::{self, File};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::TemporaryFolder;
use crate::failure::Explain;
use crate::{Failure, Outcome};

const CHECK_INTERVAL: Duration = Duration::from_millis(10);

/// The result of a program that has ended.
pub struct Finished {
    /// Exit status.
    pub status: ExitStatus,
    /// The standard output.
    pub output: String,
    /// The standard error.
    pub errors: String,
}

/// Runs a program to its end. Its output goes to files, because a full pipe would block it.
///
/// # Errors
/// The program cannot be started, or ran longer than `time_max` and was killed.
pub fn run(command: &mut Command, time_max: Duration) -> Outcome<Finished> {
    let name = command.get_program().to_string_lossy().into_owned();
    let folder = TemporaryFolder::new("command")?;
    let (output, errors) = (folder.path().join("output"), folder.path().join("errors"));
    command.stdin(Stdio::null()).stdout(File::create(&output)?).stderr(File::create(&errors)?);
    let mut child = command.spawn().explain(&name)?;
    let status = wait(&mut child, time_max)?;
    let text = |path| fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let (output, errors) = (text(output)?, text(errors)?);
    match status {
        Some(status) => Ok(Finished { status, output, errors }),
        None => {
            child.kill()?;
            child.wait()?;
            Err(Failure::new(format!("{name} still ran after {} s: {output}{errors}", time_max.as_secs())))
        }
    }
}

/// Waits until a process ends. Returns `None` if it still runs after `time_max`.
///
/// # Errors
/// The system call fails.
pub fn wait(child: &mut Child, time_max: Duration) -> Outcome<Option<ExitStatus>> {
    let end = Instant::now() + time_max;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= end {
            return Ok(None);
        }
        thread::sleep(CHECK_INTERVAL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_and_errors_are_kept_apart() {
        let finished = run(Command::new("sh").args(["-c", "echo out; echo err >&2; exit 3"]), Duration::from_secs(20));
        let finished = finished.expect("sh runs");
        assert_eq!((finished.output.as_str(), finished.errors.as_str()), ("out\n", "err\n"));
        assert_eq!(finished.status.code(), Some(3));
    }

    #[test]
    fn a_program_that_runs_too_long_is_killed() {
        let start = Instant::now();
        assert!(run(Command::new("sleep").arg("60"), Duration::from_millis(50)).is_err());
        assert!(start.elapsed() < Duration::from_secs(30));
    }
}
