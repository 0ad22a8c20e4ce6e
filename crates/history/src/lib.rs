//! Checks whether an isolation level allows what sessions observed.
//!
//! Sessions run small transactions on three kinds of objects: lists that transactions append to, registers
//! that count their versions, and families of rows that grow. Each value is written only once, so a read
//! identifies exactly the writes that it observed. From these observations follows a graph of dependencies
//! between transactions. Cycles in the graph are anomalies, named after Adya ("Weak Consistency", MIT 1999).
//! Recovering version orders from lists follows Kingsbury and Alvaro ("Elle", VLDB 2020).
//!
//! Modules in reading order:
//! - [`history`]: the recorded transactions;
//! - [`level`]: the anomalies, and the levels that forbid them;
//! - [`check`]: the checker. [`order`] recovers the version order of each object and finds the anomalies that
//!   need no graph, [`graph`] builds the dependency graph, and [`cycle`] classifies its cycles;
//! - [`survival`]: what a restart of the database must keep;
//! - [`draw`]: random transactions; [`session`]: a client as a state machine that yields statements and
//!   records results.
#![forbid(unsafe_code)]

pub mod history;
pub mod level;

pub mod check;
pub mod cycle;
pub mod graph;
pub mod order;
pub mod survival;

pub mod draw;
pub mod session;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod toy;
