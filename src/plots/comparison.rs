//! Curves of one metric for several runs; runs that differ in nothing but the seed are one line with a band.

use super::Result;
use super::figure::{Axis, Figure, Key, Mark, Panel, Sample, series};
use super::history::{Against, by, clock, find};
use super::quantity::{domain, label};
use super::ticks::{bounds, drawable};
use crate::results::RunFile;
use std::collections::BTreeMap;

/// One run's values of a metric: step, place on the horizontal axis, value.
pub type Values = Vec<(u64, f64, f64)>;

/// The values of a metric, or of a column of the history; none if the run has no such column or horizontal axis.
///
/// # Errors
/// When the file cannot be read.
pub fn values(file: &RunFile, metric: &str, against: Against) -> Result<Option<Values>> {
    let Some(table) = find(file, metric)? else { return Ok(None) };
    let (Some(x), Some(y)) = (clock(file, &table, against)?, table.column(metric)) else { return Ok(None) };
    let rows = (0..table.rows()).filter(|&row| table.agent[row].is_none());
    Ok(Some(rows.map(|row| (table.step[row], x[row], y[row])).collect()))
}

/// A line of the picture: the runs that belong to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// What the legend says, without how many runs there are.
    pub label: String,
    /// The values of each run.
    pub runs: Vec<Values>,
}

/// A step of a curve: means over the runs that have it of the place and the value, and the range of the values.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Point {
    x: f64,
    mean: f64,
    low: f64,
    high: f64,
}

impl Curve {
    /// The steps that every run has; the mean of some would jump where another one ends.
    fn points(&self) -> Vec<Point> {
        let mut steps: BTreeMap<u64, Vec<(f64, f64)>> = BTreeMap::new();
        for &(step, x, value) in self.runs.iter().flatten() {
            steps.entry(step).or_default().push((x, value));
        }
        let whole = steps.values().filter(|at| at.len() == self.runs.len());
        whole
            .map(|at| {
                let n = at.len() as f64;
                let mean = |pick: fn(&(f64, f64)) -> f64| at.iter().map(|pair| pick(pair) / n).sum::<f64>();
                // A value that is missing is missing in the mean, so that it shall not be in the range either.
                let range = bounds(at.iter().map(|pair| pair.1)).filter(|_| at.iter().all(|pair| drawable(pair.1)));
                let (low, high) = range.unwrap_or((f64::NAN, f64::NAN));
                Point { x: mean(|pair| pair.0), mean: mean(|pair| pair.1), low, high }
            })
            .collect()
    }
}

/// The curves of a metric.
pub fn comparison(metric: &str, against: Against, curves: &[Curve]) -> Figure {
    let mut panel =
        Panel { x: against.axis(), y: Axis { domain: domain(metric), ..Axis::new(label(metric)) }, ..Panel::default() };
    let mut legend = Vec::new();
    for (place, curve) in curves.iter().enumerate() {
        let (stroke, points) = (series(place), curve.points());
        let (mut key, mut sample) = (curve.label.clone(), Sample::Line(stroke));
        if curve.runs.len() > 1 {
            let band = points.iter().map(|point| (point.x, point.low, point.high)).collect();
            // Bands below all lines.
            panel.marks.insert(place.min(panel.marks.len()), Mark::Band { points: band, colour: stroke.colour });
            key = format!("{key} (mean and range of {} seeds)", curve.runs.len());
            sample = Sample::Banded(stroke);
        }
        let line = points.iter().map(|point| (point.x, point.mean)).collect();
        panel.marks.push(Mark::Line { points: line, stroke, marked: true });
        legend.push(Key { label: key, sample });
    }
    // The axis has the unit.
    let mut title = label(metric).split(" in ").next().unwrap_or(metric).to_owned();
    if let Some(first) = title.get(..1) {
        title = first.to_uppercase() + &title[1..];
    }
    Figure { legend, ..Figure::of_equal(format!("{title} by {}", by(against)), vec![panel]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_become_a_mean_with_a_range() {
        let runs = vec![vec![(1, 1.0, 0.5), (2, 2.0, 0.7), (3, 3.0, 0.9)], vec![(1, 1.5, 0.6), (2, 2.5, f64::NAN)]];
        let points = Curve { label: "a".into(), runs }.points();
        // The third step is one run's alone.
        assert_eq!(points.len(), 2);
        assert_eq!((points[0].x, points[0].low, points[0].high), (1.25, 0.5, 0.6));
        assert!((points[0].mean - 0.55).abs() < 1e-15 && points[1].mean.is_nan() && points[1].low.is_nan());
    }

    #[test]
    fn the_legend_tells_groups_from_runs() {
        let one = Curve { label: "alone".into(), runs: vec![vec![(1, 1.0, 0.5)]] };
        let two = Curve { label: "both".into(), runs: vec![vec![(1, 1.0, 0.5)], vec![(1, 1.0, 0.75)]] };
        let figure = comparison("accuracy", Against::Round, &[one, two]);
        let labels: Vec<&str> = figure.legend.iter().map(|key| key.label.as_str()).collect();
        assert_eq!(labels, ["alone", "both (mean and range of 2 seeds)"]);
        assert_eq!(figure.title, "Accuracy by round");
        assert_eq!(comparison("log_likelihood", Against::Seconds, &[]).title, "Log-likelihood by time");
        let bands = figure.panels[0].marks.iter().filter(|mark| matches!(mark, Mark::Band { .. })).count();
        assert_eq!((bands, figure.panels[0].marks.len()), (1, 3));
    }
}
