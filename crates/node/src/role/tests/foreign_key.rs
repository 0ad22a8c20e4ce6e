//! Concurrent alterations of tables that foreign keys connect.

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
            let mut node = Node::new(TWO_RECV_THREADS, NodeConfig::default());
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
            // Both alterations wait for the transaction that has written to their common parent. After that
            // they wait only for main.
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
            assert_eq!(node.resources_held(), 4, "only sessions hold resources");
        }
    }
}

#[test]
fn a_foreign_key_is_added_while_nobody_writes_to_its_tables() {
    const ADD: &str = "ALTER TABLE d.c ADD UNIQUE KEY u (v), ADD CONSTRAINT k FOREIGN KEY (pid) REFERENCES d.p (id)";
    for seed in 0..20 {
        let mut node = Node::new(TWO_RECV_THREADS, NodeConfig::default());
        (1..5).for_each(|connection| node.open(connection, false));
        node.execute(1, &["CREATE DATABASE d", "CREATE TABLE d.p (id INT PRIMARY KEY, n INT)"]);
        node.execute(1, &["CREATE TABLE d.c (id INT PRIMARY KEY, pid INT, v INT)"]);
        node.execute(1, &["INSERT INTO d.p VALUES (1, 1), (2, 2)", "INSERT INTO d.c VALUES (1, 1, 1), (2, 2, 2)"]);
        node.shuffle(seed);
        // The alteration waits for the transaction that has written to the parent. If it is stopped
        // meanwhile, it leaves nothing behind.
        node.execute(2, &["BEGIN", "DELETE FROM d.p WHERE id = 2"]);
        node.begin_query(1, ADD);
        node.run();
        assert_eq!(node.answer(1), None);
        assert_eq!(node.query(3, "SELECT v FROM d.c WHERE id = 1"), ["1"], "readers go on");
        node.begin_query(3, "INSERT INTO d.c VALUES (3, 9, 9)");
        node.begin_query(4, "TRUNCATE TABLE d.c");
        node.run();
        assert_eq!((node.answer(3), node.answer(4)), (None, None));
        node.execute(2, &["KILL QUERY 4", "KILL QUERY 1"]);
        assert_eq!(node.rows(1), ["#70100Query execution was interrupted"], "seed {seed}");
        assert_eq!(node.rows(4), ["#70100Query execution was interrupted"], "seed {seed}");
        assert_eq!(node.rows(3), Vec::<String>::new());
        node.execute(
            3,
            &["DELETE FROM d.c WHERE id = 3", "INSERT INTO d.c VALUES (3, 1, 1)", "UPDATE d.c SET v = 3 WHERE id = 3"],
        );
        // The parent is dropped before the alteration starts.
        node.begin_query(1, ADD);
        node.run();
        node.execute(2, &["COMMIT"]);
        let refused = node.rows(1);
        assert!(refused[0].starts_with("#23000Cannot add or update a child row"), "{refused:?}");
        node.execute(1, &["INSERT INTO d.p VALUES (2, 2)"]);
        node.begin_query(1, ADD);
        for (connection, text) in [(2, "DELETE FROM d.p WHERE id = 2"), (3, "INSERT INTO d.c VALUES (4, 7, 7)")] {
            node.begin_query(connection, text);
        }
        node.run();
        let (added, deleted, inserted) = (node.rows(1), node.rows(2), node.rows(3));
        let is_refused = |answer: &[String]| !answer.is_empty();
        let children = node.query(1, "SELECT pid FROM d.c ORDER BY id");
        // The deletion and the insertion each preceded the foreign key or were checked by it.
        match is_refused(&added) {
            true => assert!(!is_refused(&deleted) || !is_refused(&inserted), "seed {seed}: {added:?}"),
            false => {
                assert!(is_refused(&deleted) && is_refused(&inserted), "seed {seed}: {deleted:?} {inserted:?}");
                assert_eq!(children, ["1", "2", "1"]);
            }
        }
        assert_eq!(node.resources_held(), 4, "only sessions hold resources");
    }
}
