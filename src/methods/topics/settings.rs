//! The settings of the methods for topics that a run file can name.

use super::adlda::AdLda;
use super::async_lda::AsyncLda;
use super::evaluation::MOST_ARRAYS;
use super::problem::TopicProblem;
use super::shard::SweepBy;
use crate::lda::Sweeps;
use crate::methods::chains::dsgld::{Dsgld, DsgldSettings};
use crate::methods::common::kind::{DocumentBytes, Launcher, MethodKind, Needs, Shown, Texts, TopicArray, at_least_one};
use crate::methods::common::scores::Estimator;
use crate::methods::transitions::Sgrld;
use crate::number::Real;
use serde::{Deserialize, Serialize};

/// The settings of methods that sweep over the topics of all tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SweepSettings {
    /// Sweeps over all tokens.
    pub rounds: u64,
    /// Sweeps before the first draw.
    pub burn_in: u64,
    /// Of the sweeps after those every so many-th gives a draw: φ (W × K), the mean of the topics given the counts.
    pub thin: u64,
    /// In which order an agent sweeps over its tokens.
    pub by: SweepBy,
    /// Which priors are estimated on the way, from those of the problem on.
    pub optimise: Optimise,
    /// Sweeps between estimates.
    pub optimise_every: u64,
    /// Sweeps before the first estimate.
    pub optimise_after: u64,
}

/// Which priors are estimated on the way: those most likely given the topics of all tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Optimise {
    /// None: they stay as they are.
    #[default]
    None,
    /// α.
    Alpha,
    /// α and β.
    Both,
}

impl Default for SweepSettings {
    fn default() -> Self {
        Self {
            rounds: 200,
            burn_in: 100,
            thin: 20,
            by: SweepBy::default(),
            optimise: Optimise::default(),
            optimise_every: 10,
            optimise_after: 20,
        }
    }
}

impl SweepSettings {
    const DOCS: &'static [(&'static str, &'static str)] = &[
        ("rounds", "sweeps over all tokens"),
        ("burn_in", "sweeps before those that draws are taken of; predictions are averaged from there on"),
        ("thin", "of the sweeps after those every so many-th gives a draw of the topics: words × topics numbers"),
        (
            "by",
            "\"word\", at a cost that follows the topics in a token's document, or \"document\", the plain algorithm, at a cost that follows all topics",
        ),
        (
            "optimise",
            "\"none\": alpha and beta of the model stay as they are; \"alpha\" or \"both\": they are where estimates begin, which follow the topics of all tokens",
        ),
        ("optimise_every", "sweeps between estimates"),
        ("optimise_after", "sweeps before the first estimate: by topics drawn at random alpha would be far too large"),
    ];

    fn check(&self) -> Result<(), String> {
        at_least_one(&[("rounds", self.rounds), ("thin", self.thin), ("optimise_every", self.optimise_every)])?;
        if self.optimise != Optimise::None && self.optimise_after >= self.rounds {
            return Err(format!("optimise_after = {} leaves no estimate in {} sweeps", self.optimise_after, self.rounds));
        }
        if self.burn_in.saturating_add(self.thin) > self.rounds {
            return Err(format!(
                "burn_in = {} leaves no draws of {} sweeps with thin = {}",
                self.burn_in, self.rounds, self.thin
            ));
        }
        Ok(())
    }

    /// Whether priors are estimated by the topics behind so many sweeps.
    pub(super) fn is_due(&self, swept: u64) -> bool {
        let since = swept.checked_sub(self.optimise_after);
        self.optimise != Optimise::None && swept > 0 && since.is_some_and(|since| since.is_multiple_of(self.optimise_every))
    }

    fn needs(&self, agents: u32, parameters: usize) -> Needs {
        let parameters = parameters as u64;
        Needs {
            particles: None,
            rounds: Some(self.rounds),
            minibatch: None,
            // The counts of all agents, its own copy, and what it has changed.
            numbers_of_agent: Some(parameters.saturating_mul(3)),
            // An array of counts to each agent, and one from it.
            numbers_per_round: Some(parameters.saturating_mul(2).saturating_mul(u64::from(agents))),
            // Counts are i32 in any precision.
            bytes_of_number: Some(4),
            of_documents: match self.by {
                // Of a token its word, its topic, two places, and room for a topic of its document.
                SweepBy::Word => DocumentBytes { document: 80, entry: 0, token: 20 },
                // Its word and its topic.
                SweepBy::Document => DocumentBytes { document: 8, entry: 0, token: 8 },
            },
        }
    }

    /// From the counts of all tokens.
    fn shown(&self) -> Shown {
        Shown { array: TopicArray::Counts, draws_from: self.burn_in.saturating_add(1) }
    }
}

/// The settings of `adlda`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AdLdaSettings(pub SweepSettings);

impl MethodKind<Texts> for AdLdaSettings {
    const NAME: &'static str = "adlda";
    const DOCS: &'static [(&'static str, &'static str)] = SweepSettings::DOCS;

    fn check(&self) -> Result<(), String> {
        self.0.check()
    }

    fn needs(&self, agents: u32, parameters: usize) -> Needs {
        self.0.needs(agents, parameters)
    }

    fn launch<F: Real, L: Launcher<F>>(&self, problem: TopicProblem, launcher: L) -> L::Outcome {
        launcher.topics(AdLda { problem, settings: self.0 }, self.0.shown())
    }
}

/// The settings of `async_lda`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AsyncLdaSettings(pub SweepSettings);

impl MethodKind<Texts> for AsyncLdaSettings {
    const NAME: &'static str = "async_lda";
    const DOCS: &'static [(&'static str, &'static str)] = SweepSettings::DOCS;

    fn check(&self) -> Result<(), String> {
        self.0.check()
    }

    fn needs(&self, agents: u32, parameters: usize) -> Needs {
        self.0.needs(agents, parameters)
    }

    fn launch<F: Real, L: Launcher<F>>(&self, problem: TopicProblem, launcher: L) -> L::Outcome {
        launcher.topics(AsyncLda { problem, settings: self.0 }, self.0.shown())
    }
}

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
        if settings.judged != DsgldSettings::default().judged {
            return Err("judged: of topics every state is judged once, and predictions are averaged from the burn-in on".into());
        }
        if settings.chains > MOST_ARRAYS {
            return Err(format!("chains = {}: topics have at most {MOST_ARRAYS}", settings.chains));
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
        let settings = DsgldSettings { judged: chains, ..settings.clone() };
        launcher.topics(Dsgld { agents, transition, settings }, Shown { array: TopicArray::Phi, draws_from })
    }
}
