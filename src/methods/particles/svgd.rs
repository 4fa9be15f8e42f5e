//! Stein variational gradient descent (SVGD) on all data, on one agent or distributed over agents.
//!
//! θ_n ← θ_n + ε φ_n(Θ), where the direction φ_n is that of [`kernels::svgd`](crate::kernels::svgd) for the score
//! s(θ) = ∇log p0(θ) − Σ_k ∇L̂_k(θ)/α (Liu & Wang 2016; Kassab & Simeone, arXiv 2009.06419, eq. 8); L̂_k is the loss of agent k,
//! estimated from a minibatch, and α the temperature. Every agent holds all particles and estimates the score of its own shard; the
//! estimates are summed in agent order, the sum is sent straight to all agents, and each takes the same step. With one agent nothing is
//! sent, and a round of steps is a single task.

use super::defaults;
use crate::cluster::record::HISTORY;
use crate::cluster::{Agent, AgentId, Body, Context, Method, Outbox, Raw, Response, Result, SerializesAs, ServerState};
use crate::kernels::kde::Kde;
use crate::kernels::optimizer::Optimizer;
use crate::kernels::rbf::Bandwidth;
use crate::kernels::svgd::{Settings, SvgdLoop};
use crate::methods::common::particles::{Particles, raw};
use crate::methods::common::problem::Problem;
use crate::methods::common::rounds::{RoundServer, Rounds};
use crate::methods::common::settings::{MethodSettings, ResourceEstimate, Table, TableMethod, at_least_one};
use crate::methods::common::shard_scores::ShardScores;
use crate::methods::tuning::{Found, TuningNeeds};
use crate::number::Real;
use crate::settings::{Key, KeyError, keys};
use documented::DocumentedFields;
use ndarray::{Array2, ArrayView2, ArrayViewMut2};
use serde::{Deserialize, Serialize};

/// SVGD over K agents.
#[derive(Clone)]
pub struct Svgd<F> {
    /// The model and the agents' data.
    pub problem: Problem<F>,
    /// N, the number of particles.
    pub particles: usize,
    /// Rounds of steps. The particles can be evaluated after each round; each round starts with a new optimizer state, as in DSVGD.
    pub rounds: u64,
    /// Steps in a round.
    pub steps: u64,
    /// Rows in a minibatch, over all agents.
    pub batch: usize,
    /// Kernel and optimizer.
    pub stein: Settings,
}

/// The settings of `svgd`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields, default)]
pub struct SvgdSettings {
    /// Number of particles that represent the posterior (N). Default: three for each parameter, at least 500 and at most 1000, if `whitened`; otherwise 20.
    particles: Option<usize>,
    /// Rounds of steps. The particles can be evaluated after each round.
    rounds: u64,
    /// Steps in a round. Each round starts with a new optimizer state.
    steps: u64,
    /// Rows in a minibatch, over all agents together.
    batch: usize,
    /// Bandwidth h of the kernel: "repository" (as in the authors' code: the median of all squared distances, divided by log(N + 1)), "paper" (Liu & Wang 2016) or
    /// { fixed = 1.0 }. Default: 20 times the number of parameters if `whitened`, otherwise "repository".
    bandwidth: Option<Bandwidth>,
    /// Whether particles move in coordinates in which the posterior is close to a standard normal distribution, for models with a full matrix of
    /// curvature and at most 2,000 parameters. The mode is found before the run, and scores of minibatches have a control variate at the mode.
    whitened: bool,
    /// Optimizer of the particles: { adagrad = { step = 0.05, decay = 0.9, fudge = 1e-9 } } or { plain = { step = 1e-3 } }.
    optimizer: Optimizer,
}

impl Default for SvgdSettings {
    fn default() -> Self {
        let (particles, bandwidth, optimizer) = (None, None, Optimizer::default());
        Self { particles, rounds: 10, steps: 200, batch: 100, bandwidth, whitened: true, optimizer }
    }
}

impl SvgdSettings {
    fn particles(&self, is_whitened: bool, parameters: usize) -> usize {
        defaults::particles(self.particles, is_whitened, parameters)
    }

    fn stein(&self, is_whitened: bool, parameters: usize) -> Settings {
        let bandwidth = defaults::bandwidth(self.bandwidth, is_whitened, parameters);
        Settings::rbf(bandwidth, self.optimizer, Kde::default())
    }
}

impl MethodSettings for SvgdSettings {
    type Data = Table;

    const NAME: &'static str = "svgd";

    fn keys() -> Vec<Key> {
        keys::<Self>()
    }

    fn estimate(&self, agents: u32, parameters: usize) -> ResourceEstimate {
        let (particles, others) = (self.particles(self.whitened, parameters) as u64, u64::from(agents.saturating_sub(1)));
        let values = particles.saturating_mul(parameters as u64);
        ResourceEstimate {
            particles: Some(particles),
            rounds: Some(self.rounds),
            minibatch: Some((self.batch as u64).div_ceil(u64::from(agents.max(1)))),
            // Particles, score, direction, and the optimizer's mean square; distances between particles.
            values_of_agent: Some(values.saturating_mul(4).saturating_add(particles.saturating_mul(particles))),
            // In each step, slices of the scores go to the ranks that add them, and the sums from there to all ranks.
            values_per_round: Some(values.saturating_mul(2 * others).saturating_mul(self.steps)),
            ..ResourceEstimate::default()
        }
    }

    fn tuning(&self) -> Option<TuningNeeds> {
        TuningNeeds::coordinates(self.whitened, self.rounds)
    }

    fn tuned(&self, found: Found, _agents: u32) -> Self {
        Self { whitened: found != Found::Nothing, ..self.clone() }
    }

    fn check(&self) -> Result<(), KeyError> {
        let Self { rounds, steps, batch, .. } = *self;
        // The number of parameters is not known yet. What is checked does not depend on it.
        let particles = self.particles(self.whitened, 1) as u64;
        at_least_one(&[("particles", particles), ("rounds", rounds), ("steps", steps), ("batch", batch as u64)])?;
        self.stein(self.whitened, 1).check()
    }

    fn method<F: Real>(&self, problem: Problem<F>) -> TableMethod<F> {
        let Self { rounds, steps, batch, .. } = *self;
        let (is_whitened, dim) = (problem.model.whitening().is_some(), problem.model.dim());
        let (particles, stein) = (self.particles(is_whitened, dim), self.stein(is_whitened, dim));
        TableMethod::particles(Svgd { problem, particles, rounds, steps, batch, stein })
    }
}

/// Work of an agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Task {
    /// With one agent: all steps of a round.
    Round(u64),
    /// Take the previous step with the transferred sum of scores, then estimate the score of step `step`, which counts over all rounds.
    Estimate {
        /// The step whose score is estimated.
        step: u64,
        /// Whether this is the first step of a round: nothing is transferred then.
        first: bool,
    },
    /// Take the last step of a round. The first agent sends the particles.
    Finish(u64),
}

/// Kernel statistics of the last step of a task.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// The round, if the task has ended it.
    round: Option<u64>,
    bandwidth: f64,
    mean_kernel: f64,
}

impl<F: Real> Method for Svgd<F> {
    const NAME: &'static str = "svgd";
    type Number = F;
    type Task = Task;
    type Report = Report;
    type Server = RoundServer<Self>;
    type Agent = SvgdAgent<F>;

    fn agents(&self) -> u32 {
        self.problem.agents
    }

    fn server(&self, saved: Option<ServerState<Self>>) -> Result<RoundServer<Self>> {
        Ok(RoundServer::new(self, &self.problem, self.rounds, saved))
    }

    fn agent(&self, id: AgentId, saved: Option<AgentState<F>>) -> Result<SvgdAgent<F>> {
        let (particles, dim) = (self.particles, self.problem.model.dim());
        let batch = self.batch.div_ceil(self.problem.agents as usize);
        Ok(SvgdAgent {
            id,
            steps: self.steps,
            local: ShardScores::open(&self.problem, id, batch)?,
            problem: self.problem.clone(),
            shape: (particles, dim),
            score: Array2::zeros((particles, dim)),
            stein: SvgdLoop::new(particles, dim, self.stein),
            state: saved.unwrap_or(AgentState { theta: Raw(Vec::new()) }),
        })
    }
}

/// The server has no particles before the first round: agents draw them.
impl<F: Real> Rounds for Svgd<F> {
    type State = ();

    fn start(&self, _: &Context) -> Result<(Vec<F>, ())> {
        Ok((Vec::new(), ()))
    }

    /// With all steps of a round requested at once, checkpoints are always between rounds, where the optimizer has no state.
    fn request(&self, particles: &Particles<F>, (): &(), out: &mut Outbox<Self>, _: &Context) {
        let (round, all) = (particles.round, 0..self.problem.agents);
        if self.problem.agents == 1 {
            out.request([0], Task::Round(round));
            return;
        }
        for step in round * self.steps..(round + 1) * self.steps {
            let first = step == round * self.steps;
            let request = out.request(all.clone(), Task::Estimate { step, first }).sum_to(all.clone());
            if !first {
                request.with_transfer();
            }
        }
        out.request(all, Task::Finish(round)).with_transfer();
    }

    fn update(&self, _: &Particles<F>, (): &mut (), response: Response<Self>, cx: &mut Context) -> Result<Option<Vec<F>>> {
        let Some(agent) = response.reports.into_iter().next() else { return Ok(None) };
        let Report { round: Some(round), bandwidth, mean_kernel } = agent.report else { return Ok(None) };
        let columns = [("seconds", cx.seconds()), ("bandwidth", bandwidth), ("mean_kernel", mean_kernel)];
        cx.log_row(HISTORY, round + 1, columns);
        Ok(Some(agent.body.into_vec()))
    }
}

/// Holds all particles and one shard.
pub struct SvgdAgent<F: Real> {
    id: AgentId,
    steps: u64,
    local: ShardScores<F>,
    problem: Problem<F>,
    /// N and d.
    shape: (usize, usize),
    score: Array2<F>,
    stein: SvgdLoop<F>,
    state: AgentState<F>,
}

/// The particles (N × d); empty before the first round.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct AgentState<F: Real> {
    theta: Raw<F>,
}

impl<F: Real> SvgdAgent<F> {
    /// Starts a round with a new optimizer state.
    fn start_round(&mut self, cx: &Context) -> Result<()> {
        if self.state.theta.0.is_empty() {
            self.state.theta = raw(self.problem.initial_particles(self.shape.0, cx));
        }
        let theta = ArrayView2::from_shape(self.shape, &self.state.theta.0)?;
        self.stein.begin(theta, &[]);
        Ok(())
    }

    /// Estimates this agent's part of the score at the particles; the first agent adds the prior.
    fn estimate(&mut self, step: u64, cx: &Context) -> Result<()> {
        let theta = ArrayView2::from_shape(self.shape, &self.state.theta.0)?;
        if self.id == 0 {
            self.problem.model.prior_score(theta, self.score.view_mut());
        } else {
            self.score.fill(F::zero());
        }
        self.local.add_score(theta, step, self.score.view_mut(), cx);
        Ok(())
    }

    /// Takes one step with this score (N × d).
    fn step(stein: &mut SvgdLoop<F>, state: &mut AgentState<F>, score: ArrayView2<F>) -> Result<Report> {
        let theta = ArrayViewMut2::from_shape(score.dim(), &mut state.theta.0)?;
        let step = stein.step(Some(score), Some(theta));
        Ok(Report { round: None, bandwidth: step.bandwidth, mean_kernel: step.mean_kernel })
    }
}

impl<F: Real> Agent<Svgd<F>> for SvgdAgent<F> {
    type State = AgentState<F>;

    fn state(&self) -> impl SerializesAs<AgentState<F>> {
        &self.state
    }

    fn perform(&mut self, task: &Task, body: Body<F>, cx: &mut Context) -> Result<(Report, Body<F>)> {
        let no_step = Report { round: None, bandwidth: f64::NAN, mean_kernel: f64::NAN };
        match *task {
            Task::Round(round) => {
                self.start_round(cx)?;
                let mut report = no_step;
                for step in round * self.steps..(round + 1) * self.steps {
                    self.estimate(step, cx)?;
                    report = Self::step(&mut self.stein, &mut self.state, self.score.view())?;
                }
                Ok((Report { round: Some(round), ..report }, self.state.theta.0.clone().into()))
            }
            Task::Estimate { step, first } => {
                let report = if first {
                    self.start_round(cx)?;
                    no_step
                } else {
                    Self::step(&mut self.stein, &mut self.state, ArrayView2::from_shape(self.shape, &body)?)?
                };
                self.estimate(step, cx)?;
                Ok((report, self.score.iter().copied().collect::<Vec<F>>().into()))
            }
            Task::Finish(round) => {
                let report = Self::step(&mut self.stein, &mut self.state, ArrayView2::from_shape(self.shape, &body)?)?;
                let theta = if self.id == 0 { self.state.theta.0.clone() } else { Vec::new() };
                Ok((Report { round: Some(round), ..report }, theta.into()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn counts_of_zero_are_refused() {
        let check = |text: &str| toml::from_str::<SvgdSettings>(text).unwrap().check();
        assert_eq!(check(""), Ok(()));
        for name in ["particles", "rounds", "steps", "batch"] {
            let message = check(&format!("{name} = 0")).unwrap_err().to_string();
            assert!(message.contains(name), "{message}");
        }
    }
}
