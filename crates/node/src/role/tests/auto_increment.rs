//! The numbers of AUTO_INCREMENT columns that answers have.

use super::*;

#[test]
fn the_answer_of_an_update_of_a_duplicate_has_its_number() {
    let mut node = Node::new(TWO_RECV_THREADS, NodeConfig::default());
    node.open(1, false);
    node.execute(1, &["CREATE DATABASE d"]);
    for kind in ["INT", "BIGINT UNSIGNED", "FLOAT", "DOUBLE"] {
        let table = format!("CREATE TABLE d.n (id {kind} AUTO_INCREMENT PRIMARY KEY, v INT)");
        node.execute(1, &[&table, "INSERT INTO d.n VALUES (7, 1)"]);
        node.begin_query(1, "INSERT INTO d.n VALUES (7, 1) ON DUPLICATE KEY UPDATE v = 2");
        node.run();
        // OK, two affected rows, the number.
        assert_eq!(node.answer(1).expect("an answer")[4..7], [0, 2, 7], "{kind}");
        node.execute(1, &["DROP TABLE d.n"]);
    }
}
