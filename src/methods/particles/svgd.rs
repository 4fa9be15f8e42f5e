//! Stein variational gradient descent on all data, on one agent or spread over agents.
//!
//! θ_n ← θ_n + ε φ_n(Θ) with the target's score s(θ) = ∇log p0(θ) − Σ_k ∇L̂_k(θ)/α (Liu & Wang 2016; Kassab & Simeone,
//! arXiv 2009.06419, eq. 8). Every agent holds all particles and estimates the loss of its own shard; the estimates are summed in
//! agent order, straight to all agents, and each takes the same step. With one agent the sum never leaves it, and a round of steps is
//! a single task.

use crate::cluster::record::HISTORY;
use crate::cluster::{Agent, AgentId, Body, Context, Method, Outbox, Progress, Raw, Response, Result, SerializesAs, Server};
use crate::kernels::adagrad::Optimizer;
use crate::kernels::kde::Kde;
use crate::kernels::rbf::Bandwidth;
use crate::kernels::svgd::{Settings, SvgdLoop};
use crate::methods::common::settings::{MethodSettings, ResourceEstimate, Table, TableMethod, at_least_one};

use crate::methods::common::particles::{Particles, raw};
use crate::methods::common::problem::{LocalLoss, Problem};
use crate::methods::common::with_evaluation::Posterior;
use crate::number::Real;
use crate::settings::{Key, keys};
use documented::DocumentedFields;
use ndarray::{Array2, ArrayView2, ArrayViewMut2};
use serde::{Deserialize, Serialize};

/// SVGD over K agents.
#[derive(Clone)]
pub struct Svgd<F> {
    /// What is inferred.
    pub problem: Problem<F>,
    /// N.
    pub particles: usize,
    /// Rounds of steps: what is evaluated and logged; the optimiser starts afresh with each, as it does in DSVGD.
    pub rounds: u64,
    /// Steps in a round.
    pub steps: u64,
    /// Rows in a minibatch, over all agents.
    pub batch: usize,
    /// Kernel and optimiser.
    pub stein: Settings,
}

/// The settings of `svgd`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields, default)]
pub struct SvgdSettings {
    /// N.
    particles: usize,
    /// Rounds of steps; the particles are evaluated after each.
    rounds: u64,
    /// Steps in a round; the optimiser starts afresh with each round.
    steps: u64,
    /// Rows in a minibatch, over all agents.
    batch: usize,
    /// The bandwidth h of the kernel.
    bandwidth: Bandwidth,
    /// How a direction becomes a step.
    optimizer: Optimizer,
}

impl Default for SvgdSettings {
    fn default() -> Self {
        let (bandwidth, optimizer) = (Bandwidth::default(), Optimizer::default());
        Self { particles: 20, rounds: 10, steps: 200, batch: 100, bandwidth, optimizer }
    }
}

impl SvgdSettings {
    fn stein(&self) -> Settings {
        Settings::rbf(self.bandwidth, self.optimizer, Kde::default())
    }
}

impl MethodSettings for SvgdSettings {
    type Data = Table;

    const NAME: &'static str = "svgd";

    fn keys() -> Vec<Key> {
        keys::<Self>()
    }

    fn estimate(&self, agents: u32, parameters: usize) -> ResourceEstimate {
        let (particles, others) = (self.particles as u64, u64::from(agents.saturating_sub(1)));
        let set = particles.saturating_mul(parameters as u64);
        ResourceEstimate {
            particles: Some(particles),
            rounds: Some(self.rounds),
            minibatch: Some((self.batch as u64).div_ceil(u64::from(agents.max(1)))),
            // Particles, score, direction, and the optimiser's mean square; distances between particles.
            values_of_agent: Some(set.saturating_mul(4).saturating_add(particles.saturating_mul(particles))),
            // Slices of the sum to the ranks that add them, and back from there to all.
            values_per_round: Some(set.saturating_mul(2 * others).saturating_mul(self.steps)),
            ..ResourceEstimate::default()
        }
    }

    fn check(&self) -> Result<(), String> {
        let Self { particles, rounds, steps, batch, .. } = *self;
        at_least_one(&[("particles", particles as u64), ("rounds", rounds), ("steps", steps), ("batch", batch as u64)])?;
        self.stein().check().map_err(|error| error.to_string())
    }

    fn method<F: Real>(&self, problem: Problem<F>) -> TableMethod<F> {
        let Self { particles, rounds, steps, batch, .. } = *self;
        TableMethod::particles(Svgd { problem, particles, rounds, steps, batch, stein: self.stein() })
    }
}

/// What an agent is asked to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Task {
    /// One agent alone: a whole round.
    Round(u64),
    /// Estimate the score of step `step` (counted over all rounds), after the step that the handed score allows; `fresh` begins a
    /// round, which is handed nothing.
    Estimate {
        /// The step.
        step: u64,
        /// Whether a round begins.
        fresh: bool,
    },
    /// Take the last step of a round; the first agent sends the particles.
    Finish(u64),
}

/// What the last step of a task told.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    round: Option<u64>,
    bandwidth: f64,
    mean_kernel: f64,
}

impl<F: Real> Method for Svgd<F> {
    const NAME: &'static str = "svgd";
    type Number = F;
    type Task = Task;
    type Report = Report;
    type Server = SvgdServer<F>;
    type Agent = SvgdAgent<F>;

    fn agents(&self) -> u32 {
        self.problem.agents
    }

    fn server(&self, saved: Option<Particles<F>>) -> Result<SvgdServer<F>> {
        Ok(SvgdServer {
            agents: self.problem.agents,
            rounds: self.rounds,
            steps: self.steps,
            dim: self.problem.model.dim(),
            state: saved.unwrap_or_default(),
        })
    }

    fn agent(&self, id: AgentId, saved: Option<AgentState<F>>) -> Result<SvgdAgent<F>> {
        let (particles, dim) = (self.particles, self.problem.model.dim());
        let share = self.batch.div_ceil(self.problem.agents as usize);
        Ok(SvgdAgent {
            id,
            steps: self.steps,
            local: self.problem.open(id, share)?,
            problem: self.problem.clone(),
            shape: (particles, dim),
            score: Array2::zeros((particles, dim)),
            stein: SvgdLoop::new(particles, dim, self.stein),
            state: saved.unwrap_or(AgentState { theta: Raw(Vec::new()) }),
        })
    }
}

/// Posts the rounds and keeps the latest particles.
pub struct SvgdServer<F: Real> {
    agents: u32,
    rounds: u64,
    steps: u64,
    dim: usize,
    state: Particles<F>,
}

impl<F: Real> SvgdServer<F> {
    /// A round is posted whole: a run at rest is then always between rounds, where the optimiser has nothing to remember.
    fn post(&self, out: &mut Outbox<Svgd<F>>) {
        let round = self.state.round;
        if round == self.rounds {
            return;
        }
        if self.agents == 1 {
            out.request([0], Task::Round(round));
            return;
        }
        let all = 0..self.agents;
        for step in round * self.steps..(round + 1) * self.steps {
            let fresh = step == round * self.steps;
            let request = out.request(all.clone(), Task::Estimate { step, fresh }).sum_to(all.clone());
            if !fresh {
                request.with_transfer();
            }
        }
        out.request(all, Task::Finish(round)).with_transfer();
    }
}

impl<F: Real> Server<Svgd<F>> for SvgdServer<F> {
    type State = Particles<F>;

    fn state(&self) -> impl SerializesAs<Particles<F>> {
        &self.state
    }

    fn start(&mut self, out: &mut Outbox<Svgd<F>>, _cx: &mut Context) -> Result<()> {
        self.post(out);
        Ok(())
    }

    fn receive(&mut self, response: Response<Svgd<F>>, out: &mut Outbox<Svgd<F>>, cx: &mut Context) -> Result<()> {
        let Some(first) = response.reports.into_iter().next() else { return Ok(()) };
        if let Some(round) = first.report.round {
            let columns =
                [("seconds", cx.seconds()), ("bandwidth", first.report.bandwidth), ("mean_kernel", first.report.mean_kernel)];
            cx.log_row(HISTORY, round + 1, columns);
            self.state.end_round(first.body.into_vec(), self.dim, self.rounds, cx);
            self.post(out);
        }
        Ok(())
    }

    fn progress(&self) -> Progress {
        self.state.progress(self.rounds)
    }
}

impl<F: Real> Posterior<F> for SvgdServer<F> {
    fn posterior(&self) -> (u64, &[F]) {
        self.state.posterior()
    }
}

/// Holds all particles and one shard.
pub struct SvgdAgent<F: Real> {
    id: AgentId,
    steps: u64,
    local: LocalLoss<F>,
    problem: Problem<F>,
    /// N and d.
    shape: (usize, usize),
    score: Array2<F>,
    stein: SvgdLoop<F>,
    state: AgentState<F>,
}

/// The particles (N × d); none before the first round.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct AgentState<F: Real> {
    theta: Raw<F>,
}

impl<F: Real> SvgdAgent<F> {
    fn begin(&mut self, cx: &Context) -> Result<()> {
        if self.state.theta.0.is_empty() {
            self.state.theta = raw(self.problem.initial_particles(self.shape.0, cx));
        }
        let theta = ArrayView2::from_shape(self.shape, &self.state.theta.0)?;
        self.stein.begin(theta, &[]);
        Ok(())
    }

    /// This agent's part of the score at the particles; the first agent adds the prior for all.
    fn estimate(&mut self, step: u64, cx: &Context) -> Result<()> {
        let theta = ArrayView2::from_shape(self.shape, &self.state.theta.0)?;
        if self.id == 0 {
            self.local.prior_score(theta, self.score.view_mut());
        } else {
            self.score.fill(F::zero());
        }
        self.local.add_score(theta, step, self.score.view_mut(), cx);
        Ok(())
    }

    /// One step along the direction of this score (N × d).
    fn advance(stein: &mut SvgdLoop<F>, state: &mut AgentState<F>, score: ArrayView2<F>) -> Result<Report> {
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
        let quiet = Report { round: None, bandwidth: f64::NAN, mean_kernel: f64::NAN };
        match *task {
            Task::Round(round) => {
                self.begin(cx)?;
                let mut report = quiet;
                for step in round * self.steps..(round + 1) * self.steps {
                    self.estimate(step, cx)?;
                    report = Self::advance(&mut self.stein, &mut self.state, self.score.view())?;
                }
                Ok((Report { round: Some(round), ..report }, self.state.theta.0.clone().into()))
            }
            Task::Estimate { step, fresh } => {
                let report = if fresh {
                    self.begin(cx)?;
                    quiet
                } else {
                    Self::advance(&mut self.stein, &mut self.state, ArrayView2::from_shape(self.shape, &body)?)?
                };
                self.estimate(step, cx)?;
                Ok((report, self.score.iter().copied().collect::<Vec<F>>().into()))
            }
            Task::Finish(round) => {
                let report = Self::advance(&mut self.stein, &mut self.state, ArrayView2::from_shape(self.shape, &body)?)?;
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
            let message = check(&format!("{name} = 0")).unwrap_err();
            assert!(message.contains(name), "{message}");
        }
    }
}
