//! Tests of word-by-word Gibbs sweeps against the plain algorithm.

#![allow(clippy::unwrap_used)]

use super::*;
use crate::lda::Documents;
use crate::random::{Purpose, Seed, Who};
use crate::vector::{level_count, on_level};

fn stream(step: u64) -> Stream {
    Seed(3).stream(Who::Run, step, Purpose::Topics)
}

fn tokens(documents: u32, length: u32) -> Tokens {
    let mut all = Documents::new(50);
    for document in 0..documents {
        let words: Vec<u32> = (0..50).collect();
        let counts: Vec<u32> = words.iter().map(|word| (word * 7 + document) % 5 * length / 100).collect();
        all.push(&words, &counts);
    }
    Tokens::from_documents(&all)
}

#[test]
fn sweeps_have_the_same_bits_on_every_level_and_keep_document_counts_consistent() {
    for (topics, length) in [(3, 100), (40, 100), (700, 300)] {
        let tokens = tokens(9, length);
        let mut assigned = tokens.draw_topics(topics as u32, stream);
        let mut counts = TopicCounts::new(50, topics);
        counts.add_tokens(tokens.words(), &assigned);
        let mut sweep = WordSweep::new(&tokens, topics);
        for number in 1..6 {
            let at = |word: u32| stream(100 * number + u64::from(word));
            let before = (sweep.clone(), assigned.clone(), counts.clone());
            sweep.sweep(&mut assigned, &mut counts, 0.3, 0.1, at);
            let mut others: Vec<(WordSweep, Vec<u32>, TopicCounts)> = Vec::new();
            for level in 0..level_count() {
                let (mut other, mut topics_of_other, mut counts_of_other) = before.clone();
                other.document_topics.count_topics(&other.document_ends, &topics_of_other);
                on_level(
                    level,
                    Sweep {
                        sweep: &mut other,
                        topics: &mut topics_of_other,
                        counts: &mut counts_of_other,
                        alpha: 0.3,
                        beta: 0.1,
                        stream: at,
                    },
                );
                others.push((other, topics_of_other, counts_of_other));
            }
            for (_, topics_of_other, counts_of_other) in &others {
                assert_eq!((&assigned, &counts), (topics_of_other, counts_of_other));
            }
            let sorted = |held: &DocumentTopics| {
                let mut documents = Vec::new();
                let mut rest = &held.lines[..];
                for (begin, end) in std::iter::once(&0).chain(&sweep.document_ends).zip(&sweep.document_ends) {
                    let (mine, others) = rest.split_at(lines_of_document(end - begin, held.no_topic as usize));
                    let mut entries: Vec<u32> = mine.iter().flat_map(|line| line.0).collect();
                    entries[1..].sort_unstable();
                    documents.push(entries);
                    rest = others;
                }
                documents
            };
            let mut again = sweep.document_topics.clone();
            again.count_topics(&sweep.document_ends, &assigned);
            assert_eq!(sorted(&sweep.document_topics), sorted(&again));
        }
    }
}

#[test]
fn sizes_beyond_the_limits_are_refused() {
    let tokens = tokens(1, 1000);
    assert_eq!(tokens.len(), 1000);
    assert!(WordSweep::check_size(&tokens, (1 << 22) - 1).is_ok());
    let message = WordSweep::check_size(&tokens, 1 << 22).unwrap_err();
    assert!(message.contains("4194304 topics and a document of 1000 tokens"), "{message}");
}

/// Without its only token, a word has the weight β, which incremental sums lose beside 1.
#[test]
fn words_with_a_single_token_are_drawn_under_any_prior() {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for (alpha, beta) in [(0.1, 1e-18), (1e-12, 1e-12), (1e3, 1e-300)] {
            for topics in [10, 40] {
                let mut all = Documents::new(30);
                (0..30).for_each(|word| all.push(&[word], &[1]));
                let tokens = Tokens::from_documents(&all);
                let mut assigned = tokens.draw_topics(topics, stream);
                let mut counts = TopicCounts::new(30, topics as usize);
                counts.add_tokens(tokens.words(), &assigned);
                let mut sweep = WordSweep::new(&tokens, topics as usize);
                let mut seen = vec![false; topics as usize];
                for number in 1..100 {
                    sweep.sweep(&mut assigned, &mut counts, alpha, beta, |word| stream(100 * number + u64::from(word)));
                    assigned.iter().for_each(|&topic| seen[topic as usize] = true);
                }
                let _ = sender.send((counts.totals().iter().sum::<i32>(), seen.contains(&false)));
            }
        }
    });
    for _ in 0..6 {
        // All topics are drawn, without an endless loop.
        let drawn = receiver.recv_timeout(std::time::Duration::from_secs(60));
        assert_eq!(drawn, Ok((30, false)), "no topic was drawn within a minute");
    }
}

#[test]
fn extreme_priors_do_not_panic() {
    let tokens = tokens(2, 100);
    for (alpha, beta) in [(1e-300, 1e-300), (1e300, 1e300), (1e-300, 1e300), (1e300, 1e-300)] {
        let mut assigned = tokens.draw_topics(20, stream);
        let mut counts = TopicCounts::new(50, 20);
        counts.add_tokens(tokens.words(), &assigned);
        let mut sweep = WordSweep::new(&tokens, 20);
        (1..4).for_each(|number| {
            sweep.sweep(&mut assigned, &mut counts, alpha, beta, |word| stream(100 * number + u64::from(word)))
        });
        assert!(counts.totals().iter().sum::<i32>() == tokens.len() as i32);
    }
}
