//! Accounts in a cluster: every node knows them, and they survive its end.

use std::net::TcpStream;

use super::client::{Client, Login};
use super::nodes::Cluster;

const NATIVE: &str = "mysql_native_password";

fn log_in(cluster: &mut Cluster, node: u8, password: &str) -> Result<Client<TcpStream>, u16> {
    let stream = TcpStream::connect(cluster.address(node)).expect("the node listens");
    let login = Login { method: NATIVE, ..Login::new("u", password) };
    Client::log_in(stream, login).1.map_err(|fault| fault.errno)
}

#[test]
fn accounts_hold_on_every_node_and_survive_the_cluster() {
    let mut cluster = Cluster::new("accounts", &["data,sql", "data,sql", "management"], "");
    cluster.start_serving([1, 2]);
    let mut one = cluster.session(1);
    let mut two = cluster.session(2);
    for statement in [
        "SET GLOBAL connection_control_failed_connections_threshold = 0",
        "CREATE DATABASE d",
        "CREATE TABLE d.t (a INT PRIMARY KEY)",
        &format!("CREATE USER u IDENTIFIED WITH {NATIVE} BY 'p'"),
        "GRANT SELECT ON d.* TO u",
        "CREATE ROLE writer",
        "GRANT INSERT ON d.* TO writer",
        "GRANT writer TO u",
        "SET DEFAULT ROLE writer TO u",
    ] {
        one.query(statement).expect(statement);
    }
    // The other node knows all of it when the statement is answered.
    let mut user = log_in(&mut cluster, 2, "p").expect("the user may log in");
    assert_eq!(log_in(&mut cluster, 2, "x").err(), Some(1045));
    let insert = "INSERT INTO d.t VALUES (1)";
    assert_eq!([user.errno("SELECT * FROM d.t"), user.errno(insert)], [0, 0]);
    assert_eq!(user.errno("DELETE FROM d.t"), 1142);
    one.query("REVOKE writer FROM u").expect("the other node is asked");
    assert_eq!([user.errno("SELECT * FROM d.t"), user.errno(insert)], [0, 1142]);
    two.query("ALTER USER u IDENTIFIED BY 'q'").expect("any node changes accounts");
    assert_eq!(log_in(&mut cluster, 1, "p").err(), Some(1045));
    assert!(log_in(&mut cluster, 1, "q").is_ok());
    // Changes at both nodes at a time lose none.
    std::thread::scope(|scope| {
        for (node, session) in [(1, &mut one), (2, &mut two)] {
            scope.spawn(move || {
                for number in 0..10 {
                    let statement = format!("CREATE USER n{node}_{number}");
                    session.query(&statement).unwrap_or_else(|error| panic!("{statement}: {error}"));
                }
            });
        }
    });
    let count = "SELECT COUNT(*) FROM mysql.user";
    for session in [&mut one, &mut two] {
        assert_eq!(session.query_value(count).expect("a number").as_deref(), Some("23"));
    }
    [1, 2, 3].into_iter().for_each(|node| cluster.kill(node));
    cluster.start_serving([1, 2]);
    for node in [1, 2] {
        let found = cluster.session(node).query_value(count).expect("a number");
        assert_eq!(found.as_deref(), Some("23"), "node {node}");
        let mut user = log_in(&mut cluster, node, "q").expect("the user may log in");
        assert_eq!([user.errno("SELECT * FROM d.t"), user.errno("DELETE FROM d.t")], [0, 1142]);
        assert_eq!(log_in(&mut cluster, node, "p").err(), Some(1045));
    }
}
