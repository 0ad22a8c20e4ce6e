//! Alterations of tables that foreign keys join, at the same time.

use super::*;

#[test]
fn alterations_of_related_tables_do_not_wait_for_each_other() {
    const KEY_OF_C: &str = "ALTER TABLE d.c ADD KEY v (v), ADD CONSTRAINT cx FOREIGN KEY (v) REFERENCES d.x (id)";
    const KEY_OF_P: &str = "ALTER TABLE d.p ADD KEY v (v), ADD CONSTRAINT py FOREIGN KEY (v) REFERENCES d.y (id)";
    const C_TO_P: &str = "ALTER TABLE d.c ADD KEY v (v), ADD CONSTRAINT cp FOREIGN KEY (v) REFERENCES d.p (id)";
    const P_TO_C: &str = "ALTER TABLE d.p ADD KEY v (v), ADD CONSTRAINT pc FOREIGN KEY (v) REFERENCES d.c (id)";
    const INDEX_OF_C: &str = "ALTER TABLE d.c ADD UNIQUE KEY u (w), DROP INDEX w";
    const INDEX_OF_P: &str = "ALTER TABLE d.p ADD UNIQUE KEY u (w), RENAME INDEX w TO r";
    for (pair, refused) in [([KEY_OF_C, KEY_OF_P], true), ([C_TO_P, P_TO_C], true), ([INDEX_OF_C, INDEX_OF_P], false)] {
        for seed in 0..8 {
            let mut node = Node::new(RECEIVERS, NodeConfig::default());
            (1..5).for_each(|connection| node.open(connection, false));
            node.execute(4, &["CREATE DATABASE d", "CREATE TABLE d.q (id INT PRIMARY KEY)"]);
            node.execute(4, &["CREATE TABLE d.x (id INT PRIMARY KEY)", "CREATE TABLE d.y (id INT PRIMARY KEY)"]);
            let columns = "id INT PRIMARY KEY, q INT, p INT, v INT, w INT, KEY q (q), KEY p (p), KEY w (w)";
            let to_q = "FOREIGN KEY (q) REFERENCES d.q (id)";
            node.execute(4, &[&format!("CREATE TABLE d.p ({columns}, CONSTRAINT pq {to_q})")]);
            let to_p = "CONSTRAINT c_p FOREIGN KEY (p) REFERENCES d.p (id)";
            node.execute(4, &[&format!("CREATE TABLE d.c ({columns}, CONSTRAINT cq {to_q}, {to_p})")]);
            for table in ["q", "x", "y"] {
                node.execute(4, &[&format!("INSERT INTO d.{table} VALUES (1), (2)")]);
            }
            for table in ["p", "c"] {
                node.execute(4, &[&format!("INSERT INTO d.{table} VALUES (1, 1, NULL, 1, 1), (2, 2, 1, 2, 2)")]);
            }
            node.shuffle(seed);
            // Both wait for who has written to a parent that they share, and then for main alone.
            node.execute(3, &["BEGIN", "INSERT INTO d.q VALUES (3)"]);
            node.begin_query(1, pair[0]);
            node.begin_query(2, pair[1]);
            node.run();
            assert_eq!((node.answer(1), node.answer(2)), (None, None), "seed {seed}");
            node.execute(3, &["COMMIT"]);
            assert_eq!((node.rows(1), node.rows(2)), (Vec::new(), Vec::new()), "seed {seed}: {pair:?}");
            for table in ["p", "c"] {
                let answer = node.query(4, &format!("INSERT INTO d.{table} VALUES (3, 3, NULL, 9, 3)"));
                assert_eq!(!answer.is_empty(), refused, "seed {seed}: {answer:?}");
                let answer = node.query(4, &format!("INSERT INTO d.{table} VALUES (4, 3, 1, 1, 4)"));
                assert_eq!(answer, Vec::<String>::new());
            }
            assert_eq!(node.held(), 4, "sessions are all that is held");
        }
    }
}
