//! The keys by which joins read the rows of a table.

use super::*;

/// The values of each read by keys: those of the index's columns, and the name of the index.
fn lookups(text: &str) -> Vec<String> {
    let dictionary = dictionary();
    let statement = parse(text.as_bytes()).expect(text).statement;
    let rows = |definition: &TableDefinition| Some(if *definition.name == *"u" { 100_000 } else { 10 });
    let planned = planned_with_rows(&dictionary, &statement, &[], &rows).expect(text).expect(text);
    let Plan::Tree(tree) = planned.plan.unhinted() else { panic!("{text}") };
    let mut found = Vec::new();
    tree.root.root.visit(&mut |node| {
        let tree::PlanNode::Join(_, _, plan) = node else { return };
        let Some(lookup) = &plan.lookup else { return };
        let leaf = &tree.leaves[lookup.leaf];
        let QueryPlan::Select(select) = &leaf.query else { panic!("{text}") };
        let definition = &select.table.definition;
        let name = |index: IndexId| definition.index(index).expect("the index exists").name.clone();
        let (parts, index) = match &select.path {
            AccessPath::PrimaryKeys(keys) => (&keys.alternatives[0], definition.primary().name.clone()),
            AccessPath::UniqueKeys { index, keys, .. } => (&keys.alternatives[0], name(*index)),
            AccessPath::Ranges { index, ranges, .. } => (&ranges.prefix, name(*index)),
            path => panic!("{path:?}"),
        };
        let values = parts.iter().map(|part| match part {
            KeyValues::One(_) => "value",
            KeyValues::Parameters(_) => "list",
            KeyValues::Parallel(_) => "parallel",
            KeyValues::List(_) | KeyValues::Null => "other",
        });
        assert_eq!(leaf.lists, lookup.keys.len());
        found.push(format!("{}.{index}: {}", leaf.alias, values.collect::<Vec<_>>().join(" ")));
    });
    found
}

#[test]
fn all_columns_of_a_key_are_looked_up_together() {
    for (text, expected) in [
        ("SELECT 1 FROM s STRAIGHT_JOIN u ON u.a = s.id AND u.b = s.k", "u.PRIMARY: parallel parallel"),
        ("SELECT 1 FROM s STRAIGHT_JOIN u ON u.b = s.k AND s.id = u.a", "u.PRIMARY: parallel parallel"),
        // A prefix of an index.
        ("SELECT 1 FROM s STRAIGHT_JOIN u ON u.n = s.id AND u.b = s.k + 1", "u.nb: parallel parallel"),
        ("SELECT 1 FROM s STRAIGHT_JOIN u ON u.a = s.id", "u.PRIMARY: list"),
        // Values of the table's own conditions.
        ("SELECT 1 FROM s STRAIGHT_JOIN u ON u.a = 7 AND u.b = s.k", "u.PRIMARY: value list"),
        ("SELECT 1 FROM s STRAIGHT_JOIN u ON u.a = s.id WHERE u.b = 7", "u.PRIMARY: list value"),
        // Lists of such conditions.
        ("SELECT 1 FROM s STRAIGHT_JOIN u ON u.a IN (7, 8) AND u.b = s.k", "u.PRIMARY: other list"),
        ("SELECT 1 FROM s STRAIGHT_JOIN u ON u.a = s.id WHERE u.b IN (7, 8)", "u.PRIMARY: list other"),
        ("SELECT 1 FROM s STRAIGHT_JOIN u ON u.a = s.id WHERE u.b IN (7)", "u.PRIMARY: list value"),
        // Outer joins, semijoins and antijoins.
        ("SELECT 1 FROM s LEFT JOIN u ON u.a = s.id AND u.b = s.k", "u.PRIMARY: parallel parallel"),
        ("SELECT 1 FROM s WHERE (k, id) IN (SELECT b, a FROM u)", "u.PRIMARY: parallel parallel"),
        (
            "SELECT 1 FROM s WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.a = s.id AND u.b = s.k)",
            "u.PRIMARY: parallel parallel",
        ),
        // Columns of different tables, and of tables that equalities connect.
        (
            "SELECT STRAIGHT_JOIN 1 FROM s CROSS JOIN one JOIN u ON u.a = s.id AND u.b = one.v",
            "u.PRIMARY: parallel parallel",
        ),
        // Numbers of other types have the position of their value among the keys.
        ("SELECT 1 FROM s STRAIGHT_JOIN u ON u.a = s.id * 1.5 AND u.b = s.k", "u.PRIMARY: parallel parallel"),
        ("SELECT 1 FROM one STRAIGHT_JOIN u ON u.a = one.id AND u.b = one.v", "u.PRIMARY: parallel parallel"),
        // Locking reads.
        ("SELECT 1 FROM s STRAIGHT_JOIN u ON u.a = s.id AND u.b = s.k FOR UPDATE", "u.PRIMARY: parallel parallel"),
    ] {
        assert_eq!(lookups(text), [expected], "{text}");
    }
}

#[test]
fn a_key_part_whose_comparison_the_index_does_not_make_is_not_looked_up() {
    for (text, expected) in [
        // A double is compared as one, and NULL equals NULL.
        ("SELECT 1 FROM s STRAIGHT_JOIN u ON u.a = s.id AND u.b = s.k + 0e0", "u.PRIMARY: list"),
        ("SELECT 1 FROM s STRAIGHT_JOIN u ON u.a = s.id AND u.b <=> s.k", "u.PRIMARY: list"),
        ("SELECT 1 FROM s STRAIGHT_JOIN u ON u.a = s.id AND u.b > s.k", "u.PRIMARY: list"),
        // Bytes are compared as bytes.
        ("SELECT 1 FROM s STRAIGHT_JOIN u ON u.x = s.c AND u.b = s.k", "u.xx: list"),
    ] {
        assert_eq!(lookups(text), [expected], "{text}");
    }
    for text in [
        "SELECT 1 FROM s STRAIGHT_JOIN u ON u.email = s.c COLLATE utf8mb4_bin AND u.b = s.k",
        // The second column of an index alone, and all columns of a hash index but one.
        "SELECT 1 FROM s STRAIGHT_JOIN u ON u.b = s.k",
        "SELECT 1 FROM s STRAIGHT_JOIN h ON h.id = s.k + 0e0",
        "SELECT 1 FROM s STRAIGHT_JOIN u IGNORE INDEX (PRIMARY) ON u.a = s.id AND u.b = s.k",
    ] {
        assert_eq!(lookups(text), [""; 0], "{text}");
    }
}
