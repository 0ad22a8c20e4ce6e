//! Schema changes and AUTO_INCREMENT marks on a node with a log.

use junctor_model::id::CommitNumber;
use junctor_model::stored_mark::CounterMark;
use junctor_model::types::DataType;
use junctor_storage::log::RecordKind;

use super::*;

impl Stage {
    fn disk(&mut self) -> &mut FakeLog {
        self.disk.as_mut().expect("the node has a log")
    }

    /// Lets the stalled log sync what it has.
    pub(super) fn sync_log(&mut self) {
        let disk = self.disk.as_mut().expect("the node has a log");
        let reply = disk.sync(&mut self.log);
        self.run_all(reply.into_iter().collect());
    }

    fn marks(&mut self) -> Vec<u64> {
        let bodies = self.disk().bodies(RecordKind::Mark);
        bodies.iter().map(|body| CounterMark::decode(body).expect("a mark").mark).collect()
    }

    /// The durable marks, and whether they are exact.
    fn exact_marks(&mut self) -> Vec<(u64, bool)> {
        let bodies = self.disk().bodies(RecordKind::Mark);
        let marks = bodies.iter().map(|body| CounterMark::decode(body).expect("a mark"));
        marks.map(|CounterMark { mark, is_exact, .. }| (mark, is_exact)).collect()
    }

    /// Sends numbers that a sql block has not used.
    fn give_back(&mut self, table: TableId, numbers: std::ops::Range<u64>) {
        self.run(MainSignal::ReturnAutoIncrement(ReturnAutoIncrement {
            numbers: Box::new([ReturnedNumbers { table, range: numbers, explicit: 0 }]),
            is_stop: true,
        }));
    }

    fn ask_reserve(&mut self, table: TableId, count: u64) {
        let request = ReserveAutoIncrement { operation: OperationId(1), reply_to: self.sql, table, count, beyond: 0 };
        self.run(MainSignal::ReserveAutoIncrement(request));
    }

    fn position(&self, event: &str) -> usize {
        let position = self.log.iter().position(|line| line.starts_with(event));
        position.unwrap_or_else(|| panic!("{event} is in {:?}", self.log))
    }
}

#[test]
fn nothing_is_published_or_freed_before_the_record_is_durable() {
    let mut stage = Stage::durable();
    stage.create_database();
    assert_eq!(stage.create("t", vec![primary(), unique("u")]), None);
    stage.check();
    let [made, recorded, durable, published] =
        ["create", "append Dictionary", "durable", "publish"].map(|event| stage.position(event));
    assert!(made < recorded && recorded < durable && durable < published, "{:?}", stage.log);
    assert_eq!(stage.change(SchemaChange::TruncateTable { table: stage.table("t").id }).error, None);
    stage.check();
    let [recorded, durable, published, freed] =
        ["append Dictionary", "durable", "publish", "drop"].map(|event| stage.position(event));
    assert!(recorded < durable && durable < published && published < freed, "{:?}", stage.log);
    assert_eq!(stage.change(drop_table("t")).error, None);
    let [durable, published, freed] = ["durable", "publish", "drop"].map(|event| stage.position(event));
    assert!(durable < published && published < freed, "{:?}", stage.log);
    assert_eq!(stage.disk().bodies(RecordKind::Dictionary).len(), 4);
}

#[test]
fn a_change_waits_while_the_log_cannot_sync() {
    let mut stage = Stage::durable();
    stage.create_database();
    stage.disk().is_stalled = true;
    stage.log.clear();
    stage.ask(OperationId(100), create_table("t", vec![primary()], false));
    stage.ask(OperationId(101), create_table("v", vec![primary()], false));
    stage.pass_time(500);
    assert!(stage.replies.is_empty() && stage.main.catalog().dictionary.table_named("d", "t").is_none());
    assert!(!stage.log.iter().any(|line| line.starts_with("publish")));
    stage.sync_log();
    assert_eq!((stage.replies.len(), last_errno(&mut stage)), (1, 0));
    assert!(stage.main.catalog().dictionary.table_named("d", "v").is_none());
    stage.sync_log();
    assert_eq!(last_errno(&mut stage), 0);
    stage.check();
}

#[test]
fn main_awaits_its_number_only_when_earlier_ones_are_stable() {
    let mut stage = Stage::durable();
    stage.create_database();
    let sequence = Arc::clone(&stage.disk().target.sequence);
    let earlier = sequence.take(3).expect("a number");
    stage.ask(OperationId(100), create_table("t", vec![primary()], false));
    assert!(stage.replies.is_empty() && stage.disk().awaited.is_none());
    let mut stable = Vec::new();
    sequence.mark_applied(earlier, &mut |number, owner| stable.push((number, owner))).expect("it was taken");
    let number = CommitNumber(earlier.0 + 1);
    assert_eq!(stable, [(earlier, 3), (number, junctor_signals::commit_transaction::MAIN_OWNER)]);
    let (to, signal) = junctor_signals::commit_transaction::CommitStable::for_owner(number, stable[1].1, NodeId(1));
    assert_eq!(to, stage.own);
    let Signal::Main(signal) = signal else { panic!("{signal:?}") };
    stage.run(signal);
    assert_eq!(last_errno(&mut stage), 0);
    // A number that main has seen to be stable itself.
    let late = junctor_signals::commit_transaction::CommitStable { number };
    stage.run(MainSignal::CommitStable(late));
    stage.check();
}

#[test]
fn a_change_that_fails_leaves_no_record() {
    let mut stage = Stage::durable();
    stage.create_database();
    stage.failing = Some(("create", PartitionId { table: TableId(1), index: 1 }));
    assert_eq!(errno(stage.create("t", vec![primary()])), 1114);
    stage.failing = None;
    assert!(stage.partitions.is_empty());
    assert_eq!(stage.disk().bodies(RecordKind::Dictionary).len(), 1);
    assert_eq!(stage.create("t", vec![primary()]), None);
    // The two steps of an alteration, and the step that undoes the first.
    let table = stage.table("t").id;
    assert_eq!(stage.change(add_index(table, index("k", IndexKind::Ordered, 1))).error, None);
    assert_eq!(stage.disk().bodies(RecordKind::Dictionary).len(), 4);
    stage.failing = Some(("build", PartitionId { table, index: 0 }));
    assert_eq!(errno(stage.change(add_index(table, index("l", IndexKind::Ordered, 1))).error), 1114);
    assert_eq!(stage.disk().bodies(RecordKind::Dictionary).len(), 6);
    stage.failing = None;
}

#[test]
fn numbers_are_handed_out_only_below_the_durable_mark() {
    let mut stage = Stage::durable();
    stage.create_database();
    stage.create("t", vec![primary()]);
    let table = stage.table("t").id;
    assert_eq!(stage.marks(), [5], "the first number is durable with the table");
    stage.disk().is_stalled = true;
    stage.ask_reserve(table, 10);
    assert!(stage.replies.is_empty());
    stage.ask_reserve(table, 1);
    stage.sync_log();
    let given: Vec<(u64, u64)> = stage.replies.drain(..).map(|reply| reserved(&reply)).collect();
    assert_eq!(given, [(5, 10), (15, 1)]);
    assert_eq!(stage.marks(), [5, 15 + CHUNK]);
    // Half of the chunk is used without a write. Then the mark is raised, and nobody waits for it.
    assert_eq!(stage.reserve(table, CHUNK / 2 - 1, 0).1, CHUNK / 2 - 1);
    assert!(stage.disk().awaited.is_none());
    assert_eq!(stage.reserve(table, 1, 0), (15 + CHUNK / 2, 1, false));
    assert!(stage.disk().awaited.is_some());
    assert_eq!(stage.reserve(table, 1, 0), (16 + CHUNK / 2, 1, false));
    // The chunk is used up.
    stage.ask_reserve(table, CHUNK);
    assert!(stage.replies.is_empty());
    // The mark that was being written is too low for it.
    stage.sync_log();
    stage.sync_log();
    assert_eq!(reserved(&stage.replies.pop().expect("a reply")), (17 + CHUNK / 2, CHUNK));
}

#[test]
fn a_node_that_stops_lowers_its_marks_to_the_next_number() {
    let mut stage = Stage::durable();
    stage.create_database();
    stage.create("t", vec![primary()]);
    stage.create("v", vec![primary()]);
    let (table, unused) = (stage.table("t").id, stage.table("v").id);
    assert_eq!(stage.reserve(table, 32, 0), (5, 32, false));
    assert_eq!(stage.reserve(table, 32, 0), (37, 32, false));
    stage.disk().durable.clear();
    stage.happen(WorldEvent::Stopping);
    assert_eq!(stage.exact_marks(), [(69, true)], "no mark of the other table is ahead");
    // The sql block that got the first range has used 5 to 9; the other one has used none.
    stage.give_back(table, 10..37);
    assert_eq!(stage.exact_marks().last(), Some(&(69, true)), "37 to 68 may be in use");
    stage.give_back(table, 37..69);
    assert_eq!(stage.exact_marks().last(), Some(&(10, true)));
    // A statement that is still running.
    stage.disk().is_stalled = true;
    stage.ask_reserve(table, 4);
    assert!(stage.replies.is_empty(), "the numbers are above the durable mark");
    stage.sync_log();
    assert_eq!(reserved(&stage.replies.pop().expect("a reply")), (10, 4));
    assert_eq!(stage.exact_marks().last(), Some(&(14, false)));
    stage.disk().is_stalled = false;
    stage.give_back(table, 12..14);
    assert_eq!(stage.exact_marks().last(), Some(&(12, true)));
    stage.give_back(unused, 1..2);
    stage.give_back(TableId(99), 1..2);
    assert_eq!(stage.exact_marks().last(), Some(&(12, true)));
}

#[test]
fn no_mark_is_lowered_while_a_batch_is_under_way() {
    let mut stage = Stage::durable();
    stage.create_database();
    stage.create("t", vec![primary()]);
    let table = stage.table("t").id;
    stage.disk().is_stalled = true;
    stage.ask_reserve(table, 10);
    stage.happen(WorldEvent::Stopping);
    assert_eq!(stage.exact_marks(), [(5, false)], "the mark for the reservation is on its way");
    stage.sync_log();
    assert_eq!(reserved(&stage.replies.pop().expect("a reply")), (5, 10));
    stage.sync_log();
    assert_eq!(stage.exact_marks(), [(5, false), (15 + CHUNK, false), (15, true)]);
}

#[test]
fn explicit_numbers_are_below_the_mark_when_they_are_answered() {
    let mut stage = Stage::durable();
    stage.create_database();
    stage.create("t", vec![primary()]);
    let table = stage.table("t").id;
    assert_eq!(stage.reserve(table, 0, 1_000_000), (1_000_001, 0, false));
    assert!(stage.marks().last().is_some_and(|mark| *mark > 1_000_000));
    assert_eq!(stage.reserve(table, 5, u64::MAX - 3), (u64::MAX - 2, 2, false));
    assert_eq!(stage.reserve(table, 5, 0), (u64::MAX, 0, false));
    let writes = stage.marks().len();
    assert_eq!(stage.reserve(table, 5, 0), (u64::MAX, 0, false));
    assert_eq!(stage.marks().len(), writes, "the last mark is written once");
}

#[test]
fn a_narrow_column_loses_few_numbers() {
    let mut stage = Stage::durable();
    stage.create_database();
    let SchemaChange::CreateTable { mut definition, .. } = create_table("t", vec![primary()], false) else {
        unreachable!()
    };
    definition.columns[0].auto_increment = true;
    definition.columns[0].column_type = DataType::integer(1, false);
    let create = SchemaChange::CreateTable { definition, if_not_exists: false, auto_increment: 0 };
    assert_eq!(stage.change(create).error, None);
    let table = stage.table("t").id;
    for number in 1..=100 {
        assert_eq!(stage.reserve(table, 1, 0), (number, 1, false));
    }
    assert!(stage.marks().last().is_some_and(|mark| *mark <= 102), "{:?}", stage.marks());
}

#[test]
fn reservations_of_a_dropped_table_are_refused() {
    let mut stage = Stage::durable();
    stage.create_database();
    stage.create("t", vec![primary()]);
    let table = stage.table("t").id;
    stage.disk().is_stalled = true;
    stage.ask(OperationId(100), drop_table("t"));
    stage.ask_reserve(table, 1);
    // The first sync stores the record of the change. The second stores the mark, which nobody needs any
    // more.
    stage.sync_log();
    let refused = stage.replies.iter().filter_map(|reply| match reply {
        SqlSignal::ReserveAutoIncrementReply(reply) => reply.error.as_ref().map(|error| error.code.errno()),
        _ => None,
    });
    assert_eq!(refused.collect::<Vec<_>>(), [1412]);
    stage.sync_log();
    assert_eq!(stage.replies.len(), 2);
    stage.check();
}

const CHUNK: u64 = 16_384;

fn reserved(reply: &SqlSignal) -> (u64, u64) {
    match reply {
        SqlSignal::ReserveAutoIncrementReply(reply) => (reply.first, reply.count),
        other => panic!("{other:?}"),
    }
}
