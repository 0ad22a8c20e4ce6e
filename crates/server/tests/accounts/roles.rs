//! Roles: granted, default, mandatory, active.

use super::*;

fn make_roles(admin: &Connection) {
    make_tables(admin);
    for statement in [
        "CREATE ROLE reader, writer, m",
        "GRANT SELECT ON d.* TO reader",
        "GRANT INSERT ON d.* TO writer",
        "GRANT DELETE ON d.* TO m",
        "GRANT reader, writer TO u",
    ] {
        must(admin, statement);
    }
}

fn active(session: &Connection) -> String {
    values(session, "SELECT CURRENT_ROLE()").remove(0)
}

/// Whether the session may read, insert and delete.
fn may(session: &Connection) -> [bool; 3] {
    ["SELECT a FROM d.s", "INSERT INTO d.s VALUES (1)", "DELETE FROM d.s"].map(|it| run(session, it).is_ok())
}

#[test]
fn set_role_activates_and_deactivates_roles_of_the_account() {
    let node = builder().start().expect("the node starts");
    let admin = log_in(&node, "root", "").expect("root may log in");
    make_roles(&admin);
    let session = log_in(&node, "u", "p").expect("the user may log in");
    assert_eq!((active(&session).as_str(), may(&session)), ("NONE", [false; 3]));
    for (form, roles, rights) in [
        ("reader", "`reader`@`%`", [true, false, false]),
        ("'writer'@'%'", "`writer`@`%`", [false, true, false]),
        ("ALL", "`reader`@`%`,`writer`@`%`", [true, true, false]),
        ("ALL EXCEPT reader", "`writer`@`%`", [false, true, false]),
        ("NONE", "NONE", [false; 3]),
        ("writer, reader", "`reader`@`%`,`writer`@`%`", [true, true, false]),
        ("DEFAULT", "NONE", [false; 3]),
    ] {
        must(&session, &format!("SET ROLE {form}"));
        assert_eq!((active(&session).as_str(), may(&session)), (roles, rights), "{form}");
    }
    must(&session, "SET ROLE reader");
    for role in ["m", "nobody", "reader, m"] {
        assert_eq!(run(&session, &format!("SET ROLE {role}")), Err(3530), "{role}");
        assert_eq!(active(&session), "`reader`@`%`");
    }
    must(&admin, "REVOKE reader FROM u");
    assert_eq!(may(&session), [false; 3], "a role that is revoked gives nothing from the next statement on");
    assert_eq!(run(&session, "SET ROLE reader"), Err(3530));
    assert_eq!(log_in(&node, "reader", "").err().map(|error| error.errno()), Some(3118), "a role is locked");
}

#[test]
fn a_login_activates_default_roles_or_all() {
    let node = builder().start().expect("the node starts");
    let admin = log_in(&node, "root", "").expect("root may log in");
    make_roles(&admin);
    let at_login = || active(&log_in(&node, "u", "p").expect("the user may log in"));
    for (statement, roles) in [
        ("SET DEFAULT ROLE reader TO u", "`reader`@`%`"),
        ("SET DEFAULT ROLE ALL TO u", "`reader`@`%`,`writer`@`%`"),
        ("ALTER USER u DEFAULT ROLE writer", "`writer`@`%`"),
        ("SET DEFAULT ROLE NONE TO u", "NONE"),
    ] {
        must(&admin, statement);
        assert_eq!(at_login(), roles, "{statement}");
    }
    assert_eq!(run(&admin, "SET DEFAULT ROLE m TO u"), Err(3530));
    let session = log_in(&node, "u", "p").expect("the user may log in");
    must(&session, "SET DEFAULT ROLE writer TO u");
    assert_eq!(active(&session), "NONE", "it counts from the next login on");
    must(&session, "SET ROLE DEFAULT");
    assert_eq!(active(&session), "`writer`@`%`");
    assert_eq!(run(&session, "SET DEFAULT ROLE NONE TO root@localhost"), Err(1227));
    must(&admin, "CREATE USER n IDENTIFIED WITH mysql_native_password BY 'p' DEFAULT ROLE reader, m");
    let other = log_in(&node, "n", "p").expect("the user may log in");
    assert_eq!(active(&other), "`m`@`%`,`reader`@`%`");
    must(&admin, "SET GLOBAL activate_all_roles_on_login = ON");
    assert_eq!(at_login(), "`reader`@`%`,`writer`@`%`");
    must(&admin, "SET GLOBAL mandatory_roles = 'm'");
    assert_eq!(at_login(), "`m`@`%`,`reader`@`%`,`writer`@`%`");
}

#[test]
fn persisted_settings_of_rights_are_checked() {
    let node = builder().start().expect("the node starts");
    let admin = log_in(&node, "root", "").expect("root may log in");
    make_tables(&admin);
    must(&admin, "GRANT SYSTEM_VARIABLES_ADMIN, PERSIST_RO_VARIABLES_ADMIN ON *.* TO u");
    let session = log_in(&node, "u", "p").expect("the user may log in");
    for scope in ["GLOBAL", "PERSIST", "PERSIST_ONLY"] {
        assert_eq!(run(&session, &format!("SET {scope} mandatory_roles = 'r'")), Err(1227), "{scope}");
        assert_eq!(run(&admin, &format!("SET {scope} mandatory_roles = \"'r\"")), Err(1231), "{scope}");
    }
    must(&admin, "SET GLOBAL partial_revokes = ON");
    must(&admin, "GRANT SELECT ON *.* TO u");
    must(&admin, "REVOKE SELECT ON d.* FROM u");
    assert_eq!(run(&admin, "SET PERSIST_ONLY partial_revokes = OFF"), Err(3896));
    // A right value passes the check. A node in memory has no place to keep it.
    assert_eq!(run(&admin, "SET PERSIST_ONLY mandatory_roles = 'r'"), Err(1290));
}

#[test]
fn system_user_does_not_spread_through_roles() {
    let node = builder().start().expect("the node starts");
    let admin = log_in(&node, "root", "").expect("root may log in");
    make_tables(&admin);
    for statement in
        ["CREATE ROLE supreme, outer_role, m", "GRANT SYSTEM_USER ON *.* TO supreme", "GRANT supreme TO outer_role"]
    {
        must(&admin, statement);
    }
    for (scope, roles) in [("GLOBAL", "supreme"), ("PERSIST", "r, outer_role"), ("PERSIST_ONLY", "supreme")] {
        assert_eq!(run(&admin, &format!("SET {scope} mandatory_roles = '{roles}'")), Err(3880), "{scope}");
    }
    must(&admin, "GRANT ROLE_ADMIN ON *.* TO u");
    let session = log_in(&node, "u", "p").expect("the user may log in");
    for role in ["supreme", "outer_role", "r, outer_role"] {
        assert_eq!(run(&session, &format!("GRANT {role} TO u")), Err(1227), "{role}");
    }
    must(&session, "GRANT r TO u");
    must(&admin, "GRANT supreme TO u");
    // A mandatory role does not get it later, either.
    must(&admin, "SET GLOBAL mandatory_roles = 'm'");
    must(&admin, "GRANT r TO m");
    for statement in ["GRANT SYSTEM_USER ON *.* TO m", "GRANT ALL ON *.* TO r", "GRANT outer_role TO r"] {
        assert_eq!(run(&admin, statement), Err(3897), "{statement}");
    }
    must(&admin, "GRANT SELECT ON *.* TO m");
}

#[test]
fn an_account_with_system_user_by_a_role_is_out_of_reach() {
    let node = builder().start().expect("the node starts");
    let admin = log_in(&node, "root", "").expect("root may log in");
    make_tables(&admin);
    for statement in [
        "CREATE ROLE supreme, outer_role, m",
        "GRANT SYSTEM_USER ON *.* TO supreme",
        "GRANT supreme TO outer_role",
        "CREATE USER s IDENTIFIED BY 'p'",
        "GRANT outer_role TO s",
        "GRANT CREATE USER, ROLE_ADMIN, SET_USER_ID ON *.* TO u",
        "GRANT ALL ON d.* TO u WITH GRANT OPTION",
    ] {
        must(&admin, statement);
    }
    let session = log_in(&node, "u", "p").expect("the user may log in");
    for statement in [
        "ALTER USER s IDENTIFIED BY 'mine'",
        "ALTER USER s ACCOUNT LOCK",
        "SET PASSWORD FOR s = 'mine'",
        "RENAME USER s TO x",
        "DROP USER s",
        "GRANT SELECT ON d.* TO s",
        "REVOKE outer_role FROM s",
        "REVOKE supreme FROM outer_role",
        "SET DEFAULT ROLE NONE TO s",
        "DROP ROLE supreme",
        "CREATE DEFINER = s VIEW d.w AS SELECT 1",
    ] {
        assert_eq!(run(&session, statement), Err(1227), "{statement}");
    }
    must(&admin, "REVOKE supreme FROM outer_role");
    must(&session, "CREATE DEFINER = s VIEW d.w AS SELECT 1");
    must(&session, "ALTER USER s IDENTIFIED BY 'mine'");
    // An account does not become a mandatory role by its name.
    must(&admin, "SET GLOBAL mandatory_roles = 'everybody, m'");
    for statement in ["RENAME USER s TO everybody", "RENAME USER m TO x"] {
        assert_eq!(run(&admin, statement), Err(3628), "{statement}");
    }
    must(&admin, "RENAME USER s TO x");
    must(&session, "DROP USER x");
}

#[test]
fn mandatory_roles_are_granted_to_everybody() {
    let node = builder().start().expect("the node starts");
    let admin = log_in(&node, "root", "").expect("root may log in");
    make_roles(&admin);
    let session = log_in(&node, "u", "p").expect("the user may log in");
    must(&admin, "SET GLOBAL mandatory_roles = '`m`@`%`, missing'");
    assert_eq!((active(&session).as_str(), may(&session)), ("NONE", [false; 3]), "but not active");
    must(&session, "SET ROLE m");
    assert_eq!(may(&session), [false, false, true]);
    must(&session, "SET ROLE ALL");
    assert_eq!(active(&session), "`m`@`%`,`reader`@`%`,`writer`@`%`");
    must(&admin, "SET DEFAULT ROLE m TO u");
    assert_eq!(active(&log_in(&node, "u", "p").expect("the user may log in")), "`m`@`%`");
    for statement in ["DROP ROLE m", "REVOKE m FROM u", "RENAME USER m TO x"] {
        assert_eq!(run(&admin, statement), Err(3628), "{statement}");
    }
    assert_eq!(run(&admin, "SET GLOBAL mandatory_roles = \"'m\""), Err(1231));
    must(&admin, "GRANT SYSTEM_VARIABLES_ADMIN ON *.* TO u");
    assert_eq!(run(&session, "SET GLOBAL mandatory_roles = ''"), Err(1227), "ROLE_ADMIN");
    must(&admin, "SET GLOBAL mandatory_roles = ''");
    assert_eq!(may(&session), [true, true, false], "it ends with the setting");
    must(&admin, "DROP ROLE m");
}

#[test]
fn a_role_is_passed_on_with_admin_option_only() {
    let node = builder().start().expect("the node starts");
    let admin = log_in(&node, "root", "").expect("root may log in");
    make_roles(&admin);
    must(&admin, "CREATE USER n");
    let session = log_in(&node, "u", "p").expect("the user may log in");
    for statement in ["GRANT reader TO n", "REVOKE reader FROM n", "CREATE ROLE x", "DROP ROLE m"] {
        assert_eq!(run(&session, statement), Err(1227), "{statement}");
    }
    must(&admin, "GRANT reader TO u WITH ADMIN OPTION");
    must(&session, "GRANT reader TO n");
    assert_eq!(run(&session, "GRANT writer TO n"), Err(1227));
    assert_eq!(run(&session, "GRANT reader, writer TO n"), Err(1227));
    let edges = "SELECT CONCAT(from_user, ' ', to_user, ' ', with_admin_option) FROM mysql.role_edges ORDER BY 1";
    assert_eq!(values(&admin, edges), ["reader n N", "reader u Y", "writer u N"]);
    must(&session, "REVOKE reader FROM n");
    let roles = "SELECT CONCAT(role_name, ' ', is_grantable) FROM information_schema.applicable_roles ORDER BY 1";
    assert_eq!(values(&session, roles), ["reader YES", "writer NO"]);
    assert_eq!(
        values(&session, "SELECT role_name FROM information_schema.administrable_role_authorizations"),
        ["reader"]
    );
    must(&session, "SET ROLE writer");
    assert_eq!(values(&session, "SELECT role_name FROM information_schema.enabled_roles"), ["writer"]);
    must(&admin, "GRANT ROLE_ADMIN ON *.* TO u");
    must(&session, "GRANT writer, m TO n WITH ADMIN OPTION");
    // Roles of roles, in no circle.
    must(&admin, "GRANT reader TO m");
    for statement in ["GRANT m TO reader", "GRANT m TO m"] {
        assert_eq!(run(&admin, statement), Err(4027), "{statement}");
    }
    assert_eq!(run(&admin, "GRANT nobody TO u"), Err(3523));
    assert_eq!(run(&admin, "GRANT reader TO nobody"), Err(3523));
    must(&admin, "GRANT m TO u");
    must(&session, "SET ROLE m");
    assert_eq!(may(&session), [true, false, true], "m has reader");
    let grants = values(&admin, "SHOW GRANTS FOR u USING m");
    let of_database = "GRANT SELECT, DELETE ON `d`.* TO `u`@`%`";
    assert!(grants.iter().any(|grant| grant == of_database), "{grants:?}");
    assert_eq!(run(&admin, "SHOW GRANTS FOR n USING reader"), Err(3530));
}
