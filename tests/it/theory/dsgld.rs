//! Distributed SGLD (D-SGLD) against exact theory: on Gaussian targets its updates are linear, and their stationary moments are known.
//!
//! Every statistical test compares a mean with its exact value in units of its standard error. The error comes from 40 batches of rounds,
//! each far longer than the autocorrelation time. |z| < 4.5 fails by chance in about 6 of 100,000 cases (Student's t with 39 degrees of
//! freedom).

#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::gaussian_shards::{
    Affine, FLAT, Moments, Prior, Stay, Z, delayed, largest, moments, problem, problem_with, rows, run, settings, z,
};
use crate::recording::{Recording, value};
use mpibayes::cluster::Context;
use mpibayes::data::Shard;
use mpibayes::kernels::langevin::StepSize;
use mpibayes::methods::Problem;
use mpibayes::methods::chains::dsgld::{
    AveragingPhase, Balance, DsgldSettings, PlannedTrajectories, Schedule, Trajectory, groups,
};
use mpibayes::methods::common::scores::Estimator;
use mpibayes::models::gaussian_mean::GaussianMeanSettings;
use mpibayes::models::logistic::LogisticSettings;
use mpibayes::models::regression::prior::Prior as WeightPrior;
use mpibayes::models::{DataSchema, Output};
use mpibayes::random::{Minibatch, Purpose, Seed, Who};
use ndarray::{Array1, Array2};
use rand::RngExt;
use std::sync::Arc;

/// Constant steps inflate the variance by a known amount, one part from discretization and one from minibatches.
#[test]
fn constant_steps_inflate_the_variance_as_the_formula_says() {
    let (count, dim, step) = (200, 20, 2e-3);
    let x = rows(0, count, dim, 0.0);
    for batch in [count, 20] {
        let settings = DsgldSettings {
            rounds: Some(8000),
            trajectory: Trajectory::Same(10.0),
            batch,
            step: StepSize::Constant(step),
            burn_in: Some(400),
            ..settings()
        };
        let draws = run(problem(vec![x.clone()]), settings, 5).chain(0);
        let theory: Vec<Affine> = x.columns().into_iter().map(|x| Affine::new(x, 1.0, step, batch)).collect();
        let squares: Vec<f64> = draws
            .rows()
            .into_iter()
            .map(|row| row.iter().zip(&theory).map(|(x, s)| (x - s.m).powi(2) / s.variance()).sum::<f64>() / dim as f64)
            .collect();
        assert!(z(&squares, 1.0).abs() < Z, "batch {batch}: {}", z(&squares, 1.0));
        for (coordinate, s) in theory.iter().enumerate() {
            let means = z(&draws.column(coordinate).to_vec(), s.m);
            assert!(means.abs() < Z, "coordinate {coordinate}: {means}");
        }
        // The controls: the variance of the posterior, and that of the other step convention.
        let posterior = theory[0].variance() * count as f64;
        assert!(z(&squares, 1.0 / posterior).abs() > 3.0 * Z);
        let full = Affine::new(x.column(0), 1.0, 2.0 * step, batch).variance() / theory[0].variance();
        assert!(z(&squares, full).abs() > 3.0 * Z);
    }
}

/// Shards of 100, 300 and 600 rows around different means, and the updates of a visit to each.
fn uneven() -> (Vec<Array2<f64>>, Vec<f64>) {
    let shards = vec![rows(0, 100, 12, 0.2), rows(1, 300, 12, 0.2), rows(2, 600, 12, 0.2)];
    (shards, vec![12.0, 6.0, 3.0])
}

/// The states at the ends of visits, and all states together, have the stationary mean and variance of the random affine maps of the
/// visits: with and without the correction for visit frequencies, and with a prior as strong as a shard.
#[test]
fn traveling_chains_have_the_stationary_moments_of_their_visits() {
    let (shards, updates) = uneven();
    let (step, batch, dim) = (3e-4, 50, 12);
    let total: f64 = updates.iter().sum();
    let all: f64 = shards.iter().map(|x| x.nrows() as f64).sum();
    let prior = Prior { precision: 300.0, mean: 0.5 };
    for correction in [true, false] {
        let settings = DsgldSettings {
            rounds: Some(24_000),
            trajectory: Trajectory::Each(updates.clone()),
            batch,
            step: StepSize::Constant(step),
            correction,
            ..settings()
        };
        let recording = run(problem_with(shards.clone(), prior), settings, 6);
        let draws = recording.chain(0);
        let scale = |corrected: bool, s: usize| if corrected { total / updates[s] } else { all / shards[s].nrows() as f64 };
        let theory = |corrected: bool, prior: &dyn Fn(f64) -> Prior| -> Vec<Moments> {
            let affine = |s: usize, j: usize| {
                let scale = scale(corrected, s);
                Affine::with_prior(shards[s].column(j), scale, step, batch, prior(scale))
            };
            (0..dim).map(|j| moments(&(0..3).map(|s| affine(s, j)).collect::<Vec<_>>(), &updates)).collect()
        };
        let own = theory(correction, &|_| prior);
        let stays: Vec<Stay> = recording.stays().into_iter().skip(200).collect();
        let end = |stay: &Stay| draws.row((stay.first + stay.updates - 1) as usize);
        let off = |theory: &[Moments]| {
            let squares: Vec<f64> = stays
                .iter()
                .map(|stay| {
                    end(stay).iter().zip(theory).map(|(x, m)| (x - m.mean).powi(2) / m.variance).sum::<f64>() / dim as f64
                })
                .collect();
            let means = (0..dim).map(|j| z(&stays.iter().map(|stay| end(stay)[j]).collect::<Vec<_>>(), theory[j].mean).abs());
            (squares, largest(means))
        };
        let (squares, mean) = off(&own);
        let variance = z(&squares, 1.0);
        assert!(variance.abs() < Z && mean < Z, "correction {correction}: ends {variance} {mean}");
        // The controls: the other scaling of scores, a prior that is scaled like a shard, and no prior.
        let scaled = |scale: f64| Prior { precision: scale * prior.precision, ..prior };
        for wrong in [theory(!correction, &|_| prior), theory(correction, &scaled), theory(correction, &|_| FLAT)] {
            assert!(off(&wrong).1 > 3.0 * Z, "the control: a wrong theory fits ({})", off(&wrong).1);
        }
        // Each state counts once, although it ends one visit and starts the next.
        let first = stays[0].first as usize;
        let pooled: Vec<f64> = draws
            .rows()
            .into_iter()
            .skip(first)
            .map(|row| row.iter().zip(&own).map(|(x, m)| (x - m.mean).powi(2) / m.pooled_second).sum::<f64>() / dim as f64)
            .collect();
        assert!(z(&pooled, 1.0).abs() < Z, "correction {correction}: pooled {}", z(&pooled, 1.0));
        let means = (0..dim).map(|j| z(&draws.column(j).to_vec()[first..], own[j].pooled_mean).abs());
        assert!(largest(means) < Z, "pooled means");
        if correction {
            // The control: the moments of all states are not those of the ends of visits.
            let ratio = own.iter().map(|m| m.pooled_second / m.variance).sum::<f64>() / dim as f64;
            assert!(z(&squares, ratio).abs() > 3.0 * Z && z(&pooled, 1.0 / ratio).abs() > 3.0 * Z, "{ratio}");
        }
    }
}

/// With a cyclic schedule the states at the ends of visits to each shard have the moments of the product of the affine maps.
#[test]
fn cyclic_chains_have_the_stationary_moments_of_each_shard() {
    let (shards, updates) = uneven();
    let (step, batch, dim) = (1e-4, 50, 12);
    let total: f64 = updates.iter().sum();
    let settings = DsgldSettings {
        rounds: Some(24_000),
        trajectory: Trajectory::Each(updates.clone()),
        batch,
        step: StepSize::Constant(step),
        schedule: Schedule::Cyclic,
        ..settings()
    };
    let recording = run(problem(shards.clone()), settings, 7);
    let draws = recording.chain(0);
    let stays: Vec<Stay> = recording.stays().into_iter().skip(200).collect();
    assert!(stays.windows(2).all(|pair| pair[1].agent == (pair[0].agent + 1) % 3));
    let (mut at_shards, mut firsts) = (Vec::new(), Vec::new());
    for shard in 0..3 {
        let ends: Vec<_> = stays
            .iter()
            .filter(|stay| stay.agent as usize == shard)
            .map(|stay| draws.row((stay.first + stay.updates - 1) as usize))
            .collect();
        let mut squares = vec![0.0; ends.len()];
        for j in 0..dim {
            // One cycle that ends at this shard.
            let (mut factor, mut mean, mut noise) = (1.0, 0.0, 0.0);
            for s in (shard + 1..=shard + 3).map(|s| s % 3) {
                let affine = Affine::new(shards[s].column(j), total / updates[s], step, batch);
                let rho = affine.rho(updates[s]);
                factor *= rho;
                mean = affine.m + rho * (mean - affine.m);
                noise = rho.powi(2) * noise + affine.variance() * (1.0 - rho.powi(2));
            }
            let (mean, variance) = (mean / (1.0 - factor), noise / (1.0 - factor.powi(2)));
            let off = z(&ends.iter().map(|end| end[j]).collect::<Vec<_>>(), mean);
            assert!(off.abs() < Z, "shard {shard}, coordinate {j}: {off}");
            if j == 0 {
                at_shards.push(mean);
            }
            squares.iter_mut().zip(&ends).for_each(|(sum, end)| *sum += (end[j] - mean).powi(2) / variance / dim as f64);
        }
        assert!(z(&squares, 1.0).abs() < Z, "shard {shard}: {}", z(&squares, 1.0));
        firsts.push(ends.iter().map(|end| end[0]).collect::<Vec<f64>>());
    }
    // The control: the moments of another shard.
    for shard in 0..3 {
        let other = z(&firsts[shard], at_shards[(shard + 1) % 3]);
        assert!(other.abs() > 3.0 * Z, "the control: shard {shard}: {other}");
    }
}

/// A control variate at a fixed point removes all minibatch noise from a Gaussian target, whose score is linear.
#[test]
fn the_control_variate_removes_all_minibatch_noise_from_gaussians() {
    let (shards, updates) = uneven();
    let (step, batch, dim) = (1e-4, 5, 12);
    let total: f64 = updates.iter().sum();
    let off = |gradient| {
        let settings = DsgldSettings {
            rounds: Some(12_000),
            trajectory: Trajectory::Each(updates.clone()),
            batch,
            step: StepSize::Constant(step),
            gradient,
            ..settings()
        };
        let recording = run(problem(shards.clone()), settings, 8);
        // A batch of all rows has no noise.
        let affine = |s: usize, j: usize| Affine::new(shards[s].column(j), total / updates[s], step, shards[s].nrows());
        let theory: Vec<Moments> =
            (0..dim).map(|j| moments(&(0..3).map(|s| affine(s, j)).collect::<Vec<_>>(), &updates)).collect();
        let ends: Vec<_> =
            recording.visits().into_iter().skip(400).map(|(_, states)| states.row(states.nrows() - 1).to_owned()).collect();
        let squares =
            |end: &Array1<f64>| end.iter().zip(&theory).map(|(x, m)| (x - m.mean).powi(2) / m.variance).sum::<f64>() / dim as f64;
        let means = (0..dim).map(|j| z(&ends.iter().map(|end| end[j]).collect::<Vec<_>>(), theory[j].mean).abs());
        (z(&ends.iter().map(squares).collect::<Vec<_>>(), 1.0), largest(means))
    };
    let (variance, mean) = off(Estimator::ControlVariate(100));
    assert!(variance.abs() < Z && mean < Z, "{variance} {mean}");
    assert!(off(Estimator::Plain).0 > 3.0 * Z, "the control: minibatches of 5 rows inflate the variance");
}

/// Averaging R chains after every visit without noise correction leaves the variance σ²[1 − (1 − 1/R)(1 − a)^{2t}] after t updates. With
/// the correction, and averaging after every update, the chains are SGLD with minibatches R times as large.
#[test]
fn averaged_chains_have_their_known_variances() {
    let (count, dim, step, batch, members) = (200, 20, 2e-4, 20, 4_u32);
    let x = rows(0, count, dim, 0.0);
    // Every agent has the same rows, so that each one alone has the distribution of all. Scores are scaled by 4.
    let shards = || vec![x.clone(); members as usize];
    let affine: Vec<Affine> = x.columns().into_iter().map(|x| Affine::new(x, f64::from(members), step, batch)).collect();
    let series = |recording: &Recording, place: u64, from: u64, variance: &dyn Fn(Affine) -> f64| -> Vec<f64> {
        let draws = recording.chain(2);
        let stays = recording.stays().into_iter().filter(|stay| stay.chain == 2 && stay.round >= from);
        let square = |stay: Stay| {
            let row = draws.row((stay.first + place) as usize);
            row.iter().zip(&affine).map(|(theta, s)| (theta - s.m).powi(2) / variance(*s)).sum::<f64>() / dim as f64
        };
        stays.map(square).collect()
    };
    let visit = 6;
    let coupled = DsgldSettings {
        chains: members,
        rounds: Some(6000),
        trajectory: Trajectory::Same(visit as f64),
        batch,
        step: StepSize::Constant(step),
        coupling: vec![AveragingPhase { groups: 1, rounds: u64::MAX }],
        ..settings()
    };
    let recording = run(problem(shards()), coupled.clone(), 9);
    for t in [1, visit] {
        let exact = |s: Affine| s.variance() * (1.0 - (1.0 - 1.0 / f64::from(members)) * s.r().powf(2.0 * t as f64));
        let off = z(&series(&recording, t - 1, 100, &exact), 1.0);
        assert!(off.abs() < Z, "{t} updates after averaging: {off}");
    }
    let alone = z(&series(&recording, visit - 1, 100, &|s| s.variance()), 1.0);
    assert!(alone < -3.0 * Z, "the control: averaged chains have less variance than independent ones ({alone})");

    let settings = DsgldSettings { rounds: Some(24_000), trajectory: Trajectory::Same(1.0), noise_correction: true, ..coupled };
    let exact = |s: Affine| {
        let averaged = step + (s.v - step) / f64::from(members);
        s.r().powi(2) * averaged / (1.0 - s.r().powi(2)) + s.v
    };
    let corrected = run(problem(shards()), settings.clone(), 10);
    let off = z(&series(&corrected, 0, 400, &exact), 1.0);
    assert!(off.abs() < Z, "{off}");
    let uncorrected = run(problem(shards()), DsgldSettings { noise_correction: false, ..settings }, 10);
    assert!(z(&series(&uncorrected, 0, 400, &exact), 1.0) < -3.0 * Z, "the control: without the correction variance is lost");
}

/// Each schedule assigns the chains of a round to different agents, and every agent equally often. Every state is kept once.
#[test]
fn schedules_are_permutations_and_every_state_is_kept_once() {
    let agents = 5_u32;
    let shards: Vec<_> = (0..agents).map(|agent| rows(agent, 3 + agent as usize, 2, 0.0)).collect();
    for (schedule, chains) in [
        (Schedule::Permutation, 5),
        (Schedule::Cyclic, 5),
        (Schedule::Derangement, 5),
        (Schedule::Permutation, 3),
        (Schedule::Derangement, 12),
    ] {
        let settings = DsgldSettings {
            chains,
            rounds: Some(3000),
            trajectory: Trajectory::Each(vec![1.0, 2.0, 1.5, 3.0, 1.0]),
            step: StepSize::Constant(1e-3),
            schedule,
            ..settings()
        };
        let recording = run(problem(shards.clone()), settings, 11);
        let stays = recording.stays();
        assert_eq!(stays.len(), 3000 * chains as usize);
        let most = chains.div_ceil(agents) as usize;
        for round in stays.chunks(chains as usize) {
            let mut load = [0; 5];
            round.iter().for_each(|stay| load[stay.agent as usize] += 1);
            assert!(load.iter().all(|&load| load <= most), "{schedule:?}: {round:?}");
        }
        for chain in 0..chains {
            let of_chain: Vec<&Stay> = stays.iter().filter(|stay| stay.chain == chain).collect();
            let moved = of_chain.windows(2).filter(|pair| pair[0].agent != pair[1].agent).count();
            match schedule {
                Schedule::Cyclic => assert!(of_chain.windows(2).all(|pair| pair[1].agent == (pair[0].agent + 1) % agents)),
                Schedule::Derangement if chains == 5 => assert_eq!(moved, 2999),
                // Of a fresh permutation a fifth stays: 600, with standard deviation 22.
                Schedule::Permutation => assert!((2999 - moved).abs_diff(600) < 100, "{moved}"),
                _ => {}
            }
            // Chi-square with 4 degrees of freedom, of 30 chains in all: above 30 in 15 cases of 100,000. A Markov chain of
            // derangements is a little steadier than independent draws.
            let chi: f64 = (0..agents)
                .map(|agent| {
                    let visits = of_chain.iter().filter(|stay| stay.agent == agent).count() as f64;
                    (visits - 600.0).powi(2) / 600.0
                })
                .sum();
            assert!(chi < 30.0, "{schedule:?}, chain {chain}: {chi}");
            // States: one for every update, in blocks that follow on one another.
            let blocks: Vec<_> = recording.blocks(chain).collect();
            let mut next = 0;
            for ((first, states), stay) in blocks.iter().zip(&of_chain) {
                assert_eq!((*first, states.nrows() as u64), (next, stay.updates));
                assert_eq!(stay.first, next);
                next += stay.updates;
            }
            assert_eq!(blocks.len(), of_chain.len());
        }
    }
}

/// With the visit frequencies of the plan, scaled scores add up to the score of all rows, and every single chain has these frequencies.
#[test]
fn scaled_scores_are_unbiased() {
    let counts = [20, 30, 50, 100];
    let shards: Vec<_> = counts.into_iter().zip(0..).map(|(count, agent)| rows(agent, count, 3, 0.5)).collect();
    // How far the share of a chain's updates at an agent may be off: 4.5 standard deviations of the number of its visits there.
    let by_chance = |share: f64| Z * ((1.0 - share) / share / 20_000.0).sqrt();
    for (schedule, chains, trajectory, most) in [
        (Schedule::Permutation, 8, vec![1.5, 2.0, 4.5, 2.25], by_chance(0.25)),
        (Schedule::Cyclic, 4, vec![3.0, 9.0, 4.5, 2.25], 1e-3),
        (Schedule::Categorical, 1, vec![1.5, 2.0, 4.5, 2.25], by_chance(0.1)),
    ] {
        let weights = |correction: bool| {
            let settings = DsgldSettings {
                chains,
                rounds: Some(20_000),
                trajectory: Trajectory::Each(trajectory.clone()),
                batch: 1,
                step: StepSize::Constant(1e-6),
                thin: Some(1000),
                correction,
                schedule,
                ..settings()
            };
            let stays = run(problem(shards.clone()), settings, 12).stays();
            let scales: Vec<f64> = (0..4).map(|agent| stays.iter().find(|stay| stay.agent == agent).unwrap().scale).collect();
            let mut off: f64 = 0.0;
            for chain in 0..chains {
                let of_chain = || stays.iter().filter(|stay| stay.chain == chain);
                let total: f64 = of_chain().map(|stay| stay.updates as f64).sum();
                for agent in 0..4_u32 {
                    let there = of_chain().filter(|stay| stay.agent == agent);
                    off = off.max((there.map(|stay| stay.scale * stay.updates as f64).sum::<f64>() / total - 1.0).abs());
                }
            }
            (scales, off)
        };
        let (scales, off) = weights(true);
        assert!(off < most, "{schedule:?}: {off}");
        let (uncorrected, control) = weights(false);
        assert!(control > 3.0 * most, "the control: {schedule:?}, without correction: {control}");
        // q_s ∝ visits · τ_s, and the whole score of each shard.
        let used: Vec<f64> = trajectory
            .iter()
            .zip(counts)
            .map(|(updates, count)| if schedule == Schedule::Categorical { updates * count as f64 } else { *updates })
            .collect();
        let theta = ndarray::array![[0.3, -0.2, 1.1]];
        let score = |agent: usize, scale: f64| {
            let problem = problem(shards.clone());
            let mut score = Array2::zeros((1, 3));
            let mut local = problem.open(agent as u32, usize::MAX).unwrap();
            let cx = Context::detached(Seed(1));
            local.add_score_for(Who::Run, theta.view(), 0, scale, score.view_mut(), &cx);
            score
        };
        let sum = |weights: &dyn Fn(usize) -> f64| {
            (0..4).fold(Array2::<f64>::zeros((1, 3)), |sum, agent| sum + score(agent, weights(agent)))
        };
        let total: f64 = used.iter().sum();
        let whole = sum(&|_| 1.0);
        let apart = |scales: &[f64]| {
            largest((&sum(&|agent| used[agent] / total * scales[agent]) - &whole).iter().map(|off: &f64| off.abs()))
        };
        assert!(apart(&scales) < 1e-10, "{schedule:?}: {}", apart(&scales));
        assert!(apart(&uncorrected) > 1.0, "the control: {schedule:?}: {}", apart(&uncorrected));
    }
}

/// Sending chains through the server instead of directly between agents does not change their draws.
#[test]
fn chains_sent_through_the_server_have_the_same_draws() {
    let (shards, updates) = uneven();
    let draws = |through_server: bool, groups: u32| {
        let coupling = vec![AveragingPhase { groups, rounds: 10 }];
        let step = StepSize::Constant(1e-4);
        let (chains, rounds, trajectory) = (3, 30, Trajectory::Each(updates.clone()));
        let recording = run(
            problem(shards.clone()),
            DsgldSettings { chains, rounds: Some(rounds), trajectory, step, coupling, through_server, ..settings() },
            13,
        );
        (0..3).map(|chain| recording.chain(chain)).collect::<Vec<_>>()
    };
    for groups in [1, 3] {
        assert_eq!(draws(true, groups), draws(false, groups));
    }
    assert_ne!(draws(true, 1), draws(true, 3));
}

/// When the groups of averaging change, every chain arrives with the mean of its previous group.
#[test]
fn chains_arrive_with_the_mean_of_their_previous_group() {
    let chains = 7_u32;
    let shards = vec![rows(0, 2, 1, 0.0); chains as usize];
    let phases = vec![
        AveragingPhase { groups: 2, rounds: 1 },
        AveragingPhase { groups: 3, rounds: 1 },
        AveragingPhase { groups: 1, rounds: 1 },
    ];
    let settings = DsgldSettings {
        chains,
        rounds: Some(4),
        trajectory: Trajectory::Same(1.0),
        // Neither drift nor noise to speak of.
        step: StepSize::Constant(1e-20),
        coupling: phases.clone(),
        ..settings()
    };
    let recording = run(problem(shards), settings, 14);
    let states: Vec<Array2<f64>> = (0..chains).map(|chain| recording.chain(chain)).collect();
    for round in 0..3 {
        for group in groups(&phases, round, chains) {
            let at = |chain: u32, round: u64| states[chain as usize][[round as usize, 0]];
            let mean = group.clone().map(|chain| at(chain, round)).sum::<f64>() / group.len() as f64;
            for chain in group.clone() {
                assert!((at(chain, round + 1) - mean).abs() < 1e-8, "round {round}, chain {chain} of {group:?}");
            }
        }
    }
    assert!((states[0][[0, 0]] - states[6][[0, 0]]).abs() > 1e-3, "the control: chains begin apart");
}

/// Posterior expectations are means over all updates after burn-in, weighted by step size, whether draws are kept or not.
#[test]
fn expectations_are_weighted_means_of_all_states() {
    let (shards, updates) = uneven();
    let (step, burn_in) = (StepSize::Annealed { a: 1e-3, b: 5.0, c: 0.6 }, 37);
    let settings = DsgldSettings {
        chains: 3,
        rounds: Some(40),
        trajectory: Trajectory::Each(updates),
        step,
        burn_in: Some(burn_in),
        expectations: true,
        ..settings()
    };
    let recording = run(problem(shards.clone()), settings.clone(), 15);
    let moments = |weight: &dyn Fn(u64) -> f64| -> (Array1<f64>, Array1<f64>) {
        let chains: Vec<Array2<f64>> = (0..3).map(|chain| recording.chain(chain)).collect();
        let each = || chains.iter().flat_map(|draws| draws.rows().into_iter().zip(burn_in..));
        let total: f64 = each().map(|(_, update)| weight(update)).sum();
        let mean = each().fold(Array1::zeros(12), |sum, (state, update)| sum + &(&state * (weight(update) / total)));
        let square = |state: ndarray::ArrayView1<f64>| (&state - &mean).mapv(|off| off * off);
        let variance = each().fold(Array1::zeros(12), |sum, (state, update)| sum + square(state) * (weight(update) / total));
        (mean.clone(), variance.mapv(f64::sqrt))
    };
    let found = |name: &str| Array1::from(recording.values::<f64>(name));
    let off = |(mean, sd): (Array1<f64>, Array1<f64>)| {
        (&found("posterior_mean") - &mean)
            .iter()
            .chain((&found("posterior_sd") - &sd).iter())
            .fold(0.0_f64, |a, b| a.max(b.abs()))
    };
    assert!(off(moments(&|update| step.at(update))) < 1e-12);
    assert!(off(moments(&|_| 1.0)) > 1e-6, "the control: unweighted");
    // The same without a draw.
    let without = run(problem(shards), DsgldSettings { thin: Some(0), ..settings }, 15);
    assert_eq!(without.blocks(0).count(), 0);
    for name in ["posterior_mean", "posterior_sd"] {
        assert_eq!(without.values::<f64>(name), recording.values::<f64>(name));
    }
}

/// In each round of a rotating schedule one group of chains moves, all at one agent. The groups of a turn are at different agents, and
/// each group visits all agents equally often.
#[test]
fn rotating_chains_move_in_groups() {
    for (agents, chains, groups) in [(4_u32, 8_u32, 4_u32), (4, 3, 3), (3, 7, 3)] {
        let shards: Vec<_> = (0..agents).map(|agent| rows(agent, 3, 2, 0.0)).collect();
        let (rounds, schedule) = (u64::from(groups * agents * 40), Schedule::Rotating);
        let settings = DsgldSettings {
            chains,
            rounds: Some(rounds),
            trajectory: Trajectory::Same(2.0),
            step: StepSize::Constant(1e-3),
            schedule,
            ..settings()
        };
        let stays = run(problem(shards), settings, 16).stays();
        let of_round = |round: u64| stays.iter().filter(move |stay| stay.round == round + 1);
        for round in 0..rounds {
            let here: Vec<u32> = of_round(round).map(|stay| stay.chain).collect();
            assert!(!here.is_empty() && here.windows(2).all(|pair| pair[1] == pair[0] + 1), "{here:?}");
            assert!(of_round(round).all(|stay| stay.agent == of_round(round).next().unwrap().agent));
            let before: Vec<u32> = of_round(round % u64::from(groups)).map(|stay| stay.chain).collect();
            assert_eq!(here, before);
        }
        for chain in 0..chains {
            let visited: Vec<u32> = stays.iter().filter(|stay| stay.chain == chain).map(|stay| stay.agent).collect();
            assert_eq!(visited.len() as u64, rounds / u64::from(groups));
        }
        let mut counts = vec![0.0; agents as usize];
        stays.iter().filter(|stay| stay.chain == 0).for_each(|stay| counts[stay.agent as usize] += 1.0);
        let expected = counts.iter().sum::<f64>() / f64::from(agents);
        // Chi-square with 2 or 3 degrees of freedom exceeds 30 in 1 of a million cases.
        assert!(counts.iter().map(|count| (count - expected).powi(2) / expected).sum::<f64>() < 30.0, "{counts:?}");
        for turn in 0..rounds / u64::from(groups) {
            let mut at: Vec<u32> =
                (0..u64::from(groups)).map(|part| of_round(turn * u64::from(groups) + part).next().unwrap().agent).collect();
            at.sort_unstable();
            at.dedup();
            assert_eq!(at.len(), groups as usize);
        }
    }
}

/// With decreasing steps and a temperature, mean and variance after any number of updates are known once the initial state is forgotten.
#[test]
fn annealed_chains_have_the_variance_of_their_steps() {
    let (count, dim, batch, temperature, chains, updates) = (200, 10, 20, 2.0, 1000_u32, 600_u64);
    let x = rows(0, count, dim, 0.0);
    let step = StepSize::Annealed { a: 0.05, b: 3.0, c: 0.55 };
    // The temperature does not act on the prior.
    let prior = Prior { precision: 100.0, mean: 0.4 };
    let mut problem = problem_with(vec![x.clone()], prior);
    problem.temperature = temperature;
    let settings = DsgldSettings {
        chains,
        rounds: Some(updates / 20),
        trajectory: Trajectory::Same(20.0),
        batch,
        step,
        burn_in: Some(updates - 1),
        ..settings()
    };
    let recording = run(problem, settings, 17);
    let variance = |column: usize, temperature: f64| {
        let affine = |update: u64| Affine::with_prior(x.column(column), 1.0 / temperature, step.at(update), batch, prior);
        (0..updates).fold((0.0, 1.0), |(variance, left), update| {
            let s = affine(update);
            (s.r().powi(2) * variance + s.v, s.r() * left)
        })
    };
    let off = |temperature: f64, prior: Prior| {
        let exact: Vec<f64> = (0..dim).map(|column| variance(column, temperature).0).collect();
        let mean = |j: usize| Affine::with_prior(x.column(j), 1.0 / temperature, 1.0, batch, prior).m;
        let squares: Vec<f64> = (0..chains)
            .map(|chain| {
                let state = recording.chain(chain);
                assert_eq!(state.nrows(), 1);
                (0..dim).map(|j| (state[[0, j]] - mean(j)).powi(2) / exact[j]).sum::<f64>() / dim as f64
            })
            .collect();
        z(&squares, 1.0)
    };
    assert!(variance(0, temperature).1.abs() < 1e-6, "the initial state is not forgotten");
    assert!(off(temperature, prior).abs() < Z, "{}", off(temperature, prior));
    let tempered = Prior { precision: prior.precision / temperature, ..prior };
    for (wrong, control) in [("without the temperature", off(1.0, prior)), ("a tempered prior", off(temperature, tempered))] {
        assert!(control.abs() > 3.0 * Z, "the control: {wrong} ({control})");
    }
}

/// Trajectory lengths that were planned from measured times can be replayed, and give the same draws.
#[test]
fn measured_plans_can_be_replayed() {
    let draws = |balance: Option<Balance>, plans: Vec<PlannedTrajectories>| {
        delayed(DsgldSettings { rounds: Some(30), trajectory: Trajectory::Same(6.25), balance, plans, ..settings() }, 2)
    };
    let first = draws(Some(Balance { decay: 1.0, ..Balance::default() }), Vec::new());
    let mut plans: Vec<PlannedTrajectories> = Vec::new();
    for row in first.table("plans") {
        if plans.last().is_none_or(|last| last.round != row.step) {
            plans.push(PlannedTrajectories { round: row.step, updates: Vec::new() });
        }
        plans.last_mut().unwrap().updates.push(value(row, "updates"));
    }
    assert_eq!(plans.len(), 2, "{plans:?}");
    let again = draws(None, plans);
    assert_eq!(again.stays(), first.stays());
    assert!((0..4).all(|chain| again.chain(chain) == first.chain(chain)));
    assert_ne!(draws(None, Vec::new()).stays(), first.stays(), "the control: another plan");
}

/// The waiting times of figure 1 of the D-SGLD paper on a simulated cluster, and a plan that finds the balanced lengths by itself.
#[test]
fn balanced_plans_leave_no_agent_waiting() {
    let blocked = |trajectory: Trajectory, balance: Option<Balance>, rounds: u64| -> (Vec<f64>, Vec<f64>) {
        let recording =
            delayed(DsgldSettings { rounds: Some(rounds), trajectory, max_rounds_in_flight: 1, balance, ..settings() }, 1);
        let column = |name: &str| recording.table("load").filter(|row| row.step == rounds).map(|row| value(row, name)).collect();
        (column("blocked_seconds"), column("trajectory"))
    };
    let rounds = 50;
    let per_round = |blocked: Vec<f64>| -> Vec<f64> { blocked.into_iter().map(|blocked| blocked / rounds as f64).collect() };
    // (a) All agents wait for the slowest one.
    assert_eq!(per_round(blocked(Trajectory::Same(3.0), None, rounds).0), [3.0, 9.0, 6.0, 0.0]);
    // (b) No agent waits.
    assert_eq!(blocked(Trajectory::Each(vec![4.0, 12.0, 6.0, 3.0]), None, rounds).0, [0.0; 4]);
    // (c) Whole numbers of updates that average 4.5 and 2.25: rounding errors are made up for later.
    let waits = per_round(blocked(Trajectory::Each(vec![3.0, 9.0, 4.5, 2.25]), None, rounds).0);
    assert!(waits.iter().all(|wait| *wait <= 4.0), "{waits:?}");
    // Planned by itself, from τ = 25/4.
    let balance = Some(Balance { decay: 1.0, ..Balance::default() });
    let (waited, plan) = blocked(Trajectory::Same(6.25), balance, rounds);
    assert!(plan.iter().zip([4.0, 12.0, 6.0, 3.0]).all(|(plan, exact)| (plan - exact).abs() < 1e-9), "{plan:?}");
    // At most two rounds follow the first plan, in which the slowest agent makes 7 updates.
    assert!(waited.iter().all(|wait| *wait <= 2.0 * 28.0), "{waited:?}");
}

/// Simulation-based calibration: a parameter drawn from the prior ranks uniformly among draws from its posterior.
#[test]
fn true_means_rank_uniformly_among_posterior_draws() {
    let (dim, replicates, draws) = (20, 40, 19);
    let mut counts = [0_u32; 20];
    let (mut wrong, mut narrow) = ([0_u32; 20], [0_u32; 20]);
    for replicate in 0..replicates {
        let mut stream = Seed(500 + replicate).stream(Who::Run, 0, Purpose::Synthetic);
        let mut truth = vec![0.0; dim];
        stream.normals(&mut truth);
        let mut noise = vec![0.0; 2 * 10 * dim];
        stream.normals(&mut noise);
        let noise = Array2::from_shape_vec((20, dim), noise).unwrap();
        let x = &noise + &Array1::from(truth.clone());
        let model = GaussianMeanSettings { prior_precision: 1.0, ..GaussianMeanSettings::default() }.build(dim).unwrap();
        let shard = move |agent: u32| {
            let mine = x.slice(ndarray::s![agent as usize * 10..(agent as usize + 1) * 10, ..]).to_owned();
            Ok(Shard::new(mine, Array1::zeros(10)))
        };
        let problem = Problem { model: Arc::new(model), agents: 2, temperature: 1.0, shard: Arc::new(shard) };
        // a = 21 ε/2: draws two hundred updates apart have a correlation of e^-4.
        let settings = DsgldSettings {
            rounds: Some(2 * (draws as u64 + 1) * 20),
            trajectory: Trajectory::Same(5.0),
            batch: 10,
            step: StepSize::Constant(2e-3),
            burn_in: Some(200),
            thin: Some(200),
            ..settings()
        };
        let chain = run(problem, settings, replicate).chain(0);
        assert_eq!(chain.nrows(), draws as usize);
        for (draws, truth) in chain.columns().into_iter().zip(&truth) {
            let below = |shift: f64| draws.iter().filter(|draw| **draw + shift < *truth).count();
            counts[below(0.0)] += 1;
            // The controls: draws that are half a standard deviation off, and draws with half the variance.
            wrong[below(0.11)] += 1;
            let mean = draws.mean().unwrap();
            narrow[draws.iter().filter(|draw| mean + (**draw - mean) / 2_f64.sqrt() < *truth).count()] += 1;
        }
    }
    let expected = f64::from(u32::try_from(replicates).unwrap() * 20) / 20.0;
    let chi = |counts: &[u32]| counts.iter().map(|&count| (f64::from(count) - expected).powi(2) / expected).sum::<f64>();
    // Chi-square with 19 degrees of freedom exceeds 61 in 3 of a million cases.
    assert!(chi(&counts) < 61.0, "{counts:?}");
    assert!(chi(&wrong) > 61.0 && chi(&narrow) > 61.0, "the controls: {wrong:?} {narrow:?}");
}

/// Simulation-based calibration of logistic regression, whose posterior has no closed form.
#[test]
fn true_weights_rank_uniformly_among_posterior_draws() {
    let (replicates, draws, rows) = (800_u64, 19_u64, 20_usize);
    let projections: [[f64; 2]; 3] = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]];
    let (mut counts, mut wrong) = ([[0_u32; 20]; 3], [[0_u32; 20]; 3]);
    for replicate in 0..replicates {
        let mut stream = Seed(9000 + replicate).stream(Who::Run, 0, Purpose::Synthetic);
        let mut normals = vec![0.0; 2 + rows];
        stream.normals(&mut normals);
        let truth: [f64; 2] = [normals[0], normals[1]];
        let x = Array2::from_shape_vec((rows, 1), normals[2..].to_vec()).unwrap();
        let y: Vec<f64> = x
            .iter()
            .map(|x| f64::from(u8::from(stream.random::<f64>() < 1.0 / (1.0 + (-truth[0] * x - truth[1]).exp()))))
            .collect();
        let model = LogisticSettings { prior: WeightPrior::Normal(1.0), intercept_scale: 1.0, ..LogisticSettings::default() };
        let model = model.build(&DataSchema::new(1, Output::Classes(2))).unwrap();
        let shard = move |_| Ok(Shard::new(x.clone(), Array1::from(y.clone())));
        let problem = Problem { model: Arc::new(model), agents: 1, temperature: 1.0, shard: Arc::new(shard) };
        // The weakest direction has a precision of 1 and more: a = ε/2 and more, so that 400 updates leave e^-4 of a state. In the
        // strongest one steps and minibatches widen the posterior by some 3 % of its standard deviation: too little to be seen here.
        let settings = DsgldSettings {
            rounds: Some((draws + 1) * 10),
            trajectory: Trajectory::Same(40.0),
            batch: rows / 2,
            step: StepSize::Constant(0.02),
            burn_in: Some(400),
            thin: Some(400),
            log_visits: false,
            ..settings()
        };
        let chain = run(problem, settings, replicate).chain(0);
        assert_eq!(chain.nrows() as u64, draws);
        for (which, along) in projections.iter().enumerate() {
            let on = |state: &[f64]| state[0] * along[0] + state[1] * along[1];
            let below =
                |shift: f64| chain.rows().into_iter().filter(|row| on(row.as_slice().unwrap()) + shift < on(&truth)).count();
            counts[which][below(0.0)] += 1;
            wrong[which][below(0.3)] += 1;
        }
    }
    let expected = replicates as f64 / 20.0;
    let chi = |counts: &[u32]| counts.iter().map(|&count| (f64::from(count) - expected).powi(2) / expected).sum::<f64>();
    for (counts, wrong) in counts.iter().zip(&wrong) {
        // The same bound as above.
        assert!(chi(counts) < 61.0, "{} {counts:?}", chi(counts));
        assert!(chi(wrong) > 61.0, "the control: {wrong:?}");
    }
}

/// Minibatches are drawn without replacement, as the formulas above assume.
#[test]
fn minibatches_have_the_variance_of_sampling_without_replacement() {
    let x: Vec<f64> = (0..20).map(f64::from).collect();
    let mean = 9.5;
    let spread = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 19.0;
    let exact = spread / 8.0 * (1.0 - 8.0 / 20.0);
    let mut minibatch = Minibatch::new(20, 8);
    let series: Vec<f64> = (0..8000)
        .map(|step| {
            let rows = minibatch.draw(&mut Seed(3).stream(Who::Chain(0), step, Purpose::Minibatch));
            (rows.iter().map(|&row| x[row]).sum::<f64>() / 8.0 - mean).powi(2)
        })
        .collect();
    assert!(z(&series, exact).abs() < Z);
    assert!(z(&series, spread / 8.0).abs() > 3.0 * Z, "the control: with replacement");
}
