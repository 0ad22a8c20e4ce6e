//! Checks that a statement returns the same rows, types, warnings and errors in three forms: with a shape
//! (the key under which its plan is cached), without a shape, and prepared.
//!
//! Each random statement is generated twice, with different literals of the same classes. The first statement
//! makes the plan, and the second one reuses it. The reply to the second is compared with two others. One is
//! the reply to the same text with a hint, which has no shape. The other is the reply to the prepared
//! statement, which was first executed with the literals of the first statement. The two executions also
//! differ in the values that only the session knows, and in the types of user variables. The reply to a
//! fourth form, the text with literals in place of these values, must have the same rows.
//!
//! `STATEMENT_FORMS=100000 STATEMENT_FORMS_SEED=7` sets the number of statements and the seed.

mod generator;

use generator::{Class, Generator, Literal, Piece, Random, Statement, literal_text};
use junctor::{MemoryStream, Node, Protocol};
use junctor_bench::mysql::{ClientError, Connection, Rows};

const STATEMENTS: usize = 2_000;
/// Maximum number of differences that are reported before the test ends.
const DIFFERENCES_MAX: usize = 12;
/// A text with a hint gets no shape. The parser skips the hint as a comment.
const HINT: &str = "/*+ */ ";

type Session = Connection<MemoryStream>;

/// Everything that a client can observe of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Outcome {
    error: Option<String>,
    columns: Vec<String>,
    rows: Vec<Vec<Option<String>>>,
    affected_rows: u64,
    warnings: Vec<Vec<Option<String>>>,
    /// The rows of the table after the statement changed it.
    table: Vec<Vec<Option<String>>>,
}

#[test]
fn every_form_of_a_statement_gives_the_same_answer() {
    let number = |name: &str, default: u64| {
        std::env::var(name).ok().map_or(default, |text| text.parse().expect("the setting is a number"))
    };
    let count = number("STATEMENT_FORMS", STATEMENTS as u64);
    let seed = number("STATEMENT_FORMS_SEED", 1);
    let builder = Node::builder().total_memory_bytes(128 << 20).cpu_count_max(2).max_connections(8);
    let node = builder.start().expect("the node starts");
    let mut session =
        Connection::log_in_over(node.stream(Protocol::MySql).expect("there is room"), "").expect("root logs in");
    prepare_table(&mut session);
    let mut differences = 0;
    let mut answers = [0u64; 3];
    for position in 0..count {
        let mut random = Random(seed.wrapping_mul(1_000_003).wrapping_add(position));
        let first = Generator::new(&mut random).statement();
        let second = with_other_literals(&first, &mut random);
        let states = [SessionState::new(&mut random), SessionState::new(&mut random)];
        let is_same = check(&mut session, (&first, &second), &states, &mut answers);
        if !is_same {
            println!("(statement {position} of seed {seed})\n");
            differences += 1;
            assert!(differences < DIFFERENCES_MAX, "{differences} differences in {position} statements");
        }
    }
    println!("{count} statements: {} with rows, {} changes, {} errors", answers[0], answers[1], answers[2]);
    assert_eq!(differences, 0, "of {count} statements");
    assert!(answers[0] > count / 4 && answers[1] > count / 20, "most statements are answered: {answers:?}");
}

/// Two kinds of statements are planned only once: those with values that only the session knows, and those
/// with literals that are part of the statement's meaning.
#[test]
fn statements_with_session_values_and_kept_literals_are_planned_once() {
    let (_node, mut session) = small_node();
    let forms: [fn(u64) -> String; 10] = [
        |round| format!("SELECT a FROM t WHERE s < NOW() AND id = {round}"),
        |round| {
            format!(
                "INSERT INTO t (id, a, s) VALUES ({}, @i, CURDATE()), ({}, @i, CURDATE())",
                1_000 + round,
                2_000 + round
            )
        },
        |round| format!("UPDATE t SET a = @i WHERE id = {round} AND a <> LAST_INSERT_ID()"),
        |_| "SELECT @@autocommit, LAST_INSERT_ID(), NOW()".to_owned(),
        |round| format!("SELECT a FROM t WHERE id = {round} ORDER BY ROUND(a / 3, 1), 1"),
        |round| format!("UPDATE t SET s = LEFT(s, 5) WHERE id = {round}"),
        |round| format!("SELECT CONCAT(@s, 'a'), NOW() + 1, ROUND(a / 3, @i) FROM t WHERE id = {round}"),
        |round| format!("UPDATE t SET s = LEFT(CONCAT(DATABASE(), @s), 4) WHERE id = {round} + LAST_INSERT_ID()"),
        |_| "SELECT COUNT(*), SUM(a + @i) FROM t WHERE IF(@i > 3, a, b) < CONNECTION_ID()".to_owned(),
        |_| "SELECT UPPER(CURRENT_USER()), COALESCE(@s, VERSION()) ORDER BY @i".to_owned(),
    ];
    let before = plans(&mut session);
    for round in 1..=20 {
        // Values of other lengths have the same type.
        let text = "x".repeat(round as usize);
        run(&mut session, &format!("SET @i = {}, @s = '{text}', last_insert_id = {round}", 7u64.pow(round as u32 % 8)));
        for form in forms {
            run(&mut session, &form(round));
        }
    }
    let made = plans(&mut session) - before;
    // SET and the query of the counters are planned each time.
    assert_eq!(made, forms.len() as u64 + 20 + 1, "each form has one plan");
}

/// Prepared statements with values that only the session knows are planned only once.
#[test]
fn prepared_statements_with_session_values_are_planned_once() {
    let (_node, mut session) = small_node();
    let texts = [
        "SELECT a FROM t WHERE s < NOW() AND id > LAST_INSERT_ID()",
        "SELECT CONCAT(@s, 'a'), NOW() + 1, ROUND(a / 3, @i) FROM t WHERE id = @i",
        "SELECT id FROM t WHERE s LIKE @s ORDER BY @i, CONCAT(s, @s)",
        "UPDATE t SET a = @i % 100, s = LEFT(CONCAT(s, @s), 3) WHERE id = 3",
        "DELETE FROM t WHERE id = @i AND CONNECTION_ID() = 0",
        "INSERT INTO t (id, s) VALUES (7, LEFT(@s, 4)) ON DUPLICATE KEY UPDATE s = LEFT(CURRENT_USER(), @@autocommit)",
        "INSERT INTO t (id, s) SELECT id + @i + 100000, LEFT(@s, 2) FROM t WHERE id = @i",
        "SELECT @@autocommit, LAST_INSERT_ID(), NOW(), @i + 1, CONCAT(@s, DATABASE())",
    ];
    let mut statements = Vec::new();
    run(&mut session, "SET @i = 1, @s = 'x'");
    for text in texts {
        statements.push(session.prepare(text).unwrap_or_else(|error| panic!("{text}: {error}")));
    }
    let before = plans(&mut session);
    for round in 1..=20u64 {
        let text = "x".repeat(round as usize);
        run(&mut session, &format!("SET @i = {}, @s = '{text}', last_insert_id = {round}", round * 1_000));
        for (statement, text) in statements.iter().zip(texts) {
            session.execute_encoded(*statement, &[]).unwrap_or_else(|error| panic!("{text}: {error}"));
        }
    }
    // SET and the query of the counters are planned each time; the other plans were made when the statements
    // were prepared.
    assert_eq!(plans(&mut session) - before, 20 + 1);
}

/// A session value that contains literals, such as `NOW(3)`, is computed from the statement's own literals,
/// not from those of the statement that made the plan.
#[test]
fn literals_inside_session_values_belong_to_the_statement() {
    let (_node, mut session) = small_node();
    run(&mut session, "SET timestamp = 1700000000.25");
    let moved = |hours: u64| {
        format!(
            "SELECT id FROM t WHERE id = 1 AND CONCAT('', CONVERT_TZ('2001-01-01 00:00:00', '+00:00', '+0{hours}:00')) = '2001-01-01 0{hours}:00:00'"
        )
    };
    let now = |digits: usize| {
        format!(
            "SELECT id FROM t WHERE id = 1 AND LENGTH(NOW({digits})) = {}",
            if digits == 0 { 19 } else { 20 + digits }
        )
    };
    let mut made = Vec::new();
    for _ in 0..3 {
        let before = plans(&mut session);
        for step in 0..6 {
            for text in [moved(step), now(step as usize)] {
                assert_eq!(run(&mut session, &text).rows.len(), 1, "{text}");
            }
        }
        made.push(plans(&mut session) - before);
    }
    // The query of the counters is planned each time.
    assert_eq!(made, [12 + 1, 1, 1]);
}

/// A user variable of another type needs another plan, which is kept as well.
#[test]
fn each_type_of_a_user_variable_has_one_plan() {
    let (_node, mut session) = small_node();
    const TEXT: &str = "SELECT @n + 1, @n FROM t WHERE id = 1";
    // The list of shared statements keeps four plans of one text.
    const TYPES: [(&str, &str); 4] = [("5", "6"), ("2.50", "3.50"), ("'7'", "8"), ("NULL", "")];
    let prepared = session.prepare(TEXT).expect("it is prepared");
    let mut made = Vec::new();
    for _ in 0..3 {
        let before = plans(&mut session);
        for (value, sum) in TYPES {
            run(&mut session, &format!("SET @n = {value}"));
            for rows in [run(&mut session, TEXT), session.execute_encoded(prepared, &[]).expect("it is executed")] {
                assert_eq!(rows.rows[0][0].as_deref().unwrap_or(""), sum, "{value}");
            }
        }
        made.push(plans(&mut session) - before);
    }
    // The statement was prepared while the variable was NULL. SET and the query of the counters are planned
    // each time.
    let types = TYPES.len() as u64;
    assert_eq!(made, [types + types + (types - 1) + 1, types + 1, types + 1]);
}

/// A prepared statement that starts again, after it has waited for a table or a lock, has its own parameters
/// and those of the session.
#[test]
fn a_prepared_statement_that_starts_again_has_all_its_parameters() {
    let (node, mut session) = small_node();
    let stream = node.stream(Protocol::MySql).expect("there is room");
    let mut other = Connection::log_in_over(stream, "").expect("root logs in");
    run(&mut other, "USE forms");
    run(&mut other, "SET @i = 40, @t = 1");
    let update = other.prepare("UPDATE t SET a = ? + @i WHERE id = 3 AND NOW() > '2000'").expect("it is prepared");
    let lock = other.prepare("SELECT GET_LOCK(CONCAT('x', ?), @t), ? + @i").expect("it is prepared");
    let integer = |value: u64| Literal { class: Class::Integer, text: value.to_string(), is_liftable: true };
    let values = |values: &[u64]| {
        let pieces = values.iter().map(|value| Piece::Literal(integer(*value))).collect();
        let statement = Statement { pieces, ..Statement::default() };
        parameters_of(&statement, &statement)
    };
    run(&mut session, "LOCK TABLES t WRITE");
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| other.execute_encoded(update, &values(&[2])).expect("it is executed"));
        while !waiting.is_finished() && count_waiting(&mut session) == 0 {
            std::thread::yield_now();
        }
        run(&mut session, "UNLOCK TABLES");
        assert_eq!(waiting.join().expect("no panic").affected_rows, 1);
    });
    let value = session.query_value("SELECT a FROM t WHERE id = 3").expect("it is read");
    assert_eq!(value.as_deref(), Some("42"));
    let rows = other.execute_encoded(lock, &values(&[7, 2])).expect("it is executed").rows;
    assert_eq!(rows, [[Some("1".to_owned()), Some("42".to_owned())]]);
    let used = session.query_value("SELECT IS_FREE_LOCK('x7')").expect("it is read");
    assert_eq!(used.as_deref(), Some("0"));
}

/// The number of sessions that wait for a table.
fn count_waiting(session: &mut Session) -> usize {
    let rows = run(session, "SHOW PROCESSLIST").rows;
    rows.iter().flatten().flatten().filter(|cell| cell.starts_with("Waiting for")).count()
}

/// A node for a test of its plans, and a session with the table of the statements.
fn small_node() -> (Node, Session) {
    let builder = Node::builder().total_memory_bytes(64 << 20).cpu_count_max(1).max_connections(8);
    let node = builder.start().expect("the node starts");
    let mut session =
        Connection::log_in_over(node.stream(Protocol::MySql).expect("there is room"), "").expect("root logs in");
    prepare_table(&mut session);
    (node, session)
}

/// The number of plans that the sql blocks have made.
fn plans(session: &mut Session) -> u64 {
    let text = "SELECT SUM(value) FROM junctor_info.counters WHERE name = 'plans'";
    let plans = session.query_value(text).expect("the counters are there").expect("blocks count plans");
    plans.parse().expect("a count is a number")
}

/// LIKE finds the same rows through an index range as through a table scan.
#[test]
fn like_finds_the_same_rows_with_and_without_an_index() {
    const COLLATIONS: [&str; 4] = ["utf8mb4_general_ci", "utf8mb4_bin", "utf8mb4_0900_ai_ci", "binary"];
    const PARTS: [&str; 16] =
        ["a", "A", "b", "ß", "ss", " ", "  ", "\u{1f}", "\t", "ä", "é", "z", "_", "%", "\u{1F600}", "\u{301}"];
    let builder = Node::builder().total_memory_bytes(64 << 20).cpu_count_max(1).max_connections(8);
    let node = builder.start().expect("the node starts");
    let mut session =
        Connection::log_in_over(node.stream(Protocol::MySql).expect("there is room"), "").expect("root logs in");
    run(&mut session, "DROP DATABASE IF EXISTS likes");
    run(&mut session, "CREATE DATABASE likes");
    run(&mut session, "USE likes");
    let mut random = Random(1);
    let mut text =
        |length: usize| -> String { (0..random.below(length + 1)).map(|_| PARTS[random.below(PARTS.len())]).collect() };
    for collation in COLLATIONS {
        let column = match collation {
            "binary" => "VARBINARY(40)".to_owned(),
            collation => format!("VARCHAR(20) COLLATE {collation}"),
        };
        run(&mut session, &format!("CREATE TABLE t_{collation} (id INT PRIMARY KEY, s {column}, KEY s (s))"));
        for id in 0..200 {
            run(&mut session, &format!("INSERT INTO t_{collation} VALUES ({id}, '{}')", text(4)));
        }
        let mut found = 0;
        for _ in 0..300 {
            let pattern = text(3);
            let select = |hint: &str| {
                let collate = if collation == "binary" { String::new() } else { format!(" COLLATE {collation}") };
                format!("SELECT id FROM t_{collation} {hint} WHERE s LIKE '{pattern}%'{collate} ORDER BY id")
            };
            let by_index = run(&mut session, &select("FORCE INDEX (s)")).rows;
            assert_eq!(by_index, run(&mut session, &select("IGNORE INDEX (s)")).rows, "{collation}: {pattern:?}");
            found += by_index.len();
        }
        assert!(found > 1_000, "{collation}: patterns find rows");
        let explained = run(&mut session, &format!("EXPLAIN SELECT id FROM t_{collation} WHERE s LIKE 'ab%'")).rows;
        let has_range = explained.iter().flatten().flatten().any(|cell| cell == "range");
        assert!(has_range, "{collation}: {explained:?}");
    }
}

fn run(session: &mut Session, text: &str) -> Rows {
    session.query(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn prepare_table(session: &mut Session) {
    for text in [
        // User variables get the collation of the connection, and are compared with the columns.
        "SET NAMES utf8mb4 COLLATE utf8mb4_0900_ai_ci",
        "DROP DATABASE IF EXISTS forms",
        "CREATE DATABASE forms",
        "USE forms",
        "CREATE TABLE t (id INT PRIMARY KEY, a INT, b BIGINT UNSIGNED, d DOUBLE, s VARCHAR(12), c VARCHAR(12) COLLATE utf8mb4_bin, \
         k VARCHAR(12), KEY (a), KEY (s), UNIQUE (k), KEY (d))",
    ] {
        run(session, text);
    }
    let texts = ["abc", "ABC", "ab", "5", "5.0", "2.5", "b", "x''y", "", " 7", "zz", "5abc"];
    for id in 1..=24u64 {
        let text = texts[id as usize % texts.len()];
        let a = if id % 7 == 0 { "NULL".to_owned() } else { ((id * 5) % 13).to_string() };
        let d = if id % 5 == 0 { "NULL".to_owned() } else { format!("{}e-1", id * 5) };
        let s = if id % 11 == 0 { "NULL".to_owned() } else { format!("'{text}'") };
        let row = format!("INSERT INTO t VALUES ({id}, {a}, {}, {d}, {s}, '{text}', 'k{id}')", id % 4);
        run(session, &row);
    }
}

/// The same statement with other literals of the same classes.
fn with_other_literals(statement: &Statement, random: &mut Random) -> Statement {
    let mut other = statement.clone();
    for piece in &mut other.pieces {
        if let Piece::Literal(literal) = piece
            && random.below(3) > 0
            && literal.text.len() < 9
        {
            literal.text = literal_text(random, literal.class);
        }
    }
    other
}

fn text_of(statement: &Statement, literal_text: impl Fn(&Literal) -> String) -> String {
    let pieces = statement.pieces.iter().map(|piece| match piece {
        Piece::Text(text) => text.clone(),
        Piece::Literal(literal) => literal_text(literal),
        Piece::Session(value) => (*value).to_owned(),
    });
    pieces.collect()
}

/// The values of the session during an execution, as literals.
struct SessionState {
    timestamp: u64,
    last_insert_id: u64,
    integer: &'static str,
    text: &'static str,
    decimal: &'static str,
    other: &'static str,
    pattern: &'static str,
}

impl SessionState {
    fn new(random: &mut Random) -> SessionState {
        let mut pick = |from: &[&'static str]| from[random.below(from.len())];
        SessionState {
            integer: pick(&["5", "0", "12", "-3", "9223372036854775807"]),
            text: pick(&["'abc'", "'a much longer text'", "''", "'5'"]),
            decimal: pick(&["2.50", "0.10", "-123456.75", "1.333"]),
            other: pick(&["5", "'abc'", "2.50", "NULL", "'7'", "-3e0", "'longer text'", "1.5", "CAST(4 AS UNSIGNED)"]),
            pattern: pick(&["'a%'", "'%b%'", "'ab_'", "5", "NULL", "''", "'5%'"]),
            timestamp: 1_700_000_000 + random.below(3) as u64 * 86_400,
            last_insert_id: [0, 7, 1 << 40, u64::MAX][random.below(4)],
        }
    }

    fn apply(&self, session: &mut Session) {
        let SessionState { timestamp, last_insert_id, integer, text, decimal, other, pattern } = self;
        let variables = format!("@i = {integer}, @s = {text}, @m = {decimal}, @n = {other}, @p = {pattern}");
        run(session, &format!("SET timestamp = {timestamp}, last_insert_id = {last_insert_id}, {variables}"));
    }

    /// The literal that is equivalent to a session value; `None` if there is none.
    fn literal(&self, value: &str) -> Option<String> {
        let day = 14 + (self.timestamp - 1_700_000_000) / 86_400;
        // An integer by itself would be the number of a select item in ORDER BY.
        let number = |text: &str| match text.parse::<i64>() {
            Ok(_) => format!("CAST({text} AS SIGNED)"),
            Err(_) => format!("({text})"),
        };
        Some(match value {
            "@i" => number(self.integer),
            "@s" => self.text.to_owned(),
            "@m" => number(self.decimal),
            "@n" => number(self.other),
            "@p" => number(self.pattern),
            "NOW()" => format!("TIMESTAMP'2023-11-{day} 22:13:20'"),
            "NOW(3)" => format!("TIMESTAMP'2023-11-{day} 22:13:20.000'"),
            "CURRENT_TIMESTAMP(6)" => format!("TIMESTAMP'2023-11-{day} 22:13:20.000000'"),
            "CURDATE()" => format!("DATE'2023-11-{day}'"),
            "LAST_INSERT_ID()" => format!("CAST({} AS UNSIGNED)", self.last_insert_id),
            "DATABASE()" => "'forms'".to_owned(),
            "CURRENT_USER()" => "'root@localhost'".to_owned(),
            "@@div_precision_increment" => "CAST(4 AS UNSIGNED)".to_owned(),
            _ => return None,
        })
    }
}

/// The text of a statement with literals in place of session values; `None` if one has no literal, or has
/// another meaning as a literal.
fn text_of_literals(statement: &Statement, state: &SessionState) -> Option<String> {
    if statement.has_computed_type {
        return None;
    }
    let pieces = statement.pieces.iter().map(|piece| match piece {
        Piece::Text(text) => Some(text.clone()),
        Piece::Literal(literal) => Some(literal.text.clone()),
        Piece::Session(value) => state.literal(value),
    });
    pieces.collect()
}

fn check(
    session: &mut Session,
    (first, second): (&Statement, &Statement),
    [first_state, second_state]: &[SessionState; 2],
    answers: &mut [u64; 3],
) -> bool {
    let text = |statement: &Statement| text_of(statement, |literal| literal.text.clone());
    let (first_text, second_text) = (text(first), text(second));
    let (verb, rest) = second_text.split_once(' ').expect("a statement has words");
    let unshaped_text = format!("{verb} {HINT}{rest}");
    first_state.apply(session);
    observe(session, first, |session| session.query(&first_text));
    second_state.apply(session);
    let shaped = observe(session, second, |session| session.query(&second_text));
    let unshaped = observe(session, second, |session| session.query(&unshaped_text));
    let prepared_text =
        text_of(second, |literal| if is_parameter(literal) { "?".into() } else { literal.text.clone() });
    first_state.apply(session);
    let prepared = match session.prepare(&prepared_text) {
        Ok(prepared) => {
            let values = parameters_of(first, second);
            observe(session, first, |session| session.execute_encoded(prepared, &values));
            second_state.apply(session);
            let values = parameters_of(second, second);
            let outcome = observe(session, second, |session| session.execute_encoded(prepared, &values));
            session.close_statement(prepared).expect("the connection lasts");
            outcome
        }
        // A statement that cannot be prepared has no rows and no types, so only its error is compared.
        Err(error) => Outcome {
            error: Some(shown_error(&error)),
            warnings: unshaped.warnings.clone(),
            table: unshaped.table.clone(),
            ..observe_nothing()
        },
    };
    match (&shaped.error, second.is_change) {
        (Some(_), _) => answers[2] += 1,
        (None, true) => answers[1] += 1,
        (None, false) => answers[0] += 1,
    }
    let mut is_same = true;
    let has_session_values = second.pieces.iter().any(|piece| matches!(piece, Piece::Session(_)));
    if has_session_values && let Some(text) = text_of_literals(second, second_state) {
        let literal = observe(session, second, |session| session.query(&text));
        let facts = |outcome: &Outcome| (outcome.error.is_some(), outcome.rows.clone(), outcome.table.clone());
        if facts(&literal) != facts(&unshaped) {
            is_same = false;
            println!("literals: {text}\nunshaped: {unshaped_text}");
            tell("error", &literal.error, &unshaped.error);
            tell("rows", &literal.rows, &unshaped.rows);
            tell("table", &literal.table, &unshaped.table);
        }
    }
    for (name, outcome, text) in [("shaped", &shaped, &second_text), ("prepared", &prepared, &prepared_text)] {
        // If an INSERT could report one of several errors, the reported error depends on which values are
        // constant: literals are converted before other values are computed
        // (tests/differential/known-differences.md).
        let is_insert = second.is_change && (verb == "INSERT" || verb == "REPLACE");
        let is_other_error = is_insert && outcome.error.is_some() && unshaped.error.is_some();
        if *outcome != unshaped && !is_other_error {
            is_same = false;
            println!("first:    {first_text}\n{name}: {text}\nunshaped: {unshaped_text}");
            tell("error", &outcome.error, &unshaped.error);
            tell("columns", &outcome.columns, &unshaped.columns);
            tell("rows", &outcome.rows, &unshaped.rows);
            tell("affected", &outcome.affected_rows, &unshaped.affected_rows);
            tell("warnings", &outcome.warnings, &unshaped.warnings);
            tell("table", &outcome.table, &unshaped.table);
        }
    }
    is_same
}

fn tell<T: PartialEq + std::fmt::Debug>(what: &str, outcome: &T, unshaped: &T) {
    if outcome != unshaped {
        println!("  {what}: {outcome:?}\n  unshaped: {unshaped:?}");
    }
}

fn observe_nothing() -> Outcome {
    Outcome {
        error: None,
        columns: Vec::new(),
        rows: Vec::new(),
        affected_rows: 0,
        warnings: Vec::new(),
        table: Vec::new(),
    }
}

fn shown_error(error: &ClientError) -> String {
    assert!(error.errno() > 0, "the connection lasts: {error}");
    error.to_string().replace(HINT, "")
}

/// Executes a statement in a transaction and rolls the transaction back.
fn observe(
    session: &mut Session,
    statement: &Statement,
    execute: impl FnOnce(&mut Session) -> Result<Rows, ClientError>,
) -> Outcome {
    let mut outcome = observe_nothing();
    if statement.is_change {
        run(session, "BEGIN");
    }
    match execute(session) {
        Ok(rows) => {
            outcome.columns = rows.columns.iter().map(|column| format!("{column:?}")).collect();
            outcome.affected_rows = rows.affected_rows;
            let is_ordered = statement.is_ordered;
            outcome.rows = normal_rows(rows, is_ordered);
            if statement.shows_any_of_equal {
                outcome.rows.iter_mut().flatten().flatten().for_each(|cell| cell.make_ascii_lowercase());
                outcome.rows.sort();
            }
        }
        Err(error) => outcome.error = Some(shown_error(&error)),
    }
    outcome.warnings = normal_rows(run(session, "SHOW WARNINGS"), false);
    if outcome.error.is_some() {
        // Which rows are read before the failing one depends on the order in which partitions reply.
        outcome.warnings.retain(|warning| warning.first().is_some_and(|level| level.as_deref() == Some("Error")));
    }
    for cell in outcome.warnings.iter_mut().flatten().flatten() {
        *cell = cell.replace(HINT, "");
        if statement.reads_in_any_order {
            remove_row_number(cell);
        }
    }
    if statement.reads_in_any_order {
        outcome.error.iter_mut().for_each(remove_row_number);
        outcome.warnings.sort();
    }
    if statement.is_change {
        outcome.table = normal_rows(run(session, "SELECT * FROM t ORDER BY id"), true);
        run(session, "ROLLBACK");
    }
    outcome
}

fn remove_row_number(message: &mut String) {
    if let Some((text, number)) = message.rsplit_once(" at row ")
        && number.bytes().all(|byte| byte.is_ascii_digit())
    {
        *message = text.to_string();
    }
}

/// Formats doubles the same way for both protocols, and sorts rows without a defined order.
fn normal_rows(rows: Rows, is_ordered: bool) -> Vec<Vec<Option<String>>> {
    let mut normal = rows.rows;
    for row in &mut normal {
        for (cell, column) in row.iter_mut().zip(&rows.columns) {
            if let (Some(text), "Double") = (cell, format!("{:?}", column.column_type).as_str()) {
                *text = text.parse::<f64>().map_or_else(|_| text.clone(), |number| format!("{number:e}"));
            }
        }
    }
    if !is_ordered {
        normal.sort();
    }
    normal
}

/// Whether a literal is a parameter in the prepared form. A parameter beyond 63 bits is UNSIGNED whatever its
/// sign, which would change the result, so it stays a literal.
fn is_parameter(literal: &Literal) -> bool {
    literal.is_liftable && literal.text != "18446744073709551615"
}

/// The values of a statement, encoded for COM_STMT_EXECUTE of a text that was prepared from `prepared`.
fn parameters_of(statement: &Statement, prepared: &Statement) -> Vec<u8> {
    let literals = statement.pieces.iter().zip(&prepared.pieces).filter_map(|pieces| match pieces {
        (Piece::Literal(literal), Piece::Literal(prepared)) if is_parameter(prepared) => Some(literal),
        _ => None,
    });
    let (mut types, mut values) = (Vec::new(), Vec::new());
    let mut count = 0usize;
    for literal in literals {
        count += 1;
        match literal.class {
            Class::Integer => {
                let number: u64 = literal.text.parse().expect("an integer has 64 bits");
                let is_unsigned = number > i64::MAX as u64;
                types.extend_from_slice(&[8, if is_unsigned { 0x80 } else { 0 }]);
                values.extend_from_slice(&number.to_le_bytes());
            }
            Class::Double => {
                types.extend_from_slice(&[5, 0]);
                let number: f64 = literal.text.parse().expect("a double is one");
                values.extend_from_slice(&number.to_le_bytes());
            }
            Class::Decimal => {
                types.extend_from_slice(&[246, 0]);
                values.push(literal.text.len() as u8);
                values.extend_from_slice(literal.text.as_bytes());
            }
            Class::Text => {
                types.extend_from_slice(&[253, 0]);
                let inside = &literal.text[1..literal.text.len() - 1];
                let inside = inside.replace("''", "'").replace("\\\\", "\\");
                values.push(inside.len() as u8);
                values.extend_from_slice(inside.as_bytes());
            }
        }
    }
    if count == 0 {
        return Vec::new();
    }
    let mut bytes = vec![0; count.div_ceil(8)];
    bytes.push(1);
    bytes.extend(types);
    bytes.extend(values);
    bytes
}
