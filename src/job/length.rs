//! The length of a finished run, and whether it can be made longer.

use super::error::JobError;
use super::findings::Findings;
use super::problem::wrong_method;
use crate::config::{ConfiguredMethod, Registry, Run, RunOf};
use crate::methods::tuning::Found;
use crate::methods::{Length, Table};
use crate::results::{Reporting, RunFolder};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The command that makes the finished run in a folder, with this configuration, twice as long, if it can be made longer.
pub fn doubling_command(folder: &Path, config: &str, registry: &Registry) -> Option<String> {
    let (key, value) = extendable_length(folder, config, registry)?;
    Some(format!("mpibayes resume {} --{key} +{value}", folder.display()))
}

/// If the finished run in a folder, with this configuration, can be made longer: the key of its length, such as `steps`, and the value.
pub(super) fn extendable_length(folder: &Path, config: &str, registry: &Registry) -> Option<(&'static str, u64)> {
    let Ok(Run::Table(run)) = Run::from_toml(config, registry) else { return None };
    let run_folder = RunFolder::new(folder, Duration::MAX, Reporting::Quiet);
    let method = resolved(&run, &run_folder).ok().filter(|_| run_folder.can_be_extended())?;
    let Length { key, value, .. } = method.length(run.settings.agents)?;
    Some((key, value))
}

/// The method of the run in a folder, with the settings that were found before it began.
pub(super) fn resolved(run: &RunOf<Table>, folder: &RunFolder) -> Result<Arc<dyn ConfiguredMethod<Table>>, JobError> {
    let agents = run.settings.agents;
    match (run.method.tuning(), Findings::kept(folder, None)?) {
        (None, _) => Ok(run.method.clone()),
        (Some(_), None) => run.method.tuned(Found::Nothing, agents).map_err(wrong_method),
        (Some(_), Some((_, findings))) => run.method.tuned(findings.for_method(), agents).map_err(wrong_method),
    }
}
