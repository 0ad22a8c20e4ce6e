//! Statistics of the values in tables, from samples of their rows.
//!
//! [`sample`] collects rows of a table, [`histogram`] describes the values of a column, and [`book`] has the
//! results for all sql blocks of a node. Statistics are estimates: they decide how a query is executed, and
//! never its rows.

mod book;
mod histogram;
mod sample;

pub use book::{RequestedHistogram, StatisticsBook};
pub use histogram::{Bucket, Position, position_of};
pub use sample::{CHUNK_ROWS, ColumnStatistics, Sampler, TableProfile, WantedBuckets, sample_rows_max};
