//! MySQL's collation rules for operations on several strings.

use junctor_model::collation::{CharacterSet, CollationId};
use junctor_model::error::{Error, ErrorCode, Result};

use crate::program::{Expression, Node};
use crate::result_type::{Coercibility, Kind, ResultType};

/// A collation and its coercibility.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DerivedCollation {
    pub collation: CollationId,
    pub coercibility: Coercibility,
}

impl Expression {
    /// `operand COLLATE collation`. Error: 1253 if the operand has another character set.
    pub fn collate(operand: Expression, collation: CollationId) -> Result<Expression> {
        let is_string = operand.result.is_text();
        if is_string && operand.result.collation.character_set() != collation.character_set() {
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
        let node = if is_string { Node::Collate(Box::new(operand)) } else { Node::Convert(Box::new(operand)) };
        Ok(Expression { node, result })
    }
}

/// The collation of an operation on these operands. Numbers and NULL are ignored; BIT counts as bytes. If
/// no operand is a string, the result is the default collation, with a coercibility so weak that the
/// collation of any string prevails over it. NULL alone is bytes. Error: 1267 if two collations are equally
/// strong.
pub(crate) fn aggregate_collations<'e>(
    operation: &str,
    operands: impl IntoIterator<Item = &'e Expression>,
) -> Result<DerivedCollation> {
    let mut best: Option<DerivedCollation> = None;
    let (mut has_null, mut has_number) = (false, false);
    for operand in operands {
        let coercibility = match operand.result.kind {
            _ if operand.result.coercibility == Coercibility::Ignorable => {
                has_null = true;
                continue;
            }
            Kind::String | Kind::Enum | Kind::Set | Kind::Json => operand.result.coercibility,
            Kind::Bit => Coercibility::Implicit,
            _ => {
                has_number = true;
                continue;
            }
        };
        let next = DerivedCollation { collation: operand.result.collation, coercibility };
        best = Some(match best {
            Some(best) => stronger(operation, best, next)?,
            None => next,
        });
    }
    let none = match has_null && !has_number {
        true => DerivedCollation { collation: CollationId::BINARY, coercibility: Coercibility::Ignorable },
        false => DerivedCollation { collation: CollationId::DEFAULT, coercibility: Coercibility::Numeric },
    };
    Ok(best.unwrap_or(none))
}

fn stronger(operation: &str, left: DerivedCollation, right: DerivedCollation) -> Result<DerivedCollation> {
    if left.collation == right.collation {
        return Ok(if left.coercibility <= right.coercibility { left } else { right });
    }
    if left.coercibility != right.coercibility {
        return Ok(if left.coercibility < right.coercibility { left } else { right });
    }
    let is_binary = |side: DerivedCollation| side.collation.character_set() == CharacterSet::Binary;
    if left.coercibility != Coercibility::Explicit {
        // The binary collation prevails over text, and utf8mb4_bin over other collations of its character
        // set.
        if is_binary(left) || is_binary(right) {
            return Ok(if is_binary(left) { left } else { right });
        }
        for side in [left, right] {
            if side.collation == CollationId::UTF8MB4_BIN {
                return Ok(side);
            }
        }
    }
    let message = format!(
        "Illegal mix of collations ({},{}) and ({},{}) for operation '{operation}'",
        left.collation.name(),
        strength_name(left.coercibility),
        right.collation.name(),
        strength_name(right.coercibility),
    );
    Err(Error::new(ErrorCode::CannotAggregateCollations, message))
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
