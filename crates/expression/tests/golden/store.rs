//! Assignments with MySQL's results. Each line of `store_cases.txt` is the mode, the column type, a literal,
//! `=>`, and the value that a client reads back, with errors and warnings by number. Bytes of binary columns
//! are hexadecimal after an `x`.

use junctor_expression::{Parameters, Scratch};
use junctor_model::collation::CollationId;
use junctor_model::row_encoding::append_text_value;
use junctor_model::store::{StoreMode, StoreTarget};
use junctor_model::types::DataType;

const CASES: &str = include_str!("store_cases.txt");

#[test]
fn every_column_stores_mysqls_value() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for line in CASES.lines().filter(|line| !line.starts_with('#')) {
        let (case, expected) = line.split_once(" => ").unwrap();
        let parts: Vec<_> = case.split(" | ").collect();
        let mode = if parts[0] == "STRICT" { StoreMode::Strict } else { StoreMode::Lenient };
        let answer = store(mode, parts[1], parts[2]);
        count += 1;
        if answer != expected {
            wrong.push(format!("{case} => {answer}\n    expected {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {count} cases are wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(count > 100);
}

fn store(mode: StoreMode, type_name: &str, literal: &str) -> String {
    let column_type = column_type(type_name);
    let column = super::column("c", column_type.clone());
    let expression = super::parse::parse(literal, &[]).unwrap();
    let mut scratch = Scratch::new();
    let target = StoreTarget { column: &column, row_number: 1, mode };
    let value = expression.evaluate(None, Parameters::NONE, &scratch).unwrap();
    let answer = match target.convert(value, &scratch) {
        Err(error) => return format!("ERROR {}", error.code.errno()),
        Ok(value) if value.is_null() => "NULL".into(),
        Ok(value) => {
            let mut out = Vec::new();
            append_text_value(value, &mut out);
            match column_type.collation() {
                Some(CollationId::BINARY) => {
                    out[1..].iter().fold("x".into(), |hex: String, byte| format!("{hex}{byte:02X}"))
                }
                _ => String::from_utf8(out.split_off(1)).unwrap(),
            }
        }
    };
    let warnings: Vec<_> =
        scratch.take_warnings().iter().map(|warning| format!(" ! {}", warning.code.errno())).collect();
    answer + &warnings.concat()
}

fn column_type(name: &str) -> DataType {
    let unsigned = name.ends_with("UNSIGNED");
    let base = name.split([' ', '(']).next().unwrap();
    let length = name.split(['(', ')']).nth(1).map_or(0, |length| length.parse().unwrap());
    let general = CollationId::UTF8MB4_GENERAL_CI;
    let integer = |bytes| DataType::integer(bytes, unsigned);
    match base {
        "TINYINT" => integer(1),
        "SMALLINT" => integer(2),
        "MEDIUMINT" => integer(3),
        "INT" => integer(4),
        "BIGINT" => integer(8),
        "DOUBLE" => DataType::double(),
        "CHAR" => DataType::char(length, general),
        "VARCHAR" => DataType::varchar(length, general),
        "BINARY" => DataType::char(length, CollationId::BINARY),
        "VARBINARY" => DataType::varchar(length, CollationId::BINARY),
        "TINYTEXT" => DataType::text_or_blob(1, general),
        "TINYBLOB" => DataType::text_or_blob(1, CollationId::BINARY),
        "TEXT" => DataType::text_or_blob(2, general),
        other => panic!("unknown type {other}"),
    }
}
