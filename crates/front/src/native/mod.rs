//! The native protocol: frames and logins, requests, replies. Crate `junctor-wire`, which clients use too,
//! defines the encoding. A session behaves as in the MySQL protocol, with two differences: rows are always
//! binary, and a request can read rows by primary key without a statement.

mod link;
mod login;
mod session;
mod key_rows;
mod sink;

pub(crate) use link::Link;
pub(crate) use session::SessionState;
