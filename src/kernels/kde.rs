//! Gaussian kernel density estimates (KDE) of particle sets: log-densities and scores, computed on the log scale.

use super::rbf::squared_distances;
use crate::number::Real;
use crate::settings::{KeyError, in_range};
use ndarray::{Array2, ArrayView2, ArrayViewMut2};
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;

/// How the density estimate behaves far from its particles, where its score grows without bound: `{ lse = { floor = 1e-9 } }`,
/// `"authors_compat"` or `"none"`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum KdeMode {
    /// log(Σ_n exp(e_n) + N δ) + const. The floor δ makes the score vanish far from the particles.
    Lse {
        /// Floor δ of each kernel, at least 0 and below 1, relative to its maximum. 0 is the exact estimate.
        #[serde(default = "default_floor")]
        floor: f64,
    },
    /// The formula in the code of Kassab & Simeone: floor 1e-9, the normalizer (N · 2πλ²)^(−d/2) with N inside the power, and
    /// log(density + 1e-10). The score vanishes unless d is small. Here d counts all coordinates, as in their networks; their logistic
    /// regression passes the number of features, one less than the dimension of a particle.
    AuthorsCompat,
    /// No density estimate: log density and score are 0.
    None,
}

fn default_floor() -> f64 {
    1e-9
}

impl Default for KdeMode {
    fn default() -> Self {
        Self::Lse { floor: default_floor() }
    }
}

/// The settings of a Gaussian kernel density estimate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Kde {
    /// Behavior far from the particles.
    pub mode: KdeMode,
    /// Bandwidth λ, above 0: the standard deviation of each kernel, in the units of the parameters.
    pub bandwidth: f64,
}

impl Default for Kde {
    /// Floor 1e-9, and λ = 0.55 as in all experiments of Kassab & Simeone (arXiv 2009.06419).
    fn default() -> Self {
        Self { mode: KdeMode::default(), bandwidth: 0.55 }
    }
}

impl Kde {
    /// Checks that all settings are in range.
    ///
    /// # Errors
    /// Names the key, as in a `[method]` table, whose value is not.
    pub fn check(&self) -> Result<(), KeyError> {
        if let KdeMode::Lse { floor } = self.mode {
            in_range("kde.lse.floor", floor, (0.0..1.0).contains(&floor), "at least 0 and below 1")?;
        }
        in_range("kde_bandwidth", self.bandwidth, self.bandwidth.is_finite() && self.bandwidth > 0.0, "positive")
    }

    /// Whether there is no density estimate.
    pub fn is_none(&self) -> bool {
        self.mode == KdeMode::None
    }

    /// The logarithm of the constant that is added to the sum of n exponentials in d dimensions. In every mode,
    /// log q = log(Σ exp(e) + constant) + [`Self::log_norm`]; the second floor of `AuthorsCompat` is part of the constant.
    pub(super) fn log_floor(&self, n: usize, d: usize) -> f64 {
        let inner = |floor: f64| (n as f64 * floor).ln();
        match self.mode {
            KdeMode::Lse { floor } => inner(floor),
            KdeMode::AuthorsCompat => log_sum(inner(1e-9), 1e-10_f64.ln() - self.log_norm(n, d)),
            KdeMode::None => f64::INFINITY,
        }
    }

    fn log_norm(&self, n: usize, d: usize) -> f64 {
        let (n, d, variance) = (n as f64, d as f64, self.bandwidth * self.bandwidth);
        match self.mode {
            KdeMode::Lse { .. } => -n.ln() - 0.5 * d * (2.0 * PI * variance).ln(),
            KdeMode::AuthorsCompat => -0.5 * d * (n * 2.0 * PI * variance).ln(),
            KdeMode::None => 0.0,
        }
    }

    /// Writes the log-density of the estimate from `points` (N × d) at each particle of `theta` (M × d) to `out` (length M).
    pub fn log_density<F: Real>(&self, points: ArrayView2<F>, theta: ArrayView2<F>, out: &mut [f64]) {
        let (n, d) = points.dim();
        if self.is_none() {
            out.fill(0.0);
            return;
        }
        let exponents = self.exponents(points, theta);
        for (out, row) in out.iter_mut().zip(exponents.rows()) {
            *out = row.iter().copied().fold(self.log_floor(n, d), log_sum) + self.log_norm(n, d);
        }
    }

    /// Adds `sign` · ∇log q at each particle of `theta` (M × d) to `score` (M × d); q is the estimate from `points` (N × d).
    /// Returns the total kernel weight Σ_n w_n, averaged over the particles. It is 1 without a floor.
    pub fn add_score<F: Real>(&self, sign: f64, points: ArrayView2<F>, theta: ArrayView2<F>, mut score: ArrayViewMut2<F>) -> f64 {
        let weights = self.weights(points, theta);
        let scale = sign / (self.bandwidth * self.bandwidth);
        for ((weights, theta), mut score) in weights.rows().into_iter().zip(theta.rows()).zip(score.rows_mut()) {
            for (&weight, point) in weights.iter().zip(points.rows()).filter(|(weight, _)| **weight > 0.0) {
                let weight = F::of(scale * weight);
                ndarray::Zip::from(&mut score).and(&point).and(&theta).for_each(|s, &c, &x| *s += weight * (c - x));
            }
        }
        weights.sum() / theta.nrows() as f64
    }

    /// The kernel weights w_n = exp(e_n)/(Σ exp(e) + floor) of each point (columns) at each particle (rows).
    pub fn weights<F: Real>(&self, points: ArrayView2<F>, theta: ArrayView2<F>) -> Array2<f64> {
        let (n, d) = points.dim();
        if self.is_none() {
            return Array2::zeros((theta.nrows(), n));
        }
        let mut weights = self.exponents(points, theta);
        for mut row in weights.rows_mut() {
            let total = row.iter().copied().fold(self.log_floor(n, d), log_sum);
            row.mapv_inplace(|e| (e - total).exp());
        }
        weights
    }

    fn exponents<F: Real>(&self, points: ArrayView2<F>, theta: ArrayView2<F>) -> Array2<f64> {
        let scale = -0.5 / (self.bandwidth * self.bandwidth);
        squared_distances(theta, points) * scale
    }
}

/// log(exp(a) + exp(b)).
fn log_sum(a: f64, b: f64) -> f64 {
    let (low, high) = if a < b { (a, b) } else { (b, a) };
    if high == f64::NEG_INFINITY { high } else { high + (low - high).exp().ln_1p() }
}

/// Whether a density multiplies or divides the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// Its score is added.
    Plus,
    /// Its score is subtracted.
    Minus,
}

impl Sign {
    /// 1 or −1.
    pub fn value(self) -> f64 {
        match self {
            Self::Plus => 1.0,
            Self::Minus => -1.0,
        }
    }
}

/// A factor of the target: the density estimate of a particle set that stays fixed during an SVGD loop.
#[derive(Clone, Copy, Debug)]
pub struct KdeFactor<'a, F> {
    /// Whether the density multiplies or divides the target.
    pub sign: Sign,
    /// The particles, any number × d.
    pub particles: ArrayView2<'a, F>,
}

impl<'a, F> KdeFactor<'a, F> {
    /// A density that multiplies the target.
    pub fn plus(particles: ArrayView2<'a, F>) -> Self {
        Self { sign: Sign::Plus, particles }
    }

    /// A density that divides the target.
    pub fn minus(particles: ArrayView2<'a, F>) -> Self {
        Self { sign: Sign::Minus, particles }
    }
}

/// The factors without pairs of equal particle sets and opposite signs. Their scores cancel in exact arithmetic; dropping them makes the
/// cancellation exact in floating point.
pub(super) fn without_canceling_pairs<'a, F: Real>(factors: &[KdeFactor<'a, F>]) -> Vec<KdeFactor<'a, F>> {
    let mut kept: Vec<KdeFactor<F>> = Vec::with_capacity(factors.len());
    for set in factors {
        match kept.iter().position(|other| other.sign != set.sign && other.particles == set.particles) {
            Some(at) => drop(kept.remove(at)),
            None => kept.push(*set),
        }
    }
    kept
}

/// Diagnostics of a signed sum of scores of density estimates.
#[derive(Clone, Debug, PartialEq)]
pub struct CavityReport {
    /// The Frobenius norm of the summed score over all particles.
    pub norm: f64,
    /// The total kernel weight of each factor, averaged over the particles: 1 without a floor, near 0 if the floor dominates, NaN without
    /// density estimates.
    pub weights: Vec<f64>,
}

/// Adds Σ_j sign_j ∇log q_j at the particles (N × d) to `score` (N × d). It is meant to be called once per loop. Pairs of equal sets
/// with opposite signs cancel exactly.
pub fn add_cavity_score<F: Real>(
    kde: Kde,
    factors: &[KdeFactor<F>],
    theta: ArrayView2<F>,
    mut score: ArrayViewMut2<F>,
) -> CavityReport {
    let mut cavity = Array2::zeros(theta.dim());
    let add = |set: &KdeFactor<F>| kde.add_score(set.sign.value(), set.particles, theta, cavity.view_mut());
    let weights = factors.iter().map(add).map(|weight| if kde.is_none() { f64::NAN } else { weight }).collect();
    if without_canceling_pairs(factors).is_empty() {
        cavity.fill(F::zero());
    }
    score += &cavity;
    CavityReport { norm: frobenius_norm(cavity.view()), weights }
}

/// The Frobenius norm, summed in order.
pub fn frobenius_norm<F: Real>(matrix: ArrayView2<F>) -> f64 {
    matrix.iter().map(|x| x.f64() * x.f64()).sum::<f64>().sqrt()
}

/// The relative residual of a distillation: ‖Θ_k' − (Θ_k + Θ' − Θ)‖ / ‖Θ' − Θ‖, where the local particles Θ_k became Θ_k' and the global
/// particles Θ became Θ'. All are N × d. NaN if the global particles did not move.
pub fn distillation_residual<F: Real>(local: [ArrayView2<F>; 2], global: [ArrayView2<F>; 2]) -> f64 {
    let ([local, local_new], [global, global_new]) = (local, global);
    let (mut residual, mut moved) = (0.0, 0.0);
    for ((before, after), (from, to)) in local.iter().zip(local_new).zip(global.iter().zip(global_new)) {
        let shift = to.f64() - from.f64();
        residual += (after.f64() - before.f64() - shift).powi(2);
        moved += shift * shift;
    }
    (residual / moved).sqrt()
}

#[cfg(test)]
mod tests;
