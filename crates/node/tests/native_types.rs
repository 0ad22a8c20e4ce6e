//! The Rust driver with all its features: a value of every type of SQL as a parameter, as a row of a
//! statement, and as a row read by key.

use std::fmt::Debug;
use std::str::FromStr;

use jiff::SignedDuration;
use jiff::civil::{Date, DateTime, Time};
use junctor_client::{Connection, Decimal, ErrorKind, FromValue, Options, Result, ToValue, Value, block_on, params};
use junctor_node::{NodeConfig, RunningServer, start};
use serde_json::json;

fn node() -> RunningServer {
    let folder = std::env::temp_dir().join(format!("junctor-native-types-{}", std::process::id()));
    let config = NodeConfig {
        data_directory: folder.to_string_lossy().into_owned(),
        port: 0,
        native_port: Some(0),
        cpu_binding: false,
        cpu_count_max: Some(2),
        total_memory_bytes: Some(64 << 20),
        max_connections: 64,
        ..NodeConfig::default()
    };
    start(&config).expect("the node starts")
}

async fn connect(node: &RunningServer) -> Result<Connection> {
    let address = node.native_address().expect("it listens");
    let connection = Connection::connect(address, &Options::new("root")).await?;
    connection.execute("CREATE DATABASE IF NOT EXISTS typed", params![]).await?;
    connection.execute("USE typed", params![]).await?;
    Ok(connection)
}

/// A table with one column of a type, whose rows are numbered.
struct Column<'c> {
    connection: &'c Connection,
    sql_type: &'c str,
}

impl<'c> Column<'c> {
    async fn new(connection: &'c Connection, sql_type: &'c str) -> Result<Column<'c>> {
        connection.execute("DROP TABLE IF EXISTS one", params![]).await?;
        let text = format!("CREATE TABLE one (id INT PRIMARY KEY, v {sql_type})");
        connection.execute(&text, params![]).await?;
        Ok(Column { connection, sql_type })
    }

    /// Stores each value, and NULL, and reads it by a statement and by its key.
    async fn carries<T>(&self, values: &[T]) -> Result<()>
    where
        T: ToValue + PartialEq + Debug,
        for<'a> T: FromValue<'a>,
    {
        let connection = self.connection;
        connection.execute("DELETE FROM one", params![]).await?;
        let reader = match connection.key_reader("one", &["v"]).await {
            // The value depends on the session's time zone, which a reader does not know.
            Err(error) if self.sql_type.starts_with("TIMESTAMP") && error.errno() == 1235 => None,
            reader => Some(reader?),
        };
        for (id, value) in values.iter().enumerate() {
            connection.execute("INSERT INTO one VALUES (?, ?)", params![id as i64, value]).await?;
            let rows = connection.query("SELECT v FROM one WHERE id = ?", params![id as i64]).await?;
            let read: T = rows.get(0).expect("it is there").get("v")?;
            assert_eq!(&read, value, "{}", self.sql_type);
            let Some(reader) = &reader else { continue };
            let found = reader.read_many(&[id as i64]).await?;
            let read: Option<T> = found.get(0).expect("it is there").get("v")?;
            assert_eq!(read.as_ref(), Some(value), "{} by key", self.sql_type);
        }
        connection.execute("INSERT INTO one VALUES (-1, ?)", params![None::<T>]).await?;
        let rows = connection.query("SELECT v FROM one WHERE id = -1", params![]).await?;
        assert_eq!(rows.get(0).expect("it is there").get::<Option<T>>("v")?, None, "{}", self.sql_type);
        Ok(())
    }

    /// The text of a value that SQL made, read as a type of Rust.
    async fn read<T>(&self, text: &str) -> Result<T>
    where
        for<'a> T: FromValue<'a>,
    {
        self.connection.execute("REPLACE INTO one VALUES (0, ?)", params![text]).await?;
        let rows = self.connection.query("SELECT v FROM one WHERE id = 0", params![]).await?;
        rows.get(0).expect("it is there").get("v")
    }
}

fn is_out_of_range<T: Debug>(result: Result<T>) -> bool {
    let error = result.expect_err("it is refused");
    error.kind() == ErrorKind::Value && error.message().contains("out of the range")
}

fn exact(text: &str) -> rust_decimal::Decimal {
    rust_decimal::Decimal::from_str(text).expect("it is a number")
}

async fn numbers(connection: &Connection) -> Result<()> {
    Column::new(connection, "TINYINT").await?.carries(&[i8::MIN, -1, 0, i8::MAX]).await?;
    Column::new(connection, "TINYINT UNSIGNED").await?.carries(&[0, u8::MAX]).await?;
    Column::new(connection, "BOOL").await?.carries(&[false, true]).await?;
    Column::new(connection, "SMALLINT").await?.carries(&[i16::MIN, i16::MAX]).await?;
    Column::new(connection, "SMALLINT UNSIGNED").await?.carries(&[0, u16::MAX]).await?;
    Column::new(connection, "MEDIUMINT").await?.carries(&[-8_388_608, 8_388_607]).await?;
    Column::new(connection, "MEDIUMINT UNSIGNED").await?.carries(&[0, 16_777_215]).await?;
    Column::new(connection, "INT").await?.carries(&[i32::MIN, i32::MAX]).await?;
    Column::new(connection, "INT UNSIGNED").await?.carries(&[0, u32::MAX]).await?;
    Column::new(connection, "INT(6) ZEROFILL").await?.carries(&[7u32]).await?;
    Column::new(connection, "BIGINT").await?.carries(&[i64::MIN, i64::MAX]).await?;
    Column::new(connection, "BIGINT UNSIGNED").await?.carries(&[0, u64::MAX]).await?;
    Column::new(connection, "FLOAT").await?.carries(&[f32::MIN, -0.1, 0.0, f32::MIN_POSITIVE, f32::MAX]).await?;
    let double = Column::new(connection, "DOUBLE").await?;
    double.carries(&[f64::MIN, -0.1, 0.0, f64::MIN_POSITIVE, f64::MAX]).await?;
    double.carries(&[1.5f32, -0.1]).await?;
    assert!(is_out_of_range(double.read::<f32>("0.1").await));
    Column::new(connection, "DOUBLE(10,3)").await?.carries(&[-9_999_999.999, 16.125]).await?;
    Column::new(connection, "BIT(1)").await?.carries(&[false, true]).await?;
    let bits = Column::new(connection, "BIT(64)").await?;
    bits.carries(&[0, 1, u64::MAX]).await?;
    assert_eq!(bits.read::<Vec<u8>>("A").await?, [0, 0, 0, 0, 0, 0, 0, 65]);
    Column::new(connection, "YEAR").await?.carries(&[0u16, 1901, 2155]).await?;

    let price = Column::new(connection, "DECIMAL(10,2)").await?;
    price.carries(&["-99999999.99", "0.00", "12.30"].map(exact)).await?;
    assert_eq!(price.read::<String>("12.3").await.expect_err("it is a number").kind(), ErrorKind::Value);
    let wide = Column::new(connection, "DECIMAL(65,30)").await?;
    let longest = format!("{}.{}", "9".repeat(35), "9".repeat(30));
    assert!(is_out_of_range(wide.read::<rust_decimal::Decimal>(&longest).await));
    assert_eq!(wide.read::<rust_decimal::Decimal>("-1.5").await?, exact("-1.5"));
    let value: Decimal = wide.read(&longest).await?;
    wide.carries(&[value]).await
}

async fn days_and_times(connection: &Connection) -> Result<()> {
    let date = Column::new(connection, "DATE").await?;
    date.carries(&[Date::constant(1, 1, 1), Date::constant(2024, 2, 29), Date::constant(9999, 12, 31)]).await?;
    assert_eq!(date.read::<String>("2024-2-9").await?, "2024-02-09");
    assert_eq!(date.read::<DateTime>("2024-02-09").await?, DateTime::constant(2024, 2, 9, 0, 0, 0, 0));
    let refused = connection.execute("INSERT INTO one VALUES (9, ?)", params![Date::constant(-1, 12, 31)]).await;
    assert!(is_out_of_range(refused));
    connection.execute("SET sql_mode = ''", params![]).await?;
    assert!(is_out_of_range(date.read::<Date>("0000-00-00").await));
    assert!(is_out_of_range(date.read::<Option<Date>>("2024-02-00").await));
    assert_eq!(date.read::<String>("0000-00-00").await?, "0000-00-00");
    connection.execute("SET sql_mode = DEFAULT", params![]).await?;

    let times = ["-838:59:59", "-00:00:01", "00:00:00", "838:59:59"];
    let seconds = [-3_020_399, -1, 0, 3_020_399].map(SignedDuration::from_secs);
    let time = Column::new(connection, "TIME").await?;
    time.carries(&seconds).await?;
    time.carries(&[Time::constant(0, 0, 0, 0), Time::constant(23, 59, 59, 0)]).await?;
    for (text, length) in times.into_iter().zip(seconds) {
        assert_eq!(
            (time.read::<String>(text).await?.as_str(), time.read::<SignedDuration>(text).await?),
            (text, length)
        );
    }
    assert!(is_out_of_range(time.read::<Time>("24:00:00").await));
    assert!(is_out_of_range(time.read::<Time>("-00:00:01").await));
    let long = connection.execute("INSERT INTO one VALUES (9, ?)", params![SignedDuration::from_hours(839)]).await;
    assert!(is_out_of_range(long));
    let time = Column::new(connection, "TIME(6)").await?;
    time.carries(&[SignedDuration::new(-3_020_398, -999_999_000), SignedDuration::new(0, 1_000)]).await?;
    time.carries(&[Time::constant(12, 34, 56, 789_012_000)]).await?;

    let moments = [DateTime::constant(1, 1, 1, 0, 0, 0, 0), DateTime::constant(9999, 12, 31, 23, 59, 59, 0)];
    Column::new(connection, "DATETIME").await?.carries(&moments).await?;
    let moments =
        [DateTime::constant(1, 1, 1, 0, 0, 0, 1_000), DateTime::constant(9999, 12, 31, 23, 59, 59, 999_999_000)];
    let fine = Column::new(connection, "DATETIME(6)").await?;
    fine.carries(&moments).await?;
    let nanoseconds = DateTime::constant(2024, 2, 29, 12, 34, 56, 789_012_500);
    connection.execute("REPLACE INTO one VALUES (0, ?)", params![nanoseconds]).await?;
    let rows = connection.query("SELECT v FROM one WHERE id = 0", params![]).await?;
    let rounded = DateTime::constant(2024, 2, 29, 12, 34, 56, 789_013_000);
    assert_eq!(rows.get(0).expect("it is there").get::<DateTime>("v")?, rounded);
    assert!(is_out_of_range(connection.query("SELECT ?", params![DateTime::constant(-1, 1, 1, 0, 0, 0, 0)]).await));
    connection.execute("SET time_zone = '+02:00'", params![]).await?;
    let moments = [DateTime::constant(1970, 1, 1, 2, 0, 1, 0), DateTime::constant(2038, 1, 19, 5, 14, 7, 0)];
    Column::new(connection, "TIMESTAMP").await?.carries(&moments).await?;
    connection.execute("SET time_zone = '+00:00'", params![]).await?;
    let moments =
        [DateTime::constant(1970, 1, 1, 0, 0, 1, 1_000), DateTime::constant(2024, 2, 29, 1, 2, 3, 456_789_000)];
    Column::new(connection, "TIMESTAMP(6)").await?.carries(&moments).await
}

async fn strings(connection: &Connection) -> Result<()> {
    let texts = ["", "Zoë 😀", "it's \"quoted\" \\ and\nnew"].map(String::from);
    for sql_type in ["CHAR(40)", "VARCHAR(40)", "TINYTEXT", "TEXT", "MEDIUMTEXT", "LONGTEXT"] {
        Column::new(connection, sql_type).await?.carries(&texts).await?;
    }
    Column::new(connection, "VARCHAR(20) CHARACTER SET latin1").await?.carries(&["Zoë €".to_owned()]).await?;
    Column::new(connection, "LONGTEXT").await?.carries(&["中".repeat(100_000)]).await?;
    Column::new(connection, "ENUM('small', 'größer', 'x,y')")
        .await?
        .carries(&["größer".to_owned(), "x,y".into()])
        .await?;
    Column::new(connection, "SET('a', 'b', 'c d')").await?.carries(&[String::new(), "a,c d".into()]).await?;
    let bytes = [vec![], vec![0, 255, 39, 92], (0..=255).collect()];
    for sql_type in ["VARBINARY(300)", "BLOB", "MEDIUMBLOB", "LONGBLOB"] {
        Column::new(connection, sql_type).await?.carries(&bytes).await?;
    }
    Column::new(connection, "TINYBLOB").await?.carries(&[vec![0u8; 255]]).await?;
    Column::new(connection, "BINARY(4)").await?.carries(&[vec![0u8, 1, 255, 0]]).await?;
    let point = Column::new(connection, "GEOMETRY").await?;
    connection.execute("INSERT INTO one VALUES (1, ST_GeomFromText('LINESTRING(0 0,1 2)', 4326))", params![]).await?;
    let rows = connection.query("SELECT v FROM one WHERE id = 1", params![]).await?;
    let line: Vec<u8> = rows.get(0).expect("it is there").get("v")?;
    point.carries(&[line]).await
}

async fn documents_and_vectors(connection: &Connection) -> Result<()> {
    let documents = [
        json!(null),
        json!({}),
        json!({"a": [1, 2.5, "x", null, true], "ü": {"b": "\u{1}"}}),
        json!([i64::MIN, u64::MAX, -0.1, 1e300]),
        json!("text"),
    ];
    let json = Column::new(connection, "JSON").await?;
    json.carries(&documents).await?;
    assert_eq!(json.read::<String>("[1,2]").await?, "[1, 2]");
    let rows = connection.query("SELECT 'x', 5", params![]).await?;
    let row = rows.get(0).expect("one row");
    for column in 0..2usize {
        assert_eq!(row.get::<serde_json::Value>(column).expect_err("it is none").kind(), ErrorKind::Value);
    }

    let vector = Column::new(connection, "VECTOR(3)").await?;
    vector.carries(&[vec![1.0f32, -0.1, f32::MAX], vec![0.0; 3]]).await?;
    let entries = connection.query("SELECT STRING_TO_VECTOR('[1,2.5]')", params![]).await?;
    assert_eq!(entries.get(0).expect("one row").get::<Vec<f32>>(0usize)?, [1.0, 2.5]);
    let refused = connection.execute("INSERT INTO one VALUES (9, ?)", params![vec![0.0, f32::NAN, 0.0]]).await;
    assert_eq!(refused.expect_err("it is no number").kind(), ErrorKind::Value);
    assert!(connection.query("SELECT ?", params![f32::INFINITY]).await.is_err());
    let rows = connection.query("SELECT 'abcde'", params![]).await?;
    assert_eq!(rows.get(0).expect("one row").get::<Vec<f32>>(0usize).expect_err("5 bytes").kind(), ErrorKind::Value);
    Ok(())
}

#[test]
fn the_driver_carries_every_type() {
    let node = node();
    block_on(async {
        let connection = connect(&node).await?;
        numbers(&connection).await?;
        days_and_times(&connection).await?;
        strings(&connection).await?;
        documents_and_vectors(&connection).await
    })
    .expect("all of it works");
    assert_eq!(node.stop(), Ok(()));
}

#[test]
fn typed_values_are_keys_and_conditions() {
    let node = node();
    block_on(async {
        let connection = connect(&node).await?;
        let create =
            "CREATE TABLE visit (day DATE, price DECIMAL(6,2), at TIME(6), n INT, PRIMARY KEY (day, price, at))";
        connection.execute(create, params![]).await?;
        let (day, price, at) = (Date::constant(2024, 2, 29), exact("1.50"), Time::constant(1, 2, 3, 4_000));
        let table = connection.table("visit");
        table.insert(&[("day", &day), ("price", &price), ("at", &at), ("n", &7)]).await?;
        let reader = connection.key_reader("visit", &["n"]).await?;
        let found = reader.read_many(&[(day, price, at), (day, exact("1.51"), at)]).await?;
        assert_eq!((found.get(0).map(|row| row.get("n")).transpose()?, found.get(1).is_some()), (Some(7), false));
        let same = junctor_client::column("day").equals(day).and(junctor_client::column("at").at_least(at));
        assert_eq!(table.update().set("n", json!(8)).filter(same).run().await?.affected_rows, 1);
        let rows =
            connection.query("SELECT n FROM visit WHERE price = ? AND day < ?", params![price, DateTime::MAX]).await?;
        assert_eq!(rows.get(0).map(|row| row.get("n")).transpose()?, Some(8));
        let mut batch = connection.batch();
        batch.add("SELECT day, price, at FROM visit", &[]).add("SELECT ?", &[&Date::constant(-1, 1, 1)]);
        let results = batch.run_all().await?;
        assert_eq!(
            results[0].as_ref().expect("it works").get(0).expect("one row").get::<Value>("day")?,
            day.to_value().into_owned()
        );
        assert!(is_out_of_range(results.into_iter().nth(1).expect("two results")));
        Ok::<_, junctor_client::Error>(())
    })
    .expect("all of it works");
    assert_eq!(node.stop(), Ok(()));
}
