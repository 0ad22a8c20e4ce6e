//! The stages of each schema change.
//!
//! Objects are created before a catalog that names them is published, and dropped only after a catalog
//! without them is published. A plan made from a catalog therefore never meets a missing partition. Writers
//! maintain an index before it is built, and an index is built before readers use it. Stages before the first
//! publication can be undone without anybody noticing.

use std::collections::BTreeSet;
use std::sync::Arc;

use junctor_kernel::Address;
use junctor_model::access::AccessChange;
use junctor_model::access::control::ACCOUNTS_MAX;
use junctor_model::alteration::set_table_name;
use junctor_model::collation::CollationId;
use junctor_model::error::{Error, ErrorCode, Result};
use junctor_model::foreign_key::{ForeignKey, check_key_name, foreign_keys_of_expiring_rows};
use junctor_model::id::{PartitionId, TableId};
use junctor_model::limit::PARTITIONS_PER_TABLE_MAX;
use junctor_model::planted_bug::PlantedBug;
use junctor_model::schema::{DatabaseDefinition, Placement, Sharing, TableDefinition, TableKind, TableLayout};
use junctor_model::stored_schema::DictionaryChange;
use junctor_signals::Module;
use junctor_signals::change_schema::{Catalog, SchemaChange, TableRename};

use super::block::MainBlock;
use super::definition::{self, replacement_of};
use super::foreign_key;
use super::reserve_auto_increment::Counter;
use super::state::{AlterationStep, PartitionWork, PartitionWorkKind, Plan, StageWork, TableName, Task};

impl MainBlock {
    /// The stages of a change, or the reason why it is refused.
    pub(super) fn plan(&self, task: Task, foreign_key_checks: bool) -> Result<Plan> {
        let change = match task {
            Task::Requested(change) => *change,
            Task::Step { step, table, alteration } => {
                return match step {
                    AlterationStep::CreateIndexes => self.plan_create_indexes(table, &alteration),
                    AlterationStep::BuildIndexes => self.plan_build_indexes(table),
                    // Locks change no schema objects, so they have no stages.
                    AlterationStep::BlockWrites => Ok(Plan::default()),
                    AlterationStep::CreateReplacement => self.plan_create_replacement(table, &alteration),
                    AlterationStep::Finish if alteration.copies_rows() => self.plan_replace_table(table, &alteration),
                    // A main that takes the job over knows its objects only.
                    AlterationStep::Undo if replacement_of(&self.catalog.dictionary, table).is_some() => {
                        self.plan_drop_replacement(table)
                    }
                    AlterationStep::Undo if alteration.copies_rows() => Ok(Plan::default()),
                    AlterationStep::Finish => self.plan_alter_table(table, &alteration),
                    AlterationStep::Undo => self.plan_undo_alteration(table),
                };
            }
        };
        match change {
            SchemaChange::CreateDatabase { name, collation, if_not_exists } => {
                self.plan_create_database(name, collation, if_not_exists)
            }
            SchemaChange::AlterDatabase { name, collation } => self.plan_alter_database(name, collation),
            SchemaChange::DropDatabase { name, if_exists } => {
                self.plan_drop_database(&name, if_exists, foreign_key_checks)
            }
            SchemaChange::CreateTable { definition, if_not_exists, auto_increment } => {
                self.plan_create_table(*definition, if_not_exists, auto_increment, foreign_key_checks)
            }
            SchemaChange::DropTables { names, if_exists } => {
                self.plan_drop_tables(&names, if_exists, foreign_key_checks)
            }
            SchemaChange::TruncateTable { table } => self.plan_truncate_table(table, foreign_key_checks),
            SchemaChange::AlterTable { table, alteration, .. } => self.plan_alter_table(table, &alteration),
            SchemaChange::RenameTables { renames } => self.plan_rename_tables(&renames),
            SchemaChange::LockTables { .. } => Ok(Plan::default()),
            SchemaChange::CreateOwnTable { definition, sharing, auto_increment } => {
                self.plan_create_own_table(*definition, sharing, auto_increment)
            }
            SchemaChange::DropOwnTables { tables } => Ok(self.plan_drop_own_tables(&tables)),
            SchemaChange::FinishTable { table } => self.plan_finish_table(table, foreign_key_checks),
            SchemaChange::CreateView { definition, or_replace, alters } => {
                self.plan_create_view(*definition, or_replace, alters)
            }
            SchemaChange::DropViews { names, if_exists } => self.plan_drop_views(&names, if_exists),
            SchemaChange::ChangeAccess { change } => self.plan_change_access(change),
        }
    }

    fn plan_create_database(&self, name: Box<str>, collation: CollationId, if_not_exists: bool) -> Result<Plan> {
        let mut plan = Plan::default();
        if self.catalog.dictionary.database(&name).is_some() {
            let message = format!("Can't create database '{name}'; database exists");
            return note_or_refuse(plan, if_not_exists, ErrorCode::DatabaseExists, message);
        }
        let mut catalog = self.next_catalog();
        catalog.dictionary.put_database(DatabaseDefinition { name, collation });
        plan.then_publish(catalog);
        Ok(plan)
    }

    fn plan_change_access(&self, change: AccessChange) -> Result<Plan> {
        let mut plan = Plan::default();
        let mut catalog = self.next_catalog();
        let changed = self.catalog.dictionary.access.changed_by(change).ok_or_else(Error::table_definition_changed)?;
        if changed.len() > ACCOUNTS_MAX {
            let message = format!("Too many accounts; at most {ACCOUNTS_MAX} are possible");
            return Err(Error::new(ErrorCode::OutOfResources, message));
        }
        catalog.dictionary.access = Arc::new(changed);
        plan.then_publish(catalog);
        Ok(plan)
    }

    fn plan_alter_database(&self, name: Box<str>, collation: CollationId) -> Result<Plan> {
        if self.catalog.dictionary.database(&name).is_none() {
            return Err(Error::new(ErrorCode::UnknownDatabase, format!("Unknown database '{name}'")));
        }
        let mut plan = Plan::default();
        let mut catalog = self.next_catalog();
        catalog.dictionary.put_database(DatabaseDefinition { name, collation });
        plan.then_publish(catalog);
        Ok(plan)
    }

    fn plan_drop_database(&self, name: &str, if_exists: bool, checks: bool) -> Result<Plan> {
        let mut plan = Plan::default();
        if self.catalog.dictionary.database(name).is_none() {
            let message = format!("Can't drop database '{name}'; database doesn't exist");
            return note_or_refuse(plan, if_exists, ErrorCode::DatabaseDropMissing, message);
        }
        let mut catalog = self.next_catalog();
        let dictionary = &self.catalog.dictionary;
        let shared: Vec<TableId> = dictionary.tables_of(name).map(|layout| layout.definition.id).collect();
        if checks {
            foreign_key::check_drop(dictionary, &shared)?;
        }
        // A table cannot be without its database, so the tables of single sessions go, too.
        let own = dictionary.owned_tables_of(name).map(|layout| layout.definition.id);
        let tables: Vec<TableId> = shared.iter().copied().chain(own).collect();
        let works = self.drop_from(&mut catalog, &tables);
        catalog.dictionary.remove_database(name);
        plan.then_partitions(self.renew_related(&mut catalog, &self.names_of_tables(&shared), &[], &BTreeSet::new()));
        plan.then_publish(catalog);
        plan.then(StageWork::Partitions(works), None);
        Ok(plan)
    }

    fn plan_create_table(
        &self,
        definition: TableDefinition,
        if_not_exists: bool,
        auto_increment: u64,
        checks: bool,
    ) -> Result<Plan> {
        let mut plan = Plan::default();
        let dictionary = &self.catalog.dictionary;
        if dictionary.database(&definition.database).is_none() {
            let message = format!("Unknown database '{}'", definition.database);
            return Err(Error::new(ErrorCode::UnknownDatabase, message));
        }
        if dictionary.table_named(&definition.database, &definition.name).is_some() {
            let message = format!("Table '{}' already exists", definition.name);
            return note_or_refuse(plan, if_not_exists, ErrorCode::TableExists, message);
        }
        if !(1..=PARTITIONS_PER_TABLE_MAX).contains(&definition.partition_count) {
            let message = "Too many partitions (including subpartitions) were defined";
            return Err(Error::new(ErrorCode::TooManyPartitions, message));
        }
        definition::check_indexes(&definition)?;
        foreign_key::check_create(dictionary, &definition, checks)?;
        let own = [(definition.database.clone(), definition.name.clone())];
        let keys = definition.foreign_keys.clone();
        let tables = definition::with_ids(definition::with_index_ids(definition), self.next_table);
        plan.counters.push((tables[0].id, Counter::new(&tables[0], auto_increment.max(1))));
        let mut catalog = self.next_catalog();
        let creates = self.add_to(&mut catalog, tables, &mut plan);
        let drops = with_kind(&creates, PartitionWorkKind::Drop);
        plan.then(StageWork::Partitions(creates), Some(StageWork::Partitions(drops)));
        let created = BTreeSet::from([self.next_table]);
        plan.then_partitions(self.renew_related(&mut catalog, &own, &keys, &created));
        plan.then_publish(catalog);
        Ok(plan)
    }

    fn plan_drop_tables(&self, names: &[TableName], if_exists: bool, checks: bool) -> Result<Plan> {
        let mut plan = Plan::default();
        let mut found = Vec::new();
        let mut missing = Vec::new();
        for (database, name) in names {
            match self.catalog.dictionary.table_named(database, name) {
                Some(layout) if layout.definition.view.is_none() => found.push(layout.definition.id),
                _ => missing.push(format!("{database}.{name}")),
            }
        }
        if !missing.is_empty() && !if_exists {
            return Err(Error::new(ErrorCode::UnknownTable, format!("Unknown table '{}'", missing.join(","))));
        }
        let note = |name: String| (ErrorCode::UnknownTable.errno(), format!("Unknown table '{name}'").into());
        plan.notes.extend(missing.into_iter().map(note));
        if found.is_empty() {
            return Ok(plan);
        }
        if checks {
            foreign_key::check_drop(&self.catalog.dictionary, &found)?;
        }
        let mut catalog = self.next_catalog();
        let works = self.drop_from(&mut catalog, &found);
        plan.then_partitions(self.renew_related(&mut catalog, names, &[], &BTreeSet::new()));
        plan.then_publish(catalog);
        plan.then(StageWork::Partitions(works), None);
        Ok(plan)
    }

    fn plan_truncate_table(&self, table: TableId, checks: bool) -> Result<Plan> {
        let mut plan = Plan::default();
        let old = self.base_table(table)?;
        if old.definition.sharing != Sharing::Shared {
            return Ok(self.plan_truncate_own_table(old));
        }
        if checks {
            foreign_key::check_truncate(&self.catalog.dictionary, &old.definition)?;
        }
        let tables = definition::with_ids(old.definition.clone(), self.next_table);
        plan.counters.push((tables[0].id, Counter::new(&tables[0], 1)));
        let mut catalog = self.next_catalog();
        let drops_old = self.drop_from(&mut catalog, &[table]);
        let creates = self.add_to(&mut catalog, tables, &mut plan);
        let drops_new = with_kind(&creates, PartitionWorkKind::Drop);
        plan.then(StageWork::Partitions(creates), Some(StageWork::Partitions(drops_new)));
        let created = BTreeSet::from([self.next_table]);
        plan.then_partitions(self.renew_related(&mut catalog, &self.names_of_tables(&[table]), &[], &created));
        plan.then_publish(catalog);
        plan.then(StageWork::Partitions(drops_old), None);
        Ok(plan)
    }

    /// Renames tables in the given order, so that names can be exchanged. Tables whose name differs at the
    /// end get a new version.
    fn plan_rename_tables(&self, renames: &[TableRename]) -> Result<Plan> {
        let mut plan = Plan::default();
        let mut catalog = self.next_catalog();
        let (mut renamed, mut related) = (BTreeSet::new(), BTreeSet::new());
        for TableRename { from, to } in renames {
            let Some(layout) = catalog.dictionary.table_named(&from.0, &from.1) else {
                let message = format!("Table '{}.{}' doesn't exist", from.0, from.1);
                return Err(Error::new(ErrorCode::NoSuchTable, message));
            };
            if catalog.dictionary.database(&to.0).is_none() {
                return Err(Error::new(ErrorCode::UnknownDatabase, format!("Unknown database '{}'", to.0)));
            }
            if catalog.dictionary.table_named(&to.0, &to.1).is_some() {
                return Err(Error::new(ErrorCode::TableExists, format!("Table '{}' already exists", to.1)));
            }
            if layout.definition.view.is_some() && from.0 != to.0 {
                let message = format!("Changing schema from '{}' to '{}' is not allowed.", from.0, to.0);
                return Err(Error::new(ErrorCode::ViewToOtherDatabase, message));
            }
            let mut definition = layout.definition.clone();
            catalog.dictionary.remove_table(definition.id);
            set_table_name(&mut definition, to);
            let is_parent = catalog.dictionary.referencing_keys(&to.0, &to.1).next().is_some();
            if is_parent && definition.time_to_live().is_some() {
                return Err(foreign_keys_of_expiring_rows());
            }
            for key in &definition.foreign_keys {
                check_key_name(&catalog.dictionary, &definition, &[], key)?;
            }
            renamed.insert(definition.id);
            catalog.dictionary.put_table(definition);
            related.extend(foreign_key::rename_parent(&mut catalog, from, to));
        }
        let names: Vec<TableName> =
            renames.iter().flat_map(|rename| [rename.from.clone(), rename.to.clone()]).collect();
        related.extend(foreign_key::related(&self.catalog.dictionary, &names, &[]));
        let mut works = Vec::new();
        let others: BTreeSet<TableId> = related.difference(&renamed).copied().collect();
        for definition in foreign_key::with_new_versions(&mut catalog, &others) {
            works.extend(self.replace_layouts(&definition));
        }
        for id in renamed {
            let Some(layout) = catalog.dictionary.table(id).cloned() else { continue };
            let tables = definition::renamed(&layout.definition, &|id| catalog.dictionary.table(id).cloned());
            for definition in tables {
                works.extend(self.replace_layouts(&definition));
                catalog.dictionary.put_table(definition);
            }
        }
        plan.then(StageWork::Partitions(works), None);
        plan.then_publish(catalog);
        Ok(plan)
    }

    /// Increments the versions of the tables that foreign keys relate to the named tables, before the change
    /// or after it. Excludes the tables in `changed`, whose versions the change sets itself. Returns the work
    /// on their partitions.
    pub(super) fn renew_related(
        &self,
        catalog: &mut Catalog,
        names: &[TableName],
        keys: &[ForeignKey],
        changed: &BTreeSet<TableId>,
    ) -> Vec<PartitionWork> {
        let mut related = foreign_key::related(&self.catalog.dictionary, names, keys);
        related.extend(foreign_key::related(&catalog.dictionary, names, keys));
        related.retain(|table| !changed.contains(table));
        let renewed = foreign_key::with_new_versions(catalog, &related);
        renewed.iter().flat_map(|definition| self.replace_layouts(definition)).collect()
    }

    pub(super) fn names_of_tables(&self, tables: &[TableId]) -> Vec<TableName> {
        let layouts = tables.iter().filter_map(|id| self.catalog.dictionary.table(*id));
        layouts.map(|layout| (layout.definition.database.clone(), layout.definition.name.clone())).collect()
    }

    pub(super) fn next_catalog(&self) -> Catalog {
        let mut catalog = (*self.catalog).clone();
        catalog.dictionary.version += 1;
        catalog
    }

    pub(super) fn base_table(&self, table: TableId) -> Result<&Arc<TableLayout>> {
        let layout = self.catalog.dictionary.table(table).filter(|layout| layout.definition.kind == TableKind::Base);
        layout.ok_or_else(Error::table_definition_changed)
    }

    /// Assigns the partitions of new tables to chains, and adds the tables to the catalog. The entries of a
    /// unique index are in the node groups of their table, which thus says for both where they are.
    pub(super) fn add_to(
        &self,
        catalog: &mut Catalog,
        tables: Vec<TableDefinition>,
        plan: &mut Plan,
    ) -> Vec<PartitionWork> {
        let mut works = Vec::new();
        for mut table in tables {
            plan.tables_made += 1;
            let (id, partition_count) = (table.id, table.partition_count);
            let mut first = self.next_place + plan.partitions_placed;
            let base = match table.kind {
                TableKind::UniqueEntries { base, .. } => catalog.dictionary.table(base),
                TableKind::Base | TableKind::Replacement { .. } | TableKind::View => None,
            };
            let placement = base.and_then(|base| base.definition.placement).or_else(|| self.placement_at(first));
            if let Some(placement) = placement {
                let turn = placement.next_turn(first);
                plan.partitions_placed += turn - first;
                first = turn;
            }
            table.placement = placement;
            catalog.dictionary.put_table(table);
            let Some(layout) = catalog.dictionary.table(id).map(Arc::clone) else {
                junctor_kernel::invariant::fail("a table that was added is in the catalog", format_args!("{id:?}"))
            };
            for index in 0..partition_count {
                let partition = PartitionId { table: id, index };
                let chain = self.chain_at(placement, first + usize::from(index));
                plan.partitions_placed += 1;
                catalog.distribution.put(partition, chain.clone());
                works.push(PartitionWork {
                    partition,
                    layout: Arc::clone(&layout),
                    chain,
                    kind: PartitionWorkKind::Create,
                });
            }
        }
        works
    }

    /// Number of places for partitions: ldm instances of this node, and in a cluster of all nodes.
    pub(super) fn places(&self) -> usize {
        let chains: usize = self.groups.iter().map(Vec::len).sum();
        chains.max(1) * usize::from(self.ldm_instances)
    }

    /// The node groups of a table whose first partition has the place `position`: all groups that are open
    /// and do not leave. `None` on a node alone.
    pub(super) fn placement_at(&self, position: usize) -> Option<Placement> {
        let open = match self.membership() {
            Some(membership) => usize::from(membership.placed_groups()).min(self.groups.len()),
            None => self.groups.len(),
        };
        (open > 0).then(|| Placement { first: (position % open) as u8, groups: open as u8 })
    }

    /// Whether no table has a partition in the node group that leaves, on every disk that counts. Only the
    /// node that runs schema changes can tell, in the present epoch.
    pub(super) fn is_left_group_empty(&self) -> bool {
        let Some(membership) = self.membership() else { return false };
        let Some(group) = membership.leaving_group() else { return false };
        if !self.runs_schema_changes() || self.running.is_some() || !self.are_records_durable(membership) {
            return false;
        }
        let is_in_group = |layout: &Arc<TableLayout>| {
            let definition = &layout.definition;
            definition.placement.is_some_and(|it| definition::has_partition_in(it, group, definition.partition_count))
        };
        !self.catalog.dictionary.tables().any(is_in_group) || PlantedBug::RemoveGroupWithRows.is_planted()
    }

    /// The node groups of a table whose records lack them, and whose first partition has the place
    /// `position`. A program that stores no placement knows the groups of the first start only.
    pub(super) fn first_placement_at(&self, position: usize) -> Option<Placement> {
        let groups = self.first_groups;
        (groups > 0).then(|| Placement { first: (position % groups) as u8, groups: groups as u8 })
    }

    /// Adds the placement of tables whose records lack it, as their chains show it. The next schema change
    /// and the next checkpoint store it.
    pub(super) fn add_placements(&mut self, catalog: &mut Arc<Catalog>) {
        let lacks = |layout: &&Arc<TableLayout>| layout.definition.placement.is_none();
        let placed: Vec<TableDefinition> = catalog
            .dictionary
            .tables()
            .filter(lacks)
            .filter_map(|layout| {
                let first = PartitionId { table: layout.definition.id, index: 0 };
                let node = catalog.distribution.chain(first)?.first()?.node;
                let first = self.groups.iter().position(|chains| chains.iter().flatten().any(|it| *it == node))?;
                // `None` on a node alone, whose chains have no groups.
                let placement = self.first_placement_at(first)?;
                Some(TableDefinition { placement: Some(placement), ..layout.definition.clone() })
            })
            .collect();
        for definition in placed {
            self.unstored_placements.insert(definition.id);
            Arc::make_mut(catalog).dictionary.put_table(definition);
        }
    }

    /// Adds the tables to a change whose records lack their placement.
    pub(super) fn store_placements(&mut self, catalog: &Catalog, change: &mut DictionaryChange) {
        for id in std::mem::take(&mut self.unstored_placements) {
            let is_in_change = change.tables.iter().any(|table| table.id == id);
            if let Some(layout) = catalog.dictionary.table(id).filter(|_| !is_in_change) {
                change.tables.push(layout.definition.clone());
            }
        }
    }

    /// The chain of the partition at the place `position` of a table with this placement, whose first
    /// partition has a place of the first group. In a group, partitions are assigned to the chains in turn,
    /// and then to the ldm instances. Chains name all nodes that are configured; whoever uses a chain leaves
    /// out the nodes that do not serve.
    pub(super) fn chain_at(&self, placement: Option<Placement>, position: usize) -> Vec<Address> {
        let Some(placement) = placement else {
            let instance = (position % usize::from(self.ldm_instances)) as u16;
            let nodes = std::iter::once(self.own.node).chain(self.configuration.backup_nodes.iter().copied());
            return nodes.map(|node| Address::new(node, Module::Ldm, instance)).collect();
        };
        let groups = usize::from(placement.groups);
        let chains = &self.groups[position % groups];
        let seat = position / groups;
        let instance = (seat / chains.len() % usize::from(self.ldm_instances)) as u16;
        chains[seat % chains.len()].iter().map(|node| Address::new(*node, Module::Ldm, instance)).collect()
    }

    /// A chain as the catalog has it, with this node if it was added to the group later.
    pub(super) fn with_own(&self, chain: &[Address]) -> Vec<Address> {
        let mut chain = chain.to_vec();
        let is_named = |node| chain.iter().any(|at| at.node == node);
        if let Some(first) = chain.first().filter(|_| self.beside.is_some_and(is_named) && !is_named(self.own.node)) {
            chain.push(Address { node: self.own.node, ..*first });
        }
        chain
    }

    /// Removes tables and their hidden tables from the catalog.
    pub(super) fn drop_from(&self, catalog: &mut Catalog, tables: &[TableId]) -> Vec<PartitionWork> {
        let mut works = Vec::new();
        for table in tables {
            let Some(layout) = self.catalog.dictionary.table(*table) else { continue };
            let hidden = layout.definition.indexes.iter().filter_map(definition::entries_of);
            for id in std::iter::once(*table).chain(hidden) {
                works.extend(self.drop_one(catalog, id));
            }
        }
        works
    }

    pub(super) fn drop_one(&self, catalog: &mut Catalog, table: TableId) -> Vec<PartitionWork> {
        catalog.dictionary.remove_table(table);
        catalog.distribution.remove_table(table);
        let layout = self.catalog.dictionary.table(table);
        layout.map_or(Vec::new(), |layout| self.works(layout, PartitionWorkKind::Drop))
    }

    pub(super) fn replace_layouts(&self, definition: &TableDefinition) -> Vec<PartitionWork> {
        self.works(&Arc::new(TableLayout::new(definition.clone())), PartitionWorkKind::ReplaceLayout)
    }

    /// The same work for every partition of a published table.
    pub(super) fn works(&self, layout: &Arc<TableLayout>, kind: PartitionWorkKind) -> Vec<PartitionWork> {
        let table = layout.definition.id;
        let work = |index| {
            let partition = PartitionId { table, index };
            let Some(chain) = self.catalog.distribution.chain(partition) else {
                junctor_kernel::invariant::fail("a published partition has a chain", format_args!("{partition:?}"))
            };
            let chain = chain.to_vec();
            PartitionWork { partition, layout: Arc::clone(layout), chain, kind }
        };
        (0..layout.definition.partition_count).map(work).collect()
    }
}

pub(super) fn with_kind(works: &[PartitionWork], kind: PartitionWorkKind) -> Vec<PartitionWork> {
    works.iter().map(|work| PartitionWork { kind, ..work.clone() }).collect()
}

fn note_or_refuse(mut plan: Plan, as_note: bool, code: ErrorCode, message: String) -> Result<Plan> {
    if !as_note {
        return Err(Error::new(code, message));
    }
    plan.notes.push((code.errno(), message.into()));
    Ok(plan)
}
