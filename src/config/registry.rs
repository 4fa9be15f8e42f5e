//! The names that a run file may use: methods and models, a line each, and a user's own beside them.

use super::keys::{Docs, What, Wrong, fields_of, read_all};
use super::setup::{Launch, RunError};
use super::spec::ConfigError;
use crate::lda::LdaSettings;
use crate::methods::chains::async_sghmc::AsyncSghmcSettings;
use crate::methods::chains::dsgld::DsgldSettings;
use crate::methods::chains::ec_sghmc::EcSghmcSettings;
use crate::methods::chains::ec_sgld::EcSgldSettings;
use crate::methods::chains::sghmc::SghmcSettings;
use crate::methods::common::problem::OpenShard;
use crate::methods::particles::dsvgd::DsvgdSettings;
use crate::methods::particles::p_dsvgd::PDsvgdSettings;
use crate::methods::particles::pmd::PmdSettings;
use crate::methods::particles::svgd::SvgdSettings;
use crate::methods::particles::u_dsvgd::UDsvgdSettings;
use crate::methods::point::easgd::EasgdSettings;
use crate::methods::point::fedavg::FedAvgSettings;
use crate::methods::topics::{AdLdaSettings, AsyncLdaSettings, TopicDsgldSettings, TopicProblem};
use crate::methods::variational::gvi::GviSettings;
use crate::methods::variational::npv::NpvSettings;
use crate::methods::variational::pvi::PviSettings;
use crate::methods::{DataKind, MethodKind, Needs, Problem, Sharing, Texts};
use crate::models::gaussian_mean::GaussianMeanSettings;
use crate::models::linear::LinearSettings;
use crate::models::logistic::LogisticSettings;
use crate::models::network::NetworkSettings;
use crate::models::toy::ToySettings;
use crate::models::{BuiltModel, DataSchema, ModelSettings};
use crate::number::Real;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;

pub(super) type BuildModel<F> = fn(&toml::Table, Option<DataSchema>) -> Result<BuiltModel<F>, ConfigError>;
pub(super) type LaunchMethod<F, P = Problem<F>> = fn(&toml::Table, P, Launch<F>) -> Result<(), RunError>;
/// Fills in the defaults of a table, or tells all that is wrong with it.
type Resolve = fn(&toml::Table) -> Result<toml::Table, Vec<Wrong>>;

/// A model under its name.
#[derive(Clone, Copy)]
pub(super) struct ModelEntry {
    name: &'static str,
    pub docs: Docs,
    pub advice: &'static [(&'static str, &'static str)],
    pub fields: fn() -> &'static [&'static str],
    pub resolve: Resolve,
    pub makes: Makes,
}

/// What a model is of, and how it is made.
#[derive(Clone, Copy)]
pub(super) enum Makes {
    /// Rows.
    Rows(BuildModel<f32>, BuildModel<f64>),
    /// Documents.
    Topics(fn(&toml::Table) -> Result<LdaSettings, ConfigError>),
}

impl Makes {
    /// What data the model is for.
    pub fn over(self) -> Over {
        match self {
            Self::Rows(..) => Over::Rows,
            Self::Topics(_) => Over::Texts,
        }
    }
}

/// What data are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Over {
    /// Rows of features and targets.
    Rows,
    /// Documents.
    Texts,
}

/// How a method is started, by what it is for.
#[derive(Clone, Copy)]
pub(super) enum Starts {
    /// Rows.
    Rows(LaunchMethod<f32>, LaunchMethod<f64>),
    /// Documents.
    Texts(LaunchMethod<f32, TopicProblem>, LaunchMethod<f64, TopicProblem>),
}

impl Starts {
    /// What data the method is for.
    pub fn over(self) -> Over {
        match self {
            Self::Rows(..) => Over::Rows,
            Self::Texts(..) => Over::Texts,
        }
    }
}

/// A method under its name.
#[derive(Clone, Copy)]
pub(super) struct MethodEntry {
    name: &'static str,
    pub docs: Docs,
    pub fields: fn() -> &'static [&'static str],
    pub resolve: Resolve,
    pub check_for: fn(&toml::Table, u32) -> Result<(), Wrong>,
    pub needs: fn(&toml::Table, u32, usize) -> Needs,
    pub notes: fn(&toml::Table, u32) -> Vec<String>,
    pub sharing: Sharing,
    pub starts: Starts,
}

impl ModelEntry {
    pub fn name(&self) -> &'static str {
        self.name
    }
}

impl MethodEntry {
    pub fn name(&self) -> &'static str {
        self.name
    }
}

/// All names that a run file may use.
pub struct Registry {
    models: Vec<ModelEntry>,
    methods: Vec<MethodEntry>,
}

impl Default for Registry {
    /// Everything that comes along.
    fn default() -> Self {
        Self { models: Vec::new(), methods: Vec::new() }
            .with_model::<NetworkSettings>()
            .with_model::<LogisticSettings>()
            .with_model::<LinearSettings>()
            .with_model::<GaussianMeanSettings>()
            .with_model::<ToySettings>()
            .with_topics()
            .with_method::<SvgdSettings>()
            .with_method::<DsvgdSettings>()
            .with_method::<UDsvgdSettings>()
            .with_method::<PDsvgdSettings>()
            .with_method::<PviSettings>()
            .with_method::<GviSettings>()
            .with_method::<DsgldSettings>()
            .with_method::<SghmcSettings>()
            .with_method::<EcSghmcSettings>()
            .with_method::<EcSgldSettings>()
            .with_method::<AsyncSghmcSettings>()
            .with_method::<EasgdSettings>()
            .with_method::<FedAvgSettings>()
            .with_method::<NpvSettings>()
            .with_method::<PmdSettings>()
            .with_topic_method::<AdLdaSettings>()
            .with_topic_method::<AsyncLdaSettings>()
            .with_topic_method::<TopicDsgldSettings>()
    }
}

impl Registry {
    /// Adds a model; one of the same name gives way to it.
    #[must_use]
    pub fn with_model<K: ModelSettings>(mut self) -> Self {
        self.models.retain(|entry| entry.name != K::NAME);
        self.models.push(ModelEntry {
            name: K::NAME,
            docs: K::DOCS,
            advice: K::ADVICE,
            fields: fields_of::<K>,
            resolve: |table| Ok(read::<K>(table)?.1),
            makes: Makes::Rows(build::<K, f32>, build::<K, f64>),
        });
        self
    }

    /// Adds the topic model.
    fn with_topics(mut self) -> Self {
        self.models.push(ModelEntry {
            name: LdaSettings::NAME,
            docs: LdaSettings::DOCS,
            advice: &[("precision", "\"f32\""), ("evaluate.every", "10")],
            fields: fields_of::<LdaSettings>,
            resolve: |table| Ok(topics(table)?.1),
            makes: Makes::Topics(|table| Ok(topics(table).map_err(|wrongs| ConfigError::of("model", &wrongs))?.0)),
        });
        self
    }

    /// Adds a method for rows; one of the same name gives way to it.
    #[must_use]
    pub fn with_method<K: MethodKind>(self) -> Self {
        self.with_entry::<K, _>(Starts::Rows(start::<K, _, f32>, start::<K, _, f64>))
    }

    /// Adds a method for documents; one of the same name gives way to it.
    #[must_use]
    pub fn with_topic_method<K: MethodKind<Texts>>(self) -> Self {
        self.with_entry::<K, _>(Starts::Texts(start::<K, _, f32>, start::<K, _, f64>))
    }

    fn with_entry<K: MethodKind<D>, D: DataKind>(mut self, starts: Starts) -> Self {
        self.methods.retain(|entry| (entry.name, entry.starts.over()) != (K::NAME, starts.over()));
        self.methods.push(MethodEntry {
            name: K::NAME,
            docs: K::DOCS,
            fields: fields_of::<K>,
            resolve: |table| {
                let (settings, resolved) = settings::<K, D>(table)?;
                settings.check().map_err(|cause| vec![about_a_key(fields_of::<K>(), cause)])?;
                Ok(resolved)
            },
            check_for: |table, agents| {
                let Ok((settings, _)) = settings::<K, D>(table) else { return Ok(()) };
                settings.check_for(agents).map_err(|cause| about_a_key(fields_of::<K>(), cause))
            },
            needs: |table, agents, dim| {
                settings::<K, D>(table).map(|(settings, _)| settings.needs(agents, dim)).unwrap_or_default()
            },
            notes: |table, agents| settings::<K, D>(table).map(|(settings, _)| settings.notes(agents)).unwrap_or_default(),
            sharing: K::SHARING,
            starts,
        });
        self
    }

    /// The names of the models.
    pub fn models(&self) -> Vec<&'static str> {
        self.models.iter().map(|entry| entry.name).collect()
    }

    /// The names of the methods.
    pub fn methods(&self) -> Vec<&'static str> {
        let mut names: Vec<_> = self.methods.iter().map(|entry| entry.name).collect();
        // What there is for rows and for documents is named once.
        let mut seen = std::collections::HashSet::new();
        names.retain(|name| seen.insert(*name));
        names
    }

    pub(super) fn model(&self, table: &toml::Table) -> Result<ModelEntry, Wrong> {
        find(table, self.models.iter().map(|entry| (entry.name, *entry)))
    }

    /// What data the model in this table is for: rows, where it is none.
    pub(super) fn over(&self, model: &toml::Table) -> Over {
        self.model(model).map_or(Over::Rows, |entry| entry.makes.over())
    }

    /// The method in this table, for such data.
    pub(super) fn method(&self, table: &toml::Table, over: Over) -> Result<MethodEntry, Wrong> {
        let fit = self.methods.iter().filter(|entry| entry.starts.over() == over);
        let found = find(table, fit.clone().map(|entry| (entry.name, *entry)));
        match table.get("name").and_then(toml::Value::as_str) {
            Some(name) if found.is_err() && self.methods.iter().any(|entry| entry.name == name) => {
                let (model, names) = (self.of_models(over), fit.map(|entry| entry.name).collect::<Vec<_>>());
                let what = format!("\"{name}\" is not for the model{model}; for that there are: {}", names.join(", "));
                Err(Wrong { at: vec!["name".into()], what: What::Other(what) })
            }
            _ => found,
        }
    }

    /// The method in this table, for whatever data.
    pub(super) fn method_of_any(&self, table: &toml::Table) -> Result<MethodEntry, Wrong> {
        // Of a name that there is for rows and for documents, rows were registered first.
        find(table, self.methods.iter().map(|entry| (entry.name, *entry))).map_err(|mut wrong| {
            if let What::Word { known, .. } = &mut wrong.what {
                *known = self.methods().into_iter().map(str::to_owned).collect();
            }
            wrong
        })
    }

    /// The models for such data, as they go on in a sentence that has begun with "the model".
    fn of_models(&self, over: Over) -> String {
        let names = self.models.iter().filter(|entry| entry.makes.over() == over).map(|entry| entry.name).collect::<Vec<_>>();
        match over {
            Over::Texts => format!(" {}", names.join(", ")),
            Over::Rows => "s of rows".into(),
        }
    }

    /// A model or method that has this key: what it is, and its name.
    pub(super) fn other_with(&self, key: &str) -> Option<(&'static str, &'static str)> {
        let methods = self.methods.iter().map(|entry| ("method", entry.name, entry.fields));
        let models = self.models.iter().map(|entry| ("model", entry.name, entry.fields));
        let found = methods.chain(models).find(|(_, _, fields)| fields().contains(&key));
        found.map(|(kind, name, _)| (kind, name))
    }
}

fn find<T>(table: &toml::Table, entries: impl Iterator<Item = (&'static str, T)> + Clone) -> Result<T, Wrong> {
    let known = || entries.clone().map(|(name, _)| name.to_owned()).collect::<Vec<_>>();
    let what = match table.get("name") {
        None => {
            let sentence = format!("`name` is missing; there are: {}", known().join(", "));
            return Err(Wrong { at: Vec::new(), what: What::Other(sentence) });
        }
        Some(toml::Value::String(name)) => match entries.clone().find(|(known, _)| known == name) {
            Some((_, entry)) => return Ok(entry),
            None => What::Word { typed: name.clone(), known: known() },
        },
        Some(value) => What::Other(format!("must be a text in quotes, not {value}; there are: {}", known().join(", "))),
    };
    Err(Wrong { at: vec!["name".into()], what })
}

/// A sentence about settings; its first word often is the key that it is about.
pub(super) fn about_a_key(fields: &[&str], sentence: String) -> Wrong {
    let first = sentence.split([' ', ':']).next().unwrap_or_default().trim_matches('`');
    let at = if fields.contains(&first) { vec![first.to_owned()] } else { Vec::new() };
    Wrong { at, what: What::Other(sentence) }
}

/// The settings in a table, and the table with every default written out.
fn read<S: Serialize + DeserializeOwned>(table: &toml::Table) -> Result<(S, toml::Table), Vec<Wrong>> {
    let mut keys = table.clone();
    let name = keys.remove("name");
    let (settings, wrongs) = read_all::<S>(keys);
    let Some(settings) = settings else { return Err(wrongs) };
    let mut resolved: toml::Table = name.into_iter().map(|name| ("name".to_owned(), name)).collect();
    let no_toml = |cause: toml::ser::Error| vec![Wrong { at: Vec::new(), what: What::Other(cause.to_string()) }];
    resolved.extend(toml::Table::try_from(&settings).map_err(no_toml)?);
    Ok((settings, resolved))
}

fn build<K: ModelSettings, F: Real>(table: &toml::Table, facts: Option<DataSchema>) -> Result<BuiltModel<F>, ConfigError> {
    let (settings, _) = read::<K>(table).map_err(|wrongs| ConfigError::of("model", &wrongs))?;
    settings.build_model(facts).map_err(|cause| ConfigError::Table { table: "model", cause })
}

/// The settings of a method in a table, with the defaults that are its own.
fn settings<K: MethodKind<D>, D: DataKind>(table: &toml::Table) -> Result<(K, toml::Table), Vec<Wrong>> {
    let mut table = table.clone();
    for (key, value) in K::DEFAULTS {
        if let Some(value) = toml_value(value) {
            table.entry(*key).or_insert(value);
        }
    }
    read::<K>(&table)
}

/// A value as TOML has it.
pub(super) fn toml_value(text: &str) -> Option<toml::Value> {
    format!("value = {text}").parse::<toml::Table>().ok().and_then(|mut parsed| parsed.remove("value"))
}

/// The settings of the topic model in a table.
pub(super) fn topics(table: &toml::Table) -> Result<(LdaSettings, toml::Table), Vec<Wrong>> {
    let (settings, resolved) = read::<LdaSettings>(table)?;
    settings.check().map_err(|cause| vec![about_a_key(fields_of::<LdaSettings>(), cause)])?;
    Ok((settings, resolved))
}

fn start<K: MethodKind<D>, D: DataKind, F: Real>(
    table: &toml::Table,
    problem: D::Problem<F>,
    launch: Launch<F>,
) -> Result<(), RunError> {
    let (settings, _) = settings::<K, D>(table).map_err(|wrongs| ConfigError::of("method", &wrongs))?;
    settings.launch(problem, launch)
}

/// Rows that hold their own number, dealt to agents in blocks, or all of them to everyone.
pub(super) fn own_rows<F: Real>(rows: usize, agents: u32, sharing: Sharing) -> OpenShard<F> {
    Arc::new(move |agent| {
        let (owner, owners) = (sharing.owner(agent as usize), sharing.owners(agents as usize));
        let mine = owner * rows / owners..(owner + 1) * rows / owners;
        let x = ndarray::Array2::from_shape_fn((mine.len(), 1), |(row, _)| F::of((mine.start + row) as f64));
        let y = ndarray::Array1::zeros(mine.len());
        Ok(crate::data::Shard::new(x, y))
    })
}
