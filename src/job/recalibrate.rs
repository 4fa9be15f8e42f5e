//! Recalibrates the draws of a finished run: moves them to the mean and the covariance of the posterior, into a folder of their own.

use super::data::{DataFile, check_unchanged};
use super::error::JobError;
use super::pointwise::{Pointwise, PointwiseOutcome, pointwise_arrays};
use super::predictions::{PREPROCESSING, predictive_arrays};
use super::prepare::JobData;
use super::problem::{counted_once, table_problem};
use super::ranks::Ranks;
use super::scoring::{scores_at, scores_grid};
use super::start::{job_options, open_on_all, start_threads};
use super::tune::TUNING;
use crate::cluster::JobOptions;
use crate::cluster::record::Extents;
use crate::config::{Dtype, Precision, Run, RunOf};
use crate::data::Dataset;
use crate::methods::{Problem, Table};
use crate::metrics::bias::{DrawnFrom, MAX_PARAMETERS, MIN_ESS};
use crate::metrics::convergence::{Convergence, MIN_DRAWS, UNMIXED_R_HAT, estimates};
use crate::metrics::recalibration::{Recalibration, recalibrate as move_draws};
use crate::models::Output;
use crate::results::{
    Grid, POSTERIOR, ResultFile, RunFolder, RunInfo, RunState, RunWriter, SampleGroup, SampleKind, result_file,
};
use ndarray::{Array2, Axis, s};
use std::path::Path;
use std::sync::Arc;

/// The group that says how draws were moved.
pub const RECALIBRATION: &str = "recalibration";
/// Its list with the result file whose draws were moved.
pub const RECALIBRATED_FROM: &str = "recalibrated_from";

/// What rank 0 tells the others: compute scores with it.
const ANOTHER_ROUND: [u8; 1] = [1];
/// What rank 0 tells the others: no more scores are needed.
const LAST_ROUND_DONE: [u8; 1] = [0];

/// Moves the draws of a finished run, and writes them to `folder`. Every rank calls this; rank 0 gives the result file, and gets how the
/// draws were moved.
///
/// # Errors
/// If the draws are better left as they are, or anything cannot be read or written. No results are written then.
pub fn recalibrate(
    run: &Run,
    file: Option<&ResultFile>,
    ranks: &Ranks,
    folder: &mut RunFolder,
) -> Result<Option<Recalibration>, JobError> {
    let Run::Table(run) = run else {
        return ranks.agree(Err(JobError::Recalibration("topics have no common coordinates".into())));
    };
    let data = open_on_all(run, ranks)?;
    let dataset = data.as_ref().and_then(Table::downcast);
    let problem = ranks.agree(table_problem::<f64>(run, dataset, ranks))?.problem;
    let parameters = problem.model.dim();
    ranks.agree(if !run.method.samples() {
        Err(JobError::Recalibration(format!("{} does not sample the posterior", run.method.name())))
    } else if parameters > MAX_PARAMETERS {
        Err(JobError::Recalibration(format!("the model has {parameters} parameters, more than {MAX_PARAMETERS}")))
    } else {
        Ok(())
    })?;
    let options = job_options(run, start_threads(run, ranks), folder).without_stores();
    let scored = counted_once(&problem, run.method.sharing());
    let read = |file| Draws::read(file, parameters, data.as_ref());
    let before = ranks.agree(file.map(read).transpose())?;
    folder.print_message("moving the draws by the scores of the posterior, until their mean and covariance converge");
    // Rank 0 decides how often scores are computed.
    let moved = match &before {
        Some(before) => {
            let moved = move_draws(before.rows.view(), |draws| {
                ranks.broadcast(&ANOTHER_ROUND);
                scores(&scored, draws, ranks, &options)
            });
            ranks.broadcast(&LAST_ROUND_DONE);
            moved.and_then(|moved| moved.map_err(|refusal| JobError::Recalibration(refusal.to_string())))
        }
        None => {
            while ranks.broadcast(&[]) == ANOTHER_ROUND {
                scores(&scored, &Array2::zeros((0, parameters)), ranks, &options)?;
            }
            return ranks.agree(Ok(None));
        }
    };
    let checked_and_written = || {
        let (moved, Some(before), Some(file)) = (moved?, before, file) else { return Ok(None) };
        let draws = Draws { rows: moved.map.apply(before.rows.view()), ..before };
        draws.check_mixing()?;
        Written { run, file, draws, moved: &moved, problem: &problem, dataset }.to_folder(folder)?;
        Ok(Some(moved))
    };
    ranks.agree(checked_and_written())
}

/// The scores of the posterior at draws (M × d), on rank 0. Every rank calls this.
fn scores(problem: &Problem<f64>, draws: &Array2<f64>, ranks: &Ranks, options: &JobOptions) -> Result<Array2<f64>, JobError> {
    let scores = scores_at(problem.clone(), draws.iter().copied().collect(), ranks, options)?;
    Ok(scores.unwrap_or_else(|| Array2::zeros(draws.dim())))
}

/// The draws of a posterior: those of all chains as rows.
struct Draws {
    rows: Array2<f64>,
    lengths: Vec<usize>,
    group: SampleGroup,
}

impl Draws {
    /// The draws of a run on these data.
    fn read(file: &ResultFile, parameters: usize, data: Option<&DataFile>) -> Result<Self, JobError> {
        check_unchanged(file, data).map_err(JobError::Recalibration)?;
        let samples = file.samples(POSTERIOR)?;
        let (lengths, longest) = (file.lengths(POSTERIOR)?, samples.values.dim().1);
        // The file pads shorter chains; the padding is left out.
        let places = lengths.iter().enumerate().flat_map(|(chain, &length)| (0..length).map(move |draw| chain * longest + draw));
        let rows = samples.values.matrix().select(Axis(0), &places.collect::<Vec<_>>());
        if rows.ncols() != parameters {
            let what = format!("its draws have {} parameters, and the model has {parameters}", rows.ncols());
            return Err(JobError::Recalibration(what));
        }
        Ok(Self { rows, lengths, group: SampleGroup { name: POSTERIOR.into(), parts: samples.parts, kind: samples.kind } })
    }

    /// Refuses moved chains that disagree or are short: a map that mixes parameters changes R-hat and the effective sample size.
    fn check_mixing(&self) -> Result<(), JobError> {
        if self.group.kind != SampleKind::Chains {
            return Ok(());
        }
        let shortest = self.lengths.iter().copied().min().unwrap_or(0);
        if shortest < MIN_DRAWS {
            return Err(JobError::Recalibration(format!("a chain has {shortest} draws, and at least {MIN_DRAWS} are needed")));
        }
        let ranges = self.lengths.iter().scan(0, |end, length| {
            *end += length;
            Some((*end - length)..(*end - length + shortest))
        });
        let rows = self.rows.select(Axis(0), &ranges.flatten().collect::<Vec<_>>());
        let chains = rows.into_shape_with_order((self.lengths.len(), shortest, self.rows.ncols()));
        let chains = chains.map_err(|error| JobError::Recalibration(error.to_string()))?;
        let names = self.group.parts.iter().flat_map(|part| (0..part.size()).map(|place| part.element_name(place)));
        for (name, estimate) in names.zip(estimates(chains.view())) {
            let Some(Convergence { r_hat, ess_bulk, .. }) = estimate.convergence else { continue };
            // The R-hat of a single chain is NaN, which is no reason to refuse.
            if r_hat >= UNMIXED_R_HAT || ess_bulk.is_nan() || ess_bulk < MIN_ESS {
                return Err(JobError::Recalibration(format!(
                    "the chains are too short: moved draws of {name} have an R-hat of {r_hat:.2} and an effective sample size of \
                     {ess_bulk:.0}, and an R-hat below {UNMIXED_R_HAT} and a size of at least {MIN_ESS} are needed"
                )));
            }
        }
        Ok(())
    }

    /// Adds the draws of each chain to a result file, in the number type of the run.
    fn push<F: Precision>(&self, writer: &mut RunWriter) {
        let mut first = 0;
        for (chain, length) in (0..).zip(&self.lengths) {
            let draws = self.rows.slice(s![first..first + length, ..]).mapv(F::of);
            writer.push_chain(POSTERIOR, chain, draws.view());
            first += length;
        }
    }
}

/// What is written to the folder of recalibrated draws.
struct Written<'a> {
    run: &'a RunOf<Table>,
    /// The result file of the run.
    file: &'a ResultFile,
    /// The moved draws.
    draws: Draws,
    moved: &'a Recalibration,
    problem: &'a Problem<f64>,
    dataset: Option<&'a Arc<Dataset>>,
}

impl Written<'_> {
    /// Writes the folder. It holds a run only when it is complete.
    fn to_folder(&self, folder: &mut RunFolder) -> Result<(), JobError> {
        if folder.claim()?.is_some_and(|kept| kept.holds_results) {
            let folder = folder.path().display();
            return Err(JobError::Recalibration(format!("{folder} holds a run already: choose another --output")));
        }
        let path = result_file(folder.path());
        if let Err(error) = self.to_file(&path) {
            // The first error is the one to report.
            drop(std::fs::remove_file(&path));
            return Err(error);
        }
        let RunInfo { config, data_digest, .. } = self.file.info();
        Ok(folder.record_run(config, data_digest)?)
    }

    fn to_file(&self, path: &Path) -> Result<(), JobError> {
        let Self { run, file, draws, moved, problem, dataset } = self;
        let former = file.info();
        let info = RunInfo::new(&former.method, &former.model, former.seed, &former.data_digest, &former.config);
        let mut writer = RunWriter::new(path, info, vec![draws.group.clone()], Extents::default())?;
        match run.settings.dtype {
            Dtype::Float32 => draws.push::<f32>(&mut writer),
            Dtype::Float64 => draws.push::<f64>(&mut writer),
        }
        for group in [PREPROCESSING, TUNING] {
            file.grid(group)?.into_iter().for_each(|grid| writer.push_grid(grid));
        }
        writer.push_grid(scores_grid(&moved.checked.draws, &moved.checked.scores, DrawnFrom::Posterior));
        writer.push_grid(recalibration_grid(moved, file.path()));
        let write_file = |writer: &mut RunWriter, finished| {
            writer.write_complete(&[], RunState { finished, ..former.state }, std::iter::empty())
        };
        // An unfinished file first: predictions read their draws from it.
        write_file(&mut writer, false)?;
        if let Some(dataset) = dataset {
            let is_chains = draws.group.kind == SampleKind::Chains;
            let arrays = predictive_arrays(problem.model.as_ref(), is_chains, &ResultFile::open(path)?, dataset, run)?;
            arrays.into_iter().for_each(|grid| writer.push_grid(grid));
            if run.evaluate.pointwise && problem.model.output() != Output::Nothing {
                let (file, folder) = (ResultFile::open(path)?, path.parent().unwrap_or(Path::new(".")));
                // The other ranks have ended their part.
                let found =
                    pointwise_arrays(problem.model.as_ref(), dataset, run, (Some(&file), folder), &Ranks::One, |_, _| true)?;
                if let PointwiseOutcome::Arrays(Pointwise { observed, by_draw }) = found {
                    writer.push_grid(observed);
                    by_draw.into_iter().for_each(|(group, file)| writer.push_large_grid(group, file));
                }
            }
        }
        Ok(write_file(&mut writer, true)?)
    }
}

/// How draws were moved, for the result file.
fn recalibration_grid(moved: &Recalibration, from: &Path) -> Grid {
    let Recalibration { map, rounds, sd_ratios, shifts, checked } = moved;
    let values = vec![*rounds as f64, checked.draws.nrows() as f64, checked.bias.nonlinearity];
    Grid {
        group: RECALIBRATION.into(),
        dimensions: vec![
            ("parameter".into(), map.mean.len()),
            ("parameter_before".into(), map.mean.len()),
            ("quantity_number".into(), values.len()),
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
            ("quantity".into(), 2, ["rounds", "scored_draws_in_each", "nonlinearity"].map(str::to_owned).to_vec()),
            (RECALIBRATED_FROM.into(), 3, vec![from.display().to_string()]),
        ],
    }
}
