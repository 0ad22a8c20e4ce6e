//! `code-size`: measures with callgrind how much code each thread of a setup executes for an operation. The
//! code is counted in cache lines and in pages, because it competes for the instruction cache and for the
//! instruction TLB.
//!
//! Callgrind records every executed instruction of each thread. A line has 64 bytes, a page 4 KiB. Rarely
//! executed lines (timers, the clock) count as much as lines that every operation executes. The tables
//! therefore also show the lines that make up 99 per cent of the instructions.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::client::Client;
use super::data::{self, DATABASE};
use super::operation::Operation;
use super::setup::setups;
use super::workload::WORKLOADS;
use crate::failure::Explain;
use crate::mysql::Connection;
use crate::process::{JunctorOptions, Server, TemporaryFolder, callgrind, start_junctor};
use crate::report::Table;
use crate::{Failure, Outcome};

const ROWS: u64 = 2000;
const READY_TIMEOUT_S: u64 = 180;
const LINE_BITS: u32 = 6;
const PAGE_BITS: u32 = 12;
/// Minimum instructions of a thread to be reported. A thread below it has only read its clock.
const INSTRUCTIONS_MIN: u64 = 20_000;

const OPERATIONS: [(&str, Operation); 5] = [
    ("in_list", Operation::Keys(100)),
    ("point", Operation::Point),
    ("range", Operation::Range),
    ("update", Operation::UpdateIndexed),
    ("oltp_rw", Operation::Transaction),
];

/// Options of `code-size`.
#[derive(Debug, clap::Args)]
pub struct CodeSizeOptions {
    /// Binary of the node [default: junctor in the folder of this program]
    #[arg(long, value_name = "FILE")]
    junctor: Option<PathBuf>,
    /// Setups of the laboratory to run
    #[arg(long, value_delimiter = ',', default_value = "ldm,receive,all-separate")]
    setups: Vec<String>,
    /// Number of connections, used in turn
    #[arg(long, default_value_t = 8)]
    connections: u32,
    /// Operations per connection
    #[arg(long, default_value_t = 25)]
    operations: u32,
}

/// Runs the measurement and prints its tables.
///
/// # Errors
/// A setup is unknown, a server does not start, or a reply is wrong.
pub fn run(options: &CodeSizeOptions) -> Outcome<()> {
    let mut table =
        Table::new(&["setup, operation, thread", "instructions", "code KiB", "for 99 % KiB", "pages", "for 99 %"]);
    for name in &options.setups {
        let all = setups(super::setup::cpu_count());
        let setup = all.iter().find(|setup| setup.name == name).ok_or("unknown setup").explain(name)?;
        let folder = TemporaryFolder::new("code")?;
        let node = CountedNode::start(options, setup.thread_config.as_deref(), setup.routing, folder.path())?;
        for (label, operation) in OPERATIONS {
            for (thread, code) in node.count(options, operation)? {
                let operations = f64::from(options.connections * options.operations);
                let (lines, pages) = (code.by_piece(LINE_BITS), code.by_piece(PAGE_BITS));
                table.row(vec![
                    format!("{name}, {label}, {thread}"),
                    format!("{:.0}", code.instructions() as f64 / operations),
                    format!("{:.1}", lines.len() as f64 / 16.0),
                    format!("{:.1}", pieces_for_99_percent(&lines) as f64 / 16.0),
                    pages.len().to_string(),
                    pieces_for_99_percent(&pages).to_string(),
                ]);
            }
        }
        node.server.stop()?;
    }
    println!("{table}");
    Ok(())
}

/// A node under callgrind.
struct CountedNode {
    server: Server,
    file: PathBuf,
}

impl CountedNode {
    fn start(options: &CodeSizeOptions, threads: Option<&str>, routing: &str, folder: &Path) -> Outcome<CountedNode> {
        let file = folder.join("callgrind.out");
        let mut wrapper =
            ["valgrind", "--tool=callgrind", "--separate-threads=yes", "--dump-instr=yes", "--dump-line=no"]
                .map(String::from)
                .to_vec();
        wrapper.extend(["--compress-pos=no", "--compress-strings=no"].map(String::from));
        wrapper.push(format!("--callgrind-out-file={}", file.display()));
        let mut junctor = JunctorOptions {
            binary: options.junctor.clone(),
            is_durable: false,
            arguments: ["--total-memory", "256M"].map(String::from).to_vec(),
            wrapper,
            ready_time_max_s: READY_TIMEOUT_S,
            ..JunctorOptions::default()
        };
        if let Some(threads) = threads {
            junctor = junctor.with_placement(threads);
        }
        let server = start_junctor(&junctor)?;
        server.execute(&[&format!("SET GLOBAL read_routing = '{routing}'")])?;
        data::fill(&mut server.connect()?, ROWS)?;
        Ok(CountedNode { server, file })
    }

    /// Returns the code that each thread executed for the operations, by thread name.
    fn count(&self, options: &CodeSizeOptions, operation: Operation) -> Outcome<Vec<(String, Code)>> {
        let mut clients = Vec::new();
        for number in 0..options.connections {
            let connection = Connection::open(self.server.address, DATABASE)?;
            clients.push((Client::new(&WORKLOADS[0], ROWS, u64::from(number) + 1), connection));
        }
        // Work that happens only once, such as planning, must not count.
        for (client, connection) in &mut clients {
            client.operate(operation, connection)?;
        }
        callgrind::control(&self.server, "--zero")?;
        for _ in 0..options.operations {
            for (client, connection) in &mut clients {
                client.operate(operation, connection)?;
            }
        }
        callgrind::control(&self.server, "--dump")?;
        let threads = self.threads()?;
        let mut counted = Vec::new();
        for (path, thread) in self.dumps()? {
            let code = Code::parse(&fs::read_to_string(&path).explain(path.display())?);
            fs::remove_file(&path)?;
            if code.instructions() >= INSTRUCTIONS_MIN {
                let name = threads.get(thread.saturating_sub(1)).cloned();
                counted.push((name.unwrap_or_else(|| format!("thread {thread}")), code));
            }
        }
        if counted.is_empty() {
            return Err(Failure::new("callgrind has counted nothing"));
        }
        Ok(counted)
    }

    /// The names of the threads, in the order of their creation. Callgrind numbers threads in this order.
    fn threads(&self) -> Outcome<Vec<String>> {
        let mut names = BTreeMap::new();
        for entry in fs::read_dir(format!("/proc/{}/task", self.server.process_id()))? {
            let path = entry?.path();
            let id: Option<u32> = path.file_name().and_then(|name| name.to_str()?.parse().ok());
            if let (Some(id), Ok(name)) = (id, fs::read_to_string(path.join("comm"))) {
                names.insert(id, name.trim().to_string());
            }
        }
        Ok(names.into_values().collect())
    }

    /// The dumps with the numbers of their threads. The number follows the last dash of the file name.
    fn dumps(&self) -> Outcome<Vec<(PathBuf, usize)>> {
        let folder = self.file.parent().unwrap_or(Path::new("."));
        let mut dumps = Vec::new();
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let thread = path.file_name().and_then(|name| name.to_str()?.rsplit_once('-')?.1.parse().ok());
            if let Some(thread) = thread {
                dumps.push((path, thread));
            }
        }
        dumps.sort_by_key(|(_, thread)| *thread);
        Ok(dumps)
    }
}

/// The number of times that each instruction was executed, by object file and address.
#[derive(Debug, Default)]
struct Code(BTreeMap<(String, u64), u64>);

impl Code {
    /// Reads an uncompressed dump with `positions: instr`.
    fn parse(text: &str) -> Code {
        let mut code = Code::default();
        let (mut object, mut after_call) = (String::new(), false);
        for line in text.lines() {
            if let Some(name) = line.strip_prefix("ob=") {
                object = name.to_string();
            } else if line.starts_with("calls=") {
                after_call = true;
            } else if let Some(rest) = line.strip_prefix("0x") {
                // The line after a call holds the cost of the callee. The calling instruction has a separate
                // line.
                let mut words = rest.split_whitespace();
                let address = words.next().and_then(|word| u64::from_str_radix(word, 16).ok());
                let count = words.next().and_then(|word| word.parse::<u64>().ok());
                if let (Some(address), Some(count), false) = (address, count, after_call) {
                    *code.0.entry((object.clone(), address)).or_default() += count;
                }
                after_call = false;
            }
        }
        code
    }

    fn instructions(&self) -> u64 {
        self.0.values().sum()
    }

    /// Sums the executions over pieces of `2^bits` bytes of code.
    fn by_piece(&self, bits: u32) -> BTreeMap<(&str, u64), u64> {
        let mut pieces = BTreeMap::new();
        for ((object, address), count) in &self.0 {
            *pieces.entry((object.as_str(), address >> bits)).or_default() += count;
        }
        pieces
    }
}

/// Number of the most executed pieces that together make up 99 per cent of all executions.
fn pieces_for_99_percent(pieces: &BTreeMap<(&str, u64), u64>) -> usize {
    let mut counts: Vec<u64> = pieces.values().copied().collect();
    counts.sort_unstable_by(|one, other| other.cmp(one));
    let all: u64 = counts.iter().sum();
    let mut sum = 0;
    counts
        .iter()
        .take_while(|count| {
            let is_needed = sum * 100 < all * 99;
            sum += **count;
            is_needed
        })
        .count()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const DUMP: &str = "positions: instr\nevents: Ir\n\nob=/a\nfn=one\n0x1000 10\n0x1004 10\n0x1040 5\n\
                        cob=/b\ncfn=two\ncalls=3 0x2000\n0x1040 900\nfn=two\nob=/b\n0x1000 975\n";

    #[test]
    fn each_instruction_counts_once_and_calls_do_not() {
        let code = Code::parse(DUMP);
        assert_eq!(code.instructions(), 1000);
        let lines = code.by_piece(LINE_BITS);
        assert_eq!(lines.values().copied().collect::<Vec<u64>>(), [20, 5, 975]);
        // Equal addresses in two object files are different pages.
        assert_eq!(code.by_piece(PAGE_BITS).len(), 2);
        assert_eq!((pieces_for_99_percent(&lines), pieces_for_99_percent(&code.by_piece(PAGE_BITS))), (2, 2));
        let objects: BTreeSet<&str> = lines.keys().map(|(object, _)| *object).collect();
        assert_eq!(objects, BTreeSet::from(["/a", "/b"]));
    }
}
