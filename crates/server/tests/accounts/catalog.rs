//! Accounts with few rights read the catalog.

use super::*;

#[test]
fn the_catalog_shows_only_what_an_account_may_see() {
    let node = builder().start().expect("the node starts");
    let admin = log_in(&node, "root", "").expect("root may log in");
    for statement in [
        "CREATE DATABASE d",
        "CREATE TABLE d.seen (a INT PRIMARY KEY, b INT)",
        "CREATE TABLE d.hidden (a INT PRIMARY KEY)",
        "CREATE VIEW d.both_tables AS SELECT seen.a FROM d.seen JOIN d.hidden USING (a)",
        "CREATE USER u IDENTIFIED WITH mysql_native_password BY 'p'",
        "GRANT SELECT (a) ON d.seen TO u",
        "GRANT SELECT ON d.both_tables TO u",
    ] {
        must(&admin, statement);
    }
    let user = log_in(&node, "u", "p").expect("the user may log in");
    for (query, expected) in [
        (
            "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'd' ORDER BY 1",
            &["both_tables", "seen"][..],
        ),
        ("SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'd' AND TABLE_NAME = 'seen'", &["a"]),
        ("SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_NAME = 'hidden'", &[]),
        (
            "SELECT TABLE_NAME FROM information_schema.TABLES_EXTENSIONS WHERE TABLE_SCHEMA = 'd' ORDER BY 1",
            &["both_tables", "seen"],
        ),
        (
            "SELECT COLUMN_NAME FROM information_schema.COLUMNS_EXTENSIONS WHERE TABLE_SCHEMA = 'd' AND TABLE_NAME = 'seen'",
            &["a"],
        ),
        ("SELECT TABLE_NAME FROM information_schema.VIEW_TABLE_USAGE WHERE VIEW_SCHEMA = 'd'", &["seen"]),
        ("SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA IN ('sys', 'mysql')", &[]),
    ] {
        assert_eq!(values(&user, query), expected, "{query}");
    }
    let status = block_on(user.query("SHOW TABLE STATUS FROM d", &[])).expect("rows");
    assert_eq!(status.iter().count(), 2);
    for closed in [
        "performance_schema.threads",
        "performance_schema.data_locks",
        "performance_schema.metadata_locks",
        "performance_schema.events_statements_summary_by_digest",
        "mysql.user",
        "mysql.time_zone",
        "sys.session",
    ] {
        assert_eq!(run(&user, &format!("SELECT 1 FROM {closed}")), Err(1142), "{closed}");
    }
    must(&admin, "GRANT SELECT ON performance_schema.threads TO u");
    must(&admin, "GRANT SELECT ON sys.* TO u");
    // Other accounts' sessions need PROCESS.
    let own = values(&user, "SELECT CAST(CONNECTION_ID() AS CHAR)");
    for shown in [
        "SELECT CAST(PROCESSLIST_ID AS CHAR) FROM performance_schema.threads",
        "SELECT CAST(conn_id AS CHAR) FROM sys.session",
    ] {
        assert_eq!(values(&user, shown), own, "{shown}");
    }
}
