//! Subqueries of a block: values that an operator adds to the rows, and semijoins.

use std::cell::RefCell;
use std::sync::Arc;

use junctor_expression::{CompareOperator, Expression, ResultType};
use junctor_model::error::Result;
use junctor_model::id::ColumnNumber;

use super::block::{Applies, CommonTables, conjuncts};
use super::factor::conjuncts_of;
use super::from::{SourcePlan, bind_from};
use super::join::{JoinNode, RelationSet};
use super::join_key::{key_of_equality, relations_of};
use super::pushed::{FromScope, Pushed};
use super::window::reads_window;
use super::{ApplyForm, ApplyPlan, JoinForm, JoinKey, PlanNode, TreePlanner};
use crate::bind::block::{BlockScope, BlockView, SlotOwner, SlotSpace};
use crate::bind::window::WindowFunction;
use crate::bind::{Clause, Subqueries, SubqueryForm, as_condition, message};
use crate::parse::expression as ast;
use crate::parse::query::FromItem;
use crate::parse::statement::{Select, SelectItem};

/// The subqueries of a block.
pub(super) struct BlockSubqueries<'b> {
    planner: &'b TreePlanner<'b>,
    view: &'b BlockView<'b>,
    tables: &'b CommonTables<'b>,
    /// The subqueries of the current clause.
    applies: RefCell<Applies>,
    /// The subqueries in arguments of aggregates and in GROUP BY.
    inner: RefCell<Applies>,
}

/// A subquery whose relations are joined with the rows of the block.
pub(super) struct SemiJoin<'b> {
    pub block: BlockScope<'b>,
    pub sources: Vec<SourcePlan<'b>>,
    pub node: JoinNode,
    pub conditions: Vec<Expression>,
    pub form: JoinForm,
}

impl SemiJoin<'_> {
    /// Whether the right rows are computed, so that they are read to their end in any case.
    pub fn is_computed(&self) -> bool {
        self.sources.iter().all(|source| matches!(source, SourcePlan::Query(_)))
    }

    /// The relations of the outer block that the conditions read.
    pub fn outer_relations(&self) -> RelationSet {
        let of_condition = |condition| relations_of(condition, self.block.space).unwrap_or_default();
        let mut used: RelationSet = self.conditions.iter().flat_map(of_condition).collect();
        self.block.relations.iter().for_each(|own| _ = used.remove(&own.id));
        used
    }
}

impl<'b> BlockSubqueries<'b> {
    pub fn new(
        planner: &'b TreePlanner<'b>,
        view: &'b BlockView<'b>,
        tables: &'b CommonTables<'b>,
    ) -> BlockSubqueries<'b> {
        BlockSubqueries { planner, view, tables, applies: RefCell::default(), inner: RefCell::default() }
    }

    /// Takes the subqueries found since the last call.
    pub fn take(&self) -> Applies {
        self.applies.take()
    }

    /// Whether the current clauses have subqueries.
    pub fn has_any(&self) -> bool {
        !self.applies.borrow().is_empty() || !self.inner.borrow().is_empty()
    }

    /// Whether one of them, or of `others`, changes or reads the state of the session.
    pub fn has_stateful(&self, others: &Applies) -> bool {
        let (applies, inner) = (self.applies.borrow(), self.inner.borrow());
        applies.iter().chain(&*inner).chain(others).any(|apply| apply.block.is_stateful)
    }

    /// Whether an expression is the value of a subquery that changes or reads the state of the session.
    pub fn is_stateful_value(&self, value: &Expression) -> bool {
        let is_it = |apply: &ApplyPlan| value.as_column().is_some_and(|slot| slot.0 == apply.slot);
        self.applies.borrow().iter().any(|apply| apply.block.is_stateful && is_it(apply))
    }

    /// Takes those in arguments of aggregates.
    pub fn take_inner(&self) -> Applies {
        self.inner.take()
    }

    /// Marks the subqueries of the current clause as needed by the groups.
    pub fn move_inner(&self) {
        self.inner.borrow_mut().extend(self.applies.take());
    }

    /// Puts back subqueries that `take` has returned.
    pub fn restore(&self, applies: Applies) {
        *self.applies.borrow_mut() = applies;
    }

    /// Adds the values of subqueries to the rows of `node`.
    pub fn place_all(&self, node: PlanNode, applies: Applies) -> PlanNode {
        applies.into_iter().fold(node, applied)
    }

    /// The semijoin of a conjunct of WHERE that is EXISTS or IN of a plain query, or their negation.
    pub fn semijoin<'q>(&self, conjunct: &'q ast::Expression) -> Result<Option<SemiJoin<'q>>>
    where
        'b: 'q,
    {
        // A query that reads or changes the state of the session runs for each row.
        if conjunct.is_stateful() {
            return Ok(None);
        }
        let Some((mut form, query, operand)) = semijoin_of(conjunct) else { return Ok(None) };
        let operands = match operand {
            Some(ast::Expression::Row(members)) => members.iter().collect(),
            Some(operand) => vec![operand],
            None => Vec::new(),
        };
        if operands.iter().any(|operand| operand.needs_tree()) {
            return Ok(None);
        }
        let values = match operand {
            Some(_) => listed(query),
            None => Some(Vec::new()),
        };
        let is_simple = |from: &&FromItem| is_plain(query) && !from.has_query();
        let (Some(from), Some(values)) = (query.from.as_ref().filter(is_simple), values) else {
            return match operand {
                Some(_) => self.computed_semijoin(form, query, &operands),
                None => Ok(None),
            };
        };
        // A wrong number of operands is found after the tables and columns are known.
        if values.len() != operands.len() {
            return Ok(None);
        }
        let planner = self.planner;
        let space = self.view.block.space;
        let mut relations = Vec::new();
        let scope = FromScope { space, tables: self.tables, outer: self.view, pushed: Pushed::NONE };
        let shape = planner.collect(from, false, scope, &mut relations)?;
        let (relations, sources): (Vec<_>, Vec<_>) = relations.into_iter().unzip();
        let block = BlockScope::sharing_rows(space, relations, Some(self.view));
        let mut conditions = Vec::new();
        let node = {
            let bound = bind_from(planner, &shape, &block, self.tables)?;
            let view = BlockView { block: &block, names: bound.names, relations: (0..sources.len()).collect() };
            let mut binder = planner.binder(&view);
            for conjunct in query.filter.iter().flat_map(conjuncts) {
                let condition = as_condition(conjunct, binder.bind_in(Clause::Where, conjunct)?)?;
                conditions.extend(conjuncts_of(&condition));
            }
            let bind = |value| binder.bind_in(Clause::FieldList, value);
            let values = values.into_iter().map(bind).collect::<Result<Vec<Expression>>>()?;
            planner.note(&binder);
            if operand.is_some() {
                form = self.add_equality(form, &operands, values, &mut conditions)?;
            }
            bound.node
        };
        Ok(Some(SemiJoin { block, sources, node, conditions, form }))
    }

    /// The semijoin of a query with groups, sets or subqueries of its own, whose rows are computed once.
    /// `None` if they depend on the row of the outer block. Such a query is planned again as a value, but it
    /// is tried once only: otherwise each level of nesting would double the time of planning.
    fn computed_semijoin<'q>(
        &self,
        form: JoinForm,
        query: &'q Select,
        operands: &[&ast::Expression],
    ) -> Result<Option<SemiJoin<'q>>>
    where
        'b: 'q,
    {
        let planner = self.planner;
        let space = self.view.block.space;
        if planner.correlated.borrow().contains(query) {
            return Ok(None);
        }
        let before = planner.planned_so_far();
        let planned = planner.inside(|| planner.block(query, Some(self.view), self.tables, false))?;
        if !planned.outer.is_empty() || planned.values.len() != operands.len() {
            planner.discard(&before);
            planner.correlated.borrow_mut().push(query.clone());
            return Ok(None);
        }
        let (mut relation, source) = planner.query_relation(String::new(), planned, &[])?;
        relation.id = space.next_relation();
        let block = BlockScope::sharing_rows(space, vec![relation], Some(self.view));
        let column = |number| Ok(block.column(0, ColumnNumber(number as u16))?.expression);
        let values = (0..operands.len()).map(column).collect::<Result<Vec<Expression>>>()?;
        let mut conditions = Vec::new();
        let form = self.add_equality(form, operands, values, &mut conditions)?;
        Ok(Some(SemiJoin { block, sources: vec![source], node: JoinNode::Relation(0), conditions, form }))
    }

    /// Adds the equality of operands and the values of a subquery to the conditions of a semijoin. Returns
    /// its form: NOT IN is a plain antijoin if no value can be NULL. Otherwise the equality is the last
    /// condition.
    fn add_equality(
        &self,
        form: JoinForm,
        operands: &[&ast::Expression],
        values: Vec<Expression>,
        conditions: &mut Vec<Expression>,
    ) -> Result<JoinForm> {
        let mut binder = self.planner.binder(self.view);
        let mut equalities = Vec::with_capacity(values.len());
        let mut is_nullable = false;
        for (operand, value) in operands.iter().zip(values) {
            let operand = binder.bind_in(Clause::Where, operand)?;
            is_nullable |= operand.result.nullable || value.result.nullable;
            equalities.push(Expression::comparison(CompareOperator::Equal, operand, value)?);
        }
        self.planner.note(&binder);
        if form == JoinForm::NullAwareAnti && is_nullable {
            conditions.push(Expression::and(equalities));
            return Ok(form);
        }
        conditions.extend(equalities);
        Ok(if form == JoinForm::NullAwareAnti { JoinForm::Anti } else { form })
    }

    fn plan(&self, form: SubqueryForm<'_>) -> Result<(ApplyPlan, ResultType)> {
        let space = self.view.block.space;
        let query = match &form {
            SubqueryForm::Value(query)
            | SubqueryForm::Exists(query)
            | SubqueryForm::Quantified(_, _, _, query)
            | SubqueryForm::Row(_, _, query) => *query,
        };
        let before = self.planner.planned_so_far();
        let block = self.planner.inside(|| self.planner.block(query, Some(self.view), self.tables, false))?;
        let operand_count = match &form {
            SubqueryForm::Value(_) => 1,
            SubqueryForm::Exists(_) => block.values.len(),
            SubqueryForm::Quantified(_, _, operands, _) | SubqueryForm::Row(_, operands, _) => operands.len(),
        };
        if block.values.len() != operand_count {
            return Err(message::operand_columns(operand_count));
        }
        let grouped = match block.outer.is_empty() {
            true => None,
            false => self.planner.grouped_subquery(&form, (self.view, self.tables), (&before, &block))?,
        };
        let (form, result) = match form {
            SubqueryForm::Value(_) => (ApplyForm::Value, block.values[0].result.with_nullable(true)),
            SubqueryForm::Exists(_) => (ApplyForm::Exists, ResultType::boolean()),
            SubqueryForm::Quantified(operator, _, operands, _)
                if operands.len() > 1 && !ApplyForm::is_equality(operator) =>
            {
                return Err(message::operand_columns(1));
            }
            SubqueryForm::Quantified(operator, all, operands, _) => {
                let is_in = (operator, all) == (CompareOperator::Equal, false);
                let is_not_in = (operator, all) == (CompareOperator::NotEqual, true);
                // An operand that changes the session is evaluated where it always was.
                let has_keys = (is_in || is_not_in) && !operands.iter().any(Expression::is_stateful);
                let compared = if has_keys { operands.clone() } else { Vec::new() };
                let (condition, slots) = self.comparison(operator, operands, &block.values)?;
                let keys = keys_of_rows(compared, &block.values, &slots)?;
                let result = ResultType::boolean().with_nullable(true);
                (ApplyForm::Quantified { all, condition, slots, keys }, result)
            }
            SubqueryForm::Row(operator, operands, _) => {
                let (condition, slots) = self.comparison(operator, operands, &block.values)?;
                (ApplyForm::Row { condition, slots }, ResultType::boolean().with_nullable(true))
            }
        };
        let slot = space.computed(result, "")?.as_column().map_or(0, |column| column.0);
        let ignores = self.planner.environment.ignores;
        Ok((ApplyPlan { block: Arc::new(block), form, slot, grouped, ignores }, result))
    }

    /// The comparison of operands with values of the subquery's rows, which get slots.
    fn comparison(
        &self,
        operator: CompareOperator,
        operands: Vec<Expression>,
        values: &[Expression],
    ) -> Result<(Expression, Vec<u16>)> {
        let mut slots = Vec::new();
        let mut compared = Vec::new();
        let each = match operator {
            CompareOperator::NotEqual if operands.len() > 1 => CompareOperator::Equal,
            operator => operator,
        };
        if operands.len() > 1 && !ApplyForm::is_equality(operator) {
            return self.ordering(operator, operands, values);
        }
        for (operand, value) in operands.into_iter().zip(values) {
            let slot = self.view.block.space.computed(value.result, "")?;
            slots.extend(slot.as_column().map(|column| column.0));
            compared.push(Expression::comparison(each, operand, slot)?);
        }
        let condition = Expression::and(compared);
        Ok((if each == operator { condition } else { Expression::logical_not(condition) }, slots))
    }
}

impl BlockSubqueries<'_> {
    /// The order of rows: that of the first members that differ.
    fn ordering(
        &self,
        operator: CompareOperator,
        operands: Vec<Expression>,
        values: &[Expression],
    ) -> Result<(Expression, Vec<u16>)> {
        let strict = match operator {
            CompareOperator::LessOrEqual => CompareOperator::Less,
            CompareOperator::GreaterOrEqual => CompareOperator::Greater,
            strict => strict,
        };
        let mut slots = Vec::with_capacity(values.len());
        for value in values {
            slots.push(self.view.block.space.computed(value.result, "")?);
        }
        let numbers = slots.iter().filter_map(|slot| slot.as_column()).map(|column| column.0).collect();
        let mut ordered: Option<Expression> = None;
        for (operand, slot) in operands.into_iter().zip(slots).rev() {
            ordered = Some(match ordered {
                None => Expression::comparison(operator, operand, slot)?,
                Some(rest) => {
                    let differs = Expression::comparison(strict, operand.clone(), slot.clone())?;
                    let equal = Expression::comparison(CompareOperator::Equal, operand, slot)?;
                    Expression::or(vec![differs, Expression::and(vec![equal, rest])])
                }
            });
        }
        Ok((ordered.unwrap_or_else(Expression::null), numbers))
    }
}

impl Subqueries for BlockSubqueries<'_> {
    fn bind_subquery(&self, form: SubqueryForm<'_>, is_in_aggregate: bool) -> Result<Expression> {
        let (apply, result) = self.plan(form)?;
        let slot = junctor_model::id::ColumnNumber(apply.slot);
        let place = if is_in_aggregate { &self.inner } else { &self.applies };
        place.borrow_mut().push(apply);
        Ok(Expression::column_of_type(slot, result, ""))
    }
}

impl ApplyPlan {
    /// The relations of the block that the subquery or the comparison with it reads.
    pub(super) fn relations(&self, space: &SlotSpace) -> Vec<u16> {
        let mut relations = Vec::new();
        for value in self.values() {
            value.visit(&mut |inner| {
                let owner = inner.as_column().and_then(|slot| space.owner(slot));
                relations.extend(owner.and_then(|owner| match owner {
                    SlotOwner::Column(relation, _) | SlotOwner::Instant(relation, _) => Some(relation),
                    _ => None,
                }));
            });
        }
        relations
    }

    /// The values of the block that the subquery or the comparison with it reads.
    pub(super) fn values(&self) -> impl Iterator<Item = &Expression> {
        let of_form = match &self.form {
            ApplyForm::Quantified { condition, .. } | ApplyForm::Row { condition, .. } => Some(condition),
            ApplyForm::Value | ApplyForm::Exists => None,
        };
        self.block.outer.iter().map(|(_, value)| value).chain(of_form)
    }

    /// Whether the subquery or the comparison with it reads the value of a window function.
    pub(super) fn reads(&self, windows: &[WindowFunction]) -> bool {
        self.values().any(|value| reads_window(value, windows))
    }
}

/// The keys of operands of IN and of the rows of its query; none if equal values may have different keys.
fn keys_of_rows(operands: Vec<Expression>, values: &[Expression], slots: &[u16]) -> Result<Vec<JoinKey>> {
    let mut keys = Vec::with_capacity(operands.len());
    for ((operand, value), slot) in operands.into_iter().zip(values).zip(slots) {
        let slot = Expression::column_of_type(ColumnNumber(*slot), value.result, "");
        let equality = Expression::comparison(CompareOperator::Equal, operand.clone(), slot.clone())?;
        match key_of_equality(&equality, operand, slot) {
            Some(key) => keys.push(key),
            None => return Ok(Vec::new()),
        }
    }
    Ok(keys)
}

/// The rows of `node` with the value of a subquery.
pub(super) fn applied(node: PlanNode, apply: ApplyPlan) -> PlanNode {
    let node = if apply.block.is_stateful { PlanNode::Single(Box::new(node)) } else { node };
    PlanNode::Apply(Box::new(node), Arc::new(apply))
}

/// A conjunct as a semijoin: its form, its query, and the operand of IN.
fn semijoin_of(conjunct: &ast::Expression) -> Option<(JoinForm, &Select, Option<&ast::Expression>)> {
    let (is_negated, positive) = match conjunct {
        ast::Expression::Unary { operator: ast::UnaryOperator::Not, operand } => (true, &**operand),
        conjunct => (false, conjunct),
    };
    match positive {
        ast::Expression::Exists(query) => Some((if is_negated { JoinForm::Anti } else { JoinForm::Semi }, query, None)),
        ast::Expression::Quantified { operator, all, operand, query } => {
            let is_in = match (operator, all) {
                (ast::BinaryOperator::Equal, false) => true,
                (ast::BinaryOperator::NotEqual, true) => false,
                _ => return None,
            };
            let form = if is_in == is_negated { JoinForm::NullAwareAnti } else { JoinForm::Semi };
            Some((form, query, Some(operand)))
        }
        _ => None,
    }
}

/// The values of the select list; `None` if it has an asterisk.
fn listed(query: &Select) -> Option<Vec<&ast::Expression>> {
    let items = query.projection.iter();
    let values = items.map(|item| match item {
        SelectItem::Expression { expression, .. } => Some(expression),
        SelectItem::All(_) => None,
    });
    values.collect()
}

/// Whether the rows of a query are those of its FROM and WHERE, and WHERE has no subqueries.
fn is_plain(query: &Select) -> bool {
    let inner = Select {
        from: None,
        group_by: Vec::new(),
        projection: query.projection.clone(),
        filter: query.filter.clone(),
        order_by: Vec::new(),
        ..Select::default()
    };
    let has_aggregate = query.projection.iter().any(|item| match item {
        SelectItem::Expression { expression, .. } => expression.has_aggregate(),
        SelectItem::All(_) => false,
    });
    query.with.is_empty()
        && query.locks.is_empty()
        && query.group_by.is_empty()
        && query.windows.is_empty()
        && query.having.is_none()
        && query.limit.is_none()
        && !has_aggregate
        && !inner.needs_tree()
}
