//! Measures the figures from which the demands are derived: the CPU time of each thread per operation.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use crate::Outcome;
use crate::event_load::client::EventLoad;
use crate::event_load::work::Work;
use crate::fill::fill;
use crate::process::measure::{ThreadTime, thread_times};
use crate::process::{JunctorOptions, start_junctor};
use crate::report::Table;
use crate::sysbench_matrix::thread_config;

const PLACEMENTS: [&str; 2] = ["d", "a"];
const CONNECTIONS: usize = 64;
const ROWS: u64 = 100_000;
const WORKS: [Work; 5] = [Work::PointText, Work::InList, Work::Range, Work::Update, Work::ReadWrite];

/// Measures each kind of work, once with every module on its own thread and once with all in one thread, and
/// prints a table.
///
/// # Errors
/// A server fails.
pub fn measure(junctor: Option<PathBuf>, time: Duration) -> Outcome<()> {
    let columns = ["work", "placement", "thread", "user us", "system us", "sleeps", "operations/s"];
    let mut table = Table::new(&columns);
    let junctor = JunctorOptions { binary: junctor, ..JunctorOptions::default() };
    for placement in PLACEMENTS {
        let config = thread_config(placement)?.unwrap_or_default();
        let server = start_junctor(&junctor.with_placement(config))?;
        server.execute(&["CREATE DATABASE sbtest"])?;
        fill(&server, ROWS)?;
        for (run, work) in (0..).zip(WORKS) {
            let load = EventLoad {
                address: server.address,
                is_database: true,
                connections: CONNECTIONS,
                threads: 1,
                work,
                rows: ROWS,
                warm_up: Duration::from_secs(1),
                time,
                run,
            };
            let samples = std::cell::RefCell::new(Vec::new());
            let report = load.run(|| {
                samples.borrow_mut().push(thread_times(server.process_id())?);
                server.cpu_time()
            })?;
            let operations = report.latencies.count().max(1) as f64;
            let samples = samples.into_inner();
            let [Some(before), Some(after)] = [samples.first(), samples.last()] else { continue };
            for (name, used) in differences(before, after) {
                let figures = [used.user, used.system].map(|time| time.as_secs_f64() * 1e6 / operations);
                if figures.iter().sum::<f64>() < 0.02 {
                    continue;
                }
                let mut cells = vec![work.name().into(), placement.into(), name];
                cells.extend(figures.map(|figure| format!("{figure:.2}")));
                cells.push(format!("{:.3}", used.sleeps as f64 / operations));
                cells.push(format!("{:.0}", report.per_s));
                table.row(cells);
            }
        }
        server.stop()?;
    }
    println!("{table}");
    Ok(())
}

fn differences(before: &[ThreadTime], after: &[ThreadTime]) -> BTreeMap<String, ThreadTime> {
    let mut used = BTreeMap::new();
    for (first, last) in before.iter().zip(after) {
        let difference = ThreadTime {
            name: last.name.clone(),
            user: last.user.saturating_sub(first.user),
            system: last.system.saturating_sub(first.system),
            sleeps: last.sleeps.saturating_sub(first.sleeps),
        };
        used.insert(last.name.clone(), difference);
    }
    used
}
