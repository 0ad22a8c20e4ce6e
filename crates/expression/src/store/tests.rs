use super::*;

fn column(column_type: ColumnType, nullable: bool) -> ColumnDefinition {
    ColumnDefinition {
        name: "price".into(),
        column_type,
        nullable,
        default: None,
        auto_increment: false,
        hidden: false,
        comment: "".into(),
        display_width: None,
    }
}

fn message(column_type: ColumnType, value: ValueRef<'_>) -> String {
    let column = column(column_type, false);
    let target = StoreTarget { column: &column, row_number: 3, mode: StoreMode::Strict };
    target.convert(value, &Scratch::new()).unwrap_err().to_string()
}

const TINY: ColumnType = ColumnType::Integer { bytes: 1, unsigned: false };
const NAME: ColumnType = ColumnType::VarChar { length: 2, collation: CollationId::DEFAULT };

#[test]
fn refusals_are_in_the_words_of_mysql() {
    let cases = [
        (TINY, ValueRef::Int(128), "ERROR 1264 (22003): Out of range value for column 'price' at row 3"),
        (TINY, ValueRef::Null, "ERROR 1048 (23000): Column 'price' cannot be null"),
        (TINY, ValueRef::Bytes(b"x"), "ERROR 1366 (HY000): Incorrect integer value: 'x' for column 'price' at row 3"),
        (TINY, ValueRef::Bytes(b"1x"), "ERROR 1265 (01000): Data truncated for column 'price' at row 3"),
        (NAME, ValueRef::Bytes(b"abc"), "ERROR 1406 (22001): Data too long for column 'price' at row 3"),
        (
            NAME,
            ValueRef::Bytes(b"a\xF0\x9F1234567"),
            "ERROR 1366 (HY000): Incorrect string value: '\\xF0\\x9F1234...' for column 'price' at row 3",
        ),
    ];
    for (column_type, value, expected) in cases {
        assert_eq!(message(column_type, value), expected);
    }
}

#[test]
fn null_in_a_not_null_column_is_zero_or_empty_when_lenient() {
    let scratch = Scratch::new();
    let stored = |column_type: ColumnType| {
        let column = column(column_type, false);
        let target = StoreTarget { column: &column, row_number: 1, mode: StoreMode::Lenient };
        target.convert(ValueRef::Null, &scratch).unwrap().to_value()
    };
    let bytes = |text: &[u8]| junctor_model::value::Value::Bytes(text.to_vec());
    assert_eq!(stored(TINY).as_ref(), ValueRef::Int(0));
    assert_eq!(stored(ColumnType::Integer { bytes: 8, unsigned: true }).as_ref(), ValueRef::UInt(0));
    assert_eq!(stored(NAME), bytes(b""));
    assert_eq!(stored(ColumnType::Char { length: 2, collation: CollationId::BINARY }), bytes(&[0, 0]));
    assert_eq!(scratch.warning_count(), 4);
}

#[test]
fn a_long_text_is_cut_between_characters_when_lenient() {
    let column = column(ColumnType::Text { length_bytes: 1, collation: CollationId::DEFAULT }, false);
    let target = StoreTarget { column: &column, row_number: 1, mode: StoreMode::Lenient };
    let scratch = Scratch::new();
    let text = "€".repeat(86);
    let ValueRef::Bytes(stored) = target.convert(ValueRef::Bytes(text.as_bytes()), &scratch).unwrap() else {
        panic!("a string")
    };
    assert_eq!(stored.len(), 255);
    assert!(std::str::from_utf8(stored).is_ok());
    let text = "a".to_owned() + &"€".repeat(86);
    let ValueRef::Bytes(stored) = target.convert(ValueRef::Bytes(text.as_bytes()), &scratch).unwrap() else {
        panic!("a string")
    };
    assert_eq!(stored.len(), 253);
}
