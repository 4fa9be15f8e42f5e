//! D-SGLD for topic models: chains that travel between shards of documents, updated by stochastic gradient Riemannian Langevin dynamics.

use super::evaluation::MAX_ARRAYS;
use super::problem::TopicProblem;
use crate::lda::Sweeps;
use crate::methods::chains::dsgld::{Dsgld, DsgldSettings};
use crate::methods::common::kind::{DocumentBytes, Launcher, MethodKind, Needs, Shown, Texts, TopicArray};
use crate::methods::common::scores::Estimator;
use crate::methods::transitions::Sgrld;
use crate::number::Real;
use serde::{Deserialize, Serialize};

/// The settings of `dsgld` for topics: those of chains that travel, with SGRLD for their updates.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TopicDsgldSettings(pub DsgldSettings);

impl MethodKind<Texts> for TopicDsgldSettings {
    const NAME: &'static str = <DsgldSettings as MethodKind>::NAME;
    const DOCS: &'static [(&'static str, &'static str)] = <DsgldSettings as MethodKind>::DOCS;
    /// The step size is that of Patterson & Teh 2013: 0.01 (1 + t/1000)^-0.6.
    const DEFAULTS: &'static [(&'static str, &'static str)] = &[
        ("rounds", "500"),
        ("batch", "50"),
        ("sweeps", "{ burn_in = 10, kept = 20 }"),
        ("step", "{ annealed = { a = 0.631, b = 1000.0, c = 0.6 } }"),
        ("burn_in", "1000"),
        ("thin", "500"),
    ];

    fn check(&self) -> Result<(), String> {
        let Self(settings) = self;
        if settings.gradient != Estimator::Plain {
            return Err("gradient: topics have plain minibatches alone".into());
        }
        if settings.expectations {
            return Err("expectations: topics of several chains have no common order; keep draws with thin instead".into());
        }
        if settings.evaluation_window != DsgldSettings::default().evaluation_window {
            return Err(
                "evaluation_window: of topics every state is judged once, and predictions are averaged from the burn-in on"
                    .into(),
            );
        }
        if settings.chains > MAX_ARRAYS {
            return Err(format!("chains = {}: topics have at most {MAX_ARRAYS}", settings.chains));
        }
        if settings.noise_correction {
            return Err("noise_correction: the noise of topics depends on them, so that nothing is known to be given back".into());
        }
        if settings.sweeps.is_none_or(|sweeps| sweeps.kept == 0) {
            return Err("sweeps: { burn_in = 10, kept = 20 }, of which one at least is kept".into());
        }
        settings.check_travel()
    }

    fn check_for(&self, agents: u32) -> Result<(), String> {
        self.0.check_for(agents)
    }

    fn needs(&self, agents: u32, parameters: usize) -> Needs {
        // Documents are read as they are, and tokens are those of a minibatch.
        let of_documents = DocumentBytes { document: 8, entry: 8, token: 0 };
        Needs { of_documents, ..self.0.needs(agents, parameters) }
    }

    fn notes(&self, agents: u32) -> Vec<String> {
        self.0.notes(agents)
    }

    fn launch<F: Real, L: Launcher<F>>(&self, problem: TopicProblem, launcher: L) -> L::Outcome {
        let Self(settings) = self;
        let (agents, chains) = (problem.agents, settings.chains as usize);
        let draws_from = settings.first_round_with_draws(agents);
        // A batch is counted in documents, of which an agent has fewer than 2^32.
        let batch = u32::try_from(settings.batch).unwrap_or(u32::MAX);
        let sweeps = settings.sweeps.unwrap_or(Sweeps { burn_in: 0, kept: 0 });
        let transition = Sgrld::<F>::new(problem, batch, settings.step, sweeps);
        // Every state is judged once.
        let settings = DsgldSettings { evaluation_window: chains, ..settings.clone() };
        launcher.topics(Dsgld { agents, transition, settings }, Shown { array: TopicArray::Phi, draws_from })
    }
}
