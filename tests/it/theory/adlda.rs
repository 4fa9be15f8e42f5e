//! AD-LDA, asynchronous LDA and topic D-SGLD against exact theory and against serial samplers.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::recording::{Recording, run, value};
use mpibayes::cluster::record::Row;
use mpibayes::cluster::simulate::{self, Cluster};
use mpibayes::cluster::{BoxError, JobOptions, Method, threads};
use mpibayes::kernels::langevin::StepSize;
use mpibayes::lda::{
    Completion, DocumentGibbs, DocumentSource, Documents, HeldOut, PriorStatistics, Sweeps, Tokens, TopicCounts, WordSweep,
    WordTable, dense_sweep, draw_topics_sequentially,
};
use mpibayes::methods::chains::dsgld::{Dsgld, DsgldSettings, Trajectory};
use mpibayes::methods::topics::adlda::AdLda;
use mpibayes::methods::topics::async_lda::AsyncLda;
use mpibayes::methods::topics::{
    EVALUATION_SWEEPS, Lda, LdaSamplerSettings, OptimizePriors, PhiUpdate, Sgrld, SweepBy, SweepSettings, TopicEvaluation,
    TopicProblem,
};
use mpibayes::methods::{Posterior, TopicArray, TopicPosterior, WithEvaluation};
use mpibayes::random::{Purpose, Seed, Who};
use rand::RngExt;
use rand_distr::{Distribution, Gamma};
use std::sync::Arc;

const WORDS: u32 = 9;

/// Documents of a corpus with two topics.
fn corpus() -> Vec<Vec<u32>> {
    let mut random = Seed(5).stream(Who::Run, 0, Purpose::Synthetic);
    let mut document = |number: u32| {
        let mut counts = vec![0; WORDS as usize];
        for _ in 0..20 {
            // The first or the second half of the vocabulary, mostly.
            let second = (number % 2 == 1) != (random.random::<f64>() < 0.1);
            counts[random.random_range(0..4_usize) + if second { 5 } else { 0 }] += 1;
        }
        counts
    };
    (0..24).map(&mut document).collect()
}

/// The corpus on a number of agents, document after document.
fn problem(agents: u32, topics: u32, alpha: f64, beta: f64) -> TopicProblem {
    let documents = move |agent: u32| {
        let words: Vec<u32> = (0..WORDS).collect();
        let mut mine = Documents::new(WORDS);
        for (_, counts) in (0..).zip(corpus()).filter(|(number, _)| number % agents == agent) {
            mine.push(&words, &counts);
        }
        Ok(Box::new(mine) as Box<dyn DocumentSource>)
    };
    TopicProblem { agents, vocabulary: WORDS, topics, alpha, beta, seed_words: Arc::default(), documents: Arc::new(documents) }
}

/// Gibbs sweeps with fixed priors.
fn sweeps(rounds: u64, burn_in: u64, thin: u64, by: SweepBy) -> SweepSettings {
    SweepSettings { rounds, burn_in, thin, sweep_by: by, ..SweepSettings::default() }
}

/// Sweeps of `lda` with φ at its mean, of which every one is a draw.
fn collapsed(rounds: u64, burn_in: u64) -> LdaSamplerSettings {
    LdaSamplerSettings { rounds, burn_in, thin: 1, phi: PhiUpdate::Collapsed, ..LdaSamplerSettings::default() }
}

#[test]
fn adlda_with_one_agent_is_collapsed_gibbs_sampling_bit_for_bit() {
    for by in [SweepBy::Document, SweepBy::Word] {
        let problem = problem(1, 3, 0.2, 0.1);
        let recording = run(AdLda { problem: problem.clone(), settings: sweeps(6, 0, 1, by) }, 12);
        let tokens = Tokens::from_documents(&problem.open(0).unwrap());
        let stream = |step, purpose| Seed(12).stream(Who::Agent(0), step, purpose);
        let mut topics = tokens.draw_topics(3, |document| stream(document, Purpose::Initial));
        let again = |document| stream(1 << 63 | document, Purpose::Initial);
        draw_topics_sequentially(&tokens, 8, &mut topics, &mut TopicCounts::new(WORDS, 3), 0.2, 0.1, again);
        let mut counts = TopicCounts::new(WORDS, 3);
        counts.add_tokens(tokens.words(), &topics);
        let mut by_word = WordSweep::new(&tokens, 3);
        let mut serial: Vec<f32> = Vec::new();
        for sweep in 0..6 {
            let at = |number: u64| stream(sweep << 32 | number, Purpose::Topics);
            match by {
                SweepBy::Document => dense_sweep(&tokens, &mut topics, &mut counts, 0.2, 0.1, at),
                SweepBy::Word => by_word.sweep(&mut topics, &mut counts, 0.2, 0.1, |word| at(u64::from(word))),
            }
            serial.extend(counts.phi::<f32>(0.1));
        }
        assert_eq!(recording.values::<f32>("posterior"), serial);
        // The control: two agents sweep with counts that are not of this moment.
        let two = run(AdLda { problem: self::problem(2, 3, 0.2, 0.1), settings: sweeps(6, 0, 1, by) }, 12);
        assert_ne!(two.values::<f32>("posterior"), serial);
    }
}

/// A serial agent, without a cluster.
struct Serial {
    id: u32,
    tokens: Tokens,
    topics: Vec<u32>,
    by_word: WordSweep,
    by: SweepBy,
}

/// K, α and β of the serial agents.
const PRIORS: (u32, f64, f64) = (3, 0.2, 0.1);

impl Serial {
    /// One of the agents that share the corpus, with its first topics.
    fn new(id: u32, agents: u32, by: SweepBy) -> Self {
        let (k, alpha, beta) = PRIORS;
        let tokens = Tokens::from_documents(&problem(agents, k, alpha, beta).open(id).unwrap());
        let stream = |number| Seed(12).stream(Who::Agent(id), number, Purpose::Initial);
        let mut topics = tokens.draw_topics(k, stream);
        if id == 0 {
            // Of 24 documents a third.
            let mut none = TopicCounts::new(WORDS, k as usize);
            draw_topics_sequentially(&tokens, 8, &mut topics, &mut none, alpha, beta, |document| stream(1 << 63 | document));
        }
        let by_word = WordSweep::new(&tokens, k as usize);
        Self { id, tokens, topics, by_word, by }
    }

    /// How many of its tokens have each topic, word by word.
    fn counts(&self) -> Vec<i32> {
        let mut counts = TopicCounts::new(WORDS, PRIORS.0 as usize);
        counts.add_tokens(self.tokens.words(), &self.topics);
        counts.into_counts()
    }

    /// Sweeps with a copy of these counts; gives the copy.
    fn sweep(&mut self, counts: &[i32], number: u64) -> Vec<i32> {
        let (k, alpha, beta) = PRIORS;
        let mut copy = TopicCounts::from_counts(counts.to_vec(), k as usize);
        let stream = |at: u64| Seed(12).stream(Who::Agent(self.id), number << 32 | at, Purpose::Topics);
        match self.by {
            SweepBy::Document => dense_sweep(&self.tokens, &mut self.topics, &mut copy, alpha, beta, stream),
            SweepBy::Word => self.by_word.sweep(&mut self.topics, &mut copy, alpha, beta, |word| stream(u64::from(word))),
        }
        copy.into_counts()
    }
}

fn phi(counts: &[i32]) -> Vec<f32> {
    TopicCounts::from_counts(counts.to_vec(), PRIORS.0 as usize).phi::<f32>(PRIORS.2)
}

/// n + Σ_s (n^s − n).
fn merged(counts: &[i32], copies: &[Vec<i32>]) -> Vec<i32> {
    let each = |(at, &count): (usize, &i32)| count + copies.iter().map(|copy| copy[at] - count).sum::<i32>();
    counts.iter().enumerate().map(each).collect()
}

#[test]
fn adlda_with_several_agents_adds_the_changes_of_sweeps_on_copies_bit_for_bit() {
    let (k, alpha, beta) = PRIORS;
    for (agents, by) in [(2, SweepBy::Document), (2, SweepBy::Word), (3, SweepBy::Word)] {
        let mut all: Vec<Serial> = (0..agents).map(|id| Serial::new(id, agents, by)).collect();
        let zeros = vec![0; (WORDS * k) as usize];
        let mut counts = merged(&zeros, &all.iter().map(Serial::counts).collect::<Vec<_>>());
        let mut serial = Vec::new();
        for number in 0..6 {
            let copies: Vec<Vec<i32>> = all.iter_mut().map(|agent| agent.sweep(&counts, number)).collect();
            counts = merged(&counts, &copies);
            serial.extend(phi(&counts));
        }
        let settings = sweeps(6, 0, 1, by);
        let recording = run(AdLda { problem: problem(agents, k, alpha, beta), settings }, 12);
        assert_eq!(recording.values::<f32>("posterior"), serial, "{agents} agents");
        // What is added up are the tokens as they are.
        assert_eq!(counts, merged(&zeros, &all.iter().map(Serial::counts).collect::<Vec<_>>()));
    }
}

/// Two agents that need 0.1 s and 0.237 s for a sweep: the first finishes all of its sweeps while the other makes its third.
#[test]
fn async_lda_with_two_agents_adds_the_changes_of_each_to_the_counts_that_it_was_sent() {
    let (k, alpha, beta) = PRIORS;
    let mut all = [0, 1].map(|id| Serial::new(id, 2, SweepBy::Word));
    let zeros = vec![0; (WORDS * k) as usize];
    let counted = |all: &[Serial]| merged(&zeros, &all.iter().map(Serial::counts).collect::<Vec<_>>());
    let mut counts = counted(&all);
    // What each knows, and how often it has swept.
    let (mut known, mut swept) = ([counts.clone(), counts.clone()], [0, 0]);
    let mut serial = Vec::new();
    for (number, agent) in (1..).zip([0, 0, 1, 0, 0, 1, 0, 0, 1, 1, 1, 1]) {
        let copy = all[agent].sweep(&known[agent], swept[agent]);
        counts.iter_mut().zip(copy.iter().zip(&known[agent])).for_each(|(count, (copy, knew))| *count += copy - knew);
        (known[agent], swept[agent]) = (counts.clone(), swept[agent] + 1);
        if number % 2 == 0 {
            serial.extend(phi(&counts));
        }
    }
    assert_eq!(swept, [6, 6]);
    let cluster = Cluster {
        ranks: 2,
        task: Some(Box::new(|agent, _| [0.1, 0.237][agent as usize])),
        after_report: None,
        latency: 1e-4,
        bandwidth: 1e8,
    };
    let settings = sweeps(6, 0, 1, SweepBy::Word);
    let method = AsyncLda { problem: problem(2, k, alpha, beta), settings };
    let mut recording = Recording::default();
    simulate::run(Arc::new(method), JobOptions::new(Seed(12)), &cluster, None, &mut recording).unwrap();
    let draws = recording.values::<f32>("posterior");
    assert_eq!(draws, serial);
    // In the end the server has counted the topics that tokens have.
    assert!(draws.ends_with(&phi(&counted(&all))));
}

/// One agent never waits, and there are no other changes to add.
#[test]
fn async_lda_with_one_agent_is_adlda() {
    let problem = problem(1, 3, 0.2, 0.1);
    let mut draws = Vec::new();
    for optimize in [OptimizePriors::None, OptimizePriors::Both] {
        let settings = SweepSettings { optimize, optimize_every: 2, optimize_after: 1, ..sweeps(6, 1, 2, SweepBy::Word) };
        let synchronous = run(AdLda { problem: problem.clone(), settings }, 12);
        let asynchronous = run(AsyncLda { problem: problem.clone(), settings }, 12);
        assert_eq!(asynchronous.draws, synchronous.draws);
        assert_eq!(asynchronous.draws.len(), 2);
        assert_eq!(asynchronous.rows.len(), 6);
        assert_eq!(asynchronous.column("history", "alpha"), synchronous.column("history", "alpha"));
        draws.push(asynchronous.draws);
    }
    // The control: priors change what is drawn.
    assert_ne!(draws[0], draws[1]);
}

/// How well two topics separate the halves of the vocabulary, from draws of φ (W × K): 1 if each topic has a half of its own.
fn halves(phi: &[f32]) -> f64 {
    let mass = |topic: usize, words: std::ops::Range<usize>| words.map(|word| f64::from(phi[word * 2 + topic])).sum::<f64>();
    let (one, other) = (mass(0, 0..4), mass(1, 0..4));
    (one - other).abs()
}

/// Nine tenths of a document come from one half of the vocabulary: topics that are found separate the halves.
#[test]
fn both_methods_find_the_topics_with_any_number_of_agents() {
    for agents in [1, 4] {
        let problem = problem(agents, 2, 0.1, 0.1);
        let found =
            run(AdLda { problem: problem.clone(), settings: sweeps(60, 40, 1, SweepBy::Word) }, 3).values::<f32>("posterior");
        let size = 2 * WORDS as usize;
        assert_eq!(found.len(), 20 * size);
        assert!(found.chunks(size).all(|phi| halves(phi) > 0.7), "AD-LDA on {agents} agents");
        let asynchronous = AsyncLda { problem: problem.clone(), settings: sweeps(60, 40, 1, SweepBy::Word) };
        // Agents of very different speed, on a rank each.
        let cluster = Cluster {
            ranks: agents,
            task: Some(Box::new(|agent, _| 0.01 * f64::from(1 + 3 * agent))),
            after_report: None,
            latency: 1e-4,
            bandwidth: 1e8,
        };
        let mut recording = Recording::default();
        simulate::run(Arc::new(asynchronous), JobOptions::new(Seed(3)), &cluster, None, &mut recording).unwrap();
        let found = recording.values::<f32>("posterior");
        assert_eq!(found.len(), 20 * size);
        assert!(found.chunks(size).all(|phi| halves(phi) > 0.7), "Async-LDA on {agents} agents");
        // The control: before the first sweep nothing tells them apart.
        let tokens = Tokens::from_documents(&problem.open(0).unwrap());
        let topics = tokens.draw_topics(2, |document| Seed(1).stream(Who::Run, document, Purpose::Initial));
        let mut counts = TopicCounts::new(WORDS, 2);
        counts.add_tokens(tokens.words(), &topics);
        assert!(halves(&counts.phi::<f32>(0.1)) < 0.4);
    }
}

/// With one topic the posterior is φ ~ Dir(β + n_w) for any shards, if scores are scaled by visit frequencies.
#[test]
fn topic_dsgld_on_unequal_shards_finds_the_dirichlet_posterior() {
    let counts: Vec<f64> = (0..WORDS as usize).map(|word| corpus().iter().map(|counts| f64::from(counts[word])).sum()).collect();
    let tokens: f64 = counts.iter().sum();
    let beta = 2.0;
    let total = tokens + beta * f64::from(WORDS);
    // The first agent has three documents, the second all the others.
    let mut shared = problem(2, 1, 0.1, beta);
    shared.documents = Arc::new(|agent| {
        let words: Vec<u32> = (0..WORDS).collect();
        let mut mine = Documents::new(WORDS);
        for (_, counts) in (0..).zip(corpus()).filter(|&(number, _)| (number < 3) == (agent == 0)) {
            mine.push(&words, &counts);
        }
        Ok(Box::new(mine) as Box<dyn DocumentSource>)
    });
    let means = |correction: bool| -> Vec<Vec<f64>> {
        let settings = DsgldSettings {
            chains: 2,
            rounds: Some(6000),
            trajectory: Trajectory::Same(2.0),
            correction,
            burn_in: Some(2000),
            thin: Some(1),
            ..DsgldSettings::default()
        };
        // Six documents in an update: all of the first agent, and two sevenths of the second.
        let transition = Sgrld::<f64>::new(shared.clone(), 6, StepSize::Constant(2e-3), Sweeps { burn_in: 0, kept: 1 });
        let run = |seed| {
            // With one topic φ is the draw.
            let draws = run(Dsgld { agents: 2, transition: transition.clone(), settings: settings.clone() }, seed)
                .values::<f64>("posterior");
            let mut mean = vec![0.0; WORDS as usize];
            let all = draws.len() as f64 / f64::from(WORDS);
            for phi in draws.chunks(WORDS as usize) {
                mean.iter_mut().zip(phi).for_each(|(mean, phi)| *mean += phi / all);
            }
            mean
        };
        (0..16).map(run).collect()
    };
    // Distances of the means over independent runs from the posterior's, in posterior standard deviations, with their errors.
    let distances = |runs: &[Vec<f64>]| -> Vec<(f64, f64)> {
        let of = |word: usize| {
            let exact = (counts[word] + beta) / total;
            let sd = (exact * (1.0 - exact) / (total + 1.0)).sqrt();
            let each: Vec<f64> = runs.iter().map(|run| (run[word] - exact) / sd).collect();
            let mean = each.iter().sum::<f64>() / 16.0;
            let variance = each.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / 15.0;
            (mean, (variance / 16.0).sqrt())
        };
        (0..WORDS as usize).map(of).collect()
    };
    // Of t with 15 degrees of freedom 5.5 is exceeded 6 times in 100,000; what steps of this size leave is below 0.05 sd.
    let corrected = distances(&means(true));
    assert!(corrected.iter().all(|(mean, error)| mean.abs() < 5.5 * error + 0.05), "{corrected:?}");
    // The control: without it the three documents count as much as the others.
    let uncorrected = distances(&means(false));
    assert!(uncorrected.iter().any(|(mean, error)| mean.abs() > 10.0 * error + 0.5), "{uncorrected:?}");
}

/// With one topic what is predicted is the unigram model of the counts, smoothed by β, of each method and at each round; and what agents
/// evaluator is spread over them.
#[test]
fn one_topic_predicts_what_the_unigram_model_does() {
    let mut counts = vec![0.0; WORDS as usize];
    corpus().iter().for_each(|document| counts.iter_mut().zip(document).for_each(|(sum, count)| *sum += f64::from(*count)));
    let total: f64 = counts.iter().sum::<f64>() + 0.1 * f64::from(WORDS);
    // The second agent has one document, the first none.
    let held_out = |agent: u32| {
        let [mut observed, mut scored] = [Documents::new(WORDS), Documents::new(WORDS)];
        if agent == 1 {
            let words: Vec<u32> = (0..WORDS).collect();
            observed.push(&words, &[1; WORDS as usize]);
            scored.push(&words[..3], &[2, 1, 1]);
        }
        Ok(HeldOut { observed, scored })
    };
    let log: f64 = [2.0, 1.0, 1.0].iter().zip(&counts).map(|(tokens, count)| tokens * f64::ln((count + 0.1) / total)).sum();
    let exact = f64::exp(-log / 4.0);
    let problem = problem(2, 1, 0.2, 0.1);
    let evaluator = evaluator_of(&problem, held_out, 2, 4);
    let settings = sweeps(7, 3, 1, SweepBy::Word);
    let synchronous = WithEvaluation { inner: AdLda { problem: problem.clone(), settings }, evaluator: evaluator.clone() };
    let asynchronous = WithEvaluation { inner: AsyncLda { problem: problem.clone(), settings }, evaluator: evaluator.clone() };
    let fixed = WithEvaluation { inner: Lda::new(problem.clone(), collapsed(7, 3)), evaluator: evaluator.clone() };
    for recording in [run(synchronous, 5), run(asynchronous, 5), run(fixed, 5)] {
        let metrics: Vec<&Row> = recording.table("metrics").collect();
        let column = |name: &str| recording.column("metrics", name);
        assert_eq!(metrics.iter().map(|row| row.step).collect::<Vec<_>>(), [2, 4, 6, 7]);
        // Averages begin with the draws.
        assert_eq!(column("averaged_draws"), [1.0, 1.0, 2.0, 3.0]);
        let all = [column("perplexity"), column("draw_perplexity")].concat();
        // Probabilities are in single precision.
        assert!(all.iter().all(|perplexity| (perplexity / exact - 1.0).abs() < 1e-6), "{all:?} {exact}");
    }
    // The control: of a posterior with another prior, which goes with it.
    let wrong = WithEvaluation { inner: AdLda { problem: TopicProblem { beta: 50.0, ..problem }, settings }, evaluator };
    let last = run(wrong, 5).rows.into_iter().rfind(|row| row.table == "metrics").unwrap().values[1].1;
    assert!((last / exact - 1.0).abs() > 1e-3, "{last} {exact}");
}

/// Evaluates every `every` rounds on held-out documents of each agent. Averages start at a round.
fn evaluator_of(
    problem: &TopicProblem,
    held_out: impl Fn(u32) -> Result<HeldOut, BoxError> + Send + Sync + 'static,
    every: u64,
    draws_from: u64,
) -> TopicEvaluation {
    let (problem, held_out) = (problem.clone(), Arc::new(held_out));
    TopicEvaluation {
        every,
        problem,
        held_out,
        sweeps: EVALUATION_SWEEPS,
        posterior: TopicPosterior { array: TopicArray::Counts, draws_from, has_alphas: false },
    }
}

#[test]
fn agents_evaluate_the_topics_of_the_requested_round() {
    // The second agent has two documents, of a half of the vocabulary each, the first none.
    let held_out = |agent: u32| {
        let [mut observed, mut scored] = [Documents::new(WORDS), Documents::new(WORDS)];
        if agent == 1 {
            for half in [[0, 1, 2, 3], [5, 6, 7, 8]] {
                observed.push(&half, &[2, 1, 0, 1]);
                scored.push(&half, &[1, 0, 3, 1]);
            }
        }
        Ok(HeldOut { observed, scored })
    };
    let problem = problem(2, 3, 0.2, 0.1);
    let size = problem.size();
    let evaluator = evaluator_of(&problem, held_out, 2, 1);
    let settings = sweeps(7, 0, 1, SweepBy::Word);
    let synchronous = WithEvaluation { inner: AdLda { problem: problem.clone(), settings }, evaluator: evaluator.clone() };
    let asynchronous = WithEvaluation { inner: AsyncLda { problem: problem.clone(), settings }, evaluator: evaluator.clone() };
    let fixed = WithEvaluation { inner: Lda::new(problem, collapsed(7, 0)), evaluator };
    for recording in [run(synchronous, 5), run(asynchronous, 5), run(fixed, 5)] {
        let draws = recording.values::<f32>("posterior");
        assert_eq!(draws.len(), 7 * size);
        // How well the draw of a round completes the documents with the random numbers of another.
        let completed = |drawn: u64, round: u64| {
            let phi = &draws[(drawn as usize - 1) * size..drawn as usize * size];
            let (mut gibbs, mut table) = (DocumentGibbs::<f32>::new(3, 0.2), WordTable::new(WORDS, 3));
            let row = |word: u32, out: &mut [f32]| out.copy_from_slice(&phi[3 * word as usize..3 * word as usize + 3]);
            let stream = |document| Seed(5).stream(Who::Agent(1), round << 40 | document, Purpose::Completion);
            let held_out = held_out(1).unwrap();
            Completion::default().add(&held_out, &mut gibbs, &mut table, EVALUATION_SWEEPS, row, stream).perplexity()
        };
        let metrics: Vec<&Row> = recording.table("metrics").collect();
        assert_eq!(metrics.iter().map(|row| row.step).collect::<Vec<_>>(), [2, 4, 6, 7]);
        for row in metrics {
            let judged = value(row, "draw_perplexity");
            let exact = completed(row.step, row.step);
            // Probabilities are in single precision.
            assert!((judged / exact - 1.0).abs() < 1e-5, "round {}: {judged} {exact}", row.step);
            // The control: of the round before.
            let before = completed(row.step - 1, row.step);
            assert!((judged / before - 1.0).abs() > 1e-4, "round {}: {judged} {before}", row.step);
        }
    }
}

#[test]
fn invalid_problems_are_refused() {
    let wrong = TopicProblem { vocabulary: WORDS + 1, ..problem(2, 2, 0.1, 0.1) };
    let mut recording = Recording::default();
    let method = AdLda { problem: wrong, settings: sweeps(1, 0, 1, SweepBy::Word) };
    let fault = threads::run(Arc::new(method), JobOptions::new(Seed(1)), None, &mut recording).unwrap_err().to_string();
    assert!(fault.contains("the vocabulary of the documents has 9 words, that of the topics has 10"), "{fault}");
    let method = AdLda { problem: problem(2, 2, 0.0, 0.1), settings: sweeps(1, 0, 1, SweepBy::Word) };
    let fault =
        threads::run(Arc::new(method), JobOptions::new(Seed(1)), None, &mut Recording::default()).unwrap_err().to_string();
    assert!(fault.contains("alpha = 0: must be a finite number above 0"), "{fault}");
    // The count of a word over all sweeps must fit into its type.
    let sweeps = Sweeps { burn_in: 0, kept: 1 << 30 };
    let transition = Sgrld::<f64>::new(problem(2, 2, 0.1, 0.1), 6, StepSize::Constant(1e-3), sweeps);
    let settings = DsgldSettings { rounds: Some(1), burn_in: Some(0), thin: Some(1), ..DsgldSettings::default() };
    let fault = threads::run(
        Arc::new(Dsgld { agents: 2, transition, settings }),
        JobOptions::new(Seed(1)),
        None,
        &mut Recording::default(),
    );
    let fault = fault.unwrap_err().to_string();
    assert!(fault.contains("minibatches of 6 documents") && fault.contains("exceed the maximum of 4294967295"), "{fault}");
}

const TRUE_ALPHA: f64 = 0.3;
const TRUE_BETA: f64 = 0.2;
const MADE_WORDS: u32 = 60;
const MADE_TOPICS: usize = 5;

/// The document with this number, of 80 tokens: topics ~ Dir(0.3), of words ~ Dir(0.2). Gives how often it has each word, and the word and
/// topic of each token.
fn made(number: u64) -> (Vec<u32>, Vec<(u32, u32)>) {
    let stream = |who, step| Seed(21).stream(who, step, Purpose::Synthetic);
    let running = |shape: f64, len: usize, random: &mut _| -> Vec<f64> {
        let gamma = Gamma::new(shape, 1.0).unwrap();
        let mut sum = 0.0;
        let mut running: Vec<f64> = Vec::new();
        running.extend((0..len).map(|_| {
            sum += gamma.sample(random);
            sum
        }));
        running.iter().map(|part| part / sum).collect()
    };
    let topic = |topic: usize| running(TRUE_BETA, MADE_WORDS as usize, &mut stream(Who::Server, topic as u64));
    let topics: Vec<Vec<f64>> = (0..MADE_TOPICS).map(topic).collect();
    let mut random = stream(Who::Run, number);
    let weights = running(TRUE_ALPHA, MADE_TOPICS, &mut random);
    let (mut counts, mut tokens) = (vec![0; MADE_WORDS as usize], Vec::new());
    for _ in 0..80 {
        let mut one_of = |running: &[f64]| {
            let point = random.random::<f64>();
            running.partition_point(|&part| part <= point).min(running.len() - 1)
        };
        let topic = one_of(&weights);
        let word = one_of(&topics[topic]);
        counts[word] += 1;
        tokens.push((word as u32, topic as u32));
    }
    (counts, tokens)
}

/// A run on 600 generated documents on three agents, evaluated on 60 others, of which every fifth word is scored.
pub(super) fn made_run<M: Method<Number = i32>>(
    method: impl Fn(TopicProblem, SweepSettings) -> M,
    priors: (f64, f64),
    optimize: OptimizePriors,
    seed: u64,
) -> Recording
where
    M::Server: Posterior<i32>,
{
    let words: Vec<u32> = (0..MADE_WORDS).collect();
    let all = words.clone();
    let documents = move |agent: u32| {
        let mut mine = Documents::new(MADE_WORDS);
        (0..600).filter(|number| number % 3 == u64::from(agent)).for_each(|number| mine.push(&all, &made(number).0));
        Ok(Box::new(mine) as Box<dyn DocumentSource>)
    };
    let held_out = move |agent: u32| {
        let [mut observed, mut scored] = [Documents::new(MADE_WORDS), Documents::new(MADE_WORDS)];
        for number in (600..660).filter(|number| number % 3 == u64::from(agent)) {
            let part = |is: bool| -> Vec<u32> {
                (0..)
                    .zip(made(number).0)
                    .map(|(word, count): (u64, u32)| if ((word + number) % 5 == 0) == is { count } else { 0 })
                    .collect()
            };
            observed.push(&words, &part(false));
            scored.push(&words, &part(true));
        }
        Ok(HeldOut { observed, scored })
    };
    let problem = TopicProblem {
        agents: 3,
        vocabulary: MADE_WORDS,
        topics: MADE_TOPICS as u32,
        alpha: priors.0,
        beta: priors.1,
        seed_words: Arc::default(),
        documents: Arc::new(documents),
    };
    let settings = SweepSettings { optimize, optimize_every: 5, ..sweeps(200, 150, 50, SweepBy::Word) };
    let evaluator = evaluator_of(&problem, held_out, 10, 151);
    run(WithEvaluation { inner: method(problem, settings), evaluator }, seed)
}

/// Values of the priors of generated documents.
#[derive(Debug)]
pub(super) struct FoundPriors {
    pub alpha: f64,
    pub beta: f64,
}

/// The most likely priors, given the true topics of all tokens.
pub(super) fn by_true_topics() -> FoundPriors {
    let (mut of_documents, mut of_words) = (PriorStatistics::default(), vec![0; MADE_WORDS as usize * MADE_TOPICS]);
    for number in 0..600 {
        let (_, mut tokens) = made(number);
        // As documents have them: by their words.
        tokens.sort_unstable();
        let mut document = Documents::new(MADE_WORDS);
        document.push(&(0..MADE_WORDS).collect::<Vec<_>>(), &made(number).0);
        let topics: Vec<u32> = tokens.iter().map(|&(_, topic)| topic).collect();
        of_documents.merge(&PriorStatistics::for_symmetric_alpha(
            Tokens::from_documents(&document).spans(),
            &topics,
            MADE_TOPICS,
        ));
        tokens.iter().for_each(|&(word, topic)| of_words[word as usize * MADE_TOPICS + topic as usize] += 1);
    }
    let of_topics = PriorStatistics::for_beta(&of_words, MADE_TOPICS, 0..MADE_TOPICS);
    let found = |statistics: &PriorStatistics, outcomes| (0..50).fold(1.0, |prior, _| statistics.update_prior(prior, outcomes));
    FoundPriors { alpha: found(&of_documents, MADE_TOPICS), beta: found(&of_topics, MADE_WORDS as usize) }
}

/// The factor between the mean of the last values and the truth.
pub(super) fn off(column: &[f64], truth: f64) -> f64 {
    let last = &column[column.len() - 50..];
    (last.iter().sum::<f64>() / 50.0 / truth).ln().abs().exp()
}

#[test]
fn optimized_priors_find_those_of_the_generated_documents_from_far_away() {
    let adlda = |problem, settings| AdLda { problem, settings };
    let async_lda = |problem, settings| AsyncLda { problem, settings };
    let truth = by_true_topics();
    assert!(off(&[truth.alpha; 50], TRUE_ALPHA) < 1.1 && off(&[truth.beta; 50], TRUE_BETA) < 1.1, "{truth:?}");
    for start in [(5.0, 3.0), (0.01, 0.01)] {
        for recording in [made_run(adlda, start, OptimizePriors::Both, 4), made_run(async_lda, start, OptimizePriors::Both, 4)] {
            let (alpha, beta) = (recording.column("history", "alpha"), recording.column("history", "beta"));
            // Up to the first estimate they are what they were.
            assert!(alpha.len() == 200 && alpha[..20].iter().all(|&alpha| alpha == start.0), "{alpha:?}");
            let (alpha, beta) = (off(&alpha, truth.alpha), off(&beta, truth.beta));
            // Tokens that stray into topics that do not have their word make β look larger.
            assert!(alpha < 1.25 && beta < 1.6, "{alpha} {beta} from {start:?}");
        }
    }
    // With the other prior in its place, one is found; and the other stays.
    let alone = made_run(adlda, (5.0, TRUE_BETA), OptimizePriors::Alpha, 4);
    assert!(off(&alone.column("history", "alpha"), TRUE_ALPHA) < 1.25);
    assert!(alone.column("history", "beta").iter().all(|&beta| beta == TRUE_BETA));
    // The control: priors that stay far away predict worse, and those that leave predict as well as the true ones.
    let perplexity = |priors, optimize| *made_run(adlda, priors, optimize, 4).column("metrics", "perplexity").last().unwrap();
    let (fixed, found) = (perplexity((5.0, 3.0), OptimizePriors::None), perplexity((5.0, 3.0), OptimizePriors::Both));
    let best = perplexity((TRUE_ALPHA, TRUE_BETA), OptimizePriors::None);
    assert!(found < 0.97 * fixed && (found / best - 1.0).abs() < 0.01, "{fixed} {found} {best}");
    assert!(made_run(adlda, (5.0, 3.0), OptimizePriors::None, 4).column("history", "alpha").is_empty());
}
