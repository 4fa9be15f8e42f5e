//! The mean of a Gaussian with known variances, whose posterior is exactly known.
//!
//! Rows x ~ N(θ, Σ) with diagonal Σ, θ ~ N(m, I/λ) or a flat prior; d is the number of features. A dataset always has targets: they play
//! no part here.

use super::error::{finite, not_negative, positive};
use super::layout::{flat, flat_mut, particle_mut};
use super::rows::{MOST_BLOCK_ROWS, Rows};
use super::{
    Batch, BuiltModel, CurvatureSupport, DataSchema, Model, ModelError, ModelSettings, Output, Part, Scratch, require_data,
};
use crate::number::Real;
use crate::random::Stream;
use crate::vector::{self, vectorized};
use ndarray::{Array1, ArrayView2, ArrayViewMut1, ArrayViewMut2};

/// A number for all features, or one for each.
#[derive(serde::Deserialize, serde::Serialize, Clone, Debug, PartialEq)]
#[serde(untagged, expecting = "must be a number, or a list with a number for each feature")]
pub enum PerFeature {
    /// The same for all: `1.0`.
    Same(f64),
    /// One for each, in their order: `[1.0, 2.0]`.
    Each(Vec<f64>),
}

impl PerFeature {
    /// One number for each feature, checked by `allowed`; `list` says of a list of another length what it is.
    fn values(
        &self,
        (setting, list): (&'static str, &'static str),
        features: usize,
        allowed: impl Fn(&'static str, f64) -> Result<f64, ModelError>,
    ) -> Result<Vec<f64>, ModelError> {
        match self {
            Self::Same(value) => Ok(vec![allowed(setting, *value)?; features]),
            Self::Each(values) if values.len() == features => values.iter().map(|value| allowed(setting, *value)).collect(),
            Self::Each(values) => Err(ModelError::Size { what: list, found: values.len(), expected: features }),
        }
    }
}

/// What may be set in a configuration.
#[derive(serde::Deserialize, serde::Serialize, Clone, Debug, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct GaussianMeanSettings {
    /// Diagonal of Σ: the variance of each feature around its mean. Default 1.
    pub variance: PerFeature,
    /// Mean m of the prior. Default 0.
    pub prior_mean: PerFeature,
    /// Precision λ of the prior N(m, I/λ); 0, the default, is a flat prior, with initial draws from N(m, I).
    pub prior_precision: f64,
}

impl Default for GaussianMeanSettings {
    fn default() -> Self {
        Self { variance: PerFeature::Same(1.0), prior_mean: PerFeature::Same(0.0), prior_precision: 0.0 }
    }
}

impl GaussianMeanSettings {
    /// The model for data with this many features.
    ///
    /// # Errors
    /// If a setting is out of its range, a list is not as long as there are features, or there are none.
    pub fn build(&self, features: usize) -> Result<GaussianMean, ModelError> {
        if features == 0 {
            return Err(ModelError::NoFeatures);
        }
        let variance = ("variance", "`variance` (a list holds one for each feature)");
        let prior_mean = ("prior_mean", "`prior_mean` (a list holds one for each feature)");
        Ok(GaussianMean {
            variance: self.variance.values(variance, features, positive)?,
            prior_mean: self.prior_mean.values(prior_mean, features, finite)?,
            prior_precision: not_negative("prior_precision", self.prior_precision)?,
        })
    }
}

impl ModelSettings for GaussianMeanSettings {
    const NAME: &'static str = "gaussian_mean";

    const DOCS: &'static [(&'static str, &'static str)] = &[
        ("variance", "variance of the rows around their mean: one for all features, or a list with one for each"),
        ("prior_mean", "mean of the prior: one for all features, or a list with one for each"),
        ("prior_precision", "λ in the prior N(prior_mean, 1/λ); 0: a flat prior, with initial draws from N(prior_mean, 1)"),
    ];

    fn build_model<F: Real>(&self, facts: Option<DataSchema>) -> Result<BuiltModel<F>, String> {
        let model = self.build(require_data(facts)?.features).map_err(|error| error.to_string())?;
        Ok(BuiltModel::for_data(model))
    }
}

/// The mean of a Gaussian; targets of rows play no part.
#[derive(Clone, Debug)]
pub struct GaussianMean {
    variance: Vec<f64>,
    prior_mean: Vec<f64>,
    prior_precision: f64,
}

impl GaussianMean {
    /// d.
    fn features(&self) -> usize {
        self.variance.len()
    }

    /// The exact posterior given these rows (rows × d) at temperature α: means and variances of the coordinates of θ in
    /// p ∝ p0 exp(−Σ ℓ/α), a Gaussian whose coordinates are independent.
    ///
    /// # Errors
    /// If the temperature is not positive, or the prior is flat and there are no rows.
    ///
    /// # Panics
    /// If the rows have another number of features.
    pub fn posterior<F: Real>(&self, x: ArrayView2<F>, temperature: f64) -> Result<(Array1<f64>, Array1<f64>), ModelError> {
        let temperature = positive("temperature", temperature)?;
        assert_eq!(x.ncols(), self.features(), "wrong number of features");
        if x.nrows() == 0 && self.prior_precision == 0.0 {
            return Err(ModelError::NotPositiveDefinite { what: "the precision of the posterior" });
        }
        let (mut mean, mut variance) = (Array1::zeros(x.ncols()), Array1::zeros(x.ncols()));
        for (j, column) in x.columns().into_iter().enumerate() {
            let scale = 1.0 / (self.variance[j] * temperature);
            variance[j] = 1.0 / (self.prior_precision + scale * x.nrows() as f64);
            let sum: f64 = column.iter().map(|x| x.f64()).sum();
            mean[j] = variance[j] * (self.prior_precision * self.prior_mean[j] + scale * sum);
        }
        Ok((mean, variance))
    }

    /// Σ_i (x_i − centre) over the rows, into `sums`; `partial` is memory of the same length. Sums of blocks of rows are added up in
    /// their order, which loses less in single precision than one long sum.
    fn differences<F: Real>(rows: Rows<F>, centre: &[F], sums: &mut [F], partial: &mut [F]) {
        let x = flat(rows.batch.x);
        sums.fill(F::zero());
        rows.blocks(MOST_BLOCK_ROWS, |_, rows| {
            partial.fill(F::zero());
            add_differences(x, rows, centre, partial);
            sums.iter_mut().zip(partial.iter()).for_each(|(sum, partial)| *sum += *partial);
        });
    }

    /// All that particles share of the gradient is the sum of the rows, taken from the first particle on.
    fn add_score_over<F: Real>(
        &self,
        rows: Rows<F>,
        theta: ArrayView2<F>,
        weight: F,
        score: ArrayViewMut2<F>,
        scratch: &mut Scratch<F>,
    ) {
        let d = self.features();
        assert_eq!((theta.ncols(), rows.batch.x.ncols()), (d, d), "wrong number of parameters or features");
        let (theta, count) = (flat(theta), F::of(rows.count() as f64));
        let Some(centre) = theta.get(..d) else { return };
        let mut memory = scratch.take(2 * d);
        let (sums, partial) = memory.split_at_mut(d);
        Self::differences(rows, centre, sums, partial);
        let scales = partial;
        scales.iter_mut().zip(&self.variance).for_each(|(scale, variance)| *scale = F::of(weight.f64() / variance));
        for (theta, score) in theta.chunks_exact(d).zip(flat_mut(score).chunks_exact_mut(d)) {
            for j in 0..d {
                score[j] += scales[j] * (sums[j] + count * (centre[j] - theta[j]));
            }
        }
        scratch.put(memory);
    }

    /// −log of a row's density at its mean.
    fn log_normaliser(&self) -> f64 {
        0.5 * self.variance.iter().map(|variance| (2.0 * std::f64::consts::PI * variance).ln()).sum::<f64>()
    }
}

impl<F: Real> Model<F> for GaussianMean {
    fn dim(&self) -> usize {
        self.features()
    }

    fn parts(&self) -> Vec<Part> {
        vec![Part::new("mean", &[self.features()])]
    }

    fn output(&self) -> Output {
        Output::Nothing
    }

    /// A draw from the prior, or from N(prior mean, I) where that is flat.
    fn draw_initial(&self, stream: &mut Stream, theta: ArrayViewMut1<F>) {
        let deviation = if self.prior_precision > 0.0 { self.prior_precision.powf(-0.5) } else { 1.0 };
        let theta = particle_mut(theta);
        stream.normals(theta);
        for (theta, mean) in theta.iter_mut().zip(&self.prior_mean) {
            *theta = F::of(mean + deviation * theta.f64());
        }
    }

    fn log_prior(&self, theta: ArrayView2<F>, out: &mut [f64]) {
        for (theta, out) in flat(theta).chunks_exact(self.features()).zip(out) {
            let square: f64 = theta.iter().zip(&self.prior_mean).map(|(theta, mean)| (theta.f64() - mean).powi(2)).sum();
            *out = -0.5 * self.prior_precision * square;
        }
    }

    fn prior_score(&self, theta: ArrayView2<F>, score: ArrayViewMut2<F>) {
        let d = self.features();
        for (theta, score) in flat(theta).chunks_exact(d).zip(flat_mut(score).chunks_exact_mut(d)) {
            for ((score, theta), mean) in score.iter_mut().zip(theta).zip(&self.prior_mean) {
                *score = F::of(self.prior_precision * (mean - theta.f64()));
            }
        }
    }

    /// By the rows' means and their squared deviations from them, which all particles share.
    fn loss(&self, theta: ArrayView2<F>, batch: Batch<F>, out: &mut [f64], _: &mut Scratch<F>) {
        let (d, count) = (self.features(), batch.x.nrows() as f64);
        assert_eq!((theta.ncols(), batch.x.ncols()), (d, d), "wrong number of parameters or features");
        let rows = || flat(batch.x).chunks_exact(d);
        let mut means = vec![0.0; d];
        for row in rows() {
            means.iter_mut().zip(row).for_each(|(mean, x)| *mean += x.f64());
        }
        means.iter_mut().for_each(|mean| *mean /= count.max(1.0));
        let mut squares = vec![0.0; d];
        for row in rows() {
            for ((square, x), mean) in squares.iter_mut().zip(row).zip(&means) {
                *square += (x.f64() - mean).powi(2);
            }
        }
        let offset = count * self.log_normaliser();
        for (theta, out) in flat(theta).chunks_exact(d).zip(out) {
            let term = |j: usize| (squares[j] + count * (theta[j].f64() - means[j]).powi(2)) / self.variance[j];
            *out = offset + 0.5 * (0..d).map(term).sum::<f64>();
        }
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

    fn add_curvature(&self, _: ArrayView2<F>, batch: Batch<F>, weight: F, mut curvature: ArrayViewMut2<F>, _: &mut Scratch<F>) {
        let rows = batch.x.nrows() as f64;
        for mut curvature in curvature.rows_mut() {
            for (curvature, variance) in curvature.iter_mut().zip(&self.variance) {
                *curvature += weight * F::of(rows / variance);
            }
        }
    }

    fn add_full_curvature(
        &self,
        theta: ArrayView2<F>,
        batch: Batch<F>,
        weight: F,
        mut curvature: ArrayViewMut2<F>,
        _: &mut Scratch<F>,
    ) {
        let rows = (batch.x.nrows() * theta.nrows()) as f64;
        for (curvature, variance) in curvature.diag_mut().into_iter().zip(&self.variance) {
            *curvature += weight * F::of(rows / variance);
        }
    }

    /// There is no mean to predict (`mean` has no columns); `density` is N(x; θ_n, Σ), averaged over the particles.
    fn predict(&self, theta: ArrayView2<F>, batch: Batch<F>, _: ArrayViewMut2<f64>, density: &mut [f64], _: &mut Scratch<F>) {
        let (d, share, log_normaliser) = (self.features(), 1.0 / theta.nrows() as f64, self.log_normaliser());
        let theta = flat(theta);
        for (row, density) in flat(batch.x).chunks_exact(d).zip(density) {
            let distance = |theta: &[F]| -> f64 {
                let terms = row.iter().zip(theta).zip(&self.variance);
                terms.map(|((x, theta), variance)| (x.f64() - theta.f64()).powi(2) / variance).sum()
            };
            *density = theta.chunks_exact(d).map(|theta| share * (-0.5 * distance(theta) - log_normaliser).exp()).sum();
        }
    }
}

vectorized! {
    /// sums += Σ_i (x_i − centre), i over these rows.
    fn add_differences<F: Real>(x: &[F], rows: &[usize], centre: &[F], sums: &mut [F]) {
        // Random rows miss the cache: ask for them this many rows ahead.
        const AHEAD: usize = 8;
        let d = centre.len();
        let sums = &mut sums[..d];
        rows.iter().take(AHEAD).for_each(|row| vector::prefetch(x, row * d, d));
        for (i, &row) in rows.iter().enumerate() {
            if let Some(later) = rows.get(i + AHEAD) {
                vector::prefetch(x, later * d, d);
            }
            for ((sum, &x), &centre) in sums.iter_mut().zip(&x[row * d..][..d]).zip(centre) {
                *sum += x - centre;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use super::*;
    use crate::models::tests as check;
    use crate::models::tests::{normals, stream};
    use ndarray::{Array2, Axis, array};

    fn model(features: usize, prior_precision: f64) -> GaussianMean {
        let variance = PerFeature::Each((0..features).map(|j| 0.5 + j as f64 / 7.0).collect());
        let settings = GaussianMeanSettings { variance, prior_mean: PerFeature::Same(0.3), prior_precision };
        settings.build(features).unwrap()
    }

    #[test]
    fn gradients_agree_with_central_differences() {
        for (case, (features, rows, n)) in
            [(1, 0, 3), (3, 1, 1), (2, 300, 1), (54, 131, 2), (100, 100, 1), (5, 1100, 40)].into_iter().enumerate()
        {
            for precision in [0.0, 1.7] {
                let model = model(features, precision);
                let x = normals(&mut stream(case as u64), rows, features) + 1.0;
                let y = Array1::zeros(rows);
                let batch = Batch { x: x.view(), y: y.view() };
                let theta = check::particles(&model, n, 3);
                for weight in [1.0, 17.5] {
                    let (prior, loss) = check::gradient_errors(&model, &theta, batch, weight);
                    assert!(prior < 1e-7 && loss < 1e-7, "{features} {rows} {n}: {prior} {loss}");
                }
                check::assert_particles_are_independent(&model, &theta, batch);
                check::assert_precisions_agree(&model, &model, &theta, batch, 1e-4);
            }
        }
    }

    #[test]
    fn targets_play_no_part() {
        let model = model(2, 0.0);
        let x = normals(&mut stream(1), 50, 2);
        let theta = array![[0.2, -0.4]];
        let of = |y: Array1<f64>| {
            let batch = Batch { x: x.view(), y: y.view() };
            let (mut score, mut loss) = (Array2::zeros((1, 2)), [0.0]);
            model.add_score(theta.view(), batch, 1.0, score.view_mut(), &mut Scratch::new());
            model.loss(theta.view(), batch, &mut loss, &mut Scratch::new());
            (score, loss, check::predict(&model, &theta, batch, 0))
        };
        assert_eq!(of(Array1::zeros(50)), of(Array1::from_elem(50, 7.0)));
    }

    /// A minibatch's rows give the same bits where they are as copied together, on both sides of a block.
    #[test]
    fn rows_in_place_are_rows_copied() {
        for (n, rows, features) in [(1, 3, 2), (1, 100, 54), (5, 300, 3)] {
            let model = model(features, 0.0);
            let x = normals(&mut stream(31), 400, features);
            let theta = normals(&mut stream(33), n, features);
            let chosen: Vec<usize> = (0..rows).map(|i| i * 7 % 400).collect();
            let (mut in_place, mut copied) = (Array2::zeros(theta.dim()), Array2::zeros(theta.dim()));
            let (mut scratch, y) = (Scratch::new(), Array1::zeros(400));
            let all = Batch { x: x.view(), y: y.view() };
            model.add_minibatch_score(&chosen, theta.view(), all, 0.5, in_place.view_mut(), &mut scratch);
            let (x, y) = (x.select(Axis(0), &chosen), y.select(Axis(0), &chosen));
            model.add_score(theta.view(), Batch { x: x.view(), y: y.view() }, 0.5, copied.view_mut(), &mut scratch);
            assert_eq!(in_place, copied);
            assert!(copied.iter().all(|score| *score != 0.0));
        }
    }

    /// Far from the origin, single precision still tells the rows' mean: differences are added up, not positions.
    #[test]
    fn single_precision_bears_a_distant_mean() {
        let model = GaussianMeanSettings::default().build(1).unwrap();
        let x = (normals(&mut stream(4), 20_000, 1) + 1000.0).mapv(|x| x as f32);
        let y = Array1::zeros(20_000);
        let mut score = Array2::zeros((1, 1));
        let batch = Batch { x: x.view(), y: y.view() };
        model.add_score(array![[1000.0_f32]].view(), batch, 1.0, score.view_mut(), &mut Scratch::new());
        let exact: f64 = x.iter().map(|x| f64::from(*x) - 1000.0).sum();
        // 157 blocks, each of sums below 40 or so: rounding by 2⁻²⁴ of that at each of 20,000 additions, at the very worst.
        assert!((f64::from(score[[0, 0]]) - exact).abs() < 20_000.0 * 40.0 * f64::powi(2.0, -24), "{score} {exact}");
        // The control: a plain sum of positions is worse than that.
        let plain = x.iter().sum::<f32>() - 2e7;
        assert!((f64::from(plain) - exact).abs() > 1.0, "{plain} {exact}");
    }

    #[test]
    fn the_exact_posterior_is_that_of_a_grid() {
        for (precision, temperature) in [(0.0, 1.0), (1.7, 1.0), (1.7, 4.0)] {
            let model = model(1, precision);
            let x = normals(&mut stream(5), 30, 1) - 0.7;
            let y = Array1::zeros(30);
            let (mean, variance) = model.posterior(x.view(), temperature).unwrap();
            let batch = Batch { x: x.view(), y: y.view() };
            let (found_mean, found_variance) = check::moments_on_a_grid(&model, batch, temperature, -8.0..8.0);
            assert!((mean[0] - found_mean).abs() < 1e-10 && (variance[0] - found_variance).abs() < 1e-10);
            // The control: another temperature has another posterior.
            let (_, other) = model.posterior(x.view(), 2.0 * temperature).unwrap();
            assert!((other[0] - found_variance).abs() > 1e-3);
        }
    }

    /// The score at the posterior mean is 0, and its slope −1/variance, in every coordinate.
    #[test]
    fn the_exact_posterior_is_that_of_the_score() {
        let (model, temperature) = (model(7, 1.7), 2.5);
        let x = normals(&mut stream(6), 40, 7);
        let y = Array1::zeros(40);
        let (mean, variance) = model.posterior(x.view(), temperature).unwrap();
        let theta = ndarray::stack![Axis(0), mean, &mean + &variance];
        let mut score = Array2::zeros((2, 7));
        model.prior_score(theta.view(), score.view_mut());
        model.add_score(
            theta.view(),
            Batch { x: x.view(), y: y.view() },
            1.0 / temperature,
            score.view_mut(),
            &mut Scratch::new(),
        );
        assert!(
            score.row(0).iter().all(|score| score.abs() < 1e-12) && score.row(1).iter().all(|score| (score + 1.0).abs() < 1e-12)
        );
    }

    #[test]
    fn an_improper_posterior_is_refused() {
        let none = Array2::<f64>::zeros((0, 2));
        assert!(matches!(model(2, 0.0).posterior(none.view(), 1.0), Err(ModelError::NotPositiveDefinite { .. })));
        let (mean, variance) = model(2, 4.0).posterior(none.view(), 1.0).unwrap();
        assert_eq!((mean, variance), (array![0.3, 0.3], array![0.25, 0.25]));
        for bad in [0.0, -1.0, f64::NAN] {
            assert!(matches!(
                model(2, 4.0).posterior(none.view(), bad),
                Err(ModelError::NotPositive { setting: "temperature", .. })
            ));
        }
    }

    #[test]
    fn the_predictive_density_is_that_of_the_mixture() {
        let settings = GaussianMeanSettings { variance: PerFeature::Each(vec![0.5, 2.0]), ..GaussianMeanSettings::default() };
        let model = settings.build(2).unwrap();
        let (x, y) = (array![[1.0, -1.0]], array![0.0]);
        let (mean, density) = check::predict(&model, &array![[1.0, -1.0], [0.0, 1.0]], Batch { x: x.view(), y: y.view() }, 0);
        // √(det 2πΣ) is 2π, as 0.5 · 2 = 1.
        let exact = 0.5 * (1.0 + (-0.5_f64 * (1.0 / 0.5 + 4.0 / 2.0)).exp()) / (2.0 * std::f64::consts::PI);
        assert!(mean.is_empty() && (density[0] - exact).abs() < 1e-15);
    }

    #[test]
    fn initial_draws_follow_the_prior() {
        for (precision, variance) in [(0.0, 1.0), (4.0, 0.25)] {
            let model = model(50, precision);
            let mut draws = Array2::<f64>::zeros((400, 50));
            let mut stream = stream(12);
            draws.rows_mut().into_iter().for_each(|row| model.draw_initial(&mut stream, row));
            let n = draws.len() as f64;
            let centred = draws - 0.3;
            assert!(centred.mean().unwrap().abs() < 4.5 * (variance / n).sqrt());
            assert!((centred.mapv(|w| w * w).mean().unwrap() - variance).abs() < 4.5 * variance * (2.0 / n).sqrt());
        }
    }

    #[test]
    fn bad_settings_are_refused() {
        let said = |text: &str| toml::from_str::<GaussianMeanSettings>(text).unwrap().build(2).unwrap_err().to_string();
        for bad in ["0.0", "-1.0", "nan", "inf"] {
            let value: f64 = bad.parse().unwrap();
            assert_eq!(said(&format!("variance = {bad}")), format!("`variance` must be a positive number, not {value}"));
            assert_eq!(said(&format!("variance = [1.0, {bad}]")), format!("`variance` must be a positive number, not {value}"));
        }
        let length = "`variance` (a list holds one for each feature) has 3 numbers where 2 are needed";
        assert_eq!(said("variance = [1.0, 2.0, 3.0]"), length);
        assert!(said("prior_mean = []").starts_with("`prior_mean` (a list holds one for each feature) has 0 numbers"));
        assert_eq!(said("prior_mean = [0, nan]"), "`prior_mean` must be a number, not NaN");
        assert_eq!(said("prior_precision = -1"), "`prior_precision` must be zero or a positive number, not -1");
        assert_eq!(said("prior_precision = nan"), "`prior_precision` must be zero or a positive number, not NaN");
        assert_eq!(GaussianMeanSettings::default().build(0).unwrap_err(), ModelError::NoFeatures);
        let error = toml::from_str::<GaussianMeanSettings>("variance = \"wide\"").unwrap_err().to_string();
        assert!(error.contains("must be a number, or a list with a number for each feature"), "{error}");
        let good = toml::from_str::<GaussianMeanSettings>("variance = [1, 2]\nprior_mean = 3").unwrap();
        assert_eq!(good.build(2).unwrap().variance, [1.0, 2.0]);
        assert_eq!(toml::from_str::<GaussianMeanSettings>(&toml::to_string(&good).unwrap()).unwrap(), good);
    }
}
