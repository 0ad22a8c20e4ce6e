//! Statements in the general log, the slow query log and the audit log.

use junctor_gateway::TurnContext;
use junctor_signals::journal::{LogEvent, LogKind, LoggedClient, SlowStatement, cut};
use junctor_sql::Engine;
use junctor_sql::parse::{audited, without_passwords};

use super::state::SessionRecord;

/// Records a command that starts in the general log.
#[inline]
pub(super) fn log_start(engine: &Engine, record: &SessionRecord, payload: &[u8], turn: &TurnContext<'_>) {
    if engine.journal().is_on(LogKind::General) {
        record_command(engine, record, payload, turn);
    }
}

/// Records a command that has ended.
#[inline]
pub(super) fn log_end(engine: &Engine, record: &SessionRecord, payload: &[u8], turn: &TurnContext<'_>) {
    if engine.journal().records_statements() {
        record_end(engine, record, payload, turn);
    }
}

#[cold]
fn record_command(engine: &Engine, record: &SessionRecord, payload: &[u8], turn: &TurnContext<'_>) {
    let (command, text) = record.protocol.describe(payload, &record.session);
    let text = without_passwords(text.unwrap_or(&[]), record.session.dialect());
    let event = LogEvent::Command(client(record), command, cut(&text));
    engine.journal().write(turn.wall_clock_us, event);
}

#[cold]
fn record_end(engine: &Engine, record: &SessionRecord, payload: &[u8], turn: &TurnContext<'_>) {
    let (_, Some(text)) = record.protocol.describe(payload, &record.session) else { return };
    let journal = engine.journal();
    let dialect = record.session.dialect();
    let took_us = turn.turn_start.since(record.statement_start).0 / 1000;
    if journal.is_on(LogKind::Slow) && took_us >= record.session.long_query_us() {
        let session = &record.session;
        let statement = SlowStatement {
            took_us,
            rows_sent: session.rows_sent(),
            last_insert_id: session.last_insert_id(),
            database: session.database().unwrap_or_default().into(),
        };
        let event = LogEvent::Slow(client(record), statement, cut(&without_passwords(text, dialect)));
        journal.write(turn.wall_clock_us, event);
    }
    if journal.is_on(LogKind::Audit)
        && let Some(name) = audited(text, dialect)
    {
        let errno = record.session.last_error();
        let event = LogEvent::Audit(client(record), name, errno, cut(&without_passwords(text, dialect)));
        journal.write(turn.wall_clock_us, event);
    }
}

fn client(record: &SessionRecord) -> LoggedClient {
    let session = &record.session;
    LoggedClient { connection: session.connection().0, user: session.user().into(), host: session.host().into() }
}
