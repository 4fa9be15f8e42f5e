//! How well other runs find the topics of a run: topics of two runs are matched one to one.

use crate::job::topic_model::TopicModel;
use crate::report::error::{ReportError, Result};
use crate::report::topics::{Topic, write_with_words};
use ndarray::Array2;
use pathfinding::prelude::{Matrix, kuhn_munkres};
use serde::Serialize;

/// Similarities are matched with this many steps between 0 and 1.
const STEPS: f64 = 1e9;

/// The topics of other runs that match those of one run.
#[derive(Debug, Serialize)]
pub struct Stability {
    /// The other runs.
    pub runs: Vec<String>,
    /// For each topic, in the order of the report, its match in each run.
    pub topics: Vec<MatchedTopic>,
    /// The mean similarity over topics and runs.
    pub mean: f64,
}

/// A topic with its matches.
#[derive(Debug, Serialize)]
pub struct MatchedTopic {
    /// Its index.
    pub topic: usize,
    /// Its share of all tokens.
    pub share: f64,
    /// Its top words.
    pub words: Vec<String>,
    /// The mean similarity over runs.
    pub mean: f64,
    /// Its match in each run; none if that run has fewer topics.
    pub matches: Vec<Option<Match>>,
}

/// A topic of another run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Match {
    /// Its index in the other run.
    pub topic: usize,
    /// Σ_w √(p_w q_w): 1 if both topics are equal, 0 if they have no word in common.
    pub similarity: f64,
}

impl Stability {
    /// Matches the topics of a report with those of other runs.
    ///
    /// # Errors
    /// When two runs have no word in common.
    pub fn new(topics: &[Topic], model: &TopicModel, others: Vec<(String, TopicModel)>) -> Result<Self> {
        let mut by_run = Vec::new();
        for (name, other) in &others {
            let similarities = model.similarities(other).map_err(|cause| ReportError::Missing(format!("{name}: {cause}")))?;
            by_run.push(matches(&similarities));
        }
        let matched = |topic: &Topic| {
            let matches: Vec<Option<Match>> = by_run.iter().map(|of_run| of_run[topic.topic]).collect();
            let mean = mean(matches.iter().map(|found| found.map_or(0.0, |found| found.similarity)));
            MatchedTopic { topic: topic.topic, share: topic.share, words: topic.words.clone(), mean, matches }
        };
        let topics: Vec<MatchedTopic> = topics.iter().map(matched).collect();
        let mean = mean(topics.iter().map(|topic| topic.mean));
        Ok(Self { runs: others.into_iter().map(|(name, _)| name).collect(), topics, mean })
    }
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len() as f64;
    values.sum::<f64>() / count
}

/// For each row the column that it is matched with, so that the sum of similarities is the largest.
fn matches(similarities: &Array2<f64>) -> Vec<Option<Match>> {
    let (rows, columns) = similarities.dim();
    // Similarities are at most 1 up to roundings.
    let weight = |similarity: f64| (similarity * STEPS).round() as i64;
    // The algorithm takes at most as many rows as columns: missing columns have similarity 0 with all rows.
    let weights = Matrix::from_fn(rows, columns.max(rows), |(row, column)| {
        similarities.get((row, column)).map_or(0, |&value| weight(value))
    });
    let (_, columns_of_rows) = kuhn_munkres(&weights);
    let found = columns_of_rows.into_iter().enumerate();
    found.map(|(row, column)| Some(Match { topic: column, similarity: *similarities.get((row, column))? })).collect()
}

impl std::fmt::Display for Stability {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let cells = |cell: &dyn Fn(&MatchedTopic) -> String| self.topics.iter().map(cell).collect::<Vec<_>>();
        let mut columns = vec![
            ("topic".to_owned(), cells(&|topic| topic.topic.to_string())),
            ("share".into(), cells(&|topic| format!("{:.2} %", 100.0 * topic.share))),
        ];
        for (place, run) in self.runs.iter().enumerate() {
            let found = |topic: &MatchedTopic| match topic.matches[place] {
                Some(Match { topic, similarity }) => format!("{similarity:.2} (topic {topic})"),
                None => "-".into(),
            };
            columns.push((run.clone(), cells(&found)));
        }
        write_with_words(f, &columns, self.topics.iter().map(|topic| &topic.words[..]))?;
        writeln!(f, "similarity of matched topics: mean {:.2}; 1 if they are equal, 0 if they have no word in common", self.mean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn the_sum_of_similarities_is_the_largest() {
        // The first row would take the first column if rows chose in turn.
        let found = matches(&array![[0.9, 0.8, 0.0], [0.9, 0.1, 0.2]]);
        assert_eq!(found, [Some(Match { topic: 1, similarity: 0.8 }), Some(Match { topic: 0, similarity: 0.9 })]);
    }

    #[test]
    fn topics_without_a_counterpart_have_no_match() {
        let found = matches(&array![[0.2], [0.7]]);
        assert_eq!(found, [None, Some(Match { topic: 0, similarity: 0.7 })]);
    }
}
