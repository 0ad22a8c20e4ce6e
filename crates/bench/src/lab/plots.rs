//! Charts of a whole run, one file each.

use std::fs;
use std::path::Path;

use super::record::{Record, by_setup};
use super::setup::Setup;
use super::verdict::{Comparison, RATIO_MIN};
use super::workload::Workload;
use crate::Outcome;
use crate::failure::Explain;
use crate::plot::axis::Scale;
use crate::plot::bar_chart::{Bar, BarChart, BarSeries};
use crate::plot::frame::Labels;
use crate::statistics::median;

/// Selects the figure that a bar shows.
type Figure = dyn Fn(&Record) -> f64;

/// Writes the charts into a folder, which is created if missing.
///
/// # Errors
/// A file cannot be written.
pub fn write_plots(
    folder: &Path,
    workloads: &[&'static Workload],
    setups: &[Setup],
    records: &[Record],
    comparisons: &[Comparison],
) -> Outcome<()> {
    fs::create_dir_all(folder).explain(folder.display())?;
    let medians = |title: &str, y_label: &str, y_scale, figure: &Figure| BarChart {
        labels: Labels { title: title.into(), x_label: "workload".into(), y_label: y_label.into(), reference: None },
        y_scale,
        groups: workloads.iter().map(|workload| workload.name.to_string()).collect(),
        series: setups.iter().map(|setup| series(setup, workloads, records, figure)).collect(),
    };
    let mut charts = vec![
        ("ratio.svg", ratios(setups, comparisons)),
        ("p50.svg", medians("Median latency", "microseconds", Scale::Logarithmic, &|record| record.latency_us.p50)),
        (
            "p99.svg",
            medians("Latency of 99 per cent", "microseconds", Scale::Logarithmic, &|record| record.latency_us.p99),
        ),
        (
            "cpu.svg",
            medians("CPU of the node for an operation", "microseconds", Scale::Logarithmic, &|record| {
                record.cpu_us_per_operation
            }),
        ),
        (
            "hand_overs.svg",
            medians("Hand-overs for an operation", "signals and events", Scale::Linear, &|record| {
                record.hand_overs_per_operation
            }),
        ),
        (
            "switches.svg",
            medians("Context switches of the node for an operation", "switches", Scale::Linear, &|record| {
                record.context_switches_per_operation
            }),
        ),
    ];
    if let Some(changing) = workloads.iter().find(|workload| workload.phases.len() > 1) {
        charts.push(("phases.svg", phases(changing, setups, records)));
    }
    for (name, chart) in charts {
        let path = folder.join(name);
        fs::write(&path, chart.svg()?).explain(path.display())?;
    }
    Ok(())
}

/// Ratios of every setup to the best static one, with intervals.
fn ratios(setups: &[Setup], comparisons: &[Comparison]) -> BarChart {
    let bar = |setup: &Setup, comparison: &Comparison| match comparison.ratio(setup.name) {
        Some(ratio) if ratio.high.is_finite() => Bar { figure: ratio.mean, interval: Some([ratio.low, ratio.high]) },
        Some(ratio) => Bar::new(ratio.mean),
        None => Bar::new(f64::NAN),
    };
    let series = |setup: &Setup| BarSeries {
        name: setup.name.into(),
        bars: comparisons.iter().map(|comparison| bar(setup, comparison)).collect(),
    };
    BarChart {
        labels: Labels {
            title: "Each setup to the best static one".into(),
            x_label: "workload".into(),
            y_label: "ratio, with 95 per cent intervals".into(),
            reference: Some((RATIO_MIN, "adaptive's aim".into())),
        },
        y_scale: Scale::Linear,
        groups: comparisons.iter().map(|comparison| comparison.workload.to_string()).collect(),
        series: setups.iter().map(series).collect(),
    }
}

fn series(setup: &Setup, workloads: &[&'static Workload], records: &[Record], figure: &Figure) -> BarSeries {
    let bar = |workload: &&Workload| {
        let measured = by_setup(records, workload.name);
        let figures: Vec<f64> = measured.get(setup.name).into_iter().flatten().map(|record| figure(record)).collect();
        Bar::new(if figures.is_empty() { f64::NAN } else { median(&figures) })
    };
    BarSeries { name: setup.name.into(), bars: workloads.iter().map(bar).collect() }
}

fn phases(workload: &Workload, setups: &[Setup], records: &[Record]) -> BarChart {
    let measured = by_setup(records, workload.name);
    let bar = |setup: &Setup, phase: usize| {
        let of_phase = |record: &&Record| record.phase_operations_per_second.get(phase).copied();
        let figures: Vec<f64> = measured.get(setup.name).into_iter().flatten().filter_map(of_phase).collect();
        Bar::new(if figures.is_empty() { f64::NAN } else { median(&figures) })
    };
    let series = |setup: &Setup| BarSeries {
        name: setup.name.into(),
        bars: (0..workload.phases.len()).map(|phase| bar(setup, phase)).collect(),
    };
    BarChart {
        labels: Labels {
            title: "The changing workload, phase by phase".into(),
            x_label: "phase".into(),
            y_label: "operations in a second".into(),
            reference: None,
        },
        y_scale: Scale::Linear,
        groups: (1..=workload.phases.len()).map(|phase| phase.to_string()).collect(),
        series: setups.iter().map(series).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::client::Tally;
    use super::super::setup::setups;
    use super::super::workload::WORKLOADS;
    use super::*;
    use crate::process::TemporaryFolder;

    #[test]
    fn every_chart_is_written_even_if_setups_are_missing() {
        let workloads: Vec<&'static Workload> = WORKLOADS.iter().collect();
        let records: Vec<Record> = workloads
            .iter()
            .flat_map(|workload| ["ldm", "adaptive"].map(|setup| (workload, setup)))
            .map(|(workload, setup)| {
                let mut tally = Tally { phase_operations: vec![2; workload.phases.len()], ..Tally::default() };
                (0..8).for_each(|_| tally.latencies.add(1500));
                Record::new((workload, setup, 0), 1, 1.0, tally, (Vec::new(), Vec::new()))
            })
            .collect();
        let setups = setups(2);
        let comparisons: Vec<Comparison> =
            workloads.iter().map(|workload| Comparison::new(workload, &setups, &records)).collect();
        let folder = TemporaryFolder::new("plots").expect("a folder");
        let inner = folder.path().join("new");
        write_plots(&inner, &workloads, &setups, &records, &comparisons).expect("written");
        let mut names: Vec<_> = fs::read_dir(&inner)
            .expect("there")
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .collect();
        names.sort();
        assert_eq!(
            names,
            ["cpu.svg", "hand_overs.svg", "p50.svg", "p99.svg", "phases.svg", "ratio.svg", "switches.svg"]
        );
        for name in names {
            let text = fs::read_to_string(inner.join(&name)).expect("text");
            assert!(text.starts_with("<svg") && text.trim_end().ends_with("</svg>"), "{name}");
            assert!(text.contains("in_list") || name == "phases.svg", "{name}");
        }
    }
}
