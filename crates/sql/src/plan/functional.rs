//! Conditions on the expressions of functional indexes.

use std::sync::Arc;

use junctor_expression::{Coercibility, Expression, Kind, Node};
use junctor_model::collation::CollationId;
use junctor_model::error::Result;
use junctor_model::id::ColumnNumber;
use junctor_model::schema::TableLayout;

use crate::bind::{Environment, StoredExpressions};

/// A filter whose expressions with an index are replaced by the hidden columns that have their values.
pub(super) struct WithKeyExpressions {
    pub filter: Option<Expression>,
    /// Whether an expression has a parameter where that of an index has a constant. A plan for the literals
    /// of the statement could use the index.
    pub wants_literals: bool,
}

/// Replaces the expressions of functional indexes in a filter. Errors: those of binding.
pub(super) fn with_key_expressions(
    filter: Option<Expression>,
    environment: &Environment<'_>,
    layout: &Arc<TableLayout>,
) -> Result<WithKeyExpressions> {
    let mut replaced = WithKeyExpressions { filter, wants_literals: false };
    let Some(filter) = &mut replaced.filter else { return Ok(replaced) };
    for (position, column) in layout.definition.columns.iter().enumerate() {
        let Some(text) = column.key_expression().filter(|_| column.key_list().is_none()) else { continue };
        let mut wanted = StoredExpressions::new(environment, layout).bind(text)?;
        forget_collations(&mut wanted);
        let hidden = Expression::column(ColumnNumber(position as u16), column, "");
        // The settings of this session may give the expression another type than those of the definition.
        let has_digits = wanted.result.kind == Kind::Decimal || wanted.result.kind.temporal().is_some();
        if wanted.result.kind != hidden.result.kind || has_digits && wanted.result.decimals != hidden.result.decimals {
            continue;
        }
        replaced.wants_literals |= replace(filter, &wanted, &hidden);
    }
    Ok(replaced)
}

/// Replaces `wanted` in an expression. Returns whether another expression equals it but for parameters.
fn replace(inside: &mut Expression, wanted: &Expression, by: &Expression) -> bool {
    if std::mem::discriminant(&inside.node) == std::mem::discriminant(&wanted.node) {
        let mut plain = inside.clone();
        forget_collations(&mut plain);
        if plain.node == wanted.node {
            *inside = by.clone();
            return false;
        }
    }
    let mut parameters = 0;
    let mut differs = !is_like(inside, wanted, &mut parameters) || parameters == 0;
    inside.for_each_operand_mut(&mut |operand| differs &= !replace(operand, wanted, by));
    !differs
}

/// Removes the names of columns, which a statement may write behind an alias, and makes the collations of
/// literals equal where they have no effect: the literals of a session may have another collation than those
/// of the definition. Where a node compares, its domain differs, too. A function takes the collation of a
/// literal only if no other argument is a string.
pub(super) fn forget_collations(expression: &mut Expression) {
    let is_string = |argument: &Expression| argument.result.is_text() && !matches!(argument.node, Node::Constant(_));
    if let Node::Column { name, .. } = &mut expression.node {
        *name = Box::default();
    }
    let has_effect = match &expression.node {
        Node::Call(function, _) if function.name.starts_with("JSON_") => {
            (expression.result.collation, expression.result.coercibility) =
                (CollationId::BINARY, Coercibility::Implicit);
            false
        }
        Node::Call(_, arguments) => !arguments.iter().any(is_string),
        _ => false,
    };
    expression.for_each_operand_mut(&mut |operand| match &operand.node {
        Node::Constant(value) if !has_effect => {
            operand.result = Expression::constant(value.clone(), CollationId::BINARY).result;
        }
        _ => forget_collations(operand),
    });
}

/// Whether two expressions are equal if each parameter of the first one has the value of the constant in its
/// place.
pub(super) fn is_like(one: &Expression, other: &Expression, parameters: &mut u32) -> bool {
    match (&one.node, &other.node) {
        (Node::Parameter(_), Node::Constant(_)) => {
            *parameters += 1;
            return true;
        }
        (Node::Call(function, _), Node::Call(known, _)) if function.name != known.name => return false,
        (Node::Column { index, .. }, Node::Column { index: known, .. }) => return index == known,
        (Node::Column { .. } | Node::Constant(_) | Node::Parameter(_), _) => return one.node == other.node,
        (node, known) if std::mem::discriminant(node) != std::mem::discriminant(known) => return false,
        _ => {}
    }
    let (mut left, mut right) = (Vec::new(), Vec::new());
    one.for_each_operand(&mut |operand| left.push(operand));
    other.for_each_operand(&mut |operand| right.push(operand));
    left.len() == right.len() && left.iter().zip(&right).all(|(left, right)| is_like(left, right, parameters))
}
