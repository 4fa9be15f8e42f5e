//! A finished run as something that predicts: its model and draws from its result file, for rows in the units of the raw data.

use super::predictions::{PREPROCESSING, predictive_draws};
use super::registry::{BuildModel, Registry};
use super::setup::RunError;
use super::spec::{ConfigError, Precision, RunSpec};
use crate::cluster::BoxError;
use crate::data::{Dataset, Shard, Split};
use crate::methods::predict::predict;
use crate::models::{DataFacts, Model, Output, Scratch};
use crate::number::Real;
use crate::results::{POSTERIOR, ResultsError, RunFile};
use ndarray::{Array1, Array2};
use std::sync::Arc;

/// What a run predicts for rows of data.
pub struct Predictor {
    engine: Box<dyn Engine>,
    /// Names of the features, in the order in which rows hold them; empty where the dataset names none.
    pub features: Vec<String>,
    /// How many features a row has.
    pub width: usize,
    /// Names of the classes; none for regression.
    pub classes: Vec<String>,
    /// Scale and offset of each feature; none of sparse data.
    scaling: Option<(Vec<f64>, Vec<f64>)>,
    target: (f64, f64),
    digest: String,
}

/// A model in one precision with its draws.
trait Engine {
    /// Probabilities or standardised means (rows × outputs), each block handed over, of rows that are scaled already.
    fn dense(&mut self, x: &Array2<f64>) -> Result<Array2<f64>, BoxError>;
    /// The same of rows of a dataset.
    fn dataset(&mut self, dataset: &Dataset, split: Split, rows: &[usize]) -> Result<Array2<f64>, RunError>;
}

struct Drawn<F> {
    model: Arc<dyn Model<F>>,
    theta: Array2<F>,
    scratch: Scratch<F>,
}

impl<F: Real> Drawn<F> {
    fn means(&mut self, shard: &Shard<F>) -> Result<Array2<f64>, BoxError> {
        let mut means = Vec::new();
        let mut outputs = 1;
        predict(self.model.as_ref(), self.theta.view(), shard, &mut self.scratch, |block| {
            outputs = block.mean.ncols();
            means.extend(block.mean);
            Ok::<_, BoxError>(())
        })?;
        Ok(Array2::from_shape_vec((means.len() / outputs, outputs), means)?)
    }
}

impl<F: Real> Engine for Drawn<F> {
    fn dense(&mut self, x: &Array2<f64>) -> Result<Array2<f64>, BoxError> {
        let shard = Shard::new(x.mapv(F::of), Array1::zeros(x.nrows()));
        shard.check(self.model.as_ref(), &mut self.scratch)?;
        self.means(&shard)
    }

    fn dataset(&mut self, dataset: &Dataset, split: Split, rows: &[usize]) -> Result<Array2<f64>, RunError> {
        // In the targets' standard deviations, as the rows of a table are.
        let shard: Shard<F> = dataset.read_rows::<F>(split, rows)?.with_target_unit(1.0);
        self.means(&shard).map_err(|cause| RunError::Prediction(cause.to_string()))
    }
}

impl Predictor {
    /// From the result file of a run.
    ///
    /// # Errors
    /// When the run is on no data, has drawn nothing yet, is not over, or its model is unknown here.
    pub fn new(file: &RunFile, registry: &Registry) -> Result<Self, RunError> {
        let cannot = |what: &str| RunError::Prediction(what.to_owned());
        let spec = RunSpec::from_toml(&file.info().config)?;
        if !file.info().state.finished {
            return Err(cannot("the run is not over: what it predicts is known at its end"));
        }
        let grid = file.grid(PREPROCESSING)?.ok_or_else(|| cannot("the run is on no data"))?;
        if !file.sample_groups()?.iter().any(|group| group == POSTERIOR) {
            return Err(cannot("the run has no draws"));
        }
        let numbers = |name: &str| grid.array(name).map(|array| array.iter().copied().collect::<Vec<f64>>());
        let scaling = numbers("scale").zip(numbers("offset"));
        let classes = grid.list("classes").to_vec();
        let first = |name: &str| numbers(name).and_then(|all| all.first().copied());
        let width = match &scaling {
            Some((scale, _)) => scale.len(),
            None => first("features_count").map_or(0, |count| count as usize),
        };
        let output = if classes.is_empty() { Output::Number } else { Output::Classes(classes.len()) };
        let facts = DataFacts { features: width, output };
        let entry = registry.model(&spec.model).map_err(|wrong| ConfigError::of("model", &[wrong]))?;
        let engine: Box<dyn Engine> = match spec.precision {
            Precision::F32 => Box::new(drawn::<f32>(file, &spec, facts, entry.f32)?),
            Precision::F64 => Box::new(drawn::<f64>(file, &spec, facts, entry.f64)?),
        };
        Ok(Self {
            engine,
            features: grid.list("features").to_vec(),
            width,
            classes,
            scaling,
            target: (first("target_scale").unwrap_or(1.0), first("target_offset").unwrap_or(0.0)),
            digest: file.info().data_digest.clone(),
        })
    }

    /// Class probabilities (rows × classes), or predictive means in the units of the targets (rows × 1), of raw rows (rows × features).
    ///
    /// # Errors
    /// When the run was on sparse data, or the model refuses the rows.
    pub fn rows(&mut self, mut raw: Array2<f64>) -> Result<Array2<f64>, RunError> {
        let Some((scale, offset)) = &self.scaling else {
            return Err(RunError::Prediction("the run is on sparse data: give a dataset made by mpibayes import".into()));
        };
        for mut row in raw.rows_mut() {
            for (value, (scale, offset)) in row.iter_mut().zip(scale.iter().zip(offset)) {
                *value = *value * scale + offset;
            }
        }
        let means = self.engine.dense(&raw).map_err(|cause| RunError::Prediction(cause.to_string()))?;
        Ok(self.in_units(means))
    }

    /// The same of rows of a dataset.
    ///
    /// # Errors
    /// When the dataset's features are not those of the run, or cannot be read.
    pub fn dataset(&mut self, dataset: &Dataset, split: Split, rows: &[usize]) -> Result<Array2<f64>, RunError> {
        if dataset.digest() != self.digest {
            let own = self.scaling.as_ref().map(|(scale, offset)| (scale.as_slice(), offset.as_slice()));
            if own.is_none() || dataset.feature_scaling() != own {
                return Err(RunError::Prediction(format!(
                    "{}: its features are scaled otherwise than those of the run: give the table itself, or the dataset of the run",
                    dataset.path().display()
                )));
            }
        }
        let means = self.engine.dataset(dataset, split, rows)?;
        Ok(self.in_units(means))
    }

    /// Standardised means in the units of the targets; probabilities as they are.
    fn in_units(&self, means: Array2<f64>) -> Array2<f64> {
        let (scale, offset) = self.target;
        if self.classes.is_empty() { means.mapv_into(|mean| (mean - offset) / scale) } else { means }
    }
}

fn drawn<F: Real>(file: &RunFile, spec: &RunSpec, facts: DataFacts, build: BuildModel<F>) -> Result<Drawn<F>, RunError> {
    let model = build(&spec.model, Some(facts))?.model;
    let samples = file.samples(POSTERIOR)?;
    let theta: Array2<F> = predictive_draws(&samples, &file.lengths(POSTERIOR)?);
    if theta.ncols() != model.dim() || theta.nrows() == 0 {
        let what = format!("{} draws of {} numbers do not fit a model of {}", theta.nrows(), theta.ncols(), model.dim());
        return Err(ResultsError::Shape(what).into());
    }
    Ok(Drawn { model, theta, scratch: Scratch::new() })
}
