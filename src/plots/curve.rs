//! A curve of a metric over runs that differ only in the seed: mean and band at positions that all runs cover.

use super::ticks::{bounds, drawable};
use crate::metrics::seeds::{Band, OverSeeds};
use crate::results::Points;
use std::collections::{BTreeMap, BTreeSet};

/// A line of the figure, which averages over its runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// Its label in the legend, to which the number of seeds is added.
    pub label: String,
    /// The points of each run.
    pub runs: Vec<Points>,
}

/// A position of a curve: the mean over all runs, and the band of the values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    pub x: f64,
    pub mean: f64,
    pub low: f64,
    pub high: f64,
}

impl Point {
    fn new(x: f64, values: &[f64], band: Band) -> Self {
        // If a value is missing, so is the mean.
        if values.iter().any(|value| !value.is_finite()) {
            return Self { x, mean: f64::NAN, low: f64::NAN, high: f64::NAN };
        }
        let OverSeeds { mean, sd, .. } = OverSeeds::of(values.iter().copied());
        let (low, high) = match band {
            Band::Sd => (mean - sd, mean + sd),
            Band::Range => bounds(values.iter().copied()).unwrap_or((f64::NAN, f64::NAN)),
        };
        Self { x, mean, low, high }
    }

    /// Whether the mean can be drawn.
    pub fn is_drawable(&self) -> bool {
        drawable(self.x) && drawable(self.mean)
    }
}

impl Curve {
    /// Whether there is a point to draw. Without one, the runs have no finite values, or cover no common positions.
    pub fn has_line(&self) -> bool {
        self.points(Band::Sd).iter().any(Point::is_drawable)
    }

    /// Whether all runs have the same rounds, up to the end of the shortest run. Otherwise their values are interpolated.
    pub(super) fn shares_rounds(&self) -> bool {
        let rounds: Vec<BTreeSet<u64>> = self.runs.iter().map(|run| run.iter().map(|point| point.0).collect()).collect();
        let first = rounds.iter().filter_map(BTreeSet::first).max();
        let last = rounds.iter().filter_map(BTreeSet::last).min();
        let (Some(&first), Some(&last)) = (first, last) else { return true };
        let inside = |run: &BTreeSet<u64>| run.iter().copied().filter(|round| (first..=last).contains(round)).collect::<Vec<_>>();
        first <= last && rounds.windows(2).all(|pair| inside(&pair[0]) == inside(&pair[1]))
    }

    /// The points where every run has a value: a mean over fewer runs would jump where one of them ends.
    pub(super) fn points(&self, band: Band) -> Vec<Point> {
        let values = if self.shares_rounds() { self.by_round() } else { self.interpolated() };
        values.into_iter().map(|(x, values)| Point::new(x, &values, band)).collect()
    }

    /// The mean position and the values of all runs in each round that every run has.
    fn by_round(&self) -> Vec<(f64, Vec<f64>)> {
        let mut rounds: BTreeMap<u64, Vec<(f64, f64)>> = BTreeMap::new();
        for &(round, x, value) in self.runs.iter().flatten() {
            rounds.entry(round).or_default().push((x, value));
        }
        let whole = rounds.into_values().filter(|at| at.len() == self.runs.len());
        let mean = |at: &[(f64, f64)]| at.iter().map(|point| point.0).sum::<f64>() / at.len() as f64;
        whole.map(|at| (mean(&at), at.into_iter().map(|point| point.1).collect())).collect()
    }

    /// The interpolated values of all runs at the positions of each of them, within the range that every run covers.
    fn interpolated(&self) -> Vec<(f64, Vec<f64>)> {
        let runs: Vec<Vec<(f64, f64)>> = self.runs.iter().map(by_position).collect();
        let ends: Option<Vec<(f64, f64)>> = runs.iter().map(|run| Some((run.first()?.0, run.last()?.0))).collect();
        let Some(ends) = ends else { return Vec::new() };
        let low = ends.iter().fold(f64::NEG_INFINITY, |low, end| low.max(end.0));
        let high = ends.iter().fold(f64::INFINITY, |high, end| high.min(end.1));
        let mut positions: Vec<f64> = runs.iter().flatten().map(|point| point.0).filter(|x| (low..=high).contains(x)).collect();
        positions.sort_by(f64::total_cmp);
        positions.dedup();
        positions.into_iter().map(|x| (x, runs.iter().map(|run| value_at(run, x)).collect())).collect()
    }
}

/// The positions and values of a run, in the order of the positions.
fn by_position(points: &Points) -> Vec<(f64, f64)> {
    let mut points: Vec<(f64, f64)> = points.iter().map(|&(_, x, value)| (x, value)).filter(|point| drawable(point.0)).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points
}

/// The value at a position by linear interpolation between the two points around it; NaN outside of the points. Several points at the
/// same position have the value of the last one.
fn value_at(points: &[(f64, f64)], x: f64) -> f64 {
    let after = points.partition_point(|point| point.0 <= x);
    let Some(&(left, value)) = after.checked_sub(1).and_then(|before| points.get(before)) else { return f64::NAN };
    if left == x {
        return value;
    }
    points.get(after).map_or(f64::NAN, |&(right, next)| value + (x - left) / (right - left) * (next - value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(runs: Vec<Points>) -> Curve {
        Curve { label: "a".into(), runs }
    }

    #[test]
    fn seeds_become_a_mean_with_a_range() {
        let runs = vec![vec![(1, 1.0, 0.5), (2, 2.0, 0.7), (3, 3.0, 0.9)], vec![(1, 1.5, 0.6), (2, 2.5, f64::NAN)]];
        let points = curve(runs).points(Band::Range);
        // Only one run has the third round.
        assert_eq!(points.len(), 2);
        assert_eq!((points[0].x, points[0].low, points[0].high), (1.25, 0.5, 0.6));
        let sds = curve(vec![vec![(1, 1.0, 0.5)], vec![(1, 1.0, 0.7)]]).points(Band::Sd);
        assert!((sds[0].high - 0.6 - 0.02_f64.sqrt()).abs() < 1e-15 && (sds[0].low - 0.6 + 0.02_f64.sqrt()).abs() < 1e-15);
        assert!((points[0].mean - 0.55).abs() < 1e-15 && points[1].mean.is_nan() && points[1].low.is_nan());
    }

    /// The line 2x + 1 at every position, although no two runs have a round in common.
    #[test]
    fn interpolation_of_linear_curves_is_exact() {
        let line = |rounds: &[u64], intercept: f64| -> Points {
            rounds.iter().map(|&round| (round, round as f64, 2.0 * round as f64 + intercept)).collect()
        };
        let curve = curve(vec![line(&[1, 8, 16], 0.0), line(&[2, 5, 20], 1.0), line(&[3, 4, 12], 2.0)]);
        assert!(!curve.shares_rounds() && curve.has_line());
        let points = curve.points(Band::Range);
        // The positions of all runs from 3, where the last one begins, to 12, where the first one ends.
        assert_eq!(points.iter().map(|point| point.x).collect::<Vec<_>>(), [3.0, 4.0, 5.0, 8.0, 12.0]);
        for Point { x, mean, low, high } in points {
            let expected = 2.0 * x + 1.0;
            assert!((mean - expected).abs() < 1e-12 && (high - low - 2.0).abs() < 1e-12, "{x}: {mean}, {low} to {high}");
        }
        let sds = curve.points(Band::Sd);
        assert!(sds.iter().all(|point| (point.high - point.mean - 1.0).abs() < 1e-12));
    }

    /// Seconds and bytes are interpolated by position, not by round.
    #[test]
    fn positions_of_other_axes_are_interpolated() {
        let slow = vec![(1, 10.0, 0.1), (3, 30.0, 0.3)];
        let fast = vec![(2, 5.0, 0.5), (6, 15.0, 0.5), (9, 25.0, 0.5)];
        let points = curve(vec![slow, fast]).points(Band::Range);
        assert_eq!(points.iter().map(|point| point.x).collect::<Vec<_>>(), [10.0, 15.0, 25.0]);
        assert!((points[1].low - 0.15).abs() < 1e-12 && (points[1].high - 0.5).abs() < 1e-12);
    }

    #[test]
    fn values_outside_of_the_shared_range_are_not_invented() {
        let points = [(1.0, 10.0), (2.0, 20.0), (2.0, 30.0), (4.0, 50.0)];
        assert_eq!([1.0, 1.5, 2.0, 3.0, 4.0].map(|x| value_at(&points, x)), [10.0, 15.0, 30.0, 40.0, 50.0]);
        assert!(value_at(&points, 0.5).is_nan() && value_at(&points, 4.5).is_nan() && value_at(&[], 1.0).is_nan());
        let apart = curve(vec![vec![(1, 1.0, 0.5), (2, 2.0, 0.5)], vec![(3, 3.0, 0.5), (4, 4.0, 0.5)]]);
        assert!(apart.points(Band::Sd).is_empty() && !apart.has_line());
        assert!(!curve(vec![vec![(1, 1.0, 0.5)], Vec::new()]).has_line());
        // A missing value leaves a gap up to the points beside it.
        let gap = curve(vec![
            vec![(1, 1.0, 0.5), (3, 3.0, f64::NAN), (5, 5.0, 0.5), (7, 7.0, 0.5)],
            vec![(2, 2.0, 0.5), (6, 6.0, 0.5)],
        ]);
        let means: Vec<bool> = gap.points(Band::Sd).iter().map(Point::is_drawable).collect();
        assert_eq!(means, [false, false, true, true]);
    }

    /// A run that was stopped early has the rounds of the others up to there, so that nothing is interpolated.
    #[test]
    fn runs_with_the_same_rounds_are_not_interpolated() {
        let run = |rounds: &[u64], x: f64| -> Points { rounds.iter().map(|&round| (round, x * round as f64, 0.5)).collect() };
        let curve = curve(vec![run(&[0, 10, 20, 30], 1.0), run(&[0, 10, 20], 2.0)]);
        assert!(curve.shares_rounds());
        assert_eq!(curve.points(Band::Sd).iter().map(|point| point.x).collect::<Vec<_>>(), [0.0, 15.0, 30.0]);
    }
}
