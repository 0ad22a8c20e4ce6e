//! Creates a table with some rows, and shows the ways to read them.
//!
//! `cargo run --example quick_start` uses a node in this process. With an address, such as
//! `-- 127.0.0.1:3308`, it uses a server that was started with `junctor serve --native-port 3308`.

use std::error::Error;

use junctor::client::{Connection, Direction, Options, average, block_on, column, count, params};

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::new("root");
    match std::env::args().nth(1) {
        Some(address) => block_on(async { shop(Connection::connect(address, &options).await?).await })?,
        None => {
            let node = junctor::Node::builder().total_memory_bytes(128 << 20).start()?;
            block_on(async { shop(node.connect(&options).await?).await })?;
            node.stop();
        }
    }
    Ok(())
}

async fn shop(connection: Connection) -> Result<(), Box<dyn Error>> {
    connection.execute("CREATE DATABASE IF NOT EXISTS shop", params![]).await?;
    connection.execute("DROP TABLE IF EXISTS shop.item", params![]).await?;
    let create = "CREATE TABLE shop.item (id INT PRIMARY KEY, name VARCHAR(40), price INT, KEY price (price))";
    connection.execute(create, params![]).await?;

    let items = connection.table("shop.item");
    for (id, name, price) in [(1, "cup", 250), (2, "pot", 1200), (3, "pan", 1900), (4, "spoon", 90)] {
        items.insert(&[("id", &id), ("name", &name), ("price", &price)]).await?;
    }
    items.upsert(&[("id", &4), ("name", &"ladle"), ("price", &140)]).await?;
    items.update().add("price", 10).filter(column("name").like("p%")).run().await?;

    // The node evaluates filter, order and limit where it stores the rows.
    let dear = items.select(&["name", "price"]).filter(column("price").greater_than(200));
    for row in &dear.order_by("price", Direction::Descending).limit(2).rows().await? {
        println!("{}: {}", row.get::<&str>("name")?, row.get::<i64>("price")?);
    }
    let all = items.select(&[]).aggregate(&[count().named("items"), average("price").named("mean")]).await?;
    for row in &all {
        println!("{} items at {} in the mean", row.get::<u64>("items")?, row.get::<f64>("mean")?);
    }

    // With a statement that has parameters.
    let rows = connection.query("SELECT name FROM shop.item WHERE price < ?", params![200]).await?;
    println!("{} cheap item, {:?}", rows.len(), rows.get(0));

    // By primary key, which costs least.
    let reader = connection.key_reader("shop.item", &["name"]).await?;
    let keys = [3, 7, 1];
    for (key, row) in keys.iter().zip(reader.read_many(&keys).await?.iter()) {
        match row {
            Some(row) => println!("{key} is {}", row.get::<&str>("name")?),
            None => println!("{key} is nothing"),
        }
    }
    Ok(())
}
