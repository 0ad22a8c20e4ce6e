//! Tests of constructors and evaluation together.

use proptest::prelude::*;

use crate::parameter::{Parameters, ParametersBuilder};
use crate::program::{ArithmeticOperator, BitOperator, CastTarget, CompareOperator, Expression, IsTest};
use crate::result_type::{Kind, ResultType};
use crate::scratch::Scratch;
use junctor_model::collation::CollationId;
use junctor_model::error::Result;
use junctor_model::id::ColumnNumber;
use junctor_model::row::{RowFormat, RowView};
use junctor_model::schema::ColumnDefinition;
use junctor_model::types::DataType;
use junctor_model::value::{Decimal, Value, ValueRef};

const COLLATIONS: [CollationId; CollationId::ALL.len()] = CollationId::ALL;

fn columns() -> Vec<ColumnDefinition> {
    let text = |collation| DataType::varchar(20, collation);
    let types = [
        DataType::integer(4, false),
        DataType::integer(8, true),
        DataType::double(),
        text(CollationId::UTF8MB4_0900_AI_CI),
        text(CollationId::BINARY),
    ];
    let column = |column_type| ColumnDefinition { nullable: true, ..ColumnDefinition::new("c", column_type) };
    types.into_iter().map(column).collect()
}

fn text() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::sample::select(vec!["", "1", "-1.5", "1e400", " 7 ", "abc", "ÄÖ", "%_\\", "9223372036854775808", "\0"])
            .prop_map(|text| text.as_bytes().to_vec()),
        prop::collection::vec(any::<u8>(), 0..6),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let decimal = (any::<i128>(), 0u8..=30).prop_map(|(mantissa, scale)| {
        // Up to 57 digits.
        let factor = if mantissa % 3 == 0 { 10_000_000_000_000_000_001 } else { 1 };
        let (number, factor) = (crate::decimal::new(mantissa, 0), crate::decimal::new(factor, 0));
        let product = crate::decimal::multiply(number, factor, 0)
            .and_then(|product| crate::decimal::multiply(product, Decimal::Narrow { mantissa: 1, scale }, scale));
        Value::Decimal(product.unwrap_or_default())
    });
    prop_oneof![
        Just(Value::Null),
        prop::sample::select(vec![0, 1, -1, 2, 40, i64::MIN, i64::MAX]).prop_map(Value::Int),
        prop::sample::select(vec![0, 1, 1 << 63, u64::MAX]).prop_map(Value::UInt),
        prop::sample::select(vec![0.0, -0.0, 0.5, -2.5, 1e300, f64::MAX, f64::MIN, 5e-324]).prop_map(Value::Double),
        decimal,
        text().prop_map(Value::Bytes),
    ]
}

/// Builds one expression from up to three others; missing ones are NULL.
fn build(shape: u16, collation: u8, mut operands: Vec<Expression>) -> Result<Expression> {
    let mut next = || operands.pop().unwrap_or_else(Expression::null);
    let compare = [
        CompareOperator::Equal,
        CompareOperator::NullSafeEqual,
        CompareOperator::NotEqual,
        CompareOperator::Less,
        CompareOperator::GreaterOrEqual,
    ];
    let arithmetic = [
        ArithmeticOperator::Add,
        ArithmeticOperator::Subtract,
        ArithmeticOperator::Multiply,
        ArithmeticOperator::Divide,
        ArithmeticOperator::DivideInteger,
        ArithmeticOperator::Remainder,
    ];
    let bits = [BitOperator::And, BitOperator::Or, BitOperator::Xor, BitOperator::ShiftLeft, BitOperator::ShiftRight];
    let functions: Vec<_> = crate::function::all().iter().flat_map(|family| family.functions).collect();
    let functions: Vec<_> = functions.into_iter().filter(|function| !function.is_of_session()).collect();
    let shape = usize::from(shape);
    Ok(match shape % 20 {
        0 => Expression::comparison(compare[shape / 20 % 5], next(), next())?,
        1 | 2 => Expression::arithmetic(arithmetic[shape / 20 % 6], next(), next()),
        3 => Expression::bits(bits[shape / 20 % 5], next(), next()),
        4 => Expression::negate(next()),
        5 => Expression::bit_not(next()),
        6 => Expression::between(shape & 32 == 0, next(), next(), next())?,
        7 => Expression::in_list(shape & 32 == 0, next(), vec![next(), next()])?,
        8 => Expression::like(shape & 32 == 0, next(), next(), Some('\\'))?,
        9 => Expression::case(vec![(next(), next())], Some(next()))?,
        10 => Expression::coalesce(vec![next(), next()])?,
        11 => Expression::null_if(next(), next())?,
        12 => Expression::and(vec![next(), Expression::or(vec![next(), Expression::logical_not(next())])]),
        13 => Expression::is([IsTest::Null, IsTest::True, IsTest::False][shape / 20 % 3], false, next()),
        14 => Expression::cast(cast_target(shape / 20, collation), next()),
        15 => Expression::collate(next(), COLLATIONS[usize::from(collation) % COLLATIONS.len()])?,
        16 => Expression::in_parameters(false, next(), 6, ResultType::integer(false, 11))?,
        _ => {
            let function = functions[shape / 20 % functions.len()];
            let written = function.arguments_max.min(3 + shape % 2).max(function.arguments_min);
            let count = written + function.settings.len();
            Expression::call(function.name, (0..count).map(|_| next()).collect())?
        }
    })
}

fn cast_target(shape: usize, collation: u8) -> CastTarget {
    let collation = COLLATIONS[usize::from(collation) % COLLATIONS.len()];
    match shape % 8 {
        0 => CastTarget::Signed,
        1 => CastTarget::Unsigned,
        2 => CastTarget::Double,
        3 => CastTarget::Decimal { precision: 10, scale: 3 },
        4 => CastTarget::Decimal { precision: 65, scale: 30 },
        5 => CastTarget::Char { length: Some(2), collation },
        6 => CastTarget::Char { length: None, collation },
        _ => CastTarget::Binary { length: Some(3) },
    }
}

/// A leaf: a constant, a column or a parameter.
fn leaf() -> impl Strategy<Value = Option<Expression>> {
    prop_oneof![
        4 => (value(), 0usize..COLLATIONS.len()).prop_map(|(value, at)| Some(Expression::constant(value, COLLATIONS[at]))),
        2 => (0u16..5).prop_map(|at| Some(Expression::column(ColumnNumber(at), &columns()[usize::from(at)], "`c`"))),
        1 => (0u16..6, 0usize..6).prop_map(|(ordinal, kind)| {
            let kinds = [Kind::Null, Kind::Int, Kind::UInt, Kind::Decimal, Kind::Double, Kind::String];
            Some(Expression::parameter(ordinal, kinds[kind], 0, CollationId::DEFAULT))
        }),
    ]
}

/// Any expression that the constructors accept.
fn expression() -> impl Strategy<Value = Option<Expression>> {
    leaf().prop_recursive(4, 24, 3, |inner| {
        (any::<u16>(), any::<u8>(), prop::collection::vec(inner, 1..4)).prop_map(|(shape, collation, operands)| {
            build(shape, collation, operands.into_iter().flatten().collect()).ok()
        })
    })
}

fn row_values() -> impl Strategy<Value = Vec<Value>> {
    let or_null = |value: BoxedStrategy<Value>| prop_oneof![3 => value, 1 => Just(Value::Null)];
    (
        or_null(any::<i32>().prop_map(|value| Value::Int(value.into())).boxed()),
        or_null(any::<u64>().prop_map(Value::UInt).boxed()),
        or_null((-1e9..1e9f64).prop_map(Value::Double).boxed()),
        or_null(text().prop_map(Value::Bytes).boxed()),
        or_null(text().prop_map(Value::Bytes).boxed()),
    )
        .prop_map(|(a, b, c, d, e)| vec![a, b, c, d, e])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn no_expression_panics_and_every_value_is_of_its_kind(
        expression in expression(),
        row in row_values(),
        parameters in prop::collection::vec(value(), 6),
    ) {
        let Some(expression) = expression else { return Ok(()) };
        let format = RowFormat::new(&columns());
        let mut image = Vec::new();
        format.encode(&row.iter().map(Value::as_ref).collect::<Vec<_>>(), &mut image).unwrap();
        let view = RowView::new(&format, &image);
        let mut builder = ParametersBuilder::new();
        parameters.iter().for_each(|value| builder.push(value.as_ref()));
        builder.begin_list();
        parameters.iter().for_each(|value| builder.push(value.as_ref()));
        let mut bytes = Vec::new();
        builder.append_to(&mut bytes).unwrap();
        let parameters = Parameters::from_bytes(&bytes);
        let scratch = Scratch::new();
        let value = expression.evaluate(Some(view), parameters, &scratch);
        let truth = expression.is_true(Some(view), parameters, &scratch);
        let _ = expression.describe(parameters);
        let _ = expression.result.result_column("x");
        if let Ok(value) = value {
            let kind = expression.result.kind;
            let fits = match value {
                ValueRef::Null => expression.result.nullable,
                ValueRef::Int(_) => kind == Kind::Int,
                ValueRef::UInt(_) => kind == Kind::UInt,
                ValueRef::Double(value) => kind == Kind::Double && value.is_finite(),
                ValueRef::Decimal(_) => kind == Kind::Decimal,
                ValueRef::Bytes(_) => matches!(kind, Kind::String | Kind::Geometry),
                ValueRef::Temporal(value) => Some(value.kind) == kind.temporal(),
                ValueRef::Json(document) => kind == Kind::Json && junctor_model::json::is_valid(document),
                ValueRef::Float(value) => kind == Kind::Float && value.is_finite(),
                ValueRef::Bit(_) | ValueRef::Choice(_) => false,
            };
            prop_assert!(fits, "{:?} of {:?}", value, expression);
            prop_assert!(!(value.is_null() && truth.unwrap()));
        }
    }
}

#[test]
fn programs_are_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    fn moved<T: Send>() {}
    shared::<Expression>();
    shared::<crate::aggregate::Accumulator>();
    shared::<ParametersBuilder>();
    moved::<Scratch>();
}

#[test]
fn memory_is_reused_from_row_to_row() {
    let column = Expression::column(ColumnNumber(3), &columns()[3], "`c`");
    let expression = Expression::call("UPPER", vec![column]).unwrap();
    let format = RowFormat::new(&columns());
    let mut scratch = Scratch::new();
    for text in ["a", "bc", ""] {
        let mut image = Vec::new();
        let values = [ValueRef::Null, ValueRef::Null, ValueRef::Null, ValueRef::Bytes(text.as_bytes()), ValueRef::Null];
        format.encode(&values, &mut image).unwrap();
        let value = expression.evaluate(Some(RowView::new(&format, &image)), Parameters::NONE, &scratch).unwrap();
        assert_eq!(value, ValueRef::Bytes(text.to_uppercase().as_bytes()));
        scratch.reset();
    }
}

#[test]
fn a_strict_write_turns_warnings_into_errors() {
    let one = || Expression::constant(Value::Int(1), CollationId::DEFAULT);
    let text = Expression::constant(Value::Bytes(b"x".to_vec()), CollationId::DEFAULT);
    let by_zero = Expression::constant(Value::Int(0), CollationId::DEFAULT);
    let quotient = Expression::arithmetic(ArithmeticOperator::Divide, one(), by_zero);
    let sum = Expression::arithmetic(ArithmeticOperator::Add, one(), text);
    let mut scratch = Scratch::new();
    assert_eq!(quotient.evaluate(None, Parameters::NONE, &scratch).unwrap(), ValueRef::Null);
    assert_eq!(sum.evaluate(None, Parameters::NONE, &scratch).unwrap(), ValueRef::Double(1.0));
    let warnings = scratch.take_warnings();
    assert_eq!(&*warnings[0].message, "Division by 0");
    assert_eq!(&*warnings[1].message, "Truncated incorrect DOUBLE value: 'x'");
    scratch.set_strict(true);
    let errno =
        |expression: &Expression| expression.evaluate(None, Parameters::NONE, &scratch).unwrap_err().code.errno();
    assert_eq!((errno(&quotient), errno(&sum)), (1365, 1292));
}

#[test]
fn errors_quote_the_expression_as_mysql_does() {
    let column = Expression::column(ColumnNumber(1), &columns()[1], "`t`.`c`");
    let parameter = Expression::parameter(0, Kind::Int, 0, CollationId::DEFAULT);
    let difference = Expression::arithmetic(ArithmeticOperator::Subtract, column, parameter);
    let format = RowFormat::new(&columns());
    let mut image = Vec::new();
    let values = [ValueRef::Null, ValueRef::UInt(5), ValueRef::Null, ValueRef::Null, ValueRef::Null];
    format.encode(&values, &mut image).unwrap();
    let mut builder = ParametersBuilder::new();
    builder.push(ValueRef::Int(10));
    let mut bytes = Vec::new();
    builder.append_to(&mut bytes).unwrap();
    let row = Some(RowView::new(&format, &image));
    let error = difference.evaluate(row, Parameters::from_bytes(&bytes), &Scratch::new()).unwrap_err();
    assert_eq!(error.to_string(), "ERROR 1690 (22003): BIGINT UNSIGNED value is out of range in '(`t`.`c` - 10)'");
    let unknown = Expression::call("nosuch", vec![]).unwrap_err();
    assert_eq!(unknown.to_string(), "ERROR 1305 (42000): FUNCTION nosuch does not exist");
    let text = |collation| {
        let text = Expression::constant(Value::Bytes(vec![]), CollationId::DEFAULT);
        Expression::collate(text, collation).unwrap()
    };
    let (left, right) = (text(CollationId::UTF8MB4_BIN), text(CollationId::UTF8MB4_GENERAL_CI));
    let mix = Expression::comparison(CompareOperator::Equal, left, right).unwrap_err();
    assert_eq!(
        &*mix.message,
        "Illegal mix of collations (utf8mb4_bin,EXPLICIT) and (utf8mb4_general_ci,EXPLICIT) for operation '='"
    );
}

#[test]
fn nothing_is_evaluated_after_a_condition_that_is_not_true() {
    let constant = |value| Expression::constant(value, CollationId::BINARY);
    let too_large =
        Expression::arithmetic(ArithmeticOperator::Multiply, constant(Value::Int(i64::MAX)), constant(Value::Int(2)));
    for first in [Value::Null, Value::Int(0)] {
        let filter = Expression::and(vec![constant(first), too_large.clone()]);
        assert_eq!(filter.is_true(None, Parameters::NONE, &Scratch::new()), Ok(false));
    }
    let filter = Expression::and(vec![constant(Value::Int(1)), too_large]);
    assert!(filter.is_true(None, Parameters::NONE, &Scratch::new()).is_err());
}
