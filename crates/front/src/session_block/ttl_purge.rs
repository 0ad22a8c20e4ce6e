//! The purge of expired rows. The first sql block of a node begins a round every `ttl_purge_interval`
//! seconds, if the node is the one that purges.
//!
//! A round visits each table whose rows expire. Each batch is a statement of a session without a client,
//! which ends with it. After a batch the purge pauses for as long as the batch has taken, so it takes at most
//! half of the time. A round that took long is followed by a longer pause, because each round may read whole
//! tables.

use junctor_gateway::TurnContext;
use junctor_kernel::{Duration, SocketId, Time};
use junctor_model::access::AccountName;
use junctor_model::id::TableId;
use junctor_signals::client_command::Login;
use junctor_signals::inbox::{ContinueWork, Signal, SqlSignal};
use junctor_sql::result::{Progress, ResultSink};
use junctor_sql::{BACKGROUND_CONNECTION, Engine, Session, SessionOpening};

use super::block::SqlBlock;
use super::client_command::send_progress;
use super::state::{CommandState, SessionRecord};
use crate::protocol_table::{Protocol, SessionState};

/// The token of the timer of the purge.
pub(super) const PURGE_TIMER: u64 = 0x0070_7572_6765;
/// The number of the deferred work that begins the next batch.
pub(super) const PURGE_WORK: u32 = 0x7075_7267;

/// How often a node that must not purge looks whether it may, in milliseconds.
const LOOK_AGAIN_MS: u64 = 1000;
/// The least pause between two batches.
const PAUSE_MIN: Duration = Duration::from_millis(1);
/// The pause after a round is at least so many times the duration of the round.
const ROUND_PAUSE_FACTOR: u64 = 10;

/// A statement of a session without a client.
pub(super) type BackgroundStatement<'s> =
    &'s mut dyn FnMut(&mut Engine, &mut Session, &mut TurnContext<'_>, &mut dyn ResultSink) -> Progress;

/// The progress of the purge.
#[derive(Debug, Default)]
pub(super) struct TtlPurge {
    is_timer_running: bool,
    /// The table of the last batch, and of the next one unless it is `is_done`; `None` between two rounds.
    table: Option<TableId>,
    is_done: bool,
    round_began: Time,
    batch_began: Time,
}

impl SqlBlock {
    /// Starts the timer of the purge, if the schema has tables whose rows expire.
    pub(super) fn watch_expiring_tables(&mut self, turn: &mut TurnContext<'_>) {
        let is_idle = !self.purge.is_timer_running && !self.sessions.contains_key(&BACKGROUND_CONNECTION);
        if self.own.instance == 0 && is_idle && self.engine.next_expiring_table(TableId(0)).is_some() {
            self.await_round(turn, Duration::ZERO);
        }
    }

    /// Waits for the next round.
    fn await_round(&mut self, turn: &mut TurnContext<'_>, least: Duration) {
        let settings = self.engine.purge_settings();
        let wait = match settings.interval_s {
            0 => Duration::from_millis(LOOK_AGAIN_MS),
            seconds => Duration::from_seconds(seconds).max(least),
        };
        self.start_purge_timer(wait, turn);
    }

    fn start_purge_timer(&mut self, wait: Duration, turn: &mut TurnContext<'_>) {
        self.purge.is_timer_running = true;
        turn.start_timer(wait, PURGE_TIMER);
    }

    /// The batch begins in a turn of its own, because it may send as much as any command.
    pub(super) fn on_purge_timer(&mut self, turn: &mut TurnContext<'_>) {
        turn.outbox.send(self.own, Signal::Sql(SqlSignal::ContinueWork(ContinueWork { work: PURGE_WORK })));
    }

    /// Begins the next batch, or ends the round.
    pub(super) fn continue_purge(&mut self, turn: &mut TurnContext<'_>) {
        self.purge.is_timer_running = false;
        if self.engine.is_stopping || self.sessions.contains_key(&BACKGROUND_CONNECTION) {
            return;
        }
        if self.engine.next_expiring_table(TableId(0)).is_none() {
            self.purge.table = None;
            return;
        }
        if self.engine.purge_settings().interval_s == 0 || !self.engine.may_purge(turn) {
            self.purge.table = None;
            return self.start_purge_timer(Duration::from_millis(LOOK_AGAIN_MS), turn);
        }
        let now = turn.turn_start;
        let next = match self.purge.table {
            None => {
                self.purge.round_began = now;
                self.engine.next_expiring_table(TableId(0))
            }
            Some(table) if self.purge.is_done => self.engine.next_expiring_table(table),
            Some(table) => Some(table),
        };
        let Some(table) = next else {
            self.purge.table = None;
            self.engine.note_purge_round();
            let round = now.since(self.purge.round_began);
            return self.await_round(turn, Duration(round.0.saturating_mul(ROUND_PAUSE_FACTOR)));
        };
        self.purge.table = Some(table);
        self.purge.is_done = true;
        self.purge.batch_began = now;
        self.start_batch(table, turn);
    }

    fn start_batch(&mut self, table: TableId, turn: &mut TurnContext<'_>) {
        let run: BackgroundStatement<'_> =
            &mut |engine, session, turn, sink| engine.purge_batch(session, table, turn, sink);
        if !self.run_in_background(run, turn) {
            self.start_purge_timer(Duration::from_millis(LOOK_AGAIN_MS), turn);
        }
    }

    /// Runs a statement of a session without a client. Returns whether the session could be opened.
    pub(super) fn run_in_background(&mut self, run: BackgroundStatement<'_>, turn: &mut TurnContext<'_>) -> bool {
        let login = Login {
            user: "".into(),
            host: "".into(),
            account: AccountName::new("", ""),
            is_expired: false,
            database: None,
            capabilities: 0,
            character_set: 0,
            protocol: Protocol::MySql as u16,
            tls: None,
            is_extra: true,
        };
        let (protocol, traits) = SessionState::open(Protocol::MySql, &login);
        let opening = SessionOpening {
            connection: BACKGROUND_CONNECTION,
            user: &login.user,
            host: &login.host,
            account: &login.account,
            is_expired: false,
            database: None,
            found_rows: false,
            multi_statements: false,
            character_set: login.character_set,
            text_protocol: traits.row_protocol,
            is_interactive: false,
            tracks_state: false,
            tls: None,
            compression: None,
        };
        let Ok(session) = self.engine.open_background_session(&opening, turn) else { return false };
        let place = (SocketId::from_u64(0), self.own);
        let record = SessionRecord {
            command: CommandState::Running,
            is_admitted: true,
            is_extra: true,
            // The record is removed at the end of the statement, whose answer goes nowhere.
            is_disconnected: true,
            ..SessionRecord::new(session, protocol, place, turn.turn_start)
        };
        let record = &mut **self.sessions.entry(BACKGROUND_CONNECTION).insert(Box::new(record)).into_mut();
        let SessionRecord { session, protocol, answer, result_start, .. } = &mut *record;
        let mut sink = protocol.sink(answer, *result_start);
        let progress = run(&mut self.engine, session, turn, sink.as_result_sink());
        drop(sink);
        send_progress(&mut self.engine, record, progress, turn);
        self.end_step(BACKGROUND_CONNECTION, turn);
        true
    }

    /// The session of a batch, or of a sample, has ended.
    pub(super) fn end_purge_batch(&mut self, session: &Session, turn: &mut TurnContext<'_>) {
        if self.refresh.end() {
            self.engine.end_refresh();
            // The purge may have found the session in use, between two batches too.
            return match self.purge.table {
                Some(_) if !self.purge.is_timer_running => self.start_purge_timer(PAUSE_MIN, turn),
                _ => self.watch_expiring_tables(turn),
            };
        }
        if let Some(rows) = self.engine.end_purge_batch(session) {
            self.purge.is_done = rows < self.engine.purge_settings().batch_rows;
        }
        let pause = turn.turn_start.since(self.purge.batch_began);
        self.start_purge_timer(pause.max(PAUSE_MIN), turn);
    }
}
