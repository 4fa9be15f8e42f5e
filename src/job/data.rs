//! The data file of a run: a table or a corpus, found out from the file itself.

use super::error::JobError;
use crate::config::{Choice, ConfigError, Registry, RunFileKind, template};
use crate::data::corpus::Corpus as CorpusFile;
use crate::data::{DataError, Dataset, ExtraColumns, FeatureScaling, Recipe, Split, Task, Verified};
use crate::methods::{Corpus, Table};
use crate::models::ordinal::OrdinalSettings;
use crate::models::{DataSchema, ModelSettings, Output};
use crate::results::ResultFile;
use std::path::Path;
use std::sync::Arc;

/// An open data file.
#[derive(Clone, Debug)]
pub enum DataFile {
    /// A table.
    Table(Arc<Dataset>),
    /// A corpus.
    Corpus(Arc<CorpusFile>),
}

impl DataFile {
    /// Opens a file.
    ///
    /// # Errors
    /// If it cannot be read, or was not made by `mpibayes import`.
    pub fn open(file: &Path) -> Result<Self, DataError> {
        match CorpusFile::is_corpus(file) {
            true => Ok(Self::Corpus(Arc::new(CorpusFile::open(file)?))),
            false => Ok(Self::Table(Arc::new(Dataset::open(file)?))),
        }
    }

    /// The digest of the content.
    pub fn digest(&self) -> &str {
        match self {
            Self::Table(table) => table.digest(),
            Self::Corpus(corpus) => corpus.digest(),
        }
    }

    /// Reads everything and compares its digest with the one that the file states. `report` is called with the bytes so far.
    ///
    /// # Errors
    /// If the digests differ, or the file cannot be read.
    pub fn verify(&self, report: &mut dyn FnMut(u64)) -> Result<Verified, DataError> {
        match self {
            Self::Table(table) => table.verify(report),
            Self::Corpus(corpus) => corpus.verify(report),
        }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        match self {
            Self::Table(table) => table.path(),
            Self::Corpus(corpus) => corpus.path(),
        }
    }

    /// The number of rows or documents of a split.
    pub fn len(&self, split: Split) -> usize {
        match self {
            Self::Table(table) => table.rows(split),
            Self::Corpus(corpus) => corpus.documents(split),
        }
    }

    /// What is counted by [`DataFile::len`].
    pub fn entry(&self) -> &'static str {
        match self {
            Self::Table(_) => Table::WORDS.entry,
            Self::Corpus(_) => Corpus::WORDS.entry,
        }
    }

    /// What the file is, with its article.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Table(_) => Table::WORDS.kind,
            Self::Corpus(_) => Corpus::WORDS.kind,
        }
    }
}

/// Checks that the data are those of the run in a result file; what is wrong, for people.
pub(super) fn check_unchanged(file: &ResultFile, data: Option<&DataFile>) -> Result<(), String> {
    let (recorded, found) = (&file.info().data_digest, data.map_or("", DataFile::digest));
    if recorded == found {
        return Ok(());
    }
    let data = data.map_or_else(String::new, |data| data.path().display().to_string());
    Err(format!(
        "{data} now holds other data (digest {found:.12}) than when the run began (digest {recorded:.12}). Restore it first"
    ))
}

/// What a model has to fit to.
///
/// # Errors
/// If the names of the features cannot be read.
pub(super) fn schema(dataset: &Dataset) -> Result<DataSchema, DataError> {
    let names = dataset.feature_names()?.unwrap_or_default();
    let columns = (dataset.shape(), dataset.features(), dataset.scaling());
    Ok(schema_of(columns, dataset.recipe(), names, (dataset.task(), dataset.classes()), dataset.target_scaling().0))
}

/// The error of data of another kind than the model is for.
pub(super) fn refuse_kind(file: &DataFile, model: &str, wanted: &str) -> JobError {
    ConfigError::Choice(format!("{} {}", file.path().display(), other_kind(file, model, wanted))).into()
}

/// What is wrong with data of another kind than the model is for, after the name of the file.
pub(super) fn other_kind(file: &DataFile, model: &str, wanted: &str) -> String {
    format!("holds {}, and the model {model} is for {wanted}: choose another model, or another file", file.kind())
}

/// The schema of rows of this shape with this number of columns, scaled like this.
pub(super) fn schema_of(
    (shape, columns, scaling): (&[usize], usize, &FeatureScaling),
    recipe: Option<&Recipe>,
    names: Vec<String>,
    (task, classes): (Task, &[String]),
    target_scale: f64,
) -> DataSchema {
    let extra = recipe.map(Recipe::extra).unwrap_or_default();
    let features = columns.saturating_sub(extra.count());
    let ExtraColumns { offset, weight, groups } = extra;
    let output = match task {
        Task::Classification => Output::Classes(classes.len()),
        Task::Regression => Output::Number,
        Task::Counts => Output::Count,
    };
    let (classes, scales) = (classes.to_vec(), scales(scaling, features));
    let shape = if columns == features { shape.to_vec() } else { vec![features] };
    DataSchema { features, shape, offset, weight, groups, output, names, classes, scales, target_scale }
}

/// The scale of each feature, unless rows are sparse or features are mixed.
fn scales(scaling: &FeatureScaling, features: usize) -> Option<Vec<f64>> {
    match scaling {
        FeatureScaling::Dense { scale, rotation: None, .. } => Some(scale[..features].to_vec()),
        FeatureScaling::Dense { rotation: Some(_), .. } | FeatureScaling::Sparse { .. } => None,
    }
}

/// A starting run file for a method, with the reason for it if it was not the user's choice. Without a model, the first one that suits the
/// data.
///
/// # Errors
/// If there is no such method or model, the data cannot be opened, or no model suits them.
pub fn template_for(
    registry: &Registry,
    method: &str,
    reason_for_method: Option<&str>,
    model: Option<&str>,
    data: Option<&Path>,
) -> Result<String, JobError> {
    let file = data.map(DataFile::open).transpose()?;
    let is_for_corpus = |name: &str| Corpus::models(registry).contains(&name);
    let on_corpus = match (model, &file) {
        (Some(model), _) => is_for_corpus(model),
        (None, Some(file)) => matches!(file, DataFile::Corpus(_)),
        (None, None) => !registry.methods_for::<Table>().contains(&method) && registry.methods_for::<Corpus>().contains(&method),
    };
    if let (Some(model), Some(file)) = (model, &file) {
        let fits = matches!(file, DataFile::Corpus(_)) == on_corpus;
        if !fits && registry.models().contains(&model) {
            let wanted = if on_corpus { Corpus::WORDS.kind } else { Table::WORDS.kind };
            return Err(refuse_kind(file, model, wanted));
        }
    }
    check_name("method", method, &registry.methods())?;
    let reason = match (model, &file) {
        (Some(model), _) => format!("the model {model} is for"),
        (None, Some(file)) => format!("{} holds", file.path().display()),
        (None, None) => "the run is on".into(),
    };
    let mut reasons: Vec<String> = reason_for_method.map(|reason| format!("{method}, because {reason}.")).into_iter().collect();
    match on_corpus {
        false => {
            check_kind::<Table>(registry, method, &reason)?;
            let choice = Choice { method, ..table_choice(registry, method, model, &file, data)? };
            if let (None, Some(DataFile::Table(table))) = (model, &file) {
                let targets = targets_description(table);
                reasons.push(format!("{}, because {targets}.", choice.model));
            }
            Ok(template::<Table>(registry, Choice { reasons: &reasons, ..choice })?)
        }
        true => {
            check_kind::<Corpus>(registry, method, &reason)?;
            let (model, data) = (Corpus::models(registry)[0], data.or(Choice::default().data));
            Ok(template::<Corpus>(registry, Choice { method, model, data, reasons: &reasons })?)
        }
    }
}

/// What the targets are, as a reason for a model.
fn targets_description(table: &Dataset) -> String {
    match (table.task(), table.classes().len()) {
        (Task::Regression, _) => "the targets are numbers".into(),
        (Task::Counts, _) => "the targets are counts, which may vary more than those of a Poisson distribution".into(),
        (Task::Classification, 2) => "there are two classes".into(),
        (Task::Classification, classes) => match table.recipe().is_some_and(|recipe| recipe.has_ordered_classes) {
            true => format!("there are {classes} classes with an order"),
            false => format!("there are {classes} classes without an order"),
        },
    }
}

/// The model and the data of a run on a table.
fn table_choice<'a>(
    registry: &'a Registry,
    method: &str,
    model: Option<&'a str>,
    file: &Option<DataFile>,
    data: Option<&'a Path>,
) -> Result<Choice<'a>, JobError> {
    let schema = match file {
        Some(DataFile::Table(table)) => Some(schema(table)?),
        _ => None,
    };
    let models = Table::models(registry);
    let build = |name: &str| -> Result<usize, JobError> {
        let settings = toml::Table::from_iter([("name".to_owned(), toml::Value::from(name))]);
        let model = Table::parse_model(registry, settings).map_err(ConfigError::Settings)?;
        let built = match model.float64(schema.as_ref()) {
            // Without data it is not known yet whether they suit.
            Err(_) if schema.is_none() => return Ok(0),
            built => built.map_err(|error| ConfigError::Choice(format!("the model {name} {error}")))?,
        };
        registry
            .check_model(method, built.model.as_ref())
            .map_err(|error| ConfigError::Choice(format!("{method} cannot use the model {name}: it {error}")))?;
        Ok(built.own_rows)
    };
    let (model, own_rows) = match model {
        Some(name) => {
            check_name("model", name, &registry.models())?;
            (name, build(name)?)
        }
        None => {
            let recipe = if let Some(DataFile::Table(table)) = file { table.recipe() } else { None };
            let is_ordered = recipe.is_some_and(|recipe| recipe.has_ordered_classes);
            // Only the user knows whether classes have an order.
            let (ordinal, others): (Vec<&str>, Vec<&str>) = models.into_iter().partition(|name| *name == OrdinalSettings::NAME);
            let candidates = if is_ordered { [ordinal, others].concat() } else { others };
            let suits = |name: &&&str| schema.is_none() || build(name).is_ok();
            let none = "no model suits these data: with more than two classes without an order, no model takes groups, offsets or weights: \
                        import without these, or with --classes in their order, or with --task counts if they \
                        are counts";
            let name = *candidates.iter().find(suits).ok_or_else(|| ConfigError::Choice(none.into()))?;
            (name, 0)
        }
    };
    let data = if own_rows > 0 { None } else { data.or(Choice::default().data) };
    Ok(Choice { model, data, ..Choice::default() })
}

/// Checks that a method is one for this kind of data, which the reason names.
fn check_kind<D: RunFileKind>(registry: &Registry, method: &str, reason: &str) -> Result<(), ConfigError> {
    let known = registry.methods_for::<D>();
    if known.contains(&method) {
        return Ok(());
    }
    let kind = D::WORDS.kind;
    Err(ConfigError::Choice(format!(
        "{method} is not a method for {kind}, and {reason} {kind}. Choose one of: {}",
        known.join(", ")
    )))
}

fn check_name(kind: &str, name: &str, known: &[&str]) -> Result<(), ConfigError> {
    if known.contains(&name) {
        return Ok(());
    }
    let known: Vec<String> = known.iter().map(|&name| name.to_owned()).collect();
    Err(ConfigError::Choice(format!("the {kind} {}", crate::settings::unknown_word(name, &known))))
}
