//! What is measured before a run with automatic steps, and the steps and lengths that follow.
//!
//! In coordinates in which the posterior is close to N(0, I), with the variance v of the noise of scores, an update of SGLD with step h
//! has the stationary variance (1 + h v/4)/(1 − h/4), and the middle scheme of SGHMC with step ε, friction V and c = e^(−εV) has
//! 1 + v ε² (1 + c)/((4 − ε²)(1 − c)). The steps are the largest that keep this, to first order, below 1 + [`EXCESS`] for every parameter; the
//! noise that is added is reduced by what minibatches (and in SGLD the finite step) contribute, averaged over parameters. Where the posterior is not Gaussian, curvatures
//! around the mode are larger than 1 and shorten steps.
//!
//! Where only the scale of parameters is known, the curvature differs between directions, and the noise of minibatches is largest where the
//! curvature is: about the largest curvature times the noise of a parameter. If runs would be too long
//! with steps that keep the excess of such directions small, steps are larger, and the variance there is too large by
//! [`Measurement::excess`].

use serde::{Deserialize, Serialize};

/// The largest excess of a variance that steps may cause, before the added noise is reduced.
const EXCESS: f64 = 0.1;
/// The largest step.
const MAX_STEP: f64 = 0.5;
/// The largest step where only the scale of parameters is known, because curvatures then change along the way.
const MAX_ROUGH_STEP: f64 = 0.25;
/// The largest share of the friction that delays of scores may take.
const MAX_DELAY: f64 = 0.1;
/// The friction V of SGHMC: its chains forget a standard normal distribution's position in about V/ε steps.
const FRICTION: f64 = 1.5;
/// Burn-in in relaxation times, after which a start at 1.5 standard deviations has lost all but e^-10 of its distance.
pub const BURN_IN: f64 = 10.0;
/// The largest share of the added noise that is left out because minibatches supply it.
const MAX_SUPPLIED: f64 = 0.5;
/// What an update costs beside its rows, in rows.
const UPDATE_COST: f64 = 100.0;
/// Draws, a relaxation time apart, for each effective one of the parameter that has the fewest: measured on eight posteriors, 2.5 gave 755 to 1,170
/// of 1,000, so that 3.5 gives 1,000 or more.
const DRAWS_PER_EFFECTIVE: f64 = 3.5;
/// The same where only the scale of parameters is known, so that the effective sample size is about a tenth of the wanted one.
const ROUGH_DRAWS_PER_EFFECTIVE: f64 = 0.25;

/// What was measured around the mode, in coordinates in which the posterior is close to N(0, I); or, if `knows_only_scale`, at the starting
/// points, in coordinates in which every parameter has scale 1. Noise is the variance of scores, in units of the posterior's variances, for each
/// parameter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// The noise of minibatches of the size that was asked for.
    pub minibatches: Vec<f64>,
    /// The noise of shards, for a chain that makes one update at each.
    pub shards: Vec<f64>,
    /// The largest curvature at draws from N(0, I) or at starting points: 1 for a Gaussian posterior in whitened coordinates.
    pub curvature: f64,
    /// The rows of the largest shard.
    pub rows: f64,
    /// Whether only the scale of parameters is known: the posterior then has wide directions and other modes that no step is made for.
    pub knows_only_scale: bool,
    /// The factor by which steps of SGHMC are shortened, because points diverged with longer ones; 1 if none did.
    pub shortened: f64,
}

/// Rows that a relaxation time, before [`ROUGH_RELAXATION`], may cost because of noise where only the scale is known: this many passes over the rows, or this many rows if that is more.
const ROUGH_PASSES: f64 = 2.0;
const ROUGH_ROWS: f64 = 200_000.0;
/// How much longer chains then take to forget their state than the scale tells, because of directions that are wider than it.
const ROUGH_RELAXATION: f64 = 5.0;

impl Measurement {
    /// The number of draws, a relaxation time apart, for a wanted effective sample size.
    pub fn draws(&self, ess: f64) -> f64 {
        draws_of(ess, self.knows_only_scale)
    }

    /// The relaxation time of chains that would have `of_scale` if no direction were wider than the known scale.
    fn relaxation(&self, of_scale: f64) -> f64 {
        if self.knows_only_scale { ROUGH_RELAXATION * of_scale } else { of_scale }
    }

    /// Two variances of the noise of scores with minibatches of `batch` rows, from those measured with `measured` rows: the largest over
    /// parameters, of minibatches and shards together (times the largest curvature if only the scale is known), and the mean over parameters,
    /// of minibatches alone. Chains make `updates` updates at a shard before they leave it.
    ///
    /// The force of a shard grows with the distance from the mode. Within a visit of τ updates it acts τ times in the same direction, and
    /// changes what it acts on: to first order it counts 2τ − 1 times what it would in a single update.
    fn largest_and_mean_noise(&self, (batch, measured): (usize, usize), updates: f64) -> (f64, f64) {
        // Variance of the mean of n of N rows, drawn without replacement.
        let variance = |batch: usize| (1.0 / batch as f64 - 1.0 / self.rows).max(0.0);
        let scale = if variance(measured) > 0.0 { variance(batch) / variance(measured) } else { 1.0 };
        let of_visits = (2.0 * updates - 1.0).max(1.0);
        let all = self.minibatches.iter().zip(&self.shards).map(|(minibatches, shards)| scale * minibatches + of_visits * shards);
        let steepest = if self.knows_only_scale { self.curvature.max(1.0) } else { 1.0 };
        (steepest * all.fold(0.0, f64::max), scale * self.minibatches.iter().sum::<f64>() / self.minibatches.len().max(1) as f64)
    }

    /// Sizes of minibatches: `least`, doubled again and again, and all rows. A batch of at least the shard's rows uses all of them.
    fn sizes(&self, least: usize) -> impl Iterator<Item = usize> {
        let rows = self.rows;
        let sizes =
            (0..40).map(move |doublings| least.saturating_mul(1 << doublings)).take_while(move |&batch| (batch as f64) < rows);
        sizes.chain([if (least as f64) < rows { rows.ceil() as usize } else { least }])
    }

    /// The size of minibatches, at least `least`, with which chains come to an independent draw at the least cost.
    fn cheapest_batch(&self, least: usize, updates: f64) -> usize {
        let cost = |batch: usize| {
            let (largest, _) = self.largest_and_mean_noise((batch, least), updates);
            (batch as f64 + UPDATE_COST) * (self.curvature + largest)
        };
        self.sizes(least).min_by(|&a, &b| cost(a).total_cmp(&cost(b))).unwrap_or(least)
    }

    /// The size of minibatches, at least `least`, with which chains come farthest at the least cost, with the step of each size.
    fn batch_by_step(&self, least: usize, step: impl Fn(usize) -> f64) -> usize {
        let cost = |batch: usize| (batch as f64 + UPDATE_COST) / step(batch);
        self.sizes(least).min_by(|&a, &b| cost(a).total_cmp(&cost(b))).unwrap_or(least)
    }

    /// The excess of the variance of draws in the steepest directions, with this step of SGLD, or of SGHMC with this friction, with minibatches
    /// of `batch` rows where the noise was measured with `measured`, and with `updates` updates in a visit.
    pub fn excess(&self, (batch, measured): (usize, usize), updates: f64, step: f64, friction: Option<f64>) -> f64 {
        let (largest, _) = self.largest_and_mean_noise((batch, measured), updates);
        largest * friction.map_or(0.25 * step, |friction| excess_of_middle_scheme(step, friction))
    }

    /// The longest relaxation time that minibatches of this size may have, in updates.
    fn max_relaxation(&self, batch: usize) -> f64 {
        let rows = if self.knows_only_scale { ROUGH_ROWS.max(ROUGH_PASSES * self.rows) } else { f64::INFINITY };
        (rows / (batch as f64).min(self.rows).max(1.0)).max(1.0)
    }
}

/// Steps of SGLD.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LangevinSteps {
    /// Rows in a minibatch.
    pub batch: usize,
    /// The variance of the noise of an update.
    pub step: f64,
    /// The share of this variance that is not added, because the noise of scores and the finite step already contribute it.
    pub supplied: f64,
    /// Updates in which a chain forgets its state.
    pub relaxation: f64,
}

/// The steps of SGLD with minibatches of at least `least` rows, for chains that make `updates` updates at a shard before they leave it.
pub fn langevin_steps(measured: &Measurement, least: usize, updates: f64) -> LangevinSteps {
    let of_batch = |batch: usize| langevin_steps_of(measured, (batch, least), updates);
    match measured.knows_only_scale {
        false => of_batch(measured.cheapest_batch(least, updates)),
        true => of_batch(measured.batch_by_step(least, |batch| of_batch(batch).step)),
    }
}

/// The steps of SGLD with minibatches of this size, where the noise was measured with `measured_with` rows.
fn langevin_steps_of(measured: &Measurement, (batch, measured_with): (usize, usize), updates: f64) -> LangevinSteps {
    let (largest, mean) = measured.largest_and_mean_noise((batch, measured_with), updates);
    let excess = if measured.knows_only_scale { 0.5 * EXCESS } else { EXCESS };
    let step = |noise: f64| (4.0 * excess / (measured.curvature.max(1.0) + noise)).min(MAX_STEP);
    // SGHMC moves as far with the root of a step.
    let step = step(largest).max(2.0 / measured.max_relaxation(batch)).min(step(0.0)) * measured.shortened.powi(2);
    let supplied = (0.25 * step * (1.0 + mean)).min(MAX_SUPPLIED);
    LangevinSteps { batch, step, supplied, relaxation: measured.relaxation(2.0 / step) }
}

/// Steps of SGHMC with the middle scheme.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HamiltonianSteps {
    /// Rows in a minibatch.
    pub batch: usize,
    /// ε.
    pub step: f64,
    /// V.
    pub friction: f64,
    /// By how much less noise is added: half of ε times the mean variance of the scores of minibatches, plus delay times ε, at most half of the
    /// friction.
    pub gradient_noise: f64,
    /// Steps in which a chain forgets its state.
    pub relaxation: f64,
}

/// The steps of SGHMC with minibatches of at least `least` rows, with this friction if it is given, and with scores that are `delay` steps old.
///
/// A score of −q that is τ steps old is −q + τ ε v to first order, so that friction acts as V − τ ε: it must add as much less noise.
pub fn hamiltonian_steps(measured: &Measurement, least: usize, friction: Option<f64>, delay: f64) -> HamiltonianSteps {
    let friction = friction.unwrap_or(FRICTION);
    let of_batch = |batch: usize| hamiltonian_steps_of(measured, (batch, least), friction, delay);
    match measured.knows_only_scale {
        false => of_batch(measured.cheapest_batch(least, 1.0)),
        // Where only the scale is known, not only noise decides the step: it is computed for each size.
        true => of_batch(measured.batch_by_step(least, |batch| of_batch(batch).step)),
    }
}

/// The steps of SGHMC with minibatches of this size, where the noise was measured with `measured_with` rows.
fn hamiltonian_steps_of(
    measured: &Measurement,
    (batch, measured_with): (usize, usize),
    friction: f64,
    delay: f64,
) -> HamiltonianSteps {
    let (largest, mean) = measured.largest_and_mean_noise((batch, measured_with), 1.0);
    let curvature = measured.curvature.max(1.0);
    let largest_step = if measured.knows_only_scale { MAX_ROUGH_STEP } else { MAX_STEP };
    let max_step = (largest_step / curvature.sqrt()).min(MAX_DELAY * friction / (delay * curvature));
    let (mut below, mut above) = (0.0, max_step);
    if largest * excess_of_middle_scheme(max_step, friction) <= EXCESS {
        below = max_step;
    }
    // The excess grows with the step.
    for _ in 0..60 {
        let step = 0.5 * (below + above);
        *if largest * excess_of_middle_scheme(step, friction) <= EXCESS { &mut below } else { &mut above } = step;
    }
    let step = below.max(friction.max(2.0 / friction) / measured.max_relaxation(batch)).min(max_step) * measured.shortened;
    let gradient_noise = (0.5 * step * mean + delay * step).min(MAX_SUPPLIED * friction);
    // Positions diffuse with much friction and swing with little.
    let decay = (-friction * step).exp();
    let relaxation = (2.0 * (1.0 - decay) / (step * step * (1.0 + decay))).max(2.0 / (friction * step));
    HamiltonianSteps { batch, step, friction, gradient_noise, relaxation: measured.relaxation(relaxation) }
}

/// The excess of a variance for each unit of noise.
fn excess_of_middle_scheme(step: f64, friction: f64) -> f64 {
    let decay = (-friction * step).exp();
    step * step * (1.0 + decay) / ((4.0 - step * step) * (1.0 - decay))
}

/// How long chains run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lengths {
    /// Updates before the first draw.
    pub burn_in: u64,
    /// Updates between draws; 0 for no draws.
    pub thin: u64,
    /// All updates of a chain.
    pub updates: u64,
}

impl Lengths {
    /// Lengths for a run of given length. Burn-in and thinning in `given` stay; what is not given is chosen so that at most half of the updates
    /// are burn-in and a draw follows, where `given` allows it.
    pub fn within(self, updates: Option<u64>, given: (Option<u64>, Option<u64>)) -> Self {
        let Some(updates) = updates else { return self };
        let burn_in = given.0.unwrap_or(self.burn_in.min(updates / 2));
        let thin = given.1.unwrap_or(self.thin.min(updates.saturating_sub(burn_in).max(1)));
        Self { burn_in, thin, updates }
    }
}

/// The number of draws, a relaxation time apart, for a wanted effective sample size.
pub fn draws_of(ess: f64, knows_only_scale: bool) -> f64 {
    ess * if knows_only_scale { ROUGH_DRAWS_PER_EFFECTIVE } else { DRAWS_PER_EFFECTIVE }
}

/// The lengths of `chains` chains for this many draws in all, a relaxation time apart, where those in `given` replace what would be found.
pub fn lengths(relaxation: f64, draws: f64, chains: u32, given: (Option<u64>, Option<u64>)) -> Lengths {
    // Far below 2^53, as steps are at least some 1e-9 and ess is at most 1e9.
    let thin = given.1.unwrap_or_else(|| relaxation.ceil() as u64);
    let apart = thin.max(1);
    let burn_in = given.0.unwrap_or_else(|| (BURN_IN * relaxation).ceil() as u64);
    // Draws that are closer than a relaxation time count less.
    let spacing = (apart as f64 / relaxation).min(1.0);
    let draws = (draws / (spacing * f64::from(chains.max(1)))).ceil() as u64;
    Lengths { burn_in, thin, updates: burn_in.saturating_add(draws.max(1).saturating_mul(apart)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(minibatches: &[f64], shards: &[f64]) -> Measurement {
        Measurement {
            minibatches: minibatches.to_vec(),
            shards: shards.to_vec(),
            curvature: 1.0,
            rows: 10.0,
            knows_only_scale: false,
            shortened: 1.0,
        }
    }

    #[test]
    fn steps_keep_the_stationary_variance_below_the_excess() {
        for largest in [0.0, 0.4, 3.0, 1e4] {
            let LangevinSteps { step, supplied, relaxation, .. } = langevin_steps(&noise(&[largest, 0.0], &[0.0, 0.0]), 10, 1.0);
            // The variance V solves V = (1 − h/2)² V + h²/4 v + h (1 − supplied).
            let variance = |v: f64| (step * (1.0 - supplied) + 0.25 * step * step * v) / (step - 0.25 * step * step);
            assert!((variance(0.5 * largest) - 1.0).abs() < 1e-12, "{largest}");
            assert!(variance(largest) < 1.0 + EXCESS && variance(0.0) > 1.0 - EXCESS, "{largest}");
            assert!((relaxation * step - 2.0).abs() < 1e-12 && step <= MAX_STEP);
            // Control: twice the step would widen a parameter too much.
            if step < MAX_STEP {
                assert!(0.5 * step * (1.0 + largest) > EXCESS);
            }
        }
        // Seven updates at a shard count thirteen times, and are not left out of the noise that is added.
        let at_shards = langevin_steps(&noise(&[0.0], &[1.0]), 10, 7.0);
        assert_eq!(at_shards.step, 4.0 * EXCESS / 14.0);
        assert_eq!(at_shards.supplied, 0.25 * at_shards.step);
    }

    #[test]
    fn the_middle_scheme_has_the_known_excess() {
        // The friction is 1.5: a Lyapunov equation solved elsewhere.
        for (step, excess) in [(0.1, 0.033480), (0.5, 0.186034)] {
            assert!(
                (excess_of_middle_scheme(step, FRICTION) - excess).abs() < 1e-6,
                "{step}: {}",
                excess_of_middle_scheme(step, FRICTION)
            );
        }
        assert_eq!(hamiltonian_steps(&noise(&[0.1], &[0.0]), 10, None, 0.0).step, MAX_STEP);
        for largest in [1.0, 10.0, 1e4] {
            let HamiltonianSteps { step, gradient_noise, .. } =
                hamiltonian_steps(&noise(&[largest, 0.0], &[0.0, 0.0]), 10, None, 0.0);
            assert!((largest * excess_of_middle_scheme(step, FRICTION) - EXCESS).abs() < 1e-9, "{largest}");
            assert!((gradient_noise - 0.25 * step * largest).abs() < 1e-12);
        }
    }

    #[test]
    fn delays_shorten_steps_and_replace_noise() {
        let found = |delay| hamiltonian_steps(&noise(&[0.0], &[0.0]), 10, None, delay);
        assert_eq!((found(0.0).step, found(0.0).gradient_noise), (MAX_STEP, 0.0));
        let late = found(3.0);
        assert!((late.step - 0.1 * FRICTION / 3.0).abs() < 1e-12 && (late.gradient_noise - 0.1 * FRICTION).abs() < 1e-12);
    }

    #[test]
    fn curvatures_shorten_steps() {
        let curved = Measurement { curvature: 16.0, ..noise(&[0.0], &[0.0]) };
        assert_eq!(langevin_steps(&curved, 10, 1.0).step, 4.0 * EXCESS / 16.0);
        assert_eq!(hamiltonian_steps(&curved, 10, None, 0.0).step, MAX_STEP / 4.0);
    }

    #[test]
    fn where_only_scales_are_known_steps_are_made_for_the_steepest_direction_unless_runs_would_be_endless() {
        let rough = |rows: f64| Measurement { rows, curvature: 100.0, knows_only_scale: true, ..noise(&[rows / 100.0], &[0.0]) };
        let small = rough(1000.0);
        let steps = hamiltonian_steps(&small, 100, None, 0.0);
        let excess = small.excess((steps.batch, 100), 1.0, steps.step, Some(FRICTION));
        // All rows have no noise, and the step is that of the curvature.
        assert_eq!((steps.batch, steps.step, excess), (1000, MAX_ROUGH_STEP / 10.0, 0.0));
        let large = rough(1e7);
        let steps = hamiltonian_steps(&large, 100, None, 0.0);
        let excess = large.excess((steps.batch, 100), 1.0, steps.step, Some(FRICTION));
        let rows = steps.batch as f64 * steps.relaxation / ROUGH_RELAXATION;
        assert!(excess > EXCESS && rows < 1.01 * ROUGH_PASSES * large.rows, "{excess} {rows}");
        // The variance of N times the mean of n of N rows is N/n − 1 in these units, times the largest curvature.
        let expected = 100.0 * (large.rows / steps.batch as f64 - 1.0) * excess_of_middle_scheme(steps.step, FRICTION);
        assert!((excess / expected - 1.0).abs() < 1e-4, "{excess} {expected}");
        let steps = langevin_steps(&large, 100, 1.0);
        assert!(large.excess((steps.batch, 100), 1.0, steps.step, None) > EXCESS);
        assert!((steps.batch as f64 * steps.relaxation / ROUGH_RELAXATION) < 1.01 * ROUGH_PASSES * large.rows);
        // A fourteenth of the draws, five times as far apart.
        assert_eq!([large.draws(1000.0), noise(&[], &[]).draws(1000.0)], [250.0, 3500.0]);
    }

    #[test]
    fn steps_with_which_points_diverged_are_shortened_and_the_excess_is_that_of_the_shorter_step() {
        let found = |shortened| {
            let measured =
                Measurement { curvature: 100.0, knows_only_scale: true, shortened, rows: 1e5, ..noise(&[1e3], &[0.0]) };
            let (sghmc, sgld) = (hamiltonian_steps(&measured, 100, None, 0.0), langevin_steps(&measured, 100, 1.0));
            (sghmc, sgld, measured.excess((sghmc.batch, 100), 1.0, sghmc.step, Some(FRICTION)))
        };
        let (whole, half) = (found(1.0), found(0.5));
        assert_eq!((half.0.step, half.1.step), (0.5 * whole.0.step, 0.25 * whole.1.step));
        assert!(half.0.relaxation > 1.9 * whole.0.relaxation && half.2 < 0.6 * whole.2, "{half:?} {whole:?}");
    }

    #[test]
    fn minibatches_grow_where_their_noise_is_large() {
        let batch = |variance: f64, rows: f64| Measurement { rows, ..noise(&[variance], &[0.0]) }.cheapest_batch(100, 1.0);
        assert_eq!(batch(0.3, 1e6), 100);
        // The cost (n + 100)(1 + v/n) is least at n = √(100 v), where v = 100 · 16.
        assert_eq!(batch(16.0, 1e6), 400);
        assert_eq!(batch(1e6, 2000.0), 2000);
        assert_eq!(batch(1e6, 50.0), 100);
        // Control: without the cost of an update, small minibatches would be as good.
        let (large, small) = (Measurement { rows: 1e6, ..noise(&[16.0], &[0.0]) }, (400.0, 100.0));
        let cost = |size: usize| size as f64 * (1.0 + large.largest_and_mean_noise((size, 100), 1.0).0);
        assert!(cost(small.1 as usize) < cost(small.0 as usize));
    }

    #[test]
    fn lengths_follow_the_relaxation_time() {
        assert_eq!(lengths(6.9, 2500.0, 4, (None, None)), Lengths { burn_in: 69, thin: 7, updates: 69 + 625 * 7 });
        assert_eq!(lengths(10.0, 250.0, 1, (Some(3), Some(5))), Lengths { burn_in: 3, thin: 5, updates: 3 + 500 * 5 });
        assert_eq!(lengths(2.0, 250.0, 1, (None, Some(0))).thin, 0);
        assert_eq!(lengths(4.0, 250.0, 1, (None, Some(40))), Lengths { burn_in: 40, thin: 40, updates: 40 + 250 * 40 });
        // A run of given length has draws, whatever was found.
        let found = Lengths { burn_in: 69, thin: 7, updates: 4444 };
        let within = |updates, given| found.within(updates, given);
        assert_eq!(within(None, (None, None)), found);
        assert_eq!(within(Some(1000), (None, None)), Lengths { burn_in: 69, thin: 7, updates: 1000 });
        assert_eq!(within(Some(100), (None, None)), Lengths { burn_in: 50, thin: 7, updates: 100 });
        assert_eq!(within(Some(10), (None, None)), Lengths { burn_in: 5, thin: 5, updates: 10 });
        assert_eq!(within(Some(10), (Some(3), Some(2))), Lengths { burn_in: 3, thin: 2, updates: 10 });
    }
}
