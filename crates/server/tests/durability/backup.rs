//! `junctor backup` and `junctor restore` with a real server.

use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use junctor_bench::mysql::Connection;

use super::server::{Server, folder, rows, run};

/// Number of kills on each side of each step of a backup and a restore, if the test is thorough.
const PROGRAM_KILLS: u32 = 50;

/// A server that begins a checkpoint after each 64 KiB of log.
fn start_with_checkpoints(folder: &Path) -> Server {
    std::fs::create_dir_all(folder).expect("a writable folder");
    let file = folder.join("junctor.toml");
    std::fs::write(&file, "TimeBetweenLocalCheckpoints = 14\nMinDiskWriteSpeed = \"100M\"\n")
        .expect("a writable folder");
    Server::start_with(&folder.join("data"), &["--config", path(&file)])
}

/// Such a server with some rows in a checkpoint. Also returns its port.
fn start_with_a_checkpoint(folder: &Path) -> (Server, String) {
    let server = start_with_checkpoints(folder);
    let mut session = server.session();
    run(&mut session, &["CREATE DATABASE shop", "CREATE TABLE shop.a (id INT PRIMARY KEY, v INT, t TEXT, KEY (v))"]);
    for id in 0..20 {
        run(&mut session, &[&format!("INSERT INTO shop.a VALUES ({id}, {id}, REPEAT('x', 20000))")]);
    }
    await_checkpoint_after(&server, 0);
    let port = server.address.port().to_string();
    (server, port)
}

/// Waits for a checkpoint with a higher generation. Returns its generation.
pub(super) fn await_checkpoint_after(server: &Server, generation: u64) -> u64 {
    let mut session = server.session();
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let done = rows(&mut session, "SELECT MAX(generation) FROM junctor_info.checkpoints WHERE state = 'DONE'");
        match done[0][0].parse::<u64>() {
            Ok(newest) if newest > generation => return newest,
            _ => assert!(Instant::now() < deadline, "no checkpoint after {generation}: {done:?}"),
        }
    }
}

/// Runs the program until it kills itself at a crash point. Returns whether it did; otherwise it succeeded.
fn kill_at(point: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(env!("CARGO_BIN_EXE_junctor"));
    let output = command.args(arguments).env("JUNCTOR_CRASH_AT", point).output().expect("the program runs");
    let is_killed = std::os::unix::process::ExitStatusExt::signal(&output.status) == Some(9);
    assert!(is_killed || output.status.success(), "{point}: {output:?}");
    is_killed
}

/// Runs the program, and returns its standard output, or its standard error if it fails.
fn junctor(arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(env!("CARGO_BIN_EXE_junctor")).args(arguments).output().expect("the program runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
}

/// Waits until the server's clock shows another second, and returns it.
fn await_next_second(session: &mut Connection<TcpStream>) -> String {
    let mut time = || rows(session, "SELECT UTC_TIMESTAMP()").remove(0).remove(0);
    let begin = time();
    loop {
        let now = time();
        if now != begin {
            return now;
        }
    }
}

fn path(folder: &Path) -> &str {
    folder.to_str().expect("a path in UTF-8")
}

fn sums(folder: &Path) -> Vec<Vec<String>> {
    let server = Server::start(folder);
    rows(&mut server.session(), "SELECT COUNT(*), SUM(v), SUM(CHAR_LENGTH(t)) FROM shop.a")
}

#[test]
fn a_backup_and_its_increments_restore_every_moment_between_them() {
    let (data, store) = (folder("backup-data"), folder("backup-store"));
    let server = Server::start(&data);
    let port = server.address.port().to_string();
    let backup = |options: &[&str]| {
        let arguments = [&["backup", path(&store), "--port", &port], options].concat();
        junctor(&arguments)
    };
    let mut session = server.session();
    let table = "CREATE TABLE shop.a (id INT PRIMARY KEY AUTO_INCREMENT, v INT, t TEXT, KEY (v))";
    run(&mut session, &["CREATE DATABASE shop", table]);
    run(&mut session, &["INSERT INTO shop.a (v, t) VALUES (1, 'x'), (2, REPEAT('y', 60000))"]);
    let full = backup(&["--name", "full"]).expect("a backup is taken");
    assert!(full.starts_with("backup full: "), "{full}");

    run(&mut session, &["UPDATE shop.a SET v = 20 WHERE id = 2", "INSERT INTO shop.a (v, t) VALUES (3, 'z')"]);
    // Times on the command line are in whole seconds, and each group of the log carries the time of its
    // write.
    let between = await_next_second(&mut session);
    await_next_second(&mut session);
    run(&mut session, &["DELETE FROM shop.a WHERE id = 1", "ALTER TABLE shop.a ADD KEY (id, v)"]);
    backup(&["--name", "more", "--incremental"]).expect("an increment is taken");
    run(&mut session, &["DELETE FROM shop.a"]);
    server.kill();

    let listed = junctor(&["backups", path(&store)]).expect("a list");
    assert!(listed.contains("full") && listed.contains("more"), "{listed}");
    let restored = |name: &str, options: &[&str]| {
        let target = folder(name);
        let arguments = [&["restore", path(&store), path(&target)], options].concat();
        junctor(&arguments).map(|_| sums(&target))
    };
    let row = |texts: [&str; 3]| vec![texts.map(str::to_owned).to_vec()];
    assert_eq!(restored("backup-of-full", &["--name", "full"]), Ok(row(["2", "3", "60001"])));
    assert_eq!(restored("backup-of-newest", &[]), Ok(row(["2", "23", "60001"])));
    assert_eq!(restored("backup-of-moment", &["--until", &between]), Ok(row(["3", "24", "60002"])));

    let early = restored("backup-of-nothing", &["--until", "2001-01-01 00:00:00"]).unwrap_err();
    assert!(early.contains("the time cannot be restored"), "{early}");
    let twice = junctor(&["restore", path(&store), path(&data)]).unwrap_err();
    assert!(twice.contains("is not empty"), "{twice}");
    let unknown = restored("backup-of-unknown", &["--name", "other"]).unwrap_err();
    assert!(unknown.contains("no complete backup 'other'"), "{unknown}");
}

#[test]
fn a_backup_restores_every_moment_before_and_after_a_column_is_dropped() {
    let (data, store) = (folder("backup-dropped"), folder("backup-dropped-store"));
    let server = Server::start(&data);
    let port = server.address.port().to_string();
    let backup = |options: &[&str]| {
        let arguments = [&["backup", path(&store), "--port", &port], options].concat();
        junctor(&arguments).expect("a backup is taken")
    };
    let mut session = server.session();
    run(&mut session, &["CREATE DATABASE d", "CREATE TABLE d.a (id INT PRIMARY KEY, t TEXT, v INT, w INT NOT NULL)"]);
    run(&mut session, &["INSERT INTO d.a VALUES (1, REPEAT('y', 60000), 10, 100), (2, NULL, 20, 200)"]);
    backup(&["--name", "full"]);
    run(&mut session, &["ALTER TABLE d.a DROP COLUMN t, ALGORITHM=INSTANT", "INSERT INTO d.a VALUES (3, 30, 300)"]);
    let between = await_next_second(&mut session);
    await_next_second(&mut session);
    run(&mut session, &["UPDATE d.a SET v = 11 WHERE id = 1", "ALTER TABLE d.a DROP COLUMN w, ADD t INT DEFAULT 5"]);
    run(&mut session, &["INSERT INTO d.a (id, v) VALUES (4, 40)"]);
    backup(&["--name", "more", "--incremental"]);
    server.kill();
    let restored = |name: &str, options: &[&str], columns: &str| {
        let target = folder(name);
        junctor(&[&["restore", path(&store), path(&target)], options].concat()).expect("a restore");
        let server = Server::start(&target);
        let mut session = server.session();
        let all = rows(&mut session, "SELECT * FROM d.a");
        assert_eq!(all[0].len(), columns.split(',').count());
        let named = rows(&mut session, &format!("SELECT {columns} FROM d.a ORDER BY id"));
        let named: Vec<String> = named.iter().map(|row| row.join(" ")).collect();
        // Rows from before the change can still be changed.
        run(&mut session, &["UPDATE d.a SET v = v + 1"]);
        named.join(", ")
    };
    let full = ["--name", "full"];
    assert_eq!(restored("dropped-of-full", &full, "id, LENGTH(t), v, w"), "1 60000 10 100, 2 NULL 20 200");
    let moment = ["--until", &between];
    assert_eq!(restored("dropped-of-moment", &moment, "id, v, w"), "1 10 100, 2 20 200, 3 30 300");
    assert_eq!(restored("dropped-of-newest", &[], "id, v, t"), "1 11 5, 2 20 5, 3 30 5, 4 40 5");
}

#[test]
fn a_backup_holds_the_checkpoint_and_an_increment_only_what_is_new() {
    let (data, store) = (folder("backup-checkpoint"), folder("backup-checkpoint-store"));
    let server = start_with_checkpoints(&data);
    let port = server.address.port().to_string();
    let mut session = server.session();
    run(&mut session, &["CREATE DATABASE shop", "CREATE TABLE shop.a (id INT PRIMARY KEY, v INT, t TEXT, KEY (v))"]);
    let fill = |from: i32| {
        format!(
            "INSERT INTO shop.a VALUES {}",
            (from..from + 100).map(|id| format!("({id}, {id}, REPEAT('x', 5000))")).collect::<Vec<_>>().join(", ")
        )
    };
    for from in [0, 100, 200] {
        run(&mut session, &[&fill(from)]);
    }
    let generation = await_checkpoint_after(&server, 0);
    junctor(&["backup", path(&store), "--port", &port, "--name", "full"]).expect("a backup is taken");
    assert!(store.join("full/manifest.zst").exists() && store.join("full/checkpoint").exists());
    run(&mut session, &[&fill(300), "UPDATE shop.a SET v = v + 1 WHERE id < 10", "DELETE FROM shop.a WHERE id = 50"]);
    await_checkpoint_after(&server, generation);
    let expected = rows(&mut session, "SELECT COUNT(*), SUM(v), SUM(CHAR_LENGTH(t)) FROM shop.a");
    junctor(&["backup", path(&store), "--port", &port, "--name", "more", "--incremental"]).expect("an increment");
    server.kill();
    let restored = folder("backup-checkpoint-restored");
    junctor(&["restore", path(&store), path(&restored)]).expect("a restore");
    assert_eq!(sums(&restored), expected);
    let full = folder("backup-checkpoint-full");
    junctor(&["restore", path(&store), path(&full), "--name", "full"]).expect("a restore");
    assert_eq!(sums(&full), [["300", "44850", "1500000"]]);
}

#[test]
fn increments_of_an_idle_server_add_nothing_and_can_be_continued() {
    let (data, store) = (folder("backup-idle"), folder("backup-idle-store"));
    let (server, port) = start_with_a_checkpoint(&data);
    let mut session = server.session();
    let take = |name: &str, options: &[&str]| {
        let arguments = [&["backup", path(&store), "--port", &port, "--name", name], options].concat();
        junctor(&arguments).expect("a backup is taken");
    };
    take("one", &[]);
    // The server may end the log with a closing group meanwhile. The last increments have nothing new.
    for (name, value) in [("two", 201), ("three", 202), ("four", 203)] {
        run(&mut session, &[&format!("SET PERSIST wait_timeout = {value}")]);
        take(name, &["--incremental"]);
    }
    let newest = folder("backup-idle-newest");
    junctor(&["restore", path(&store), path(&newest)]).expect("a restore");
    let restored = Server::start(&newest);
    assert_eq!(rows(&mut restored.session(), "SELECT @@global.wait_timeout"), [["203"]]);
    restored.kill();
    let listed = junctor(&["backups", path(&store)]).expect("a list");
    assert!(!listed.contains("1970"), "{listed}");
    run(&mut session, &["INSERT INTO shop.a VALUES (100, 100, 'last')"]);
    take("five", &["--incremental"]);
    let expected = rows(&mut session, "SELECT COUNT(*), SUM(v), SUM(CHAR_LENGTH(t)) FROM shop.a");
    server.kill();
    let restored = folder("backup-idle-restored");
    junctor(&["restore", path(&store), path(&restored)]).expect("a restore");
    assert_eq!(sums(&restored), expected);
}

#[test]
fn an_increment_takes_a_file_anew_whose_number_was_used_again() {
    let (data, store) = (folder("backup-number"), folder("backup-number-store"));
    let (server, port) = start_with_a_checkpoint(&data);
    let take = |name: &str, options: &[&str]| {
        let arguments = [&["backup", path(&store), "--port", &port, "--name", name], options].concat();
        junctor(&arguments).expect("a backup is taken");
        let entries = std::fs::read_dir(store.join(name).join("checkpoint"));
        entries.map_or(0, |entries| entries.count())
    };
    let files = take("full", &[]);
    assert!(files > 0);
    // Another content under the same number and of the same length, as after a loss of power that took the
    // manifest with the number away. The server does not read its checkpoint while it runs.
    for entry in std::fs::read_dir(data.join("data/checkpoint")).expect("the folder exists") {
        let file = entry.expect("an entry").path();
        let mut content = std::fs::read(&file).expect("the file exists");
        let last = content.len() - 1;
        content[last] ^= 1;
        std::fs::write(&file, content).expect("a writable file");
    }
    assert!(take("more", &["--incremental"]) > 0, "the increment has the changed files");
    server.kill();
}

/// Runs an action while a client commits, so that a backup finds groups behind its checkpoint.
fn while_committing<T>(server: &Server, action: impl FnOnce() -> T) -> T {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let mut session = server.session();
        let is_over = &is_over;
        let commits = move || {
            while !is_over.load(Ordering::Relaxed) {
                run(&mut session, &["UPDATE shop.b SET v = v + 1 WHERE id = 1"]);
            }
        };
        let client = scope.spawn(commits);
        let result = action();
        is_over.store(true, Ordering::Relaxed);
        client.join().expect("the client's updates succeed");
        result
    })
}

#[test]
fn a_backup_that_is_killed_does_not_count_and_harms_nobody() {
    let kills = if std::env::var_os("JUNCTOR_FAULTS").is_some() { PROGRAM_KILLS } else { 2 };
    let (data, store) = (folder("backup-killed"), folder("backup-killed-store"));
    let server = start_with_checkpoints(&data);
    let port = server.address.port().to_string();
    let mut session = server.session();
    run(&mut session, &["CREATE DATABASE shop", "CREATE TABLE shop.a (id INT PRIMARY KEY, v INT, t TEXT, KEY (v))"]);
    let insert = |id: u32| format!("INSERT INTO shop.a VALUES ({id}, {id}, REPEAT('x', 20000))");
    for id in 0..20 {
        run(&mut session, &[&insert(id)]);
    }
    await_checkpoint_after(&server, 0);
    junctor(&["backup", path(&store), "--port", &port, "--name", "base"]).expect("a backup is taken");
    run(&mut session, &["CREATE TABLE shop.b (id INT PRIMARY KEY, v INT)", "INSERT INTO shop.b VALUES (1, 0)"]);
    let mut complete = vec!["base".to_owned()];
    let mut next_row = 20;
    for step in ["backup.frame", "backup.log", "backup.list"] {
        for (side, kill) in ["before", "after"].into_iter().flat_map(|side| (1..=kills).map(move |kill| (side, kill))) {
            run(&mut session, &[&insert(next_row)]);
            next_row += 1;
            let is_incremental = step != "backup.frame" && kill % 2 == 0;
            let is_whole = (step, side) == ("backup.list", "after");
            // Later hits are not always reached. The first one is.
            for hit in [1 + kill % 3, 1] {
                let (point, name) = (format!("{step}.{side}:{hit}"), format!("{step}-{side}-{kill}-{hit}"));
                let mut arguments = vec!["backup", path(&store), "--port", &port, "--name", &name];
                arguments.extend(is_incremental.then_some("--incremental"));
                let is_killed = while_committing(&server, || kill_at(&point, &arguments));
                if !is_killed || is_whole {
                    complete.push(name);
                }
                if is_killed {
                    break;
                }
                assert!(hit > 1, "{point} is reached");
            }
        }
        // The killed sessions hold no lock, and a whole backup is possible between the killed ones.
        let name = format!("whole-{step}");
        junctor(&["backup", path(&store), "--port", &port, "--name", &name]).expect("a backup is taken");
        complete.push(name);
    }
    let listed = junctor(&["backups", path(&store)]).expect("a list");
    let mut names: Vec<&str> = listed.lines().skip(1).filter_map(|line| line.split(' ').next()).collect();
    names.sort_unstable();
    complete.sort_unstable();
    assert_eq!(names, complete);
    junctor(&["backup", path(&store), "--port", &port, "--name", "last", "--incremental"]).expect("an increment");
    let expected = rows(&mut session, "SELECT COUNT(*), SUM(v), SUM(CHAR_LENGTH(t)) FROM shop.a");
    server.kill();
    let restored = folder("backup-killed-restored");
    junctor(&["restore", path(&store), path(&restored)]).expect("a restore");
    assert_eq!(sums(&restored), expected);
    kill_restores(&store, kills, &expected);
}

/// Kills restores. Nothing is left at the path of the directory, or all of it.
fn kill_restores(store: &Path, kills: u32, expected: &[Vec<String>]) {
    let target = folder("backup-killed-target");
    let unfinished = target.with_extension("restoring");
    let _ = std::fs::remove_dir_all(&unfinished);
    for (side, kill) in ["before", "after"].into_iter().flat_map(|side| (1..=kills).map(move |kill| (side, kill))) {
        let _ = std::fs::remove_dir_all(&target);
        let point = format!("backup.restore.{side}:{}", 1 + kill % 5);
        assert!(kill_at(&point, &["restore", path(store), path(&target)]), "{point} is reached");
        if target.exists() {
            assert_eq!(sums(&target), expected, "{point}");
            continue;
        }
        let refused = junctor(&["restore", path(store), path(&target)]).unwrap_err();
        assert!(refused.contains("from a restore that is running or that was killed"), "{point}: {refused}");
        std::fs::remove_dir_all(&unfinished).expect("the folder that the message names");
    }
    let _ = std::fs::remove_dir_all(&target);
    junctor(&["restore", path(store), path(&target)]).expect("a restore");
    assert_eq!(sums(&target), expected);
}

#[test]
fn a_backup_goes_to_the_servers_own_store_if_none_is_named() {
    let folder = folder("backup-default");
    std::fs::create_dir_all(&folder).expect("a writable folder");
    let (file, store) = (folder.join("junctor.toml"), folder.join("store"));
    let data = folder.join("data");
    let take = |options: &[&str]| {
        let server = Server::start_with(&data, options);
        junctor(&["backup", "--port", &server.address.port().to_string(), "--name", "one"])
    };
    let refused = take(&[]).unwrap_err();
    assert!(refused.contains("no STORE is given, and the server's configuration has no BackupDataDir"), "{refused}");
    std::fs::write(&file, format!("BackupDataDir = {:?}\n", path(&store))).expect("a writable folder");
    take(&["--config", path(&file)]).expect("a backup is taken");
    assert!(junctor(&["backups", path(&store)]).expect("a list").contains("one"));
    std::fs::remove_dir_all(&folder).expect("the folder exists");
}

#[test]
fn a_damaged_backup_is_refused() {
    let (data, store) = (folder("damaged-data"), folder("damaged-store"));
    let server = Server::start(&data);
    let mut session = server.session();
    run(&mut session, &["CREATE DATABASE shop", "CREATE TABLE shop.a (id INT PRIMARY KEY, v INT, t TEXT)"]);
    run(&mut session, &["INSERT INTO shop.a VALUES (1, 1, REPEAT('abc', 1000))"]);
    let port = server.address.port().to_string();
    junctor(&["backup", path(&store), "--port", &port, "--name", "one"]).expect("a backup is taken");
    let again = junctor(&["backup", path(&store), "--port", &port, "--name", "one"]).unwrap_err();
    assert!(again.contains("already"), "{again}");

    let log = store.join("one/log.zst");
    let whole = std::fs::read(&log).expect("the log is an object");
    let mut refusals = 0;
    for position in (0..whole.len()).step_by(whole.len() / 50 + 1) {
        let mut damaged = whole.clone();
        damaged[position] ^= 0x10;
        std::fs::write(&log, &damaged).expect("the object can be changed");
        let target = folder("damaged-target");
        let refused = junctor(&["restore", path(&store), path(&target)]);
        if refused.is_ok() {
            // A bit of the compressed form that changes no byte of the content.
            assert_eq!(sums(&target), [["1", "1", "3000"]], "byte {position}");
        } else {
            assert!(!target.exists(), "byte {position}: {refused:?}");
            refusals += 1;
        }
    }
    assert!(refusals > 30, "{refusals} of about 50 changes were noticed");
    std::fs::write(&log, &whole[..whole.len() / 2]).expect("the object can be changed");
    assert!(junctor(&["restore", path(&store), path(&folder("damaged-target"))]).is_err());
    std::fs::remove_file(store.join("one/contents")).expect("the list is an object");
    let incomplete = junctor(&["restore", path(&store), path(&folder("damaged-target"))]).unwrap_err();
    assert!(incomplete.contains("no complete backup"), "{incomplete}");
}
