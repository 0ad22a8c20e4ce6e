//! Transfers between accounts by several clients at once: transactions that are done again after a deadlock, a savepoint, and one that
//! is dropped.
//!
//! `cargo run -p junctor-node --example transactions`, or with the address of a server's native protocol behind it.

use std::error::Error;

use futures_lite::future::zip;
use junctor_client::api::{Connection, Options, Result, block_on, column, params, sum};
use junctor_node::NodeConfig;

fn main() -> std::result::Result<(), Box<dyn Error>> {
    let (address, node) = match std::env::args().nth(1) {
        Some(address) => (address, None),
        None => {
            let config = NodeConfig {
                port: 0,
                native_port: Some(0),
                total_memory_bytes: Some(128 << 20),
                data_directory: std::env::temp_dir().join("junctor-example").to_string_lossy().into_owned(),
                ..NodeConfig::default()
            };
            let node = junctor_node::start(&config)?;
            let address = node.native_address().ok_or("the node does not listen")?;
            (address.to_string(), Some(node))
        }
    };
    let options = Options::new("root");
    block_on(async {
        let (left, right) =
            zip(Connection::connect(&*address, &options), Connection::connect(&*address, &options)).await;
        bank(left?, right?).await
    })?;
    if let Some(node) = node {
        node.stop();
    }
    Ok(())
}

async fn bank(mut left: Connection, mut right: Connection) -> std::result::Result<(), Box<dyn Error>> {
    left.execute("CREATE DATABASE IF NOT EXISTS bank", params![]).await?;
    left.execute("DROP TABLE IF EXISTS bank.account", params![]).await?;
    left.execute("CREATE TABLE bank.account (id INT PRIMARY KEY, balance INT NOT NULL)", params![]).await?;
    let accounts = left.table("bank.account");
    accounts.insert_many(&["id", "balance"], &[params![1, 500], params![2, 500]]).await?;

    // Both lock the same two rows in either order: deadlocks happen, and the victims try again.
    let (one, two) = zip(transfer(&mut left, 1, 2), transfer(&mut right, 2, 1)).await;
    one.and(two)?;

    let transaction = left.begin().await?;
    let accounts = transaction.table("bank.account");
    accounts.update().set("balance", 0).filter(column("id").equals(1)).run().await?;
    transaction.savepoint("one").await?;
    accounts.delete().run().await?;
    transaction.rollback_to("one").await?;
    println!("{} accounts within the transaction", accounts.select(&[]).count().await?);
    // Never committed, it is rolled back.
    drop(transaction);

    for row in &left.table("bank.account").select(&[]).aggregate(&[sum("balance")]).await? {
        println!("all have {}", row.get::<i64>(0usize)?);
    }
    Ok(())
}

/// Moves one from an account to another, a hundred times.
async fn transfer(connection: &mut Connection, from: i64, to: i64) -> Result<()> {
    for _ in 0..100 {
        connection
            .transact(async |transaction| {
                let accounts = transaction.table("bank.account");
                accounts.update().add("balance", -1).filter(column("id").equals(from)).run().await?;
                accounts.update().add("balance", 1).filter(column("id").equals(to)).run().await
            })
            .await?;
    }
    Ok(())
}
