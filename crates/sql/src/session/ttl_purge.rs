//! The purge of expired rows: each batch is a DELETE with LIMIT that sees expired rows only.

use junctor_gateway::TurnContext;
use junctor_model::error::{Error, Result};
use junctor_model::id::{ConnectionId, TableId};
use junctor_model::quoted_name::push_quoted_name;
use junctor_model::schema::{Sharing, TableKind, TableLayout};
use junctor_model::value::Value;
use junctor_signals::cluster_status::ClusterFigure;
use junctor_signals::program::RowProtocol;

use super::facts::{StatementFacts, with_environment};
use crate::bind::{Environment, message};
use crate::execute::{Engine, PlanInput, Session, SessionOpening, StatementContext, StatementInput, fail};
use crate::mysql_catalog::variable::{GlobalVariables, SessionVariables};
use crate::parse::parse;
use crate::plan::{NoVirtualTables, Plan, plan_statement};
use crate::result::{Progress, ResultSink};

/// The settings of the purge: `ttl_purge_interval` and `ttl_purge_batch_rows`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PurgeSettings {
    /// Seconds between two rounds; 0 switches the purge off.
    pub interval_s: u64,
    /// Maximum number of rows that one transaction deletes.
    pub batch_rows: u64,
}

impl Engine {
    /// The settings of the purge.
    pub fn purge_settings(&self) -> PurgeSettings {
        let number = |name: &str| match self.globals.value_named(name) {
            Value::UInt(number) => number,
            Value::Int(number) => u64::try_from(number).unwrap_or(0),
            _ => 0,
        };
        PurgeSettings { interval_s: number("ttl_purge_interval"), batch_rows: number("ttl_purge_batch_rows").max(1) }
    }

    /// The first table after this one whose rows expire. The tables of single sessions end with them.
    pub fn next_expiring_table(&self, after: TableId) -> Option<TableId> {
        let expires = |layout: &&std::sync::Arc<TableLayout>| {
            let definition = &layout.definition;
            layout.time_to_live.is_some() && definition.kind == TableKind::Base && definition.sharing == Sharing::Shared
        };
        let mut tables = self.gateway.catalog().dictionary.tables_from(TableId(after.0.saturating_add(1)));
        tables.find(expires).map(|layout| layout.definition.id)
    }

    /// Whether this node purges: a node alone, or the node of a cluster that runs its schema changes, while
    /// it has a lease.
    pub fn may_purge(&self, turn: &mut TurnContext<'_>) -> bool {
        let is_first = self.settings.cluster.runs_schema_changes();
        is_first && (!self.gateway.requires_lease() || self.gateway.has_lease(turn))
    }

    /// Counts a round that is complete.
    pub fn note_purge_round(&self) {
        self.settings.cluster.count(ClusterFigure::PurgeRounds);
    }

    /// A session without a client, whose settings are the defaults.
    pub fn open_background_session(
        &mut self,
        opening: &SessionOpening<'_>,
        turn: &mut TurnContext<'_>,
    ) -> Result<Session> {
        let mut session = self.open_session(opening, turn)?;
        // No client has connected.
        self.counters.sessions -= 1;
        session.variables = SessionVariables::new(&GlobalVariables::default(), false).reading_committed();
        session.transaction_ended();
        Ok(session)
    }

    /// Deletes some expired rows of a table.
    pub fn purge_batch(
        &mut self,
        session: &mut Session,
        table: TableId,
        turn: &mut TurnContext<'_>,
        sink: &mut dyn ResultSink,
    ) -> Progress {
        let rows_max = self.purge_settings().batch_rows;
        let mut context = StatementContext { engine: self, session, turn, sink };
        context.engine.work.parameters.clear();
        match context.plan_purge(table, rows_max) {
            Ok(plan) => {
                let input = PlanInput { protocol: RowProtocol::Text, shaped_text: None, input: StatementInput::NONE };
                context.execute_plan(&plan, &input)
            }
            Err(error) => fail(&mut context, &error),
        }
    }

    /// Counts the rows of a batch that has ended. Returns their number; `None` if the batch has failed.
    pub fn end_purge_batch(&self, session: &Session) -> Option<u64> {
        let rows = u64::try_from(session.row_count).ok().filter(|_| session.last_error() == 0)?;
        self.settings.cluster.add(ClusterFigure::PurgedRows, rows);
        Some(rows)
    }
}

impl StatementContext<'_, '_> {
    fn plan_purge(&self, table: TableId, rows_max: u64) -> Result<Plan> {
        let facts = StatementFacts { engine: self.engine, session: self.session, turn: self.turn };
        let layout = self.engine.gateway.catalog().dictionary.table(table);
        let definition = &layout.ok_or_else(Error::table_definition_changed)?.definition;
        let mut text = String::from("DELETE FROM ");
        push_quoted_name(&definition.database, &mut text);
        text.push('.');
        push_quoted_name(&definition.name, &mut text);
        text.push_str(&format!(" LIMIT {rows_max}"));
        let parsed = parse(text.as_bytes()).map_err(|error| message::of_parse_error(&error))?;
        let planned = with_environment(&facts, (None, None), &[], &mut |environment| {
            let environment = Environment { purges: true, ..*environment };
            plan_statement(&environment, &parsed.statement, &NoVirtualTables)
        })?;
        planned.map(|planned| planned.plan).ok_or_else(Error::table_definition_changed)
    }
}

/// The number of the session of the block's own statements: the purge, and the refresh of statistics. No
/// client has it.
pub const BACKGROUND_CONNECTION: ConnectionId = ConnectionId(0);
