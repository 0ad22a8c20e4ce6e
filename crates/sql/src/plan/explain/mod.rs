//! EXPLAIN: a plan in the columns of MySQL's traditional format, or its operators ([`operators`]).

mod operators;

use junctor_expression::{Coercibility, ResultType};
use junctor_model::collation::CollationId;
use junctor_model::row_encoding::ResultColumn;
use junctor_model::schema::{ColumnDefinition, IndexDefinition, TableLayout};
use junctor_model::value::{Value, ValueRef};
use junctor_signals::program::{Output, ReadProgram};

use super::access::{AccessPath, KeyTemplate, ScopeTemplate};
use super::{ChangeKind, ComputeSource, FinalStep, KeyValues, ModifyPlan, Plan, QueryPlan, TreePlan};

pub use operators::{ExplainFormat, ExplainRequest, LeafMeasure, Measures, OperatorMeasure, explain_operators};

/// The columns of EXPLAIN's result, and its rows.
pub fn explain_plan(plan: &Plan, format: ExplainFormat) -> (Vec<ResultColumn>, Vec<Vec<Value>>) {
    if format != ExplainFormat::Traditional {
        let text = operators::explain_statement(plan, format);
        return (text_columns(), vec![vec![Value::Bytes(text.into_bytes())]]);
    }
    match plan.unhinted() {
        Plan::Tree(plan) => explain_tree(plan),
        Plan::Modify(plan) => explain_modify(plan),
        Plan::Into(plan) => explain_plan(&plan.query.clone().into(), format),
        plan => (columns(), vec![Row::of_plan(plan).values()]),
    }
}

/// The only column of the forms other than the traditional one.
pub fn text_columns() -> Vec<ResultColumn> {
    let text = ResultType::string(CollationId::DEFAULT, Coercibility::Implicit, u32::MAX);
    vec![text.result_column("EXPLAIN")]
}

/// The rows of the query. Changed tables have the statement as their type of query.
fn explain_modify(plan: &ModifyPlan) -> (Vec<ResultColumn>, Vec<Vec<Value>>) {
    let (columns, mut rows) = explain_tree(&plan.query);
    let statement = if plan.kind == ChangeKind::Update { "UPDATE" } else { "DELETE" };
    let is_target = |name: &Value| {
        let name = name.as_ref();
        plan.targets.iter().any(|target| name == ValueRef::Bytes(target.alias.as_bytes()))
    };
    for row in &mut rows {
        if let [_, select_type, table, ..] = &mut row[..]
            && is_target(table)
        {
            *select_type = Value::Bytes(statement.as_bytes().to_vec());
        }
    }
    (columns, rows)
}

/// A row for each read of a table, in the order of the operators.
fn explain_tree(plan: &TreePlan) -> (Vec<ResultColumn>, Vec<Vec<Value>>) {
    let mut rows = Vec::new();
    for leaf in &plan.leaves {
        let mut row = Row { select_type: "SIMPLE", ..Row::default() };
        match &leaf.query {
            QueryPlan::Select(select) => {
                row.set_access_path(&select.table, &leaf.alias, &select.path);
                row.output(&select.program, &select.final_step);
            }
            _ => row.access = Some("ALL"),
        }
        rows.push(row.values());
    }
    if rows.is_empty() {
        let mut row = Row { select_type: "SIMPLE", ..Row::default() };
        row.extra.push("No tables used");
        rows.push(row.values());
    }
    (columns(), rows)
}

#[derive(Default)]
struct Row {
    select_type: &'static str,
    table: Option<String>,
    partitions: Option<String>,
    access: Option<&'static str>,
    key: Option<String>,
    key_bytes: Option<usize>,
    reference: Option<String>,
    rows: Option<i64>,
    extra: Vec<&'static str>,
}

impl Row {
    /// The row of a plan of at most one table.
    fn of_plan(plan: &Plan) -> Row {
        let mut row = Row { select_type: "SIMPLE", ..Row::default() };
        match plan {
            Plan::Select(plan) => {
                row.set_access_path(&plan.table, &plan.table_alias, &plan.path);
                row.output(&plan.program, &plan.final_step);
            }
            Plan::Change(plan) => {
                row.select_type = if plan.kind == ChangeKind::Update { "UPDATE" } else { "DELETE" };
                row.set_access_path(&plan.table, &plan.table_alias, &plan.path);
                if let Some(unique) = &plan.unique_key
                    && let Some(index) = plan.table.definition.index(unique.index)
                {
                    row.partitions = None;
                    row.keys(&plan.table, index, &unique.keys);
                }
                if plan.program.filter.is_some() {
                    row.extra.push("Using where");
                }
            }
            Plan::Insert(plan) => {
                row.select_type = "INSERT";
                row.table = Some(plan.table.definition.name.to_string());
                row.access = Some("ALL");
            }
            Plan::Compute(plan) => match plan.source {
                ComputeSource::Nothing => row.extra.push("No tables used"),
                _ => {
                    row.table = Some(plan.table_alias.to_string());
                    row.access = Some("ALL");
                    if plan.filter.is_some() {
                        row.extra.push("Using where");
                    }
                    if !plan.sort.is_empty() {
                        row.extra.push("Using filesort");
                    }
                }
            },
            Plan::Tree(_) | Plan::Modify(_) | Plan::Into(_) | Plan::Control(_) | Plan::Hinted(_) => {
                row.extra.push("No tables used")
            }
        }
        row
    }

    fn set_access_path(&mut self, layout: &TableLayout, shown: &str, path: &AccessPath) {
        self.table = Some(shown.to_owned());
        let definition = &layout.definition;
        let mut scope = &ScopeTemplate::All;
        match path {
            AccessPath::Nothing => {
                self.table = None;
                self.extra.push("Impossible WHERE");
                return;
            }
            AccessPath::PrimaryKeys(keys) => self.keys(layout, definition.primary(), keys),
            AccessPath::UniqueKeys { index, keys, .. } => {
                if let Some(index) = definition.index(*index) {
                    self.keys(layout, index, keys);
                }
            }
            AccessPath::Ranges { index, ranges, scope: range_scope, .. } => {
                scope = range_scope;
                if let Some(index) = definition.index(*index) {
                    let used = ranges.prefix.len() + usize::from(!ranges.value_sets.is_empty());
                    let only_single = ranges.prefix.iter().all(KeyValues::is_single);
                    self.access = Some(match (used, ranges.value_sets.is_empty() && only_single) {
                        (0, _) => "index",
                        (_, true) => "ref",
                        _ => "range",
                    });
                    self.key_of(layout, index, used.max(usize::from(used == 0) * index.columns.len()));
                    if self.access == Some("ref") {
                        self.reference = Some(vec!["const"; used].join(","));
                    }
                }
            }
            AccessPath::AllRows(all_scope) => {
                scope = all_scope;
                self.access = Some("ALL");
            }
        }
        if !matches!(scope, ScopeTemplate::Bound(_))
            && !matches!(path, AccessPath::PrimaryKeys(_) | AccessPath::UniqueKeys { .. })
        {
            let names: Vec<String> = (0..definition.partition_count).map(|index| format!("p{index}")).collect();
            self.partitions = Some(names.join(","));
        }
    }

    fn keys(&mut self, layout: &TableLayout, index: &IndexDefinition, keys: &KeyTemplate) {
        self.key_of(layout, index, index.columns.len());
        match keys.alternatives.as_slice() {
            [key] if key.iter().all(KeyValues::is_single) => {
                self.access = Some("const");
                self.reference = Some(vec!["const"; key.len()].join(","));
                self.rows = Some(1);
            }
            alternatives => {
                self.access = Some("range");
                let count = |values: &KeyValues| match values {
                    KeyValues::One(_) | KeyValues::Null => Some(1),
                    KeyValues::List(list) => Some(list.len() as i64),
                    KeyValues::Parameters(_) | KeyValues::Parallel(_) => None,
                };
                let of_key = |key: &Vec<KeyValues>| key.iter().map(count).product::<Option<i64>>();
                self.rows = alternatives.iter().map(of_key).sum::<Option<i64>>();
            }
        }
    }

    fn key_of(&mut self, layout: &TableLayout, index: &IndexDefinition, used: usize) {
        self.key = Some(index.name.to_string());
        let columns = &layout.definition.columns;
        let used = index.columns.iter().take(used);
        self.key_bytes = Some(used.map(|column| key_bytes(&columns[usize::from(column.0)])).sum());
    }

    fn output(&mut self, program: &ReadProgram, final_step: &FinalStep) {
        if program.filter.is_some() {
            self.extra.push("Using where");
        }
        if let (FinalStep::Sort { distinct: true, .. }, _) = (final_step, &program.output) {
            self.extra.push("Using temporary");
        }
        if let (FinalStep::Sort { ordered: false, .. }, Output::Entries { sort, .. }) = (final_step, &program.output)
            && !sort.is_empty()
        {
            self.extra.push("Using filesort");
        }
    }

    fn values(self) -> Vec<Value> {
        let text = |text: &str| Value::Bytes(text.as_bytes().to_vec());
        let optional = |value: Option<String>| value.map_or(Value::Null, |value| Value::Bytes(value.into_bytes()));
        let extra = self.extra.join("; ");
        vec![
            Value::Int(1),
            text(self.select_type),
            optional(self.table),
            optional(self.partitions),
            self.access.map_or(Value::Null, text),
            // `possible_keys` and `key`: plans record no other candidates.
            optional(self.key.clone()),
            optional(self.key),
            optional(self.key_bytes.map(|bytes| bytes.to_string())),
            optional(self.reference),
            self.rows.map_or(Value::Null, Value::Int),
            self.access.map_or(Value::Null, |_| Value::Double(100.0)),
            if extra.is_empty() { Value::Null } else { text(&extra) },
        ]
    }
}

/// Bytes of a key column in MySQL's `key_len`, including one byte for NULL and two for a variable length.
fn key_bytes(column: &ColumnDefinition) -> usize {
    if let Some(list) = column.key_list() {
        return usize::from(list.element_bytes) + 3;
    }
    let length_bytes = if column.column_type.is_variable() { 2 } else { 0 };
    let bytes = column.column_type.key_bytes().unwrap_or(0) + length_bytes;
    bytes + usize::from(column.nullable)
}

fn columns() -> Vec<ResultColumn> {
    let text = |name: &str, length| {
        let result = ResultType::string(CollationId::UTF8MB4_0900_AI_CI, Coercibility::Implicit, length);
        result.with_nullable(name != "select_type").result_column(name)
    };
    vec![
        ResultType::integer(true, 10).result_column("id"),
        text("select_type", 19),
        text("table", 64),
        text("partitions", 1024),
        text("type", 10),
        text("possible_keys", 4096),
        text("key", 64),
        text("key_len", 4096),
        text("ref", 1024),
        ResultType::integer(true, 10).with_nullable(true).result_column("rows"),
        ResultType::double().with_nullable(true).result_column("filtered"),
        text("Extra", 255),
    ]
}
