//! Commits whose numbers come from the sequencer of a cluster.

use junctor_signals::MainSignal;
use junctor_signals::commit_transaction::SeenStable;
use junctor_signals::start_epoch::{BeginEpoch, LateNodes};
use junctor_signals::take_number::{NumberTaken, RequestNumber};

use super::*;
use junctor_storage::commit_sequence::Numbering;

impl Stage {
    fn in_cluster(has_backups: bool) -> Stage {
        let mut stage = Stage::new(has_backups);
        stage.tc.numbering = Numbering::Cluster;
        stage
    }

    fn number_taken(&mut self, transaction: TransactionId, number: u64) -> Vec<(Address, Signal)> {
        let number = CommitNumber(number);
        self.send(main(), TcSignal::NumberTaken(NumberTaken { transaction, number }))
    }

    /// Main stores the stable number, and says up to where numbers are confirmed.
    fn confirmed(&mut self, number: u64) -> Vec<(Address, Signal)> {
        let number = CommitNumber(number);
        self.sequence.publish(number.max(self.sequence.taken()), number);
        self.send(main(), TcSignal::CommitStable(CommitStable { number }))
    }
}

#[test]
fn a_statement_that_has_seen_a_commit_waits_until_it_is_stable_here_and_not_until_it_is_confirmed() {
    let mut stage = Stage::in_cluster(true);
    let waiting = stage.execute(NONE, true, &[0]);
    let own = waiting[0].1.transaction;
    stage.written(&waiting[0], Vec::new());
    request(stage.prepared(ldm(0), own, None));
    assert!(stage.number_taken(own, 9).is_empty());
    let parts = stage.execute(NONE, false, &[1]);
    let reply = WriteRowsReply { newest: CommitNumber(9), ..reply_of(&parts[0].1, Vec::new(), None) };
    assert_eq!(names(&stage.send(ldm(1), TcSignal::WriteRowsReply(reply))), [(0, "AwaitStable")]);
    let stable = |stage: &mut Stage, number| {
        let number = CommitNumber(number);
        stage.sequence.publish(number.max(stage.sequence.taken()), number);
        stage.send(main(), TcSignal::SeenStable(SeenStable { number }))
    };
    assert!(stable(&mut stage, 8).is_empty());
    assert_eq!(names(&stable(&mut stage, 9)), [(0, "ExecuteStatementReply")]);
    // The commit itself is answered when it is confirmed.
    assert_eq!(answer(stage.confirmed(9)).error, None);
}

fn main() -> Address {
    Address::new(NodeId(1), Module::Main, 0)
}

fn request(sent: Vec<(Address, Signal)>) -> RequestNumber {
    match <[_; 1]>::try_from(sent) {
        Ok([(to, Signal::Main(MainSignal::RequestNumber(request)))]) if to == main() => request,
        other => panic!("a request for a number: {other:?}"),
    }
}

#[test]
fn a_commit_asks_main_for_its_number_and_is_answered_when_the_number_is_confirmed() {
    let mut stage = Stage::in_cluster(true);
    let parts = stage.execute(NONE, true, &[0]);
    assert!(!parts[0].1.one_phase);
    let transaction = parts[0].1.transaction;
    assert_eq!(names(&stage.written(&parts[0], Vec::new())), [(0, "PrepareTransaction")]);
    let request = request(stage.prepared(ldm(0), transaction, None));
    let participants = request.participants.as_slice().iter().map(|it| (it.node.0, it.part, it.ldm));
    let expected = [(1, TransactionPart::Rows, 0), (2, TransactionPart::Images, 0)];
    assert_eq!(participants.collect::<Vec<_>>(), expected);
    assert_eq!((request.transaction, request.awaits_disk), (transaction, true));
    assert!(stage.number_taken(transaction, 9).is_empty());
    assert!(stage.confirmed(8).is_empty());
    assert_eq!(answer(stage.confirmed(12)).error, None);
    assert_eq!(stage.tc.transactions_open(), 0);
}

#[test]
fn news_of_waits_of_an_earlier_life_of_the_node_is_dropped() {
    let mut stage = Stage::in_cluster(true);
    let earlier = TransactionId::new(1, 0, 77 << 16);
    let partition = PartitionId { table: stage.table.layout.definition.id, index: 0 };
    let started = LockWaitStarted {
        transaction: earlier,
        at: backup(0),
        sequence: 1,
        partition,
        row: None,
        changed: 0,
        has_other_requests: true,
        blockers: Vec::new(),
        are_gone: false,
    };
    assert!(stage.send(backup(0), TcSignal::LockWaitStarted(started)).is_empty());
    let ended = LockWaitEnded { transaction: earlier, at: backup(0), sequence: 1 };
    assert!(stage.send(backup(0), TcSignal::LockWaitEnded(ended)).is_empty());
    assert_eq!(stage.tc.transactions_open(), 0);
}

#[test]
fn a_participant_with_locks_only_may_answer_before_the_number_arrives() {
    for is_first in [true, false] {
        let mut stage = Stage::in_cluster(false);
        let first = stage.execute(NONE, false, &[0]);
        let transaction = first[0].1.transaction;
        stage.written(&first[0], Vec::new());
        let second = stage.execute(transaction, false, &[1]);
        let reply = WriteRowsReply { changed: 0, ..reply_of(&second[0].1, Vec::new(), None) };
        stage.send(ldm(1), TcSignal::WriteRowsReply(reply));
        let request = request(stage.end(transaction, Ending::Commit));
        let parts = request.participants.as_slice().iter().map(|it| it.part).collect::<Vec<_>>();
        assert_eq!(parts, [TransactionPart::Rows, TransactionPart::Locks]);
        if is_first {
            assert!(stage.applied(TransactionPart::Locks, ldm(1), transaction).is_empty());
        }
        assert!(stage.number_taken(transaction, 5).is_empty());
        assert_eq!(stage.confirmed(5).is_empty(), !is_first);
        if !is_first {
            assert_eq!(stage.applied(TransactionPart::Locks, ldm(1), transaction).len(), 1);
        }
        assert_eq!(stage.tc.transactions_open(), 0);
    }
}

#[test]
fn replies_to_the_life_before_are_dropped() {
    replies_to_the_life_before(false);
}

#[test]
fn replies_to_the_life_before_are_dropped_after_the_first_epoch_has_started() {
    replies_to_the_life_before(true);
}

fn replies_to_the_life_before(has_begun: bool) {
    let mut stage = Stage::in_cluster(true);
    if has_begun {
        stage.send(main(), begin_epoch(1, [0; 4]));
    }
    let parts = stage.execute(NONE, true, &[0]);
    let (write, other) = (&parts[0].1, Address::new(NodeId(2), Module::Ldm, 0));
    let earlier = TransactionId(write.transaction.0 ^ 1 << 20);
    let reply = WriteRowsReply { transaction: earlier, ..reply_of(write, Vec::new(), None) };
    assert!(stage.send(other, TcSignal::WriteRowsReply(reply)).is_empty());
    assert!(stage.prepared(other, earlier, None).is_empty());
    assert!(stage.undone(other, earlier).is_empty());
    assert!(stage.applied(TransactionPart::Locks, other, earlier).is_empty());
    // The transactions of this life go on.
    stage.written(&parts[0], Vec::new());
    assert_eq!(stage.tc.transactions_open(), 1);
}

/// Node 2 has left with the epochs before.
fn without_backups(epoch: u32) -> TcSignal {
    begin_epoch(epoch, [1 << 2, 0, 0, 0])
}

fn begin_epoch(epoch: u32, gone: [u64; 4]) -> TcSignal {
    let (epoch, late, copies_at, reply_to) = (Epoch(epoch), LateNodes::default(), None, None);
    TcSignal::BeginEpoch(BeginEpoch { epoch, gone, late, copies_at, admitted: Epoch(0), reply_to })
}

#[test]
fn statements_for_the_life_before_do_not_begin() {
    let mut stage = Stage::in_cluster(false);
    let elsewhere = Address::new(NodeId(9), Module::Sql, 0);
    let refused = |stage: &mut Stage, epoch: u32| {
        let reply = answer(stage.execute_from(elsewhere, Epoch(epoch), NONE));
        assert_eq!(reply.error.map(|error| error.code), Some(ErrorCode::Deadlock));
        assert_eq!(stage.tc.transactions_open(), 0);
    };
    refused(&mut stage, 2);
    let (epoch, late, copies_at, reply_to) = (Epoch(3), LateNodes::default(), None, None);
    let begin = BeginEpoch { epoch, gone: [0; 4], late, copies_at, admitted: epoch, reply_to };
    assert!(stage.send(main(), TcSignal::BeginEpoch(begin)).is_empty());
    refused(&mut stage, 2);
    // A node without data that knows this life.
    assert_eq!(writes(stage.execute_from(elsewhere, epoch, NONE)).len(), 1);
}

#[test]
fn the_start_of_an_epoch_rolls_back_what_has_no_number_and_waits_for_no_node_that_is_gone() {
    for is_prepared in [true, false] {
        let mut stage = Stage::in_cluster(true);
        let parts = stage.execute(NONE, true, &[0]);
        let transaction = parts[0].1.transaction;
        stage.written(&parts[0], Vec::new());
        if is_prepared {
            request(stage.prepared(ldm(0), transaction, None));
        }
        let undo = stage.send(main(), without_backups(1));
        assert_eq!(undo.iter().map(|(to, _)| *to).collect::<Vec<_>>(), [ldm(0)]);
        assert!(stage.send(main(), without_backups(1)).is_empty());
        // An answer to the prepare of the epoch before.
        assert!(stage.prepared(ldm(0), transaction, None).is_empty());
        let reply = answer(stage.undone_in(Epoch(1), ldm(0), transaction));
        assert_eq!(reply.error.map(|error| error.code), Some(ErrorCode::Deadlock));
        assert_eq!(stage.tc.transactions_open(), 0);
    }
}

#[test]
fn a_number_that_was_taken_before_the_epoch_commits_and_later_writes_have_no_backup_that_is_gone() {
    let mut stage = Stage::in_cluster(true);
    let parts = stage.execute(NONE, true, &[0]);
    let transaction = parts[0].1.transaction;
    stage.written(&parts[0], Vec::new());
    request(stage.prepared(ldm(0), transaction, None));
    assert!(stage.number_taken(transaction, 9).is_empty());
    assert!(stage.send(main(), without_backups(1)).is_empty());
    assert_eq!(answer(stage.confirmed(9)).error, None);
    let parts = stage.execute(NONE, true, &[1]);
    stage.written(&parts[0], Vec::new());
    let transaction = parts[0].1.transaction;
    // Nothing is left to prepare without backups.
    let undo = stage.send(main(), begin_epoch(2, [0; 4]));
    assert_eq!(undo.iter().map(|(to, _)| *to).collect::<Vec<_>>(), [ldm(1)]);
    assert_eq!(stage.undone_in(Epoch(2), ldm(1), transaction).len(), 1);
}

/// Partition 0 has its primary at node 1, partition 1 at node 2.
fn with_two_primaries() -> Stage {
    let mut stage = Stage::in_cluster(true);
    let mut catalog = Catalog::clone(&stage.tc.catalog);
    for layout in [&stage.table.layout, &stage.table.entries] {
        catalog.distribution.put(PartitionId { table: layout.definition.id, index: 1 }, vec![backup(1), ldm(1)]);
    }
    stage.publish(catalog);
    stage
}

fn is_lost(sent: Vec<(Address, Signal)>) -> bool {
    answer(sent).error.is_some_and(|error| error.code == ErrorCode::Deadlock && error.message.contains("has left"))
}

fn targets(sent: &[(Address, Signal)]) -> Vec<Address> {
    sent.iter().map(|(to, _)| *to).collect()
}

#[test]
fn a_statement_with_parts_at_a_node_that_is_gone_fails_when_the_other_parts_have_answered() {
    let mut stage = with_two_primaries();
    let parts = stage.execute(NONE, false, &[0, 1]);
    assert_eq!(parts.iter().map(|(to, _)| *to).collect::<Vec<_>>(), [ldm(0), backup(1)]);
    let transaction = parts[0].1.transaction;
    assert_eq!(names(&stage.send(main(), without_backups(1))), [(0, "InterruptWrites")]);
    // An answer that was under way.
    assert!(stage.written(&parts[1], Vec::new()).is_empty());
    let undo = stage.written(&parts[0], Vec::new());
    assert_eq!(targets(&undo), [ldm(0)]);
    assert!(is_lost(stage.undone_in(Epoch(1), ldm(0), transaction)));
    assert_eq!(stage.tc.transactions_open(), 0);
}

#[test]
fn a_transaction_with_writes_at_a_node_that_is_gone_cannot_go_on() {
    for commits in [true, false] {
        let mut stage = with_two_primaries();
        let parts = stage.execute(NONE, false, &[1]);
        let transaction = parts[0].1.transaction;
        stage.written(&parts[0], Vec::new());
        assert!(stage.send(main(), without_backups(1)).is_empty());
        let sent =
            if commits { stage.end(transaction, Ending::Commit) } else { stage.request(transaction, false, &[0]) };
        match commits {
            true => match &sent[..] {
                [(_, Signal::Sql(SqlSignal::EndTransactionReply(reply)))] => assert!(reply.error.is_some()),
                other => panic!("{other:?}"),
            },
            false => assert!(is_lost(sent)),
        }
        assert_eq!(stage.tc.transactions_open(), 0);
        // The next one writes at the backup that is primary now.
        let parts = stage.execute(NONE, false, &[1]);
        assert_eq!(parts[0].0, ldm(1));
    }
}

#[test]
fn a_decided_commit_does_not_wait_for_the_locks_of_a_node_that_is_gone() {
    let mut stage = with_two_primaries();
    let first = stage.execute(NONE, false, &[0]);
    let transaction = first[0].1.transaction;
    stage.written(&first[0], Vec::new());
    let second = stage.execute(transaction, false, &[1]);
    let reply = WriteRowsReply { changed: 0, ..reply_of(&second[0].1, Vec::new(), None) };
    stage.send(backup(1), TcSignal::WriteRowsReply(reply));
    assert_eq!(names(&stage.end(transaction, Ending::Commit)), [(0, "PrepareTransaction")]);
    request(stage.prepared(ldm(0), transaction, None));
    assert!(stage.number_taken(transaction, 9).is_empty());
    assert!(stage.send(main(), without_backups(1)).is_empty());
    assert_eq!(stage.confirmed(9).len(), 1);
    assert_eq!(stage.tc.transactions_open(), 0);
}
