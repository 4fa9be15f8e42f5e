//! Metrics of predictions (accuracy, log-likelihood, RMSE, calibration) as mergeable partial sums; in modules of their own, what is measured of
//! draws (bias, convergence, temperature, leave-one-out predictions).
//!
//! Every agent adds its slice of the test rows to a [`Tally`]. The server merges the tallies in the order of the agents, so that the sums
//! are bitwise equal for any number of ranks, and computes the [`Metrics`].

pub mod bias;
pub mod convergence;
pub mod loo;
mod quantity;
pub mod recalibration;
pub mod seeds;
pub mod temperature;

pub use quantity::{Better, axis_label, better_direction, meaning, possible_range};

use crate::number::Real;
use ndarray::{ArrayView1, ArrayView2};
use serde::{Deserialize, Serialize};

/// A floor inside the logarithm: a test row with probability 0 costs 115 nats instead of infinity.
const DENSITY_FLOOR: f64 = 1e-50;
/// `mce_20` ignores bins with fewer rows, which are too noisy.
const MIN_BIN_ROWS: u64 = 20;
/// The default number of reliability bins.
const BINS: usize = 10;

/// Partial sums of different kinds of predictions cannot be merged.
#[derive(Debug, thiserror::Error)]
#[error("metrics of different predictions cannot be merged: {0} and {1}")]
pub struct MergeError(String, String);

/// Partial sums over some rows of test data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tally {
    rows: u64,
    log_likelihood: f64,
    sums: Sums,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Sums {
    Classes {
        /// Rows and correctly classified rows of each class.
        classes: Vec<Hits>,
        /// Rows, correct rows and sum of confidences of each reliability bin.
        bins: Vec<(Hits, f64)>,
    },
    Number {
        squared_error: f64,
    },
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Hits {
    rows: u64,
    correct: u64,
}

impl Hits {
    fn add(&mut self, correct: bool) {
        self.rows += 1;
        self.correct += u64::from(correct);
    }

    fn merge(&mut self, other: Self) {
        self.rows += other.rows;
        self.correct += other.correct;
    }

    /// The fraction of correct rows; NaN without rows.
    fn share(self) -> f64 {
        self.correct as f64 / self.rows as f64
    }
}

impl Tally {
    /// An empty tally for this many classes, with ten reliability bins.
    pub fn classes(classes: usize) -> Self {
        Self::classes_with_bins(classes, BINS)
    }

    /// An empty tally for this many classes, with this many reliability bins (at least one).
    pub fn classes_with_bins(classes: usize, bins: usize) -> Self {
        let sums = Sums::Classes { classes: vec![Hits::default(); classes], bins: vec![Default::default(); bins.max(1)] };
        Self { rows: 0, log_likelihood: 0.0, sums }
    }

    /// An empty tally for predictions of a number.
    pub fn number() -> Self {
        Self { rows: 0, log_likelihood: 0.0, sums: Sums::Number { squared_error: 0.0 } }
    }

    /// Adds rows: `prediction` (rows × outputs) is averaged over particles or draws: class probabilities, or the expected target;
    /// `density` (rows) the averaged probability or density of the row's target, `targets` (rows) class indices or numbers.
    ///
    /// The predicted class is the most probable one, and the first one among ties. A NaN prediction of a class counts as wrong; it makes
    /// log-likelihood and calibration error NaN, so that a diverged run is not mistaken for a poor one. For RMSE in original units, pass means and targets in
    /// original units.
    ///
    /// # Panics
    /// When the shapes do not match, or a class index is too large.
    pub fn add<F: Real>(&mut self, prediction: ArrayView2<f64>, density: &[f64], targets: ArrayView1<F>) {
        let outputs = match &self.sums {
            Sums::Classes { classes, .. } => classes.len(),
            Sums::Number { .. } => 1,
        };
        assert_eq!(prediction.dim(), (targets.len(), outputs), "predictions must be rows × outputs");
        assert_eq!(density.len(), targets.len(), "one density per row");
        self.rows += density.len() as u64;
        // `max` would replace NaN by the floor.
        self.log_likelihood += density.iter().map(|&p| if p.is_nan() { p } else { p.max(DENSITY_FLOOR).ln() }).sum::<f64>();
        for (row, target) in prediction.rows().into_iter().zip(targets) {
            match &mut self.sums {
                Sums::Classes { classes, bins } => {
                    let (predicted, confidence) = most_probable(row);
                    // The reader of the dataset has checked that this is a class index.
                    let target = target.f64() as usize;
                    let correct = predicted == Some(target);
                    classes[target].add(correct);
                    let bin = bin(confidence, bins.len());
                    bins[bin].0.add(correct);
                    bins[bin].1 += confidence;
                }
                Sums::Number { squared_error } => *squared_error += (row[0] - target.f64()).powi(2),
            }
        }
    }

    /// Adds the sums of another tally.
    ///
    /// # Errors
    /// When the tallies are of different kinds, or differ in their numbers of classes or bins.
    pub fn merge(&mut self, other: &Self) -> Result<(), MergeError> {
        match (&mut self.sums, &other.sums) {
            (Sums::Classes { classes, bins }, Sums::Classes { classes: more_classes, bins: more_bins })
                if classes.len() == more_classes.len() && bins.len() == more_bins.len() =>
            {
                classes.iter_mut().zip(more_classes).for_each(|(hits, more)| hits.merge(*more));
                for (bin, more) in bins.iter_mut().zip(more_bins) {
                    bin.0.merge(more.0);
                    bin.1 += more.1;
                }
            }
            (Sums::Number { squared_error }, Sums::Number { squared_error: more }) => *squared_error += more,
            _ => return Err(MergeError(self.kind(), other.kind())),
        }
        self.rows += other.rows;
        self.log_likelihood += other.log_likelihood;
        Ok(())
    }

    fn kind(&self) -> String {
        match &self.sums {
            Sums::Classes { classes, bins } => format!("{} classes with {} reliability bins", classes.len(), bins.len()),
            Sums::Number { .. } => "a number".to_owned(),
        }
    }

    /// The metrics of all rows; NaN without rows.
    pub fn finish(&self) -> Metrics {
        let quality = match &self.sums {
            Sums::Classes { classes, bins } => Quality::Classes(Classification::new(classes, bins)),
            Sums::Number { squared_error } => Quality::Number { rmse: (squared_error / self.rows as f64).sqrt() },
        };
        Metrics { rows: self.rows, log_likelihood: self.log_likelihood / self.rows as f64, quality }
    }
}

/// The most probable class and its probability, the first one among ties; `None` and NaN if a probability is NaN.
fn most_probable(row: ArrayView1<f64>) -> (Option<usize>, f64) {
    if row.iter().any(|p| p.is_nan()) {
        return (None, f64::NAN);
    }
    row.iter().enumerate().fold((None, f64::NEG_INFINITY), |best, (class, &p)| if p > best.1 { (Some(class), p) } else { best })
}

/// The reliability bin of a confidence: j if it lies in (j/B, (j+1)/B]. Values up to 0 go to the first bin, values above 1 and NaN to the last.
fn bin(confidence: f64, bins: usize) -> usize {
    // Comparing with the edges is exact, whereas ⌈pB⌉ puts some p = j/B into the next bin because of rounding.
    (1..bins).find(|&j| confidence <= j as f64 / bins as f64).unwrap_or(bins) - 1
}

/// Metrics of predictions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metrics {
    /// The number of predicted rows.
    pub rows: u64,
    /// Mean over rows of log max(p, 1e-50), p the particle-averaged probability or density of the row's target, in nats.
    pub log_likelihood: f64,
    /// Metrics that depend on the kind of prediction.
    pub quality: Quality,
}

/// The metrics of a kind of prediction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Quality {
    /// Classes.
    Classes(Classification),
    /// A number.
    Number {
        /// Root of the mean squared error of the predictive mean.
        rmse: f64,
    },
}

impl Quality {
    /// The main metric: its name and value.
    pub fn main(&self) -> (&'static str, f64) {
        match self {
            Self::Classes(classes) => ("accuracy", classes.accuracy),
            Self::Number { rmse } => ("rmse", *rmse),
        }
    }
}

/// Accuracy and calibration of predicted classes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Classification {
    /// The fraction of rows whose most probable class is correct.
    pub accuracy: f64,
    /// The accuracy over the rows of each class; NaN for classes without rows.
    pub class_accuracy: Vec<f64>,
    /// Rows of each class.
    pub class_rows: Vec<u64>,
    /// Maximum calibration error: the largest |accuracy − confidence| of a bin that is not empty; NaN without rows.
    pub mce: f64,
    /// The same over bins with at least 20 rows, because nearly empty bins dominate it otherwise; NaN if there is no such bin.
    pub mce_20: f64,
    /// Expected calibration error: the mean over rows of their bin's |accuracy − confidence|.
    pub ece: f64,
    /// The reliability table.
    pub reliability: Vec<Bin>,
}

/// A bin of the reliability table: rows whose largest class probability lies in (lower, upper].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bin {
    /// Lower edge, not in the bin.
    pub lower: f64,
    /// Upper edge, in the bin.
    pub upper: f64,
    /// The number of rows.
    pub rows: u64,
    /// The fraction of correct predictions; NaN without rows.
    pub accuracy: f64,
    /// The mean of the largest class probability; NaN without rows.
    pub confidence: f64,
}

impl Bin {
    fn gap(&self) -> f64 {
        (self.accuracy - self.confidence).abs()
    }
}

impl Classification {
    fn new(classes: &[Hits], bins: &[(Hits, f64)]) -> Self {
        let edge = |j: usize| j as f64 / bins.len() as f64;
        let reliability: Vec<Bin> = bins
            .iter()
            .enumerate()
            .map(|(j, &(hits, confidences))| Bin {
                lower: edge(j),
                upper: edge(j + 1),
                rows: hits.rows,
                accuracy: hits.share(),
                confidence: confidences / hits.rows as f64,
            })
            .collect();
        let mut all = Hits::default();
        classes.iter().for_each(|class| all.merge(*class));
        let largest_gap = |least_rows: u64| {
            let gaps = reliability.iter().filter(|bin| bin.rows >= least_rows).map(Bin::gap);
            // `f64::max` would ignore NaN.
            gaps.reduce(|a, b| if a.is_nan() || a > b { a } else { b }).unwrap_or(f64::NAN)
        };
        let weighted: f64 = reliability.iter().filter(|bin| bin.rows > 0).map(|bin| bin.rows as f64 * bin.gap()).sum();
        Self {
            accuracy: all.share(),
            class_accuracy: classes.iter().map(|class| class.share()).collect(),
            class_rows: classes.iter().map(|class| class.rows).collect(),
            mce: largest_gap(1),
            mce_20: largest_gap(MIN_BIN_ROWS),
            ece: weighted / all.rows as f64,
            reliability,
        }
    }
}

impl Metrics {
    /// The scalar metrics by name, in display order.
    pub fn values(&self) -> Vec<(String, f64)> {
        let quality: &[(&str, f64)] = match &self.quality {
            Quality::Classes(c) => &[("accuracy", c.accuracy), ("ece", c.ece), ("mce", c.mce), ("mce_20", c.mce_20)],
            Quality::Number { rmse } => &[("rmse", *rmse)],
        };
        let all = quality.iter().copied().chain([("log_likelihood", self.log_likelihood)]);
        all.map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use approx::assert_relative_eq;
    use ndarray::{Array1, Array2, array, s};

    fn classification(tally: &Tally) -> Classification {
        match tally.finish().quality {
            Quality::Classes(classification) => classification,
            Quality::Number { .. } => panic!("not a classification"),
        }
    }

    /// Adds rows of two classes: the probability of class 0, and whether class 0 is the target.
    fn two_classes(tally: &mut Tally, rows: &[(f64, bool)]) {
        let mean = Array2::from_shape_fn((rows.len(), 2), |(i, c)| if c == 0 { rows[i].0 } else { 1.0 - rows[i].0 });
        let targets = Array1::from_shape_fn(rows.len(), |i| if rows[i].1 { 0.0_f32 } else { 1.0 });
        let density: Vec<f64> = rows.iter().map(|&(p, is_target)| if is_target { p } else { 1.0 - p }).collect();
        tally.add(mean.view(), &density, targets.view());
    }

    #[test]
    fn the_reliability_table_of_a_hand_made_example() {
        let mut tally = Tally::classes(2);
        // (0.5, 0.6]: 2 rows, 1 right. (0.8, 0.9]: 4 rows, 3 right. (0.9, 1]: 1 row, right. All others empty.
        two_classes(
            &mut tally,
            &[(0.55, true), (0.60, false), (0.85, true), (0.90, true), (0.81, true), (0.84, false), (1.0, true)],
        );
        let result = classification(&tally);
        let rows: Vec<u64> = result.reliability.iter().map(|bin| bin.rows).collect();
        assert_eq!(rows, [0, 0, 0, 0, 0, 2, 0, 0, 4, 1]);
        assert_relative_eq!(result.reliability[5].confidence, 0.575, epsilon = 1e-15);
        assert_relative_eq!(result.reliability[8].accuracy, 0.75);
        assert_relative_eq!(result.reliability[8].confidence, 0.85, epsilon = 1e-15);
        assert!(result.reliability[0].accuracy.is_nan() && result.reliability[6].confidence.is_nan());
        assert_relative_eq!(result.mce, 0.1, epsilon = 1e-15);
        assert_relative_eq!(result.ece, (2.0 * 0.075 + 4.0 * 0.1 + 0.0) / 7.0, epsilon = 1e-15);
        assert!(result.mce_20.is_nan(), "no bin has 20 rows");
        assert_eq!(result.accuracy, 5.0 / 7.0);
        // Class 0 is the target of all rows predicted right, class 1 of those predicted wrong.
        assert_eq!(result.class_accuracy, [1.0, 0.0]);
    }

    #[test]
    fn a_confidence_on_an_edge_belongs_to_the_bin_below() {
        for bins in 1..=100 {
            for j in 1..=bins {
                let edge = j as f64 / bins as f64;
                assert_eq!(bin(edge, bins), j - 1, "{edge} of {bins}");
                if j < bins {
                    assert_eq!(bin(edge.next_up(), bins), j, "just above {edge} of {bins}");
                }
            }
            assert_eq!(bin(0.0, bins), 0);
            assert_eq!(bin(1.0_f64.next_up(), bins), bins - 1);
        }
        // The control: the shorter formula fails at some edge.
        assert!((1..=100).any(|bins| (1..=bins).any(|j| (j as f64 / bins as f64 * bins as f64).ceil() as usize != j)));
    }

    #[test]
    fn bins_of_few_rows_count_for_mce_but_not_for_mce_20() {
        let mut tally = Tally::classes(2);
        two_classes(&mut tally, &[(0.95, false)]);
        two_classes(&mut tally, &[(0.75, true); 20]);
        let result = classification(&tally);
        assert_relative_eq!(result.mce, 0.95);
        assert_relative_eq!(result.mce_20, 0.25);
        assert_relative_eq!(result.ece, (0.95 + 20.0 * 0.25) / 21.0, epsilon = 1e-15);
    }

    #[test]
    fn with_two_classes_confidence_is_at_least_a_half_with_ten_it_is_not() {
        let mut tally = Tally::classes(10);
        let mut mean = Array2::from_elem((1, 10), 0.09);
        mean[[0, 3]] = 0.19;
        tally.add(mean.view(), &[0.19], array![3.0].view());
        assert_eq!(classification(&tally).reliability[1].rows, 1);
        let mut tally = Tally::classes(2);
        two_classes(&mut tally, &[(0.5, true), (0.1, false)]);
        let result = classification(&tally);
        // Confidence 0.5 lies on the edge of the fifth bin.
        assert_eq!(result.reliability.iter().map(|bin| bin.rows).collect::<Vec<_>>(), [0, 0, 0, 0, 1, 0, 0, 0, 1, 0]);
        // A tie goes to the first class.
        assert_eq!(result.accuracy, 1.0);
    }

    #[test]
    fn log_likelihood_has_its_floor() {
        let mut tally = Tally::number();
        tally.add(array![[0.0], [0.0]].view(), &[0.0, 1.0], array![3.0, 4.0].view());
        let metrics = tally.finish();
        assert_relative_eq!(metrics.log_likelihood, 0.5 * 1e-50_f64.ln());
        assert_relative_eq!(metrics.values()[0].1, 12.5_f64.sqrt());
        assert_eq!(metrics.values().iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["rmse", "log_likelihood"]);
    }

    #[test]
    fn merging_slices_is_adding_all() {
        let rows = 40;
        let mean = Array2::from_shape_fn((rows, 3), |(i, c)| [0.5, 0.25, 0.25][(i + c) % 3]);
        let targets = Array1::from_shape_fn(rows, |i| (i % 2) as f64);
        // Powers of two: all sums are exact, so equality is exact.
        let density = vec![1.0; rows];
        let mut whole = Tally::classes(3);
        whole.add(mean.view(), &density, targets.view());
        let mut merged = Tally::classes(3);
        for (from, to) in [(0, 13), (13, 13), (13, 40)] {
            let mut part = Tally::classes(3);
            part.add(mean.slice(s![from..to, ..]), &density[from..to], targets.slice(s![from..to]));
            let sent: Tally = postcard::from_bytes(&postcard::to_stdvec(&part).unwrap()).unwrap();
            merged.merge(&sent).unwrap();
        }
        assert_eq!(merged, whole);
        assert!(merged.merge(&Tally::number()).is_err());
        assert!(merged.merge(&Tally::classes(2)).is_err());
        assert!(merged.merge(&Tally::classes_with_bins(3, 15)).is_err());
        assert_eq!(merged, whole, "a refused merge changes nothing");
    }

    #[test]
    fn nan_is_not_hidden() {
        let mut tally = Tally::classes(2);
        two_classes(&mut tally, &[(0.9, true)]);
        tally.add(array![[f64::NAN, f64::NAN]].view(), &[f64::NAN], array![0.0].view());
        let metrics = tally.finish();
        let result = classification(&tally);
        assert!(metrics.log_likelihood.is_nan() && result.ece.is_nan() && result.mce.is_nan());
        assert_eq!(result.accuracy, 0.5);
        assert!(classification(&Tally::classes(2)).accuracy.is_nan(), "no rows");
    }
}
