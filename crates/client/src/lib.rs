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
//! # Types
//!
//! | SQL | Rust | with a feature of this crate |
//! |---|---|---|
//! | integers, BOOL, YEAR, BIT | the integers of Rust that have the value; `bool` | |
//! | FLOAT, DOUBLE | `f32`, `f64` | |
//! | DECIMAL | [`Decimal`]; `f64`, rounded | `rust_decimal`: `rust_decimal::Decimal`, up to 28 digits |
//! | DATE | [`Temporal`], `String` | `jiff`: `civil::Date`, `civil::DateTime` |
//! | DATETIME, TIMESTAMP | the same | `jiff`: `civil::DateTime`, of a TIMESTAMP in the session's `time_zone` |
//! | TIME | the same | `jiff`: `SignedDuration`; `civil::Time` if it is a time of day |
//! | CHAR, VARCHAR, TEXT, ENUM, SET | `&str`, `String` | |
//! | BINARY, VARBINARY, BLOB, GEOMETRY | `&[u8]`, `Vec<u8>` | |
//! | JSON | `&str`, `String` | `serde_json`: `serde_json::Value` |
//! | VECTOR | `Vec<f32>` | |
//!
//! NULL is `None` of an `Option`. [`Value`] and [`ValueRef`] have every value. A value that a type of Rust
//! does not have, as the zero date, is an error of [`ErrorKind::Value`]; nothing is rounded or cut without a
//! word in the table. A parameter of `jiff` with nanoseconds is rounded by the column, as a text is.
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
#[cfg(feature = "jiff")]
mod with_jiff;
#[cfg(feature = "rust_decimal")]
mod with_rust_decimal;
#[cfg(feature = "serde_json")]
mod with_serde_json;

#[cfg(test)]
mod scripted;

pub use async_io::block_on;
pub use batch::Batch;
pub use condition::{Column, Condition, column, not};
pub use connection::{Connection, Options};
pub use error::{Error, ErrorKind, Result};
pub use junctor_model::temporal::{Temporal, TemporalKind};
pub use junctor_model::value::{Bit, Decimal, Value, ValueRef};
pub use key_reader::{FoundRows, Key, KeyReader};
pub use row::{ColumnIndex, ColumnMetadata, Columns, Outcome, Row, Rows};
pub use select::{Aggregate, Direction, Select, average, count, maximum, minimum, sum};
pub use statement::Statement;
pub use table::{Delete, Table, Update};
pub use tls::{Tls, Verification};
pub use transaction::{Isolation, Transaction, TransactionOptions};
pub use transport::{TcpTransport, Transport};
pub use value::{FromValue, Parameter, ToValue};
