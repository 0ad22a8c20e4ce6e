use super::*;
use junctor_expression::ParametersBuilder;
use junctor_model::error::ErrorCode;
use junctor_model::id::{IndexId, TableId};
use junctor_model::schema::{IndexDefinition, IndexKind};
use junctor_model::types::DataType;
use junctor_model::value::Value;

fn column(name: &str, column_type: DataType, nullable: bool) -> ColumnDefinition {
    ColumnDefinition { nullable, ..ColumnDefinition::new(name, column_type) }
}

/// Columns: `a` TINYINT NOT NULL, `b` TINYINT, `s` VARBINARY(4) NOT NULL; primary key (a, s), partitioned by
/// s.
fn table() -> TableDefinition {
    let tiny = DataType::integer(1, false);
    let binary = DataType::varchar(4, junctor_model::collation::CollationId::BINARY);
    let columns = vec![column("a", tiny.clone(), false), column("b", tiny, true), column("s", binary, false)];
    let kind = IndexKind::Primary { ordered: true };
    let primary = IndexDefinition::new(IndexId(0), "PRIMARY", kind, vec![ColumnNumber(0), ColumnNumber(2)]);
    TableDefinition {
        partition_columns: vec![ColumnNumber(2)],
        partition_count: 16,
        has_partition_clause: true,
        ..TableDefinition::new(TableId(1), ("t", "t"), columns, vec![primary])
    }
}

fn constant(value: i64) -> Operand {
    Operand::Constant(Value::Int(value))
}

fn interval(lower: Option<(i64, bool)>, upper: Option<(i64, bool)>) -> ValueSet {
    let bound = |(value, inclusive)| (constant(value), inclusive);
    ValueSet::Interval(Interval { lower: lower.map(bound), upper: upper.map(bound) })
}

type Range = (Vec<u8>, Option<Vec<u8>>);

fn ranges(columns: &[u16], prefix: Vec<KeyValues>, value_sets: Vec<ValueSet>, descending: bool) -> Vec<Range> {
    let columns = columns.iter().map(|index| ColumnNumber(*index)).collect();
    ranges_of(RangeTemplate { columns, descending: Vec::new(), prefix, value_sets }, descending)
}

fn ranges_of(template: RangeTemplate, descending: bool) -> Vec<Range> {
    let scratch = Scratch::new();
    let values = Values { parameters: Parameters::NONE, scratch: &scratch };
    let mut found = Vec::new();
    let ranges = RangesOf { template: &template, descending, by_range: false };
    let outcome = KeyBuilder::default().build_ranges(&table(), ranges, &values, &mut |partition, range| {
        assert_eq!(partition, None);
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
    let value_sets = vec![
        interval(Some((7, true)), Some((9, true))),
        interval(Some((1, true)), Some((3, false))),
        interval(Some((3, true)), Some((4, true))),
        interval(Some((2, false)), Some((2, true))),
    ];
    let expected = vec![(vec![0x81], Some(vec![0x85])), (vec![0x87], Some(vec![0x8A]))];
    assert_eq!(ranges(&[0], vec![], value_sets.clone(), false), expected);
    let reversed: Vec<Range> = expected.into_iter().rev().collect();
    assert_eq!(ranges(&[0], vec![], value_sets, true), reversed);
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
fn null_sorts_first_and_matches_no_comparison() {
    let upper_only = ranges(&[1], vec![], vec![interval(None, Some((0, false)))], false);
    assert_eq!(upper_only, [(vec![1], Some(vec![1, 0x80]))]);
    let lower_only = ranges(&[1], vec![], vec![interval(Some((0, true)), None)], false);
    assert_eq!(lower_only, [(vec![1, 0x80], None)]);
    assert_eq!(ranges(&[1], vec![KeyValues::Null], vec![], false), [(vec![0], Some(vec![1]))]);
    assert!(ranges(&[1], vec![KeyValues::One(Operand::Constant(Value::Null))], vec![], false).is_empty());
    let null_bound = ValueSet::Interval(Interval { lower: Some((Operand::Constant(Value::Null), true)), upper: None });
    assert!(ranges(&[0], vec![], vec![null_bound], false).is_empty());
}

#[test]
fn ranges_of_descending_columns_have_the_keys_of_their_values() {
    let values = [i64::MIN, -128, -1, 0, 1, 2, 126, 127].map(|value| (value != i64::MIN).then_some(value));
    let bounds = [-500.0, -128.0, -1.0, 0.0, 0.5, 1.0, 1.5, 127.0, 500.0];
    let bounds = bounds.iter().flat_map(|bound| [Some((*bound, true)), Some((*bound, false))]).chain([None]);
    for (nullable, (lower, upper)) in [0u16, 1].into_iter().flat_map(|nullable| {
        let uppers = bounds.clone();
        let pairs = bounds.clone().flat_map(move |lower| uppers.clone().map(move |upper| (lower, upper)));
        pairs.map(move |pair| (nullable, pair))
    }) {
        let operand = |(bound, inclusive)| (Operand::Constant(Value::Double(bound)), inclusive);
        let set = ValueSet::Interval(Interval { lower: lower.map(operand), upper: upper.map(operand) });
        let (columns, descending) = (vec![ColumnNumber(nullable)], vec![ColumnNumber(nullable)]);
        let found = ranges_of(RangeTemplate { columns, descending, prefix: vec![], value_sets: vec![set] }, false);
        for value in values.iter().filter(|value| nullable == 1 || value.is_some()) {
            let mut key = Vec::new();
            let (column, value_ref) =
                (&table().columns[usize::from(nullable)], value.map_or(ValueRef::Null, ValueRef::Int));
            junctor_model::key::append_value(column.column_type.key_part(), column.nullable, value_ref, &mut key);
            complement(&mut key);
            let is_found = found.iter().any(|(from, to)| *from <= key && to.as_ref().is_none_or(|to| key < *to));
            let above = |(bound, inclusive): (f64, bool), value: f64| value > bound || inclusive && value == bound;
            let below = |(bound, inclusive): (f64, bool), value: f64| value < bound || inclusive && value == bound;
            let is_wanted = value.is_some_and(|value| {
                lower.is_none_or(|bound| above(bound, value as f64))
                    && upper.is_none_or(|bound| below(bound, value as f64))
            });
            assert_eq!(is_found, is_wanted, "{value:?} within {lower:?} and {upper:?}: {found:?}");
        }
    }
}

#[test]
fn null_and_prefixes_of_descending_columns_are_complemented() {
    let of = |column: u16, prefix: Vec<KeyValues>, value_sets| {
        let columns = vec![ColumnNumber(column), ColumnNumber(0)];
        ranges_of(RangeTemplate { descending: columns.clone(), columns, prefix, value_sets }, false)
    };
    assert_eq!(of(1, vec![KeyValues::Null], vec![]), [(vec![0xFF], None)]);
    assert_eq!(of(1, vec![], vec![ValueSet::Values(KeyValues::Null)]), [(vec![0xFF], None)]);
    let pattern = Operand::Constant(Value::Bytes(b"ab%".to_vec()));
    let like = of(2, vec![], vec![ValueSet::Prefix { pattern, escape: None }]);
    assert_eq!(like, [(vec![!b'a', !b'b'], Some(vec![!b'a', !b'b' + 1]))]);
    let one = of(0, vec![KeyValues::One(constant(1))], vec![]);
    assert_eq!(one, [(vec![!0x81], Some(vec![!0x81 + 1]))]);
}

#[test]
fn a_list_before_a_range_makes_one_range_for_each_distinct_member() {
    let list = KeyValues::List(vec![constant(2), constant(1), constant(2), constant(500)]);
    let found = ranges(&[0, 1], vec![list], vec![interval(Some((0, false)), None)], false);
    let expected = [(vec![0x81, 1, 0x81], Some(vec![0x82])), (vec![0x82, 1, 0x81], Some(vec![0x83]))];
    assert_eq!(found, expected);
}

#[test]
fn a_pattern_makes_the_range_of_its_literal_prefix() {
    let like = |pattern: &[u8]| {
        let pattern = Operand::Constant(Value::Bytes(pattern.to_vec()));
        ranges(&[2], vec![], vec![ValueSet::Prefix { pattern, escape: Some('\\') }], false)
    };
    assert_eq!(like(b"ab%"), [(b"ab".to_vec(), Some(b"ac".to_vec()))]);
    assert_eq!(like(b"a\0_c"), [(b"a\0\xFF".to_vec(), Some(b"a\x01".to_vec()))]);
    assert_eq!(like(b"%"), [(vec![], None)]);
    assert_eq!(like(b"a\\%b"), [(b"a".to_vec(), Some(b"b".to_vec()))]);
}

#[test]
fn each_key_of_a_list_is_made_once_with_its_partition() {
    let mut builder = ParametersBuilder::new();
    builder.begin_list();
    for text in [&b"x"[..], b"y", b"x", b"\0", b"y"] {
        builder.push(ValueRef::Bytes(text));
    }
    builder.end_list();
    let mut bytes = Vec::new();
    builder.append_to(&mut bytes).expect("five values are few");
    let template = KeyTemplate {
        columns: vec![ColumnNumber(0), ColumnNumber(2)],
        alternatives: vec![vec![KeyValues::One(constant(1)), KeyValues::Parameters(0)]],
    };
    let scratch = Scratch::new();
    let values = Values { parameters: Parameters::from_bytes(&bytes), scratch: &scratch };
    let mut found = Vec::new();
    let mut push = |partition_source: KeyPartition, _: u64, key: &[u8]| {
        let KeyPartition::Number(partition) = partition_source else {
            panic!("the whole key does not choose the partition")
        };
        found.push((partition, key.to_vec()));
    };
    KeyBuilder::default().build_keys(&table(), &template, &values, &mut push).expect("nothing is computed");
    let partition = |key: &[u8]| partition_of(key_hash(key), 16);
    let expected = [
        (partition(b"x\0\0"), b"\x81x\0\0".to_vec()),
        (partition(b"y\0\0"), b"\x81y\0\0".to_vec()),
        (partition(b"\0\xFF\0\0"), b"\x81\0\xFF\0\0".to_vec()),
    ];
    assert_eq!(found, expected);
    // A single key takes a shorter path, which must give the same result.
    let single = KeyTemplate {
        alternatives: vec![vec![
            KeyValues::One(constant(1)),
            KeyValues::One(Operand::Constant(Value::Bytes(b"\0".to_vec()))),
        ]],
        ..template
    };
    let mut found = Vec::new();
    let mut push = |partition_source: KeyPartition, _: u64, key: &[u8]| {
        let KeyPartition::Number(partition) = partition_source else {
            panic!("the whole key does not choose the partition")
        };
        found.push((partition, key.to_vec()));
    };
    KeyBuilder::default().build_keys(&table(), &single, &values, &mut push).expect("nothing is computed");
    assert_eq!(found, expected[2..]);
}

#[test]
fn keys_that_no_row_can_have_are_omitted() {
    let template = KeyTemplate {
        columns: vec![ColumnNumber(0)],
        alternatives: [Value::Int(200), Value::Null, Value::Double(1.5), Value::Int(3), Value::Bytes(b"3".to_vec())]
            .map(|value| vec![KeyValues::One(Operand::Constant(value))])
            .to_vec(),
    };
    let scratch = Scratch::new();
    let values = Values { parameters: Parameters::NONE, scratch: &scratch };
    let mut found = Vec::new();
    KeyBuilder::default()
        .build_keys(&table(), &template, &values, &mut |_, _, key| found.push(key.to_vec()))
        .expect("nothing is computed");
    assert_eq!(found, [vec![0x83]]);
}

/// A table whose only column is an integer and its primary key.
fn integer_table(bytes: u8, unsigned: bool) -> TableDefinition {
    let mut definition = table();
    definition.columns = vec![column("a", DataType::integer(bytes, unsigned), false)];
    definition.indexes[0].columns = vec![ColumnNumber(0)];
    definition.partition_columns = vec![ColumnNumber(0)];
    definition
}

fn list_of(values: KeyValues) -> KeyTemplate {
    KeyTemplate { columns: vec![ColumnNumber(0)], alternatives: vec![vec![values]] }
}

type HashedKeys = Vec<(u64, Vec<u8>)>;

/// The keys of a list by the fast path; `None` if the fast path does not apply.
fn quick_keys(
    key_builder: &mut KeyBuilder,
    definition: &TableDefinition,
    template: &KeyTemplate,
    parameters: &[u8],
) -> Option<HashedKeys> {
    let scratch = Scratch::new();
    let values = Values { parameters: Parameters::from_bytes(parameters), scratch: &scratch };
    let KeyBuilder { integers: gathered, seen, order, .. } = key_builder;
    let (bytes, keys, integers) = integer_list(definition, template, &values, gathered)?;
    let mut found = Vec::new();
    let push = |hash, key: &[u8]| found.push((hash, key.to_vec()));
    let memory = (seen, order);
    match bytes {
        1 => push_integers::<1>(integers, keys, memory, push),
        2 => push_integers::<2>(integers, keys, memory, push),
        3 => push_integers::<3>(integers, keys, memory, push),
        4 => push_integers::<4>(integers, keys, memory, push),
        _ => push_integers::<8>(integers, keys, memory, push),
    }
    Some(found)
}

fn all_keys(
    key_builder: &mut KeyBuilder,
    definition: &TableDefinition,
    template: &KeyTemplate,
    parameters: &[u8],
) -> HashedKeys {
    let scratch = Scratch::new();
    let values = Values { parameters: Parameters::from_bytes(parameters), scratch: &scratch };
    let mut found = Vec::new();
    let mut push = |partition_source: KeyPartition, hash, key: &[u8]| {
        assert!(matches!(partition_source, KeyPartition::ByHash));
        found.push((hash, key.to_vec()));
    };
    key_builder.build_keys(definition, template, &values, &mut push).expect("nothing is computed");
    found
}

/// The distinct keys that the values of a list have in a column of this width and sign.
fn expected_keys(bytes: u8, unsigned: bool, list: &[i64]) -> HashedKeys {
    let bits = u32::from(bytes) * 8;
    let (least, count) = (if unsigned { 0 } else { -(1i128 << (bits - 1)) }, 1i128 << bits);
    let mut keys = HashedKeys::new();
    for value in list.iter().filter(|value| (least..least + count).contains(&i128::from(**value))) {
        let mut key = Vec::new();
        let column_type = DataType::integer(bytes, unsigned);
        junctor_model::key::append_value(column_type.key_part(), false, ValueRef::Int(*value), &mut key);
        let key = (key_hash(&key), key);
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    keys
}

#[test]
fn a_list_of_integers_makes_each_key_once_for_every_column_type() {
    let ends = [7, 8, 15, 16, 23, 24, 31, 32, 62].map(|bit| 1i64 << bit);
    let around = ends.iter().flat_map(|end| [end - 1, *end, end + 1, -end - 1, -end, 1 - end]);
    let lists: Vec<Vec<i64>> = vec![
        vec![],
        vec![5],
        vec![1, 1, 1],
        vec![i64::MIN],
        around.chain([i64::MAX, i64::MIN, -1, 0, 1, i64::MIN, i64::MAX]).collect(),
        (0..1000).map(|number| number % 300 - 150).collect(),
        (0..1000).map(|number| number * 7_919).collect(),
    ];
    let mut key_builder = KeyBuilder::default();
    for (bytes, unsigned) in [1, 2, 3, 4, 8].into_iter().flat_map(|bytes| [(bytes, false), (bytes, true)]) {
        let definition = integer_table(bytes, unsigned);
        for list in &lists {
            let expected = expected_keys(bytes, unsigned, list);
            // The list is passed once as one parameter, and once with one parameter for each value, unsigned
            // if possible.
            let mut builder = ParametersBuilder::new();
            builder.push_integers(list.iter().copied());
            for value in list {
                builder.push(u64::try_from(*value).map_or(ValueRef::Int(*value), ValueRef::UInt));
            }
            let mut parameters = Vec::new();
            builder.append_to(&mut parameters).expect("few values");
            let ordinals = 1..=list.len() as u16;
            for values in [
                KeyValues::Parameters(0),
                KeyValues::List(list.iter().copied().map(constant).collect()),
                KeyValues::List(ordinals.map(Operand::Parameter).collect()),
            ] {
                let template = list_of(values);
                let quick = quick_keys(&mut key_builder, &definition, &template, &parameters);
                assert_eq!(quick.as_ref(), Some(&expected), "{bytes} bytes, unsigned {unsigned}");
                assert_eq!(all_keys(&mut key_builder, &definition, &template, &parameters), expected);
            }
        }
    }
}

#[test]
fn the_key_of_one_integer_equals_that_of_the_general_path() {
    let ends = [7, 8, 15, 16, 23, 24, 31, 32, 62].map(|bit| 1i64 << bit);
    let around = ends.iter().flat_map(|end| [end - 1, *end, end + 1, -end - 1, -end, 1 - end]);
    let numbers: Vec<i64> = around.chain([i64::MAX, i64::MIN, -1, 0, 1]).collect();
    let template = list_of(KeyValues::One(Operand::Parameter(0)));
    let alternative = &template.alternatives[0];
    let mut key_builder = KeyBuilder::default();
    for (bytes, unsigned) in [1, 2, 3, 4, 8].into_iter().flat_map(|bytes| [(bytes, false), (bytes, true)]) {
        let definition = integer_table(bytes, unsigned);
        for number in &numbers {
            let mut builder = ParametersBuilder::new();
            builder.push_int(*number);
            let mut parameters = Vec::new();
            builder.append_to(&mut parameters).expect("one value");
            let scratch = Scratch::new();
            let values = Values { parameters: Parameters::from_bytes(&parameters), scratch: &scratch };
            let (width, keys, value) =
                single_integer(&definition, &template, alternative, &values).expect("an integer");
            let found = keys.leading_bytes(width, value).map(|key| key[..usize::from(width)].to_vec());
            let general = all_keys(&mut key_builder, &definition, &template, &parameters);
            assert_eq!(found.map(|key| (key_hash(&key), key)).as_ref(), general.first(), "{number} in {bytes} bytes");
        }
    }
    // Other values and columns take the general path.
    let definition = integer_table(4, false);
    let scratch = Scratch::new();
    let values = Values { parameters: Parameters::NONE, scratch: &scratch };
    assert!(single_integer(&definition, &template, alternative, &values).is_none(), "NULL");
    assert!(single_integer(&definition, &template, &[KeyValues::One(constant(1))], &values).is_none());
}

#[test]
fn the_fast_path_refuses_values_that_are_no_signed_integers() {
    let mut key_builder = KeyBuilder::default();
    let long = integer_table(8, true);
    for value in [Value::UInt(1 << 63), Value::Null, Value::Double(1.0), Value::Bytes(b"1".to_vec())] {
        let template = list_of(KeyValues::List(vec![constant(1), Operand::Constant(value.clone())]));
        assert_eq!(quick_keys(&mut key_builder, &long, &template, &[]), None, "{value:?}");
        let expected = match value {
            Value::UInt(_) => vec![1u64.to_be_bytes().to_vec(), (1u64 << 63).to_be_bytes().to_vec()],
            _ => vec![1u64.to_be_bytes().to_vec()],
        };
        let found: Vec<_> = all_keys(&mut key_builder, &long, &template, &[]).into_iter().map(|(_, key)| key).collect();
        assert_eq!(found, expected, "{value:?}");
    }
    let list = || list_of(KeyValues::List(vec![constant(1), constant(2)]));
    assert_eq!(quick_keys(&mut key_builder, &table(), &list(), &[]), None);
    let mut elsewhere = integer_table(4, false);
    elsewhere.partition_columns = vec![];
    assert_eq!(quick_keys(&mut key_builder, &elsewhere, &list(), &[]), None);
}

#[test]
fn with_colliding_hashes_duplicates_are_found_by_sorting() {
    // The hashes agree in all bits that address a table of this size.
    let alike = (0i64..).filter(|value| key_hash(&(*value as u32 ^ (1 << 31)).to_be_bytes()) % 1024 == 7);
    let distinct: Vec<i64> = alike.take(200).collect();
    let list: Vec<i64> = distinct.iter().chain(&distinct).copied().flat_map(|value| [value, value]).take(500).collect();
    let expected = expected_keys(4, false, &list);
    assert_eq!(expected.len(), 200);
    let mut builder = ParametersBuilder::new();
    builder.push_integers(list.iter().copied());
    let mut parameters = Vec::new();
    builder.append_to(&mut parameters).expect("few values");
    let definition = integer_table(4, false);
    let template = list_of(KeyValues::Parameters(0));
    let mut key_builder = KeyBuilder::default();
    assert_eq!(quick_keys(&mut key_builder, &definition, &template, &parameters), Some(expected.clone()));
    assert_eq!(key_builder.order.len(), list.len());
    assert_eq!(all_keys(&mut key_builder, &definition, &template, &parameters), expected);
    // The sorted positions remain, not a hash table.
    assert_eq!(key_builder.seen.len(), expected.len());
    // A list without collisions is not sorted.
    let mut builder = ParametersBuilder::new();
    let unlike: Vec<i64> = (0..500).collect();
    builder.push_integers(unlike.iter().copied());
    parameters.clear();
    builder.append_to(&mut parameters).expect("few values");
    let found = quick_keys(&mut key_builder, &definition, &template, &parameters);
    assert_eq!(found, Some(expected_keys(4, false, &unlike)));
    assert!(key_builder.order.is_empty());
}

/// The parameters of two parallel lists.
fn parallel_lists(pairs: &[(ValueRef<'_>, &str)]) -> Vec<u8> {
    let mut builder = ParametersBuilder::new();
    builder.begin_list();
    pairs.iter().for_each(|(number, _)| builder.push(*number));
    builder.end_list();
    builder.begin_list();
    pairs.iter().for_each(|(_, text)| builder.push(ValueRef::Bytes(text.as_bytes())));
    builder.end_list();
    let mut bytes = Vec::new();
    builder.append_to(&mut bytes).expect("few values");
    bytes
}

#[test]
fn parallel_lists_make_one_key_for_each_place() {
    let int = ValueRef::Int;
    // NULL, and a number that the column cannot have, make no key.
    let pairs = [(int(1), "x"), (int(2), "y"), (ValueRef::Null, "z"), (int(1), "x"), (int(300), "x"), (int(2), "x")];
    let parameters = parallel_lists(&pairs);
    let key = vec![KeyValues::Parallel(0), KeyValues::Parallel(1)];
    let template = KeyTemplate { columns: vec![ColumnNumber(0), ColumnNumber(2)], alternatives: vec![key.clone()] };
    let expected = [b"\x81x\0\0", b"\x82y\0\0", b"\x82x\0\0"].map(|key| key.to_vec());
    let scratch = Scratch::new();
    let values = Values { parameters: Parameters::from_bytes(&parameters), scratch: &scratch };
    let mut keys = Vec::new();
    let mut push = |_: KeyPartition, _: u64, key: &[u8]| keys.push(key.to_vec());
    KeyBuilder::default().build_keys(&table(), &template, &values, &mut push).expect("nothing is computed");
    assert_eq!(keys, expected);
    let columns = vec![ColumnNumber(0), ColumnNumber(2)];
    let ranges = RangeTemplate { columns, descending: Vec::new(), prefix: key, value_sets: Vec::new() };
    let mut found = Vec::new();
    let ranges = RangesOf { template: &ranges, descending: false, by_range: false };
    let outcome = KeyBuilder::default().build_ranges(&table(), ranges, &values, &mut |_, range| {
        found.push(range.lower.map_or(Vec::new(), |(bytes, _)| bytes.to_vec()));
    });
    outcome.expect("nothing is computed");
    assert_eq!(found, [&b"\x81x\0\0"[..], b"\x82x\0\0", b"\x82y\0\0"]);
}

fn list(values: std::ops::Range<i64>) -> KeyValues {
    KeyValues::List(values.map(constant).collect())
}

#[test]
fn the_values_of_several_lists_are_combined() {
    let prefix = vec![list(1..3), KeyValues::One(constant(7)), list(5..7)];
    let found = ranges(&[0, 1, 0], prefix.clone(), vec![], false);
    let keys: Vec<Vec<u8>> = found.into_iter().map(|(lower, _)| lower).collect();
    let key = |first: u8, last: u8| vec![0x80 + first, 1, 0x87, 0x80 + last];
    // Ranges that touch are one.
    assert_eq!(keys, [key(1, 5), key(2, 5)]);
    let found = ranges(&[0, 1, 0, 1], prefix, vec![interval(None, None)], true);
    assert_eq!(found.len(), 4);
    assert!(ranges(&[0, 1, 0], vec![list(1..3), list(0..0)], vec![], false).is_empty());
}

#[test]
fn a_key_of_too_many_combinations_ends_before_the_list_that_makes_them() {
    let twenty = || list(0..20);
    let prefix = |count: usize| (0..count).map(|_| twenty()).collect::<Vec<_>>();
    let columns = [0u16, 1, 0, 1, 0];
    // Three lists of twenty values are 8,000 combinations, four are 160,000.
    for (lists, used) in [(3, 3), (4, 3), (5, 3)] {
        let found = ranges(&columns, prefix(lists), vec![], false);
        let bytes = [1, 3, 4, 6, 7][used - 1];
        assert!(found.iter().all(|(lower, _)| lower.len() == bytes), "{lists} lists");
        // The values of the last column are next to each other.
        assert_eq!(found.len(), 400);
    }
    // One list has any length.
    let long = KeyValues::List((0..100_000).map(|_| constant(1)).collect());
    assert_eq!(ranges(&[0, 1], vec![long, list(2..3)], vec![], false), [(vec![0x81], Some(vec![0x82]))]);
}

#[test]
fn each_range_is_in_the_partition_of_its_values() {
    let operand = |text: &str| Operand::Constant(Value::Bytes(text.as_bytes().to_vec()));
    let texts = ["a", "b", "c", "d"];
    let prefix = vec![list(1..4), KeyValues::List(texts.iter().map(|text| operand(text)).collect())];
    let columns = vec![ColumnNumber(0), ColumnNumber(2), ColumnNumber(1)];
    for descending in [vec![], vec![ColumnNumber(2)]] {
        let value_sets = Vec::new();
        let template = RangeTemplate { columns: columns.clone(), descending, prefix: prefix.clone(), value_sets };
        let scratch = Scratch::new();
        let values = Values { parameters: Parameters::NONE, scratch: &scratch };
        let mut found = Vec::new();
        let ranges = RangesOf { template: &template, descending: false, by_range: true };
        let built = KeyBuilder::default().build_ranges(&table(), ranges, &values, &mut |partition, range| {
            found.push((partition.expect("the range has a partition"), range.lower.expect("a bound").0.to_vec()));
        });
        built.expect("constants are easily computed");
        let mut expected = Vec::new();
        for number in 1..4u8 {
            for text in texts {
                let mut text = [text.as_bytes(), &[0, 0]].concat();
                let partition = partition_of(key_hash(&text), 16);
                if !template.descending.is_empty() {
                    complement(&mut text);
                }
                expected.push((partition, [&[0x80 + number], &text[..]].concat()));
            }
        }
        // The ranges of a partition are in the order of the index.
        expected.sort();
        assert_eq!(found, expected);
    }
}

#[test]
fn value_sets_that_would_make_too_many_ranges_are_left_out() {
    let all = || list(-128..128);
    let point = |value: i64| interval(Some((value, true)), Some((value, true)));
    let prefix = vec![all(), all()];
    // 65,536 combinations of four intervals are as many ranges as a statement may have.
    for (sets, bytes) in [(4, 4), (5, 3)] {
        let value_sets = (0..sets).map(|number| point(2 * number)).collect();
        let found = ranges(&[0, 1, 0], prefix.clone(), value_sets, false);
        assert!(found.iter().all(|(lower, _)| lower.len() == bytes), "{sets} sets");
        // Without the sets, the values of the second column are next to each other.
        assert_eq!(found.len(), if sets == 4 { 256 * 256 * 4 } else { 256 });
    }
    // The members of a list are ranges too.
    let found = ranges(&[0, 1, 0], prefix, vec![ValueSet::Values(list(0..5))], false);
    assert_eq!(found.len(), 256);
    // Ranges of one list imply the value sets.
    let long = KeyValues::List((0..100_000).map(|_| constant(1)).collect());
    assert_eq!(ranges(&[0, 1], vec![long], vec![point(2), point(4)], false).len(), 2);
}

/// Distinct texts of so many bytes.
fn texts(count: usize, bytes: usize) -> KeyValues {
    let text = |number: usize| Value::Bytes(format!("{number:0bytes$}").into_bytes());
    KeyValues::List((0..count).map(|number| Operand::Constant(text(number))).collect())
}

#[test]
fn a_key_of_too_many_bytes_ends_before_the_value_that_makes_them() {
    for (columns, prefix, found, bytes) in [
        (vec![2, 2], vec![texts(10, 100), texts(10, 100)], 100, 204),
        (vec![2, 2], vec![texts(256, 8000), texts(256, 8000)], 256, 8002),
        (vec![2, 2, 0], vec![texts(256, 8000), texts(256, 8000), list(1..2)], 256, 8002),
        // A text after the lists.
        (vec![0, 1, 2], vec![list(0..64), list(0..64), texts(1, 8000)], 64, 3),
        // Lists that have no place beside a text.
        (vec![2, 0, 1], vec![texts(1, 8000), list(0..64), list(0..64)], 1, 8003),
    ] {
        let prefix: Vec<KeyValues> = prefix
            .into_iter()
            .map(|part| match part {
                KeyValues::List(mut list) if list.len() == 1 => KeyValues::One(list.remove(0)),
                part => part,
            })
            .collect();
        let ranges = ranges(&columns, prefix, vec![], false);
        assert_eq!((ranges.len(), ranges[0].0.len()), (found, bytes), "{columns:?}");
    }
    // The values of the column after the lists.
    let prefix = vec![list(0..2), list(0..128)];
    assert_eq!(ranges(&[0, 1, 2], prefix, vec![ValueSet::Values(texts(64, 8000))], false).len(), 2);
}

#[test]
fn keys_and_ranges_of_too_many_bytes_are_an_error_and_leave_no_memory() {
    let definition = table();
    let scratch = Scratch::new();
    let values = Values { parameters: Parameters::NONE, scratch: &scratch };
    let mut builder = KeyBuilder::default();
    // 9,300 pairs of bounds of 16 KiB. The ranges imply all conditions.
    let template = RangeTemplate {
        columns: vec![ColumnNumber(2), ColumnNumber(2)],
        descending: Vec::new(),
        prefix: vec![texts(93, 15_000)],
        value_sets: vec![ValueSet::Values(texts(100, 1_500))],
    };
    let ranges = RangesOf { template: &template, descending: false, by_range: false };
    let outcome = builder.build_ranges(&definition, ranges, &values, &mut |_, _| {});
    assert_eq!(outcome.map_err(|error| error.code), Err(ErrorCode::StatementTooComplex));
    assert_eq!(builder.bytes.capacity(), 0);
    let alternatives = (0..100).map(|number| vec![KeyValues::One(constant(number)), texts(100, 30_000)]).collect();
    let template = KeyTemplate { columns: vec![ColumnNumber(0), ColumnNumber(2)], alternatives };
    let outcome = builder.build_keys(&definition, &template, &values, &mut |_, _, _| {});
    assert_eq!(outcome.map_err(|error| error.code), Err(ErrorCode::StatementTooComplex));
    assert_eq!(builder.bytes.capacity(), 0);
}
