//! Instructions of node and client per key, counted by callgrind.
//!
//! This program runs itself under valgrind, twice for each method of reading, with different numbers of
//! requests. The difference of the two counts belongs to the requests.

use std::fs;
use std::process::Command;
use std::time::Duration;

use junctor_client::block_on;

use super::ApiOptions;
use super::load::{FilledNode, PipelinedClient, ReadMethod, Transport};
use crate::failure::Explain;
use crate::process::{TemporaryFolder, command};
use crate::report::{Table, Verdict, print_verdicts};
use crate::{Failure, Outcome};

const ROWS: u64 = 2000;
const TIME_MAX: Duration = Duration::from_secs(300);

/// Counts instructions for each number of keys per request, and prints them. Fails if, at 100 keys per
/// request, a key reader costs more than a third of an IN list.
pub(super) fn run(options: &ApiOptions) -> Outcome<()> {
    let folder = TemporaryFolder::new("callgrind")?;
    let mut table = Table::new(&["method", "keys a request", "instructions a key", "to the list"]);
    let mut verdicts = Vec::new();
    for &keys in &options.batches {
        let mut counted = Vec::new();
        for method in ReadMethod::ALL {
            let requests = [10_usize, 10 + 20_000_usize.div_ceil(keys)];
            let mut totals = [0_u64; 2];
            for (total, requests) in totals.iter_mut().zip(requests) {
                let file = folder.path().join("callgrind.out");
                let program = std::env::current_exe()?;
                let finished = command::run(
                    Command::new("valgrind")
                        .args(["--tool=callgrind", &format!("--callgrind-out-file={}", file.display())])
                        .arg(program)
                        .args(["api", "--count", &format!("{},{keys},{requests}", method.name())])
                        .args(["--columns", &options.columns.join(",")])
                        .args(["--depth", &options.depth.to_string()]),
                    TIME_MAX,
                )?;
                if !finished.status.success() {
                    return Err(Failure::new(format!("valgrind: {}{}", finished.output, finished.errors)));
                }
                let text = fs::read_to_string(&file).explain(file.display().to_string())?;
                *total = total_of(&text).ok_or_else(|| Failure::new("callgrind counted nothing"))?;
            }
            let each = totals[1].saturating_sub(totals[0]) as f64 / ((requests[1] - requests[0]) * keys) as f64;
            eprintln!("{}, {keys} keys: {each:.0}", method.name());
            counted.push(each);
        }
        let list = counted[ReadMethod::List as usize];
        for (method, each) in ReadMethod::ALL.into_iter().zip(&counted) {
            table.row(vec![
                method.name().into(),
                keys.to_string(),
                format!("{each:.0}"),
                format!("{:.2}", each / list),
            ]);
        }
        if keys == 100 {
            let reader = counted[ReadMethod::Reader as usize];
            let what = "instructions a key, embedded, 100 keys a request".into();
            verdicts.push(Verdict { what, allowed_max: list, measured: reader });
            let what = "the same to the IN list".into();
            verdicts.push(Verdict { what, allowed_max: 1.0 / 3.0, measured: reader / list });
        }
    }
    println!("{table}");
    match print_verdicts(&verdicts) {
        0 => Ok(()),
        missed => Err(Failure::new(format!("{missed} targets are missed"))),
    }
}

/// The part that runs under callgrind: sends the requests of one read method.
pub(super) fn run_counted(options: &ApiOptions, what: &str) -> Outcome<()> {
    let wrong = || Failure::new("METHOD,KEYS,REQUESTS");
    let mut parts = what.split(',');
    let method = parts.next().and_then(ReadMethod::named).ok_or_else(wrong)?;
    let mut number = || parts.next().and_then(|text| text.parse::<usize>().ok()).ok_or_else(wrong);
    let (keys, requests) = (number()?, number()?);
    let node = block_on(FilledNode::start(ROWS, &options.columns, Transport::Memory))?;
    block_on(PipelinedClient::new(&node, method, keys, options.depth).run(requests))?;
    node.stop()
}

fn total_of(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("totals:"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::total_of;

    #[test]
    fn the_total_is_parsed() {
        assert_eq!(total_of("events: Ir\nfn=(1)\n\ntotals: 1234\n"), Some(1234));
        assert_eq!(total_of("events: Ir\n"), None);
    }
}
