//! LDA samplers against enumeration of all topic assignments and known distributions.
#![allow(clippy::unwrap_used)]

use super::fixed_sweep::DocumentForm;
use super::*;
use crate::number::Real;
use crate::random::{Purpose, Seed, Stream, Who};
use rayon::iter::{IntoParallelIterator, ParallelIterator};

fn stream(step: u64) -> Stream {
    Seed(3).stream(Who::Agent(0), step, Purpose::Topics)
}

/// Documents given as their tokens.
fn documents(vocabulary: u32, tokens: &[&[u32]]) -> Documents {
    let mut documents = Documents::new(vocabulary);
    for tokens in tokens {
        let mut words = tokens.to_vec();
        words.sort_unstable();
        words.dedup();
        let counts: Vec<u32> = words.iter().map(|word| tokens.iter().filter(|token| token == &word).count() as u32).collect();
        documents.push(&words, &counts);
    }
    documents
}

/// Mean and standard error of independent numbers.
fn mean_and_error(numbers: &[f64]) -> (f64, f64) {
    let n = numbers.len() as f64;
    let mean = numbers.iter().sum::<f64>() / n;
    let variance = numbers.iter().map(|number| (number - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, (variance / n).sqrt())
}

/// The largest deviation of means over independent runs from exact values, in standard errors. With a hundred values, a correct sampler
/// exceeds 4.5 for less than one seed in a thousand.
fn largest_z(runs: &[Vec<f64>], exact: &[f64]) -> f64 {
    let z = |at: usize| {
        let (mean, error) = mean_and_error(&runs.iter().map(|run| run[at]).collect::<Vec<_>>());
        // An event that never happened must be rare: use the error of an event that happened once.
        (mean - exact[at]).abs() / error.max(1.0 / (runs.len() * 200) as f64)
    };
    (0..exact.len()).map(z).fold(0.0, f64::max)
}

/// Gamma(α + n)/Gamma(α).
fn rising(alpha: f64, n: u32) -> f64 {
    (0..n).map(|i| alpha + f64::from(i)).product()
}

/// Calls `each` with every assignment of K topics to the tokens.
fn each_assignment(tokens: usize, topics: usize, mut each: impl FnMut(&[usize])) {
    let mut z = vec![0; tokens];
    loop {
        each(&z);
        let Some(at) = z.iter().position(|&topic| topic + 1 < topics) else { return };
        z[..at].fill(0);
        z[at] += 1;
    }
}

/// E[n_kw] (W × K) of a document with φ (K × W) given, by enumeration.
fn enumerated(phi: &[Vec<f64>], alpha: f64, tokens: &[u32]) -> Vec<f64> {
    let (topics, words) = (phi.len(), phi[0].len());
    let (mut expected, mut all) = (vec![0.0; words * topics], 0.0);
    each_assignment(tokens.len(), topics, |z| {
        let mut counts = vec![0; topics];
        z.iter().for_each(|&topic| counts[topic] += 1);
        let mut p: f64 = counts.iter().map(|&count| rising(alpha, count)).product();
        p *= z.iter().zip(tokens).map(|(&topic, &word)| phi[topic][word as usize]).product::<f64>();
        all += p;
        z.iter().zip(tokens).for_each(|(&topic, &word)| expected[word as usize * topics + topic] += p);
    });
    expected.iter().map(|expected| expected / all).collect()
}

/// The same by the sampler, once for each of some independent runs.
fn sampled<F: Real>(phi: &[Vec<f64>], alpha: f64, tokens: &[u32], runs: u64) -> Vec<Vec<f64>> {
    let (topics, words) = (phi.len(), phi[0].len());
    let corpus = documents(words as u32, &[tokens]);
    let mut table = WordTable::<F>::new(words as u32, topics);
    table.fill(corpus.iter(), |word, out| out.iter_mut().zip(phi).for_each(|(out, phi)| *out = F::of(phi[word as usize])));
    let mut gibbs = DocumentGibbs::<F>::new(topics, alpha);
    let run = |run: u64| {
        let mut counts = vec![0.0; words * topics];
        let slot_words = table.words().to_vec();
        gibbs.sample(corpus.document(0), &table, Sweeps { burn_in: 50, kept: 200 }, &mut stream(run), |slot, topic| {
            counts[slot_words[slot] as usize * topics + topic] += 1.0 / 200.0;
        });
        counts
    };
    (0..runs).map(run).collect()
}

#[test]
fn topics_of_a_document_have_their_expectation() {
    let phi = [vec![0.6, 0.3, 0.1], vec![0.2, 0.3, 0.5]];
    let exact = enumerated(&phi, 0.5, &[0, 0, 1]);
    let known = [1.666_666_67, 0.333_333_33, 0.722_222_22, 0.277_777_78, 0.0, 0.0];
    assert!(exact.iter().zip(known).all(|(exact, known)| (exact - known).abs() < 1e-8), "{exact:?}");
    let runs = sampled::<f64>(&phi, 0.5, &[0, 0, 1], 1000);
    assert!(largest_z(&runs, &exact) < 4.5, "{}", largest_z(&runs, &exact));
    // Negative control: a slightly different prior has another expectation.
    let z = largest_z(&runs, &enumerated(&phi, 0.6, &[0, 0, 1]));
    assert!(z > 10.0, "{z}");
}

/// Most topics do not occur in the document and are only drawn through cumulative sums.
#[test]
fn topics_of_a_document_have_their_expectation_among_many_topics() {
    let mut uniform = stream(u64::MAX);
    let mut draw = || rand::RngExt::random::<f64>(&mut uniform).powi(3);
    let mut phi: Vec<Vec<f64>> = (0..20).map(|_| (0..3).map(|_| draw()).collect()).collect();
    // Words that some topics do not have.
    phi[3] = vec![0.0, 0.4, 0.0];
    phi[19] = vec![0.0; 3];
    let tokens = [2, 0, 2, 1];
    let exact = enumerated(&phi, 0.1, &tokens);
    for runs in [sampled::<f64>(&phi, 0.1, &tokens, 1000), sampled::<f32>(&phi, 0.1, &tokens, 1000)] {
        assert!(largest_z(&runs, &exact) < 4.5, "{}", largest_z(&runs, &exact));
        assert!(runs.iter().all(|run| run[19] == 0.0 && run[2 * 20 + 3] == 0.0), "a topic without the word was drawn");
        let z = largest_z(&runs, &enumerated(&phi, 0.13, &tokens));
        assert!(z > 10.0, "{z}");
    }
}

/// A sweep over all tokens, with random numbers from this step on.
type Sweep = fn(&Tokens, &mut [u32], &mut TopicCounts, f64, f64, u64);

const SWEEPS: [(&str, Sweep); 4] = [
    ("dense", |tokens, topics, counts, alpha, beta, first| {
        dense_sweep(tokens, topics, counts, alpha, beta, |document| stream(first + document));
    }),
    ("by word", |tokens, topics, counts, alpha, beta, first| {
        let mut sweep = WordSweep::new(tokens, counts.topics());
        sweep.sweep(topics, counts, alpha, beta, |word| stream(first + u64::from(word)));
    }),
    ("with drawn topics, by list", |tokens, topics, counts, alpha, beta, first| {
        sweep_with_drawn_topics(DocumentForm::List, tokens, topics, counts, (alpha, beta), first);
    }),
    ("with drawn topics, dense", |tokens, topics, counts, alpha, beta, first| {
        sweep_with_drawn_topics(DocumentForm::Dense, tokens, topics, counts, (alpha, beta), first);
    }),
];

/// Draws φ given the counts, and the topics of all tokens given φ.
fn sweep_with_drawn_topics(
    form: DocumentForm,
    tokens: &Tokens,
    topics: &mut [u32],
    counts: &mut TopicCounts,
    (alpha, beta): (f64, f64),
    first: u64,
) {
    let (vocabulary, topic_count) = (counts.vocabulary(), counts.topics());
    let by_document: Vec<&[u32]> = tokens.spans().map(|span| &tokens.words()[span]).collect();
    let blocks = TokenBlocks::new(&documents(vocabulary as u32, &by_document), topic_count, Residence::Memory).unwrap();
    let mut all = std::mem::replace(counts, TopicCounts::new(0, topic_count)).into_counts();
    let mut table = TopicTable::new(vocabulary, topic_count);
    let of = |step| Seed(3).stream(Who::Run, step, Purpose::Topics);
    table.draw(&all, beta, |word| of(first << 20 | word), |topic| of(first << 20 | 1 << 10 | topic));
    let mut assigned: Vec<u16> = topics.iter().map(|&topic| topic as u16).collect();
    let mut own = vec![0; all.len()];
    blocks.count(&assigned, topic_count, &mut own);
    all.iter_mut().zip(own).for_each(|(all, own)| *all -= own);
    let key = rand::RngExt::random(&mut of(first << 20 | 1 << 11));
    blocks.sweep_as(form, &mut assigned, FixedSweep { table: &table, alpha, key, first_document: 0 }, &mut all);
    topics.iter_mut().zip(assigned).for_each(|(topic, new)| *topic = u32::from(new));
    *counts = TopicCounts::from_counts(all, topic_count);
}

const PAIRS: [(usize, usize); 5] = [(0, 1), (0, 2), (2, 3), (0, 3), (0, 4)];
const TINY: [&[u32]; 2] = [&[0, 0, 1], &[1, 2, 2]];

/// Whether pairs of the six tokens of the tiny corpus have the same topic, on average over sweeps of independent runs.
fn pairs(sweep: Sweep, topics: u32, alpha: f64, beta: f64) -> Vec<Vec<f64>> {
    let tokens = Tokens::from_documents(&documents(3, &TINY));
    let run = |run: u64| {
        let mut assigned = tokens.draw_topics(topics, |document| stream(1_000_000 * run + document));
        let mut counts = TopicCounts::new(3, topics as usize);
        counts.add_tokens(tokens.words(), &assigned);
        let mut same = vec![0.0; PAIRS.len()];
        for number in 0..250_u64 {
            sweep(&tokens, &mut assigned, &mut counts, alpha, beta, 1_000_000 * run + 10 * (number + 1));
            if number >= 50 {
                for (same, (i, j)) in same.iter_mut().zip(PAIRS) {
                    *same += f64::from(u8::from(assigned[i] == assigned[j])) / 200.0;
                }
            }
        }
        same
    };
    (0..1000).into_par_iter().map(run).collect()
}

/// The same by enumeration of all topics of all tokens.
fn enumerated_pairs(topics: usize, alpha: f64, beta: f64) -> Vec<f64> {
    let words: Vec<u32> = TINY.concat();
    let (mut same, mut all) = (vec![0.0; PAIRS.len()], 0.0);
    each_assignment(6, topics, |z| {
        let count = |tokens: std::ops::Range<usize>, topic: usize, word: Option<u32>| {
            tokens.filter(|&token| z[token] == topic && word.is_none_or(|word| words[token] == word)).count() as u32
        };
        let mut p = 1.0;
        for topic in 0..topics {
            p *= rising(alpha, count(0..3, topic, None)) * rising(alpha, count(3..6, topic, None));
            p *= (0..3).map(|word| rising(beta, count(0..6, topic, Some(word)))).product::<f64>();
            p /= rising(3.0 * beta, count(0..6, topic, None));
        }
        all += p;
        same.iter_mut().zip(PAIRS).for_each(|(same, (i, j))| *same += if z[i] == z[j] { p } else { 0.0 });
    });
    same.iter().map(|same| same / all).collect()
}

#[test]
fn collapsed_sweeps_agree_with_the_enumerated_posterior() {
    let known = [0.851_139, 0.710_562, 0.522_215, 0.381_638, 0.301_588];
    let exact = enumerated_pairs(2, 0.5, 0.7);
    assert!(exact.iter().zip(known).all(|(exact, known)| (exact - known).abs() < 1e-6), "{exact:?}");
    for (name, sweep) in SWEEPS {
        for topics in [2, 3] {
            let runs = pairs(sweep, topics, 0.5, 0.7);
            let z = largest_z(&runs, &enumerated_pairs(topics as usize, 0.5, 0.7));
            assert!(z < 4.5, "{name}, {topics} topics: {z}");
            // Negative control: a slightly different prior.
            let z = largest_z(&runs, &enumerated_pairs(topics as usize, 0.5, 0.8));
            assert!(z > 8.0, "{name}, {topics} topics: {z}");
        }
    }
}

/// The probability of sequentially drawn topics is the product of their conditional probabilities, tested by pairs with equal topics.
#[test]
fn sequential_topics_have_their_conditional_probabilities() {
    let (alpha, beta, words) = (0.5, 0.7, TINY.concat());
    let tokens = Tokens::from_documents(&documents(3, &TINY));
    let exact = |beta: f64| {
        let (mut same, mut all) = (vec![0.0; PAIRS.len()], 0.0);
        each_assignment(6, 3, |z| {
            let mut p = 1.0;
            for token in 0..6 {
                let of = |topic: usize| {
                    let count =
                        |is: &dyn Fn(usize) -> bool| (0..token).filter(|&other| z[other] == topic && is(other)).count() as f64;
                    let (here, word) = (count(&|other| other / 3 == token / 3), count(&|other| words[other] == words[token]));
                    (here + alpha) * (word + beta) / (count(&|_| true) + 3.0 * beta)
                };
                p *= of(z[token]) / (0..3).map(of).sum::<f64>();
            }
            all += p;
            same.iter_mut().zip(PAIRS).for_each(|(same, (i, j))| *same += if z[i] == z[j] { p } else { 0.0 });
        });
        assert!((all - 1.0).abs() < 1e-12);
        same
    };
    let run = |run: u64| {
        let mut same = vec![0.0; PAIRS.len()];
        for draw in 0..200 {
            let (mut topics, mut counts) = (vec![2; 6], TopicCounts::new(3, 3));
            draw_topics_sequentially(&tokens, 2, &mut topics, &mut counts, alpha, beta, |document| {
                stream(1000 * run + 2 * draw + document)
            });
            let mut again = TopicCounts::new(3, 3);
            again.add_tokens(tokens.words(), &topics);
            assert_eq!(counts, again);
            for (same, (i, j)) in same.iter_mut().zip(PAIRS) {
                *same += f64::from(u8::from(topics[i] == topics[j])) / 200.0;
            }
        }
        same
    };
    let runs: Vec<Vec<f64>> = (0..500).map(run).collect();
    assert!(largest_z(&runs, &exact(beta)) < 4.5, "{}", largest_z(&runs, &exact(beta)));
    // Negative control: a slightly different prior.
    assert!(largest_z(&runs, &exact(0.9)) > 8.0, "{}", largest_z(&runs, &exact(0.9)));
    // Later documents do not change.
    let (mut topics, mut counts) = (vec![2; 6], TopicCounts::new(3, 3));
    draw_topics_sequentially(&tokens, 1, &mut topics, &mut counts, alpha, beta, stream);
    assert_eq!((&topics[3..], counts.totals().iter().sum::<i32>()), (&[2, 2, 2][..], 3));
}

#[test]
fn counts_agree_with_assignments_after_every_sweep() {
    let corpus = documents(4, &[&[0, 0, 1, 3], &[], &[1, 2, 2], &[3]]);
    let tokens = Tokens::from_documents(&corpus);
    assert_eq!((tokens.documents(), tokens.words()), (4, &[0, 0, 1, 3, 1, 2, 2, 3][..]));
    for (_, sweep) in SWEEPS {
        let mut topics = tokens.draw_topics(3, stream);
        // The counts include tokens of other agents.
        let mut counts = TopicCounts::new(4, 3);
        counts.add_tokens(&[0, 2, 3], &[1, 1, 2]);
        counts.add_tokens(tokens.words(), &topics);
        for number in 1..20 {
            let before = topics.clone();
            sweep(&tokens, &mut topics, &mut counts, 0.1, 0.2, 100 * number);
            let mut again = TopicCounts::new(4, 3);
            again.add_tokens(&[0, 2, 3], &[1, 1, 2]);
            again.add_tokens(tokens.words(), &topics);
            assert_eq!((&counts, counts.totals().iter().sum::<i32>()), (&again, 11));
            let phi: f64 = counts.phi::<f64>(0.2).iter().sum();
            assert!((phi - 3.0).abs() < 1e-12, "{phi}");
            // A sweep depends on topics and counts, not on earlier sweeps.
            let (mut other, mut counts_before) = (before.clone(), TopicCounts::new(4, 3));
            counts_before.add_tokens(&[0, 2, 3], &[1, 1, 2]);
            counts_before.add_tokens(tokens.words(), &before);
            sweep(&tokens, &mut other, &mut counts_before, 0.1, 0.2, 100 * number);
            assert_eq!(other, topics);
        }
    }
}

/// Geweke's joint test (2004): words drawn anew from the topics between sweeps keep topics and words at their joint prior.
fn joint_prior(lengths: [usize; 2], topics_in_all: usize, (alpha, wrong): (f64, f64), beta: f64, times: u64) {
    const WORDS: u32 = 3;
    let all = lengths[0] + lengths[1];
    // Pairs of tokens with the same topic in a document, between documents, and with the same word and topic.
    let statistics = |words: &[u32], topics: &[u32]| {
        let mut sums = vec![0.0; 3];
        for i in 0..words.len() {
            for j in 0..i {
                let same = f64::from(u8::from(topics[i] == topics[j]));
                let here = usize::from((i < lengths[0]) != (j < lengths[0]));
                sums[here] += same;
                sums[2] += same * f64::from(u8::from(words[i] == words[j]));
            }
        }
        sums
    };
    // Exactly: same topic within a document (α + 1)/(K α + 1), between documents 1/K, same word given the same topic (β + 1)/(W β + 1).
    let within = (alpha + 1.0) / (topics_in_all as f64 * alpha + 1.0);
    let pairs = |tokens: usize| (tokens * (tokens - 1) / 2) as f64;
    let pairs_within = pairs(lengths[0]) + pairs(lengths[1]);
    let pairs_between = pairs(all) - pairs_within;
    let between = 1.0 / topics_in_all as f64;
    let same_word = (beta + 1.0) / (3.0 * beta + 1.0);
    let exact = [pairs_within * within, pairs_between * between, same_word * (pairs_within * within + pairs_between * between)];
    let run = |sweep_over: Sweep, run: u64, alpha_of_sweeps: f64| {
        let mut words: Vec<u32> = vec![0; all];
        let mut sums = vec![0.0; 3];
        let mut topics: Vec<u32> = (0..).take(all).map(|token: u32| token % topics_in_all as u32).collect();
        for sweep in 0..260_u64 {
            let mut stream_of_words = stream(10_000_000 + 1000 * run + sweep);
            // Words given topics, one after the other: p(w) ∝ (n_kw + β)/(n_k + W β).
            for token in 0..all {
                let mut running = [0.0; WORDS as usize];
                let mut sum = 0.0;
                for (word, running) in (0..).zip(&mut running) {
                    let with = (0..all).filter(|&other| other != token && topics[other] == topics[token] && words[other] == word);
                    sum += with.count() as f64 + beta;
                    *running = sum;
                }
                let point = sum * rand::RngExt::random::<f64>(&mut stream_of_words);
                words[token] = running.partition_point(|&running| running <= point) as u32;
            }
            // Sweeps have the tokens of a document in the order of their words, in which words must not be drawn anew.
            let order = sorted_within(&words, &lengths);
            let tokens = Tokens::from_documents(&documents(WORDS, &[&words[..lengths[0]], &words[lengths[0]..]]));
            let mut sorted: Vec<u32> = order.iter().map(|&token| topics[token]).collect();
            let mut counts = TopicCounts::new(WORDS, topics_in_all);
            counts.add_tokens(tokens.words(), &sorted);
            sweep_over(&tokens, &mut sorted, &mut counts, alpha_of_sweeps, beta, 10_000 * run + 4 * sweep);
            order.iter().zip(sorted).for_each(|(&token, topic)| topics[token] = topic);
            if sweep >= 60 {
                sums.iter_mut().zip(statistics(&words, &topics)).for_each(|(sum, one)| *sum += one / 200.0);
            }
        }
        sums
    };
    for (name, sweep) in SWEEPS {
        let runs: Vec<Vec<f64>> = (0..times).into_par_iter().map(|number| run(sweep, number, alpha)).collect();
        assert!(largest_z(&runs, &exact) < 4.5, "{name}: {}", largest_z(&runs, &exact));
        let wrong: Vec<Vec<f64>> = (0..times).into_par_iter().map(|number| run(sweep, number, wrong)).collect();
        assert!(largest_z(&wrong, &exact) > 8.0, "{name}: {}", largest_z(&wrong, &exact));
    }
}

#[test]
fn alternating_draws_of_topics_and_words_keep_their_joint_prior() {
    joint_prior([4, 3], 2, (0.4, 0.5), 0.6, 600);
    // Documents of more topics than are looked at together, which draw topics from more than one group, too.
    joint_prior([40, 6], 300, (0.2, 0.3), 0.6, 60);
}

/// The tokens of documents of these lengths in the order of their words.
fn sorted_within(words: &[u32], lengths: &[usize]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..words.len()).collect();
    let mut start = 0;
    for length in lengths {
        order[start..start + length].sort_by_key(|&token| words[token]);
        start += length;
    }
    order
}

/// With one topic the posterior is φ ~ Dir(β + n_w), and Σϑ ~ Gamma(W β, 1) whatever φ.
#[test]
fn sgrld_with_one_topic_samples_the_dirichlet_posterior() {
    let corpus = documents(3, &[&[0, 0, 0, 1], &[0, 0, 1, 1, 2, 2]]);
    let mut expected = ExpectedCounts::<f64>::new(3, 1, 0.1, Sweeps { burn_in: 0, kept: 1 });
    let update = SgrldUpdate { beta: 1.0, step: 0.01, scale: 1.0 };
    let run = |run: u64| {
        let mut theta = [1.0, 1.0, 1.0];
        let mut moments = vec![0.0; 7];
        let mut noise = Seed(4).stream(Who::Chain(0), run, Purpose::Noise);
        for step in 0..22_000 {
            expected.sample(&theta, corpus.iter(), stream);
            sgrld_step(&mut theta, &expected, update, &mut noise);
            if step >= 2000 {
                let total: f64 = theta.iter().sum();
                for (word, theta) in theta.iter().enumerate() {
                    moments[word] += theta / total / 20_000.0;
                    moments[3 + word] += (theta / total).powi(2) / 20_000.0;
                }
                moments[6] += total / 20_000.0;
            }
        }
        moments
    };
    let runs: Vec<Vec<f64>> = (0..40).map(run).collect();
    let alphas = [6.0, 4.0, 3.0];
    for (word, alpha) in alphas.into_iter().enumerate() {
        let (mean, error) = mean_and_error(&runs.iter().map(|run| run[word]).collect::<Vec<_>>());
        let exact = alpha / 13.0;
        assert!((mean - exact).abs() < 4.5 * error + 1e-3 * exact, "{mean} ± {error}, {exact}");
        let (square, _) = mean_and_error(&runs.iter().map(|run| run[3 + word]).collect::<Vec<_>>());
        let ratio = (square - mean * mean) / (exact * (1.0 - exact) / 14.0);
        // Steps of this size leave some 2 or 3 percent too much.
        assert!((0.95..1.08).contains(&ratio), "{ratio}");
    }
    let (total, error) = mean_and_error(&runs.iter().map(|run| run[6]).collect::<Vec<_>>());
    assert!((total - 3.0).abs() < 4.5 * error + 0.03, "{total} ± {error}");
}

/// An update of three topics, beside the formula written out with the same random numbers.
#[test]
fn an_sgrld_update_agrees_with_the_formula() {
    const TOPICS: usize = 3;
    let corpus = documents(4, &[&[0, 0, 1, 2], &[1, 2, 2]]);
    let sweeps = Sweeps { burn_in: 3, kept: 5 };
    let theta: Vec<f64> = (0..4 * TOPICS).map(|at| 0.5 + (at * 5 % 7) as f64).collect();
    let totals: Vec<f64> = (0..TOPICS).map(|k| (0..4).map(|word| theta[word * TOPICS + k]).sum()).collect();
    let mut table = WordTable::new(4, TOPICS);
    table.fill(corpus.iter(), |word, phi| {
        phi.iter_mut().enumerate().for_each(|(k, phi)| *phi = theta[word as usize * TOPICS + k] * (1.0 / totals[k]));
    });
    let mut gibbs = DocumentGibbs::new(TOPICS, 0.3);
    let mut of_words = [0.0; 4 * TOPICS];
    for (number, bag) in (0..).zip(corpus.iter()) {
        let words = table.words().to_vec();
        gibbs.sample(bag, &table, sweeps, &mut stream(number), |slot, k| of_words[words[slot] as usize * TOPICS + k] += 0.2);
    }
    let (beta, step, scale) = (0.7, 0.02, 2.5);
    let mut normals = [0.0; 4 * TOPICS];
    stream(99).normals(&mut normals);
    let exact: Vec<f64> = (0..4 * TOPICS)
        .map(|at| {
            let k = at % TOPICS;
            let of_topic: f64 = (0..4).map(|word| of_words[word * TOPICS + k]).sum();
            let score = beta - theta[at] + scale * (of_words[at] - theta[at] / totals[k] * of_topic);
            (theta[at] + 0.5 * step * score + (step * theta[at]).sqrt() * normals[at]).abs()
        })
        .collect();
    let mut expected = ExpectedCounts::new(4, TOPICS, 0.3, sweeps);
    let mut updated = theta.clone();
    expected.sample(&theta, corpus.iter(), stream);
    sgrld_step(&mut updated, &expected, SgrldUpdate { beta, step, scale }, &mut stream(99));
    assert!(updated.iter().zip(&exact).all(|(one, other)| (one - other).abs() < 1e-12), "{updated:?} {exact:?}");
    // What falls below 0 is reflected there.
    let (small, step) = ([1e-3; 4 * TOPICS], 0.5);
    let totals = [4e-3; TOPICS];
    expected.sample(&small, corpus.iter().take(1), stream);
    let mut of_words = [0.0; 4 * TOPICS];
    let mut table = WordTable::new(4, TOPICS);
    table.fill(corpus.iter().take(1), |_, phi| phi.fill(0.25));
    gibbs.sample(corpus.document(0), &table, sweeps, &mut stream(0), |slot, k| {
        of_words[table.words()[slot] as usize * TOPICS + k] += 0.2;
    });
    let (beta, scale) = (0.01, 0.01);
    let unreflected: Vec<f64> = (0..4 * TOPICS)
        .map(|at| {
            let k = at % TOPICS;
            let of_topic: f64 = (0..4).map(|word| of_words[word * TOPICS + k]).sum();
            let score = beta - small[at] + scale * (of_words[at] - small[at] / totals[k] * of_topic);
            small[at] + 0.5 * step * score + (step * small[at]).sqrt() * normals[at]
        })
        .collect();
    // With a word of the minibatch (0, 1, 2) and one without (3).
    let fallen = |words: std::ops::Range<usize>| unreflected[words.start * TOPICS..words.end * TOPICS].iter().any(|&x| x < -1e-4);
    assert!(fallen(0..3) && fallen(3..4), "{unreflected:?}");
    let mut reflected = small;
    sgrld_step(&mut reflected, &expected, SgrldUpdate { beta, step, scale }, &mut stream(99));
    assert!(reflected.iter().zip(&unreflected).all(|(one, other)| (one - other.abs()).abs() < 1e-12), "{reflected:?}");
    // A diverged chain is not reset to the minimum.
    sgrld_step(&mut updated, &expected, SgrldUpdate { beta, step: f64::INFINITY, scale }, &mut stream(99));
    assert!(updated.iter().all(|theta| !theta.is_finite()), "{updated:?}");
}

/// With one topic nothing is sampled: minibatches must give the whole update on average.
#[test]
fn minibatch_updates_are_unbiased() {
    let corpus = documents(4, &[&[0, 0, 1], &[1, 2, 2, 3], &[3], &[0, 1, 2, 3, 3, 3]]);
    let theta = [30.0, 20.0, 40.0, 10.0];
    let updated = |batch: &[usize], scale: f64| {
        let mut expected = ExpectedCounts::<f64>::new(4, 1, 0.1, Sweeps { burn_in: 0, kept: 2 });
        expected.sample(&theta, batch.iter().map(|&document| corpus.document(document)), stream);
        let mut after = theta;
        sgrld_step(&mut after, &expected, SgrldUpdate { beta: 0.5, step: 1e-3, scale }, &mut stream(1));
        after
    };
    let whole = updated(&[0, 1, 2, 3], 1.0);
    let batches = [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]];
    let mut mean = [0.0; 4];
    for batch in batches {
        mean.iter_mut().zip(updated(&batch, 2.0)).for_each(|(mean, after)| *mean += after / 6.0);
    }
    assert!(mean.iter().zip(whole).all(|(mean, whole)| (mean - whole).abs() < 1e-12), "{mean:?} {whole:?}");
    assert!(updated(&[0, 1], 2.0).iter().zip(whole).any(|(one, whole)| (one - whole).abs() > 1e-4));
}

#[test]
fn theta_stays_positive() {
    let corpus = documents(2, &[&[0]]);
    let mut expected = ExpectedCounts::<f32>::new(2, 3, 0.1, Sweeps { burn_in: 1, kept: 1 });
    let mut theta = [1e-30_f32; 6];
    for step in 0..500 {
        expected.sample(&theta, corpus.iter(), |_| stream(step));
        sgrld_step(&mut theta, &expected, SgrldUpdate { beta: 1e-4, step: 0.1, scale: 10.0 }, &mut stream(10_000 + step));
        assert!(theta.iter().all(|theta| theta.is_normal() && *theta > 0.0), "{theta:?}");
    }
}

/// The perplexity of some draws of topics (each W × K).
fn perplexity(held_out: &HeldOut, topics: usize, alpha: f64, draws: &[Vec<f64>]) -> f64 {
    let mut table = WordTable::<f64>::new(held_out.observed.vocabulary(), topics);
    let mut gibbs = DocumentGibbs::new(topics, alpha);
    let mut completion = Completion::default();
    for phi in draws {
        let row = |word: u32, out: &mut [f64]| out.copy_from_slice(&phi[word as usize * topics..(word as usize + 1) * topics]);
        completion.add(held_out, &mut gibbs, &mut table, Sweeps { burn_in: 20, kept: 20 }, row, stream);
    }
    assert_eq!(completion.draws(), draws.len() as u64);
    completion.score(held_out).perplexity()
}

#[test]
fn uniform_topics_have_the_perplexity_of_the_vocabulary() {
    let held_out =
        HeldOut { observed: documents(5, &[&[0, 0, 3], &[1, 2], &[4]]), scored: documents(5, &[&[1], &[2, 2, 4], &[]]) };
    let uniform = vec![0.2; 15];
    assert!((perplexity(&held_out, 3, 0.3, std::slice::from_ref(&uniform)) - 5.0).abs() < 1e-12);
    // One topic: the unigram model.
    let unigram = vec![0.1, 0.3, 0.2, 0.15, 0.25];
    let exact = f64::exp(-(0.3_f64.ln() + 2.0 * 0.2_f64.ln() + 0.25_f64.ln()) / 4.0);
    assert!((perplexity(&held_out, 1, 0.3, std::slice::from_ref(&unigram)) - exact).abs() < 1e-12);
    // Probabilities are averaged over draws, not their logarithms.
    let mean = f64::exp(-(0.25_f64.ln() + 2.0 * 0.2_f64.ln() + 0.225_f64.ln()) / 4.0);
    assert!((perplexity(&held_out, 1, 0.3, &[unigram, vec![0.2; 5]]) - mean).abs() < 1e-12);
}

/// Two topics without common words: observed tokens of one topic predict scored tokens of the same topic.
#[test]
fn observed_tokens_determine_topic_weights() {
    let phi = vec![0.5, 0.0, 0.5, 0.0, 0.0, 0.5, 0.0, 0.5];
    let held_out = HeldOut { observed: documents(4, &[&[0, 0, 0]]), scored: documents(4, &[&[1, 2]]) };
    let (alpha, n) = (0.5_f64, 3.0);
    // θ̂ = (n + α, α)/(n + 2 α), whatever is drawn.
    let [first, second] = [(n + alpha) / (n + 2.0 * alpha) * 0.5, alpha / (n + 2.0 * alpha) * 0.5];
    let exact = f64::exp(-(first.ln() + second.ln()) / 2.0);
    assert!((perplexity(&held_out, 2, alpha, &[phi]) - exact).abs() < 1e-12);
}

const SETTINGS: CorpusGeneratorSettings =
    CorpusGeneratorSettings { vocabulary: 50, topics: 4, alpha: 0.3, concentration: 40.0, log_length: (3.0, 0.5) };

#[test]
fn generated_documents_have_the_words_and_lengths_of_their_topics() {
    let truth = CorpusGenerator::new(SETTINGS, Seed(2)).unwrap();
    let phi = truth.phi::<f64>();
    let documents = truth.documents(0..20_000);
    let (n, mean) = (20_000.0_f64, f64::exp(3.0 + 0.125));
    // The variance of a log-normal number, to which rounding adds a twelfth.
    let sd = (mean * mean * (f64::exp(0.25) - 1.0) + 1.0 / 12.0).sqrt();
    assert!((documents.tokens() as f64 / n - mean).abs() < 4.5 * sd / n.sqrt(), "{}", documents.tokens());
    // Topics are equally common: of each word, the share in a document is Σ_k θ_k φ_kw with a mean of θ of 1/4.
    for word in 0..50 {
        let exact: f64 = phi[word * 4..word * 4 + 4].iter().sum::<f64>() / 4.0;
        let share = |bag: Bag| {
            let count = bag.words.iter().position(|&other| other as usize == word).map_or(0, |at| bag.counts[at]);
            f64::from(count) / bag.tokens() as f64
        };
        let (mean, error) = mean_and_error(&documents.iter().map(share).collect::<Vec<_>>());
        assert!((mean - exact).abs() < 4.5 * error.max(1e-5), "word {word}: {mean} ± {error}, {exact}");
    }
    assert!((phi.iter().sum::<f64>() - 4.0).abs() < 1e-12);
    // The same documents, whichever are asked for.
    assert!(truth.documents(700..703).iter().eq(documents.iter().skip(700).take(3)));
    assert_ne!(CorpusGenerator::new(SETTINGS, Seed(3)).unwrap().documents(0..3), truth.documents(0..3));
}

#[test]
fn invalid_generator_settings_are_refused() {
    for (settings, says) in [
        (CorpusGeneratorSettings { alpha: 0.0, ..SETTINGS }, "alpha = 0"),
        (CorpusGeneratorSettings { concentration: f64::NAN, ..SETTINGS }, "concentration = NaN"),
        (CorpusGeneratorSettings { topics: 0, ..SETTINGS }, "0 topics"),
        (CorpusGeneratorSettings { log_length: (3.0, -1.0), ..SETTINGS }, "log_length = 3, -1"),
    ] {
        let message = CorpusGenerator::new(settings, Seed(1)).unwrap_err();
        assert!(message.contains(says), "{message}");
    }
}

/// The true topics predict better than topics of another corpus and uniform predictions.
#[test]
fn true_topics_have_the_lowest_perplexity() {
    let truth = CorpusGenerator::new(SETTINGS, Seed(2)).unwrap();
    let documents = truth.documents(0..300);
    let mut held_out = HeldOut { observed: Documents::new(50), scored: Documents::new(50) };
    for bag in documents.iter() {
        // Every other word of a document is scored.
        let part = |odd: usize| {
            bag.counts.iter().enumerate().map(|(at, &count)| if at % 2 == odd { count } else { 0 }).collect::<Vec<_>>()
        };
        held_out.observed.push(bag.words, &part(0));
        held_out.scored.push(bag.words, &part(1));
    }
    let of = |phi: Vec<f64>| perplexity(&held_out, 4, 0.3, &[phi]);
    let known = of(truth.phi());
    let other =
        of(CorpusGenerator::new(SETTINGS, Seed(9)).unwrap().phi::<f64>().iter().map(|phi| 0.9 * phi + 0.1 / 50.0).collect());
    assert!(known < 0.8 * other && known < 0.8 * 50.0, "{known} {other}");
}
