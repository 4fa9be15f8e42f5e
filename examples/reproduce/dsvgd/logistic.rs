//! Bayesian logistic regression: Figs. 4, 5, 11, 12, 14, 15, 16, modes of density estimates, and what the baselines of the authors'
//! code do.

use super::super::files::Runs;
use super::super::judge::{Case, mean_and_error, means_and_errors, minus};
use super::super::pictures::{Chart, curves};
use super::super::workers::side_by_side;
use super::super::{Effort, Outcome};
use super::runs::{
    AUTHORS, Contender, DSGLD, DSGLD_BOTH, DSGLD_SCALE, FLOOR, NO_CAVITY, NPV, PARALLEL, PARALLEL_EXACT, PARALLEL_SITES,
    PARTICIPANTS, PMD, REMEMBERED, Race, Result, SGLD, SGLD_NOISE, SVGD, TOTAL,
};
use super::sets::Set;
use mpibayes::data::Generator;
use std::sync::Arc;

/// Where rows come from.
#[derive(Clone, Copy, PartialEq)]
enum From {
    /// So many rows to learn from.
    Twonorm(u64),
    Covertype,
    /// Its name, rows to learn from, all rows.
    Binary(&'static str, usize, usize),
}

/// The sets of Rätsch's collection that a straight line says something about, with its numbers of training rows.
const BINARY: [From; 9] = [
    From::Binary("breast_cancer", 200, 277),
    From::Binary("diabetis", 468, 768),
    From::Binary("german", 700, 1000),
    From::Binary("heart", 170, 270),
    From::Binary("ringnorm", 400, 7400),
    From::Binary("splice", 1000, 3190),
    From::Binary("thyroid", 140, 215),
    From::Binary("titanic", 150, 2201),
    From::Binary("twonorm", 400, 7400),
];

impl From {
    fn name(self) -> &'static str {
        match self {
            Self::Twonorm(_) => "Twonorm",
            Self::Covertype => "Covertype",
            Self::Binary(name, ..) => name,
        }
    }

    /// The data set of each seed.
    fn sets(self, count: u64) -> Result<Vec<Arc<Set>>> {
        let seeds: Vec<u64> = (1..=count).collect();
        match self {
            Self::Twonorm(rows) => {
                side_by_side(&seeds, |&seed| Ok(Arc::new(Set::generated(Generator::Twonorm, rows, 3000, seed)?)))
            }
            Self::Covertype => Ok(Set::covertype()?.shared(count)),
            Self::Binary(name, train, rows) => side_by_side(&seeds, |&seed| Ok(Arc::new(Set::binary(name, train, rows, seed)?))),
        }
    }
}

/// Log-likelihoods below this are not drawn.
const LEAST: f64 = -1.5;

const TWONORM: From = From::Twonorm(400);

fn race(from: From, lineup: &[Contender], runs: &Runs, seeds: u64) -> Result<Race> {
    Race::run(lineup, runs, &from.sets(seeds)?)
}

fn below(bound: f64, values: Vec<f64>) -> Vec<f64> {
    values.into_iter().map(|value| bound - value).collect()
}

fn cut_off(seeds: u64) -> String {
    format!("{}; log-likelihoods below −1.5 are not shown", means_and_errors(seeds))
}

const ALL: [Contender; 8] = [FLOOR, NO_CAVITY, AUTHORS, PARTICIPANTS, TOTAL, SVGD, SGLD, DSGLD];

/// The runs of a figure, and those of as many rounds with chains of SGLD and of DSGLD on as many agents.
fn with_chains(figure: &Runs, chains: &Runs) -> Result<Runs> {
    let (agents, rounds): (u32, u64) = (figure.value("agents")?, figure.value("method.rounds")?);
    let same_agents = |chains: &Runs| chains.value::<u32>("agents").is_ok_and(|count| count == 1 || count == agents);
    let chains: Vec<Runs> = chains.by("agents").into_iter().filter(same_agents).collect();
    Ok(Runs::all(&[figure.clone(), Runs::all(&chains).set(&format!("method.rounds={rounds}"))?]))
}

/// Fig. 4, of one set: K = 2 and 20.
fn accuracy(from: From, effort: Effort, files: &[Runs]) -> Result<(Race, Race, Race, Case)> {
    let seeds = 2 * effort.seeds;
    let [with_two, with_twenty, chains]: &[Runs; 3] = files.try_into()?;
    let [two, twenty] =
        [race(from, &ALL, &with_chains(with_two, chains)?, seeds)?, race(from, &ALL, &with_chains(with_twenty, chains)?, seeds)?];
    let few = race(from, &[FLOOR, NO_CAVITY], &with_two.clone().set("method.particles=2")?, seeds)?;
    let last_of = |runs: &Runs| runs.value::<u64>("method.rounds");
    let mut case = Case::default();
    for (name, race, last) in [("K = 2", &two, last_of(with_two)?), ("K = 20", &twenty, last_of(with_twenty)?)] {
        let own = race.late(FLOOR, "accuracy", last - 2);
        for other in [PARTICIPANTS, TOTAL, DSGLD] {
            let difference = minus(&own, &race.late(other, "accuracy", last - 2));
            case.above(format!("{name}: DSVGD's accuracy less that of {other}, last three rounds"), difference, 0.0);
        }
        for other in ALL {
            case.shows(format!("{name}, {other}: accuracy, last three rounds"), &race.late(other, "accuracy", last - 2), "");
            let log = race.late(other, "log_likelihood", last - 2);
            case.shows(format!("{name}, {other}: log-likelihood, last three rounds"), &log, "");
        }
    }
    // After as many rounds.
    let lost = |contender| minus(&two.at(contender, "accuracy", 10), &twenty.at(contender, "accuracy", 10));
    for other in [PARTICIPANTS, TOTAL, DSGLD] {
        let more = minus(&lost(other), &lost(FLOOR));
        case.above(format!("round 10: what {other} loses from K = 2 to 20, less what DSVGD loses"), more, 0.0);
    }
    let exact = minus(
        &twenty.late(AUTHORS, "accuracy", last_of(with_twenty)? - 2),
        &twenty.late(PARTICIPANTS, "accuracy", last_of(with_twenty)? - 2),
    );
    case.shows("K = 20: accuracy with the authors' estimate less that of FedAvg by participants, last three rounds", &exact, "");
    let faster = minus(&two.at(FLOOR, "accuracy", 2), &few.at(FLOOR, "accuracy", 2));
    case.above("K = 2, round 2: DSVGD's accuracy with N = 6 less that with N = 2", faster, 0.0);
    case.shows("K = 2, N = 2: no cavity, accuracy in round 10", &few.last(NO_CAVITY, "accuracy"), "");
    Ok((two, twenty, few, case))
}

fn panels(two: &Race, twenty: &Race, few: &Race) -> Vec<Chart> {
    let small: Vec<_> = few.lines("accuracy").into_iter().map(|(name, lines)| (format!("{name}, N = 2"), lines)).collect();
    let first = two.lines("accuracy").into_iter().chain(small).collect();
    vec![
        Chart::new("K = 2 agents, N = 6", "round", "test accuracy", first),
        Chart::new("K = 20 agents, N = 6", "round", "test accuracy", twenty.lines("accuracy")),
        Chart::new("K = 2 agents, N = 6", "round", "log-likelihood of a test row", two.lines("log_likelihood"))
            .within(LEAST, 0.0),
        Chart::new("K = 20 agents, N = 6", "round", "log-likelihood of a test row", twenty.lines("log_likelihood"))
            .within(LEAST, 0.0),
    ]
}

/// Fig. 4 on Twonorm.
pub fn twonorm(effort: Effort, files: &[Runs]) -> Result<Outcome> {
    let (two, twenty, few, mut case) = accuracy(TWONORM, effort, files)?;
    let late = |metric| twenty.late(FLOOR, metric, 40);
    let less = |values: Vec<f64>, bound: f64| values.into_iter().map(|value| value - bound).collect::<Vec<f64>>();
    case.above("K = 2: DSVGD's accuracy in round 5 less .96", less(two.at(FLOOR, "accuracy", 5), 0.96), 0.0).is_ours();
    case.above("K = 20: DSVGD's accuracy in round 4 less .94", less(twenty.at(FLOOR, "accuracy", 4), 0.94), 0.0).is_ours();
    case.above("K = 20: DSVGD's accuracy in round 40 less .96", less(late("accuracy"), 0.96), 0.0).is_ours();
    case.above("K = 20: DSVGD's log-likelihood in round 40 less −.2", less(late("log_likelihood"), -0.2), 0.0).is_ours();
    let caption = format!("400 rows to learn from, 3,000 to be judged on; L = L' = 200; {}.", cut_off(2 * effort.seeds));
    Ok(case.judged(Some(curves("Logistic regression: Twonorm", panels(&two, &twenty, &few), &caption))))
}

/// Fig. 4 on Covertype.
pub fn covertype(effort: Effort, files: &[Runs]) -> Result<Outcome> {
    let (two, twenty, few, mut case) = accuracy(From::Covertype, effort, files)?;
    let above: Vec<f64> = twenty.at(FLOOR, "accuracy", 5).iter().map(|value| value - 0.7).collect();
    case.above("K = 20: DSVGD's accuracy in round 5 less .7", above, 0.0);
    let others = below(0.7, twenty.at(TOTAL, "accuracy", 40));
    case.above("K = 20: .7 less the accuracy of FedAvg by the total in round 40", others, 0.0);
    case.shows("K = 20: accuracy of FedAvg by participants in round 40", &twenty.at(PARTICIPANTS, "accuracy", 40), "");
    let caption = format!(
        "16,000 rows to learn from, 4,000 to be judged on, of a sample of 20,000, scaled to [0, 1]; L = L' = 200; {}.",
        cut_off(2 * effort.seeds)
    );
    Ok(case.judged(Some(curves("Logistic regression: Covertype", panels(&two, &twenty, &few), &caption))))
}

/// Fig. 5.
pub fn unlike(effort: Effort, files: &[Runs]) -> Result<Outcome> {
    let seeds = 4 * effort.seeds;
    let lineup = [FLOOR, NO_CAVITY, PARTICIPANTS, TOTAL, SVGD];
    let mut case = Case::default();
    let mut charts = Vec::new();
    for from in [TWONORM, From::Covertype] {
        let sets = from.sets(seeds)?;
        let partitions = files.iter().flat_map(|runs| runs.by("data.partition"));
        let races = partitions.map(|runs| Race::run(&lineup, &runs, &sets)).collect::<Result<Vec<_>>>()?;
        let [like, unlike]: &[Race; 2] = races.as_slice().try_into()?;
        let gap = |contender| minus(&like.late(contender, "log_likelihood", 5), &unlike.late(contender, "log_likelihood", 5));
        for other in [PARTICIPANTS, TOTAL] {
            let more = minus(&gap(other), &gap(FLOOR));
            let (set, what) = (from.name(), "loses more than DSVGD, rounds 5 to 10");
            // Classes of Twonorm mirror each other and the model has no intercept: the split changes nothing for anybody.
            if from == From::Covertype {
                // The mean is that of a few seeds with large losses.
                let signs = more.iter().map(|more| more.signum()).collect();
                case.above(format!("{set}: 1 where {other} {what}, −1 elsewhere"), signs, 0.0);
            }
            case.shows(format!("{set}: what {other} {what}"), &more, "");
        }
        if from == From::Covertype {
            let informed: Vec<f64> =
                unlike.late(FLOOR, "log_likelihood", 5).iter().map(|value| value + std::f64::consts::LN_2).collect();
            case.shows("Covertype, unlike agents: DSVGD's log-likelihood less that of guessing", &informed, "");
        }
        for contender in lineup {
            case.shows(format!("{}: what {} loses", from.name(), contender), &gap(contender), "");
        }
        charts.push(
            Chart::new(
                &format!("{}, like agents", from.name()),
                "round",
                "log-likelihood of a test row",
                like.lines("log_likelihood"),
            )
            .within(LEAST, 0.0),
        );
        charts.push(
            Chart::new(
                &format!("{}, unlike agents", from.name()),
                "round",
                "log-likelihood of a test row",
                unlike.lines("log_likelihood"),
            )
            .within(LEAST, 0.0),
        );
    }
    let caption = format!(
        "K = 4, N = 6. Unlike: two agents have 40 % of one class each and 10 % of the other, two the reverse; {}.",
        cut_off(seeds)
    );
    let figure = mpibayes::plots::Figure { columns: 2, ..curves("Agents that see different classes", charts, &caption) };
    Ok(case.judged(Some(figure)))
}

/// What modes of the density estimate do to DSVGD.
pub fn estimates(effort: Effort, files: &[Runs]) -> Result<Outcome> {
    let seeds = effort.seeds;
    let lineup = [FLOOR, AUTHORS, NO_CAVITY, PARTICIPANTS, TOTAL];
    let mut case = Case::default();
    let mut charts = Vec::new();
    for from in [TWONORM, From::Covertype] {
        let race = race(from, &lineup, &files[0], seeds)?;
        let late = |contender, metric| race.late(contender, metric, 38);
        let same = minus(&late(AUTHORS, "accuracy"), &late(NO_CAVITY, "accuracy"));
        case.within(format!("{}: accuracy with the authors' estimate less that without cavity", from.name()), same, 0.005)
            .is_ours();
        let better = minus(&late(FLOOR, "log_likelihood"), &late(NO_CAVITY, "log_likelihood"));
        case.above(format!("{}: log-likelihood with the floor less that without cavity", from.name()), better, 0.0).is_ours();
        for contender in lineup {
            case.shows(format!("{}, {}: accuracy", from.name(), contender), &late(contender, "accuracy"), "");
            case.shows(format!("{}, {}: log-likelihood", from.name(), contender), &late(contender, "log_likelihood"), "");
        }
        charts.push(Chart::new(from.name(), "round", "test accuracy", race.lines("accuracy")));
        charts.push(
            Chart::new(from.name(), "round", "log-likelihood of a test row", race.lines("log_likelihood")).within(LEAST, 0.0),
        );
    }
    let caption = format!("K = 20, N = 6, L = L' = 200; numbers over the last three of 40 rounds; {}.", cut_off(seeds));
    Ok(case.judged(Some(curves("Which density estimate", charts, &caption))))
}

/// What the authors' code does to baselines.
pub fn baselines(effort: Effort, files: &[Runs]) -> Result<Outcome> {
    let seeds = effort.seeds;
    let lineup = [FLOOR, NO_CAVITY, SGLD, SGLD_NOISE, DSGLD, DSGLD_SCALE, DSGLD_BOTH, PARTICIPANTS, TOTAL];
    let mut case = Case::default();
    let mut charts = Vec::new();
    for from in [TWONORM, From::Covertype] {
        let race = race(from, &lineup, &files[0], seeds)?;
        let early = |contender| race.at(contender, "accuracy", 4);
        let slow = minus(&early(PARTICIPANTS), &early(TOTAL));
        case.above(format!("{}, round 4: accuracy of FedAvg by participants less that by the total", from.name()), slow, 0.02)
            .is_ours();
        for (right, wrong) in [(SGLD, SGLD_NOISE), (DSGLD, DSGLD_SCALE), (DSGLD, DSGLD_BOTH)] {
            for metric in ["accuracy", "log_likelihood"] {
                let difference = minus(&race.late(right, metric, 38), &race.late(wrong, metric, 38));
                let what = metric.replace('_', "-");
                case.shows(format!("{}: {what} of {} less that of {}", from.name(), right, wrong), &difference, "");
            }
        }
        charts.push(Chart::new(from.name(), "round", "test accuracy", race.lines("accuracy")));
        charts.push(
            Chart::new(from.name(), "round", "log-likelihood of a test row", race.lines("log_likelihood")).within(LEAST, 0.0),
        );
    }
    let caption =
        format!("K = 20, N = 6, 40 rounds of 200 steps; a chain of DSGLD moves in one of six rounds; {}.", cut_off(seeds));
    Ok(case.judged(Some(curves("Baselines, and what the authors' code makes of them", charts, &caption))))
}

/// Fig. 11.
pub fn nine_sets(effort: Effort, files: &[Runs]) -> Result<Outcome> {
    let lineup = [FLOOR, REMEMBERED, NO_CAVITY, SVGD, PARTICIPANTS, TOTAL, NPV];
    let mut case = Case::default();
    // Of DSVGD and U-DSVGD from SVGD and NPV: pairs, sets, seeds.
    let pairs = [(FLOOR, SVGD), (REMEMBERED, SVGD), (FLOOR, NPV), (REMEMBERED, NPV)];
    let mut differences = [(); 4].map(|()| Vec::new());
    for from in BINARY {
        let race = race(from, &lineup, &files[0], effort.seeds)?;
        let of = |contender, metric| race.last(contender, metric);
        for ((one, other), of_pair) in pairs.iter().zip(&mut differences) {
            of_pair.push(minus(&of(*one, "accuracy"), &of(*other, "accuracy")));
        }
        for contender in lineup {
            case.shows(format!("{}, {}: accuracy", from.name(), contender), &of(contender, "accuracy"), "");
            case.shows(format!("{}, {}: log-likelihood", from.name(), contender), &of(contender, "log_likelihood"), "");
        }
    }
    let seeds = effort.seeds as usize;
    for ((one, other), of_pair) in pairs.iter().zip(&differences) {
        // The median over sets is small if the difference is small on most of them, whatever its sign.
        let medians = (0..seeds).map(|seed| {
            let mut of_seed: Vec<f64> = of_pair.iter().map(|set| set[seed].abs()).collect();
            of_seed.sort_by(f64::total_cmp);
            of_seed[of_seed.len() / 2]
        });
        let near = below(0.02, medians.collect());
        case.above(
            format!(".02 less the absolute difference in accuracy of {one} and {other}, median over nine sets"),
            near,
            0.0,
        );
        let count = of_pair.iter().filter(|set| mean_and_error(set).0.abs() <= 0.02).count();
        case.tells(format!("sets on which the mean accuracies of {one} and {other} are within .02"), format!("{count} of 9"), "");
    }
    let axis = |of_pair: &[Vec<f64>]| -> Vec<Vec<(f64, f64)>> {
        (0..seeds).map(|seed| (1..).zip(of_pair).map(|(place, set)| (f64::from(place), set[seed])).collect()).collect()
    };
    let lines = vec![(FLOOR.to_owned(), axis(&differences[0])), (REMEMBERED.to_owned(), axis(&differences[1]))];
    let names: Vec<String> = (1..).zip(BINARY).map(|(place, from)| format!("{place} {}", from.name())).collect();
    let chart = Chart::new("", "set", "accuracy less that of SVGD", lines);
    let caption = format!(
        "N = 100, two agents, four rounds; SVGD 800 steps. Sets: {}; {}.",
        names.join(", "),
        means_and_errors(effort.seeds)
    );
    Ok(case.judged(Some(curves("Nine binary sets", vec![chart], &caption))))
}

/// The runs with each value of a key, which is a number. After the runs of the figure, `files` may have those of chains.
fn races(from: From, lineup: &[Contender], files: &[Runs], key: &str, seeds: u64) -> Result<Vec<(f64, Race)>> {
    let (figure, chains) = files.split_first().ok_or("a row without run files")?;
    let groups = figure.by(key).into_iter().map(|runs| {
        let number = runs.value::<u32>(key)?;
        let chains = chains.iter().map(|chains| chains.clone().of_chains(key, number)).collect::<Result<Vec<_>>>()?;
        Ok((f64::from(number), race(from, lineup, &Runs::all(&[&[runs], chains.as_slice()].concat()), seeds)?))
    });
    groups.collect()
}

/// A metric in the end by a number that is varied, for pictures.
type ByNumber = Vec<(String, Vec<Vec<(f64, f64)>>)>;

fn by_number(races: &[(f64, Race)], lineup: &[Contender], metric: &str, seeds: u64) -> ByNumber {
    let line = |contender: Contender, seed: usize| {
        races.iter().map(|(x, race)| (*x, race.last(contender, metric).get(seed).copied().unwrap_or(f64::NAN))).collect()
    };
    lineup
        .iter()
        .map(|&contender| (contender.to_owned(), (0..seeds as usize).map(|seed| line(contender, seed)).collect()))
        .collect()
}

/// Fig. 12 (a).
pub fn particles(effort: Effort, files: &[Runs]) -> Result<Outcome> {
    let seeds = effort.seeds;
    let lineup = [FLOOR, REMEMBERED, NO_CAVITY, SVGD, SGLD, DSGLD, PARTICIPANTS, TOTAL, PMD];
    let mut case = Case::default();
    let mut charts = Vec::new();
    for from in [TWONORM, From::Covertype] {
        let races = races(from, &lineup, files, "method.particles", seeds)?;
        let Some((_, most)) = races.last() else { continue };
        let of = |contender| most.last(contender, "accuracy");
        for one in [FLOOR, REMEMBERED] {
            let same = minus(&of(one), &of(SVGD));
            case.within(format!("{}, N = 50: accuracy of {} less that of SVGD", from.name(), one), same, 0.02);
        }
        for other in [SGLD, DSGLD] {
            let difference = minus(&of(FLOOR), &of(other));
            case.within(format!("{}, N = 50: accuracy of DSVGD less that of {}", from.name(), other), difference, 0.02);
        }
        let name = format!("{}, N = 50: accuracy of DSVGD less that of {PMD}", from.name());
        case.above(name, minus(&of(FLOOR), &of(PMD)), 0.0);
        lineup.iter().for_each(|&one| case.shows(format!("{}, N = 50, {}: accuracy", from.name(), one), &of(one), ""));
        charts.push(Chart::new(
            from.name(),
            "particles or chains, N",
            "test accuracy",
            by_number(&races, &lineup, "accuracy", seeds),
        ));
    }
    let caption = format!(
        "Two agents, four rounds of 200 steps; chains of SGLD and DSGLD make 2,000 updates, in 500 visits. FedAvg has one \
         particle whatever N; {}.",
        means_and_errors(seeds)
    );
    Ok(case.judged(Some(curves("How many particles", charts, &caption))))
}

/// Fig. 12 (b).
pub fn particles_and_rounds(effort: Effort, files: &[Runs]) -> Result<Outcome> {
    let seeds = 2 * effort.seeds;
    let mut case = Case::default();
    let mut charts = Vec::new();
    let lineup = [FLOOR, NO_CAVITY];
    for from in [TWONORM, From::Covertype] {
        let races = races(from, &lineup, files, "method.particles", seeds)?;
        let at = |count: f64, round| {
            races.iter().find(|(particles, _)| *particles == count).map_or(vec![], |(_, race)| race.at(FLOOR, "accuracy", round))
        };
        let same = minus(&at(8.0, 6), &at(4.0, 10));
        case.within(format!("{}: accuracy of N = 8 in round 6 less that of N = 4 in round 10", from.name()), same, 0.01);
        for contender in lineup {
            let lines = [2_u64, 4, 6, 10].map(|round| {
                let by_seed = (0..seeds as usize).map(|seed| {
                    let of = |race: &Race| race.at(contender, "accuracy", round)[seed];
                    races.iter().map(|(count, race)| (*count, of(race))).collect()
                });
                (format!("{round} rounds"), by_seed.collect())
            });
            let title = format!("{}, {}", from.name(), contender);
            charts.push(Chart::new(&title, "particles, N", "test accuracy", lines.into()));
        }
    }
    let caption = format!("Two agents, L = L' = 200; {}.", means_and_errors(seeds));
    Ok(case.judged(Some(curves("Particles against rounds", charts, &caption))))
}

/// Fig. 14.
pub fn iterations(effort: Effort, files: &[Runs]) -> Result<Outcome> {
    let seeds = effort.seeds;
    let lineup = [FLOOR, REMEMBERED, NO_CAVITY, SVGD, SGLD, DSGLD, PARTICIPANTS, TOTAL];
    let mut case = Case::default();
    let mut charts = Vec::new();
    for from in [TWONORM, From::Covertype] {
        let mut races = races(from, &lineup, files, "method.local_steps", seeds)?;
        let rounds: u64 = files[0].value("method.rounds")?;
        races.iter_mut().for_each(|(steps, _)| *steps *= rounds as f64);
        let Some((_, most)) = races.last() else { continue };
        let of = |contender| most.last(contender, "accuracy");
        for one in [FLOOR, REMEMBERED] {
            let same = minus(&of(one), &of(SVGD));
            case.within(format!("{}, 2,000 steps: accuracy of {} less that of SVGD", from.name(), one), same, 0.02);
            for other in [SGLD, DSGLD] {
                let difference = minus(&of(one), &of(other));
                let name = format!("{}, 2,000 steps: accuracy of {} less that of {}", from.name(), one, other);
                case.above(name, difference, 0.0);
            }
        }
        lineup.iter().for_each(|&one| case.shows(format!("{}, 2,000 steps, {}: accuracy", from.name(), one), &of(one), ""));
        charts.push(Chart::new(
            from.name(),
            "steps in all, 10 L",
            "test accuracy",
            by_number(&races, &lineup, "accuracy", seeds),
        ));
    }
    let caption = format!("Two agents, N = 6, ten rounds; {}.", means_and_errors(seeds));
    Ok(case.judged(Some(curves("How many steps in all", charts, &caption))))
}

/// Fig. 15.
pub fn hundred_agents(effort: Effort, files: &[Runs]) -> Result<Outcome> {
    let seeds = effort.seeds;
    let lineup = [PARALLEL, PARALLEL_EXACT, PARALLEL_SITES, PARTICIPANTS, TOTAL, DSGLD];
    let runs = Runs::all(files);
    let mut case = Case::default();
    let mut charts = Vec::new();
    for from in [From::Twonorm(5000), From::Covertype] {
        let race = race(from, &lineup, &runs, seeds)?;
        let late = |contender| race.late(contender, "accuracy", 8);
        for other in [PARTICIPANTS, TOTAL, DSGLD] {
            let difference = minus(&late(PARALLEL_EXACT), &late(other));
            case.above(
                format!("{}: accuracy of P-DSVGD without a floor less that of {}, last three rounds", from.name(), other),
                difference,
                0.0,
            );
        }
        for (contender, _) in &race.courses {
            case.shows(format!("{}, {}: accuracy", from.name(), contender), &late(*contender), "");
            case.shows(format!("{}, {}: log-likelihood", from.name(), contender), &race.late(contender, "log_likelihood", 8), "");
        }
        charts.push(Chart::new(from.name(), "round", "test accuracy", race.lines("accuracy")));
        charts.push(
            Chart::new(from.name(), "round", "log-likelihood of a test row", race.lines("log_likelihood")).within(LEAST, 0.0),
        );
    }
    let caption =
        format!("K = 100, 20 random agents in a round, N = 20, L = L' = 200, as many steps of the server; {}.", cut_off(seeds));
    Ok(case.judged(Some(curves("A hundred agents, twenty at a time", charts, &caption))))
}

/// Fig. 16.
pub fn further_sets(effort: Effort, files: &[Runs]) -> Result<Outcome> {
    let seeds = 2 * effort.seeds;
    let lineup = [FLOOR, NO_CAVITY, PARTICIPANTS, TOTAL, SVGD, DSGLD];
    let mut case = Case::default();
    let mut charts = Vec::new();
    for from in [BINARY[1], BINARY[2], BINARY[5]] {
        let twenty = race(from, &lineup, &files[0], seeds)?;
        let two = race(from, &lineup, &files[0].clone().set("agents=2")?, seeds)?;
        // How much accuracy moves from round to round in the second half.
        let noise = |race: &Race| -> Vec<f64> {
            let of = |seed: &Vec<(f64, f64)>| {
                let late: Vec<f64> = seed.iter().filter(|point| point.0 >= 20.0).map(|point| point.1).collect();
                late.windows(2).map(|pair| (pair[1] - pair[0]).abs()).sum::<f64>() / (late.len() - 1) as f64
            };
            race.lines("accuracy").first().map_or(Vec::new(), |line| line.1.iter().map(of).collect())
        };
        case.above(
            format!("{}: DSVGD's moves of accuracy with K = 20 less those with K = 2", from.name()),
            minus(&noise(&twenty), &noise(&two)),
            0.0,
        );
        let late = |contender| twenty.late(contender, "accuracy", 36);
        for other in [PARTICIPANTS, TOTAL, DSGLD] {
            let difference = minus(&late(FLOOR), &late(other));
            let name = format!("{}, K = 20: accuracy of DSVGD less that of {}, last five rounds", from.name(), other);
            case.shows(name, &difference, "");
        }
        lineup.iter().for_each(|&one| case.shows(format!("{}, K = 20, {}: accuracy", from.name(), one), &late(one), ""));
        charts.push(Chart::new(&format!("{}, K = 2", from.name()), "round", "test accuracy", two.lines("accuracy")));
        charts.push(Chart::new(&format!("{}, K = 20", from.name()), "round", "test accuracy", twenty.lines("accuracy")));
    }
    let caption = format!("N = 6, L = L' = 200; {}.", means_and_errors(seeds));
    let figure = mpibayes::plots::Figure { columns: 2, ..curves("Further sets, two and twenty agents", charts, &caption) };
    Ok(case.judged(Some(figure)))
}
