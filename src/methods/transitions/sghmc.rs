//! Stochastic gradient Hamiltonian Monte Carlo as a transition: scores of minibatches, and velocities that chains carry with them.

use crate::cluster::{AgentId, Context, Result};
use crate::kernels::hamiltonian::{ChainState, Scheme, SghmcDynamics};
use crate::methods::common::problem::Problem;
use crate::methods::common::scores::{ControlPoint, Estimator, Scores};
use crate::methods::transitions::transition::{LocalTransition, Transition, Update};
use crate::number::Real;
use crate::random::{Purpose, Stream, Who};
use ndarray::ArrayViewMut1;
use serde::{Deserialize, Serialize};

/// Steps of [`SghmcDynamics`] (Chen, Fox & Guestrin 2014). A chain carries θ, v and, where the mass is adapted, the mean square of its
/// scores.
#[derive(Clone)]
pub struct Sghmc<F> {
    /// What is inferred.
    pub problem: Problem<F>,
    /// Rows in a minibatch, fresh for every update and without replacement.
    pub batch: usize,
    /// How minibatches become scores.
    pub gradient: Estimator,
    /// ε, V and B̂.
    pub dynamics: SghmcDynamics,
    /// How M is found; the identity where there is none.
    pub preconditioner: Option<Preconditioner>,
}

/// M⁻¹ = diag(1/(floor + √ḡ²)), with ḡ² an exponential mean of squared scores (Springenberg et al. 2016, "Bayesian optimization with
/// robust Bayesian neural networks"; Li et al. 2016 have it for SGLD). It stays as it is after the burn-in, or the law would be another.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Preconditioner {
    /// Updates in which it is adapted.
    pub burn_in: u64,
    /// What of the mean stays at an update.
    pub decay: f64,
    /// What is added to √ḡ².
    pub floor: f64,
}

impl Default for Preconditioner {
    fn default() -> Self {
        Self { burn_in: 1000, decay: 0.99, floor: 1.0 }
    }
}

impl Preconditioner {
    /// Whether it is one.
    ///
    /// # Errors
    /// Says which number is out of its range.
    pub fn check(&self) -> Result<(), String> {
        let Self { decay, floor, .. } = *self;
        if !(0.0..1.0).contains(&decay) {
            return Err(format!("preconditioner: decay = {decay} must be from 0 to below 1"));
        }
        if !(floor.is_finite() && floor > 0.0) {
            return Err(format!("preconditioner: floor = {floor} must be above 0"));
        }
        Ok(())
    }
}

impl<F: Real> Transition for Sghmc<F> {
    type Number = F;
    type Local = LocalSghmc<F>;

    fn dim(&self) -> usize {
        self.problem.model.dim()
    }

    fn carried(&self) -> usize {
        self.dim() * if self.preconditioner.is_some() { 3 } else { 2 }
    }

    /// θ where the last gradient was taken.
    fn keep(&self, chain: &[F], kept: &mut Vec<F>) {
        let (theta, rest) = chain.split_at(self.dim());
        match self.dynamics.scheme {
            Scheme::SemiImplicit => kept.extend_from_slice(theta),
            Scheme::Middle => {
                let half = F::of(0.5 * self.dynamics.step);
                kept.extend(theta.iter().zip(rest).map(|(&theta, &velocity)| theta - half * velocity));
            }
        }
    }

    /// θ as the model draws it, and v from its law under M = I.
    fn draw_initial(&self, stream: &mut Stream, chain: &mut [F]) {
        let dim = self.dim();
        self.problem.model.draw_initial(stream, ArrayViewMut1::from(&mut chain[..dim]));
        if self.dynamics.noise {
            stream.normals(&mut chain[dim..2 * dim]);
        }
    }

    fn step(&self, _update: u64) -> f64 {
        self.dynamics.step
    }

    fn open(&self, agent: AgentId) -> Result<LocalSghmc<F>> {
        Ok(LocalSghmc {
            dynamics: self.dynamics,
            preconditioner: self.preconditioner,
            scores: Scores::open(&self.problem, agent, self.batch, self.gradient)?,
            dim: self.dim(),
            inverse_mass: Vec::new(),
            of: None,
        })
    }
}

/// SGHMC on one shard.
pub struct LocalSghmc<F: Real> {
    dynamics: SghmcDynamics,
    preconditioner: Option<Preconditioner>,
    scores: Scores<F>,
    dim: usize,
    /// The diagonal of M⁻¹, empty for the identity, and the chain whose it is.
    inverse_mass: Vec<F>,
    of: Option<u32>,
}

/// Takes a score into account in the mean of their squares; the first one is the mean.
fn average<F: Real>(squares: &mut [F], score: &[F], decay: F, is_first: bool) {
    let kept = if is_first { F::zero() } else { decay };
    let share = F::one() - kept;
    squares.iter_mut().zip(score).for_each(|(mean, &score)| *mean = kept * *mean + share * score * score);
}

/// The diagonal of M⁻¹.
fn inverse<F: Real>(squares: &[F], floor: f64, inverse_mass: &mut Vec<F>) {
    let floor = F::of(floor);
    inverse_mass.clear();
    inverse_mass.extend(squares.iter().map(|mean| (floor + mean.sqrt()).recip()));
}

/// The masses, where there are any.
fn unless_identity<F>(inverse_mass: &[F]) -> Option<&[F]> {
    (!inverse_mass.is_empty()).then_some(inverse_mass)
}

impl<F: Real> LocalTransition<F> for LocalSghmc<F> {
    type State = ControlPoint<F>;

    fn rows(&self) -> usize {
        self.scores.rows()
    }

    fn arrive(&mut self, control: &mut ControlPoint<F>, round: u64, chain: &[F], cx: &Context) -> Result<bool> {
        self.scores.arrive(control, round, &chain[..self.dim], cx)
    }

    fn update(&mut self, control: &mut ControlPoint<F>, chain: &mut [F], update: Update<F>, cx: &Context) -> Result<()> {
        let Update { chain: number, number: t, scale, pull } = update;
        let (theta, rest) = chain.split_at_mut(self.dim);
        let (velocity, squares) = rest.split_at_mut(self.dim);
        if let Some(Preconditioner { floor, .. }) = self.preconditioner
            && self.of != Some(number)
        {
            self.of = Some(number);
            self.inverse_mass.clear();
            if t > 0 {
                inverse(squares, floor, &mut self.inverse_mass);
            }
        }
        let mut noise = cx.stream(Who::Chain(number), t, Purpose::Noise);
        let is_middle = self.dynamics.scheme == Scheme::Middle;
        if is_middle {
            // The masses are those of the last step, or the identity before the first.
            let chain =
                ChainState { theta: &mut *theta, velocity: &mut *velocity, inverse_mass: unless_identity(&self.inverse_mass) };
            self.dynamics.first_half(chain, &mut noise);
        }
        let score = self.scores.at(control, theta, number, t, scale, cx)?;
        if let Some(Preconditioner { burn_in, decay, floor }) = self.preconditioner
            && t < burn_in.max(1)
        {
            average(squares, score, F::of(decay), t == 0);
            inverse(squares, floor, &mut self.inverse_mass);
        }
        let chain = ChainState { theta, velocity, inverse_mass: unless_identity(&self.inverse_mass) };
        if is_middle {
            self.dynamics.second_half(chain, score, pull);
        } else {
            self.dynamics.step(chain, score, pull, &mut noise);
        }
        Ok(())
    }
}
