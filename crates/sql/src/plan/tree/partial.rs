//! Groups that the partitions make of a table's rows before these enter the tree.

use std::sync::Arc;

use junctor_expression::aggregate::AggregateKind;
use junctor_expression::{Coercibility, Expression, Node, ResultType};
use junctor_model::collation::CollationId;
use junctor_model::error::Result;
use junctor_signals::program::{Aggregate, Output, Projection, ReadProgram};

use super::leaf::Localised;
use super::{AggregatePlan, PlanNode, TreePlanner};
use crate::bind::UnstoredColumns;
use crate::bind::block::{SlotOwner, SlotSpace};
use crate::bind::group_function::{GroupFunction, GroupFunctionKind};
use crate::plan::select::{SelectPlan, output_reads_parameter};
use crate::plan::statement::QueryPlan;

impl TreePlanner<'_> {
    /// Lets the partitions of a table group its rows, if the rows of the node are those of a table and all
    /// aggregates can be merged. `is_read` tells whether a slot is read after the groups.
    pub(super) fn group_in_partitions(
        &self,
        node: &PlanNode,
        aggregate: &mut AggregatePlan,
        space: &SlotSpace,
        is_read: &dyn Fn(u16) -> bool,
    ) -> Result<()> {
        let PlanNode::Scan(leaf) = node else { return Ok(()) };
        let mut leaves = self.leaves.borrow_mut();
        let leaf = &mut leaves[*leaf];
        let QueryPlan::Select(plan) = &mut leaf.query else { return Ok(()) };
        let Some(plan) = Arc::get_mut(plan) else { return Ok(()) };
        let keys = || aggregate.keys.iter().map(|(key, _)| key);
        let is_movable = !aggregate.rollup
            && plan.locking_program.is_none()
            && aggregate.functions.iter().all(is_mergeable)
            && keys().chain(aggregate.functions.iter().flat_map(|one| &one.arguments)).all(|one| is_local(one, space));
        if !is_movable {
            return Ok(());
        }
        let table = Arc::clone(&plan.table);
        let mut local = Localised {
            space,
            layout: &table,
            of: None,
            first_parameter: self.environment.parameters.len(),
            parameters: std::mem::take(&mut leaf.parameters),
        };
        let mut local_keys: Vec<Expression> = keys().map(|key| local.localise(key)).collect();
        let aggregates = aggregate.functions.iter().map(|function| Aggregate {
            kind: kind_of(function),
            argument: function.arguments.first().map(|argument| local.localise(argument)),
            distinct: false,
        });
        let mut aggregates: Vec<Aggregate> = aggregates.collect();
        leaf.parameters = local.parameters;
        let unstored = UnstoredColumns::of(self.environment, &table)?;
        unstored.put_into_all(&mut local_keys)?;
        unstored.put_into_all(aggregates.iter_mut().filter_map(|aggregate| aggregate.argument.as_mut()))?;
        let Output::Packets(projection) = plan.program.output.clone() else { return Ok(()) };
        let (mut kept, mut slots) = (Projection::new(Vec::new(), Vec::new()), Vec::new());
        for ((value, column), slot) in projection.values.into_iter().zip(projection.columns).zip(&leaf.slots) {
            if slot.is_some_and(is_read) {
                kept.values.push(value);
                kept.columns.push(column);
                slots.push(*slot);
            }
        }
        let mut partials = Vec::with_capacity(aggregates.len());
        for _ in &aggregates {
            let bytes = ResultType::string(CollationId::BINARY, Coercibility::Implicit, u32::MAX);
            let slot = space.computed(bytes, "")?.as_column().map_or(0, |column| column.0);
            partials.push(slot);
            slots.push(Some(slot));
        }
        leaf.slots = slots;
        aggregate.partials = Some(partials);
        set_output(plan, Output::Groups { projection: kept, keys: local_keys, aggregates });
        Ok(())
    }
}

fn set_output(plan: &mut SelectPlan, output: Output) {
    let mut program = ReadProgram::clone(&plan.program);
    program.reads_parameters |= output_reads_parameter(&output);
    program.output = output;
    plan.program = Arc::new(program);
}

fn kind_of(function: &GroupFunction) -> AggregateKind {
    match function.kind {
        GroupFunctionKind::Plain(kind) => kind,
        _ => AggregateKind::CountRows,
    }
}

/// Whether partial states of the aggregate can be merged.
fn is_mergeable(function: &GroupFunction) -> bool {
    let has_states = match function.kind {
        GroupFunctionKind::Plain(kind) => kind != AggregateKind::CountDistinct,
        _ => false,
    };
    has_states && !function.distinct && function.arguments.len() <= 1 && function.order.is_empty()
}

/// Whether a partition can evaluate a value: it reads no computed values, and is the same at each evaluation.
fn is_local(value: &Expression, space: &SlotSpace) -> bool {
    let mut is_local = true;
    value.visit(&mut |inner| {
        is_local &= match &inner.node {
            Node::Column { index, .. } => !matches!(space.owner(*index), Some(SlotOwner::Computed) | None),
            Node::Call(function, _) => function.is_immutable(),
            Node::InParameters { .. } | Node::MissingDefault { .. } => false,
            _ => true,
        };
    });
    is_local
}
