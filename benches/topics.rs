//! Topic models on one core: the parts of an SGRLD update, document sampling, collapsed Gibbs sweeps, and sweeps with fixed topics.
//!
//! Run with `cargo bench --bench topics`.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failure should stop the benchmark")]

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use mpibayes::lda::{
    CorpusGenerator, CorpusGeneratorSettings, DocumentGibbs, Documents, ExpectedCounts, FixedSweep, Residence, SgrldUpdate,
    Sweeps, TokenBlocks, Tokens, TopicCounts, TopicTable, WordSweep, WordTable, dense_sweep, sgrld_step,
};
use mpibayes::number::Real;
use mpibayes::random::{Purpose, Seed, Stream, Who};
use std::hint::black_box;

/// The vocabulary size of the Wikipedia corpus of the D-SGLD paper.
const WORDS: u32 = 7702;
/// The number of documents per minibatch in the D-SGLD paper.
const BATCH: u64 = 50;
const SWEEPS: Sweeps = Sweeps { burn_in: 50, kept: 50 };

fn stream(step: u64) -> Stream {
    Seed(7).stream(Who::Run, step, Purpose::Topics)
}

/// Documents of about 178 tokens, and their true topics (W × K).
fn corpus<F: Real>(documents: u64, topics: u32) -> (Documents, Vec<F>) {
    // The mean length is exp(5 + 0.6²/2) = 178.
    let settings =
        CorpusGeneratorSettings { vocabulary: WORDS, topics, alpha: 0.01, concentration: 100.0, log_length: (5.0, 0.6) };
    let truth = CorpusGenerator::new(settings, Seed(3)).expect("valid settings");
    (truth.documents(0..documents), truth.phi())
}

/// Updates on 50 documents with 100 Gibbs sweeps each, at the true topics.
fn sgrld<F: Real>(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("sgrld");
    for topics in [100, 500] {
        let (documents, phi) = corpus::<F>(BATCH, topics);
        let least = F::of(1e-7);
        let theta: Vec<F> = phi.iter().map(|&phi| F::of(5e3) * (phi + least)).collect();
        let mut expected = ExpectedCounts::<F>::new(WORDS, topics as usize, 0.01, SWEEPS);
        let id = |part: &str| BenchmarkId::new(part, format!("{}, K = {topics}", F::NAME));
        group.throughput(Throughput::Elements(documents.tokens() * 100));
        group.bench_function(id("sampling"), |bencher| {
            bencher.iter(|| expected.sample(black_box(&theta), documents.iter(), stream));
        });
        let update = SgrldUpdate { beta: 1e-4, step: 1e-9, scale: 1e3 };
        let mut moved = theta.clone();
        group.throughput(Throughput::Elements(theta.len() as u64));
        group.bench_function(id("parameters and noise"), |bencher| {
            bencher.iter(|| sgrld_step(black_box(&mut moved), &expected, update, &mut stream(1)));
        });
        let mut noise = vec![F::zero(); theta.len()];
        group.bench_function(id("noise alone"), |bencher| {
            bencher.iter(|| stream(1).normals(black_box(&mut noise)));
        });
    }
    group.finish();
}

/// Gibbs sweeps of single documents given the topics.
fn documents(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("documents");
    for topics in [20, 100, 1000] {
        let (documents, phi) = corpus::<f32>(BATCH, topics);
        let mut table = WordTable::<f32>::new(WORDS, topics as usize);
        let size = topics as usize;
        table.fill(documents.iter(), |word, out| out.copy_from_slice(&phi[word as usize * size..(word as usize + 1) * size]));
        let mut gibbs = DocumentGibbs::new(size, 0.01);
        group.throughput(Throughput::Elements(documents.tokens() * 100));
        group.bench_function(BenchmarkId::new("sweeps", topics), |bencher| {
            bencher.iter(|| {
                let mut seen = 0;
                for (number, bag) in (0..).zip(documents.iter()) {
                    gibbs.sample(bag, &table, SWEEPS, &mut stream(number), |slot, topic| seen += slot ^ topic);
                }
                seen
            });
        });
    }
    group.finish();
}

fn collapsed(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("collapsed");
    for topics in [100, 1000] {
        let (documents, _) = corpus::<f32>(3000, topics);
        let tokens = Tokens::from_documents(&documents);
        let mut assigned = tokens.draw_topics(topics, stream);
        let mut counts = TopicCounts::new(WORDS, topics as usize);
        counts.add_tokens(tokens.words(), &assigned);
        group.throughput(Throughput::Elements(tokens.len() as u64));
        group.sample_size(10);
        group.bench_function(BenchmarkId::new("dense sweep", topics), |bencher| {
            bencher.iter(|| dense_sweep(&tokens, &mut assigned, &mut counts, 0.1, 0.01, stream));
        });
        // 50 sweeps first, so that documents have few topics, as in a run.
        let mut by_word = WordSweep::new(&tokens, topics as usize);
        let mut sweep = 0;
        let mut run_sweep = |assigned: &mut [u32], counts: &mut TopicCounts| {
            sweep += 1;
            by_word.sweep(assigned, counts, 0.1, 0.01, |word| stream(u64::from(word) + u64::from(WORDS) * sweep));
        };
        (0..50).for_each(|_| run_sweep(&mut assigned, &mut counts));
        group.bench_function(BenchmarkId::new("sweep by word", topics), |bencher| {
            bencher.iter(|| run_sweep(&mut assigned, &mut counts));
        });
    }
    group.finish();
}

/// A sweep with fixed φ, and φ drawn or at its mean, beside a sweep by word over the same tokens: enough documents that a word of a block
/// has many tokens.
fn fixed(criterion: &mut Criterion) {
    rayon::ThreadPoolBuilder::new().num_threads(1).build_global().expect("no pool yet");
    let mut group = criterion.benchmark_group("fixed topics");
    for topics in [100, 1000] {
        let (documents, _) = corpus::<f32>(25_000, topics);
        let size = topics as usize;
        let tokens = Tokens::from_documents(&documents);
        let mut assigned = tokens.draw_topics(topics, stream);
        let mut counts = TopicCounts::new(WORDS, size);
        counts.add_tokens(tokens.words(), &assigned);
        group.throughput(Throughput::Elements(tokens.len() as u64));
        group.sample_size(10);
        // 20 sweeps first, so that documents have few topics, as in a run.
        let mut by_word = WordSweep::new(&tokens, size);
        let mut sweep = 0;
        let mut run_by_word = |assigned: &mut [u32], counts: &mut TopicCounts| {
            sweep += 1;
            by_word.sweep(assigned, counts, 0.1, 0.01, |word| stream(u64::from(word) + u64::from(WORDS) * sweep));
        };
        (0..20).for_each(|_| run_by_word(&mut assigned, &mut counts));
        let blocks = TokenBlocks::new(&documents, size, Residence::Memory).expect("within the limits");
        let mut swept: Vec<u16> = assigned.iter().map(|&topic| u16::try_from(topic).expect("few topics")).collect();
        let mut array = counts.clone().into_counts();
        group.bench_function(BenchmarkId::new("sweep by word", topics), |bencher| {
            bencher.iter(|| run_by_word(&mut assigned, &mut counts));
        });
        let mut table = TopicTable::new(WORDS as usize, size);
        let mut key = 0;
        for drawn in [false, true] {
            let name = if drawn { "sweep with drawn topics" } else { "sweep with topics at their mean" };
            group.bench_function(BenchmarkId::new(name, topics), |bencher| {
                bencher.iter(|| {
                    key += 1;
                    if drawn {
                        table.draw(&array, 0.01, |word| stream(key << 32 | word), |topic| stream(1 << 63 | key << 32 | topic));
                    } else {
                        table.set_mean(&array, 0.01, 0.0);
                    }
                    array.fill(0);
                    blocks.sweep(&mut swept, FixedSweep { table: &table, alpha: 0.1, key, first_document: 0 }, &mut array);
                });
            });
        }
    }
    group.finish();
}

criterion_group!(benches, sgrld::<f32>, sgrld::<f64>, documents, collapsed, fixed);
criterion_main!(benches);
