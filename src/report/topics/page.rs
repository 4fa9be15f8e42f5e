//! A page of topics for a browser: a map, the words of each topic by relevance, and its top documents, in one HTML file.

use super::map;
use super::{GroupSizes, Topic, TopicReport};
use crate::job::topic_model::TopicModel;
use crate::report::error::{ReportError, Result};
use crate::text;
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use serde::Serialize;
use std::collections::BTreeMap;

/// The page without its data.
const TEMPLATE: &str = include_str!("page.html");
const DATA: &str = "{{data}}";
const TITLE: &str = "{{title}}";
/// Words that are shown of a topic.
const WORDS: usize = 30;
/// The weights λ of relevance, in tenths, for which the words of a topic are on the page.
const STEPS: u32 = 10;
/// Topics that are kept of a word.
const TOPICS_OF_WORD: usize = 20;

/// The data of the page.
#[derive(Serialize)]
struct Page<'a> {
    description: String,
    /// Tokens of the documents that shares are of.
    tokens: f64,
    shown: usize,
    groups: Option<&'a GroupSizes>,
    topics: Vec<TopicOnPage<'a>>,
    words: Vec<WordOnPage<'a>>,
}

#[derive(Serialize)]
struct TopicOnPage<'a> {
    #[serde(flatten)]
    topic: &'a Topic,
    place: [f64; 2],
    /// Words by their places on the page, with their probabilities in the topic.
    candidates: Vec<(usize, f64)>,
}

#[derive(Serialize)]
struct WordOnPage<'a> {
    word: &'a str,
    /// Its share of all tokens, by the model.
    share: f64,
    /// The places of topics on the page, and their parts of the tokens of the word, the largest first.
    topics: Vec<(usize, f64)>,
}

/// The page of a report.
///
/// # Errors
/// When the map cannot be computed.
pub fn page(report: &TopicReport, model: &TopicModel) -> Result<String> {
    let similarities = model.similarities(model).map_err(|cause| ReportError::Missing(cause.to_string()))?;
    let places = map::places(&similarities).map_err(ReportError::Missing)?;
    // p(w) = Σ_k share_k φ_kw.
    let shares: Vec<f64> = {
        let mut by_topic = vec![0.0; report.topics.len()];
        report.topics.iter().for_each(|topic| by_topic[topic.topic] = topic.share);
        model
            .phi
            .rows()
            .into_iter()
            .map(|row| row.iter().zip(&by_topic).map(|(&phi, share)| f64::from(phi) * share).sum())
            .collect()
    };
    let candidates: Vec<Vec<usize>> = report.topics.par_iter().map(|topic| candidates(model, topic.topic, &shares)).collect();
    let mut numbers: BTreeMap<usize, usize> = candidates.iter().flatten().map(|&word| (word, 0)).collect();
    numbers.values_mut().enumerate().for_each(|(number, place)| *place = number);
    let words = numbers.keys().map(|&word| {
        let part = |topic: &Topic| topic.share * f64::from(model.phi[(word, topic.topic)]) / shares[word];
        let mut topics: Vec<(usize, f64)> = report.topics.iter().map(part).enumerate().filter(|(_, part)| *part > 0.0).collect();
        topics.sort_by(|a, b| b.1.total_cmp(&a.1));
        topics.truncate(TOPICS_OF_WORD);
        WordOnPage { word: &model.words[word], share: shares[word], topics }
    });
    let topics = report.topics.iter().zip(&candidates).map(|(topic, words)| TopicOnPage {
        topic,
        place: places[topic.topic],
        candidates: words.iter().map(|word| (numbers[word], f64::from(model.phi[(*word, topic.topic)]))).collect(),
    });
    let data = Page {
        description: format!(
            "{} of chain {}, averaged over {}; shares on {}",
            text::counted(report.topics.len(), "topic"),
            report.chain,
            text::counted(report.draws, "draw"),
            text::counted(report.documents, "training document")
        ),
        tokens: report.tokens,
        shown: WORDS,
        groups: report.groups.as_ref(),
        topics: topics.collect(),
        words: words.collect(),
    };
    // A text in the data must not end the script.
    let data = serde_json::to_string(&data).map_err(|cause| ReportError::Missing(cause.to_string()))?.replace('<', "\\u003c");
    let title = format!("Topics of {}", report.run.parent().unwrap_or(&report.run).display());
    Ok(TEMPLATE.replacen(TITLE, &escaped(&title), 2).replacen(DATA, &data, 1))
}

/// The words of a topic that are among the most relevant for some λ: by λ log φ_kw + (1 − λ) log φ_kw / p(w) (Sievert & Shirley 2014).
fn candidates(model: &TopicModel, topic: usize, shares: &[f64]) -> Vec<usize> {
    let logs: Vec<(f64, f64)> =
        model.phi.column(topic).iter().zip(shares).map(|(&phi, share)| (f64::from(phi).ln(), share.ln())).collect();
    let mut all: Vec<usize> = (0..logs.len()).filter(|&word| logs[word].0.is_finite() && logs[word].1.is_finite()).collect();
    let mut found = Vec::new();
    for step in 0..=STEPS {
        let lambda = f64::from(step) / f64::from(STEPS);
        let relevance = |word: usize| logs[word].0 - (1.0 - lambda) * logs[word].1;
        let before = |a: &usize, b: &usize| relevance(*b).total_cmp(&relevance(*a)).then(a.cmp(b));
        if all.len() > WORDS {
            all.select_nth_unstable_by(WORDS - 1, before);
        }
        found.extend(all.iter().take(WORDS));
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// A text as HTML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
