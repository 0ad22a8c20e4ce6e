//! MySQL's rules for two types that meet, as tables. A row is the kind of the left operand, a column the kind
//! of the right one, both in the order of [`Kind::ALL`].

use crate::result_type::Kind;

/// The kind of a value that may come from either of two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Merged {
    /// Always this kind.
    Kind(Kind),
    /// Signed if that holds every value of the unsigned operands, otherwise decimal.
    Signs,
}

/// How two operands are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compared {
    /// As integers.
    Integer,
    /// As exact numbers.
    Decimal,
    /// As doubles.
    Double,
    /// As numbers whose kind each value decides.
    Number,
    /// As strings in the collation that the two have in common.
    Text,
    /// As strings of bytes: NULL with NULL.
    Bytes,
    /// As days with times.
    DateTime,
    /// As times.
    Time,
    /// As JSON documents.
    Json,
}

const NULL: Merged = Merged::Kind(Kind::Null);
const INT: Merged = Merged::Kind(Kind::Int);
const UINT: Merged = Merged::Kind(Kind::UInt);
const DEC: Merged = Merged::Kind(Kind::Decimal);
const DBL: Merged = Merged::Kind(Kind::Double);
const STR: Merged = Merged::Kind(Kind::String);
const FLT: Merged = Merged::Kind(Kind::Float);
const YEAR: Merged = Merged::Kind(Kind::Year);
const BIT: Merged = Merged::Kind(Kind::Bit);
const DATE: Merged = Merged::Kind(Kind::Date);
const TIME: Merged = Merged::Kind(Kind::Time);
const DTM: Merged = Merged::Kind(Kind::DateTime);
const TS: Merged = Merged::Kind(Kind::Timestamp);
const ENUM: Merged = Merged::Kind(Kind::Enum);
const SET: Merged = Merged::Kind(Kind::Set);
const JSON: Merged = Merged::Kind(Kind::Json);
const GEO: Merged = Merged::Kind(Kind::Geometry);
const SIGNS: Merged = Merged::Signs;

#[rustfmt::skip]
static MERGED: [[Merged; 17]; 17] = [
    [NULL, INT, UINT, DEC, DBL, STR, FLT, YEAR, BIT, DATE, TIME, DTM, TS, ENUM, SET, JSON, GEO],
    [INT, INT, SIGNS, DEC, DBL, STR, DBL, INT, SIGNS, STR, STR, STR, STR, STR, STR, STR, STR],
    [UINT, SIGNS, UINT, DEC, DBL, STR, DBL, UINT, UINT, STR, STR, STR, STR, STR, STR, STR, STR],
    [DEC, DEC, DEC, DEC, DBL, STR, DBL, DEC, DEC, STR, STR, STR, STR, STR, STR, STR, STR],
    [DBL, DBL, DBL, DBL, DBL, STR, DBL, DBL, DBL, STR, STR, STR, STR, STR, STR, STR, STR],
    [STR, STR, STR, STR, STR, STR, STR, STR, STR, STR, STR, STR, STR, STR, STR, STR, STR],
    [FLT, DBL, DBL, DBL, DBL, STR, FLT, FLT, DBL, STR, STR, STR, STR, STR, STR, STR, STR],
    [YEAR, INT, UINT, DEC, DBL, STR, FLT, YEAR, UINT, STR, STR, STR, STR, STR, STR, STR, STR],
    [BIT, SIGNS, UINT, DEC, DBL, STR, DBL, UINT, BIT, STR, STR, STR, STR, STR, STR, STR, STR],
    [DATE, STR, STR, STR, STR, STR, STR, STR, STR, DATE, DTM, DTM, DTM, STR, STR, STR, STR],
    [TIME, STR, STR, STR, STR, STR, STR, STR, STR, DTM, TIME, DTM, DTM, STR, STR, STR, STR],
    [DTM, STR, STR, STR, STR, STR, STR, STR, STR, DTM, DTM, DTM, DTM, STR, STR, STR, STR],
    [TS, STR, STR, STR, STR, STR, STR, STR, STR, DTM, DTM, DTM, TS, STR, STR, STR, STR],
    [ENUM, STR, STR, STR, STR, STR, STR, STR, STR, STR, STR, STR, STR, STR, STR, STR, STR],
    [SET, STR, STR, STR, STR, STR, STR, STR, STR, STR, STR, STR, STR, STR, STR, STR, STR],
    [JSON, STR, STR, STR, STR, STR, STR, STR, STR, STR, STR, STR, STR, STR, STR, JSON, STR],
    [GEO, STR, STR, STR, STR, STR, STR, STR, STR, STR, STR, STR, STR, STR, STR, STR, GEO],
];

const INTEGER: Compared = Compared::Integer;
const DECIMAL: Compared = Compared::Decimal;
const DOUBLE: Compared = Compared::Double;
const NUMBER: Compared = Compared::Number;
const TEXT: Compared = Compared::Text;
const BYTES: Compared = Compared::Bytes;
const DATE_TIME: Compared = Compared::DateTime;
const CLOCK: Compared = Compared::Time;
const DOCUMENT: Compared = Compared::Json;

#[rustfmt::skip]
static COMPARED: [[Compared; 17]; 17] = [
    [BYTES, INTEGER, INTEGER, DECIMAL, DOUBLE, TEXT, DOUBLE, INTEGER, INTEGER, DATE_TIME, CLOCK, DATE_TIME, DATE_TIME, TEXT, TEXT, DOCUMENT, TEXT],
    [INTEGER, INTEGER, INTEGER, DECIMAL, DOUBLE, NUMBER, DOUBLE, INTEGER, INTEGER, NUMBER, NUMBER, NUMBER, NUMBER, NUMBER, NUMBER, DOCUMENT, NUMBER],
    [INTEGER, INTEGER, INTEGER, DECIMAL, DOUBLE, NUMBER, DOUBLE, INTEGER, INTEGER, NUMBER, NUMBER, NUMBER, NUMBER, NUMBER, NUMBER, DOCUMENT, NUMBER],
    [DECIMAL, DECIMAL, DECIMAL, DECIMAL, DOUBLE, DOUBLE, DOUBLE, DECIMAL, DECIMAL, NUMBER, NUMBER, NUMBER, NUMBER, DOUBLE, DOUBLE, DOCUMENT, DOUBLE],
    [DOUBLE, DOUBLE, DOUBLE, DOUBLE, DOUBLE, DOUBLE, DOUBLE, DOUBLE, DOUBLE, DOUBLE, DOUBLE, DOUBLE, DOUBLE, DOUBLE, DOUBLE, DOCUMENT, DOUBLE],
    [TEXT, NUMBER, NUMBER, DOUBLE, DOUBLE, TEXT, DOUBLE, NUMBER, NUMBER, DATE_TIME, CLOCK, DATE_TIME, DATE_TIME, TEXT, TEXT, DOCUMENT, TEXT],
    [DOUBLE, DOUBLE, DOUBLE, DOUBLE, DOUBLE, DOUBLE, DOUBLE, DOUBLE, DOUBLE, DOUBLE, DOUBLE, DOUBLE, DOUBLE, DOUBLE, DOUBLE, DOCUMENT, DOUBLE],
    [INTEGER, INTEGER, INTEGER, DECIMAL, DOUBLE, NUMBER, DOUBLE, INTEGER, INTEGER, DATE_TIME, NUMBER, DATE_TIME, DATE_TIME, NUMBER, NUMBER, DOCUMENT, NUMBER],
    [INTEGER, INTEGER, INTEGER, DECIMAL, DOUBLE, NUMBER, DOUBLE, INTEGER, INTEGER, NUMBER, NUMBER, NUMBER, NUMBER, NUMBER, NUMBER, DOCUMENT, NUMBER],
    [DATE_TIME, NUMBER, NUMBER, NUMBER, DOUBLE, DATE_TIME, DOUBLE, DATE_TIME, NUMBER, DATE_TIME, DATE_TIME, DATE_TIME, DATE_TIME, DATE_TIME, DATE_TIME, DOCUMENT, DATE_TIME],
    [CLOCK, NUMBER, NUMBER, NUMBER, DOUBLE, CLOCK, DOUBLE, NUMBER, NUMBER, DATE_TIME, CLOCK, DATE_TIME, DATE_TIME, CLOCK, CLOCK, DOCUMENT, CLOCK],
    [DATE_TIME, NUMBER, NUMBER, NUMBER, DOUBLE, DATE_TIME, DOUBLE, DATE_TIME, NUMBER, DATE_TIME, DATE_TIME, DATE_TIME, DATE_TIME, DATE_TIME, DATE_TIME, DOCUMENT, DATE_TIME],
    [DATE_TIME, NUMBER, NUMBER, NUMBER, DOUBLE, DATE_TIME, DOUBLE, DATE_TIME, NUMBER, DATE_TIME, DATE_TIME, DATE_TIME, DATE_TIME, DATE_TIME, DATE_TIME, DOCUMENT, DATE_TIME],
    [TEXT, NUMBER, NUMBER, DOUBLE, DOUBLE, TEXT, DOUBLE, NUMBER, NUMBER, DATE_TIME, CLOCK, DATE_TIME, DATE_TIME, TEXT, TEXT, DOCUMENT, TEXT],
    [TEXT, NUMBER, NUMBER, DOUBLE, DOUBLE, TEXT, DOUBLE, NUMBER, NUMBER, DATE_TIME, CLOCK, DATE_TIME, DATE_TIME, TEXT, TEXT, DOCUMENT, TEXT],
    [DOCUMENT, DOCUMENT, DOCUMENT, DOCUMENT, DOCUMENT, DOCUMENT, DOCUMENT, DOCUMENT, DOCUMENT, DOCUMENT, DOCUMENT, DOCUMENT, DOCUMENT, DOCUMENT, DOCUMENT, DOCUMENT, DOCUMENT],
    [TEXT, NUMBER, NUMBER, DOUBLE, DOUBLE, TEXT, DOUBLE, NUMBER, NUMBER, DATE_TIME, CLOCK, DATE_TIME, DATE_TIME, TEXT, TEXT, DOCUMENT, TEXT],
];

/// The kind of CASE, IF, COALESCE and UNION over two operands.
pub(crate) fn merged(left: Kind, right: Kind) -> Merged {
    MERGED[left as usize][right as usize]
}

/// How a comparison treats its two operands.
pub(crate) fn compared(left: Kind, right: Kind) -> Compared {
    COMPARED[left as usize][right as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [Kind; 17] = Kind::ALL;

    #[test]
    fn kinds_are_in_the_order_of_the_tables() {
        assert!(KINDS.iter().enumerate().all(|(position, kind)| *kind as usize == position));
    }

    #[test]
    fn the_order_of_two_operands_does_not_matter() {
        for left in KINDS {
            for right in KINDS {
                assert_eq!(merged(left, right), merged(right, left), "{left:?}, {right:?}");
                assert_eq!(compared(left, right), compared(right, left), "{left:?}, {right:?}");
            }
        }
    }

    #[test]
    fn strings_prevail_over_doubles_over_decimals_over_integers_over_null() {
        // The first six, which have an order.
        for left in KINDS.into_iter().take(6) {
            for right in KINDS.into_iter().take(6) {
                let expected = match (left, right) {
                    (Kind::Int, Kind::UInt) | (Kind::UInt, Kind::Int) => Merged::Signs,
                    _ => Merged::Kind(left.max(right)),
                };
                assert_eq!(merged(left, right), expected, "{left:?}, {right:?}");
            }
        }
    }

    #[test]
    fn a_null_is_compared_as_the_other_operand_would_be_with_itself() {
        for kind in KINDS {
            assert_eq!(compared(Kind::Null, kind), compared(kind, kind), "{kind:?}");
        }
    }
}
