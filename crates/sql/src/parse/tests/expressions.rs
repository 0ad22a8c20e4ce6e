//! Precedence and forms of expressions.

use super::{error_of, expression, missing_part};
use crate::parse::ParseErrorKind;
use crate::parse::expression::{
    BinaryOperator, CastTarget, Expression, InList, IsTest, Literal, ParameterNumber, StringLiteral, TrimSide,
    UnaryOperator,
};
use crate::parse::limit::NESTING_MAX;
use crate::parse::{Dialect, Statement, parse_in};

/// The expression as text, with parentheses around every operator.
fn shown(text: &str) -> String {
    show(&expression(text))
}

fn show(expression: &Expression) -> String {
    let not = |negated: &bool| if *negated { "NOT " } else { "" };
    match expression {
        Expression::Literal(Literal::Integer(value)) => value.to_string(),
        Expression::Literal(Literal::String(string)) => format!("'{}'", String::from_utf8_lossy(&string.bytes)),
        Expression::Literal(literal) => format!("{literal:?}"),
        Expression::Column(column) => {
            let parts = [&column.database, &column.table, &Some(column.name.clone())];
            parts.into_iter().flatten().cloned().collect::<Vec<_>>().join(".")
        }
        Expression::Unary { operator, operand } => {
            let sign = match operator {
                UnaryOperator::Minus => "-",
                UnaryOperator::BitNot => "~",
                UnaryOperator::Not => "NOT ",
            };
            format!("({sign}{})", show(operand))
        }
        Expression::Binary { operator, left, right } => {
            format!("({} {} {})", show(left), sign(*operator), show(right))
        }
        Expression::And(operands) => format!("({})", all(operands, " AND ")),
        Expression::Or(operands) => format!("({})", all(operands, " OR ")),
        Expression::Between { negated, operand, low, high } => {
            format!("({} {}BETWEEN {} AND {})", show(operand), not(negated), show(low), show(high))
        }
        Expression::InList { negated, operand, list: InList::Expressions(list) } => {
            format!("({} {}IN ({}))", show(operand), not(negated), all(list, ", "))
        }
        Expression::Is { negated, operand, test } => format!("({} IS {}{test:?})", show(operand), not(negated)),
        Expression::Like { negated, operand, pattern, .. } => {
            format!("({} {}LIKE {})", show(operand), not(negated), show(pattern))
        }
        Expression::Collate { operand, collation } => format!("({} COLLATE {collation})", show(operand)),
        Expression::Cast { operand, .. } => format!("CAST({})", show(operand)),
        Expression::Function(call) => format!("{}({})", call.name, all(&call.arguments, ", ")),
        Expression::Row(members) => format!("ROW({})", all(members, ", ")),
        other => format!("{other:?}"),
    }
}

fn all(expressions: &[Expression], separator: &str) -> String {
    expressions.iter().map(show).collect::<Vec<_>>().join(separator)
}

fn sign(operator: BinaryOperator) -> &'static str {
    match operator {
        BinaryOperator::Xor => "XOR",
        BinaryOperator::Equal => "=",
        BinaryOperator::NullSafeEqual => "<=>",
        BinaryOperator::NotEqual => "<>",
        BinaryOperator::Less => "<",
        BinaryOperator::LessOrEqual => "<=",
        BinaryOperator::Greater => ">",
        BinaryOperator::GreaterOrEqual => ">=",
        BinaryOperator::BitOr => "|",
        BinaryOperator::BitAnd => "&",
        BinaryOperator::ShiftLeft => "<<",
        BinaryOperator::ShiftRight => ">>",
        BinaryOperator::Add => "+",
        BinaryOperator::Subtract => "-",
        BinaryOperator::Multiply => "*",
        BinaryOperator::Divide => "/",
        BinaryOperator::IntegerDivide => "DIV",
        BinaryOperator::Modulo => "%",
        BinaryOperator::BitXor => "^",
    }
}

#[test]
fn operators_bind_as_in_mysql() {
    for (text, expected) in [
        ("1 + 2 * 3", "(1 + (2 * 3))"),
        ("1 - 2 - 3", "((1 - 2) - 3)"),
        ("a|b&c", "(a | (b & c))"),
        ("1+2^3*4", "(1 + ((2 ^ 3) * 4))"),
        ("-2^2", "(-2 ^ 2)"),
        ("~1&3", "((~1) & 3)"),
        ("1 << 2 + 3", "(1 << (2 + 3))"),
        ("a DIV b MOD c % d", "(((a DIV b) % c) % d)"),
        ("a = b = c", "((a = b) = c)"),
        ("a <=> b IS NULL", "((a <=> b) IS Null)"),
        ("a = b LIKE c", "(a = (b LIKE c))"),
        ("a OR b AND c", "(a OR (b AND c))"),
        ("a OR b XOR c AND d", "(a OR (b XOR (c AND d)))"),
        ("a || b && c", "(a OR (b AND c))"),
        ("a AND b AND c", "(a AND b AND c)"),
        ("a AND (b AND c) AND d", "(a AND b AND c AND d)"),
        ("NOT a BETWEEN 1 AND 2", "(NOT (a BETWEEN 1 AND 2))"),
        ("! a = b", "((NOT a) = b)"),
        ("NOT a = b", "(NOT (a = b))"),
        ("NOT a AND b", "((NOT a) AND b)"),
        ("NOT NOT a", "(NOT (NOT a))"),
        ("a BETWEEN 1 AND 2 AND b", "((a BETWEEN 1 AND 2) AND b)"),
        ("a BETWEEN b AND c BETWEEN d AND e", "(a BETWEEN b AND (c BETWEEN d AND e))"),
        ("a NOT IN (1, 2) OR b NOT LIKE 'x'", "((a NOT IN (1, 2)) OR (b NOT LIKE 'x'))"),
        ("a NOT RLIKE 'z' XOR b", "((NOT REGEXP_LIKE(a, 'z')) XOR b)"),
        ("a IS NOT TRUE AND b", "((a IS NOT True) AND b)"),
        ("-a COLLATE x", "(-(a COLLATE x))"),
        ("BINARY a = b", "(CAST(a) = b)"),
        ("- - 1", "(--1)"),
        ("-a.b.c + +1", "((-a.b.c) + 1)"),
        ("(a, b) IN ((1, 2), (3, 4))", "(ROW(a, b) IN (ROW(1, 2), ROW(3, 4)))"),
        ("ROW(a,b) > (1,2)", "(ROW(a, b) > ROW(1, 2))"),
        ("a & b = c", "((a & b) = c)"),
    ] {
        assert_eq!(shown(text), expected, "{text}");
    }
}

#[test]
fn operators_out_of_place_are_syntax_errors() {
    for text in [
        "SELECT 1 + NOT 2",
        "SELECT a = NOT b",
        "SELECT a IN (1) IN (2)",
        "SELECT a LIKE b LIKE c",
        "SELECT a BETWEEN 1",
        "SELECT a BETWEEN 1 OR 2",
        "SELECT ()",
        "SELECT a IN ()",
        "SELECT a IS 5",
        "SELECT a NOT b",
        "SELECT CASE END",
        "SELECT CASE a WHEN 1 END",
        "SELECT 1 +",
        "SELECT a b c",
        "SELECT a..b",
        "SELECT SUM(*)",
        "SELECT f(DISTINCT a)",
    ] {
        assert_eq!(error_of(text).0, ParseErrorKind::Syntax, "{text}");
    }
}

#[test]
fn literals_have_their_values() {
    let string = |bytes: &[u8], character_set: Option<&str>| {
        Literal::String(StringLiteral {
            bytes: bytes.to_vec(),
            character_set: character_set.map(str::to_owned),
            // Hexadecimal digits, and the text of N'...'.
            is_raw: matches!(character_set, Some("binary" | "utf8mb3")),
        })
    };
    for (text, expected) in [
        ("5", Literal::Integer(5)),
        ("-5", Literal::Integer(-5)),
        ("18446744073709551615", Literal::Integer(18_446_744_073_709_551_615)),
        ("-9223372036854775808", Literal::Integer(-9_223_372_036_854_775_808)),
        ("18446744073709551616", Literal::Decimal("18446744073709551616".to_owned())),
        ("-.5", Literal::Decimal("-.5".to_owned())),
        ("1.", Literal::Decimal("1.".to_owned())),
        ("1e3", Literal::Double(1000.0)),
        ("-1.5e-3", Literal::Double(-0.0015)),
        ("'a''b\\'c\\n\\0\\%\\q'", string(b"a'b'c\n\0\\%q", None)),
        ("\"d\"\"q'\"", string(b"d\"q'", None)),
        ("'a' 'b' \"c\"", string(b"abc", None)),
        ("_utf8mb4'abc'", string(b"abc", Some("utf8mb4"))),
        ("_binary 0x41", string(b"A", Some("binary"))),
        ("N'abc' 'd'", string(b"abcd", Some("utf8mb3"))),
        ("0x4142", Literal::Hexadecimal(b"AB".to_vec())),
        ("0x142", Literal::Hexadecimal(vec![1, 0x42])),
        ("x'4142'", Literal::Hexadecimal(b"AB".to_vec())),
        ("b'101'", Literal::Bits(vec![5])),
        ("0b100000001", Literal::Bits(vec![1, 1])),
        ("b''", Literal::Bits(vec![])),
        ("null", Literal::Null),
        ("TRUE", Literal::Boolean(true)),
    ] {
        assert_eq!(expression(text), Expression::Literal(expected), "{text}");
    }
}

#[test]
fn functions_of_special_form_become_plain_calls() {
    for (text, expected) in [
        ("SUBSTRING(a FROM 2 FOR 3)", "SUBSTRING(a, 2, 3)"),
        ("POSITION('a' IN b)", "LOCATE('a', b)"),
        ("CURRENT_TIMESTAMP", "CURRENT_TIMESTAMP()"),
        ("NOW(6)", "NOW(6)"),
        ("IF(a>1,'x','y')", "IF((a > 1), 'x', 'y')"),
        ("DATABASE()", "DATABASE()"),
        ("count (a)", "count(a)"),
    ] {
        assert_eq!(shown(text), expected, "{text}");
    }
    let Expression::Function(count) = expression("COUNT(DISTINCT a, b)") else { panic!("no call") };
    assert!(count.distinct && !count.star && count.arguments.len() == 2);
    let Expression::Function(count) = expression("COUNT(*)") else { panic!("no call") };
    assert!(count.star && count.arguments.is_empty());
    let Expression::Trim { side, removed, .. } = expression("TRIM(LEADING 'x' FROM a)") else { panic!("no trim") };
    assert_eq!((side, removed.is_some()), (TrimSide::Leading, true));
    let Expression::Cast { target, .. } = expression("CAST(a AS DECIMAL(10,2))") else { panic!("no cast") };
    assert_eq!(target, CastTarget::Decimal { precision: Some(10), scale: Some(2) });
}

#[test]
fn parameters_are_counted_from_the_left() {
    let Expression::Between { low, high, .. } = expression("a BETWEEN ? AND ?") else { panic!("no range") };
    assert_eq!((*low, *high), (Expression::Parameter(ParameterNumber(0)), Expression::Parameter(ParameterNumber(1))));
    assert_eq!(crate::parse::parse(b"SELECT ?, ? FROM t LIMIT ?").map(|parsed| parsed.parameter_count), Ok(3));
}

#[test]
fn unsupported_expressions_are_named() {
    for (text, what) in [
        ("SELECT SUM(a) OVER (GROUPS 1 PRECEDING) FROM t", "GROUPS"),
        ("SELECT SUM(a) OVER (ROWS 1 PRECEDING EXCLUDE TIES) FROM t", "EXCLUDE"),
        ("SELECT LAG(a) IGNORE NULLS OVER () FROM t", "IGNORE NULLS"),
        ("SELECT SUM(DISTINCT a) OVER () FROM t", "<window function>(DISTINCT ..)"),
        ("SELECT MATCH(a) AGAINST ('x') FROM t", "full-text search"),
    ] {
        assert_eq!(missing_part(text), what, "{text}");
    }
}

#[test]
fn is_null_is_true_and_is_false_parse_to_distinct_tests() {
    for (text, negated, test) in [
        ("a IS NULL", false, IsTest::Null),
        ("a IS NOT NULL", true, IsTest::Null),
        ("a IS UNKNOWN", false, IsTest::Unknown),
        ("a IS NOT FALSE", true, IsTest::False),
    ] {
        let Expression::Is { negated: is, test: kind, .. } = expression(text) else { panic!("{text}") };
        assert_eq!((is, kind), (negated, test), "{text}");
    }
}

#[test]
fn nesting_beyond_the_limit_is_an_error_and_no_overflow() {
    let deep = NESTING_MAX as usize * 1000;
    for text in [
        format!("SELECT {}1{}", "(".repeat(deep), ")".repeat(deep)),
        format!("SELECT {}1", "-".repeat(deep)),
        format!("SELECT {}1", "NOT ".repeat(deep)),
        format!("SELECT 1{}", "+1".repeat(deep)),
        format!("SELECT a{}", " COLLATE x".repeat(deep)),
        format!("SELECT {}1", "f(".repeat(deep)),
        format!("SELECT {}1", "@a := ".repeat(deep)),
        format!("SELECT {}1", "CASE WHEN ".repeat(deep)),
        format!("SELECT {}1", "a IN (".repeat(deep)),
        format!("SELECT {}1", "BINARY ".repeat(deep)),
        format!("{}SELECT 1", "(".repeat(deep)),
        format!("SELECT a{}", " XOR a AND b".repeat(deep)),
    ] {
        let (kind, _) = error_of(&text);
        assert_eq!(kind, ParseErrorKind::NestingTooDeep, "{}", &text[..40]);
        assert_eq!(kind.code().errno(), 1436);
    }
}

#[test]
fn a_query_has_at_most_61_tables() {
    let query = |tables: usize| {
        let tables: Vec<String> = (0..tables).map(|number| format!("t AS t{number}")).collect();
        format!("SELECT 1 FROM {}", tables.join(", "))
    };
    assert!(parse_in(query(61).as_bytes(), Dialect::default()).is_ok());
    let (kind, _) = error_of(&query(62));
    assert_eq!(kind.code().errno(), 1116);
}

#[test]
fn long_runs_of_and_and_or_are_one_node() {
    let text = format!("a{} {}", " OR a".repeat(50_000), " AND b".repeat(50_000));
    let Expression::Or(operands) = expression(&text) else { panic!("no run") };
    assert_eq!(operands.len(), 50_001);
    let Some(Expression::And(operands)) = operands.last() else { panic!("no run in the run") };
    assert_eq!(operands.len(), 50_001);
}

#[test]
fn the_dialect_determines_quotes_escapes_and_operators() {
    let shown_in = |dialect: Dialect, text: &str| {
        let parsed = parse_in(format!("DO {text}").as_bytes(), dialect).map(|parsed| parsed.statement);
        match parsed {
            Ok(Statement::Do(expressions)) => expressions.iter().map(show).collect::<Vec<_>>().join(", "),
            other => format!("{other:?}"),
        }
    };
    let default = Dialect::default();
    let ansi = Dialect { ansi_quotes: true, ..default };
    assert_eq!(shown_in(default, r#""a""b", `c``d`"#), "'a\"b', c`d");
    assert_eq!(shown_in(ansi, r#""a""b"."c\", 'x"'"#), "a\"b.c\\, 'x\"'");
    let plain = Dialect { no_backslash_escapes: true, ..default };
    assert_eq!(shown_in(default, r"'a\'b'"), "'a'b'");
    assert_eq!(shown_in(plain, r"'a\', 'b''c'"), "'a\\', 'b'c'");
    let pipes = Dialect { pipes_as_concat: true, ..default };
    assert_eq!(shown_in(default, "a || b AND c"), "(a OR (b AND c))");
    assert_eq!(shown_in(pipes, "a || -b || c ^ d"), "(CONCAT(CONCAT(a, (-b)), c) ^ d)");
    let high = Dialect { high_not_precedence: true, ..default };
    assert_eq!(shown_in(default, "NOT a = b"), "(NOT (a = b))");
    assert_eq!(shown_in(high, "NOT a = b"), "((NOT a) = b)");
    assert!(ansi.is_scannable(b"SELECT 'a'") && !ansi.is_scannable(b"SELECT \"a\""));
    assert!(plain.is_scannable(b"SELECT 'a'") && !plain.is_scannable(br"SELECT 'a\'"));
}

#[test]
fn at_time_zone_is_part_of_a_cast() {
    assert_eq!(shown("CAST(a AT TIME ZONE 'UTC' AS DATETIME(3))"), "CAST(AT TIME ZONE(a, 'UTC', Boolean(false)))");
    assert_eq!(
        shown("CAST(a AT TIME ZONE INTERVAL '+00:00' AS DATETIME)"),
        "CAST(AT TIME ZONE(a, '+00:00', Boolean(true)))"
    );
    assert_eq!(missing_part("SELECT CAST(a AT LOCAL AS DATETIME)"), "AT LOCAL");
    for wrong in [
        "SELECT CAST(a AT TIME ZONE 'UTC' AS DATE)",
        "SELECT CAST(a AT TIME ZONE b AS DATETIME)",
        "SELECT CONVERT(a AT TIME ZONE 'UTC', DATETIME)",
    ] {
        assert_eq!(error_of(wrong).0, ParseErrorKind::Syntax, "{wrong}");
    }
}

#[test]
fn the_grammar_knows_how_many_arguments_its_functions_have() {
    for wrong in
        ["LEFT(a)", "IF(a, b)", "SUBSTRING(a)", "MID(a)", "SUBSTR(a, 1, 2, 3)", "USER(1)", "YEAR()", "WEEK(a, 1, 2)"]
    {
        assert_eq!(error_of(&format!("SELECT {wrong}")).0, ParseErrorKind::Syntax, "{wrong}");
    }
    assert_eq!(shown("MID(a FROM 2 FOR 3)"), "SUBSTRING(a, 2, 3)");
    assert_eq!(shown("MD5()"), "MD5()");
}
