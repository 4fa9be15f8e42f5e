//! Bayesian logistic regression: Figs. 4, 5, 11, 12, 14, 15, 16, modes of density estimates, and what the baselines of the authors'
//! code do.

use super::super::judge::{Case, means_and_errors, minus};
use super::super::pictures::{Chart, curves};
use super::super::workers::side_by_side;
use super::super::{Effort, Outcome};
use super::runs::{AUTHORS, Contender, FLOOR, LOGISTIC, NO_CAVITY, PARTICIPANTS, Race, Result, Setup, Shared, TOTAL};
use super::sets::Set;
use mpibayes::data::{Generator, Partition};
use mpibayes::methods::common::participation::Participation;
use mpibayes::models::logistic::LogisticSettings;
use mpibayes::models::{DataSchema, Output};
use std::sync::Arc;

/// One of two lists.
type Pick<'a> = &'a dyn Fn(&(Vec<f64>, Vec<f64>)) -> &Vec<f64>;

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

    fn problem(self, agents: usize, partition: &Partition, seed: u64) -> Result<Shared<f64>> {
        let set = match self {
            Self::Twonorm(rows) => Set::generated(Generator::Twonorm, rows, 3000, seed)?,
            Self::Covertype => Set::covertype()?,
            Self::Binary(name, train, rows) => Set::binary(name, train, rows, seed)?,
        };
        let model = LogisticSettings { intercept: false, ..LogisticSettings::default() }
            .build(&DataSchema::new(set.dataset.features(), Output::Classes(2)))?;
        set.dealt(Arc::new(model), agents, partition, seed, usize::MAX)
    }

    fn problems(self, agents: usize, partition: &Partition, seeds: u64) -> Result<Vec<Shared<f64>>> {
        let seeds: Vec<u64> = (1..=seeds).collect();
        side_by_side(&seeds, |&seed| self.problem(agents, partition, seed))
    }
}

/// Log-likelihoods below this are not drawn.
const LEAST: f64 = -1.5;

const TWONORM: From = From::Twonorm(400);

fn race(from: From, agents: usize, lineup: &[Contender], setup: Setup, seeds: u64) -> Result<Race> {
    Race::run(lineup, setup, &from.problems(agents, &Partition::Equal, seeds)?)
}

fn below(bound: f64, values: Vec<f64>) -> Vec<f64> {
    values.into_iter().map(|value| bound - value).collect()
}

fn cut_off(seeds: u64) -> String {
    format!("{}; log-likelihoods below −1.5 are not shown", means_and_errors(seeds))
}

const ALL: [Contender; 8] = [FLOOR, NO_CAVITY, AUTHORS, PARTICIPANTS, TOTAL, Contender::Svgd, Contender::Sgld, Contender::Dsgld];

/// Fig. 4, of one set: K = 2 and 20.
fn accuracy(from: From, effort: Effort) -> Result<(Race, Race, Race, Case)> {
    let seeds = 4 * effort.seeds;
    let two = race(from, 2, &ALL, LOGISTIC, seeds)?;
    let twenty = race(from, 20, &ALL, Setup { rounds: 40, ..LOGISTIC }, seeds)?;
    let few = race(from, 2, &[FLOOR, NO_CAVITY], Setup { particles: 2, ..LOGISTIC }, seeds)?;
    let mut case = Case::default();
    for (name, race, last) in [("K = 2", &two, 10), ("K = 20", &twenty, 40)] {
        let own = race.late(FLOOR, "accuracy", last - 2);
        for other in [PARTICIPANTS, TOTAL, Contender::Dsgld] {
            let difference = minus(&own, &race.late(other, "accuracy", last - 2));
            case.above(format!("{name}: DSVGD's accuracy less that of {}, last three rounds", other.name()), difference, -0.005);
        }
        for other in ALL {
            case.shows(
                format!("{name}, {}: accuracy, last three rounds", other.name()),
                &race.late(other, "accuracy", last - 2),
                "",
            );
            let log = race.late(other, "log_likelihood", last - 2);
            case.shows(format!("{name}, {}: log-likelihood, last three rounds", other.name()), &log, "");
        }
    }
    let slow = minus(&twenty.at(PARTICIPANTS, "accuracy", 4), &twenty.at(TOTAL, "accuracy", 4));
    case.above("K = 20, round 4: accuracy of FedAvg by participants less that by the total", slow, 0.0).is_ours();
    let insensitive = minus(&twenty.late(FLOOR, "accuracy", 38), &two.late(FLOOR, "accuracy", 8));
    case.within("DSVGD's accuracy with K = 20 less that with K = 2, last three rounds", insensitive, 0.02);
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
pub fn twonorm(effort: Effort) -> Result<Outcome> {
    let (two, twenty, few, mut case) = accuracy(TWONORM, effort)?;
    let late = |metric| twenty.late(FLOOR, metric, 40);
    let less = |values: Vec<f64>, bound: f64| values.into_iter().map(|value| value - bound).collect::<Vec<f64>>();
    case.above("K = 2: DSVGD's accuracy in round 5 less .96", less(two.at(FLOOR, "accuracy", 5), 0.96), 0.0).is_ours();
    case.above("K = 20: DSVGD's accuracy in round 4 less .94", less(twenty.at(FLOOR, "accuracy", 4), 0.94), 0.0).is_ours();
    case.above("K = 20: DSVGD's accuracy in round 40 less .96", less(late("accuracy"), 0.96), 0.0).is_ours();
    case.above("K = 20: DSVGD's log-likelihood in round 40 less −.2", less(late("log_likelihood"), -0.2), 0.0).is_ours();
    let caption = format!("400 rows to learn from, 3,000 to be judged on; L = L' = 200; {}.", cut_off(4 * effort.seeds));
    Ok(case.judged(Some(curves("Logistic regression: Twonorm", panels(&two, &twenty, &few), &caption))))
}

/// Fig. 4 on Covertype.
pub fn covertype(effort: Effort) -> Result<Outcome> {
    let (two, twenty, few, mut case) = accuracy(From::Covertype, effort)?;
    let above: Vec<f64> = twenty.at(FLOOR, "accuracy", 5).iter().map(|value| value - 0.7).collect();
    case.above("K = 20: DSVGD's accuracy in round 5 less .7", above, 0.0);
    let others = below(0.7, twenty.at(TOTAL, "accuracy", 40));
    case.above("K = 20: .7 less the accuracy of FedAvg by the total in round 40", others, 0.0);
    case.shows("K = 20: accuracy of FedAvg by participants in round 40", &twenty.at(PARTICIPANTS, "accuracy", 40), "");
    let caption = format!(
        "16,000 rows to learn from, 4,000 to be judged on, of a sample of 20,000, scaled to [0, 1]; L = L' = 200; {}.",
        cut_off(4 * effort.seeds)
    );
    Ok(case.judged(Some(curves("Logistic regression: Covertype", panels(&two, &twenty, &few), &caption))))
}

/// Fig. 5.
pub fn unlike(effort: Effort) -> Result<Outcome> {
    let seeds = 8 * effort.seeds;
    let lineup = [FLOOR, NO_CAVITY, PARTICIPANTS, TOTAL, Contender::Svgd];
    let mut case = Case::default();
    let mut charts = Vec::new();
    for from in [TWONORM, BINARY[2], From::Covertype] {
        let run = |partition: &Partition| Race::run(&lineup, LOGISTIC, &from.problems(4, partition, seeds)?);
        let (like, unlike) = (run(&Partition::Equal)?, run(&Partition::LabelShare(0.8))?);
        let gap = |contender| minus(&like.late(contender, "log_likelihood", 5), &unlike.late(contender, "log_likelihood", 5));
        for other in [PARTICIPANTS, TOTAL] {
            let more = minus(&gap(other), &gap(FLOOR));
            let name = format!("{}: what {} loses more than DSVGD, rounds 5 to 10", from.name(), other.name());
            // Its classes mirror each other and the model has no intercept: the split changes nothing for anybody.
            if from == TWONORM {
                case.shows(name, &more, "");
            } else {
                case.above(name, more, 0.0);
            }
        }
        for contender in lineup {
            case.shows(format!("{}: what {} loses", from.name(), contender.name()), &gap(contender), "");
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
pub fn estimates(effort: Effort) -> Result<Outcome> {
    let seeds = 2 * effort.seeds;
    let lineup = [FLOOR, AUTHORS, NO_CAVITY, PARTICIPANTS, TOTAL];
    let mut case = Case::default();
    let mut charts = Vec::new();
    for from in [TWONORM, From::Covertype] {
        let race = race(from, 20, &lineup, Setup { rounds: 40, ..LOGISTIC }, seeds)?;
        let late = |contender, metric| race.late(contender, metric, 38);
        let same = minus(&late(AUTHORS, "accuracy"), &late(NO_CAVITY, "accuracy"));
        case.within(format!("{}: accuracy with the authors' estimate less that without cavity", from.name()), same, 0.005)
            .is_ours();
        let better = minus(&late(FLOOR, "log_likelihood"), &late(NO_CAVITY, "log_likelihood"));
        case.above(format!("{}: log-likelihood with the floor less that without cavity", from.name()), better, 0.0).is_ours();
        for contender in lineup {
            case.shows(format!("{}, {}: accuracy", from.name(), contender.name()), &late(contender, "accuracy"), "");
            case.shows(format!("{}, {}: log-likelihood", from.name(), contender.name()), &late(contender, "log_likelihood"), "");
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
pub fn baselines(effort: Effort) -> Result<Outcome> {
    let seeds = 2 * effort.seeds;
    let sgld = Contender::Theirs { central: true, noise: true, scale: false };
    let scale = Contender::Theirs { central: false, noise: false, scale: true };
    let both = Contender::Theirs { central: false, noise: true, scale: true };
    let lineup = [FLOOR, NO_CAVITY, Contender::Sgld, sgld, Contender::Dsgld, scale, both, PARTICIPANTS, TOTAL];
    let mut case = Case::default();
    let mut charts = Vec::new();
    for from in [TWONORM, From::Covertype] {
        let race = race(from, 20, &lineup, Setup { rounds: 40, ..LOGISTIC }, seeds)?;
        let early = |contender| race.at(contender, "accuracy", 4);
        let slow = minus(&early(PARTICIPANTS), &early(TOTAL));
        case.above(format!("{}, round 4: accuracy of FedAvg by participants less that by the total", from.name()), slow, 0.02)
            .is_ours();
        for (right, wrong) in [(Contender::Sgld, sgld), (Contender::Dsgld, scale), (Contender::Dsgld, both)] {
            for metric in ["accuracy", "log_likelihood"] {
                let difference = minus(&race.late(right, metric, 38), &race.late(wrong, metric, 38));
                let what = metric.replace('_', "-");
                case.shows(format!("{}: {what} of {} less that of {}", from.name(), right.name(), wrong.name()), &difference, "");
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
pub fn nine_sets(effort: Effort) -> Result<Outcome> {
    let lineup = [FLOOR, Contender::Remembered, NO_CAVITY, Contender::Svgd, PARTICIPANTS, TOTAL, Contender::Npv];
    let setup = Setup { particles: 100, rounds: 4, every: 4, ..LOGISTIC };
    let mut case = Case::default();
    let mut differences = Vec::new();
    for from in BINARY {
        let race = race(from, 2, &lineup, setup, effort.seeds)?;
        let of = |contender, metric| race.last(contender, metric);
        let difference = |contender| minus(&of(contender, "accuracy"), &of(Contender::Svgd, "accuracy"));
        differences.push((difference(FLOOR), difference(Contender::Remembered)));
        for contender in lineup {
            case.shows(format!("{}, {}: accuracy", from.name(), contender.name()), &of(contender, "accuracy"), "");
            case.shows(format!("{}, {}: log-likelihood", from.name(), contender.name()), &of(contender, "log_likelihood"), "");
        }
    }
    // Over sets, seed by seed.
    let seeds = effort.seeds as usize;
    let mean = |pick: Pick| -> Vec<f64> {
        (0..seeds).map(|seed| differences.iter().map(|set| pick(set)[seed]).sum::<f64>() / differences.len() as f64).collect()
    };
    case.within("accuracy of DSVGD less that of SVGD, mean over nine sets", mean(&|set| &set.0), 0.02);
    case.within("accuracy of U-DSVGD less that of SVGD, mean over nine sets", mean(&|set| &set.1), 0.02);
    let near = |values: &[f64]| (values.iter().sum::<f64>() / values.len() as f64).abs() <= 0.02;
    let count = differences.iter().filter(|set| near(&set.0)).count();
    case.must("sets on which DSVGD's accuracy is within .02 of SVGD's", format!("{count} of 9"), "5 or more", count >= 5);
    let axis = |pick: Pick| -> Vec<Vec<(f64, f64)>> {
        (0..seeds).map(|seed| (1..).zip(&differences).map(|(place, set)| (f64::from(place), pick(set)[seed])).collect()).collect()
    };
    let lines = vec![("DSVGD".to_owned(), axis(&|set| &set.0)), ("U-DSVGD".to_owned(), axis(&|set| &set.1))];
    let names: Vec<String> = (1..).zip(BINARY).map(|(place, from)| format!("{place} {}", from.name())).collect();
    let chart = Chart::new("", "set", "accuracy less that of SVGD", lines);
    let caption = format!(
        "N = 100, two agents, four rounds; SVGD 800 steps. Sets: {}; {}.",
        names.join(", "),
        means_and_errors(effort.seeds)
    );
    Ok(case.judged(Some(curves("Nine binary sets", vec![chart], &caption))))
}

/// A metric in the end by a number that is varied, for pictures.
type ByNumber = Vec<(String, Vec<Vec<(f64, f64)>>)>;

fn by_number(races: &[(f64, Race)], lineup: &[Contender], metric: &str, seeds: u64) -> ByNumber {
    let line = |contender: Contender, seed: usize| {
        races.iter().map(|(x, race)| (*x, race.last(contender, metric).get(seed).copied().unwrap_or(f64::NAN))).collect()
    };
    lineup
        .iter()
        .map(|&contender| (contender.name().to_owned(), (0..seeds as usize).map(|seed| line(contender, seed)).collect()))
        .collect()
}

/// Fig. 12 (a).
pub fn particles(effort: Effort) -> Result<Outcome> {
    let seeds = effort.seeds;
    let lineup = [
        FLOOR,
        Contender::Remembered,
        NO_CAVITY,
        Contender::Svgd,
        Contender::Sgld,
        Contender::Dsgld,
        PARTICIPANTS,
        TOTAL,
        Contender::Pmd,
    ];
    let mut case = Case::default();
    let mut charts = Vec::new();
    for from in [TWONORM, From::Covertype] {
        let races = [2, 6, 10, 20, 50].map(|particles| {
            let setup = Setup { particles, rounds: 4, every: 4, ..LOGISTIC };
            Ok((particles as f64, race(from, 2, &lineup, setup, seeds)?))
        });
        let races = races.into_iter().collect::<Result<Vec<_>>>()?;
        let Some((_, most)) = races.last() else { continue };
        let of = |contender| most.last(contender, "accuracy");
        for one in [FLOOR, Contender::Remembered] {
            let same = minus(&of(one), &of(Contender::Svgd));
            case.within(format!("{}, N = 50: accuracy of {} less that of SVGD", from.name(), one.name()), same, 0.02);
        }
        for other in [Contender::Sgld, Contender::Dsgld, Contender::Pmd] {
            let difference = minus(&of(FLOOR), &of(other));
            case.above(format!("{}, N = 50: accuracy of DSVGD less that of {}", from.name(), other.name()), difference, -0.01);
        }
        lineup.iter().for_each(|&one| case.shows(format!("{}, N = 50, {}: accuracy", from.name(), one.name()), &of(one), ""));
        charts.push(Chart::new(
            from.name(),
            "particles or chains, N",
            "test accuracy",
            by_number(&races, &lineup, "accuracy", seeds),
        ));
    }
    let caption = format!(
        "Two agents, four rounds of 200 steps (DSGLD: 400 updates of a chain, of the paper's 2,000). FedAvg has one \
         particle whatever N; {}.",
        means_and_errors(seeds)
    );
    Ok(case.judged(Some(curves("How many particles", charts, &caption))))
}

/// Fig. 12 (b).
pub fn particles_and_rounds(effort: Effort) -> Result<Outcome> {
    let seeds = 4 * effort.seeds;
    let mut case = Case::default();
    let mut charts = Vec::new();
    let lineup = [FLOOR, NO_CAVITY];
    for from in [TWONORM, From::Covertype] {
        let counts = [2, 4, 8, 16];
        let races = counts.map(|particles| race(from, 2, &lineup, Setup { particles, ..LOGISTIC }, seeds));
        let races = races.into_iter().collect::<Result<Vec<_>>>()?;
        let at = |place: usize, round| races[place].at(FLOOR, "accuracy", round);
        let same = minus(&at(2, 6), &at(1, 10));
        case.within(format!("{}: accuracy of N = 8 in round 6 less that of N = 4 in round 10", from.name()), same, 0.01);
        for contender in lineup {
            let lines = [2_u64, 4, 6, 10].map(|round| {
                let by_seed = (0..seeds as usize).map(|seed| {
                    let of = |race: &Race| race.at(contender, "accuracy", round)[seed];
                    counts.iter().zip(&races).map(|(&count, race)| (count as f64, of(race))).collect()
                });
                (format!("{round} rounds"), by_seed.collect())
            });
            let title = format!("{}, {}", from.name(), contender.name());
            charts.push(Chart::new(&title, "particles, N", "test accuracy", lines.into()));
        }
    }
    let caption = format!("Two agents, L = L' = 200; {}.", means_and_errors(seeds));
    Ok(case.judged(Some(curves("Particles against rounds", charts, &caption))))
}

/// Fig. 14.
pub fn iterations(effort: Effort) -> Result<Outcome> {
    let seeds = effort.seeds;
    let lineup =
        [FLOOR, Contender::Remembered, NO_CAVITY, Contender::Svgd, Contender::Sgld, Contender::Dsgld, PARTICIPANTS, TOTAL];
    let mut case = Case::default();
    let mut charts = Vec::new();
    for from in [TWONORM, From::Covertype] {
        let races = [10, 20, 50, 100, 200].map(|steps| {
            let setup = Setup { steps, distillation: steps, every: 10, ..LOGISTIC };
            Ok(((10 * steps) as f64, race(from, 2, &lineup, setup, seeds)?))
        });
        let races = races.into_iter().collect::<Result<Vec<_>>>()?;
        let Some((_, most)) = races.last() else { continue };
        let of = |contender| most.last(contender, "accuracy");
        for one in [FLOOR, Contender::Remembered] {
            let same = minus(&of(one), &of(Contender::Svgd));
            case.within(format!("{}, 2,000 steps: accuracy of {} less that of SVGD", from.name(), one.name()), same, 0.02);
            for other in [Contender::Sgld, Contender::Dsgld] {
                let difference = minus(&of(one), &of(other));
                let name = format!("{}, 2,000 steps: accuracy of {} less that of {}", from.name(), one.name(), other.name());
                case.above(name, difference, -0.005);
            }
        }
        lineup
            .iter()
            .for_each(|&one| case.shows(format!("{}, 2,000 steps, {}: accuracy", from.name(), one.name()), &of(one), ""));
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
pub fn hundred_agents(effort: Effort) -> Result<Outcome> {
    let seeds = 3 * effort.seeds;
    let federated = [Contender::Parallel, Contender::ParallelExact, Contender::ParallelSites, PARTICIPANTS, TOTAL];
    let mut case = Case::default();
    let mut charts = Vec::new();
    for from in [From::Twonorm(5000), From::Covertype] {
        let problems = from.problems(100, &Partition::Equal, seeds)?;
        let setup = Setup { particles: 20, schedule: Participation::Subset(20), ..LOGISTIC };
        let mut race = Race::run(&federated, setup, &problems)?;
        race.courses.extend(Race::run(&[Contender::DsgldAtOnce], setup, &problems)?.courses);
        let late = |contender| race.late(contender, "accuracy", 8);
        for other in [PARTICIPANTS, TOTAL, Contender::DsgldAtOnce] {
            let difference = minus(&late(Contender::ParallelExact), &late(other));
            case.above(
                format!("{}: accuracy of P-DSVGD without a floor less that of {}, last three rounds", from.name(), other.name()),
                difference,
                -0.005,
            );
        }
        for (contender, _) in &race.courses {
            case.shows(format!("{}, {}: accuracy", from.name(), contender.name()), &late(*contender), "");
            case.shows(
                format!("{}, {}: log-likelihood", from.name(), contender.name()),
                &race.late(*contender, "log_likelihood", 8),
                "",
            );
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
pub fn further_sets(effort: Effort) -> Result<Outcome> {
    let seeds = 4 * effort.seeds;
    let lineup = [FLOOR, NO_CAVITY, PARTICIPANTS, TOTAL, Contender::Svgd, Contender::Dsgld];
    let mut case = Case::default();
    let mut charts = Vec::new();
    for from in [BINARY[1], BINARY[2], BINARY[5]] {
        let run = |agents| race(from, agents, &lineup, Setup { rounds: 40, ..LOGISTIC }, seeds);
        let (two, twenty) = (run(2)?, run(20)?);
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
        for other in [PARTICIPANTS, TOTAL, Contender::Dsgld] {
            let difference = minus(&late(FLOOR), &late(other));
            case.above(
                format!("{}, K = 20: accuracy of DSVGD less that of {}, last five rounds", from.name(), other.name()),
                difference,
                -0.01,
            );
        }
        lineup.iter().for_each(|&one| case.shows(format!("{}, K = 20, {}: accuracy", from.name(), one.name()), &late(one), ""));
        charts.push(Chart::new(&format!("{}, K = 2", from.name()), "round", "test accuracy", two.lines("accuracy")));
        charts.push(Chart::new(&format!("{}, K = 20", from.name()), "round", "test accuracy", twenty.lines("accuracy")));
    }
    let caption = format!("N = 6, L = L' = 200; {}.", means_and_errors(seeds));
    let figure = mpibayes::plots::Figure { columns: 2, ..curves("Further sets, two and twenty agents", charts, &caption) };
    Ok(case.judged(Some(figure)))
}
