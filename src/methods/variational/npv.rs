//! Nonparametric variational inference: a mixture of Gaussians of equal weights, fitted to the posterior
//! (Gershman, Hoffman & Blei 2012, arXiv 1206.4665).
//!
//! q = 1/N Σ_n N(μ_n, σ_n² I). Its entropy is at least H = −1/N Σ_n log q̂_n, q̂_n = 1/N Σ_j N(μ_n; μ_j, (σ_n² + σ_j²) I). With f the log
//! joint density at the temperature, a round maximises ELBO₁ = H + 1/N Σ_n f(μ_n) over each mean in turn, and then
//! ELBO₂ = ELBO₁ + 1/N Σ_n σ_n²/2 · tr ∇²f(μ_n) over all log σ_n² together, both by L-BFGS. Of the loss, ∇² is the Gauss-Newton matrix,
//! of which only the diagonal is wanted; of the prior, differences of its score.
//!
//! One agent has all data. Evaluation sees draws from q.

use crate::cluster::{AgentId, Body, Context, Raw, Result};
use crate::kernels::kde::log_sum_exp;
use crate::kernels::rbf::squared_distances;
use crate::methods::common::federated::{Client, ClientState, Federated, Global, Responses, Strategy};
use crate::methods::common::kind::{Launcher, MethodKind, Needs, at_least_one, centralised};
use crate::methods::common::participation::Participation;
use crate::methods::common::particles::raw;
use crate::methods::common::problem::{LocalLoss, Problem};
use crate::models::CurvatureSupport;
use crate::number::Real;
use crate::random::{Purpose, Who};
use argmin::core::{CostFunction, Error, Executor, Gradient};
use argmin::solver::linesearch::MoreThuenteLineSearch;
use argmin::solver::quasinewton::LBFGS;
use ndarray::{Array2, ArrayView1};
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::f64::consts::PI;

/// The lowest variance of a component.
const FLOOR: f64 = 1e-7;
/// Pairs of steps and gradients that L-BFGS remembers.
const MEMORY: usize = 10;

/// Nonparametric variational inference, as a strategy of [`Federated`] with one agent.
#[derive(Clone, Debug)]
pub struct Npv {
    /// N, the components of the mixture.
    pub components: usize,
    /// Iterations of L-BFGS for each mean, and for the variances.
    pub iterations: u64,
    /// Draws from the mixture that evaluations see.
    pub particles: usize,
}

/// The settings of `npv`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NpvSettings {
    /// N, the components of the mixture.
    components: usize,
    /// Rounds: means in turn, then variances.
    rounds: u64,
    /// Iterations of L-BFGS for each mean, and for the variances.
    iterations: u64,
    /// Draws from the mixture that evaluations see.
    particles: usize,
}

impl Default for NpvSettings {
    fn default() -> Self {
        Self { components: 10, rounds: 10, iterations: 50, particles: 100 }
    }
}

impl MethodKind for NpvSettings {
    const NAME: &'static str = "npv";

    const DOCS: &'static [(&'static str, &'static str)] = &[
        ("components", "how many Gaussians of equal weight the mixture has"),
        ("rounds", "rounds: in each, the means are fitted one after the other, and then all variances"),
        ("iterations", "iterations of L-BFGS for each mean, and for the variances"),
        ("particles", "draws from the mixture that evaluations see"),
    ];

    fn needs(&self, _: u32, parameters: usize) -> Needs {
        let (components, parameters) = (self.components as u64, parameters as u64);
        Needs {
            particles: Some(self.particles as u64),
            rounds: Some(self.rounds),
            minibatch: None,
            // Means, their curvatures, two scores of the prior; what L-BFGS remembers.
            numbers_of_agent: Some(parameters.saturating_mul(components.saturating_mul(4).saturating_add(2 * MEMORY as u64))),
            numbers_per_round: Some(0),
            ..Needs::default()
        }
    }

    fn check(&self) -> std::result::Result<(), String> {
        let Self { components, rounds, iterations, particles } = *self;
        at_least_one(&[
            ("components", components as u64),
            ("rounds", rounds),
            ("iterations", iterations),
            ("particles", particles as u64),
        ])
    }

    fn check_for(&self, agents: u32) -> std::result::Result<(), String> {
        centralised(Self::NAME, agents)
    }

    fn launch<F: Real, L: Launcher<F>>(&self, problem: Problem<F>, launcher: L) -> L::Outcome {
        let Self { components, iterations, particles, .. } = *self;
        Federated::launch(problem, self.rounds, Participation::All, Npv { components, iterations, particles }, launcher)
    }
}

/// The mixture.
#[derive(Clone, Debug)]
struct Mixture {
    /// μ_n, N × d.
    means: Array2<f64>,
    /// log σ_n².
    log_variances: Vec<f64>,
}

/// The entropy's bound and what its slopes are made of.
struct Entropy {
    /// N · H.
    bound: f64,
    /// Squared distances between means.
    distances: Array2<f64>,
    /// log N(μ_n; μ_j, σ_n² + σ_j²).
    logs: Array2<f64>,
    /// log Σ_j of these.
    sums: Vec<f64>,
}

impl Entropy {
    /// w_nj, the share of component j in q̂_n.
    fn share(&self, n: usize, j: usize) -> f64 {
        (self.logs[(n, j)] - self.sums[n]).exp()
    }
}

/// log N(x; y, σ²) in d dimensions, from ‖x − y‖².
fn log_normal(dim: usize, variance: f64, squared_distance: f64) -> f64 {
    -0.5 * (dim as f64 * (2.0 * PI * variance).ln() + squared_distance / variance)
}

/// A mixture of which one mean moves: what of the entropy's bound does not change with it is kept.
struct Around<'a> {
    mixture: &'a Mixture,
    /// Which one.
    n: usize,
    /// log Σ_j N(μ_i; μ_j, σ_i² + σ_j²) over all others j.
    rest: Vec<f64>,
}

impl Around<'_> {
    /// log N(μ; μ_j, σ_n² + σ_j²) of all j, where component n is at μ.
    fn logs(&self, mean: &[f64]) -> Vec<f64> {
        let apart = |j: usize| mean.iter().zip(self.mixture.means.row(j)).map(|(own, other)| (own - other).powi(2)).sum();
        let log = |j: usize| {
            let squared_distance = if j == self.n { 0.0 } else { apart(j) };
            log_normal(mean.len(), self.mixture.variance(self.n, j), squared_distance)
        };
        (0..self.rest.len()).map(log).collect()
    }

    /// log Σ_j of each component, from what [`Self::logs`] gives.
    fn sums(&self, logs: &[f64]) -> Vec<f64> {
        let sum = |(i, (&log, &rest))| {
            if i == self.n { log_sum_exp(logs.iter().copied()) } else { log_sum_exp([rest, log].into_iter()) }
        };
        logs.iter().zip(&self.rest).enumerate().map(sum).collect()
    }

    /// N · H where component n is at μ.
    fn bound(&self, mean: &[f64]) -> f64 {
        let count = self.rest.len() as f64;
        count * count.ln() - self.sums(&self.logs(mean)).iter().sum::<f64>()
    }

    /// Its slope over μ, onto `slope`.
    fn add_slope(&self, mean: &[f64], slope: &mut [f64]) {
        let logs = self.logs(mean);
        let sums = self.sums(&logs);
        for j in (0..logs.len()).filter(|&j| j != self.n) {
            let push = ((logs[j] - sums[self.n]).exp() + (logs[j] - sums[j]).exp()) / self.mixture.variance(self.n, j);
            let apart = mean.iter().zip(self.mixture.means.row(j));
            slope.iter_mut().zip(apart).for_each(|(slope, (own, other))| *slope += push * (own - other));
        }
    }
}

impl Mixture {
    fn of<F: Real>(numbers: &[F], components: usize, dim: usize) -> Result<Self> {
        if numbers.len() != components * (dim + 1) {
            return Err(format!("{} numbers for a mixture of {components} Gaussians", numbers.len()).into());
        }
        let (means, log_variances) = numbers.split_at(components * dim);
        let means = Array2::from_shape_vec((components, dim), means.iter().map(|mean| mean.f64()).collect())?;
        Ok(Self { means, log_variances: log_variances.iter().map(|log| log.f64()).collect() })
    }

    fn numbers<F: Real>(&self) -> Vec<F> {
        self.means.iter().chain(&self.log_variances).map(|&number| F::of(number)).collect()
    }

    /// σ_n² + σ_j².
    fn variance(&self, n: usize, j: usize) -> f64 {
        self.log_variances[n].exp() + self.log_variances[j].exp()
    }

    fn entropy(&self) -> Entropy {
        let (count, dim) = self.means.dim();
        let distances = squared_distances(self.means.view(), self.means.view());
        let logs = Array2::from_shape_fn((count, count), |(n, j)| log_normal(dim, self.variance(n, j), distances[(n, j)]));
        let sums: Vec<f64> = logs.rows().into_iter().map(|row| log_sum_exp(row.iter().copied())).collect();
        let bound = count as f64 * (count as f64).ln() - sums.iter().sum::<f64>();
        Entropy { bound, distances, logs, sums }
    }

    /// The mixture around component n, which moves.
    fn around(&self, n: usize) -> Around<'_> {
        let Entropy { logs, .. } = self.entropy();
        let rest = |i: usize| log_sum_exp((0..self.means.nrows()).filter(|&j| j != n).map(|j| logs[(i, j)]));
        Around { mixture: self, n, rest: (0..self.means.nrows()).map(rest).collect() }
    }

    /// The slope of N · H over log σ_n², of all n.
    fn slope_of_variances(&self) -> Vec<f64> {
        let entropy = self.entropy();
        let (count, dim) = self.means.dim();
        let slope = |n: usize| {
            let own = self.log_variances[n].exp();
            let towards = |j: usize| {
                let variance = self.variance(n, j);
                // −∂ log N(μ_n; μ_j, v)/∂v · ∂v/∂ log σ_n². The component's own density is in q̂_n alone, and has v = 2 σ_n².
                let slope = 0.5 * (dim as f64 / variance - entropy.distances[(n, j)] / (variance * variance));
                if j == n {
                    entropy.share(n, n) * slope * 2.0 * own
                } else {
                    (entropy.share(n, j) + entropy.share(j, n)) * slope * own
                }
            };
            (0..count).map(towards).sum()
        };
        (0..count).map(slope).collect()
    }
}

/// All data of the posterior, and where they are evaluated.
struct Joint<'a, F> {
    local: &'a mut LocalLoss<F>,
    cx: &'a Context,
}

impl<F: Real> Joint<'_, F> {
    /// f(θ), up to a constant.
    fn log_density(&mut self, theta: &[f64]) -> f64 {
        let theta = Array2::from_shape_fn((1, theta.len()), |(_, i)| F::of(theta[i]));
        let (mut loss, mut prior) = ([0.0], [0.0]);
        self.local.loss(theta.view(), 0, &mut loss, self.cx);
        self.local.log_prior(theta.view(), &mut prior);
        prior[0] - loss[0]
    }

    /// ∇f(θ).
    fn score(&mut self, theta: &[f64]) -> Vec<f64> {
        let theta = Array2::from_shape_fn((1, theta.len()), |(_, i)| F::of(theta[i]));
        let mut score = Array2::zeros(theta.dim());
        self.local.prior_score(theta.view(), score.view_mut());
        self.local.add_score(theta.view(), 0, score.view_mut(), self.cx);
        score.iter().map(|score| score.f64()).collect()
    }

    /// tr ∇²f(μ_n) of all n.
    fn traces(&mut self, means: &Array2<f64>) -> Vec<f64> {
        let theta = means.mapv(F::of);
        let mut curvature = Array2::zeros(theta.dim());
        self.local.add_curvature(theta.view(), 0, curvature.view_mut(), self.cx);
        let mut traces: Vec<f64> = curvature.rows().into_iter().map(|row| -row.iter().map(|c| c.f64()).sum::<f64>()).collect();
        // Where rounding and the third derivative cost alike.
        let step = F::epsilon().f64().cbrt();
        let mut moved = theta.clone();
        let mut scores = [Array2::zeros(theta.dim()), Array2::zeros(theta.dim())];
        for i in 0..theta.ncols() {
            for (score, by) in scores.iter_mut().zip([step, -step]) {
                moved
                    .column_mut(i)
                    .zip_mut_with(&theta.column(i), |moved, &at| *moved = at + F::of(by * at.f64().abs().max(1.0)));
                self.local.prior_score(moved.view(), score.view_mut());
            }
            for (n, trace) in traces.iter_mut().enumerate() {
                let width = 2.0 * step * theta[(n, i)].f64().abs().max(1.0);
                *trace += (scores[0][(n, i)].f64() - scores[1][(n, i)].f64()) / width;
            }
            moved.column_mut(i).assign(&theta.column(i));
        }
        traces
    }
}

/// A function that is minimised, with the lowest point that was looked at: a line search that finds no lower one ends in an error.
struct Descent<C, G> {
    cost: C,
    gradient: G,
    lowest: RefCell<(f64, Vec<f64>)>,
}

impl<C: Fn(&[f64]) -> f64, G> CostFunction for &Descent<C, G> {
    type Param = Vec<f64>;
    type Output = f64;

    fn cost(&self, at: &Vec<f64>) -> std::result::Result<f64, Error> {
        let cost = (self.cost)(at);
        let mut lowest = self.lowest.borrow_mut();
        if cost < lowest.0 {
            *lowest = (cost, at.clone());
        }
        Ok(cost)
    }
}

impl<C, G: Fn(&[f64]) -> Vec<f64>> Gradient for &Descent<C, G> {
    type Param = Vec<f64>;
    type Gradient = Vec<f64>;

    fn gradient(&self, at: &Vec<f64>) -> std::result::Result<Vec<f64>, Error> {
        Ok((self.gradient)(at))
    }
}

/// Where L-BFGS gets to from here in so many iterations; it ends earlier where no lower point is found.
fn lowest(start: Vec<f64>, iterations: u64, cost: impl Fn(&[f64]) -> f64, gradient: impl Fn(&[f64]) -> Vec<f64>) -> Vec<f64> {
    let descent = Descent { cost, gradient, lowest: RefCell::new((f64::INFINITY, start.clone())) };
    let solver = LBFGS::new(MoreThuenteLineSearch::new(), MEMORY);
    // The point is kept by the function; an error says that there is no lower one along the line.
    drop(Executor::new(&descent, solver).configure(|state| state.param(start).max_iters(iterations)).run());
    descent.lowest.into_inner().1
}

impl<F: Real> Strategy<F> for Npv {
    fn start(&self, problem: &Problem<F>, cx: &Context) -> Result<Global<F>> {
        centralised(NpvSettings::NAME, problem.agents)?;
        if problem.model.curvature_support() == CurvatureSupport::None {
            return Err("npv wants the curvature of the loss, which this model does not tell".into());
        }
        let means = problem.initial_particles(self.components, cx).mapv(|mean| mean.f64());
        let mixture = Mixture { means, log_variances: vec![0.0; self.components] };
        Ok(Global { sets: vec![Raw(mixture.numbers())], ..Global::initial(raw(self.draws(&mixture, 0, cx)).0) })
    }

    fn message(&self, global: &Global<F>) -> Vec<F> {
        global.sets.first().map(|set| set.0.clone()).unwrap_or_default()
    }

    fn aggregate(&self, global: &mut Global<F>, responses: Responses<F>, problem: &Problem<F>, cx: &mut Context) -> Result<()> {
        let set = responses.only()?.into_vec();
        let mixture = Mixture::of(&set, self.components, problem.model.dim())?;
        for (n, log) in mixture.log_variances.iter().enumerate() {
            cx.log_row("components", global.round + 1, [("component", n as f64), ("variance", log.exp())]);
        }
        global.theta = raw(self.draws(&mixture, global.round + 1, cx));
        global.sets = vec![Raw(set)];
        Ok(())
    }

    fn columns(&self) -> &'static [&'static str] {
        &["elbo"]
    }

    fn client(&self, problem: &Problem<F>, agent: AgentId, state: ClientState<F>) -> Result<Box<dyn Client<F>>> {
        let local = problem.open(agent, usize::MAX)?;
        Ok(Box::new(Fit { local, dim: problem.model.dim(), method: self.clone(), state }))
    }
}

impl Npv {
    /// Draws from the mixture, as many of each component as of every other, or one more.
    fn draws<F: Real>(&self, mixture: &Mixture, round: u64, cx: &Context) -> Array2<F> {
        let dim = mixture.means.ncols();
        let mut draws = Array2::zeros((self.particles, dim));
        let mut stream = cx.stream(Who::Server, round, Purpose::Noise);
        let mut normals = vec![0.0; dim];
        for (place, mut draw) in draws.rows_mut().into_iter().enumerate() {
            let component = place % self.components;
            let deviation = (0.5 * mixture.log_variances[component]).exp();
            stream.normals(&mut normals);
            let mean = mixture.means.row(component);
            draw.iter_mut().zip(mean).zip(&normals).for_each(|((draw, mean), z)| *draw = F::of(mean + deviation * z));
        }
        draws
    }
}

/// Holds all data, and keeps nothing between rounds.
struct Fit<F: Real> {
    local: LocalLoss<F>,
    dim: usize,
    method: Npv,
    state: ClientState<F>,
}

impl<F: Real> Client<F> for Fit<F> {
    fn state(&self) -> &ClientState<F> {
        &self.state
    }

    fn respond(&mut self, _: u64, message: Body<F>, cx: &mut Context) -> Result<(Vec<f64>, Body<F>)> {
        let Npv { components, iterations, .. } = self.method;
        let mut mixture = Mixture::of(&message, components, self.dim)?;
        let joint = RefCell::new(Joint { local: &mut self.local, cx });
        for n in 0..components {
            let around = mixture.around(n);
            let cost = |mean: &[f64]| -around.bound(mean) - joint.borrow_mut().log_density(mean);
            let gradient = |mean: &[f64]| {
                let mut slope = joint.borrow_mut().score(mean);
                around.add_slope(mean, &mut slope);
                slope.iter_mut().for_each(|slope| *slope = -*slope);
                slope
            };
            let mean = lowest(mixture.means.row(n).to_vec(), iterations, cost, gradient);
            mixture.means.row_mut(n).assign(&ArrayView1::from(&mean));
        }
        let traces = joint.borrow_mut().traces(&mixture.means);
        if let Some(n) = traces.iter().position(|trace| trace.is_nan() || *trace >= 0.0) {
            return Err(
                format!("the posterior has no peak at component {n}: its log-density curves by {} in all", traces[n]).into()
            );
        }
        let with = |log_variances: &[f64]| Mixture { log_variances: log_variances.to_vec(), ..mixture.clone() };
        let trace_term = |log: &f64, trace: &f64| 0.5 * log.exp() * trace;
        let elbo =
            |logs: &[f64]| with(logs).entropy().bound + logs.iter().zip(&traces).map(|(l, t)| trace_term(l, t)).sum::<f64>();
        let gradient = |logs: &[f64]| {
            let slopes = with(logs).slope_of_variances().into_iter().zip(logs.iter().zip(&traces));
            slopes.map(|(slope, (log, trace))| -slope - trace_term(log, trace)).collect()
        };
        // Exact for components that are far from each other.
        let alone = traces.iter().map(|trace| (-(self.dim as f64) / trace).ln()).collect();
        let mut logs = lowest(alone, iterations, |logs| -elbo(logs), gradient);
        logs.iter_mut().for_each(|log| *log = log.max(FLOOR.ln()));
        let densities: f64 = mixture.means.rows().into_iter().map(|mean| joint.borrow_mut().log_density(&mean.to_vec())).sum();
        let bound = (elbo(&logs) + densities) / components as f64;
        Ok((vec![bound], with(&logs).numbers().into()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::random::Seed;

    #[test]
    fn settings_that_cannot_be_run_are_refused() {
        let parse = |text: &str| toml::from_str::<NpvSettings>(text).unwrap();
        assert_eq!(parse("").check(), Ok(()));
        for (bad, says) in [("components = 0", "components"), ("iterations = 0", "iterations"), ("particles = 0", "particles")] {
            assert!(parse(bad).check().unwrap_err().contains(says), "{bad}");
        }
        assert!(parse("").check_for(1).is_ok() && parse("").check_for(2).unwrap_err().contains("set agents = 1"));
    }

    /// Slopes of the entropy's bound are its central differences; with one component it is d/2 log(4πσ²), that of a Gaussian but for
    /// d/2 log(e/2).
    #[test]
    fn slopes_of_the_entropy_agree_with_central_differences() {
        let (components, dim) = (4, 3);
        let mut means = vec![0.0; components * dim];
        Seed(5).stream(Who::Run, 0, Purpose::Synthetic).normals(&mut means);
        let means = Array2::from_shape_vec((components, dim), means).unwrap();
        let mixture = Mixture { means, log_variances: vec![-0.3, 0.4, -1.0, 0.1] };
        let step = 1e-5;
        let slope = |change: &dyn Fn(&mut Mixture, f64)| {
            let at = |by: f64| {
                let mut moved = mixture.clone();
                change(&mut moved, by);
                moved.entropy().bound
            };
            (at(step) - at(-step)) / (2.0 * step)
        };
        for (n, variance) in mixture.slope_of_variances().into_iter().enumerate() {
            let (around, mean) = (mixture.around(n), mixture.means.row(n).to_vec());
            assert!((around.bound(&mean) - mixture.entropy().bound).abs() < 1e-12);
            let mut own = vec![0.0; dim];
            around.add_slope(&mean, &mut own);
            for (i, own) in own.iter().enumerate() {
                let exact = slope(&|moved, by| moved.means[(n, i)] += by);
                assert!((own - exact).abs() < 1e-8, "{n} {i}: {own} {exact}");
            }
            assert!(own.iter().any(|own| own.abs() > 1e-3), "the control: means push each other");
            let exact = slope(&|moved, by| moved.log_variances[n] += by);
            assert!((variance - exact).abs() < 1e-8, "{n}: {variance} {exact}");
        }
        let one = Mixture { means: Array2::zeros((1, dim)), log_variances: vec![0.7] };
        assert!((one.entropy().bound - 1.5 * ((4.0 * PI).ln() + 0.7)).abs() < 1e-12);
    }

    #[test]
    fn a_mixture_of_another_size_is_refused() {
        assert!(Mixture::of(&[0.0; 7], 2, 3).is_err() && Mixture::of(&[0.0; 8], 2, 3).is_ok());
    }
}
