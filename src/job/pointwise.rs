//! What every draw says of every training row: log-likelihoods, from which cross-validation is estimated, and targets drawn from the model.

use super::data::schema;
use super::error::JobError;
use crate::data::{Dataset, Shard, Split, Task};
use crate::models::{Model, Scratch};
use crate::number::Real;
use crate::random::{Purpose, Seed, Who};
use crate::results::{Grid, POSTERIOR, ResultFile};
use ndarray::Array2;

/// The group of log-likelihoods, as ArviZ names it: chains × draws × rows.
pub const LOG_LIKELIHOOD: &str = "log_likelihood";
/// The group of the targets of the same rows.
pub const OBSERVED_DATA: &str = "observed_data";
/// The group of targets drawn from the model.
const POSTERIOR_PREDICTIVE: &str = "posterior_predictive";
/// The variable in each of them.
pub const TARGET: &str = "y";
/// Rows are read in blocks of this many.
const BLOCK_ROWS: usize = 4096;
/// The most values of an array: a gigabyte. Of longer runs, draws are left out evenly.
const MAX_VALUES: usize = 1 << 27;
/// Cross-validation needs this many draws of each chain.
const MIN_DRAWS: usize = 25;

/// The log-likelihood of each training row at each draw, the targets, and targets drawn from the model if it can draw them. Empty if there
/// are too many rows, or the posterior is tempered, which is said.
///
/// # Errors
/// When draws or rows cannot be read.
pub fn pointwise_arrays<F: Real>(
    model: &dyn Model<F>,
    file: &ResultFile,
    dataset: &Dataset,
    temperature: f64,
    seed: Seed,
) -> Result<Vec<Grid>, JobError> {
    if temperature != 1.0 {
        eprintln!(
            "mpibayes: note: evaluate.pointwise keeps nothing: cross-validation is for Bayes' rule, and temperature = {temperature}"
        );
        return Ok(Vec::new());
    }
    let lengths = file.lengths(POSTERIOR)?;
    let (chains, rows) = (lengths.len(), dataset.rows(Split::Train));
    let common = lengths.iter().copied().min().unwrap_or(0);
    let draws = common.min(MAX_VALUES / (chains * rows).max(1));
    if draws < MIN_DRAWS.min(common) || draws == 0 {
        let fit = MAX_VALUES / (chains * MIN_DRAWS).max(1);
        eprintln!(
            "mpibayes: note: evaluate.pointwise keeps nothing: there are {rows} training rows, and at most {fit} fit into the result file"
        );
        return Ok(Vec::new());
    }
    let places = (0..chains).flat_map(|chain| (0..draws).map(move |draw| (chain, draw * common / draws)));
    let theta: Array2<F> = file.draws(POSTERIOR, &places.collect::<Vec<_>>())?;
    // Standardized targets have other densities than those in the units of the data.
    let (scale, offset) = match dataset.task() {
        Task::Regression => dataset.target_scaling(),
        Task::Classification | Task::Counts => (1.0, 0.0),
    };
    let weight = schema(dataset)?.weight_column();
    let mut log_likelihood = vec![0.0; chains * draws * rows];
    let mut predictive = log_likelihood.clone();
    let (mut observed, mut can_draw) = (Vec::with_capacity(rows), true);
    let mut scratch = Scratch::new();
    let (mut losses, mut drawn) = (vec![0.0; theta.nrows()], vec![0.0; theta.nrows()]);
    for first in (0..rows).step_by(BLOCK_ROWS) {
        let block: Vec<usize> = (first..(first + BLOCK_ROWS).min(rows)).collect();
        let shard: Shard<F> = dataset.read_rows(Split::Train, &block)?;
        shard.blocks(&mut scratch, |own, batch, scratch| {
            for (place, row) in own.enumerate() {
                let row = first + row;
                let one = batch.slice(place..place + 1);
                model.loss(theta.view(), one, &mut losses, scratch);
                let mut stream = seed.stream(Who::Run, row as u64, Purpose::Predictive);
                can_draw &= model.draw_targets(theta.view(), one, &mut stream, &mut drawn, scratch);
                observed.push((one.y[0].f64() - offset) / scale);
                let weight = weight.map_or(1.0, |column| one.x[[0, column]].f64());
                for (draw, (loss, drawn)) in losses.iter().zip(&drawn).enumerate() {
                    log_likelihood[draw * rows + row] = weight * scale.ln() - loss;
                    predictive[draw * rows + row] = (drawn - offset) / scale;
                }
            }
        });
    }
    let by_draw = |group: &str, values| Grid {
        group: group.into(),
        dimensions: vec![("chain".into(), chains), ("draw".into(), draws), ("row".into(), rows)],
        variables: vec![(TARGET.into(), vec![0, 1, 2], values)],
        names: Vec::new(),
    };
    let mut grids = vec![
        by_draw(LOG_LIKELIHOOD, log_likelihood),
        Grid {
            group: OBSERVED_DATA.into(),
            dimensions: vec![("row".into(), rows)],
            variables: vec![(TARGET.into(), vec![0], observed)],
            names: Vec::new(),
        },
    ];
    if can_draw {
        grids.push(by_draw(POSTERIOR_PREDICTIVE, predictive));
    }
    Ok(grids)
}
