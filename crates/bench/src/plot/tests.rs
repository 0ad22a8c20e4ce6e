use plotters::coord::ranged1d::Ranged;

use super::axis::{Axis, figure_text};
use super::{Bar, BarChart, BarSeries, Labels, LineChart, Point, Scale, Series};

fn lines() -> LineChart {
    let interval = Some([80.0, 130.0]);
    LineChart {
        labels: Labels {
            title: "a < b & c".into(),
            x_label: "connections".into(),
            y_label: "us".into(),
            reference: Some((120.0, "aim".into())),
        },
        x_scale: Scale::Logarithmic,
        x_ticks: vec![1.0, 64.0, 1024.0],
        series: vec![
            Series { name: "one".into(), points: vec![Point::new(1.0, 10.0), Point { x: 64.0, y: 100.0, interval }] },
            Series { name: "other".into(), points: vec![Point::new(1.0, f64::NAN), Point::new(1024.0, 50.0)] },
        ],
        ..LineChart::default()
    }
}

fn svg(chart: &LineChart) -> String {
    chart.svg().expect("a chart")
}

fn count(svg: &str, part: &str) -> usize {
    svg.matches(part).count()
}

#[test]
fn figures_that_are_not_numbers_are_left_out_and_everything_else_is_drawn() {
    let svg = svg(&lines());
    // Two marks of the first series, the middle of its interval, and its mark in the legend.
    assert_eq!(count(&svg, "<circle"), 4, "{svg}");
    // A line needs two points, so only the first series has one.
    assert_eq!(count(&svg, "#0072B2\" stroke-width=\"2\""), 1, "{svg}");
    assert!(count(&svg, "#AA0000") > 10, "the dashes of the reference line");
    assert!(!svg.contains("NaN") && !svg.contains("inf"));
    assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"));
}

#[test]
fn texts_are_escaped() {
    let svg = svg(&lines());
    assert!(svg.contains("a &lt; b &amp; c") && !svg.contains("a < b"));
}

#[test]
fn equal_figures_give_equal_bytes() {
    assert_eq!(svg(&lines()), svg(&lines()));
}

#[test]
fn everything_lies_inside_the_document() {
    let bars = |figures: &[f64]| figures.iter().map(|figure| Bar::new(*figure)).collect();
    let chart = BarChart {
        groups: vec!["range".into(), "point".into()],
        series: vec![
            BarSeries { name: "local".into(), bars: bars(&[3.0, -2.0]) },
            BarSeries { name: "owner".into(), bars: bars(&[1.0]) },
        ],
        ..BarChart::default()
    };
    let svg = chart.svg().expect("a chart");
    for attribute in ["x=\"", "y=\"", "x1=\"", "y2=\"", "cx=\"", "cy=\""] {
        for rest in svg.split(&format!(" {attribute}")).skip(1) {
            let number: f64 = rest.split('"').next().and_then(|text| text.parse().ok()).expect("a number");
            assert!((0.0..=860.0).contains(&number), "{attribute}{number}");
        }
    }
    // The background and three bars.
    assert_eq!(count(&svg, "<rect"), 4, "{svg}");
    for text in ["range", "point", "local", "owner"] {
        assert_eq!(count(&svg, &format!("\n{text}\n")), 1, "{svg}");
    }
}

#[test]
fn a_chart_without_figures_is_a_document() {
    assert!(svg(&LineChart::default()).contains("</svg>"));
    assert!(BarChart::default().svg().expect("a chart").contains("</svg>"));
}

#[test]
fn a_linear_axis_ends_with_round_figures_around_all() {
    let axis = Axis::new(Scale::Linear, &[3.0, 97.0], &[]);
    assert_eq!(axis.ticks(), [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
    assert_eq!((axis.ends(), axis.base()), ([0.0, 100.0], 0.0));
    assert_eq!(axis.map(&50.0, (200, 0)), 100);
    assert!(!axis.shows(f64::INFINITY));
}

#[test]
fn equal_ratios_have_equal_lengths_on_a_logarithmic_axis() {
    let axis = Axis::new(Scale::Logarithmic, &[1.0, 1000.0], &[]);
    assert_eq!([1.0, 10.0, 100.0].map(|figure| axis.map(&figure, (0, 300))), [0, 100, 200]);
    assert!(!axis.shows(0.0));
    assert_eq!((axis.ticks()[0], axis.ticks().len()), (1.0, 10));
}

#[test]
fn figures_are_printed_in_a_short_form() {
    for (figure, text) in [
        (0.0, "0"),
        (0.25, "0.25"),
        (1.5, "1.5"),
        (100.0, "100"),
        (4096.0, "4096"),
        (16_384.0, "16.4k"),
        (2_000_000.0, "2M"),
        (-12.5, "-12.5"),
    ] {
        assert_eq!(figure_text(figure), text);
    }
}
