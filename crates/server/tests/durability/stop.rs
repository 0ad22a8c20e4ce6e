//! Stops at a bad time: during recovery, and when the device has no room for the log.

use std::path::PathBuf;
use std::process::Stdio;

use super::disk_full::{SmallDevice, fill};
use super::faults::{has_strace, only_within, under_strace};
use super::server::{Server, command_with_settings, folder, read_until, rows, run, terminate};
use super::trouble::contents;

/// Rows of 60,000 bytes. With files of 1 MiB, recovery reads some dozen pieces of the log.
const ROWS: u64 = 200;
/// `strace` delays each read of the log by a second. A recovery then takes much longer than its stop.
const SLOW_READ: &str = "delay_enter=1000000";

#[test]
fn a_stop_during_recovery_ends_it_and_changes_nothing() {
    if !has_strace() {
        return;
    }
    let folder = folder("stop-recovery");
    let settings = "FileIo = \"plain\"\nFragmentLogFileSize = \"1M\"\nTimeBetweenLocalCheckpoints = 31\n";
    let command = || command_with_settings(&folder, settings);
    let server = Server::spawn(command()).unwrap_or_else(|ended| panic!("the server did not start: {ended:?}"));
    let mut session = server.session();
    run(&mut session, &["CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, b MEDIUMTEXT)"]);
    for id in 0..ROWS {
        run(&mut session, &[&format!("INSERT INTO d.t VALUES ({id}, REPEAT('x', 60000))")]);
    }
    server.kill();
    let before = contents(&folder);
    let log = before.iter().map(|(path, _)| path.clone()).filter(|path| path.extension().is_some_and(|is| is == "log"));

    let slow = under_strace(&command(), &folder, "pread64", SLOW_READ);
    let mut slow = only_within(&slow, log).stdin(Stdio::null()).spawn().expect("strace runs");
    let mut errors = slow.stderr.take().expect("a pipe");
    let begun = read_until(&mut errors, "recovery phase=\"read log\" begins");
    assert!(begun.contains("read log"), "{begun}");
    terminate(slow.id() as i32);
    let rest = read_until(&mut errors, "stopped before the data was recovered");
    assert!(rest.contains("level=info stopping signal=15"), "{rest}");
    let ready = read_until(slow.stdout.take().expect("a pipe"), "ready: ");
    assert!(ready.is_empty() && slow.wait().expect("a child").success(), "{ready}");
    let after = contents(&folder);
    let names = |these: &[(PathBuf, Vec<u8>)], others: &[(PathBuf, Vec<u8>)]| {
        these.iter().filter(|file| !others.contains(file)).map(|file| file.0.clone()).collect::<Vec<_>>()
    };
    assert_eq!((names(&before, &after), names(&after, &before)), (vec![], vec![]), "changed files, new files");

    let server = Server::spawn(command()).unwrap_or_else(|ended| panic!("the server did not start: {ended:?}"));
    assert_eq!(rows(&mut server.session(), "SELECT COUNT(*) FROM d.t"), [[ROWS.to_string()]]);
    server.kill();
    std::fs::remove_dir_all(&folder).expect("the folder exists");
}

#[test]
fn a_stop_on_a_full_device_says_what_may_be_lost() {
    let Some(device) = SmallDevice::mount(folder("stop-full")) else {
        eprintln!("skipped: mounting a file system needs root");
        return;
    };
    let data = device.0.join("data");
    let server = Server::start(&data);
    run(&mut server.session(), &["CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, b MEDIUMTEXT)"]);
    run(&mut server.session(), &["INSERT INTO d.t VALUES (-1, 'on disk')"]);
    let (inserted, errno) = fill(&server);
    assert_eq!(errno, 1021);
    let ended = server.stop();
    assert_eq!(ended.status.code(), Some(1), "{ended:?}");
    assert!(ended.errors.contains("its device is full; commits that were acknowledged"), "{ended:?}");
    assert!(!ended.errors.contains("level=info stopped"), "{ended:?}");

    device.grow();
    let server = Server::start(&data);
    let found = rows(&mut server.session(), "SELECT COUNT(*), MIN(id), MAX(id) FROM d.t");
    let count: i64 = found[0][0].parse().expect("a number");
    // The commits that were acknowledged in memory only are there up to one of them.
    assert!((2..=inserted as i64 + 1).contains(&count), "{found:?} of {inserted}");
    assert_eq!(found, [[count.to_string(), "-1".to_owned(), (count - 2).to_string()]]);
    server.kill();
}
