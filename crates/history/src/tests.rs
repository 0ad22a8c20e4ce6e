use super::toy::{Defect, run};
use crate::check::{Report, check};
use crate::history::{History, Key, Operation, Outcome, ReadValue, Statement, Transaction};
use crate::level::{Anomaly, Level};

const X: Key = Key { kind: crate::history::Kind::List, id: 1 };
const Y: Key = Key { kind: crate::history::Kind::List, id: 2 };
const REGISTER: Key = Key { kind: crate::history::Kind::Register, id: 3 };
const FAMILY: Key = Key { kind: crate::history::Kind::Family, id: 4 };

fn write(key: Key, value: u64) -> Operation {
    Operation::Write { key, value, is_undone: false }
}

fn read(key: Key, values: &[u64]) -> Operation {
    Operation::Read { key, seen: ReadValue::Values(values.to_vec()), locks: false }
}

fn locked(key: Key, values: &[u64]) -> Operation {
    Operation::Read { key, seen: ReadValue::Values(values.to_vec()), locks: true }
}

fn version(key: Key, version: u64, value: u64) -> Operation {
    Operation::Read { key, seen: ReadValue::Version { version, value }, locks: false }
}

/// A transaction from `began` to `ended`, with one statement for each operation.
fn span(began: u64, ended: u64, operations: &[Operation]) -> Transaction {
    let statement =
        |operations: &[Operation]| Statement { sent: began, answered: ended, operations: operations.to_vec() };
    let statements = operations.chunks(1).map(statement).collect();
    Transaction { session: 0, statements, outcome: Outcome::Committed }
}

/// Concurrent transactions.
fn history(transactions: &[&[Operation]]) -> History {
    let transactions = transactions.iter().map(|operations| span(1, 9, operations)).collect();
    History { transactions, ..History::default() }
}

fn with_finals(mut history: History, finals: &[(Key, &[u64])]) -> History {
    history.finals.extend(finals.iter().map(|&(key, values)| (key, ReadValue::Values(values.to_vec()))));
    history
}

fn aborted(mut history: History, transaction: usize) -> History {
    history.transactions[transaction].outcome = Outcome::Aborted;
    history
}

fn anomalies(history: &History) -> Vec<Anomaly> {
    check(history, Level::Serializable).anomalies.into_keys().collect()
}

#[test]
fn a_serial_history_has_no_anomaly() {
    let history = history(&[
        &[write(X, 1), read(X, &[1]), write(Y, 1)],
        &[read(X, &[1]), write(X, 2), read(X, &[1, 2]), read(Y, &[1])],
        &[read(Y, &[1]), read(X, &[1, 2])],
    ]);
    assert_eq!(anomalies(&with_finals(history, &[(X, &[1, 2]), (Y, &[1])])), []);
}

#[test]
fn a_cycle_of_write_dependencies_is_a_dirty_write() {
    let history = history(&[&[write(X, 1), write(Y, 1)], &[write(X, 2), write(Y, 2)]]);
    assert_eq!(anomalies(&with_finals(history, &[(X, &[1, 2]), (Y, &[2, 1])])), [Anomaly::DirtyWrite]);
}

#[test]
fn reading_an_undone_write_is_an_aborted_read() {
    let seen = aborted(history(&[&[write(X, 1)], &[read(X, &[1])]]), 0);
    assert_eq!(anomalies(&seen), [Anomaly::AbortedRead]);
    let at_the_end = aborted(with_finals(history(&[&[write(X, 1)]]), &[(X, &[1])]), 0);
    assert_eq!(anomalies(&at_the_end), [Anomaly::AbortedRead]);
    let taken_back = Operation::Write { key: FAMILY, value: 1, is_undone: true };
    assert_eq!(anomalies(&history(&[&[taken_back], &[read(FAMILY, &[1])]])), [Anomaly::AbortedRead]);
    let by_undone = aborted(aborted(history(&[&[write(X, 1)], &[read(X, &[1])]]), 0), 1);
    assert_eq!(anomalies(&by_undone), [Anomaly::AbortedRead], "an undone reader must not see it either");
}

#[test]
fn reading_a_replaced_write_is_an_intermediate_read() {
    let lists = with_finals(history(&[&[write(X, 1), write(X, 2)], &[read(X, &[1])]]), &[(X, &[1, 2])]);
    assert!(anomalies(&lists).contains(&Anomaly::IntermediateRead));
    let registers =
        history(&[&[write(REGISTER, 5), version(REGISTER, 1, 5), write(REGISTER, 6)], &[version(REGISTER, 1, 5)]]);
    assert!(anomalies(&registers).contains(&Anomaly::IntermediateRead));
}

#[test]
fn transactions_that_read_from_each_other_have_circular_information() {
    let history = history(&[&[write(X, 1), read(Y, &[1])], &[write(Y, 1), read(X, &[1])]]);
    assert_eq!(anomalies(&history), [Anomaly::CircularInformation]);
}

#[test]
fn a_write_that_overtakes_a_locking_read_is_an_anomaly() {
    let transactions: [&[Operation]; 2] = [&[locked(X, &[]), read(Y, &[1])], &[write(X, 1), write(Y, 1)]];
    let finals: &[(Key, &[u64])] = &[(X, &[1]), (Y, &[1])];
    assert_eq!(anomalies(&with_finals(history(&transactions), finals)), [Anomaly::LockedReadOvertaken]);
    let transactions: [&[Operation]; 2] = [&[locked(X, &[]), read(Y, &[])], transactions[1]];
    assert_eq!(anomalies(&with_finals(history(&transactions), finals)), []);
}

#[test]
fn reading_part_of_a_transaction_is_read_skew() {
    let history =
        with_finals(history(&[&[read(X, &[]), read(Y, &[1])], &[write(X, 1), write(Y, 1)]]), &[(X, &[1]), (Y, &[1])]);
    assert_eq!(anomalies(&history), [Anomaly::ReadSkew]);
    assert_eq!(check(&history, Level::ReadCommitted).forbidden, 0);
    assert_eq!(check(&history, Level::RepeatableRead).forbidden, 1);
}

#[test]
fn one_statement_that_reads_part_of_a_transaction_is_wrong_at_every_level() {
    let mut history =
        with_finals(history(&[&[read(X, &[]), read(Y, &[1])], &[write(X, 1), write(Y, 1)]]), &[(X, &[1]), (Y, &[1])]);
    let moved = history.transactions[0].statements.remove(1).operations;
    history.transactions[0].statements[0].operations.extend(moved);
    let report = check(&history, Level::ReadCommitted);
    assert_eq!((report.forbidden, report.anomalies[&Anomaly::StatementSkew]), (1, 1));
    history.transactions[0].outcome = Outcome::Aborted;
    assert_eq!(check(&history, Level::ReadCommitted).forbidden, 1, "the statement was answered all the same");
}

#[test]
fn a_write_over_an_unread_version_is_a_lost_update() {
    let history = with_finals(history(&[&[read(X, &[]), write(X, 1)], &[read(X, &[]), write(X, 2)]]), &[(X, &[1, 2])]);
    assert_eq!(anomalies(&history), [Anomaly::LostUpdate]);
    assert_eq!(check(&history, Level::RepeatableRead).forbidden, 0);
    assert_eq!(check(&history, Level::Snapshot).forbidden, 1);
}

#[test]
fn one_anti_dependency_to_a_writer_of_another_object_is_g_single() {
    let history =
        with_finals(history(&[&[read(X, &[]), write(Y, 2)], &[write(X, 1), write(Y, 1)]]), &[(X, &[1]), (Y, &[1, 2])]);
    assert_eq!(anomalies(&history), [Anomaly::SingleAntiDependency]);
}

#[test]
fn two_transactions_that_read_what_the_other_writes_are_write_skew() {
    let history =
        with_finals(history(&[&[read(X, &[]), write(Y, 1)], &[read(Y, &[]), write(X, 1)]]), &[(X, &[1]), (Y, &[1])]);
    assert_eq!(anomalies(&history), [Anomaly::WriteSkew]);
    assert_eq!(check(&history, Level::Snapshot).forbidden, 0);
    assert_eq!(check(&history, Level::Serializable).forbidden, 1);
}

#[test]
fn two_transactions_that_add_to_what_the_other_counted_are_phantoms() {
    let history = with_finals(
        history(&[&[read(FAMILY, &[]), write(FAMILY, 1)], &[read(FAMILY, &[]), write(FAMILY, 2)]]),
        &[(FAMILY, &[1, 2])],
    );
    assert_eq!(anomalies(&history), [Anomaly::Phantom]);
    assert_eq!(check(&history, Level::Snapshot).forbidden, 0);
}

#[test]
fn a_read_must_observe_earlier_acknowledged_commits() {
    let history = |began: u64| History {
        transactions: vec![span(1, 2, &[write(X, 1)]), span(began, 9, &[read(X, &[])])],
        finals: [(X, ReadValue::Values(vec![1]))].into(),
    };
    assert_eq!(anomalies(&history(1)), []);
    assert_eq!(anomalies(&history(3)), [Anomaly::ReadSkew]);
    assert_eq!(check(&history(3), Level::ReadCommitted).forbidden, 1);
}

#[test]
fn the_next_statement_observes_what_a_locking_read_observed() {
    let mut reader = span(1, 2, &[locked(X, &[1]), read(Y, &[])]);
    reader.statements[1].sent = 3;
    reader.statements[1].answered = 4;
    let transactions = vec![span(1, 9, &[write(X, 1), write(Y, 1)]), reader];
    let finals = [(X, ReadValue::Values(vec![1])), (Y, ReadValue::Values(vec![1]))].into();
    let report = check(&History { transactions, finals }, Level::ReadCommitted);
    assert_eq!((report.forbidden, report.anomalies[&Anomaly::StatementSkew]), (1, 1), "{report}");
}

#[test]
fn writes_follow_the_order_in_which_they_were_acknowledged() {
    let transactions = vec![span(1, 2, &[write(X, 1)]), span(3, 4, &[write(X, 2)])];
    let history = History { transactions, finals: [(X, ReadValue::Values(vec![2, 1]))].into() };
    assert_eq!(anomalies(&history), [Anomaly::RealTimeViolation]);
}

#[test]
fn a_transaction_observes_its_own_writes_and_no_write_is_lost_or_invented() {
    assert_eq!(anomalies(&history(&[&[write(X, 1), read(X, &[])]])), [Anomaly::OwnWriteMissed]);
    assert_eq!(anomalies(&history(&[&[read(X, &[1]), write(X, 1)]])), [Anomaly::InventedValue]);
    assert_eq!(anomalies(&history(&[&[read(X, &[7])]])), [Anomaly::InventedValue]);
    let lost = [X, FAMILY].map(|key| with_finals(history(&[&[write(key, 1)]]), &[(key, &[])]));
    assert_eq!(lost.map(|history| anomalies(&history)), [[Anomaly::LostWrite], [Anomaly::LostWrite]]);
    let mut register = history(&[&[write(REGISTER, 5), version(REGISTER, 1, 5)]]);
    register.finals.insert(REGISTER, ReadValue::Version { version: 0, value: 0 });
    assert_eq!(anomalies(&register), [Anomaly::LostWrite]);
}

#[test]
fn reads_agree_about_the_order_of_writes() {
    let lists = history(&[&[write(X, 1)], &[write(X, 2)], &[read(X, &[1, 2])], &[read(X, &[2])]]);
    assert_eq!(anomalies(&lists), [Anomaly::ConflictingOrder]);
    let versions =
        history(&[&[write(REGISTER, 5), version(REGISTER, 1, 5)], &[write(REGISTER, 6), version(REGISTER, 1, 6)]]);
    assert_eq!(anomalies(&versions), [Anomaly::ConflictingOrder], "both count from the same version");
    let twice = with_finals(history(&[&[write(X, 1)]]), &[(X, &[1, 1])]);
    assert_eq!(anomalies(&twice), [Anomaly::ConflictingOrder]);
}

#[test]
fn a_transaction_with_unknown_outcome_committed_if_it_was_observed() {
    let mut history = history(&[&[write(X, 1), write(Y, 1)], &[read(X, &[1]), read(Y, &[])]]);
    history.transactions[0].outcome = Outcome::Unknown;
    let history = with_finals(history, &[(X, &[1]), (Y, &[])]);
    assert_eq!(anomalies(&history), [Anomaly::LostWrite], "half of it is there");
    let mut unseen = super::tests::history(&[&[write(X, 1)]]);
    unseen.transactions[0].outcome = Outcome::Unknown;
    let report = check(&with_finals(unseen, &[(X, &[])]), Level::Serializable);
    assert_eq!((report.unknown, report.forbidden), (1, 0));
}

/// The combined report over some seeds, for a database that implements level `implemented` with one defect.
fn report_over_seeds(implemented: Level, checked: Level, defect: Defect) -> Report {
    let mut report = Report::default();
    for seed in 1..=6 {
        report.add(check(&run(implemented, defect, seed), checked));
    }
    report
}

#[test]
fn a_correct_database_has_no_violations() {
    for level in Level::ALL {
        let report = report_over_seeds(level, level, Defect::Nothing);
        assert!(report.forbidden == 0 && report.committed > 400, "{level:?}: {report}");
    }
}

#[test]
fn a_stronger_level_detects_a_weaker_database() {
    let finds = |implemented: Level, checked: Level, anomaly: Anomaly| {
        let report = report_over_seeds(implemented, checked, Defect::Nothing);
        assert!(checked.forbids(anomaly) && report.anomalies.contains_key(&anomaly), "{anomaly}: {report}");
    };
    finds(Level::ReadCommitted, Level::RepeatableRead, Anomaly::ReadSkew);
    finds(Level::RepeatableRead, Level::Snapshot, Anomaly::LostUpdate);
    finds(Level::RepeatableRead, Level::Snapshot, Anomaly::SingleAntiDependency);
    finds(Level::Snapshot, Level::Serializable, Anomaly::WriteSkew);
    finds(Level::Snapshot, Level::Serializable, Anomaly::Phantom);
}

#[test]
fn each_defect_is_found_at_every_level_that_forbids_it() {
    // With one snapshot per transaction, a stale or torn statement shows as skew of the transaction.
    let skew = |level: Level| if level == Level::ReadCommitted { Anomaly::StatementSkew } else { Anomaly::ReadSkew };
    for (defect, anomaly) in [
        (Defect::DirtyReads, Anomaly::AbortedRead),
        (Defect::FirstWrites, Anomaly::IntermediateRead),
        (Defect::StaleSnapshots, Anomaly::StatementSkew),
        (Defect::OwnWritesMissed, Anomaly::OwnWriteMissed),
        (Defect::LostWrites, Anomaly::LostWrite),
        (Defect::TornStatements, Anomaly::StatementSkew),
        (Defect::SavepointsForgotten, Anomaly::AbortedRead),
        (Defect::LocksDropped, Anomaly::ConflictingOrder),
    ] {
        for level in [Level::ReadCommitted, Level::RepeatableRead, Level::Snapshot] {
            let anomaly = if anomaly == Anomaly::StatementSkew { skew(level) } else { anomaly };
            let report = report_over_seeds(level, level, defect);
            assert!(report.anomalies.contains_key(&anomaly) && report.forbidden > 0, "{defect:?} {level:?}: {report}");
            assert!(!report.violations.is_empty() && report.violations.len() <= 10);
        }
    }
}
