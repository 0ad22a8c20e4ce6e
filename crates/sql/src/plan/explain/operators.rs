//! The operators of a plan as a tree of texts, and its forms: FORMAT=TREE and FORMAT=JSON, with measurements
//! for EXPLAIN ANALYZE.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use junctor_expression::{Expression, Parameters};
use junctor_model::id::ColumnNumber;
use junctor_signals::program::{Output, SortKey};
use serde_json::{Map, Value as Json, json};

use super::Row;
use crate::bind::group_function::GroupFunction;
use crate::parse::query::SetOperator;
use crate::plan::operand::{LimitTemplate, Quantity};
use crate::plan::tree::{
    AggregatePlan, ApplyForm, ApplyPlan, BlockPlan, JoinForm, JoinPlan, PlanNode, RecursionPlan, SetPlan, TreePlan,
    WindowPlan,
};
use crate::plan::{ChangeKind, Plan, QueryPlan};

/// The forms of EXPLAIN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExplainFormat {
    /// A row for each table.
    Traditional,
    /// A text with a line for each operator.
    Tree,
    /// A JSON object for each operator.
    Json,
}

/// The form of the result of EXPLAIN.
#[derive(Clone, Copy, Debug)]
pub struct ExplainRequest {
    /// The format.
    pub format: ExplainFormat,
    /// ANALYZE: the query is executed, its rows are dropped, and its operators are measured.
    pub analyze: bool,
}

/// Measurements of an operator. Times are in nanoseconds, sums over all loops, and include those of the
/// operators below.
#[derive(Clone, Copy, Debug, Default)]
pub struct OperatorMeasure {
    /// How many times the operator was opened.
    pub loops: u64,
    /// Rows that it returned.
    pub rows: u64,
    /// Batches that it returned.
    pub batches: u64,
    /// Time until the first batch.
    pub first_ns: u64,
    /// Time until the last batch.
    pub total_ns: u64,
    /// Records that it wrote to the temporary file.
    pub spills: u64,
    /// Their bytes.
    pub spilled_bytes: u64,
}

/// Measurements of the read of a table.
#[derive(Clone, Copy, Debug, Default)]
pub struct LeafMeasure {
    /// How many times it was started.
    pub reads: u64,
    /// Replies of partitions.
    pub replies: u64,
    /// Bytes of the rows that it returned.
    pub bytes: u64,
    /// Rows that it returned.
    pub rows: u64,
}

/// The measurements of an execution.
pub trait Measures {
    /// The measurements of an operator.
    fn of_node(&self, node: &PlanNode) -> OperatorMeasure;
    /// The measurements of the read of a table.
    fn of_leaf(&self, leaf: usize) -> LeafMeasure;
}

/// An operator as text.
struct Line {
    text: String,
    estimate: Option<f64>,
    /// Estimated duration in nanoseconds of one thread, with that of the inputs.
    cost_ns: Option<f64>,
    measure: Option<OperatorMeasure>,
    leaf: Option<LeafMeasure>,
    inputs: Vec<Line>,
}

impl Line {
    fn new(text: impl Into<String>, inputs: Vec<Line>) -> Line {
        Line { text: text.into(), estimate: None, cost_ns: None, measure: None, leaf: None, inputs }
    }
}

/// A tree of operators in one of the forms other than the traditional one.
pub fn explain_operators(
    plan: &TreePlan,
    format: ExplainFormat,
    (parameters, measures): (Parameters<'_>, Option<&dyn Measures>),
) -> String {
    let lines = Lines { plan, parameters, measures, names: RefCell::default() };
    rendered(&lines.query(), format)
}

/// A plan in one of the forms other than the traditional one.
pub(super) fn explain_statement(plan: &Plan, format: ExplainFormat) -> String {
    let of_tree = |plan: &TreePlan| {
        Lines { plan, parameters: Parameters::NONE, measures: None, names: RefCell::default() }.query()
    };
    let line = match plan.unhinted() {
        Plan::Tree(plan) => of_tree(plan),
        Plan::Into(plan) => match &plan.query {
            QueryPlan::Tree(plan) => of_tree(plan),
            query => access_line(&query.clone().into()),
        },
        Plan::Modify(plan) => {
            let names: Vec<&str> = plan.targets.iter().map(|target| &*target.alias).collect();
            let verb = if plan.kind == ChangeKind::Update { "Update" } else { "Delete from" };
            Line::new(format!("{verb} {}", names.join(", ")), vec![of_tree(&plan.query)])
        }
        Plan::Change(change) => {
            let verb = if change.kind == ChangeKind::Update { "Update" } else { "Delete from" };
            Line::new(format!("{verb} {}", change.table_alias), vec![access_line(plan.unhinted())])
        }
        Plan::Insert(plan) => Line::new(format!("Insert into {}", plan.table.definition.name), Vec::new()),
        other => access_line(other),
    };
    rendered(&line, format)
}

/// The access to the only table of a plan.
fn access_line(plan: &Plan) -> Line {
    let mut row = Row::of_plan(plan);
    Line::new(access_text(&mut row), Vec::new())
}

/// The access to a table, in words.
fn access_text(row: &mut Row) -> String {
    let table = row.table.clone().unwrap_or_default();
    let by = |what: &str| {
        let key = row.key.as_deref().unwrap_or_default();
        format!("{what} on {table} using {key}")
    };
    match row.access {
        Some("const") => by("Single-row index lookup"),
        Some("ref") => by("Index lookup"),
        Some("range") => by("Index range scan"),
        Some("index") => by("Index scan"),
        Some(_) if !table.is_empty() => format!("Table scan on {table}"),
        _ => row.extra.first().map_or_else(|| "No tables used".to_owned(), |extra| (*extra).to_owned()),
    }
}

struct Lines<'p> {
    plan: &'p TreePlan,
    parameters: Parameters<'p>,
    measures: Option<&'p dyn Measures>,
    /// The texts of computed slots, which have no names of their own.
    names: RefCell<BTreeMap<u16, String>>,
}

impl Lines<'_> {
    fn query(&self) -> Line {
        let root = self.block(&self.plan.root);
        match &self.plan.limit {
            Some(limit) => Line::new(limit_text(limit, self.parameters), vec![root]),
            None => root,
        }
    }

    fn block(&self, block: &BlockPlan) -> Line {
        // Slots are numbered within a block.
        let outer = std::mem::take(&mut *self.names.borrow_mut());
        for (slot, value) in &block.outer {
            let name = value.describe(self.parameters);
            self.names.borrow_mut().insert(*slot, name);
        }
        let line = self.node(&block.root);
        *self.names.borrow_mut() = outer;
        line
    }

    fn node(&self, node: &PlanNode) -> Line {
        let mut line = self.described(node);
        line.measure = self.measures.map(|measures| measures.of_node(node));
        line
    }

    fn described(&self, node: &PlanNode) -> Line {
        let over = |text: String, from: &PlanNode| (text, vec![self.node(from)]);
        let (text, inputs) = match node {
            PlanNode::Once => ("One row without columns".to_owned(), Vec::new()),
            PlanNode::Nothing => ("Zero rows".to_owned(), Vec::new()),
            PlanNode::Scan(leaf) => return self.leaf(*leaf),
            PlanNode::Project(block, _) => {
                let mut line = Line::new("Rows of a derived table", vec![self.block(block)]);
                line.estimate = Some(block.rows);
                return line;
            }
            PlanNode::Values(rows, _) => (format!("Rows of VALUES: {}", rows.len()), Vec::new()),
            PlanNode::Filter(from, conditions) => {
                let input = self.node(from);
                (format!("Filter: {}", self.all(conditions)), vec![input])
            }
            PlanNode::Compute(from, values) => {
                let input = self.node(from);
                let texts: Vec<String> = values.iter().map(|(value, slot)| self.name(*slot, value)).collect();
                (format!("Compute: {}", texts.join(", ")), vec![input])
            }
            PlanNode::Apply(from, plan) => self.apply(from, plan),
            PlanNode::Join(left, right, plan) => return self.join(left, right, plan),
            PlanNode::Lateral(left, plan) => {
                let kind = if plan.is_outer { "left" } else { "inner" };
                let inputs = vec![self.node(left), self.block(&plan.block)];
                (format!("Nested loop {kind} join with a lateral query{}", self.on(&plan.conditions)), inputs)
            }
            PlanNode::Aggregate(from, plan) => self.aggregate(from, plan),
            PlanNode::Distinct(from, values) => {
                let input = self.node(from);
                (format!("Distinct: {}", self.list(values.iter())), vec![input])
            }
            PlanNode::Sort(from, keys, limit) => {
                let input = self.node(from);
                let mut text = format!("Sort: {}", self.sort_keys(keys));
                if let Some(limit) = limit {
                    let _ = write!(text, ", {}", limit_text(limit, self.parameters).to_lowercase());
                }
                (text, vec![input])
            }
            PlanNode::Single(from) => over("One row at a time".to_owned(), from),
            PlanNode::Materialize(from) => over("Materialize".to_owned(), from),
            PlanNode::Limit(from, limit) => over(limit_text(limit, self.parameters), from),
            PlanNode::Concat(left, right) => ("Append".to_owned(), vec![self.node(left), self.node(right)]),
            PlanNode::Window(from, plan) => self.window(from, plan),
            PlanNode::Analyze(from, _) => over("Statistics of a sample".to_owned(), from),
            PlanNode::DropHistogram(_) => ("Drop histogram".to_owned(), Vec::new()),
            PlanNode::JsonTable(plan) => (format!("JSON_TABLE of {}", self.text(&plan.document)), Vec::new()),
            PlanNode::Recursion(plan) => self.recursion(plan),
            PlanNode::WorkTable(_) => ("Rows of the last round".to_owned(), Vec::new()),
            PlanNode::Set(left, right, plan) => (set_text(plan), vec![self.node(left), self.node(right)]),
        };
        Line::new(text, inputs)
    }

    /// The read of a table, with what its partitions test and group.
    fn leaf(&self, number: usize) -> Line {
        let leaf = &self.plan.leaves[number];
        let mut row = Row::default();
        let mut text = match &leaf.query {
            QueryPlan::Select(select) => {
                row.set_access_path(&select.table, &leaf.alias, &select.path);
                let mut text = access_text(&mut row);
                match leaf.lists {
                    0 => {}
                    1 => text.push_str(" by a list of keys"),
                    columns => _ = write!(text, " by a list of keys of {columns} columns"),
                }
                if let Some(filter) = &select.program.filter {
                    let _ = write!(text, ", filter: {}", self.local_filter(filter, leaf.lists > 0));
                }
                if let Output::Groups { .. } = &select.program.output {
                    text.push_str(", grouped in partitions");
                }
                if leaf.key_filters > 0 {
                    text.push_str(", filtered by join keys");
                }
                if leaf.locks {
                    text.push_str(", locking");
                }
                text
            }
            _ => "Scan of a computed table".to_owned(),
        };
        if text.is_empty() {
            text.push_str("Zero rows");
        }
        let mut line = Line::new(text, Vec::new());
        line.estimate = leaf.rows;
        line.cost_ns = leaf.rows.map(|_| leaf.cost_ns);
        line.leaf = self.measures.map(|measures| measures.of_leaf(number));
        line
    }

    /// A condition that partitions test. Its parameters after those of the statement have no values here.
    fn local_filter(&self, filter: &Expression, has_list: bool) -> String {
        let mut reads_more = false;
        let own = self.plan.parameter_count;
        filter.visit(&mut |inner| {
            reads_more |= match &inner.node {
                junctor_expression::Node::Parameter(ordinal) => usize::from(*ordinal) >= own,
                junctor_expression::Node::InParameters { .. } => has_list,
                _ => false,
            };
        });
        if reads_more { "conditions with values of other tables".to_owned() } else { self.text(filter) }
    }

    fn join(&self, left: &PlanNode, right: &PlanNode, plan: &JoinPlan) -> Line {
        let mut inputs = vec![self.node(left)];
        let form = match plan.form {
            JoinForm::Inner => "inner join",
            JoinForm::Left => "left join",
            JoinForm::Semi => "semijoin",
            JoinForm::Anti => "antijoin",
            JoinForm::NullAwareAnti => "antijoin (NOT IN)",
        };
        let way = if plan.keys.is_empty() { "Nested loop" } else { "Hash" };
        let mut text = format!("{way} {form}");
        if let Some(lookup) = &plan.lookup {
            let _ = write!(text, ", by keys up to {} rows", lookup.rows_max);
            inputs.push(self.leaf(lookup.leaf));
        }
        inputs.push(self.node(right));
        let mut line = Line::new("", inputs);
        text.push_str(&self.on(&plan.conditions));
        line.text = text;
        line.estimate = Some(plan.rows);
        line.cost_ns = Some(plan.cost_ns);
        line
    }

    fn aggregate(&self, from: &PlanNode, plan: &AggregatePlan) -> (String, Vec<Line>) {
        let input = self.node(from);
        let keys = self.list(plan.keys.iter().map(|(key, _)| key));
        for (key, slot) in &plan.keys {
            self.name(*slot, key);
        }
        let functions: Vec<String> = plan.functions.iter().map(|function| self.function(function)).collect();
        let mut text = if keys.is_empty() { "Aggregate".to_owned() } else { format!("Group: {keys}") };
        if plan.rollup {
            text.push_str(" with rollup");
        }
        if !functions.is_empty() {
            let _ = write!(text, ": {}", functions.join(", "));
        }
        (text, vec![input])
    }

    /// Notes and returns the text of an aggregate. The name of its result ends before its arguments.
    fn function(&self, function: &GroupFunction) -> String {
        let shown = function.result.describe(Parameters::NONE);
        let name = shown.split('(').next().unwrap_or_default();
        let distinct = if function.distinct { "distinct " } else { "" };
        let arguments = match function.arguments.is_empty() {
            true => "*".to_owned(),
            false => self.list(function.arguments.iter()),
        };
        let text = format!("{name}({distinct}{arguments})");
        if let Some(slot) = function.result.as_column() {
            self.names.borrow_mut().insert(slot.0, text.clone());
        }
        text
    }

    fn apply(&self, from: &PlanNode, plan: &ApplyPlan) -> (String, Vec<Line>) {
        let input = self.node(from);
        let what = match &plan.form {
            ApplyForm::Value => "Value of a subquery",
            ApplyForm::Exists => "Existence of a row of a subquery",
            ApplyForm::Quantified { all: true, .. } => "Comparison with all rows of a subquery",
            ApplyForm::Quantified { .. } => "Comparison with any row of a subquery",
            ApplyForm::Row { .. } => "Comparison with the row of a subquery",
        };
        let outer: Vec<String> = plan.block.outer.iter().map(|(_, value)| self.text(value)).collect();
        let mut text = match outer.is_empty() {
            true => format!("{what}, evaluated once"),
            false => format!("{what} that depends on {}", outer.join(", ")),
        };
        let mut inputs = vec![input, self.block(&plan.block)];
        if let Some(grouped) = &plan.grouped {
            let by = if grouped.lookup.is_some() { "by lists of values" } else { "by value" };
            let _ = write!(text, ", up to {} {by}, then all at once", grouped.runs_max);
            inputs.extend(grouped.lookup.iter().map(|lookup| self.block(&lookup.block)));
            inputs.push(self.block(&grouped.block));
        }
        self.names.borrow_mut().insert(plan.slot, "(subquery)".to_owned());
        (text, inputs)
    }

    fn window(&self, from: &PlanNode, plan: &WindowPlan) -> (String, Vec<Line>) {
        let input = self.node(from);
        let mut text = "Window functions".to_owned();
        if !plan.partition.is_empty() {
            let _ = write!(text, ", partition by {}", self.sort_keys(&plan.partition));
        }
        if !plan.order.is_empty() {
            let _ = write!(text, ", order by {}", self.sort_keys(&plan.order));
        }
        (text, vec![input])
    }

    fn recursion(&self, plan: &RecursionPlan) -> (String, Vec<Line>) {
        let mut inputs = vec![self.node(&plan.seed)];
        let round = |member: &Arc<BlockPlan>| Line::new("Repeat until no new rows", vec![self.block(member)]);
        inputs.extend(plan.members.iter().map(round));
        ("Recursive query".to_owned(), inputs)
    }

    /// An expression, with the texts of the computed values that it reads.
    fn text(&self, expression: &Expression) -> String {
        let names = self.names.borrow();
        let mut shown = expression.clone();
        shown.rewrite(&mut |inner| {
            let slot = inner.as_column()?;
            let name = match names.get(&slot.0) {
                Some(name) => name,
                None if inner.describe(Parameters::NONE).is_empty() => "(computed)",
                None => return None,
            };
            Some(Expression::column_of_type(ColumnNumber(slot.0), inner.result, name))
        });
        shown.describe(self.parameters)
    }

    /// Notes and returns the text of a computed value.
    fn name(&self, slot: u16, value: &Expression) -> String {
        let text = self.text(value);
        self.names.borrow_mut().insert(slot, text.clone());
        text
    }

    fn list<'e>(&self, values: impl Iterator<Item = &'e Expression>) -> String {
        values.map(|value| self.text(value)).collect::<Vec<_>>().join(", ")
    }

    fn all(&self, conditions: &[Expression]) -> String {
        conditions.iter().map(|condition| self.text(condition)).collect::<Vec<_>>().join(" and ")
    }

    fn on(&self, conditions: &[Expression]) -> String {
        if conditions.is_empty() { String::new() } else { format!(" on {}", self.all(conditions)) }
    }

    fn sort_keys(&self, keys: &[SortKey]) -> String {
        let text = |key: &SortKey| {
            let value = self.text(&key.value);
            if key.descending { format!("{value} DESC") } else { value }
        };
        keys.iter().map(text).collect::<Vec<_>>().join(", ")
    }
}

fn set_text(plan: &SetPlan) -> String {
    let name = match plan.operator {
        SetOperator::Union => "Union",
        SetOperator::Intersect => "Intersect",
        SetOperator::Except => "Except",
    };
    if plan.all { format!("{name} all") } else { name.to_owned() }
}

fn limit_text(limit: &LimitTemplate, parameters: Parameters<'_>) -> String {
    let quantity = |quantity: &Quantity| match quantity {
        Quantity::Rows(rows) => rows.to_string(),
        Quantity::Parameter(ordinal) if usize::from(*ordinal) < parameters.count() => Expression::parameter(
            *ordinal,
            junctor_expression::Kind::UInt,
            0,
            junctor_model::collation::CollationId::BINARY,
        )
        .describe(parameters),
        Quantity::Parameter(_) => "?".to_owned(),
    };
    let mut text = format!("Limit: {} row(s)", quantity(&limit.count));
    if limit.offset != Quantity::Rows(0) {
        let _ = write!(text, " after {}", quantity(&limit.offset));
    }
    text
}

fn rendered(line: &Line, format: ExplainFormat) -> String {
    match format {
        ExplainFormat::Json => {
            let document = json!({ "query_plan": json_of(line), "json_schema_version": "2.0" });
            serde_json::to_string_pretty(&document).unwrap_or_default()
        }
        ExplainFormat::Tree | ExplainFormat::Traditional => {
            let mut out = String::new();
            write_line(line, 0, &mut out);
            out
        }
    }
}

fn write_line(line: &Line, depth: usize, out: &mut String) {
    let _ = write!(out, "{:indent$}-> {}", "", line.text, indent = 4 * depth);
    match (line.cost_ns, line.estimate) {
        // Microseconds, because MySQL's unit of cost, a read of a block in memory, is about that long.
        (Some(cost_ns), Some(rows)) => {
            let _ = write!(out, "  (cost={:.1} rows={})", cost_ns / 1e3, shown_rows(rows));
        }
        (None, Some(rows)) => {
            let _ = write!(out, "  (rows={})", shown_rows(rows));
        }
        (_, None) => {}
    }
    match line.measure {
        Some(measure) if measure.loops == 0 => out.push_str(" (never executed)"),
        Some(measure) => {
            let loops = measure.loops as f64;
            let _ = write!(
                out,
                " (actual time={:.3}..{:.3} rows={} batches={} loops={})",
                measure.first_ns as f64 / loops / 1e6,
                measure.total_ns as f64 / loops / 1e6,
                shown_rows(measure.rows as f64 / loops),
                shown_rows(measure.batches as f64 / loops),
                measure.loops
            );
            if measure.spills > 0 {
                let _ = write!(out, " (spills={} spilled_bytes={})", measure.spills, measure.spilled_bytes);
            }
        }
        None => {}
    }
    if let Some(leaf) = line.leaf.filter(|leaf| leaf.reads > 0) {
        let _ = write!(out, " (reads={} replies={} rows={} bytes={})", leaf.reads, leaf.replies, leaf.rows, leaf.bytes);
    }
    out.push('\n');
    for input in &line.inputs {
        write_line(input, depth + 1, out);
    }
}

/// A number of rows with at most three digits that matter after the point.
fn shown_rows(rows: f64) -> String {
    if rows.fract() == 0.0 || rows >= 100.0 { format!("{rows:.0}") } else { format!("{rows:.2}") }
}

fn json_of(line: &Line) -> Json {
    let mut object = Map::new();
    object.insert("operation".to_owned(), line.text.as_str().into());
    if let Some(rows) = line.estimate {
        object.insert("estimated_rows".to_owned(), json!(rows));
    }
    if let Some(cost_ns) = line.cost_ns {
        object.insert("estimated_total_cost".to_owned(), json!(cost_ns / 1e3));
    }
    if let Some(measure) = line.measure {
        let loops = measure.loops.max(1) as f64;
        object.insert("actual_loops".to_owned(), json!(measure.loops));
        object.insert("actual_rows".to_owned(), json!(measure.rows as f64 / loops));
        object.insert("actual_batches".to_owned(), json!(measure.batches as f64 / loops));
        object.insert("actual_first_row_ms".to_owned(), json!(measure.first_ns as f64 / loops / 1e6));
        object.insert("actual_last_row_ms".to_owned(), json!(measure.total_ns as f64 / loops / 1e6));
        if measure.spills > 0 {
            object.insert("spills".to_owned(), json!(measure.spills));
            object.insert("spilled_bytes".to_owned(), json!(measure.spilled_bytes));
        }
    }
    if let Some(leaf) = line.leaf {
        object.insert("reads".to_owned(), json!(leaf.reads));
        object.insert("replies".to_owned(), json!(leaf.replies));
        object.insert("bytes".to_owned(), json!(leaf.bytes));
    }
    if !line.inputs.is_empty() {
        object.insert("inputs".to_owned(), line.inputs.iter().map(json_of).collect());
    }
    Json::Object(object)
}
