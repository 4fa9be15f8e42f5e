//! The coefficients of several regressions side by side, in the units of the data.

use super::coefficients::{Coefficient, CoefficientOptions, Coefficients, InDataUnits, Per};
use super::error::{ReportError, Result};
use super::run::RunResults;
#[cfg(feature = "plots")]
use crate::plots::Figure;
use crate::text;
use serde::Serialize;

/// The coefficients of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CoefficientsOfRun {
    /// The run.
    pub run: String,
    /// Its coefficients.
    #[serde(flatten)]
    pub coefficients: Coefficients,
}

impl CoefficientsOfRun {
    /// Reads those of runs, each with its name. The runs may have different models, priors and data.
    ///
    /// # Errors
    /// When a run has no coefficients in the units of the data, or cannot be read.
    pub fn read<'a>(
        runs: impl IntoIterator<Item = (&'a str, &'a RunResults)>,
        options: &CoefficientOptions,
    ) -> Result<Vec<Self>> {
        // A column need not be in all runs.
        let of_each = CoefficientOptions { allows_other_columns: true, ..options.clone() };
        let one = |(name, run): (&str, &RunResults)| match Coefficients::of(&run.file, &of_each)? {
            InDataUnits::Table(coefficients) => Ok(Self { run: name.to_owned(), coefficients }),
            InDataUnits::Unknown(why) => {
                Err(ReportError::missing(&run.path, format!("it has no coefficients in the units of the data: {why}")))
            }
            InDataUnits::Nothing => Err(ReportError::missing(&run.path, "it is no regression with draws")),
        };
        let found = runs.into_iter().map(one).collect::<Result<Vec<Self>>>()?;
        let is_there = |per: &&Per| {
            let is_named = |row: &Coefficient| row.name.ends_with(&format!("{} (per {})", per.column, per.units));
            found.iter().flat_map(|run| &run.coefficients.rows).any(is_named)
        };
        match options.per.iter().find(|per| !is_there(per)) {
            None => Ok(found),
            Some(Per { column, .. }) => Err(ReportError::Missing(format!("--per {column}: no run has such a column"))),
        }
    }

    /// What the numbers of columns and levels are.
    fn what_is_shown(&self) -> String {
        let of = self.coefficients.odds_of.as_ref().map_or_else(String::new, |class| format!(" of {class}"));
        match self.coefficients.ratio {
            Some(ratio) => format!("columns and levels: {ratio}{of}, the median of e^coefficient; other terms: mean"),
            None => "all terms: mean".to_owned(),
        }
    }

    fn find(&self, term: &str) -> Option<&Coefficient> {
        self.coefficients.rows.iter().find(|row| row.name == term)
    }
}

/// The terms of all runs, in the order of the first run that has each.
fn terms(runs: &[CoefficientsOfRun]) -> Vec<&Coefficient> {
    let mut terms: Vec<&Coefficient> = Vec::new();
    for row in runs.iter().flat_map(|run| &run.coefficients.rows) {
        if !terms.iter().any(|term| term.name == row.name) {
            terms.push(row);
        }
    }
    terms
}

/// A table with a row for each term and a column for each run: the ratio where there is one, else the mean, with its interval. Without
/// `all`, effects of groups are left out.
pub fn table(runs: &[CoefficientsOfRun], all: bool) -> String {
    let terms = terms(runs);
    let shown: Vec<&&Coefficient> = terms.iter().filter(|term| all || !term.is_of_group()).collect();
    let mut columns = vec![("term".to_owned(), shown.iter().map(|term| term.name.clone()).collect())];
    for run in runs {
        let cell = |term: &&&Coefficient| match run.find(&term.name) {
            None => "-".to_owned(),
            Some(Coefficient { mean, interval, ratio, .. }) => {
                text::with_interval(ratio.unwrap_or([*mean, interval[0], interval[1]]))
            }
        };
        columns.push((run.run.clone(), shown.iter().map(cell).collect()));
    }
    let interval = runs.first().map_or_else(String::new, |run| run.coefficients.interval.description());
    let notes: Vec<String> = runs.iter().map(CoefficientsOfRun::what_is_shown).collect();
    let note = match notes.first() {
        Some(first) if notes.iter().all(|note| note == first) => format!("  {first}\n"),
        _ => runs.iter().zip(&notes).map(|(run, note)| format!("  {}: {note}\n", run.run)).collect(),
    };
    let more = match terms.len() - shown.len() {
        0 => String::new(),
        more => format!("  {} of groups omitted: --all shows them\n", text::counted(more, "effect")),
    };
    format!("in the units of the data, with the {interval}\n{}{note}{more}", text::table(&columns))
}

/// A forest plot of the effects of columns, with a color for each run, or only these terms. Without `all`, effects of groups that are not
/// named are left out.
///
/// # Errors
/// When no run has such a term, or the runs have different kinds of ratios.
#[cfg(feature = "plots")]
pub fn forest(runs: &[CoefficientsOfRun], terms: &[String], all: bool) -> Result<Figure> {
    let kind = |run: &CoefficientsOfRun| run.coefficients.ratio.unwrap_or("coefficient");
    if let [first, others @ ..] = runs
        && let Some(other) = others.iter().find(|run| run.coefficients.ratio != first.coefficients.ratio)
    {
        return Err(ReportError::Missing(format!(
            "--output: the terms of {} are {}s, those of {} are {}s, which have no axis in common: compare models of one kind",
            first.run,
            kind(first),
            other.run,
            kind(other)
        )));
    }
    let has = |term: &String| runs.iter().any(|run| !run.coefficients.effects(std::slice::from_ref(term), true).is_empty());
    if let Some(term) = terms.iter().find(|term| !has(term)) {
        return Err(ReportError::Missing(format!(
            "--parameter {term}: no run has such a column or group; leave out --output to see all terms"
        )));
    }
    let named: Vec<(&str, &Coefficients)> = runs.iter().map(|run| (run.run.as_str(), &run.coefficients)).collect();
    let none = || ReportError::Missing("--output: these runs have no effects of columns; --all draws those of groups".into());
    Coefficients::forest(&named, terms, all).ok_or_else(none)
}

/// A line for each run and term.
///
/// # Errors
/// When a record cannot be written.
pub fn csv(runs: &[CoefficientsOfRun]) -> csv::Result<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(["run", "term", "mean", "sd", "low", "high", "ratio", "ratio_low", "ratio_high"])?;
    for run in runs {
        for row in &run.coefficients.rows {
            let numbers = [row.mean, row.sd, row.interval[0], row.interval[1]].map(|value| value.to_string());
            let ratio = row.ratio.map_or_else(<[String; 3]>::default, |ratio| ratio.map(|value| value.to_string()));
            writer.write_record([run.run.clone(), row.name.clone()].into_iter().chain(numbers).chain(ratio))?;
        }
    }
    Ok(String::from_utf8_lossy(&writer.into_inner().map_err(|error| error.into_error())?).into_owned())
}
