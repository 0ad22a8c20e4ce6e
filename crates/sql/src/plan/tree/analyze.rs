//! ANALYZE TABLE: reads samples of tables. The result has a row for each table, or for each column of
//! UPDATE HISTOGRAM and DROP HISTOGRAM.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use junctor_expression::{Coercibility, Expression, ResultType};
use junctor_model::collation::CollationId;
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::id::ColumnNumber;
use junctor_model::quoted_name::push_quoted_name;
use junctor_model::schema::{IndexKind, SYSTEM_DATABASES, TableDefinition, TableLayout};
use junctor_model::types::Form;
use junctor_model::value::Value;

use super::{BlockPlan, LeafPlan, PlanNode, TreePlan, TreeTable};
use crate::access::{PlanRights, TableAccess};
use crate::bind::{Environment, message};
use crate::parse::definition::HistogramChange;
use crate::parse::parse;
use crate::parse::statement::{ObjectName, Statement};
use crate::plan::statement::{QueryPlan, plan_query};
use crate::plan::virtual_table::FindVirtual;
use crate::result::ResultHeader;
use crate::statistics::{CHUNK_ROWS, WantedBuckets, sample_rows_max};

/// The columns of the result.
const COLUMNS: [(&str, u32); 4] = [("Table", 128), ("Op", 10), ("Msg_type", 10), ("Msg_text", 65_535)];
/// Maximum number of buckets of a histogram.
const BUCKETS_MAX: u64 = 1024;

/// The sample of a table, and the statistics that are made of it.
#[derive(Debug)]
pub struct AnalyzePlan {
    /// The table.
    pub table: Arc<TableLayout>,
    /// The sampled columns, with the slots of their values.
    pub columns: Vec<(u16, ColumnNumber, CollationId)>,
    /// The first columns of indexes whose values are counted together.
    pub prefixes: Vec<Box<[ColumnNumber]>>,
    /// The histograms that the statement asks for, with their numbers of buckets.
    pub wanted: WantedBuckets,
    /// The number of rows for which the sample was planned.
    pub rows: u64,
    /// The rows of the result.
    pub messages: Vec<[Value; 4]>,
    /// Their slots.
    pub slots: [u16; 4],
}

/// How much of a table a sample reads: after each chunk, so many rows are left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowSample {
    /// Rows of a chunk.
    pub rows: u32,
    /// Rows that are left out.
    pub skip: u32,
}

/// Plans ANALYZE TABLE. Errors: 1142; 1690 for a wrong number of buckets; 1060.
pub(in crate::plan) fn plan_analyze(
    environment: &Environment<'_>,
    (tables, histogram): (&[ObjectName], Option<&HistogramChange>),
    find_virtual: &FindVirtual<'_>,
) -> Result<TreePlan> {
    let mut plan = Analysis { environment, find_virtual, nodes: Vec::new(), leaves: Vec::new(), tables: Vec::new() };
    check_histogram(histogram)?;
    if histogram.is_some() && tables.len() > 1 {
        let text = "Only one table can be specified while modifying histogram statistics.";
        plan.note(String::new(), true, ("Error", text));
        return Ok(plan.finish());
    }
    for name in tables {
        plan.add(name, histogram)?;
    }
    Ok(plan.finish())
}

struct Analysis<'a> {
    environment: &'a Environment<'a>,
    find_virtual: &'a FindVirtual<'a>,
    nodes: Vec<PlanNode>,
    leaves: Vec<LeafPlan>,
    tables: Vec<TreeTable>,
}

/// Checks the columns and the number of buckets of a statement about histograms. Errors: 1060, 1690.
fn check_histogram(histogram: Option<&HistogramChange>) -> Result<()> {
    let Some(histogram) = histogram else { return Ok(()) };
    if histogram.buckets.is_some_and(|buckets| !(1..=BUCKETS_MAX).contains(&buckets)) {
        let text = "Number of buckets value is out of range in 'ANALYZE TABLE'";
        return Err(Error::new(ErrorCode::NumericOutOfRange, text));
    }
    for (place, name) in histogram.columns.iter().enumerate() {
        if histogram.columns[..place].iter().any(|known| known.eq_ignore_ascii_case(name)) {
            return Err(Error::new(ErrorCode::DuplicateColumn, format!("Duplicate column name '{name}'")));
        }
    }
    Ok(())
}

fn message_row(table: &str, is_histogram: bool, (kind, text): (&str, &str)) -> [Value; 4] {
    let operation = if is_histogram { "histogram" } else { "analyze" };
    [table, operation, kind, text].map(|text| Value::Bytes(text.as_bytes().to_vec()))
}

/// The slots of the result row, after the parameters of the statement.
fn slots(environment: &Environment<'_>) -> [u16; 4] {
    let first = environment.parameters.len() as u16;
    [first, first + 1, first + 2, first + 3]
}

impl Analysis<'_> {
    /// Adds rows to the result without a sample.
    fn note(&mut self, table: String, is_histogram: bool, message: (&str, &str)) {
        let row = message_row(&table, is_histogram, message);
        let constant = |value: Value| Expression::constant(value, CollationId::DEFAULT);
        let row: Vec<Expression> = row.into_iter().map(constant).collect();
        let slots = slots(self.environment);
        self.nodes.push(PlanNode::Values(Arc::new([row]), Arc::new(slots)));
    }

    fn add(&mut self, name: &ObjectName, histogram: Option<&HistogramChange>) -> Result<()> {
        let environment = self.environment;
        let database = environment.database_of(name)?;
        let shown = format!("{database}.{}", name.name);
        if SYSTEM_DATABASES.iter().any(|known| known.eq_ignore_ascii_case(database)) {
            let text = "The storage engine for the table doesn't support analyze";
            self.note(shown, histogram.is_some(), ("note", text));
            return Ok(());
        }
        let found = environment.table(name, TableAccess::ReadWhole);
        let layout = match found.and_then(|_| environment.table(name, TableAccess::Insert)) {
            Ok(layout) => layout,
            Err(error) if error.code == ErrorCode::TableAccessDenied => return Err(error),
            Err(error) => {
                self.note(shown.clone(), histogram.is_some(), ("Error", &*error.message));
                self.note(shown, histogram.is_some(), ("status", "Operation failed"));
                return Ok(());
            }
        };
        let mut wanted = WantedBuckets::new();
        let mut messages = Vec::new();
        if let Some(change) = histogram {
            if layout.definition.is_temporary() {
                let text = "Cannot create histogram statistics for a temporary table.";
                self.note(shown, true, ("Error", text));
                return Ok(());
            }
            for column in &change.columns {
                match histogram_column(&layout.definition, column) {
                    Err(text) => self.note(shown.clone(), true, ("Error", text.as_str())),
                    Ok(number) => match change.buckets {
                        Some(buckets) => {
                            wanted.insert(number, buckets as usize);
                            let text = format!("Histogram statistics created for column '{column}'.");
                            messages.push(message_row(&shown, true, ("status", text.as_str())));
                        }
                        None => self.nodes.push(PlanNode::DropHistogram(Arc::new(DropHistogramPlan {
                            table: Arc::clone(layout),
                            column: number,
                            shown: shown.clone(),
                            slots: slots(environment),
                        }))),
                    },
                }
            }
            if wanted.is_empty() {
                return Ok(());
            }
        } else {
            messages.push(message_row(&shown, false, ("status", "OK")));
        }
        self.sample(layout, wanted, messages)
    }

    /// Adds the sample of a table.
    fn sample(&mut self, layout: &Arc<TableLayout>, wanted: WantedBuckets, messages: Vec<[Value; 4]>) -> Result<()> {
        let definition = &layout.definition;
        let own = slots(self.environment);
        let first = own[3] + 1;
        let numbers: Vec<ColumnNumber> = sampled_columns(definition).collect();
        let mut text = String::from("SELECT ");
        for (place, column) in numbers.iter().enumerate() {
            text.push_str(if place > 0 { ", " } else { "" });
            push_quoted_name(&definition.columns[usize::from(column.0)].name, &mut text);
        }
        if numbers.is_empty() {
            text.push_str("NULL");
        }
        text.push_str(" FROM ");
        push_quoted_name(&definition.database, &mut text);
        text.push('.');
        push_quoted_name(&definition.name, &mut text);
        // Only a scan of all rows can leave rows out.
        text.push_str(" USE INDEX ()");
        let parsed = parse(text.as_bytes()).map_err(|error| message::of_parse_error(&error))?;
        let Statement::Select(select) = parsed.statement else { return Err(Error::not_supported("ANALYZE TABLE")) };
        // A sample locks no row, in a SERIALIZABLE transaction either.
        let environment = Environment { locks_reads: false, ..*self.environment };
        let query = plan_query(&environment, &select, self.find_virtual)?.plan;
        let rows = (self.environment.row_estimate)(definition);
        let prefixes = prefixes(definition, &numbers);
        let QueryPlan::Select(mut read) = query else { return Err(Error::not_supported("ANALYZE TABLE")) };
        if let Some(read) = Arc::get_mut(&mut read) {
            read.sample = sample_of(rows.unwrap_or(0), numbers.len() + prefixes.len());
        }
        let slot = |place: usize| first + place as u16;
        let leaf = LeafPlan {
            query: QueryPlan::Select(read),
            slots: if numbers.is_empty() {
                vec![None]
            } else {
                (0..numbers.len()).map(|place| Some(slot(place))).collect()
            },
            parameters: Vec::new(),
            lists: 0,
            key_filters: 0,
            locks: false,
            alias: (*definition.name).into(),
            rows: None,
            cost_ns: 0.0,
        };
        self.leaves.push(leaf);
        self.tables.push(TreeTable {
            layout: Arc::clone(layout),
            alias: (*definition.name).into(),
            locks: false,
            rows,
            profile: None,
        });
        let of_column = |(place, column): (usize, &ColumnNumber)| {
            let collation = definition.columns[usize::from(column.0)].column_type.collation();
            (slot(place), *column, collation.unwrap_or(CollationId::BINARY))
        };
        let plan = AnalyzePlan {
            table: Arc::clone(layout),
            columns: numbers.iter().enumerate().map(of_column).collect(),
            prefixes,
            wanted,
            rows: rows.unwrap_or(0),
            messages,
            slots: own,
        };
        let scan = Box::new(PlanNode::Scan(self.leaves.len() - 1));
        self.nodes.push(PlanNode::Analyze(scan, Arc::new(plan)));
        Ok(())
    }

    fn finish(self) -> TreePlan {
        let Analysis { environment, nodes, leaves, tables, .. } = self;
        let own = slots(environment);
        let mut values = Vec::new();
        let mut columns = Vec::new();
        for ((name, length), slot) in COLUMNS.iter().zip(own) {
            let result = ResultType::string(CollationId::DEFAULT, Coercibility::Implicit, *length).with_nullable(true);
            values.push(Expression::column_of_type(ColumnNumber(slot), result, name));
            columns.push(result.result_column(name));
        }
        let nodes = nodes.into_iter();
        let both = |left: PlanNode, right| PlanNode::Concat(Box::new(left), Box::new(right));
        let root = nodes.reduce(both).unwrap_or(PlanNode::Nothing);
        let most = tables.iter().map(|table| table.layout.definition.columns.len()).max().unwrap_or(0);
        let width = usize::from(own[3]) + 1 + most;
        TreePlan {
            rights: PlanRights::default(),
            header: ResultHeader::new(columns),
            root: Arc::new(BlockPlan {
                root,
                width,
                values,
                columns: Vec::new(),
                outer: Vec::new(),
                rows: 1.0,
                is_stateful: false,
                passages: Box::default(),
            }),
            leaves,
            tables,
            limit: None,
            calc_found_rows: false,
            is_strict: false,
            parameter_count: environment.parameters.len(),
            is_shown: false,
            explain: None,
            analyzes: true,
            reads_diagnostics: false,
            cost_ns: 0.0,
            is_outdated: AtomicBool::new(false),
            statistics_version: AtomicU64::new(0),
        }
    }
}

/// DROP HISTOGRAM of a column.
#[derive(Debug)]
pub struct DropHistogramPlan {
    /// The table.
    pub table: Arc<TableLayout>,
    /// The column.
    pub column: ColumnNumber,
    /// Database and table.
    pub shown: String,
    /// The slots of the result row.
    pub slots: [u16; 4],
}

impl DropHistogramPlan {
    /// The row of the result.
    pub fn message(&self, was_there: bool) -> [Value; 4] {
        let name = &self.table.definition.columns[usize::from(self.column.0)].name;
        match was_there {
            true => {
                let text = format!("Histogram statistics removed for column '{name}'.");
                message_row(&self.shown, true, ("status", text.as_str()))
            }
            false => {
                let text = format!("No histogram statistics found for column '{name}'.");
                message_row(&self.shown, true, ("Error", text.as_str()))
            }
        }
    }
}

/// The column of a histogram, or MySQL's message why it has none.
fn histogram_column(definition: &TableDefinition, name: &str) -> std::result::Result<ColumnNumber, String> {
    let column = definition.column(name).filter(|column| !definition.columns[usize::from(column.0)].hidden);
    let Some(column) = column else { return Err(format!("The column '{name}' does not exist.")) };
    if !has_order(definition, column) {
        return Err(format!("The column '{name}' has an unsupported data type."));
    }
    let is_unique = |kind: &IndexKind| matches!(kind, IndexKind::Primary { .. } | IndexKind::Unique { .. });
    if definition.indexes.iter().any(|index| is_unique(&index.kind) && *index.columns == [column]) {
        return Err(format!("The column '{name}' is covered by a single-part unique index."));
    }
    Ok(column)
}

fn has_order(definition: &TableDefinition, column: ColumnNumber) -> bool {
    !matches!(definition.columns[usize::from(column.0)].column_type.form(), Form::Json | Form::Geometry)
}

/// The columns of a sample.
fn sampled_columns(definition: &TableDefinition) -> impl Iterator<Item = ColumnNumber> {
    let numbers = (0..definition.columns.len() as u16).map(ColumnNumber);
    numbers.filter(|column| !definition.columns[usize::from(column.0)].hidden && has_order(definition, *column))
}

/// The lists of two and more first columns of indexes.
fn prefixes(definition: &TableDefinition, sampled: &[ColumnNumber]) -> Vec<Box<[ColumnNumber]>> {
    let mut found: BTreeMap<Box<[ColumnNumber]>, ()> = BTreeMap::new();
    for index in &definition.indexes {
        for length in 2..=index.columns.len() {
            let columns = &index.columns[..length];
            if columns.iter().all(|column| sampled.contains(column)) {
                found.insert(columns.into(), ());
            }
        }
    }
    found.into_keys().collect()
}

/// The sample of a table with so many rows; `None` if it is the whole table.
fn sample_of(rows: u64, columns: usize) -> Option<RowSample> {
    let most = sample_rows_max(columns) as u64;
    let every = rows / most;
    // Twice as many rows as a sample are cheaper to read than to skip.
    (every >= 2).then(|| RowSample {
        rows: CHUNK_ROWS,
        skip: u32::try_from((every - 1) * u64::from(CHUNK_ROWS)).unwrap_or(u32::MAX),
    })
}
