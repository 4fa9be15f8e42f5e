//! Particle mirror descent: weighted particles whose density estimate follows the posterior by tempered Bayesian updates on minibatches
//! (Dai, He, Dai & Song 2016, arXiv 1506.03101, Algorithm 2).
//!
//! The target's update is q_{t+1} ∝ q_t^{1−γ} p0^γ exp(−γ L̂/α). Particles are drawn from q_t, the weighted density estimate of the last
//! ones with kernel exp(−‖·‖²/h): an ancestor by weight, and Gaussian jitter of variance h/2. Their log-weights are
//! γ_t (log p0 − L̂/α − log q_t). h is `jitter` times the squared median distance, γ_t = a/(N (100 + √t)), at most 1, with N rows.
//! q_1 is p0 itself: the first particles are initial draws, which for networks are no draws from p0.
//!
//! One agent has all data. Evaluation sees particles that are resampled by weight.

use crate::cluster::{AgentId, Body, Context, Raw, Result};
use crate::kernels::kde::log_sum_exp;
use crate::kernels::rbf::squared_distances;
use crate::methods::common::federated::{Client, ClientState, Federated, Global, Responses, Strategy};
use crate::methods::common::kind::{Launcher, MethodKind, Needs, at_least_one, centralised};
use crate::methods::common::participation::Participation;
use crate::methods::common::particles::raw;
use crate::methods::common::problem::{LocalLoss, Problem};
use crate::number::Real;
use crate::random::{Purpose, Stream, Who};
use ndarray::{Array2, ArrayView2};
use rand::RngExt;
use serde::{Deserialize, Serialize};

/// Particle mirror descent, as a strategy of [`Federated`] with one agent.
#[derive(Clone, Debug)]
pub struct Pmd {
    /// N.
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PmdSettings {
    /// N.
    particles: usize,
    /// Rounds of updates; the particles are evaluated after each.
    rounds: u64,
    /// Updates in a round.
    steps: u64,
    /// Rows in a minibatch.
    batch: usize,
    /// a in γ_t = a/(N (100 + √t)).
    gain: f64,
    /// h over the squared median distance of particles.
    jitter: f64,
}

impl Default for PmdSettings {
    fn default() -> Self {
        Self { particles: 100, rounds: 10, steps: 100, batch: 50, gain: 5000.0, jitter: 0.002 }
    }
}

impl MethodKind for PmdSettings {
    const NAME: &'static str = "pmd";

    const DOCS: &'static [(&'static str, &'static str)] = &[
        ("particles", "how many weighted particles stand for the posterior; evaluations see as many, resampled by weight"),
        ("rounds", "rounds of updates; the particles can be evaluated after each"),
        ("steps", "updates in a round"),
        ("batch", "rows in a minibatch"),
        ("gain", "a in the step γ_t = a/(rows · (100 + √t)), which is at most 1"),
        ("jitter", "h of the density estimate's kernel exp(−‖·‖²/h), over the squared median distance of particles"),
    ];

    fn needs(&self, _: u32, parameters: usize) -> Needs {
        let particles = self.particles as u64;
        Needs {
            particles: Some(particles),
            rounds: Some(self.rounds),
            minibatch: Some(self.batch as u64),
            // Last and next particles, and the distances between them.
            numbers_of_agent: Some(
                particles.saturating_mul(2 * parameters as u64).saturating_add(2 * particles.saturating_mul(particles)),
            ),
            numbers_per_round: Some(0),
            ..Needs::default()
        }
    }

    fn check(&self) -> std::result::Result<(), String> {
        let Self { particles, rounds, steps, batch, gain, jitter } = *self;
        at_least_one(&[("particles", particles as u64), ("rounds", rounds), ("steps", steps), ("batch", batch as u64)])?;
        for (name, value) in [("gain", gain), ("jitter", jitter)] {
            if !(value.is_finite() && value > 0.0) {
                return Err(format!("{name} = {value}: must be a positive number"));
            }
        }
        Ok(())
    }

    fn check_for(&self, agents: u32) -> std::result::Result<(), String> {
        centralised(Self::NAME, agents)
    }

    fn launch<F: Real, L: Launcher<F>>(&self, problem: Problem<F>, launcher: L) -> L::Outcome {
        let Self { particles, steps, batch, gain, jitter, .. } = *self;
        Federated::launch(problem, self.rounds, Participation::All, Pmd { particles, steps, batch, gain, jitter }, launcher)
    }
}

/// Places in [0, 1) of weights that need not add up to 1, each found by a binary search of the weights' sums.
struct Wheel(Vec<f64>);

impl Wheel {
    fn new(log_weights: &[f64]) -> Self {
        let top = log_weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut sum = 0.0;
        let sums = log_weights.iter().map(|log| {
            sum += (log - top).exp();
            sum
        });
        Self(sums.collect())
    }

    /// Whose weight this place lies in.
    fn at(&self, place: f64) -> usize {
        let total = self.0.last().copied().unwrap_or(0.0);
        self.0.partition_point(|&sum| sum <= place * total).min(self.0.len() - 1)
    }
}

/// Particles in equal numbers for weighted ones: one place, and as many more at equal distances (Kitagawa 1996).
fn resampled<F: Real>(theta: ArrayView2<F>, log_weights: &[f64], stream: &mut Stream) -> Array2<F> {
    let (wheel, count) = (Wheel::new(log_weights), theta.nrows() as f64);
    let first: f64 = stream.random();
    let chosen: Vec<usize> = (0..theta.nrows()).map(|n| wheel.at((n as f64 + first) / count)).collect();
    theta.select(ndarray::Axis(0), &chosen)
}

/// Shifts log-weights so that the weights add up to 1.
///
/// # Errors
/// Where none of them is a weight.
fn normalise(log_weights: &mut [f64]) -> Result<()> {
    let sum = log_sum_exp(log_weights.iter().copied());
    if !sum.is_finite() {
        return Err("no particle has a weight: the model's log-density is not a number at any of them".into());
    }
    log_weights.iter_mut().for_each(|log| *log -= sum);
    Ok(())
}

/// The median of squared distances between different particles; 1 where there are none apart.
fn squared_median(distances: &Array2<f64>) -> f64 {
    let mut apart: Vec<f64> = distances.indexed_iter().filter(|((i, j), _)| i < j).map(|(_, distance)| *distance).collect();
    if apart.is_empty() {
        return 1.0;
    }
    let middle = apart.len() / 2;
    let median = *apart.select_nth_unstable_by(middle, f64::total_cmp).1;
    if median > 0.0 { median } else { 1.0 }
}

impl<F: Real> Strategy<F> for Pmd {
    fn start(&self, problem: &Problem<F>, cx: &Context) -> Result<Global<F>> {
        centralised(PmdSettings::NAME, problem.agents)?;
        let Raw(theta) = raw(problem.initial_particles(self.particles, cx));
        let weights = std::iter::repeat_n(F::of(-(self.particles as f64).ln()), self.particles);
        let set = theta.iter().copied().chain(weights).collect();
        Ok(Global { sets: vec![Raw(set)], ..Global::initial(theta) })
    }

    fn message(&self, global: &Global<F>) -> Vec<F> {
        global.sets.first().map(|set| set.0.clone()).unwrap_or_default()
    }

    fn aggregate(&self, global: &mut Global<F>, responses: Responses<F>, problem: &Problem<F>, cx: &mut Context) -> Result<()> {
        let set = responses.only()?.into_vec();
        let (theta, log_weights) = self.split(&set, problem.model.dim())?;
        let mut stream = cx.stream(Who::Server, global.round, Purpose::Noise);
        global.theta = raw(resampled(theta, &log_weights, &mut stream));
        global.sets = vec![Raw(set)];
        Ok(())
    }

    fn columns(&self) -> &'static [&'static str] {
        &["effective_particles", "gamma"]
    }

    fn client(&self, problem: &Problem<F>, agent: AgentId, state: ClientState<F>) -> Result<Box<dyn Client<F>>> {
        let local = problem.open(agent, self.batch)?;
        Ok(Box::new(Descent { local, dim: problem.model.dim(), method: self.clone(), state }))
    }
}

impl Pmd {
    /// Particles (N × d) and log-weights (N) of a message.
    fn split<'a, F: Real>(&self, set: &'a [F], dim: usize) -> Result<(ArrayView2<'a, F>, Vec<f64>)> {
        let size = self.particles * dim;
        if set.len() != size + self.particles {
            return Err(format!("{} numbers for {} weighted particles", set.len(), self.particles).into());
        }
        let theta = ArrayView2::from_shape((self.particles, dim), &set[..size])?;
        Ok((theta, set[size..].iter().map(|log| log.f64()).collect()))
    }
}

/// Holds all data, and keeps nothing between rounds.
struct Descent<F: Real> {
    local: LocalLoss<F>,
    dim: usize,
    method: Pmd,
    state: ClientState<F>,
}

impl<F: Real> Descent<F> {
    /// Draws from the density estimate of weighted particles, and its logarithm at them up to a constant.
    fn drawn(&self, theta: &Array2<F>, log_weights: &[f64], stream: &mut Stream) -> (Array2<F>, Vec<f64>) {
        let h = self.method.jitter * squared_median(&squared_distances(theta.view(), theta.view()));
        let wheel = Wheel::new(log_weights);
        let ancestors: Vec<usize> = (0..theta.nrows()).map(|_| wheel.at(stream.random())).collect();
        let mut next = theta.select(ndarray::Axis(0), &ancestors).as_standard_layout().into_owned();
        if let Some(next) = next.as_slice_mut() {
            stream.add_normals(F::of((0.5 * h).sqrt()), next);
        }
        let distances = squared_distances(next.view(), theta.view());
        let density =
            |row: ndarray::ArrayView1<f64>| log_sum_exp(row.iter().zip(log_weights).map(|(distance, log)| log - distance / h));
        let log_density = distances.rows().into_iter().map(density).collect();
        (next, log_density)
    }
}

impl<F: Real> Client<F> for Descent<F> {
    fn state(&self) -> &ClientState<F> {
        &self.state
    }

    fn respond(&mut self, round: u64, message: Body<F>, cx: &mut Context) -> Result<(Vec<f64>, Body<F>)> {
        let Pmd { particles, steps, gain, .. } = self.method;
        let (theta, mut log_weights) = self.method.split(&message, self.dim)?;
        let mut theta = theta.to_owned();
        let (mut prior, mut loss) = (vec![0.0; particles], vec![0.0; particles]);
        let mut gamma = 0.0;
        for step in (round - 1) * steps..round * steps {
            gamma = (gain / (self.local.rows() as f64 * (100.0 + ((step + 1) as f64).sqrt()))).min(1.0);
            let log_density = if step == 0 {
                None
            } else {
                let (next, log_density) = self.drawn(&theta, &log_weights, &mut cx.stream(Who::Run, step, Purpose::Noise));
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
            normalise(&mut log_weights)?;
        }
        let squares: f64 = log_weights.iter().map(|log| (2.0 * log).exp()).sum();
        let answer: Vec<F> = theta.into_iter().chain(log_weights.iter().map(|&log| F::of(log))).collect();
        Ok((vec![1.0 / squares, gamma], answer.into()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::random::Seed;
    use ndarray::array;

    #[test]
    fn settings_that_cannot_be_run_are_refused() {
        let parse = |text: &str| toml::from_str::<PmdSettings>(text).unwrap();
        assert_eq!(parse("").check(), Ok(()));
        for (bad, says) in
            [("steps = 0", "steps"), ("gain = 0.0", "gain"), ("jitter = -1.0", "jitter"), ("jitter = inf", "jitter")]
        {
            assert!(parse(bad).check().unwrap_err().contains(says), "{bad}");
        }
        assert!(parse("").check_for(1).is_ok() && parse("").check_for(4).unwrap_err().contains("set agents = 1"));
    }

    /// Systematic resampling takes a particle of weight w at least ⌊N w⌋ and at most ⌈N w⌉ times, whatever the place.
    #[test]
    fn resampling_keeps_shares() {
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
        // Counts of a draw vary by less than 1: 4.5 standard errors of their mean are at most 4.5 · 0.5/√4000/4.
        for (count, weight) in counts.iter().zip([0.4, 0.3, 0.2, 0.1]) {
            assert!((count - weight).abs() < 0.009, "{counts:?}");
        }
        assert!(normalise(&mut [f64::NEG_INFINITY; 2]).is_err());
    }
}
