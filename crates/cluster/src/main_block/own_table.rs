//! Tables that one session finds: temporary tables, and the table that a CREATE TABLE ... SELECT fills.
//!
//! No other session can use such a table, so its changes wait for nobody. No dictionary record has a
//! temporary table, but in a cluster an empty record brings it to the other mains. A record has an unfinished
//! table, and a restart drops it; the record that finishes it makes all its rows appear at once.

use std::collections::BTreeSet;

use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::id::TableId;
use junctor_model::schema::{Sharing, TableDefinition, TableKind, TableLayout};
use junctor_signals::change_schema::{Catalog, SchemaChange};

use super::block::MainBlock;
use super::definition;
use super::foreign_key;
use super::plan::with_kind;
use super::reserve_auto_increment::Counter;
use super::state::{PartitionWorkKind, Plan, StageWork, Task};

/// Whether the change concerns a table of one session. It then claims no name.
pub(super) fn is_of_own_table(task: &Task, find: &dyn Fn(TableId) -> Option<Sharing>) -> bool {
    let table = match task {
        Task::Step { table, .. } => table,
        Task::Requested(change) => match &**change {
            SchemaChange::CreateOwnTable { .. } | SchemaChange::DropOwnTables { .. } => return true,
            SchemaChange::TruncateTable { table } | SchemaChange::AlterTable { table, .. } => table,
            _ => return false,
        },
    };
    find(*table).is_some_and(|sharing| sharing != Sharing::Shared)
}

impl MainBlock {
    pub(super) fn plan_create_own_table(
        &self,
        definition: TableDefinition,
        sharing: Sharing,
        auto_increment: u64,
    ) -> Result<Plan> {
        if self.catalog.dictionary.database(&definition.database).is_none() {
            let message = format!("Unknown database '{}'", definition.database);
            return Err(Error::new(ErrorCode::UnknownDatabase, message));
        }
        definition::check_indexes(&definition)?;
        let definition = TableDefinition { sharing, foreign_keys: Vec::new(), ..definition };
        let mut plan = Plan::default();
        self.create_own(definition::with_index_ids(definition), auto_increment, self.next_catalog(), &mut plan);
        Ok(plan)
    }

    /// Creates the table and its hidden tables with new ids, and publishes the catalog.
    fn create_own(&self, definition: TableDefinition, auto_increment: u64, mut catalog: Catalog, plan: &mut Plan) {
        let tables = definition::with_ids(definition, self.next_table);
        plan.counters.push((tables[0].id, Counter::new(&tables[0], auto_increment.max(1))));
        let table = tables[0].clone();
        let creates = self.add_to(&mut catalog, tables, plan);
        let drops = with_kind(&creates, PartitionWorkKind::Drop);
        plan.then(StageWork::Partitions(creates), Some(StageWork::Partitions(drops)));
        plan.then_publish_table(catalog, &table, self.member.is_some());
    }

    /// Drops those of the tables that still exist.
    pub(super) fn plan_drop_own_tables(&self, tables: &[TableId]) -> Plan {
        let mut plan = Plan::default();
        let is_own = |layout: &TableLayout| layout.definition.sharing != Sharing::Shared;
        let found: Vec<&TableLayout> =
            tables.iter().filter_map(|id| self.catalog.dictionary.table(*id)).map(|layout| &**layout).collect();
        let ids: Vec<TableId> = found.iter().filter(|it| is_own(it)).map(|it| it.definition.id).collect();
        if ids.is_empty() {
            return plan;
        }
        let mut catalog = self.next_catalog();
        let works = self.drop_from(&mut catalog, &ids);
        let are_temporary = found.iter().all(|layout| layout.definition.is_temporary());
        match are_temporary && self.member.is_none() {
            true => plan.then(StageWork::Publish(catalog.into()), None),
            false => plan.then_publish(catalog),
        }
        plan.then(StageWork::Partitions(works), None);
        plan
    }

    /// Replaces a temporary table by an empty one.
    pub(super) fn plan_truncate_own_table(&self, old: &TableLayout) -> Plan {
        let mut plan = Plan::default();
        let mut catalog = self.next_catalog();
        let drops = self.drop_from(&mut catalog, &[old.definition.id]);
        self.create_own(old.definition.clone(), 1, catalog, &mut plan);
        plan.then(StageWork::Partitions(drops), None);
        plan
    }

    /// Makes a table that its session has filled a table of all sessions. Errors: 1049, 1050, and 1412 if the
    /// table has disappeared.
    pub(super) fn plan_finish_table(&self, table: TableId, checks: bool) -> Result<Plan> {
        let dictionary = &self.catalog.dictionary;
        let is_unfinished = |layout: &&std::sync::Arc<TableLayout>| {
            layout.definition.kind == TableKind::Base && matches!(layout.definition.sharing, Sharing::Unfinished(_))
        };
        let Some(layout) = dictionary.table(table).filter(is_unfinished) else {
            return Err(Error::table_definition_changed());
        };
        let mut finished = layout.definition.clone();
        if dictionary.table_named(&finished.database, &finished.name).is_some() {
            let message = format!("Table '{}' already exists", finished.name);
            return Err(Error::new(ErrorCode::TableExists, message));
        }
        finished.sharing = Sharing::Shared;
        foreign_key::check_create(dictionary, &finished, checks)?;
        let mut plan = Plan::default();
        let mut catalog = self.next_catalog();
        let hidden = definition::hidden_tables(&finished, &|id| dictionary.table(id).cloned());
        finished.version.0 += 1;
        let own = [(finished.database.clone(), finished.name.clone())];
        let mut works = Vec::new();
        for mut definition in std::iter::once(finished).chain(hidden) {
            definition.sharing = Sharing::Shared;
            works.extend(self.replace_layouts(&definition));
            // The name of the session's table goes.
            catalog.dictionary.remove_table(definition.id);
            catalog.dictionary.put_table(definition);
        }
        plan.then_partitions(works);
        plan.then_partitions(self.renew_related(&mut catalog, &own, &[], &BTreeSet::from([table])));
        plan.then_publish(catalog);
        Ok(plan)
    }
}
