//! Assignments that give agents rows of some classes more than of others.

use super::assignment::{RandomChoice, ShardAssignment};
use crate::random::{Purpose, Seed, Stream, Who};
use rand::RngExt;
use rand_distr::{Distribution, Gamma};

/// Divides `total` rows among agents in proportion to weights, by the method of largest remainders. Of agents with equal remainders, those
/// with the fewest rows so far come first, then those with the lowest numbers. No weight is negative, and at least one is positive.
pub(super) fn apportion(total: usize, weights: &[f64], rows_so_far: &[usize]) -> Vec<usize> {
    // Relative to the largest weight, so that the sum is finite.
    let largest = weights.iter().copied().fold(0.0, f64::max);
    let sum: f64 = weights.iter().map(|weight| weight / largest).sum();
    let quotas: Vec<f64> = weights.iter().map(|weight| total as f64 * (weight / largest / sum)).collect();
    let mut counts: Vec<usize> = quotas.iter().map(|quota| quota.floor() as usize).collect();
    let remaining = total.saturating_sub(counts.iter().sum());
    let mut agents: Vec<usize> = (0..weights.len()).collect();
    agents.sort_by(|&a, &b| {
        quotas[b].fract().total_cmp(&quotas[a].fract()).then(rows_so_far[a].cmp(&rows_so_far[b])).then(a.cmp(&b))
    });
    agents.into_iter().take(remaining).for_each(|agent| counts[agent] += 1);
    counts
}

/// Divides the rows of each class, which are in random order, among agents in proportion to `weight(class, agent)`.
pub(super) fn by_weights(rows_of_class: Vec<Vec<usize>>, agents: usize, weight: impl Fn(usize, usize) -> f64) -> ShardAssignment {
    let mut shards = vec![Vec::new(); agents];
    for (class, rows) in rows_of_class.into_iter().enumerate() {
        let weights: Vec<f64> = (0..agents).map(|agent| weight(class, agent)).collect();
        let rows_so_far: Vec<usize> = shards.iter().map(Vec::len).collect();
        let counts = apportion(rows.len(), &weights, &rows_so_far);
        let mut rows = rows.into_iter();
        for (shard, count) in shards.iter_mut().zip(counts) {
            shard.extend(rows.by_ref().take(count));
        }
    }
    ShardAssignment::from_shards(shards)
}

/// The logarithms of a draw from a Dirichlet distribution, up to a common constant, because a component may be far below the smallest
/// double. A shape of 0 gives a component of 0. A gamma draw of shape a < 1 is one of shape a + 1 times U^(1/a) (Marsaglia & Tsang 2000).
pub(super) fn log_dirichlet(shapes: &[f64], stream: &mut Stream) -> Vec<f64> {
    let log_gamma = |&shape: &f64| match Gamma::new(shape + 1.0, 1.0) {
        Ok(gamma) if shape > 0.0 => {
            let draw: f64 = gamma.sample(stream);
            draw.ln() + (1.0 - stream.random::<f64>()).ln() / shape
        }
        _ => f64::NEG_INFINITY,
    };
    shapes.iter().map(log_gamma).collect()
}

/// Agents take rows in turn. Each draws the class of its next row from its own proportions, which come from a Dirichlet distribution.
pub(super) fn by_dirichlet(mut rows_of_class: Vec<Vec<usize>>, concentration: f64, agents: usize, seed: Seed) -> ShardAssignment {
    let rows: usize = rows_of_class.iter().map(Vec::len).sum();
    let shapes: Vec<f64> = rows_of_class.iter().map(|of_class| concentration * of_class.len() as f64 / rows as f64).collect();
    let stream = |agent| seed.stream(Who::Agent(agent), RandomChoice::ClassProportions as u64, Purpose::Partition);
    let log_proportions: Vec<Vec<f64>> = (0_u32..).take(agents).map(|agent| log_dirichlet(&shapes, &mut stream(agent))).collect();
    // Of the classes that still have rows, relative to the largest.
    let proportions = |rows_of_class: &[Vec<usize>]| -> Vec<Vec<f64>> {
        let has_rows = |class: &usize| !rows_of_class[*class].is_empty();
        let of_agent = |logs: &Vec<f64>| {
            let largest = (0..logs.len()).filter(has_rows).map(|class| logs[class]).fold(f64::NEG_INFINITY, f64::max);
            (0..logs.len()).map(|class| if has_rows(&class) { (logs[class] - largest).exp() } else { 0.0 }).collect()
        };
        log_proportions.iter().map(of_agent).collect()
    };
    let mut stream = RandomChoice::NextClass.stream(seed);
    let mut weights = proportions(&rows_of_class);
    let mut shards = vec![Vec::new(); agents];
    for turn in 0..rows {
        let agent = turn % agents;
        let mut left = stream.random::<f64>() * weights[agent].iter().sum::<f64>();
        let mut chosen = None;
        for (class, &weight) in weights[agent].iter().enumerate().filter(|(_, weight)| **weight > 0.0) {
            // Because of rounding, something may be left after the last class.
            chosen = Some(class);
            if left < weight {
                break;
            }
            left -= weight;
        }
        let Some(class) = chosen else { break };
        if let Some(row) = rows_of_class[class].pop() {
            shards[agent].push(row);
        }
        if rows_of_class[class].is_empty() && turn + 1 < rows {
            weights = proportions(&rows_of_class);
        }
    }
    ShardAssignment::from_shards(shards)
}
