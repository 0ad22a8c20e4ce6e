//! Tables, plots and verdicts of the thread pool's experiment.

use super::DEFAULT_SIDE;
use crate::Outcome;
use crate::event_load::work::Work;
use crate::plot::{Labels, LineChart, Point, Scale, Series};
use crate::report::{Table, Verdict};

/// Least ratio of the throughput with the most connections to the highest one.
const THROUGHPUT_RATIO_MIN: f64 = 0.85;
/// Most by which the 99th percentile of a statement inside a transaction may grow with the connections.
const INSIDE_RATIO_MAX: f64 = 2.0;
/// The number of connections with which that percentile is compared.
const INSIDE_CONNECTIONS: usize = 64;
/// The number of connections that the targets apply to.
const MOST_CONNECTIONS: usize = 16_384;

/// Figures of a server with a number of connections.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures {
    /// Operations per second.
    pub per_s: f64,
    /// 99th percentile of the duration of an operation, in microseconds.
    pub p99_us: f64,
    /// 99th percentile of the duration of a statement inside an open transaction, in microseconds; 0 if
    /// operations have one statement.
    pub inside_p99_us: f64,
}

/// All figures of the experiment.
#[derive(Default)]
pub struct Page {
    /// Operation, side, number of connections, figures.
    pub rows: Vec<(Work, &'static str, usize, Figures)>,
    /// Number of connections of an echo server, and its replies per second.
    pub echo: Vec<(usize, f64)>,
}

type Figure = (&'static str, &'static str, fn(&Figures) -> f64);

/// File name, description, and figure in the unit of the description.
const FIGURES: [Figure; 3] = [
    ("throughput", "operations per second", |figures| figures.per_s),
    ("latency", "99th percentile of an operation, milliseconds", |figures| figures.p99_us / 1000.0),
    ("inside", "99th percentile of a statement inside a transaction, milliseconds", |figures| {
        figures.inside_p99_us / 1000.0
    }),
];

impl Page {
    /// The tables of an operation, in Markdown.
    pub fn tables(&self, work: Work) -> String {
        let sides = self.sides(work);
        let mut text = String::new();
        for (_, description, figure) in figures_of(work) {
            let mut heads = vec!["connections"];
            heads.extend(&sides);
            let mut table = Table::new(&heads);
            for (connections, _) in &self.echo {
                let mut cells = vec![connections.to_string()];
                cells.extend(sides.iter().map(|side| {
                    self.figures(work, side, *connections).map_or(String::new(), |figures| digits(figure(&figures)))
                }));
                table.row(cells);
            }
            if *description == FIGURES[0].1 {
                let mut cells = vec!["last to highest".to_owned()];
                cells.extend(sides.iter().map(|side| format!("{:.2}", self.last_to_highest(work, side))));
                table.row(cells);
            }
            text += &format!("{}: {description}\n\n{table}\n", work.name());
        }
        text
    }

    /// The targets of the default mode, with what was measured.
    pub fn verdicts(&self) -> Vec<Verdict> {
        let mut verdicts = Vec::new();
        let last = self.echo.last().map_or(0, |(connections, _)| *connections);
        if last != MOST_CONNECTIONS {
            return verdicts;
        }
        let echo = last_to_highest(self.echo.iter().map(|(_, per_s)| *per_s));
        for work in self.works() {
            let name = work.name();
            // What sockets cost for any server is not the thread pool's.
            verdicts.push(Verdict {
                what: format!("{name}: highest throughput to the last, by that of an echo ({echo:.2} last to highest)"),
                allowed_max: 1.0 / THROUGHPUT_RATIO_MIN,
                measured: echo.min(1.0) / self.last_to_highest(work, DEFAULT_SIDE),
            });
            let inside =
                |connections| self.figures(work, DEFAULT_SIDE, connections).map(|figures| figures.inside_p99_us);
            if work.statements() > 1
                && let (Some(few), Some(many)) = (inside(INSIDE_CONNECTIONS), inside(last))
            {
                verdicts.push(Verdict {
                    what: format!("{name}: p99 of a statement inside a transaction, {last} to {INSIDE_CONNECTIONS}"),
                    allowed_max: INSIDE_RATIO_MAX,
                    measured: many / few,
                });
            }
        }
        verdicts
    }

    /// Names and contents of the report and its plots.
    ///
    /// # Errors
    /// A plot cannot be laid out.
    pub fn files(&self) -> Outcome<Vec<(String, String)>> {
        let mut text = String::from("# The thread pool by the number of connections\n");
        let mut files = Vec::new();
        for work in self.works() {
            text += &format!("\n## {}\n\n", work.name());
            for (name, description, figure) in figures_of(work) {
                let file = format!("{name}-{}.svg", work.name());
                text += &format!("![{description}]({file})\n\n");
                files.push((file, self.chart(work, description, *figure).svg()?));
            }
            text += &self.tables(work);
        }
        let mut table = Table::new(&["connections", "echo, replies per second"]);
        self.echo.iter().for_each(|(connections, per_s)| table.row(vec![connections.to_string(), digits(*per_s)]));
        text += &format!("\n## An echo server\n\n{table}");
        files.push(("thread_pool.md".into(), text));
        Ok(files)
    }

    fn chart(&self, work: Work, description: &str, figure: fn(&Figures) -> f64) -> LineChart {
        let point = |side: &str, connections: usize| {
            let figures = self.figures(work, side, connections)?;
            Some(Point::new(connections as f64, figure(&figures)))
        };
        let series = self.sides(work).into_iter().map(|side| Series {
            name: side.into(),
            points: self.echo.iter().filter_map(|(connections, _)| point(side, *connections)).collect(),
        });
        LineChart {
            labels: Labels {
                title: format!("{}: {description}", work.name()),
                x_label: "connections".into(),
                y_label: description.into(),
                reference: None,
            },
            x_scale: Scale::Logarithmic,
            y_scale: if description == FIGURES[0].1 { Scale::Linear } else { Scale::Logarithmic },
            x_ticks: self.echo.iter().map(|(connections, _)| *connections as f64).collect(),
            series: series.collect(),
        }
    }

    fn works(&self) -> Vec<Work> {
        let mut works: Vec<Work> = self.rows.iter().map(|row| row.0).collect();
        works.dedup();
        works
    }

    fn sides(&self, work: Work) -> Vec<&'static str> {
        let mut sides = Vec::new();
        for row in self.rows.iter().filter(|row| row.0 == work) {
            if !sides.contains(&row.1) {
                sides.push(row.1);
            }
        }
        sides
    }

    fn figures(&self, work: Work, side: &str, connections: usize) -> Option<Figures> {
        self.rows.iter().find(|row| row.0 == work && row.1 == side && row.2 == connections).map(|row| row.3)
    }

    fn last_to_highest(&self, work: Work, side: &str) -> f64 {
        last_to_highest(self.rows.iter().filter(|row| row.0 == work && row.1 == side).map(|row| row.3.per_s))
    }
}

fn figures_of(work: Work) -> impl Iterator<Item = &'static Figure> {
    FIGURES.iter().filter(move |figure| figure.0 != "inside" || work.statements() > 1)
}

fn last_to_highest(rates: impl Iterator<Item = f64>) -> f64 {
    let (last, highest) = rates.fold((0.0, 0.0_f64), |(_, highest), rate| (rate, highest.max(rate)));
    last / highest
}

fn digits(figure: f64) -> String {
    if figure < 100.0 { format!("{figure:.2}") } else { format!("{figure:.0}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(per_s: [f64; 3], inside: [f64; 3], echo: [f64; 3]) -> Page {
        let counts = [1, 64, 16_384];
        let row = |number: usize| {
            let figures = Figures { per_s: per_s[number], p99_us: 5.0, inside_p99_us: inside[number] };
            (Work::ReadWrite, DEFAULT_SIDE, counts[number], figures)
        };
        Page { rows: (0..3).map(row).collect(), echo: (0..3).map(|number| (counts[number], echo[number])).collect() }
    }

    fn met(page: &Page) -> Vec<bool> {
        page.verdicts().iter().map(Verdict::is_met).collect()
    }

    #[test]
    fn flat_throughput_and_steady_statements_meet_the_targets() {
        assert_eq!(met(&page([50.0, 100.0, 86.0], [1.0, 10.0, 20.0], [9.0, 9.0, 9.0])), [true, true]);
        assert_eq!(met(&page([50.0, 100.0, 84.0], [1.0, 10.0, 21.0], [9.0, 9.0, 9.0])), [false, false]);
    }

    #[test]
    fn throughput_is_judged_beside_an_echo() {
        assert_eq!(met(&page([50.0, 100.0, 60.0], [1.0, 1.0, 1.0], [10.0, 10.0, 7.0])), [true, true]);
    }

    #[test]
    fn the_report_has_a_plot_of_each_figure() {
        let files = page([1.0; 3], [1.0; 3], [1.0; 3]).files().expect("drawn");
        let names: Vec<&str> = files.iter().map(|file| file.0.as_str()).collect();
        assert_eq!(
            names,
            ["throughput-read-write.svg", "latency-read-write.svg", "inside-read-write.svg", "thread_pool.md"]
        );
        assert!(files[3].1.contains("| 16384"), "{}", files[3].1);
    }
}
