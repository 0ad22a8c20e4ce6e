//! SAVEPOINT, ROLLBACK TO and RELEASE. A savepoint is the number of the last statement that it keeps, so setting one asks
//! nobody, and going back is the undo of later statements at the transaction's tc.

use junctor_model::collation::CollationId;
use junctor_model::error::{Error, ErrorCode};
use junctor_model::id::StatementNumber;

use super::completion::{Changed, fail, ok};
use super::context::StatementContext;
use super::state::Execution;
use crate::result::Progress;
use crate::session::Session;

/// Savepoints of one transaction; one more is error 1041.
const SAVEPOINTS_MAX: usize = 4096;

/// A place in a transaction to go back to.
#[derive(Debug)]
pub(crate) struct Savepoint {
    name: Box<str>,
    /// Statements after this one are undone by going back.
    statement: StatementNumber,
    /// How many tables the transaction had used.
    tables: usize,
}

/// The last statement that the newest savepoint keeps; 0 without one.
#[inline]
pub(crate) fn newest_savepoint(session: &Session) -> StatementNumber {
    session.savepoints.last().map_or(StatementNumber(0), |savepoint| savepoint.statement)
}

/// SAVEPOINT: one of the same name is replaced. Outside of a transaction nothing happens, as in MySQL.
pub(crate) fn set_savepoint(context: &mut StatementContext<'_, '_>, name: &str) -> Progress {
    if context.session.is_open || !context.session.variables.autocommit {
        context.session.savepoints.retain(|savepoint| !is_named(savepoint, name));
        if context.session.savepoints.len() >= SAVEPOINTS_MAX {
            let message = format!("Out of resources: more than {SAVEPOINTS_MAX} savepoints");
            return fail(context, &Error::new(ErrorCode::OutOfResources, message));
        }
        let (statement, tables) = (context.session.transaction.statement(), context.session.tables.len());
        context.session.savepoints.push(Savepoint { name: name.into(), statement, tables });
    }
    ok(context, Changed::default())
}

/// ROLLBACK TO: the savepoint stays, later ones go. Error: 1305.
pub(crate) fn roll_back_to_savepoint(context: &mut StatementContext<'_, '_>, name: &str) -> Progress {
    let Some(place) = find(context.session, name) else { return fail(context, &no_such_savepoint(name)) };
    let Savepoint { statement, tables, .. } = context.session.savepoints[place];
    match context.engine.gateway.undo_statements(
        context.session.connection,
        &context.session.transaction,
        statement,
        context.turn,
    ) {
        Err(error) => fail(context, &error),
        Ok(operation) => {
            context.session.savepoints.truncate(place + 1);
            match operation {
                Some(operation) => {
                    context.session.execution = Execution::Undoing(operation);
                    Progress::Waiting
                }
                None => {
                    // Nothing is locked, so others may change the tables that were only read since.
                    context.session.tables.truncate(tables);
                    ok(context, Changed::default())
                }
            }
        }
    }
}

/// The statements after the savepoint are undone.
pub(crate) fn on_undone(context: &mut StatementContext<'_, '_>) -> Progress {
    if matches!(context.session.execution, Execution::Compound(_)) {
        return super::compound::on_undone(context);
    }
    ok(context, Changed::default())
}

/// RELEASE SAVEPOINT: it goes, and the later ones with it. Error: 1305.
pub(crate) fn release_savepoint(context: &mut StatementContext<'_, '_>, name: &str) -> Progress {
    let Some(place) = find(context.session, name) else { return fail(context, &no_such_savepoint(name)) };
    context.session.savepoints.truncate(place);
    ok(context, Changed::default())
}

fn find(session: &Session, name: &str) -> Option<usize> {
    session.savepoints.iter().position(|savepoint| is_named(savepoint, name))
}

/// Names are compared as identifiers are: without regard to case.
fn is_named(savepoint: &Savepoint, name: &str) -> bool {
    CollationId::UTF8MB4_GENERAL_CI.equal(savepoint.name.as_bytes(), name.as_bytes())
}

#[cold]
fn no_such_savepoint(name: &str) -> Box<Error> {
    Error::new(ErrorCode::FunctionDoesNotExist, format!("SAVEPOINT {name} does not exist"))
}
