//! Golden tests of plans as text: a statement, then its plan or the error. A text statement with a cacheable
//! shape is planned from its shape, as the engine does.

use crate::parse::Dialect;
use std::fmt::Write;
use std::sync::Arc;

use junctor_expression::{Expression, Kind, Parameters, ResultType};
use junctor_model::collation::{CharacterSet, CollationId};
use junctor_model::id::{ColumnNumber, IndexId, TableId};
use junctor_model::schema::{
    ColumnDefinition, DatabaseDefinition, Dictionary, IndexDefinition, IndexKind, TableDefinition, TableKind,
};
use junctor_model::types::DataType;
use junctor_model::value::Value;
use junctor_signals::change_schema::SchemaChange;
use junctor_signals::program::{Output, ReadProgram, SortKey, WhenLocked, WriteAction};

mod filters;
mod lookups;
mod pushed;
mod virtual_tables;

use super::parameters::kinds_of_shape;
use super::*;
use crate::bind::{Environment, Modes, ParameterKind, SessionConstant, message};
use crate::definition::{DefinitionContext, create_table};
use crate::parse::expression as ast;
use crate::parse::{Parameterised, Shape, ShapeOutcome, Statement, parse, parse_with_parameters, scan};

const TABLES: [&str; 5] = [
    "CREATE TABLE s (id INT NOT NULL AUTO_INCREMENT, k INT NOT NULL DEFAULT 0, c CHAR(120) NOT NULL DEFAULT '', \
     pad CHAR(60) NOT NULL DEFAULT '', PRIMARY KEY (id), KEY k_1 (k)) PARTITION BY KEY () PARTITIONS 2",
    "CREATE TABLE u (a INT NOT NULL, b INT NOT NULL, email VARCHAR(50), n BIGINT, d DOUBLE, x VARBINARY(20), t TEXT, \
     PRIMARY KEY (a, b), UNIQUE KEY e (email), KEY nb (n, b), KEY dd (d), KEY xx (x)) PARTITION BY KEY (a) PARTITIONS 4",
    "CREATE TABLE one (id BIGINT UNSIGNED NOT NULL PRIMARY KEY, v INT, KEY v (v)) PARTITION BY KEY () PARTITIONS 1",
    "CREATE TABLE h (id INT NOT NULL, w INT, PRIMARY KEY (id) USING HASH, UNIQUE KEY w (w) USING HASH)",
    "CREATE TABLE choices (id INT NOT NULL PRIMARY KEY, e ENUM('ab', 'b'), s SET('ab', 'b'), KEY e (e), KEY s (s))",
];

/// A dictionary as a main block would build it: with identifiers, and with hidden tables for unique indexes.
fn dictionary() -> Dictionary {
    let mut dictionary = Dictionary::default();
    dictionary.put_database(DatabaseDefinition { name: "t".into(), collation: CollationId::DEFAULT });
    let mut next = 1;
    for text in TABLES {
        let statement = parse(text.as_bytes()).expect("the tables of this test are well-formed").statement;
        let Statement::CreateTable(table) = statement else { panic!("{text} makes no table") };
        let context = DefinitionContext {
            owner: Default::default(),
            query: None,
            dictionary: &dictionary,
            database: Some("t"),
            default_partition_count: 2,
            node_groups: 1,
            account: "",
            foreign_key_checks: true,
            replaces_unknown_engines: true,
            environment: &Environment::plain(&dictionary),
            now_us: 0,
            rules: Default::default(),
        };
        let defined = create_table(&table, &context).expect("the tables of this test are right");
        let SchemaChange::CreateTable { definition, .. } = defined.change else { panic!("{text} makes no table") };
        let mut definition = *definition;
        definition.id = TableId(next);
        next += 1;
        for position in 0..definition.indexes.len() {
            definition.indexes[position].id = IndexId(position as u16);
            if let IndexKind::Unique { ordered, .. } = definition.indexes[position].kind {
                let entries = TableId(next);
                next += 1;
                definition.indexes[position].kind = IndexKind::Unique { ordered, entries };
                dictionary.put_table(entries_table(entries, &definition));
            }
        }
        dictionary.put_table(definition);
    }
    dictionary
}

fn entries_table(id: TableId, base: &TableDefinition) -> TableDefinition {
    let bytes = DataType::varchar(3072, CollationId::BINARY);
    let kind = IndexKind::Primary { ordered: false };
    let primary = IndexDefinition::new(IndexId(0), "PRIMARY", kind, vec![ColumnNumber(0)]);
    TableDefinition {
        id,
        kind: TableKind::UniqueEntries { base: base.id, index: IndexId(0) },
        columns: ["key", "row"].map(|name| ColumnDefinition::new(name, bytes.clone())).to_vec(),
        indexes: vec![primary],
        partition_columns: vec![ColumnNumber(0)],
        ..base.clone()
    }
}

fn planned(dictionary: &Dictionary, text: &str) -> junctor_model::error::Result<Option<Planned>> {
    let mut shape = Shape::new(0);
    let mut kinds: Vec<ParameterKind> = Vec::new();
    let mut statement = None;
    if scan(text.as_bytes(), &mut shape) == ShapeOutcome::Cacheable {
        let parsed = parse_with_parameters(text.as_bytes(), &shape, Dialect::default())
            .map_err(|error| message::of_parse_error(&error))?;
        if let Parameterised::Statement { statement: parsed, .. } = parsed {
            kinds_of_shape(&shape, &mut kinds);
            statement = Some(parsed);
        }
    }
    let statement = match statement {
        Some(statement) => statement,
        None => parse(text.as_bytes()).map_err(|error| message::of_parse_error(&error))?.statement,
    };
    planned_for(dictionary, &statement, &kinds)
}

fn planned_for(
    dictionary: &Dictionary,
    statement: &Statement,
    kinds: &[ParameterKind],
) -> junctor_model::error::Result<Option<Planned>> {
    planned_with_rows(dictionary, statement, kinds, &|_| None)
}

fn planned_with_rows(
    dictionary: &Dictionary,
    statement: &Statement,
    kinds: &[ParameterKind],
    row_estimate: &dyn Fn(&TableDefinition) -> Option<u64>,
) -> junctor_model::error::Result<Option<Planned>> {
    planned_with(dictionary, statement, kinds, row_estimate, &NoVirtualTables)
}

fn planned_with(
    dictionary: &Dictionary,
    statement: &Statement,
    kinds: &[ParameterKind],
    row_estimate: &dyn Fn(&TableDefinition) -> Option<u64>,
    find_virtual: &FindVirtual<'_>,
) -> junctor_model::error::Result<Option<Planned>> {
    let environment = Environment {
        client: CharacterSet::Utf8mb4,
        owner: None,
        dictionary,
        database: Some("t"),
        collation: CollationId::DEFAULT,
        parameters: kinds,
        session_constant: &random_seed,
        locks_reads: false,
        sorts_with_files: false,
        locks_sources: true,
        modes: Modes::default(),
        division_increment: 4,
        concat_bytes_max: 1024,
        foreign_key_checks: true,
        numbers: Default::default(),
        is_strict: false,
        ignores: false,
        rules: Default::default(),
        row_estimate,
        profile: &|_| None,
        parameter_values: &[],
        execution_values: &[],
        numbers_of_execution: true,
        purges: false,
        added_nodes: None,
        reads_diagnostics: None,
        notes: None,
        access: None,
    };
    plan_statement(&environment, statement, find_virtual)
}

/// The only session value that the tests know.
fn random_seed(expression: &ast::Expression) -> junctor_model::error::Result<Option<SessionConstant>> {
    let is_seed = *expression == ast::Expression::call("RANDOM SEED", Vec::new());
    let constant = SessionConstant {
        value: Value::UInt(1),
        result: ResultType::integer(true, 21),
        is_volatile: true,
        is_of_diagnostics: false,
    };
    Ok(is_seed.then_some(constant))
}

struct Dump<'d> {
    out: String,
    definition: Option<&'d TableDefinition>,
}

impl Dump<'_> {
    fn column(&self, index: ColumnNumber) -> &str {
        self.definition.map_or("", |definition| &definition.columns[usize::from(index.0)].name)
    }

    fn operand(operand: &Operand) -> String {
        match operand {
            Operand::Parameter(ordinal) => format!("?{ordinal}"),
            Operand::Constant(value) => shown(value),
            Operand::Computed(expression) => described(expression),
        }
    }

    fn values(values: &KeyValues) -> String {
        match values {
            KeyValues::One(operand) => format!("= {}", Self::operand(operand)),
            KeyValues::List(list) => format!("in ({})", list.iter().map(Self::operand).collect::<Vec<_>>().join(", ")),
            KeyValues::Parameters(ordinal) | KeyValues::Parallel(ordinal) => format!("in ?{ordinal}"),
            KeyValues::Null => "is null".to_owned(),
        }
    }

    fn set(set: &ValueSet) -> String {
        match set {
            ValueSet::Values(values) => Self::values(values),
            ValueSet::Prefix { pattern, .. } => format!("like {}", Self::operand(pattern)),
            ValueSet::Interval(Interval { lower, upper }) => {
                let lower = lower.as_ref().map(|(operand, inclusive)| {
                    format!("{} {}", if *inclusive { ">=" } else { ">" }, Self::operand(operand))
                });
                let upper = upper.as_ref().map(|(operand, inclusive)| {
                    format!("{} {}", if *inclusive { "<=" } else { "<" }, Self::operand(operand))
                });
                lower.into_iter().chain(upper).collect::<Vec<_>>().join(" ")
            }
        }
    }

    fn key(&self, keys: &KeyTemplate) -> String {
        let alternative = |key: &Vec<KeyValues>| {
            let parts = keys.columns.iter().zip(key);
            parts
                .map(|(column, values)| format!("{} {}", self.column(*column), Self::values(values)))
                .collect::<Vec<_>>()
                .join(", ")
        };
        keys.alternatives.iter().map(alternative).collect::<Vec<_>>().join(" | ")
    }

    fn scope(scope: &ScopeTemplate) -> String {
        match scope {
            ScopeTemplate::All => "every partition".to_owned(),
            ScopeTemplate::EachRange => "partition of each range".to_owned(),
            ScopeTemplate::Bound(bound) => {
                let operands: Vec<String> = bound.iter().map(|(_, operand)| Self::operand(operand)).collect();
                format!("partition of {}", operands.join(", "))
            }
        }
    }

    fn path(&mut self, path: &AccessPath) {
        let text = match path {
            AccessPath::Nothing => "nothing".to_owned(),
            AccessPath::PrimaryKeys(keys) => format!("keys {}", self.key(keys)),
            AccessPath::UniqueKeys { keys, .. } => format!("unique {}", self.key(keys)),
            AccessPath::AllRows(scope) => format!("all rows, {}", Self::scope(scope)),
            AccessPath::Ranges { index, descending, ranges, scope } => {
                let name =
                    self.definition.and_then(|definition| definition.index(*index)).map_or("", |index| &index.name);
                let mut parts: Vec<String> = Vec::new();
                for (column, values) in ranges.columns.iter().zip(&ranges.prefix) {
                    parts.push(format!("{} {}", self.column(*column), Self::values(values)));
                }
                if let Some(column) = ranges.columns.get(ranges.prefix.len())
                    && !ranges.value_sets.is_empty()
                {
                    let value_sets: Vec<String> = ranges.value_sets.iter().map(Self::set).collect();
                    parts.push(format!("{} {}", self.column(*column), value_sets.join(" | ")));
                }
                let direction = if *descending { " descending" } else { "" };
                format!("range of {name}{direction} [{}], {}", parts.join(", "), Self::scope(scope))
            }
        };
        writeln!(self.out, "  by {text}").expect("a String takes everything");
    }

    fn line(&mut self, text: String) {
        writeln!(self.out, "  {text}").expect("a String takes everything");
    }

    fn one_time_filter(&mut self, one_time_filter: &[Expression]) {
        for condition in one_time_filter {
            self.line(format!("only if {}", described(condition)));
        }
    }

    fn filter(&mut self, filter: Option<&Expression>) {
        if let Some(filter) = filter {
            self.line(format!("where {}", described(filter)));
        }
    }

    fn output(&mut self, program: &ReadProgram) {
        let list = |values: &[Expression]| values.iter().map(described).collect::<Vec<_>>().join(", ");
        let order = |sort: &[SortKey]| {
            let key = |key: &SortKey| format!("{}{}", described(&key.value), if key.descending { " desc" } else { "" });
            sort.iter().map(key).collect::<Vec<_>>().join(", ")
        };
        let text = match &program.output {
            Output::Packets(projection) => format!("packets {}", list(&projection.values)),
            Output::Entries { projection, sort, distinct } => {
                let distinct = if distinct.is_some() { " distinct" } else { "" };
                format!("entries{distinct} {} order {}", list(&projection.values), order(sort))
            }
            Output::Aggregates(aggregates) => {
                let aggregates = aggregates.iter().map(|aggregate| {
                    format!(
                        "{}({})",
                        aggregate.kind.name(),
                        aggregate.argument.as_ref().map_or("*".to_owned(), described)
                    )
                });
                format!("aggregates {}", aggregates.collect::<Vec<_>>().join(", "))
            }
            Output::Images => "images".to_owned(),
            Output::Groups { keys, .. } => format!("groups by {}", list(keys)),
        };
        self.line(text);
    }

    fn conflict(&mut self, conflict: &Conflict) {
        match conflict {
            Conflict::Fail => {}
            Conflict::Skip => self.line("leave out rows of known keys".to_owned()),
            Conflict::Replace { .. } => self.line("replace rows of known keys".to_owned()),
            Conflict::Update { update, .. } => {
                if let WriteAction::Update { assignments, .. } = &update.action {
                    for assignment in assignments {
                        let text =
                            format!("or set {} = {}", self.column(assignment.column), described(&assignment.value));
                        self.line(text);
                    }
                }
                self.entries(&update.unique_entries);
            }
        }
        for key in conflict.keys() {
            let columns: Vec<&str> = key.columns.iter().map(|column| self.column(*column)).collect();
            self.line(format!("look for ({})", columns.join(", ")));
        }
    }

    fn plan(&mut self, plan: &Plan) {
        match plan {
            Plan::Tree(tree) => self.line(format!("tree of {} leaves", tree.leaves.len())),
            Plan::Select(select) => {
                self.path(&select.path);
                self.one_time_filter(&select.one_time_filter);
                self.filter(select.program.filter.as_ref());
                self.output(&select.program);
                match &select.final_step {
                    FinalStep::Stream => {}
                    FinalStep::Sort { ordered: true, .. } => self.line("merge ordered partitions".to_owned()),
                    FinalStep::Sort { .. } => self.line("sort".to_owned()),
                    FinalStep::Aggregate { projection, .. } => {
                        let row: Vec<String> = projection.values.iter().map(described).collect();
                        self.line(format!("merge states, row {}", row.join(", ")));
                    }
                }
                if let Some(limit) = select.limit {
                    self.line(format!("limit {:?}", (limit.offset, limit.count)));
                }
                if let Some(lock) = &select.locking_program
                    && let WriteAction::LockRead { mode, when_locked, .. } = &lock.action
                {
                    let otherwise = if *when_locked == WhenLocked::Wait { "" } else { &format!(", {when_locked:?}") };
                    self.line(format!("lock {mode:?}{otherwise}"));
                }
            }
            Plan::Change(change) => {
                self.path(&change.path);
                self.one_time_filter(&change.one_time_filter);
                self.filter(change.program.filter.as_ref());
                if let WriteAction::Update { assignments, .. } = &change.program.action {
                    for assignment in assignments {
                        let text = format!("set {} = {}", self.column(assignment.column), described(&assignment.value));
                        self.line(text);
                    }
                }
                self.entries(&change.program.unique_entries);
                if let Some(ordered) = &change.ordered {
                    let turn = if ordered.one_by_one { ", one after the other" } else { "" };
                    let when = if ordered.after_duplicate { "after a duplicate " } else { "" };
                    self.line(format!("{when}lock first, then write by key, limit {:?}{turn}", change.limit));
                    if let WriteAction::LockRead { output: Output::Entries { sort, .. }, .. } =
                        &ordered.locking_program.action
                    {
                        self.line(format!("in the order of {} values", sort.len()));
                    }
                }
            }
            Plan::Insert(insert) => {
                for row in &insert.rows {
                    let value = |value: &InsertValue| match value {
                        InsertValue::Parameter(ordinal) => format!("?{ordinal}"),
                        InsertValue::Stored(value) => shown(value),
                        InsertValue::Computed(expression) => described(expression),
                        InsertValue::Generated => "next".to_owned(),
                        InsertValue::Deferred(_) => "later".to_owned(),
                        InsertValue::Now(digits) => format!("now({digits})"),
                    };
                    let values: Vec<String> = row.iter().map(value).collect();
                    let rows = if insert.uniform_rows.is_some() { "rows" } else { "row" };
                    self.line(format!("{rows} ({})", values.join(", ")));
                }
                self.entries(&insert.program.unique_entries);
                self.conflict(&insert.conflict);
                if let Some(select) = &insert.select {
                    self.line("the rows of".to_owned());
                    self.plan(&select.clone().into());
                }
            }
            Plan::Compute(compute) => {
                self.filter(compute.filter.as_ref());
                let row: Vec<String> = compute.projection.values.iter().map(described).collect();
                self.line(format!("row {}", row.join(", ")));
            }
            Plan::Modify(modify) => {
                self.line(format!("tree of {} leaves", modify.query.leaves.len()));
                for target in &modify.targets {
                    let turn = if target.one_by_one { ", one after the other" } else { "" };
                    self.line(format!("write {} by key with {} values{turn}", target.alias, target.parameter_count));
                }
            }
            Plan::Into(into) => self.line(format!("{into:?}")),
            Plan::Hinted(hinted) => self.line(format!("{hinted:?}")),
            Plan::Control(control) => self.line(format!("{control:?}")),
        }
    }

    fn entries(&mut self, entries: &[(IndexId, Arc<junctor_model::schema::TableLayout>)]) {
        if !entries.is_empty() {
            let ids: Vec<String> = entries.iter().map(|(id, _)| id.to_string()).collect();
            self.line(format!("keeps unique {}", ids.join(", ")));
        }
    }
}

/// The text of an expression, with its parameters shown as `'?0'`, `'?1'` and so on.
fn described(expression: &Expression) -> String {
    if let junctor_expression::Node::Parameter(ordinal) = expression.node {
        return format!("?{ordinal}");
    }
    let mut builder = junctor_expression::ParametersBuilder::new();
    for ordinal in 0..10 {
        builder.push(junctor_model::value::ValueRef::Bytes(format!("?{ordinal}").as_bytes()));
    }
    let mut bytes = Vec::new();
    builder.append_to(&mut bytes).expect("ten parameters are few");
    expression.describe(Parameters::from_bytes(&bytes))
}

fn shown(value: &Value) -> String {
    match value {
        Value::Bytes(bytes) => format!("'{}'", String::from_utf8_lossy(bytes)),
        Value::Null => "NULL".to_owned(),
        Value::Int(value) => value.to_string(),
        Value::UInt(value) => format!("{value}u"),
        Value::Double(value) => format!("{value}e0"),
        Value::Decimal(value) => format!("{}/10^{}", value.clamped_mantissa(), value.scale()),
        other => format!("{other:?}"),
    }
}

#[test]
fn every_plan_equals_the_golden_file() {
    let golden = include_str!("plans.txt");
    let dictionary = dictionary();
    let mut actual = String::new();
    for statement in golden.lines().filter_map(|line| line.strip_prefix("> ")) {
        writeln!(actual, "> {statement}").expect("a String takes everything");
        match planned(&dictionary, statement) {
            Ok(Some(planned)) => {
                let definition = planned.plan.table().map(|table| &table.definition);
                let mut dump = Dump { out: String::new(), definition };
                dump.plan(&planned.plan);
                actual.push_str(&dump.out);
            }
            Ok(None) => actual.push_str("  no plan\n"),
            Err(error) => writeln!(actual, "  {error}").expect("a String takes everything"),
        }
    }
    assert!(actual == golden, "the plans are:\n{actual}");
}

#[test]
fn a_plan_is_cached_by_shape_until_its_table_changes() {
    let mut dictionary = dictionary();
    let mut cache = PlanCache::default();
    let planned =
        planned(&dictionary, "SELECT c FROM s WHERE id = 1").expect("the table exists").expect("it has a plan");
    let key = PlanKey { hash: [1, 2], text: b"text", database: "t", settings: 0, has_several_rows: false };
    cache.put(&key, (CachedShape::Plan(planned.plan), DigestNumber(1)), &dictionary);
    assert!(cache.get(&key, &dictionary).is_some());
    for other in [
        PlanKey { text: b"txet", ..key },
        PlanKey { database: "u", ..key },
        PlanKey { settings: 1, ..key },
        PlanKey { hash: [1, 3], ..key },
    ] {
        assert!(cache.get(&other, &dictionary).is_none(), "{other:?}");
    }
    dictionary.version += 1;
    assert!(cache.get(&key, &dictionary).is_some(), "another table may have changed");
    let mut changed = dictionary.table_named("t", "s").expect("the table exists").definition.clone();
    changed.version.0 += 1;
    dictionary.put_table(changed);
    dictionary.version += 1;
    assert!(cache.get(&key, &dictionary).is_none());
}

#[test]
fn a_full_set_of_the_cache_replaces_the_least_recently_used_plan() {
    let dictionary = dictionary();
    let mut cache = PlanCache::default();
    let plan = Plan::Control(ControlPlan::Commit(Default::default()));
    let texts: Vec<String> = (0..5).map(|number| format!("text {number}")).collect();
    let key = |text: &'static str| PlanKey {
        hash: [7, 7],
        text: text.as_bytes(),
        database: "",
        settings: 0,
        has_several_rows: false,
    };
    let keys: Vec<PlanKey<'_>> = texts.iter().map(|text| PlanKey { text: text.as_bytes(), ..key("") }).collect();
    for key in &keys[..4] {
        cache.put(key, (CachedShape::Plan(plan.clone()), DigestNumber(1)), &dictionary);
        assert!(cache.get(key, &dictionary).is_some());
    }
    assert!(cache.get(&keys[0], &dictionary).is_some(), "used again");
    cache.put(&keys[4], (CachedShape::Plan(plan.clone()), DigestNumber(1)), &dictionary);
    assert!(cache.get(&keys[1], &dictionary).is_none());
    for kept in [0, 2, 3, 4] {
        assert!(cache.get(&keys[kept], &dictionary).is_some(), "{kept}");
    }
    assert!(cache.get(&key("never put"), &dictionary).is_none());
}

#[test]
fn a_result_has_at_most_4096_columns() {
    let dictionary = dictionary();
    let refused = |count: usize| planned(&dictionary, &format!("SELECT {}", vec!["1"; count].join(","))).err();
    assert_eq!(refused(4096), None);
    assert_eq!(refused(4097).map(|error| error.code.errno()), Some(1117));
}

/// A parameter that is inserted unchanged may have any kind: each execution converts it to the column's type.
/// An expression that contains a parameter is planned for the parameter's kind (integer, string and so on).
#[test]
fn a_plan_that_computes_with_parameters_is_for_their_kinds_only() {
    let dictionary = dictionary();
    let cases = [
        ("INSERT INTO one VALUES (?, ?)", true),
        ("INSERT INTO one VALUES (?, ? + 1)", false),
        ("INSERT INTO one VALUES (?, ?) ON DUPLICATE KEY UPDATE v = VALUES(v) + v", true),
        ("INSERT INTO one VALUES (?, 1) ON DUPLICATE KEY UPDATE v = ?", false),
        ("INSERT INTO one VALUES (?, 1) ON DUPLICATE KEY UPDATE v = VALUES(v) + IF(v, 1, ?)", false),
    ];
    for (text, takes_any_kind) in cases {
        let parsed = parse(text.as_bytes()).expect("the statements of this test are well-formed");
        let kind = ParameterKind::of(Kind::Int);
        let kinds = vec![kind; parsed.parameter_count as usize];
        let planned = planned_for(&dictionary, &parsed.statement, &kinds).expect(text);
        let Some(Planned { plan: Plan::Insert(insert), .. }) = planned else { panic!("{text}") };
        assert_eq!(insert.takes_any_kind, takes_any_kind, "{text}");
    }
}

#[test]
fn hints_and_straight_join_determine_the_order_of_joins() {
    let dictionary = dictionary();
    let rows = |definition: &TableDefinition| match &*definition.name {
        "s" => Some(1_000_000),
        "h" => Some(1_000),
        _ => Some(10),
    };
    let order = |options: &str| {
        let text = format!("SELECT {options} COUNT(*) FROM s, h, one WHERE s.k = h.w AND h.id = one.v");
        let statement = parse(text.as_bytes()).expect(options).statement;
        let planned = planned_with_rows(&dictionary, &statement, &[], &rows).expect(options).expect(options);
        let Plan::Tree(tree) = planned.plan.unhinted() else { panic!("{options}") };
        let mut order = Vec::new();
        tree.root.root.visit(&mut |node| {
            if let tree::PlanNode::Scan(leaf) = node {
                order.push(tree.leaves[*leaf].alias.to_string());
            }
        });
        order.join(" ")
    };
    assert_eq!(order(""), "one h s");
    for (options, expected) in [
        ("STRAIGHT_JOIN", "s h one"),
        ("/*+ JOIN_FIXED_ORDER() */", "s h one"),
        ("/*+ JOIN_PREFIX(h, s) */", "h s one"),
        ("/*+ JOIN_SUFFIX(one) */", "h s one"),
        ("/*+ JOIN_SUFFIX(h, one) */", "s h one"),
        ("/*+ JOIN_ORDER(s, one) */", "h s one"),
        ("/*+ QB_NAME(q) JOIN_ORDER(@q s, h, one) */", "s h one"),
        ("/*+ JOIN_ORDER(s@`select#1`, h, one) */", "s h one"),
        // A hint that contradicts an earlier one is ignored.
        ("/*+ JOIN_ORDER(h, one) JOIN_ORDER(one, h) */", "h one s"),
        ("/*+ JOIN_ORDER(@other s, h, one) JOIN_ORDER(gone, h) */", "one h s"),
    ] {
        assert_eq!(order(options), expected, "{options}");
    }
}

#[test]
fn only_a_table_whose_rows_expire_gets_a_condition_on_the_time() {
    let mut dictionary = dictionary();
    let columns = vec![
        ColumnDefinition::new("id", DataType::integer(4, false)),
        ColumnDefinition::new("at", DataType::date_time(0)),
    ];
    let primary = IndexKind::Primary { ordered: true };
    let primary = IndexDefinition::new(IndexId(0), "PRIMARY", primary, vec![ColumnNumber(0)]);
    let mut table = TableDefinition::new(TableId(90), ("t", "e"), columns, vec![primary]);
    table.comment = "NDB_TABLE=TTL=60@at".into();
    dictionary.put_table(table);
    let moment = junctor_model::temporal::Zone::UTC.date_time_at(1_000_000_000_000, 6);
    let result = ResultType::of_value(junctor_model::value::ValueRef::Temporal(moment), CollationId::BINARY);
    let time = ParameterKind { is_statement_time: true, ..ParameterKind::exactly(result) };
    let plan_of = |text: &str, kinds: &[ParameterKind]| {
        let statement = parse(text.as_bytes()).expect("it is a statement").statement;
        planned_for(&dictionary, &statement, kinds)
    };
    let filter_of = |plan: &Plan| match plan {
        Plan::Select(plan) => plan.program.filter.clone(),
        Plan::Change(plan) => plan.program.filter.clone(),
        _ => panic!("neither a query nor a change"),
    };
    for text in ["SELECT id FROM e WHERE id = 1", "UPDATE e SET id = 2 WHERE id = 1", "DELETE FROM e"] {
        let planned = plan_of(text, &[time]).expect("it can be planned").expect("it has a plan");
        let filter = filter_of(&planned.plan).expect("a condition on the time");
        assert_eq!(filter.describe(Parameters::NONE), "row lives(`t`.`e`.`at`,NULL,60)", "{text}");
        assert!(!planned.is_volatile, "the time is a parameter: {text}");
        // A session whose time is unknown cannot read the table.
        assert_eq!(plan_of(text, &[]).err().map(|error| error.code.errno()), Some(1235), "{text}");
    }
    for text in ["SELECT id FROM s WHERE id = 1", "UPDATE s SET k = 2 WHERE id = 1", "DELETE FROM s"] {
        let planned = plan_of(text, &[]).expect("it can be planned").expect("it has a plan");
        assert_eq!(filter_of(&planned.plan), None, "{text}");
    }
}

/// The tree of a query, or of the rows that a statement changes.
fn tree_of(text: &str) -> junctor_model::error::Result<Arc<tree::TreePlan>> {
    Ok(match planned(&dictionary(), text)?.expect("it has a plan").plan {
        Plan::Tree(tree) => tree,
        Plan::Modify(plan) => Arc::clone(&plan.query),
        _ => panic!("not a tree: {text}"),
    })
}

fn error_of(text: &str) -> Option<u16> {
    tree_of(text).err().map(|error| error.code.errno())
}

#[test]
fn a_subquery_is_grouped_only_if_it_reads_the_outer_row_in_equalities_of_columns() {
    let is_grouped = |subquery: &str| {
        let tree = tree_of(&format!("SELECT {subquery} FROM s")).expect("it can be planned");
        let mut has_groups = false;
        tree.root.root.visit(&mut |node| {
            has_groups |= matches!(node, tree::PlanNode::Apply(_, plan) if plan.grouped.is_some());
        });
        has_groups
    };
    for subquery in [
        "(SELECT SUM(n) FROM u WHERE u.b = s.k)",
        "(SELECT SUM(n) FROM u JOIN one ON u.a = one.v AND u.b = s.k WHERE n > 3)",
        "EXISTS (SELECT 1 FROM u WHERE u.b = s.k)",
    ] {
        assert!(is_grouped(subquery), "{subquery}");
    }
    for subquery in [
        "(SELECT SUM(n) + s.id FROM u WHERE u.b = CASE s.k WHEN 1 THEN 1 WHEN 2 THEN 2 END)",
        "(SELECT SUM(n) + s.id FROM u WHERE u.b = s.k)",
        "(SELECT SUM(n + s.id) FROM u WHERE u.b = s.k)",
        "(SELECT SUM(n) FROM u WHERE u.b = s.k AND n > s.id)",
        "(SELECT SUM(n) FROM u JOIN one ON u.a = one.v AND n > s.id WHERE u.b = s.k)",
        "(SELECT SUM(n) FROM u, LATERAL (SELECT s.id + u.a AS x) l WHERE u.b = s.k)",
        "(SELECT SUM(n) FROM u, LATERAL (SELECT u.a + 1 AS x) l WHERE u.b = s.k)",
        "(SELECT SUM(n) FROM u WHERE u.b = s.k + 1)",
        "(SELECT SUM(n) FROM u WHERE u.b = s.k AND u.a IN (SELECT v FROM one))",
        "(SELECT n FROM u WHERE u.b = s.k)",
        "EXISTS (SELECT 1 FROM u WHERE u.b = s.k AND n > s.id)",
    ] {
        assert!(!is_grouped(subquery), "{subquery}");
    }
}

#[test]
fn a_wrong_number_of_operands_is_found_after_unknown_tables_and_columns() {
    assert_eq!(error_of("SELECT 1 FROM s WHERE id IN (SELECT a, b FROM gone)"), Some(1146));
    assert_eq!(error_of("SELECT 1 FROM s WHERE id IN (SELECT a, gone FROM u)"), Some(1054));
    assert_eq!(error_of("SELECT 1 FROM s WHERE id IN (SELECT a, b FROM u)"), Some(1241));
    assert_eq!(error_of("SELECT 1 FROM s WHERE (id, k) NOT IN (SELECT a FROM u)"), Some(1241));
}

#[test]
fn the_time_to_plan_nested_correlated_subqueries_does_not_double_with_each() {
    // Twenty levels would be a million plans.
    let mut text = "SELECT id FROM s WHERE id IN (SELECT v FROM one)".to_owned();
    for level in 0..20 {
        text = format!("SELECT MAX(a) FROM u AS u{level} WHERE u{level}.b < outer_row.k AND a IN ({text})")
            .replace("FROM s WHERE", "FROM s WHERE k > 0 AND");
    }
    let text = format!("SELECT id FROM s AS outer_row WHERE id IN ({text})");
    assert_eq!(tree_of(&text).expect("it can be planned").leaves.len(), 24);
}

#[test]
fn subqueries_that_assign_run_after_the_clauses_that_choose_rows_or_are_refused() {
    let assigning = "(SELECT @a := MAX(n) FROM u WHERE u.b = s.k)";
    for clauses in ["ORDER BY id", "LIMIT 1", "HAVING id > 1"] {
        assert_eq!(error_of(&format!("SELECT id, {assigning} AS m FROM s {clauses}")), Some(1235), "{clauses}");
    }
    for clauses in ["", "ORDER BY m", "HAVING m > 1"] {
        assert_eq!(error_of(&format!("SELECT id, {assigning} AS m FROM s {clauses}")), None, "{clauses}");
    }
    let tree = tree_of(&format!("UPDATE s SET c = {assigning} ORDER BY pad LIMIT 2")).expect("it can be planned");
    let tree::PlanNode::Apply(below, _) = &tree.root.root else { panic!("{:?}", tree.root.root) };
    let tree::PlanNode::Single(below) = &**below else { panic!("{below:?}") };
    assert!(matches!(&**below, tree::PlanNode::Limit(sort, _) if matches!(**sort, tree::PlanNode::Sort(..))));
}

#[test]
fn conditions_that_count_rows_see_them_in_the_order_of_the_key() {
    for text in [
        "DELETE FROM s WHERE (@c := id) > 2 LIMIT 1",
        "UPDATE s SET k = 1 WHERE (@c := id) > 2",
        "UPDATE s SET k = 1 WHERE (@c := id) > 2 ORDER BY id LIMIT 1",
    ] {
        let tree = tree_of(text).expect("it can be planned");
        let tree::PlanNode::Filter(below, _) = &tree.root.root else { panic!("{:?}", tree.root.root) };
        let tree::PlanNode::Single(below) = &**below else { panic!("{below:?}") };
        assert!(matches!(**below, tree::PlanNode::Sort(_, _, None)), "{text}: {below:?}");
    }
    for order in ["k", "id DESC", "id, k", "(SELECT MAX(n) FROM u)"] {
        let text = format!("DELETE FROM s WHERE (@c := id) > 2 ORDER BY {order} LIMIT 1");
        assert_eq!(error_of(&text), Some(1235), "{order}");
    }
}

#[test]
fn only_values_that_order_or_distinct_reads_are_computed_for_all_rows() {
    let computed = |text: &str| {
        let mut count = 0;
        tree_of(text).expect("it can be planned").root.root.visit(&mut |node| {
            if let tree::PlanNode::Compute(_, values) = node {
                count += values.len();
            }
        });
        count
    };
    assert_eq!(computed("SELECT s.id / n, s.id + n AS total FROM s JOIN u ON u.a = s.id ORDER BY s.id LIMIT 1"), 0);
    assert_eq!(computed("SELECT s.id / n, s.id + n AS total FROM s JOIN u ON u.a = s.id ORDER BY total LIMIT 1"), 1);
    assert_eq!(computed("SELECT s.id / n, s.id + n AS total FROM s JOIN u ON u.a = s.id ORDER BY -total LIMIT 1"), 1);
    assert_eq!(computed("SELECT DISTINCT s.id / n, s.id + n FROM s JOIN u ON u.a = s.id LIMIT 1"), 2);
}

#[test]
fn subqueries_run_after_order_and_limit_unless_these_read_them() {
    let places = |text: &str| {
        let tree = tree_of(text).expect("it can be planned");
        let (mut above, mut below, mut is_sorted) = (0, 0, false);
        let mut node = &tree.root.root;
        loop {
            node = match node {
                tree::PlanNode::Apply(from, _) => {
                    *if is_sorted { &mut below } else { &mut above } += 1;
                    from
                }
                tree::PlanNode::Sort(from, ..) => {
                    is_sorted = true;
                    from
                }
                tree::PlanNode::Limit(from, _) => {
                    is_sorted = true;
                    from
                }
                tree::PlanNode::Filter(from, _) | tree::PlanNode::Compute(from, _) | tree::PlanNode::Single(from) => {
                    from
                }
                _ => return (above, below),
            };
        }
    };
    let subquery = "(SELECT MAX(n) FROM u WHERE u.b = s.k)";
    let query = |clauses: &str| format!("SELECT id, {subquery} AS m, k FROM s {clauses}");
    assert_eq!(places(&query("ORDER BY id LIMIT 3")), (1, 0));
    assert_eq!(places(&query("LIMIT 3")), (1, 0));
    assert_eq!(places(&query("ORDER BY m, id LIMIT 3")), (0, 1));
    assert_eq!(places(&query("HAVING m > 3 ORDER BY id LIMIT 3")), (0, 1));
    let among = format!("SELECT {subquery} IN (SELECT v FROM one WHERE v > s.id) AS m FROM s ORDER BY");
    assert_eq!(places(&format!("{among} m LIMIT 1")), (0, 2));
    assert_eq!(places(&format!("{among} id LIMIT 1")), (2, 0));
    assert_eq!(places(&format!("SELECT @a := {subquery}, @b := id AS b FROM s ORDER BY b")), (0, 1));
}

#[test]
fn a_query_that_assigns_stays_before_the_table_of_its_document() {
    let rows = "JSON_TABLE(first.doc, '$[*]' COLUMNS (x INT PATH '$')) AS jt";
    for from in ["", "s, "] {
        assert_eq!(error_of(&format!("SELECT x FROM {from}(SELECT @j := '[1,2]' AS doc) AS first, {rows}")), None);
    }
}
