//! Multinomial logistic regression: classes without an order.
//!
//! p(y = k) ∝ exp(η_k) with a linear predictor η_k = w_kᵀx + b_k of each class but the first one, to which the others are compared: η_0 = 0.

use super::error::ModelError;
use super::network::losses::Likelihood;
use super::regression::prior::{Prior, WeightPrior};
use super::regression::settings::PriorUnits;
use super::{Batch, BuiltModel, CurvatureSupport, DataSchema, Model, ModelSettings, Output, Part, Scratch, require_data};
use crate::layout::{flat, flat_mut, matrix, matrix_mut};
use crate::number::Real;
use crate::random::Stream;
use crate::settings::{Key, KeyError, keys};
use documented::DocumentedFields;
use ndarray::linalg::general_mat_mul;
use ndarray::{Array2, ArrayView2, ArrayViewMut1, ArrayViewMut2, Axis, s};
use rand::RngExt;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Rows whose predictors are computed together.
const BLOCK_ROWS: usize = 512;

/// The settings of the model `multinomial`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields, default)]
pub struct MultinomialSettings {
    /// Whether each class but the first one has an intercept.
    pub intercept: bool,
    /// Standard deviation of the normal prior of each intercept.
    pub intercept_scale: f64,
    /// Prior of each weight: `{ normal = 1.0 }` with a standard deviation, `{ student_t = { degrees_of_freedom = 3.0, scale = 1.0 } }`,
    /// or `{ sampled_precision = { shape = 1.0, rate = 1.0 } }`: the scale of all weights is estimated, with a Gamma prior of its
    /// precision. Weights are then about sqrt(rate / shape) before the data are seen: 1.0 with these values, and with
    /// rate = 100.0 about 10.0, which is nearly flat.
    pub prior: Prior,
    /// Units of the prior's scale: `"standardized"` features, or `"original"` ones as they were imported.
    pub prior_units: PriorUnits,
}

impl Default for MultinomialSettings {
    fn default() -> Self {
        Self { intercept: true, intercept_scale: 10.0, prior: Prior::Normal(1.0), prior_units: PriorUnits::default() }
    }
}

impl ModelSettings for MultinomialSettings {
    const NAME: &'static str = "multinomial";

    fn keys() -> Vec<Key> {
        keys::<Self>()
    }

    fn build_model<F: Real>(&self, data: Option<&DataSchema>) -> Result<BuiltModel<F>, KeyError> {
        Ok(BuiltModel::for_data(self.build(require_data(data)?)?))
    }
}

impl MultinomialSettings {
    /// The model for these data.
    ///
    /// # Errors
    /// If a setting is out of its range, there are no features, or the targets are not at least three classes.
    pub fn build(&self, data: &DataSchema) -> Result<Multinomial, KeyError> {
        let classes = match data.output {
            Output::Classes(classes @ 3..) => classes,
            Output::Classes(classes) => {
                return Err(ModelError::Classes { classes, hint: ": for two, the model is logistic" }.into());
            }
            Output::Number | Output::Count | Output::Nothing => {
                return Err(ModelError::Target { needed: "classes as targets: it is a multinomial regression" }.into());
            }
        };
        data.refuse_extra_columns("a multinomial regression")?;
        if data.features == 0 {
            return Err(ModelError::NoFeatures.into());
        }
        let scale = self.intercept.then_some(self.intercept_scale);
        let units = self.prior_units.of_weights(self.prior, data)?;
        let repeated = units.map(|units| units.repeat(classes - 1));
        Ok(Multinomial {
            features: data.features,
            classes,
            prior: WeightPrior::new(self.prior, scale, repeated)?,
            has_intercepts: self.intercept,
            likelihood: Likelihood::CrossEntropy { classes },
            feature_names: data.names.clone(),
            class_names: data.classes.clone(),
        })
    }
}

/// Multinomial logistic regression. A particle has the weights, class by class, then the intercepts, and the log-precision of the weights
/// if it is sampled.
#[derive(Clone, Debug)]
pub struct Multinomial {
    features: usize,
    classes: usize,
    prior: WeightPrior,
    has_intercepts: bool,
    likelihood: Likelihood,
    feature_names: Vec<String>,
    class_names: Vec<String>,
}

impl Multinomial {
    /// The number of classes with a predictor.
    fn compared(&self) -> usize {
        self.classes - 1
    }

    fn weights(&self) -> usize {
        self.compared() * self.features
    }

    fn intercepts(&self) -> Range<usize> {
        self.weights()..self.weights() + if self.has_intercepts { self.compared() } else { 0 }
    }

    fn dim_of(&self) -> usize {
        self.intercepts().end + usize::from(self.prior.has_log_precision())
    }

    /// Weights, intercepts, and the log-precision if it is sampled.
    fn split<'a, F>(&self, theta: &'a [F]) -> [&'a [F]; 3] {
        let intercepts = self.intercepts();
        [&theta[..intercepts.start], &theta[intercepts.clone()], &theta[intercepts.end..]]
    }

    /// Calls `visit` for each particle and each block of rows with the particle's index, the rows, and the predictors of all classes,
    /// which it may overwrite.
    fn for_each_block<F: Real>(
        &self,
        theta: ArrayView2<F>,
        batch: Batch<F>,
        scratch: &mut Scratch<F>,
        mut visit: impl FnMut(usize, Batch<F>, Range<usize>, &mut [F]),
    ) {
        assert_eq!(theta.ncols(), self.dim_of(), "wrong number of parameters");
        assert_eq!(batch.x.ncols(), self.features, "wrong number of columns");
        let mut memory = scratch.take(BLOCK_ROWS.min(batch.x.nrows()) * self.classes);
        for (particle, theta) in flat(theta).chunks_exact(self.dim_of()).enumerate() {
            let [weights, intercepts, _] = self.split(theta);
            let weights = matrix(weights, self.compared(), self.features);
            let mut first = 0;
            for block in batch.blocks(BLOCK_ROWS) {
                let rows = block.x.nrows();
                let predictors = &mut memory[..rows * self.classes];
                for row in predictors.chunks_exact_mut(self.classes) {
                    row.fill(F::zero());
                    row[1..].iter_mut().zip(intercepts).for_each(|(value, &intercept)| *value = intercept);
                }
                let mut compared = matrix_mut(predictors, rows, self.classes);
                general_mat_mul(F::one(), &block.x, &weights.t(), F::one(), &mut compared.slice_mut(s![.., 1..]));
                visit(particle, block, first..first + rows, predictors);
                first += rows;
            }
        }
        scratch.put(memory);
    }

    /// Adds Σ_i f_ik (x_i, 1) to what belongs to the weights and the intercept of each class k but the first one; f is rows × classes.
    fn add_products<F: Real>(&self, factors: &[F], x: ArrayView2<F>, own: &mut [F]) {
        let factors = matrix(factors, x.nrows(), self.classes);
        let factors = factors.slice(s![.., 1..]);
        let mut weights = matrix_mut(&mut own[..self.weights()], self.compared(), self.features);
        general_mat_mul(F::one(), &factors.t(), &x, F::one(), &mut weights);
        let sums = factors.sum_axis(Axis(0));
        own[self.intercepts()].iter_mut().zip(sums).for_each(|(own, sum)| *own += sum);
    }

    /// Where the parameter of a feature, or of the intercept, is in θ for a class.
    fn place(&self, class: usize, column: usize) -> usize {
        if column < self.features { class * self.features + column } else { self.weights() + class }
    }
}

impl<F: Real> Model<F> for Multinomial {
    fn dim(&self) -> usize {
        self.dim_of()
    }

    fn parts(&self) -> Vec<Part> {
        let classes = self.class_names.get(1..).unwrap_or_default();
        let weights = Part::new("weights", &[self.compared(), self.features]);
        let mut parts = vec![weights.labelled(0, classes).labelled(1, &self.feature_names)];
        if self.has_intercepts {
            parts.push(Part::new("intercept", &[self.compared()]).labelled(0, classes));
        }
        if self.prior.has_log_precision() {
            parts.push(Part::new("log_precision", &[]));
        }
        parts
    }

    fn output(&self) -> Output {
        Output::Classes(self.classes)
    }

    fn draw_initial(&self, stream: &mut Stream, theta: ArrayViewMut1<F>) {
        let intercepts = self.intercepts();
        let (weights, rest) = flat_mut(theta).split_at_mut(intercepts.start);
        let (intercepts, log_precision) = rest.split_at_mut(intercepts.len());
        self.prior.draw_initial(stream, weights, intercepts, log_precision);
    }

    fn log_prior(&self, theta: ArrayView2<F>, out: &mut [f64]) {
        for (theta, out) in flat(theta).chunks_exact(self.dim_of()).zip(out) {
            let [weights, intercepts, log_precision] = self.split(theta);
            *out = self.prior.log_density(weights, intercepts, log_precision);
        }
    }

    fn prior_score(&self, theta: ArrayView2<F>, score: ArrayViewMut2<F>) {
        let dim = self.dim_of();
        for (theta, score) in flat(theta).chunks_exact(dim).zip(flat_mut(score).chunks_exact_mut(dim)) {
            let [weights, intercepts, log_precision] = self.split(theta);
            self.prior.score(weights, intercepts, log_precision, score);
        }
    }

    fn loss(&self, theta: ArrayView2<F>, batch: Batch<F>, out: &mut [f64], scratch: &mut Scratch<F>) {
        out.fill(0.0);
        self.for_each_block(theta, batch, scratch, |particle, block, _, predictors| {
            out[particle] += self.likelihood.loss(&[], predictors, block.y);
        });
    }

    fn add_score(&self, theta: ArrayView2<F>, batch: Batch<F>, weight: F, mut score: ArrayViewMut2<F>, scratch: &mut Scratch<F>) {
        self.for_each_block(theta, batch, scratch, |particle, block, _, predictors| {
            self.likelihood.outputs_to_score(&[], predictors, block.y, weight, &mut []);
            self.add_products(predictors, block.x, flat_mut(score.row_mut(particle)));
        });
    }

    fn curvature_support(&self) -> CurvatureSupport {
        CurvatureSupport::Full
    }

    fn add_curvature(
        &self,
        theta: ArrayView2<F>,
        batch: Batch<F>,
        weight: F,
        mut curvature: ArrayViewMut2<F>,
        scratch: &mut Scratch<F>,
    ) {
        let squares = batch.x.mapv(|x| x * x);
        self.for_each_block(theta, batch, scratch, |particle, block, rows, predictors| {
            self.likelihood.probabilities(predictors);
            self.likelihood.outputs_to_curvature(&[], predictors, block.y, weight, &mut []);
            self.add_products(predictors, squares.slice(s![rows, ..]), flat_mut(curvature.row_mut(particle)));
        });
    }

    fn add_full_curvature(
        &self,
        theta: ArrayView2<F>,
        batch: Batch<F>,
        weight: F,
        mut curvature: ArrayViewMut2<F>,
        scratch: &mut Scratch<F>,
    ) {
        // With a column of ones for the intercepts.
        let columns = self.features + usize::from(self.has_intercepts);
        let mut product = Array2::zeros((columns, columns));
        self.for_each_block(theta, batch, scratch, |_, block, _, predictors| {
            self.likelihood.probabilities(predictors);
            let mut x = Array2::ones((block.x.nrows(), columns));
            x.slice_mut(s![.., ..self.features]).assign(&block.x);
            let mut scaled = x.clone();
            for (k, l) in (0..self.compared()).flat_map(|k| (0..=k).map(move |l| (k, l))) {
                for ((mut scaled, x), p) in scaled.rows_mut().into_iter().zip(x.rows()).zip(predictors.chunks_exact(self.classes))
                {
                    let own = if k == l { F::one() } else { F::zero() };
                    let factor = weight * p[k + 1] * (own - p[l + 1]);
                    scaled.zip_mut_with(&x, |scaled, &x| *scaled = factor * x);
                }
                general_mat_mul(F::one(), &scaled.t(), &x, F::zero(), &mut product);
                for ((i, j), &value) in product.indexed_iter() {
                    curvature[[self.place(k, i), self.place(l, j)]] += value;
                    if k != l {
                        curvature[[self.place(l, j), self.place(k, i)]] += value;
                    }
                }
            }
        });
    }

    fn draw_targets(
        &self,
        theta: ArrayView2<F>,
        row: Batch<F>,
        stream: &mut Stream,
        out: &mut [f64],
        scratch: &mut Scratch<F>,
    ) -> bool {
        self.for_each_block(theta, row, scratch, |particle, _, _, predictors| {
            self.likelihood.probabilities(predictors);
            let mut left: f64 = stream.random();
            let class = predictors.iter().position(|p| {
                left -= p.f64();
                left < 0.0
            });
            // Rounding errors may leave a little for the last class; NaN has no class.
            out[particle] = if left.is_nan() { f64::NAN } else { class.unwrap_or(self.compared()) as f64 };
        });
        true
    }

    fn predict(
        &self,
        theta: ArrayView2<F>,
        batch: Batch<F>,
        mean: ArrayViewMut2<f64>,
        density: &mut [f64],
        scratch: &mut Scratch<F>,
    ) {
        let (mean, weight) = (flat_mut(mean), 1.0 / theta.nrows() as f64);
        mean.fill(0.0);
        density.fill(0.0);
        self.for_each_block(theta, batch, scratch, |_, block, rows, predictors| {
            let own = &mut mean[rows.start * self.classes..rows.end * self.classes];
            self.likelihood.add_prediction(&[], predictors, block.y, weight, own, &mut density[rows]);
        });
    }
}
