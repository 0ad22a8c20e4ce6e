//! Sysbench on both databases, alternating.

use super::reads::Figures;
use super::{CompareOptions, Pair, sysbench_run};
use crate::process::Server;
use crate::report::Table;
use crate::sysbench::{BULK_SCRIPT, StatementMode, SysbenchRun, TABLE_SCRIPTS, own_script};
use crate::{Failure, Outcome};

/// Our own script, for IN lists.
pub const IN_LIST: &str = "in_list.lua";
/// Number of events of oltp_delete. Its cost depends on the rows that earlier runs left, so both databases
/// run the same number.
const DELETE_EVENTS: u64 = 50_000;

/// One script on Junctor and on MariaDB, in this order.
pub struct Script {
    /// Name of the script.
    pub name: String,
    /// How statements are sent.
    pub mode: StatementMode,
    /// Figures of each database.
    pub sides: [Figures; 2],
    /// Errors 1213 and 1205 per thousand events, of each database.
    pub errors_per_thousand: [f64; 2],
}

/// Measures all scripts.
///
/// # Errors
/// A script that fails.
pub fn measure(pair: &Pair, options: &CompareOptions) -> Outcome<Vec<Script>> {
    let mut scripts = Vec::new();
    let names = [IN_LIST].into_iter().chain(TABLE_SCRIPTS).chain([BULK_SCRIPT]);
    for name in names.filter(|name| options.scripts.is_empty() || options.scripts.iter().any(|wanted| wanted == name)) {
        for mode in [StatementMode::Text, StatementMode::Prepared] {
            scripts.push(measure_script(pair, options, name, mode)?);
        }
    }
    Ok(scripts)
}

fn measure_script(pair: &Pair, options: &CompareOptions, name: &str, mode: StatementMode) -> Outcome<Script> {
    let mut run = sysbench_run(options, name, mode);
    match name {
        IN_LIST => {
            let path = own_script(name).ok_or_else(|| Failure::new(format!("{name} is not in the sources")))?;
            run.script = path.to_string_lossy().into_owned();
        }
        "oltp_delete" => (run.time_s, run.events) = (0, DELETE_EVENTS),
        BULK_SCRIPT => {
            run.database = "sbbulk".into();
            run.arguments.clear();
        }
        _ => {}
    }
    let mut samples: [Vec<Figures>; 2] = Default::default();
    let mut errors = [0; 2];
    let mut events = [0; 2];
    for repetition in 0..options.repetitions as usize {
        for turn in 0..2 {
            let side = (turn + repetition) % 2;
            let (figures, event_count, error_count) = sample(pair.both()[side], &run)?;
            samples[side].push(figures);
            events[side] += event_count;
            errors[side] += error_count;
        }
    }
    let rate = |side: usize| errors[side] as f64 * 1000.0 / (events[side] as f64).max(1.0);
    let script = Script {
        name: name.trim_end_matches(".lua").into(),
        mode,
        sides: samples.map(|samples| Figures::medians(&samples)),
        errors_per_thousand: [rate(0), rate(1)],
    };
    let cpu = script.sides.map(|side| side.cpu_us);
    eprintln!("{} {}: CPU us {:.1}, MariaDB {:.1}", script.name, mode.name(), cpu[0], cpu[1]);
    Ok(script)
}

fn sample(server: &Server, run: &SysbenchRun) -> Outcome<(Figures, u64, u64)> {
    let bulk = run.script == BULK_SCRIPT;
    if bulk {
        server.execute(&["DROP DATABASE IF EXISTS sbbulk", "CREATE DATABASE sbbulk"])?;
        run.prepare(server)?;
    }
    let before = server.cpu_time()?;
    let report = run.run(server)?;
    let cpu = server.cpu_time()? - before;
    if report.events == 0 {
        return Err(Failure::new(format!("{}: sysbench reported no events on {}", run.script, server.name)));
    }
    let cpu_us = cpu.as_secs_f64() * 1e6 / report.events as f64;
    let figures = Figures { per_s: report.events_per_s, p95_us: report.p95_ms * 1000.0, cpu_us };
    Ok((figures, report.events, report.ignored_errors))
}

/// Prints all figures as a table.
pub fn table(scripts: &[Script]) -> Table {
    let mut table = Table::new(&[
        "sysbench script",
        "events/s",
        "MariaDB",
        "ratio",
        "p95 us",
        "MariaDB",
        "CPU us/event",
        "MariaDB",
        "ratio",
        "1213+1205 a thousand",
        "MariaDB",
    ]);
    for script in scripts {
        let [junctor, mariadb] = script.sides;
        table.row(vec![
            format!("{}, {}", script.name, script.mode.name()),
            format!("{:.0}", junctor.per_s),
            format!("{:.0}", mariadb.per_s),
            format!("{:.2}", junctor.per_s / mariadb.per_s),
            format!("{:.0}", junctor.p95_us),
            format!("{:.0}", mariadb.p95_us),
            format!("{:.2}", junctor.cpu_us),
            format!("{:.2}", mariadb.cpu_us),
            format!("{:.2}", junctor.cpu_us / mariadb.cpu_us),
            format!("{:.3}", script.errors_per_thousand[0]),
            format!("{:.3}", script.errors_per_thousand[1]),
        ]);
    }
    table
}
