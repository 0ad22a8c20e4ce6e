//! The conditions on derived tables that the reads of their tables test.

use super::*;

/// How each table of a query is read: the alias, and the path with the number of bound columns.
fn reads(text: &str) -> String {
    let dictionary = dictionary();
    let Planned { plan, .. } = planned(&dictionary, text).expect(text).expect(text);
    let Plan::Tree(tree) = plan.unhinted() else { panic!("{text}") };
    let mut found = Vec::new();
    let mut lookups = 0;
    tree.root.root.visit(&mut |node| {
        if let tree::PlanNode::Join(_, _, plan) = node {
            lookups += usize::from(plan.lookup.is_some());
        }
        let tree::PlanNode::Scan(leaf) = node else { return };
        let leaf = &tree.leaves[*leaf];
        let QueryPlan::Select(select) = &leaf.query else { panic!("{text}") };
        let path = match &select.path {
            AccessPath::PrimaryKeys(_) => "key".into(),
            AccessPath::UniqueKeys { .. } => "unique key".into(),
            AccessPath::Ranges { ranges, .. } => format!("range {}", ranges.prefix.len()),
            AccessPath::AllRows(_) => "all".into(),
            AccessPath::Nothing => "nothing".into(),
        };
        let filter = if select.program.filter.is_some() { " filtered" } else { "" };
        found.push(format!("{} {path}{filter}", leaf.alias));
    });
    assert_eq!(tree.leaves.len(), found.len() + lookups, "no other read is planned: {text}");
    found.join(", ")
}

#[test]
fn conditions_pass_groups_windows_and_set_operations() {
    for (text, expected) in [
        ("SELECT * FROM (SELECT k, COUNT(*) n FROM s GROUP BY k) d WHERE k = 5", "s range 1"),
        ("SELECT * FROM (SELECT k, COUNT(*) n FROM s GROUP BY k HAVING n > 1) d WHERE k IN (5, 6)", "s range 1"),
        ("SELECT * FROM (SELECT a, b, COUNT(*) n FROM u GROUP BY a, b) d WHERE b = 5 AND n > 1 AND a = 4", "u key"),
        ("SELECT * FROM (SELECT DISTINCT k FROM s) d WHERE k BETWEEN 5 AND 9", "s range 0"),
        ("SELECT * FROM (SELECT id, c FROM s) d WHERE id = 5 OR id = 7", "s key"),
        (
            "SELECT * FROM (SELECT k, ROW_NUMBER() OVER (PARTITION BY k ORDER BY id) n FROM s) d WHERE n = 1 AND k = 5",
            "s range 1",
        ),
        ("SELECT * FROM (SELECT k FROM s UNION ALL SELECT v FROM one) d WHERE k = 5", "s range 1, one range 1"),
        ("SELECT * FROM (SELECT k FROM s UNION SELECT b FROM u) d WHERE k = 5", "s range 1, u all filtered"),
        ("SELECT * FROM (SELECT k FROM s EXCEPT SELECT v FROM one) d WHERE k > 5", "s range 0, one range 0"),
        // Queries inside queries, and tables of WITH.
        (
            "SELECT * FROM (SELECT k, SUM(n) FROM (SELECT k, id, COUNT(*) n FROM s GROUP BY k, id) e GROUP BY k) d WHERE k = 5",
            "s range 1",
        ),
        ("WITH d AS (SELECT k, COUNT(*) n FROM s GROUP BY k) SELECT * FROM d WHERE k = 5", "s range 1"),
        (
            "WITH d AS (SELECT k, COUNT(*) n FROM s GROUP BY k) SELECT * FROM d x, d y WHERE x.k = 5 AND y.n = 2",
            "s all, s range 1",
        ),
        // Joins: of a condition of ON, and of a table whose rows are kept.
        (
            "SELECT * FROM one LEFT JOIN (SELECT k, COUNT(*) n FROM s GROUP BY k) d ON d.n = one.id AND d.k = 5",
            "one all, s range 1",
        ),
        (
            "SELECT * FROM (SELECT k, COUNT(*) n FROM s GROUP BY k) d LEFT JOIN one ON d.n = one.id WHERE d.k = 5",
            "s range 1, one all",
        ),
        (
            "SELECT * FROM (SELECT u.n, COUNT(*) c FROM s JOIN u ON u.a = s.k GROUP BY u.n) d WHERE n = 5",
            "u range 1, s all",
        ),
        // Text in its own collation.
        ("SELECT * FROM (SELECT email, COUNT(*) FROM u GROUP BY email) d WHERE email = 'x'", "u unique key filtered"),
        // One of two conditions.
        ("SELECT * FROM (SELECT k, c FROM s GROUP BY k, c) d WHERE c LIKE 'a%' AND k = 5", "s range 1"),
    ] {
        assert_eq!(reads(text), expected, "{text}");
    }
}

#[test]
fn conditions_that_would_change_the_rows_do_not_pass() {
    for (text, expected) in [
        ("SELECT * FROM (SELECT k, COUNT(*) n FROM s GROUP BY k) d WHERE n = 5", "s all"),
        ("SELECT * FROM (SELECT k, COUNT(*) n FROM s GROUP BY k WITH ROLLUP) d WHERE k = 5", "s all"),
        ("SELECT * FROM (SELECT MAX(k) k FROM s) d WHERE k = 5", "s all"),
        ("SELECT * FROM (SELECT k FROM s LIMIT 3) d WHERE k = 5", "s all"),
        ("SELECT * FROM (SELECT k, ROW_NUMBER() OVER (ORDER BY id) n FROM s) d WHERE k = 5", "s all"),
        (
            "SELECT * FROM (SELECT k, id, RANK() OVER (PARTITION BY k ORDER BY id) n, COUNT(*) OVER (PARTITION BY id) \
             FROM s) d WHERE k = 5",
            "s all",
        ),
        // A value of a group that other rows of the group do not have.
        ("SELECT * FROM (SELECT email, COUNT(*) FROM u GROUP BY email) d WHERE email LIKE 'x'", "u all"),
        (
            "SELECT * FROM (SELECT email, COUNT(*) FROM u GROUP BY email) d WHERE email = 'x' COLLATE utf8mb4_bin",
            "u all",
        ),
        ("SELECT * FROM (SELECT d, COUNT(*) FROM u GROUP BY d) d WHERE d = 0", "u all"),
        // A value that is computed, or converted, or fails.
        ("SELECT * FROM (SELECT k + 1 k FROM s GROUP BY k + 1) d WHERE k = 5", "s all"),
        ("SELECT * FROM (SELECT k FROM s UNION SELECT d FROM u) d WHERE k = 5", "s all, u all"),
        ("SELECT * FROM (SELECT k FROM s GROUP BY k) d WHERE 1 / k = 5", "s all"),
        // Rows that only NULL follows.
        (
            "SELECT * FROM one LEFT JOIN (SELECT k, COUNT(*) n FROM s GROUP BY k) d ON d.n = one.id WHERE d.k IS NULL",
            "one all, s all",
        ),
        // Conditions on several tables, and those that assign.
        (
            "SELECT * FROM (SELECT k, COUNT(*) n FROM s GROUP BY k) d JOIN one WHERE d.k = 5 OR one.v = 5",
            "one all, s all",
        ),
        ("SELECT * FROM (SELECT k, @x := k FROM s) d WHERE k = 5", "s all"),
    ] {
        assert_eq!(reads(text), expected, "{text}");
    }
}

#[test]
fn the_queries_of_a_deep_query_are_planned_a_bounded_number_of_times() {
    let mut text = "SELECT k FROM s".to_owned();
    for depth in 0..14 {
        text = format!("SELECT k FROM ({text} GROUP BY k) d{depth} WHERE k < {}", 20 - depth);
    }
    assert_eq!(reads(&text), "s all");
    let text = "SELECT k FROM (SELECT k FROM (SELECT k FROM s GROUP BY k) a) b WHERE k = 5";
    assert_eq!(reads(text), "s range 1");
}

#[test]
fn the_queries_of_deep_subqueries_are_planned_a_bounded_number_of_times() {
    let dictionary = dictionary();
    for (begin, end, depth) in [("d.k <= ", "", 22), ("d.k IN (", ")", 10), ("EXISTS ", "", 22)] {
        let mut text = "0".to_owned();
        for _ in 0..depth {
            text = format!(
                "(SELECT COUNT(*) n FROM (SELECT k FROM s GROUP BY k) d WHERE d.k = 1 AND {begin}{}{end})",
                if text == "0" { "(SELECT 0)" } else { &text }
            );
        }
        planned(&dictionary, &format!("SELECT {text}")).expect(begin);
    }
    // A query of a subquery has the conditions of the subquery.
    let text = "SELECT (SELECT COUNT(*) FROM (SELECT k FROM s GROUP BY k) d WHERE d.k = 5)";
    let Planned { plan, .. } = planned(&dictionary, text).expect(text).expect(text);
    let Plan::Tree(tree) = plan.unhinted() else { panic!("{text}") };
    let [leaf] = &tree.leaves[..] else { panic!("{text}") };
    let QueryPlan::Select(select) = &leaf.query else { panic!("{text}") };
    assert!(matches!(&select.path, AccessPath::Ranges { ranges, .. } if ranges.prefix.len() == 1));
}
