//! Hot path: at most 10 instructions per statement whose plan is cached.
//!
//! Finds the digest under which the current statement counts.

use std::sync::Arc;

use junctor_gateway::TurnContext;
use junctor_model::value::Value;
use junctor_signals::read_status::StatusTable;

use crate::execute::{DigestTask, Engine, Execution, StatementContext, TextKey, fail, in_read_only_transaction};
use crate::mysql_catalog::show::SUMMARY_BY_DIGEST;
use crate::parse::statement::ObjectName;
use crate::parse::{digest_text, without_passwords};
use crate::plan::{DigestKey, DigestNumber, Plan, PlanWork, PreparedDigest};
use crate::result::Progress;

impl StatementContext<'_, '_> {
    /// Notes the digest of a text whose shape was scanned last and has an entry in the plan cache. Returns
    /// whether the digest was forgotten, so that its new row does not know the plan.
    #[inline(always)]
    pub(super) fn note_known_digest(&mut self, text: &[u8], number: DigestNumber) -> bool {
        self.session.digest = number;
        let is_forgotten = !self.engine.digests.has(number);
        if is_forgotten {
            self.renew_known_digest(text);
        }
        is_forgotten
    }

    /// As [`Self::note_known_digest`], for an entry whose digest was forgotten.
    #[cold]
    fn renew_known_digest(&mut self, text: &[u8]) {
        self.note_digest(text);
        let key = Engine::plan_key(&self.engine.shape, self.session);
        self.engine.cache.set_digest(&key, self.session.digest);
    }

    /// Notes the digest of a text without a cached plan.
    #[cold]
    pub(super) fn note_digest(&mut self, text: &[u8]) {
        let dialect = self.session.variables.dialect();
        let database = self.session.database.as_deref();
        let known = TextKey { text, database, dialect };
        if let Some(number) = self.engine.digests.recent(known) {
            self.session.digest = number;
            return;
        }
        let Some(key) = self.engine.digest_key(known) else { return };
        let sample = || String::from_utf8_lossy(&without_passwords(text, dialect)).into_owned();
        let number = self.engine.digests.number_of(&key, sample, self.turn.turn_start);
        self.engine.digests.note_recent(TextKey { text, database: self.session.database(), dialect }, number);
        self.session.digest = number;
    }

    /// Notes what the plan of the current statement adds to its digest.
    pub(super) fn note_plan_work(&mut self, plan: &Plan) {
        self.engine.digests.note_plan(self.session.digest, PlanWork::of(plan));
    }

    /// The digest of a statement that is prepared. It counts when the statement is executed.
    pub(super) fn prepared_digest(&self, text: &[u8]) -> PreparedDigest {
        let dialect = self.session.variables.dialect();
        let key = self.engine.digest_key(TextKey { text, database: self.session.database(), dialect });
        PreparedDigest::new(key, DigestNumber::default())
    }

    /// Whether a name is that of the digest table, which TRUNCATE empties.
    pub(super) fn is_digest_table(&self, table: &ObjectName) -> bool {
        let database = table.database.as_deref().or(self.session.database()).unwrap_or_default();
        database.eq_ignore_ascii_case("performance_schema") && table.name.eq_ignore_ascii_case(SUMMARY_BY_DIGEST)
    }

    /// TRUNCATE of the digest table: every sql block forgets its digests. Commits like every TRUNCATE.
    pub(super) fn start_digest_truncation(&mut self) -> Progress {
        if self.session.variables.next_transaction().read_only {
            return fail(self, &in_read_only_transaction());
        }
        let request = (StatusTable::TakenStatementDigests, &[][..]);
        match self.engine.gateway.read_status(self.session.connection, request, self.turn) {
            Ok(operation) => {
                self.session.execution = Execution::ForgettingDigests(operation);
                Progress::Waiting
            }
            Err(error) => fail(self, &error),
        }
    }
}

impl Engine {
    /// `None` for a text without tokens.
    fn digest_key(&self, key: TextKey<'_>) -> Option<Arc<DigestKey>> {
        let bytes_max = match self.globals.value_named("max_digest_length") {
            Value::UInt(bytes) => bytes as usize,
            _ => return None,
        };
        let text = digest_text(key.text, key.dialect, bytes_max);
        (!text.is_empty()).then(|| Arc::new(DigestKey { database: key.database.map(Box::from), text: text.into() }))
    }

    /// Begins to read this block's contribution to the digest tables, for the sql block that executes the
    /// query. With `forgets`, the block begins anew, and the contribution has no rows.
    pub fn begin_digest_task(&mut self, forgets: bool) -> DigestTask {
        if forgets { self.digests.begin_clear() } else { self.digests.begin_read() }
    }

    /// Runs the next step of the task, which takes tens of microseconds. Returns the rows after the last one.
    pub fn run_digest_step(&self, task: &mut DigestTask, turn: &TurnContext<'_>) -> Option<Vec<Vec<Value>>> {
        self.digests.run_step(task, turn.turn_start, turn.wall_clock_us)
    }
}
