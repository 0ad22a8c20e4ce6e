//! Writes that take several statements of the transaction but are one to the user: all of them take effect,
//! or none.
//!
//! - INSERT of rows whose keys may exist: one statement inserts all rows; only when a row is refused are
//!   they taken one by one.
//! - INSERT ... SELECT: the rows of the query are inserted in batches, each as above.
//! - UPDATE and DELETE in an order or up to a limit, or whose rows may meet each other's keys: the rows are
//!   locked first, then written.
//!
//! Outside a transaction the statement has a transaction of its own, which it commits. Inside one a failure
//! undoes all statements after the one before it. Locks stay in either case, as those of every failed
//! statement do.
//!
//! In reading order: [`state`], the record; [`drive`], what follows a step, and how the statement ends;
//! [`insert`]; [`change`]; [`rows`], the rows of an INSERT that may be needed again; [`returned`], the rows
//! of RETURNING; [`source`], the query of INSERT ... SELECT.

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
