use super::*;
use crate::geometry::GeometryKind;
use crate::row_encoding::{DECIMALS_NOT_FIXED, column_flag, wire_type};

const TEXT: CollationId = CollationId::UTF8MB4_0900_AI_CI;
const BYTES: CollationId = CollationId::BINARY;

fn members(names: &[&str]) -> Arc<Members> {
    Arc::new(Members::new(names.iter().map(|name| name.as_bytes().into()).collect()))
}

/// Every type, as MySQL prints it.
fn all() -> Vec<(DataType, &'static str)> {
    vec![
        (DataType::integer(1, false), "tinyint"),
        (DataType::integer(1, true), "tinyint unsigned"),
        (DataType::integer(2, false), "smallint"),
        (DataType::integer(3, true), "mediumint unsigned"),
        (DataType::integer(4, false), "int"),
        (DataType::integer(8, false), "bigint"),
        (DataType::integer(8, true), "bigint unsigned"),
        (DataType::double(), "double"),
        (DataType::char(4, TEXT), "char(4)"),
        (DataType::char(4, BYTES), "binary(4)"),
        (DataType::varchar(100, TEXT), "varchar(100)"),
        (DataType::varchar(100, BYTES), "varbinary(100)"),
        (DataType::text_or_blob(1, TEXT), "tinytext"),
        (DataType::text_or_blob(2, TEXT), "text"),
        (DataType::text_or_blob(3, TEXT), "mediumtext"),
        (DataType::text_or_blob(4, TEXT), "longtext"),
        (DataType::text_or_blob(1, BYTES), "tinyblob"),
        (DataType::text_or_blob(2, BYTES), "blob"),
        (DataType::text_or_blob(3, BYTES), "mediumblob"),
        (DataType::text_or_blob(4, BYTES), "longblob"),
        (DataType::year(), "year"),
        (DataType::date(), "date"),
        (DataType::time(0), "time"),
        (DataType::time(3), "time(3)"),
        (DataType::date_time(0), "datetime"),
        (DataType::date_time(6), "datetime(6)"),
        (DataType::timestamp(0), "timestamp"),
        (DataType::timestamp(2), "timestamp(2)"),
        (DataType::decimal(10, 0, false), "decimal(10,0)"),
        (DataType::decimal(38, 30, true), "decimal(38,30) unsigned"),
        (DataType::float(), "float"),
        (DataType::integer(4, false).zero_filled(), "int(10) unsigned zerofill"),
        (DataType::decimal(10, 2, false).zero_filled(), "decimal(10,2) unsigned zerofill"),
        (DataType::floating(false, None, false).zero_filled(), "float unsigned zerofill"),
        (DataType::floating(true, Some((10, 3)), true).zero_filled(), "double(10,3) unsigned zerofill"),
        (DataType::json(), "json"),
        (DataType::geometry(GeometryKind::Geometry, None), "geometry"),
        (DataType::geometry(GeometryKind::Point, Some(4326)), "point"),
        (DataType::geometry(GeometryKind::Collection, Some(0)), "geomcollection"),
        (DataType::vector(3), "vector(3)"),
        (DataType::vector(16_383), "vector(16383)"),
        (DataType::bit(1), "bit(1)"),
        (DataType::bit(64), "bit(64)"),
        (DataType::enumeration(members(&["a", "it's"]), TEXT), "enum('a','it''s')"),
        (DataType::set(members(&["b\\c", "n\nl\r\0", "\""]), TEXT), r#"set('b\\c','n\nl\r\0','"')"#),
        (DataType::set(members(&["x", "y", "z"]), TEXT), "set('x','y','z')"),
    ]
}

#[test]
fn types_print_as_mysql_prints_them() {
    for (data_type, text) in all() {
        assert_eq!(data_type.text(None), text);
        assert!(text.starts_with(data_type.name()), "{text}");
    }
    assert_eq!(DataType::year().wire().code, wire_type::YEAR);
    assert_eq!(DataType::integer(1, false).text(Some(1)), "tinyint(1)");
    assert_eq!(DataType::integer(1, true).text(Some(1)), "tinyint unsigned");
    assert_eq!(DataType::integer(4, false).text(Some(11)), "int");
}

/// A type with bytes in a key, bytes in a row, and `NUMERIC_PRECISION` with `NUMERIC_SCALE`.
type Counted = (DataType, Option<usize>, usize, (Option<u64>, Option<u64>));

#[test]
fn sizes_are_those_that_mysql_counts() {
    let cases: [Counted; 9] = [
        (DataType::integer(3, false), Some(3), 3, (Some(7), Some(0))),
        (DataType::integer(8, true), Some(8), 8, (Some(20), Some(0))),
        (DataType::double(), Some(8), 8, (Some(22), None)),
        (DataType::char(4, TEXT), Some(16), 16, (None, None)),
        (DataType::char(4, BYTES), Some(4), 4, (None, None)),
        (DataType::varchar(63, TEXT), Some(252), 253, (None, None)),
        (DataType::varchar(64, TEXT), Some(256), 258, (None, None)),
        (DataType::varchar(255, BYTES), Some(255), 256, (None, None)),
        (DataType::text_or_blob(3, TEXT), None, 11, (None, None)),
    ];
    for (data_type, key, row, digits) in cases {
        let found = (data_type.key_bytes(), data_type.row_bytes(), data_type.digits());
        assert_eq!(found, (key, row, digits), "{}", data_type.text(None));
    }
    assert_eq!(DataType::varchar(10, TEXT).text_lengths(), Some((10, 40)));
    assert_eq!(DataType::text_or_blob(2, TEXT).text_lengths(), Some((65_535, 65_535)));
    assert_eq!(DataType::text_or_blob(4, BYTES).text_lengths(), Some((4_294_967_295, 4_294_967_295)));
    assert_eq!(DataType::integer(4, false).text_lengths(), None);
}

#[test]
fn clients_get_mysqls_codes_and_lengths() {
    let wire = |data_type: DataType| {
        let wire = data_type.wire();
        (wire.code, wire.length, wire.decimals, wire.flags)
    };
    assert_eq!(wire(DataType::integer(1, false)), (wire_type::TINY, 4, 0, 0));
    assert_eq!(wire(DataType::integer(3, true)), (wire_type::INT24, 8, 0, column_flag::UNSIGNED));
    assert_eq!(wire(DataType::integer(8, false)), (wire_type::LONGLONG, 20, 0, 0));
    assert_eq!(wire(DataType::integer(8, true)), (wire_type::LONGLONG, 20, 0, column_flag::UNSIGNED));
    assert_eq!(wire(DataType::double()), (wire_type::DOUBLE, 22, DECIMALS_NOT_FIXED, 0));
    assert_eq!(wire(DataType::char(5, TEXT)), (wire_type::STRING, 20, 0, 0));
    assert_eq!(wire(DataType::varchar(5, BYTES)), (wire_type::VAR_STRING, 5, 0, 0));
    assert_eq!(wire(DataType::text_or_blob(1, TEXT)), (wire_type::BLOB, 1020, 0, column_flag::BLOB));
    assert_eq!(wire(DataType::text_or_blob(4, TEXT)), (wire_type::BLOB, u32::MAX, 0, column_flag::BLOB));
}

#[test]
fn declared_lengths_have_mysqls_limits() {
    assert_eq!(DataType::declared_char(255, TEXT), Ok(DataType::char(255, TEXT)));
    assert_eq!(DataType::declared_char(256, BYTES), Err(TooLong { max: 255 }));
    assert_eq!(DataType::declared_varchar(16_383, TEXT), Ok(DataType::varchar(16_383, TEXT)));
    assert_eq!(DataType::declared_varchar(16_384, TEXT), Err(TooLong { max: 16_383 }));
    assert_eq!(DataType::declared_varchar(65_536, BYTES), Err(TooLong { max: 65_535 }));
    let name = |length| DataType::declared_text_or_blob(length, TEXT).name();
    let names = [0, 63, 64, 16_383, 16_384, 4_194_303, 4_194_304, u32::MAX].map(name);
    let expected = ["text", "tinytext", "text", "text", "mediumtext", "mediumtext", "longtext", "longtext"];
    assert_eq!(names, expected);
}

#[test]
fn a_stored_type_reads_back() {
    for (data_type, text) in all() {
        assert_eq!(DataType::try_from(data_type.stored()).ok(), Some(data_type), "{text}");
    }
}

#[test]
fn an_implicit_default_is_stored_as_it_is() {
    let scratch = Scratch::new();
    let dates = crate::temporal::DateRules::FUZZY;
    scratch.set_value_rules(crate::temporal::ValueRules::new(dates, crate::temporal::Zone::UTC));
    for (data_type, text) in all() {
        let column = crate::schema::ColumnDefinition::new("c", data_type);
        let target = StoreTarget { column: &column, row_number: 1, mode: crate::store::StoreMode::Strict };
        let value = column.column_type.implicit_default();
        // A spatial column has no value to store in place of a missing one.
        if column.column_type.geometry_kind().is_some() {
            assert!(target.convert(value.as_ref(), &scratch).is_err());
            continue;
        }
        assert_eq!(target.convert(value.as_ref(), &scratch), Ok(value.as_ref()), "{text}");
    }
    assert_eq!(scratch.warning_count(), 0);
}

/// The value that a column stores in lenient mode, and the number of the error in strict mode.
fn stored(data_type: DataType, value: ValueRef<'_>) -> (Value, Option<u16>) {
    let column = crate::schema::ColumnDefinition::new("c", data_type);
    let scratch = Scratch::new();
    let target = |mode| StoreTarget { column: &column, row_number: 1, mode };
    let strict = target(crate::store::StoreMode::Strict).convert(value, &scratch).err();
    let lenient = target(crate::store::StoreMode::Lenient).convert(value, &scratch).unwrap().to_value();
    (lenient, strict.map(|error| error.code.errno()))
}

#[test]
fn a_floating_column_stores_only_finite_numbers() {
    let float = |digits| DataType::floating(false, digits, false);
    let largest = Value::Float(f32::MAX);
    assert_eq!(stored(float(Some((40, 0))), ValueRef::Double(1e39)), (largest.clone(), Some(1264)));
    assert_eq!(stored(float(None), ValueRef::Double(f64::INFINITY)), (largest, Some(1264)));
    assert_eq!(stored(float(None), ValueRef::Double(f64::NAN)), (Value::Float(0.0), Some(1264)));
    let double = DataType::floating(true, Some((255, 0)), false);
    assert_eq!(stored(double.clone(), ValueRef::Double(f64::NAN)), (Value::Double(0.0), Some(1264)));
    assert_eq!(stored(double, ValueRef::Double(1e254)), (Value::Double(1e254), None));
}

/// MySQL copies a FLOAT to VARCHAR as a double, to TEXT as a text.
#[test]
fn a_float_has_the_digits_of_a_double_in_varchar_only() {
    let wide = Value::Bytes(b"1.100000023841858".to_vec());
    assert_eq!(stored(DataType::varchar(30, TEXT), ValueRef::Float(1.1)), (wide, None));
    assert_eq!(stored(DataType::text_or_blob(2, TEXT), ValueRef::Float(1.1)), (Value::Bytes(b"1.1".to_vec()), None));
}

#[test]
fn a_second_point_in_a_text_joins_the_digits_before_it() {
    for (text, number) in [("26.03.23", 2603), ("-1.5.2", -15), ("+1.5.2", 15), ("1.5", 2), ("1.5x.2", 2)] {
        let (value, _) = stored(DataType::integer(8, false), ValueRef::Bytes(text.as_bytes()));
        assert_eq!(value, Value::Int(number), "{text}");
    }
}

#[test]
fn bits_in_a_text_column_are_valid_text() {
    let bit = |number, bytes| ValueRef::Bit(crate::value::Bit { number, bytes });
    assert_eq!(stored(DataType::varchar(4, TEXT), bit(0x61ff, 2)), (Value::Bytes(b"a".to_vec()), Some(1366)));
    assert_eq!(stored(DataType::varchar(4, TEXT), bit(0x6162, 2)), (Value::Bytes(b"ab".to_vec()), None));
    assert_eq!(stored(DataType::varchar(4, BYTES), bit(0xff, 1)), (Value::Bytes(vec![0xff]), None));
    assert_eq!(stored(DataType::text_or_blob(2, TEXT), bit(0xff, 1)), (Value::Bytes(Vec::new()), Some(1366)));
}

#[test]
fn a_decimal_beyond_64_bits_is_too_long_for_bit() {
    let decimal = |mantissa| ValueRef::Decimal(crate::decimal::new(mantissa, 0));
    let bit = |number| Value::Bit(crate::value::Bit { number, bytes: 8 });
    let all = u64::MAX;
    assert_eq!(stored(DataType::bit(64), decimal(i128::from(all) + 2)), (bit(all), Some(1406)));
    assert_eq!(stored(DataType::bit(64), decimal(i128::from(i64::MIN) - 1)), (bit(0), Some(1264)));
    assert_eq!(stored(DataType::bit(64), decimal(all.into())), (bit(all), None));
    assert_eq!(stored(DataType::bit(64), decimal(-2)), (bit(0), Some(1264)));
    assert_eq!(stored(DataType::bit(64), ValueRef::Int(-2)), (bit(all - 1), None));
    assert_eq!(stored(DataType::bit(64), ValueRef::Double(2.7)), (bit(2), None));
    assert_eq!(stored(DataType::bit(64), ValueRef::Double(3.4e38)), (bit(1 << 63), None));
}

#[test]
fn an_unsigned_decimal_tests_the_sign_before_it_rounds() {
    let unsigned = DataType::decimal(5, 0, true);
    let zero = Value::Decimal(crate::decimal::new(0, 0));
    for value in [ValueRef::Bytes(b"-0.4"), ValueRef::Double(-0.4)] {
        assert_eq!(stored(unsigned.clone(), value), (zero.clone(), Some(1264)), "{value:?}");
    }
    for value in [ValueRef::Bytes(b"-0.0"), ValueRef::Double(-0.0), ValueRef::Bytes(b"0.4")] {
        assert_eq!(stored(unsigned.clone(), value), (zero.clone(), None), "{value:?}");
    }
}

#[test]
fn a_vector_column_stores_finite_numbers_and_no_more_than_it_has() {
    let vector = || DataType::vector(2);
    let bytes = |numbers: &[f32]| numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>();
    let errno = |value: ValueRef<'_>| {
        let column = crate::schema::ColumnDefinition::new("c", vector());
        let target = StoreTarget { column: &column, row_number: 1, mode: crate::store::StoreMode::Lenient };
        target.convert(value, &Scratch::new()).err().map(|error| error.code.errno())
    };
    for numbers in [&[1.0][..], &[1.0, -2.5]] {
        let bytes = bytes(numbers);
        assert_eq!(stored(vector(), ValueRef::Bytes(&bytes)), (Value::Bytes(bytes.clone()), None));
    }
    for numbers in [&[1.0, 2.0, 3.0][..], &[f32::NAN], &[f32::INFINITY, 1.0]] {
        assert_eq!(errno(ValueRef::Bytes(&bytes(numbers))), Some(6136), "{numbers:?}");
    }
    assert_eq!([errno(ValueRef::Bytes(b"abc")), errno(ValueRef::Int(1))], [Some(6136), Some(6136)]);
}

#[test]
fn a_spatial_column_stores_its_class_in_its_reference_system() {
    let value = |system: u32, wkb: &[u8]| [&system.to_le_bytes(), wkb].concat();
    let point: Vec<u8> = [&[1, 1, 0, 0, 0][..], &1f64.to_le_bytes(), &2f64.to_le_bytes()].concat();
    let empty = [1, 7, 0, 0, 0, 0, 0, 0, 0];
    let errno = |kind: GeometryKind, system: Option<u32>, value: ValueRef<'_>| {
        let column = crate::schema::ColumnDefinition::new("c", DataType::geometry(kind, system));
        let target = StoreTarget { column: &column, row_number: 1, mode: crate::store::StoreMode::Lenient };
        target.convert(value, &Scratch::new()).err().map(|error| error.code.errno())
    };
    let stored_point = value(0, &point);
    let bytes = ValueRef::Bytes(&stored_point);
    assert_eq!(errno(GeometryKind::Geometry, None, bytes), None);
    assert_eq!(errno(GeometryKind::Point, Some(0), bytes), None);
    assert_eq!(errno(GeometryKind::Point, Some(4326), bytes), Some(3643));
    assert_eq!(errno(GeometryKind::LineString, None, bytes), Some(1416));
    assert_eq!(errno(GeometryKind::Collection, None, ValueRef::Bytes(&value(4326, &empty))), None);
    for wrong in [&[][..], b"abc", &stored_point[..24], &value(0, &[0, 0, 0, 0, 1])] {
        assert_eq!(errno(GeometryKind::Geometry, None, ValueRef::Bytes(wrong)), Some(1416), "{wrong:?}");
    }
    assert_eq!(errno(GeometryKind::Geometry, None, ValueRef::Int(1)), Some(1416));
}
