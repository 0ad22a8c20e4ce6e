//! The membership of a cluster whose nodes end, pause and return.

use rustix::process::Signal;

use super::nodes::{Cluster, Row, run};

/// Two data nodes and a management node, all of which show what they know.
pub const ROLES: [&str; 3] = ["data,sql", "data,sql", "management,sql"];

fn states(rows: &[Row]) -> Vec<&str> {
    rows.iter().map(|row| &*row.state).collect()
}

/// Whether either data node may end: a node gets its mark after its epoch has started everywhere.
pub fn is_whole(rows: &[Row]) -> bool {
    let is_durable = rows[0].is_durable && rows[1].is_durable;
    states(rows) == ["SERVING", "SERVING", "CONNECTED"]
        && is_durable
        && rows.iter().filter(|row| row.is_leader).count() == 1
}

pub fn leader(rows: &[Row]) -> u8 {
    (1..).zip(rows).find(|(_, row)| row.is_leader).expect("a leader").0
}

/// Kills nodes in turn, the leader too, and starts them again; then all at once.
fn lose_and_return(mut cluster: Cluster) {
    for at in 1..=3 {
        cluster.await_rows(at, "the cluster forms", is_whole);
    }
    for round in 0..3 {
        let before = cluster.await_rows(3, "the cluster is whole", is_whole);
        let lost = match round {
            0 => 2,
            1 => 1,
            _ => leader(&before),
        };
        let other = if lost == 1 { 2 } else { 1 };
        cluster.kill(lost);
        let index = usize::from(lost) - 1;
        let rows = cluster.await_rows(other, "another node leads, and the lost one is down", |rows| {
            rows[index].state == "DOWN" && rows.iter().any(|row| row.is_leader) && !rows[index].is_leader
        });
        if lost < 3 {
            cluster.await_rows(other, "the data node is evicted", |rows| rows[0].epoch > before[0].epoch);
        }
        cluster.start(lost);
        cluster.await_address(lost);
        let after = cluster.await_rows(other, "the node returns", is_whole);
        assert!(after[index].incarnation > before[index].incarnation, "{rows:?} then {after:?}");
    }
    let before = cluster.rows(1);
    (1..=3).for_each(|node| cluster.kill(node));
    cluster.start_all();
    let after = cluster.await_rows(1, "the cluster starts again", is_whole);
    assert!(after[0].epoch > before[0].epoch, "the membership goes on: {before:?} then {after:?}");
}

#[test]
fn nodes_end_and_return() {
    lose_and_return(Cluster::formed("plain", &ROLES, ""));
}

#[test]
fn nodes_end_and_return_with_encrypted_links() {
    let mut cluster = Cluster::new("tls", &ROLES, "");
    let certificates = cluster.folder().join("certificates");
    let place = |name: &str| certificates.join(name).to_str().expect("UTF-8").to_owned();
    assert!(run(&["admin", "certificate", &place(""), "--nodes", "1,2,3"]).0);
    let (authority, config) = (place("authority.crt"), cluster.folder().join("cluster.toml"));
    let shared = std::fs::read_to_string(config).expect("a file");
    for node in 1..=3 {
        let own = cluster.folder().join(format!("node-{node}.toml"));
        let (certificate, key) = (place(&format!("node-{node}.crt")), place(&format!("node-{node}.key")));
        let tls =
            format!("tls_authority = {authority:?}\ntls_certificate = {certificate:?}\ntls_private_key = {key:?}\n");
        std::fs::write(&own, format!("{shared}{tls}")).expect("a writable folder");
        cluster.set_config(node, &own);
    }
    cluster.start_all();
    lose_and_return(cluster);
}

#[test]
fn a_paused_node_is_evicted_and_ends_when_it_goes_on() {
    let mut cluster = Cluster::formed("paused", &ROLES, "");
    let before = cluster.await_rows(3, "the cluster forms", is_whole);
    cluster.signal(2, Signal::STOP);
    cluster.await_rows(3, "the silent node is evicted", |rows| rows[0].epoch > before[0].epoch);
    cluster.signal(2, Signal::CONT);
    let end = cluster.await_end(2);
    assert_eq!(end.code(), Some(3), "{}", cluster.log(2));
    assert!(cluster.log(2).contains("evicted"), "{}", cluster.log(2));
    cluster.start(2);
    cluster.await_rows(3, "the node returns", is_whole);
}

#[test]
fn alterations_and_locks_work_in_a_cluster_of_one_node() {
    let mut cluster = Cluster::formed("alone", &["data,sql"], "NoOfReplicas = 1\n");
    let mut session = cluster.session(1);
    session.query("CREATE DATABASE d").expect("a database");
    session.query("CREATE TABLE d.t (a INT PRIMARY KEY, b INT)").expect("a table");
    for statement in
        ["ALTER TABLE d.t ADD INDEX (b)", "LOCK TABLES d.t READ", "UNLOCK TABLES", "SELECT GET_LOCK('a', 0)"]
    {
        session.query(statement).expect(statement);
    }
    session.query("SELECT SLEEP(0.001)").expect("a statement without tables");
    let status = session.query("SHOW STATUS LIKE 'Ndb_number_of%'").expect("figures of the cluster");
    let values: Vec<&str> = status.rows.iter().filter_map(|row| row[1].as_deref()).collect();
    assert_eq!(values, ["1", "1"]);
}

#[test]
fn directories_of_other_nodes_are_refused() {
    let mut cluster = Cluster::formed("directories", &["data,sql"], "NoOfReplicas = 1\n");
    cluster.kill(1);
    let place = |name: &str| cluster.folder().join(name).to_str().expect("UTF-8").to_owned();
    let (config, data) = (place("cluster.toml"), place("data-1"));
    let start = |arguments: &[&str]| {
        let (is_started, text) = run(&[&["serve", "--data-dir", &data], arguments].concat());
        assert!(!is_started, "{text}");
        text
    };
    assert!(start(&["--port", "0"]).contains("belongs to a node of a cluster"));
    let other = ["--config", &config, "--node", "1 data 127.0.0.1:1", "--node", "2 data,sql 127.0.0.1:2"];
    let text = start(&[&other[..], &["--node-id", "2", "--replicas", "1"]].concat());
    assert!(text.contains("belongs to node 1, not to node 2"), "{text}");
    let text = start(&["--config", &config, "--node-id", "1", "--cluster-name", "other"]);
    assert!(text.contains("belongs to a cluster of another name"), "{text}");
}
