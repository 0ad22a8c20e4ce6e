//! Strangers at the links of a cluster.

use std::io::{Read, Write};
use std::net::TcpStream;

use super::nodes::{Cluster, run, wait_until};

fn count(text: &str, part: &str) -> usize {
    text.matches(part).count()
}

#[test]
fn a_node_with_another_key_is_refused_and_logged_once() {
    // Node 1 alone votes.
    let mut cluster = Cluster::new("key", &["data,sql", "data,sql", "sql"], "");
    let key = cluster.folder().join("other");
    let key = key.to_str().expect("UTF-8").to_owned();
    assert!(run(&["admin", "key", &key]).0);
    cluster.set_options(3, &["--cluster-key-file", &key]);
    (1..=3).for_each(|node| cluster.start(node));
    (1..=2).for_each(|node| cluster.await_address(node));
    let refusal = "does not have the cluster's key";
    // The others try again and again to link with it.
    wait_until("the stranger waits", || cluster.log(3).contains("not linked with nodes 1, 2").then_some(()));
    for node in [1, 2] {
        assert_eq!(count(&cluster.log(node), refusal), 1, "{}", cluster.log(node));
    }
    assert_eq!(cluster.rows(1)[2].state, "DOWN");
}

#[test]
fn a_node_that_joins_learns_the_nodes_from_a_member() {
    let mut cluster = Cluster::new("join", &["data,sql", "data", "sql"], "");
    (1..=2).for_each(|node| cluster.start(node));
    cluster.await_address(1);
    let folder = cluster.folder().to_owned();
    let place = |name: &str| folder.join(name).to_str().expect("UTF-8").to_owned();
    let (key, other, empty) = (place("key"), place("other"), place("empty.toml"));
    let address = cluster.link_address(1);
    std::fs::write(&empty, "port = 0\nNumCPUs = 1\nTotalMemory = \"64M\"\n").expect("a writable folder");
    let options = ["--join", &address, "--cluster-key-file", &key];
    cluster.set_config(3, empty.as_ref());
    cluster.set_options(3, &options);
    cluster.start(3);
    cluster.await_address(3);
    assert_eq!(cluster.rows(3).len(), 3);

    // Without the key, or as a node that the cluster does not know, it learns nothing.
    assert!(run(&["admin", "key", &other]).0);
    let data = place("data-4");
    let ask = |node: &str, key: &str| {
        let arguments =
            ["serve", "--node-id", node, "--data-dir", &data, "--join", &address, "--cluster-key-file", key];
        let (is_started, text) = run(&arguments);
        assert!(!is_started);
        text
    };
    assert!(ask("3", &other).contains("closed the connection: the keys differ"));
    assert!(ask("4", &key).contains("node 4 is none of the nodes of the cluster"));
    let refusal = "a stranger: connection refused: the node does not have the cluster's key";
    wait_until("the refusal is logged", || cluster.log(1).contains(refusal).then_some(()));

    // The answer serves later starts while the member is away.
    cluster.kill(3);
    cluster.kill(1);
    cluster.start(3);
    wait_until("it uses the last answer", || cluster.log(3).contains("not linked with nodes 1").then_some(()));
    cluster.start(1);
    cluster.await_address(3);
}

#[test]
fn foreign_and_old_hellos_are_refused_and_logged_once() {
    let mut cluster = Cluster::formed("hello", &["data,sql"], "NoOfReplicas = 1\n");
    let address = cluster.link_address(1);
    let old = [b"JNL\x00".to_vec(), vec![0; 124]].concat();
    for _ in 0..3 {
        for hello in [&b"GET / HTTP/1.1\r\n\r\n"[..], &old] {
            let mut stream = TcpStream::connect(&address).expect("the node listens");
            // The node may have closed the connection.
            let _ = stream.write_all(hello);
            let mut answer = Vec::new();
            let _ = stream.read_to_end(&mut answer);
            assert!(answer.is_empty());
        }
    }
    let refusal = "a stranger: connection refused: the bytes are no hello";
    wait_until("the refusal is logged", || cluster.log(1).contains(refusal).then_some(()));
    assert_eq!(count(&cluster.log(1), refusal), 1, "{}", cluster.log(1));
    cluster.session(1).query("SELECT 1").expect("the node serves");
}
