//! Comparisons, BETWEEN, IN and LIKE. Chooses the domain of each comparison: whether two operands are
//! compared as integers, decimals, doubles or strings.

use junctor_model::collation::CollationId;
use junctor_model::error::Result;
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
        if [&operand, &low, &high].into_iter().all(|part| part.result.is_text()) {
            aggregate_collations("between", [&operand, &low, &high])?;
        }
        let mut low_domain = domain_of("between", &operand, &low)?;
        let mut high_domain = domain_of("between", &operand, &high)?;
        let kinds = [&operand, &low, &high].map(|part| part.result.kind);
        let is_plain_number = |kind: &Kind| kind.is_number() && !kind.has_day() && *kind != Kind::Time;
        let has_date = kinds.iter().any(|kind| matches!(kind, Kind::Date | Kind::DateTime | Kind::Timestamp));
        if kinds[0].is_text() && kinds[1..].iter().any(is_plain_number) {
            // If one bound is a number, MySQL compares a string operand as a number with both bounds.
            (low_domain, high_domain) = (CompareDomain::Double, CompareDomain::Double);
        } else if has_date && !kinds.iter().any(|kind| is_plain_number(kind) || *kind == Kind::Json) {
            // One day makes days of all three.
            (low_domain, high_domain) = (CompareDomain::DateTime, CompareDomain::DateTime);
        }
        if let (CompareDomain::String(_), CompareDomain::String(_)) = (low_domain, high_domain) {
            // Texts alone are compared in the collation that all have in common.
            let common = CompareDomain::String(aggregate_collations("between", [&operand, &low, &high])?.collation);
            (low_domain, high_domain) = (common, common);
            encode_operands(common, [&mut operand, &mut low, &mut high]);
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
        let all = || std::iter::once(&operand).chain(&list);
        if all().all(|part| part.result.is_text()) {
            aggregate_collations(" IN ", all())?;
        }
        let mut nullable = operand.result.nullable;
        let mut items = Vec::with_capacity(list.len());
        for item in list {
            nullable |= item.result.nullable;
            let domain = domain_of(" IN ", &operand, &item)?;
            let item = convert_constant(item, domain, &operand);
            items.push((exact_domain(domain, &operand, &item), item));
        }
        // Texts alone are compared in the collation that all have in common.
        if items.iter().all(|(domain, _)| matches!(domain, CompareDomain::String(_))) {
            let all = std::iter::once(&operand).chain(items.iter().map(|(_, item)| item));
            let common = CompareDomain::String(aggregate_collations(" IN ", all)?.collation);
            encode_operands(common, [&mut operand]);
            for (domain, item) in &mut items {
                *domain = common;
                encode_operands(common, [item]);
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
        let domain = exact_domain(domain, &left, &right);
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
        *operand = std::mem::replace(operand, Expression::null()).in_collation(collation);
    }
}

/// The domain for comparing values of these two types, as MySQL chooses it.
pub(super) fn domain_of(operation: &str, left: &Expression, right: &Expression) -> Result<CompareDomain> {
    Ok(match compared(left.result.kind, right.result.kind) {
        Compared::Integer => CompareDomain::Integer,
        Compared::Decimal => CompareDomain::Decimal,
        Compared::Double => CompareDomain::Double,
        Compared::Number => CompareDomain::Number,
        Compared::Text => CompareDomain::String(aggregate_collations(operation, [left, right])?.collation),
        Compared::Bytes => CompareDomain::String(CollationId::BINARY),
        Compared::DateTime => CompareDomain::DateTime,
        Compared::Time => CompareDomain::Time,
        Compared::Json => CompareDomain::Json,
    })
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
        CompareDomain::Number if left.result.is_integer() && right.result.is_integer() => CompareDomain::Integer,
        CompareDomain::Number if left.result.kind != Kind::String && right.result.kind != Kind::String => {
            CompareDomain::Double
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
