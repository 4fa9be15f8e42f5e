//! The reliability diagram: accuracy by confidence, with the number of rows in each bin.

use super::canvas::Stroke;
use super::error::Result;
use super::figure::{Axis, Figure, Key, Mark, Panel, Sample, bars, series};
use super::parameters::counted;
use crate::metrics::Classification;
use crate::results::{METRICS, ResultFile, Table};

/// The table of reliability bins.
const TABLE: &str = "reliability";
/// The 0.95 quantile of the standard normal distribution, for 90 % intervals.
const Z: f64 = 1.644_853_626_951_472_2;

/// A bin of the table: the rows with a confidence in (`lower`, `upper`].
struct Bin {
    lower: f64,
    upper: f64,
    rows: f64,
    accuracy: f64,
    confidence: f64,
}

/// The round of the last evaluation, and its bins.
fn last_bins(table: &Table) -> Option<(u64, Vec<Bin>)> {
    let column = |name| table.column(name);
    let (lower, upper, rows) = (column("lower")?, column("upper")?, column("rows")?);
    let (accuracy, confidence) = (column("accuracy")?, column("confidence")?);
    let step = (0..table.rows()).filter(|&row| table.agent[row].is_none()).map(|row| table.step[row]).max()?;
    let bins = (0..table.rows()).filter(|&row| table.agent[row].is_none() && table.step[row] == step).map(|row| Bin {
        lower: lower[row],
        upper: upper[row],
        rows: rows[row],
        accuracy: accuracy[row],
        confidence: confidence[row],
    });
    Some((step, bins.collect()))
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
    let Some((step, bins)) = file.find_table(TABLE)?.as_ref().and_then(last_bins) else { return Ok(None) };
    let metrics = file.find_table(METRICS)?.unwrap_or_default();
    let metric = |name: &str| {
        let row = (0..metrics.rows()).rfind(|&row| metrics.agent[row].is_none() && metrics.step[row] == step)?;
        metrics.column(name).map(|values| values[row]).filter(|value| value.is_finite())
    };
    Ok(Some(diagram(&bins, &format!("Round {step}"), metric)))
}

/// The reliability diagram of predictions by all draws of all chains.
pub fn reliability_of_draws(found: &Classification) -> Figure {
    let bins: Vec<Bin> = found
        .reliability
        .iter()
        .map(|bin| Bin {
            lower: bin.lower,
            upper: bin.upper,
            rows: bin.rows as f64,
            accuracy: bin.accuracy,
            confidence: bin.confidence,
        })
        .collect();
    let metric = |name: &str| match name {
        "ece" => Some(found.ece),
        "mce" => Some(found.mce),
        "mce_20" => Some(found.mce_20).filter(|value| value.is_finite()),
        _ => None,
    };
    diagram(&bins, "Predictions by all draws of all chains", metric)
}

fn diagram(bins: &[Bin], what: &str, metric: impl Fn(&str) -> Option<f64>) -> Figure {
    let filled: Vec<&Bin> = bins.iter().filter(|bin| bin.rows > 0.0).collect();
    let of_bins = series(0);
    let diagonal = Stroke { dashes: "5 4", ..Stroke::solid("#666666", 1.2) };
    let whisker = Stroke { opacity: 0.55, ..Stroke::solid(of_bins.color, 1.4) };
    let points: Vec<(f64, f64)> = filled.iter().map(|bin| (bin.confidence, bin.accuracy)).collect();
    let intervals = filled.iter().map(|bin| {
        let (low, high) = wilson(bin.accuracy, bin.rows);
        (bin.confidence, low, high)
    });
    let proportion = |label: &str| Axis { low: Some(-0.02), high: Some(1.03), domain: Some((0.0, 1.0)), ..Axis::new(label) };
    let upper = Panel {
        x: Axis { bare: true, ..proportion("") },
        y: proportion("accuracy"),
        marks: vec![
            Mark::Line { points: vec![(0.0, 0.0), (1.0, 1.0)], stroke: diagonal, marked: false },
            Mark::Whiskers { points: intervals.collect(), stroke: whisker },
            Mark::Line { points, stroke: of_bins, marked: true },
        ],
        height: 3.0,
        ..Panel::default()
    };
    let color = series(5).color;
    let lower = Panel {
        x: proportion("confidence"),
        y: Axis { low: Some(0.0), whole: true, ..Axis::new("test rows") },
        marks: vec![Mark::Bars { bars: bins.iter().map(|bin| (bin.lower, bin.upper, bin.rows)).collect(), color }],
        height: 1.25,
        ..Panel::default()
    };
    // The table holds counts as floating-point numbers.
    let rows = bins.iter().map(|bin| bin.rows).filter(|rows| rows.is_finite()).sum::<f64>() as usize;
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
        Key { label: "accuracy in a bin, with 90 % interval".into(), sample: Sample::Marked(of_bins) },
        Key { label: "perfect calibration".into(), sample: Sample::Line(diagonal) },
        Key { label: "test rows in a bin".into(), sample: bars(color) },
    ];
    Figure {
        title: "Reliability".into(),
        subtitle: String::new(),
        legend,
        panels: vec![upper, lower],
        columns: 1,
        cell: (560.0, 118.0),
        caption: caption + ".",
        remark: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::wilson;

    #[test]
    fn intervals_are_wilson_score_intervals() {
        // By definition, the score test of p0 is at its critical value at both ends p0: (p − p0)² n = z² p0(1 − p0).
        for (p, n) in [(0.5, 10.0), (0.0, 5.0), (1.0, 1.0), (0.93, 2000.0)] {
            let (low, high) = wilson(p, n);
            for end in [low, high] {
                let (score, bound) = ((p - end) * (p - end) * n, super::Z * super::Z * end * (1.0 - end));
                assert!((score - bound).abs() < 1e-12, "{p} of {n}: {end}");
            }
            // Up to rounding, for proportions of 0 and 1.
            assert!(low < p + 1e-15 && p < high + 1e-15 && low < high && low > -1e-15 && high < 1.0 + 1e-15);
        }
    }
}
