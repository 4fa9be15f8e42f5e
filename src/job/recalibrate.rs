//! Recalibrates the draws of a finished run: moves them to the mean and the covariance of the posterior, into a folder of their own.

use super::data::DataFile;
use super::error::JobError;
use super::predictions::{PREPROCESSING, predictive_arrays};
use super::prepare::JobData;
use super::problem::{counted_once, table_problem};
use super::ranks::Ranks;
use super::records::records_of;
use super::scoring::scores_grid;
use super::start::{job_options, open_on_all};
use super::tune::TUNING;
use crate::cluster::JobOptions;
use crate::cluster::record::{DrawBlock, Extents};
use crate::config::{Dtype, Precision, Run, RunOf};
use crate::data::Dataset;
use crate::methods::common::full_scores::FullScores;
use crate::methods::{Problem, Table};
use crate::metrics::bias::MAX_PARAMETERS;
use crate::metrics::recalibration::{Recalibration, recalibrate as move_draws};
use crate::results::{
    Grid, POSTERIOR, ResultFile, RunFolder, RunInfo, RunState, RunWriter, SampleGroup, SampleKind, result_file,
};
use ndarray::{Array2, Axis};
use std::sync::Arc;

/// The group that says how draws were moved.
pub const RECALIBRATION: &str = "recalibration";
/// Its list with the folder of the run.
pub const RECALIBRATED_FROM: &str = "recalibrated_from";

/// Moves the draws of a finished run, and writes them to `folder`. Every rank calls this; rank 0 gives the result file, and gets how the
/// draws were moved.
///
/// # Errors
/// If the draws are better left as they are, or anything cannot be read or written. There is no new folder then.
pub fn recalibrate(
    run: &Run,
    file: Option<&ResultFile>,
    ranks: &Ranks,
    folder: &mut RunFolder,
) -> Result<Option<Recalibration>, JobError> {
    let Run::Table(run) = run else {
        return Err(JobError::Recalibration("topics have no common coordinates".into()));
    };
    let data = open_on_all(run, ranks)?;
    let dataset = data.as_ref().and_then(Table::downcast);
    let problem = ranks.agree(table_problem::<f64>(run, dataset))?.problem;
    let parameters = problem.model.dim();
    ranks.agree(if !run.method.samples() {
        Err(JobError::Recalibration(format!("{} does not sample the posterior", run.method.name())))
    } else if parameters > MAX_PARAMETERS {
        Err(JobError::Recalibration(format!("the model has {parameters} parameters, more than {MAX_PARAMETERS}")))
    } else {
        Ok(())
    })?;
    let options = JobOptions { store: None, ..job_options(run, ranks, folder) };
    let scored = counted_once(&problem, run.method.sharing());
    let before = ranks.agree(file.map(|file| Draws::read(file, parameters)).transpose())?;
    let moved = match &before {
        Some(before) => {
            let moved = move_draws(before.rows.view(), |draws| {
                ranks.broadcast(&[1]);
                scores(&scored, draws, ranks, &options)
            });
            ranks.broadcast(&[0]);
            moved.map(|moved| moved.map_err(|refusal| JobError::Recalibration(refusal.to_string())))
        }
        None => {
            while ranks.broadcast(&[]) == [1] {
                scores(&scored, &Array2::zeros((0, parameters)), ranks, &options)?;
            }
            return ranks.agree(Ok(None));
        }
    };
    let write = || {
        let (moved, Some(before), Some(file)) = (moved??, before, file) else { return Ok(None) };
        let draws = Draws { rows: moved.map.apply(before.rows.view()), ..before };
        write(run, file, &draws, &moved, &problem, (data.as_ref(), dataset), folder)?;
        Ok(Some(moved))
    };
    ranks.agree(write())
}

/// The scores of the posterior at draws (M × d), on rank 0. Every rank calls this.
fn scores(problem: &Problem<f64>, draws: &Array2<f64>, ranks: &Ranks, options: &JobOptions) -> Result<Array2<f64>, JobError> {
    let values = draws.iter().copied().collect();
    let scores = records_of(FullScores { problem: problem.clone(), draws: values }, ranks, options)?;
    match ranks.is_root() {
        true => Array2::from_shape_vec(draws.dim(), scores).map_err(|error| JobError::Recalibration(error.to_string())),
        false => Ok(Array2::zeros(draws.dim())),
    }
}

/// The draws of a posterior: those of all chains as rows.
struct Draws {
    rows: Array2<f64>,
    lengths: Vec<usize>,
    group: SampleGroup,
}

impl Draws {
    fn read(file: &ResultFile, parameters: usize) -> Result<Self, JobError> {
        let samples = file.samples(POSTERIOR)?;
        let (lengths, longest) = (file.lengths(POSTERIOR)?, samples.values.dim().1);
        // What a shorter chain lacks is no draw.
        let places = lengths.iter().enumerate().flat_map(|(chain, &length)| (0..length).map(move |draw| chain * longest + draw));
        let rows = samples.values.matrix().select(Axis(0), &places.collect::<Vec<_>>());
        if rows.ncols() != parameters {
            let what = format!("its draws have {} parameters, and the model has {parameters}", rows.ncols());
            return Err(JobError::Recalibration(what));
        }
        Ok(Self { rows, lengths, group: SampleGroup { name: POSTERIOR.into(), parts: samples.parts, kind: samples.kind } })
    }

    /// The draws of each chain, in the number type of the run.
    fn blocks<F: Precision>(&self) -> Vec<DrawBlock> {
        let (mut rows, dim) = (self.rows.rows().into_iter(), self.rows.ncols() as u64);
        let block = |(chain, &length): (u32, &usize)| {
            let numbers: Vec<F> = rows.by_ref().take(length).flatten().map(|&value| F::of(value)).collect();
            let (group, kind, bytes) = (POSTERIOR.to_owned(), F::NAME.to_owned(), bytemuck::cast_slice(&numbers).to_vec());
            DrawBlock { group, chain, first: 0, dim, kind, bytes }
        };
        (0..).zip(&self.lengths).map(block).collect()
    }
}

/// Writes the folder of recalibrated draws.
fn write(
    run: &RunOf<Table>,
    file: &ResultFile,
    draws: &Draws,
    moved: &Recalibration,
    problem: &Problem<f64>,
    (data, dataset): (Option<&DataFile>, Option<&Arc<Dataset>>),
    folder: &mut RunFolder,
) -> Result<(), JobError> {
    let former = file.info();
    let config = &former.config;
    if folder.claim()?.is_some_and(|kept| kept.holds_results) {
        return Err(JobError::Recalibration(format!("{} holds a run already: choose another --output", folder.path().display())));
    }
    folder.record_run(config, data.map_or("", DataFile::digest))?;
    let info =
        RunInfo { state: former.state, ..RunInfo::new(&former.method, &former.model, former.seed, &former.data_digest, config) };
    let path = result_file(folder.path());
    let mut writer = RunWriter::new(&path, info, vec![draws.group.clone()], Extents::default())?;
    let blocks = match run.settings.dtype {
        Dtype::Float32 => draws.blocks::<f32>(),
        Dtype::Float64 => draws.blocks::<f64>(),
    };
    blocks.into_iter().for_each(|block| writer.push(block));
    for group in [PREPROCESSING, TUNING] {
        file.grid(group)?.into_iter().for_each(|grid| writer.push_grid(grid));
    }
    writer.push_grid(scores_grid(&moved.scored, &moved.scores));
    writer.push_grid(description(moved, &file.path().display().to_string()));
    let mut complete = |finished| writer.write_complete(&[], RunState { finished, ..former.state }, std::iter::empty());
    complete(false)?;
    if let Some(dataset) = dataset.filter(|_| run.evaluate.predictions) {
        let is_chains = draws.group.kind == SampleKind::Chains;
        let arrays = predictive_arrays(problem.model.as_ref(), is_chains, &ResultFile::open(&path)?, dataset)?;
        arrays.into_iter().for_each(|grid| writer.push_grid(grid));
    }
    writer.write_complete(&[], RunState { finished: true, ..former.state }, std::iter::empty()).map_err(JobError::from)
}

/// How draws were moved, for the result file.
fn description(moved: &Recalibration, from: &str) -> Grid {
    let Recalibration { map, rounds, sd_ratios, shifts, after, .. } = moved;
    let values = vec![*rounds as f64, after.scored_draws as f64, after.nonlinearity];
    Grid {
        group: RECALIBRATION.into(),
        dimensions: vec![
            ("parameter".into(), map.mean.len()),
            ("moved_by".into(), map.mean.len()),
            ("known".into(), values.len()),
            ("run".into(), 1),
        ],
        variables: vec![
            ("center".into(), vec![0], map.center.to_vec()),
            ("mean".into(), vec![0], map.mean.to_vec()),
            ("matrix".into(), vec![0, 1], map.matrix.iter().copied().collect()),
            ("sd_ratio_before".into(), vec![0], sd_ratios.clone()),
            ("shift_before".into(), vec![0], shifts.clone()),
            ("value".into(), vec![2], values),
        ],
        names: vec![
            ("key".into(), 2, ["rounds", "gradients_of_each", "nonlinearity"].map(str::to_owned).to_vec()),
            (RECALIBRATED_FROM.into(), 3, vec![from.to_owned()]),
        ],
    }
}
