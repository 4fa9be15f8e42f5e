//! An agent of partitioned variational inference: fits its factor to its own data and its share of the prior.

use super::{Covariance, Cubature, Gaussian, Natural, Nodes, Pvi, double};
use crate::cluster::{AgentId, Body, Context, Raw, Result};
use crate::methods::common::federated::{Client, ClientState};
use crate::methods::common::problem::{LocalLoss, Problem};
use crate::models::CurvatureSupport;
use crate::number::Real;
use crate::random::{Purpose, Who};
use ndarray::{Array2, Axis};

/// The share of q's precision that a round must leave.
const LEFT: f64 = 0.1;

/// What a visit tells: ρ of its steps, below the one asked for where steps were shortened.
pub const COLUMNS: [&str; 1] = ["damping"];

/// Holds a shard, and in the state's numbers the natural parameters of its factor.
pub struct PviClient<F: Real> {
    local: LocalLoss<F>,
    problem: Problem<F>,
    method: Pvi,
    natural: Natural,
    cubature: Cubature,
    state: ClientState<F>,
}

impl<F: Real> PviClient<F> {
    /// Opens the agent's shard.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub fn new(method: Pvi, problem: Problem<F>, id: AgentId, state: ClientState<F>) -> Result<Self> {
        let dim = problem.model.dim();
        let local = problem.open(id, method.batch.unwrap_or(usize::MAX))?;
        Ok(Self { local, natural: method.natural(dim), cubature: method.cubature(dim)?, problem, method, state })
    }

    /// The factor that fits ℓ_k best under q.
    fn fitted(&mut self, q: &Gaussian, nodes: &Nodes, step: u64, cx: &Context) -> Vec<f64> {
        let theta = q.place(nodes.z.view()).mapv(F::of);
        let mut score = Array2::zeros(theta.raw_dim());
        self.local.prior_score(theta.view(), score.view_mut());
        let share = F::of(1.0 / f64::from(self.problem.agents));
        score.mapv_inplace(|score| share * score);
        if matches!(self.cubature, Cubature::Fixed(_)) || self.problem.model.curvature_support() != CurvatureSupport::Full {
            self.local.add_score(theta.view(), step, score.view_mut(), cx);
            return q.fitted(nodes, score.mapv(F::f64).view());
        }
        // The model's own curvature, which of these models is the Hessian, has far less noise than one from gradients at random nodes.
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

impl<F: Real> Client<F> for PviClient<F> {
    fn state(&self) -> &ClientState<F> {
        &self.state
    }

    fn respond(&mut self, round: u64, message: Body<F>, cx: &mut Context) -> Result<(Vec<f64>, Body<F>)> {
        let Pvi { iterations, damping, together, .. } = self.method;
        if message.len() != self.natural.size() {
            return Err(format!("{} natural parameters, not {}", message.len(), self.natural.size()).into());
        }
        if self.state.numbers.0.is_empty() {
            let share = 1.0 / f64::from(self.problem.agents);
            self.state.numbers =
                Raw(self.method.prior(&self.problem, cx)?.into_iter().map(|number| F::of(share * number)).collect());
        }
        let (total, own) = (double(&message), double(&self.state.numbers.0));
        let mut now = own.clone();
        let mut slack: Vec<f64> = total.iter().map(|total| (1.0 - LEFT) * total).collect();
        let mut damped = 0.0;
        for step in (round - 1) * iterations..round * iterations {
            let numbers: Vec<f64> = total.iter().zip(&own).zip(&now).map(|((total, own), now)| total - own + now).collect();
            let q = Gaussian::of(self.natural, &numbers).ok_or(
                "the approximation has no positive definite precision any more, to within rounding: take precision = \"f64\"",
            )?;
            // The same for all agents, so that it does not matter how many of them take the same step.
            let nodes = self.cubature.nodes(cx.stream(Who::Run, step, Purpose::Nodes))?;
            let target = self.fitted(&q, &nodes, step, cx);
            damped += self.natural.step(&mut now, &target, &mut slack, f64::from(together), damping);
        }
        let new: Vec<F> = now.into_iter().map(F::of).collect();
        let change: Vec<F> = new.iter().zip(&self.state.numbers.0).map(|(&new, &old)| new - old).collect();
        self.state = ClientState { numbers: Raw(new), visits: vec![round] };
        Ok((vec![damped / iterations as f64], change.into()))
    }
}
