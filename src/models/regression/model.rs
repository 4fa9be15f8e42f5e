//! A regression: a linear predictor with an offset and effects of groups, the distribution of targets given it, weights of rows, and priors.

use super::effects::GroupEffects;
use super::family::Family;
use super::linear_predictor::{BLAS_FROM, BLAS_ROWS, Block, LinearPredictor};
use super::prior::WeightPrior;
use crate::models::batch::Rows;
use crate::models::layout::{flat, flat_mut};
use crate::models::{Batch, CurvatureSupport, Model, Output, Part, Scratch};
use crate::number::Real;
use crate::random::Stream;
use ndarray::linalg::general_mat_mul;
use ndarray::{Array2, ArrayView1, ArrayView2, ArrayViewMut1, ArrayViewMut2, s};
use std::ops::Range;

/// y ~ D(η, ψ) with η = wᵀx + b + offset + the deviations of the row's group.
///
/// θ has the weights w, the intercept b, the log-precision of the weights if it is sampled, ψ, and the parameters of the groups. The columns
/// of x are the features, then the offset, the weight and the group if the data have them. A row of weight w counts w times in the posterior,
/// and once in predictions.
#[derive(Clone, Debug)]
pub struct Regression<D> {
    pub(super) predictor: LinearPredictor,
    pub(super) prior: WeightPrior,
    /// The column of x that holds the offset.
    pub(super) offset: Option<usize>,
    /// The column of x that holds the weight of the row.
    pub(super) weight: Option<usize>,
    pub(super) effects: Option<GroupEffects>,
    pub(super) family: D,
    /// The names of the features; empty if they have none.
    pub(super) names: Vec<String>,
    pub(super) places: Places,
}

/// Where the parts of θ are.
#[derive(Clone, Debug)]
pub(super) struct Places {
    weights: Range<usize>,
    intercept: Range<usize>,
    log_precision: Range<usize>,
    psi: Range<usize>,
    effects: Range<usize>,
}

impl Places {
    /// The places of the parts whose lengths are given, in their order.
    pub(super) fn new([weights, intercept, log_precision, psi, effects]: [usize; 5]) -> Self {
        let mut end = 0;
        let mut next = |length: usize| {
            end += length;
            end - length..end
        };
        let (weights, intercept, log_precision) = (next(weights), next(intercept), next(log_precision));
        Self { weights, intercept, log_precision, psi: next(psi), effects: next(effects) }
    }
}

impl<D: Family> Regression<D> {
    /// The distribution of targets.
    pub fn family(&self) -> &D {
        &self.family
    }

    /// The precisions of the weights and the intercept, if the posterior given a normal likelihood is normal.
    pub fn normal_precisions(&self) -> Option<Vec<f64>> {
        let is_plain = self.offset.is_none() && self.weight.is_none() && self.effects.is_none();
        self.prior.normal_precisions(self.predictor.features).filter(|_| is_plain)
    }

    /// ψ of a particle.
    fn psi<F: Real>(&self, theta: &[F]) -> Vec<f64> {
        theta[self.places.psi.clone()].iter().map(|value| value.f64()).collect()
    }

    /// What the family needs of each particle.
    fn at<F: Real>(&self, theta: ArrayView2<F>) -> Vec<D::At> {
        flat(theta).chunks_exact(self.predictor.dim()).map(|theta| self.family.at(&self.psi(theta))).collect()
    }

    /// The deviations of all groups for all particles; empty without groups.
    fn deviations<F: Real>(&self, theta: ArrayView2<F>) -> Vec<F> {
        let mut deviations = Vec::new();
        if let Some(effects) = &self.effects {
            let own = self.places.effects.clone();
            flat(theta)
                .chunks_exact(self.predictor.dim())
                .for_each(|theta| effects.append_deviations(&theta[own.clone()], &mut deviations));
        }
        deviations
    }

    /// Adds offsets and deviations to the predictors of a block.
    fn complete<F: Real>(&self, block: &mut Block<F>, deviations: &[F]) {
        let (x, columns) = (block.x, self.predictor.columns);
        if let Some(offset) = self.offset {
            block.for_each(|_, row, value| *value += x[row * columns + offset]);
        }
        if let Some(effects) = &self.effects {
            effects.add_to_predictors(block, columns, deviations);
        }
    }

    /// Calls `visit` with the complete predictors of each block.
    fn predictors<F: Real>(
        &self,
        theta: ArrayView2<F>,
        batch: Batch<F>,
        scratch: &mut Scratch<F>,
        mut visit: impl FnMut(&mut Block<F>),
    ) {
        let deviations = self.deviations(theta);
        self.predictor.predict(theta, batch, scratch, |block| {
            self.complete(block, &deviations);
            visit(block);
        });
    }

    fn add_score_of<F: Real>(
        &self,
        theta: ArrayView2<F>,
        rows: Rows<F>,
        weight: F,
        mut score: ArrayViewMut2<F>,
        scratch: &mut Scratch<F>,
    ) {
        let Rows { batch, selected } = rows;
        // Many particles are multiplied by BLAS, which needs selected rows as a matrix of their own.
        if let (Some(rows), BLAS_FROM..) = (selected, theta.nrows()) {
            return scratch.gather(batch, rows, |batch, scratch| {
                self.add_score_of(theta, Rows { batch, selected: None }, weight, score, scratch);
            });
        }
        let (at, deviations) = (self.at(theta), self.deviations(theta));
        let Places { psi, effects: own, .. } = &self.places;
        let mut by_psi = vec![0.0; theta.nrows() * psi.len()];
        let mut by_deviations = vec![F::zero(); deviations.len()];
        let columns = self.predictor.columns;
        self.predictor.add_score(theta, rows, weight, score.view_mut(), scratch, |block| {
            self.complete(block, &deviations);
            self.scores(block, batch.y, &at, &mut by_psi);
            if let Some(effects) = &self.effects {
                effects.add_by_deviations(block, columns, &mut by_deviations);
            }
        });
        let dim = self.predictor.dim();
        let particles = flat(theta).chunks_exact(dim).zip(flat_mut(score).chunks_exact_mut(dim)).enumerate();
        for (n, (theta, score)) in particles {
            for (score, by_psi) in score[psi.clone()].iter_mut().zip(&by_psi[n * psi.len()..]) {
                *score += weight * F::of(*by_psi);
            }
            if let Some(effects) = &self.effects {
                let count = deviations.len() / at.len();
                effects.add_score(&theta[own.clone()], &by_deviations[n * count..][..count], weight, &mut score[own.clone()]);
            }
        }
    }

    /// The information about (η, ψ) in each row, summed over particles: rows × (1 + length of ψ)².
    fn information<F: Real>(&self, theta: ArrayView2<F>, batch: Batch<F>, scratch: &mut Scratch<F>) -> Vec<f64> {
        let (at, size) = (self.at(theta), (1 + self.places.psi.len()).pow(2));
        let mut information = vec![0.0; batch.x.nrows() * size];
        self.predictors(theta, batch, scratch, |block| {
            block.for_each(|particle, row, eta| {
                let own = &mut information[row * size..][..size];
                let weight = self.weight.map_or(1.0, |column| batch.x[[row, column]].f64());
                self.family.add_information(&at[particle], eta.f64(), batch.y[row].f64(), weight, own);
            });
        });
        information
    }

    /// Replaces predictors by ∂ log p/∂η, and adds ∂ log p/∂ψ to `by_psi`, both times the weights of rows.
    fn scores<F: Real>(&self, block: &mut Block<F>, y: ArrayView1<F>, at: &[D::At], by_psi: &mut [f64]) {
        let Some(weight) = self.weight else { return self.family.scores(block, y, at, by_psi) };
        let (x, columns) = (block.x, self.predictor.columns);
        if by_psi.is_empty() {
            self.family.scores(block, y, at, by_psi);
            return block.for_each(|_, row, score| *score *= x[row * columns + weight]);
        }
        let own = by_psi.len() / at.len();
        let mut of_row = vec![0.0; own];
        block.for_each(|particle, row, value| {
            let weight = x[row * columns + weight].f64();
            of_row.fill(0.0);
            *value = F::of(weight * self.family.score(&at[particle], value.f64(), y[row].f64(), &mut of_row));
            by_psi[particle * own..].iter_mut().zip(&of_row).for_each(|(sum, score)| *sum += weight * score);
        });
    }

    /// Adds −log p of each row, times its weight, to the particle's number in `out`.
    fn add_losses<F: Real>(&self, block: &mut Block<F>, y: ArrayView1<F>, at: &[D::At], out: &mut [f64]) {
        let Some(weight) = self.weight else { return self.family.add_losses(block, y, at, out) };
        let (x, columns) = (block.x, self.predictor.columns);
        block.for_each(|particle, row, value| {
            let loss = self.family.loss(&at[particle], value.f64(), y[row].f64());
            out[particle] += x[row * columns + weight].f64() * loss;
        });
    }
}

impl<F: Real, D: Family> Model<F> for Regression<D> {
    fn dim(&self) -> usize {
        self.predictor.dim()
    }

    fn parts(&self) -> Vec<Part> {
        let log_precision = self.prior.has_log_precision().then(|| Part::new("log_precision", &[]));
        let effects = self.effects.iter().flat_map(|effects| effects.parts(&self.names));
        self.predictor.parts(&self.names).into_iter().chain(log_precision).chain(self.family.parts()).chain(effects).collect()
    }

    fn output(&self) -> Output {
        self.family.output()
    }

    fn log_scales(&self) -> Vec<(usize, Vec<usize>)> {
        let first = self.places.effects.start;
        self.effects.as_ref().map(|effects| effects.log_scales(first)).unwrap_or_default()
    }

    fn check(&self, batch: Batch<F>) -> Result<(), String> {
        batch.y.iter().try_for_each(|y| self.family.check(y.f64()))?;
        self.effects.as_ref().map_or(Ok(()), |effects| effects.check(flat(batch.x), self.predictor.columns))
    }

    /// Draws from the priors, without their far tails.
    fn draw_initial(&self, stream: &mut Stream, theta: ArrayViewMut1<F>) {
        let Places { weights, psi, .. } = &self.places;
        let theta = flat_mut(theta);
        let (own, rest) = theta.split_at_mut(psi.start);
        let (own, further) = own.split_at_mut(self.predictor.weights());
        let (own, intercept) = own.split_at_mut(weights.end);
        self.prior.draw_initial(stream, own, intercept, further);
        let (own, groups) = rest.split_at_mut(psi.len());
        let mut drawn = vec![0.0; psi.len()];
        self.family.draw_initial(stream, &mut drawn);
        own.iter_mut().zip(drawn).for_each(|(own, drawn)| *own = F::of(drawn));
        if let Some(effects) = &self.effects {
            effects.draw_initial(stream, groups);
        }
    }

    fn log_prior(&self, theta: ArrayView2<F>, out: &mut [f64]) {
        let Places { weights, intercept, log_precision, effects: groups, .. } = &self.places;
        for (theta, out) in flat(theta).chunks_exact(self.predictor.dim()).zip(out) {
            let [weights, intercept, further] =
                [weights, intercept, log_precision].map(|place: &Range<usize>| &theta[Range::clone(place)]);
            *out = self.prior.log_density(weights, intercept, further) + self.family.log_prior(&self.psi(theta));
            if let Some(effects) = &self.effects {
                *out += effects.log_prior(&theta[groups.clone()]);
            }
        }
    }

    fn prior_score(&self, theta: ArrayView2<F>, score: ArrayViewMut2<F>) {
        let Places { weights, intercept, log_precision, psi, effects: groups } = &self.places;
        let dim = self.predictor.dim();
        let mut of_psi = vec![0.0; psi.len()];
        for (theta, score) in flat(theta).chunks_exact(dim).zip(flat_mut(score).chunks_exact_mut(dim)) {
            let [weights, intercept, further] =
                [weights, intercept, log_precision].map(|place: &Range<usize>| &theta[Range::clone(place)]);
            self.prior.score(weights, intercept, further, &mut score[..psi.start]);
            self.family.prior_score(&self.psi(theta), &mut of_psi);
            score[psi.clone()].iter_mut().zip(&of_psi).for_each(|(score, &value)| *score = F::of(value));
            if let Some(effects) = &self.effects {
                effects.prior_score(&theta[groups.clone()], &mut score[groups.clone()]);
            }
        }
    }

    fn loss(&self, theta: ArrayView2<F>, batch: Batch<F>, out: &mut [f64], scratch: &mut Scratch<F>) {
        out.fill(0.0);
        let at = self.at(theta);
        self.predictors(theta, batch, scratch, |block| self.add_losses(block, batch.y, &at, out));
    }

    fn add_score(&self, theta: ArrayView2<F>, batch: Batch<F>, weight: F, score: ArrayViewMut2<F>, scratch: &mut Scratch<F>) {
        self.add_score_of(theta, Rows { batch, selected: None }, weight, score, scratch);
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
        self.add_score_of(theta, Rows { batch, selected: Some(rows) }, weight, score, scratch);
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
        let Places { psi, effects: groups, .. } = &self.places;
        let (features, weights) = (self.predictor.features, self.predictor.weights());
        let (order, x) = (1 + psi.len(), flat(batch.x));
        let mut derivatives = vec![F::zero(); groups.len()];
        for (theta, curvature) in theta.rows().into_iter().zip(curvature.rows_mut()) {
            let (curvature, theta) = (flat_mut(curvature), theta.insert_axis(ndarray::Axis(0)));
            let information = self.information(theta, batch, scratch);
            let rows = information.chunks_exact(order * order).zip(x.chunks_exact(self.predictor.columns));
            for (information, x) in rows {
                let by_predictor = weight * F::of(information[0]);
                curvature.iter_mut().zip(&x[..features]).for_each(|(curvature, &x)| *curvature += by_predictor * x * x);
                curvature[features..weights].iter_mut().for_each(|curvature| *curvature += by_predictor);
                for (curvature, own) in curvature[psi.clone()].iter_mut().zip(information.iter().step_by(order + 1).skip(1)) {
                    *curvature += weight * F::of(*own);
                }
                if let Some(effects) = &self.effects {
                    let own = &flat(theta)[groups.clone()];
                    for place in effects.write_derivatives(own, x, &mut derivatives) {
                        for (curvature, derivative) in
                            curvature[groups.clone()][place.clone()].iter_mut().zip(&derivatives[place])
                        {
                            *curvature += by_predictor * *derivative * *derivative;
                        }
                    }
                }
            }
        }
    }

    fn add_full_curvature(
        &self,
        theta: ArrayView2<F>,
        batch: Batch<F>,
        weight: F,
        mut curvature: ArrayViewMut2<F>,
        scratch: &mut Scratch<F>,
    ) {
        // The derivatives of η are the same for all particles, unless there are groups.
        let together = if self.effects.is_some() { 1 } else { theta.nrows().max(1) };
        for theta in theta.axis_chunks_iter(ndarray::Axis(0), together) {
            let information = self.information(theta, batch, scratch);
            self.add_squares(theta, batch, weight, &information, &mut curvature);
        }
    }

    fn draw_targets(
        &self,
        theta: ArrayView2<F>,
        row: Batch<F>,
        stream: &mut Stream,
        out: &mut [f64],
        scratch: &mut Scratch<F>,
    ) -> bool {
        let (at, x) = (self.at(theta), flat(row.x));
        self.predictors(theta, row, scratch, |block| {
            block.for_each(|particle, _, eta| {
                let own = |effects: &GroupEffects| {
                    let theta = flat(theta.slice(s![particle..=particle, ..]));
                    effects.draw_deviation(&theta[self.places.effects.clone()], x, stream)
                };
                let deviation = self.effects.as_ref().map_or(0.0, own);
                out[particle] = self.family.draw(&at[particle], eta.f64() + deviation, stream);
            });
        });
        true
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
        let (weight, at) = (1.0 / theta.nrows() as f64, self.at(theta));
        self.predictors(theta, batch, scratch, |block| {
            self.family.smooth(block, self.predictor);
            self.family.add_predictions(block, batch.y, &at, weight, &mut mean, density);
        });
    }
}

impl<D: Family> Regression<D> {
    /// Adds `weight` · Σ_i J_iᵀ I_i J_i, where I_i is the information about (η, ψ) in a row and J_i the derivative of (η, ψ) by θ.
    fn add_squares<F: Real>(
        &self,
        theta: ArrayView2<F>,
        batch: Batch<F>,
        weight: F,
        information: &[f64],
        curvature: &mut ArrayViewMut2<F>,
    ) {
        let Places { psi, effects: groups, .. } = &self.places;
        let (dim, features, weights) = (self.predictor.dim(), self.predictor.features, self.predictor.weights());
        let (order, x) = (1 + psi.len(), flat(batch.x));
        let rows = batch.x.nrows();
        let mut derivatives = Array2::<F>::zeros((BLAS_ROWS.min(rows), dim));
        let mut scaled = derivatives.clone();
        for first in (0..rows).step_by(BLAS_ROWS) {
            let block = first..rows.min(first + BLAS_ROWS);
            let mut derivatives = derivatives.slice_mut(s![..block.len(), ..]);
            let mut scaled = scaled.slice_mut(s![..block.len(), ..]);
            derivatives.fill(F::zero());
            for (row, derivatives) in block.clone().zip(derivatives.rows_mut()) {
                let (derivatives, x) = (flat_mut(derivatives), &x[row * self.predictor.columns..][..self.predictor.columns]);
                derivatives[..features].copy_from_slice(&x[..features]);
                derivatives[features..weights].fill(F::one());
                if let Some(effects) = &self.effects {
                    effects.write_derivatives(&flat(theta)[groups.clone()], x, &mut derivatives[groups.clone()]);
                }
            }
            // (η, η) by a product of matrices, and the columns of ψ, of which there are few, one by one.
            scaled.assign(&derivatives);
            for (row, mut scaled) in block.clone().zip(scaled.rows_mut()) {
                let factor = weight * F::of(information[row * order * order]);
                scaled.mapv_inplace(|value| factor * value);
            }
            general_mat_mul(F::one(), &scaled.t(), &derivatives, F::one(), curvature);
            for (row, derivatives) in block.zip(derivatives.rows()) {
                let own = &information[row * order * order..][..order * order];
                for (k, place) in (1..).zip(psi.clone()) {
                    let cross = weight * F::of(own[k]);
                    if cross != F::zero() {
                        curvature.column_mut(place).scaled_add(cross, &derivatives);
                        curvature.row_mut(place).scaled_add(cross, &derivatives);
                    }
                    for (l, other) in (1..).zip(psi.clone()) {
                        curvature[[place, other]] += weight * F::of(own[k * order + l]);
                    }
                }
            }
        }
    }
}
