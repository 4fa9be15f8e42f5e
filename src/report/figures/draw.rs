//! Figures of a run by kind.

use super::kind::FigureKind;
use crate::methods::common::full_scores::SCORES;
use crate::metrics::Classification;
use crate::plots::{self, Figure, HistoryOptions};
use crate::report::coefficients::{CoefficientOptions, Coefficients, InDataUnits, is_standardized};
use crate::report::error::Result;
use crate::report::posterior::PosteriorGroup;
use crate::report::run::RunResults;
use crate::report::test_rows::TestRows;
use crate::results::{POSTERIOR, ResultFile, SampleKind, Samples};
use std::cell::OnceCell;

/// The figures of a run, whose draws are read when the first figure needs them.
pub struct RunFigures<'a> {
    run: &'a RunResults,
    samples: OnceCell<Option<Samples>>,
    /// What is wanted of coefficients.
    coefficients: CoefficientOptions,
}

impl<'a> RunFigures<'a> {
    /// The figures of a run, with what is wanted of coefficients.
    pub fn new(run: &'a RunResults, coefficients: CoefficientOptions) -> Self {
        Self { run, samples: OnceCell::new(), coefficients }
    }

    fn samples(&self) -> Result<Option<&Samples>> {
        if self.samples.get().is_none() {
            let file = &self.run.file;
            // The marginal of a single word probability shows nothing, so topics have no such figures.
            let has_parameters = file.has_posterior()? && file.kind(POSTERIOR)? != SampleKind::Topics;
            let samples = if has_parameters { Some(file.samples(POSTERIOR)?) } else { None };
            return Ok(self.samples.get_or_init(|| samples).as_ref());
        }
        Ok(self.samples.get().and_then(Option::as_ref))
    }

    /// The figure of a kind; `None` if the run has no data for it.
    ///
    /// # Errors
    /// When the results cannot be read, or there is no such column or parameter.
    pub fn figure(&self, kind: FigureKind, options: &HistoryOptions, parameters: &[String]) -> Result<Option<Figure>> {
        let figure = match kind {
            FigureKind::History => plots::history(&self.run.file, options)?,
            FigureKind::Reliability => match classes_of_draws(&self.run.file)? {
                Some(found) => Some(plots::reliability_of_draws(&found)),
                None => plots::reliability(&self.run.file)?,
            },
            FigureKind::Posterior => self.samples()?.map(|samples| plots::posterior(samples, parameters)).transpose()?.flatten(),
            FigureKind::Chains => self
                .samples()?
                .filter(|samples| samples.kind == SampleKind::Chains)
                .map(|samples| plots::chains(samples, parameters))
                .transpose()?
                .flatten(),
            FigureKind::Bias => self.bias()?,
            FigureKind::Coefficients => match Coefficients::of(&self.run.file, &self.coefficients)? {
                InDataUnits::Table(coefficients) => Coefficients::forest(&[("", &coefficients)], parameters, true),
                InDataUnits::Unknown(_) | InDataUnits::Nothing => None,
            },
        };
        let is_of_parameters = matches!(kind, FigureKind::Posterior | FigureKind::Chains);
        Ok(figure.map(|mut figure| {
            if is_of_parameters && is_standardized(&self.run.file.info().model) {
                figure.caption.push_str(
                    " Parameters are those of standardized columns; the figure coefficients has the units of the data.",
                );
            }
            Figure { subtitle: self.run.heading(), ..figure }
        }))
    }

    fn bias(&self) -> Result<Option<Figure>> {
        if !self.run.file.has(SCORES) {
            return Ok(None);
        }
        let group = PosteriorGroup::read(&self.run.file, POSTERIOR, false)?;
        let names: Vec<String> = group.estimates.into_iter().map(|parameter| parameter.name).collect();
        Ok(group.bias.and_then(|bias| plots::bias(&bias, &names)))
    }

    /// A scatter plot of two parameters; `None` if the run has no draws.
    ///
    /// # Errors
    /// When the results cannot be read, or there is no such parameter.
    pub fn pair(&self, first: &str, second: &str) -> Result<Option<Figure>> {
        let figure = self.samples()?.map(|samples| plots::pair(samples, first, second)).transpose()?.flatten();
        Ok(figure.map(|figure| Figure { subtitle: self.run.heading(), ..figure }))
    }

    /// The kinds of figures that the run has data for.
    ///
    /// # Errors
    /// When the results cannot be read.
    pub fn available(&self) -> Result<Vec<FigureKind>> {
        let mut kinds = Vec::new();
        for kind in FigureKind::ALL {
            if self.figure(kind, &HistoryOptions::default(), &[])?.is_some() {
                kinds.push(kind);
            }
        }
        Ok(kinds)
    }
}

/// The metrics of predictions by all draws of all chains, if the run has chains and classes.
///
/// # Errors
/// When the file cannot be read.
pub(super) fn classes_of_draws(file: &ResultFile) -> Result<Option<Classification>> {
    let has_chains = file.has_posterior()? && file.kind(POSTERIOR)? == SampleKind::Chains;
    let test_rows = if has_chains { TestRows::of(file)? } else { None };
    Ok(test_rows.and_then(|rows| rows.classes))
}
