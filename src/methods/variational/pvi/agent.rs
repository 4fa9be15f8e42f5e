//! Agent of partitioned variational inference: fits its approximate likelihood factor to its own data and its part of the prior.

use super::{Covariance, Cubature, Gaussian, Natural, Nodes, Pvi, double};
use crate::cluster::{Agent, AgentId, Body, Context, Raw, Result, SerializesAs};
use crate::methods::common::problem::LocalLoss;
use crate::methods::tuning::prior_curvature;
use crate::models::CurvatureSupport;
use crate::number::Real;
use crate::random::{Purpose, Who};
use ndarray::{Array2, Axis};

/// The fraction of q's precision that must remain after a round.
const MIN_PRECISION_LEFT: f64 = 0.1;

/// Holds a shard and the factor of its data.
pub struct PviAgent<F: Real> {
    local: LocalLoss<F>,
    method: Pvi<F>,
    natural: Natural,
    cubature: Cubature,
    /// Natural parameters of the factor, which a checkpoint keeps; empty before the agent's first round.
    pub factor: Raw<F>,
}

impl<F: Real> PviAgent<F> {
    /// Opens the agent's shard.
    ///
    /// # Errors
    /// If the shard cannot be read.
    pub(super) fn new(method: Pvi<F>, id: AgentId, factor: Raw<F>) -> Result<Self> {
        let local = method.problem.open(id, method.batch.unwrap_or(usize::MAX))?;
        Ok(Self { local, natural: method.natural(), cubature: method.cubature()?, method, factor })
    }

    /// Natural parameters of the first factor: of ℓ_k around the mode, if it is known; otherwise the K-th root of the first Gaussian.
    fn first_factor(&mut self, cx: &Context) -> Result<Vec<f64>> {
        let part = 1.0 / f64::from(self.method.problem.agents);
        let model = self.method.problem.model.clone();
        if model.whitening().is_none() {
            return Ok(self.method.start_parameters(cx)?.into_iter().map(|value| part * value).collect());
        }
        let dim = model.dim();
        let mode = Array2::<F>::zeros((1, dim));
        let (mut score, mut curvature) = (Array2::zeros((1, dim)), Array2::zeros((dim, dim)));
        self.local.set_batch(usize::MAX);
        self.local.prior_score(mode.view(), score.view_mut());
        score.mapv_inplace(|score| F::of(part) * score);
        self.local.add_score(mode.view(), 0, score.view_mut(), cx);
        self.local.add_full_curvature(mode.view(), 0, curvature.view_mut(), cx);
        self.local.set_batch(self.method.batch.unwrap_or(usize::MAX));
        let curvature = curvature.mapv(F::f64) + prior_curvature(model.as_ref(), &vec![0.0; dim]) * part;
        Ok(self.natural.around(score.mapv(F::f64).row(0), curvature.view()))
    }

    /// Natural parameters of the Gaussian factor that fits ℓ_k best under q.
    fn fitted(&mut self, q: &Gaussian, nodes: &Nodes, step: u64, cx: &Context) -> Vec<f64> {
        let theta = q.place(nodes.z.view()).mapv(F::of);
        let mut score = Array2::zeros(theta.raw_dim());
        self.local.prior_score(theta.view(), score.view_mut());
        let weight = F::of(1.0 / f64::from(self.method.problem.agents));
        score.mapv_inplace(|score| weight * score);
        if matches!(self.cubature, Cubature::Fixed(_)) || self.method.problem.model.curvature_support() != CurvatureSupport::Full
        {
            self.local.add_score(theta.view(), step, score.view_mut(), cx);
            return q.fitted(nodes, score.mapv(F::f64).view());
        }
        // The curvature of these models is the Hessian, which has far less noise than an estimate from gradients at random nodes.
        let mut loss = Array2::zeros(theta.raw_dim());
        self.local.add_score(theta.view(), step, loss.view_mut(), cx);
        let each = 1.0 / theta.nrows() as f64;
        let mut curvature = Array2::zeros((theta.ncols(), theta.ncols()));
        self.local.add_full_curvature(theta.view(), step, curvature.view_mut(), cx);
        let mut precision = curvature.mapv(F::f64) * each;
        if self.method.covariance == Covariance::Diagonal {
            precision = precision.diag().to_owned().insert_axis(Axis(1));
        }
        let fitted = q.fitted_to(&(loss.mapv(F::f64).sum_axis(Axis(0)) * each), &precision);
        let prior = q.fitted(nodes, score.mapv(F::f64).view());
        fitted.iter().zip(prior).map(|(loss, prior)| loss + prior).collect()
    }
}

impl<F: Real> Agent<Pvi<F>> for PviAgent<F> {
    type State = Raw<F>;

    fn state(&self) -> impl SerializesAs<Raw<F>> {
        &self.factor
    }

    fn perform(&mut self, &round: &u64, product: Body<F>, cx: &mut Context) -> Result<([f64; 1], Body<F>)> {
        let Pvi { iterations, damping, schedule, .. } = self.method;
        let agents = self.method.problem.agents;
        if product.len() != self.natural.size() {
            return Err(format!("pvi: {} natural parameters, not {}", product.len(), self.natural.size()).into());
        }
        if self.factor.0.is_empty() {
            self.factor = Raw(self.first_factor(cx)?.into_iter().map(F::of).collect());
        }
        let (product, old) = (double(&product), double(&self.factor.0));
        let mut new = old.clone();
        let mut slack: Vec<f64> = product.iter().map(|product| (1.0 - MIN_PRECISION_LEFT) * product).collect();
        let together = f64::from(schedule.size(agents).max(1));
        let mut sum_of_damping = 0.0;
        for step in (round - 1) * iterations..round * iterations {
            let q: Vec<f64> = product.iter().zip(&old).zip(&new).map(|((product, old), new)| product - old + new).collect();
            let q = Gaussian::of(self.natural, &q)
                .ok_or("pvi: rounding errors have made the precision of the approximation indefinite; set dtype = \"float64\"")?;
            // The same nodes for all agents, so that a round of all agents does not depend on their number.
            let nodes = self.cubature.nodes(cx.stream(Who::Run, step, Purpose::Nodes))?;
            let target = self.fitted(&q, &nodes, step, cx);
            sum_of_damping += self.natural.step(&mut new, &target, &mut slack, together, damping);
        }
        let new: Vec<F> = new.into_iter().map(F::of).collect();
        let change: Vec<F> = new.iter().zip(&self.factor.0).map(|(&new, &old)| new - old).collect();
        self.factor = Raw(new);
        Ok(([sum_of_damping / iterations as f64], change.into()))
    }
}
