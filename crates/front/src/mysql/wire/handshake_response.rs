//! The client's reply to the greeting: its identity, capabilities, and proof of the password.

use super::capability::Capabilities;
use super::connect_attributes::ConnectAttributes;
use super::error::ProtocolError;
use super::field::{FieldReader, put_length_encoded_bytes, put_u32, put_zero_terminated};

const FILLER_BYTES: usize = 23;

/// The possible replies to the greeting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientAnswer<'a> {
    /// A login in the form of protocol 4.1.
    Response(HandshakeResponse<'a>),
    /// A request for TLS, which comes before the client names its user.
    TlsRequest,
    /// A client from before protocol 4.1.
    TooOld,
}

/// A client's login in protocol 4.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HandshakeResponse<'a> {
    /// The capabilities that the client requests. They decide which other fields are present.
    pub capabilities: Capabilities,
    /// Maximum packet size in bytes that the client accepts; 0 if unspecified.
    pub packet_bytes_max: u32,
    /// Low byte of the id of the client's collation.
    pub charset: u8,
    /// User name.
    pub user: &'a [u8],
    /// The authentication response; empty for no password.
    pub auth_response: &'a [u8],
    /// Initial default database; empty for none.
    pub database: &'a [u8],
    /// Name of the authentication method; `None` if the client names none.
    pub plugin: Option<&'a [u8]>,
    /// The client's description of itself.
    pub attributes: ConnectAttributes<'a>,
    /// Level of zstd, from 1 to 22; 0 if the client names none.
    pub zstd_level: u8,
}

impl<'a> ClientAnswer<'a> {
    /// Decodes a client's first payload. The payload may end early: old clients omit the database, method and
    /// attributes although their capabilities announce them, or the terminating zero of the last string.
    ///
    /// # Errors
    /// [`ProtocolError::Malformed`] if any other field is truncated.
    pub fn parse(payload: &'a [u8]) -> Result<Self, ProtocolError> {
        let mut fields = FieldReader::new(payload);
        let [low_0, low_1] = fields.array("capabilities")?;
        let low = Capabilities::from_bits(u32::from(u16::from_le_bytes([low_0, low_1])));
        if !low.contains(Capabilities::PROTOCOL_41) {
            return Ok(Self::TooOld);
        }
        let [high_0, high_1] = fields.array("capabilities")?;
        let capabilities = Capabilities::from_bits(u32::from_le_bytes([low_0, low_1, high_0, high_1]));
        let packet_bytes_max = fields.u32("packet_bytes_max")?;
        let charset = fields.u8("charset")?;
        fields.bytes(FILLER_BYTES, "filler")?;
        // A client repeats the bit in its whole answer, once the connection has TLS.
        if capabilities.contains(Capabilities::SSL) && fields.is_empty() {
            return Ok(Self::TlsRequest);
        }
        let user = fields.zero_terminated("user")?;
        let auth_response = parse_auth_response(&mut fields, capabilities)?;
        let database: &[u8] = match capabilities.contains(Capabilities::CONNECT_WITH_DB) {
            true => fields.zero_terminated_or_rest(),
            false => &[],
        };
        let plugin = capabilities.contains(Capabilities::PLUGIN_AUTH).then(|| fields.zero_terminated_or_rest());
        let attributes = match capabilities.contains(Capabilities::CONNECT_ATTRS) {
            true => ConnectAttributes::parse(&mut fields)?,
            false => ConnectAttributes::default(),
        };
        let zstd_level = match capabilities.contains(Capabilities::ZSTD_COMPRESSION) && !fields.is_empty() {
            true => fields.u8("zstd_level")?,
            false => 0,
        };
        Ok(Self::Response(HandshakeResponse {
            capabilities,
            packet_bytes_max,
            charset,
            user,
            auth_response,
            database,
            plugin,
            attributes,
            zstd_level,
        }))
    }
}

impl HandshakeResponse<'_> {
    /// Appends the payload with the fields that the capabilities announce.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_u32(out, self.capabilities.bits());
        put_u32(out, self.packet_bytes_max);
        out.push(self.charset);
        out.extend_from_slice(&[0; FILLER_BYTES]);
        put_zero_terminated(out, self.user);
        if self.capabilities.contains(Capabilities::PLUGIN_AUTH_LENENC) {
            put_length_encoded_bytes(out, self.auth_response);
        } else if self.capabilities.contains(Capabilities::SECURE_CONNECTION) {
            let length = self.auth_response.len().min(usize::from(u8::MAX));
            out.push(length as u8);
            out.extend_from_slice(&self.auth_response[..length]);
        } else {
            put_zero_terminated(out, self.auth_response);
        }
        if self.capabilities.contains(Capabilities::CONNECT_WITH_DB) {
            put_zero_terminated(out, self.database);
        }
        if self.capabilities.contains(Capabilities::PLUGIN_AUTH) {
            put_zero_terminated(out, self.plugin.unwrap_or_default());
        }
        if self.capabilities.contains(Capabilities::CONNECT_ATTRS) {
            self.attributes.encode(out);
        }
        if self.capabilities.contains(Capabilities::ZSTD_COMPRESSION) {
            out.push(self.zstd_level);
        }
    }
}

fn parse_auth_response<'a>(
    fields: &mut FieldReader<'a>,
    capabilities: Capabilities,
) -> Result<&'a [u8], ProtocolError> {
    const FIELD: &str = "auth_response";
    if capabilities.contains(Capabilities::PLUGIN_AUTH_LENENC) {
        fields.length_encoded_bytes(FIELD)
    } else if capabilities.contains(Capabilities::SECURE_CONNECTION) {
        let length = fields.u8(FIELD)?;
        fields.bytes(usize::from(length), FIELD)
    } else {
        fields.zero_terminated(FIELD)
    }
}
