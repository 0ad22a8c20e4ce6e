//! Long queries, for which the sql block lends the session to the block of a `work` thread. The query has not
//! begun when the session leaves. It starts again at the other block, from its input, and stays there.

use junctor_gateway::TurnContext;
use junctor_gateway::threads::RequestRate;

use super::context::StatementContext;
use super::engine::Engine;
use super::retry::{InputForm, RetryInput};
use super::session::Session;
use super::state::{Execution, PlanInput};
use super::user_lock::LockCallMode;
use crate::plan::{QueryPlan, TreePlan};
use crate::result::Progress;

/// Which queries leave the sql block.
#[derive(Debug)]
pub(crate) struct LendingRule {
    /// Predicted duration in nanoseconds from which they leave. With 0, every query leaves. Otherwise they
    /// leave while many requests arrive. With few requests they disturb nobody, and there are fewer `work`
    /// threads than others.
    least_ns: f64,
    rate: RequestRate,
}

/// A query that starts at another sql block.
#[derive(Debug)]
pub(crate) struct LentQuery {
    pub input: RetryInput,
    /// Whether the query may start again if a table definition changes.
    pub may_retry: bool,
}

impl Session {
    /// Whether the session is to be lent, or waits at the other block for a slot of the thread pool.
    pub fn is_to_be_lent(&self) -> bool {
        matches!(self.execution, Execution::Lent(_))
    }

    /// Whether nothing ties the session to its sql block: no transaction, no cursor, no table of its own, no
    /// further statement in the text.
    fn is_movable(&self) -> bool {
        let transaction = &self.transaction;
        let is_in_transaction = self.is_open
            || transaction.explicit
            || transaction.has_begun()
            || transaction.snapshot_number().is_some()
            || self.table_locks.is_some();
        let is_ending = self.interrupted || self.is_closing;
        !is_in_transaction
            && !is_ending
            && self.cursors.is_empty()
            && self.private_key == 0
            && self.next_statement_at == 0
    }
}

impl TreePlan {
    /// Whether the query reads stored tables alone, and locks nothing. Rows of virtual tables may be those of
    /// one sql block.
    fn only_reads_tables(&self) -> bool {
        let reads = self.leaves.iter().all(|leaf| matches!(leaf.query, QueryPlan::Select(_)) && !leaf.locks);
        reads && !self.tables.is_empty() && !self.analyzes && self.explain.is_none()
    }
}

impl StatementContext<'_, '_> {
    /// Suspends a query before it begins, if a `work` thread is to run it.
    #[inline]
    pub(crate) fn lend_query(&mut self, plan: &TreePlan, input: &PlanInput<'_>) -> Option<Progress> {
        let rule = self.engine.lending.as_mut()?;
        let (now, loads) = (self.turn.turn_start, self.turn.loads);
        let is_long = plan.cost_ns >= rule.least_ns;
        let disturbs = is_long && (rule.least_ns == 0.0 || rule.rate.has_many(now, || loads.inputs()));
        if !disturbs || plan.reads_diagnostics || !plan.only_reads_tables() || !self.session.is_movable() {
            return None;
        }
        // A `work` block has no clients, so it does not notice that the node is cut off. It would answer.
        if self.engine.gateway.check_host().is_err() {
            return None;
        }
        if matches!(input.input.form, InputForm::None | InputForm::Keys(..)) {
            return None;
        }
        // Only this block knows the results that were asked for before the statement.
        let is_answered = matches!(self.engine.lock_calls.get_mut().mode, LockCallMode::Answered);
        if is_answered {
            return None;
        }
        let may_retry = input.input.may_retry;
        let input = input.input.copy(&self.engine.work.parameters, self.turn);
        self.session.execution = Execution::Lent(Box::new(LentQuery { input, may_retry }));
        Some(Progress::Waiting)
    }
}

impl Engine {
    /// Lets sessions with queries that are predicted to take long be lent.
    pub fn lend_sessions(&mut self) {
        let least_ns = f64::from(self.settings.work_query_us_min) * 1e3;
        self.lending = Some(LendingRule { least_ns, rate: RequestRate::default() });
    }

    /// A session leaves this block, to another one or back.
    pub fn release_session(&mut self, session: &mut Session, turn: &mut TurnContext<'_>) {
        self.forget_limit(session);
        self.forget_table_user(session.connection, turn);
    }

    /// A session comes from another block. It has missed what this block was told meanwhile.
    pub fn adopt_session(&mut self, session: &mut Session, turn: &mut TurnContext<'_>) {
        // The numbers of rights are those of a block.
        session.forget_rights();
        if session.is_to_be_lent() {
            self.renew_limit(session, turn);
        }
    }
}
