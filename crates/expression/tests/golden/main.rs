//! Expressions with MySQL's answers. Each line of `cases.txt` is an expression, `=>`, the answer as a client
//! sees it (or `ERROR` and its number), and the number of each warning after a `!`.

mod parse;
mod store;

use junctor_expression::{Expression, Parameters, Scratch};
use junctor_model::collation::CollationId;
use junctor_model::error::Result;
use junctor_model::row::{RowFormat, RowView};
use junctor_model::row_encoding::append_text_column;
use junctor_model::schema::ColumnDefinition;
use junctor_model::temporal::{Parts, Temporal, TemporalKind};
use junctor_model::types::DataType;
use junctor_model::value::{Decimal, Value, ValueRef};

const CASES: &str = include_str!("cases.txt");

#[test]
fn every_expression_has_mysqls_result() {
    let mut wrong = Vec::new();
    let table = Table::new();
    let mut count = 0;
    for line in CASES.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let (sql, expected) = line.split_once(" => ").unwrap_or((line, ""));
        let answer = table.answer(sql);
        count += 1;
        if answer != expected {
            wrong.push(format!("{sql} => {answer}\n    expected {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {count} cases are wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(count > 300);
}

struct Table {
    columns: Vec<ColumnDefinition>,
    format: RowFormat,
    image: Vec<u8>,
}

impl Table {
    /// A table with the single row that all cases read.
    fn new() -> Table {
        let integer = |bytes, unsigned| DataType::integer(bytes, unsigned);
        let text = |collation| DataType::varchar(20, collation);
        let general = CollationId::UTF8MB4_GENERAL_CI;
        let bytes = |text: &str| Value::Bytes(text.as_bytes().to_vec());
        let noon = Parts { year: 2024, month: 2, day: 29, hour: 12, ..Parts::default() };
        let noon = Temporal::from_parts(TemporalKind::DateTime, 0, &noon);
        let row = [
            ("i", integer(4, false), Value::Int(7)),
            ("m", integer(4, false), Value::Int(-3)),
            ("u", integer(4, true), Value::UInt(5)),
            ("b", integer(8, false), Value::Int(i64::MAX)),
            ("ub", integer(8, true), Value::UInt(u64::MAX)),
            ("d", DataType::double(), Value::Double(2.5)),
            ("s", text(general), bytes("Abc")),
            ("e", text(general), bytes("äöü€")),
            ("n", integer(4, false), Value::Null),
            ("ns", text(general), Value::Null),
            ("bin", text(CollationId::BINARY), bytes("Ab\0")),
            ("z", integer(4, false), Value::Int(0)),
            ("c", DataType::char(10, general), bytes("Abc")),
            ("g", text(CollationId::UTF8MB4_BIN), bytes("abc")),
            ("da", DataType::date(), Value::Temporal(Temporal::date(2024, 2, 29))),
            ("dt", DataType::date_time(0), Value::Temporal(noon)),
            ("y", DataType::year(), Value::Temporal(Temporal::year(2024))),
            ("w", integer(4, false), Value::Int(24)),
        ];
        let columns: Vec<_> = row.iter().map(|(name, column_type, _)| column(name, column_type.clone())).collect();
        let format = RowFormat::new(&columns);
        let values: Vec<_> = row.iter().map(|(_, _, value)| value.as_ref()).collect();
        let mut image = Vec::new();
        format.encode(&values, &mut image).unwrap();
        Table { columns, format, image }
    }

    fn answer(&self, sql: &str) -> String {
        let mut scratch = Scratch::new();
        let answer = match self.evaluate(sql, &scratch) {
            Ok(text) => text,
            Err(error) => return format!("ERROR {}", error.code.errno()),
        };
        let warnings: Vec<_> =
            scratch.take_warnings().iter().map(|warning| format!(" ! {}", warning.code.errno())).collect();
        answer + &warnings.concat()
    }

    fn evaluate(&self, sql: &str, scratch: &Scratch) -> Result<String> {
        let expression = parse::parse(sql, &self.columns)?;
        let row = RowView::new(&self.format, &self.image);
        let value = expression.evaluate(Some(row), Parameters::NONE, scratch)?;
        check_kind(&expression, value);
        if value.is_null() {
            return Ok("NULL".into());
        }
        let mut out = Vec::new();
        append_text_column(value, expression.result.decimals, &mut out);
        Ok(String::from_utf8_lossy(&out[1..]).replace('\0', "\\0"))
    }
}

/// Checks that a value is NULL or has the kind, scale and maximum length of its static type.
fn check_kind(expression: &Expression, value: ValueRef<'_>) {
    use junctor_expression::Kind;
    let kind = expression.result.kind;
    let fits = match value {
        ValueRef::Null => expression.result.nullable,
        ValueRef::Int(_) => kind == Kind::Int,
        ValueRef::UInt(_) => kind == Kind::UInt,
        ValueRef::Double(_) => kind == Kind::Double,
        // A number of so many digits has fewer after the point.
        ValueRef::Decimal(value @ Decimal::Wide(_)) => {
            kind == Kind::Decimal && value.scale() <= expression.result.decimals
        }
        ValueRef::Decimal(value) => kind == Kind::Decimal && value.scale() == expression.result.decimals,
        ValueRef::Bytes(text) => {
            let characters = expression.result.collation.character_set().character_count(text);
            matches!(kind, Kind::String | Kind::Geometry) && characters <= expression.result.length as usize
        }
        ValueRef::Float(_) => kind == Kind::Float,
        ValueRef::Temporal(value) => Some(value.kind) == kind.temporal(),
        ValueRef::Bit(_) => kind == Kind::Bit,
        ValueRef::Json(_) => kind == Kind::Json,
        ValueRef::Choice(_) => matches!(kind, Kind::Enum | Kind::Set),
    };
    assert!(fits, "{value:?} is not {:?}: {}", expression.result, expression.describe(Parameters::NONE));
}

fn column(name: &str, column_type: DataType) -> ColumnDefinition {
    ColumnDefinition { nullable: true, ..ColumnDefinition::new(name, column_type) }
}
