//! The log tables `mysql.general_log` and `mysql.slow_log`.

use super::*;

const GENERAL: &str =
    "SELECT CONCAT(command_type, ' ', CAST(argument AS CHAR)) FROM mysql.general_log ORDER BY event_time";
const SLOW: &str = "SELECT CAST(sql_text AS CHAR) FROM mysql.slow_log";

/// The entries that contain a text.
fn with<'a>(entries: &'a [String], text: &str) -> Vec<&'a str> {
    entries.iter().map(String::as_str).filter(|entry| entry.contains(text)).collect()
}

#[test]
fn log_tables_show_statements_without_passwords_and_truncate_empties_them() {
    let node = builder().start().expect("the node starts");
    let admin = log_in(&node, "root", "").expect("root may log in");
    make_tables(&admin);
    assert!(values(&admin, GENERAL).is_empty() && values(&admin, SLOW).is_empty());
    must(&admin, "SET GLOBAL log_output = 'TABLE,FILE', GLOBAL general_log = ON, GLOBAL slow_query_log = ON");
    assert_eq!(values(&admin, "SELECT @@log_output"), ["FILE,TABLE"]);
    let mut session = open(&node, Login::new("u", "p")).1.expect("the user may log in");
    assert_eq!(session.errno("SET long_query_time = 0"), 0);
    assert_eq!(session.errno("SELECT 'seen'"), 0);
    assert_eq!(session.errno("ALTER USER CURRENT_USER() IDENTIFIED WITH mysql_native_password BY 'topsecret'"), 0);
    // A ping.
    session.command(b"\x0e").expect("an answer");
    let general = values(&admin, GENERAL);
    assert_eq!(with(&general, "seen"), ["Query SELECT 'seen'"]);
    assert_eq!(with(&general, "Ping"), ["Ping "]);
    assert_eq!(with(&general, "Connect").len(), 1, "{general:?}");
    assert_eq!(with(&general, "mysql.general_log").len(), 1, "the statement finds itself: {general:?}");
    let slow = values(&admin, SLOW);
    assert_eq!(with(&slow, "seen"), ["SELECT 'seen'"]);
    assert_eq!((with(&slow, "secret").len(), with(&slow, "<secret>").len()), (1, 1), "{slow:?}");
    assert_eq!((with(&general, "topsecret"), with(&slow, "topsecret")), (vec![], vec![]));
    let of_row = "SELECT CONCAT_WS(' ', user_host LIKE 'u[u] @ %', query_time < '00:01:00.000000', lock_time, rows_sent, \
                  rows_examined, db = '', server_id, thread_id > 0, start_time > NOW() - INTERVAL 1 HOUR) \
                  FROM mysql.slow_log WHERE CAST(sql_text AS CHAR) LIKE '%seen%'";
    assert_eq!(values(&admin, of_row), ["1 1 00:00:00.000000 1 0 1 1 1 1"]);
    let types = |table: &str| {
        let text = "SELECT CONCAT(column_name, ' ', column_type) FROM information_schema.columns WHERE table_schema = 'mysql' \
                    AND table_name = ";
        values(&admin, &format!("{text} '{table}' ORDER BY ordinal_position"))
    };
    let columns = [
        "event_time timestamp(6)",
        "user_host mediumtext",
        "thread_id bigint unsigned",
        "server_id int unsigned",
        "command_type varchar(64)",
        "argument mediumblob",
    ];
    assert_eq!(types("general_log"), columns);
    assert_eq!(types("slow_log").len(), 12);
    must(&admin, "SET GLOBAL log_output = 'NONE'");
    must(&admin, "SELECT 'unseen'");
    must(&admin, "SET GLOBAL log_output = 'TABLE'");
    assert!(with(&values(&admin, GENERAL), "unseen").is_empty());
    must(&admin, "TRUNCATE TABLE mysql.general_log");
    must(&admin, "TRUNCATE mysql.slow_log");
    assert_eq!(values(&admin, SLOW), [""; 0]);
    assert!(with(&values(&admin, GENERAL), "seen").is_empty());
    for (value, errno) in [("''", 1231), ("'FILE,DISK'", 1231), ("8", 1231), ("0", 1231), ("1.5", 1232)] {
        assert_eq!(run(&admin, &format!("SET GLOBAL log_output = {value}")), Err(errno), "{value}");
    }
    must(&admin, "SET GLOBAL log_output = 6");
    assert_eq!(values(&admin, "SELECT @@GLOBAL.log_output"), ["FILE,TABLE"]);
    for statement in ["FLUSH LOGS", "FLUSH SLOW LOGS", "FLUSH GENERAL LOGS", "FLUSH LOCAL ERROR LOGS"] {
        must(&admin, statement);
    }
}

#[test]
fn log_tables_need_rights_of_their_own() {
    let node = builder().start().expect("the node starts");
    let admin = log_in(&node, "root", "").expect("root may log in");
    make_tables(&admin);
    must(&admin, "GRANT ALL ON d.* TO u");
    let session = log_in(&node, "u", "p").expect("the user may log in");
    for table in ["general_log", "slow_log"] {
        let (read, truncate) = (format!("SELECT * FROM mysql.{table}"), format!("TRUNCATE mysql.{table}"));
        assert_eq!([run(&session, &read), run(&session, &truncate)], [Err(1142); 2]);
        must(&admin, &format!("GRANT SELECT ON mysql.{table} TO u"));
        assert_eq!([run(&session, &read), run(&session, &truncate)], [Ok(()), Err(1142)]);
        must(&admin, &format!("GRANT DROP ON mysql.{table} TO u"));
        assert_eq!(run(&session, &truncate), Ok(()));
    }
    assert_eq!(run(&session, "SET GLOBAL general_log = ON"), Err(1227));
    assert_eq!(run(&session, "FLUSH SLOW LOGS"), Err(1227));
    for statement in
        ["DELETE FROM mysql.general_log", "INSERT INTO mysql.general_log VALUES ()", "DROP TABLE mysql.slow_log"]
    {
        assert!(run(&admin, statement).is_err(), "{statement}");
    }
    assert_eq!(run(&admin, "GRANT SELECT ON mysql.nothing TO u"), Err(1146));
    must(&admin, "SET TRANSACTION READ ONLY");
    assert_eq!(run(&admin, "TRUNCATE mysql.slow_log"), Err(1792));
}

#[test]
fn performance_schema_shows_variables_and_figures_to_everybody() {
    let node = builder().start().expect("the node starts");
    let admin = log_in(&node, "root", "").expect("root may log in");
    make_tables(&admin);
    let session = log_in(&node, "u", "p").expect("the user may log in");
    for table in ["session_status", "global_status"] {
        let text = format!("SELECT variable_value FROM performance_schema.{table} WHERE variable_name = 'Ssl_version'");
        assert_eq!(values(&session, &text), [""]);
    }
    must(&session, "SET wait_timeout = 99");
    let of = |table: &str, name: &str| {
        values(
            &session,
            &format!("SELECT variable_value FROM performance_schema.{table} WHERE variable_name = '{name}'"),
        )
    };
    assert_eq!(
        (of("session_variables", "wait_timeout"), of("global_variables", "wait_timeout")),
        (vec!["99".into()], vec!["28800".into()])
    );
    let source = |name: &str| {
        let columns = "CONCAT_WS(' ', variable_source, min_value, max_value)";
        values(
            &session,
            &format!("SELECT {columns} FROM performance_schema.variables_info WHERE variable_name = '{name}'"),
        )
    };
    assert_eq!(source("net_read_timeout"), ["COMPILED 1 31536000"]);
    must(&admin, "SET GLOBAL net_read_timeout = 31");
    assert_eq!(source("net_read_timeout"), ["DYNAMIC 1 31536000"]);
    assert_eq!(source("max_connections")[0].split(' ').next(), Some("EXPLICIT"));
    assert_eq!(values(&session, "SELECT DISTINCT user FROM performance_schema.processlist"), ["u"]);
    must(&session, "USE performance_schema");
    assert_eq!(values(&session, "SHOW TABLES LIKE '%status'"), ["global_status", "session_status"]);
}
