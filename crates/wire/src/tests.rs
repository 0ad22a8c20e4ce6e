//! Encoded messages decode to the same values; malformed bytes are refused without a panic.

use junctor_model::decimal::largest;
use junctor_model::row_encoding::ResultColumn;
use junctor_model::value::{Decimal, ValueRef};
use proptest::prelude::*;

use super::frame::{self, decode_header};
use super::reply::{self, Done, Greeting, KEY_ROWS_HEADER_BYTES, begin_key_rows, end_key_rows};
use super::request::{Login, encode_values, parse_values};
use super::*;

fn encoded(request: &Request<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    assert!(request.encode(7, &mut bytes));
    bytes
}

#[test]
fn every_request_decodes_to_itself() {
    let values = {
        let mut values = Vec::new();
        let decimal = Decimal::Narrow { mantissa: -125, scale: 2 };
        let all = [
            ValueRef::Null,
            ValueRef::Int(-1),
            ValueRef::UInt(u64::MAX),
            ValueRef::Double(0.5),
            ValueRef::Decimal(decimal),
            ValueRef::Decimal(largest(65, 30, true)),
            ValueRef::Bytes(b"text"),
        ];
        encode_values(all, &mut values);
        let mut read = Vec::new();
        parse_values(7, &values, &mut |value| read.push(value.to_value())).expect("the values are complete");
        assert_eq!(read, all.map(ValueRef::to_value));
        values
    };
    let keys = [1i64.to_le_bytes(), (-1i64).to_le_bytes()];
    let requests = [
        Request::Ping,
        Request::Reset,
        Request::RunText("SELECT 'ü'"),
        Request::Prepare { handle: 3, text: "SELECT ?" },
        Request::Execute { handle: 3, count: 7, values: &values },
        Request::Close { handle: 3 },
        Request::PrepareReader { reader: 4, database: "", table: "t", columns: vec!["a", "b"] },
        Request::ReadKeys { reader: 4, keys: KeyValues::Integers(&keys) },
        Request::ReadKeys { reader: 4, keys: KeyValues::Values { keys: 6, values: &values } },
        Request::CloseReader { reader: 4 },
    ];
    for request in requests {
        let bytes = encoded(&request);
        let (Frame { kind, payload }, rest) = next_frame(&bytes).expect("the frame is complete");
        assert_eq!(rest, b"");
        assert_eq!(Request::parse(kind, payload), (7, Ok(Some(request))));
        for length in 0..bytes.len() {
            assert_eq!(next_frame(&bytes[..length]), None);
        }
    }
}

#[test]
fn logins_and_greetings_decode_to_themselves() {
    let greeting = Greeting { version: 1, connection: 9, salt: [5; SALT_BYTES], server_version: "8.0" };
    let mut bytes = Vec::new();
    greeting.encode(&mut bytes);
    assert_eq!(Greeting::parse(next_frame(&bytes).expect("the frame is complete").0.payload), Ok(greeting));
    let login = Login { version: VERSION, user: "ann", proof: &[1; 20], database: "shop" };
    let mut bytes = Vec::new();
    assert!(login.encode(&mut bytes));
    assert_eq!(Login::parse(next_frame(&bytes).expect("the frame is complete").0.payload), Ok(login));
}

#[test]
fn a_request_longer_than_a_frame_is_not_encoded() {
    let mut bytes = b"before".to_vec();
    let text = "x".repeat(frame::PAYLOAD_BYTES_MAX);
    assert!(!Request::RunText(&text).encode(7, &mut bytes));
    assert_eq!(bytes, b"before");
}

#[test]
fn a_request_with_a_name_that_does_not_fit_is_not_encoded() {
    let longest = "n".repeat(usize::from(u16::MAX));
    let too_long = format!("{longest}n");
    for (name, is_encoded) in [(longest.as_str(), true), (too_long.as_str(), false)] {
        let mut requests: Vec<Request<'_>> = vec![
            Request::PrepareReader { reader: 4, database: name, table: "t", columns: vec!["a"] },
            Request::PrepareReader { reader: 4, database: "", table: name, columns: vec!["a"] },
            Request::PrepareReader { reader: 4, database: "", table: "t", columns: vec!["a", name] },
        ];
        if !is_encoded {
            let columns = vec!["a"; READER_COLUMNS_MAX + 1];
            requests.push(Request::PrepareReader { reader: 4, database: "", table: "t", columns });
        }
        for request in requests {
            let mut bytes = b"before".to_vec();
            assert_eq!(request.encode(7, &mut bytes), is_encoded);
            assert_eq!(bytes.len() > 6, is_encoded);
        }
        for (user, database) in [(name, ""), ("", name)] {
            let mut bytes = Vec::new();
            assert_eq!(Login { version: VERSION, user, proof: &[], database }.encode(&mut bytes), is_encoded);
            assert_eq!(!bytes.is_empty(), is_encoded);
        }
    }
    let mut bytes = Vec::new();
    assert!(!Login { version: VERSION, user: "ann", proof: &[1; 256], database: "" }.encode(&mut bytes));
}

#[test]
fn a_long_column_name_is_truncated() {
    let name = "ü".repeat(100_000);
    let column = ResultColumn {
        name: name.as_str().into(),
        org_name: "".into(),
        table: "".into(),
        org_table: "".into(),
        database: "".into(),
        wire_type: 3,
        flags: 0,
        charset: 63,
        length: 11,
        decimals: 0,
    };
    // The most columns that a result has.
    let mut bytes = Vec::new();
    reply::encode_prepared(9, 2, &vec![column; 4096], &mut bytes);
    let (frame, _) = next_frame(&bytes).expect("the frame is complete");
    let Ok((9, Reply::Prepared { columns, .. })) = Reply::parse(frame) else { panic!("{}", bytes.len()) };
    assert_eq!(columns.len(), 4096);
    assert!(columns.iter().all(|column| column.name == &name[..512]));
}

#[test]
fn the_number_of_keys_is_bounded_before_the_keys_are_read() {
    let mut bytes = encoded(&Request::ReadKeys { reader: 1, keys: KeyValues::Integers(&[]) });
    let end = bytes.len();
    bytes[end - 4..].copy_from_slice(&u32::MAX.to_le_bytes());
    let (frame, _) = next_frame(&bytes).expect("the frame is complete");
    assert_eq!(Request::parse(frame.kind, frame.payload), (7, Err(Malformed { field: "keys" })));
}

#[test]
fn replies_decode_to_themselves() {
    let mut bytes = Vec::new();
    let done = Done { status: 3, warnings: 1, affected_rows: 2, last_insert_id: 3, info: "Rows matched: 2" };
    reply::encode_done(7, &done, &mut bytes);
    reply::encode_failed(8, 1062, *b"23000", "Duplicate entry", &mut bytes);
    let column = ResultColumn {
        name: "a".into(),
        org_name: "a".into(),
        table: "t".into(),
        org_table: "t".into(),
        database: "d".into(),
        wire_type: 3,
        flags: 1,
        charset: 63,
        length: 11,
        decimals: 0,
    };
    reply::encode_prepared(9, 2, &[column.clone(), column], &mut bytes);
    let (first, rest) = next_frame(&bytes).expect("the frame is complete");
    assert_eq!(Reply::parse(first), Ok((7, Reply::Done(done))));
    let (second, rest) = next_frame(rest).expect("the frame is complete");
    let failed = Reply::Failed { errno: 1062, sqlstate: *b"23000", message: "Duplicate entry" };
    assert_eq!(Reply::parse(second), Ok((8, failed)));
    let (third, rest) = next_frame(rest).expect("the frame is complete");
    let Ok((9, Reply::Prepared { parameters: 2, columns })) = Reply::parse(third) else { panic!("{third:?}") };
    assert_eq!(columns.iter().map(|column| column.name).collect::<Vec<_>>(), ["a", "a"]);
    assert_eq!(rest, b"");
}

#[test]
fn rows_by_keys_are_not_longer_than_a_frame() {
    let mut bytes = Vec::new();
    begin_key_rows(&mut bytes);
    bytes.extend_from_slice(&[0; 8]);
    assert!(end_key_rows(7, 1, 1, &mut bytes));
    assert_eq!(decode_header(&bytes), Some((reply::kind::KEY_ROWS, KEY_ROWS_HEADER_BYTES + 8 - frame::HEADER_BYTES)));
    bytes.resize(frame::PAYLOAD_BYTES_MAX + frame::HEADER_BYTES, 0);
    assert!(!end_key_rows(7, 1, 1, &mut bytes));
}

proptest! {
    /// Decoding of arbitrary bytes never panics, and never trusts a length in them.
    #[test]
    fn arbitrary_bytes_are_decoded_without_a_panic(kind in any::<u8>(), payload in prop::collection::vec(any::<u8>(), 0..200)) {
        if let (_, Ok(Some(request))) = Request::parse(kind, &payload) {
            if let Request::Execute { count, values, .. } = &request {
                let _ = parse_values(*count, values, &mut |_| {});
            }
            let Request::ReadKeys { keys, .. } = &request else { return Ok(()) };
            prop_assert!(keys.len() <= KEYS_MAX);
        }
        let _ = Login::parse(&payload);
        let _ = Greeting::parse(&payload);
        if let Ok((_, reply)) = Reply::parse(Frame { kind, payload: &payload }) {
            match reply {
                Reply::Columns(columns) | Reply::Prepared { columns, .. } => {
                    prop_assert_eq!(columns.iter().count(), columns.len());
                }
                Reply::KeyRows(rows) => prop_assert!(rows.body.len() + rows.index.len() * 4 <= payload.len()),
                _ => {}
            }
        }
        let _ = next_frame(&payload);
    }

    /// Decoding of a request with one changed byte and a missing end never panics.
    #[test]
    fn modified_requests_are_decoded_without_a_panic(position in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<prop::sample::Index>()) {
        let mut values = Vec::new();
        encode_values([ValueRef::Int(1), ValueRef::Bytes(b"abc")], &mut values);
        for request in [
            Request::Execute { handle: 1, count: 2, values: &values },
            Request::PrepareReader { reader: 1, database: "d", table: "t", columns: vec!["a", "b"] },
            Request::ReadKeys { reader: 1, keys: KeyValues::Integers(&[[1; 8]; 3]) },
        ] {
            let mut bytes = encoded(&request);
            let at = frame::HEADER_BYTES + position.index(bytes.len() - frame::HEADER_BYTES);
            bytes[at] = byte;
            let (frame, _) = next_frame(&bytes).expect("the length is unchanged");
            let cut = &frame.payload[..cut.index(frame.payload.len() + 1)];
            if let (_, Ok(Some(Request::Execute { count, values, .. }))) = Request::parse(frame.kind, cut) {
                let _ = parse_values(count, values, &mut |_| {});
            }
        }
    }
}
