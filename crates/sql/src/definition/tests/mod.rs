//! Definition statements and their outcomes, in golden files. A case is a statement, `--`, the output of SHOW
//! CREATE TABLE or the error, and the warnings; `==` ends it.

mod dropped_columns;

use std::fmt::Write;
use std::sync::Arc;

use junctor_model::alteration::{ColumnSource, Redefinition};
use junctor_model::collation::CollationId;
use junctor_model::error::Result;
use junctor_model::id::{ColumnNumber, IndexId, TableId};
use junctor_model::schema::{DatabaseDefinition, Dictionary, IndexKind, Placement, TableDefinition, TableKind};
use junctor_model::value::Value;
use junctor_signals::change_schema::SchemaChange;

use super::*;
use crate::bind::Environment;
use crate::mysql_catalog::show::create_table_text;
use crate::parse::{Statement, parse};

fn context(dictionary: &Dictionary) -> DefinitionContext<'_> {
    DefinitionContext {
        owner: Default::default(),
        query: None,
        dictionary,
        database: Some("t"),
        default_partition_count: 4,
        node_groups: 1,
        account: "'u'@'%'",
        foreign_key_checks: true,
        replaces_unknown_engines: true,
        environment: Box::leak(Box::new(Environment::plain(dictionary))),
        rules: Default::default(),
        now_us: 0,
    }
}

fn databases() -> Dictionary {
    let mut dictionary = Dictionary::default();
    for (name, collation) in [("t", CollationId::DEFAULT), ("bin", CollationId::UTF8MB4_BIN)] {
        dictionary.put_database(DatabaseDefinition { name: name.into(), collation });
    }
    dictionary
}

fn define(text: &str, dictionary: &Dictionary) -> Result<CheckedDefinition> {
    let statement = parse(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}")).statement;
    let context = context(dictionary);
    match &statement {
        Statement::CreateTable(table) => create_table(table, &context),
        Statement::CreateIndex(index) => create_index(index, &context),
        Statement::AlterTable(table) => alter_table(table, &context),
        Statement::DropIndex(index) => drop_index(index, &context),
        Statement::CreateDatabase(database) => create_database(database, &context),
        Statement::AlterDatabase(database) => alter_database(database, &context),
        Statement::CreateTableLike(like) => create_table_like(like, &context),
        Statement::DropDatabase(database) => drop_database(database, &context),
        Statement::DropTable(tables) => drop_tables(tables, &context),
        Statement::TruncateTable(table) => truncate_table(table, &context),
        Statement::RenameTables(renames) => rename_tables(renames, &context),
        _ => panic!("{text} defines nothing"),
    }
}

fn table(text: &str) -> TableDefinition {
    match define(text, &databases()).unwrap_or_else(|error| panic!("{text}: {error}")).change {
        SchemaChange::CreateTable { definition, .. } => *definition,
        other => panic!("{other:?}"),
    }
}

fn error(text: &str, dictionary: &Dictionary) -> String {
    define(text, dictionary).map(|defined| format!("{:?}", defined.change)).expect_err(text).to_string()
}

fn outcome(text: &str) -> String {
    let mut out = String::new();
    let deprecations = parse(text.as_bytes()).map(|parsed| parsed.deprecations).unwrap_or_default();
    match define(text, &databases()) {
        Err(error) => writeln!(out, "{error}").expect("a String takes everything"),
        Ok(CheckedDefinition {
            change: SchemaChange::CreateTable { definition, auto_increment, .. }, notes, ..
        }) => {
            let shown = create_table_text(&definition, Some(auto_increment));
            out.push_str(&String::from_utf8(shown).expect("the texts of these tests are UTF-8"));
            out.push('\n');
            for deprecation in deprecations {
                let (code, text) = (deprecation.code().errno(), deprecation.text());
                writeln!(out, "warning {code}: {text}").expect("a String takes everything");
            }
            for (code, message) in notes {
                writeln!(out, "warning {code}: {message}").expect("a String takes everything");
            }
        }
        Ok(other) => panic!("{other:?}"),
    }
    out
}

/// Runs every case of a golden file and compares the whole file, so that a failure prints its new content.
fn check_golden(golden: &str) {
    let mut actual = String::new();
    for case in golden.split("==\n").filter(|case| !case.trim().is_empty()) {
        let (statement, _) = case.split_once("--\n").expect("a case has a statement and an outcome");
        write!(actual, "{statement}--\n{}==\n", outcome(statement.trim())).expect("a String takes everything");
    }
    assert!(actual == golden, "the outcomes are:\n{actual}");
}

#[test]
fn create_table_yields_the_definition_that_mysql_shows() {
    check_golden(include_str!("../golden/tables.txt"));
}

#[test]
fn invalid_tables_have_mysqls_errors() {
    check_golden(include_str!("../golden/errors.txt"));
}

#[test]
fn unsupported_parts_are_named() {
    check_golden(include_str!("../golden/unsupported.txt"));
}

#[test]
fn the_text_of_show_create_table_defines_the_same_table() {
    for case in include_str!("../golden/tables.txt").split("==\n").filter(|case| !case.trim().is_empty()) {
        let (statement, _) = case.split_once("--\n").expect("a case has a statement and an outcome");
        let first = table(statement.trim());
        let shown = String::from_utf8(create_table_text(&first, None)).expect("the texts of these tests are UTF-8");
        let again = table(&shown);
        assert_eq!(create_table_text(&again, None), create_table_text(&first, None), "{shown}");
        assert_eq!(again.columns.len(), first.columns.len());
        for (again, first) in again.columns.iter().zip(&first.columns) {
            assert_eq!((&again.column_type, &again.default), (&first.column_type, &first.default), "{shown}");
        }
    }
}

#[test]
fn a_table_without_a_primary_key_has_a_hidden_one_as_its_last_column() {
    let table = table("CREATE TABLE a (v INT, u INT NOT NULL UNIQUE)");
    let hidden = table.columns.last().expect("there are columns");
    assert!(hidden.hidden && hidden.auto_increment && !hidden.nullable);
    assert_eq!(&*hidden.name, HIDDEN_KEY_NAME);
    assert_eq!(table.primary().columns, table.partition_columns);
    assert_eq!(usize::from(table.primary().columns[0].0), 2);
    assert_eq!(table.column(HIDDEN_KEY_NAME), None);
    assert_eq!(table.indexes.iter().map(|index| index.id.0).collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn using_hash_omits_the_ordered_index() {
    let table = table("CREATE TABLE a (a INT, b INT, PRIMARY KEY (a) USING HASH, UNIQUE KEY (b) USING BTREE)");
    assert_eq!(table.primary().kind, IndexKind::Primary { ordered: false });
    assert!(table.indexes[1].is_ordered());
}

#[test]
fn the_partition_count_is_as_written_or_the_default() {
    for (text, count, columns) in [
        ("CREATE TABLE a (a INT, b INT, PRIMARY KEY (a, b))", 4, 2),
        ("CREATE TABLE a (a INT, b INT, PRIMARY KEY (a, b)) PARTITION BY KEY ()", 4, 2),
        ("CREATE TABLE a (a INT, b INT, PRIMARY KEY (a, b)) PARTITION BY KEY (B) PARTITIONS 7", 7, 1),
        ("CREATE TABLE a (a INT) PARTITION BY KEY () PARTITIONS 256", 256, 1),
    ] {
        let table = table(text);
        assert_eq!((table.partition_count, table.partition_columns.len()), (count, columns), "{text}");
    }
}

#[test]
fn defaults_are_values_of_their_columns() {
    let table = table(
        "CREATE TABLE a (id INT PRIMARY KEY, i INT DEFAULT '12', j INT DEFAULT 1.5, d DOUBLE DEFAULT '1e3', n INT, \
         c CHAR(5) DEFAULT 'ab  ', b BINARY(3) DEFAULT 'a', v VARCHAR(4) DEFAULT 7, t TEXT, r INT NOT NULL, \
         u BIGINT UNSIGNED DEFAULT 18446744073709551615, x VARCHAR(2) DEFAULT 0x4142, f BOOL DEFAULT TRUE)",
    );
    let text = |text: &str| Some(Value::Bytes(text.into()));
    let defaults: Vec<Option<Value>> = table.columns.into_iter().map(|column| column.default).collect();
    assert_eq!(
        defaults,
        [
            None,
            Some(Value::Int(12)),
            Some(Value::Int(2)),
            Some(Value::Double(1000.0)),
            Some(Value::Null),
            text("ab"),
            text("a\0\0"),
            text("7"),
            Some(Value::Null),
            None,
            Some(Value::UInt(u64::MAX)),
            text("AB"),
            Some(Value::Int(1)),
        ]
    );
}

/// A dictionary in which the statement has created `t.a` as table 5.
fn with_table(text: &str) -> Dictionary {
    let mut dictionary = databases();
    let definition = table(text);
    let next_index = IndexId(definition.indexes.len() as u16);
    dictionary.put_table(TableDefinition { id: TableId(5), next_index, ..definition });
    dictionary
}

#[test]
fn indexes_are_made_on_tables_that_exist() {
    let dictionary = with_table("CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(20), t TEXT, KEY k (v))");
    let made = |text: &str| match define(text, &dictionary).expect(text).change {
        SchemaChange::AlterTable { table, alteration, .. } => (table, alteration),
        other => panic!("{other:?}"),
    };
    let (id, alteration) = made("CREATE INDEX k_1 ON a (v)");
    let kinds: Vec<IndexKind> = alteration.add_indexes.iter().map(|index| index.kind).collect();
    assert_eq!((id, &kinds[..]), (TableId(5), &[IndexKind::Ordered][..]));
    assert!(!alteration.validates_rows() && alteration.only_adds_indexes());
    let (_, alteration) = made("CREATE UNIQUE INDEX u ON t.a (v, id)");
    assert!(alteration.has_several_steps() && alteration.add_indexes[0].is_unique());
    for (text, message) in [
        ("CREATE INDEX k ON a (v)", "ERROR 1061 (42000): Duplicate key name 'k'"),
        ("CREATE INDEX `PRIMARY` ON a (v)", "ERROR 1280 (42000): Incorrect index name 'PRIMARY'"),
        ("CREATE INDEX x ON a (nope)", "ERROR 1072 (42000): Key column 'nope' doesn't exist in table"),
        ("CREATE INDEX x ON b (v)", "ERROR 1146 (42S02): Table 't.b' doesn't exist"),
        ("CREATE INDEX x ON a (v, V)", "ERROR 1060 (42S21): Duplicate column name 'V'"),
        (
            "CREATE INDEX x ON a (t)",
            "ERROR 1170 (42000): BLOB/TEXT column 't' used in key specification without a key length",
        ),
        (
            "CREATE INDEX x ON information_schema.tables (v)",
            "ERROR 1044 (42000): Access denied for user 'u'@'%' to database 'information_schema'",
        ),
    ] {
        assert_eq!(error(text, &dictionary), message, "{text}");
    }
}

#[test]
fn indexes_are_dropped_by_name_unless_something_needs_them() {
    let dictionary =
        with_table("CREATE TABLE a (id INT AUTO_INCREMENT, v INT, KEY i (id), KEY j (v), PRIMARY KEY (v))");
    let dropped = define("DROP INDEX J ON a", &dictionary).expect("it exists").change;
    let SchemaChange::AlterTable { table, alteration, .. } = dropped else { panic!("{dropped:?}") };
    assert_eq!((table, &alteration.drop_indexes[..]), (TableId(5), &[Box::from("J")][..]));
    for (text, message) in [
        ("DROP INDEX x ON a", "ERROR 1091 (42000): Can't DROP 'x'; check that column/key exists"),
        (
            "DROP INDEX i ON a",
            "ERROR 1075 (42000): Incorrect table definition; there can be only one auto column and it must be defined as a \
             key",
        ),
        ("DROP INDEX i ON nope.a", "ERROR 1146 (42S02): Table 'nope.a' doesn't exist"),
    ] {
        assert_eq!(error(text, &dictionary), message, "{text}");
    }
    let without = with_table("CREATE TABLE a (v INT)");
    let message = "ERROR 1091 (42000): Can't DROP 'PRIMARY'; check that column/key exists";
    assert_eq!(error("DROP INDEX `PRIMARY` ON a", &without), message);
}

#[test]
fn databases_and_tables_are_created_and_dropped() {
    let dictionary = with_table("CREATE TABLE a (id INT PRIMARY KEY)");
    let shown = |text: &str| format!("{:?}", define(text, &dictionary).expect(text).change);
    for (text, change) in [
        (
            "CREATE DATABASE IF NOT EXISTS x COLLATE utf8mb4_bin",
            "CreateDatabase { name: \"x\", collation: CollationId(46), if_not_exists: true }",
        ),
        (
            "CREATE DATABASE x CHARACTER SET utf8",
            "CreateDatabase { name: \"x\", collation: CollationId(33), if_not_exists: false }",
        ),
        ("DROP DATABASE x", "DropDatabase { name: \"x\", if_exists: false }"),
        ("DROP TABLE IF EXISTS a, x.b", "DropTables { names: [(\"t\", \"a\"), (\"x\", \"b\")], if_exists: true }"),
        ("TRUNCATE a", "TruncateTable { table: TableId(5) }"),
    ] {
        assert_eq!(shown(text), change, "{text}");
    }
    for (text, message) in [
        ("CREATE DATABASE `x `", "ERROR 1102 (42000): Incorrect database name 'x '"),
        (
            "CREATE DATABASE Information_Schema",
            "ERROR 1044 (42000): Access denied for user 'u'@'%' to database 'Information_Schema'",
        ),
        ("DROP DATABASE junctor_info", "ERROR 1044 (42000): Access denied for user 'u'@'%' to database 'junctor_info'"),
        ("CREATE DATABASE x CHARACTER SET nope", "ERROR 1115 (42000): Unknown character set: 'nope'"),
        ("DROP TABLE a, t.a", "ERROR 1066 (42000): Not unique table/alias: 'a'"),
        ("TRUNCATE TABLE b", "ERROR 1146 (42S02): Table 't.b' doesn't exist"),
    ] {
        assert_eq!(error(text, &dictionary), message, "{text}");
    }
    let statement = parse(b"DROP TABLE a").expect("it parses").statement;
    let Statement::DropTable(tables) = statement else { panic!("no DROP TABLE") };
    let nowhere = DefinitionContext { database: None, ..context(&dictionary) };
    assert_eq!(drop_tables(&tables, &nowhere).expect_err("no database").code.errno(), 1046);
}

#[test]
fn every_create_table_of_the_corpus_is_defined_or_refused_by_name() {
    const STATEMENTS: &str = include_str!("../../../../../tests/corpus/mysql-statements.txt");
    let mut tables = 0;
    for text in STATEMENTS.split("--\n").map(str::trim) {
        let Ok(parsed) = parse(text.as_bytes()) else { continue };
        let Statement::CreateTable(table) = parsed.statement else { continue };
        if table.select.is_some() {
            // The columns of the query are planned elsewhere.
            continue;
        }
        tables += 1;
        if let Err(error) = create_table(&table, &context(&databases())) {
            // Error 1824: the parents of foreign keys are missing from this dictionary.
            assert!(matches!(error.code.errno(), 1235 | 1824), "{text}: {error}");
        }
    }
    assert!(tables >= 8, "{tables} tables were read");
}

#[test]
fn an_unknown_engine_is_an_error_with_no_engine_substitution() {
    let dictionary = databases();
    let refusing = DefinitionContext { replaces_unknown_engines: false, ..context(&dictionary) };
    let create = |engine: &str| {
        let text = format!("CREATE TABLE new_table (id INT PRIMARY KEY) ENGINE={engine}");
        let Statement::CreateTable(table) = parse(text.as_bytes()).expect("it is good").statement else {
            panic!("{text} makes no table")
        };
        create_table(&table, &refusing).map(|defined| defined.notes.len())
    };
    let error = create("Turbo").expect_err("there is no such engine");
    assert_eq!((error.code.errno(), &*error.message), (1286, "Unknown storage engine 'Turbo'"));
    assert_eq!(create("InnoDB").expect("it is served"), 0);
    assert_eq!(create("MyISAM").expect("it is replaced"), 1);
}

/// The redefinition that a statement asks for.
fn redefined(text: &str, dictionary: &Dictionary) -> Redefinition {
    let change = define(text, dictionary).expect(text).change;
    let SchemaChange::AlterTable { alteration, .. } = change else { panic!("{change:?}") };
    *alteration.redefinition.clone().expect("the statement changes columns or options")
}

fn column_names(table: &TableDefinition) -> Vec<&str> {
    table.columns.iter().map(|column| &*column.name).collect()
}

#[test]
fn rows_are_copied_only_if_their_form_changes() {
    let dictionary = with_table(
        "CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(9), w INT NOT NULL DEFAULT 3, KEY k (v, w), UNIQUE u (w))",
    );
    for text in [
        "ALTER TABLE a RENAME COLUMN v TO x",
        "ALTER TABLE a CHANGE v x VARCHAR(9) DEFAULT 'y' COMMENT 'c'",
        "ALTER TABLE a MODIFY v VARCHAR(12)",
        "ALTER TABLE a ALTER COLUMN w DROP DEFAULT, COMMENT = 'x', AUTO_INCREMENT = 7",
        "ALTER TABLE a ALTER w SET DEFAULT 4, ADD KEY (w), DROP KEY k, ENGINE = InnoDB, FORCE",
        "ALTER TABLE a MODIFY id INT COMMENT 'still NOT NULL'",
    ] {
        let redefined = redefined(text, &dictionary);
        assert_eq!(redefined.copy, None, "{text}");
        assert_eq!(redefined.new.indexes, redefined.old.indexes, "{text}");
    }
    for text in [
        "ALTER TABLE a ADD COLUMN x INT, DROP COLUMN v",
        "ALTER TABLE a ADD COLUMN x INT UNIQUE",
        "ALTER TABLE a ADD COLUMN x INT DEFAULT (1 + 1)",
        "ALTER TABLE a ADD COLUMN x INT AS (w) STORED",
        "ALTER TABLE a ADD COLUMN x DATE NOT NULL",
        "ALTER TABLE a ADD COLUMN x INT CHECK (x > 1)",
        "ALTER TABLE a ADD COLUMN x INT, DROP KEY k",
        "ALTER TABLE a ADD COLUMN x INT, ALGORITHM=COPY",
        "ALTER TABLE a ADD COLUMN x INT, ALGORITHM=INPLACE",
        "ALTER TABLE a DROP COLUMN v",
        "ALTER TABLE a MODIFY v VARCHAR(8)",
        "ALTER TABLE a MODIFY v VARCHAR(9) NOT NULL",
        "ALTER TABLE a MODIFY v TEXT, DROP KEY k",
        "ALTER TABLE a MODIFY w BIGINT NOT NULL",
        "ALTER TABLE a MODIFY w INT UNSIGNED NOT NULL",
        "ALTER TABLE a MODIFY w INT NOT NULL FIRST",
        "ALTER TABLE a MODIFY v VARCHAR(9) COLLATE utf8mb4_bin",
        "ALTER TABLE a DROP PRIMARY KEY",
        "ALTER TABLE a DROP PRIMARY KEY, ADD PRIMARY KEY (w)",
        "ALTER TABLE a PARTITION BY KEY (id) PARTITIONS 5",
        "ALTER TABLE a CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
    ] {
        assert!(redefined(text, &dictionary).copy.is_some(), "{text}");
    }
}

#[test]
fn rows_need_not_have_the_values_of_added_columns() {
    let dictionary = with_table(
        "CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(9), w INT NOT NULL DEFAULT 3, KEY k (v DESC, w), UNIQUE u (w))",
    );
    let text = "ALTER TABLE a ADD COLUMN x INT DEFAULT 5 FIRST, ADD COLUMN y VARCHAR(9) NOT NULL AFTER v, COMMENT 'c'";
    let redefined = redefined(text, &dictionary);
    assert_eq!((&redefined.copy, column_names(&redefined.new)), (&None, vec!["x", "id", "v", "y", "w"]));
    let added = |name: &str| {
        let column = redefined.new.columns.iter().find(|column| *column.name == *name);
        column.and_then(|column| column.added.as_deref().cloned()).map(|added| (added.order, added.value))
    };
    assert_eq!(added("x"), Some((0, Value::Int(5))));
    assert_eq!(added("y"), Some((1, Value::Bytes(Vec::new()))));
    assert_eq!(added("w"), None);
    let numbers = |columns: &[ColumnNumber]| columns.iter().map(|column| column.0).collect::<Vec<_>>();
    let keys: Vec<_> = redefined.new.indexes.iter().map(|index| numbers(&index.columns)).collect();
    assert_eq!(keys, [vec![1], vec![2, 4], vec![4]]);
    assert_eq!(numbers(&redefined.new.indexes[1].attributes.descending), [2]);
    assert_eq!(numbers(&redefined.new.partition_columns), [1]);
}

#[test]
fn algorithm_and_lock_are_promises_that_are_kept_or_refused() {
    let dictionary = with_table(
        "CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(9), w INT NOT NULL DEFAULT 3, KEY k (v, w), UNIQUE u (w))",
    );
    for text in [
        "ALTER TABLE a ALTER w SET DEFAULT 4, RENAME COLUMN v TO x, MODIFY id INT COMMENT 'c', ALGORITHM=INSTANT",
        "ALTER TABLE a ALGORITHM=INSTANT, RENAME TO b, RENAME KEY k TO kk",
        "ALTER TABLE a MODIFY v VARCHAR(12), ALGORITHM INSTANT LOCK DEFAULT",
        "ALTER TABLE a ADD x INT NOT NULL DEFAULT 1 AFTER id, ADD y DATETIME DEFAULT NOW(), ALGORITHM=INSTANT",
        "ALTER TABLE a ADD x INT, DROP v, ADD KEY (x), MODIFY w INT, ALGORITHM=inplace, LOCK=none",
        "ALTER TABLE a ADD KEY p (v(3)), ALGORITHM=INPLACE, LOCK=NONE",
        "ALTER TABLE a DROP PRIMARY KEY, ADD PRIMARY KEY (w), ALGORITHM=INPLACE, LOCK=NONE",
        "ALTER TABLE a MODIFY w BIGINT NOT NULL, LOCK=NONE",
        "ALTER TABLE a MODIFY w BIGINT NOT NULL, ALGORITHM=COPY, LOCK=SHARED",
        "ALTER TABLE a DROP PRIMARY KEY, ALGORITHM=COPY, LOCK=EXCLUSIVE",
        "CREATE INDEX x ON a (w, v) ALGORITHM=INPLACE LOCK=NONE",
        "DROP INDEX k ON a LOCK=NONE ALGORITHM=`DEFAULT`",
    ] {
        assert!(define(text, &dictionary).is_ok(), "{text}: {}", error(text, &dictionary));
    }
    let instant =
        "ERROR 1845 (0A000): ALGORITHM=INSTANT is not supported for this operation. Try ALGORITHM=COPY/INPLACE.";
    let by_copy = "ERROR 1845 (0A000): ALGORITHM=INPLACE is not supported for this operation. Try ALGORITHM=COPY.";
    for (text, message) in [
        ("ALTER TABLE a ADD x INT DEFAULT (1 + 1), ALGORITHM=INSTANT", instant),
        ("ALTER TABLE a DROP v, ALGORITHM=INSTANT", instant),
        ("ALTER TABLE a DROP KEY k, ALGORITHM=INSTANT", instant),
        ("CREATE INDEX x ON a (w, v) ALGORITHM=INSTANT", instant),
        ("DROP INDEX k ON a ALGORITHM=INSTANT", instant),
        ("ALTER TABLE a ADD CHECK (w > 0), ALGORITHM=INPLACE", by_copy),
        ("ALTER TABLE a ADD x INT AS (w) STORED, ALGORITHM=INPLACE", by_copy),
        ("ALTER TABLE a PARTITION BY KEY (id) PARTITIONS 5, ALGORITHM=INPLACE", by_copy),
        (
            "ALTER TABLE a ADD CHECK (w > 0), ALGORITHM=INSTANT",
            "ERROR 1845 (0A000): ALGORITHM=INSTANT is not supported for this operation. Try ALGORITHM=COPY.",
        ),
        (
            "ALTER TABLE a MODIFY v VARCHAR(8), ALGORITHM=INPLACE",
            "ERROR 1846 (0A000): ALGORITHM=INPLACE is not supported. Reason: Cannot change column type INPLACE. Try \
             ALGORITHM=COPY.",
        ),
        (
            "ALTER TABLE a DROP PRIMARY KEY, ALGORITHM=INPLACE",
            "ERROR 1846 (0A000): ALGORITHM=INPLACE is not supported. Reason: Dropping a primary key is not allowed \
             without also adding a new primary key. Try ALGORITHM=COPY.",
        ),
        (
            "ALTER TABLE a DROP PRIMARY KEY, LOCK=NONE",
            "ERROR 1846 (0A000): LOCK=NONE is not supported. Reason: Dropping a primary key is not allowed without also \
             adding a new primary key. Try LOCK=SHARED.",
        ),
        (
            "ALTER TABLE a ADD FOREIGN KEY (w) REFERENCES a (id), ALGORITHM=INPLACE",
            "ERROR 1846 (0A000): ALGORITHM=INPLACE is not supported. Reason: Adding foreign keys needs \
             foreign_key_checks=OFF. Try ALGORITHM=COPY.",
        ),
        (
            "ALTER TABLE a ADD FOREIGN KEY (w) REFERENCES a (id), LOCK=NONE",
            "ERROR 1846 (0A000): LOCK=NONE is not supported. Reason: Adding foreign keys needs foreign_key_checks=OFF. \
             Try LOCK=SHARED.",
        ),
        (
            "ALTER TABLE a ADD n INT AUTO_INCREMENT UNIQUE, LOCK=NONE",
            "ERROR 1846 (0A000): LOCK=NONE is not supported. Reason: Adding an auto-increment column requires a lock. Try \
             LOCK=SHARED.",
        ),
        (
            "ALTER TABLE a RENAME COLUMN v TO x, ALGORITHM=COPY, LOCK=NONE",
            "ERROR 1846 (0A000): LOCK=NONE is not supported. Reason: COPY algorithm requires a lock. Try LOCK=SHARED.",
        ),
        (
            "ALTER TABLE a RENAME COLUMN v TO x, ALGORITHM=INSTANT, LOCK=NONE",
            "ERROR 1221 (HY000): Incorrect usage of ALGORITHM=INSTANT and LOCK=NONE/SHARED/EXCLUSIVE",
        ),
    ] {
        assert_eq!(error(text, &dictionary), message, "{text}");
    }
    for (text, message) in [
        ("ALTER TABLE a RENAME b, ALGORITHM=fast, LOCK=NONE", "Unknown ALGORITHM 'fast'"),
        ("CREATE INDEX x ON a (w) ALGORITHM=COPY LOCK `no lock`", "Unknown LOCK type 'no lock'"),
        ("DROP INDEX x ON a LOCK all_of_it", "Unknown LOCK type 'all_of_it'"),
    ] {
        assert_eq!(parse(text.as_bytes()).expect_err(text).to_string(), message, "{text}");
    }
}

#[test]
fn columns_are_added_moved_renamed_and_dropped_together() {
    let dictionary = with_table(
        "CREATE TABLE a (id INT PRIMARY KEY, v INT, w INT NOT NULL, x INT, KEY k (v, w), UNIQUE u (w), KEY d (x))",
    );
    let text = "ALTER TABLE a DROP x, ADD y INT DEFAULT 7 AFTER id, CHANGE w ww BIGINT NOT NULL FIRST, ADD z CHAR(3) NOT \
                NULL, MODIFY v INT AFTER z, RENAME KEY k TO kk, ADD UNIQUE (y), DROP KEY u";
    let redefined = redefined(text, &dictionary);
    assert_eq!(column_names(&redefined.new), ["ww", "id", "y", "z", "v"]);
    let sources = redefined.copy.expect("the form changes");
    let old = |number| ColumnSource::Column(ColumnNumber(number));
    let value = ColumnSource::Value;
    let empty = value(Value::Bytes(Vec::new()));
    assert_eq!(sources, [old(2), old(0), value(Value::Int(7)), empty, old(1)]);
    let indexes = redefined.new.indexes.iter().map(|index| (&*index.name, index.columns.clone()));
    let number = |numbers: &[u16]| numbers.iter().map(|number| ColumnNumber(*number)).collect::<Vec<_>>();
    let expected = [("PRIMARY", number(&[1])), ("kk", number(&[4, 0])), ("y", number(&[2]))];
    assert_eq!(indexes.collect::<Vec<_>>(), expected);
    assert_eq!(redefined.renamed_columns, [("w".into(), "ww".into())]);
}

#[test]
fn a_table_without_a_primary_key_keeps_its_hidden_key_or_gets_one() {
    let dictionary = with_table("CREATE TABLE a (v INT)");
    let added = redefined("ALTER TABLE a ADD w INT", &dictionary);
    assert_eq!(column_names(&added.new), ["v", "w", create_table::HIDDEN_KEY_NAME]);
    assert_eq!((added.copy, &added.new.primary().columns[..]), (None, &[ColumnNumber(2)][..]));
    let kept = redefined("ALTER TABLE a ADD w INT, ALGORITHM=COPY", &dictionary);
    assert_eq!(column_names(&kept.new), ["v", "w", create_table::HIDDEN_KEY_NAME]);
    assert_eq!(kept.copy.expect("the form changes").last(), Some(&ColumnSource::Column(ColumnNumber(1))));
    let gone = redefined("ALTER TABLE a ADD id INT AUTO_INCREMENT PRIMARY KEY FIRST", &dictionary);
    assert_eq!(column_names(&gone.new), ["id", "v"]);
    assert_eq!(gone.copy.expect("the form changes")[0], ColumnSource::Numbers);
    let dictionary = with_table("CREATE TABLE a (id INT PRIMARY KEY)");
    let new = redefined("ALTER TABLE a DROP PRIMARY KEY", &dictionary);
    assert_eq!(new.copy.expect("the form changes"), [ColumnSource::Column(ColumnNumber(0)), ColumnSource::Numbers]);
}

#[test]
fn wrong_changes_of_columns_have_mysqls_errors() {
    let dictionary = with_table("CREATE TABLE a (id INT PRIMARY KEY, v INT, w VARCHAR(9), KEY k (w))");
    for (text, message) in [
        ("ALTER TABLE a DROP x", "ERROR 1091 (42000): Can't DROP 'x'; check that column/key exists"),
        ("ALTER TABLE a MODIFY x INT", "ERROR 1054 (42S22): Unknown column 'x' in 'a'"),
        ("ALTER TABLE a ADD x INT AFTER y", "ERROR 1054 (42S22): Unknown column 'y' in 'a'"),
        ("ALTER TABLE a ADD V INT", "ERROR 1060 (42S21): Duplicate column name 'V'"),
        ("ALTER TABLE a RENAME COLUMN v TO w", "ERROR 1060 (42S21): Duplicate column name 'w'"),
        (
            "ALTER TABLE a DROP id, DROP v, DROP w",
            "ERROR 1090 (42000): You can't delete all columns with ALTER TABLE; use DROP TABLE instead",
        ),
        ("ALTER TABLE a ADD PRIMARY KEY (v)", "ERROR 1068 (42000): Multiple primary key defined"),
        (
            "ALTER TABLE a MODIFY w TEXT",
            "ERROR 1170 (42000): BLOB/TEXT column 'w' used in key specification without a key length",
        ),
        (
            "ALTER TABLE a MODIFY id INT NULL",
            "ERROR 1171 (42000): All parts of a PRIMARY KEY must be NOT NULL; if you need NULL in a key, use UNIQUE \
             instead",
        ),
        (
            "ALTER TABLE a ADD x INT AUTO_INCREMENT",
            "ERROR 1075 (42000): Incorrect table definition; there can be only one auto column and it must be defined as a \
             key",
        ),
        (
            "ALTER TABLE a COALESCE PARTITION 1",
            "ERROR 1505 (HY000): Partition management on a not partitioned table is not possible",
        ),
    ] {
        assert_eq!(error(text, &dictionary), message, "{text}");
    }
}

#[test]
fn a_table_is_spread_if_a_node_group_lacks_it_or_has_to_leave() {
    let definitions = [
        ("CREATE TABLE a (id INT PRIMARY KEY)", 8, 6),
        ("CREATE TABLE a (id INT PRIMARY KEY) PARTITION BY KEY (id) PARTITIONS 3", 3, 3),
    ];
    for (text, partitions, of_three) in definitions {
        let mut dictionary = with_table(text);
        let mut table = dictionary.table_named("t", "a").expect("it exists").definition.clone();
        for (groups, expected) in [(1, Some(partitions)), (2, None), (3, Some(of_three))] {
            table.placement = Some(Placement { first: 0, groups });
            if !table.has_partition_clause && groups == 3 {
                table.partition_count = 9;
            }
            dictionary.put_table(table.clone());
            let reorganize = b"ALTER TABLE a REORGANIZE PARTITION, ALGORITHM=INPLACE";
            let statement = parse(reorganize).expect("it parses").statement;
            let Statement::AlterTable(alter) = &statement else { panic!("ALTER TABLE") };
            let default_partition_count = if groups == 3 { 4 } else { 8 };
            let context = DefinitionContext { node_groups: 2, default_partition_count, ..context(&dictionary) };
            let change = alter_table(alter, &context).expect("it is possible").change;
            let SchemaChange::AlterTable { alteration, .. } = change else { panic!("{change:?}") };
            let copied = alteration.copy().map(|(redefinition, _)| redefinition.new.partition_count);
            assert_eq!(copied, expected, "{text}, {groups}");
        }
    }
}

#[test]
fn a_table_moves_with_the_entries_of_a_unique_index_that_are_elsewhere() {
    for (of_entries, is_moved) in
        [(Placement { first: 0, groups: 2 }, true), (Placement { first: 1, groups: 2 }, false)]
    {
        let mut dictionary = with_table("CREATE TABLE a (id INT PRIMARY KEY, x INT, UNIQUE u (x))");
        let mut table = dictionary.table_named("t", "a").expect("it exists").definition.clone();
        table.placement = Some(Placement { first: 1, groups: 2 });
        let entries = TableId(table.id.0 + 1);
        let index = table.indexes[1].id;
        table.indexes[1].kind = IndexKind::Unique { entries, ordered: true };
        let hidden = TableDefinition {
            id: entries,
            name: "a.u".into(),
            placement: Some(of_entries),
            kind: TableKind::UniqueEntries { base: table.id, index },
            ..table.clone()
        };
        dictionary.put_table(table);
        dictionary.put_table(hidden);
        let statement = parse(b"ALTER TABLE a REORGANIZE PARTITION").expect("it parses").statement;
        let Statement::AlterTable(alter) = &statement else { panic!("ALTER TABLE") };
        let context = DefinitionContext { node_groups: 2, ..context(&dictionary) };
        let change = alter_table(alter, &context).expect("it is possible").change;
        let SchemaChange::AlterTable { alteration, .. } = change else { panic!("{change:?}") };
        assert_eq!(alteration.copy().is_some(), is_moved);
    }
}

#[test]
fn a_table_like_another_has_its_columns_indexes_and_options() {
    let mut dictionary = with_table(
        "CREATE TABLE a (id INT AUTO_INCREMENT PRIMARY KEY, v CHAR(3) DEFAULT 'x', UNIQUE u (v), FOREIGN KEY (id) \
         REFERENCES a (id)) COMMENT 'c' AUTO_INCREMENT 9 PARTITION BY KEY (id) PARTITIONS 3",
    );
    for text in ["CREATE TABLE b LIKE a", "CREATE TABLE b (LIKE t.a)"] {
        let SchemaChange::CreateTable { definition, auto_increment, .. } =
            define(text, &dictionary).expect(text).change
        else {
            panic!("{text}")
        };
        let source = &dictionary.table_named("t", "a").expect("it exists").definition;
        let expected = TableDefinition { name: "b".into(), foreign_keys: Vec::new(), ..source.clone() };
        assert_eq!((*definition, auto_increment), (expected, 1));
    }
    assert_eq!(error("CREATE TABLE b LIKE x", &dictionary), "ERROR 1146 (42S02): Table 't.x' doesn't exist");
    assert_eq!(error("ALTER DATABASE x COLLATE binary", &dictionary), "ERROR 1049 (42000): Unknown database 'x'");
    let SchemaChange::AlterDatabase { name, collation } =
        define("ALTER DATABASE COLLATE utf8mb4_bin", &dictionary).expect("the session has a database").change
    else {
        panic!("ALTER DATABASE")
    };
    assert_eq!((&*name, collation), ("t", CollationId::UTF8MB4_BIN));
    dictionary.put_database(DatabaseDefinition { name, collation });
}

#[test]
fn functions_that_give_a_truth_value_are_conditions_of_a_check() {
    let errno = |condition: &str| {
        let text = format!("CREATE TABLE t.a (a VARCHAR(20), CHECK ({condition}))");
        define(&text, &databases()).err().map(|error| error.code.errno())
    };
    for condition in ["IS_IPV4(a)", "is_uuid(a)", "JSON_VALID(a)", "a IS NULL", "TRUE"] {
        assert_eq!(errno(condition), None, "{condition}");
    }
    assert_eq!((errno("LENGTH(a)"), errno("a")), (Some(3812), Some(3812)));
}

#[test]
fn a_database_of_users_with_the_name_of_one_of_the_system_can_be_left() {
    let mut dictionary = databases();
    for text in ["DROP DATABASE sys", "RENAME TABLE sys.a TO t.a"] {
        assert!(error(text, &dictionary).contains("1044"), "{text}");
    }
    dictionary.put_database(DatabaseDefinition { name: "sys".into(), collation: CollationId::DEFAULT });
    for text in ["DROP DATABASE sys", "RENAME TABLE sys.a TO t.a"] {
        define(text, &dictionary).unwrap_or_else(|error| panic!("{text}: {error}"));
    }
    for text in ["RENAME TABLE t.a TO sys.a", "CREATE TABLE sys.a (a INT)", "DROP TABLE sys.a"] {
        assert!(error(text, &dictionary).contains("1044"), "{text}");
    }
}
