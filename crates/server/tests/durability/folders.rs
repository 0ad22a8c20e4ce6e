//! The log on a device of its own, and the folders that a node refuses.

use super::server::{Server, command, folder, rows, run};

#[test]
fn the_log_may_lie_in_another_folder() {
    let folder = folder("log-folder");
    std::fs::create_dir_all(&folder).expect("a writable folder");
    let config = folder.join("junctor.toml");
    let log = folder.join("elsewhere/log");
    std::fs::write(&config, format!("log_directory = {:?}\n", log.to_str().expect("UTF-8")))
        .expect("a writable folder");
    let options = ["--config", config.to_str().expect("UTF-8")];
    let server = Server::start_with(&folder.join("data"), &options);
    let mut session = server.session();
    run(&mut session, &["CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)", "INSERT INTO d.t VALUES (7)"]);
    server.kill();
    assert!(log.join("0000000000.log").is_file() && !folder.join("data/log").exists());

    let server = Server::start_with(&folder.join("data"), &options);
    assert_eq!(rows(&mut server.session(), "SELECT id FROM d.t"), [["7"]]);
    // The lock of the log's folder keeps other nodes away, whatever their data directory.
    let refusal = |data: &str| {
        let output = command(&folder.join(data)).args(options).output().expect("the program runs");
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let text = refusal("other");
    assert!(text.contains("used by another process") && text.contains("log_directory"), "{text}");
    server.kill();
    let text = refusal("other");
    assert!(text.contains("is new, but the folder") && text.contains("has the file"), "{text}");
    // Without the setting, the log is missing.
    let output = command(&folder.join("data")).output().expect("the program runs");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("the log of the data directory is missing"), "{text}");
    std::fs::remove_dir_all(&folder).expect("the folder exists");
}
