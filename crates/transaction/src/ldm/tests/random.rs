//! Sessions execute random statements in random order. At the end, rows, unique entries and replicas must
//! agree.

use std::collections::BTreeSet;

use junctor_kernel::{Duration, Random};
use junctor_model::error::ErrorCode;
use junctor_model::id::{PartitionId, TransactionId};
use junctor_model::row::RowView;
use junctor_model::value::Value;
use junctor_signals::end_transaction::Ending;
use junctor_signals::program::{Access, LockMode};
use junctor_signals::read_rows::OperationId;

use super::RANGES;
use crate::tests::harness::{Harness, ID, K, SampleTable, TestSession, U};

pub(super) const SESSIONS: usize = 6;
pub(super) const STATEMENTS_PER_SESSION: u32 = 12;
const IDS: u64 = 12;

#[derive(Default)]
pub(super) struct Session {
    pub transaction: TransactionId,
    /// The statement in progress, and whether it is autocommit.
    pub running: Option<(OperationId, bool)>,
    pub statements: u32,
    /// Whether a change of the membership may have ended the transaction.
    pub may_be_lost: bool,
}

impl Session {
    /// Ends the transaction.
    pub fn end(&mut self, harness: &mut Harness, ending: Ending) {
        let error = harness.end(self.transaction, ending).error.map(|error| error.code);
        let is_lost = error == Some(ErrorCode::Deadlock) && self.may_be_lost && ending == Ending::Commit;
        assert!(error.is_none() || is_lost, "{error:?}");
        (self.transaction, self.may_be_lost) = (TransactionId::default(), false);
    }
}

#[test]
fn rows_entries_and_replicas_agree_after_any_workload() {
    for seed in 0..60 {
        random_history(seed, 1 + (seed % 3) as u8);
    }
}

/// Runs the workload of a seed to its end.
pub(super) fn random_history(seed: u64, nodes: u8) -> (Harness, SampleTable) {
    let mut random = Random::new(seed);
    let mut harness = Harness::new(nodes, 2, 2);
    let table = SampleTable::new(1 + (seed % 4) as u16);
    harness.create_tables(&[&table.layout, &table.entries]);
    harness.shuffle(seed);
    let mut sessions: Vec<Session> = (0..SESSIONS).map(|_| Session::default()).collect();
    let mut idle_rounds = 0;
    while sessions.iter().any(|session| session.statements < STATEMENTS_PER_SESSION || session.running.is_some()) {
        let number = random.below(SESSIONS as u64) as usize;
        let before = harness.delivery.now;
        advance(&mut harness, &table, &mut sessions[number], number, &mut random);
        for _ in 0..random.below(30) {
            if !harness.step() {
                idle_rounds += 1;
                break;
            }
        }
        if random.one_in(20) {
            harness.advance(Duration::from_millis(15));
        }
        assert!(idle_rounds < 10_000 && harness.delivery.now >= before, "seed {seed}: the sessions stand still");
    }
    for session in &mut sessions {
        if session.transaction.is_some() {
            session.end(&mut harness, Ending::Commit);
        }
    }
    harness.advance(Duration::from_millis(100));
    harness.check_idle();
    check_entries(&harness, &table, seed);
    (harness, table)
}

/// Handles the session's reply, or begins the session's next statement.
pub(super) fn advance(
    harness: &mut Harness,
    table: &SampleTable,
    session: &mut Session,
    number: usize,
    random: &mut Random,
) {
    if let Some((operation, autocommit)) = session.running {
        let Some(reply) = harness.statement(operation) else { return };
        session.running = None;
        session.statements += 1;
        session.transaction = reply.transaction;
        assert!(!autocommit || !reply.transaction.is_some());
        let code = reply.error.map(|error| error.code);
        let is_expected = matches!(code, None | Some(ErrorCode::DuplicateEntry | ErrorCode::Deadlock));
        assert!(is_expected, "{code:?}");
        return;
    }
    let is_last = session.statements >= STATEMENTS_PER_SESSION;
    if session.transaction.is_some() && (is_last || random.one_in(4)) {
        let ending = if random.one_in(3) { Ending::Rollback } else { Ending::Commit };
        return session.end(harness, ending);
    }
    if is_last {
        return;
    }
    let autocommit = !session.transaction.is_some() && random.one_in(2);
    let mut id = || random.below(IDS) as i64;
    let (low, high) = (id(), id());
    let ids = [id(), id()];
    let keys = if ids[0] == ids[1] { table.keys(&ids[..1]) } else { table.keys(&ids) };
    let number_or_null = |value: i64| (value % 3 != 0).then_some(value);
    let (program, parts) = match random.below(8) {
        // Texts of some lengths, so that later changes are recorded as edits.
        0 | 1 => {
            let row = (low, high, number_or_null(high));
            (table.insert_unique(), table.images_with_text(&[row], &"text ".repeat((high as usize % 4) * 500)))
        }
        2 => (table.insert_unique(), table.images(&[(low, 1, None), (low + 1, 2, number_or_null(low))])),
        3 => (table.delete(Access::PrimaryKeys), keys),
        4 => (table.add_to(K, RANGES, 3), table.range(low.min(high), low.max(high))),
        5 => (table.add_to(U, Access::PrimaryKeys, 1), keys),
        6 => (table.add_to(ID, Access::PrimaryKeys, 1), keys),
        _ => (table.lock(LockMode::Shared, Access::PrimaryKeys), keys),
    };
    let operation = harness.begin_execute(
        TestSession { tc: (number % 2) as u16, transaction: session.transaction, autocommit },
        &program,
        parts,
    );
    session.running = Some((operation, autocommit));
}

/// Asserts that every row with a unique key has its entry, and every entry its row.
pub(super) fn check_entries(harness: &Harness, table: &SampleTable, seed: u64) {
    let mut expected = BTreeSet::new();
    let mut found = BTreeSet::new();
    let rows_of = |layout: &junctor_model::schema::TableLayout, index| {
        let partition = PartitionId { table: layout.definition.id, index };
        harness.ldm(harness.owner(partition)).committed_rows(partition).expect("the partition is there")
    };
    for index in 0..table.layout.definition.partition_count {
        for (_, image) in rows_of(&table.layout, index) {
            let view = RowView::new(&table.layout.row_format, &image);
            let Value::Int(id) = view.column(ID).to_value() else { panic!("an integer") };
            let (partition, key, _) = table.key(id);
            assert_eq!(partition, index, "seed {seed}: a row lies where reads do not look for it");
            if let Value::Int(value) = view.column(U).to_value() {
                let reference = [&index.to_be_bytes()[..], &key].concat();
                let entry = [&[1], &table.key(value).1[..]].concat();
                assert!(expected.insert((entry, reference)));
            }
        }
        for (_, image) in rows_of(&table.entries, index) {
            let view = RowView::new(&table.entries.row_format, &image);
            let bytes = |column| match view.column(junctor_model::id::ColumnNumber(column)).to_value() {
                Value::Bytes(bytes) => bytes,
                other => panic!("{other:?}"),
            };
            assert!(found.insert((bytes(0), bytes(1))));
        }
    }
    assert_eq!(found, expected, "seed {seed}: entries do not agree with the rows");
}
