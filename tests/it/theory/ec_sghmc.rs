//! SGHMC, EC-SGHMC, EC-SGLD, asynchronous SGHMC and EASGD against exact theory: on Gaussian targets their dynamics are linear, and their
//! stationary distributions are known.
//!
//! Every statistical check takes z-scores from batch means of long runs at fixed seeds. |z| < 4.5 is a false alarm in less than 1e-5 of
//! runs for each of about 100 values.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::delayed_gradients::{SGLD_VARIANCES, delayed_by_turns, growth, overdamped, stability_threshold};
use crate::linear_chains::{Joint, Scheme, delayed, noiseless, stationary};
use crate::recording::{Recording, value};
use mpibayes::cluster::{Context, Fault, JobOptions, Method};
use mpibayes::kernels::hamiltonian::{ChainState, Scheme as Steps, SghmcDynamics};
use mpibayes::kernels::langevin::StepSize;
use mpibayes::methods::chains::async_sghmc::AsyncSghmcSettings;
use mpibayes::methods::chains::coupled::{
    CenterDynamics, CoupledChains, CoupledTransition, Coupling, CouplingPlan, CouplingSchedule, CouplingStrength, Task,
};
use mpibayes::methods::chains::ec_sghmc::{EcSghmcSettings, Variant};
use mpibayes::methods::common::problem::Problem;
use mpibayes::methods::common::scores::Estimator;
use mpibayes::methods::transitions::sgd::Sgd;
use mpibayes::methods::transitions::sghmc::{Preconditioner, Sghmc};
use mpibayes::methods::transitions::sgld::Sgld;
use mpibayes::methods::tuning::Step;
use mpibayes::methods::{LocalTransition, MethodSettings, Transition, Update};
use mpibayes::models::gaussian::{ComponentSettings, FactorProductSettings, PriorSettings};
use mpibayes::random::{Purpose, Seed, Who};
use ndarray::Array2;
use std::sync::Arc;

/// How far from its exact value a mean may lie, in standard errors.
const Z: f64 = 4.5;

/// N(0, 1/λ) in `dim` independent dimensions, each of which counts as a run of its own.
fn target(lambda: f64, dim: usize, agents: u32) -> Problem<f64> {
    let covariance = (0..dim).map(|i| (0..dim).map(|j| if i == j { 1.0 / lambda } else { 0.0 }).collect()).collect();
    let component = ComponentSettings { weight: 1.0, mean: vec![0.0; dim], covariance };
    let model = FactorProductSettings { prior: PriorSettings::Mixture(vec![component]), factors: Vec::new() }.build().unwrap();
    let (x, y) = (Array2::zeros((0, 1)), ndarray::Array1::zeros(0));
    let shard = mpibayes::data::Shard::new(x, y);
    Problem { model: Arc::new(model), agents, temperature: 1.0, shard: Arc::new(move |_| Ok(shard.clone())) }
}

fn dynamics(step: f64, friction: f64) -> SghmcDynamics {
    SghmcDynamics { scheme: Steps::Middle, step, friction, gradient_noise: 0.0, noise: true }
}

fn sghmc(problem: Problem<f64>, step: f64, friction: f64) -> Sghmc<f64> {
    Sghmc { problem, batch: 1, gradient: Estimator::Plain, dynamics: dynamics(step, friction), preconditioner: None }
}

/// SGLD with a step ε in the convention of the theory, which is half that of the settings.
fn sgld(problem: Problem<f64>, step: f64) -> Sgld<f64> {
    Sgld { problem, batch: 1, step: StepSize::Constant(2.0 * step), gradient: Estimator::Plain, gradient_noise: 0.0 }
}

fn plan(steps: u64, period: u64, kappa: f64, coupling: Coupling) -> CouplingPlan {
    CouplingPlan {
        steps,
        period,
        burn_in: 2000,
        thin: 1,
        same_start: false,
        strength: CouplingStrength { full: kappa, schedule: CouplingSchedule::Constant },
        coupling,
        extrapolate: false,
        sleep_ms: Vec::new(),
    }
}

/// The mean product of two chains (draws × independent dimensions) over all columns, and its standard error from batches that are much
/// longer than the autocorrelation time.
fn moment(a: &Array2<f64>, b: &Array2<f64>) -> (f64, f64) {
    let batches = 10;
    let length = a.nrows() / batches;
    let product = a * b;
    let means: Vec<f64> = product
        .columns()
        .into_iter()
        .flat_map(|column| {
            (0..batches).map(move |batch| column.slice(ndarray::s![batch * length..(batch + 1) * length]).sum() / length as f64)
        })
        .collect();
    let count = means.len() as f64;
    let mean = means.iter().sum::<f64>() / count;
    let variance = means.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / (count - 1.0);
    (mean, (variance / count).sqrt())
}

/// The z-score of the mean product of two chains.
fn off(a: &Array2<f64>, b: &Array2<f64>, exact: f64) -> f64 {
    let (mean, error) = moment(a, b);
    (mean - exact) / error
}

/// The z-score of the mean product of two chains of a run.
fn z_of(recording: &Recording, one: u32, other: u32, exact: f64) -> f64 {
    off(&recording.chain(one), &recording.chain(other), exact)
}

fn run<M: Method>(method: M, seed: u64) -> Recording {
    Recording::of(method, JobOptions { threads: 2, ..JobOptions::new(Seed(seed)) }).unwrap()
}

/// Asynchronous chains of nearly equal speed, which meet the center one after the other in every round.
fn in_turn<T: CoupledTransition>(transition: T, agents: u32, plan: CouplingPlan, seed: u64) -> Recording {
    let task = |agent: u32, task: &Task| task.updates() as f64 * (1.0 + 1e-9 * f64::from(agent));
    Recording::simulated(CoupledChains { agents, transition, plan, asynchronous: true }, JobOptions::new(Seed(seed)), task)
        .unwrap()
}

fn coupled<T: CoupledTransition>(transition: T, agents: u32, plan: CouplingPlan, seed: u64) -> Recording {
    run(CoupledChains { agents, transition, plan, asynchronous: false }, seed)
}

const SECOND: CenterDynamics = CenterDynamics::SecondOrder { mass: 1.0, friction: 1.0 };

/// The variance of the semi-implicit scheme is (1/λ)(4 − 2Vε)/(4 − 2Vε − ε²λ), far from 1/λ at these steps, and that of the middle scheme
/// is 1/λ. The control of each is the variance of the other.
#[test]
fn sghmc_has_the_variance_of_its_discretization() {
    for (lambda, step, friction, seed) in [(1.0, 0.8, 1.0, 1), (4.0, 0.5, 0.3, 2), (0.25, 1.5, 0.9, 3)] {
        let side = 4.0 - 2.0 * friction * step;
        let of = |scheme| match scheme {
            Steps::Middle => 1.0 / lambda,
            Steps::SemiImplicit => side / (side - step * step * lambda) / lambda,
        };
        for (scheme, other) in [(Steps::Middle, Steps::SemiImplicit), (Steps::SemiImplicit, Steps::Middle)] {
            let mut transition = sghmc(target(lambda, 20, 1), step, friction);
            transition.dynamics.scheme = scheme;
            let draws = coupled(transition, 1, plan(30_000, 100, 0.0, Coupling::Friction), seed);
            let (z, control) = (z_of(&draws, 0, 0, of(scheme)), z_of(&draws, 0, 0, of(other)));
            assert!(z.abs() < Z, "λ {lambda}, ε {step}, {scheme:?}: z {z}");
            assert!(control.abs() > 2.0 * Z, "λ {lambda}, {scheme:?}: {control}");
        }
    }
}

/// The semi-implicit scheme with gradient noise of variance S, as from minibatches: with the noise estimate B̂ = ½εS the variance is that of
/// exact gradients.
#[test]
fn the_semi_implicit_scheme_adds_less_noise_for_known_gradient_noise() {
    let (lambda, step, friction, noise, dim) = (2.0, 0.4, 1.0, 3.0, 40);
    let side = 4.0 - 2.0 * friction * step;
    for (estimate, exact) in [
        (0.0, (2.0 * friction + noise * step) * (2.0 - friction * step) / (lambda * friction * (side - step * step * lambda))),
        (0.5 * step * noise, side / (side - step * step * lambda) / lambda),
    ] {
        let dynamics = SghmcDynamics { scheme: Steps::SemiImplicit, gradient_noise: estimate, ..dynamics(step, friction) };
        let (mut theta, mut velocity, mut score) = (vec![0.0; dim], vec![0.0; dim], vec![0.0; dim]);
        let mut kept = Vec::new();
        for t in 0..30_000 {
            Seed(4).stream(Who::Chain(0), t, Purpose::Synthetic).normals(&mut score);
            score
                .iter_mut()
                .zip(&theta)
                .for_each(|(score, theta): (&mut f64, &f64)| *score = *score * noise.sqrt() - lambda * theta);
            let chain = ChainState { theta: &mut theta, velocity: &mut velocity, inverse_mass: None };
            dynamics.step(chain, &score, None, &mut Seed(4).stream(Who::Chain(0), t, Purpose::Noise));
            if t >= 1000 {
                kept.extend_from_slice(&theta);
            }
        }
        let kept = Array2::from_shape_vec((kept.len() / dim, dim), kept).unwrap();
        let z = off(&kept, &kept, exact);
        assert!(z.abs() < Z, "B̂ {estimate}: z {z}");
        assert!(off(&kept, &kept, 0.8 * exact) > 2.0 * Z, "the control: a smaller variance fits as well");
    }
}

/// The middle scheme with gradient noise that would double the variance: with the noise estimate the variance is nearly that of exact
/// gradients.
#[test]
fn the_middle_scheme_adds_less_noise_for_known_gradient_noise() {
    let (step, friction, dim) = (0.1, 1.0, 60);
    let noise = 2.0 * 0.5 / step;
    let draws = |estimate: f64| {
        let dynamics = SghmcDynamics { gradient_noise: estimate, ..dynamics(step, friction) };
        let (mut theta, mut velocity, mut score) = (vec![0.0; dim], vec![0.0; dim], vec![0.0; dim]);
        let mut kept = Vec::new();
        for t in 0..40_000 {
            let stream = |purpose| Seed(5).stream(Who::Chain(0), t, purpose);
            dynamics.first_half(
                ChainState { theta: &mut theta, velocity: &mut velocity, inverse_mass: None },
                &mut stream(Purpose::Noise),
            );
            if t >= 1000 {
                kept.extend_from_slice(&theta);
            }
            stream(Purpose::Synthetic).normals(&mut score);
            score.iter_mut().zip(&theta).for_each(|(score, theta): (&mut f64, &f64)| *score = *score * noise.sqrt() - theta);
            dynamics.second_half(ChainState { theta: &mut theta, velocity: &mut velocity, inverse_mass: None }, &score, None);
        }
        Array2::from_shape_vec((kept.len() / dim, dim), kept).unwrap()
    };
    // The linear theory gives 1.001.
    let (known, unknown) = (draws(0.5), draws(0.0));
    let z = off(&known, &known, 1.001);
    assert!(z.abs() < Z, "z {z}");
    assert!(off(&unknown, &unknown, 1.3) > 2.0 * Z, "the control: without the estimate the variance is larger");
}

/// Masses estimated during burn-in do not change the stationary distribution.
#[test]
fn masses_keep_the_posterior() {
    let lambda = 2.0;
    let mut transition = sghmc(target(lambda, 40, 1), 0.4, 0.5);
    transition.preconditioner = Some(Preconditioner { burn_in: 1000, decay: 0.99, floor: 0.3 });
    let draws = coupled(transition, 1, plan(60_000, 50, 0.0, Coupling::Friction), 90);
    let z = z_of(&draws, 0, 0, 1.0 / lambda);
    assert!(z.abs() < Z && z_of(&draws, 0, 0, 0.9 / lambda) > 2.0 * Z, "z {z}");
}

/// Settings that the check refuses as unstable diverge, and settings that it accepts do not. Chains start far out and have no noise.
#[test]
fn settings_that_the_check_refuses_diverge() {
    let settings = |coupling: f64, period: u64| EcSghmcSettings {
        steps: Some(6000),
        period,
        step: Step::Size(0.1),
        friction: Some(1.0),
        coupling,
        coupling_schedule: Some(CouplingSchedule::Constant),
        asynchronous: true,
        burn_in: Some(0),
        ..EcSghmcSettings::default()
    };
    for (kappa, period, stable) in [(1.0, 16, true), (2.5, 16, false), (10.0, 8, false)] {
        let settings = settings(kappa, period);
        assert!(settings.check().is_ok());
        assert_eq!(settings.check_agents(4).is_ok(), stable, "κ {kappa}, s {period}");
        let mut transition = sghmc(target(1.0, 1, 4), 0.1, 1.0);
        transition.dynamics.noise = false;
        let path = in_turn(transition, 4, settings.plan(), 91).chain(0).into_raw_vec_and_offset().0;
        let grown = path[path.len() * 9 / 10..].iter().fold(0.0_f64, |most, value| most.max(value.abs()));
        assert_eq!(grown < 1.0, stable, "κ {kappa}, s {period}: {grown}");
    }
    let refused = |settings: EcSghmcSettings, says: &str| {
        let said = settings.check().and_then(|()| settings.check_agents(4)).unwrap_err().to_string();
        assert!(said.contains(says), "{said}");
    };
    let at_once = || EcSghmcSettings { asynchronous: false, ..settings(1.0, 8) };
    refused(EcSghmcSettings { coupling: 500.0, ..at_once() }, "step² coupling");
    refused(EcSghmcSettings { extrapolate: true, coupling: 5.0, period: 16, ..at_once() }, "extrapolate");
    // The check ends for a period of any length.
    assert!(EcSghmcSettings { extrapolate: true, period: u64::MAX, ..at_once() }.check_agents(4).is_ok());
    refused(EcSghmcSettings { variant: Variant::Mean, coupling: 50.0, ..at_once() }, "mean");
    refused(EcSghmcSettings { friction: Some(0.0), ..at_once() }, "friction");
    let masses = Some(Preconditioner { burn_in: 0, floor: 0.01, ..Preconditioner::default() });
    refused(EcSghmcSettings { coupling: 10.0, preconditioner: masses, ..at_once() }, "floor");
    refused(EcSghmcSettings { preconditioner: Some(Preconditioner::default()), ..at_once() }, "burn_in");
}

/// With κ = 0 coupled chains are independent chains, bit for bit: those of the transition in a plain loop.
#[test]
fn uncoupled_chains_are_those_of_a_plain_loop() {
    let agents = 3;
    let transition = sghmc(target(2.0, 3, agents), 0.3, 0.7);
    let mut plan = plan(100, 7, 0.0, Coupling::Elastic(SECOND));
    plan.burn_in = 0;
    let draws = run(CoupledChains { agents, transition: transition.clone(), plan: plan.clone(), asynchronous: true }, 5);
    let synchronous = coupled(transition.clone(), agents, plan.clone(), 5);
    let cx = Context::detached(Seed(5));
    for chain in 0..agents {
        let mut state = vec![0.0; transition.state_len()];
        transition.draw_initial(0, &mut cx.stream(Who::Run, u64::from(chain), Purpose::Initial), &mut state);
        let mut local = transition.open(chain).unwrap();
        let mut path = Vec::new();
        for number in 0..100 {
            let update = Update { chain, number, scale: 1.0, pull: None };
            local.update(&mut Default::default(), &mut state, update, &cx).unwrap();
            transition.keep(&state, &mut path);
        }
        let path = Array2::from_shape_vec((100, 3), path).unwrap();
        assert_eq!(draws.chain(chain), path);
        assert_eq!(synchronous.chain(chain), path);
    }
    plan.strength.full = 0.1;
    assert_ne!(coupled(transition, agents, plan, 5).chain(0), synchronous.chain(0), "the control");
}

/// The linear theory of the scheme of the paper, in which every chain and the center use positions of the last exchange, against variances
/// that were computed independently.
#[test]
fn the_theory_of_stale_exchanges_has_known_variances() {
    let joint = |step, kappa, lambda| Joint { chains: 4, lambda, kappa, step, friction: 1.0, mass: 1.0, center_friction: 1.0 };
    for (s, exact) in [(1, 0.62136), (4, 0.61614), (16, 0.59840), (64, 0.56253)] {
        let found = stationary(joint(0.01, 1.0, 1.0), Scheme::Stale, s).variance;
        assert!((found - exact).abs() < 6e-6, "s {s}: {found}");
    }
    for (s, exact) in [(1, 0.59735), (2, 0.58681), (4, 0.57277), (8, 0.56238), (16, 0.89242), (64, 0.62735)] {
        let found = stationary(joint(0.1, 1.0, 1.0), Scheme::Stale, s).variance;
        assert!((found - exact).abs() < 6e-6, "s {s}: {found}");
    }
    for (s, exact) in [(1, 0.366733), (2, 0.361732), (4, 0.356071), (8, 0.356833), (16, 0.368653), (32, 0.374522)] {
        let found = stationary(joint(0.05, 1.5, 2.0), Scheme::StaleFirstOrder, s).variance;
        assert!((found - exact).abs() < 6e-7, "s {s}: {found}");
    }
}

/// With short steps the covariance of coupled chains is Λ⁻¹/K + (K − 1)/K (Λ + κI)⁻¹ for every period s, unlike with the scheme of the
/// paper.
#[test]
fn the_distribution_of_short_steps_does_not_depend_on_the_period() {
    let joint = |step| Joint { chains: 4, lambda: 1.0, kappa: 1.0, step, friction: 1.0, mass: 1.0, center_friction: 1.0 };
    for s in [1, 2, 8, 32] {
        // 1/4 + 3/4 · 1/2.
        let law = stationary(joint(0.02), Scheme::Alternate, s);
        assert!((law.variance - 0.625).abs() < 3e-4 && (law.covariance - 0.125).abs() < 3e-4, "s {s}: {}", law.variance);
        let first = Joint { lambda: 2.0, kappa: 1.5, ..joint(1e-4) };
        let law = stationary(first, Scheme::AlternateFirstOrder, s);
        assert!((law.variance - 0.339_286).abs() < 3e-4 && (law.covariance - 0.053_571).abs() < 3e-4, "s {s}: {}", law.variance);
    }
    assert!((stationary(joint(0.02), Scheme::Stale, 32).variance - 0.625).abs() > 0.02, "the control");
}

/// The stationary distribution of coupled chains is that of the linear theory for s = 1 to 32, and never the posterior.
#[test]
fn coupled_sghmc_chains_have_the_distribution_of_theory_for_every_period() {
    let (chains, lambda, kappa, step) = (4, 1.0, 1.0, 0.1);
    let joint = Joint { chains: 4, lambda, kappa, step, friction: 1.0, mass: 1.0, center_friction: 1.0 };
    for s in [1, 2, 4, 8, 16, 32] {
        let theory = stationary(joint, Scheme::Alternate, s);
        let transition = sghmc(target(lambda, 30, chains), step, 1.0);
        let draws = coupled(transition, chains, plan(30_000, s, kappa, Coupling::Elastic(SECOND)), 10 + s);
        for (one, other, exact) in [(0, 0, theory.variance), (3, 3, theory.variance), (0, 1, theory.covariance)] {
            let z = z_of(&draws, one, other, exact);
            assert!(z.abs() < Z, "s {s}, chains {one} and {other}: z {z}");
        }
        let control = z_of(&draws, 0, 0, 1.0 / lambda);
        assert!(control < -3.0 * Z, "s {s}: the control: the variance of the posterior fits, z {control}");
    }
}

/// The same for Langevin chains (EC-SGLD).
#[test]
fn coupled_sgld_chains_have_the_distribution_of_theory_for_every_period() {
    let (chains, lambda, kappa, step) = (4, 2.0, 1.5, 0.05);
    let joint = Joint { chains: 4, lambda, kappa, step, friction: 1.0, mass: 1.0, center_friction: 1.0 };
    for s in [1, 4, 32] {
        let theory = stationary(joint, Scheme::AlternateFirstOrder, s);
        let transition = sgld(target(lambda, 30, chains), step);
        let coupling = Coupling::Elastic(CenterDynamics::FirstOrder);
        let draws = coupled(transition, chains, plan(30_000, s, kappa, coupling), 30 + s);
        for (one, other, exact) in [(0, 0, theory.variance), (1, 2, theory.covariance)] {
            let z = z_of(&draws, one, other, exact);
            assert!(z.abs() < Z, "s {s}, chains {one} and {other}: z {z}");
        }
        assert!(z_of(&draws, 0, 0, 1.0 / lambda) < -3.0 * Z, "s {s}: the control");
    }
}

/// Annealed coupling, cyclic coupling and coupled friction keep the posterior: chains have its variance and are independent, for every
/// period. A force on the mean of the chains keeps it nearly, for short periods, and as the linear theory says.
#[test]
fn annealed_cyclic_and_friction_coupling_keep_the_posterior() {
    let (chains, lambda, kappa, step) = (4, 1.0, 1.0, 0.1);
    for s in [1, 8] {
        let anneal = CouplingSchedule::Anneal { from: 1000, over: 500 };
        let cyclic = CouplingSchedule::Cyclic { coupled: 40, free: 400, settle: 200 };
        for (name, coupling, schedule) in [
            ("annealed", Coupling::Elastic(SECOND), anneal),
            ("cyclic", Coupling::Elastic(SECOND), cyclic),
            ("friction", Coupling::Friction, CouplingSchedule::Constant),
        ] {
            let mut plan = plan(30_000, s, kappa, coupling);
            plan.strength.schedule = schedule;
            let draws = coupled(sghmc(target(lambda, 30, chains), step, 1.0), chains, plan, 50 + s);
            for (one, other, exact) in [(0, 0, 1.0 / lambda), (2, 2, 1.0 / lambda), (0, 1, 0.0)] {
                let z = z_of(&draws, one, other, exact);
                assert!(z.abs() < Z, "{name}, s {s}, chains {one} and {other}: z {z}");
            }
            // Chains were coupled: their spread, which the history records, comes down to (λ + κ)^-½.
            let spread: Vec<f64> = draws
                .table("history")
                .skip(10)
                .map(|row| value(row, "spread_of_chains"))
                .filter(|value| value.is_finite())
                .collect();
            if name == "friction" {
                assert!(spread.is_empty());
            } else {
                let mean = spread.iter().sum::<f64>() / spread.len() as f64;
                // A cycle couples for 4 units of time.
                let most = if name == "cyclic" { 0.95 } else { 0.85 };
                assert!((0.6..most).contains(&mean), "{name}, s {s}: {mean} over {} rows", spread.len());
            }
        }
    }
    for s in [1, 4, 8] {
        let joint = Joint { chains: 4, lambda, kappa, step, friction: 1.0, mass: 1.0, center_friction: 1.0 };
        let theory = stationary(joint, Scheme::Mean, s);
        let draws = coupled(
            sghmc(target(lambda, 30, chains), step, 1.0),
            chains,
            plan(30_000, s, kappa, Coupling::Mean { mass: 1.0, friction: 1.0 }),
            60 + s,
        );
        for (one, other, exact) in [(0, 0, theory.variance), (0, 1, theory.covariance)] {
            let z = z_of(&draws, one, other, exact);
            assert!(z.abs() < Z, "mean, s {s}, chains {one} and {other}: z {z}");
        }
        let free =
            coupled(sghmc(target(lambda, 30, chains), step, 1.0), chains, plan(30_000, s, 0.0, Coupling::Friction), 60 + s);
        assert_ne!(draws.chain(0), free.chain(0), "the control: the chains are those without coupling");
        if s == 1 {
            assert!((theory.variance - 1.0).abs() < 0.01, "{}", theory.variance);
        }
    }
}

/// Coupled friction correlates the velocities of chains.
#[test]
fn coupled_friction_correlates_velocities() {
    let (chains, step) = (4, 0.1);
    let correlation = |kappa: f64| {
        let mut plan = plan(4000, 1, kappa, Coupling::Friction);
        plan.burn_in = 500;
        let draws = coupled(sghmc(target(0.01, 30, chains), step, 0.2), chains, plan, 71);
        // Displacements over half a unit of time.
        let [a, b] = [0, 1].map(|chain| {
            let path = draws.chain(chain).into_raw_vec_and_offset().0;
            let rows: Vec<&[f64]> = path.chunks(30).step_by(5).collect();
            rows.windows(2).flat_map(|pair| (0..30).map(|j| pair[1][j] - pair[0][j]).collect::<Vec<_>>()).collect::<Vec<f64>>()
        });
        let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        product(&a, &b) / (product(&a, &a) * product(&b, &b)).sqrt()
    };
    let (free, tied) = (correlation(0.0), correlation(20.0));
    assert!(free.abs() < 0.05 && tied > 0.35, "{free}, {tied}");
}

/// Asynchronous chains of equal speed meet the center in turn. They have the stationary distribution of this order, their staleness is the
/// number of other chains, and a second run has the same bits.
#[test]
fn asynchronous_chains_of_equal_speed_have_the_distribution_of_taking_turns() {
    let (chains, lambda, kappa, step) = (4_u32, 1.0, 1.0, 0.1);
    let joint = Joint { chains: 4, lambda, kappa, step, friction: 1.0, mass: 1.0, center_friction: 1.0 };
    for s in [1, 8, 32] {
        let simulated = || {
            let plan = plan(if s > 8 { 40_000 } else { 20_000 }, s, kappa, Coupling::Elastic(SECOND));
            in_turn(sghmc(target(lambda, 30, chains), step, 1.0), chains, plan, 80 + s)
        };
        let draws = simulated();
        assert_eq!(draws.chain(1), simulated().chain(1));
        let theory = stationary(joint, Scheme::Turns, s);
        for (one, other, exact) in [(0, 0, theory.variance), (2, 2, theory.variance), (0, 1, theory.covariance)] {
            let z = z_of(&draws, one, other, exact);
            assert!(z.abs() < Z, "s {s}, chains {one} and {other}: z {z}");
        }
        let staleness: Vec<(u64, f64)> = draws.table("staleness").map(|row| (row.step, value(row, "periods"))).collect();
        let total: f64 = staleness.iter().map(|row| row.1).sum();
        let usual = staleness.iter().find(|row| row.0 == 3).unwrap().1;
        assert!(usual / total > 0.99, "{staleness:?}");
        // The positions of the three others that the center knows are one, two and three exchanges old.
        let positions = |age: u64| value(draws.table("staleness").find(|row| row.step == age).unwrap(), "positions");
        assert!(
            (1..=3).all(|age| (positions(age) / total - 1.0).abs() < 0.01),
            "{:?}",
            (1..=3).map(positions).collect::<Vec<_>>()
        );
    }
}

/// A chain with delayed gradients, of which every draw is kept.
fn delayed_chain(delay: u32, lambda: f64, dim: usize, settings: AsyncSghmcSettings) -> Result<Recording, Fault> {
    delayed_by_turns(target(lambda, dim, delay + 1), AsyncSghmcSettings { thin: Some(1), ..settings }, u64::from(delay))
}

/// With gradients τ steps old a chain without noise converges for ελ just below 2 sin(π/(2(2τ + 1))), and diverges just above.
#[test]
fn delayed_gradients_are_stable_up_to_their_threshold() {
    for delay in [0, 1, 2, 4, 8] {
        let threshold = stability_threshold(delay);
        let grown = |times: f64| match delayed_chain(delay, 2.0, 1, overdamped(times * threshold, 2.0, 4000, false)) {
            Ok(recording) => growth(&recording.values("posterior"), 100),
            Err(fault) => {
                assert!(fault.to_string().contains("diverged"), "{fault}");
                f64::INFINITY
            }
        };
        let (below, above) = (grown(0.98), grown(1.02));
        assert!(below < 0.01 && above > 100.0, "delay {delay}: {below}, {above}");
    }
}

/// Delayed gradients inflate the variance of SGLD at ελ = 0.1 by known factors. The control is the variance without delay.
#[test]
fn delayed_gradients_inflate_the_variance_of_sgld_as_theory_says() {
    for (delay, exact) in SGLD_VARIANCES {
        let lambda = 2.0;
        let draws = delayed_chain(delay, lambda, 60, overdamped(0.1, lambda, 20_000, true)).unwrap();
        let z = z_of(&draws, 0, 0, exact / lambda);
        assert!(z.abs() < Z, "delay {delay}: z {z}");
        assert!(delay == 0 || z_of(&draws, 0, 0, 1.0526 / lambda) > 2.0 * Z, "delay {delay}: the control");
        let old = draws.table("staleness").map(|row| (row.step, row.values[1].1));
        let (at, total) = old.fold((0.0, 0.0), |(at, total), (age, count)| {
            (at + if age == u64::from(delay) { count } else { 0.0 }, total + count)
        });
        assert!(at / total > 0.999, "delay {delay}: {at} of {total}");
    }
}

/// With little friction delayed gradients inflate the variance as the linear map of a chain and its past positions says. For full friction
/// this map gives the variances of SGLD. The control is the variance without delay.
#[test]
fn delayed_gradients_inflate_the_variance_of_underdamped_chains_as_theory_says() {
    for (delay, exact) in SGLD_VARIANCES {
        assert!(
            (delayed(1.0, 0.1_f64.sqrt(), 0.1_f64.sqrt().recip(), delay as usize, false) / exact - 1.0).abs() < 1e-4,
            "delay {delay}"
        );
    }
    let (lambda, step, friction) = (2.0, 0.1, 1.0);
    for (delay, scheme) in [(1, Steps::SemiImplicit), (3, Steps::SemiImplicit), (1, Steps::Middle), (3, Steps::Middle)] {
        let of = |delay: u32| delayed(lambda, step, friction, delay as usize, scheme == Steps::Middle);
        let (steps, step, friction) = (Some(60_000), Step::Size(step), Some(friction));
        let settings = AsyncSghmcSettings { steps, step, friction, scheme, ..AsyncSghmcSettings::default() };
        let draws = delayed_chain(delay, lambda, 60, settings).unwrap();
        let z = z_of(&draws, 0, 0, of(delay));
        assert!(z.abs() < Z, "delay {delay}, {scheme:?}: z {z}, variance {}", of(delay));
        assert!(z_of(&draws, 0, 0, of(0)) > 2.0 * Z, "delay {delay}, {scheme:?}: the control");
    }
}

/// Chains of unequal speed meet the center in an order in which some have more turns, and have the stationary distribution of this order.
/// The control is the distribution of equal speeds.
#[test]
fn asynchronous_chains_of_unequal_speed_have_the_distribution_of_their_order() {
    let (chains, kappa, step, s) = (3_u32, 2.0, 0.1, 8);
    let joint = Joint { chains: 3, lambda: 1.0, kappa, step, friction: 1.0, mass: 1.0, center_friction: 1.0 };
    let theory = stationary(joint, Scheme::Order(&[0, 1, 2, 0, 1]), s).of_each;
    let plan = plan(40_000, s, kappa, Coupling::Elastic(SECOND));
    // The third chain takes twice as long. Otherwise each chain comes a little after the one before it.
    let task =
        |agent: u32, task: &Task| task.updates() as f64 * (1.0 + 1e-9 * f64::from(agent)) * if agent == 2 { 2.0 } else { 1.0 };
    let method =
        CoupledChains { agents: chains, transition: sghmc(target(1.0, 60, chains), step, 1.0), plan, asynchronous: true };
    let draws = Recording::simulated(method, JobOptions::new(Seed(31)), task).unwrap();
    // The slow chain continues alone when the others have ended: only the first half of each chain counts.
    let half = |chain: u32| {
        let all = draws.chain(chain);
        all.slice(ndarray::s![..all.nrows() / 2 - 1000, ..]).to_owned()
    };
    for (chain, &exact) in (0..).zip(&theory) {
        let states = half(chain);
        let z = off(&states, &states, exact);
        assert!(z.abs() < Z, "chain {chain}: z {z} from {theory:?}");
    }
    let equal = stationary(joint, Scheme::Turns, s).variance;
    let control = [0, 2].map(|chain| off(&half(chain), &half(chain), equal));
    assert!(control[0] > Z && control[1] < -Z, "the control: {control:?}, {equal} and {theory:?}");
}

/// Chains that extrapolate the motion of the center have the stationary distribution of theory for each period. The control is the
/// distribution of chains that do not extrapolate.
#[test]
fn chains_that_extrapolate_the_center_have_the_distribution_of_theory() {
    let (chains, kappa, step) = (4_u32, 1.0, 0.1);
    let joint = Joint { chains: 4, lambda: 1.0, kappa, step, friction: 1.0, mass: 1.0, center_friction: 1.0 };
    for s in [1, 8] {
        let (theory, behind) = (stationary(joint, Scheme::Ahead, s), stationary(joint, Scheme::Behind, s));
        let plan = CouplingPlan { extrapolate: true, ..plan(40_000, s, kappa, Coupling::Elastic(SECOND)) };
        let draws = coupled(sghmc(target(1.0, 60, chains), step, 1.0), chains, plan, 60 + s);
        for (one, another, exact) in [(0, 0, theory.variance), (3, 3, theory.variance), (0, 1, theory.covariance)] {
            let z = z_of(&draws, one, another, exact);
            assert!(z.abs() < Z, "s {s}, chains {one} and {another}: z {z} from {exact}");
        }
        // A single step knows nothing of where the velocity leads.
        let control = z_of(&draws, 0, 0, behind.variance);
        assert!(s == 1 || control.abs() > Z, "s {s}: the control: {control}, {} and {}", theory.variance, behind.variance);
    }
}

/// With cyclic coupling, draws of asynchronous chains of unequal speed come from the posterior while chains are free. The control is
/// constant coupling.
#[test]
fn asynchronous_chains_with_cyclic_coupling_keep_the_posterior() {
    let chains = 3_u32;
    let found = |schedule: CouplingSchedule| {
        let mut plan = plan(60_000, 10, 4.0, Coupling::Elastic(SECOND));
        plan.strength.schedule = schedule;
        let task = |agent: u32, task: &Task| task.updates() as f64 * (1.0 + 0.37 * f64::from(agent));
        let method =
            CoupledChains { agents: chains, transition: sghmc(target(1.0, 60, chains), 0.1, 1.0), plan, asynchronous: true };
        Recording::simulated(method, JobOptions::new(Seed(17)), task).unwrap()
    };
    let cyclic = found(CouplingSchedule::Cyclic { coupled: 100, free: 400, settle: 200 });
    for chain in 0..chains {
        assert_eq!(cyclic.chain(chain).nrows(), 60_000 / 500 * 200 - 800, "chain {chain}");
        let z = z_of(&cyclic, chain, chain, 1.0);
        assert!(z.abs() < Z, "chain {chain}: z {z}");
    }
    let control = z_of(&found(CouplingSchedule::Constant), 0, 0, 1.0);
    assert!(control < -3.0 * Z, "the control: {control}");
}

/// Elastic averaging SGD (EASGD and EAMSGD) follows its formulas, synchronously and asynchronously: they keep Σ θ_i + c without a force,
/// and bring all chains to the minimum with one.
#[test]
fn easgd_follows_its_formulas() {
    let (chains, s, periods, rate) = (3_u32, 4_u64, 60_u64, 0.2);
    for (lambda, momentum, nesterov, asynchronous) in [
        (1.5, 0.0, false, false),
        (1.5, 0.8, true, false),
        (1.5, 0.8, false, false),
        (1e-200, 0.0, false, false),
        (1.5, 0.8, true, true),
        (1e-200, 0.0, false, true),
    ] {
        let step = 0.05;
        let problem = target(lambda, 1, chains);
        let transition = Sgd { problem, batch: 1, gradient: Estimator::Plain, step, momentum, nesterov };
        let mut plan = plan(s * periods, s, 1.0, Coupling::Average { rate });
        plan.burn_in = 0;
        let mut theta: Vec<f64> = (0..chains)
            .map(|chain| {
                let mut state = [0.0; 2];
                transition.draw_initial(0, &mut Seed(7).stream(Who::Run, u64::from(chain), Purpose::Initial), &mut state);
                state[0]
            })
            .collect();
        let start: f64 = theta.iter().sum::<f64>() + theta.iter().sum::<f64>() / f64::from(chains);
        let found = if asynchronous {
            let task = |agent: u32, task: &Task| task.updates() as f64 + 1e-3 * f64::from(agent);
            Recording::simulated(
                CoupledChains { agents: chains, transition, plan, asynchronous: true },
                JobOptions::new(Seed(7)),
                task,
            )
            .unwrap()
        } else {
            coupled(transition, chains, plan, 7)
        };
        let found = found.chain(0).into_raw_vec_and_offset().0;
        let mut center = theta.iter().sum::<f64>() / f64::from(chains);
        let mut velocity = vec![0.0; chains as usize];
        let mut centers = Vec::new();
        for period in 0..periods {
            let told = center;
            if !asynchronous {
                center += rate * theta.iter().map(|theta| theta - told).sum::<f64>();
            }
            for (turn, (theta, v)) in (1..).zip(theta.iter_mut().zip(&mut velocity)) {
                let told = if asynchronous { center } else { told };
                let apart = rate * (*theta - told);
                if asynchronous {
                    center += apart;
                    // A period is over with its last chain, before which the others have met the center again.
                    if turn + 1 == chains && period > 0 {
                        centers.push(center);
                    }
                }
                for step_number in 0..s {
                    let at = *theta + if nesterov { momentum * *v } else { 0.0 };
                    *v = momentum * *v - step * lambda * at;
                    *theta += *v - if step_number == 0 { apart } else { 0.0 };
                }
            }
            if !asynchronous || period + 1 == periods {
                centers.push(center);
            }
            let all = theta.iter().sum::<f64>() + center;
            assert!(lambda > 1e-100 || (all / start - 1.0).abs() < 1e-12, "what there is of all is not kept");
        }
        assert_eq!(found.len(), centers.len());
        let off = found.iter().zip(&centers).map(|(found, exact)| (found - exact).abs()).fold(0.0, f64::max);
        assert!(off < 1e-12 * centers[0].abs().max(1.0), "λ {lambda}, μ {momentum}, asynchronous {asynchronous}: {off}");
        assert!(lambda < 1e-100 || centers[centers.len() - 1].abs() < 1e-3 * centers[0].abs(), "no minimum");
    }
}

/// The same test for elastic coupling without noise: the center is that of the linear theory, and comes to rest at the minimum.
#[test]
fn without_noise_coupling_is_the_drift_of_the_theory() {
    let joint = Joint { chains: 3, lambda: 1.0, kappa: 2.0, step: 0.1, friction: 0.8, mass: 3.0, center_friction: 2.0 };
    let (s, periods) = (5, 60);
    let mut transition = sghmc(target(joint.lambda, 1, 3), joint.step, joint.friction);
    transition.dynamics.noise = false;
    let dynamics = CenterDynamics::SecondOrder { mass: joint.mass, friction: joint.center_friction };
    let mut plan = plan(s * periods, s, joint.kappa, Coupling::Elastic(dynamics));
    plan.burn_in = 0;
    let start: Vec<f64> = (0..3)
        .map(|chain| {
            let mut state = [0.0; 2];
            transition.draw_initial(0, &mut Seed(8).stream(Who::Run, chain, Purpose::Initial), &mut state);
            state[0]
        })
        .collect();
    let exact = noiseless(joint, Scheme::Alternate, s, &start, periods);
    let same = |found: &[f64], exact: &[f64]| {
        let off = found.iter().zip(exact).map(|(found, exact)| (found - exact).abs()).fold(0.0, f64::max);
        assert!(found.len() == exact.len() && off < 1e-7, "{} and {}: {off}", found.len(), exact.len());
        assert!(found[found.len() - 1].abs() < 1e-3);
    };
    // What comes out of constant coupling is the center; of coupling that ends a step behind the run, too late for a draw, nothing.
    same(&coupled(transition.clone(), 3, plan.clone(), 8).values("posterior"), &exact[3]);
    plan.strength.schedule = CouplingSchedule::Cyclic { coupled: s * periods, free: 1, settle: 0 };
    assert!(coupled(transition, 3, plan, 8).draws.is_empty());
}
