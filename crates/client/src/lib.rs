//! The Rust driver: a client of a node in the same process or over the network.
//!
//! A [`Connection`] is one session. It runs statements and operations one after the other, in the order of
//! the calls. All calls are `async` and work with any executor, for example [`block_on`]. Concurrent requests
//! of one connection (`join!`) are pipelined: each is sent without waiting for the replies to the others. For
//! parallel work, open several connections.
//!
//! ```no_run
//! use junctor_client::{Connection, Options, block_on, column, params};
//!
//! # fn main() -> junctor_client::Result<()> {
//! block_on(async {
//!     let mut connection = Connection::connect("127.0.0.1:3308", &Options::new("root").database("shop")).await?;
//!     connection.execute("CREATE TABLE item (id INT PRIMARY KEY, name VARCHAR(40), price INT)", params![]).await?;
//!
//!     let items = connection.table("item");
//!     items.insert(&[("id", &1), ("name", &"cup"), ("price", &250)]).await?;
//!     let cheap = items.select(&["id", "name"]).filter(column("price").less_than(300)).rows().await?;
//!     for row in &cheap {
//!         println!("{} {}", row.get::<i64>("id")?, row.get::<&str>("name")?);
//!     }
//!
//!     // Reading many rows by primary key is the cheapest way to read.
//!     let reader = connection.key_reader("item", &["price"]).await?;
//!     let found = reader.read_many(&[1, 2, 3]).await?;
//!     assert!(found.get(0).is_some() && found.get(1).is_none());
//!
//!     let transaction = connection.begin().await?;
//!     transaction.execute("UPDATE item SET price = price + ? WHERE id = ?", params![10, 1]).await?;
//!     transaction.commit().await
//! })
//! # }
//! ```
//!
//! [`Options::tls`] encrypts the connection: see [`Tls`].
//!
//! Statements, errors and locks have the same meaning as for clients of the MySQL protocol. The driver sends
//! an operation of a [`Table`] as the equivalent SQL statement.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod error;
mod transport;
mod tls;
mod login;
mod pipeline;
mod value;
mod row;
mod connection;
mod statement;
mod transaction;
mod batch;
mod condition;
mod table;
mod select;
mod key_reader;

#[cfg(test)]
mod scripted;

pub use async_io::block_on;
pub use batch::Batch;
pub use condition::{Column, Condition, column, not};
pub use connection::{Connection, Options};
pub use error::{Error, ErrorKind, Result};
pub use junctor_model::value::{Decimal, Value, ValueRef};
pub use key_reader::{FoundRows, Key, KeyReader};
pub use row::{ColumnIndex, ColumnMetadata, Columns, Outcome, Row, Rows};
pub use select::{Aggregate, Direction, Select, average, count, maximum, minimum, sum};
pub use statement::Statement;
pub use table::{Delete, Table, Update};
pub use tls::{Tls, Verification};
pub use transaction::{Isolation, Transaction, TransactionOptions};
pub use transport::{TcpTransport, Transport};
pub use value::{FromValue, ToValue};
