//! Tests of partitions: every row belongs to one agent, and the shards of a seed never change.

#![allow(clippy::unwrap_used)]

use super::assignment::RandomChoice;
use super::by_class::log_dirichlet;
use super::*;
use crate::random::{Purpose, Who};

#[test]
fn every_row_belongs_to_one_agent_and_sizes_differ_by_one_at_most() {
    for (rows, agents) in [(1, 1), (10, 3), (103, 20), (7, 7)] {
        let assignment = ShardAssignment::equal(Split::Train, rows, agents, Seed(5)).unwrap();
        let shards: Vec<_> = (0..agents).map(|agent| assignment.rows(agent)).collect();
        assert!(shards.iter().all(|shard| shard.is_sorted() && (rows / agents..=rows.div_ceil(agents)).contains(&shard.len())));
        let mut all = shards.concat();
        all.sort_unstable();
        assert_eq!(all, (0..rows).collect::<Vec<_>>());
        assert!(assignment.rows(agents).is_empty());
    }
}

#[test]
fn the_seed_alone_decides() {
    let assignment = |seed| ShardAssignment::equal(Split::Train, 1000, 4, Seed(seed)).unwrap();
    assert_eq!(assignment(1), assignment(1));
    assert_ne!(assignment(1), assignment(2));
}

/// A change of this changes the shards, and with them the results, of every seed.
#[test]
fn the_assignment_of_a_seed_is_pinned() {
    let assignment = |split| ShardAssignment::equal(split, 12, 3, Seed(42)).unwrap();
    let shards = |assignment: ShardAssignment| [0, 1, 2].map(|agent| assignment.rows(agent));
    assert_eq!(shards(assignment(Split::Train)), [[4, 9, 10, 11], [0, 3, 5, 8], [1, 2, 6, 7]]);
    assert_eq!(shards(assignment(Split::Test)), [[3, 7, 8, 10], [1, 2, 6, 11], [0, 4, 5, 9]]);
}

/// Positions of the same row in two independent orders of 1000 have a correlation of standard deviation 1/√999: 4.5 of them are
/// exceeded with probability 7e-6.
#[test]
fn splits_are_assigned_independently() {
    let order = |choice: RandomChoice| choice.stream(Seed(7)).permutation(1000);
    let correlation = |a: &[usize], b: &[usize]| {
        let sum: f64 = a.iter().zip(b).map(|(&a, &b)| (a as f64 - 499.5) * (b as f64 - 499.5)).sum();
        sum / (1000.0 * (1000.0_f64.powi(2) - 1.0) / 12.0)
    };
    let orders = [RandomChoice::TrainingRows, RandomChoice::HeldOutRows, RandomChoice::TestRows].map(order);
    for (one, other) in [(0, 1), (0, 2), (1, 2)] {
        let correlation = correlation(&orders[one], &orders[other]);
        assert!(correlation.abs() < 4.5 / 999.0_f64.sqrt(), "{one} {other}: {correlation}");
    }
    // The control: the assignment of the training rows uses exactly this order.
    let assignment = |split| ShardAssignment::equal(split, 1000, 1000, Seed(7)).unwrap();
    let first_rows = |split| (0..1000).map(|agent| assignment(split).rows(agent)[0]).collect::<Vec<_>>();
    assert!(first_rows(Split::Train) == orders[0] && first_rows(Split::Test) == orders[2]);
    assert!((correlation(&orders[0], &orders[0]) - 1.0).abs() < 1e-12);
}

#[test]
fn shards_are_random_samples() {
    // The mean of 500 of the row numbers 0..1000 without replacement has standard deviation 288.7/√500·√½ = 9.1: five of
    // them.
    let shard = ShardAssignment::equal(Split::Train, 1000, 2, Seed(3)).unwrap().rows(0);
    let mean = shard.iter().sum::<usize>() as f64 / 500.0;
    assert!((mean - 499.5).abs() < 46.0, "{mean}");
    // The control: the first half in order would fail.
    assert!((249.5_f64 - 499.5).abs() > 46.0);
}

#[test]
fn more_agents_than_training_rows_is_an_error() {
    let message = ShardAssignment::equal(Split::Train, 3, 4, Seed(0)).unwrap_err().to_string();
    assert!(message.contains("3 training rows") && message.contains("at most 3 agents"), "{message}");
    assert!(ShardAssignment::equal(Split::Test, 3, 0, Seed(0)).is_err());
    let test = ShardAssignment::equal(Split::Test, 3, 4, Seed(0)).unwrap();
    assert_eq!((0..4).map(|agent| test.rows(agent).len()).collect::<Vec<_>>(), [1, 1, 1, 0]);
}

/// Rows of these classes, in an order that mixes them.
fn classes(counts: &[u32]) -> (Targets, Vec<String>) {
    let mut labels: Vec<u32> = (0..).zip(counts).flat_map(|(class, &count)| (0..count).map(move |_| class)).collect();
    let order = Seed(99).stream(Who::Run, 0, Purpose::Synthetic).permutation(labels.len());
    labels = order.into_iter().map(|row| labels[row]).collect();
    (Targets::Classes(labels), (0..counts.len()).map(|class| class.to_string()).collect())
}

/// How many rows of each class each agent has; every row must belong to exactly one.
fn table(partition: &Partition, data: &(Targets, Vec<String>), agents: usize, seed: u64) -> Result<Vec<Vec<usize>>> {
    let assignment = partition.by_targets(&data.0, &data.1, agents, Seed(seed))?;
    let Targets::Classes(labels) = &data.0 else { panic!("classes are asked for") };
    let mut all = Vec::new();
    let mut table = vec![vec![0; data.1.len()]; agents];
    for (agent, counts) in table.iter_mut().enumerate() {
        let rows = assignment.rows(agent);
        assert!(rows.is_sorted() && rows.len() == assignment.count(agent));
        rows.iter().for_each(|&row| counts[labels[row] as usize] += 1);
        all.extend(rows);
    }
    all.sort_unstable();
    assert_eq!(all, (0..labels.len()).collect::<Vec<_>>());
    Ok(table)
}

fn typed(text: &str) -> Partition {
    let mut table: toml::Table = format!("partition = {text}").parse().unwrap();
    let partition: Partition = table.remove("partition").unwrap().try_into().unwrap();
    // What is written out is what is read back.
    let written = toml::to_string(&std::collections::BTreeMap::from([("partition", &partition)])).unwrap();
    let mut back: toml::Table = written.parse().unwrap();
    assert_eq!(back.remove("partition").unwrap().try_into::<Partition>().unwrap(), partition);
    partition
}

fn sums(table: &[Vec<usize>]) -> Vec<usize> {
    table.iter().map(|counts| counts.iter().sum()).collect()
}

#[test]
fn sizes_are_rounded_so_that_they_add_up() {
    let data = classes(&[60, 43]);
    for (sizes, exact) in [
        ("{ sizes = [0.5, 0.3, 0.2] }", [51, 31, 21]),
        ("{ sizes = [5, 3, 2] }", [51, 31, 21]),
        ("{ sizes = [1e308, 1e308, 1e308] }", [35, 34, 34]),
        ("{ sizes = [100, 1, 1] }", [101, 1, 1]),
    ] {
        assert_eq!(sums(&table(&typed(sizes), &data, 3, 1).unwrap()), exact, "{sizes}");
    }
    // Equal weights are the equal partition.
    let same = typed("{ sizes = [7, 7, 7] }").by_targets(&data.0, &data.1, 3, Seed(1)).unwrap();
    assert_eq!(same, ShardAssignment::equal(Split::Train, 103, 3, Seed(1)).unwrap());
}

#[test]
fn rows_by_label_come_in_contiguous_blocks() {
    let data = classes(&[30, 10, 20]);
    let table = table(&typed("\"by_label\""), &data, 4, 1).unwrap();
    assert_eq!(table, [[15, 0, 0], [15, 0, 0], [0, 10, 5], [0, 0, 15]]);
    let numbers = Targets::Numbers(vec![3.0, -1.0, 7.0, 0.5, -2.0]);
    let assignment = Partition::ByLabel.by_targets(&numbers, &[], 2, Seed(1)).unwrap();
    assert_eq!([assignment.rows(0), assignment.rows(1)], [vec![1, 3, 4], vec![0, 2]]);
}

#[test]
fn listed_labels_are_shared_by_those_who_list_them() {
    let data = classes(&[10, 21, 30]);
    let lists = typed("{ labels = [[0, 1], [\"1\", 2.0], [2], [2]] }");
    let exact = vec![vec![10, 11, 0], vec![0, 10, 10], vec![0, 0, 10], vec![0, 0, 10]];
    // The odd row of class 1 goes to the one with the fewest rows so far: not to the first.
    let exact = exact.into_iter().zip([10, 11, 0, 0]).map(|(mut counts, of_1)| {
        counts[1] = of_1;
        counts
    });
    assert_eq!(table(&lists, &data, 4, 1).unwrap(), exact.collect::<Vec<_>>());
    let named = (data.0.clone(), vec!["shirt".into(), "coat".into(), "1.50".into()]);
    let lists = typed("{ labels = [[\"shirt\"], [\"coat\", 1.5]] }");
    assert_eq!(table(&lists, &named, 2, 1).unwrap(), [[10, 0, 0], [0, 21, 30]]);
    // Which rows of a class is random: by the seed.
    let rows = |seed| lists.by_targets(&data.0, &named.1, 2, Seed(seed)).unwrap().rows(0);
    assert_eq!(rows(1), rows(2), "an only owner has them all");
    let lists = typed("{ labels = [[0, 1, 2], [2, 1, 0]] }");
    let rows = |seed| lists.by_targets(&data.0, &data.1, 2, Seed(seed)).unwrap().rows(0);
    assert!(rows(1) == rows(1) && rows(1) != rows(2));
}

#[test]
fn a_share_of_a_label_stays_with_its_own_agents() {
    // The 40/10 split of two classes over four agents.
    let table = |share: &str, counts: &[u32], agents| {
        table(&typed(&format!("{{ label_share = {share} }}")), &classes(counts), agents, 1).unwrap()
    };
    assert_eq!(table("0.8", &[100, 100], 4), [[40, 10], [40, 10], [10, 40], [10, 40]]);
    assert_eq!(table("1", &[100, 50], 4), [[50, 0], [50, 0], [0, 25], [0, 25]]);
    assert_eq!(table("0.5", &[100, 60], 4), [[25, 15], [25, 15], [25, 15], [25, 15]]);
    // More classes than agents: neighbors belong to one agent.
    assert_eq!(table("0.9", &[10, 20, 30, 40], 2), [[9, 18, 3, 4], [1, 2, 27, 36]]);
    assert_eq!(table("0.2", &[10, 20], 1), [[10, 20]]);
}

#[test]
fn dirichlet_mixes_have_equal_sizes_and_are_pinned() {
    let data = classes(&[50, 30, 23]);
    let of = |concentration: &str, seed| table(&typed(&format!("{{ dirichlet = {concentration} }}")), &data, 4, seed).unwrap();
    assert_eq!(sums(&of("0.5", 1)), [26, 26, 26, 25]);
    assert!(of("0.5", 1) == of("0.5", 1) && of("0.5", 1) != of("0.5", 2));
    // A huge concentration: everybody wants the mix of all rows. Counts of 26 rows from it vary by √(26 p (1 − p)) < 2.6.
    for counts in of("1e9", 1) {
        for (count, all) in counts.iter().zip([50.0, 30.0, 23.0]) {
            assert!((*count as f64 - all / 4.0).abs() < 4.5 * 2.6, "{counts:?}");
        }
    }
    // A tiny one, with shares far below the least double: agents 0 and 2 want class 0 alone, and after 25 turns it is used up; 1 and 3
    // want class 2, 23 rows of it, and then take class 1.
    assert_eq!(of("1e-6", 1), [[25, 1, 0], [0, 14, 12], [25, 1, 0], [0, 14, 11]]);
}

/// A Dirichlet share with mean p and concentration α has variance p (1 − p)/(α + 1).
#[test]
fn dirichlet_shares_have_their_moments() {
    const DRAWS: u64 = 40_000;
    for concentration in [0.05, 0.5, 5.0] {
        let mean = [0.5, 0.3, 0.2];
        let shapes = mean.map(|p| p * concentration);
        let (mut sum, mut squares, mut fourth) = ([0.0; 3], [0.0; 3], [0.0; 3]);
        for draw in 0..DRAWS {
            let logs = log_dirichlet(&shapes, &mut Seed(4).stream(Who::Run, draw, Purpose::Partition));
            let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let total: f64 = logs.iter().map(|log| (log - largest).exp()).sum();
            for (k, log) in logs.iter().enumerate() {
                let off = (log - largest).exp() / total - mean[k];
                sum[k] += off;
                squares[k] += off * off;
                fourth[k] += off.powi(4);
            }
        }
        let draws = DRAWS as f64;
        for k in 0..3 {
            let variance = mean[k] * (1.0 - mean[k]) / (concentration + 1.0);
            let off = sum[k] / draws;
            assert!(off.abs() < 4.5 * (variance / draws).sqrt(), "{concentration} {k}: mean off by {off}");
            // The standard error of the mean square from its own fourth moment.
            let found = squares[k] / draws;
            let error = ((fourth[k] / draws - found * found) / draws).sqrt();
            assert!((found - variance).abs() < 4.5 * error, "{concentration} {k}: variance {found}, not {variance}");
            // The control: the variance of another concentration is not that.
            let other = mean[k] * (1.0 - mean[k]) / (1.1 * concentration + 1.1);
            assert!((found - other).abs() > 4.5 * error);
        }
    }
}

#[test]
fn partitions_that_cannot_be_are_refused() {
    let data = classes(&[10, 20, 1]);
    for (partition, agents, says) in [
        ("{ sizes = [0.5, 0.5] }", 3, "has 2 sizes for 3 agents"),
        ("{ sizes = [1, 0] }", 2, "a size of 0"),
        ("{ sizes = [1, inf] }", 2, "a size of inf"),
        ("{ sizes = [1000, 1] }", 2, "leaves agent 1 none of the 31 training rows"),
        ("{ labels = [[0, 1, 2]] }", 2, "has 1 lists of labels for 2 agents"),
        ("{ labels = [[0, 1], [7]] }", 2, "lists the class 7, which the data do not have. The classes are 0, 1, 2"),
        ("{ labels = [[0, 1, 0], [2]] }", 2, "lists the class \"0\" twice for agent 0"),
        ("{ labels = [[0], [1]] }", 2, "gives the class \"2\" to no agent"),
        ("{ labels = [[0, 1, 2], []] }", 2, "leaves agent 1 none of the 31"),
        ("{ label_share = 1.5 }", 2, "label_share must be between 0 and 1, not 1.5"),
        ("{ label_share = 1 }", 6, "leaves agent 5 none of the 31"),
        ("{ dirichlet = 0 }", 2, "dirichlet must be between 1e-6 and 1e9, not 0"),
        ("{ dirichlet = 1 }", 32, "31 training rows cannot be split among 32 agents: take at most 31"),
    ] {
        let message = table(&typed(partition), &data, agents, 1).unwrap_err().to_string();
        assert!(message.contains(says), "{partition}: {message}");
    }
    for (sizes, documents, agents, says) in [
        (None, 3, 4, "leaves agent 3 none of the 3 training documents. Take at most 3 agents"),
        (Some([1000.0, 1.0].as_slice()), 5, 2, "leaves agent 1 none of the 5 training documents. Give less uneven sizes"),
    ] {
        let message = document_ranges(sizes, documents, agents).unwrap_err().to_string();
        assert!(message.contains(says), "{message}");
    }
    let numbers = Targets::Numbers(vec![1.0, 2.0, 3.0]);
    for partition in ["{ label_share = 0.8 }", "{ dirichlet = 1 }"] {
        let message = typed(partition).by_targets(&numbers, &[], 2, Seed(1)).unwrap_err().to_string();
        assert!(message.contains("targets are numbers"), "{message}");
    }
}
