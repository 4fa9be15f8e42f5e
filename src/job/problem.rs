//! The inference problem of a run on a table: its model, and the rows of each agent.

use super::data::schema;
use super::error::JobError;
use super::ranks::Ranks;
use super::shards::{describe_sizes, open_assigned, open_numbered_rows};
use crate::cluster::AgentId;
use crate::config::{ConfigError, Precision, RunFileKind, RunOf, TableRunSettings};
use crate::data::{DataError, Dataset, ShardAssignment, Split};
use crate::methods::common::problem::OpenShard;
use crate::methods::{Problem, Sharing, Table};
use crate::models::{Output, require_data};
use crate::random::Seed;
use crate::settings::KeyError;
use std::sync::Arc;

/// A problem, and what else its rows are for.
pub(super) struct TableProblem<F> {
    /// The problem.
    pub problem: Problem<F>,
    /// Opens each agent's part of the test rows, if the model predicts and there are any.
    pub test_rows: Option<OpenShard<F>>,
    /// All training rows.
    pub rows: usize,
    /// The rows of the largest shard.
    pub largest_shard: usize,
    /// The sizes of the shards, in words.
    pub sizes: String,
}

/// The problem of a run.
///
/// # Errors
/// If the model or the method does not suit the data, or the rows cannot be split among the agents.
pub(super) fn table_problem<F: Precision>(
    run: &RunOf<Table>,
    dataset: Option<&Arc<Dataset>>,
    ranks: &Ranks,
) -> Result<TableProblem<F>, JobError> {
    let TableRunSettings { seed, agents, temperature, .. } = run.settings;
    let seed = Seed(seed);
    let sharing = run.method.sharing();
    let wrong_model = |error: KeyError| ConfigError::Settings(vec![error.below("model")]);
    let schema = dataset.map(|dataset| schema(dataset)).transpose()?;
    let built = F::model(run.model.as_ref(), schema.as_ref()).map_err(wrong_model)?;
    if built.own_rows == 0 {
        require_data(dataset).map_err(wrong_model)?;
    }
    let in_double = run.model.float64(schema.as_ref()).map_err(wrong_model)?;
    run.method.check_model(in_double.model.as_ref()).map_err(wrong_method)?;
    let (mut sizes, mut largest_shard) = (String::new(), built.own_rows.div_ceil(shards(run).max(1)));
    let (shard, test_rows): (OpenShard<F>, Option<OpenShard<F>>) = match dataset {
        None => (open_numbered_rows(built.own_rows, agents, sharing), None),
        Some(dataset) => {
            let hosts_all = ranks.are_one_process();
            let assignment = assign(run, dataset)?;
            let counts = counts(run, &assignment);
            largest_shard = counts.iter().copied().max().unwrap_or(0);
            sizes = describe_sizes(counts.into_iter(), Table::WORDS.entry);
            let train: OpenShard<F> = open_assigned(dataset, Split::Train, assignment, hosts_all);
            // A model that predicts nothing does not need test rows.
            let test = if built.model.output() == Output::Nothing { 0 } else { dataset.rows(Split::Test) };
            let slices = (test > 0).then(|| ShardAssignment::equal(Split::Test, test, agents as usize, seed)).transpose()?;
            let test_rows = slices.map(|slices| open_assigned(dataset, Split::Test, slices, hosts_all));
            (Arc::new(move |agent| train(sharing.shard(agent))), test_rows)
        }
    };
    let rows = dataset.map_or(built.own_rows, |dataset| dataset.rows(Split::Train));
    Ok(TableProblem {
        problem: Problem { model: built.model, agents, temperature, shard },
        test_rows,
        rows,
        largest_shard,
        sizes,
    })
}

/// The error for a setting of the method.
pub(super) fn wrong_method(error: KeyError) -> JobError {
    ConfigError::Settings(vec![error.below("method")]).into()
}

/// The rows of each shard.
pub(super) fn counts(run: &RunOf<Table>, assignment: &ShardAssignment) -> Vec<usize> {
    (0..shards(run)).map(|shard| assignment.count(shard)).collect()
}

/// How many shards a run on a table has.
fn shards(run: &RunOf<Table>) -> usize {
    run.method.sharing().shards(run.settings.agents as usize)
}

/// Assigns training rows to shards.
pub(super) fn assign(run: &RunOf<Table>, dataset: &Dataset) -> Result<ShardAssignment, DataError> {
    let (partition, seed) = run.data.as_ref().map(|data| (data.partition.clone(), data.seed)).unwrap_or_default();
    partition.assign(dataset, shards(run), Seed(seed.unwrap_or(run.settings.seed)))
}

/// The same problem with every row at one agent only, so that sums over agents count it once.
pub(super) fn counted_once<F: Precision>(problem: &Problem<F>, sharing: Sharing) -> Problem<F> {
    let all = problem.shard.clone();
    let once =
        move |agent: AgentId| all(agent).map(|shard| if sharing.shard(agent) == agent { shard } else { shard.without_rows() });
    Problem { shard: Arc::new(once), ..problem.clone() }
}
