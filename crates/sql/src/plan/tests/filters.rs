//! The sides of hash joins, and the scans that leave out rows without a partner.

use super::*;

/// The scans of a query from left to right. A star marks those that a join filters.
fn scans(text: &str) -> String {
    let dictionary = dictionary();
    let statement = parse(text.as_bytes()).expect(text).statement;
    let rows = |definition: &TableDefinition| match &*definition.name {
        "s" => Some(350_000),
        "u" => Some(100_000),
        "h" => Some(2_000),
        _ => Some(10),
    };
    let planned = planned_with_rows(&dictionary, &statement, &[], &rows).expect(text).expect(text);
    let Plan::Tree(tree) = planned.plan.unhinted() else { panic!("{text}") };
    let mut found = Vec::new();
    tree.root.root.visit(&mut |node| {
        if let tree::PlanNode::Scan(leaf) = node {
            let leaf = &tree.leaves[*leaf];
            found.push(format!("{}{}", leaf.alias, if leaf.key_filters > 0 { "*" } else { "" }));
        }
    });
    found.join(" ")
}

#[test]
fn a_large_table_that_is_joined_last_is_filtered_by_the_keys_of_the_others() {
    let conditions = "u.b + 0 = h.w AND u.a + 0 = one.v AND h.id = 5";
    let from = "SELECT 1 FROM u, h, one, s IGNORE INDEX (PRIMARY)";
    // The other rows are few, and each row of s has one value of the key.
    let found = scans(&format!("{from} WHERE s.id = u.n AND {conditions}"));
    assert!(found.starts_with("s* "), "{found}");
    // Statements that want an order get it.
    let found = scans(&format!("SELECT STRAIGHT_JOIN 1{} WHERE s.id = u.n AND {conditions}", &from[8..]));
    assert!(found.ends_with(" s"), "{found}");
    // Locking reads take all rows.
    let found = scans(&format!("{from} WHERE s.id = u.n AND {conditions} FOR UPDATE"));
    assert!(!found.contains('*'), "{found}");
}
