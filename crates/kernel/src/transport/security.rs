//! The encryption of connections between nodes, as the sockets of links use it. A crate above the kernel
//! implements it.

use std::fmt;

use crate::address::NodeId;

use super::hello::Refusal;

/// Begins the encryption of connections to other nodes.
pub trait LinkSecurity: fmt::Debug + Send + Sync {
    /// The encryption of a connection that this node makes to another. `None` if the node can have none.
    fn connect(&self, node: NodeId) -> Option<Box<dyn Encryption>>;

    /// The encryption of a connection that this node accepts. `None` if there can be none.
    fn accept(&self) -> Option<Box<dyn Encryption>>;
}

/// The encryption of one connection. Both ends prove who they are before any bytes of a link pass.
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

    /// Whether the other end has proven to be this node.
    fn is_with(&self, node: NodeId) -> bool;
}

/// Why an encrypted connection is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SecurityFault {
    /// The cause.
    pub refusal: Refusal,
    /// Whether this end refuses the other.
    pub is_own: bool,
}
