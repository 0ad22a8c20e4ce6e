//! MySQL's rules for two types that meet, as tables. A row is the kind of the left operand, a column the kind
//! of the right one, both in the order of [`Kind`]: NULL, signed, unsigned, decimal, double, string.

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
}

const NULL: Merged = Merged::Kind(Kind::Null);
const INT: Merged = Merged::Kind(Kind::Int);
const UINT: Merged = Merged::Kind(Kind::UInt);
const DEC: Merged = Merged::Kind(Kind::Decimal);
const DBL: Merged = Merged::Kind(Kind::Double);
const STR: Merged = Merged::Kind(Kind::String);
const SIGNS: Merged = Merged::Signs;

static MERGED: [[Merged; 6]; 6] = [
    [NULL, INT, UINT, DEC, DBL, STR],
    [INT, INT, SIGNS, DEC, DBL, STR],
    [UINT, SIGNS, UINT, DEC, DBL, STR],
    [DEC, DEC, DEC, DEC, DBL, STR],
    [DBL, DBL, DBL, DBL, DBL, STR],
    [STR, STR, STR, STR, STR, STR],
];

const INTEGER: Compared = Compared::Integer;
const DECIMAL: Compared = Compared::Decimal;
const DOUBLE: Compared = Compared::Double;
const NUMBER: Compared = Compared::Number;
const TEXT: Compared = Compared::Text;
const BYTES: Compared = Compared::Bytes;

static COMPARED: [[Compared; 6]; 6] = [
    [BYTES, INTEGER, INTEGER, DECIMAL, DOUBLE, TEXT],
    [INTEGER, INTEGER, INTEGER, DECIMAL, DOUBLE, NUMBER],
    [INTEGER, INTEGER, INTEGER, DECIMAL, DOUBLE, NUMBER],
    [DECIMAL, DECIMAL, DECIMAL, DECIMAL, DOUBLE, DOUBLE],
    [DOUBLE, DOUBLE, DOUBLE, DOUBLE, DOUBLE, DOUBLE],
    [TEXT, NUMBER, NUMBER, DOUBLE, DOUBLE, TEXT],
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

    const KINDS: [Kind; 6] = [Kind::Null, Kind::Int, Kind::UInt, Kind::Decimal, Kind::Double, Kind::String];

    #[test]
    fn kinds_are_in_the_order_of_the_tables() {
        assert_eq!(KINDS.map(|kind| kind as usize), [0, 1, 2, 3, 4, 5]);
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
        for left in KINDS {
            for right in KINDS {
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
