//! The names that a run file may use: methods and models, a line each, and a user's own beside them.

use super::keys::{Docs, What, Wrong, fields_of, read_all};
use super::setup::{Launch, RunError};
use super::spec::ConfigError;
use crate::methods::dsgld::DsgldSettings;
use crate::methods::dsvgd::{DsvgdSettings, PDsvgdSettings, UDsvgdSettings};
use crate::methods::fedavg::FedAvgSettings;
use crate::methods::npv::NpvSettings;
use crate::methods::pmd::PmdSettings;
use crate::methods::problem::OpenShard;
use crate::methods::pvi::{GviSettings, PviSettings};
use crate::methods::svgd::SvgdSettings;
use crate::methods::{MethodKind, Needs, Problem};
use crate::models::gaussian_mean::GaussianMeanSettings;
use crate::models::linear::LinearSettings;
use crate::models::logistic::LogisticSettings;
use crate::models::network::NetworkSettings;
use crate::models::toy::ToySettings;
use crate::models::{Built, DataFacts, ModelKind};
use crate::number::Real;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;

pub(super) type BuildModel<F> = fn(&toml::Table, Option<DataFacts>) -> Result<Built<F>, ConfigError>;
pub(super) type LaunchMethod<F> = fn(&toml::Table, Problem<F>, Launch<F>) -> Result<(), RunError>;
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
    pub f32: BuildModel<f32>,
    pub f64: BuildModel<f64>,
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
    pub f32: LaunchMethod<f32>,
    pub f64: LaunchMethod<f64>,
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
            .with_method::<SvgdSettings>()
            .with_method::<DsvgdSettings>()
            .with_method::<UDsvgdSettings>()
            .with_method::<PDsvgdSettings>()
            .with_method::<PviSettings>()
            .with_method::<GviSettings>()
            .with_method::<DsgldSettings>()
            .with_method::<FedAvgSettings>()
            .with_method::<NpvSettings>()
            .with_method::<PmdSettings>()
    }
}

impl Registry {
    /// Adds a model; one of the same name gives way to it.
    #[must_use]
    pub fn with_model<K: ModelKind>(mut self) -> Self {
        self.models.retain(|entry| entry.name != K::NAME);
        self.models.push(ModelEntry {
            name: K::NAME,
            docs: K::DOCS,
            advice: K::ADVICE,
            fields: fields_of::<K>,
            resolve: |table| Ok(read::<K>(table)?.1),
            f32: build::<K, f32>,
            f64: build::<K, f64>,
        });
        self
    }

    /// Adds a method; one of the same name gives way to it.
    #[must_use]
    pub fn with_method<K: MethodKind>(mut self) -> Self {
        self.methods.retain(|entry| entry.name != K::NAME);
        self.methods.push(MethodEntry {
            name: K::NAME,
            docs: K::DOCS,
            fields: fields_of::<K>,
            resolve: |table| {
                let (settings, resolved) = read::<K>(table)?;
                settings.check().map_err(|cause| vec![about_a_key(fields_of::<K>(), cause)])?;
                Ok(resolved)
            },
            check_for: |table, agents| {
                let Ok((settings, _)) = read::<K>(table) else { return Ok(()) };
                settings.check_for(agents).map_err(|cause| about_a_key(fields_of::<K>(), cause))
            },
            needs: |table, agents, dim| read::<K>(table).map(|(settings, _)| settings.needs(agents, dim)).unwrap_or_default(),
            notes: |table, agents| read::<K>(table).map(|(settings, _)| settings.notes(agents)).unwrap_or_default(),
            f32: start::<K, f32>,
            f64: start::<K, f64>,
        });
        self
    }

    /// The names of the models.
    pub fn models(&self) -> Vec<&'static str> {
        self.models.iter().map(|entry| entry.name).collect()
    }

    /// The names of the methods.
    pub fn methods(&self) -> Vec<&'static str> {
        self.methods.iter().map(|entry| entry.name).collect()
    }

    pub(super) fn model(&self, table: &toml::Table) -> Result<ModelEntry, Wrong> {
        find(table, self.models.iter().map(|entry| (entry.name, *entry)))
    }

    pub(super) fn method(&self, table: &toml::Table) -> Result<MethodEntry, Wrong> {
        find(table, self.methods.iter().map(|entry| (entry.name, *entry)))
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

fn build<K: ModelKind, F: Real>(table: &toml::Table, facts: Option<DataFacts>) -> Result<Built<F>, ConfigError> {
    let (settings, _) = read::<K>(table).map_err(|wrongs| ConfigError::of("model", &wrongs))?;
    settings.make(facts).map_err(|cause| ConfigError::Table { table: "model", cause })
}

fn start<K: MethodKind, F: Real>(table: &toml::Table, problem: Problem<F>, launch: Launch<F>) -> Result<(), RunError> {
    let (settings, _) = read::<K>(table).map_err(|wrongs| ConfigError::of("method", &wrongs))?;
    settings.launch(problem, launch)
}

/// Rows that hold their own number, dealt to agents in blocks.
pub(super) fn own_rows<F: Real>(rows: usize, agents: u32) -> OpenShard<F> {
    Arc::new(move |agent| {
        let agents = agents as usize;
        let mine = agent as usize * rows / agents..(agent as usize + 1) * rows / agents;
        let x = ndarray::Array2::from_shape_fn((mine.len(), 1), |(row, _)| F::of((mine.start + row) as f64));
        let y = ndarray::Array1::zeros(mine.len());
        Ok(crate::data::Shard::new(x, y))
    })
}
