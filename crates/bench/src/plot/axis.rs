//! The range and the ticks of an axis.

use std::ops::Range;

use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};

/// How figures are mapped to positions on an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// Equal differences have equal lengths.
    #[default]
    Linear,
    /// Equal ratios have equal lengths. Only figures above zero can be shown.
    Logarithmic,
}

/// Approximate maximum number of steps between the ends of a linear axis, if the caller gives no ticks.
const TICKS_MAX: f64 = 7.0;

/// An axis of a chart, in the form that `plotters` needs. Figures for which [`Axis::shows`] is false are not
/// drawn.
#[derive(Clone, Debug)]
pub struct Axis {
    scale: Scale,
    /// The figures at the two ends.
    range: [f64; 2],
    ticks: Vec<f64>,
}

impl Axis {
    /// Creates an axis whose range includes all of `figures`. A linear axis begins at zero unless a figure is
    /// negative. `ticks` are the figures to label; if it is empty, round figures are chosen.
    pub fn new(scale: Scale, figures: &[f64], ticks: &[f64]) -> Axis {
        let shown = figures.iter().chain(ticks).copied().filter(|figure| is_shown(scale, *figure));
        let (low, high) =
            shown.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), figure| (low.min(figure), high.max(figure)));
        let (low, high) = if low > high { (1.0, 10.0) } else { (low, high) };
        let (range, chosen) = match scale {
            Scale::Linear => linear(low.min(0.0), high.max(0.0)),
            Scale::Logarithmic => logarithmic(low, high, ticks.is_empty()),
        };
        let ticks = if ticks.is_empty() { chosen } else { ticks.to_vec() };
        let ticks = ticks.into_iter().filter(|tick| is_shown(scale, *tick)).collect();
        Axis { scale, range, ticks }
    }

    /// Creates an axis for `count` groups, without ticks. Group `n` lies between the figures `n` and `n + 1`.
    pub fn groups(count: usize) -> Axis {
        Axis { scale: Scale::Linear, range: [0.0, count.max(1) as f64], ticks: Vec::new() }
    }

    /// Whether a figure can be drawn: it is finite and, on a logarithmic axis, above zero.
    pub fn shows(&self, figure: f64) -> bool {
        is_shown(self.scale, figure)
    }

    /// The figure at which bars begin: zero, or the lower end of a logarithmic axis.
    pub fn base(&self) -> f64 {
        if self.shows(0.0) { 0.0 } else { self.range[0] }
    }

    /// The figures at the two ends.
    pub fn ends(&self) -> [f64; 2] {
        self.range
    }

    /// The figures that are labelled.
    pub fn ticks(&self) -> &[f64] {
        &self.ticks
    }

    fn stretch(&self, figure: f64) -> f64 {
        match self.scale {
            Scale::Linear => figure,
            Scale::Logarithmic => figure.ln(),
        }
    }
}

impl Ranged for Axis {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, figure: &f64, (first, last): (i32, i32)) -> i32 {
        let [low, high] = self.range.map(|end| self.stretch(end));
        let part = (self.stretch(*figure) - low) / (high - low);
        first + (part * f64::from(last - first)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        if hint.weight().allow_light_points() { Vec::new() } else { self.ticks.clone() }
    }

    fn range(&self) -> Range<f64> {
        self.range[0]..self.range[1]
    }
}

/// Formats a figure for axes and bars. Fractions are rounded to about three significant digits. From 10,000
/// on, figures are shortened with k, M or G.
pub fn figure_text(figure: f64) -> String {
    let (number, unit) = match figure.abs() {
        size if size >= 1e9 => (figure / 1e9, "G"),
        size if size >= 1e6 => (figure / 1e6, "M"),
        size if size >= 1e4 => (figure / 1e3, "k"),
        _ => (figure, ""),
    };
    let decimals = match number.abs() {
        size if size >= 100.0 || size == 0.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        size if size >= 0.1 => 3,
        _ => 4,
    };
    let text = format!("{number:.decimals$}");
    let short = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{short}{unit}")
}

fn is_shown(scale: Scale, figure: f64) -> bool {
    figure.is_finite() && (scale == Scale::Linear || figure > 0.0)
}

/// The range extended to round figures, and the round figures in it.
fn linear(low: f64, high: f64) -> ([f64; 2], Vec<f64>) {
    let high = if high > low { high } else { low + 1.0 };
    let rough_step = (high - low) / TICKS_MAX;
    let decade = 10_f64.powf(rough_step.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|factor| factor * decade).find(|step| *step >= rough_step);
    let step = step.unwrap_or(10.0 * decade);
    // A figure that is round except for its last bits must not add another step.
    let (first, last) = ((low / step).floor() as i64, (high / step - 1e-9).ceil() as i64);
    let ticks: Vec<f64> = (first..=last).map(|number| number as f64 * step).collect();
    ([first as f64 * step, last as f64 * step], ticks)
}

/// The range, and the round figures in it: 1, 2 and 5 of each decade, or only 1 if the range exceeds three
/// decades.
fn logarithmic(low: f64, high: f64, chosen: bool) -> ([f64; 2], Vec<f64>) {
    let (low, high) = if high > low { (low, high) } else { (low / 2.0, high * 2.0) };
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    let factors: &[f64] = if last - first > 3 { &[1.0] } else { &[1.0, 2.0, 5.0] };
    let all: Vec<f64> =
        (first..=last).flat_map(|decade| factors.iter().map(move |factor| factor * 10_f64.powi(decade))).collect();
    if !chosen {
        // Leave space beyond the outermost given figures, so that their marks are drawn whole.
        return ([low / 1.15, high * 1.15], all);
    }
    let bottom = all.iter().copied().rfind(|tick| *tick <= low).unwrap_or(low);
    let top = all.iter().copied().find(|tick| *tick >= high).unwrap_or(high);
    let ticks = all.into_iter().filter(|tick| (bottom..=top).contains(tick)).collect();
    ([bottom, top], ticks)
}
