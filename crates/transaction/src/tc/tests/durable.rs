//! Commits on a node with a log: which of them wait for the disk, and what a full disk refuses.

use junctor_signals::LogSignal;
use junctor_signals::append_records::{
    AwaitDurableReply, LogSpace, LogSpaceChanged, ReserveLogSpaceReply, SpaceExchange, SpaceGrant,
};
use junctor_signals::end_transaction::EndTransactionReply;

use junctor_kernel::Duration;

use super::*;

fn log() -> Address {
    Address::new(NodeId(1), Module::Log, 0)
}

impl Stage {
    fn with_log() -> Stage {
        Stage::with_log_and_credit(SpaceGrant { granted: 100, line: 100, transaction_max: 1000 })
    }

    fn with_log_and_credit(grant: SpaceGrant) -> Stage {
        let stage = Stage::new(false);
        let mut stage = Stage { tc: stage.tc.with_log(log(), Duration::from_seconds(20)), ..stage };
        stage.grant(grant);
        stage
    }

    /// Grants blocks. Returns what tc sends.
    fn grant(&mut self, grant: SpaceGrant) -> Vec<(Address, Signal)> {
        self.send(log(), TcSignal::ReserveLogSpaceReply(ReserveLogSpaceReply { grant }))
    }

    /// Commits an autocommit statement on one partition in one phase. Returns the signals of tc.
    fn commit_in_one_phase(&mut self) -> Vec<(Address, Signal)> {
        let parts = self.execute(NONE, true, &[0]);
        assert!(parts[0].1.one_phase);
        let number = self.sequence.take(0).expect("a free number");
        self.sequence.mark_applied(number, &mut |_, _| {}).expect("the number was taken");
        let reply = WriteRowsReply { newest: number, ..reply_of(&parts[0].1, Vec::new(), None) };
        self.send(ldm(0), TcSignal::WriteRowsReply(reply))
    }

    fn report_space(&mut self, space: LogSpace) {
        assert!(self.send(log(), TcSignal::LogSpaceChanged(LogSpaceChanged { space })).is_empty());
    }
}

/// The number that tc awaits.
fn awaited(sent: &[(Address, Signal)]) -> CommitNumber {
    match sent {
        [(to, Signal::Log(LogSignal::AwaitDurable(signal)))] if *to == log() => signal.number,
        other => panic!("{other:?}"),
    }
}

fn ended(mut sent: Vec<(Address, Signal)>) -> EndTransactionReply {
    match sent.pop() {
        Some((_, Signal::Sql(SqlSignal::EndTransactionReply(reply)))) if sent.is_empty() => reply,
        other => panic!("{other:?}, {sent:?}"),
    }
}

#[test]
fn only_commits_to_disk_wait_for_the_log() {
    let mut stage = Stage::with_log();
    let number = awaited(&stage.commit_in_one_phase());
    assert_eq!(number, CommitNumber(1));
    let reply = AwaitDurableReply { durable: number };
    assert_eq!(answer(stage.send(log(), TcSignal::AwaitDurableReply(reply))).error, None);

    stage.durability = CommitDurability::Memory;
    assert_eq!(answer(stage.commit_in_one_phase()).error, None);
    assert_eq!(stage.tc.transactions_open(), 0);
}

#[test]
fn the_durability_at_commit_counts() {
    for durability in [CommitDurability::Disk, CommitDurability::Memory] {
        let mut stage = Stage::with_log();
        let parts = stage.execute(NONE, false, &[0]);
        let transaction = parts[0].1.transaction;
        stage.written(&parts[0], Vec::new());
        stage.durability = durability;
        assert_eq!(names(&stage.end(transaction, Ending::Commit)), [(0, "CommitTransaction")]);
        let sent = stage.committed(ldm(0), transaction);
        match durability {
            CommitDurability::Disk => assert_eq!(awaited(&sent), CommitNumber(1)),
            CommitDurability::Memory => assert_eq!(ended(sent).error, None),
        }
    }
}

#[test]
fn a_full_log_refuses_writes_and_commits_until_it_has_room() {
    let mut stage = Stage::with_log();
    let parts = stage.execute(NONE, false, &[0]);
    let transaction = parts[0].1.transaction;
    stage.written(&parts[0], Vec::new());

    stage.report_space(LogSpace::DeviceFull);
    for open in [NONE, transaction] {
        let reply = answer(stage.request(open, !open.is_some(), &[1]));
        assert_eq!(reply.error.map(|error| error.code), Some(ErrorCode::DiskFull));
        assert_eq!(reply.transaction, open, "an open transaction stays open");
    }
    assert_eq!(names(&stage.end(transaction, Ending::Commit)), [(0, "UndoTransaction")]);
    let reply = ended(stage.undone(ldm(0), transaction));
    assert_eq!(reply.error.map(|error| error.code), Some(ErrorCode::DiskFull));
    assert_eq!((stage.sequence.taken(), stage.tc.transactions_open()), (CommitNumber(0), 0));

    stage.report_space(LogSpace::Free);
    assert_eq!(awaited(&stage.commit_in_one_phase()), CommitNumber(1));
}

impl Stage {
    /// Fires the timer for held statements after this time.
    fn fire_held_timer(&mut self, after: Duration) -> Vec<(Address, Signal)> {
        self.now = self.now.plus(after);
        let mut outbox = Outbox::for_test(self.own);
        let event = WorldEvent::Timer { token: super::super::await_durable::HELD_TIMER };
        self.tc.on_world(event, &mut self.context.at(self.now), &mut outbox);
        outbox.take_sent()
    }
}

#[test]
fn writes_wait_for_a_log_near_its_limit_and_commits_do_not() {
    let mut stage = Stage::with_log();
    let parts = stage.execute(NONE, false, &[0]);
    let transaction = parts[0].1.transaction;
    stage.written(&parts[0], Vec::new());
    stage.report_space(LogSpace::Limited);
    assert!(stage.request(NONE, true, &[0]).is_empty(), "the statement is held");
    assert!(stage.request(NONE, true, &[1]).is_empty());
    assert!(stage.fire_held_timer(Duration::from_millis(100)).is_empty());
    assert_eq!(names(&stage.end(transaction, Ending::Commit)), [(0, "CommitTransaction")]);
    awaited(&stage.committed(ldm(0), transaction));
    // There is room: both begin, in their order.
    stage.report_space(LogSpace::Free);
    let begun = stage.fire_held_timer(Duration::from_millis(100));
    assert_eq!(names(&begun), [(0, "WriteRows"), (1, "WriteRows")]);
    assert_eq!(stage.execute(NONE, true, &[0]).len(), 1);
}

#[test]
fn a_write_that_waits_too_long_for_the_log_fails_with_1297() {
    let mut stage = Stage::with_log();
    stage.report_space(LogSpace::Limited);
    assert!(stage.request(NONE, true, &[0]).is_empty());
    assert!(stage.fire_held_timer(Duration::from_seconds(19)).is_empty());
    let reply = answer(stage.fire_held_timer(Duration::from_seconds(2)));
    assert_eq!(reply.error.map(|error| error.code.errno()), Some(1297));
    assert_eq!(stage.tc.transactions_open(), 0);
}

/// The exchange that tc sends to the log, alone.
fn exchanged(sent: &[(Address, Signal)]) -> SpaceExchange {
    match sent {
        [(to, Signal::Log(LogSignal::ReserveLogSpace(signal)))] if *to == log() => signal.exchange,
        other => panic!("{other:?}"),
    }
}

impl Stage {
    /// Begins a transaction with one statement, whose records need these blocks. Returns the transaction.
    fn write_blocks(&mut self, log_blocks: u32) -> TransactionId {
        let parts = self.execute(NONE, false, &[0]);
        let reply = WriteRowsReply { log_blocks, is_long: log_blocks > 20, ..reply_of(&parts[0].1, Vec::new(), None) };
        self.send(ldm(0), TcSignal::WriteRowsReply(reply));
        parts[0].1.transaction
    }
}

#[test]
fn a_commit_without_blocks_waits_until_the_log_grants_them() {
    let mut stage = Stage::with_log_and_credit(SpaceGrant { granted: 10, line: 10, transaction_max: 1000 });
    let (first, second) = (stage.write_blocks(12), stage.write_blocks(3));
    let exchange = exchanged(&stage.end(first, Ending::Commit));
    assert_eq!(exchange, SpaceExchange { wanted: Some(7), spent: 0, returned: 0 });
    // Ten blocks are enough for the second commit, but the first one comes first.
    assert_eq!(stage.end(second, Ending::Commit).len(), 0);
    assert!(stage.fire_held_timer(Duration::from_millis(10)).is_empty());
    let sent = stage.grant(SpaceGrant { granted: 7, line: 10, transaction_max: 1000 });
    let commits: Vec<_> = names(&sent).into_iter().filter(|(_, name)| *name == "CommitTransaction").collect();
    assert_eq!(commits.len(), 2);
    // Spent blocks are reported once they are half of the credit.
    let spent = stage.committed(ldm(0), first);
    let spent: Vec<u64> = spent
        .iter()
        .filter_map(|(_, signal)| match signal {
            Signal::Log(LogSignal::ReserveLogSpace(signal)) => Some(signal.exchange.spent),
            _ => None,
        })
        .collect();
    assert_eq!(spent, [12]);
    stage.committed(ldm(0), second);
}

#[test]
fn a_commit_that_waits_too_long_for_its_blocks_is_undone_with_1297() {
    let mut stage = Stage::with_log_and_credit(SpaceGrant { granted: 10, line: 10, transaction_max: 1000 });
    let transaction = stage.write_blocks(50);
    assert_eq!(exchanged(&stage.end(transaction, Ending::Commit)).wanted, Some(45));
    assert!(stage.fire_held_timer(Duration::from_millis(10)).is_empty());
    assert!(stage.fire_held_timer(Duration::from_seconds(19)).is_empty());
    let sent = stage.fire_held_timer(Duration::from_seconds(2));
    let withdrawn = sent.iter().find_map(|(_, signal)| match signal {
        Signal::Log(LogSignal::ReserveLogSpace(signal)) => signal.exchange.wanted,
        _ => None,
    });
    assert_eq!(withdrawn, Some(0), "nobody waits behind a request that is given up");
    assert!(names(&sent).contains(&(0, "UndoTransaction")));
    let reply = ended(stage.undone(ldm(0), transaction));
    assert_eq!(reply.error.map(|error| error.code.errno()), Some(1297));
    assert_eq!((stage.sequence.taken(), stage.tc.transactions_open()), (CommitNumber(0), 0));
    // A grant that was on its way is returned.
    let exchange = exchanged(&stage.grant(SpaceGrant { granted: 45, line: 10, transaction_max: 1000 }));
    assert_eq!(exchange, SpaceExchange { wanted: None, spent: 0, returned: 45 });
}

#[test]
fn a_transaction_that_needs_half_the_log_fails_with_1297() {
    let mut stage = Stage::with_log();
    let parts = stage.execute(NONE, false, &[0]);
    let reply = WriteRowsReply { log_blocks: 1001, is_long: true, ..reply_of(&parts[0].1, Vec::new(), None) };
    assert_eq!(names(&stage.send(ldm(0), TcSignal::WriteRowsReply(reply))), [(0, "UndoTransaction")]);
    let reply = answer(stage.undone(ldm(0), parts[0].1.transaction));
    assert_eq!(reply.error.map(|error| error.code.errno()), Some(1297));
}

#[test]
fn without_credit_a_statement_commits_in_two_phases() {
    let mut stage = Stage::with_log_and_credit(SpaceGrant { granted: 3, line: 3, transaction_max: 1000 });
    let parts = stage.execute(NONE, true, &[0]);
    assert!(!parts[0].1.one_phase);
    let reply = WriteRowsReply { log_blocks: 2, is_long: false, ..reply_of(&parts[0].1, Vec::new(), None) };
    let sent = stage.send(ldm(0), TcSignal::WriteRowsReply(reply));
    assert!(names(&sent).contains(&(0, "CommitTransaction")), "{sent:?}");
}

#[test]
fn chunks_of_an_undone_commit_keep_the_blocks_of_their_undo() {
    let mut stage = Stage::with_log_and_credit(SpaceGrant { granted: 100, line: 60, transaction_max: 1000 });
    let transaction = stage.write_blocks(60);
    assert_eq!(names(&stage.end(transaction, Ending::Commit)), [(0, "PrepareTransaction")]);
    let error = Some(Error::new(ErrorCode::TemporaryFailure, "why"));
    let reply = PrepareTransactionReply { transaction, epoch: Epoch(0), from: ldm(0), chunk_blocks: 30, error };
    stage.send(ldm(0), TcSignal::PrepareTransactionReply(reply));
    stage.undone(ldm(0), transaction);
    // The chunks have taken 30 of the 100 blocks, and their undo takes one.
    let next = stage.write_blocks(70);
    assert_eq!(exchanged(&stage.end(next, Ending::Commit)).wanted, Some(70 - 69 + 30));
}

#[test]
fn a_statement_that_is_undone_needs_no_blocks() {
    let mut stage = Stage::with_log();
    let transaction = stage.write_blocks(5);
    let parts = stage.execute(transaction, false, &[0]);
    let reply = WriteRowsReply { log_blocks: 1001, is_long: true, ..reply_of(&parts[0].1, Vec::new(), None) };
    stage.send(ldm(0), TcSignal::WriteRowsReply(reply));
    let reply = UndoTransactionReply { transaction, epoch: Epoch(0), from: ldm(0), log_blocks: 5 };
    let reply = answer(stage.send(ldm(0), TcSignal::UndoTransactionReply(reply)));
    assert_eq!(reply.error.map(|error| error.code.errno()), Some(1297));
    let sent = stage.end(transaction, Ending::Commit);
    assert_eq!(names(&sent), [(0, "PrepareTransaction")]);
}
