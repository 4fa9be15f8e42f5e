//! The agent of coupled chains: moves its own chain from exchange to exchange.

use super::plan::{CoupledChains, CoupledTransition, Coupling, CouplingPlan};
use super::task::{Period, Task};
use crate::cluster::{Agent, AgentId, Body, Context, Raw, Result, SerializesAs};
use crate::kernels::hamiltonian::ElasticForce;
use crate::kernels::reduce::{all_finite, squared_norm};
use crate::methods::transitions::transition::{LocalTransition, Transition, Update};
use crate::number::Real;
use crate::random::{Purpose, Who};
use num_traits::Zero;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// An agent's state: the chain, empty before the first task, and what the transition needs.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "S: Serialize + serde::de::DeserializeOwned")]
pub struct AgentState<F: Real, S> {
    chain: Raw<F>,
    local: S,
}

/// The state of an agent with this transition.
pub(super) type AgentStateOf<T> =
    AgentState<<T as Transition>::Number, <<T as Transition>::Local as LocalTransition<<T as Transition>::Number>>::State>;

/// Moves a chain.
pub struct CoupledAgent<T: CoupledTransition> {
    id: AgentId,
    transition: T,
    plan: CouplingPlan,
    local: T::Local,
    state: AgentStateOf<T>,
}

impl<T: CoupledTransition> CoupledAgent<T> {
    pub(super) fn new(transition: T, plan: CouplingPlan, id: AgentId, saved: Option<AgentStateOf<T>>) -> Result<Self> {
        let fresh = || AgentState { chain: Raw(Vec::new()), local: Default::default() };
        Ok(Self { id, local: transition.open(id)?, transition, plan, state: saved.unwrap_or_else(fresh) })
    }

    /// Draws the chain's initial state, if it has none.
    fn begin(&mut self, cx: &Context) {
        let chain = &mut self.state.chain.0;
        if chain.is_empty() {
            chain.resize(self.transition.state_len(), T::Number::zero());
            let number = if self.plan.same_start { 0 } else { u64::from(self.id) };
            self.transition.draw_initial(number, &mut cx.stream(Who::Run, number, Purpose::Initial), chain);
        }
    }

    /// What the exchange before a period needs from this chain: its position, or for coupled friction w_i = (ρ − 1) v_i + (1 − ρ²)^½ ξ_i.
    fn contribution(&self, period: u64, cx: &Context) -> Result<Vec<T::Number>> {
        let chain = &self.state.chain.0;
        if self.plan.coupling != Coupling::Friction {
            return Ok(chain[..self.transition.dim()].to_vec());
        }
        let velocities = self.transition.velocities().ok_or("coupled friction needs chains with velocities of mass 1")?;
        let (first, steps) = self.plan.steps_of(period);
        let rho = self.plan.friction_factor(first, steps, self.transition.time());
        let mut contribution = chain[velocities].to_vec();
        let lost = T::Number::of(rho - 1.0);
        contribution.iter_mut().for_each(|v| *v *= lost);
        if self.transition.noisy() {
            let mut noise = cx.stream(Who::Chain(self.id), first, Purpose::Coupling);
            noise.add_normals(T::Number::of((1.0 - rho * rho).sqrt()), &mut contribution);
        }
        Ok(contribution)
    }

    /// Applies an exchange to the chain's velocities, if chains are coupled that way.
    fn kick(&mut self, period: u64, body: &[T::Number], cx: &Context) -> Result<()> {
        let own = match self.plan.coupling {
            Coupling::Elastic(_) | Coupling::Average { .. } => return Ok(()),
            Coupling::Mean { .. } => Vec::new(),
            Coupling::Friction => self.contribution(period, cx)?,
        };
        let velocities = self.transition.velocities().ok_or("coupling by velocities needs chains with velocities of mass 1")?;
        let velocities = &mut self.state.chain.0[velocities];
        if own.is_empty() {
            velocities.iter_mut().zip(body).for_each(|(v, &kick)| *v += kick);
        } else {
            velocities.iter_mut().zip(&own).zip(body).for_each(|((v, &own), &mean)| *v += own - mean);
        }
        Ok(())
    }

    fn run(&mut self, period: &Period, body: Body<T::Number>, cx: &mut Context) -> Result<Body<T::Number>> {
        let CouplingPlan { burn_in, thin, strength, extrapolate, coupling, .. } = self.plan;
        let (first, steps) = self.plan.steps_of(period.number);
        let dim = self.transition.dim();
        let is_coupled = self.plan.is_coupled(period.number);
        let wanted = match coupling {
            _ if !is_coupled => 0,
            Coupling::Elastic(_) if extrapolate => 2 * dim,
            _ => dim,
        };
        if body.len() != wanted {
            return Err(format!("chain {}: expected {wanted} values, got {}", self.id, body.len()).into());
        }
        if is_coupled {
            self.kick(period.number, &body, cx)?;
        }
        let keeps_draws = !self.plan.result_is_center(self.transition.noisy());
        let has_pull = is_coupled && matches!(coupling, Coupling::Elastic(_));
        let mut moves_of_exchange = match coupling {
            Coupling::Average { rate } if is_coupled => {
                let mut moves = body.to_vec();
                let (rate, theta) = (T::Number::of(rate), &self.state.chain.0[..dim]);
                moves.iter_mut().zip(theta).for_each(|(center, &theta)| *center = rate * (*center - theta));
                Some(moves)
            }
            _ => None,
        };
        let mut center = body;
        self.local.arrive(&mut self.state.local, period.number, &self.state.chain.0, cx)?;
        let mut kept = Vec::new();
        for number in first..first + steps {
            let pull = has_pull.then(|| ElasticForce { strength: T::Number::of(strength.at(number)), center: &center[..dim] });
            let update = Update { chain: self.id, number, scale: 1.0, pull };
            self.local.update(&mut self.state.local, &mut self.state.chain.0, update, cx)?;
            // Added to the first step, but computed from the state before it.
            if let Some(moves) = moves_of_exchange.take() {
                self.state.chain.0.iter_mut().zip(moves).for_each(|(theta, by)| *theta += by);
            }
            if has_pull && extrapolate {
                center = extrapolated(center, dim, T::Number::of(self.transition.time()));
            }
            if keeps_draws && strength.draws(number + 1, burn_in, thin) > strength.draws(number, burn_in, thin) {
                self.transition.keep(&self.state.chain.0, &mut kept);
            }
        }
        if !all_finite(&self.state.chain.0) {
            return Err(format!("chain {} has diverged by step {}: set a smaller step", self.id, first + steps).into());
        }
        if !kept.is_empty() {
            cx.record("posterior", self.id, strength.draws(first, burn_in, thin), dim, &kept);
        }
        if let Some(&sleep) = self.plan.sleep_ms.get(self.id as usize) {
            std::thread::sleep(Duration::from_secs_f64(1e-3 * sleep * steps as f64));
        }
        let mut sent =
            if self.plan.is_coupled(period.number + 1) { self.contribution(period.number + 1, cx)? } else { Vec::new() };
        if period.sends_position && (sent.is_empty() || coupling == Coupling::Friction) {
            sent.extend_from_slice(&self.state.chain.0[..dim]);
        }
        Ok(sent.into())
    }
}

/// A center followed by its velocity, moved on by `time`.
fn extrapolated<F: Real>(center: Body<F>, dim: usize, time: F) -> Body<F> {
    let mut both = center.into_vec();
    let (position, velocity) = both.split_at_mut(dim);
    position.iter_mut().zip(velocity).for_each(|(position, velocity)| *position += time * *velocity);
    both.into()
}

impl<T: CoupledTransition> Agent<CoupledChains<T>> for CoupledAgent<T> {
    type State = AgentStateOf<T>;

    fn state(&self) -> impl SerializesAs<AgentStateOf<T>> {
        &self.state
    }

    fn perform(&mut self, task: &Task, body: Body<T::Number>, cx: &mut Context) -> Result<(f64, Body<T::Number>)> {
        self.begin(cx);
        match task {
            Task::Begin => Ok((0.0, self.contribution(0, cx)?.into())),
            Task::Run(period) => {
                let body = self.run(period, body, cx)?;
                let theta = &self.state.chain.0[..if period.reports_square { self.transition.dim() } else { 0 }];
                Ok((squared_norm(theta), body))
            }
        }
    }
}
