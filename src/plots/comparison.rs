//! One metric of several runs, as a line for each; runs that differ only in the seed share a line with a band.

use super::figure::{Figure, Key, Mark, Panel, Sample, series};
use super::history::{axis_of, by, horizontal};
use super::ticks::bounds;
use crate::metrics::label;
use crate::metrics::seeds::{Band, OverSeeds};
use crate::results::{Points, XAxis};
use std::collections::{BTreeMap, BTreeSet};

/// A line of the figure, which averages over its runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// Its label in the legend, to which the number of seeds is added.
    pub label: String,
    /// The points of each run.
    pub runs: Vec<Points>,
}

/// A round of a curve: mean position and value over all runs, and the band of the values.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Point {
    x: f64,
    mean: f64,
    low: f64,
    high: f64,
}

impl Curve {
    /// The rounds that every run has: a mean over fewer runs would jump where one of them ends.
    fn points(&self, band: Band) -> Vec<Point> {
        let mut steps: BTreeMap<u64, Vec<(f64, f64)>> = BTreeMap::new();
        for &(step, x, value) in self.runs.iter().flatten() {
            steps.entry(step).or_default().push((x, value));
        }
        let whole = steps.values().filter(|at| at.len() == self.runs.len());
        whole
            .map(|at| {
                let x = at.iter().map(|pair| pair.0).sum::<f64>() / at.len() as f64;
                let values = || at.iter().map(|pair| pair.1);
                // If a value is missing, so is the mean.
                if values().any(|value| !value.is_finite()) {
                    return Point { x, mean: f64::NAN, low: f64::NAN, high: f64::NAN };
                }
                let OverSeeds { mean, sd, .. } = OverSeeds::of(values());
                let (low, high) = match band {
                    Band::Sd => (mean - sd, mean + sd),
                    Band::Range => bounds(values()).unwrap_or((f64::NAN, f64::NAN)),
                };
                Point { x, mean, low, high }
            })
            .collect()
    }
}

/// A figure with the curves of a metric.
pub fn comparison(metric: &str, x_axis: XAxis, curves: &[Curve], band: Band) -> Figure {
    let mut panel = Panel { x: horizontal(x_axis), y: axis_of(metric), ..Panel::default() };
    let mut legend = Vec::new();
    let seeds: BTreeSet<usize> = curves.iter().map(|curve| curve.runs.len()).collect();
    let are_alike = seeds.len() == 1;
    for (place, curve) in curves.iter().enumerate() {
        let (stroke, points) = (series(place), curve.points(band));
        let (mut key, mut sample) = (curve.label.clone(), Sample::Line(stroke));
        if curve.runs.len() > 1 {
            let filled = points.iter().map(|point| (point.x, point.low, point.high)).collect();
            // All bands lie below all lines.
            panel.marks.insert(place.min(panel.marks.len()), Mark::Band { points: filled, color: stroke.color });
            if !are_alike {
                key = format!("{key} (mean and {} of {} seeds)", band.name(), curve.runs.len());
            }
            sample = Sample::Banded(stroke);
        }
        let line = points.iter().map(|point| (point.x, point.mean)).collect();
        panel.marks.push(Mark::Line { points: line, stroke, marked: true });
        legend.push(Key { label: key, sample });
    }
    // The unit stands on the axis.
    let mut title = label(metric).split(" (").next().unwrap_or(metric).to_owned();
    if let Some(first) = title.get(..1) {
        title = first.to_uppercase() + &title[1..];
    }
    let caption = match seeds.first() {
        Some(&seeds) if are_alike && seeds > 1 => format!("Mean and {} of {seeds} seeds.", band.name()),
        _ => String::new(),
    };
    Figure { legend, caption, ..Figure::of_equal(format!("{title} by {}", by(x_axis)), vec![panel]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_become_a_mean_with_a_range() {
        let runs = vec![vec![(1, 1.0, 0.5), (2, 2.0, 0.7), (3, 3.0, 0.9)], vec![(1, 1.5, 0.6), (2, 2.5, f64::NAN)]];
        let points = Curve { label: "a".into(), runs }.points(Band::Range);
        // Only one run has the third round.
        assert_eq!(points.len(), 2);
        assert_eq!((points[0].x, points[0].low, points[0].high), (1.25, 0.5, 0.6));
        let sds = Curve { label: "a".into(), runs: vec![vec![(1, 1.0, 0.5)], vec![(1, 1.0, 0.7)]] }.points(Band::Sd);
        assert!((sds[0].high - 0.6 - 0.02_f64.sqrt()).abs() < 1e-15 && (sds[0].low - 0.6 + 0.02_f64.sqrt()).abs() < 1e-15);
        assert!((points[0].mean - 0.55).abs() < 1e-15 && points[1].mean.is_nan() && points[1].low.is_nan());
    }

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
}
