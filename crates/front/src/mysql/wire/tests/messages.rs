use super::hex;
use crate::mysql::wire::authentication_switch::AuthenticationSwitch;
use crate::mysql::wire::capability::Capabilities;
use crate::mysql::wire::column::{ColumnDefault, ColumnDefinition, ColumnFlags};
use crate::mysql::wire::connect_attributes::{ConnectAttributes, put_attribute};
use crate::mysql::wire::error::ProtocolError;
use crate::mysql::wire::field::{FieldReader, put_length_encoded_integer, put_zero_terminated};
use crate::mysql::wire::greeting::{Greeting, NATIVE_PASSWORD};
use crate::mysql::wire::handshake_response::{ClientAnswer, HandshakeResponse};
use crate::mysql::wire::packet::PacketWriter;
use crate::mysql::wire::parameter_type::ColumnType;
use crate::mysql::wire::reply::{
    ERROR_MESSAGE_BYTES_MAX, ErrorReply, OkReply, PrepareReply, ResultEnd, columns_have_end, encode_column_count,
};
use crate::mysql::wire::status::StatusFlags;

fn encoded(encode: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    encode(&mut out);
    out
}

#[test]
fn length_encoded_integers_use_the_shortest_form() {
    for (value, bytes) in [
        (0, "00"),
        (0xfa, "fa"),
        (0xfb, "fc fb 00"),
        (0xffff, "fc ff ff"),
        (0x1_0000, "fd 00 00 01"),
        (0xff_ffff, "fd ff ff ff"),
        (0x100_0000, "fe 00 00 00 01 00 00 00 00"),
        (u64::MAX, "fe ff ff ff ff ff ff ff ff"),
    ] {
        let encoded = encoded(|out| put_length_encoded_integer(out, value));
        assert_eq!(encoded, hex(bytes));
        let mut fields = FieldReader::new(&encoded);
        assert_eq!(fields.length_encoded_integer("value"), Ok(value));
        assert!(fields.is_empty());
    }
}

#[test]
fn marker_bytes_are_not_lengths() {
    for mark in [0xfb, 0xff] {
        let mut fields = FieldReader::new(std::slice::from_ref(&mark));
        assert_eq!(fields.length_encoded_integer("value"), Err(ProtocolError::Malformed { field: "value" }));
    }
}

#[test]
fn a_length_beyond_the_payload_is_refused() {
    let bytes = hex("fe ff ff ff ff ff ff ff ff 61");
    assert!(FieldReader::new(&bytes).length_encoded_bytes("value").is_err());
    assert!(FieldReader::new(&[3, 1, 2]).length_encoded_bytes("value").is_err());
}

#[test]
fn a_zero_inside_a_zero_terminated_string_cannot_move_the_next_field() {
    assert_eq!(encoded(|out| put_zero_terminated(out, b"ab\0cd")), b"ab\0");
}

#[test]
fn ok_has_the_documented_bytes() {
    let ok = OkReply { status: StatusFlags::AUTOCOMMIT, ..OkReply::default() };
    assert_eq!(encoded(|out| ok.encode(out)), hex("00 00 00 02 00 00 00"));
    let ok = OkReply {
        affected_rows: 300,
        last_insert_id: 7,
        status: StatusFlags::AUTOCOMMIT | StatusFlags::IN_TRANSACTION,
        warning_count: 2,
        info: b"Rows",
    };
    let bytes = encoded(|out| ok.encode(out));
    assert_eq!(bytes, hex("00 fc 2c 01 07 03 00 02 00 04 52 6f 77 73"));
    assert_eq!(OkReply::parse(&bytes), Ok(ok));
}

#[test]
fn a_result_ends_in_the_form_the_client_negotiated() {
    let end = ResultEnd { status: StatusFlags::AUTOCOMMIT, warning_count: 1 };
    assert_eq!(encoded(|out| end.encode(Capabilities::PROTOCOL_41, out)), hex("fe 01 00 02 00"));
    let modern = Capabilities::PROTOCOL_41 | Capabilities::DEPRECATE_EOF;
    assert_eq!(encoded(|out| end.encode(modern, out)), hex("fe 00 00 02 00 01 00"));
    assert!(columns_have_end(Capabilities::PROTOCOL_41) && !columns_have_end(modern));
    assert_eq!(ResultEnd::parse_eof(&hex("fe 01 00 02 00")), Ok(end));
}

#[test]
fn an_error_has_the_documented_bytes() {
    let error = ErrorReply { errno: 1096, sqlstate: *b"HY000", message: b"No tables used" };
    let packet = encoded(|out| PacketWriter::new(out, 1).packet(|out| error.encode(out)));
    let documented = hex("17 00 00 01 ff 48 04 23 48 59 30 30 30 4e 6f 20 74 61 62 6c 65 73 20 75 73 65 64");
    assert_eq!(packet, documented);
    assert_eq!(ErrorReply::parse(&packet[4..]), Ok(error));
}

#[test]
fn a_long_error_text_is_truncated_between_characters() {
    let message = "ä".repeat(400);
    let error = ErrorReply { errno: 1064, sqlstate: *b"42000", message: message.as_bytes() };
    let bytes = encoded(|out| error.encode(out));
    let sent = ErrorReply::parse(&bytes).unwrap().message;
    assert_eq!(sent.len(), ERROR_MESSAGE_BYTES_MAX - 1);
    assert!(std::str::from_utf8(sent).is_ok());
}

#[test]
fn protocol_errors_have_their_mysql_numbers() {
    for (error, errno, sqlstate) in [
        (ProtocolError::PacketsOutOfOrder { expected: 0, received: 1 }, 1156, b"08S01"),
        (ProtocolError::PacketTooLarge, 1153, b"08S01"),
        (ProtocolError::Malformed { field: "user" }, 1835, b"HY000"),
        (ProtocolError::WrongArguments, 1210, b"HY000"),
    ] {
        let reply = ErrorReply::from_protocol_error(error);
        assert_eq!((reply.errno, &reply.sqlstate), (errno, sqlstate));
    }
}

#[test]
fn a_prepared_statement_has_the_documented_head() {
    let reply = PrepareReply { statement_id: 1, column_count: 1, parameter_count: 2, warning_count: 0 };
    let packet = encoded(|out| PacketWriter::new(out, 1).packet(|out| reply.encode(out)));
    assert_eq!(packet, hex("0c 00 00 01 00 01 00 00 00 01 00 02 00 00 00 00"));
    assert_eq!(PrepareReply::parse(&packet[4..]), Ok(reply));
}

#[test]
fn a_column_has_the_documented_bytes() {
    let column = ColumnDefinition {
        schema: b"",
        table: b"",
        org_table: b"",
        name: b"@@version_comment",
        org_name: b"",
        charset: 8,
        length_bytes: 28,
        column_type: ColumnType::VarString,
        flags: ColumnFlags::NONE,
        decimals: 31,
    };
    let packet = encoded(|out| PacketWriter::new(out, 2).packet(|out| column.encode(out)));
    let documented = "27 00 00 02 03 64 65 66 00 00 00 11 40 40 76 65 72 73 69 6f 6e 5f 63 6f 6d 6d 65 6e 74 \
                      00 0c 08 00 1c 00 00 00 fd 00 00 1f 00 00";
    assert_eq!(packet, hex(documented));
    assert_eq!(ColumnDefinition::parse(&packet[4..]), Ok((column, None)));
}

#[test]
fn field_list_columns_carry_their_defaults() {
    let column = ColumnDefinition {
        schema: b"test",
        table: b"t",
        org_table: b"t",
        name: b"id",
        org_name: b"id",
        charset: 63,
        length_bytes: 11,
        column_type: ColumnType::Long,
        flags: ColumnFlags::NOT_NULL | ColumnFlags::PRIMARY_KEY,
        decimals: 0,
    };
    for (default, tail) in [(ColumnDefault::Null, "fb"), (ColumnDefault::Text(b"0"), "01 30")] {
        let bytes = encoded(|out| column.encode_with_default(default, out));
        assert!(bytes.ends_with(&hex(tail)));
        assert_eq!(ColumnDefinition::parse(&bytes), Ok((column, Some(default))));
    }
}

#[test]
fn the_number_of_columns_is_length_encoded() {
    assert_eq!(encoded(|out| encode_column_count(4, out)), [4]);
    assert_eq!(encoded(|out| encode_column_count(4096, out)), hex("fc 00 10"));
}

#[test]
fn the_greeting_has_the_documented_layout() {
    let greeting = Greeting {
        server_version: b"8.0.36-junctor",
        connection_id: 11,
        salt: *b"abcdefghijklmnopqrst",
        capabilities: Capabilities::SERVER,
        charset: 255,
        status: StatusFlags::AUTOCOMMIT,
        plugin: NATIVE_PASSWORD,
    };
    let mut expected = vec![10];
    expected.extend_from_slice(b"8.0.36-junctor\0");
    expected.extend_from_slice(&hex("0b 00 00 00"));
    expected.extend_from_slice(b"abcdefgh\0");
    expected.extend_from_slice(&hex("af a7 ff 02 00 ff 0d 15 00 00 00 00 00 00 00 00 00 00"));
    expected.extend_from_slice(b"ijklmnopqrst\0mysql_native_password\0");
    let bytes = encoded(|out| greeting.encode(out));
    assert_eq!(bytes, expected);
    assert_eq!(Greeting::parse(&bytes), Ok(greeting));
}

#[test]
fn unsupported_capabilities_are_not_announced() {
    assert!(!Capabilities::SERVER.contains(Capabilities::SSL));
}

/// The login of a 5.5.8 client, from the protocol's documentation.
const ANSWER_5_5_8: &str = "8d a6 0f 00 00 00 00 01 08 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 \
    70 61 6d 00 14 ab 09 ee f6 bc b1 32 3e 61 14 38 65 c0 99 1d 95 7d 75 d4 47 74 65 73 74 00 6d 79 73 71 6c 5f 6e 61 \
    74 69 76 65 5f 70 61 73 73 77 6f 72 64 00";

#[test]
fn the_documented_response_of_a_client_is_parsed() {
    let bytes = hex(ANSWER_5_5_8);
    let Ok(ClientAnswer::Response(response)) = ClientAnswer::parse(&bytes) else { panic!("a response") };
    assert_eq!(response.user, b"pam");
    assert_eq!(response.auth_response.len(), 20);
    assert_eq!(response.database, b"test");
    assert_eq!(response.plugin, Some(NATIVE_PASSWORD));
    assert_eq!((response.charset, response.packet_bytes_max), (8, 1 << 24));
    assert_eq!(encoded(|out| response.encode(out)), bytes);
}

#[test]
fn fields_missing_at_the_end_are_empty() {
    let whole = hex(ANSWER_5_5_8);
    let user_and_proof = 32 + 4 + 21;
    let Ok(ClientAnswer::Response(response)) = ClientAnswer::parse(&whole[..user_and_proof]) else {
        panic!("a response")
    };
    assert_eq!((response.database, response.plugin), (&b""[..], Some(&b""[..])));
    let Ok(ClientAnswer::Response(response)) = ClientAnswer::parse(&whole[..whole.len() - 1]) else {
        panic!("a response")
    };
    assert_eq!(response.plugin, Some(NATIVE_PASSWORD), "the last zero byte may be missing");
}

#[test]
fn a_truncated_response_is_refused() {
    let whole = hex(ANSWER_5_5_8);
    for length in (0..32 + 4 + 21).filter(|length| *length != 0) {
        assert!(ClientAnswer::parse(&whole[..length]).is_err(), "cut to {length} bytes");
    }
    assert!(ClientAnswer::parse(&[]).is_err());
}

#[test]
fn handshake_responses_round_trip() {
    let mut attributes = Vec::new();
    put_attribute(&mut attributes, b"_client_name", b"libmariadb");
    put_attribute(&mut attributes, b"_pid", b"");
    let optional = [
        Capabilities::CONNECT_WITH_DB,
        Capabilities::SECURE_CONNECTION,
        Capabilities::PLUGIN_AUTH_LENENC,
        Capabilities::PLUGIN_AUTH,
        Capabilities::CONNECT_ATTRS,
        Capabilities::ZSTD_COMPRESSION,
    ];
    for variant in 0..1_u32 << optional.len() {
        let mut capabilities = Capabilities::PROTOCOL_41;
        for (bit, capability) in optional.into_iter().enumerate() {
            if variant & (1 << bit) != 0 {
                capabilities = capabilities | capability;
            }
        }
        let has = |capability| capabilities.contains(capability);
        let response = HandshakeResponse {
            capabilities,
            packet_bytes_max: 1 << 24,
            charset: 45,
            user: b"root",
            auth_response: b"12345678901234567890",
            database: if has(Capabilities::CONNECT_WITH_DB) { b"test" } else { b"" },
            plugin: has(Capabilities::PLUGIN_AUTH).then_some(b"caching_sha2_password"),
            attributes: match has(Capabilities::CONNECT_ATTRS) {
                true => ConnectAttributes::new(&attributes).unwrap(),
                false => ConnectAttributes::default(),
            },
            zstd_level: if has(Capabilities::ZSTD_COMPRESSION) { 3 } else { 0 },
        };
        let bytes = encoded(|out| response.encode(out));
        assert_eq!(ClientAnswer::parse(&bytes), Ok(ClientAnswer::Response(response)));
    }
    let named: Vec<_> = ConnectAttributes::new(&attributes).unwrap().iter().collect();
    assert_eq!(named, [(&b"_client_name"[..], &b"libmariadb"[..]), (b"_pid", b"")]);
}

#[test]
fn a_request_for_tls_and_an_old_client_are_recognised() {
    let mut tls = hex(&ANSWER_5_5_8[..32 * 3]);
    tls[1] |= 0x08;
    assert_eq!(ClientAnswer::parse(&tls), Ok(ClientAnswer::TlsRequest));
    assert_eq!(ClientAnswer::parse(&hex("85 24 00 00 00 72 6f 6f 74 00")), Ok(ClientAnswer::TooOld));
}

#[test]
fn a_request_to_switch_has_the_documented_bytes() {
    let request = AuthenticationSwitch { plugin: NATIVE_PASSWORD, salt: b"abcdefghijklmnopqrst" };
    let bytes = encoded(|out| request.encode(out));
    assert_eq!(bytes, b"\xfemysql_native_password\0abcdefghijklmnopqrst\0");
    assert_eq!(AuthenticationSwitch::parse(&bytes), Ok(request));
}
