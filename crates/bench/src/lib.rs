//! Comparisons and load generators. They see a node from outside, as its users do: a process with a port.
//!
//! In reading order:
//! - [`failure`], [`random`], [`statistics`], [`report`], [`plot`]: what every command uses;
//! - [`process`]: servers and other programs, started in folders of their own and stopped by their process id;
//! - [`mysql`]: a small client of the MySQL protocol;
//! - [`sysbench`], [`fill`], [`load`], [`echo`]: what makes load, and the yardstick;
//! - [`consistency`]: whether a table agrees with its indexes;
//! - the commands: [`sysbench_matrix`], [`compare`], [`connections`], [`torn_reads`], [`history`], [`deadlocks`],
//!   [`long_transactions`], [`demo`], [`instructions`], [`event_load`], [`scale`];
//! - [`lab`]: `junctor lab`; [`autobench`]: `junctor bench`; [`applications`]: its DBT2 and YCSB compared with MariaDB;
//! - [`api`]: the Rust client.
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "measuring reads clocks; drivers have threads and wait for processes")]

pub mod failure;
pub mod latency;
pub mod plot;
pub mod random;
pub mod report;
pub mod statistics;

pub mod consistency;
pub mod echo;
pub mod fill;
pub mod load;
pub mod mysql;
pub mod process;
pub mod sysbench;

pub mod api;
pub mod applications;
pub mod autobench;
pub mod compare;
pub mod connections;
pub mod deadlocks;
pub mod demo;
pub mod event_load;
pub mod history;
pub mod instructions;
pub mod lab;
pub mod long_transactions;
pub mod scale;
pub mod sysbench_matrix;
pub mod torn_reads;

pub use failure::{Failure, Outcome};
