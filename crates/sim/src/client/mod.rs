//! The client side of the MySQL protocol without IO: bytes in, bytes out, one statement at a time. It is
//! stricter than drivers are: a wrong sequence number or an unexpected byte is a server fault.

mod connection;
mod result;

pub use connection::{Client, ClientEvent, ClientFault, ClientOptions};

#[cfg(test)]
mod tests;
