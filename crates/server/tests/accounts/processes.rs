//! KILL and SHOW PROCESSLIST of one's own sessions and of others.

use super::*;

fn id(session: &Connection) -> u64 {
    values(session, "SELECT CAST(CONNECTION_ID() AS CHAR)")[0].parse().expect("a number")
}

fn shown(session: &Connection) -> Vec<String> {
    let listed = values(session, "SELECT CAST(id AS CHAR) FROM information_schema.processlist ORDER BY id");
    let rows = block_on(session.query("SHOW PROCESSLIST", &[])).expect("rows");
    assert_eq!(rows.iter().count(), listed.len());
    listed
}

#[test]
fn sessions_of_ones_own_account_may_be_killed_and_others_with_a_privilege() {
    let node = builder().start().expect("the node starts");
    let admin = log_in(&node, "root", "").expect("root may log in");
    for statement in [
        "CREATE USER u, other, killer IDENTIFIED WITH mysql_native_password BY 'p'",
        "ALTER USER u IDENTIFIED WITH mysql_native_password BY 'p'",
        "ALTER USER other IDENTIFIED WITH mysql_native_password BY 'p'",
        "GRANT CONNECTION_ADMIN ON *.* TO killer",
    ] {
        must(&admin, statement);
    }
    let session = |user| log_in(&node, user, "p").expect("the user may log in");
    let (own, second, other, killer) = (session("u"), session("u"), session("other"), session("killer"));
    for (killing, victim, outcome) in [
        (&own, &other, Err(1095)),
        (&own, &admin, Err(1095)),
        (&own, &second, Ok(())),
        (&killer, &other, Ok(())),
        // The account of root has SYSTEM_USER.
        (&killer, &admin, Err(1095)),
    ] {
        let id = id(victim);
        assert_eq!(run(killing, &format!("KILL QUERY {id}")), outcome);
        assert_eq!(run(killing, &format!("KILL {id}")), outcome);
        assert_eq!(run(victim, "SELECT 1").is_ok(), outcome.is_err());
    }
    for killing in [&own, &killer] {
        assert_eq!(run(killing, "KILL 999999"), Err(1094));
    }
    // COM_PROCESS_KILL checks the same.
    let mut protocol = open(&node, Login::new("u", "p")).1.expect("the user may log in");
    let kill = |id: u64| [&[0x0C][..], &(id as u32).to_le_bytes()].concat();
    assert_eq!(
        protocol.command(&kill(id(&killer))).err().map(|fault| (fault.errno, fault.sqlstate)),
        Some((1095, "HY000".into()))
    );
    assert!(protocol.command(&kill(id(&own))).is_ok());
    must(&admin, "GRANT SYSTEM_USER ON *.* TO killer");
    let victim = id(&admin);
    assert_eq!(run(&killer, &format!("KILL {victim}")), Ok(()));
}

#[test]
fn a_list_of_processes_has_ones_own_account_only_without_process() {
    let node = builder().start().expect("the node starts");
    let admin = log_in(&node, "root", "").expect("root may log in");
    for statement in [
        "CREATE USER u IDENTIFIED WITH mysql_native_password BY 'p'",
        "CREATE USER watcher IDENTIFIED WITH mysql_native_password BY 'p'",
        "CREATE USER ''@'%' IDENTIFIED WITH mysql_native_password BY 'p'",
        "GRANT PROCESS ON *.* TO watcher",
    ] {
        must(&admin, statement);
    }
    let session = |user| log_in(&node, user, "p").expect("the user may log in");
    let (first, second, watcher) = (session("u"), session("u"), session("watcher"));
    // A client of the anonymous account chooses any name, which gives it no right.
    must(&admin, "RENAME USER root@localhost TO boss@localhost");
    let admin = log_in(&node, "boss", "").expect("the administrator may log in");
    let anonymous = session("root");
    let ids = |sessions: &[&Connection]| sessions.iter().map(|session| id(session).to_string()).collect::<Vec<_>>();
    assert_eq!(shown(&first), ids(&[&first, &second]));
    assert_eq!(shown(&anonymous), ids(&[&anonymous]));
    assert_eq!(values(&anonymous, "SELECT user FROM information_schema.processlist"), ["root"]);
    assert_eq!(run(&anonymous, &format!("KILL {}", id(&admin))), Err(1095));
    for id in ids(&[&admin, &first, &second, &watcher, &anonymous]) {
        assert!(shown(&watcher).contains(&id));
    }
    // A right that is revoked is gone with the next statement.
    must(&admin, "REVOKE PROCESS ON *.* FROM watcher");
    assert_eq!(shown(&watcher), ids(&[&watcher]));
}
