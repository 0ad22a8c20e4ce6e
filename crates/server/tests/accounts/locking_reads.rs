//! FOR UPDATE OF and FOR SHARE OF: the rights and the locks of the tables that they name.

use super::*;

#[test]
fn only_named_tables_need_rights_to_lock() {
    let node = builder().start().expect("the node starts");
    let admin = log_in(&node, "root", "").expect("root may log in");
    make_tables(&admin);
    must(&admin, "GRANT SELECT ON d.* TO u");
    must(&admin, "GRANT UPDATE ON d.t TO u");
    let session = log_in(&node, "u", "p").expect("the user may log in");
    for (statement, outcome) in [
        ("SELECT t.a FROM d.t JOIN d.s ON s.a = t.a FOR UPDATE", Err(1142)),
        ("SELECT t.a FROM d.t JOIN d.s ON s.a = t.a FOR UPDATE OF t", Ok(())),
        ("SELECT t.a FROM d.t JOIN d.s ON s.a = t.a FOR UPDATE OF d.t", Ok(())),
        ("SELECT t.a FROM d.t JOIN d.s ON s.a = t.a FOR UPDATE OF s", Err(1142)),
        ("SELECT t.a FROM d.t JOIN d.s ON s.a = t.a FOR UPDATE OF t FOR SHARE OF s", Err(1142)),
        ("SELECT x.a FROM d.t AS x, d.t AS y FOR UPDATE OF x FOR SHARE OF y", Ok(())),
        ("SELECT a FROM d.t WHERE a IN (SELECT a FROM d.s FOR SHARE)", Err(1142)),
        ("SELECT a FROM d.t WHERE EXISTS (SELECT a FROM d.s FOR UPDATE)", Err(1142)),
        ("SELECT a FROM d.s WHERE a IN (SELECT a FROM d.t FOR UPDATE)", Ok(())),
        ("SELECT a FROM d.t FOR UPDATE OF x", Err(3568)),
        ("SELECT a FROM d.t AS x FOR UPDATE OF t", Err(3568)),
        ("SELECT t.a FROM d.t, d.s FOR UPDATE OF x", Err(3568)),
        ("SELECT t.a FROM d.t, d.s FOR UPDATE OF t, t", Err(3569)),
        ("SELECT t.a FROM d.t, d.s FOR UPDATE OF t FOR SHARE OF t", Err(3569)),
        ("SELECT t.a FROM d.t, d.s FOR UPDATE OF t FOR SHARE", Err(3569)),
        ("SELECT a FROM (SELECT t.a FROM d.t, d.s FOR UPDATE OF s) AS x", Err(1142)),
        ("SELECT a FROM (SELECT t.a FROM d.t, d.s FOR UPDATE OF x) AS y", Err(3568)),
    ] {
        assert_eq!(run(&session, statement), outcome, "{statement}");
    }
}

#[test]
fn names_of_locking_clauses_refer_to_tables_of_their_database() {
    let node = builder().start().expect("the node starts");
    let admin = log_in(&node, "root", "").expect("root may log in");
    make_tables(&admin);
    must(&admin, "CREATE DATABASE d2");
    must(&admin, "CREATE TABLE d2.t (a INT PRIMARY KEY)");
    let both = "SELECT d.t.a FROM d.t JOIN d2.t ON d.t.a = d2.t.a";
    for (statement, outcome) in [
        (format!("{both} FOR UPDATE OF d.t FOR SHARE OF d2.t"), Ok(())),
        (format!("{both} FOR UPDATE OF d.t, d2.t"), Ok(())),
        (format!("{both} FOR UPDATE OF t FOR SHARE OF d2.t"), Err(3569)),
        (format!("{both} FOR UPDATE OF d.t, d.t"), Err(3569)),
        (format!("{both} FOR UPDATE OF d3.t"), Err(3568)),
        ("SELECT a FROM d.v FOR UPDATE OF v".into(), Ok(())),
        ("SELECT a FROM d.v FOR UPDATE OF d.v".into(), Ok(())),
        ("SELECT a FROM d.v FOR UPDATE OF t".into(), Err(3568)),
        ("SELECT a FROM d.v FOR UPDATE OF v, v".into(), Err(3569)),
        ("SELECT table_name FROM information_schema.tables LIMIT 1 FOR SHARE OF tables".into(), Ok(())),
        ("SELECT table_name FROM information_schema.tables LIMIT 1 FOR SHARE OF x".into(), Err(3568)),
        ("SELECT table_name FROM information_schema.tables AS x FOR SHARE OF tables".into(), Err(3568)),
        ("SELECT table_name FROM information_schema.tables AS x LIMIT 1 FOR SHARE OF x, x".into(), Err(3569)),
        ("SELECT 1 FOR SHARE OF x".into(), Err(3568)),
    ] {
        assert_eq!(run(&admin, &statement), outcome, "{statement}");
    }
}

#[test]
fn only_named_tables_are_locked() {
    let node = builder().start().expect("the node starts");
    let admin = log_in(&node, "root", "").expect("root may log in");
    make_tables(&admin);
    must(&admin, "CREATE TABLE d.k (a INT PRIMARY KEY)");
    must(&admin, "INSERT INTO d.k VALUES (1), (2)");
    must(&admin, "INSERT INTO d.t VALUES (2, 2)");
    let other = log_in(&node, "root", "").expect("root may log in");
    let locked = || {
        let is_locked =
            |table| run(&other, &format!("SELECT a FROM d.{table} WHERE a = 1 FOR UPDATE NOWAIT")) == Err(3572);
        let is_shared = |table| run(&other, &format!("SELECT a FROM d.{table} WHERE a = 1 FOR SHARE NOWAIT")) == Ok(());
        ["t", "k"].map(|table| match (is_locked(table), is_shared(table)) {
            (false, _) => "free",
            (true, true) => "shared",
            (true, false) => "exclusive",
        })
    };
    for (clauses, expected) in [
        ("", ["free", "free"]),
        ("FOR UPDATE", ["exclusive", "exclusive"]),
        ("FOR UPDATE OF t", ["exclusive", "free"]),
        ("FOR SHARE OF k", ["free", "shared"]),
        ("FOR UPDATE OF k FOR SHARE OF t", ["shared", "exclusive"]),
        ("FOR SHARE OF t, k", ["shared", "shared"]),
    ] {
        for query in
            ["SELECT * FROM d.t JOIN d.k ON k.a = t.a WHERE t.a = 1", "SELECT * FROM d.t LEFT JOIN d.k USING (a)"]
        {
            must(&admin, "BEGIN");
            must(&admin, &format!("{query} {clauses}"));
            assert_eq!(locked(), expected, "{query} {clauses}");
            must(&admin, "ROLLBACK");
        }
    }
    must(&admin, "BEGIN");
    must(&admin, "SELECT a FROM d.t WHERE a IN (SELECT a FROM d.k FOR UPDATE)");
    assert_eq!(locked(), ["free", "exclusive"], "a locking clause in a subquery");
    must(&admin, "ROLLBACK");
}
