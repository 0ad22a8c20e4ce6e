//! UPDATE and DELETE whose rows a tree of operators finds: those of several tables, and those with
//! subqueries.
//!
//! The tree returns, for each row of the join, the columns that locate the row of each changed table, and the
//! values of other tables and subqueries that the assignments read. The assignments themselves run in the
//! partitions, over the row that they change; the other values are parameters there.

use std::sync::Arc;

use junctor_expression::{Expression, Kind, Node};
use junctor_model::access::Privilege;
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::foreign_key::RowWrite;
use junctor_model::id::ColumnNumber;
use junctor_model::row_encoding::ResultColumn;
use junctor_model::schema::{ColumnDefinition, TableLayout};
use junctor_model::temporal::TemporalKind;
use junctor_model::types::Form;
use junctor_signals::program::{Access, Assignment, AssignmentKind, Projection, SortKey, WriteAction, WriteProgram};
use junctor_signals::row_expressions::ComputedColumn;

use super::block::{Applies, CommonTables, filtered};
use super::from::{SourcePlan, bind_from};
use super::join::{JoinClauses, JoinNode, Locks, WhereClause};
use super::join_key::relations_of;
use super::leaf::Localised;
use super::pushed::{FromScope, Pushed};
use super::stateful::check_stateful;
use super::subquery::BlockSubqueries;
use super::view::checks_of;
use super::{BlockPlan, PlanNode, TreePlan, TreePlanner};
use crate::access::TableAccess;
use crate::bind::block::{BlockScope, BlockView, Relation, RelationSource, SlotOwner, SlotSpace};
use crate::bind::{
    Aggregation, Binder, Clause, Environment, StoredExpressions, UnstoredColumns, as_stored, default_into, message,
};
use crate::parse::expression as ast;
use crate::parse::statement as ast_statement;
use crate::parse::statement::{LockingClause, ObjectName, Select, WhenLocked};
use crate::plan::change::{foreign_keys, row_key_columns, unique_entries};
use crate::plan::conflict::{clustered_columns, touches_unique};
use crate::plan::modify::ModifyTarget;
use crate::plan::operand::LimitTemplate;
use crate::plan::order::bind_order;
use crate::plan::statement::Planned;
use crate::plan::virtual_table::FindVirtual;

/// An UPDATE or DELETE.
pub(in crate::plan) struct ModifyRequest<'m> {
    pub is_delete: bool,
    pub ignore: bool,
    /// The statement is of one table: assignments run from left to right, and the rows can be ordered.
    pub is_single: bool,
    /// WITH, FROM, WHERE, ORDER BY and LIMIT.
    pub select: &'m Select,
    /// The tables to delete from; empty for those of FROM.
    pub targets: &'m [ObjectName],
    pub assignments: &'m [ast_statement::Assignment],
}

/// The tree of an UPDATE or DELETE, and the changes of each table.
pub(in crate::plan) struct ModifyTree {
    pub tree: Arc<TreePlan>,
    pub targets: Vec<ModifyTarget>,
}

/// The assignments of one table, with their subqueries.
struct BoundTarget<'a> {
    /// The position in FROM.
    relation: usize,
    layout: &'a Arc<TableLayout>,
    assignments: Vec<Assignment>,
}

/// Plans the reads and writes of an UPDATE or DELETE. Errors: those of binding; 1066, 1109, 1288.
pub(in crate::plan) fn plan_modify_tree(
    environment: &Environment<'_>,
    request: &ModifyRequest<'_>,
    find_virtual: &FindVirtual<'_>,
) -> Result<Planned<ModifyTree>> {
    let planner = TreePlanner::new(environment, find_virtual);
    let (root, targets) = planner.modify(request)?;
    let limit = request.select.limit.map(LimitTemplate::of).transpose()?;
    let Planned { plan: tree, is_volatile } = planner.finish(root, limit, false);
    Ok(Planned { plan: ModifyTree { tree: Arc::new(tree), targets }, is_volatile })
}

impl TreePlanner<'_> {
    fn modify(&self, request: &ModifyRequest<'_>) -> Result<(BlockPlan, Vec<ModifyTarget>)> {
        let select = request.select;
        let Some(from) = &select.from else { return Err(Error::new(ErrorCode::NoTablesUsed, "No tables used")) };
        let none = CommonTables::NONE;
        let tables = CommonTables { tables: &select.with, ..CommonTables::within(&none) };
        let space = SlotSpace::new(self.environment.parameters.len());
        let mut relations = Vec::new();
        let shape = {
            let scope = BlockScope::new(&space, Vec::new(), None);
            let view = BlockView { block: &scope, names: Vec::new(), relations: Vec::new() };
            let tables = CommonTables { changes: Some(access_of(request)), ..tables };
            let scope = FromScope { space: &space, tables: &tables, outer: &view, pushed: Pushed::NONE };
            self.collect(from, false, scope, &mut relations)?
        };
        let (relations, sources): (Vec<_>, Vec<_>) = relations.into_iter().unzip();
        let block = BlockScope::new(&space, relations, None);
        let joined = bind_from(self, &shape, &block, &tables)?;
        let view = BlockView { block: &block, names: joined.names, relations: (0..block.relations.len()).collect() };
        let subqueries = BlockSubqueries::new(self, &view, &tables);

        let (mut conditions, semijoins) = self.bind_where(select, &view, &subqueries)?;
        let mut where_applies = joined.applies;
        where_applies.extend(subqueries.take());
        conditions.extend(joined.conditions);
        let found = match request.is_delete {
            true => deleted(request, &block, &sources)?,
            false => self.assigned(request, (&block, &sources), &view, &subqueries)?,
        };
        self.note_access(request, &found, (&block, &sources))?;
        let assigned_values =
            || found.iter().flat_map(|target| &target.assignments).map(|assignment| &assignment.value);
        let has_own = assigned_values().chain(&conditions).any(Expression::is_stateful);
        check_stateful(&[], has_own && subqueries.has_stateful(&where_applies))?;
        let assignment_applies = subqueries.take();
        let is_stateful = |applies: &Applies| applies.iter().any(|apply| apply.block.is_stateful);
        let chooses_statefully = conditions.iter().any(Expression::is_stateful) || is_stateful(&where_applies);
        let counts_rows = chooses_statefully || is_stateful(&assignment_applies);
        let sort = self.order_of(request, (&view, &found, counts_rows), &subqueries)?;
        if chooses_statefully && request.is_single {
            check_stateful_order(&view, &found, &sort)?;
        }
        let order_applies = subqueries.take();
        if request.is_single {
            check_subqueries(&found, &assignment_applies, &space)?;
            check_order(&found, &space)?;
        }
        let (targets, values, columns) = self.targets(request, found, &block)?;

        let locks = locks_of(&targets, block.relations.len());
        let limit = select.limit.map(LimitTemplate::of).transpose()?;
        let sorted = |node, limit| match sort.is_empty() {
            true => node,
            false => PlanNode::Sort(Box::new(node), sort.into(), limit),
        };
        // Stateful conditions get the rows in the order of the key.
        let is_sorted_first = chooses_statefully || counts_rows && select.order_by.is_empty();
        let clauses = JoinClauses::of(select, Locks::Each(&locks), false);
        let node =
            self.modify_rows((joined.node, conditions, semijoins), (&block, &sources), clauses, |node, above| {
                let (before, after) = if is_sorted_first { (sorted(node, None), None) } else { (node, Some(sorted)) };
                let mut node = filtered(subqueries.place_all(before, where_applies), above);
                node = subqueries.place_all(node, order_applies);
                if let Some(sorted) = after {
                    node = sorted(node, limit);
                }
                // A subquery of SET that changes the state of the session runs for the changed rows only.
                if let Some(limit) = limit.filter(|_| is_stateful(&assignment_applies)) {
                    node = PlanNode::Limit(Box::new(node), limit);
                }
                subqueries.place_all(node, assignment_applies)
            })?;
        let outer = space.outer_values();
        let is_stateful = values.iter().any(Expression::is_stateful);
        let (width, rows, passages) = (space.width(), 1.0, Box::default());
        Ok((BlockPlan { root: node, width, values, columns, outer, rows, is_stateful, passages }, targets))
    }

    /// The rows of the join. Conditions that read the value of a subquery are above the joins.
    fn modify_rows<'j>(
        &self,
        (from, conditions, semijoins): (JoinNode, Vec<Expression>, Vec<super::subquery::SemiJoin<'j>>),
        (block, sources): (&'j BlockScope<'j>, &'j [SourcePlan<'j>]),
        clauses: JoinClauses<'_>,
        place: impl FnOnce(PlanNode, Vec<Expression>) -> PlanNode,
    ) -> Result<PlanNode> {
        let (above, conditions): (Vec<_>, Vec<_>) =
            conditions.into_iter().partition(|condition| relations_of(condition, block.space).is_none());
        let (node, _) = {
            let filter = WhereClause { conditions, semijoins, constants: Default::default() };
            self.join(from, filter, (block, sources), clauses)?
        };
        Ok(place(node, above))
    }

    /// The tables of the assignments, with the assignments as written over the rows of the block. Errors:
    /// 1054, 1052, 1288, 3105, and those of binding.
    fn assigned<'b>(
        &self,
        request: &ModifyRequest<'_>,
        (block, sources): (&'b BlockScope<'b>, &'b [SourcePlan<'b>]),
        view: &BlockView<'_>,
        subqueries: &BlockSubqueries<'_>,
    ) -> Result<Vec<BoundTarget<'b>>> {
        let mut found: Vec<BoundTarget<'b>> = Vec::new();
        let mut binder = self.binder(view);
        binder.subqueries = Some(subqueries);
        for assignment in request.assignments {
            let column = view.find(&assignment.column, Clause::FieldList.name())?.ok_or_else(|| {
                message::unknown_column(&crate::bind::shown(&assignment.column), Clause::FieldList.name())
            })?;
            let relation = relation_of(&column.expression, block);
            let layout = target_layout(relation, (block, sources), "UPDATE")?;
            if column.expression.as_column().is_none() {
                return Err(message::column_not_updatable(&assignment.column.name));
            }
            let place = match found.iter().position(|target| target.relation == relation) {
                Some(place) => place,
                None => {
                    found.push(BoundTarget { relation, layout, assignments: Vec::new() });
                    found.len() - 1
                }
            };
            match &block.relations[relation].source {
                _ if assignment.if_changed => {}
                RelationSource::View(view) => {
                    self.environment.note_assigned_through(view, &assignment.column.name, Privilege::Update);
                }
                _ => self.environment.note_assigned(&layout.definition, column.index, Privilege::Update),
            }
            let definition = &layout.definition.columns[usize::from(column.index.0)];
            if definition.is_generated() {
                match assignment.value {
                    ast::Expression::Default(None) => continue,
                    _ => return Err(message::value_for_generated(&definition.name, &layout.definition.name)),
                }
            }
            let value = self.assigned_value(&mut binder, layout, definition, &assignment.value)?;
            let kind = if assignment.if_changed { AssignmentKind::IfChanged } else { AssignmentKind::Always };
            found[place].assignments.push(Assignment { column: column.index, value, kind });
        }
        for target in &mut found {
            for (place, column) in target.layout.definition.columns.iter().enumerate() {
                let number = ColumnNumber(place as u16);
                let is_set = target.assignments.iter().any(|assignment| assignment.column == number);
                if column.on_update_now && !is_set {
                    let value = binder.bind_in(Clause::FieldList, &now(column))?;
                    target.assignments.push(Assignment { column: number, value, kind: AssignmentKind::IfChanged });
                }
            }
        }
        self.note(&binder);
        Ok(found)
    }

    /// Notes which tables of FROM are changed and which are read. Errors: 1142.
    fn note_access(
        &self,
        request: &ModifyRequest<'_>,
        found: &[BoundTarget<'_>],
        (block, sources): (&BlockScope<'_>, &[SourcePlan<'_>]),
    ) -> Result<()> {
        for (relation, source) in sources.iter().enumerate() {
            let SourcePlan::Table(layout, ..) = source else { continue };
            let is_target = found.iter().any(|target| target.relation == relation);
            let access = match (is_target, request.is_delete) {
                (true, true) => TableAccess::Delete,
                (true, false) => TableAccess::Update,
                (false, _) => TableAccess::Read,
            };
            match &block.relations[relation].source {
                RelationSource::View(view) => self.environment.note_changed_view(view, access)?,
                _ => self.environment.note_table(&layout.definition, access)?,
            }
        }
        Ok(())
    }

    fn assigned_value(
        &self,
        binder: &mut Binder<'_>,
        layout: &Arc<TableLayout>,
        column: &ColumnDefinition,
        value: &ast::Expression,
    ) -> Result<Expression> {
        if *value == ast::Expression::Default(None) {
            if column.default_now {
                return binder.bind_in(Clause::FieldList, &now(column));
            }
            let mut stored = StoredExpressions::new(self.environment, layout);
            let of_expression = stored.value_of(column)?;
            binder.is_volatile |= stored.is_volatile;
            return Ok(of_expression.unwrap_or_else(|| default_into(column)));
        }
        let bound = binder.bind_in(Clause::FieldList, value)?;
        // A TIME in a column of days is on the day of the statement.
        let has_day = matches!(
            column.column_type.form(),
            Form::Temporal(TemporalKind::Date | TemporalKind::DateTime | TemporalKind::Timestamp)
        );
        binder.is_volatile |= bound.result.kind == Kind::Time && has_day;
        Ok(as_stored(column, value, bound))
    }

    /// ORDER BY. Without it, an UPDATE of keys writes its rows in the order of the clustered key, as MySQL
    /// does, because the order decides which rows collide. So does an UPDATE or DELETE that changes the state
    /// of the session for each row.
    fn order_of(
        &self,
        request: &ModifyRequest<'_>,
        (view, found, counts_rows): (&BlockView<'_>, &[BoundTarget<'_>], bool),
        subqueries: &BlockSubqueries<'_>,
    ) -> Result<Vec<SortKey>> {
        if !request.select.order_by.is_empty() {
            let mut binder = self.binder(view);
            binder.subqueries = Some(subqueries);
            binder.aggregation = Aggregation::Forbidden;
            let nothing = Projection::new(Vec::new(), Vec::new());
            let sort = bind_order(&mut binder, &request.select.order_by, &[], &nothing)?;
            self.note(&binder);
            return Ok(sort);
        }
        let [target] = found else { return Ok(Vec::new()) };
        let changed = changed(&target.assignments);
        let is_stateful = target.assignments.iter().any(|assignment| assignment.value.is_stateful());
        let collides = || touches_unique(&target.layout.definition, &changed);
        let is_ordered = counts_rows || !request.is_delete && (is_stateful || collides());
        if !request.is_single || !is_ordered {
            return Ok(Vec::new());
        }
        let columns = clustered_columns(&target.layout.definition).iter();
        columns
            .map(|column| {
                let value = view.block.stored_column(target.relation, *column)?;
                Ok(SortKey { value, descending: false, is_in_result: false })
            })
            .collect()
    }

    /// The changes of each table, and the values that the tree returns for them.
    fn targets(
        &self,
        request: &ModifyRequest<'_>,
        found: Vec<BoundTarget<'_>>,
        block: &BlockScope<'_>,
    ) -> Result<(Vec<ModifyTarget>, Vec<Expression>, Vec<ResultColumn>)> {
        let (mut targets, mut values) = (Vec::new(), Vec::new());
        for BoundTarget { relation, layout, assignments } in found {
            let definition = &layout.definition;
            let first_value = values.len();
            let keys = row_key_columns(definition);
            for column in &keys {
                values.push(block.stored_column(relation, *column)?);
            }
            let (program, parameters) = self.write_of(request, (relation, layout), assignments, block)?;
            let has_checks = match &program.action {
                WriteAction::Update { assignments, .. } => {
                    assignments.iter().any(|assignment| assignment.kind == AssignmentKind::Check)
                }
                _ => false,
            };
            let collides = match &program.action {
                WriteAction::Update { assignments, .. } => touches_unique(definition, &changed(assignments)),
                _ => false,
            };
            let may_violate = collides || has_checks || program.foreign_keys.is_some();
            let parameter_count = parameters.len();
            values.extend(parameters);
            targets.push(ModifyTarget {
                relation,
                table: Arc::clone(layout),
                alias: block.relations[relation].name.as_str().into(),
                program: Arc::new(program),
                first_value,
                key_count: keys.len(),
                parameter_count,
                one_by_one: collides || request.ignore && may_violate,
            });
        }
        let columns = values.iter().map(|value: &Expression| value.result.result_column("")).collect();
        Ok((targets, values, columns))
    }

    /// The write of one row of a table by its key, and the values that it has as parameters after those of
    /// the statement.
    fn write_of(
        &self,
        request: &ModifyRequest<'_>,
        (relation, layout): (usize, &Arc<TableLayout>),
        mut assignments: Vec<Assignment>,
        block: &BlockScope<'_>,
    ) -> Result<(WriteProgram, Vec<Expression>)> {
        let environment = self.environment;
        let definition = &layout.definition;
        if request.is_delete {
            let program = WriteProgram {
                unique_entries: unique_entries(environment.dictionary, definition, None)?,
                foreign_keys: foreign_keys(environment, definition, RowWrite::Delete),
                rules: environment.rules,
                ..WriteProgram::new(layout, WriteAction::Delete { ignore: false }, Access::PrimaryKeys)
            };
            return Ok((program, Vec::new()));
        }
        let first_parameter = environment.parameters.len();
        let of = Some(block.relations[relation].id);
        let mut local = Localised { space: block.space, layout, of, first_parameter, parameters: Vec::new() };
        for assignment in &mut assignments {
            local.localise_assigned(&mut assignment.value);
        }
        let mut stored = StoredExpressions::new(environment, layout);
        let changed = changed(&assignments);
        let computed = stored.generated(&changed)?;
        let of_generated =
            |ComputedColumn { column, value }| Assignment { column, value, kind: AssignmentKind::Generated };
        assignments.extend(computed.into_iter().map(of_generated));
        assignments.extend(stored.checks()?.into_iter().map(Assignment::check));
        if let RelationSource::View(view) = &block.relations[relation].source {
            for check in checks_of(view)? {
                assignments.push(Assignment::check(check));
            }
        }
        UnstoredColumns::of(environment, layout)?.put_into_assignments(&mut assignments)?;
        if stored.is_volatile {
            self.is_volatile.set(true);
        }
        let reads = |assignment: &Assignment| crate::plan::operand::reads_parameter(&assignment.value);
        let all = crate::plan::change::changed_columns(&assignments);
        let program = WriteProgram {
            reads_parameters: assignments.iter().any(reads),
            unique_entries: unique_entries(environment.dictionary, definition, Some(&all))?,
            foreign_keys: foreign_keys(environment, definition, RowWrite::Update(&all)),
            rules: environment.rules,
            ..WriteProgram::new(
                layout,
                WriteAction::Update { assignments, ignore: request.ignore || environment.modes.is_lenient },
                Access::PrimaryKeys,
            )
        };
        Ok((program, local.parameters))
    }
}

/// The use of the tables of FROM, before it is known which of them are changed.
fn access_of(request: &ModifyRequest<'_>) -> TableAccess {
    match (request.is_single, request.is_delete) {
        (true, true) => TableAccess::Delete,
        (true, false) => TableAccess::Update,
        (false, true) => TableAccess::Read,
        (false, false) => TableAccess::ReadOrUpdate,
    }
}

fn changed(assignments: &[Assignment]) -> Vec<ColumnNumber> {
    crate::plan::change::changed_columns(assignments)
}

fn now(column: &ColumnDefinition) -> ast::Expression {
    let digits = ast::Expression::Literal(ast::Literal::Integer(column.column_type.scale().into()));
    ast::Expression::call("NOW", vec![digits])
}

/// The position of the relation whose column an expression is.
fn relation_of(column: &Expression, block: &BlockScope<'_>) -> usize {
    let mut id = 0;
    column.visit(&mut |inner| {
        if let Some(SlotOwner::Column(of, _)) = inner.as_column().and_then(|slot| block.space.owner(slot)) {
            id = of;
        }
    });
    block.relations.iter().position(|relation| relation.id == id).unwrap_or(0)
}

/// The stored table at a position of FROM. Error 1288 if its rows are computed.
fn target_layout<'b>(
    relation: usize,
    (block, sources): (&'b BlockScope<'b>, &'b [SourcePlan<'b>]),
    statement: &str,
) -> Result<&'b Arc<TableLayout>> {
    match &sources[relation] {
        SourcePlan::Table(layout, ..) => Ok(layout),
        _ => Err(message::not_updatable(&block.relations[relation].name, statement)),
    }
}

/// The tables of a DELETE. Errors: 1066, 1109, 1288.
fn deleted<'b>(
    request: &ModifyRequest<'_>,
    block: &'b BlockScope<'b>,
    sources: &'b [SourcePlan<'b>],
) -> Result<Vec<BoundTarget<'b>>> {
    let mut found: Vec<BoundTarget<'b>> = Vec::new();
    let mut add = |relation: usize| {
        let layout = target_layout(relation, (block, sources), "DELETE")?;
        if found.iter().any(|target| target.relation == relation) {
            let name = &block.relations[relation].name;
            return Err(Error::new(ErrorCode::NonUniqueTable, format!("Not unique table/alias: '{name}'")));
        }
        found.push(BoundTarget { relation, layout, assignments: Vec::new() });
        Ok(())
    };
    if request.targets.is_empty() {
        add(0)?;
    }
    for target in request.targets {
        let is_it = |relation: &Relation<'_>| relation.is_named(target.database.as_deref(), &target.name);
        let Some(relation) = block.relations.iter().position(is_it) else {
            let text = format!("Unknown table '{}' in MULTI DELETE", target.name);
            return Err(Error::new(ErrorCode::UnknownTableInStatement, text));
        };
        add(relation)?;
    }
    // Rows are deleted before the rows that they refer to.
    let refers = |child: &BoundTarget<'_>, parent: &BoundTarget<'_>| {
        let mut keys = child.layout.definition.foreign_keys.iter();
        let parent = &parent.layout.definition;
        keys.any(|key| key.parent.0 == parent.database && key.parent.1 == parent.name)
    };
    for at in 1..found.len() {
        let before = (0..at).find(|before| refers(&found[at], &found[*before]) && !refers(&found[*before], &found[at]));
        if let Some(before) = before {
            found[before..=at].rotate_right(1);
        }
    }
    Ok(found)
}

/// The locks of the tables of FROM: exclusive for those that the statement changes, shared for others.
fn locks_of(targets: &[ModifyTarget], count: usize) -> Vec<Option<LockingClause>> {
    let is_target = |relation: usize| targets.iter().any(|target| target.relation == relation);
    let lock = |relation| LockingClause { exclusive: is_target(relation), when_locked: WhenLocked::Wait };
    (0..count).map(|relation| Some(lock(relation))).collect()
}

/// Error 1235 for ORDER BY of something else than the first columns of the clustered key, beside a condition
/// that changes or reads the state of the session for each row, and thus depends on their order.
fn check_stateful_order(view: &BlockView<'_>, found: &[BoundTarget<'_>], sort: &[SortKey]) -> Result<()> {
    let [target] = found else { return Ok(()) };
    let columns = clustered_columns(&target.layout.definition).iter();
    let key = columns.map(|column| view.block.stored_column(target.relation, *column)).collect::<Result<Vec<_>>>()?;
    let is_key = sort.iter().enumerate().all(|(place, sort)| !sort.descending && key.get(place) == Some(&sort.value));
    match is_key {
        true => Ok(()),
        false => Err(Error::not_supported(
            "a user variable that the statement assigns, in WHERE beside ORDER BY of other columns than the key",
        )),
    }
}

/// Error 1235 for a value that the session computes from a column which an assignment before it has changed,
/// because it computes such values before the row changes.
fn check_order(found: &[BoundTarget<'_>], space: &SlotSpace) -> Result<()> {
    let [target] = found else { return Ok(()) };
    let mut set: Vec<ColumnNumber> = Vec::new();
    for assignment in &target.assignments {
        let mut reads = false;
        assignment.value.visit(&mut |inner| {
            let owner = inner.as_column().and_then(|slot| space.owner(slot));
            reads |= matches!(owner, Some(SlotOwner::Column(_, column) | SlotOwner::Instant(_, column)) if set.contains(&column));
        });
        if reads && assignment.value.is_stateful() {
            let what = "a user variable that SET assigns, beside a column which SET has changed";
            return Err(Error::not_supported(what));
        }
        set.push(assignment.column);
    }
    Ok(())
}

/// Error 1235 for a subquery of an UPDATE of one table that reads a column which an assignment before it has
/// changed.
fn check_subqueries(found: &[BoundTarget<'_>], applies: &Applies, space: &SlotSpace) -> Result<()> {
    let [target] = found else { return Ok(()) };
    let mut set: Vec<ColumnNumber> = Vec::new();
    for assignment in &target.assignments {
        let mut slots = Vec::new();
        assignment.value.visit(&mut |inner| slots.extend(inner.as_column().map(|slot| slot.0)));
        for apply in applies.iter().filter(|apply| slots.contains(&apply.slot)) {
            for (_, outer) in &apply.block.outer {
                let mut reads = false;
                outer.visit(&mut |inner| {
                    if let Node::Column { index, .. } = inner.node
                        && let Some(SlotOwner::Column(_, column) | SlotOwner::Instant(_, column)) = space.owner(index)
                    {
                        reads |= set.contains(&column);
                    }
                });
                if reads {
                    return Err(Error::not_supported("a subquery in SET that reads a column which SET has changed"));
                }
            }
        }
        set.push(assignment.column);
    }
    Ok(())
}
