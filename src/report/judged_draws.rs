//! The draws that a run has, with their judgment: also of a run that goes on, whose summary does not judge them yet.

use super::coefficients::is_standardized;
use super::error::Result;
use super::evidence::Evidence;
use super::judgment::Judgment;
use super::posterior::PosteriorGroup;
use super::run::RunResults;
use super::summary::{draws_description, metrics_of_test_rows, progress};
use super::temperature;
use super::test_rows::TestRows;
use crate::metrics::temperature::Temperature;
use crate::results::{POSTERIOR, SampleKind};
use serde::Serialize;
use std::path::PathBuf;

/// The draws of a run with their judgment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JudgedDraws {
    /// The result file.
    pub file: PathBuf,
    /// The model, by its name in the configuration.
    pub model: String,
    /// Whether the run is finished; otherwise these are its draws so far.
    pub finished: bool,
    /// Completed rounds; 0 if unknown.
    pub rounds_done: u64,
    /// All rounds of the run; 0 if unknown.
    pub rounds_total: u64,
    /// Whether these draws can be used; none of a point.
    pub judgment: Option<Judgment>,
    /// How much larger than that of the posterior the variance of the draws is expected to be where it is narrowest, as a share, because of the
    /// step that was found; none where the step was made for all directions.
    pub expected_excess_variance: Option<f64>,
    /// What the draws predict for the test rows, all together.
    pub test_rows: Option<TestRows>,
    /// The configurational temperatures of all variables, if they were measured.
    pub temperatures: Vec<Temperature>,
    /// The draws with the estimates of their parameters.
    pub posterior: PosteriorGroup,
}

impl JudgedDraws {
    /// Judges the draws of a run; none if it has no draws of a posterior. If there are very many parameters, only every n-th is estimated, unless
    /// `all` is set.
    ///
    /// # Errors
    /// When the result file cannot be read.
    pub fn of(run: &RunResults, all: bool) -> Result<Option<Self>> {
        if !run.file.has_posterior()? {
            return Ok(None);
        }
        let posterior = PosteriorGroup::read(&run.file, POSTERIOR, all)?;
        let evidence = Evidence::of(run)?;
        let info = run.file.info();
        Ok(Some(Self {
            judgment: Judgment::of(std::slice::from_ref(&posterior), &evidence),
            file: run.path.clone(),
            model: info.model.clone(),
            finished: info.state.finished,
            rounds_done: info.state.done,
            rounds_total: info.state.total,
            expected_excess_variance: evidence.expected_excess_variance,
            test_rows: evidence.test_rows,
            temperatures: evidence.temperatures,
            posterior,
        }))
    }

    /// The judgment and what it is based on, as text: all parameters if `all` is set, otherwise the worst ones of
    /// chains, or some of each variable of particles.
    pub fn text(&self, all: bool) -> String {
        let judgment = self.judgment.as_ref().map_or("not judged: a single particle has no spread", |judgment| &judgment.text);
        let mut text = format!("{judgment}\n\n{}\n", self.file.display());
        if !self.finished {
            text += &format!("not finished{}: these are the draws so far\n", progress(self.rounds_done, self.rounds_total));
        }
        if let Some(test_rows) = self.test_rows.as_ref().filter(|_| self.posterior.kind == SampleKind::Chains) {
            text += &metrics_of_test_rows(test_rows);
        }
        text += &temperature::table(&self.temperatures);
        text + &draws_description(&self.posterior, all, &self.model, is_standardized(&self.model))
    }
}
