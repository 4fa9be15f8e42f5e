//! Federated averaging: agents optimise their own losses from common parameters, whose next values are an average of the results.
//!
//! Every agent of a round takes L steps of the optimiser, whose state is fresh with each visit, from θ on L̂_k/α alone: no prior. With N_k
//! the rows of agent k and 𝒦 the agents of the round, the next θ is
//!
//! - `participants`: Σ_{k∈𝒦} N_k θ_k / Σ_{k∈𝒦} N_k (McMahan et al. 2017, arXiv 1602.05629, Algorithm 1);
//! - `total`: Σ_{k∈𝒦} (N_k/N) θ_k + (Σ_{k∉𝒦} N_k/N) θ, N the rows of all agents: absent agents vote for what was (the code of Kassab &
//!   Simeone, arXiv 2009.06419). One of K like agents moves θ by 1/K of its own way.
//!
//! The server has no data: for `total`, agents tell their rows before the first round.

use crate::cluster::{AgentId, Body, Context, Raw, Result};
use crate::kernels::adagrad::{AdaGrad, Optimizer};
use crate::methods::common::federated::{Client, ClientState, Federated, Global, Responses, Strategy};
use crate::methods::common::kind::{Launcher, MethodKind, Needs, at_least_one};
use crate::methods::common::participation::Participation;
use crate::methods::common::particles::raw;
use crate::methods::common::problem::{LocalLoss, Problem};
use crate::number::Real;
use ndarray::{Array2, ArrayView2};
use serde::{Deserialize, Serialize};

/// Federated averaging, as a strategy of [`Federated`]; θ is the only particle.
#[derive(Clone, Debug)]
pub struct FedAvg {
    /// L, an agent's steps in a round.
    pub local_steps: u64,
    /// Rows in a minibatch.
    pub batch: usize,
    /// How a gradient becomes a step.
    pub optimizer: Optimizer,
    /// How results are averaged.
    pub weighting: Weighting,
}

/// How results are averaged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Weighting {
    /// Over the agents of the round, by rows.
    #[default]
    Participants,
    /// Over all agents, by rows; those that take no part stand for θ as it was.
    Total,
}

/// The settings of `fedavg`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FedAvgSettings {
    /// I.
    rounds: u64,
    /// L, an agent's steps in a round.
    local_steps: u64,
    /// Rows in a minibatch.
    batch: usize,
    /// Who takes part in a round.
    schedule: Participation,
    /// How results are averaged.
    weighting: Weighting,
    /// How a gradient becomes a step.
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

impl MethodKind for FedAvgSettings {
    const NAME: &'static str = "fedavg";

    const DOCS: &'static [(&'static str, &'static str)] = &[
        ("rounds", "rounds: in each, some agents optimise and their results are averaged"),
        ("local_steps", "L, an agent's steps in a round"),
        ("batch", "rows in a minibatch of the agent"),
        ("schedule", Participation::ANY),
        (
            "weighting",
            "average by rows over the agents of the round (\"participants\"), or over all, where those absent stand for no change (\"total\")",
        ),
        ("optimizer", Optimizer::DOCS),
    ];

    fn needs(&self, agents: u32, parameters: usize) -> Needs {
        let (parameters, visited) = (parameters as u64, u64::from(self.schedule.size(agents)));
        Needs {
            particles: Some(1),
            rounds: Some(self.rounds),
            minibatch: Some(self.batch as u64),
            // Parameters, gradient, the optimiser's mean square.
            numbers_of_agent: Some(parameters.saturating_mul(3)),
            numbers_per_round: Some(if agents > 1 { parameters.saturating_mul(2 * visited) } else { 0 }),
            ..Needs::default()
        }
    }

    fn check(&self) -> std::result::Result<(), String> {
        let Self { rounds, local_steps, batch, .. } = *self;
        at_least_one(&[("rounds", rounds), ("local_steps", local_steps), ("batch", batch as u64)])?;
        self.schedule.check()?;
        self.optimizer.check().map_err(|error| error.to_string())
    }

    fn check_for(&self, agents: u32) -> std::result::Result<(), String> {
        self.schedule.check_for(agents)
    }

    fn launch<F: Real, L: Launcher<F>>(&self, problem: Problem<F>, launcher: L) -> L::Outcome {
        let Self { local_steps, batch, optimizer, weighting, .. } = *self;
        let method = FedAvg { local_steps, batch, optimizer, weighting };
        Federated::launch(problem, self.rounds, self.schedule, method, launcher)
    }
}

impl<F: Real> Strategy<F> for FedAvg {
    fn start(&self, problem: &Problem<F>, cx: &Context) -> Result<Global<F>> {
        Ok(Global::initial(raw(problem.initial_particles(1, cx)).0))
    }

    fn prepares(&self) -> bool {
        self.weighting == Weighting::Total
    }

    fn prepare(&self, global: &mut Global<F>, sum: Body<F>) -> Result<()> {
        let rows = sum.first().ok_or("agents told no rows")?;
        global.sums = Raw(vec![rows.f64()]);
        Ok(())
    }

    fn message(&self, global: &Global<F>) -> Vec<F> {
        global.theta.0.clone()
    }

    fn adds_up(&self) -> bool {
        true
    }

    /// Of Σ N_k θ_k, and Σ N_k behind it.
    fn aggregate(&self, global: &mut Global<F>, responses: Responses<F>, _: &Problem<F>, _: &mut Context) -> Result<()> {
        let sum = responses.only()?;
        let Some((rows, results)) = sum.split_last() else { return Err("agents answered nothing".into()) };
        let absent = match (self.weighting, global.sums.0.first()) {
            (Weighting::Participants, _) => F::zero(),
            (Weighting::Total, Some(&all)) => F::of(all) - *rows,
            (Weighting::Total, None) => return Err("agents have not told their rows".into()),
        };
        let all = *rows + absent;
        // Nobody has a row: nobody has moved.
        if all > F::zero() {
            for (theta, &result) in global.theta.0.iter_mut().zip(results) {
                *theta = (result + absent * *theta) / all;
            }
        }
        Ok(())
    }

    fn client(&self, problem: &Problem<F>, agent: AgentId, state: ClientState<F>) -> Result<Box<dyn Client<F>>> {
        Ok(Box::new(Learner { local: problem.open(agent, self.batch)?, method: self.clone(), state }))
    }
}

/// Holds a shard, and keeps nothing between rounds.
struct Learner<F: Real> {
    local: LocalLoss<F>,
    method: FedAvg,
    state: ClientState<F>,
}

impl<F: Real> Client<F> for Learner<F> {
    fn state(&self) -> &ClientState<F> {
        &self.state
    }

    fn respond(&mut self, round: u64, message: Body<F>, cx: &mut Context) -> Result<(Vec<f64>, Body<F>)> {
        let rows = F::of(self.local.rows() as f64);
        let Some(before) = round.checked_sub(1) else { return Ok((Vec::new(), vec![rows].into())) };
        let mut theta = message.into_vec();
        let FedAvg { local_steps, optimizer, .. } = self.method;
        let mut descent = Array2::zeros((1, theta.len()));
        let mut state = AdaGrad::new(optimizer, theta.len());
        for step in before * local_steps..(before + 1) * local_steps {
            descent.fill(F::zero());
            self.local.add_score(ArrayView2::from_shape(descent.dim(), &theta)?, step, descent.view_mut(), cx);
            state.step(&mut theta, descent.as_slice().ok_or("a gradient is a row")?);
        }
        theta.iter_mut().for_each(|theta| *theta *= rows);
        theta.push(rows);
        Ok((Vec::new(), theta.into()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn settings_that_cannot_be_run_are_refused() {
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
            let message = parse(bad).unwrap().check().unwrap_err();
            assert!(message.contains(says), "{bad}: {message}");
        }
        assert!(parse("weighting = \"votes\"").is_err());
        assert!(parse("schedule = { subset = 5 }").unwrap().check_for(4).unwrap_err().contains("at most 4"));
    }
}
