//! Foreign keys over real partitions: parents that are looked up, children that follow their parents, and
//! both at the same time.

use std::sync::Arc;

use junctor_model::error::ErrorCode;
use junctor_model::foreign_key::{ForeignKey, ForeignKeyWork, ReferentialAction, RowWrite};
use junctor_model::id::{ColumnNumber, TableId};
use junctor_model::schema::{IndexKind, TableDefinition, TableKind, TableLayout};
use junctor_signals::end_transaction::Ending;
use junctor_signals::program::{Access, WriteProgram};

use crate::ldm::tests::{NONE, Row};
use crate::tests::harness::{Harness, ID, INDEX_U, K, SampleTable, TestSession, U};

/// A table, and the unique entries and foreign keys that its writes maintain.
struct Member {
    table: SampleTable,
    dictionary: junctor_model::schema::Dictionary,
}

impl Member {
    fn with_keys(&self, program: &Arc<WriteProgram>, write: RowWrite<'_>) -> Arc<WriteProgram> {
        let foreign_keys = ForeignKeyWork::of(&self.dictionary, &self.table.layout.definition, write).map(Arc::new);
        Arc::new(WriteProgram { foreign_keys, ..(**program).clone() })
    }

    fn insert(&self) -> Arc<WriteProgram> {
        self.with_keys(&self.table.insert_unique(), RowWrite::Insert)
    }

    fn delete(&self, access: Access) -> Arc<WriteProgram> {
        self.with_keys(&self.table.delete(access), RowWrite::Delete)
    }

    fn add_to(&self, column: ColumnNumber, access: Access, number: i64) -> Arc<WriteProgram> {
        self.with_keys(&self.table.add_to(column, access, number), RowWrite::Update(&[column]))
    }
}

fn layout(definition: TableDefinition) -> Arc<TableLayout> {
    Arc::new(TableLayout::new(definition))
}

/// Tables 3 and 4: the child `c`, whose column k names a column of the sample table.
fn child_of(column: &str, on_delete: ReferentialAction, on_update: ReferentialAction) -> SampleTable {
    let mut child = SampleTable::new(2);
    let mut definition = child.layout.definition.clone();
    (definition.id, definition.name) = (TableId(3), "c".into());
    definition.indexes[2].kind = IndexKind::Unique { ordered: true, entries: TableId(4) };
    definition.foreign_keys.push(ForeignKey {
        name: "key".into(),
        columns: vec![K],
        parent: ("test".into(), "t".into()),
        parent_columns: vec![column.into()],
        on_delete,
        on_update,
    });
    child.layout = layout(definition);
    let mut entries = child.entries.definition.clone();
    (entries.id, entries.name) = (TableId(4), "c.u".into());
    entries.kind = TableKind::UniqueEntries { base: TableId(3), index: INDEX_U };
    child.entries = layout(entries);
    child
}

fn family(
    nodes: u8,
    column: &str,
    on_delete: ReferentialAction,
    on_update: ReferentialAction,
) -> (Harness, Member, Member) {
    let mut harness = Harness::new(nodes, 2, 2);
    let (parent, child) = (SampleTable::new(2), child_of(column, on_delete, on_update));
    harness.create_tables(&[&parent.layout, &parent.entries, &child.layout, &child.entries]);
    let member = |table: SampleTable| Member { table, dictionary: harness.catalog.dictionary.clone() };
    let (parent, child) = (member(parent), member(child));
    (harness, parent, child)
}

fn execute(harness: &mut Harness, member: &Member, rows: &[Row]) -> Option<ErrorCode> {
    let reply = harness.execute(NONE, true, &member.insert(), member.table.images(rows));
    reply.error.map(|error| error.code)
}

const NO_ACTION: ReferentialAction = ReferentialAction::NoAction;

#[test]
fn a_parent_is_found_by_every_unique_key_and_a_missing_one_is_noticed_in_every_partition() {
    for (column, found, missing) in [("id", 2, 3), ("k", 20, 25), ("u", 7, 2)] {
        let (mut harness, parent, child) = family(2, column, NO_ACTION, NO_ACTION);
        assert_eq!(execute(&mut harness, &parent, &[(1, 10, Some(6)), (2, 20, Some(7)), (4, 20, None)]), None);
        assert_eq!(execute(&mut harness, &child, &[(1, found, None), (2, found, None)]), None, "{column}");
        let refused = execute(&mut harness, &child, &[(3, found, None), (4, missing, Some(9))]);
        assert_eq!(refused, Some(ErrorCode::NoReferencedRow), "{column}");
        assert_eq!(child.table.rows(&mut harness).len(), 2, "nothing is left of the statement");
        let delete = harness.execute(NONE, true, &parent.delete(Access::PrimaryKeys), parent.table.keys(&[2]));
        assert_eq!(delete.error.map(|error| error.code), Some(ErrorCode::RowIsReferenced), "{column}");
        let delete = harness.execute(NONE, true, &parent.delete(Access::PrimaryKeys), parent.table.keys(&[1]));
        assert_eq!(delete.error, None, "{column}");
        harness.check_idle();
    }
}

#[test]
fn thousands_of_parents_are_deleted_with_their_children_or_not_at_all() {
    const ROWS: i64 = 3000;
    let ids: Vec<i64> = (1..=ROWS).collect();
    let rows: Vec<Row> = ids.iter().map(|id| (*id, *id, Some(*id))).collect();
    for column in ["id", "k"] {
        let (mut harness, parent, child) = family(1, column, ReferentialAction::Cascade, NO_ACTION);
        assert_eq!(execute(&mut harness, &parent, &rows), None);
        assert_eq!(execute(&mut harness, &child, &rows), None);
        let orphan = execute(&mut harness, &child, &[(ROWS + 1, ROWS + 1, None)]);
        assert_eq!(orphan, Some(ErrorCode::NoReferencedRow));
        let reply = harness.execute(NONE, true, &parent.delete(Access::PrimaryKeys), parent.table.keys(&ids[1..]));
        assert_eq!((reply.error, reply.changed), (None, ROWS as u64 - 1));
        assert_eq!(child.table.rows(&mut harness), [(1, 1, Some(1))]);
        harness.check_idle();

        let (mut harness, parent, child) = family(1, column, NO_ACTION, NO_ACTION);
        assert_eq!(execute(&mut harness, &parent, &rows), None);
        assert_eq!(execute(&mut harness, &child, &[(1, ROWS, None)]), None);
        let reply = harness.execute(NONE, true, &parent.delete(Access::AllRows), parent.table.everything());
        assert_eq!(reply.error.map(|error| error.code), Some(ErrorCode::RowIsReferenced));
        assert_eq!(parent.table.rows(&mut harness).len(), ROWS as usize);
        harness.check_idle();
    }
}

#[test]
fn children_follow_parent_keys_that_shift_by_one() {
    let (mut harness, parent, child) = family(2, "k", NO_ACTION, ReferentialAction::Cascade);
    let rows: Vec<Row> = (1..=50).map(|id| (id, id * 10, None)).collect();
    assert_eq!(execute(&mut harness, &parent, &rows), None);
    assert_eq!(execute(&mut harness, &child, &rows), None);
    let shift = parent.add_to(K, Access::AllRows, 10);
    let reply = harness.execute(NONE, true, &shift, parent.table.everything());
    assert_eq!((reply.error, reply.changed), (None, 50));
    let shifted: Vec<Row> = rows.iter().map(|(id, k, u)| (*id, k + 10, *u)).collect();
    assert_eq!(parent.table.rows(&mut harness), shifted);
    assert_eq!(child.table.rows(&mut harness), shifted, "a key that is another's old one is no reason to go on");
    harness.check_idle();
}

#[test]
fn a_child_waits_for_the_transaction_that_deletes_its_parent() {
    for seed in 0..20 {
        for ending in [Ending::Commit, Ending::Rollback] {
            let (mut harness, parent, child) = family(1 + seed as u8 % 3, "u", NO_ACTION, NO_ACTION);
            assert_eq!(execute(&mut harness, &parent, &[(1, 10, Some(6))]), None);
            harness.shuffle(seed);
            let delete = harness.execute(NONE, false, &parent.delete(Access::PrimaryKeys), parent.table.keys(&[1]));
            assert_eq!(delete.error, None);
            let insert =
                harness.begin_execute(TestSession::autocommit(1), &child.insert(), child.table.images(&[(1, 6, None)]));
            harness.run();
            assert!(harness.statement(insert).is_none(), "seed {seed}");
            harness.end(delete.transaction, ending);
            let insert = harness.statement(insert).expect("it goes on").error.map(|error| error.code);
            let expected = (ending == Ending::Commit).then_some(ErrorCode::NoReferencedRow);
            assert_eq!(insert, expected, "seed {seed}");
            harness.check_idle();
        }
    }
}

#[test]
fn an_orphan_that_moves_to_another_partition_is_checked() {
    let (mut harness, parent, child) = family(1, "id", NO_ACTION, NO_ACTION);
    let orphan = harness.execute(NONE, true, &child.table.insert_unique(), child.table.images(&[(5, 9, None)]));
    assert_eq!(orphan.error, None);
    for (column, expected) in [(ID, Some(ErrorCode::NoReferencedRow)), (U, None)] {
        let change = child.add_to(column, Access::PrimaryKeys, 1);
        let reply = harness.execute(NONE, true, &change, child.table.keys(&[5]));
        assert_eq!(reply.error.map(|error| error.code), expected);
    }
    assert_eq!(execute(&mut harness, &parent, &[(9, 0, None)]), None);
    let reply = harness.execute(NONE, true, &child.add_to(ID, Access::PrimaryKeys, 1), child.table.keys(&[5]));
    assert_eq!(reply.error, None);
    harness.check_idle();
}
