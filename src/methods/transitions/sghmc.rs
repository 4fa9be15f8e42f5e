//! SGHMC as a transition: stochastic gradient Hamiltonian Monte Carlo on one shard.

use crate::cluster::{AgentId, Context, Result};
use crate::kernels::hamiltonian::{ChainState, Scheme, SghmcDynamics};
use crate::methods::common::problem::Problem;
use crate::methods::common::scores::{ControlPoint, Estimator, Scores};
use crate::methods::transitions::transition::{LocalTransition, Transition, Update};
use crate::number::Real;
use crate::random::{Purpose, Stream, Who};
use crate::settings::{KeyError, in_range};
use serde::{Deserialize, Serialize};

/// Steps of [`SghmcDynamics`] (Chen, Fox & Guestrin 2014). The state is (θ, v), and with a preconditioner also the mean square of
/// the scores.
#[derive(Clone)]
pub struct Sghmc<F> {
    /// The problem.
    pub problem: Problem<F>,
    /// Rows in a minibatch, drawn without replacement for every update.
    pub batch: usize,
    /// Estimator of the score.
    pub gradient: Estimator,
    /// ε, V and B̂.
    pub dynamics: SghmcDynamics,
    /// Adapts M; `None` for the identity.
    pub preconditioner: Option<Preconditioner>,
}

/// M⁻¹ = diag(1/(floor + √ḡ²)), with ḡ² an exponential mean of squared scores (Springenberg et al. 2016, "Bayesian optimization with
/// robust Bayesian neural networks"; Li et al. 2016 for SGLD). It is fixed after burn-in, because adaptation would change the stationary
/// distribution.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Preconditioner {
    /// Updates with adaptation.
    pub burn_in: u64,
    /// The decay of the exponential mean per update.
    pub decay: f64,
    /// The constant that is added to √ḡ².
    pub floor: f64,
}

impl Default for Preconditioner {
    fn default() -> Self {
        Self { burn_in: 1000, decay: 0.99, floor: 1.0 }
    }
}

impl Preconditioner {
    /// Checks the values.
    ///
    /// # Errors
    /// Names the key that is out of range.
    pub fn check(&self) -> std::result::Result<(), KeyError> {
        let Self { decay, floor, .. } = *self;
        in_range("decay", decay, (0.0..1.0).contains(&decay), "at least 0 and below 1")?;
        in_range("floor", floor, floor.is_finite() && floor > 0.0, "above 0")
    }
}

impl<F: Real> Transition for Sghmc<F> {
    type Number = F;
    type Local = LocalSghmc<F>;

    fn dim(&self) -> usize {
        self.problem.model.dim()
    }

    fn state_len(&self) -> usize {
        self.dim() * if self.preconditioner.is_some() { 3 } else { 2 }
    }

    /// The position at which the last gradient was taken.
    fn keep(&self, chain: &[F], kept: &mut Vec<F>) {
        let (theta, rest) = chain.split_at(self.dim());
        match self.dynamics.scheme {
            Scheme::SemiImplicit => self.problem.model.append_parameters(theta, kept),
            Scheme::Middle => {
                let half = F::of(0.5 * self.dynamics.step);
                let position: Vec<F> = theta.iter().zip(rest).map(|(&theta, &velocity)| theta - half * velocity).collect();
                self.problem.model.append_parameters(&position, kept);
            }
        }
    }

    /// θ from the model, and v from its stationary distribution under M = I.
    fn draw_initial(&self, chain: u64, stream: &mut Stream, state: &mut [F]) {
        let dim = self.dim();
        self.problem.start(chain, stream, &mut state[..dim]);
        if self.dynamics.noise {
            stream.normals(&mut state[dim..2 * dim]);
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
            mass_of: None,
        })
    }
}

/// SGHMC on one shard.
pub struct LocalSghmc<F: Real> {
    dynamics: SghmcDynamics,
    preconditioner: Option<Preconditioner>,
    scores: Scores<F>,
    dim: usize,
    /// The diagonal of M⁻¹; empty for the identity.
    inverse_mass: Vec<F>,
    /// The chain that `inverse_mass` belongs to.
    mass_of: Option<u32>,
}

/// Updates the exponential mean of squared scores; the first score initializes it.
fn update_mean_square<F: Real>(squares: &mut [F], score: &[F], decay: F, is_first: bool) {
    let kept = if is_first { F::zero() } else { decay };
    let weight = F::one() - kept;
    squares.iter_mut().zip(score).for_each(|(mean, &score)| *mean = kept * *mean + weight * score * score);
}

/// Computes the diagonal of M⁻¹.
fn set_inverse_mass<F: Real>(squares: &[F], floor: f64, inverse_mass: &mut Vec<F>) {
    let floor = F::of(floor);
    inverse_mass.clear();
    inverse_mass.extend(squares.iter().map(|mean| (floor + mean.sqrt()).recip()));
}

/// `None` for the identity.
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
            && self.mass_of != Some(number)
        {
            self.mass_of = Some(number);
            self.inverse_mass.clear();
            if t > 0 {
                set_inverse_mass(squares, floor, &mut self.inverse_mass);
            }
        }
        let mut noise = cx.stream(Who::Chain(number), t, Purpose::Noise);
        let is_middle = self.dynamics.scheme == Scheme::Middle;
        if is_middle {
            // M of the last step, or the identity before the first.
            let chain =
                ChainState { theta: &mut *theta, velocity: &mut *velocity, inverse_mass: unless_identity(&self.inverse_mass) };
            self.dynamics.first_half(chain, &mut noise);
        }
        let score = self.scores.at(control, theta, number, t, scale, cx)?;
        if let Some(Preconditioner { burn_in, decay, floor }) = self.preconditioner
            && t < burn_in.max(1)
        {
            update_mean_square(squares, score, F::of(decay), t == 0);
            set_inverse_mass(squares, floor, &mut self.inverse_mass);
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
