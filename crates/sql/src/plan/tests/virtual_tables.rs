//! The planner passes columns and equalities of a query to the providers of virtual tables.

use std::cell::RefCell;

use junctor_model::row_encoding::ResultColumn;
use junctor_model::schema::ColumnDefinition;

use super::*;

/// Provides tables with the columns `s`, `n` and `v`, and notes the reads: the table, the columns that are
/// read, and the equalities.
#[derive(Default)]
struct Notes(RefCell<Vec<String>>);

const COLUMNS: [&str; 3] = ["s", "n", "v"];

impl VirtualTables for Notes {
    fn columns(&self, _: &str, _: &str) -> Option<Vec<ResultColumn>> {
        let column = |name: &str| {
            let definition = ColumnDefinition::new(name, DataType::varchar(64, CollationId::UTF8MB4_BIN));
            ResultColumn::of_definition(&definition)
        };
        let insensitive = ColumnDefinition::new("v", DataType::varchar(64, CollationId::UTF8MB4_GENERAL_CI));
        Some(vec![column("s"), column("n"), ResultColumn::of_definition(&insensitive)])
    }

    fn rows(&self, read: &VirtualRead) -> ComputeSource {
        let name = |column: u16| COLUMNS[usize::from(column)];
        let value = |value: &NameValue| match value {
            NameValue::Text(text) => String::from_utf8_lossy(text).into_owned(),
            NameValue::Parameter(number) => format!("?{number}"),
        };
        let equality = |equality: &VirtualEquality| {
            let values: Vec<String> = equality.values.iter().map(value).collect();
            format!(" {} = {}", name(equality.column), values.join("|"))
        };
        let mut columns = read.columns.clone();
        columns.sort_unstable();
        let columns: Vec<&str> = columns.into_iter().map(name).collect();
        let mut equalities: Vec<String> = read.equalities.iter().map(equality).collect();
        equalities.sort();
        let note = format!("{} ({}){}", read.source.name, columns.join(" "), equalities.join(","));
        self.0.borrow_mut().push(note);
        ComputeSource::Rows(Vec::new())
    }
}

/// The reads of a statement, sorted.
fn reads(text: &str, kinds: &[ParameterKind]) -> Vec<String> {
    let dictionary = Dictionary::default();
    let notes = Notes::default();
    let parsed = parse(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"));
    planned_with(&dictionary, &parsed.statement, kinds, &|_| None, &notes)
        .unwrap_or_else(|error| panic!("{text}: {error}"));
    let mut reads = notes.0.into_inner();
    reads.sort();
    reads
}

fn of_schema(text: &str) -> Vec<String> {
    reads(&text.replace("i.", "information_schema."), &[])
}

#[test]
fn equalities_of_one_table_reach_its_provider() {
    assert_eq!(of_schema("SELECT v FROM i.a WHERE s = 'x' AND 'y' = n"), ["a (s n v) n = y, s = x"]);
    assert_eq!(of_schema("SELECT 1 FROM i.a WHERE s IN ('x', NULL, 'y')"), ["a (s) s = x|y"]);
    assert_eq!(of_schema("SELECT COUNT(n) FROM i.a WHERE s = NULL"), ["a (s n) s = "]);
    assert_eq!(of_schema("SELECT 1 FROM i.a WHERE BINARY s = 'x'"), ["a (s) s = x"]);
    assert_eq!(of_schema("SELECT 1 FROM i.a WHERE s LIKE 'a\\\\_b' AND n LIKE 'y'"), ["a (s n) n = y, s = a_b"]);
    let text = ParameterKind::exactly(ResultType::string(
        CollationId::UTF8MB4_GENERAL_CI,
        junctor_expression::Coercibility::Coercible,
        10,
    ));
    assert_eq!(reads("SELECT 1 FROM information_schema.a WHERE s = ? AND v = ?", &[text, text]), ["a (s v) s = ?0"]);
}

#[test]
fn other_conditions_do_not() {
    for condition in [
        "s = 'x' OR n = 'y'",
        "NOT s = 'x'",
        "s LIKE 'x%'",
        "s LIKE 'x_'",
        "s NOT LIKE 'x'",
        "v LIKE 'x'",
        "s = n",
        "s > 'x'",
        "s NOT IN ('x')",
        "s IN ('x', n)",
        "v = 'x'",
        "s COLLATE utf8mb4_general_ci = 'x'",
        "s = 'x' COLLATE utf8mb4_general_ci",
        "CONCAT(s) = 'x'",
        "s = 1",
    ] {
        let reads = of_schema(&format!("SELECT s, n, v FROM i.a WHERE {condition}"));
        assert_eq!(reads, ["a (s n v)"], "{condition}");
    }
}

#[test]
fn equalities_pass_through_joins_queries_and_unions() {
    let joined = "SELECT a.v FROM i.a JOIN i.b ON a.s = b.s AND a.n = b.n WHERE a.s = 'x'";
    assert_eq!(of_schema(joined), ["a (s n v) s = x", "b (s n) s = x"]);
    let outer = "SELECT a.v FROM i.a LEFT JOIN i.b ON a.s = b.s AND b.n = 'y' WHERE a.s = 'x'";
    assert_eq!(of_schema(outer), ["a (s v) s = x", "b (s n) n = y, s = x"]);
    let derived = "SELECT v FROM (SELECT v, s FROM i.a) AS d WHERE s = 'x'";
    assert_eq!(of_schema(derived), ["a (s v) s = x"]);
    let union = "SELECT 1 FROM i.a WHERE s = 'x' UNION SELECT 2 FROM i.b WHERE n = 'y'";
    assert_eq!(of_schema(union), ["a (s) s = x", "b (n) n = y"]);
}

#[test]
fn the_right_side_of_a_left_join_does_not_choose_the_left_rows() {
    let outer = "SELECT a.v FROM i.a LEFT JOIN i.b ON a.s = b.s AND b.s = 'x' AND a.s = 'y'";
    assert_eq!(of_schema(outer)[0], "a (s v)");
}
