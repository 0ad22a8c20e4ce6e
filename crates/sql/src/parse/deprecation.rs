//! Deprecated syntax, with the warnings that MySQL 8.0 gives when it parses a statement.

use std::borrow::Cow;

use junctor_model::collation::{CharacterSet, CollationId};
use junctor_model::error::ErrorCode;

/// Maximum number of warnings of one statement. The count of warnings that clients see has 16 bits.
pub(super) const DEPRECATIONS_MAX: usize = u16::MAX as usize;

/// A use of deprecated syntax.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deprecation {
    /// An integer type with a display width.
    DisplayWidth,
    /// ZEROFILL.
    ZeroFill,
    /// FLOAT(m,d) and DOUBLE(m,d).
    FloatDigits,
    /// UNSIGNED of DECIMAL, FLOAT and DOUBLE.
    UnsignedFraction,
    /// YEAR(4).
    YearDigits,
    /// BINARY behind a type of texts.
    BinaryAttribute,
    /// ASCII behind a type of texts.
    AsciiAttribute,
    /// The character set utf8mb3.
    Utf8mb3,
    /// The character set utf8.
    Utf8Alias,
    /// NCHAR, NVARCHAR, NATIONAL and `N'...'`.
    National,
    /// A collation of utf8mb3.
    Collation(CollationId),
    /// VALUES(column) in ON DUPLICATE KEY UPDATE.
    InsertedValue,
    /// VALUES(column) elsewhere.
    NoInsertedValue,
    /// SQL_CALC_FOUND_ROWS.
    CalcFoundRows,
    /// FOUND_ROWS().
    FoundRows,
    /// `@name := value` in an expression.
    AssignedVariable,
    /// `&&`.
    AndSign,
    /// `||` for OR.
    OrSign,
    /// `!`.
    NotSign,
    /// The operator BINARY.
    BinaryOperator,
    /// INSERT DELAYED.
    InsertDelayed,
    /// REPLACE DELAYED.
    ReplaceDelayed,
    /// JSON_MERGE.
    JsonMerge,
    /// MASTER_POS_WAIT.
    MasterPosWait,
    /// WAIT_UNTIL_SQL_THREAD_AFTER_GTIDS.
    WaitUntilAfterGtids,
    /// The variable explicit_defaults_for_timestamp.
    ExplicitDefaults,
}

impl Deprecation {
    /// The warning about a character set of this name; `None` if it is not deprecated.
    pub(crate) fn of_character_set(name: &str) -> Option<Deprecation> {
        if name.eq_ignore_ascii_case("utf8") {
            Some(Deprecation::Utf8Alias)
        } else {
            name.eq_ignore_ascii_case("utf8mb3").then_some(Deprecation::Utf8mb3)
        }
    }

    /// The warning about a collation of this name; `None` if it is not deprecated or unknown.
    pub(crate) fn of_collation(name: &str) -> Option<Deprecation> {
        let collation = CollationId::named(name).ok()?;
        (collation.character_set() == CharacterSet::Utf8mb3).then_some(Deprecation::Collation(collation))
    }

    /// The warning about a call of a function of this name; `None` if it is not deprecated.
    pub(super) fn of_function(name: &str) -> Option<Deprecation> {
        let functions = [
            ("FOUND_ROWS", Deprecation::FoundRows),
            ("JSON_MERGE", Deprecation::JsonMerge),
            ("MASTER_POS_WAIT", Deprecation::MasterPosWait),
            ("WAIT_UNTIL_SQL_THREAD_AFTER_GTIDS", Deprecation::WaitUntilAfterGtids),
        ];
        functions.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, found)| found)
    }

    /// The number of the warning.
    pub fn code(self) -> ErrorCode {
        match self {
            Deprecation::DisplayWidth
            | Deprecation::ZeroFill
            | Deprecation::FloatDigits
            | Deprecation::UnsignedFraction => ErrorCode::DeprecatedWithoutReplacement,
            Deprecation::Utf8Alias => ErrorCode::DeprecatedUtf8Alias,
            Deprecation::National => ErrorCode::DeprecatedNational,
            Deprecation::Collation(_) => ErrorCode::DeprecatedCollation,
            Deprecation::InsertDelayed | Deprecation::ReplaceDelayed => ErrorCode::LegacySyntaxConverted,
            _ => ErrorCode::DeprecatedSyntax,
        }
    }

    /// The text of the warning.
    pub fn text(self) -> Cow<'static, str> {
        let replaced = |old: &str, new: &str| {
            Cow::Owned(format!(
                "'{old}' is deprecated and will be removed in a future release. Please use {new} instead"
            ))
        };
        let converted = |what: &str| {
            Cow::Owned(format!("{what} DELAYED is no longer supported. The statement was converted to {what}."))
        };
        Cow::Borrowed(match self {
            Deprecation::DisplayWidth => "Integer display width is deprecated and will be removed in a future release.",
            Deprecation::ZeroFill => {
                "The ZEROFILL attribute is deprecated and will be removed in a future release. Use the LPAD function to \
                 zero-pad numbers, or store the formatted numbers in a CHAR column."
            }
            Deprecation::FloatDigits => {
                "Specifying number of digits for floating point data types is deprecated and will be removed in a future \
                 release."
            }
            Deprecation::UnsignedFraction => {
                "UNSIGNED for decimal and floating point data types is deprecated and support for it will be removed in \
                 a future release."
            }
            Deprecation::YearDigits => return replaced("YEAR(4)", "YEAR"),
            Deprecation::BinaryAttribute => {
                return replaced("BINARY as attribute of a type", "a CHARACTER SET clause with _bin collation");
            }
            Deprecation::AsciiAttribute => return replaced("ASCII", "CHARACTER SET charset_name"),
            Deprecation::Utf8mb3 => return replaced("utf8mb3", "utf8mb4"),
            Deprecation::Utf8Alias => {
                "'utf8' is currently an alias for the character set UTF8MB3, but will be an alias for UTF8MB4 in a \
                 future release. Please consider using UTF8MB4 in order to be unambiguous."
            }
            Deprecation::National => {
                "NATIONAL/NCHAR/NVARCHAR implies the character set UTF8MB3, which will be replaced by UTF8MB4 in a \
                 future release. Please consider using CHAR(x) CHARACTER SET UTF8MB4 in order to be unambiguous."
            }
            Deprecation::Collation(collation) => {
                return Cow::Owned(format!(
                    "'{}' is a collation of the deprecated character set UTF8MB3. Please consider using UTF8MB4 with \
                     an appropriate collation instead.",
                    collation.name()
                ));
            }
            Deprecation::InsertedValue => {
                return replaced(
                    "VALUES function",
                    "an alias (INSERT INTO ... VALUES (...) AS alias) and replace VALUES(col) in the ON DUPLICATE KEY \
                     UPDATE clause with alias.col",
                );
            }
            Deprecation::NoInsertedValue => {
                "The VALUES function is deprecated and will be removed in a future release. It always returns NULL in \
                 this context. If you meant to access a value from the VALUES clause of the INSERT statement, consider \
                 using an alias (INSERT INTO ... VALUES (...) AS alias) and reference alias.col instead of VALUES(col) \
                 in the ON DUPLICATE KEY UPDATE clause."
            }
            Deprecation::CalcFoundRows => {
                "SQL_CALC_FOUND_ROWS is deprecated and will be removed in a future release. Consider using two separate \
                 queries instead."
            }
            Deprecation::FoundRows => {
                "FOUND_ROWS() is deprecated and will be removed in a future release. Consider using COUNT(*) instead."
            }
            Deprecation::AssignedVariable => {
                "Setting user variables within expressions is deprecated and will be removed in a future release. \
                 Consider alternatives: 'SET variable=expression, ...', or 'SELECT expression(s) INTO variables(s)'."
            }
            Deprecation::AndSign => return replaced("&&", "AND"),
            Deprecation::OrSign => return replaced("|| as a synonym for OR", "OR"),
            Deprecation::NotSign => return replaced("!", "NOT"),
            Deprecation::BinaryOperator => return replaced("BINARY expr", "CAST"),
            Deprecation::InsertDelayed => return converted("INSERT"),
            Deprecation::ReplaceDelayed => return converted("REPLACE"),
            Deprecation::JsonMerge => return replaced("JSON_MERGE", "JSON_MERGE_PRESERVE/JSON_MERGE_PATCH"),
            Deprecation::MasterPosWait => return replaced("MASTER_POS_WAIT", "SOURCE_POS_WAIT"),
            Deprecation::WaitUntilAfterGtids => {
                return replaced("WAIT_UNTIL_SQL_THREAD_AFTER_GTIDS", "WAIT_FOR_EXECUTED_GTID_SET");
            }
            Deprecation::ExplicitDefaults => {
                "'explicit_defaults_for_timestamp' is deprecated and will be removed in a future release."
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::{Dialect, Parameterised, Shape, ShapeOutcome, parse, parse_in, parse_with_parameters, scan};

    fn found(text: &str) -> Vec<Deprecation> {
        parse(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}")).deprecations
    }

    #[test]
    fn uses_are_found_in_the_order_of_the_text() {
        use Deprecation::{
            AndSign, AssignedVariable, BinaryOperator, CalcFoundRows, DisplayWidth, FloatDigits, InsertedValue,
            National, NoInsertedValue, NotSign, OrSign, UnsignedFraction, Utf8Alias, Utf8mb3, YearDigits, ZeroFill,
        };
        for (text, expected) in [
            ("SELECT a AND b OR NOT c, CAST(a AS BINARY), DATE '2024-01-01'", vec![]),
            ("SELECT a && b && c || !d", vec![AndSign, AndSign, OrSign, NotSign]),
            (
                "SELECT SQL_CALC_FOUND_ROWS BINARY a, @b := 1 FROM t",
                vec![CalcFoundRows, BinaryOperator, AssignedVariable],
            ),
            ("SET @a := 1", vec![]),
            ("SELECT VALUES(a) FROM t", vec![NoInsertedValue]),
            ("INSERT INTO t VALUES (1) ON DUPLICATE KEY UPDATE a = VALUES(a)", vec![InsertedValue]),
            ("INSERT INTO t VALUES (1) AS n ON DUPLICATE KEY UPDATE a = n.a", vec![]),
            ("CREATE TABLE t (a TINYINT(1), b BOOL, c YEAR, d DECIMAL(5,2), e FLOAT(9), f INT UNSIGNED)", vec![]),
            (
                "CREATE TABLE t (a INT(5) ZEROFILL, b DOUBLE(5,2) UNSIGNED, c YEAR(4), d TINYINT(1) UNSIGNED)",
                vec![ZeroFill, DisplayWidth, FloatDigits, UnsignedFraction, YearDigits, DisplayWidth],
            ),
            ("SELECT _utf8'a', N'b', CONVERT('c' USING utf8mb3), _utf8mb4'd'", vec![Utf8Alias, National, Utf8mb3]),
        ] {
            assert_eq!(found(text), expected, "{text}");
        }
        let collation = CollationId::named("utf8mb3_bin").expect("a collation");
        assert_eq!(found("SELECT a COLLATE utf8_bin, b COLLATE utf8mb4_bin"), [Deprecation::Collation(collation)]);
        let pipes = Dialect { pipes_as_concat: true, ..Dialect::default() };
        assert_eq!(parse_in(b"SELECT a || b", pipes).expect("a query").deprecations, []);
    }

    #[test]
    fn a_text_with_lifted_literals_has_the_same_uses() {
        for text in ["SELECT a FROM t WHERE a = 1 && b = 'x'", "SELECT LEFT(a, 2) FROM t WHERE a = 1 && b = 'x'"] {
            let mut shape = Shape::new(0);
            assert_eq!(scan(text.as_bytes(), &mut shape), ShapeOutcome::Cacheable);
            match parse_with_parameters(text.as_bytes(), &shape, Dialect::default()).expect("a query") {
                Parameterised::Statement { deprecations, .. } => assert_eq!(deprecations, [Deprecation::AndSign]),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn many_uses_are_bounded() {
        let text = format!("SELECT 1{}", " && 1".repeat(DEPRECATIONS_MAX + 10));
        assert_eq!(found(&text).len(), DEPRECATIONS_MAX);
    }
}
