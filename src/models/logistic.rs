//! Bayesian logistic regression, with a Gamma hyper-prior on the precision of its weights or with a fixed precision.
//!
//! θ = (w, v), v = log ξ: p(y = 1|x, w) = σ(wᵀx), w|ξ ~ N(0, I/ξ), ξ ~ Gamma(shape a, rate b); with the Jacobian of v,
//! log p0(w, v) = (m/2 + a) v − e^v (‖w‖²/2 + b), m the length of w (Liu & Wang 2016, section 5; Kassab & Simeone, arXiv 2009.06419).
//! With a fixed precision there is no v: θ = w ~ N(0, I/ξ).

use super::error::{not_negative, positive};
use super::layout::{flat, flat_mut, index, particle_mut};
use super::linear_predictor::LinearPredictor;
use super::rows::Rows;
use super::{
    Batch, BuiltModel, CurvatureSupport, DataSchema, LARGEST_LOG_PRECISION, Model, ModelError, ModelSettings, Output, Part,
    Scratch, precision, require_data,
};
use crate::number::Real;
use crate::random::Stream;
use crate::vector::{self, vectorized};
use ndarray::{ArrayView2, ArrayViewMut1, ArrayViewMut2};
use rand_distr::{Distribution, Gamma};

/// What may be set in a configuration.
#[derive(serde::Deserialize, serde::Serialize, Clone, Debug, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct LogisticSettings {
    /// Shape a of the Gamma prior of the weights' precision. Default 1.
    pub gamma_shape: f64,
    /// Rate b (not scale) of that prior. Default 100, that of the DSVGD experiments; the original SVGD code's gradient has 0.01.
    pub gamma_rate: f64,
    /// ξ, fixed: a parameter less, and no use for shape and rate. Default none: with the Gamma prior.
    pub prior_precision: Option<f64>,
    /// Whether a column of ones is added to the features. Default false, as in the DSVGD experiments.
    pub intercept: bool,
    /// Bandwidth λ of the kernel density estimate around each particle that predictions average over, by
    /// E σ(wᵀx) ≈ σ(wₙᵀx / √(1 + π λ²‖x‖²/8)). Default 0, the plain average over particles.
    pub predictive_bandwidth: f64,
}

impl Default for LogisticSettings {
    fn default() -> Self {
        Self { gamma_shape: 1.0, gamma_rate: 100.0, prior_precision: None, intercept: false, predictive_bandwidth: 0.0 }
    }
}

impl LogisticSettings {
    /// The model for data with this many features.
    ///
    /// # Errors
    /// If a setting is out of its range, there are no features, or the targets are not two classes.
    pub fn build(&self, features: usize, output: Output) -> Result<Logistic, ModelError> {
        match output {
            Output::Classes(2) => {}
            Output::Classes(classes) => {
                return Err(ModelError::Classes { classes, hint: ": logistic regression tells exactly two apart" });
            }
            Output::Number | Output::Nothing => {
                return Err(ModelError::Target { needed: "two classes as targets: this is logistic regression" });
            }
        }
        if features == 0 {
            return Err(ModelError::NoFeatures);
        }
        let shape = positive("gamma_shape", self.gamma_shape)?;
        let rate = positive("gamma_rate", self.gamma_rate)?;
        let bandwidth = not_negative("predictive_bandwidth", self.predictive_bandwidth)?;
        let precision =
            Gamma::new(shape, 1.0 / rate).map_err(|_| ModelError::NotPositive { setting: "gamma_rate", value: rate })?;
        let prior = match self.prior_precision {
            Some(precision) => Prior::Fixed(positive("prior_precision", precision)?),
            None => Prior::Gamma { shape, rate, precision },
        };
        let others = usize::from(self.prior_precision.is_none());
        Ok(Logistic { predictor: LinearPredictor { features, intercept: self.intercept, others }, prior, bandwidth })
    }
}

impl ModelSettings for LogisticSettings {
    const NAME: &'static str = "logistic";

    const DOCS: &'static [(&'static str, &'static str)] = &[
        ("gamma_shape", "shape of the Gamma prior of the weights' precision"),
        ("gamma_rate", "rate (not scale) of that prior"),
        ("prior_precision", "a fixed precision of the weights in place of one with that prior; not by default"),
        ("intercept", "whether a column of ones is added to the features"),
        ("predictive_bandwidth", "bandwidth of the density estimate that predictions average over; 0: the plain average"),
    ];

    fn build_model<F: Real>(&self, facts: Option<DataSchema>) -> Result<BuiltModel<F>, String> {
        let facts = require_data(facts)?;
        let model = self.build(facts.features, facts.output).map_err(|error| error.to_string())?;
        Ok(BuiltModel::for_data(model))
    }
}

/// Bayesian logistic regression; targets are the class indices 0 and 1.
#[derive(Clone, Debug)]
pub struct Logistic {
    predictor: LinearPredictor,
    prior: Prior,
    bandwidth: f64,
}

/// Of the weights' precision ξ.
#[derive(Clone, Copy, Debug)]
enum Prior {
    Fixed(f64),
    Gamma { shape: f64, rate: f64, precision: Gamma<f64> },
}

impl<F: Real> Model<F> for Logistic {
    fn dim(&self) -> usize {
        self.predictor.dim()
    }

    fn parts(&self) -> Vec<Part> {
        let mut parts = self.predictor.parts();
        if let Prior::Gamma { .. } = self.prior {
            parts.push(Part::new("log_precision", &[]));
        }
        parts
    }

    fn output(&self) -> Output {
        Output::Classes(2)
    }

    /// ξ from its Gamma prior and w ~ N(0, I/ξ).
    fn draw_initial(&self, stream: &mut Stream, theta: ArrayViewMut1<F>) {
        let v = match &self.prior {
            Prior::Fixed(precision) => precision.ln(),
            Prior::Gamma { precision, .. } => precision.sample(stream).ln().clamp(-LARGEST_LOG_PRECISION, LARGEST_LOG_PRECISION),
        };
        let deviation = (-0.5 * v).exp();
        let theta = particle_mut(theta);
        let mut normals = vec![0.0; self.predictor.weights()];
        stream.normals(&mut normals);
        theta.iter_mut().zip(normals).for_each(|(weight, normal)| *weight = F::of(deviation * normal));
        if let Some(last) = theta.get_mut(self.predictor.weights()) {
            *last = F::of(v);
        }
    }

    fn log_prior(&self, theta: ArrayView2<F>, out: &mut [f64]) {
        for (theta, out) in flat(theta).chunks_exact(self.predictor.dim()).zip(out) {
            let (weights, others) = theta.split_at(self.predictor.weights());
            let square: f64 = weights.iter().map(|w| w.f64().powi(2)).sum();
            *out = match (self.prior, others) {
                (Prior::Gamma { shape, rate, .. }, [v]) => {
                    (0.5 * weights.len() as f64 + shape) * v.f64() - precision(v.f64()) * (0.5 * square + rate)
                }
                (Prior::Fixed(precision), _) => -0.5 * precision * square,
                (Prior::Gamma { .. }, _) => f64::NAN,
            };
        }
    }

    fn prior_score(&self, theta: ArrayView2<F>, score: ArrayViewMut2<F>) {
        let d = self.predictor.dim();
        for (theta, score) in flat(theta).chunks_exact(d).zip(flat_mut(score).chunks_exact_mut(d)) {
            match self.prior {
                Prior::Fixed(precision) => {
                    shrink(theta, score, -F::of(precision));
                }
                Prior::Gamma { shape, rate, .. } => {
                    let precision = precision(theta[d - 1].f64());
                    let square = shrink(&theta[..d - 1], &mut score[..d - 1], -F::of(precision)).f64();
                    let pull = 0.5 * self.predictor.weights() as f64 + shape;
                    score[d - 1] = F::of(pull - precision * (0.5 * square + rate));
                }
            }
        }
    }

    fn loss(&self, theta: ArrayView2<F>, batch: Batch<F>, out: &mut [f64], scratch: &mut Scratch<F>) {
        out.fill(0.0);
        let mut softplus = scratch.take(self.predictor.block_len::<F>());
        self.predictor.predict(theta, batch, scratch, |block| {
            let softplus = &mut softplus[..block.values.len()];
            softplus.copy_from_slice(block.values);
            vector::softplus(softplus);
            let rows = softplus.chunks_exact(block.lanes).zip(block.values.chunks_exact(block.lanes));
            for ((softplus, logits), &row) in rows.zip(block.rows) {
                let y = batch.y[row];
                for (out, (s, z)) in out[block.particles.clone()].iter_mut().zip(softplus.iter().zip(logits)) {
                    *out += (*s - y * *z).f64();
                }
            }
        });
        scratch.put(softplus);
    }

    fn add_score(&self, theta: ArrayView2<F>, batch: Batch<F>, weight: F, score: ArrayViewMut2<F>, scratch: &mut Scratch<F>) {
        let rows = Rows { batch, chosen: None };
        self.predictor.add_score(theta, rows, weight, score, scratch, vector::sigmoid);
    }

    fn add_minibatch_score(
        &self,
        rows: &[usize],
        theta: ArrayView2<F>,
        batch: Batch<F>,
        weight: F,
        score: ArrayViewMut2<F>,
        scratch: &mut Scratch<F>,
    ) {
        let rows = Rows { batch, chosen: Some(rows) };
        self.predictor.add_score(theta, rows, weight, score, scratch, vector::sigmoid);
    }

    fn curvature_support(&self) -> CurvatureSupport {
        CurvatureSupport::Full
    }

    fn add_curvature(
        &self,
        theta: ArrayView2<F>,
        batch: Batch<F>,
        weight: F,
        curvature: ArrayViewMut2<F>,
        scratch: &mut Scratch<F>,
    ) {
        self.predictor.add_curvature(theta, batch, weight, curvature, scratch, slope);
    }

    fn add_full_curvature(
        &self,
        theta: ArrayView2<F>,
        batch: Batch<F>,
        weight: F,
        curvature: ArrayViewMut2<F>,
        scratch: &mut Scratch<F>,
    ) {
        self.predictor.add_full_curvature(theta, batch, weight, curvature, scratch, slope);
    }

    fn predict(
        &self,
        theta: ArrayView2<F>,
        batch: Batch<F>,
        mut mean: ArrayViewMut2<f64>,
        density: &mut [f64],
        scratch: &mut Scratch<F>,
    ) {
        mean.fill(0.0);
        let share = 1.0 / theta.nrows() as f64;
        let features = self.predictor.features;
        let mut opposite = scratch.take(self.predictor.block_len::<F>());
        self.predictor.predict(theta, batch, scratch, |block| {
            let (logits, lanes) = (block.values, block.lanes);
            if self.bandwidth > 0.0 {
                for (&row, logits) in block.rows.iter().zip(logits.chunks_exact_mut(lanes)) {
                    let x = &block.x[row * features..][..features];
                    let ones = if self.predictor.intercept { 1.0 } else { 0.0 };
                    let length: f64 = ones + x.iter().map(|x| x.f64().powi(2)).sum::<f64>();
                    let shrink = F::of((1.0 + std::f64::consts::PI * self.bandwidth.powi(2) * length / 8.0).powf(-0.5));
                    logits.iter_mut().for_each(|z| *z *= shrink);
                }
            }
            // Not 1 − σ(z): that is 0 from z = 17 on in single precision, where σ(−z) goes on as exp(−z).
            let opposite = &mut opposite[..logits.len()];
            opposite.iter_mut().zip(logits.iter()).for_each(|(opposite, z)| *opposite = -*z);
            for (class, probabilities) in [opposite, logits].into_iter().enumerate() {
                vector::sigmoid(probabilities);
                for (i, row) in probabilities.chunks_exact(lanes).enumerate() {
                    mean[[block.first + i, class]] += share * row[..block.particles.len()].iter().map(|p| p.f64()).sum::<f64>();
                }
            }
        });
        scratch.put(opposite);
        for ((density, mean), &y) in density.iter_mut().zip(mean.rows()).zip(batch.y) {
            *density = mean[index(y, 2)];
        }
    }
}

/// σ'(z) of logits z, in place.
fn slope<F: Real>(logits: &mut [F]) {
    vector::sigmoid(logits);
    logits.iter_mut().for_each(|p| *p = *p * (F::one() - *p));
}

vectorized! {
    /// score = `by` · weights; returns ‖weights‖².
    fn shrink<F: Real>(weights: &[F], score: &mut [F], by: F) -> F {
        let mut squares = [F::zero(); 16];
        let (groups, rest) = weights.as_chunks::<16>();
        for group in groups {
            for lane in 0..16 {
                squares[lane] += group[lane] * group[lane];
            }
        }
        score.iter_mut().zip(weights).for_each(|(score, &weight)| *score = by * weight);
        let rest: F = rest.iter().map(|&weight| weight * weight).sum();
        squares.iter().copied().sum::<F>() + rest
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use super::*;
    use crate::models::tests as check;
    use crate::models::tests::stream;
    use ndarray::{Array1, Array2, Axis, array};
    use rand::RngExt;

    fn labels(rows: usize, seed: u64) -> Array1<f64> {
        let mut stream = stream(seed);
        Array1::from_shape_fn(rows, |_| f64::from(stream.random_range(0..2_u8)))
    }

    fn model(features: usize, intercept: bool) -> Logistic {
        let settings = LogisticSettings { gamma_shape: 1.7, gamma_rate: 2.5, intercept, ..LogisticSettings::default() };
        settings.build(features, Output::Classes(2)).unwrap()
    }

    #[test]
    fn gradients_agree_with_central_differences() {
        for (case, (features, rows, n)) in
            [(1, 0, 3), (3, 1, 1), (11, 7, 9), (54, 131, 17), (8, 300, 2), (5, 1100, 40)].into_iter().enumerate()
        {
            for intercept in [false, true] {
                let model = model(features, intercept);
                let mut data = stream(case as u64);
                let x = check::normals(&mut data, rows, features);
                let y = labels(rows, 7);
                let batch = Batch { x: x.view(), y: y.view() };
                let theta = check::particles(&model, n, 3);
                for weight in [1.0, 17.5] {
                    let (prior, loss) = check::gradient_errors(&model, &theta, batch, weight);
                    assert!(prior < 1e-7 && loss < 1e-7, "{features} {rows} {n} {intercept}: {prior} {loss}");
                }
                check::assert_particles_are_independent(&model, &theta, batch);
                check::assert_precisions_agree(&model, &model, &theta, batch, 1e-4);
            }
        }
    }

    #[test]
    fn curvature_is_the_diagonal_of_the_losses_hessian() {
        for intercept in [false, true] {
            let model = model(5, intercept);
            let x = check::normals(&mut stream(51), 300, 5);
            let y = labels(300, 52);
            let theta = check::particles(&model, 11, 53);
            let batch = Batch { x: x.view(), y: y.view() };
            assert!(check::curvature_error(&model, &theta, batch, 2.5, theta.ncols()) < 1e-6);
            assert!(check::full_curvature_error(&model, &theta, batch, 2.5) < 1e-6);
        }
    }

    /// Loss and prediction of one row, worked out by hand.
    #[test]
    fn loss_and_prediction_agree_with_hand_computation() {
        let model = model(2, true);
        let theta = array![[0.5, -1.0, 0.25, 0.3], [2.0, 1.0, -1.0, 0.0]];
        let (x, y) = (array![[1.0, 2.0]], array![1.0]);
        let batch = Batch { x: x.view(), y: y.view() };
        let sigma = |z: f64| 1.0 / (1.0 + (-z).exp());
        let p = [sigma(-1.25), sigma(3.0)];
        let mut loss = [0.0; 2];
        model.loss(theta.view(), batch, &mut loss, &mut Scratch::new());
        for (loss, p) in loss.iter().zip(p) {
            assert!((loss + p.ln()).abs() < 1e-14);
        }
        let (mean, density) = check::predict(&model, &theta, batch, 2);
        assert!((mean[[0, 1]] - 0.5 * (p[0] + p[1])).abs() < 1e-14 && (mean.sum() - 1.0).abs() < 1e-14);
        assert_eq!(density[0], mean[[0, 1]]);

        let wide = LogisticSettings { intercept: true, predictive_bandwidth: 0.55, ..LogisticSettings::default() };
        let (mean, _) = check::predict(&wide.build(2, Output::Classes(2)).unwrap(), &theta, batch, 2);
        let shrink = (1.0_f64 + std::f64::consts::PI * 0.55 * 0.55 * 6.0 / 8.0).powf(-0.5);
        assert!((mean[[0, 1]] - 0.5 * (sigma(-1.25 * shrink) + sigma(3.0 * shrink))).abs() < 1e-14);
    }

    /// A minibatch's rows give the same bits where they are as copied together; on both sides of a block, of a vector and of BLAS.
    #[test]
    fn rows_in_place_are_rows_copied() {
        for (n, rows, intercept) in [(1, 3, false), (6, 100, false), (9, 300, true), (20, 100, true)] {
            let model = LogisticSettings { intercept, ..LogisticSettings::default() }.build(54, Output::Classes(2)).unwrap();
            let x = check::normals(&mut stream(31), 400, 54);
            let y = labels(400, 32);
            let theta = check::normals(&mut stream(33), n, model.predictor.dim());
            let chosen: Vec<usize> = (0..rows).map(|i| i * 7 % 400).collect();
            let (mut in_place, mut copied) = (Array2::zeros(theta.dim()), Array2::zeros(theta.dim()));
            let (mut scratch, all) = (Scratch::new(), Batch { x: x.view(), y: y.view() });
            model.add_minibatch_score(&chosen, theta.view(), all, 0.5, in_place.view_mut(), &mut scratch);
            let (x, y) = (x.select(Axis(0), &chosen), y.select(Axis(0), &chosen));
            let batch = Batch { x: x.view(), y: y.view() };
            model.add_score(theta.view(), batch, 0.5, copied.view_mut(), &mut scratch);
            assert_eq!(in_place, copied);
            assert!(copied.iter().any(|score| *score != 0.0));
        }
    }

    /// A row of class 0 that the model takes for class 1 with logit z costs log(1 + e^z), also where 1 − σ(z) is rounded to 0.
    #[test]
    fn confident_mistakes_cost_their_logit() {
        fn cost<F: Real>(z: f64, label: f64) -> f64 {
            let (x, y) = (array![[F::one()]], array![F::of(label)]);
            let theta = array![[F::of(if label == 0.0 { z } else { -z }), F::zero()]];
            let (mut mean, mut density) = (Array2::zeros((1, 2)), [0.0]);
            let batch = Batch { x: x.view(), y: y.view() };
            model(1, false).predict(theta.view(), batch, mean.view_mut(), &mut density, &mut Scratch::new());
            -density[0].ln()
        }
        for label in [0.0, 1.0] {
            for z in [5.0_f64, 20.0, 40.0, 80.0] {
                let exact = z + (-z).exp().ln_1p();
                // The relative errors of the logistic functions, as absolute ones of the logarithm.
                assert!((cost::<f32>(z, label) - exact).abs() < 1e-6, "{z} {label}: {}", cost::<f32>(z, label));
                assert!((cost::<f64>(z, label) - exact).abs() < 1e-13, "{z} {label}: {}", cost::<f64>(z, label));
            }
        }
        // The control: the difference from 1 has lost these.
        assert!(1.0 - 1.0 / (1.0 + (-20.0_f32).exp()) == 0.0 && 1.0 - 1.0 / (1.0 + (-40.0_f64).exp()) == 0.0);
    }

    /// Swapping the two labels, and the sign of the weights with them, swaps the columns to the bit.
    #[test]
    fn predictions_do_not_prefer_a_class() {
        for (n, rows, intercept) in [(3, 40, false), (19, 131, true)] {
            let settings = LogisticSettings { intercept, predictive_bandwidth: 0.3, ..LogisticSettings::default() };
            let model = settings.build(6, Output::Classes(2)).unwrap();
            let x = check::normals(&mut stream(21), rows, 6);
            let y = labels(rows, 22);
            let theta = check::normals(&mut stream(23), n, model.predictor.dim()) * 5.0;
            let (mean, density) = check::predict(&model, &theta, Batch { x: x.view(), y: y.view() }, 2);
            let swapped = y.mapv(|y| 1.0 - y);
            let (mirrored, same) = check::predict(&model, &-&theta, Batch { x: x.view(), y: swapped.view() }, 2);
            assert_eq!(mean.column(0), mirrored.column(1));
            assert_eq!(mean.column(1), mirrored.column(0));
            assert_eq!(density, same);
            assert!(mean.rows().into_iter().all(|row| (row.sum() - 1.0).abs() < 1e-14));
        }
    }

    /// The closed form σ(z/√(1 + πλ²‖x‖²/8)) is an approximation: it must lie near the exact average over a particle's kernel.
    #[test]
    fn kernel_averaged_prediction_is_near_quadrature() {
        let settings = LogisticSettings { predictive_bandwidth: 0.55, ..LogisticSettings::default() };
        let model = settings.build(1, Output::Classes(2)).unwrap();
        let (x, y) = (array![[2.0]], array![1.0]);
        let (mean, _) = check::predict(&model, &array![[0.8, 0.0]], Batch { x: x.view(), y: y.view() }, 2);
        let step = 1e-3;
        let exact: f64 = (-8000..=8000)
            .map(|i| {
                let t = f64::from(i) * step;
                (-0.5 * t * t).exp() / (2.0 * std::f64::consts::PI).sqrt() / (1.0 + (-2.0 * (0.8 + 0.55 * t)).exp()) * step
            })
            .sum();
        assert!((mean[[0, 1]] - exact).abs() < 0.01, "{} {exact}", mean[[0, 1]]);
        let plain = 1.0 / (1.0 + (-1.6_f64).exp());
        assert!((plain - exact).abs() > 0.02, "the plain average must be told apart");
    }

    /// With the weights integrated out, v = log ξ has the density of the logarithm of a Gamma variable.
    #[test]
    fn marginal_of_the_log_precision_is_log_gamma() {
        let model = model(1, false);
        let log_marginal = |v: f64| {
            let (step, range) = (0.01 * (-0.5 * v).exp(), 1000);
            let theta =
                Array2::from_shape_fn((2 * range + 1, 2), |(i, j)| if j == 0 { (i as f64 - range as f64) * step } else { v });
            let mut out = vec![0.0; theta.nrows()];
            Model::<f64>::log_prior(&model, theta.view(), &mut out);
            out.iter().map(|log| log.exp() * step).sum::<f64>().ln()
        };
        let log_gamma = |v: f64| 1.7 * v - 2.5 * v.exp();
        for v in [-3.0, -1.0, 0.0, 1.0] {
            let (found, expected) = (log_marginal(v) - log_marginal(-0.5), log_gamma(v) - log_gamma(-0.5));
            assert!((found - expected).abs() < 1e-9, "{found} {expected}");
            // The score of v, averaged over w given v, is that of the marginal.
            let mut score = Array2::zeros((1, 2));
            let theta = array![[(-0.5 * v).exp(), v]];
            Model::<f64>::prior_score(&model, theta.view(), score.view_mut());
            let step = 1e-5;
            let slope = (log_gamma(v + step) - log_gamma(v - step)) / (2.0 * step);
            assert!((score[[0, 1]] - slope).abs() < 1e-8, "{} {slope}", score[[0, 1]]);
        }
    }

    /// E ξ = a/b and E w²ξ = 1 for draws from the prior, within 4.5 standard errors.
    #[test]
    fn initial_draws_follow_the_prior() {
        let model = model(1, false);
        let draws = 40_000;
        let mut stream = stream(11);
        let (mut precision, mut square) = (0.0, 0.0);
        for _ in 0..draws {
            let mut theta = Array1::<f64>::zeros(2);
            model.draw_initial(&mut stream, theta.view_mut());
            precision += theta[1].exp() / f64::from(draws);
            square += theta[0].powi(2) * theta[1].exp() / f64::from(draws);
        }
        let root = f64::from(draws).sqrt();
        assert!((precision - 1.7 / 2.5).abs() < 4.5 * (1.7_f64.sqrt() / 2.5) / root);
        assert!((square - 1.0).abs() < 4.5 * 2.0_f64.sqrt() / root);
    }

    /// With a fixed precision the score is −ξ w, and everything else as with a parameter for it.
    #[test]
    fn a_fixed_precision_is_no_parameter() {
        let settings = LogisticSettings { prior_precision: Some(2.5), intercept: true, ..LogisticSettings::default() };
        let model = settings.build(3, Output::Classes(2)).unwrap();
        assert_eq!((Model::<f64>::dim(&model), Model::<f64>::parts(&model).len()), (4, 1 + 1));
        let (x, y) = (check::normals(&mut stream(41), 30, 3), labels(30, 42));
        let batch = Batch { x: x.view(), y: y.view() };
        let theta = check::particles(&model, 5, 43);
        let (prior, loss) = check::gradient_errors(&model, &theta, batch, 3.0);
        assert!(prior < 1e-7 && loss < 1e-7, "{prior} {loss}");
        let mut score = Array2::zeros(theta.dim());
        model.prior_score(theta.view(), score.view_mut());
        assert_eq!(score, -2.5 * &theta);
        // The density of the prior is known up to a constant only.
        let mut out = [0.0; 2];
        model.log_prior(array![[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 2.0, 0.0]].view(), &mut out);
        assert!((out[0] - out[1] - 3.75).abs() < 1e-12, "{out:?}");
        let mut stream = stream(44);
        let squares = (0..10_000).map(|_| {
            let mut theta = Array1::<f64>::zeros(4);
            model.draw_initial(&mut stream, theta.view_mut());
            theta.mapv(|w| w * w).sum()
        });
        // E ‖w‖² = 4/2.5, with standard deviation √8/2.5 of a draw.
        let mean = squares.sum::<f64>() / 1e4;
        assert!((mean - 1.6).abs() < 4.5 * 8_f64.sqrt() / 2.5 / 100.0, "{mean}");
        let bad = LogisticSettings { prior_precision: Some(0.0), ..settings };
        assert!(matches!(bad.build(3, Output::Classes(2)), Err(ModelError::NotPositive { setting: "prior_precision", .. })));
    }

    #[test]
    fn extreme_log_precisions_stay_finite() {
        let model = model(2, false);
        let theta = array![[1.0, 1.0, 1e4], [1.0, 1.0, -1e4]];
        let mut score = Array2::zeros((2, 3));
        Model::<f64>::prior_score(&model, theta.view(), score.view_mut());
        assert!(score.iter().all(|g| g.is_finite()));
    }

    #[test]
    fn bad_settings_are_refused() {
        let good = LogisticSettings::default();
        assert!(good.build(3, Output::Classes(2)).is_ok());
        assert!(matches!(good.build(0, Output::Classes(2)), Err(ModelError::NoFeatures)));
        assert!(matches!(good.build(3, Output::Classes(3)), Err(ModelError::Classes { classes: 3, .. })));
        assert!(matches!(good.build(3, Output::Number), Err(ModelError::Target { .. })));
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let settings = LogisticSettings { gamma_rate: bad, ..good.clone() };
            assert!(matches!(settings.build(3, Output::Classes(2)), Err(ModelError::NotPositive { setting: "gamma_rate", .. })));
        }
        assert_eq!(toml::from_str::<LogisticSettings>("gamma_rate = 1.0").unwrap().gamma_rate, 1.0);
        assert!(toml::from_str::<LogisticSettings>("gama_rate = 1.0").is_err());
    }
}
