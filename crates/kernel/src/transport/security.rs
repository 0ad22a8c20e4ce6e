//! The encryption of connections, as the sockets of links and the protocols of clients use it. A crate above
//! the kernel implements it.

use std::fmt;
use std::sync::Arc;

use crate::address::NodeId;

use super::hello::Refusal;

/// Begins the encryption of connections to other nodes.
pub trait LinkSecurity: fmt::Debug + Send + Sync {
    /// The encryption of a connection that this node makes to another. `None` if the node can have none.
    fn connect(&self, node: NodeId) -> Option<Box<dyn Encryption>>;

    /// The encryption of a connection that this node accepts. `None` if there can be none.
    fn accept(&self) -> Option<Box<dyn Encryption>>;
}

/// Begins the encryption of connections that clients make to this node.
pub trait ClientSecurity: fmt::Debug + Send + Sync {
    /// The encryption of a connection that this node accepts. `None` if there can be none.
    fn accept(&self) -> Option<Box<dyn Encryption>>;

    /// The public key with which clients encrypt passwords on connections without TLS, in PEM. `None` if
    /// there is none yet.
    fn public_key(&self) -> Option<Arc<str>>;

    /// Decrypts what a client encrypted with the public key. `None` if that is not what it did.
    fn decrypt(&self, encrypted: &[u8]) -> Option<Vec<u8>>;

    /// What SHOW STATUS tells about TLS, apart from single connections.
    fn status(&self) -> SecurityStatus;

    /// Reads the certificates again. Open connections keep theirs.
    ///
    /// # Errors
    /// A sentence that says which file cannot be used. The old certificates remain.
    fn reload(&self) -> Result<(), String>;
}

/// The encryption of one connection. Both ends of a link prove who they are before any bytes of it pass.
pub trait Encryption: fmt::Debug + Send {
    /// Takes bytes of the connection, and appends the plain bytes that they contain.
    ///
    /// # Errors
    /// The connection is over. [`Encryption::write`] may have a last message for the other side.
    fn receive(&mut self, bytes: &[u8], plain: &mut Vec<u8>) -> Result<(), SecurityFault>;

    /// Takes plain bytes to be sent.
    fn send(&mut self, plain: &[u8]);

    /// Appends the bytes to be written to the connection.
    fn write(&mut self, output: &mut Vec<u8>);

    /// Whether a record has arrived in part, so that its plain bytes are still to come.
    fn has_half_record(&self) -> bool {
        false
    }

    /// Whether the other end has proven to be this node.
    fn is_with(&self, node: NodeId) -> bool;

    /// Ends the connection in this direction. [`Encryption::write`] has the last message.
    fn close(&mut self);

    /// The parameters on which both ends agreed. `None` before they did.
    fn agreed(&self) -> Option<Agreed>;

    /// The names in the certificate that the other end has shown. `None` if it has shown none.
    fn certificate_names(&self) -> Option<CertificateNames>;
}

/// The names in a certificate, as OpenSSL prints them in one line: `/C=SE/O=Example/CN=anna`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CertificateNames {
    /// The authority that has issued it.
    pub issuer: String,
    /// The owner.
    pub subject: String,
}

/// The parameters of an encrypted connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agreed {
    /// The version of the protocol, as OpenSSL names it: `TLSv1.2` or `TLSv1.3`.
    pub version: &'static str,
    /// The cipher suite, as OpenSSL names it.
    pub cipher: &'static str,
    /// Whether the other end has shown a certificate. It is valid, because the connection would have ended
    /// otherwise.
    pub has_certificate: bool,
}

/// The certificates in use, and what has happened to connections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SecurityStatus {
    /// Connections that began TLS.
    pub accepts: u64,
    /// Connections that agreed on its parameters.
    pub finished_accepts: u64,
    /// When the certificate of the server begins and ends to be valid, as OpenSSL writes it.
    pub validity: [Box<str>; 2],
    /// The cipher suites, as OpenSSL names them, with colons between them.
    pub ciphers: Box<str>,
    /// The largest number of certificates between that of a client and its authority; `None` if certificates
    /// of clients are not asked for.
    pub verify_depth: Option<u32>,
}

/// Why an encrypted connection is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SecurityFault {
    /// The cause.
    pub refusal: Refusal,
    /// Whether this end refuses the other.
    pub is_own: bool,
}
