//! Accounts and rights over both protocols, in a node within the test process.

mod attacks;
mod catalog;
mod client;
mod installation;
mod limits;
mod locking_reads;
mod logins;
mod logs;
mod passwords;
mod process;
mod processes;
mod revokes;
mod roles;
mod views;

use std::io::{Read, Write};

use client::{Client, Fault, Login};
use junctor::client::{Connection, Error, Options, block_on};
use junctor::{Node, NodeBuilder};
use junctor_node::{Form, Protocol, RightOn};

/// The errors of statements without their rights.
const DENIED: [u16; 6] = [1044, 1045, 1142, 1143, 1227, 1095];

fn builder() -> NodeBuilder {
    Node::builder().total_memory_bytes(64 << 20).cpu_count_max(1).max_connections(64)
}

fn log_in(node: &Node, user: &str, password: &str) -> Result<Connection, Error> {
    block_on(node.connect(&Options::new(user).password(password)))
}

/// Logs in to a node within the process. Returns the packets of the login, too.
fn open(node: &Node, login: Login<'_>) -> (Vec<Vec<u8>>, Result<Client<impl Read + Write + use<>>, Fault>) {
    Client::log_in(node.stream(Protocol::MySql).expect("the node runs"), login)
}

fn run(session: &Connection, statement: &str) -> Result<(), u16> {
    block_on(session.query(statement, &[])).map(|_| ()).map_err(|error| error.errno())
}

fn must(session: &Connection, statement: &str) {
    if let Err(error) = block_on(session.query(statement, &[])) {
        panic!("{statement}: {} {}", error.errno(), error.message());
    }
}

fn values(session: &Connection, statement: &str) -> Vec<String> {
    let rows = block_on(session.query(statement, &[])).expect(statement);
    rows.iter().map(|row| row.get::<String>(0).expect(statement)).collect()
}

/// Makes the databases and tables that the examples of the forms use.
fn make_tables(admin: &Connection) {
    for statement in [
        "DROP DATABASE IF EXISTS d",
        "DROP DATABASE IF EXISTS d2",
        "CREATE DATABASE d",
        "CREATE TABLE d.t (a INT PRIMARY KEY, b INT DEFAULT 0, KEY k (b))",
        "CREATE TABLE d.s (a INT)",
        "CREATE VIEW d.v AS SELECT a FROM d.t",
        "INSERT INTO d.t VALUES (1, 1)",
        "DROP USER IF EXISTS u, n",
        "DROP ROLE IF EXISTS r",
        "CREATE ROLE r",
        "CREATE USER u IDENTIFIED WITH mysql_native_password BY 'p'",
    ] {
        must(admin, statement);
    }
}

/// The object of a right in the example of a form.
fn object(form: Form, on: RightOn) -> &'static str {
    match (form, on) {
        (Form::CreateDatabase, RightOn::Database) => "d2.*",
        (_, RightOn::Database) => "d.*",
        (_, RightOn::Server) => "*.*",
        (
            Form::CreateTable
            | Form::CreateTableLike
            | Form::CreateTableSelect
            | Form::CreateView
            | Form::ReplaceView
            | Form::DropView,
            RightOn::Table,
        ) => "d.n",
        (_, RightOn::NewTable) => "d.n",
        (Form::CreateTableLike | Form::CreateTemporaryTableLike | Form::CreateTableSelect, RightOn::Source) => "d.t",
        (_, RightOn::Source) => "d.s",
        (Form::ShowCreateView, RightOn::Table) => "d.v",
        _ => "d.t",
    }
}

#[test]
fn each_form_of_statement_needs_each_of_its_rights() {
    let node = builder().start().expect("the node starts");
    let admin = log_in(&node, "root", "").expect("root may log in");
    for form in Form::ALL.iter().copied() {
        let row = form.rights();
        for missing in (0..row.rights.len()).map(Some).chain([None]) {
            make_tables(&admin);
            if form == Form::References {
                must(&admin, "GRANT ALTER ON d.s TO u");
            }
            // Rights on a table need the table, even if the statement is to create it.
            must(&admin, "CREATE TABLE d.n (a INT)");
            for (_, right) in row.rights.iter().enumerate().filter(|(position, _)| Some(*position) != missing) {
                let privilege = right.any_of.first().map_or("CREATE VIEW", |privilege| privilege.name());
                let columns = if right.on == RightOn::Column { " (a, b)" } else { "" };
                must(&admin, &format!("GRANT {privilege}{columns} ON {} TO u", object(form, right.on)));
            }
            must(&admin, "DROP TABLE d.n");
            let session = log_in(&node, "u", "p").expect("the user may log in");
            let outcome = run(&session, row.example);
            match missing {
                None => {
                    assert!(!outcome.is_err_and(|errno| DENIED.contains(&errno)), "{form:?} {outcome:?}");
                }
                Some(missing) => {
                    let errno = outcome.expect_err(&format!("{form:?} without {:?}", row.rights[missing]));
                    assert!(row.error.contains(&errno.to_string()), "{form:?} without {missing}: {errno}");
                }
            }
        }
    }
}

#[test]
fn a_change_of_rights_holds_from_the_next_statement_on() {
    let node = builder().start().expect("the node starts");
    let admin = log_in(&node, "root", "").expect("root may log in");
    make_tables(&admin);
    must(&admin, "GRANT SELECT (a) ON d.t TO u");
    let session = log_in(&node, "u", "p").expect("the user may log in");
    must(&session, "PREPARE x FROM 'SELECT a FROM d.t WHERE a = 1'");
    let execute = || run(&session, "EXECUTE x");
    let reader = block_on(session.key_reader("d.t", &["a"])).expect("SELECT is granted");
    let read = || block_on(reader.read_many(&[1])).map(|_| ()).map_err(|error| error.errno());
    assert_eq!([run(&session, "SELECT a FROM d.t WHERE a = 1"), execute(), read()], [Ok(()), Ok(()), Ok(())]);
    assert_eq!(run(&session, "SELECT b FROM d.t WHERE a = 1"), Err(1143));
    assert_eq!(run(&session, "SELECT * FROM d.t WHERE a = 1"), Err(1142));
    assert_eq!(run(&session, "SELECT a FROM d.t WHERE a = (SELECT MAX(a) FROM d.t)"), Ok(()));
    for statement in [
        "SELECT * FROM d.t WHERE a = (SELECT MAX(a) FROM d.t)",
        "SELECT * FROM d.t JOIN (SELECT 1 AS x) AS y",
        "SELECT t.* FROM d.t JOIN (SELECT 1 AS x) AS y",
    ] {
        assert_eq!(run(&session, statement), Err(1142), "{statement}");
    }
    assert_eq!(run(&session, "SELECT x FROM (SELECT MAX(b) AS x FROM d.t) AS y"), Err(1143));
    must(&admin, "GRANT INSERT, UPDATE ON d.s TO u");
    let insert =
        |value| run(&session, &format!("INSERT INTO d.s (a) SELECT a FROM d.t ON DUPLICATE KEY UPDATE s.a = {value}"));
    assert_eq!([insert("t.a"), insert("t.b")], [Ok(()), Err(1143)]);
    must(&admin, "REVOKE SELECT (a) ON d.t FROM u");
    assert_eq!([run(&session, "SELECT a FROM d.t WHERE a = 1"), execute(), read()], [Err(1142), Err(1142), Err(1142)]);
    // A plan of a session with the right serves no session without it.
    must(&admin, "SELECT a FROM d.t WHERE a = 1");
    assert_eq!(run(&session, "SELECT a FROM d.t WHERE a = 1"), Err(1142));
    must(&admin, "GRANT SELECT ON d.* TO r");
    must(&admin, "GRANT r TO u");
    assert_eq!(run(&session, "SELECT a FROM d.t WHERE a = 1"), Err(1142));
    must(&session, "SET ROLE r");
    assert_eq!([run(&session, "SELECT a FROM d.t WHERE a = 1"), execute()], [Ok(()), Ok(())]);
    assert_eq!(values(&session, "SELECT CURRENT_ROLE()"), ["`r`@`%`"]);
    must(&admin, "DROP ROLE r");
    assert_eq!(run(&session, "SELECT a FROM d.t WHERE a = 1"), Err(1142));
    must(&admin, "DROP USER u");
    assert_eq!(run(&session, "SELECT a FROM d.t WHERE a = 1"), Err(1142));
    assert_eq!(log_in(&node, "u", "p").err().map(|error| error.errno()), Some(1045));
}

#[test]
fn lists_show_only_what_a_session_may_see() {
    let node = builder().start().expect("the node starts");
    let admin = log_in(&node, "root", "").expect("root may log in");
    make_tables(&admin);
    must(&admin, "CREATE DATABASE hidden");
    must(&admin, "CREATE TABLE hidden.x (a INT)");
    must(&admin, "GRANT SELECT ON d.t TO u");
    let session = log_in(&node, "u", "p").expect("the user may log in");
    assert_eq!(values(&session, "SHOW DATABASES"), ["d", "information_schema", "performance_schema"]);
    assert_eq!(values(&session, "SHOW TABLES FROM d"), ["t"]);
    let tables = "SELECT table_name FROM information_schema.tables WHERE table_schema IN ('d', 'hidden')";
    assert_eq!(values(&session, tables), ["t"]);
    assert_eq!(values(&session, "SELECT DISTINCT user FROM information_schema.processlist"), ["u"]);
    assert_eq!(run(&session, "SELECT user FROM mysql.user"), Err(1142));
    let digests = "performance_schema.events_statements_summary_by_digest";
    let uses = [format!("SELECT digest_text FROM {digests}"), format!("TRUNCATE {digests}"), format!("DESC {digests}")];
    assert_eq!(uses.map(|text| run(&session, &text)), [Err(1142); 3], "it shows texts of all sessions");
    assert_eq!(run(&session, "SELECT variable_name FROM performance_schema.variables_info"), Ok(()));
    must(&admin, &format!("GRANT SELECT ON {digests} TO u"));
    assert_eq!(run(&session, &format!("SELECT digest_text FROM {digests}")), Ok(()));
    must(&admin, &format!("REVOKE SELECT ON {digests} FROM u"));
    assert_eq!(run(&session, "USE hidden"), Err(1044));
    assert_eq!(run(&session, "SHOW GRANTS FOR root@localhost"), Err(1044));
    let grants = ["GRANT USAGE ON *.* TO `u`@`%`", "GRANT SELECT ON `d`.`t` TO `u`@`%`"];
    assert_eq!(values(&session, "SHOW GRANTS"), grants);
    assert_eq!(values(&admin, "SELECT user FROM mysql.user WHERE account_locked = 'N' ORDER BY 1"), ["root", "u"]);
}

#[test]
fn accounts_survive_a_restart_and_keep_their_rules() {
    let folder = std::env::temp_dir().join(format!("junctor-accounts-{}", std::process::id()));
    let path = folder.to_str().expect("a path").to_owned();
    let start = || builder().data_directory(&path).start().expect("the node starts");
    let node = start();
    let admin = log_in(&node, "root", "").expect("root may log in");
    make_tables(&admin);
    must(&admin, "ALTER USER root@localhost IDENTIFIED WITH mysql_native_password BY 'top'");
    must(&admin, "GRANT SELECT ON d.t TO u");
    must(&admin, "ALTER USER u PASSWORD HISTORY 2 FAILED_LOGIN_ATTEMPTS 2 PASSWORD_LOCK_TIME 3");
    must(&admin, "ALTER USER u IDENTIFIED BY 'q' RETAIN CURRENT PASSWORD");
    assert_eq!(run(&admin, "ALTER USER u IDENTIFIED BY 'p'"), Err(3638));
    drop(admin);
    drop(node);
    let node = start();
    assert_eq!(log_in(&node, "root", "").err().map(|error| error.errno()), Some(1045));
    let admin = log_in(&node, "root", "top").expect("root has a password");
    for password in ["p", "q"] {
        let session = log_in(&node, "u", password).expect("both passwords are valid");
        assert_eq!(run(&session, "SELECT a FROM d.t"), Ok(()));
        assert_eq!(run(&session, "DELETE FROM d.t"), Err(1142));
    }
    must(&admin, "ALTER USER u DISCARD OLD PASSWORD");
    for errno in [1045, 3955, 3955] {
        assert_eq!(log_in(&node, "u", "p").err().map(|error| error.errno()), Some(errno));
    }
    assert_eq!(log_in(&node, "u", "q").err().map(|error| error.errno()), Some(3955), "the account is locked");
    must(&admin, "FLUSH PRIVILEGES");
    assert!(log_in(&node, "u", "q").is_ok());
    must(&admin, "ALTER USER u PASSWORD EXPIRE");
    let session = log_in(&node, "u", "q").expect("it may change its password");
    assert_eq!(run(&session, "SELECT 1"), Err(1820));
    must(&session, "ALTER USER USER() IDENTIFIED BY 'new'");
    assert_eq!(run(&session, "SELECT 1"), Ok(()));
    must(&admin, "ALTER USER u ACCOUNT LOCK");
    assert_eq!(log_in(&node, "u", "new").err().map(|error| error.errno()), Some(3118));
    drop((session, admin));
    drop(node);
    std::fs::remove_dir_all(&folder).expect("the folder exists");
}
