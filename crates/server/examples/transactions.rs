//! Concurrent transfers between accounts. Shows transactions that retry after a deadlock, a savepoint, and a
//! transaction that is dropped.
//!
//! `cargo run --example transactions` uses a node in this process. An argument is the address of a server's
//! native protocol.

use std::error::Error;

use futures_lite::future::zip;
use junctor::client::{Connection, Options, Result, block_on, column, params, sum};

fn main() -> std::result::Result<(), Box<dyn Error>> {
    let options = Options::new("root");
    match std::env::args().nth(1) {
        Some(address) => block_on(async {
            let (left, right) =
                zip(Connection::connect(&*address, &options), Connection::connect(&*address, &options)).await;
            bank(left?, right?).await
        })?,
        None => {
            let node = junctor::Node::builder().total_memory_bytes(128 << 20).start()?;
            block_on(async {
                let (left, right) = zip(node.connect(&options), node.connect(&options)).await;
                bank(left?, right?).await
            })?;
            node.stop();
        }
    }
    Ok(())
}

async fn bank(mut left: Connection, mut right: Connection) -> std::result::Result<(), Box<dyn Error>> {
    left.execute("CREATE DATABASE IF NOT EXISTS bank", params![]).await?;
    left.execute("DROP TABLE IF EXISTS bank.account", params![]).await?;
    left.execute("CREATE TABLE bank.account (id INT PRIMARY KEY, balance INT NOT NULL)", params![]).await?;
    let accounts = left.table("bank.account");
    accounts.insert_many(&["id", "balance"], &[params![1, 500], params![2, 500]]).await?;

    // The two transfers lock the same rows in opposite order, so deadlocks occur, and the victims retry.
    let (one, two) = zip(transfer(&mut left, 1, 2), transfer(&mut right, 2, 1)).await;
    one.and(two)?;

    let transaction = left.begin().await?;
    let accounts = transaction.table("bank.account");
    accounts.update().set("balance", 0).filter(column("id").equals(1)).run().await?;
    transaction.savepoint("one").await?;
    accounts.delete().run().await?;
    transaction.rollback_to("one").await?;
    println!("{} accounts within the transaction", accounts.select(&[]).count().await?);
    // A transaction that is dropped without a commit is rolled back.
    drop(transaction);

    for row in &left.table("bank.account").select(&[]).aggregate(&[sum("balance")]).await? {
        println!("all have {}", row.get::<i64>(0usize)?);
    }
    Ok(())
}

/// Transfers 1 from one account to the other, a hundred times.
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
