//! Runs blocks on four real threads: two run the clients, tc and query blocks, two the ldm blocks. Every
//! update adds 1 to all rows. A read must see the same value in all rows, and at least as many updates as
//! were acknowledged before it began.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use junctor_kernel::real::{Node, NodeOptions};
use junctor_kernel::{
    Address, Buffer, Context, Endpoints, Host, NodeId, NodeLayout, Outbox, ThreadAssignment, WorldEvent, WorldRequest,
};
use junctor_model::error::ErrorCode;
use junctor_model::id::{CommitNumber, Epoch, PartitionId, TransactionId};
use junctor_signals::Module;
use junctor_signals::change_schema::{Catalog, ChangePartition, PartitionChange, PublishCatalog};
use junctor_signals::end_transaction::CommitDurability;
use junctor_signals::execute_statement::{ExecuteStatement, ExecuteStatementReply, Parts, Reading};
use junctor_signals::inbox::ContinueWork;
use junctor_signals::program::{Access, Output, ReadProgram, RowProtocol, WriteProgram};
use junctor_signals::read_rows::{BookedCost, OperationId, ReadRows, ReadRowsReply};
use junctor_signals::{LdmSignal, MainSignal, QuerySignal, Signal, SqlSignal, TcSignal};
use junctor_storage::commit_sequence::CommitSequence;
use junctor_storage::guard::{ReadGroup, ReaderSlot};
use junctor_storage::page::PagePool;
use junctor_storage::snapshot::{ActiveSnapshots, SnapshotHandle, SnapshotRegistry, SnapshotWord};

use crate::ldm::{LdmBlock, LdmShared};
use crate::query::QueryBlock;
use crate::tc::TcBlock;
use crate::tests::harness::{K, SampleTable};

const PARTITIONS: u16 = 2;
const ROWS: i64 = 24;
const WRITERS: u64 = 3;
const READERS: u64 = 4;
const UPDATES_PER_DRIVER: u64 = 40;

/// State shared by all drivers.
struct Common {
    table: SampleTable,
    ldm: LdmShared,
    slots: Mutex<Vec<Option<ReaderSlot>>>,
    /// Number of updates acknowledged to any driver.
    acknowledged: AtomicU64,
    reads: AtomicU64,
    finished: AtomicU64,
    problems: Mutex<Vec<String>>,
}

struct ThreadHost {
    tc: Option<TcBlock>,
    ldm: Option<LdmBlock>,
    query: Option<QueryBlock>,
    driver: Option<FakeSql>,
}

/// Plays the main and sql blocks, with their clients.
struct FakeSql {
    common: Arc<Common>,
    instance: u16,
    snapshots: ActiveSnapshots,
    update: Arc<WriteProgram>,
    read: Arc<ReadProgram>,
    reads: BTreeMap<u64, OpenRead>,
    /// Number of replies that the setup waits for.
    outstanding: usize,
    setup: VecDeque<Setup>,
    updates: u64,
    is_running: bool,
}

#[derive(Clone, Copy)]
enum Setup {
    Publish,
    Fill,
    Go,
}

struct OpenRead {
    snapshot: SnapshotHandle,
    acknowledged: u64,
    raised: Vec<i64>,
    outstanding: u16,
}

fn layout() -> NodeLayout {
    NodeLayout::new(&[
        &[(Module::Main, 0), (Module::Sql, 0), (Module::Tc, 0), (Module::Query, 0)],
        &[(Module::Sql, 1), (Module::Tc, 1), (Module::Query, 1)],
        &[(Module::Ldm, 0)],
        &[(Module::Ldm, 1)],
    ])
}

fn address(module: Module, instance: u16) -> Address {
    Address::new(NodeId(1), module, instance)
}

impl ThreadHost {
    fn new(assignment: &ThreadAssignment, common: &Arc<Common>) -> ThreadHost {
        let instance = |module| assignment.directory.instance_on(module, assignment.thread);
        let sequence = &common.ldm.sequence;
        let tc = |instance| TcBlock::new(address(Module::Tc, instance), &assignment.directory, Arc::clone(sequence));
        let ldm = |instance| LdmBlock::new(address(Module::Ldm, instance), common.ldm.clone(), assignment.seed);
        let query = |instance: u16| {
            let slot = common.slots.lock().expect("no panic")[usize::from(instance)].take();
            QueryBlock::new(slot.expect("every slot is taken once"))
        };
        ThreadHost {
            tc: instance(Module::Tc).map(tc),
            ldm: instance(Module::Ldm).map(ldm),
            query: instance(Module::Query).map(query),
            driver: instance(Module::Sql).map(|instance| FakeSql::new(common, instance, assignment.thread)),
        }
    }
}

impl Host<Signal> for ThreadHost {
    fn handle(
        &mut self,
        Endpoints { to, from }: Endpoints,
        signal: Signal,
        context: &mut Context<'_>,
        outbox: &mut Outbox<Signal>,
    ) {
        match (Module::of(to.module), signal, self) {
            (_, Signal::Tc(signal), ThreadHost { tc: Some(block), .. }) => block.handle(signal, from, context, outbox),
            (_, Signal::Ldm(signal), ThreadHost { ldm: Some(block), .. }) => {
                block.handle(signal, from, context, outbox);
            }
            (_, Signal::Query(signal), ThreadHost { query: Some(block), .. }) => {
                block.handle(signal, from, context, outbox);
            }
            (_, Signal::Sql(signal), ThreadHost { driver: Some(driver), .. }) => driver.on_sql(signal, context, outbox),
            (_, Signal::Main(signal), ThreadHost { driver: Some(driver), .. }) => driver.on_main(signal, outbox),
            (Module::Tc, Signal::World(event), ThreadHost { tc: Some(block), .. }) => {
                block.on_world(event, context, outbox);
            }
            (Module::Ldm, Signal::World(event), ThreadHost { ldm: Some(block), .. }) => {
                block.on_world(event, context, outbox);
            }
            (Module::Main, Signal::World(WorldEvent::Started), ThreadHost { driver: Some(driver), .. }) => {
                driver.create_partitions(outbox);
            }
            _ => {}
        }
    }
}

impl FakeSql {
    fn new(common: &Arc<Common>, instance: u16, thread: u16) -> FakeSql {
        let word = SnapshotWord::claim(Arc::clone(&common.ldm.snapshots), usize::from(thread));
        let table = &common.table;
        let read = ReadProgram::new(&table.layout, Access::AllRows, Output::Images);
        // The unique column does not change, so the plan has no entries.
        let update = WriteProgram { unique_entries: Vec::new(), ..(*table.add_to(K, Access::AllRows, 1)).clone() };
        FakeSql {
            snapshots: ActiveSnapshots::new(word.expect("every word is claimed once"), READERS as u32),
            update: Arc::new(update),
            read: Arc::new(read),
            reads: BTreeMap::new(),
            outstanding: 0,
            setup: VecDeque::from([Setup::Publish, Setup::Fill, Setup::Go]),
            updates: 0,
            is_running: false,
            common: Arc::clone(common),
            instance,
        }
    }

    fn create_partitions(&mut self, outbox: &mut Outbox<Signal>) {
        for index in 0..PARTITIONS {
            let layout = Arc::clone(&self.common.table.layout);
            let partition = PartitionId { table: layout.definition.id, index };
            let owner = address(Module::Ldm, index);
            let signal = ChangePartition {
                operation: OperationId(0),
                reply_to: address(Module::Main, 0),
                partition,
                layout,
                change: PartitionChange::Create { chain: vec![owner] },
                epoch: Epoch(0),
            };
            self.outstanding += 1;
            outbox.send(owner, Signal::Ldm(LdmSignal::ChangePartition(signal)));
        }
    }

    fn on_main(&mut self, _answer: MainSignal, outbox: &mut Outbox<Signal>) {
        self.outstanding -= 1;
        if self.outstanding == 0 {
            self.set_up(outbox);
        }
    }

    fn set_up(&mut self, outbox: &mut Outbox<Signal>) {
        match self.setup.pop_front() {
            Some(Setup::Publish) => self.publish(outbox),
            Some(Setup::Fill) => {
                let rows: Vec<_> = (1..=ROWS).map(|id| (id, 0, None)).collect();
                let parts = self.common.table.images(&rows);
                let insert = self.common.table.insert();
                self.execute(0, insert, parts, outbox);
            }
            Some(Setup::Go) => {
                for instance in 0..2 {
                    let go = SqlSignal::ContinueWork(ContinueWork { work: 0 });
                    outbox.send(address(Module::Sql, instance), Signal::Sql(go));
                }
            }
            None => {}
        }
    }

    fn publish(&mut self, outbox: &mut Outbox<Signal>) {
        let mut catalog = Catalog::default();
        let layout = &self.common.table.layout;
        catalog.dictionary.put_table(layout.definition.clone());
        for index in 0..PARTITIONS {
            let partition = PartitionId { table: layout.definition.id, index };
            catalog.distribution.put(partition, vec![address(Module::Ldm, index)]);
        }
        let catalog = Arc::new(catalog);
        for instance in 0..2 {
            let publish = || PublishCatalog {
                operation: OperationId(0),
                reply_to: address(Module::Main, 0),
                epoch: Epoch(0),
                catalog: Arc::clone(&catalog),
            };
            self.outstanding += 2;
            outbox.send(address(Module::Tc, instance), Signal::Tc(TcSignal::PublishCatalog(publish())));
            outbox.send(address(Module::Query, instance), Signal::Query(QuerySignal::PublishCatalog(publish())));
        }
    }

    fn execute(
        &mut self,
        operation: u64,
        program: Arc<WriteProgram>,
        parts: BTreeMap<u16, Buffer>,
        outbox: &mut Outbox<Signal>,
    ) {
        let request = ExecuteStatement {
            operation: OperationId(operation),
            reply_to: address(Module::Sql, self.instance),
            epoch: Epoch(0),
            transaction: TransactionId::default(),
            autocommit: true,
            durability: CommitDurability::Disk,
            protocol: RowProtocol::Text,
            lock_wait_ms: 50_000,
            timeout_ends: false,
            reading: Reading::default(),
            savepoint: Default::default(),
            program,
            parts: Parts::Many(parts.into_iter().collect()),
        };
        outbox.send(address(Module::Tc, self.instance), Signal::Tc(TcSignal::ExecuteStatement(request)));
    }

    fn begin_update(&mut self, operation: u64, outbox: &mut Outbox<Signal>) {
        let (program, parts) = (Arc::clone(&self.update), self.common.table.everything());
        self.execute(operation, program, parts, outbox);
    }

    fn begin_read(&mut self, operation: u64, outbox: &mut Outbox<Signal>) {
        // A snapshot taken later must include everything that is acknowledged by now.
        let acknowledged = self.common.acknowledged.load(Ordering::Acquire);
        let snapshot = self.snapshots.begin().expect("a snapshot for every reader");
        let number = snapshot.number();
        let parts = self.common.table.everything();
        self.reads.insert(operation, OpenRead { snapshot, acknowledged, raised: Vec::new(), outstanding: PARTITIONS });
        for (index, input) in parts {
            let request = ReadRows {
                operation: OperationId(operation),
                reply_to: address(Module::Sql, self.instance),
                partition: PartitionId { table: self.common.table.layout.definition.id, index },
                protocol: RowProtocol::Text,
                rows_max: 1000,
                warnings_max: 0,
                is_sampled: false,
                booked_cost: BookedCost::default(),
                program: Arc::clone(&self.read),
                snapshot: number,
                transaction: TransactionId::default(),
                input,
                output: Buffer::new(),
                resume: None,
            };
            // This thread serves half of the reads, and the other thread the other half.
            let query = ((operation + u64::from(self.instance)) % 2) as u16;
            outbox.send(address(Module::Query, query), Signal::Query(QuerySignal::ReadRows(request)));
        }
    }

    fn on_sql(&mut self, signal: SqlSignal, _context: &mut Context<'_>, outbox: &mut Outbox<Signal>) {
        match signal {
            SqlSignal::ContinueWork(_) => {
                self.is_running = true;
                (1..=WRITERS).for_each(|operation| self.begin_update(operation, outbox));
                (100..100 + READERS).for_each(|operation| self.begin_read(operation, outbox));
            }
            SqlSignal::ExecuteStatementReply(reply) if reply.operation == OperationId(0) => {
                self.record_unless(reply.error.is_none(), || format!("{:?}", reply.error));
                self.set_up(outbox);
            }
            SqlSignal::ExecuteStatementReply(reply) => self.on_update(reply, outbox),
            SqlSignal::ReadRowsReply(reply) => self.on_read(reply, outbox),
            SqlSignal::NoteLockWait(_) => {}
            other => self.record_unless(false, || format!("{other:?}")),
        }
    }

    fn on_update(&mut self, reply: ExecuteStatementReply, outbox: &mut Outbox<Signal>) {
        match &reply.error {
            None => {
                self.record_unless(reply.changed == ROWS as u64, || format!("{} rows changed", reply.changed));
                self.common.acknowledged.fetch_add(1, Ordering::AcqRel);
                self.updates += 1;
            }
            // Two updates may lock the two partitions in different orders.
            Some(error) if error.code == ErrorCode::Deadlock => {}
            Some(error) => {
                self.record_unless(false, || format!("{error}"));
                self.updates = UPDATES_PER_DRIVER;
            }
        }
        if self.updates < UPDATES_PER_DRIVER {
            return self.begin_update(reply.operation.0, outbox);
        }
        if self.is_running {
            self.is_running = false;
            if self.common.finished.fetch_add(1, Ordering::AcqRel) == 1 {
                outbox.request(WorldRequest::Stop);
            }
        }
    }

    fn on_read(&mut self, reply: ReadRowsReply, outbox: &mut Outbox<Signal>) {
        self.record_unless(reply.error.is_none() && reply.resume.is_none(), || format!("{:?}", reply.error));
        let operation = reply.operation.0;
        let Some(read) = self.reads.get_mut(&operation) else { return };
        read.raised.extend(self.common.table.rows_of(&reply.output).into_iter().map(|row| row.1));
        read.outstanding -= 1;
        if read.outstanding > 0 {
            return;
        }
        let Some(OpenRead { snapshot, acknowledged, raised, .. }) = self.reads.remove(&operation) else { return };
        let ended = self.snapshots.end(snapshot);
        self.record_unless(ended.is_ok(), || "a snapshot ended twice".into());
        let is_whole = raised.len() == ROWS as usize && raised.iter().all(|by| *by == raised[0]);
        self.record_unless(is_whole, || format!("half a transaction: {raised:?}"));
        let sees_acknowledged = raised.first().is_some_and(|by| *by as u64 >= acknowledged);
        self.record_unless(sees_acknowledged, || format!("{acknowledged} acknowledged, read {raised:?}"));
        self.common.reads.fetch_add(1, Ordering::Relaxed);
        if self.is_running {
            self.begin_read(operation, outbox);
        }
    }

    fn record_unless(&self, holds: bool, problem: impl FnOnce() -> String) {
        if !holds {
            self.common.problems.lock().expect("no panic").push(problem());
        }
    }
}

#[test]
fn no_reader_on_any_thread_sees_half_of_a_transaction() {
    let sequence = Arc::new(CommitSequence::starting_after(CommitNumber(0)));
    let (readers, slots) = ReadGroup::new(2);
    let threads = layout().threads.len();
    let ldm = LdmShared {
        snapshots: Arc::new(SnapshotRegistry::new(Arc::clone(&sequence), threads)),
        pages: PagePool::new(64 << 20).expect("address space"),
        sequence,
        readers,
        log: None,
        progress: Arc::default(),
    };
    let common = Arc::new(Common {
        table: SampleTable::new(PARTITIONS),
        ldm,
        slots: Mutex::new(slots.into_iter().map(Some).collect()),
        acknowledged: AtomicU64::new(0),
        reads: AtomicU64::new(0),
        finished: AtomicU64::new(0),
        problems: Mutex::new(Vec::new()),
    });
    let data_folder = std::env::temp_dir().join(format!("junctor-thread-test-{}", std::process::id()));
    let options = NodeOptions { data_folder: data_folder.clone(), pin: false, ..NodeOptions::default() };
    let made = Arc::clone(&common);
    let running =
        Node::start(&layout(), options, move |assignment| ThreadHost::new(&assignment, &made)).expect("four threads");
    running.wait_for_stop_request();
    assert!(running.stop(), "the node did not stop cleanly: work was still in progress");
    // A folder that cannot be removed is not a failure of the test.
    let _ = std::fs::remove_dir_all(data_folder);
    assert_eq!(*common.problems.lock().expect("no panic"), Vec::<String>::new());
    assert!(common.reads.load(Ordering::Relaxed) > 100, "readers ran concurrently with the writers");
    assert!(common.acknowledged.load(Ordering::Relaxed) >= 2 * UPDATES_PER_DRIVER);
}
