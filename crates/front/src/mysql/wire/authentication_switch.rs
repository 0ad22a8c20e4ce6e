//! The server's request that the client prove its password with another method. The client replies with the
//! bare proof.

use super::error::ProtocolError;
use super::field::{FieldReader, put_zero_terminated};

const HEADER: u8 = 0xfe;

/// A request to use another authentication method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuthenticationSwitch<'a> {
    /// Name of the authentication method.
    pub plugin: &'a [u8],
    /// The challenge, without its terminating zero byte.
    pub salt: &'a [u8],
}

impl<'a> AuthenticationSwitch<'a> {
    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(HEADER);
        put_zero_terminated(out, self.plugin);
        out.extend_from_slice(self.salt);
        out.push(0);
    }

    /// Decodes the request, as a client does.
    ///
    /// # Errors
    /// [`ProtocolError::Malformed`] if the name of the method is not terminated.
    pub fn parse(payload: &'a [u8]) -> Result<Self, ProtocolError> {
        let mut fields = FieldReader::new(payload);
        if fields.u8("header")? != HEADER {
            return Err(ProtocolError::Malformed { field: "header" });
        }
        let plugin = fields.zero_terminated("plugin")?;
        let rest = fields.rest();
        Ok(Self { plugin, salt: rest.strip_suffix(&[0]).unwrap_or(rest) })
    }
}
