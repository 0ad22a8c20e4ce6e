use std::sync::Arc;

use junctor_expression::Expression;
use junctor_expression::program::{ArithmeticOperator, CompareOperator};
use junctor_model::collation::CollationId;
use junctor_model::id::{ColumnNumber, CommitNumber, RowId, StatementNumber, TransactionId};
use junctor_model::limit::{REPLY_BYTES_MAX, ROWS_PER_HOLD_MAX};
use junctor_model::partition::HashedKey;
use junctor_model::row_encoding::ResultColumn;
use junctor_model::value::{Decimal, Value};
use junctor_signals::program::{Access, Output, Projection, ReadProgram, RowProtocol, SortKey};
use junctor_storage::page::PagePool;
use junctor_storage::partition_store::{PartitionStore, Reader, Writer};

use super::row_reader::ReadView;
use super::sort_key::append_sort_key;
use super::{ReadPosition, RowReader};
use crate::tests::harness::{ID, INDEX_K, K, SampleTable, U};

fn constant(value: i64) -> Expression {
    Expression::constant(Value::Int(value), CollationId::DEFAULT)
}

fn column(table: &SampleTable, column: ColumnNumber) -> Expression {
    let definition = &table.layout.definition.columns[usize::from(column.0)];
    Expression::column(column, definition, &definition.name)
}

fn projection(values: Vec<Expression>) -> Projection {
    let columns: Vec<ResultColumn> = values.iter().map(|value| value.result.result_column("value")).collect();
    Projection::new(values, columns)
}

/// The text column of the sample table.
const TEXT: ColumnNumber = ColumnNumber(3);

/// Two projections of these columns: one that a plan of the row encodes, and one that is encoded value by
/// value.
fn planned_and_computed(table: &SampleTable, chosen: &[ColumnNumber]) -> [Projection; 2] {
    let values: Vec<Expression> = chosen.iter().map(|index| column(table, *index)).collect();
    let definition = |index: &ColumnNumber| &table.layout.definition.columns[usize::from(index.0)];
    let columns: Vec<ResultColumn> =
        chosen.iter().map(|index| ResultColumn::of_definition(definition(index))).collect();
    let computed = Projection::new(values, columns);
    let planned = computed.clone().with_format(&table.layout.row_format);
    assert!(planned.row_plan.is_some() && computed.row_plan.is_none());
    [planned, computed]
}

/// A partition with rows 1 to `count`, committed with number 1; k is 10 times the id.
fn store(table: &SampleTable, count: i64) -> PartitionStore {
    store_of(table, count, |_| (None, 4))
}

/// As `store`. `of_id` returns u and the length of the text.
fn store_of(table: &SampleTable, count: i64, of_id: impl Fn(i64) -> (Option<i64>, usize)) -> PartitionStore {
    let pool = PagePool::new(32 << 20).expect("address space");
    let mut store = PartitionStore::new(Arc::clone(&table.layout), pool);
    let transaction = TransactionId(1);
    for id in 1..=count {
        let (_, key, hash) = table.key(id);
        let (u, text_bytes) = of_id(id);
        let text: String = (0..text_bytes).map(|at| char::from(b'a' + ((at as i64 + id) % 26) as u8)).collect();
        let image = table.image(id, id * 10, u, &text);
        let row = store
            .insert(HashedKey { hash, key: &key }, &image, Writer { transaction, statement: StatementNumber(1) })
            .expect("memory");
        store.commit(row, transaction, CommitNumber(1));
    }
    store
}

/// All rows of a program, read in replies of `rows_max` rows.
fn read(
    store: &PartitionStore,
    program: &ReadProgram,
    protocol: RowProtocol,
    input: &[u8],
    rows_max: u32,
) -> Vec<Vec<u8>> {
    let mut reader = RowReader::new();
    let mut replies = Vec::new();
    let mut position = Some(ReadPosition::at_start(input));
    while let Some(mut at) = position.take() {
        let snapshot = CommitNumber(1);
        let filter = program.filter.as_ref();
        let view = ReadView { program, filter, protocol, input, reader: Reader { snapshot, own: None }, rows_max };
        let mut out = Vec::new();
        reader.emitter.begin(&program.output).expect("a program that can run");
        while !reader.read_guarded(store, &view, &mut at, &mut out).expect("no error") {}
        reader.emitter.end(&program.output, &mut out).expect("sums of few digits");
        replies.push(out);
        position = at.resume().map(|resume| ReadPosition::resumed(&resume));
    }
    replies
}

#[test]
fn rows_are_whole_packets_in_both_protocols() {
    let table = SampleTable::new(1);
    let store = store(&table, 3);
    let sum = Expression::arithmetic(ArithmeticOperator::Add, column(&table, K), constant(1));
    let output = Output::Packets(projection(vec![column(&table, ID), sum]));
    let program = table.reading(Access::PrimaryKeys, None, output);
    let input = table.keys(&[2]).remove(&0).expect("one partition");
    let text = read(&store, &program, RowProtocol::Text, &input, 10).concat();
    assert_eq!(text, b"\x05\0\0\0\x012\x0221");
    let binary = read(&store, &program, RowProtocol::Binary, &input, 10).concat();
    // Header, 0, NULL bits, then two integers of eight bytes.
    assert_eq!(binary[..6], [18, 0, 0, 0, 0, 0]);
    assert_eq!(binary[6..], [2u64.to_le_bytes(), 21u64.to_le_bytes()].concat());
}

#[test]
fn every_access_gives_the_same_rows_whatever_the_batch() {
    let table = SampleTable::new(1);
    let store = store(&table, 300);
    let ids: Vec<i64> = (50..=250).collect();
    let within = |low, high| {
        let lower = Expression::comparison(CompareOperator::GreaterOrEqual, column(&table, ID), constant(low));
        let upper = Expression::comparison(CompareOperator::LessOrEqual, column(&table, ID), constant(high));
        Expression::and(vec![lower.expect("numbers"), upper.expect("numbers")])
    };
    let accesses = [
        (Access::PrimaryKeys, None, table.keys(&ids)),
        (Access::IndexRanges { index: INDEX_K, descending: false }, None, table.range(500, 2500)),
        (Access::AllRows, Some(within(50, 250)), table.everything()),
    ];
    for (access, filter, mut parts) in accesses {
        let program = table.reading(access, filter, Output::Images);
        let input = parts.remove(&0).expect("one partition");
        for rows_max in [1, 7, 64, 65, 1000] {
            let replies = read(&store, &program, RowProtocol::Text, &input, rows_max);
            assert!(replies.iter().all(|reply| table.rows_of(reply).len() <= rows_max as usize));
            let found: Vec<i64> = replies.iter().flat_map(|reply| table.rows_of(reply)).map(|row| row.0).collect();
            assert_eq!(found, ids, "{access:?} in batches of {rows_max}");
        }
    }
}

/// Accesses that find rows 1 to `count` of the table, most of them in more than one hold of the guard.
fn accesses(table: &SampleTable, count: i64) -> Vec<(Access, Option<Expression>, Vec<u8>)> {
    let ids: Vec<i64> = (0..=count + 5).collect();
    let input_of = |mut parts: std::collections::BTreeMap<u16, junctor_kernel::Buffer>| {
        parts.remove(&0).expect("one partition").to_vec()
    };
    let keys = |ids: &[i64]| (Access::PrimaryKeys, None, input_of(table.keys(ids)));
    let range =
        |descending| (Access::IndexRanges { index: INDEX_K, descending }, None, input_of(table.range(0, count * 10)));
    let filter =
        Expression::comparison(CompareOperator::GreaterOrEqual, column(table, ID), constant(3)).expect("numbers");
    let hold = ROWS_PER_HOLD_MAX;
    vec![
        keys(&ids),
        keys(&ids[1..2]),
        keys(&ids[1..=hold]),
        keys(&ids[1..=hold + 1]),
        (Access::PrimaryKeys, Some(filter.clone()), input_of(table.keys(&ids))),
        range(false),
        range(true),
        (Access::AllRows, None, input_of(table.everything())),
        (Access::AllRows, Some(filter), input_of(table.everything())),
    ]
}

/// Asserts that encoding by plan and value by value give the same replies. Returns their number and bytes.
fn assert_same_replies(table: &SampleTable, store: &PartitionStore, count: i64, rows_max: u32) -> Vec<(usize, usize)> {
    let mut sizes = Vec::new();
    for chosen in [&[ID, K, U, TEXT][..], &[TEXT, U, ID, TEXT], &[ID]] {
        for (access, filter, input) in accesses(table, count) {
            for protocol in [RowProtocol::Text, RowProtocol::Binary] {
                let [planned, computed] = planned_and_computed(table, chosen).map(|projection| {
                    let output = Output::Packets(projection);
                    read(store, &table.reading(access, filter.clone(), output), protocol, &input, rows_max)
                });
                let lengths = |replies: &[Vec<u8>]| replies.iter().map(Vec::len).collect::<Vec<_>>();
                let what = format!("{access:?} of {chosen:?}, {protocol:?}, {rows_max} rows");
                assert_eq!(lengths(&planned), lengths(&computed), "{what}");
                assert!(planned == computed, "{what}");
                sizes.push((planned.len(), planned.iter().map(Vec::len).max().unwrap_or(0)));
            }
        }
    }
    sizes
}

#[test]
fn copy_plans_and_values_encode_the_same_rows_for_every_batch() {
    let table = SampleTable::new(1);
    let count = 300;
    let store = store_of(&table, count, |id| ((id % 3 == 0).then_some(id * 7), (id % 5) as usize));
    for rows_max in [0, 1, 7, 63, 64, 65, 128, 1000, u32::MAX] {
        let sizes = assert_same_replies(&table, &store, count, rows_max);
        // The first access has more keys than rows. Its last keys find nothing, and get a separate reply if
        // the earlier rows filled theirs.
        let replies = (count as usize).div_ceil(rows_max.max(1) as usize);
        assert!((replies..=replies + 1).contains(&sizes[0].0), "{} replies of {rows_max} rows", sizes[0].0);
    }
}

#[test]
fn copy_plans_and_values_end_replies_at_the_same_row() {
    let table = SampleTable::new(1);
    let count = 90;
    // Wide rows, rows with their text in overflow pages, and rows so wide that one hold exceeds a reply.
    let text_bytes = |id| match id % 30 {
        7 => 70_000,
        11 | 12 => 20_000,
        15 => 0,
        _ => 2_000,
    };
    let store = store_of(&table, count, |id| ((id % 4 == 0).then_some(id), text_bytes(id)));
    for rows_max in [1, 7, 63, 64, 65, 1000, u32::MAX] {
        let sizes = assert_same_replies(&table, &store, count, rows_max);
        let (replies, bytes_max) = sizes[0];
        assert!(replies > 3 && bytes_max >= REPLY_BYTES_MAX, "{replies} replies of at most {bytes_max} bytes");
    }
}

#[test]
fn copy_plans_and_values_make_the_same_sort_entries() {
    let table = SampleTable::new(1);
    let store = store_of(&table, 100, |id| ((id % 2 == 0).then_some(id), (id % 40) as usize * 10));
    let input = table.everything().remove(&0).expect("one partition");
    for protocol in [RowProtocol::Text, RowProtocol::Binary] {
        let [planned, computed] = planned_and_computed(&table, &[TEXT, U, K, TEXT]).map(|projection| {
            let sort = vec![SortKey { value: column(&table, K), descending: true, is_in_result: false }];
            let output = Output::Entries { projection, sort, distinct: None };
            read(&store, &table.reading(Access::AllRows, None, output), protocol, &input, 30)
        });
        assert!(planned.len() > 3 && planned == computed);
    }
}

#[test]
fn sort_entries_have_byte_comparable_keys() {
    let table = SampleTable::new(1);
    let store = store(&table, 20);
    let sort = vec![
        SortKey {
            value: Expression::arithmetic(ArithmeticOperator::Remainder, column(&table, ID), constant(3)),
            descending: true,
            is_in_result: false,
        },
        SortKey { value: column(&table, ID), descending: false, is_in_result: false },
    ];
    let output = Output::Entries { projection: projection(vec![column(&table, ID)]), sort, distinct: Some(vec![0]) };
    let program = table.reading(Access::AllRows, None, output);
    let input = table.everything().remove(&0).expect("one partition");
    let bytes = read(&store, &program, RowProtocol::Text, &input, 1000).concat();
    let mut entries = Vec::new();
    let mut rest = &bytes[..];
    while !rest.is_empty() {
        let packet = u32::from_le_bytes(*rest.first_chunk().expect("a header")) as usize;
        let sort = usize::from(u16::from_le_bytes([rest[4], rest[5]]));
        let distinct = usize::from(u16::from_le_bytes([rest[6], rest[7]]));
        let keys = 8 + sort + distinct;
        assert!(sort > 0 && distinct > 0);
        entries.push((rest[8..8 + sort].to_vec(), rest[keys + 5..keys + packet].to_vec()));
        rest = &rest[keys + packet..];
    }
    entries.sort();
    let ids: Vec<i64> =
        entries.iter().map(|(_, text)| String::from_utf8_lossy(text).parse().expect("a number")).collect();
    let mut expected: Vec<i64> = (1..=20).collect();
    expected.sort_by_key(|id| (-(id % 3), *id));
    assert_eq!(ids, expected);
}

#[test]
fn sort_keys_of_every_type_order_like_their_values() {
    let ordered = |values: &[Value], result: junctor_expression::ResultType| {
        let keys: Vec<Vec<u8>> = values
            .iter()
            .map(|value| {
                let mut key = Vec::new();
                let is_cut = append_sort_key(&result, value.as_ref(), false, &mut key);
                assert!(!is_cut || key.len() == 4096);
                key
            })
            .collect();
        assert!(keys.is_sorted(), "{values:?}");
        let reversed = values.iter().rev().map(|value| {
            let mut key = Vec::new();
            append_sort_key(&result, value.as_ref(), true, &mut key);
            key
        });
        assert!(reversed.collect::<Vec<_>>().is_sorted(), "{values:?} against the order");
    };
    let of = |value: &Value| junctor_expression::ResultType::of_value(value.as_ref(), CollationId::DEFAULT);
    let integers = [Value::Null, Value::Int(i64::MIN), Value::Int(-1), Value::Int(0), Value::Int(i64::MAX)];
    ordered(&integers, of(&Value::Int(1)));
    let doubles = [Value::Null, Value::Double(-1e300), Value::Double(-0.5), Value::Double(0.0), Value::Double(2.0)];
    ordered(&doubles, of(&Value::Double(1.0)));
    let decimal = |mantissa| Value::Decimal(Decimal::Narrow { mantissa, scale: 2 });
    ordered(&[Value::Null, decimal(-1000), decimal(-1), decimal(0), decimal(99)], of(&decimal(150)));
    // COALESCE of DECIMAL(38, 0) and DECIMAL(38, 30): no mantissa holds both.
    let exact = |mantissa, scale| Value::Decimal(Decimal::Narrow { mantissa, scale });
    let (great, one) = (10i128.pow(37), 10i128.pow(30));
    let several_scales = [
        exact(-great, 0),
        exact(-2 * one, 30),
        exact(-one - 1, 30),
        exact(-1, 0),
        exact(-1, 30),
        exact(0, 0),
        exact(1, 30),
        exact(15, 1),
        exact(2, 0),
        exact(2 * one + 1, 30),
        exact(great, 0),
        exact(great + 1, 0),
    ];
    let result = junctor_expression::ResultType::decimal(65, 30);
    ordered(&several_scales, result);
    let key = |value: Value| {
        let mut key = Vec::new();
        append_sort_key(&result, value.as_ref(), false, &mut key);
        key
    };
    assert_eq!(key(exact(2, 0)), key(exact(2 * one, 30)));
    assert_ne!(key(exact(great, 0)), key(exact(great, 30)));
    // Floors of more than 38 digits, on both sides of those that an i128 holds.
    let wide = |text: &str| Value::Decimal(junctor_model::number::parse_decimal(text.as_bytes()).value.unwrap());
    let (nines, limit) = ("9".repeat(65), i128::MAX.to_string());
    let wide_values = [
        Value::Null,
        wide(&format!("-{nines}")),
        wide(&format!("-{limit}0")),
        wide(&format!("-{limit}")),
        wide(&format!("-{}", "9".repeat(38))),
        wide(&format!("-{}.5", "9".repeat(20))),
        wide("-0.000000000000000000000000000001"),
        wide("0.000000000000000000000000000001"),
        wide(&format!("{}.{}", "9".repeat(20), "9".repeat(30))),
        wide(&"9".repeat(38)),
        wide(&format!("1{}", "0".repeat(38))),
        wide(&limit),
        wide(&format!("{limit}.5")),
        wide(&format!("{limit}0")),
        wide(&nines),
    ];
    ordered(&wide_values, result);
    assert_eq!(key(wide("100000000000000000000")), key(wide("100000000000000000000.000000000000000000000000000000")));
    let text = |text: &str| Value::Bytes(text.into());
    ordered(&[Value::Null, text(""), text("a"), text("ab"), text("B"), text(&"c".repeat(9000))], of(&text("abc")));
}

#[test]
fn a_reader_sees_only_the_version_of_its_snapshot() {
    let table = SampleTable::new(1);
    let mut store = store(&table, 2);
    let writer = TransactionId(5);
    let image = table.image(1, 99, None, "new");
    store.update(RowId(0), &image, Writer { transaction: writer, statement: StatementNumber(1) }).expect("memory");
    let program = table.reading(Access::AllRows, None, Output::Images);
    let input = table.everything().remove(&0).expect("one partition");
    let k_of = |store: &PartitionStore, own| {
        let mut position = ReadPosition::at_start(&input);
        let reader = Reader { snapshot: CommitNumber(1), own };
        let view = ReadView {
            program: &program,
            filter: program.filter.as_ref(),
            protocol: RowProtocol::Text,
            input: &input,
            reader,
            rows_max: 10,
        };
        let mut out = Vec::new();
        RowReader::new().read_guarded(store, &view, &mut position, &mut out).expect("no error");
        table.rows_of(&out)[0].1
    };
    assert_eq!((k_of(&store, None), k_of(&store, Some(writer))), (10, 99));
    store.commit(RowId(0), writer, CommitNumber(2));
    assert_eq!(k_of(&store, None), 10);
}

#[test]
fn a_partial_reply_has_the_number_of_its_rows() {
    let table = SampleTable::new(1);
    let store = store(&table, 10);
    let program = table.reading(Access::AllRows, None, Output::Packets(projection(vec![column(&table, ID)])));
    let input = table.everything().remove(&0).expect("one partition");
    let mut reader = RowReader::new();
    let mut counts = Vec::new();
    let mut position = Some(ReadPosition::at_start(&input));
    while let Some(mut at) = position.take() {
        let view = ReadView {
            program: &program,
            filter: None,
            protocol: RowProtocol::Text,
            input: &input,
            reader: Reader { snapshot: CommitNumber(1), own: None },
            rows_max: 4,
        };
        reader.emitter.begin(&program.output).expect("a program that can run");
        while !reader.read_guarded(&store, &view, &mut at, &mut Vec::new()).expect("no error") {}
        let resume = at.resume();
        counts.extend(resume.iter().map(|resume| resume.rows));
        position = resume.map(|resume| ReadPosition::resumed(&resume));
    }
    assert_eq!(counts, [4, 8]);
}
