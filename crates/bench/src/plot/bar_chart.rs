//! A chart of grouped bars.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::axis::{Axis, Scale, figure_text};
use super::frame::{Drawn, Frame, INK, Labels, PLOT_WIDTH, Plot, anchor, colour, font};
use crate::Outcome;

/// One bar. It is not drawn if its figure is not finite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bar {
    /// The height.
    pub figure: f64,
    /// Lower and upper bound of the figure, such as a 95 per cent interval.
    pub interval: Option<[f64; 2]>,
}

impl Bar {
    /// A bar without an interval.
    pub fn new(figure: f64) -> Bar {
        Bar { figure, interval: None }
    }
}

/// The bars of one colour, at most one for each group.
#[derive(Clone, Debug, Default)]
pub struct BarSeries {
    /// Name in the legend.
    pub name: String,
    /// The bars in the order of the groups. Groups beyond the last bar stay empty.
    pub bars: Vec<Bar>,
}

/// A chart of groups of bars.
#[derive(Clone, Debug, Default)]
pub struct BarChart {
    /// The texts, and a figure to compare with.
    pub labels: Labels,
    /// Scale of the y axis.
    pub y_scale: Scale,
    /// Names of the groups, from left to right.
    pub groups: Vec<String>,
    /// The series, in the order of the legend.
    pub series: Vec<BarSeries>,
}

/// Maximum number of bars of a chart that prints the figure above each bar.
const WRITTEN_BARS_MAX: usize = 14;
/// Estimated width of a letter, in pixels. Group names that are wider than their group alternate between two
/// lines.
const LETTER_WIDTH: usize = 7;
/// Fraction of a group's width that its bars fill.
const FILLED_PART: f64 = 0.8;
/// Fraction of a bar's width that is drawn. The remainder separates it from the next bar.
const DRAWN_PART: f64 = 0.92;

impl BarChart {
    /// Draws the chart as an SVG document.
    ///
    /// # Errors
    /// `plotters` cannot lay out the chart.
    pub fn svg(&self) -> Outcome<String> {
        let figures: Vec<f64> = self
            .series
            .iter()
            .flat_map(|series| &series.bars)
            .flat_map(|bar| [bar.figure].into_iter().chain(bar.interval.into_iter().flatten()))
            .chain(self.labels.reference.iter().map(|reference| reference.0))
            .collect();
        let x = Axis::groups(self.groups.len());
        let y = Axis::new(self.y_scale, &figures, &[]);
        let names = self.series.iter().map(|series| series.name.as_str());
        let frame = Frame::new(&self.labels, [&x, &y], names);
        frame.draw(|plot| {
            self.name_groups(plot, y.ends()[0])?;
            (0..self.series.len()).try_for_each(|number| self.draw(plot, number, &y))
        })
    }

    fn name_groups(&self, plot: &mut Plot<'_, '_>, bottom: f64) -> Drawn {
        let longest = self.groups.iter().map(|name| name.chars().count()).max().unwrap_or(0);
        let levels = if longest * LETTER_WIDTH * self.groups.len() > PLOT_WIDTH as usize { 2 } else { 1 };
        let style = font(12).pos(anchor(HPos::Center, VPos::Top));
        plot.draw_series(self.groups.iter().enumerate().map(|(number, name)| {
            let below = 8 + 13 * (number % levels) as i32;
            EmptyElement::at((number as f64 + 0.5, bottom)) + Text::new(name.clone(), (0, below), style.clone())
        }))?;
        Ok(())
    }

    fn draw(&self, plot: &mut Plot<'_, '_>, number: usize, y: &Axis) -> Drawn {
        let width = FILLED_PART / self.series.len() as f64;
        let left = |group: usize| group as f64 + (1.0 - FILLED_PART) / 2.0 + width * number as f64;
        let middle = |group: usize| left(group) + width * DRAWN_PART / 2.0;
        let bars: Vec<(usize, &Bar)> = self.series[number]
            .bars
            .iter()
            .take(self.groups.len())
            .enumerate()
            .filter(|(_, bar)| y.shows(bar.figure))
            .collect();
        let interval = |bar: &Bar| bar.interval.filter(|bounds| bounds.iter().all(|bound| y.shows(*bound)));
        plot.draw_series(bars.iter().map(|(group, bar)| {
            let right = left(*group) + width * DRAWN_PART;
            Rectangle::new([(left(*group), y.base()), (right, bar.figure)], colour(number).filled())
        }))?;
        plot.draw_series(bars.iter().filter_map(|(group, bar)| {
            let [low, high] = interval(bar)?;
            Some(ErrorBar::new_vertical(middle(*group), low, bar.figure, high, INK, 8))
        }))?;
        if self.series.len() * self.groups.len() > WRITTEN_BARS_MAX {
            return Ok(());
        }
        let style = font(12).pos(anchor(HPos::Center, VPos::Bottom));
        plot.draw_series(bars.iter().map(|(group, bar)| {
            let top = interval(bar).map_or(bar.figure, |[_, high]| high).max(y.base());
            let text = Text::new(figure_text(bar.figure), (0, -4), style.clone());
            EmptyElement::at((middle(*group), top)) + text
        }))?;
        Ok(())
    }
}
