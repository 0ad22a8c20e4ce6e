//! Plans at work: explicit records of what a session waits for, no matter how long; every answer of the data plane is one step.

mod bound;
mod completion;
mod compound;
mod compute;
mod fill;
mod insert;
mod interrupt;
mod key;
mod numbers;
mod packets;
mod parameters;
mod read;
mod savepoint;
mod schema;
mod sorter;
mod state;
mod transaction;
mod write;

pub(crate) use completion::{Changed, fail, finish, interrupted, ok};
pub(crate) use compound::on_source_event;
pub(crate) use compute::{compute_now, compute_rows};
pub(crate) use fill::{is_filling, on_fill_ended, on_fill_read_failed, on_fill_rows, on_fill_statement};
pub(crate) use insert::{on_numbers, start_insert};
pub(crate) use interrupt::{no_such_thread, on_interrupted};
pub(crate) use key::KeyMaker;
pub(crate) use numbers::NumberRanges;
pub(crate) use packets::append_row;
pub(crate) use parameters::{fill_from_shape, fits_class, kind_of_value, kinds_of_shape};
pub(crate) use read::{PartRows, on_read_failed, on_rows, pump, start_select};
pub(crate) use savepoint::{Savepoint, on_undone, release_savepoint, roll_back_to_savepoint, set_savepoint};
pub(crate) use schema::{on_schema_changed, on_schema_started, start_schema_change};
pub(crate) use state::{Again, Execution, Origin, Run, TableWait, Workspace};
pub(crate) use transaction::{AfterEnding, end_transaction, on_ended, run_control};
pub(crate) use write::{StatementOutcome, in_read_only_transaction, on_statement, start_change};
