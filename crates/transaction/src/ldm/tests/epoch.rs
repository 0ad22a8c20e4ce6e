//! Epochs of orders and images: the sender or the receiver has started the later one.

use super::*;

const FIRST: Epoch = Epoch(1);

fn tc() -> Address {
    Address::new(NodeId(1), Module::Tc, 0)
}

fn ldm(node: u8) -> Address {
    Address::new(NodeId(node), Module::Ldm, 0)
}

/// Two replicas of one partition, and a transaction that has added 1 to `k` of a row.
fn with_open_update() -> (Harness, SampleTable, TransactionId) {
    let (mut harness, table) = filled(2, 1, 10);
    let reply = harness.execute(NONE, false, &table.add_to(K, Access::PrimaryKeys, 1), table.keys(&[5]));
    assert_eq!(reply.error, None);
    (harness, table, reply.transaction)
}

#[test]
fn orders_and_images_of_a_later_epoch_wait_until_it_starts() {
    for late in [ldm(1), ldm(2)] {
        for ending in [Ending::Commit, Ending::Rollback] {
            let (mut harness, table, transaction) = with_open_update();
            for at in [tc(), ldm(1), ldm(2)].into_iter().filter(|at| *at != late) {
                harness.start_epoch(at, FIRST);
            }
            harness.begin_end(transaction, ending);
            harness.run();
            let waits = ending == Ending::Commit || late == ldm(1);
            assert_eq!(harness.transactions_open(), usize::from(waits), "{late} {ending:?}");
            assert_eq!(harness.ldm(late).work().parked, usize::from(waits));
            harness.start_epoch(late, FIRST);
            harness.run();
            let committed = i64::from(ending == Ending::Commit);
            assert_eq!(table.rows(&mut harness)[4].1, 50 + committed);
            harness.check_idle();
        }
    }
}

#[test]
fn a_prepare_of_an_earlier_epoch_is_dropped_and_a_rollback_is_obeyed() {
    let (mut harness, table, transaction) = with_open_update();
    harness.start_epoch(ldm(1), FIRST);
    harness.start_epoch(ldm(2), FIRST);
    let prepare = PrepareTransaction { transaction, epoch: Epoch(0), reply_to: tc() };
    harness.send(ldm(1), tc(), Signal::Ldm(LdmSignal::PrepareTransaction(prepare)));
    assert!(harness.step() && !harness.step(), "nobody answers");
    assert_eq!(harness.end(transaction, Ending::Rollback).error, None);
    assert_eq!(table.rows(&mut harness)[4].1, 50);
    harness.check_idle();
}

#[test]
fn images_of_an_earlier_epoch_are_dropped() {
    let (mut harness, table, transaction) = with_open_update();
    harness.start_epoch(ldm(2), FIRST);
    harness.begin_end(transaction, Ending::Commit);
    harness.run();
    assert_eq!(harness.ldm(ldm(2)).work(), LdmWork::default());
    assert_eq!(harness.transactions_open(), 1, "tc waits until the start of the epoch undoes the transaction");
    assert_eq!(table.rows(&mut harness)[4].1, 50);
}
