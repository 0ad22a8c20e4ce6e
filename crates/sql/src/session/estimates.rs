//! Renews the row counts of tables before a query of several tables, and its plan if they have changed.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::execute::{Execution, InputForm, PlanInput, RetryState, StatementContext, start_row_counts};
use crate::plan::{Plan, TreePlan};
use crate::result::Progress;

impl StatementContext<'_, '_> {
    /// Requests the row counts, or plans the query again. `None` if the plan can be used.
    pub(super) fn renew_plan(&mut self, plan: &Arc<TreePlan>, input: &PlanInput<'_>) -> Option<Progress> {
        let tables_min = if plan.explain.is_some() || plan.analyzes { 1 } else { 2 };
        if plan.tables.len() < tables_min || matches!(input.input.form, InputForm::None | InputForm::Keys(..)) {
            return None;
        }
        let is_old = match plan.explain.is_some() || plan.analyzes {
            // EXPLAIN shows the present numbers, and a sample depends on them. Such a statement starts again
            // with them, and is planned each time.
            true => self.engine.table_statistics.known.is_none(),
            false => self.engine.estimates.is_old(self.turn.turn_start),
        };
        if is_old {
            self.note_table_uses(plan);
            let kept = input.input.copy(&self.engine.work.parameters, self.turn);
            return Some(start_row_counts(self, kept));
        }
        // A plan is made again only once: what still holds it afterwards may use it.
        let statistics = &self.engine.settings.statistics;
        let has_outgrown = || self.engine.estimates.has_outgrown(plan, statistics);
        let is_current = plan.explain.is_some() || plan.analyzes || !has_outgrown();
        if is_current || plan.is_outdated.swap(true, Ordering::Relaxed) {
            return None;
        }
        let kept = input.input.copy(&self.engine.work.parameters, self.turn);
        self.engine.cache.forget_outdated();
        self.session.statements.forget_outdated();
        self.session.execution = Execution::Retry(Box::new(RetryState::of_input(kept)));
        Some(self.retry_if_requested(Progress::Waiting))
    }
}

impl StatementContext<'_, '_> {
    /// Lets tables be sampled whose statistics are old.
    fn note_table_uses(&self, plan: &TreePlan) {
        if plan.explain.is_some() || plan.analyzes {
            return;
        }
        for table in &plan.tables {
            let definition = &table.layout.definition;
            let is_stored = definition.view.is_none() && !definition.is_temporary();
            if let Some(rows) = self.engine.estimates.rows(definition).filter(|rows| is_stored && *rows > 0) {
                self.engine.settings.statistics.note_use(definition, rows, self.turn.wall_clock_us);
            }
        }
    }
}

/// Whether a plan was made for other numbers of rows.
pub(super) fn is_outdated(plan: &Plan) -> bool {
    matches!(plan.unhinted(), Plan::Tree(plan) if plan.is_outdated.load(Ordering::Relaxed))
}
