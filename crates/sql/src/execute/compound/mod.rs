//! Writes that take several statements of the transaction and are one to the user: all of it happens, or nothing.
//!
//! - INSERT of rows whose keys may exist: all rows are inserted at once; only when one is refused are they taken one by one.
//! - INSERT ... SELECT: the query's rows are inserted in batches, each as above.
//! - UPDATE and DELETE in an order or up to a limit, or of which a row may meet the keys of another: the rows are locked first,
//!   then written.
//!
//! Outside a transaction such a statement has one of its own, which it commits. Inside one a failure undoes what came after the
//! statement before it. Locks stay in either case, as those of a failed statement always do.
//!
//! In reading order: [`state`], the record; [`drive`], what follows a step, and how it all ends; [`insert`]; [`change`];
//! [`rows`], the rows of an INSERT that may be needed again; [`returned`], those that it answers with; [`source`], the query of
//! INSERT ... SELECT.

mod change;
mod drive;
mod insert;
mod returned;
mod rows;
mod source;
mod state;

pub(super) use change::start_ordered_change;
pub(super) use drive::{on_ended, on_statement, on_undone};
pub(super) use insert::{start_insert_rows, start_insert_select};
pub(super) use rows::{RowList, RowRef};
pub(super) use source::{SelectedRows, on_numbers};
pub(crate) use source::{on_source_event, on_source_step};
pub(crate) use state::CompoundState;
