//! Topic models on a few small documents of each agent.

use mpibayes::cluster::Method;
use mpibayes::kernels::langevin::StepSize;
use mpibayes::lda::{DocumentSource, Documents, HeldOut, SeedWords, Sweeps};
use mpibayes::methods::chains::dsgld::{AveragingPhase, Dsgld, DsgldSettings, Trajectory};
use mpibayes::methods::topics::adlda::AdLda;
use mpibayes::methods::topics::async_lda::AsyncLda;
use mpibayes::methods::topics::{
    Lda, LdaSamplerSettings, OptimizePriors, PhiUpdate, Sgrld, SweepBy, SweepSettings, TopicEvaluation, TopicProblem,
};
use mpibayes::methods::{Posterior, TopicArray, TopicPosterior, WithEvaluation};
use mpibayes::number::Real;
use mpibayes::random::{Purpose, Seed, Who};
use rand::RngExt;
use std::sync::Arc;

const WORDS: u32 = 11;

/// Seven documents of agent 0, six of agent 1, and so on.
fn problem(agents: u32) -> TopicProblem {
    let documents = |agent: u32| {
        let mut random = Seed(8).stream(Who::Agent(agent), 0, Purpose::Synthetic);
        let mut documents = Documents::new(WORDS);
        let words: Vec<u32> = (0..WORDS).collect();
        for _ in agent..7 {
            let counts: Vec<u32> = words.iter().map(|_| random.random_range(0..4_u32).saturating_sub(1)).collect();
            documents.push(&words, &counts);
        }
        Ok(Box::new(documents) as Box<dyn DocumentSource>)
    };
    TopicProblem {
        agents,
        vocabulary: WORDS,
        topics: 3,
        alpha: 0.3,
        beta: 0.2,
        seed_words: Arc::default(),
        documents: Arc::new(documents),
    }
}

fn sweeps(rounds: u64, thin: u64, by: SweepBy) -> SweepSettings {
    SweepSettings { rounds, burn_in: 1, thin, sweep_by: by, ..SweepSettings::default() }
}

/// The same with priors that are estimated before every other sweep from the second on.
fn optimising(settings: SweepSettings) -> SweepSettings {
    SweepSettings { optimize: OptimizePriors::Both, optimize_every: 2, optimize_after: 1, ..settings }
}

/// Sweeps with a background, with φ at its mean, and with drawn φ; with seed words, and α of each topic.
pub fn lda() -> Lda {
    let seed_words = Arc::new(SeedWords::new([(0, 1), (7, 2), (9, 2)], 3));
    Lda::new(
        TopicProblem { seed_words, ..problem(5) },
        LdaSamplerSettings {
            rounds: 7,
            burn_in: 3,
            thin: 2,
            phi: PhiUpdate::Auto,
            optimize: OptimizePriors::Asymmetric,
            optimize_every: 2,
            optimize_after: 1,
            resident: true,
        },
    )
}

pub fn lda_in_files() -> Lda {
    Lda::new(problem(5), LdaSamplerSettings { rounds: 4, burn_in: 2, thin: 1, resident: false, ..LdaSamplerSettings::default() })
}

pub fn adlda() -> AdLda {
    AdLda { problem: problem(5), settings: sweeps(7, 2, SweepBy::Word) }
}

pub fn async_lda() -> AsyncLda {
    AsyncLda { problem: problem(4), settings: sweeps(5, 1, SweepBy::Document) }
}

pub fn adlda_with_priors() -> AdLda {
    AdLda { settings: optimising(adlda().settings), ..adlda() }
}

pub fn async_lda_with_priors() -> AsyncLda {
    AsyncLda { settings: optimising(async_lda().settings), ..async_lda() }
}

/// D-SGLD with averaging at the ends of some visits, as the paper has it.
pub fn dsgld<F: Real>() -> Dsgld<Sgrld<F>> {
    let settings = DsgldSettings {
        chains: 3,
        rounds: Some(8),
        trajectory: Trajectory::Same(2.0),
        burn_in: Some(2),
        thin: Some(3),
        coupling: vec![AveragingPhase { groups: 1, rounds: 3 }],
        ..DsgldSettings::default()
    };
    let sweeps = Sweeps { burn_in: 2, kept: 3 };
    Dsgld { agents: 4, transition: Sgrld::new(problem(4), 3, StepSize::Constant(0.01), sweeps), settings }
}

/// A method whose topics are evaluated every `every` rounds, averaged from the second evaluation on.
pub fn evaluated<M: Method>(inner: M, array: TopicArray, every: u64) -> WithEvaluation<M, TopicEvaluation>
where
    M::Server: Posterior<M::Number>,
{
    let problem = problem(inner.agents());
    let same = problem.clone();
    let evaluator = TopicEvaluation {
        every,
        held_out: Arc::new(move |agent| {
            let documents = same.open(agent)?;
            Ok(HeldOut { observed: documents.clone(), scored: documents })
        }),
        problem,
        sweeps: Sweeps { burn_in: 1, kept: 2 },
        posterior: TopicPosterior { array, draws_from: 2 * every, has_alphas: false },
    };
    WithEvaluation { inner, evaluator }
}
