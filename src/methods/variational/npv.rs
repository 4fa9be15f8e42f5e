//! Nonparametric variational inference (NPV): a mixture of Gaussians with equal weights is fitted to the posterior
//! (Gershman, Hoffman & Blei 2012, arXiv 1206.4665).
//!
//! q = 1/N Σ_n N(μ_n, σ_n² I). Its entropy is at least H = −1/N Σ_n log q̂_n, q̂_n = 1/N Σ_j N(μ_n; μ_j, (σ_n² + σ_j²) I). With f the log
//! joint density at the temperature, a round maximizes ELBO₁ = H + 1/N Σ_n f(μ_n) over one mean after the other, and then
//! ELBO₂ = ELBO₁ + 1/N Σ_n σ_n²/2 · tr ∇²f(μ_n) over all log σ_n² together, both by L-BFGS. ∇² of the loss is its Gauss-Newton matrix,
//! of which only the diagonal is needed; ∇² of the log prior comes from differences of its score.
//!
//! One agent has all data. Evaluation uses draws from q.

use crate::cluster::{Agent, AgentId, Body, Context, Method, Outbox, Raw, Response, Result, SerializesAs, ServerState};
use crate::kernels::rbf::squared_distances;
use crate::methods::common::participation::log_round;
use crate::methods::common::particles::{Particles, raw};
use crate::methods::common::problem::{LocalLoss, Problem};
use crate::methods::common::rounds::{RoundServer, Rounds};
use crate::methods::common::settings::{MethodSettings, ResourceEstimate, Table, TableMethod, at_least_one, one_agent};
use crate::methods::tuning::TuningNeeds;
use crate::models::{CurvatureSupport, Model};
use crate::number::{Real, log_sum_exp};
use crate::random::{Purpose, Who};
use crate::settings::{Key, KeyError, keys};
use argmin::core::{CostFunction, Error, Executor, Gradient};
use argmin::solver::linesearch::MoreThuenteLineSearch;
use argmin::solver::quasinewton::LBFGS;
use documented::DocumentedFields;
use ndarray::{Array2, ArrayView1};
use serde::{Deserialize, Serialize};
use std::cell::{Cell, RefCell};
use std::f64::consts::PI;

/// The smallest variance of a component.
const MIN_VARIANCE: f64 = 1e-7;
/// Pairs of steps and gradients that L-BFGS keeps.
const LBFGS_MEMORY: usize = 10;

/// Nonparametric variational inference on one agent.
#[derive(Clone)]
pub struct Npv<F> {
    /// The model and all data.
    pub problem: Problem<F>,
    /// I, the number of rounds.
    pub rounds: u64,
    /// N, the components of the mixture.
    pub components: usize,
    /// Iterations of L-BFGS for each mean, and for the variances.
    pub iterations: u64,
    /// Draws from the mixture that evaluations use.
    pub particles: usize,
}

/// The settings of `npv`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields, default)]
pub struct NpvSettings {
    /// Number of Gaussians in the mixture, all of equal weight.
    components: usize,
    /// Rounds: in each, the means are fitted one after the other, and then all variances.
    rounds: u64,
    /// Iterations of L-BFGS for each mean, and for the variances.
    iterations: u64,
    /// Whether the mixture is fitted in coordinates in which the posterior is close to a standard normal distribution, for models with a full
    /// matrix of curvature and at most 2,000 parameters. Its components have the same variance in all directions, which suits no other
    /// coordinates. The mode of the posterior is found before the run then.
    whitened: bool,
    /// Draws from the mixture that evaluations use and the result file keeps.
    particles: usize,
}

impl Default for NpvSettings {
    fn default() -> Self {
        Self { components: 10, rounds: 10, iterations: 50, whitened: true, particles: 500 }
    }
}

impl MethodSettings for NpvSettings {
    type Data = Table;

    const NAME: &'static str = "npv";

    fn keys() -> Vec<Key> {
        keys::<Self>()
    }

    fn estimate(&self, _: u32, parameters: usize) -> ResourceEstimate {
        let (components, parameters) = (self.components as u64, parameters as u64);
        ResourceEstimate {
            particles: Some(self.particles as u64),
            rounds: Some(self.rounds),
            minibatch: None,
            // Means, their curvatures, two scores of the prior; what L-BFGS remembers.
            values_of_agent: Some(
                parameters.saturating_mul(components.saturating_mul(4).saturating_add(2 * LBFGS_MEMORY as u64)),
            ),
            values_per_round: Some(0),
            ..ResourceEstimate::default()
        }
    }

    fn check(&self) -> std::result::Result<(), KeyError> {
        let Self { components, rounds, iterations, particles, .. } = *self;
        at_least_one(&[
            ("components", components as u64),
            ("rounds", rounds),
            ("iterations", iterations),
            ("particles", particles as u64),
        ])
    }

    fn check_model(&self, model: &dyn Model<f64>) -> std::result::Result<(), KeyError> {
        match model.curvature_support() {
            CurvatureSupport::None => Err(KeyError::table("needs the curvature of the loss, which this model does not provide")),
            _ => Ok(()),
        }
    }

    fn tuning(&self) -> Option<TuningNeeds> {
        TuningNeeds::coordinates(self.whitened, self.rounds)
    }

    fn check_agents(&self, agents: u32) -> std::result::Result<(), KeyError> {
        one_agent(Self::NAME, agents)
    }

    fn method<F: Real>(&self, problem: Problem<F>) -> TableMethod<F> {
        let Self { components, rounds, iterations, particles, .. } = *self;
        TableMethod::particles(Npv { problem, rounds, components, iterations, particles })
    }
}

/// A mixture of Gaussians with equal weights.
#[derive(Clone, Debug)]
struct Mixture {
    /// μ_n, N × d.
    means: Array2<f64>,
    /// log σ_n².
    log_variances: Vec<f64>,
}

/// The bound on the entropy and the terms of its gradient.
struct Entropy {
    /// N · H.
    bound: f64,
    /// Squared distances between means.
    distances: Array2<f64>,
    /// log N(μ_n; μ_j, σ_n² + σ_j²).
    logs: Array2<f64>,
    /// log Σ_j N(μ_n; μ_j, σ_n² + σ_j²).
    sums: Vec<f64>,
}

impl Entropy {
    /// The responsibility w_nj of component j in q̂_n.
    fn responsibility(&self, n: usize, j: usize) -> f64 {
        (self.logs[(n, j)] - self.sums[n]).exp()
    }
}

/// log N(x; y, σ²) in d dimensions, from ‖x − y‖².
fn log_normal(dim: usize, variance: f64, squared_distance: f64) -> f64 {
    -0.5 * (dim as f64 * (2.0 * PI * variance).ln() + squared_distance / variance)
}

/// The entropy bound of a mixture as a function of one mean: the terms that do not depend on this mean are computed once.
struct OneMean<'a> {
    mixture: &'a Mixture,
    /// The component whose mean varies.
    n: usize,
    /// log Σ_{j≠n} N(μ_i; μ_j, σ_i² + σ_j²) of each component i.
    other_sums: Vec<f64>,
}

impl OneMean<'_> {
    /// log N(μ; μ_j, σ_n² + σ_j²) of all j, with component n at μ.
    fn logs(&self, mean: &[f64]) -> Vec<f64> {
        let squared_distance_to =
            |j: usize| mean.iter().zip(self.mixture.means.row(j)).map(|(own, other)| (own - other).powi(2)).sum();
        let log = |j: usize| {
            let squared_distance = if j == self.n { 0.0 } else { squared_distance_to(j) };
            log_normal(mean.len(), self.mixture.variance(self.n, j), squared_distance)
        };
        (0..self.other_sums.len()).map(log).collect()
    }

    /// log Σ_j of each component, from the result of [`Self::logs`].
    fn sums(&self, logs: &[f64]) -> Vec<f64> {
        let sum = |(i, (&log, &others))| {
            if i == self.n { log_sum_exp(logs.iter().copied()) } else { log_sum_exp([others, log].into_iter()) }
        };
        logs.iter().zip(&self.other_sums).enumerate().map(sum).collect()
    }

    /// N · H with component n at μ.
    fn bound(&self, mean: &[f64]) -> f64 {
        let count = self.other_sums.len() as f64;
        count * count.ln() - self.sums(&self.logs(mean)).iter().sum::<f64>()
    }

    /// Adds the gradient of [`Self::bound`] to `gradient`.
    fn add_gradient(&self, mean: &[f64], gradient: &mut [f64]) {
        let logs = self.logs(mean);
        let sums = self.sums(&logs);
        for j in (0..logs.len()).filter(|&j| j != self.n) {
            let weight = ((logs[j] - sums[self.n]).exp() + (logs[j] - sums[j]).exp()) / self.mixture.variance(self.n, j);
            let pairs = mean.iter().zip(self.mixture.means.row(j));
            gradient.iter_mut().zip(pairs).for_each(|(gradient, (own, other))| *gradient += weight * (own - other));
        }
    }
}

impl Mixture {
    /// From its parameters, as [`Self::parameters`] returns them.
    ///
    /// # Errors
    /// If their number does not fit.
    fn from_parameters<F: Real>(parameters: &[F], components: usize, dim: usize) -> Result<Self> {
        if parameters.len() != components * (dim + 1) {
            return Err(format!("npv: {} parameters for a mixture of {components} Gaussians", parameters.len()).into());
        }
        let (means, log_variances) = parameters.split_at(components * dim);
        let means = Array2::from_shape_vec((components, dim), means.iter().map(|mean| mean.f64()).collect())?;
        Ok(Self { means, log_variances: log_variances.iter().map(|log| log.f64()).collect() })
    }

    /// All means (N × d), followed by all log variances (N).
    fn parameters<F: Real>(&self) -> Vec<F> {
        self.means.iter().chain(&self.log_variances).map(|&parameter| F::of(parameter)).collect()
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

    /// The entropy bound as a function of the mean of component n.
    fn one_mean(&self, n: usize) -> OneMean<'_> {
        let Entropy { logs, .. } = self.entropy();
        let other_sum = |i: usize| log_sum_exp((0..self.means.nrows()).filter(|&j| j != n).map(|j| logs[(i, j)]));
        OneMean { mixture: self, n, other_sums: (0..self.means.nrows()).map(other_sum).collect() }
    }

    /// The gradient of N · H with respect to all log σ_n².
    fn gradient_of_variances(&self) -> Vec<f64> {
        let entropy = self.entropy();
        let (count, dim) = self.means.dim();
        let derivative = |n: usize| {
            let own = self.log_variances[n].exp();
            let term = |j: usize| {
                let variance = self.variance(n, j);
                // −∂ log N(μ_n; μ_j, v)/∂v · ∂v/∂ log σ_n². The component's own term occurs in q̂_n only, with v = 2 σ_n².
                let slope = 0.5 * (dim as f64 / variance - entropy.distances[(n, j)] / (variance * variance));
                if j == n {
                    entropy.responsibility(n, n) * slope * 2.0 * own
                } else {
                    (entropy.responsibility(n, j) + entropy.responsibility(j, n)) * slope * own
                }
            };
            (0..count).map(term).sum()
        };
        (0..count).map(derivative).collect()
    }
}

/// The log joint density f on all data.
struct LogJoint<'a, F> {
    local: &'a mut LocalLoss<F>,
    cx: &'a Context,
}

impl<F: Real> LogJoint<'_, F> {
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
        // Balances rounding against the truncation error of a central difference.
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

/// A function to minimize, with the lowest point evaluated so far: a line search that finds no lower one returns an error, not a point.
struct Objective<C, G> {
    cost: C,
    gradient: G,
    lowest: RefCell<(f64, Vec<f64>)>,
    /// How often it may still be evaluated: where values and gradients contradict each other by rounding, a line search may never end.
    evaluations: Cell<u64>,
}

impl<C, G> Objective<C, G> {
    fn count(&self) -> std::result::Result<(), Error> {
        let left = self.evaluations.get().checked_sub(1).ok_or_else(|| Error::msg("the line search does not end"))?;
        self.evaluations.set(left);
        Ok(())
    }
}

/// A line search takes a few evaluations of the function and of its gradient.
const EVALUATIONS_PER_ITERATION: u64 = 40;

impl<C: Fn(&[f64]) -> f64, G> CostFunction for &Objective<C, G> {
    type Param = Vec<f64>;
    type Output = f64;

    fn cost(&self, point: &Vec<f64>) -> std::result::Result<f64, Error> {
        self.count()?;
        let cost = (self.cost)(point);
        let mut lowest = self.lowest.borrow_mut();
        if cost < lowest.0 {
            *lowest = (cost, point.clone());
        }
        Ok(cost)
    }
}

impl<C, G: Fn(&[f64]) -> Vec<f64>> Gradient for &Objective<C, G> {
    type Param = Vec<f64>;
    type Gradient = Vec<f64>;

    fn gradient(&self, point: &Vec<f64>) -> std::result::Result<Vec<f64>, Error> {
        self.count()?;
        Ok((self.gradient)(point))
    }
}

/// The lowest point that L-BFGS finds from `start` within `iterations`; it stops early if a line search finds no lower point, or does not end.
fn minimize(start: Vec<f64>, iterations: u64, cost: impl Fn(&[f64]) -> f64, gradient: impl Fn(&[f64]) -> Vec<f64>) -> Vec<f64> {
    let evaluations = Cell::new(iterations.saturating_add(1).saturating_mul(EVALUATIONS_PER_ITERATION));
    let objective = Objective { cost, gradient, lowest: RefCell::new((f64::INFINITY, start.clone())), evaluations };
    let solver = LBFGS::new(MoreThuenteLineSearch::new(), LBFGS_MEMORY);
    // An error only means that the line search has found no lower point; the lowest point is kept by the objective.
    drop(Executor::new(&objective, solver).configure(|state| state.param(start).max_iters(iterations)).run());
    objective.lowest.into_inner().1
}

impl<F: Real> Method for Npv<F> {
    const NAME: &'static str = NpvSettings::NAME;
    type Number = F;
    /// The round, which counts from 1. The body holds the parameters of the mixture, and so does the report's.
    type Task = u64;
    /// The evidence lower bound after the round.
    type Report = [f64; 1];
    type Server = RoundServer<Self>;
    type Agent = NpvAgent<F>;

    fn agents(&self) -> u32 {
        self.problem.agents
    }

    fn server(&self, saved: Option<ServerState<Self>>) -> Result<RoundServer<Self>> {
        Ok(RoundServer::new(self, &self.problem, self.rounds, saved))
    }

    fn agent(&self, id: AgentId, _: Option<()>) -> Result<NpvAgent<F>> {
        Ok(NpvAgent { local: self.problem.open(id, usize::MAX)?, method: self.clone() })
    }
}

impl<F: Real> Npv<F> {
    /// Draws from the mixture; component n gives draws n, n + N, n + 2N, ...
    fn draws(&self, mixture: &Mixture, round: u64, cx: &Context) -> Vec<F> {
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
        raw(draws).0
    }
}

/// The server keeps the parameters of the mixture, and evaluations use draws from it.
impl<F: Real> Rounds for Npv<F> {
    type State = Raw<F>;

    fn start(&self, cx: &Context) -> Result<(Vec<F>, Raw<F>)> {
        one_agent(NpvSettings::NAME, self.problem.agents).map_err(|error| error.to_string())?;
        if self.problem.model.curvature_support() == CurvatureSupport::None {
            return Err("npv: this model does not provide the curvature of its loss; use another method".into());
        }
        let means = self.problem.initial_particles(self.components, cx).mapv(|mean| mean.f64());
        let mixture = Mixture { means, log_variances: vec![0.0; self.components] };
        Ok((self.draws(&mixture, 0, cx), Raw(mixture.parameters())))
    }

    fn request(&self, draws: &Particles<F>, mixture: &Raw<F>, out: &mut Outbox<Self>, _: &Context) {
        out.request([0], draws.round + 1).with(mixture.0.clone());
    }

    fn update(
        &self,
        draws: &Particles<F>,
        parameters: &mut Raw<F>,
        response: Response<Self>,
        cx: &mut Context,
    ) -> Result<Option<Vec<F>>> {
        let round = draws.round + 1;
        log_round(round, ["elbo"], &response.reports, cx);
        *parameters = Raw(response.only()?.body.into_vec());
        let mixture = Mixture::from_parameters(&parameters.0, self.components, self.problem.model.dim())?;
        for (n, log) in mixture.log_variances.iter().enumerate() {
            cx.log_row("components", round, [("component", n as f64), ("variance", log.exp())]);
        }
        Ok(Some(self.draws(&mixture, round, cx)))
    }
}

/// Fits the mixture to all data; keeps nothing between rounds.
pub struct NpvAgent<F: Real> {
    local: LocalLoss<F>,
    method: Npv<F>,
}

impl<F: Real> Agent<Npv<F>> for NpvAgent<F> {
    type State = ();

    fn state(&self) -> impl SerializesAs<()> {
        &()
    }

    fn perform(&mut self, _: &u64, parameters: Body<F>, cx: &mut Context) -> Result<([f64; 1], Body<F>)> {
        let Npv { components, iterations, .. } = self.method;
        let dim = self.method.problem.model.dim();
        let mut mixture = Mixture::from_parameters(&parameters, components, dim)?;
        let joint = RefCell::new(LogJoint { local: &mut self.local, cx });
        for n in 0..components {
            let one_mean = mixture.one_mean(n);
            let cost = |mean: &[f64]| -one_mean.bound(mean) - joint.borrow_mut().log_density(mean);
            let gradient = |mean: &[f64]| {
                let mut gradient = joint.borrow_mut().score(mean);
                one_mean.add_gradient(mean, &mut gradient);
                gradient.iter_mut().for_each(|gradient| *gradient = -*gradient);
                gradient
            };
            let mean = minimize(mixture.means.row(n).to_vec(), iterations, cost, gradient);
            mixture.means.row_mut(n).assign(&ArrayView1::from(&mean));
        }
        let traces = joint.borrow_mut().traces(&mixture.means);
        if let Some(n) = traces.iter().position(|trace| trace.is_nan() || *trace >= 0.0) {
            let trace = traces[n];
            return Err(
                format!("npv: component {n} is not at a maximum of the posterior: tr ∇² log p = {trace}, not negative").into()
            );
        }
        let with = |log_variances: &[f64]| Mixture { log_variances: log_variances.to_vec(), ..mixture.clone() };
        let trace_term = |log: &f64, trace: &f64| 0.5 * log.exp() * trace;
        let elbo =
            |logs: &[f64]| with(logs).entropy().bound + logs.iter().zip(&traces).map(|(l, t)| trace_term(l, t)).sum::<f64>();
        let gradient = |logs: &[f64]| {
            let slopes = with(logs).gradient_of_variances().into_iter().zip(logs.iter().zip(&traces));
            slopes.map(|(slope, (log, trace))| -slope - trace_term(log, trace)).collect()
        };
        // The optimum of components that are far from each other.
        let start = traces.iter().map(|trace| (-(dim as f64) / trace).ln()).collect();
        let mut logs = minimize(start, iterations, |logs| -elbo(logs), gradient);
        logs.iter_mut().for_each(|log| *log = log.max(MIN_VARIANCE.ln()));
        let densities: f64 = mixture.means.rows().into_iter().map(|mean| joint.borrow_mut().log_density(&mean.to_vec())).sum();
        let bound = (elbo(&logs) + densities) / components as f64;
        Ok(([bound], with(&logs).parameters().into()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::random::Seed;

    #[test]
    fn a_line_search_that_does_not_end_is_ended() {
        // A gradient that promises what the function never keeps, with values that differ by rounding.
        let count = Cell::new(0_u64);
        let cost = |x: &[f64]| {
            count.set(count.get() + 1);
            assert!(count.get() < 10_000, "the search does not end");
            1e-17 * (1e9 * x[0]).sin()
        };
        let found = minimize(vec![1.0], 5, cost, |_| vec![1.0]);
        assert!(found[0].is_finite());
        // The control: an ordinary function needs few of them.
        let found = minimize(vec![3.0, -2.0], 50, |x| x[0].powi(4) + x[1].powi(2), |x| vec![4.0 * x[0].powi(3), 2.0 * x[1]]);
        assert!(found.iter().all(|x| x.abs() < 0.1), "{found:?}");
    }

    #[test]
    fn invalid_settings_are_refused() {
        let parse = |text: &str| toml::from_str::<NpvSettings>(text).unwrap();
        assert_eq!(parse("").check(), Ok(()));
        for (bad, message) in [("components = 0", "components"), ("iterations = 0", "iterations"), ("particles = 0", "particles")]
        {
            assert!(parse(bad).check().unwrap_err().to_string().contains(message), "{bad}");
        }
        assert!(
            parse("").check_agents(1).is_ok() && parse("").check_agents(2).unwrap_err().to_string().contains("agents: must be 1")
        );
    }

    /// With one component the bound is d/2 log(4πσ²), the entropy of the Gaussian less d/2 log(e/2).
    #[test]
    fn gradients_of_the_entropy_bound_agree_with_central_differences() {
        let (components, dim) = (4, 3);
        let mut means = vec![0.0; components * dim];
        Seed(5).stream(Who::Run, 0, Purpose::Synthetic).normals(&mut means);
        let means = Array2::from_shape_vec((components, dim), means).unwrap();
        let mixture = Mixture { means, log_variances: vec![-0.3, 0.4, -1.0, 0.1] };
        let step = 1e-5;
        let central_difference = |change: &dyn Fn(&mut Mixture, f64)| {
            let bound = |by: f64| {
                let mut moved = mixture.clone();
                change(&mut moved, by);
                moved.entropy().bound
            };
            (bound(step) - bound(-step)) / (2.0 * step)
        };
        for (n, variance) in mixture.gradient_of_variances().into_iter().enumerate() {
            let (one_mean, mean) = (mixture.one_mean(n), mixture.means.row(n).to_vec());
            assert!((one_mean.bound(&mean) - mixture.entropy().bound).abs() < 1e-12);
            let mut own = vec![0.0; dim];
            one_mean.add_gradient(&mean, &mut own);
            for (i, own) in own.iter().enumerate() {
                let exact = central_difference(&|moved, by| moved.means[(n, i)] += by);
                assert!((own - exact).abs() < 1e-8, "{n} {i}: {own} {exact}");
            }
            assert!(own.iter().any(|own| own.abs() > 1e-3), "control: the gradient is not 0, as components repel each other");
            let exact = central_difference(&|moved, by| moved.log_variances[n] += by);
            assert!((variance - exact).abs() < 1e-8, "{n}: {variance} {exact}");
        }
        let one = Mixture { means: Array2::zeros((1, dim)), log_variances: vec![0.7] };
        assert!((one.entropy().bound - 1.5 * ((4.0 * PI).ln() + 0.7)).abs() < 1e-12);
    }

    #[test]
    fn mixture_parameters_of_the_wrong_size_are_refused() {
        assert!(Mixture::from_parameters(&[0.0; 7], 2, 3).is_err() && Mixture::from_parameters(&[0.0; 8], 2, 3).is_ok());
    }
}
