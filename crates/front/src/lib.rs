//! What clients speak: the MySQL protocol, sessions, admission.
#![forbid(unsafe_code)]

pub mod mysql;
