//! Whether what sessions saw is possible under an isolation level.
//!
//! Sessions run small transactions on three kinds of objects: lists that are appended to, registers that count their
//! versions, and families of rows that grow. Each value is written once, so a read tells exactly which writes it saw. From
//! that follows a graph of who must come before whom; its cycles are anomalies, named after Adya ("Weak Consistency", MIT
//! 1999). How orders are recovered from lists follows Kingsbury and Alvaro ("Elle", VLDB 2020).
//!
//! In reading order:
//! - [`history`]: what happened, as the sessions recorded it;
//! - [`level`]: the anomalies, and which level forbids which;
//! - [`check`]: the judge; [`order`] finds the versions of each object and what is wrong without a graph, [`graph`] who
//!   precedes whom, [`cycle`] what the cycles mean;
//! - [`draw`]: random transactions; [`session`]: a client as a state machine that says the next statement and records.
#![forbid(unsafe_code)]

pub mod history;
pub mod level;

pub mod check;
pub mod cycle;
pub mod graph;
pub mod order;

pub mod draw;
pub mod session;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod toy;
