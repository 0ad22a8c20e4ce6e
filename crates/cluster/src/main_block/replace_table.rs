//! ALTER TABLE with a copy of the rows: the stages that create the new table, and that put it in the place of
//! the old one.
//!
//! The new table is in the dictionary as [`TableKind::Replacement`], without a name, so no statement reaches
//! it. One publication then removes the old table and gives its name to the new one.

use std::collections::BTreeSet;

use junctor_model::alteration::{Alteration, ColumnSource, Redefinition, altered};
use junctor_model::error::{Error, Result};
use junctor_model::id::TableId;
use junctor_model::schema::{Sharing, TableDefinition, TableKind};

use super::block::MainBlock;
use super::definition;
use super::foreign_key;
use super::plan::with_kind;
use super::reserve_auto_increment::Counter;
use super::state::{PartitionWorkKind, Plan, StageWork};

impl MainBlock {
    /// Creates the table to which the rows are copied.
    pub(super) fn plan_create_replacement(&self, table: TableId, alteration: &Alteration) -> Result<Plan> {
        let old = &self.base_table(table)?.definition;
        let new = altered(&self.catalog.dictionary, old, alteration)?;
        let mut plan = Plan::default();
        let mut catalog = self.next_catalog();
        let tables = definition::replacement(new, table, self.next_table);
        let creates = self.add_to(&mut catalog, tables, &mut plan);
        let drops = with_kind(&creates, PartitionWorkKind::Drop);
        plan.then(StageWork::Partitions(creates), Some(StageWork::Partitions(drops)));
        plan.then_publish_table(catalog, old, self.member.is_some());
        Ok(plan)
    }

    /// Puts the new table in the place of the old one.
    pub(super) fn plan_replace_table(&self, table: TableId, alteration: &Alteration) -> Result<Plan> {
        let dictionary = &self.catalog.dictionary;
        let old = &self.base_table(table)?.definition;
        let new = altered(dictionary, old, alteration)?;
        let (Some(replacement), Some((redefinition, _))) =
            (definition::replacement_of(dictionary, table), alteration.copy())
        else {
            return Err(Error::table_definition_changed());
        };
        let mut plan = Plan::default();
        let mut catalog = self.next_catalog();
        let drops = self.drop_from(&mut catalog, &[table]);
        let replacement = &replacement.definition;
        let mut version = replacement.version;
        version.0 += 1;
        let installed = TableDefinition {
            id: replacement.id,
            version,
            kind: TableKind::Base,
            placement: replacement.placement,
            indexes: replacement.indexes.clone(),
            next_index: replacement.next_index,
            ..new
        };
        let (counter, continues) = self.continued_counter(old, &installed, redefinition);
        plan.counters.push((installed.id, counter));
        plan.successor = continues.then_some((table, installed.id));
        let (from, to) =
            ((old.database.clone(), old.name.clone()), (installed.database.clone(), installed.name.clone()));
        catalog.dictionary.put_table(installed.clone());
        let mut works = self.replace_layouts(&installed);
        for hidden in definition::hidden_tables(&installed, &|id| catalog.dictionary.table(id).cloned()) {
            works.extend(self.replace_layouts(&hidden));
            catalog.dictionary.put_table(hidden);
        }
        plan.then(StageWork::Partitions(works), None);
        // No foreign key refers to a table of one session.
        if installed.sharing == Sharing::Shared {
            foreign_key::rename_parent_columns(&mut catalog, (&from, installed.id), &redefinition.renamed_columns);
            if from != to {
                foreign_key::rename_parent(&mut catalog, &from, &to);
            }
            let own = BTreeSet::from([installed.id]);
            plan.then_partitions(self.renew_related(&mut catalog, &[from, to], &alteration.add_foreign_keys, &own));
        }
        plan.then_publish_table(catalog, old, self.member.is_some());
        plan.then(StageWork::Partitions(drops), None);
        Ok(plan)
    }

    /// Drops the new table again.
    pub(super) fn plan_drop_replacement(&self, table: TableId) -> Result<Plan> {
        let mut plan = Plan::default();
        let Some(replacement) = definition::replacement_of(&self.catalog.dictionary, table) else { return Ok(plan) };
        let mut catalog = self.next_catalog();
        let drops = self.drop_from(&mut catalog, &[replacement.definition.id]);
        plan.then_publish_table(catalog, &replacement.definition, self.member.is_some());
        plan.then(StageWork::Partitions(drops), None);
        Ok(plan)
    }

    /// The counter of the table that takes the place of another one, and whether its numbers are those of the
    /// old table. It then continues after the numbers that sessions of the old table may still have had.
    fn continued_counter(
        &self,
        old: &TableDefinition,
        new: &TableDefinition,
        changes: &Redefinition,
    ) -> (Counter, bool) {
        let source = new.auto_increment_column().and_then(|column| changes.copy.as_ref()?.get(usize::from(column.0)));
        let continues = match (source, old.auto_increment_column()) {
            (Some(ColumnSource::Column(column)), Some(old)) => *column == old,
            _ => false,
        };
        let before = self.counters.get(&old.id).filter(|_| continues).map_or(1, |counter| counter.next);
        let copied = self.jobs.iter().filter(|job| job.table() == old.id).map(|job| job.next_number()).max();
        let least = copied.unwrap_or(1).max(changes.auto_increment.unwrap_or(1));
        let mut counter = Counter::new(new, before.max(least));
        counter.floor = least;
        (counter, continues)
    }
}
