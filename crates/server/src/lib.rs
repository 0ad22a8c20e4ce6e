//! A Junctor node inside another program.
//!
//! The node runs its own threads, as the server does. Connections to it need no socket, and no system calls
//! while both sides are busy. Everything else is the same as in the server: sessions, transactions,
//! statements, limits, errors.
//!
//! ```
//! use junctor::client::{Options, block_on, params};
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let node = junctor::Node::builder().total_memory_bytes(64 << 20).start()?;
//!     block_on(async {
//!         let connection = node.connect(&Options::new("root")).await?;
//!         connection.execute("CREATE DATABASE shop", params![]).await?;
//!         connection.execute("CREATE TABLE shop.item (id INT PRIMARY KEY, name VARCHAR(40))", params![]).await?;
//!         connection.execute("INSERT INTO shop.item VALUES (?, ?)", params![1, "cup"]).await?;
//!         let rows = connection.query("SELECT name FROM shop.item WHERE id = ?", params![1]).await?;
//!         for row in &rows {
//!             assert_eq!(row.get::<&str>("name")?, "cup");
//!         }
//!         Ok::<(), junctor::client::Error>(())
//!     })?;
//!     assert!(node.stop());
//!     Ok(())
//! }
//! ```
//!
//! A program with its own protocol implementation can take a byte stream, blocking or polled:
//!
//! ```
//! use std::io::Read;
//!
//! let node = junctor::Node::builder().total_memory_bytes(64 << 20).start()?;
//! let mut stream = node.stream(junctor::Protocol::MySql)?;
//! let mut header = [0; 4];
//! stream.read_exact(&mut header)?; // the packet header of the greeting
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

pub use junctor_node::client;
pub use junctor_node::{
    ConnectError, Connector, MemoryReceiver, MemorySender, MemoryStream, MemoryTransport, Node, NodeBuilder,
    NodeConfig, Protocol, StartError, StreamClosed, TrySendError,
};
