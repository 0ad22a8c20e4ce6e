//! The rights of definers and invokers of views.

use super::*;

/// Accounts `owner` and `user` with the password `p`, and the tables `d.t` and `d.s`.
fn make_accounts(admin: &Connection) {
    for statement in [
        "CREATE DATABASE d",
        "CREATE TABLE d.t (a INT PRIMARY KEY, b INT DEFAULT 0, secret INT DEFAULT 7)",
        "CREATE TABLE d.s (a INT)",
        "INSERT INTO d.t VALUES (1, 1, 1)",
        "CREATE USER owner, user IDENTIFIED WITH mysql_native_password BY 'p'",
        "ALTER USER owner IDENTIFIED WITH mysql_native_password BY 'p'",
        "GRANT ALL ON d.* TO owner",
    ] {
        must(admin, statement);
    }
}

#[test]
fn a_view_of_its_definer_gives_only_what_it_shows() {
    let node = builder().start().expect("the node starts");
    let admin = log_in(&node, "root", "").expect("root may log in");
    make_accounts(&admin);
    let owner = log_in(&node, "owner", "p").expect("the owner may log in");
    for statement in [
        "CREATE VIEW d.v AS SELECT a, b AS c FROM d.t",
        "CREATE ALGORITHM=TEMPTABLE VIEW d.counted AS SELECT b, COUNT(*) AS n FROM d.t GROUP BY b",
        "CREATE VIEW d.outer_view AS SELECT a FROM d.v",
        "CREATE SQL SECURITY INVOKER VIEW d.invoked AS SELECT a FROM d.t",
        "CREATE VIEW d.around AS SELECT a FROM d.invoked",
    ] {
        must(&owner, statement);
    }
    let user = log_in(&node, "user", "p").expect("the user may log in");
    assert_eq!(run(&user, "SELECT a FROM d.v"), Err(1142));
    for view in ["v", "counted", "outer_view", "invoked", "around"] {
        must(&admin, &format!("GRANT SELECT ON d.{view} TO user"));
    }
    for view in ["v", "counted", "outer_view", "around"] {
        assert_eq!(run(&user, &format!("SELECT * FROM d.{view}")), Ok(()), "{view}");
        assert_eq!(run(&user, &format!("SELECT x.* FROM d.{view} AS x JOIN d.v ON v.a = 1")), Ok(()), "{view}");
    }
    assert_eq!(run(&user, "SELECT * FROM d.invoked"), Err(1356));
    for statement in [
        "SELECT a FROM d.t",
        "SELECT v.a, t.secret FROM d.v JOIN d.t ON v.a = t.a",
        "SELECT a FROM d.v WHERE a IN (SELECT secret FROM d.t)",
    ] {
        assert_eq!(run(&user, statement), Err(1142), "{statement}");
    }
    // Rights on the table do not replace those on the view, nor those of the invoker those of the definer.
    must(&admin, "GRANT SELECT (a) ON d.t TO user");
    assert_eq!(run(&user, "SELECT a FROM d.invoked"), Ok(()));
    assert_eq!(run(&user, "SELECT v.c FROM d.v JOIN d.t ON v.a = t.a"), Ok(()));
    assert_eq!(run(&user, "SELECT n, x.b FROM d.counted AS x JOIN d.t ON t.a = x.b"), Ok(()));
    assert_eq!(run(&user, "SELECT t.b FROM d.v JOIN d.t ON v.a = t.a"), Err(1143));
    must(&admin, "REVOKE SELECT ON d.v FROM user");
    must(&admin, "GRANT SELECT (a) ON d.v TO user");
    assert_eq!([run(&user, "SELECT a FROM d.v"), run(&user, "SELECT c FROM d.v")], [Ok(()), Err(1143)]);
    assert_eq!([run(&user, "SELECT * FROM d.v"), run(&user, "SELECT a FROM d.v WHERE c = 1")], [Err(1142), Err(1143)]);
    assert_eq!(run(&user, "SELECT a FROM d.v ORDER BY c"), Err(1143));
}

#[test]
fn a_prepared_query_of_a_view_ends_with_the_rights_of_its_definer() {
    let node = builder().start().expect("the node starts");
    let admin = log_in(&node, "root", "").expect("root may log in");
    make_accounts(&admin);
    must(&admin, "CREATE ROLE reader");
    let owner = log_in(&node, "owner", "p").expect("the owner may log in");
    must(&owner, "CREATE VIEW d.v AS SELECT a FROM d.t WHERE a = 1");
    must(&admin, "GRANT SELECT ON d.v TO user");
    let user = log_in(&node, "user", "p").expect("the user may log in");
    must(&user, "PREPARE x FROM 'SELECT a FROM d.v'");
    let read = || [run(&user, "EXECUTE x"), run(&user, "SELECT a FROM d.v")];
    assert_eq!(read(), [Ok(()); 2]);
    must(&admin, "REVOKE ALL ON d.* FROM owner");
    assert_eq!(read(), [Err(1356); 2]);
    // The definer's default roles count, other roles do not.
    must(&admin, "GRANT SELECT ON d.* TO reader");
    must(&admin, "GRANT reader TO owner");
    assert_eq!(read(), [Err(1356); 2]);
    must(&admin, "SET DEFAULT ROLE reader TO owner");
    assert_eq!(read(), [Ok(()); 2]);
    must(&admin, "DROP USER owner");
    assert_eq!(read(), [Err(1449); 2]);
    assert_eq!(run(&admin, "SELECT a FROM d.v"), Err(1449));
    must(&admin, "CREATE OR REPLACE VIEW d.v AS SELECT a FROM d.t");
    assert_eq!(read(), [Ok(()); 2]);
}

#[test]
fn changes_through_a_view_need_rights_on_the_view_and_those_of_its_definer() {
    let node = builder().start().expect("the node starts");
    let admin = log_in(&node, "root", "").expect("root may log in");
    make_accounts(&admin);
    let owner = log_in(&node, "owner", "p").expect("the owner may log in");
    must(&owner, "CREATE VIEW d.inner_view AS SELECT a AS x, b AS y FROM d.t");
    must(&owner, "CREATE VIEW d.v AS SELECT x AS k, y AS w FROM d.inner_view");
    let changes = [
        ("INSERT", "INSERT INTO d.v (k, w) VALUES (2, 2)"),
        ("INSERT, UPDATE, SELECT", "INSERT INTO d.v (k) VALUES (2) ON DUPLICATE KEY UPDATE w = w + 1"),
        ("INSERT, DELETE", "REPLACE INTO d.v (k, w) VALUES (3, 3)"),
        ("UPDATE, SELECT", "UPDATE d.v SET w = 5 WHERE k = 1"),
        ("UPDATE, SELECT", "UPDATE d.v JOIN d.v AS z ON z.k = v.k SET v.w = 6"),
        ("DELETE, SELECT", "DELETE FROM d.v WHERE k = 3"),
    ];
    must(&admin, "GRANT SHOW VIEW ON d.v TO user");
    let user = log_in(&node, "user", "p").expect("the user may log in");
    for (privileges, statement) in changes {
        let privileges: Vec<&str> = privileges.split(", ").collect();
        for missing in &privileges {
            for privilege in privileges.iter().filter(|privilege| *privilege != missing) {
                must(&admin, &format!("GRANT {privilege} ON d.v TO user"));
            }
            let errno = run(&user, statement).expect_err(statement);
            assert!([1142, 1143].contains(&errno), "{statement} without {missing}: {errno}");
            must(&admin, "REVOKE ALL ON d.v FROM user");
        }
        must(&admin, &format!("GRANT {} ON d.v TO user", privileges.join(", ")));
        assert_eq!(run(&user, statement), Ok(()), "{statement}");
        must(&admin, "REVOKE ALL ON d.v FROM user");
    }
    // Columns count on the view, on the view beneath it, and on the table.
    must(&admin, "GRANT SELECT, INSERT (k), UPDATE (w) ON d.v TO user");
    assert_eq!(run(&user, "INSERT INTO d.v (k) VALUES (9)"), Ok(()));
    assert_eq!(run(&user, "INSERT INTO d.v (k, w) VALUES (10, 1)"), Err(1143));
    assert_eq!(run(&user, "INSERT INTO d.v (k) SELECT secret FROM d.t"), Err(1142));
    assert_eq!(run(&user, "INSERT INTO d.t (a) VALUES (11)"), Err(1142));
    assert_eq!([run(&user, "UPDATE d.v SET w = 1"), run(&user, "UPDATE d.v SET k = 1")], [Ok(()), Err(1143)]);
    must(&admin, "REVOKE ALL ON d.* FROM owner");
    must(&admin, "GRANT SELECT ON d.* TO owner");
    must(&admin, "GRANT UPDATE ON d.inner_view TO owner");
    must(&admin, "GRANT UPDATE (a) ON d.t TO owner");
    assert_eq!(run(&user, "UPDATE d.v SET w = 2"), Err(1356));
    assert_eq!(run(&user, "INSERT INTO d.v (k) VALUES (12)"), Err(1356));
    must(&admin, "GRANT UPDATE (b) ON d.t TO owner");
    assert_eq!(run(&user, "UPDATE d.v SET w = 2"), Ok(()));
}

#[test]
fn another_definer_and_the_text_of_a_view_need_rights() {
    let node = builder().start().expect("the node starts");
    let admin = log_in(&node, "root", "").expect("root may log in");
    make_accounts(&admin);
    must(&admin, "GRANT SELECT ON d.s TO user");
    must(&admin, "GRANT CREATE VIEW, DROP ON d.* TO user");
    must(&admin, "CREATE VIEW d.theirs AS SELECT a FROM d.t");
    must(&admin, "GRANT SELECT ON d.theirs TO user");
    let user = log_in(&node, "user", "p").expect("the user may log in");
    let create = "CREATE DEFINER = owner VIEW d.v AS SELECT a FROM d.s";
    assert_eq!(run(&user, create), Err(1227));
    assert_eq!(run(&user, "CREATE VIEW d.v AS SELECT a FROM d.t"), Err(1142));
    assert_eq!(run(&user, "ALTER VIEW d.theirs AS SELECT a FROM d.s"), Err(1227), "the view keeps its definer");
    assert_eq!(run(&user, "CREATE DEFINER = user VIEW d.own AS SELECT a FROM d.s"), Ok(()));
    assert_eq!(values(&admin, "SELECT definer FROM information_schema.views WHERE table_name = 'own'"), ["user@%"]);
    must(&admin, "GRANT SET_USER_ID ON *.* TO user");
    assert_eq!(run(&user, create), Ok(()));
    assert_eq!(
        run(&user, "ALTER DEFINER = 'root'@'localhost' VIEW d.v AS SELECT a FROM d.s"),
        Err(1227),
        "SYSTEM_USER"
    );
    assert_eq!(run(&user, "CREATE DEFINER = nobody VIEW d.orphan AS SELECT a FROM d.s"), Ok(()));
    assert_eq!(values(&user, "SHOW WARNINGS"), ["Note"]);
    assert_eq!(run(&user, "SELECT a FROM d.orphan"), Err(1142));
    assert_eq!(run(&admin, "SELECT a FROM d.orphan"), Err(1449));
    let text = "SELECT view_definition FROM information_schema.views WHERE table_name = 'theirs'";
    assert_eq!(values(&user, text), [""]);
    for statement in ["SHOW CREATE VIEW d.theirs", "SHOW CREATE TABLE d.theirs"] {
        assert_eq!(run(&user, statement), Err(1142), "{statement}");
    }
    let explain = || {
        ["", "FORMAT=TREE ", "FORMAT=JSON ", "ANALYZE "]
            .map(|form| run(&user, &format!("EXPLAIN {form}SELECT a FROM d.theirs")))
    };
    assert_eq!(explain(), [Err(1345); 4]);
    must(&admin, "GRANT SHOW VIEW ON d.theirs TO user");
    assert_eq!(explain(), [Err(1345); 4]);
    assert_ne!(values(&user, text), [""]);
    for statement in ["SHOW CREATE VIEW d.theirs", "SHOW CREATE TABLE d.theirs"] {
        assert_eq!(run(&user, statement), Ok(()), "{statement}");
    }
    must(&admin, "GRANT SELECT ON d.t TO user");
    assert_eq!(explain(), [Ok(()); 4]);
}
