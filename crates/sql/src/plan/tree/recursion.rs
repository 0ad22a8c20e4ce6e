//! WITH RECURSIVE.

use std::sync::Arc;

use junctor_expression::{Expression, ResultType};
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::row_encoding::{ResultColumn, column_flag};

use super::block::CommonTables;
use super::set::{numbers, slots_of};
use super::{BlockPlan, PlanNode, TreePlanner};
use crate::bind::block::{BlockScope, BlockView, SlotSpace};
use crate::bind::{Clause, message};
use crate::parse::query::{DerivedSource, DerivedTable, SetOperand, SetOperator};
use crate::parse::reference::References;
use crate::parse::statement::{CommonTable, Select, SelectItem};

/// A recursive query.
#[derive(Debug)]
pub struct RecursionPlan {
    /// The rows of the queries that do not refer to the table.
    pub seed: PlanNode,
    /// The other queries, whose rows have the types of the seed.
    pub members: Vec<Arc<BlockPlan>>,
    /// The values of a row.
    pub values: Vec<Expression>,
    /// The names of the columns, for messages.
    pub names: Vec<Box<str>>,
    /// UNION DISTINCT: rows that were there before are dropped.
    pub distinct: bool,
    /// Whether a text that is too long is an error.
    pub is_strict: bool,
    /// `cte_max_recursion_depth`.
    pub depth: Expression,
}

/// The table of WITH RECURSIVE inside its recursive queries: the rows of the last round.
pub(super) struct WorkingTable<'t> {
    pub table: &'t CommonTable,
    pub columns: Vec<ResultColumn>,
    pub types: Vec<ResultType>,
    /// The slots of the rows of the recursion.
    pub slots: Vec<u16>,
}

/// A table of WITH RECURSIVE whose queries are planned next.
#[derive(Clone, Copy)]
pub(super) struct Defining<'t> {
    table: &'t CommonTable,
    union: &'t DerivedTable,
}

impl<'t> Defining<'t> {
    /// The definition of a table that refers to itself. Error: 3573 without UNION.
    pub fn of(table: &'t CommonTable) -> Result<Defining<'t>> {
        match &table.query.from {
            Some(crate::parse::query::FromItem::Derived(union))
                if union.alias.is_none() && matches!(union.source, DerivedSource::Set { .. }) =>
            {
                Ok(Defining { table, union })
            }
            _ => Err(of_table(ErrorCode::RecursionWithoutSeed, table, "should contain a UNION")),
        }
    }

    /// The table, if these are its queries.
    pub fn table_of(&self, derived: &DerivedTable) -> Option<&'t CommonTable> {
        std::ptr::eq(self.union, derived).then_some(self.table)
    }
}

impl TreePlanner<'_> {
    /// Plans the queries of a recursive table. Errors: 3574 to 3577, 1222, 1353.
    pub(super) fn recursion(
        &self,
        table: &CommonTable,
        (first, rest): (&Select, &[SetOperand]),
        tables: &CommonTables<'_>,
        outer: &BlockView<'_>,
    ) -> Result<BlockPlan> {
        let refers = |query: &Select| query.references(&table.name).any();
        let seeds = rest.iter().take_while(|operand| !refers(&operand.query)).count();
        let members = &rest[seeds..];
        let is_ordered = !refers(first) && !members.is_empty() && members.iter().all(|operand| refers(&operand.query));
        if !is_ordered {
            let text = "should have one or more non-recursive query blocks followed by one or more recursive ones";
            return Err(of_table(ErrorCode::RecursionWithoutOrder, table, text));
        }
        let operators = || members.iter().map(|operand| operand.operator);
        if operators().any(|operator| operator != SetOperator::Union) {
            return Err(Error::not_supported("INTERSECT and EXCEPT in a recursive Common Table Expression"));
        }
        let distinct = !members[0].all;
        if members.iter().any(|operand| operand.all == distinct) {
            let text =
                "recursive query blocks with UNION DISTINCT then UNION ALL, in recursive Common Table Expression";
            return Err(Error::not_supported(text));
        }
        members.iter().try_for_each(|operand| check_member(&operand.query, table))?;

        let space = SlotSpace::new(self.environment.parameters.len());
        let scope = BlockScope::new(&space, Vec::new(), Some(outer));
        let view = BlockView { block: &scope, names: Vec::new(), relations: Vec::new() };
        let seed = match seeds {
            0 => self.block(first, Some(&view), tables, false)?,
            _ => self.set((first, &rest[..seeds]), tables, &view, &[])?,
        };
        if !table.columns.is_empty() && table.columns.len() != seed.values.len() {
            return Err(message::alias_column_count());
        }
        let types: Vec<ResultType> = seed.values.iter().map(|value| value.result.with_nullable(true)).collect();
        let described = seed.columns.iter().enumerate().map(|(place, column)| {
            let mut column = column.clone();
            column.flags &= !column_flag::NOT_NULL;
            if let Some(name) = table.columns.get(place) {
                column.name = name.as_str().into();
            }
            column
        });
        let columns: Vec<ResultColumn> = described.collect();
        let values = slots_of(&space, &types)?;
        let slots = numbers(&values);
        let working = WorkingTable { table, columns: columns.clone(), types: types.clone(), slots: slots.clone() };
        let inside = CommonTables { working: Some(&working), ..CommonTables::within(tables) };
        let mut planned = Vec::with_capacity(members.len());
        for operand in members {
            let mut block = self.block(&operand.query, Some(&view), &inside, false)?;
            if block.values.len() != types.len() {
                let text = "The used SELECT statements have a different number of columns";
                return Err(Error::new(ErrorCode::SelectColumnCount, text));
            }
            let typed = block.values.drain(..).zip(&types).map(|(value, result)| value.converted(*result));
            block.values = typed.collect();
            planned.push(Arc::new(block));
        }
        if seed.is_stateful || planned.iter().any(|block| block.is_stateful) {
            return Err(Error::not_supported("a user variable that the statement assigns, in a recursive query"));
        }
        let mut binder = self.binder(&view);
        let depth = match &table.depth {
            Some(depth) => binder.bind_in(Clause::FieldList, depth)?,
            None => Expression::null(),
        };
        self.note(&binder);
        let plan = RecursionPlan {
            seed: PlanNode::Project(Arc::new(seed), slots.into_iter().enumerate().collect()),
            members: planned,
            values: values.clone(),
            names: columns.iter().map(|column| column.name.clone()).collect(),
            distinct,
            is_strict: !self.environment.modes.is_lenient,
            depth,
        };
        Ok(self.rows(PlanNode::Recursion(Arc::new(plan)), &space, values, columns))
    }
}

/// Checks the form of a recursive query. Errors: 1235, 3575, 3577.
fn check_member(query: &Select, table: &CommonTable) -> Result<()> {
    let References { direct, nested } = query.references(&table.name);
    if (direct, nested) != (1, 0) {
        let text = format!(
            "In recursive query block of Recursive Common Table Expression '{}', the recursive table must be \
             referenced only once, and not in any subquery",
            table.name
        );
        return Err(Error::new(ErrorCode::RecursionWithReferences, text));
    }
    let in_items = query.projection.iter().any(|item| match item {
        SelectItem::Expression { expression, .. } => expression.has_aggregate() || expression.has_window(),
        SelectItem::All(_) => false,
    });
    let in_having = query.having.as_ref().is_some_and(|having| having.has_aggregate());
    if in_items || in_having || !query.group_by.is_empty() || !query.windows.is_empty() {
        let text = "can contain neither aggregation nor window functions in recursive query block";
        return Err(of_table(ErrorCode::RecursionWithAggregates, table, text));
    }
    if query.distinct || !query.order_by.is_empty() || query.limit.is_some() {
        let text = "ORDER BY / LIMIT / SELECT DISTINCT in recursive query block of Common Table Expression";
        return Err(Error::not_supported(text));
    }
    Ok(())
}

/// Error 3576.
pub(super) fn in_outer_join(table: &CommonTable) -> Box<Error> {
    let text = format!(
        "In recursive query block of Recursive Common Table Expression '{}', the recursive table must neither be in the \
         right argument of a LEFT JOIN, nor be forced to be non-first with join order hints",
        table.name
    );
    Error::new(ErrorCode::RecursionInOuterJoin, text)
}

fn of_table(code: ErrorCode, table: &CommonTable, text: &str) -> Box<Error> {
    Error::new(code, format!("Recursive Common Table Expression '{}' {text}", table.name))
}
