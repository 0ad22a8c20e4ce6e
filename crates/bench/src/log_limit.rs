//! `log-limit`: writes several times as much as the log may hold, and shows that the directory does not grow
//! with it and that a restart replays no more than the limit. It stands for hours of writes with the default
//! settings, whose log is larger.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::event_load::client::EventLoad;
use crate::event_load::work::Work;
use crate::fill::fill_over;
use crate::process::{JunctorOptions, Server, TemporaryFolder, start_junctor};
use crate::report::{Verdict, print_verdicts};
use crate::{Failure, Outcome};

/// Bytes of a file of the log.
const FILE_BYTES: u64 = 16 << 20;
/// Files that a node keeps beside its log to use again, and the one that it prepares.
const SPARE_FILES: u64 = 9;
const LOOK_INTERVAL: Duration = Duration::from_millis(50);
const LOAD_TIME: Duration = Duration::from_secs(5);
const TURNS_TIME_MAX: Duration = Duration::from_secs(900);
const CLIENT_THREADS: usize = 2;
const FILL_CONNECTIONS: usize = 4;

/// Options of `log-limit`. The data directory is in the folder for temporary files, TMPDIR.
#[derive(Clone, Debug, clap::Args)]
pub struct LogLimitOptions {
    /// Binary of the node [default: junctor in the folder of this program]
    #[arg(long, value_name = "FILE")]
    junctor: Option<PathBuf>,
    /// Number of rows of the table
    #[arg(long, default_value_t = 200_000, value_parser = clap::value_parser!(u64).range(1_000..=100_000_000))]
    rows: u64,
    /// Number of clients that update rows
    #[arg(long, default_value_t = 16)]
    clients: usize,
    /// Files of the log, of 16 MiB each
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u64).range(3..=1000))]
    files: u64,
    /// Number of times that the log is filled
    #[arg(long, default_value_t = 10)]
    turns: u64,
}

/// Largest sizes of folders of the data directory, in bytes on disk, and the newest file of the log.
#[derive(Clone, Copy, Debug, Default)]
struct Sizes {
    log: u64,
    checkpoint: u64,
    newest_file: u64,
}

/// Fills the log again and again, kills the node amid the updates, and starts it again.
///
/// # Errors
/// A limit is exceeded, or the node fails.
pub fn run(options: &LogLimitOptions) -> Outcome<()> {
    let folder = TemporaryFolder::new("log-limit")?;
    let data = folder.path().join("data");
    let junctor = JunctorOptions {
        binary: options.junctor.clone(),
        is_durable: true,
        data_folder: Some(data.clone()),
        ready_time_max_s: 600,
        ..JunctorOptions::default()
    };
    let files = format!("NoOfFragmentLogFiles = {}", options.files);
    let file_bytes = format!("FragmentLogFileSize = {FILE_BYTES}");
    let junctor = junctor.with_arguments(&["--total-memory", "4G"]).with_settings(&[&files, &file_bytes]);
    let server = start_junctor(&junctor)?;
    server.execute(&["CREATE DATABASE sbtest"])?;
    fill_over(&server, options.rows, FILL_CONNECTIONS)?;

    let limit = options.files * FILE_BYTES;
    let (largest, written, updates, seconds) = turn_log(options, server, &data)?;
    let start = Instant::now();
    let server = start_junctor(&junctor)?;
    let mut connection = server.connect()?;
    let rows = connection.query_value("SELECT COUNT(*) FROM sbtest.sbtest1")?;
    let restart_s = start.elapsed().as_secs_f64();
    let read = "SELECT bytes FROM junctor_info.restart_info WHERE phase = 'read log'";
    let replayed: u64 = connection.query_value(read)?.and_then(|bytes| bytes.parse().ok()).unwrap_or(u64::MAX);
    server.stop()?;
    if rows.as_deref() != Some(options.rows.to_string().as_str()) {
        return Err(Failure::new(format!("{rows:?} rows instead of {}", options.rows)));
    }
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    println!(
        "{updates} updates in {seconds:.0} s wrote {:.0} MiB of log, {:.1} times its limit of {:.0} MiB. The restart \
         after SIGKILL took {restart_s:.2} s and read {:.1} MiB of log. At most, the log had {:.0} MiB on disk and \
         the checkpoints {:.0} MiB.\n",
        mib(written),
        written as f64 / limit as f64,
        mib(limit),
        mib(replayed),
        mib(largest.log),
        mib(largest.checkpoint)
    );
    let verdicts = [
        Verdict { what: "MiB of log that the restart read".into(), allowed_max: mib(limit), measured: mib(replayed) },
        Verdict {
            what: "MiB of the log's files".into(),
            allowed_max: mib(limit + SPARE_FILES * FILE_BYTES),
            measured: mib(largest.log),
        },
    ];
    match print_verdicts(&verdicts) {
        0 => Ok(()),
        _ => Err(Failure::new("a limit is exceeded")),
    }
}

/// Updates rows until the log was filled often enough, and kills the server amid the updates. Returns the
/// largest sizes, the bytes written to the log, the number of updates, and the seconds.
fn turn_log(options: &LogLimitOptions, server: Server, data: &Path) -> Outcome<(Sizes, u64, u64, f64)> {
    let (address, start, is_done) = (server.address, Instant::now(), AtomicBool::new(false));
    let load = |run| EventLoad {
        address,
        is_database: true,
        connections: options.clients,
        threads: CLIENT_THREADS,
        work: Work::Update,
        rows: options.rows,
        warm_up: Duration::ZERO,
        time: LOAD_TIME,
        run,
    };
    thread::scope(|scope| {
        let updates = scope.spawn(|| -> Outcome<u64> {
            let mut updates = 0;
            for run in (0..=u8::MAX).cycle() {
                match load(run).run(|| Ok(Duration::ZERO)) {
                    Ok(report) => updates += report.latencies.count(),
                    // The server was killed.
                    Err(_) if is_done.load(Ordering::Relaxed) => break,
                    Err(error) => return Err(error),
                }
            }
            Ok(updates)
        });
        let mut largest = Sizes::default();
        let first = sizes(data)?.newest_file;
        let mut written = 0;
        while written < options.turns * options.files * FILE_BYTES
            && start.elapsed() < TURNS_TIME_MAX
            && !updates.is_finished()
        {
            thread::sleep(LOOK_INTERVAL);
            let now = sizes(data)?;
            largest.log = largest.log.max(now.log);
            largest.checkpoint = largest.checkpoint.max(now.checkpoint);
            written = (now.newest_file - first) * FILE_BYTES;
        }
        let seconds = start.elapsed().as_secs_f64();
        is_done.store(true, Ordering::Relaxed);
        server.kill()?;
        let updates = updates.join().map_err(|_| Failure::new("a thread panicked"))??;
        Ok((largest, written, updates, seconds))
    })
}

fn sizes(data: &Path) -> Outcome<Sizes> {
    let mut sizes = Sizes::default();
    for (folder, size) in [("log", &mut sizes.log), ("checkpoint", &mut sizes.checkpoint)] {
        for entry in fs::read_dir(data.join(folder))?.filter_map(Result::ok) {
            // The node may delete or rename the file meanwhile.
            let Ok(metadata) = entry.metadata() else { continue };
            *size += metadata.blocks() * 512;
            let name = entry.file_name();
            let number = name.to_str().and_then(|name| name.strip_suffix(".log")?.parse().ok());
            sizes.newest_file = sizes.newest_file.max(number.unwrap_or(0));
        }
    }
    Ok(sizes)
}
