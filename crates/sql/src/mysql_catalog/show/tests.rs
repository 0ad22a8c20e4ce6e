//! Results in golden files. A case is a statement, `--`, and its rows with tabs between the values, or its
//! error; `==` ends it.

use std::cell::RefCell;
use std::fmt::Write;

use junctor_expression::{Parameters, ParametersBuilder, Scratch, compare_values};
use junctor_model::access::{AccountName, Rights};
use junctor_model::collation::CollationId;
use junctor_model::error::Result;
use junctor_model::id::{PartitionId, TableId};
use junctor_model::row_encoding::{ResultColumn, wire_type};
use junctor_model::schema::{DatabaseDefinition, Dictionary, IndexKind, TableDefinition};
use junctor_model::value::Value;
use junctor_signals::change_schema::SchemaChange;

use super::layout::NamedObject;
use super::*;
use crate::bind::Environment;
use crate::definition::{DefinitionContext, create_table};
use crate::mysql_catalog::variable::{GlobalVariables, SessionContext, SessionVariables};
use crate::parse::expression::StringLiteral;
use crate::parse::statement::{ObjectName, Show, ShowFilter};
use crate::parse::{Statement, parse};
use crate::plan::{
    ComputePlan, ComputeSource, NameValue, Plan, Planned, ShownQuery, VirtualRead, VirtualTables, plan_statement,
};
use junctor_gateway::threads::ThreadUsage;

const TABLES: [&str; 4] = [
    "CREATE TABLE a (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(20), k INT, KEY (k)) COMMENT='first'",
    "CREATE TABLE b (x BIGINT UNSIGNED NOT NULL, y CHAR(3) COLLATE utf8mb4_bin DEFAULT 'é' COMMENT 'why', z VARBINARY(8) \
     NOT NULL DEFAULT 'a', t TEXT, d DOUBLE, UNIQUE KEY u (x, y) USING HASH)",
    "CREATE TABLE c (p INT, q INT, r INT UNIQUE, PRIMARY KEY (q, p)) PARTITION BY KEY (q) PARTITIONS 2",
    "CREATE TABLE d (u TINYINT(1) NOT NULL UNIQUE, v TINYTEXT)",
];

struct World {
    dictionary: Dictionary,
    session: SessionVariables,
    globals: GlobalVariables,
}

impl World {
    fn new() -> World {
        let mut dictionary = Dictionary::default();
        for name in ["t", "e"] {
            dictionary.put_database(DatabaseDefinition { name: name.into(), collation: CollationId::DEFAULT });
        }
        let globals = GlobalVariables::default();
        let mut world = World { dictionary, session: SessionVariables::new(&globals, false), globals };
        for (at, text) in TABLES.iter().enumerate() {
            world.define(text, TableId(at as u32 + 1));
        }
        world
    }

    fn define(&mut self, text: &str, id: TableId) {
        let Statement::CreateTable(table) = statement(text) else { panic!("{text} makes no table") };
        let dictionary = &self.dictionary;
        let context = DefinitionContext {
            owner: Default::default(),
            query: None,
            dictionary,
            database: Some("t"),
            default_partition_count: 2,
            node_groups: 1,
            account: "'u'@'%'",
            foreign_key_checks: true,
            replaces_unknown_engines: true,
            environment: &Environment::plain(dictionary),
            rules: Default::default(),
            now_us: 0,
        };
        let defined = create_table(&table, &context).unwrap_or_else(|error| panic!("{text}: {error}"));
        let SchemaChange::CreateTable { definition, .. } = defined.change else { panic!("no table is made") };
        self.dictionary.put_table(TableDefinition { id, ..*definition });
    }

    fn with<R>(&self, ask: impl FnOnce(&ShowContext<'_>) -> R) -> R {
        let (account, roles) = (AccountName::new("root", "localhost"), Default::default());
        let session = SessionContext {
            variables: &self.session,
            globals: &self.globals,
            connection: 7,
            user: "u",
            host: "127.0.0.1",
            account: &account,
            roles: &roles,
            database: Some("t"),
            database_collation: CollationId::DEFAULT,
            last_insert_id: 0,
            insert_id: 0,
            row_count: 0,
            found_rows: 0,
            warning_count: 3,
            error_count: 1,
            seed: 0,
            wall_clock_us: 0,
            attributes: &[],
        };
        let warning = |level, code, message: &str| Warning { level, code, message: message.into() };
        let facts = ShowContext {
            journal: &junctor_signals::journal::Journal::default(),
            owner: None,
            wanted: WantedTables::ALL,
            dictionary: &self.dictionary,
            rights: &Rights::unlimited(),
            who: "'root'@'localhost'",
            session: &session,
            table_statistics: &|table| TableStatistics {
                rows: u64::from(table.id.0) * 10,
                data_bytes: u64::from(table.id.0) * 1000,
                index_bytes: 64,
                auto_increment: (table.id == TableId(1)).then_some(11),
            },
            profile: &|_| None,
            histograms: &|_| Default::default(),
            partition_statistics: &|partition| TableStatistics {
                rows: u64::from(partition.index) * 5,
                data_bytes: u64::from(partition.index) * 100,
                index_bytes: 32,
                auto_increment: None,
            },
            next_auto_increment: &|table| (table == TableId(1)).then_some(11),
            status: &[("Questions", "12".to_owned()), ("Uptime", "100".to_owned())],
            warnings: &[
                warning(WarningLevel::Note, 1051, "Unknown table 't.x'"),
                warning(WarningLevel::Warning, 1292, "Truncated incorrect value"),
                warning(WarningLevel::Error, 1062, "Duplicate entry"),
            ],
        };
        ask(&facts)
    }

    fn answer(&self, text: &str) -> Result<VirtualTable> {
        let statement = statement(text);
        match self.plan(&statement)? {
            Some(Planned { plan: Plan::Compute(plan), .. }) => answer_of_plan(&plan),
            // A query without a table.
            Some(Planned { plan: Plan::Tree(plan), .. }) if plan.leaves.is_empty() => {
                Ok(VirtualTable { columns: plan.header.columns.clone(), rows: Vec::new() })
            }
            Some(other) => panic!("{text} needs a session: {other:?}"),
            None => self.with(|facts| match &statement {
                Statement::Show(asked) => show(asked, facts),
                _ => panic!("{text} asks for nothing here"),
            }),
        }
    }

    fn plan(&self, statement: &Statement) -> Result<Option<Planned>> {
        let provider = Provider { world: self, reads: RefCell::default() };
        self.plan_with(statement, &provider)
    }

    fn plan_with(&self, statement: &Statement, provider: &Provider<'_>) -> Result<Option<Planned>> {
        let plain = Environment::plain(&self.dictionary);
        let environment = Environment { database: Some("t"), numbers_of_execution: true, ..plain };
        plan_statement(&environment, statement, provider)
    }

    fn table(&self, database: &str, name: &str) -> VirtualTable {
        self.with(|facts| virtual_table(database, name, facts))
            .unwrap_or_else(|| panic!("there is no {database}.{name}"))
    }
}

/// Provides the virtual tables as sessions do, and notes which tables are wanted of each.
struct Provider<'w> {
    world: &'w World,
    reads: RefCell<Vec<(String, WantedTables)>>,
}

impl VirtualTables for Provider<'_> {
    fn columns(&self, database: &str, name: &str) -> Option<Vec<ResultColumn>> {
        Some(virtual_columns(database, name)?.columns)
    }

    fn rows(&self, read: &VirtualRead) -> ComputeSource {
        let (database, name) = (read.source.database, &*read.source.name);
        let value = |value: &NameValue| match value {
            NameValue::Text(text) => Box::from(std::str::from_utf8(text).expect("a name")),
            NameValue::Parameter(_) => panic!("SHOW has no parameters"),
        };
        let equalities = read.equalities.iter();
        let equalities =
            equalities.map(|equality| (equality.column, equality.values.iter().map(value).collect::<Vec<_>>()));
        let wanted = WantedTables::of(virtual_fields(database, name).expect("it exists"), &read.columns, equalities)
            .seeing_own_tables(read.sees_own_tables);
        let table = self.world.with(|facts| virtual_table(database, name, &ShowContext { wanted: &wanted, ..*facts }));
        self.reads.borrow_mut().push((name.to_owned(), wanted));
        ComputeSource::Rows(table.expect("it exists").rows)
    }

    fn shown_query(&self, statement: &Statement) -> Result<Option<ShownQuery>> {
        let query = self.world.with(|facts| catalog_query(statement, facts))?;
        assert_eq!(has_query(statement), query.is_some(), "{statement:?}");
        Ok(query.map(|CatalogQuery { select, columns, is_of_table }| ShownQuery {
            select,
            columns,
            sees_own_tables: is_of_table,
        }))
    }
}

/// The rows of a query of a virtual table without aggregates and LIMIT.
fn answer_of_plan(plan: &ComputePlan) -> Result<VirtualTable> {
    let ComputeSource::Rows(rows) = &plan.source else { panic!("blocks have the rows") };
    let mut kept = Vec::new();
    for row in rows {
        let (mut builder, mut bytes) = (ParametersBuilder::new(), Vec::new());
        row.iter().for_each(|value| builder.push(value.as_ref()));
        builder.append_to(&mut bytes)?;
        let (parameters, scratch) = (Parameters::from_bytes(&bytes), Scratch::new());
        if plan.filter.as_ref().is_some_and(|filter| !filter.is_true(None, parameters, &scratch).expect("a truth")) {
            continue;
        }
        let evaluate = |value: &junctor_expression::Expression| {
            value.evaluate(None, parameters, &scratch).expect("a value").to_value()
        };
        let keys: Vec<Value> = plan.sort.iter().map(|key| evaluate(&key.value)).collect();
        kept.push((keys, plan.projection.values.iter().map(evaluate).collect()));
    }
    kept.sort_by(|left, right| {
        let keys = plan.sort.iter().zip(left.0.iter().zip(&right.0));
        let orders =
            keys.map(|(key, (left, right))| compare_values(key.value.result.collation, left.as_ref(), right.as_ref()));
        orders.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then)
    });
    assert_eq!(plan.header.columns, plan.projection.columns);
    Ok(VirtualTable { columns: plan.header.columns.clone(), rows: kept.into_iter().map(|(_, row)| row).collect() })
}

fn statement(text: &str) -> Statement {
    parse(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}")).statement
}

fn printed(table: &VirtualTable) -> String {
    let value = |value: &Value| match value {
        Value::Null => "NULL".to_owned(),
        Value::Int(value) => value.to_string(),
        Value::UInt(value) => value.to_string(),
        Value::Double(value) => value.to_string(),
        Value::Decimal(_)
        | Value::Float(_)
        | Value::Temporal(_)
        | Value::Bit(_)
        | Value::Choice(_)
        | Value::Json(_) => {
            format!("{value:?}")
        }
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
    };
    let names: Vec<&str> = table.columns.iter().map(|column| &*column.name).collect();
    let mut out = names.join("\t") + "\n";
    for row in &table.rows {
        let values: Vec<String> = row.iter().map(value).collect();
        writeln!(out, "{}", values.join("\t")).expect("a String takes everything");
    }
    out
}

fn check_golden(golden: &str, outcome: impl Fn(&str) -> String) {
    let mut actual = String::new();
    for case in golden.split("==\n").filter(|case| !case.trim().is_empty()) {
        let (asked, _) = case.split_once("--\n").expect("a case has a question and an answer");
        write!(actual, "{asked}--\n{}==\n", outcome(asked.trim())).expect("a String takes everything");
    }
    assert!(actual == golden, "the outcomes are:\n{actual}");
}

#[test]
fn show_statements_have_mysqls_results() {
    let world = World::new();
    check_golden(include_str!("golden/statements.txt"), |text| match world.answer(text) {
        Ok(table) => printed(&table),
        Err(error) => format!("{error}\n"),
    });
}

#[test]
fn information_schema_lists_the_dictionary() {
    let world = World::new();
    check_golden(include_str!("golden/information_schema.txt"), |name| {
        let mut table = world.table("information_schema", name);
        // COLUMNS also describes the virtual tables themselves; those rows would change with every new
        // column.
        let database = table.position("TABLE_SCHEMA");
        let is_computed = |row: &[Value]| database.is_some_and(|at| row[at] != Value::Bytes(b"t".to_vec()));
        table.rows.retain(|row| !is_computed(row));
        printed(&table)
    });
}

#[test]
fn every_row_of_every_computed_table_fits_its_columns() {
    let world = World::new();
    for database in crate::mysql_catalog::SYSTEM_DATABASES {
        for name in virtual_table_names(database).expect("it has tables") {
            let table = world.table(database, &name.to_lowercase());
            assert_eq!(table.columns[0].org_table.to_lowercase(), name.to_lowercase());
            for row in &table.rows {
                assert_eq!(row.len(), table.columns.len(), "{name}");
                for (column, value) in table.columns.iter().zip(row) {
                    let fits = match value {
                        Value::Null => column.flags & 1 == 0,
                        Value::Int(_) => column.wire_type != wire_type::VAR_STRING && column.flags & 32 == 0,
                        Value::UInt(_) => column.wire_type == wire_type::LONGLONG && column.flags & 32 != 0,
                        Value::Bytes(_) => matches!(column.wire_type, wire_type::VAR_STRING | wire_type::BLOB),
                        Value::Double(_) => column.wire_type == wire_type::DOUBLE,
                        _ => false,
                    };
                    assert!(fits, "{name}.{} cannot be {value:?}", column.name);
                }
            }
        }
    }
    assert!(world.with(|facts| virtual_table("t", "a", facts)).is_none());
    assert!(world.with(|facts| virtual_table("information_schema", "nope", facts)).is_none());
    assert_eq!(virtual_table_names("t"), None);
}

/// The names in the columns of a row that name its database and its table.
fn names_in(row: &[Value], fields: &[Field]) -> [Option<String>; 2] {
    let name = |named: NamedObject| {
        let at = fields.iter().position(|field| field.names == Some(named))?;
        match &row[at] {
            Value::Bytes(name) => Some(String::from_utf8_lossy(name).into_owned()),
            other => panic!("{other:?} is no name"),
        }
    };
    [name(NamedObject::Database), name(NamedObject::Table)]
}

#[test]
fn rows_of_wanted_tables_are_those_of_all_tables_that_a_filter_leaves() {
    let world = World::new();
    let all = [0, 1].map(|_| None::<&[&str]>);
    let wishes: [[Option<&[&str]>; 2]; 8] = [
        all,
        [Some(&["t"]), None],
        [Some(&["t"]), Some(&["b"])],
        [None, Some(&["a", "TABLES", "nothing"])],
        [Some(&["sys", "information_schema", "t"]), Some(&["version", "c"])],
        [Some(&["T"]), None],
        [Some(&["e"]), Some(&["a"])],
        [Some(&[]), None],
    ];
    let mut chosen = 0;
    for (database, name) in crate::mysql_catalog::SYSTEM_DATABASES.into_iter().flat_map(|database| {
        virtual_table_names(database).expect("it has tables").into_iter().map(move |name| (database, name))
    }) {
        let fields = virtual_fields(database, name).expect("it is a virtual table");
        if fields.iter().all(|field| field.names.is_none()) {
            continue;
        }
        let every: Vec<u16> = (0..fields.len() as u16).collect();
        for wish in wishes {
            let equalities = (0..).zip(fields).filter_map(|(column, field)| {
                let names = wish[usize::from(field.names? == NamedObject::Table)]?;
                Some((column, names.iter().map(|name| Box::from(*name)).collect()))
            });
            let wanted = WantedTables::of(fields, &every, equalities);
            let few = world.with(|facts| virtual_table(database, name, &ShowContext { wanted: &wanted, ..*facts }));
            let mut rows = world.table(database, name).rows;
            let is_wished = |name: &Option<String>, wish: Option<&[&str]>| {
                wish.is_none() || name.is_none() || wish.is_some_and(|wish| wish.contains(&name.as_deref().unwrap()))
            };
            rows.retain(|row| {
                let [of_database, of_table] = names_in(row, fields);
                is_wished(&of_database, wish[0]) && is_wished(&of_table, wish[1])
            });
            let mut few = few.expect("it is a virtual table").rows;
            few.sort_by_key(|row| format!("{row:?}"));
            rows.sort_by_key(|row| format!("{row:?}"));
            assert_eq!(few, rows, "{database}.{name} {wish:?}");
            chosen += rows.len();
        }
    }
    assert!(chosen > 100, "{chosen} rows");
}

#[test]
fn a_query_about_one_table_looks_at_no_other() {
    let mut world = World::new();
    let first = world.dictionary.table_named("t", "a").expect("it exists").definition.clone();
    for number in 0..10_000 {
        let (id, name) = (TableId(100 + number), format!("table{number}").into());
        world.dictionary.put_table(TableDefinition { id, name, ..first.clone() });
    }
    let looked_at = std::cell::Cell::new(0);
    for (name, rows) in [("TABLES", 1), ("COLUMNS", 3), ("STATISTICS", 2), ("PARTITIONS", 1), ("TABLE_CONSTRAINTS", 1)]
    {
        let fields = virtual_fields("information_schema", name).expect("it is a virtual table");
        let every: Vec<u16> = (0..fields.len() as u16).collect();
        let one = |object: NamedObject, name: &str| {
            let at = fields.iter().position(|field| field.names == Some(object)).expect("a column");
            (at as u16, vec![Box::from(name)])
        };
        let equalities = [one(NamedObject::Database, "t"), one(NamedObject::Table, "table7777")];
        let wanted = WantedTables::of(fields, &every, equalities);
        let table = world.with(|facts| {
            let statistics = |table: &TableDefinition| {
                looked_at.set(looked_at.get() + 1);
                (facts.table_statistics)(table)
            };
            let facts = ShowContext { wanted: &wanted, table_statistics: &statistics, ..*facts };
            virtual_table("information_schema", name, &facts)
        });
        assert_eq!(table.expect("it is a virtual table").rows.len(), rows, "{name}");
    }
    assert!(looked_at.get() <= 3, "statistics of {} tables", looked_at.get());
}

#[test]
fn a_database_of_users_with_the_name_of_one_of_the_system_is_listed_once() {
    let mut world = World::new();
    world.dictionary.put_database(DatabaseDefinition { name: "sys".into(), collation: CollationId::DEFAULT });
    let names = world.with(super::table_rows::database_names);
    assert_eq!(names.iter().filter(|name| *name == "sys").count(), 1);
}

#[test]
fn tables_that_would_hide_what_exists_are_absent() {
    let world = World::new();
    for (database, name) in [
        ("information_schema", "INNODB_TRX"),
        ("information_schema", "INNODB_TABLES"),
        ("information_schema", "RESOURCE_GROUPS"),
        ("mysql", "innodb_table_stats"),
        ("mysql", "innodb_index_stats"),
    ] {
        assert!(world.with(|facts| virtual_table(database, name, facts)).is_none(), "{database}.{name}");
    }
}

#[test]
fn an_index_that_another_one_contains_is_redundant() {
    let mut world = World::new();
    let text = "CREATE TABLE r (a INT, b INT, c INT, PRIMARY KEY (a), KEY one (b), KEY two (b, c), UNIQUE KEY three (b, c), \
                KEY four (c), KEY five (c), KEY six (a, c), KEY seven ((b + 1)))";
    world.define(text, TableId(77));
    let table = world.table("sys", "schema_redundant_indexes");
    let columns = ["redundant_index_name", "dominant_index_name"].map(|name| table.position(name).expect(name));
    let pairs = table.rows.iter().filter(|row| row[1] == Value::Bytes(b"r".to_vec())).map(|row| {
        columns.map(|at| match &row[at] {
            Value::Bytes(name) => String::from_utf8_lossy(name).into_owned(),
            other => panic!("{other:?}"),
        })
    });
    let mut pairs: Vec<String> = pairs.map(|pair| pair.join(" < ")).collect();
    pairs.sort();
    assert_eq!(pairs, ["four < five", "one < three", "one < two", "six < PRIMARY", "two < three"]);
}

#[test]
fn every_show_in_the_captured_traffic_of_clients_is_answered() {
    const TRAFFIC: &str = include_str!("../../../../../tests/corpus/client-traffic.log");
    let world = World::new();
    let mut answered = 0;
    for line in TRAFFIC.lines() {
        let Some((_, text)) = line.split_once("Query\t") else { continue };
        let Ok(parsed) = parse(text.as_bytes()) else { continue };
        if !matches!(parsed.statement, Statement::Show(_) | Statement::Describe(_)) {
            continue;
        }
        // Conditions of WHERE are planned here, and not executed.
        let outcome = match world.plan(&parsed.statement) {
            Ok(None) => world.answer(text).map(|_| ()),
            planned => planned.map(|_| ()),
        };
        match outcome {
            Ok(()) => answered += 1,
            // Most tables of the log do not exist.
            Err(error) => assert!(matches!(error.code.errno(), 1049 | 1146), "{text}: {error}"),
        }
    }
    assert!(answered > 40, "{answered} statements were answered");
}

#[test]
fn every_table_of_information_schema_in_the_captured_traffic_exists() {
    const TRAFFIC: &str = include_str!("../../../../../tests/corpus/client-traffic.log");
    let lower = TRAFFIC.to_lowercase().replace('`', "");
    let world = World::new();
    let mut seen = 0;
    for (at, prefix) in lower.match_indices("information_schema.") {
        let rest = &lower[at + prefix.len()..];
        let name: String = rest.chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect();
        world.table("information_schema", &name);
        seen += 1;
    }
    assert!(seen > 50, "the log has been read");
}

#[test]
fn thread_states_are_shown_as_percentages_of_time() {
    let usage = |executing_ns, sleeping_ns| ThreadUsage {
        executing_ns,
        sleeping_ns,
        signals: 5,
        hand_overs: 2,
        ..ThreadUsage::default()
    };
    let rows = thread_status_rows(&[ThreadStatus {
        thread: 1,
        name: "tc0".into(),
        queue_length: 3,
        spin_ns: 40_000,
        total: usage(2_500, 1_000_000),
        windows: [usage(25, 75), usage(1, 999), ThreadUsage::default()],
    }]);
    let columns = World::new().table("junctor_info", "threadstat").columns;
    assert_eq!(rows[0].len(), columns.len());
    let value = |name: &str| &rows[0][columns.iter().position(|column| &*column.name == name).expect(name)];
    assert_eq!(*value("executing_us"), Value::UInt(2));
    assert_eq!((value("signals"), value("hand_overs")), (&Value::UInt(5), &Value::UInt(2)));
    assert_eq!(*value("executing_50ms_percent"), Value::Double(25.0));
    assert_eq!(*value("sleeping_1s_percent"), Value::Double(99.9));
    assert_eq!(*value("sleeping_20s_percent"), Value::Double(0.0));
    let threads = thread_rows(&[ThreadFacts { thread: 0, cpu: Some(3), ..ThreadFacts::default() }]);
    assert_eq!(threads[0].len(), World::new().table("junctor_info", "threads").columns.len());
    assert_eq!(status_table("LOCKS").map(|table| status_columns(table).columns.len()), Some(9));
    assert_eq!(status_table("threads"), None);
}

#[test]
fn the_recent_activity_of_a_thread_is_listed_newest_first() {
    let usage = |executing_ns, sleeping_ns| ThreadUsage {
        executing_ns,
        sleeping_ns,
        os_user_ns: 6_000,
        os_system_ns: 1_000,
        involuntary_switches: 3,
        ..ThreadUsage::default()
    };
    let rows = cpustat_rows(2, "ldm1", &[usage(8_000, 42_000), usage(0, 50_000), ThreadUsage::default()]);
    for table in ["cpustat_50ms", "CPUSTAT_1SEC", "cpustat_20sec"] {
        assert!(cpustat_window(table).is_some(), "{table}");
        let columns = World::new().table("junctor_info", table).columns;
        let value = |row: usize, name: &str| {
            let position = columns.iter().position(|column| &*column.name == name).expect(name);
            rows[row][position].clone()
        };
        assert_eq!((rows.len(), rows[0].len()), (2, columns.len()), "none of time that was not yet");
        assert_eq!([value(0, "slot"), value(1, "slot")], [Value::UInt(0), Value::UInt(1)]);
        assert_eq!([value(0, "executing_us"), value(1, "executing_us")], [Value::UInt(8), Value::UInt(0)]);
        assert_eq!([value(0, "os_idle_us"), value(0, "elapsed_us")], [Value::UInt(43), Value::UInt(50)]);
        assert_eq!(value(1, "involuntary_switches"), Value::UInt(3));
    }
    assert_eq!(cpustat_window("threadstat"), None);
    let blocks = vec![("tc", 0), ("ldm", 3)];
    let threads = [ThreadFacts::default(), ThreadFacts { thread: 1, blocks, ..ThreadFacts::default() }];
    let text = |text: &str| Value::Bytes(text.into());
    let rows = thread_block_rows(&threads);
    assert_eq!(rows[1], [Value::UInt(1), text("ldm"), Value::UInt(3)]);
    assert_eq!((rows.len(), rows[0].len()), (2, World::new().table("junctor_info", "threadblocks").columns.len()));
}

#[test]
fn the_sending_row_of_a_thread_fits_the_columns() {
    let status = junctor_gateway::threads::SendStatus { may_help: true, refused: 7, ..Default::default() };
    let row = sending_row(2, "ldm0", &status);
    let table = World::new().table("junctor_info", "sending");
    let value = |column: &str| &row[table.position(column).unwrap()];
    assert_eq!(row.len(), table.columns.len());
    assert_eq!((value("state"), value("may_help")), (&Value::Bytes("LIGHT".into()), &Value::Bytes("YES".into())));
    assert_eq!((value("thread_id"), value("refused")), (&Value::UInt(2), &Value::UInt(7)));
}

#[test]
fn columns_have_mysqls_types_for_clients() {
    let table = World::new().table("information_schema", "tables");
    let column = |name: &str| &table.columns[table.position(name).expect(name)];
    assert_eq!(column("table_rows").wire_type, wire_type::LONGLONG);
    assert_eq!((column("table_name").length, &*column("table_name").database), (256, "information_schema"));
    assert_eq!(column("table_comment").wire_type, wire_type::BLOB);
}

#[test]
fn statistics_of_a_table_are_the_sums_of_its_partitions_and_its_unique_keys_count_as_indexes() {
    let world = World::new();
    let definition = |name| &world.dictionary.table_named("t", name).expect("it exists").definition;
    let mut table = definition("d").clone();
    for index in &mut table.indexes {
        if let IndexKind::Unique { entries, .. } = &mut index.kind {
            *entries = TableId(9);
        }
    }
    let row = |table: u32, partition: u64, rows: u64| {
        // Columns of `memoryusage`: instance, table, partition, rows, versions, purge queue, then bytes.
        [0, u64::from(table), partition, rows, 0, 0, 100, 20, 3, 50, 6].map(Value::UInt).to_vec()
    };
    let id = table.id.0;
    let counter =
        |table: u32, next: u64| vec![Value::Null, Value::UInt(u64::from(table)), Value::Null, Value::UInt(next)];
    let rows = [row(id, 0, 3), row(id + 1, 0, 7), counter(id, 78), row(id, 1, 4), row(9, 0, 4)];
    let statistics = StatisticsSnapshot::of_rows(&rows, &[]);
    let sums = TableStatistics { rows: 7, data_bytes: 246, index_bytes: 112 + 179, auto_increment: Some(78) };
    assert_eq!(statistics.of_table(&table), sums);
    let second = TableStatistics { rows: 4, data_bytes: 123, index_bytes: 56, auto_increment: None };
    assert_eq!(statistics.of_partition(PartitionId { table: table.id, index: 1 }), second);
    assert_eq!(statistics.of_partition(PartitionId { table: table.id, index: 2 }), TableStatistics::default());
}

#[test]
fn the_next_number_is_below_the_ranges_that_nobody_has_used() {
    let row = |numbers: &[u64]| {
        let mut row = vec![Value::Null, Value::UInt(7), Value::Null];
        row.extend(numbers.iter().map(|number| Value::UInt(*number)));
        row
    };
    let next = |rows: &[Vec<Value>]| StatisticsSnapshot::of_rows(rows, &[]).next_number_of(TableId(7));
    assert_eq!(next(&[]), None);
    assert_eq!(next(&[row(&[77])]), Some(77));
    // One block has used the numbers below 20 of 10..100, another one none of 100..200.
    assert_eq!(next(&[row(&[20, 100]), row(&[200]), row(&[100, 200])]), Some(20));
    // A number of the newer range is in use, so the next one is above it.
    assert_eq!(next(&[row(&[20, 100]), row(&[200]), row(&[150, 200])]), Some(150));
    // All numbers were reserved and none used.
    assert_eq!(next(&[row(&[1, 100]), row(&[100])]), None);
}

#[test]
fn show_looks_only_at_the_tables_that_it_names() {
    let world = World::new();
    let reads = |text: &str| {
        let provider = Provider { world: &world, reads: RefCell::default() };
        world.plan_with(&statement(text), &provider).unwrap_or_else(|error| panic!("{text}: {error}"));
        let reads = provider.reads.into_inner();
        let names = |names: Option<&[Box<str>]>| names.map_or("*".to_owned(), |names| names.join("|"));
        let read = |(name, wanted): &(String, WantedTables)| {
            let statistics = if wanted.has_statistics() { " with statistics" } else { "" };
            format!("{name} {}.{}{statistics}", names(wanted.databases()), names(wanted.names()))
        };
        reads.iter().map(read).collect::<Vec<_>>().join(", ")
    };
    for (text, expected) in [
        ("SHOW COLUMNS FROM a", "COLUMNS t.a"),
        ("DESCRIBE t.a", "COLUMNS t.a"),
        ("SHOW FULL COLUMNS FROM information_schema.Tables", "COLUMNS information_schema.TABLES"),
        ("SHOW FULL COLUMNS FROM a WHERE Field = 'k'", "COLUMNS t.a"),
        ("SHOW INDEX FROM a", "STATISTICS t.a with statistics"),
        ("SHOW INDEX FROM a WHERE Key_name = 'k'", "STATISTICS t.a with statistics"),
        ("SHOW TABLES", "TABLES t.*"),
        ("SHOW TABLES LIKE 'x%'", "TABLES t.*"),
        ("SHOW TABLES LIKE 'A'", "TABLES t.a"),
        ("SHOW TABLES WHERE Tables_in_t = 'a'", "TABLES t.a"),
        ("SHOW FULL TABLES FROM SYS LIKE 'Version'", "TABLES sys.version"),
        ("SHOW TABLE STATUS", "TABLES t.* with statistics"),
        ("SHOW TABLE STATUS LIKE 'a'", "TABLES t.a with statistics"),
        ("SHOW TABLE STATUS LIKE 'x\\\\_y'", "TABLES t.x_y with statistics"),
        ("SHOW TABLE STATUS WHERE Name IN ('a', 'b') AND Engine IS NOT NULL", "TABLES t.a|b with statistics"),
        ("SHOW DATABASES WHERE `Database` = 't'", "SCHEMATA t.*"),
        (
            "SHOW TABLES WHERE Tables_in_t IN \
             (SELECT TABLE_NAME FROM information_schema.VIEWS WHERE TABLE_SCHEMA = 'e')",
            "TABLES t.*, VIEWS e.*",
        ),
    ] {
        assert_eq!(reads(text), expected, "{text}");
    }
}

#[test]
fn a_name_that_is_no_identifier_is_shown() {
    let mut world = World::new();
    let first = world.dictionary.table_named("t", "a").expect("it exists").definition.clone();
    let database = "it's a \\`name` of more than sixty-four letters: an old dump has such names";
    world.dictionary.put_database(DatabaseDefinition { name: database.into(), collation: CollationId::DEFAULT });
    let (id, name) = (TableId(99), "it's \\_ `odd`".into());
    world.dictionary.put_table(TableDefinition { id, name, database: database.into(), ..first });
    let table = |full: bool, filter: Option<ShowFilter>| {
        let statement = Statement::Show(Box::new(Show::Tables { full, database: Some(database.into()), filter }));
        match world.plan(&statement).expect("a plan") {
            Some(Planned { plan: Plan::Compute(plan), .. }) => answer_of_plan(&plan).expect("rows"),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(printed(&table(true, None)), format!("Tables_in_{database}\tTable_type\nit's \\_ `odd`\tBASE TABLE\n"));
    let bytes = b"IT'S \\\\\\_ `odd`".to_vec();
    let like = ShowFilter::Like(StringLiteral { bytes, character_set: None, is_raw: false });
    assert_eq!(table(false, Some(like)).rows.len(), 1);
    let columns = Statement::Show(Box::new(Show::Columns {
        full: false,
        table: ObjectName { database: Some(database.into()), name: "it's \\_ `odd`".into() },
        filter: None,
    }));
    let Ok(Some(Planned { plan: Plan::Compute(plan), .. })) = world.plan(&columns) else { panic!("a plan") };
    assert_eq!(answer_of_plan(&plan).expect("rows").rows.len(), 3);
}
