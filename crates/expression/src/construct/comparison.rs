//! Comparisons, BETWEEN, IN and LIKE. Chooses the domain of each comparison: whether two operands are
//! compared as integers, decimals, doubles or strings.

use junctor_model::collation::CollationId;
use junctor_model::error::Result;
use junctor_model::row_encoding::DECIMALS_NOT_FIXED;
use junctor_model::value::{Value, ValueRef};

use super::collation::aggregate_collations;
use crate::number::parse_number;
use crate::program::{CompareDomain, CompareOperator, Expression, Node};
use crate::result_type::{Kind, ResultType};
use crate::rules::{Compared, compared};

impl Expression {
    /// `left operator right`. Error: 1267 for an illegal mix of collations.
    pub fn comparison(operator: CompareOperator, left: Expression, right: Expression) -> Result<Expression> {
        let mut operands = [left, right];
        let domain = unify_operands(operator.symbol(), &mut operands)?;
        let domain = fixed_domain(domain, &operands[0], &operands[1]);
        let nullable =
            operator != CompareOperator::NullSafeEqual && operands.iter().any(|operand| operand.result.nullable);
        let node = Node::Compare(operator, domain, Box::new(operands));
        Ok(Expression { node, result: ResultType::boolean().with_nullable(nullable) })
    }

    /// `operand [NOT] BETWEEN low AND high`. Error: 1267 for an illegal mix of collations.
    pub fn between(
        negated: bool,
        mut operand: Expression,
        mut low: Expression,
        mut high: Expression,
    ) -> Result<Expression> {
        let kinds = [&operand, &low, &high].map(|part| part.result.kind);
        let is_plain_number = |kind: &Kind| kind.is_number() && !kind.has_day() && *kind != Kind::Time;
        let has_date = kinds.iter().any(|kind| matches!(kind, Kind::Date | Kind::DateTime | Kind::Timestamp));
        let [low_domain, high_domain] = if kinds[0].is_text() && kinds[1..].iter().any(is_plain_number) {
            // If one bound is a number, MySQL compares a string operand as a number with both bounds.
            [CompareDomain::Double; 2]
        } else {
            let common = common_collation("between", &operand, [&low, &high])?;
            match has_date && !kinds.iter().any(|kind| is_plain_number(kind) || *kind == Kind::Json) {
                // One day makes days of all three.
                true => [CompareDomain::DateTime; 2],
                false => [&low, &high].map(|bound| domain_in(common, &operand, bound)),
            }
        };
        if let (CompareDomain::String(_), CompareDomain::String(_)) = (low_domain, high_domain) {
            encode_operands(low_domain, [&mut operand, &mut low, &mut high]);
        }
        let low = convert_constant(low, low_domain, &operand);
        let high = convert_constant(high, high_domain, &operand);
        let domains = [exact_domain(low_domain, &operand, &low), exact_domain(high_domain, &operand, &high)];
        let operands = [operand, low, high];
        let nullable = operands.iter().any(|operand| operand.result.nullable);
        let node = Node::Between { negated, domains, operands: Box::new(operands) };
        Ok(Expression { node, result: ResultType::boolean().with_nullable(nullable) })
    }

    /// `operand [NOT] IN (list)`. The list must not be empty. Error: 1267 for an illegal mix of collations.
    pub fn in_list(negated: bool, mut operand: Expression, list: Vec<Expression>) -> Result<Expression> {
        // Texts are compared in the collation that all have in common, also if the list has numbers.
        let common = common_collation(" IN ", &operand, &list)?;
        let mut nullable = operand.result.nullable;
        let mut items = Vec::with_capacity(list.len());
        // To MySQL, IN with one value is an equality.
        let is_equality = list.len() == 1;
        for item in list {
            nullable |= item.result.nullable;
            let domain = domain_in(common, &operand, &item);
            let item = convert_constant(item, domain, &operand);
            let domain = match exact_domain(domain, &operand, &item) {
                domain if is_equality => fixed_domain(domain, &operand, &item),
                domain => domain,
            };
            items.push((domain, item));
        }
        let is_string = |domain: &CompareDomain| matches!(domain, CompareDomain::String(_));
        if items.iter().any(|(domain, _)| is_string(domain)) {
            encode_operands(CompareDomain::String(common), [&mut operand]);
            for (domain, item) in &mut items {
                encode_operands(*domain, [item]);
            }
        }
        let node = Node::InList { negated, operand: Box::new(operand), list: items.into() };
        Ok(Expression { node, result: ResultType::boolean().with_nullable(nullable) })
    }

    /// `operand [NOT] IN (...)` where a single list parameter has all values; `item` is the type of each
    /// value. Error: 1267 for an illegal mix of collations.
    pub fn in_parameters(negated: bool, operand: Expression, parameter: u16, item: ResultType) -> Result<Expression> {
        let list = Expression::parameter_of_type(parameter, item);
        let operand = match domain_of(" IN ", &operand, &list)? {
            CompareDomain::String(collation) => operand.in_collation(collation),
            _ => operand,
        };
        let domain = exact_domain(domain_of(" IN ", &operand, &list)?, &operand, &list);
        let node = Node::InParameters { negated, domain, operand: Box::new(operand), parameter };
        Ok(Expression { node, result: ResultType::boolean().with_nullable(true) })
    }

    /// `text [NOT] LIKE pattern ESCAPE escape`. Error: 1267 for an illegal mix of collations.
    pub fn like(negated: bool, text: Expression, pattern: Expression, escape: Option<char>) -> Result<Expression> {
        let collation = aggregate_collations("like", [&text, &pattern])?.collation;
        let operands = [text.in_collation(collation), pattern.in_collation(collation)];
        let nullable = operands.iter().any(|operand| operand.result.nullable);
        let node = Node::Like { negated, collation, escape, operands: Box::new(operands) };
        Ok(Expression { node, result: ResultType::boolean().with_nullable(nullable) })
    }

    /// NULLIF(left, right). Error: 1267 for an illegal mix of collations.
    pub fn null_if(left: Expression, mut right: Expression) -> Result<Expression> {
        let result = left.result.with_nullable(true);
        let domain = domain_of("nullif", &left, &right)?;
        // The result is the left operand, which therefore keeps its encoding.
        encode_operands(CompareDomain::String(left.result.collation), [&mut right]);
        let domain = fixed_domain(exact_domain(domain, &left, &right), &left, &right);
        Ok(Expression { node: Node::NullIf(domain, Box::new([left, right])), result })
    }
}

/// Finds the domain of two operands. If one is a constant of another kind, converts it now instead of for
/// each row.
fn unify_operands(operation: &str, operands: &mut [Expression; 2]) -> Result<CompareDomain> {
    let [left, right] = operands;
    let domain = domain_of(operation, left, right)?;
    encode_operands(domain, [left, right]);
    if right.as_constant().is_some() {
        *right = convert_constant(std::mem::replace(right, Expression::null()), domain, left);
    } else if left.as_constant().is_some() {
        *left = convert_constant(std::mem::replace(left, Expression::null()), domain, right);
    }
    Ok(exact_domain(domain, left, right))
}

/// Brings texts and bytes that are compared as strings into one encoding.
fn encode_operands<const N: usize>(domain: CompareDomain, operands: [&mut Expression; N]) {
    let CompareDomain::String(collation) = domain else { return };
    for operand in operands {
        *operand = std::mem::replace(operand, Expression::null()).compared_in(collation);
    }
}

/// The collation of an operand and a list, if it is compared with one of them as a text. Errors: 1267, 1270
/// and 1271.
fn common_collation<'e>(
    operation: &str,
    operand: &'e Expression,
    list: impl IntoIterator<Item = &'e Expression>,
) -> Result<CollationId> {
    let all: Vec<&Expression> = std::iter::once(operand).chain(list).collect();
    match all[1..].iter().any(|item| are_texts(operand, item)) {
        true => Ok(aggregate_collations(operation, all.iter().copied())?.collation),
        false => Ok(CollationId::BINARY),
    }
}

/// Whether two operands are compared in a collation.
fn are_texts(left: &Expression, right: &Expression) -> bool {
    compared(left.result.kind, right.result.kind) == Compared::Text
}

/// The domain for comparing values of these two types, as MySQL chooses it.
pub(super) fn domain_of(operation: &str, left: &Expression, right: &Expression) -> Result<CompareDomain> {
    let collation = match are_texts(left, right) {
        true => aggregate_collations(operation, [left, right])?.collation,
        false => CollationId::BINARY,
    };
    Ok(domain_in(collation, left, right))
}

/// The domain for comparing values of these two types; texts are compared in `collation`.
fn domain_in(collation: CollationId, left: &Expression, right: &Expression) -> CompareDomain {
    match compared(left.result.kind, right.result.kind) {
        Compared::Integer => CompareDomain::Integer,
        Compared::Decimal => CompareDomain::Decimal,
        Compared::Double => CompareDomain::Double,
        Compared::Number => CompareDomain::Number,
        Compared::Text => CompareDomain::String(collation),
        Compared::Bytes => CompareDomain::String(CollationId::BINARY),
        Compared::DateTime => CompareDomain::DateTime,
        Compared::Time => CompareDomain::Time,
        Compared::Json => CompareDomain::Json,
    }
}

/// Converts a string constant to a number if it is compared with one. A string that is not entirely a number
/// stays a string, so that each comparison causes a warning.
fn convert_constant(constant: Expression, domain: CompareDomain, other: &Expression) -> Expression {
    let Some(Value::Bytes(text)) = constant.as_constant() else { return constant };
    let stays_text = matches!(other.result.kind, Kind::String | Kind::Year);
    if !matches!(domain, CompareDomain::Number | CompareDomain::Double) || stays_text {
        return constant;
    }
    let parsed = parse_number(text);
    if parsed.is_truncated || parsed.is_out_of_range {
        return constant;
    }
    let number = match (parsed.value, domain) {
        (ValueRef::Int(value), CompareDomain::Double) => Value::Double(value as f64),
        (ValueRef::UInt(value), CompareDomain::Double) => Value::Double(value as f64),
        (value, _) => value.to_value(),
    };
    Expression::constant(number, CollationId::BINARY)
}

/// The domain after constants have been converted: two integers are compared as integers, an integer and a
/// double as doubles. A number that the statement gives for a column of days or years is read as one by
/// [`CompareDomain::Number`], if it is one; MySQL does so for columns only, not for other expressions.
fn exact_domain(domain: CompareDomain, left: &Expression, right: &Expression) -> CompareDomain {
    match domain {
        CompareDomain::Integer | CompareDomain::Number | CompareDomain::Decimal | CompareDomain::Double
            if reads_year(left, right) || reads_year(right, left) =>
        {
            CompareDomain::Number
        }
        CompareDomain::Integer | CompareDomain::Number if reads_number(left, right) || reads_number(right, left) => {
            CompareDomain::Number
        }
        // A year is a number to a text that differs from row to row.
        CompareDomain::Number if [left, right].iter().any(|side| side.result.kind == Kind::Year) => {
            CompareDomain::Double
        }
        CompareDomain::Number if left.result.is_integer() && right.result.is_integer() => CompareDomain::Integer,
        CompareDomain::Number if left.result.kind != Kind::String && right.result.kind != Kind::String => {
            CompareDomain::Double
        }
        domain => domain,
    }
}

/// The domain of a comparison by an operator or NULLIF; BETWEEN, CASE and
/// IN with several values compare exactly. Doubles with a
/// fixed number of digits after the point are equal if they differ by less than that. Columns of one type are
/// rounded alike, so equal values are the same double.
fn fixed_domain(domain: CompareDomain, left: &Expression, right: &Expression) -> CompareDomain {
    let [own, other] = [left.result.decimals, right.result.decimals];
    let are_columns = [left, right].iter().all(|side| matches!(side.node, Node::Column { .. }));
    let is_one_type = are_columns && left.result.kind == right.result.kind && own == other;
    match domain {
        CompareDomain::Double if own < DECIMALS_NOT_FIXED && other < DECIMALS_NOT_FIXED && !is_one_type => {
            CompareDomain::FixedDouble(own.max(other))
        }
        domain => domain,
    }
}

/// Whether the other side is a number or text that no row determines, and the column's values are years.
fn reads_year(column: &Expression, number: &Expression) -> bool {
    let kind = number.result.kind;
    let fits = number.result.is_exact() || matches!(kind, Kind::Double | Kind::String);
    column.result.kind == Kind::Year && fits && matches!(column.node, Node::Column { .. }) && !number.reads_column()
}

/// Whether the other side is a number that no row determines, and the column's values are days.
fn reads_number(column: &Expression, number: &Expression) -> bool {
    let fits = column.result.kind.has_day() && number.result.is_exact();
    fits && matches!(column.node, Node::Column { .. }) && !number.reads_column()
}
