//! Agents with different classes, which the paper does not have: comparison of cavity distributions in more than a few dimensions.

use super::super::judge::{Case, mean_and_error, means_and_errors, minus};
use super::super::pictures::{Chart, curves};
use super::super::{Effort, Outcome};
use super::networks::NETWORK;
use super::runs::{
    AUTHORS, Contender, EXACT, FLOOR, LOGISTIC, NO_CAVITY, PARTICIPANTS, Race, Result, SITES, Setup, Shared, TOTAL,
};
use super::sets::Set;
use mpibayes::data::{Label, Partition, Scaling};
use mpibayes::methods::particles::dsvgd::{Caution, Curvature, SiteSettings};
use mpibayes::models::logistic::LogisticSettings;
use mpibayes::models::network::NetworkSettings;
use mpibayes::models::{DataSchema, Output};
use std::sync::Arc;

const FULL: Contender = Contender::Sites(SiteSettings { caution: Caution::Fixed(1.0), curvature: Curvature::Full, rows: 2000 });
const SHARED: Contender =
    Contender::Sites(SiteSettings { caution: Caution::Fixed(1.0), curvature: Curvature::Shared, rows: 2000 });

/// Visits to every agent with digits.
const VISITS: u64 = 10;

/// The classes of each agent.
fn held(classes: &[&[i64]]) -> Partition {
    let label = |&class: &i64| Label::Whole(class);
    Partition::Labels(classes.iter().map(|classes| classes.iter().map(label).collect()).collect())
}

/// Mean accuracy over the last sweep of all agents, seed by seed.
fn last_sweep(race: &Race, contender: Contender, setup: Setup, agents: u64) -> Vec<f64> {
    race.late(contender, "accuracy", setup.rounds - agents + 1)
}

/// Runs all methods and checks the best cavity distribution: it must meet the criterion, and be more accurate than all others but sites and
/// SVGD.
#[allow(clippy::too_many_arguments, reason = "a table of settings")]
fn judged<F: mpibayes::number::Real>(
    title: &str,
    caption: &str,
    lineup: &[Contender],
    setup: Setup,
    problems: &[Shared<F>],
    agents: u64,
    best: Contender,
    criterion: impl Fn(&mut Case, &Race),
) -> Result<Outcome> {
    let race = Race::run(lineup, setup, problems)?;
    let accuracy = |contender| last_sweep(&race, contender, setup, agents);
    let mut case = Case::default();
    criterion(&mut case, &race);
    for &other in
        lineup.iter().filter(|&&other| other != best && other != Contender::Svgd && !matches!(other, Contender::Sites(_)))
    {
        let more = minus(&accuracy(best), &accuracy(other));
        case.above(format!("accuracy of {} less that of {}, last sweep", best.name(), other.name()), more, 0.0).is_ours();
    }
    for &contender in lineup {
        case.shows(format!("{}: accuracy, last sweep", contender.name()), &accuracy(contender), "");
        case.shows(format!("{}: log-likelihood in the end", contender.name()), &race.last(contender, "log_likelihood"), "");
        case.shows(format!("{}: expected calibration error in the end", contender.name()), &race.last(contender, "ece"), "");
    }
    let chart = Chart::new("", "round", "test accuracy", race.lines("accuracy"));
    Ok(case.judged(Some(curves(title, vec![chart], caption))))
}

fn mnist(effort: Effort, title: &str, classes: &[&[i64]], least: f64) -> Result<Outcome> {
    let lineup = [SITES, Contender::Svgd, NO_CAVITY, FLOOR, EXACT, AUTHORS, PARTICIPANTS, TOTAL];
    let set = Set::images(false, Scaling::Principal)?;
    let model = NetworkSettings { hidden: vec![100], ..NetworkSettings::default() }.build(784, Output::Classes(10))?;
    let model = Arc::new(model);
    let agents = classes.len();
    let share = effort.share.min(5);
    let rounds = VISITS.div_ceil(share) * agents as u64;
    let setup = Setup { particles: 10, rounds, steps: 50, distillation: 50, every: agents.div_ceil(4) as u64, ..NETWORK };
    let problems: Vec<Shared<f32>> =
        (1..=effort.seeds).map(|seed| set.dealt(model.clone(), agents, &held(classes), seed, 5000)).collect::<Result<_>>()?;
    let caption = format!(
        "784-100-10 on all 784 pixels in principal axes, N = 10, {rounds} rounds of L = L' = 50 steps, judged on 5,000 test images; {}.",
        means_and_errors(effort.seeds)
    );
    judged(title, &caption, &lineup, setup, &problems, agents as u64, SITES, |case, race| {
        let (mean, error) = mean_and_error(&last_sweep(race, SITES, setup, agents as u64));
        let holds = mean >= least || share > 1;
        case.must("accuracy with sites, last sweep", format!("{mean:.4} ± {error:.4}"), format!("at least {least}"), holds);
    })
}

/// Four agents with two or three digits each.
pub fn four(effort: Effort) -> Result<Outcome> {
    let classes: [&[i64]; 4] = [&[0, 1, 2], &[3, 4], &[5, 6, 7], &[8, 9]];
    mnist(effort, "Four agents, digits 012, 34, 567, 89", &classes, 0.94)
}

/// Ten agents with one digit each.
pub fn ten(effort: Effort) -> Result<Outcome> {
    let classes: Vec<[i64; 1]> = (0..10).map(|digit| [digit]).collect();
    let classes: Vec<&[i64]> = classes.iter().map(|class| class.as_slice()).collect();
    mnist(effort, "Ten agents, one digit each", &classes, 0.93)
}

/// Twenty agents with one class of Covertype each, ten of one class first.
pub fn covertype(effort: Effort) -> Result<Outcome> {
    let set = Set::covertype()?;
    let model = Arc::new(
        LogisticSettings { intercept: false, ..LogisticSettings::default() }
            .build(&DataSchema::new(set.dataset.features(), Output::Classes(2)))?,
    );
    let classes: Vec<&[i64]> = (0..20).map(|agent| if agent < 10 { [0_i64].as_slice() } else { [1].as_slice() }).collect();
    let rounds = 100;
    let setup = Setup { rounds, ..LOGISTIC };
    let seeds = 4 * effort.seeds;
    let problems: Vec<Shared<f64>> =
        (1..=seeds).map(|seed| set.dealt(model.clone(), 20, &held(&classes), seed, usize::MAX)).collect::<Result<_>>()?;
    let caption = format!(
        "Bayesian logistic regression, the sample of 20,000 rows in [0, 1], N = 6, {rounds} rounds of L = L' = 200 steps; {}.",
        means_and_errors(seeds)
    );
    let lineup = [FULL, SHARED, Contender::Svgd, NO_CAVITY, FLOOR, EXACT, PARTICIPANTS, TOTAL];
    judged("Covertype, one class on each of 20 agents", &caption, &lineup, setup, &problems, 20, FULL, |case, race| {
        let of = |contender| last_sweep(race, contender, setup, 20);
        case.within(
            "accuracy of whole matrices less that of SVGD on all data, last sweep",
            minus(&of(FULL), &of(Contender::Svgd)),
            0.01,
        )
        .is_ours();
    })
}
