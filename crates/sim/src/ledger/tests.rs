use super::*;

fn found(rows: &[(i64, i64)]) -> BTreeMap<i64, i64> {
    rows.iter().copied().collect()
}

fn acknowledged(ledger: &mut Ledger, writes: &[(i64, Option<i64>)]) {
    let id = ledger.send(writes);
    ledger.acknowledge(id);
}

/// Three acknowledged transactions, the second with two keys.
fn three() -> Ledger {
    let mut ledger = Ledger::default();
    acknowledged(&mut ledger, &[(1, Some(10))]);
    acknowledged(&mut ledger, &[(1, Some(20)), (2, Some(21))]);
    acknowledged(&mut ledger, &[(3, Some(30))]);
    ledger
}

fn verdict(mut ledger: Ledger, rows: &[(i64, i64)], durability: Durability) -> String {
    ledger.check(&found(rows), durability).err().unwrap_or_default()
}

#[test]
fn with_disk_durability_acknowledged_transactions_must_survive() {
    assert_eq!(verdict(three(), &[(1, 20), (2, 21), (3, 30)], Durability::Disk), "");
    assert!(verdict(three(), &[(1, 20), (2, 21)], Durability::Disk).starts_with("lost transaction"));
    assert!(verdict(three(), &[(1, 10), (3, 30)], Durability::Disk).starts_with("lost transaction"));
    assert!(verdict(three(), &[(1, 20), (2, 21), (3, 31)], Durability::Disk).starts_with("invented value"));
    assert!(verdict(three(), &[(1, 20), (2, 21), (3, 30), (4, 1)], Durability::Disk).starts_with("invented value"));
}

#[test]
fn with_memory_durability_only_the_last_transactions_may_be_lost_in_order() {
    for rows in [&[(1, 20), (2, 21), (3, 30)][..], &[(1, 20), (2, 21)], &[(1, 10)], &[]] {
        assert_eq!(verdict(three(), rows, Durability::Memory), "", "{rows:?}");
    }
    assert!(verdict(three(), &[(1, 10), (3, 30)], Durability::Memory).starts_with("lost middle"));
    assert!(verdict(three(), &[(3, 30)], Durability::Memory).starts_with("lost middle"));
}

#[test]
fn concurrent_transactions_may_be_lost_in_any_order() {
    let mut ledger = Ledger::default();
    let (first, second) = (ledger.send(&[(1, Some(10))]), ledger.send(&[(2, Some(20))]));
    ledger.acknowledge(first);
    ledger.acknowledge(second);
    assert_eq!(verdict(ledger, &[(2, 20)], Durability::Memory), "");
}

#[test]
fn no_transaction_survives_in_part_even_if_its_outcome_is_unknown() {
    let torn = |durability| verdict(three(), &[(1, 20), (3, 30)], durability);
    assert!([torn(Durability::Disk), torn(Durability::Memory)].iter().all(|fault| fault.starts_with("part of")));
    let mut ledger = three();
    let unknown = ledger.send(&[(3, None), (4, Some(40))]);
    ledger.leave_unknown(unknown);
    for rows in [&[(1, 20), (2, 21), (3, 30)][..], &[(1, 20), (2, 21), (4, 40)]] {
        assert_eq!(verdict(ledger.clone(), rows, Durability::Disk), "", "{rows:?}");
    }
    for rows in [&[(1, 20), (2, 21)][..], &[(1, 20), (2, 21), (3, 30), (4, 40)]] {
        assert!(verdict(ledger.clone(), rows, Durability::Disk).starts_with("part of"), "{rows:?}");
    }
}

#[test]
fn a_failed_transaction_leaves_nothing_and_an_unknown_one_makes_its_keys_uncertain() {
    let mut ledger = three();
    let failed = ledger.send(&[(1, Some(40))]);
    assert_eq!(ledger.certain_value(1), None);
    ledger.fail(failed);
    assert_eq!((ledger.certain_value(1), ledger.certain_value(9)), (Some(Some(20)), Some(None)));
    assert!(verdict(ledger.clone(), &[(1, 40), (2, 21), (3, 30)], Durability::Disk).starts_with("invented value"));
    let unknown = ledger.send(&[(1, None)]);
    ledger.leave_unknown(unknown);
    assert_eq!(ledger.certain_value(1), None);
    ledger.check(&found(&[(2, 21), (3, 30)]), Durability::Disk).unwrap();
    assert_eq!(ledger.certain_value(1), Some(None));
}

#[test]
fn writes_found_by_a_check_must_survive_later_checks() {
    let mut ledger = three();
    ledger.check(&found(&[(1, 10)]), Durability::Memory).unwrap();
    assert_eq!(ledger.certain_value(1), Some(Some(10)));
    ledger.check(&found(&[(1, 10)]), Durability::Memory).unwrap();
    assert!(ledger.clone().check(&found(&[(1, 20)]), Durability::Memory).is_err());
    assert!(ledger.check(&found(&[]), Durability::Memory).is_err(), "it was there after an earlier restart");
}

#[test]
fn a_key_that_was_absent_before_and_after_proves_nothing() {
    let mut ledger = Ledger::default();
    acknowledged(&mut ledger, &[(1, Some(10))]);
    acknowledged(&mut ledger, &[(1, None), (2, Some(20))]);
    assert_eq!(verdict(ledger.clone(), &[(2, 20)], Durability::Disk), "");
    assert_eq!(verdict(ledger.clone(), &[], Durability::Memory), "");
    assert!(verdict(ledger, &[], Durability::Disk).starts_with("part of a transaction"));
}
