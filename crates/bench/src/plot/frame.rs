//! The frame of a chart: title, axes with labels, reference line and legend.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::axis::{Axis, figure_text};
use crate::failure::{Failure, Outcome};

/// Colours that people with the usual forms of colour blindness can tell apart (Okabe and Ito, 2008).
const COLOURS: [RGBColor; 8] = [
    RGBColor(0x00, 0x72, 0xb2),
    RGBColor(0xd5, 0x5e, 0x00),
    RGBColor(0x00, 0x9e, 0x73),
    RGBColor(0xcc, 0x79, 0xa7),
    RGBColor(0xe6, 0x9f, 0x00),
    RGBColor(0x56, 0xb4, 0xe9),
    RGBColor(0x66, 0x66, 0x66),
    RGBColor(0x8b, 0x6d, 0x00),
];
/// Colour of text, axes and the intervals of bars.
pub const INK: RGBColor = RGBColor(0x22, 0x22, 0x22);
const GRID: RGBColor = RGBColor(0xdd, 0xdd, 0xdd);
const REFERENCE: RGBColor = RGBColor(0xaa, 0x00, 0x00);

/// Width in pixels of the area in which the series are drawn.
pub const PLOT_WIDTH: u32 = 756;
const WIDTH: u32 = PLOT_WIDTH + Y_LABELS_WIDTH + 2 * MARGIN;
const HEIGHT: u32 = 460;
const MARGIN: u32 = 10;
const X_LABELS_HEIGHT: u32 = 62;
const Y_LABELS_WIDTH: u32 = 84;
const LEGEND_LINE: u32 = 20;
/// Estimated width of a letter in the legend, in pixels. An SVG document cannot measure text.
const LETTER_WIDTH: i32 = 8;

/// The area in which the series are drawn. Its coordinates are the figures of the axes.
pub type Plot<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<Axis, Axis>>;
/// The result of drawing. It is an error only if `plotters` cannot lay out the chart.
pub type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;

/// The texts of a chart, and a figure to compare with.
#[derive(Clone, Debug, Default)]
pub struct Labels {
    /// Title, one line.
    pub title: String,
    /// Quantity on the x axis, with its unit; for bars, what the groups are.
    pub x_label: String,
    /// Quantity on the y axis, with its unit.
    pub y_label: String,
    /// A figure to compare with, drawn as a dashed horizontal line, and its name.
    pub reference: Option<(f64, String)>,
}

/// Everything except the series of a chart.
pub struct Frame<'a> {
    /// The texts, and a figure to compare with.
    pub labels: &'a Labels,
    /// The x axis. Its ticks are labelled with their figures. If it has none, the chart prints its own
    /// labels.
    pub x: &'a Axis,
    /// The y axis. Each tick gets a label and a grid line.
    pub y: &'a Axis,
    /// Names of the series. The legend is omitted if there is only one.
    pub names: Vec<&'a str>,
}

impl<'a> Frame<'a> {
    /// The frame of a chart with these axes (x and y) and names of series.
    pub fn new(labels: &'a Labels, [x, y]: [&'a Axis; 2], names: impl Iterator<Item = &'a str>) -> Frame<'a> {
        Frame { labels, x, y, names: names.collect() }
    }
}

/// An entry of the legend: the series, and the entry's offset in pixels.
struct Entry<'a> {
    number: usize,
    name: &'a str,
    x: i32,
    y: i32,
}

impl Frame<'_> {
    /// Draws the chart as an SVG document. The same input gives the same bytes.
    ///
    /// # Errors
    /// `plotters` cannot lay out the chart.
    pub fn draw(&self, series: impl FnOnce(&mut Plot<'_, '_>) -> Drawn) -> Outcome<String> {
        let mut svg = String::new();
        self.draw_into(&mut svg, series).map_err(|error| Failure::new(format!("{}: {error}", self.labels.title)))?;
        Ok(svg)
    }

    fn draw_into(&self, svg: &mut String, series: impl FnOnce(&mut Plot<'_, '_>) -> Drawn) -> Drawn {
        let legend = self.legend();
        let legend_height = legend.last().map_or(0, |entry| entry.y as u32 + LEGEND_LINE);
        let root = SVGBackend::with_string(svg, (WIDTH, HEIGHT + legend_height)).into_drawing_area();
        root.fill(&WHITE)?;
        let (upper, lower) = root.split_vertically(HEIGHT);
        let mut plot = ChartBuilder::on(&upper)
            .caption(&self.labels.title, font(17).pos(anchor(HPos::Center, VPos::Center)))
            .margin(MARGIN)
            .x_label_area_size(X_LABELS_HEIGHT)
            .y_label_area_size(Y_LABELS_WIDTH)
            .build_cartesian_2d(self.x.clone(), self.y.clone())?;
        plot.configure_mesh()
            .disable_x_mesh()
            .bold_line_style(GRID)
            .light_line_style(TRANSPARENT)
            .axis_style(INK)
            .label_style(font(13))
            .axis_desc_style(font(14))
            .x_label_formatter(&|figure| figure_text(*figure))
            .y_label_formatter(&|figure| figure_text(*figure))
            .x_desc(&self.labels.x_label)
            .y_desc(&self.labels.y_label)
            .draw()?;
        series(&mut plot)?;
        self.draw_reference(&mut plot)?;
        for Entry { number, name, x, y } in legend {
            let (x, y) = (x + (MARGIN + Y_LABELS_WIDTH) as i32, y + LEGEND_LINE as i32 / 2);
            match mark_shape(number) {
                MarkShape::Circle => lower.draw(&Circle::new((x + 5, y), 4, colour(number).filled()))?,
                MarkShape::Cross => lower.draw(&Cross::new((x + 5, y), 4, colour(number).stroke_width(3)))?,
                MarkShape::Triangle => lower.draw(&TriangleMarker::new((x + 5, y), 6, colour(number).filled()))?,
            }
            lower.draw(&Text::new(name, (x + 15, y), font(13).pos(anchor(HPos::Left, VPos::Center))))?;
        }
        root.present()
    }

    fn draw_reference(&self, plot: &mut Plot<'_, '_>) -> Drawn {
        let Some((y, name)) = self.labels.reference.as_ref().filter(|(figure, _)| self.y.shows(*figure)) else {
            return Ok(());
        };
        let ([left, right], y) = (self.x.ends(), *y);
        plot.draw_series(DashedLineSeries::new([(left, y), (right, y)], 6, 4, REFERENCE.stroke_width(2)))?;
        let text = Text::new(name.clone(), (-4, -4), font(13).pos(anchor(HPos::Right, VPos::Bottom)));
        plot.draw_series([EmptyElement::at((right, y)) + text])?;
        Ok(())
    }

    /// Lays out the legend, with as many entries per line as fit.
    fn legend(&self) -> Vec<Entry<'_>> {
        let (mut x, mut y) = (0, 0);
        let mut entries = Vec::new();
        for (number, name) in self.names.iter().enumerate().filter(|_| self.names.len() > 1) {
            let width = 34 + LETTER_WIDTH * name.chars().count() as i32;
            if x > 0 && x + width > PLOT_WIDTH as i32 {
                (x, y) = (0, y + LEGEND_LINE as i32);
            }
            entries.push(Entry { number, name, x, y });
            x += width;
        }
        entries
    }
}

/// The colour of the series at this index. Colours repeat after eight series.
pub fn colour(number: usize) -> RGBColor {
    COLOURS[number % COLOURS.len()]
}

/// The shape of a series' marks. Neighbouring series also differ in shape.
pub enum MarkShape {
    /// A filled circle.
    Circle,
    /// A diagonal cross.
    Cross,
    /// A filled triangle.
    Triangle,
}

/// The shape for the series at this index.
pub fn mark_shape(number: usize) -> MarkShape {
    match number % 3 {
        0 => MarkShape::Circle,
        1 => MarkShape::Cross,
        _ => MarkShape::Triangle,
    }
}

/// A font of this size in pixels.
pub fn font(pixels: u32) -> TextStyle<'static> {
    // The SVG backend divides sizes by this factor.
    ("Helvetica, Arial, sans-serif", f64::from(pixels) * 1.24, &INK).into_text_style(&(0, 0))
}

/// Which point of a text is placed at its coordinates.
pub fn anchor(horizontal: HPos, vertical: VPos) -> Pos {
    Pos::new(horizontal, vertical)
}
