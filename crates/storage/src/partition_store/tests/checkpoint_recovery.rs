//! Property test: whatever happens between the steps of checkpoint rounds, a load and a replay of everything
//! after the round's begin give the committed rows.

use std::collections::BTreeSet;

use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::checkpoint::{Files, PARTITION, build, load, place_table};
use super::*;
use crate::checkpoint::FrameBuilder;
use crate::partition_store::{CheckpointCursor, CheckpointStep};

#[derive(Clone, Debug)]
enum Step {
    Insert {
        transaction: usize,
        id: i32,
        body_bytes: usize,
    },
    /// Inserts a row under a row id of another page or cell.
    InsertAt {
        transaction: usize,
        row: u32,
    },
    /// Inserts rows that together are longer than a frame.
    InsertMany {
        transaction: usize,
    },
    Update {
        transaction: usize,
        id: i32,
        body_bytes: usize,
    },
    Delete {
        transaction: usize,
        id: i32,
    },
    DeleteAll {
        transaction: usize,
    },
    NextStatement {
        transaction: usize,
    },
    UndoStatement {
        transaction: usize,
    },
    Abort {
        transaction: usize,
    },
    /// Takes a commit number, which is stable only after `Commit`.
    Take {
        transaction: usize,
    },
    Commit {
        transaction: usize,
        is_long: bool,
    },
    Stamp {
        budget: usize,
    },
    RaiseStable {
        lag: u64,
    },
    Purge {
        lag: u64,
        budget: usize,
    },
    Compact {
        budget: usize,
    },
    BeginRound,
    RoundSteps {
        count: usize,
    },
    EndRound {
        is_kept: bool,
    },
    MarkOldestFile,
    Crash {
        lag: u64,
    },
}

/// Mistakes that the property must notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Planted {
    /// A cell with an open version does not count as touched again.
    ClearTouchedOverOpenRows,
    /// The marks of a table go with its last row.
    LoseRecordsOfEmptiedTables,
    /// An abandoned round does not return its marks.
    ForgetMarksOfAbandonedRounds,
    /// Replay does not touch.
    ForgetMarksOfReplay,
    /// Rows newer than the round's begin count as written by the round.
    WrittenAtTheEndOfTheRound,
    /// The manifest does not wait for the newest commit in the frames.
    EarlyManifest,
    /// Replay begins at the newest commit in the frames.
    ReplayFromTheEndOfTheRound,
    /// A delta counts as a whole entry.
    DeltaReplacesPage,
}

const PLANTED: [Planted; 8] = [
    Planted::ClearTouchedOverOpenRows,
    Planted::LoseRecordsOfEmptiedTables,
    Planted::ForgetMarksOfAbandonedRounds,
    Planted::ForgetMarksOfReplay,
    Planted::WrittenAtTheEndOfTheRound,
    Planted::EarlyManifest,
    Planted::ReplayFromTheEndOfTheRound,
    Planted::DeltaReplacesPage,
];

/// The row ids of `InsertAt`, in several cells and pages.
const FAR_ROWS: [u32; 8] = [3, 63, 64, 200, 4_095, 4_096, 8_300, 12_287];
const IDS: i32 = 12;

#[derive(Clone, Debug, Default)]
struct Open {
    transaction: TransactionId,
    statement: u32,
    rows: BTreeSet<u32>,
    number: Option<u64>,
}

type Rows = BTreeMap<u32, Vec<u8>>;

#[derive(Debug)]
struct Manifest {
    begin: u64,
    newest: u64,
    /// The page table, if a round has written one.
    table: Option<Vec<u8>>,
    next_file: u32,
}

/// A row, and its image; `None` for a deletion.
type LoggedChange = (u32, Option<Vec<u8>>);

/// A partition with its log and checkpoint files.
struct Node {
    store: PartitionStore,
    is_backup: bool,
    planted: Option<Planted>,
    open: [Open; 3],
    transactions: u64,
    taken: u64,
    stable: u64,
    durable: u64,
    /// The operations of each commit.
    log: BTreeMap<u64, Vec<LoggedChange>>,
    files: Files,
    next_file: u32,
    /// Files that the next round is to free.
    rewritten_files: Vec<u32>,
    round: Option<(CheckpointCursor, FrameBuilder, bool)>,
    manifest: Option<Manifest>,
}

impl Node {
    fn new(is_backup: bool, planted: Option<Planted>) -> Node {
        let mut node = Node {
            store: PartitionStore::new(layout(), pool(8192)),
            is_backup,
            planted,
            open: Default::default(),
            transactions: 0,
            taken: 0,
            stable: 0,
            durable: 0,
            log: BTreeMap::new(),
            files: Files::default(),
            next_file: 1,
            rewritten_files: Vec::new(),
            round: None,
            manifest: None,
        };
        (0..3).for_each(|transaction| node.begin(transaction));
        node
    }

    fn begin(&mut self, transaction: usize) {
        self.transactions += 1;
        self.open[transaction] =
            Open { transaction: TransactionId(self.transactions), statement: 1, ..Open::default() };
    }

    fn writer(&self, transaction: usize) -> Writer {
        let Open { transaction, statement, .. } = self.open[transaction];
        writer(transaction, StatementNumber(statement))
    }

    fn run(&mut self, step: &Step) {
        match *step {
            Step::Insert { transaction, id, body_bytes } => self.insert(transaction, id, body_bytes, None),
            Step::InsertAt { transaction, row } => self.insert(transaction, 1_000 + row as i32, 5, Some(RowId(row))),
            Step::InsertMany { transaction } => {
                (100..148).for_each(|id| self.insert(transaction, id, 7_500, None));
            }
            Step::Update { transaction, id, body_bytes } => self.change(transaction, id, Some(body_bytes)),
            Step::Delete { transaction, id } => self.change(transaction, id, None),
            Step::DeleteAll { transaction } => {
                let far = FAR_ROWS.iter().map(|row| 1_000 + *row as i32);
                (0..IDS).chain(100..148).chain(far).for_each(|id| self.change(transaction, id, None));
            }
            Step::NextStatement { transaction } => self.open[transaction].statement += 1,
            Step::UndoStatement { transaction } => self.undo(transaction, self.open[transaction].statement - 1),
            Step::Abort { transaction } => {
                self.undo(transaction, 0);
                if self.open[transaction].number.is_none() {
                    self.begin(transaction);
                }
            }
            Step::Take { transaction } => {
                if self.open[transaction].number.is_none() {
                    self.taken += 1;
                    self.open[transaction].number = Some(self.taken);
                }
            }
            Step::Commit { transaction, is_long } => self.commit(transaction, is_long),
            Step::Stamp { budget } => _ = self.store.stamp_step(budget),
            Step::RaiseStable { lag } => self.raise_stable(lag),
            Step::Purge { lag, budget } => {
                self.store.purge_step(CommitNumber(self.stable.saturating_sub(lag)), budget);
            }
            Step::Compact { budget } => _ = self.store.compact_step(budget),
            Step::BeginRound => {
                if self.round.is_none() {
                    self.begin_round();
                }
            }
            Step::RoundSteps { count } => self.run_round(count),
            Step::EndRound { is_kept } => self.end_round(is_kept),
            Step::MarkOldestFile => {
                self.rewritten_files = self.files.files.keys().next().copied().into_iter().collect();
            }
            Step::Crash { lag } => self.crash(lag),
        }
        if self.planted == Some(Planted::LoseRecordsOfEmptiedTables) && self.store.rows.map().used() == 0 {
            self.store.rows.map_mut().touched_mut().fill(0);
        }
    }

    fn insert(&mut self, transaction: usize, id: i32, body_bytes: usize, row: Option<RowId>) {
        if self.open[transaction].number.is_some() {
            return;
        }
        let (key, hash) = integer_key(id);
        let value = Values { k: Some(self.transactions as i32), name: format!("name {id}"), body_bytes };
        let image = row_image(self.store.layout(), id, &value);
        let key = HashedKey { hash, key: &key };
        let written = match row {
            None => self.store.insert(key, &image, self.writer(transaction)),
            Some(row) => {
                // A primary never takes an id or a key that still has versions. The primary of a backup has
                // purged only what is stable.
                let is_free = |row| {
                    let newest = self.store.newest(row);
                    let number = newest.map(|newest| self.store.state(&newest).commit_number());
                    number.is_none_or(|number| self.is_backup && number.is_some_and(|number| number.0 <= self.stable))
                };
                if !is_free(row) || !self.store.find_primary(key.key, hash).is_none_or(is_free) {
                    return;
                }
                self.store.insert_at(row, key, &image, self.writer(transaction))
            }
        };
        match written {
            Ok(row) => _ = self.open[transaction].rows.insert(row.0),
            Err(error) => assert_ne!(error, WriteError::OutOfMemory),
        }
    }

    fn change(&mut self, transaction: usize, id: i32, body_bytes: Option<usize>) {
        let (key, hash) = integer_key(id);
        let Some(row) = self.store.find_primary(&key, hash) else { return };
        if self.open[transaction].number.is_some() {
            return;
        }
        let written = match body_bytes {
            Some(body_bytes) => {
                let value = Values { k: Some(self.transactions as i32), name: format!("name {id}"), body_bytes };
                let image = row_image(self.store.layout(), id, &value);
                self.store.update(row, &image, self.writer(transaction))
            }
            None => self.store.delete(row, self.writer(transaction)),
        };
        if written.is_ok() {
            self.open[transaction].rows.insert(row.0);
        }
    }

    fn undo(&mut self, transaction: usize, newer_than: u32) {
        let Open { transaction, number, ref rows, .. } = self.open[transaction];
        if number.is_some() {
            return;
        }
        for row in rows {
            self.store.undo(RowId(*row), transaction, StatementNumber(newer_than));
        }
    }

    fn commit(&mut self, index: usize, is_long: bool) {
        let Open { transaction, number, rows, .. } = std::mem::take(&mut self.open[index]);
        let number = number.unwrap_or_else(|| {
            self.taken += 1;
            self.taken
        });
        let mut operations = Vec::new();
        let mut scratch = Vec::new();
        for row in &rows {
            let Some(newest) = self.store.newest(RowId(*row)) else { continue };
            if self.store.state(&newest).transaction() != Some(transaction) {
                continue;
            }
            if !newest.is_deleted() {
                operations.push((*row, Some(self.store.view(&newest, &mut scratch).image().to_vec())));
            } else if self.store.newest_committed(RowId(*row)).is_some_and(|before| !before.is_deleted()) {
                operations.push((*row, None));
            }
        }
        self.log.insert(number, operations);
        let number = CommitNumber(number);
        match is_long {
            true => self.store.settle(transaction, number, rows.into_iter().map(RowId).collect()),
            false => rows.into_iter().for_each(|row| self.store.commit(RowId(row), transaction, number)),
        }
        self.begin(index);
    }

    fn raise_stable(&mut self, lag: u64) {
        let first_unapplied = self.open.iter().filter_map(|open| open.number).min().unwrap_or(u64::MAX);
        let stable = self.taken.min(first_unapplied - 1).saturating_sub(lag);
        self.stable = self.stable.max(stable);
    }

    fn begin_round(&mut self) {
        let begin = CommitNumber(self.stable);
        match self.store.begin_checkpoint(PARTITION, begin, &self.rewritten_files) {
            Some(cursor) => {
                self.files.files.remove(&self.next_file);
                self.round = Some((cursor, FrameBuilder::new(), false));
            }
            // Nothing has changed: the page table of the last manifest is the one of the next.
            None => {
                let table = self.manifest.take().and_then(|manifest| manifest.table);
                self.durable = self.durable.max(begin.0);
                self.manifest = Some(Manifest { begin: begin.0, newest: begin.0, table, next_file: self.next_file });
            }
        }
        self.rewritten_files.clear();
    }

    fn run_round(&mut self, count: usize) {
        let Some((cursor, frame, is_done)) = &mut self.round else { return };
        for _ in 0..count {
            match self.store.checkpoint_step(cursor, CommitNumber(self.stable), frame) {
                CheckpointStep::MoreRows => {}
                CheckpointStep::FrameFull => self.files.place(cursor, frame, self.next_file),
                CheckpointStep::Done => *is_done = true,
            }
        }
    }

    fn end_round(&mut self, is_kept: bool) {
        let Some((mut cursor, frame, is_done)) = self.round.take() else { return };
        if is_kept && (!is_done || self.stable < cursor.newest().0) {
            self.round = Some((cursor, frame, is_done));
            return;
        }
        self.next_file += 1;
        if !is_kept {
            if self.planted == Some(Planted::ForgetMarksOfAbandonedRounds) {
                self.store.spoil_pages(|_, visited| *visited = 0);
            }
            return self.store.end_checkpoint(cursor, false);
        }
        match self.planted {
            Some(Planted::ClearTouchedOverOpenRows) => {
                PartitionStore::spoil_round(&mut cursor, |retouched, _| *retouched = 0);
            }
            Some(Planted::DeltaReplacesPage) => {
                PartitionStore::spoil_round(&mut cursor, |_, is_whole| *is_whole = true)
            }
            Some(Planted::EarlyManifest) => {}
            _ => self.durable = self.durable.max(cursor.newest().0),
        }
        let table = place_table(&self.store, &mut cursor, self.next_file - 1);
        let mut live = BTreeSet::new();
        cursor.table(|file, _| _ = live.insert(file));
        self.files.files.retain(|file, _| live.contains(file));
        let (begin, newest) = (cursor.begin().0, cursor.newest());
        self.manifest = Some(Manifest { begin, newest: newest.0, table: Some(table), next_file: self.next_file });
        self.store.end_checkpoint(cursor, true);
        if self.planted == Some(Planted::WrittenAtTheEndOfTheRound) {
            self.store.spoil_pages(|written, _| *written = (*written).max(newest));
        }
    }

    /// Stops the node with the log ending somewhere between durable and stable, and recovers it.
    fn crash(&mut self, lag: u64) {
        let cut = self.stable.saturating_sub(lag).max(self.durable);
        self.log.retain(|number, _| *number <= cut);
        let mut expected = Rows::new();
        for (row, image) in self.log.values().flatten() {
            match image {
                Some(image) => _ = expected.insert(*row, image.clone()),
                None => _ = expected.remove(row),
            }
        }
        let mut from = 0;
        match &self.manifest {
            Some(manifest) => {
                self.store = match &manifest.table {
                    Some(table) => load(&self.files, table).unwrap(),
                    None => PartitionStore::new(layout(), pool(8192)),
                };
                from = manifest.begin;
                if self.planted == Some(Planted::ReplayFromTheEndOfTheRound) {
                    from = manifest.newest;
                }
                self.next_file = manifest.next_file;
            }
            None => {
                self.store = PartitionStore::new(layout(), pool(8192));
                self.next_file = 1;
            }
        }
        for (number, operations) in self.log.range(from + 1..) {
            for (row, image) in operations {
                match image {
                    Some(image) => self.store.replay_put(RowId(*row), image, CommitNumber(*number)).unwrap(),
                    None => self.store.replay_delete(RowId(*row)),
                }
            }
        }
        if self.planted == Some(Planted::ForgetMarksOfReplay) {
            self.store.rows.map_mut().touched_mut().fill(0);
        }
        build(&mut self.store);
        assert_eq!(rows(&self.store, CommitNumber(u64::MAX)), expected);
        self.round = None;
        // Numbers continue above all that the earlier life took.
        self.taken += 100;
        (self.stable, self.durable) = (self.taken, cut);
        (0..3).for_each(|transaction| self.begin(transaction));
    }

    /// Runs the steps, a whole round at the end, and a last crash.
    fn run_all(&mut self, steps: &[Step]) {
        steps.iter().for_each(|step| self.run(step));
        for transaction in 0..3 {
            self.run(&Step::Commit { transaction, is_long: transaction == 1 });
        }
        self.run(&Step::RaiseStable { lag: 0 });
        self.run(&Step::RoundSteps { count: 1_000 });
        self.run(&Step::EndRound { is_kept: true });
        self.run(&Step::Crash { lag: 0 });
        self.store.check().unwrap();
    }
}

fn rows(store: &PartitionStore, snapshot: CommitNumber) -> Rows {
    let mut scratch = Vec::new();
    let mut rows = Rows::new();
    for row in (0..store.row_id_limit().0).map(RowId) {
        let Some(version) = store.visible(row, snapshot, None) else { continue };
        rows.insert(row.0, store.view(&version, &mut scratch).image().to_vec());
    }
    rows
}

fn any_step() -> impl Strategy<Value = Step> {
    let transaction = 0usize..3;
    let id = 0i32..IDS;
    let body_bytes = || prop_oneof![40 => 0usize..60, 2 => 9_000usize..40_000, 1 => 250_000usize..600_000];
    prop_oneof![
        12 => (transaction.clone(), id.clone(), body_bytes())
            .prop_map(|(transaction, id, body_bytes)| Step::Insert { transaction, id, body_bytes }),
        6 => (transaction.clone(), proptest::sample::select(&FAR_ROWS[..]))
            .prop_map(|(transaction, row)| Step::InsertAt { transaction, row }),
        1 => transaction.clone().prop_map(|transaction| Step::InsertMany { transaction }),
        10 => (transaction.clone(), id.clone(), body_bytes())
            .prop_map(|(transaction, id, body_bytes)| Step::Update { transaction, id, body_bytes }),
        6 => (transaction.clone(), id).prop_map(|(transaction, id)| Step::Delete { transaction, id }),
        3 => transaction.clone().prop_map(|transaction| Step::DeleteAll { transaction }),
        2 => transaction.clone().prop_map(|transaction| Step::NextStatement { transaction }),
        2 => transaction.clone().prop_map(|transaction| Step::UndoStatement { transaction }),
        2 => transaction.clone().prop_map(|transaction| Step::Abort { transaction }),
        4 => transaction.clone().prop_map(|transaction| Step::Take { transaction }),
        14 => (transaction, any::<bool>())
            .prop_map(|(transaction, is_long)| Step::Commit { transaction, is_long }),
        4 => (0usize..6).prop_map(|budget| Step::Stamp { budget }),
        8 => (0u64..3).prop_map(|lag| Step::RaiseStable { lag }),
        5 => (0u64..4, 0usize..20).prop_map(|(lag, budget)| Step::Purge { lag, budget }),
        2 => (0usize..20).prop_map(|budget| Step::Compact { budget }),
        8 => Just(Step::BeginRound),
        12 => prop_oneof![4 => 1usize..6, 2 => Just(400)].prop_map(|count| Step::RoundSteps { count }),
        8 => prop_oneof![5 => Just(true), 1 => Just(false)].prop_map(|is_kept| Step::EndRound { is_kept }),
        1 => Just(Step::MarkOldestFile),
        3 => (0u64..4).prop_map(|lag| Step::Crash { lag }),
    ]
}

fn any_steps() -> impl Strategy<Value = (bool, Vec<Step>)> {
    (prop_oneof![3 => Just(false), 1 => Just(true)], proptest::collection::vec(any_step(), 0..160))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_load_and_a_replay_give_the_committed_rows((is_backup, steps) in any_steps()) {
        Node::new(is_backup, None).run_all(&steps);
    }
}

/// Each of the mistakes in `Planted` fails the property above within some hundred cases.
#[test]
fn planted_mistakes_are_noticed() {
    // The panics of the planted mistakes are expected.
    for planted in PLANTED {
        let config = Config { max_shrink_iters: 0, failure_persistence: None, ..Config::with_cases(2_000) };
        let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
        let noticed = runner.run(&any_steps(), |(is_backup, steps)| {
            Node::new(is_backup, Some(planted)).run_all(&steps);
            Ok(())
        });
        assert!(noticed.is_err(), "{planted:?} is not noticed");
    }
}
