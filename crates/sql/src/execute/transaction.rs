//! BEGIN, COMMIT and ROLLBACK, and the implicit commits of other statements.

use junctor_gateway::Gateway;
use junctor_gateway::transaction::Isolation;
use junctor_model::error::{Error, Result};
use junctor_signals::change_schema::SchemaChange;
use junctor_signals::end_transaction::Ending;

use super::completion::{ChangeCounts, fail, finish_ok};
use super::context::StatementContext;
use super::schema::{AfterSchemaChange, send_schema_change};
use super::session::Session;
use super::state::Execution;
use crate::mysql_catalog::show::WarningLevel;
use crate::parse::statement::TransactionEnd;
use crate::plan::ControlPlan;
use crate::result::Progress;

/// MySQL's number of the warning that a phrase was ignored.
const UNSUPPORTED_BY_ENGINE: u16 = 138;

/// The action that follows the end of a transaction.
#[derive(Debug)]
pub(crate) enum AfterTransactionEnd {
    /// Sends OK. With `chain` another transaction begins; with `release` the connection is closed.
    Complete { chain: bool, release: bool },
    /// Begins another transaction.
    Begin { read_only: Option<bool>, consistent_snapshot: bool },
    /// Continues with a schema change.
    Schema {
        change: Box<SchemaChange>,
        notes: Vec<(u16, Box<str>)>,
        existence_notes: Vec<(u16, Box<str>)>,
        then: AfterSchemaChange,
    },
    /// Releases the table locks. With an error, the statement then fails.
    UnlockTables { error: Option<Box<Error>> },
    /// Sends the error of the statement that ended the transaction.
    Fail(Box<Error>),
}

/// Starts BEGIN, COMMIT or ROLLBACK.
pub(crate) fn start_control(context: &mut StatementContext<'_, '_>, control: ControlPlan) -> Progress {
    let (ending, end) = match control {
        ControlPlan::Begin { read_only, consistent_snapshot } => {
            // BEGIN commits an open transaction.
            let after = AfterTransactionEnd::Begin { read_only, consistent_snapshot };
            return start_ending(context, Ending::Commit, after);
        }
        ControlPlan::Commit(end) => (Ending::Commit, end),
        ControlPlan::Rollback(end) => (Ending::Rollback, end),
    };
    let TransactionEnd { chain, release } = end;
    if !context.session.is_open {
        let characteristics = context.session.variables.next_transaction();
        context.session.is_read_only = characteristics.read_only;
        context.session.transaction.isolation = characteristics.isolation.isolation();
    }
    context.session.variables.forget_next_transaction();
    let after = AfterTransactionEnd::Complete { chain: chain == Some(true), release: release == Some(true) };
    start_ending(context, ending, after)
}

/// Ends the transaction if one is open, then continues with `after`.
pub(crate) fn start_ending(
    context: &mut StatementContext<'_, '_>,
    ending: Ending,
    after: AfterTransactionEnd,
) -> Progress {
    match context.end_transaction(ending) {
        Err(error) => {
            context.engine.finish_table_locks(context.session, false);
            fail(context, &error)
        }
        Ok(None) => {
            context.session.transaction_ended();
            continue_after(context, after)
        }
        Ok(Some(operation)) => {
            context.session.execution = Execution::Ending(operation, after);
            Progress::Waiting
        }
    }
}

/// Continues with the outcome of COMMIT or ROLLBACK.
pub(super) fn resume_ending(
    context: &mut StatementContext<'_, '_>,
    after: AfterTransactionEnd,
    error: Option<Box<Error>>,
) -> Progress {
    context.session.transaction_ended();
    match error {
        Some(error) => {
            context.engine.finish_table_locks(context.session, false);
            fail(context, &error)
        }
        None => continue_after(context, after),
    }
}

fn continue_after(context: &mut StatementContext<'_, '_>, after: AfterTransactionEnd) -> Progress {
    match after {
        AfterTransactionEnd::Complete { chain, release } => {
            if chain {
                context.session.chain_transaction();
            }
            let progress = finish_ok(context, ChangeCounts::default());
            if release { Progress::Close } else { progress }
        }
        AfterTransactionEnd::UnlockTables { error } => {
            context.engine.release_table_locks(context.session, context.turn);
            match error {
                Some(error) => fail(context, &error),
                None => finish_ok(context, ChangeCounts::default()),
            }
        }
        AfterTransactionEnd::Begin { read_only, consistent_snapshot } => {
            context.engine.release_table_locks(context.session, context.turn);
            match begin(&mut context.engine.gateway, context.session, read_only, consistent_snapshot) {
                Ok(()) => finish_ok(context, ChangeCounts::default()),
                Err(error) => fail(context, &error),
            }
        }
        AfterTransactionEnd::Schema { change, notes, existence_notes, then } => {
            send_schema_change(context, *change, (notes, existence_notes), then)
        }
        AfterTransactionEnd::Fail(error) => fail(context, &error),
    }
}

fn begin(
    gateway: &mut Gateway,
    session: &mut Session,
    read_only: Option<bool>,
    consistent_snapshot: bool,
) -> Result<()> {
    session.begin_transaction(read_only);
    if let Some(tracker) = &mut session.tracker {
        tracker.begin_explicitly(consistent_snapshot);
    }
    if !consistent_snapshot {
        return Ok(());
    }
    if session.transaction.isolation != Isolation::RepeatableRead {
        // The storage engine interface of MySQL uses this number for the warning.
        let message = "InnoDB: WITH CONSISTENT SNAPSHOT was ignored because this phrase can only be used with \
                       REPEATABLE READ isolation level.";
        session.warn(WarningLevel::Warning, UNSUPPORTED_BY_ENGINE, message.into());
        return Ok(());
    }
    gateway.take_snapshot(&mut session.transaction)
}

/// Completes SET after the variables are set. If `commits`, because autocommit was turned on, the open
/// transaction is committed first.
pub(crate) fn finish_set(context: &mut StatementContext<'_, '_>, commits: bool) -> Progress {
    if commits {
        let after = AfterTransactionEnd::Complete { chain: false, release: false };
        return start_ending(context, Ending::Commit, after);
    }
    let session = &mut *context.session;
    session.transaction.explicit = session.is_open || !session.variables.autocommit;
    finish_ok(context, ChangeCounts::default())
}

/// Must be called after a failed statement. If the failure has ended the transaction, as for the victim of a
/// deadlock, the session leaves it.
pub(crate) fn note_lost_transaction(gateway: &mut Gateway, session: &mut Session) {
    if gateway.take_ended(&mut session.transaction) {
        gateway.forget(&mut session.transaction);
        session.transaction_ended();
    }
}
