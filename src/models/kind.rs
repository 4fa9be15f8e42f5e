//! A model as a run file names it: settings that build it for the data at hand.

use super::{Model, Output};
use crate::number::Real;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;

/// What a model has to fit to.
#[derive(Clone, Copy, Debug)]
pub struct DataSchema {
    /// Columns of x.
    pub features: usize,
    /// What the rows' targets are.
    pub output: Output,
}

/// The settings of a model that a run file can name: the keys of its `[model]` table, each with a default.
pub trait ModelSettings: Serialize + DeserializeOwned + 'static {
    /// Its `name` in the table.
    const NAME: &'static str;

    /// What each key means, in the order in which people should read them: what `mpibayes init` writes beside them.
    const DOCS: &'static [(&'static str, &'static str)] = &[];

    /// Values of a run file that suit the model better than their defaults, as `--set` takes them: what `mpibayes init` writes, as
    /// far as the method has such keys.
    const ADVICE: &'static [(&'static str, &'static str)] = &[];

    /// The model for these data; `facts` is `None` where the run file names none.
    ///
    /// # Errors
    /// A message that says which setting does not fit, and what would.
    fn build_model<F: Real>(&self, facts: Option<DataSchema>) -> Result<BuiltModel<F>, String>;
}

/// A model, and the rows that it brings along where it needs no dataset.
pub struct BuiltModel<F> {
    /// The model.
    pub model: Arc<dyn Model<F>>,
    /// Rows 0, 1, ... of a single column that holds the row's own number: the factors of a product.
    pub own_rows: usize,
}

impl<F: Real> BuiltModel<F> {
    /// A model for the rows of a dataset.
    pub fn for_data(model: impl Model<F> + 'static) -> Self {
        Self { model: Arc::new(model), own_rows: 0 }
    }
}

/// The facts, for a model that cannot do without.
///
/// # Errors
/// Where there are no data.
pub fn require_data(facts: Option<DataSchema>) -> Result<DataSchema, String> {
    facts.ok_or_else(|| "this model needs data: add [data] with file = \"...\" (made by mpibayes import)".into())
}
