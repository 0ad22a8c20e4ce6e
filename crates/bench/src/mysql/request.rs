//! Builds command packets.

use junctor_front::mysql::wire::command::{CursorKind, StmtExecute};
use junctor_front::mysql::wire::parameter::{
    ColumnType, ParameterBlock, ParameterType, ParameterValue, encode_parameters,
};
use junctor_front::mysql::wire::{Capabilities, Command, PacketWriter};

/// The capabilities of this client. They omit `DEPRECATE_EOF`, so every result ends with an EOF packet.
pub const CAPABILITIES: Capabilities = Capabilities::from_bits(
    Capabilities::LONG_PASSWORD.bits()
        | Capabilities::PROTOCOL_41.bits()
        | Capabilities::TRANSACTIONS.bits()
        | Capabilities::SECURE_CONNECTION.bits()
        | Capabilities::PLUGIN_AUTH.bits(),
);

/// Appends the packet of a command.
pub fn push_command(out: &mut Vec<u8>, command: Command<'_>) {
    PacketWriter::new(out, 0).packet(|out| command.encode(CAPABILITIES, out));
}

/// Appends the packet of a statement as text.
pub fn push_query(out: &mut Vec<u8>, text: &str) {
    push_command(out, Command::Query { statement: text.as_bytes() });
}

/// Appends the packet that executes a prepared statement. All parameters are BIGINT.
pub fn push_execute(out: &mut Vec<u8>, statement_id: u32, parameters: &[i64]) {
    let bigint = ParameterType { column_type: ColumnType::LongLong, unsigned: false };
    let values: Vec<_> = parameters.iter().map(|value| (bigint, ParameterValue::Signed(*value))).collect();
    let mut bytes = Vec::new();
    encode_parameters(&values, true, &mut bytes);
    push_execute_encoded(out, statement_id, &bytes);
}

/// As [`push_execute`], with parameters that are already encoded: NULL bitmap, types and values.
pub fn push_execute_encoded(out: &mut Vec<u8>, statement_id: u32, bytes: &[u8]) {
    let parameters = ParameterBlock { bytes, named: false };
    push_command(out, Command::StmtExecute(StmtExecute { statement_id, cursor: CursorKind::None, parameters }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_one_packet() {
        let mut out = Vec::new();
        push_query(&mut out, "SELECT 1");
        assert_eq!(out, b"\x09\0\0\0\x03SELECT 1");
    }

    #[test]
    fn an_execution_carries_types_and_values() {
        let mut out = Vec::new();
        push_execute(&mut out, 7, &[-1]);
        let expected = [[22, 0, 0, 0, 0x17, 7, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 8].as_slice(), &[0], &[0xff; 8]].concat();
        assert_eq!(out, expected);
    }
}
