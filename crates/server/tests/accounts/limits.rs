//! Limits of the resources of accounts.

use super::*;

fn make_user(admin: &Connection, limits: &str) {
    must(admin, "DROP USER IF EXISTS u");
    must(admin, &format!("CREATE USER u IDENTIFIED WITH mysql_native_password BY 'p' WITH {limits}"));
    must(admin, "GRANT ALL ON d.* TO u");
}

fn message(session: &Connection, statement: &str) -> (u16, String, String) {
    let error = block_on(session.query(statement, &[])).expect_err(statement);
    (error.errno(), error.sqlstate().to_owned(), error.message().to_owned())
}

fn exceeded(resource: &str, value: u32) -> (u16, String, String) {
    let text = format!("User 'u' has exceeded the '{resource}' resource (current value: {value})");
    (1226, "42000".into(), text)
}

#[test]
fn statements_of_all_sessions_of_an_account_are_counted() {
    let node = builder().start().expect("the node starts");
    let admin = log_in(&node, "root", "").expect("root may log in");
    make_tables(&admin);
    make_user(&admin, "MAX_QUERIES_PER_HOUR 4");
    let session = log_in(&node, "u", "p").expect("the user may log in");
    let mut other = open(&node, Login::new("u", "p")).1.expect("the user may log in");
    must(&session, "SELECT a FROM d.t WHERE a = 1");
    assert_eq!(other.errno("SELECT a FROM d.t WHERE a = 1"), 0);
    must(&session, "SET @x = 1");
    must(&session, "BEGIN");
    assert_eq!(message(&session, "SELECT a FROM d.t WHERE a = 1"), exceeded("max_questions", 4));
    let fault = other.query("SELECT 1").expect_err("both are counted");
    assert_eq!((fault.errno, fault.sqlstate.as_str()), (1226, "42000"));
    must(&admin, "SELECT 1");
    must(&admin, "FLUSH USER_RESOURCES");
    assert_eq!([run(&session, "ROLLBACK"), run(&session, "SELECT 1")], [Ok(()); 2]);
    assert_eq!([other.errno("SELECT 1"), other.errno("SELECT 1"), other.errno("SELECT 1")], [0, 0, 1226]);
    // A new limit holds for sessions that are open, and the count begins again.
    must(&admin, "ALTER USER u WITH MAX_QUERIES_PER_HOUR 1");
    assert_eq!([run(&session, "SELECT 1"), run(&session, "SELECT 1")], [Ok(()), Err(1226)]);
    must(&admin, "ALTER USER u WITH MAX_QUERIES_PER_HOUR 0");
    for _ in 0..10 {
        must(&session, "SELECT 1");
    }
    let prepared = block_on(session.prepare("SELECT a FROM d.t WHERE a = ?")).expect("a statement");
    must(&admin, "ALTER USER u WITH MAX_QUERIES_PER_HOUR 2");
    let execute = || block_on(prepared.query(&[&1])).map(|_| ()).map_err(|error| error.errno());
    assert_eq!([execute(), execute(), execute()], [Ok(()), Ok(()), Err(1226)]);
}

#[test]
fn a_statement_counts_once_however_often_it_starts_again_and_a_wrong_one_counts() {
    let node = builder().start().expect("the node starts");
    let admin = log_in(&node, "root", "").expect("root may log in");
    make_tables(&admin);
    make_user(&admin, "MAX_QUERIES_PER_HOUR 9 MAX_UPDATES_PER_HOUR 2");
    let mut session = open(&node, Login::new("u", "p")).1.expect("the user may log in");
    let preparing = log_in(&node, "u", "p").expect("the user may log in");
    for (statement, errno) in [
        // These start again when a block has answered.
        ("DO GET_LOCK('x', 0)", 0),
        ("SELECT GET_LOCK('y', 0)", 0),
        ("SHOW TABLE STATUS FROM d", 0),
        ("SELECT SUM(table_rows) FROM information_schema.tables WHERE table_schema = 'd'", 0),
        ("SET @x = RELEASE_LOCK('x')", 0),
        ("INSERT INTO d.s SELECT a FROM d.t", 0),
        ("SELECT nothing FROM d.t", 1054),
        ("UPDATE d.nothing SET a = 1", 1146),
        // It is no statement, and does not count.
        ("SELEC 1", 1064),
    ] {
        assert_eq!(session.errno(statement), errno, "{statement}");
    }
    for _ in 0..20 {
        block_on(preparing.prepare("SELECT a FROM d.t WHERE a = ?")).expect("preparing does not count");
    }
    assert_eq!(session.errno("SELECT 1"), 0, "eight statements before");
    for statement in ["SELECT 1", "SELECT nothing FROM d.t", "DO 1"] {
        assert_eq!(session.errno(statement), 1226, "{statement}");
    }
    must(&admin, "ALTER USER u WITH MAX_QUERIES_PER_HOUR 0");
    for (statement, errno) in
        [("DELETE FROM d.s", 0), ("UPDATE d.nothing SET a = 1", 1146), ("DELETE FROM d.s", 1226), ("SELECT 1", 0)]
    {
        assert_eq!(session.errno(statement), errno, "{statement}");
    }
}

#[test]
fn changes_are_counted_apart() {
    let node = builder().start().expect("the node starts");
    let admin = log_in(&node, "root", "").expect("root may log in");
    make_tables(&admin);
    make_user(&admin, "MAX_UPDATES_PER_HOUR 2");
    let session = log_in(&node, "u", "p").expect("the user may log in");
    for statement in [
        "SET @x = 1",
        "BEGIN",
        "SELECT a FROM d.t",
        "COMMIT",
        "SHOW TABLES FROM d",
        "USE d",
        "LOCK TABLES d.t READ",
        "UNLOCK TABLES",
        "PREPARE x FROM 'SELECT 1'",
        "DEALLOCATE PREPARE x",
        "DO 1",
        "SAVEPOINT s",
        "SET ROLE NONE",
        "INSERT INTO d.t VALUES (2, 2)",
        "CREATE TABLE d.x (a INT)",
    ] {
        must(&session, statement);
    }
    for statement in [
        "INSERT INTO d.t VALUES (3, 3)",
        "UPDATE d.t SET b = 1 WHERE a = 1",
        "DELETE FROM d.t WHERE a = 1",
        "REPLACE INTO d.t VALUES (1, 1)",
        "UPDATE d.t JOIN d.s ON s.a = t.a SET t.b = 3",
        "ALTER TABLE d.t COMMENT 'x'",
        "DROP TABLE d.t",
        "TRUNCATE TABLE d.t",
        "SET PASSWORD = 'q'",
    ] {
        assert_eq!(message(&session, statement), exceeded("max_updates", 2), "{statement}");
    }
    must(&session, "SELECT a FROM d.t");
    let limits = "SELECT CONCAT(max_questions, ' ', max_updates, ' ', max_connections, ' ', max_user_connections) FROM \
                  mysql.user WHERE user = 'u'";
    assert_eq!(values(&admin, limits), ["0 2 0 0"]);
}

#[test]
fn logins_of_an_hour_and_open_sessions_are_limited() {
    let node = builder().start().expect("the node starts");
    let admin = log_in(&node, "root", "").expect("root may log in");
    make_tables(&admin);
    make_user(&admin, "MAX_CONNECTIONS_PER_HOUR 2");
    let refusal = || {
        let error = log_in(&node, "u", "p").expect_err("a limit");
        (error.errno(), error.sqlstate().to_owned(), error.message().to_owned())
    };
    drop(log_in(&node, "u", "p").expect("the first one"));
    assert_eq!(log_in(&node, "u", "x").err().map(|error| error.errno()), Some(1045), "which counts for nothing");
    drop(log_in(&node, "u", "p").expect("the second one"));
    assert_eq!(refusal(), exceeded("max_connections_per_hour", 2));
    assert_eq!(open(&node, Login::new("u", "p")).1.err().map(|fault| fault.errno), Some(1226));
    must(&admin, "FLUSH USER_RESOURCES");
    assert!(log_in(&node, "u", "p").is_ok());
    make_user(&admin, "MAX_USER_CONNECTIONS 2");
    let first = log_in(&node, "u", "p").expect("the first one");
    let mut second = open(&node, Login::new("u", "p")).1.expect("the second one");
    assert_eq!(refusal(), exceeded("max_user_connections", 2));
    must(&first, "SELECT 1");
    assert_eq!(second.errno("SELECT 1"), 0);
    drop(first);
    // The server learns about the end of a session in its own time.
    let is_free = || {
        std::thread::yield_now();
        log_in(&node, "u", "p").is_ok()
    };
    assert!((0..20_000).any(|_| is_free()), "the place of an ended session stays taken");
    must(&admin, "ALTER USER u WITH MAX_USER_CONNECTIONS 0");
    must(&admin, "SET GLOBAL max_user_connections = 1");
    assert_eq!(refusal().0, 1203);
}
