//! `strace` kills the server at a system call for files, or makes the call fail. A small library makes calls
//! short.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::script::Script;
use super::server::{Ended, Server, copy, folder, small_files_command};

/// The environment variable with the greatest n of "at the n-th call". `make faults` sets it.
const FAULTS: &str = "JUNCTOR_FAULTS";
/// Without the variable, the n in turn.
const FEW: [u32; 5] = [1, 2, 3, 40, 121];
/// Distance of the n at which calls fail in a thorough run. Most of these runs are alike.
const FAILURE_DISTANCE: usize = 9;
/// Calls that change files or folders, by groups that are counted together.
const KILLED_AT: [&str; 6] =
    ["pwrite64", "fdatasync", "fsync", "rename,renameat,renameat2", "openat", "mkdir,mkdirat,unlink,unlinkat,close"];
/// The server is killed instead of making the call.
const KILL: &str = "signal=SIGKILL";
/// Calls that fail, with the error.
const FAILED: [(&str, &str); 5] =
    [("pwrite64", "EIO"), ("fdatasync", "EIO"), ("fdatasync", "ENOSPC"), ("fsync", "EIO"), ("rename", "EIO")];
/// Calls of recovery that fail in turn.
const RECOVERY_CALLS: u32 = 6;
/// A server that goes on after an error has this time to end after all.
const GOES_ON: Duration = Duration::from_millis(300);

/// Whether `strace` works here. It needs the permission to trace.
pub fn has_strace() -> bool {
    let status = Command::new("strace").args(["-o", "/dev/null", "true"]).stderr(Stdio::null()).status();
    let works = status.is_ok_and(|status| status.success());
    assert!(works || std::env::var_os(FAULTS).is_none(), "strace is missing: sh tests/install-tools.sh");
    works
}

/// The calls of a test run, in order.
fn numbers() -> Vec<u32> {
    match std::env::var(FAULTS).ok().and_then(|text| text.parse().ok()) {
        Some(most) => (1..=most).collect(),
        None => FEW.into(),
    }
}

/// The command under `strace`, which counts the calls of each thread and lets `fault` happen at one of them.
/// The server is the child and `strace` the grandchild, so that a kill of the child kills the server.
fn with_fault(folder: &Path, calls: &str, fault: &str, when: u32) -> Command {
    under_strace(&small_files_command(folder), folder, calls, &format!("{fault}:when={when}"))
}

/// A command under `strace`, which counts the calls of each thread and injects `fault` into them.
pub fn under_strace(inner: &Command, folder: &Path, calls: &str, fault: &str) -> Command {
    let mut command = Command::new("strace");
    command.args(["-D", "-f", "-o"]).arg(trace_path(folder));
    // Stops the server only at the traced calls. With it, strace 6.1 sends no signal after the first call.
    if !fault.starts_with(KILL) {
        command.arg("--seccomp-bpf");
    }
    command.args(["-e", &format!("trace={calls},fdatasync,fsync,close")]);
    command.args(["-e", &format!("inject={calls}:{fault}")]);
    command.arg(inner.get_program()).args(inner.get_args()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The files of the identity, and the first ones of the log.
const FIRST_FILES: [&str; 6] =
    ["identity.0", "identity.1", "identity.new", "log/0000000000.log", "log/0000000001.log", "log/prepared"];

/// Restricts the faults of a command under `strace` to these files.
pub fn only_within(command: &Command, files: impl IntoIterator<Item = PathBuf>) -> Command {
    let mut restricted = Command::new(command.get_program());
    for file in files {
        restricted.arg("-P").arg(file);
    }
    restricted.args(command.get_args()).stdout(Stdio::piped()).stderr(Stdio::piped());
    restricted
}

fn trace_path(folder: &Path) -> PathBuf {
    folder.with_extension("trace")
}

/// Plays the script on a new directory until the fault ends the server. Returns the number of acknowledged
/// steps and how the server ended, which is `None` if it did not.
fn play_with_fault(script: &Script, folder: &Path, calls: &str, fault: &str, when: u32) -> (usize, Option<Ended>) {
    let _ = std::fs::remove_dir_all(folder);
    let mut server = match Server::spawn(with_fault(folder, calls, fault, when)) {
        Ok(server) => server,
        Err(ended) => return (0, Some(ended)),
    };
    let acknowledged = script.play(&server);
    if acknowledged < script.len() {
        return (acknowledged, Some(server.end()));
    }
    let ended = server.wait(GOES_ON);
    (acknowledged, ended)
}

fn restart_and_check(script: &Script, folder: &Path, acknowledged: usize, case: &str) {
    let server = Server::spawn(small_files_command(folder))
        .unwrap_or_else(|ended| panic!("{case}: the server did not restart: {ended:?}"));
    script.check(&server, acknowledged, case);
    server.kill();
}

#[test]
fn a_kill_at_any_call_for_files_loses_nothing() {
    if !has_strace() {
        return;
    }
    let (folder, undisturbed) = (folder("calls"), folder("calls-undisturbed"));
    let script = Script::new(if numbers().len() > FEW.len() { 40 } else { 11 }, &undisturbed);
    let mut kills_total = 0;
    for calls in KILLED_AT {
        let mut kills = 0;
        for when in numbers() {
            let case = format!("SIGKILL at {calls} number {when}");
            let (acknowledged, ended) = play_with_fault(&script, &folder, calls, KILL, when);
            match ended {
                Some(ended) => assert!(ended.is_by_signal(9), "{case}: the server ended otherwise: {ended:?}"),
                // No thread makes so many of these calls.
                None => break,
            }
            kills += 1;
            // The second life may be killed as well, often within recovery.
            if let Ok(server) = Server::spawn(with_fault(&folder, calls, KILL, when % 7 + 1)) {
                server.kill();
            }
            restart_and_check(&script, &folder, acknowledged, &case);
        }
        println!("{calls}: {kills} kills");
        kills_total += kills;
    }
    // A lost or a partial step has failed the test.
    println!("summary: {} kinds of calls, {kills_total} kills, lost 0", KILLED_AT.len());
    std::fs::remove_dir_all(&folder).expect("the folder exists");
}

#[test]
fn a_failed_call_for_files_stops_the_server_with_a_message() {
    if !has_strace() {
        return;
    }
    let (folder, undisturbed) = (folder("errors"), folder("errors-undisturbed"));
    let is_thorough = numbers().len() > FEW.len();
    let script = Script::new(if is_thorough { 40 } else { 11 }, &undisturbed);
    let (mut failures_total, mut stops_total) = (0, 0);
    for (calls, error) in FAILED {
        let (mut stops, mut messages) = (0, BTreeSet::new());
        let distance = if is_thorough { FAILURE_DISTANCE } else { 1 };
        for when in numbers().into_iter().step_by(distance) {
            let case = format!("{error} from {calls} number {when}");
            let (acknowledged, ended) = play_with_fault(&script, &folder, calls, &format!("error={error}"), when);
            let trace = std::fs::read_to_string(trace_path(&folder)).expect("strace has written its output");
            if !trace.contains("(INJECTED)") {
                break;
            }
            assert_no_sync_is_retried(&trace, &case);
            failures_total += 1;
            match ended {
                Some(ended) => {
                    assert!(ended.status.code() != Some(0), "{case}: the server ended with success: {ended:?}");
                    let message = ended.errors.lines().find(|line| line.contains("cannot"));
                    let message = message.unwrap_or_else(|| panic!("{case}: no message: {ended:?}"));
                    messages.insert(message.to_owned());
                    stops += 1;
                }
                // The preparation of a file that is not in use yet is tried again later.
                None => assert!(acknowledged == script.len(), "{case}"),
            }
            restart_and_check(&script, &folder, acknowledged, &case);
        }
        println!("{error} from {calls}: {stops} stops: {messages:#?}");
        stops_total += stops;
    }
    println!("summary: {failures_total} failed calls, {stops_total} stops, lost 0");
    std::fs::remove_dir_all(&folder).expect("the folder exists");
}

#[test]
fn a_failed_call_in_recovery_refuses_to_start_and_harms_nothing() {
    if !has_strace() {
        return;
    }
    let (folder, full) = (folder("recovery-errors"), folder("recovery-errors-full"));
    let script = Script::new(11, &full);
    let (mut starts_total, mut refusals_total) = (0, 0);
    for (calls, error) in [&FAILED[..], &[("pread64", "EIO"), ("openat", "EIO")]].concat() {
        let (mut refusals, mut messages) = (0, BTreeSet::new());
        for when in 1..=RECOVERY_CALLS {
            let case = format!("{error} from {calls} number {when} in recovery");
            let _ = std::fs::remove_dir_all(&folder);
            copy(&full, &folder);
            let mut command = with_fault(&folder, calls, &format!("error={error}"), when);
            if calls == "openat" {
                // Not those of shared libraries and of the machine's description.
                command = only_within(&command, FIRST_FILES.map(|name| folder.join(name)));
            }
            match Server::spawn(command) {
                Ok(mut server) => drop(server.wait(GOES_ON)),
                Err(ended) => {
                    let message = ended.errors.lines().find(|line| line.contains("cannot"));
                    let message = message.unwrap_or_else(|| panic!("{case}: no message: {ended:?}"));
                    messages.insert(message.to_owned());
                    refusals += 1;
                }
            }
            starts_total += 1;
            restart_and_check(&script, &folder, script.len(), &case);
        }
        println!("{error} from {calls} in recovery: {refusals} refusals: {messages:#?}");
        refusals_total += refusals;
    }
    println!("summary: {starts_total} starts with a failed call, {refusals_total} refusals, lost 0");
    std::fs::remove_dir_all(&folder).expect("the folder exists");
}

#[test]
fn short_and_interrupted_calls_are_completed() {
    let (folder, undisturbed) = (folder("short"), folder("short-undisturbed"));
    let library = folder.with_extension("so");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/durability/short_calls.c");
    let compiled = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).args([source, "-ldl"]).status();
    assert!(compiled.expect("cc is installed, as for every build").success(), "{source} compiles");
    let script = Script::new(11, &undisturbed);
    let start = || {
        let mut command = small_files_command(&folder);
        command.env("LD_PRELOAD", &library);
        Server::spawn(command).unwrap_or_else(|ended| panic!("the server did not start: {ended:?}"))
    };
    let server = start();
    assert_eq!(script.play(&server), script.len(), "every step is acknowledged");
    server.kill();
    let server = start();
    script.check(&server, script.len(), "recovered with short reads");
    server.kill();
    std::fs::remove_dir_all(&folder).expect("the folder exists");
}

/// Checks that no descriptor is synced again after a sync of it failed.
fn assert_no_sync_is_retried(trace: &str, case: &str) {
    let mut failed = BTreeSet::new();
    for line in trace.lines() {
        let Some((_, call)) = line.split_once(' ') else { continue };
        let Some((name, rest)) = call.trim_start().split_once('(') else { continue };
        let descriptor = rest.split([')', ' ', ',']).next().unwrap_or_default();
        match name {
            "close" => drop(failed.remove(descriptor)),
            "fdatasync" | "fsync" if line.contains("(INJECTED)") => drop(failed.insert(descriptor.to_owned())),
            "fdatasync" | "fsync" => assert!(!failed.contains(descriptor), "{case}: a sync is retried: {line}"),
            _ => {}
        }
    }
}
