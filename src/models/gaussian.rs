//! Gaussian mixture targets: a density without data, or a product of factors that are distributed over agents.
//!
//! The target is p0(θ) Π_k ℓ_k(θ) with Gaussian mixtures ℓ_k. Column 0 of a row of data holds the index k (0, 1, ...) of a factor, and
//! the row has the loss −log ℓ_k(θ), so the agent with row k holds factor k. Without factors the target is the density p0.
//! The two-agent examples are those of Kassab & Simeone, arXiv 2009.06419, section 6 and appendix B.2.

use super::error::positive;
use super::{Batch, Model, ModelError, Output, Part, Scratch};
use crate::layout::{flat, flat_mut, index};
use crate::number::Real;
use crate::random::Stream;
use ndarray::{Array1, Array2, ArrayView2, ArrayViewMut1, ArrayViewMut2};
use rand::RngExt;

/// The settings of one Gaussian component of a mixture.
#[derive(serde::Deserialize, serde::Serialize, Clone, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct ComponentSettings {
    /// Weight of the component, above 0. The weights of a mixture need not add up to 1.
    #[serde(default = "one")]
    pub weight: f64,
    /// Mean, a list of length d.
    pub mean: Vec<f64>,
    /// Covariance matrix, d rows of length d.
    pub covariance: Vec<Vec<f64>>,
}

fn one() -> f64 {
    1.0
}

impl ComponentSettings {
    /// The component N(mean, covariance) with weight 1.
    fn new<const D: usize>(mean: [f64; D], covariance: [[f64; D]; D]) -> Self {
        Self { weight: 1.0, mean: mean.to_vec(), covariance: covariance.iter().map(|row| row.to_vec()).collect() }
    }
}

/// The settings of a prior density.
#[derive(serde::Deserialize, serde::Serialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum PriorSettings {
    /// A mixture of Gaussians; one component is a Gaussian.
    Mixture(Vec<ComponentSettings>),
    /// Uniform on a box. Its score is 0 everywhere, so SVGD particles may leave the box.
    Uniform {
        /// Lower corner, of length d.
        lower: Vec<f64>,
        /// Upper corner, of length d.
        upper: Vec<f64>,
    },
}

/// The settings of a [`FactorProduct`]. The default is the one-dimensional example with a Gaussian prior.
#[derive(serde::Deserialize, serde::Serialize, Clone, Debug, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct FactorProductSettings {
    /// The prior p0.
    pub prior: PriorSettings,
    /// The factors ℓ_k, each a mixture.
    pub factors: Vec<Vec<ComponentSettings>>,
}

impl Default for FactorProductSettings {
    fn default() -> Self {
        Self::mixture_1d_normal_prior()
    }
}

impl FactorProductSettings {
    /// Two agents in one dimension, ℓ_1 = N(1, 4), ℓ_2 = N(−3, 1) + N(3, 2) (variances), under the prior U(−6, 6).
    pub fn mixture_1d_uniform_prior() -> Self {
        let prior = PriorSettings::Uniform { lower: vec![-6.0], upper: vec![6.0] };
        Self { prior, ..Self::mixture_1d_normal_prior() }
    }

    /// The same two agents under the prior N(0, 1).
    pub fn mixture_1d_normal_prior() -> Self {
        let normal = |mean, variance| ComponentSettings::new([mean], [[variance]]);
        Self {
            prior: PriorSettings::Mixture(vec![normal(0.0, 1.0)]),
            factors: vec![vec![normal(1.0, 4.0)], vec![normal(-3.0, 1.0), normal(3.0, 2.0)]],
        }
    }

    /// Two agents in two dimensions: a mixture of two correlated Gaussians and a Gaussian, under a correlated Gaussian prior.
    pub fn mixture_2d() -> Self {
        Self {
            prior: PriorSettings::Mixture(vec![ComponentSettings::new([0.0, 0.0], [[4.0, 2.0], [2.0, 4.0]])]),
            factors: vec![
                vec![
                    ComponentSettings::new([-1.71, -1.801], [[0.226, 0.1652], [0.1652, 0.6779]]),
                    ComponentSettings::new([1.0, 0.0], [[2.0, 0.5], [0.5, 2.0]]),
                ],
                vec![ComponentSettings::new([1.0, 0.0], [[3.0, 0.5], [0.5, 3.0]])],
            ],
        }
    }

    /// Builds the model.
    ///
    /// # Errors
    /// If sizes differ, a weight is not positive, a covariance is not positive definite, or the box of a uniform prior is empty.
    pub fn build(&self) -> Result<FactorProduct, ModelError> {
        let prior = match &self.prior {
            PriorSettings::Mixture(components) => Prior::Mixture(Mixture::new(components)?),
            PriorSettings::Uniform { lower, upper } => {
                if upper.len() != lower.len() || lower.is_empty() {
                    let expected = lower.len().max(1);
                    return Err(ModelError::Size { what: "the upper corner of the prior's box", found: upper.len(), expected });
                }
                for (&lower, &upper) in lower.iter().zip(upper) {
                    if !(lower < upper && (upper - lower).is_finite()) {
                        return Err(ModelError::EmptyBox { lower, upper });
                    }
                }
                Prior::Uniform { lower: lower.clone(), upper: upper.clone() }
            }
        };
        let factors = self.factors.iter().map(|factor| Mixture::new(factor)).collect::<Result<Vec<_>, _>>()?;
        for factor in &factors {
            if factor.dim() != prior.dim() {
                return Err(ModelError::Size { what: "the mean of a factor", found: factor.dim(), expected: prior.dim() });
            }
        }
        Ok(FactorProduct { prior, factors })
    }
}

/// A Gaussian with precision WᵀW and lower triangular W, which whitens: W(θ − mean) ~ N(0, I).
#[derive(Clone, Debug)]
struct Component {
    /// log weight − (d/2) log 2π + log det W.
    log_peak: f64,
    mean: Vec<f64>,
    /// W; zero above the diagonal.
    whitener: Array2<f64>,
}

impl Component {
    fn new(weight: f64, mean: &[f64], whitener: Array2<f64>) -> Self {
        let log_determinant: f64 = whitener.diag().iter().map(|w| w.ln()).sum();
        let log_peak = weight.ln() - 0.5 * mean.len() as f64 * (2.0 * std::f64::consts::PI).ln() + log_determinant;
        Self { log_peak, mean: mean.to_vec(), whitener }
    }

    /// Entry i of W(θ − mean).
    fn whitened<F: Real>(&self, theta: &[F], i: usize) -> f64 {
        let row = self.whitener.row(i);
        (0..=i).map(|j| row[j] * (theta[j].f64() - self.mean[j])).sum()
    }

    /// log(weight · density).
    fn log_density<F: Real>(&self, theta: &[F]) -> f64 {
        self.log_peak - 0.5 * (0..theta.len()).map(|i| self.whitened(theta, i).powi(2)).sum::<f64>()
    }

    /// Adds scale · ∇ log density = −scale · WᵀW(θ − mean) to `gradient`.
    fn add_gradient<F: Real>(&self, theta: &[F], scale: f64, gradient: &mut [F]) {
        for i in 0..theta.len() {
            let factor = -scale * self.whitened(theta, i);
            for (gradient, w) in gradient[..=i].iter_mut().zip(self.whitener.row(i)) {
                *gradient += F::of(factor * w);
            }
        }
    }
}

/// A mixture of Gaussians in any dimension with full covariances; weights need not add up to 1.
#[derive(Clone, Debug)]
pub struct Mixture {
    components: Vec<Component>,
}

impl Mixture {
    /// A mixture of these components.
    ///
    /// # Errors
    /// If there are no components, their sizes differ, a weight is not positive or a covariance is not positive definite.
    pub fn new(components: &[ComponentSettings]) -> Result<Self, ModelError> {
        let d = components.first().ok_or(ModelError::NoComponents)?.mean.len();
        let build = |component: &ComponentSettings| {
            let weight = positive("weight", component.weight)?;
            let (mean, rows) = (&component.mean, &component.covariance);
            let size =
                |what, found, expected| if found == expected { Ok(()) } else { Err(ModelError::Size { what, found, expected }) };
            size("the mean of a component", mean.len(), d.max(1))?;
            size("the covariance of a component (its rows)", rows.len(), d)?;
            for row in rows {
                size("a row of the covariance of a component", row.len(), d)?;
            }
            let covariance = Array2::from_shape_fn((d, d), |(i, j)| rows[i][j]);
            let factor =
                cholesky(covariance.view()).ok_or(ModelError::NotPositiveDefinite { what: "the covariance of a component" })?;
            Ok(Component::new(weight, mean, inverse(&factor)))
        };
        Ok(Self { components: components.iter().map(build).collect::<Result<_, _>>()? })
    }

    /// The Gaussian N(mean, precision⁻¹).
    ///
    /// # Errors
    /// If the precision is not a symmetric, positive definite d × d matrix.
    pub fn normal(mean: &[f64], precision: ArrayView2<f64>) -> Result<Self, ModelError> {
        let d = mean.len();
        if d == 0 || precision.dim() != (d, d) {
            return Err(ModelError::Size { what: "the precision", found: precision.len(), expected: d.max(1) * d.max(1) });
        }
        // Lower triangular W with WᵀW = Λ: reverse the indices of Λ, take its Cholesky factor, transpose it and reverse it back.
        let reversed = precision.slice(ndarray::s![..;-1, ..;-1]);
        let factor = cholesky(reversed).ok_or(ModelError::NotPositiveDefinite { what: "the precision" })?;
        let whitener = factor.t().slice(ndarray::s![..;-1, ..;-1]).as_standard_layout().into_owned();
        Ok(Self { components: vec![Component::new(1.0, mean, whitener)] })
    }

    /// d.
    pub fn dim(&self) -> usize {
        self.components[0].mean.len()
    }

    /// log Σ_c weight_c N(θ | mean_c, covariance_c), for θ of length d.
    pub fn log_density<F: Real>(&self, theta: &[F]) -> f64 {
        let (mut highest, mut sum) = (f64::NEG_INFINITY, 0.0);
        for component in &self.components {
            let log = component.log_density(theta);
            if log > highest {
                sum = sum * (highest - log).exp() + 1.0;
                highest = log;
            } else if highest > f64::NEG_INFINITY {
                sum += (log - highest).exp();
            }
        }
        highest + sum.ln()
    }

    /// Adds scale · ∇ log density at θ to `gradient`.
    pub fn add_gradient<F: Real>(&self, theta: &[F], scale: f64, gradient: &mut [F]) {
        if let [component] = &self.components[..] {
            return component.add_gradient(theta, scale, gradient);
        }
        let total = self.log_density(theta);
        for component in &self.components {
            let responsibility = (component.log_density(theta) - total).exp();
            component.add_gradient(theta, scale * responsibility, gradient);
        }
    }

    /// Draws θ from the normalized mixture.
    fn draw<F: Real>(&self, stream: &mut Stream, mut theta: ArrayViewMut1<F>) {
        let weight = |component: &Component| {
            let log_determinant: f64 = component.whitener.diag().iter().map(|w| w.ln()).sum();
            (component.log_peak - log_determinant).exp()
        };
        let mut left = stream.random::<f64>() * self.components.iter().map(weight).sum::<f64>();
        let chosen = self.components.iter().find(|component| {
            left -= weight(component);
            left < 0.0
        });
        // Rounding may leave a remainder after the last component.
        let component = chosen.unwrap_or(&self.components[self.components.len() - 1]);
        // θ = mean + W⁻¹ z by forward substitution.
        let mut normal = [0.0_f64];
        for i in 0..theta.len() {
            stream.normals(&mut normal);
            let row = component.whitener.row(i);
            let before: f64 = (0..i).map(|j| row[j] * (theta[j].f64() - component.mean[j])).sum();
            theta[i] = F::of(component.mean[i] + (normal[0] - before) / row[i]);
        }
    }
}

/// The lower triangular L with LLᵀ = `matrix`, or `None` if the matrix is not symmetric and positive definite.
fn cholesky(matrix: ArrayView2<f64>) -> Option<Array2<f64>> {
    let d = matrix.nrows();
    let mut factor = Array2::zeros((d, d));
    for i in 0..d {
        for j in 0..=i {
            let size = (matrix[[i, i]] * matrix[[j, j]]).abs().sqrt();
            let symmetric = (matrix[[i, j]] - matrix[[j, i]]).abs() <= 1e-9 * size;
            let remainder: f64 = matrix[[i, j]] - (0..j).map(|k| factor[[i, k]] * factor[[j, k]]).sum::<f64>();
            if !symmetric || !remainder.is_finite() || (i == j && remainder <= 0.0) {
                return None;
            }
            factor[[i, j]] = if i == j { remainder.sqrt() } else { remainder / factor[[j, j]] };
        }
    }
    Some(factor)
}

/// The inverse of a lower triangular matrix.
fn inverse(factor: &Array2<f64>) -> Array2<f64> {
    let d = factor.nrows();
    let mut inverse = Array2::zeros((d, d));
    for j in 0..d {
        for i in j..d {
            let unit = if i == j { 1.0 } else { 0.0 };
            let before: f64 = (j..i).map(|k| factor[[i, k]] * inverse[[k, j]]).sum();
            inverse[[i, j]] = (unit - before) / factor[[i, i]];
        }
    }
    inverse
}

#[derive(Clone, Debug)]
enum Prior {
    Mixture(Mixture),
    Uniform { lower: Vec<f64>, upper: Vec<f64> },
}

impl Prior {
    fn dim(&self) -> usize {
        match self {
            Self::Mixture(mixture) => mixture.dim(),
            Self::Uniform { lower, .. } => lower.len(),
        }
    }
}

/// A prior times factors, one per row of data; without factors, a density without data.
#[derive(Clone, Debug)]
pub struct FactorProduct {
    prior: Prior,
    factors: Vec<Mixture>,
}

impl FactorProduct {
    /// A mixture as the target, without data.
    pub fn without_data(mixture: Mixture) -> Self {
        Self { prior: Prior::Mixture(mixture), factors: Vec::new() }
    }

    /// The Gaussian target N(mean, precision⁻¹), without data.
    ///
    /// # Errors
    /// If the precision is not a symmetric, positive definite d × d matrix.
    pub fn normal(mean: &[f64], precision: ArrayView2<f64>) -> Result<Self, ModelError> {
        Ok(Self::without_data(Mixture::normal(mean, precision)?))
    }

    /// The generated data: features (K × 1) with the indices of the factors, and unused targets (K) of 0.
    pub fn data<F: Real>(&self) -> (Array2<F>, Array1<F>) {
        let k = self.factors.len();
        (Array2::from_shape_fn((k, 1), |(k, _)| F::of(k as f64)), Array1::zeros(k))
    }

    fn factors_of<'s, F: Real>(&'s self, batch: Batch<'_, F>) -> impl Iterator<Item = &'s Mixture> {
        (0..batch.x.nrows()).map(move |i| &self.factors[index(batch.x[[i, 0]], self.factors.len())])
    }
}

impl<F: Real> Model<F> for FactorProduct {
    fn dim(&self) -> usize {
        self.prior.dim()
    }

    fn parts(&self) -> Vec<Part> {
        vec![Part::new("position", &[self.prior.dim()])]
    }

    fn output(&self) -> Output {
        Output::Nothing
    }

    /// Draws θ from the prior.
    fn draw_initial(&self, stream: &mut Stream, mut theta: ArrayViewMut1<F>) {
        match &self.prior {
            Prior::Mixture(mixture) => mixture.draw(stream, theta),
            Prior::Uniform { lower, upper } => {
                for ((theta, lower), upper) in theta.iter_mut().zip(lower).zip(upper) {
                    *theta = F::of(lower + (upper - lower) * stream.random::<f64>());
                }
            }
        }
    }

    /// For the uniform prior, 0 inside the box and −∞ outside.
    fn log_prior(&self, theta: ArrayView2<F>, out: &mut [f64]) {
        for (theta, out) in flat(theta).chunks_exact(self.prior.dim()).zip(out) {
            *out = match &self.prior {
                Prior::Mixture(mixture) => mixture.log_density(theta),
                Prior::Uniform { lower, upper } => {
                    let inside =
                        theta.iter().zip(lower).zip(upper).all(|((t, lower), upper)| (*lower..=*upper).contains(&t.f64()));
                    if inside { 0.0 } else { f64::NEG_INFINITY }
                }
            };
        }
    }

    fn prior_score(&self, theta: ArrayView2<F>, mut score: ArrayViewMut2<F>) {
        score.fill(F::zero());
        if let Prior::Mixture(mixture) = &self.prior {
            let d = self.prior.dim();
            for (theta, score) in flat(theta).chunks_exact(d).zip(flat_mut(score).chunks_exact_mut(d)) {
                mixture.add_gradient(theta, 1.0, score);
            }
        }
    }

    fn loss(&self, theta: ArrayView2<F>, batch: Batch<F>, out: &mut [f64], _: &mut Scratch<F>) {
        for (theta, out) in flat(theta).chunks_exact(self.prior.dim()).zip(out) {
            *out = self.factors_of(batch).map(|factor| -factor.log_density(theta)).sum();
        }
    }

    fn add_score(&self, theta: ArrayView2<F>, batch: Batch<F>, weight: F, score: ArrayViewMut2<F>, _: &mut Scratch<F>) {
        let d = self.prior.dim();
        for (theta, score) in flat(theta).chunks_exact(d).zip(flat_mut(score).chunks_exact_mut(d)) {
            for factor in self.factors_of(batch) {
                factor.add_gradient(theta, weight.f64(), score);
            }
        }
    }

    /// `mean` has no columns; `density` is ℓ_k(θ_n), averaged over the particles.
    fn predict(&self, theta: ArrayView2<F>, batch: Batch<F>, _: ArrayViewMut2<f64>, density: &mut [f64], _: &mut Scratch<F>) {
        let weight = 1.0 / theta.nrows() as f64;
        let theta = flat(theta);
        for (factor, density) in self.factors_of(batch).zip(density) {
            *density = theta.chunks_exact(self.prior.dim()).map(|theta| weight * factor.log_density(theta).exp()).sum();
        }
    }
}

#[cfg(test)]
mod tests;
