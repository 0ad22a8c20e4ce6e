//! The refresh of statistics: ANALYZE TABLE as a statement without a client.

use junctor_gateway::TurnContext;
use junctor_model::error::{Error, Result};
use junctor_model::id::TableId;
use junctor_model::quoted_name::push_quoted_name;
use junctor_model::value::Value;
use junctor_signals::program::RowProtocol;

use super::facts::{StatementFacts, with_environment};
use crate::bind::{Environment, message};
use crate::execute::{Engine, PlanInput, Session, StatementContext, StatementInput, fail};
use crate::parse::parse;
use crate::plan::{NoVirtualTables, Plan, plan_statement};
use crate::result::{Progress, ResultSink};

impl Engine {
    /// Whether a table should be sampled now.
    pub fn wants_refresh(&self) -> bool {
        let is_on = !matches!(self.globals.value_named("innodb_stats_auto_recalc"), Value::Int(0) | Value::UInt(0));
        is_on && !self.is_stopping && self.settings.statistics.wants_refresh()
    }

    /// Takes the next table to sample, with its number of rows. [`Engine::end_refresh`] must follow.
    pub fn begin_refresh(&self, now_us: u64) -> Option<(TableId, u64)> {
        self.settings.statistics.begin_refresh(now_us)
    }

    /// A sample has ended.
    pub fn end_refresh(&self) {
        self.settings.statistics.end_refresh();
    }

    /// Samples a table.
    pub fn refresh_statistics(
        &mut self,
        session: &mut Session,
        (table, rows): (TableId, u64),
        turn: &mut TurnContext<'_>,
        sink: &mut dyn ResultSink,
    ) -> Progress {
        let mut context = StatementContext { engine: self, session, turn, sink };
        context.engine.work.parameters.clear();
        match context.plan_refresh(table, rows) {
            Ok(plan) => {
                let input = PlanInput { protocol: RowProtocol::Text, shaped_text: None, input: StatementInput::NONE };
                context.execute_plan(&plan, &input)
            }
            Err(error) => fail(&mut context, &error),
        }
    }
}

impl Engine {
    /// Forgets the plans of one table that old statistics have decided. Queries of several tables look by
    /// themselves.
    pub fn forget_by_statistics(&mut self) {
        let version = self.settings.statistics.version();
        if self.statistics_version != version {
            self.statistics_version = version;
            self.cache.forget_by_statistics();
            self.shared_statements.forget_by_statistics();
        }
    }

    /// Forgets such plans of the prepared statements of a session.
    pub fn forget_by_statistics_of(&self, session: &mut Session) {
        if session.statistics_version != self.statistics_version {
            session.statistics_version = self.statistics_version;
            session.statements.forget_by_statistics();
        }
    }
}

impl StatementContext<'_, '_> {
    fn plan_refresh(&self, table: TableId, rows: u64) -> Result<Plan> {
        let facts = StatementFacts { engine: self.engine, session: self.session, turn: self.turn };
        let layout = self.engine.gateway.catalog().dictionary.table(table);
        let definition = &layout.ok_or_else(Error::table_definition_changed)?.definition;
        let mut text = String::from("ANALYZE TABLE ");
        push_quoted_name(&definition.database, &mut text);
        text.push('.');
        push_quoted_name(&definition.name, &mut text);
        let parsed = parse(text.as_bytes()).map_err(|error| message::of_parse_error(&error))?;
        let planned = with_environment(&facts, (None, None), &[], &mut |environment| {
            let environment = Environment { row_estimate: &|_| Some(rows), ..*environment };
            plan_statement(&environment, &parsed.statement, &NoVirtualTables)
        })?;
        planned.map(|planned| planned.plan).ok_or_else(Error::table_definition_changed)
    }
}
