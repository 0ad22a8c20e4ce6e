//! Kills the server at each of its crash points that the script reaches.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::script::Script;
use super::server::{Server, copy, folder, small_files_command};

/// The environment variable that names the crash point at which the server kills itself.
pub const CRASH: &str = "JUNCTOR_CRASH_AT";
/// The environment variable that asks for all of `HITS`, not only the first. `make faults` sets it.
const THOROUGH: &str = "JUNCTOR_FAULTS";
/// At which hit of a point the server is killed: at the first hit in the first run, at the second in the next
/// run, and so on.
const HITS: [u32; 9] = [1, 2, 3, 5, 14, 41, 100, 200, 365];
/// How long a server stays idle in a second attempt at the points that a first attempt did not reach.
const IDLE_TIME: Duration = Duration::from_secs(5);
/// Steps of `junctor backup` and `junctor restore`, which are killed in `backup.rs`.
const OF_PROGRAMS: [&str; 4] = ["backup.frame", "backup.log", "backup.list", "backup.restore"];
/// Steps that simulated nodes reach less often than others, with the highest hit that the script is sure to
/// reach. A thorough test kills the server [`RARE_KILLS`] times on each side of them.
const RARE: [(&str, u32); 5] =
    [("backup.pin", 30), ("backup.unpin", 30), ("pair.settings", 30), ("job.undo", 30), (ABANDON, 3)];
const RARE_KILLS: u32 = 50;
/// A checkpoint is abandoned only if its file cannot be made.
const ABANDON: &str = "checkpoint.abandon";
/// Number of checkpoint files that [`block_checkpoints`] prevents.
const BLOCKED_FILES: u32 = 200;

/// Every step that has crash points, from the generated page.
fn crash_steps() -> Vec<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/generated/crash-points.md");
    let page = std::fs::read_to_string(page).expect("the page is part of the sources");
    let names = page.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
    names.filter(|name| name.contains('.')).map(str::to_owned).collect()
}

/// The hits of a step at which the server is killed.
fn hits_of(step: &str, is_thorough: bool) -> Vec<u32> {
    let rare = RARE.iter().find(|(rare, _)| *rare == step);
    match rare {
        Some((_, last)) if is_thorough => (0..RARE_KILLS).map(|kill| 1 + kill % last).collect(),
        _ => HITS[..if is_thorough { HITS.len() } else { 1 }].to_vec(),
    }
}

/// Makes a data directory in which folders have the names of the first checkpoint files.
fn block_checkpoints(folder: &Path) {
    // A new directory would be refused, because it is not empty.
    Server::start(folder).kill();
    for file in 1..=BLOCKED_FILES {
        std::fs::create_dir_all(folder.join(format!("checkpoint/{file:010}.data"))).expect("a writable folder");
    }
}

/// Whether a step is one of clusters, which a server alone does not take. Simulated nodes crash there.
fn is_of_cluster(step: &str) -> bool {
    ["images.", "epoch.", "number.", "voter.", "member.", "copy."].iter().any(|prefix| step.starts_with(prefix))
}

/// Plays the script until the server kills itself at the point, and stops a server that has not. Returns the
/// number of acknowledged steps, or `None` if the point was not hit. A server that has played the whole
/// script stays up to `idle_time` before its stop, so that work in the background can reach the point.
fn play_until(script: &Script, folder: &Path, point: &str, before: usize, idle_time: Duration) -> Option<usize> {
    let mut command = small_files_command(folder);
    command.env(CRASH, point);
    let (ended, acknowledged) = match Server::spawn(command) {
        Err(ended) => (ended, before),
        Ok(mut server) => {
            let acknowledged = if before == 0 { script.play(&server) } else { before };
            let is_whole = acknowledged == script.len();
            let ended = match is_whole {
                true => server.wait(idle_time).unwrap_or_else(|| server.stop()),
                false => server.end(),
            };
            if is_whole && ended.status.success() {
                return None;
            }
            (ended, acknowledged)
        }
    };
    assert!(ended.is_by_signal(9), "{point}: the server ended otherwise: {ended:?}");
    Some(acknowledged)
}

fn check(script: &Script, folder: &PathBuf, acknowledged: usize, case: &str) {
    let server = Server::spawn(small_files_command(folder))
        .unwrap_or_else(|ended| panic!("{case}: the server did not restart: {ended:?}"));
    script.check(&server, acknowledged, case);
    server.kill();
    std::fs::remove_dir_all(folder).expect("the folder exists");
}

#[test]
fn a_crash_at_any_point_loses_nothing() {
    let is_thorough = std::env::var_os(THOROUGH).is_some();
    let (folder, full) = (folder("crash"), folder("crash-full"));
    let script = Script::with_rare_steps(if is_thorough { 34 } else { 11 }, &full);
    let all = script.len();
    let mut reached = BTreeMap::new();
    let mut steps = crash_steps();
    steps.retain(|step| !OF_PROGRAMS.contains(&step.as_str()) && !is_of_cluster(step));
    for idle_time in [Duration::ZERO, IDLE_TIME] {
        for (step, side) in steps.iter().flat_map(|step| [(step, "before"), (step, "after")]) {
            for hit in hits_of(step, is_thorough) {
                let point = format!("{step}.{side}:{hit}");
                if step == ABANDON {
                    block_checkpoints(&folder);
                }
                // A new directory first. The points of recovery need one with contents.
                let mut acknowledged = play_until(&script, &folder, &point, 0, idle_time);
                if acknowledged.is_none() {
                    let _ = std::fs::remove_dir_all(&folder);
                    copy(&full, &folder);
                    acknowledged = play_until(&script, &folder, &point, all, idle_time);
                }
                match acknowledged {
                    Some(acknowledged) => {
                        check(&script, &folder, acknowledged, &point);
                        *reached.entry(step.clone()).or_insert(0) += 1;
                    }
                    None => {
                        let _ = std::fs::remove_dir_all(&folder);
                        break;
                    }
                }
            }
        }
        steps.retain(|step| !reached.contains_key(step));
    }
    println!("crashes at each step: {reached:?}");
    println!("summary: {} steps, {} crashes, lost 0", reached.len(), reached.values().sum::<u32>());
    // Files are deleted only if two checkpoints complete before the script ends.
    steps.retain(|step| step != "checkpoint.delete");
    assert!(steps.is_empty(), "steps that were not reached: {steps:?}");
    std::fs::remove_dir_all(&full).expect("the folder exists");
}
