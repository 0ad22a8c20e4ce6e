//! SET and SELECT of variables as a client sees them, statement by statement.

use junctor_model::access::AccountName;
use junctor_model::collation::CollationId;
use junctor_model::error::{Error, Result};
use junctor_model::temporal::Zone;
use junctor_model::user_value::UserValue;
use junctor_model::value::Value;
use std::collections::BTreeSet;
use std::sync::OnceLock;

use proptest::prelude::*;

use super::*;
use crate::parse::expression::{Literal, StringLiteral, VariableScope};
use crate::parse::statement::{SelectItem, SetItem};
use crate::parse::{Expression, Statement, parse};

const SITUATION: SetSituation = SetSituation { in_transaction: false, database_collation: CollationId::DEFAULT };

fn server() -> GlobalVariables {
    GlobalVariables::new(&ServerFacts {
        version: "8.0.36-junctor".into(),
        version_comment: "Junctor 0.1.0".into(),
        port: 3307,
        hostname: "here".into(),
        socket: "".into(),
        data_directory: "/data/".into(),
        backup_directory: "".into(),
        server_uuid: "00000000-0000-0000-0000-000000000001".into(),
        max_connections: 5000,
        max_allowed_packet: 67_108_864,
        has_tls: false,
    })
}

static ACCOUNT: OnceLock<AccountName> = OnceLock::new();
static NO_ROLES: BTreeSet<AccountName> = BTreeSet::new();

fn facts<'a>(variables: &'a SessionVariables, globals: &'a GlobalVariables) -> SessionContext<'a> {
    SessionContext {
        variables,
        globals,
        connection: 7,
        user: "u",
        host: "127.0.0.1",
        account: ACCOUNT.get_or_init(|| AccountName::new("u", "%")),
        roles: &NO_ROLES,
        database: Some("t"),
        database_collation: CollationId::UTF8MB4_0900_AI_CI,
        last_insert_id: 12,
        insert_id: 0,
        row_count: -1,
        found_rows: 3,
        warning_count: 2,
        error_count: 1,
        seed: 0,
        wall_clock_us: 1_795_160_373_123_456,
        attributes: &[],
    }
}

fn statement(text: &str) -> Statement {
    parse(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}")).statement
}

/// Evaluates the expressions of these tests: literals, session expressions, and CONCAT of them.
fn evaluate(expression: &Expression, session: &SessionVariables, globals: &GlobalVariables) -> Result<UserValue> {
    evaluate_value(expression, session, globals).map(|value| UserValue::new(value, CollationId::DEFAULT))
}

fn evaluate_value(expression: &Expression, session: &SessionVariables, globals: &GlobalVariables) -> Result<Value> {
    if let Some(value) = evaluate_session_expression(expression, &facts(session, globals))? {
        return Ok(value);
    }
    match expression {
        Expression::Literal(Literal::Integer(value)) => Ok(Value::Int(*value as i64)),
        Expression::Literal(Literal::Boolean(value)) => Ok(Value::Int(i64::from(*value))),
        Expression::Literal(Literal::String(text)) => Ok(Value::Bytes(text.bytes.clone())),
        Expression::Literal(Literal::Null) => Ok(Value::Null),
        Expression::Literal(Literal::Decimal(text)) => Ok(Value::Double(text.parse().expect("a number"))),
        Expression::Function(call) if call.name.eq_ignore_ascii_case("CONCAT") => {
            let mut joined = Vec::new();
            for argument in &call.arguments {
                if let Value::Bytes(bytes) = evaluate_value(argument, session, globals)? {
                    joined.extend(bytes);
                }
            }
            Ok(Value::Bytes(joined))
        }
        _ => Err(Error::not_supported("this expression in a test")),
    }
}

struct Client {
    session: SessionVariables,
    globals: GlobalVariables,
    in_transaction: bool,
}

impl Client {
    fn new() -> Client {
        let globals = server();
        Client { session: SessionVariables::new(&globals, false), globals, in_transaction: false }
    }

    fn try_set(&mut self, text: &str) -> Result<SetEffects> {
        let Statement::Set(items) = statement(text) else { panic!("{text} is no SET") };
        set(
            &items,
            &mut self.session,
            &mut self.globals,
            SetSituation { in_transaction: self.in_transaction, database_collation: CollationId::DEFAULT },
            &mut evaluate,
        )
    }

    fn set(&mut self, text: &str) -> SetEffects {
        self.try_set(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    fn try_get(&self, expression: &str) -> Result<Value> {
        let Statement::Select(select) = statement(&format!("SELECT {expression}")) else { panic!("no SELECT") };
        let SelectItem::Expression { expression, .. } = &select.projection[0] else { panic!("no expression") };
        evaluate_value(expression, &self.session, &self.globals)
    }

    fn get(&self, expression: &str) -> String {
        let value = self.try_get(expression).unwrap_or_else(|error| panic!("{expression}: {error}"));
        check::text_of(&value)
    }

    fn refused(&mut self, text: &str) -> String {
        let outcome = match text.starts_with("SET") {
            true => self.try_set(text).map(|_| ()),
            false => self.try_get(text).map(|_| ()),
        };
        let error = outcome.expect_err(text);
        format!("{} {}", error.code.errno(), error.message)
    }
}

#[test]
fn the_table_is_sorted_and_every_alias_has_a_target() {
    assert!(TABLE.windows(2).all(|pair| pair[0].name < pair[1].name), "names rise");
    for variable in TABLE {
        let id = find(&variable.name.to_uppercase()).expect(variable.name);
        assert_eq!(id.variable().name, variable.name);
    }
    for (alias, name) in table::ALIASES {
        assert_eq!(find(alias), find(name));
        assert!(find(name).is_some(), "{name}");
    }
}

#[test]
fn every_default_is_a_value_that_may_be_set() {
    for variable in TABLE {
        let default = check::default_value(variable);
        let assigned = check::AssignedValue { name: variable.name, value: &default, mode: SqlMode::DEFAULT };
        let checked = check::check(variable, assigned, &default, &mut Vec::new());
        assert_eq!(checked.as_ref(), Ok(&default), "{}", variable.name);
    }
}

#[test]
fn every_variable_in_the_captured_traffic_of_clients_exists() {
    const TRAFFIC: &str = include_str!("../../../../../tests/corpus/client-traffic.log");
    let mut seen = 0;
    for (at, _) in TRAFFIC.match_indices("@@") {
        let rest = &TRAFFIC[at + 2..];
        let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || "_.".contains(*c)).collect();
        let name = name.split('.').next_back().expect("a split has a last part");
        assert!(find(name).is_some(), "@@{name}");
        seen += 1;
    }
    assert!(seen > 100, "the log has been read");
}

#[test]
fn every_set_statement_in_the_captured_traffic_is_taken() {
    const TRAFFIC: &str = include_str!("../../../../../tests/corpus/client-traffic.log");
    let mut taken = 0;
    for line in TRAFFIC.lines() {
        let Some((_, text)) = line.split_once("Query\t") else { continue };
        let Ok(parsed) = parse(text.as_bytes()) else { continue };
        let Statement::Set(items) = parsed.statement else { continue };
        let mut client = Client::new();
        if let Err(error) = set(&items, &mut client.session, &mut client.globals, SITUATION, &mut evaluate) {
            panic!("{text}: {error}");
        }
        taken += 1;
    }
    assert!(taken > 100, "{taken} SET statements were read");
}

#[test]
fn variables_have_the_values_that_were_set() {
    let mut client = Client::new();
    for (text, expression, value) in [
        ("SET autocommit=0", "@@autocommit", "0"),
        ("SET autocommit=ON", "@@session.autocommit", "1"),
        ("SET @@session.autocommit = OFF", "@@autocommit", "0"),
        ("SET tx_isolation='read-committed'", "@@transaction_isolation", "READ-COMMITTED"),
        ("SET transaction_isolation=3", "@@tx_isolation", "SERIALIZABLE"),
        ("SET SESSION TRANSACTION READ WRITE, ISOLATION LEVEL SERIALIZABLE", "@@tx_isolation", "SERIALIZABLE"),
        ("SET GLOBAL TRANSACTION ISOLATION LEVEL READ UNCOMMITTED", "@@global.tx_isolation", "READ-UNCOMMITTED"),
        ("SET GLOBAL TRANSACTION READ ONLY", "@@global.tx_read_only", "1"),
        ("SET tx_read_only=ON", "@@transaction_read_only", "1"),
        ("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ", "@@tx_isolation", "REPEATABLE-READ"),
        ("SET SESSION TRANSACTION READ ONLY", "@@transaction_read_only", "1"),
        ("SET wait_timeout=100", "@@wait_timeout", "100"),
        ("SET WAIT_TIMEOUT=DEFAULT", "@@wait_timeout", "28800"),
        ("SET sql_mode=''", "@@sql_mode", ""),
        ("SET sql_mode=CONCAT(@@sql_mode,',STRICT_TRANS_TABLES')", "@@sql_mode", "STRICT_TRANS_TABLES"),
        (
            "SET sql_mode='ANSI'",
            "@@sql_mode",
            "REAL_AS_FLOAT,PIPES_AS_CONCAT,ANSI_QUOTES,IGNORE_SPACE,ONLY_FULL_GROUP_BY,ANSI",
        ),
        ("SET sql_mode='STRICT_TRANS_TABLES,NO_AUTO_CREATE_USER'", "@@sql_mode", "STRICT_TRANS_TABLES"),
        ("SET sql_select_limit=5", "@@sql_select_limit", "5"),
        ("SET sql_select_limit=DEFAULT", "@@sql_select_limit", "18446744073709551615"),
        ("SET time_zone='-5:30'", "@@time_zone", "-5:30"),
        ("SET character_set_results = NULL", "@@character_set_results", "NULL"),
        ("SET NAMES 'utf8mb4' COLLATE 'utf8mb4_general_ci'", "@@collation_connection", "utf8mb4_general_ci"),
        ("SET NAMES utf8", "@@character_set_client", "utf8mb3"),
        ("SET CHARACTER SET utf8mb4", "@@character_set_results", "utf8mb4"),
        ("SET collation_connection = 'utf8mb4_unicode_ci'", "@@collation_connection", "utf8mb4_unicode_ci"),
        ("SET character_set_connection = binary", "@@collation_connection", "binary"),
        ("SET default_storage_engine=1", "@@default_storage_engine", "InnoDB"),
        ("SET @@MAX_STATEMENT_TIME=0.5", "@@max_statement_time", "0.5"),
        ("SET GLOBAL max_connections=10", "@@max_connections", "10"),
        ("SET GLOBAL wait_timeout=5", "@@global.wait_timeout", "5"),
        ("SET @a := 1, @b = @A", "@b", "NULL"),
        ("SET @c = @A, @a = 2", "@c", "1"),
        ("SET last_insert_id=99", "@@identity", "12"),
        ("SET collation_server = 'utf8mb3_bin'", "@@character_set_server", "utf8mb3"),
        ("SET GLOBAL character_set_server = binary", "@@global.collation_server", "binary"),
        ("SET GLOBAL innodb_flush_log_at_trx_commit = 0", "@@global.commit_durability", "memory"),
        ("SET GLOBAL innodb_flush_log_at_trx_commit = 1", "@@global.commit_durability", "disk"),
        ("SET GLOBAL commit_durability = memory", "@@innodb_flush_log_at_trx_commit", "2"),
        ("SET GLOBAL commit_durability = 'DISK'", "@@innodb_flush_log_at_trx_commit", "1"),
        ("SET commit_durability = memory", "@@commit_durability", "memory"),
        ("SET SESSION commit_durability = DEFAULT", "@@commit_durability", "disk"),
        ("SET foreign_key_checks = OFF", "@@foreign_key_checks", "0"),
    ] {
        client.set(text);
        assert_eq!(client.get(expression), value, "{text}");
    }
    assert_eq!(client.get("@@wait_timeout"), "28800", "a session keeps its own value");
    assert_eq!(
        SessionVariables::new(&client.globals, false).value(find("wait_timeout").expect("declared")),
        Value::UInt(5)
    );
}

#[test]
fn switches_change_one_by_one_and_all_at_once() {
    let mut client = Client::new();
    let before = client.get("@@optimizer_switch");
    assert!(before.starts_with("index_merge=on,") && before.contains(",semijoin=on,"));
    client.set("SET optimizer_switch='semijoin=off,mrr=off'");
    client.set("SET optimizer_switch='mrr=on'");
    assert_eq!(client.get("@@optimizer_switch"), before.replace("semijoin=on", "semijoin=off"));
    client.set("SET optimizer_switch=default");
    assert_eq!(client.get("@@optimizer_switch"), before);
}

#[test]
fn persisted_values_apply_now_or_at_the_next_start() {
    let mut client = Client::new();
    let persisted = |client: &mut Client, text: &str| {
        let mut values = client.globals.persisted().clone();
        for (name, value) in client.set(text).persisted {
            match value {
                Some(value) => _ = values.values.insert(name, value),
                None => _ = values.values.remove(&name),
            }
        }
        client.globals.replace_persisted(std::sync::Arc::new(values));
        persisted_rows(&client.globals).into_iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>()
    };
    assert_eq!(persisted(&mut client, "SET PERSIST wait_timeout = 7"), ["wait_timeout=7"]);
    assert_eq!((client.get("@@global.wait_timeout"), client.get("@@wait_timeout")), ("7".into(), "28800".into()));
    let shown = persisted(&mut client, "SET PERSIST_ONLY sql_safe_updates = ON, GLOBAL sql_notes = OFF");
    assert_eq!(shown, ["sql_safe_updates=ON", "wait_timeout=7"]);
    assert_eq!(client.get("@@global.sql_safe_updates"), "0", "from the next start on");
    persisted(&mut client, "SET PERSIST innodb_flush_log_at_trx_commit = 1");
    let shown = persisted(&mut client, "SET PERSIST commit_durability = memory");
    assert_eq!(shown, ["commit_durability=memory", "sql_safe_updates=ON", "wait_timeout=7"]);

    let mut later = Client::new();
    let mut values = client.globals.persisted().clone();
    values.values.insert("of_another_release".into(), Value::Int(1));
    values.values.insert("autocommit".into(), Value::Bytes(b"maybe".to_vec()));
    later.globals.restore(std::sync::Arc::new(values));
    for (expression, value) in [
        ("@@global.wait_timeout", "7"),
        ("@@global.sql_safe_updates", "1"),
        ("@@global.sql_notes", "1"),
        ("@@innodb_flush_log_at_trx_commit", "2"),
        ("@@global.autocommit", "1"),
    ] {
        assert_eq!(later.get(expression), value, "{expression}");
    }
    assert!(later.globals.persisted().values.contains_key("of_another_release"));
}

#[test]
fn what_cannot_be_set_or_read_has_mysqls_errors() {
    let mut client = Client::new();
    for (text, error) in [
        ("SET nonsense=1", "1193 Unknown system variable 'nonsense'"),
        ("@@nonsense", "1193 Unknown system variable 'nonsense'"),
        ("SET autocommit=2", "1231 Variable 'autocommit' can't be set to the value of '2'"),
        ("SET autocommit='maybe'", "1231 Variable 'autocommit' can't be set to the value of 'maybe'"),
        ("SET autocommit=1.5", "1232 Incorrect argument type to variable 'autocommit'"),
        ("SET wait_timeout='x'", "1232 Incorrect argument type to variable 'wait_timeout'"),
        ("SET version='9'", "1238 Variable 'version' is a read only variable"),
        ("SET warning_count=1", "1238 Variable 'warning_count' is a read only variable"),
        (
            "SET max_allowed_packet=1024",
            "1238 SESSION variable 'max_allowed_packet' is read-only. Use SET GLOBAL to assign the value",
        ),
        ("SET PERSIST port=1", "1238 Variable 'port' is a read only variable"),
        ("SET PERSIST_ONLY port=1", "1238 Variable 'port' is a non persistent read only variable"),
        ("SET PERSIST_ONLY nonsense=1", "1193 Unknown system variable 'nonsense'"),
        ("SET GLOBAL timestamp=1", "1228 Variable 'timestamp' is a SESSION variable and can't be used with SET GLOBAL"),
        (
            "SET max_connections=1",
            "1229 Variable 'max_connections' is a GLOBAL variable and should be set with SET GLOBAL",
        ),
        ("@@session.max_connections", "1238 Variable 'max_connections' is a GLOBAL variable"),
        ("@@global.timestamp", "1238 Variable 'timestamp' is a SESSION variable"),
        ("SET sql_mode='STRICT,X'", "1231 Variable 'sql_mode' can't be set to the value of 'STRICT'"),
        ("SET sql_mode=NULL", "1231 Variable 'sql_mode' can't be set to the value of 'NULL'"),
        ("SET NAMES gbk", "1235 This version of Junctor doesn't yet support 'character set gbk'"),
        ("SET NAMES klingon", "1115 Unknown character set: 'klingon'"),
        ("SET NAMES utf8mb4 COLLATE nonsense", "1273 Unknown collation: 'nonsense'"),
        ("SET NAMES utf8mb4 COLLATE binary", "1253 COLLATION 'binary' is not valid for CHARACTER SET 'utf8mb4'"),
        ("SET time_zone='Mars/Port'", "1298 Unknown or incorrect time zone: 'Mars/Port'"),
        ("SET time_zone='+15:00'", "1298 Unknown or incorrect time zone: '+15:00'"),
        ("SET transaction_isolation='x'", "1231 Variable 'transaction_isolation' can't be set to the value of 'x'"),
        ("SLEEP(1)", "1235 This version of Junctor doesn't yet support 'SLEEP'"),
        ("VERSION(1)", "1582 Incorrect parameter count in the call to native function 'VERSION'"),
        ("NOW(7)", "1426 Too-big precision 7 specified for 'now'. Maximum is 6."),
        ("SET lc_time_names='xx_XX'", "1649 Unknown locale: 'xx_XX'"),
        ("SET lc_time_names=NULL", "1231 Variable 'lc_time_names' can't be set to the value of 'NULL'"),
    ] {
        assert_eq!(client.refused(text), error, "{text}");
    }
}

#[test]
fn a_number_out_of_range_becomes_the_nearest_with_a_warning() {
    let mut client = Client::new();
    let effects = client.set("SET wait_timeout=0");
    assert_eq!(effects.notes, [(1292, Box::from("Truncated incorrect wait_timeout value: '0'"))]);
    assert_eq!(client.get("@@wait_timeout"), "1");
    client.set("SET sql_mode='STRICT_ALL_TABLES'");
    assert_eq!(client.refused("SET wait_timeout=0"), "1231 Variable 'wait_timeout' can't be set to the value of '0'");
}

#[test]
fn a_set_that_fails_in_one_part_changes_nothing() {
    let mut client = Client::new();
    client.refused("SET autocommit=0, @a=5, GLOBAL wait_timeout=3, sql_mode='x'");
    assert_eq!(client.get("@@autocommit"), "1");
    assert_eq!(client.get("@a"), "NULL");
    assert_eq!(client.get("@@global.wait_timeout"), "28800");
}

#[test]
fn turning_autocommit_on_commits_and_only_then() {
    let mut client = Client::new();
    assert!(!client.set("SET autocommit=1").commits);
    assert!(!client.set("SET autocommit=0").commits);
    assert!(client.set("SET autocommit=1").commits);
}

#[test]
fn set_transaction_without_scope_is_for_the_next_transaction_alone() {
    let mut client = Client::new();
    client.set("SET TRANSACTION ISOLATION LEVEL READ COMMITTED, READ ONLY");
    assert_eq!(client.get("@@transaction_isolation"), "REPEATABLE-READ");
    let next = client.session.begin_transaction();
    assert_eq!(next, TransactionCharacteristics { isolation: IsolationChoice::ReadCommitted, read_only: true });
    assert_eq!(client.session.begin_transaction(), TransactionCharacteristics::default());
    client.in_transaction = true;
    assert_eq!(
        client.refused("SET TRANSACTION READ ONLY"),
        "1568 Transaction characteristics can't be changed while a transaction is in progress"
    );
    client.set("SET SESSION TRANSACTION READ ONLY");
}

#[test]
fn functions_tell_the_session_the_clock_and_the_server() {
    let mut client = Client::new();
    for (expression, value) in [
        ("VERSION()", "8.0.36-junctor"),
        ("DATABASE()", "t"),
        ("user()", "u@127.0.0.1"),
        ("CURRENT_USER", "u@%"),
        ("CONNECTION_ID()", "7"),
        ("LAST_INSERT_ID()", "12"),
        ("ROW_COUNT()", "-1"),
        ("FOUND_ROWS()", "3"),
        ("@@warning_count", "2"),
        ("@@error_count", "1"),
        ("@@port", "3307"),
        ("@@collation_database", "utf8mb4_0900_ai_ci"),
        ("NOW()", "2026-11-20 07:39:33"),
        ("CURRENT_TIMESTAMP(3)", "2026-11-20 07:39:33.123"),
        ("UTC_TIMESTAMP(6)", "2026-11-20 07:39:33.123456"),
        ("CURDATE()", "2026-11-20"),
        ("CURTIME()", "07:39:33"),
        ("UNIX_TIMESTAMP()", "1795160373"),
    ] {
        assert_eq!(client.get(expression), value, "{expression}");
    }
    client.set("SET time_zone='+05:30'");
    assert_eq!(client.get("NOW()"), "2026-11-20 13:09:33");
    assert_eq!(client.get("UTC_TIMESTAMP()"), "2026-11-20 07:39:33");
    client.set("SET time_zone='europe/Berlin'");
    assert_eq!(client.get("@@time_zone"), "europe/Berlin");
    assert_eq!(client.get("NOW()"), "2026-11-20 08:39:33");
    client.set("SET timestamp=1785560400");
    assert_eq!(client.get("NOW()"), "2026-08-01 07:00:00");
    client.set("SET timestamp=86400");
    assert_eq!(client.get("UTC_TIMESTAMP()"), "1970-01-02 00:00:00");
    client.set("SET timestamp=DEFAULT");
    assert_eq!(client.get("UTC_TIME()"), "07:39:33");
}

#[test]
fn an_idle_session_keeps_only_what_it_changed() {
    let mut client = Client::new();
    let before = client.session.deviation_count();
    client.set("SET NAMES utf8mb4, autocommit=0, sql_mode='', transaction_isolation='READ-COMMITTED'");
    client.set("SET net_write_timeout=60");
    assert_eq!(client.session.deviation_count(), before);
    client.set("SET net_write_timeout=1");
    assert_eq!(client.session.deviation_count(), before + 1);
    assert!(size_of::<SessionVariables>() <= 128, "{} bytes", size_of::<SessionVariables>());
}

#[test]
fn user_variables_are_bounded_in_count_and_bytes() {
    let mut variables = UserVariables::default();
    let plain = |value| UserValue::new(value, CollationId::DEFAULT);
    for at in 0..USER_VARIABLES_MAX {
        variables.put(&format!("v{at}"), plain(Value::Int(at as i64))).expect("there is room");
    }
    assert_eq!(variables.put("more", plain(Value::Null)).map_err(|error| error.code.errno()), Err(1041));
    variables.put("V1", plain(Value::Int(5))).expect("it exists");
    assert_eq!(variables.get("v1"), Some(&plain(Value::Int(5))));
    let long = Value::Bytes(vec![b'x'; USER_VARIABLES_BYTES_MAX]);
    assert_eq!(variables.put("v1", plain(long)).map_err(|error| error.code.errno()), Err(1041));
    assert_eq!(variables.get("v1"), Some(&plain(Value::Int(5))));
}

#[test]
fn show_variables_lists_both_families_of_names_by_name() {
    let mut client = Client::new();
    client.set("SET autocommit=0");
    let rows = variable_rows(false, &facts(&client.session, &client.globals));
    let value = |name: &str| rows.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str());
    assert_eq!(value("autocommit"), Some("OFF"));
    assert_eq!(value("tx_isolation"), Some("REPEATABLE-READ"));
    assert_eq!(value("transaction_isolation"), Some("REPEATABLE-READ"));
    assert_eq!(value("long_query_time"), Some("10.000000"));
    assert!(rows.is_sorted());
    let global = variable_rows(true, &facts(&client.session, &client.globals));
    assert!(global.contains(&("autocommit", "ON".to_owned())));
    assert!(global.iter().all(|(name, _)| *name != "timestamp"));
}

#[test]
fn a_set_item_of_every_kind_is_known_here() {
    let items = [SetItem::Names { character_set: None, collation: None }, SetItem::CharacterSet(None)];
    let mut client = Client::new();
    client.set("SET NAMES binary");
    set(&items, &mut client.session, &mut client.globals, SITUATION, &mut evaluate).expect("defaults are always good");
    assert_eq!(client.get("@@character_set_client"), "utf8mb4");
}

fn any_value() -> impl Strategy<Value = Literal> {
    let string = |bytes: Vec<u8>| Literal::String(StringLiteral { bytes, character_set: None, is_raw: false });
    let words = proptest::sample::select(vec![
        "ON",
        "off",
        "default",
        "utf8",
        "utf8mb4_bin",
        "SYSTEM",
        "+14:00",
        "-13:59",
        "+1:0",
        "ANSI",
        "TRADITIONAL",
        "mrr=on",
        "mrr=",
        "READ-COMMITTED",
        "FULL",
        "",
    ]);
    prop_oneof![
        Just(Literal::Null),
        any::<bool>().prop_map(Literal::Boolean),
        any::<i64>().prop_map(|value| Literal::Integer(value.into())),
        (0i64..3).prop_map(|value| Literal::Integer(value.into())),
        words.prop_map(move |word| string(word.as_bytes().to_vec())),
        any::<Vec<u8>>().prop_map(string),
        Just(string(vec![b'x'; check::TEXT_BYTES_MAX + 1])),
    ]
}

proptest! {
    /// After any SET, the stored value passes its own check unchanged, and the session's memory stays
    /// bounded.
    #[test]
    fn a_value_that_was_taken_may_be_taken_again(at in 0..TABLE.len(), value in any_value(), is_global in any::<bool>()) {
        let mut client = Client::new();
        let scope = Some(if is_global { VariableScope::Global } else { VariableScope::Session });
        let name = TABLE[at].name;
        let item = |literal| SetItem::SystemVariable {
            scope,
            name: name.to_owned(),
            value: Some(Expression::Literal(literal)),
        };
        let taken = set(&[item(value)], &mut client.session, &mut client.globals, SITUATION, &mut evaluate);
        if let Err(error) = &taken {
            prop_assert!(error.message.len() < 1000);
        }
        let id = VariableId(at as u16);
        let current = if is_global { client.globals.value(id) } else { client.session.value(id) };
        let assigned = check::AssignedValue { name, value: &current, mode: SqlMode::DEFAULT };
        let again = check::check(&TABLE[at], assigned, &current, &mut Vec::new());
        prop_assert_eq!(again, Ok(current));
        prop_assert!(client.session.deviation_count() <= 13);
        let shown = facts(&client.session, &client.globals);
        prop_assert!(!variable_rows(false, &shown).is_empty());
        for clock in ["NOW(6)", "UTC_TIME()", "CURDATE()"] {
            client.get(clock);
        }
    }

    #[test]
    fn any_text_is_a_zone_or_none(text in any::<String>(), clock in "[0-9: +-]{0,8}") {
        for text in [&text, &clock] {
            if let Some(zone) = Zone::find(text) {
                prop_assert!(zone.offset_at(0).abs() <= 14 * 3600);
            }
        }
    }
}

/// The type of a plan's parameter follows from its source, so that other values need no other plan.
#[test]
fn the_type_of_a_session_value_depends_on_its_source_and_not_on_its_length() {
    use junctor_expression::Kind;
    let type_of = |text: &str, value: Value| {
        let Statement::Select(select) = statement(text) else { panic!("{text} is a query") };
        let SelectItem::Expression { expression, .. } = &select.projection[0] else { panic!("{text}") };
        let result = session_value_type(expression, &value, &Client::new().session);
        (result.kind, result.length, result.decimals, result.nullable)
    };
    let decimal = |mantissa, scale| Value::Decimal(junctor_model::value::Decimal::Narrow { mantissa, scale });
    let text = |text: &str| Value::Bytes(text.into());
    assert_eq!(type_of("SELECT @x", Value::Int(1)), type_of("SELECT @x", Value::Int(i64::MIN)));
    assert_eq!(type_of("SELECT @x", text("")), type_of("SELECT @x", text("a longer text")));
    assert_eq!(type_of("SELECT @x", decimal(5, 2)), type_of("SELECT @x", decimal(123_456_789, 2)));
    assert_ne!(type_of("SELECT @x", decimal(5, 2)), type_of("SELECT @x", decimal(5, 3)));
    assert_ne!(type_of("SELECT @x", Value::Int(1)), type_of("SELECT @x", Value::UInt(1)));
    assert_eq!(type_of("SELECT @x", Value::Null).0, Kind::Null);
    assert_eq!(type_of("SELECT LAST_INSERT_ID()", Value::UInt(7)), (Kind::UInt, 21, 0, false));
    assert_eq!(type_of("SELECT connection_id()", Value::UInt(7)), (Kind::UInt, 10, 0, false));
    assert_eq!(type_of("SELECT NOW(3)", text("2026-11-20 07:39:33.123")), (Kind::String, 23, 31, false));
    assert_eq!(type_of("SELECT DATABASE()", text("d")), (Kind::String, 64, 31, true));
    assert_eq!(type_of("SELECT USER()", text("u@h")), (Kind::String, 288, 31, false));
}

#[test]
fn a_query_attribute_is_found_by_its_name() {
    let globals = server();
    let variables = SessionVariables::new(&globals, false);
    let attribute = |name: &str, value: Option<&str>| QueryAttribute { name: name.into(), value: value.map(Box::from) };
    let attributes = [attribute("trace", Some("t1")), attribute("none", None)];
    let context = SessionContext { attributes: &attributes, ..facts(&variables, &globals) };
    let value = |name: &str| {
        let text = format!("SELECT mysql_query_attribute_string({name})");
        let Statement::Select(select) = statement(&text) else { panic!("{text}") };
        let SelectItem::Expression { expression, .. } = &select.projection[0] else { panic!("{text}") };
        evaluate_session_expression(expression, &context).map_err(|error| error.code.errno())
    };
    assert_eq!(value("'trace'"), Ok(Some(Value::Bytes(b"t1".to_vec()))));
    assert_eq!(value("'none'"), Ok(Some(Value::Null)));
    assert_eq!(value("'Trace'"), Ok(Some(Value::Null)));
    assert_eq!(value("@name"), Err(1235));
    assert_eq!(value("'trace', 1"), Err(1582));
}

#[test]
fn functions_of_the_session_have_its_facts() {
    let globals = server();
    let variables = SessionVariables::new(&globals, false);
    let value = |text: &str| {
        let Statement::Select(select) = statement(text) else { panic!("{text}") };
        let SelectItem::Expression { expression, .. } = &select.projection[0] else { panic!("{text}") };
        evaluate_session_expression(expression, &facts(&variables, &globals)).ok().flatten()
    };
    let text = |text: &str| Some(Value::Bytes(text.into()));
    assert_eq!(value("SELECT SESSION_USER()"), text("u@127.0.0.1"));
    assert_eq!(value("SELECT PS_CURRENT_THREAD_ID()"), Some(Value::UInt(7)));
    assert_eq!(value("SELECT ICU_VERSION()"), text("73.1"));
}
