//! Commits on a node with a log: which of them wait for the disk, and what a full disk refuses.

use junctor_signals::LogSignal;
use junctor_signals::append_records::{AwaitDurableReply, LogSpace, LogSpaceChanged};
use junctor_signals::end_transaction::EndTransactionReply;

use junctor_kernel::Duration;

use super::*;

fn log() -> Address {
    Address::new(NodeId(1), Module::Log, 0)
}

impl Stage {
    fn with_log() -> Stage {
        let stage = Stage::new(false);
        Stage { tc: stage.tc.with_log(log()), ..stage }
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
