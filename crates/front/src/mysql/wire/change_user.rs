//! COM_CHANGE_USER: a login on an open connection.

use super::capability::Capabilities;
use super::connect_attributes::ConnectAttributes;
use super::error::ProtocolError;
use super::field::{FieldReader, put_u16, put_zero_terminated};

/// A login on an open connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangeUser<'a> {
    /// User name.
    pub user: &'a [u8],
    /// The authentication response, made with the challenge of the greeting; empty for no password.
    pub auth_response: &'a [u8],
    /// Initial default database; empty for none.
    pub database: &'a [u8],
    /// Id of the client's collation; `None` keeps the connection's collation.
    pub charset: Option<u16>,
    /// Name of the authentication method; `None` if the client names none.
    pub plugin: Option<&'a [u8]>,
    /// The client's description of itself.
    pub attributes: ConnectAttributes<'a>,
}

impl<'a> ChangeUser<'a> {
    /// Decodes the bytes after the command byte, in the form that the connection's `capabilities` select.
    ///
    /// # Errors
    /// [`ProtocolError::Malformed`] if a field is truncated. All fields after the database may be missing.
    pub fn parse(body: &'a [u8], capabilities: Capabilities) -> Result<Self, ProtocolError> {
        let mut fields = FieldReader::new(body);
        let user = fields.zero_terminated("user")?;
        let auth_response = match capabilities.contains(Capabilities::SECURE_CONNECTION) {
            true => {
                let length = fields.u8("auth_response")?;
                fields.bytes(usize::from(length), "auth_response")?
            }
            false => fields.zero_terminated("auth_response")?,
        };
        let database = fields.zero_terminated_or_rest();
        let charset = if fields.is_empty() { None } else { Some(fields.u16("charset")?) };
        let plugin = (capabilities.contains(Capabilities::PLUGIN_AUTH) && !fields.is_empty())
            .then(|| fields.zero_terminated_or_rest());
        let attributes = match capabilities.contains(Capabilities::CONNECT_ATTRS) {
            true => ConnectAttributes::parse(&mut fields)?,
            false => ConnectAttributes::default(),
        };
        Ok(Self { user, auth_response, database, charset, plugin, attributes })
    }

    /// Appends the bytes after the command byte. An authentication response longer than 255 bytes is
    /// truncated.
    pub fn encode(&self, capabilities: Capabilities, out: &mut Vec<u8>) {
        put_zero_terminated(out, self.user);
        if capabilities.contains(Capabilities::SECURE_CONNECTION) {
            let length = self.auth_response.len().min(usize::from(u8::MAX));
            out.push(length as u8);
            out.extend_from_slice(&self.auth_response[..length]);
        } else {
            put_zero_terminated(out, self.auth_response);
        }
        put_zero_terminated(out, self.database);
        let Some(charset) = self.charset else { return };
        put_u16(out, charset);
        let Some(plugin) = self.plugin else { return };
        if capabilities.contains(Capabilities::PLUGIN_AUTH) {
            put_zero_terminated(out, plugin);
        }
        if capabilities.contains(Capabilities::CONNECT_ATTRS) {
            self.attributes.encode(out);
        }
    }
}
