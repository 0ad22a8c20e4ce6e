//! Property tests: a partition against a model that keeps every version of every key.

use super::*;

#[derive(Clone, Debug)]
enum Step {
    Insert { transaction: usize, id: i32, values: Values },
    Update { transaction: usize, id: i32, values: Values },
    Delete { transaction: usize, id: i32 },
    NextStatement { transaction: usize },
    UndoStatement { transaction: usize },
    Commit { transaction: usize },
    Settle { transaction: usize },
    Stamp { budget: usize },
    Abort { transaction: usize },
    TakeSnapshot,
    DropSnapshot,
    Purge { budget: usize },
    Compact { budget: usize },
}

#[derive(Clone, Debug, PartialEq)]
enum VersionState {
    Committed(u64),
    Open(usize, u32),
}

/// The simplest specification of a partition: every committed version of every key, never purged.
struct Model {
    versions: BTreeMap<i32, Vec<(VersionState, Option<Values>)>>,
    statements: [u32; 3],
    committed: u64,
    snapshots: Vec<u64>,
}

impl Model {
    fn newest(&self, id: i32) -> Option<&(VersionState, Option<Values>)> {
        self.versions.get(&id).and_then(|versions| versions.last())
    }

    fn is_locked_by_other(&self, id: i32, transaction: usize) -> bool {
        matches!(self.newest(id), Some((VersionState::Open(owner, _), _)) if *owner != transaction)
    }

    fn exists(&self, id: i32) -> bool {
        matches!(self.newest(id), Some((_, Some(_))))
    }

    fn put(&mut self, transaction: usize, id: i32, values: Option<Values>) {
        let stamp = VersionState::Open(transaction, self.statements[transaction]);
        self.versions.entry(id).or_default().push((stamp, values));
    }

    fn visible(&self, id: i32, snapshot: u64, own: Option<usize>) -> Option<&Values> {
        let seen = |stamp: &VersionState| match stamp {
            VersionState::Committed(number) => *number <= snapshot,
            VersionState::Open(transaction, _) => own == Some(*transaction),
        };
        let (_, values) = self.versions.get(&id)?.iter().rev().find(|(stamp, _)| seen(stamp))?;
        values.as_ref()
    }
}

struct ModelCheck {
    store: PartitionStore,
    model: Model,
    /// Number of transactions that have ended in each of the three places. The next transaction in a place
    /// gets a new id.
    ended: [u64; 3],
    /// Number of writes refused for lack of memory.
    refused: usize,
}

impl ModelCheck {
    fn new() -> ModelCheck {
        ModelCheck::with_pages(4096)
    }

    fn with_pages(pages: usize) -> ModelCheck {
        ModelCheck::of_layout(layout(), pages)
    }

    fn of_layout(layout: Arc<TableLayout>, pages: usize) -> ModelCheck {
        let model = Model { versions: BTreeMap::new(), statements: [1; 3], committed: 0, snapshots: Vec::new() };
        ModelCheck { store: PartitionStore::new(layout, pool(pages)), model, ended: [0; 3], refused: 0 }
    }

    fn id_of(&self, transaction: usize) -> TransactionId {
        TransactionId(self.ended[transaction] * 3 + transaction as u64 + 1)
    }

    fn run(&mut self, step: Step) {
        match step {
            Step::Insert { transaction, id, values } => self.insert(transaction, id, values),
            Step::Update { transaction, id, values } => self.change(transaction, id, Some(values)),
            Step::Delete { transaction, id } => self.change(transaction, id, None),
            Step::NextStatement { transaction } => self.model.statements[transaction] += 1,
            Step::UndoStatement { transaction } => self.undo(transaction, self.model.statements[transaction] - 1),
            Step::Abort { transaction } => self.undo(transaction, 0),
            Step::Commit { transaction } => self.commit(transaction, false),
            Step::Settle { transaction } => self.commit(transaction, true),
            Step::Stamp { budget } => _ = self.store.stamp_step(budget),
            Step::TakeSnapshot => self.model.snapshots.push(self.model.committed),
            Step::DropSnapshot => drop(self.model.snapshots.pop()),
            Step::Compact { budget } => _ = self.store.compact_step(budget),
            Step::Purge { budget } => {
                let horizon = self.model.snapshots.iter().copied().min().unwrap_or(self.model.committed);
                let progress = self.store.purge_step(CommitNumber(horizon), budget);
                assert!(progress.steps <= budget);
            }
        }
    }

    fn insert(&mut self, transaction: usize, id: i32, values: Values) {
        let (key, hash) = integer_key(id);
        let image = row_image(self.store.layout(), id, &values);
        let statement = StatementNumber(self.model.statements[transaction]);
        let result =
            self.store.insert(HashedKey { hash, key: &key }, &image, writer(self.id_of(transaction), statement));
        if self.model.is_locked_by_other(id, transaction) {
            assert!(matches!(result, Err(WriteError::Uncommitted(_))), "{result:?}");
        } else if self.model.exists(id) {
            assert!(matches!(result, Err(WriteError::Duplicate(_))), "{result:?}");
        } else if result == Err(WriteError::OutOfMemory) {
            self.refused += 1;
        } else {
            assert!(self.store.is_row_of(result.unwrap(), &key));
            self.model.put(transaction, id, Some(values));
        }
    }

    fn change(&mut self, transaction: usize, id: i32, values: Option<Values>) {
        let (key, hash) = integer_key(id);
        let statement = StatementNumber(self.model.statements[transaction]);
        let Some(row) = self.store.find_primary(&key, hash) else {
            assert!(!self.model.exists(id));
            return;
        };
        let result = match &values {
            Some(values) => {
                let image = row_image(self.store.layout(), id, values);
                self.store.update(row, &image, writer(self.id_of(transaction), statement))
            }
            None => self.store.delete(row, writer(self.id_of(transaction), statement)),
        };
        if self.model.is_locked_by_other(id, transaction) {
            assert_eq!(result, Err(WriteError::Uncommitted(row)));
        } else if !self.model.exists(id) {
            assert_eq!(result, Err(WriteError::NotFound));
        } else if result == Err(WriteError::OutOfMemory) {
            self.refused += 1;
        } else {
            assert_eq!(result, Ok(()));
            self.model.put(transaction, id, values);
        }
    }

    fn rows_of(&self, transaction: usize) -> Vec<i32> {
        let is_own = |versions: &[(VersionState, Option<Values>)]| {
            versions.iter().any(|(stamp, _)| matches!(stamp, VersionState::Open(owner, _) if *owner == transaction))
        };
        self.model.versions.iter().filter(|(_, versions)| is_own(versions)).map(|(id, _)| *id).collect()
    }

    fn undo(&mut self, transaction: usize, newer_than: u32) {
        for id in self.rows_of(transaction) {
            let (key, hash) = integer_key(id);
            let row = self.store.find_primary(&key, hash).unwrap();
            self.store.undo(row, self.id_of(transaction), StatementNumber(newer_than));
            let versions = self.model.versions.get_mut(&id).unwrap();
            versions.retain(|(stamp, _)| {
                !matches!(stamp, VersionState::Open(owner, statement) if *owner == transaction && *statement > newer_than)
            });
        }
    }

    fn commit(&mut self, transaction: usize, is_long: bool) {
        let rows = self.rows_of(transaction);
        self.model.committed += 1;
        let number = CommitNumber(self.model.committed);
        let mut unstamped = Vec::new();
        for id in rows {
            let (key, hash) = integer_key(id);
            let row = self.store.find_primary(&key, hash).unwrap();
            match is_long {
                true => unstamped.push(row),
                false => self.store.commit(row, self.id_of(transaction), number),
            }
            let versions = self.model.versions.get_mut(&id).unwrap();
            let (_, newest) = versions.last().unwrap().clone();
            versions.retain(|(stamp, _)| matches!(stamp, VersionState::Committed(_)));
            versions.push((VersionState::Committed(self.model.committed), newest));
        }
        self.store.settle(self.id_of(transaction), number, unstamped);
        self.model.statements[transaction] = 1;
        self.ended[transaction] += 1;
    }

    fn compare(&self) {
        self.store.check().unwrap();
        let mut readers: Vec<(u64, Option<usize>)> =
            self.model.snapshots.iter().map(|number| (*number, None)).collect();
        readers.push((self.model.committed, None));
        readers.extend((0..3).map(|transaction| (self.model.committed, Some(transaction))));
        for (snapshot, own) in readers {
            self.compare_reader(snapshot, own);
        }
        for since in &self.model.snapshots {
            for until in self.model.snapshots.iter().chain([&self.model.committed]).filter(|until| *until >= since) {
                self.compare_changes(*since, *until);
            }
        }
    }

    /// The rows of an earlier snapshot and the changes since give the rows of a later one.
    fn compare_changes(&self, since: u64, until: u64) {
        let rows_at = |snapshot| -> BTreeMap<i32, Vec<u8>> {
            let rows = self.model.versions.keys().filter_map(|id| {
                let values = self.model.visible(*id, snapshot, None)?;
                Some((*id, row_image(self.store.layout(), *id, values)))
            });
            rows.collect()
        };
        let mut rows = rows_at(since);
        let mut inserted = Vec::new();
        let mut from = Some(RowId(0));
        while let Some(first) = from {
            from = self.store.scan_changes(first, (CommitNumber(since), CommitNumber(until)), 3, |old, new| {
                if let Some(old) = old {
                    let gone = rows.iter().find(|(_, image)| image.as_slice() == old.image()).map(|(id, _)| *id);
                    assert!(gone.and_then(|id| rows.remove(&id)).is_some(), "the earlier snapshot has the row");
                }
                inserted.extend(new.map(|new| new.image().to_vec()));
                ControlFlow::Continue(())
            });
        }
        let mut found: Vec<Vec<u8>> = rows.into_values().chain(inserted).collect();
        let mut expected: Vec<Vec<u8>> = rows_at(until).into_values().collect();
        found.sort();
        expected.sort();
        assert_eq!(found, expected);
    }

    fn compare_reader(&self, snapshot: u64, own: Option<usize>) {
        let own_id = own.map(|own| self.id_of(own));
        let mut scratch = Vec::new();
        let mut by_k = Vec::new();
        for id in self.model.versions.keys() {
            let (key, hash) = integer_key(*id);
            let found = self.store.read_primary(&key, hash, CommitNumber(snapshot), own_id);
            let found = found.map(|(_, version)| self.store.view(&version, &mut scratch).image().to_vec());
            let expected = self.model.visible(*id, snapshot, own);
            assert_eq!(found, expected.map(|values| row_image(self.store.layout(), *id, values)), "row {id}");
            by_k.extend(expected.map(|values| (values.k, *id)));
        }
        by_k.sort();
        if self.store.has_index(IndexId(3)) {
            self.compare_elements(snapshot, own);
        }
        for direction in [Direction::Forward, Direction::Backward] {
            let mut found = Vec::new();
            let mut cursor = ScanCursor::default();
            let range = ScanRange { index: IndexId(1), bounds: RangeBounds::ALL, direction, budget_entries: 3 };
            let reader = Reader { snapshot: CommitNumber(snapshot), own: own_id };
            loop {
                let end = self.store.scan(range, &mut cursor, reader, |_, view| {
                    let number = |column| match view.column(ColumnNumber(column)) {
                        ValueRef::Int(value) => Some(value as i32),
                        _ => None,
                    };
                    found.push((number(1), number(0).unwrap()));
                    ControlFlow::Continue(())
                });
                if end == Some(ScanEnd::Exhausted) {
                    break;
                }
            }
            if direction == Direction::Backward {
                found.reverse();
            }
            assert!(found.is_sorted_by_key(|(k, _)| *k));
            found.sort();
            assert_eq!(found, by_k);
        }
    }
}

impl ModelCheck {
    /// Each row is found once by each of its elements, and by no other.
    fn compare_elements(&self, snapshot: u64, own: Option<usize>) {
        let mut expected: BTreeMap<(Option<i32>, Vec<u8>), Vec<i64>> = BTreeMap::new();
        for id in self.model.versions.keys() {
            let Some(values) = self.model.visible(*id, snapshot, own) else { continue };
            for element in elements_of(values).unwrap_or_default() {
                expected.entry((None, element.clone())).or_default().push(i64::from(*id));
                expected.entry((values.k, element)).or_default().push(i64::from(*id));
            }
        }
        let reader = Reader { snapshot: CommitNumber(snapshot), own: own.map(|own| self.id_of(own)) };
        let bytes = [&b""[..], b"a\0", b"b\0", b"B\0", b"c\0"];
        for (k, element) in (0..5).map(Some).chain([None]).flat_map(|k| bytes.map(|element| (k, element))) {
            let (mut prefix, index) = (Vec::new(), if k.is_some() { 4 } else { 3 });
            k.iter().for_each(|k| append_value(INT.key_part(), true, ValueRef::Int((*k).into()), &mut prefix));
            append_element_key(element, &mut prefix);
            let mut found = ids_with(&self.store, (index, &prefix), reader);
            found.sort_unstable();
            assert_eq!(found, expected.remove(&(k, element.to_vec())).unwrap_or_default(), "{k:?} {element:?}");
        }
        assert!(expected.is_empty(), "{expected:?}");
    }
}

fn any_values() -> impl Strategy<Value = Values> {
    let body = prop_oneof![8 => 0usize..300, 1 => 7_000usize..9_000, 1 => 30_000usize..80_000];
    (proptest::option::of(0..5), "[abB]{0,3}", body).prop_map(|(k, name, body_bytes)| Values { k, name, body_bytes })
}

fn any_step() -> impl Strategy<Value = Step> {
    let (transaction, id) = (0usize..3, 0i32..12);
    prop_oneof![
        6 => (transaction.clone(), id.clone(), any_values())
            .prop_map(|(transaction, id, values)| Step::Insert { transaction, id, values }),
        6 => (transaction.clone(), id.clone(), any_values())
            .prop_map(|(transaction, id, values)| Step::Update { transaction, id, values }),
        4 => (transaction.clone(), id).prop_map(|(transaction, id)| Step::Delete { transaction, id }),
        3 => transaction.clone().prop_map(|transaction| Step::NextStatement { transaction }),
        1 => transaction.clone().prop_map(|transaction| Step::UndoStatement { transaction }),
        3 => transaction.clone().prop_map(|transaction| Step::Commit { transaction }),
        2 => transaction.clone().prop_map(|transaction| Step::Settle { transaction }),
        2 => (1usize..4).prop_map(|budget| Step::Stamp { budget }),
        1 => transaction.prop_map(|transaction| Step::Abort { transaction }),
        1 => Just(Step::TakeSnapshot),
        1 => Just(Step::DropSnapshot),
        2 => (1usize..4).prop_map(|budget| Step::Purge { budget }),
        2 => (1usize..4).prop_map(|budget| Step::Compact { budget }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_partition_agrees_with_the_model_of_versions(
        has_lists: bool,
        steps in proptest::collection::vec(any_step(), 1..80),
    ) {
        let mut check = match has_lists {
            true => ModelCheck::of_layout(lists_layout(), 4096),
            false => ModelCheck::new(),
        };
        for step in steps {
            check.run(step);
            check.compare();
        }
        (0..3).for_each(|transaction| check.undo(transaction, 0));
        check.model.snapshots.clear();
        for id in 0..12 {
            check.change(0, id, None);
        }
        check.commit(0, true);
        check.compare();
        check.run(Step::Stamp { budget: usize::MAX });
        check.run(Step::Purge { budget: usize::MAX });
        check.compare();
        prop_assert_eq!(check.store.statistics().total_bytes(), 0);
        prop_assert_eq!(check.refused, 0);
    }

    #[test]
    fn a_write_refused_for_lack_of_memory_changes_nothing(
        has_lists: bool,
        pages in 9usize..24,
        steps in proptest::collection::vec(any_step(), 1..80),
    ) {
        let mut check = match has_lists {
            true => ModelCheck::of_layout(lists_layout(), pages),
            false => ModelCheck::with_pages(pages),
        };
        for step in steps {
            check.run(step);
            check.compare();
        }
    }
}
