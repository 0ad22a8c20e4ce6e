//! Text tables of the results.

use super::record::{Record, by_setup};
use super::routing_figures::RoutingFigures;
use super::setup::{ADAPTIVE, Role, Setup};
use super::verdict::{Comparison, FIXED_RULE_RATIO_MIN, RATIO_MIN};
use super::workload::{ComparedFigure, Workload};
use crate::report::Table;
use crate::statistics::{Interval, median};

/// Threads that used less CPU than this, in per cent of the measured time, are left out.
const SHOWN_CPU_PERCENT_MIN: f64 = 1.0;

/// Results of a workload: medians over the repetitions, and ratios to the best static setup.
pub fn workload_page(workload: &Workload, setups: &[Setup], records: &[Record], comparison: &Comparison) -> String {
    let mut table = Table::new(&[
        "setup",
        "operations/s",
        "to best static",
        "p50 us",
        "p95 us",
        "p99 us",
        "p99.9 us",
        "CPU us",
        "hand-overs",
        "switches",
        "undone",
    ]);
    let measured = by_setup(records, workload.name);
    let mut threads = String::new();
    for setup in setups {
        let Some(all) = measured.get(setup.name) else { continue };
        let of = |figure: fn(&Record) -> f64| median(&all.iter().map(|record| figure(record)).collect::<Vec<f64>>());
        table.row(vec![
            setup.name.into(),
            format!("{:.0}", of(|record| record.operations_per_second)),
            comparison.ratio(setup.name).map_or(String::new(), show),
            format!("{:.0}", of(|record| record.latency_us.p50)),
            format!("{:.0}", of(|record| record.latency_us.p95)),
            format!("{:.0}", of(|record| record.latency_us.p99)),
            format!("{:.0}", of(|record| record.latency_us.p99_9)),
            format!("{:.1}", of(|record| record.cpu_us_per_operation)),
            format!("{:.2}", of(|record| record.hand_overs_per_operation)),
            format!("{:.2}", of(|record| record.context_switches_per_operation)),
            format!("{}", all.iter().map(|record| record.undone).sum::<u64>()),
        ]);
        threads += &format!("    {}: {}\n", setup.name, threads_line(all));
        threads += &routing_lines(all);
        if workload.phases.len() > 1 {
            threads += &format!("        operations/s by phase: {}\n", phases_line(all));
        }
    }
    let best = comparison.best_static.unwrap_or("none was measured");
    let by = match workload.judged {
        ComparedFigure::Throughput => "operations/s",
        ComparedFigure::MedianLatency => "median latency",
    };
    format!(
        "== {}: {}\n\n{table}\nBest static setup by {by}: {best}. Threads, CPU+spinning in per cent of the time:\n{threads}",
        workload.name, workload.meaning
    )
}

/// The threads by name, with medians over the repetitions.
fn threads_line(records: &[&Record]) -> String {
    let Some(first) = records.first() else { return String::new() };
    let shown = first.threads.iter().filter_map(|thread| {
        let same = || records.iter().filter_map(|record| record.threads.iter().find(|other| other.name == thread.name));
        let cpu = median(&same().map(|thread| thread.cpu_percent).collect::<Vec<f64>>());
        let spin = median(&same().filter_map(|thread| thread.spin_percent).collect::<Vec<f64>>());
        let cycles = median(&same().filter_map(|thread| thread.instructions_per_cycle).collect::<Vec<f64>>());
        let hardware = if cycles > 0.0 { format!(" (IPC {cycles:.2})") } else { String::new() };
        (cpu >= SHOWN_CPU_PERCENT_MIN).then(|| format!("{} {cpu:.0}+{spin:.0}{hardware}", thread.name))
    });
    shown.collect::<Vec<String>>().join(", ")
}

/// Which threads ran reads, for setups with adaptive routing.
fn routing_lines(records: &[&Record]) -> String {
    let mut kinds: Vec<RoutingFigures> = Vec::new();
    for figures in records.iter().flat_map(|record| &record.routing) {
        match kinds.iter_mut().find(|kind| (&kind.table, &kind.operation) == (&figures.table, &figures.operation)) {
            Some(kind) => kind.add(figures),
            None => kinds.push(figures.clone()),
        }
    }
    let time = |time_ns: Option<f64>| time_ns.map_or("?".into(), |time_ns| format!("{time_ns:.0}"));
    let line = |kind: &RoutingFigures| {
        let percent = |count: u64| format!("{:.1}", count as f64 * 100.0 / kind.chosen() as f64);
        format!(
            "        {} of {}: {} per cent here, {} owner, {} query; explored {}; {} ns each here, {} away\n",
            kind.operation,
            kind.table,
            percent(kind.chosen_here),
            percent(kind.chosen_owner),
            percent(kind.chosen_query),
            percent(kind.explored),
            time(kind.here_ns),
            time(kind.away_ns)
        )
    };
    kinds.iter().map(line).collect()
}

fn phases_line(records: &[&Record]) -> String {
    let phases = records.first().map_or(0, |record| record.phase_operations_per_second.len());
    let of = |phase: usize| {
        let figures: Vec<f64> =
            records.iter().filter_map(|record| record.phase_operations_per_second.get(phase).copied()).collect();
        format!("{:.0}", median(&figures))
    };
    (0..phases).map(of).collect::<Vec<String>>().join(", ")
}

/// Summarises all workloads in one table, and tells whether adaptive routing meets its targets.
pub fn verdict_page(setups: &[Setup], comparisons: &[Comparison]) -> String {
    let named = format!("adaptive >= {RATIO_MIN}");
    let controls: Vec<&Setup> = setups.iter().filter(|setup| setup.role == Role::Control).collect();
    let mut columns = vec!["workload", "best static", "adaptive to best static", named.as_str()];
    columns.extend(controls.iter().map(|setup| setup.name));
    let mut table = Table::new(&columns);
    for comparison in comparisons {
        let ratio = |setup: &str| comparison.ratio(setup).map_or("-".into(), show);
        let met = match comparison.adaptive_meets_target() {
            Some(true) => "yes",
            Some(false) => "NO",
            None => "-",
        };
        let mut row = vec![comparison.workload.into(), comparison.best_static.unwrap_or("-").into()];
        row.extend([ratio(ADAPTIVE), met.into()]);
        row.extend(controls.iter().map(|setup| ratio(setup.name)));
        table.row(row);
    }
    let mut page = format!("== In short (mean of paired ratios, 95 per cent interval)\n\n{table}\n");
    for control in controls.iter().filter(|control| comparisons.iter().any(|one| one.ratio(control.name).is_some())) {
        let failed: Vec<&str> =
            comparisons.iter().filter(|one| one.is_too_weak(control.name)).map(|one| one.workload).collect();
        let failed = if failed.is_empty() { "no workload".into() } else { failed.join(", ") };
        page += &format!(
            "{} is certainly below {FIXED_RULE_RATIO_MIN} of the best static setup on {failed}.\n",
            control.name
        );
    }
    if let Some(changing) = comparisons.iter().find(|one| one.workload == "changing" && !one.adaptive_to.is_empty()) {
        let ratios: Vec<String> =
            changing.adaptive_to.iter().map(|(setup, ratio)| format!("{setup} {}", show(*ratio))).collect();
        let beats = if changing.beats_all() { "beats" } else { "does not certainly beat" };
        page += &format!("On the changing workload adaptive {beats} every static setup: {}.\n", ratios.join(", "));
    }
    page
}

fn show(ratio: Interval) -> String {
    if ratio.high.is_finite() {
        format!("{:.3} ({:.3}-{:.3})", ratio.mean, ratio.low, ratio.high)
    } else {
        format!("{:.3}", ratio.mean)
    }
}
