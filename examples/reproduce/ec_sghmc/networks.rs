//! MNIST: chains that are coupled elastically beside one chain, and beside one whose gradients come from six workers; and descent.

use super::super::dsvgd::sets::Set;
use super::super::judge::{Case, means_and_errors, minus};
use super::super::pictures::{Chart, Curves, curves};
use super::super::recording::Recording;
use super::super::workers::side_by_side;
use super::super::{Effort, Outcome};
use mpibayes::cluster::record::Row;
use mpibayes::cluster::simulate::{self, Cluster};
use mpibayes::cluster::{AgentId, BoxError, Context, JobOptions, Method};
use mpibayes::data::{Scaling, Shard, Split};
use mpibayes::methods::chains::async_sghmc::{AsyncSghmc, AsyncSghmcSettings};
use mpibayes::methods::chains::coupled::{CoupledChains, CouplingSchedule};
use mpibayes::methods::chains::ec_sghmc::EcSghmcSettings;
use mpibayes::methods::common::problem::OpenShard;
use mpibayes::methods::common::scores::{Estimator, Scores};
use mpibayes::methods::point::easgd::EasgdSettings;
use mpibayes::methods::tuning::Step;
use mpibayes::methods::{Evaluation, EvaluationTask, Posterior, Problem, WithEvaluation};
use mpibayes::models::Output;
use mpibayes::models::network::NetworkSettings;
use mpibayes::random::{Purpose, Seed, Who};
use std::sync::Arc;
use std::time::Instant;

type Result<T, E = BoxError> = std::result::Result<T, E>;

const WORKERS: u32 = 6;
const BATCH: usize = 100;
/// ε, V and κ: momentum decays by 0.05 a step, and a mean loss has the learning rate 0.015.
const STEP: f64 = 5e-4;
const FRICTION: f64 = 100.0;
const COUPLING: f64 = 3e4;
/// Test images that are judged.
const JUDGED: usize = 2000;
/// Seconds to send a message, and bytes a second.
const LATENCY: f64 = 50e-6;
const BANDWIDTH: f64 = 1.25e9;

/// MNIST, all of it at every worker.
struct Images {
    train: Shard<f32>,
    test: Shard<f32>,
    classes: usize,
}

fn images() -> Result<Images> {
    let set = Set::images(false, Scaling::Pixels)?;
    let all: Vec<usize> = (0..set.dataset.rows(Split::Train)).collect();
    let judged: Vec<usize> = (0..JUDGED).collect();
    Ok(Images {
        train: set.dataset.read_rows(Split::Train, &all)?,
        test: set.dataset.read_rows(Split::Test, &judged)?,
        classes: set.dataset.classes().len(),
    })
}

impl Images {
    fn problem(&self, hidden: &[usize], agents: u32) -> Result<Problem<f32>> {
        let settings = NetworkSettings { hidden: hidden.to_vec(), prior_precision: 1e-5, ..NetworkSettings::default() };
        let model = settings.build(self.train.features(), Output::Classes(self.classes))?;
        let shard = self.train.clone();
        Ok(Problem { model: Arc::new(model), agents, temperature: 1.0, shard: Arc::new(move |_| Ok(shard.clone())) })
    }
}

/// How a run went: at the evaluations the steps of each worker, seconds, and the negative log-likelihoods of the averaged predictions
/// and of a chain's own.
type Path = Vec<[f64; 4]>;

/// The NLL of guessing: what a run that has diverged is as good as.
const GUESSING: f64 = std::f64::consts::LN_10;

/// Runs a method on a simulated cluster with a rank for each worker, on which a gradient takes this long, and judges it now and then.
fn judged<M: Method<Number = f32>>(
    method: M,
    problem: &Problem<f32>,
    images: &Images,
    every: u64,
    steps_of_round: f64,
    cost: impl Fn(&M::Task) -> f64 + 'static,
    seed: u64,
) -> Result<Path>
where
    M::Server: Posterior<f32>,
{
    let (agents, test) = (method.agents() as usize, images.test.clone());
    let tests: OpenShard<f32> = Arc::new(move |agent| {
        // Slices of the test images.
        let (agent, rows) = (agent as usize, test.rows());
        let mine = agent * rows / agents..(agent + 1) * rows / agents;
        let x = test.x().slice(ndarray::s![mine.clone(), ..]).to_owned();
        Ok(Shard::new(x, test.y().slice(ndarray::s![mine]).to_owned()))
    });
    let model = problem.model.clone();
    let evaluator = Evaluation {
        model,
        every,
        test_rows: Some(tests),
        per_particle: true,
        average_from: None,
        ksd: None,
        particle_paths: false,
    };
    let task = move |_: AgentId, task: &EvaluationTask<M::Task>| match task {
        EvaluationTask::Inner(task) => cost(task),
        EvaluationTask::Evaluate(_) => 0.0,
    };
    let ranks = u32::try_from(agents)?;
    let cluster = Cluster { ranks, task: Some(Box::new(task)), after_report: None, latency: LATENCY, bandwidth: BANDWIDTH };
    let mut recording = Recording::default();
    match simulate::run(
        Arc::new(WithEvaluation { inner: method, evaluator }),
        JobOptions::new(Seed(seed)),
        &cluster,
        None,
        &mut recording,
    ) {
        // The rounds before it count.
        Err(fault) if !fault.to_string().contains("has diverged") => return Err(fault.into()),
        Ok(_) | Err(_) => {}
    }
    let point = |row: &Row| {
        let value = |name: &str| row.values.iter().find(|value| value.0 == name).map_or(f64::NAN, |value| value.1);
        let (averaged, own) = (-value("log_likelihood"), -value("particle_log_likelihood"));
        [row.step as f64 * steps_of_round, value("seconds"), averaged, own]
    };
    Ok(recording.table("metrics").map(point).collect())
}

/// Seconds of a gradient on one core here: the least of some.
fn gradient_seconds(problem: &Problem<f32>) -> Result<f64> {
    let cx = Context::detached(Seed(1));
    let mut theta = vec![0.0; problem.model.dim()];
    problem.model.draw_initial(&mut cx.stream(Who::Run, 0, Purpose::Initial), ndarray::ArrayViewMut1::from(&mut theta));
    let mut scores = Scores::open(problem, 0, BATCH, Estimator::Plain)?;
    let mut least = f64::INFINITY;
    for update in 0..20 {
        let since = Instant::now();
        scores.at(&Default::default(), &theta, 0, update, 1.0, &cx)?;
        least = least.min(since.elapsed().as_secs_f64());
    }
    Ok(least)
}

/// Who runs.
#[derive(Clone, Copy, PartialEq)]
enum Contender {
    One,
    Asynchronous(u64),
    Coupled { period: u64, anneal: bool },
}

const LINEUP: [(&str, Contender); 6] = [
    ("SGHMC, one chain", Contender::One),
    ("asynchronous SGHMC, s = 1", Contender::Asynchronous(1)),
    ("asynchronous SGHMC, s = 8", Contender::Asynchronous(8)),
    ("EC-SGHMC, s = 1", Contender::Coupled { period: 1, anneal: false }),
    ("EC-SGHMC, s = 8", Contender::Coupled { period: 8, anneal: false }),
    ("EC-SGHMC, s = 8, annealed", Contender::Coupled { period: 8, anneal: true }),
];

fn race(who: Contender, images: &Images, steps: u64, seconds: f64, seed: u64) -> Result<Path> {
    let agents = if who == Contender::One { 1 } else { WORKERS };
    let problem = images.problem(&[800, 800], agents)?;
    let every = steps / 10;
    match who {
        Contender::One | Contender::Coupled { .. } => {
            let (period, coupling, schedule) = match who {
                Contender::Coupled { period, anneal: true } => {
                    (period, COUPLING, CouplingSchedule::Anneal { from: steps / 2, over: steps / 4 })
                }
                Contender::Coupled { period, anneal: false } => (period, COUPLING, CouplingSchedule::Constant),
                Contender::One | Contender::Asynchronous(_) => (1, 0.0, CouplingSchedule::Constant),
            };
            let settings = EcSghmcSettings {
                steps: Some(steps),
                period,
                batch: BATCH,
                step: Step::Size(STEP),
                friction: Some(FRICTION),
                coupling,
                coupling_schedule: Some(schedule),
                asynchronous: true,
                same_start: true,
                burn_in: Some(0),
                thin: Some(0),
                ..EcSghmcSettings::default()
            };
            let method = CoupledChains {
                agents,
                transition: settings.transition(problem.clone()),
                plan: settings.plan(),
                asynchronous: true,
            };
            let cost = move |task: &mpibayes::methods::chains::coupled::Task| task.updates() as f64 * seconds;
            judged(method, &problem, images, every / period, period as f64, cost, seed)
        }
        Contender::Asynchronous(period) => {
            let all = steps * u64::from(WORKERS);
            let settings = AsyncSghmcSettings {
                steps: Some(all),
                period,
                batch: BATCH,
                step: Step::Size(STEP),
                friction: Some(FRICTION),
                burn_in: Some(0),
                thin: Some(0),
                ..AsyncSghmcSettings::default()
            };
            let method = AsyncSghmc { problem: problem.clone(), settings };
            judged(method, &problem, images, every * u64::from(WORKERS), 1.0 / f64::from(WORKERS), move |_| seconds, seed)
        }
    }
}

/// Fig. 2, left.
pub fn figure2(effort: Effort) -> Result<Outcome> {
    let images = images()?;
    let seeds: Vec<u64> = (1..=effort.seeds).collect();
    let steps = 640 / effort.share;
    let seconds = gradient_seconds(&images.problem(&[800, 800], 1)?)?;
    let jobs: Vec<(Contender, u64)> = LINEUP.iter().flat_map(|&(_, who)| seeds.iter().map(move |&seed| (who, seed))).collect();
    let found = side_by_side(&jobs, |&(who, seed)| race(who, &images, steps, seconds, seed))?;
    let of = |place: usize| &found[place * seeds.len()..(place + 1) * seeds.len()];
    // After as many steps of each worker.
    let at_step = |place: usize, step: u64, column: usize| -> Vec<f64> {
        let there = |at: &&[f64; 4]| (at[0] - step as f64).abs() < 0.5 && at[column].is_finite();
        of(place).iter().map(|course| course.iter().find(there).map_or(GUESSING, |at| at[column].min(GUESSING))).collect()
    };
    let half = |place: usize| at_step(place, steps / 2, 3);
    let mut case = Case::default();
    let [one, async_1, async_8, ec_1, ec_8] = [0, 1, 2, 3, 4].map(half);
    case.above("half-way: one chain less asynchronous SGHMC with s = 1", minus(&one, &async_1), 0.0);
    case.above("half-way: one chain less EC-SGHMC with s = 1", minus(&one, &ec_1), 0.0);
    let lost = minus(&async_8, &async_1);
    case.above("half-way: what asynchronous SGHMC loses from s = 1 to 8", lost.clone(), 0.0);
    case.above("half-way: that less what EC-SGHMC loses", minus(&lost, &minus(&ec_8, &ec_1)), 0.0);
    for (place, (name, _)) in LINEUP.iter().enumerate() {
        case.shows(format!("{name}: a chain's own NLL, half-way"), &half(place), "");
        case.shows(format!("{name}: in the end"), &at_step(place, steps, 3), "");
        case.shows(format!("{name}: of the averaged predictions in the end"), &at_step(place, steps, 2), "");
    }
    let lines = |x: usize| -> Curves {
        let line = |course: &Path| course.iter().map(|at| (at[x], at[3])).collect();
        (0..).zip(LINEUP).map(|(place, (name, _))| (name.to_owned(), of(place).iter().map(line).collect())).collect()
    };
    let label = "test NLL of a chain";
    let charts = vec![
        Chart::new("", "steps of each worker", label, lines(0)).within(0.1, 0.8),
        Chart::new("", "simulated seconds", label, lines(1)).within(0.1, 0.8),
    ];
    let caption = format!(
        "MNIST, 784-800-800-10, batch {BATCH}, prior precision 1e-5, ε = {STEP}, V = {FRICTION}, κ = {COUPLING:e}; a gradient takes {:.1} ms. \
         NLL: mean negative log-likelihood of {JUDGED} test images; what has diverged is as good as guessing; {}.",
        seconds * 1e3,
        means_and_errors(seeds.len() as u64)
    );
    Ok(case.judged(Some(curves("Six workers on MNIST", charts, &caption))))
}

/// By which share of its distance the center moves at an exchange (β).
const SHARES: [f64; 3] = [0.09, 0.3, 0.9];
const MOMENTUM: f64 = 0.95;

/// Deterministic elastic coupling beside EAMSGD, on a network with these hidden layers, at these learning rates of the mean loss.
pub fn descent(effort: Effort, hidden: &[usize], rates: [f64; 3]) -> Result<Outcome> {
    let grid: Vec<(f64, f64)> = rates.into_iter().flat_map(|rate| SHARES.map(|share| (rate, share))).collect();
    let images = images()?;
    let seeds: Vec<u64> = (1..=effort.seeds).collect();
    let (steps, period, workers) = (600 / effort.share, 8, 4);
    let problem = images.problem(hidden, workers)?;
    let rows = images.train.rows() as f64;
    // The mean loss of the training rows, of some of which it is taken.
    let testing = Images { train: images.train.clone(), test: first_rows(&images.train, 4000), classes: images.classes };
    let jobs: Vec<(bool, (f64, f64), u64)> = [true, false]
        .into_iter()
        .flat_map(|elastic| grid.iter().flat_map(move |&rate| (1..=effort.seeds).map(move |seed| (elastic, rate, seed))))
        .collect();
    let found = side_by_side(&jobs, |&(elastic, (rate, share), seed)| {
        let every = steps / period;
        let course = if elastic {
            // ε² N is the learning rate of the mean loss, εV what momentum loses.
            let step = (rate / rows).sqrt();
            let friction = (1.0 - MOMENTUM) / step;
            let settings = EcSghmcSettings {
                steps: Some(steps),
                period,
                step: Step::Size(step),
                friction: Some(friction),
                // A spring as stiff as its chain's share of what moves EAMSGD in an exchange.
                coupling: share / f64::from(workers) * (1.0 - MOMENTUM) / (period as f64 * step * step),
                coupling_schedule: Some(CouplingSchedule::Constant),
                noise: false,
                same_start: true,
                burn_in: Some(0),
                thin: Some(0),
                ..EcSghmcSettings::default()
            };
            let method = CoupledChains {
                agents: workers,
                transition: settings.transition(problem.clone()),
                plan: settings.plan(),
                asynchronous: false,
            };
            judged(method, &problem, &testing, every, period as f64, |_| 1.0, seed)
        } else {
            let settings = EasgdSettings {
                steps,
                period,
                step: rate / rows,
                momentum: MOMENTUM,
                rate: share,
                burn_in: 0,
                thin: 0,
                ..EasgdSettings::default()
            };
            let method = CoupledChains {
                agents: workers,
                transition: settings.transition(problem.clone()),
                plan: settings.plan(workers),
                asynchronous: false,
            };
            judged(method, &problem, &testing, every, period as f64, |_| 1.0, seed)
        };
        // What has diverged is not the best.
        Ok(course?.last().map(|at| at[3]).filter(|loss| loss.is_finite()).unwrap_or(GUESSING))
    })?;
    let count = seeds.len();
    let of = |elastic: usize, rate: usize| found[(elastic * grid.len() + rate) * count..][..count].to_vec();
    let best = |elastic: usize| {
        let mean = |rate: &usize| of(elastic, *rate).iter().sum::<f64>();
        (0..grid.len()).min_by(|a, b| mean(a).total_cmp(&mean(b))).unwrap_or(0)
    };
    let (coupling, averaging) = (best(0), best(1));
    let mut case = Case::default();
    let [ours, theirs] =
        [of(0, coupling), of(1, averaging)].map(|losses| losses.iter().map(|loss| loss.ln()).collect::<Vec<f64>>());
    case.above("log loss of EAMSGD less that of elastic coupling", minus(&theirs, &ours), -(1.05_f64.ln()));
    for (place, name) in ["elastic coupling without noise", "EAMSGD"].iter().enumerate() {
        for (at, (rate, share)) in grid.iter().enumerate() {
            case.shows(format!("{name}, learning rate {rate}, β = {share}: training loss"), &of(place, at), "");
        }
    }
    Ok(case.judged(None))
}

/// The first rows of a shard.
fn first_rows(shard: &Shard<f32>, rows: usize) -> Shard<f32> {
    Shard::new(shard.x().slice(ndarray::s![..rows, ..]).to_owned(), shard.y().slice(ndarray::s![..rows]).to_owned())
}
