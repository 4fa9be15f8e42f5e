//! The server of the No-U-Turn Sampler: moves all chains by a leapfrog step when the agents have returned losses and gradients.

use super::Hmc;
use super::chain::{Chain, Iteration};
use crate::cluster::record::HISTORY;
use crate::cluster::{Context, Outbox, Progress, Raw, Response, Result, SerializesAs, Server};
use crate::methods::common::thinning::has_row;
use crate::methods::common::with_evaluation::Posterior;
use crate::number::Real;
use ndarray::{Array2, ArrayView2};
use serde::{Deserialize, Serialize};

/// The group of draws with what ArviZ calls sample statistics, one value of each for every draw.
pub const SAMPLE_STATS_GROUP: &str = "sample_stats";

/// The sample statistics, under the names that ArviZ uses.
pub const SAMPLE_STATS: [&str; 7] = ["lp", "energy", "acceptance_rate", "step_size", "n_steps", "tree_depth", "diverging"];

/// The first step size that is tried in one dimension, in units of the coordinates (posterior standard deviations if they are whitened); in d dimensions it is d^(-1/4) times that.
const FIRST_STEP: f64 = 0.5;

/// The state of all chains.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct HmcState<F: Real> {
    chains: Vec<Chain>,
    /// The chains that move on with the next losses and gradients. Others are finished, but go on if the run is made longer.
    asked: Vec<u32>,
    /// The last draws of all chains (chains × d).
    draws: Raw<F>,
    /// Leapfrog steps of completed trajectories of all chains.
    steps: u64,
    /// Trajectories of all chains after burn-in that have diverged.
    diverged: u64,
}

/// Moves all chains.
pub struct HmcServer<F: Real> {
    method: Hmc<F>,
    state: HmcState<F>,
}

impl<F: Real> HmcServer<F> {
    pub(super) fn new(method: Hmc<F>, saved: Option<HmcState<F>>) -> Self {
        let fresh = || HmcState { chains: Vec::new(), asked: Vec::new(), draws: Raw(Vec::new()), steps: 0, diverged: 0 };
        Self { state: saved.unwrap_or_else(fresh), method }
    }

    fn iterations(&self) -> u64 {
        self.method.adaptation.burn_in + self.method.draws
    }

    /// Iterations that all chains have done.
    fn done(&self) -> u64 {
        self.state.chains.iter().map(Chain::iterations).min().unwrap_or(0)
    }

    /// Where chains need losses and gradients.
    fn positions(&self) -> Vec<F> {
        self.state.chains.iter().flat_map(Chain::position).map(|&value| F::of(value)).collect()
    }

    /// Asks for losses and gradients at the positions of all chains, also of those that are finished: what others get must not depend on how
    /// many go on.
    fn request(&mut self, out: &mut Outbox<Hmc<F>>) {
        let iterations = self.iterations();
        let chains = (0..).zip(&self.state.chains);
        self.state.asked = chains.filter(|(_, chain)| chain.iterations() < iterations).map(|(number, _)| number).collect();
        if !self.state.asked.is_empty() {
            out.request(0..self.method.problem.agents, ()).with(self.positions()).sum();
        }
    }

    /// Records a draw and what its trajectory was like.
    fn record(&self, chain: u32, iteration: &Iteration, cx: &mut Context) {
        let Some(draw) = iteration.number.checked_sub(self.method.adaptation.burn_in) else { return };
        let Some(point) = self.state.chains.get(chain as usize).map(Chain::draw) else { return };
        let position: Vec<F> = point.position.0.iter().map(|&value| F::of(value)).collect();
        let mut parameters = Vec::with_capacity(position.len());
        self.method.problem.model.append_parameters(&position, &mut parameters);
        cx.record("posterior", chain, draw, parameters.len(), &parameters);
        let Iteration { stats, step, .. } = iteration;
        let statistics = [
            point.log_density,
            stats.energy,
            stats.acceptance,
            *step,
            stats.steps as f64,
            f64::from(stats.doublings),
            f64::from(u8::from(stats.has_diverged)),
        ];
        cx.record(SAMPLE_STATS_GROUP, chain, draw, statistics.len(), &statistics);
    }
}

impl<F: Real> Server<Hmc<F>> for HmcServer<F> {
    type State = HmcState<F>;

    fn state(&self) -> impl SerializesAs<HmcState<F>> {
        &self.state
    }

    fn start(&mut self, out: &mut Outbox<Hmc<F>>, cx: &mut Context) -> Result<()> {
        let Hmc { problem, chains, adaptation, .. } = &self.method;
        let dim = problem.model.dim();
        let guess = FIRST_STEP * (dim.max(1) as f64).powf(-0.25);
        let starts = problem.initial_particles(*chains as usize, cx);
        let start = |(number, start): (u32, ndarray::ArrayView1<F>)| {
            Chain::new(number, start.iter().map(|value| value.f64()).collect(), guess, adaptation)
        };
        self.state.chains = (0..).zip(starts.rows()).map(start).collect();
        self.state.draws = Raw(starts.into_raw_vec_and_offset().0);
        self.request(out);
        Ok(())
    }

    fn receive(&mut self, response: Response<Hmc<F>>, out: &mut Outbox<Hmc<F>>, cx: &mut Context) -> Result<()> {
        let (dim, iterations, before) = (self.method.problem.model.dim(), self.iterations(), self.done());
        let (asked, positions) = (self.state.asked.clone(), self.positions());
        let shape = (self.state.chains.len(), dim);
        let positions = ArrayView2::from_shape(shape, &positions)?;
        let model = self.method.problem.model.as_ref();
        let (mut log_densities, mut scores) = (vec![0.0; shape.0], Array2::zeros(shape));
        model.log_prior(positions, &mut log_densities);
        model.prior_score(positions, scores.view_mut());
        scores += &Array2::from_shape_vec(shape, response.sum.into_vec())?;
        for agent in &response.reports {
            log_densities.iter_mut().zip(&agent.report).for_each(|(log_density, loss)| *log_density -= loss);
        }
        for number in asked {
            let chain = number as usize;
            let (log_density, score) = (log_densities[chain], scores.row(chain).iter().map(|value| value.f64()).collect());
            let iteration = self.state.chains[chain].advance(log_density, score, &self.method.adaptation, cx)?;
            let Some(iteration) = iteration else { continue };
            self.state.steps += iteration.stats.steps;
            let is_draw = iteration.number >= self.method.adaptation.burn_in;
            self.state.diverged += u64::from(is_draw && iteration.stats.has_diverged);
            let point = &self.state.chains[chain].draw().position.0;
            let kept = &mut self.state.draws.0[chain * dim..(chain + 1) * dim];
            kept.iter_mut().zip(point).for_each(|(kept, &value)| *kept = F::of(value));
            self.record(number, &iteration, cx);
        }
        let done = self.done();
        if done > before && has_row(done, iterations) {
            let columns = [
                ("seconds", cx.seconds()),
                ("leapfrog_steps", self.state.steps as f64),
                ("diverged", self.state.diverged as f64),
            ];
            cx.log_row(HISTORY, done, columns);
        }
        self.request(out);
        Ok(())
    }

    fn progress(&self) -> Progress {
        Progress { done: self.done(), total: self.iterations() }
    }
}

impl<F: Real> Posterior<F> for HmcServer<F> {
    fn posterior(&self) -> (u64, &[F]) {
        (self.done(), &self.state.draws.0)
    }
}
