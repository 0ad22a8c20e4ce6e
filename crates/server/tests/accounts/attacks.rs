//! Ways round the checks of rights.

use super::*;

#[test]
fn a_temporary_table_hides_no_check_of_the_stored_table() {
    let node = builder().start().expect("the node starts");
    let admin = log_in(&node, "root", "").expect("root may log in");
    make_tables(&admin);
    must(&admin, "GRANT CREATE TEMPORARY TABLES, LOCK TABLES ON d.* TO u");
    must(&admin, "GRANT ALTER, DROP, CREATE, INSERT, CREATE VIEW, SELECT ON d.own TO u");
    let session = log_in(&node, "u", "p").expect("the user may log in");
    must(&session, "CREATE TEMPORARY TABLE d.t (a INT PRIMARY KEY)");
    must(&session, "CREATE TEMPORARY TABLE d.v (a INT)");
    must(&session, "CREATE TEMPORARY TABLE d.n (a INT)");
    must(&session, "SELECT * FROM d.t");
    for statement in [
        "RENAME TABLE d.t TO d.own",
        "ALTER TABLE d.t RENAME TO d.s",
        "ALTER TABLE d.s ADD COLUMN c INT",
        "RENAME TABLE d.own TO d.n",
        "CREATE TABLE d.n (a INT)",
        "CREATE TABLE d.n LIKE d.t",
        "CREATE TABLE d.n SELECT 1 AS a",
        "CREATE VIEW d.n AS SELECT 1 AS a",
        "CREATE OR REPLACE VIEW d.v AS SELECT 1 AS a",
        "DROP VIEW d.v",
        "CREATE TABLE d.own (a INT, FOREIGN KEY (a) REFERENCES d.t (a))",
        "CREATE TEMPORARY TABLE d.copy LIKE d.s",
        "SHOW CREATE VIEW d.v",
        "LOCK TABLES d.t WRITE",
    ] {
        assert_eq!(run(&session, statement), Err(1142), "{statement}");
    }
    assert_eq!(values(&admin, "SELECT CAST(b AS CHAR) FROM d.t"), ["1"]);
    // The temporary table itself needs no right.
    must(&session, "ALTER TABLE d.t ADD COLUMN c INT DEFAULT 7");
    must(&session, "CREATE UNIQUE INDEX i ON d.t (c)");
    assert_eq!(values(&admin, "SELECT CAST(b AS CHAR) FROM d.t"), ["1"]);
}

#[test]
fn locking_reads_need_a_right_to_lock_in_queries_of_every_shape() {
    let node = builder().start().expect("the node starts");
    let admin = log_in(&node, "root", "").expect("root may log in");
    make_tables(&admin);
    must(&admin, "GRANT SELECT ON d.* TO u");
    let session = log_in(&node, "u", "p").expect("the user may log in");
    let locking = [
        "SELECT a FROM d.t WHERE a = 1 FOR UPDATE",
        "SELECT t.a FROM d.t JOIN d.s ON s.a = t.a FOR UPDATE",
        "SELECT t.a FROM d.t JOIN d.s ON s.a = t.a FOR SHARE OF t",
        "SELECT a FROM d.v FOR UPDATE",
        "SELECT x.a FROM (SELECT a FROM d.t FOR UPDATE) AS x",
    ];
    for statement in locking {
        assert_eq!(run(&session, statement), Err(1142), "{statement}");
    }
    must(&admin, "GRANT LOCK TABLES ON d.* TO u");
    for statement in locking {
        assert_eq!(run(&session, statement), Ok(()), "{statement}");
    }
}

#[test]
fn columns_without_a_right_are_neither_listed_nor_read() {
    let node = builder().start().expect("the node starts");
    let admin = log_in(&node, "root", "").expect("root may log in");
    make_tables(&admin);
    must(&admin, "GRANT SELECT (a), INSERT (a), UPDATE (a) ON d.t TO u");
    must(&admin, "GRANT ALL ON d.s TO u");
    let session = log_in(&node, "u", "p").expect("the user may log in");
    let listed = "SELECT column_name FROM information_schema.columns WHERE table_schema = 'd' AND table_name = 't'";
    for statement in [listed, "SHOW COLUMNS FROM d.t", "DESCRIBE d.t", "SHOW FULL COLUMNS FROM d.t"] {
        assert_eq!(values(&session, statement), ["a"], "{statement}");
    }
    let privileges = "SELECT privileges FROM information_schema.columns WHERE table_schema = 'd' AND table_name = 't'";
    assert_eq!(values(&session, privileges), ["select,insert,update"]);
    for statement in [
        "SELECT a FROM d.t ORDER BY b",
        "SELECT a FROM d.t GROUP BY a HAVING MAX(b) > 0",
        "SELECT COUNT(*) FROM d.t WHERE b = 1",
        "SELECT x.a FROM d.t AS x JOIN d.s ON s.a = x.b",
        "SELECT SUM(b) OVER () FROM d.t",
        "SELECT a FROM d.s WHERE a IN (SELECT b FROM d.t)",
        "WITH w AS (SELECT b FROM d.t) SELECT * FROM w",
        "SELECT a FROM d.s UNION SELECT b FROM d.t",
        "UPDATE d.t SET a = b",
        "UPDATE d.t SET a = 2 ORDER BY b LIMIT 1",
        "UPDATE d.s JOIN d.t ON t.a = s.a SET s.a = t.b",
        "INSERT INTO d.t (a) VALUES (1) ON DUPLICATE KEY UPDATE a = b",
        "INSERT INTO d.t (a) VALUES (1) ON DUPLICATE KEY UPDATE b = 1",
        "INSERT INTO d.s SELECT b FROM d.t",
        "DELETE FROM d.s WHERE a = (SELECT MAX(b) FROM d.t)",
        "CREATE TABLE d.s2 SELECT b FROM d.t",
        "EXPLAIN SELECT b FROM d.t",
        "EXPLAIN UPDATE d.t SET b = 1",
        "SELECT b FROM d.t INTO @x",
        "INSERT INTO d.s (a) VALUES (1) RETURNING (SELECT b FROM d.t)",
    ] {
        assert!(run(&session, statement).is_err(), "{statement}");
    }
    for statement in ["SET @x = (SELECT b FROM d.t)", "DO (SELECT b FROM d.t)", "PREPARE p FROM 'SELECT b FROM d.t'"] {
        assert!(run(&session, statement).is_err(), "{statement}");
    }
}

#[test]
fn restricted_variables_and_the_names_of_system_databases_are_checked() {
    let node = builder().start().expect("the node starts");
    let admin = log_in(&node, "root", "").expect("root may log in");
    make_tables(&admin);
    let session = log_in(&node, "u", "p").expect("the user may log in");
    for statement in [
        "SET sql_log_bin = 0",
        "SET SESSION pseudo_thread_id = 1",
        "SET @@session.collation_database = utf8mb4_bin",
        "SET autocommit = 1, gtid_next = 'AUTOMATIC'",
        "SET GLOBAL max_connections = 10",
        "SET PERSIST max_connections = 10",
        "SET @@global.max_connections = 10",
        "SET GLOBAL TRANSACTION READ ONLY",
        "RESET PERSIST",
    ] {
        assert_eq!(run(&session, statement), Err(1227), "{statement}");
    }
    must(&session, "SET SESSION TRANSACTION READ WRITE");
    must(&admin, "GRANT SESSION_VARIABLES_ADMIN ON *.* TO u");
    must(&session, "SET sql_log_bin = 0");
    assert_eq!(run(&session, "SET GLOBAL max_connections = 10"), Err(1227));
    must(&admin, "SET GLOBAL partial_revokes = 1");
    must(&admin, "GRANT SELECT ON *.* TO u");
    must(&admin, "REVOKE SELECT ON mysql.* FROM u");
    for database in ["mysql", "MYSQL", "`Mysql`"] {
        assert_eq!(run(&session, &format!("SELECT user FROM {database}.user")), Err(1142), "{database}");
        assert!(run(&session, &format!("CHECKSUM TABLE {database}.user")).is_err(), "{database}");
    }
    assert_eq!(run(&session, "SELECT a FROM d.t"), Ok(()));
}
