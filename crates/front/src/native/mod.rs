//! The native protocol: frames and logins, requests, answers. Crate `junctor-wire` has its bytes, which
//! clients use too. A session behaves as one of the MySQL protocol, with two differences: rows are always
//! binary, and a request can read rows by primary key without a statement.

mod link;
mod session;
mod key_rows;
mod sink;

pub(crate) use link::Link;
pub(crate) use session::SessionState;
