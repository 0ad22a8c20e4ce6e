//! Rebuilds the schema from the last checkpoint and the log, before a node with a log opens.
//!
//! Dictionary records contain finished changes only, with one exception: the first step of an alteration
//! publishes new indexes in state Building, or an empty table for a copy of the rows, and the last step makes
//! them visible. A crash between the two leaves an unfinished job, and [`MainBlock::restore`] undoes it. It
//! removes the indexes in state Building from the definition, increments the version of the table, and
//! removes the hidden tables of these indexes. It removes tables for copies, too.
//! The undo is a function of the records alone and needs no record: the next restart undoes the same again,
//! with the same version, unless a later record replaces the definition. In that case, hidden tables without
//! an index remain in the records. They are removed too.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use junctor_kernel::{Address, NodeId, require};
use junctor_model::access::{AccessControl, AccountDefinition};
use junctor_model::alteration::without_building;
use junctor_model::id::{PartitionId, TableId};
use junctor_model::schema::{Placement, Sharing, TableDefinition, TableKind, TableLayout};
use junctor_model::stored_lists::CheckpointLists;
use junctor_model::stored_mark::CounterMark;
use junctor_model::stored_schema::DictionaryChange;
use junctor_signals::change_schema::Catalog;

use super::block::MainBlock;
use super::definition;
use super::reserve_auto_increment::Counter;

/// The schema that the checkpoint and the log describe.
#[derive(Debug)]
pub struct RestoredSchema {
    /// The schema and the chains of its partitions.
    pub catalog: Arc<Catalog>,
    /// The partitions to create, in the order of their ids.
    pub partitions: Vec<RestoredPartition>,
    /// Tables whose unfinished alteration was undone.
    pub undone: Vec<TableId>,
    next_table: TableId,
    next_place: usize,
    /// Tables whose records lack their placement.
    unstored_placements: BTreeSet<TableId>,
    counters: BTreeMap<TableId, Counter>,
}

/// A partition to create.
#[derive(Clone, Debug)]
pub struct RestoredPartition {
    /// The partition.
    pub partition: PartitionId,
    /// The layout of its table.
    pub layout: Arc<TableLayout>,
    /// The ldm instances of its chain, the primary first.
    pub chain: Vec<Address>,
}

impl RestoredSchema {
    /// Every partition that this node stores, with its ldm.
    pub fn owners(&self, node: NodeId) -> Vec<(PartitionId, Address)> {
        let here = |it: &RestoredPartition| it.chain.iter().copied().find(|at| at.node == node);
        self.partitions.iter().filter_map(|it| Some((it.partition, here(it)?))).collect()
    }
}

impl MainBlock {
    /// Rebuilds the schema from the last checkpoint, the bodies of dictionary records in the order of their
    /// commits, and the bodies of mark records. Changes nothing here.
    ///
    /// # Errors
    /// A body has an unknown version or is damaged, or the bodies contradict each other.
    pub fn restore(
        &self,
        checkpoint: Option<&CheckpointLists>,
        dictionary: &[Vec<u8>],
        marks: &[Vec<u8>],
    ) -> Result<RestoredSchema, Box<str>> {
        let mut catalog = Catalog::with_access(Arc::clone(&self.configuration.access));
        let mut next_table = TableId(1);
        if let Some(CheckpointLists { schema, .. }) = checkpoint {
            next_table = schema.next_table.max(next_table);
            schema.clone().apply(&mut catalog.dictionary);
        }
        let checkpoint_version = catalog.dictionary.version;
        for (position, body) in dictionary.iter().enumerate() {
            let change = DictionaryChange::decode(body).map_err(|error| refused("schema change", position, error))?;
            // The schema of a checkpoint is newer than the number at which the checkpoint began.
            if change.version <= checkpoint_version {
                continue;
            }
            check_order(&catalog, next_table, &change).map_err(|error| refused("schema change", position, error))?;
            next_table = change.next_table;
            change.apply(&mut catalog.dictionary);
        }
        self.add_configured_accounts(&mut catalog);
        let undone = undo_unfinished(&mut catalog);
        check_complete(&catalog)?;
        let mut highest = checkpoint.map(|checkpoint| checkpoint.marks.clone()).unwrap_or_default();
        for (position, body) in marks.iter().enumerate() {
            let mark = CounterMark::decode(body).map_err(|error| refused("AUTO_INCREMENT mark", position, error))?;
            let known = highest.entry(mark.table).or_insert(1);
            *known = if mark.is_exact { mark.mark } else { mark.mark.max(*known) };
        }
        let base_tables = catalog.dictionary.tables().filter(|layout| layout.definition.kind == TableKind::Base);
        let counters = base_tables.map(|layout| {
            let table = layout.definition.id;
            let mark = highest.get(&table).copied().unwrap_or(1);
            (table, Counter::restored(&layout.definition, mark))
        });
        let counters = counters.collect();
        let lacks = |layout: &&Arc<TableLayout>| layout.definition.placement.is_none();
        let mut unstored_placements: BTreeSet<TableId> =
            catalog.dictionary.tables().filter(lacks).map(|layout| layout.definition.id).collect();
        let (partitions, next_place) = self.place_again(&mut catalog)?;
        let has_placement =
            |id: &TableId| catalog.dictionary.table(*id).is_some_and(|it| it.definition.placement.is_some());
        unstored_placements.retain(has_placement);
        let catalog = Arc::new(catalog);
        Ok(RestoredSchema { catalog, partitions, undone, next_table, next_place, unstored_placements, counters })
    }

    /// Gives each partition its chain in the node group that has its rows, and a chain and an ldm in turn.
    /// Returns the partitions, and the place of the next one.
    fn place_again(&self, catalog: &mut Catalog) -> Result<(Vec<RestoredPartition>, usize), Box<str>> {
        let mut partitions = Vec::new();
        let mut next_place = 0;
        let tables: Vec<Arc<TableLayout>> = catalog.dictionary.tables().cloned().collect();
        for mut layout in tables {
            let definition = &layout.definition;
            if definition.partition_count == 0 {
                continue;
            }
            let placement = match definition.placement {
                // A node alone may have the directory of a cluster with one group.
                Some(Placement { groups: 1, .. }) if self.groups.is_empty() => None,
                placement => placement.or_else(|| self.first_placement_at(next_place)),
            };
            if let Some(placement) = placement {
                let groups = usize::from(placement.groups);
                let has = self.groups.len();
                // A table with few partitions may have none in a group that was removed.
                let count = definition.partition_count;
                let is_missing = |group: usize| definition::has_partition_in(placement, group as u8, count);
                if (has..groups).any(is_missing) {
                    let text = format!("table {} is spread over {groups} node groups, of {has}", definition.id);
                    return Err(text.into());
                }
                next_place = placement.next_turn(next_place);
            }
            if definition.placement.is_none() && placement.is_some() {
                let id = definition.id;
                catalog.dictionary.put_table(TableDefinition { placement, ..definition.clone() });
                layout = catalog.dictionary.table(id).cloned().unwrap_or(layout);
            }
            for index in 0..layout.definition.partition_count {
                let partition = PartitionId { table: layout.definition.id, index };
                let chain = self.chain_at(placement, next_place);
                next_place += 1;
                let with_own = self.with_own(&chain);
                catalog.distribution.put(partition, chain);
                partitions.push(RestoredPartition { partition, layout: Arc::clone(&layout), chain: with_own });
            }
        }
        Ok((partitions, next_place % self.places()))
    }

    /// Adds the accounts of the configuration that are lacking. No change stores them.
    fn add_configured_accounts(&self, catalog: &mut Catalog) {
        if catalog.dictionary.access.version == 0 {
            return;
        }
        let of_new_server = AccessControl::default();
        let access = Arc::make_mut(&mut catalog.dictionary.access);
        for (name, account) in self.configuration.access.accounts() {
            if of_new_server.account(name).is_none() {
                access.add_configured(name.clone(), AccountDefinition::clone(account));
            }
        }
    }

    /// Installs a restored schema. The caller creates its partitions before, and publishes its catalog
    /// afterwards.
    pub fn install(&mut self, schema: RestoredSchema) {
        require!(
            self.catalog.dictionary.version == 0 && self.running.is_none() && self.next_table == TableId(1),
            "a schema is restored before the first schema change"
        );
        let RestoredSchema { catalog, next_table, next_place, unstored_placements, counters, .. } = schema;
        self.catalog = catalog;
        self.next_table = next_table;
        self.next_place = next_place;
        self.unstored_placements = unstored_placements;
        self.counters = counters;
    }

    /// Raises the AUTO_INCREMENT counter of a restored table above `greatest`, the greatest number that a row
    /// has. No mark covers the numbers that an UPDATE stores.
    pub fn raise_auto_increment(&mut self, table: TableId, greatest: u64) {
        if let Some(counter) = self.counters.get_mut(&table) {
            counter.next = counter.next.max(greatest.saturating_add(1));
        }
    }
}

/// Checks that a change follows the changes before it.
fn check_order(catalog: &Catalog, next_table: TableId, change: &DictionaryChange) -> Result<(), Box<str>> {
    let (before, after) = (catalog.dictionary.version, change.version);
    if after <= before {
        return Err(format!("its dictionary version {after} does not follow version {before}").into());
    }
    if change.next_table < next_table {
        return Err(format!("its next table id {} is below {}", change.next_table, next_table).into());
    }
    if let Some(table) = change.tables.iter().find(|table| table.id >= change.next_table) {
        return Err(format!("table id {} is not below the next table id {}", table.id, change.next_table).into());
    }
    Ok(())
}

/// Undoes unfinished alterations, and returns their tables.
fn undo_unfinished(catalog: &mut Catalog) -> Vec<TableId> {
    let dictionary = &mut catalog.dictionary;
    let replacements: Vec<(TableId, TableId)> = dictionary
        .tables()
        .filter_map(|layout| match layout.definition.kind {
            TableKind::Replacement { of } => Some((layout.definition.id, of)),
            _ => None,
        })
        .collect();
    for (replacement, _) in &replacements {
        dictionary.remove_table(*replacement);
    }
    let is_unfinished = |layout: &&Arc<TableLayout>| layout.definition.sharing != Sharing::Shared;
    let unfinished: Vec<TableId> =
        dictionary.tables().filter(is_unfinished).map(|layout| layout.definition.id).collect();
    unfinished.into_iter().for_each(|table| dictionary.remove_table(table));
    let undone: Vec<TableDefinition> = dictionary
        .tables()
        .map(|layout| without_building(&layout.definition))
        .filter(|(_, gone)| !gone.is_empty())
        .map(|(mut without, _)| {
            without.version.0 += 1;
            without
        })
        .collect();
    let tables = undone.iter().map(|table| table.id).chain(replacements.into_iter().map(|(_, of)| of)).collect();
    undone.into_iter().for_each(|table| dictionary.put_table(table));
    let named: BTreeSet<TableId> = dictionary
        .tables()
        .flat_map(|layout| layout.definition.indexes.iter().filter_map(definition::entries_of))
        .collect();
    let is_named = |kind| matches!(kind, TableKind::Base | TableKind::View);
    let hidden = dictionary.tables().filter(|layout| !is_named(layout.definition.kind));
    let orphans: Vec<TableId> =
        hidden.map(|layout| layout.definition.id).filter(|hidden| !named.contains(hidden)).collect();
    orphans.into_iter().for_each(|table| dictionary.remove_table(table));
    tables
}

/// Checks that every table has its database and its hidden tables.
fn check_complete(catalog: &Catalog) -> Result<(), Box<str>> {
    for layout in catalog.dictionary.tables() {
        let table = &layout.definition;
        if catalog.dictionary.database(&table.database).is_none() {
            return Err(format!("the stored schema has table {} without its database", table.id).into());
        }
        let mut entries = table.indexes.iter().filter_map(definition::entries_of);
        if let Some(missing) = entries.find(|entries| catalog.dictionary.table(*entries).is_none()) {
            return Err(format!("the stored schema has table {} without its unique entries {missing}", table.id).into());
        }
    }
    Ok(())
}

fn refused(what: &str, position: usize, error: impl fmt::Display) -> Box<str> {
    format!("{what} {} of the log cannot be read: {error}", position + 1).into()
}
