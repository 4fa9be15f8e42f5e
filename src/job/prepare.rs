//! A run and its data become a method that a driver can run; tables and corpora implement one trait for this.

use super::data::{DataFile, refuse_kind};
use super::error::JobError;
use super::notes::notes_on_rows;
use super::pointwise::{Pointwise, PointwiseOutcome, note_if_nothing_is_kept, pointwise_arrays};
use super::predictions::{has_predictive_arrays, predictive_arrays, preprocessing};
use super::problem::{TableProblem, assign, counted_once, counts, table_problem};
use super::ranks::Ranks;
use super::scoring::{Scoring, scoring};
use super::seed_words::seed_words;
use super::shards::describe_sizes;
use super::topic_model::{ALPHA, PHI, vocabulary};
use super::tune::{Tuned, tune};
use crate::cluster::{AgentId, AnyMethod, JobOptions, Outcome};
use crate::config::{ConfigError, Precision, RunFileKind, RunOf, RunSettings, TableEvaluation, evaluation_interval};
use crate::data::corpus::{Corpus as CorpusFile, CorpusShard};
use crate::data::{DataError, Dataset, Split, document_ranges};
use crate::lda::{DocumentSource, LdaSettings};
use crate::methods::chains::dsgld::EXPECTATIONS;
use crate::methods::chains::hmc::{SAMPLE_STATS, SAMPLE_STATS_GROUP};
use crate::methods::common::problem::OpenShard;
use crate::methods::topics::{EVALUATION_SWEEPS, TopicEvaluation, TopicProblem};
use crate::methods::{Corpus, DrawKind, Evaluation, PARTICLE_PATHS, Problem, Sharing, Table};
use crate::models::{Output, Part, require_data};
use crate::results::{Grid, POSTERIOR, ResultFile, RunFolder, SampleGroup, SampleKind, Stage};
use std::ops::Range;
use std::sync::Arc;

/// A method with all that a job needs to run it.
pub struct Prepared {
    /// The method.
    pub method: AnyMethod,
    /// The groups of draws in the result file.
    pub groups: Vec<SampleGroup>,
    /// The sizes of the shards, for people.
    pub sizes: String,
    /// Remarks on settings that are allowed but perhaps not meant.
    pub notes: Vec<String>,
    /// Computes the scores at draws when the run has finished, if they are wanted.
    pub scoring: Option<Scoring>,
    /// Computes the log-likelihood of every row at every draw when the run has finished, if it is wanted.
    pub pointwise: Option<PointwiseOfRun>,
    /// The arrays that the result file gets when the run has finished.
    pub final_arrays: FinalArrays,
    /// How many of the last rounds are not like those before them, so that a run made longer computes them anew; none if it cannot be made longer.
    pub last_rounds: Option<u64>,
}

/// Computes the arrays that the result file gets when the run has finished.
pub type FinalArrays = Box<dyn FnOnce(&mut RunFolder, &Outcome) -> Result<Vec<Grid>, JobError>>;

/// Computes the log-likelihood of every row at every draw from the result file, which rank 0 has. Every rank calls this. If the job is asked to
/// stop, it returns none, and the folder knows that the run was stopped.
pub type PointwiseOfRun = Box<dyn FnOnce(Option<&ResultFile>, &Ranks, &mut RunFolder) -> Result<Option<Pointwise>, JobError>>;

/// Data that a job can run on.
pub trait JobData: RunFileKind {
    /// The open data file.
    type Open: Send + Sync;

    /// The data, if they are of this kind.
    fn downcast(file: &DataFile) -> Option<&Self::Open>;

    /// The number of training entries of each shard.
    ///
    /// # Errors
    /// If the data cannot be split among the agents in this way.
    fn shard_sizes(run: &RunOf<Self>, open: &Self::Open) -> Result<Vec<usize>, DataError>;

    /// Finds the settings that the run file leaves to be found, such as `step = "auto"`, if any. Every rank calls this.
    ///
    /// # Errors
    /// If it cannot be found.
    fn tune(
        _run: &RunOf<Self>,
        _open: Option<&Self::Open>,
        _ranks: &Ranks,
        _options: &JobOptions,
        _folder: &mut RunFolder,
    ) -> Result<Option<Tuned>, JobError> {
        Ok(None)
    }

    /// The method of a run on its data, with what was found for it.
    ///
    /// # Errors
    /// If the data do not suit the run, or cannot be read.
    fn prepare<F: Precision>(
        run: &RunOf<Self>,
        open: Option<&Self::Open>,
        ranks: &Ranks,
        tuned: Option<&Tuned>,
    ) -> Result<Prepared, JobError>;
}

impl JobData for Table {
    type Open = Arc<Dataset>;

    fn downcast(file: &DataFile) -> Option<&Self::Open> {
        match file {
            DataFile::Table(table) => Some(table),
            DataFile::Corpus(_) => None,
        }
    }

    fn shard_sizes(run: &RunOf<Self>, dataset: &Self::Open) -> Result<Vec<usize>, DataError> {
        Ok(counts(run, &assign(run, dataset)?))
    }

    fn tune(
        run: &RunOf<Self>,
        dataset: Option<&Self::Open>,
        ranks: &Ranks,
        options: &JobOptions,
        folder: &mut RunFolder,
    ) -> Result<Option<Tuned>, JobError> {
        tune(run, dataset, ranks, options, folder)
    }

    fn prepare<F: Precision>(
        run: &RunOf<Self>,
        dataset: Option<&Self::Open>,
        ranks: &Ranks,
        tuned: Option<&Tuned>,
    ) -> Result<Prepared, JobError> {
        let TableProblem { problem, test_rows, sizes, rows, .. } = table_problem::<F>(run, dataset, ranks)?;
        let sharing = run.method.sharing();
        let model = problem.model.clone();
        let in_model_coordinates = problem.clone();
        let problem = match tuned {
            Some(tuned) => tuned.in_coordinates(problem),
            None => problem,
        };
        let method = tuned.map_or(run.method.as_ref(), |tuned| tuned.method.as_ref());
        let rounds = method.estimate(run.settings.agents, model.dim()).rounds;
        let last_rounds = method.length(run.settings.agents).map(|length| length.last_rounds);
        let mut notes = run.method.notes(run.settings.agents);
        for note in method.notes(run.settings.agents) {
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        // Rank 0 alone prints notes, and reads rows for them.
        notes.extend(dataset.iter().filter(|_| ranks.is_root()).flat_map(|dataset| notes_on_rows(run, dataset)));
        if let Some(dataset) = dataset.filter(|_| run.evaluate.pointwise) {
            notes.extend(note_if_nothing_is_kept(dataset.rows(run.evaluate.pointwise_rows), run.settings.temperature));
        }
        let evaluation = evaluation(&run.evaluate, rounds, &problem, test_rows, sharing);
        let method = F::method(method, problem);
        let draws = method.draws();
        let scoring = if run.evaluate.bias { scoring(run, &in_model_coordinates, rows, draws) } else { None };
        let evaluation = evaluation.and_then(|evaluation| suited_to(draws, evaluation));

        let group = |name: &str, kind| SampleGroup { name: name.into(), parts: model.parts(), kind };
        let mut groups = match draws {
            DrawKind::Particles | DrawKind::FittedNormal => vec![group(POSTERIOR, SampleKind::Particles)],
            DrawKind::Chains => {
                let expectations = EXPECTATIONS.map(|name| group(name, SampleKind::Expectation));
                let statistics = SAMPLE_STATS.map(|name| Part::new(name, &[])).to_vec();
                let statistics = SampleGroup { name: SAMPLE_STATS_GROUP.into(), parts: statistics, kind: SampleKind::Statistics };
                std::iter::once(group(POSTERIOR, SampleKind::Chains)).chain(expectations).chain([statistics]).collect()
            }
        };
        if evaluation.as_ref().is_some_and(|evaluation| evaluation.particle_paths) {
            groups.push(group(PARTICLE_PATHS, SampleKind::Paths));
        }
        let (dataset, settings) = (dataset.cloned(), run.clone());
        let pointwise =
            dataset.clone().filter(|_| settings.evaluate.pointwise && model.output() != Output::Nothing).map(|dataset| {
                let (model, settings) = (model.clone(), settings.clone());
                let compute: PointwiseOfRun = Box::new(move |file, ranks, folder| {
                    let path = folder.path().to_owned();
                    let goes_on = |progress, longest_block| {
                        folder.show_stage(Stage::LogLikelihoods, progress);
                        !folder.must_end_stage(longest_block)
                    };
                    let outcome = pointwise_arrays(model.as_ref(), &dataset, &settings, (file, &path), ranks, goes_on)?;
                    folder.end_stage(Stage::LogLikelihoods, !matches!(outcome, PointwiseOutcome::Stopped));
                    Ok(match outcome {
                        PointwiseOutcome::Arrays(arrays) => Some(arrays),
                        PointwiseOutcome::Stopped | PointwiseOutcome::Nothing => None,
                    })
                });
                compute
            });
        let found = tuned.and_then(Tuned::arrays);
        let final_arrays: FinalArrays = Box::new(move |folder, outcome| {
            let mut grids: Vec<Grid> = found.into_iter().collect();
            let Some(dataset) = dataset else { return Ok(grids) };
            grids.push(preprocessing(&dataset)?);
            if has_predictive_arrays(model.as_ref(), &dataset, &settings) {
                if !folder.write_draws_of_completed_run(outcome)? {
                    // The run is stopped, and the job that resumes it computes all of these arrays.
                    return Ok(Vec::new());
                }
                let (file, is_chains) = (folder.open_results()?, draws == DrawKind::Chains);
                grids.extend(predictive_arrays(model.as_ref(), is_chains, &file, &dataset, &settings)?);
            }
            Ok(grids)
        });
        Ok(Prepared {
            method: method.start(run.method.name(), evaluation),
            groups,
            sizes,
            notes,
            scoring,
            pointwise,
            final_arrays,
            last_rounds,
        })
    }
}

/// What is evaluated, if anything.
fn evaluation<F: Precision>(
    settings: &TableEvaluation,
    rounds: Option<u64>,
    problem: &Problem<F>,
    test_rows: Option<OpenShard<F>>,
    sharing: Sharing,
) -> Option<Evaluation<F>> {
    let TableEvaluation { every, per_particle, average_from, ksd, particle_paths, .. } = *settings;
    let every = evaluation_interval(every, rounds);
    let ksd_problem = ksd.then(|| counted_once(problem, sharing));
    let wanted = every > 0 && (test_rows.is_some() || ksd || particle_paths);
    let model = problem.model.clone();
    wanted.then_some(Evaluation { model, every, test_rows, per_particle, average_from, ksd: ksd_problem, particle_paths })
}

/// The evaluation of a method with such draws, without what it does not need: chains keep their draws, so that they have no further paths.
fn suited_to<F>(draws: DrawKind, mut evaluation: Evaluation<F>) -> Option<Evaluation<F>> {
    match draws {
        DrawKind::Particles | DrawKind::FittedNormal => Some(evaluation),
        DrawKind::Chains => {
            evaluation.particle_paths = false;
            (evaluation.test_rows.is_some() || evaluation.ksd.is_some()).then_some(evaluation)
        }
    }
}

impl JobData for Corpus {
    type Open = Arc<CorpusFile>;

    fn downcast(file: &DataFile) -> Option<&Self::Open> {
        match file {
            DataFile::Corpus(corpus) => Some(corpus),
            DataFile::Table(_) => None,
        }
    }

    fn shard_sizes(run: &RunOf<Self>, corpus: &Self::Open) -> Result<Vec<usize>, DataError> {
        Ok(ranges(run, corpus)?.iter().map(Range::len).collect())
    }

    fn prepare<F: Precision>(
        run: &RunOf<Self>,
        corpus: Option<&Self::Open>,
        _: &Ranks,
        _: Option<&Tuned>,
    ) -> Result<Prepared, JobError> {
        let corpus = require_data(corpus).map_err(|error| ConfigError::Settings(vec![error.below("model")]))?;
        let &LdaSettings { topics, alpha, beta, .. } = &run.model;
        let (words, notes_on_seed_words) =
            seed_words(run, corpus).map_err(|error| ConfigError::Settings(vec![error.below("model")]))?;
        let agents = run.settings.agents();
        let ranges = ranges(run, corpus)?;
        let sizes = describe_sizes(ranges.iter().map(Range::len), Self::WORDS.entry);
        let train = corpus.clone();
        let documents = move |agent: AgentId| {
            let shard = CorpusShard::new(train.clone(), ranges[agent as usize].clone());
            Ok(Box::new(shard) as Box<dyn DocumentSource>)
        };
        let problem = TopicProblem {
            agents,
            vocabulary: corpus.words(),
            topics,
            alpha,
            beta,
            seed_words: Arc::new(words),
            documents: Arc::new(documents),
        };
        let method = F::method(run.method.as_ref(), problem.clone());

        let (held_out, test) = (corpus.documents(Split::Test), corpus.clone());
        let slice = move |agent: AgentId| {
            let (agent, agents) = (agent as usize, agents as usize);
            Ok(test.held_out(agent * held_out / agents..(agent + 1) * held_out / agents)?)
        };
        let parameters = corpus.words() as usize * topics as usize;
        let every = evaluation_interval(run.evaluate.every, run.method.estimate(agents, parameters).rounds);
        let (posterior, sweeps) = (method.posterior(), EVALUATION_SWEEPS);
        let evaluation = TopicEvaluation { every, problem, held_out: Arc::new(slice), sweeps, posterior };
        let evaluation = (every > 0 && held_out > 0).then_some(evaluation);

        let mut parts = vec![Part::new(PHI, &[corpus.words() as usize, topics as usize])];
        if posterior.has_alphas {
            parts.push(Part::new(ALPHA, &[topics as usize]));
        }
        let groups = vec![SampleGroup { name: POSTERIOR.into(), parts, kind: SampleKind::Topics }];
        let corpus = corpus.clone();
        let final_arrays: FinalArrays = Box::new(move |_, _| Ok(vec![vocabulary(&corpus)?]));
        Ok(Prepared {
            method: method.start(run.method.name(), evaluation),
            groups,
            sizes,
            notes: [run.method.notes(agents), notes_on_seed_words].concat(),
            scoring: None,
            pointwise: None,
            final_arrays,
            last_rounds: None,
        })
    }
}

/// The training documents of each agent.
fn ranges(run: &RunOf<Corpus>, corpus: &CorpusFile) -> Result<Vec<Range<usize>>, DataError> {
    let sizes = run.data.as_ref().and_then(|data| data.partition.sizes());
    document_ranges(sizes, corpus.documents(Split::Train), run.settings.agents as usize)
}

/// From where the paths of run files count.
pub(super) const RELATIVE_PATH: &str = "a relative path counts from the folder in which mpibayes is started";

/// Opens the data of a run, if it has any.
///
/// # Errors
/// If the file cannot be read, or is of another kind than the run.
pub(super) fn open<D: JobData>(run: &RunOf<D>) -> Result<Option<DataFile>, JobError> {
    let Some(path) = run.data.as_ref().map(D::file) else { return Ok(None) };
    let file = DataFile::open(path).map_err(|error| match error.is_not_found() {
        true => ConfigError::Choice(format!(
            "the data of the run, {}, do not exist here: every rank needs this file; {RELATIVE_PATH}",
            path.display()
        ))
        .into(),
        false => JobError::from(error),
    })?;
    match D::downcast(&file) {
        Some(_) => Ok(Some(file)),
        None => Err(refuse_kind(&file, run.model_name(), D::WORDS.kind)),
    }
}
