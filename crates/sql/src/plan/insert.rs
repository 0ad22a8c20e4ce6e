//! INSERT and REPLACE: the source of each column's value in the new rows.
//! The file is long because all parts of an INSERT's plan share the values of its columns.

use std::borrow::Cow;
use std::sync::Arc;

use junctor_expression::{CastTarget, Coercibility, Expression, Kind, Node, Parameters, ResultType, Scratch};
use junctor_model::access::Privilege;
use junctor_model::collation::CollationId;
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::foreign_key::RowWrite;
use junctor_model::id::ColumnNumber;
use junctor_model::row_encoding::wire_type;
use junctor_model::schema::{ColumnDefinition, TableDefinition, TableLayout};
use junctor_model::store::{StoreMode, StoreTarget};
use junctor_model::types::Form;
use junctor_model::value::{DOUBLE_INTEGER_MAX, FLOAT_INTEGER_MAX, Value};
use junctor_signals::program::{Access, Projection, WriteAction, WriteProgram};
use junctor_signals::row_expressions::RowExpressions;

use super::Plan;
use super::change::{foreign_keys, unique_entries};
use super::compute::type_of_column;
use super::conflict::{Conflict, InsertTarget, KeyLock, PlannedConflict, plan_conflict};
use super::insert_query::{Extracted, extract};
use super::insert_view::through_view;
use super::load::{LoadPlan, loaded_row, plan_load};
use super::operand::needs_row;
use super::select::FinalStep;
use super::statement::{Planned, QueryPlan, plan_query};
use super::time_to_live::{ExpiredRows, expired_rows};
use super::virtual_table::FindVirtual;
use crate::access::{PlanRights, TableAccess};
use crate::bind::{
    Binder, Environment, NumberRules, ParameterKind, Scope, StoredExpressions, UnstoredColumns, as_stored,
    bind_returning_list, default_into, message, no_default, number_of_literal, takes_bytes,
};
use crate::parse::expression as ast;
use crate::parse::statement::{Insert, InsertSource, Select, SelectItem};
use crate::result::ResultHeader;

/// The source of one column's value in a new row.
#[derive(Clone, Debug, PartialEq)]
pub enum InsertValue {
    /// A parameter, converted to the column's type at each execution.
    Parameter(u16),
    /// A value that already has the column's type.
    Stored(Value),
    /// An expression, evaluated and converted at each execution.
    Computed(Expression),
    /// The next AUTO_INCREMENT number.
    Generated,
    /// The time of the statement with this number of digits, converted to the column's type.
    Now(u8),
    /// A column of the plan's row expressions, computed when the other columns are known. Before that the
    /// column has this value.
    Deferred(Value),
}

/// The position of the literals in the rows of VALUES, if all rows have the same form: they differ only in
/// these literals. The plan then keeps one row for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UniformRowForm {
    /// Parameter number of a row's first literal. The row's other literals have the next numbers.
    pub first: u16,
    /// Number of literals in a row.
    pub width: u16,
}

/// The column that receives AUTO_INCREMENT numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AutoColumn {
    /// Its position in the table.
    pub index: ColumnNumber,
    /// Whether it is the hidden key, which LAST_INSERT_ID() does not report.
    pub is_hidden: bool,
    /// The largest number that the column can hold.
    pub number_max: u64,
    /// The hidden key beside a visible column. Each row takes one number: the key has that of the visible
    /// column, and one of its own if the statement gives the visible column a value.
    pub hidden_key: Option<ColumnNumber>,
    /// The numbers that rows get; those of hidden keys have no gaps.
    pub rules: NumberRules,
}

/// The plan of an INSERT or REPLACE.
#[derive(Debug)]
pub struct InsertPlan {
    /// The rights that the statement needs.
    pub rights: PlanRights,
    /// The table, at the schema version of the plan.
    pub table: Arc<TableLayout>,
    /// The write of the new rows.
    pub program: Arc<WriteProgram>,
    /// The rows as written, each with one value for every column of the table. Rows of the same form, and the
    /// rows of a query, are represented by one element.
    pub rows: Vec<Vec<InsertValue>>,
    /// The order in which the columns of a row are evaluated, if it is not their order in the table: first
    /// those that the statement does not name, then the others as written.
    pub order: Option<Box<[ColumnNumber]>>,
    /// Present if a row is made in several steps.
    pub steps: Option<Box<RowSteps>>,
    /// Present if all rows have the same form. The plan then has one row; the executions supply the literals
    /// of all rows.
    pub uniform_rows: Option<UniformRowForm>,
    /// The AUTO_INCREMENT column; it may be the hidden key.
    pub auto: Option<AutoColumn>,
    /// Whether the partition columns are the primary key, so that one hash serves both.
    pub key_is_partition: bool,
    /// Whether the plan is valid for parameters of all kinds, because no expression reads one.
    pub takes_any_kind: bool,
    /// The query of INSERT ... SELECT. Its columns are the parameters of the only element of `rows`.
    pub select: Option<QueryPlan>,
    /// Whether the rows are those of VALUES. Each row of the query then makes all of them.
    pub is_values: bool,
    /// The file of LOAD DATA. Its fields are among the parameters of the only element of `rows`.
    pub load: Option<LoadPlan>,
    /// The action for a row with a unique key that exists already.
    pub conflict: Conflict,
    /// How expired rows with keys of new rows are removed; `None` if the rows of the table do not expire.
    pub expired: Option<Box<ExpiredRows>>,
    /// The handling of a value that does not fit its column. With IGNORE the nearest fitting value is stored.
    pub mode: StoreMode,
    /// Whether NULL in a NOT NULL column fails if the statement has one row, although other values are
    /// adjusted: without IGNORE and without a strict `sql_mode`.
    pub refuses_null: bool,
    /// The warnings of each execution, for columns without a value and without a default.
    pub warnings: Vec<(ErrorCode, Box<str>)>,
    /// The RETURNING clause; `None` if the statement has none.
    pub returning: Option<InsertReturning>,
}

impl InsertPlan {
    /// The keys to check before a row is written that meets an existing key; empty if the write itself
    /// detects all duplicates.
    pub fn keys(&self) -> &[KeyLock] {
        self.expired.as_ref().map_or(self.conflict.keys(), |expired| &expired.keys)
    }

    /// Whether a row with an existing key is an error whatever the existing row is.
    pub fn refuses_duplicates(&self) -> bool {
        matches!(self.conflict, Conflict::Fail) && self.expired.is_none()
    }
}

/// How a row is made whose values depend on each other.
#[derive(Debug)]
pub struct RowSteps {
    /// The columns for which the statement has values, in the order of the statement. Present only if a value
    /// is computed from other columns. Each column then has its default until its own value is computed.
    pub assigned_columns: Option<Vec<ColumnNumber>>,
    /// Whether the AUTO_INCREMENT value is computed from other columns, or by SET of LOAD DATA. Each row is
    /// then made twice: first to find out whether a number must be generated for it.
    pub computes_number: bool,
    /// Generated columns, defaults that read the row, and CHECK constraints.
    pub expressions: RowExpressions,
    /// IGNORE: a row that violates a CHECK constraint is left out, with a warning.
    pub leaves_out: bool,
}

/// The RETURNING clause of an INSERT.
#[derive(Debug)]
pub struct InsertReturning {
    /// The columns of the result.
    pub header: ResultHeader,
    /// The RETURNING columns of each inserted or updated row.
    pub rows: Projection,
}

/// Warnings to be repeated at each execution.
pub(super) type Warnings = Vec<(ErrorCode, Box<str>)>;

/// Plans an INSERT or REPLACE.
///
/// # Errors
/// Errors of binding and of planning the query; 1136 for a row with a wrong number of values, 1110 for a
/// repeated column, 1364 for an omitted column without a default, 1048 and other errors of storing constants.
pub(super) fn plan_insert(
    environment: &Environment<'_>,
    insert: &Insert,
    find_virtual: &FindVirtual<'_>,
) -> Result<Planned> {
    if let Some((into, checks)) = through_view(environment, insert, find_virtual)? {
        // The plan does not know the version of the view.
        let planned = plan_insert_checked(environment, &into, &checks, find_virtual)?;
        return Ok(Planned { is_volatile: true, ..planned });
    }
    plan_insert_checked(environment, insert, &[], find_virtual)
}

/// Plans an INSERT into a table. `checks` are those of the view through which it is written.
fn plan_insert_checked(
    environment: &Environment<'_>,
    insert: &Insert,
    checks: &[Expression],
    find_virtual: &FindVirtual<'_>,
) -> Result<Planned> {
    let layout = environment.table(&insert.table, TableAccess::Insert)?;
    if insert.replace {
        environment.table(&insert.table, TableAccess::Replace)?;
    }
    if !insert.on_duplicate.is_empty() {
        environment.table(&insert.table, TableAccess::Update)?;
    }
    let first_of_update = environment.parameters.len() + layout.definition.columns.len();
    let Some(extracted) = extract(environment, insert, first_of_update)? else {
        return plan_insert_into(environment, (insert, checks), layout, Query::Written(find_virtual, &[]));
    };
    let Extracted { insert, values, of_update } = extracted;
    let Some(mut values) = values else {
        return plan_insert_into(environment, (&insert, checks), layout, Query::Written(find_virtual, &of_update));
    };
    let given = values.projection.len();
    values.projection.extend(of_update);
    let planned = plan_source(environment, insert.ignore, &values, find_virtual)?;
    let types = planned.plan.value_types();
    plan_insert_into(environment, (&insert, checks), layout, Query::Values(planned, &types, given))
}

/// Plans the insert of a query's rows into the table of a CREATE TABLE ... SELECT. The statement names the
/// columns and has no rows.
///
/// # Errors
/// The same as of an INSERT ... SELECT.
pub(crate) fn plan_fill(
    environment: &Environment<'_>,
    insert: &Insert,
    layout: &Arc<TableLayout>,
    query: Planned<QueryPlan>,
) -> Result<Planned> {
    plan_insert_into(environment, (insert, &[]), layout, Query::Planned(query))
}

/// The query of an INSERT ... SELECT.
enum Query<'q> {
    /// The statement has it, if any. The items are the subqueries of ON DUPLICATE KEY UPDATE.
    Written(&'q FindVirtual<'q>, &'q [SelectItem]),
    /// It computes the subqueries of VALUES, of which this is the number, and those of ON DUPLICATE KEY
    /// UPDATE. They have these types.
    Values(Planned<QueryPlan>, &'q [ResultType], usize),
    Planned(Planned<QueryPlan>),
}

impl Query<'_> {
    /// The parameters of the rows of VALUES, if a query computes them.
    fn kinds_of_values(&self) -> Option<Vec<ParameterKind>> {
        let Query::Values(_, types, given) = self else { return None };
        Some(types.iter().take(*given).copied().map(ParameterKind::exactly).collect())
    }
}

/// The columns to which the statement gives values. It needs the right to insert into them.
fn note_inserted(
    environment: &Environment<'_>,
    definition: &TableDefinition,
    columns: impl Iterator<Item = ColumnNumber>,
) -> Vec<ColumnNumber> {
    columns.inspect(|column| environment.note_assigned(definition, *column, Privilege::Insert)).collect()
}

fn plan_insert_into(
    environment: &Environment<'_>,
    (insert, checks): (&Insert, &[Expression]),
    layout: &Arc<TableLayout>,
    query: Query<'_>,
) -> Result<Planned> {
    let definition = &layout.definition;
    let kinds = query.kinds_of_values();
    let is_values = kinds.is_some();
    let making = Environment { parameters: kinds.as_deref().unwrap_or(environment.parameters), ..*environment };
    let mut binder = Binder::new(&making, Scope::of_table(layout, None));
    let (forms, uniform_rows) = forms_of(&insert.source)?;
    let named = insert.columns.as_deref();
    // With values, an empty list of columns stands for all columns. Without values, every column gets its
    // default.
    let has_values = forms.first().is_none_or(|form| !form.is_empty());
    let mut targets = targets(definition, named.filter(|names| !names.is_empty() || !has_values))?;
    let all_defaults = !has_values && named.is_none_or(<[String]>::is_empty);
    let width = if all_defaults { 0 } else { targets.len() };
    if let Some(position) = forms.iter().position(|form| form.len() != width) {
        return Err(message::column_count(position + 1));
    }
    let mode = mode_of(insert, environment, forms.len() == 1 && uniform_rows.is_none());
    let mut scratch = Scratch::new();
    scratch.set_strict(mode == StoreMode::Strict);
    scratch.set_value_rules(environment.rules);
    let mut defaults = ComputedDefaults::new(environment, layout)?;
    defaults.expressions.checks.extend_from_slice(checks);
    UnstoredColumns::of(environment, layout)?.put_into_rows(&mut defaults.expressions)?;
    let load = match (&insert.source, &query) {
        (InsertSource::Load(load), Query::Written(find_virtual, _)) => {
            let (scope, source) = (Scope::of_table(layout, None), (insert.ignore, *find_virtual));
            let plan = plan_load(environment, (load, definition, &defaults), (scope, mode), source)?;
            binder.is_volatile |= plan.is_volatile || plan.queries.is_volatile;
            let loaded = plan.column_parameters(environment.parameters.len());
            targets = loaded.iter().map(|(column, _)| *column).collect();
            Some((plan, loaded))
        }
        _ => None,
    };
    let mut warnings = Vec::new();
    let assigned = load.iter().flat_map(|(plan, _)| plan.assignments.iter().map(|(column, _)| *column));
    let given = note_inserted(environment, definition, targets.iter().copied().chain(assigned));
    let omitted = omitted_values(definition, &given, (&defaults, mode), &mut warnings)?;
    let mut rows = Vec::with_capacity(forms.len());
    for (position, form) in forms.into_iter().enumerate() {
        let mut row = omitted.clone();
        for (column, value) in targets.iter().zip(form) {
            let row_number = position as u64 + 1;
            let defaults = &defaults;
            let planner = RowPlanner { definition, binder: &mut binder, scratch: &scratch, row_number, mode, defaults };
            row[usize::from(column.0)] = Some(planner.value(*column, value, &mut warnings)?);
        }
        rows.push(complete(definition, row, (&defaults, mode), &mut warnings)?);
    }
    binder.is_volatile |= defaults.is_volatile;
    let (returning, is_volatile) = bind_returning(environment, insert, layout)?;
    binder.is_volatile |= is_volatile;
    let returned = returning.as_ref().map(|returning| &returning.rows);
    let (selected, conflict) = plan_source_and_conflict(environment, insert, layout, (&targets, returned), query)?;
    if selected.is_some() && !is_values {
        targets.iter().try_for_each(|column| check_not_generated(definition, *column))?;
        let parameters: Vec<_> = targets.iter().copied().zip(0..).collect();
        let mut row = row_of_parameters(definition, &parameters, omitted, (&defaults, mode), &mut warnings)?;
        if let Some(selected) = &selected {
            refuse_bytes_as_documents(definition, &parameters, selected.plan.header(), &mut row);
            store_moments_as_numbers(definition, &parameters, selected.plan.header(), &mut row);
        }
        rows.push(row);
    } else if let Some(load) = &load {
        rows.push(loaded_row(definition, load, omitted, (&defaults, mode), &mut warnings)?);
    }
    let load = load.map(|(plan, _)| plan);
    let PlannedConflict { conflict, is_volatile, .. } = conflict;
    let of_select = selected.as_ref().is_some_and(|selected| selected.is_volatile);
    let expired = expired_rows(environment, layout)?;
    let action = if expired.is_some() { WriteAction::InsertOrClaim } else { conflict.action() };
    let program = insert_program(environment, layout, action)?;
    let is_computed = |value: &InsertValue| matches!(value, InsertValue::Computed(_));
    let auto = auto_column(definition, environment.numbers);
    let order = evaluation_order(definition, &targets);
    let steps = row_steps((&rows[..], load.as_ref(), auto), targets, defaults.expressions, insert.ignore);
    let plan = InsertPlan {
        rights: PlanRights::default(),
        takes_any_kind: selected.is_none()
            && load.is_none()
            && !rows.iter().flatten().any(is_computed)
            && !conflict.reads_parameters(),
        table: Arc::clone(layout),
        program: Arc::new(program),
        order,
        steps,
        rows,
        uniform_rows,
        auto,
        key_is_partition: definition.partition_columns == definition.primary().columns,
        conflict,
        expired: expired.map(Box::new),
        select: selected.map(|selected| selected.plan),
        is_values,
        load,
        mode,
        refuses_null: environment.modes.is_lenient && !insert.ignore,
        warnings,
        returning,
    };
    Ok(Planned { plan: Plan::Insert(Arc::new(plan)), is_volatile: binder.is_volatile || is_volatile || of_select })
}

fn insert_program(
    environment: &Environment<'_>,
    layout: &Arc<TableLayout>,
    action: WriteAction,
) -> Result<WriteProgram> {
    let definition = &layout.definition;
    Ok(WriteProgram {
        unique_entries: unique_entries(environment.dictionary, definition, None)?,
        foreign_keys: foreign_keys(environment, definition, RowWrite::Insert),
        rules: environment.rules,
        ..WriteProgram::new(layout, action, Access::PrimaryKeys)
    })
}

/// The order of the columns in which MySQL finds the first wrong value; `None` for that of the table.
fn evaluation_order(definition: &TableDefinition, targets: &[ColumnNumber]) -> Option<Box<[ColumnNumber]>> {
    if targets.is_sorted_by_key(|column| column.0) {
        return None;
    }
    let all = (0..definition.columns.len()).map(|position| ColumnNumber(position as u16));
    Some(all.filter(|column| !targets.contains(column)).chain(targets.iter().copied()).collect())
}

/// The steps that run for each row, if there are any. The rows have values for the columns of `targets`.
fn row_steps(
    (rows, load, auto): (&[Vec<InsertValue>], Option<&LoadPlan>, Option<AutoColumn>),
    targets: Vec<ColumnNumber>,
    expressions: RowExpressions,
    leaves_out: bool,
) -> Option<Box<RowSteps>> {
    let reads_row = |value: &InsertValue| matches!(value, InsertValue::Computed(value) if needs_row(value));
    let assignments = load.map_or(&[][..], |load| &load.assignments);
    let computes_number = auto.is_some_and(|auto| {
        rows.iter().any(|row| reads_row(&row[usize::from(auto.index.0)]))
            || assignments.iter().any(|(column, _)| *column == auto.index)
    });
    let reads_columns = rows.iter().flatten().any(reads_row) || !assignments.is_empty();
    let needs_steps = reads_columns || !expressions.is_empty();
    let assigned_columns = reads_columns.then_some(targets);
    needs_steps.then(|| Box::new(RowSteps { assigned_columns, computes_number, expressions, leaves_out }))
}

/// The rows of VALUES as parsed. For rows of the same form: the first row, and the position of its literals.
/// Error: 1235 for ordinals beyond 65,535.
fn forms_of(source: &InsertSource) -> Result<(Vec<&Vec<ast::Expression>>, Option<UniformRowForm>)> {
    match source {
        InsertSource::Rows(rows) => Ok((rows.iter().collect(), None)),
        InsertSource::UniformRows { row, first, width } => {
            let (Ok(first), Ok(width)) = (u16::try_from(first.0), u16::try_from(*width)) else {
                return Err(Error::not_supported("so many values in a row"));
            };
            Ok((vec![row], Some(UniformRowForm { first, width })))
        }
        InsertSource::Select(_) | InsertSource::Load(_) => Ok((Vec::new(), None)),
    }
}

/// Plans the query, if any, and the handling of existing keys. If the handling needs more columns of the
/// query, the query is planned again. Errors: those of planning a query and of binding; 1136.
fn plan_source_and_conflict(
    environment: &Environment<'_>,
    insert: &Insert,
    layout: &Arc<TableLayout>,
    (targets, returned): (&[ColumnNumber], Option<&Projection>),
    query: Query<'_>,
) -> Result<(Option<Planned<QueryPlan>>, PlannedConflict)> {
    let mut target = InsertTarget { layout, columns: targets, given: targets.len(), subqueries: &[] };
    let (find_virtual, of_update) = match query {
        Query::Written(find_virtual, of_update) => (find_virtual, of_update),
        Query::Planned(query) => {
            return Ok((Some(query), plan_conflict(environment, insert, target, None, returned)?));
        }
        Query::Values(query, types, given) => {
            target = InsertTarget { given, subqueries: &types[given..], ..target };
            return Ok((Some(query), plan_conflict(environment, insert, target, None, returned)?));
        }
    };
    let InsertSource::Select(select) = &insert.source else {
        return Ok((None, plan_conflict(environment, insert, target, None, returned)?));
    };
    let written = with_numbers(select, &layout.definition, targets);
    let mut planned = plan_source(environment, insert.ignore, &written, find_virtual)?;
    if planned.plan.header().columns.len() != targets.len() {
        return Err(message::column_count(1));
    }
    let source = named_source(environment, select, &planned)?;
    let (select, types);
    if of_update.is_empty() {
        (select, types) = (written, Vec::new());
    } else {
        let mut with_subqueries = written.into_owned();
        with_subqueries.projection.extend_from_slice(of_update);
        planned = plan_source(environment, insert.ignore, &with_subqueries, find_virtual)?;
        types = planned.plan.value_types().split_off(targets.len());
        select = Cow::Owned(with_subqueries);
    }
    target.subqueries = &types;
    let conflict = plan_conflict(environment, insert, target, source, returned)?;
    if !conflict.selected_columns.is_empty() {
        let select = with_columns(&select, source, &conflict.selected_columns)?;
        planned = plan_source(environment, insert.ignore, &select, find_virtual)?;
    }
    Ok((Some(planned), conflict))
}

/// The query, with hexadecimal and bit literals replaced by numbers where the target column is numeric.
fn with_numbers<'s>(select: &'s Select, definition: &TableDefinition, targets: &[ColumnNumber]) -> Cow<'s, Select> {
    let mut select = Cow::Borrowed(select);
    for (place, target) in targets.iter().enumerate() {
        let column = &definition.columns[usize::from(target.0)];
        let is_number = column.column_type.collation().is_none() && !takes_bytes(column);
        let number = match select.projection.get(place) {
            Some(SelectItem::Expression { expression, .. }) if is_number => number_of_literal(expression),
            // Later items no longer correspond to their target columns by position.
            Some(SelectItem::All(_)) | None => break,
            Some(SelectItem::Expression { .. }) => None,
        };
        if let Some(number) = number
            && let Some(SelectItem::Expression { expression, .. }) = select.to_mut().projection.get_mut(place)
        {
            *expression = ast::Expression::Literal(ast::Literal::Integer(number.into()));
        }
    }
    select
}

/// Plans the query of INSERT ... SELECT in the INSERT's mode. Errors: those of planning a query.
pub(crate) fn plan_source(
    environment: &Environment<'_>,
    ignore: bool,
    select: &Select,
    find_virtual: &FindVirtual<'_>,
) -> Result<Planned<QueryPlan>> {
    plan_query(
        &Environment { is_strict: !ignore && !environment.modes.is_lenient, ignores: ignore, ..*environment },
        select,
        find_virtual,
    )
}

/// The query's table. ON DUPLICATE KEY UPDATE may name its columns in addition to those of the table that the
/// INSERT writes. `None` for a query without a stored table, and for one with aggregates, whose row is not a
/// row of the table.
fn named_source<'a>(
    environment: &'a Environment<'_>,
    select: &'a Select,
    planned: &Planned<QueryPlan>,
) -> Result<Option<Scope<'a>>> {
    let (QueryPlan::Select(plan), Some(reference)) = (&planned.plan, select.table()) else { return Ok(None) };
    if matches!(plan.final_step, FinalStep::Aggregate { .. }) {
        return Ok(None);
    }
    let layout = environment.table(&reference.name, TableAccess::Read)?;
    Ok(Some(Scope::of_table(layout, reference.alias.as_deref())))
}

/// Adds columns of its table to a query. Error: 1235 for a DISTINCT query, which would then return more rows.
fn with_columns(select: &Select, source: Option<Scope<'_>>, columns: &[ColumnNumber]) -> Result<Select> {
    if select.distinct {
        return Err(Error::not_supported("columns of a DISTINCT query in ON DUPLICATE KEY UPDATE"));
    }
    let mut select = select.clone();
    for column in columns {
        let Some(scope) = source else { break };
        let reference = ast::ColumnReference {
            database: None,
            table: Some(scope.table.into()),
            name: scope.column(*column).column.org_name.to_string(),
        };
        // With an empty alias, no expression of the query can refer to the item.
        let (alias, text) = (Some(String::new()), String::new());
        select.projection.push(SelectItem::Expression {
            expression: ast::Expression::Column(Box::new(reference)),
            alias,
            text,
        });
    }
    Ok(select)
}

/// Binds RETURNING. Also returns whether the clause makes the plan valid for one execution only.
fn bind_returning(
    environment: &Environment<'_>,
    insert: &Insert,
    layout: &Arc<TableLayout>,
) -> Result<(Option<InsertReturning>, bool)> {
    if insert.returning.is_empty() {
        return Ok((None, false));
    }
    let mut binder = Binder::new(environment, Scope::of_table(layout, None));
    let mut rows = bind_returning_list(&mut binder, &insert.returning)?;
    UnstoredColumns::of(environment, layout)?.put_into_projection(&mut rows)?;
    let header = ResultHeader::new(rows.columns.clone());
    Ok((Some(InsertReturning { header, rows }), binder.is_volatile))
}

impl InsertPlan {
    /// Whether truncation and division by zero are errors.
    pub fn is_strict(&self) -> bool {
        self.mode == StoreMode::Strict
    }
}

/// The computed values of a table's columns without a written value.
pub(super) struct ComputedDefaults {
    /// The default of each column that reads no row; `None` for columns without an expression.
    values: Vec<Option<InsertValue>>,
    /// The columns and conditions that are computed when the other columns are known.
    expressions: RowExpressions,
    is_volatile: bool,
}

impl ComputedDefaults {
    /// Errors: those of binding.
    fn new(environment: &Environment<'_>, layout: &Arc<TableLayout>) -> Result<ComputedDefaults> {
        let mut stored = StoredExpressions::new(environment, layout);
        let columns = &layout.definition.columns;
        let mut values = vec![None; columns.len()];
        let mut deferred = Vec::new();
        for computed in stored.computed()? {
            let position = usize::from(computed.column.0);
            let column = &columns[position];
            values[position] = Some(match column.is_generated() || needs_row(&computed.value) {
                true => {
                    let is_null = column.nullable;
                    let before = if is_null { Value::Null } else { column.column_type.implicit_default() };
                    deferred.push(computed);
                    InsertValue::Deferred(before)
                }
                false => InsertValue::Computed(computed.value),
            });
        }
        let expressions = RowExpressions { columns: deferred, checks: stored.checks()? };
        Ok(ComputedDefaults { values, expressions, is_volatile: stored.is_volatile })
    }
}

/// The columns for which the statement has values. Errors: unknown column; 1110 for a repeated one.
pub(super) fn targets(definition: &TableDefinition, columns: Option<&[String]>) -> Result<Vec<ColumnNumber>> {
    let Some(names) = columns else {
        let is_named = |column: &ColumnDefinition| !column.hidden && !column.invisible;
        let visible = definition.columns.iter().enumerate().filter(|(_, column)| is_named(column));
        return Ok(visible.map(|(position, _)| ColumnNumber(position as u16)).collect());
    };
    let mut targets = Vec::with_capacity(names.len());
    for name in names {
        let column = definition.column(name).ok_or_else(|| message::unknown_column(name, "field list"))?;
        if targets.contains(&column) {
            return Err(message::column_twice(name));
        }
        targets.push(column);
    }
    Ok(targets)
}

/// The values of the columns that the statement does not name; `None` for a named column. An AUTO_INCREMENT
/// column gets [`InsertValue::Generated`] even if it is named, until the row replaces it.
fn omitted_values(
    definition: &TableDefinition,
    targets: &[ColumnNumber],
    (defaults, mode): (&ComputedDefaults, StoreMode),
    warnings: &mut Warnings,
) -> Result<Vec<Option<InsertValue>>> {
    let mut values = Vec::with_capacity(definition.columns.len());
    for (position, column) in definition.columns.iter().enumerate() {
        let index = ColumnNumber(position as u16);
        values.push(match &column.default {
            _ if column.auto_increment => Some(InsertValue::Generated),
            _ if targets.contains(&index) => None,
            _ if column.expression.is_some() => defaults.values[position].clone(),
            _ if column.default_now => Some(InsertValue::Now(column.column_type.scale())),
            Some(value) => Some(InsertValue::Stored(value.clone())),
            None if column.nullable => Some(InsertValue::Stored(Value::Null)),
            None => Some(without_default(column, mode, warnings)?),
        });
    }
    Ok(values)
}

/// The value of a column that has neither a value nor a default: the empty value of its type with a warning
/// under IGNORE, else error 1364.
fn without_default(column: &ColumnDefinition, mode: StoreMode, warnings: &mut Warnings) -> Result<InsertValue> {
    let error = no_default(&column.name);
    if column.column_type.has_own_default() {
        return Ok(InsertValue::Stored(column.column_type.implicit_default()));
    }
    // A spatial type has no empty value.
    if mode == StoreMode::Strict || column.column_type.geometry_kind().is_some() {
        return Err(error);
    }
    let warning = (error.code, error.message);
    if !warnings.contains(&warning) {
        warnings.push(warning);
    }
    Ok(InsertValue::Stored(column.column_type.implicit_default()))
}

/// Gives the remaining columns their defaults. `VALUES ()` names every column but gives no values.
fn complete(
    definition: &TableDefinition,
    row: Vec<Option<InsertValue>>,
    (defaults, mode): (&ComputedDefaults, StoreMode),
    warnings: &mut Warnings,
) -> Result<Vec<InsertValue>> {
    let mut values = Vec::with_capacity(row.len());
    for ((value, column), computed) in row.into_iter().zip(&definition.columns).zip(&defaults.values) {
        match (value.or_else(|| computed.clone()), &column.default) {
            (Some(value), _) => values.push(value),
            (None, _) if column.default_now => values.push(InsertValue::Now(column.column_type.scale())),
            (None, Some(default)) => values.push(InsertValue::Stored(default.clone())),
            (None, None) if column.nullable => values.push(InsertValue::Stored(Value::Null)),
            (None, None) => values.push(without_default(column, mode, warnings)?),
        }
    }
    Ok(values)
}

/// How values are stored that do not fit their columns.
fn mode_of(insert: &Insert, environment: &Environment<'_>, is_one_row: bool) -> StoreMode {
    match (insert.ignore, environment.modes.is_lenient) {
        (true, _) => StoreMode::Lenient,
        (false, true) if is_one_row => StoreMode::LenientExceptNull,
        (false, true) => StoreMode::Lenient,
        (false, false) => StoreMode::Strict,
    }
}

/// The row that stands for all rows of a query or file. `parameters` are the columns with the number of their
/// parameter.
pub(super) fn row_of_parameters(
    definition: &TableDefinition,
    parameters: &[(ColumnNumber, u16)],
    omitted: Vec<Option<InsertValue>>,
    modes: (&ComputedDefaults, StoreMode),
    warnings: &mut Warnings,
) -> Result<Vec<InsertValue>> {
    let mut row = omitted;
    for (column, parameter) in parameters {
        row[usize::from(column.0)] = Some(InsertValue::Parameter(*parameter));
    }
    complete(definition, row, modes, warnings)
}

/// Puts error 3144 in place of the values of JSON columns that are binary strings. The parameters are columns
/// of a query with this header.
fn refuse_bytes_as_documents(
    definition: &TableDefinition,
    parameters: &[(ColumnNumber, u16)],
    header: &ResultHeader,
    row: &mut [InsertValue],
) {
    for (column, parameter) in parameters {
        let position = usize::from(column.0);
        let Some(given) = header.columns.get(usize::from(*parameter)) else { continue };
        let is_string = matches!(given.wire_type, wire_type::BLOB | wire_type::VAR_STRING | wire_type::STRING);
        let is_binary = is_string && given.charset == CollationId::BINARY.number();
        if is_binary && definition.columns[position].column_type.form() == Form::Json {
            let result = ResultType::string(CollationId::BINARY, Coercibility::Implicit, given.length);
            let value = Expression::parameter_of_type(*parameter, result.with_nullable(true));
            row[position] = InsertValue::Computed(value.for_json_column());
        }
    }
}

/// Makes times, DATETIME and TIMESTAMP of other tables' columns numbers in BIT columns, as in UPDATE. The
/// parameters are columns of a query with this header.
fn store_moments_as_numbers(
    definition: &TableDefinition,
    parameters: &[(ColumnNumber, u16)],
    header: &ResultHeader,
    row: &mut [InsertValue],
) {
    for (column, parameter) in parameters {
        let position = usize::from(column.0);
        let Some(given) = header.columns.get(usize::from(*parameter)) else { continue };
        let result = type_of_column(given);
        let is_moment = result.kind.has_day() || result.kind == Kind::Time;
        let is_of_table = !given.org_table.is_empty();
        if is_moment && is_of_table && definition.columns[position].column_type.form() == Form::Bit {
            let value = Expression::parameter_of_type(*parameter, result.with_nullable(true));
            row[position] = InsertValue::Computed(Expression::cast(CastTarget::Signed, value));
        }
    }
}

/// Error 3105 for a generated column.
pub(super) fn check_not_generated(definition: &TableDefinition, column: ColumnNumber) -> Result<()> {
    let column = &definition.columns[usize::from(column.0)];
    match column.is_generated() {
        true => Err(message::value_for_generated(&column.name, &definition.name)),
        false => Ok(()),
    }
}

fn auto_column(definition: &TableDefinition, rules: NumberRules) -> Option<AutoColumn> {
    let index = definition.auto_increment_column()?;
    let column = &definition.columns[usize::from(index.0)];
    let number_max = match column.column_type.as_integer() {
        Some((bytes, unsigned)) => {
            let bits = u32::from(bytes.clamp(1, 8)) * 8 - u32::from(!unsigned);
            if bits == 64 { u64::MAX } else { (1 << bits) - 1 }
        }
        None if column.column_type.form() == Form::Float => FLOAT_INTEGER_MAX,
        None => DOUBLE_INTEGER_MAX,
    };
    let is_other_key = |other: &ColumnDefinition| other.auto_increment && other.hidden && !column.hidden;
    let hidden_key = definition.columns.iter().position(is_other_key).map(|position| ColumnNumber(position as u16));
    let rules = if column.hidden { NumberRules::default() } else { rules };
    Some(AutoColumn { index, is_hidden: column.hidden, number_max, hidden_key, rules })
}

fn has_default(column: &ColumnDefinition) -> bool {
    let has_written = column.default.is_some() || column.default_now;
    has_written || column.nullable || column.auto_increment || column.column_type.has_own_default()
}

/// Plans the values of one row.
pub(super) struct RowPlanner<'m, 'e> {
    pub definition: &'m TableDefinition,
    pub binder: &'m mut Binder<'e>,
    pub scratch: &'m Scratch,
    pub row_number: u64,
    pub mode: StoreMode,
    pub defaults: &'m ComputedDefaults,
}

impl RowPlanner<'_, '_> {
    /// Plans one value. A constant is converted now, so that planning detects a value that cannot be stored.
    pub(super) fn value(
        self,
        index: ColumnNumber,
        value: &ast::Expression,
        warnings: &mut Warnings,
    ) -> Result<InsertValue> {
        let column = &self.definition.columns[usize::from(index.0)];
        if *value != ast::Expression::Default(None) {
            check_not_generated(self.definition, index)?;
        } else if let Some(computed) = &self.defaults.values[usize::from(index.0)] {
            return Ok(computed.clone());
        }
        let bound = match value {
            ast::Expression::Default(None) if column.auto_increment => return Ok(InsertValue::Generated),
            ast::Expression::Default(None) if column.default_now => {
                return Ok(InsertValue::Now(column.column_type.scale()));
            }
            ast::Expression::Default(None) if !has_default(column) => {
                return without_default(column, self.mode, warnings);
            }
            ast::Expression::Default(None) => default_into(column),
            value => {
                let bound = self.binder.bind(value)?;
                as_stored(column, value, bound)
            }
        };
        if let Node::Parameter(ordinal) = bound.node {
            return Ok(InsertValue::Parameter(ordinal));
        }
        let is_constant = bound.is_constant() && !needs_row(&bound);
        if !is_constant {
            return Ok(InsertValue::Computed(bound));
        }
        let warnings_before = self.scratch.warning_count();
        // An error belongs to the execution, which finds the errors of earlier values first.
        let Ok(evaluated) = bound.evaluate_unrounded(None, Parameters::NONE, self.scratch) else {
            return Ok(InsertValue::Computed(bound));
        };
        let value = evaluated.to_value();
        let is_request = value == Value::Null || !self.binder.environment.numbers.keeps_zero;
        if column.auto_increment && is_request && is_zero_or_null(&value) {
            return Ok(InsertValue::Generated);
        }
        let target = StoreTarget { column, row_number: self.row_number, mode: self.mode };
        let Ok(stored) = target.convert(evaluated, self.scratch).map(|stored| stored.to_value()) else {
            return Ok(InsertValue::Computed(bound));
        };
        // A conversion that warns must warn at each execution, so it is not done in advance.
        let is_silent = self.scratch.warning_count() == warnings_before;
        Ok(if is_silent { InsertValue::Stored(stored) } else { InsertValue::Computed(bound) })
    }
}

/// Whether a value requests the next AUTO_INCREMENT number.
fn is_zero_or_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Int(value) => *value == 0,
        Value::UInt(value) => *value == 0,
        Value::Double(value) => *value == 0.0,
        Value::Decimal(value) => value.is_zero(),
        Value::Bytes(bytes) => bytes.iter().all(|byte| *byte == b'0') && !bytes.is_empty(),
        other => other.as_ref().to_double() == Ok(0.0),
    }
}
