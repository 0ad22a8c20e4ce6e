//! Tables and plots of the simulation results.

use std::fmt::Write;

use junctor_gateway::route::ReadRule;

use super::changing::{self, PHASES, SLICE_NS, Setup};
use super::demand::MEASURED;
use super::request::Workload;
use super::study::Study;
use crate::Outcome;
use crate::plot::{Bar, BarChart, BarSeries, Labels, LineChart, Point, Scale, Series};
use crate::report::Table;

const READING: &str = "automatic, if recv could read";

/// The output.
pub struct Page {
    /// All tables, in Markdown.
    pub tables: String,
    /// File names, with the SVG documents.
    pub plots: Vec<(String, String)>,
}

/// Creates the tables and plots.
///
/// # Errors
/// A plot cannot be laid out.
pub fn page(studies: &[Study], setups: &[Setup]) -> Outcome<Page> {
    let mut tables = String::from("# Figures of the simulation\n\nPrinted by `junctor-bench scale`.\n\n## Demands\n\n");
    let mut add = |text: String| {
        tables.push_str(&text);
        tables.push('\n');
    };
    add(demands().to_string());
    for study in studies {
        add(format!("## {} CPUs\n", study.cpus));
        add(throughput(study).to_string());
        add(format!("Best found: {}.\n", study.best.candidate.describe()));
        add(roles(study).to_string());
        add(latencies(study).to_string());
        add(sensitivity(study));
    }
    add(format!("## A workload that changes, {} CPUs\n", changing::CPUS));
    add(phases(setups).to_string());
    let mut plots = vec![("throughput.svg".into(), by_cpus(studies).svg()?)];
    for study in studies {
        plots.push((format!("roles-{}.svg", study.cpus), role_chart(study).svg()?));
    }
    plots.push(("sensitivity.svg".into(), sensitivity_chart(studies).svg()?));
    for (placement, name) in [("receive", "receive"), ("automatic", "automatic"), (READING, "reading")] {
        plots.push((format!("changing-{name}.svg"), changing_chart(setups, placement).svg()?));
    }
    Ok(Page { tables, plots })
}

fn demands() -> Table {
    let mut table = Table::new(&["demand", "ns", "from"]);
    for measured in &MEASURED {
        table.row(vec![measured.demand.name().into(), measured.nanoseconds.to_string(), measured.source.into()]);
    }
    table
}

fn throughput(study: &Study) -> Table {
    let mut columns = vec!["thousand operations a second", "threads"];
    columns.extend(Workload::ALL.map(Workload::name));
    columns.push("score to the best pipeline");
    let mut table = Table::new(&columns);
    for judged in study.named.iter().chain([&study.best]) {
        let mut cells = vec![judged.candidate.name.clone(), judged.candidate.describe()];
        cells.extend(judged.per_s.iter().map(|per_s| format!("{:.1}", per_s / 1000.0)));
        cells.push(format!("{:.3}", judged.score() / study.best.score()));
        table.row(cells);
    }
    table
}

fn roles(study: &Study) -> Table {
    let names = role_names(study);
    let mut columns = vec!["per cent busy, mean of a role's threads", "workload"];
    columns.extend(names.iter().map(String::as_str));
    columns.push("busiest");
    let mut table = Table::new(&columns);
    for (placement, workload, roles) in &study.roles {
        let mut cells = vec![placement.clone(), workload.name().into()];
        let of = |name: &String| roles.iter().find(|(role, _)| role == name).map(|(_, busy)| *busy);
        cells.extend(names.iter().map(|name| of(name).map_or(String::new(), |busy| format!("{:.0}", busy * 100.0))));
        let busiest = roles.iter().max_by(|one, other| one.1.total_cmp(&other.1));
        cells.push(busiest.map_or(String::new(), |(role, _)| role.clone()));
        table.row(cells);
    }
    table
}

fn latencies(study: &Study) -> Table {
    let mut table = Table::new(&["one client for each CPU", "workload", "p50 us", "p99 us"]);
    for (placement, workload, latencies) in &study.latencies {
        let mut cells = vec![placement.clone(), workload.name().into()];
        cells.extend(latencies.map(|latency| format!("{latency:.0}")));
        table.row(cells);
    }
    table
}

/// The roles that take part in requests.
fn role_names(study: &Study) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (role, _) in study.roles.iter().flat_map(|(_, _, roles)| roles) {
        if !names.contains(role) && !matches!(role.as_str(), "main" | "rep" | "main_rep" | "io") {
            names.push(role.clone());
        }
    }
    names
}

fn sensitivity(study: &Study) -> String {
    let mut text = String::new();
    let least = study.sensitivity.iter().min_by(|one, other| one.1.total_cmp(&other.1));
    if let Some((change, ratio, best)) = least {
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "Over {} changes of the demands, our table's score is at least {ratio:.3} of the best\n({change}; best there: {best}).",
            study.sensitivity.len()
        );
    }
    text
}

fn phases(setups: &[Setup]) -> Table {
    let mut columns = vec!["operations a second", "rule"];
    columns.extend(PHASES);
    columns.push("score to the best static rule of each phase");
    let mut table = Table::new(&columns);
    for setup in setups {
        let best = changing::best_static(setups, setup.placement);
        let mut cells = vec![setup.placement.into(), setup.rule.name().into()];
        cells.extend(setup.per_s.iter().map(|per_s| format!("{per_s:.0}")));
        cells.push(format!("{:.3}", setup.score(&best)));
        table.row(cells);
    }
    table
}

fn by_cpus(studies: &[Study]) -> LineChart {
    let names: Vec<String> = studies
        .iter()
        .flat_map(|study| study.named.iter().map(|judged| judged.candidate.name.clone()))
        .fold(Vec::new(), |mut names, name| {
            if !names.contains(&name) {
                names.push(name);
            }
            names
        });
    let mut series: Vec<Series> = names
        .into_iter()
        .map(|name| {
            let of = |study: &Study| {
                let judged = study.named.iter().find(|judged| judged.candidate.name == name)?;
                Some(Point::new(f64::from(study.cpus), judged.score()))
            };
            Series { points: studies.iter().filter_map(of).collect(), name }
        })
        .collect();
    let best = studies.iter().map(|study| Point::new(f64::from(study.cpus), study.best.score())).collect();
    series.push(Series { name: "best pipeline found".into(), points: best });
    LineChart {
        labels: Labels {
            title: "Throughput, geometric mean of five workloads (simulated)".into(),
            x_label: "CPUs".into(),
            y_label: "operations a second".into(),
            ..Labels::default()
        },
        x_scale: Scale::Logarithmic,
        y_scale: Scale::Logarithmic,
        x_ticks: studies.iter().map(|study| f64::from(study.cpus)).collect(),
        series,
    }
}

fn role_chart(study: &Study) -> BarChart {
    let names = role_names(study);
    let of = |workload: Workload, name: &String| {
        let run = study.roles.iter().find(|(placement, of, _)| placement == "automatic" && *of == workload);
        let busy = run.and_then(|(_, _, roles)| roles.iter().find(|(role, _)| role == name));
        Bar::new(busy.map_or(f64::NAN, |(_, busy)| busy * 100.0))
    };
    let series = names
        .iter()
        .map(|name| BarSeries {
            name: name.clone(),
            bars: Workload::ALL.into_iter().map(|workload| of(workload, name)).collect(),
        })
        .collect();
    BarChart {
        labels: Labels {
            title: format!("How busy the threads of each role are, automatic table, {} CPUs (simulated)", study.cpus),
            x_label: "workload".into(),
            y_label: "per cent of the time".into(),
            ..Labels::default()
        },
        groups: Workload::ALL.map(|workload| workload.name().to_string()).to_vec(),
        series,
        ..BarChart::default()
    }
}

fn sensitivity_chart(studies: &[Study]) -> LineChart {
    let series = studies
        .iter()
        .map(|study| {
            let ratios = study.sensitivity.iter().map(|(_, ratio, _)| *ratio);
            let points = ratios.enumerate().map(|(number, ratio)| Point::new(number as f64, ratio)).collect();
            Series { name: format!("{} CPUs", study.cpus), points }
        })
        .collect();
    LineChart {
        labels: Labels {
            title: "The automatic table by the best pipeline found, each demand 30 per cent off (simulated)".into(),
            x_label: "change: 0 none, then each demand of the table less and more, last all".into(),
            y_label: "score by the best score".into(),
            ..Labels::default()
        },
        series,
        ..LineChart::default()
    }
}

fn changing_chart(setups: &[Setup], placement: &str) -> LineChart {
    let of_placement = setups.iter().filter(|setup| setup.placement == placement);
    let series = of_placement
        .map(|setup| {
            let seconds = |slice: usize| (slice as f64 + 0.5) * SLICE_NS as f64 / 1e9;
            let points =
                setup.slices.iter().enumerate().map(|(slice, per_s)| Point::new(seconds(slice), *per_s)).collect();
            let name = if setup.rule == ReadRule::Adaptive {
                "adaptive".into()
            } else {
                format!("always {}", setup.rule.name())
            };
            Series { name, points }
        })
        .collect();
    LineChart {
        labels: Labels {
            title: format!("A workload that changes each second, 16 CPUs, placement {placement} (simulated)"),
            x_label: "seconds".into(),
            y_label: "operations a second".into(),
            ..Labels::default()
        },
        y_scale: Scale::Logarithmic,
        series,
        ..LineChart::default()
    }
}
