//! Bayesian neural networks: regression (Fig. 6), classification (Fig. 7) and calibration (Figs. 8, 19, 20).

use super::super::judge::{Case, means_and_errors, minus};
use super::super::pictures::{Chart, Curves, curves};
use super::super::workers::side_by_side;
use super::super::{Effort, Outcome};
use super::runs::{AUTHORS, Contender, Course, FLOOR, LOGISTIC, NO_CAVITY, PARTICIPANTS, Race, Result, Setup, Shared, TOTAL};
use super::sets::Set;
use mpibayes::data::{Generator, Partition, Scaling};
use mpibayes::kernels::adagrad::Optimizer;
use mpibayes::models::Output;
use mpibayes::models::network::NetworkSettings;
use std::sync::Arc;

/// The constants of the networks.
pub const NETWORK: Setup =
    Setup { particles: 20, optimizer: Optimizer::Adagrad { step: 1e-3, decay: 0.9, fudge: 1e-6 }, ..LOGISTIC };

fn dealt(set: &Set, hidden: usize, agents: usize, seed: u64, tests: usize) -> Result<Shared<f32>> {
    let output = match set.dataset.classes().len() {
        0 => Output::Number,
        classes => Output::Classes(classes),
    };
    let model = NetworkSettings { hidden: vec![hidden], ..NetworkSettings::default() }.build(set.dataset.features(), output)?;
    set.dealt(Arc::new(model), agents, &Partition::Equal, seed, tests)
}

const ALL: [Contender; 7] = [FLOOR, NO_CAVITY, AUTHORS, PARTICIPANTS, TOTAL, Contender::Svgd, Contender::Dsgld];

fn regression(
    effort: Effort,
    title: &str,
    setup: Setup,
    make: impl Fn(u64, usize) -> Result<Shared<f32>> + Sync,
) -> Result<Outcome> {
    let seeds: Vec<u64> = (1..=effort.seeds).collect();
    let mut case = Case::default();
    let mut charts = Vec::new();
    for agents in [2, 20] {
        let problems = side_by_side(&seeds, |&seed| make(seed, agents))?;
        let race = Race::run(&ALL, setup, &problems)?;
        let late = |contender, metric| race.late(contender, metric, setup.rounds - 2);
        // In units of the targets' standard deviation, far above the errors.
        let unit: Vec<f64> = problems.iter().map(|problem| problem.pooled.target_unit()).collect();
        let scaled = |values: Vec<f64>| values.iter().zip(&unit).map(|(value, unit)| value / unit).collect::<Vec<f64>>();
        for other in [PARTICIPANTS, TOTAL, Contender::Dsgld] {
            let more = scaled(minus(&late(other, "rmse"), &late(FLOOR, "rmse")));
            case.above(format!("K = {agents}: RMSE of {} less DSVGD's, in sd of the targets", other.name()), more, -0.005);
        }
        let same = scaled(minus(&late(AUTHORS, "rmse"), &late(NO_CAVITY, "rmse")));
        case.within(
            format!("K = {agents}: RMSE with the authors' estimate less that without cavity, in sd of the targets"),
            same,
            0.005,
        )
        .is_ours();
        for contender in ALL {
            case.shows(format!("K = {agents}, {}: RMSE, last three rounds", contender.name()), &late(contender, "rmse"), "");
            case.shows(format!("K = {agents}, {}: log-likelihood", contender.name()), &late(contender, "log_likelihood"), "");
        }
        charts.push(
            Chart::new(&format!("K = {agents} agents"), "round", "test RMSE, units of the targets", race.lines("rmse"))
                .within(0.0, unit[0]),
        );
    }
    let caption = format!(
        "N = 20, {} rounds, L = L' = {}; FedAvg learns its noise along, without prior; errors above the targets' standard deviation are not \
         shown; {}.",
        setup.rounds,
        setup.steps,
        means_and_errors(effort.seeds)
    );
    Ok(case.judged(Some(curves(title, charts, &caption))))
}

/// Fig. 6 on Kin8nm.
pub fn kin8nm(effort: Effort) -> Result<Outcome> {
    let rounds = if effort.share > 1 { 10 } else { 20 };
    regression(effort, "Network regression: Kin8nm", Setup { rounds, every: 1, ..NETWORK }, |seed, agents| {
        dealt(&Set::kin8nm(usize::try_from(seed)?)?, 50, agents, seed, usize::MAX)
    })
}

/// Fig. 6 on the stand-in for Year.
pub fn year(effort: Effort) -> Result<Outcome> {
    let (rounds, steps) = if effort.share > 1 { (5, 20) } else { (10, 100) };
    let setup = Setup { rounds, steps, distillation: steps, langevin: 0.0005, ..NETWORK };
    regression(effort, "Network regression: a stand-in for Year", setup, |seed, agents| {
        dealt(&Set::generated(Generator::Year, 20_000, 2000, seed)?, 100, agents, seed, usize::MAX)
    })
}

/// The maximum of L, which limits the time on a machine with two cores.
fn steps(effort: Effort) -> u64 {
    if effort.share > 1 { 5 } else { 50 }
}

fn classification(effort: Effort, fashion: bool) -> Result<Outcome> {
    let set = Set::images(fashion, Scaling::Pixels)?;
    let name = if fashion { "Fashion-MNIST" } else { "MNIST" };
    let steps = steps(effort);
    let lineup = [FLOOR, NO_CAVITY, PARTICIPANTS, TOTAL, Contender::Svgd];
    let mut case = Case::default();
    let mut charts = Vec::new();
    let seeds: Vec<u64> = (1..=effort.seeds).collect();
    for agents in [2, 20] {
        let problems: Vec<Shared<f32>> = seeds.iter().map(|&seed| dealt(&set, 100, agents, seed, 2000)).collect::<Result<_>>()?;
        // If no agent is visited twice, distilled factors are not used.
        let distillation = if agents == 20 { 0 } else { steps };
        let race = Race::run(&lineup, Setup { steps, distillation, every: 2, ..NETWORK }, &problems)?;
        let of = |contender| race.last(contender, "accuracy");
        for other in [PARTICIPANTS, TOTAL] {
            let difference = minus(&of(FLOOR), &of(other));
            case.above(format!("K = {agents}: accuracy of DSVGD less that of {}", other.name()), difference, 0.0);
        }
        for contender in lineup {
            case.shows(format!("K = {agents}, {}: accuracy", contender.name()), &of(contender), "");
            case.shows(
                format!("K = {agents}, {}: log-likelihood", contender.name()),
                &race.last(contender, "log_likelihood"),
                "",
            );
        }
        charts.push(Chart::new(&format!("K = {agents} agents"), "round", "test accuracy", race.lines("accuracy")));
    }
    let caption = format!(
        "784-100-10, N = 20, ten rounds of L = L' = {steps} steps (paper: 200), judged on 2,000 test images; {}.",
        means_and_errors(effort.seeds)
    );
    Ok(case.judged(Some(curves(&format!("Network classification: {name}"), charts, &caption))))
}

/// Fig. 7 on MNIST.
pub fn mnist(effort: Effort) -> Result<Outcome> {
    classification(effort, false)
}

/// Fig. 7 on Fashion-MNIST.
pub fn fashion(effort: Effort) -> Result<Outcome> {
    classification(effort, true)
}

const WIDTHS: [usize; 4] = [25, 50, 100, 200];

/// Figs. 8 and 19.
pub fn widths(effort: Effort) -> Result<Outcome> {
    let set = Set::images(true, Scaling::Pixels)?;
    let steps = steps(effort);
    let lineup = [FLOOR, NO_CAVITY, PARTICIPANTS, TOTAL, Contender::Svgd];
    let setup = Setup { steps, distillation: 0, every: 10, ..NETWORK };
    let seeds: Vec<u64> = (1..=effort.seeds).collect();
    let mut races = Vec::new();
    for hidden in WIDTHS {
        let problems: Vec<Shared<f32>> = seeds.iter().map(|&seed| dealt(&set, hidden, 20, seed, 5000)).collect::<Result<_>>()?;
        races.push(Race::run(&lineup, setup, &problems)?);
    }
    let mut case = Case::default();
    let ece = |place: usize, contender| races[place].last(contender, "ece");
    for (place, hidden) in WIDTHS.iter().enumerate() {
        let better = minus(&ece(place, PARTICIPANTS), &ece(place, FLOOR));
        case.above(format!("width {hidden}: calibration error of FedAvg by participants less DSVGD's"), better, 0.0);
        let same = minus(&ece(place, FLOOR), &ece(place, Contender::Svgd));
        case.within(format!("width {hidden}: calibration error of DSVGD less SVGD's"), same, 0.02);
        for contender in lineup {
            case.shows(format!("width {hidden}, {}: expected calibration error", contender.name()), &ece(place, contender), "");
        }
    }
    let gap = |place| minus(&ece(place, PARTICIPANTS), &ece(place, FLOOR));
    case.above("that error of FedAvg less DSVGD's grows from width 25 to 200 by", minus(&gap(3), &gap(0)), 0.0);
    // Confidence and accuracy over the bins of all seeds.
    let panel = |place: usize| {
        let lines = races[place].courses.iter().map(|(contender, courses)| {
            let bins: Vec<Vec<(f64, f64)>> = courses.iter().take(1).map(Course::reliability).collect();
            (contender.name().to_owned(), bins)
        });
        let diagonal = ("as confident as right".to_owned(), vec![vec![(0.2, 0.2), (1.0, 1.0)]]);
        Chart::new(&format!("width {}", WIDTHS[place]), "confidence", "accuracy", lines.chain([diagonal]).collect())
    };
    let caption = format!(
        "Fashion-MNIST, 784-H-10, K = 20, N = 20, ten rounds of L = {steps} steps (paper: 200); 5,000 test images; bins of 20 images or \
         more of the first seed."
    );
    Ok(case.judged(Some(curves("How far confidence can be trusted", (0..4).map(panel).collect(), &caption))))
}

/// Fig. 20.
pub fn particles(effort: Effort) -> Result<Outcome> {
    let set = Set::images(true, Scaling::Pixels)?;
    let steps = steps(effort);
    let lineup = [FLOOR, NO_CAVITY, PARTICIPANTS, TOTAL];
    let seeds: Vec<u64> = (1..=effort.seeds).collect();
    let problems: Vec<Shared<f32>> = seeds.iter().map(|&seed| dealt(&set, 100, 20, seed, 5000)).collect::<Result<_>>()?;
    let counts = [2, 5, 10, 20, 40];
    let races = counts.map(|particles| {
        let setup = Setup { particles, steps, distillation: 0, every: 10, ..NETWORK };
        Race::run(&lineup, setup, &problems)
    });
    let races = races.into_iter().collect::<Result<Vec<_>>>()?;
    let mut case = Case::default();
    let of = |place: usize, contender: Contender, metric: &str| races[place].last(contender, metric);
    case.above(
        "accuracy of DSVGD with N = 40 less that with N = 2",
        minus(&of(4, FLOOR, "accuracy"), &of(0, FLOOR, "accuracy")),
        0.0,
    );
    // Per e-fold of N.
    let logs: Vec<f64> = counts.iter().map(|&count| (count as f64).ln()).collect();
    let centre = logs.iter().sum::<f64>() / logs.len() as f64;
    let slope = |seed: usize| {
        let (mut top, mut bottom) = (0.0, 0.0);
        for (place, log) in logs.iter().enumerate() {
            top += (log - centre) * of(place, FLOOR, "mce_20")[seed];
            bottom += (log - centre).powi(2);
        }
        top / bottom
    };
    case.within("slope of DSVGD's maximal calibration error over log N", (0..seeds.len()).map(slope).collect(), 0.02);
    case.above(
        "that error of FedAvg by participants less DSVGD's, N = 20",
        minus(&of(3, PARTICIPANTS, "mce_20"), &of(3, FLOOR, "mce_20")),
        0.0,
    );
    let lines = |metric: &str| -> Curves {
        let line = |contender, seed: usize| {
            counts.iter().enumerate().map(|(place, &count)| (count as f64, of(place, contender, metric)[seed])).collect()
        };
        lineup.map(|contender| (contender.name().to_owned(), (0..seeds.len()).map(|seed| line(contender, seed)).collect())).into()
    };
    for (place, count) in counts.iter().enumerate() {
        case.shows(format!("DSVGD, N = {count}: accuracy"), &of(place, FLOOR, "accuracy"), "");
        case.shows(format!("DSVGD, N = {count}: maximal calibration error"), &of(place, FLOOR, "mce_20"), "");
    }
    let charts = vec![
        Chart::new("", "particles, N", "test accuracy", lines("accuracy")),
        Chart::new("", "particles, N", "maximal calibration error", lines("mce_20")),
    ];
    let caption = format!(
        "Fashion-MNIST, 784-100-10, K = 20, ten rounds of L = {steps} steps (paper: 200), 5,000 test images; errors over bins of 20 images or \
         more. FedAvg has one particle whatever N; {}.",
        means_and_errors(effort.seeds)
    );
    Ok(case.judged(Some(curves("How many particles a network takes", charts, &caption))))
}
