//! What a run's posterior predicts for the test rows, and how the features were scaled: arrays that its result file ends with.

use super::error::JobError;
use crate::cluster::BoxError;
use crate::config::RunOf;
use crate::data::{DataError, Dataset, FeatureScaling, Recipe, Shard, Split, Task};
use crate::methods::Table;
use crate::methods::common::predict::predict;
use crate::metrics::convergence::r_hat;
use crate::models::{Model, Output, Scratch};
use crate::number::Real;
use crate::results::{Grid, POSTERIOR, ResultFile, ResultsError};
use ndarray::{Array2, Array3, Axis, Ix2};
use std::sync::Arc;

/// The group of predictions of the test rows.
pub const TEST_PREDICTIONS: &str = "test_predictions";
/// The group with what turns raw rows into those that the model has seen.
pub const PREPROCESSING: &str = "preprocessing";
/// The variable with the shape of images.
const SHAPE: &str = "shape";
/// The group with the convergence of predictions for some test rows.
pub const TEST_CONVERGENCE: &str = "test_convergence";
/// Its array with the R-hat of each of these rows.
pub const R_HAT: &str = "r_hat";
/// The most test rows from which that convergence is computed.
const MAX_CONVERGENCE_ROWS: usize = 200;
/// The most draws of each chain.
const MAX_CONVERGENCE_DRAWS: usize = 100;
/// Chains with fewer draws are too short for an R-hat.
const MIN_CONVERGENCE_DRAWS: usize = 4;
/// Whether the features are sparse: 1 or 0.
const SPARSE: &str = "features_sparse";
/// The name of the task.
pub(super) const TASK: &str = "task";
/// What was made of the columns of a table, as JSON.
const RECIPE: &str = "recipe";
/// What rows are multiplied by once they are scaled (features × features), if anything.
const ROTATION: &str = "rotation";
/// Predictions are averaged over at most this many draws, evenly spread: more would hardly change them.
const MAX_DRAWS: usize = 1000;
/// Test rows are read in blocks of this many.
const BLOCK_ROWS: usize = 4096;

/// The draws of the posterior that predictions are averaged over, as rows; none where it has none. Draws that have diverged stay, and
/// show in what is predicted.
///
/// # Errors
/// When they cannot be read.
pub fn predictive_draws<F: Real>(file: &ResultFile) -> Result<Option<Array2<F>>, ResultsError> {
    evenly_spaced_draws(file, MAX_DRAWS)
}

/// At most this many draws of the posterior, evenly spaced over all chains, as rows; none if there is no such group.
///
/// # Errors
/// When they cannot be read.
pub fn evenly_spaced_draws<F: Real>(file: &ResultFile, max: usize) -> Result<Option<Array2<F>>, ResultsError> {
    if !file.has_posterior()? {
        return Ok(None);
    }
    file.draws(POSTERIOR, &evenly_spaced(&file.lengths(POSTERIOR)?, max)).map(Some)
}

/// The chains and numbers of at most this many draws, evenly spaced over chains of these lengths. What a shorter chain lacks is no draw.
pub(super) fn evenly_spaced(lengths: &[usize], max: usize) -> Vec<(usize, usize)> {
    let total: usize = lengths.iter().sum();
    let count = total.min(max);
    let place = |row: usize| {
        let mut left = row * total / count;
        for (chain, &length) in lengths.iter().enumerate() {
            if left < length {
                return (chain, left);
            }
            left -= length;
        }
        (0, 0)
    };
    (0..count).map(place).collect()
}

/// Scales, offsets, rotation and names of features, targets and classes; of sparse features the scales, where they have any.
///
/// # Errors
/// When the dataset cannot be read.
pub fn preprocessing(dataset: &Dataset) -> Result<Grid, DataError> {
    let mut grid = Grid { group: PREPROCESSING.into(), dimensions: Vec::new(), variables: Vec::new(), names: Vec::new() };
    match dataset.scaling() {
        FeatureScaling::Dense { scale, offset, rotation } => {
            grid.dimensions.push(("feature".into(), scale.len()));
            grid.variables.push(("scale".into(), vec![0], scale.clone()));
            grid.variables.push(("offset".into(), vec![0], offset.clone()));
            if let Some(rotation) = rotation {
                grid.dimensions.push(("axis".into(), rotation.ncols()));
                grid.variables.push((ROTATION.into(), vec![0, 1], rotation.iter().copied().collect()));
            }
            grid.names.extend(dataset.feature_names()?.map(|names| ("features".into(), 0, names)));
        }
        FeatureScaling::Sparse { column, .. } if column.is_empty() => {}
        FeatureScaling::Sparse { column, scale } => {
            grid.dimensions.push(("scaled".into(), scale.len()));
            grid.variables.push(("scaled_column".into(), vec![0], column.iter().copied().map(f64::from).collect()));
            grid.variables.push(("scale".into(), vec![0], scale.clone()));
        }
    }
    let axis = grid.dimensions.len();
    grid.dimensions.push(("one".into(), 1));
    grid.variables.push((SPARSE.into(), vec![axis], vec![f64::from(u8::from(dataset.is_sparse()))]));
    grid.variables.push(("features_count".into(), vec![axis], vec![dataset.features() as f64]));
    grid.names.push((TASK.into(), axis, vec![dataset.task().name().to_owned()]));
    if let Some(recipe) = dataset.recipe().and_then(|recipe| serde_json::to_string(recipe).ok()) {
        grid.names.push((RECIPE.into(), axis, vec![recipe]));
    }
    match dataset.task() {
        Task::Classification => {
            let axis = grid.dimensions.len();
            grid.dimensions.push(("class".into(), dataset.classes().len()));
            grid.names.push(("classes".into(), axis, dataset.classes().to_vec()));
        }
        Task::Regression | Task::Counts => {
            let (scale, offset) = dataset.target_scaling();
            grid.variables.push(("target_scale".into(), vec![axis], vec![scale]));
            grid.variables.push(("target_offset".into(), vec![axis], vec![offset]));
        }
    }
    if dataset.shape().len() > 1 {
        let axis = grid.dimensions.len();
        grid.dimensions.push(("side".into(), dataset.shape().len()));
        grid.variables.push((SHAPE.into(), vec![axis], dataset.shape().iter().map(|&side| side as f64).collect()));
    }
    Ok(grid)
}

/// A whole number that an array of a file holds.
fn whole<T: num_traits::NumCast>(number: f64) -> Option<T> {
    if number.fract() == 0.0 { num_traits::cast(number) } else { None }
}

/// What was made of the columns of a table, by what [`preprocessing`] has kept.
///
/// # Errors
/// If it is damaged.
pub fn kept_recipe(grid: &Grid) -> Result<Option<Recipe>, serde_json::Error> {
    match grid.list(RECIPE) {
        [recipe] => serde_json::from_str(recipe).map(Some),
        _ => Ok(None),
    }
}

/// The shape of the rows of images, by what [`preprocessing`] has kept; `None` for other rows.
pub(super) fn kept_shape(grid: &Grid) -> Option<Vec<usize>> {
    grid.array(SHAPE)?.iter().copied().map(whole).collect()
}

/// How features were scaled, and how many there were, by what [`preprocessing`] has kept.
pub fn kept_scaling(grid: &Grid) -> Option<(usize, FeatureScaling)> {
    let numbers = |name: &str| grid.array(name).map(|array| array.iter().copied().collect::<Vec<f64>>());
    let features = whole(numbers("features_count")?.first().copied()?)?;
    let is_sparse = numbers(SPARSE)?.first().copied()? == 1.0;
    let scaling = match (is_sparse, numbers("scale"), numbers("offset"), numbers("scaled_column")) {
        (false, Some(scale), Some(offset), _) => {
            let rotation = grid.array(ROTATION).map(|array| array.into_dimensionality::<Ix2>()).transpose().ok()?;
            FeatureScaling::Dense { scale, offset, rotation: rotation.map(Arc::new) }
        }
        (true, scale, _, column) => FeatureScaling::Sparse {
            column: column.unwrap_or_default().into_iter().map(whole).collect::<Option<_>>()?,
            scale: scale.unwrap_or_default(),
        },
        _ => return None,
    };
    let fits = match &scaling {
        FeatureScaling::Dense { scale, offset, rotation } => {
            let square = rotation.as_ref().is_none_or(|rotation| rotation.dim() == (features, features));
            scale.len() == features && offset.len() == features && square
        }
        FeatureScaling::Sparse { column, scale } => scale.len() == column.len() && column.is_sorted(),
    };
    fits.then_some((features, scaling))
}

/// What the draws in a file predict for the test rows: averages over draws, and for chains of models with symmetries whether they agree.
///
/// # Errors
/// When draws or rows cannot be read.
pub fn predictive_arrays<F: Real>(
    model: &dyn Model<F>,
    is_chains: bool,
    file: &ResultFile,
    dataset: &Dataset,
    run: &RunOf<Table>,
) -> Result<Vec<Grid>, JobError> {
    if !has_predictive_arrays(model, dataset, run) {
        return Ok(Vec::new());
    }
    let Some(theta) = predictive_draws(file)? else { return Ok(Vec::new()) };
    let mut grids = vec![test_predictions(model, &theta, dataset)?];
    if is_chains && model.has_symmetries() {
        grids.extend(test_convergence(model, file, dataset)?);
    }
    Ok(grids)
}

/// Whether [`predictive_arrays`] makes any arrays: the run keeps predictions, the model makes them, and there are test rows.
pub fn has_predictive_arrays<F: Real>(model: &dyn Model<F>, dataset: &Dataset, run: &RunOf<Table>) -> bool {
    run.evaluate.predictions && dataset.rows(Split::Test) > 0 && model.output() != Output::Nothing
}

/// What these draws (N × d) predict for all test rows; numbers are in the dataset's units.
///
/// # Errors
/// When the rows cannot be read, or the model predicts nothing.
fn test_predictions<F: Real>(model: &dyn Model<F>, theta: &Array2<F>, dataset: &Dataset) -> Result<Grid, JobError> {
    let rows = dataset.rows(Split::Test);
    let is_class = dataset.task() == Task::Classification;
    let mean_target = match dataset.target_scaling() {
        _ if is_class => 0.0,
        (scale, offset) => -offset / scale,
    };
    let (mut mean, mut density, mut targets) = (Vec::new(), Vec::new(), Vec::new());
    let mut scratch = Scratch::new();
    for first in (0..rows).step_by(BLOCK_ROWS) {
        let block: Vec<usize> = (first..(first + BLOCK_ROWS).min(rows)).collect();
        let shard: Shard<F> = dataset.read_rows(Split::Test, &block)?;
        predict(model, theta.view(), &shard, &mut scratch, |block| {
            mean.extend(block.mean.iter().map(|mean| mean + mean_target));
            density.extend(block.density);
            targets.extend(block.targets.iter().map(|target| target + mean_target));
            Ok::<_, BoxError>(())
        })
        .map_err(|cause| JobError::Prediction(cause.to_string()))?;
    }
    let mut grid = Grid {
        group: TEST_PREDICTIONS.into(),
        dimensions: vec![("row".into(), rows)],
        variables: vec![("target".into(), vec![0], targets), ("density".into(), vec![0], density)],
        names: Vec::new(),
    };
    if is_class {
        grid.dimensions.push(("class".into(), dataset.classes().len()));
        grid.variables.push(("probability".into(), vec![0, 1], mean));
        grid.names.push(("classes".into(), 1, dataset.classes().to_vec()));
    } else {
        grid.variables.push(("mean".into(), vec![0], mean));
    }
    Ok(grid)
}

/// Whether chains predict the same for the test rows: the R-hat of what each draw predicts, the probability of the target or the mean. None
/// if there are too few chains or draws.
///
/// # Errors
/// When draws or rows cannot be read, or the model predicts nothing.
fn test_convergence<F: Real>(model: &dyn Model<F>, file: &ResultFile, dataset: &Dataset) -> Result<Option<Grid>, JobError> {
    let lengths = file.lengths(POSTERIOR)?;
    let shortest = lengths.iter().copied().min().unwrap_or(0);
    let draws = shortest.min(MAX_CONVERGENCE_DRAWS);
    if lengths.len() < 2 || draws < MIN_CONVERGENCE_DRAWS {
        return Ok(None);
    }
    let places = (0..lengths.len()).flat_map(|chain| (0..draws).map(move |draw| (chain, draw * shortest / draws)));
    let theta: Array2<F> = file.draws(POSTERIOR, &places.collect::<Vec<_>>())?;
    let all = dataset.rows(Split::Test);
    let count = all.min(MAX_CONVERGENCE_ROWS);
    let rows: Vec<usize> = (0..count).map(|row| row * all / count).collect();
    let shard: Shard<F> = dataset.read_rows(Split::Test, &rows)?;
    let is_class = dataset.task() == Task::Classification;
    // Chains × draws × rows.
    let (mut predicted, mut scratch) = (Vec::with_capacity(theta.nrows() * count), Scratch::new());
    for draw in theta.axis_chunks_iter(Axis(0), 1) {
        predict(model, draw, &shard, &mut scratch, |block| {
            if is_class {
                predicted.extend(block.density)
            } else {
                predicted.extend(block.mean)
            }
            Ok::<_, BoxError>(())
        })
        .map_err(|cause| JobError::Prediction(cause.to_string()))?;
    }
    let predicted = Array3::from_shape_vec((lengths.len(), draws, count), predicted)
        .map_err(|error| JobError::Prediction(error.to_string()))?;
    let r_hats = predicted.axis_iter(Axis(2)).map(r_hat).collect();
    let numbers = rows.iter().map(|&row| row as f64).collect();
    Ok(Some(Grid {
        group: TEST_CONVERGENCE.into(),
        dimensions: vec![("row".into(), count)],
        variables: vec![("test_row".into(), vec![0], numbers), (R_HAT.into(), vec![0], r_hats)],
        names: Vec::new(),
    }))
}
