//! A query block: from FROM to LIMIT.

use std::sync::Arc;

use junctor_expression::Expression;
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::row_encoding::ResultColumn;
use junctor_signals::program::{Projection, SortKey};

use super::check::GroupCheck;
use super::decorrelate::{CorrelatedBlock, Correlation};
use super::factor::{conjuncts_of, is_silent};
use super::from::bind_from;
use super::join::{JoinClauses, JoinNode, Locks, WhereClause};
use super::join_key::relations_of;
use super::pushed::{FromScope, Pushed, over_rows};
use super::recursion::{Defining, WorkingTable};
use super::stateful::check_stateful;
use super::subquery::{BlockSubqueries, SemiJoin};
use super::window::{check_alias, windowed};
use super::work::GROUPS_SHARE;
use super::{AggregatePlan, ApplyForm, ApplyPlan, BlockPlan, PlanNode, TreePlanner};
use crate::access::TableAccess;
use crate::bind::block::{BlockScope, BlockView, Relation, RelationSource, SlotSpace};
use crate::bind::group_function::GroupFunctions;
use crate::bind::window::WindowFunction;
use crate::bind::{Aggregation, Binder, Clause, Scope, bind_item, message};
use crate::parse::expression as ast;
use crate::parse::statement::{CommonTable, LockingClause, ObjectName, Select, SelectItem, TableLocks};
use crate::plan::operand::{LimitTemplate, Quantity};
use crate::plan::order::{bind_order, check_distinct_order};
use crate::plan::select::{check_lock_names, implied_lock};

/// Maximum number of columns in a result, as in MySQL.
const RESULT_COLUMNS_MAX: usize = 4096;

/// The share of groups that HAVING is assumed to leave.
const HAVING_SHARE: f64 = 0.3;

/// The tables of WITH that a block can name.
#[derive(Clone, Copy)]
pub(super) struct CommonTables<'a> {
    /// The innermost WITH, as far as its tables are visible.
    pub tables: &'a [CommonTable],
    /// The WITH around it.
    pub outer: Option<&'a CommonTables<'a>>,
    /// The table whose recursive queries are planned.
    pub working: Option<&'a WorkingTable<'a>>,
    /// The table whose queries are planned next.
    pub defining: Option<Defining<'a>>,
    /// How the statement uses the stored tables of its own FROM, if not as a query.
    pub changes: Option<TableAccess>,
}

impl<'a> CommonTables<'a> {
    /// No tables.
    pub const NONE: CommonTables<'static> =
        CommonTables { tables: &[], outer: None, working: None, defining: None, changes: None };

    /// A scope inside another one.
    pub fn within(outer: &'a CommonTables<'a>) -> CommonTables<'a> {
        CommonTables { outer: Some(outer), ..CommonTables::NONE }
    }
}

/// Facts about a block that come from the queries around it.
#[derive(Default)]
struct BlockInput<'i> {
    /// The equalities with outer values that become keys of groups.
    correlation: Option<&'i mut Correlation>,
    /// Conditions over the values of the select list.
    received: &'i [Expression],
    /// The conditions that the queries in FROM test, once they are known.
    pushed: Option<Pushed>,
}

/// The bound clauses of a block after WHERE.
pub(super) struct Lists {
    pub projection: Projection,
    /// GROUP BY.
    pub keys: Vec<Expression>,
    pub having: Option<Expression>,
    pub sort: Vec<SortKey>,
    pub functions: GroupFunctions,
}

/// The values of a select list and the columns that describe them.
type BoundList = (Vec<Expression>, Vec<ResultColumn>);

impl TreePlanner<'_> {
    /// Plans a block. The caller applies LIMIT if `is_root`.
    pub(super) fn block(
        &self,
        select: &Select,
        outer: Option<&BlockView<'_>>,
        tables: &CommonTables<'_>,
        is_root: bool,
    ) -> Result<BlockPlan> {
        self.block_with(select, (outer, tables), is_root, BlockInput::default())
    }

    /// Plans a query in FROM, which tests these conditions on its values.
    pub(super) fn query_block(
        &self,
        select: &Select,
        (outer, tables): (Option<&BlockView<'_>>, &CommonTables<'_>),
        received: &[Expression],
    ) -> Result<BlockPlan> {
        let input = BlockInput { received, ..BlockInput::default() };
        self.inside(|| self.block_with(select, (outer, tables), false, input))
    }

    /// Plans a block for all outer rows: without the equalities with outer values, whose own sides become the
    /// keys of groups.
    pub(super) fn correlated_block(
        &self,
        select: &Select,
        (outer, tables): (&BlockView<'_>, &CommonTables<'_>),
        correlation: &mut Correlation,
    ) -> Result<BlockPlan> {
        let input = BlockInput { correlation: Some(correlation), ..BlockInput::default() };
        self.inside(|| self.block_with(select, (Some(outer), tables), false, input))
    }

    fn block_with(
        &self,
        select: &Select,
        (outer, tables): (Option<&BlockView<'_>>, &CommonTables<'_>),
        is_root: bool,
        input: BlockInput<'_>,
    ) -> Result<BlockPlan> {
        let before = self.planned_so_far();
        let own;
        let tables = match select.with.is_empty() {
            true => tables,
            false => {
                own = CommonTables { tables: &select.with, ..CommonTables::within(tables) };
                &own
            }
        };
        if !is_root && !select.into.is_none() {
            let text = "Misplaced INTO clause, INTO is not allowed inside subqueries, and must be placed at end of UNION \
                        clauses.";
            return Err(Error::new(ErrorCode::MisplacedInto, text));
        }
        let space = SlotSpace::new(self.environment.parameters.len());
        let mut relations = Vec::new();
        let shape = {
            let scope = BlockScope::new(&space, Vec::new(), outer);
            let view = BlockView { block: &scope, names: Vec::new(), relations: Vec::new() };
            let pushed = input.pushed.as_ref().unwrap_or(Pushed::NONE);
            let scope = FromScope { space: &space, tables, outer: &view, pushed };
            select.from.as_ref().map(|from| self.collect(from, false, scope, &mut relations)).transpose()?
        };
        let (relations, sources): (Vec<_>, Vec<_>) = relations.into_iter().unzip();
        let block = BlockScope::new(&space, relations, outer);
        let locks = self.locks_of(select, &block.relations)?;
        let mut joined = shape.as_ref().map(|shape| bind_from(self, shape, &block, tables)).transpose()?;
        let names = joined.as_ref().map_or_else(Vec::new, |joined| joined.names.clone());
        let view = BlockView { block: &block, names, relations: (0..block.relations.len()).collect() };
        let subqueries = BlockSubqueries::new(self, &view, tables);

        let (mut conditions, semijoins) = self.bind_where(select, &view, &subqueries)?;
        let mut where_applies = Vec::new();
        if let Some(joined) = &mut joined {
            where_applies = std::mem::take(&mut joined.applies);
            conditions.append(&mut joined.conditions);
        }
        where_applies.extend(subqueries.take());

        let mut lists = self.bind_lists(select, &view, &subqueries)?;
        let windows = std::mem::take(&mut lists.functions.windows);
        let mut is_grouped = !lists.keys.is_empty() || !lists.functions.functions.is_empty();
        GroupCheck {
            only_full: self.environment.modes.only_full_group_by,
            is_grouped,
            space: &space,
            block: &block,
            keys: &lists.keys,
            windows: &windows,
            conditions: &joined.as_ref().map_or_else(Vec::new, |joined| joined.node.inner_conditions(&conditions)),
        }
        .check(&lists.projection.values, lists.having.as_ref(), &lists.sort)?;
        if !is_grouped && !lists.functions.groupings.is_empty() {
            return Err(message::invalid_use_of_group());
        }
        let has_stateful = lists.are_stateful(&conditions);
        check_stateful(&windows, has_stateful && subqueries.has_stateful(&where_applies))?;
        lists.check_subqueries(select, |value| subqueries.is_stateful_value(value))?;

        conditions.extend(over_rows(input.received, &lists.projection.values));
        let from = joined.as_mut().map(|joined| &mut joined.node);
        if let Some(pushed) = self.push((&block, &sources), (&mut conditions, from), input.pushed.as_ref()) {
            self.discard(&before);
            return self.block_with(select, (outer, tables), is_root, BlockInput { pushed: Some(pushed), ..input });
        }
        let passages = self.passages((select, is_grouped), (&lists, &windows), (&block, &sources));

        let mut correlation = input.correlation;
        if let Some(correlation) = &mut correlation {
            lists.keys = correlation.take(CorrelatedBlock {
                space: &space,
                sources: &sources,
                from: joined.as_mut().map(|joined| &mut joined.node),
                conditions: &mut conditions,
                functions: &lists.functions.functions,
                values: &lists.projection.values,
                has_more: !where_applies.is_empty()
                    || !semijoins.is_empty()
                    || subqueries.has_any()
                    || !windows.is_empty(),
            });
            is_grouped = true;
            lists.projection.values.splice(0..0, lists.keys.iter().cloned());
        }

        // The operators. Conditions that read the value of a subquery are above the joins.
        let (mut above, conditions): (Vec<_>, Vec<_>) =
            conditions.into_iter().partition(|condition| relations_of(condition, &space).is_none());
        let constants = constant_conditions(&semijoins, &mut where_applies, &mut above);
        let from = joined.take().map_or(JoinNode::nothing(), |joined| joined.node);
        let keeps_order = has_stateful && !is_grouped && select.order_by.is_empty();
        let clauses = JoinClauses::of(select, Locks::Each(&locks), keeps_order);
        let (node, rows) = match self.looked_up((&from, &conditions), (&block, &sources), correlation)? {
            Some(looked_up) => looked_up,
            None => {
                let filter = WhereClause { conditions, semijoins, constants };
                self.join(from, filter, (&block, &sources), clauses)?
            }
        };
        let joined = (filtered(subqueries.place_all(node, where_applies), above), rows);
        let planned =
            self.after_joins(joined, (select, is_root, is_grouped), (lists, windows), (&subqueries, &space))?;
        Ok(BlockPlan { passages, ..planned })
    }

    /// Plans the clauses after WHERE over the joined rows.
    fn after_joins(
        &self,
        (mut node, mut rows): (PlanNode, f64),
        (select, is_root, is_grouped): (&Select, bool, bool),
        (mut lists, mut windows): (Lists, Vec<WindowFunction>),
        (subqueries, space): (&BlockSubqueries<'_>, &SlotSpace),
    ) -> Result<BlockPlan> {
        if is_grouped {
            rows = if lists.keys.is_empty() { 1.0 } else { (rows * GROUPS_SHARE).max(1.0) };
            node = subqueries.place_all(node, subqueries.take_inner());
            node = self.grouped(node, (select, subqueries.has_any()), (&mut lists, &mut windows), space)?;
        }
        let (after, of_windows): (Vec<_>, Vec<_>) =
            subqueries.take().into_iter().partition(|apply| !apply.reads(&windows));
        let (after, late) = split_late(after, (&lists, &windows, &of_windows), select);
        node = subqueries.place_all(node, after);
        node = lists.compute_for_having(node, !windows.is_empty(), space)?;
        if let Some(having) = &lists.having {
            rows *= HAVING_SHARE;
            node = filtered(node, having.conjuncts().to_vec());
        }
        node = subqueries.place_all(windowed(node, windows), of_windows);
        node = lists.compute_for_sort(node, select.distinct, space)?;
        let Projection { values, columns, .. } = lists.projection;
        node = last_clauses(node, (select, is_root, !late.is_empty()), &values, lists.sort)?;
        node = subqueries.place_all(node, late);
        let is_stateful = select.is_stateful();
        Ok(BlockPlan { rows, is_stateful, ..self.rows(node, space, values, columns) })
    }

    /// The groups of the rows of `node`.
    fn grouped(
        &self,
        node: PlanNode,
        (select, has_subqueries): (&Select, bool),
        (lists, windows): (&mut Lists, &mut [WindowFunction]),
        space: &SlotSpace,
    ) -> Result<PlanNode> {
        let node = lists.compute_keys(node, space)?;
        let functions = std::mem::take(&mut lists.functions);
        let mut aggregate = self.aggregate(&mut lists.keys, functions, select.with_rollup, space)?;
        let Lists { projection, having, sort, .. } = lists;
        let keys: Vec<Expression> = aggregate.keys.iter().map(|(key, _)| key.clone()).collect();
        if select.with_rollup {
            let replace = |value: &mut Expression| replace_keys(value, &aggregate);
            projection.values.iter_mut().for_each(replace);
            having.iter_mut().for_each(replace);
            windows.iter_mut().flat_map(WindowFunction::expressions_mut).for_each(replace);
            sort.iter_mut().for_each(|key| replace(&mut key.value));
        }
        let reads_all = has_subqueries || !windows.is_empty();
        let sorted = sort.iter().map(|key| &key.value);
        let read_after = keys.iter().chain(&projection.values).chain(having.as_ref()).chain(sorted);
        self.group_in_partitions(&node, &mut aggregate, space, &|slot| {
            reads_all || read_after.clone().any(|value| reads_slot(value, slot))
        })?;
        Ok(PlanNode::Aggregate(Box::new(node), Arc::new(aggregate)))
    }

    /// Binds WHERE. Conjuncts that are semijoins are returned apart.
    pub(super) fn bind_where<'q>(
        &self,
        select: &'q Select,
        view: &'q BlockView<'q>,
        subqueries: &BlockSubqueries<'q>,
    ) -> Result<(Vec<Expression>, Vec<SemiJoin<'q>>)> {
        let (mut conditions, mut semijoins) = (Vec::new(), Vec::new());
        let mut binder = self.binder(view);
        binder.subqueries = Some(subqueries);
        for conjunct in select.filter.iter().flat_map(conjuncts) {
            if let Some(semijoin) = subqueries.semijoin(conjunct)? {
                semijoins.push(semijoin);
                continue;
            }
            let bound = crate::bind::as_condition(conjunct, binder.bind_in(Clause::Where, conjunct)?)?;
            conditions.extend(conjuncts_of(&bound));
        }
        self.note(&binder);
        Ok((conditions, semijoins))
    }

    /// Binds the select list, GROUP BY, HAVING and ORDER BY. Errors: those of binding; 3065.
    fn bind_lists<'q>(
        &self,
        select: &'q Select,
        view: &'q BlockView<'q>,
        subqueries: &BlockSubqueries<'q>,
    ) -> Result<Lists> {
        let is_ordered_set = select.distinct && !select.order_by.is_empty();
        view.block.hides_instants.set(is_ordered_set || select.with_rollup || select.having.is_some());
        let mut binder = self.binder(view);
        binder.subqueries = Some(subqueries);
        binder.aggregation = Aggregation::Grouped { space: view.block.space, functions: GroupFunctions::default() };
        binder.windows = Some(&select.windows);
        let (values, columns) = self.select_list(&mut binder, select, view)?;
        let projection = Projection::new(values, columns);
        binder.check_windows(&select.windows)?;
        let windows = match &mut binder.aggregation {
            Aggregation::Grouped { functions, .. } => std::mem::take(&mut functions.windows),
            _ => Vec::new(),
        };
        let keys = self.group_keys(select, (&projection, &windows), view, subqueries)?;
        binder.windows = None;
        binder.named = Some((&select.projection, projection.clone()));
        binder.group_keys = keys.clone();
        let having = match &select.having {
            Some(having) => {
                let bound = binder.bind_in(Clause::Having, having)?;
                check_alias(&bound, &projection, &windows)?;
                Some(crate::bind::as_condition(having, bound)?)
            }
            None => None,
        };
        binder.named = None;
        binder.windows = Some(&select.windows);
        if let Aggregation::Grouped { functions, .. } = &mut binder.aggregation {
            functions.windows = windows;
        }
        let sort = bind_order(&mut binder, &select.order_by, &select.projection, &projection)?;
        self.note(&binder);
        let Aggregation::Grouped { functions, .. } = std::mem::replace(&mut binder.aggregation, Aggregation::Forbidden)
        else {
            return Err(message::invalid_use_of_group());
        };
        if select.distinct {
            check_distinct_order(&sort, &projection)?;
        }
        Ok(Lists { projection, keys, having, sort, functions })
    }

    /// A binder of expressions over the rows of a block.
    pub(super) fn binder<'v>(&'v self, view: &'v BlockView<'v>) -> Binder<'v> {
        Binder::new(self.environment, Scope::of_block(view))
    }

    /// Notes whether the binder found values that may differ in another execution.
    pub(super) fn note(&self, binder: &Binder<'_>) {
        self.is_volatile.set(self.is_volatile.get() || binder.is_volatile);
    }

    /// The lock of each relation of a block. The relations that a locking clause concerns need the rights to
    /// lock rows. Errors: 3568 and 3569 for the names after OF, 1142, 1356.
    fn locks_of(&self, select: &Select, relations: &[Relation<'_>]) -> Result<Vec<Option<LockingClause>>> {
        let is_named =
            |name: &ObjectName, relation: &Relation<'_>| relation.is_named(name.database.as_deref(), &name.name);
        check_lock_names(&select.locks, relations.len(), |number, name| is_named(name, &relations[number]))?;
        let implied = implied_lock(self.environment);
        let lock_of = |relation: &Relation<'_>| {
            let concerns =
                |it: &&TableLocks| it.names.is_empty() || it.names.iter().any(|name| is_named(name, relation));
            let Some(locks) = select.locks.iter().find(concerns) else { return Ok(implied) };
            self.note_locking(relation)?;
            Ok(Some(locks.clause))
        };
        relations.iter().map(lock_of).collect()
    }

    /// Notes that the rows of a relation are locked. Errors: 1142, 1356.
    fn note_locking(&self, relation: &Relation<'_>) -> Result<()> {
        let environment = self.environment;
        match (&relation.source, relation.view) {
            (RelationSource::Table(layout), _) => environment.note_table(&layout.definition, TableAccess::LockingRead),
            (RelationSource::View(view), _) => environment.note_changed_view(view, TableAccess::LockingRead),
            (RelationSource::Rows { .. }, Some(view)) => {
                environment.note_table(&view.definition, TableAccess::LockingRead)
            }
            (RelationSource::Rows { .. }, None) => Ok(()),
        }
    }

    fn select_list(&self, binder: &mut Binder<'_>, select: &Select, view: &BlockView<'_>) -> Result<BoundList> {
        let mut list = BoundList::default();
        for item in &select.projection {
            let named = match item {
                SelectItem::Expression { expression, alias, text } => {
                    let name = alias.as_deref().unwrap_or(text);
                    let (value, column) = bind_item(binder, Clause::FieldList, expression, (name, alias.is_some()))?;
                    list.0.push(value);
                    list.1.push(column);
                    continue;
                }
                SelectItem::All(named) => named,
            };
            if select.from.is_none() {
                return Err(Error::new(ErrorCode::NoTablesUsed, "No tables used"));
            }
            let columns = match named {
                Some(table) => view.columns_of(table.database.as_deref(), &table.name)?,
                None => view.names.iter().filter(|name| name.is_shown).cloned().collect(),
            };
            for column in columns {
                let found = view.block.column(column.relation, column.column)?;
                self.environment.note_read_by_star(&found);
                list.0.push(found.expression);
                list.1.push(found.column);
            }
        }
        if list.0.len() > RESULT_COLUMNS_MAX {
            return Err(Error::new(ErrorCode::TooManyColumns, "Too many columns"));
        }
        Ok(list)
    }
}

/// The conjuncts of a condition as written.
pub(super) fn conjuncts(condition: &ast::Expression) -> Vec<&ast::Expression> {
    match condition {
        ast::Expression::And(operands) => operands.iter().flat_map(conjuncts).collect(),
        other => vec![other],
    }
}

/// Takes the subqueries that are evaluated once and the conditions on their values, if they can be tested
/// before semijoins.
fn constant_conditions(
    semijoins: &[SemiJoin<'_>],
    applies: &mut Applies,
    above: &mut Vec<Expression>,
) -> (Applies, Vec<Expression>) {
    match !semijoins.is_empty() && applies.iter().all(is_constant) && above.iter().all(is_silent) {
        true => (std::mem::take(applies), std::mem::take(above)),
        false => Default::default(),
    }
}

/// Whether the value of a subquery is the same in all rows.
fn is_constant(apply: &ApplyPlan) -> bool {
    apply.block.outer.is_empty() && matches!(apply.form, ApplyForm::Value) && !apply.block.is_stateful
}

/// The rows of `node` for which all conditions are true.
pub(super) fn filtered(node: PlanNode, conditions: Vec<Expression>) -> PlanNode {
    if conditions.is_empty() {
        return node;
    }
    let is_stateful = conditions.iter().any(Expression::is_stateful);
    let node = if is_stateful { PlanNode::Single(Box::new(node)) } else { node };
    PlanNode::Filter(Box::new(node), conditions.into())
}

/// Whether an expression reads a slot.
fn reads_slot(value: &Expression, slot: u16) -> bool {
    let mut reads = false;
    value.visit(&mut |inner| reads |= inner.as_column().is_some_and(|column| column.0 == slot));
    reads
}

/// Replaces the keys of groups by their slots, in which WITH ROLLUP sets NULL.
fn replace_keys(value: &mut Expression, aggregate: &AggregatePlan) {
    value.rewrite(&mut |inner| {
        let (key, slot) = aggregate.keys.iter().find(|(key, _)| key == inner)?;
        let result = key.result.with_nullable(true);
        Some(Expression::column_of_type(junctor_model::id::ColumnNumber(*slot), result, ""))
    });
}

/// Splits off the subqueries whose values only the result has. They run for the rows that ORDER BY and LIMIT
/// leave, unless DISTINCT reads all values.
fn split_late(
    applies: Applies,
    (lists, windows, of_windows): (&Lists, &[WindowFunction], &Applies),
    select: &Select,
) -> (Applies, Applies) {
    if select.distinct || lists.sort.is_empty() && select.limit.is_none() {
        return (applies, Vec::new());
    }
    let (mut early, mut late): (Applies, Applies) = (Vec::new(), Vec::new());
    // A subquery may read the values of those before it.
    for apply in applies.into_iter().rev() {
        let is_early = apply.block.is_stateful || {
            let sorted = lists.sort.iter().map(|key| &key.value);
            let in_windows = windows.iter().flat_map(WindowFunction::expressions);
            let in_subqueries = early.iter().chain(of_windows).flat_map(ApplyPlan::values);
            // Stateful values may be computed before HAVING or ORDER BY.
            let stateful = lists.projection.values.iter().filter(|value| value.is_stateful());
            let mut readers = lists.having.iter().chain(sorted).chain(in_windows).chain(in_subqueries).chain(stateful);
            readers.any(|reader| reads_slot(reader, apply.slot))
        };
        if is_early { early.push(apply) } else { late.push(apply) }
    }
    early.reverse();
    late.reverse();
    (early, late)
}

/// A subquery that is placed above the rows it needs.
pub(super) type Applies = Vec<ApplyPlan>;

/// DISTINCT, ORDER BY and LIMIT. The driver applies the LIMIT of the whole query. If it has no offset, it
/// applies to the rows below late subqueries too.
fn last_clauses(
    mut node: PlanNode,
    (select, is_root, has_late): (&Select, bool, bool),
    values: &[Expression],
    sort: Vec<SortKey>,
) -> Result<PlanNode> {
    if select.distinct {
        node = PlanNode::Distinct(Box::new(node), values.into());
    }
    let limit = select.limit.map(LimitTemplate::of).transpose()?;
    if !sort.is_empty() {
        let bound = if select.calc_found_rows { None } else { limit };
        node = PlanNode::Sort(Box::new(node), sort.into(), bound);
    }
    let applies_twice =
        |limit: &LimitTemplate| has_late && !select.calc_found_rows && limit.offset == Quantity::Rows(0);
    if let Some(limit) = limit.filter(|limit| !is_root || applies_twice(limit)) {
        node = PlanNode::Limit(Box::new(node), limit);
    }
    Ok(node)
}
