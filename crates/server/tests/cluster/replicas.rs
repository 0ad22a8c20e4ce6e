//! The number of replicas is raised and lowered while clients write. The new node has every row, and the old
//! one may end for good.

use super::grow::{Transfers, check_rows};
use super::nodes::{Cluster, Row, run, wait_until};

/// Nodes 5 and 6 are further replicas of node group 0, which begins with node 1.
const ROLES: [&str; 6] = ["data,sql", "management", "sql", "sql", "data,sql,added:0", "data,sql,added:0"];
const CLIENT: u8 = 4;
const ONE_REPLICA: &str = "NoOfReplicas = 1\n";

fn admin(cluster: &mut Cluster, arguments: &[&str]) -> (bool, String) {
    let port = cluster.address(CLIENT).port().to_string();
    run(&[&["admin"], arguments, &["--port", &port, "--timeout", "100"]].concat())
}

fn do_serve(rows: &[Row], nodes: &[u8]) -> bool {
    nodes.iter().all(|node| rows[usize::from(*node) - 1].state == "SERVING" && rows[usize::from(*node) - 1].is_durable)
}

fn groups(cluster: &mut Cluster) -> String {
    let query = "SELECT CONCAT_WS(' ', node_group, state, data_nodes, serving_nodes, durable_nodes) FROM \
                 junctor_info.node_groups";
    super::grow::value(&mut cluster.session(CLIENT), query)
}

/// A cluster with one replica and rows.
fn filled(name: &str) -> Cluster {
    let mut cluster = Cluster::new(name, &ROLES, ONE_REPLICA);
    (1..=4).for_each(|node| cluster.start(node));
    [1, 3, CLIENT].into_iter().for_each(|node| cluster.await_address(node));
    super::grow::fill(&mut cluster);
    cluster
}

#[test]
fn a_second_replica_is_added_under_writes_and_replaces_the_first_one() {
    let mut cluster = filled("replicas");
    assert_eq!(groups(&mut cluster), "0 SERVING 1 1 1");
    let (succeeded, told) = admin(&mut cluster, &["remove", "--replicas", "1"]);
    assert!(succeeded && told.contains("each node group has at most 1 nodes"), "{told}");
    let writers = [1, 2].map(|seed| Transfers::begin(&mut cluster, seed));
    cluster.start(5);
    cluster.await_rows(CLIENT, "node 5 serves", |rows| do_serve(rows, &[1, 5]));
    cluster.await_address(5);
    // A table that was created when there were two replicas.
    let mut session = cluster.session(CLIENT);
    for statement in
        ["CREATE TABLE d.later (a INT PRIMARY KEY, b INT, UNIQUE (b))", "INSERT INTO d.later VALUES (1, 2), (3, 4)"]
    {
        session.query(statement).expect(statement);
    }
    drop(session);
    let transfers: u64 = writers.into_iter().map(Transfers::end).sum();
    assert!(transfers > 0);
    assert_eq!(groups(&mut cluster), "0 SERVING 2 2 2");
    [1, 5, CLIENT].into_iter().for_each(|node| check_rows(&mut cluster, node, transfers));
    // The first node ends. Nothing is lost, and writers go on.
    cluster.kill(1);
    let mut session = cluster.session(CLIENT);
    wait_until("node 5 goes on", || session.query("SELECT COUNT(*) FROM d.account").ok());
    [5, CLIENT].into_iter().for_each(|node| check_rows(&mut cluster, node, transfers));
    assert_eq!(super::grow::value(&mut session, "SELECT SUM(a * b) FROM d.later"), "14");
    let writer = Transfers::begin(&mut cluster, 3);
    cluster.start(1);
    cluster.await_rows(CLIENT, "node 1 has copied", |rows| do_serve(rows, &[1, 5]));
    cluster.await_address(1);
    let transfers = transfers + writer.end();
    [1, 5, CLIENT].into_iter().for_each(|node| check_rows(&mut cluster, node, transfers));
    // All nodes start from their disks, then only the added one does.
    (1..=5).for_each(|node| cluster.kill(node));
    (1..=5).for_each(|node| cluster.start(node));
    [1, 5, CLIENT].into_iter().for_each(|node| cluster.await_address(node));
    [1, 5, CLIENT].into_iter().for_each(|node| check_rows(&mut cluster, node, transfers));
    (1..=5).for_each(|node| cluster.kill(node));
    (2..=5).for_each(|node| cluster.start(node));
    [5, CLIENT].into_iter().for_each(|node| cluster.await_address(node));
    [5, CLIENT].into_iter().for_each(|node| check_rows(&mut cluster, node, transfers));
    cluster.start(1);
    cluster.await_rows(CLIENT, "node 1 has copied", |rows| do_serve(rows, &[1, 5]));
    cluster.await_address(1);
    check_rows(&mut cluster, 1, transfers);
}

#[test]
fn replicas_are_raised_to_three_and_lowered_to_one_while_nodes_die() {
    let mut cluster = filled("replicas-lower");
    let (succeeded, told) = admin(&mut cluster, &["add", "--replicas", "4"]);
    assert!(!succeeded && told.contains("node group 0 has 3 data nodes in `nodes`"), "{told}");
    let writer = Transfers::begin(&mut cluster, 3);
    // A new node dies while it joins.
    [5, 6].into_iter().for_each(|node| cluster.start(node));
    wait_until("a new node joins", || (cluster.rows(CLIENT)[4].incarnation > 0).then_some(()));
    cluster.kill(5);
    cluster.start(5);
    let (succeeded, told) = admin(&mut cluster, &["add", "--replicas", "3"]);
    assert!(succeeded && told.contains("all 2 tables are in 1 node groups"), "{told}");
    assert_eq!(groups(&mut cluster), "0 SERVING 3 3 3");
    [5, 6].into_iter().for_each(|node| cluster.await_address(node));
    for lost in [1, 5] {
        cluster.kill(lost);
        cluster.start(lost);
        cluster.await_rows(CLIENT, "all serve", |rows| do_serve(rows, &[1, 5, 6]));
        cluster.await_address(lost);
    }
    // All nodes start from their disks: no node is late, and all have the same order of replicas.
    let before = writer.end();
    (1..=6).for_each(|node| cluster.kill(node));
    (1..=6).for_each(|node| cluster.start(node));
    [1, 3, CLIENT, 5, 6].into_iter().for_each(|node| cluster.await_address(node));
    [1, 5, 6, CLIENT].into_iter().for_each(|node| check_rows(&mut cluster, node, before));
    let writer = Transfers::begin(&mut cluster, 5);
    let (succeeded, told) = admin(&mut cluster, &["remove", "--replicas", "1"]);
    assert!(!succeeded && told.contains("--force"), "{told}");
    let refused = cluster.session(CLIENT).query("ALTER NODE 1 LEAVE").expect_err("it votes");
    assert!(format!("{refused:?}").contains("1210"), "{refused:?}");
    // The node with the highest number goes first. It never returns.
    let (succeeded, told) = admin(&mut cluster, &["remove", "--replicas", "2"]);
    assert!(succeeded && told.contains("take nodes 6 out"), "{told}");
    assert!(cluster.await_end(6).success(), "{}", cluster.log(6));
    cluster.start(6);
    assert!(!cluster.await_end(6).success());
    assert!(cluster.log(6).contains("node 6 was removed from the cluster, and its number is not used again"));
    assert_eq!(groups(&mut cluster), "0 SERVING 2 2 2");
    let (succeeded, told) = admin(&mut cluster, &["remove", "--replicas", "1", "--force"]);
    assert!(succeeded && told.contains("take nodes 5, 6 out"), "{told}");
    assert!(cluster.await_end(5).success(), "{}", cluster.log(5));
    assert_eq!(groups(&mut cluster), "0 SERVING 1 1 1");
    let after = writer.end();
    assert!(before > 0 && after > 0);
    let transfers = before + after;
    [1, CLIENT].into_iter().for_each(|node| check_rows(&mut cluster, node, transfers));
    // The lists lose the nodes, and all start again.
    let text = std::fs::read_to_string(cluster.folder().join("cluster.toml")).expect("a file");
    let (first, end) = (text.find(", \"5 ").expect("node 5"), text.find("]").expect("the end of the list"));
    let short = cluster.folder().join("short.toml");
    std::fs::write(&short, format!("{}{}", &text[..first], &text[end..])).expect("a writable folder");
    (1..=4).for_each(|node| cluster.kill(node));
    for node in 1..=4 {
        cluster.set_config(node, &short);
        cluster.start(node);
    }
    [1, CLIENT].into_iter().for_each(|node| cluster.await_address(node));
    [1, CLIENT].into_iter().for_each(|node| check_rows(&mut cluster, node, transfers));
}

#[test]
fn a_replica_with_other_threads_than_its_group_is_refused_before_it_is_added() {
    let mut cluster = filled("replicas-threads");
    cluster.set_options(5, &["--thread-config", "recv={count=1},ldm={count=3},main={count=0},io={count=0}"]);
    cluster.start(5);
    assert!(!cluster.await_end(5).success());
    let said = cluster.log(5);
    assert!(said.contains("node 5 is not admitted to the cluster: it has 3 ldm and 1 tc instances"), "{said}");
    let tells =
        |node: &u8| cluster.log(*node).contains("node 5: not admitted, because it has 3 ldm and 1 tc instances");
    assert!((1..=4).any(|node| tells(&node)), "the leader says it, too");
    cluster.await_rows(CLIENT, "node 5 is down", |rows| rows[4].state == "DOWN" && rows[4].incarnation == 0);
    assert_eq!(groups(&mut cluster), "0 SERVING 1 1 1");
    cluster.set_options(5, &[]);
    cluster.start(5);
    cluster.await_rows(CLIENT, "node 5 serves", |rows| do_serve(rows, &[1, 5]));
}
