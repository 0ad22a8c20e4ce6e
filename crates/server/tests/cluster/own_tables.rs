//! Temporary tables, and tables that a CREATE TABLE ... SELECT fills, in a cluster.

use super::nodes::{Cluster, Row, wait_until};
use super::rejoin::retry;

const ROLES: [&str; 5] = ["data,sql", "data,sql", "management", "sql", "sql"];

fn is_whole(rows: &[Row]) -> bool {
    rows[..2].iter().all(|row| row.state == "SERVING" && row.is_durable)
}

fn filled(name: &str) -> Cluster {
    let mut cluster = Cluster::new(name, &ROLES, "");
    cluster.start_serving([4, 5]);
    cluster.await_rows(4, "the cluster is whole", is_whole);
    [1, 2].into_iter().for_each(|node| cluster.await_address(node));
    let mut session = cluster.session(4);
    for statement in ["CREATE DATABASE d", "CREATE TABLE d.t (a INT PRIMARY KEY, b INT)"] {
        session.query(statement).expect(statement);
    }
    let rows: Vec<String> = (1..=2000).map(|row| format!("({row}, {row})")).collect();
    session.query(&format!("INSERT INTO d.t VALUES {}", rows.join(","))).expect("rows");
    cluster
}

fn value(cluster: &mut Cluster, node: u8, query: &str) -> Option<String> {
    let result = cluster.session(node).query(query).unwrap_or_else(|error| panic!("{query}: {error:?}"));
    result.rows[0][0].clone()
}

fn sequencer(cluster: &mut Cluster) -> u8 {
    let id = value(cluster, 4, "SELECT node_id FROM junctor_info.nodes WHERE is_sequencer = 1");
    id.and_then(|id| id.parse().ok()).expect("a node")
}

#[test]
fn a_table_is_created_with_the_rows_of_a_query() {
    let mut cluster = filled("create-select");
    let mut four = cluster.session(4);
    four.query("CREATE TABLE d.u (c INT AUTO_INCREMENT PRIMARY KEY, UNIQUE (b)) SELECT b, a FROM d.t WHERE a > 10")
        .expect("a table");
    cluster.session(1).query("CREATE TABLE d.v SELECT * FROM d.t").expect("a table");
    let error = four.query("CREATE TABLE d.w (b INT PRIMARY KEY) SELECT a % 7 AS b FROM d.t").expect_err("duplicates");
    assert!(format!("{error:?}").contains("1062"), "{error:?}");
    for node in [1, 2, 4, 5] {
        assert_eq!(value(&mut cluster, node, "SELECT SUM(b) FROM d.u"), Some("2000945".to_owned()));
        assert_eq!(value(&mut cluster, node, "SELECT SUM(b) FROM d.v"), Some("2001000".to_owned()));
        let error = cluster.session(node).query("SELECT * FROM d.w").expect_err("no table");
        assert!(format!("{error:?}").contains("1146"), "{error:?}");
    }
    // All of the table or nothing is there when the node with the sequencer dies.
    let lost = sequencer(&mut cluster);
    let creating = std::thread::spawn(move || {
        four.query("CREATE TABLE d.x SELECT a.a, b.b FROM d.t AS a, d.t AS b WHERE a.a <= 20 AND b.a <= 2000").is_ok()
    });
    // It may end before anybody sees it.
    wait_until("the statement begins", || {
        let query = "SELECT COUNT(*) FROM information_schema.processlist WHERE INFO LIKE 'CREATE TABLE d.x%'";
        (creating.is_finished() || value(&mut cluster, 4, query).as_deref() == Some("1")).then_some(())
    });
    cluster.kill(lost);
    let is_created = creating.join().expect("an answer");
    cluster.start(lost);
    cluster.await_rows(4, "the node is back", is_whole);
    cluster.await_address(lost);
    for node in [1, 2, 5] {
        match cluster.session(node).query("SELECT COUNT(*) FROM d.x") {
            Ok(result) => assert_eq!(result.rows[0][0].as_deref(), Some("40000")),
            Err(error) => assert!(!is_created && format!("{error:?}").contains("1146"), "{error:?}"),
        }
    }
    let mut session = cluster.session(5);
    session.query("DROP TABLE IF EXISTS d.x").expect("nothing is in the way");
    retry(&mut session, "CREATE TABLE d.x SELECT a FROM d.t");
    assert_eq!(value(&mut cluster, 2, "SELECT COUNT(*) FROM d.x"), Some("2000".to_owned()));
}

#[test]
fn a_temporary_table_is_of_one_session_of_one_node() {
    let mut cluster = filled("temporary");
    // Each partition has a row of this table, also those that no session sees.
    let partitions = "SELECT COUNT(*) FROM junctor_info.memoryusage";
    let before = [1, 2].map(|node| value(&mut cluster, node, partitions));
    let [mut one, mut four, mut five] = [1, 4, 5].map(|node| cluster.session(node));
    for (rows, session) in [(10, &mut one), (20, &mut four), (30, &mut five)] {
        session.query("CREATE TEMPORARY TABLE d.temp (a INT PRIMARY KEY, b INT, UNIQUE (b))").expect("a table");
        session.query(&format!("INSERT INTO d.temp SELECT * FROM d.t WHERE a <= {rows}")).expect("rows");
    }
    let count = |session: &mut junctor_bench::mysql::Connection<std::net::TcpStream>| {
        session.query("SELECT COUNT(*) FROM d.temp").expect("a count").rows[0][0].clone()
    };
    assert_eq!([&mut one, &mut four, &mut five].map(count), ["10", "20", "30"].map(|it| Some(it.to_owned())));
    four.query("CREATE TEMPORARY TABLE d.other SELECT a.a, t.b FROM d.temp AS a JOIN d.t AS t USING (a)")
        .expect("a table");
    four.query("TRUNCATE TABLE d.temp").expect("no rows");
    four.query("INSERT INTO d.temp SELECT a + 1, b FROM d.other").expect("rows");
    let error = cluster.session(4).query("SELECT * FROM d.temp").expect_err("it is of another session");
    assert!(format!("{error:?}").contains("1146"), "{error:?}");
    // They survive the node with the sequencer, and its return.
    let lost = sequencer(&mut cluster);
    drop(one);
    cluster.kill(lost);
    wait_until("the rows are there", || {
        (four.query("SELECT COUNT(*) FROM d.temp").ok()?.rows[0][0].as_deref() == Some("20")).then_some(())
    });
    cluster.start(lost);
    cluster.await_rows(4, "the node is back", is_whole);
    cluster.await_address(lost);
    retry(&mut four, "INSERT INTO d.temp VALUES (1000, 1000)");
    assert_eq!([&mut four, &mut five].map(count), ["21", "30"].map(|it| Some(it.to_owned())));
    four.query("DROP TEMPORARY TABLE d.temp").expect("its table");
    // The tables of sessions that end, and those of a node that ends, are freed everywhere.
    drop(four);
    cluster.kill(5);
    for (node, before) in (1..).zip(&before) {
        wait_until("the tables are gone", || (value(&mut cluster, node, partitions) == *before).then_some(()));
    }
    // Nothing of them is on disk.
    let mut two = cluster.session(2);
    two.query("CREATE TEMPORARY TABLE d.temp SELECT * FROM d.t").expect("a table");
    [3, 1, 2, 4].into_iter().for_each(|node| cluster.kill(node));
    (1..=5).for_each(|node| cluster.start(node));
    cluster.await_address(4);
    cluster.await_rows(4, "the cluster is whole", is_whole);
    cluster.await_address(1);
    assert_eq!(value(&mut cluster, 1, partitions), before[0]);
    assert_eq!(value(&mut cluster, 4, "SELECT SUM(b) FROM d.t"), Some("2001000".to_owned()));
}
