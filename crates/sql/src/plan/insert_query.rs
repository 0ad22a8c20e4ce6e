//! Subqueries in VALUES, SET and ON DUPLICATE KEY UPDATE of INSERT and REPLACE, and values of VALUES and SET
//! that assign user variables or wait.
//!
//! Such a statement becomes an INSERT of the rows of a query. For VALUES the query has one row, with the
//! values of all subqueries, stateful values and parameters; the rows of VALUES are made from it. The
//! subqueries of ON DUPLICATE KEY UPDATE are further columns of the statement's query.

use junctor_model::error::{Error, Result};

use super::modify::TargetCheck;
use crate::access::TableAccess;
use crate::bind::Environment;
use crate::parse::expression::{Expression, Literal, ParameterNumber};
use crate::parse::statement::{Insert, InsertSource, Select, SelectItem};

/// An INSERT whose values no longer contain subqueries.
pub(super) struct Extracted {
    /// The statement. Each subquery and stateful value of VALUES is the parameter with the number of its
    /// column in `values`.
    pub insert: Insert,
    /// The query of the values; `None` if VALUES has nothing for it.
    pub values: Option<Select>,
    /// The subqueries of ON DUPLICATE KEY UPDATE. In the statement they are parameters from
    /// `first_of_update` on.
    pub of_update: Vec<SelectItem>,
}

/// Takes the subqueries and the stateful values out of the values of an INSERT. `first_of_update` is the
/// number of the parameter that stands for the first subquery of ON DUPLICATE KEY UPDATE. Returns `None` if
/// there are none.
///
/// # Errors
/// 1093 for a subquery of the target, unless the only row of VALUES reads the table by another alias; 1235
/// for a subquery and a stateful value that read the row.
pub(super) fn extract(
    environment: &Environment<'_>,
    insert: &Insert,
    first_of_update: usize,
) -> Result<Option<Extracted>> {
    let in_values = match &insert.source {
        InsertSource::Rows(rows) => rows.iter().flatten().any(|value| value.needs_tree() || value.is_stateful()),
        _ => false,
    };
    let in_update = insert.on_duplicate.iter().any(|assignment| assignment.value.needs_tree());
    if !in_values && !in_update {
        return Ok(None);
    }
    let target = environment.table(&insert.table, TableAccess::Insert)?.definition.id;
    // Planning notes what the subqueries read.
    let unnoted = Environment { access: None, ..*environment };
    // MySQL evaluates the values of a row after it has written the rows before it. Here all are evaluated
    // before the first row is written, so only a single row may read its table.
    let is_single = matches!(&insert.source, InsertSource::Rows(rows) if rows.len() == 1);
    let name = is_single.then_some(insert.table.name.as_str());
    let check = TargetCheck { environment: &unnoted, targets: &[target], name, common: &[] };
    let check_of_update = TargetCheck { name: None, ..check };
    let mut insert = insert.clone();
    let mut values = None;
    if let InsertSource::Rows(rows) = &mut insert.source {
        check.expressions(rows.iter().flatten())?;
        let mut items = Vec::new();
        for value in rows.iter_mut().flatten() {
            match value.is_stateful() {
                true => take_whole(value, &mut items)?,
                false => take(value, true, 0, &mut items)?,
            }
        }
        if items.is_empty() {
            items.push(item(Expression::Literal(Literal::Null)));
        }
        values = Some(Select { projection: items, ..Select::default() });
    }
    check_of_update.expressions(insert.on_duplicate.iter().map(|assignment| &assignment.value))?;
    let mut of_update = Vec::new();
    for assignment in &mut insert.on_duplicate {
        take(&mut assignment.value, false, first_of_update, &mut of_update)?;
    }
    Ok(Some(Extracted { insert, values, of_update }))
}

/// Moves a stateful value to `items`. It is evaluated once, as a part of the query. Error: 1235 if it reads
/// the row.
fn take_whole(value: &mut Expression, items: &mut Vec<SelectItem>) -> Result<()> {
    let mut reads_row = false;
    value.visit(&mut |inner| {
        reads_row |= matches!(inner, Expression::Column(_) | Expression::Default(_) | Expression::InsertedValue(_));
    });
    if reads_row {
        return Err(Error::not_supported("a column in a value of INSERT that assigns a user variable or waits"));
    }
    let number = ParameterNumber(items.len() as u32);
    items.push(item(std::mem::replace(value, Expression::Parameter(number))));
    Ok(())
}

/// Moves the subqueries of a value to `items`, and the parameters too if `takes_parameters`. Error: 1235.
fn take(value: &mut Expression, takes_parameters: bool, first: usize, items: &mut Vec<SelectItem>) -> Result<()> {
    let mut refused = None;
    value.replace(&mut |inner| {
        let (is_taken, operand) = match inner {
            Expression::Subquery(_) | Expression::Exists(_) => (true, None),
            Expression::Quantified { operand, .. } => (true, Some(operand)),
            Expression::Parameter(_) => (takes_parameters, None),
            _ => (false, None),
        };
        if !is_taken {
            return false;
        }
        if let Some(operand) = operand {
            operand.visit(&mut |part| {
                if matches!(part, Expression::Column(_) | Expression::InsertedValue(_)) {
                    refused = Some("a comparison of a column with a subquery in INSERT");
                }
            });
        }
        let mut reads_row = false;
        inner.visit_deep(&mut |part| reads_row |= matches!(part, Expression::InsertedValue(_)));
        if reads_row {
            refused = Some("VALUES() in a subquery");
        }
        let number = ParameterNumber((first + items.len()) as u32);
        let query = std::mem::replace(inner, Expression::Parameter(number));
        items.push(item(query));
        true
    });
    refused.map_or(Ok(()), |what| Err(Error::not_supported(what)))
}

fn item(expression: Expression) -> SelectItem {
    // With an empty alias, no expression of the query can refer to the item.
    SelectItem::Expression { expression, alias: Some(String::new()), text: String::new() }
}
