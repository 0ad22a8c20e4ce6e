//! Prepare and commit of transactions that an ldm does not know.

use super::*;

/// The address of an ldm that knows no transaction, and a transaction.
fn unknown_transaction() -> (Harness, Address, TransactionId) {
    let (harness, table) = started(1, 1);
    let owner = harness.owner(PartitionId { table: table.layout.definition.id, index: 0 });
    (harness, owner, TransactionId::new(1, 0, 77))
}

#[test]
fn an_unknown_transaction_cannot_be_prepared() {
    let (mut harness, owner, transaction) = unknown_transaction();
    let tc = Address::new(owner.node, Module::Tc, 0);
    let prepare = PrepareTransaction { transaction, epoch: Epoch(0), reply_to: tc };
    harness.send(owner, tc, Signal::Ldm(LdmSignal::PrepareTransaction(prepare)));
    assert!(harness.step());
    match harness.delivery.take_next().map(|reply| reply.signal) {
        Some(Signal::Tc(TcSignal::PrepareTransactionReply(reply))) => {
            assert_eq!(reply.error.expect("its writes are lost").code, ErrorCode::TemporaryFailure);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
#[should_panic(expected = "a participant knows the transaction")]
fn an_unknown_transaction_with_writes_cannot_be_committed() {
    let (mut harness, owner, transaction) = unknown_transaction();
    let (reply_to, number) = (Address::new(owner.node, Module::Tc, 0), CommitNumber(1));
    let commit =
        CommitTransaction { transaction, reply_to, number, position: 0, participants: 1, part: TransactionPart::Rows };
    harness.send(owner, reply_to, Signal::Ldm(LdmSignal::CommitTransaction(commit)));
    harness.run();
}
