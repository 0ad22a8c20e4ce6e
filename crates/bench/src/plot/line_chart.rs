//! A chart of lines, each a series of points.

use plotters::prelude::*;

use super::axis::{Axis, Scale};
use super::frame::{Drawn, Frame, Labels, MarkShape, Plot, colour, mark_shape};
use crate::Outcome;

/// One point of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Position on the x axis.
    pub x: f64,
    /// Position on the y axis. A point that is not finite is not drawn.
    pub y: f64,
    /// Lower and upper bound of the figure, such as a 95 per cent interval.
    pub interval: Option<[f64; 2]>,
}

impl Point {
    /// A point without an interval.
    pub fn new(x: f64, y: f64) -> Point {
        Point { x, y, interval: None }
    }
}

/// A series of points that are joined by a line, in their order.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// Name in the legend.
    pub name: String,
    /// Points, from left to right.
    pub points: Vec<Point>,
}

/// A chart of lines.
#[derive(Clone, Debug, Default)]
pub struct LineChart {
    /// The texts, and a figure to compare with.
    pub labels: Labels,
    /// Scale of the x axis.
    pub x_scale: Scale,
    /// Scale of the y axis.
    pub y_scale: Scale,
    /// Figures to label on the x axis. If this is empty, round ones are chosen.
    pub x_ticks: Vec<f64>,
    /// Series, in the order of the legend.
    pub series: Vec<Series>,
}

impl LineChart {
    /// Draws the chart as an SVG document.
    ///
    /// # Errors
    /// `plotters` cannot lay out the chart.
    pub fn svg(&self) -> Outcome<String> {
        let points = || self.series.iter().flat_map(|series| &series.points);
        let xs: Vec<f64> = points().map(|point| point.x).collect();
        let ys: Vec<f64> = points()
            .flat_map(|point| [point.y].into_iter().chain(point.interval.into_iter().flatten()))
            .chain(self.labels.reference.iter().map(|reference| reference.0))
            .collect();
        let x = Axis::new(self.x_scale, &xs, &self.x_ticks);
        let y = Axis::new(self.y_scale, &ys, &[]);
        let names = self.series.iter().map(|series| series.name.as_str());
        let frame = Frame::new(&self.labels, [&x, &y], names);
        frame.draw(|plot| {
            let mut series = self.series.iter().enumerate();
            series.try_for_each(|(number, series)| draw(plot, series, number, [&x, &y]))
        })
    }
}

fn draw(plot: &mut Plot<'_, '_>, series: &Series, number: usize, [x, y]: [&Axis; 2]) -> Drawn {
    let shown = || series.points.iter().filter(|point| x.shows(point.x) && y.shows(point.y));
    let places: Vec<(f64, f64)> = shown().map(|point| (point.x, point.y)).collect();
    if places.len() > 1 {
        plot.draw_series(LineSeries::new(places.iter().copied(), colour(number).stroke_width(2)))?;
    }
    plot.draw_series(shown().filter_map(|point| {
        let [low, high] = point.interval.filter(|bounds| bounds.iter().all(|bound| y.shows(*bound)))?;
        Some(ErrorBar::new_vertical(point.x, low, point.y, high, colour(number), 8))
    }))?;
    let marks = places.into_iter();
    match mark_shape(number) {
        MarkShape::Circle => plot.draw_series(marks.map(|at| Circle::new(at, 4, colour(number).filled())))?,
        MarkShape::Cross => plot.draw_series(marks.map(|at| Cross::new(at, 4, colour(number).stroke_width(3))))?,
        MarkShape::Triangle => plot.draw_series(marks.map(|at| TriangleMarker::new(at, 6, colour(number).filled())))?,
    };
    Ok(())
}
