use mysql_async::prelude::Queryable;
use mysql_async::{Conn, OptsBuilder, Params, Row, Value};
use sqlx::mysql::types::MySqlTime;
use sqlx::mysql::{MySqlArguments, MySqlConnectOptions, MySqlConnection, MySqlRow};
use sqlx::query::Query;
use sqlx::types::chrono::{DateTime, NaiveDate, NaiveDateTime, Utc};
use sqlx::types::{BigDecimal, JsonValue};
use sqlx::{AssertSqlSafe, Column, ConnectOptions, Connection, Executor, MySql, Row as _, TypeInfo, ValueRef};

const ROWS: usize = 4;

fn insert(columns: &[String]) -> String {
    format!("INSERT INTO copy ({}) VALUES ({})", columns.join(", "), vec!["?"; columns.len()].join(", "))
}

/// The number of rows whose column differs between the tables.
fn comparison(column: &str) -> String {
    format!(
        "SELECT COUNT(*) FROM original o LEFT JOIN copy c USING (id) \
         WHERE c.id IS NULL OR NOT HEX(o.{column}) <=> HEX(c.{column})"
    )
}

fn variant(value: &Value) -> &'static str {
    match value {
        Value::NULL => "NULL",
        Value::Bytes(_) => "Bytes",
        Value::Int(_) => "Int",
        Value::UInt(_) => "UInt",
        Value::Float(_) => "Float",
        Value::Double(_) => "Double",
        Value::Date(..) => "Date",
        Value::Time(..) => "Time",
    }
}

pub async fn mysql_async(port: u16) {
    for is_prepared in [true, false] {
        let way = if is_prepared { "prepared" } else { "text" };
        let options = OptsBuilder::default().ip_or_hostname("127.0.0.1").tcp_port(port);
        let options = options.user(Some("root")).db_name(Some("round_trips")).prefer_socket(false);
        let mut connection = Conn::new(options).await.expect("a login");
        connection.query_drop("SET time_zone = '+00:00'").await.expect("a zone");
        connection.query_drop("TRUNCATE TABLE copy").await.expect("an empty table");
        let rows: Vec<Row> = if is_prepared {
            connection.exec("SELECT * FROM original WHERE id > ? ORDER BY id", (0,)).await.expect("rows")
        } else {
            connection.query("SELECT * FROM original ORDER BY id").await.expect("rows")
        };
        assert_eq!(rows.len(), ROWS);
        let columns: Vec<String> = rows[0].columns_ref().iter().map(|column| column.name_str().into_owned()).collect();
        for (index, column) in rows[0].columns_ref().iter().enumerate() {
            println!("mysql_async {way}: {} {:?} {}", columns[index], column.column_type(), variant(&rows[0][index]));
        }
        for row in rows {
            connection.exec_drop(insert(&columns), Params::Positional(row.unwrap())).await.expect("an insert");
        }
        for column in &columns {
            let different: Option<u64> = connection.query_first(comparison(column)).await.expect("a comparison");
            assert_eq!(different, Some(0), "mysql_async {way} {column}");
        }
        connection.disconnect().await.expect("an end");
    }
}

/// A line of the table of column descriptions: the table, the column, and numbers of the protocol.
pub struct Described {
    table: String,
    column: String,
    /// Type, length, decimals, flags and collation.
    numbers: [u32; 5],
}

/// The column descriptions of MySQL 8.0.
pub fn descriptions(path: &str) -> Vec<Described> {
    let text = std::fs::read_to_string(path).expect("the table of column descriptions");
    let line = |line: &str| {
        let mut fields = line.split('\t');
        let mut next = || fields.next().expect("a line has seven fields").to_owned();
        let (table, column) = (next(), next());
        Described { table, column, numbers: std::array::from_fn(|_| next().parse().expect("a number")) }
    };
    text.lines().filter(|text| !text.starts_with('#')).map(line).collect()
}

pub async fn descriptions_of_mysql_async(port: u16, described: &[Described]) {
    let options = OptsBuilder::default().ip_or_hostname("127.0.0.1").tcp_port(port);
    let options = options.user(Some("root")).db_name(Some("round_trips")).prefer_socket(false);
    let mut connection = Conn::new(options).await.expect("a login");
    connection.query_drop("SET NAMES utf8mb4 COLLATE utf8mb4_0900_ai_ci").await.expect("a collation");
    for table in ["original", "described"] {
        let statement = connection.prep(format!("SELECT * FROM {table}")).await.expect("a statement");
        let wanted = described.iter().filter(|one| one.table == table);
        assert_eq!(statement.columns().len(), wanted.clone().count());
        for (column, wanted) in statement.columns().iter().zip(wanted) {
            let numbers = [
                column.column_type() as u32,
                column.column_length(),
                column.decimals().into(),
                column.flags().bits().into(),
                column.character_set().into(),
            ];
            assert_eq!((&*column.name_str(), numbers), (&*wanted.column, wanted.numbers), "mysql_async {table}");
        }
    }
    connection.disconnect().await.expect("an end");
}

/// sqlx shows the name of the type, which follows from the type, the length and the flags.
pub async fn descriptions_of_sqlx(port: u16, described: &[Described]) {
    let options = MySqlConnectOptions::new().host("127.0.0.1").port(port).username("root").database("round_trips");
    let mut connection = options.connect().await.expect("a login");
    for table in ["original", "described"] {
        let query = AssertSqlSafe(format!("SELECT * FROM {table} LIMIT 1"));
        let row = sqlx::query(query).fetch_one(&mut connection).await.expect("a row");
        let wanted = described.iter().filter(|one| one.table == table);
        assert_eq!(row.columns().len(), wanted.clone().count());
        for (column, wanted) in row.columns().iter().zip(wanted) {
            let [code, length, _, flags, _] = wanted.numbers;
            let expected = (wanted.column.as_str(), sqlx_type(code, length, flags));
            assert_eq!((column.name(), column.type_info().name()), expected, "sqlx {table}");
        }
    }
    connection.close().await.expect("an end");
}

/// The name that sqlx gives a type. It does not distinguish the sizes of TEXT and BLOB, nor SET from CHAR, and
/// takes the flag BINARY, which texts of a binary collation have too, for a type of bytes.
fn sqlx_type(code: u32, length: u32, flags: u32) -> &'static str {
    const UNSIGNED: u32 = 32;
    const BINARY: u32 = 128;
    const ENUM: u32 = 256;
    let (is_unsigned, is_binary) = (flags & UNSIGNED != 0, flags & BINARY != 0);
    match code {
        1 if length == 1 => "BOOLEAN",
        1 if is_unsigned => "TINYINT UNSIGNED",
        1 => "TINYINT",
        2 if is_unsigned => "SMALLINT UNSIGNED",
        2 => "SMALLINT",
        3 if is_unsigned => "INT UNSIGNED",
        3 => "INT",
        4 => "FLOAT",
        5 => "DOUBLE",
        7 => "TIMESTAMP",
        8 if is_unsigned => "BIGINT UNSIGNED",
        8 => "BIGINT",
        9 if is_unsigned => "MEDIUMINT UNSIGNED",
        9 => "MEDIUMINT",
        10 => "DATE",
        11 => "TIME",
        12 => "DATETIME",
        13 => "YEAR",
        16 => "BIT",
        245 => "JSON",
        246 => "DECIMAL",
        252 if is_binary => "BLOB",
        252 => "TEXT",
        253 if is_binary => "VARBINARY",
        253 => "VARCHAR",
        254 if is_binary => "BINARY",
        254 if flags & ENUM != 0 => "ENUM",
        254 => "CHAR",
        255 => "GEOMETRY",
        other => panic!("{other} is no type"),
    }
}

type Statement<'q> = Query<'q, MySql, MySqlArguments>;

/// Binds the value of a column as the Rust type that belongs to its SQL type, and says which type that is.
fn bind<'q>(query: Statement<'q>, row: &MySqlRow, index: usize) -> (Statement<'q>, &'static str) {
    macro_rules! as_type {
        ($($name:pat => $type:ty),+ $(,)?) => {
            match row.column(index).type_info().name() {
                $($name => (query.bind(row.get::<Option<$type>, _>(index)), stringify!($type)),)+
                other => panic!("{other} has no Rust type here"),
            }
        };
    }
    as_type! {
        "BOOLEAN" => bool,
        "TINYINT" => i8,
        "TINYINT UNSIGNED" => u8,
        "SMALLINT" => i16,
        "SMALLINT UNSIGNED" | "YEAR" => u16,
        "MEDIUMINT" | "INT" => i32,
        "MEDIUMINT UNSIGNED" | "INT UNSIGNED" => u32,
        "BIGINT" => i64,
        "BIGINT UNSIGNED" | "BIT" => u64,
        "DECIMAL" => BigDecimal,
        "FLOAT" => f32,
        "DOUBLE" => f64,
        "DATE" => NaiveDate,
        "TIME" => MySqlTime,
        "DATETIME" => NaiveDateTime,
        "TIMESTAMP" => DateTime<Utc>,
        "CHAR" | "VARCHAR" | "TINYTEXT" | "TEXT" | "MEDIUMTEXT" | "LONGTEXT" | "ENUM" | "SET" => String,
        "BINARY" | "VARBINARY" | "TINYBLOB" | "BLOB" | "MEDIUMBLOB" | "LONGBLOB" => Vec<u8>,
        "JSON" => JsonValue,
    }
}

async fn number(connection: &mut MySqlConnection, text: String) -> i64 {
    sqlx::query_scalar(AssertSqlSafe(text)).fetch_one(connection).await.expect("a number")
}

pub async fn sqlx(port: u16) {
    for is_prepared in [true, false] {
        let way = if is_prepared { "prepared" } else { "text" };
        let options = MySqlConnectOptions::new().host("127.0.0.1").port(port).username("root").database("round_trips");
        let mut connection = options.connect().await.expect("a login");
        connection.execute("TRUNCATE TABLE copy").await.expect("an empty table");
        let rows = if is_prepared {
            sqlx::query("SELECT * FROM original ORDER BY id").fetch_all(&mut connection).await.expect("rows")
        } else {
            connection.fetch_all("SELECT * FROM original ORDER BY id").await.expect("rows")
        };
        assert_eq!(rows.len(), ROWS);
        let columns: Vec<String> = rows[0].columns().iter().map(|column| column.name().to_owned()).collect();
        for (number, row) in rows.iter().enumerate() {
            let mut query = sqlx::query(AssertSqlSafe(insert(&columns)));
            for (index, column) in columns.iter().enumerate() {
                let rust_type;
                (query, rust_type) = bind(query, row, index);
                if number == 0 {
                    assert!(!row.try_get_raw(index).expect("a column").is_null());
                    println!("sqlx {way}: {column} {} {rust_type}", row.column(index).type_info().name());
                }
            }
            query.execute(&mut connection).await.expect("an insert");
        }
        for column in &columns {
            assert_eq!(number(&mut connection, comparison(column)).await, 0, "sqlx {way} {column}");
        }
        connection.close().await.expect("an end");
    }
}
