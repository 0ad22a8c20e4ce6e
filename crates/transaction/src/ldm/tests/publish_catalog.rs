//! The first catalog of another main.

use junctor_model::id::TableId;
use junctor_model::schema::{IndexDefinition, IndexKind, IndexState, TableLayout};
use junctor_signals::MainSignal;
use junctor_signals::change_schema::{PartitionChange, PublishCatalog};

use super::*;

/// More partitions than one step compares.
const MANY: u16 = 300;

/// The number of partitions of this node.
fn partitions(harness: &mut Harness) -> usize {
    harness.status(StatusTable::MemoryUsage).len()
}

fn changed(table: &SampleTable) -> Arc<TableLayout> {
    let mut definition = table.layout.definition.clone();
    definition.version.0 += 1;
    let index = IndexDefinition {
        id: definition.next_index,
        name: "new".into(),
        kind: IndexKind::Unique { ordered: true, entries: TableId(9) },
        columns: vec![K],
        state: IndexState::Building,
        ..definition.indexes[2].clone()
    };
    definition.indexes.push(index);
    Arc::new(TableLayout::new(definition))
}

#[test]
fn the_catalog_of_another_main_ends_what_the_one_before_has_begun() {
    let (mut harness, table) = filled(1, 1, 5);
    let before = partitions(&mut harness);
    let partition = PartitionId { table: table.layout.definition.id, index: 0 };
    let owner = harness.owner(partition);
    // The main before has created the hidden table of a unique index, and given the layout with it to the
    // partition. It dies before the record of this change has a number.
    let mut hidden = table.entries.definition.clone();
    hidden.id = TableId(9);
    let hidden = Arc::new(TableLayout::new(hidden));
    for index in 0..MANY {
        let create = PartitionChange::Create { chain: vec![owner] };
        harness.change_partition(owner, PartitionId { table: TableId(9), index }, &hidden, create);
    }
    harness.change_partition(owner, partition, &changed(&table), PartitionChange::ReplaceLayout);
    harness.run();
    let delete = table.delete(Access::PrimaryKeys);
    let refused = harness.execute(NONE, true, &delete, table.keys(&[1]));
    assert_eq!(refused.error.map(|error| error.code), Some(ErrorCode::TableDefinitionChanged));
    assert_eq!(partitions(&mut harness), before + usize::from(MANY));

    let next = Address::new(NodeId(2), Module::Main, 0);
    harness.main_replies.clear();
    harness.publish_from(next);
    let replies = harness.main_replies.iter().filter(|reply| matches!(reply, MainSignal::PublishCatalogReply(_)));
    assert!(replies.count() >= 3, "tc, ldm and query have the catalog");
    assert_eq!(partitions(&mut harness), before);
    let reply = harness.execute(NONE, true, &delete, table.keys(&[1]));
    assert_eq!((reply.error, reply.changed), (None, 1));
    // The next main may give the same ids to other objects.
    let create = PartitionChange::Create { chain: vec![owner] };
    harness.change_partition(owner, PartitionId { table: TableId(9), index: 0 }, &table.entries, create);
    harness.change_partition(owner, partition, &changed(&table), PartitionChange::ReplaceLayout);
    harness.run();
    assert_eq!(partitions(&mut harness), before + 1);
    harness.check_idle();
}

#[test]
fn a_main_that_is_lost_before_its_catalog_is_taken_over_gets_no_answer() {
    let (mut harness, table) = filled(1, 1, 5);
    let owner = harness.owner(PartitionId { table: table.layout.definition.id, index: 0 });
    harness.main_replies.clear();
    let catalog = Arc::new(harness.catalog.clone());
    for node in [2, 3] {
        let main = Address::new(NodeId(node), Module::Main, 0);
        let operation = OperationId(u64::from(node));
        let signal = PublishCatalog { operation, reply_to: main, epoch: Epoch(0), catalog: Arc::clone(&catalog) };
        harness.send(owner, main, Signal::Ldm(LdmSignal::PublishCatalog(signal)));
    }
    harness.run();
    let replies = harness.main_replies.iter().filter_map(|reply| match reply {
        MainSignal::PublishCatalogReply(reply) => Some(reply.operation.0),
        _ => None,
    });
    assert_eq!(replies.collect::<Vec<_>>(), [3]);
}
