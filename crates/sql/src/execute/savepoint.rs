//! SAVEPOINT, ROLLBACK TO and RELEASE. A savepoint is the number of the last statement that it keeps. Setting
//! a savepoint therefore needs no signal. ROLLBACK TO asks the transaction's tc to roll back the later
//! statements.

use junctor_model::collation::CollationId;
use junctor_model::error::{Error, ErrorCode};
use junctor_model::id::StatementNumber;

use super::completion::{ChangeCounts, fail, finish_ok};
use super::context::StatementContext;
use super::session::Session;
use super::state::Execution;
use crate::result::Progress;

/// Maximum number of savepoints in one transaction. More give error 1041.
const SAVEPOINTS_MAX: usize = 4096;

#[derive(Debug)]
pub(crate) struct Savepoint {
    name: Box<str>,
    /// ROLLBACK TO rolls back all statements after this one.
    statement: StatementNumber,
    /// Number of tables that the transaction had used.
    tables: usize,
}

/// The last statement that the newest savepoint keeps; 0 without a savepoint.
#[inline]
pub(crate) fn newest_savepoint(session: &Session) -> StatementNumber {
    session.savepoints.last().map_or(StatementNumber(0), |savepoint| savepoint.statement)
}

/// Executes SAVEPOINT, which replaces a savepoint of the same name. Outside a transaction it has no effect,
/// as in MySQL.
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
    finish_ok(context, ChangeCounts::default())
}

/// Starts ROLLBACK TO, which keeps the savepoint and removes later ones. Error: 1305.
pub(crate) fn start_rollback_to(context: &mut StatementContext<'_, '_>, name: &str) -> Progress {
    let Some(position) = find(context.session, name) else { return fail(context, &no_such_savepoint(name)) };
    let Savepoint { statement, tables, .. } = context.session.savepoints[position];
    match context.undo_statements(statement) {
        Err(error) => fail(context, &error),
        Ok(operation) => {
            context.session.savepoints.truncate(position + 1);
            match operation {
                Some(operation) => {
                    context.session.execution = Execution::Undoing(operation);
                    Progress::Waiting
                }
                None => {
                    // No statement since the savepoint has written or locked rows. Schema changes therefore
                    // need not wait for this transaction at tables that it has used only since the savepoint.
                    context.session.tables.truncate(tables);
                    finish_ok(context, ChangeCounts::default())
                }
            }
        }
    }
}

/// Executes RELEASE SAVEPOINT, which removes the savepoint and later ones. Error: 1305.
pub(crate) fn release_savepoint(context: &mut StatementContext<'_, '_>, name: &str) -> Progress {
    let Some(position) = find(context.session, name) else { return fail(context, &no_such_savepoint(name)) };
    context.session.savepoints.truncate(position);
    finish_ok(context, ChangeCounts::default())
}

fn find(session: &Session, name: &str) -> Option<usize> {
    session.savepoints.iter().position(|savepoint| is_named(savepoint, name))
}

/// Savepoint names are compared without regard to case, as all identifiers.
fn is_named(savepoint: &Savepoint, name: &str) -> bool {
    CollationId::UTF8MB4_GENERAL_CI.equal(savepoint.name.as_bytes(), name.as_bytes())
}

#[cold]
fn no_such_savepoint(name: &str) -> Box<Error> {
    Error::new(ErrorCode::ObjectDoesNotExist, format!("SAVEPOINT {name} does not exist"))
}
