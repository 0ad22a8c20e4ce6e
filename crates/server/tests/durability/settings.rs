//! SET PERSIST over kills and restarts.

use super::server::{Server, command, folder, rows, run};

const PERSISTED: &str = "SELECT * FROM performance_schema.persisted_variables ORDER BY variable_name";

#[test]
fn persisted_variables_survive_a_kill() {
    let folder = folder("settings");
    let server = Server::start(&folder);
    let mut session = server.session();
    run(
        &mut session,
        &[
            "SET PERSIST wait_timeout = 77",
            "SET PERSIST_ONLY sql_select_limit = 5, PERSIST commit_durability = memory, @a = 1",
            "SET PERSIST max_execution_time = 9",
            "RESET PERSIST max_execution_time",
            "SET GLOBAL sql_notes = OFF",
        ],
    );
    let shown = [["commit_durability", "memory"], ["sql_select_limit", "5"], ["wait_timeout", "77"]];
    assert_eq!(rows(&mut session, PERSISTED), shown);
    let values = "SELECT @@global.wait_timeout, @@sql_select_limit, @@global.innodb_flush_log_at_trx_commit, \
                  @@global.sql_notes, @@global.max_execution_time";
    assert_eq!(rows(&mut session, values), [["77", "18446744073709551615", "2", "0", "9"]]);
    server.kill();

    let server = Server::start(&folder);
    let mut session = server.session();
    assert_eq!(rows(&mut session, PERSISTED), shown);
    assert_eq!(rows(&mut session, values), [["77", "5", "2", "1", "0"]]);
    let missing = session.query("RESET PERSIST max_execution_time").expect_err("it was reset");
    assert_eq!(missing.errno(), 3615);
    run(&mut session, &["RESET PERSIST IF EXISTS max_execution_time"]);
    let warning = ["Warning", "3615", "Variable max_execution_time does not exist in persisted config file"];
    assert_eq!(rows(&mut session, "SHOW WARNINGS"), [warning]);
    run(&mut session, &["RESET PERSIST"]);
    assert!(rows(&mut session, PERSISTED).is_empty());
    assert_eq!(rows(&mut session, "SELECT @@global.wait_timeout"), [["77"]], "until the next start");
    server.kill();

    let server = Server::start(&folder);
    assert_eq!(rows(&mut server.session(), "SELECT @@global.wait_timeout"), [["28800"]]);
    server.kill();
    std::fs::remove_dir_all(&folder).expect("the folder exists");
}

#[test]
fn a_crash_around_the_write_loses_no_acknowledged_value() {
    for point in ["pair.settings.before", "pair.settings.after"] {
        let folder = folder(point);
        // The third write crashes.
        let mut crashing = command(&folder);
        crashing.env("JUNCTOR_CRASH_AT", format!("{point}:3"));
        let server = Server::spawn(crashing).expect("the first writes are later");
        let mut session = server.session();
        run(&mut session, &["SET PERSIST wait_timeout = 1", "SET PERSIST wait_timeout = 2"]);
        session.query("SET PERSIST wait_timeout = 3").expect_err("the server crashes");
        server.end();
        let server = Server::start(&folder);
        let expected = if point.ends_with("before") { "2" } else { "3" };
        assert_eq!(rows(&mut server.session(), "SELECT @@global.wait_timeout"), [[expected]], "{point}");
        server.kill();
        std::fs::remove_dir_all(&folder).expect("the folder exists");
    }
}

#[test]
fn damaged_settings_are_repaired_from_their_copy() {
    let folder = folder("settings-damaged");
    let server = Server::start(&folder);
    run(&mut server.session(), &["SET PERSIST wait_timeout = 5"]);
    server.kill();
    // The first generation is in file 1.
    let file = folder.join("settings.1");
    let mut content = std::fs::read(&file).expect("the file of generation 1");
    content[40] ^= 1;
    std::fs::write(&file, &content).expect("a writable file");
    let server = Server::start(&folder);
    assert_eq!(rows(&mut server.session(), "SELECT @@global.wait_timeout"), [["5"]]);
    server.kill();
    std::fs::remove_dir_all(&folder).expect("the folder exists");
}
