//! The method `lda` against the exact posterior, against serial sweeps, and against AD-LDA.

#![allow(clippy::unwrap_used)]

use super::adlda::{by_true_topics, made_run, off};
use crate::recording::{Recording, run};
use mpibayes::cluster::JobOptions;
use mpibayes::lda::{
    Alpha, DocumentSource, Documents, FixedSweep, PriorStatistics, Residence, SeedWords, TokenBlocks, Tokens, TopicCounts,
    TopicTable, draw_topics_sequentially,
};
use mpibayes::methods::topics::adlda::AdLda;
use mpibayes::methods::topics::{Lda, LdaSamplerSettings, OptimizePriors, PhiUpdate, SweepSettings, TopicProblem};
use mpibayes::random::{Purpose, Seed, Stream, Who};
use rand::RngExt;
use rand_distr::{Distribution, Gamma};
use std::sync::Arc;

const WORDS: u32 = 9;
const DOCUMENTS: u64 = 23;

/// A document of 20 tokens, mostly from the first or the second half of the vocabulary. The eleventh is empty.
fn document(number: u64) -> Vec<u32> {
    let mut random = Seed(5).stream(Who::Run, number, Purpose::Synthetic);
    let mut counts = vec![0; WORDS as usize];
    for _ in 0..if number == 10 { 0 } else { 20 } {
        let second = (number % 2 == 1) != (random.random::<f64>() < 0.1);
        counts[random.random_range(0..4_usize) + if second { 5 } else { 0 }] += 1;
    }
    counts
}

/// The documents in ranges, one for each agent.
fn problem(agents: u32, topics: u32, alpha: f64, beta: f64) -> TopicProblem {
    let documents = move |agent: u32| {
        let words: Vec<u32> = (0..WORDS).collect();
        let mut mine = Documents::new(WORDS);
        let first = |agent: u32| DOCUMENTS * u64::from(agent) / u64::from(agents);
        (first(agent)..first(agent + 1)).for_each(|number| mine.push(&words, &document(number)));
        Ok(Box::new(mine) as Box<dyn DocumentSource>)
    };
    TopicProblem { agents, vocabulary: WORDS, topics, alpha, beta, seed_words: Arc::default(), documents: Arc::new(documents) }
}

fn settings(rounds: u64, burn_in: u64, thin: u64, phi: PhiUpdate) -> LdaSamplerSettings {
    LdaSamplerSettings { rounds, burn_in, thin, phi, ..LdaSamplerSettings::default() }
}

const UPDATES: [PhiUpdate; 3] = [PhiUpdate::Auto, PhiUpdate::Drawn, PhiUpdate::Collapsed];

#[test]
fn draws_have_the_same_bits_for_any_number_of_agents_and_threads_in_memory_and_in_files() {
    for (phi, optimize) in UPDATES.into_iter().zip([OptimizePriors::Both, OptimizePriors::Asymmetric, OptimizePriors::Asymmetric])
    {
        let draws = |agents: u32, threads: usize, seed: u64, resident: bool| {
            let priors =
                LdaSamplerSettings { optimize, optimize_every: 3, optimize_after: 4, resident, ..settings(30, 15, 3, phi) };
            let mut problem = problem(agents, 4, 0.2, 0.1);
            problem.seed_words = Arc::new(SeedWords::new([(0, 1), (5, 3), (8, 3)], 7));
            let method = Lda::new(problem, priors);
            let options = JobOptions { threads, ..JobOptions::new(Seed(seed)) };
            Recording::of(method, options).unwrap().values::<f32>("posterior")
        };
        let one = draws(1, 1, 12, true);
        let alphas = if optimize == OptimizePriors::Asymmetric { 4 } else { 0 };
        assert_eq!(one.len(), 5 * (4 * WORDS as usize + alphas));
        // With 30 agents, some have no documents, and eight draw initial topics.
        for (agents, threads) in [(1, 3), (2, 1), (4, 2), (7, 3), (30, 2)] {
            for resident in [true, false] {
                assert_eq!(draws(agents, threads, 12, resident), one, "{phi:?}, {agents} agents, resident: {resident}");
            }
        }
        assert_ne!(draws(1, 1, 13, true), one);
    }
}

#[test]
fn sweeps_are_those_of_a_serial_sampler_bit_for_bit() {
    let (topics, alpha, beta) = (3, 0.2, 0.1);
    let stream = |who, step, purpose| -> Stream { Seed(12).stream(who, step, purpose) };
    let mut all = Documents::new(WORDS);
    (0..DOCUMENTS).for_each(|number| all.push(&(0..WORDS).collect::<Vec<_>>(), &document(number)));
    let tokens = Tokens::from_documents(&all);
    let blocks = TokenBlocks::new(&all, topics, Residence::Memory).unwrap();
    for phi in [PhiUpdate::Drawn, PhiUpdate::Collapsed] {
        // Of 23 documents, eight get initial topics.
        let mut counts = TopicCounts::new(WORDS, topics);
        draw_topics_sequentially(&tokens, 8, &mut vec![0; tokens.len()], &mut counts, alpha, beta, |document| {
            stream(Who::Run, document, Purpose::Initial)
        });
        let mut counts = counts.into_counts();
        let mut assigned = vec![topics as u16; tokens.len()];
        let mut table = TopicTable::new(WORDS as usize, topics);
        let mut serial: Vec<f32> = Vec::new();
        for done in 0..=5_u64 {
            let of = |address: u64| stream(Who::Server, done << 32 | address, Purpose::Topics);
            match phi {
                PhiUpdate::Drawn if done > 0 => table.draw(&counts, beta, of, |topic| of(1 << 63 | topic)),
                _ => table.set_mean(&counts, beta, 0.0),
            }
            if done > 0 {
                (0..WORDS as usize).for_each(|word| serial.extend(table.phi(word).iter().map(|phi| phi.max(1e-30))));
            }
            counts.fill(0);
            let key = stream(Who::Run, done, Purpose::Topics).random();
            blocks.sweep(&mut assigned, FixedSweep { table: &table, alpha, key, first_document: 0 }, &mut counts);
        }
        for agents in [1, 3] {
            let method = Lda::new(problem(agents, topics as u32, alpha, beta), settings(5, 0, 1, phi));
            assert_eq!(run(method, 12).values::<f32>("posterior"), serial, "{phi:?}, {agents} agents");
        }
        // Negative control: with burn-in, the first sweeps have a background.
        let method = Lda::new(problem(1, topics as u32, alpha, beta), settings(5, 2, 1, phi));
        assert_ne!(run(method, 12).values::<f32>("posterior"), serial[2 * 3 * WORDS as usize..]);
    }
}

/// With one topic, φ ~ Dir(n_w + β) independently in each draw.
#[test]
fn draws_of_one_topic_are_independent_draws_of_its_posterior() {
    let (beta, kept) = (0.3, 4000);
    let phi = |update| {
        let method = Lda::new(problem(2, 1, 0.2, beta), settings(kept, 0, 1, update));
        run(method, 8).values::<f32>("posterior")
    };
    let drawn = phi(PhiUpdate::Auto);
    let counts: Vec<f64> = (0..WORDS as usize).map(|word| (0..DOCUMENTS).map(|d| f64::from(document(d)[word])).sum()).collect();
    let total = counts.iter().sum::<f64>() + beta * f64::from(WORDS);
    let moments = |draws: &[f32], word: usize| {
        let values: Vec<f64> = draws.chunks(WORDS as usize).map(|phi| f64::from(phi[word])).collect();
        let mean = values.iter().sum::<f64>() / kept as f64;
        (mean, values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (kept - 1) as f64)
    };
    let collapsed = phi(PhiUpdate::Collapsed);
    for (word, count) in counts.iter().enumerate() {
        let exact = (count + beta) / total;
        let exact_variance = exact * (1.0 - exact) / (total + 1.0);
        let (mean, variance) = moments(&drawn, word);
        // Of nine means, one is 4.5 standard errors off for less than one seed in ten thousand. The word without tokens is skewed, and
        // its variance has an error of about 0.2.
        assert!((mean - exact).abs() < 4.5 * (exact_variance / kept as f64).sqrt(), "word {word}: {mean} {exact}");
        assert!((variance / exact_variance - 1.0).abs() < 0.9, "word {word}: {variance} {exact_variance}");
        // Negative control: means given the counts do not vary.
        assert!(moments(&collapsed, word).1 < 1e-9 * exact_variance);
    }
}

/// How well two topics separate the halves of the vocabulary: 1 if each topic has a half of its own.
fn separation(phi: &[f32]) -> f64 {
    let mass = |topic: usize, words: std::ops::Range<usize>| words.map(|word| f64::from(phi[word * 2 + topic])).sum::<f64>();
    (mass(0, 0..4) - mass(1, 0..4)).abs()
}

/// Nine tenths of a document come from one half of the vocabulary.
#[test]
fn every_update_finds_the_topics() {
    for phi in UPDATES {
        let draws = run(Lda::new(problem(3, 2, 0.1, 0.1), settings(60, 40, 1, phi)), 3).values::<f32>("posterior");
        let found: Vec<f64> = draws.chunks(2 * WORDS as usize).map(separation).collect();
        assert!(found.len() == 20 && found.iter().all(|&found| found > 0.6), "{phi:?}: {found:?}");
    }
    // Negative control: what is found is not there if all documents have the same words.
    let mut uniform = problem(3, 2, 0.1, 0.1);
    uniform.documents = Arc::new(|_| {
        let mut documents = Documents::new(WORDS);
        (0..8).for_each(|_| documents.push(&(0..WORDS).collect::<Vec<_>>(), &[2; WORDS as usize]));
        Ok(Box::new(documents) as Box<dyn DocumentSource>)
    });
    let draws = run(Lda::new(uniform, settings(60, 40, 1, PhiUpdate::Auto)), 3).values::<f32>("posterior");
    assert!(draws.chunks(2 * WORDS as usize).map(separation).sum::<f64>() / 20.0 < 0.6);
}

/// Mean and standard error.
fn mean_and_error(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    (mean, (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0) / n).sqrt())
}

/// Mean final perplexities of generated documents over eight seeds, which differ by no more than 0.5 %, where the methods leave different
/// distributions, and 5.5 standard errors: with 14 degrees of freedom, exceeded for less than one seed in ten thousand.
#[test]
fn perplexity_of_generated_documents_is_that_of_adlda() {
    let last = |recording: Recording| *recording.column("metrics", "perplexity").last().unwrap();
    let over_seeds = |of: &dyn Fn(u64) -> f64| mean_and_error(&(1..=8).map(of).collect::<Vec<_>>());
    let adlda = |seed| last(made_run(|problem, settings| AdLda { problem, settings }, PRIORS, OptimizePriors::None, seed));
    let lda = |phi, priors| {
        let method =
            |problem, sweeps: SweepSettings| Lda::new(problem, settings(sweeps.rounds, sweeps.burn_in, sweeps.thin, phi));
        over_seeds(&|seed| last(made_run(method, priors, OptimizePriors::None, seed)))
    };
    let (reference, reference_error) = over_seeds(&adlda);
    let is_same = |(found, error): (f64, f64)| {
        (found - reference).abs() < 0.005 * reference + 5.5 * (error * error + reference_error * reference_error).sqrt()
    };
    for phi in UPDATES {
        let found = lda(phi, PRIORS);
        assert!(is_same(found), "{phi:?}: {found:?} {reference} {reference_error}");
    }
    // Negative control: other priors predict worse.
    let wrong = lda(PhiUpdate::Auto, (5.0, 3.0));
    assert!(!is_same(wrong), "{wrong:?} {reference} {reference_error}");
}

/// α and β of the generated documents.
const PRIORS: (f64, f64) = (0.3, 0.2);

#[test]
fn documents_and_topics_beyond_the_limits_are_errors() {
    let mut long = problem(1, 2, 0.1, 0.1);
    long.documents = Arc::new(|_| {
        let mut documents = Documents::new(WORDS);
        documents.push(&[0, 3], &[65_535, 1]);
        Ok(Box::new(documents) as Box<dyn DocumentSource>)
    });
    let message = |problem| {
        let method = Lda::new(problem, settings(1, 0, 1, PhiUpdate::Auto));
        Recording::of(method, JobOptions::new(Seed(1))).err().unwrap().to_string()
    };
    assert!(message(long).contains("document 0 (from 0) of an agent has 65536 tokens: at most 65535 are supported. Split it"));
    assert!(message(problem(1, 65_535, 0.1, 0.1)).contains("65535 topics: at most 65534 are supported"));
}

/// From priors that are far away, estimates need more sweeps than those of `adlda`. Draws of φ then lead to the priors that the true topics
/// suggest; means of φ leave β too large, as those of `adlda` do.
#[test]
fn estimated_priors_are_those_of_the_generated_documents() {
    let truth = by_true_topics();
    let found = |phi, start| {
        let method = move |problem, sweeps| {
            let SweepSettings { optimize, optimize_every, optimize_after, .. } = sweeps;
            let (rounds, burn_in, thin) = (800, 500, 50);
            let priors = LdaSamplerSettings { optimize, optimize_every, optimize_after, ..settings(rounds, burn_in, thin, phi) };
            Lda::new(problem, priors)
        };
        let recording = made_run(method, start, OptimizePriors::Both, 4);
        let column = |name| recording.column("history", name);
        assert!(column("alpha")[..20].iter().all(|&alpha| alpha == start.0));
        (off(&column("alpha"), truth.alpha), off(&column("beta"), truth.beta))
    };
    for start in [(5.0, 3.0), (0.01, 0.01)] {
        let (alpha, beta) = found(PhiUpdate::Auto, start);
        // Measured with two seeds: at most 1.07 and 1.14.
        assert!(alpha < 1.15 && beta < 1.2, "{alpha} {beta} from {start:?}");
        // The control: the approximation shows.
        let (alpha, collapsed) = found(PhiUpdate::Collapsed, start);
        assert!(alpha < 1.25 && collapsed < 1.6 && collapsed > 1.1 * beta, "{alpha} {collapsed} {beta} from {start:?}");
    }
    let fixed = |problem, _| Lda::new(problem, settings(30, 10, 5, PhiUpdate::Auto));
    assert!(made_run(fixed, (5.0, 3.0), OptimizePriors::Both, 4).column("history", "alpha").is_empty());
}

/// A document of 40 tokens: the topic of each, in the order of its words; and the counts of words. The α of its three topics are 1.5, 0.4 and
/// 0.1. Words 0 to 2 are of topic 0, 3 to 5 of topic 1, the others of topic 2, but a token in forty is of any word.
fn unequal(number: u64) -> (Vec<u32>, Vec<u32>) {
    let mut stream = Seed(3).stream(Who::Run, number, Purpose::Synthetic);
    let gammas = [1.5, 0.4, 0.1].map(|alpha| Gamma::new(alpha, 1.0).unwrap().sample(&mut stream));
    let mut tokens: Vec<(u32, u32)> = (0..40)
        .map(|_| {
            let mut point = stream.random::<f64>() * gammas.iter().sum::<f64>();
            let mut is_here = |gamma: &f64| {
                point -= gamma;
                point < 0.0
            };
            let topic = gammas.iter().position(&mut is_here).unwrap_or(2) as u32;
            let is_noise = stream.random_range(0..40) == 0;
            (if is_noise { stream.random_range(0..9) } else { 3 * topic + stream.random_range(0..3) }, topic)
        })
        .collect();
    tokens.sort_unstable();
    let mut counts = vec![0; WORDS as usize];
    tokens.iter().for_each(|&(word, _)| counts[word as usize] += 1);
    (tokens.into_iter().map(|(_, topic)| topic).collect(), counts)
}

#[test]
fn alphas_of_topics_are_those_of_generated_documents_and_seed_words_choose_their_order() {
    let all: Vec<(Vec<u32>, Vec<u32>)> = (0..400).map(unequal).collect();
    let mut documents = Documents::new(WORDS);
    all.iter().for_each(|(_, counts)| documents.push(&(0..WORDS).collect::<Vec<_>>(), counts));
    let topics: Vec<u32> = all.iter().flat_map(|(topics, _)| topics.clone()).collect();
    let statistics = PriorStatistics::for_asymmetric_alpha(Tokens::from_documents(&documents).spans(), &topics, 3);
    let by_true_topics = (0..300).fold(Alpha::Symmetric(0.5), |alpha, _| statistics.update_alphas(&alpha, 3));
    let truth: Vec<f64> = by_true_topics.of_topics(3).collect();
    let found = |seed_words: SeedWords| -> Vec<f64> {
        let optimize = OptimizePriors::Asymmetric;
        let documents = documents.clone();
        let mut problem = problem(1, 3, 0.5, 0.05);
        problem.documents = Arc::new(move |_| Ok(Box::new(documents.clone()) as Box<dyn DocumentSource>));
        problem.seed_words = Arc::new(seed_words);
        let estimated = LdaSamplerSettings { optimize, optimize_after: 20, ..settings(300, 100, 1, PhiUpdate::Drawn) };
        let draws = run(Lda::new(problem, estimated), 6).values::<f32>("posterior");
        let size = 3 * WORDS as usize + 3;
        let mean = |topic: usize| draws.chunks_exact(size).map(|draw| f64::from(draw[size - 3 + topic])).sum::<f64>() / 200.0;
        (0..3).map(mean).collect()
    };
    // Topic 2 of the documents is seeded as the first, topic 0 as the last.
    let reversed = found(SeedWords::new([(8, 0), (4, 1), (0, 2)], 20));
    let same = found(SeedWords::new([(0, 0), (4, 1), (8, 2)], 20));
    let off = |found: f64, truth: f64| (found / truth).ln().abs();
    for topic in 0..3 {
        let off = [off(reversed[2 - topic], truth[topic]), off(same[topic], truth[topic])];
        assert!(off.iter().all(|off| *off < 0.15), "{off:?}: {reversed:?} {same:?} {truth:?}");
    }
    // Negative control: in the other order the numbers are others.
    assert!(off(reversed[0], same[0]) > 1.0, "{reversed:?} {same:?}");
}
