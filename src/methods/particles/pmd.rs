//! Particle mirror descent (PMD): weighted particles whose density estimate follows the posterior by tempered Bayesian updates on
//! minibatches (Dai, He, Dai & Song 2016, arXiv 1506.03101, Algorithm 2).
//!
//! The target's update is q_{t+1} ∝ q_t^{1−γ} p0^γ exp(−γ L̂/α). Particles are drawn from q_t, the weighted density estimate of the last
//! particles with kernel exp(−‖·‖²/h): an ancestor is drawn by weight, and Gaussian jitter of variance h/2 is added. The log-weights are
//! γ_t (log p0 − L̂/α − log q_t). h is `jitter` times the squared median distance, γ_t = min(1, a/(N (100 + √t))) with N rows.
//! q_1 is p0 itself: the first particles are initial draws, which for networks are not draws from p0.
//!
//! One agent has all data. Evaluation uses particles that are resampled by weight.

use crate::cluster::{Agent, AgentId, Body, Context, Method, Outbox, Raw, Response, Result, SerializesAs, ServerState};
use crate::kernels::rbf::squared_distances;
use crate::methods::common::participation::log_round;
use crate::methods::common::particles::{Particles, raw};
use crate::methods::common::problem::{LocalLoss, Problem};
use crate::methods::common::rounds::{RoundServer, Rounds};
use crate::methods::common::settings::{MethodSettings, ResourceEstimate, Table, TableMethod, at_least_one, one_agent};
use crate::number::{Real, log_sum_exp};
use crate::random::{Purpose, Stream, Who};
use crate::settings::{Key, KeyError, in_range, keys};
use documented::DocumentedFields;
use ndarray::{Array2, ArrayView1, ArrayView2, Axis};
use rand::RngExt;
use serde::{Deserialize, Serialize};

/// Particle mirror descent on one agent.
#[derive(Clone)]
pub struct Pmd<F> {
    /// The model and all data.
    pub problem: Problem<F>,
    /// I, the number of rounds.
    pub rounds: u64,
    /// N, the number of particles.
    pub particles: usize,
    /// Updates in a round.
    pub steps: u64,
    /// Rows in a minibatch.
    pub batch: usize,
    /// a in γ_t = a/(N (100 + √t)).
    pub gain: f64,
    /// h over the squared median distance of particles.
    pub jitter: f64,
}

/// The settings of `pmd`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields, default)]
pub struct PmdSettings {
    /// Number of weighted particles that represent the posterior. Evaluations use as many, resampled by weight.
    particles: usize,
    /// Rounds of updates. The particles can be evaluated after each round.
    rounds: u64,
    /// Updates in a round.
    steps: u64,
    /// Rows in a minibatch.
    batch: usize,
    /// a in the step size γ_t = a/(rows · (100 + √t)), which is at most 1.
    gain: f64,
    /// Bandwidth h of the kernel exp(−‖·‖²/h) of the density estimate, in units of the squared median distance of particles.
    jitter: f64,
}

impl Default for PmdSettings {
    fn default() -> Self {
        Self { particles: 100, rounds: 10, steps: 100, batch: 50, gain: 5000.0, jitter: 0.002 }
    }
}

impl MethodSettings for PmdSettings {
    type Data = Table;

    const NAME: &'static str = "pmd";

    fn keys() -> Vec<Key> {
        keys::<Self>()
    }

    fn estimate(&self, _: u32, parameters: usize) -> ResourceEstimate {
        let particles = self.particles as u64;
        ResourceEstimate {
            particles: Some(particles),
            rounds: Some(self.rounds),
            minibatch: Some(self.batch as u64),
            // Last and next particles, and the distances between them.
            values_of_agent: Some(
                particles.saturating_mul(2 * parameters as u64).saturating_add(2 * particles.saturating_mul(particles)),
            ),
            values_per_round: Some(0),
            ..ResourceEstimate::default()
        }
    }

    fn check(&self) -> std::result::Result<(), KeyError> {
        let Self { particles, rounds, steps, batch, gain, jitter } = *self;
        at_least_one(&[("particles", particles as u64), ("rounds", rounds), ("steps", steps), ("batch", batch as u64)])?;
        in_range("gain", gain, gain.is_finite() && gain > 0.0, "a positive number")?;
        in_range("jitter", jitter, jitter.is_finite() && jitter > 0.0, "a positive number")
    }

    fn check_agents(&self, agents: u32) -> std::result::Result<(), KeyError> {
        one_agent(Self::NAME, agents)
    }

    fn method<F: Real>(&self, problem: Problem<F>) -> TableMethod<F> {
        let Self { particles, rounds, steps, batch, gain, jitter } = *self;
        TableMethod::particles(Pmd { problem, rounds, particles, steps, batch, gain, jitter })
    }
}

/// Cumulative sums of weights, which need not add up to 1: a binary search in them draws by weight.
struct CumulativeWeights(Vec<f64>);

impl CumulativeWeights {
    fn new(log_weights: &[f64]) -> Self {
        let top = log_weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut sum = 0.0;
        let sums = log_weights.iter().map(|log| {
            sum += (log - top).exp();
            sum
        });
        Self(sums.collect())
    }

    /// The particle at this quantile, a number in [0, 1).
    fn at(&self, quantile: f64) -> usize {
        let total = self.0.last().copied().unwrap_or(0.0);
        self.0.partition_point(|&sum| sum <= quantile * total).min(self.0.len() - 1)
    }
}

/// Equally weighted particles for weighted ones by systematic resampling (Kitagawa 1996).
fn resampled<F: Real>(theta: ArrayView2<F>, log_weights: &[f64], stream: &mut Stream) -> Array2<F> {
    let (weights, count) = (CumulativeWeights::new(log_weights), theta.nrows() as f64);
    let offset: f64 = stream.random();
    let chosen: Vec<usize> = (0..theta.nrows()).map(|n| weights.at((n as f64 + offset) / count)).collect();
    theta.select(Axis(0), &chosen)
}

/// Shifts log-weights so that the weights add up to 1.
///
/// # Errors
/// If no weight is positive and finite.
fn normalize(log_weights: &mut [f64]) -> Result<()> {
    let sum = log_sum_exp(log_weights.iter().copied());
    if !sum.is_finite() {
        return Err("pmd: no particle has a positive weight: the model's log-density is not finite at any of them".into());
    }
    log_weights.iter_mut().for_each(|log| *log -= sum);
    Ok(())
}

/// The median of squared distances between different particles; 1 if it is 0 or there is one particle.
fn squared_median(distances: &Array2<f64>) -> f64 {
    let mut pairs: Vec<f64> = distances.indexed_iter().filter(|((i, j), _)| i < j).map(|(_, distance)| *distance).collect();
    if pairs.is_empty() {
        return 1.0;
    }
    let middle = pairs.len() / 2;
    let median = *pairs.select_nth_unstable_by(middle, f64::total_cmp).1;
    if median > 0.0 { median } else { 1.0 }
}

impl<F: Real> Method for Pmd<F> {
    const NAME: &'static str = PmdSettings::NAME;
    type Number = F;
    /// The round, which counts from 1. The body holds particles (N × d) followed by log-weights (N), and so does the report's.
    type Task = u64;
    /// The effective number of particles and γ after the round.
    type Report = [f64; 2];
    type Server = RoundServer<Self>;
    type Agent = PmdAgent<F>;

    fn agents(&self) -> u32 {
        self.problem.agents
    }

    fn server(&self, saved: Option<ServerState<Self>>) -> Result<RoundServer<Self>> {
        Ok(RoundServer::new(self, &self.problem, self.rounds, saved))
    }

    fn agent(&self, id: AgentId, _: Option<()>) -> Result<PmdAgent<F>> {
        Ok(PmdAgent { local: self.problem.open(id, self.batch)?, method: self.clone() })
    }
}

impl<F: Real> Pmd<F> {
    /// Particles (N × d) and log-weights (N) of a body.
    fn split<'a>(&self, weighted: &'a [F]) -> Result<(ArrayView2<'a, F>, Vec<f64>)> {
        let shape = (self.particles, self.problem.model.dim());
        let size = shape.0 * shape.1;
        if weighted.len() != size + self.particles {
            return Err(format!("pmd: {} values for {} weighted particles", weighted.len(), self.particles).into());
        }
        let theta = ArrayView2::from_shape(shape, &weighted[..size])?;
        Ok((theta, weighted[size..].iter().map(|log| log.f64()).collect()))
    }
}

/// The server keeps the weighted particles (N × d), followed by their log-weights (N), and evaluations use resampled ones.
impl<F: Real> Rounds for Pmd<F> {
    type State = Raw<F>;

    fn start(&self, cx: &Context) -> Result<(Vec<F>, Raw<F>)> {
        one_agent(PmdSettings::NAME, self.problem.agents).map_err(|error| error.to_string())?;
        let Raw(theta) = raw(self.problem.initial_particles(self.particles, cx));
        let log_weights = std::iter::repeat_n(F::of(-(self.particles as f64).ln()), self.particles);
        let weighted = theta.iter().copied().chain(log_weights).collect();
        Ok((theta, Raw(weighted)))
    }

    fn request(&self, particles: &Particles<F>, weighted: &Raw<F>, out: &mut Outbox<Self>, _: &Context) {
        out.request([0], particles.round + 1).with(weighted.0.clone());
    }

    fn update(
        &self,
        particles: &Particles<F>,
        weighted: &mut Raw<F>,
        response: Response<Self>,
        cx: &mut Context,
    ) -> Result<Option<Vec<F>>> {
        log_round(particles.round + 1, ["effective_particles", "gamma"], &response.reports, cx);
        *weighted = Raw(response.only()?.body.into_vec());
        let (theta, log_weights) = self.split(&weighted.0)?;
        let theta = resampled(theta, &log_weights, &mut cx.stream(Who::Server, particles.round, Purpose::Noise));
        Ok(Some(raw(theta).0))
    }
}

/// Updates the weighted particles on all data; keeps nothing between rounds.
pub struct PmdAgent<F: Real> {
    local: LocalLoss<F>,
    method: Pmd<F>,
}

impl<F: Real> PmdAgent<F> {
    /// Draws from the density estimate of weighted particles, and the logarithm of the estimate at the draws up to a constant.
    fn draw(&self, theta: &Array2<F>, log_weights: &[f64], stream: &mut Stream) -> (Array2<F>, Vec<f64>) {
        let h = self.method.jitter * squared_median(&squared_distances(theta.view(), theta.view()));
        let weights = CumulativeWeights::new(log_weights);
        let ancestors: Vec<usize> = (0..theta.nrows()).map(|_| weights.at(stream.random())).collect();
        let mut next = theta.select(Axis(0), &ancestors).as_standard_layout().into_owned();
        if let Some(next) = next.as_slice_mut() {
            stream.add_normals(F::of((0.5 * h).sqrt()), next);
        }
        let distances = squared_distances(next.view(), theta.view());
        let density = |row: ArrayView1<f64>| log_sum_exp(row.iter().zip(log_weights).map(|(distance, log)| log - distance / h));
        let log_density = distances.rows().into_iter().map(density).collect();
        (next, log_density)
    }
}

impl<F: Real> Agent<Pmd<F>> for PmdAgent<F> {
    type State = ();

    fn state(&self) -> impl SerializesAs<()> {
        &()
    }

    fn perform(&mut self, &round: &u64, weighted: Body<F>, cx: &mut Context) -> Result<([f64; 2], Body<F>)> {
        let Pmd { particles, steps, gain, .. } = self.method;
        let (theta, mut log_weights) = self.method.split(&weighted)?;
        let mut theta = theta.to_owned();
        let (mut prior, mut loss) = (vec![0.0; particles], vec![0.0; particles]);
        let mut gamma = 0.0;
        for step in (round - 1) * steps..round * steps {
            gamma = (gain / (self.local.rows() as f64 * (100.0 + ((step + 1) as f64).sqrt()))).min(1.0);
            let log_density = if step == 0 {
                None
            } else {
                let (next, log_density) = self.draw(&theta, &log_weights, &mut cx.stream(Who::Run, step, Purpose::Noise));
                theta = next;
                Some(log_density)
            };
            self.local.loss(theta.view(), step, &mut loss, cx);
            self.local.log_prior(theta.view(), &mut prior);
            for (n, log_weight) in log_weights.iter_mut().enumerate() {
                let log_density = log_density.as_ref().map_or(prior[n], |log_density| log_density[n]);
                *log_weight = gamma * (prior[n] - loss[n] - log_density);
                if log_weight.is_nan() {
                    *log_weight = f64::NEG_INFINITY;
                }
            }
            normalize(&mut log_weights)?;
        }
        let squares: f64 = log_weights.iter().map(|log| (2.0 * log).exp()).sum();
        let weighted: Vec<F> = theta.into_iter().chain(log_weights.iter().map(|&log| F::of(log))).collect();
        Ok(([1.0 / squares, gamma], weighted.into()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::random::Seed;
    use ndarray::array;

    #[test]
    fn invalid_settings_are_refused() {
        let parse = |text: &str| toml::from_str::<PmdSettings>(text).unwrap();
        assert_eq!(parse("").check(), Ok(()));
        for (bad, message) in
            [("steps = 0", "steps"), ("gain = 0.0", "gain"), ("jitter = -1.0", "jitter"), ("jitter = inf", "jitter")]
        {
            assert!(parse(bad).check().unwrap_err().to_string().contains(message), "{bad}");
        }
        assert!(
            parse("").check_agents(1).is_ok() && parse("").check_agents(4).unwrap_err().to_string().contains("agents: must be 1")
        );
    }

    /// Systematic resampling takes a particle of weight w at least ⌊N w⌋ and at most ⌈N w⌉ times, whatever the offset.
    #[test]
    fn systematic_resampling_takes_particles_in_proportion_to_their_weights() {
        let theta = array![[0.0], [1.0], [2.0], [3.0]];
        let logs = [0.5_f64, 0.25, 0.0, 0.25].map(f64::ln);
        for step in 0..50 {
            let taken = resampled(theta.view(), &logs, &mut Seed(1).stream(Who::Run, step, Purpose::Noise));
            assert_eq!(taken, array![[0.0], [0.0], [1.0], [3.0]]);
        }
        let uneven = [0.4_f64, 0.3, 0.2, 0.1].map(f64::ln);
        let mut counts = [0.0_f64; 4];
        for step in 0..4000 {
            let taken = resampled(theta.view(), &uneven, &mut Seed(1).stream(Who::Run, step, Purpose::Noise));
            taken.iter().for_each(|x: &f64| counts[*x as usize] += 1.0 / 16_000.0);
        }
        // A count varies by less than 1: 4.5 standard errors of its mean are at most 4.5 · 0.5/√4000/4.
        for (count, weight) in counts.iter().zip([0.4, 0.3, 0.2, 0.1]) {
            assert!((count - weight).abs() < 0.009, "{counts:?}");
        }
        assert!(normalize(&mut [f64::NEG_INFINITY; 2]).is_err());
    }
}
