//! Asynchronous SGHMC: one chain at the server, with stale gradients from the agents; the baseline for elastic coupling.
//!
//! Agents send gradients at their copy of the state. The server makes a step with the mean of O gradients. The agents behind them
//! continue, and receive the new state after every s of their gradients (Springenberg et al. 2016). With O = K and s = 1 this is SGHMC with
//! K times the batch. With gradients that are τ steps old, SGLD on U = λθ²/2 is unstable for ελ ≥ 2 sin(π/(2(2τ + 1))).

use crate::cluster::record::HISTORY;
use crate::cluster::{
    Agent, AgentId, Body, Context, Method, Order, Outbox, Progress, Raw, Response, Result, SerializesAs, Server,
};
use crate::kernels::hamiltonian::{ChainState, Scheme, SghmcDynamics};
use crate::kernels::reduce::all_finite;
use crate::methods::common::settings::{
    Length, MethodSettings, ResourceEstimate, Sharing, Table, TableMethod, at_least_one, no_draws,
};

use crate::methods::common::problem::Problem;
use crate::methods::common::scores::{ControlPoint, Estimator, Scores};
use crate::methods::common::staleness::Staleness;
use crate::methods::common::thinning::{draws, has_row};
use crate::methods::common::with_evaluation::Posterior;
use crate::methods::transitions::sghmc::Sghmc;
use crate::methods::transitions::transition::Transition;
use crate::methods::tuning::{
    DrawCount, Found, HamiltonianSteps, Lengths, NoiseNeeds, Step, TuningNeeds, VisitShare, check_ess, hamiltonian_steps,
    idle_keys, lengths,
};
use crate::number::Real;
use crate::random::{Purpose, Who};
use crate::settings::{Key, KeyError, in_range, keys};
use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

/// Steps, step size, friction, burn-in and thinning where they are not found.
const STEPS: u64 = 10_000;
const STEP: f64 = 1e-3;
const FRICTION: f64 = 50.0;
const BURN_IN: u64 = 2000;
const THIN: u64 = 10;

/// The settings of `async_sghmc`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields, default)]
pub struct AsyncSghmcSettings {
    /// Steps of the chain, which lies at the server; every agent sees all data. Default: as many as `ess` needs with `step = "auto"`,
    /// otherwise 10,000.
    pub steps: Option<u64>,
    /// Gradients per step (O). 1 waits for no agent; with as many as agents and `period = 1`, no gradient is stale.
    pub gradients: Option<u32>,
    /// Gradients that an agent computes at a state before it receives a new one (s).
    pub period: u64,
    /// Rows in a minibatch of an agent, drawn anew for every gradient; a minimum with `step = "auto"`.
    pub batch: usize,
    /// Step size (ε); its square is what others call the learning rate. `"auto"` finds it as for `sghmc`, and small enough for the staleness
    /// that agents of the same speed cause; it is 0.001 with `scheme = "semi_implicit"` or `noise = false`.
    pub step: Step,
    /// Effective sample size for which `step = "auto"` finds steps, burn-in and thinning. Models without a full matrix of curvature or
    /// with more than 2,000 parameters get a tenth of it, because their draws take more updates.
    pub ess: f64,
    /// Rate at which velocities decay (V); 1/step with `"semi_implicit"` is SGLD with steps of step². Default: 1.5 with `step = "auto"`,
    /// otherwise 50.
    pub friction: Option<f64>,
    /// Part of the friction that adds no noise (B̂), because the noise of minibatches and stale gradients heat the chain; 0 if unknown. `step
    /// = "auto"` sets it.
    pub gradient_noise: f64,
    /// Integrator: `"middle"` or `"semi_implicit"`.
    pub scheme: Scheme,
    /// `false` descends to a mode instead of sampling.
    pub noise: bool,
    /// Steps before the first draw. Default: ten relaxation times with `step = "auto"`, otherwise 2000.
    pub burn_in: Option<u64>,
    /// Keep every `thin`-th step after burn-in; 0 keeps no draws. Default: the relaxation time, in which autocorrelations fall to 1/e, with
    /// `step = "auto"`, otherwise 10.
    pub thin: Option<u64>,
}

impl Default for AsyncSghmcSettings {
    fn default() -> Self {
        let (scheme, noise) = (Scheme::default(), true);
        Self {
            steps: None,
            gradients: Some(1),
            period: 1,
            batch: 100,
            step: Step::Auto,
            ess: 1000.0,
            friction: None,
            gradient_noise: 0.0,
            scheme,
            noise,
            burn_in: None,
            thin: None,
        }
    }
}

impl AsyncSghmcSettings {
    fn dynamics(&self) -> SghmcDynamics {
        let Self { scheme, gradient_noise, noise, .. } = *self;
        let (step, friction) = (self.step.size_or(STEP), self.friction.unwrap_or(FRICTION));
        SghmcDynamics { scheme, step, friction, gradient_noise, noise }
    }

    /// Steps of the chain.
    fn steps(&self) -> u64 {
        self.steps.unwrap_or(STEPS)
    }

    /// Steps before the first draw.
    fn burn_in(&self) -> u64 {
        self.burn_in.unwrap_or(BURN_IN)
    }

    /// Steps between draws; 0 for no draws.
    fn thin(&self) -> u64 {
        self.thin.unwrap_or(THIN)
    }

    /// By how many steps gradients are stale on average, if agents have the same speed.
    fn delay(&self, agents: u32) -> f64 {
        let turns = f64::from(agents) / f64::from(self.gradients(agents));
        turns - 1.0 + 0.5 * turns * (self.period - 1) as f64
    }

    /// O, for this number of agents.
    fn gradients(&self, agents: u32) -> u32 {
        self.gradients.unwrap_or(agents)
    }
}

impl MethodSettings for AsyncSghmcSettings {
    type Data = Table;

    const NAME: &'static str = "async_sghmc";

    const SHARING: Sharing = Sharing::Replicated;

    fn keys() -> Vec<Key> {
        keys::<Self>()
    }

    fn check(&self) -> Result<(), KeyError> {
        at_least_one(&[("steps", self.steps()), ("period", self.period), ("batch", self.batch as u64)])?;
        check_ess(self.ess)?;
        let (steps, burn_in, thin) = (self.steps(), self.burn_in(), self.thin());
        let are_found = self.tuning().is_some() && [self.steps, self.burn_in, self.thin].contains(&None);
        if !are_found && thin > 0 && draws(steps, burn_in, thin) == 0 {
            return Err(no_draws(burn_in, thin, steps));
        }
        self.dynamics().check(1.0)
    }

    fn check_agents(&self, agents: u32) -> Result<(), KeyError> {
        let gradients = self.gradients(agents);
        in_range(
            "gradients",
            gradients,
            (1..=agents).contains(&gradients),
            &format!("between 1 and {agents}, the number of agents"),
        )
    }

    fn estimate(&self, agents: u32, parameters: usize) -> ResourceEstimate {
        let parameters = parameters as u64;
        ResourceEstimate {
            particles: Some(1),
            rounds: Some(self.steps()),
            draws: Some(draws(self.steps(), self.burn_in(), self.thin())),
            minibatch: Some(self.batch as u64),
            values_of_agent: Some(parameters.saturating_mul(3)),
            values_per_round: Some(parameters.saturating_mul(2 * u64::from(self.gradients(agents)))),
            ..ResourceEstimate::default()
        }
    }

    fn notes(&self, agents: u32) -> Vec<String> {
        let note = "gradients are stale, so draws are biased and long steps unstable; the table staleness of the result file shows by how \
                    many steps";
        let is_stale = self.delay(agents) > 0.0 && self.tuning().is_none();
        let mut notes = idle_keys(self.tuning().is_some(), Estimator::Plain, self.gradient_noise);
        notes.extend(is_stale.then(|| note.to_owned()));
        notes
    }

    fn tuning(&self) -> Option<TuningNeeds> {
        (self.step == Step::Auto && self.scheme == Scheme::Middle && self.noise).then_some(TuningNeeds {
            noise: Some(NoiseNeeds { batch: self.batch, share: VisitShare::ByRows, chains: Some(1) }),
            rounds: self.steps,
            draws: DrawCount::of_chains(self.ess, self.steps, self.burn_in, self.thin),
        })
    }

    fn tuned(&self, found: Found, agents: u32) -> Self {
        let Found::Noise(measured) = found else { return self.clone() };
        let HamiltonianSteps { batch, step, friction, gradient_noise, relaxation } =
            hamiltonian_steps(measured, self.batch, self.friction, self.delay(agents));
        let given = (self.burn_in, self.thin);
        let Lengths { burn_in, thin, updates } =
            lengths(relaxation, measured.draws(self.ess), 1, given).within(self.steps, given);
        Self {
            batch,
            step: Step::Size(step),
            friction: Some(friction),
            gradient_noise,
            steps: self.steps.or(Some(updates)),
            burn_in: Some(burn_in),
            thin: Some(thin),
            ..self.clone()
        }
    }

    fn length(&self, _agents: u32) -> Option<Length> {
        Some(Length { key: "steps", value: self.steps(), last_rounds: 1 })
    }

    fn method<F: Real>(&self, problem: Problem<F>) -> TableMethod<F> {
        TableMethod::chains(AsyncSghmc { problem, settings: self.clone() })
    }
}

/// Asynchronous SGHMC.
#[derive(Clone)]
pub struct AsyncSghmc<F> {
    /// The problem.
    pub problem: Problem<F>,
    /// The settings.
    pub settings: AsyncSghmcSettings,
}

impl<F: Real> Method for AsyncSghmc<F> {
    const NAME: &'static str = "async_sghmc";
    type Number = F;
    /// The number of gradients that the agent has computed before.
    type Task = u64;
    type Report = ();
    type Server = AsyncSghmcServer<F>;
    type Agent = AsyncSghmcAgent<F>;

    fn order(&self) -> Order {
        Order::Arrival
    }

    fn agents(&self) -> u32 {
        self.problem.agents
    }

    fn server(&self, saved: Option<ServerState<F>>) -> Result<AsyncSghmcServer<F>> {
        let agents = self.problem.agents as usize;
        let fresh = || ServerState {
            chain: Raw(Vec::new()),
            steps: 0,
            sum: Raw(Vec::new()),
            contributors: Vec::new(),
            computed: vec![0; agents],
            known_step: vec![0; agents],
            staleness: Staleness::default(),
        };
        Ok(AsyncSghmcServer { method: self.clone(), dim: self.problem.model.dim(), state: saved.unwrap_or_else(fresh) })
    }

    fn agent(&self, id: AgentId, saved: Option<AgentState<F>>) -> Result<AsyncSghmcAgent<F>> {
        let scores = Scores::open(&self.problem, id, self.settings.batch, Estimator::Plain)?;
        Ok(AsyncSghmcAgent { id, scores, state: saved.unwrap_or_else(|| AgentState { known: Raw(Vec::new()) }) })
    }
}

/// The server's state.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct ServerState<F: Real> {
    /// θ at which the next gradient is computed, and v.
    chain: Raw<F>,
    steps: u64,
    /// The sum of the gradients for the next step.
    sum: Raw<F>,
    /// The agents behind these gradients.
    contributors: Vec<AgentId>,
    /// The number of gradients of each agent.
    computed: Vec<u64>,
    /// The number of steps behind each agent's copy of the state.
    known_step: Vec<u64>,
    /// Staleness of gradients, in steps.
    staleness: Staleness,
}

/// Holds the chain.
pub struct AsyncSghmcServer<F: Real> {
    method: AsyncSghmc<F>,
    dim: usize,
    state: ServerState<F>,
}

impl<F: Real> AsyncSghmcServer<F> {
    /// Whether every step takes a new gradient of each agent. Then one request goes to all agents, and the order of responses is irrelevant.
    fn is_synchronous(&self) -> bool {
        let AsyncSghmc { problem, settings } = &self.method;
        settings.gradients(problem.agents) == problem.agents && settings.period == 1
    }

    /// Requests the next gradients of these agents.
    fn ask_all(&mut self, agents: Vec<AgentId>, out: &mut Outbox<AsyncSghmc<F>>) {
        if self.is_synchronous() {
            let theta = self.state.chain.0[..self.dim].to_vec();
            self.state.known_step.fill(self.state.steps);
            out.request(0..self.method.problem.agents, self.state.computed[0]).with(theta).sum();
        } else {
            agents.into_iter().for_each(|agent| self.request(agent, out));
        }
    }

    /// Requests the next gradient of an agent.
    fn request(&mut self, agent: AgentId, out: &mut Outbox<AsyncSghmc<F>>) {
        let (state, index) = (&mut self.state, agent as usize);
        let request = out.request([agent], state.computed[index]);
        if state.computed[index].is_multiple_of(self.method.settings.period) {
            state.known_step[index] = state.steps;
            request.with(state.chain.0[..self.dim].to_vec());
        }
    }

    /// Makes a step with the mean of the gradients.
    fn step(&mut self, cx: &mut Context) -> Result<()> {
        let (dim, dynamics) = (self.dim, self.method.settings.dynamics());
        let AsyncSghmc { problem, settings } = &self.method;
        let (burn_in, thin, total) = (settings.burn_in(), settings.thin(), settings.steps());
        let record = |theta: &[F], draw: u64, cx: &mut Context| {
            let mut parameters = Vec::with_capacity(dim);
            problem.model.append_parameters(theta, &mut parameters);
            cx.record("posterior", 0, draw, dim, &parameters);
        };
        let state = &mut self.state;
        let weight = F::of(1.0 / state.contributors.len() as f64);
        state.sum.0.iter_mut().for_each(|score| *score *= weight);
        let t = state.steps;
        state.steps += 1;
        let before = draws(t, burn_in, thin);
        let is_draw = draws(t + 1, burn_in, thin) > before;
        let (theta, velocity) = state.chain.0.split_at_mut(dim);
        let mut noise = cx.stream(Who::Chain(0), t + 1, Purpose::Noise);
        match dynamics.scheme {
            Scheme::SemiImplicit => {
                dynamics.step(ChainState { theta: &mut *theta, velocity, inverse_mass: None }, &state.sum.0, None, &mut noise);
                if is_draw {
                    record(theta, before, cx);
                }
            }
            Scheme::Middle => {
                if is_draw {
                    record(theta, before, cx);
                }
                let chain = ChainState { theta: &mut *theta, velocity: &mut *velocity, inverse_mass: None };
                dynamics.second_half(chain, &state.sum.0, None);
                dynamics.first_half(ChainState { theta, velocity, inverse_mass: None }, &mut noise);
            }
        }
        state.sum.0.fill(F::zero());
        if !all_finite(&state.chain.0) {
            return Err(format!("the chain has diverged by step {}: set a smaller step, or a smaller period", t + 1).into());
        }
        if has_row(t + 1, total) {
            cx.log_row(HISTORY, t + 1, [("seconds", cx.seconds()), ("steps", (t + 1) as f64)]);
        }
        if t + 1 == total {
            for (value, [gradients]) in Staleness::table([&state.staleness]) {
                cx.log_row("staleness", value, [("steps_of_others", value as f64), ("gradients", gradients as f64)]);
            }
        }
        Ok(())
    }
}

impl<F: Real> Server<AsyncSghmc<F>> for AsyncSghmcServer<F> {
    type State = ServerState<F>;

    fn state(&self) -> impl SerializesAs<ServerState<F>> {
        &self.state
    }

    fn start(&mut self, out: &mut Outbox<AsyncSghmc<F>>, cx: &mut Context) -> Result<()> {
        let AsyncSghmc { problem, settings } = &self.method;
        let dynamics = settings.dynamics();
        let transition =
            Sghmc { problem: problem.clone(), batch: settings.batch, gradient: Estimator::Plain, dynamics, preconditioner: None };
        let chain = &mut self.state.chain.0;
        chain.resize(transition.state_len(), F::zero());
        transition.draw_initial(0, &mut cx.stream(Who::Run, 0, Purpose::Initial), chain);
        let (theta, velocity) = chain.split_at_mut(self.dim);
        if settings.scheme == Scheme::Middle {
            let mut noise = cx.stream(Who::Chain(0), 0, Purpose::Noise);
            dynamics.first_half(ChainState { theta, velocity, inverse_mass: None }, &mut noise);
        }
        self.state.sum.0.resize(self.dim, F::zero());
        self.ask_all((0..self.method.problem.agents).collect(), out);
        Ok(())
    }

    fn receive(&mut self, response: Response<AsyncSghmc<F>>, out: &mut Outbox<AsyncSghmc<F>>, cx: &mut Context) -> Result<()> {
        let steps = self.method.settings.steps();
        let wanted = self.method.settings.gradients(self.method.problem.agents) as usize;
        let state = &mut self.state;
        if state.steps == steps {
            return Ok(());
        }
        for reported in response.reports {
            let index = reported.from as usize;
            state.staleness.count(state.steps - state.known_step[index]);
            state.computed[index] += 1;
            state.contributors.push(reported.from);
            if response.sum.is_empty() && reported.body.len() != self.dim {
                return Err(
                    format!("agent {index}: expected a gradient of {} values, got {}", self.dim, reported.body.len()).into()
                );
            }
            state.sum.0.iter_mut().zip(&*reported.body).for_each(|(sum, &score)| *sum += score);
        }
        if !response.sum.is_empty() {
            state.sum = Raw(response.sum.into_vec());
        }
        if state.contributors.len() == wanted {
            self.step(cx)?;
            let contributors = std::mem::take(&mut self.state.contributors);
            if self.state.steps < steps {
                self.ask_all(contributors, out);
            }
        }
        Ok(())
    }

    fn progress(&self) -> Progress {
        Progress { done: self.state.steps, total: self.method.settings.steps() }
    }
}

impl<F: Real> Posterior<F> for AsyncSghmcServer<F> {
    fn posterior(&self) -> (u64, &[F]) {
        (self.state.steps, self.state.chain.0.get(..self.dim).unwrap_or(&[]))
    }
}

/// An agent's state: its copy of θ.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct AgentState<F: Real> {
    known: Raw<F>,
}

/// Computes gradients.
pub struct AsyncSghmcAgent<F: Real> {
    id: AgentId,
    scores: Scores<F>,
    state: AgentState<F>,
}

impl<F: Real> Agent<AsyncSghmc<F>> for AsyncSghmcAgent<F> {
    type State = AgentState<F>;

    fn state(&self) -> impl SerializesAs<AgentState<F>> {
        &self.state
    }

    fn perform(&mut self, &computed: &u64, body: Body<F>, cx: &mut Context) -> Result<((), Body<F>)> {
        if !body.is_empty() {
            self.state.known = Raw(body.into_vec());
        }
        let score = self.scores.at(&ControlPoint::default(), &self.state.known.0, self.id, computed, 1.0, cx)?;
        Ok(((), score.to_vec().into()))
    }
}
