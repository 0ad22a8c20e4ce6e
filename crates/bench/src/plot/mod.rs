//! Charts as SVG, written by hand: equal figures give equal bytes, and a browser needs nothing else to show them.
//!
//! In reading order:
//! - [`line_chart`]: several series over numbers, with intervals;
//! - [`bar_chart`]: groups of bars, with intervals;
//! - [`axis`]: from figures to places, and which figures are written beside an axis;
//! - [`svg`]: the elements, the colours, the frame and the legend.

pub mod axis;
pub mod bar_chart;
pub mod line_chart;
pub mod svg;
#[cfg(test)]
mod tests;

pub use axis::Scale;
pub use bar_chart::{Bar, BarChart, BarSeries};
pub use line_chart::{LineChart, Point, Series};
