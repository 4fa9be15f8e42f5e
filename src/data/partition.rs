//! Which agent owns which rows of a split: the same for any number of ranks.

use crate::data::dataset::layout::Split;
use crate::data::dataset::read::Dataset;
use crate::data::dataset::targets::Targets;
use crate::data::error::{DataError, Result};
use crate::random::{Purpose, Seed, Stream, Who};
use rand::RngExt;
use rand_distr::{Distribution, Gamma};
use std::ops::Range;

/// What is decided by random numbers for [`Purpose::Partition`]: each has its own, as two shuffles by the same ones are not
/// independent. The discriminants are their step: part of the promise that a seed gives the same bits.
#[derive(Clone, Copy)]
#[repr(u64)]
pub(crate) enum Draw {
    /// Which agent owns which training rows.
    Train = 0,
    /// Which rows an import puts aside for testing.
    Hold = 1,
    /// Which agent judges which test rows.
    Test = 2,
    /// Which agent wants how much of which class, agent by agent.
    Mix = 3,
    /// Which row comes next to an agent that wants a mix of classes.
    Fill = 4,
}

impl Draw {
    /// Its random numbers.
    pub(crate) fn stream(self, seed: Seed) -> Stream {
        seed.stream(Who::Run, self as u64, Purpose::Partition)
    }
}

/// How the training rows are assigned to agents. The seed alone decides which agent gets which rows.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Partition {
    /// Random shards whose sizes differ by at most one.
    #[default]
    Equal,
    /// Random shards of these relative sizes, one per agent.
    Sizes(Vec<f64>),
    /// The rows in the order of their labels, cut into equal blocks: the pathological split of federated learning (McMahan et al. 2017,
    /// arXiv 1602.05629). Targets of a regression are sorted as numbers.
    ByLabel,
    /// The classes of each agent: the rows of a class are shared equally, at random, by the agents that list it.
    Labels(Vec<Vec<Label>>),
    /// Each agent has classes of its own, or shares one with its neighbours: this share of the rows of a class goes to its own agents, the
    /// rest to all others, equally and at random. With four agents and two classes 0.8 is the 40/10 split of Kassab & Simeone
    /// (arXiv 2009.06419, Fig. 5); 1 lets nobody see another class than its own.
    LabelShare(f64),
    /// Each agent wants a mix of classes from a Dirichlet distribution around that of all rows, with this concentration: below 1 mostly one
    /// class each, many for the mix of all rows (Hsu, Qi & Brown 2019, arXiv 1909.06335). Sizes differ by at most one; agents take
    /// rows in turn, and of what is left where a class is used up.
    Dirichlet(f64),
}

/// A class as it is typed: its label, with or without quotes if that is a number.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(untagged)]
pub enum Label {
    /// `3`
    Whole(i64),
    /// `0.5`
    Number(f64),
    /// `"shirt"`
    Text(String),
}

impl Label {
    fn is(&self, class: &str) -> bool {
        let number = || class.parse::<f64>().ok();
        match self {
            // Whole numbers beyond 2^53 are no labels that anybody tells apart.
            Self::Whole(label) => label.to_string() == class || number() == Some(*label as f64),
            Self::Number(label) => number() == Some(*label),
            Self::Text(label) => label == class,
        }
    }
}

impl std::fmt::Display for Label {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Whole(label) => write!(f, "{label}"),
            Self::Number(label) => write!(f, "{label}"),
            Self::Text(label) => write!(f, "{label:?}"),
        }
    }
}

/// Which rows each agent owns: every row belongs to exactly one agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardAssignment {
    order: Vec<usize>,
    /// Agent k has the places `starts[k]..starts[k + 1]` of the order.
    starts: Vec<usize>,
}

impl Partition {
    /// Assigns the training rows of a dataset to `agents` agents.
    ///
    /// # Errors
    /// When there are no agents, or one would get no rows; when the partition does not suit the number of agents or the classes; when
    /// the labels cannot be read.
    pub fn assign(&self, dataset: &Dataset, agents: usize, seed: Seed) -> Result<ShardAssignment> {
        match self {
            Self::Equal => ShardAssignment::equal(Split::Train, dataset.rows(Split::Train), agents, seed),
            _ => self.assign_by_target(&dataset.targets(Split::Train)?, dataset.classes(), agents, seed),
        }
    }

    /// Assigns documents, which are stored in random order, to agents as contiguous ranges.
    ///
    /// # Errors
    /// When this is a partition by labels, which documents have not, or an agent would get none.
    pub fn stretches(&self, documents: usize, agents: usize) -> Result<Vec<Range<usize>>> {
        let counts = match self {
            Self::Equal => counts(&vec![1.0; agents], documents, agents)?,
            Self::Sizes(sizes) => counts(sizes, documents, agents)?,
            _ => return Err(wrong("documents have no labels: choose \"equal\" or { sizes = [...] }".into())),
        };
        if counts.contains(&0) {
            let what = format!("{documents} training documents cannot be assigned to {agents} agents: take fewer agents");
            return Err(DataError::Request(what));
        }
        let mut from = 0;
        let stretch = |count: &usize| {
            from += count;
            from - count..from
        };
        Ok(counts.iter().map(stretch).collect())
    }

    fn assign_by_target(&self, targets: &Targets, classes: &[String], agents: usize, seed: Seed) -> Result<ShardAssignment> {
        let rows = targets.len();
        // Also says when there are too few rows whatever the partition.
        let equal = ShardAssignment::equal(Split::Train, rows, agents, seed)?;
        let members = || match targets {
            Targets::Classes(labels) => {
                let mut members = vec![Vec::new(); classes.len()];
                equal.order.iter().for_each(|&row| members[labels[row] as usize].push(row));
                Ok(members)
            }
            Targets::Numbers(_) => Err(wrong(
                "this one needs classes, and the targets are numbers: choose \"equal\", { sizes = [...] } or \"by_label\"".into(),
            )),
        };
        let assignment = match self {
            Self::Equal => equal,
            Self::Sizes(sizes) => ShardAssignment::cut(equal.order, counts(sizes, rows, agents)?),
            Self::ByLabel => {
                let mut order: Vec<usize> = (0..rows).collect();
                match targets {
                    Targets::Classes(labels) => order.sort_by_key(|&row| labels[row]),
                    Targets::Numbers(numbers) => order.sort_by(|&a, &b| numbers[a].total_cmp(&numbers[b])),
                }
                ShardAssignment { order, starts: equal.starts }
            }
            Self::Labels(lists) => {
                if lists.len() != agents {
                    return Err(wrong(format!("{} lists of labels for {agents} agents: give one for each", lists.len())));
                }
                let known = || classes.join(", ");
                if let Some(label) = lists.iter().flatten().find(|label| !classes.iter().any(|class| label.is(class))) {
                    return Err(wrong(format!("there is no class {label}; there are: {}", known())));
                }
                let lists = |class: &String, agent: usize| lists[agent].iter().any(|label| label.is(class));
                if let Some(class) = classes.iter().find(|class| !(0..agents).any(|agent| lists(class, agent))) {
                    return Err(wrong(format!(
                        "no agent lists the class {class:?}: every class needs at least one; there are: {}",
                        known()
                    )));
                }
                share_out(members()?, agents, |class, agent| f64::from(u8::from(lists(&classes[class], agent))))
            }
            Self::LabelShare(share) => {
                if !(0.0..=1.0).contains(share) {
                    return Err(wrong(format!("a label_share of {share} is not between 0 and 1")));
                }
                let members = members()?;
                let count = members.len();
                let own = |class: usize, agent: usize| {
                    if agents >= count { agent * count / agents == class } else { class * agents / count == agent }
                };
                share_out(members, agents, |class, agent| {
                    let owners = (0..agents).filter(|&agent| own(class, agent)).count();
                    match (own(class, agent), agents - owners) {
                        (_, 0) => 1.0,
                        (true, _) => share / owners as f64,
                        (false, others) => (1.0 - share) / others as f64,
                    }
                })
            }
            Self::Dirichlet(concentration) => {
                if !(1e-6..=1e9).contains(concentration) {
                    return Err(wrong(format!("a dirichlet concentration of {concentration} is not between 1e-6 and 1e9")));
                }
                by_mixes(members()?, *concentration, agents, seed)
            }
        };
        match (0..agents).find(|&agent| assignment.count(agent) == 0) {
            Some(agent) => Err(wrong(format!(
                "agent {agent} of 0 to {} would get none of the {rows} training rows: take fewer agents, or another partition",
                agents - 1
            ))),
            None => Ok(assignment),
        }
    }
}

fn wrong(what: String) -> DataError {
    DataError::Request(format!("[data] partition: {what}"))
}

/// How many of `rows` each agent gets, by these relative sizes.
fn counts(sizes: &[f64], rows: usize, agents: usize) -> Result<Vec<usize>> {
    if sizes.len() != agents {
        return Err(wrong(format!("{} sizes for {agents} agents: give one for each", sizes.len())));
    }
    if let Some(size) = sizes.iter().find(|size| !(size.is_finite() && **size > 0.0)) {
        return Err(wrong(format!("a size of {size}: sizes are positive numbers, such as 0.5")));
    }
    Ok(apportion(rows, sizes, &vec![0; agents]))
}

/// Shares `total` out by these weights (none negative, not all 0), by largest remainders; among equal ones the agent with the fewest so far
/// comes first, then the first.
fn apportion(total: usize, weights: &[f64], so_far: &[usize]) -> Vec<usize> {
    // Against the largest, so that the sum is finite.
    let largest = weights.iter().copied().fold(0.0, f64::max);
    let sum: f64 = weights.iter().map(|weight| weight / largest).sum();
    let quotas: Vec<f64> = weights.iter().map(|weight| total as f64 * (weight / largest / sum)).collect();
    // A quota is at most the total.
    let mut counts: Vec<usize> = quotas.iter().map(|quota| quota.floor() as usize).collect();
    let left = total.saturating_sub(counts.iter().sum());
    let mut first: Vec<usize> = (0..weights.len()).collect();
    first.sort_by(|&a, &b| quotas[b].fract().total_cmp(&quotas[a].fract()).then(so_far[a].cmp(&so_far[b])).then(a.cmp(&b)));
    first.into_iter().take(left).for_each(|agent| counts[agent] += 1);
    counts
}

/// Shares the rows of each class, which are in random order, out to agents by weights.
fn share_out(members: Vec<Vec<usize>>, agents: usize, weight: impl Fn(usize, usize) -> f64) -> ShardAssignment {
    let mut shards = vec![Vec::new(); agents];
    for (class, rows) in members.into_iter().enumerate() {
        let weights: Vec<f64> = (0..agents).map(|agent| weight(class, agent)).collect();
        let so_far: Vec<usize> = shards.iter().map(Vec::len).collect();
        let mut rest = &rows[..];
        for (shard, count) in shards.iter_mut().zip(apportion(rows.len(), &weights, &so_far)) {
            let (own, later) = rest.split_at(count.min(rest.len()));
            shard.extend_from_slice(own);
            rest = later;
        }
    }
    ShardAssignment::of_shards(shards)
}

/// The logarithms of a draw from a Dirichlet distribution, up to a common constant: a share may be far below the least double. Shapes of
/// 0 give shares of 0. The gamma draws with shapes a below 1 are those with a + 1 times U^(1/a) (Marsaglia & Tsang 2000).
fn log_dirichlet(shapes: &[f64], stream: &mut Stream) -> Vec<f64> {
    let log_gamma = |&shape: &f64| match Gamma::new(shape + 1.0, 1.0) {
        Ok(gamma) if shape > 0.0 => {
            let draw: f64 = gamma.sample(stream);
            draw.ln() + (1.0 - stream.random::<f64>()).ln() / shape
        }
        _ => f64::NEG_INFINITY,
    };
    shapes.iter().map(log_gamma).collect()
}

/// Agents take rows in turn, each from the mix of classes that it wants.
fn by_mixes(mut members: Vec<Vec<usize>>, concentration: f64, agents: usize, seed: Seed) -> ShardAssignment {
    let rows: usize = members.iter().map(Vec::len).sum();
    let shapes: Vec<f64> = members.iter().map(|rows_of| concentration * rows_of.len() as f64 / rows as f64).collect();
    let mix = |agent| log_dirichlet(&shapes, &mut seed.stream(Who::Agent(agent), Draw::Mix as u64, Purpose::Partition));
    let mixes: Vec<Vec<f64>> = (0_u32..).take(agents).map(mix).collect();
    // Weights of the classes that still have rows, against the largest of them.
    let weights = |members: &[Vec<usize>]| -> Vec<Vec<f64>> {
        let has_rows = |class: &usize| !members[*class].is_empty();
        let of = |mix: &Vec<f64>| {
            let largest = (0..mix.len()).filter(has_rows).map(|class| mix[class]).fold(f64::NEG_INFINITY, f64::max);
            let weight = |class| if has_rows(&class) { (mix[class] - largest).exp() } else { 0.0 };
            (0..mix.len()).map(weight).collect()
        };
        mixes.iter().map(of).collect()
    };
    let mut stream = Draw::Fill.stream(seed);
    let mut wanted = weights(&members);
    let mut shards = vec![Vec::new(); agents];
    for turn in 0..rows {
        let agent = turn % agents;
        let mut left = stream.random::<f64>() * wanted[agent].iter().sum::<f64>();
        let mut chosen = None;
        for (class, &weight) in wanted[agent].iter().enumerate().filter(|(_, weight)| **weight > 0.0) {
            // Rounding may leave a little behind the last.
            chosen = Some(class);
            if left < weight {
                break;
            }
            left -= weight;
        }
        let Some(class) = chosen else { break };
        if let Some(row) = members[class].pop() {
            shards[agent].push(row);
        }
        if members[class].is_empty() && turn + 1 < rows {
            wanted = weights(&members);
        }
    }
    ShardAssignment::of_shards(shards)
}

impl ShardAssignment {
    /// Random shards of rows 0..`rows` of a split whose sizes differ by at most one.
    ///
    /// # Errors
    /// When there are no agents, or more agents than training rows; an agent without test rows has nothing to judge, which is fine.
    pub fn equal(split: Split, rows: usize, agents: usize, seed: Seed) -> Result<Self> {
        if agents == 0 || (split == Split::Train && agents > rows) {
            return Err(DataError::Request(format!(
                "{rows} {} rows cannot be assigned to {agents} agents: ask for 1 to {rows} agents",
                split.name()
            )));
        }
        let draw = match split {
            Split::Train => Draw::Train,
            Split::Test => Draw::Test,
        };
        let (share, longer) = (rows / agents, rows % agents);
        let counts = (0..agents).map(|agent| share + usize::from(agent < longer)).collect();
        Ok(Self::cut(draw.stream(seed).permutation(rows), counts))
    }

    fn cut(order: Vec<usize>, counts: Vec<usize>) -> Self {
        let mut starts = vec![0];
        starts.extend(counts.into_iter().scan(0, |end, count| {
            *end += count;
            Some(*end)
        }));
        Self { order, starts }
    }

    fn of_shards(shards: Vec<Vec<usize>>) -> Self {
        let counts = shards.iter().map(Vec::len).collect();
        Self::cut(shards.concat(), counts)
    }

    /// How many agents share the rows.
    pub fn agents(&self) -> usize {
        self.starts.len() - 1
    }

    /// How many rows an agent has; 0 for an agent number that does not exist.
    pub fn count(&self, agent: usize) -> usize {
        match self.starts.get(agent..=agent.saturating_add(1)) {
            Some([start, end]) => end - start,
            _ => 0,
        }
    }

    /// The rows of one agent, ascending; none for an agent number that does not exist.
    pub fn rows(&self, agent: usize) -> Vec<usize> {
        let start = self.starts.get(agent).copied().unwrap_or(self.order.len());
        let mut rows = self.order[start..start + self.count(agent)].to_vec();
        rows.sort_unstable();
        rows
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_row_belongs_to_one_agent_and_sizes_differ_by_one_at_most() {
        for (rows, agents) in [(1, 1), (10, 3), (103, 20), (7, 7)] {
            let assignment = ShardAssignment::equal(Split::Train, rows, agents, Seed(5)).unwrap();
            let shards: Vec<_> = (0..agents).map(|agent| assignment.rows(agent)).collect();
            assert!(
                shards.iter().all(|shard| shard.is_sorted() && (rows / agents..=rows.div_ceil(agents)).contains(&shard.len()))
            );
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
        let order = |draw: Draw| draw.stream(Seed(7)).permutation(1000);
        let correlation = |a: &[usize], b: &[usize]| {
            let sum: f64 = a.iter().zip(b).map(|(&a, &b)| (a as f64 - 499.5) * (b as f64 - 499.5)).sum();
            sum / (1000.0 * (1000.0_f64.powi(2) - 1.0) / 12.0)
        };
        let orders = [Draw::Train, Draw::Hold, Draw::Test].map(order);
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
        assert!(message.contains("3 train rows") && message.contains("4 agents"), "{message}");
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
        let assignment = partition.assign_by_target(&data.0, &data.1, agents, Seed(seed))?;
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
        let same = typed("{ sizes = [7, 7, 7] }").assign_by_target(&data.0, &data.1, 3, Seed(1)).unwrap();
        assert_eq!(same, ShardAssignment::equal(Split::Train, 103, 3, Seed(1)).unwrap());
    }

    #[test]
    fn rows_by_label_come_in_contiguous_blocks() {
        let data = classes(&[30, 10, 20]);
        let table = table(&typed("\"by_label\""), &data, 4, 1).unwrap();
        assert_eq!(table, [[15, 0, 0], [15, 0, 0], [0, 10, 5], [0, 0, 15]]);
        let numbers = Targets::Numbers(vec![3.0, -1.0, 7.0, 0.5, -2.0]);
        let assignment = Partition::ByLabel.assign_by_target(&numbers, &[], 2, Seed(1)).unwrap();
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
        let rows = |seed| lists.assign_by_target(&data.0, &named.1, 2, Seed(seed)).unwrap().rows(0);
        assert_eq!(rows(1), rows(2), "an only owner has them all");
        let lists = typed("{ labels = [[0, 1, 2], [2, 1, 0]] }");
        let rows = |seed| lists.assign_by_target(&data.0, &data.1, 2, Seed(seed)).unwrap().rows(0);
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
        // More classes than agents: neighbours belong to one agent.
        assert_eq!(table("0.9", &[10, 20, 30, 40], 2), [[9, 18, 3, 4], [1, 2, 27, 36]]);
        assert_eq!(table("0.2", &[10, 20], 1), [[10, 20]]);
    }

    #[test]
    fn dirichlet_mixes_have_equal_sizes_and_are_pinned() {
        let data = classes(&[50, 30, 23]);
        let of =
            |concentration: &str, seed| table(&typed(&format!("{{ dirichlet = {concentration} }}")), &data, 4, seed).unwrap();
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
            ("{ sizes = [0.5, 0.5] }", 3, "2 sizes for 3 agents"),
            ("{ sizes = [1, 0] }", 2, "a size of 0"),
            ("{ sizes = [1, inf] }", 2, "a size of inf"),
            ("{ sizes = [1000, 1] }", 2, "agent 1 of 0 to 1 would get none of the 31 training rows"),
            ("{ labels = [[0, 1, 2]] }", 2, "1 lists of labels for 2 agents"),
            ("{ labels = [[0, 1], [7]] }", 2, "no class 7; there are: 0, 1, 2"),
            ("{ labels = [[0], [1]] }", 2, "no agent lists the class \"2\""),
            ("{ labels = [[0, 1, 2], []] }", 2, "agent 1 of 0 to 1 would get none"),
            ("{ label_share = 1.5 }", 2, "label_share of 1.5"),
            ("{ label_share = 1 }", 6, "agent 5 of 0 to 5 would get none"),
            ("{ dirichlet = 0 }", 2, "concentration of 0"),
            ("{ dirichlet = 1 }", 32, "31 train rows cannot be assigned to 32 agents"),
        ] {
            let message = table(&typed(partition), &data, agents, 1).unwrap_err().to_string();
            assert!(message.contains(says), "{partition}: {message}");
        }
        let numbers = Targets::Numbers(vec![1.0, 2.0, 3.0]);
        for partition in ["{ label_share = 0.8 }", "{ dirichlet = 1 }"] {
            let message = typed(partition).assign_by_target(&numbers, &[], 2, Seed(1)).unwrap_err().to_string();
            assert!(message.contains("targets are numbers"), "{message}");
        }
    }
}
