//! SGLD as a transition: stochastic gradient Langevin dynamics on one shard.

use crate::cluster::{AgentId, Context, Result};
use crate::kernels::langevin::{StepSize, langevin_step};
use crate::methods::common::problem::Problem;
use crate::methods::common::scores::{ControlPoint, Estimator, Scores};
use crate::methods::transitions::transition::{LocalTransition, Transition, Update};
use crate::number::Real;
use crate::random::{Purpose, Stream, Who};

/// θ ← θ + (ε_t/2) {∇log p0(θ) + scale · N_s ḡ_s(θ)} + N(0, ε_t I) (Welling & Teh 2011; Ahn, Shahbaba & Welling 2014, eq. 1 and
/// Prop. 3.1).
#[derive(Clone)]
pub struct Sgld<F> {
    /// The problem.
    pub problem: Problem<F>,
    /// Rows in a minibatch, drawn without replacement for every update.
    pub batch: usize,
    /// ε_t.
    pub step: StepSize,
    /// Estimator of the score.
    pub gradient: Estimator,
    /// The share of the noise that is not added, because minibatches supply it.
    pub gradient_noise: f64,
}

impl<F: Real> Transition for Sgld<F> {
    type Number = F;
    type Local = LocalSgld<F>;

    fn dim(&self) -> usize {
        self.problem.model.dim()
    }

    fn keep(&self, chain: &[F], kept: &mut Vec<F>) {
        self.problem.model.append_parameters(chain, kept);
    }

    fn draw_initial(&self, chain: u64, stream: &mut Stream, state: &mut [F]) {
        self.problem.start(chain, stream, state);
    }

    fn step(&self, update: u64) -> f64 {
        self.step.at(update)
    }

    fn noise(&self, update: u64) -> Option<f64> {
        Some(self.step.at(update) * (1.0 - self.gradient_noise))
    }

    fn open(&self, agent: AgentId) -> Result<LocalSgld<F>> {
        let Self { step, gradient_noise, .. } = *self;
        Ok(LocalSgld { step, gradient_noise, scores: Scores::open(&self.problem, agent, self.batch, self.gradient)? })
    }
}

/// SGLD on one shard.
pub struct LocalSgld<F: Real> {
    step: StepSize,
    gradient_noise: f64,
    scores: Scores<F>,
}

impl<F: Real> LocalTransition<F> for LocalSgld<F> {
    type State = ControlPoint<F>;

    fn rows(&self) -> usize {
        self.scores.rows()
    }

    fn arrive(&mut self, control: &mut ControlPoint<F>, round: u64, theta: &[F], cx: &Context) -> Result<bool> {
        self.scores.arrive(control, round, theta, cx)
    }

    fn update(&mut self, control: &mut ControlPoint<F>, theta: &mut [F], update: Update<F>, cx: &Context) -> Result<()> {
        let Update { chain, number, scale, pull } = update;
        let score = self.scores.at(control, theta, chain, number, scale, cx)?;
        let mut noise = cx.stream(Who::Chain(chain), number, Purpose::Noise);
        let step = self.step.at(number);
        langevin_step(theta, score, pull, step, step * (1.0 - self.gradient_noise), &mut noise);
        Ok(())
    }
}
