//! MNIST: chains that are coupled elastically beside one chain, and beside one whose gradients come from six workers; and descent.

use super::super::dsvgd::sets::Set;
use super::super::files::{Runs, find, parse, settings, value};
use super::super::judge::{Case, means_and_errors, minus};
use super::super::pictures::{Chart, Curves, curves};
use super::super::recording::Recording;
use super::super::workers::side_by_side;
use super::super::{Effort, Outcome};
use mpibayes::cluster::record::Row;
use mpibayes::cluster::simulate::{self, Cluster};
use mpibayes::cluster::{AgentId, BoxError, Context, JobOptions, Method};
use mpibayes::config::Registry;
use mpibayes::data::{Dataset, Scaling, Shard, Split};
use mpibayes::methods::chains::async_sghmc::AsyncSghmc;
use mpibayes::methods::chains::coupled::{CoupledChains, CouplingSchedule};
use mpibayes::methods::chains::ec_sghmc::EcSghmcSettings;
use mpibayes::methods::common::problem::OpenShard;
use mpibayes::methods::common::scores::{Estimator, Scores};
use mpibayes::methods::point::easgd::EasgdSettings;
use mpibayes::methods::tuning::Step;
use mpibayes::methods::{Evaluation, EvaluationTask, Posterior, Problem, WithEvaluation};
use mpibayes::models::convolutional::ResnetSettings;
use mpibayes::models::network::NetworkSettings;
use mpibayes::models::{DataSchema, Model, ModelSettings, Output};
use mpibayes::random::{Purpose, Seed, Who};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;
use toml::{Table, Value};

type Result<T, E = BoxError> = std::result::Result<T, E>;

/// Test images that are judged.
const JUDGED: u32 = 2000;
/// Fewer of them, and small batches, in the quick version of Fig. 2.
const QUICK_JUDGED: usize = 400;
const QUICK_BATCH: &str = "method.batch=20";
/// Seconds to send a message, and bytes a second.
const LATENCY: f64 = 50e-6;
const BANDWIDTH: f64 = 1.25e9;

/// Images, all of them at every worker.
pub struct Images {
    pub train: Shard<f32>,
    test: Shard<f32>,
    schema: DataSchema,
}

fn mnist() -> Result<Images> {
    Images::new(&Set::images(false, Scaling::Pixels, JUDGED)?)
}

impl Images {
    /// All images of a set.
    pub fn new(set: &Set) -> Result<Self> {
        let dataset = Dataset::open(&set.file)?;
        let rows = |split| dataset.read_rows(split, &(0..dataset.rows(split)).collect::<Vec<_>>());
        let schema = DataSchema::new(dataset.features(), Output::Classes(dataset.classes().len()));
        let schema = DataSchema { shape: dataset.shape().to_vec(), ..schema };
        Ok(Self { train: rows(Split::Train)?, test: rows(Split::Test)?, schema })
    }

    /// The same with only the first test images.
    pub fn with_first_tests(self, tests: usize) -> Self {
        Self { test: first_rows(&self.test, tests), ..self }
    }

    fn problem(&self, run: &Table) -> Result<Problem<f32>> {
        let model: Arc<dyn Model<f32>> = match find(run, "model.name").and_then(Value::as_str) {
            Some(ResnetSettings::NAME) => Arc::new(settings::<ResnetSettings>(run, "model")?.build(&self.schema)?),
            _ => Arc::new(settings::<NetworkSettings>(run, "model")?.build(self.schema.features, self.schema.output)?),
        };
        let (agents, shard) = (value(run, "agents")?, self.train.clone());
        Ok(Problem { model, agents, temperature: 1.0, shard: Arc::new(move |_| Ok(shard.clone())) })
    }
}

/// How a run went, evaluation by evaluation.
pub type Path = Vec<Evaluated>;

/// An evaluation. The NLL is the mean negative log-likelihood of the test images.
#[derive(Clone, Copy)]
pub struct Evaluated {
    /// Of each worker.
    pub steps: f64,
    pub seconds: f64,
    /// The mean over chains of the NLL of a chain's own predictions.
    pub own_nll: f64,
    pub of_average: OfAverage,
}

impl Evaluated {
    pub fn is_at(&self, step: u64) -> bool {
        (self.steps - step as f64).abs() < 0.5
    }
}

/// What the predictions that are averaged over chains are worth.
#[derive(Clone, Copy)]
pub struct OfAverage {
    pub nll: f64,
    pub accuracy: f64,
    /// The expected calibration error.
    pub ece: f64,
}

/// The seed of the runs that choose step sizes; none that is judged has it.
const TUNING_SEED: u64 = 1001;
/// How often a step size is doubled or halved at most.
const MOVES: u32 = 6;

/// The NLL of guessing: what a run that has diverged is as good as.
pub const GUESSING: f64 = std::f64::consts::LN_10;

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
        Evaluated {
            steps: row.step as f64 * steps_of_round,
            seconds: value("seconds"),
            own_nll: -value("particle_log_likelihood"),
            of_average: OfAverage { nll: -value("log_likelihood"), accuracy: value("accuracy"), ece: value("ece") },
        }
    };
    Ok(recording.table("metrics").map(point).collect())
}

/// Seconds of a gradient on one core here: the least of some. Quick versions have a round number instead, so that their results do not depend on
/// the speed of the machine.
pub fn gradient_seconds(images: &Images, run: &Table, effort: Effort) -> Result<f64> {
    if effort.is_quick() {
        return Ok(0.01);
    }
    let (problem, batch) = (&images.problem(run)?, value(run, "method.batch")?);
    let cx = Context::detached(Seed(1));
    let mut theta = vec![0.0; problem.model.dim()];
    problem.model.draw_initial(&mut cx.stream(Who::Run, 0, Purpose::Initial), ndarray::ArrayViewMut1::from(&mut theta));
    let mut scores = Scores::open(problem, 0, batch, Estimator::Plain)?;
    let mut least = f64::INFINITY;
    for update in 0..20 {
        let since = Instant::now();
        scores.at(&Default::default(), &theta, 0, update, 1.0, &cx)?;
        least = least.min(since.elapsed().as_secs_f64());
    }
    Ok(least)
}

/// What a run is called.
fn name(run: &Table) -> Result<String> {
    let period = || value::<u64>(run, "method.period");
    let annealed = if find(run, "method.coupling_schedule.anneal").is_some() { ", annealed" } else { "" };
    Ok(match find(run, "method.name").and_then(Value::as_str) {
        Some("async_sghmc") => format!("asynchronous SGHMC, s = {}", period()?),
        _ if value::<u32>(run, "agents")? == 1 => "SGHMC, one chain".into(),
        _ => format!("EC-SGHMC, s = {}{annealed}", period()?),
    })
}

/// Steps of each worker.
pub fn steps_of_worker(run: &Table) -> Result<u64> {
    let is_shared = find(run, "method.name").and_then(Value::as_str) == Some("async_sghmc");
    Ok(value::<u64>(run, "method.steps")? / if is_shared { value::<u64>(run, "agents")? } else { 1 })
}

pub fn race(run: &Table, images: &Images, seconds: f64, seed: u64) -> Result<Path> {
    let problem = images.problem(run)?;
    let (agents, every) = (problem.agents, steps_of_worker(run)? / 10);
    if find(run, "method.name").and_then(Value::as_str) == Some("async_sghmc") {
        let method = AsyncSghmc { problem: problem.clone(), settings: settings(run, "method")? };
        return judged(method, &problem, images, every * u64::from(agents), 1.0 / f64::from(agents), move |_| seconds, seed);
    }
    let settings: EcSghmcSettings = settings(run, "method")?;
    let (transition, plan, asynchronous) = (settings.transition(problem.clone()), settings.plan(), settings.asynchronous);
    let method = CoupledChains { agents, transition, plan, asynchronous };
    let cost = move |task: &mpibayes::methods::chains::coupled::Task| task.updates() as f64 * seconds;
    judged(method, &problem, images, every / settings.period, settings.period as f64, cost, seed)
}

/// The runs of files with fewer steps.
pub fn shortened(files: &[Runs], share: u64) -> Vec<Table> {
    let mut runs = Runs::all(files).0;
    for method in runs.iter_mut().filter_map(|run| run.get_mut("method")?.as_table_mut()) {
        let shorten = |value: &mut Value| *value = Value::from(value.as_integer().unwrap_or(0) / share as i64);
        method.get_mut("steps").into_iter().for_each(shorten);
        let anneal = method.get_mut("coupling_schedule").and_then(|schedule| schedule.get_mut("anneal")?.as_table_mut());
        anneal.into_iter().flatten().for_each(|(_, value)| shorten(value));
    }
    runs
}

/// The same run with another value of a key, as with `--set`.
pub fn with(run: &Table, setting: &str) -> Result<Table> {
    Runs(vec![run.clone()]).set(setting)?.0.pop().ok_or_else(|| "a run file without runs".into())
}

/// The same run with a multiple of its step size.
pub fn with_step(run: &Table, factor: f64) -> Result<Table> {
    with(run, &format!("method.step={:e}", value::<f64>(run, "method.step")? * factor))
}

/// A run with the best of several step sizes.
pub struct Tuned {
    pub run: Table,
    /// The best step size as a multiple of that in the run file.
    pub factor: f64,
    tried: usize,
    is_at_edge: bool,
}

impl Tuned {
    /// The step size, for reports.
    pub fn step(&self) -> Result<String> {
        let step = value::<f64>(&self.run, "method.step")?;
        if self.tried == 0 {
            return Ok(format!("{step:.2e}, not searched"));
        }
        let edge = if self.is_at_edge { ", at the edge" } else { "" };
        Ok(format!("{step:.2e}; best of {} tried{edge}", self.tried))
    }
}

/// Finds the best step size of each run: doubled or halved as long as that makes it better, at most so many times. A step size that the program
/// refuses, because the coupling would be unstable, is not the best.
pub fn tuned(runs: &[Table], moves: u32, images: &Images, seconds: f64, steps: u64) -> Result<Vec<Tuned>> {
    let registry = Registry::default();
    runs.iter().try_for_each(|run| parse(run, &registry).map(drop))?;
    if moves == 0 {
        return Ok(runs.iter().map(|run| Tuned { run: run.clone(), factor: 1.0, tried: 0, is_at_edge: false }).collect());
    }
    let judge = |&(place, doubled): &(usize, i32)| {
        let run = with_step(&runs[place], 2_f64.powi(doubled))?;
        if parse(&run, &registry).is_err() {
            return Ok(GUESSING.ln());
        }
        Ok(mean_log(&race(&run, images, seconds, TUNING_SEED)?, steps))
    };
    let found = climb(runs.len(), moves, |wanted| side_by_side(wanted, judge))?;
    let chosen = runs.iter().zip(&found).map(|(run, found)| {
        let doubled = best(found).ok_or("no step size was tried")?;
        let factor = 2_f64.powi(doubled);
        let is_at_edge = [doubled - 1, doubled + 1].iter().any(|beside| !found.contains_key(beside));
        Ok(Tuned { run: with_step(run, factor)?, factor, tried: found.len(), is_at_edge })
    });
    chosen.collect()
}

/// What a run has found, by how often its step size was doubled.
type Tried = BTreeMap<i32, f64>;

/// How often the best step size was doubled. Of step sizes that are as good, such as those of runs that diverge, it is the smallest.
fn best(tried: &Tried) -> Option<i32> {
    tried.iter().min_by(|a, b| a.1.total_cmp(b.1)).map(|(&doubled, _)| doubled)
}

/// Tries the step sizes of the files, then those beside the best so far of each run, so many times. `judge` gets the runs and how often their step
/// size is doubled.
fn climb(runs: usize, moves: u32, judge: impl Fn(&[(usize, i32)]) -> Result<Vec<f64>>) -> Result<Vec<Tried>> {
    let mut found = vec![Tried::new(); runs];
    for _ in 0..=moves {
        let wanted: Vec<(usize, i32)> = (0..runs)
            .flat_map(|place| {
                let next = best(&found[place]).map_or(vec![0], |best| vec![best - 1, best + 1]);
                next.into_iter().map(move |doubled| (place, doubled))
            })
            .filter(|(place, doubled)| !found[*place].contains_key(doubled))
            .collect();
        for ((place, doubled), value) in wanted.iter().zip(judge(&wanted)?) {
            found[*place].insert(*doubled, value);
        }
    }
    Ok(found)
}

/// The mean over a run of the logarithm of a chain's own negative log-likelihood, at tenths of the steps. What has diverged is as good as
/// guessing.
pub fn mean_log(course: &Path, steps: u64) -> f64 {
    let judged = (1..=10).map(|at| {
        let there = |point: &&Evaluated| point.is_at(at * steps / 10) && point.own_nll.is_finite();
        course.iter().find(there).map_or(GUESSING, |point| point.own_nll.min(GUESSING)).ln()
    });
    judged.sum::<f64>() / 10.0
}

/// Fig. 2, left.
pub fn figure2(effort: Effort, files: &[Runs]) -> Result<Outcome> {
    let tests = if effort.is_quick() { QUICK_JUDGED } else { JUDGED as usize };
    let images = mnist()?.with_first_tests(tests);
    let seeds: Vec<u64> = (1..=effort.seeds).collect();
    // Evaluations, after each tenth of the steps, must coincide with exchanges, after each eighth step.
    let mut runs = shortened(files, if effort.is_quick() { 8 } else { 1 });
    if effort.is_quick() {
        runs = runs.iter().map(|run| with(run, QUICK_BATCH)).collect::<Result<_>>()?;
    }
    let Some(first) = runs.first() else { return Err("no run file".into()) };
    let (batch, steps): (usize, _) = (value(first, "method.batch")?, steps_of_worker(first)?);
    let seconds = gradient_seconds(&images, first, effort)?;
    let names = runs.iter().map(name).collect::<Result<Vec<_>>>()?;
    let tuned = tuned(&runs, if effort.is_quick() { 0 } else { MOVES }, &images, seconds, steps)?;
    let runs: Vec<&Table> = tuned.iter().map(|tuned| &tuned.run).collect();
    let mean_log = |course: &Path| mean_log(course, steps);
    let jobs: Vec<(&Table, u64)> = runs.iter().flat_map(|run| seeds.iter().map(move |&seed| (*run, seed))).collect();
    let found = side_by_side(&jobs, |&(run, seed)| race(run, &images, seconds, seed))?;
    let of = |place: usize| &found[place * seeds.len()..(place + 1) * seeds.len()];
    // After as many steps of each worker.
    let at_step = |place: usize, step: u64, nll: fn(&Evaluated) -> f64| -> Vec<f64> {
        let there = |at: &&Evaluated| at.is_at(step) && nll(at).is_finite();
        of(place).iter().map(|course| course.iter().find(there).map_or(GUESSING, |at| nll(at).min(GUESSING))).collect()
    };
    let mut case = Case::default();
    let [one, async_1, async_8, ec_1, ec_8] = [0, 1, 2, 3, 4].map(|place| of(place).iter().map(mean_log).collect::<Vec<f64>>());
    case.above("one chain less asynchronous SGHMC with s = 1", minus(&one, &async_1), 0.0);
    case.above("one chain less EC-SGHMC with s = 1", minus(&one, &ec_1), 0.0);
    let lost = minus(&async_8, &async_1);
    case.above("what asynchronous SGHMC loses from s = 1 to 8", lost.clone(), 0.0);
    let half_of_lost: Vec<f64> = lost.iter().map(|lost| 0.5 * lost).collect();
    case.above("half of that less what EC-SGHMC loses", minus(&half_of_lost, &minus(&ec_8, &ec_1)), 0.0);
    for (name, tuned) in names.iter().zip(&tuned) {
        case.tells(format!("{name}: step size"), tuned.step()?, "");
    }
    for (place, name) in names.iter().enumerate() {
        case.shows(format!("{name}: a chain's own NLL, half-way"), &at_step(place, steps / 2, |at| at.own_nll), "");
        case.shows(format!("{name}: in the end"), &at_step(place, steps, |at| at.own_nll), "");
        case.shows(format!("{name}: of the averaged predictions in the end"), &at_step(place, steps, |at| at.of_average.nll), "");
    }
    let lines = |x: fn(&Evaluated) -> f64| -> Curves {
        let line = |course: &Path| course.iter().map(|at| (x(at), at.own_nll)).collect();
        names.iter().enumerate().map(|(place, name)| (name.clone(), of(place).iter().map(line).collect())).collect()
    };
    let label = "test NLL of a chain";
    let charts = vec![
        Chart::new("", "steps of each worker", label, lines(|at| at.steps)).within(0.1, 0.8),
        Chart::new("", "simulated seconds", label, lines(|at| at.seconds)).within(0.1, 0.8),
    ];
    let caption = format!(
        "MNIST, 784-800-800-10, batch {batch}, prior precision 1e-5, V = {}, κ = {:e}; a gradient takes {:.1} ms. NLL: mean \
         negative log-likelihood of {tests} test images; what has diverged is as good as guessing; {}.",
        value::<f64>(first, "method.friction")?,
        runs.last().map_or(Ok(f64::NAN), |run| value(run, "method.coupling"))?,
        seconds * 1e3,
        means_and_errors(seeds.len() as u64)
    );
    Ok(case.judged(Some(curves("Six workers on MNIST", charts, &caption))))
}

/// The settings of elastic coupling without noise that descends like EAMSGD with these, on so many rows: ε² N is the learning rate of the
/// mean loss, and εV what momentum loses.
fn elastic(averaging: &EasgdSettings, workers: u32) -> EcSghmcSettings {
    let EasgdSettings { steps, period, batch, momentum, rate, .. } = *averaging;
    let step = averaging.step.sqrt();
    EcSghmcSettings {
        steps: Some(steps),
        period,
        batch,
        step: Step::Size(step),
        friction: Some((1.0 - momentum) / step),
        // A spring as stiff as its chain's share of what moves EAMSGD in an exchange.
        coupling: rate / f64::from(workers) * (1.0 - momentum) / (period as f64 * step * step),
        coupling_schedule: Some(CouplingSchedule::Constant),
        noise: false,
        same_start: true,
        burn_in: Some(0),
        thin: Some(0),
        ..EcSghmcSettings::default()
    }
}

/// Deterministic elastic coupling beside EAMSGD.
pub fn without_noise(effort: Effort, files: &[Runs]) -> Result<Outcome> {
    let images = mnist()?;
    let seeds: Vec<u64> = (1..=effort.seeds).collect();
    let runs = Runs::all(files).0;
    let grid = runs.iter().map(|run| {
        let averaging: EasgdSettings = settings(run, "method")?;
        Ok(EasgdSettings { steps: averaging.steps / effort.share, ..averaging })
    });
    let grid = grid.collect::<Result<Vec<_>>>()?;
    let Some(run) = runs.first() else { return Err("no run file".into()) };
    let (problem, rows) = (images.problem(run)?, images.train.rows() as f64);
    let workers = problem.agents;
    // The mean loss of the training rows, of some of which it is taken.
    let testing = Images { train: images.train.clone(), test: first_rows(&images.train, 4000), schema: images.schema.clone() };
    // EAMSGD's center moves by less than its distance; that of elastic coupling may be stiffer.
    let mut rates: Vec<f64> = grid.iter().map(|one| one.rate).collect();
    rates.sort_by(f64::total_cmp);
    rates.dedup();
    let largest = rates.last().copied().unwrap_or(f64::NAN);
    let stiffer = |one: &EasgdSettings, times: f64| EasgdSettings { rate: times * one.rate, ..one.clone() };
    let more = [10.0 / 3.0, 10.0, 100.0 / 3.0]
        .map(|times| grid.iter().filter(|one| one.rate == largest).map(move |one| stiffer(one, times)));
    let elastic_grid: Vec<EasgdSettings> = grid.iter().cloned().chain(more.into_iter().flatten()).collect();
    let loss = |is_elastic: bool, averaging: &EasgdSettings, seed: u64| -> Result<f64> {
        let (every, period) = (averaging.steps / averaging.period, averaging.period as f64);
        let course = if is_elastic {
            let settings = elastic(averaging, workers);
            let (transition, plan) = (settings.transition(problem.clone()), settings.plan());
            let method = CoupledChains { agents: workers, transition, plan, asynchronous: false };
            judged(method, &problem, &testing, every, period, |_| 1.0, seed)
        } else {
            let (transition, plan) = (averaging.transition(problem.clone()), averaging.plan(workers));
            let method = CoupledChains { agents: workers, transition, plan, asynchronous: averaging.asynchronous };
            judged(method, &problem, &testing, every, period, |_| 1.0, seed)
        };
        // What has diverged is not the best.
        Ok(course?.last().map(|at| at.own_nll).filter(|loss| loss.is_finite()).unwrap_or(GUESSING))
    };
    let mut case = Case::default();
    let mut logs = Vec::new();
    for (name, is_elastic, grid) in [("elastic coupling without noise", true, &elastic_grid), ("EAMSGD", false, &grid)] {
        let jobs: Vec<(&EasgdSettings, u64)> =
            grid.iter().flat_map(|one| [TUNING_SEED, TUNING_SEED + 1].map(|seed| (one, seed))).collect();
        let tried = side_by_side(&jobs, |(one, seed)| loss(is_elastic, one, *seed))?;
        let mean = |place: &usize| tried[2 * place] + tried[2 * place + 1];
        let best = (0..grid.len()).min_by(|a, b| mean(a).total_cmp(&mean(b))).ok_or("an empty grid")?;
        let described = |one: &EasgdSettings| {
            format!("learning rate {}, β = {}", (one.step * rows * 1e9).round() / 1e9, (one.rate * 1e9).round() / 1e9)
        };
        let found = side_by_side(&seeds, |seed| loss(is_elastic, &grid[best], *seed))?;
        let edges = [("learning rate", (|one| one.step) as fn(&EasgdSettings) -> f64), ("β", |one| one.rate)];
        let at_edge = edges.iter().filter(|(_, value)| is_at_edge(grid, best, *value)).map(|(name, _)| *name);
        let at_edge: Vec<&str> = at_edge.collect();
        let edge = if at_edge.is_empty() { String::new() } else { format!(" (the last {} tried)", at_edge.join(" and ")) };
        case.shows(format!("{name}, the best: {}{edge}: training loss", described(&grid[best])), &found, "");
        for (place, one) in grid.iter().enumerate() {
            let losses = [tried[2 * place], tried[2 * place + 1]].map(|loss| format!("{loss:.4}")).join(", ");
            case.tells(format!("{name}, {}: training loss with two other seeds", described(one)), losses, "");
        }
        logs.push(found.iter().map(|loss| loss.ln()).collect::<Vec<f64>>());
    }
    case.above("log loss of EAMSGD less that of elastic coupling", minus(&logs[1], &logs[0]), -MARGIN);
    Ok(case.judged(None))
}

/// Whether no setting has a larger value than this one, or none a smaller one.
fn is_at_edge(grid: &[EasgdSettings], place: usize, value: fn(&EasgdSettings) -> f64) -> bool {
    let here = value(&grid[place]);
    grid.iter().all(|one| value(one) <= here) || grid.iter().all(|one| value(one) >= here)
}

/// "At least as good": by the logarithm of the loss.
const MARGIN: f64 = 0.05;

/// The first rows of a shard.
fn first_rows(shard: &Shard<f32>, rows: usize) -> Shard<f32> {
    Shard::new(shard.x().slice(ndarray::s![..rows, ..]).to_owned(), shard.y().slice(ndarray::s![..rows]).to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn step_sizes_are_doubled_or_halved_until_that_no_longer_helps() {
        // Best at 1/4, at 4, and as good as guessing everywhere.
        let value = |run: usize, doubled: i32| match run {
            0 => f64::from((doubled + 2).abs()),
            1 => f64::from((doubled - 2).abs()),
            _ => 1.0,
        };
        let judge = |wanted: &[(usize, i32)]| Ok(wanted.iter().map(|&(run, doubled)| value(run, doubled)).collect());
        let found = climb(3, 4, judge).unwrap();
        assert_eq!((best(&found[0]), best(&found[1])), (Some(-2), Some(2)));
        // Nothing beyond the neighbors of the best is tried.
        assert_eq!(found[0].keys().copied().collect::<Vec<_>>(), [-3, -2, -1, 0, 1]);
        // It moves down as long as it may.
        assert_eq!(best(&found[2]), Some(-4));
        assert_eq!(best(&climb(1, 0, judge).unwrap()[0]), Some(0));
    }
}
