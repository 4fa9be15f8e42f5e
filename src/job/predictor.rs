//! A finished run as something that predicts: its model and draws from its result file, for rows in the units of the raw data.

use super::data::schema_of;
use super::error::{JobError, NOT_FINISHED};
use super::predictions::{PREPROCESSING, TASK, kept_recipe, kept_scaling, kept_shape, predictive_draws};
use crate::cluster::BoxError;
use crate::config::{ConfigError, Dtype, Precision, Registry, Run, RunOf};
use crate::data::{DataError, Dataset, FeatureScaling, Recipe, Shard, SparseRows, Split, Task};
use crate::methods::Table;
use crate::methods::common::predict::{draw_means, draw_targets, predict};
use crate::models::{DataSchema, Model, Scratch};
use crate::number::Real;
use crate::random::Seed;
use crate::results::{ResultFile, ResultsError};
use ndarray::{Array1, Array2, Array3, ArrayView2, Axis, s, stack};
use std::sync::Arc;

/// What a run predicts for rows of data.
pub struct Predictor {
    engine: Box<dyn Engine>,
    /// Names of the columns of a row, features first; empty where the dataset names none.
    pub features: Vec<String>,
    /// The shape of the images of the run; `None` for other rows.
    pub shape: Option<Vec<usize>>,
    /// How many columns a row has: the features, then the offset, the weight and the group, if the data have them.
    pub columns: usize,
    /// Names of the classes; none for regression.
    pub classes: Vec<String>,
    /// What becomes of the columns of a table, unless they are what they were.
    pub recipe: Option<Recipe>,
    scaling: FeatureScaling,
    task: Task,
    /// The model's target is that of the data · scale + offset.
    target_scale_and_offset: (f64, f64),
}

/// Rows of data in their own units.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RawRows {
    /// Row i has the values `starts[i]..starts[i + 1]`, and the last all that follow.
    starts: Vec<usize>,
    columns: Vec<u32>,
    values: Vec<f64>,
}

impl RawRows {
    /// Appends a row: its values in these columns, ascending from 0; all others are zero.
    pub fn push(&mut self, row: impl IntoIterator<Item = (u32, f64)>) {
        self.starts.push(self.values.len());
        for (column, value) in row {
            self.columns.push(column);
            self.values.push(value);
        }
    }

    /// How many rows.
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// How many values.
    pub fn values(&self) -> usize {
        self.values.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }
}

/// A scaled feature that is larger is far from those of most training rows.
const FAR: f64 = 10.0;

/// Whether this is a value of an indicator, which may be rare: a feature that is 0 or 1 with mean m has the variance m (1 − m).
fn is_indicator(raw: f64, scale: f64, offset: f64) -> bool {
    let (mean, variance) = (-offset / scale, 1.0 / (scale * scale));
    (raw == 0.0 || raw == 1.0) && (variance - mean * (1.0 - mean)).abs() < 0.02 * variance
}

/// A model in one precision with its draws.
trait Engine {
    /// The number of draws of the posterior.
    fn draws(&self) -> usize;
    /// Whether the model draws targets.
    fn can_draw(&mut self, columns: usize) -> bool;
    /// Predictions in the units of the model.
    fn predict_rows(
        &mut self,
        rows: RawRows,
        columns: usize,
        scaling: &FeatureScaling,
        wanted: Wanted,
    ) -> Result<Predictions, BoxError>;
    /// The same of rows of a dataset.
    fn predict_dataset(
        &mut self,
        dataset: &Dataset,
        split: Split,
        rows: &[usize],
        wanted: Wanted,
    ) -> Result<Predictions, JobError>;
}

/// What is predicted beside means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The number of the first row. It addresses the random numbers that are drawn for it.
    pub first_row: u64,
    /// Targets, drawn from the model.
    pub targets: bool,
    /// The means given each draw of the posterior.
    pub means_by_draw: bool,
}

/// What is predicted for some rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Predictions {
    /// Class probabilities (rows × classes), or means (rows × 1), averaged over draws of the posterior.
    pub means: Array2<f64>,
    /// The same given each draw of the posterior (draws × rows × outputs), if wanted.
    pub means_by_draw: Option<Array3<f64>>,
    /// A target for each draw of the posterior (rows × draws), drawn from the model, if wanted.
    pub drawn_targets: Option<Array2<f64>>,
    /// How many rows are of a group that no training row has.
    pub of_new_groups: usize,
}

/// A model with draws of its posterior.
struct ModelWithDraws<F> {
    model: Arc<dyn Model<F>>,
    theta: Array2<F>,
    scratch: Scratch<F>,
    seed: Seed,
}

impl<F: Real> ModelWithDraws<F> {
    /// Predictions for a shard.
    fn predictions(&mut self, shard: &Shard<F>, wanted: Wanted) -> Result<Predictions, BoxError> {
        let new_groups = self.rows_of_new_groups(shard);
        let Self { model, theta, scratch, seed } = self;
        let model = model.as_ref();
        let mut means = |theta: ArrayView2<F>| means(model, theta, shard, scratch);
        let mut means_by_draw = match wanted.means_by_draw {
            true => {
                let draws = theta.axis_chunks_iter(Axis(0), 1).map(&mut means).collect::<Result<Vec<_>, _>>()?;
                Some(stack(Axis(0), &draws.iter().map(|means| means.view()).collect::<Vec<_>>())?)
            }
            false => None,
        };
        let means = match means_by_draw.as_ref().and_then(|means| means.mean_axis(Axis(0))) {
            Some(average) => average,
            None => means(theta.view())?,
        };
        // The effect of a new group is averaged out in a mean, but its spread is a part of what is unknown about the group.
        if let Some(means) = &mut means_by_draw {
            draw_means(model, theta.view(), shard, &new_groups, (*seed, wanted.first_row), means, scratch);
        }
        let drawn_targets = match wanted.targets {
            true => draw_targets(model, theta.view(), shard, (*seed, wanted.first_row), scratch),
            false => None,
        };
        Ok(Predictions { means, means_by_draw, drawn_targets, of_new_groups: new_groups.len() })
    }

    /// The rows of groups that no training row has.
    fn rows_of_new_groups(&mut self, shard: &Shard<F>) -> Vec<usize> {
        let Self { model, scratch, .. } = self;
        let mut found = Vec::new();
        shard.blocks(scratch, |rows, batch, _| {
            found.extend(rows.zip(batch.x.rows()).filter(|(_, x)| model.is_of_new_group(*x)).map(|(row, _)| row));
        });
        found
    }
}

/// Class probabilities or means, averaged over these draws of the posterior.
fn means<F: Real>(
    model: &dyn Model<F>,
    theta: ArrayView2<F>,
    shard: &Shard<F>,
    scratch: &mut Scratch<F>,
) -> Result<Array2<f64>, BoxError> {
    let mut means = Vec::new();
    let mut outputs = 1;
    predict(model, theta, shard, scratch, |block| {
        outputs = block.mean.ncols();
        means.extend(block.mean);
        Ok::<_, BoxError>(())
    })?;
    Ok(Array2::from_shape_vec((means.len() / outputs, outputs), means)?)
}

impl<F: Real> Engine for ModelWithDraws<F> {
    fn draws(&self) -> usize {
        self.theta.nrows()
    }

    fn can_draw(&mut self, columns: usize) -> bool {
        let shard = Shard::new(Array2::zeros((1, columns)), Array1::zeros(1));
        let theta = self.theta.slice(s![..1, ..]);
        draw_targets(self.model.as_ref(), theta, &shard, (self.seed, 0), &mut self.scratch).is_some()
    }

    fn predict_rows(
        &mut self,
        rows: RawRows,
        columns: usize,
        scaling: &FeatureScaling,
        wanted: Wanted,
    ) -> Result<Predictions, BoxError> {
        let RawRows { mut starts, columns: indices, values } = rows;
        let targets = Array1::zeros(starts.len());
        let scaled: Vec<F> = indices.iter().zip(values).map(|(&column, raw)| F::of(scaling.apply(column, raw))).collect();
        let shard = match scaling {
            FeatureScaling::Dense { .. } => {
                let mut x = Array2::from_shape_vec((starts.len(), columns), scaled)?;
                scaling.rotate(&mut x);
                Shard::new(x, targets)
            }
            FeatureScaling::Sparse { .. } => {
                starts.push(indices.len());
                Shard::sparse(SparseRows::new(columns, starts, indices, scaled), targets)
            }
        };
        shard.check(self.model.as_ref(), &mut self.scratch)?;
        self.predictions(&shard, wanted)
    }

    fn predict_dataset(
        &mut self,
        dataset: &Dataset,
        split: Split,
        rows: &[usize],
        wanted: Wanted,
    ) -> Result<Predictions, JobError> {
        let shard: Shard<F> = dataset.read_rows::<F>(split, rows)?.without_targets();
        let place = |what: String| JobError::Prediction(format!("{}: {what}", dataset.path().display()));
        shard.check(self.model.as_ref(), &mut self.scratch).map_err(place)?;
        self.predictions(&shard, wanted).map_err(|cause| place(cause.to_string()))
    }
}

impl Predictor {
    /// From the result file of a run.
    ///
    /// # Errors
    /// When the run is on no data, has drawn nothing yet, is not over, or its model is unknown here.
    pub fn new(file: &ResultFile, registry: &Registry) -> Result<Self, JobError> {
        let cannot = |what: &str| JobError::Prediction(what.to_owned());
        let Run::Table(run) = Run::from_toml(&file.info().config, registry)? else {
            return Err(cannot("the run is on documents, not on rows"));
        };
        if !file.info().state.finished {
            return Err(cannot(NOT_FINISHED));
        }
        let grid = file.grid(PREPROCESSING)?.ok_or_else(|| cannot("the run is on no data"))?;
        if !file.has_posterior()? {
            return Err(cannot("the run has no draws"));
        }
        let numbers = |name: &str| grid.array(name).map(|array| array.iter().copied().collect::<Vec<f64>>());
        let (columns, scaling) = kept_scaling(&grid).ok_or_else(|| cannot("its description of the data is damaged"))?;
        let classes = grid.list("classes").to_vec();
        let first = |name: &str| numbers(name).and_then(|all| all.first().copied());
        let task = match grid.list(TASK) {
            [name] => Task::named(name).ok_or_else(|| cannot("its task is unknown"))?,
            _ if classes.is_empty() => Task::Regression,
            _ => Task::Classification,
        };
        let recipe = kept_recipe(&grid).map_err(|_| cannot("its description of the columns is damaged"))?;
        let (target_scale, target_offset) = (first("target_scale").unwrap_or(1.0), first("target_offset").unwrap_or(0.0));
        let names = grid.list("features").to_vec();
        let shape = kept_shape(&grid);
        let flat = [columns];
        let schema = schema_of(
            (shape.as_deref().unwrap_or(&flat), columns, &scaling),
            recipe.as_ref(),
            names,
            (task, &classes),
            target_scale,
        );
        let engine: Box<dyn Engine> = match run.settings.dtype {
            Dtype::Float32 => Box::new(load::<f32>(file, &run, &schema)?),
            Dtype::Float64 => Box::new(load::<f64>(file, &run, &schema)?),
        };
        let features = grid.list("features").to_vec();
        Ok(Self {
            engine,
            features,
            shape,
            columns,
            classes,
            recipe,
            scaling,
            task,
            target_scale_and_offset: (target_scale, target_offset),
        })
    }

    /// Whether rows are sparse: those of tables and arrays are not.
    pub fn is_sparse(&self) -> bool {
        matches!(self.scaling, FeatureScaling::Sparse { .. })
    }

    /// Class probabilities (rows × classes), or predictive means in the units of the targets (rows × 1). Rows have a value for each
    /// feature, unless the run is on sparse data.
    ///
    /// # Errors
    /// When rows lack values, or the model refuses them.
    ///
    /// # Panics
    /// When a row has a column that the run does not know.
    pub fn predict_rows(&mut self, rows: RawRows, wanted: Wanted) -> Result<Predictions, JobError> {
        let predictions = self.engine.predict_rows(rows, self.columns, &self.scaling, wanted);
        Ok(self.in_units(predictions.map_err(|cause| JobError::Prediction(cause.to_string()))?))
    }

    /// The first feature of a row that is a number far from those of most training rows: more than ten standard deviations from their mean,
    /// if features are standardized.
    pub fn far_feature(&self, row: &[f64]) -> Option<usize> {
        let FeatureScaling::Dense { scale, offset, rotation: None } = &self.scaling else { return None };
        row.iter().zip(scale.iter().zip(offset)).position(|(&raw, (&scale, &offset))| {
            let is_scaled = (scale, offset) != (1.0, 0.0);
            is_scaled && (raw * scale + offset).abs() > FAR && !is_indicator(raw, scale, offset)
        })
    }

    /// Whether the model draws targets, so that there are intervals of predictions.
    pub fn can_draw(&mut self) -> bool {
        self.engine.can_draw(self.columns)
    }

    /// The number of draws of the posterior that predict.
    pub fn draws(&self) -> usize {
        self.engine.draws()
    }

    /// A dataset whose rows the run shall predict, from now on scaled as the run's own were.
    ///
    /// # Errors
    /// When its features are not those of the run.
    pub fn adopt(&self, dataset: Dataset) -> Result<Dataset, DataError> {
        if dataset.task() != self.task {
            let what = format!("this is for {}, the run is for {}", dataset.task().name(), self.task.name());
            return Err(DataError::Request(format!("{}: {what}", dataset.path().display())));
        }
        // Columns of numbers alone are as they would be without a recipe.
        let columns =
            |recipe: Option<&Recipe>| recipe.filter(|recipe| !recipe.has_plain_columns()).map(|recipe| recipe.columns.clone());
        if columns(dataset.recipe()) != columns(self.recipe.as_ref()) {
            let what = "its columns were imported in another way than those of the run: give the table itself";
            return Err(DataError::Request(format!("{}: {what}", dataset.path().display())));
        }
        let dataset = dataset.scaled_as(self.columns, self.scaling.clone())?;
        if let Some(names) = dataset.feature_names()?.filter(|names| !self.features.is_empty() && *names != self.features) {
            let differ = names.iter().zip(&self.features).find(|(one, other)| one != other);
            let what = differ.map_or_else(String::new, |(one, other)| format!(": {one:?} where the run has {other:?}"));
            let what = format!("its features have other names, or another order{what}: give the table itself");
            return Err(DataError::Request(format!("{}: {what}", dataset.path().display())));
        }
        Ok(dataset)
    }

    /// Predicts rows of a dataset that this has adopted, as [`Predictor::predict_rows`] does.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn predict_dataset(
        &mut self,
        dataset: &Dataset,
        split: Split,
        rows: &[usize],
        wanted: Wanted,
    ) -> Result<Predictions, JobError> {
        let predictions = self.engine.predict_dataset(dataset, split, rows, wanted)?;
        Ok(self.in_units(predictions))
    }

    /// Standardized predictions in the units of the targets; those of classes as they are.
    fn in_units(&self, predictions: Predictions) -> Predictions {
        let (scale, offset) = self.target_scale_and_offset;
        if !self.classes.is_empty() {
            return predictions;
        }
        let in_units = |value: f64| (value - offset) / scale;
        Predictions {
            means: predictions.means.mapv_into(in_units),
            means_by_draw: predictions.means_by_draw.map(|means| means.mapv_into(in_units)),
            drawn_targets: predictions.drawn_targets.map(|targets| targets.mapv_into(in_units)),
            of_new_groups: predictions.of_new_groups,
        }
    }
}

/// The model of a run with its draws.
fn load<F: Precision>(file: &ResultFile, run: &RunOf<Table>, schema: &DataSchema) -> Result<ModelWithDraws<F>, JobError> {
    let model =
        F::model(run.model.as_ref(), Some(schema)).map_err(|error| ConfigError::Settings(vec![error.below("model")]))?.model;
    let Some(theta) = predictive_draws::<F>(file)? else {
        return Err(JobError::Prediction("the run has kept no draws".into()));
    };
    if theta.ncols() != model.dim() || theta.nrows() == 0 {
        let what = format!("{} draws of {} numbers do not fit a model of {}", theta.nrows(), theta.ncols(), model.dim());
        return Err(ResultsError::Shape(what).into());
    }
    Ok(ModelWithDraws { model, theta, scratch: Scratch::new(), seed: Seed(run.settings.seed) })
}
