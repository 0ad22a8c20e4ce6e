//! MySQL's collation rules for operations on several strings.

use junctor_model::collation::{CharacterSet, CollationId};
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::value::Value;

use crate::program::{Expression, Node};
use crate::result_type::{Coercibility, Kind, ResultType};

/// Maximum number of operands that the error of an illegal mix names.
const NAMED_OPERANDS_MAX: usize = 3;

/// A collation and its coercibility.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DerivedCollation {
    pub collation: CollationId,
    pub coercibility: Coercibility,
}

/// An operand in the search for a common collation.
#[derive(Clone, Copy)]
struct Side {
    derived: DerivedCollation,
    /// Whether the value is certainly ASCII, so that every character set has it.
    is_ascii: bool,
}

impl Expression {
    /// `operand COLLATE collation`. Error: 1253 if the operand has another character set.
    pub fn collate(operand: Expression, collation: CollationId) -> Result<Expression> {
        let is_string = operand.result.is_text();
        let is_binary = operand.result.kind == Kind::Bit;
        if (is_string || is_binary) && operand.result.collation.character_set() != collation.character_set() {
            let message = format!(
                "COLLATION '{}' is not valid for CHARACTER SET '{}'",
                collation.name(),
                operand.result.collation.character_set().name()
            );
            return Err(Error::new(ErrorCode::CollationCharacterSetMismatch, message));
        }
        let length = operand.result.length;
        let result =
            ResultType::string(collation, Coercibility::Explicit, length).with_nullable(operand.result.nullable);
        // The members of an ENUM or a SET become texts, which are no numbers.
        let node = match operand.result.kind {
            Kind::String => Node::Collate(Box::new(operand)),
            _ => Node::Convert(Box::new(operand)),
        };
        Ok(Expression { node, result })
    }
}

/// The collation of an operation on these operands. Numbers and NULL are ignored; BIT counts as bytes. If
/// no operand is a string, the result is the default collation, with a coercibility so weak that the
/// collation of any string prevails over it. NULL alone is bytes.
///
/// Errors: 1267, 1270 or 1271 for two, three or more operands, if two collations are equally strong, or if
/// the character set that prevails lacks a character of a constant. Functions that only join strings have no
/// collation in the first case, if the character sets are equal.
pub(crate) fn aggregate_collations<'e>(
    operation: &str,
    operands: impl IntoIterator<Item = &'e Expression> + Clone,
) -> Result<DerivedCollation> {
    let mut best: Option<Side> = None;
    let (mut has_null, mut has_number) = (false, false);
    let (mut is_illegal, mut count) = (false, 0);
    for operand in operands.clone() {
        count += 1;
        let coercibility = match operand.result.kind {
            _ if operand.result.coercibility == Coercibility::Ignorable => {
                has_null = true;
                continue;
            }
            Kind::String | Kind::Enum | Kind::Set | Kind::Json | Kind::Geometry => operand.result.coercibility,
            Kind::Bit => Coercibility::Implicit,
            _ => {
                has_number = true;
                continue;
            }
        };
        let derived = DerivedCollation { collation: operand.result.collation, coercibility };
        let next = Side { derived, is_ascii: is_ascii(operand) };
        best = Some(match best {
            Some(best) => stronger(best, next).unwrap_or_else(|| {
                is_illegal = true;
                best
            }),
            None => next,
        });
    }
    let none = match has_null && !has_number {
        true => DerivedCollation { collation: CollationId::BINARY, coercibility: Coercibility::Ignorable },
        false => DerivedCollation { collation: CollationId::DEFAULT, coercibility: Coercibility::Numeric },
    };
    let Some(Side { derived, .. }) = best else { return Ok(none) };
    is_illegal |= derived.coercibility == Coercibility::NoCollation && count > 1 && !only_joins(operation);
    let set = derived.collation.character_set();
    is_illegal |= operands.clone().into_iter().any(|text| text.result.is_text() && !is_convertible(text, set));
    match is_illegal {
        true => Err(illegal_mix(operation, &operands.into_iter().collect::<Vec<_>>())),
        false => Ok(derived),
    }
}

/// Whether the operation makes a string of its operands without comparing them.
fn only_joins(operation: &str) -> bool {
    ["concat", "concat_ws", "case", "coalesce", "ifnull", "if", "elt", "make_set", "export_set", "lpad", "rpad"]
        .contains(&operation)
        || ["insert", ""].contains(&operation)
}

/// The side that prevails; no collation if both are equally strong; `None` if neither can be converted.
fn stronger(left: Side, right: Side) -> Option<Side> {
    let (a, b) = (left.derived, right.derived);
    // As in MySQL, a side that takes the place of those before it brings its own repertoire.
    let (first, second) = (Some(Side { is_ascii: left.is_ascii && right.is_ascii, ..left }), Some(right));
    let (left_set, right_set) = (a.collation.character_set(), b.collation.character_set());
    if left_set == right_set {
        if a.coercibility != b.coercibility {
            return if a.coercibility < b.coercibility { first } else { second };
        }
        return match a.collation == b.collation || a.collation.is_code_point_order() {
            _ if a.collation != b.collation && a.coercibility == Coercibility::Explicit => None,
            true => first,
            false if b.collation.is_code_point_order() => second,
            false => {
                let collation = left_set.code_point_collation();
                let derived = DerivedCollation { collation, coercibility: Coercibility::NoCollation };
                first.map(|side| Side { derived, ..side })
            }
        };
    }
    // Bytes prevail over text of the same strength.
    if left_set == CharacterSet::Binary || right_set == CharacterSet::Binary {
        let left_wins = match left_set == CharacterSet::Binary {
            true => a.coercibility <= b.coercibility,
            false => a.coercibility < b.coercibility,
        };
        return if left_wins { first } else { second };
    }
    if is_superset(left, right) {
        return first;
    }
    if is_superset(right, left) {
        return second;
    }
    // A literal gives way if it can be converted.
    match a.coercibility.cmp(&b.coercibility) {
        std::cmp::Ordering::Less if b.coercibility >= Coercibility::SystemConstant => first,
        std::cmp::Ordering::Greater if a.coercibility >= Coercibility::SystemConstant => second,
        _ => None,
    }
}

/// Whether MySQL takes the character set of `left` for one that has all characters of `right`.
fn is_superset(left: Side, right: Side) -> bool {
    let (set, other) = (left.derived.collation.character_set(), right.derived.collation.character_set());
    let order = left.derived.coercibility.cmp(&right.derived.coercibility);
    let is_wider = !other.is_unicode() || set == CharacterSet::Utf8mb4 && other == CharacterSet::Utf8mb3;
    set.is_unicode() && (order.is_lt() || order.is_eq() && is_wider)
        || right.is_ascii && (order.is_lt() || order.is_eq() && !other.is_unicode())
}

/// Whether every value of the operand is ASCII.
fn is_ascii(operand: &Expression) -> bool {
    match &operand.node {
        Node::Constant(Value::Bytes(text)) => text.is_ascii(),
        Node::Collate(operand) => is_ascii(operand),
        _ => operand.result.collation.character_set() == CharacterSet::Ascii || !operand.result.is_text(),
    }
}

/// Whether a constant has only characters of the set. Other operands are taken for convertible.
fn is_convertible(operand: &Expression, set: CharacterSet) -> bool {
    let own = operand.result.collation.character_set();
    match &operand.node {
        _ if own == set || own == CharacterSet::Binary => true,
        Node::Constant(Value::Bytes(text)) => set.is_valid(text),
        Node::Collate(operand) => is_convertible(operand, set),
        _ => true,
    }
}

#[cold]
fn illegal_mix(operation: &str, operands: &[&Expression]) -> Box<Error> {
    let named = operands
        .iter()
        .map(|operand| format!("({},{})", operand.result.collation.name(), strength_name(operand.result.coercibility)));
    let (code, named) = match operands.len() {
        0..=2 => (ErrorCode::CannotAggregateCollations, named.collect::<Vec<_>>().join(" and ")),
        NAMED_OPERANDS_MAX => (ErrorCode::CannotAggregateThreeCollations, named.collect::<Vec<_>>().join(", ")),
        _ => (ErrorCode::CannotAggregateManyCollations, String::new()),
    };
    let separator = if named.is_empty() { "" } else { " " };
    Error::new(code, format!("Illegal mix of collations{separator}{named} for operation '{operation}'"))
}

fn strength_name(coercibility: Coercibility) -> &'static str {
    match coercibility {
        Coercibility::Explicit => "EXPLICIT",
        Coercibility::NoCollation => "NONE",
        Coercibility::Implicit => "IMPLICIT",
        Coercibility::SystemConstant => "SYSCONST",
        Coercibility::Coercible => "COERCIBLE",
        Coercibility::Numeric => "NUMERIC",
        Coercibility::Ignorable => "IGNORABLE",
    }
}
