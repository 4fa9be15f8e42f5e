//! `mpibayes plan`: prints the planned trajectories of the chains of a run, so that another run can use them.

use super::output::print;
use crate::methods::chains::dsgld::PlannedTrajectories;
use crate::report::RunResults;
use crate::results::Table;
use anyhow::{Context, bail, ensure};
use std::path::PathBuf;
use std::process::ExitCode;

/// The table of planned trajectories: a row for each agent and each round in which the plan changes.
const PLANS: &str = "plans";

/// Arguments of `mpibayes plan`.
#[derive(clap::Args, Debug)]
pub struct PlanArgs {
    /// The folder of a run of dsgld, or its result file
    #[arg(value_name = "RUN")]
    pub run: PathBuf,
}

/// Prints the plans as a value of `[method] plans`.
///
/// # Errors
/// When there is no such run, or it has no plans.
pub fn run(args: &PlanArgs) -> anyhow::Result<ExitCode> {
    let RunResults { file, path } = RunResults::open(&args.run)?;
    let path = path.display();
    let table = file
        .find_table(PLANS)?
        .with_context(|| format!("{path}: this run has no plan of trajectories; runs of dsgld have one"))?;
    let plans = planned_trajectories(&table).with_context(|| format!("{path}: the table {PLANS}"))?;
    let each = plans.iter().map(|PlannedTrajectories { round, updates }| {
        let updates: Vec<String> = updates.iter().map(|updates| format!("{updates:?}")).collect();
        format!("{{ round = {round}, updates = [{}] }}", updates.join(", "))
    });
    print(&format!("[{}]\n", each.collect::<Vec<_>>().join(", ")))?;
    Ok(ExitCode::SUCCESS)
}

/// The trajectories by the round from which they apply.
fn planned_trajectories(table: &Table) -> anyhow::Result<Vec<PlannedTrajectories>> {
    let column = |name: &str| table.column(name).with_context(|| format!("it has no column {name}"));
    let (agents, updates) = (column("agent_number")?, column("updates")?);
    let mut plans: Vec<PlannedTrajectories> = Vec::new();
    for ((&round, agent), updates) in table.step.iter().zip(agents).zip(updates) {
        let last = match plans.last_mut() {
            Some(last) if last.round == round => last,
            _ => {
                plans.push(PlannedTrajectories { round, updates: Vec::new() });
                plans.last_mut().context("no plan")?
            }
        };
        ensure!(
            *agent == last.updates.len() as f64,
            "the plan of round {round} does not list each agent once: the table is damaged"
        );
        last.updates.push(*updates);
    }
    let agents = plans.first().map_or(0, |plan| plan.updates.len());
    if let Some(PlannedTrajectories { round, .. }) = plans.iter().find(|plan| plan.updates.len() != agents) {
        bail!("the plan of round {round} does not list each agent once: the table is damaged");
    }
    Ok(plans)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn rows_become_plans() {
        let table = |agents: Vec<f64>| Table {
            step: vec![0, 0, 7, 7],
            agent: vec![None; 4],
            columns: vec![("agent_number".into(), agents), ("updates".into(), vec![4.0, 12.0, 6.5, 3.25])],
        };
        let planned = |round, updates: [f64; 2]| PlannedTrajectories { round, updates: updates.to_vec() };
        assert_eq!(
            planned_trajectories(&table(vec![0.0, 1.0, 0.0, 1.0])).unwrap(),
            [planned(0, [4.0, 12.0]), planned(7, [6.5, 3.25])]
        );
        let message = |table: &Table| planned_trajectories(table).unwrap_err().to_string();
        assert!(message(&table(vec![0.0, 1.0, 1.0, 0.0])).contains("round 7"));
        // The last agent of the last plan is missing.
        let mut shorter = table(vec![0.0, 1.0, 0.0]);
        shorter.step.pop();
        assert!(message(&shorter).contains("round 7"));
    }
}
