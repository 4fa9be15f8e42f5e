//! The default registry of the built-in models and methods, to which a user's own crate adds its own, and look-ups in a registry.

use super::registry::{MethodEntry, ModelEntry, Registry};
use super::run_file_kind::RunFileKind;
use super::sections::{
    ClusterSettings, CorpusData, CorpusEvaluation, CorpusRunSettings, TableData, TableEvaluation, TableRunSettings,
};
use crate::cluster::Collectives;
use crate::lda::LdaSettings;
use crate::methods::MethodSettings;
use crate::methods::chains::async_sghmc::AsyncSghmcSettings;
use crate::methods::chains::dsgld::DsgldSettings;
use crate::methods::chains::ec_sghmc::EcSghmcSettings;
use crate::methods::chains::ec_sgld::EcSgldSettings;
use crate::methods::chains::hmc::HmcSettings;
use crate::methods::chains::sghmc::SghmcSettings;
use crate::methods::particles::dsvgd::DsvgdSettings;
use crate::methods::particles::p_dsvgd::PDsvgdSettings;
use crate::methods::particles::pmd::PmdSettings;
use crate::methods::particles::svgd::SvgdSettings;
use crate::methods::particles::u_dsvgd::UDsvgdSettings;
use crate::methods::point::easgd::EasgdSettings;
use crate::methods::point::fedavg::FedAvgSettings;
use crate::methods::topics::adlda::AdLdaSettings;
use crate::methods::topics::async_lda::AsyncLdaSettings;
use crate::methods::topics::dsgld::TopicDsgldSettings;
use crate::methods::topics::lda::LdaSamplerSettings;
use crate::methods::variational::gvi::GviSettings;
use crate::methods::variational::npv::NpvSettings;
use crate::methods::variational::pvi::PviSettings;
use crate::models::convolutional::{ConvolutionalSettings, ResnetSettings};
use crate::models::gaussian_mean::GaussianMeanSettings;
use crate::models::linear::LinearSettings;
use crate::models::logistic::LogisticSettings;
use crate::models::multinomial::MultinomialSettings;
use crate::models::negative_binomial::NegativeBinomialSettings;
use crate::models::network::NetworkSettings;
use crate::models::ordinal::OrdinalSettings;
use crate::models::poisson::PoissonSettings;
use crate::models::student_t::StudentTSettings;
use crate::models::toy::ToySettings;
use crate::models::{Model, ModelSettings};
use crate::settings::{self, Key, KeyError};
use std::sync::Arc;

impl Default for Registry {
    /// Everything that is built in.
    fn default() -> Self {
        Self { models: Vec::new(), table_methods: Vec::new(), corpus_methods: Vec::new() }
            .with_model::<LogisticSettings>()
            .with_model::<LinearSettings>()
            // The first that suits the data is proposed: this one contains that of Poisson as a limit.
            .with_model::<NegativeBinomialSettings>()
            .with_model::<PoissonSettings>()
            .with_model::<MultinomialSettings>()
            .with_model::<NetworkSettings>()
            .with_model::<ConvolutionalSettings>()
            .with_model::<ResnetSettings>()
            .with_model::<StudentTSettings>()
            .with_model::<OrdinalSettings>()
            .with_model::<GaussianMeanSettings>()
            .with_model::<ToySettings>()
            .with_method::<SvgdSettings>()
            .with_method::<DsvgdSettings>()
            .with_method::<UDsvgdSettings>()
            .with_method::<PDsvgdSettings>()
            .with_method::<PviSettings>()
            .with_method::<GviSettings>()
            .with_method::<HmcSettings>()
            .with_method::<DsgldSettings>()
            .with_method::<SghmcSettings>()
            .with_method::<EcSghmcSettings>()
            .with_method::<EcSgldSettings>()
            .with_method::<AsyncSghmcSettings>()
            .with_method::<EasgdSettings>()
            .with_method::<FedAvgSettings>()
            .with_method::<NpvSettings>()
            .with_method::<PmdSettings>()
            .with_method::<LdaSamplerSettings>()
            .with_method::<AdLdaSettings>()
            .with_method::<AsyncLdaSettings>()
            .with_method::<TopicDsgldSettings>()
    }
}

impl Registry {
    /// Adds a model for tables. It replaces one of the same name.
    #[must_use]
    pub fn with_model<S: ModelSettings>(mut self) -> Self {
        self.models.retain(|entry| entry.name != S::NAME);
        self.models.push(ModelEntry {
            name: S::NAME,
            keys: S::keys,
            other_defaults: S::other_defaults,
            parse: |table| Ok(Arc::new(settings::read::<S>(table)?)),
        });
        self
    }

    /// Adds a method. It replaces one of the same name for the same kind of data.
    #[must_use]
    pub fn with_method<S: MethodSettings>(mut self) -> Self
    where
        S::Data: RunFileKind,
    {
        let entries = <S::Data as RunFileKind>::methods_mut(&mut self);
        entries.retain(|entry| entry.name != S::NAME);
        entries.push(MethodEntry {
            name: S::NAME,
            keys: S::keys,
            parse: |table| {
                let settings = settings::read::<S>(table)?;
                settings.check().map_err(|error| vec![error])?;
                Ok(Arc::new(settings))
            },
        });
        self
    }

    /// The names of all models.
    pub fn models(&self) -> Vec<&'static str> {
        self.models.iter().map(|entry| entry.name).chain([LdaSettings::NAME]).collect()
    }

    /// The names of all methods, each once.
    pub fn methods(&self) -> Vec<&'static str> {
        let mut names: Vec<_> = self.table_methods.iter().map(|entry| entry.name).collect();
        let others = self.corpus_methods.iter().map(|entry| entry.name);
        names.extend(others.filter(|name| !self.table_methods.iter().any(|entry| entry.name == *name)));
        names
    }

    /// The names of the methods for one kind of data.
    pub fn methods_for<D: RunFileKind>(&self) -> Vec<&'static str> {
        D::methods(self).iter().map(|entry| entry.name).collect()
    }

    /// Checks that a model for tables provides what a method needs by default.
    ///
    /// # Errors
    /// What the model lacks.
    pub fn check_model(&self, method: &str, model: &dyn Model<f64>) -> Result<(), KeyError> {
        let entry = self.table_methods.iter().find(|entry| entry.name == method);
        let settings = entry.and_then(|entry| (entry.parse)(toml::Table::new()).ok());
        settings.map_or(Ok(()), |settings| settings.check_model(model))
    }

    /// The documented keys of every table that a run file can have, each with the name of its table: `run`, `data`, `model lda`.
    pub fn documentation(&self) -> Vec<(String, Vec<Key>)> {
        let sections = [
            ("run", settings::keys::<TableRunSettings>()),
            ("run on a corpus", settings::keys::<CorpusRunSettings>()),
            ("data", settings::keys::<TableData>()),
            ("data of a corpus", settings::keys::<CorpusData>()),
            ("evaluate", settings::keys::<TableEvaluation>()),
            ("evaluate on a corpus", settings::keys::<CorpusEvaluation>()),
            ("cluster", settings::keys::<ClusterSettings>()),
            ("cluster.collectives", settings::keys::<Collectives>()),
            ("model lda", settings::keys::<LdaSettings>()),
        ];
        let sections = sections.into_iter().map(|(name, keys)| (name.to_owned(), keys));
        let models = self.models.iter().map(|entry| (format!("model {}", entry.name), (entry.keys)()));
        let table = self.table_methods.iter().map(|entry| (format!("method {}", entry.name), (entry.keys)()));
        let corpus = self.corpus_methods.iter().map(|entry| (format!("method {} on a corpus", entry.name), (entry.keys)()));
        sections.chain(models).chain(table).chain(corpus).collect()
    }

    /// A model or a method that has this key, such as `("method", "dsvgd")`.
    pub(super) fn owner_of(&self, key: &str) -> Option<(&'static str, &'static str)> {
        let has = |keys: fn() -> Vec<Key>| keys().iter().any(|known| known.name == key);
        let table = self.table_methods.iter().map(|entry| ("method", entry.name, entry.keys));
        let corpus = self.corpus_methods.iter().map(|entry| ("method", entry.name, entry.keys));
        let models = self.models.iter().map(|entry| ("model", entry.name, entry.keys));
        table.chain(corpus).chain(models).find(|(.., keys)| has(*keys)).map(|(kind, name, _)| (kind, name))
    }
}
