//! The stages of ALTER TABLE, CREATE INDEX and DROP INDEX, and of the steps of alterations.
//!
//! New objects are created first, and nothing is dropped before all of them are complete. Until then,
//! dropping the new indexes undoes the alteration. The last step is a single publication of a catalog, which
//! makes all other changes visible at once.

use std::collections::BTreeSet;

use junctor_model::alteration::{Alteration, altered, building_indexes, without_building};
use junctor_model::error::Result;
use junctor_model::id::TableId;
use junctor_model::schema::{IndexDefinition, Sharing, TableDefinition};
use junctor_signals::change_schema::Catalog;

use super::block::MainBlock;
use super::definition;
use super::foreign_key;
use super::plan::with_kind;
use super::state::{PartitionWork, PartitionWorkKind, Plan, StageWork, TableName};

impl MainBlock {
    /// Creates the new indexes, empty and in state Building.
    pub(super) fn plan_create_indexes(&self, table: TableId, alteration: &Alteration) -> Result<Plan> {
        let old = &self.base_table(table)?.definition;
        altered(&self.catalog.dictionary, old, alteration)?;
        let mut plan = Plan::default();
        let (building, hidden) = definition::with_indexes(old, &alteration.add_indexes, self.next_table);
        // Undoing the change leaves the table as it was, except for its version.
        let mut undone = old.clone();
        undone.version.0 += 2;
        let mut catalog = self.next_catalog();
        if !hidden.is_empty() {
            let creates = self.add_to(&mut catalog, hidden, &mut plan);
            let drops = with_kind(&creates, PartitionWorkKind::Drop);
            plan.then(StageWork::Partitions(creates), Some(StageWork::Partitions(drops)));
        }
        let replace = |definition: &TableDefinition| StageWork::Partitions(self.replace_layouts(definition));
        plan.then(replace(&building), Some(replace(&undone)));
        catalog.dictionary.put_table(building);
        plan.then_publish_table(catalog, old, self.member.is_some());
        Ok(plan)
    }

    /// Builds the ordered indexes while other sessions use the table.
    pub(super) fn plan_build_indexes(&self, table: TableId) -> Result<Plan> {
        let mut plan = Plan::default();
        let layout = self.base_table(table)?;
        for index in building_indexes(&layout.definition).filter(|index| index.is_ordered()) {
            let works = self.works(layout, PartitionWorkKind::BuildIndex(index.id));
            plan.then(StageWork::Partitions(works), None);
        }
        Ok(plan)
    }

    /// Performs all changes of an alteration. Its new indexes exist already.
    pub(super) fn plan_alter_table(&self, table: TableId, alteration: &Alteration) -> Result<Plan> {
        let old = &self.base_table(table)?.definition;
        let mut new = altered(&self.catalog.dictionary, old, alteration)?;
        let mut plan = Plan::default();
        let mut catalog = self.next_catalog();
        new.version.0 += 1;
        let dropped: Vec<&IndexDefinition> = old.indexes.iter().filter(|index| new.index(index.id).is_none()).collect();
        // Partitions learn of new objects before anyone uses these, and keep dropped objects until nobody
        // uses them.
        let mut old_and_new = new.clone();
        old_and_new.indexes.extend(dropped.iter().map(|index| (*index).clone()));
        plan.then(StageWork::Partitions(self.replace_layouts(&old_and_new)), None);
        let mut drops = Vec::new();
        for entries in dropped.iter().filter_map(|index| definition::entries_of(index)) {
            drops.extend(self.drop_one(&mut catalog, entries));
        }
        let raised = alteration.redefinition.as_ref().and_then(|redefinition| redefinition.auto_increment);
        plan.raised_counters.extend(raised.map(|least| (new.id, least)));
        let (names, works) = self.put_altered(&mut catalog, old, &new, alteration);
        plan.then_partitions(works);
        let own = BTreeSet::from([new.id]);
        plan.then_partitions(self.renew_related(&mut catalog, &names, &alteration.add_foreign_keys, &own));
        plan.then_publish_table(catalog, old, self.member.is_some());
        if !dropped.is_empty() {
            plan.then(StageWork::Partitions(self.replace_layouts(&new)), None);
            plan.then(StageWork::Partitions(drops), None);
        }
        Ok(plan)
    }

    /// Replaces the table in the catalog, and also the hidden tables and children whose definitions contain a
    /// changed name. Returns the old and new names of the table, and the work on the partitions of the hidden
    /// tables.
    fn put_altered(
        &self,
        catalog: &mut Catalog,
        old: &TableDefinition,
        new: &TableDefinition,
        alteration: &Alteration,
    ) -> (Vec<TableName>, Vec<PartitionWork>) {
        let (from, to) = ((old.database.clone(), old.name.clone()), (new.database.clone(), new.name.clone()));
        catalog.dictionary.remove_table(old.id);
        catalog.dictionary.put_table(new.clone());
        // No foreign key refers to a table of one session.
        let is_shared = new.sharing == Sharing::Shared;
        let mut names = if is_shared { vec![from.clone()] } else { Vec::new() };
        if let Some(redefinition) = alteration.redefinition.as_ref().filter(|_| is_shared) {
            foreign_key::rename_parent_columns(catalog, (&from, new.id), &redefinition.renamed_columns);
        }
        if from == to && alteration.rename_indexes.is_empty() {
            return (names, Vec::new());
        }
        if is_shared {
            foreign_key::rename_parent(catalog, &from, &to);
            names.push(to);
        }
        let mut works: Vec<PartitionWork> = Vec::new();
        for hidden in definition::hidden_tables(new, &|id| catalog.dictionary.table(id).cloned()) {
            works.extend(self.replace_layouts(&hidden));
            catalog.dictionary.put_table(hidden);
        }
        (names, works)
    }

    /// Drops the new indexes again.
    pub(super) fn plan_undo_alteration(&self, table: TableId) -> Result<Plan> {
        let mut plan = Plan::default();
        let old = &self.base_table(table)?.definition;
        let (mut definition, dropped) = without_building(old);
        if dropped.is_empty() {
            return Ok(plan);
        }
        definition.version.0 += 1;
        let mut catalog = self.next_catalog();
        let mut drops = Vec::new();
        for entries in building_indexes(old).filter_map(definition::entries_of) {
            drops.extend(self.drop_one(&mut catalog, entries));
        }
        let replace = self.replace_layouts(&definition);
        catalog.dictionary.put_table(definition);
        plan.then_publish_table(catalog, old, self.member.is_some());
        plan.then(StageWork::Partitions(replace), None);
        plan.then(StageWork::Partitions(drops), None);
        Ok(plan)
    }
}
