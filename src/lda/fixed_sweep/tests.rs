//! Sweeps with fixed topics against enumeration of all topic assignments, and with equal bits on all SIMD levels, threads and blocks.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::lda::{Documents, Residence, SeedWords};
use crate::random::{Purpose, Seed, Stream, Who};
use rand::RngExt;
use rayon::iter::IntoParallelIterator;

fn stream(step: u64, purpose: Purpose) -> Stream {
    Seed(6).stream(Who::Run, step, purpose)
}

/// Two documents of three tokens.
fn tiny() -> TokenBlocks {
    let mut documents = Documents::new(3);
    documents.push(&[0, 1], &[2, 1]);
    documents.push(&[1, 2], &[1, 2]);
    TokenBlocks::new(&documents, 2, Residence::Memory).unwrap()
}

const WORDS: [usize; 6] = [0, 0, 1, 1, 2, 2];

/// The number of an assignment of two topics to six tokens, without regard to which topic is first.
fn partition(topics: &[u16]) -> usize {
    topics[1..].iter().fold(0, |number, &topic| 2 * number + usize::from(topic != topics[0]))
}

/// The priors of two topics: α of each, β, and pseudo-counts of seed words.
#[derive(Clone, Debug)]
struct TestPriors {
    alphas: [f64; 2],
    beta: f64,
    seeds: SeedWords,
}

impl TestPriors {
    fn symmetric(alpha: f64, beta: f64) -> Self {
        Self { alphas: [alpha; 2], beta, seeds: SeedWords::default() }
    }

    fn mean_alpha(&self) -> f64 {
        self.alphas.iter().sum::<f64>() / 2.0
    }

    /// The probability of each assignment; its number has a bit for each token.
    fn assignments(&self) -> Vec<f64> {
        let rising = |a: f64, n: usize| (0..n).map(|i| a + i as f64).product::<f64>();
        let mut pseudo_counts = [0; 6];
        self.seeds.add_to(&mut pseudo_counts, 2);
        let probability = |assignment: u16| {
            let topics: Vec<u16> = (0..6).map(|token| assignment >> token & 1).collect();
            let count = |is: &dyn Fn(usize) -> bool| (0..6).filter(|&token| is(token)).count();
            let mut p = 1.0;
            for topic in 0..2 {
                for document in 0..2 {
                    let alpha = self.alphas[usize::from(topic)];
                    p *= rising(alpha, count(&|token| topics[token] == topic && token / 3 == document));
                }
                let mut all = 0.0;
                for word in 0..3 {
                    let prior = self.beta + f64::from(pseudo_counts[2 * word + usize::from(topic)]);
                    p *= rising(prior, count(&|token| topics[token] == topic && WORDS[token] == word));
                    all += prior;
                }
                p /= rising(all, count(&|token| topics[token] == topic));
            }
            p
        };
        let probabilities: Vec<f64> = (0..64).map(probability).collect();
        let all: f64 = probabilities.iter().sum();
        probabilities.iter().map(|p| p / all).collect()
    }

    /// The posterior probability of each partition.
    fn partitions(&self) -> Vec<f64> {
        let mut probabilities = vec![0.0; 32];
        for (assignment, p) in (0_u16..).zip(self.assignments()) {
            let topics: Vec<u16> = (0..6).map(|token| assignment >> token & 1).collect();
            probabilities[partition(&topics)] += p;
        }
        probabilities
    }
}

/// The number of an assignment.
fn assignment(topics: &[u16]) -> usize {
    (0..).zip(topics).map(|(token, &topic)| usize::from(topic) << token).sum()
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phi {
    Drawn,
    Mean,
}

const RUNS: usize = 300;
const KEPT: u64 = 200;

/// The frequency of each outcome, such as an assignment, in each of some independent runs.
fn frequencies(phi: Phi, form: DocumentForm, priors: &TestPriors, outcome: fn(&[u16]) -> usize) -> Vec<Vec<f64>> {
    let (blocks, beta, alpha) = (tiny(), priors.beta, priors.mean_alpha());
    let run = |run: usize| {
        let (mut table, mut counts) = (TopicTable::new(3, 2), vec![0; 6]);
        table.set_relative_alpha(priors.alphas.iter().map(|own| own / alpha));
        let mut topics: Vec<u16> = (0..6).map(|token| (run >> token & 1) as u16).collect();
        blocks.count(&topics, 2, &mut counts);
        priors.seeds.add_to(&mut counts, 2);
        let mut frequencies = vec![0.0; 64];
        for sweep in 0..KEPT + 50 {
            let address = (run as u64) << 20 | sweep;
            match phi {
                Phi::Drawn => table.draw(
                    &counts,
                    beta,
                    |word| stream(address << 10 | word, Purpose::Topics),
                    |topic| stream(address << 10 | 1 << 9 | topic, Purpose::Topics),
                ),
                Phi::Mean => table.set_mean(&counts, beta, 0.0),
            }
            counts.fill(0);
            let key = stream(address, Purpose::Initial).random();
            blocks.sweep_as(form, &mut topics, FixedSweep { table: &table, alpha, key, first_document: 0 }, &mut counts);
            priors.seeds.add_to(&mut counts, 2);
            if sweep >= 50 {
                frequencies[outcome(&topics)] += 1.0 / KEPT as f64;
            }
        }
        frequencies
    };
    (0..RUNS).into_par_iter().map(run).collect()
}

/// The mean square of the deviations from exact values in standard errors, the total variation, and the sum of the standard errors.
fn compare(runs: &[Vec<f64>], exact: &[f64]) -> (f64, f64, f64) {
    let n = runs.len() as f64;
    let (mut squares, mut variation, mut errors) = (0.0, 0.0, 0.0);
    for (at, exact) in exact.iter().enumerate() {
        let mean = runs.iter().map(|run| run[at]).sum::<f64>() / n;
        let variance = runs.iter().map(|run| (run[at] - mean).powi(2)).sum::<f64>() / (n - 1.0);
        // A partition that was never drawn has the error of one that was drawn once.
        let error = (variance / n).sqrt().max(1.0 / (n * KEPT as f64));
        squares += ((mean - exact) / error).powi(2);
        variation += (mean - exact).abs() / 2.0;
        errors += error;
    }
    (squares / exact.len() as f64, variation, errors)
}

/// The mean of 31 squares with their correlations has a standard deviation of 0.25 to 0.4: a correct sampler exceeds 3 for less than one
/// seed in ten thousand, and a total variation of the sum of all standard errors (2.5 times its expectation) more rarely.
#[test]
fn drawn_topics_have_the_enumerated_posterior_and_collapsed_ones_do_not() {
    for (alpha, beta) in [(0.5, 0.7), (0.1, 0.1), (1.0, 0.05), (2.0, 1.5), (0.3, 0.01)] {
        let priors = TestPriors::symmetric(alpha, beta);
        let exact = priors.partitions();
        for form in [DocumentForm::List, DocumentForm::Dense] {
            let (squares, variation, errors) = compare(&frequencies(Phi::Drawn, form, &priors, partition), &exact);
            assert!(squares < 3.0 && variation < errors, "{form:?} {alpha} {beta}: {squares} {variation} {errors}");
            // Negative control: φ at its mean is a sampler of another distribution.
            let (squares, variation, errors) = compare(&frequencies(Phi::Mean, form, &priors, partition), &exact);
            assert!(squares > 30.0 && variation > 4.0 * errors, "{form:?} {alpha} {beta}: {squares} {variation} {errors}");
        }
    }
}

/// The mean of 64 squares has a standard deviation of 0.2 to 0.3. The limits are those of the test above.
#[test]
fn topics_with_their_own_alpha_and_seed_words_have_the_enumerated_posterior() {
    // Topic 1 has pseudo-counts of word 2, topic 0 of word 0.
    for (alphas, beta, seeds) in [
        ([0.9, 0.2], 0.4, SeedWords::default()),
        ([0.5, 0.5], 0.3, SeedWords::new([(2, 1), (0, 0), (2, 1)], 2)),
        ([0.1, 1.5], 0.05, SeedWords::new([(2, 1)], 1)),
    ] {
        let priors = TestPriors { alphas, beta, seeds };
        let exact = priors.assignments();
        for form in [DocumentForm::List, DocumentForm::Dense] {
            let runs = frequencies(Phi::Drawn, form, &priors, assignment);
            let (squares, variation, errors) = compare(&runs, &exact);
            assert!(squares < 3.0 && variation < errors, "{form:?} {priors:?}: {squares} {variation} {errors}");
            // Negative control: topics with the same priors.
            let same = TestPriors::symmetric(priors.mean_alpha(), beta).assignments();
            let (squares, variation, errors) = compare(&runs, &same);
            assert!(squares > 30.0 && variation > 4.0 * errors, "{form:?} {priors:?}: {squares} {variation} {errors}");
        }
    }
}

/// Documents of 0 to about `longest` tokens, their topics with some that are missing, and counts of other tokens.
fn corpus(topics: usize, longest: u32, random: &mut Stream) -> (Documents, Vec<u16>, Vec<i32>) {
    let mut documents = Documents::new(60);
    for _ in 0..40 {
        let length = (f64::from(longest) * random.random::<f64>().powi(3)) as u32;
        let mut counts = vec![0; 60];
        (0..length).for_each(|_| counts[(60.0 * random.random::<f64>().powi(2)) as usize] += 1);
        documents.push(&(0..60).collect::<Vec<_>>(), &counts);
    }
    let assigned = (0..documents.tokens()).map(|_| random.random_range(0..=topics) as u16).collect();
    let counts = (0..60 * topics).map(|_| (random.random::<f64>().powi(12) * 30.0) as i32).collect();
    (documents, assigned, counts)
}

fn tables(counts: &[i32], topics: usize) -> [TopicTable; 2] {
    let [mut mean, mut drawn] = [TopicTable::new(60, topics), TopicTable::new(60, topics)];
    drawn.set_relative_alpha((0..topics).map(|topic| 0.3 + topic as f64 / topics as f64));
    mean.set_mean(counts, 0.05, 3.0);
    let word_stream = |word| stream(word, Purpose::Topics);
    drawn.draw(counts, 0.05, word_stream, |topic| stream(1 << 40 | topic, Purpose::Topics));
    [mean, drawn]
}

#[test]
fn all_levels_have_the_same_bits() {
    let mut random = stream(1, Purpose::Synthetic);
    for (topics, longest) in [(1, 20), (2, 9), (15, 60), (16, 40), (100, 300), (1000, 900)] {
        let (documents, assigned, counts) = corpus(topics, longest, &mut random);
        let blocks = TokenBlocks::with_block_size(&documents, topics, 100, Residence::Memory).unwrap();
        for table in tables(&counts, topics) {
            let sweep = FixedSweep { table: &table, alpha: 0.1, key: random.random(), first_document: 7 };
            for form in [DocumentForm::List, DocumentForm::Dense, DocumentForm::ByLength] {
                let on = |level: usize| {
                    let (mut swept, mut new_topics) = (assigned.clone(), Vec::new());
                    let (topics, new_topics, scratch) = (&mut swept, &mut new_topics, &mut Scratch::default());
                    let block = &blocks.blocks[0];
                    vector::on_level(level, BlockSweep { block, sweep, form, topics, new_topics, scratch });
                    swept
                };
                let first = on(0);
                assert!(first.iter().all(|&topic| usize::from(topic) < topics));
                assert!((1..vector::level_count()).all(|level| on(level) == first), "{topics} topics, {form:?}");
            }
        }
    }
}

#[test]
fn blocks_threads_and_sets_of_documents_do_not_change_bits() {
    let mut random = stream(2, Purpose::Synthetic);
    let topics = 30;
    let (documents, assigned, counts) = corpus(topics, 120, &mut random);
    let table = &tables(&counts, topics)[0];
    let key = random.random();
    let swept = |documents: &Documents, assigned: &[u16], block_size: usize, threads: usize, first_document: u64| {
        let blocks = TokenBlocks::with_block_size(documents, topics, block_size, Residence::Memory).unwrap();
        let (mut swept, mut counted, mut counted_again) = (assigned.to_vec(), vec![0; 60 * topics], vec![0; 60 * topics]);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let sweep = FixedSweep { table, alpha: 0.2, key, first_document };
        pool.install(|| blocks.sweep(&mut swept, sweep, &mut counted));
        blocks.count(&swept, topics, &mut counted_again);
        assert_eq!(counted, counted_again);
        swept
    };
    let whole = swept(&documents, &assigned, 100, 1, 0);
    for (block_size, threads) in [(1, 1), (3, 2), (7, 4)] {
        assert_eq!(swept(&documents, &assigned, block_size, threads, 0), whole);
    }
    let mut parts = Vec::new();
    for range in [0..11, 11..12, 12..40] {
        let mut some = Documents::new(60);
        range.clone().for_each(|number| some.push(documents.document(number).words, documents.document(number).counts));
        let assigned = &assigned[parts.len()..parts.len() + some.tokens() as usize];
        parts.extend(swept(&some, assigned, 5, 2, range.start as u64));
    }
    assert_eq!(parts, whole);
    // Negative control: documents with other numbers.
    assert_ne!(swept(&documents, &assigned, 100, 1, 1), whole);
}

#[test]
fn extreme_priors_do_not_panic() {
    let mut random = stream(3, Purpose::Synthetic);
    for topics in [1, 3, 40] {
        let (documents, assigned, _) = corpus(topics, 90, &mut random);
        let blocks = TokenBlocks::new(&documents, topics, Residence::Memory).unwrap();
        for (alpha, beta) in [(1e-12, 1e-12), (1e12, 1e-12), (1e-12, 1e12), (1e12, 1e12)] {
            let mut assigned: Vec<u16> = assigned.iter().map(|&topic| topic % topics as u16).collect();
            let (mut table, mut counts) = (TopicTable::new(60, topics), vec![0; 60 * topics]);
            blocks.count(&assigned, topics, &mut counts);
            for sweep in 0..10 {
                if sweep % 2 == 0 {
                    let word_stream = |word| stream(sweep << 10 | word, Purpose::Topics);
                    table.draw(&counts, beta, word_stream, |topic| stream(1 << 40 | sweep << 10 | topic, Purpose::Topics));
                } else {
                    table.set_mean(&counts, beta, 0.0);
                }
                assert!((0..60).all(|word| table.phi(word).iter().all(|phi| phi.is_finite())), "{topics} {alpha} {beta}");
                counts.fill(0);
                blocks.sweep(&mut assigned, FixedSweep { table: &table, alpha, key: sweep, first_document: 0 }, &mut counts);
                assert_eq!(counts.iter().map(|&count| count as usize).sum::<usize>(), blocks.len());
            }
        }
    }
}

/// With one document and fixed φ, a sweep is a Gibbs sweep of its topics, whose posterior is enumerated.
#[test]
fn a_document_with_fixed_topics_has_its_enumerated_posterior() {
    let mut documents = Documents::new(3);
    documents.push(&[0, 1, 2], &[2, 1, 1]);
    let words = [0, 0, 1, 2];
    let (topics, alpha) = (3_usize, 0.4);
    // Any positive table: the mean given these counts.
    let mut table = TopicTable::new(3, topics);
    table.set_mean(&[5, 1, 0, 2, 2, 9, 0, 4, 1], 0.5, 0.0);
    table.own.fill(0.0);
    let posterior = |alpha: f64| {
        let mut expected = vec![0.0; 4 * topics];
        let mut all = 0.0;
        for assignment in 0..81_usize {
            let z: Vec<usize> = (0..4_u32).map(|token| assignment / 3_usize.pow(token) % 3).collect();
            let mut p = 1.0;
            for topic in 0..topics {
                p *= (0..z.iter().filter(|&&other| other == topic).count()).map(|i| alpha + i as f64).product::<f64>();
            }
            p *= z.iter().zip(words).map(|(&topic, word)| f64::from(table.phi(word)[topic])).product::<f64>();
            all += p;
            z.iter().enumerate().for_each(|(token, topic)| expected[token * topics + topic] += p);
        }
        expected.iter().map(|expected| expected / all).collect::<Vec<f64>>()
    };
    let blocks = TokenBlocks::new(&documents, topics, Residence::Memory).unwrap();
    for form in [DocumentForm::List, DocumentForm::Dense] {
        let run = |run: u64| {
            let (mut assigned, mut frequencies) = (vec![3_u16; 4], vec![0.0; 4 * topics]);
            for sweep in 0..220_u64 {
                let key = stream(run << 20 | sweep, Purpose::Initial).random();
                let sweep_now = FixedSweep { table: &table, alpha, key, first_document: run };
                blocks.sweep_as(form, &mut assigned, sweep_now, &mut vec![0; 3 * topics]);
                if sweep >= 20 {
                    assigned.iter().enumerate().for_each(|(token, &z)| frequencies[token * topics + usize::from(z)] += 0.005);
                }
            }
            frequencies
        };
        let runs: Vec<Vec<f64>> = (0..400).into_par_iter().map(run).collect();
        let z = |exact: &[f64]| {
            let deviation = |at: usize| {
                let mean = runs.iter().map(|run| run[at]).sum::<f64>() / 400.0;
                let variance = runs.iter().map(|run| (run[at] - mean).powi(2)).sum::<f64>() / 399.0;
                (mean - exact[at]).abs() / (variance / 400.0).sqrt()
            };
            (0..exact.len()).map(deviation).fold(0.0, f64::max)
        };
        // Of twelve deviations, one is above 4.5 for less than one seed in ten thousand.
        assert!(z(&posterior(alpha)) < 4.5, "{form:?}: {}", z(&posterior(alpha)));
        // Negative control: another prior.
        assert!(z(&posterior(0.6)) > 8.0, "{form:?}: {}", z(&posterior(0.6)));
    }
}
