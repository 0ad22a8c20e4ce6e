//! For every type: a scan of an index equals a scan of the table, the orders of ORDER BY, of keys and of
//! comparisons are one, and the text and the binary protocol carry the same values.

use junctor::{MemoryStream, Node, Protocol};
use junctor_bench::mysql::{Connection, Rows};

type Session = Connection<MemoryStream>;

/// How far the values of a type have an order.
#[derive(Clone, Copy, PartialEq)]
enum Order {
    /// ORDER BY, comparisons and keys.
    Keys,
    /// ORDER BY and comparisons.
    Compared,
    /// ORDER BY and keys have the order of numbers, comparisons that of texts, as in MySQL.
    Members,
    /// Values are read only.
    None,
}

/// A type, the part of the column that its key has, its order, and values besides NULL.
type Typed = (&'static str, &'static str, Order, &'static [&'static str]);

const INTEGERS: &[&str] = &["0", "1", "2", "10", "99", "100", "127", "5", "1"];
const NEGATIVE: &[&str] = &["0", "1", "-1", "-128", "127", "-100", "99", "-2", "1"];
const MOMENTS: &[&str] = &[
    "'1970-01-02 00:00:01'",
    "'2024-02-29 12:34:56.789012'",
    "'2024-02-29 12:34:56.5'",
    "'2024-02-29 12:34:56'",
    "'2024-02-28'",
    "'2037-12-31 23:59:59.999999'",
    "'2024-02-29 12:34:56'",
];
const DAYS: &[&str] = &["'0001-01-01'", "'9999-12-31'", "'2024-02-29'", "'2024-03-01'", "'1969-12-31'", "'2024-02-29'"];
const TIMES: &[&str] = &[
    "'-838:59:59'",
    "'838:59:59'",
    "'00:00:00'",
    "'-00:00:00.5'",
    "'00:00:00.000001'",
    "'12:34:56.789012'",
    "'-12:34:56.789012'",
    "'12:34:56.789012'",
];
const TEXTS: &[&str] =
    &["''", "'a'", "'A'", "'á'", "'b'", "'ab'", "'a '", "'Zoë'", "'zz'", "'ß'", "'ss'", "'中'", "'0'"];
const BYTES: &[&str] =
    &["X''", "X'00'", "X'0000'", "X'FF'", "X'FF00'", "X'61'", "X'41'", "X'6100'", "X'275C'", "X'61'"];
const NUMBERS: &[&str] = &["0", "1.5", "-1.5", "0.25", "1e10", "-1e10", "1e-10", "-1e-10", "123.456", "1.5", "0.1"];
const EXACT: &[&str] = &["0", "1.5", "-1.5", "99999999.99", "-99999999.99", "0.01", "-0.01", "12.3", "1.50"];
const BITS: &[&str] = &["b'0'", "b'1'", "b'10'", "b'1111'", "b'1000001'", "b'1'"];
const DOCUMENTS: &[&str] = &[
    "'null'",
    "'true'",
    "'false'",
    "'1'",
    "'1.0'",
    "'-5'",
    "'2.5'",
    "'\"a\"'",
    "'\"B\"'",
    "'[]'",
    "'[1]'",
    "'[1, 2]'",
    "'{}'",
    "'{\"a\": 1}'",
    "'18446744073709551615'",
    "'1'",
];

const TYPES: &[Typed] = &[
    ("TINYINT", "v", Order::Keys, NEGATIVE),
    ("TINYINT UNSIGNED", "v", Order::Keys, INTEGERS),
    ("BOOL", "v", Order::Keys, NEGATIVE),
    ("SMALLINT", "v", Order::Keys, NEGATIVE),
    ("MEDIUMINT", "v DESC", Order::Keys, NEGATIVE),
    ("INT", "v", Order::Keys, NEGATIVE),
    ("INT(5) ZEROFILL", "v", Order::Keys, INTEGERS),
    ("BIGINT", "v", Order::Keys, &["0", "9223372036854775807", "-9223372036854775808", "1", "-1", "1"]),
    ("BIGINT UNSIGNED", "v", Order::Keys, &["0", "9223372036854775808", "18446744073709551615", "1", "1"]),
    ("FLOAT", "v", Order::Keys, NUMBERS),
    ("DOUBLE", "v", Order::Keys, NUMBERS),
    ("DOUBLE(20,4)", "v DESC", Order::Keys, NUMBERS),
    ("DECIMAL(10,2)", "v", Order::Keys, EXACT),
    ("DECIMAL(65,30)", "v", Order::Keys, EXACT),
    ("DECIMAL(40,0)", "v DESC", Order::Keys, EXACT),
    ("BIT(7)", "v", Order::Keys, BITS),
    ("BIT(64)", "v", Order::Keys, BITS),
    ("YEAR", "v", Order::Keys, &["0", "1901", "2155", "2024", "1999", "2024"]),
    ("DATE", "v", Order::Keys, DAYS),
    ("TIME", "v", Order::Keys, TIMES),
    ("TIME(6)", "v DESC", Order::Keys, TIMES),
    ("DATETIME", "v", Order::Keys, MOMENTS),
    ("DATETIME(3)", "v", Order::Keys, MOMENTS),
    ("DATETIME(6)", "v DESC", Order::Keys, MOMENTS),
    ("TIMESTAMP NULL", "v", Order::Keys, MOMENTS),
    ("TIMESTAMP(6) NULL", "v", Order::Keys, MOMENTS),
    ("CHAR(5)", "v", Order::Keys, TEXTS),
    ("CHAR(5) COLLATE utf8mb4_general_ci", "v", Order::Keys, TEXTS),
    ("VARCHAR(20)", "v", Order::Keys, TEXTS),
    ("VARCHAR(20) COLLATE utf8mb4_0900_as_cs", "v DESC", Order::Keys, TEXTS),
    ("VARCHAR(20) COLLATE utf8mb4_bin", "v", Order::Keys, TEXTS),
    ("VARCHAR(20) COLLATE utf8mb4_unicode_ci", "v", Order::Keys, TEXTS),
    ("VARCHAR(20)", "v(1)", Order::Keys, TEXTS),
    ("VARCHAR(20) CHARACTER SET latin1", "v", Order::Keys, &["''", "'a'", "'A'", "'Zoë'", "'ß'", "'a '", "'€'", "'b'"]),
    ("TINYTEXT", "v(2)", Order::Keys, TEXTS),
    ("TEXT", "v(10)", Order::Keys, TEXTS),
    ("MEDIUMTEXT", "v(1)", Order::Keys, TEXTS),
    ("LONGTEXT", "v(3)", Order::Keys, TEXTS),
    ("BINARY(4)", "v", Order::Keys, BYTES),
    ("VARBINARY(20)", "v", Order::Keys, BYTES),
    ("TINYBLOB", "v(1)", Order::Keys, BYTES),
    ("BLOB", "v(10)", Order::Keys, BYTES),
    ("MEDIUMBLOB", "v(2)", Order::Keys, BYTES),
    ("LONGBLOB", "v(3)", Order::Keys, BYTES),
    ("ENUM('small', 'x,y', 'a')", "v", Order::Members, &["'small'", "'x,y'", "'a'", "'a'"]),
    ("SET('c', 'b', 'a')", "v", Order::Members, &["''", "'c'", "'a'", "'c,a'", "'b,a'", "'c'"]),
    ("JSON", "", Order::Compared, DOCUMENTS),
    ("POINT", "", Order::None, &["ST_GeomFromText('POINT(1 2)')", "ST_GeomFromText('POINT(-1 0.5)')"]),
    ("GEOMETRY", "", Order::None, &["ST_GeomFromText('LINESTRING(0 0,1 1)')", "ST_GeomFromText('POINT(1 2)', 4326)"]),
    ("VECTOR(2)", "", Order::None, &["STRING_TO_VECTOR('[1,2.5]')", "STRING_TO_VECTOR('[-0.1,1e30]')"]),
];

fn run(session: &mut Session, text: &str) -> Rows {
    session.query(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// The first column.
fn column(session: &mut Session, text: &str) -> Vec<String> {
    run(session, text).rows.into_iter().map(|mut row| row.swap_remove(0).unwrap_or_default()).collect()
}

fn fill(session: &mut Session, &(sql_type, key, _, values): &Typed) {
    run(session, "DROP TABLE IF EXISTS t");
    let key = if key.is_empty() { String::new() } else { format!(", KEY k ({key})") };
    run(session, &format!("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v {sql_type}{key})"));
    let rows: Vec<String> = values.iter().chain([&"NULL", &"NULL"]).map(|value| format!("({value})")).collect();
    run(session, &format!("INSERT INTO t (v) VALUES {}", rows.join(", ")));
}

/// A number in one form, without the zeros of ZEROFILL and of fixed digits; other texts as they are.
fn plain(text: &str, sql_type: &str) -> String {
    let is_one_of = |names: &[&str]| names.iter().any(|name| sql_type.starts_with(name));
    match text.parse::<f64>() {
        // The text of a FLOAT has six digits.
        Ok(number) if is_one_of(&["FLOAT"]) => format!("{number:.5e}"),
        Ok(number) if is_one_of(&["DOUBLE"]) => format!("{number:e}"),
        Ok(_) if is_one_of(&["TINYINT", "BOOL", "SMALLINT", "MEDIUMINT", "INT", "BIGINT", "YEAR"]) => {
            text.parse::<i128>().expect("it is an integer").to_string()
        }
        _ => text.to_owned(),
    }
}

fn check_wire(session: &mut Session, sql_type: &str) {
    const TEXT: &str = "SELECT id, v FROM t ORDER BY id";
    let texts = run(session, TEXT);
    let statement = session.prepare(TEXT).expect("it is prepared");
    let binaries = session.execute_encoded(statement, &[]).expect("it is executed");
    session.close_statement(statement).expect("the connection is there");
    assert_eq!(texts.rows.len(), binaries.rows.len());
    for (text, binary) in texts.rows.iter().zip(&binaries.rows) {
        let shown = [text, binary].map(|row| row[1].as_deref().map(|text| plain(text, sql_type)));
        assert_eq!(shown[0], shown[1], "{sql_type}");
    }
    let described = |rows: &Rows| {
        let column = &rows.columns[1];
        (column.column_type, column.is_unsigned, column.length_bytes, column.decimals)
    };
    assert_eq!(described(&texts), described(&binaries), "{sql_type}");
}

fn check_scans(session: &mut Session, &(sql_type, key, _, values): &Typed) {
    for order in ["v, id", "v DESC, id DESC"] {
        let by_key = column(session, &format!("SELECT id FROM t FORCE INDEX (k) ORDER BY {order}"));
        let sorted = column(session, &format!("SELECT id FROM t IGNORE INDEX (k) ORDER BY {order}"));
        assert_eq!(by_key, sorted, "{sql_type} KEY ({key}) ORDER BY {order}");
    }
    for value in values {
        for condition in ["v = ?", "v < ?", "v >= ?", "v IN (?, NULL)", "v <=> ?", "v BETWEEN ? AND ?"] {
            let condition = condition.replace('?', value);
            let by_key = column(session, &format!("SELECT id FROM t FORCE INDEX (k) WHERE {condition} ORDER BY id"));
            let scanned = column(session, &format!("SELECT id FROM t IGNORE INDEX (k) WHERE {condition} ORDER BY id"));
            assert_eq!(by_key, scanned, "{sql_type} KEY ({key}) WHERE {condition}");
            // A DOUBLE finds its value again; a FLOAT, and a text cut by its column, need not.
            let is_exact = condition == format!("v = {value}") && ["DOUBLE", "BIGINT", "DATE"].contains(&sql_type);
            assert!(!is_exact || !by_key.is_empty(), "{sql_type} WHERE {condition}");
        }
    }
    for condition in ["v IS NULL", "v IS NOT NULL"] {
        let by_key = column(session, &format!("SELECT id FROM t FORCE INDEX (k) WHERE {condition} ORDER BY id"));
        let scanned = column(session, &format!("SELECT id FROM t IGNORE INDEX (k) WHERE {condition} ORDER BY id"));
        assert_eq!(by_key, scanned, "{sql_type} KEY ({key}) WHERE {condition}");
    }
}

/// Of two rows in the order of ORDER BY, the first is less or equal, and equal rows have the same neighbours.
fn check_comparisons(session: &mut Session, sql_type: &str) {
    let sorted = column(session, "SELECT id FROM t WHERE v IS NOT NULL ORDER BY v, id");
    let pairs = run(
        session,
        "SELECT a.id, b.id, a.v < b.v, a.v = b.v FROM t a JOIN t b WHERE a.v IS NOT NULL AND b.v IS NOT NULL",
    );
    assert_eq!(pairs.rows.len(), sorted.len() * sorted.len());
    let place =
        |id: &Option<String>| sorted.iter().position(|sorted| Some(sorted) == id.as_ref()).expect("it is sorted");
    for row in &pairs.rows {
        let (left, right) = (place(&row[0]), place(&row[1]));
        let (is_less, is_equal) = (row[2].as_deref() == Some("1"), row[3].as_deref() == Some("1"));
        let fits = match left.cmp(&right) {
            std::cmp::Ordering::Less => is_less != is_equal,
            std::cmp::Ordering::Equal => is_equal && !is_less,
            std::cmp::Ordering::Greater => !is_less,
        };
        assert!(fits, "{sql_type}: rows {:?} and {:?}, less {is_less}, equal {is_equal}", row[0], row[1]);
    }
}

#[test]
fn scans_orders_comparisons_and_protocols_agree_for_every_type() {
    let node = Node::builder().total_memory_bytes(64 << 20).cpu_count_max(2).start().expect("the node starts");
    let mut session =
        Connection::log_in_over(node.stream(Protocol::MySql).expect("there is room"), "").expect("root logs in");
    run(&mut session, "CREATE DATABASE typed");
    run(&mut session, "USE typed");
    run(&mut session, "SET NAMES utf8mb4");
    run(&mut session, "SET sql_mode = 'NO_ENGINE_SUBSTITUTION', time_zone = '+00:00'");
    for typed in TYPES {
        let (sql_type, _, order, _) = *typed;
        fill(&mut session, typed);
        check_wire(&mut session, sql_type);
        if matches!(order, Order::Keys | Order::Members) {
            check_scans(&mut session, typed);
        }
        if matches!(order, Order::Keys | Order::Compared) {
            check_comparisons(&mut session, sql_type);
        }
    }
    assert!(node.stop());
}

/// The scans above are different ones.
#[test]
fn a_forced_index_is_read() {
    let node = Node::builder().total_memory_bytes(64 << 20).cpu_count_max(2).start().expect("the node starts");
    let mut session =
        Connection::log_in_over(node.stream(Protocol::MySql).expect("there is room"), "").expect("root logs in");
    run(&mut session, "CREATE DATABASE typed");
    run(&mut session, "USE typed");
    let mut unexpected = Vec::new();
    for typed in TYPES.iter().filter(|(_, _, order, _)| *order == Order::Keys) {
        // Its literals are in the session's time zone, so that they are no bounds of a range of keys.
        if typed.0.starts_with("TIMESTAMP") {
            continue;
        }
        // The key of a prefix serves equality.
        let operator = if typed.1.contains('(') { "=" } else { ">=" };
        fill(&mut session, typed);
        for (hint, is_read) in [("FORCE", true), ("IGNORE", false)] {
            let text =
                format!("EXPLAIN SELECT id FROM t {hint} INDEX (k) WHERE v {operator} {} ORDER BY id", typed.3[1]);
            let plan = run(&mut session, &text);
            let key = plan.columns.iter().position(|column| column.name == "key").expect("the column is there");
            if (plan.rows[0][key].as_deref() == Some("k")) != is_read {
                unexpected.push(format!("{} {hint}", typed.0));
            }
        }
    }
    assert!(unexpected.is_empty(), "{unexpected:?}");
    assert!(node.stop());
}
