//! Restarts from the records of the log.

use std::collections::{BTreeMap, BTreeSet};

use junctor_kernel::NodeId;
use junctor_model::id::CommitNumber;
use junctor_model::schema::{Dictionary, Placement, TableKind};
use junctor_model::stored_lists::CheckpointLists;
use junctor_model::stored_mark::CounterMark;
use junctor_model::stored_schema::DictionaryChange;
use junctor_signals::change_schema::Catalog;
use junctor_storage::log::RecordKind;
use proptest::prelude::*;

use super::super::restore::RestoredSchema;
use super::*;
use crate::membership::rotations;

/// The durable records of all runs of the node.
#[derive(Clone, Default)]
pub(super) struct Records {
    pub(super) dictionary: Vec<Vec<u8>>,
    marks: Vec<Vec<u8>>,
    last: CommitNumber,
}

impl Stage {
    /// The records that a crash leaves of this run and of the runs before it.
    pub(super) fn crash(mut self, mut records: Records) -> Records {
        let disk = self.disk.take().expect("the node has a log");
        records.dictionary.extend(disk.bodies(RecordKind::Dictionary));
        records.marks.extend(disk.bodies(RecordKind::Mark));
        records.last = disk.target.sequence.taken();
        records
    }

    /// A node that starts from the records.
    pub(super) fn restarted(records: &Records) -> (Stage, RestoredSchema) {
        let mut stage = Stage::with_log(&[], Some(FakeLog::after(records.last)));
        let restore =
            |stage: &Stage| stage.main.restore(None, &records.dictionary, &records.marks).expect("it is whole");
        let (restored, shown) = (restore(&stage), restore(&stage));
        for it in &restored.partitions {
            for member in &it.chain {
                stage.partitions.insert((*member, it.partition), it.layout.definition.version);
            }
        }
        stage.main.install(restored);
        stage.check();
        (stage, shown)
    }

    pub(super) fn definitions(&self) -> Vec<TableDefinition> {
        self.main.catalog().dictionary.tables().map(|layout| layout.definition.clone()).collect()
    }

    pub(super) fn records(self) -> Records {
        self.crash(Records::default())
    }
}

#[test]
fn an_exact_mark_replaces_those_before_it() {
    let mut stage = Stage::durable();
    stage.create_database();
    stage.create("a", vec![primary()]);
    let table = stage.table("a").id;
    let mut records = stage.records();
    let mark = |mark, is_exact| CounterMark { table, mark, is_exact }.encode().to_vec();
    for (next, is_exact, first) in [(16_389, false, 16_389), (11, true, 11), (13, false, 13), (12, false, 13)] {
        records.marks.push(mark(next, is_exact));
        let (mut stage, _) = Stage::restarted(&records);
        assert_eq!(stage.reserve(table, 1, 0).0, first, "after {next}");
    }
}

#[test]
fn a_restart_restores_the_schema_and_continues_at_the_marks() {
    let mut stage = Stage::durable();
    stage.create_database();
    stage.create("a", vec![primary(), unique("u")]);
    stage.create("b", vec![primary()]);
    let (a, b) = (stage.table("a").id, stage.table("b").id);
    assert_eq!(stage.reserve(a, 7, 0), (5, 7, false));
    let definitions = stage.definitions();
    let records = stage.records();
    let (mut stage, shown) = Stage::restarted(&records);
    assert_eq!(stage.definitions(), definitions);
    assert_eq!((shown.partitions.len(), shown.undone.len()), (6, 0));
    let owners: Vec<u16> = shown.owners(NodeId(1)).iter().map(|(_, owner)| owner.instance).collect();
    assert_eq!(owners, [0, 1, 0, 1, 0, 1]);
    assert!(stage.reserve(a, 1, 0).0 >= 12);
    assert_eq!(stage.reserve(b, 1, 0).0, 5);
    stage.main.raise_auto_increment(b, 100_000);
    stage.main.raise_auto_increment(b, 3);
    assert_eq!(stage.reserve(b, 1, 0), (100_001, 1, false));
    // Table ids do not return.
    stage.create("c", vec![primary()]);
    assert_eq!(stage.table("c").id, TableId(4));
    stage.check();
}

/// The chains of groups of two nodes.
fn groups(count: u8) -> Vec<Vec<Vec<NodeId>>> {
    let chains = |group: u8| rotations(&[NodeId(2 * group + 1), NodeId(2 * group + 2)]);
    (0..count).map(chains).collect()
}

/// The nodes that have each partition.
fn places(catalog: &Catalog) -> BTreeMap<PartitionId, BTreeSet<NodeId>> {
    let nodes = |chain: &Vec<Address>| chain.iter().map(|at| at.node).collect();
    catalog.distribution.chains().map(|(partition, chain)| (*partition, nodes(chain))).collect()
}

fn create_odd(name: &str) -> SchemaChange {
    create_few(name, 3, vec![primary(), unique("u")])
}

fn create_few(name: &str, partition_count: u16, indexes: Vec<IndexDefinition>) -> SchemaChange {
    let SchemaChange::CreateTable { mut definition, if_not_exists, auto_increment } =
        create_table(name, indexes, false)
    else {
        unreachable!("it is a table")
    };
    definition.partition_count = partition_count;
    SchemaChange::CreateTable { definition, if_not_exists, auto_increment }
}

#[test]
fn the_entries_of_a_unique_index_are_in_the_node_groups_of_their_table() {
    let mut stage = Stage::durable();
    stage.main.groups = groups(2);
    stage.create_database();
    let few = |name| create_few(name, 1, vec![primary(), unique("u")]);
    assert_eq!(stage.change(few("a")).error, None);
    assert_eq!(stage.change(create_few("b", 1, vec![primary()])).error, None);
    // A group is added, and no table is spread over it yet.
    stage.main.groups = groups(3);
    for name in ["a", "b"] {
        let table = stage.table(name).id;
        assert_eq!(stage.change(add_index(table, unique("v"))).error, None);
    }
    assert_eq!(stage.change(few("c")).error, None);
    stage.check();
    let dictionary = &stage.main.catalog().dictionary;
    let mut entries = 0;
    for layout in dictionary.tables() {
        let definition = &layout.definition;
        if let TableKind::UniqueEntries { base, .. } = definition.kind {
            let of_base = dictionary.table(base).expect("it has a table").definition.placement;
            assert_eq!(definition.placement, of_base, "{}", definition.name);
            entries += 1;
        }
        let placement = definition.placement.expect("it is in groups");
        for index in 0..definition.partition_count {
            let partition = PartitionId { table: definition.id, index };
            let node = stage.main.catalog().distribution.chain(partition).expect("it has a chain")[0].node;
            assert_eq!((node.0 - 1) / 2, placement.group_of(index), "{}", definition.name);
        }
    }
    assert_eq!(entries, 4);
    // A restart finds them there.
    let before = places(stage.main.catalog());
    let records = stage.records();
    let mut stage = Stage::with_log(&[], Some(FakeLog::after(records.last)));
    stage.main.groups = groups(3);
    let restored = stage.main.restore(None, &records.dictionary, &records.marks).expect("it is whole");
    assert_eq!(places(&restored.catalog), before);
}

#[test]
fn partitions_stay_in_their_groups_although_tables_were_dropped_and_a_group_was_added() {
    let mut stage = Stage::durable();
    stage.main.groups = groups(2);
    stage.create_database();
    for name in ["a", "b", "c"] {
        assert_eq!(stage.change(create_odd(name)).error, None);
    }
    // An odd number of partitions goes, so that those behind begin in another place.
    let SchemaChange::CreateTable { mut definition, if_not_exists, auto_increment } = create_odd("d") else {
        unreachable!("it is a table")
    };
    definition.indexes.truncate(1);
    let change = SchemaChange::CreateTable { definition, if_not_exists, auto_increment };
    assert_eq!(stage.change(change).error, None);
    assert_eq!(stage.change(create_odd("e")).error, None);
    assert_eq!(stage.change(drop_table("d")).error, None);
    let before = places(stage.main.catalog());
    let records = stage.records();
    let restore = |groups| {
        let mut stage = Stage::with_log(&[], Some(FakeLog::after(records.last)));
        stage.main.groups = groups;
        stage.main.restore(None, &records.dictionary, &records.marks)
    };
    assert_eq!(places(&restore(groups(2)).expect("it is whole").catalog), before);
    assert_eq!(places(&restore(groups(3)).expect("it is whole").catalog), before);
    let refused = restore(groups(1)).expect_err("half of the rows are elsewhere");
    assert!(refused.contains("is spread over 2 node groups, of 1"), "{refused}");
    assert!(restore(Vec::new()).is_err());
}

#[test]
fn a_table_without_partitions_in_a_removed_group_is_restored_without_it() {
    let mut stage = Stage::durable();
    stage.main.groups = groups(2);
    stage.create_database();
    let SchemaChange::CreateTable { mut definition, if_not_exists, auto_increment } = create_odd("a") else {
        unreachable!("it is a table")
    };
    definition.indexes.truncate(1);
    definition.partition_count = 1;
    let change = SchemaChange::CreateTable { definition, if_not_exists, auto_increment };
    assert_eq!(stage.change(change).error, None);
    let before = places(stage.main.catalog());
    assert!(before.values().all(|nodes| *nodes == BTreeSet::from([NodeId(1), NodeId(2)])));
    let records = stage.records();
    let mut stage = Stage::with_log(&[], Some(FakeLog::after(records.last)));
    stage.main.groups = groups(1);
    let restored = stage.main.restore(None, &records.dictionary, &records.marks).expect("its partition is there");
    assert_eq!(places(&restored.catalog), before);
}

/// The records of a program that stores no placement.
fn without_placements(records: &Records) -> Records {
    let of_record = |body: &Vec<u8>| {
        let mut change = DictionaryChange::decode(body).expect("it is whole");
        change.tables.iter_mut().for_each(|table| table.placement = None);
        change.encode()
    };
    Records { dictionary: records.dictionary.iter().map(of_record).collect(), ..records.clone() }
}

#[test]
fn tables_without_a_stored_placement_stay_in_the_groups_of_the_first_start() {
    for first_groups in [1, 2] {
        let mut stage = Stage::durable();
        (stage.main.groups, stage.main.first_groups) = (groups(first_groups), first_groups.into());
        stage.create_database();
        for name in ["a", "b"] {
            // Such a program places the entries of unique indexes where it is their turn.
            assert_eq!(stage.change(create_few(name, 3, vec![primary()])).error, None);
        }
        let before = places(stage.main.catalog());
        let mut records = without_placements(&stage.records());
        // A group was added, and is open.
        let restart = |records: &Records| {
            let mut stage = Stage::with_log(&[], Some(FakeLog::after(records.last)));
            (stage.main.groups, stage.main.first_groups) = (groups(first_groups + 1), first_groups.into());
            let restored = stage.main.restore(None, &records.dictionary, &records.marks).expect("it is whole");
            for it in &restored.partitions {
                for member in &it.chain {
                    stage.partitions.insert((*member, it.partition), it.layout.definition.version);
                }
            }
            stage.main.install(restored);
            stage
        };
        let mut stage = restart(&records);
        assert_eq!(places(stage.main.catalog()), before);
        // The next change stores where the tables are. Otherwise those behind a dropped one would move.
        assert_eq!(stage.change(drop_table("a")).error, None);
        let before = places(stage.main.catalog());
        records = stage.crash(records);
        let stage = restart(&records);
        assert_eq!(places(stage.main.catalog()), before);
        let is_stored = |placement: Option<Placement>| placement.is_some_and(|it| it.groups == first_groups);
        assert!(stage.definitions().iter().all(|table| is_stored(table.placement)));
    }
}

#[test]
fn tables_of_another_node_without_a_placement_get_it_from_their_chains() {
    let mut stage = Stage::durable();
    (stage.main.groups, stage.main.first_groups) = (groups(2), 2);
    stage.create_database();
    for name in ["a", "b"] {
        assert_eq!(stage.change(create_odd(name)).error, None);
    }
    let whole = stage.definitions();
    let mut handed = Arc::clone(stage.main.catalog());
    for table in &whole {
        Arc::make_mut(&mut handed).dictionary.put_table(TableDefinition { placement: None, ..table.clone() });
    }
    let mut joining = Stage::durable();
    (joining.main.groups, joining.main.first_groups) = (groups(3), 2);
    joining.main.add_placements(&mut handed);
    let filled: Vec<TableDefinition> = handed.dictionary.tables().map(|layout| layout.definition.clone()).collect();
    assert_eq!(filled, whole);
    assert!(whole.iter().any(|table| table.placement == Some(Placement { first: 1, groups: 2 })));
    let mut change = DictionaryChange::between(&handed.dictionary, &handed.dictionary, TableId(9));
    joining.main.store_placements(&handed, &mut change);
    assert_eq!(change.tables, whole);
}

#[test]
fn a_replica_that_was_added_restores_the_partitions_of_its_group_and_the_chains_of_the_others() {
    let mut stage = Stage::durable();
    (stage.main.groups, stage.main.first_groups) = (groups(2), 2);
    stage.create_database();
    for name in ["a", "b"] {
        assert_eq!(stage.change(create_odd(name)).error, None);
    }
    let records = stage.records();
    let restored = |beside: Option<u8>| {
        let mut stage = Stage::with_log(&[], Some(FakeLog::after(records.last)));
        (stage.main.groups, stage.main.first_groups) = (groups(2), 2);
        (stage.main.own.node, stage.main.beside) = (NodeId(9), beside.map(NodeId));
        stage.main.restore(None, &records.dictionary, &records.marks).expect("it is whole")
    };
    let (other, of_first, of_second) = (restored(None), restored(Some(1)), restored(Some(3)));
    assert!(other.owners(NodeId(9)).is_empty());
    for (added, beside) in [(&of_first, NodeId(1)), (&of_second, NodeId(3))] {
        assert_eq!(places(&added.catalog), places(&other.catalog), "catalogs do not name it");
        let owners = added.owners(NodeId(9));
        let expected: Vec<(PartitionId, Address)> = other.owners(beside);
        assert!(!owners.is_empty() && owners.len() == expected.len());
        for ((partition, at), (expected, its)) in owners.into_iter().zip(expected) {
            assert_eq!((partition, at), (expected, Address { node: NodeId(9), ..its }));
        }
    }
}

#[test]
fn an_unfinished_alteration_is_undone_in_the_same_way_every_time() {
    let mut stage = Stage::durable();
    stage.create_database();
    stage.create("t", vec![primary()]);
    let table = stage.table("t");
    stage.rows.hold();
    stage.ask(OperationId(100), add_index(table.id, unique("u")));
    let building = stage.table("t");
    assert_eq!(building.indexes[1].state, IndexState::Building);
    let records = stage.records();
    let (stage, shown) = Stage::restarted(&records);
    assert_eq!(shown.undone, [table.id]);
    let undone = stage.table("t");
    assert_eq!((undone.indexes.len(), stage.definitions().len()), (1, 1), "the hidden table is gone too");
    assert!(undone.version > building.version && undone.next_index > table.next_index);
    // After a second crash without new records, the same is undone.
    let (mut stage, _) = Stage::restarted(&stage.crash(records.clone()));
    assert_eq!(stage.table("t"), undone);
    // A later record replaces the definition. The hidden table is in no later record.
    assert_eq!(stage.change(add_index(table.id, index("k", IndexKind::Ordered, 1))).error, None);
    let altered = stage.table("t");
    let (stage, shown) = Stage::restarted(&stage.crash(records.clone()));
    assert_eq!((stage.definitions(), shown.undone), (vec![altered], vec![]));
    // The table is dropped.
    let (mut stage, _) = Stage::restarted(&records);
    assert_eq!(stage.change(drop_table("t")).error, None);
    let (stage, _) = Stage::restarted(&stage.crash(records));
    assert_eq!(stage.definitions(), []);
}

#[test]
fn a_checkpoint_stands_in_for_the_records_up_to_its_schema() {
    let mut stage = Stage::durable();
    stage.create_database();
    stage.create("a", vec![primary()]);
    stage.create("b", vec![primary(), unique("u")]);
    let a = stage.table("a").id;
    assert_eq!(stage.reserve(a, 7, 0), (5, 7, false));
    let next_table = TableId(4);
    let schema = DictionaryChange::between(&Dictionary::default(), &stage.main.catalog().dictionary, next_table);
    let checkpoint = CheckpointLists { schema, marks: BTreeMap::from([(a, 500)]), ..CheckpointLists::default() };
    assert_eq!(stage.change(drop_table("b")).error, None);
    stage.create("c", vec![primary()]);
    let definitions = stage.definitions();
    let records = stage.records();
    // Records that the checkpoint covers may still be in the log.
    for first in 0..=3 {
        let mut stage = Stage::with_log(&[], Some(FakeLog::after(records.last)));
        let restored = stage.main.restore(Some(&checkpoint), &records.dictionary[first..], &[]).expect("it is whole");
        let tables: Vec<TableId> = restored.owners(NodeId(1)).iter().map(|(partition, _)| partition.table).collect();
        assert_eq!(tables, [a, a, TableId(4), TableId(4)]);
        stage.main.install(restored);
        assert_eq!(stage.definitions(), definitions);
        assert!(stage.reserve(a, 1, 0).0 >= 500, "the mark of the checkpoint counts");
    }
    let empty = Stage::durable().main.restore(Some(&CheckpointLists::default()), &[], &[]).expect("an empty schema");
    assert!(empty.partitions.is_empty());
}

#[test]
fn damaged_and_unknown_records_are_refused_with_their_position() {
    let mut stage = Stage::durable();
    stage.create_database();
    stage.create("t", vec![primary(), unique("u")]);
    stage.create("v", vec![primary()]);
    let records = stage.records();
    let empty = Stage::durable();
    let refused = |dictionary: &[Vec<u8>], marks: &[Vec<u8>]| {
        empty.main.restore(None, dictionary, marks).expect_err("it is refused").into_string()
    };
    let mut damaged = records.dictionary.clone();
    damaged[1].pop();
    assert!(refused(&damaged, &[]).starts_with("schema change 2 of the log cannot be read: the stored schema is inv"));
    let text = String::from_utf8(records.dictionary[0].clone()).expect("JSON");
    damaged[0] = text.replace("\"format\":1", "\"format\":7").into();
    assert_eq!(
        refused(&damaged, &[]),
        "schema change 1 of the log cannot be read: the stored schema has the unknown version 7"
    );
    let mut mark = CounterMark { table: TableId(1), mark: 9, is_exact: false }.encode().to_vec();
    mark[0] = 3;
    assert_eq!(
        refused(&records.dictionary, &[mark]),
        "AUTO_INCREMENT mark 1 of the log cannot be read: the stored AUTO_INCREMENT mark has the unknown version 3"
    );
    let twice = [records.dictionary[0].clone(), records.dictionary[0].clone()];
    assert!(refused(&twice, &[]).ends_with("dictionary version 1 does not follow version 1"));
    let missing = [records.dictionary[1].clone()];
    assert_eq!(refused(&missing, &[]), "the stored schema has table 1 without its database");
    assert!(empty.main.restore(None, &[], &[]).is_ok_and(|schema| schema.partitions.is_empty()));
}

/// One step of a history.
#[derive(Clone, Debug)]
enum Step {
    Create { name: u8, is_unique: bool },
    Drop { name: u8 },
    Truncate { name: u8 },
    Rename { from: u8, to: u8 },
    AddIndex { name: u8, is_unique: bool },
    DropIndex { name: u8 },
    Fail { name: u8 },
    Reserve { name: u8, count: u64, beyond: u64 },
    Crash,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let name = 0u8..4;
    let step = prop_oneof![
        3 => (name.clone(), any::<bool>()).prop_map(|(name, is_unique)| Step::Create { name, is_unique }),
        1 => name.clone().prop_map(|name| Step::Drop { name }),
        1 => name.clone().prop_map(|name| Step::Truncate { name }),
        1 => (name.clone(), name.clone()).prop_map(|(from, to)| Step::Rename { from, to }),
        2 => (name.clone(), any::<bool>()).prop_map(|(name, is_unique)| Step::AddIndex { name, is_unique }),
        1 => name.clone().prop_map(|name| Step::DropIndex { name }),
        1 => name.clone().prop_map(|name| Step::Fail { name }),
        4 => (name, 0u64..40_000, prop_oneof![Just(0), 0u64..200_000])
            .prop_map(|(name, count, beyond)| Step::Reserve { name, count, beyond }),
        2 => Just(Step::Crash),
    ];
    proptest::collection::vec(step, 1..40)
}

fn named(name: u8) -> String {
    format!("t{name}")
}

impl Stage {
    fn id(&self, name: u8) -> Option<TableId> {
        let layout = self.main.catalog().dictionary.table_named("d", &named(name))?;
        Some(layout.definition.id)
    }
}

/// The base tables, without indexes in state Building and without versions. A restart must not change them.
fn expected(definitions: Vec<TableDefinition>) -> Vec<TableDefinition> {
    let base = definitions.into_iter().filter(|table| table.kind == TableKind::Base);
    base.map(|table| TableDefinition {
        version: SchemaVersion(0),
        ..junctor_model::alteration::without_building(&table).0
    })
    .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn every_schema_history_is_restored_and_no_number_or_table_id_is_reused(steps in steps()) {
        let mut records = Records::default();
        let mut stage = Stage::durable();
        stage.create_database();
        let (mut next_numbers, mut tables_seen) = (BTreeMap::<TableId, u64>::new(), BTreeSet::<TableId>::new());
        for step in steps.into_iter().chain([Step::Crash]) {
            // An alteration goes on, unless the node crashes.
            if !matches!(step, Step::Crash) {
                stage.release_rows();
                stage.replies.clear();
            }
            let before: Vec<TableId> = stage.definitions().iter().map(|table| table.id).collect();
            match step {
                Step::Create { name, is_unique } => {
                    let indexes = if is_unique { vec![primary(), unique("u")] } else { vec![primary()] };
                    stage.create(&named(name), indexes);
                }
                Step::Drop { name } => _ = stage.change(drop_table(&named(name))),
                Step::Truncate { name } => {
                    let Some(table) = stage.id(name) else { continue };
                    stage.change(SchemaChange::TruncateTable { table });
                }
                Step::Rename { from, to } => {
                    let name = |name| ("d".into(), named(name).into());
                    let renames = vec![TableRename { from: name(from), to: name(to) }];
                    stage.change(SchemaChange::RenameTables { renames });
                }
                Step::AddIndex { name, is_unique } => {
                    let Some(table) = stage.id(name) else { continue };
                    let new = if is_unique { unique("v") } else { index("k", IndexKind::Ordered, 1) };
                    stage.rows.hold();
                    stage.ask(OperationId(100), add_index(table, new));
                }
                Step::DropIndex { name } => {
                    let Some(table) = stage.id(name) else { continue };
                    stage.change(drop_index(table, "u"));
                }
                Step::Fail { name } => {
                    let next = TableId(tables_seen.last().map_or(1, |table| table.0 + 1));
                    stage.failing = Some(("create", PartitionId { table: next, index: 1 }));
                    stage.create(&named(name), vec![primary()]);
                    stage.failing = None;
                }
                Step::Reserve { name, count, beyond } => {
                    let Some(table) = stage.id(name) else { continue };
                    let (first, count, _) = stage.reserve(table, count, beyond);
                    let next = next_numbers.entry(table).or_insert(1);
                    prop_assert!(first >= *next, "{first} is not below {next}");
                    *next = first + count;
                }
                Step::Crash => {
                    let definitions = stage.definitions();
                    records = stage.crash(records);
                    (stage, _) = Stage::restarted(&records);
                    prop_assert_eq!(expected(stage.definitions()), expected(definitions));
                }
            }
            for table in stage.definitions().iter().map(|table| table.id) {
                let is_unseen = tables_seen.insert(table);
                prop_assert!(is_unseen || before.contains(&table), "table id {table} returns");
            }
        }
    }
}
