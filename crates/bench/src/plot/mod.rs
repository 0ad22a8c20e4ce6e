//! Charts as SVG documents, drawn by `plotters`. The same figures give the same bytes.
//!
//! In reading order:
//! - [`line_chart`]: lines through points, with intervals;
//! - [`bar_chart`]: grouped bars, with intervals;
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
pub use frame::Labels;
pub use line_chart::{LineChart, Point, Series};
