//! Statements: the syntax tree of each form, and the errors with their positions.

use super::{error_of, missing_part, select, statement};
use crate::parse::Dialect;
use crate::parse::account::AccountReference;
use crate::parse::definition::{
    DefaultValue, IndexAlgorithm, IndexKind, IntegerSize, LongSize, PartitionByKey, ReferentialAction, TableOption,
    TypeKind,
};
use crate::parse::expression::{Expression, Literal, ParameterNumber, StringLiteral, VariableScope};
use crate::parse::query::FromItem;
use crate::parse::statement::{
    AccessMode, InsertSource, IsolationLevel, Limit, LimitValue, LockingClause, ObjectName, SelectItem, SetItem, Show,
    ShowFilter, StartTransaction, Statement, TableLocks, TransactionEnd, WhenLocked,
};
use crate::parse::{ParseErrorKind, first_statement_end, parse, parse_next};

fn string(text: &str) -> Option<Expression> {
    let bytes = text.as_bytes().to_vec();
    Some(Expression::Literal(Literal::String(StringLiteral { bytes, character_set: None, is_raw: false })))
}

#[test]
fn a_query_keeps_all_of_its_clauses() {
    let query = select(
        "SELECT DISTINCT a AS x, b+1 y, t.*, d.t.* FROM d.t AS u USE INDEX (k1, PRIMARY) WHERE a = 1 GROUP BY b \
         HAVING c > 1 ORDER BY a DESC, b LIMIT 5, ? FOR UPDATE SKIP LOCKED",
    );
    assert!(query.distinct);
    let SelectItem::Expression { alias, text, .. } = &query.projection[1] else { panic!("no expression") };
    assert_eq!((alias.as_deref(), text.as_str()), (Some("y"), "b+1"));
    let SelectItem::All(Some(table)) = &query.projection[3] else { panic!("no star") };
    assert_eq!((table.database.as_deref(), table.name.as_str()), (Some("d"), "t"));
    let table = query.table().expect("a table");
    assert_eq!((table.name.database.as_deref(), table.alias.as_deref()), (Some("d"), Some("u")));
    assert_eq!(table.index_hints[0].indexes, ["k1", "PRIMARY"]);
    assert!(query.filter.is_some() && query.having.is_some() && query.group_by.len() == 1);
    assert_eq!(query.order_by.iter().map(|item| item.descending).collect::<Vec<_>>(), [true, false]);
    let (count, offset) = (LimitValue::Parameter(ParameterNumber(0)), Some(LimitValue::Rows(5)));
    assert_eq!(query.limit, Some(Limit { count, offset }));
    let skip = LockingClause { exclusive: true, when_locked: WhenLocked::Skip };
    assert_eq!(query.locks, [TableLocks { clause: skip, names: Vec::new() }]);
    assert_eq!(select("SELECT 1 FROM DUAL").from, None);
    let of = |clause, names: &[&str]| {
        let name = |name: &&str| ObjectName { database: None, name: (*name).to_owned() };
        TableLocks { clause, names: names.iter().map(name).collect() }
    };
    let share = LockingClause { exclusive: false, when_locked: WhenLocked::Wait };
    let update = LockingClause { exclusive: true, when_locked: WhenLocked::Fail };
    assert_eq!(select("SELECT * FROM t LOCK IN SHARE MODE").locks, [of(share, &[])]);
    assert_eq!(select("SELECT * FROM t FOR SHARE").locks, [of(share, &[])]);
    let several = select("SELECT * FROM t, u, v FOR SHARE OF t, u FOR UPDATE OF v NOWAIT");
    assert_eq!(several.locks, [of(share, &["t", "u"]), of(update, &["v"])]);
}

#[test]
fn brackets_of_any_depth_hold_a_query_or_a_join() {
    for text in [
        "SELECT * FROM (((SELECT 1 UNION SELECT 2) UNION SELECT 3) INTERSECT (SELECT 3)) x",
        "SELECT * FROM ((((SELECT 1)) ORDER BY 1) LIMIT 1) x",
        "SELECT * FROM t, LATERAL (((SELECT 1) UNION SELECT 2) UNION SELECT 3) x",
        "SELECT * FROM ((TABLE t)) x",
        "SELECT * FROM (((VALUES ROW(1)))) x",
        "SELECT * FROM ((SELECT 1) FOR UPDATE) x",
    ] {
        let from = select(text).from.expect("a table");
        assert!(!matches!(from, FromItem::Table(_)), "{text}");
    }
    for text in [
        "SELECT * FROM (((SELECT 1) x JOIN t))",
        "SELECT * FROM ((((SELECT 1) x)) JOIN t)",
        "SELECT a IN (((SELECT 1 UNION SELECT 2) UNION SELECT 3) INTERSECT (SELECT 3))",
        "SELECT a IN (((SELECT 1)) + 1, 2)",
        "SELECT (((SELECT 1 UNION SELECT 2) EXCEPT SELECT 1) LIMIT 1)",
        "SELECT (((SELECT 1)) + 1)",
        "SELECT ((TABLE t)), ((VALUES ROW(1))), ((TABLE t) + 1)",
        "SELECT 1 = ANY ((TABLE t)), 1 = ALL (VALUES ROW(1))",
        "INSERT INTO t VALUES (1) ON DUPLICATE KEY UPDATE a = ((VALUES(a)))",
        "CREATE TABLE t ((TABLE u))",
    ] {
        statement(text);
    }
    for text in [
        "SELECT * FROM (((SELECT 1) UNION SELECT 2)",
        "SELECT ((SELECT 1 /*!",
        "SELECT 1 WHERE a IN (((SELECT 1 /*!",
        "SELECT * FROM ((SELECT 1) x /*!",
    ] {
        assert!(parse(text.as_bytes()).is_err(), "{text}");
    }
}

#[test]
fn locks_behind_brackets_are_those_of_the_query() {
    let (share, update) = ("FOR SHARE", "FOR UPDATE");
    let exclusive = |text: &str| select(text).locks.iter().map(|locks| locks.clause.exclusive).collect::<Vec<_>>();
    assert_eq!(exclusive(&format!("(SELECT a FROM t) {update}")), [true]);
    assert_eq!(exclusive("((SELECT a FROM t) LOCK IN SHARE MODE)"), [false]);
    assert_eq!(exclusive(&format!("((SELECT a FROM t {share}) {update})")), [true, false]);
    let limited = select(&format!("(SELECT a FROM t ORDER BY a LIMIT 1) {update}"));
    assert!(limited.limit.is_some() && limited.order_by.len() == 1 && limited.locks.len() == 1);
}

#[test]
fn changes_keep_the_hints_behind_their_first_word() {
    for text in [
        "INSERT /*+ SET_VAR(sql_mode = '') WRONG */ LOW_PRIORITY IGNORE INTO t VALUES (1)",
        "REPLACE /*+ SET_VAR(sql_mode = '') WRONG */ t SELECT 1",
        "UPDATE /*+ SET_VAR(sql_mode = '') WRONG */ t SET a = 1",
        "UPDATE /*+ SET_VAR(sql_mode = '') WRONG */ t, u SET t.a = u.a",
        "WITH w AS (SELECT 1) UPDATE /*+ SET_VAR(sql_mode = '') WRONG */ t SET a = 1",
        "DELETE /*+ SET_VAR(sql_mode = '') WRONG */ QUICK FROM t",
        "DELETE /*+ SET_VAR(sql_mode = '') WRONG */ t FROM t, u",
        "DELETE /*+ SET_VAR(sql_mode = '') WRONG */ FROM t USING t, u",
    ] {
        let statement = statement(text);
        let hints = statement.hints_of_change().unwrap_or_else(|| panic!("{text} has no hints"));
        assert_eq!((hints.list.len(), hints.error.is_some()), (1, true), "{text}");
        assert!(statement.has_hints());
    }
    for text in ["INSERT INTO /*+ SET_VAR(a = 1) */ t VALUES (1)", "DELETE /* no hint */ FROM t", "UPDATE t SET a = 1"]
    {
        assert!(!statement(text).has_hints(), "{text}");
    }
}

#[test]
fn an_insert_keeps_rows_defaults_and_flags() {
    let Statement::Insert(insert) = statement("INSERT IGNORE INTO t (a, b) VALUES (1, DEFAULT), (2, DEFAULT(b))")
    else {
        panic!("no insert")
    };
    assert!(insert.ignore && !insert.replace);
    assert_eq!(insert.columns.as_deref(), Some(["a".to_owned(), "b".to_owned()].as_slice()));
    let InsertSource::Rows(rows) = &insert.source else { panic!("no rows") };
    assert_eq!(rows[0][1], Expression::Default(None));
    assert!(matches!(rows[1][1], Expression::Default(Some(_))));
    let Statement::Insert(insert) = statement("REPLACE t SET a=1, b=DEFAULT") else { panic!("no insert") };
    assert!(insert.replace && insert.columns.is_some_and(|columns| columns == ["a", "b"]));
    let text = "INSERT INTO t VALUES (1,2) AS n(x,y) ON DUPLICATE KEY UPDATE a=n.x, b=VALUES(b)";
    let Statement::Insert(insert) = statement(text) else { panic!("no insert") };
    assert_eq!(insert.on_duplicate.len(), 2);
    assert_eq!(insert.row_alias.map(|alias| alias.columns), Some(vec!["x".to_owned(), "y".to_owned()]));
    let Statement::Insert(insert) = statement("INSERT INTO t () VALUES ()") else { panic!("no insert") };
    assert_eq!((insert.columns, insert.source), (Some(vec![]), InsertSource::Rows(vec![vec![]])));
    let Statement::Insert(insert) = statement("INSERT INTO t (SELECT * FROM u)") else { panic!("no insert") };
    assert!(matches!(insert.source, InsertSource::Select(_)));
}

#[test]
fn returning_ends_inserts_and_deletes_and_is_a_name_elsewhere() {
    for (text, count) in [
        ("INSERT INTO t VALUES (1) RETURNING *", 1),
        ("REPLACE INTO t SET a = 1 RETURNING a, b AS c, t.*", 3),
        ("INSERT INTO t SELECT a FROM u RETURNING a", 1),
        ("INSERT INTO t SELECT 1 RETURNING a", 1),
        ("INSERT INTO t (a) (SELECT a FROM u) ON DUPLICATE KEY UPDATE a = 1 RETURNING a + 1", 1),
        ("INSERT INTO t SELECT 1 AS returning", 0),
    ] {
        let Statement::Insert(insert) = statement(text) else { panic!("no insert") };
        assert_eq!(insert.returning.len(), count, "{text}");
    }
    let Statement::Delete(delete) = statement("DELETE FROM t ORDER BY a LIMIT 1 RETURNING a, b") else {
        panic!("no delete")
    };
    assert_eq!((delete.returning.len(), delete.table.alias), (2, None));
    let Statement::Delete(delete) = statement("DELETE FROM t RETURNING *") else { panic!("no delete") };
    assert_eq!(delete.returning, [SelectItem::All(None)]);
    let Statement::Select(select) = statement("SELECT a returning FROM t returning") else { panic!("no query") };
    assert_eq!(select.table().and_then(|from| from.alias.as_deref()), Some("returning"));
    assert!(parse(b"UPDATE t SET a = 1 RETURNING a").is_err());
}

#[test]
fn a_table_keeps_columns_keys_options_and_partitions() {
    let text = "CREATE TABLE IF NOT EXISTS d.t (id BIGINT(20) UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, \
        a VARCHAR(32) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT 'x' COMMENT 'it''s', b DECIMAL(10,2) ZEROFILL, \
        c TIMESTAMP(6) NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6), e ENUM('a','b'), f TEXT, \
        KEY k1 (a(10), b DESC), UNIQUE KEY u1 (b) USING HASH, CONSTRAINT c1 FOREIGN KEY (id) REFERENCES p(id) ON DELETE \
        CASCADE, CHECK (id > 0)) ENGINE=NDB DEFAULT CHARSET=utf8mb4 AUTO_INCREMENT=7 COMMENT='c' MAX_ROWS=5 \
        PARTITION BY KEY (id) PARTITIONS 8";
    let Statement::CreateTable(table) = statement(text) else { panic!("no table") };
    assert!(table.if_not_exists && table.name.database.as_deref() == Some("d"));
    let id = &table.columns[0];
    assert_eq!(id.column_type.kind, TypeKind::Integer { size: IntegerSize::Big, display_width: Some(20) });
    assert!(id.auto_increment && id.primary_key && id.column_type.unsigned && id.nullable == Some(false));
    let a = &table.columns[1];
    assert_eq!(
        (a.default.clone(), a.comment.as_deref()),
        (string("x").map(DefaultValue::Plain), Some(b"it's".as_slice()))
    );
    assert_eq!(a.column_type.collation.as_deref(), Some("utf8mb4_bin"));
    assert!(table.columns[2].column_type.unsigned && table.columns[3].on_update.is_some());
    assert_eq!(table.columns[4].column_type.kind, TypeKind::Enum(vec![b"a".to_vec(), b"b".to_vec()]));
    assert_eq!(table.columns[5].column_type.kind, TypeKind::Text { size: LongSize::Normal, length: None });
    assert_eq!((table.indexes[0].kind, table.indexes[0].columns[0].prefix_length), (IndexKind::Plain, Some(10)));
    assert!(table.indexes[0].columns[1].descending);
    assert_eq!(table.indexes[1].algorithm, Some(IndexAlgorithm::Hash));
    assert!(table.unsupported.is_empty() && table.checks.len() == 1 && table.checks[0].enforced);
    let key = &table.foreign_keys[0];
    assert_eq!((key.name.as_deref(), key.references.table.name.as_str()), (Some("c1"), "p"));
    assert_eq!(key.references.on_delete, Some(ReferentialAction::Cascade));
    assert_eq!(table.options[0], TableOption::Engine("NDB".to_owned()));
    assert_eq!(table.options[2], TableOption::AutoIncrement(7));
    let columns = vec!["id".to_owned()];
    assert_eq!(table.partitioning, Some(PartitionByKey { columns, partitions: Some(8), linear: false }));
}

#[test]
fn a_primary_key_may_name_its_algorithm_before_its_columns() {
    let Statement::CreateTable(table) = statement("CREATE TABLE t (a INT, PRIMARY KEY USING HASH (a), INDEX (a))")
    else {
        panic!("no table")
    };
    assert_eq!((table.indexes[0].kind, table.indexes[0].algorithm), (IndexKind::Primary, Some(IndexAlgorithm::Hash)));
}

#[test]
fn a_collation_after_a_default_belongs_to_the_column() {
    let Statement::CreateTable(table) =
        statement("CREATE TABLE t (a CHAR(5) DEFAULT 'x' COLLATE utf8mb4_bin NOT NULL)")
    else {
        panic!("no table")
    };
    let column = &table.columns[0];
    assert_eq!((column.default.clone(), column.nullable), (string("x").map(DefaultValue::Plain), Some(false)));
    assert_eq!(column.column_type.collation.as_deref(), Some("utf8mb4_bin"));
}

#[test]
fn set_understands_every_spelling() {
    let Statement::Set(items) = statement(
        "SET @a := 1, @@x = 2, @@session.y = ON, GLOBAL z = DEFAULT, LOCAL w = utf8mb4, character_set_results = NULL, \
         NAMES 'utf8mb4' COLLATE utf8mb4_bin, CHARACTER SET DEFAULT, sql_mode=CONCAT(@@sql_mode, ',ANSI')",
    ) else {
        panic!("no set")
    };
    assert!(matches!(&items[0], SetItem::UserVariable { name, .. } if name == "a"));
    let variable = |item: &SetItem| match item {
        SetItem::SystemVariable { scope, name, value } => (*scope, name.clone(), value.clone()),
        other => panic!("{other:?}"),
    };
    assert_eq!(variable(&items[1]), (None, "x".to_owned(), Some(Expression::Literal(Literal::Integer(2)))));
    assert_eq!(variable(&items[2]), (Some(VariableScope::Session), "y".to_owned(), string("ON")));
    assert_eq!(variable(&items[3]), (Some(VariableScope::Global), "z".to_owned(), None));
    assert_eq!(variable(&items[4]), (Some(VariableScope::Session), "w".to_owned(), string("utf8mb4")));
    assert_eq!(variable(&items[5]).2, Some(Expression::Literal(Literal::Null)));
    let (character_set, collation) = (Some("utf8mb4".to_owned()), Some("utf8mb4_bin".to_owned()));
    assert_eq!(items[6], SetItem::Names { character_set, collation });
    assert_eq!(items[7], SetItem::CharacterSet(None));
    assert!(matches!(variable(&items[8]).2, Some(Expression::Function(_))));
}

#[test]
fn persisted_variables_are_set_and_reset() {
    let Statement::Set(items) = statement("SET PERSIST a = 1, @@PERSIST_ONLY.b = DEFAULT") else { panic!("no set") };
    let scope = |item: &SetItem| match item {
        SetItem::SystemVariable { scope, .. } => *scope,
        other => panic!("{other:?}"),
    };
    assert_eq!(scope(&items[0]), Some(VariableScope::Persist));
    assert_eq!(scope(&items[1]), Some(VariableScope::PersistOnly));
    for (text, name, if_exists) in [
        ("RESET PERSIST", None, false),
        ("RESET PERSIST max_connections", Some("max_connections"), false),
        ("RESET PERSIST IF EXISTS a", Some("a"), true),
    ] {
        assert_eq!(statement(text), Statement::ResetPersist { name: name.map(str::to_owned), if_exists }, "{text}");
    }
}

#[test]
fn transactions_keep_their_characteristics() {
    let transaction =
        |scope, isolation, access| Statement::Set(vec![SetItem::Transaction { scope, isolation, access }]);
    let read_committed = Some(IsolationLevel::ReadCommitted);
    for (text, expected) in [
        (
            "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
            transaction(Some(VariableScope::Session), read_committed, None),
        ),
        (
            "SET TRANSACTION READ ONLY, ISOLATION LEVEL READ COMMITTED",
            transaction(None, read_committed, Some(AccessMode::ReadOnly)),
        ),
        ("BEGIN WORK", Statement::StartTransaction(StartTransaction::default())),
        (
            "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
            Statement::StartTransaction(StartTransaction {
                access: Some(AccessMode::ReadOnly),
                consistent_snapshot: true,
            }),
        ),
        ("COMMIT AND NO CHAIN RELEASE", Statement::Commit(TransactionEnd { chain: Some(false), release: Some(true) })),
        ("ROLLBACK", Statement::Rollback(TransactionEnd::default())),
        ("ROLLBACK WORK TO s", Statement::RollbackToSavepoint("s".to_owned())),
        ("RELEASE SAVEPOINT s", Statement::ReleaseSavepoint("s".to_owned())),
    ] {
        assert_eq!(statement(text), expected, "{text}");
    }
}

#[test]
fn show_keeps_its_arguments() {
    let show = |text: &str| match statement(text) {
        Statement::Show(show) => *show,
        other => panic!("{other:?}"),
    };
    let like = |text: &str| {
        Some(ShowFilter::Like(StringLiteral { bytes: text.as_bytes().to_vec(), character_set: None, is_raw: false }))
    };
    assert_eq!(
        show("SHOW FULL TABLES FROM db LIKE 'a%'"),
        Show::Tables { full: true, database: Some("db".to_owned()), filter: like("a%") }
    );
    assert_eq!(show("SHOW TABLE STATUS LIKE 't1'"), Show::TableStatus { database: None, filter: like("t1") });
    assert_eq!(show("SHOW GLOBAL STATUS LIKE 'x'"), Show::Status { scope: VariableScope::Global, filter: like("x") });
    let Show::Columns { table, full: true, .. } = show("SHOW FULL COLUMNS FROM t FROM d") else { panic!("no columns") };
    assert_eq!(table.database.as_deref(), Some("d"));
    let limit = Some(Limit { count: LimitValue::Rows(10), offset: None });
    assert_eq!(show("SHOW WARNINGS LIMIT 10"), Show::Warnings { limit });
    assert_eq!(show("SHOW COUNT(*) WARNINGS"), Show::WarningCount);
    let account = AccountReference::Named { user: "root".into(), host: Some("%".into()) };
    let grants = show("SHOW GRANTS FOR 'root'@'%' USING r");
    let using = vec![AccountReference::Named { user: "r".into(), host: None }];
    assert_eq!(grants, Show::Grants { account, using });
}

#[test]
fn syntax_errors_quote_the_text_from_the_offending_token() {
    let error = parse(b"SELECT a\nFROM t\nWHERE WHERE b;").expect_err("two WHERE");
    assert_eq!((error.kind, error.line, error.near.as_str()), (ParseErrorKind::Syntax, 3, "WHERE b"));
    assert_eq!((error.kind.code().errno(), error.kind.code().sqlstate()), (1064, "42000"));
    assert_eq!(
        error.to_string(),
        "You have an error in your SQL syntax; check the manual that corresponds to your MySQL server version for the \
         right syntax to use near 'WHERE b' at line 3"
    );
    assert_eq!(parse(b"SELECT").expect_err("nothing selected").near, "");
    let long = format!("SELECT * FORM {}", "\u{e9}".repeat(500));
    assert_eq!(parse(long.as_bytes()).expect_err("FORM").near.chars().count(), 80);
    assert_eq!(error_of("SELECT 1; SELECT 2"), (ParseErrorKind::Syntax, 10));
    assert_eq!(error_of("FOO"), (ParseErrorKind::Syntax, 0));
    assert_eq!(error_of("CREATE TABLE t (a FOO)"), (ParseErrorKind::Syntax, 18));
}

#[test]
fn limits_of_names_and_parameters_are_errors() {
    let long = "a".repeat(65);
    assert_eq!(error_of(&format!("SELECT {long}")).0, ParseErrorKind::NameTooLong);
    assert_eq!(select(&format!("SELECT {} AS {long}", &long[1..])).projection.len(), 1);
    assert_eq!(error_of(&format!("SELECT a AS {}", long.repeat(4))).0, ParseErrorKind::NameTooLong);
    let many = vec!["?"; 65_536].join(",");
    assert_eq!(error_of(&format!("SELECT {many}")).0, ParseErrorKind::TooManyParameters);
    assert_eq!(parse(b"SELECT `\xff`").expect_err("no text").kind, ParseErrorKind::InvalidCharacter);
}

#[test]
fn texts_without_a_statement_are_empty_or_an_error() {
    assert_eq!(error_of("").0, ParseErrorKind::EmptyQuery);
    assert_eq!(error_of(" ; ").0, ParseErrorKind::EmptyQuery);
    assert_eq!(statement("/*M!100100 SET WAIT_TIMEOUT=DEFAULT */"), Statement::Empty);
    assert_eq!(statement("-- nothing"), Statement::Empty);
}

#[test]
fn several_statements_are_read_one_after_the_other() {
    let text = b"SELECT 1; BEGIN ; COMMIT;\n ";
    let first = parse_next(text, 0, Dialect::default()).expect("the first");
    let second = parse_next(text, first.end, Dialect::default()).expect("the second");
    let third = parse_next(text, second.end, Dialect::default()).expect("the third");
    assert_eq!(second.statement, statement("BEGIN"));
    assert_eq!((third.statement, third.end), (statement("COMMIT"), text.len()));
}

/// The statements of a text, as [`first_statement_end`] separates them.
fn separated(mut text: &str) -> Vec<&str> {
    let mut statements = Vec::new();
    while let Some(end) = first_statement_end(text.as_bytes(), Dialect::default()) {
        statements.push(text[..end - 1].trim());
        text = &text[end..];
    }
    statements.push(text);
    statements
}

#[test]
fn a_semicolon_separates_statements() {
    assert_eq!(separated("SELECT 1"), ["SELECT 1"]);
    assert_eq!(separated("SELECT 1; SELECT 2;SELECT 3"), ["SELECT 1", "SELECT 2", "SELECT 3"]);
    assert_eq!(
        separated("SELECT ';', \"a;\", `b;` -- ;\n; /* ; */ SELECT 2 # ;\n")[0],
        "SELECT ';', \"a;\", `b;` -- ;"
    );
    assert_eq!(separated("SELECT 'a\\';b'; SELECT 'a'';b'"), ["SELECT 'a\\';b'", " SELECT 'a'';b'"]);
    // A comment is a statement; semicolons and blanks at the end are not. Two semicolons need a statement
    // between them.
    assert_eq!(separated("SELECT 1;-- c"), ["SELECT 1", "-- c"]);
    assert_eq!(separated("SELECT 1; ;\n; "), ["SELECT 1; ;\n; "]);
    assert_eq!(separated("SELECT 1;;SELECT 2"), ["SELECT 1", "", "SELECT 2"]);
    assert_eq!(error_of(";SELECT 2"), (ParseErrorKind::Syntax, 0));
    assert_eq!(
        parse_next(b"/* c */ ; SELECT 2", 0, Dialect::default()).expect_err("nothing before it").kind,
        ParseErrorKind::Syntax
    );
    // A statement inside an executable comment must also end inside it.
    assert_eq!(separated("/*!SELECT 1*/; SELECT 2"), ["/*!SELECT 1*/", " SELECT 2"]);
    assert_eq!(separated("/*!SELECT 1; SELECT 2*/"), ["/*!SELECT 1; SELECT 2*/"]);
    // After bytes that form no token, the text is not searched for further statements.
    assert_eq!(separated("SELECT 'open; SELECT 2"), ["SELECT 'open; SELECT 2"]);
    assert_eq!(separated("SELECT 1 /* open; SELECT 2"), ["SELECT 1 /* open; SELECT 2"]);
}

#[test]
fn unsupported_statements_are_named() {
    for (text, what) in [
        ("ALTER TABLE t EXCHANGE PARTITION p WITH TABLE u", "ALTER TABLE ... EXCHANGE PARTITION"),
        ("ALTER TABLE t ADD PARTITION (PARTITION p)", "ALTER TABLE ... ADD PARTITION with definitions"),
        ("ALTER TABLE t DISCARD PARTITION p TABLESPACE", "ALTER TABLE ... DISCARD PARTITION"),
        ("ALTER TABLE t DISCARD TABLESPACE", "ALTER TABLE ... DISCARD TABLESPACE"),
        ("CREATE TABLE t (a INT) PARTITION BY HASH(a) PARTITIONS 4", "PARTITION BY HASH"),
        ("ANALYZE TABLE t UPDATE HISTOGRAM ON a USING DATA '{}'", "histograms from data"),
    ] {
        assert_eq!(missing_part(text), what, "{text}");
    }
    let many = vec!["SELECT 1"; 200].join(" UNION ");
    assert_eq!(missing_part(&many), "so many queries in a statement");
    assert_eq!(error_of("SELECT * FROM a JOIN b ON 'open").0, ParseErrorKind::Syntax);
}

#[test]
fn quoted_names_keep_their_content() {
    let query = select("SELECT `a b`.`c``d` FROM `select`");
    let SelectItem::Expression { expression: Expression::Column(column), .. } = &query.projection[0] else {
        panic!("no column")
    };
    assert_eq!((column.table.as_deref(), column.name.as_str()), (Some("a b"), "c`d"));
    assert_eq!(query.table().map(|table| table.name.name.as_str()), Some("select"));
}
