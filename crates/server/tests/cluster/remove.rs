//! Node groups that are removed from a cluster that serves: tables are moved off them under writes, their
//! nodes leave and never return, and nothing is lost when nodes of each group end.

use super::grow::{CLIENT, DATA, Transfers, admin_add, check_rows, filled, groups_of, is_whole, value};
use super::nodes::{Cluster, run, wait_until};

/// A cluster whose tables are in two groups.
fn grown(name: &str) -> Cluster {
    let mut cluster = filled(name);
    [5, 6].into_iter().for_each(|node| cluster.start(node));
    admin_add(&mut cluster);
    [5, 6].into_iter().for_each(|node| cluster.await_address(node));
    assert_eq!((groups_of(&mut cluster, "account"), groups_of(&mut cluster, "keyed")), ("0,1".into(), "0,1".into()));
    cluster
}

fn admin_remove(cluster: &mut Cluster, at: u8, arguments: &[&str]) -> (bool, String) {
    let port = cluster.address(at).port().to_string();
    let fixed = ["admin", "remove", "--port", &port, "--timeout", "100"];
    run(&[&fixed[..], arguments].concat())
}

fn state_of_group(cluster: &mut Cluster) -> Option<String> {
    let query = "SELECT state FROM junctor_info.node_groups WHERE node_group = 1";
    let result = cluster.session(CLIENT).query(query).expect("a status table");
    result.rows.first().and_then(|row| row[0].clone())
}

/// The nodes of the removed group have ended, and one that starts again is refused.
fn check_removed(cluster: &mut Cluster) {
    for node in [5, 6] {
        assert!(cluster.await_end(node).success(), "{}", cluster.log(node));
        cluster.start(node);
        assert!(!cluster.await_end(node).success());
        let text = format!("node {node} was removed from the cluster");
        assert!(cluster.log(node).contains(&text), "{}", cluster.log(node));
    }
    assert_eq!(state_of_group(cluster), None);
    let states: Vec<String> = cluster.rows(CLIENT).into_iter().map(|row| row.state).collect();
    assert_eq!(states[4..], ["REMOVED", "REMOVED"]);
    assert_eq!((groups_of(cluster, "account"), groups_of(cluster, "keyed")), ("0".into(), "0".into()));
}

#[test]
fn a_group_is_removed_under_writes_and_its_nodes_never_return() {
    let mut cluster = grown("remove");
    for (group, at, text) in [
        ("0", CLIENT, "node group 0 has been there since the first start, and its nodes vote"),
        ("2", CLIENT, "node group 2 does not exist"),
        ("1", 5, "node 5 is one of those to be removed"),
    ] {
        let (succeeded, told) = admin_remove(&mut cluster, at, &[group]);
        assert!(!succeeded && told.contains(text), "{told}");
    }
    let writers = [1, 2].map(|seed| Transfers::begin(&mut cluster, seed));
    let (succeeded, told) = admin_remove(&mut cluster, CLIENT, &["1"]);
    assert!(succeeded && told.contains("2 tables have rows there") && told.contains("take nodes 5, 6 out"), "{told}");
    let transfers: u64 = writers.into_iter().map(Transfers::end).sum();
    assert!(transfers > 0);
    check_removed(&mut cluster);
    [1, 2, CLIENT].into_iter().for_each(|node| check_rows(&mut cluster, node, transfers));
    let mut session = cluster.session(CLIENT);
    session.query("CREATE TABLE d.later (a INT PRIMARY KEY)").expect("a table");
    assert_eq!(groups_of(&mut cluster, "later"), "0");
    // The nodes are taken out of the list, and all others start again from their disks.
    let text = std::fs::read_to_string(cluster.folder().join("cluster.toml")).expect("a file");
    let first = text.find(", \"5 ").expect("node 5");
    let end = text[first..].find(']').expect("the end of the list") + first;
    let short = cluster.folder().join("short.toml");
    std::fs::write(&short, format!("{}{}", &text[..first], &text[end..])).expect("a writable folder");
    (1..=4).for_each(|node| cluster.kill(node));
    (1..=4).for_each(|node| cluster.set_config(node, &short));
    (1..=4).for_each(|node| cluster.start(node));
    [1, 2, CLIENT].into_iter().for_each(|node| cluster.await_address(node));
    [1, 2, CLIENT].into_iter().for_each(|node| check_rows(&mut cluster, node, transfers));
    cluster.kill(1);
    let mut session = cluster.session(CLIENT);
    wait_until("node 2 serves alone", || session.query("SELECT COUNT(*) FROM d.account").ok());
    check_rows(&mut cluster, CLIENT, transfers);
}

#[test]
fn nodes_that_die_while_a_group_is_removed_lose_nothing() {
    let mut cluster = grown("remove-kills");
    // Temporary tables, of which one is in each group, hold the group until their session ends.
    let mut holder = cluster.session(CLIENT);
    for table in ["d.own", "d.other"] {
        holder.query(&format!("CREATE TEMPORARY TABLE {table} (a INT PRIMARY KEY)")).expect("a table");
    }
    let writer = Transfers::begin(&mut cluster, 3);
    let port = cluster.address(CLIENT).port().to_string();
    let tool = std::thread::spawn(move || run(&["admin", "remove", "1", "--port", &port, "--timeout", "100"]));
    wait_until("the group leaves", || (state_of_group(&mut cluster)? == "LEAVING").then_some(()));
    for lost in [1, 5, 2, 6] {
        cluster.kill(lost);
        cluster.start(lost);
        cluster.await_rows(CLIENT, "all serve", is_whole);
        assert_eq!(state_of_group(&mut cluster).as_deref(), Some("LEAVING"));
    }
    drop(holder);
    let (succeeded, told) = tool.join().expect("it ends");
    assert!(succeeded, "{told}");
    let transfers = writer.end();
    check_removed(&mut cluster);
    [1, 2].into_iter().for_each(|node| cluster.await_address(node));
    [1, 2, CLIENT].into_iter().for_each(|node| check_rows(&mut cluster, node, transfers));
    (1..=4).for_each(|node| cluster.kill(node));
    (1..=4).for_each(|node| cluster.start(node));
    [1, 2, CLIENT].into_iter().for_each(|node| cluster.await_address(node));
    [1, 2, CLIENT].into_iter().for_each(|node| check_rows(&mut cluster, node, transfers));
}

#[test]
fn a_group_that_leaves_survives_a_restart_of_all_nodes_and_may_stay() {
    let mut cluster = grown("remove-stay");
    let mut session = cluster.session(CLIENT);
    session.query("ALTER NODEGROUP 1 LEAVE").expect("the leader takes it");
    wait_until("the group leaves", || (state_of_group(&mut cluster)? == "LEAVING").then_some(()));
    session.query("CREATE TABLE d.while_leaving (a INT PRIMARY KEY)").expect("a table");
    assert_eq!(groups_of(&mut cluster, "while_leaving"), "0");
    (1..=6).for_each(|node| cluster.kill(node));
    (1..=6).for_each(|node| cluster.start(node));
    DATA.into_iter().chain([CLIENT]).for_each(|node| cluster.await_address(node));
    cluster.await_rows(CLIENT, "all serve", is_whole);
    assert_eq!(state_of_group(&mut cluster).as_deref(), Some("LEAVING"));
    DATA.into_iter().chain([CLIENT]).for_each(|node| check_rows(&mut cluster, node, 0));
    let (succeeded, told) = admin_remove(&mut cluster, CLIENT, &["1", "--stay"]);
    assert!(succeeded && told.contains("node group 1: stays"), "{told}");
    admin_add(&mut cluster);
    assert_eq!(groups_of(&mut cluster, "while_leaving"), "0,1");
    let refused = cluster.session(CLIENT).query("ALTER NODEGROUP 0 LEAVE").expect_err("its nodes vote");
    assert!(format!("{refused:?}").contains("1210"), "{refused:?}");
    assert_eq!(value(&mut cluster.session(CLIENT), "SELECT COUNT(*) FROM d.while_leaving"), "0");
    let (succeeded, told) = admin_remove(&mut cluster, CLIENT, &["1"]);
    assert!(succeeded, "{told}");
    check_removed(&mut cluster);
    [1, 2, CLIENT].into_iter().for_each(|node| check_rows(&mut cluster, node, 0));
}
