//! The copy of all rows to a node that returns, while others write.

use junctor_kernel::Random;
use junctor_signals::MainSignal;
use junctor_signals::change_schema::PartitionChange;
use junctor_signals::copy_rows::CopyPartitions;
use junctor_signals::start_epoch::{BeginEpoch, LateNodes};

use super::random::{SESSIONS, STATEMENTS_PER_SESSION, Session, advance, check_entries};
use super::*;

const SECOND: NodeId = NodeId(2);

fn main() -> Address {
    Address::new(NodeId(1), Module::Main, 0)
}

/// Starts an epoch at all blocks. Only the ldms of the second node copy rows.
fn begin_epoch(
    harness: &mut Harness,
    epoch: u32,
    (is_gone, added): (bool, &[(NodeId, NodeId)]),
    copies_at: Option<CommitNumber>,
) {
    let gone = [u64::from(is_gone) << SECOND.0, 0, 0, 0];
    let begin = |copies_at| BeginEpoch {
        epoch: Epoch(epoch),
        gone,
        late: LateNodes::new(&[SECOND], added),
        copies_at,
        admitted: Epoch(0),
        reply_to: None,
    };
    for instance in 0..2 {
        let tc = Address::new(NodeId(1), Module::Tc, instance);
        harness.send(tc, tc, Signal::Tc(TcSignal::BeginEpoch(begin(None))));
        for node in [NodeId(1), SECOND].into_iter().filter(|node| !is_gone || *node != SECOND) {
            let ldm = Address::new(node, Module::Ldm, instance);
            let copies_at = copies_at.filter(|_| node == SECOND);
            harness.send(ldm, ldm, Signal::Ldm(LdmSignal::BeginEpoch(begin(copies_at))));
        }
    }
    harness.run();
}

/// Runs the sessions until each has executed so many statements.
fn run_sessions(
    (harness, table): (&mut Harness, &SampleTable),
    sessions: &mut [Session],
    statements: u32,
    random: &mut Random,
) {
    while sessions.iter().any(|session| session.statements < statements || session.running.is_some()) {
        let number = random.below(SESSIONS as u64) as usize;
        advance(harness, table, &mut sessions[number], number, random);
        let steps = random.below(30);
        let _ = (0..steps).all(|_| harness.step());
        if random.one_in(20) {
            harness.advance(Duration::from_millis(15));
        }
    }
}

/// The second node returns, or it is added to the group of the first one, so that no chain names it.
fn copy_while_others_write(seed: u64, is_added: bool) {
    let added: &[(NodeId, NodeId)] = if is_added { &[(SECOND, NodeId(1))] } else { &[] };
    let mut random = Random::new(seed);
    let mut harness = Harness::new(2, 2, 2);
    let table = SampleTable::new(1 + (seed % 3) as u16);
    harness.create_tables_at(if is_added { 1 } else { 2 }, &[&table.layout, &table.entries]);
    let of_second = harness.empty_node(SECOND.0);
    begin_epoch(&mut harness, 1, (true, &[]), None);
    let rows: Vec<Row> = (0..8).map(|id| (id, id, None)).collect();
    assert_eq!(harness.execute(NONE, true, &table.insert_unique(), table.images(&rows)).error, None);
    harness.shuffle(seed);
    let mut sessions: Vec<Session> = (0..SESSIONS).map(|_| Session::default()).collect();
    run_sessions((&mut harness, &table), &mut sessions, 1 + (seed % 4) as u32, &mut random);
    harness.run();

    // Open transactions go on in the next epoch, unless a node was added that they do not know. Deleted rows
    // are not purged before it, and some are.
    if random.one_in(2) {
        harness.advance(Duration::from_millis(100));
    }
    sessions.iter_mut().for_each(|session| session.may_be_lost = is_added);
    if is_added && random.one_in(2) {
        // The first epoch that knows the node may be one in which it does not join yet.
        begin_epoch(&mut harness, 2, (true, added), None);
        run_sessions((&mut harness, &table), &mut sessions, 2 + (seed % 4) as u32, &mut random);
        harness.run();
    }
    let at = harness.shared().sequence.taken();
    for shared in [harness.shared().clone(), of_second] {
        shared.snapshots.limit_horizon(CommitNumber(at.0 - 1));
    }
    begin_epoch(&mut harness, 3, (false, added), Some(at));
    let chains: Vec<_> = harness.catalog.distribution.chains().map(|(id, chain)| (*id, chain.clone())).collect();
    for (partition, chain) in chains {
        let layout = if partition.table == table.layout.definition.id { &table.layout } else { &table.entries };
        let change = PartitionChange::Create { chain: chain.clone() };
        harness.change_partition(Address { node: SECOND, ..chain[0] }, partition, layout, change);
    }
    harness.main_replies.clear();
    for instance in 0..2 {
        let ldm = Address::new(SECOND, Module::Ldm, instance);
        let copy = CopyPartitions { reply_to: main() };
        harness.send(ldm, main(), Signal::Ldm(LdmSignal::CopyPartitions(copy)));
    }
    if random.one_in(4) {
        // A new epoch drops the requests of the copy, and repeats them.
        let _ = (0..random.below(20)).all(|_| harness.step());
        begin_epoch(&mut harness, 4, (false, added), Some(at));
    }
    run_sessions((&mut harness, &table), &mut sessions, STATEMENTS_PER_SESSION, &mut random);
    for session in &mut sessions {
        if session.transaction.is_some() {
            let ending = if random.one_in(2) { Ending::Rollback } else { Ending::Commit };
            session.end(&mut harness, ending);
        }
    }
    harness.run();
    let ends: Vec<_> =
        harness.main_replies.iter().filter(|reply| matches!(reply, MainSignal::CopyPartitionsReply(_))).collect();
    assert_eq!(ends.len(), 2, "seed {seed}");
    let has_failed =
        |reply: &&&MainSignal| matches!(reply, MainSignal::CopyPartitionsReply(reply) if reply.error.is_some());
    assert_eq!(ends.iter().find(has_failed).map(|reply| format!("{reply:?}")), None, "seed {seed}");
    harness.check_idle();
    check_entries(&harness, &table, seed);
}

#[test]
fn the_copy_has_the_rows_of_the_primary_whatever_others_write() {
    for seed in 0..200 {
        copy_while_others_write(seed, false);
    }
}

#[test]
fn a_node_that_is_added_to_a_group_has_the_rows_of_the_primary_whatever_others_write() {
    for seed in 0..200 {
        copy_while_others_write(seed, true);
    }
}
