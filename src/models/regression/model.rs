//! A regression: a linear predictor with an offset and effects of groups, the distribution of targets given it, weights of rows, and priors.

use super::block::Block;
use super::effects::{Deviations, GroupEffects};
use super::family::Family;
use super::linear_predictor::{BLAS_FROM, BLAS_ROWS, LinearPredictor};
use super::new_groups;
use super::prior::WeightPrior;
use crate::layout::{flat, flat_mut};
use crate::models::batch::Rows;
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
    pub(super) offset_column: Option<usize>,
    /// The column of x that holds the weight of the row.
    pub(super) weight_column: Option<usize>,
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
        let is_plain = self.offset_column.is_none() && self.weight_column.is_none() && self.effects.is_none();
        self.prior.normal_precisions(self.predictor.features).filter(|_| is_plain)
    }

    /// ψ of a particle.
    fn psi<F: Real>(&self, theta: &[F]) -> Vec<f64> {
        theta[self.places.psi.clone()].iter().map(|value| value.f64()).collect()
    }

    /// What the family needs of each particle.
    fn prepare<F: Real>(&self, theta: ArrayView2<F>) -> Vec<D::Prepared> {
        flat(theta).chunks_exact(self.predictor.dim()).map(|theta| self.family.prepare(&self.psi(theta))).collect()
    }

    /// The deviations of all groups for all particles.
    fn deviations<'a, F: Real>(&self, theta: ArrayView2<'a, F>) -> Option<Deviations<'a, F>> {
        let effects = self.effects.as_ref()?;
        Some(effects.deviations(flat(theta), self.predictor.dim(), self.places.effects.start))
    }

    /// Adds offsets and deviations to the predictors of a block.
    fn complete<F: Real>(&self, block: &mut Block<F>, deviations: Option<&Deviations<F>>) {
        let (x, columns) = (block.x, self.predictor.columns);
        if let Some(column) = self.offset_column {
            block.for_each(|_, row, value| *value += x[row * columns + column]);
        }
        if let (Some(effects), Some(deviations)) = (&self.effects, deviations) {
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
            self.complete(block, deviations.as_ref());
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
        let (prepared, deviations) = (self.prepare(theta), self.deviations(theta));
        let Places { psi, effects: own, .. } = &self.places;
        let mut by_psi = vec![0.0; theta.nrows() * psi.len()];
        let count = self.effects.as_ref().map_or(0, GroupEffects::all_deviations);
        let mut by_deviations = vec![F::zero(); theta.nrows() * count];
        let columns = self.predictor.columns;
        self.predictor.add_score(theta, rows, weight, score.view_mut(), scratch, |block| {
            self.complete(block, deviations.as_ref());
            self.scores(block, batch.y, &prepared, &mut by_psi);
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
                effects.add_score(&theta[own.clone()], &by_deviations[n * count..][..count], weight, &mut score[own.clone()]);
            }
        }
    }

    /// The information about (η, ψ) in each row, summed over particles: rows × (1 + length of ψ)².
    fn information<F: Real>(&self, theta: ArrayView2<F>, batch: Batch<F>, scratch: &mut Scratch<F>) -> Vec<f64> {
        let (prepared, size) = (self.prepare(theta), (1 + self.places.psi.len()).pow(2));
        let mut information = vec![0.0; batch.x.nrows() * size];
        self.predictors(theta, batch, scratch, |block| {
            block.for_each(|particle, row, eta| {
                let own = &mut information[row * size..][..size];
                let weight = self.weight_column.map_or(1.0, |column| batch.x[[row, column]].f64());
                self.family.add_information(&prepared[particle], eta.f64(), batch.y[row].f64(), weight, own);
            });
        });
        information
    }

    /// Replaces predictors by ∂ log p/∂η, and adds ∂ log p/∂ψ to `by_psi`, both times the weights of rows.
    fn scores<F: Real>(&self, block: &mut Block<F>, y: ArrayView1<F>, prepared: &[D::Prepared], by_psi: &mut [f64]) {
        let Some(column) = self.weight_column else { return self.family.scores(block, y, prepared, by_psi) };
        let (x, columns) = (block.x, self.predictor.columns);
        if by_psi.is_empty() {
            self.family.scores(block, y, prepared, by_psi);
            return block.for_each(|_, row, score| *score *= x[row * columns + column]);
        }
        let own = by_psi.len() / prepared.len();
        let mut of_row = vec![0.0; own];
        block.for_each(|particle, row, value| {
            let weight = x[row * columns + column].f64();
            of_row.fill(0.0);
            *value = F::of(weight * self.family.score(&prepared[particle], value.f64(), y[row].f64(), &mut of_row));
            by_psi[particle * own..].iter_mut().zip(&of_row).for_each(|(sum, score)| *sum += weight * score);
        });
    }

    /// Adds −log p of each row, times its weight, to the particle's number in `out`.
    fn add_losses<F: Real>(&self, block: &mut Block<F>, y: ArrayView1<F>, prepared: &[D::Prepared], out: &mut [f64]) {
        let Some(column) = self.weight_column else { return self.family.add_losses(block, y, prepared, out) };
        let (x, columns) = (block.x, self.predictor.columns);
        block.for_each(|particle, row, value| {
            let loss = self.family.loss(&prepared[particle], value.f64(), y[row].f64());
            out[particle] += x[row * columns + column].f64() * loss;
        });
    }
}

/// Rows of groups that the training rows do not have.
impl<D: Family> Regression<D> {
    /// Calls `visit` with consecutive rows of the block, either all of groups that the training rows have or all of new ones.
    fn by_knowledge_of_group<F: Real>(&self, block: &mut Block<F>, mut visit: impl FnMut(&mut Block<F>, bool)) {
        let Some(effects) = &self.effects else { return visit(block, true) };
        let (x, columns) = (block.x, self.predictor.columns);
        block.for_runs(|row| !effects.is_new(&x[row * columns..][..columns]), visit);
    }

    /// The standard deviation of the deviation of a row's group.
    fn new_group_sd<F: Real>(&self, theta: ArrayView2<F>, particle: usize, x: &[F]) -> f64 {
        let own = &flat(theta)[particle * self.predictor.dim()..][self.places.effects.clone()];
        self.effects.as_ref().map_or(0.0, |effects| effects.new_group_sd(own, x))
    }

    /// Draws how far η of a row deviates for a particle if its group is new; 0 if it is not.
    fn draw_deviation<F: Real>(&self, theta: ArrayView2<F>, particle: usize, x: &[F], stream: &mut Stream) -> f64 {
        let own = &flat(theta)[particle * self.predictor.dim()..][self.places.effects.clone()];
        self.effects.as_ref().map_or(0.0, |effects| effects.draw_deviation(own, x, stream))
    }

    fn add_losses_of_new_groups<F: Real>(
        &self,
        theta: ArrayView2<F>,
        block: &mut Block<F>,
        y: ArrayView1<F>,
        prepared: &[D::Prepared],
        out: &mut [f64],
    ) {
        let (x, columns) = (block.x, self.predictor.columns);
        let mut psi = vec![0.0; self.places.psi.len()];
        block.for_each(|particle, row, value| {
            let x = &x[row * columns..][..columns];
            let weight = self.weight_column.map_or(1.0, |column| x[column].f64());
            let sd = self.new_group_sd(theta, particle, x);
            let loss = new_groups::loss(&self.family, &prepared[particle], value.f64(), sd, y[row].f64(), &mut psi);
            out[particle] += weight * loss;
        });
    }

    #[allow(clippy::too_many_arguments)]
    fn add_predictions_of_new_groups<F: Real>(
        &self,
        theta: ArrayView2<F>,
        block: &mut Block<F>,
        y: ArrayView1<F>,
        prepared: &[D::Prepared],
        weight: f64,
        mean: &mut ArrayViewMut2<f64>,
        density: &mut [f64],
    ) {
        let (x, columns) = (block.x, self.predictor.columns);
        let mut psi = vec![0.0; self.places.psi.len()];
        let mut outputs = vec![0.0; mean.ncols()];
        block.for_each(|particle, row, value| {
            let (prepared, eta, target) = (&prepared[particle], value.f64(), y[row].f64());
            let sd = self.new_group_sd(theta, particle, &x[row * columns..][..columns]);
            density[row] += weight * (-new_groups::loss(&self.family, prepared, eta, sd, target, &mut psi)).exp();
            outputs.fill(0.0);
            new_groups::add_mean(&self.family, prepared, eta, sd, target, weight, &mut outputs);
            mean.row_mut(row).iter_mut().zip(&outputs).for_each(|(mean, output)| *mean += output);
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

    /// Draws from distributions like the priors, but without far tails.
    fn draw_initial(&self, stream: &mut Stream, theta: ArrayViewMut1<F>) {
        let Places { weights, psi, .. } = &self.places;
        let theta = flat_mut(theta);
        let (before_psi, rest) = theta.split_at_mut(psi.start);
        let (linear, log_precision) = before_psi.split_at_mut(self.predictor.weights());
        let (weights, intercept) = linear.split_at_mut(weights.end);
        self.prior.draw_initial(stream, weights, intercept, log_precision);
        let (of_psi, of_groups) = rest.split_at_mut(psi.len());
        let mut drawn = vec![0.0; psi.len()];
        self.family.draw_initial(stream, &mut drawn);
        of_psi.iter_mut().zip(drawn).for_each(|(value, drawn)| *value = F::of(drawn));
        if let Some(effects) = &self.effects {
            effects.draw_initial(stream, of_groups);
        }
    }

    fn log_prior(&self, theta: ArrayView2<F>, out: &mut [f64]) {
        let Places { weights, intercept, log_precision, effects: groups, .. } = &self.places;
        for (theta, out) in flat(theta).chunks_exact(self.predictor.dim()).zip(out) {
            let [weights, intercept, log_precision] =
                [weights, intercept, log_precision].map(|place: &Range<usize>| &theta[Range::clone(place)]);
            *out = self.prior.log_density(weights, intercept, log_precision) + self.family.log_prior(&self.psi(theta));
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
            let [weights, intercept, log_precision] =
                [weights, intercept, log_precision].map(|place: &Range<usize>| &theta[Range::clone(place)]);
            self.prior.score(weights, intercept, log_precision, &mut score[..psi.start]);
            self.family.prior_score(&self.psi(theta), &mut of_psi);
            score[psi.clone()].iter_mut().zip(&of_psi).for_each(|(score, &value)| *score = F::of(value));
            if let Some(effects) = &self.effects {
                effects.prior_score(&theta[groups.clone()], &mut score[groups.clone()]);
            }
        }
    }

    fn loss(&self, theta: ArrayView2<F>, batch: Batch<F>, out: &mut [f64], scratch: &mut Scratch<F>) {
        out.fill(0.0);
        let prepared = self.prepare(theta);
        self.predictors(theta, batch, scratch, |block| {
            self.by_knowledge_of_group(block, |block, is_known| match is_known {
                true => self.add_losses(block, batch.y, &prepared, out),
                false => self.add_losses_of_new_groups(theta, block, batch.y, &prepared, out),
            });
        });
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
        let (prepared, x) = (self.prepare(theta), flat(row.x));
        self.predictors(theta, row, scratch, |block| {
            block.for_each(|particle, _, eta| {
                let deviation = self.draw_deviation(theta, particle, x, stream);
                out[particle] = self.family.draw(&prepared[particle], eta.f64() + deviation, stream);
            });
        });
        true
    }

    fn is_of_new_group(&self, row: ArrayView1<F>) -> bool {
        self.effects.as_ref().is_some_and(|effects| row.as_slice().is_some_and(|row| effects.is_new(row)))
    }

    fn draw_means(
        &self,
        theta: ArrayView2<F>,
        row: Batch<F>,
        stream: &mut Stream,
        mut out: ArrayViewMut2<f64>,
        scratch: &mut Scratch<F>,
    ) {
        let (prepared, x) = (self.prepare(theta), flat(row.x));
        out.fill(0.0);
        self.predictors(theta, row, scratch, |block| {
            self.family.smooth(block, self.predictor);
            block.for_each(|particle, _, eta| {
                let eta = eta.f64() + self.draw_deviation(theta, particle, x, stream);
                self.family.predict(&prepared[particle], eta, row.y[0].f64(), 1.0, flat_mut(out.row_mut(particle)));
            });
        });
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
        let (weight, prepared) = (1.0 / theta.nrows() as f64, self.prepare(theta));
        self.predictors(theta, batch, scratch, |block| {
            self.family.smooth(block, self.predictor);
            self.by_knowledge_of_group(block, |block, is_known| match is_known {
                true => self.family.add_predictions(block, batch.y, &prepared, weight, &mut mean, density),
                false => self.add_predictions_of_new_groups(theta, block, batch.y, &prepared, weight, &mut mean, density),
            });
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
