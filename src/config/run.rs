//! A validated run: a run file is parsed to a [`Run`] once, and everything after works with its values.

use super::configured::ConfiguredMethod;
use super::error::ConfigError;
use super::registry::{Registry, fill, name_of, unknown_name};
use super::renamed::upgrade;
use super::run_file_kind::{RunFileKind, data_table};
use super::sections::{ClusterSettings, RunSettings, SWEEP};
use crate::lda::LdaSettings;
use crate::methods::{Corpus, Table};
use crate::settings::{KeyError, Mistake, read, table};
use std::sync::Arc;

/// A run with every default filled in, by the kind of its data.
#[derive(Clone)]
pub enum Run {
    /// A run on a table, or without data.
    Table(RunOf<Table>),
    /// A run on a corpus.
    Corpus(RunOf<Corpus>),
}

/// A run on one kind of data.
pub struct RunOf<D: RunFileKind> {
    /// The top-level keys of the run file.
    pub settings: D::RunSettings,
    /// The data; none for a model that brings its own.
    pub data: Option<D::Data>,
    /// The model.
    pub model: D::Model,
    /// The method.
    pub method: Arc<dyn ConfiguredMethod<D>>,
    /// What is evaluated during the run.
    pub evaluate: D::Evaluate,
    /// How the run uses the machine.
    pub cluster: ClusterSettings,
}

impl<D: RunFileKind> Clone for RunOf<D> {
    fn clone(&self) -> Self {
        Self {
            settings: self.settings.clone(),
            data: self.data.clone(),
            model: self.model.clone(),
            method: self.method.clone(),
            evaluate: self.evaluate.clone(),
            cluster: self.cluster.clone(),
        }
    }
}

impl Run {
    /// Parses a table with the sections of a run file.
    ///
    /// # Errors
    /// Every mistake, with its path from the top of the file.
    pub fn parse(table: toml::Table, registry: &Registry) -> Result<Self, Vec<KeyError>> {
        match is_on_corpus(&table, registry) {
            false => RunOf::parse(table, registry).map(Self::Table),
            true => RunOf::parse(table, registry).map(Self::Corpus),
        }
    }

    /// A run from the text of [`Run::to_toml`]: that of rank 0, or one that was stored with its results.
    ///
    /// # Errors
    /// If the text does not describe a run.
    pub fn from_toml(text: &str, registry: &Registry) -> Result<Self, ConfigError> {
        Self::parse(stored_table(text)?, registry).map_err(ConfigError::Stored)
    }

    /// The run as TOML with every default written out.
    ///
    /// # Errors
    /// If a value has no TOML form, such as an integer beyond 63 bits.
    pub fn to_toml(&self) -> Result<String, ConfigError> {
        let text = self.to_table().and_then(|table| toml::to_string_pretty(&table));
        text.map_err(ConfigError::unwritable)
    }

    /// The run as a table with every default.
    ///
    /// # Errors
    /// If a value has no TOML form.
    pub fn to_table(&self) -> Result<toml::Table, toml::ser::Error> {
        match self {
            Self::Table(run) => run.to_table(),
            Self::Corpus(run) => run.to_table(),
        }
    }

    /// How the run uses the machine.
    pub fn cluster(&self) -> &ClusterSettings {
        match self {
            Self::Table(run) => &run.cluster,
            Self::Corpus(run) => &run.cluster,
        }
    }
}

/// The table of a configuration that was stored with a run, with the present names of all keys.
///
/// # Errors
/// If the text is not TOML.
pub fn stored_table(text: &str) -> Result<toml::Table, ConfigError> {
    let mut table: toml::Table =
        text.parse().map_err(|error: toml::de::Error| ConfigError::Stored(vec![KeyError::table(error.message())]))?;
    upgrade(&mut table);
    Ok(table)
}

/// Whether a run file is for a corpus: by its model, or, if that is unknown, by its method.
pub(super) fn is_on_corpus(table: &toml::Table, registry: &Registry) -> bool {
    match section_name(table, "model") {
        Some(LdaSettings::NAME) => true,
        Some(model) if Table::models(registry).contains(&model) => false,
        _ => section_name(table, "method").is_some_and(|method| {
            registry.methods_for::<Corpus>().contains(&method) && !registry.methods_for::<Table>().contains(&method)
        }),
    }
}

/// The `name` in a section of a run file, if it is a text.
fn section_name<'a>(file: &'a toml::Table, section: &str) -> Option<&'a str> {
    file.get(section).and_then(|table| table.get("name")).and_then(toml::Value::as_str)
}

impl<D: RunFileKind> RunOf<D> {
    pub(super) fn parse(mut file: toml::Table, registry: &Registry) -> Result<Self, Vec<KeyError>> {
        let mut mistakes = Mistakes::default();
        if file.remove(SWEEP).is_some() {
            mistakes.add(KeyError::invalid(SWEEP, "describes a sweep of runs: start it with `mpibayes sweep`"));
        }
        let mut defaults = section_name(&file, "model").map(|name| D::other_defaults(registry, name)).unwrap_or_default();
        let method_defaults = of_method(&mut defaults);
        fill(&mut file, &defaults);
        let model = mistakes.required("model", &mut file, |table| D::parse_model(registry, table));
        let method = mistakes.required("method", &mut file, |table| method(registry, table, &method_defaults));
        let sharing = method.as_ref().map(|method| method.sharing()).unwrap_or_default();
        let data = mistakes.section("data", &mut file, |table| D::parse_data(table, sharing));
        let evaluate = mistakes.section("evaluate", &mut file, read::<D::Evaluate>);
        let cluster = mistakes.section("cluster", &mut file, read::<ClusterSettings>);
        let settings = mistakes.collect(read::<D::RunSettings>(file));
        let method = match (&settings, method) {
            (Some(settings), Some(method)) => Some(method.for_agents(settings.agents())),
            (_, method) => method,
        };
        if let Some(settings) = &settings {
            mistakes.0.extend(settings.mistakes());
        }
        if let (Some(settings), Some(method)) = (&settings, &method)
            && let Err(mistake) = method.check_agents(settings.agents())
        {
            let is_of_run = mistake.path.first().is_some_and(|key| key == "agents");
            mistakes.add(if is_of_run { mistake } else { mistake.below("method") });
        }
        if let Some(cluster) = &cluster {
            mistakes.0.extend(cluster.mistakes().into_iter().map(|mistake| mistake.below("cluster")));
        }
        match (settings, model, method, mistakes.0.is_empty()) {
            (Some(settings), Some(model), Some(method), true) => {
                let (evaluate, cluster) = (evaluate.unwrap_or_default(), cluster.unwrap_or_default());
                Ok(Self { settings, data, model, method, evaluate, cluster })
            }
            _ => Err(mistakes.0),
        }
    }

    /// The name of the model.
    pub fn model_name(&self) -> &'static str {
        D::model_name(&self.model)
    }

    /// The run as a table with every default.
    ///
    /// # Errors
    /// If a value has no TOML form.
    pub fn to_table(&self) -> Result<toml::Table, toml::ser::Error> {
        let mut file = table(&self.settings)?;
        if let Some(data) = &self.data {
            file.insert("data".into(), data_table::<D>(data, self.method.sharing())?.into());
        }
        file.insert("model".into(), named(self.model_name(), D::model_table(&self.model)?).into());
        file.insert("method".into(), named(self.method.name(), self.method.table()?).into());
        file.insert("evaluate".into(), table(&self.evaluate)?.into());
        file.insert("cluster".into(), table(&self.cluster)?.into());
        Ok(file)
    }
}

/// Settings with their name.
pub(super) fn named(name: &str, settings: toml::Table) -> toml::Table {
    let mut table = toml::Table::from_iter([("name".to_owned(), toml::Value::from(name))]);
    table.extend(settings);
    table
}

/// The defaults of a method that a model has instead of the method's own.
pub(super) fn method_defaults<D: RunFileKind>(registry: &Registry, model: &str) -> toml::Table {
    of_method(&mut D::other_defaults(registry, model))
}

/// Takes the defaults of the method out of those that a model has.
fn of_method(defaults: &mut toml::Table) -> toml::Table {
    match defaults.remove("method") {
        Some(toml::Value::Table(defaults)) => defaults,
        _ => toml::Table::new(),
    }
}

/// The method in a table, where `defaults` come before its own.
fn method<D: RunFileKind>(
    registry: &Registry,
    mut table: toml::Table,
    defaults: &toml::Table,
) -> Result<Arc<dyn ConfiguredMethod<D>>, Vec<KeyError>> {
    let known = registry.methods_for::<D>();
    let name = name_of(&table, &known).map_err(|error| vec![error])?;
    let Some(entry) = D::methods(registry).iter().find(|entry| entry.name == name) else {
        if registry.methods().contains(&name) {
            let sentence = format!(
                "= \"{name}\" is not a method for {0}, and the model is for {0}. Choose one of: {1}",
                D::WORDS.kind,
                known.join(", ")
            );
            return Err(vec![KeyError::invalid("name", sentence)]);
        }
        return Err(vec![unknown_name(name, &known)]);
    };
    table.remove("name");
    entry.parse_with(table, defaults)
}

/// The mistakes found so far.
#[derive(Default)]
struct Mistakes(Vec<KeyError>);

impl Mistakes {
    fn add(&mut self, mistake: KeyError) {
        self.0.push(mistake);
    }

    /// The value, or none and its mistakes kept.
    fn collect<T>(&mut self, result: Result<T, Vec<KeyError>>) -> Option<T> {
        result.map_err(|mistakes| self.0.extend(mistakes)).ok()
    }

    /// Takes a section out of the file and parses it; none if it is missing or wrong.
    fn section<T>(
        &mut self,
        name: &str,
        file: &mut toml::Table,
        parse: impl FnOnce(toml::Table) -> Result<T, Vec<KeyError>>,
    ) -> Option<T> {
        match file.remove(name)? {
            toml::Value::Table(table) => {
                let below = |mistakes: Vec<KeyError>| mistakes.into_iter().map(|mistake| mistake.below(name)).collect();
                self.collect(parse(table).map_err(below))
            }
            value => {
                let example = match &value {
                    toml::Value::String(_) if ["method", "model"].contains(&name) => format!(" such as {{ name = {value} }}"),
                    _ => String::new(),
                };
                self.add(KeyError::invalid(name, format!("must be a table{example}, not {value}")));
                None
            }
        }
    }

    /// The same for a section that every run file has.
    fn required<T>(
        &mut self,
        name: &str,
        file: &mut toml::Table,
        parse: impl FnOnce(toml::Table) -> Result<T, Vec<KeyError>>,
    ) -> Option<T> {
        if !file.contains_key(name) {
            self.add(KeyError { path: Vec::new(), mistake: Mistake::MissingKey(name.to_owned()) });
        }
        self.section(name, file, parse)
    }
}

impl From<RunOf<Table>> for Run {
    fn from(run: RunOf<Table>) -> Self {
        Self::Table(run)
    }
}

impl From<RunOf<Corpus>> for Run {
    fn from(run: RunOf<Corpus>) -> Self {
        Self::Corpus(run)
    }
}
