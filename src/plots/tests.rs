//! Tests of whole figures: what they contain, also for missing, constant and extreme values.

#![allow(clippy::unwrap_used)]

use super::*;
use crate::cluster::record::Row;
use crate::metrics::seeds::Band;
use crate::models::Part;
use crate::results::{ResultFile, RunInfo, SampleKind, Samples, Values, XAxis, write_run};
use ndarray::Array3;
use resvg::tiny_skia::Pixmap;
use std::path::Path;

fn row(table: &str, step: u64, agent: Option<u32>, values: &[(&str, f64)]) -> Row {
    Row { table: table.into(), step, agent, values: values.iter().map(|&(name, value)| (name.into(), value)).collect() }
}

fn file(folder: &Path, rows: &[Row]) -> ResultFile {
    let path = folder.join("r.h5");
    write_run(&path, &RunInfo::new("dsvgd", "network", 1, "", ""), &[], rows).unwrap();
    ResultFile::open(&path).unwrap()
}

/// A metric by its name and a formula of the round.
type Metric = (&'static str, fn(f64) -> f64);

/// The history of metrics given by a formula of the round.
fn history_of(rounds: u64, metrics: &[Metric]) -> Figure {
    let folder = tempfile::tempdir().unwrap();
    let values = |step: u64| metrics.iter().map(|(name, formula)| (*name, formula(step as f64))).collect::<Vec<_>>();
    let rows: Vec<Row> = (1..=rounds).map(|step| row("metrics", step, None, &values(step))).collect();
    history(&file(folder.path(), &rows), &HistoryOptions::default()).unwrap().unwrap()
}

/// Draws a figure and asserts that it is valid XML without NaN or infinite coordinates, that nothing is cut off, and that its PNG is not
/// empty.
fn sound(figure: &Figure, size: Option<(u32, u32)>) -> String {
    let drawing = figure.draw(size).unwrap();
    let svg = drawing.svg().to_owned();
    assert!(!svg.contains("NaN") && !svg.contains("inf\""), "{svg}");
    let (width, height) = drawing.size();
    let tree = resvg::usvg::Tree::from_str(&svg, &resvg::usvg::Options::default()).unwrap();
    assert_eq!((f64::from(tree.size().width()), f64::from(tree.size().height())), (width, height));
    let picture = Pixmap::decode_png(&drawing.png(1.0).unwrap()).unwrap();
    assert_eq!((f64::from(picture.width()), f64::from(picture.height())), (width.round(), height.round()));
    let white = |x: u32, y: u32| picture.pixel(x, y).is_some_and(|pixel| pixel.red() == 255 && pixel.blue() == 255);
    // If nothing is cut off, the outermost pixels are white.
    let (w, h) = (picture.width(), picture.height());
    assert!((0..w).all(|x| white(x, 0) && white(x, h - 1)) && (0..h).all(|y| white(0, y) && white(w - 1, y)), "{}", figure.title);
    assert!(picture.pixels().iter().filter(|pixel| pixel.red() < 128).count() > 100, "{}", figure.title);
    svg
}

#[test]
fn a_history_has_title_labels_and_a_mark_for_each_point() {
    let mut figure = history_of(7, &[("accuracy", |t| 1.0 - 0.5 / t), ("log_likelihood", |t| -1.0 / t)]);
    figure.subtitle = "method <a> & b".into();
    let svg = sound(&figure, None);
    for says in [">Metrics by round<", ">method &lt;a&gt; &amp; b<", ">accuracy<", ">log-likelihood (nats per row)<", ">round<"] {
        assert!(svg.contains(says), "{says}");
    }
    assert_eq!((svg.matches("<circle").count(), svg.matches("class=\"line\"").count()), (14, 2));
    // The control: another number of rounds has another number of marks.
    assert_eq!(sound(&history_of(5, &[("accuracy", |t| t)]), None).matches("<circle").count(), 5);
}

#[test]
fn missing_and_extreme_values_are_drawn() {
    let figure = history_of(
        9,
        &[
            ("accuracy", |t| if t == 4.0 { f64::NAN } else { 0.5 }),
            ("ece", |_| f64::NAN),
            ("log_likelihood", |t| if t < 3.0 { f64::NEG_INFINITY } else { -1e-300 * t }),
            ("rmse", |t| 1e299 * t),
            ("ksd", |t| 1e12 + t),
            ("a_name_that_is_much_longer_than_any_panel_of_this_picture_could_ever_show_at_its_side", |t| t * 1e-7),
        ],
    );
    assert_eq!(figure.panels.len(), 5);
    assert_eq!(figure.caption, "No values: ece.");
    let svg = sound(&figure, None);
    assert!(svg.contains("1 of 9 missing") && svg.contains("2 of 9 missing") && svg.contains('…'));
    // A gap: two lines on both sides of the fourth round.
    assert_eq!(figure.panels[0].marks.len(), 1);
    let longest = svg.lines().filter_map(|line| line.strip_prefix("<text")?.split_once('>')).map(|(_, text)| text.len()).max();
    assert!(longest.unwrap() < 60, "a tick has {longest:?} characters");
    for rounds in [1, 2] {
        sound(&history_of(rounds, &[("accuracy", |_| 0.75), ("zero", |_| 0.0)]), None);
    }
}

#[test]
fn long_curves_are_thinned() {
    let figure = history_of(10_000, &[("accuracy", |t| 0.5 + 0.3 * (t / 700.0).sin() + 0.1 * (t * 1.7).sin())]);
    let svg = sound(&figure, None);
    assert!(svg.len() < 120_000 && !svg.contains("<circle"), "{}", svg.len());
    // Only the drawing is thinned, not the data.
    let Mark::Line { points, .. } = &figure.panels[0].marks[0] else { panic!("no line") };
    assert_eq!(points.len(), 10_000);
}

#[test]
fn agents_get_a_line_each_if_only_they_wrote_rows() {
    let folder = tempfile::tempdir().unwrap();
    let rows: Vec<Row> =
        (0..30).map(|i| row("history", u64::from(i / 3), Some(i % 3), &[("seconds", 1.0), ("moves", f64::from(i))])).collect();
    let figure = history(&file(folder.path(), &rows), &HistoryOptions::default()).unwrap().unwrap();
    let svg = sound(&figure, None);
    assert!(svg.contains(">agent 2<") && svg.contains(">History by round<"));
    assert_eq!(figure.panels[0].marks.len(), 3);
}

#[test]
fn seconds_come_from_the_history_if_metrics_have_none() {
    let folder = tempfile::tempdir().unwrap();
    let mut rows = vec![row("metrics", 0, None, &[("ece", 0.5)]), row("metrics", 2, None, &[("ece", 0.25)])];
    rows.extend([row("history", 1, None, &[("seconds", 10.0)]), row("history", 2, None, &[("seconds", 20.0)])]);
    let file = file(folder.path(), &rows);
    let options = HistoryOptions { x_axis: XAxis::Seconds, ..HistoryOptions::default() };
    let figure = history(&file, &options).unwrap().unwrap();
    let Mark::Line { points, .. } = &figure.panels[0].marks[0] else { panic!("no line") };
    assert_eq!(points, &[(0.0, 0.5), (20.0, 0.25)]);
    let bytes = history(&file, &HistoryOptions { x_axis: XAxis::Bytes, ..options });
    assert!(matches!(bytes, Err(PlotError::NoAxis("bytes"))));
}

#[test]
fn the_reliability_diagram_shows_the_last_evaluation() {
    let folder = tempfile::tempdir().unwrap();
    let bin = |step, lower: f64, rows: f64, accuracy: f64| {
        let values =
            [("lower", lower), ("upper", lower + 0.5), ("rows", rows), ("accuracy", accuracy), ("confidence", lower + 0.3)];
        row("reliability", step, None, &values)
    };
    let rows = [
        bin(1, 0.0, 5.0, 0.1),
        bin(1, 0.5, 5.0, 0.2),
        bin(3, 0.0, 0.0, f64::NAN),
        bin(3, 0.5, 80.0, 0.75),
        row("metrics", 1, None, &[("ece", 0.9), ("mce", 0.9)]),
        row("metrics", 3, None, &[("ece", 0.05), ("mce", 0.0625), ("mce_20", f64::NAN)]),
    ];
    let figure = reliability(&file(folder.path(), &rows)).unwrap().unwrap();
    assert_eq!(
        figure.caption,
        "Round 3, 80 test rows: expected calibration error (ECE) 0.0500, maximum calibration error (MCE) 0.0625."
    );
    let svg = sound(&figure, None);
    // Only one bin has rows: the figure has one point besides that of the legend.
    assert_eq!(svg.matches("<circle").count(), 2);
    for says in [">confidence<", ">accuracy<", ">test rows<", ">perfect calibration<"] {
        assert!(svg.contains(says), "{says}");
    }
    let without = tempfile::tempdir().unwrap();
    assert_eq!(reliability(&file(without.path(), &rows[4..])).unwrap(), None);
}

fn samples(chains: usize, draws: usize, value: fn(usize, usize, usize) -> f64) -> Samples {
    let parts = vec![Part::new("weights", &[2, 2]), Part::new("log_precision", &[])];
    let values = Array3::from_shape_fn((chains, draws, 5), |(chain, draw, index)| value(chain, draw, index));
    Samples { group: "posterior".into(), kind: SampleKind::Chains, parts, values: Values::F64(values) }
}

#[test]
fn draws_of_all_kinds_have_pictures() {
    let smooth = |chain: usize, draw: usize, index: usize| ((draw * 37 + index * 11) as f64).sin() + 0.3 * chain as f64;
    let constant = |_: usize, _: usize, _: usize| 2.0;
    let broken = |_: usize, draw: usize, _: usize| if draw.is_multiple_of(2) { f64::NAN } else { draw as f64 / 3.0 };
    let none = |_: usize, _: usize, _: usize| f64::NAN;
    for samples in [
        samples(1, 1, smooth),
        samples(1, 20, smooth),
        samples(4, 50, smooth),
        samples(12, 50, smooth),
        samples(1, 10_000, smooth),
        samples(2, 10, constant),
        samples(1, 10, broken),
        samples(2, 10, none),
    ] {
        let (chains_, draws, _) = samples.values.dim();
        let svg = sound(&posterior(&samples, &[]).unwrap().unwrap(), None);
        assert!(svg.contains(">weights[1,0]<") && svg.contains(">log_precision<"));
        assert_eq!(svg.contains(">chain 1<"), (2..=7).contains(&chains_));
        let scatter = sound(&pair(&samples, "weights[0,0]", "log_precision").unwrap().unwrap(), None);
        let finite = samples.values.matrix().column(0).iter().filter(|value| value.is_finite()).count();
        let keys = if (2..=7).contains(&chains_) { chains_ } else { usize::from(chains_ > 7) };
        assert_eq!(scatter.matches("<circle").count(), if draws > 4000 { 3334 } else { finite } + keys);
        match chains(&samples, &[]).unwrap() {
            Some(figure) => drop(sound(&figure, None)),
            None => assert_eq!(draws, 1),
        }
    }
    let empty = Samples {
        group: "posterior".into(),
        kind: SampleKind::Chains,
        parts: vec![],
        values: Values::F64(Array3::zeros((1, 3, 0))),
    };
    assert_eq!((posterior(&empty, &[]).unwrap(), chains(&empty, &[]).unwrap()), (None, None));
}

#[test]
fn sizes_are_kept_or_refused() {
    let figure = history_of(7, &[("accuracy", |t| t), ("ece", |t| t), ("mce", |t| t)]);
    sound(&figure, Some((1200, 333)));
    let drawing = figure.draw(Some((640, 480))).unwrap();
    let wide = Pixmap::decode_png(&drawing.png(2.5).unwrap()).unwrap();
    assert_eq!((wide.width(), wide.height()), (1600, 1200));
    assert!(matches!(figure.draw(Some((150, 600))), Err(PlotError::TooSmall { panels: 3, .. })));
    assert!(matches!(figure.draw(Some((600, 100))), Err(PlotError::TooSmall { .. })));
    assert!(matches!(drawing.png(1000.0), Err(PlotError::TooLarge { .. })));
    assert!(matches!(drawing.png(f64::NAN), Err(PlotError::TooLarge { .. })));
}

#[test]
fn long_names_cover_and_cut_off_nothing() {
    let long = "a_run_with_a_name_that_goes_on_and_on_".repeat(6);
    let curve = |label: String| Curve { label, runs: vec![vec![(1, 1.0, 0.5), (2, 2.0, 0.75)]] };
    let mut figure =
        comparison("accuracy", XAxis::Round, &[curve(long.clone()), curve("b".into()), curve(long.clone())], Band::Range);
    figure.subtitle = long.clone();
    figure.caption = long.clone();
    let svg = sound(&figure, None);
    assert!(svg.contains('…') && svg.contains(">b<"));
    let many: Vec<Curve> = (0..30).map(|i| curve(format!("run {i}"))).collect();
    let svg = sound(&comparison("accuracy", XAxis::Round, &many, Band::Sd), None);
    assert!(svg.contains(">run 29<") && svg.contains("stroke-dasharray"));
}
