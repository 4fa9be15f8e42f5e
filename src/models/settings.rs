//! Models as run files name them: settings from which a model is built for given data.

use super::error::ModelError;
use super::model::{Model, Output};
use crate::number::Real;
use crate::settings::{Key, KeyError, Settings};
use std::sync::Arc;

/// The columns and targets of the data that a model is built for.
#[derive(Clone, Debug)]
pub struct DataSchema {
    /// The number of features: the first columns of a row.
    pub features: usize,
    /// The shape of the features, such as height × width × channels of images.
    pub shape: Vec<usize>,
    /// Whether the column after the features is an offset of the linear predictor.
    pub offset: bool,
    /// Whether the next column is the weight of the row: how often it counts.
    pub weight: bool,
    /// The names of the groups; if there are any, the last column of a row is the index of its group.
    pub groups: Vec<String>,
    /// The kind of targets.
    pub output: Output,
    /// Names of the columns, features first; empty if they have none.
    pub names: Vec<String>,
    /// Names of the classes; empty if they have none.
    pub classes: Vec<String>,
    /// The model sees x·scale (plus an offset) of a feature x of the data; none if rows are sparse or features are mixed.
    pub scales: Option<Vec<f64>>,
    /// The model sees y·scale (plus an offset) of a target y of the data.
    pub target_scale: f64,
}

impl DataSchema {
    /// Unscaled features without names and without columns after them.
    pub fn new(features: usize, output: Output) -> Self {
        let scales = Some(vec![1.0; features]);
        Self {
            features,
            shape: vec![features],
            offset: false,
            weight: false,
            groups: Vec::new(),
            output,
            names: Vec::new(),
            classes: Vec::new(),
            scales,
            target_scale: 1.0,
        }
    }

    /// Checks that no columns follow the features, for this kind of model.
    ///
    /// # Errors
    /// If there is one.
    pub fn refuse_extra_columns(&self, kind: &str) -> Result<(), KeyError> {
        let extra = [(self.offset, "an offset"), (self.weight, "weights"), (!self.groups.is_empty(), "groups")];
        let found: Vec<&str> = extra.into_iter().filter_map(|(is_there, name)| is_there.then_some(name)).collect();
        if found.is_empty() {
            return Ok(());
        }
        let found = found.join(", ");
        Err(KeyError::table(format!(
            "does not suit the data, whose rows have {found}: {kind} has no use for them; import without them"
        )))
    }

    /// The column of offsets.
    pub fn offset_column(&self) -> Option<usize> {
        self.offset.then_some(self.features)
    }

    /// The column of weights.
    pub fn weight_column(&self) -> Option<usize> {
        self.weight.then_some(self.features + usize::from(self.offset))
    }

    /// The column of the indices of groups.
    pub fn group_column(&self) -> Option<usize> {
        (!self.groups.is_empty()).then(|| self.columns() - 1)
    }

    /// The number of columns of a row.
    pub fn columns(&self) -> usize {
        self.features + usize::from(self.offset) + usize::from(self.weight) + usize::from(!self.groups.is_empty())
    }
}

/// The settings of a model that run files can name: the keys of its `[model]` table, each with a default.
pub trait ModelSettings: Settings {
    /// The value of `name` in the table.
    const NAME: &'static str;

    /// The documentation of its keys, which `mpibayes init` writes into a run file.
    fn keys() -> Vec<Key> {
        Vec::new()
    }

    /// Defaults of keys outside of `[model]` that differ for this model. Those of `[method]` hold for methods with such keys.
    fn other_defaults() -> toml::Table {
        toml::Table::new()
    }

    /// Builds the model for these data; `data` is `None` if the run file names no dataset.
    ///
    /// # Errors
    /// The key that is wrong, and which values are allowed.
    fn build_model<F: Real>(&self, data: Option<&DataSchema>) -> Result<BuiltModel<F>, KeyError>;
}

/// A model, and the rows that it generates if it needs no dataset.
pub struct BuiltModel<F> {
    /// The model.
    pub model: Arc<dyn Model<F>>,
    /// The number of generated rows. They have a single column, which holds the row's index; see
    /// [`FactorProduct`](super::gaussian::FactorProduct). 0 for models of a dataset.
    pub own_rows: usize,
}

impl<F: Real> BuiltModel<F> {
    /// A model for the rows of a dataset.
    pub fn for_data(model: impl Model<F> + 'static) -> Self {
        Self { model: Arc::new(model), own_rows: 0 }
    }
}

impl From<ModelError> for KeyError {
    fn from(error: ModelError) -> Self {
        match error {
            ModelError::OutOfRange { setting, value, range } => Self::invalid(setting, format!("must be {range}, not {value}")),
            ModelError::EmptyLayer { layer } => {
                Self::invalid("hidden", format!("has width 0 in layer {layer}; every hidden layer needs at least one unit"))
            }
            ModelError::TooManyWeights { most } => {
                Self::invalid("hidden", format!("gives more than {most} weights: take fewer or smaller layers"))
            }
            ModelError::Loss { loss, target } => Self::invalid("loss", format!("= \"{loss}\" does not fit {target}")),
            ModelError::NoFeatures | ModelError::Classes { .. } | ModelError::Target { .. } => {
                Self::table(format!("does not suit the data: {error}"))
            }
            error => Self::table(format!("cannot be built: {error}")),
        }
    }
}

/// The data or their schema, for models that need some.
///
/// # Errors
/// If there are no data.
pub fn require_data<D>(data: Option<D>) -> Result<D, KeyError> {
    data.ok_or_else(|| KeyError::table("needs data. Add [data] with file = \"...\", a file made by `mpibayes import`"))
}
