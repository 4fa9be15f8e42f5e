//! One metric of several runs, as a line for each; runs that differ only in the seed share a line with a band.

use super::curve::{Curve, Point};
use super::figure::{Axis, Figure, LegendEntry, LegendSample, Mark, Panel, series};
use super::history::{axis_of, by, horizontal};
use super::logarithmic::logarithmic_ticks;
use super::ticks::bounds;
use crate::metrics::axis_label;
use crate::metrics::seeds::Band;
use crate::results::XAxis;
use std::collections::BTreeSet;

/// If the longest line ends this many times farther than the shortest one, the horizontal axis is logarithmic: the shortest one would have
/// no width.
const FARTHER: f64 = 50.0;
/// A logarithmic axis begins at this part of the end of the shortest line, if lines begin before.
const BEGINNING: f64 = 1e-3;

/// A figure with the curves of a metric, which all have a line.
pub fn comparison(metric: &str, x_axis: XAxis, curves: &[Curve], band: Band) -> Figure {
    let lines: Vec<Vec<Point>> = curves.iter().map(|curve| curve.points(band)).collect();
    let logarithmic = logarithmic_axis(x_axis, &lines);
    let is_logarithmic = logarithmic.is_some();
    let at = |x: f64| if is_logarithmic { x.ln() } else { x };
    let mut panel = Panel { x: logarithmic.unwrap_or_else(|| horizontal(x_axis)), y: axis_of(metric), ..Panel::default() };
    let mut legend = Vec::new();
    let seeds: BTreeSet<usize> = curves.iter().map(|curve| curve.runs.len()).collect();
    let are_alike = seeds.len() == 1;
    for (place, (curve, points)) in curves.iter().zip(&lines).enumerate() {
        // The point at zero has no place on a logarithmic axis.
        let points = || points.iter().filter(|point| !is_logarithmic || point.x > 0.0);
        let stroke = series(place);
        let (mut key, mut sample) = (curve.label.clone(), LegendSample::Line(stroke));
        if curve.runs.len() > 1 {
            let filled = points().map(|point| (at(point.x), point.low, point.high)).collect();
            // All bands lie below all lines.
            panel.marks.insert(place.min(panel.marks.len()), Mark::Band { points: filled, color: stroke.color });
            if !are_alike {
                key = format!("{key} (mean and {} of {} seeds)", band.name(), curve.runs.len());
            }
            sample = LegendSample::Banded(stroke);
        }
        let line = points().map(|point| (at(point.x), point.mean)).collect();
        // A mark would be taken for an evaluation.
        panel.marks.push(Mark::Line { points: line, stroke, marked: curve.shares_rounds() });
        legend.push(LegendEntry { label: key, sample });
    }
    // The unit stands on the axis.
    let mut title = axis_label(metric).split(" (").next().unwrap_or(metric).to_owned();
    if let Some(first) = title.get(..1) {
        title = first.to_uppercase() + &title[1..];
    }
    let of_seeds = match seeds.first() {
        Some(&seeds) if are_alike && seeds > 1 => format!("Mean and {} of {seeds} seeds.", band.name()),
        _ => String::new(),
    };
    let of_interpolation = match curves.iter().all(Curve::shares_rounds) {
        true => "",
        false => "Seeds that were evaluated in different rounds are interpolated linearly.",
    };
    let caption = [&of_seeds, of_interpolation].join(" ").trim().to_owned();
    Figure { legend, caption, ..Figure::of_equal(format!("{title} by {}", by(x_axis)), vec![panel]) }
}

/// The logarithmic horizontal axis, if the lines end so far from each other that they need one and all of their ends have a logarithm.
fn logarithmic_axis(x_axis: XAxis, lines: &[Vec<Point>]) -> Option<Axis> {
    let drawn =
        |line: &'_ [Point]| -> Vec<f64> { line.iter().filter(|point| point.is_drawable()).map(|point| point.x).collect() };
    let ends = lines.iter().filter_map(|line| bounds(drawn(line))).map(|(_, end)| end);
    let (shortest, longest) = bounds(ends)?;
    if x_axis == XAxis::Round || shortest <= 0.0 || longest <= FARTHER * shortest {
        return None;
    }
    let logarithms = lines.iter().flat_map(|line| drawn(line)).map(f64::ln);
    let (low, high) = bounds(logarithms)?;
    let beginning = (BEGINNING * shortest).ln();
    let label = format!("{}, logarithmic", axis_label(x_axis.name()));
    let names = logarithmic_ticks((low.max(beginning), high));
    Some(Axis { names, low: (low < beginning).then_some(beginning), ..Axis::new(label) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_legend_distinguishes_groups_from_single_runs() {
        let one = Curve { label: "alone".into(), runs: vec![vec![(1, 1.0, 0.5)]] };
        let two = Curve { label: "both".into(), runs: vec![vec![(1, 1.0, 0.5)], vec![(1, 1.0, 0.75)]] };
        let figure = comparison("accuracy", XAxis::Round, &[one.clone(), two.clone()], Band::Range);
        let labels: Vec<&str> = figure.legend.iter().map(|key| key.label.as_str()).collect();
        assert_eq!(labels, ["alone", "both (mean and range of 2 seeds)"]);
        assert_eq!(figure.title, "Accuracy by round");
        assert_eq!(comparison("log_likelihood", XAxis::Seconds, &[], Band::Sd).title, "Log-likelihood by time");
        let bands = figure.panels[0].marks.iter().filter(|mark| matches!(mark, Mark::Band { .. })).count();
        assert_eq!((bands, figure.panels[0].marks.len()), (1, 3));
    }

    #[test]
    fn the_caption_says_that_seeds_are_interpolated() {
        let runs = vec![vec![(0, 0.0, 0.5), (10, 10.0, 0.7)], vec![(0, 0.0, 0.5), (15, 15.0, 0.8)]];
        let figure = comparison("accuracy", XAxis::Round, &[Curve { label: "a".into(), runs }], Band::Sd);
        let expected = "Mean and sd of 2 seeds. Seeds that were evaluated in different rounds are interpolated linearly.";
        assert_eq!(figure.caption, expected);
        assert!(matches!(&figure.panels[0].marks[1], Mark::Line { points, marked: false, .. } if points.len() == 2));
    }

    #[test]
    fn an_axis_is_logarithmic_if_lines_end_far_from_each_other() {
        let curve = |end: f64| {
            let points = (0..=4).map(|round| (round, end * round as f64 / 4.0, 0.5)).collect();
            Curve { label: "a".into(), runs: vec![points] }
        };
        let of = |axis, ends: &[f64]| {
            let curves: Vec<Curve> = ends.iter().map(|&end| curve(end)).collect();
            comparison("accuracy", axis, &curves, Band::Sd)
        };
        let figure = of(XAxis::Bytes, &[1e3, 1e6]);
        let panel = &figure.panels[0];
        assert_eq!(panel.x.label, "bytes received and sent by agents, logarithmic");
        assert!(panel.x.names.contains(&(1e4_f64.ln(), "10000".into())), "{:?}", panel.x.names);
        let Mark::Line { points, .. } = &panel.marks[0] else { unreachable!("the figure has lines only") };
        assert!(points.len() == 4 && (points[3].0 - 1e3_f64.ln()).abs() < 1e-12, "{points:?}");
        // The controls: ends that are close, ends without a logarithm, and rounds.
        for control in [of(XAxis::Bytes, &[1e3, 4e4]), of(XAxis::Bytes, &[0.0, 1e3, 1e6]), of(XAxis::Round, &[1e3, 1e6])] {
            assert!(control.panels[0].x.names.is_empty() && !control.panels[0].x.label.contains("logarithmic"));
        }
        // A first evaluation after a microsecond does not take most of the axis.
        let mut early = curve(100.0);
        early.runs[0][0].1 = 1e-6;
        let figure = comparison("accuracy", XAxis::Seconds, &[early, curve(1e4)], Band::Sd);
        assert_eq!(figure.panels[0].x.low, Some(0.1_f64.ln()));
    }
}
