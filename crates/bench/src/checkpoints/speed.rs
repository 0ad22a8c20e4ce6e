//! Speed of checkpoints and backups of an idle node, against that of the disk and of the compression. Before
//! each checkpoint, all rows of the table change while the node begins no round. Then it starts again with
//! settings under which the next write begins a round of unlimited speed.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use super::{CheckpointsOptions, disk, rounds};
use crate::failure::Explain;
use crate::fill::fill_over;
use crate::process::{JunctorOptions, TemporaryFolder, command, start_junctor};
use crate::report::{Table, Verdict};
use crate::statistics::median;
use crate::{Failure, Outcome};

/// Maximum time of a checkpoint or a backup, in that of the disk or of the compression: a speed of 0.8.
const TIME_RATIO_MAX: f64 = 1.0 / 0.8;
const NO_ROUNDS: [&str; 2] = ["TimeBetweenLocalCheckpoints = 31", "NoOfFragmentLogFiles = 1000"];
const ROUND_AT_ONCE: [&str; 4] = [
    "TimeBetweenLocalCheckpoints = 0",
    "NoOfFragmentLogFiles = 1000",
    "EnableRedoControl = false",
    "MaxDiskWriteSpeed = '1T'",
];
const BACKUP_TIME_MAX: Duration = Duration::from_secs(600);
const FILL_CONNECTIONS: usize = 4;
/// Compression level of backups, the default of `junctor backup`.
const LEVEL: i32 = 3;
/// Bytes that are compressed at a time, as in a backup.
const COMPRESSED_BYTES: usize = 1 << 20;

/// Figures of a run, in bytes per second.
#[derive(Clone, Copy, Debug, Default)]
struct Speeds {
    disk: f64,
    checkpoint: f64,
    /// Processor time of the node for a byte of the checkpoint, in nanoseconds.
    checkpoint_cpu_ns: f64,
    compression: f64,
    backup: f64,
    /// Compressed bytes for a byte of a backup.
    backup_share: f64,
}

type Figure = fn(&Speeds) -> f64;

/// Measures the speeds.
///
/// # Errors
/// A server or a file fails.
pub fn run(options: &CheckpointsOptions) -> Outcome<Vec<Verdict>> {
    let folder = TemporaryFolder::new("checkpoints")?;
    let at = |settings: &[&str]| JunctorOptions {
        data_folder: Some(folder.path().join("data")),
        ..options.junctor(settings)
    };
    let server = start_junctor(&at(&NO_ROUNDS))?;
    server.execute(&["CREATE DATABASE sbtest"])?;
    fill_over(&server, options.rows, FILL_CONNECTIONS)?;
    server.stop()?;
    let mut speeds = Vec::new();
    for round in 0..options.rounds {
        let server = start_junctor(&at(&NO_ROUNDS))?;
        server.execute(&["UPDATE sbtest.sbtest1 SET k = k + 1"])?;
        server.stop()?;
        let run = measure(&at(&ROUND_AT_ONCE), folder.path(), round)?;
        eprintln!("{run:?}");
        speeds.push(run);
    }
    let of = |figure: Figure| median(&speeds.iter().map(figure).collect::<Vec<_>>());
    let mut table = Table::new(&["speed", "MB/s", "lowest", "highest"]);
    let figures: [(&str, Figure); 4] = [
        ("disk, writes of 1 MiB in sequence, O_DIRECT", |speeds| speeds.disk),
        ("checkpoint of all rows", |speeds| speeds.checkpoint),
        ("zstd of the checkpoint, one core", |speeds| speeds.compression),
        ("backup", |speeds| speeds.backup),
    ];
    for (name, figure) in figures {
        let all = speeds.iter().map(figure);
        let (lowest, highest) = (all.clone().fold(f64::INFINITY, f64::min), all.fold(0.0, f64::max));
        table.row([of(figure), lowest, highest].iter().fold(vec![name.to_owned()], |mut cells, speed| {
            cells.push(format!("{:.0}", speed / 1e6));
            cells
        }));
    }
    println!("{table}");
    println!(
        "A byte of a checkpoint takes {:.2} ns of CPU. A backup has {:.2} of the bytes of the data directory.\n",
        of(|speeds| speeds.checkpoint_cpu_ns),
        of(|speeds| speeds.backup_share)
    );
    let slower = |speeds: &Speeds| speeds.disk.min(speeds.compression);
    Ok(vec![
        Verdict {
            what: "speed of the disk by that of a checkpoint".into(),
            allowed_max: TIME_RATIO_MAX,
            measured: of(|speeds| speeds.disk / speeds.checkpoint),
        },
        Verdict {
            what: "speed of disk or compression by that of a backup".into(),
            allowed_max: TIME_RATIO_MAX,
            measured: median(&speeds.iter().map(|speeds| slower(speeds) / speeds.backup).collect::<Vec<_>>()),
        },
    ])
}

fn measure(junctor: &JunctorOptions, folder: &Path, round: u32) -> Outcome<Speeds> {
    let mut speeds = Speeds::default();
    let server = start_junctor(junctor)?;
    let mut connection = server.connect()?;
    let before = rounds::last(&mut connection)?.map_or(0, |round| round.generation);
    let cpu = server.cpu_time()?;
    connection.query("UPDATE sbtest.sbtest1 SET k = k + 1 WHERE id = 1")?;
    let checkpoint = rounds::await_end(&mut connection, before)?;
    let cpu = server.cpu_time()?.saturating_sub(cpu);
    speeds.checkpoint = checkpoint.written_bytes as f64 * 1000.0 / checkpoint.duration_ms.max(1) as f64;
    speeds.checkpoint_cpu_ns = cpu.as_nanos() as f64 / checkpoint.written_bytes.max(1) as f64;
    speeds.disk = disk::sequential_write(&folder.join("disk"), checkpoint.written_bytes)?;

    let store = folder.join(format!("backup-{round}"));
    let mut backup = Command::new(junctor.binary()?);
    backup.arg("backup").arg(&store).args(["--port", &server.address.port().to_string()]);
    let start = Instant::now();
    let finished = command::run(&mut backup, BACKUP_TIME_MAX)?;
    let seconds = start.elapsed().as_secs_f64();
    let sizes = sizes(&finished.output).filter(|_| finished.status.success());
    let Some((bytes, stored_bytes)) = sizes else {
        return Err(Failure::new(format!("junctor backup: {}{}", finished.output, finished.errors)));
    };
    speeds.backup = bytes / seconds;
    speeds.backup_share = stored_bytes / bytes;
    fs::remove_dir_all(&store)?;
    speeds.compression = compression(&folder.join("data").join("checkpoint"))?;
    server.stop()?;
    Ok(speeds)
}

/// The numbers of `backup NAME: B bytes of data, S bytes added to the store`.
fn sizes(output: &str) -> Option<(f64, f64)> {
    let (_, rest) = output.trim().rsplit_once(": ")?;
    let (bytes, rest) = rest.split_once(" bytes of data, ")?;
    Some((bytes.parse().ok()?, rest.split_once(' ')?.0.parse().ok()?))
}

/// Speed of one core that compresses the files of the folder, in bytes per second. Reading them does not
/// count.
fn compression(folder: &Path) -> Outcome<f64> {
    let (mut bytes, mut seconds) = (0, 0.0);
    for entry in fs::read_dir(folder).explain(folder.display())? {
        let content = fs::read(entry?.path())?;
        bytes += content.len();
        let start = Instant::now();
        let mut encoder = zstd::stream::write::Encoder::new(Vec::with_capacity(content.len()), LEVEL)?;
        for part in content.chunks(COMPRESSED_BYTES) {
            encoder.write_all(part)?;
        }
        encoder.finish()?;
        seconds += start.elapsed().as_secs_f64();
    }
    Ok(bytes as f64 / seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sizes_of_a_backup_are_read_from_its_last_line() {
        let line = "backup 20260131-235959: 1000 bytes of data, 50 bytes added to the store\n";
        assert_eq!(sizes(line), Some((1000.0, 50.0)));
        assert_eq!(sizes("nothing"), None);
    }
}
