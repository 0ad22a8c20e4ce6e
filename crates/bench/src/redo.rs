//! `redo`: bytes of the log for each update, by the number of clients and the length of the row: those of its
//! record, and with its share of the groups.

use std::thread;
use std::time::Duration;

use crate::mysql::Connection;
use crate::process::{JunctorOptions, Server, start_junctor};
use crate::random::Random;
use crate::report::{Table, Verdict, print_verdicts};
use crate::{Failure, Outcome};

/// Rows of each table.
const ROWS: u64 = 10_000;
/// Rows of one INSERT that fills a table.
const FILL_ROWS: u64 = 500;
/// Time after which the node shows the newest figures of its log.
const REFRESH: Duration = Duration::from_millis(500);
/// Number of clients from which the target includes the groups, for rows of [`LOAD_BYTES`] or more. Each sync
/// writes whole blocks of 4 KiB, so a group of few short records has much space that is not used.
const LOAD_CLIENTS: u64 = 256;
const LOAD_BYTES: u64 = 100;

/// Options of `redo`.
#[derive(Clone, Debug, clap::Args)]
pub struct RedoOptions {
    /// Binary of the node [default: junctor in the folder of this program]
    #[arg(long, value_name = "FILE")]
    junctor: Option<std::path::PathBuf>,
    /// Numbers of connections
    #[arg(long, value_delimiter = ',', value_name = "LIST", default_values_t = [1, 8, 64, 256])]
    clients: Vec<u64>,
    /// Updates of one connection
    #[arg(long, default_value_t = 200)]
    updates: u64,
}

/// An update, and the length of the row image that it writes.
struct Kind {
    name: &'static str,
    table: &'static str,
    columns: &'static str,
    values: &'static str,
    assignment: &'static str,
    image_bytes: u64,
}

const SYSBENCH: Kind = Kind {
    name: "oltp_update_index",
    table: "sbtest1",
    columns: "id INT NOT NULL PRIMARY KEY, k INT NOT NULL, c CHAR(120) NOT NULL, pad CHAR(60) NOT NULL, KEY (k)",
    values: "1, LEFT(REPEAT('0123456789', 12), 119), REPEAT('p', 59)",
    assignment: "k = k + 1",
    // Flags 1, numbers 8, ends 4, strings 119 and 59 with the length of each.
    image_bytes: 193,
};

const KINDS: [Kind; 3] = [
    SYSBENCH,
    Kind { name: "oltp_update_non_index", assignment: "c = CONCAT(SUBSTR(c, 2), LEFT(c, 1))", ..SYSBENCH },
    Kind {
        name: "small row",
        table: "small",
        columns: "id INT NOT NULL PRIMARY KEY, v INT NOT NULL",
        values: "1",
        assignment: "v = v + 1",
        image_bytes: 9,
    },
];

/// Measures all combinations, and prints a table.
///
/// # Errors
/// A missed target, or the server fails.
pub fn run(options: &RedoOptions) -> Outcome<()> {
    let junctor = JunctorOptions { binary: options.junctor.clone(), ..JunctorOptions::default() };
    let server = start_junctor(&JunctorOptions { is_durable: true, ..junctor })?;
    server.execute(&["CREATE DATABASE redo"])?;
    for kind in KINDS.iter().step_by(2) {
        fill(&server, kind)?;
    }
    let mut table = Table::new(&["update", "clients", "row image", "record", "with groups", "limit"]);
    let mut verdicts = Vec::new();
    for kind in &KINDS {
        let limit = 1.5 * kind.image_bytes as f64 + 64.0;
        for &clients in &options.clients {
            let before = logged_bytes(&server)?;
            update(&server, kind, clients, options.updates)?;
            let after = logged_bytes(&server)?;
            let [record, bytes] = [0, 1].map(|at| (after[at] - before[at]) as f64 / (clients * options.updates) as f64);
            let cells = [kind.name.to_owned(), clients.to_string(), kind.image_bytes.to_string()];
            table.row(cells.into_iter().chain([record, bytes, limit].map(|bytes| format!("{bytes:.0}"))).collect());
            let what = format!("{}, {clients} clients: bytes of a record", kind.name);
            verdicts.push(Verdict { what, allowed_max: limit, measured: record });
            if clients >= LOAD_CLIENTS && kind.image_bytes >= LOAD_BYTES {
                let what = format!("{}, {clients} clients: bytes with groups", kind.name);
                verdicts.push(Verdict { what, allowed_max: limit, measured: bytes });
            }
        }
    }
    println!("{table}");
    let missed = print_verdicts(&verdicts);
    server.stop()?;
    if missed > 0 { Err(Failure::new("updates write too much redo")) } else { Ok(()) }
}

fn fill(server: &Server, kind: &Kind) -> Outcome<()> {
    let mut connection = Connection::open(server.address, "redo")?;
    connection.query(&format!("CREATE TABLE {} ({})", kind.table, kind.columns))?;
    for first in (0..ROWS).step_by(FILL_ROWS as usize) {
        let rows: Vec<String> = (first..first + FILL_ROWS).map(|id| format!("({id}, {})", kind.values)).collect();
        connection.query(&format!("INSERT INTO {} VALUES {}", kind.table, rows.join(",")))?;
    }
    Ok(())
}

/// Bytes of records, and bytes written to the log, since the start of the node.
fn logged_bytes(server: &Server) -> Outcome<[u64; 2]> {
    thread::sleep(REFRESH);
    let mut connection = server.connect()?;
    let mut number = |query: &str| {
        let value = connection.query_value(query)?;
        let number = value.as_deref().and_then(|text| text.parse().ok());
        number.ok_or_else(|| Failure::new(format!("{query} is {value:?}")))
    };
    let records = number("SELECT SUM(value) FROM junctor_info.counters WHERE name = 'log_bytes'")?;
    Ok([records, number("SELECT written_bytes FROM junctor_info.logspaces")?])
}

fn update(server: &Server, kind: &Kind, clients: u64, updates: u64) -> Outcome<()> {
    thread::scope(|scope| {
        let client = |client| {
            scope.spawn(move || -> Outcome<()> {
                let mut connection = Connection::open(server.address, "redo")?;
                let mut random = Random::new(client);
                for _ in 0..updates {
                    // Clients have rows of their own, so that none waits for a lock.
                    let id = random.below(ROWS / clients) * clients + client;
                    connection.query(&format!("UPDATE {} SET {} WHERE id = {id}", kind.table, kind.assignment))?;
                }
                Ok(())
            })
        };
        let clients: Vec<_> = (0..clients).map(client).collect();
        clients
            .into_iter()
            .try_for_each(|client| client.join().unwrap_or_else(|_| Err(Failure::new("a client panicked"))))
    })
}
