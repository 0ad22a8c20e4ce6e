//! The elements of a chart, its colours, its frame and its legend.

use std::fmt::Write;

use super::axis::{Axis, figure_text};

/// Colours that people with the usual forms of colour blindness can tell apart (Okabe and Ito, 2008).
const COLOURS: [&str; 8] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#666666", "#8b6d00"];
const BACKGROUND: &str = "#ffffff";
const INK: &str = "#222222";
const GRID: &str = "#dddddd";
const REFERENCE: &str = "#aa0000";

/// Width of a chart, in pixels.
pub const WIDTH: f64 = 860.0;
/// Height of a chart without its legend, in pixels.
pub const HEIGHT: f64 = 460.0;
/// Places of the left and right end of the area with the figures, in pixels.
pub const ACROSS: [f64; 2] = [84.0, 840.0];
/// Places of the lower and upper end of the area with the figures, in pixels.
pub const UPWARD: [f64; 2] = [396.0, 52.0];

const LEGEND_LINE: f64 = 20.0;
const LEGEND_TOP: f64 = HEIGHT + 4.0;
/// A letter of the legend's font is about this wide, in pixels.
const LETTER_WIDTH: f64 = 7.2;

/// The colour of the series with that number.
pub fn colour(number: usize) -> &'static str {
    COLOURS[number % COLOURS.len()]
}

/// An SVG document that grows.
pub struct Document {
    body: String,
    height: f64,
}

impl Document {
    /// A document with a title, and with names that its legend explains; a single name needs no legend.
    pub fn new(title: &str, names: &[&str]) -> Document {
        let mut document = Document { body: String::new(), height: HEIGHT };
        document.text([WIDTH / 2.0, 28.0], "middle", 17, title);
        if names.len() > 1 {
            document.legend(names);
        }
        document
    }

    /// The whole document.
    pub fn finish(self) -> String {
        let height = self.height;
        let head = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH:.0}\" height=\"{height:.0}\" viewBox=\"0 0 {WIDTH:.0} \
             {height:.0}\" font-family=\"Helvetica, Arial, sans-serif\" fill=\"{INK}\">\n"
        );
        let ground = format!("<rect width=\"{WIDTH:.0}\" height=\"{height:.0}\" fill=\"{BACKGROUND}\"/>\n");
        head + &ground + &self.body + "</svg>\n"
    }

    /// A text at a place; `anchor` says whether it starts, ends or has its middle there.
    pub fn text(&mut self, [x, y]: [f64; 2], anchor: &str, size: u32, text: &str) {
        let text = escaped(text);
        self.push(format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" font-size=\"{size}\">{text}</text>"
        ));
    }

    /// A line between two places.
    pub fn line(&mut self, from: [f64; 2], to: [f64; 2], colour: &str, width: f64) {
        let ([x1, y1], [x2, y2]) = (from, to);
        self.push(format_args!(
            "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"{colour}\" stroke-width=\"{width:.1}\"/>"
        ));
    }

    /// A line through places, in the colour of a series; no line through fewer than two.
    pub fn path(&mut self, places: &[[f64; 2]], number: usize) {
        if places.len() < 2 {
            return;
        }
        let mut text = String::new();
        for [x, y] in places {
            // Writing to a String cannot fail.
            let _ = write!(text, "{x:.1},{y:.1} ");
        }
        let (points, colour) = (text.trim_end(), colour(number));
        self.push(format_args!("<polyline points=\"{points}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>"));
    }

    /// The mark of a series at a place; neighbouring series differ in form, too.
    pub fn mark(&mut self, [x, y]: [f64; 2], number: usize) {
        let colour = colour(number);
        match number % 3 {
            0 => self.push(format_args!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"{colour}\"/>")),
            1 => self.rectangle([x - 3.5, y - 3.5], [7.0, 7.0], colour),
            _ => self.push(format_args!("<path d=\"M{x:.1} {:.1}l5 8.5h-10z\" fill=\"{colour}\"/>", y - 5.0)),
        }
    }

    /// A filled rectangle from its upper left place, with a width and a height.
    pub fn rectangle(&mut self, [x, y]: [f64; 2], [width, height]: [f64; 2], colour: &str) {
        self.push(format_args!(
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{colour}\"/>"
        ));
    }

    /// An interval: a line upright with short ends.
    pub fn interval(&mut self, x: f64, [low, high]: [f64; 2], colour: &str) {
        self.line([x, low], [x, high], colour, 1.2);
        for y in [low, high] {
            self.line([x - 3.5, y], [x + 3.5, y], colour, 1.2);
        }
    }

    /// The upward axis: its figures, a thin line across for each, and what it shows.
    pub fn upward_axis(&mut self, axis: &Axis, label: &str) {
        for tick in axis.ticks() {
            let Some(y) = axis.place(*tick) else { continue };
            self.line([ACROSS[0], y], [ACROSS[1], y], GRID, 1.0);
            self.text([ACROSS[0] - 8.0, y + 4.5], "end", 13, &figure_text(*tick));
        }
        let middle = f64::midpoint(UPWARD[0], UPWARD[1]);
        let label = escaped(label);
        self.push(format_args!(
            "<text transform=\"translate(20 {middle:.1}) rotate(-90)\" text-anchor=\"middle\" font-size=\"14\">{label}</text>"
        ));
    }

    /// The axis across: its line and what it shows. Its figures or names are written by the chart.
    pub fn across_axis(&mut self, label: &str) {
        self.line([ACROSS[0], UPWARD[0]], [ACROSS[1], UPWARD[0]], INK, 1.2);
        self.line([ACROSS[0], UPWARD[0]], [ACROSS[0], UPWARD[1]], INK, 1.2);
        self.text([f64::midpoint(ACROSS[0], ACROSS[1]), UPWARD[0] + 46.0], "middle", 14, label);
    }

    /// A line across at a figure that is aimed for, with its name.
    pub fn reference(&mut self, axis: &Axis, figure: f64, name: &str) {
        let Some(y) = axis.place(figure) else { return };
        let [left, right] = ACROSS;
        self.push(format_args!(
            "<line x1=\"{left:.1}\" y1=\"{y:.1}\" x2=\"{right:.1}\" y2=\"{y:.1}\" stroke=\"{REFERENCE}\" \
             stroke-width=\"1.5\" stroke-dasharray=\"6 4\"/>"
        ));
        self.text([right - 4.0, y - 5.0], "end", 13, name);
    }

    /// Names in lines below the chart, as many in a line as there is room for.
    fn legend(&mut self, names: &[&str]) {
        let mut place = [ACROSS[0], LEGEND_TOP];
        for (number, name) in names.iter().enumerate() {
            let width = 34.0 + LETTER_WIDTH * name.chars().count() as f64;
            if place[0] > ACROSS[0] && place[0] + width > ACROSS[1] {
                place = [ACROSS[0], place[1] + LEGEND_LINE];
            }
            self.mark([place[0] + 5.0, place[1]], number);
            self.text([place[0] + 15.0, place[1] + 4.5], "start", 13, name);
            place[0] += width;
        }
        self.height = place[1] + LEGEND_LINE;
    }

    fn push(&mut self, element: std::fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.body, "{element}");
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
