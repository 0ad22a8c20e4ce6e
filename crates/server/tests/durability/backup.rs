//! `junctor backup` and `junctor restore` with a real server.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use super::server::{Server, folder, rows, run};

/// A server that begins a checkpoint after each 64 KiB of log.
fn start_with_checkpoints(folder: &Path) -> Server {
    std::fs::create_dir_all(folder).expect("a writable folder");
    let file = folder.join("junctor.toml");
    std::fs::write(&file, "TimeBetweenLocalCheckpoints = 14\nMinDiskWriteSpeed = \"100M\"\n")
        .expect("a writable folder");
    Server::start_with(&folder.join("data"), &["--config", path(&file)])
}

/// Waits for a checkpoint with a higher generation. Returns its generation.
fn await_checkpoint_after(server: &Server, generation: u64) -> u64 {
    let mut session = server.session();
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let done = rows(&mut session, "SELECT MAX(generation) FROM junctor_info.checkpoints WHERE state = 'DONE'");
        match done[0][0].parse::<u64>() {
            Ok(newest) if newest > generation => return newest,
            _ => assert!(Instant::now() < deadline, "no checkpoint after {generation}: {done:?}"),
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Runs the program, and returns its standard output, or its standard error if it fails.
fn junctor(arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(env!("CARGO_BIN_EXE_junctor")).args(arguments).output().expect("the program runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
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
    std::thread::sleep(Duration::from_millis(1100));
    let between = rows(&mut session, "SELECT UTC_TIMESTAMP()").remove(0).remove(0);
    std::thread::sleep(Duration::from_millis(1100));
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
