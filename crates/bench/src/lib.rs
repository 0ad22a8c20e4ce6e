//! Comparisons and load generators. All but [`api`] use a node from outside, as a process with a port.
//!
//! In reading order:
//! - [`failure`], [`random`], [`statistics`], [`latency`], [`report`], [`plot`]: shared by the commands;
//! - [`process`]: servers and other programs, each in a folder of its own;
//! - [`mysql`]: a small client of the MySQL protocol;
//! - [`sysbench`], [`fill`], [`load`], [`echo`]: load generators, and the echo server they are compared with;
//! - [`consistency`]: compares a table with its indexes;
//! - the commands: [`sysbench_matrix`], [`compare`], [`durable_writes`], [`relaxed_writes`], [`restarts`],
//!   [`checkpoints`], [`log_limit`], [`connections`], [`torn_reads`], [`history`], [`deadlocks`],
//!   [`long_statements`], [`long_transactions`], [`redo`], [`demo`], [`instructions`], [`event_load`] (the
//!   command `load`: very many connections), [`scale`], [`tpch`], [`ch`], [`cluster_kill`],
//!   [`cluster_cost`];
//! - [`lab`]: `junctor lab`; [`autobench`]: `junctor bench`; [`applications`]: its DBT2 and YCSB, compared
//!   with MariaDB;
//! - [`api`]: the Rust client, and a node in the same process.
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
pub mod attacks;
pub mod autobench;
pub mod ch;
pub mod checkpoints;
pub mod cluster_cost;
pub mod cluster_kill;
pub mod compare;
pub mod connections;
pub mod deadlocks;
pub mod demo;
pub mod durable_writes;
pub mod event_load;
pub mod history;
pub mod instructions;
pub mod lab;
pub mod log_limit;
pub mod long_statements;
pub mod long_transactions;
pub mod redo;
pub mod relaxed_writes;
pub mod restarts;
pub mod scale;
pub mod sysbench_matrix;
pub mod torn_reads;
pub mod tpch;

pub use failure::{Failure, Outcome};
