//! Sends many statements, or many keys, in one round trip to the node.
//!
//! `cargo run --example batches` uses a node in this process. An argument is the address of a server's native
//! protocol.

use std::error::Error;
use std::sync::Arc;

use junctor::client::{Connection, Options, ToValue, block_on, params};

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::new("root");
    match std::env::args().nth(1) {
        Some(address) => block_on(async { measures(Connection::connect(address, &options).await?).await })?,
        None => {
            let node = junctor::Node::builder().total_memory_bytes(128 << 20).start()?;
            block_on(async { measures(node.connect(&options).await?).await })?;
            node.stop();
        }
    }
    Ok(())
}

async fn measures(mut connection: Connection) -> Result<(), Box<dyn Error>> {
    connection.execute("CREATE DATABASE IF NOT EXISTS station", params![]).await?;
    connection.execute("DROP TABLE IF EXISTS station.measure", params![]).await?;
    let create = "CREATE TABLE station.measure (place INT, hour INT, degrees DOUBLE, PRIMARY KEY (place, hour))";
    connection.execute(create, params![]).await?;

    // Rows of one table, 64 per statement. The transaction makes the insertion atomic.
    let transaction = connection.begin().await?;
    let values: Vec<(i64, i64, f64)> =
        (0..1000).map(|number| (number / 100, number % 100, 15.0 + (number % 7) as f64)).collect();
    let rows: Vec<[&dyn ToValue; 3]> =
        values.iter().map(|(place, hour, degrees)| [place as &dyn ToValue, hour, degrees]).collect();
    let rows: Vec<&[&dyn ToValue]> = rows.iter().map(|row| row.as_slice()).collect();
    transaction.table("station.measure").insert_many(&["place", "hour", "degrees"], &rows).await?;
    transaction.commit().await?;

    // Different statements, each with its own result or error.
    let change =
        Arc::new(connection.prepare("UPDATE station.measure SET degrees = ? WHERE place = ? AND hour = ?").await?);
    let mut batch = connection.batch();
    (0..10).for_each(|place| _ = batch.add_prepared(&change, params![20.5, place, 0]));
    batch.add("INSERT INTO station.measure VALUES (?, ?, ?)", params![0, 0, 1.0]);
    let results = batch.run_all().await?;
    let failed = results.iter().filter_map(|result| result.as_ref().err());
    failed.for_each(|error| println!("one of {} failed: {error}", results.len()));

    // Keys of two columns. The rows are returned in the order of the keys.
    let reader = connection.key_reader("station.measure", &["degrees"]).await?;
    let keys: Vec<(i64, i64)> = (0..10).map(|place| (place, 0)).chain([(99, 0)]).collect();
    let found = reader.read_many(&keys).await?;
    let mut degrees = Vec::new();
    for row in found.iter().flatten() {
        degrees.push(row.get::<f64>(0usize)?);
    }
    println!(
        "{} of {} keys found, {} degrees in the mean",
        degrees.len(),
        found.len(),
        degrees.iter().sum::<f64>() / 10.0
    );
    Ok(())
}
