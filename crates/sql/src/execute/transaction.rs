//! BEGIN, COMMIT, ROLLBACK, and the commits that other statements imply.

use junctor_gateway::transaction::Isolation;
use junctor_gateway::{Gateway, TurnContext};
use junctor_model::error::{Error, Result};
use junctor_signals::change_schema::SchemaChange;
use junctor_signals::end_transaction::Ending;

use super::completion::{Changed, fail, ok};
use super::schema::send_schema_change;
use super::state::Execution;
use crate::engine::Engine;
use crate::mysql_catalog::show::WarningLevel;
use crate::parse::statement::TransactionEnd;
use crate::plan::ControlPlan;
use crate::result::{Progress, ResultSink};
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
pub(crate) fn run_control(
    engine: &mut Engine,
    session: &mut Session,
    control: ControlPlan,
    turn: &mut TurnContext<'_>,
    sink: &mut dyn ResultSink,
) -> Progress {
    let (ending, end) = match control {
        ControlPlan::Begin { read_only, consistent_snapshot } => {
            // An open transaction is committed by the next one's beginning.
            let after = AfterEnding::Begin { read_only, consistent_snapshot };
            return end_transaction(engine, session, Ending::Commit, after, turn, sink);
        }
        ControlPlan::Commit(end) => (Ending::Commit, end),
        ControlPlan::Rollback(end) => (Ending::Rollback, end),
    };
    let TransactionEnd { chain, release } = end;
    if !session.is_open {
        let characteristics = session.variables.next_transaction();
        session.is_read_only = characteristics.read_only;
        session.transaction.isolation = characteristics.isolation.isolation();
    }
    session.variables.forget_next_transaction();
    let after = AfterEnding::Complete { chain: chain == Some(true), release: release == Some(true) };
    end_transaction(engine, session, ending, after, turn, sink)
}

/// Ends the transaction if one is open, and goes on with what follows.
pub(crate) fn end_transaction(
    engine: &mut Engine,
    session: &mut Session,
    ending: Ending,
    after: AfterEnding,
    turn: &mut TurnContext<'_>,
    sink: &mut dyn ResultSink,
) -> Progress {
    match engine.gateway.end(session.connection, &mut session.transaction, ending, turn) {
        Err(error) => {
            engine.settle_table_locks(session, false);
            fail(session, &error, sink)
        }
        Ok(None) => {
            session.transaction_ended();
            after_ending(engine, session, after, turn, sink)
        }
        Ok(Some(operation)) => {
            session.execution = Execution::Ending(operation, after);
            Progress::Waiting
        }
    }
}

/// COMMIT or ROLLBACK was answered.
pub(crate) fn on_ended(
    engine: &mut Engine,
    session: &mut Session,
    error: Option<Box<Error>>,
    turn: &mut TurnContext<'_>,
    sink: &mut dyn ResultSink,
) -> Progress {
    let after = match std::mem::take(&mut session.execution) {
        Execution::Ending(_, after) => after,
        other => {
            session.execution = other;
            return super::compound::on_ended(engine, session, error, turn, sink);
        }
    };
    session.transaction_ended();
    match error {
        Some(error) => {
            engine.settle_table_locks(session, false);
            fail(session, &error, sink)
        }
        None => after_ending(engine, session, after, turn, sink),
    }
}

fn after_ending(
    engine: &mut Engine,
    session: &mut Session,
    after: AfterEnding,
    turn: &mut TurnContext<'_>,
    sink: &mut dyn ResultSink,
) -> Progress {
    match after {
        AfterEnding::Complete { chain, release } => {
            if chain {
                session.chain_transaction();
            }
            let progress = ok(session, Changed::default(), sink);
            if release { Progress::Close } else { progress }
        }
        AfterEnding::UnlockTables { error } => {
            engine.release_table_locks(session, turn);
            match error {
                Some(error) => fail(session, &error, sink),
                None => ok(session, Changed::default(), sink),
            }
        }
        AfterEnding::Begin { read_only, consistent_snapshot } => {
            engine.release_table_locks(session, turn);
            match begin(&mut engine.gateway, session, read_only, consistent_snapshot) {
                Ok(()) => ok(session, Changed::default(), sink),
                Err(error) => fail(session, &error, sink),
            }
        }
        AfterEnding::Schema { change, notes } => send_schema_change(engine, session, *change, notes, turn, sink),
        AfterEnding::Fail(error) => fail(session, &error, sink),
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
