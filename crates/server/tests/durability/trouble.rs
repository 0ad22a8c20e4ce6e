//! Directories that a server cannot use: each refusal says what is wrong and what to do.

use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::crash_points::CRASH;
use super::server::{Server, command, copy, folder, run};

/// The message with which a server refuses to start.
fn refusal(command: Command) -> String {
    match Server::spawn(command) {
        Ok(_) => panic!("the directory is not refused"),
        Err(ended) => {
            assert!(!ended.status.success(), "{ended:?}");
            ended.errors
        }
    }
}

/// Copies a directory, changes the copy, and checks that a server refuses it with these words.
fn check(original: &Path, change: &dyn Fn(&Path), wanted: &[&str]) {
    let changed = original.with_extension("changed");
    let _ = fs::remove_dir_all(&changed);
    copy(original, &changed);
    change(&changed);
    let message = refusal(command(&changed));
    assert!(wanted.iter().all(|words| message.contains(words)), "{message:?} has {wanted:?}");
    let _ = fs::remove_dir_all(&changed).or_else(|_| fs::remove_file(&changed));
}

#[test]
fn a_refused_directory_has_a_message_with_advice() {
    let folder = folder("trouble");
    let server = Server::start(&folder);
    run(&mut server.session(), &["CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)"]);
    server.kill();
    let change = |change: &dyn Fn(&Path), wanted: &[&str]| check(&folder, change, wanted);
    change(
        &|folder| {
            fs::remove_dir_all(folder).expect("a writable folder");
            fs::write(folder, "").expect("a writable folder");
        },
        &["cannot make the data directory", "a file is in its place: choose another directory with --data-dir"],
    );
    change(
        &|folder| fs::write(folder.join("identity.1"), [0; 8192]).expect("a writable file"),
        &["both files of the identity are damaged; restore the directory from a backup"],
    );
    change(
        &|folder| fs::remove_dir_all(folder.join("log")).expect("a writable folder"),
        &["the log of the data directory is missing; mount its device, or restore the directory from a backup"],
    );
    change(
        &|folder| {
            fs::rename(folder.join("log"), folder.join("elsewhere")).expect("a writable folder");
            symlink("/nonexistent/log", folder.join("log")).expect("a writable folder");
        },
        &["log is a link to the folder /nonexistent/log, which does not exist; mount its device"],
    );
    change(
        &|folder| {
            fs::remove_dir_all(folder.join("log")).expect("a writable folder");
            fs::write(folder.join("log"), "").expect("a writable folder");
        },
        &["cannot read log", "check the device and its file system"],
    );
    fs::remove_dir_all(&folder).expect("the folder exists");
}

/// The path and the content of every file of a directory but sockets, in order. Folders have no content.
pub fn contents(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("the folder exists") {
        let entry = entry.expect("an entry");
        let path = entry.path();
        if entry.file_type().expect("a type").is_socket() {
            continue;
        }
        match path.is_dir() {
            true => {
                found.extend(contents(&path));
                found.push((path, Vec::new()));
            }
            false => {
                let content = fs::read(&path).expect("the file exists");
                found.push((path, content));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn a_directory_with_other_files_is_refused_and_not_touched() {
    let folder = folder("foreign");
    let refuse = |path: &str, content: &[u8], wanted: &str| {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().expect("a path in the folder")).expect("a writable folder");
        fs::write(&path, content).expect("a writable folder");
        let before = contents(&folder);
        let message = refusal(command(&folder));
        assert!(message.contains(&format!("has no identity, but it has {wanted};")), "{message}");
        assert!(message.contains("choose an empty directory with --data-dir"), "{message}");
        assert!(contents(&folder) == before, "{wanted}: the directory is unchanged");
        fs::remove_dir_all(&folder).expect("the folder exists");
    };
    refuse("thesis.txt", b"years of work", "thesis.txt");
    refuse("photos/1.jpg", b"", "photos");
    refuse("manifest.0", b"", "manifest.0");
    refuse("settings.1", b"", "settings.1");
    refuse("log/thesis.txt", b"years of work", "log/thesis.txt");
    refuse("log/0000000000.log", &[[0; 8192], [1; 8192]].concat(), "log/0000000000.log");
    refuse("checkpoint/0000000001.data", &[0; 4096], "checkpoint/0000000001.data");
}

#[test]
fn a_directory_without_its_identity_is_refused_and_not_touched() {
    let folder = folder("lost-identity");
    let server = Server::start(&folder);
    run(&mut server.session(), &["CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)"]);
    server.kill();
    let identity = fs::read(folder.join("identity.1")).expect("the identity exists");
    fs::remove_file(folder.join("identity.1")).expect("the identity exists");
    // No checkpoint was made, so only the log tells that the directory has data.
    assert!(!folder.join("manifest.1").exists() && !folder.join("manifest.0").exists());
    let before = contents(&folder);
    let message = refusal(command(&folder));
    assert!(message.contains("has no identity, but it has log/0000000000.log;"), "{message}");
    assert!(message.contains("if a server has used it, restore it from a backup"), "{message}");
    assert!(contents(&folder) == before, "the directory is unchanged");
    fs::write(folder.join("identity.1"), identity).expect("a writable folder");
    let server = Server::start(&folder);
    run(&mut server.session(), &["SELECT id FROM d.t"]);
    server.kill();
    fs::remove_dir_all(&folder).expect("the folder exists");
}

#[test]
fn a_fresh_device_and_an_interrupted_first_start_are_no_obstacle() {
    let folder = folder("fresh");
    fs::create_dir_all(folder.join("lost+found")).expect("a writable folder");
    // The steps of a first start, in order. Each start finds what the one before has left.
    for point in ["segment.fill.before", "segment.rename.before", "log.start.before", "pair.identity.before"] {
        let mut command = command(&folder);
        command.env(CRASH, format!("{point}:1"));
        match Server::spawn(command) {
            Ok(_) => panic!("{point} is not reached"),
            Err(ended) => assert!(ended.is_by_signal(9), "{point}: {ended:?}"),
        }
    }
    let server = Server::start(&folder);
    run(&mut server.session(), &["CREATE DATABASE d"]);
    server.kill();
    fs::remove_dir_all(&folder).expect("the folder exists");
}

#[test]
fn a_directory_without_permission_is_refused_with_advice() {
    // Root may do everything, so the server runs as nobody. The temporary folder is open to every user.
    let folder = std::env::temp_dir().join(format!("junctor-trouble-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    let program = folder.with_extension("program");
    fs::copy(env!("CARGO_BIN_EXE_junctor"), &program).expect("a writable folder");
    let as_nobody = || {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(&program);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    };
    if as_nobody().arg("--version").output().is_ok_and(|output| output.status.success()) {
        Server::start(&folder).kill();
        let mut refused = as_nobody();
        refused.args(command(&folder).get_args());
        let message = refusal(refused);
        assert!(message.contains("Permission denied (os error 13); start the server as the owner"), "{message}");
        fs::remove_dir_all(&folder).expect("the folder exists");
    }
    fs::remove_file(&program).expect("the file exists");
}

#[test]
fn a_read_only_directory_is_refused_with_advice() {
    let folder = folder("read-only");
    fs::create_dir_all(&folder).expect("a writable folder");
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "ro", "tmpfs"]).arg(&folder).status();
    if !mounted.is_ok_and(|status| status.success()) {
        return;
    }
    let message = refusal(command(&folder));
    let unmounted = Command::new("umount").arg("-l").arg(&folder).status().expect("umount runs");
    assert!(
        unmounted.success() && message.contains("Read-only file system (os error 30); make it writable"),
        "{message}"
    );
}

#[test]
fn a_node_in_memory_has_no_files_to_back_up() {
    let folder = folder("nothing-to-copy");
    Server::start(&folder).kill();
    let server = Server::start_in_memory(&folder);
    let store = folder.join("store");
    let port = server.address.port().to_string();
    let output = Command::new(env!("CARGO_BIN_EXE_junctor")).arg("backup").arg(&store).args(["--port", &port]).output();
    let output = output.expect("the program runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && errors.contains("the server keeps its data in memory only"), "{errors}");
    assert!(!store.exists(), "nothing is made");
    fs::remove_dir_all(&folder).expect("the folder exists");
}
