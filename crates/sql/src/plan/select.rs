//! Queries of one stored table.

use std::ops::Range;
use std::sync::Arc;

use junctor_expression::Expression;
use junctor_model::error::{Error, Result};
use junctor_model::id::ColumnNumber;
use junctor_model::schema::{Dictionary, TableLayout};
use junctor_model::temporal::ValueRules;
use junctor_model::value::Value;
use junctor_signals::program::{
    Aggregate, LockMode, Output, Projection, ReadProgram, SortKey, WhenLocked, WriteAction, WriteProgram,
};

use super::access::{AccessPath, AccessRequest, ChosenPath, OrderColumn, ScopeTemplate, Walk, choose, walk_in_order};
use super::functional::{WithKeyExpressions, with_key_expressions};
use super::index_share::values_of;
use super::multi_valued::with_elements;
use super::operand::{KeyValues, LimitTemplate, ValueSet, is_fixed, reads_parameter};
use super::operation_kind::OperationKind;
use super::order::{bind_order_of, check_distinct_order, plain_order};
use super::prefix::{WithPrefixes, with_prefixes};
use super::restriction::restrictions_of;
use super::statement::{Planned, QueryPlan};
use super::time_to_live::{Living, living};
use super::tree::RowSample;
use crate::access::PlanRights;
use crate::bind::{Binder, Environment, ParameterKind, Scope, UnstoredColumns, bind_select_list, message};
use crate::parse::statement::{self, LockingClause, ObjectName, Select, TableLocks, TableReference};
use crate::result::ResultHeader;

/// Maximum length, in characters, of a string column whose index keys are never truncated. Only such an index
/// orders its rows like the values.
const ORDERED_CHARACTERS_MAX: u32 = 191;

/// How the session combines the rows of the partitions.
#[derive(Clone, Debug)]
pub enum FinalStep {
    /// Rows are forwarded to the client in the order of arrival.
    Stream,
    /// Rows are merged by their sort keys. With DISTINCT, the session returns one of several equal rows.
    Sort {
        /// Whether the query has DISTINCT.
        distinct: bool,
        /// Whether each partition returns its rows already in this order. Each partition can then stop at
        /// the row number of LIMIT.
        ordered: bool,
    },
    /// The partitions' partial aggregates are merged, and the single result row is computed from the result.
    Aggregate {
        /// The aggregates, in the order of their parameters.
        aggregates: Vec<Aggregate>,
        /// The values of the result row. They read the aggregates as parameters; the first aggregate is
        /// parameter `first_parameter`.
        projection: Projection,
        /// Number of the parameter for the first aggregate.
        first_parameter: u16,
    },
}

/// The plan of a query of one stored table.
#[derive(Debug)]
pub struct SelectPlan {
    /// The rights that the statement needs.
    pub rights: PlanRights,
    /// The columns of the result.
    pub header: ResultHeader,
    /// The table, at the schema version of the plan.
    pub table: Arc<TableLayout>,
    /// The table's alias in the statement; its name if it has none.
    pub table_alias: Box<str>,
    /// How the rows are found.
    pub path: AccessPath,
    /// Whether the statistics of the table decide how the rows are found.
    pub is_by_statistics: bool,
    /// The program of the read without locks.
    pub program: Arc<ReadProgram>,
    /// The program of the same read with locks. Present with FOR UPDATE and FOR SHARE, and for every query in
    /// a SERIALIZABLE transaction of several statements.
    pub locking_program: Option<Arc<WriteProgram>>,
    /// How the session combines the rows of the partitions.
    pub final_step: FinalStep,
    /// Conjuncts that do not depend on the row. They are evaluated once for each execution; unless all are
    /// true, the result is empty.
    pub one_time_filter: Vec<Expression>,
    /// LIMIT and OFFSET.
    pub limit: Option<LimitTemplate>,
    /// Whether the query has SQL_CALC_FOUND_ROWS: FOUND_ROWS() then ignores LIMIT.
    pub calc_found_rows: bool,
    /// The part of the rows that ANALYZE TABLE reads.
    pub sample: Option<RowSample>,
    /// The kind of statement under which the latency of an execution is recorded.
    pub operation: OperationKind,
}

impl SelectPlan {
    /// Whether the dictionary still has this version of the table.
    pub(crate) fn is_current(&self, dictionary: &Dictionary) -> bool {
        let definition = &self.table.definition;
        dictionary.table(definition.id).is_some_and(|now| now.definition.version == definition.version)
    }
}

/// Plans a query of a stored table.
///
/// # Errors
/// Errors of binding; 1176 for an unknown index in a hint; 3065 for a sort key outside a DISTINCT select
/// list; 3568 and 3569 for the tables of FOR UPDATE OF; 1235 for GROUP BY, HAVING with aggregates and other
/// unsupported clauses.
pub(super) fn plan_select(
    environment: &Environment<'_>,
    select: &Select,
    layout: &Arc<TableLayout>,
) -> Result<Planned<QueryPlan>> {
    reject_unsupported(select)?;
    let reference = select.table();
    let alias = reference.and_then(|reference| reference.alias.as_deref());
    let mut binder = Binder::new(environment, Scope::of_table(layout, alias));
    check_lock_names(&select.locks, 1, |_, name| binder.scope.is_named(name.database.as_deref(), &name.name))?;
    let first_parameter = environment.parameters.len() as u16;
    let list = bind_select_list(&mut binder, &select.projection, first_parameter)?;
    let filter = binder.bind_conditions(select, &list)?;
    let WithKeyExpressions { filter, wants_literals } = with_key_expressions(filter, environment, layout)?;
    binder.is_volatile |= wants_literals;
    let Living { filter, is_volatile } = living(filter, environment, layout)?;
    binder.is_volatile |= is_volatile;
    let with_elements = with_elements(filter, environment, layout)?;
    binder.is_volatile |= with_elements.wants_literals;
    let WithPrefixes { filter, implied } = with_prefixes(with_elements.filter, &layout.definition)?;
    let is_aggregate = !list.aggregates.is_empty();
    let sort = bind_order_of(&mut binder, select, &list)?;
    if select.distinct {
        check_distinct_order(&sort, &list.projection)?;
    }
    let conjuncts = filter.as_ref().map_or(&[][..], Expression::conjuncts);
    let order = plain_order(&sort).filter(|_| !select.distinct);
    let order_columns = order.as_deref();
    let request = AccessRequest {
        dictionary: environment.dictionary,
        layout,
        parameters: environment.parameters,
        conjuncts,
        hints: reference.map_or(&[][..], |reference| &reference.index_hints),
        for_write: locking_clause(environment, select).is_some(),
        order: order_columns.filter(|columns| {
            // Index order is requested only where it saves work: with LIMIT the read stops early, and the
            // rows of a table with one partition need no merge.
            (select.limit.is_some() || layout.definition.partition_count == 1) && keys_keep_order(layout, columns)
        }),
        profile: environment.profile,
        join_lists: 0..0,
    };
    let mut chosen = choose(&request)?;
    chosen.implied.extend(with_elements.implied.chain(implied));
    let is_single = is_single_row(&chosen.path);
    let in_order = is_ordered(&chosen, order_columns, layout);
    let final_step = match (is_aggregate, select.distinct) {
        (true, _) => FinalStep::Aggregate {
            aggregates: list.aggregates.clone(),
            projection: list.projection.clone(),
            first_parameter,
        },
        (false, true) if !is_single => FinalStep::Sort { distinct: true, ordered: false },
        (false, _) if sort.is_empty() || is_single || in_order && is_one_partition(&chosen.path, layout) => {
            FinalStep::Stream
        }
        _ => FinalStep::Sort { distinct: false, ordered: in_order },
    };
    let header = ResultHeader::new(list.projection.columns.clone());
    let projection = list.projection.with_format(&layout.row_format);
    let output = output_of(&final_step, projection, list.aggregates, sort);
    let lock = locking_clause(environment, select);
    let parts = Parts {
        header,
        filter,
        output,
        final_step,
        is_single,
        lock,
        is_strict: environment.is_strict,
        rules: environment.rules,
    };
    let plan = build(select, (environment, layout), binder.scope.table, chosen, parts)?;
    Ok(Planned { plan: QueryPlan::Select(Arc::new(plan)), is_volatile: binder.is_volatile })
}

/// A query of one table whose rows enter a tree of operators.
pub(super) struct LeafRequest<'a> {
    pub layout: &'a Arc<TableLayout>,
    pub reference: &'a TableReference,
    pub filter: Option<Expression>,
    pub projection: Projection,
    /// The kinds of the parameters: those of the statement and those of the tree.
    pub kinds: Vec<ParameterKind>,
    pub lock: Option<LockingClause>,
    /// The parameters that are lists of a join: see [`AccessRequest`].
    pub join_lists: Range<u16>,
}

impl LeafRequest<'_> {
    /// The access path. Errors: those of [`choose`].
    pub fn path(&self, environment: &Environment<'_>) -> Result<AccessPath> {
        let with_elements = with_elements(self.filter.clone(), environment, self.layout)?;
        let WithPrefixes { filter, .. } = with_prefixes(with_elements.filter, &self.layout.definition)?;
        Ok(self.choose(environment, filter.as_ref())?.path)
    }

    /// The columns that the conditions bind to values, and the number of values of each.
    pub fn bound_columns(&self) -> Vec<(ColumnNumber, f64)> {
        let conjuncts = self.filter.as_ref().map_or(&[][..], Expression::conjuncts);
        let restrictions = restrictions_of(&self.layout.definition, conjuncts);
        let bound = restrictions.iter().filter_map(|restriction| match restriction.value_sets.as_slice() {
            [ValueSet::Values(KeyValues::Null)] => None,
            [ValueSet::Values(values)] => Some((restriction.column, values_of(values))),
            _ => None,
        });
        bound.collect()
    }

    fn choose(&self, environment: &Environment<'_>, filter: Option<&Expression>) -> Result<ChosenPath> {
        choose(&AccessRequest {
            dictionary: environment.dictionary,
            layout: self.layout,
            parameters: &self.kinds,
            conjuncts: filter.map_or(&[][..], Expression::conjuncts),
            hints: &self.reference.index_hints,
            for_write: self.lock.is_some(),
            order: None,
            profile: environment.profile,
            join_lists: self.join_lists.clone(),
        })
    }
}

/// Plans a leaf. Returns also whether the plan is valid for one execution only. Errors: those of [`choose`].
pub(super) fn plan_leaf(environment: &Environment<'_>, request: LeafRequest<'_>) -> Result<(SelectPlan, bool)> {
    let layout = request.layout;
    let with_elements = with_elements(request.filter.clone(), environment, layout)?;
    let WithPrefixes { filter, implied } = with_prefixes(with_elements.filter, &layout.definition)?;
    let mut chosen = request.choose(environment, filter.as_ref())?;
    chosen.implied.extend(with_elements.implied.chain(implied));
    let parts = Parts {
        header: ResultHeader::new(request.projection.columns.clone()),
        filter,
        output: Output::Packets(request.projection),
        final_step: FinalStep::Stream,
        is_single: is_single_row(&chosen.path),
        lock: request.lock,
        is_strict: environment.is_strict,
        rules: environment.rules,
    };
    let alias = request.reference.alias.as_deref().unwrap_or(&layout.definition.name);
    Ok((build(&Select::default(), (environment, layout), alias, chosen, parts)?, with_elements.wants_literals))
}

struct Parts {
    header: ResultHeader,
    filter: Option<Expression>,
    output: Output,
    final_step: FinalStep,
    is_single: bool,
    lock: Option<LockingClause>,
    is_strict: bool,
    rules: ValueRules,
}

/// Checks that the locking clauses name some of the query's `count` tables, and none of them twice. Tables of
/// two databases may have one name. Errors: 3568, 3569.
pub(super) fn check_lock_names(
    locks: &[TableLocks],
    count: usize,
    is_named: impl Fn(usize, &ObjectName) -> bool,
) -> Result<()> {
    if locks.is_empty() {
        return Ok(());
    }
    let mut is_locked = vec![false; count];
    for name in locks.iter().flat_map(|locks| &locks.names) {
        let mut is_found = false;
        for (number, is_locked) in is_locked.iter_mut().enumerate() {
            if !is_named(number, name) {
                continue;
            }
            if std::mem::replace(is_locked, true) {
                return Err(message::table_locked_twice(&name.name));
            }
            is_found = true;
        }
        if !is_found {
            return Err(message::unresolved_table_lock(&name.name));
        }
    }
    // A clause without names concerns all tables, so that another one names some of them again.
    match locks.len() > 1 && locks.iter().any(|locks| locks.names.is_empty()) {
        true => {
            let first = locks.iter().find_map(|locks| locks.names.first());
            Err(message::table_locked_twice(first.map_or("*", |name| name.name.as_str())))
        }
        false => Ok(()),
    }
}

/// The locks that the query requests on all of its tables, or shared locks if the transaction locks all rows
/// that it reads (SERIALIZABLE). `None` if it locks nothing.
pub(super) fn locking_clause(environment: &Environment<'_>, select: &Select) -> Option<LockingClause> {
    select.locks.first().map(|locks| locks.clause).or_else(|| implied_lock(environment))
}

/// The shared lock of the rows that a SERIALIZABLE transaction reads.
pub(super) fn implied_lock(environment: &Environment<'_>) -> Option<LockingClause> {
    let implied = LockingClause { exclusive: false, when_locked: statement::WhenLocked::Wait };
    environment.locks_reads.then_some(implied)
}

fn build(
    select: &Select,
    (environment, layout): (&Environment<'_>, &Arc<TableLayout>),
    table_alias: &str,
    chosen: ChosenPath,
    parts: Parts,
) -> Result<SelectPlan> {
    let ChosenPath { path, access, implied, is_by_statistics } = chosen;
    let Parts { filter, mut output, .. } = parts;
    let never = filter.as_ref().is_some_and(is_always_false);
    let (one_time_filter, mut filter) = split_filter(filter, &implied);
    let unstored = UnstoredColumns::of(environment, layout)?;
    unstored.put_into_all(&mut filter)?;
    unstored.put_into_output(&mut output)?;
    let path = if never { AccessPath::Nothing } else { path };
    let operation = match path {
        AccessPath::Nothing => OperationKind::Other,
        AccessPath::PrimaryKeys(_) | AccessPath::UniqueKeys { .. } if parts.is_single => OperationKind::PointRead,
        AccessPath::PrimaryKeys(_) | AccessPath::UniqueKeys { .. } => OperationKind::BatchRead,
        AccessPath::Ranges { .. } => OperationKind::RangeRead,
        AccessPath::AllRows(_) => OperationKind::Scan,
    };
    let reads_parameters = filter.as_ref().is_some_and(reads_parameter) || output_reads_parameter(&output);
    let locking_program = parts.lock.map(|lock| {
        let mode = if lock.exclusive { LockMode::Exclusive } else { LockMode::Shared };
        let when_locked = match lock.when_locked {
            statement::WhenLocked::Wait => WhenLocked::Wait,
            statement::WhenLocked::Fail => WhenLocked::Fail,
            statement::WhenLocked::Skip => WhenLocked::Skip,
        };
        let action = WriteAction::LockRead { mode, when_locked, output: output.clone(), is_strict: parts.is_strict };
        let filter = filter.clone();
        Arc::new(WriteProgram {
            filter,
            reads_parameters,
            rules: parts.rules,
            ..WriteProgram::new(layout, action, access)
        })
    });
    let program = ReadProgram {
        filter,
        reads_parameters,
        is_strict: parts.is_strict,
        rules: parts.rules,
        ..ReadProgram::new(layout, access, output)
    };
    Ok(SelectPlan {
        rights: PlanRights::default(),
        header: parts.header,
        table: Arc::clone(layout),
        table_alias: table_alias.into(),
        path,
        is_by_statistics,
        program: Arc::new(program),
        locking_program,
        final_step: parts.final_step,
        one_time_filter,
        limit: select.limit.map(LimitTemplate::of).transpose()?,
        calc_found_rows: select.calc_found_rows,
        sample: None,
        operation,
    })
}

/// Rejects clauses that the parser accepts but no plan supports. Error: 1235.
pub(super) fn reject_unsupported(select: &Select) -> Result<()> {
    if select.with_rollup {
        return Err(Error::not_supported("WITH ROLLUP"));
    }
    if !select.group_by.is_empty() {
        return Err(Error::not_supported("GROUP BY"));
    }
    Ok(())
}

fn output_of(final_step: &FinalStep, projection: Projection, aggregates: Vec<Aggregate>, sort: Vec<SortKey>) -> Output {
    match final_step {
        FinalStep::Stream => Output::Packets(projection),
        FinalStep::Sort { distinct, .. } => {
            let distinct = distinct.then(|| unsorted_values(&projection, &sort));
            Output::Entries { projection, sort, distinct }
        }
        FinalStep::Aggregate { .. } => Output::Aggregates(aggregates),
    }
}

/// Positions of the values that are not sort keys. Rows are equal if these values and the sort keys are
/// equal.
fn unsorted_values(projection: &Projection, sort: &[SortKey]) -> Vec<u16> {
    let is_sorted = |value: &Expression| sort.iter().any(|key| key.value == *value);
    let positions = projection.values.iter().enumerate().filter(|(_, value)| !is_sorted(value));
    positions.map(|(position, _)| position as u16).collect()
}

/// Splits a condition into the one-time filter, whose conjuncts do not depend on the row, and the filter that
/// is evaluated for each row. Neither contains conjuncts that the access path implies, whose positions are in
/// `implied`.
pub(super) fn split_filter(filter: Option<Expression>, implied: &[usize]) -> (Vec<Expression>, Option<Expression>) {
    let Some(filter) = filter else { return (Vec::new(), None) };
    let rest = filter.conjuncts().iter().enumerate().filter(|(position, _)| !implied.contains(position));
    let rest: Vec<Expression> =
        rest.map(|(_, conjunct)| conjunct.clone()).filter(|conjunct| !is_always_true(conjunct)).collect();
    let (one_time_filter, rest): (Vec<Expression>, Vec<Expression>) = rest.into_iter().partition(is_fixed);
    (one_time_filter, if rest.is_empty() { None } else { Some(Expression::and(rest)) })
}

/// Whether a condition has a constant conjunct that is not true.
pub(super) fn is_always_false(filter: &Expression) -> bool {
    filter.conjuncts().iter().any(|conjunct| match conjunct.as_constant() {
        Some(Value::Null) => true,
        Some(Value::Int(value)) => *value == 0,
        Some(Value::UInt(value)) => *value == 0,
        _ => false,
    })
}

fn is_always_true(conjunct: &Expression) -> bool {
    match conjunct.as_constant() {
        Some(Value::Int(value)) => *value != 0,
        Some(Value::UInt(value)) => *value != 0,
        _ => false,
    }
}

/// Whether every execution finds at most one row.
pub(super) fn is_single_row(path: &AccessPath) -> bool {
    match path {
        AccessPath::Nothing => true,
        AccessPath::PrimaryKeys(keys) | AccessPath::UniqueKeys { keys, .. } => match keys.alternatives.as_slice() {
            [key] => key.iter().all(KeyValues::is_single),
            _ => false,
        },
        AccessPath::Ranges { .. } | AccessPath::AllRows(_) => false,
    }
}

fn is_one_partition(path: &AccessPath, layout: &TableLayout) -> bool {
    let scope = match path {
        AccessPath::Ranges { scope, .. } | AccessPath::AllRows(scope) => scope,
        _ => return false,
    };
    layout.definition.partition_count == 1 || matches!(scope, ScopeTemplate::Bound(_))
}

/// Whether the path returns rows in this order within each partition.
pub(super) fn is_ordered(chosen: &ChosenPath, order: Option<&[OrderColumn]>, layout: &TableLayout) -> bool {
    match (&chosen.path, order) {
        (AccessPath::Ranges { ranges, descending, .. }, Some(order)) => {
            let walk = if *descending { Walk::Down } else { Walk::Up };
            walk_in_order(ranges, order) == Some(walk) && keys_keep_order(layout, order)
        }
        _ => false,
    }
}

/// Whether index keys of these columns are never truncated, so that they are ordered like the values.
pub(super) fn keys_keep_order(layout: &TableLayout, columns: &[OrderColumn]) -> bool {
    columns.iter().all(|OrderColumn { column, .. }| {
        let column_type = &layout.definition.columns[usize::from(column.0)].column_type;
        column_type.collation().is_none()
            || !column_type.is_text_or_blob() && column_type.length() <= ORDERED_CHARACTERS_MAX
    })
}

/// Whether the output of a read depends on a parameter.
pub(super) fn output_reads_parameter(output: &Output) -> bool {
    match output {
        Output::Packets(projection) => projection.values.iter().any(reads_parameter),
        Output::Entries { projection, sort, .. } => {
            projection.values.iter().any(reads_parameter) || sort.iter().any(|key| reads_parameter(&key.value))
        }
        Output::Aggregates(aggregates) => {
            aggregates.iter().any(|aggregate| aggregate.argument.as_ref().is_some_and(reads_parameter))
        }
        Output::Images => false,
        Output::Groups { projection, keys, aggregates } => {
            let arguments = aggregates.iter().filter_map(|aggregate| aggregate.argument.as_ref());
            projection.values.iter().chain(keys).chain(arguments).any(reads_parameter)
        }
    }
}
