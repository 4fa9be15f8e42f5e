//! Gaussian targets: the paper's picture of coupled chains, their stationary law, and gradients that are old.

use super::super::delayed_gradients::{SGLD_VARIANCES, delayed_by_turns, growth, overdamped, stability_threshold};
use super::super::files::{Runs, settings, value};
use super::super::judge::{Case, minus};
use super::super::pictures::{Chart, curves, scatters};
use super::super::recording::Recording;
use super::super::workers::side_by_side;
use super::super::{Effort, Outcome};
use super::paper_scheme::{Order, PaperScheme};
use mpibayes::cluster::{AgentId, BoxError, JobOptions};
use mpibayes::data::Shard;
use mpibayes::kernels::hamiltonian::{Scheme, SghmcDynamics};
use mpibayes::methods::chains::async_sghmc::AsyncSghmcSettings;
use mpibayes::methods::chains::coupled::{
    CenterDynamics, CoupledChains, CoupledTransition, Coupling, CouplingPlan, CouplingSchedule, CouplingStrength,
};
use mpibayes::methods::chains::ec_sghmc::EcSghmcSettings;
use mpibayes::methods::common::scores::Estimator;
use mpibayes::methods::transitions::sghmc::{LocalSghmc, Sghmc};
use mpibayes::methods::{Problem, Transition};
use mpibayes::models::gaussian::{ComponentSettings, FactorProductSettings, PriorSettings};
use mpibayes::models::gaussian_mean::GaussianMeanSettings;
use mpibayes::random::{Seed, Stream};
use ndarray::{Array1, Array2};
use std::ops::Range;
use std::sync::Arc;
use toml::Table;

type Result<T, E = BoxError> = std::result::Result<T, E>;

/// N(0, covariance), which every agent knows.
fn gaussian(covariance: Vec<Vec<f64>>, agents: u32) -> Result<Problem<f64>> {
    let mean = vec![0.0; covariance.len()];
    let component = ComponentSettings { weight: 1.0, mean, covariance };
    let model = FactorProductSettings { prior: PriorSettings::Mixture(vec![component]), factors: Vec::new() }.build()?;
    let shard = Shard::new(Array2::zeros((0, 1)), Array1::zeros(0));
    Ok(Problem { model: Arc::new(model), agents, temperature: 1.0, shard: Arc::new(move |_| Ok(shard.clone())) })
}

/// Independent coordinates: each is a run of its own. The prior alone, without rows.
fn independent(model: &GaussianMeanSettings, dim: usize, agents: u32) -> Result<Problem<f64>> {
    let model = model.build(dim)?;
    let shard = Shard::new(Array2::zeros((0, dim)), Array1::zeros(0));
    Ok(Problem { model: Arc::new(model), agents, temperature: 1.0, shard: Arc::new(move |_| Ok(shard.clone())) })
}

fn sghmc(problem: Problem<f64>, step: f64, friction: f64) -> Sghmc<f64> {
    let dynamics = SghmcDynamics { scheme: Scheme::Middle, step, friction, gradient_noise: 0.0, noise: true };
    Sghmc { problem, batch: 1, gradient: Estimator::Plain, dynamics, preconditioner: None }
}

/// The mean square of all draws.
fn variance(recording: &Recording) -> f64 {
    let all = recording.values::<f64>("posterior");
    all.iter().map(|value| value * value).sum::<f64>() / all.len() as f64
}

/// A transition whose chains all begin here.
#[derive(Clone)]
struct From {
    inner: Sghmc<f64>,
    start: [f64; 2],
}

impl Transition for From {
    type Number = f64;
    type Local = LocalSghmc<f64>;

    fn dim(&self) -> usize {
        self.inner.dim()
    }

    fn state_len(&self) -> usize {
        self.inner.state_len()
    }

    fn keep(&self, chain: &[f64], kept: &mut Vec<f64>) {
        self.inner.keep(chain, kept);
    }

    fn draw_initial(&self, chain: u64, stream: &mut Stream, state: &mut [f64]) {
        self.inner.draw_initial(chain, stream, state);
        state[..2].copy_from_slice(&self.start);
    }

    fn step(&self, update: u64) -> f64 {
        self.inner.step(update)
    }

    fn open(&self, agent: AgentId) -> Result<LocalSghmc<f64>> {
        self.inner.open(agent)
    }
}

impl CoupledTransition for From {
    fn time(&self) -> f64 {
        self.inner.time()
    }

    fn noisy(&self) -> bool {
        self.inner.noisy()
    }

    fn velocities(&self) -> Option<Range<usize>> {
        self.inner.velocities()
    }
}

const CHAINS: u32 = 4;
const COVARIANCE: [[f64; 2]; 2] = [[1.0, 0.6], [0.6, 0.8]];
const START: [f64; 2] = [3.6, -3.6];
const SECOND: CenterDynamics = CenterDynamics::SecondOrder { mass: 1.0, friction: 1.0 };
/// χ² of two degrees of freedom, 99 %.
const ELLIPSE: f64 = 9.2103;

/// The first 100 steps of four chains: their paths.
fn first_steps(step: f64, coupling: f64, seed: u64) -> Result<Vec<Vec<[f64; 2]>>> {
    let problem = gaussian(COVARIANCE.map(Vec::from).to_vec(), CHAINS)?;
    let plan = CouplingPlan {
        steps: 100,
        period: 1,
        burn_in: 0,
        thin: 1,
        // Chains have velocities of their own; `From` fixes the positions.
        same_start: false,
        strength: CouplingStrength { full: coupling, schedule: CouplingSchedule::Constant },
        coupling: Coupling::Elastic(SECOND),
        extrapolate: false,
        sleep_ms: Vec::new(),
    };
    let transition = From { inner: sghmc(problem, step, 1.0), start: START };
    let recording =
        Recording::of(CoupledChains { agents: CHAINS, transition, plan, asynchronous: false }, JobOptions::new(Seed(seed)))?;
    Ok((0..CHAINS).map(|chain| recording.chain(chain).rows().into_iter().map(|at| [at[0], at[1]]).collect()).collect())
}

/// The same by the paper's own steps, with a center that is up to `period` steps old.
fn first_steps_of_paper(step: f64, coupling: f64, period: u64, seed: u64) -> Vec<Vec<[f64; 2]>> {
    let [[a, b], [_, c]] = COVARIANCE;
    let determinant = a * c - b * b;
    let scheme = PaperScheme {
        chains: CHAINS as usize,
        step,
        friction: 1.0,
        center_friction: 1.0,
        coupling,
        period,
        order: Order::Explicit,
        precision: [[c / determinant, -b / determinant], [-b / determinant, a / determinant]],
        start: START,
    };
    let mut paths = vec![Vec::new(); CHAINS as usize];
    scheme.run(100, seed, |_, chains| paths.iter_mut().zip(chains).for_each(|(path, at)| path.push(*at)));
    paths
}

/// What the first steps are judged by.
#[derive(Clone, Copy)]
struct FirstSteps {
    /// The mean distance of two chains over the second half.
    distance: f64,
    /// The share of all states outside of the ellipse, and that of the chain with the most.
    outside: f64,
    worst: f64,
}

impl FirstSteps {
    fn of(chains: &[Vec<[f64; 2]>]) -> Self {
        let (mut sum, mut count) = (0.0, 0.0);
        for (place, one) in chains.iter().enumerate() {
            for other in &chains[..place] {
                for (a, b) in one.iter().zip(other).skip(50) {
                    sum += (a[0] - b[0]).hypot(a[1] - b[1]);
                    count += 1.0;
                }
            }
        }
        let [[a, b], [_, c]] = COVARIANCE;
        let is_far = |[x, y]: &[f64; 2]| (c * x * x - 2.0 * b * x * y + a * y * y) / (a * c - b * b) > ELLIPSE;
        let share = |path: &Vec<[f64; 2]>| path.iter().filter(|at| is_far(at)).count() as f64 / path.len() as f64;
        let shares: Vec<f64> = chains.iter().map(share).collect();
        let outside = shares.iter().sum::<f64>() / shares.len() as f64;
        Self { distance: sum / count, outside, worst: shares.into_iter().fold(0.0, f64::max) }
    }
}

/// Fig. 1, by our sampler and by the paper's steps with several periods, some of which are only shown.
pub fn figure1(effort: Effort, step: f64, periods: &[u64], shown: &[u64]) -> Result<Outcome> {
    let repetitions: Vec<u64> = (1..=200 / effort.share).collect();
    let mut case = Case::default();
    let ours = |coupling: f64, seed: u64| first_steps(step, coupling, seed);
    let schemes = std::iter::once(None).chain(periods.iter().chain(shown).copied().map(Some));
    for period in schemes {
        let of = |coupling: f64| {
            side_by_side(&repetitions, |&seed| {
                let chains = match period {
                    None => ours(coupling, seed)?,
                    Some(period) => first_steps_of_paper(step, coupling, period, seed),
                };
                Ok(FirstSteps::of(&chains))
            })
        };
        let name = match period {
            None => "our sampler".to_owned(),
            Some(period) => format!("the paper's steps, s = {period}"),
        };
        let (alone, coupled) = (of(0.0)?, of(1.0)?);
        let each = |all: &[FirstSteps], value: fn(&FirstSteps) -> f64| all.iter().map(value).collect::<Vec<f64>>();
        let log = |all: &[FirstSteps]| each(all, |one| one.distance.ln());
        let is_claim = period.is_none_or(|period| periods.contains(&period));
        // All chains know the same center, which therefore cancels in what is between them: their distance does not depend on the period.
        let first = periods.first().copied();
        if period.is_none() || period == first {
            let ratio = minus(&log(&alone), &log(&coupled));
            let name = if period.is_none() { name.as_str() } else { "the paper's steps, any s" };
            case.above(format!("{name}: log distance of two chains alone less coupled"), ratio, 1.25_f64.ln());
        }
        let outside = minus(&each(&alone, |one| one.outside), &each(&coupled, |one| one.outside));
        let what = format!("{name}: share of states outside the ellipse, alone less coupled");
        match is_claim {
            true => drop(case.above(what, outside, 0.0)),
            false => case.shows(what, &outside, ""),
        }
        for (how, all) in [("alone", &alone), ("coupled", &coupled)] {
            // The period does not matter to chains alone.
            if how == "alone" && period > first {
                continue;
            }
            case.shows(format!("{name}, {how}: distance of two chains"), &each(all, |one| one.distance), "");
            case.shows(format!("{name}, {how}: share outside"), &each(all, |one| one.outside), "");
            case.shows(format!("{name}, {how}: share outside of the worst chain"), &each(all, |one| one.worst), "");
        }
    }
    let shown = |coupling: f64| -> Result<Vec<(f64, f64)>> {
        Ok(first_steps(step, coupling, 1)?.into_iter().flatten().map(|[x, y]| (x, y)).collect())
    };
    let panels = [("four chains alone", shown(0.0)?), ("four coupled chains", shown(1.0)?)];
    let laws = [("99 % of the posterior", [0.0, 0.0], COVARIANCE, ELLIPSE.sqrt())];
    let caption = format!(
        "The first 100 steps of {step} from (3.6, -3.6), κ = V = C = 1, by our sampler; one of {} repetitions.",
        repetitions.len()
    );
    Ok(case.judged(Some(scatters("From far away", "states of the chains", &panels, &laws, &caption))))
}

/// The variance of coupled chains on independent coordinates, seed by seed.
fn variances(effort: Effort, run: &Table) -> Result<Vec<f64>> {
    let seeds: Vec<u64> = (1..=effort.seeds).collect();
    let (agents, model): (u32, GaussianMeanSettings) = (value(run, "agents")?, settings(run, "model")?);
    let settings: EcSghmcSettings = settings(run, "method")?;
    // Long periods mix slowly.
    let steps = settings.steps() * if settings.period > 8 { 4 } else { 1 } / effort.share;
    side_by_side(&seeds, |&seed| {
        let transition = settings.transition(independent(&model, 100, agents)?);
        let plan = CouplingPlan { steps, ..settings.plan() };
        let method = CoupledChains { agents, transition, plan, asynchronous: settings.asynchronous };
        Ok(variance(&Recording::of(method, JobOptions::new(Seed(seed)))?))
    })
}

/// The stationary law.
pub fn stationary(effort: Effort, files: &[Runs]) -> Result<Outcome> {
    let [coupled, unbiased]: &[Runs; 2] = files.try_into()?;
    let mut case = Case::default();
    let mut lines = Vec::new();
    for runs in coupled.by("agents") {
        let chains: u32 = runs.value("agents")?;
        let mut line = vec![Vec::new(); effort.seeds as usize];
        for run in &runs.0 {
            let (kappa, period): (f64, u64) = (value(run, "method.coupling")?, value(run, "method.period")?);
            if kappa == 0.0 && period != 4 {
                continue;
            }
            let exact = 1.0 - f64::from(chains - 1) / f64::from(chains) * kappa / (1.0 + kappa);
            let found = variances(effort, run)?;
            let off = found.iter().map(|found| found / exact - 1.0).collect();
            case.within(format!("K = {chains}, κ = {kappa} λ, s = {period}: variance / ours - 1"), off, 0.03).is_ours();
            if period == 4 && kappa > 0.0 {
                let less = found.iter().map(|found| 1.0 - found).collect();
                let name = format!("K = {chains}, κ = {kappa} λ: 1 less the variance, in units of the posterior's");
                case.above(name, less, 0.02).is_ours();
                line.iter_mut().zip(&found).for_each(|(line, found)| line.push((f64::log10(kappa), *found)));
            }
        }
        lines.push((format!("K = {chains}"), line));
    }
    for (name, run) in ["annealed", "coupled friction"].iter().zip(&unbiased.0) {
        let off = variances(effort, run)?.iter().map(|found| found - 1.0).collect();
        case.within(format!("{name}, K = 4, κ = λ, s = 8: variance - 1"), off, 0.03).is_ours();
    }
    let chart = Chart::new("", "log10 of κ/λ", "variance of a chain / that of the posterior", lines).within(0.0, 1.05);
    let caption = format!(
        "SGHMC with steps of 0.05, s = 4; means and standard errors of {} seeds. At 1 chains sample the posterior.",
        effort.seeds
    );
    Ok(case.judged(Some(curves("What coupled chains sample", vec![chart], &caption))))
}

/// The variance of a chain by the paper's steps, on independent coordinates whose posterior has variance 1.
fn variance_of_paper(coupling: f64, period: u64, order: Order, effort: Effort, seed: u64) -> f64 {
    let mut precision = [[0.0; 20]; 20];
    (0..20).for_each(|j| precision[j][j] = 1.0);
    let scheme = PaperScheme {
        chains: CHAINS as usize,
        step: 0.05,
        friction: 1.0,
        center_friction: 1.0,
        coupling,
        period,
        order,
        precision,
        start: [0.0; 20],
    };
    let (mut sum, mut count) = (0.0, 0.0);
    scheme.run(100_000 / effort.share, seed, |step, chains| {
        if step >= 1000 {
            sum += chains.iter().flatten().map(|x| x * x).sum::<f64>();
            count += 20.0 * f64::from(CHAINS);
        }
    });
    sum / count
}

/// The paper's claim about the same: coupled chains beside chains alone, which differ by nothing else.
pub fn posterior(effort: Effort, files: &[Runs]) -> Result<Outcome> {
    let seeds: Vec<u64> = (1..=effort.seeds).collect();
    let mut case = Case::default();
    for run in &Runs::all(files).0 {
        let (chains, kappa): (u32, f64) = (value(run, "agents")?, value(run, "method.coupling")?);
        let period: u64 = value(run, "method.period")?;
        if (chains, kappa) == (4, 1.0) && [1, 8].contains(&period) {
            let off = variances(effort, run)?.iter().map(|found| found - 1.0).collect();
            case.within(format!("our sampler, s = {period}: variance of a chain / that of the posterior - 1"), off, 0.03);
        }
    }
    let alone = side_by_side(&seeds, |&seed| Ok(variance_of_paper(0.0, 1, Order::Explicit, effort, seed)))?;
    let mut coupled = Vec::new();
    for period in PERIODS {
        let found = side_by_side(&seeds, |&seed| Ok(variance_of_paper(1.0, period, Order::Explicit, effort, seed)))?;
        if [1, 8].contains(&period) {
            let off = found.iter().zip(&alone).map(|(coupled, alone)| coupled / alone - 1.0).collect();
            case.within(format!("the paper's steps, s = {period}: variance of a chain / that of a chain alone - 1"), off, 0.03);
        }
        coupled.push((period, found));
    }
    case.shows("the paper's steps: variance of a chain alone / the posterior's", &alone, "1.053, as the steps are of .05");
    for (period, found) in &coupled {
        case.shows(format!("the paper's steps, s = {period}: variance of a coupled chain / the posterior's"), found, "");
    }
    Ok(case.judged(None))
}

/// Steps between exchanges.
const PERIODS: [u64; 4] = [1, 2, 4, 8];

/// What a center that is old does to coupled chains, by the paper's steps.
pub fn buffer(effort: Effort) -> Result<Outcome> {
    let seeds: Vec<u64> = (1..=effort.seeds).collect();
    let mut case = Case::default();
    for (name, order) in [("explicit", Order::Explicit), ("velocities first", Order::SemiImplicit)] {
        let of = |period: u64| side_by_side(&seeds, |&seed| Ok(variance_of_paper(1.0, period, order, effort, seed)));
        let fresh = of(PERIODS[0])?;
        for period in &PERIODS[1..] {
            let more = of(*period)?.iter().zip(&fresh).map(|(old, fresh)| 1.03 - old / fresh).collect();
            case.above(format!("{name}, s = {period}: 1.03 less the variance of a chain / that with s = 1"), more, 0.0).is_ours();
        }
    }
    Ok(case.judged(None))
}

/// A chain whose gradients are this old.
fn delayed_chain(delay: u32, settings: AsyncSghmcSettings, dim: usize, seed: u64) -> Result<Recording> {
    let model = GaussianMeanSettings { prior_precision: 1.0, ..GaussianMeanSettings::default() };
    Ok(delayed_by_turns(independent(&model, dim, delay + 1)?, AsyncSghmcSettings { thin: Some(10), ..settings }, seed)?)
}

/// Old gradients.
pub fn staleness(effort: Effort) -> Result<Outcome> {
    let seeds: Vec<u64> = (1..=effort.seeds).collect();
    let mut case = Case::default();
    let mut line = vec![Vec::new(); seeds.len()];
    for (delay, exact) in SGLD_VARIANCES {
        let steps = 60_000 / effort.share;
        let found =
            side_by_side(&seeds, |&seed| Ok(variance(&delayed_chain(delay, overdamped(0.1, 1.0, steps, true), 100, seed)?)))?;
        let off = found.iter().map(|found| found / exact - 1.0).collect();
        case.within(format!("delay {delay}: variance at ελ = 0.1 / theory - 1"), off, 0.03).is_ours();
        line.iter_mut().zip(&found).for_each(|(line, found)| line.push((f64::from(delay), *found)));
        let threshold = stability_threshold(delay);
        let grown = |times: f64| match delayed_chain(delay, overdamped(times * threshold, 1.0, 4000, false), 1, 1) {
            Ok(recording) => Ok(growth(&recording.values("posterior"), 20)),
            Err(error) if error.to_string().contains("has diverged") => Ok(f64::INFINITY),
            Err(error) => Err(error),
        };
        let (below, above) = (grown(0.98)?, grown(1.02)?);
        case.must(
            format!("delay {delay}: growth without noise at 0.98 and 1.02 of ελ = {threshold:.3}"),
            format!("{below:.1e}, {above:.1e}"),
            "below 0.01, above 100",
            below < 0.01 && above > 100.0,
        );
    }
    let lines = vec![("gradients of that age".to_owned(), line)];
    let chart = Chart::new("", "age of gradients, in steps", "variance / that of the posterior", lines).within(0.9, 2.8);
    let caption = format!("SGLD with ελ = 0.1; means and standard errors of {} seeds.", seeds.len());
    Ok(case.judged(Some(curves("What old gradients do", vec![chart], &caption))))
}
