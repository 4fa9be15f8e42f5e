//! Gaussian and mixture targets: bare densities, and factors of a product that agents share.
//!
//! The target is p0(θ) Π_k ℓ_k(θ) with Gaussian mixtures ℓ_k. A row of data holds in its column 0 the index k (0, 1, ...) of a factor and
//! has the loss −log ℓ_k(θ), so that the agent that owns row k owns factor k. Without factors it is the bare density p0.
//! The two-agent examples are those of Kassab & Simeone, arXiv 2009.06419, section 6 and appendix B.2.

use super::error::positive;
use super::layout::{flat, flat_mut, index};
use super::{Batch, Model, ModelError, Output, Part, Scratch};
use crate::number::Real;
use crate::random::Stream;
use ndarray::{Array1, Array2, ArrayView2, ArrayViewMut1, ArrayViewMut2};
use rand::RngExt;

/// One Gaussian of a mixture, as configured.
#[derive(serde::Deserialize, serde::Serialize, Clone, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct ComponentSettings {
    /// Its weight; weights of a mixture need not add up to 1. Default 1.
    #[serde(default = "one")]
    pub weight: f64,
    /// Its mean, of length d.
    pub mean: Vec<f64>,
    /// Its covariance, d rows of length d.
    pub covariance: Vec<Vec<f64>>,
}

fn one() -> f64 {
    1.0
}

impl ComponentSettings {
    /// N(mean, covariance) with weight 1.
    fn new<const D: usize>(mean: [f64; D], covariance: [[f64; D]; D]) -> Self {
        Self { weight: 1.0, mean: mean.to_vec(), covariance: covariance.iter().map(|row| row.to_vec()).collect() }
    }
}

/// A prior density, as configured.
#[derive(serde::Deserialize, serde::Serialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum PriorSettings {
    /// A mixture of Gaussians; one component is a Gaussian.
    Mixture(Vec<ComponentSettings>),
    /// Uniform on a box. Its score is 0 everywhere, so that Stein particles may leave the box.
    Uniform {
        /// Lower corner, of length d.
        lower: Vec<f64>,
        /// Upper corner.
        upper: Vec<f64>,
    },
}

/// What may be set in a configuration. The default is the one-dimensional example with a Gaussian prior.
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

    /// The model.
    ///
    /// # Errors
    /// If sizes differ, a weight is not positive, a covariance is not positive definite, or the box is empty.
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

/// A Gaussian with its precision WᵀW, W lower triangular: W(θ − mean) is white.
#[derive(Clone, Debug)]
struct Component {
    /// log weight − (d/2) log 2π + log det W.
    log_peak: f64,
    mean: Vec<f64>,
    /// Row-major; above the diagonal 0.
    whitener: Array2<f64>,
}

impl Component {
    fn new(weight: f64, mean: &[f64], whitener: Array2<f64>) -> Self {
        let log_determinant: f64 = whitener.diag().iter().map(|w| w.ln()).sum();
        let log_peak = weight.ln() - 0.5 * mean.len() as f64 * (2.0 * std::f64::consts::PI).ln() + log_determinant;
        Self { log_peak, mean: mean.to_vec(), whitener }
    }

    /// Row i of W(θ − mean).
    fn white<F: Real>(&self, theta: &[F], i: usize) -> f64 {
        let row = self.whitener.row(i);
        (0..=i).map(|j| row[j] * (theta[j].f64() - self.mean[j])).sum()
    }

    /// log of weight times density.
    fn log_density<F: Real>(&self, theta: &[F]) -> f64 {
        self.log_peak - 0.5 * (0..theta.len()).map(|i| self.white(theta, i).powi(2)).sum::<f64>()
    }

    /// gradient += scale · ∇ log density = −scale · WᵀW(θ − mean).
    fn add_gradient<F: Real>(&self, theta: &[F], scale: f64, gradient: &mut [F]) {
        for i in 0..theta.len() {
            let factor = -scale * self.white(theta, i);
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
    /// The mixture of these components.
    ///
    /// # Errors
    /// If there are none, their sizes differ, a weight is not positive or a covariance not positive definite.
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

    /// N(mean, precision⁻¹).
    ///
    /// # Errors
    /// If the precision is not a symmetric, positive definite d × d matrix.
    pub fn normal(mean: &[f64], precision: ArrayView2<f64>) -> Result<Self, ModelError> {
        let d = mean.len();
        if d == 0 || precision.dim() != (d, d) {
            return Err(ModelError::Size { what: "the precision", found: precision.len(), expected: d.max(1) * d.max(1) });
        }
        // Lower triangular W with WᵀW = Λ: the Cholesky factor of Λ with its indices reversed, transposed and reversed back.
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

    /// gradient += scale · ∇ log density at θ.
    pub fn add_gradient<F: Real>(&self, theta: &[F], scale: f64, gradient: &mut [F]) {
        if let [component] = &self.components[..] {
            return component.add_gradient(theta, scale, gradient);
        }
        let total = self.log_density(theta);
        for component in &self.components {
            let share = (component.log_density(theta) - total).exp();
            component.add_gradient(theta, scale * share, gradient);
        }
    }

    /// One draw from the (normalised) mixture.
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
        // Rounding may leave a little after the last component.
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

/// The lower triangular L with LLᵀ = `matrix`; nothing if it is not symmetric and positive definite.
fn cholesky(matrix: ArrayView2<f64>) -> Option<Array2<f64>> {
    let d = matrix.nrows();
    let mut factor = Array2::zeros((d, d));
    for i in 0..d {
        for j in 0..=i {
            let size = (matrix[[i, i]] * matrix[[j, j]]).abs().sqrt();
            let symmetric = (matrix[[i, j]] - matrix[[j, i]]).abs() <= 1e-9 * size;
            let rest: f64 = matrix[[i, j]] - (0..j).map(|k| factor[[i, k]] * factor[[j, k]]).sum::<f64>();
            if !symmetric || !rest.is_finite() || (i == j && rest <= 0.0) {
                return None;
            }
            factor[[i, j]] = if i == j { rest.sqrt() } else { rest / factor[[j, j]] };
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

/// A prior times factors, one to a row of data; without factors, a bare density.
#[derive(Clone, Debug)]
pub struct FactorProduct {
    prior: Prior,
    factors: Vec<Mixture>,
}

impl FactorProduct {
    /// A bare mixture as the target: the prior, and no data.
    pub fn bare(mixture: Mixture) -> Self {
        Self { prior: Prior::Mixture(mixture), factors: Vec::new() }
    }

    /// The Gaussian target N(mean, precision⁻¹), without data.
    ///
    /// # Errors
    /// If the precision is not a symmetric, positive definite d × d matrix.
    pub fn normal(mean: &[f64], precision: ArrayView2<f64>) -> Result<Self, ModelError> {
        Ok(Self::bare(Mixture::normal(mean, precision)?))
    }

    /// The data that stand for the factors: features (K × 1) that hold the factors' indices, and targets (K) of 0 without a meaning.
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

    /// A draw from the prior.
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

    /// For the uniform prior 0 in the box and −∞ outside.
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

    /// There is no mean to predict (`mean` has no columns); `density` is ℓ_k(θ_n), averaged over the particles.
    fn predict(&self, theta: ArrayView2<F>, batch: Batch<F>, _: ArrayViewMut2<f64>, density: &mut [f64], _: &mut Scratch<F>) {
        let share = 1.0 / theta.nrows() as f64;
        let theta = flat(theta);
        for (factor, density) in self.factors_of(batch).zip(density) {
            *density = theta.chunks_exact(self.prior.dim()).map(|theta| share * factor.log_density(theta).exp()).sum();
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use super::*;
    use crate::models::tests as check;
    use crate::models::tests::stream;
    use ndarray::{Axis, array};

    /// A random positive definite matrix.
    fn covariance(d: usize, seed: u64) -> Array2<f64> {
        let root = check::normals(&mut stream(seed), d, d);
        root.dot(&root.t()) + 0.5 * Array2::<f64>::eye(d)
    }

    fn component(weight: f64, d: usize, seed: u64) -> ComponentSettings {
        let mean = check::normals(&mut stream(seed + 100), 1, d).into_raw_vec_and_offset().0;
        let covariance = covariance(d, seed).rows().into_iter().map(|row| row.to_vec()).collect();
        ComponentSettings { weight, mean, covariance }
    }

    /// log p0(θ) − Σ loss(θ) over all factors: the log of the unnormalised posterior.
    fn log_posterior(model: &FactorProduct, theta: &Array2<f64>) -> Vec<f64> {
        let (x, y) = model.data();
        let (mut prior, mut loss) = (vec![0.0; theta.nrows()], vec![0.0; theta.nrows()]);
        model.log_prior(theta.view(), &mut prior);
        model.loss(theta.view(), Batch { x: x.view(), y: y.view() }, &mut loss, &mut Scratch::new());
        prior.iter().zip(loss).map(|(prior, loss)| prior - loss).collect()
    }

    #[test]
    fn gradients_agree_with_central_differences() {
        for d in [1, 2, 5] {
            let mixture = vec![component(0.5, d, 1), component(2.0, d, 2), component(1.0, d, 3)];
            for prior in
                [PriorSettings::Mixture(mixture.clone()), PriorSettings::Uniform { lower: vec![-50.0; d], upper: vec![50.0; d] }]
            {
                let settings = FactorProductSettings { prior, factors: vec![mixture.clone(), vec![component(1.0, d, 4)]] };
                let model = settings.build().unwrap();
                let theta = check::particles(&model, 6, 5);
                let y = Array1::zeros(7);
                let x = array![[0.0], [1.0], [1.0], [0.0], [0.0], [1.0], [1.0]];
                for rows in [0, 1, 7] {
                    let batch = Batch { x: x.slice(ndarray::s![..rows, ..]), y: y.slice(ndarray::s![..rows]) };
                    for weight in [1.0, 0.25] {
                        let (prior, loss) = check::gradient_errors(&model, &theta, batch, weight);
                        assert!(prior < 1e-7 && loss < 1e-7, "{d} {rows}: {prior} {loss}");
                    }
                    check::assert_particles_are_independent(&model, &theta, batch);
                    check::assert_precisions_agree(&model, &model, &theta, batch, 1e-4);
                }
            }
        }
    }

    #[test]
    fn normal_from_precision_is_normal_from_covariance() {
        let (covariance, component) = (covariance(4, 9), component(1.0, 4, 9));
        let by_covariance = Mixture::new(std::slice::from_ref(&component)).unwrap();
        let factor = inverse(&cholesky(covariance.view()).unwrap());
        let by_precision = Mixture::normal(&component.mean, factor.t().dot(&factor).view()).unwrap();
        for theta in check::normals(&mut stream(3), 5, 4).rows() {
            let (a, b) = (by_covariance.log_density(&theta.to_vec()), by_precision.log_density(&theta.to_vec()));
            assert!((a - b).abs() < 1e-10 * a.abs().max(1.0), "{a} {b}");
        }
        // Against the textbook density in one dimension.
        let normal = Mixture::normal(&[1.0], array![[0.25]].view()).unwrap();
        let expected = -0.5 * (2.0 * std::f64::consts::PI * 4.0).ln() - 0.5 * 9.0 / 4.0;
        assert!((normal.log_density(&[4.0]) - expected).abs() < 1e-14);
    }

    #[test]
    fn far_tails_do_not_underflow() {
        let model = FactorProductSettings::mixture_1d_normal_prior().build().unwrap();
        let mut score = Array2::<f64>::zeros((1, 1));
        let (x, y) = model.data();
        model.add_score(array![[-1e3]].view(), Batch { x: x.view(), y: y.view() }, 1.0, score.view_mut(), &mut Scratch::new());
        // There N(3, 2) dominates N(−3, 1), and the slopes are 1001/4 and 1003/2.
        assert!((score[[0, 0]] - (1001.0 / 4.0 + 1003.0 / 2.0)).abs() < 1e-9);
    }

    /// Exact draws: mean and covariance of the 2-D prior within 4.5 standard errors, and the share of components.
    #[test]
    fn initial_draws_follow_the_prior() {
        let draws = 20_000;
        let root = f64::from(draws).sqrt();
        let mut stream = stream(2);
        let model = FactorProductSettings::mixture_2d().build().unwrap();
        let mut theta = Array2::<f64>::zeros((20_000, 2));
        theta.rows_mut().into_iter().for_each(|row| model.draw_initial(&mut stream, row));
        let mean = theta.mean_axis(Axis(0)).unwrap();
        assert!(mean.iter().all(|m| m.abs() < 4.5 * 2.0 / root));
        let second = theta.t().dot(&theta) / f64::from(draws);
        // Var(x_i x_j) = Σ_ii Σ_jj + Σ_ij².
        for (i, j, expected, variance) in [(0, 0, 4.0, 32.0), (1, 1, 4.0, 32.0), (0, 1, 2.0, 20.0_f64)] {
            assert!((second[[i, j]] - expected).abs() < 4.5 * variance.sqrt() / root, "{second}");
        }

        let normal =
            |weight, mean: f64, variance: f64| ComponentSettings { weight, mean: vec![mean], covariance: vec![vec![variance]] };
        let model = FactorProduct::bare(Mixture::new(&[normal(1.0, -100.0, 1.0), normal(3.0, 100.0, 9.0)]).unwrap());
        let mut theta = Array1::<f64>::zeros(1);
        let right = (0..draws).filter(|_| {
            model.draw_initial(&mut stream, theta.view_mut());
            theta[0] > 0.0
        });
        assert!((right.count() as f64 / f64::from(draws) - 0.75).abs() < 4.5 * (0.75 * 0.25_f64).sqrt() / root);
    }

    /// p0 ℓ_1 ℓ_2 is a mixture again, by products of Gaussians (weights to six digits).
    #[test]
    fn one_dimensional_posteriors_agree_with_the_analytic_mixtures() {
        let normal = |weight, mean, variance| ComponentSettings { weight, mean: vec![mean], covariance: vec![vec![variance]] };
        let grid = Array2::from_shape_fn((119, 1), |(i, _)| (i as f64 - 59.0) * 0.1);
        for (settings, exact) in [
            (
                FactorProductSettings::mixture_1d_uniform_prior(),
                [normal(0.235_861, -2.2, 0.8), normal(0.764_139, 7.0 / 3.0, 4.0 / 3.0)],
            ),
            (
                FactorProductSettings::mixture_1d_normal_prior(),
                [normal(0.227_316, -11.0 / 9.0, 4.0 / 9.0), normal(0.772_684, 1.0, 4.0 / 7.0)],
            ),
        ] {
            let (model, exact) = (settings.build().unwrap(), Mixture::new(&exact).unwrap());
            let found = log_posterior(&model, &grid);
            let constant = found[59] - exact.log_density(&[0.0]);
            for (theta, found) in grid.iter().zip(found) {
                assert!((found - exact.log_density(&[*theta]) - constant).abs() < 1e-5, "{theta}");
            }
        }
    }

    /// Moments of the posterior truncated to [−6, 6] by quadrature.
    #[test]
    fn truncated_posterior_has_the_known_moments() {
        let model = FactorProductSettings::mixture_1d_uniform_prior().build().unwrap();
        let step = 1e-3;
        let grid = Array2::from_shape_fn((12_000, 1), |(i, _)| -6.0 + (i as f64 + 0.5) * step);
        let density: Vec<f64> = log_posterior(&model, &grid).iter().map(|log| log.exp() * step).collect();
        let total: f64 = density.iter().sum();
        let average = |f: &dyn Fn(f64) -> f64| grid.iter().zip(&density).map(|(&t, p)| f(t) * p).sum::<f64>() / total;
        let mean = average(&|t| t);
        assert!((mean - 1.261_23).abs() < 1e-5, "{mean}");
        assert!((average(&|t| (t - mean).powi(2)) - 4.899_52).abs() < 1e-5);
        assert!((average(&|t| f64::from(t < 0.0)) - 0.250_91).abs() < 1e-5);
        for (place, peak) in [(-2.197, 0.1054), (2.333, 0.2642)] {
            let at = log_posterior(&model, &array![[place]])[0].exp() / total;
            assert!((at - peak).abs() < 1e-4, "{at}");
        }
        assert_eq!(log_posterior(&model, &array![[6.5]])[0], f64::NEG_INFINITY);
    }

    #[test]
    fn two_dimensional_posterior_agrees_with_the_analytic_mixture() {
        let model = FactorProductSettings::mixture_2d().build().unwrap();
        let (step, half) = (0.04, 200);
        let side = 2 * half + 1;
        let place = |i: usize| (i as f64 - half as f64) * step;
        let grid = Array2::from_shape_fn((side * side, 2), |(i, j)| place(if j == 0 { i / side } else { i % side }));
        let mut weights = Array1::from(log_posterior(&model, &grid)).mapv(f64::exp);
        weights /= weights.sum();
        let mean = weights.dot(&grid);
        let centred = &grid - &mean;
        let covariance = (&centred * &weights.view().insert_axis(Axis(1))).t().dot(&centred);
        let expected = array![0.162_561, -0.305_123, 1.620_401, 0.801_583, 1.153_409];
        let found = array![mean[0], mean[1], covariance[[0, 0]], covariance[[0, 1]], covariance[[1, 1]]];
        assert!((&found - &expected).iter().all(|difference| difference.abs() < 3e-6), "{found}");
        let exact = Mixture::new(&[
            ComponentSettings {
                weight: 0.270_661,
                ..ComponentSettings::new([-1.400_61, -1.293_88], [[0.195_868, 0.121_736], [0.121_736, 0.480_346]])
            },
            ComponentSettings {
                weight: 0.729_339,
                ..ComponentSettings::new([0.742_660, 0.061_809], [[0.905_741, 0.267_443], [0.267_443, 0.905_741]])
            },
        ])
        .unwrap();
        for (theta, weight) in grid.rows().into_iter().zip(&weights).step_by(977).filter(|(_, weight)| **weight > 1e-9) {
            let log = exact.log_density(&theta.to_vec());
            assert!((weight.ln() - 2.0 * step.ln() - log).abs() < 1e-3, "{theta}");
        }
    }

    #[test]
    fn a_model_without_data_takes_empty_batches() {
        let model = FactorProduct::normal(&[1.0, 2.0], array![[2.0, 0.5], [0.5, 1.0]].view()).unwrap();
        let (x, y) = model.data::<f64>();
        assert_eq!((x.nrows(), y.len()), (0, 0));
        let theta = array![[0.0, 0.0]];
        let mut score = array![[3.0, 4.0]];
        let mut loss = [1.0];
        let batch = Batch { x: x.view(), y: y.view() };
        model.add_score(theta.view(), batch, 1.0, score.view_mut(), &mut Scratch::new());
        model.loss(theta.view(), batch, &mut loss, &mut Scratch::new());
        assert_eq!((score, loss), (array![[3.0, 4.0]], [0.0]));
        let mut score = array![[f64::NAN, f64::NAN]];
        model.prior_score(theta.view(), score.view_mut());
        assert!((&score - &array![[3.0, 2.5]]).iter().all(|difference| difference.abs() < 1e-14), "Λ(μ − θ)");
    }

    #[test]
    fn the_predictive_density_of_a_row_is_that_of_its_factor() {
        let model = FactorProductSettings::mixture_1d_normal_prior().build().unwrap();
        let (x, y) = (array![[0.0]], array![0.0]);
        let (mean, density) = check::predict(&model, &array![[1.0], [3.0]], Batch { x: x.view(), y: y.view() }, 0);
        let peak = 1.0 / (8.0 * std::f64::consts::PI).sqrt();
        assert!(mean.is_empty() && (density[0] - 0.5 * peak * (1.0 + (-0.5_f64).exp())).abs() < 1e-14);
    }

    #[test]
    fn bad_settings_are_refused() {
        let normal = |mean: Vec<f64>, covariance: Vec<Vec<f64>>| ComponentSettings { weight: 1.0, mean, covariance };
        let not_definite = normal(vec![0.0, 0.0], vec![vec![1.0, 2.0], vec![2.0, 1.0]]);
        assert!(matches!(Mixture::new(&[not_definite]), Err(ModelError::NotPositiveDefinite { .. })));
        let asymmetric = normal(vec![0.0, 0.0], vec![vec![1.0, 0.5], vec![0.4, 1.0]]);
        assert!(matches!(Mixture::new(&[asymmetric]), Err(ModelError::NotPositiveDefinite { .. })));
        assert!(matches!(Mixture::new(&[]), Err(ModelError::NoComponents)));
        let ragged = normal(vec![0.0, 0.0], vec![vec![1.0, 0.0], vec![0.0]]);
        assert!(matches!(Mixture::new(&[ragged]), Err(ModelError::Size { .. })));
        assert!(Mixture::new(&[normal(vec![], vec![])]).is_err());
        let prior = PriorSettings::Uniform { lower: vec![1.0], upper: vec![1.0] };
        let settings = FactorProductSettings { prior, ..FactorProductSettings::default() };
        assert!(matches!(settings.build(), Err(ModelError::EmptyBox { .. })));
        let settings =
            FactorProductSettings { factors: FactorProductSettings::mixture_2d().factors, ..FactorProductSettings::default() };
        assert!(matches!(settings.build(), Err(ModelError::Size { .. })));
    }

    #[test]
    fn settings_survive_toml() {
        for settings in [FactorProductSettings::mixture_2d(), FactorProductSettings::mixture_1d_uniform_prior()] {
            assert_eq!(toml::from_str::<FactorProductSettings>(&toml::to_string(&settings).unwrap()).unwrap(), settings);
        }
    }
}
