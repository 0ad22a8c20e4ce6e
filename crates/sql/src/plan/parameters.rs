//! Hot path: at most 25 instructions per literal.
//!
//! Turns the literals of a statement into the parameters of its plan.

use junctor_expression::{Kind, ParametersBuilder};
use junctor_model::temporal::TemporalKind;
use junctor_model::value::{Decimal, ValueRef};

use crate::bind::{ParameterKind, PatternPrefix, decimal_of_text};
use crate::parse::ParameterNumber;
use crate::parse::shape::{LiteralClass, ScannedLiteral, Shape, Slot};

/// The value of a lifted literal. A string with escapes is decoded into `decoded`, which the value then
/// borrows.
#[inline]
pub(crate) fn literal_value<'t>(text: &'t [u8], literal: &ScannedLiteral, decoded: &'t mut Vec<u8>) -> ValueRef<'t> {
    if literal.has_escapes {
        decoded.clear();
        literal.decode(text, decoded);
        return ValueRef::Bytes(decoded);
    }
    plain_literal_value(text, literal)
}

/// The value of a lifted literal that has no escapes.
#[inline]
pub(crate) fn plain_literal_value<'t>(text: &'t [u8], literal: &ScannedLiteral) -> ValueRef<'t> {
    match literal.class {
        LiteralClass::Integer => integer_value(literal),
        LiteralClass::String => ValueRef::Bytes(literal.bytes(text)),
        // The scanner lifts no decimal with more digits than a value can hold.
        LiteralClass::Decimal => decimal_of_text(literal.bytes(text)).map_or(ValueRef::Null, ValueRef::Decimal),
        LiteralClass::Double => {
            let number = std::str::from_utf8(literal.bytes(text)).ok().and_then(|text| text.parse::<f64>().ok());
            ValueRef::Double(number.unwrap_or(0.0).clamp(-f64::MAX, f64::MAX))
        }
    }
}

#[inline]
fn integer_value(literal: &ScannedLiteral) -> ValueRef<'static> {
    match i64::try_from(literal.magnitude()) {
        Ok(value) => ValueRef::Int(if literal.negative { -value } else { value }),
        Err(_) if !literal.negative => ValueRef::UInt(literal.magnitude()),
        Err(_) if literal.magnitude() == 1 << 63 => ValueRef::Int(i64::MIN),
        Err(_) => ValueRef::Decimal(Decimal::Narrow { mantissa: literal.integer(), scale: 0 }),
    }
}

/// The kind that plans of a shape expect for a literal of this class.
pub(crate) fn kind_of_class(class: LiteralClass) -> Kind {
    match class {
        LiteralClass::Integer => Kind::Int,
        LiteralClass::Decimal => Kind::Decimal,
        LiteralClass::Double => Kind::Double,
        LiteralClass::String => Kind::String,
    }
}

/// The kind of parameter for which a plan is made when the parameter has this value.
pub(crate) fn kind_of_value(value: ValueRef<'_>) -> ParameterKind {
    match value {
        ValueRef::Null => ParameterKind::of(Kind::Null),
        ValueRef::Int(_) => ParameterKind::of(Kind::Int),
        ValueRef::UInt(_) => ParameterKind::of(Kind::UInt),
        ValueRef::Double(_) => ParameterKind::of(Kind::Double),
        ValueRef::Decimal(value) => ParameterKind { scale: value.scale(), ..ParameterKind::of(Kind::Decimal) },
        ValueRef::Float(_) => ParameterKind::of(Kind::Double),
        ValueRef::Temporal(value) => {
            let kind = match value.kind {
                TemporalKind::Year => Kind::Year,
                TemporalKind::Date => Kind::Date,
                TemporalKind::Time => Kind::Time,
                TemporalKind::DateTime | TemporalKind::Timestamp => Kind::DateTime,
            };
            ParameterKind { scale: value.digits, ..ParameterKind::of(kind) }
        }
        ValueRef::Bit(_) | ValueRef::Choice(_) => ParameterKind::of(Kind::String),
        ValueRef::Json(_) => ParameterKind::of(Kind::Json),
        ValueRef::Bytes(text) => ParameterKind { prefix: PatternPrefix::of(text), ..ParameterKind::of(Kind::String) },
    }
}

/// Replaces the contents of `kinds` with the kinds of all parameters of a shape.
pub(crate) fn kinds_of_shape(shape: &Shape, kinds: &mut Vec<ParameterKind>) {
    kinds.clear();
    for ordinal in 0..shape.slot_count() as u32 {
        let is_list = matches!(shape.slot(ParameterNumber(ordinal)), Some(Slot::List { .. }));
        let literal = match is_list {
            true => shape.list(ParameterNumber(ordinal)).first(),
            false => shape.literal(ParameterNumber(ordinal), 0),
        };
        let kind = literal.map_or(Kind::Null, |literal| kind_of_class(literal.class));
        let scale = literal.filter(|_| !is_list).map_or(0, ScannedLiteral::scale);
        let prefix = match literal {
            Some(literal) if literal.is_open_pattern() => PatternPrefix::Absent,
            _ => PatternPrefix::Unknown,
        };
        kinds.push(ParameterKind { scale, is_list, prefix, ..ParameterKind::of(kind) });
    }
}

/// Adds the literals of a shape to the builder; for VALUES columns those of row `row` (from 0). Returns false
/// if a literal is not of the kind that plans expect, such as an integer beyond 63 bits. Such a statement
/// needs its own plan.
#[inline]
pub(crate) fn fill_from_shape(
    text: &[u8],
    shape: &Shape,
    row: u32,
    decoded: &mut Vec<u8>,
    builder: &mut ParametersBuilder,
) -> bool {
    builder.clear();
    let mut fits = true;
    for ordinal in 0..shape.slot_count() as u32 {
        let ordinal = ParameterNumber(ordinal);
        match shape.slot(ordinal) {
            Some(Slot::List { fit_in_63_bits: true, .. }) => {
                builder.push_integers(shape.list(ordinal).iter().map(|literal| literal.magnitude() as i64));
            }
            Some(Slot::List { .. }) => {
                builder.begin_list();
                for literal in shape.list(ordinal) {
                    fits &= push(text, literal, decoded, builder);
                }
                builder.end_list();
            }
            _ => match shape.literal(ordinal, row) {
                Some(literal) => fits &= push(text, literal, decoded, builder),
                None => builder.push(ValueRef::Null),
            },
        }
    }
    fits
}

#[inline]
fn push(text: &[u8], literal: &ScannedLiteral, decoded: &mut Vec<u8>, builder: &mut ParametersBuilder) -> bool {
    if literal.class == LiteralClass::Integer && literal.magnitude() >> 63 == 0 {
        builder.push_int(short_integer(literal));
        return true;
    }
    let value = literal_value(text, literal, decoded);
    builder.push(value);
    is_of_class(value, literal.class)
}

/// The value of an integer whose magnitude has at most 63 bits.
#[inline]
fn short_integer(literal: &ScannedLiteral) -> i64 {
    let value = literal.magnitude() as i64;
    if literal.negative { -value } else { value }
}

/// Whether a literal's value is of the kind that plans expect for its class.
pub(crate) fn fits_class(text: &[u8], literal: &ScannedLiteral) -> bool {
    literal.has_escapes || is_of_class(plain_literal_value(text, literal), literal.class)
}

#[inline]
fn is_of_class(value: ValueRef<'_>, class: LiteralClass) -> bool {
    match class {
        LiteralClass::Integer => matches!(value, ValueRef::Int(_)),
        LiteralClass::Decimal => matches!(value, ValueRef::Decimal(_)),
        LiteralClass::Double | LiteralClass::String => true,
    }
}
