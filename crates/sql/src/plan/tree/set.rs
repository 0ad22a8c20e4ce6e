//! UNION, INTERSECT, EXCEPT and VALUES.

use std::sync::Arc;

use junctor_expression::{Expression, ResultType};
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::row_encoding::ResultColumn;

use super::block::CommonTables;
use super::pushed::Passage;
use super::{BlockPlan, PlanNode, SetPlan, TreePlanner};
use crate::bind::block::{BlockScope, BlockView, SlotSpace};
use crate::bind::{Clause, message};
use crate::parse::expression as ast;
use crate::parse::query::{SetOperand, SetOperator};
use crate::parse::statement::Select;

impl TreePlanner<'_> {
    /// A set operation of queries, from left to right, whose rows each query tests for the conditions that
    /// are received. Error: 1222 for different numbers of columns.
    pub(super) fn set(
        &self,
        (first, rest): (&Select, &[SetOperand]),
        tables: &CommonTables<'_>,
        outer: &BlockView<'_>,
        received: &[Expression],
    ) -> Result<BlockPlan> {
        let space = SlotSpace::new(self.environment.parameters.len());
        let scope = BlockScope::new(&space, Vec::new(), Some(outer));
        let view = BlockView { block: &scope, names: Vec::new(), relations: Vec::new() };
        let mut blocks = vec![self.query_block(first, (Some(&view), tables), received)?];
        let mut rows = blocks[0].rows;
        for operand in rest {
            let block = self.query_block(&operand.query, (Some(&view), tables), received)?;
            rows += block.rows;
            if block.values.len() != blocks[0].values.len() {
                let message = "The used SELECT statements have a different number of columns";
                return Err(Error::new(ErrorCode::SelectColumnCount, message));
            }
            blocks.push(block);
        }
        let names: Vec<String> = blocks[0].columns.iter().map(|column| column.name.to_string()).collect();
        let mut types = Vec::with_capacity(names.len());
        for place in 0..names.len() {
            let operands: Vec<Expression> = blocks.iter().map(|block| block.values[place].clone()).collect();
            types.push(Expression::common_type(&operands)?);
        }
        let values = slots_of(&space, &types)?;
        let slots: Arc<[(usize, u16)]> = numbers(&values).into_iter().enumerate().collect();
        let compares = rest.iter().any(|operand| (operand.operator, operand.all) != (SetOperator::Union, true));
        let passages = types.iter().enumerate().map(|(place, result)| {
            let own = if compares { Passage::Classes } else { Passage::Open };
            blocks.iter().map(|block| block.passage_as(place, result)).fold(own, Passage::min)
        });
        let passages = passages.collect();
        let is_stateful = blocks.iter().any(|block| block.is_stateful);
        let mut inputs = blocks.into_iter().map(|mut block| {
            let typed = block.values.drain(..).zip(&types).map(|(value, result)| value.converted(*result));
            block.values = typed.collect();
            PlanNode::Project(Arc::new(block), Arc::clone(&slots))
        });
        let mut node = inputs.next().unwrap_or(PlanNode::Nothing);
        for (operand, input) in rest.iter().zip(inputs) {
            let (left, right) = (Box::new(node), Box::new(input));
            node = match (operand.operator, operand.all) {
                (SetOperator::Union, true) => PlanNode::Concat(left, right),
                (SetOperator::Union, false) => {
                    PlanNode::Distinct(Box::new(PlanNode::Concat(left, right)), values.clone().into())
                }
                (operator, all) => {
                    PlanNode::Set(left, right, Arc::new(SetPlan { operator, all, values: values.clone() }))
                }
            };
        }
        let columns = types.iter().zip(&names).map(|(result, name)| result.result_column(name)).collect();
        Ok(BlockPlan { rows, is_stateful, passages, ..self.rows(node, &space, values, columns) })
    }

    /// The rows of VALUES. Error: 1136 for rows of different lengths.
    pub(super) fn values(&self, rows: &[Vec<ast::Expression>], outer: &BlockView<'_>) -> Result<BlockPlan> {
        let space = SlotSpace::new(self.environment.parameters.len());
        let block = BlockScope::new(&space, Vec::new(), Some(outer));
        let view = BlockView { block: &block, names: Vec::new(), relations: Vec::new() };
        let mut binder = self.binder(&view);
        binder.clause = Clause::FieldList;
        let mut bound: Vec<Vec<Expression>> = Vec::with_capacity(rows.len());
        for (place, row) in rows.iter().enumerate() {
            if bound.first().is_some_and(|first| first.len() != row.len()) {
                return Err(message::column_count(place + 1));
            }
            bound.push(binder.bind_all(row)?);
        }
        self.note(&binder);
        drop(binder);
        let width = bound.first().map_or(0, Vec::len);
        let mut types = Vec::with_capacity(width);
        for place in 0..width {
            let operands: Vec<Expression> = bound.iter().map(|row| row[place].clone()).collect();
            types.push(Expression::common_type(&operands)?);
        }
        for row in &mut bound {
            let typed = row.drain(..).zip(&types).map(|(value, result)| value.converted(*result));
            *row = typed.collect();
        }
        let values = slots_of(&space, &types)?;
        let is_stateful = bound.iter().flatten().any(Expression::is_stateful);
        let node = PlanNode::Values(bound.into(), numbers(&values).into());
        let name = |place: usize| format!("column_{place}");
        let columns = types.iter().enumerate().map(|(place, result)| result.result_column(&name(place))).collect();
        Ok(BlockPlan { is_stateful, ..self.rows(node, &space, values, columns) })
    }

    /// A block of these operators that neither changes nor reads the state of the session.
    pub(super) fn rows(
        &self,
        root: PlanNode,
        space: &SlotSpace,
        values: Vec<Expression>,
        columns: Vec<ResultColumn>,
    ) -> BlockPlan {
        let (width, outer) = (space.width(), space.outer_values());
        BlockPlan { root, width, values, columns, outer, rows: 1.0, is_stateful: false, passages: Box::default() }
    }
}

pub(super) fn slots_of(space: &SlotSpace, types: &[ResultType]) -> Result<Vec<Expression>> {
    types.iter().map(|result| space.computed(*result, "")).collect()
}

pub(super) fn numbers(values: &[Expression]) -> Vec<u16> {
    values.iter().map(|value| value.as_column().map_or(0, |column| column.0)).collect()
}
