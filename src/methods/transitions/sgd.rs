//! Stochastic gradient descent with momentum as a transition, for elastic averaging SGD.

use crate::cluster::{AgentId, Context, Result};
use crate::methods::common::problem::Problem;
use crate::methods::common::scores::{ControlPoint, Estimator, Scores};
use crate::methods::transitions::transition::{LocalTransition, Transition, Update};
use crate::number::Real;
use crate::random::Stream;

/// v ← μ v − η ∇Û(θ), θ ← θ + v; Nesterov's version takes the gradient at θ + μ v. The state is (θ, v).
#[derive(Clone)]
pub struct Sgd<F> {
    /// The problem.
    pub problem: Problem<F>,
    /// Rows in a minibatch, drawn without replacement for every update.
    pub batch: usize,
    /// Estimator of the score.
    pub gradient: Estimator,
    /// η.
    pub step: f64,
    /// μ.
    pub momentum: f64,
    /// Whether the gradient is taken at θ + μ v.
    pub nesterov: bool,
}

impl<F: Real> Transition for Sgd<F> {
    type Number = F;
    type Local = LocalSgd<F>;

    fn dim(&self) -> usize {
        self.problem.model.dim()
    }

    fn state_len(&self) -> usize {
        2 * self.dim()
    }

    fn draw_initial(&self, chain: u64, stream: &mut Stream, state: &mut [F]) {
        let dim = self.dim();
        self.problem.start(chain, stream, &mut state[..dim]);
    }

    fn step(&self, _update: u64) -> f64 {
        self.step
    }

    fn open(&self, agent: AgentId) -> Result<LocalSgd<F>> {
        let Self { step, momentum, nesterov, .. } = *self;
        let (step, momentum) = (F::of(step), F::of(momentum));
        Ok(LocalSgd { step, momentum, nesterov, scores: Scores::open(&self.problem, agent, self.batch, self.gradient)? })
    }
}

/// SGD on one shard.
pub struct LocalSgd<F: Real> {
    step: F,
    momentum: F,
    nesterov: bool,
    scores: Scores<F>,
}

impl<F: Real> LocalTransition<F> for LocalSgd<F> {
    type State = ControlPoint<F>;

    fn rows(&self) -> usize {
        self.scores.rows()
    }

    fn arrive(&mut self, control: &mut ControlPoint<F>, round: u64, chain: &[F], cx: &Context) -> Result<bool> {
        self.scores.arrive(control, round, &chain[..chain.len() / 2], cx)
    }

    fn update(&mut self, control: &mut ControlPoint<F>, chain: &mut [F], update: Update<F>, cx: &Context) -> Result<()> {
        let Update { chain: number, number: t, scale, pull } = update;
        if pull.is_some() {
            return Err("SGD does not support an elastic force".into());
        }
        let Self { step, momentum, nesterov, .. } = *self;
        let (theta, velocity) = chain.split_at_mut(chain.len() / 2);
        if nesterov {
            theta.iter_mut().zip(&*velocity).for_each(|(theta, &v)| *theta += momentum * v);
        }
        let score = self.scores.at(control, theta, number, t, scale, cx)?;
        for ((theta, velocity), &score) in theta.iter_mut().zip(velocity).zip(score) {
            *velocity = momentum * *velocity + step * score;
            // With Nesterov's momentum, θ has already moved by μ v.
            *theta += if nesterov { step * score } else { *velocity };
        }
        Ok(())
    }
}
