//! Rows of groups that the training rows do not have: expectations over the deviation of such a group, whose prior is N(0, s²).

use super::family::Family;
use crate::number::log_sum_exp;
use crate::quadrature::gauss_hermite;
use std::sync::OnceLock;

const NODES: usize = 31;
/// The search for the largest values begins at the best of this many points on both sides of 0, in steps of a quarter.
const START_POINTS: i32 = 20;
const MAX_STEPS: usize = 50;
const DIFFERENCE: f64 = 1e-4;
const TOLERANCE: f64 = 1e-3;

/// The nodes of a standard normal distribution with their weights; zero alone if they cannot be computed.
fn nodes() -> &'static [(f64, f64)] {
    static CELL: OnceLock<Vec<(f64, f64)>> = OnceLock::new();
    CELL.get_or_init(|| match gauss_hermite(NODES) {
        Ok((nodes, weights)) => nodes.into_iter().zip(weights).collect(),
        Err(_) => vec![(0.0, 1.0)],
    })
}

/// −log E p(y | η + s z) over z ~ N(0, 1).
///
/// The rule is moved to the largest values of the integrand, which can be much narrower than the distribution of z.
pub fn loss<D: Family>(family: &D, prepared: &D::Prepared, eta: f64, sd: f64, y: f64, psi: &mut [f64]) -> f64 {
    let mut score = |z: f64| sd * family.score(prepared, eta + sd * z, y, psi) - z;
    let log_integrand = |z: f64| -family.loss(prepared, eta + sd * z, y) - 0.5 * z * z;
    let starts = (-START_POINTS..=START_POINTS).map(|place| 0.25 * f64::from(place));
    let mut mode = starts.max_by(|&a, &b| log_integrand(a).total_cmp(&log_integrand(b))).unwrap_or(0.0);
    let mut curvature = 1.0_f64;
    for _ in 0..MAX_STEPS {
        // That of the prior is 1; where the likelihood is not log-concave, its own is left out.
        curvature = ((score(mode - DIFFERENCE) - score(mode + DIFFERENCE)) / (2.0 * DIFFERENCE)).max(1.0);
        let step = (score(mode) / curvature).clamp(-1.0, 1.0);
        mode += step;
        if step.abs() < TOLERANCE * curvature.powf(-0.5) {
            break;
        }
    }
    let width = curvature.powf(-0.5);
    let terms = nodes().iter().map(|&(node, weight)| {
        let z = mode + width * node;
        weight.ln() + log_integrand(z) + 0.5 * node * node
    });
    -(log_sum_exp(terms) + width.ln())
}

/// Adds `weight` times the expectation of the target, or of the probability of each class, to `mean`.
pub fn add_mean<D: Family>(family: &D, prepared: &D::Prepared, eta: f64, sd: f64, y: f64, weight: f64, mean: &mut [f64]) {
    for &(node, own) in nodes() {
        family.predict(prepared, eta + sd * node, y, weight * own, mean);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::models::linear::{Gaussian, LinearSettings};
    use crate::models::poisson::PoissonSettings;
    use crate::models::{DataSchema, Output};

    /// The mean of −log p by a fine rule of rectangles.
    fn by_rectangles<D: Family>(family: &D, prepared: &D::Prepared, eta: f64, sd: f64, y: f64) -> f64 {
        let step = 1e-4;
        let at = |z: f64| -family.loss(prepared, eta + sd * z, y) - 0.5 * z * z;
        let sum = log_sum_exp((-200_000..=200_000).map(|place| at(f64::from(place) * step)));
        -(sum + step.ln() - 0.5 * (2.0 * std::f64::consts::PI).ln())
    }

    #[test]
    fn expected_densities_agree_with_rectangles() {
        let schema = |output| DataSchema::new(1, output);
        let counts = PoissonSettings::default().build(&schema(Output::Count)).unwrap();
        for (eta, sd, y) in [(0.0, 1.0, 0.0), (0.5, 2.0, 3.0), (2.0, 0.3, 900.0), (-1.0, 3.0, 40.0)] {
            let (found, exact) = (
                loss(counts.family(), &counts.family().prepare(&[]), eta, sd, y, &mut []),
                by_rectangles(counts.family(), &counts.family().prepare(&[]), eta, sd, y),
            );
            assert!((found - exact).abs() < 1e-3, "{eta} {sd} {y}: {found} {exact}");
        }
        let numbers = LinearSettings::default().build(&schema(Output::Number)).unwrap();
        let noise: &Gaussian = numbers.family();
        for (log_noise, sd, y) in [(0.0, 1.0, 0.3), (-4.0, 2.0, 5.0)] {
            let prepared = noise.prepare(&[log_noise]);
            let variance = (2.0 * log_noise).exp() + sd * sd;
            let exact = 0.5 * (2.0 * std::f64::consts::PI * variance).ln() + 0.5 * y * y / variance;
            let found = loss(noise, &prepared, 0.0, sd, y, &mut [0.0]);
            assert!((found - exact).abs() < 1e-9, "{log_noise}: {found} {exact}");
            // The control: a rule that stays where the prior is misses narrow densities.
            let fixed = -nodes().iter().map(|&(z, w)| w * (-noise.loss(&prepared, sd * z, y)).exp()).sum::<f64>().ln();
            assert_eq!((fixed - exact).abs() < 1e-3, log_noise == 0.0, "{log_noise}: {fixed} {exact}");
        }
    }

    /// The mean of a count is e^(η + s²/2).
    #[test]
    fn expected_counts_are_those_of_a_log_normal_distribution() {
        let counts = PoissonSettings::default().build(&DataSchema::new(1, Output::Count)).unwrap();
        for (eta, sd) in [(0.0, 0.5), (1.0, 2.0)] {
            let mut mean = [0.0];
            add_mean(counts.family(), &counts.family().prepare(&[]), eta, sd, 0.0, 1.0, &mut mean);
            assert!((mean[0] / (eta + 0.5 * sd * sd).exp() - 1.0).abs() < 1e-9, "{eta} {sd}: {}", mean[0]);
        }
    }
}
