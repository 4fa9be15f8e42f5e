//! Log-likelihoods of rows at draws, and targets drawn from the model, computed in blocks by all ranks.

use super::data::schema;
use super::error::JobError;
use super::ranks::Ranks;
use crate::cluster::Progress;
use crate::config::RunOf;
use crate::data::{Dataset, Shard, Split, Task};
use crate::log;
use crate::methods::Table;
use crate::models::{Batch, Model, Scratch};
use crate::number::Real;
use crate::partial::PartialFile;
use crate::random::{Purpose, Seed, Who};
use crate::results::{Grid, GridFile, POSTERIOR, ResultFile};
use ndarray::{Array2, ArrayView2, Axis, CowArray};
use rayon::prelude::*;
use std::ops::Range;
use std::path::Path;
use std::time::Instant;

/// The group of log-likelihoods, as ArviZ names it: chains × draws × rows.
pub const LOG_LIKELIHOOD: &str = "log_likelihood";
/// The group of the targets of the same rows.
pub const OBSERVED_DATA: &str = "observed_data";
/// The group of targets drawn from the model.
const POSTERIOR_PREDICTIVE: &str = "posterior_predictive";
/// The array in each of these groups: ArviZ matches them by this name.
pub const TARGET: &str = "y";
/// The dimension of test rows in these groups; that of training rows is called `row`.
pub const TEST_ROW: &str = "test_row";
/// The most values of an array: a gigabyte. Longer runs are thinned evenly.
const MAX_VALUES: usize = 1 << 27;
/// Arrays with more values than this are announced.
const MANY_VALUES: usize = 1 << 24;
/// Thinning stops at this many draws of each chain: with more rows, nothing is kept.
const MIN_DRAWS: usize = 25;
/// The most values of draws that every rank has in memory.
const BLOCK_PARAMETERS: usize = 1 << 23;
/// The most values of an array that rank 0 has in memory.
const BLOCK_VALUES: usize = 1 << 22;

/// What became of the computation.
pub enum PointwiseOutcome {
    /// It was stopped.
    Stopped,
    /// There is nothing to keep, or this is not rank 0.
    Nothing,
    /// The arrays.
    Arrays(Pointwise),
}

/// The arrays, for the result file.
pub struct Pointwise {
    /// The targets of the rows.
    pub observed: Grid,
    /// Groups of arrays by draw and row, with the files in which they lie.
    pub by_draw: Vec<(&'static str, PartialFile)>,
}

/// The log-likelihood of each row at each draw, the targets, and targets drawn from the model if it can draw them. Every rank calls this;
/// rank 0 passes the result file and gets the arrays, or `Nothing` if none can be kept; the reason was printed, here or before the run.
/// `goes_on` gets the progress after each block, and the seconds of the longest block so far; if it says no on rank 0, the computation ends on
/// all ranks.
///
/// # Errors
/// When draws or rows cannot be read, or the arrays cannot be written to `folder`.
pub fn pointwise_arrays<F: Real>(
    model: &dyn Model<F>,
    dataset: &Dataset,
    run: &RunOf<Table>,
    (file, folder): (Option<&ResultFile>, &Path),
    ranks: &Ranks,
    mut goes_on: impl FnMut(Progress, f64) -> bool,
) -> Result<PointwiseOutcome, JobError> {
    let split = run.evaluate.pointwise_rows;
    let rows = dataset.rows(split);
    let kept = ranks.agree(file.map_or(Ok(None), |file| kept_draws(file, rows, split, run.settings.temperature)))?;
    let sent = kept.as_ref().map_or([0; 2], |kept| [kept.chains as u64, kept.draws as u64]);
    let [chains, draws] = match *bytemuck::pod_collect_to_vec::<u8, u64>(&ranks.broadcast(bytemuck::cast_slice(&sent))) {
        [chains, draws] if draws > 0 => [chains as usize, draws as usize],
        _ => return Ok(PointwiseOutcome::Nothing),
    };
    let computation = Computation::new(model, dataset, split, Seed(run.settings.seed))?;
    let mut writer = file.map(|_| Writer::new(folder, split, [chains, draws, rows]));
    let blocks = draw_blocks(chains, draws, model.dim());
    // What rank 0 could not write ends the job on all ranks, before the next block.
    let mut written = Ok(());
    let mut longest = 0.0_f64;
    for (number, (chain, block)) in (0_u64..).zip(&blocks) {
        let read = || -> Result<Vec<u8>, JobError> {
            let (Some(file), Some(kept)) = (file, &kept) else { return Ok(Vec::new()) };
            let places: Vec<(usize, usize)> = block.clone().map(|draw| (*chain, kept.place(draw))).collect();
            let theta: Array2<F> = file.draws(POSTERIOR, &places)?;
            Ok(bytemuck::cast_slice(&theta.into_raw_vec_and_offset().0).to_vec())
        };
        let theta = bytemuck::pod_collect_to_vec::<u8, F>(&ranks.broadcast(&ranks.agree(read())?));
        let theta = Array2::from_shape_vec((block.len(), model.dim()), theta)
            .map_err(|error| JobError::Prediction(format!("the draws of the posterior: {error}")))?;
        let sharing = RowSharing::new(rows, block.len(), ranks.count() as usize);
        for first in (0..rows).step_by(sharing.rows_at_once()) {
            let began = Instant::now();
            let own = sharing.rows_of(first, rows, ranks.rank() as usize);
            let block_of_rows = ranks.agree(written.and_then(|()| computation.evaluate(theta.view(), own, number)))?;
            let collected = [&block_of_rows.log_likelihood, &block_of_rows.predictive, &block_of_rows.targets].map(|values| {
                let pieces = ranks.collect(bytemuck::cast_slice(values)).concat();
                bytemuck::pod_collect_to_vec::<u8, f64>(&pieces)
            });
            written = writer.as_mut().map_or(Ok(()), |writer| writer.write([*chain, block.start, first], block.len(), collected));
            let done = number * rows as u64 + (first + sharing.rows_at_once()).min(rows) as u64;
            let progress = Progress { done, total: (blocks.len() * rows) as u64 };
            longest = longest.max(began.elapsed().as_secs_f64());
            if progress.left() > 0 && ranks.broadcast(&[u8::from(goes_on(progress, longest))]) == [0] {
                return ranks.agree(written).map(|()| PointwiseOutcome::Stopped);
            }
        }
    }
    let finished = written.and_then(|()| writer.map(Writer::finish).transpose());
    Ok(ranks.agree(finished)?.map_or(PointwiseOutcome::Nothing, PointwiseOutcome::Arrays))
}

/// The draws of each chain for which rows are evaluated.
struct Kept {
    chains: usize,
    /// How many of each chain.
    draws: usize,
    /// How many the shortest chain has.
    shortest: usize,
}

impl Kept {
    /// The place in its chain of a draw that is kept.
    fn place(&self, draw: usize) -> usize {
        draw * self.shortest / self.draws
    }
}

/// How many values of log-likelihoods are kept at most, of this many rows and draws.
pub(super) fn kept_values(rows: u64, draws: u64) -> u64 {
    rows.saturating_mul(draws).min(MAX_VALUES as u64)
}

/// Why nothing will be kept with this many rows at this temperature, as a remark to print before the run; none if something will.
pub(super) fn note_if_nothing_is_kept(rows: usize, temperature: f64) -> Option<String> {
    let why = match temperature {
        1.0 if rows > 0 => return None,
        1.0 => "there are no test rows".to_owned(),
        _ => format!("log-likelihoods are kept only at temperature = 1, and this run has {temperature}"),
    };
    Some(kept_nothing(&why))
}

fn kept_nothing(why: &str) -> String {
    format!("evaluate.pointwise keeps nothing: {why}")
}

/// Which draws are kept, or none, after a remark that says why, now or before the run.
fn kept_draws(file: &ResultFile, rows: usize, split: Split, temperature: f64) -> Result<Option<Kept>, JobError> {
    let nothing = |why: String| {
        log::note(&kept_nothing(&why));
        Ok(None)
    };
    if note_if_nothing_is_kept(rows, temperature).is_some() {
        return Ok(None);
    }
    let lengths = file.lengths(POSTERIOR)?;
    let chains = lengths.len();
    let shortest = lengths.iter().copied().min().unwrap_or(0);
    let draws = shortest.min(MAX_VALUES / (chains * rows).max(1));
    if shortest == 0 {
        return nothing("a chain has no draws".into());
    }
    let needed = MIN_DRAWS.min(shortest);
    if draws < needed {
        let fit = MAX_VALUES / (chains * needed);
        let name = if split == Split::Train { "training" } else { "test" };
        return nothing(format!("there are {rows} {name} rows, and at most {fit} fit into the result file"));
    }
    let values = chains * draws * rows;
    if values > MANY_VALUES || draws < shortest {
        let size = 16e-9 * values as f64;
        log::note(&format!(
            "evaluate.pointwise keeps {draws} of {shortest} draws of each chain, and makes the result file up to {size:.1} GB larger"
        ));
    }
    Ok(Some(Kept { chains, draws, shortest }))
}

/// Blocks of draws, each within a chain, that fit into the memory of a rank.
fn draw_blocks(chains: usize, draws: usize, parameters: usize) -> Vec<(usize, Range<usize>)> {
    let size = (BLOCK_PARAMETERS / parameters.max(1)).max(1);
    let of_chain = |chain| (0..draws).step_by(size).map(move |first| (chain, first..(first + size).min(draws)));
    (0..chains).flat_map(of_chain).collect()
}

/// How the ranks share consecutive rows: each rank that takes part computes equally many; the last may have fewer.
struct RowSharing {
    ranks: usize,
    rows_of_rank: usize,
}

impl RowSharing {
    fn new(rows: usize, draws: usize, ranks: usize) -> Self {
        let at_once = (BLOCK_VALUES / draws.max(1)).max(1);
        let ranks = ranks.min(at_once);
        Self { ranks, rows_of_rank: (at_once / ranks).min(rows.div_ceil(ranks)).max(1) }
    }

    fn rows_at_once(&self) -> usize {
        self.ranks * self.rows_of_rank
    }

    /// The rows of a rank among those from `first` to `end`; none for ranks that do not take part.
    fn rows_of(&self, first: usize, end: usize, rank: usize) -> Range<usize> {
        let place = |rank: usize| (first + rank.min(self.ranks) * self.rows_of_rank).min(end);
        place(rank)..place(rank + 1)
    }
}

/// Evaluates rows at draws.
struct Computation<'a, F> {
    model: &'a dyn Model<F>,
    dataset: &'a Dataset,
    split: Split,
    seed: Seed,
    /// The model's target is y · `scale` + `offset`, with y in the units of the data.
    scale: f64,
    offset: f64,
    weight_column: Option<usize>,
}

/// What was computed for some rows at some draws.
#[derive(Default)]
struct RowsAtDraws {
    /// Rows × draws, one row after another.
    log_likelihood: Vec<f64>,
    /// Rows × draws; empty if the model cannot draw targets.
    predictive: Vec<f64>,
    /// One for each row.
    targets: Vec<f64>,
}

impl<'a, F: Real> Computation<'a, F> {
    fn new(model: &'a dyn Model<F>, dataset: &'a Dataset, split: Split, seed: Seed) -> Result<Self, JobError> {
        let (scale, offset) = match dataset.task() {
            Task::Regression => dataset.target_scaling(),
            Task::Classification | Task::Counts => (1.0, 0.0),
        };
        Ok(Self { model, dataset, split, seed, scale, offset, weight_column: schema(dataset)?.weight_column() })
    }

    /// Evaluates rows on all threads; `block` numbers the block of draws, for its random numbers.
    fn evaluate(&self, theta: ArrayView2<F>, rows: Range<usize>, block: u64) -> Result<RowsAtDraws, JobError> {
        let rows: Vec<usize> = rows.collect();
        let size = rows.len().div_ceil(rayon::current_num_threads()).max(1);
        let parts: Vec<RowsAtDraws> =
            rows.par_chunks(size).map(|rows| self.evaluate_on_thread(theta, rows, block)).collect::<Result<_, _>>()?;
        let mut all = RowsAtDraws::default();
        for part in parts {
            all.log_likelihood.extend(part.log_likelihood);
            all.predictive.extend(part.predictive);
            all.targets.extend(part.targets);
        }
        Ok(all)
    }

    fn evaluate_on_thread(&self, theta: ArrayView2<F>, rows: &[usize], block: u64) -> Result<RowsAtDraws, JobError> {
        let Self { model, dataset, split, seed, scale, offset, weight_column } = *self;
        let mut found = RowsAtDraws::default();
        let mut scratch = Scratch::new();
        let (mut losses, mut drawn) = (vec![0.0; theta.nrows()], vec![0.0; theta.nrows()]);
        let shard: Shard<F> = dataset.read_rows(split, rows)?;
        shard.blocks(&mut scratch, |own, batch, scratch| {
            let Batch { x, y } = batch;
            let mut x = CowArray::from(x);
            // Test rows are no part of the posterior, so their weights are 1.
            if let Some(column) = weight_column.filter(|_| split == Split::Test) {
                x.column_mut(column).fill(F::one());
            }
            let batch = Batch { x: x.view(), y: y.view() };
            for (place, row) in own.enumerate() {
                let one = batch.slice(place..place + 1);
                model.loss(theta, one, &mut losses, scratch);
                // The loss is −weight · log p of the model's target. The density of y is `scale` times as large.
                let weight = weight_column.map_or(1.0, |column| one.x[[0, column]].f64());
                found.log_likelihood.extend(losses.iter().map(|loss| weight * scale.ln() - loss));
                found.targets.push((one.y[0].f64() - offset) / scale);
                let step = block * dataset.rows(split) as u64 + rows[row] as u64;
                let mut stream = seed.stream(Who::Run, step, Purpose::Predictive);
                if model.draw_targets(theta, one, &mut stream, &mut drawn, scratch) {
                    found.predictive.extend(drawn.iter().map(|drawn| (drawn - offset) / scale));
                }
            }
        });
        Ok(found)
    }
}

/// Writes what the ranks have computed.
struct Writer<'a> {
    folder: &'a Path,
    split: Split,
    /// Chains, draws and rows.
    shape: [usize; 3],
    files: Vec<(&'static str, PartialFile, GridFile)>,
    targets: Vec<f64>,
}

impl<'a> Writer<'a> {
    fn new(folder: &'a Path, split: Split, shape: [usize; 3]) -> Self {
        Self { folder, split, shape, files: Vec::new(), targets: Vec::new() }
    }

    fn row_dimension(&self) -> (String, usize) {
        let name = if self.split == Split::Train { "row" } else { TEST_ROW };
        (name.to_owned(), self.shape[2])
    }

    fn grid_by_draw(&self, group: &str) -> Grid {
        let [chains, draws, _] = self.shape;
        Grid {
            group: group.into(),
            dimensions: vec![("chain".into(), chains), ("draw".into(), draws), self.row_dimension()],
            variables: Vec::new(),
            names: Vec::new(),
        }
    }

    /// Writes the values of some rows at `draws` draws, from this chain, draw and row on.
    fn write(
        &mut self,
        at: [usize; 3],
        draws: usize,
        [log_likelihood, predictive, targets]: [Vec<f64>; 3],
    ) -> Result<(), JobError> {
        if self.targets.len() < self.shape[2] {
            self.targets.extend(targets);
        }
        for (group, values) in [(LOG_LIKELIHOOD, log_likelihood), (POSTERIOR_PREDICTIVE, predictive)] {
            if values.is_empty() {
                continue;
            }
            let block = Array2::from_shape_vec((values.len() / draws, draws), values)
                .map_err(|error| JobError::Prediction(format!("{group}: {error}")))?;
            let block = block.t().as_standard_layout().into_owned().insert_axis(Axis(0));
            self.file(group)?.write(&at, block.view().into_dyn())?;
        }
        Ok(())
    }

    /// The file of a group, which is created if needed.
    fn file(&mut self, group: &'static str) -> Result<&mut GridFile, JobError> {
        let place = match self.files.iter().position(|file| file.0 == group) {
            Some(place) => place,
            None => {
                let partial = PartialFile::new(&self.folder.join(format!("{group}.h5")));
                let file = GridFile::create(partial.path(), &self.grid_by_draw(group), TARGET, &[0, 1, 2])?;
                self.files.push((group, partial, file));
                self.files.len() - 1
            }
        };
        Ok(&mut self.files[place].2)
    }

    fn finish(mut self) -> Result<Pointwise, JobError> {
        let mut by_draw = Vec::new();
        for (group, partial, file) in std::mem::take(&mut self.files) {
            file.finish(&self.grid_by_draw(group))?;
            by_draw.push((group, partial));
        }
        let observed = Grid {
            group: OBSERVED_DATA.into(),
            dimensions: vec![self.row_dimension()],
            variables: vec![(TARGET.into(), vec![0], self.targets)],
            names: Vec::new(),
        };
        Ok(Pointwise { observed, by_draw })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_draw_and_row_is_in_one_block() {
        for (chains, draws, parameters) in [(1, 1, 1), (3, 1000, 20_000), (2, 7, 1 << 24)] {
            let blocks = draw_blocks(chains, draws, parameters);
            let all: Vec<(usize, usize)> =
                blocks.iter().flat_map(|(chain, block)| block.clone().map(|draw| (*chain, draw))).collect();
            let wanted: Vec<(usize, usize)> = (0..chains).flat_map(|chain| (0..draws).map(move |draw| (chain, draw))).collect();
            assert_eq!(all, wanted);
            assert!(blocks.iter().all(|(_, block)| block.len() == 1 || block.len() * parameters <= BLOCK_PARAMETERS));
        }
        for (rows, draws, ranks) in [(1, 1, 1), (10, 4000, 4), (1000, 1 << 21, 3), (17, 1 << 23, 4), (100_000, 1300, 7)] {
            let sharing = RowSharing::new(rows, draws, ranks);
            let mut found = Vec::new();
            for first in (0..rows).step_by(sharing.rows_at_once()) {
                (0..ranks).for_each(|rank| found.extend(sharing.rows_of(first, rows, rank)));
            }
            assert_eq!(found, (0..rows).collect::<Vec<_>>(), "{rows} rows, {draws} draws, {ranks} ranks");
            assert!(sharing.rows_at_once() == 1 || sharing.rows_at_once() * draws <= BLOCK_VALUES);
        }
    }
}
