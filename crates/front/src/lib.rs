//! What clients speak: the MySQL protocol, the native protocol, sessions, admission.
#![forbid(unsafe_code)]

pub mod admission;
mod answer_sink;
pub mod mysql;
pub mod native;
