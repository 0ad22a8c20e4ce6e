//! `api`: reads by key through the Rust client and through SQL. Reports the CPU time and the instructions
//! that node and client need together.
//!
//! The node runs in this process, in a single thread, and the client in another. The figures are those of
//! both threads. Keys are uniformly distributed. The client decodes the first column of each row, and tests
//! the last column for NULL.

mod load;
mod count;

use std::time::{Duration, Instant};

use junctor_client::block_on;

use crate::process::measure::cpu_time;
use crate::report::{Table, Verdict, print_verdicts};
use crate::{Failure, Outcome};

pub use load::ReadMethod;
use load::{FilledNode, PipelinedClient, Transport};

/// Options of `api`.
#[derive(Debug, clap::Args)]
pub struct ApiOptions {
    /// Number of rows of the table
    #[arg(long, default_value_t = 1_000_000)]
    rows: u64,
    /// Seconds per measurement
    #[arg(long, default_value_t = 2)]
    seconds: u64,
    /// Keys per request
    #[arg(long, value_delimiter = ',', default_value = "1,10,100,1000")]
    batches: Vec<usize>,
    /// Measurements of each kind; medians are reported
    #[arg(long, default_value_t = 3)]
    repetitions: usize,
    /// Number of concurrent requests
    #[arg(long, default_value_t = 4)]
    depth: usize,
    /// Columns to read
    #[arg(long, value_delimiter = ',', default_value = "id,k,c,pad")]
    columns: Vec<String>,
    /// Only count instructions with callgrind
    #[arg(long)]
    instructions: bool,
    /// Only make requests of one method, for callgrind: METHOD,KEYS,REQUESTS
    #[arg(long, hide = true)]
    count: Option<String>,
}

/// Maximum nanoseconds of CPU per key. The target is 3 million keys per second and core.
const KEY_NS_MAX: f64 = 1000.0 / 3.0;

/// Measures and prints.
///
/// # Errors
/// A missed target, or a node that does not start.
pub fn run(options: &ApiOptions) -> Outcome<()> {
    if let Some(what) = &options.count {
        return count::run_counted(options, what);
    }
    if options.instructions {
        return count::run(options);
    }
    let mut verdicts = Vec::new();
    let mut table = Table::new(&["method", "keys a request", "keys/s", "keys/s and core", "CPU ns/key", "to the list"]);
    for transport in [Transport::Memory, Transport::Tcp] {
        let node = block_on(FilledNode::start(options.rows, &options.columns, transport))?;
        for &keys in &options.batches {
            let mut measured = vec![Vec::new(); ReadMethod::ALL.len()];
            for _ in 0..options.repetitions {
                for (method, results) in ReadMethod::ALL.into_iter().zip(&mut measured) {
                    results.push(measure(&node, method, keys, options)?);
                }
            }
            let medians: Vec<Measured> = measured.into_iter().map(median).collect();
            let list = medians[ReadMethod::List as usize].cpu_ns;
            for (method, result) in ReadMethod::ALL.into_iter().zip(&medians) {
                table.row(vec![
                    format!("{}, {}", method.name(), transport.name()),
                    keys.to_string(),
                    format!("{:.0}", result.keys_per_second),
                    format!("{:.0}", 1e9 / result.cpu_ns),
                    format!("{:.0}", result.cpu_ns),
                    format!("{:.2}", result.cpu_ns / list),
                ]);
            }
            let reader = medians[ReadMethod::Reader as usize].cpu_ns;
            if keys == 100 && transport == Transport::Memory {
                let what = "CPU ns a key, embedded, 100 keys a request".into();
                verdicts.push(Verdict { what, allowed_max: KEY_NS_MAX, measured: reader });
                let what = "CPU a key to the same keys in an IN list".into();
                verdicts.push(Verdict { what, allowed_max: 1.0 / 3.0, measured: reader / list });
                let what = "CPU a key to the same keys by a SELECT each".into();
                let selects = medians[ReadMethod::Select as usize].cpu_ns;
                verdicts.push(Verdict { what, allowed_max: 1.0 / 3.0, measured: reader / selects });
            }
        }
        node.stop()?;
    }
    println!("{table}");
    match print_verdicts(&verdicts) {
        0 => Ok(()),
        missed => Err(Failure::new(format!("{missed} targets are missed"))),
    }
}

#[derive(Clone, Copy, Debug)]
struct Measured {
    keys_per_second: f64,
    /// CPU time of all threads per key.
    cpu_ns: f64,
}

fn median(mut measured: Vec<Measured>) -> Measured {
    measured.sort_by(|left, right| left.cpu_ns.total_cmp(&right.cpu_ns));
    measured[measured.len() / 2]
}

fn measure(node: &FilledNode, method: ReadMethod, keys: usize, options: &ApiOptions) -> Outcome<Measured> {
    let mut client = PipelinedClient::new(node, method, keys, options.depth);
    block_on(client.run(50))?;
    let (begun, cpu) = (Instant::now(), cpu_time(std::process::id())?);
    let mut requests = 0;
    while begun.elapsed() < Duration::from_secs(options.seconds) {
        block_on(client.run(20))?;
        requests += 20;
    }
    let (seconds, cpu) = (begun.elapsed().as_secs_f64(), cpu_time(std::process::id())? - cpu);
    let count = (requests * keys) as f64;
    Ok(Measured { keys_per_second: count / seconds, cpu_ns: cpu.as_nanos() as f64 / count })
}
