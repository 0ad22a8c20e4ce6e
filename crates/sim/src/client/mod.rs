//! A client of the MySQL protocol without IO: bytes in, bytes out, one statement at a time. It is strict where drivers
//! are lenient: a wrong sequence number or a byte too many is a fault of the server.

mod connection;
mod result;

pub use connection::{Client, ClientEvent, ClientFault, ClientOptions};

#[cfg(test)]
mod tests;
