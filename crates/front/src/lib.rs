//! What clients speak: the MySQL protocol, sessions, admission.
#![forbid(unsafe_code)]

pub mod admission;
pub mod mysql;
