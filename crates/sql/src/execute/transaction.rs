//! BEGIN, COMMIT, ROLLBACK, and the commits that other statements imply.

use junctor_gateway::Gateway;
use junctor_gateway::transaction::Isolation;
use junctor_model::error::{Error, Result};
use junctor_signals::change_schema::SchemaChange;
use junctor_signals::end_transaction::Ending;

use super::completion::{Changed, fail, ok};
use super::context::StatementContext;
use super::schema::send_schema_change;
use super::state::Execution;
use crate::mysql_catalog::show::WarningLevel;
use crate::parse::statement::TransactionEnd;
use crate::plan::ControlPlan;
use crate::result::Progress;
use crate::session::Session;

/// The number of the warning that a phrase was ignored.
const UNSUPPORTED_BY_ENGINE: u16 = 138;

/// What follows the end of a transaction.
#[derive(Debug)]
pub(crate) enum AfterEnding {
    /// OK; with `chain` another transaction begins at once, with `release` the connection is closed.
    Complete { chain: bool, release: bool },
    /// Another transaction begins.
    Begin { read_only: Option<bool>, consistent_snapshot: bool },
    /// The schema is changed.
    Schema { change: Box<SchemaChange>, notes: Vec<(u16, Box<str>)> },
    /// What LOCK TABLES has locked is given back; with an error, the statement fails then.
    UnlockTables { error: Option<Box<Error>> },
    /// The statement that ended the transaction fails.
    Fail(Box<Error>),
}

/// Executes the border of a transaction.
pub(crate) fn run_control(context: &mut StatementContext<'_, '_>, control: ControlPlan) -> Progress {
    let (ending, end) = match control {
        ControlPlan::Begin { read_only, consistent_snapshot } => {
            // An open transaction is committed by the next one's beginning.
            let after = AfterEnding::Begin { read_only, consistent_snapshot };
            return end_transaction(context, Ending::Commit, after);
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
    let after = AfterEnding::Complete { chain: chain == Some(true), release: release == Some(true) };
    end_transaction(context, ending, after)
}

/// Ends the transaction if one is open, and goes on with what follows.
pub(crate) fn end_transaction(context: &mut StatementContext<'_, '_>, ending: Ending, after: AfterEnding) -> Progress {
    match context.engine.gateway.end(context.session.connection, &mut context.session.transaction, ending, context.turn)
    {
        Err(error) => {
            context.engine.settle_table_locks(context.session, false);
            fail(context, &error)
        }
        Ok(None) => {
            context.session.transaction_ended();
            after_ending(context, after)
        }
        Ok(Some(operation)) => {
            context.session.execution = Execution::Ending(operation, after);
            Progress::Waiting
        }
    }
}

/// COMMIT or ROLLBACK was answered.
pub(crate) fn on_ended(context: &mut StatementContext<'_, '_>, error: Option<Box<Error>>) -> Progress {
    let after = match std::mem::take(&mut context.session.execution) {
        Execution::Ending(_, after) => after,
        other => {
            context.session.execution = other;
            return super::compound::on_ended(context, error);
        }
    };
    context.session.transaction_ended();
    match error {
        Some(error) => {
            context.engine.settle_table_locks(context.session, false);
            fail(context, &error)
        }
        None => after_ending(context, after),
    }
}

fn after_ending(context: &mut StatementContext<'_, '_>, after: AfterEnding) -> Progress {
    match after {
        AfterEnding::Complete { chain, release } => {
            if chain {
                context.session.chain_transaction();
            }
            let progress = ok(context, Changed::default());
            if release { Progress::Close } else { progress }
        }
        AfterEnding::UnlockTables { error } => {
            context.engine.release_table_locks(context.session, context.turn);
            match error {
                Some(error) => fail(context, &error),
                None => ok(context, Changed::default()),
            }
        }
        AfterEnding::Begin { read_only, consistent_snapshot } => {
            context.engine.release_table_locks(context.session, context.turn);
            match begin(&mut context.engine.gateway, context.session, read_only, consistent_snapshot) {
                Ok(()) => ok(context, Changed::default()),
                Err(error) => fail(context, &error),
            }
        }
        AfterEnding::Schema { change, notes } => send_schema_change(context, *change, notes),
        AfterEnding::Fail(error) => fail(context, &error),
    }
}

fn begin(
    gateway: &mut Gateway,
    session: &mut Session,
    read_only: Option<bool>,
    consistent_snapshot: bool,
) -> Result<()> {
    session.begin_transaction(read_only);
    if !consistent_snapshot {
        return Ok(());
    }
    if session.transaction.isolation != Isolation::RepeatableRead {
        // The number is that of MySQL's storage engine interface, which reports it so.
        let message = "InnoDB: WITH CONSISTENT SNAPSHOT was ignored because this phrase can only be used with \
                       REPEATABLE READ isolation level.";
        session.warn(WarningLevel::Warning, UNSUPPORTED_BY_ENGINE, message.into());
        return Ok(());
    }
    gateway.take_snapshot(&mut session.transaction)
}

/// After a failed statement: the transaction may have ended with it (a deadlock's victim is rolled back whole).
pub(crate) fn note_lost_transaction(gateway: &mut Gateway, session: &mut Session) {
    if gateway.take_ended(&mut session.transaction) {
        gateway.forget(&mut session.transaction);
        session.transaction_ended();
    }
}
