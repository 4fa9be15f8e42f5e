//! Bayesian linear regression with noise of a known variance, whose posterior is exactly known.
//!
//! y ~ N(xᵀw + b, σ²), w and b ~ N(0, 1/λ). Models see targets of regressions standardised, so that σ² is a share of their variance.

use super::error::positive;
use super::layout::{flat, flat_mut, particle_mut};
use super::linear_predictor::{LinearPredictor, blas_blocks};
use super::rows::Rows;
use super::{
    Batch, BuiltModel, CurvatureSupport, DataSchema, Model, ModelError, ModelSettings, Output, Part, Scratch, require_data,
};
use crate::number::Real;
use crate::random::Stream;
use ndarray::linalg::{general_mat_mul, general_mat_vec_mul};
use ndarray::{Array1, Array2, ArrayView2, ArrayViewMut1, ArrayViewMut2, s};
use ndarray_linalg::{FactorizeC, InverseC, SolveC, UPLO};

/// What may be set in a configuration.
#[derive(serde::Deserialize, serde::Serialize, Clone, Debug, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct LinearSettings {
    /// Whether a column of ones is added to the features. Default true.
    pub intercept: bool,
    /// Variance σ² of the noise, where the standardised targets have variance 1. Default 1.
    pub noise_variance: f64,
    /// Precision λ of the prior N(0, 1/λ) of each weight and of the intercept. Default 1.
    pub prior_precision: f64,
}

impl Default for LinearSettings {
    fn default() -> Self {
        Self { intercept: true, noise_variance: 1.0, prior_precision: 1.0 }
    }
}

impl LinearSettings {
    /// The model for data with this many features.
    ///
    /// # Errors
    /// If a setting is out of its range, there are no features, or the targets are not numbers.
    pub fn build(&self, features: usize, output: Output) -> Result<Linear, ModelError> {
        if output != Output::Number {
            return Err(ModelError::Target {
                needed: "numbers as targets: this is linear regression; import with --task regression",
            });
        }
        if features == 0 {
            return Err(ModelError::NoFeatures);
        }
        Ok(Linear {
            predictor: LinearPredictor { features, intercept: self.intercept, others: 0 },
            noise_variance: positive("noise_variance", self.noise_variance)?,
            prior_precision: positive("prior_precision", self.prior_precision)?,
        })
    }
}

impl ModelSettings for LinearSettings {
    const NAME: &'static str = "linear";

    const DOCS: &'static [(&'static str, &'static str)] = &[
        ("intercept", "whether a column of ones is added to the features"),
        ("noise_variance", "variance of the noise, where the targets have variance 1"),
        ("prior_precision", "λ in the prior N(0, 1/λ) of each weight and of the intercept"),
    ];

    fn build_model<F: Real>(&self, facts: Option<DataSchema>) -> Result<BuiltModel<F>, String> {
        let facts = require_data(facts)?;
        let model = self.build(facts.features, facts.output).map_err(|error| error.to_string())?;
        Ok(BuiltModel::for_data(model))
    }
}

/// Bayesian linear regression; targets are numbers.
#[derive(Clone, Debug)]
pub struct Linear {
    predictor: LinearPredictor,
    noise_variance: f64,
    prior_precision: f64,
}

impl Linear {
    /// The exact posterior given these rows at temperature α: mean and covariance of θ in p ∝ p0 exp(−Σ ℓ/α), a Gaussian.
    ///
    /// # Errors
    /// If the temperature is not positive, or the rows' numbers are too large to be squared.
    pub fn posterior<F: Real>(&self, batch: Batch<F>, temperature: f64) -> Result<(Array1<f64>, Array2<f64>), ModelError> {
        let scale = 1.0 / (self.noise_variance * positive("temperature", temperature)?);
        let (d, features) = (self.predictor.dim(), self.predictor.features);
        let mut precision = Array2::eye(d) * self.prior_precision;
        let mut moment = Array1::zeros(d);
        for (x, y) in blas_blocks(batch) {
            // Where there is an intercept, its column stays 1.
            let mut rows = Array2::<f64>::ones((x.nrows(), d));
            rows.slice_mut(s![.., ..features]).zip_mut_with(&x, |to, from| *to = from.f64());
            general_mat_mul(scale, &rows.t(), &rows, 1.0, &mut precision);
            general_mat_vec_mul(scale, &rows.t(), &y.mapv(|y| y.f64()), 1.0, &mut moment);
        }
        let unfit = || ModelError::NotPositiveDefinite { what: "the precision of the posterior" };
        // The factor of an infinite matrix is infinite too, and no error.
        if !precision.iter().chain(&moment).all(|value| value.is_finite()) {
            return Err(unfit());
        }
        let factor = precision.factorizec(UPLO::Lower).map_err(|_| unfit())?;
        let mean = factor.solvec(&moment).map_err(|_| unfit())?;
        Ok((mean, factor.invc().map_err(|_| unfit())?))
    }

    /// −log of the noise's density at 0.
    fn log_normaliser(&self) -> f64 {
        0.5 * (2.0 * std::f64::consts::PI * self.noise_variance).ln()
    }

    fn add_score_over<F: Real>(
        &self,
        rows: Rows<F>,
        theta: ArrayView2<F>,
        weight: F,
        score: ArrayViewMut2<F>,
        scratch: &mut Scratch<F>,
    ) {
        let weight = F::of(weight.f64() / self.noise_variance);
        self.predictor.add_score(theta, rows, weight, score, scratch, |_| {});
    }
}

impl<F: Real> Model<F> for Linear {
    fn dim(&self) -> usize {
        self.predictor.dim()
    }

    fn parts(&self) -> Vec<Part> {
        self.predictor.parts()
    }

    fn output(&self) -> Output {
        Output::Number
    }

    /// A draw from the prior.
    fn draw_initial(&self, stream: &mut Stream, theta: ArrayViewMut1<F>) {
        let (theta, deviation) = (particle_mut(theta), F::of(self.prior_precision.powf(-0.5)));
        stream.normals(theta);
        theta.iter_mut().for_each(|weight| *weight *= deviation);
    }

    fn log_prior(&self, theta: ArrayView2<F>, out: &mut [f64]) {
        for (theta, out) in flat(theta).chunks_exact(self.predictor.dim()).zip(out) {
            let square: f64 = theta.iter().map(|w| w.f64() * w.f64()).sum();
            *out = -0.5 * self.prior_precision * square;
        }
    }

    fn prior_score(&self, theta: ArrayView2<F>, score: ArrayViewMut2<F>) {
        let precision = F::of(self.prior_precision);
        flat_mut(score).iter_mut().zip(flat(theta)).for_each(|(score, &weight)| *score = -precision * weight);
    }

    fn loss(&self, theta: ArrayView2<F>, batch: Batch<F>, out: &mut [f64], scratch: &mut Scratch<F>) {
        out.fill(0.0);
        self.predictor.predict(theta, batch, scratch, |block| {
            for (means, &row) in block.values.chunks_exact(block.lanes).zip(block.rows) {
                let y = batch.y[row];
                for (out, &mean) in out[block.particles.clone()].iter_mut().zip(means) {
                    *out += (y - mean).f64().powi(2);
                }
            }
        });
        let offset = batch.x.nrows() as f64 * self.log_normaliser();
        out.iter_mut().for_each(|out| *out = 0.5 * *out / self.noise_variance + offset);
    }

    fn add_score(&self, theta: ArrayView2<F>, batch: Batch<F>, weight: F, score: ArrayViewMut2<F>, scratch: &mut Scratch<F>) {
        self.add_score_over(Rows { batch, chosen: None }, theta, weight, score, scratch);
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
        self.add_score_over(Rows { batch, chosen: Some(rows) }, theta, weight, score, scratch);
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
        let precision = F::of(1.0 / self.noise_variance);
        self.predictor.add_curvature(theta, batch, weight, curvature, scratch, |means| means.fill(precision));
    }

    fn add_full_curvature(
        &self,
        theta: ArrayView2<F>,
        batch: Batch<F>,
        weight: F,
        curvature: ArrayViewMut2<F>,
        scratch: &mut Scratch<F>,
    ) {
        let precision = F::of(1.0 / self.noise_variance);
        self.predictor.add_full_curvature(theta, batch, weight, curvature, scratch, |means| means.fill(precision));
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
        density.fill(0.0);
        let (share, log_normaliser) = (1.0 / theta.nrows() as f64, self.log_normaliser());
        self.predictor.predict(theta, batch, scratch, |block| {
            for (i, means) in (block.first..).zip(block.values.chunks_exact(block.lanes)) {
                let y = batch.y[i].f64();
                for &of_particle in &means[..block.particles.len()] {
                    let of_particle = of_particle.f64();
                    mean[[i, 0]] += share * of_particle;
                    density[i] += share * (-0.5 * (y - of_particle).powi(2) / self.noise_variance - log_normaliser).exp();
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use super::*;
    use crate::models::tests as check;
    use crate::models::tests::{normals, stream};
    use ndarray::{array, concatenate};
    use ndarray_linalg::LeastSquaresSvd;

    fn model(features: usize, intercept: bool) -> Linear {
        let settings = LinearSettings { intercept, noise_variance: 0.6, prior_precision: 1.7 };
        settings.build(features, Output::Number).unwrap()
    }

    /// Rows, and targets that follow them.
    fn data(rows: usize, features: usize, seed: u64) -> (Array2<f64>, Array1<f64>) {
        let mut stream = stream(seed);
        let x = normals(&mut stream, rows, features);
        let noise = normals(&mut stream, 1, rows).row(0).to_owned();
        let y = x.sum_axis(ndarray::Axis(1)) * 0.4 + 0.8 + noise;
        (x, y)
    }

    #[test]
    fn gradients_agree_with_central_differences() {
        for (case, (features, rows, n)) in
            [(1, 0, 3), (3, 1, 1), (8, 40, 1), (54, 131, 1), (11, 7, 9), (5, 1100, 40)].into_iter().enumerate()
        {
            for intercept in [false, true] {
                let model = model(features, intercept);
                let (x, y) = data(rows, features, case as u64);
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

    /// The mean solves the least-squares problem of the rows over σ√α with √λ·I below them, by singular values; the covariance inverts
    /// the slope of the score, which is linear in θ.
    #[test]
    fn the_exact_posterior_is_that_of_least_squares_and_of_the_score() {
        for (features, intercept, temperature) in [(3, true, 1.0), (4, false, 2.5), (7, true, 0.3)] {
            let model = model(features, intercept);
            let (x, y) = data(700, features, 5);
            let batch = Batch { x: x.view(), y: y.view() };
            let (mean, covariance) = model.posterior(batch, temperature).unwrap();
            let d = model.predictor.dim();

            let ones = Array2::ones((x.nrows(), 1));
            let design = if intercept { concatenate![ndarray::Axis(1), x, ones] } else { x.clone() };
            let scale = (0.6 * temperature).powf(-0.5);
            let tall = concatenate![ndarray::Axis(0), design * scale, Array2::eye(d) * 1.7_f64.sqrt()];
            let right = concatenate![ndarray::Axis(0), &y * scale, Array1::zeros(d)];
            let solution = tall.least_squares(&right).unwrap().solution;
            assert!((&mean - &solution).iter().all(|difference| difference.abs() < 1e-12), "{mean} {solution}");

            let score = |theta: &Array1<f64>| {
                let theta = theta.view().insert_axis(ndarray::Axis(0));
                let mut score = Array2::zeros((1, d));
                model.prior_score(theta, score.view_mut());
                model.add_score(theta, batch, 1.0 / temperature, score.view_mut(), &mut Scratch::new());
                score.row(0).to_owned()
            };
            assert!(score(&mean).iter().all(|score| score.abs() < 1e-9));
            for (j, column) in covariance.columns().into_iter().enumerate() {
                let unit = score(&mean) - score(&(&mean + &column));
                assert!(unit.iter().enumerate().all(|(i, v)| (v - f64::from(u8::from(i == j))).abs() < 1e-9), "{unit}");
            }
            // The control: another temperature has another posterior.
            let (other, _) = model.posterior(batch, 2.0 * temperature).unwrap();
            assert!((&mean - &other).iter().any(|difference| difference.abs() > 1e-5));
        }
    }

    #[test]
    fn the_exact_posterior_is_that_of_a_grid() {
        let model = model(1, false);
        let (x, y) = data(30, 1, 8);
        let batch = Batch { x: x.view(), y: y.view() };
        let temperature = 1.5;
        let (mean, covariance) = model.posterior(batch, temperature).unwrap();
        let (found_mean, found_variance) = check::moments_on_a_grid(&model, batch, temperature, -8.0..8.0);
        assert!((mean[0] - found_mean).abs() < 1e-10 && (covariance[[0, 0]] - found_variance).abs() < 1e-10);
        let (x32, y32) = (x.mapv(|x| x as f32), y.mapv(|y| y as f32));
        let (mean32, _) = model.posterior(Batch { x: x32.view(), y: y32.view() }, temperature).unwrap();
        assert!((mean32[0] - mean[0]).abs() < 1e-6);
        let huge = array![[1e200]];
        let error = model.posterior(Batch { x: huge.view(), y: array![0.0].view() }, 1.0).unwrap_err();
        assert!(matches!(error, ModelError::NotPositiveDefinite { .. }));
        assert!(matches!(model.posterior(batch, 0.0), Err(ModelError::NotPositive { setting: "temperature", .. })));
    }

    /// More particles than lanes, and a row that the kernels take alone.
    #[test]
    fn predictions_are_those_of_the_mixture() {
        let model = model(2, true);
        let (x, y) = data(9, 2, 9);
        let theta = normals(&mut stream(10), 21, 3);
        let (mean, density) = check::predict(&model, &theta, Batch { x: x.view(), y: y.view() }, 1);
        for i in 0..9 {
            let means = theta.rows().into_iter().map(|w| w[0] * x[[i, 0]] + w[1] * x[[i, 1]] + w[2]);
            let densities = means.clone().map(|m| (-(y[i] - m).powi(2) / 1.2).exp() / (1.2 * std::f64::consts::PI).sqrt());
            assert!((mean[[i, 0]] - means.sum::<f64>() / 21.0).abs() < 1e-14);
            assert!((density[i] - densities.sum::<f64>() / 21.0).abs() < 1e-14);
        }
    }

    #[test]
    fn initial_draws_follow_the_prior() {
        let model = model(60, true);
        let mut draws = Array2::<f64>::zeros((400, 61));
        let mut stream = stream(12);
        draws.rows_mut().into_iter().for_each(|row| model.draw_initial(&mut stream, row));
        let (n, variance) = (draws.len() as f64, 1.0 / 1.7);
        assert!(draws.mean().unwrap().abs() < 4.5 * (variance / n).sqrt());
        assert!((draws.mapv(|w| w * w).mean().unwrap() - variance).abs() < 4.5 * variance * (2.0 / n).sqrt());
    }

    #[test]
    fn bad_settings_are_refused() {
        let good = LinearSettings::default();
        assert!(good.build(3, Output::Number).is_ok());
        assert!(matches!(good.build(0, Output::Number), Err(ModelError::NoFeatures)));
        for output in [Output::Classes(2), Output::Nothing] {
            let said = good.build(3, output).unwrap_err().to_string();
            assert!(said.contains("numbers as targets") && said.contains("--task regression"), "{said}");
        }
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let said = LinearSettings { noise_variance: bad, ..good.clone() }.build(3, Output::Number).unwrap_err().to_string();
            assert_eq!(said, format!("`noise_variance` must be a positive number, not {bad}"));
            let said = LinearSettings { prior_precision: bad, ..good.clone() }.build(3, Output::Number).unwrap_err().to_string();
            assert_eq!(said, format!("`prior_precision` must be a positive number, not {bad}"));
        }
        assert_eq!(toml::from_str::<LinearSettings>("noise_variance = 2").unwrap().noise_variance, 2.0);
        assert!(toml::from_str::<LinearSettings>("noise = 1.0").is_err());
    }
}
