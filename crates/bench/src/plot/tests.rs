use super::axis::{Axis, figure_text};
use super::{Bar, BarChart, BarSeries, LineChart, Point, Scale, Series};

fn lines() -> LineChart {
    let interval = Some([80.0, 130.0]);
    LineChart {
        title: "a < b & c".into(),
        x_label: "connections".into(),
        y_label: "us".into(),
        x_scale: Scale::Logarithmic,
        x_ticks: vec![1.0, 64.0, 1024.0],
        reference: Some((120.0, "aim".into())),
        series: vec![
            Series { name: "one".into(), points: vec![Point::new(1.0, 10.0), Point { x: 64.0, y: 100.0, interval }] },
            Series { name: "other".into(), points: vec![Point::new(1.0, f64::NAN), Point::new(1024.0, 50.0)] },
        ],
        ..LineChart::default()
    }
}

fn count(svg: &str, part: &str) -> usize {
    svg.matches(part).count()
}

#[test]
fn figures_that_are_not_numbers_are_left_out_and_everything_else_is_drawn() {
    let svg = lines().svg();
    // Two marks of the first series and one in the legend; one and one of the second.
    assert_eq!(count(&svg, "<circle"), 3, "{svg}");
    assert_eq!(count(&svg, "width=\"7.0\" height=\"7.0\""), 2);
    assert_eq!(count(&svg, "<polyline"), 1, "a line needs two points");
    assert_eq!(count(&svg, "stroke-dasharray"), 1);
    assert!(!svg.contains("NaN") && !svg.contains("inf"));
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
}

#[test]
fn texts_cannot_break_the_document() {
    let svg = lines().svg();
    assert!(svg.contains("a &lt; b &amp; c") && !svg.contains("a < b"));
}

#[test]
fn equal_figures_give_equal_bytes() {
    assert_eq!(lines().svg(), lines().svg());
}

#[test]
fn nothing_stands_outside_of_the_document() {
    let bars = |figures: &[f64]| figures.iter().map(|figure| Bar::new(*figure)).collect();
    let chart = BarChart {
        groups: vec!["range".into(), "point".into()],
        series: vec![
            BarSeries { name: "local".into(), bars: bars(&[3.0, -2.0]) },
            BarSeries { name: "owner".into(), bars: bars(&[1.0]) },
        ],
        ..BarChart::default()
    };
    let svg = chart.svg();
    for attribute in ["x=\"", "y=\"", "x1=\"", "y2=\""] {
        for rest in svg.split(&format!(" {attribute}")).skip(1) {
            let number: f64 = rest.split('"').next().and_then(|text| text.parse().ok()).expect("a number");
            assert!((0.0..=860.0).contains(&number), "{attribute}{number}");
        }
    }
    // The ground, three bars, and the square of the legend.
    assert_eq!(count(&svg, "<rect"), 5, "{svg}");
}

#[test]
fn a_chart_without_figures_is_a_document() {
    assert!(LineChart::default().svg().ends_with("</svg>\n"));
    assert!(BarChart::default().svg().ends_with("</svg>\n"));
}

#[test]
fn a_linear_axis_ends_with_round_figures_around_all() {
    let axis = Axis::new(Scale::Linear, &[3.0, 97.0], &[], [0.0, 100.0]);
    assert_eq!(axis.ticks(), [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
    assert_eq!(axis.place(50.0), Some(50.0));
    assert_eq!(axis.base(), 0.0);
    assert_eq!(axis.place(f64::INFINITY), None);
}

#[test]
fn equal_ratios_are_equally_long_on_a_logarithmic_axis() {
    let axis = Axis::new(Scale::Logarithmic, &[1.0, 1000.0], &[], [0.0, 300.0]);
    let places = [1.0, 10.0, 100.0].map(|figure| axis.place(figure).expect("above zero"));
    assert!((places[1] - places[0] - (places[2] - places[1])).abs() < 1e-9);
    assert_eq!(axis.place(0.0), None);
    assert_eq!((axis.ticks()[0], axis.ticks().len()), (1.0, 10));
}

#[test]
fn figures_are_written_short() {
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
