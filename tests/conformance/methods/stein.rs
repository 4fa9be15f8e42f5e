//! The Stein methods on small synthetic classifications, and evaluation of any method on the same data.

use mpibayes::cluster::Method;
use mpibayes::data::Shard;
use mpibayes::kernels::svgd::Settings;
use mpibayes::methods::chains::async_sghmc::{AsyncSghmc, AsyncSghmcSettings};
use mpibayes::methods::chains::coupled::{CoupledChains, Coupling, CouplingSchedule};
use mpibayes::methods::chains::dsgld::{Dsgld, DsgldSettings, Trajectory};
use mpibayes::methods::chains::ec_sghmc::EcSghmcSettings;
use mpibayes::methods::chains::ec_sgld::EcSgldSettings;
use mpibayes::methods::chains::hmc::{Hmc, HmcSettings};
use mpibayes::methods::common::participation::Participation;
use mpibayes::methods::particles::dsvgd::{Dsvgd, Factors, PriorConvention};
use mpibayes::methods::particles::svgd::Svgd;
use mpibayes::methods::point::easgd::EasgdSettings;
use mpibayes::methods::transitions::sgd::Sgd;
use mpibayes::methods::transitions::sghmc::Sghmc;
use mpibayes::methods::transitions::sgld::Sgld;
use mpibayes::methods::tuning::Step;
use mpibayes::methods::variational::pvi::{Covariance, Pvi};
use mpibayes::methods::{Evaluation, MethodSettings, Posterior, Problem, WithEvaluation};
use mpibayes::models::convolutional::{ResnetSettings, Shortcuts};
use mpibayes::models::network::NetworkSettings;
use mpibayes::models::{DataSchema, Output};
use mpibayes::number::Real;
use mpibayes::random::{Purpose, Seed, Who};
use ndarray::{Array1, Array2};
use std::sync::Arc;

const FEATURES: usize = 3;
const CLASSES: usize = 2;

/// A small network of 20 parameters, with 17 rows for each of these agents.
pub fn problem<F: Real>(agents: u32) -> Problem<F> {
    let settings = NetworkSettings { hidden: vec![3], ..NetworkSettings::default() };
    let model = settings.build(FEATURES, Output::Classes(CLASSES)).unwrap();
    let shard = |agent| {
        let rows = 17;
        let mut x = vec![F::zero(); rows * FEATURES];
        Seed(9).stream(Who::Agent(agent), 0, Purpose::Synthetic).normals(&mut x);
        let y = Array1::from_shape_fn(rows, |row| if x[row * FEATURES] > F::zero() { F::one() } else { F::zero() });
        Ok(Shard::new(Array2::from_shape_vec((rows, FEATURES), x)?, y))
    };
    Problem { model: Arc::new(model), agents, temperature: 1.0, shard: Arc::new(shard) }
}

/// A residual network on images of 5 × 4 pixels, with 11 images for each of these agents.
pub fn images<F: Real>(agents: u32) -> Problem<F> {
    let shape = vec![5, 4, 1];
    let pixels = shape.iter().product();
    let settings = ResnetSettings { depth: 8, width: 2, shortcuts: Shortcuts::Projection, ..ResnetSettings::default() };
    let model = settings.build(&DataSchema { shape, ..DataSchema::new(pixels, Output::Classes(CLASSES)) }).unwrap();
    let shard = move |agent| {
        let rows = 11;
        let mut x = vec![F::zero(); rows * pixels];
        Seed(9).stream(Who::Agent(agent), 0, Purpose::Synthetic).normals(&mut x);
        let y = Array1::from_shape_fn(rows, |row| if x[row * pixels] > F::zero() { F::one() } else { F::zero() });
        Ok(Shard::new(Array2::from_shape_vec((rows, pixels), x)?, y))
    };
    Problem { model: Arc::new(model), agents, temperature: 1.0, shard: Arc::new(shard) }
}

/// SVGD over these agents.
pub fn svgd<F: Real>(agents: u32) -> Svgd<F> {
    Svgd { problem: problem(agents), particles: 4, rounds: 4, steps: 5, batch: 12, stein: Settings::default() }
}

/// D-SGLD on five agents, with visits of different lengths.
pub fn dsgld<F: Real>(change: impl Fn(&mut DsgldSettings)) -> Dsgld<Sgld<F>> {
    dsgld_on(problem(5), change)
}

/// The same on another problem with five agents.
pub fn dsgld_on<F: Real>(problem: Problem<F>, change: impl Fn(&mut DsgldSettings)) -> Dsgld<Sgld<F>> {
    let mut settings = DsgldSettings {
        chains: 3,
        rounds: Some(12),
        trajectory: Trajectory::Each(vec![3.0, 1.0, 2.5, 4.0, 1.5]),
        batch: 6,
        burn_in: Some(2),
        thin: Some(3),
        ..DsgldSettings::default()
    };
    change(&mut settings);
    Dsgld::sgld(problem, settings)
}

/// The No-U-Turn Sampler on four agents, with windows in its burn-in and chains that end at different times.
pub fn hmc<F: Real>() -> Hmc<F> {
    HmcSettings { chains: 2, draws: 3, burn_in: 20, acceptance: Some(0.6) }.hmc(problem(4))
}

/// Chains of their own on four agents.
pub fn sghmc<F: Real>() -> CoupledChains<Sghmc<F>> {
    let mut method = ec_sghmc(false, |_| {});
    (method.plan.strength.full, method.plan.coupling) = (0.0, Coupling::Friction);
    method
}

/// Coupled chains on four agents, annealed in the middle, with a last period that is shorter.
pub fn ec_sghmc<F: Real>(asynchronous: bool, change: impl Fn(&mut EcSghmcSettings)) -> CoupledChains<Sghmc<F>> {
    ec_sghmc_on(problem(4), asynchronous, change)
}

/// The same on another problem with four agents.
pub fn ec_sghmc_on<F: Real>(
    problem: Problem<F>,
    asynchronous: bool,
    change: impl Fn(&mut EcSghmcSettings),
) -> CoupledChains<Sghmc<F>> {
    let mut settings = EcSghmcSettings {
        steps: Some(34),
        period: 3,
        batch: 6,
        step: Step::Size(0.05),
        friction: Some(2.0),
        coupling_schedule: Some(CouplingSchedule::Anneal { from: 8, over: 9 }),
        burn_in: Some(5),
        thin: Some(2),
        asynchronous,
        ..EcSghmcSettings::default()
    };
    change(&mut settings);
    settings.check().unwrap();
    CoupledChains { agents: 4, transition: settings.transition(problem), plan: settings.plan(), asynchronous }
}

/// Coupled Langevin chains on four agents.
pub fn ec_sgld<F: Real>() -> CoupledChains<Sgld<F>> {
    let coupling_schedule = Some(CouplingSchedule::Constant);
    let settings = EcSgldSettings {
        steps: Some(30),
        period: 4,
        batch: 6,
        step: Step::Size(1e-3),
        coupling_schedule,
        burn_in: Some(5),
        thin: Some(3),
        ..Default::default()
    };
    settings.check().unwrap();
    CoupledChains { agents: 4, transition: settings.transition(problem(4)), plan: settings.plan(), asynchronous: false }
}

/// Elastic averaging on four agents, with momentum.
pub fn easgd<F: Real>(asynchronous: bool) -> CoupledChains<Sgd<F>> {
    let settings = EasgdSettings { steps: 30, period: 4, batch: 6, step: 1e-3, momentum: 0.9, thin: 2, ..Default::default() };
    settings.check().unwrap();
    CoupledChains { agents: 4, transition: settings.transition(problem(4)), plan: settings.plan(4), asynchronous }
}

/// One chain with gradients by four agents.
pub fn async_sghmc<F: Real>(gradients: u32, period: u64) -> AsyncSghmc<F> {
    let gradients = Some(gradients);
    let settings = AsyncSghmcSettings {
        steps: Some(60),
        gradients,
        period,
        batch: 6,
        step: Step::Size(0.05),
        friction: Some(2.0),
        burn_in: Some(5),
        thin: Some(3),
        ..Default::default()
    };
    settings.check().unwrap();
    AsyncSghmc { problem: problem(4), settings }
}

/// DSVGD over these agents, each visited more than once.
pub fn dsvgd<F: Real>(agents: u32, schedule: Participation, factors: Factors) -> Dsvgd<F> {
    let server_steps = schedule.check_one().is_err().then_some(6);
    let (problem, stein) = (problem(agents), Settings::default());
    Dsvgd { problem, rounds: 12, schedule, particles: 4, local_steps: 5, factors, batch: 8, stein, server_steps }
}

/// DSVGD over these agents, one after the other, with distillation.
pub fn distilling<F: Real>(agents: u32) -> Dsvgd<F> {
    dsvgd(agents, Participation::RoundRobin, Factors::Distilled { steps: 5, prior: PriorConvention::Absorbed })
}

/// Partitioned variational inference with a diagonal covariance over these agents.
pub fn pvi<F: Real>(agents: u32, schedule: Participation, iterations: u64) -> Pvi<F> {
    let (covariance, nodes, batch) = (Covariance::Diagonal, Some(6), Some(8));
    let problem = problem(agents);
    Pvi { problem, rounds: 12, schedule, iterations, damping: 0.2, covariance, nodes, batch, particles: 4 }
}

/// A method whose state, as particles of 20 numbers each, is evaluated every `every` rounds.
pub fn evaluated<M: Method>(inner: M, every: u64) -> WithEvaluation<M, Evaluation<M::Number>>
where
    M::Number: Real,
    M::Server: Posterior<M::Number>,
{
    let problem = problem(inner.agents());
    evaluated_on(problem, inner, every)
}

/// A method whose state is evaluated every `every` rounds, on this problem.
pub fn evaluated_on<M: Method>(problem: Problem<M::Number>, inner: M, every: u64) -> WithEvaluation<M, Evaluation<M::Number>>
where
    M::Number: Real,
    M::Server: Posterior<M::Number>,
{
    let (model, test_rows) = (problem.model.clone(), Some(problem.shard.clone()));
    let evaluator = Evaluation {
        model,
        every,
        test_rows,
        per_particle: true,
        average_from: Some(2),
        ksd: Some(problem),
        particle_paths: true,
    };
    WithEvaluation { inner, evaluator }
}
