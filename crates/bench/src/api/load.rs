//! A node with one filled table, and a client that reads uniformly random keys in one of three ways.

use std::collections::VecDeque;
use std::fmt::Write;
use std::pin::Pin;

use futures_lite::future::poll_once;
use junctor_client::{Connection, KeyReader, Options, Row, Statement, ToValue, params};
use junctor_node::{MemoryTransport, NodeConfig, Protocol, RunningServer};

use crate::fill::push_groups;
use crate::random::Random;
use crate::{Failure, Outcome};

const ROWS_PER_STATEMENT: u64 = 500;
const SEED: u64 = 7;
/// Places the whole node on one thread.
const THREAD_CONFIG: &str = "recv={count=1},ldm={count=0},main={count=0},io={count=0}";

/// How a client reads rows by key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadMethod {
    /// A key reader of the Rust client.
    Reader,
    /// A text statement with an IN list.
    List,
    /// A prepared SELECT per key. All SELECTs of a request are sent together.
    Select,
}

impl ReadMethod {
    /// All methods, in the order in which the reports list them.
    pub const ALL: [ReadMethod; 3] = [ReadMethod::Reader, ReadMethod::List, ReadMethod::Select];

    /// Name in reports.
    pub fn name(self) -> &'static str {
        match self {
            ReadMethod::Reader => "reader",
            ReadMethod::List => "IN list",
            ReadMethod::Select => "SELECT each",
        }
    }

    /// The method with this name.
    pub fn named(name: &str) -> Option<ReadMethod> {
        ReadMethod::ALL.into_iter().find(|method| method.name() == name)
    }
}

/// Transport between client and node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// A memory stream within the process, without a socket.
    Memory,
    /// TCP over 127.0.0.1.
    Tcp,
}

impl Transport {
    /// Name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Transport::Memory => "embedded",
            Transport::Tcp => "TCP",
        }
    }
}

/// A running node with one filled table, and connections to it.
pub struct FilledNode {
    node: RunningServer,
    connection: Connection,
    reader: KeyReader,
    select: Statement,
    list: String,
    rows: u64,
}

impl FilledNode {
    /// Starts a node and fills the sysbench table.
    ///
    /// # Errors
    /// The node does not start, or refuses a statement.
    pub async fn start(rows: u64, columns: &[String], transport: Transport) -> Outcome<FilledNode> {
        let config = NodeConfig {
            port: 0,
            native_port: Some(0),
            thread_config: Some(THREAD_CONFIG.into()),
            total_memory_bytes: Some((256 << 20) + rows * 400),
            ..NodeConfig::default()
        };
        let node = junctor_node::start(&config).map_err(|error| Failure::new(error.to_string()))?;
        let connection = connect(&node, transport).await?;
        connection.execute("CREATE DATABASE sbtest", params![]).await.map_err(failed)?;
        connection.execute("USE sbtest", params![]).await.map_err(failed)?;
        fill(&connection, rows).await?;
        let names: Vec<&str> = columns.iter().map(String::as_str).collect();
        let reader = connection.key_reader("sbtest1", &names).await.map_err(failed)?;
        let columns = columns.join(", ");
        let select = format!("SELECT {columns} FROM sbtest1 WHERE id = ?");
        let select = connection.prepare(&select).await.map_err(failed)?;
        let list = format!("SELECT {columns} FROM sbtest1 WHERE id IN (");
        Ok(FilledNode { node, connection, reader, select, list, rows })
    }

    /// Stops the node.
    ///
    /// # Errors
    /// The node did not stop in time.
    pub fn stop(self) -> Outcome<()> {
        let FilledNode { node, connection, reader, select, .. } = self;
        drop((connection, reader, select));
        node.stop().map_err(|error| Failure::new(error.to_string()))
    }
}

async fn connect(node: &RunningServer, transport: Transport) -> Outcome<Connection> {
    let options = Options::new("root");
    let connected = match transport {
        Transport::Memory => {
            let stream = node.connect(Protocol::Native).map_err(|error| Failure::new(error.to_string()))?;
            Connection::open(Box::new(MemoryTransport(stream)), &options).await
        }
        Transport::Tcp => {
            let address = node.native_address().ok_or_else(|| Failure::new("the node does not listen"))?;
            Connection::connect(address, &options).await
        }
    };
    connected.map_err(failed)
}

async fn fill(connection: &Connection, rows: u64) -> Outcome<()> {
    let create = "CREATE TABLE sbtest1 (id INTEGER NOT NULL AUTO_INCREMENT, k INTEGER DEFAULT '0' NOT NULL, \
                  c CHAR(120) DEFAULT '' NOT NULL, pad CHAR(60) DEFAULT '' NOT NULL, PRIMARY KEY (id))";
    connection.execute(create, params![]).await.map_err(failed)?;
    let mut random = Random::new(SEED);
    for first in (1..=rows).step_by(ROWS_PER_STATEMENT as usize) {
        let mut statement = String::from("INSERT INTO sbtest1 (id, k, c, pad) VALUES ");
        for id in first..=rows.min(first + ROWS_PER_STATEMENT - 1) {
            let separator = if id == first { "" } else { "," };
            // Writing to a String cannot fail.
            let _ = write!(statement, "{separator}({id},{},'", 1 + random.below(rows));
            push_groups(&mut statement, &mut random, 10);
            statement.push_str("','");
            push_groups(&mut statement, &mut random, 5);
            statement.push_str("')");
        }
        connection.execute(&statement, params![]).await.map_err(failed)?;
    }
    Ok(())
}

/// A client that keeps several requests in flight.
pub struct PipelinedClient<'b> {
    node: &'b FilledNode,
    method: ReadMethod,
    keys: usize,
    depth: usize,
    random: Random,
    /// Sum of the values read, which keeps the compiler from removing the reads.
    sum: i64,
}

type Request<'b> = Pin<Box<dyn Future<Output = Outcome<i64>> + 'b>>;

impl<'b> PipelinedClient<'b> {
    /// Creates a client that keeps `depth` requests in flight, each for `keys` keys.
    pub fn new(node: &'b FilledNode, method: ReadMethod, keys: usize, depth: usize) -> PipelinedClient<'b> {
        PipelinedClient { node, method, keys, depth, random: Random::new(1), sum: 0 }
    }

    /// Sends `requests` requests and waits for their replies.
    ///
    /// # Errors
    /// A request fails or misses a row. An IN list fails only if it finds no row at all.
    pub async fn run(&mut self, requests: usize) -> Outcome<()> {
        let mut in_flight: VecDeque<Request<'b>> = VecDeque::new();
        for _ in 0..requests {
            if in_flight.len() >= self.depth
                && let Some(oldest) = in_flight.pop_front()
            {
                self.sum = self.sum.wrapping_add(oldest.await?);
            }
            let rows = self.node.rows;
            let keys: Vec<i64> = (0..self.keys).map(|_| 1 + self.random.below(rows) as i64).collect();
            let mut request = request(self.node, self.method, keys);
            // The first poll sends the request.
            match poll_once(&mut request).await {
                Some(done) => self.sum = self.sum.wrapping_add(done?),
                None => in_flight.push_back(request),
            }
        }
        for request in in_flight {
            self.sum = self.sum.wrapping_add(request.await?);
        }
        std::hint::black_box(self.sum);
        Ok(())
    }
}

fn request(node: &FilledNode, method: ReadMethod, keys: Vec<i64>) -> Request<'_> {
    match method {
        ReadMethod::Reader => Box::pin(async move {
            let found = node.reader.read_many(&keys).await.map_err(failed)?;
            let mut sum = 0;
            for row in found.iter() {
                sum += touch_row(row.ok_or_else(|| Failure::new("a key was not found"))?)?;
            }
            Ok(sum)
        }),
        ReadMethod::List => Box::pin(async move {
            let mut statement = node.list.clone();
            for (position, key) in keys.iter().enumerate() {
                // Writing to a String cannot fail.
                let _ = write!(statement, "{}{key}", if position > 0 { "," } else { "" });
            }
            statement.push(')');
            let rows = node.connection.query(&statement, params![]).await.map_err(failed)?;
            let mut sum = 0;
            for row in &rows {
                sum += touch_row(row)?;
            }
            if rows.is_empty() { Err(Failure::new("no key was found")) } else { Ok(sum) }
        }),
        ReadMethod::Select => Box::pin(async move {
            // The first poll sends each statement. Replies arrive in the same order.
            let mut all = Vec::with_capacity(keys.len());
            for key in &keys {
                let mut one = Box::pin(select_one(&node.select, *key));
                let done = poll_once(&mut one).await;
                all.push((one, done));
            }
            let mut sum = 0;
            for (one, done) in all {
                sum += match done {
                    Some(done) => done?,
                    None => one.await?,
                };
            }
            Ok(sum)
        }),
    }
}

async fn select_one(statement: &Statement, key: i64) -> Outcome<i64> {
    let rows = statement.query(&[&key as &dyn ToValue]).await.map_err(failed)?;
    touch_row(rows.get(0).ok_or_else(|| Failure::new("a key was not found"))?)
}

/// Decodes the first column as an integer and tests the last one for NULL, so that both are read.
#[inline]
fn touch_row(row: Row<'_>) -> Outcome<i64> {
    let number: i64 = row.get(0usize).map_err(failed)?;
    let last = row.value(row.columns().len() - 1).map_err(failed)?;
    Ok(number.wrapping_add(i64::from(last.is_null())))
}

fn failed(error: junctor_client::Error) -> Failure {
    Failure::new(error.to_string())
}
