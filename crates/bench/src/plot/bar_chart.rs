//! Groups of bars.

use super::axis::{Axis, Scale, figure_text};
use super::svg::{ACROSS, Document, UPWARD, colour};

/// A bar; one that is not a number is left out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bar {
    /// Its height.
    pub figure: f64,
    /// The least and the greatest that it may be, such as a 95 per cent interval.
    pub interval: Option<[f64; 2]>,
}

impl Bar {
    /// A bar without an interval.
    pub fn new(figure: f64) -> Bar {
        Bar { figure, interval: None }
    }
}

/// The bars of one colour, one in each group.
#[derive(Clone, Debug, Default)]
pub struct BarSeries {
    /// What the legend calls it.
    pub name: String,
    /// A bar for each group, in the order of the groups; those that are missing stay empty.
    pub bars: Vec<Bar>,
}

/// A chart of groups of bars.
#[derive(Clone, Debug, Default)]
pub struct BarChart {
    /// What it shows, in one line.
    pub title: String,
    /// What the groups are.
    pub x_label: String,
    /// What the bars show, with its unit.
    pub y_label: String,
    /// How the upward axis is spread.
    pub y_scale: Scale,
    /// The names of the groups, from left to right.
    pub groups: Vec<String>,
    /// A figure that is aimed for, with its name.
    pub reference: Option<(f64, String)>,
    /// The series, in the order of the legend.
    pub series: Vec<BarSeries>,
}

/// Bars get their figures written above while there are at most so many.
const WRITTEN_BARS_MAX: usize = 14;
/// Names of groups that are longer than their room are written on two levels in turn.
const LETTER_WIDTH: f64 = 7.0;
/// The part of a group's room that its bars take.
const FILLED_PART: f64 = 0.8;

impl BarChart {
    /// The chart as an SVG document.
    pub fn svg(&self) -> String {
        let figures: Vec<f64> = self
            .series
            .iter()
            .flat_map(|series| &series.bars)
            .flat_map(|bar| [bar.figure].into_iter().chain(bar.interval.into_iter().flatten()))
            .chain(self.reference.iter().map(|reference| reference.0))
            .collect();
        let axis = Axis::new(self.y_scale, &figures, &[], UPWARD);
        let names: Vec<&str> = self.series.iter().map(|series| series.name.as_str()).collect();
        let mut document = Document::new(&self.title, &names);
        document.upward_axis(&axis, &self.y_label);
        document.across_axis(&self.x_label);
        let room = (ACROSS[1] - ACROSS[0]) / self.groups.len().max(1) as f64;
        let longest = self.groups.iter().map(|name| name.chars().count()).max().unwrap_or(0);
        let levels = if longest as f64 * LETTER_WIDTH > room { 2 } else { 1 };
        for (number, name) in self.groups.iter().enumerate() {
            let level = (number % levels) as f64;
            let middle = ACROSS[0] + (number as f64 + 0.5) * room;
            document.text([middle, UPWARD[0] + 17.0 + 13.0 * level], "middle", 12, name);
        }
        for (number, series) in self.series.iter().enumerate() {
            self.draw(&mut document, series, number, &axis, room);
        }
        if let Some((figure, name)) = &self.reference {
            document.reference(&axis, *figure, name);
        }
        document.finish()
    }

    fn draw(&self, document: &mut Document, series: &BarSeries, number: usize, axis: &Axis, room: f64) {
        let width = room * FILLED_PART / self.series.len() as f64;
        let written = self.series.len() * self.groups.len() <= WRITTEN_BARS_MAX;
        for (group, bar) in series.bars.iter().take(self.groups.len()).enumerate() {
            let Some(end) = axis.place(bar.figure) else { continue };
            let left = ACROSS[0] + room * (group as f64 + (1.0 - FILLED_PART) / 2.0) + width * number as f64;
            let (top, bottom) = (end.min(axis.base()), end.max(axis.base()));
            document.rectangle([left, top], [width * 0.92, bottom - top], colour(number));
            let middle = left + width * 0.46;
            let mut above = top;
            if let Some([low, high]) = bar.interval
                && let (Some(low), Some(high)) = (axis.place(low), axis.place(high))
            {
                document.interval(middle, [low, high], "#222222");
                above = above.min(high);
            }
            if written {
                document.text([middle, above - 5.0], "middle", 12, &figure_text(bar.figure));
            }
        }
    }
}
