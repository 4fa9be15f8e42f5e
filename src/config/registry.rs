//! The names that a run file may use: methods and models, a line each, and a user's own beside them.

use super::setup::{Launch, RunError};
use super::spec::ConfigError;
use crate::methods::dsvgd::DsvgdSettings;
use crate::methods::problem::OpenShard;
use crate::methods::svgd::SvgdSettings;
use crate::methods::{MethodKind, Problem};
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
/// Fills in the defaults of a table.
type Resolve = fn(&toml::Table) -> Result<toml::Table, ConfigError>;

/// A model under its name.
#[derive(Clone, Copy)]
pub(super) struct ModelEntry {
    name: &'static str,
    pub resolve: Resolve,
    pub f32: BuildModel<f32>,
    pub f64: BuildModel<f64>,
}

/// A method under its name.
#[derive(Clone, Copy)]
pub(super) struct MethodEntry {
    name: &'static str,
    pub resolve: Resolve,
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
            .with_model::<ToySettings>()
            .with_method::<SvgdSettings>()
            .with_method::<DsvgdSettings>()
    }
}

impl Registry {
    /// Adds a model; one of the same name gives way to it.
    #[must_use]
    pub fn with_model<K: ModelKind>(mut self) -> Self {
        self.models.retain(|entry| entry.name != K::NAME);
        self.models.push(ModelEntry {
            name: K::NAME,
            resolve: |table| Ok(read::<K>("model", table)?.1),
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
            resolve: |table| {
                let (settings, resolved) = read::<K>("method", table)?;
                settings.check().map_err(|cause| ConfigError::Table { table: "method", cause })?;
                Ok(resolved)
            },
            f32: start::<K, f32>,
            f64: start::<K, f64>,
        });
        self
    }

    pub(super) fn model(&self, table: &toml::Table) -> Result<ModelEntry, ConfigError> {
        find("model", table, self.models.iter().map(|entry| (entry.name, *entry)))
    }

    pub(super) fn method(&self, table: &toml::Table) -> Result<MethodEntry, ConfigError> {
        find("method", table, self.methods.iter().map(|entry| (entry.name, *entry)))
    }
}

fn find<T>(
    kind: &'static str,
    table: &toml::Table,
    entries: impl Iterator<Item = (&'static str, T)> + Clone,
) -> Result<T, ConfigError> {
    let known = || entries.clone().map(|(name, _)| name).collect::<Vec<_>>().join(", ");
    let Some(name) = table.get("name").and_then(toml::Value::as_str) else {
        return Err(ConfigError::Table { table: kind, cause: format!("name is missing; there are: {}", known()) });
    };
    let found = entries.clone().find(|(known, _)| *known == name).map(|(_, entry)| entry);
    found.ok_or_else(|| ConfigError::Unknown { table: kind, name: name.into(), known: known() })
}

/// The settings in a table, and the table with every default written out.
fn read<S: Serialize + DeserializeOwned>(kind: &'static str, table: &toml::Table) -> Result<(S, toml::Table), ConfigError> {
    let wrong = |cause| ConfigError::Table { table: kind, cause };
    let mut keys = table.clone();
    let name = keys.remove("name");
    let settings: S = keys.try_into().map_err(|cause: toml::de::Error| wrong(cause.message().into()))?;
    let mut resolved: toml::Table = name.into_iter().map(|name| ("name".to_owned(), name)).collect();
    resolved.extend(toml::Table::try_from(&settings).map_err(|cause| wrong(cause.to_string()))?);
    Ok((settings, resolved))
}

fn build<K: ModelKind, F: Real>(table: &toml::Table, facts: Option<DataFacts>) -> Result<Built<F>, ConfigError> {
    let (settings, _) = read::<K>("model", table)?;
    settings.make(facts).map_err(|cause| ConfigError::Table { table: "model", cause })
}

fn start<K: MethodKind, F: Real>(table: &toml::Table, problem: Problem<F>, launch: Launch<F>) -> Result<(), RunError> {
    read::<K>("method", table)?.0.launch(problem, launch)
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
