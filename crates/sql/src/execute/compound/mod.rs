//! Statements of the user that write in several requests to the data plane. All their writes take effect, or
//! none.
//!
//! - INSERT of rows whose keys may exist (IGNORE, REPLACE, ON DUPLICATE KEY UPDATE): one request inserts all
//!   rows. If a row is refused, the request is rolled back and the rows are inserted one by one.
//! - INSERT ... SELECT and LOAD DATA: the rows of the query or file are inserted in batches, each in the way
//!   just described.
//! - UPDATE and DELETE with LIMIT or IGNORE, or where one row may take the key of another: the rows are
//!   locked first, then written, if necessary one by one. Without LIMIT, IGNORE and ORDER BY, one request
//!   first tries to write all rows, and the rows are locked only after a duplicate key.
//! - UPDATE and DELETE of several tables, or with subqueries: a query locks the rows and returns their keys,
//!   then they are written by key.
//!
//! If no transaction is open, the statement opens its own and commits it. Otherwise, a failure rolls back to
//! the end of the user's previous statement. Locks remain until the transaction ends, as after every failed
//! statement.
//!
//! In reading order: [`state`], the state between steps; [`drive`], the step after each reply and the end of
//! the statement; [`insert`]; [`change`] with [`locked_rows`]; [`modify`]; [`rows`], the rows of an INSERT
//! that later steps may need; [`returned`], the rows of RETURNING; [`source`], the query of INSERT ... SELECT
//! statements; [`load`] with [`lines`], [`line_values`] and [`xml_rows`], the file of LOAD DATA and LOAD XML.

mod change;
mod drive;
mod insert;
mod line_values;
mod lines;
mod xml_rows;
mod load;
mod locked_rows;
mod modify;
mod returned;
mod rows;
mod source;
mod state;

pub(super) use change::start_ordered_change;
pub(super) use drive::{continue_compound, resume_compound};
pub(super) use insert::start_insert_rows;
pub(crate) use insert::start_insert_select;
pub(crate) use load::DiscardState;
pub(crate) use load::receive_file;
pub(crate) use modify::start_modify;
pub(super) use rows::{RowList, RowRef};
pub(super) use source::{SelectedRows, Source};
pub(crate) use state::CompoundState;
