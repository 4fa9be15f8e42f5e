//! What differs between run files for tables and run files for corpora.

use super::configured::ConfiguredModel;
use super::registry::{MethodEntry, Registry, name_of, unknown_name};
use super::sections::{
    CorpusData, CorpusEvaluation, CorpusRunSettings, ReplicatedTableData, RunSettings, TableData, TableEvaluation,
    TableRunSettings,
};
use crate::lda::LdaSettings;
use crate::methods::{Corpus, DataKind, Sharing, Table};
use crate::settings::{Key, KeyError, Settings, keys, read, table};
use documented::DocumentedFields;
use std::path::Path;
use std::sync::Arc;

/// A kind of run file, by the data of the run: the types of its sections, and its models and methods.
pub trait RunFileKind: DataKind {
    /// The top-level keys of the run file.
    type RunSettings: Settings + RunSettings + Default + DocumentedFields;
    /// `[data]`.
    type Data: Settings;
    /// `[evaluate]`.
    type Evaluate: Settings + Default + DocumentedFields;
    /// `[model]`.
    type Model: Clone + Send + Sync;

    /// What the data are called in messages.
    const WORDS: DataWords;

    /// The methods for such data.
    fn methods(registry: &Registry) -> &Vec<MethodEntry<Self>>;

    /// The methods for such data, to add one.
    fn methods_mut(registry: &mut Registry) -> &mut Vec<MethodEntry<Self>>;

    /// The names of the models for such data.
    fn models(registry: &Registry) -> Vec<&'static str>;

    /// The keys of a model.
    fn model_keys(registry: &Registry, name: &str) -> Vec<Key>;

    /// Defaults of keys outside of `[model]` that differ for a model.
    fn other_defaults(registry: &Registry, name: &str) -> toml::Table;

    /// Parses `[model]`.
    ///
    /// # Errors
    /// Every mistake in the table.
    fn parse_model(registry: &Registry, table: toml::Table) -> Result<Self::Model, Vec<KeyError>>;

    /// The name of a model.
    fn model_name(model: &Self::Model) -> &'static str;

    /// The settings of a model with every default.
    ///
    /// # Errors
    /// If a value has no TOML form.
    fn model_table(model: &Self::Model) -> Result<toml::Table, toml::ser::Error>;

    /// Parses `[data]`. Methods whose agents all see the whole table take no `partition`.
    ///
    /// # Errors
    /// Every mistake in the table.
    fn parse_data(table: toml::Table, sharing: Sharing) -> Result<Self::Data, Vec<KeyError>>;

    /// The keys of `[data]` of a method with this sharing.
    fn data_keys(sharing: Sharing) -> Vec<Key>;

    /// The data file.
    fn file(data: &Self::Data) -> &Path;
}

/// What data are called in messages.
#[derive(Clone, Copy, Debug)]
pub struct DataWords {
    /// The kind of data, with its article.
    pub kind: &'static str,
    /// One of its entries.
    pub entry: &'static str,
    /// A test entry.
    pub test_entry: &'static str,
}

impl RunFileKind for Table {
    type RunSettings = TableRunSettings;
    type Data = TableData;
    type Evaluate = TableEvaluation;
    type Model = Arc<dyn ConfiguredModel>;

    const WORDS: DataWords = DataWords { kind: "a table", entry: "row", test_entry: "test row" };

    fn methods(registry: &Registry) -> &Vec<MethodEntry<Self>> {
        &registry.table_methods
    }

    fn methods_mut(registry: &mut Registry) -> &mut Vec<MethodEntry<Self>> {
        &mut registry.table_methods
    }

    fn models(registry: &Registry) -> Vec<&'static str> {
        registry.models.iter().map(|entry| entry.name).collect()
    }

    fn model_keys(registry: &Registry, name: &str) -> Vec<Key> {
        registry.models.iter().find(|entry| entry.name == name).map(|entry| (entry.keys)()).unwrap_or_default()
    }

    fn other_defaults(registry: &Registry, name: &str) -> toml::Table {
        registry.models.iter().find(|entry| entry.name == name).map(|entry| (entry.other_defaults)()).unwrap_or_default()
    }

    fn parse_model(registry: &Registry, mut table: toml::Table) -> Result<Self::Model, Vec<KeyError>> {
        let known = registry.models();
        let name = name_of(&table, &known).map_err(|error| vec![error])?;
        let Some(entry) = registry.models.iter().find(|entry| entry.name == name) else {
            return Err(vec![wrong_model::<Self>(registry, name)]);
        };
        table.remove("name");
        (entry.parse)(table)
    }

    fn model_name(model: &Self::Model) -> &'static str {
        model.name()
    }

    fn model_table(model: &Self::Model) -> Result<toml::Table, toml::ser::Error> {
        model.table()
    }

    fn parse_data(table: toml::Table, sharing: Sharing) -> Result<TableData, Vec<KeyError>> {
        match sharing {
            Sharing::Split => {
                let data: TableData = read(table)?;
                let wrong = |what| vec![KeyError::invalid("partition", format!("cannot be used: {what}"))];
                data.partition.check().map_err(wrong)?;
                Ok(data)
            }
            Sharing::Replicated => {
                let ReplicatedTableData { file } = read(table)?;
                Ok(TableData { file, partition: Default::default(), seed: None })
            }
        }
    }

    fn data_keys(sharing: Sharing) -> Vec<Key> {
        match sharing {
            Sharing::Split => keys::<TableData>(),
            Sharing::Replicated => keys::<ReplicatedTableData>(),
        }
    }

    fn file(data: &TableData) -> &Path {
        &data.file
    }
}

impl RunFileKind for Corpus {
    type RunSettings = CorpusRunSettings;
    type Data = CorpusData;
    type Evaluate = CorpusEvaluation;
    type Model = LdaSettings;

    const WORDS: DataWords = DataWords { kind: "a corpus", entry: "document", test_entry: "held-out document" };

    fn methods(registry: &Registry) -> &Vec<MethodEntry<Self>> {
        &registry.corpus_methods
    }

    fn methods_mut(registry: &mut Registry) -> &mut Vec<MethodEntry<Self>> {
        &mut registry.corpus_methods
    }

    fn models(_: &Registry) -> Vec<&'static str> {
        vec![LdaSettings::NAME]
    }

    fn model_keys(_: &Registry, _: &str) -> Vec<Key> {
        keys::<LdaSettings>()
    }

    fn other_defaults(_: &Registry, _: &str) -> toml::Table {
        toml::Table::new()
    }

    fn parse_model(registry: &Registry, mut table: toml::Table) -> Result<LdaSettings, Vec<KeyError>> {
        let known = Self::models(registry);
        let name = name_of(&table, &known).map_err(|error| vec![error])?;
        if !known.contains(&name) {
            return Err(vec![wrong_model::<Self>(registry, name)]);
        }
        table.remove("name");
        let settings: LdaSettings = read(table)?;
        settings.check().map_err(|error| vec![error])?;
        Ok(settings)
    }

    fn model_name(_: &LdaSettings) -> &'static str {
        LdaSettings::NAME
    }

    fn model_table(model: &LdaSettings) -> Result<toml::Table, toml::ser::Error> {
        table(model)
    }

    fn parse_data(table: toml::Table, _: Sharing) -> Result<CorpusData, Vec<KeyError>> {
        read(table)
    }

    fn data_keys(_: Sharing) -> Vec<Key> {
        keys::<CorpusData>()
    }

    fn file(data: &CorpusData) -> &Path {
        &data.file
    }
}

/// `[data]` of a method with this sharing.
///
/// # Errors
/// If a value has no TOML form.
pub(super) fn data_table<D: RunFileKind>(data: &D::Data, sharing: Sharing) -> Result<toml::Table, toml::ser::Error> {
    let keys = D::data_keys(sharing);
    let mut values = table(data)?;
    values.retain(|key, _| keys.iter().any(|known| known.name == key));
    Ok(values)
}

/// The error for a model that is not one for such data.
fn wrong_model<D: RunFileKind>(registry: &Registry, name: &str) -> KeyError {
    match registry.models().contains(&name) {
        true => {
            let sentence =
                format!("= \"{name}\" is not a model for {}. Choose one of: {}", D::WORDS.kind, D::models(registry).join(", "));
            KeyError::invalid("name", sentence)
        }
        false => unknown_name(name, &registry.models()),
    }
}
