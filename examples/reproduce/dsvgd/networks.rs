//! Bayesian neural networks: regression (Fig. 6), classification (Fig. 7) and calibration (Figs. 8, 19, 20).

use super::super::files::Runs;
use super::super::judge::{Case, means_and_errors, minus};
use super::super::pictures::{Chart, Curves, curves};
use super::super::workers::side_by_side;
use super::super::{Effort, Outcome};
use super::runs::{AUTHORS, Contender, Course, DSGLD, FLOOR, NO_CAVITY, PARTICIPANTS, Race, Result, SVGD, TOTAL};
use super::sets::Set;
use mpibayes::data::{Dataset, Generator, Scaling, Split};
use std::sync::Arc;

const ALL: [Contender; 7] = [FLOOR, NO_CAVITY, AUTHORS, PARTICIPANTS, TOTAL, SVGD, DSGLD];

fn regression(effort: Effort, title: &str, runs: &Runs, make: impl Fn(u64) -> Result<Set> + Sync) -> Result<Outcome> {
    let seeds: Vec<u64> = (1..=effort.seeds).collect();
    let sets = side_by_side(&seeds, |&seed| Ok(Arc::new(make(seed)?)))?;
    // In units of the targets' standard deviation, far above the errors.
    let unit = |set: &Arc<Set>| Ok(Dataset::open(&set.file)?.read_rows::<f32>(Split::Test, &[0])?.target_unit());
    let unit: Vec<f64> = sets.iter().map(unit).collect::<Result<_>>()?;
    let rounds: u64 = runs.value("method.rounds")?;
    let mut case = Case::default();
    let mut charts = Vec::new();
    for runs in runs.by("agents") {
        let agents: u32 = runs.value("agents")?;
        let race = Race::run(&ALL, &runs, &sets)?;
        let late = |contender, metric| race.late(contender, metric, rounds - 2);
        let scaled = |values: Vec<f64>| values.iter().zip(&unit).map(|(value, unit)| value / unit).collect::<Vec<f64>>();
        for other in [PARTICIPANTS, TOTAL, DSGLD] {
            let more = scaled(minus(&late(other, "rmse"), &late(FLOOR, "rmse")));
            case.above(format!("K = {agents}: RMSE of {other} less DSVGD's, in sd of the targets"), more, 0.0);
        }
        let same = scaled(minus(&late(AUTHORS, "rmse"), &late(NO_CAVITY, "rmse")));
        case.within(
            format!("K = {agents}: RMSE with the authors' estimate less that without cavity, in sd of the targets"),
            same,
            0.005,
        )
        .is_ours();
        for contender in ALL {
            case.shows(format!("K = {agents}, {contender}: RMSE, last three rounds"), &late(contender, "rmse"), "");
            case.shows(format!("K = {agents}, {contender}: log-likelihood"), &late(contender, "log_likelihood"), "");
        }
        charts.push(
            Chart::new(&format!("K = {agents} agents"), "round", "test RMSE, units of the targets", race.lines("rmse"))
                .within(0.0, unit[0]),
        );
    }
    let caption = format!(
        "N = {}, {rounds} rounds, L = L' = {}; FedAvg learns its noise along, without prior; errors above the targets' standard deviation are not \
         shown; {}.",
        runs.value::<u64>("method.particles")?,
        runs.value::<u64>("method.local_steps")?,
        means_and_errors(effort.seeds)
    );
    Ok(case.judged(Some(curves(title, charts, &caption))))
}

/// Fig. 6 on Kin8nm.
pub fn kin8nm(effort: Effort, files: &[Runs]) -> Result<Outcome> {
    let mut runs = Runs::all(files);
    if effort.share > 1 {
        runs = runs.set("method.rounds=10")?;
    }
    regression(effort, "Network regression: Kin8nm", &runs, |seed| Set::kin8nm(usize::try_from(seed)?))
}

/// Fig. 6 on the stand-in for Year.
pub fn year(effort: Effort, files: &[Runs]) -> Result<Outcome> {
    let mut runs = Runs::all(files);
    if effort.share > 1 {
        runs = runs.set("method.rounds=5")?.steps(20)?;
    }
    let title = "Network regression: a stand-in for Year";
    regression(effort, title, &runs, |seed| Set::generated(Generator::Year, 20_000, 2000, seed))
}

/// The runs, with fewer steps if that is asked for.
fn shortened(effort: Effort, runs: &Runs) -> Result<Runs> {
    if effort.share > 1 { runs.clone().steps(5) } else { Ok(runs.clone()) }
}

fn classification(effort: Effort, files: &[Runs], fashion: bool) -> Result<Outcome> {
    let effort = Effort { seeds: effort.seeds.min(5), ..effort };
    let runs = shortened(effort, &files[0])?;
    let sets = Set::images(fashion, Scaling::Pixels, 2000)?.shared(effort.seeds);
    let name = if fashion { "Fashion-MNIST" } else { "MNIST" };
    let lineup = [FLOOR, NO_CAVITY, PARTICIPANTS, TOTAL, SVGD];
    let mut case = Case::default();
    let mut charts = Vec::new();
    for mut runs in runs.by("agents") {
        let (agents, rounds): (u64, u64) = (runs.value("agents")?, runs.value("method.rounds")?);
        // If no agent is visited twice, distilled factors are not used.
        if agents >= rounds {
            runs = runs.set("method.distillation_steps=0")?;
        }
        let race = Race::run(&lineup, &runs, &sets)?;
        let of = |contender| race.last(contender, "accuracy");
        for other in [PARTICIPANTS, TOTAL] {
            let difference = minus(&of(FLOOR), &of(other));
            case.above(format!("K = {agents}: accuracy of DSVGD less that of {other}"), difference, 0.0);
        }
        for contender in lineup {
            case.shows(format!("K = {agents}, {contender}: accuracy"), &of(contender), "");
            case.shows(format!("K = {agents}, {contender}: log-likelihood"), &race.last(contender, "log_likelihood"), "");
        }
        charts.push(Chart::new(&format!("K = {agents} agents"), "round", "test accuracy", race.lines("accuracy")));
    }
    let caption = format!(
        "784-100-10, N = 20, ten rounds of L = L' = {} steps (paper: 200), judged on 2,000 test images; {}.",
        runs.value::<u64>("method.local_steps")?,
        means_and_errors(effort.seeds)
    );
    Ok(case.judged(Some(curves(&format!("Network classification: {name}"), charts, &caption))))
}

/// Fig. 7 on MNIST.
pub fn mnist(effort: Effort, files: &[Runs]) -> Result<Outcome> {
    classification(effort, files, false)
}

/// Fig. 7 on Fashion-MNIST.
pub fn fashion(effort: Effort, files: &[Runs]) -> Result<Outcome> {
    classification(effort, files, true)
}

/// Figs. 8 and 19.
pub fn widths(effort: Effort, files: &[Runs]) -> Result<Outcome> {
    // A run of all widths takes minutes.
    let effort = Effort { seeds: effort.seeds.min(5), ..effort };
    let runs = shortened(effort, &files[0])?;
    let sets = Set::images(true, Scaling::Pixels, 5000)?.shared(effort.seeds);
    // In as many dimensions density estimates weigh next to nothing: without cavity DSVGD gives the same to the third digit.
    let lineup = [FLOOR, PARTICIPANTS, TOTAL, SVGD];
    let groups = runs.by("model.hidden");
    let widths = groups.iter().map(|runs| Ok(runs.value::<Vec<usize>>("model.hidden")?[0])).collect::<Result<Vec<_>>>()?;
    let races = groups.iter().map(|runs| Race::run(&lineup, runs, &sets)).collect::<Result<Vec<_>>>()?;
    let mut case = Case::default();
    let ece = |place: usize, contender| races[place].last(contender, "ece");
    for (place, hidden) in widths.iter().enumerate() {
        for other in [PARTICIPANTS, TOTAL] {
            let better = minus(&ece(place, other), &ece(place, FLOOR));
            case.above(format!("width {hidden}: calibration error of {other} less DSVGD's"), better, 0.0);
        }
        let same = minus(&ece(place, FLOOR), &ece(place, SVGD));
        case.within(format!("width {hidden}: calibration error of DSVGD less SVGD's"), same, 0.01);
        for contender in lineup {
            case.shows(format!("width {hidden}, {contender}: expected calibration error"), &ece(place, contender), "");
            case.shows(format!("width {hidden}, {contender}: accuracy"), &races[place].last(contender, "accuracy"), "");
        }
    }
    let growth = |contender| minus(&ece(widths.len() - 1, contender), &ece(0, contender));
    for other in [PARTICIPANTS, TOTAL] {
        case.above(format!("that error of {other} grows from width 25 to 200 by"), growth(other), 0.0);
    }
    case.above(".01 less the growth of DSVGD's", growth(FLOOR).iter().map(|growth| 0.01 - growth).collect(), 0.0);
    // Confidence and accuracy over the bins of the first seed.
    let panel = |place: usize| {
        let lines = races[place].courses.iter().map(|(contender, courses)| {
            let bins: Vec<Vec<(f64, f64)>> = courses.iter().take(1).map(Course::reliability).collect();
            ((*contender).to_owned(), bins)
        });
        let diagonal = ("as confident as right".to_owned(), vec![vec![(0.2, 0.2), (1.0, 1.0)]]);
        Chart::new(&format!("width {}", widths[place]), "confidence", "accuracy", lines.chain([diagonal]).collect())
    };
    let caption = format!(
        "Fashion-MNIST, 784-H-10, K = 20, N = 20, ten rounds of L = {} steps; 5,000 test images; bins of 20 images or more of the \
         first seed.",
        runs.value::<u64>("method.local_steps")?
    );
    let panels = (0..widths.len()).map(panel).collect();
    Ok(case.judged(Some(curves("How far confidence can be trusted", panels, &caption))))
}

/// Fig. 20.
pub fn particles(effort: Effort, files: &[Runs]) -> Result<Outcome> {
    let runs = shortened(effort, &files[0])?;
    let seeds = usize::try_from(effort.seeds)?;
    let sets = Set::images(true, Scaling::Pixels, 5000)?.shared(effort.seeds);
    let lineup = [FLOOR, NO_CAVITY, PARTICIPANTS, TOTAL];
    let groups = runs.by("method.particles");
    let counts = groups.iter().map(|runs| runs.value("method.particles")).collect::<Result<Vec<u64>>>()?;
    let races = groups.iter().map(|runs| Race::run(&lineup, runs, &sets)).collect::<Result<Vec<_>>>()?;
    let mut case = Case::default();
    let of = |place: usize, contender: Contender, metric: &str| races[place].last(contender, metric);
    let last = counts.len() - 1;
    case.above(
        "accuracy of DSVGD with N = 40 less that with N = 2",
        minus(&of(last, FLOOR, "accuracy"), &of(0, FLOOR, "accuracy")),
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
    case.shows("slope of DSVGD's maximal calibration error over log N", &(0..seeds).map(slope).collect::<Vec<_>>(), "");
    case.within(
        "DSVGD's maximal calibration error with N = 40 less that with N = 2",
        minus(&of(last, FLOOR, "mce_20"), &of(0, FLOOR, "mce_20")),
        0.02,
    );
    for other in [PARTICIPANTS, TOTAL] {
        let more = minus(&of(last, other, "mce_20"), &of(last, FLOOR, "mce_20"));
        case.above(format!("that error of {other} less DSVGD's, N = 40"), more, 0.0);
    }
    let lines = |metric: &str| -> Curves {
        let line = |contender, seed: usize| {
            counts.iter().enumerate().map(|(place, &count)| (count as f64, of(place, contender, metric)[seed])).collect()
        };
        lineup.map(|contender| (contender.to_owned(), (0..seeds).map(|seed| line(contender, seed)).collect())).into()
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
        "Fashion-MNIST, 784-100-10, K = 20, ten rounds of L = {} steps (paper: 200), 5,000 test images; errors over bins of 20 images or \
         more. FedAvg has one particle whatever N; {}.",
        runs.value::<u64>("method.local_steps")?,
        means_and_errors(effort.seeds)
    );
    Ok(case.judged(Some(curves("How many particles a network takes", charts, &caption))))
}
