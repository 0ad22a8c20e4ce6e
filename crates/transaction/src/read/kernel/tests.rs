use junctor_expression::program::{ArithmeticOperator, CompareOperator};
use junctor_expression::{Expression, Parameters, Scratch};
use junctor_kernel::Random;
use junctor_model::collation::CollationId;
use junctor_model::id::ColumnNumber;
use junctor_model::row::{RowFormat, RowView};
use junctor_model::schema::ColumnDefinition;
use junctor_model::temporal::{Parts, Temporal, TemporalKind};
use junctor_model::types::DataType;
use junctor_model::value::{Decimal, Value, ValueRef};

use super::{FilterKernel, NumberKernel};

/// A nullable column of each type that kernels read, of others, and columns that are never NULL.
fn columns() -> Vec<ColumnDefinition> {
    let types = [
        DataType::integer(1, false),
        DataType::integer(1, true),
        DataType::integer(2, false),
        DataType::integer(3, false),
        DataType::integer(4, true),
        DataType::integer(8, false),
        DataType::integer(8, true),
        DataType::decimal(15, 2, false),
        DataType::decimal(18, 0, false),
        DataType::decimal(7, 4, false),
        DataType::decimal(30, 5, false),
        DataType::date(),
        DataType::date_time(0),
        DataType::date_time(3),
        DataType::varchar(20, CollationId::UTF8MB4_BIN),
        DataType::varchar(20, CollationId::UTF8MB4_GENERAL_CI),
    ];
    let define = |(number, (column_type, nullable)): (usize, (DataType, bool))| ColumnDefinition {
        nullable,
        ..ColumnDefinition::new(&format!("c{number}"), column_type)
    };
    let both = types.into_iter().flat_map(|column_type| [(column_type.clone(), true), (column_type, false)]);
    both.enumerate().map(define).collect()
}

struct Draw(Random);

impl Draw {
    fn below(&mut self, bound: u64) -> u64 {
        self.0.below(bound)
    }

    fn one_of<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len() as u64) as usize]
    }

    fn temporal(&mut self, kind: TemporalKind, digits: u8) -> Value {
        let mut parts = Parts { year: 2000, month: 1 + self.below(2) as u8, ..Parts::default() };
        parts.day = 1 + self.below(3) as u8;
        if kind == TemporalKind::DateTime {
            parts.hour = self.one_of(&[0, 12]);
            parts.microsecond = if digits == 3 { self.one_of(&[0, 5000]) } else { 0 };
        }
        Value::Temporal(Temporal::from_parts(kind, digits, &parts))
    }

    fn text(&mut self) -> Value {
        Value::Bytes(self.one_of(&["", "a", "A", "a ", "ab", "Ab", "abc", "cab", "ä"]).into())
    }

    /// A value that a column of the number holds, from few values, so that many are equal.
    fn value(&mut self, number: usize, nullable: bool) -> Value {
        if nullable && self.below(5) == 0 {
            return Value::Null;
        }
        let small = self.below(6) as i64;
        let sign = self.one_of(&[1, -1]);
        match number / 2 {
            1 | 4 | 6 => Value::UInt(small as u64),
            5 => Value::Int(self.one_of(&[small, -small, i64::MAX, i64::MIN])),
            0 | 2 | 3 => Value::Int(sign * small),
            7 => Value::Decimal(Decimal::Narrow { mantissa: i128::from(sign * small) * 50, scale: 2 }),
            8 => Value::Decimal(Decimal::Narrow { mantissa: i128::from(sign * small), scale: 0 }),
            9 => Value::Decimal(Decimal::Narrow { mantissa: i128::from(sign * small) * 5000, scale: 4 }),
            10 => Value::Decimal(Decimal::Narrow { mantissa: i128::from(small) * 100_000, scale: 5 }),
            11 => self.temporal(TemporalKind::Date, 0),
            12 => self.temporal(TemporalKind::DateTime, 0),
            13 => self.temporal(TemporalKind::DateTime, 3),
            _ => self.text(),
        }
    }

    /// A constant that a column may be compared with, often of another type.
    fn constant(&mut self, number: usize) -> Expression {
        let small = self.below(6) as i64;
        let value = match (number / 2, self.below(4)) {
            (0..=10, 0) => Value::Decimal(Decimal::Narrow { mantissa: i128::from(small) * 5, scale: 1 }),
            (0..=10, 1) => Value::Decimal(Decimal::Narrow { mantissa: i128::from(small) * 125, scale: 3 }),
            (0..=10, 2) => Value::UInt(self.one_of(&[small as u64, u64::MAX])),
            (0..=10, _) => Value::Int(small - 2),
            (11..=13, 0) => self.temporal(TemporalKind::Date, 0),
            (11..=13, 1) => self.temporal(TemporalKind::DateTime, 3),
            (11..=13, _) => self.temporal(TemporalKind::DateTime, 0),
            _ => self.text(),
        };
        let value = if self.below(20) == 0 { Value::Null } else { value };
        Expression::constant(value, CollationId::UTF8MB4_BIN)
    }

    fn column(&mut self, columns: &[ColumnDefinition], number: usize) -> Expression {
        Expression::column(ColumnNumber(number as u16), &columns[number], "c")
    }

    fn operator(&mut self) -> CompareOperator {
        use CompareOperator::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual, NullSafeEqual};
        self.one_of(&[Equal, NotEqual, Less, LessOrEqual, Greater, GreaterOrEqual, NullSafeEqual])
    }

    fn condition(&mut self, columns: &[ColumnDefinition]) -> Option<Expression> {
        let number = self.below(columns.len() as u64) as usize;
        let column = self.column(columns, number);
        match self.below(6) {
            0 | 1 => {
                let (operator, constant) = (self.operator(), self.constant(number));
                let (left, right) = if self.below(2) == 0 { (column, constant) } else { (constant, column) };
                Expression::comparison(operator, left, right).ok()
            }
            2 => {
                let near = (number ^ 1).min(columns.len() - 1);
                let any = self.below(columns.len() as u64) as usize;
                let other = self.one_of(&[near, any]);
                let other = self.column(columns, other);
                Expression::comparison(self.operator(), column, other).ok()
            }
            3 => {
                let (low, high) = (self.constant(number), self.constant(number));
                Expression::between(self.below(4) == 0, column, low, high).ok()
            }
            4 => {
                let list = (0..1 + self.below(3)).map(|_| self.constant(number)).collect();
                Expression::in_list(self.below(4) == 0, column, list).ok()
            }
            _ => {
                let number = columns.len() - 1 - self.below(4) as usize;
                let pattern = self.one_of(&["a%", "%b%", "%", "", "a_", "%c", "a%c", "A%", "%a%b"]);
                let pattern = Expression::constant(Value::Bytes(pattern.into()), CollationId::UTF8MB4_BIN);
                let column = self.column(columns, number);
                Expression::like(self.below(2) == 0, column, pattern, Some('\\')).ok()
            }
        }
    }

    /// Arithmetic on columns of exact numbers and constants.
    fn number(&mut self, columns: &[ColumnDefinition], depth: u32) -> Expression {
        if depth == 0 || self.below(4) == 0 {
            let number = self.below(22) as usize;
            return match self.below(4) {
                0 => self.constant(number),
                _ => self.column(columns, number),
            };
        }
        let operator = self.one_of(&[
            ArithmeticOperator::Add,
            ArithmeticOperator::Subtract,
            ArithmeticOperator::Multiply,
            ArithmeticOperator::Divide,
        ]);
        let (left, right) = (self.number(columns, depth - 1), self.number(columns, depth - 1));
        Expression::arithmetic(operator, left, right)
    }

    fn image(&mut self, columns: &[ColumnDefinition], format: &RowFormat) -> Vec<u8> {
        let values: Vec<Value> =
            columns.iter().enumerate().map(|(number, column)| self.value(number, column.nullable)).collect();
        let values: Vec<ValueRef<'_>> = values.iter().map(Value::as_ref).collect();
        let mut image = Vec::new();
        format.encode(&values, &mut image).expect("values of the columns");
        image
    }
}

#[test]
fn a_filter_kernel_accepts_the_rows_that_the_filter_accepts() {
    let columns = columns();
    let format = RowFormat::new(&columns);
    let mut draw = Draw(Random::new(0x51_1E));
    let mut scratch = Scratch::new();
    let images: Vec<Vec<u8>> = (0..200).map(|_| draw.image(&columns, &format)).collect();
    let (mut compiled, mut accepted) = (0, 0);
    for _ in 0..4000 {
        let conditions: Vec<Expression> = (0..1 + draw.below(3)).filter_map(|_| draw.condition(&columns)).collect();
        let Some(one) = conditions.first().cloned() else { continue };
        let filter = if conditions.len() == 1 { one } else { Expression::and(conditions) };
        let Some(kernel) = FilterKernel::new(&filter, &format, Parameters::NONE, &scratch) else { continue };
        compiled += 1;
        for _ in 0..20 {
            scratch.reset();
            let row = RowView::new(&format, &images[draw.below(images.len() as u64) as usize]);
            let expected = filter.is_true(Some(row), Parameters::NONE, &scratch).expect("a condition without errors");
            let found = kernel.passes(&filter, row, Parameters::NONE, &scratch).expect("a condition without errors");
            assert_eq!(found, expected, "{} for {row:?}", filter.describe(Parameters::NONE));
            accepted += usize::from(found);
        }
    }
    assert!(compiled > 1000 && accepted > 1000, "{compiled} compiled, {accepted} accepted");
}

#[test]
fn a_number_kernel_computes_what_the_expression_does() {
    let columns = columns();
    let format = RowFormat::new(&columns);
    let mut draw = Draw(Random::new(0xDEC1));
    let mut scratch = Scratch::new();
    let images: Vec<Vec<u8>> = (0..200).map(|_| draw.image(&columns, &format)).collect();
    let (mut compiled, mut computed) = (0, 0);
    for _ in 0..4000 {
        let depth = draw.below(4) as u32;
        let expression = draw.number(&columns, depth);
        let Some(kernel) = NumberKernel::new(&expression, &format, Parameters::NONE, &scratch) else { continue };
        compiled += 1;
        for _ in 0..20 {
            scratch.reset();
            let row = RowView::new(&format, &images[draw.below(images.len() as u64) as usize]);
            let Some(found) = kernel.value(row) else { continue };
            let expected = expression.evaluate_unrounded(Some(row), Parameters::NONE, &scratch).expect("no overflow");
            // A difference of equal numbers has no digits after the point, which SUM and AVG do not see.
            let scale = |value: ValueRef<'_>| match value {
                ValueRef::Decimal(value) => Some(value.scale()),
                _ => None,
            };
            let text = expression.describe(Parameters::NONE);
            assert_eq!(found, expected, "{text}");
            assert!(scale(found) >= scale(expected), "{text}: {found:?}, {expected:?}");
            computed += 1;
        }
    }
    assert!(compiled > 300 && computed > 3000, "{compiled} compiled, {computed} computed");
}
