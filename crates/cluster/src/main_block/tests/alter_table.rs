//! ALTER TABLE with several changes, and foreign keys between changing tables.

use std::sync::Arc;

use junctor_model::alteration::Alteration;
use junctor_model::foreign_key::{ForeignKey, ReferentialAction};
use junctor_model::id::{ColumnNumber, ConnectionId, TableId};
use junctor_model::schema::{IndexDefinition, IndexKind, IndexState};
use junctor_signals::MainSignal;
use junctor_signals::block_tables::UnlockTables;
use junctor_signals::change_schema::{SchemaChange, TableLockRequest, TableRename};
use junctor_signals::read_rows::OperationId;

use super::{Stage, add_index, alter, create_table, drop_table, errno, finish, index, last_errno, primary, unique};

const OTHER: ConnectionId = ConnectionId(2);

fn foreign_key(name: &str, parent: &str) -> ForeignKey {
    ForeignKey {
        name: name.into(),
        columns: vec![ColumnNumber(1)],
        parent: ("d".into(), parent.into()),
        parent_columns: vec!["id".into()],
        on_delete: ReferentialAction::Cascade,
        on_update: ReferentialAction::NoAction,
    }
}

fn ordered(name: &str) -> IndexDefinition {
    index(name, IndexKind::Ordered, 1)
}

/// A database with tables `p` and `c`.
fn stage() -> (Stage, TableId, TableId) {
    let mut stage = Stage::new(&[]);
    stage.create_database();
    assert_eq!(stage.create("p", vec![primary()]), None);
    assert_eq!(stage.create("c", vec![primary()]), None);
    let (parent, child) = (stage.table("p").id, stage.table("c").id);
    (stage, parent, child)
}

/// An ALTER TABLE that adds a foreign key with its index.
fn add_key(needs_parents: bool) -> Arc<Alteration> {
    Arc::new(Alteration {
        add_indexes: vec![ordered("k")],
        add_foreign_keys: vec![foreign_key("k", "p")],
        needs_parents,
        ..Alteration::default()
    })
}

#[test]
fn several_changes_take_effect_at_once() {
    let (mut stage, _, child) = stage();
    assert_eq!(stage.change(add_index(child, ordered("a"))).error, None);
    let alteration = Alteration {
        drop_indexes: vec!["A".into()],
        add_indexes: vec![ordered("a"), ordered("b")],
        add_foreign_keys: vec![foreign_key("k", "p")],
        rename: Some(("d".into(), "n".into())),
        ..Alteration::default()
    };
    assert_eq!(stage.change(alter(child, alteration)).error, None);
    stage.check();
    let table = stage.table("n");
    let names: Vec<(&str, u16)> = table.indexes.iter().map(|index| (&*index.name, index.id.0)).collect();
    assert_eq!(names, [("PRIMARY", 0), ("a", 2), ("b", 3)]);
    assert_eq!(table.foreign_keys, [foreign_key("k", "p")]);
    assert!(stage.main.catalog().dictionary.table_named("d", "c").is_none());
    let back = Alteration {
        drop_foreign_keys: vec!["K".into()],
        drop_indexes: vec!["a".into(), "b".into()],
        ..Alteration::default()
    };
    assert_eq!(stage.change(alter(child, back)).error, None);
    stage.check();
    assert_eq!((stage.table("n").indexes.len(), stage.table("n").foreign_keys.len()), (1, 0));
}

#[test]
fn one_impossible_change_prevents_all_of_them() {
    let (mut stage, parent, child) = stage();
    assert_eq!(stage.change(add_index(child, ordered("a"))).error, None);
    let before = (stage.table("c"), stage.table("p"));
    let all = Alteration {
        drop_indexes: vec!["a".into()],
        add_indexes: vec![ordered("b")],
        add_foreign_keys: vec![foreign_key("k", "p")],
        needs_parents: true,
        ..Alteration::default()
    };
    let name = |name: &str| (Box::from("d"), Box::from(name));
    for (number, alteration) in [
        (1091, Alteration { drop_indexes: vec!["a".into(), "x".into()], ..all.clone() }),
        (1091, Alteration { drop_foreign_keys: vec!["x".into()], ..all.clone() }),
        (1061, Alteration { add_indexes: vec![ordered("b"), ordered("B")], ..all.clone() }),
        (1050, Alteration { rename: Some(name("p")), ..all.clone() }),
        (1049, Alteration { rename: Some(("x".into(), "c".into())), ..all.clone() }),
        (1176, Alteration { rename_indexes: vec![("x".into(), "y".into())], ..all.clone() }),
        (1824, Alteration { add_foreign_keys: vec![foreign_key("k", "x")], ..all.clone() }),
        (1826, Alteration { add_foreign_keys: vec![foreign_key("k", "p"), foreign_key("K", "p")], ..all.clone() }),
        (1412, Alteration { add_indexes: Vec::new(), ..all.clone() }),
    ] {
        assert_eq!(errno(stage.change(alter(child, alteration)).error), number);
        assert_eq!((stage.table("c"), stage.table("p")), before);
        stage.check();
    }
    // An index that only a foreign key needs is dropped together with the key, not earlier.
    assert_eq!(stage.change(alter(child, Alteration { needs_parents: false, ..all })).error, None);
    let alone = Alteration { drop_indexes: vec!["b".into()], ..Alteration::default() };
    assert_eq!(errno(stage.change(alter(child, alone.clone())).error), 1553);
    let both = Alteration { drop_foreign_keys: vec!["k".into()], ..alone };
    assert_eq!(stage.change(alter(child, both)).error, None);
    assert_eq!(errno(stage.change(drop_table("p")).error), 0);
    assert_ne!(parent, child);
    stage.check();
}

#[test]
fn tables_are_closed_to_writers_until_the_rows_are_checked() {
    let (mut stage, parent, child) = stage();
    let alteration = add_key(true);
    assert_eq!(
        stage.change(SchemaChange::AlterTable { table: child, alteration: Arc::clone(&alteration) }).error,
        None
    );
    assert_eq!(stage.table("c").indexes[1].state, IndexState::Building, "the session has its part to do");
    let hold = SchemaChange::BlockWrites { table: child, alteration: Arc::clone(&alteration) };
    assert_eq!(stage.change(hold).error, None);
    assert_eq!(stage.blocked.values().next(), Some(&vec![child, parent]));
    // Later changes wait for the end of the alteration, and the end does not wait for them.
    stage.ask_as(OTHER, OperationId(100), drop_table("p"));
    stage.ask_as(OTHER, OperationId(101), add_index(child, ordered("x")));
    assert!(stage.replies.is_empty());
    let end = SchemaChange::FinishAlteration { table: child, alteration };
    assert_eq!(stage.change(end).error, None);
    assert_eq!(stage.table("c").foreign_keys.len(), 1);
    assert!(stage.replies.is_empty());
    stage.run(MainSignal::UnlockTables(UnlockTables { connection: ConnectionId(1) }));
    assert_eq!((last_errno(&mut stage), last_errno(&mut stage)), (0, 3730), "the index is made, the parent stays");
    assert_eq!(stage.main.table_locks_held(), 0);
    stage.check();
}

#[test]
fn a_failed_alteration_leaves_no_index() {
    let (mut stage, _, child) = stage();
    let alteration = add_key(true);
    let begin = || SchemaChange::AlterTable { table: child, alteration: Arc::clone(&alteration) };
    let before = stage.table("c").indexes;
    assert_eq!(stage.change(begin()).error, None);
    // The parent is dropped while the index is backfilled.
    assert_eq!(stage.change(drop_table("p")).error, None);
    let hold = SchemaChange::BlockWrites { table: child, alteration: Arc::clone(&alteration) };
    assert_eq!(errno(stage.change(hold).error), 1824);
    let end = SchemaChange::FinishAlteration { table: child, alteration: Arc::clone(&alteration) };
    assert_eq!(errno(stage.change(end).error), 1824);
    assert_eq!(stage.table("c").indexes, before, "main has taken the index back by itself");
    stage.check();
    stage.create("p", vec![primary()]);
    assert_eq!(stage.change(begin()).error, None);
    assert_eq!(stage.change(SchemaChange::UndoAlteration { table: child }).error, None);
    assert_eq!(stage.table("c").indexes, before);
    // Nothing is left to undo.
    assert_eq!(stage.change(SchemaChange::UndoAlteration { table: child }).error, None);
    stage.check();
}

#[test]
fn a_full_queue_does_not_refuse_the_end_of_an_alteration() {
    let (mut stage, _, child) = stage();
    assert_eq!(stage.change(add_index(child, unique("u"))).error, None);
    stage.in_use = true;
    for number in 0..256 {
        stage.ask_as(OTHER, OperationId(100 + number), drop_table("p"));
    }
    stage.ask_as(OTHER, OperationId(999), drop_table("p"));
    assert_ne!(last_errno(&mut stage), 0, "no more may wait");
    stage.in_use = false;
    assert_eq!(stage.change(SchemaChange::UndoAlteration { table: child }).error, None);
    assert_eq!(stage.table("c").indexes.len(), 1);
}

#[test]
fn a_change_behind_an_alteration_excludes_nobody_while_the_alteration_ends() {
    let (mut stage, _, child) = stage();
    assert_eq!(stage.change(add_index(child, unique("u"))).error, None);
    stage.in_use = true;
    // The session of the alteration uses the table, so the change waits. Transactions wait for the change.
    stage.ask_as(OTHER, OperationId(100), add_index(child, ordered("x")));
    let asked = *stage.blocked.keys().next().expect("the change asks for the table");
    stage.ask(OperationId(101), finish(child, unique("u")));
    let ending: Vec<u64> = stage.blocked.keys().copied().collect();
    assert!(ending.len() == 1 && ending[0] != asked, "a transaction may go before the end: {ending:?}");
}

#[test]
fn creating_a_child_is_refused_while_its_parent_is_dropped() {
    let (mut stage, _, _) = stage();
    let SchemaChange::CreateTable { mut definition, if_not_exists, auto_increment } =
        create_table("e", vec![primary(), ordered("k")], false)
    else {
        unreachable!()
    };
    definition.foreign_keys = vec![foreign_key("f", "p")];
    let create = SchemaChange::CreateTable { definition, if_not_exists, auto_increment };
    // The requesting session has seen the parent.
    assert_eq!(stage.change(drop_table("p")).error, None);
    assert_eq!(errno(stage.change(create).error), 1824);
    stage.check();
}

#[test]
fn a_table_renamed_while_its_alteration_waits_is_not_altered() {
    let (mut stage, _, child) = stage();
    stage.in_use = true;
    let renames = vec![TableRename { from: ("d".into(), "c".into()), to: ("d".into(), "n".into()) }];
    stage.ask(OperationId(100), SchemaChange::RenameTables { renames });
    stage.ask_as(OTHER, OperationId(101), add_index(child, ordered("k")));
    let rename = *stage.blocked.keys().next().expect("the change waits");
    stage.leave(rename);
    assert_eq!((last_errno(&mut stage), last_errno(&mut stage)), (1146, 0));
    assert_eq!(stage.table("n").indexes.len(), 1);
    stage.check();
}

/// Begins an ALTER TABLE that adds a foreign key with its index.
fn begin_key(stage: &mut Stage, table: TableId, parent: &str) -> Arc<Alteration> {
    let alteration = Arc::new(Alteration {
        add_indexes: vec![ordered("k")],
        add_foreign_keys: vec![foreign_key(&format!("to_{parent}"), parent)],
        needs_parents: true,
        ..Alteration::default()
    });
    assert_eq!(stage.change(SchemaChange::AlterTable { table, alteration: Arc::clone(&alteration) }).error, None);
    alteration
}

#[test]
fn two_alterations_get_their_common_tables_one_after_the_other() {
    for first in [0, 1] {
        let (mut stage, parent, child) = stage();
        let (of_child, of_parent) = (begin_key(&mut stage, child, "p"), begin_key(&mut stage, parent, "c"));
        let both = [(ConnectionId(1), child, of_child), (OTHER, parent, of_parent)];
        stage.in_use = true;
        for (connection, table, alteration) in &both {
            let hold = SchemaChange::BlockWrites { table: *table, alteration: Arc::clone(alteration) };
            stage.ask_as(*connection, OperationId(100), hold);
        }
        let asked: Vec<u64> = stage.blocked.keys().copied().collect();
        assert_eq!((asked.len(), stage.main.table_locks_held()), (2, 0), "both wait for those who write");
        stage.leave(asked[first]);
        stage.leave(asked[1 - first]);
        assert_eq!((last_errno(&mut stage), stage.replies.len(), stage.main.table_locks_held()), (0, 0, 1));
        assert_eq!(stage.blocked.keys().collect::<Vec<_>>(), [&asked[first]], "the other lets writers go on meanwhile");
        stage.in_use = false;
        for (connection, table, alteration) in [&both[first], &both[1 - first]] {
            assert_eq!(stage.main.table_locks_held(), 1);
            let end = SchemaChange::FinishAlteration { table: *table, alteration: Arc::clone(alteration) };
            stage.ask_as(*connection, OperationId(101), end);
            assert_eq!((last_errno(&mut stage), stage.replies.len()), (0, 0));
            stage.run(MainSignal::UnlockTables(UnlockTables { connection: *connection }));
            // The other session has its tables now.
            stage.replies.clear();
        }
        let keys = ["c", "p"].map(|name| stage.table(name).foreign_keys.len());
        assert_eq!((keys, stage.main.table_locks_held()), ([1, 1], 0));
        stage.check();
    }
}

#[test]
fn a_table_with_an_index_under_construction_is_not_locked_for_another_session() {
    let (mut stage, _, child) = stage();
    assert_eq!(stage.change(add_index(child, ordered("k"))).error, None);
    let key =
        Alteration { add_foreign_keys: vec![foreign_key("k", "p")], needs_parents: true, ..Alteration::default() };
    let lock = vec![TableLockRequest { name: ("d".into(), "c".into()), writes: false }];
    let unique = Arc::new(Alteration { add_indexes: vec![unique("u")], ..Alteration::default() });
    for wanted in [
        SchemaChange::LockTables { tables: lock },
        SchemaChange::BlockWrites { table: child, alteration: Arc::new(key) },
    ] {
        let begin = SchemaChange::AlterTable { table: child, alteration: Arc::clone(&unique) };
        assert_eq!(stage.change(begin).error, None);
        stage.ask_as(OTHER, OperationId(100), wanted);
        assert_eq!((stage.replies.len(), stage.main.table_locks_held()), (0, 0));
        stage.ask(OperationId(101), SchemaChange::UndoAlteration { table: child });
        assert_eq!((last_errno(&mut stage), last_errno(&mut stage)), (0, 0), "it is taken back, and the other goes on");
        assert_eq!((stage.replies.len(), stage.main.table_locks_held()), (0, 1));
        stage.run(MainSignal::UnlockTables(UnlockTables { connection: OTHER }));
        stage.check();
    }
}
