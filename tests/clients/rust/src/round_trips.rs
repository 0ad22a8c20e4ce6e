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
