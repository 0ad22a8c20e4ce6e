//! Former, second and current passwords.

use super::*;

fn fault(session: &Connection, statement: &str) -> (u16, String) {
    block_on(session.query(statement, &[]))
        .err()
        .map_or((0, String::new()), |error| (error.errno(), error.sqlstate().into()))
}

/// Whether each of the passwords is valid over both protocols.
fn valid(node: &Node, passwords: &[&str]) -> Vec<bool> {
    let is_valid = |password: &&str| {
        let native = log_in(node, "u", password).is_ok();
        assert_eq!(open(node, Login::new("u", password)).1.is_ok(), native, "{password}");
        native
    };
    passwords.iter().map(is_valid).collect()
}

#[test]
fn former_passwords_may_not_be_used_again_too_soon() {
    let node = builder().start().expect("the node starts");
    let admin = log_in(&node, "root", "").expect("root may log in");
    let refused = (3638, "HY000".to_owned());
    for method in ["mysql_native_password", "caching_sha2_password"] {
        let set = |password: &str| fault(&admin, &format!("ALTER USER u IDENTIFIED BY '{password}'"));
        must(&admin, "DROP USER IF EXISTS u, renamed");
        must(&admin, &format!("CREATE USER u IDENTIFIED WITH {method} BY 'a' PASSWORD HISTORY 2"));
        assert_eq!([set("a"), set("b"), set("a")].map(|(errno, _)| errno), [3638, 0, 3638]);
        assert_eq!([set("c").0, set("b").0], [0, 3638]);
        assert_eq!(set("a"), (0, String::new()), "two others have followed");
        assert_eq!(fault(&admin, "SET PASSWORD FOR u = 'c'"), refused);
        must(&admin, "RENAME USER u TO renamed");
        assert_eq!(fault(&admin, "ALTER USER renamed IDENTIFIED BY 'c'"), refused);
        must(&admin, "RENAME USER renamed TO u");
        must(&admin, "ALTER USER u PASSWORD HISTORY 0 PASSWORD REUSE INTERVAL 365 DAY");
        assert_eq!([set("a").0, set("c").0], [3638, 3638]);
        assert_eq!(set("d").0, 0);
        assert_eq!(set("d").0, 3638);
        // The server's rules hold for accounts without rules of their own.
        must(&admin, "ALTER USER u PASSWORD HISTORY DEFAULT PASSWORD REUSE INTERVAL DEFAULT");
        assert_eq!(set("d").0, 0);
        must(&admin, "SET GLOBAL password_history = 1");
        assert_eq!([set("d").0, set("e").0, set("d").0], [3638, 0, 0]);
        must(&admin, "SET GLOBAL password_history = 0");
        must(&admin, "SET GLOBAL password_reuse_interval = 1");
        assert_eq!([set("d").0, set("f").0], [3638, 0]);
        must(&admin, "SET GLOBAL password_reuse_interval = 0");
        assert_eq!(set("f").0, 0);
        // An account that was dropped has left nothing.
        must(&admin, "ALTER USER u PASSWORD HISTORY 5");
        must(&admin, "DROP USER u");
        must(&admin, &format!("CREATE USER u IDENTIFIED WITH {method} BY 'f' PASSWORD HISTORY 5"));
        assert_eq!([set("f").0, set("d").0], [3638, 0]);
    }
}

#[test]
fn a_retained_password_is_valid_until_it_is_discarded() {
    let node = builder().start().expect("the node starts");
    let admin = log_in(&node, "root", "").expect("root may log in");
    must(&admin, "SET GLOBAL connection_control_failed_connections_threshold = 0");
    for method in ["mysql_native_password", "caching_sha2_password"] {
        must(&admin, "DROP USER IF EXISTS u");
        must(&admin, &format!("CREATE USER u IDENTIFIED WITH {method} BY 'a'"));
        must(&admin, "ALTER USER u IDENTIFIED BY 'b' RETAIN CURRENT PASSWORD");
        assert_eq!(valid(&node, &["a", "b", "c"]), [true, true, false]);
        must(&admin, "SET PASSWORD FOR u = 'c' RETAIN CURRENT PASSWORD");
        assert_eq!(valid(&node, &["a", "b", "c"]), [false, true, true]);
        // A change without RETAIN keeps the second password.
        must(&admin, "ALTER USER u IDENTIFIED BY 'd'");
        assert_eq!(valid(&node, &["b", "c", "d"]), [true, false, true]);
        must(&admin, "ALTER USER u DISCARD OLD PASSWORD");
        assert_eq!(valid(&node, &["b", "c", "d"]), [false, false, true]);
        let own = log_in(&node, "u", "d").expect("the user may log in");
        let retain = "ALTER USER USER() IDENTIFIED BY 'e' RETAIN CURRENT PASSWORD";
        assert_eq!(fault(&own, retain), (1227, "42000".into()));
        must(&admin, "GRANT APPLICATION_PASSWORD_ADMIN ON *.* TO u");
        must(&own, retain);
        assert_eq!(valid(&node, &["d", "e"]), [true, true]);
        must(&own, "ALTER USER USER() DISCARD OLD PASSWORD");
        assert_eq!(valid(&node, &["d", "e"]), [false, true]);
    }
    let errors = [
        (3894, "ALTER USER u IDENTIFIED WITH mysql_native_password BY 'x' RETAIN CURRENT PASSWORD"),
        (3895, "ALTER USER u IDENTIFIED BY '' RETAIN CURRENT PASSWORD"),
    ];
    for (errno, statement) in errors {
        assert_eq!(fault(&admin, statement), (errno, "HY000".into()), "{statement}");
    }
    must(&admin, "ALTER USER u IDENTIFIED BY 'f' RETAIN CURRENT PASSWORD");
    must(&admin, "ALTER USER u IDENTIFIED WITH mysql_native_password BY 'g'");
    assert_eq!(valid(&node, &["e", "f", "g"]), [false, false, true], "another method ends both");
    must(&admin, "CREATE USER none IDENTIFIED BY ''");
    let statement = "ALTER USER none IDENTIFIED BY 'x' RETAIN CURRENT PASSWORD";
    assert_eq!(fault(&admin, statement), (3878, "HY000".into()));
}

#[test]
fn the_current_password_may_be_required_for_its_change() {
    let node = builder().start().expect("the node starts");
    let admin = log_in(&node, "root", "").expect("root may log in");
    must(&admin, "CREATE USER u IDENTIFIED BY 'a' PASSWORD REQUIRE CURRENT");
    let own = log_in(&node, "u", "a").expect("the user may log in");
    let set = |rest: &str| fault(&own, &format!("ALTER USER USER() IDENTIFIED BY {rest}"));
    assert_eq!(set("'b'"), (3892, "HY000".into()));
    assert_eq!(set("'b' REPLACE 'x'"), (3891, "HY000".into()));
    assert_eq!(fault(&own, "SET PASSWORD = 'b'"), (3892, "HY000".into()));
    assert_eq!(set("'b' REPLACE 'a'").0, 0);
    assert_eq!(fault(&own, "SET PASSWORD = 'c' REPLACE 'b'").0, 0);
    must(&admin, "ALTER USER u PASSWORD REQUIRE CURRENT OPTIONAL");
    assert_eq!([set("'d'").0, set("'e' REPLACE 'x'").0], [0, 3891]);
    must(&admin, "ALTER USER u PASSWORD REQUIRE CURRENT DEFAULT");
    must(&admin, "SET GLOBAL password_require_current = 1");
    assert_eq!([set("'e'").0, set("'e' REPLACE 'd'").0], [3892, 0]);
    // A session that may change every account needs no current password, and cannot give that of another.
    assert_eq!(fault(&admin, "ALTER USER u IDENTIFIED BY 'f'").0, 0);
    assert_eq!(fault(&admin, "ALTER USER u IDENTIFIED BY 'g' REPLACE 'f'"), (3893, "HY000".into()));
}

#[test]
fn rules_for_chosen_passwords_hold_while_they_are_on() {
    let node = builder().start().expect("the node starts");
    let admin = log_in(&node, "root", "").expect("root may log in");
    let strength = |password: &str| {
        let query = format!("SELECT CAST(VALIDATE_PASSWORD_STRENGTH('{password}') AS CHAR)");
        values(&admin, &query).remove(0)
    };
    must(&admin, "CREATE USER u IDENTIFIED BY 'x'");
    assert_eq!(strength("Long_enough1"), "0", "they are off");
    must(&admin, "SET GLOBAL validate_password.enabled = ON");
    let grades = ["aB1", "aB1!", "long enough", "Long_enough1", "root"].map(strength);
    assert_eq!(grades, ["0", "25", "50", "100", "0"]);
    for statement in [
        "CREATE USER n",
        "CREATE USER n ACCOUNT LOCK",
        "CREATE USER n IDENTIFIED BY ''",
        "CREATE USER n IDENTIFIED BY 'long enough'",
        "CREATE USER `Some.User1` IDENTIFIED BY '1resU.emoS'",
        "CREATE USER m IDENTIFIED BY 'Long_enough1', n IDENTIFIED BY 'x'",
        "ALTER USER u IDENTIFIED BY 'long enough'",
        "ALTER USER u IDENTIFIED WITH mysql_native_password BY 'x'",
        "SET PASSWORD FOR u = 'x'",
        "SET PASSWORD FOR u = ''",
    ] {
        assert_eq!(fault(&admin, statement), (1819, "HY000".into()), "{statement}");
    }
    for statement in [
        "ALTER USER u IDENTIFIED BY 'Long_enough1'",
        "ALTER USER u IDENTIFIED BY RANDOM PASSWORD",
        "CREATE USER hashed IDENTIFIED WITH mysql_native_password AS '*14E65567ABDB5135D0CFD9A70B3032C179A49EE7'",
        "CREATE USER on_machine IDENTIFIED WITH auth_socket",
        "CREATE ROLE r",
        "SET GLOBAL validate_password.policy = LOW",
        "SET PASSWORD FOR u = 'long enough'",
        "SET GLOBAL validate_password.length = 4",
        "SET PASSWORD FOR u = 'four'",
        "SET GLOBAL validate_password.policy = 2",
        "SET GLOBAL validate_password.check_user_name = OFF",
        "CREATE USER `Some.User1` IDENTIFIED BY 'Some.User1'",
    ] {
        must(&admin, statement);
    }
    let variables = "SELECT CONCAT(@@validate_password.policy, ' ', @@global.validate_password.length)";
    assert_eq!(values(&admin, variables), ["STRONG 4"]);
    assert_eq!(block_on(admin.query("SHOW VARIABLES LIKE 'validate_password%'", &[])).expect("rows").iter().count(), 7);
    must(&admin, "SET GLOBAL validate_password.enabled = OFF");
    must(&admin, "SET PASSWORD FOR u = 'x'");
}
