//! The agent of D-SGLD: updates the chain that visits its shard, and records draws.

use super::expectations::Expectations;
use super::settings::DsgldSettings;
use super::task::{Dsgld, GroupVisit, Report, Task, Visit, Visited};
use crate::cluster::{Agent, AgentId, Body, Context, Raw, Result, SerializesAs};
use crate::kernels::reduce::all_finite;
use crate::methods::common::thinning::{draw_after, draws};
use crate::methods::transitions::transition::{LocalTransition, Transition, Update};
use crate::number::Real;
use crate::random::{Purpose, Who};
use num_traits::Zero;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Updates chains on one shard.
pub struct DsgldAgent<T: Transition> {
    id: AgentId,
    transition: T,
    settings: DsgldSettings,
    local: T::Local,
    state: StateOf<T>,
}

/// What the transition needs, and the moments of the states after burn-in, if expectations are wanted.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AgentState<S> {
    transition: S,
    expectations: Expectations,
}

/// The state of an agent with this transition.
pub(super) type StateOf<T> = AgentState<<<T as Transition>::Local as LocalTransition<<T as Transition>::Number>>::State>;

/// The report of a visit, and the chain that is passed on.
type VisitResult<T> = (Visited<<T as Transition>::Number>, Body<<T as Transition>::Number>);

impl<T: Transition> DsgldAgent<T> {
    pub(super) fn new(method: &Dsgld<T>, id: AgentId, saved: Option<StateOf<T>>) -> Result<Self> {
        let fresh = || AgentState { transition: Default::default(), expectations: Expectations::default() };
        Ok(Self {
            id,
            local: method.transition.open(id)?,
            transition: method.transition.clone(),
            settings: method.settings.clone(),
            state: saved.unwrap_or_else(fresh),
        })
    }

    /// The state at which a visit begins: the mean of the states whose sum is in the body, or the chain's initial state if none arrives.
    fn arrival(&self, visit: &Visit, body: Body<T::Number>, cx: &Context) -> Result<Vec<T::Number>> {
        let length = self.transition.state_len();
        if visit.group_size == 0 {
            let mut chain = vec![T::Number::zero(); length];
            let number = u64::from(visit.chain);
            self.transition.draw_initial(number, &mut cx.stream(Who::Run, number, Purpose::Initial), &mut chain);
            return Ok(chain);
        }
        let mut chain = body.into_vec();
        if chain.len() != length {
            return Err(format!("chain {}: expected {length} values, got {}", visit.chain, chain.len()).into());
        }
        if visit.group_size > 1 {
            let weight = T::Number::of(1.0 / f64::from(visit.group_size));
            chain.iter_mut().for_each(|value| *value *= weight);
            if self.settings.noise_correction {
                // Averaging R chains divides the variance of the last update's noise by R.
                let noise = self.transition.noise(visit.first_update.saturating_sub(1));
                let noise = noise.ok_or("noise_correction needs a sampler whose noise does not depend on the state")?;
                let lost = noise * (1.0 - 1.0 / f64::from(visit.group_size));
                let mut stream = cx.stream(Who::Chain(visit.first_chain), visit.first_update, Purpose::Coupling);
                stream.add_normals(T::Number::of(lost.sqrt()), &mut chain);
            }
        }
        Ok(chain)
    }

    fn visit(&mut self, group: &GroupVisit, body: Body<T::Number>, cx: &mut Context) -> Result<VisitResult<T>> {
        let visit = *group.visits.iter().find(|visit| visit.agent == self.id).ok_or("the visit has no chain for this agent")?;
        let mut chain = self.arrival(&visit, body, cx)?;
        let did_other_work = self.local.arrive(&mut self.state.transition, group.round, &chain, cx)?;
        let (burn_in, thin, expectations) = (self.settings.burn_in(), self.settings.thin(), self.settings.expectations);
        let dim = self.transition.dim();
        let (mut kept, mut draw) = (Vec::new(), Vec::new());
        for number in visit.first_update..visit.first_update + visit.updates {
            let update = Update { chain: visit.chain, number, scale: visit.scale, pull: None };
            self.local.update(&mut self.state.transition, &mut chain, update, cx)?;
            if draw_after(number + 1, burn_in, thin).is_some() {
                self.transition.keep(&chain, &mut kept);
            }
            if expectations && number >= burn_in {
                draw.clear();
                self.transition.keep(&chain, &mut draw);
                self.state.expectations.add(&draw, self.transition.step(number));
            }
        }
        if !all_finite(&chain) {
            return Err(format!(
                "chain {} has diverged by update {}: set a smaller step",
                visit.chain,
                visit.first_update + visit.updates
            )
            .into());
        }
        if !kept.is_empty() {
            let first_draw = draws(visit.first_update, burn_in, thin);
            cx.record("posterior", visit.chain, first_draw, dim, &kept);
        }
        if self.settings.log_visits {
            let columns = [
                ("chain", f64::from(visit.chain)),
                ("first", visit.first_update as f64),
                ("updates", visit.updates as f64),
                ("scale", visit.scale),
            ];
            cx.log_row("visits", group.round + 1, columns);
        }
        if let Some(&sleep) = self.settings.sleep_ms.get(self.id as usize) {
            std::thread::sleep(Duration::from_secs_f64(1e-3 * sleep * visit.updates as f64));
        }
        let last = visit.first_update + visit.updates - 1;
        let reported = Raw(if group.reports_state { chain[..dim].to_vec() } else { Vec::new() });
        let visited = Visited {
            chain: visit.chain,
            updates: visit.updates,
            step: self.transition.step(last),
            did_other_work,
            state: reported,
        };
        Ok((visited, if group.is_last { Body::empty() } else { chain.into() }))
    }
}

impl<T: Transition> Agent<Dsgld<T>> for DsgldAgent<T> {
    type State = StateOf<T>;

    fn state(&self) -> impl SerializesAs<StateOf<T>> {
        &self.state
    }

    fn perform(&mut self, task: &Task, body: Body<T::Number>, cx: &mut Context) -> Result<(Report<T::Number>, Body<T::Number>)> {
        let expectations = &self.state.expectations;
        match task {
            Task::Rows => Ok((Report::Rows(self.local.rows() as u64), Body::empty())),
            Task::Visit(visit) => {
                let (visited, body) = self.visit(visit, body, cx)?;
                Ok((Report::Visited(visited), body))
            }
            Task::Sum => Ok((Report::Weight(expectations.weight()), expectations.sum(self.transition.dim()).into())),
            Task::Squares => Ok((Report::Weight(expectations.weight()), expectations.squares_about(&body)?.into())),
        }
    }
}
