//! Hot path: at most 20 instructions per condition on numbers.
//!
//! The conditions of a filter on single columns.

use junctor_expression::{CompareDomain, CompareOperator, Expression, Node, Parameters, Scratch};
use junctor_model::collation::{CollationId, LikePattern};
use junctor_model::error::Result;
use junctor_model::id::ColumnNumber;
use junctor_model::row::{NumberForm, NumberPlace, RowFormat, RowView};
use junctor_model::value::{Value, ValueRef};

use super::constant_of;

/// Maximum number of texts of an IN list, which are compared one by one.
const TEXTS_MAX: usize = 64;
/// Maximum number of numbers of an IN list. They are sorted in each step of a scan.
const NUMBERS_MAX: usize = 1024;

/// The conjuncts of a filter, in its order.
#[derive(Debug)]
pub(in crate::read) struct FilterKernel {
    conjuncts: Vec<Conjunct>,
}

/// A column of text, and the collation in which it is compared.
#[derive(Clone, Copy, Debug)]
struct TextColumn {
    column: ColumnNumber,
    collation: CollationId,
}

#[derive(Debug)]
enum Conjunct {
    /// The number of a column compared with a constant.
    Number(NumberPlace, CompareOperator, i64),
    /// BETWEEN two constants.
    Between(NumberPlace, i64, i64),
    /// The numbers of two columns of one form.
    Columns(NumberPlace, CompareOperator, NumberPlace),
    /// IN a list of numbers, which are in order.
    InNumbers(NumberPlace, Vec<i64>),
    Text(TextColumn, CompareOperator, Box<[u8]>),
    InTexts(TextColumn, Vec<Box<[u8]>>),
    /// LIKE, or NOT LIKE.
    Like(ColumnNumber, LikePattern, bool),
    /// Anything else: the expression is evaluated.
    Expression,
}

/// The sources of columns and constants while conditions are compiled.
struct Compiler<'c> {
    format: &'c RowFormat,
    parameters: Parameters<'c>,
    scratch: &'c Scratch,
}

impl FilterKernel {
    /// Compiles a filter for rows of a format. `None` if no condition gains from it.
    pub fn new(
        filter: &Expression,
        format: &RowFormat,
        parameters: Parameters<'_>,
        scratch: &Scratch,
    ) -> Option<FilterKernel> {
        let compiler = Compiler { format, parameters, scratch };
        let operands = conjuncts_of(filter);
        // A conjunction in a conjunction goes on after NULL, and could warn there.
        if operands.iter().any(|operand| matches!(operand.node, Node::And(_))) {
            return None;
        }
        let conjuncts: Vec<Conjunct> =
            operands.iter().map(|operand| compiler.conjunct(operand).unwrap_or(Conjunct::Expression)).collect();
        let is_useful = conjuncts.iter().any(|conjunct| !matches!(conjunct, Conjunct::Expression));
        is_useful.then_some(FilterKernel { conjuncts })
    }

    /// Whether the filter of which this kernel was made is true for a row. Errors as
    /// [`Expression::evaluate`].
    #[inline]
    pub fn passes(
        &self,
        filter: &Expression,
        row: RowView<'_>,
        parameters: Parameters<'_>,
        scratch: &Scratch,
    ) -> Result<bool> {
        let image = row.image();
        for (conjunct, operand) in self.conjuncts.iter().zip(conjuncts_of(filter)) {
            let is_true = match conjunct {
                Conjunct::Number(place, operator, number) => match place.read(image) {
                    Some(own) => operator.holds(own.cmp(number)),
                    None => false,
                },
                Conjunct::Between(place, low, high) => place.read(image).is_some_and(|own| *low <= own && own <= *high),
                Conjunct::Columns(left, operator, right) => match (left.read(image), right.read(image)) {
                    (Some(left), Some(right)) => operator.holds(left.cmp(&right)),
                    _ => false,
                },
                Conjunct::InNumbers(place, list) => {
                    place.read(image).is_some_and(|own| list.binary_search(&own).is_ok())
                }
                Conjunct::Text(TextColumn { column, collation }, operator, text) => match row.column(*column) {
                    ValueRef::Bytes(own) => match operator {
                        CompareOperator::Equal | CompareOperator::NullSafeEqual => collation.equal(own, text),
                        CompareOperator::NotEqual => !collation.equal(own, text),
                        _ => operator.holds(collation.compare(own, text)),
                    },
                    ValueRef::Null => false,
                    _ => operand.is_true(Some(row), parameters, scratch)?,
                },
                Conjunct::InTexts(TextColumn { column, collation }, list) => match row.column(*column) {
                    ValueRef::Bytes(own) => list.iter().any(|text| collation.equal(own, text)),
                    ValueRef::Null => false,
                    _ => operand.is_true(Some(row), parameters, scratch)?,
                },
                Conjunct::Like(column, pattern, negated) => match row.column(*column) {
                    ValueRef::Bytes(own) => pattern.matches(own) != *negated,
                    ValueRef::Null => false,
                    _ => operand.is_true(Some(row), parameters, scratch)?,
                },
                Conjunct::Expression => operand.is_true(Some(row), parameters, scratch)?,
            };
            if !is_true {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn conjuncts_of(filter: &Expression) -> &[Expression] {
    match &filter.node {
        Node::And(operands) => operands,
        _ => std::slice::from_ref(filter),
    }
}

/// Whether values of a column are compared in this domain as their numbers are.
fn is_compared_as(form: NumberForm, domain: CompareDomain) -> bool {
    match form {
        NumberForm::Integer => matches!(domain, CompareDomain::Integer | CompareDomain::Decimal),
        NumberForm::Decimal { .. } => domain == CompareDomain::Decimal,
        NumberForm::Date | NumberForm::DateTime(_) => domain == CompareDomain::DateTime,
    }
}

impl Compiler<'_> {
    fn conjunct(&self, condition: &Expression) -> Option<Conjunct> {
        match &condition.node {
            Node::Compare(operator, domain, operands) => {
                let [left, right] = &**operands;
                match left.as_column() {
                    Some(_) => self.comparison(left, (*operator, *domain), right),
                    None => self.comparison(right, (operator.mirrored(), *domain), left),
                }
            }
            Node::Between { negated: false, domains, operands } => {
                let [value, low, high] = &**operands;
                let place = self.place(value)?;
                let low = self.number(&place, domains[0], low)?;
                Some(Conjunct::Between(place, low, self.number(&place, domains[1], high)?))
            }
            Node::InList { negated: false, operand, list } if list.len() <= NUMBERS_MAX => {
                let of_item = |(domain, item): &(CompareDomain, Expression)| {
                    Some((*domain, constant_of(item, self.parameters, self.scratch)?))
                };
                self.list(operand, list.iter().map(of_item).collect::<Option<_>>()?)
            }
            Node::InParameters { negated: false, domain, operand, parameter } => {
                let list = self.parameters.list(*parameter).take(NUMBERS_MAX + 1);
                let items: Vec<_> = list.map(|item| (*domain, item.to_value())).collect();
                if items.len() > NUMBERS_MAX { None } else { self.list(operand, items) }
            }
            Node::Like { negated, collation, escape, operands } => {
                let [text, pattern] = &**operands;
                let column = self.text_column(text, CompareDomain::String(*collation))?.column;
                let pattern = LikePattern::new(*collation, &self.text(pattern)?, *escape)?;
                Some(Conjunct::Like(column, pattern, *negated))
            }
            _ => None,
        }
    }

    /// IN a list of values. A row that equals none of them is rejected, whether NULL is among them or not.
    fn list(&self, operand: &Expression, mut items: Vec<(CompareDomain, Value)>) -> Option<Conjunct> {
        items.retain(|(_, item)| !item.is_null());
        let Some(place) = self.place(operand) else {
            let (domain, _) = items.first()?;
            let column = self.text_column(operand, *domain)?;
            if items.len() > TEXTS_MAX {
                return None;
            }
            let text = |(of, item): (CompareDomain, Value)| match item {
                Value::Bytes(text) if of == CompareDomain::String(column.collation) => Some(Box::<[u8]>::from(text)),
                _ => None,
            };
            return Some(Conjunct::InTexts(column, items.into_iter().map(text).collect::<Option<_>>()?));
        };
        let number = |(domain, item): &(CompareDomain, Value)| number_of(&place, *domain, item);
        let mut numbers: Vec<i64> = items.iter().map(number).collect::<Option<_>>()?;
        numbers.sort_unstable();
        Some(Conjunct::InNumbers(place, numbers))
    }

    /// The comparison of a column with a constant or another column.
    fn comparison(
        &self,
        column: &Expression,
        (operator, domain): (CompareOperator, CompareDomain),
        other: &Expression,
    ) -> Option<Conjunct> {
        let Some(place) = self.place(column) else {
            let column = self.text_column(column, domain)?;
            return Some(Conjunct::Text(column, operator, self.text(other)?));
        };
        if let Some(others) = self.place(other) {
            // NULL equals NULL.
            let is_same = comparable(place.form()) == comparable(others.form())
                && is_compared_as(place.form(), domain)
                && operator != CompareOperator::NullSafeEqual;
            return is_same.then_some(Conjunct::Columns(place, operator, others));
        }
        Some(Conjunct::Number(place, operator, self.number(&place, domain, other)?))
    }

    fn place(&self, expression: &Expression) -> Option<NumberPlace> {
        self.format.number_place(expression.as_column()?)
    }

    /// The number of a constant that is compared with a column.
    fn number(&self, place: &NumberPlace, domain: CompareDomain, constant: &Expression) -> Option<i64> {
        number_of(place, domain, &constant_of(constant, self.parameters, self.scratch)?)
    }

    /// A column whose texts are compared in the domain.
    fn text_column(&self, expression: &Expression, domain: CompareDomain) -> Option<TextColumn> {
        let CompareDomain::String(collation) = domain else { return None };
        Some(TextColumn { column: expression.as_column()?, collation })
    }

    fn text(&self, constant: &Expression) -> Option<Box<[u8]>> {
        match constant_of(constant, self.parameters, self.scratch)? {
            Value::Bytes(text) => Some(text.into()),
            _ => None,
        }
    }
}

/// The number of a value with which a column is compared.
fn number_of(place: &NumberPlace, domain: CompareDomain, value: &Value) -> Option<i64> {
    // In the integer domain, other numbers are rounded first.
    let is_rounded = domain == CompareDomain::Integer && !matches!(value, Value::Int(_) | Value::UInt(_));
    if is_rounded || !is_compared_as(place.form(), domain) { None } else { place.number_of(value.as_ref()) }
}

/// The form without what does not matter for comparisons.
fn comparable(form: NumberForm) -> NumberForm {
    match form {
        NumberForm::Decimal { scale, .. } => NumberForm::Decimal { precision: 0, scale },
        other => other,
    }
}
