//! CAST and CONVERT.

use junctor_model::collation::CollationId;

use crate::program::{CastTarget, Expression, Node};
use crate::result_type::{Coercibility, ResultType};

impl Expression {
    /// `CAST(operand AS target)`.
    pub fn cast(target: CastTarget, operand: Expression) -> Expression {
        let operand = match target {
            CastTarget::Char { collation, .. } => operand.in_collation(collation),
            CastTarget::Binary { .. } => operand.in_collation(CollationId::BINARY),
            _ => operand,
        };
        let length_of_operand = operand.result.length;
        let result = match target {
            CastTarget::Signed => ResultType::integer(false, 21),
            CastTarget::Unsigned => ResultType::integer(true, 21),
            CastTarget::Double => ResultType::double(),
            CastTarget::Decimal { precision, scale } => ResultType::decimal(u32::from(precision), scale),
            CastTarget::Char { length, collation } => {
                ResultType::string(collation, Coercibility::Implicit, length.unwrap_or(length_of_operand))
            }
            CastTarget::Binary { length } => {
                let bytes = length_of_operand.saturating_mul(operand.result.collation.max_bytes_per_character() as u32);
                ResultType::string(CollationId::BINARY, Coercibility::Implicit, length.unwrap_or(bytes))
            }
        };
        // A conversion can fail with NULL, so the result is nullable whatever the operand.
        Expression { node: Node::Cast(target, Box::new(operand)), result: result.with_nullable(true) }
    }
}
