//! Statistics of tables: what they change, what never looks at them, and how they follow the tables.

use super::*;

fn node() -> Node {
    let mut node = Node::new(TWO_RECV_THREADS, NodeConfig::default());
    (1..4).for_each(|connection| node.open(connection, false));
    node.advance_seconds(1_000);
    node.execute(1, &["CREATE DATABASE d"]);
    (1..4).for_each(|connection| node.execute(connection, &["USE d"]));
    node
}

/// A node with a table whose column k has one frequent value, and a column a with two values.
fn node_with_tables() -> Node {
    let mut node = node();
    node.execute(1, &["CREATE TABLE t (id INT PRIMARY KEY, k INT, a INT, b INT, KEY (a, k), KEY (b), KEY (k))"]);
    node.execute(1, &["CREATE TABLE u (id INT PRIMARY KEY, g INT)"]);
    let of_t = |id: u32| {
        let k = if id.is_multiple_of(10) { id } else { 5 };
        format!("({id}, {k}, {}, {})", id % 2, id / 2)
    };
    fill(&mut node, "t", 0..2000, &of_t);
    fill(&mut node, "u", 0..300, &|id| format!("({id}, {})", id % 100));
    node
}

fn fill(node: &mut Node, table: &str, ids: std::ops::Range<u32>, row: &dyn Fn(u32) -> String) {
    let rows: Vec<String> = ids.map(row).collect();
    for part in rows.chunks(500) {
        node.execute(1, &[&format!("INSERT INTO {table} VALUES {}", part.join(","))]);
    }
}

fn analyze(node: &mut Node, table: &str) {
    // The harness shows the first column.
    assert_eq!(node.query(1, &format!("SELECT COUNT(*) >= 0 FROM {table}")), ["1"]);
    node.begin_query(1, &format!("ANALYZE TABLE {table}"));
    node.run();
    let answer = String::from_utf8_lossy(&node.answer(1).expect("an answer")).into_owned();
    assert!(answer.contains("OK"), "{answer}");
}

/// The alias of the table that a join reads first.
fn plan(node: &mut Node, text: &str) -> String {
    node.query(1, &format!("EXPLAIN FORMAT=TREE {text}")).join("\n")
}

fn cardinality(node: &mut Node, index: &str) -> Vec<String> {
    let columns = "IFNULL(CARDINALITY, 'NULL')";
    let text = format!(
        "SELECT {columns} FROM information_schema.STATISTICS WHERE INDEX_NAME = '{index}' ORDER BY SEQ_IN_INDEX"
    );
    node.query(2, &text)
}

/// How often statistics were read or changed.
fn accesses(node: &Node) -> u64 {
    node.shared.settings.statistics.accesses()
}

#[test]
fn a_sample_changes_the_order_of_a_join() {
    let mut node = node_with_tables();
    let join = |k: u32| format!("SELECT COUNT(*) FROM t JOIN u ON u.id = t.b WHERE t.k = {k} AND u.g < 3");
    let [frequent, rare] = [join(5), join(70)];
    let answers = [node.query(1, &frequent), node.query(1, &rare)];
    let before = plan(&mut node, &frequent);
    assert_eq!(before, plan(&mut node, &rare).replace("= 70", "= 5"));
    analyze(&mut node, "t");
    analyze(&mut node, "u");
    let [of_frequent, of_rare] = [plan(&mut node, &frequent), plan(&mut node, &rare)];
    assert_ne!(of_frequent, of_rare.replace("= 70", "= 5"));
    let reads_first = |plan: &str| plan.find(" on u").expect("u") < plan.find(" on t").expect("t");
    assert!(reads_first(&of_frequent) != reads_first(&of_rare), "{of_frequent}\n{of_rare}");
    assert_eq!([node.query(1, &frequent), node.query(1, &rare)], answers);
}

#[test]
fn an_index_is_chosen_by_statistics() {
    let mut node = node_with_tables();
    // Two bound columns count for more than one, until a sample shows that their values are frequent.
    let text = "SELECT id FROM t WHERE a = 1 AND k = 5 AND b = 77";
    let key = |node: &mut Node| plan(node, text);
    let expected = node.query(1, text);
    assert!(key(&mut node).contains("using a,"), "{}", key(&mut node));
    node.execute(
        2,
        &["PREPARE p FROM 'SELECT id FROM t WHERE a = ? AND k = ? AND b = ?'", "SET @a = 1, @k = 5, @b = 77"],
    );
    let execute = "EXECUTE p USING @a, @k, @b";
    assert_eq!(node.query(2, execute), expected);
    // The numbers of plans that an execution makes, apart from that of the query of the counter.
    let plans_of = |node: &mut Node| {
        let text = "SELECT SUM(value) FROM junctor_info.counters WHERE name = 'plans' AND module = 'sql'";
        let mut count = || -> u64 { node.query(3, text)[0].parse().expect("a number") };
        let (first, second) = (count(), count());
        assert_eq!(node.query(2, execute), expected);
        let count = node.query(3, text)[0].parse::<u64>().expect("a number");
        count - second - (second - first)
    };
    assert_eq!(plans_of(&mut node), 0);
    analyze(&mut node, "t");
    assert!(key(&mut node).contains("using b,"), "{}", key(&mut node));
    assert_eq!(plans_of(&mut node), 0);
    // Within a second every session has a new plan.
    node.advance_seconds(1);
    assert_eq!([plans_of(&mut node), plans_of(&mut node)], [1, 0]);
}

#[test]
fn point_selects_and_cached_plans_do_not_look_at_statistics() {
    let mut node = node_with_tables();
    analyze(&mut node, "t");
    analyze(&mut node, "u");
    node.execute(2, &["PREPARE p FROM 'SELECT k FROM t WHERE id = ?'", "SET @id = 20"]);
    let cached = [
        "SELECT k FROM t WHERE id = 20",
        "SELECT COUNT(*) FROM t WHERE a = 1 AND k = 5 AND b = 7",
        "SELECT COUNT(*) FROM t JOIN u ON u.id = t.b WHERE t.k = 30",
    ];
    let run = |node: &mut Node| {
        let before = accesses(node);
        for _ in 0..5 {
            assert_eq!(node.query(2, "EXECUTE p USING @id"), ["20"]);
            cached.iter().for_each(|text| assert_eq!(node.query(2, text).len(), 1, "{text}"));
        }
        accesses(node) - before
    };
    assert!(run(&mut node) > 0, "plans are made by statistics");
    // The plan of the join compares its statistics with the present ones once, and then knows their version.
    run(&mut node);
    assert_eq!(run(&mut node), 0);
    let before = accesses(&node);
    assert_eq!(node.query(2, "SELECT a FROM t WHERE id = 77"), ["1"]);
    node.execute(2, &["UPDATE t SET k = 5 WHERE id = 77"]);
    assert_eq!(accesses(&node), before, "the plan of a whole key needs no statistics either");
}

#[test]
fn tables_are_sampled_again_as_they_change() {
    let mut node = node_with_tables();
    let join = "SELECT COUNT(*) FROM t JOIN u ON u.id = t.b WHERE u.g = 3";
    let sampled = |node: &mut Node| {
        // The first use learns the numbers of rows, a later one asks for the sample.
        for _ in 0..4 {
            node.query(1, join);
            node.advance_seconds(2);
        }
        cardinality(node, "b")
    };
    node.execute(1, &["SET GLOBAL innodb_stats_auto_recalc = OFF"]);
    assert_eq!(sampled(&mut node), ["NULL"]);
    node.execute(1, &["SET GLOBAL innodb_stats_auto_recalc = ON"]);
    assert_eq!(sampled(&mut node), ["1000"]);
    assert_eq!(cardinality(&mut node, "a"), ["2", "202"]);
    node.advance_seconds(20);
    let accessed = accesses(&node);
    node.query(1, join);
    node.advance_seconds(2);
    assert!(accesses(&node) - accessed <= 8, "a table that has not changed is not sampled");
    fill(&mut node, "t", 2000..3000, &|id| format!("({id}, {id}, 7, {id})"));
    assert_eq!(sampled(&mut node), ["2000"]);
    assert_eq!(cardinality(&mut node, "a"), ["3", "1202"]);
    let held = |host: &NodeHost| host.sql().map_or(0, |sql| sql.held().iter().map(|(_, count)| count).sum());
    let sessions: usize = node.hosts.iter().map(held).sum();
    assert_eq!(sessions, 3, "only the sessions of clients are left");
    assert_eq!(node.shared.settings.query_resources.memory(), 0);
}

#[test]
fn a_large_table_is_not_read_whole() {
    let mut node = node();
    // A sample has fewer rows of a table with many columns.
    let columns: String = (0..60).map(|number| format!(", c{number} INT DEFAULT {number}")).collect();
    node.execute(1, &[&format!("CREATE TABLE n (id INT PRIMARY KEY, k INT, s VARCHAR(20){columns}, KEY (k))")]);
    node.execute(1, &["SET cte_max_recursion_depth = 1000000"]);
    let numbers = "INSERT INTO n (id, k, s) WITH RECURSIVE c AS (SELECT 1 x UNION ALL SELECT x + 1 FROM c WHERE \
                   x < 10000) SELECT x, x % 1000, CONCAT('n', x % 50) FROM c";
    node.execute(1, &[numbers]);
    node.begin_query(1, "ANALYZE TABLE n UPDATE HISTOGRAM ON k WITH 16 BUCKETS");
    node.run();
    node.answer(1).expect("an answer");
    let member = |name: &str| {
        format!("SELECT JSON_EXTRACT(HISTOGRAM, '$.\"{name}\"') FROM information_schema.COLUMN_STATISTICS")
    };
    let rate: f64 = node.query(1, &member("sampling-rate"))[0].parse().expect("a number");
    assert!((0.2..0.3).contains(&rate), "{rate}");
    let distinct: f64 = cardinality(&mut node, "k")[0].parse().expect("a number");
    assert!((800.0..1300.0).contains(&distinct), "{distinct}");
    assert_eq!(node.query(1, &member("histogram-type")), ["\"equi-height\""]);
    assert_eq!(node.shared.settings.query_resources.memory(), 0);
}

#[test]
fn a_join_looks_up_the_key_that_the_fewest_rows_have_if_any() {
    let mut node = node_with_tables();
    for (table, key) in [("w", "a, b"), ("x", "b, a")] {
        node.execute(1, &[&format!("CREATE TABLE {table} (a INT, b INT, PRIMARY KEY ({key}))")]);
        fill(&mut node, table, 0..2000, &|id| format!("({}, {})", id % 2, id / 2));
    }
    ["t", "w", "x"].iter().for_each(|table| analyze(&mut node, table));
    let join = |table: &str| format!("SELECT COUNT(*) FROM t JOIN {table} USING (a, b) WHERE t.id < 150");
    // A lookup by `a` would read half of the table for each batch of rows.
    let both = "by a list of keys of 2 columns";
    assert!(plan(&mut node, &join("w")).contains(both), "{}", plan(&mut node, &join("w")));
    assert!(plan(&mut node, &join("x")).contains(both), "{}", plan(&mut node, &join("x")));
    assert_eq!(node.query(1, &join("w")), node.query(1, &join("x")));
}
