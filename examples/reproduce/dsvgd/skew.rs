//! Agents with different classes, which the paper does not have: comparison of cavity distributions in more than a few dimensions.

use super::super::files::Runs;
use super::super::judge::{Case, mean_and_error, means_and_errors, minus};
use super::super::pictures::{Chart, curves};
use super::super::{Effort, Outcome};
use super::runs::{AUTHORS, Contender, EXACT, FLOOR, FULL, NO_CAVITY, PARTICIPANTS, Race, Result, SHARED, SITES, SVGD, TOTAL};
use super::sets::Set;
use mpibayes::data::Scaling;
use std::sync::Arc;

/// Mean accuracy over the last sweep of all agents, seed by seed.
fn last_sweep(race: &Race, contender: Contender, runs: &Runs) -> Result<Vec<f64>> {
    let (rounds, agents): (u64, u64) = (runs.value("method.rounds")?, runs.value("agents")?);
    Ok(race.late(contender, "accuracy", rounds - agents + 1))
}

/// Runs all methods and checks the best cavity distribution: it must meet the criterion, and be more accurate than all others but sites and
/// SVGD.
fn judged(
    title: &str,
    caption: &str,
    lineup: &[Contender],
    runs: &Runs,
    sets: &[Arc<Set>],
    best: Contender,
    criterion: impl Fn(&mut Case, &Race) -> Result<()>,
) -> Result<Outcome> {
    let race = Race::run(lineup, runs, sets)?;
    let accuracy = |contender| last_sweep(&race, contender, runs);
    let mut case = Case::default();
    criterion(&mut case, &race)?;
    for &other in lineup.iter().filter(|other| ![best, SVGD, SITES, SHARED, FULL].contains(other)) {
        let more = minus(&accuracy(best)?, &accuracy(other)?);
        case.above(format!("accuracy of {best} less that of {other}, last sweep"), more, 0.0).is_ours();
    }
    for &contender in lineup {
        case.shows(format!("{contender}: accuracy, last sweep"), &accuracy(contender)?, "");
        case.shows(format!("{contender}: log-likelihood in the end"), &race.last(contender, "log_likelihood"), "");
        case.shows(format!("{contender}: expected calibration error in the end"), &race.last(contender, "ece"), "");
    }
    let chart = Chart::new("", "round", "test accuracy", race.lines("accuracy"));
    Ok(case.judged(Some(curves(title, vec![chart], caption))))
}

fn mnist(effort: Effort, files: &[Runs], title: &str, least: f64) -> Result<Outcome> {
    let lineup = [SITES, SVGD, NO_CAVITY, FLOOR, EXACT, AUTHORS, PARTICIPANTS, TOTAL];
    let sets = Set::images(false, Scaling::Principal, 5000)?.shared(effort.seeds);
    let mut runs = files[0].clone();
    let (rounds, agents): (u64, u64) = (runs.value("method.rounds")?, runs.value("agents")?);
    let share = effort.share.min(5);
    runs = runs.set(&format!("method.rounds={}", (rounds / agents).div_ceil(share) * agents))?;
    let caption = format!(
        "784-100-10 on all 784 pixels in principal axes, N = {}, {} rounds of L = L' = {} steps, judged on 5,000 test images; {}.",
        runs.value::<u64>("method.particles")?,
        runs.value::<u64>("method.rounds")?,
        runs.value::<u64>("method.local_steps")?,
        means_and_errors(effort.seeds)
    );
    judged(title, &caption, &lineup, &runs, &sets, SITES, |case, race| {
        let (mean, error) = mean_and_error(&last_sweep(race, SITES, &runs)?);
        let holds = mean >= least || share > 1;
        case.must("accuracy with sites, last sweep", format!("{mean:.4} ± {error:.4}"), format!("at least {least}"), holds);
        Ok(())
    })
}

/// Four agents with two or three digits each.
pub fn four(effort: Effort, files: &[Runs]) -> Result<Outcome> {
    mnist(effort, files, "Four agents, digits 012, 34, 567, 89", 0.94)
}

/// Ten agents with one digit each.
pub fn ten(effort: Effort, files: &[Runs]) -> Result<Outcome> {
    mnist(effort, files, "Ten agents, one digit each", 0.93)
}

/// Twenty agents with one class of Covertype each, ten of one class first.
pub fn covertype(effort: Effort, files: &[Runs]) -> Result<Outcome> {
    let seeds = 4 * effort.seeds;
    let (runs, sets) = (&files[0], Set::covertype()?.shared(seeds));
    let caption = format!(
        "Bayesian logistic regression, the sample of 20,000 rows in [0, 1], N = {}, {} rounds of L = L' = {} steps; {}.",
        runs.value::<u64>("method.particles")?,
        runs.value::<u64>("method.rounds")?,
        runs.value::<u64>("method.local_steps")?,
        means_and_errors(seeds)
    );
    let lineup = [FULL, SHARED, SVGD, NO_CAVITY, FLOOR, EXACT, PARTICIPANTS, TOTAL];
    judged("Covertype, one class on each of 20 agents", &caption, &lineup, runs, &sets, FULL, |case, race| {
        let difference = minus(&last_sweep(race, FULL, runs)?, &last_sweep(race, SVGD, runs)?);
        case.within("accuracy of whole matrices less that of SVGD on all data, last sweep", difference, 0.01).is_ours();
        Ok(())
    })
}
