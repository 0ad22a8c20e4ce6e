//! Conditions that a multi-valued index serves: MEMBER OF, JSON_CONTAINS and JSON_OVERLAPS.

use std::ops::Range;
use std::sync::Arc;

use junctor_expression::{Expression, Kind, Node, Parameters, Scratch, Sought, sought_elements};
use junctor_model::collation::CollationId;
use junctor_model::error::Result;
use junctor_model::id::ColumnNumber;
use junctor_model::json::Json;
use junctor_model::schema::TableLayout;
use junctor_model::value::{Value, ValueRef};

use super::functional::{forget_collations, is_like};
use super::operand::{is_fixed, needs_row, reads_parameter};
use crate::bind::{BoundArray, Environment, StoredExpressions};

/// The function whose value is whether a list has an element.
pub(super) const HAS_ELEMENT: &str = "HAS ELEMENT";
/// Maximum number of elements of a condition that are looked up. Each row that is found by one of them is
/// compared with the others, so that it is not found again.
const ELEMENTS_MAX: usize = 1000;

/// A filter with conditions on the lists of multi-valued indexes that follow from its own ones.
pub(super) struct WithElements {
    pub filter: Option<Expression>,
    /// Positions of the conjuncts that the others imply. No row needs to be tested for them.
    pub implied: Range<usize>,
    /// Whether the use of an index depends on values: the plan is valid for one execution, or a plan for the
    /// literals of the statement could use an index.
    pub wants_literals: bool,
}

/// The condition of a function on an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    /// The array has this value, which is no text of a document.
    Member,
    /// The array has one of the elements of a document.
    Any,
    /// The array has all of the elements of a document.
    All,
}

/// The elements that a condition seeks in an index.
enum Keys {
    Elements(Vec<Vec<u8>>),
    /// The element that each execution computes.
    Computed(Expression),
    /// The index does not serve the condition.
    None,
    /// The index might serve it if its literals were known.
    OfLiterals,
}

/// Adds to a condition on an array the condition on the list of each index of that array. Errors: those of
/// binding.
pub(super) fn with_elements(
    filter: Option<Expression>,
    environment: &Environment<'_>,
    layout: &Arc<TableLayout>,
) -> Result<WithElements> {
    let nothing = |filter| WithElements { filter, implied: 0..0, wants_literals: false };
    let columns = &layout.definition.columns;
    let Some(filter) = filter else { return Ok(nothing(None)) };
    if columns.iter().all(|column| column.key_list().is_none()) {
        return Ok(nothing(Some(filter)));
    }
    let mut conjuncts = filter.conjuncts().to_vec();
    let (first, mut wants_literals) = (conjuncts.len(), false);
    for (position, column) in columns.iter().enumerate() {
        let Some(list) = column.key_list() else { continue };
        let BoundArray { mut document, of_elements } = StoredExpressions::new(environment, layout).array(list.text)?;
        forget_collations(&mut document);
        let hidden = Expression::column(ColumnNumber(position as u16), column, "");
        for conjunct in filter.conjuncts() {
            let Some((value, wanted)) = condition_on(conjunct, &document, &mut wants_literals) else { continue };
            match keys_of(environment, value, wanted, &of_elements, &mut wants_literals)? {
                Keys::None => {}
                Keys::OfLiterals => wants_literals = true,
                Keys::Computed(element) => conjuncts.push(has(&hidden, element)?),
                Keys::Elements(elements) => conjuncts.push(has_one(&hidden, elements)?),
            }
        }
    }
    match conjuncts.len() {
        all if all == first => Ok(WithElements { wants_literals, ..nothing(Some(filter)) }),
        all => Ok(WithElements { filter: Some(Expression::and(conjuncts)), implied: first..all, wants_literals }),
    }
}

fn has(list: &Expression, element: Expression) -> Result<Expression> {
    Expression::call(HAS_ELEMENT, vec![list.clone(), element])
}

/// The condition that a list has one of these elements, which is false for none.
fn has_one(list: &Expression, elements: Vec<Vec<u8>>) -> Result<Expression> {
    let of_element = |element| has(list, Expression::constant(Value::Bytes(element), CollationId::BINARY));
    let mut conditions = elements.into_iter().map(of_element).collect::<Result<Vec<_>>>()?;
    match conditions.len() {
        0 => Ok(Expression::constant(Value::Int(0), CollationId::BINARY)),
        1 => Ok(conditions.remove(0)),
        _ => Ok(Expression::or(conditions)),
    }
}

/// The value that a condition compares with an array, and how. Sets `wants_literals` if the array might be
/// that of the index with the literals of the statement.
fn condition_on<'e>(
    conjunct: &'e Expression,
    document: &Expression,
    wants_literals: &mut bool,
) -> Option<(&'e Expression, Wanted)> {
    let Node::Call(function, arguments) = &conjunct.node else { return None };
    let mut is_array = |argument: &Expression| {
        let mut plain = argument.clone();
        forget_collations(&mut plain);
        let mut parameters = 0;
        *wants_literals |= is_like(&plain, document, &mut parameters) && parameters > 0;
        plain.node == document.node
    };
    match (function.name, &**arguments) {
        ("MEMBER OF", [value, array]) if is_array(array) => Some((value, Wanted::Member)),
        ("JSON_CONTAINS", [array, value]) if is_array(array) => Some((value, Wanted::All)),
        ("JSON_OVERLAPS", [array, value]) if is_array(array) => Some((value, Wanted::Any)),
        ("JSON_OVERLAPS", [value, array]) if is_array(array) => Some((value, Wanted::Any)),
        _ => None,
    }
}

fn keys_of(
    environment: &Environment<'_>,
    value: &Expression,
    wanted: Wanted,
    of_elements: &Expression,
    wants_literals: &mut bool,
) -> Result<Keys> {
    if needs_row(value) || !is_fixed(value) {
        return Ok(Keys::None);
    }
    let mut parameters = Parameters::NONE;
    if reads_parameter(value) {
        if let Some(element) = computed_key(value, wanted, of_elements)? {
            return Ok(Keys::Computed(element));
        }
        if !reads_only_first(value, environment.parameters.len()) {
            return Ok(Keys::None);
        }
        parameters = Parameters::from_bytes(environment.execution_values);
        if parameters.count() < environment.parameters.len() {
            return Ok(Keys::OfLiterals);
        }
        *wants_literals = true;
    }
    let document = match wanted {
        Wanted::Member => Expression::call("JSON_ARRAY", vec![value.clone()])?,
        Wanted::Any | Wanted::All => {
            let whole = Expression::constant(Value::Bytes(b"$".to_vec()), CollationId::DEFAULT);
            Expression::call("JSON_EXTRACT", vec![value.clone(), whole])?
        }
    };
    let scratch = Scratch::new();
    // The execution reports the errors of the value.
    let Ok(ValueRef::Json(document)) = document.evaluate(None, parameters, &scratch) else {
        return Ok(Keys::None);
    };
    let sought = |document: &[u8]| sought_elements(document, &of_elements.result, &scratch);
    Ok(match (wanted, Json::of(document)) {
        (Wanted::All, Json::Array(elements)) => {
            let mut found = Keys::None;
            for element in elements {
                match sought(element)? {
                    // No row has the element, or the array of a row has none of this form.
                    Sought::Elements(keys) if keys.is_empty() || is_nested(element) => {
                        return Ok(Keys::Elements(Vec::new()));
                    }
                    Sought::Elements(keys) if matches!(found, Keys::None) => found = Keys::Elements(keys),
                    Sought::Elements(_) | Sought::Unknown => {}
                }
            }
            found
        }
        (Wanted::All, Json::Object(_)) => Keys::None,
        _ => match sought(document)? {
            Sought::Elements(keys) if keys.len() <= ELEMENTS_MAX => Keys::Elements(keys),
            Sought::Elements(_) | Sought::Unknown => Keys::None,
        },
    })
}

fn is_nested(document: &[u8]) -> bool {
    matches!(Json::of(document), Json::Array(_))
}

/// The element of a value that is known only at execution; `None` if the index may not serve every value of
/// its type.
fn computed_key(value: &Expression, wanted: Wanted, of_elements: &Expression) -> Result<Option<Expression>> {
    let is_exact = matches!(of_elements.result.kind, Kind::Int | Kind::UInt | Kind::Decimal);
    let is_served = match value.result.kind {
        Kind::Int | Kind::UInt => is_exact && !value.is_condition(),
        Kind::String => !value.result.is_bytes(),
        _ => false,
    };
    let element = || Expression::call("ELEMENT OF ARRAY", vec![value.clone(), of_elements.clone()]);
    (wanted == Wanted::Member && is_served).then(element).transpose()
}

/// Whether an expression reads no parameters but the first ones. The others are those of a tree.
fn reads_only_first(value: &Expression, count: usize) -> bool {
    let mut holds = true;
    value.visit(&mut |inner| match inner.node {
        Node::Parameter(ordinal) => holds &= usize::from(ordinal) < count,
        Node::InParameters { .. } => holds = false,
        _ => {}
    });
    holds
}
