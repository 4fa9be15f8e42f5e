//! Starts a job: opens the data, prepares the method, enters the run's folder, and hands the method to a driver.

use super::data::DataFile;
use super::error::JobError;
use super::pointwise::Pointwise;
use super::prepare::{JobData, Prepared, open};
use super::ranks::Ranks;
use super::resume::{ClaimOutcome, claim_for_run};
use super::scoring::ScoringContext;
use super::tune::Tuned;
use super::whole_checkpoint::{checkpoint_parts, load_for_ranks, whole_checkpoint};
use crate::cluster::placement::{Place, oversubscription};
use crate::cluster::{JobOptions, Outcome};
use crate::config::{DrawTransport, Dtype, Registry, Run, RunFileKind, RunOf, RunSettings};
use crate::random::Seed;
use crate::results::{CheckpointParts, ResultFile, RunFolder, RunInfo, Spool, Stage};
use crate::text::counted;
use std::sync::Arc;

/// Carries out a run to its end, or until it is stopped. Every rank calls this.
///
/// # Errors
/// Anything that is wrong with the run or its data, or that ended the run.
pub fn start(run: &Run, registry: &Registry, ranks: &Ranks, folder: &mut RunFolder) -> Result<(), JobError> {
    let outcome = match run {
        Run::Table(run) => start_on(run, registry, ranks, folder),
        Run::Corpus(run) => start_on(run, registry, ranks, folder),
    };
    // A fault is written down by the rank where it happened.
    if let Err(error) = &outcome
        && ranks.is_root()
        && !matches!(error, JobError::Fault(_))
    {
        folder.note_failure(error);
    }
    outcome
}

fn start_on<D: JobData>(run: &RunOf<D>, registry: &Registry, ranks: &Ranks, folder: &mut RunFolder) -> Result<(), JobError>
where
    RunOf<D>: Into<Run>,
{
    let data = open_on_all(run, ranks)?;
    let digest = data.as_ref().map_or("", DataFile::digest);
    let open = data.as_ref().and_then(D::downcast);
    let prepare = |tuned: Option<&Tuned>| {
        ranks.agree(match run.settings.dtype() {
            Dtype::Float32 => D::prepare::<f32>(run, open, ranks, tuned),
            Dtype::Float64 => D::prepare::<f64>(run, open, ranks, tuned),
        })
    };
    let prepared = prepare(None)?;
    // Rank 0 decides: a shared file system may show an older state to the others.
    let config = run.clone().into().to_toml()?;
    let entered = if ranks.is_root() { claim_for_run(run, &config, data.as_ref(), registry, folder).map(Some) } else { Ok(None) };
    let entered = ranks.agree(entered)?;
    if ranks.broadcast(&[u8::from(entered == Some(ClaimOutcome::ToCarryOut))]) != [1] {
        match entered {
            Some(ClaimOutcome::Stopped) => folder.end_stage(Stage::Preparation, false),
            Some(ClaimOutcome::Finished) => folder.report_finished(),
            Some(ClaimOutcome::ToCarryOut) | None => {}
        }
        return Ok(());
    }
    let threads = start_threads(run, ranks);
    let mut options = job_options(run, threads, folder);
    notes_on_placement(ranks, threads).iter().for_each(|note| folder.print_message(note));
    let tuned = match D::tune(run, open, ranks, &options, folder) {
        // Only this rank knows of a fault: `agree` would wait for ranks that are still at work.
        Err(fault @ JobError::Fault(_)) => return Err(fault),
        tuned => ranks.agree(tuned)?,
    };
    if folder.was_stopped() {
        return Ok(());
    }
    let prepared = match &tuned {
        Some(tuned) => {
            tuned.describe().iter().for_each(|found| folder.print_message(found));
            prepare(Some(tuned))?
        }
        None => prepared,
    };
    let parts = Arc::new(checkpoint_parts(ranks, folder));
    options.states = Some(parts.clone());
    options.store = match run.cluster.draw_transport {
        DrawTransport::Messages => None,
        DrawTransport::Files => Some(Arc::new(Spool::new(folder.path(), parts.job(), ranks.rank()))),
    };
    carry_out(
        run,
        prepared,
        options,
        &parts,
        RunInfo::new(run.method.name(), run.model_name(), run.settings.seed(), digest, &config),
        ranks,
        folder,
    )
}

/// Opens the data of a run, if it has any. Every rank calls this.
///
/// # Errors
/// If they cannot be read on some rank, or are not the same on all.
pub(super) fn open_on_all<D: JobData>(run: &RunOf<D>, ranks: &Ranks) -> Result<Option<DataFile>, JobError> {
    let data = ranks.agree(open(run))?;
    let digest = data.as_ref().map_or("", DataFile::digest);
    let root = String::from_utf8_lossy(&ranks.broadcast(digest.as_bytes())).into_owned();
    ranks.agree(same_data(data.as_ref(), root))?;
    Ok(data)
}

/// Checks that the data of this rank are those of rank 0.
fn same_data(data: Option<&DataFile>, root: String) -> Result<(), JobError> {
    match data {
        Some(data) if data.digest() != root => {
            Err(JobError::DifferentData { file: data.path().to_owned(), here: data.digest().to_owned(), root })
        }
        _ => Ok(()),
    }
}

/// A note for each host on which the ranks, with this many threads each, have more threads than there are cores. Every rank calls this.
pub fn notes_on_placement(ranks: &Ranks, threads: usize) -> Vec<String> {
    if matches!(ranks, Ranks::Virtual(_)) {
        return Vec::new();
    }
    let mine = serde_json::to_vec(&Place::here(ranks.rank())).unwrap_or_default();
    let places: Vec<Place> = ranks.collect(&mine).iter().filter_map(|place| serde_json::from_slice(place).ok()).collect();
    oversubscription(&places, threads).into_iter().map(|warning| format!("note: {warning}")).collect()
}

/// How many threads each rank has, if the run file asks for `wanted`: 0 for the usual number.
pub fn threads_of(wanted: usize, ranks: &Ranks) -> usize {
    match (wanted, ranks) {
        (0, Ranks::One) => std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        (0, Ranks::Mpi(_) | Ranks::Virtual(_)) => 1,
        (threads, _) => threads,
    }
}

/// Starts the threads of this process, and returns how many a rank has.
pub(super) fn start_threads<D: RunFileKind>(run: &RunOf<D>, ranks: &Ranks) -> usize {
    let threads = threads_of(run.cluster.threads, ranks);
    // Virtual ranks carry out their tasks one after the other in this process. One thread, because a task must take as long as on a rank whose
    // other cores are busy.
    let pool = if matches!(ranks, Ranks::Virtual(_)) { 1 } else { threads };
    // Fails if an earlier run of this process has started the pool, which then has the right size: `cluster.threads` cannot vary within a process.
    drop(rayon::ThreadPoolBuilder::new().num_threads(pool).build_global());
    threads
}

/// How a run uses the machine.
pub(super) fn job_options<D: RunFileKind>(run: &RunOf<D>, threads: usize, folder: &RunFolder) -> JobOptions {
    let cluster = &run.cluster;
    JobOptions {
        threads,
        dedicated: cluster.dedicated,
        collectives: cluster.collectives,
        timeline: folder.timeline().cloned(),
        ..JobOptions::new(Seed(run.settings.seed()))
    }
}

fn carry_out<D: RunFileKind>(
    run: &RunOf<D>,
    prepared: Prepared,
    options: JobOptions,
    parts: &CheckpointParts,
    info: RunInfo,
    ranks: &Ranks,
    folder: &mut RunFolder,
) -> Result<(), JobError> {
    let Prepared { method, groups, sizes, notes, scoring, pointwise, final_arrays, last_rounds } = prepared;
    if let Some(rounds) = last_rounds {
        folder.keep_late_checkpoint(rounds);
    }
    let (settings, cluster) = (&run.settings, &run.cluster);
    let headline = format!(
        "{} on the model {}: {}{sizes}, {} × {}{}",
        run.method.name(),
        run.model_name(),
        counted(settings.agents(), "agent"),
        counted(ranks.count(), "rank"),
        counted(options.threads, "thread"),
        idle(ranks.count(), settings.agents(), cluster.dedicated)
    );
    let mut saved = whole_checkpoint(ranks, folder, parts)?;
    let begin = || -> Result<(), JobError> {
        if !ranks.is_root() {
            return Ok(());
        }
        let fits = saved.as_ref().map_or(Ok(()), |saved| saved.check(method.name(), method.number()));
        fits.map_err(|cause| JobError::OtherCheckpoint { folder: folder.path().to_owned(), cause })?;
        folder.begin(&headline, saved.as_ref(), info, groups)?;
        notes.iter().for_each(|note| folder.print_message(&format!("note: {note}")));
        load_for_ranks(saved.as_mut(), parts)
    };
    // All ranks must know what rank 0 alone finds wrong, before any of them continues.
    ranks.agree(begin())?;
    let score_options = options.without_stores();
    let outcome = ranks.carry_out(method, options, saved, folder)?;
    let finished = ranks.broadcast(&[u8::from(outcome.as_ref().is_some_and(|outcome| outcome.finished))]) == [1];
    if finished && (scoring.is_some() || pointwise.is_some()) {
        let written = outcome.as_ref().map_or(Ok(true), |outcome| folder.write_draws_of_completed_run(outcome));
        let is_written = ranks.agree(written.map_err(JobError::from))?;
        if ranks.broadcast(&[u8::from(is_written)]) != [1] {
            return Ok(());
        }
    }
    let scored = match scoring {
        Some(scoring) if finished => {
            let file = ranks.agree(open_results(outcome.as_ref(), folder))?;
            scoring(file.as_ref(), &mut ScoringContext { ranks, options: &score_options, folder })?
        }
        _ => None,
    };
    if folder.was_stopped() {
        return Ok(());
    }
    let pointwise = match pointwise {
        Some(pointwise) if finished => {
            let file = ranks.agree(open_results(outcome.as_ref(), folder))?;
            pointwise(file.as_ref(), ranks, folder)?
        }
        _ => None,
    };
    if folder.was_stopped() {
        return Ok(());
    }
    let Some(outcome) = outcome else { return Ok(()) };
    if let Some(Pointwise { observed, by_draw }) = pointwise {
        folder.add_arrays(observed);
        by_draw.into_iter().for_each(|(group, file)| folder.add_large_arrays(group, file));
    }
    if finished {
        let grids = final_arrays(folder, &outcome)?;
        grids.into_iter().chain(scored).for_each(|grid| folder.add_arrays(grid));
    }
    folder.end(&outcome)?;
    Ok(())
}

/// The result file, on the rank that has the outcome.
fn open_results(outcome: Option<&Outcome>, folder: &RunFolder) -> Result<Option<ResultFile>, JobError> {
    Ok(outcome.map(|_| folder.open_results()).transpose()?)
}

/// A remark on ranks without agents.
fn idle(ranks: u32, agents: u32, dedicated: bool) -> String {
    let hosts = ranks.saturating_sub(u32::from(dedicated && ranks > 1));
    match hosts.checked_sub(agents) {
        None | Some(0) => String::new(),
        Some(idle) => format!(" ({} without an agent: agents = {hosts} would use all)", counted(idle, "rank")),
    }
}
