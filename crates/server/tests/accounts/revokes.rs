//! Partial revokes.

use super::*;

#[test]
fn a_partial_revoke_takes_a_global_privilege_away_in_one_database() {
    let node = builder().start().expect("the node starts");
    let admin = log_in(&node, "root", "").expect("root may log in");
    make_tables(&admin);
    must(&admin, "CREATE DATABASE d2");
    must(&admin, "CREATE TABLE d2.t (a INT)");
    must(&admin, "GRANT SELECT, INSERT ON *.* TO u");
    assert_eq!(run(&admin, "REVOKE SELECT ON d.* FROM u"), Err(1141), "partial_revokes is off");
    must(&admin, "SET GLOBAL partial_revokes = ON");
    must(&admin, "REVOKE SELECT ON d.* FROM u");
    let session = log_in(&node, "u", "p").expect("the user may log in");
    let reads = || [run(&session, "SELECT a FROM d.t"), run(&session, "SELECT a FROM d2.t")];
    assert_eq!(reads(), [Err(1142), Ok(())]);
    assert_eq!(run(&session, "INSERT INTO d.t VALUES (4, 4)"), Ok(()));
    let grants = ["GRANT SELECT, INSERT ON *.* TO `u`@`%`", "REVOKE SELECT ON `d`.* FROM `u`@`%`"];
    assert_eq!(values(&session, "SHOW GRANTS"), grants);
    assert_eq!(values(&admin, "SHOW GRANTS FOR u"), grants);
    assert_eq!(run(&admin, "SET GLOBAL partial_revokes = OFF"), Err(3896));
    assert_eq!(run(&admin, "SET PERSIST partial_revokes = OFF"), Err(3896));
    // A privilege on a table of the database counts beside the revoke.
    must(&admin, "GRANT SELECT ON d.t TO u");
    assert_eq!(reads(), [Ok(()), Ok(())]);
    must(&admin, "REVOKE SELECT ON d.t FROM u");
    assert_eq!(reads(), [Err(1142), Ok(())]);
    // So does a role without the revoke, and one with it does not.
    must(&admin, "GRANT SELECT ON *.* TO r");
    must(&admin, "GRANT r TO u");
    must(&session, "SET ROLE r");
    assert_eq!(reads(), [Ok(()), Ok(())]);
    must(&admin, "REVOKE SELECT ON d.* FROM r");
    assert_eq!(reads(), [Err(1142), Ok(())]);
    must(&session, "SET ROLE NONE");
    // With partial revokes, names of databases in GRANT are no patterns.
    must(&admin, "CREATE USER n IDENTIFIED WITH mysql_native_password BY 'p'");
    must(&admin, "GRANT SELECT ON `d%`.* TO n");
    let literal = log_in(&node, "n", "p").expect("the user may log in");
    assert_eq!(run(&literal, "SELECT a FROM d2.t"), Err(1142));
    must(&admin, "GRANT SELECT ON d.* TO u, r");
    assert_eq!(reads(), [Ok(()), Ok(())]);
    assert_eq!(values(&session, "SHOW GRANTS")[..1], ["GRANT SELECT, INSERT ON *.* TO `u`@`%`"]);
    must(&admin, "REVOKE INSERT ON d.* FROM u");
    assert_eq!(run(&session, "INSERT INTO d.t VALUES (6, 6)"), Err(1142));
    must(&admin, "GRANT INSERT ON *.* TO u");
    assert_eq!(run(&session, "INSERT INTO d.t VALUES (6, 6)"), Ok(()), "GRANT on the server ends the revoke");
    // Patterns count again at once.
    must(&admin, "SET GLOBAL partial_revokes = OFF");
    assert_eq!(run(&literal, "SELECT a FROM d2.t"), Ok(()));
}

#[test]
fn a_grantor_passes_on_no_more_than_it_has() {
    let node = builder().start().expect("the node starts");
    let admin = log_in(&node, "root", "").expect("root may log in");
    make_tables(&admin);
    for statement in [
        "SET GLOBAL partial_revokes = ON",
        "CREATE USER n, had, lacks",
        "GRANT SELECT, INSERT ON *.* TO u WITH GRANT OPTION",
        "REVOKE SELECT ON d.* FROM u",
        "GRANT SELECT ON *.* TO had",
        "GRANT SELECT, INSERT ON *.* TO lacks",
        "REVOKE SELECT, INSERT ON d.* FROM lacks",
    ] {
        must(&admin, statement);
    }
    let session = log_in(&node, "u", "p").expect("the user may log in");
    must(&session, "GRANT SELECT, INSERT ON *.* TO n, had, lacks");
    let of = |user: &str| {
        let grants = values(&admin, &format!("SHOW GRANTS FOR {user}"));
        grants.into_iter().map(|grant| grant.replace(&format!("`{user}`@`%`"), "USER")).collect::<Vec<_>>()
    };
    let (all, revoked) = ("GRANT SELECT, INSERT ON *.* TO USER", "REVOKE SELECT ON `d`.* FROM USER");
    assert_eq!([of("n"), of("had"), of("lacks")], [vec![all, revoked], vec![all], vec![all, revoked]]);
    assert_eq!(run(&session, "GRANT SELECT ON d.* TO n"), Err(1044));
    assert_eq!(run(&session, "GRANT SELECT ON d.t TO n"), Err(1142));
}
