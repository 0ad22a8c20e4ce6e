//! The Rust driver against a real node over TCP: the result of every operation, its failures, and that no
//! client can take the node down.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use futures_lite::future::{block_on as park_on, poll_once, zip};
use junctor_client::{
    Connection, Direction, ErrorKind, Isolation, Key, Options, Result, TransactionOptions, Value, block_on, column,
    count, maximum, not, params, sum,
};
use junctor_node::{NodeConfig, RunningServer, start};
use junctor_wire::reply::is_last;
use junctor_wire::request::Login;
use junctor_wire::{KEYS_MAX, Reply, Request, VERSION, next_frame};

fn node() -> RunningServer {
    let folder = std::env::temp_dir().join(format!("junctor-native-protocol-{}", std::process::id()));
    let config = NodeConfig {
        data_directory: folder.to_string_lossy().into_owned(),
        port: 0,
        native_port: Some(0),
        cpu_binding: false,
        cpu_count_max: Some(2),
        total_memory_bytes: Some(64 << 20),
        max_connections: 64,
        users: vec![("ann".into(), "secret".into())],
        ..NodeConfig::default()
    };
    start(&config).expect("the node starts")
}

fn address(node: &RunningServer) -> SocketAddr {
    node.native_address().expect("it listens")
}

async fn connect(node: &RunningServer) -> Connection {
    let options = Options::new("root");
    let connection = Connection::connect(address(node), &options).await.expect("root may log in");
    connection.execute("CREATE DATABASE IF NOT EXISTS shop", params![]).await.expect("the database is made");
    connection.execute("USE shop", params![]).await.expect("the database is there");
    connection
}

async fn with_items(node: &RunningServer) -> Connection {
    let connection = connect(node).await;
    let text = "CREATE TABLE item (id INT PRIMARY KEY, name VARCHAR(40), price BIGINT UNSIGNED, weight DOUBLE, \
                photo BLOB, UNIQUE KEY name (name))";
    connection.execute(text, params![]).await.expect("the table is made");
    let items = connection.table("item");
    for (id, name) in [(1, "cup"), (2, "pot"), (3, "pan"), (5, "jug")] {
        let price = id * 100;
        items.insert(&[("id", &id), ("name", &name), ("price", &price), ("weight", &0.5)]).await.expect("it is new");
    }
    connection
}

fn errno<T: std::fmt::Debug>(result: Result<T>) -> u16 {
    result.expect_err("it fails").errno()
}

#[test]
fn table_operations_equal_their_statements() {
    let node = node();
    block_on(async {
        let connection = with_items(&node).await;
        let items = connection.table("shop.item");
        let rows = items.select(&["*"]).filter(column("id").equals(2)).rows().await?;
        let row = rows.get(0).expect("it is there");
        assert_eq!(row.get::<i64>("id")?, 2);
        assert_eq!((row.get::<&str>("NAME")?, row.get::<u64>(2usize)?), ("pot", 200));
        assert_eq!(row.get::<f64>("weight")?, 0.5);
        assert_eq!(row.get::<Option<Vec<u8>>>("photo")?, None);
        assert_eq!(row.get::<String>("photo").expect_err("it is NULL").kind(), ErrorKind::Value);
        assert_eq!(row.get::<i64>("colour").expect_err("there is none").kind(), ErrorKind::Value);

        let dear = column("price").at_least(200).and(not(column("name").like("j%")));
        let names = items.select(&["name"]).filter(dear).order_by("id", Direction::Descending).rows().await?;
        assert_eq!(names.iter().map(|row| row.get(0usize)).collect::<Result<Vec<&str>>>()?, ["pan", "pot"]);
        let some = items.select(&["id"]).order_by("id", Direction::Ascending).limit(2).offset(1).rows().await?;
        assert_eq!(some.iter().map(|row| row.get(0usize)).collect::<Result<Vec<i64>>>()?, [2, 3]);
        let ends = column("id").is_one_of(&[1, 5]).or(column("photo").is_not_null());
        assert_eq!(items.select(&[]).filter(ends).count().await?, 2);
        assert_eq!(items.select(&[]).filter(column("id").is_one_of::<i64>(&[])).count().await?, 0);
        let all = items.select(&[]).aggregate(&[count().named("n"), sum("price"), maximum("name")]).await?;
        let all = all.get(0).expect("one row");
        assert_eq!((all.get::<u64>("n")?, all.get::<i64>(1usize)?, all.get::<&str>(2usize)?), (4, 1100, "pot"));

        assert_eq!(items.upsert(&[("id", &1), ("name", &"mug")]).await?.affected_rows, 2);
        let changed = items.update().set("weight", 2.5).add("price", 1).filter(column("id").between(1, 3));
        assert_eq!(changed.run().await?.affected_rows, 3);
        assert_eq!(items.select(&["price"]).filter(column("name").equals("mug")).value::<u64>().await?, Some(101));
        assert_eq!(items.delete().filter(column("id").less_than(3)).run().await?.affected_rows, 2);
        assert_eq!(items.select(&["id"]).filter(column("id").equals(1)).value::<i64>().await?, None);
        let numbers: Vec<i64> = (100..300).collect();
        let rows: Vec<[&dyn junctor_client::ToValue; 1]> =
            numbers.iter().map(|id| [id as &dyn junctor_client::ToValue]).collect();
        let rows: Vec<&[&dyn junctor_client::ToValue]> = rows.iter().map(|row| row.as_slice()).collect();
        assert_eq!(items.insert_many(&["id"], &rows).await?.affected_rows, 200);
        assert_eq!(items.select(&[]).count().await?, 202);
        Ok::<_, junctor_client::Error>(())
    })
    .expect("all of it works");
    assert_eq!(node.stop(), Ok(()));
}

#[test]
fn a_reader_of_keys_sees_no_expired_row() {
    let node = node();
    block_on(async {
        let connection = with_items(&node).await;
        let create = "CREATE TABLE shop.visit (id INT PRIMARY KEY, name VARCHAR(9), at DATETIME) \
                      COMMENT 'NDB_TABLE=TTL=60@at'";
        connection.execute("SET GLOBAL ttl_purge_interval = 0", params![]).await?;
        connection.execute(create, params![]).await?;
        let rows = "(1, 'a', '2001-01-01'), (2, 'b', '2037-01-01'), (3, 'c', NULL), (4, 'd', '2001-01-01')";
        connection.execute(&format!("INSERT INTO shop.visit VALUES {rows}"), params![]).await?;
        let reader = connection.key_reader("shop.visit", &["name"]).await?;
        let found = reader.read_many(&[1, 2, 3, 4, 5]).await?;
        let names: Vec<Option<&str>> =
            found.iter().map(|row| row.map(|row| row.get(0usize)).transpose()).collect::<Result<_>>()?;
        assert_eq!(names, [None, Some("b"), Some("c"), None, None]);
        for (key, is_there) in [(1, false), (2, true), (4, false), (5, false)] {
            assert_eq!(reader.read_many(&[key]).await?.get(0).is_some(), is_there, "{key}");
        }
        connection.execute("ALTER TABLE shop.visit COMMENT 'NDB_TABLE=TTL=OFF'", params![]).await?;
        assert_eq!(reader.read_many(&[1, 4, 5]).await?.iter().filter(|row| row.is_some()).count(), 2);
        Ok::<_, junctor_client::Error>(())
    })
    .expect("all of it works");
    assert_eq!(node.stop(), Ok(()));
}

#[test]
fn each_key_gets_its_row_or_nothing_in_order() {
    let node = node();
    block_on(async {
        let connection = with_items(&node).await;
        let reader = connection.key_reader("item", &["name", "id"]).await?;
        assert_eq!((reader.columns().len(), reader.key_columns()), (2, 1));
        let keys = [5, 4, 1, 1, i64::MAX, 2, -1];
        let found = reader.read_many(&keys).await?;
        let names: Vec<Option<&str>> =
            found.iter().map(|row| row.map(|row| row.get(0usize)).transpose()).collect::<Result<_>>()?;
        assert_eq!(names, [Some("jug"), None, Some("cup"), Some("cup"), None, Some("pot"), None]);
        assert_eq!(found.get(0).expect("it is there").get::<i64>("id")?, 5);
        assert!(found.get(7).is_none());
        assert!(found.get(1 << 62).is_none(), "a position beyond all memory");
        assert!(reader.read_many::<i64>(&[]).await?.is_empty());
        assert!(reader.read_many(&[6]).await?.get(0).is_none());
        // Keys need not be integers of eight bytes.
        let values = [Value::Int(3), Value::Bytes(b"2".to_vec()), Value::Null, Value::Double(2.5)];
        let found = reader.read_many(&values).await?;
        assert_eq!(found.iter().map(|row| row.is_some()).collect::<Vec<_>>(), [true, true, false, false]);
        // Too long for the node, and then for a request.
        for length in [65, 65_536] {
            let name = "n".repeat(length);
            assert_eq!(errno(connection.key_reader(&name, &["id"]).await), 1059);
            assert_eq!(errno(connection.key_reader("item", &["id", &name]).await), 1059);
        }
        Ok::<_, junctor_client::Error>(())
    })
    .expect("all of it works");
    assert_eq!(node.stop(), Ok(()));
}

#[test]
fn keys_of_every_kind_are_read() {
    let node = node();
    block_on(async {
        let connection = connect(&node).await;
        connection
            .execute("CREATE TABLE part (code VARCHAR(20), side TINYINT UNSIGNED, note MEDIUMTEXT, PRIMARY KEY (code, side))", params![])
            .await?;
        let parts = connection.table("part");
        let long = "x".repeat(100_000);
        parts.insert(&[("code", &"Äpfel"), ("side", &1), ("note", &long)]).await?;
        parts.insert(&[("code", &"b"), ("side", &255), ("note", &None::<i64>)]).await?;
        let reader = connection.key_reader("shop.part", &["note"]).await?;
        assert_eq!(reader.key_columns(), 2);
        async fn found<K: Key>(reader: &junctor_client::KeyReader, keys: &[K]) -> Result<Vec<Option<usize>>> {
            let found = reader.read_many(keys).await?;
            let lengths = found.iter().map(|row| {
                row.map(|row| row.get::<Option<&str>>(0usize).map(|note| note.map_or(0, str::len))).transpose()
            });
            lengths.collect()
        }
        let keys = [("b", 255u16), ("Äpfel", 1), ("Äpfel", 2), ("b", 256)];
        assert_eq!(found(&reader, &keys).await?, [Some(0), Some(100_000), None, None]);
        // Many long rows arrive in several replies of the data plane.
        let many = vec![("Äpfel", 1u8); 20];
        assert_eq!(found(&reader, &many).await?, vec![Some(100_000); 20]);
        assert_eq!(errno(found(&reader, &vec![("Äpfel", 1u8); 200]).await), 1153);
        assert_eq!(errno(found(&reader, &["b"]).await), 2036);
        let values = [vec![Value::Bytes(b"b".to_vec())], vec![Value::Int(255), Value::Int(1), Value::Int(2)]];
        assert_eq!(errno(found(&reader, &values).await), 2036);
        assert_eq!(errno(found(&reader, &[1i64]).await), 1835);
        assert_eq!(errno(found(&reader, &vec![1i64; KEYS_MAX + 1]).await), 1153);
        // A number is no string, not even the empty one.
        parts.insert(&[("code", &""), ("side", &1), ("note", &"")]).await?;
        assert_eq!(errno(found(&reader, &[(5, 1u8)]).await), 1366);
        assert_eq!(errno(found(&reader, &[("b", f64::NAN)]).await), 2036);
        assert_eq!(errno(connection.key_reader("part", &[]).await), 2036);
        assert_eq!(errno(connection.key_reader("part", &["note"; 1025]).await), 2036);
        assert_eq!(errno(connection.key_reader(&"x".repeat(70_000), &["note"]).await), 1059);
        assert_eq!(errno(connection.key_reader("part", &["size"]).await), 1054);
        assert_eq!(errno(connection.key_reader("parts", &["note"]).await), 1146);
        assert_eq!(errno(connection.key_reader("information_schema.tables", &["table_name"]).await), 1235);
        Ok::<_, junctor_client::Error>(())
    })
    .expect("all of it works");
    assert_eq!(node.stop(), Ok(()));
}

#[test]
fn a_reader_sees_the_transaction_s_own_writes_and_its_snapshot() {
    let node = node();
    block_on(async {
        let mut connection = with_items(&node).await;
        let other = connect(&node).await;
        let reader = connection.key_reader("item", &["price"]).await?;
        let price = async |id: i64| -> Result<Option<i64>> {
            let found = reader.read_many(&[id]).await?;
            found.get(0).map(|row| row.get(0usize)).transpose()
        };
        let transaction = connection.begin().await?;
        assert_eq!(price(1).await?, Some(100));
        other.execute("UPDATE item SET price = 7 WHERE id = 1", params![]).await?;
        other.execute("UPDATE item SET price = 8 WHERE id = 2", params![]).await?;
        assert_eq!((price(1).await?, price(2).await?), (Some(100), Some(200)));
        transaction.execute("UPDATE item SET price = price + 1 WHERE id = ?", params![2]).await?;
        transaction.table("item").insert(&[("id", &9), ("price", &900)]).await?;
        assert_eq!((price(2).await?, price(9).await?), (Some(9), Some(900)));
        let elsewhere = other.key_reader("item", &["price"]).await?;
        assert!(elsewhere.read_many(&[9]).await?.get(0).is_none());
        transaction.rollback().await?;
        assert_eq!((price(1).await?, price(2).await?, price(9).await?), (Some(7), Some(8), None));
        let options = TransactionOptions::new().isolation(Isolation::Serializable);
        let transaction = connection.begin_with(options).await?;
        assert_eq!(errno(reader.read_many(&[1]).await), 1235);
        transaction.commit().await?;
        assert_eq!(price(1).await?, Some(7));
        Ok::<_, junctor_client::Error>(())
    })
    .expect("all of it works");
    assert_eq!(node.stop(), Ok(()));
}

#[test]
fn a_reader_follows_changes_of_the_schema() {
    let node = node();
    block_on(async {
        let connection = with_items(&node).await;
        let other = connect(&node).await;
        let reader = connection.key_reader("item", &["name", "weight"]).await?;
        other.execute("CREATE INDEX price ON item (price)", params![]).await?;
        assert!(reader.read_many(&[1]).await?.get(0).is_some());
        other.execute("DROP TABLE item", params![]).await?;
        other.execute("CREATE TABLE item (id INT PRIMARY KEY, name VARCHAR(40))", params![]).await?;
        assert_eq!(errno(reader.read_many(&[1]).await), 1054);
        other.execute("DROP TABLE item", params![]).await?;
        other.execute("CREATE TABLE item (id INT PRIMARY KEY, name VARCHAR(40), weight INT)", params![]).await?;
        assert_eq!(errno(reader.read_many(&[1]).await), 1615);
        connection.execute("INSERT INTO item VALUES (1, 'cup', 2)", params![]).await?;
        let reader = connection.key_reader("item", &["weight"]).await?;
        assert!(reader.read_many(&[1]).await?.get(0).is_some());
        other.execute("DROP TABLE item", params![]).await?;
        assert_eq!(errno(reader.read_many(&[1]).await), 1146);
        // The same columns, but another key.
        other.execute("CREATE TABLE item (number INT PRIMARY KEY, weight INT)", params![]).await?;
        assert_eq!(errno(reader.read_many(&[1]).await), 1615);
        Ok::<_, junctor_client::Error>(())
    })
    .expect("all of it works");
    assert_eq!(node.stop(), Ok(()));
}

#[test]
fn transactions_are_all_or_nothing() {
    let node = node();
    block_on(async {
        let mut connection = with_items(&node).await;
        let transaction = connection.begin().await?;
        assert!(transaction.is_in_transaction());
        transaction.execute("DELETE FROM item WHERE id = 1", params![]).await?;
        transaction.savepoint("so `far`").await?;
        transaction.execute("DELETE FROM item", params![]).await?;
        transaction.rollback_to("so `far`").await?;
        assert_eq!(errno(transaction.rollback_to("so far").await), 1305);
        transaction.commit().await?;
        assert!(!connection.is_in_transaction());
        assert_eq!(connection.table("item").select(&[]).count().await?, 3);

        let transaction = connection.begin().await?;
        transaction.execute("DELETE FROM item", params![]).await?;
        drop(transaction);
        assert_eq!(connection.table("item").select(&[]).count().await?, 3);

        let transaction =
            connection.begin_with(TransactionOptions::new().read_only().with_consistent_snapshot()).await?;
        assert_eq!(errno(transaction.execute("DELETE FROM item", params![]).await), 1792);
        transaction.commit().await?;

        let mut batch = connection.batch();
        batch.add("INSERT INTO item (id) VALUES (?)", params![20]);
        batch.add("INSERT INTO item (id) VALUES (?)", params![20]);
        batch.add("INSERT INTO item (id, colour) VALUES (?, 1)", params![21]);
        batch.add("INSERT INTO item (id) VALUES (?)", params![22]);
        let results = batch.run_all().await?;
        let errors: Vec<u16> =
            results.iter().map(|result| result.as_ref().map_or_else(|error| error.errno(), |_| 0)).collect();
        assert_eq!(errors, [0, 1062, 1054, 0]);
        Ok::<_, junctor_client::Error>(())
    })
    .expect("all of it works");
    assert_eq!(node.stop(), Ok(()));
}

#[test]
fn a_deadlock_is_tried_again() {
    let node = node();
    block_on(async {
        let mut left = with_items(&node).await;
        let mut right = connect(&node).await;
        let deadlocks = std::cell::Cell::new(0);
        async fn add_both(connection: &mut Connection, ids: [i64; 2], deadlocks: &std::cell::Cell<u32>) -> Result<()> {
            for _ in 0..30 {
                connection
                    .transact(async |transaction| {
                        for id in ids {
                            let items = transaction.table("item");
                            let added = items.update().add("price", 1).filter(column("id").equals(id)).run().await;
                            if let Err(error) = added {
                                assert!(error.is_retryable(), "{error}");
                                deadlocks.set(deadlocks.get() + 1);
                                return Err(error);
                            }
                        }
                        Ok(())
                    })
                    .await?;
            }
            Ok(())
        }
        let (one, two) = zip(add_both(&mut left, [1, 2], &deadlocks), add_both(&mut right, [2, 1], &deadlocks)).await;
        one.and(two)?;
        assert_eq!(
            left.table("item").select(&["price"]).filter(column("id").equals(1)).value::<i64>().await?,
            Some(160)
        );
        assert_eq!(
            left.table("item").select(&["price"]).filter(column("id").equals(2)).value::<i64>().await?,
            Some(260)
        );
        Ok::<_, junctor_client::Error>(())
    })
    .expect("all of it works");
    assert_eq!(node.stop(), Ok(()));
}

#[test]
fn each_pipelined_request_gets_its_answer() {
    let node = node();
    block_on(async {
        let connection = with_items(&node).await;
        let reader = connection.key_reader("item", &["id"]).await?;
        let one = async {
            let mut sum = 0;
            for id in 0..50i64 {
                sum += connection
                    .query("SELECT ?", params![id])
                    .await?
                    .get(0)
                    .map_or(Ok(0), |row| row.get::<i64>(0usize))?;
            }
            Ok::<_, junctor_client::Error>(sum)
        };
        let two = async {
            let mut found = 0;
            for id in 0..50i64 {
                found += reader.read_many(&[id, id + 1]).await?.iter().flatten().count();
            }
            Ok::<_, junctor_client::Error>(found)
        };
        let (one, two) = zip(one, two).await;
        assert_eq!((one?, two?), (1225, 8));

        // Requests that arrive in pieces, between other requests.
        for bytes in [9_000, 20_000, 70_000] {
            let text = "x".repeat(bytes);
            let mut batch = connection.batch();
            (0..60).for_each(|cut| _ = batch.add("SELECT LENGTH(?)", params![&text[cut * 100..]]));
            for (cut, rows) in batch.run_all().await?.iter().enumerate() {
                let length = rows.as_ref().expect("it is right").get(0).expect("one row").get::<u64>(0usize)?;
                assert_eq!(length, (bytes - cut * 100) as u64);
            }
        }

        let mut batch = connection.batch();
        (0..3000i64).for_each(|number| _ = batch.add("SELECT ?", params![number]));
        let results = batch.run_all().await?;
        for (number, rows) in results.iter().enumerate() {
            let rows = rows.as_ref().expect("it is right");
            assert_eq!(rows.get(0).expect("one row").get::<u64>(0usize)?, number as u64);
        }
        Ok::<_, junctor_client::Error>(())
    })
    .expect("all of it works");
    assert_eq!(node.stop(), Ok(()));
}

#[test]
fn a_statement_whose_pipelined_preparation_failed_is_prepared_again() {
    let node = node();
    block_on(async {
        let connection = connect(&node).await;
        let text = "SELECT id FROM later WHERE id = ?";
        let dropped = poll_once(connection.query(text, params![1])).await;
        assert!(dropped.is_none_or(|result| result.is_err()));
        connection.execute("CREATE TABLE later (id INT PRIMARY KEY)", params![]).await?;
        assert!(connection.query(text, params![1]).await?.is_empty());
        // A batch prepares it again, too.
        let text = "SELECT id FROM even_later WHERE id = ?";
        let dropped = poll_once(connection.query(text, params![1])).await;
        assert!(dropped.is_none_or(|result| result.is_err()));
        connection.execute("CREATE TABLE even_later (id INT PRIMARY KEY)", params![]).await?;
        let mut batch = connection.batch();
        batch.add("SELECT id FROM later WHERE id = ?", params![1]).add(text, params![1]).add(text, params![2]);
        assert!(batch.run_all().await?.into_iter().all(|result| result.is_ok_and(|rows| rows.is_empty())));
        // Closing a statement is no statement: it changes no ROW_COUNT().
        let insert = connection.prepare("INSERT INTO later VALUES (1), (2), (3)").await?;
        insert.execute(params![]).await?;
        drop(insert);
        let rows = connection.query("SELECT ROW_COUNT()", params![]).await?;
        assert_eq!(rows.get(0).expect("one row").get::<i64>(0usize)?, 3);
        let later = connection.table("later").select(&["id"]).order_by("id", Direction::Ascending).limit(1).offset(1);
        assert_eq!(later.count().await?, 3);
        assert_eq!(errno(connection.query("SELECT ?", params![f64::INFINITY]).await), 2036);
        // More statements than the server keeps.
        for number in 0..100i64 {
            let rows = connection.query(&format!("SELECT ? + {number}"), params![1]).await?;
            assert_eq!(rows.get(0).expect("one row").get::<i64>(0usize)?, number + 1);
        }
        Ok::<_, junctor_client::Error>(())
    })
    .expect("all of it works");
    assert_eq!(node.stop(), Ok(()));
}

#[test]
fn sessions_share_only_identical_prepared_statements() {
    const SESSIONS: usize = 8;
    let node = node();
    block_on(async {
        let first = with_items(&node).await;
        first.execute("CREATE DATABASE other", params![]).await?;
        first.execute("CREATE TABLE other.item (id INT PRIMARY KEY, name VARCHAR(40))", params![]).await?;
        first.execute("INSERT INTO other.item VALUES (9, 'pot')", params![]).await?;
        let plans = "SELECT CAST(SUM(value) AS SIGNED) FROM junctor_info.counters WHERE name = 'plans'";
        let one = async |connection: &Connection, text: &str| {
            let rows = connection.query(text, params![]).await?;
            rows.get(0).expect("one row").get::<i64>(0usize)
        };
        let mut sessions = Vec::new();
        for _ in 0..SESSIONS {
            sessions.push(connect(&node).await);
        }
        one(&first, plans).await?;
        let earlier = one(&first, plans).await?;
        let before = one(&first, plans).await?;
        let of_asking = before - earlier;
        let by_name = "SELECT id FROM item WHERE name = ?";
        let mut statements = Vec::new();
        for session in &sessions {
            let statement = session.prepare(by_name).await?;
            let rows = statement.query(params!["pot"]).await?;
            assert_eq!(rows.get(0).expect("one row").get::<i64>(0usize)?, 2);
            statements.push(statement);
        }
        // Each of the two blocks with sessions plans the text once.
        let planned = one(&first, plans).await? - before - of_asking;
        assert!((1..=2).contains(&planned), "planned {planned} times");
        // Another type of value, another database or another setting in one session does not affect the
        // others.
        assert!(statements[0].query(params![7]).await?.is_empty());
        sessions[1].execute("USE other", params![]).await?;
        let rows = sessions[1].query(by_name, params!["pot"]).await?;
        assert_eq!(rows.get(0).expect("one row").get::<i64>(0usize)?, 9);
        sessions[2].execute("SET sql_select_limit = 1", params![]).await?;
        for (session, rows) in [(2usize, 1), (3, 3), (2, 1)] {
            assert_eq!(sessions[session].query("SELECT id FROM item WHERE id > ?", params![1]).await?.len(), rows);
        }
        for statement in &statements {
            let rows = statement.query(params!["pan"]).await?;
            assert_eq!(rows.get(0).expect("one row").get::<i64>(0usize)?, 3);
        }
        // The shared plan was for the tables as they were.
        first.execute("DROP TABLE item", params![]).await?;
        for statement in &statements {
            assert_eq!(errno(statement.query(params!["pan"]).await), 1146);
        }
        first.execute("CREATE TABLE item (name VARCHAR(40) PRIMARY KEY, id BIGINT)", params![]).await?;
        first.execute("INSERT INTO item VALUES ('pan', 77)", params![]).await?;
        for statement in &statements {
            let rows = statement.query(params!["pan"]).await?;
            assert_eq!(rows.get(0).expect("one row").get::<i64>(0usize)?, 77);
        }
        // A statement that one session closes stays prepared in the others.
        drop(statements.remove(0));
        assert_eq!(statements[0].query(params!["pan"]).await?.len(), 1);
        Ok::<_, junctor_client::Error>(())
    })
    .expect("all of it works");
    assert_eq!(node.stop(), Ok(()));
}

#[test]
fn a_future_that_is_dropped_loses_only_its_own_answer() {
    let node = node();
    block_on(async {
        let connection = with_items(&node).await;
        let reader = connection.key_reader("item", &["id"]).await?;
        for _ in 0..20 {
            // The poll sends the request. The answer is skipped, because the future is dropped.
            let _ = poll_once(connection.query("SELECT SUM(price) FROM item", params![])).await;
            let _ = poll_once(reader.read_many(&[1, 2])).await;
            let dropped = poll_once(connection.prepare("SELECT 1")).await;
            drop(dropped);
            let rows = connection.query("SELECT 'kept'", params![]).await?;
            assert_eq!(rows.get(0).expect("one row").get::<&str>(0usize)?, "kept");
        }
        // The first of two waiting requests also sends and receives for the second. Drop it before its answer
        // arrives.
        let first = Box::pin(connection.query("SELECT GET_LOCK('nobody', 0)", params![]));
        let second = connection.query("SELECT 2", params![]);
        let racing = zip(async { _ = poll_once(first).await }, second);
        assert_eq!(racing.await.1?.len(), 1);
        Ok::<_, junctor_client::Error>(())
    })
    .expect("all of it works");
    assert_eq!(node.stop(), Ok(()));
}

#[test]
fn any_executor_works() {
    let node = node();
    park_on(async {
        let connection = connect(&node).await;
        assert_eq!(connection.query("SELECT 1", params![]).await.expect("it is right").len(), 1);
    });
    assert_eq!(node.stop(), Ok(()));
}

#[test]
fn a_refused_login_has_a_reason() {
    let node = node();
    block_on(async {
        let connect = async |options: Options| Connection::connect(address(&node), &options).await;
        let wrong = connect(Options::new("ann").password("guess")).await.expect_err("it is wrong");
        assert_eq!((wrong.errno(), wrong.sqlstate(), wrong.kind()), (1045, "28000", ErrorKind::Server));
        assert_eq!(errno(connect(Options::new("ann")).await), 1045);
        assert_eq!(errno(connect(Options::new("nobody")).await), 1045);
        assert_eq!(errno(connect(Options::new("root").database("nowhere")).await), 1049);
        let ann = connect(Options::new("ann").password("secret")).await.expect("it is right");
        let rows = ann.query("SELECT USER(), CONNECTION_ID()", params![]).await.expect("it is right");
        let row = rows.get(0).expect("one row");
        assert_eq!(row.get::<&str>(0usize).expect("text"), "ann@localhost");
        assert_eq!(row.get::<u32>(1usize).expect("a number"), ann.id());
        let mut crowd = vec![ann];
        let refused = loop {
            match connect(Options::new("root")).await {
                Ok(connection) => crowd.push(connection),
                Err(error) => break error,
            }
        };
        assert!(crowd.len() <= 64);
        assert_eq!(refused.errno(), 1040);
    });
    assert_eq!(node.stop(), Ok(()));
}

#[test]
fn a_closed_connection_reports_the_reason() {
    let node = node();
    block_on(async {
        let connection = connect(&node).await;
        let killed = Connection::connect(address(&node), &Options::new("root")).await.expect("root may log in");
        connection.execute(&format!("KILL {}", killed.id()), params![]).await.expect("it is there");
        let error = killed.ping().await.expect_err("it is gone");
        assert!(matches!(error.kind(), ErrorKind::Connection | ErrorKind::Server), "{error}");
        assert_eq!(connection.ping().await.map_err(|error| error.errno()), Ok(()));
        let (waiting, stopped) = zip(connection.query("SELECT GET_LOCK('own', 0)", params![]), async {
            killed.ping().await.expect_err("it stays gone").kind()
        })
        .await;
        assert!(waiting.is_ok());
        assert!(matches!(stopped, ErrorKind::Connection | ErrorKind::Server));
        let reader = {
            let dropped = with_items(&node).await;
            dropped.key_reader("item", &["id"]).await.expect("it is there")
        };
        assert_eq!(errno(reader.read_many(&[1]).await), 2013);
        assert_eq!(node.stop(), Ok(()));
        assert_eq!(connection.ping().await.expect_err("the node is gone").kind(), ErrorKind::Connection);
        assert_eq!(errno(Connection::connect("127.0.0.1:1", &Options::new("root")).await), 2003);
    });
}

#[test]
fn an_answer_that_is_too_long_is_an_error_of_one_request() {
    let node = node();
    block_on(async {
        let options = Options::new("root").reply_bytes_max(10_000);
        let connection = Connection::connect(address(&node), &options).await.expect("root may log in");
        let long = connection.query("SELECT REPEAT('x', 1000000)", params![]).await;
        assert_eq!(long.expect_err("it is too long").kind(), ErrorKind::Value);
        assert_eq!(connection.query("SELECT 1", params![]).await.expect("it is short").len(), 1);
        let roomy = Connection::connect(address(&node), &Options::new("root")).await.expect("root may log in");
        // A row of more than one frame.
        let rows = roomy.query("SELECT 1, REPEAT('x', 40000000), 3", params![]).await.expect("it is not too long");
        let row = rows.get(0).expect("one row");
        let values = (row.get::<i64>(0usize), row.get::<&str>(1usize).map(str::len), row.get::<i64>(2usize));
        assert_eq!((values.0.ok(), values.1.ok(), values.2.ok()), (Some(1), Some(40_000_000), Some(3)));
        let text = "x".repeat(17 << 20);
        assert_eq!(
            roomy.query("SELECT ?", params![text]).await.expect_err("it is too long").kind(),
            ErrorKind::TooLong
        );
        assert_eq!(
            roomy.query("SELECT LENGTH(?)", params![&text[..1 << 20]]).await.map(|rows| rows.len()).ok(),
            Some(1)
        );
    });
    assert_eq!(node.stop(), Ok(()));
}

/// Sends a login and these bytes. Returns the error number of each of `answers` answers, 0 for success; fewer
/// if the node closes the connection.
fn exchange(node: &RunningServer, bytes: &[u8], answers: usize) -> Vec<u16> {
    let mut stream = TcpStream::connect(address(node)).expect("it listens");
    let mut login = Vec::new();
    assert!(Login { version: VERSION, user: "root", proof: b"", database: "" }.encode(&mut login));
    login.extend_from_slice(bytes);
    stream.write_all(&login).expect("it reads");
    let mut received = Vec::new();
    let mut outcomes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let mut rest = received.as_slice();
        outcomes.clear();
        while let Some((frame, after)) = next_frame(rest) {
            rest = after;
            match Reply::parse(frame) {
                Ok((_, Reply::Failed { errno, .. })) => outcomes.push(errno),
                Ok((_, Reply::Done(_) | Reply::Prepared { .. } | Reply::KeyRows(_))) => outcomes.push(0),
                _ => {}
            }
        }
        if outcomes.len() > answers {
            break;
        }
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => break,
            Ok(count) => received.extend_from_slice(&buffer[..count]),
        }
    }
    // The first answer is that to the login.
    outcomes.remove(0);
    outcomes
}

/// Logs in as root and takes the answer.
fn logged_in(node: &RunningServer) -> TcpStream {
    let mut stream = TcpStream::connect(address(node)).expect("it listens");
    let mut login = Vec::new();
    assert!(Login { version: VERSION, user: "root", proof: b"", database: "" }.encode(&mut login));
    stream.write_all(&login).expect("it reads");
    take_answers(&mut stream, 1);
    stream
}

/// Waits until `count` answers have arrived, the last of which ends the input, and returns their numbers. The
/// greeting is no answer.
fn take_answers(stream: &mut TcpStream, count: usize) -> Vec<u32> {
    let (mut received, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let mut numbers = Vec::new();
        let mut rest = received.as_slice();
        while let Some((frame, after)) = next_frame(rest) {
            rest = after;
            if is_last(frame.kind) {
                let number = frame.payload.first_chunk().expect("an answer has a number");
                numbers.push(u32::from_le_bytes(*number));
            }
        }
        if numbers.len() >= count {
            assert!(rest.is_empty());
            return numbers;
        }
        let length = stream.read(&mut buffer).expect("the node is there");
        assert!(length > 0, "the connection goes on");
        received.extend_from_slice(&buffer[..length]);
    }
}

#[test]
fn each_request_that_arrives_in_pieces_is_answered() {
    let node = node();
    let requests = [Request::Close { handle: 9 }, Request::Ping, Request::RunText("SELECT 1"), Request::Ping];
    let (mut bytes, mut ends) = (Vec::new(), Vec::new());
    for (number, request) in requests.iter().enumerate() {
        assert!(request.encode(number as u32, &mut bytes));
        ends.push(bytes.len());
    }
    let mut stream = logged_in(&node);
    for cut in 1..bytes.len() {
        // Send three pieces: up to a byte within a request, up to the end of that request, and the remainder.
        // Each piece waits for the answers to the earlier ones.
        let end = ends.iter().copied().find(|end| *end > cut).unwrap_or(bytes.len());
        let mut answered = 0;
        for piece in [0..cut, cut..end, end..bytes.len()] {
            let whole = ends.iter().filter(|end| **end <= piece.end).count();
            if !piece.is_empty() {
                stream.write_all(&bytes[piece]).expect("it reads");
            }
            if whole > answered {
                let expected: Vec<u32> = (answered as u32..whole as u32).collect();
                assert_eq!(take_answers(&mut stream, whole - answered), expected);
            }
            answered = whole;
        }
    }
    assert_eq!(node.stop(), Ok(()));
}

#[test]
fn unsolicited_messages_have_number_0() {
    let node = node();
    let mut stream = logged_in(&node);
    let mut bytes = Vec::new();
    assert!(Request::RunText("SET SESSION wait_timeout = 1").encode(7, &mut bytes));
    stream.write_all(&bytes).expect("it reads");
    assert_eq!(take_answers(&mut stream, 1), [7]);
    assert_eq!(take_answers(&mut stream, 1), [0]);
    assert_eq!(node.stop(), Ok(()));
}

#[test]
fn a_malformed_frame_closes_only_its_connection() {
    let node = node();
    let frame = |kind: u8, payload: &[u8]| {
        let mut bytes = (payload.len() as u32).to_le_bytes()[..3].to_vec();
        bytes.push(kind);
        bytes.extend_from_slice(payload);
        bytes
    };
    let request = |request: Request<'_>| {
        let mut bytes = Vec::new();
        assert!(request.encode(1, &mut bytes));
        bytes
    };
    assert_eq!(exchange(&node, &frame(0x10, &[1, 0]), 2), [1835]);
    assert_eq!(exchange(&node, &frame(0x77, &[1, 0, 0, 0]), 1), [1047]);
    assert_eq!(exchange(&node, &[frame(0x77, &[1, 0, 0, 0]), request(Request::Ping)].concat(), 2), [1047, 0]);
    assert_eq!(exchange(&node, &request(Request::Execute { handle: 9, count: 0, values: b"" }), 1), [1243]);
    assert_eq!(exchange(&node, &request(Request::Close { handle: 9 }), 1), [0]);
    let prepare = request(Request::Prepare { handle: 9, text: "SELECT ?" });
    let wrong = request(Request::Execute { handle: 9, count: 1, values: &[5, 255, 255, 255, 255] });
    assert_eq!(exchange(&node, &[prepare.clone(), wrong].concat(), 3), [0, 1835]);
    let no_number = [&[3][..], &f64::NAN.to_le_bytes()].concat();
    let wrong = request(Request::Execute { handle: 9, count: 1, values: &no_number });
    assert_eq!(exchange(&node, &[prepare.clone(), wrong].concat(), 3), [0, 1835]);
    let none = request(Request::Execute { handle: 9, count: 0, values: b"" });
    assert_eq!(exchange(&node, &[prepare, none].concat(), 2), [0, 1210]);
    let huge = (u32::MAX >> 8).to_le_bytes();
    let cut = [huge[0], huge[1], huge[2], 0x11];
    // A frame that would continue in the next one is refused before its contents arrive.
    assert_eq!(exchange(&node, &cut, 1), [1153]);
    let keys = frame(0x16, &[&[1, 0, 0, 0, 1, 0, 0, 0, 0][..], &u32::MAX.to_le_bytes()].concat());
    assert_eq!(exchange(&node, &keys, 2), [1835]);
    // A request may arrive byte by byte.
    let mut stream = TcpStream::connect(address(&node)).expect("it listens");
    let mut login = Vec::new();
    assert!(Login { version: VERSION, user: "root", proof: b"", database: "" }.encode(&mut login));
    for byte in login.iter().chain(&request(Request::Ping)) {
        stream.write_all(&[*byte]).expect("it reads");
    }
    // A frame that is no login, and a login of another version.
    for first in [b"GET / HTTP/1.1\r\n\r\n".to_vec(), frame(1, &[0, 0, 0, 0, 2, 0])] {
        let mut stream = TcpStream::connect(address(&node)).expect("it listens");
        stream.write_all(&first).expect("it reads");
        let mut outcomes = Vec::new();
        // The node may close the connection before it has read everything.
        let _ = stream.read_to_end(&mut outcomes);
        let (_, rest) = next_frame(&outcomes).expect("it greets");
        let refusal = next_frame(rest).map(|(frame, _)| Reply::parse(frame));
        assert!(matches!(refusal, Some(Ok((0, Reply::Failed { .. })))), "{outcomes:?}");
    }
    block_on(async { connect(&node).await.ping().await }).expect("the node is well");
    assert_eq!(node.stop(), Ok(()));
}
