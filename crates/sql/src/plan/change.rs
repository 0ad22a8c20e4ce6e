//! Plans UPDATE and DELETE of one table.

use std::sync::Arc;

use junctor_expression::{Expression, IsTest, Kind};
use junctor_model::access::Privilege;
use junctor_model::error::{Error, Result};
use junctor_model::foreign_key::{ForeignKeyWork, RowWrite};
use junctor_model::id::{ColumnNumber, IndexId};
use junctor_model::schema::{Dictionary, IndexKind, TableDefinition, TableLayout};
use junctor_model::temporal::TemporalKind;
use junctor_model::types::Form;
use junctor_signals::program::{
    Access, Assignment, AssignmentKind, LockMode, Output, Projection, ReadProgram, Returning, SortKey, WhenLocked,
    WriteAction, WriteProgram,
};
use junctor_signals::row_expressions::ComputedColumn;

use super::access::{AccessPath, AccessRequest, KeyTemplate, UniqueLookup, choose, unique_row};
use super::conflict::{clustered_columns, lock_program, touches_unique};
use super::functional::{WithKeyExpressions, with_key_expressions};
use super::multi_valued::with_elements;
use super::operand::reads_parameter;
use super::order::{bind_order, plain_order};
use super::prefix::{WithPrefixes, with_prefixes};
use super::select::{
    is_always_false, is_ordered, is_single_row, keys_keep_order, output_reads_parameter, split_filter,
};
use super::statement::Planned;
use super::time_to_live::{Living, living};
use super::{Plan, Quantity};
use crate::access::{PlanRights, TableAccess};
use crate::bind::{
    Binder, Clause, Environment, Scope, StoredExpressions, UnstoredColumns, as_condition, as_stored,
    bind_returning_list, default_into, message,
};
use crate::parse::expression as ast;
use crate::parse::statement as ast_statement;
use crate::parse::statement::{Delete, LimitValue, OrderItem, SelectItem, TableReference, Update};
use crate::result::ResultHeader;

/// The statement that changes rows.
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
    /// The rights that the statement needs.
    pub rights: PlanRights,
    /// Whether rows are updated or deleted.
    pub kind: ChangeKind,
    /// The table, at the schema version of the plan.
    pub table: Arc<TableLayout>,
    /// The table's alias, or its name if it has none.
    pub table_alias: Box<str>,
    /// How the rows are found.
    pub path: AccessPath,
    /// Whether the statistics of the table decide how the rows are found.
    pub is_by_statistics: bool,
    /// Conjuncts that do not depend on the row. They are evaluated once for each execution; unless all are
    /// true, no row is changed.
    pub one_time_filter: Vec<Expression>,
    /// Maximum number of rows to change; 0 changes none.
    pub limit: Option<Quantity>,
    /// The program that writes all rows in one step.
    pub program: Arc<WriteProgram>,
    /// Set if the condition names one row by a unique key. The row is then changed in its partition, and
    /// `path` is used only if the key keeps moving between rows.
    pub unique_key: Option<UniqueKeyChange>,
    /// Present if the statement may have to lock its rows first and then write them by primary key.
    pub ordered: Option<OrderedChange>,
    /// The columns of RETURNING; `None` without that clause.
    pub returning: Option<ResultHeader>,
}

/// A change of the one row that has a unique key. The entry of the key is read without a lock, so the change
/// tests the whole condition again.
#[derive(Debug)]
pub struct UniqueKeyChange {
    /// The unique index.
    pub index: IndexId,
    /// The key of the entry.
    pub keys: KeyTemplate,
    /// The read of the entry.
    pub lookup: Arc<ReadProgram>,
    /// The locking read of the entry. It waits for a transaction that inserts the key, and protects a key
    /// that does not exist as the isolation level demands.
    pub entry_lock: Arc<WriteProgram>,
    /// The write of the row by primary key, with the whole condition.
    pub program: Arc<WriteProgram>,
    /// The read of the row by primary key, if it does not satisfy the whole condition.
    pub refused: Arc<ReadProgram>,
}

/// The programs of a change that may have to lock its rows before it writes them, because of LIMIT or because
/// it writes its rows one by one.
#[derive(Debug)]
pub struct OrderedChange {
    /// The locking read of all rows that satisfy the condition. It returns the columns of
    /// [`row_key_columns`], with sort keys if the rows are ordered.
    pub locking_program: Arc<WriteProgram>,
    /// The write of rows by primary key, without a condition.
    pub write: Arc<WriteProgram>,
    /// Whether each partition returns its rows in the requested order, so that it need not lock more than the
    /// limit.
    pub in_order: bool,
    /// Whether rows are written one by one, because a row's new key may equal the current key of another row.
    pub one_by_one: bool,
    /// Whether the statement first tries to write all rows in one step, and locks and writes them one by one
    /// only after a duplicate key. Whether rows collide depends on the order of the writes, so the rows are
    /// then written in MySQL's order, that of the clustered key.
    pub after_duplicate: bool,
    /// IGNORE: a row whose change would violate a key stays as it is, with a warning.
    pub ignore: bool,
}

/// Plans an UPDATE.
///
/// # Errors
/// Errors of binding.
pub(super) fn plan_update(environment: &Environment<'_>, update: &Update) -> Result<Planned> {
    let layout = environment.table(&update.table.name, TableAccess::Update)?;
    let mut binder = Binder::new(environment, Scope::of_table(layout, update.table.alias.as_deref()));
    let assignments = bind_assignments(&mut binder, layout, &update.assignments)?;
    let changed = changed_columns(&assignments);
    let request = Request {
        reference: &update.table,
        filter: update.filter.as_ref(),
        order_by: &update.order_by,
        limit: update.limit,
        kind: ChangeKind::Update,
        ignore: update.ignore,
        touches_unique: touches_unique(&layout.definition, &changed),
        has_checks: assignments.iter().any(|assignment| assignment.kind == AssignmentKind::Check),
        returning: &[],
    };
    let entries = unique_entries(environment.dictionary, &layout.definition, Some(&changed))?;
    let foreign_keys = foreign_keys(environment, &layout.definition, RowWrite::Update(&changed));
    let maintained = Maintained { unique_entries: entries, foreign_keys };
    let action = WriteAction::Update { assignments, ignore: update.ignore || environment.modes.is_lenient };
    plan_change(&mut binder, layout, &request, action, maintained)
}

/// Plans a DELETE. Errors: those of binding. IGNORE skips rows that foreign keys of other rows refer to.
pub(super) fn plan_delete(environment: &Environment<'_>, delete: &Delete) -> Result<Planned> {
    let layout = environment.table(&delete.table.name, TableAccess::Delete)?;
    let mut binder = Binder::new(environment, Scope::of_table(layout, delete.table.alias.as_deref()));
    let request = Request {
        reference: &delete.table,
        filter: delete.filter.as_ref(),
        order_by: &delete.order_by,
        limit: delete.limit,
        kind: ChangeKind::Delete,
        ignore: delete.ignore,
        touches_unique: false,
        has_checks: false,
        returning: &delete.returning,
    };
    let entries = unique_entries(environment.dictionary, &layout.definition, None)?;
    let foreign_keys = foreign_keys(environment, &layout.definition, RowWrite::Delete);
    let maintained = Maintained { unique_entries: entries, foreign_keys };
    let action = WriteAction::Delete { ignore: delete.ignore || environment.modes.is_lenient };
    plan_change(&mut binder, layout, &request, action, maintained)
}

/// The index entries and foreign keys that the write maintains.
struct Maintained {
    unique_entries: Vec<(IndexId, Arc<TableLayout>)>,
    foreign_keys: Option<Arc<ForeignKeyWork>>,
}

struct Request<'a> {
    reference: &'a TableReference,
    filter: Option<&'a ast::Expression>,
    order_by: &'a [OrderItem],
    limit: Option<LimitValue>,
    kind: ChangeKind,
    ignore: bool,
    /// Whether a changed row can collide with the key of another row.
    touches_unique: bool,
    /// Whether a changed row can violate a CHECK constraint.
    has_checks: bool,
    returning: &'a [SelectItem],
}

/// The columns that assignments set.
pub(super) fn changed_columns(assignments: &[Assignment]) -> Vec<ColumnNumber> {
    let set = assignments.iter().filter(|assignment| assignment.kind != AssignmentKind::Check);
    set.map(|assignment| assignment.column).collect()
}

/// Binds the assignments of UPDATE or ON DUPLICATE KEY UPDATE, followed by those of generated columns and the
/// CHECK constraints. Errors: those of binding; 3105 for a value of a generated column.
pub(super) fn bind_assignments(
    binder: &mut Binder<'_>,
    layout: &Arc<TableLayout>,
    written: &[ast_statement::Assignment],
) -> Result<Vec<Assignment>> {
    let mut assignments = Vec::with_capacity(written.len());
    let mut stored = StoredExpressions::new(binder.environment, layout);
    for assignment in written {
        let found = binder.scope.resolve(&assignment.column, Clause::FieldList.name())?;
        if !assignment.if_changed {
            binder.environment.note_assigned(&layout.definition, found.index, Privilege::Update);
        }
        let column = &layout.definition.columns[usize::from(found.index.0)];
        if column.is_generated() {
            match assignment.value {
                ast::Expression::Default(None) => continue,
                _ => return Err(message::value_for_generated(&column.name, &layout.definition.name)),
            }
        }
        let value = match &assignment.value {
            ast::Expression::Default(None) => match stored.value_of(column)? {
                Some(value) => value,
                None => default_into(column),
            },
            value => {
                let bound = binder.bind_in(Clause::FieldList, value)?;
                // A TIME in a column of days is on the day of the statement.
                let has_day = matches!(
                    column.column_type.form(),
                    Form::Temporal(TemporalKind::Date | TemporalKind::DateTime | TemporalKind::Timestamp)
                );
                binder.is_volatile |= bound.result.kind == Kind::Time && has_day;
                as_stored(column, value, bound)
            }
        };
        let kind = if assignment.if_changed { AssignmentKind::IfChanged } else { AssignmentKind::Always };
        assignments.push(Assignment { column: found.index, value, kind });
    }
    let computed = stored.generated(&changed_columns(&assignments))?;
    let of_generated = |ComputedColumn { column, value }| Assignment { column, value, kind: AssignmentKind::Generated };
    assignments.extend(computed.into_iter().map(of_generated));
    assignments.extend(stored.checks()?.into_iter().map(Assignment::check));
    binder.is_volatile |= stored.is_volatile;
    Ok(assignments)
}

fn plan_change(
    binder: &mut Binder<'_>,
    layout: &Arc<TableLayout>,
    request: &Request<'_>,
    mut action: WriteAction,
    maintained: Maintained,
) -> Result<Planned> {
    let filter =
        request.filter.map(|filter| as_condition(filter, binder.bind_in(Clause::Where, filter)?)).transpose()?;
    let WithKeyExpressions { filter, wants_literals } = with_key_expressions(filter, binder.environment, layout)?;
    binder.is_volatile |= wants_literals;
    let Living { filter, is_volatile } = living(filter, binder.environment, layout)?;
    binder.is_volatile |= is_volatile;
    let with_elements = with_elements(filter, binder.environment, layout)?;
    binder.is_volatile |= with_elements.wants_literals;
    let WithPrefixes { filter, implied } = with_prefixes(with_elements.filter, &layout.definition)?;
    // A change has no select list to which ORDER BY could refer by number or alias.
    let nothing = Projection::new(Vec::new(), Vec::new());
    let sort = bind_order(binder, request.order_by, &[], &nothing)?;
    let (mut returning, header) = returning_of(binder, request.returning, layout, &sort)?;
    let order = plain_order(&sort);
    let order_columns = order.as_deref();
    let access_request = AccessRequest {
        dictionary: binder.environment.dictionary,
        layout,
        parameters: binder.environment.parameters,
        conjuncts: filter.as_ref().map_or(&[][..], Expression::conjuncts),
        hints: &request.reference.index_hints,
        for_write: true,
        order: order_columns.filter(|columns| request.limit.is_some() && keys_keep_order(layout, columns)),
        profile: binder.environment.profile,
        join_lists: 0..0,
    };
    let mut chosen = choose(&access_request)?;
    chosen.implied.extend(with_elements.implied.chain(implied));
    let limit = request.limit.map(Quantity::of).transpose()?;
    let in_order = sort.is_empty() || is_ordered(&chosen, order_columns, layout);
    let is_single = is_single_row(&chosen.path);
    // IGNORE skips individual rows, so each row needs its own write.
    let may_violate = request.touches_unique || request.has_checks || maintained.foreign_keys.is_some();
    let may_leave_out = request.ignore && may_violate;
    let one_by_one = may_leave_out || request.touches_unique && !is_single;
    // With ORDER BY or LIMIT, the rows must be written in order from the start. With IGNORE, the failure of
    // one row must not undo the writes of the others.
    let after_duplicate = one_by_one && !request.ignore && sort.is_empty() && limit.is_none();
    let locks_first = one_by_one || limit.is_some() && !is_single;
    let mut sort = match one_by_one && sort.is_empty() && limit.is_none() {
        true => clustered_order(layout),
        false => sort,
    };
    let never = filter.as_ref().is_some_and(is_always_false);
    let is_volatile = filter.as_ref().is_some_and(Expression::is_volatile);
    let found = match never || may_leave_out || is_volatile {
        true => None,
        false => unique_row(&access_request, &chosen.path),
    };
    let mut whole_filter = found.as_ref().and_then(|_| split_filter(filter.clone(), &[]).1);
    let (one_time_filter, mut filter) = split_filter(filter, &chosen.implied);
    let unstored = UnstoredColumns::of(binder.environment, layout)?;
    unstored.put_into_all(whole_filter.iter_mut().chain(&mut filter))?;
    unstored.put_into_all(sort.iter_mut().map(|key| &mut key.value))?;
    if let Some(returning) = &mut returning {
        unstored.put_into_output(&mut returning.output)?;
    }
    if let WriteAction::Update { assignments, .. } = &mut action {
        unstored.put_into_assignments(assignments)?;
    }
    let of_action = match &action {
        WriteAction::Update { assignments, .. } => {
            assignments.iter().any(|assignment| reads_parameter(&assignment.value))
        }
        _ => false,
    };
    let program = WriteProgram {
        table: Arc::clone(layout),
        action,
        access: chosen.access,
        reads_parameters: of_action
            || filter.as_ref().is_some_and(reads_parameter)
            || returning.as_ref().is_some_and(|returning| output_reads_parameter(&returning.output)),
        filter,
        unique_entries: maintained.unique_entries,
        foreign_keys: maintained.foreign_keys,
        returning,
        rules: binder.environment.rules,
    };
    let unique_key = found.map(|found| unique_key_change(found, &program, whole_filter));
    let ordered = locks_first.then(|| OrderedChange {
        locking_program: locking_program(binder.environment, &program, sort, request.ignore),
        write: Arc::new(WriteProgram { access: Access::PrimaryKeys, filter: None, ..program.clone() }),
        in_order,
        one_by_one,
        after_duplicate,
        ignore: request.ignore,
    });
    let plan = ChangePlan {
        rights: PlanRights::default(),
        kind: request.kind,
        table: Arc::clone(layout),
        table_alias: binder.scope.table.into(),
        path: if never { AccessPath::Nothing } else { chosen.path },
        is_by_statistics: chosen.is_by_statistics,
        one_time_filter,
        limit,
        program: Arc::new(program),
        unique_key,
        ordered,
        returning: header,
    };
    Ok(Planned { plan: Plan::Change(Arc::new(plan)), is_volatile: binder.is_volatile })
}

fn unique_key_change(found: UniqueLookup, change: &WriteProgram, filter: Option<Expression>) -> UniqueKeyChange {
    let UniqueLookup { index, lookup, keys, entries } = found;
    let program = WriteProgram {
        access: Access::PrimaryKeys,
        reads_parameters: change.reads_parameters || filter.as_ref().is_some_and(reads_parameter),
        filter,
        ..change.clone()
    };
    let is_refused = program.filter.clone().map(|filter| Expression::is(IsTest::True, true, filter));
    let refused = ReadProgram {
        filter: is_refused,
        reads_parameters: program.reads_parameters,
        rules: program.rules,
        ..ReadProgram::new(&program.table, Access::PrimaryKeys, Output::Images)
    };
    let entry_lock = lock_program(&entries);
    UniqueKeyChange { index, keys, lookup, entry_lock, program: Arc::new(program), refused: Arc::new(refused) }
}

/// Sort keys that order rows by MySQL's clustered key.
fn clustered_order(layout: &TableLayout) -> Vec<SortKey> {
    let definition = &layout.definition;
    let key = |index: &ColumnNumber| {
        let value = Expression::column(*index, &definition.columns[usize::from(index.0)], "");
        SortKey { value, descending: false, is_in_result: false }
    };
    clustered_columns(definition).iter().map(key).collect()
}

/// The output and columns of a DELETE's RETURNING. Rows are returned in the order of ORDER BY if there is
/// one.
fn returning_of(
    binder: &mut Binder<'_>,
    items: &[SelectItem],
    layout: &TableLayout,
    sort: &[SortKey],
) -> Result<(Option<Returning>, Option<ResultHeader>)> {
    if items.is_empty() {
        return Ok((None, None));
    }
    let projection = bind_returning_list(binder, items)?.with_format(&layout.row_format);
    let header = ResultHeader::new(projection.columns.clone());
    let output = match sort.is_empty() {
        true => Output::Packets(projection),
        false => Output::Entries { projection, sort: sort.to_vec(), distinct: None },
    };
    Ok((Some(Returning { output, is_strict: false }), Some(header)))
}

/// The read that locks the rows of a change and returns the columns that locate them.
fn locking_program(
    environment: &Environment<'_>,
    change: &WriteProgram,
    sort: Vec<SortKey>,
    ignore: bool,
) -> Arc<WriteProgram> {
    let layout = &change.table;
    let definition = &layout.definition;
    let value = |index: &ColumnNumber| Expression::column(*index, &definition.columns[usize::from(index.0)], "");
    let values: Vec<Expression> = row_key_columns(definition).iter().map(value).collect();
    let columns = values.iter().map(|value| value.result.result_column("")).collect();
    let projection = Projection::new(values, columns);
    let reads_parameters =
        change.filter.as_ref().is_some_and(reads_parameter) || sort.iter().any(|key| reads_parameter(&key.value));
    let output = match sort.is_empty() {
        true => Output::Packets(projection),
        false => Output::Entries { projection, sort, distinct: None },
    };
    // The purge of expired rows leaves locked ones to its next round.
    let when_locked = if environment.purges { WhenLocked::Skip } else { WhenLocked::Wait };
    let is_strict = !ignore && !environment.modes.is_lenient;
    let action = WriteAction::LockRead { mode: LockMode::Exclusive, when_locked, output, is_strict };
    Arc::new(WriteProgram {
        filter: change.filter.clone(),
        reads_parameters,
        rules: change.rules,
        ..WriteProgram::new(layout, action, change.access)
    })
}

/// The columns that locate a row: those of its primary key, then the partition columns that are not part of
/// the primary key.
pub fn row_key_columns(definition: &TableDefinition) -> Vec<ColumnNumber> {
    let mut columns = definition.primary().columns.clone();
    for column in &definition.partition_columns {
        if !columns.contains(column) {
            columns.push(*column);
        }
    }
    columns
}

/// The foreign keys that a write checks or acts on; `None` if there are none or the session disables the
/// checks.
pub(super) fn foreign_keys(
    environment: &Environment<'_>,
    definition: &TableDefinition,
    write: RowWrite<'_>,
) -> Option<Arc<ForeignKeyWork>> {
    match environment.foreign_key_checks {
        true => ForeignKeyWork::with_reachable_tables(environment.dictionary, definition, write),
        false => None,
    }
}

/// The hidden tables of the unique indexes that a write maintains: all of them, or those that depend on the
/// changed columns. Error: the table definition has changed.
pub(super) fn unique_entries(
    dictionary: &Dictionary,
    definition: &TableDefinition,
    changed: Option<&[ColumnNumber]>,
) -> Result<Vec<(IndexId, Arc<TableLayout>)>> {
    let touches =
        |columns: &[ColumnNumber]| changed.is_none_or(|changed| changed.iter().any(|column| columns.contains(column)));
    // Entries contain the primary key of their row, so they change with it.
    let all = touches(&definition.primary().columns);
    let mut found = Vec::new();
    for index in &definition.indexes {
        let IndexKind::Unique { entries, .. } = index.kind else { continue };
        if !all && !touches(&index.columns) {
            continue;
        }
        let Some(layout) = dictionary.table(entries) else {
            return Err(Error::table_definition_changed());
        };
        found.push((index.id, Arc::clone(layout)));
    }
    Ok(found)
}
