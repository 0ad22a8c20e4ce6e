//! ORDER BY: its sort keys, and whether an index can provide the order.

use junctor_expression::Expression;
use junctor_expression::Node;
use junctor_model::error::{ErrorCode, Result};
use junctor_signals::program::{Projection, SortKey};

use super::access::OrderColumn;
use crate::bind::{Binder, Clause, SelectList, item_named, message};
use crate::parse::expression as ast;
use crate::parse::statement::{OrderItem, Select, SelectItem};

/// Binds ORDER BY. A number refers to a select item. A name by itself is first looked up as an alias, then as
/// a column; within an expression it is first a column.
pub(super) fn bind_order<'a>(
    binder: &mut Binder<'a>,
    order_by: &[OrderItem],
    items: &'a [SelectItem],
    projection: &Projection,
) -> Result<Vec<SortKey>> {
    if order_by.is_empty() {
        return Ok(Vec::new());
    }
    binder.named = Some((items, projection.clone()));
    let mut keys = Vec::with_capacity(order_by.len());
    for item in order_by {
        let value = match &item.expression {
            ast::Expression::Literal(ast::Literal::Integer(number)) => {
                let position = usize::try_from(*number).ok().and_then(|number| number.checked_sub(1));
                let value = position.and_then(|position| projection.values.get(position));
                value.cloned().ok_or_else(|| message::unknown_column(&number.to_string(), Clause::Order.name()))?
            }
            ast::Expression::Column(reference) if reference.table.is_none() => {
                match item_named(items, projection, &reference.name, Clause::Order)? {
                    Some(value) => value.clone(),
                    None => binder.bind_in(Clause::Order, &item.expression)?,
                }
            }
            expression => binder.bind_in(Clause::Order, expression)?,
        };
        // A key that is a constant or a parameter of the statement does not affect the order. Parameters with
        // higher ordinals are columns and aggregates.
        let is_fixed = match value.node {
            Node::Constant(_) => true,
            Node::Parameter(ordinal) => usize::from(ordinal) < binder.environment.parameters.len(),
            _ => false,
        };
        if !is_fixed {
            let is_in_result = value.as_column().is_none() && projection.values.contains(&value);
            keys.push(SortKey { value, descending: item.descending, is_in_result });
        }
    }
    binder.named = None;
    Ok(keys)
}

/// Binds ORDER BY of a query. The single row of aggregates needs no order, but the names must exist: 1054 and
/// 1052 are its only errors then.
pub(super) fn bind_order_of<'a>(
    binder: &mut Binder<'a>,
    select: &'a Select,
    list: &SelectList,
) -> Result<Vec<SortKey>> {
    let sort = bind_order(binder, &select.order_by, &select.projection, &list.projection);
    if list.aggregates.is_empty() {
        return sort;
    }
    binder.named = None;
    match sort {
        Err(error) if matches!(error.code, ErrorCode::UnknownColumn | ErrorCode::AmbiguousColumn) => Err(error),
        _ => Ok(Vec::new()),
    }
}

/// Checks that every sort key of a DISTINCT query is in the select list. Error: 3065.
pub(super) fn check_distinct_order(sort: &[SortKey], projection: &Projection) -> Result<()> {
    let is_listed =
        |value: &Expression| projection.values.iter().any(|item| item == value || padded(item) == Some(value));
    for (position, key) in sort.iter().enumerate() {
        if is_listed(&key.value) {
            continue;
        }
        let mut missing = None;
        key.value.visit(&mut |inner| {
            if let Node::Column { name, .. } = &inner.node
                && !is_listed(inner)
            {
                missing.get_or_insert_with(|| name.replace('`', ""));
            }
        });
        if let Some(column) = missing {
            return Err(message::not_in_distinct_list(position + 1, &column));
        }
    }
    Ok(())
}

/// The column whose value PAD_CHAR_TO_FULL_LENGTH pads in the select list.
fn padded(item: &Expression) -> Option<&Expression> {
    match &item.node {
        Node::Call(function, arguments) if function.name == "PAD CHAR" => arguments.first(),
        _ => None,
    }
}

/// The columns of ORDER BY; `None` if there is none, or a key is not a column.
pub(super) fn plain_order(sort: &[SortKey]) -> Option<Vec<OrderColumn>> {
    let column = |key: &SortKey| match key.value.node {
        Node::Column { index, .. } => Some(OrderColumn { column: index, descending: key.descending }),
        _ => None,
    };
    sort.iter().map(column).collect::<Option<Vec<_>>>().filter(|order| !order.is_empty())
}
