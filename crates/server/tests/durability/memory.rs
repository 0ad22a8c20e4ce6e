//! Commits that are acknowledged in memory: the log syncs them within `TimeBetweenGlobalCheckpoints`.

use std::path::Path;
use std::time::Duration;

use super::server::{Server, folder, rows, run};

/// A server whose configuration file has these lines.
fn start(folder: &Path, settings: &str) -> Server {
    std::fs::create_dir_all(folder).expect("a writable folder");
    let file = folder.join("junctor.toml");
    std::fs::write(&file, settings).expect("a writable folder");
    Server::start_with(&folder.join("data"), &["--config", file.to_str().expect("a path in UTF-8")])
}

const CREATE: &[&str] = &["CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)"];

#[test]
fn a_commit_in_memory_is_on_disk_after_the_interval() {
    let folder = folder("interval");
    let server = start(&folder, "TimeBetweenGlobalCheckpoints = 100\ncommit_durability = \"memory\"\n");
    let mut session = server.session();
    assert_eq!(rows(&mut session, "SELECT @@commit_durability, @@innodb_flush_log_at_trx_commit"), [["memory", "2"]]);
    run(&mut session, CREATE);
    run(&mut session, &["INSERT INTO d.t VALUES (1)", "BEGIN", "INSERT INTO d.t VALUES (2)", "COMMIT"]);
    // Far more than the interval and a sync.
    std::thread::sleep(Duration::from_secs(2));
    server.kill();
    let server = start(&folder, "");
    let mut session = server.session();
    assert_eq!(rows(&mut session, "SELECT id FROM d.t ORDER BY id"), [["1"], ["2"]]);
    assert_eq!(rows(&mut session, "SELECT @@commit_durability"), [["disk"]]);
    server.kill();
    std::fs::remove_dir_all(&folder).expect("the folder exists");
}

#[test]
fn a_commit_to_disk_takes_the_earlier_ones_in_memory_along() {
    let folder = folder("order");
    // No sync by the clock within this test.
    let server = start(&folder, "TimeBetweenGlobalCheckpoints = 32000\n");
    let mut session = server.session();
    run(&mut session, CREATE);
    run(
        &mut session,
        &[
            "SET commit_durability = memory",
            "INSERT INTO d.t VALUES (1)",
            "SET commit_durability = disk",
            "BEGIN",
            "INSERT INTO d.t VALUES (2)",
            "COMMIT",
            "BEGIN",
            "INSERT INTO d.t VALUES (3)",
            "SET commit_durability = memory",
            "COMMIT",
        ],
    );
    server.kill();
    let server = start(&folder, "");
    let mut session = server.session();
    assert_eq!(rows(&mut session, "SELECT id FROM d.t ORDER BY id"), [["1"], ["2"]], "the last one was in memory only");
    server.kill();
    std::fs::remove_dir_all(&folder).expect("the folder exists");
}

#[test]
fn a_clean_stop_keeps_what_was_in_memory_only() {
    let folder = folder("stop");
    // No sync by the clock within this test.
    let server = start(&folder, "TimeBetweenGlobalCheckpoints = 32000\n");
    let mut session = server.session();
    run(&mut session, CREATE);
    // An idle log closes itself.
    std::thread::sleep(Duration::from_secs(1));
    run(&mut session, &["SET commit_durability = memory"]);
    (1..=20).for_each(|id| run(&mut session, &[&format!("INSERT INTO d.t VALUES ({id})")]));
    drop(session);
    server.stop();
    let server = start(&folder, "");
    assert_eq!(rows(&mut server.session(), "SELECT COUNT(*) FROM d.t"), [["20"]]);
    server.kill();
    std::fs::remove_dir_all(&folder).expect("the folder exists");
}

#[test]
fn commits_to_disk_survive_a_kill_beside_commits_in_memory() {
    let folder = folder("beside");
    let server = start(&folder, "");
    run(&mut server.session(), CREATE);
    std::thread::scope(|scope| {
        for number in 0..6_u32 {
            let mut session = server.session();
            scope.spawn(move || {
                let durability = if number % 2 == 0 { "disk" } else { "memory" };
                run(&mut session, &[&format!("SET commit_durability = {durability}")]);
                for id in 0..200 {
                    run(&mut session, &[&format!("INSERT INTO d.t VALUES ({})", id * 6 + number)]);
                }
            });
        }
    });
    server.kill();
    let server = start(&folder, "");
    assert_eq!(rows(&mut server.session(), "SELECT COUNT(*) FROM d.t WHERE id % 2 = 0"), [["600"]]);
    server.kill();
    std::fs::remove_dir_all(&folder).expect("the folder exists");
}
