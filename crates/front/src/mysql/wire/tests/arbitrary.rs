use crate::mysql::wire::authentication_switch::AuthenticationSwitch;
use crate::mysql::wire::capability::Capabilities;
use crate::mysql::wire::column::ColumnDefinition;
use crate::mysql::wire::command::Command;
use crate::mysql::wire::greeting::Greeting;
use crate::mysql::wire::handshake_response::{ClientAnswer, HandshakeResponse};
use crate::mysql::wire::packet::PacketReader;
use crate::mysql::wire::parameter::decode_parameters;
use crate::mysql::wire::reply::{ErrorReply, OkReply, PrepareReply, ResultEnd};
use proptest::prelude::*;

/// Bytes that often pass the first checks: small numbers, length markers and zeros are frequent.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop_oneof![Just(0_u8), 0_u8..32, 0xf5_u8.., any::<u8>()], 0..100)
}

fn capabilities() -> impl Strategy<Value = Capabilities> {
    any::<u32>().prop_map(Capabilities::from_bits)
}

proptest! {
    #[test]
    fn no_payload_makes_a_command_panic(payload in bytes(), capabilities in capabilities(), count in 0_usize..70_000) {
        let Ok(command) = Command::parse(&payload, capabilities) else { return Ok(()) };
        match command {
            Command::StmtExecute(execute) => {
                let (mut types, mut seen) = (Vec::new(), 0);
                let decoded = decode_parameters(
                    &execute.parameters, count % 64, &mut types, |_| None, &mut |_, _| seen += 1,
                );
                prop_assert!(decoded.is_err() || seen == count % 64);
                let _ = decode_parameters(&execute.parameters, count, &mut types, |_| None, &mut |_, _| {});
            }
            Command::ChangeUser(change_user) => {
                prop_assert!(change_user.attributes.iter().count() <= payload.len());
            }
            _ => {}
        }
    }

    #[test]
    fn no_execution_makes_decoding_panic(body in bytes(), count in 0_usize..40, named: bool) {
        let mut payload = vec![0x17, 1, 0, 0, 0, 0, 1, 0, 0, 0];
        payload.extend_from_slice(&body);
        let negotiated = if named { Capabilities::QUERY_ATTRIBUTES } else { Capabilities::NONE };
        let Ok(Command::StmtExecute(execute)) = Command::parse(&payload, negotiated) else {
            panic!("ten bytes are an execution")
        };
        let mut types = Vec::new();
        let mut seen = 0;
        let decoded =
            decode_parameters(&execute.parameters, count, &mut types, |_| None, &mut |_, _| seen += 1);
        prop_assert!(seen <= count);
        prop_assert!(decoded.is_err() || types.len() == count);
    }

    #[test]
    fn no_payload_makes_a_login_panic(payload in bytes(), capabilities in capabilities()) {
        let _ = ClientAnswer::parse(&payload);
        let mut prefixed = capabilities.bits().to_le_bytes().to_vec();
        prefixed.extend_from_slice(&payload);
        if let Ok(ClientAnswer::Response(response)) = ClientAnswer::parse(&prefixed) {
            prop_assert!(response.attributes.iter().count() <= payload.len());
        }
    }

    #[test]
    fn no_payload_makes_a_client_panic(payload in bytes(), header: u8) {
        let mut payload = payload;
        payload.insert(0, header);
        let _ = Greeting::parse(&payload);
        let _ = AuthenticationSwitch::parse(&payload);
        let _ = OkReply::parse(&payload);
        let _ = ErrorReply::parse(&payload);
        let _ = PrepareReply::parse(&payload);
        let _ = ResultEnd::parse_eof(&payload);
        let _ = ColumnDefinition::parse(&payload);
    }

    #[test]
    fn reading_arbitrary_bytes_ends(stream in bytes(), first_sequence: u8, payload_bytes_max in 0_usize..1000) {
        let mut reader = PacketReader::new(first_sequence, payload_bytes_max);
        let mut input = &stream[..];
        let mut rounds = 0;
        while let Ok(Some(packet)) = reader.next_packet(&mut input) {
            prop_assert!(packet.payload.len() <= payload_bytes_max);
            rounds += 1;
            prop_assert!(rounds <= stream.len() / 4);
        }
    }

    #[test]
    fn a_login_decodes_to_itself(
        bits: u32, charset: u8, user in "[^\0]{0,40}", auth_response in prop::collection::vec(1_u8.., 0..255),
        database in "[^\0]{0,40}",
    ) {
        let capabilities = Capabilities::from_bits(bits).without(Capabilities::SSL | Capabilities::CONNECT_ATTRS)
            | Capabilities::PROTOCOL_41;
        let has = |capability| capabilities.contains(capability);
        let response = HandshakeResponse {
            capabilities,
            packet_bytes_max: bits,
            charset,
            user: user.as_bytes(),
            auth_response: &auth_response,
            database: if has(Capabilities::CONNECT_WITH_DB) { database.as_bytes() } else { b"" },
            plugin: has(Capabilities::PLUGIN_AUTH).then_some(b"mysql_native_password"),
            attributes: Default::default(),
            zstd_level: if has(Capabilities::ZSTD_COMPRESSION) { charset } else { 0 },
        };
        let mut bytes = Vec::new();
        response.encode(&mut bytes);
        prop_assert_eq!(ClientAnswer::parse(&bytes), Ok(ClientAnswer::Response(response)));
    }
}
