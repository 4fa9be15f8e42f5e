//! What the judgment of a run is based on besides the estimates of its draws.

use super::error::Result;
use super::exchangeable::has_exchangeable_units;
use super::run::RunResults;
use super::temperature::temperatures_of;
use super::test_rows::TestRows;
use super::trajectories::Trajectories;
use crate::config::stored_table;
use crate::job::{EXCESS_KEY, RECALIBRATED_FROM, RECALIBRATION, TUNING};
use crate::methods::MethodSettings;
use crate::methods::variational::gvi::GviSettings;
use crate::methods::variational::pvi::PviSettings;
use crate::metrics::temperature::Temperature;
use crate::results::{POSTERIOR, ResultFile, SampleKind};

/// What the judgment of a run is based on besides the estimates of its draws.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// The trajectories of Hamiltonian Monte Carlo.
    pub trajectories: Option<Trajectories>,
    /// How well the draws predict the test rows, and whether chains agree about them; none if they were not evaluated.
    pub test_rows: Option<TestRows>,
    /// The configurational temperatures of all variables, if they were measured.
    pub temperatures: Vec<Temperature>,
    /// By how much the variance of the draws is expected to exceed that of the posterior, as a share of it, in the directions of largest
    /// curvature. None where steps suit all directions, and for moved draws.
    pub expected_excess_variance: Option<f64>,
    /// The result file whose draws were moved, if these are moved draws.
    pub recalibrated_from: Option<String>,
    /// Whether the last draw of a chain, or the only particle, is not finite.
    pub(super) last_draws_diverged: bool,
    /// Whether the run file says that bias is not to be measured, and it was not measured later.
    pub(super) bias_is_off: bool,
    /// Whether the units of the model can change places, so that single parameters mean nothing.
    pub(super) has_exchangeable_units: bool,
    /// Whether the draws are of a normal distribution that the method fits.
    pub(super) draws_are_of_fitted_normal: bool,
    /// Whether this is a built-in method that samples the posterior, instead of finding a point.
    pub(super) method_samples: bool,
    /// Whether the run file gives the step, which is otherwise found.
    pub(super) step_is_given: bool,
    /// The command that makes the run longer, in parentheses after a space; empty if it cannot be made longer.
    pub(super) how_to_extend: String,
}

impl Evidence {
    /// The evidence of a run.
    ///
    /// # Errors
    /// When the result file cannot be read.
    pub fn of(run: &RunResults) -> Result<Self> {
        let file = &run.file;
        // If the configuration cannot be read, its keys count as not set.
        let config = stored_table(&file.info().config).unwrap_or_default();
        let setting = |table: &str, key: &str| config.get(table)?.get(key);
        let recalibration = file.grid(RECALIBRATION)?;
        Ok(Self {
            trajectories: Trajectories::of(file)?,
            test_rows: TestRows::of(file)?,
            temperatures: temperatures_of(file)?,
            // What the file says is about the draws before they were moved.
            expected_excess_variance: if recalibration.is_some() { None } else { excess_variance(file)? },
            recalibrated_from: recalibration.and_then(|grid| grid.list(RECALIBRATED_FROM).first().cloned()),
            last_draws_diverged: last_draws_diverged(file)?,
            bias_is_off: !file.has_additions() && setting("evaluate", "bias") == Some(&toml::Value::Boolean(false)),
            has_exchangeable_units: has_exchangeable_units(&file.info().model),
            draws_are_of_fitted_normal: [PviSettings::NAME, GviSettings::NAME].contains(&file.info().method.as_str()),
            method_samples: run.has_draws_to_judge(),
            step_is_given: setting("method", "step").is_some_and(|step| step.as_str() != Some("auto")),
            how_to_extend: run.doubling_command().map_or_else(String::new, |command| format!(" (`{command}`)")),
        })
    }
}

fn last_draws_diverged(file: &ResultFile) -> Result<bool> {
    if !file.has_posterior()? {
        return Ok(false);
    }
    let lengths = file.lengths(POSTERIOR)?;
    // Other particles are estimated.
    if file.kind(POSTERIOR)? != SampleKind::Chains && lengths.iter().sum::<usize>() != 1 {
        return Ok(false);
    }
    let lengths = lengths.into_iter().enumerate();
    let last: Vec<_> = lengths.filter_map(|(chain, length)| Some((chain, length.checked_sub(1)?))).collect();
    Ok(!file.draws::<f64>(POSTERIOR, &last)?.iter().all(|value| value.is_finite()))
}

fn excess_variance(file: &ResultFile) -> Result<Option<f64>> {
    Ok(file.grid(TUNING)?.and_then(|grid| {
        let place = grid.list("key").iter().position(|key| key == EXCESS_KEY)?;
        grid.array("value")?.iter().nth(place).copied()
    }))
}
