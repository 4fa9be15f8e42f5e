//! Ahn, Shahbaba & Welling 2014, section 4.2: topic models, on made-up documents with known topics and a simulated cluster.
//!
//! The paper's corpora have 4.6 and 8.2 million documents; here there are 5,000 to 80,000 of some 90 tokens over 2,000 words. All
//! samplers run for real, packet by packet; time is that of a cluster with a rank for each agent, whose tasks take what they were measured
//! to take on one core here, and whose network has 50 µs and 10 Gbit/s. Evaluation is no part of it.

use super::super::files::{Runs, find, settings, value};
use super::super::judge::{Case, means_and_errors, minus};
use super::super::pictures::{Chart, curves};
use super::super::recording::Recording;
use super::super::workers::side_by_side;
use super::super::{Effort, Outcome, Row};
use mpibayes::cluster::record::Row as Written;
use mpibayes::cluster::simulate::{self, Cluster};
use mpibayes::cluster::{AgentId, BoxError, JobOptions, Method};
use mpibayes::kernels::langevin::StepSize;
use mpibayes::lda::{
    Bag, CorpusGenerator, CorpusGeneratorSettings, DocumentSource, Documents, ExpectedCounts, HeldOut, LdaSettings, SgrldUpdate,
    Sweeps, Tokens, TopicCounts, WordSweep, dense_sweep, draw_scored_tokens, sgrld_step,
};
use mpibayes::methods::chains::dsgld::{Dsgld, Trajectory};
use mpibayes::methods::topics::{
    AdLda, AsyncLda, EVALUATION_SWEEPS, SweepBy, SweepSettings, TopicDsgldSettings, TopicEvaluation, TopicProblem, adlda,
    async_lda,
};
use mpibayes::methods::{EvaluationTask, Posterior, TopicArray, TopicPosterior, WithEvaluation};
use mpibayes::random::{Purpose, Seed, Who};
use mpibayes::text;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;
use toml::{Table, Value};

type Result<T, E = BoxError> = std::result::Result<T, E>;

/// How the setting of all rows differs from the paper's.
const DIFFERS: &str = "Made-up documents of some 90 tokens over 2,000 words, made with 20 topics, where the paper has Wikipedia and Pubmed (4.6 and 8.2 \
                       million documents, K = 100); unless the row says otherwise, 20,000 of them, 8 agents (paper: 20) and K = 20; α = .1, \
                       β = .01 (paper: .01, 1e-4); 30 sweeps for the topics of a minibatch (paper: 100); 400 held-out documents (paper: 1,000). \
                       Chains make 450 updates (paper: about 10,000), so that steps hardly become smaller, from a = .01 (paper: .0001 to .01, chosen for each corpus), \
                       visit agents by random permutations (paper: in a cycle), and are in two groups where they are grouped (paper: three or five). \
                       Predictions are averaged over the evaluations in the second half of a run, some ten, and those of D-SGLD over all of its chains as well: SGRLD has a \
                       single chain, so that its distance from chains that are not coupled (D-CI) may be this averaging alone. The cluster is simulated: time is what \
                       tasks take on one core here, measured once, with 50 µs and 10 Gbit/s between ranks. AD-LDA and Async-LDA use the \
                       sampler by word, which has the same stationary distribution, and are charged the time of the dense one.";

/// The rows that need topics.
pub const ROWS: &[Row] = &[
    Row {
        id: "fig3",
        quote: "all the variants of D-SGLD significantly outperform both AD-LDA and SGRLD […] DCC and D-Hybrid (which use the sample \
                averaging) converge faster than D-CI […] when we couple too many chains as shown in DCC, it could lead to some lose of \
                accuracy",
        claim: "Eight chains coupled as one group (D-CC), as two (D-Hybrid) or not at all (D-CI) end below AD-LDA and SGRLD when the shorter of \
                both runs ends; D-CC and D-Hybrid are below D-CI after a tenth of the time; D-CC ends above D-Hybrid. Logarithms of \
                perplexities. AD-LDA runs four fifths as long as the chains, and is compared when it ends.",
        differs: DIFFERS,
        files: FILES,
        run: figure3,
    },
    Row {
        id: "fig3-20",
        quote: "all the variants of D-SGLD significantly outperform both AD-LDA and SGRLD […] DCC and D-Hybrid (which use the sample \
                averaging) converge faster than D-CI",
        claim: "The same with the paper's 20 agents, 20 chains and five groups for D-Hybrid. Gaps are those of \
                log-perplexities to that of the true topics.",
        differs: DIFFERS,
        files: FILES,
        run: twenty,
    },
    Row {
        id: "fig3-100",
        quote: "all the variants of D-SGLD significantly outperform both AD-LDA and SGRLD […] DCC and D-Hybrid (which use the sample \
                averaging) converge faster than D-CI",
        claim: "Fig. 3 with the paper's K = 100, α = .01, β = 1e-4 and 100 sweeps for the topics of a minibatch: D-Hybrid and D-CI end below AD-LDA and \
                SGRLD when the shorter of both runs ends, and D-Hybrid is below D-CI after a tenth of the time.",
        differs: "As for fig3, but documents are made with 100 topics, some ten or more of them in a document (α = .1), of which the model with its α = .01 knows \
                  nothing. D-CC is not run. The step is the one for K = 20. Five seeds.",
        files: FILES,
        run: hundred_topics,
    },
    Row {
        id: "table1",
        quote: "Required time to reach the perplexity that AD-LDA obtains after running 10⁵ seconds",
        claim: "D-SGLD in two groups reaches AD-LDA's final perplexity before SGRLD does, and SGRLD before AD-LDA. Logarithms of times; a run that \
                never reaches it counts as the latest, so that its differences are bounds: SGRLD reaches it with no seed. What is refuted is refuted \
                at this size: \"SGRLD seemed to work less efficiently (and so does D-SGLD) for rather small datasets\", the paper says of 100,000 documents.",
        differs: DIFFERS,
        files: FILES,
        run: table1,
    },
    Row {
        id: "fig4-top",
        quote: "",
        claim: "Our reading of Fig. 4, about which the text at hand says nothing: one group of R = 1, 2, 4, 8 coupled chains falls the faster the more chains it has. Mean log-perplexity of \
                the evaluations in the first fifth of the rounds.",
        differs: DIFFERS,
        files: FILES,
        run: |effort, files| {
            let early = |course: &Course| course.early_mean(0.2);
            figure4(effort, files, &[(1, 1), (2, 1), (4, 1), (8, 1)], ("mean log-perplexity of the first fifth", early))
        },
    },
    Row {
        id: "fig4-bottom",
        quote: "",
        claim: "Our reading of Fig. 4, about which the text at hand says nothing: G = 1, 2, 4 groups of two coupled chains end the lower the more groups there are, after as many rounds.",
        differs: DIFFERS,
        files: FILES,
        run: |effort, files| figure4(effort, files, &[(2, 1), (4, 2), (8, 4)], ("log-perplexity in the end", Course::last)),
    },
    Row {
        id: "fig5",
        quote: "for Wikipedia, D-SGLD showed similar convergence in perplexity (they increase slightly as the size of datasets decreases) while \
                providing better results than AD-LDA in all settings. However, for Pubmed […] D-SGLD was not better than AD-LDA for the small \
                (100K) dataset",
        claim: "5,000, 20,000 and 80,000 documents: when the shorter of two runs ends, AD-LDA's log-perplexity is higher than D-SGLD's with \
                20,000 and 80,000. The difference with the fewest, about which the paper's two corpora disagree, and the increase with fewer documents, \
                for which it gives no amount, are only shown. That AD-LDA is the slower the more documents there are follows from its cost. Steps are \
                4, 1 and .25 times those of 20,000 documents: in proportion to one over the number, as the paper's are for Wikipedia, but not for Pubmed.",
        differs: DIFFERS,
        files: FILES,
        run: figure5,
    },
    Row {
        id: "fig6",
        quote: "AD-LDA improves linearly by increasing the number of workers […] D-SGLD showed its scalability by keeping the performance at a \
                similar level (for Pubmed, it is improved)",
        claim: "D-SGLD in two groups over all of 4, 8 and 12 agents has the same log-perplexity at the same time (±.02, ours; the distance of SGRLD in fig3 is as large). That AD-LDA's \
                time for a sweep falls in proportion (to 10 %) follows from its cost on a simulated cluster.",
        differs: DIFFERS,
        files: FILES,
        run: figure6,
    },
    Row {
        id: "fig7",
        quote: "converges much faster than those without load-balancing; it also converges faster than Async-LDA",
        claim: "Half of 8 agents are D times as slow (5 or 10). All chains make 10 updates a visit, or, balanced, 10 D at fast agents, so that they make more: after a \
                tenth of the time (ours), two of 20 rounds, balanced chains are below those that are not, and below Async-LDA. In the end they \
                are above those that are not balanced, as shown. How long fast agents wait follows from the plan.",
        differs: DIFFERS,
        files: FILES,
        run: figure7,
    },
    Row {
        id: "fig8",
        quote: "D-SGLD consistently outperforms SGRLD for all K",
        claim: "K = 10, 20, 50 topics on the same documents: when the shorter run ends, D-SGLD is below SGRLD with each.",
        differs: DIFFERS,
        files: FILES,
        run: figure8,
    },
    Row {
        id: "async",
        quote: "Async-LDA always performed worse than AD-LDA given balanced workloads",
        claim: "The log-perplexity of Async-LDA is above that of AD-LDA, in the end after as many sweeps, and after a fifth of the time.",
        differs: DIFFERS,
        files: FILES,
        run: asynchronous,
    },
    Row {
        id: "small",
        quote: "D-SGLD outperforms a single SGRLD based on a 100K dataset",
        claim: "5,000 documents, steps four times those of 20,000: when the shorter run ends, D-SGLD is below a single SGRLD chain.",
        differs: DIFFERS,
        files: FILES,
        run: small,
    },
    Row {
        id: "step",
        quote: "",
        claim: "Several step sizes a are tried in short runs side by side, and the best is kept: it is the best of long runs as \
                well, or within 2 % of it. The same documents judge short and long runs.",
        differs: DIFFERS,
        files: FILES,
        run: steps,
    },
];

const WORDS: u32 = 2000;
const DOCUMENTS: u64 = 20_000;
const HELD_OUT: u64 = 400;
/// The number of the first document that is held out, beyond those of any corpus.
const HELD_OUT_FROM: u64 = 1_000_000;
/// The parameter of the topics in a document that is made.
const ALPHA: f64 = 0.1;
/// Seconds to send a message, and bytes a second.
const LATENCY: f64 = 50e-6;
const BANDWIDTH: f64 = 1.25e9;

/// How something is sampled.
#[derive(Clone, Debug)]
enum How {
    /// D-SGLD.
    Chains(TopicDsgldSettings),
    /// AD-LDA.
    Together(SweepSettings),
    /// Async-LDA.
    Apart(SweepSettings),
}

/// A run but for its seed: that of a file, on documents that are made here.
#[derive(Clone, Debug)]
struct Run {
    documents: u64,
    /// The topics that they are made with.
    true_topics: u32,
    agents: u32,
    model: LdaSettings,
    how: How,
    /// How many times as slow the second half of the agents is.
    slow: f64,
    /// Whether fast agents make as many more updates.
    balanced: bool,
    /// Whether this is the quick version.
    is_quick: bool,
}

/// The files that topic rows share.
const FILES: &[&str] = &["dsgld/topics", "dsgld/sgrld", "dsgld/adlda", "dsgld/async-lda"];

/// Their runs.
struct Files {
    /// D-CC, D-Hybrid and D-CI: eight chains in one group, in two, and each by itself.
    coupled: Run,
    hybrid: Run,
    independent: Run,
    /// A single chain.
    sgrld: Run,
    /// AD-LDA by the plain sampler and by the fast one.
    dense: Run,
    fast: Run,
    async_lda: Run,
}

impl Files {
    fn new(files: &[Runs], effort: Effort) -> Result<Self> {
        let runs: Vec<Run> = Runs::all(files).0.iter().map(|file| Run::new(file, effort)).collect::<Result<_>>()?;
        let [coupled, hybrid, independent, sgrld, dense, fast, async_lda] =
            runs.try_into().map_err(|_| "the files of topic rows have seven runs")?;
        Ok(Self { coupled, hybrid, independent, sgrld, dense, fast, async_lda })
    }
}

/// What came of a run.
#[derive(Clone, Default)]
struct Course {
    /// Simulated seconds and log-perplexity of the evaluations.
    points: Vec<(f64, f64)>,
    /// Seconds for which each agent worked and waited, where that is told.
    load: Vec<(f64, f64)>,
}

impl Course {
    /// The log-perplexity in the end.
    fn last(&self) -> f64 {
        self.points.last().map_or(f64::NAN, |point| point.1)
    }

    /// When that was.
    fn end(&self) -> f64 {
        self.points.last().map_or(f64::NAN, |point| point.0)
    }

    /// The log-perplexity after so many seconds, interpolated over the logarithm of time.
    fn at(&self, seconds: f64) -> f64 {
        let after = self.points.iter().position(|point| point.0 >= seconds).unwrap_or(self.points.len());
        match (after.checked_sub(1).and_then(|before| self.points.get(before)), self.points.get(after)) {
            (Some(before), Some(after)) if before.0 > 0.0 => {
                let share = (seconds / before.0).ln() / (after.0 / before.0).ln();
                before.1 + share * (after.1 - before.1)
            }
            // Before the first evaluation that took time, and in the end.
            (_, Some(after)) => after.1,
            (Some(last), None) => last.1,
            (None, None) => f64::NAN,
        }
    }

    /// When a log-perplexity was first reached, interpolated likewise.
    fn reached(&self, log_perplexity: f64) -> Option<f64> {
        let after = self.points.iter().position(|point| point.1 <= log_perplexity)?;
        let there = self.points[after];
        Some(match after.checked_sub(1).map(|before| self.points[before]) {
            Some(before) if before.0 > 0.0 => {
                let share = (log_perplexity - before.1) / (there.1 - before.1);
                before.0 * (there.0 / before.0).powf(share)
            }
            _ => there.0,
        })
    }

    /// The mean log-perplexity of the evaluations in a first share of the rounds.
    fn early_mean(&self, share: f64) -> f64 {
        let count = (share * self.points.len() as f64).ceil() as usize;
        self.points.iter().take(count).map(|point| point.1).sum::<f64>() / count as f64
    }
}

/// Documents with known topics.
struct Corpus {
    truth: CorpusGenerator,
    train: Documents,
    held_out: HeldOut,
}

/// What is made once for each key.
struct Memory<K, T>(OnceLock<Mutex<HashMap<K, Arc<T>>>>);

impl<K: std::hash::Hash + Eq + Clone, T> Memory<K, T> {
    const fn new() -> Self {
        Self(OnceLock::new())
    }

    fn get(&self, key: K, make: impl FnOnce() -> Result<T>) -> Result<Arc<T>> {
        let all = self.0.get_or_init(Mutex::default);
        if let Some(known) = all.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return Ok(known.clone());
        }
        let made = Arc::new(make()?);
        all.lock().unwrap_or_else(PoisonError::into_inner).insert(key, made.clone());
        Ok(made)
    }
}

fn corpus(documents: u64, topics: u32, seed: u64) -> Result<Arc<Corpus>> {
    static CORPORA: Memory<(u64, u32, u64), Corpus> = Memory::new();
    CORPORA.get((documents, topics, seed), || {
        let settings =
            CorpusGeneratorSettings { vocabulary: WORDS, topics, alpha: ALPHA, concentration: 200.0, log_length: (4.4, 0.5) };
        let truth = CorpusGenerator::new(settings, Seed(seed))?;
        // The same for any number of documents.
        let held_out = parted(&truth.documents(HELD_OUT_FROM..HELD_OUT_FROM + HELD_OUT), seed);
        Ok(Corpus { train: truth.documents(0..documents), held_out, truth })
    })
}

/// A tenth of each document's tokens is to be predicted from the others.
fn parted(documents: &Documents, seed: u64) -> HeldOut {
    let [mut observed, mut scored] = [Documents::new(WORDS), Documents::new(WORDS)];
    for (number, bag) in (0..).zip(documents.iter()) {
        let mut stream = Seed(seed).stream(Who::Server, number, Purpose::HeldOut);
        let taken = draw_scored_tokens(bag.counts, 0.1, &mut stream);
        let rest: Vec<u32> = bag.counts.iter().zip(&taken).map(|(count, taken)| count - taken).collect();
        observed.push(bag.words, &rest);
        scored.push(bag.words, &taken);
    }
    HeldOut { observed, scored }
}

impl Corpus {
    fn problem(self: &Arc<Self>, run: &Run) -> TopicProblem {
        let (corpus, agents) = (self.clone(), run.agents as usize);
        let &LdaSettings { topics, alpha, beta, .. } = &run.model;
        let documents = move |agent: AgentId| {
            let (all, agent) = (corpus.train.len(), agent as usize);
            let mut mine = Documents::new(WORDS);
            for number in agent * all / agents..(agent + 1) * all / agents {
                let bag = corpus.train.document(number);
                mine.push(bag.words, bag.counts);
            }
            Ok(Box::new(mine) as Box<dyn DocumentSource>)
        };
        TopicProblem {
            agents: run.agents,
            vocabulary: WORDS,
            topics,
            alpha,
            beta,
            seed_words: Arc::default(),
            documents: Arc::new(documents),
        }
    }

    /// The first agent judges all documents: its time does not count.
    fn evaluator(self: &Arc<Self>, run: &Run, array: TopicArray) -> TopicEvaluation {
        let corpus = self.clone();
        let held_out = move |agent: AgentId| {
            let none = || Documents::new(WORDS);
            Ok(if agent == 0 { corpus.held_out.clone() } else { HeldOut { observed: none(), scored: none() } })
        };
        TopicEvaluation {
            every: (run.rounds() / run.evaluations()).max(1),
            problem: self.problem(run),
            held_out: Arc::new(held_out),
            sweeps: EVALUATION_SWEEPS,
            posterior: TopicPosterior { array, draws_from: run.rounds() / 2, has_alphas: false },
        }
    }

    /// The log-perplexity of the topics that the documents were made with.
    fn truth(&self) -> f64 {
        let stream = |document| Seed(1).stream(Who::Server, document, Purpose::Completion);
        self.held_out.perplexity(&self.truth.phi::<f64>(), ALPHA, EVALUATION_SWEEPS, stream).ln()
    }
}

/// The least of these: what others did on the machine meanwhile is left out.
fn least(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(f64::INFINITY, f64::min)
}

/// Seconds of an update or of a token in a sweep, on one core here. Quick versions have round numbers instead, so that their results do not
/// depend on the machine.
fn cost(run: &Run) -> Result<f64> {
    static COSTS: Memory<String, f64> = Memory::new();
    if run.is_quick {
        return Ok(match run.how {
            How::Chains(_) => 5e-3,
            How::Together(_) | How::Apart(_) => 8e-8,
        });
    }
    let Run { model, how, .. } = run;
    let key = match how {
        How::Chains(TopicDsgldSettings { batch, sweeps, .. }) => format!("{model:?} {batch} {sweeps:?}"),
        How::Together(sweeps) | How::Apart(sweeps) => format!("{model:?} {:?}", sweeps.sweep_by),
    };
    let measured = COSTS.get(key, || {
        let corpus = corpus(5000, model.topics, 1)?;
        let (size, &LdaSettings { alpha, beta, .. }) = (model.topics as usize, model);
        let stream = |number: u64| Seed(3).stream(Who::Server, number, Purpose::Topics);
        let seconds = |mut job: Box<dyn FnMut(usize) + '_>| {
            least((0..25).map(|time| {
                let since = Instant::now();
                job(time);
                since.elapsed().as_secs_f64()
            }))
        };
        let settings = match how {
            How::Chains(chains) => {
                let mut theta: Vec<f32> = corpus.truth.phi::<f32>().iter().map(|phi| 5e3 * (phi + 1e-7)).collect();
                let mut expected = ExpectedCounts::<f32>::new(WORDS, size, alpha, chains.sweeps);
                // Always the same minibatch, whose least time is not that of short documents; then a token, and an average minibatch.
                let bags = || (0..chains.batch).map(|number| corpus.train.document(number));
                let tokens = |bag: &Bag| bag.counts.iter().map(|count| f64::from(*count)).sum::<f64>();
                let of_batch: f64 = bags().map(|bag| tokens(&bag)).sum();
                let of_all: f64 = corpus.train.iter().map(|bag| tokens(&bag)).sum();
                let update = seconds(Box::new(|time| {
                    expected.sample(&theta, bags(), |number| stream((time as u64) << 32 | number));
                    let update = SgrldUpdate { beta, step: 1e-4, scale: 100.0 };
                    sgrld_step(&mut theta, &expected, update, &mut stream(time as u64));
                }));
                return Ok(update / of_batch * of_all / corpus.train.len() as f64 * chains.batch as f64);
            }
            How::Together(settings) | How::Apart(settings) => settings,
        };
        let tokens = Tokens::from_documents(&corpus.train);
        let mut topics_of = tokens.draw_topics(model.topics, stream);
        let mut counts = TopicCounts::new(WORDS, size);
        counts.add_tokens(tokens.words(), &topics_of);
        let mut by_word = WordSweep::new(&tokens, size);
        let sweep = seconds(Box::new(|time| {
            let stream = |number| stream((time as u64) << 32 | number);
            match settings.sweep_by {
                SweepBy::Word => {
                    by_word.sweep(&mut topics_of, &mut counts, alpha, beta, |word| stream(u64::from(word)));
                }
                SweepBy::Document => dense_sweep(&tokens, &mut topics_of, &mut counts, alpha, beta, stream),
            }
        }));
        Ok(sweep / tokens.len() as f64)
    });
    measured.map(|cost| *cost)
}

impl Run {
    fn new(file: &Table, effort: Effort) -> Result<Self> {
        let how = match find(file, "method.name").and_then(Value::as_str) {
            Some("adlda") => How::Together(settings(file, "method")?),
            Some("async_lda") => How::Apart(settings(file, "method")?),
            _ => How::Chains(settings(file, "method")?),
        };
        let (agents, model) = (value(file, "agents")?, settings(file, "model")?);
        let model: LdaSettings = model;
        Ok(Self {
            documents: DOCUMENTS,
            true_topics: model.topics,
            agents,
            model,
            how,
            slow: 1.0,
            balanced: false,
            is_quick: effort.is_quick(),
        })
    }

    fn rounds(&self) -> u64 {
        match &self.how {
            How::Chains(chains) => chains.rounds,
            How::Together(sweeps) | How::Apart(sweeps) => sweeps.rounds,
        }
    }

    /// The same with another number of rounds, and draws from as large a part of them.
    fn with_rounds(&self, rounds: u64) -> Self {
        let mut with = self.clone();
        let old = self.rounds();
        if let How::Chains(chains) = &mut with.how {
            chains.coupling.iter_mut().for_each(|phase| phase.rounds = (phase.rounds * rounds / old).max(1));
        }
        let (all, burn_in, thin) = match &mut with.how {
            How::Chains(chains) => (&mut chains.rounds, &mut chains.burn_in, &mut chains.thin),
            How::Together(sweeps) | How::Apart(sweeps) => (&mut sweeps.rounds, &mut sweeps.burn_in, &mut sweeps.thin),
        };
        *all = rounds;
        *burn_in = *burn_in * rounds / old;
        *thin = (*thin * rounds / old).max(1);
        with
    }

    /// The same with a tenth of the rounds, but at least 4, in the quick version. That shows whether a row runs, not what its claims are worth.
    fn shortened(&self) -> Self {
        if self.is_quick { self.with_rounds((self.rounds() / 10).max(4)) } else { self.clone() }
    }

    /// How often predictions are judged, which takes most of the time of quick versions.
    fn evaluations(&self) -> u64 {
        if self.is_quick { 5 } else { 20 }
    }

    /// The same with so many chains, in so many groups if they are coupled.
    fn with_chains(&self, chains: u32, groups: u32) -> Self {
        let mut with = self.clone();
        if let How::Chains(settings) = &mut with.how {
            settings.chains = chains;
            settings.coupling.iter_mut().for_each(|phase| phase.groups = groups);
        }
        with
    }

    /// The same with steps that are a multiple of the file's.
    fn with_steps(&self, factor: f64) -> Self {
        let mut with = self.clone();
        if let How::Chains(TopicDsgldSettings { step: StepSize::Annealed { a, .. }, .. }) = &mut with.how {
            *a *= factor;
        }
        with
    }

    /// How many times as long as others an agent takes.
    fn slowness(&self, agent: AgentId) -> f64 {
        if agent >= self.agents.div_ceil(2) { self.slow } else { 1.0 }
    }

    /// The course with this seed, which decides documents and all else.
    fn course(&self, seed: u64) -> Result<Arc<Course>> {
        static COURSES: Memory<String, Course> = Memory::new();
        COURSES.get(format!("{self:?} {seed}"), || {
            let corpus = corpus(self.documents, self.true_topics, seed)?;
            let (cost, problem, run) = (cost(self)?, corpus.problem(self), self.clone());
            let tokens: Vec<f64> =
                (0..self.agents).map(|agent| Ok(problem.open(agent)?.tokens() as f64)).collect::<Result<_>>()?;
            // The fast sampler stands for the plain one, whose stationary distribution is the same, at the cost of that.
            let by_word = |sweeps: &SweepSettings| SweepSettings { sweep_by: SweepBy::Word, ..*sweeps };
            match &self.how {
                How::Chains(chains) => {
                    let mut settings = chains.chains();
                    if let (true, Trajectory::Same(updates)) = (run.balanced, &chains.trajectory) {
                        let stay = |agent| updates * run.slow / run.slowness(agent);
                        settings.trajectory = Trajectory::Each((0..self.agents).map(stay).collect());
                    }
                    let method = Dsgld { agents: self.agents, transition: chains.transition::<f32>(problem), settings };
                    simulated(method, corpus.evaluator(self, TopicArray::Phi), seed, move |agent, task| {
                        task.updates(agent) as f64 * cost * run.slowness(agent)
                    })
                }
                How::Together(sweeps) => {
                    let method = AdLda { problem, settings: by_word(sweeps) };
                    simulated(method, corpus.evaluator(self, TopicArray::Counts), seed, move |agent, task| match *task {
                        adlda::Task::Sweep { done, .. } if done < run.rounds() => {
                            tokens[agent as usize] * cost * run.slowness(agent)
                        }
                        adlda::Task::Sweep { .. } | adlda::Task::Draw => 0.0,
                    })
                }
                How::Apart(sweeps) => {
                    let method = AsyncLda { problem, settings: by_word(sweeps) };
                    simulated(method, corpus.evaluator(self, TopicArray::Counts), seed, move |agent, task| match task {
                        async_lda::Task::Sweep(_) => tokens[agent as usize] * cost * run.slowness(agent),
                        async_lda::Task::Draw => 0.0,
                    })
                }
            }
        })
    }
}

/// Runs a method on a simulated cluster with a rank for each agent.
fn simulated<M: Method>(
    inner: M,
    evaluator: TopicEvaluation,
    seed: u64,
    cost: impl Fn(AgentId, &M::Task) -> f64 + 'static,
) -> Result<Course>
where
    M::Server: Posterior<M::Number>,
{
    let ranks = inner.agents();
    let cluster = Cluster {
        ranks,
        task: Some(Box::new(move |agent, task| match task {
            EvaluationTask::Inner(task) => cost(agent, task),
            EvaluationTask::Evaluate(_) => 0.0,
        })),
        after_report: None,
        latency: LATENCY,
        bandwidth: BANDWIDTH,
    };
    let mut recording = Recording::default();
    simulate::run(Arc::new(WithEvaluation { inner, evaluator }), JobOptions::new(Seed(seed)), &cluster, None, &mut recording)?;
    let value = |row: &Written, name: &str| row.values.iter().find(|value| value.0 == name).map_or(f64::NAN, |value| value.1);
    let points = recording.table("metrics").map(|row| (value(row, "seconds"), value(row, "perplexity").ln())).collect();
    let last = recording.table("load").map(|row| row.step).max();
    let of_last = recording.table("load").filter(|row| Some(row.step) == last);
    let load = of_last.map(|row| (value(row, "busy_seconds"), value(row, "blocked_seconds"))).collect();
    Ok(Course { points, load })
}

/// The courses of runs, seed by seed.
fn courses(runs: &[Run], seeds: u64) -> Result<Vec<Vec<Arc<Course>>>> {
    let jobs: Vec<(&Run, u64)> = runs.iter().flat_map(|run| (1..=seeds).map(move |seed| (run, seed))).collect();
    // Costs are measured while nothing else is computed.
    runs.iter().try_for_each(|run| cost(run).map(drop))?;
    let all = side_by_side(&jobs, |(run, seed)| run.course(*seed))?;
    Ok(all.chunks(seeds as usize).map(<[_]>::to_vec).collect())
}

fn each(courses: &[Arc<Course>], of: impl Fn(&Course) -> f64) -> Vec<f64> {
    courses.iter().map(|course| of(course)).collect()
}

/// What of one course less that of another, seed by seed.
fn difference(one: &[Arc<Course>], other: &[Arc<Course>], of: impl Fn(&Course) -> f64) -> Vec<f64> {
    minus(&each(one, &of), &each(other, &of))
}

/// The log-perplexity of one course less that of another at the same time: a share of the shorter of both, seed by seed.
fn difference_at(share: f64, one: &[Arc<Course>], other: &[Arc<Course>]) -> Vec<f64> {
    let at = |(one, other): (&Arc<Course>, &Arc<Course>)| {
        let seconds = share * one.end().min(other.end());
        one.at(seconds) - other.at(seconds)
    };
    one.iter().zip(other).map(at).collect()
}

/// Perplexity by the logarithm of time.
fn chart(title: &str, lines: &[(&str, &[Arc<Course>])]) -> Chart {
    let line = |(name, courses): &(&str, &[Arc<Course>])| {
        let of = |course: &Arc<Course>| {
            course.points.iter().filter(|point| point.0 > 0.0).map(|point| (point.0.log10(), point.1.exp())).collect()
        };
        ((*name).to_owned(), courses.iter().map(of).collect())
    };
    Chart::new(title, "log10 of simulated seconds", "perplexity of held-out documents", lines.iter().map(line).collect())
}

fn caption(seeds: u64, more: &str) -> String {
    format!(
        "Simulated cluster with a rank for each agent. Predictions are averaged over chains, and from half of the rounds on over time; \
         {}. {more}",
        means_and_errors(seeds)
    )
}

/// Says what things cost, and how near the true topics are.
fn tell(case: &mut Case, files: &Files, truths: &[f64]) -> Result<()> {
    case.shows("log-perplexity of the true topics", truths, "what cannot be passed by far");
    if files.hybrid.is_quick {
        return Ok(());
    }
    let [update, dense, fast] = [cost(&files.hybrid)?, cost(&files.dense)?, cost(&files.fast)?];
    case.tells("an update of SGRLD on one core, measured once", format!("{:.2} ms", 1e3 * update), "");
    case.tells("a token of the dense collapsed sampler, likewise", format!("{:.0} ns", 1e9 * dense), "");
    case.tells("a token of the sampler by word, likewise", format!("{:.0} ns", 1e9 * fast), "");
    Ok(())
}

fn truths(run: &Run, seeds: u64) -> Result<Vec<f64>> {
    (1..=seeds).map(|seed| Ok(corpus(run.documents, run.true_topics, seed)?.truth())).collect()
}

fn figure3(effort: Effort, files: &[Runs]) -> Result<Outcome> {
    let files = Files::new(files, effort)?;
    let seeds = effort.seeds;
    // As long as the chains, so that it averages over half of that time as they do.
    let ad_lda = |run: &Run| run.with_rounds(run.rounds() * 5 / 9);
    let runs = [
        files.coupled.clone(),
        files.hybrid.clone(),
        files.independent.clone(),
        files.sgrld.with_rounds(files.sgrld.rounds() * 11 / 10),
        ad_lda(&files.dense),
        ad_lda(&files.fast),
    ]
    .map(|run| run.shortened());
    let all = courses(&runs, seeds)?;
    let [coupled, hybrid, independent, sgrld, dense, fast] = &all[..] else { return Err("six runs".into()) };
    let mut case = Case::default();
    for (name, variant) in [("D-CC", coupled), ("D-Hybrid", hybrid), ("D-CI", independent)] {
        case.above(format!("SGRLD less {name}, in the end of the shorter"), difference_at(1.0, sgrld, variant), 0.0);
        case.above(format!("AD-LDA less {name}, likewise"), difference_at(1.0, dense, variant), 0.0);
    }
    case.above("D-CI less D-CC, after a tenth of the time", difference_at(0.1, independent, coupled), 0.0);
    case.above("D-CI less D-Hybrid, after a tenth of the time", difference_at(0.1, independent, hybrid), 0.0);
    case.above("D-CC less D-Hybrid, in the end", difference_at(1.0, coupled, hybrid), 0.0);
    let exact = truths(&runs[0], seeds)?;
    let lines: [(&str, &[Arc<Course>]); 6] = [
        ("D-CC", coupled),
        ("D-Hybrid", hybrid),
        ("D-CI", independent),
        ("SGRLD", sgrld),
        ("AD-LDA, dense", dense),
        ("AD-LDA, by word", fast),
    ];
    for (name, variant) in lines {
        case.shows(format!("{name}: gap to the true topics in the end"), &minus(&each(variant, Course::last), &exact), "");
        case.shows(format!("{name}: simulated seconds"), &each(variant, Course::end), "");
    }
    case.shows("AD-LDA by word less D-CI, in the end of the shorter", &difference_at(1.0, fast, independent), "");
    tell(&mut case, &files, &exact)?;
    let more = "20,000 documents, 20 topics, 2,000 words, 8 agents; SGRLD is one chain on one rank.";
    Ok(case.judged(Some(curves("Perplexity over time", vec![chart("", &lines)], &caption(seeds, more)))))
}

/// Twenty agents, each with a chain.
fn twenty(effort: Effort, files: &[Runs]) -> Result<Outcome> {
    let files = Files::new(files, effort)?;
    let seeds = effort.seeds.min(5);
    let chains = [(&files.coupled, 1), (&files.hybrid, 5), (&files.independent, 0)]
        .map(|(run, groups)| Run { agents: 20, ..run.with_chains(20, groups).shortened() });
    // About as long as the chains.
    let dense = Run { agents: 20, ..files.dense.with_rounds(files.dense.rounds() * 3 / 2).shortened() };
    let runs = [&chains[..], &[files.sgrld.with_rounds(files.sgrld.rounds() * 6 / 5).shortened(), dense]].concat();
    let all = courses(&runs, seeds)?;
    let [coupled, hybrid, independent, sgrld, dense] = &all[..] else { return Err("five runs".into()) };
    let mut case = Case::default();
    for (name, variant) in [("D-CC", coupled), ("D-Hybrid", hybrid), ("D-CI", independent)] {
        case.above(format!("SGRLD less {name}, in the end of the shorter"), difference_at(1.0, sgrld, variant), 0.0);
        case.above(format!("AD-LDA less {name}, likewise"), difference_at(1.0, dense, variant), 0.0);
    }
    case.above("D-CI less D-CC, after a tenth of the time", difference_at(0.1, independent, coupled), 0.0);
    case.above("D-CI less D-Hybrid, after a tenth of the time", difference_at(0.1, independent, hybrid), 0.0);
    let exact = truths(&runs[0], seeds)?;
    let lines: [(&str, &[Arc<Course>]); 5] =
        [("D-CC", coupled), ("D-Hybrid", hybrid), ("D-CI", independent), ("SGRLD", sgrld), ("AD-LDA, dense", dense)];
    for (name, variant) in lines {
        for (when, share) in [("after a tenth of its time", 0.1), ("half-way", 0.5), ("in the end", 1.0)] {
            let gap = minus(&each(variant, |course| course.at(share * course.end())), &exact);
            case.shows(format!("{name}: gap to the true topics {when}"), &gap, "");
        }
    }
    tell(&mut case, &files, &exact)?;
    let more = "20,000 documents, 20 topics, 2,000 words, 20 agents.";
    Ok(case.judged(Some(curves("Perplexity over time, 20 agents", vec![chart("", &lines)], &caption(seeds, more)))))
}

/// The topics, priors and sweeps of the paper.
fn hundred_topics(effort: Effort, files: &[Runs]) -> Result<Outcome> {
    let files = Files::new(files, effort)?;
    let seeds = effort.seeds.min(5);
    let of_paper = |run: &Run| {
        let mut run = run.shortened();
        run.model = LdaSettings { topics: 100, alpha: 0.01, beta: 1e-4, ..run.model };
        run.true_topics = run.model.topics;
        if let How::Chains(chains) = &mut run.how {
            chains.sweeps = Sweeps { burn_in: 50, kept: 50 };
        }
        run
    };
    // Both end at about the same time as the chains, so that they are averaged over half of that time as these are.
    let longer = |run: &Run, share: u64| run.with_rounds(run.rounds() * share / 10);
    let runs = [&files.hybrid, &files.independent, &longer(&files.sgrld, 11), &longer(&files.dense, 11)].map(of_paper);
    let all = courses(&runs, seeds)?;
    let [hybrid, independent, sgrld, dense] = &all[..] else { return Err("four runs".into()) };
    let mut case = Case::default();
    for (name, variant) in [("D-Hybrid", hybrid), ("D-CI", independent)] {
        case.above(format!("SGRLD less {name}, in the end of the shorter"), difference_at(1.0, sgrld, variant), 0.0);
        case.above(format!("AD-LDA less {name}, likewise"), difference_at(1.0, dense, variant), 0.0);
    }
    case.above("D-CI less D-Hybrid, after a tenth of the time", difference_at(0.1, independent, hybrid), 0.0);
    let exact = truths(&runs[0], seeds)?;
    let lines: [(&str, &[Arc<Course>]); 4] =
        [("D-Hybrid", hybrid), ("D-CI", independent), ("SGRLD", sgrld), ("AD-LDA, dense", dense)];
    for (name, variant) in lines {
        case.shows(format!("{name}: gap to the true topics in the end"), &minus(&each(variant, Course::last), &exact), "");
        case.shows(format!("{name}: simulated seconds"), &each(variant, Course::end), "");
    }
    case.shows("log-perplexity of the true topics", &exact, "what cannot be passed by far");
    let more = "20,000 documents, 100 topics, 2,000 words, 8 agents.";
    Ok(case.judged(Some(curves("Perplexity over time, 100 topics", vec![chart("", &lines)], &caption(seeds, more)))))
}

fn table1(effort: Effort, files: &[Runs]) -> Result<Outcome> {
    let files = Files::new(files, effort)?;
    let seeds = effort.seeds;
    // All of them run as long as AD-LDA by the dense sampler.
    let longer = |run: &Run| run.with_rounds(run.rounds() * 2);
    let runs = [longer(&files.hybrid), longer(&files.sgrld), files.dense.clone(), files.fast.clone()].map(|run| run.shortened());
    let all = courses(&runs, seeds)?;
    let [hybrid, sgrld, dense, fast] = &all[..] else { return Err("four runs".into()) };
    let mut case = Case::default();
    let goals = each(dense, Course::last);
    // What does not reach the goal is as late as the longest run: later than all that do.
    let longest: Vec<f64> = (0..goals.len()).map(|seed| all.iter().map(|of| of[seed].end()).fold(0.0, f64::max)).collect();
    let times = |variant: &[Arc<Course>]| -> Vec<f64> {
        let of = |((course, goal), longest): ((&Arc<Course>, &f64), &f64)| course.reached(*goal).unwrap_or(*longest).ln();
        variant.iter().zip(&goals).zip(&longest).map(of).collect()
    };
    // The goal is where AD-LDA ends.
    let whole = each(dense, |course| course.end().ln());
    case.above("SGRLD's log-time less D-SGLD's", minus(&times(sgrld), &times(hybrid)), 0.0);
    case.above("AD-LDA's log-time less SGRLD's", minus(&whole, &times(sgrld)), 0.0);
    case.shows("AD-LDA's time / D-SGLD's, logarithm", &minus(&whole, &times(hybrid)), "the paper: more than 2.3, ten times");
    case.shows("AD-LDA, dense: seconds of the whole run", &each(dense, Course::end), "");
    for (name, variant) in [("D-SGLD", hybrid), ("SGRLD", sgrld), ("AD-LDA, by word", fast)] {
        let reached = variant.iter().zip(&goals).filter(|(course, goal)| course.reached(**goal).is_some()).count();
        let seconds: Vec<f64> = times(variant).iter().map(|log| log.exp()).collect();
        case.shows(format!("{name}: seconds, reached in {reached} of {seeds}; elsewhere those of the longest run"), &seconds, "");
    }
    tell(&mut case, &files, &truths(&runs[0], seeds)?)?;
    Ok(case.judged(None))
}

/// Chains in groups, each of them with fewer than the next, by what is found for a course.
fn figure4(effort: Effort, files: &[Runs], of: &[(u32, u32)], found: (&str, fn(&Course) -> f64)) -> Result<Outcome> {
    let files = Files::new(files, effort)?;
    let seeds = effort.seeds;
    let run = |&(chains, groups): &(u32, u32)| files.coupled.with_chains(chains, groups).shortened();
    let runs: Vec<Run> = of.iter().map(run).collect();
    let all = courses(&runs, seeds)?;
    let name = |&(chains, groups): &(u32, u32)| format!("{groups} × {}", chains / groups);
    let mut case = Case::default();
    for (pair, names) in all.windows(2).zip(of.windows(2)) {
        let less = difference(&pair[0], &pair[1], found.1);
        case.above(format!("{} less {}", name(&names[0]), name(&names[1])), less, 0.0).is_ours();
    }
    let names: Vec<String> = of.iter().map(name).collect();
    let lines: Vec<(&str, &[Arc<Course>])> = names.iter().zip(&all).map(|(name, all)| (name.as_str(), all.as_slice())).collect();
    for (name, all) in &lines {
        case.shows(format!("{name}: {}", found.0), &each(all, found.1), "");
    }
    let more = "Groups × chains of a group.";
    Ok(case.judged(Some(curves("Coupled chains", vec![chart("", &lines)], &caption(seeds, more)))))
}

fn figure5(effort: Effort, files: &[Runs]) -> Result<Outcome> {
    let files = Files::new(files, effort)?;
    let seeds = effort.seeds;
    let sizes = [5000, DOCUMENTS, 80_000];
    // As in the paper for Wikipedia, where a step times the number of documents is about the same for all numbers.
    let steps = sizes.map(|documents| DOCUMENTS as f64 / documents as f64);
    let chains: Vec<Run> = sizes
        .iter()
        .zip(steps)
        .map(|(&documents, step)| Run { documents, ..files.hybrid.with_steps(step).shortened() })
        .collect();
    let dense = &files.dense;
    // As long as the chains.
    let sweeps =
        sizes.map(|documents| Run { documents, ..dense.with_rounds(dense.rounds() * 5 / 9 * DOCUMENTS / documents).shortened() });
    let (chains, sweeps) = (courses(&chains, seeds)?, courses(&sweeps, seeds)?);
    let mut case = Case::default();
    for (place, documents) in sizes.iter().enumerate().filter(|(place, _)| *place != 1) {
        let name = format!("D-SGLD with {} documents less with 20,000, in the end", text::count(*documents));
        case.shows(name, &difference_at(1.0, &chains[place], &chains[1]), "");
    }
    for (documents, (sweeps, chains)) in sizes.iter().zip(sweeps.iter().zip(&chains)) {
        let name = format!("{} documents: AD-LDA less D-SGLD, in the end", text::count(*documents));
        match *documents {
            0..DOCUMENTS => case.shows(name, &difference_at(1.0, sweeps, chains), ""),
            _ => drop(case.above(name, difference_at(1.0, sweeps, chains), 0.0)),
        }
    }
    for pair in [0, 1] {
        let less = difference_at(0.1, &sweeps[pair + 1], &sweeps[pair]);
        let [more, fewer] = [pair + 1, pair].map(|place| text::count(sizes[place]));
        let name = format!("AD-LDA with {more} documents less with {fewer}, after a tenth of the time");
        case.above(name, less, 0.0).is_by_construction();
    }
    let names: Vec<String> = ["D-SGLD", "AD-LDA"]
        .iter()
        .flat_map(|method| sizes.map(|size| format!("{method}, {} documents", text::count(size))))
        .collect();
    let both: Vec<&[Arc<Course>]> = chains.iter().chain(&sweeps).map(Vec::as_slice).collect();
    let lines: Vec<(&str, &[Arc<Course>])> = names.iter().map(String::as_str).zip(both).collect();
    for (name, courses) in &lines {
        case.shows(format!("{name}: log-perplexity in the end"), &each(courses, Course::last), "");
    }
    tell(&mut case, &files, &truths(&files.hybrid, seeds)?)?;
    Ok(case.judged(Some(curves("How many documents", vec![chart("", &lines)], &caption(seeds, "")))))
}

fn figure6(effort: Effort, files: &[Runs]) -> Result<Outcome> {
    let files = Files::new(files, effort)?;
    let seeds = effort.seeds;
    let counts = [4, 8, 12];
    let chains = counts.map(|agents| Run { agents, ..files.hybrid.with_chains(agents, 2).shortened() });
    let sweeps = counts.map(|agents| Run { agents, ..files.dense.with_rounds(20).shortened() });
    let (chains, sweeps) = (courses(&chains, seeds)?, courses(&sweeps, seeds)?);
    let mut case = Case::default();
    let sweep = |courses: &[Arc<Course>]| each(courses, Course::end);
    for place in [1, 2] {
        let ratio: Vec<f64> = sweep(&sweeps[0]).iter().zip(sweep(&sweeps[place])).map(|(four, more)| four / more).collect();
        let ideal = f64::from(counts[place]) / 4.0;
        let off: Vec<f64> = ratio.iter().map(|ratio| ratio / ideal - 1.0).collect();
        let name = format!("AD-LDA: speed-up from 4 to {} agents over the ideal {ideal}, less 1", counts[place]);
        case.within(name, off, 0.1).is_by_construction();
        let less = difference_at(1.0, &chains[0], &chains[place]);
        case.within(format!("D-SGLD: log-perplexity with 4 agents less with {}, at the same time", counts[place]), less, 0.02);
    }
    let names = counts.map(|count| format!("D-SGLD, {count} agents"));
    let lines: Vec<(&str, &[Arc<Course>])> = names.iter().map(String::as_str).zip(chains.iter().map(Vec::as_slice)).collect();
    Ok(case.judged(Some(curves("How many agents", vec![chart("", &lines)], &caption(seeds, "Two groups over all agents.")))))
}

fn figure7(effort: Effort, files: &[Runs]) -> Result<Outcome> {
    let files = Files::new(files, effort)?;
    let seeds = effort.seeds.min(5);
    let mut case = Case::default();
    let mut charts = Vec::new();
    for slow in [5.0, 10.0] {
        let plain = Run { slow, ..files.hybrid.with_rounds(20).shortened() };
        let balanced = Run { balanced: true, ..plain.clone() };
        // As long as the others.
        let apart = Run { slow, ..files.async_lda.with_rounds(80).shortened() };
        let all = courses(&[plain, balanced, apart], seeds)?;
        let [plain, balanced, apart] = &all[..] else { return Err("three runs".into()) };
        let waits = |courses: &[Arc<Course>]| {
            each(courses, |course| {
                let fast = &course.load[..course.load.len() / 2];
                let (busy, blocked) = fast.iter().fold((0.0, 0.0), |sum, load| (sum.0 + load.0, sum.1 + load.1));
                blocked / (busy + blocked)
            })
        };
        let expected = (slow - 1.0) / slow;
        let off: Vec<f64> = waits(plain).iter().map(|share| share - expected).collect();
        case.within(format!("D = {slow}: share for which fast agents wait, less (D − 1)/D"), off, 0.05).is_by_construction();
        let below: Vec<f64> = waits(balanced).iter().map(|share| 0.1 - share).collect();
        case.above(format!("D = {slow}, balanced: 10 % less the share for which they wait"), below, 0.0).is_by_construction();
        // All agents of Async-LDA are still at work by then.
        for (name, other) in [("not balanced", plain), ("Async-LDA", apart)] {
            let less = difference_at(0.1, other, balanced);
            case.above(format!("D = {slow}, after a tenth of the time: {name} less balanced"), less, 0.0);
        }
        let in_the_end = difference_at(1.0, plain, balanced);
        case.shows(format!("D = {slow}, in the end: not balanced less balanced"), &in_the_end, "below 0: accuracy is lost");
        let lines: [(&str, &[Arc<Course>]); 3] = [("balanced", balanced), ("not balanced", plain), ("Async-LDA", apart)];
        charts.push(chart(&format!("D = {slow}"), &lines));
    }
    Ok(case.judged(Some(curves("Half of the agents are slow", charts, &caption(seeds, "D-SGLD in two groups.")))))
}

fn figure8(effort: Effort, files: &[Runs]) -> Result<Outcome> {
    let files = Files::new(files, effort)?;
    let seeds = effort.seeds;
    let mut case = Case::default();
    let mut charts = Vec::new();
    for topics in [10, files.hybrid.model.topics, 50] {
        let model = |run: &Run| LdaSettings { topics, ..run.model.clone() };
        let longer = files.sgrld.with_rounds(files.sgrld.rounds() * 6 / 5);
        let runs = [&files.hybrid, &longer].map(|run| Run { model: model(run), ..run.shortened() });
        let all = courses(&runs, seeds)?;
        let less = difference_at(1.0, &all[1], &all[0]);
        case.above(format!("K = {topics}: SGRLD less D-SGLD, in the end of the shorter"), less, 0.0);
        let exact = truths(&runs[0], seeds)?;
        case.shows(format!("K = {topics}: gap of D-SGLD to the true topics"), &minus(&each(&all[0], Course::last), &exact), "");
        charts.push(chart(&format!("K = {topics}"), &[("D-SGLD", &all[0]), ("SGRLD", &all[1])]));
    }
    Ok(case.judged(Some(curves(
        "How many topics",
        charts,
        &caption(seeds, "D-SGLD in two groups; the documents have 20 topics."),
    ))))
}

fn asynchronous(effort: Effort, files: &[Runs]) -> Result<Outcome> {
    let files = Files::new(files, effort)?;
    let seeds = effort.seeds;
    let runs = [&files.async_lda, &files.dense].map(|run| run.shortened());
    let all = courses(&runs, seeds)?;
    let mut case = Case::default();
    case.above("Async-LDA less AD-LDA, in the end", difference(&all[0], &all[1], Course::last), 0.0);
    case.above("the same after a fifth of the time", difference_at(0.2, &all[0], &all[1]), 0.0);
    let lines: [(&str, &[Arc<Course>]); 2] = [("Async-LDA", &all[0]), ("AD-LDA", &all[1])];
    Ok(case.judged(Some(curves("Waiting for nobody", vec![chart("", &lines)], &caption(seeds, "Eight agents, equal loads.")))))
}

fn small(effort: Effort, files: &[Runs]) -> Result<Outcome> {
    let files = Files::new(files, effort)?;
    let seeds = effort.seeds;
    // In proportion to one over the number of documents, as the paper's for Wikipedia.
    let longer = files.sgrld.with_rounds(files.sgrld.rounds() * 6 / 5);
    let runs = [&files.hybrid, &longer].map(|run| Run { documents: 5000, ..run.with_steps(4.0).shortened() });
    let all = courses(&runs, seeds)?;
    let mut case = Case::default();
    case.above("SGRLD less D-SGLD, in the end of the shorter", difference_at(1.0, &all[1], &all[0]), 0.0);
    let lines: [(&str, &[Arc<Course>]); 2] = [("D-SGLD", &all[0]), ("SGRLD", &all[1])];
    Ok(case.judged(Some(curves("5,000 documents", vec![chart("", &lines)], &caption(seeds, "D-SGLD in two groups.")))))
}

fn steps(effort: Effort, files: &[Runs]) -> Result<Outcome> {
    let files = Files::new(files, effort)?;
    let seeds = effort.seeds.min(5);
    // Ten times the file's step, the step, and a tenth of it: a of a (1 + t/1000)^-0.6.
    let tried = [0.1, 0.01, 0.001];
    let run = |step: f64, rounds: u64| files.hybrid.with_steps(step / tried[1]).with_rounds(rounds).shortened();
    let short = courses(&tried.map(|step| run(step, 15)), seeds)?;
    let long = courses(&tried.map(|step| run(step, files.hybrid.rounds())), seeds)?;
    let mut case = Case::default();
    let best = |all: &[Vec<Arc<Course>>], seed: usize| -> usize {
        let lasts = (0..tried.len()).map(|place| all[place][seed].last());
        lasts.enumerate().min_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |(place, _)| place)
    };
    let lost: Vec<f64> =
        (0..seeds as usize).map(|seed| long[best(&short, seed)][seed].last() - long[best(&long, seed)][seed].last()).collect();
    let chosen: Vec<f64> = (0..seeds as usize).map(|seed| tried[best(&short, seed)]).collect();
    case.within("log-perplexity lost by the choice", lost, 0.02).is_ours();
    case.tells("chosen a, seed by seed", chosen.iter().map(f64::to_string).collect::<Vec<_>>().join(", "), "");
    for (place, step) in tried.iter().enumerate() {
        case.shows(format!("a = {step}: log-perplexity after 15 rounds"), &each(&short[place], Course::last), "");
        case.shows(format!("a = {step}: in the end"), &each(&long[place], Course::last), "");
    }
    let names = tried.map(|step| format!("a = {step}"));
    let lines: Vec<(&str, &[Arc<Course>])> = names.iter().map(String::as_str).zip(long.iter().map(Vec::as_slice)).collect();
    Ok(case.judged(Some(curves("Step sizes", vec![chart("", &lines)], &caption(seeds, "D-SGLD in two groups.")))))
}
