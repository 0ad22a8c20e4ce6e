//! From figures to places on an axis.

/// How figures are spread over an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// Equal differences are equally long.
    #[default]
    Linear,
    /// Equal ratios are equally long; figures that are not above zero are left out.
    Logarithmic,
}

/// Ticks that an axis has at most, if they are chosen by it.
const TICKS_MAX: f64 = 7.0;

/// An axis of a chart: a range of figures on a range of places.
#[derive(Clone, Debug)]
pub struct Axis {
    scale: Scale,
    /// Least and greatest figure shown.
    range: [f64; 2],
    /// Places of the two, in pixels.
    places: [f64; 2],
    ticks: Vec<f64>,
}

impl Axis {
    /// An axis that shows all of `figures` from place `places[0]` to `places[1]`, in pixels. A linear one begins at zero
    /// if no figure is below. `ticks` are where figures are written; if it is empty, round ones are chosen.
    pub fn new(scale: Scale, figures: &[f64], ticks: &[f64], places: [f64; 2]) -> Axis {
        let shown = figures.iter().chain(ticks).copied().filter(|figure| is_shown(scale, *figure));
        let (low, high) =
            shown.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), figure| (low.min(figure), high.max(figure)));
        let (low, high) = if low > high { (1.0, 10.0) } else { (low, high) };
        let (range, chosen) = match scale {
            Scale::Linear => linear(low.min(0.0), high.max(0.0)),
            Scale::Logarithmic => logarithmic(low, high, ticks.is_empty()),
        };
        let ticks = if ticks.is_empty() { chosen } else { ticks.to_vec() };
        let axis = Axis { scale, range, places, ticks: Vec::new() };
        let ticks = ticks.into_iter().filter(|tick| axis.place(*tick).is_some()).collect();
        Axis { ticks, ..axis }
    }

    /// The place of a figure, in pixels; `None` if it has none: not a number, or not above zero on a logarithmic axis.
    pub fn place(&self, figure: f64) -> Option<f64> {
        if !is_shown(self.scale, figure) {
            return None;
        }
        let [low, high] = self.range.map(|bound| self.stretch(bound));
        let part = (self.stretch(figure) - low) / (high - low);
        Some(self.places[0] + part * (self.places[1] - self.places[0]))
    }

    /// The place where bars begin: that of zero, or of the least figure of a logarithmic axis.
    pub fn base(&self) -> f64 {
        self.place(0.0).unwrap_or(self.places[0])
    }

    /// Where figures are written.
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

/// A figure as axes and bars show it: three digits that count, thousands as k, millions as M.
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

/// The range that ends with round figures, and the round figures in it.
fn linear(low: f64, high: f64) -> ([f64; 2], Vec<f64>) {
    let high = if high > low { high } else { low + 1.0 };
    let rough = (high - low) / TICKS_MAX;
    let decade = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|factor| factor * decade).find(|step| *step >= rough);
    let step = step.unwrap_or(10.0 * decade);
    let (first, last) = ((low / step).floor() as i64, (high / step - 1e-9).ceil() as i64);
    let ticks: Vec<f64> = (first..=last).map(|number| number as f64 * step).collect();
    ([first as f64 * step, last as f64 * step], ticks)
}

/// The range and round figures: 1, 2 and 5 of each decade while there are few decades, else only 1.
fn logarithmic(low: f64, high: f64, chosen: bool) -> ([f64; 2], Vec<f64>) {
    let (low, high) = if high > low { (low, high) } else { (low / 2.0, high * 2.0) };
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    let factors: &[f64] = if last - first > 3 { &[1.0] } else { &[1.0, 2.0, 5.0] };
    let all: Vec<f64> =
        (first..=last).flat_map(|decade| factors.iter().map(move |factor| factor * 10_f64.powi(decade))).collect();
    if !chosen {
        // Room beside the outermost given figures, so that their marks stand free.
        return ([low / 1.15, high * 1.15], all);
    }
    let bottom = all.iter().copied().rfind(|tick| *tick <= low).unwrap_or(low);
    let top = all.iter().copied().find(|tick| *tick >= high).unwrap_or(high);
    let ticks = all.into_iter().filter(|tick| (bottom..=top).contains(tick)).collect();
    ([bottom, top], ticks)
}
