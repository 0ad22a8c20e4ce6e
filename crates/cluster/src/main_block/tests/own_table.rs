//! Temporary tables and the tables of CREATE TABLE ... SELECT.

use junctor_model::alteration::{ColumnSource, Redefinition};
use junctor_model::id::TableOwner;
use junctor_model::schema::Sharing;
use junctor_model::value::Value;

use super::super::state::Requester;
use super::*;

const OWNER: TableOwner = TableOwner(7);

fn create_own(name: &str, sharing: Sharing) -> SchemaChange {
    let SchemaChange::CreateTable { definition, auto_increment, .. } =
        create_table(name, vec![primary(), unique("u")], false)
    else {
        panic!("it creates a table")
    };
    SchemaChange::CreateOwnTable { definition, sharing, auto_increment }
}

fn own(stage: &Stage, name: &str) -> TableDefinition {
    stage.main.catalog().dictionary.owned_table(OWNER, "d", name).expect("it exists").definition.clone()
}

#[test]
fn a_temporary_table_hides_a_table_of_its_session_and_leaves_no_record() {
    let mut stage = Stage::durable();
    stage.create_database();
    assert_eq!(stage.create("t", vec![primary()]), None);
    let base = stage.table("t");
    assert_eq!(stage.change(create_own("t", Sharing::Temporary(OWNER))).error, None);
    let temporary = own(&stage, "t");
    let dictionary = &stage.main.catalog().dictionary;
    let seen = |owner| dictionary.table_seen_by(owner, "d", "t").map(|layout| layout.definition.id);
    assert_eq!(
        [seen(None), seen(Some(OWNER)), seen(Some(TableOwner(8)))],
        [Some(base.id), Some(temporary.id), Some(base.id)]
    );
    assert_eq!(stage.definitions().len(), 3);
    // Its numbers need no mark in the log.
    assert!(!stage.reserve(temporary.id, 10, 0).2);
    assert_eq!(stage.change(SchemaChange::TruncateTable { table: temporary.id }).error, None);
    let truncated = own(&stage, "t");
    assert!(truncated.id > temporary.id && truncated.is_temporary());
    let records = stage.records();
    let (mut stage, shown) = Stage::restarted(&records);
    assert_eq!((stage.definitions().len(), shown.undone), (1, Vec::new()));
    assert_eq!(stage.table("t"), base);
    assert_eq!(stage.change(drop_table("t")).error, None);
}

#[test]
fn a_table_of_a_query_appears_at_once_or_never() {
    let mut stage = Stage::durable();
    stage.create_database();
    assert_eq!(stage.change(create_own("t", Sharing::Unfinished(OWNER))).error, None);
    let unfinished = own(&stage, "t");
    assert_eq!(stage.main.catalog().dictionary.table_seen_by(Some(OWNER), "d", "t").map(|_| ()), None);
    let records = stage.records();
    let (mut stage, _) = Stage::restarted(&records);
    assert_eq!(stage.definitions(), []);
    assert_eq!(stage.change(create_own("t", Sharing::Unfinished(OWNER))).error, None);
    let again = own(&stage, "t");
    assert!(again.id > unfinished.id, "the log has rows of the first one");
    assert_eq!(stage.change(SchemaChange::FinishTable { table: again.id }).error, None);
    let finished = stage.table("t");
    assert_eq!((finished.id, finished.sharing), (again.id, Sharing::Shared));
    assert_eq!(errno(stage.change(SchemaChange::FinishTable { table: again.id }).error), 1412);
    let (stage, _) = Stage::restarted(&stage.crash(records));
    assert_eq!((stage.table("t"), stage.definitions().len()), (finished, 2));
}

#[test]
fn a_table_of_a_query_whose_name_is_taken_is_refused_and_dropped() {
    let mut stage = Stage::new(&[]);
    stage.create_database();
    assert_eq!(stage.change(create_own("t", Sharing::Unfinished(OWNER))).error, None);
    let table = own(&stage, "t").id;
    assert_eq!(stage.create("t", vec![primary()]), None);
    assert_eq!(errno(stage.change(SchemaChange::FinishTable { table }).error), 1050);
    assert_eq!(stage.change(SchemaChange::DropOwnTables { tables: vec![table] }).error, None);
    assert_eq!(stage.change(SchemaChange::DropOwnTables { tables: vec![table] }).error, None);
    assert_eq!(stage.definitions().len(), 1);
    stage.nothing_is_held();
}

#[test]
fn tables_of_sessions_go_with_their_database() {
    let mut stage = Stage::durable();
    stage.create_database();
    assert_eq!(stage.change(create_own("a", Sharing::Temporary(OWNER))).error, None);
    assert_eq!(stage.change(create_own("b", Sharing::Unfinished(OWNER))).error, None);
    let table = own(&stage, "b").id;
    assert_eq!(stage.change(SchemaChange::DropDatabase { name: "d".into(), if_exists: false }).error, None);
    assert_eq!(stage.definitions(), []);
    assert_eq!(errno(stage.change(SchemaChange::FinishTable { table }).error), 1412);
    let (stage, _) = Stage::restarted(&stage.records());
    assert_eq!(stage.definitions(), []);
}

/// Alters the temporary table `t` with an index that is filled, a copy of the rows, and a new name.
fn alter_own(stage: &mut Stage, name: &str) {
    let table = own(stage, name);
    assert_eq!(stage.change(add_index(table.id, unique("second"))).error, None);
    let table = own(stage, name);
    assert_eq!(table.indexes.len(), 3);
    let mut new = table.clone();
    new.columns.push(column("more"));
    let redefinition = Redefinition {
        old: table.clone(),
        new,
        copy: Some(vec![
            ColumnSource::Column(ColumnNumber(0)),
            ColumnSource::Column(ColumnNumber(1)),
            ColumnSource::Value(Value::Int(7)),
        ]),
        renamed_columns: Vec::new(),
        auto_increment: None,
        rules: Default::default(),
        now_us: 0,
        is_strict: true,
    };
    let alteration = Alteration {
        redefinition: Some(Box::new(redefinition)),
        rename: Some(("d".into(), "other".into())),
        ..Alteration::default()
    };
    assert_eq!(stage.change(alter(table.id, alteration)).error, None);
}

#[test]
fn an_altered_temporary_table_stays_one_and_leaves_no_record() {
    let mut stage = Stage::durable();
    stage.create_database();
    assert_eq!(stage.create("t", vec![primary()]), None);
    assert_eq!(stage.create("other", vec![primary()]), None);
    let stored = stage.definitions();
    assert_eq!(stage.change(create_own("t", Sharing::Temporary(OWNER))).error, None);
    alter_own(&mut stage, "t");
    let altered = own(&stage, "other");
    assert_eq!((altered.columns.len(), altered.indexes.len(), altered.is_temporary()), (3, 3, true));
    assert_eq!(stage.main.catalog().dictionary.owned_table(OWNER, "d", "t").map(|_| ()), None);
    let taken = Alteration { rename: Some(("d".into(), "other".into())), ..Alteration::default() };
    assert_eq!(stage.change(create_own("t", Sharing::Temporary(OWNER))).error, None);
    let second = own(&stage, "t").id;
    assert_eq!(errno(stage.change(alter(second, taken)).error), 1050);
    assert_eq!(stage.change(SchemaChange::DropOwnTables { tables: vec![altered.id, second] }).error, None);
    assert_eq!(stage.definitions(), stored);
    stage.nothing_is_held();
    let records = stage.records();
    assert_eq!(records.dictionary.len(), 3, "of the database and two stored tables");
    let (stage, shown) = Stage::restarted(&records);
    assert_eq!((stage.definitions(), shown.undone), (stored, Vec::new()));
}

#[test]
fn main_of_another_node_gets_no_reply_to_a_request_of_its_own() {
    let mut stage = Stage::new(&[]);
    let of_other = Address::new(NodeId(2), Module::Main, 0);
    let request = Requester::main(of_other).request(SchemaChange::DropOwnTables { tables: vec![TableId(7)] });
    let mut outbox = Outbox::for_test(stage.own);
    stage.main.on_change_schema(request, &mut stage.context.at(stage.now), &mut outbox);
    // Only blocks of sql take this reply. The link would end.
    let sent = outbox.take_sent();
    assert!(sent.iter().all(|(to, _)| *to != of_other), "{sent:?}");
}

#[test]
fn tables_are_dropped_again_if_the_node_with_the_sequencer_is_lost() {
    let mut stage = Stage::new(&[]);
    let request = |node: u8, table: u32| ChangeSchema {
        reply_to: Address::new(NodeId(node), Module::Sql, 0),
        ..Requester::main(stage.own).request(SchemaChange::DropOwnTables { tables: vec![TableId(table)] })
    };
    for signal in [request(1, 7), request(2, 8), request(1, 9)] {
        stage.main.note_dropped_elsewhere(&MainSignal::ChangeSchema(signal));
    }
    stage.main.queue_drops_again(stage.now);
    let queued: Vec<String> = stage.main.waiting.iter().map(|waiting| format!("{:?}", waiting.task)).collect();
    assert_eq!(queued, ["Requested(DropOwnTables { tables: [TableId(7), TableId(9)] })"]);
}
