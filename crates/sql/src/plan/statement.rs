//! Plans by kind of statement, and the planning of a whole statement.

use std::cell::Cell;
use std::sync::Arc;

use junctor_expression::ResultType;
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::id::TableId;
use junctor_model::schema::{Dictionary, TableLayout};

use super::change::{plan_delete, plan_update};
use super::checksum::plan_checksum;
use super::compute::plan_compute;
use super::explain::{ExplainFormat, ExplainRequest};
use super::hint::{HintedSelect, apply_hints, apply_to_change};
use super::insert::plan_insert;
use super::modify::{plan_delete_by_query, plan_modify, plan_update_by_query};
use super::select::plan_select;
use super::shown_query::plan_shown_query;
use super::tree::{TreePlan, TreeTable, plan_analyze, plan_explain, plan_tree};
use super::virtual_table::{FindVirtual, virtual_source};
use super::{ChangePlan, ComputePlan, InsertPlan, ModifyPlan, OutputFile, SelectPlan};
use crate::access::{PlanRights, TableAccess};
use crate::bind::{Environment, PlanNotes};
use crate::parse::Deprecation;
use crate::parse::statement::{
    AccessMode, Explain, IntoTarget, Select, SetByQuery, SetItem, Show, Statement, TableMaintenance, TransactionEnd,
};
use crate::result::ResultHeader;

/// The plan of a statement. A clone only increments a reference count.
#[derive(Clone, Debug)]
pub enum Plan {
    /// A query of a table.
    Select(Arc<SelectPlan>),
    /// A query that the session answers without the storage engine.
    Compute(Arc<ComputePlan>),
    /// A query that a tree of operators executes.
    Tree(Arc<TreePlan>),
    /// A query whose rows go to variables or to a file.
    Into(Arc<IntoPlan>),
    /// INSERT or REPLACE.
    Insert(Arc<InsertPlan>),
    /// UPDATE or DELETE.
    Change(Arc<ChangePlan>),
    /// UPDATE or DELETE whose rows a query finds.
    Modify(Arc<ModifyPlan>),
    /// The beginning or end of a transaction.
    Control(ControlPlan),
    /// A statement with optimizer hints that concern its execution, or with warnings of its planning.
    Hinted(Arc<HintedPlan>),
}

/// The plan of a statement with optimizer hints that concern its execution, or with warnings of its planning.
#[derive(Clone, Debug)]
pub struct HintedPlan {
    /// The plan without them.
    pub plan: Plan,
    /// MAX_EXECUTION_TIME, in milliseconds; 0 is unlimited.
    pub execution_time_max_ms: Option<u32>,
    /// The warnings about its hints, and of planning.
    pub warnings: Vec<(ErrorCode, Box<str>)>,
    /// The variables of SET_VAR that it does not set, in lower case.
    pub unset: Vec<String>,
    /// The deprecated syntax in its text.
    pub deprecations: Vec<Deprecation>,
}

/// The plan of SELECT ... INTO.
#[derive(Debug)]
pub struct IntoPlan {
    /// The query.
    pub query: QueryPlan,
    /// The place for its rows.
    pub place: IntoPlace,
    /// The rights that the statement needs.
    pub rights: PlanRights,
}

/// The place for the rows of SELECT ... INTO, or for the values of SET.
#[derive(Debug)]
pub enum IntoPlace {
    /// User variables, one for each column.
    Variables(Box<[Box<str>]>),
    /// The assignments of SET, whose values are parameters with the numbers of the columns; none for DO.
    Assignments(Box<[SetItem]>),
    /// A new file of the server.
    File(OutputFile),
}

/// The plan of a query.
#[derive(Clone, Debug)]
pub enum QueryPlan {
    /// A query of a table.
    Select(Arc<SelectPlan>),
    /// A query that the session answers without the storage engine.
    Compute(Arc<ComputePlan>),
    /// A query that a tree of operators executes.
    Tree(Arc<TreePlan>),
}

impl From<QueryPlan> for Plan {
    fn from(plan: QueryPlan) -> Plan {
        match plan {
            QueryPlan::Select(plan) => Plan::Select(plan),
            QueryPlan::Compute(plan) => Plan::Compute(plan),
            QueryPlan::Tree(plan) => Plan::Tree(plan),
        }
    }
}

impl QueryPlan {
    /// The columns of the result.
    pub fn header(&self) -> &ResultHeader {
        match self {
            QueryPlan::Select(plan) => &plan.header,
            QueryPlan::Compute(plan) => &plan.header,
            QueryPlan::Tree(plan) => &plan.header,
        }
    }

    /// The types of the values of a row.
    pub(super) fn value_types(&self) -> Vec<ResultType> {
        let values = match self {
            QueryPlan::Tree(plan) => &plan.root.values,
            QueryPlan::Compute(plan) => &plan.projection.values,
            QueryPlan::Select(_) => return Vec::new(),
        };
        values.iter().map(|value| value.result).collect()
    }

    /// The table that is read, and whether its rows are locked; `None` for a query without a stored table.
    pub(crate) fn table(&self) -> Option<(&Arc<TableLayout>, bool)> {
        match self {
            QueryPlan::Select(plan) => Some((&plan.table, plan.locking_program.is_some())),
            QueryPlan::Compute(_) | QueryPlan::Tree(_) => None,
        }
    }

    /// The stored tables that a tree reads.
    pub(crate) fn tree_tables(&self) -> &[TreeTable] {
        match self {
            QueryPlan::Tree(plan) => &plan.tables,
            _ => &[],
        }
    }
}

/// A table that a statement or transaction uses, for metadata locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TableUse {
    pub table: TableId,
    /// Whether its rows are written or locked.
    pub writes: bool,
}

/// The statements that begin or end a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlPlan {
    /// BEGIN and START TRANSACTION.
    Begin {
        /// True for READ ONLY, false for READ WRITE, `None` if neither is specified.
        read_only: Option<bool>,
        /// WITH CONSISTENT SNAPSHOT.
        consistent_snapshot: bool,
    },
    /// COMMIT.
    Commit(TransactionEnd),
    /// ROLLBACK.
    Rollback(TransactionEnd),
}

/// A plan, and whether it may be reused.
#[derive(Debug)]
pub struct Planned<P = Plan> {
    /// The plan.
    pub plan: P,
    /// Whether the plan is valid for this execution only.
    pub is_volatile: bool,
}

impl From<Planned<QueryPlan>> for Planned {
    fn from(planned: Planned<QueryPlan>) -> Planned {
        Planned { plan: planned.plan.into(), is_volatile: planned.is_volatile }
    }
}

/// Estimated bytes of a plan without its expressions and columns.
const PLAN_BYTES: usize = 2048;
/// Estimated bytes of expressions for each byte of the statement. A name or number of three characters
/// becomes a node of 200 bytes.
const PLAN_BYTES_PER_TEXT_BYTE: usize = 64;
/// Estimated bytes of a column: its definition, its expression, and its encodings in the result header.
const PLAN_BYTES_PER_COLUMN: usize = 512;

/// Plans a statement. Returns `None` for statements without a plan: definitions, SET, SHOW of what no
/// table has, and others.
///
/// # Errors
/// Errors of binding and planning.
pub fn plan_statement(
    environment: &Environment<'_>,
    statement: &Statement,
    find_virtual: &FindVirtual<'_>,
) -> Result<Option<Planned>> {
    let notes = PlanNotes::default();
    let (added_nodes, reads_diagnostics) = (Cell::new(0), Cell::new(false));
    let noting = Environment {
        notes: Some(&notes),
        added_nodes: Some(&added_nodes),
        reads_diagnostics: Some(&reads_diagnostics),
        ..*environment
    };
    let planned = plan_noting(&noting, statement, find_virtual)?;
    let mut notes = notes.into_inner();
    Ok(match planned {
        Some(Planned { plan, is_volatile }) if !notes.is_empty() => {
            let mut hinted = plan.into_hinted();
            hinted.warnings.append(&mut notes);
            Some(Planned { plan: Plan::Hinted(Arc::new(hinted)), is_volatile })
        }
        planned => planned,
    })
}

/// Plans a statement. The environment collects the warnings of planning.
fn plan_noting(
    environment: &Environment<'_>,
    statement: &Statement,
    find_virtual: &FindVirtual<'_>,
) -> Result<Option<Planned>> {
    let analysis = |plan| Planned { plan: Plan::Tree(Arc::new(plan)), is_volatile: true };
    let control = |plan| Ok(Planned { plan: Plan::Control(plan), is_volatile: false });
    let planned = match statement {
        Statement::Select(select) => match apply_hints(environment, select) {
            None => plan_select_statement(environment, select, find_virtual),
            Some(hinted) => {
                let planned = plan_select_statement(&hinted.environment(environment), &hinted.select, find_virtual)?;
                Ok(hinted.plan(planned))
            }
        },
        change if change.hints_of_change().is_some() => {
            let (change, hinted) = apply_to_change(environment, change);
            let planned = plan_noting(&hinted.environment(environment), &change, find_virtual)?;
            return Ok(planned.map(|planned| hinted.plan(planned)));
        }
        Statement::Insert(insert) => plan_insert(environment, insert, find_virtual),
        Statement::Update(update) => match plan_update_by_query(environment, update, find_virtual)? {
            Some(planned) => Ok(planned),
            None => plan_update(environment, update),
        },
        Statement::Delete(delete) => match plan_delete_by_query(environment, delete, find_virtual)? {
            Some(planned) => Ok(planned),
            None => plan_delete(environment, delete),
        },
        Statement::Modify(modify) => plan_modify(environment, modify, find_virtual),
        Statement::SetByQuery(set) => plan_set(environment, set, find_virtual),
        Statement::StartTransaction(start) => control(ControlPlan::Begin {
            read_only: start.access.map(|access| access == AccessMode::ReadOnly),
            consistent_snapshot: start.consistent_snapshot,
        }),
        Statement::Commit(end) => control(ControlPlan::Commit(*end)),
        Statement::Rollback(end) => control(ControlPlan::Rollback(*end)),
        Statement::Show(show) => match &**show {
            Show::Checksum { tables, quick } => {
                plan_checksum(environment, (tables, *quick), find_virtual).map(Planned::from)
            }
            Show::Maintenance { kind: TableMaintenance::Analyze, tables } => {
                plan_analyze(environment, (tables, None), find_virtual).map(analysis)
            }
            Show::Histogram(tables, change) => {
                plan_analyze(environment, (tables, Some(change)), find_virtual).map(analysis)
            }
            _ => return Ok(plan_shown_query(environment, statement, find_virtual)?.map(Planned::from)),
        },
        Statement::Describe(_) => {
            return Ok(plan_shown_query(environment, statement, find_virtual)?.map(Planned::from));
        }
        Statement::Explain(explain) => return plan_explain_query(environment, explain, find_virtual),
        _ => return Ok(None),
    };
    planned.map(Some)
}

/// Plans a query as a statement. Errors: those of planning and of `plan_into`.
fn plan_select_statement(
    environment: &Environment<'_>,
    select: &Select,
    find_virtual: &FindVirtual<'_>,
) -> Result<Planned> {
    let planned = plan_query(environment, select, find_virtual)?;
    if select.into.is_none() { Ok(planned.into()) } else { plan_into(environment, &select.into, planned) }
}

/// Plans EXPLAIN ANALYZE, and EXPLAIN of a query as a tree. `None` for other forms of EXPLAIN. Errors: 1235
/// for EXPLAIN ANALYZE of a statement that is no query, or in the traditional format; 1791.
fn plan_explain_query(
    environment: &Environment<'_>,
    explain: &Explain,
    find_virtual: &FindVirtual<'_>,
) -> Result<Option<Planned>> {
    let request = explain.request()?;
    let select = match &explain.statement {
        Statement::Select(select) if select.into.is_none() => select,
        _ if request.analyze => return Err(Error::not_supported("EXPLAIN ANALYZE of a statement that is no query")),
        _ => return Ok(None),
    };
    if request.format == ExplainFormat::Traditional {
        return match request.analyze {
            true => Err(Error::not_supported("EXPLAIN ANALYZE with TRADITIONAL format")),
            false => Ok(None),
        };
    }
    let hinted = apply_hints(environment, select);
    let select = hinted.as_ref().map_or(&**select, |hinted| &hinted.select);
    let plan = plan_explain(environment, (select, request), find_virtual)?.plan;
    // Planned with the row counts of each execution.
    Ok(Some(Planned { plan: Plan::Tree(Arc::new(plan)), is_volatile: true }))
}

impl Explain {
    /// The form of the result. Error: 1791 for an unknown one.
    pub(crate) fn request(&self) -> Result<ExplainRequest> {
        let analyze = self.analyze;
        let default = if analyze { "tree" } else { "traditional" };
        let name = self.format.as_deref().unwrap_or(default);
        let format = match name.to_ascii_lowercase().as_str() {
            "traditional" => ExplainFormat::Traditional,
            "tree" => ExplainFormat::Tree,
            "json" => ExplainFormat::Json,
            _ => {
                let text = format!("Unknown EXPLAIN format name: '{name}'");
                return Err(Error::new(ErrorCode::UnknownExplainFormat, text));
            }
        };
        Ok(ExplainRequest { format, analyze })
    }
}

/// Plans SELECT ... INTO. Errors: 1222 if it has another number of variables than of columns; those of the
/// form of a file.
fn plan_into(environment: &Environment<'_>, into: &IntoTarget, planned: Planned<QueryPlan>) -> Result<Planned> {
    let Planned { plan: query, is_volatile } = planned;
    let columns = &query.header().columns;
    let place = match into {
        IntoTarget::File(file) => {
            environment.access.inspect(|access| access.use_files());
            IntoPlace::File(OutputFile::new(file, columns)?)
        }
        IntoTarget::Variables(variables) if variables.len() == columns.len() => {
            IntoPlace::Variables(variables.iter().map(|name| name.as_str().into()).collect())
        }
        IntoTarget::Variables(_) | IntoTarget::None => {
            let message = "The used SELECT statements have a different number of columns";
            return Err(Error::new(ErrorCode::SelectColumnCount, message));
        }
    };
    let plan = Plan::Into(Arc::new(IntoPlan { query, place, rights: PlanRights::default() }));
    Ok(Planned { plan, is_volatile })
}

/// Plans SET or DO with subqueries. Errors: those of planning; 1241 for a value with several columns.
fn plan_set(environment: &Environment<'_>, set: &SetByQuery, find_virtual: &FindVirtual<'_>) -> Result<Planned> {
    let Planned { plan: query, is_volatile } = plan_query(environment, &set.query, find_virtual)?;
    let place = IntoPlace::Assignments(set.items.as_slice().into());
    Ok(Planned { plan: Plan::Into(Arc::new(IntoPlan { query, place, rights: PlanRights::default() })), is_volatile })
}

/// Plans a query. Errors: those of binding and planning.
pub(super) fn plan_query(
    environment: &Environment<'_>,
    select: &Select,
    find_virtual: &FindVirtual<'_>,
) -> Result<Planned<QueryPlan>> {
    let hinted = apply_hints(environment, select);
    let select = hinted.as_ref().map_or(select, |hinted| &hinted.select);
    let sorts_rows = select.distinct || !select.order_by.is_empty();
    if select.needs_tree() || environment.sorts_with_files && sorts_rows && select.locks.is_empty() {
        return plan_tree(environment, select, find_virtual);
    }
    let Some(reference) = select.table() else {
        return plan_compute(environment, select, None);
    };
    if environment.view(&reference.name).is_some() {
        return plan_tree(environment, select, find_virtual);
    }
    let Some(source) = virtual_source(environment, &reference.name, find_virtual)? else {
        let table_use = if !select.locks.is_empty() { TableAccess::LockingRead } else { TableAccess::Read };
        let layout = environment.table(&reference.name, table_use)?;
        return plan_select(environment, select, layout);
    };
    // The rows were computed for this execution only.
    let planned = plan_compute(environment, select, Some((&source, find_virtual)))?;
    Ok(Planned { is_volatile: true, ..planned })
}

impl HintedSelect {
    /// The plan of the statement, with its warnings.
    fn plan(self, Planned { plan, is_volatile }: Planned) -> Planned {
        let HintedSelect { execution_time_max_ms, warnings, unset, .. } = self;
        let hinted = HintedPlan { plan, execution_time_max_ms, warnings, unset, deprecations: Vec::new() };
        Planned { plan: Plan::Hinted(Arc::new(hinted)), is_volatile }
    }
}

impl Plan {
    fn into_hinted(self) -> HintedPlan {
        match self {
            Plan::Hinted(hinted) => Arc::unwrap_or_clone(hinted),
            plan => HintedPlan {
                plan,
                execution_time_max_ms: None,
                warnings: Vec::new(),
                unset: Vec::new(),
                deprecations: Vec::new(),
            },
        }
    }

    /// The plan of a text with this deprecated syntax.
    pub(crate) fn with_deprecations(self, deprecations: Vec<Deprecation>) -> Plan {
        match deprecations.is_empty() {
            true => self,
            false => Plan::Hinted(Arc::new(HintedPlan { deprecations, ..self.into_hinted() })),
        }
    }
}

impl HintedPlan {
    /// Not inlined, because no statement without hints needs it.
    #[cold]
    fn rights(&self) -> Option<&PlanRights> {
        self.plan.rights()
    }
}

impl Plan {
    /// The rights that the statement needs; `None` for transaction control.
    #[inline(always)]
    pub(crate) fn rights(&self) -> Option<&PlanRights> {
        Some(match self {
            Plan::Select(plan) => &plan.rights,
            Plan::Compute(plan) => &plan.rights,
            Plan::Tree(plan) => &plan.rights,
            Plan::Into(plan) => &plan.rights,
            Plan::Insert(plan) => &plan.rights,
            Plan::Change(plan) => &plan.rights,
            Plan::Modify(plan) => &plan.query.rights,
            Plan::Control(_) => return None,
            Plan::Hinted(plan) => return plan.rights(),
        })
    }

    /// Whether statistics of its table decide how a query or change of one table finds its rows.
    pub(crate) fn is_by_statistics(&self) -> bool {
        match self.unhinted() {
            Plan::Select(plan) => plan.is_by_statistics,
            Plan::Change(plan) => plan.is_by_statistics,
            Plan::Into(plan) => matches!(&plan.query, QueryPlan::Select(plan) if plan.is_by_statistics),
            _ => false,
        }
    }

    /// The plan without hints.
    pub fn unhinted(&self) -> &Plan {
        match self {
            Plan::Hinted(hinted) => &hinted.plan,
            plan => plan,
        }
    }

    /// The table for which the plan was made; `None` for a query without a stored table and for transaction
    /// control.
    pub fn table(&self) -> Option<&Arc<TableLayout>> {
        match self.unhinted() {
            Plan::Select(plan) => Some(&plan.table),
            Plan::Insert(plan) => Some(&plan.table),
            Plan::Change(plan) => Some(&plan.table),
            Plan::Into(plan) => plan.query.table().map(|(table, _)| table),
            Plan::Compute(_) | Plan::Control(_) | Plan::Tree(_) | Plan::Modify(_) | Plan::Hinted(_) => None,
        }
    }

    /// The stored tables that a tree of the statement reads.
    pub(crate) fn tree_tables(&self) -> &[TreeTable] {
        match self.unhinted() {
            Plan::Tree(plan) => &plan.tables,
            Plan::Modify(plan) => &plan.query.tables,
            Plan::Into(plan) => plan.query.tree_tables(),
            Plan::Insert(plan) => match (&plan.select, &plan.load) {
                (Some(select), _) => select.tree_tables(),
                (None, Some(load)) => &load.queries.tables,
                (None, None) => &[],
            },
            _ => &[],
        }
    }

    /// Whether the dictionary still has the version of the tables for which the plan was made.
    pub fn is_current(&self, dictionary: &Dictionary) -> bool {
        let is_same = |table: &TableLayout| {
            let definition = &table.definition;
            dictionary.table(definition.id).is_some_and(|now| now.definition.version == definition.version)
        };
        if !self.tree_tables().iter().all(|table| is_same(&table.layout)) {
            return false;
        }
        let Some(table) = self.table() else { return true };
        let queried = match self.unhinted() {
            Plan::Insert(plan) => plan.select.as_ref().and_then(QueryPlan::table),
            _ => None,
        };
        is_same(table) && queried.is_none_or(|(table, _)| is_same(table))
    }

    /// The columns of the result; `None` for a statement that returns no rows.
    pub fn header(&self) -> Option<&ResultHeader> {
        match self.unhinted() {
            Plan::Select(plan) => Some(&plan.header),
            Plan::Compute(plan) => Some(&plan.header),
            Plan::Tree(plan) => Some(&plan.header),
            Plan::Insert(plan) => plan.returning.as_ref().map(|returning| &returning.header),
            Plan::Change(plan) => plan.returning.as_ref(),
            Plan::Into(_) | Plan::Control(_) | Plan::Modify(_) | Plan::Hinted(_) => None,
        }
    }

    /// Estimated bytes of the plan for a statement with this text, without the table's layout. Expressions
    /// grow with the text, columns with the table.
    pub fn bytes(&self, text: &[u8]) -> usize {
        let columns = self.header().map_or(0, |header| header.columns.len());
        let values = match self {
            Plan::Insert(plan) => plan.rows.iter().map(Vec::len).sum(),
            _ => 0,
        };
        let nested = match self {
            Plan::Insert(plan) if plan.load.is_some() => {
                let queries = plan.load.iter().flat_map(|load| &load.queries.queries);
                queries.map(|line| Plan::from(line.query.clone()).bytes(&[])).sum()
            }
            Plan::Insert(plan) => plan.select.clone().map_or(0, |select| Plan::from(select).bytes(&[])),
            Plan::Into(plan) => Plan::from(plan.query.clone()).bytes(&[]),
            Plan::Hinted(plan) => plan.plan.bytes(&[]),
            _ => 0,
        };
        PLAN_BYTES + PLAN_BYTES_PER_TEXT_BYTE * text.len() + PLAN_BYTES_PER_COLUMN * (columns + values) + nested
    }

    /// The tables that the statement uses, including those that its foreign keys can reach, and whether it
    /// writes or locks rows in each.
    pub(crate) fn table_uses(&self) -> impl Iterator<Item = TableUse> + '_ {
        let locks = match self.unhinted() {
            Plan::Select(select) => select.locking_program.is_some(),
            Plan::Into(plan) => plan.query.table().is_some_and(|(_, locks)| locks),
            _ => false,
        };
        let writes = self.writes() || locks;
        // No other session can change a temporary table.
        let is_common = |table: &&Arc<TableLayout>| !table.definition.is_temporary();
        let own = self.table().filter(is_common).map(|table| table.definition.id);
        let foreign = match self.unhinted() {
            Plan::Insert(plan) => [plan.program.foreign_keys.as_ref(), plan.conflict.foreign_keys()],
            Plan::Change(plan) => [plan.program.foreign_keys.as_ref(), None],
            _ => [None, None],
        };
        let of_targets = match self.unhinted() {
            Plan::Modify(plan) => &plan.targets[..],
            _ => &[],
        };
        let of_targets = of_targets.iter().filter_map(|target| target.program.foreign_keys.as_ref());
        let foreign = foreign.into_iter().flatten().chain(of_targets);
        let reachable = foreign.flat_map(|foreign| foreign.reachable.iter().copied());
        // The query of INSERT ... SELECT adds the table that it reads.
        let selected = match self.unhinted() {
            Plan::Insert(plan) => plan.select.as_ref().and_then(QueryPlan::table),
            _ => None,
        };
        let selected = selected.filter(|(table, _)| is_common(table));
        let selected = selected.map(|(table, locks)| TableUse { table: table.definition.id, writes: locks });
        let of_tree = self.tree_tables().iter();
        let of_tree = of_tree.map(|table| TableUse { table: table.layout.definition.id, writes: table.locks });
        own.into_iter().chain(reachable).map(move |table| TableUse { table, writes }).chain(selected).chain(of_tree)
    }

    /// Whether the statement reads existing rows by a condition or a query. Checks for existing keys do not
    /// count.
    pub(crate) fn reads_rows(&self) -> bool {
        match self.unhinted() {
            Plan::Select(_) | Plan::Change(_) | Plan::Modify(_) => true,
            Plan::Insert(plan) => plan.select.is_some() || !self.tree_tables().is_empty(),
            Plan::Into(plan) => plan.query.table().is_some() || !plan.query.tree_tables().is_empty(),
            Plan::Tree(plan) => !plan.tables.is_empty(),
            Plan::Compute(_) | Plan::Control(_) | Plan::Hinted(_) => false,
        }
    }

    /// Whether the statement inserts, updates or deletes rows. A locking query does not count.
    pub fn writes(&self) -> bool {
        matches!(self.unhinted(), Plan::Insert(_) | Plan::Change(_) | Plan::Modify(_))
    }
}
