//! The reliability diagram: accuracy by confidence, with the number of rows in each bin, of one run or of several.

use super::canvas::Stroke;
use super::error::Result;
use super::figure::{Axis, Figure, LegendEntry, LegendSample, Mark, Panel, bars, series};
use crate::metrics::{Bin, Classification};
use crate::results::{METRICS, ResultFile, Table};
use crate::text::counted;
use std::collections::BTreeSet;

/// The table of reliability bins.
const TABLE: &str = "reliability";
/// The 0.95 quantile of the standard normal distribution, for 90 % intervals.
const Z: f64 = 1.644_853_626_951_472_2;

/// The accuracy of a bin with fewer rows is chance, and hides the curves of other runs.
const FEW_ROWS: u64 = 20;

/// The bins of runs that differ only in the seed.
#[derive(Clone, Debug, PartialEq)]
pub struct ReliabilityCurve {
    /// The label in the legend, to which the number of seeds is added where curves differ in it.
    pub label: String,
    /// The bins of each run.
    pub runs: Vec<Vec<Bin>>,
}

impl ReliabilityCurve {
    /// Whether a bin has rows.
    pub fn has_rows(&self) -> bool {
        self.runs.iter().flatten().any(|bin| bin.rows > 0)
    }

    /// The bins that have rows, each with the rows of all runs: accuracy and confidence are means over these rows.
    fn pooled(&self) -> Vec<Bin> {
        let mut bins: Vec<Bin> = self.runs.iter().flatten().copied().filter(|bin| bin.rows > 0).collect();
        bins.sort_by(|a, b| a.lower.total_cmp(&b.lower).then(a.upper.total_cmp(&b.upper)));
        let pool = |same: &[Bin]| {
            let rows: u64 = same.iter().map(|bin| bin.rows).sum();
            let mean = |of: fn(&Bin) -> f64| same.iter().map(|bin| bin.rows as f64 * of(bin)).sum::<f64>() / rows as f64;
            Bin { rows, accuracy: mean(|bin| bin.accuracy), confidence: mean(|bin| bin.confidence), ..same[0] }
        };
        bins.chunk_by(|a, b| (a.lower, a.upper) == (b.lower, b.upper)).map(pool).collect()
    }
}

/// The round and the bins of the last evaluation in a table.
fn last_bins_in(table: &Table) -> Option<(u64, Vec<Bin>)> {
    let column = |name| table.column(name);
    let (lower, upper, rows) = (column("lower")?, column("upper")?, column("rows")?);
    let (accuracy, confidence) = (column("accuracy")?, column("confidence")?);
    let step = (0..table.rows()).filter(|&row| table.agent[row].is_none()).map(|row| table.step[row]).max()?;
    let bins = (0..table.rows()).filter(|&row| table.agent[row].is_none() && table.step[row] == step).map(|row| Bin {
        lower: lower[row],
        upper: upper[row],
        // The table holds counts as floating-point numbers.
        rows: rows[row] as u64,
        accuracy: accuracy[row],
        confidence: confidence[row],
    });
    Some((step, bins.collect()))
}

/// The round of the last evaluation and its reliability bins; `None` if the run has no reliability table.
///
/// # Errors
/// When the file cannot be read.
pub fn last_bins(file: &ResultFile) -> Result<Option<(u64, Vec<Bin>)>> {
    Ok(file.find_table(TABLE)?.as_ref().and_then(last_bins_in))
}

/// The 90 % score interval of Wilson (1927) for a proportion `p` of `n` rows.
fn wilson(p: f64, n: f64) -> (f64, f64) {
    let (center, denominator) = (p + Z * Z / (2.0 * n), 1.0 + Z * Z / n);
    let half = Z * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
    ((center - half) / denominator, (center + half) / denominator)
}

/// The reliability diagram of the last evaluation; `None` if the run has no reliability table.
///
/// # Errors
/// When the file cannot be read.
pub fn reliability(file: &ResultFile) -> Result<Option<Figure>> {
    let Some((step, bins)) = last_bins(file)? else { return Ok(None) };
    let metrics = file.find_table(METRICS)?.unwrap_or_default();
    let metric = |name: &str| {
        let row = (0..metrics.rows()).rfind(|&row| metrics.agent[row].is_none() && metrics.step[row] == step)?;
        metrics.column(name).map(|values| values[row]).filter(|value| value.is_finite())
    };
    Ok(Some(diagram(&bins, &format!("Round {step}"), metric)))
}

/// The reliability diagram of predictions by all draws of all chains.
pub fn reliability_of_draws(found: &Classification) -> Figure {
    let metric = |name: &str| match name {
        "ece" => Some(found.ece),
        "mce" => Some(found.mce),
        "mce_20" => Some(found.mce_20).filter(|value| value.is_finite()),
        _ => None,
    };
    diagram(&found.reliability, "Predictions by all draws of all chains", metric)
}

/// The line of perfect calibration, and its style.
fn diagonal() -> (Mark, Stroke) {
    let stroke = Stroke { dashes: "5 4", ..Stroke::solid("#666666", 1.2) };
    (Mark::Line { points: vec![(0.0, 0.0), (1.0, 1.0)], stroke, marked: false }, stroke)
}

/// An axis from 0 to 1.
fn proportion(label: &str) -> Axis {
    Axis { low: Some(-0.02), high: Some(1.03), domain: Some((0.0, 1.0)), ..Axis::new(label) }
}

/// The reliability diagram of several runs, with a curve for each group of runs that differ only in the seed.
pub fn reliability_of_groups(curves: &[ReliabilityCurve]) -> Figure {
    let (line, dashed) = diagonal();
    let (mut marks, mut distributions, mut legend) = (vec![line], Vec::new(), Vec::new());
    let mut has_few = false;
    let numbers_of_seeds: BTreeSet<usize> = curves.iter().map(|curve| curve.runs.len()).collect();
    for (place, curve) in curves.iter().enumerate() {
        let (stroke, bins) = (series(place), curve.pooled());
        let rows = bins.iter().map(|bin| bin.rows).sum::<u64>() as f64;
        let points = bins.iter().filter(|bin| bin.rows >= FEW_ROWS).map(|bin| (bin.confidence, bin.accuracy)).collect();
        has_few |= bins.iter().any(|bin| bin.rows < FEW_ROWS);
        marks.push(Mark::Line { points, stroke, marked: true });
        let points = bins.iter().map(|bin| (0.5 * (bin.lower + bin.upper), bin.rows as f64 / rows)).collect();
        distributions.push(Mark::Line { points, stroke, marked: true });
        let label = match curve.runs.len() {
            runs if numbers_of_seeds.len() > 1 && runs > 1 => format!("{} ({})", curve.label, counted(runs, "seed")),
            _ => curve.label.clone(),
        };
        legend.push(LegendEntry { label, sample: LegendSample::Marked(stroke) });
    }
    legend.push(LegendEntry { label: "perfect calibration".into(), sample: LegendSample::Line(dashed) });
    let y = Axis { low: Some(0.0), domain: Some((0.0, 1.0)), ..Axis::new("proportion of test rows") };
    let mut caption = match numbers_of_seeds.last() {
        Some(&most) if most > 1 && numbers_of_seeds.len() == 1 => format!("Bins of {most} seeds, weighted by their test rows."),
        Some(&most) if most > 1 => "Bins of several seeds are weighted by their test rows.".into(),
        _ => String::new(),
    };
    if has_few {
        caption = format!("{caption} Bins with fewer than {FEW_ROWS} rows have no accuracy here.").trim_start().to_owned();
    }
    figure(legend, marks, (y, distributions), caption)
}

/// A reliability diagram: the accuracy above the rows of the bins, which have an axis of their own.
fn figure(legend: Vec<LegendEntry>, accuracy: Vec<Mark>, (axis_of_rows, rows): (Axis, Vec<Mark>), caption: String) -> Figure {
    let x = Axis { bare: true, ..proportion("") };
    let upper = Panel { x, y: proportion("accuracy"), marks: accuracy, height: 3.0, ..Panel::default() };
    let lower = Panel { x: proportion("confidence"), y: axis_of_rows, marks: rows, height: 1.25, ..Panel::default() };
    Figure {
        title: "Reliability".into(),
        subtitle: String::new(),
        legend,
        panels: vec![upper, lower],
        columns: 1,
        cell: (560.0, 118.0),
        caption,
        remark: String::new(),
    }
}

fn diagram(bins: &[Bin], what: &str, metric: impl Fn(&str) -> Option<f64>) -> Figure {
    let filled: Vec<&Bin> = bins.iter().filter(|bin| bin.rows > 0).collect();
    let of_bins = series(0);
    let (line, dashed) = diagonal();
    let whisker = Stroke { opacity: 0.55, ..Stroke::solid(of_bins.color, 1.4) };
    let points: Vec<(f64, f64)> = filled.iter().map(|bin| (bin.confidence, bin.accuracy)).collect();
    let intervals = filled.iter().map(|bin| {
        let (low, high) = wilson(bin.accuracy, bin.rows as f64);
        (bin.confidence, low, high)
    });
    let accuracy = vec![
        line,
        Mark::Whiskers { points: intervals.collect(), stroke: whisker },
        Mark::Line { points, stroke: of_bins, marked: true },
    ];
    let color = series(5).color;
    let y = Axis { low: Some(0.0), whole: true, ..Axis::new("test rows") };
    let of_rows = Mark::Bars { bars: bins.iter().map(|bin| (bin.lower, bin.upper, [0.0, bin.rows as f64])).collect(), color };
    let rows = bins.iter().map(|bin| bin.rows).sum::<u64>() as usize;
    let errors: Vec<String> = [
        ("ece", "expected calibration error (ECE)"),
        ("mce", "maximum calibration error (MCE)"),
        ("mce_20", "MCE of bins with at least 20 rows"),
    ]
    .into_iter()
    .filter_map(|(name, label)| metric(name).map(|value| format!("{label} {value:.4}")))
    .collect();
    let mut caption = format!("{what}, {}", counted(rows, "test row"));
    if !errors.is_empty() {
        caption = format!("{caption}: {}", errors.join(", "));
    }
    let legend = vec![
        LegendEntry { label: "accuracy in a bin, with 90 % interval".into(), sample: LegendSample::Marked(of_bins) },
        LegendEntry { label: "perfect calibration".into(), sample: LegendSample::Line(dashed) },
        LegendEntry { label: "test rows in a bin".into(), sample: bars(color) },
    ];
    figure(legend, accuracy, (y, vec![of_rows]), caption + ".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_wilson_score_intervals() {
        // By definition, the score test of p0 is at its critical value at both ends p0: (p − p0)² n = z² p0(1 − p0).
        for (p, n) in [(0.5, 10.0), (0.0, 5.0), (1.0, 1.0), (0.93, 2000.0)] {
            let (low, high) = wilson(p, n);
            for end in [low, high] {
                let (score, bound) = ((p - end) * (p - end) * n, Z * Z * end * (1.0 - end));
                assert!((score - bound).abs() < 1e-12, "{p} of {n}: {end}");
            }
            // Up to rounding, for proportions of 0 and 1.
            assert!(low < p + 1e-15 && p < high + 1e-15 && low < high && low > -1e-15 && high < 1.0 + 1e-15);
        }
    }

    fn bin(lower: f64, rows: u64, accuracy: f64, confidence: f64) -> Bin {
        Bin { lower, upper: lower + 0.5, rows, accuracy, confidence }
    }

    #[test]
    fn bins_of_seeds_are_weighted_by_their_rows() {
        let runs = vec![
            vec![bin(0.0, 0, f64::NAN, f64::NAN), bin(0.5, 30, 0.9, 0.8)],
            vec![bin(0.0, 5, 0.2, 0.4), bin(0.5, 10, 0.5, 0.6)],
        ];
        let group = ReliabilityCurve { label: "both".into(), runs };
        let alone = ReliabilityCurve { label: "alone".into(), runs: vec![vec![bin(0.5, 28, 0.75, 0.625)]] };
        let pooled = group.pooled();
        assert_eq!(pooled.iter().map(|bin| (bin.lower, bin.rows)).collect::<Vec<_>>(), [(0.0, 5), (0.5, 40)]);
        assert!((pooled[1].accuracy - 0.8).abs() < 1e-12 && (pooled[1].confidence - 0.75).abs() < 1e-12, "{pooled:?}");
        assert_eq!((pooled[0].accuracy, pooled[0].confidence), (0.2, 0.4));
        assert!(group.has_rows() && !ReliabilityCurve { label: "a".into(), runs: vec![vec![bin(0.0, 0, 0.0, 0.0)]] }.has_rows());
        let figure = reliability_of_groups(&[group, alone]);
        let labels: Vec<&str> = figure.legend.iter().map(|key| key.label.as_str()).collect();
        assert_eq!(labels, ["both (2 seeds)", "alone", "perfect calibration"]);
        // The diagonal comes first.
        assert_eq!(figure.panels[0].marks[2], Mark::Line { points: vec![(0.625, 0.75)], stroke: series(1), marked: true });
        // A bin with five rows has no accuracy, but shows its rows.
        let Mark::Line { points, .. } = &figure.panels[0].marks[1] else { panic!("no accuracy") };
        assert!(points.len() == 1 && figure.caption.ends_with("Bins with fewer than 20 rows have no accuracy here."));
        let Mark::Line { points, .. } = &figure.panels[1].marks[0] else { panic!("no rows") };
        assert!((points[0].1 - 1.0 / 9.0).abs() < 1e-12 && (points[1].1 - 8.0 / 9.0).abs() < 1e-12, "{points:?}");
    }
}
