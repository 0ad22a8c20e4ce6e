//! ALTER TABLE with a copy of the rows: nothing remains of it if it ends early, and numbers continue.

use junctor_model::alteration::{Alteration, ColumnSource, Redefinition};
use junctor_model::id::ColumnNumber;
use junctor_model::schema::{TableDefinition, TableKind};

use super::*;

/// A database with the table `t`.
fn stage(mut stage: Stage) -> (Stage, TableDefinition) {
    stage.create_database();
    assert_eq!(stage.create("t", vec![primary(), unique("u")]), None);
    let table = stage.table("t");
    (stage, table)
}

/// ALTER TABLE ... ADD COLUMN, RENAME.
fn add_column(old: &TableDefinition, automatic: bool) -> Alteration {
    let mut new = old.clone();
    new.columns.push(column("added"));
    let mut sources: Vec<ColumnSource> =
        (0..old.columns.len()).map(|position| ColumnSource::Column(ColumnNumber(position as u16))).collect();
    sources.push(ColumnSource::Value(junctor_model::value::Value::Int(1)));
    new.columns[0].auto_increment = automatic;
    let redefinition = Redefinition {
        old: old.clone(),
        new,
        copy: Some(sources),
        renamed_columns: Vec::new(),
        auto_increment: None,
        rules: junctor_model::temporal::ValueRules::DEFAULT,
        now_us: 0,
        is_strict: true,
    };
    Alteration {
        redefinition: Some(Box::new(redefinition)),
        rename: Some(("d".into(), "n".into())),
        ..Alteration::default()
    }
}

#[test]
fn the_new_table_takes_the_place_of_the_old_one() {
    let (mut stage, old) = stage(Stage::new(&[]));
    assert_eq!(stage.change(alter(old.id, add_column(&old, false))).error, None);
    stage.nothing_is_held();
    let new = stage.table("n");
    assert_eq!((new.columns.len(), new.kind, new.indexes.len()), (old.columns.len() + 1, TableKind::Base, 2));
    let tables: Vec<_> =
        stage.main.catalog().dictionary.tables().map(|layout| layout.definition.name.clone()).collect();
    assert_eq!(tables, [Box::from("n"), Box::from("n.u")]);
    // The old definition is not the table's any more.
    assert_eq!(errno(stage.change(alter(new.id, add_column(&old, false))).error), 1412);
}

#[test]
fn a_copy_that_is_cancelled_in_any_stage_leaves_no_table() {
    let mut cancelled = 0;
    for replies in 0.. {
        let (mut stage, old) = stage(Stage::new(&[]));
        (stage.in_use, stage.rows.is_held) = (true, true);
        stage.ask(OperationId(100), alter(old.id, add_column(&old, false)));
        for _ in 0..replies {
            match stage.blocked.keys().copied().find(|change| !stage.left.contains(change)) {
                Some(change) => stage.leave(change),
                None if !stage.rows.replies.is_empty() => stage.release_one(),
                None => break,
            }
        }
        let is_over = !stage.replies.is_empty();
        stage.cancel(100);
        stage.in_use = false;
        stage.release_rows();
        let waiting: Vec<u64> = stage.blocked.keys().copied().collect();
        waiting.into_iter().for_each(|change| stage.leave(change));
        stage.release_rows();
        stage.nothing_is_held();
        let ended = stage.ended_changes();
        if is_over {
            assert_eq!(ended[&100], 0, "after {replies} replies");
            break;
        }
        assert_eq!((ended[&100], stage.table("t")), (1317, old), "after {replies} replies");
        assert_eq!(stage.main.catalog().dictionary.tables().count(), 2, "after {replies} replies");
        cancelled += 1;
    }
    assert!(cancelled >= 3, "{cancelled}");
}

#[test]
fn a_restart_drops_the_table_of_an_unfinished_copy() {
    let (mut stage, old) = stage(Stage::durable());
    stage.rows.hold();
    stage.ask(OperationId(100), alter(old.id, add_column(&old, false)));
    assert_eq!(stage.main.catalog().dictionary.tables().count(), 4);
    let records = stage.records();
    let (mut stage, shown) = Stage::restarted(&records);
    assert_eq!((stage.definitions().len(), shown.undone), (2, vec![old.id]));
    assert_eq!(stage.table("t"), old);
    // The same happens after a second crash, and the alteration may be repeated.
    assert_eq!(stage.change(alter(old.id, add_column(&old, false))).error, None);
    let new = stage.table("n");
    let (stage, shown) = Stage::restarted(&stage.crash(records));
    assert_eq!((stage.table("n"), shown.undone), (new, vec![old.id]));
    assert_eq!(stage.definitions().len(), 2);
}

#[test]
fn auto_increment_numbers_continue_and_unused_ones_return() {
    let (mut stage, old) = stage(Stage::durable());
    assert_eq!(stage.change(alter(old.id, add_column(&old, true))).error, None);
    let table = stage.table("n");
    assert_eq!(stage.reserve(table.id, 32, 0), (1, 32, false));
    // The sql block has used 3 of the 32 numbers. It returns the others when it gets the new catalog.
    stage.held_numbers = Some((table.id, 4..33));
    let mut again = add_column(&table, true);
    again.rename = None;
    assert_eq!(stage.change(alter(table.id, again)).error, None);
    let new = stage.table("n");
    assert!(new.id != table.id);
    assert_eq!(stage.reserve(new.id, 1, 0), (4, 1, false));
}

#[test]
fn returned_numbers_stay_above_the_greatest_explicit_number() {
    let (mut stage, old) = stage(Stage::durable());
    assert_eq!(stage.change(alter(old.id, add_column(&old, true))).error, None);
    let table = stage.table("n");
    assert_eq!(stage.reserve(table.id, 32, 0), (1, 32, false));
    let numbers = |range, explicit| {
        let numbers = Box::new([ReturnedNumbers { table: table.id, range, explicit }]);
        MainSignal::ReturnAutoIncrement(ReturnAutoIncrement { numbers, is_stop: false })
    };
    // One block has written 20 explicitly, another one returns 4 to 32.
    stage.run(numbers(0..0, 20));
    stage.run(numbers(4..33, 0));
    assert_eq!(stage.reserve(table.id, 1, 0), (21, 1, false));
}

#[test]
fn alter_table_sets_the_next_number() {
    let (mut stage, old) = stage(Stage::durable());
    assert_eq!(stage.change(alter(old.id, add_column(&old, true))).error, None);
    let table = stage.table("n");
    assert_eq!(stage.reserve(table.id, 32, 0), (1, 32, false));
    let mut raise = add_column(&table, true);
    raise.rename = None;
    let redefinition = raise.redefinition.as_mut().expect("it has one");
    (redefinition.new, redefinition.copy, redefinition.auto_increment) = (table.clone(), None, Some(20));
    assert_eq!(stage.change(alter(table.id, raise)).error, None);
    let numbers = Box::new([ReturnedNumbers { table: table.id, range: 5..33, explicit: 0 }]);
    stage.run(MainSignal::ReturnAutoIncrement(ReturnAutoIncrement { numbers, is_stop: false }));
    assert_eq!(stage.reserve(table.id, 1, 0), (20, 1, false));
}
