//! Chains of SGHMC and their elastic coupling against exact theory: stationary laws of linear dynamics on Gaussian targets.
//!
//! Every statistical check takes z-scores by batch means of long runs at fixed seeds; |z| < 4.5 for each: a false alarm in less than
//! 1e-5 of runs for each number, some 100 numbers here.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::linear_chains::{Joint, Scheme, delayed, noiseless, stationary};
use crate::recording::{Seen, value};
use mpibayes::cluster::{Context, JobOptions, Method};
use mpibayes::kernels::hamiltonian::{ChainState, Scheme as Steps, SghmcDynamics};
use mpibayes::kernels::langevin::StepSize;
use mpibayes::methods::chains::async_sghmc::{AsyncSghmc, AsyncSghmcSettings};
use mpibayes::methods::chains::coupled::{
    CenterDynamics, CoupledChains, CoupledTransition, Coupling, CouplingPlan, CouplingSchedule, CouplingStrength, Task,
};
use mpibayes::methods::chains::ec_sghmc::{EcSghmcSettings, Variant};
use mpibayes::methods::common::problem::Problem;
use mpibayes::methods::common::scores::Estimator;
use mpibayes::methods::transitions::sgd::Sgd;
use mpibayes::methods::transitions::sghmc::{Preconditioner, Sghmc};
use mpibayes::methods::transitions::sgld::Sgld;
use mpibayes::methods::{LocalTransition, MethodSettings, Transition, Update};
use mpibayes::models::gaussian::{ComponentSettings, FactorProductSettings, PriorSettings};
use mpibayes::random::{Purpose, Seed, Who};
use ndarray::Array2;
use std::sync::Arc;

/// How far from its exact value a mean may lie, in standard errors.
const Z: f64 = 4.5;

/// N(0, 1/λ) in as many independent dimensions: each is a run of its own.
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

/// ε in the full convention, as the theory has it.
fn sgld(problem: Problem<f64>, step: f64) -> Sgld<f64> {
    Sgld { problem, batch: 1, step: StepSize::Constant(2.0 * step), gradient: Estimator::Plain }
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

/// Over all columns (draws × independent dimensions), the mean of a product of two chains' positions, and its standard error by
/// batches that are long beside the autocorrelation.
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

/// How many standard errors the second moment of draws is off.
fn off(a: &Array2<f64>, b: &Array2<f64>, exact: f64) -> f64 {
    let (mean, error) = moment(a, b);
    (mean - exact) / error
}

/// The same of two chains of a run.
fn z_of(seen: &Seen, one: u32, other: u32, exact: f64) -> f64 {
    off(&seen.chain(one), &seen.chain(other), exact)
}

fn run<M: Method>(method: M, seed: u64) -> Seen {
    Seen::of(method, JobOptions { threads: 2, ..JobOptions::new(Seed(seed)) }).unwrap()
}

/// Chains of all but equal speed: in each round every one comes a little behind the one before it.
fn in_turn<T: CoupledTransition>(transition: T, agents: u32, plan: CouplingPlan, seed: u64) -> Seen {
    let task = |agent: u32, task: &Task| task.updates() as f64 * (1.0 + 1e-9 * f64::from(agent));
    Seen::timed(CoupledChains { agents, transition, plan, asynchronous: true }, JobOptions::new(Seed(seed)), task).unwrap()
}

fn coupled<T: CoupledTransition>(transition: T, agents: u32, plan: CouplingPlan, seed: u64) -> Seen {
    run(CoupledChains { agents, transition, plan, asynchronous: false }, seed)
}

const SECOND: CenterDynamics = CenterDynamics::SecondOrder { mass: 1.0, friction: 1.0 };

/// Theory test 13: the variance of semi-implicit SGHMC, (1/λ)(4 − 2Vε)/(4 − 2Vε − ε²λ), which is far from 1/λ at this step. That of the
/// middle scheme is 1/λ itself; the control is the other's.
#[test]
fn the_variance_of_sghmc_is_that_of_its_discretisation() {
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

/// The same with noisy gradients, as minibatches make them, and with that noise told: B̂ = ½εS gives the variance of none.
#[test]
fn known_noise_of_gradients_is_left_out_of_the_noise_that_is_added() {
    let (lambda, step, friction, noise, dim) = (2.0, 0.4, 1.0, 3.0, 40);
    let side = 4.0 - 2.0 * friction * step;
    for (told, exact) in [
        (0.0, (2.0 * friction + noise * step) * (2.0 - friction * step) / (lambda * friction * (side - step * step * lambda))),
        (0.5 * step * noise, side / (side - step * step * lambda) / lambda),
    ] {
        let dynamics = SghmcDynamics { scheme: Steps::SemiImplicit, gradient_noise: told, ..dynamics(step, friction) };
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
        assert!(z.abs() < Z, "B {told}: z {z}");
        assert!(off(&kept, &kept, 0.8 * exact) > 2.0 * Z, "the control fits as well");
    }
}

/// The same for the middle scheme, where it is nearly so: noise that makes the variance twice as large, and none of it when it is told.
#[test]
fn known_noise_of_gradients_is_left_out_of_the_middle_scheme() {
    let (step, friction, dim) = (0.1, 1.0, 60);
    let noise = 2.0 * 0.5 / step;
    let found = |told: f64| {
        let dynamics = SghmcDynamics { gradient_noise: told, ..dynamics(step, friction) };
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
    // By the linear theory 1.001.
    let (told, untold) = (found(0.5), found(0.0));
    let z = off(&told, &told, 1.001);
    assert!(z.abs() < Z, "z {z}");
    assert!(off(&untold, &untold, 1.3) > 2.0 * Z, "the control");
}

/// Masses that were found in the burn-in change nothing of the law.
#[test]
fn masses_keep_the_posterior() {
    let lambda = 2.0;
    let mut transition = sghmc(target(lambda, 40, 1), 0.4, 0.5);
    transition.preconditioner = Some(Preconditioner { burn_in: 1000, decay: 0.99, floor: 0.3 });
    let draws = coupled(transition, 1, plan(60_000, 50, 0.0, Coupling::Friction), 90);
    let z = z_of(&draws, 0, 0, 1.0 / lambda);
    assert!(z.abs() < Z && z_of(&draws, 0, 0, 0.9 / lambda) > 2.0 * Z, "z {z}");
}

/// What the check calls unstable diverges, and what it does not call so does not; without noise, from one far place.
#[test]
fn what_is_refused_would_diverge() {
    let settings = |coupling: f64, period: u64| EcSghmcSettings {
        steps: 6000,
        period,
        step: 0.1,
        friction: 1.0,
        coupling,
        coupling_schedule: Some(CouplingSchedule::Constant),
        asynchronous: true,
        burn_in: 0,
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
        let said = settings.check().and_then(|()| settings.check_agents(4)).unwrap_err();
        assert!(said.contains(says), "{said}");
    };
    let at_once = || EcSghmcSettings { asynchronous: false, ..settings(1.0, 8) };
    refused(EcSghmcSettings { coupling: 500.0, ..at_once() }, "step² coupling");
    refused(EcSghmcSettings { extrapolate: true, coupling: 5.0, period: 16, ..at_once() }, "extrapolate");
    // However long a period is, the check has an end.
    assert!(EcSghmcSettings { extrapolate: true, period: u64::MAX, ..at_once() }.check_agents(4).is_ok());
    refused(EcSghmcSettings { variant: Variant::Mean, coupling: 50.0, ..at_once() }, "mean");
    refused(EcSghmcSettings { friction: 0.0, ..at_once() }, "friction");
    let masses = Some(Preconditioner { burn_in: 0, floor: 0.01, ..Preconditioner::default() });
    refused(EcSghmcSettings { coupling: 10.0, preconditioner: masses, ..at_once() }, "floor");
    refused(EcSghmcSettings { preconditioner: Some(Preconditioner::default()), ..at_once() }, "burn_in");
}

/// Theory test 15: with κ = 0 coupled chains are chains alone, bit for bit: those of the transition in a loop of its own.
#[test]
fn without_coupling_chains_are_those_of_a_loop() {
    let agents = 3;
    let transition = sghmc(target(2.0, 3, agents), 0.3, 0.7);
    let mut plan = plan(100, 7, 0.0, Coupling::Elastic(SECOND));
    plan.burn_in = 0;
    let draws = run(CoupledChains { agents, transition: transition.clone(), plan: plan.clone(), asynchronous: true }, 5);
    let synchronous = coupled(transition.clone(), agents, plan.clone(), 5);
    let cx = Context::detached(Seed(5));
    for chain in 0..agents {
        let mut state = vec![0.0; transition.state_len()];
        transition.draw_initial(&mut cx.stream(Who::Run, u64::from(chain), Purpose::Initial), &mut state);
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

/// The linear theory itself, against the numbers of the paper's scheme that were found elsewhere: all partners a period old.
#[test]
fn the_theory_of_stale_partners_is_as_published() {
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

/// With short steps the law of the coupled chains here is Λ⁻¹/K + (K − 1)/K (Λ + κI)⁻¹ for each s; that of the paper's scheme is not.
#[test]
fn the_law_of_the_joint_density_depends_on_no_period() {
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

/// Theory test 16: the law of coupled chains, for s = 1 to 32, is that of the linear theory, and never the posterior's.
#[test]
fn coupled_chains_have_the_law_of_the_joint_density_for_every_period() {
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
        assert!(control < -3.0 * Z, "s {s}: the variance is not to be the posterior's, z {control}");
    }
}

/// The same of first order.
#[test]
fn coupled_langevin_chains_have_the_law_of_the_joint_density_for_every_period() {
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

/// Theory test 17: what keeps the posterior. Annealed and cyclic coupling, and coupled friction: its variance, and chains that are
/// independent, at every period. A force on the mean: nearly so with short periods, and as the linear theory has it.
#[test]
fn what_shall_keep_the_posterior_keeps_it() {
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
            // That there was a coupling: chains were closer together, (λ + κ)^-½ in the end, where the history has its measure.
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
                // Cyclic coupling has 4 units of time for it.
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
        assert_ne!(draws.chain(0), free.chain(0), "nothing was coupled");
        if s == 1 {
            assert!((theory.variance - 1.0).abs() < 0.01, "{}", theory.variance);
        }
    }
}

/// Friction that is coupled does couple: chains' velocities go together, and not without.
#[test]
fn coupled_friction_lets_velocities_go_together() {
    let (chains, step) = (4, 0.1);
    let together = |kappa: f64| {
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
    let (free, tied) = (together(0.0), together(20.0));
    assert!(free.abs() < 0.05 && tied > 0.35, "{free}, {tied}");
}

/// Asynchronous chains of equal speed meet the center in turn: their law is that of the linear theory of turns, what they know of the
/// center is as old as the turns of the others, and a second run has the same bits.
#[test]
fn asynchronous_chains_in_turn_have_the_law_of_their_turns() {
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
        // And what the center knows of the three others is one, two and three exchanges old.
        let positions = |age: u64| value(draws.table("staleness").find(|row| row.step == age).unwrap(), "positions");
        assert!(
            (1..=3).all(|age| (positions(age) / total - 1.0).abs() < 0.01),
            "{:?}",
            (1..=3).map(positions).collect::<Vec<_>>()
        );
    }
}

/// Gradients of one chain by agents of equal speed, in turn: each is as old as there are others.
fn stale(delay: u32, lambda: f64, dim: usize, settings: AsyncSghmcSettings) -> Result<Seen, String> {
    let settings = AsyncSghmcSettings { burn_in: settings.steps / 10, thin: 1, ..settings };
    let method = AsyncSghmc { problem: target(lambda, dim, delay + 1), settings };
    let task = |agent: u32, &made: &u64| 1.0 + if made == 0 { 0.1 * f64::from(agent) } else { 0.0 };
    Seen::timed(method, JobOptions::new(Seed(u64::from(delay))), task).map_err(|fault| fault.to_string())
}

/// Steps whose friction forgets all: SGLD with this ελ.
fn forgetful(rate: f64, lambda: f64, steps: u64, noise: bool) -> AsyncSghmcSettings {
    let step = (rate / lambda).sqrt();
    AsyncSghmcSettings { steps, step, friction: 1.0 / step, scheme: Steps::SemiImplicit, noise, ..AsyncSghmcSettings::default() }
}

/// Theory test 14: with gradients τ steps old a chain without noise comes to rest for ελ just below 2 sin(π/(2(2τ + 1))), and not above.
#[test]
fn old_gradients_make_steps_unstable_at_their_threshold() {
    for delay in [0, 1, 2, 4, 8] {
        let threshold = 2.0 * (std::f64::consts::PI / (2.0 * f64::from(2 * delay + 1))).sin();
        let grown = |times: f64| match stale(delay, 2.0, 1, forgetful(times * threshold, 2.0, 4000, false)) {
            Ok(draws) => {
                let path = draws.chain(0).into_raw_vec_and_offset().0;
                let size = |part: &[f64]| part.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
                size(&path[path.len() - 100..]) / size(&path[..100])
            }
            Err(fault) => {
                assert!(fault.contains("diverged"), "{fault}");
                f64::INFINITY
            }
        };
        let (below, above) = (grown(0.98), grown(1.02));
        assert!(below < 0.01 && above > 100.0, "delay {delay}: {below}, {above}");
    }
}

/// λ times the variance of SGLD at ελ = 0.1 by how many steps old its gradients are.
const OF_SGLD: [(u32, f64); 5] = [(0, 1.0526), (1, 1.1640), (2, 1.2892), (4, 1.5959), (8, 2.6583)];

/// The variance of chains with old gradients, at ελ = 0.1. The control: what it is without delay.
#[test]
fn old_gradients_inflate_the_variance_as_the_theory_has_it() {
    for (delay, exact) in OF_SGLD {
        let lambda = 2.0;
        let draws = stale(delay, lambda, 60, forgetful(0.1, lambda, 20_000, true)).unwrap();
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

/// The same with friction that forgets little, where delay heats: against the linear map of a chain and its history, whose numbers for
/// full friction are those above. The control: what the variance is without delay.
#[test]
fn old_gradients_heat_chains_of_little_friction_as_the_theory_has_it() {
    for (delay, exact) in OF_SGLD {
        assert!(
            (delayed(1.0, 0.1_f64.sqrt(), 0.1_f64.sqrt().recip(), delay as usize, false) / exact - 1.0).abs() < 1e-4,
            "delay {delay}"
        );
    }
    let (lambda, step, friction) = (2.0, 0.1, 1.0);
    for (delay, scheme) in [(1, Steps::SemiImplicit), (3, Steps::SemiImplicit), (1, Steps::Middle), (3, Steps::Middle)] {
        let of = |delay: u32| delayed(lambda, step, friction, delay as usize, scheme == Steps::Middle);
        let settings = AsyncSghmcSettings { steps: 60_000, step, friction, scheme, ..AsyncSghmcSettings::default() };
        let draws = stale(delay, lambda, 60, settings).unwrap();
        let z = z_of(&draws, 0, 0, of(delay));
        assert!(z.abs() < Z, "delay {delay}, {scheme:?}: z {z}, variance {}", of(delay));
        assert!(z_of(&draws, 0, 0, of(0)) > 2.0 * Z, "delay {delay}, {scheme:?}: the control");
    }
}

/// Chains of unequal speed meet the center in an order in which some have more turns: theirs is the law of that order. The control: the
/// law of chains that are all as fast.
#[test]
fn asynchronous_chains_of_unequal_speed_have_the_law_of_their_order() {
    let (chains, kappa, step, s) = (3_u32, 2.0, 0.1, 8);
    let joint = Joint { chains: 3, lambda: 1.0, kappa, step, friction: 1.0, mass: 1.0, center_friction: 1.0 };
    let theory = stationary(joint, Scheme::Order(&[0, 1, 2, 0, 1]), s).of_each;
    let plan = plan(40_000, s, kappa, Coupling::Elastic(SECOND));
    // The third takes twice as long, and every one comes a little behind the one before it.
    let task =
        |agent: u32, task: &Task| task.updates() as f64 * (1.0 + 1e-9 * f64::from(agent)) * if agent == 2 { 2.0 } else { 1.0 };
    let method =
        CoupledChains { agents: chains, transition: sghmc(target(1.0, 60, chains), step, 1.0), plan, asynchronous: true };
    let draws = Seen::timed(method, JobOptions::new(Seed(31)), task).unwrap();
    // When the others have ended the slow one goes on alone: of all chains the first half.
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

/// Chains that follow the center's velocity have a law of its own for each period. The control: the law of those that stay with the center
/// where it was.
#[test]
fn chains_that_follow_a_moving_center_have_the_law_of_that() {
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

/// Asynchronous chains of unequal speed that are free in turn: draws of free stretches are the posterior's. The control: constant coupling.
#[test]
fn asynchronous_chains_that_come_and_go_keep_the_posterior() {
    let chains = 3_u32;
    let found = |schedule: CouplingSchedule| {
        let mut plan = plan(60_000, 10, 4.0, Coupling::Elastic(SECOND));
        plan.strength.schedule = schedule;
        let task = |agent: u32, task: &Task| task.updates() as f64 * (1.0 + 0.37 * f64::from(agent));
        let method =
            CoupledChains { agents: chains, transition: sghmc(target(1.0, 60, chains), 0.1, 1.0), plan, asynchronous: true };
        Seen::timed(method, JobOptions::new(Seed(17)), task).unwrap()
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

/// Theory test 18: elastic averaging SGD is its formulas, with and without momentum, all at once and in turn, which keep Σ θ_i + c where
/// there is no force, and bring all to the minimum where there is one.
#[test]
fn elastic_averaging_is_its_formulas() {
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
                transition.draw_initial(&mut Seed(7).stream(Who::Run, u64::from(chain), Purpose::Initial), &mut state);
                state[0]
            })
            .collect();
        let start: f64 = theta.iter().sum::<f64>() + theta.iter().sum::<f64>() / f64::from(chains);
        let found = if asynchronous {
            let task = |agent: u32, task: &Task| task.updates() as f64 + 1e-3 * f64::from(agent);
            Seen::timed(CoupledChains { agents: chains, transition, plan, asynchronous: true }, JobOptions::new(Seed(7)), task)
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
            transition.draw_initial(&mut Seed(8).stream(Who::Run, chain, Purpose::Initial), &mut state);
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
    same(&coupled(transition.clone(), 3, plan.clone(), 8).numbers("posterior"), &exact[3]);
    plan.strength.schedule = CouplingSchedule::Cyclic { coupled: s * periods, free: 1, settle: 0 };
    assert!(coupled(transition, 3, plan, 8).draws.is_empty());
}
