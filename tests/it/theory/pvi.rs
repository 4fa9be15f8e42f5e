//! Partitioned and global variational inference with Gaussians against exact theory: closed forms, and optima found on a grid.

#![allow(clippy::unwrap_used)]

use crate::grid::{Grid, GridDvi, log_normal, toy_gradient, toy_loss};
use crate::one_dimensional::{Line, share};
use crate::recording::run;
use mpibayes::cluster::{Agent, AgentReportOf, Body, Context, Method, Outbox, ResponseOf, Server};
use mpibayes::data::Shard;
use mpibayes::methods::common::participation::Participation;
use mpibayes::methods::common::problem::Problem;
use mpibayes::methods::common::rounds::RoundServer;
use mpibayes::methods::variational::pvi::{Covariance, Gaussian, Natural, Pvi, PviAgent};
use mpibayes::models::gaussian::FactorProductSettings;
use mpibayes::models::linear::LinearSettings;
use mpibayes::models::logistic::LogisticSettings;
use mpibayes::models::regression::prior::Prior;
use mpibayes::models::{Batch, DataSchema, Model, Output, Scratch};
use mpibayes::random::{Purpose, Seed, Who};
use ndarray::{Array1, Array2, Axis, s};
use ndarray_linalg::Inverse;
use std::sync::Arc;

/// One agent at a time, full covariance, no damping.
fn plain(problem: Problem<f64>) -> Pvi<f64> {
    let (schedule, covariance) = (Participation::RoundRobin, Covariance::Full);
    let (rounds, particles) = (u64::MAX, 5);
    Pvi { problem, rounds, schedule, iterations: 1, damping: 1.0, covariance, nodes: None, batch: None, particles }
}

/// The server and the agents, driven by hand so that natural parameters can be read.
struct ByHand {
    method: Pvi<f64>,
    server: RoundServer<Pvi<f64>>,
    agents: Vec<PviAgent<f64>>,
    cx: Context,
}

impl ByHand {
    fn new(method: &Pvi<f64>) -> Self {
        let mut cx = Context::detached(Seed(1));
        let mut server = method.server(None).unwrap();
        server.start(&mut Outbox::default(), &mut cx).unwrap();
        let agents = (0..method.problem.agents).map(|agent| method.agent(agent, None).unwrap()).collect();
        Self { method: method.clone(), server, agents, cx }
    }

    fn natural_parameters(&self) -> &[f64] {
        &self.server.state.0
    }

    /// A round of these agents.
    fn round(&mut self, agents: &[u32]) {
        let round = self.server.particles.round + 1;
        let message = self.natural_parameters().to_vec();
        let mut sum = vec![0.0; message.len()];
        let mut reports = Vec::new();
        for &from in agents {
            let (report, change) = self.agents[from as usize].perform(&round, message.clone().into(), &mut self.cx).unwrap();
            sum.iter_mut().zip(change.iter()).for_each(|(sum, change)| *sum += change);
            reports.push(AgentReportOf { from, seconds: 0.0, report, body: Body::empty() });
        }
        let response = ResponseOf { reports, sum: sum.into() };
        self.server.receive(response, &mut Outbox::default(), &mut self.cx).unwrap();
    }

    /// Rounds of one agent after the other.
    fn turns(mut self, rounds: u32) -> Self {
        (0..rounds).for_each(|round| self.round(&[round % self.method.problem.agents]));
        self
    }

    /// Rounds of all agents.
    fn together(mut self, rounds: u32) -> Self {
        let all: Vec<u32> = (0..self.method.problem.agents).collect();
        (0..rounds).for_each(|_| self.round(&all));
        self
    }

    fn natural(&self) -> Natural {
        Natural { covariance: self.method.covariance, dim: self.method.problem.model.dim() }
    }

    fn q(&self) -> Gaussian {
        Gaussian::of(self.natural(), self.natural_parameters()).unwrap()
    }
}

fn largest<'a>(off: impl IntoIterator<Item = &'a f64>) -> f64 {
    off.into_iter().fold(0.0, |worst, off| off.abs().max(worst))
}

/// A linear regression on four correlated columns in shards of 20, 30 and 50 rows, and its exact posterior.
fn regression(agents: u32, temperature: f64) -> (Problem<f64>, Array1<f64>, Array2<f64>) {
    let (rows, features) = (100, 4);
    let mut normals = vec![0.0; rows * (features + 1)];
    Seed(31).stream(Who::Run, 0, Purpose::Synthetic).normals(&mut normals);
    let mut x = Array2::from_shape_vec((rows, features), normals[rows..].to_vec()).unwrap();
    for mut row in x.rows_mut() {
        let common = row[0];
        row.iter_mut().skip(1).for_each(|x| *x = 0.5 * *x + 0.5 * common);
    }
    let y = x.dot(&ndarray::array![0.5, -1.0, 0.25, 2.0]) + ndarray::ArrayView1::from(&normals[..rows]);
    let model = LinearSettings {
        prior: Prior::Normal(3_f64.powf(-0.5)),
        noise_variance: Some(1.0),
        intercept: false,
        ..LinearSettings::default()
    };
    let model = model.build(&DataSchema::new(features, Output::Number)).unwrap();
    let (mean, covariance) = model.posterior(Batch { x: x.view(), y: y.view() }, temperature).unwrap();
    let edges = [0, 20, 50, 100];
    let shard = move |agent: u32| {
        let mine = if agents == 1 { 0..100 } else { edges[agent as usize]..edges[agent as usize + 1] };
        Ok(Shard::new(x.slice(s![mine.clone(), ..]).to_owned(), y.slice(s![mine]).to_owned()))
    };
    (Problem { model: Arc::new(model), agents, temperature, shard: Arc::new(shard) }, mean, covariance)
}

/// Gaussian factors are exact after one visit, whatever q was: one sweep gives the posterior at any temperature, and later ones keep it.
#[test]
fn one_sweep_over_gaussian_factors_is_the_posterior() {
    let plain_at = |temperature| plain(regression(3, temperature).0);
    let off = |method: &Pvi<f64>, rounds, exact: f64| {
        let (_, mean, covariance) = regression(3, exact);
        let q = ByHand::new(method).turns(rounds).q();
        largest(&(&q.mean() - &mean)).max(largest(&(q.covariance() - covariance)))
    };
    for temperature in [1.0, 2.5] {
        for rounds in [3, 4, 9] {
            let off = off(&plain_at(temperature), rounds, temperature);
            assert!(off < 1e-8, "temperature {temperature}, {rounds} rounds: {off}");
        }
        // Damped steps converge to the same posterior: 0.8^150 = 3e-15.
        let damped = off(&Pvi { iterations: 150, damping: 0.2, ..plain_at(temperature) }, 3, temperature);
        assert!(damped < 1e-8, "{damped}");
        // Controls: before the last agent's visit, and at another temperature.
        assert!(off(&plain_at(temperature), 2, temperature) > 1e-2);
        assert!(off(&plain_at(temperature), 3, 1.5) > 1e-3);
    }
    // All agents together need one round.
    let (problem, mean, covariance) = regression(3, 1.0);
    let q = ByHand::new(&Pvi { schedule: Participation::All, ..plain(problem) }).together(1).q();
    assert!(largest(&(&q.mean() - &mean)) < 1e-8 && largest(&(q.covariance() - covariance)) < 1e-8);
}

/// The best Gaussian with independent coordinates has the mean of a Gaussian target and the variances 1/Λ_ii.
#[test]
fn independent_coordinates_have_the_variances_of_mean_field_theory() {
    let (problem, mean, covariance) = regression(3, 1.0);
    let precision = covariance.inv().unwrap();
    let method = Pvi { covariance: Covariance::Diagonal, iterations: 10, damping: 0.3, ..plain(problem) };
    let off = |hand: ByHand| {
        let q = hand.q();
        let variances = q.deviations().mapv(|sd| sd * sd);
        let error = |exact: Array1<f64>| largest(&((&variances - &exact) / &exact));
        (largest(&(&q.mean() - &mean)), error(precision.diag().mapv(f64::recip)), error(covariance.diag().to_owned()))
    };
    for (mean, variance, marginal) in [
        off(ByHand::new(&method).turns(90)),
        off(ByHand::new(&Pvi { iterations: 1, schedule: Participation::All, ..method.clone() }).together(300)),
    ] {
        assert!(mean < 1e-8 && variance < 1e-8, "{mean} {variance}");
        assert!(marginal > 0.1, "control: these are not the marginal variances ({marginal})");
    }
    assert!(off(ByHand::new(&method).turns(2)).0 > 1e-3, "control: before the last agent's visit");
}

/// The one-dimensional example of Kassab & Simeone with prior N(0, 1).
fn toy(agents: u32, temperature: f64) -> Problem<f64> {
    let line = Line { initial: |z| z, prior_score: |x| -x, gradient: toy_gradient };
    share(line, agents, temperature, if agents == 1 { |_| vec![0.0, 1.0] } else { |agent| vec![f64::from(agent)] })
}

/// The posterior of the toy on a grid.
fn toy_posterior(alpha: f64) -> (Grid, Vec<f64>) {
    let grid = Grid::line(-12.0, 12.0, 2400);
    let losses = (0..2).map(|k| grid.map(|x| toy_loss(k, x[0]))).collect();
    let prior = grid.map(|x| log_normal(x[0], 0.0, 1.0));
    (grid.clone(), GridDvi::new(grid, prior, losses, alpha).optimum())
}

/// The Gaussian of least KL(q ‖ p) on the grid, by a search that halves its steps: mean, variance, KL.
fn best(grid: &Grid, log_p: &[f64]) -> (f64, f64, f64) {
    let kl = |mean: f64, variance: f64| grid.kl(&grid.map(|x| log_normal(x[0], mean, variance)), log_p);
    let (mut at, mut step) = ((0.0, 1.0, kl(0.0, 1.0)), 0.25);
    while step > 1e-6 {
        let around = [(step, 0.0), (-step, 0.0), (0.0, step), (0.0, -step)];
        let tried = around.map(|(m, v)| (at.0 + m, at.1 + v)).into_iter().filter(|(_, variance)| *variance > 0.0);
        let next = tried.map(|(m, v)| (m, v, kl(m, v))).min_by(|a, b| a.2.total_cmp(&b.2)).unwrap();
        if next.2 < at.2 { at = next } else { step *= 0.5 }
    }
    at
}

/// The optimum of the one-dimensional example is reached with the second visit, by a factor of negative precision, and by global iterations
/// on one agent or two.
#[test]
fn the_toys_optimum_is_reached() {
    let (grid, posterior) = toy_posterior(1.0);
    let (mean, variance, least) = best(&grid, &posterior);
    assert!(
        (mean - 0.5103).abs() < 5e-5 && (variance - 1.2483).abs() < 5e-5 && (least - 0.0773).abs() < 5e-5,
        "{mean} {variance} {least}"
    );
    let method = |temperature| Pvi { iterations: 200, damping: 0.1, ..plain(toy(2, temperature)) };
    let off = |hand: &ByHand| {
        let q = hand.q();
        let log = grid.map(|x| log_normal(x[0], q.mean()[0], q.covariance()[[0, 0]]));
        let far = (q.mean()[0] - mean).abs().max((q.covariance()[[0, 0]] - variance).abs());
        (far, grid.kl(&log, &posterior) - least)
    };
    for rounds in [2, 3, 4, 8] {
        let hand = ByHand::new(&method(1.0)).turns(rounds);
        let (far, excess) = off(&hand);
        // The search on the grid has an error of about 1e-5.
        assert!(far < 1e-4 && excess.abs() < 1e-7, "round {rounds}: {far} {excess}");
        // t_2 without its part of the prior, in the form exp(η¹θ + η²θ²).
        let second = -0.5 * (hand.agents[1].factor.0[1] - 0.5);
        assert!((second - 0.2245).abs() < 1e-4, "{second}");
    }
    for agents in [1, 2] {
        let global = Pvi { damping: 0.1, schedule: Participation::All, ..plain(toy(agents, 1.0)) };
        let (far, excess) = off(&ByHand::new(&global).together(200));
        assert!(far < 1e-4 && excess.abs() < 1e-7, "{agents} agents: {far} {excess}");
    }
    // Controls: one visit; another temperature; a second factor whose precision must not be negative.
    assert!(off(&ByHand::new(&method(1.0)).turns(1)).0 > 0.1);
    assert!(off(&ByHand::new(&method(1.5)).turns(4)).0 > 0.01);
    let held = |m: i32| grid.kl(&grid.map(|x| log_normal(x[0], 0.005 * f64::from(m), 1.0 / 1.25)), &posterior);
    let held = (-1200..=1200).map(held);
    assert!(held.fold(f64::INFINITY, f64::min) > least + 0.01);
}

/// At temperature 1.5 the result is that temperature's optimum.
#[test]
fn the_toys_optimum_follows_the_temperature() {
    let (grid, posterior) = toy_posterior(1.5);
    let (mean, variance, _) = best(&grid, &posterior);
    let q = ByHand::new(&Pvi { iterations: 200, damping: 0.1, ..plain(toy(2, 1.5)) }).turns(8).q();
    assert!((q.mean()[0] - mean).abs() < 1e-4 && (q.covariance()[[0, 0]] - variance).abs() < 1e-4, "{q:?} {mean} {variance}");
    let (other, ..) = best(&grid, &toy_posterior(1.0).1);
    assert!((q.mean()[0] - other).abs() > 1e-2, "control: {other}");
}

/// The two-dimensional example of Kassab & Simeone, one factor on each of two agents.
fn plane() -> (Problem<f64>, Grid, Vec<f64>) {
    let model = FactorProductSettings::mixture_2d().build().unwrap();
    let (x, y) = model.data::<f64>();
    let grid = Grid::square(-9.0, 9.0, 301);
    let log = |factor: Option<usize>| {
        let mut out = vec![0.0; grid.points.nrows()];
        match factor {
            None => model.log_prior(grid.points.view(), &mut out),
            Some(row) => {
                let (x, y) = (x.select(Axis(0), &[row]), y.select(Axis(0), &[row]));
                model.loss(grid.points.view(), Batch { x: x.view(), y: y.view() }, &mut out, &mut Scratch::new());
            }
        }
        out
    };
    let posterior = GridDvi::new(grid.clone(), log(None), vec![log(Some(0)), log(Some(1))], 1.0).optimum();
    let shard = move |agent: u32| Ok(Shard::new(x.select(Axis(0), &[agent as usize]), y.select(Axis(0), &[agent as usize])));
    (Problem { model: Arc::new(model), agents: 2, temperature: 1.0, shard: Arc::new(shard) }, grid, posterior)
}

/// The optimum of the two-dimensional example, by visits and by global iterations: mean (.309, −.198), KL .1075, and a larger KL for changed
/// parameters.
#[test]
fn the_planes_optimum_is_reached() {
    let (problem, grid, posterior) = plane();
    let kl = |q: &Gaussian| {
        let (mean, precision) = (q.mean().to_owned(), q.covariance().inv().unwrap());
        let log = grid.map(|x| {
            let off = Array1::from(vec![x[0] - mean[0], x[1] - mean[1]]);
            -0.5 * off.dot(&precision.dot(&off))
        });
        grid.kl(&log, &posterior)
    };
    let method = Pvi { iterations: 150, damping: 0.1, ..plain(problem) };
    let visits = ByHand::new(&method).turns(12);
    let global = ByHand::new(&Pvi { iterations: 1, schedule: Participation::All, ..method.clone() }).together(250);
    for hand in [&visits, &global] {
        let (q, least) = (hand.q(), kl(&hand.q()));
        let mean = q.mean();
        assert!(
            (mean[0] - 0.309).abs() < 1e-3 && (mean[1] + 0.198).abs() < 1e-3 && (least - 0.1075).abs() < 1e-3,
            "{mean} {least}"
        );
        for place in 0..5 {
            for by in [-1e-2, 1e-2] {
                let mut parameters = hand.natural_parameters().to_vec();
                parameters[place] += by;
                let moved = kl(&Gaussian::of(hand.natural(), &parameters).unwrap());
                assert!(moved > least + 1e-7, "{place} {by}: {moved} against {least}");
            }
        }
    }
    assert!(largest(&(&visits.q().mean() - &global.q().mean())) < 1e-6);
    let early = ByHand::new(&method).turns(1).q();
    assert!(kl(&early) > 0.2, "control: one visit");
}

/// A logistic regression with a Gamma prior on the precision of its weights, with 90 rows split over agents.
fn logistic(features: usize, agents: u32) -> Problem<f64> {
    let rows = 90;
    let mut normals = vec![0.0; rows * (features + 1)];
    Seed(5).stream(Who::Run, 0, Purpose::Synthetic).normals(&mut normals);
    let x = Array2::from_shape_vec((rows, features), normals[rows..].to_vec()).unwrap();
    let y = Array1::from_shape_fn(rows, |row| f64::from(u8::from(x[[row, 0]] + normals[row] > 0.3)));
    let model = LogisticSettings {
        prior: Prior::SampledPrecision { shape: 1.0, rate: 1.0 },
        intercept: false,
        ..LogisticSettings::default()
    };
    let model = model.build(&DataSchema::new(features, Output::Classes(2))).unwrap();
    let shard = move |agent: u32| {
        let size = rows / agents as usize;
        let mine = agent as usize * size..(agent as usize + 1) * size;
        Ok(Shard::new(x.slice(s![mine.clone(), ..]).to_owned(), y.slice(s![mine]).to_owned()))
    };
    Problem { model: Arc::new(model), agents, temperature: 1.0, shard: Arc::new(shard) }
}

/// A round of one step of all agents is one iteration on all data, also with random nodes.
#[test]
fn global_iterations_do_not_depend_on_the_split_of_rows() {
    for (features, covariance) in [(1, Covariance::Full), (4, Covariance::Full), (4, Covariance::Diagonal)] {
        let after = |agents, iterations| {
            let problem = logistic(features, agents);
            let method = Pvi { schedule: Participation::All, iterations, damping: 0.3, covariance, ..plain(problem) };
            ByHand::new(&method).together(12).natural_parameters().to_vec()
        };
        let one = after(1, 1);
        let off =
            |other: Vec<f64>| one.iter().zip(other).fold(0.0_f64, |worst, (a, b)| worst.max((a - b).abs() / (1.0 + a.abs())));
        for agents in [3, 9] {
            let off = off(after(agents, 1));
            assert!(off < 1e-9, "{features} features, {covariance:?}, {agents} agents: {off}");
        }
        assert!(off(after(3, 2)) > 1e-3, "control: two steps of each agent give another result");
    }
}

/// F(q) = E_q[Σ L_k − log p0] − H(q) of a logistic regression with two parameters, by the trapezoidal rule on ±9 standard deviations,
/// whose error for smooth functions is below all tolerances here.
fn free_energy(problem: &Problem<f64>, q: &Gaussian) -> f64 {
    const POINTS: usize = 181;
    let at = |i: usize| 0.1 * (i as f64 - 90.0);
    let z = Array2::from_shape_fn((POINTS * POINTS, 2), |(n, axis)| at(if axis == 0 { n / POINTS } else { n % POINTS }));
    let weights = z.map_axis(Axis(1), |z| 0.01 * (-0.5 * z.dot(&z)).exp() / (2.0 * std::f64::consts::PI));
    let theta = q.place(z.view());
    let mut energy = vec![0.0; weights.len()];
    problem.model.log_prior(theta.view(), &mut energy);
    energy.iter_mut().for_each(|energy| *energy = -*energy);
    for agent in 0..problem.agents {
        let mut loss = vec![0.0; weights.len()];
        (problem.shard)(agent).unwrap().blocks(&mut Scratch::new(), |_, batch, scratch| {
            let mut part = vec![0.0; weights.len()];
            problem.model.loss(theta.view(), batch, &mut part, scratch);
            loss.iter_mut().zip(part).for_each(|(loss, part)| *loss += part);
        });
        energy.iter_mut().zip(loss).for_each(|(energy, loss)| *energy += loss);
    }
    energy.iter().zip(&weights).map(|(energy, weight)| energy * weight).sum::<f64>() + 0.5 * q.log_determinant()
}

/// With a prior that is not Gaussian, visits and global iterations converge to a stationary point of the free energy.
#[test]
fn logistic_regression_converges_to_a_stationary_point_of_the_free_energy() {
    let problem = logistic(1, 3);
    let slopes = |hand: &ByHand| {
        (0..5).fold(0.0_f64, |worst, place| {
            let energy = |by: f64| {
                let mut parameters = hand.natural_parameters().to_vec();
                parameters[place] += by;
                free_energy(&problem, &Gaussian::of(hand.natural(), &parameters).unwrap())
            };
            worst.max((energy(1e-4) - energy(-1e-4)).abs() / 2e-4)
        })
    };
    let visits = Pvi { iterations: 40, damping: 0.2, ..plain(problem.clone()) };
    let ends = ByHand::new(&visits).turns(60);
    let global = ByHand::new(&Pvi { iterations: 1, schedule: Participation::All, ..visits.clone() }).together(200);
    // Central differences have an error of the third derivative times 1e-8/6.
    assert!(slopes(&ends) < 1e-7 && slopes(&global) < 1e-7, "{} {}", slopes(&ends), slopes(&global));
    assert!(ends.q().divergence(&global.q()).abs() < 1e-9);
    // Controls: after one visit to each agent, and with one parameter changed by 1 %.
    assert!(slopes(&ByHand::new(&visits).turns(3)) > 1e-5);
    let mut off = global;
    off.server.state.0[0] *= 1.01;
    assert!(slopes(&off) > 1e-4);
}

/// Of log p0 = (m/2 + a) v − e^v (‖w‖²/2 + b) with m = 1 weight the best Gaussian has independent coordinates:
/// Var v = 1/(a + m/2), E v = log(a/b) − Var v/2, Var w = b/a, as derivatives of its free energy show. A Gaussian prior is fitted
/// exactly; a flat prior is refused.
#[test]
fn priors_are_fitted() {
    let start = |problem: &Problem<f64>, covariance| {
        let mut server = Pvi { covariance, ..plain(problem.clone()) }.server(None).unwrap();
        let started = server.start(&mut Outbox::default(), &mut Context::detached(Seed(1)));
        let natural = Natural { covariance, dim: problem.model.dim() };
        started.map(|()| Gaussian::of(natural, &server.state.0).unwrap())
    };
    for covariance in [Covariance::Full, Covariance::Diagonal] {
        for rate in [1.0, 100.0] {
            let model = LogisticSettings {
                prior: Prior::SampledPrecision { shape: 1.0, rate },
                intercept: false,
                ..LogisticSettings::default()
            };
            let problem =
                Problem { model: Arc::new(model.build(&DataSchema::new(1, Output::Classes(2))).unwrap()), ..logistic(1, 3) };
            let q = start(&problem, covariance).unwrap();
            let (mean, variances) = (q.mean().to_owned(), q.deviations().mapv(|sd| sd * sd));
            let spread = 1.0 / 1.5;
            let exact = [0.0, (1.0 / rate).ln() - 0.5 * spread, rate, spread];
            let found = [mean[0], mean[1], variances[0], variances[1]];
            // The fit ends with a step of KL 2e-13, a change of a variance by 9e-7; if steps reduce the error by a tenth each, nine times that
            // remains.
            let near = |factor: f64| found.iter().zip(exact).all(|(a, b)| (a - factor * b).abs() < 2e-5 * (1.0 + b.abs()));
            assert!(near(1.0) && !near(1.001), "{rate}: {found:?} {exact:?}");
        }
        let q = start(&regression(3, 1.0).0, covariance).unwrap();
        assert!(largest(&(q.covariance() - Array2::<f64>::eye(4) / 3.0)) < 1e-12 && largest(q.mean()) < 1e-12);
        let flat = Problem { model: Arc::new(FactorProductSettings::mixture_1d_uniform_prior().build().unwrap()), ..toy(2, 1.0) };
        assert!(start(&flat, covariance).unwrap_err().to_string().contains("a proper prior"));
    }
    let exact = Array2::from_shape_fn((2, 2), |(i, j)| if i == j { 4.0 } else { 2.0 });
    assert!(largest(&(start(&plane().0, Covariance::Full).unwrap().covariance() - exact)) < 1e-12);
}

/// A whole run records draws from q and writes the table of q, which is the q of server and agents driven by hand; and an agent resumes
/// from its saved factor.
#[test]
fn a_run_agrees_with_server_and_agents_driven_by_hand() {
    let (problem, ..) = regression(3, 1.0);
    let method = Pvi { rounds: 4, iterations: 5, damping: 0.3, particles: 4000, ..plain(problem) };
    let recording = run(method.clone(), 1);
    let mut hand = ByHand::new(&method).turns(2);
    for (id, agent) in (0..).zip(hand.agents.iter_mut()) {
        *agent = method.agent(id, Some(agent.factor.clone())).unwrap();
    }
    (0..2).for_each(|round| hand.round(&[(round + 2) % 3]));
    let q = hand.q();
    let rows: Vec<_> = recording.rows.iter().filter(|row| row.table == "gaussian").collect();
    assert_eq!(rows.len(), 4);
    for (place, row) in rows.into_iter().enumerate() {
        let value = |name: &str| row.values.iter().find(|(other, _)| other == name).unwrap().1;
        assert!(row.step == place as u64 && value("mean") == q.mean()[place] && value("sd") == q.deviations()[place]);
        assert_eq!(value("covariance_2"), q.covariance()[[place, 2]]);
    }
    assert_eq!(recording.particles().iter().copied().collect::<Vec<_>>(), hand.server.particles.theta.0);
    assert_eq!(recording.rows.iter().filter(|row| row.table == "approximation").count(), 4);
    // 5 standard errors of means and variances of 4000 draws, which any of eight exceeds with probability 5e-6.
    let (mean, variance) = (recording.particles().mean_axis(Axis(0)).unwrap(), recording.particles().var_axis(Axis(0), 1.0));
    for place in 0..4 {
        let sd = q.deviations()[place];
        assert!((mean[place] - q.mean()[place]).abs() < 5.0 * sd / 4000.0_f64.sqrt());
        assert!((variance[place] / (sd * sd) - 1.0).abs() < 5.0 * (2.0 / 4000.0_f64).sqrt());
    }
    // Control: an agent that has lost its factor.
    let mut without_factor = ByHand::new(&method).turns(3);
    without_factor.agents[0] = method.agent(0, None).unwrap();
    without_factor.round(&[0]);
    assert!(without_factor.q().divergence(&q) > 1e-3);
}
