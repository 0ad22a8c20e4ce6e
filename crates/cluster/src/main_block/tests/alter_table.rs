//! ALTER TABLE with several changes, and foreign keys between changing tables.

use std::collections::BTreeMap;
use std::sync::Arc;

use junctor_model::alteration::Alteration;
use junctor_model::foreign_key::{ForeignKey, ReferentialAction};
use junctor_model::id::{ColumnNumber, ConnectionId, TableId};
use junctor_model::schema::{IndexDefinition, IndexKind, IndexState};
use junctor_signals::MainSignal;
use junctor_signals::block_tables::{CancelSchemaChange, UnlockTables};
use junctor_signals::change_schema::{SchemaChange, TableLockRequest, TableRename};
use junctor_signals::read_rows::OperationId;

use super::{Stage, add_index, alter, create_table, drop_table, errno, index, last_errno, primary, unique};

const OTHER: ConnectionId = ConnectionId(2);

pub(super) fn foreign_key(name: &str, parent: &str) -> ForeignKey {
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
pub(super) fn add_key(needs_parents: bool) -> Arc<Alteration> {
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
    stage.rows.hold();
    stage.ask(
        OperationId(1),
        SchemaChange::AlterTable { table: child, alteration: add_key(true), expressions: Arc::default() },
    );
    assert_eq!(stage.table("c").indexes[1].state, IndexState::Building);
    assert_eq!(stage.blocked.values().next(), Some(&vec![child, parent]));
    // Later changes wait for the end of the alteration.
    stage.ask_as(OTHER, OperationId(100), drop_table("p"));
    stage.ask_as(OTHER, OperationId(101), add_index(child, ordered("x")));
    assert!(stage.replies.is_empty());
    stage.release_rows();
    assert_eq!(stage.table("c").foreign_keys.len(), 1);
    assert_eq!(stage.ended_changes(), BTreeMap::from([(1, 0), (100, 3730), (101, 0)]), "the parent stays");
    stage.nothing_is_held();
}

#[test]
fn a_failed_alteration_leaves_no_index() {
    let (mut stage, _, child) = stage();
    let alteration = Alteration { add_indexes: vec![ordered("k"), unique("u")], ..(*add_key(true)).clone() };
    let before = stage.table("c").indexes;
    stage.rows.hold();
    stage.ask(OperationId(1), alter(child, alteration));
    // The parent is dropped while the index is filled.
    stage.ask_as(OTHER, OperationId(2), drop_table("p"));
    assert_eq!(last_errno(&mut stage), 0);
    stage.release_rows();
    assert_eq!(last_errno(&mut stage), 1824);
    assert_eq!(stage.table("c").indexes, before);
    stage.nothing_is_held();
}

#[test]
fn a_full_queue_does_not_refuse_the_end_of_an_alteration() {
    let (mut stage, _, child) = stage();
    stage.rows.hold();
    stage.ask(OperationId(1), add_index(child, unique("u")));
    stage.in_use = true;
    for number in 0..256 {
        stage.ask_as(OTHER, OperationId(100 + number), drop_table("p"));
    }
    stage.ask_as(OTHER, OperationId(999), drop_table("p"));
    assert_ne!(last_errno(&mut stage), 0, "no more may wait");
    stage.in_use = false;
    stage.release_rows();
    assert_eq!(last_errno(&mut stage), 0);
    assert_eq!(stage.table("c").indexes[1].state, IndexState::Online);
}

#[test]
fn a_change_behind_an_alteration_excludes_nobody() {
    let (mut stage, _, child) = stage();
    stage.rows.hold();
    stage.ask(OperationId(1), add_index(child, unique("u")));
    stage.ask_as(OTHER, OperationId(100), add_index(child, ordered("x")));
    assert!(stage.blocked.is_empty(), "transactions use the table");
    stage.in_use = true;
    stage.release_rows();
    let end = *stage.blocked.keys().next().expect("the end waits for statements");
    assert_eq!(stage.blocked.len(), 1);
    stage.in_use = false;
    stage.leave(end);
    assert_eq!(stage.ended_changes(), BTreeMap::from([(1, 0), (100, 0)]));
    stage.nothing_is_held();
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

#[test]
fn two_alterations_of_each_others_parents_do_not_wait_for_each_other() {
    for order in [[0, 1], [1, 0]] {
        let (mut stage, parent, child) = stage();
        let both = [(ConnectionId(1), child, "p"), (OTHER, parent, "c")];
        stage.rows.hold();
        for place in order {
            let (connection, table, parent) = both[place];
            let alteration = Alteration {
                add_indexes: vec![ordered("k"), unique("u")],
                add_foreign_keys: vec![foreign_key(&format!("to_{parent}"), parent)],
                needs_parents: true,
                ..Alteration::default()
            };
            stage.ask_as(connection, OperationId(place as u64), alter(table, alteration));
            assert_eq!(stage.table(["c", "p"][place]).indexes[1].state, IndexState::Building, "both are being filled");
        }
        stage.release_rows();
        assert_eq!(stage.ended_changes(), BTreeMap::from([(0, 0), (1, 0)]));
        assert_eq!(["c", "p"].map(|name| stage.table(name).foreign_keys.len()), [1, 1]);
        stage.nothing_is_held();
    }
}

#[test]
fn a_table_with_an_index_under_construction_is_not_locked_for_another_session() {
    let (mut stage, _, child) = stage();
    assert_eq!(stage.change(add_index(child, ordered("k"))).error, None);
    let key =
        Alteration { add_foreign_keys: vec![foreign_key("k", "p")], needs_parents: true, ..Alteration::default() };
    let lock = vec![TableLockRequest { name: ("d".into(), "c".into()), writes: false }];
    for wanted in [SchemaChange::LockTables { tables: lock }, alter(child, key)] {
        let is_lock = matches!(wanted, SchemaChange::LockTables { .. });
        stage.rows.hold();
        stage.ask(OperationId(101), add_index(child, unique("u")));
        stage.ask_as(OTHER, OperationId(100), wanted);
        assert_eq!((stage.replies.len(), stage.main.table_locks_held()), (0, 0));
        let cancel = CancelSchemaChange { operation: OperationId(101), reply_to: stage.sql };
        stage.run(MainSignal::CancelSchemaChange(cancel));
        stage.release_rows();
        assert_eq!(
            stage.ended_changes(),
            BTreeMap::from([(100, 0), (101, 1317)]),
            "it is undone, and the other goes on"
        );
        assert_eq!(stage.main.table_locks_held(), usize::from(is_lock));
        stage.run(MainSignal::UnlockTables(UnlockTables { connection: OTHER }));
        stage.nothing_is_held();
    }
    assert_eq!(stage.table("c").foreign_keys.len(), 1);
}
