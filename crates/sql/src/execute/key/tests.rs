use super::*;
use junctor_expression::ParametersBuilder;
use junctor_model::id::{IndexId, SchemaVersion, TableId};
use junctor_model::schema::{ColumnType, IndexKind, IndexState, TableKind};
use junctor_model::value::Value;

fn column(name: &str, column_type: ColumnType, nullable: bool) -> ColumnDefinition {
    ColumnDefinition {
        name: name.into(),
        column_type,
        nullable,
        default: None,
        auto_increment: false,
        hidden: false,
        comment: "".into(),
        display_width: None,
    }
}

/// Columns: a TINYINT NOT NULL, b TINYINT, s VARBINARY(4) NOT NULL; primary key (a, s), partitioned by s.
fn table() -> TableDefinition {
    let tiny = ColumnType::Integer { bytes: 1, unsigned: false };
    let binary = ColumnType::VarChar { length: 4, collation: junctor_model::collation::CollationId::BINARY };
    TableDefinition {
        id: TableId(1),
        version: SchemaVersion(1),
        database: "t".into(),
        name: "t".into(),
        kind: TableKind::Base,
        columns: vec![column("a", tiny, false), column("b", tiny, true), column("s", binary, false)],
        indexes: vec![junctor_model::schema::IndexDefinition {
            id: IndexId(0),
            name: "PRIMARY".into(),
            kind: IndexKind::Primary { ordered: true },
            columns: vec![ColumnIndex(0), ColumnIndex(2)],
            state: IndexState::Online,
        }],
        partition_columns: vec![ColumnIndex(2)],
        partition_count: 16,
        partition_by_written: true,
        collation: junctor_model::collation::CollationId::DEFAULT,
        comment: "".into(),
        next_index: IndexId(1),
    }
}

fn constant(value: i64) -> Operand {
    Operand::Constant(Value::Int(value))
}

fn interval(lower: Option<(i64, bool)>, upper: Option<(i64, bool)>) -> Piece {
    let bound = |(value, inclusive)| (constant(value), inclusive);
    Piece::Interval(Interval { lower: lower.map(bound), upper: upper.map(bound) })
}

type Range = (Vec<u8>, Option<Vec<u8>>);

fn ranges(columns: &[u16], prefix: Vec<KeyValues>, pieces: Vec<Piece>, descending: bool) -> Vec<Range> {
    let template = RangeTemplate { columns: columns.iter().map(|index| ColumnIndex(*index)).collect(), prefix, pieces };
    let scratch = Scratch::new();
    let values = Values { parameters: Parameters::NONE, scratch: &scratch };
    let mut found = Vec::new();
    let outcome = KeyMaker::default().ranges(&table(), &template, descending, &values, &mut |range| {
        let lower = range.lower.map_or(Vec::new(), |(bytes, inclusive)| {
            assert!(inclusive, "lower bounds belong to the range");
            bytes.to_vec()
        });
        let upper = range.upper.map(|(bytes, inclusive)| {
            assert!(!inclusive, "upper bounds do not belong to the range");
            bytes.to_vec()
        });
        found.push((lower, upper));
    });
    outcome.expect("constants are easily computed");
    found
}

#[test]
fn overlapping_and_touching_ranges_become_one() {
    let pieces = vec![
        interval(Some((7, true)), Some((9, true))),
        interval(Some((1, true)), Some((3, false))),
        interval(Some((3, true)), Some((4, true))),
        interval(Some((2, false)), Some((2, true))),
    ];
    let expected = vec![(vec![0x81], Some(vec![0x85])), (vec![0x87], Some(vec![0x8A]))];
    assert_eq!(ranges(&[0], vec![], pieces.clone(), false), expected);
    let reversed: Vec<Range> = expected.into_iter().rev().collect();
    assert_eq!(ranges(&[0], vec![], pieces, true), reversed);
}

#[test]
fn bounds_beyond_the_column_leave_its_end_open_or_nothing() {
    assert_eq!(
        ranges(&[0], vec![], vec![interval(Some((-500, true)), Some((1, false)))], false),
        [(vec![], Some(vec![0x81]))]
    );
    assert_eq!(ranges(&[0], vec![], vec![interval(Some((127, true)), None)], false), [(vec![0xFF], None)]);
    assert!(ranges(&[0], vec![], vec![interval(Some((127, false)), None)], false).is_empty());
    assert!(ranges(&[0], vec![], vec![interval(Some((500, true)), None)], false).is_empty());
    assert!(ranges(&[0], vec![], vec![interval(None, Some((-500, true)))], false).is_empty());
    assert!(ranges(&[0], vec![], vec![interval(Some((5, true)), Some((4, true)))], false).is_empty());
}

#[test]
fn null_is_below_every_value_and_in_no_comparison() {
    let upper_only = ranges(&[1], vec![], vec![interval(None, Some((0, false)))], false);
    assert_eq!(upper_only, [(vec![1], Some(vec![1, 0x80]))]);
    let lower_only = ranges(&[1], vec![], vec![interval(Some((0, true)), None)], false);
    assert_eq!(lower_only, [(vec![1, 0x80], None)]);
    assert_eq!(ranges(&[1], vec![KeyValues::Null], vec![], false), [(vec![0], Some(vec![1]))]);
    assert!(ranges(&[1], vec![KeyValues::One(Operand::Constant(Value::Null))], vec![], false).is_empty());
    let null_bound = Piece::Interval(Interval { lower: Some((Operand::Constant(Value::Null), true)), upper: None });
    assert!(ranges(&[0], vec![], vec![null_bound], false).is_empty());
}

#[test]
fn a_list_before_a_range_makes_a_range_for_each_member_once() {
    let list = KeyValues::List(vec![constant(2), constant(1), constant(2), constant(500)]);
    let found = ranges(&[0, 1], vec![list], vec![interval(Some((0, false)), None)], false);
    let expected = [(vec![0x81, 1, 0x81], Some(vec![0x82])), (vec![0x82, 1, 0x81], Some(vec![0x83]))];
    assert_eq!(found, expected);
}

#[test]
fn a_pattern_bounds_the_keys_that_begin_with_its_fixed_part() {
    let like = |pattern: &[u8]| {
        let pattern = Operand::Constant(Value::Bytes(pattern.to_vec()));
        ranges(&[2], vec![], vec![Piece::Prefix { pattern, escape: Some('\\') }], false)
    };
    assert_eq!(like(b"ab%"), [(b"ab".to_vec(), Some(b"ac".to_vec()))]);
    assert_eq!(like(b"a\0_c"), [(b"a\0\xFF".to_vec(), Some(b"a\x01".to_vec()))]);
    assert_eq!(like(b"%"), [(vec![], None)]);
    assert_eq!(like(b"a\\%b"), [(b"a".to_vec(), Some(b"b".to_vec()))]);
}

#[test]
fn each_key_of_a_list_is_made_once_and_knows_its_partition() {
    let mut builder = ParametersBuilder::new();
    builder.begin_list();
    for text in [&b"x"[..], b"y", b"x", b"\0", b"y"] {
        builder.push(ValueRef::Bytes(text));
    }
    builder.end_list();
    let mut bytes = Vec::new();
    builder.append_to(&mut bytes).expect("five values are few");
    let template = KeyTemplate {
        columns: vec![ColumnIndex(0), ColumnIndex(2)],
        alternatives: vec![vec![KeyValues::One(constant(1)), KeyValues::Parameters(0)]],
    };
    let scratch = Scratch::new();
    let values = Values { parameters: Parameters::from_bytes(&bytes), scratch: &scratch };
    let mut found = Vec::new();
    let mut push = |place: KeyPlace, _: u64, key: &[u8]| {
        let KeyPlace::At(partition) = place else { panic!("the whole key does not choose the partition") };
        found.push((partition, key.to_vec()));
    };
    KeyMaker::default().keys(&table(), &template, &values, &mut push).expect("nothing is computed");
    let partition = |key: &[u8]| partition_of(key_hash(key), 16);
    let expected = [
        (partition(b"x\0\0"), b"\x81x\0\0".to_vec()),
        (partition(b"y\0\0"), b"\x81y\0\0".to_vec()),
        (partition(b"\0\xFF\0\0"), b"\x81\0\xFF\0\0".to_vec()),
    ];
    assert_eq!(found, expected);
    // One key alone takes the short way and must come to the same.
    let single = KeyTemplate {
        alternatives: vec![vec![
            KeyValues::One(constant(1)),
            KeyValues::One(Operand::Constant(Value::Bytes(b"\0".to_vec()))),
        ]],
        ..template
    };
    let mut found = Vec::new();
    let mut push = |place: KeyPlace, _: u64, key: &[u8]| {
        let KeyPlace::At(partition) = place else { panic!("the whole key does not choose the partition") };
        found.push((partition, key.to_vec()));
    };
    KeyMaker::default().keys(&table(), &single, &values, &mut push).expect("nothing is computed");
    assert_eq!(found, expected[2..]);
}

#[test]
fn keys_that_no_row_can_have_are_left_out() {
    let template = KeyTemplate {
        columns: vec![ColumnIndex(0)],
        alternatives: [Value::Int(200), Value::Null, Value::Double(1.5), Value::Int(3), Value::Bytes(b"3".to_vec())]
            .map(|value| vec![KeyValues::One(Operand::Constant(value))])
            .to_vec(),
    };
    let scratch = Scratch::new();
    let values = Values { parameters: Parameters::NONE, scratch: &scratch };
    let mut found = Vec::new();
    KeyMaker::default()
        .keys(&table(), &template, &values, &mut |_, _, key| found.push(key.to_vec()))
        .expect("nothing is computed");
    assert_eq!(found, [vec![0x83]]);
}
