//! Logins that fail: locks, delays, and what the answers reveal.

use super::*;

/// An administrator whose failed logins delay nobody.
fn undelayed(node: &Node) -> Connection {
    let admin = log_in(node, "root", "").expect("root may log in");
    must(&admin, "SET GLOBAL connection_control_failed_connections_threshold = 0");
    admin
}

fn errno(node: &Node, user: &str, password: &str) -> u16 {
    log_in(node, user, password).err().map_or(0, |error| error.errno())
}

#[test]
fn failed_logins_in_a_row_lock_an_account() {
    let node = builder().start().expect("the node starts");
    let admin = undelayed(&node);
    for method in ["mysql_native_password", "caching_sha2_password"] {
        must(&admin, "DROP USER IF EXISTS u");
        must(
            &admin,
            &format!("CREATE USER u IDENTIFIED WITH {method} BY 'p' FAILED_LOGIN_ATTEMPTS 3 PASSWORD_LOCK_TIME 2"),
        );
        let before = log_in(&node, "u", "p").expect("the user may log in");
        // A login between them begins the count again.
        assert_eq!(["x", "x", "p", "x", "x"].map(|password| errno(&node, "u", password)), [1045, 1045, 0, 1045, 1045]);
        let blocked = Fault {
            errno: 3955,
            sqlstate: "HY000".into(),
            message:
                "Access denied for user 'u'@'localhost'. Account is blocked for 2 day(s) (2 day(s) remaining) due \
                      to 3 consecutive failed logins."
                    .into(),
        };
        for password in ["x", "p", ""] {
            assert_eq!(open(&node, Login::new("u", password)).1.err(), Some(blocked.clone()), "{method} {password}");
            assert_eq!(errno(&node, "u", password), 3955);
        }
        must(&before, "SELECT 1");
        // What does not concern the lock leaves it.
        for statement in
            ["GRANT SELECT ON *.* TO u", "ALTER USER u COMMENT 'x'", "ALTER USER root@localhost COMMENT 'x'"]
        {
            must(&admin, statement);
            assert_eq!(errno(&node, "u", "p"), 3955, "{statement}");
        }
        let unlocks = [
            "FLUSH PRIVILEGES",
            "ALTER USER u ACCOUNT UNLOCK",
            "ALTER USER u FAILED_LOGIN_ATTEMPTS 3",
            "ALTER USER u PASSWORD_LOCK_TIME 2",
            "ALTER USER u FAILED_LOGIN_ATTEMPTS 2 PASSWORD_LOCK_TIME UNBOUNDED",
        ];
        for statement in unlocks {
            must(&admin, statement);
            assert_eq!(errno(&node, "u", "p"), 0, "{statement}");
            let refusals: Vec<u16> = (0..4).map(|_| errno(&node, "u", "x")).collect();
            assert!(refusals.contains(&3955), "{statement}: {refusals:?}");
            assert_eq!(errno(&node, "u", "p"), 3955);
        }
        let message = open(&node, Login::new("u", "p")).1.err().expect("it is locked").message;
        let unbounded = "Account is blocked for unlimited day(s) (unlimited day(s) remaining) due to 2 consecutive failed \
                         logins.";
        assert!(message.ends_with(unbounded), "{message}");
        must(&admin, "DROP USER u");
        must(&admin, &format!("CREATE USER u IDENTIFIED WITH {method} BY 'p'"));
        assert_eq!(errno(&node, "u", "p"), 0, "another account");
    }
}

#[test]
fn answers_to_an_account_with_failed_logins_are_delayed_and_counted() {
    let node = builder().start().expect("the node starts");
    let admin = log_in(&node, "root", "").expect("root may log in");
    must(&admin, "SET GLOBAL connection_control_failed_connections_threshold = 2");
    must(&admin, "SET GLOBAL connection_control_max_connection_delay = 1000");
    must(&admin, "CREATE USER u IDENTIFIED WITH mysql_native_password BY 'p'");
    let attempts = || {
        let rows = "SELECT CONCAT(userhost, ' ', failed_attempts) FROM \
                    information_schema.connection_control_failed_login_attempts ORDER BY 1";
        values(&admin, rows)
    };
    let delays = || {
        let status = "SELECT variable_value FROM information_schema.global_status WHERE variable_name = \
                      'Connection_control_delay_generated'";
        values(&admin, status)
    };
    for _ in 0..2 {
        assert_eq!([errno(&node, "u", "x"), errno(&node, "nobody", "x")], [1045, 1045]);
    }
    assert_eq!(attempts(), ["'nobody'@'%' 2", "'u'@'%' 2"]);
    assert_eq!(delays(), ["0"]);
    assert_eq!(errno(&node, "u", "x"), 1045);
    assert_eq!((attempts()[1].as_str(), delays()), ("'u'@'%' 3", vec!["1".to_owned()]));
    // The right password waits, too, and ends the count.
    let session = log_in(&node, "u", "p").expect("the password is right");
    assert_eq!((attempts(), delays()), (vec!["'nobody'@'%' 2".to_owned()], vec!["2".to_owned()]));
    assert_eq!(errno(&node, "root", ""), 0);
    assert_eq!(delays(), ["2"], "no delay for others");
    let hidden = "SELECT userhost FROM information_schema.connection_control_failed_login_attempts";
    assert_eq!(values(&session, hidden), [""; 0]);
}

/// The packets of a refused login, with the user replaced by `USER`.
fn refused(node: &Node, login: Login<'_>) -> Vec<String> {
    let (packets, outcome) = open(node, login);
    assert_eq!(outcome.err().map(|fault| fault.errno), Some(1045), "{login:?}");
    let shown = |packet: &Vec<u8>| match packet.as_slice() {
        // The challenge differs.
        [0xFE, rest @ ..] => {
            String::from_utf8_lossy(rest.split(|byte| *byte == 0).next().expect("a name")).into_owned()
        }
        packet => String::from_utf8_lossy(packet).replace(login.user, "USER"),
    };
    packets.iter().map(shown).collect()
}

#[test]
fn an_unknown_user_gets_the_answers_of_a_wrong_password() {
    let node = builder().start().expect("the node starts");
    let admin = undelayed(&node);
    for statement in [
        "ALTER USER root@localhost IDENTIFIED WITH mysql_native_password BY 'x'",
        "CREATE USER a_native IDENTIFIED WITH mysql_native_password BY 'p'",
        "CREATE USER b_locked IDENTIFIED WITH mysql_native_password BY 'p' ACCOUNT LOCK",
        "CREATE USER c_elsewhere@'10.1.2.3' IDENTIFIED WITH mysql_native_password BY 'p'",
        "CREATE USER d_secure IDENTIFIED WITH mysql_native_password BY 'p' REQUIRE X509",
        "CREATE USER m_sha IDENTIFIED WITH caching_sha2_password BY 'p'",
        "CREATE USER n_known IDENTIFIED WITH caching_sha2_password BY 'p'",
    ] {
        must(&admin, statement);
    }
    assert_eq!(errno(&node, "n_known", "p"), 0, "the server now knows the password of this one");
    for method in ["mysql_native_password", "caching_sha2_password", "dummy_fallback_auth", "sha256_password"] {
        for password in ["wrong", ""] {
            let answers = |user| refused(&node, Login { method, ..Login::new(user, password) });
            let of_native = answers("a_native");
            for user in ["a_nativ", "b_locked", "c_elsewhere", "c_unknown", "d_secure"] {
                assert_eq!(answers(user), of_native, "{method} {user} {password}");
            }
            let of_sha = answers("m_sha");
            for user in ["m_sh", "m_unknown", "n_known"] {
                assert_eq!(answers(user), of_sha, "{method} {user} {password}");
            }
        }
        // Rules that the client does not fulfil are not told, either.
        let answers = refused(&node, Login { method, ..Login::new("d_secure", "p") });
        assert_eq!(answers, refused(&node, Login { method, ..Login::new("a_native", "wrong") }), "{method}");
    }
    // Over the native protocol, too.
    let message = |user: &str, password| {
        let error = log_in(&node, user, password).expect_err("it is refused");
        (error.errno(), error.message().replace(user, "USER"))
    };
    must(&admin, "CREATE USER n_open IDENTIFIED BY ''");
    assert_eq!(errno(&node, "n_open", ""), 0);
    assert_eq!(message("n_open", "wrong"), message("n_known", "wrong"), "an account without a password");
    for (unknown, known) in [("a_nativ", "a_native"), ("c_elsewhere", "a_native"), ("m_sh", "m_sha")] {
        assert_eq!(message(unknown, "wrong"), message(known, "wrong"), "{unknown}");
        assert_eq!(message(unknown, ""), message(known, ""), "{unknown}");
    }
}

#[test]
fn an_expired_password_allows_its_change_only() {
    let node = builder().start().expect("the node starts");
    let admin = log_in(&node, "root", "").expect("root may log in");
    make_tables(&admin);
    for statement in ["GRANT ALL ON *.* TO u", "CREATE USER other IDENTIFIED BY 'x'", "ALTER USER u PASSWORD EXPIRE"] {
        must(&admin, statement);
    }
    let refused = open(&node, Login::new("u", "p")).1.err().expect("the client cannot change it");
    assert_eq!((refused.errno, refused.sqlstate.as_str()), (1862, "HY000"));
    let login = Login { handles_expired: true, ..Login::new("u", "p") };
    let mut session = open(&node, login).1.expect("the client can change it");
    for statement in [
        "SELECT 1",
        "SELECT a FROM d.t WHERE a = 1",
        "INSERT INTO d.t VALUES (5, 5)",
        "BEGIN",
        "USE d",
        "SHOW TABLES FROM d",
        "SHOW GRANTS",
        "CREATE TABLE d.x (a INT)",
        "PREPARE x FROM 'SELECT 1'",
        "SET ROLE NONE",
        "GRANT SELECT ON d.t TO u",
        "DROP USER other",
        "ALTER USER other IDENTIFIED BY 'y'",
        "SET PASSWORD FOR other = 'y'",
        "KILL 1",
        "FLUSH PRIVILEGES",
    ] {
        let fault = session.query(statement).err().unwrap_or_else(|| panic!("{statement}"));
        assert_eq!((fault.errno, fault.sqlstate.as_str()), (1820, "HY000"), "{statement}");
    }
    let commands: [&[u8]; 3] = [b"\x02d", b"\x04t\0", b"\x0C\x01\0\0\0"];
    for command in commands {
        assert_eq!(session.command(command).err().map(|fault| fault.errno), Some(1820), "{command:?}");
    }
    assert_eq!(session.errno("SET NAMES utf8mb4"), 0);
    let native = log_in(&node, "u", "p").expect("the driver can change it");
    let reader = block_on(native.key_reader("d.t", &["a"])).expect("no row is read yet");
    let read = block_on(reader.read_many(&[1]));
    assert_eq!(read.err().map(|error| error.errno()), Some(1820));
    assert_eq!(session.errno("ALTER USER u IDENTIFIED BY 'new'"), 0);
    assert_eq!(session.errno("SELECT a FROM d.t WHERE a = 1"), 0);
    assert_eq!(run(&native, "SELECT 1"), Ok(()), "the other session is free, too");
    assert!(open(&node, Login::new("u", "new")).1.is_ok());
    must(&admin, "ALTER USER u PASSWORD EXPIRE");
    assert_eq!(session.errno("SELECT 1"), 0, "a session that has begun goes on");
}

#[test]
fn a_change_of_the_user_checks_as_a_login_does() {
    let node = builder().start().expect("the node starts");
    let admin = undelayed(&node);
    must(&admin, "CREATE USER a IDENTIFIED WITH mysql_native_password BY ''");
    must(&admin, "CREATE USER b IDENTIFIED WITH mysql_native_password BY 'p'");
    must(&admin, "CREATE USER c IDENTIFIED WITH mysql_native_password BY '' ACCOUNT LOCK");
    let change = |user: &str| {
        let mut session = open(&node, Login::new("a", "")).1.expect("there is no password");
        let command = [b"\x11", user.as_bytes(), b"\0\0\0\x2D\0mysql_native_password\0"].concat();
        let outcome = session.command(&command).map_err(|fault| fault.errno);
        outcome.map(|_| session.query("SELECT CURRENT_USER()").expect("a session")[0][0].clone())
    };
    assert_eq!(change("a"), Ok(Some("a@%".into())));
    assert_eq!(change("root"), Ok(Some("root@localhost".into())));
    assert_eq!([change("b"), change("nobody"), change("c")], [Err(1045), Err(1045), Err(3118)]);
}
