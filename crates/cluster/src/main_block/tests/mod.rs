//! Tests of the main block by itself: the test plays every other block.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use junctor_kernel::context::TestContext;
use junctor_kernel::{Address, Directory, Duration, NodeId, NodeLayout, Outbox, Time, WorldEvent, WorldRequest};
use junctor_model::alteration::Alteration;
use junctor_model::collation::CollationId;
use junctor_model::error::{Error, ErrorCode};
use junctor_model::id::{ColumnNumber, ConnectionId, IndexId, PartitionId, SchemaVersion, TableId};
use junctor_model::schema::{ColumnDefinition, IndexDefinition, IndexKind, IndexState, TableDefinition, TableKind};
use junctor_model::types::DataType;
use junctor_signals::Module;
use junctor_signals::block_tables::{BlockTablesReply, CancelSchemaChange, RecallTables};
use junctor_signals::change_schema::{
    ChangePartition, ChangePartitionReply, ChangeSchema, ChangeSchemaReply, PartitionChange, PublishCatalogReply,
    SchemaChange, TableRename,
};
use junctor_signals::read_rows::OperationId;
use junctor_signals::reserve_auto_increment::{ReserveAutoIncrement, ReturnAutoIncrement, ReturnedNumbers};
use junctor_signals::{LdmSignal, MainSignal, QuerySignal, Signal, SqlSignal, TcSignal};

use super::block::{MainBlock, MainConfiguration};
use alteration::DataPlane;
use fake_log::FakeLog;

mod alter_table;
mod alteration;
mod ask_node;
mod checkpoint;
mod durable;
mod earlier_life;
mod fake_log;
mod own_table;
mod persisted_settings;
mod replace_table;
mod restore;
mod share_schema;

/// The main block with simulated neighbours. A map holds the partitions, and catalogs are acknowledged.
pub(super) struct Stage {
    pub(super) main: MainBlock,
    context: TestContext,
    own: Address,
    pub(super) sql: Address,
    next_operation: u64,
    /// The partitions of each ldm instance.
    partitions: BTreeMap<(Address, PartitionId), SchemaVersion>,
    /// Events in order.
    log: Vec<String>,
    /// A kind of change and the partition at which it fails.
    pub(super) failing: Option<(&'static str, PartitionId)>,
    pub(super) replies: Vec<SqlSignal>,
    /// Whether sessions use tables. The simulated sql block then does not answer.
    pub(super) in_use: bool,
    /// The blocked tables, by the main block's number of the change.
    pub(super) blocked: BTreeMap<u64, Vec<TableId>>,
    now: Time,
    /// The log of a durable node.
    disk: Option<FakeLog>,
    /// Requests to the world, in order.
    requests: Vec<WorldRequest>,
    /// Signals of checkpoints to ldm blocks, in order.
    ldm_signals: Vec<(Address, LdmSignal)>,
    /// The blocks that hold rows, for alterations.
    pub(super) rows: DataPlane,
    /// The changes whose tables no session uses any more.
    left: BTreeSet<u64>,
    /// AUTO_INCREMENT numbers that the sql block holds for a table.
    pub(super) held_numbers: Option<(TableId, std::ops::Range<u64>)>,
}

fn layout() -> NodeLayout {
    NodeLayout::new(&[
        &[(Module::Main, 0), (Module::Sql, 0), (Module::Tc, 0), (Module::Query, 0)],
        &[(Module::Ldm, 0)],
        &[(Module::Ldm, 1)],
    ])
}

impl Stage {
    pub(super) fn new(backup_nodes: &[u8]) -> Stage {
        Stage::with_log(backup_nodes, None)
    }

    /// A node with a log.
    pub(super) fn durable() -> Stage {
        Stage::with_log(&[], Some(FakeLog::new()))
    }

    fn with_log(backup_nodes: &[u8], disk: Option<FakeLog>) -> Stage {
        let own = Address::new(NodeId(1), Module::Main, 0);
        let log = disk.as_ref().map(|disk| disk.target.clone());
        let directory = Directory::new(NodeId(1), &layout()).expect("a layout without gaps");
        let backup_nodes = backup_nodes.iter().copied().map(NodeId).collect();
        let configuration = MainConfiguration { backup_nodes, log, segment_bytes: 64 << 20, ..Default::default() };
        Stage {
            main: MainBlock::new(own, &directory, configuration, alteration::gateway(own, &directory)),
            context: TestContext::new(own, &layout(), 1).expect("a layout without gaps"),
            own,
            sql: directory.address(Module::Sql, 0),
            next_operation: 0,
            partitions: BTreeMap::new(),
            log: Vec::new(),
            failing: None,
            replies: Vec::new(),
            in_use: false,
            blocked: BTreeMap::new(),
            now: Time(0),
            disk,
            requests: Vec::new(),
            ldm_signals: Vec::new(),
            rows: DataPlane::default(),
            left: BTreeSet::new(),
            held_numbers: None,
        }
    }

    /// A signal of another node.
    fn send_from(&mut self, from: Address, signal: MainSignal) -> Vec<(Address, Signal)> {
        let mut outbox = Outbox::for_test(self.own);
        self.main.handle(signal, from, &mut self.context.at(self.now), &mut outbox);
        outbox.take_sent()
    }

    fn send(&mut self, signal: MainSignal) -> Vec<(Address, Signal)> {
        let mut outbox = Outbox::for_test(self.own);
        self.main.handle(signal, self.sql, &mut self.context.at(self.now), &mut outbox);
        self.requests.extend(outbox.take_requests());
        outbox.take_sent()
    }

    pub(super) fn run(&mut self, signal: MainSignal) {
        self.run_all(vec![signal]);
    }

    /// Advances time by this many milliseconds and fires the timer.
    pub(super) fn pass_time(&mut self, after_ms: u64) {
        self.now = self.now.plus(Duration::from_millis(after_ms));
        self.happen(WorldEvent::Timer { token: 0 });
    }

    fn happen(&mut self, event: WorldEvent) {
        let mut outbox = Outbox::for_test(self.own);
        self.main.on_world(event, &mut self.context.at(self.now), &mut outbox);
        self.requests.extend(outbox.take_requests());
        let answers = outbox.take_sent().into_iter().filter_map(|(to, signal)| self.answer(to, signal)).collect();
        self.run_all(answers);
    }

    /// Answers for sql that no session uses the tables of a change any more.
    pub(super) fn leave(&mut self, change: u64) {
        self.left.insert(change);
        self.run(MainSignal::BlockTablesReply(BlockTablesReply { operation: OperationId(change) }));
    }

    fn run_all(&mut self, mut queue: Vec<MainSignal>) {
        loop {
            let sent = match queue.is_empty() {
                false => self.send(queue.remove(0)),
                true => match self.rows.next_reply() {
                    Some(reply) => self.send_reply(reply),
                    None => return,
                },
            };
            for (to, signal) in sent {
                queue.extend(self.answer(to, signal));
            }
        }
    }

    fn answer(&mut self, to: Address, signal: Signal) -> Option<MainSignal> {
        let publish = match signal {
            Signal::Main(signal) => return Some(signal),
            Signal::Tc(
                signal
                @ (TcSignal::ExecuteStatement(_) | TcSignal::InterruptStatement(_) | TcSignal::EndTransaction(_)),
            ) => {
                self.rows.take(Signal::Tc(signal));
                return None;
            }
            Signal::Ldm(LdmSignal::ReadRows(_)) => {
                self.rows.take(signal);
                return None;
            }
            Signal::Log(signal) => return self.disk.as_mut().expect("the node has a log").take(signal, &mut self.log),
            Signal::Tc(TcSignal::CommitStable(signal)) => {
                self.log.push(format!("{} is stable", signal.number));
                return None;
            }
            Signal::Sql(SqlSignal::PublishCatalog(signal)) => {
                let is_gone = |held: &mut (TableId, _)| signal.catalog.dictionary.table(held.0).is_none();
                if let Some(held) = self.held_numbers.take_if(is_gone) {
                    let numbers = Box::new([ReturnedNumbers { table: held.0, range: held.1, explicit: 0 }]);
                    let returned = ReturnAutoIncrement { numbers, is_stop: false };
                    assert!(self.send(MainSignal::ReturnAutoIncrement(returned)).is_empty());
                }
                signal
            }
            Signal::Tc(TcSignal::PublishCatalog(signal)) => signal,
            Signal::Query(QuerySignal::PublishCatalog(signal)) => signal,
            Signal::Ldm(LdmSignal::PublishCatalog(signal)) => signal,
            Signal::Ldm(LdmSignal::ChangePartition(signal)) => {
                let error = self.change_partition(to, &signal);
                let ChangePartition { operation, partition, .. } = signal;
                let reply = ChangePartitionReply { operation, partition, error };
                return Some(MainSignal::ChangePartitionReply(reply));
            }
            Signal::Ldm(
                signal @ (LdmSignal::WriteCheckpoint(_)
                | LdmSignal::SetCheckpointSpeed(_)
                | LdmSignal::EndCheckpoint(_)),
            ) => {
                self.ldm_signals.push((to, signal));
                return None;
            }
            Signal::Sql(SqlSignal::BlockTables(signal)) => {
                let tables = signal.tables.iter().map(|blocked| blocked.table).collect();
                self.blocked.insert(signal.operation.0, tables);
                let reply = BlockTablesReply { operation: signal.operation };
                return (!self.in_use).then_some(MainSignal::BlockTablesReply(reply));
            }
            Signal::Sql(SqlSignal::UnblockTables(signal)) => {
                self.blocked.remove(&signal.operation.expect("a change").0).expect("only what is blocked is let go");
                return None;
            }
            Signal::Sql(SqlSignal::NoteChangeWait(_)) => return None,
            Signal::Sql(reply) => {
                self.replies.push(reply);
                return None;
            }
            other => panic!("main sends {other:?} to {to}"),
        };
        self.log.push(format!("publish at {to}"));
        Some(MainSignal::PublishCatalogReply(PublishCatalogReply { operation: publish.operation }))
    }

    fn change_partition(&mut self, to: Address, signal: &ChangePartition) -> Option<Box<Error>> {
        let name = match &signal.change {
            PartitionChange::Create { chain } => {
                assert!(chain.contains(&to));
                "create"
            }
            PartitionChange::Drop => "drop",
            PartitionChange::ReplaceLayout => "replace",
            PartitionChange::BuildIndex(_) => "build",
        };
        self.log.push(format!("{name} {}.{} at {to}", signal.partition.table, signal.partition.index));
        if self.failing == Some((name, signal.partition)) {
            return Some(Error::new(ErrorCode::TableFull, "The table 't' is full"));
        }
        let key = (to, signal.partition);
        let version = signal.layout.definition.version;
        match &signal.change {
            PartitionChange::Create { .. } => assert_eq!(self.partitions.insert(key, version), None),
            PartitionChange::Drop => drop(self.partitions.remove(&key)),
            PartitionChange::ReplaceLayout => assert!(self.partitions.insert(key, version).is_some()),
            PartitionChange::BuildIndex(_) => assert!(self.partitions.contains_key(&key)),
        }
        None
    }

    pub(super) fn change(&mut self, change: SchemaChange) -> ChangeSchemaReply {
        self.next_operation += 1;
        let operation = OperationId(self.next_operation);
        self.log.clear();
        self.ask(operation, change);
        match self.replies.pop() {
            Some(SqlSignal::ChangeSchemaReply(reply)) => {
                assert_eq!(reply.operation, operation);
                reply
            }
            other => panic!("{other:?}"),
        }
    }

    /// Requests a change that may wait at most one second for others.
    pub(super) fn ask(&mut self, operation: OperationId, change: SchemaChange) {
        self.ask_as(ConnectionId(1), operation, change);
    }

    /// As `ask`, on behalf of this session.
    pub(super) fn ask_as(&mut self, connection: ConnectionId, operation: OperationId, change: SchemaChange) {
        let reply_to = self.sql;
        let (change, foreign_key_checks) = (Box::new(change), true);
        let (wait_ms, lock_wait_ms) = (1000, 500);
        let request =
            ChangeSchema { operation, reply_to, connection, wait_ms, lock_wait_ms, foreign_key_checks, change };
        self.run(MainSignal::ChangeSchema(request));
    }

    pub(super) fn create_database(&mut self) {
        assert_eq!(self.change(create_database(false)).error, None);
    }

    pub(super) fn create(&mut self, name: &str, indexes: Vec<IndexDefinition>) -> Option<Box<Error>> {
        self.change(create_table(name, indexes, false)).error
    }

    pub(super) fn table(&self, name: &str) -> TableDefinition {
        self.main.catalog().dictionary.table_named("d", name).expect("the table exists").definition.clone()
    }

    fn reserve(&mut self, table: TableId, count: u64, beyond: u64) -> (u64, u64, bool) {
        let request = ReserveAutoIncrement { operation: OperationId(1), reply_to: self.sql, table, count, beyond };
        self.run(MainSignal::ReserveAutoIncrement(request));
        match self.replies.pop() {
            Some(SqlSignal::ReserveAutoIncrementReply(reply)) => (reply.first, reply.count, reply.error.is_some()),
            other => panic!("{other:?}"),
        }
    }

    /// Asserts that each member of a chain holds exactly the catalog's partitions, at their published
    /// versions.
    pub(super) fn check(&self) {
        let catalog = self.main.catalog();
        let mut expected = BTreeMap::new();
        for layout in catalog.dictionary.tables() {
            for index in 0..layout.definition.partition_count {
                let partition = PartitionId { table: layout.definition.id, index };
                for member in catalog.distribution.chain(partition).expect("a chain") {
                    expected.insert((*member, partition), layout.definition.version);
                }
            }
        }
        assert_eq!(self.partitions, expected);
        assert!(self.blocked.is_empty(), "{:?}", self.blocked);
    }
}

pub(super) fn create_database(if_not_exists: bool) -> SchemaChange {
    SchemaChange::CreateDatabase { name: "d".into(), collation: CollationId::DEFAULT, if_not_exists }
}

pub(super) fn column(name: &str) -> ColumnDefinition {
    ColumnDefinition::new(name, DataType::integer(4, false))
}

pub(super) fn index(name: &str, kind: IndexKind, column: u16) -> IndexDefinition {
    IndexDefinition::new(IndexId(0), name, kind, vec![ColumnNumber(column)])
}

pub(super) fn primary() -> IndexDefinition {
    index("PRIMARY", IndexKind::Primary { ordered: true }, 0)
}

pub(super) fn unique(name: &str) -> IndexDefinition {
    index(name, IndexKind::Unique { ordered: true, entries: TableId(0) }, 1)
}

pub(super) fn create_table(name: &str, indexes: Vec<IndexDefinition>, if_not_exists: bool) -> SchemaChange {
    let columns = vec![column("id"), column("k")];
    let definition = TableDefinition {
        version: SchemaVersion(0),
        partition_count: 2,
        next_index: IndexId(0),
        ..TableDefinition::new(TableId(0), ("d", name), columns, indexes)
    };
    SchemaChange::CreateTable { definition: Box::new(definition), if_not_exists, auto_increment: 5 }
}

pub(super) fn alter(table: TableId, alteration: Alteration) -> SchemaChange {
    SchemaChange::AlterTable { table, alteration: Arc::new(alteration), expressions: Arc::default() }
}

pub(super) fn add_index(table: TableId, index: IndexDefinition) -> SchemaChange {
    alter(table, Alteration { add_indexes: vec![index], ..Alteration::default() })
}

pub(super) fn drop_index(table: TableId, name: &str) -> SchemaChange {
    alter(table, Alteration { drop_indexes: vec![name.into()], ..Alteration::default() })
}

pub(super) fn errno(error: Option<Box<Error>>) -> u16 {
    error.map_or(0, |error| error.code.errno())
}

#[test]
fn partitions_exist_before_they_are_published_and_go_after() {
    let mut stage = Stage::new(&[]);
    stage.create_database();
    assert_eq!(stage.create("t", vec![primary()]), None);
    stage.check();
    let published = stage.log.iter().position(|line| line.starts_with("publish")).expect("it is published");
    assert!(stage.log[..published].iter().all(|line| line.starts_with("create")));
    assert_eq!(stage.log[published..].len(), 5, "one sql, one tc, two ldm and one query block");
    let names = vec![("d".into(), "t".into())];
    assert_eq!(stage.change(SchemaChange::DropTables { names, if_exists: false }).error, None);
    let dropped = stage.log.iter().position(|line| line.starts_with("drop")).expect("it is dropped");
    assert!(stage.log[dropped..].iter().all(|line| line.starts_with("drop")));
    assert!(stage.partitions.is_empty());
    stage.check();
}

#[test]
fn partitions_go_round_the_instances_with_their_backups() {
    let mut stage = Stage::new(&[2, 3]);
    stage.create_database();
    assert_eq!(stage.create("a", vec![primary(), unique("u")]), None);
    stage.check();
    assert_eq!(stage.partitions.len(), 12, "two partitions and two of entries, three replicas each");
    let table = stage.table("a");
    let chain = |index| {
        let partition = PartitionId { table: table.id, index };
        stage.main.catalog().distribution.chain(partition).expect("a chain").to_vec()
    };
    let instances: Vec<u16> = chain(0).iter().chain(&chain(1)).map(|member| member.instance).collect();
    assert_eq!(instances, [0, 0, 0, 1, 1, 1]);
    let nodes: Vec<u8> = chain(0).iter().map(|member| member.node.0).collect();
    assert_eq!(nodes, [1, 2, 3]);
}

#[test]
fn a_change_that_fails_leaves_everything_as_it_was() {
    let mut stage = Stage::new(&[]);
    stage.create_database();
    let next = PartitionId { table: TableId(1), index: 1 };
    stage.failing = Some(("create", next));
    assert_eq!(errno(stage.create("t", vec![primary()])), 1114);
    stage.failing = None;
    assert!(stage.partitions.is_empty() && !stage.log.iter().any(|line| line.starts_with("publish")));
    assert_eq!(stage.create("t", vec![primary()]), None);
    stage.check();

    let table = stage.table("t");
    stage.failing = Some(("build", PartitionId { table: table.id, index: 0 }));
    let create = |kind| add_index(table.id, index("k", kind, 1));
    assert_eq!(errno(stage.change(create(IndexKind::Ordered)).error), 1114);
    assert_eq!(stage.table("t").indexes, table.indexes, "the index is gone again");
    assert_eq!(errno(stage.change(create(unique("k").kind)).error), 1114);
    assert_eq!(stage.table("t").indexes, table.indexes);
    stage.failing = None;
    stage.check_but_versions();
    assert_eq!(stage.change(create(IndexKind::Ordered)).error, None);
    stage.check();
    assert_eq!(stage.table("t").indexes[1].state, IndexState::Online);
}

impl Stage {
    /// As `check`, but ignores versions: a change that was undone before its publication leaves newer
    /// versions at the partitions.
    fn check_but_versions(&self) {
        let tables: Vec<TableId> = self.main.catalog().dictionary.tables().map(|layout| layout.definition.id).collect();
        assert!(self.partitions.keys().all(|(_, partition)| tables.contains(&partition.table)));
    }
}

#[test]
fn a_unique_index_is_online_only_when_its_entries_are_complete() {
    let mut stage = Stage::new(&[]);
    stage.create_database();
    stage.create("t", vec![primary()]);
    let table = stage.table("t");
    stage.rows.hold();
    stage.ask(OperationId(100), add_index(table.id, unique("u")));
    stage.check();
    let building = stage.table("t");
    let id = building.indexes[1].id;
    assert_eq!((building.indexes[1].state, id), (IndexState::Building, IndexId(1)));
    assert!(building.version > table.version);
    let IndexKind::Unique { entries, .. } = building.indexes[1].kind else { panic!("a unique index") };
    let kind = TableKind::UniqueEntries { base: table.id, index: id };
    let dictionary = &stage.main.catalog().dictionary;
    assert_eq!(dictionary.table(entries).map(|layout| layout.definition.kind), Some(kind));
    stage.release_rows();
    assert_eq!(last_errno(&mut stage), 0);
    stage.check();
    assert_eq!(stage.table("t").indexes[1].state, IndexState::Online);
    assert_eq!(stage.change(drop_index(table.id, "u")).error, None);
    stage.check();
    assert_eq!(stage.table("t").indexes.len(), 1);
    assert!(stage.main.catalog().dictionary.table(entries).is_none());
    // Index ids are not reused.
    let ordered = index("k", IndexKind::Ordered, 1);
    assert_eq!(stage.change(add_index(table.id, ordered)).error, None);
    assert_eq!(stage.table("t").indexes[1].id, IndexId(2));
}

#[test]
fn truncating_gives_a_new_table_and_begins_numbers_again() {
    let mut stage = Stage::new(&[]);
    stage.create_database();
    stage.create("t", vec![primary(), unique("u")]);
    let old = stage.table("t");
    assert_eq!(stage.reserve(old.id, 10, 0), (5, 10, false));
    assert_eq!(stage.change(SchemaChange::TruncateTable { table: old.id }).error, None);
    stage.check();
    let new = stage.table("t");
    assert!(new.id > old.id);
    assert_eq!(new.columns, old.columns);
    assert_eq!(stage.reserve(new.id, 10, 0), (1, 10, false));
    assert_eq!(stage.reserve(old.id, 10, 0), (0, 0, true));
}

#[test]
fn numbers_are_never_given_twice_and_end() {
    let mut stage = Stage::new(&[]);
    stage.create_database();
    stage.create("t", vec![primary()]);
    let table = stage.table("t").id;
    assert_eq!(stage.reserve(table, 3, 0), (5, 3, false));
    assert_eq!(stage.reserve(table, 3, 100), (101, 3, false));
    assert_eq!(stage.reserve(table, 0, 200), (201, 0, false));
    assert_eq!(stage.reserve(table, 1, 7), (201, 1, false));
    assert_eq!(stage.reserve(table, 5, u64::MAX - 3), (u64::MAX - 2, 2, false));
    assert_eq!(stage.reserve(table, 5, 0), (u64::MAX, 0, false));
}

#[test]
fn what_cannot_be_done_is_refused_with_its_number() {
    let mut stage = Stage::new(&[]);
    let drop_database = |if_exists| SchemaChange::DropDatabase { name: "d".into(), if_exists };
    assert_eq!(errno(stage.change(drop_database(false)).error), 1008);
    assert_eq!(stage.change(drop_database(true)).notes[0].0, 1008);
    assert_eq!(errno(stage.create("t", vec![primary()])), 1049);
    stage.create_database();
    assert_eq!(errno(stage.change(create_database(false)).error), 1007);
    assert_eq!(stage.change(create_database(true)).notes[0].0, 1007);
    assert_eq!(stage.create("t", vec![primary()]), None);
    assert_eq!(errno(stage.create("t", vec![primary()])), 1050);
    assert_eq!(stage.change(create_table("t", vec![primary()], true)).notes[0].0, 1050);
    assert_eq!(errno(stage.create("v", vec![primary(), unique("u"), unique("U")])), 1061);
    let table = stage.table("t").id;
    assert_eq!(errno(stage.change(add_index(table, index("primary", IndexKind::Ordered, 1))).error), 1061);
    assert_eq!(errno(stage.change(drop_index(table, "x")).error), 1091);
    assert_eq!(errno(stage.change(SchemaChange::TruncateTable { table: TableId(99) }).error), 1412);
    let names: Vec<(Box<str>, Box<str>)> = vec![("d".into(), "x".into()), ("d".into(), "t".into())];
    let refused = stage.change(SchemaChange::DropTables { names: names.clone(), if_exists: false }).error;
    assert_eq!(refused.map(|error| error.message), Some("Unknown table 'd.x'".into()));
    stage.check();
    let reply = stage.change(SchemaChange::DropTables { names, if_exists: true });
    assert_eq!((reply.error, reply.notes), (None, vec![(1051, "Unknown table 'd.x'".into())]));
    stage.create("t", vec![primary(), unique("u")]);
    assert_eq!(stage.change(drop_database(false)).error, None);
    assert!(stage.partitions.is_empty());
    stage.check();
}

#[test]
fn changes_wait_for_their_turn_and_too_many_are_refused() {
    let mut stage = Stage::new(&[]);
    stage.create_database();
    let mut sent = Vec::new();
    for number in 0..400u64 {
        let change = Box::new(create_table(&format!("t{number}"), vec![primary()], false));
        let (operation, connection) = (OperationId(number), ConnectionId(1));
        let (reply_to, foreign_key_checks) = (stage.sql, true);
        let (wait_ms, lock_wait_ms) = (1000, 500);
        let request =
            ChangeSchema { operation, reply_to, connection, wait_ms, lock_wait_ms, foreign_key_checks, change };
        sent.extend(stage.send(MainSignal::ChangeSchema(request)));
    }
    let mut queue = Vec::new();
    for (to, signal) in sent {
        queue.extend(stage.answer(to, signal));
    }
    for signal in queue {
        stage.run(signal);
    }
    let failed =
        stage.replies.iter().filter(|reply| matches!(reply, SqlSignal::ChangeSchemaReply(it) if it.error.is_some()));
    assert_eq!((stage.replies.len(), failed.count()), (400, 400 - 257));
    stage.check();
}

#[test]
fn a_change_waits_until_its_tables_are_left() {
    let mut stage = Stage::new(&[]);
    stage.create_database();
    stage.create("t", vec![primary()]);
    stage.create("other", vec![primary()]);
    let table = stage.table("t").id;
    stage.in_use = true;
    stage.log.clear();
    stage.ask(OperationId(100), SchemaChange::TruncateTable { table });
    stage.ask(OperationId(101), drop_table("t"));
    assert_eq!(stage.blocked.values().collect::<Vec<_>>(), [&vec![table]], "the second one waits for the first one");
    assert!(stage.log.is_empty() && stage.replies.is_empty());
    // The sessions stop using the tables.
    stage.in_use = false;
    assert_eq!(stage.change(drop_table("other")).error, None);
    let first = *stage.blocked.keys().next().expect("the change waits");
    stage.leave(first);
    // The next change concerns the table that the first change created.
    assert_eq!(stage.replies.len(), 2);
    assert!(stage.replies.iter().all(|reply| matches!(reply, SqlSignal::ChangeSchemaReply(it) if it.error.is_none())));
    assert!(stage.main.catalog().dictionary.table_named("d", "t").is_none());
    stage.check();
}

#[test]
fn a_change_that_waits_too_long_or_is_not_wanted_is_given_up() {
    let mut stage = Stage::new(&[]);
    stage.create_database();
    stage.create("t", vec![primary()]);
    stage.in_use = true;
    stage.ask(OperationId(100), drop_table("t"));
    stage.pass_time(999);
    assert!(stage.replies.is_empty());
    stage.pass_time(1);
    assert_eq!(last_errno(&mut stage), 1205);
    stage.ask(OperationId(101), drop_table("t"));
    let cancel = CancelSchemaChange { operation: OperationId(101), reply_to: stage.sql };
    stage.run(MainSignal::CancelSchemaChange(cancel));
    assert_eq!(last_errno(&mut stage), 1317);
    stage.check();
    // The tables became free too late.
    stage.leave(1);
    stage.check();
}

#[test]
fn an_index_whose_end_is_waited_for_in_vain_is_taken_away() {
    let mut stage = Stage::new(&[]);
    stage.create_database();
    stage.create("t", vec![primary()]);
    let table = stage.table("t").id;
    let change = add_index(table, index("k", IndexKind::Ordered, 1));
    stage.in_use = true;
    stage.ask(OperationId(100), change);
    let begin = *stage.blocked.keys().next().expect("the change waits");
    stage.leave(begin);
    assert_eq!(stage.table("t").indexes[1].state, IndexState::Building);
    stage.pass_time(1000);
    let drop = *stage.blocked.keys().next().expect("it waits to take the index away");
    assert!(stage.replies.is_empty());
    stage.leave(drop);
    assert_eq!(last_errno(&mut stage), 1205);
    assert_eq!(stage.table("t").indexes.len(), 1);
    stage.check();
}

#[test]
fn an_older_transaction_goes_before_a_change_that_has_not_begun() {
    let mut stage = Stage::new(&[]);
    stage.create_database();
    stage.create("t", vec![primary()]);
    stage.in_use = true;
    stage.ask(OperationId(100), drop_table("t"));
    let number = *stage.blocked.keys().next().expect("the change waits");
    stage.run(MainSignal::RecallTables(RecallTables { operation: OperationId(number), from: stage.sql }));
    stage.leave(number);
    assert!(stage.replies.is_empty(), "it was asked twice");
    stage.leave(number);
    assert_eq!(last_errno(&mut stage), 0);
    // Nothing precedes a change that has begun.
    stage.run(MainSignal::RecallTables(RecallTables { operation: OperationId(number), from: stage.sql }));
    stage.check();
}

#[test]
fn names_are_exchanged_and_nothing_is_renamed_by_halves() {
    let mut stage = Stage::new(&[]);
    stage.create_database();
    stage.create("a", vec![primary(), unique("u")]);
    stage.create("b", vec![primary()]);
    let (a, b) = (stage.table("a"), stage.table("b"));
    let rename = |pairs: &[(&str, &str)]| {
        let name = |name: &str| ("d".into(), name.into());
        let renames = pairs.iter().map(|(from, to)| TableRename { from: name(from), to: name(to) });
        SchemaChange::RenameTables { renames: renames.collect() }
    };
    assert_eq!(stage.change(rename(&[("a", "c"), ("b", "a"), ("c", "b")])).error, None);
    assert_eq!((stage.table("a").id, stage.table("b").id), (b.id, a.id));
    assert!(stage.table("b").version > a.version);
    stage.check();
    let hidden = stage.main.catalog().dictionary.tables().find(|layout| layout.definition.kind != TableKind::Base);
    assert_eq!(hidden.map(|layout| &*layout.definition.name), Some("b.u"));
    assert_eq!(errno(stage.change(rename(&[("a", "c"), ("x", "y")])).error), 1146);
    assert_eq!(errno(stage.change(rename(&[("a", "b")])).error), 1050);
    let away = TableRename { from: ("d".into(), "a".into()), to: ("e".into(), "a".into()) };
    assert_eq!(errno(stage.change(SchemaChange::RenameTables { renames: vec![away] }).error), 1049);
    assert_eq!(stage.table("a").id, b.id);
    stage.check();
}

pub(super) fn drop_table(name: &str) -> SchemaChange {
    SchemaChange::DropTables { names: vec![("d".into(), name.into())], if_exists: false }
}

pub(super) fn last_errno(stage: &mut Stage) -> u16 {
    match stage.replies.pop() {
        Some(SqlSignal::ChangeSchemaReply(reply)) => errno(reply.error),
        other => panic!("{other:?}"),
    }
}
