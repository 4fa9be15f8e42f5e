//! Predictions of a posterior for rows of data, in the dataset's own units: what evaluation judges and `predict` writes down.

use crate::cluster::BoxError;
use crate::data::Shard;
use crate::layout::flat_mut;
use crate::models::{Model, Output, Scratch};
use crate::number::Real;
use crate::random::{Purpose, Seed, Who};
use ndarray::{Array2, Array3, ArrayView2, Axis};
use std::ops::Range;

/// Predictions for some rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Predicted {
    /// The rows, within the shard.
    pub rows: Range<usize>,
    /// Class probabilities (rows × classes), or predicted values (rows × 1) in the dataset's units, relative to the mean of its training
    /// targets; averaged over the particles or draws.
    pub mean: Array2<f64>,
    /// The probability or density of each row's target, averaged likewise.
    pub density: Vec<f64>,
    /// The targets: class indices, or values as in `mean`.
    pub targets: Vec<f64>,
}

/// A target of each row of a shard for each particle or draw (rows × N), in the units of the model, drawn from the model; none if it cannot
/// draw. The rows have the numbers from `first` on, which address the random numbers.
pub fn draw_targets<F: Real>(
    model: &dyn Model<F>,
    theta: ArrayView2<F>,
    shard: &Shard<F>,
    (seed, first): (Seed, u64),
    scratch: &mut Scratch<F>,
) -> Option<Array2<f64>> {
    let mut drawn = Array2::zeros((shard.rows(), theta.nrows()));
    let mut can_draw = true;
    shard.blocks(scratch, |rows, batch, scratch| {
        for (place, row) in rows.enumerate() {
            let one = batch.slice(place..place + 1);
            let mut stream = seed.stream(Who::Run, first + row as u64, Purpose::Predictive);
            let own = flat_mut(drawn.row_mut(row));
            can_draw = can_draw && model.draw_targets(theta, one, &mut stream, own, scratch);
        }
    });
    can_draw.then_some(drawn)
}

/// Overwrites `means` (N × rows × outputs), where `new` lists rows of groups that no training row has: with the mean of such a row given an
/// effect of its group, drawn for each particle or draw. Rows have the numbers from `first` on.
pub fn draw_means<F: Real>(
    model: &dyn Model<F>,
    theta: ArrayView2<F>,
    shard: &Shard<F>,
    new: &[usize],
    (seed, first): (Seed, u64),
    means: &mut Array3<f64>,
    scratch: &mut Scratch<F>,
) {
    let unit = shard.target_unit();
    let mut own = Array2::zeros((theta.nrows(), means.len_of(Axis(2))));
    shard.blocks(scratch, |rows, batch, scratch| {
        let before = new.partition_point(|&row| row < rows.start);
        for &row in new[before..].iter().take_while(|&&row| row < rows.end) {
            let one = batch.slice(row - rows.start..row - rows.start + 1);
            let mut stream = seed.stream(Who::Run, first + row as u64, Purpose::Predictive);
            model.draw_means(theta, one, &mut stream, own.view_mut(), scratch);
            means.index_axis_mut(Axis(1), row).assign(&(&own * unit));
        }
    });
}

/// Predicts all rows of a shard from particles or draws (N × d), block by block.
///
/// # Errors
/// If the model makes no predictions, or `each` fails.
pub fn predict<F: Real, E: From<BoxError>>(
    model: &dyn Model<F>,
    theta: ArrayView2<F>,
    shard: &Shard<F>,
    scratch: &mut Scratch<F>,
    mut each: impl FnMut(Predicted) -> Result<(), E>,
) -> Result<(), E> {
    let outputs = match model.output() {
        Output::Classes(classes) => classes,
        Output::Number | Output::Count => 1,
        Output::Nothing => return Err(BoxError::from("this model makes no predictions").into()),
    };
    let unit = shard.target_unit();
    let mut done = Ok(());
    shard.blocks(scratch, |rows, batch, scratch| {
        if done.is_err() {
            return;
        }
        let mut mean = Array2::zeros((batch.y.len(), outputs));
        let mut density = vec![0.0; batch.y.len()];
        model.predict(theta, batch, mean.view_mut(), &mut density, scratch);
        mean.mapv_inplace(|mean| mean * unit);
        density.iter_mut().for_each(|density| *density /= unit);
        let targets = batch.y.iter().map(|y| y.f64() * unit).collect();
        done = each(Predicted { rows, mean, density, targets });
    });
    done
}
