use std::sync::Arc;

use junctor_model::collation::CollationId;
use junctor_model::id::{CommitNumber, StatementNumber, TransactionId};
use junctor_model::key::append_value;
use junctor_model::row::check_image;
use junctor_model::schema::{ColumnType, IndexKind};
use junctor_model::value::ValueRef;

use super::Batch;
use crate::page::{PAGE_BYTES, PagePool};
use crate::partition_store::PartitionStore;
use crate::partition_store::sample::{INT, column, image, index, table};

const INSERTING: TransactionId = TransactionId(1);
const OPEN: TransactionId = TransactionId(2);
const LATER: TransactionId = TransactionId(9);
const ONE: StatementNumber = StatementNumber(1);
/// Rows that are stored; as many keys again are sought of which there is no row.
const STORED: usize = 30;

/// A store of ten rows for each hash that the index tells apart: more than a bucket holds.
struct Colliding {
    store: PartitionStore,
    keys: Vec<(Vec<u8>, u64)>,
}

impl Colliding {
    fn new(key_type: ColumnType) -> Colliding {
        let body = ColumnType::Text { length_bytes: 4, collation: CollationId::DEFAULT };
        let columns = vec![column("id", key_type, false), column("body", body, true)];
        let layout = table(columns, vec![index(0, IndexKind::Primary { ordered: true }, &[0])]);
        let pool = PagePool::new(8192 * PAGE_BYTES).expect("address space");
        let mut store = PartitionStore::new(Arc::clone(&layout), pool);
        let texts: Vec<String> = (0..2 * STORED).map(|number| format!("k{number}")).collect();
        let value = |number: usize| match key_type {
            INT => ValueRef::Int(number as i64 - 20),
            _ => ValueRef::Bytes(texts[number].as_bytes()),
        };
        let key = |number: usize| {
            let mut key = Vec::new();
            append_value(key_type, false, value(number), &mut key);
            (key, ((number as u64) << 40) | (number as u64 % 3))
        };
        let keys: Vec<(Vec<u8>, u64)> = (0..2 * STORED).map(key).collect();
        let long = vec![b'z'; 30_000];
        for (number, (key, hash)) in keys[..STORED].iter().enumerate() {
            let body = match number % 4 {
                0 => ValueRef::Null,
                1 => ValueRef::Bytes(&long),
                _ => ValueRef::Bytes(b""),
            };
            let row = store.insert(key, *hash, &image(&layout, &[value(number), body]), INSERTING, ONE).unwrap();
            store.commit(row, INSERTING, CommitNumber(1));
        }
        for (number, (key, hash)) in keys[..STORED].iter().enumerate() {
            let row = store.find_primary(key, *hash).unwrap();
            let changed = |body| image(&layout, &[value(number), ValueRef::Bytes(body)]);
            match number % 5 {
                0 => store.update(row, &changed(b"open"), OPEN, ONE).unwrap(),
                1 => store.delete(row, OPEN, ONE).unwrap(),
                2 => store.update(row, &changed(b"committed"), LATER, ONE).unwrap(),
                3 => store.delete(row, LATER, ONE).unwrap(),
                _ => {}
            }
            if matches!(number % 5, 2 | 3) {
                store.commit(row, LATER, CommitNumber(5));
            }
        }
        Colliding { store, keys }
    }

    /// How many rows a reader finds in one batch, each of which is the one that its key alone finds.
    fn found(&self, snapshot: u64, own: Option<TransactionId>) -> usize {
        let mut images = Batch::new();
        let sought = self.keys.iter().map(|(key, hash)| (&key[..], *hash));
        self.store.read_batch(sought, CommitNumber(snapshot), own, &mut images);
        assert_eq!(images.len(), self.keys.len());
        for ((key, hash), stored) in self.keys.iter().zip(&images) {
            let single = self.store.read_primary(key, *hash, CommitNumber(snapshot), own);
            assert_eq!(single.map_or(&[][..], |(_, version)| version.stored()), *stored);
            if !stored.is_empty() {
                let mut scratch = Vec::new();
                let view = self.store.view_stored(stored, &mut scratch);
                assert!(check_image(view.format(), view.image()));
            }
        }
        images.iter().filter(|stored| !stored.is_empty()).count()
    }
}

#[test]
fn a_batch_of_keys_with_equal_hashes_finds_each_readers_rows() {
    let name = ColumnType::VarChar { length: 40, collation: CollationId::DEFAULT };
    for key_type in [INT, name] {
        let colliding = Colliding::new(key_type);
        // Of each five rows, one has an open deletion and one a deletion of commit 5.
        for (snapshot, own, count) in [
            (0, None, 0),
            (0, Some(OPEN), 6),
            (1, None, 30),
            (1, Some(OPEN), 24),
            (4, Some(INSERTING), 30),
            (5, None, 24),
            (5, Some(INSERTING), 24),
            (5, Some(OPEN), 18),
        ] {
            assert_eq!(colliding.found(snapshot, own), count, "{key_type:?}, snapshot {snapshot}, {own:?}");
        }
    }
}
