//! The table and the rows that the examples in this folder use.

use std::sync::Arc;

use junctor_model::collation::CollationId;
use junctor_model::id::{ColumnNumber, CommitNumber, IndexId, StatementNumber, TableId, TransactionId};
use junctor_model::key::append_value;
use junctor_model::partition::{HashedKey, key_hash};
use junctor_model::schema::{ColumnDefinition, IndexDefinition, IndexKind, TableDefinition, TableLayout};
use junctor_model::types::DataType;
use junctor_model::value::ValueRef;
use junctor_storage::partition_store::{PartitionStore, Writer};

/// The transaction that writes.
pub const TRANSACTION: TransactionId = TransactionId(1);
/// The statement that writes.
pub const STATEMENT: StatementNumber = StatementNumber(1);
const INT: DataType = DataType::integer(4, false);

/// The settings and the state of one run: row and operation counts, last commit number, random state.
pub struct Run {
    pub layout: Arc<TableLayout>,
    /// Rows in the table after the insert phase.
    pub rows: u32,
    /// Operations of each phase.
    pub operations: u32,
    /// The last commit number.
    pub last_commit: u64,
    random: u64,
}

impl Run {
    /// A run over `rows` rows, which are not inserted yet.
    pub fn new(rows: u32, operations: u32) -> Run {
        Run { layout: layout(), rows, operations, last_commit: 0, random: 1 }
    }

    /// A random row id.
    pub fn any_id(&mut self) -> u32 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.random >> 33) % u64::from(self.rows)) as u32
    }

    /// The next commit number.
    pub fn next_number(&mut self) -> CommitNumber {
        self.last_commit += 1;
        CommitNumber(self.last_commit)
    }

    /// Inserts and commits a row.
    pub fn insert(&mut self, store: &mut PartitionStore, id: u32) {
        let k = self.any_id();
        let image = image(&self.layout, id, k, b'c');
        let (key, hash) = key(id);
        let row = store
            .insert(HashedKey { hash, key: &key }, &image, Writer { transaction: TRANSACTION, statement: STATEMENT })
            .expect("memory");
        store.commit(row, TRANSACTION, self.next_number());
    }
}

/// The key of a row, and its hash.
#[inline(always)]
pub fn key(id: u32) -> ([u8; 4], u64) {
    let key = (id ^ 1 << 31).to_be_bytes();
    (key, key_hash(&key))
}

/// The stored image of a row.
pub fn image(layout: &TableLayout, id: u32, k: u32, letter: u8) -> Vec<u8> {
    let (c, pad) = ([letter; 119], [b'p'; 59]);
    let mut image = Vec::with_capacity(256);
    let values =
        [ValueRef::Int(i64::from(id)), ValueRef::Int(i64::from(k)), ValueRef::Bytes(&c), ValueRef::Bytes(&pad)];
    layout.row_format.encode(&values, &mut image).expect("values of the column types");
    image
}

/// The sysbench table in one partition.
pub fn layout() -> Arc<TableLayout> {
    let mut check = Vec::new();
    append_value(INT.key_part(), false, ValueRef::Int(5), &mut check);
    assert_eq!(check, key(5).0, "the example makes keys by itself");
    let text = |length| DataType::char(length, CollationId::DEFAULT);
    let types = [("id", INT), ("k", INT), ("c", text(120)), ("pad", text(60))];
    let columns = types.map(|(name, column_type)| ColumnDefinition::new(name, column_type)).to_vec();
    let index = |id, kind| IndexDefinition::new(IndexId(id), "", kind, vec![ColumnNumber(id)]);
    let indexes = vec![index(0, IndexKind::Primary { ordered: true }), index(1, IndexKind::Ordered)];
    Arc::new(TableLayout::new(TableDefinition::new(TableId(1), ("test", "sbtest1"), columns, indexes)))
}
