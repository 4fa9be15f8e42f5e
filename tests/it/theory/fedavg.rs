//! Federated averaging (FedAvg) against exact theory: on quadratic losses every round has a closed form.

#![allow(clippy::unwrap_used)]

use crate::one_dimensional::{Line, share};
use crate::recording::run;
use mpibayes::cluster::Context;
use mpibayes::kernels::optimizer::{Optimizer, OptimizerState};
use mpibayes::methods::common::participation::Participation;
use mpibayes::methods::common::problem::Problem;
use mpibayes::methods::point::fedavg::{FedAvg, Weighting};
use mpibayes::random::Seed;

const START: f64 = 0.3;
const STEP: f64 = 0.004;
/// A row of agent k costs a_k/2 · (θ − c_k)².
const CURVATURES: [f64; 3] = [1.0, 0.5, 2.0];
const CENTERS: [f64; 3] = [1.0, 5.0, -1.0];
const ROWS: [usize; 3] = [10, 30, 60];
const WEIGHTINGS: [Weighting; 2] = [Weighting::Participants, Weighting::Total];

/// The prior is strong, so that a method that used it would fail.
fn line() -> Line {
    Line { initial: |_| START, prior_score: |x| -100.0 * (x + 7.0), gradient: |k, x| CURVATURES[k] * (x - CENTERS[k]) }
}

fn fedavg(local_steps: u64, step: f64, weighting: Weighting) -> impl Fn(Problem<f64>) -> FedAvg<f64> {
    let (rounds, schedule, optimizer) = (1, Participation::All, Optimizer::Plain { step });
    move |problem| FedAvg { problem, rounds, schedule, local_steps, batch: 1000, optimizer, weighting }
}

/// θ after these rounds at a temperature, with seed 1.
fn after(rounds: u64, schedule: Participation, temperature: f64, method: impl Fn(Problem<f64>) -> FedAvg<f64>) -> f64 {
    let own = |agent: u32| vec![f64::from(agent); ROWS[agent as usize]];
    let problem = share(line(), 3, temperature, own);
    run(FedAvg { rounds, schedule, ..method(problem) }, 1).particles()[(0, 0)]
}

/// L steps ε on N_k a_k/2 · (θ − c_k)²/α shrink the distance to c_k by r_k = (1 − ε N_k a_k/α)^L; then the average.
fn closed_form(rounds: u64, schedule: Participation, temperature: f64, local_steps: i32, weighting: Weighting) -> f64 {
    let cx = Context::detached(Seed(1));
    (0..rounds).fold(START, |theta, round| {
        let result = |k: usize| {
            let shrink = (1.0 - STEP * ROWS[k] as f64 * CURVATURES[k] / temperature).powi(local_steps);
            CENTERS[k] + shrink * (theta - CENTERS[k])
        };
        let present: Vec<usize> = schedule.agents(round, 3, &cx).into_iter().map(|agent| agent as usize).collect();
        let rows: f64 = present.iter().map(|&k| ROWS[k] as f64).sum();
        let sum: f64 = present.iter().map(|&k| ROWS[k] as f64 * result(k)).sum();
        match weighting {
            Weighting::Participants => sum / rows,
            Weighting::Total => (sum + (100.0 - rows) * theta) / 100.0,
        }
    })
}

/// Both weightings with every schedule. A round has a dozen roundings of numbers below 600, and errors do not grow.
#[test]
fn every_round_has_its_closed_form() {
    let schedules = [
        Participation::All,
        Participation::Subset(2),
        Participation::Subset(1),
        Participation::RoundRobin,
        Participation::RandomPermutation,
        Participation::Random,
    ];
    for schedule in schedules {
        for weighting in WEIGHTINGS {
            for (rounds, temperature) in [(1, 1.0), (2, 2.0), (3, 1.0), (7, 1.0), (40, 1.0)] {
                let found = after(rounds, schedule, temperature, fedavg(5, STEP, weighting));
                let exact = closed_form(rounds, schedule, temperature, 5, weighting);
                assert!((found - exact).abs() < 1e-12, "{schedule:?} {weighting:?}, {rounds} rounds: {found} {exact}");
                // Controls: the other weighting gives another result if agents are absent and the same if none is; another
                // temperature gives another result.
                let other = if weighting == Weighting::Total { Weighting::Participants } else { Weighting::Total };
                let off = (found - closed_form(rounds, schedule, temperature, 5, other)).abs();
                assert_eq!(off < 1e-12, schedule == Participation::All, "{schedule:?}, {rounds} rounds: {off}");
                let off = (found - closed_form(rounds, schedule, 1.5 * temperature, 5, weighting)).abs();
                assert!(off > 1e-3, "{schedule:?}, {rounds} rounds: {off}");
            }
        }
    }
}

/// With one agent and either weighting, a round is L steps of the local optimizer, whose state is new in each round.
#[test]
fn one_agent_is_the_local_optimizer() {
    let everything = |_| vec![0.0, 1.0, 1.0, 2.0];
    let gradient = |x: f64| [0, 1, 1, 2].iter().map(|&k| CURVATURES[k] * (x - CENTERS[k])).sum::<f64>();
    let (rounds, local_steps) = (4, 30);
    let by_hand = |reset: bool| {
        let (mut theta, mut state) = ([START], OptimizerState::new(Optimizer::default(), 1));
        for step in 0..rounds * local_steps {
            if reset && step % local_steps == 0 {
                state.reset();
            }
            let direction = [-gradient(theta[0])];
            state.step(&mut theta, &direction);
        }
        theta[0]
    };
    for weighting in WEIGHTINGS {
        let (schedule, optimizer) = (Participation::RoundRobin, Optimizer::default());
        let problem = share(line(), 1, 1.0, everything);
        let method = FedAvg { problem, rounds, schedule, local_steps, batch: 100, optimizer, weighting };
        let found = run(method, 1).particles()[(0, 0)];
        // Gradients are summed in another order; some thousand rounding errors of numbers near 1 do not grow.
        assert!((found - by_hand(true)).abs() < 1e-12, "{weighting:?}: {found} {}", by_hand(true));
        assert!(
            (found - by_hand(false)).abs() > 1e-6,
            "control: an optimizer that keeps its state between rounds gives another result"
        );
    }
}

/// Agents optimize to convergence, one after the other. With `participants`, θ cycles through the local minimizers. With `total`, it
/// stays between them and does not converge either: θ ← c_k + (1 − N_k/N)(θ − c_k) has its own cycle.
#[test]
fn long_visits_cycle_through_local_minimizers() {
    let visit = |rounds, weighting| after(rounds, Participation::RoundRobin, 1.0, fedavg(4000, STEP, weighting));
    for round in [1, 2, 3, 4, 5, 6, 31] {
        let center = CENTERS[(round as usize - 1) % 3];
        let found = visit(round, Weighting::Participants);
        assert!((found - center).abs() < 1e-12, "round {round}: {found}");
        let between = visit(round, Weighting::Total);
        let exact = (0..round as usize).fold(START, |theta, i| theta + ROWS[i % 3] as f64 / 100.0 * (CENTERS[i % 3] - theta));
        assert!((between - exact).abs() < 1e-12, "round {round}: {between} {exact}");
        assert!((between - center).abs() > 0.1, "control, round {round}: {between}");
    }
}

/// All agents optimize to convergence: θ is the mean of their minimizers, weighted by rows. It is not the minimizer of the sum of losses
/// unless curvatures are equal.
#[test]
fn long_visits_do_not_end_at_the_global_minimizer() {
    let mean = (0..3).map(|k| ROWS[k] as f64 / 100.0 * CENTERS[k]).sum::<f64>();
    let stiffness = |k: usize| ROWS[k] as f64 * CURVATURES[k];
    let minimizer = (0..3).map(|k| stiffness(k) * CENTERS[k]).sum::<f64>() / (0..3).map(stiffness).sum::<f64>();
    let long = after(3, Participation::All, 1.0, fedavg(4000, STEP, Weighting::Participants));
    assert!((long - mean).abs() < 1e-12 && (long - minimizer).abs() > 0.1, "{long} {mean} {minimizer}");
    // With one step of each agent, agent k has the weight N_k² a_k: the fixed point minimizes losses that are multiplied by N_k.
    let weighted = |k: usize| ROWS[k] as f64 * stiffness(k);
    let fixed = (0..3).map(|k| weighted(k) * CENTERS[k]).sum::<f64>() / (0..3).map(weighted).sum::<f64>();
    let short = after(3000, Participation::All, 1.0, fedavg(1, STEP, Weighting::Participants));
    assert!((short - fixed).abs() < 1e-12 && (short - minimizer).abs() > 0.01, "{short} {fixed} {minimizer}");
}
