//! Charts as SVG documents, drawn by `plotters`. Equal figures give equal bytes.
//!
//! In reading order:
//! - [`line_chart`]: several series over numbers, with intervals;
//! - [`bar_chart`]: groups of bars, with intervals;
//! - [`axis`]: ranges and ticks;
//! - [`frame`]: title, axes, reference line and legend.

pub mod axis;
pub mod bar_chart;
pub mod frame;
pub mod line_chart;
#[cfg(test)]
mod tests;

pub use axis::Scale;
pub use bar_chart::{Bar, BarChart, BarSeries};
pub use line_chart::{LineChart, Point, Series};
