//! Restarts after a kill: rows, keys, counters, schema, refusals.

use super::server::{Server, command, folder, rows, run};

#[test]
fn acknowledged_changes_survive_a_kill() {
    let folder = folder("rows");
    let mut server = Server::start(&folder);
    let mut session = server.session();
    run(
        &mut session,
        &[
            "CREATE DATABASE shop",
            "CREATE TABLE shop.item (id INT AUTO_INCREMENT PRIMARY KEY, code INT UNIQUE, name VARCHAR(20), text TEXT, KEY (name))",
            "INSERT INTO shop.item (code, name, text) VALUES (10, 'cup', REPEAT('x', 20000)), (20, 'pot', NULL), (30, 'pan', 'p')",
            "UPDATE shop.item SET name = 'mug' WHERE code = 10",
            "DELETE FROM shop.item WHERE code = 20",
            "START TRANSACTION",
            "INSERT INTO shop.item (code, name) VALUES (40, 'jar')",
            "INSERT INTO shop.item (code, name) VALUES (50, 'lid')",
            "COMMIT",
            "START TRANSACTION",
            "UPDATE shop.item SET name = 'lost'",
        ],
    );
    for round in 0..3 {
        server.kill();
        server = Server::start(&folder);
        session = server.session();
        let statement = "SELECT id, code, name, LENGTH(text) FROM shop.item WHERE code < 60 ORDER BY id";
        let expected = [
            ["1", "10", "mug", "20000"],
            ["3", "30", "pan", "1"],
            ["4", "40", "jar", "NULL"],
            ["5", "50", "lid", "NULL"],
        ];
        assert_eq!(rows(&mut session, statement), expected);
        assert_eq!(rows(&mut session, "SELECT id FROM shop.item WHERE code = 40"), [["4"]], "by unique key");
        assert_eq!(rows(&mut session, "SELECT code FROM shop.item WHERE name = 'mug'"), [["10"]], "by index");
        let duplicate = session.query("INSERT INTO shop.item (code) VALUES (50)").expect_err("the code is taken");
        assert_eq!(duplicate.errno(), 1062);
        let before: u64 = rows(&mut session, "SELECT MAX(id) FROM shop.item")[0][0].parse().unwrap();
        run(&mut session, &[&format!("INSERT INTO shop.item (code) VALUES ({})", 100 + round)]);
        let after: u64 = rows(&mut session, "SELECT LAST_INSERT_ID()")[0][0].parse().unwrap();
        assert!(after > before, "AUTO_INCREMENT went from {before} to {after}");
    }
    server.kill();
    std::fs::remove_dir_all(&folder).expect("the folder exists");
}

#[test]
fn expired_rows_do_not_return_after_a_kill() {
    let folder = folder("expired");
    let mut server = Server::start(&folder);
    let mut session = server.session();
    let table = "CREATE TABLE d.t (id INT PRIMARY KEY, u INT UNIQUE, at DATETIME) COMMENT 'NDB_TABLE=TTL=60@at'";
    run(&mut session, &["SET PERSIST ttl_purge_interval = 0", "CREATE DATABASE d", table]);
    run(
        &mut session,
        &[
            "INSERT INTO d.t VALUES (1, 1, '2001-01-01'), (2, 2, '2037-01-01'), (3, 3, '2001-01-01'), (4, 4, NULL)",
            "INSERT INTO d.t VALUES (5, 1, '2037-01-01')",
        ],
    );
    let living = [["2"], ["4"], ["5"]];
    for round in 0..3 {
        server.kill();
        server = Server::start(&folder);
        session = server.session();
        assert_eq!(rows(&mut session, "SELECT id FROM d.t ORDER BY id"), living, "round {round}");
        assert_eq!(rows(&mut session, "SELECT id FROM d.t WHERE u = 1"), [["5"]]);
    }
    // The purge deletes the last expired row, once it is on again.
    run(&mut session, &["SET PERSIST ttl_purge_interval = 1"]);
    let purged = "SELECT VARIABLE_VALUE FROM performance_schema.global_status WHERE VARIABLE_NAME = 'Ttl_rows_purged'";
    while rows(&mut session, purged) != [["1"]] {
        std::thread::yield_now();
    }
    run(&mut session, &["ALTER TABLE d.t COMMENT 'NDB_TABLE=TTL=OFF'"]);
    server.kill();
    server = Server::start(&folder);
    session = server.session();
    assert_eq!(rows(&mut session, "SELECT id FROM d.t ORDER BY id"), living);
    assert!(session.query("INSERT INTO d.t VALUES (9, 3, NULL)").is_ok(), "its unique entry is gone, too");
    server.kill();
    std::fs::remove_dir_all(&folder).expect("the folder exists");
}

#[test]
fn after_a_clean_stop_numbers_continue_without_a_gap() {
    let folder = folder("numbers");
    let server = Server::start(&folder);
    let mut session = server.session();
    let insert = "INSERT INTO d.one (n) VALUES (1)";
    let table = "(id INT AUTO_INCREMENT PRIMARY KEY, n INT)";
    run(&mut session, &["CREATE DATABASE d"]);
    for name in ["one", "many", "unused", "dropped"] {
        run(&mut session, &[&format!("CREATE TABLE d.{name} {table}")]);
    }
    for _ in 0..10 {
        run(&mut session, &[insert]);
    }
    run(
        &mut session,
        &["DELETE FROM d.one WHERE id = 10", "INSERT INTO d.dropped (n) VALUES (1)", "DROP TABLE d.dropped"],
    );
    // Every thread holds a range of numbers for some of these sessions.
    let mut sessions: Vec<_> = (0..6).map(|_| server.session()).collect();
    for session in &mut sessions {
        run(session, &["INSERT INTO d.many (n) VALUES (1), (2)"]);
    }
    let number = |session: &mut _, statement: &str| rows(session, statement)[0][0].parse::<u64>().expect("a number");
    let last = number(&mut session, "SELECT MAX(id) FROM d.many");
    let ended = server.stop();
    assert!(ended.status.success(), "{ended:?}");

    let server = Server::start(&folder);
    let mut session = server.session();
    for (table, expected) in [("one", 11), ("many", last + 1), ("unused", 1)] {
        run(&mut session, &[&format!("INSERT INTO d.{table} (n) VALUES (1)")]);
        assert_eq!(number(&mut session, "SELECT LAST_INSERT_ID()"), expected, "{table}");
    }
    // A crash may leave a gap, but no number returns.
    server.kill();
    let server = Server::start(&folder);
    let mut session = server.session();
    run(&mut session, &[insert]);
    let after_crash = number(&mut session, "SELECT LAST_INSERT_ID()");
    assert!(after_crash > 11, "{after_crash}");
    let ended = server.stop();
    assert!(ended.status.success(), "{ended:?}");
    let server = Server::start(&folder);
    let mut session = server.session();
    run(&mut session, &[insert]);
    assert_eq!(number(&mut session, "SELECT LAST_INSERT_ID()"), after_crash + 1);
    server.kill();
    std::fs::remove_dir_all(&folder).expect("the folder exists");
}

#[test]
fn long_transactions_survive_a_kill_whole_or_not_at_all() {
    let folder = folder("long");
    let mut server = Server::start(&folder);
    let mut session = server.session();
    let values: Vec<String> = (1..=1000).map(|id| format!("({id}, {id}, 0)")).collect();
    run(
        &mut session,
        &[
            "CREATE DATABASE shop",
            "CREATE TABLE shop.item (id INT PRIMARY KEY, code INT UNIQUE, n INT, KEY (n))",
            &format!("INSERT INTO shop.item VALUES {}", values.join(",")),
            "INSERT INTO shop.item SELECT id + 1000, code + 1000, 0 FROM shop.item",
            "START TRANSACTION",
            "UPDATE shop.item SET n = 1",
            "UPDATE shop.item SET n = n + 1, code = -code WHERE id <= 1500",
            "DELETE FROM shop.item WHERE id > 1900",
            "COMMIT",
            // Written over rows that may not have their stamps yet.
            "UPDATE shop.item SET n = 7 WHERE id IN (1, 700, 1899)",
            "START TRANSACTION",
            "DELETE FROM shop.item",
            "ROLLBACK",
            "START TRANSACTION",
            "UPDATE shop.item SET n = 100",
        ],
    );
    for _ in 0..2 {
        server.kill();
        server = Server::start(&folder);
        session = server.session();
        for (n, count) in [(0, "0"), (1, "399"), (2, "1498"), (7, "3"), (100, "0")] {
            let statement = format!("SELECT COUNT(*) FROM shop.item WHERE n = {n}");
            assert_eq!(rows(&mut session, &statement), [[count]], "n = {n}");
        }
        assert_eq!(
            rows(&mut session, "SELECT COUNT(*), SUM(code) FROM shop.item WHERE code < 0"),
            [["1500", "-1125750"]]
        );
        assert_eq!(rows(&mut session, "SELECT id FROM shop.item WHERE code = -700"), [["700"]]);
        assert_eq!(rows(&mut session, "SELECT COUNT(*) FROM shop.item WHERE id > 1900"), [["0"]]);
    }
    server.kill();
    std::fs::remove_dir_all(&folder).expect("the folder exists");
}

#[test]
fn schema_changes_survive_a_kill() {
    let folder = folder("schema");
    let mut server = Server::start(&folder);
    run(
        &mut server.session(),
        &[
            "CREATE DATABASE shop",
            "CREATE TABLE shop.a (id INT PRIMARY KEY, n INT)",
            "CREATE TABLE shop.b (id INT PRIMARY KEY, a INT, FOREIGN KEY (a) REFERENCES shop.a (id))",
            "CREATE TABLE shop.gone (id INT PRIMARY KEY)",
            "CREATE TABLE shop.empty (id INT PRIMARY KEY)",
            "INSERT INTO shop.a VALUES (1, 10), (2, 20)",
            "INSERT INTO shop.b VALUES (7, 1)",
            "INSERT INTO shop.gone VALUES (1)",
            "INSERT INTO shop.empty VALUES (1), (2)",
            "DROP TABLE shop.gone",
            "TRUNCATE TABLE shop.empty",
            "CREATE INDEX by_n ON shop.a (n)",
            "CREATE INDEX by_sum ON shop.a ((n + id))",
            "CREATE DATABASE other",
            "DROP DATABASE other",
        ],
    );
    server.kill();
    server = Server::start(&folder);
    let mut session = server.session();
    assert_eq!(rows(&mut session, "SHOW TABLES FROM shop"), [["a"], ["b"], ["empty"]]);
    assert_eq!(rows(&mut session, "SELECT COUNT(*) FROM shop.empty"), [["0"]]);
    assert_eq!(rows(&mut session, "SELECT id FROM shop.a WHERE n = 20"), [["2"]]);
    assert_eq!(rows(&mut session, "SELECT id FROM shop.a WHERE n + id = 22"), [["2"]]);
    assert!(rows(&mut session, "SHOW CREATE TABLE shop.a")[0][1].contains("`by_n`"));
    let refused = session.query("INSERT INTO shop.b VALUES (8, 9)").expect_err("there is no parent");
    assert_eq!(refused.errno(), 1452);
    assert!(!rows(&mut session, "SHOW DATABASES").contains(&vec!["other".to_owned()]));
    run(&mut session, &["CREATE TABLE shop.gone (id INT PRIMARY KEY)", "INSERT INTO shop.gone VALUES (2)"]);
    assert_eq!(rows(&mut session, "SELECT id FROM shop.gone"), [["2"]]);
    server.kill();
    std::fs::remove_dir_all(&folder).expect("the folder exists");
}

#[test]
fn tables_of_queries_survive_a_kill_and_temporary_tables_do_not() {
    let folder = folder("own_tables");
    let mut server = Server::start(&folder);
    let mut session = server.session();
    run(
        &mut session,
        &[
            "CREATE DATABASE shop",
            "CREATE TABLE shop.a (id INT PRIMARY KEY, n INT)",
            "INSERT INTO shop.a VALUES (1, 10), (2, 20)",
            "CREATE TEMPORARY TABLE shop.a AS SELECT id, n + 1 AS n FROM shop.a",
            "INSERT INTO shop.a VALUES (3, 30)",
            "BEGIN",
            "INSERT INTO shop.a VALUES (4, 40)",
            "CREATE TEMPORARY TABLE shop.t (id INT AUTO_INCREMENT PRIMARY KEY)",
            "INSERT INTO shop.t VALUES (), ()",
            "COMMIT",
            "CREATE TABLE shop.copy (PRIMARY KEY (id)) SELECT * FROM shop.a",
        ],
    );
    assert_eq!(rows(&mut session, "SELECT SUM(n) FROM shop.copy"), [["102"]]);
    server.kill();
    server = Server::start(&folder);
    let mut session = server.session();
    assert_eq!(rows(&mut session, "SHOW TABLES FROM shop"), [["a"], ["copy"]]);
    assert_eq!(rows(&mut session, "SELECT SUM(n) FROM shop.copy"), [["102"]]);
    assert_eq!(rows(&mut session, "SELECT SUM(n) FROM shop.a"), [["30"]]);
    // The ids of the temporary tables are used again.
    run(&mut session, &["CREATE TABLE shop.b (id INT AUTO_INCREMENT PRIMARY KEY)", "INSERT INTO shop.b VALUES (), ()"]);
    server.kill();
    server = Server::start(&folder);
    assert_eq!(rows(&mut server.session(), "SELECT id FROM shop.b"), [["1"], ["2"]]);
    server.kill();
    std::fs::remove_dir_all(&folder).expect("the folder exists");
}

#[test]
fn a_directory_belongs_to_one_process() {
    let folder = folder("lock");
    let server = Server::start(&folder);
    let second = command(&folder).output().expect("the program runs");
    assert!(!second.status.success());
    let errors = String::from_utf8_lossy(&second.stderr);
    assert!(errors.contains("is used by another process"), "{errors}");
    server.kill();
    std::fs::remove_dir_all(&folder).expect("the folder exists");
}

#[test]
fn a_damaged_log_is_refused_with_a_message() {
    let folder = folder("damage");
    let server = Server::start(&folder);
    let mut session = server.session();
    run(&mut session, &["CREATE DATABASE shop", "CREATE TABLE shop.a (id INT PRIMARY KEY)"]);
    for id in 0..20 {
        run(&mut session, &[&format!("INSERT INTO shop.a VALUES ({id})")]);
    }
    server.kill();
    let path = folder.join("log/0000000000.log");
    let mut bytes = std::fs::read(&path).expect("the log exists");
    bytes[3 * 4096 + 300] ^= 1;
    std::fs::write(&path, bytes).expect("the log can be written");
    let refused = command(&folder).output().expect("the program runs");
    assert!(!refused.status.success());
    let errors = String::from_utf8_lossy(&refused.stderr);
    assert!(errors.contains("recovery failed: the log is damaged"), "{errors}");
    std::fs::remove_dir_all(&folder).expect("the folder exists");
}

#[test]
fn a_directory_whose_identity_was_never_finished_is_new() {
    let folder = folder("unfinished-identity");
    Server::start(&folder).kill();
    std::fs::remove_file(folder.join("identity.1")).expect("the first identity is in file 1");
    std::fs::write(folder.join("identity.new"), "torn").expect("a writable folder");
    let server = Server::start(&folder);
    assert_eq!(rows(&mut server.session(), "SELECT 1"), [["1"]]);
    server.kill();
    assert!(folder.join("identity.1").exists() && !folder.join("identity.new").exists());
    std::fs::remove_dir_all(&folder).expect("the folder exists");
}
