//! The log on a device of its own.

use super::server::{Server, command, folder, rows, run};

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
