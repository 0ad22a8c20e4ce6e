use super::hex;
use crate::mysql::wire::capability::Capabilities;
use crate::mysql::wire::change_user::ChangeUser;
use crate::mysql::wire::command::{Command, CursorKind, StmtExecute};
use crate::mysql::wire::connect_attributes::ConnectAttributes;
use crate::mysql::wire::error::ProtocolError;
use crate::mysql::wire::greeting::NATIVE_PASSWORD;
use crate::mysql::wire::parameter::ParameterBlock;

/// The capabilities of a client without query attributes.
const PLAIN: Capabilities = Capabilities::SERVER.without(Capabilities::QUERY_ATTRIBUTES);

const ATTRIBUTED: Capabilities = Capabilities::QUERY_ATTRIBUTES;

#[test]
fn commands_have_their_documented_bytes() {
    let parse = |text: &str| {
        let bytes = hex(text);
        let command = Command::parse(&bytes, PLAIN).unwrap();
        format!("{command:?}")
    };
    assert_eq!(parse("01"), "Quit");
    assert_eq!(parse("0e"), "Ping");
    assert_eq!(parse("09"), "Statistics");
    assert_eq!(parse("0a"), "ProcessInfo");
    assert_eq!(parse("1f"), "ResetConnection");
    assert_eq!(parse("02 74"), "InitDb { database: [116] }");
    assert_eq!(parse("03 44 4f"), "Query { statement: [68, 79] }");
    assert_eq!(parse("04 74 00 25"), "FieldList { table: [116], wildcard: [37] }");
    assert_eq!(parse("0c 05 01 00 00"), "ProcessKill { connection_id: 261 }");
    assert_eq!(parse("16 44 4f"), "StmtPrepare { statement: [68, 79] }");
    assert_eq!(parse("18 02 00 00 00 01 00 07"), "StmtSendLongData { statement_id: 2, parameter: 1, data: [7] }");
    assert_eq!(parse("19 02 00 00 00"), "StmtClose { statement_id: 2 }");
    assert_eq!(parse("1a 02 00 00 00"), "StmtReset { statement_id: 2 }");
    assert_eq!(parse("1b 00 00"), "SetOption { multi_statements: true }");
    assert_eq!(parse("1b 01 00"), "SetOption { multi_statements: false }");
    assert_eq!(parse("1c 02 00 00 00 0a 00 00 00"), "StmtFetch { statement_id: 2, row_count: 10 }");
}

#[test]
fn an_unknown_command_is_reported_by_its_number() {
    for code in [0x00, 0x05, 0x07, 0x08, 0x0d, 0x12, 0x1e, 0x20, 0xfa, 0xff] {
        assert_eq!(Command::parse(&[code, 1, 2], PLAIN), Ok(Command::Unknown(code)));
    }
    assert_eq!(Command::parse(&[], PLAIN), Ok(Command::Unknown(0)));
    assert_eq!(Command::parse(&hex("1b 02 00"), PLAIN), Ok(Command::Unknown(0x1b)));
}

#[test]
fn truncated_commands_are_malformed() {
    for text in [
        "0c 01 00 00",
        "17 01 00 00 00 00 01 00 00",
        "18 01 00 00 00 00",
        "19 01 00 00",
        "1a",
        "1b 00",
        "1c 01 00 00 00 01",
        "11 72 6f 6f 74",
    ] {
        let bytes = hex(text);
        let result = Command::parse(&bytes, PLAIN);
        assert!(matches!(result, Err(ProtocolError::Malformed { .. })), "{text}: {result:?}");
    }
}

#[test]
fn every_command_decodes_to_itself() {
    let change_user = ChangeUser {
        user: b"root",
        auth_response: b"12345678901234567890",
        database: b"test",
        charset: Some(255),
        plugin: Some(NATIVE_PASSWORD),
        attributes: ConnectAttributes::default(),
    };
    let parameters = ParameterBlock { bytes: &[0, 1, 3, 0, 1, 0, 0, 0], named: false };
    for command in [
        Command::Quit,
        Command::InitDb { database: b"test" },
        Command::Query { statement: b"SELECT 1" },
        Command::FieldList { table: b"t", wildcard: b"%" },
        Command::Statistics,
        Command::ProcessInfo,
        Command::ProcessKill { connection_id: 9 },
        Command::Ping,
        Command::ChangeUser(change_user),
        Command::ResetConnection,
        Command::SetOption { multi_statements: true },
        Command::SetOption { multi_statements: false },
        Command::StmtPrepare { statement: b"SELECT ?" },
        Command::StmtExecute(StmtExecute { statement_id: 1, cursor: CursorKind::ReadOnly, parameters }),
        Command::StmtExecute(StmtExecute { statement_id: 1, cursor: CursorKind::Unsupported, parameters }),
        Command::StmtSendLongData { statement_id: 1, parameter: 2, data: b"data" },
        Command::StmtClose { statement_id: 1 },
        Command::StmtReset { statement_id: 1 },
        Command::StmtFetch { statement_id: 1, row_count: 100 },
        Command::Unknown(0x1e),
    ] {
        let mut bytes = Vec::new();
        command.encode(PLAIN, &mut bytes);
        assert_eq!(Command::parse(&bytes, PLAIN), Ok(command));
    }
}

#[test]
fn a_change_of_user_may_end_after_the_database() {
    let bytes = b"\x11root\0\0test\0";
    let Ok(Command::ChangeUser(change_user)) = Command::parse(bytes, PLAIN) else { panic!("a change of user") };
    assert_eq!((change_user.user, change_user.database), (&b"root"[..], &b"test"[..]));
    assert_eq!((change_user.charset, change_user.plugin), (None, None));
}

#[test]
fn query_attributes_are_skipped() {
    for text in [
        "03 00 01 44 4f",
        "03 01 01 01 01 06 00 01 6e 44 4f",
        "03 02 01 00 01 08 00 01 61 fe 00 01 62 01 00 00 00 00 00 00 00 02 78 79 44 4f",
    ] {
        let bytes = hex(text);
        assert_eq!(Command::parse(&bytes, ATTRIBUTED), Ok(Command::Query { statement: b"DO" }), "{text}");
    }
}

#[test]
fn wrong_query_attributes_are_malformed() {
    for text in [
        "03",
        "03 00",
        "03 00 02 44",
        "03 01 01",
        "03 01 01 00 00 44",
        "03 01 01 00 01 08 00 01 61 01 00",
        "03 01 01 00 01 20 00 00 44",
        "03 fd ff ff ff 01 00 01",
    ] {
        let bytes = hex(text);
        let result = Command::parse(&bytes, ATTRIBUTED);
        assert!(matches!(result, Err(ProtocolError::Malformed { .. })), "{text}: {result:?}");
    }
}
