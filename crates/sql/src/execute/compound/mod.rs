//! Statements that write in several steps. They take effect completely or not at all.
//!
//! - INSERT of rows whose keys may exist: one step inserts all rows. If a row is refused, the step is rolled
//!   back and the rows are inserted one by one.
//! - INSERT ... SELECT: the rows of the query are inserted in batches, each in the same way.
//! - UPDATE and DELETE with ORDER BY or LIMIT, or where one row may take the key of another: the rows are
//!   locked first, then written.
//!
//! Outside a transaction, the statement opens a transaction of its own and commits it. Inside one, a failure
//! rolls back to the statement before it. Locks remain until the transaction ends, as after every failed
//! statement.
//!
//! In reading order: [`state`], the state between steps; [`drive`], the sequence of steps and the end of the
//! statement; [`insert`]; [`change`]; [`rows`], the rows of an INSERT that later steps may need;
//! [`returned`], the rows of RETURNING; [`source`], the query of INSERT ... SELECT.

mod change;
mod drive;
mod insert;
mod returned;
mod rows;
mod source;
mod state;

pub(super) use change::start_ordered_change;
pub(super) use drive::resume_compound;
pub(super) use insert::{start_insert_rows, start_insert_select};
pub(super) use rows::{RowList, RowRef};
pub(super) use source::{SelectedRows, continue_source};
pub(crate) use state::CompoundState;
