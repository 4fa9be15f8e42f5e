//! Kernel density estimates of particle sets and their scores, in log space.

use super::rbf::squared_distances;
use super::{SettingsError, check_range};
use crate::number::Real;
use ndarray::{Array2, ArrayView2, ArrayViewMut2};
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;

/// What the density estimate does far from its particles, where the logarithm of a sum of Gaussians has unbounded slope.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum KdeMode {
    /// log(Σ_n exp(e_n) + N δ) + const: a constant floor cuts the score off. δ = 0 is the exact estimate.
    Lse {
        /// δ.
        #[serde(default = "default_floor")]
        floor: f64,
    },
    /// What the code of Kassab & Simeone computes: floor 1e-9, the normaliser (N · 2πλ²)^(−d/2) with N inside the power, and
    /// log(density + 1e-10). It switches the score off where d is not small. Their logistic regression hands over the number of features
    /// as d, though particles have one coordinate more (log ξ); here, as in their networks, d counts all coordinates: the same formula
    /// whose normaliser is smaller by the factor √(N · 2πλ²).
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

/// A Gaussian kernel density estimate: mode and bandwidth λ, the standard deviation of each kernel.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Kde {
    /// What happens far from the particles.
    pub mode: KdeMode,
    /// λ.
    pub bandwidth: f64,
}

impl Default for Kde {
    /// Floor 1e-9, and λ = 0.55 as in all experiments of Kassab & Simeone (arXiv 2009.06419).
    fn default() -> Self {
        Self { mode: KdeMode::default(), bandwidth: 0.55 }
    }
}

impl Kde {
    /// Whether every number is in its range.
    pub fn check(&self) -> Result<(), SettingsError> {
        if let KdeMode::Lse { floor } = self.mode {
            check_range("floor", floor, (0.0..1.0).contains(&floor), "at least 0 and below 1")?;
        }
        check_range("bandwidth", self.bandwidth, self.bandwidth.is_finite() && self.bandwidth > 0.0, "a positive number")
    }

    /// Whether there is no density at all.
    pub fn is_none(&self) -> bool {
        self.mode == KdeMode::None
    }

    /// The logarithm of the constant beside the sum of n exponentials in d dimensions. Every mode is
    /// log q = log(Σ exp(e) + constant) + [`Self::log_norm`]: the authors' second floor is one more part of the constant.
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

    /// The estimate's logarithm at each particle of `theta` (M × d), from `points` (N × d), into `out` (length M).
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

    /// Adds `sign` · ∇log q to `score` (M × d) at each particle of `theta` (M × d); q is the estimate from `points` (N × d).
    /// Returns the mean over the particles of their total kernel weight Σ_n w_n, which is 1 without a floor.
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

    /// w_n = exp(e_n)/(Σ exp(e) + floor) of each point (columns) at each particle (rows).
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

/// log Σ exp; −∞ of nothing.
pub fn log_sum_exp(logs: impl Iterator<Item = f64> + Clone) -> f64 {
    let top = logs.clone().fold(f64::NEG_INFINITY, f64::max);
    if top.is_finite() { top + logs.map(|log| (log - top).exp()).sum::<f64>().ln() } else { top }
}

/// log(exp(a) + exp(b)).
fn log_sum(a: f64, b: f64) -> f64 {
    let (low, high) = if a < b { (a, b) } else { (b, a) };
    if high == f64::NEG_INFINITY { high } else { high + (low - high).exp().ln_1p() }
}

/// Whether a density multiplies or divides.
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

/// A particle set that stays where it is during a loop: its density estimate is a factor of the target.
#[derive(Clone, Copy, Debug)]
pub struct KdeFactor<'a, F> {
    /// Whether it multiplies or divides.
    pub sign: Sign,
    /// Its particles, any number × d.
    pub particles: ArrayView2<'a, F>,
}

impl<'a, F> KdeFactor<'a, F> {
    /// A set whose density multiplies.
    pub fn plus(particles: ArrayView2<'a, F>) -> Self {
        Self { sign: Sign::Plus, particles }
    }

    /// A set whose density divides.
    pub fn minus(particles: ArrayView2<'a, F>) -> Self {
        Self { sign: Sign::Minus, particles }
    }
}

/// The sets that remain when each one that equals one of opposite sign has been dropped together with it: their scores cancel in exact
/// arithmetic, and so they do here.
pub(super) fn uncancelled<'a, F: Real>(frozen: &[KdeFactor<'a, F>]) -> Vec<KdeFactor<'a, F>> {
    let mut kept: Vec<KdeFactor<F>> = Vec::with_capacity(frozen.len());
    for set in frozen {
        match kept.iter().position(|other| other.sign != set.sign && other.particles == set.particles) {
            Some(at) => drop(kept.remove(at)),
            None => kept.push(*set),
        }
    }
    kept
}

/// What the history reports of a signed sum of density estimates at some particles.
#[derive(Clone, Debug, PartialEq)]
pub struct CavityReport {
    /// The Frobenius norm of the summed score over all particles.
    pub norm: f64,
    /// The total kernel weight of each set, averaged over the particles: 1 without a floor, near 0 where the floor has switched the set
    /// off, not a number without density estimates.
    pub weights: Vec<f64>,
}

/// Evaluates Σ_j sign_j ∇log q_j at the particles (N × d) and adds it to `score` (N × d), by an explicit pass that is meant for once a
/// loop. Sets that cancel exactly do so here too.
pub fn add_cavity_score<F: Real>(
    kde: Kde,
    frozen: &[KdeFactor<F>],
    theta: ArrayView2<F>,
    mut score: ArrayViewMut2<F>,
) -> CavityReport {
    let mut cavity = Array2::zeros(theta.dim());
    let add = |set: &KdeFactor<F>| kde.add_score(set.sign.value(), set.particles, theta, cavity.view_mut());
    let weights = frozen.iter().map(add).map(|weight| if kde.is_none() { f64::NAN } else { weight }).collect();
    if uncancelled(frozen).is_empty() {
        cavity.fill(F::zero());
    }
    score += &cavity;
    CavityReport { norm: frobenius_norm(cavity.view()), weights }
}

/// The root of the sum of all squares.
pub fn frobenius_norm<F: Real>(matrix: ArrayView2<F>) -> f64 {
    matrix.iter().map(|x| x.f64() * x.f64()).sum::<f64>().sqrt()
}

/// How far a distillation ended from its ideal: ‖Θ_k' − (Θ_k + Θ' − Θ)‖ / ‖Θ' − Θ‖, where the local particles Θ_k became Θ_k' and the
/// global ones Θ became Θ'. All are N × d. Not a number where the global particles did not move.
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
