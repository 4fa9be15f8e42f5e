//! Federated averaging (FedAvg): agents optimize their own losses from common parameters, which are replaced by an average of the results.
//!
//! Every agent of a round takes L steps of the optimizer from θ on L̂_k/α alone, without a prior; each visit starts with a new optimizer
//! state. With N_k the rows of agent k and 𝒦 the agents of the round, the next θ is
//!
//! - `participants`: Σ_{k∈𝒦} N_k θ_k / Σ_{k∈𝒦} N_k (McMahan et al. 2017, arXiv 1602.05629, Algorithm 1);
//! - `total`: Σ_{k∈𝒦} (N_k/N) θ_k + (Σ_{k∉𝒦} N_k/N) θ, where N counts the rows of all agents and absent agents count as unchanged (the
//!   code of Kassab & Simeone, arXiv 2009.06419). One of K identical agents moves θ by 1/K of its own change.
//!
//! The server has no data: for `total`, agents report their rows before the first round.

use crate::cluster::{Agent, AgentId, Body, Context, Method, Outbox, Response, Result, SerializesAs, ServerState};
use crate::kernels::optimizer::{Optimizer, OptimizerState};
use crate::methods::common::participation::{Participation, log_round};
use crate::methods::common::particles::{Particles, raw};
use crate::methods::common::problem::{LocalLoss, Problem};
use crate::methods::common::rounds::{RoundServer, Rounds};
use crate::methods::common::settings::{MethodSettings, ResourceEstimate, Table, TableMethod, at_least_one};
use crate::number::Real;
use crate::settings::{Key, KeyError, keys};
use documented::DocumentedFields;
use ndarray::{Array2, ArrayView2};
use serde::{Deserialize, Serialize};

/// Federated averaging; θ is the only particle.
#[derive(Clone)]
pub struct FedAvg<F> {
    /// The model and the agents' data; its prior is not used.
    pub problem: Problem<F>,
    /// I, the number of rounds.
    pub rounds: u64,
    /// Which agents take part in a round.
    pub schedule: Participation,
    /// L, an agent's optimizer steps in a round.
    pub local_steps: u64,
    /// Rows in a minibatch.
    pub batch: usize,
    /// Optimizer of the local losses.
    pub optimizer: Optimizer,
    /// How results are averaged.
    pub weighting: Weighting,
}

/// How the agents' results are averaged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Weighting {
    /// Over the agents of the round, weighted by rows.
    #[default]
    Participants,
    /// Over all agents, weighted by rows; absent agents count as unchanged parameters.
    Total,
}

/// The settings of `fedavg`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields, default)]
pub struct FedAvgSettings {
    /// Rounds: in each, some agents optimize and their results are averaged.
    rounds: u64,
    /// Optimizer steps of an agent in a round (L).
    local_steps: u64,
    /// Rows in a minibatch of the agent.
    batch: usize,
    /// Which agents take part in a round: "all", { subset = 20 } (that many, drawn anew for each round), or one agent:
    /// "round_robin", "random_permutation" or "random".
    schedule: Participation,
    /// Average, weighted by rows, over the agents of the round ("participants") or over all agents, where absent agents count as
    /// unchanged ("total").
    weighting: Weighting,
    /// Optimizer of the local losses: { adagrad = { step = 0.05, decay = 0.9, fudge = 1e-9 } } or { plain = { step = 1e-3 } }.
    optimizer: Optimizer,
}

impl Default for FedAvgSettings {
    fn default() -> Self {
        Self {
            rounds: 10,
            local_steps: 200,
            batch: 100,
            schedule: Participation::All,
            weighting: Weighting::default(),
            optimizer: Optimizer::default(),
        }
    }
}

impl MethodSettings for FedAvgSettings {
    type Data = Table;

    const NAME: &'static str = "fedavg";

    const SAMPLES: bool = false;

    fn keys() -> Vec<Key> {
        keys::<Self>()
    }

    fn estimate(&self, agents: u32, parameters: usize) -> ResourceEstimate {
        let (parameters, visited) = (parameters as u64, u64::from(self.schedule.size(agents)));
        ResourceEstimate {
            particles: Some(1),
            rounds: Some(self.rounds),
            minibatch: Some(self.batch as u64),
            // Parameters, gradient, the optimizer's mean square.
            values_of_agent: Some(parameters.saturating_mul(3)),
            values_per_round: Some(if agents > 1 { parameters.saturating_mul(2 * visited) } else { 0 }),
            ..ResourceEstimate::default()
        }
    }

    fn check(&self) -> std::result::Result<(), KeyError> {
        let Self { rounds, local_steps, batch, .. } = *self;
        at_least_one(&[("rounds", rounds), ("local_steps", local_steps), ("batch", batch as u64)])?;
        self.schedule.check()?;
        self.optimizer.check().map_err(|error| error.below("optimizer"))
    }

    fn check_agents(&self, agents: u32) -> std::result::Result<(), KeyError> {
        self.schedule.check_agents(agents)
    }

    fn method<F: Real>(&self, problem: Problem<F>) -> TableMethod<F> {
        let Self { rounds, local_steps, batch, schedule, weighting, optimizer } = *self;
        TableMethod::particles(FedAvg { problem, rounds, schedule, local_steps, batch, optimizer, weighting })
    }
}

/// Work of an agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Task {
    /// Send the number of rows.
    CountRows,
    /// Optimize in this round, which counts from 1: send N_k θ_k followed by N_k.
    Optimize(u64),
}

impl<F: Real> Method for FedAvg<F> {
    const NAME: &'static str = "fedavg";
    type Number = F;
    type Task = Task;
    type Report = [f64; 0];
    type Server = RoundServer<Self>;
    type Agent = FedAvgAgent<F>;

    fn agents(&self) -> u32 {
        self.problem.agents
    }

    fn server(&self, saved: Option<ServerState<Self>>) -> Result<RoundServer<Self>> {
        Ok(RoundServer::new(self, &self.problem, self.rounds, saved))
    }

    fn agent(&self, id: AgentId, _: Option<()>) -> Result<FedAvgAgent<F>> {
        let local = self.problem.open(id, self.batch)?;
        Ok(FedAvgAgent { local, local_steps: self.local_steps, optimizer: self.optimizer })
    }
}

/// The server keeps N, once agents have reported their rows; [`Weighting::Participants`] does not need it.
impl<F: Real> Rounds for FedAvg<F> {
    type State = Option<f64>;

    fn start(&self, cx: &Context) -> Result<(Vec<F>, Option<f64>)> {
        Ok((raw(self.problem.initial_particles(1, cx)).0, None))
    }

    fn request(&self, parameters: &Particles<F>, total_rows: &Option<f64>, out: &mut Outbox<Self>, cx: &Context) {
        if self.weighting == Weighting::Total && total_rows.is_none() {
            out.request(0..self.problem.agents, Task::CountRows).sum();
        }
        let agents = self.schedule.agents(parameters.round, self.problem.agents, cx);
        out.request(agents, Task::Optimize(parameters.round + 1)).with(parameters.theta.0.clone()).sum();
    }

    fn update(
        &self,
        parameters: &Particles<F>,
        total_rows: &mut Option<f64>,
        response: Response<Self>,
        cx: &mut Context,
    ) -> Result<Option<Vec<F>>> {
        let (&rows, sum) = response.sum.split_last().ok_or("fedavg: agents sent an empty sum")?;
        if self.weighting == Weighting::Total && total_rows.is_none() {
            *total_rows = Some(rows.f64());
            return Ok(None);
        }
        log_round(parameters.round + 1, [], &response.reports, cx);
        let absent = total_rows.map_or(F::zero(), |total| F::of(total) - rows);
        let total = rows + absent;
        let mut theta = parameters.theta.0.clone();
        // Without any row nothing has changed.
        if total > F::zero() {
            theta.iter_mut().zip(sum).for_each(|(theta, &sum)| *theta = (sum + absent * *theta) / total);
        }
        Ok(Some(theta))
    }
}

/// Optimizes the loss of one shard; keeps nothing between rounds.
pub struct FedAvgAgent<F: Real> {
    local: LocalLoss<F>,
    local_steps: u64,
    optimizer: Optimizer,
}

impl<F: Real> Agent<FedAvg<F>> for FedAvgAgent<F> {
    type State = ();

    fn state(&self) -> impl SerializesAs<()> {
        &()
    }

    fn perform(&mut self, task: &Task, parameters: Body<F>, cx: &mut Context) -> Result<([f64; 0], Body<F>)> {
        let rows = F::of(self.local.rows() as f64);
        let Task::Optimize(round) = *task else { return Ok(([], vec![rows].into())) };
        let mut theta = parameters.into_vec();
        let mut score = Array2::zeros((1, theta.len()));
        let mut optimizer = OptimizerState::new(self.optimizer, theta.len());
        for step in (round - 1) * self.local_steps..round * self.local_steps {
            score.fill(F::zero());
            self.local.add_score(ArrayView2::from_shape(score.dim(), &theta)?, step, score.view_mut(), cx);
            optimizer.step(&mut theta, score.as_slice().ok_or("fedavg: the score is not contiguous")?);
        }
        theta.iter_mut().for_each(|theta| *theta *= rows);
        theta.push(rows);
        Ok(([], theta.into()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn invalid_settings_are_refused() {
        let parse = |text: &str| toml::from_str::<FedAvgSettings>(text);
        for fine in ["", "weighting = \"total\"\nschedule = { subset = 3 }", "schedule = \"round_robin\""] {
            assert_eq!(parse(fine).unwrap().check(), Ok(()), "{fine}");
        }
        for (bad, says) in [
            ("rounds = 0", "rounds"),
            ("local_steps = 0", "local_steps"),
            ("batch = 0", "batch"),
            ("schedule = { subset = 0 }", "at least 1"),
            ("optimizer = { plain = { step = 0.0 } }", "step"),
        ] {
            let message = parse(bad).unwrap().check().unwrap_err().to_string();
            assert!(message.contains(says), "{bad}: {message}");
        }
        assert!(parse("weighting = \"votes\"").is_err());
        assert!(parse("schedule = { subset = 5 }").unwrap().check_agents(4).unwrap_err().to_string().contains("at most 4"));
    }
}
