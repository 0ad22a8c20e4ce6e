//! The greeting, which the server sends first: protocol version 10.

use super::capability::Capabilities;
use super::error::ProtocolError;
use super::field::{FieldReader, put_u16, put_u32, put_zero_terminated};
use super::status::StatusFlags;

/// Length in bytes of the challenge that clients mix into their proof.
pub const SALT_BYTES: usize = 20;

/// The authentication method by SHA-1.
pub const NATIVE_PASSWORD: &[u8] = b"mysql_native_password";

const PROTOCOL_VERSION: u8 = 10;
const SALT_FIRST_BYTES: usize = 8;

/// The greeting of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Greeting<'a> {
    /// Version text. Drivers branch on its leading number.
    pub server_version: &'a [u8],
    /// The connection's id, as in CONNECTION_ID() and KILL.
    pub connection_id: u32,
    /// The challenge. Each byte is from 1 to 127.
    pub salt: [u8; SALT_BYTES],
    /// The server's capabilities.
    pub capabilities: Capabilities,
    /// Low byte of the default collation's id.
    pub charset: u8,
    /// State of the new session.
    pub status: StatusFlags,
    /// Name of the authentication method that the challenge is for.
    pub plugin: &'a [u8],
}

impl<'a> Greeting<'a> {
    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let (salt_first, salt_second) = self.salt.split_at(SALT_FIRST_BYTES);
        let [low_0, low_1, high_0, high_1] = self.capabilities.bits().to_le_bytes();
        out.push(PROTOCOL_VERSION);
        put_zero_terminated(out, self.server_version);
        put_u32(out, self.connection_id);
        out.extend_from_slice(salt_first);
        out.push(0);
        out.extend_from_slice(&[low_0, low_1, self.charset]);
        put_u16(out, self.status.bits());
        out.extend_from_slice(&[high_0, high_1, SALT_BYTES as u8 + 1]);
        out.extend_from_slice(&[0; 10]);
        out.extend_from_slice(salt_second);
        out.push(0);
        put_zero_terminated(out, self.plugin);
    }

    /// Decodes a greeting, as a client does.
    ///
    /// # Errors
    /// [`ProtocolError::Malformed`] if the protocol version or the length of the challenge differs.
    pub fn parse(payload: &'a [u8]) -> Result<Self, ProtocolError> {
        let mut fields = FieldReader::new(payload);
        if fields.u8("protocol_version")? != PROTOCOL_VERSION {
            return Err(ProtocolError::Malformed { field: "protocol_version" });
        }
        let server_version = fields.zero_terminated("server_version")?;
        let connection_id = fields.u32("connection_id")?;
        let mut salt = [0; SALT_BYTES];
        salt[..SALT_FIRST_BYTES].copy_from_slice(fields.bytes(SALT_FIRST_BYTES, "salt")?);
        fields.u8("filler")?;
        let [low_0, low_1] = fields.array("capabilities")?;
        let charset = fields.u8("charset")?;
        let status = StatusFlags::from_bits(fields.u16("status")?);
        let [high_0, high_1] = fields.array("capabilities")?;
        if usize::from(fields.u8("salt_length")?) != SALT_BYTES + 1 {
            return Err(ProtocolError::Malformed { field: "salt_length" });
        }
        fields.bytes(10, "filler")?;
        salt[SALT_FIRST_BYTES..].copy_from_slice(fields.bytes(SALT_BYTES - SALT_FIRST_BYTES, "salt")?);
        fields.u8("salt_end")?;
        let plugin = fields.zero_terminated_or_rest();
        let capabilities = Capabilities::from_bits(u32::from_le_bytes([low_0, low_1, high_0, high_1]));
        Ok(Self { server_version, connection_id, salt, capabilities, charset, status, plugin })
    }
}
