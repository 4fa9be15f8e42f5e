//! Partitions of the training rows into shards of agents, independent of the number of ranks.

mod assignment;
mod by_class;
mod label;
#[cfg(test)]
mod tests;

pub(crate) use assignment::RandomChoice;
pub use assignment::ShardAssignment;
pub use label::Label;

use crate::data::dataset::layout::Split;
use crate::data::dataset::read::Dataset;
use crate::data::dataset::targets::Targets;
use crate::data::error::{DataError, Result};
use crate::random::Seed;
use by_class::{apportion, by_dirichlet, by_weights};
use std::ops::Range;

/// How the training rows are assigned to agents. All randomness comes from the seed.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Partition {
    /// Random shards whose sizes differ by at most one.
    #[default]
    Equal,
    /// Random shards of these relative sizes, one per agent.
    Sizes(Vec<f64>),
    /// Blocks of equal size of the rows sorted by label (McMahan et al. 2017, arXiv 1602.05629), or by target for regression.
    ByLabel,
    /// The classes of each agent: the rows of a class are shared equally, at random, by the agents that list it.
    Labels(Vec<Vec<Label>>),
    /// Every class belongs to one or more agents, or several classes to one agent. This fraction of the rows of a class goes to the agents
    /// that it belongs to, the rest to all others. With four agents and two classes 0.8 is the 40/10 split of Kassab & Simeone
    /// (arXiv 2009.06419, Fig. 5).
    LabelShare(f64),
    /// Agents have class proportions from a Dirichlet distribution with this concentration, whose mean is the proportions in all rows (Hsu,
    /// Qi & Brown 2019, arXiv 1909.06335). With small values agents have mostly one class each, with large values all have the proportions
    /// of all rows. Sizes differ by at most one.
    Dirichlet(f64),
}

impl Partition {
    /// Assigns the training rows of a dataset to agents.
    ///
    /// # Errors
    /// If there are no agents, or one would get no rows; if the partition does not suit the number of agents or the classes; if the labels
    /// cannot be read.
    pub fn assign(&self, dataset: &Dataset, agents: usize, seed: Seed) -> Result<ShardAssignment> {
        match self {
            Self::Equal => ShardAssignment::equal(Split::Train, dataset.rows(Split::Train), agents, seed),
            _ => self.by_targets(&dataset.targets(Split::Train)?, dataset.classes(), agents, seed),
        }
    }

    /// Checks the numbers that have the same range for all data.
    ///
    /// # Errors
    /// If one is out of its range.
    pub fn check(&self) -> std::result::Result<(), String> {
        match self {
            Self::LabelShare(share) if !(0.0..=1.0).contains(share) => {
                Err(format!("label_share must be between 0 and 1, not {share}"))
            }
            Self::Dirichlet(concentration) if !(1e-6..=1e9).contains(concentration) => {
                Err(format!("dirichlet must be between 1e-6 and 1e9, not {concentration}"))
            }
            _ => Ok(()),
        }
    }

    /// Assigns the rows with these targets.
    fn by_targets(&self, targets: &Targets, classes: &[String], agents: usize, seed: Seed) -> Result<ShardAssignment> {
        self.check().map_err(unsuitable)?;
        let rows = targets.len();
        // Whatever the partition, an error if there are too few rows.
        let equal = ShardAssignment::equal(Split::Train, rows, agents, seed)?;
        let assignment = match self {
            Self::Equal => equal,
            Self::Sizes(sizes) => ShardAssignment::from_sizes(equal.order, counts_of_sizes(sizes, rows, agents)?),
            Self::ByLabel => {
                let mut order: Vec<usize> = (0..rows).collect();
                match targets {
                    Targets::Classes(labels) => order.sort_by_key(|&row| labels[row]),
                    Targets::Numbers(numbers) => order.sort_by(|&a, &b| numbers[a].total_cmp(&numbers[b])),
                }
                ShardAssignment { order, starts: equal.starts }
            }
            Self::Labels(labels) => {
                let rows_of_class = rows_of_classes(&equal, targets, classes)?;
                let gets = agents_of_labels(labels, classes, agents)?;
                by_weights(rows_of_class, agents, |class, agent| f64::from(u8::from(gets[class][agent])))
            }
            Self::LabelShare(share) => {
                let rows_of_class = rows_of_classes(&equal, targets, classes)?;
                let weights = label_share_weights(*share, rows_of_class.len(), agents);
                by_weights(rows_of_class, agents, |class, agent| weights[class][agent])
            }
            Self::Dirichlet(concentration) => {
                by_dirichlet(rows_of_classes(&equal, targets, classes)?, *concentration, agents, seed)
            }
        };
        match (0..agents).find(|&agent| assignment.count(agent) == 0) {
            Some(agent) => Err(unsuitable(format!(
                "it leaves agent {agent} none of the {rows} training rows. Take fewer agents, or another partition"
            ))),
            None => Ok(assignment),
        }
    }
}

/// Assigns documents, which are stored in random order, to agents as contiguous ranges: of equal lengths, or in proportion to sizes.
///
/// # Errors
/// If the sizes do not suit the number of agents, or an agent would get no documents.
pub fn document_ranges(sizes: Option<&[f64]>, documents: usize, agents: usize) -> Result<Vec<Range<usize>>> {
    let counts = counts_of_sizes(sizes.unwrap_or(&vec![1.0; agents]), documents, agents)?;
    if let Some(agent) = counts.iter().position(|&count| count == 0) {
        let remedy =
            if agents > documents { format!("Take at most {documents} agents") } else { "Give less uneven sizes".to_owned() };
        return Err(unsuitable(format!("it leaves agent {agent} none of the {documents} training documents. {remedy}")));
    }
    let mut end = 0;
    let range = |count: &usize| {
        end += count;
        end - count..end
    };
    Ok(counts.iter().map(range).collect())
}

fn unsuitable(what: String) -> DataError {
    DataError::Partition(what)
}

/// The number of rows of each agent, in proportion to sizes.
fn counts_of_sizes(sizes: &[f64], rows: usize, agents: usize) -> Result<Vec<usize>> {
    if sizes.len() != agents {
        return Err(unsuitable(format!("it has {} sizes for {agents} agents. Give one for each", sizes.len())));
    }
    if let Some(size) = sizes.iter().find(|size| !(size.is_finite() && **size > 0.0)) {
        return Err(unsuitable(format!("it has a size of {size}. Sizes are positive numbers, such as 0.5")));
    }
    Ok(apportion(rows, sizes, &vec![0; agents]))
}

/// The rows of each class, in the random order of the equal partition.
fn rows_of_classes(equal: &ShardAssignment, targets: &Targets, classes: &[String]) -> Result<Vec<Vec<usize>>> {
    let Targets::Classes(labels) = targets else {
        let what = "it needs classes, and the targets are numbers. Choose \"equal\", { sizes = [...] } or \"by_label\"";
        return Err(unsuitable(what.into()));
    };
    let mut rows_of_class = vec![Vec::new(); classes.len()];
    equal.order.iter().for_each(|&row| rows_of_class[labels[row] as usize].push(row));
    Ok(rows_of_class)
}

/// Whether an agent lists a class, for each class and agent.
fn agents_of_labels(labels: &[Vec<Label>], classes: &[String], agents: usize) -> Result<Vec<Vec<bool>>> {
    if labels.len() != agents {
        return Err(unsuitable(format!("it has {} lists of labels for {agents} agents. Give one for each", labels.len())));
    }
    let known = classes.join(", ");
    if let Some(label) = labels.iter().flatten().find(|label| !classes.iter().any(|class| label.matches(class))) {
        return Err(unsuitable(format!("it lists the class {label}, which the data do not have. The classes are {known}")));
    }
    for (agent, list) in labels.iter().enumerate() {
        if let Some(class) = classes.iter().find(|class| list.iter().filter(|label| label.matches(class)).count() > 1) {
            return Err(unsuitable(format!("it lists the class {class:?} twice for agent {agent}")));
        }
    }
    let lists = |list: &Vec<Label>, class: &str| list.iter().any(|label| label.matches(class));
    let gets: Vec<Vec<bool>> = classes.iter().map(|class| labels.iter().map(|list| lists(list, class)).collect()).collect();
    if let Some(class) = gets.iter().position(|agents| !agents.contains(&true)) {
        let class = &classes[class];
        return Err(unsuitable(format!("it gives the class {class:?} to no agent. The classes are {known}")));
    }
    Ok(gets)
}

/// The weight of each agent for each class: `share` is divided among the agents that the class belongs to, the rest among all others.
fn label_share_weights(share: f64, classes: usize, agents: usize) -> Vec<Vec<f64>> {
    let belongs = |class: usize, agent: usize| match agents >= classes {
        true => agent * classes / agents == class,
        false => class * agents / classes == agent,
    };
    let weights_of = |class: usize| {
        let own = (0..agents).filter(|&agent| belongs(class, agent)).count();
        let weight = |agent| match (belongs(class, agent), agents - own) {
            (_, 0) => 1.0,
            (true, _) => share / own as f64,
            (false, others) => (1.0 - share) / others as f64,
        };
        (0..agents).map(weight).collect()
    };
    (0..classes).map(weights_of).collect()
}
