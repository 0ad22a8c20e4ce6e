//! The messages of the MySQL client/server protocol, one per file. [`field::FieldReader`] checks bounds, so
//! the `parse` and `encode` functions of the messages need not.
//!
//! Every `encode` appends a payload; [`packet::PacketWriter`] adds the packet headers. Every `parse` takes a
//! payload from [`packet::PacketReader`], never panics, and names the field that it could not read.

pub mod packet;

mod bit_set;
pub mod capability;
pub mod error;
pub mod field;
pub mod status;

pub mod authentication_switch;
pub mod change_user;
pub mod connect_attributes;
pub mod greeting;
pub mod handshake_response;

pub mod command;
pub mod parameter;
pub mod parameter_type;
pub mod query_attributes;

pub mod column;
pub mod reply;

pub use capability::Capabilities;
pub use command::Command;
pub use error::ProtocolError;
pub use packet::{Packet, PacketReader, PacketWriter, patch_sequences};
pub use status::StatusFlags;

#[cfg(test)]
mod tests;
