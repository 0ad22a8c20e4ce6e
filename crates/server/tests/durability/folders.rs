//! The log and the checkpoints on devices of their own.

use std::path::Path;
use std::process::Command;

use super::backup::await_checkpoint_after;
use super::server::{Server, command, folder, rows, run};

/// Runs `junctor check`. Returns its output if it finds damage.
fn check(data: &Path) -> Result<(), String> {
    let output = Command::new(env!("CARGO_BIN_EXE_junctor")).arg("check").arg(data).output().expect("the program runs");
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()),
    }
}

#[test]
fn the_log_may_lie_in_another_folder() {
    let folder = folder("log-folder");
    std::fs::create_dir_all(&folder).expect("a writable folder");
    let configuration = |name: &str| {
        let file = folder.join(name.replace('/', "-") + ".toml");
        let log = folder.join(name);
        std::fs::write(&file, format!("log_directory = {:?}\n", log.to_str().expect("UTF-8")))
            .expect("a writable folder");
        file.to_str().expect("UTF-8").to_owned()
    };
    let here = configuration("here/log");
    let server = Server::start_with(&folder.join("data"), &["--config", &here]);
    let mut session = server.session();
    run(&mut session, &["CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)", "INSERT INTO d.t VALUES (7)"]);
    server.kill();
    assert!(folder.join("here/log/0000000000.log").is_file() && folder.join("data/log").is_symlink());
    // A later start finds the log with and without the setting.
    for options in [&["--config", &here][..], &[]] {
        let server = Server::start_with(&folder.join("data"), options);
        assert_eq!(rows(&mut server.session(), "SELECT id FROM d.t"), [["7"]]);
        server.kill();
    }

    assert_eq!(check(&folder.join("data")), Ok(()));

    let refusal = |data: &str, configuration: &str| {
        let output = command(&folder.join(data)).args(["--config", configuration]).output().expect("the program runs");
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let text = refusal("other", &here);
    assert!(text.contains("is new, but log_directory") && text.contains("has the file"), "{text}");
    let text = refusal("data", &configuration("there"));
    assert!(text.contains("there, but the files are in"), "{text}");
    std::fs::remove_dir_all(&folder).expect("the folder exists");
}

#[test]
fn log_and_checkpoints_in_other_folders_are_checked() {
    let folder = folder("both-folders");
    std::fs::create_dir_all(&folder).expect("a writable folder");
    let (log, checkpoints) = (folder.join("device1/log"), folder.join("device2/checkpoints"));
    let file = folder.join("junctor.toml");
    let settings = format!(
        "log_directory = {log:?}\ncheckpoint_directory = {checkpoints:?}\nTimeBetweenLocalCheckpoints = 14\n\
         MinDiskWriteSpeed = \"100M\"\n"
    );
    std::fs::write(&file, settings).expect("a writable folder");
    let data = folder.join("data");
    let server = Server::start_with(&data, &["--config", file.to_str().expect("UTF-8")]);
    let mut session = server.session();
    run(&mut session, &["CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, t TEXT)"]);
    let rows_of = |from: i32| (from..from + 50).map(|id| format!("({id}, REPEAT('x', 5000))")).collect::<Vec<_>>();
    run(&mut session, &[&format!("INSERT INTO d.t VALUES {}", rows_of(0).join(", "))]);
    await_checkpoint_after(&server, 0);
    server.kill();
    assert_eq!(check(&data), Ok(()));

    let files = std::fs::read_dir(&checkpoints).expect("the folder of the checkpoints");
    let mut files: Vec<_> = files.map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    let damaged = files.first().expect("a checkpoint file");
    let mut bytes = std::fs::read(damaged).expect("a file");
    bytes[100] ^= 1;
    std::fs::write(damaged, bytes).expect("a writable file");
    let text = check(&data).unwrap_err();
    let name = damaged.file_name().and_then(|name| name.to_str()).expect("a name");
    assert!(text.contains(&format!("checkpoint/{name}")), "{text}");
    std::fs::remove_dir_all(&folder).expect("the folder exists");
}
