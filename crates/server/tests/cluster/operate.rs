//! What operators see and do: tables about the whole cluster, stops and restarts of nodes, health over HTTP.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use super::nodes::{Cluster, Row, wait_until};

/// Two data nodes, a management node that votes, and two nodes without data, which have no link.
const ROLES: [&str; 5] = ["data,sql", "data,sql", "management", "sql", "sql"];

fn is_whole(rows: &[Row]) -> bool {
    rows[..2].iter().all(|row| row.state == "SERVING" && row.is_durable)
        && rows[2..].iter().all(|row| row.state == "CONNECTED")
}

/// Starts all nodes, and waits until those serve that have clients.
fn start(cluster: &mut Cluster) {
    (1..=5).for_each(|node| cluster.start(node));
    [1, 2, 4, 5].into_iter().for_each(|node| cluster.await_address(node));
}

/// The values of a query at a node; NULL as "NULL".
fn values(cluster: &mut Cluster, node: u8, query: &str) -> Vec<Vec<String>> {
    let result = cluster.session(node).query(query).unwrap_or_else(|error| panic!("{query}: {error:?}"));
    let text = |value: Option<String>| value.unwrap_or_else(|| "NULL".into());
    result.rows.into_iter().map(|row| row.into_iter().map(text).collect()).collect()
}

/// Waits until a query at a node has this answer.
fn await_values(cluster: &mut Cluster, node: u8, query: &str, expected: &[&[&str]]) {
    let mut last = Vec::new();
    let found = super::nodes::poll(std::time::Duration::from_millis(20), || {
        last = values(cluster, node, query);
        (last == expected).then_some(())
    });
    assert!(found.is_some(), "{query} at node {node}: {last:?}; the logs are in {}", cluster.folder().display());
}

/// The error of a statement at a node.
fn refusal(cluster: &mut Cluster, node: u8, statement: &str) -> String {
    format!("{:?}", cluster.session(node).query(statement).expect_err(statement))
}

#[test]
fn every_node_shows_the_whole_cluster() {
    let mut cluster = Cluster::new("operate", &ROLES, "");
    start(&mut cluster);
    for node in [1, 4] {
        cluster.await_rows(node, "all nodes are there", is_whole);
        let of_all = "SELECT COUNT(*), SUM(role = 'LEADER'), COUNT(DISTINCT leader_node_id), SUM(is_voter), MIN(voters), \
                      MIN(voters_heard), COUNT(lease_left_us) FROM junctor_info.arbitration";
        await_values(&mut cluster, node, of_all, &[&["5", "1", "1", "3", "3", "3", "2"]]);
        let of_links = "SELECT node_id, COUNT(*), SUM(state = 'UP'), SUM(connections = channels AND channels > 0), \
                        MIN(sent_bytes > 0 AND received_bytes > 0 AND credit_bytes > 0) * \
                        MAX(sent_frames > 0 AND sent_signals > 0) FROM junctor_info.links \
                        GROUP BY node_id ORDER BY node_id";
        let linked = |node, count| [node, count, count, count, "1"];
        let [one, two, three] = ["1", "2", "3"].map(|node| linked(node, "4"));
        let [four, five] = ["4", "5"].map(|node| linked(node, "3"));
        await_values(&mut cluster, node, of_links, &[&one, &two, &three, &four, &five]);
        // The system measures the round trip of every connection within a second or two.
        let of_times = "SELECT COUNT(*) FROM junctor_info.links WHERE round_trip_us > 0";
        await_values(&mut cluster, node, of_times, &[&["18"]]);
    }
    let mut session = cluster.session(4);
    session.query("CREATE DATABASE d").expect("a database");
    session.query("CREATE TABLE d.t (a INT PRIMARY KEY, b INT)").expect("a table");
    let rows: Vec<String> = (0..400).map(|row| format!("({row}, 0)")).collect();
    session.query(&format!("INSERT INTO d.t VALUES {}", rows.join(","))).expect("rows");
    let lag = "SELECT node_id, state, last_commit > 0, applied_commit = last_commit, commits_to_apply FROM \
               junctor_info.replication_lag ORDER BY node_id";
    await_values(&mut cluster, 5, lag, &[&["1", "SERVING", "1", "1", "0"], &["2", "SERVING", "1", "1", "0"]]);

    // Which node leads and evicts depends on the elections before.
    cluster.kill(2);
    let evictions = "SELECT COUNT(*) > 0 FROM junctor_info.events WHERE event_kind = 'EVICTED' AND description = \
                     'node 2: evicted, because its process is gone'";
    await_values(&mut cluster, 4, evictions, &[&["1"]]);
    let of_link =
        "SELECT state, connections, round_trip_us FROM junctor_info.links WHERE node_id = 1 AND peer_node_id = 2";
    assert_eq!(values(&mut cluster, 5, of_link), [["DOWN", "0", "NULL"]]);
    cluster.start(2);
    cluster.await_rows(4, "node 2 is back", is_whole);
    let copied = "SELECT phase, state, rows_applied, rows_total FROM junctor_info.restarts WHERE node_id = 2 AND phase \
                  LIKE '%cop%' ORDER BY phase";
    let phases = values(&mut cluster, 4, copied);
    assert_eq!(phases[0], ["copy rows", "DONE", "400", "400"]);
    assert_eq!(phases[1][..2], ["write copied rows", "DONE"]);
    let copies =
        "SELECT description FROM junctor_info.events WHERE node_id = 2 AND event_kind = 'COPY' ORDER BY event_number";
    let copies = values(&mut cluster, 4, copies);
    assert_eq!(copies.len(), 3, "{copies:?}");
    let recent = "SELECT MIN(event_time > NOW() - INTERVAL 1 HOUR AND event_time < NOW() + INTERVAL 1 MINUTE), \
                  COUNT(DISTINCT node_id) FROM junctor_info.events";
    assert_eq!(values(&mut cluster, 5, recent), [["1", "5"]]);
}

#[test]
fn statements_stop_and_restart_nodes_and_spare_the_last_replica() {
    let mut cluster = Cluster::new("operate-stops", &ROLES, "");
    for node in [1, 2, 5] {
        cluster.set_options(node, &["--supervised"]);
    }
    start(&mut cluster);
    cluster.await_rows(4, "all nodes are there", is_whole);
    let refused = refusal(&mut cluster, 4, "RESTART");
    assert!(refused.contains("3707") && refused.contains("not managed by supervisor process"), "{refused}");
    assert!(refusal(&mut cluster, 4, "RESTART NODE 3").contains("3707"));
    for (statement, errno) in [
        ("SHUTDOWN NODE 9", "1210"),
        ("RESTART NODE 0", "1210"),
        ("SHUTDOWN NODE", "1064"),
        ("SHUTDOWN NODE 300", "1064"),
    ] {
        assert!(refusal(&mut cluster, 4, statement).contains(errno), "{statement}");
    }
    // A node without data reaches the other one through the leader.
    cluster.session(4).query("RESTART NODE 5").expect("node 5 has a supervisor");
    assert_eq!(cluster.await_end(5).code(), Some(16));
    cluster.session(4).query("RESTART NODE 2").expect("node 2 has a supervisor");
    assert_eq!(cluster.await_end(2).code(), Some(16));
    cluster.await_rows(4, "node 2 has left", |rows| rows[1].state != "SERVING" && rows[0].state == "SERVING");
    for statement in ["SHUTDOWN NODE 1", "RESTART NODE 1"] {
        let refused = refusal(&mut cluster, 4, statement);
        assert!(refused.contains("1296") && refused.contains("last one of node group 0"), "{refused}");
    }
    assert!(refusal(&mut cluster, 4, "SHUTDOWN NODE 2").contains("1296"), "it is away");
    cluster.start(2);
    cluster.start(5);
    cluster.await_address(5);
    cluster.await_rows(4, "both are back", is_whole);
    // A signal and a statement stop a node in the same way.
    cluster.session(5).query("SHUTDOWN").expect("the own node");
    assert_eq!(cluster.await_end(5).code(), Some(0));
    cluster.session(4).query("SHUTDOWN NODE 1").expect("node 2 has the rows, too");
    assert_eq!(cluster.await_end(1).code(), Some(0));
    cluster.session(4).query("SHUTDOWN NODE 2 FORCE").expect("the last replica, by force");
    assert_eq!(cluster.await_end(2).code(), Some(0));
}

/// The answer to a request of a path over HTTP; `None` while nobody listens.
fn get(port: u16, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: node\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}

#[test]
fn a_node_that_waits_for_its_cluster_lives_and_is_not_ready() {
    let mut cluster = Cluster::new("operate-health", &["data,sql", "data,sql", "management"], "");
    let port = TcpListener::bind("127.0.0.1:0").expect("a free port").local_addr().expect("an address").port();
    cluster.set_options(1, &["--http-port", &port.to_string()]);
    cluster.start(1);
    let waiting = "\r\n\r\n{\"status\":\"not ready\",\"reason\":\"waiting for the cluster\"}\n";
    let is_waiting = |answer: &String| answer.starts_with("HTTP/1.1 503 ") && answer.ends_with(waiting);
    wait_until("it waits", || get(port, "/health/ready").filter(is_waiting));
    let live = get(port, "/health/live").expect("it listens");
    assert!(live.starts_with("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"), "{live}");
    assert!(live.ends_with("\r\n\r\n{\"status\":\"live\"}\n"), "{live}");
    cluster.start(2);
    cluster.start(3);
    let is_ready =
        |answer: &String| answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("{\"status\":\"ready\"}\n");
    wait_until("it serves", || get(port, "/health/ready").filter(is_ready));
}
