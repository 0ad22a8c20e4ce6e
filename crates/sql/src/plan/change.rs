//! UPDATE and DELETE of one table.

use std::sync::Arc;

use junctor_client::program::{Assignment, WriteAction, WriteProgram};
use junctor_expression::Expression;
use junctor_model::collation::CollationId;
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::foreign_key::{ForeignKeyWork, RowWrite};
use junctor_model::id::{ColumnIndex, IndexId};
use junctor_model::schema::{Dictionary, IndexKind, TableDefinition, TableLayout};
use junctor_model::value::Value;

use super::access::{AccessPath, Wanted, choose};
use super::operand::reads_parameter;
use super::select::{guards_and_filter, is_never, is_single_row};
use super::statement::Planned;
use super::{Plan, Quantity};
use crate::bind::{Binder, Clause, Environment, Scope, among_numbers};
use crate::parse::expression as ast;
use crate::parse::statement::{Delete, LimitValue, OrderItem, TableReference, Update};

/// Which of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// UPDATE.
    Update,
    /// DELETE.
    Delete,
}

/// An UPDATE or DELETE.
#[derive(Debug)]
pub struct ChangePlan {
    /// Which.
    pub kind: ChangeKind,
    /// The table.
    pub table: Arc<TableLayout>,
    /// What it is called in the statement.
    pub table_shown: Box<str>,
    /// The way to the rows.
    pub path: AccessPath,
    /// Conditions that no row is needed for; no row is found unless all are true.
    pub guards: Vec<Expression>,
    /// LIMIT, on what finds at most one row; 0 finds none.
    pub limit: Option<Quantity>,
    /// The write.
    pub program: Arc<WriteProgram>,
}

/// Plans an UPDATE.
///
/// # Errors
/// Those of binding, 1364 for DEFAULT where there is none, 1235 for IGNORE and for LIMIT on several rows.
pub(super) fn plan_update(environment: &Environment<'_>, update: &Update) -> Result<Planned> {
    if update.ignore {
        return Err(Error::not_supported("UPDATE IGNORE"));
    }
    let layout = environment.table(&update.table.name)?;
    let mut binder = Binder::new(environment, Scope::of_table(layout, update.table.alias.as_deref()));
    let mut assignments = Vec::with_capacity(update.assignments.len());
    for assignment in &update.assignments {
        let found = binder.scope.resolve(&assignment.column, Clause::FieldList.name())?;
        let value = match &assignment.value {
            ast::Expression::Default(None) => default_of(&layout.definition, found.index)?,
            value => {
                let bound = binder.bind_in(Clause::FieldList, value)?;
                let column = &layout.definition.columns[usize::from(found.index.0)];
                if column.column_type.collation().is_none() { among_numbers(value, bound) } else { bound }
            }
        };
        assignments.push(Assignment { column: found.index, value });
    }
    let changed: Vec<ColumnIndex> = assignments.iter().map(|assignment| assignment.column).collect();
    let request = Request {
        reference: &update.table,
        filter: update.filter.as_ref(),
        order_by: &update.order_by,
        limit: update.limit,
        kind: ChangeKind::Update,
    };
    let entries = unique_entries(environment.dictionary, &layout.definition, Some(&changed))?;
    let foreign_keys = foreign_keys(environment, &layout.definition, RowWrite::Update(&changed));
    let kept = Kept { unique_entries: entries, foreign_keys };
    plan_change(&mut binder, layout, &request, WriteAction::Update { assignments }, kept)
}

/// Plans a DELETE. Errors: those of binding, 1235 for IGNORE and for LIMIT on several rows.
pub(super) fn plan_delete(environment: &Environment<'_>, delete: &Delete) -> Result<Planned> {
    if delete.ignore {
        return Err(Error::not_supported("DELETE IGNORE"));
    }
    let layout = environment.table(&delete.table.name)?;
    let mut binder = Binder::new(environment, Scope::of_table(layout, delete.table.alias.as_deref()));
    let request = Request {
        reference: &delete.table,
        filter: delete.filter.as_ref(),
        order_by: &delete.order_by,
        limit: delete.limit,
        kind: ChangeKind::Delete,
    };
    let entries = unique_entries(environment.dictionary, &layout.definition, None)?;
    let foreign_keys = foreign_keys(environment, &layout.definition, RowWrite::Delete);
    let kept = Kept { unique_entries: entries, foreign_keys };
    plan_change(&mut binder, layout, &request, WriteAction::Delete, kept)
}

/// What is to be kept in step with the rows.
struct Kept {
    unique_entries: Vec<(IndexId, Arc<TableLayout>)>,
    foreign_keys: Option<Arc<ForeignKeyWork>>,
}

struct Request<'a> {
    reference: &'a TableReference,
    filter: Option<&'a ast::Expression>,
    order_by: &'a [OrderItem],
    limit: Option<LimitValue>,
    kind: ChangeKind,
}

fn plan_change(
    binder: &mut Binder<'_>,
    layout: &Arc<TableLayout>,
    request: &Request<'_>,
    action: WriteAction,
    kept: Kept,
) -> Result<Planned> {
    let filter = request.filter.map(|filter| binder.bind_in(Clause::Where, filter)).transpose()?;
    for item in request.order_by {
        binder.bind_in(Clause::Order, &item.expression)?;
    }
    let wanted = Wanted {
        dictionary: binder.environment.dictionary,
        layout,
        conjuncts: filter.as_ref().map_or(&[][..], Expression::conjuncts),
        hints: &request.reference.index_hints,
        for_write: true,
        order: None,
        descending: false,
    };
    let choice = choose(&wanted)?;
    let limit = limit_of(request, &choice.path)?;
    let never = filter.as_ref().is_some_and(is_never);
    let (guards, filter) = guards_and_filter(filter, &choice.implied);
    let of_action = match &action {
        WriteAction::Update { assignments } => assignments.iter().any(|assignment| reads_parameter(&assignment.value)),
        _ => false,
    };
    let program = WriteProgram {
        table: Arc::clone(layout),
        action,
        access: choice.access,
        reads_parameters: of_action || filter.as_ref().is_some_and(reads_parameter),
        filter,
        unique_entries: kept.unique_entries,
        foreign_keys: kept.foreign_keys,
    };
    let plan = ChangePlan {
        kind: request.kind,
        table: Arc::clone(layout),
        table_shown: binder.scope.table.into(),
        path: if never { AccessPath::Nothing } else { choice.path },
        guards,
        limit,
        program: Arc::new(program),
    };
    Ok(Planned { plan: Plan::Change(plan), is_volatile: binder.is_volatile })
}

/// A limit is easy on what finds at most one row; any other needs rows in order.
fn limit_of(request: &Request<'_>, path: &AccessPath) -> Result<Option<Quantity>> {
    let what = match request.kind {
        ChangeKind::Update => "UPDATE with LIMIT",
        ChangeKind::Delete => "DELETE with LIMIT",
    };
    match request.limit.map(Quantity::of).transpose()? {
        limit if limit.is_none() || is_single_row(path) => Ok(limit),
        _ => Err(Error::not_supported(what)),
    }
}

/// What foreign keys ask of a write, if the session has them checked.
pub(super) fn foreign_keys(
    environment: &Environment<'_>,
    definition: &TableDefinition,
    write: RowWrite<'_>,
) -> Option<Arc<ForeignKeyWork>> {
    match environment.foreign_key_checks {
        true => ForeignKeyWork::with_reach(environment.dictionary, definition, write),
        false => None,
    }
}

/// The hidden tables of the unique indexes that a write may have to keep: all, or those that change with these columns.
pub(super) fn unique_entries(
    dictionary: &Dictionary,
    definition: &TableDefinition,
    changed: Option<&[ColumnIndex]>,
) -> Result<Vec<(IndexId, Arc<TableLayout>)>> {
    let touches =
        |columns: &[ColumnIndex]| changed.is_none_or(|changed| changed.iter().any(|column| columns.contains(column)));
    // Entries hold the primary key of their row, so they change with it.
    let all = touches(&definition.primary().columns);
    let mut found = Vec::new();
    for index in &definition.indexes {
        let IndexKind::Unique { entries, .. } = index.kind else { continue };
        if !all && !touches(&index.columns) {
            continue;
        }
        let Some(layout) = dictionary.table(entries) else {
            return Err(Error::new(
                ErrorCode::TableDefinitionChanged,
                "Table definition has changed, please retry transaction",
            ));
        };
        found.push((index.id, Arc::clone(layout)));
    }
    Ok(found)
}

/// The default of a column as a constant. Error: 1364 where there is none.
pub(super) fn default_of(definition: &TableDefinition, column: ColumnIndex) -> Result<Expression> {
    let column = &definition.columns[usize::from(column.0)];
    let value = match &column.default {
        Some(value) => value.clone(),
        None if column.auto_increment => Value::Int(0),
        None if column.nullable => Value::Null,
        None => return Err(no_default(&column.name)),
    };
    Ok(Expression::constant(value, column.column_type.collation().unwrap_or(CollationId::BINARY)))
}

/// 1364.
pub(super) fn no_default(column: &str) -> Box<Error> {
    Error::new(ErrorCode::NoDefault, format!("Field '{column}' doesn't have a default value"))
}
