//! FedProx as a method of one's own, with the whole command line: the listing of CONTRIBUTING.md.
//!
//! `cargo run --release --example fedprox -- run my.toml`, where `my.toml` says `[method] name = "fedprox"`; also under `mpirun`.

#![allow(missing_docs)]

// listing: begin
use mpibayes::cluster::{Agent, AgentId, Body, Context, Method, Outbox, Progress, Raw, Response, Result, SerializesAs, Server};
use mpibayes::methods::{LocalLoss, MethodSettings, Particles, Posterior, Problem, Table, TableMethod, at_least_one};
use mpibayes::number::Real;
use mpibayes::settings::{KeyError, in_range};
use ndarray::{Array2, ArrayView2, ArrayViewMut2};
use serde::{Deserialize, Serialize};

/// FedProx (Li et al. 2020, arXiv 1812.06127): every agent takes a few gradient steps from the common weights θ on the mean loss of its
/// own rows and μ/2 · ‖θ_k − θ‖², which keeps it near; the next θ is the mean of their results, weighted by rows: θ ← Σ_k n_k/n · θ_k.
pub struct FedProx<F> {
    problem: Problem<F>,
    settings: FedProxSettings,
}

/// The keys of `[method]` in a run file.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FedProxSettings {
    rounds: u64,
    steps: u64,
    rate: f64,
    batch: usize,
    /// μ; without it this is federated averaging.
    proximal: f64,
}

impl Default for FedProxSettings {
    fn default() -> Self {
        Self { rounds: 20, steps: 50, rate: 0.1, batch: 100, proximal: 0.1 }
    }
}

impl MethodSettings for FedProxSettings {
    type Data = Table;

    const NAME: &'static str = "fedprox";

    fn check(&self) -> std::result::Result<(), KeyError> {
        let Self { rounds, batch, rate, proximal, .. } = *self;
        at_least_one(&[("rounds", rounds), ("batch", batch as u64)])?;
        in_range("rate", rate, rate > 0.0, "positive")?;
        in_range("proximal", proximal, proximal >= 0.0, "0 or positive")
    }

    fn method<F: Real>(&self, problem: Problem<F>) -> TableMethod<F> {
        TableMethod::particles(FedProx { problem, settings: self.clone() })
    }
}

impl<F: Real> Method for FedProx<F> {
    const NAME: &'static str = "fedprox";
    type Number = F;
    /// The round.
    type Task = u64;
    type Report = ();
    type Server = Average<F>;
    type Agent = Learner<F>;

    fn agents(&self) -> u32 {
        self.problem.agents
    }

    fn server(&self, saved: Option<Particles<F>>) -> Result<Average<F>> {
        Ok(Average { problem: self.problem.clone(), rounds: self.settings.rounds, state: saved.unwrap_or_default() })
    }

    fn agent(&self, id: AgentId, _saved: Option<()>) -> Result<Learner<F>> {
        Ok(Learner { local: self.problem.open(id, self.settings.batch)?, settings: self.settings.clone() })
    }
}

pub struct Average<F: Real> {
    problem: Problem<F>,
    rounds: u64,
    /// The weights, as the only particle.
    state: Particles<F>,
}

impl<F: Real> Average<F> {
    /// Sends the weights to all agents; the sum of what they report comes back.
    fn post(&self, out: &mut Outbox<FedProx<F>>) {
        if self.state.round < self.rounds {
            out.request(0..self.problem.agents, self.state.round).with(self.state.theta.0.clone()).sum();
        }
    }
}

impl<F: Real> Server<FedProx<F>> for Average<F> {
    type State = Particles<F>;

    fn state(&self) -> impl SerializesAs<Particles<F>> {
        &self.state
    }

    fn start(&mut self, out: &mut Outbox<FedProx<F>>, cx: &mut Context) -> Result<()> {
        self.state = Particles::initial(self.problem.initial_particles(1, cx));
        self.post(out);
        Ok(())
    }

    fn receive(&mut self, response: Response<FedProx<F>>, out: &mut Outbox<FedProx<F>>, cx: &mut Context) -> Result<()> {
        let mut theta = response.sum.into_vec();
        let rows = theta.pop().ok_or("the sum is empty")?;
        theta.iter_mut().for_each(|weight| *weight /= rows);
        self.state = Particles { round: self.state.round + 1, theta: Raw(theta) };
        cx.log_row("history", self.state.round, [("seconds", cx.seconds())]);
        if self.state.round == self.rounds {
            cx.record("posterior", 0, 0, self.state.theta.0.len(), &self.state.theta.0);
        }
        self.post(out);
        Ok(())
    }

    fn progress(&self) -> Progress {
        self.state.progress(self.rounds)
    }
}

impl<F: Real> Posterior<F> for Average<F> {
    fn posterior(&self) -> (u64, &[F]) {
        self.state.posterior()
    }
}

pub struct Learner<F: Real> {
    local: LocalLoss<F>,
    settings: FedProxSettings,
}

impl<F: Real> Agent<FedProx<F>> for Learner<F> {
    type State = ();

    fn state(&self) -> impl SerializesAs<()> {
        &()
    }

    fn perform(&mut self, &round: &u64, body: Body<F>, cx: &mut Context) -> Result<((), Body<F>)> {
        let mut theta = body.to_vec();
        let common = ArrayView2::from_shape((1, theta.len()), &body)?;
        let mut descent = Array2::zeros(common.dim());
        let rows = F::of(self.local.rows() as f64);
        let rate = F::of(self.settings.rate) / rows.max(F::one());
        let pull = rows * F::of(self.settings.proximal);
        for step in round * self.settings.steps..(round + 1) * self.settings.steps {
            let mut theta = ArrayViewMut2::from_shape(common.dim(), &mut theta)?;
            descent.assign(&((&common - &theta) * pull));
            self.local.add_score(theta.view(), step, descent.view_mut(), cx);
            theta.scaled_add(rate, &descent);
        }
        theta.iter_mut().for_each(|weight| *weight *= rows);
        theta.push(rows);
        Ok(((), theta.into()))
    }
}
// listing: end

fn main() -> std::process::ExitCode {
    mpibayes::main_with(&mpibayes::config::Registry::default().with_method::<FedProxSettings>())
}

#[cfg(test)]
#[path = "../tests/support/one_dimensional.rs"]
mod one_dimensional;

#[cfg(test)]
#[path = "../tests/support/recording.rs"]
mod recording;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::one_dimensional::{Line, share};
    use crate::recording::run;

    const START: f64 = 0.3;
    const CURVATURES: [f64; 3] = [1.0, 0.5, 2.0];
    const CENTERS: [f64; 3] = [1.0, 5.0, -1.0];
    const ROWS: [usize; 3] = [10, 30, 60];

    /// Three agents that disagree: a row of agent k costs a_k/2 · (θ − c_k)². The weights after so many rounds.
    fn answer(rounds: u64, proximal: f64, gradient: fn(usize, f64) -> f64) -> f64 {
        let line = Line { initial: |_| START, prior_score: |_| 0.0, gradient };
        let own = |agent: u32| vec![f64::from(agent); ROWS[agent as usize]];
        let settings = FedProxSettings { rounds, steps: 5, rate: 0.1, batch: 100, proximal };
        run(FedProx { problem: share(line, 3, 1.0, own), settings }, 1).particles()[(0, 0)]
    }

    /// E gradient steps shrink the distance to m_k = (a_k c_k + μ θ)/(a_k + μ) by r_k = (1 − η (a_k + μ))^E, so that
    /// θ ← Σ p_k (m_k + r_k (θ − m_k)).
    fn closed_form(rounds: u64, proximal: f64, curvatures: [f64; 3]) -> f64 {
        (0..rounds).fold(START, |theta, _| {
            let next = |k: usize| {
                let stiffness = curvatures[k] + proximal;
                let middle = (curvatures[k] * CENTERS[k] + proximal * theta) / stiffness;
                middle + (1.0 - 0.1 * stiffness).powi(5) * (theta - middle)
            };
            (0..3).map(|k| ROWS[k] as f64 / 100.0 * next(k)).sum()
        })
    }

    #[test]
    fn every_round_is_the_closed_form() {
        let gradient = |k: usize, x: f64| CURVATURES[k] * (x - CENTERS[k]);
        for proximal in [0.0, 0.7, 3.0] {
            for rounds in [1, 2, 7, 60] {
                let found = answer(rounds, proximal, gradient);
                // Some twenty roundings a round of numbers below 500, and errors shrink from round to round.
                let off = (found - closed_form(rounds, proximal, CURVATURES)).abs();
                assert!(off < 1e-12, "{proximal}, {rounds} rounds: {found}");
                // The control: another μ is another method.
                assert!((found - closed_form(rounds, proximal + 1.0, CURVATURES)).abs() > 1e-4, "{proximal}, {rounds} rounds");
            }
        }
        // The mean of the centers, weighted by rows, is another point unless all curvatures are equal: then μ only slows the way there.
        let mean = 0.1 * 1.0 + 0.3 * 5.0 - 0.6;
        assert!((closed_form(60, 0.7, CURVATURES) - mean).abs() > 0.1);
        assert!((answer(300, 0.7, |k, x| x - CENTERS[k]) - mean).abs() < 1e-12);
    }
}
