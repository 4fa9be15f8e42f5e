//! Bandwidths of the RBF kernel k(x, y) = exp(−‖x − y‖²/h), and squared distances.

use super::select::Selector;
use crate::number::Real;
use crate::settings::{KeyError, in_range};
use crate::vector::vectorized;
use ndarray::{Array2, ArrayView2};
use serde::{Deserialize, Serialize};

/// The bandwidth h of the RBF kernel between particles: `"repository"`, `"paper"` or `{ fixed = 1.0 }`. If the rule gives 0 (a single
/// particle, or a median of 0), h = 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Bandwidth {
    /// h = med²/log N with the median distance med between two different particles, as in the SVGD paper (Liu & Wang 2016).
    Paper,
    /// h = M/log(N + 1) with the median M of all N² squared distances, including the zeros between a particle and itself, as in the
    /// reference implementations of SVGD and DSVGD.
    #[default]
    Repository,
    /// A constant h, above 0.
    Fixed(f64),
}

impl Bandwidth {
    /// Checks that a fixed bandwidth is in range.
    pub fn check(&self) -> Result<(), KeyError> {
        match *self {
            Self::Fixed(h) => in_range("fixed", h, h.is_finite() && h > 0.0, "positive"),
            Self::Paper | Self::Repository => Ok(()),
        }
    }

    /// The bandwidth for these particles (N × d).
    pub fn of<F: Real>(&self, theta: ArrayView2<F>) -> f64 {
        let n = theta.nrows();
        let distances = squared_distances(theta, theta);
        let pairs: Vec<F> = (0..n).flat_map(|i| (0..i).map(move |j| (i, j))).map(|at| F::of(distances[at])).collect();
        self.of_pairs(&pairs, n, &mut Selector::new(pairs.len()))
    }

    /// The bandwidth from the squared distances of the n(n − 1)/2 pairs of different particles.
    pub(super) fn of_pairs<F: Real>(&self, pairs: &[F], n: usize, selector: &mut Selector<F>) -> f64 {
        let count = n as f64;
        let h = match *self {
            Self::Fixed(h) => return h,
            _ if n < 2 => return 1.0,
            Self::Paper => {
                let (low, high) = selector.pair(pairs, (pairs.len() - 1) / 2, pairs.len() / 2);
                let median = 0.5 * (low.f64().sqrt() + high.f64().sqrt());
                median * median / count.ln()
            }
            Self::Repository => {
                // The sorted N² distances begin with the zeros of the diagonal; then each pair occurs twice.
                let pair = |position: usize| position.checked_sub(n).map(|at| at / 2);
                let median = match (pair((n * n - 1) / 2), pair(n * n / 2)) {
                    (Some(low), Some(high)) => {
                        let (low, high) = selector.pair(pairs, low, high);
                        0.5 * (low.f64() + high.f64())
                    }
                    (None, Some(high)) => 0.5 * selector.pair(pairs, high, high).0.f64(),
                    _ => 0.0,
                };
                median / (count + 1.0).ln()
            }
        };
        if h > 0.0 { h } else { 1.0 }
    }
}

/// ‖x_i − y_j‖² (rows of x × rows of y) from differences: accurate, but too slow for inner loops.
pub fn squared_distances<F: Real>(x: ArrayView2<F>, y: ArrayView2<F>) -> Array2<f64> {
    let (x, y) = (x.as_standard_layout(), y.as_standard_layout());
    Array2::from_shape_fn((x.nrows(), y.nrows()), |(i, j)| {
        let (x, y) = (x.row(i), y.row(j));
        match (x.as_slice(), y.as_slice()) {
            (Some(x), Some(y)) => squared_distance(x, y),
            _ => x.iter().zip(y).map(|(&a, &b)| (a - b).f64().powi(2)).sum(),
        }
    })
}

vectorized! {
    fn squared_distance<F: Real>(x: &[F], y: &[F]) -> f64 {
        let mut sums = [0.0; 8];
        let (x, x_rest) = x.as_chunks::<8>();
        let (y, y_rest) = y.as_chunks::<8>();
        for (x, y) in x.iter().zip(y) {
            for lane in 0..8 {
                let difference = (x[lane] - y[lane]).f64();
                sums[lane] += difference * difference;
            }
        }
        let rest: f64 = x_rest.iter().zip(y_rest).map(|(&a, &b)| (a - b).f64().powi(2)).sum();
        sums.iter().sum::<f64>() + rest
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::random::{Purpose, Seed, Who};

    fn particles(n: usize, d: usize, seed: u64) -> Array2<f64> {
        let mut theta = Array2::zeros((n, d));
        Seed(seed).stream(Who::Run, 0, Purpose::Synthetic).normals(theta.as_slice_mut().unwrap());
        theta
    }

    /// The definition: all N² entries sorted, the two middle ones averaged.
    fn naive_median(mut values: Vec<f64>) -> f64 {
        values.sort_by(f64::total_cmp);
        let n = values.len();
        0.5 * (values[(n - 1) / 2] + values[n / 2])
    }

    fn naive(theta: &Array2<f64>, paper: bool) -> f64 {
        let n = theta.nrows();
        let distance = |i: usize, j: usize| (&theta.row(i) - &theta.row(j)).mapv(|x| x * x).sum();
        let h = if paper {
            if n == 1 {
                return 1.0;
            }
            let pairs = (0..n).flat_map(|i| (0..i).map(move |j| (i, j))).map(|(i, j)| f64::sqrt(distance(i, j)));
            naive_median(pairs.collect()).powi(2) / (n as f64).ln()
        } else {
            naive_median((0..n * n).map(|at| distance(at / n, at % n)).collect()) / (n as f64 + 1.0).ln()
        };
        if h > 0.0 { h } else { 1.0 }
    }

    #[test]
    fn medians_follow_their_definition() {
        for n in [1, 2, 3, 4, 5, 6, 7, 20, 33, 100] {
            for d in [1, 3, 17] {
                let mut theta = particles(n, d, 7);
                for kind in 0..3 {
                    match kind {
                        // Ties.
                        1 => theta.mapv_inplace(f64::round),
                        2 => theta.fill(0.3),
                        _ => {}
                    }
                    for (mode, paper) in [(Bandwidth::Paper, true), (Bandwidth::Repository, false)] {
                        let (h, expected) = (mode.of(theta.view()), naive(&theta, paper));
                        assert!((h - expected).abs() <= 1e-13 * expected, "{mode:?} n={n} d={d} kind={kind}: {h} {expected}");
                    }
                }
            }
        }
        assert_eq!(Bandwidth::Fixed(0.7).of(particles(4, 2, 1).view()), 0.7);
        // Two particles: half of the one squared distance.
        let two = ndarray::array![[0.0], [3.0]];
        assert!((Bandwidth::Repository.of(two.view()) - 4.5 / 3.0_f64.ln()).abs() < 1e-14);
    }

    #[test]
    fn settings_from_toml() {
        #[derive(Deserialize)]
        struct Holder {
            bandwidth: Bandwidth,
        }
        let parse = |text: &str| toml::from_str::<Holder>(text).map(|h| h.bandwidth);
        assert_eq!(parse("bandwidth = \"repository\"").unwrap(), Bandwidth::Repository);
        assert_eq!(parse("bandwidth = \"paper\"").unwrap(), Bandwidth::Paper);
        assert_eq!(parse("bandwidth = { fixed = 1.0 }").unwrap(), Bandwidth::Fixed(1.0));
        assert!(parse("bandwidth = \"median\"").is_err());
        assert!(parse("bandwidth = { fixed = 1.0, h = 2.0 }").is_err());
        assert!(Bandwidth::Fixed(-1.0).check().is_err());
        assert!(Bandwidth::Fixed(f64::NAN).check().is_err());
    }
}
