//! The names that a run file may use: methods and models, a line each, and a user's own beside them.

use super::setup::{Launch, RunError, Setup};
use super::spec::ConfigError;
use crate::methods::problem::OpenShard;
use crate::models::{Model, Output};
use crate::number::Real;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;

/// What a model has to fit to.
#[derive(Clone, Copy, Debug)]
pub struct DataFacts {
    /// Columns of x.
    pub features: usize,
    /// What the rows' targets are.
    pub output: Output,
}

/// A kind of model that a run file can name.
pub trait ModelKind: 'static {
    /// Its `name` in the `[model]` table.
    const NAME: &'static str;
    /// One line for lists.
    const ABOUT: &'static str;
    /// The other keys of the table, each with a default.
    type Settings: Serialize + DeserializeOwned;

    /// The model for these data; `facts` is `None` where the run file names none.
    ///
    /// # Errors
    /// A message that says which setting does not fit, and what would.
    fn build<F: Real>(settings: &Self::Settings, facts: Option<DataFacts>) -> Result<Built<F>, String>;
}

/// A model, and the rows it brings along where it needs no dataset.
pub struct Built<F> {
    /// The model.
    pub model: Arc<dyn Model<F>>,
    /// Rows 0, 1, ... of a single column that holds the row's own number: the factors of a product.
    pub own_rows: usize,
}

/// A kind of method that a run file can name.
pub trait MethodKind: 'static {
    /// Its `name` in the `[method]` table.
    const NAME: &'static str;
    /// One line for lists.
    const ABOUT: &'static str;
    /// The other keys of the table, each with a default.
    type Settings: Serialize + DeserializeOwned;

    /// Whether the settings can be run.
    ///
    /// # Errors
    /// A message that says which setting is out of its range.
    fn check(settings: &Self::Settings) -> Result<(), String>;

    /// Makes the method and launches it.
    ///
    /// # Errors
    /// What ended the run.
    fn launch<F: Real>(settings: &Self::Settings, setup: Setup<F>, launch: Launch) -> Result<(), RunError>;
}

type BuildModel<F> = fn(&toml::Table, Option<DataFacts>) -> Result<Built<F>, ConfigError>;
type LaunchMethod<F> = fn(&toml::Table, Setup<F>, Launch) -> Result<(), RunError>;
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
            .with_model::<super::setup::models::Network>()
            .with_model::<super::setup::models::Logistic>()
            .with_model::<super::setup::models::Toy>()
            .with_method::<super::setup::methods::Svgd>()
            .with_method::<super::setup::methods::Dsvgd>()
    }
}

impl Registry {
    /// Adds a model; one of the same name gives way to it.
    #[must_use]
    pub fn with_model<K: ModelKind>(mut self) -> Self {
        self.models.retain(|entry| entry.name != K::NAME);
        self.models.push(ModelEntry {
            name: K::NAME,
            resolve: resolve::<K::Settings, { MODEL }>,
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
                let resolved = resolve::<K::Settings, { METHOD }>(table)?;
                let settings = settings::<K::Settings>("method", &resolved)?;
                K::check(&settings).map_err(|cause| ConfigError::Table { table: "method", cause })?;
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

const MODEL: bool = true;
const METHOD: bool = false;

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

/// The settings in a table, without its `name`.
fn settings<S: DeserializeOwned>(kind: &'static str, table: &toml::Table) -> Result<S, ConfigError> {
    let mut table = table.clone();
    table.remove("name");
    table.try_into().map_err(|cause: toml::de::Error| ConfigError::Table { table: kind, cause: cause.message().into() })
}

fn resolve<S: Serialize + DeserializeOwned, const IS_MODEL: bool>(table: &toml::Table) -> Result<toml::Table, ConfigError> {
    let kind = if IS_MODEL == MODEL { "model" } else { "method" };
    let settings: S = settings(kind, table)?;
    let mut resolved = toml::Table::new();
    resolved.extend(table.get("name").map(|name| ("name".to_owned(), name.clone())));
    let filled =
        toml::Table::try_from(&settings).map_err(|cause| ConfigError::Table { table: kind, cause: cause.to_string() })?;
    resolved.extend(filled);
    Ok(resolved)
}

fn build<K: ModelKind, F: Real>(table: &toml::Table, facts: Option<DataFacts>) -> Result<Built<F>, ConfigError> {
    K::build(&settings("model", table)?, facts).map_err(|cause| ConfigError::Table { table: "model", cause })
}

fn start<K: MethodKind, F: Real>(table: &toml::Table, setup: Setup<F>, launch: Launch) -> Result<(), RunError> {
    K::launch(&settings::<K::Settings>("method", table)?, setup, launch)
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
