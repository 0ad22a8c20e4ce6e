//! Runs many seeds, each in two processes at the same time. Equal digests prove that a run depends only on
//! its seed, and not on addresses, clocks or the process's hash seeds.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use crate::plan::Plan;
use crate::run::{add_hits, missing_points};

/// Runs every plan in a folder with its seeds. `program` is the path of the `sim` command. Calls `report`
/// with one line for each run. Returns whether all runs passed and each pair agreed.
///
/// # Errors
/// A message if the folder or a plan is unreadable, or a process cannot be started.
pub fn run_all(program: &Path, folder: &Path, mut report: impl FnMut(&str)) -> Result<bool, String> {
    let mut all_held = true;
    let plans = plans_in(folder)?;
    if plans.is_empty() {
        return Err(format!("{}: no plan files", folder.display()));
    }
    for path in plans {
        let plan = read_plan(&path)?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let mut hits = BTreeMap::new();
        for seed in 1..=plan.ci_seeds {
            match run_twice(program, &path, seed) {
                Ok(line) => {
                    add_hits(&line, &mut hits);
                    report(&format!("{name} {line}"));
                }
                Err(fault) => {
                    all_held = false;
                    report(&format!("FAILED {name}: {fault}"));
                }
            }
        }
        for (point, count) in &hits {
            report(&format!("{name} hits of {point}: {count}"));
        }
        for point in missing_points(&plan, &hits) {
            all_held = false;
            report(&format!("FAILED {name}: no seed hit the crash point {point}"));
        }
    }
    Ok(all_held)
}

/// The plan files of a folder, sorted by name.
///
/// # Errors
/// A message if the folder is unreadable.
pub fn plans_in(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let paths: Result<Vec<PathBuf>, io::Error> = entries.map(|entry| entry.map(|entry| entry.path())).collect();
    let mut paths = paths.map_err(|error| format!("{}: {error}", folder.display()))?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    paths.sort();
    Ok(paths)
}

/// Reads the plan in a file.
///
/// # Errors
/// A message with the file name: the file is unreadable, or [`Plan::parse`] rejects it.
pub fn read_plan(path: &Path) -> Result<Plan, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    Plan::parse(&text).map_err(|error| format!("{}: {error}", path.display()))
}

fn run_twice(program: &Path, plan: &Path, seed: u64) -> Result<String, String> {
    let start = || -> io::Result<Child> {
        let mut command = Command::new(program);
        command.arg("run").arg("--plan").arg(plan).arg("--seed").arg(seed.to_string());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()
    };
    let both = start().and_then(|first| start().map(|second| (first, second)));
    let (first, second) = both.map_err(|error| format!("{}: {error}", program.display()))?;
    let ended = first.wait_with_output().and_then(|first| second.wait_with_output().map(|second| (first, second)));
    let (first, second) = ended.map_err(|error| error.to_string())?;
    compare(seed, &first, &second)
}

fn compare(seed: u64, first: &Output, second: &Output) -> Result<String, String> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
    let (one, other) = (text(&first.stdout), text(&second.stdout));
    if !first.status.success() {
        return Err(format!("seed {seed}: {one} {}", text(&first.stderr)));
    }
    match one == other && second.status.success() {
        true => Ok(one),
        false => Err(format!("seed {seed} ran differently in two processes:\n{one}\n{other}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    #[test]
    fn two_runs_must_succeed_and_agree() {
        let output = |code: i32, text: &str| Output {
            status: ExitStatus::from_raw(code << 8),
            stdout: text.as_bytes().to_vec(),
            stderr: b"why".to_vec(),
        };
        assert_eq!(compare(1, &output(0, "digest=1\n"), &output(0, "digest=1\n")), Ok("digest=1".to_owned()));
        assert!(compare(1, &output(0, "digest=1"), &output(0, "digest=2")).unwrap_err().contains("differently"));
        assert!(compare(1, &output(0, "digest=1"), &output(1, "digest=1")).is_err());
        assert!(compare(1, &output(1, "x"), &output(1, "x")).unwrap_err().contains("why"));
    }

    #[test]
    fn the_plans_of_this_crate_can_be_read() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("plans/fast");
        let plans = plans_in(&folder).unwrap();
        assert!(plans.len() >= 5);
        for path in plans {
            let plan = read_plan(&path).unwrap();
            crate::draw::RunParameters::new(1, &plan.world).unwrap();
        }
    }
}
