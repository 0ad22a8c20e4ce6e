//! Collects the properties of the session and the server that statements can query.

use junctor_gateway::TurnContext;
use junctor_model::collation::CollationId;
use junctor_model::error::Result;
use junctor_model::id::TableId;
use junctor_model::schema::TableDefinition;

use crate::access::NeedsCollector;
use crate::bind::{Environment, Modes, NumberRules, ParameterKind, SessionConstant};
use crate::execute::Engine;
use crate::execute::Session;
use crate::mysql_catalog::show::{ShowContext, TableStatistics, WantedTables};
use crate::mysql_catalog::variable::{
    SessionContext, SessionVariables, SqlMode, counts_diagnostics, evaluate_session_expression, session_value_type,
};
use crate::parse::Expression;

/// The sources of everything that a statement may query, except stored rows.
pub(super) struct StatementFacts<'a, 'd> {
    pub engine: &'a Engine,
    pub session: &'a Session,
    pub turn: &'a TurnContext<'d>,
}

impl StatementFacts<'_, '_> {
    /// The properties of the session.
    pub(super) fn session_context(&self) -> SessionContext<'_> {
        let StatementFacts { engine, session, turn } = self;
        let dictionary = &engine.gateway.catalog().dictionary;
        let database = session.database.as_deref();
        let collation = database.and_then(|name| dictionary.database(name)).map(|database| database.collation);
        SessionContext {
            variables: &session.variables,
            globals: &engine.globals,
            connection: session.connection.0,
            user: &session.user,
            host: &session.host,
            account: &session.identity.account,
            roles: &session.identity.roles,
            database,
            database_collation: collation.unwrap_or(CollationId::DEFAULT),
            last_insert_id: session.last_insert_id,
            insert_id: session.insert_id.first,
            row_count: session.row_count,
            found_rows: session.found_rows,
            warning_count: session.warning_count,
            error_count: session.error_count,
            seed: session.seed,
            wall_clock_us: turn.wall_clock_us,
            attributes: session.query_attributes.as_ref().map_or(&[][..], |attributes| attributes.0.as_slice()),
        }
    }

    /// Calls `use_facts` with the input of SHOW and of the virtual tables.
    pub(super) fn with_show_context<T>(&self, use_facts: impl FnOnce(&ShowContext<'_>) -> T) -> T {
        let session_context = self.session_context();
        let status = self.status();
        let rights = self.engine.rights_for(self.session);
        let ranges = &self.engine.ranges;
        let engine_statistics = &self.engine.settings.statistics;
        let statistics = &self.engine.table_statistics;
        // Another node's main may be ahead of the one that reports.
        let next_number = |table: TableId| statistics.next_number_of(table).max(ranges.next_of(table));
        let numbers = |table: &TableDefinition| TableStatistics {
            auto_increment: next_number(table.id),
            ..statistics.of_table(table)
        };
        let facts = ShowContext {
            dictionary: &self.engine.gateway.catalog().dictionary,
            owner: self.session.temporary_owner(),
            wanted: WantedTables::ALL,
            rights: &rights,
            who: &self.session.who(),
            session: &session_context,
            table_statistics: &numbers,
            profile: &|table| engine_statistics.profile(table),
            histograms: &|table| engine_statistics.requested(table),
            partition_statistics: &|partition| statistics.of_partition(partition),
            next_auto_increment: &next_number,
            journal: self.engine.journal(),
            status: &status,
            warnings: &self.session.diagnostics,
        };
        use_facts(&facts)
    }

    /// The counters of SHOW STATUS, with their values as text.
    fn status(&self) -> Vec<(&'static str, String)> {
        let engine = self.engine;
        let counters = &engine.counters;
        let numbers = [
            ("Com_begin", counters.begins),
            ("Com_commit", counters.commits),
            ("Com_delete", counters.deletes),
            ("Com_insert", counters.inserts),
            ("Com_rollback", counters.rollbacks),
            ("Com_select", counters.selects),
            ("Com_stmt_execute", counters.executes),
            ("Com_stmt_prepare", counters.prepares),
            ("Com_update", counters.updates),
            ("Connections", counters.sessions),
            // A query has one file for all tables and sorts that exceed its memory.
            ("Created_tmp_disk_tables", counters.temporary_files),
            ("Created_tmp_files", counters.temporary_files),
            ("Prepared_stmt_count", engine.prepared_count as u64),
            ("Queries", counters.questions),
            ("Questions", counters.questions),
            ("Uptime", self.turn.turn_start.0 / 1_000_000_000),
        ];
        let numbers = numbers.into_iter().chain(engine.settings.cluster.rows()).chain(engine.connection_status());
        let compression = self.session.compression;
        let texts = [
            ("Compression", if compression.is_some() { "ON" } else { "OFF" }.to_owned()),
            ("Compression_algorithm", compression.unwrap_or_default().to_owned()),
        ];
        let mut rows: Vec<_> = numbers.map(|(name, number)| (name, number.to_string())).collect();
        rows.extend(texts);
        rows.extend(self.tls_status());
        rows.sort_unstable();
        rows
    }
}

/// How AUTO_INCREMENT columns of the session get their numbers.
pub(super) fn number_rules(variables: &SessionVariables) -> NumberRules {
    let (increment, offset) = variables.auto_increment_step();
    NumberRules { keeps_zero: variables.sql_mode.no_auto_value_on_zero(), increment, offset }
}

/// The parts of `sql_mode` that determine the meaning of a statement.
pub(super) fn modes_of(mode: SqlMode) -> Modes {
    Modes {
        only_full_group_by: mode.has("ONLY_FULL_GROUP_BY"),
        no_unsigned_subtraction: mode.has("NO_UNSIGNED_SUBTRACTION"),
        no_backslash_escapes: mode.dialect().no_backslash_escapes,
        is_lenient: !mode.has("STRICT_TRANS_TABLES") && !mode.has("STRICT_ALL_TABLES"),
        warns_of_division_by_zero: mode.has("ERROR_FOR_DIVISION_BY_ZERO"),
        pads_char: mode.has("PAD_CHAR_TO_FULL_LENGTH"),
    }
}

/// Calls `use_environment` with the environment in which a statement is bound.
pub(super) fn with_environment<T>(
    facts: &StatementFacts<'_, '_>,
    (database, access): (Option<&str>, Option<&NeedsCollector<'_>>),
    parameters: &[ParameterKind],
    use_environment: &mut dyn FnMut(&Environment<'_>) -> Result<T>,
) -> Result<T> {
    let session_context = facts.session_context();
    let collation = facts.session.variables.collation_connection;
    let session_constant = |expression: &Expression| {
        let value = match facts.engine.evaluate_lock_call(facts.session, &session_context, expression)? {
            Some(value) => Some(value),
            None => evaluate_session_expression(expression, &session_context)?,
        };
        Ok(value.map(|value| {
            let result = session_value_type(expression, &value, session_context.variables);
            SessionConstant { value, result, is_volatile: true, is_of_diagnostics: counts_diagnostics(expression) }
        }))
    };
    use_environment(&Environment {
        dictionary: &facts.engine.gateway.catalog().dictionary,
        owner: facts.session.temporary_owner(),
        database,
        collation,
        client: facts.session.variables.character_set_client,
        parameters,
        session_constant: &session_constant,
        locks_reads: facts.session.locks_reads(),
        sorts_with_files: facts.session.variables.sorts_with_files(),
        locks_sources: facts.session.locks_sources(),
        foreign_key_checks: facts.session.variables.foreign_key_checks,
        modes: modes_of(facts.session.variables.sql_mode),
        division_increment: facts.session.variables.division_increment(),
        concat_bytes_max: facts.session.variables.concat_bytes_max(),
        numbers: number_rules(&facts.session.variables),
        is_strict: false,
        ignores: false,
        rules: facts.session.variables.value_rules().at(session_context.now_us()),
        row_estimate: &|table| facts.engine.estimates.rows(table),
        profile: &|table| facts.engine.settings.statistics.profile(table),
        parameter_values: &facts.engine.work.planning_values,
        execution_values: &facts.engine.work.execution_values,
        numbers_of_execution: facts.engine.work.planning_values.is_empty(),
        purges: false,
        added_nodes: None,
        reads_diagnostics: None,
        notes: None,
        access,
    })
}
