//! Several series over numbers.

use super::axis::{Axis, Scale, figure_text};
use super::svg::{ACROSS, Document, UPWARD, colour};

/// A figure at a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The number across.
    pub x: f64,
    /// The figure upward; a point that is not a number is left out.
    pub y: f64,
    /// The least and the greatest that the figure may be, such as a 95 per cent interval.
    pub interval: Option<[f64; 2]>,
}

impl Point {
    /// A point without an interval.
    pub fn new(x: f64, y: f64) -> Point {
        Point { x, y, interval: None }
    }
}

/// Points that belong together; a line goes through them in their order.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// What the legend calls it.
    pub name: String,
    /// Its points.
    pub points: Vec<Point>,
}

/// A chart of lines.
#[derive(Clone, Debug, Default)]
pub struct LineChart {
    /// What it shows, in one line.
    pub title: String,
    /// What the axis across shows, with its unit.
    pub x_label: String,
    /// What the upward axis shows, with its unit.
    pub y_label: String,
    /// How the axis across is spread.
    pub x_scale: Scale,
    /// How the upward axis is spread.
    pub y_scale: Scale,
    /// Where numbers are written across; round ones are chosen if this is empty.
    pub x_ticks: Vec<f64>,
    /// A figure that is aimed for, with its name.
    pub reference: Option<(f64, String)>,
    /// The series, in the order of the legend.
    pub series: Vec<Series>,
}

impl LineChart {
    /// The chart as an SVG document.
    pub fn svg(&self) -> String {
        let points = || self.series.iter().flat_map(|series| &series.points);
        let across: Vec<f64> = points().map(|point| point.x).collect();
        let upward: Vec<f64> = points()
            .flat_map(|point| [point.y].into_iter().chain(point.interval.into_iter().flatten()))
            .chain(self.reference.iter().map(|reference| reference.0))
            .collect();
        let x_axis = Axis::new(self.x_scale, &across, &self.x_ticks, [ACROSS[0] + 12.0, ACROSS[1] - 12.0]);
        let y_axis = Axis::new(self.y_scale, &upward, &[], UPWARD);
        let names: Vec<&str> = self.series.iter().map(|series| series.name.as_str()).collect();
        let mut document = Document::new(&self.title, &names);
        document.upward_axis(&y_axis, &self.y_label);
        document.across_axis(&self.x_label);
        for tick in x_axis.ticks() {
            let Some(x) = x_axis.place(*tick) else { continue };
            document.line([x, UPWARD[0]], [x, UPWARD[0] + 5.0], "#222222", 1.2);
            document.text([x, UPWARD[0] + 21.0], "middle", 13, &figure_text(*tick));
        }
        for (number, series) in self.series.iter().enumerate() {
            draw(&mut document, series, number, &x_axis, &y_axis);
        }
        if let Some((figure, name)) = &self.reference {
            document.reference(&y_axis, *figure, name);
        }
        document.finish()
    }
}

fn draw(document: &mut Document, series: &Series, number: usize, x_axis: &Axis, y_axis: &Axis) {
    let place = |point: &Point| Some([x_axis.place(point.x)?, y_axis.place(point.y)?]);
    let places: Vec<[f64; 2]> = series.points.iter().filter_map(place).collect();
    document.path(&places, number);
    for point in &series.points {
        let Some([x, y]) = place(point) else { continue };
        if let Some([low, high]) = point.interval
            && let (Some(low), Some(high)) = (y_axis.place(low), y_axis.place(high))
        {
            document.interval(x, [low, high], colour(number));
        }
        document.mark([x, y], number);
    }
}
