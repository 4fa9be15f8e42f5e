//! Gaussian targets: the paper's picture of coupled chains, their stationary law, and gradients that are old.

use super::super::delayed_gradients::{SGLD_VARIANCES, delayed_by_turns, growth, overdamped, stability_threshold};
use super::super::files::{Runs, settings, value};
use super::super::judge::{Case, minus};
use super::super::pictures::{Chart, curves, scatters};
use super::super::recording::Recording;
use super::super::workers::side_by_side;
use super::super::{Effort, Outcome};
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
        same_start: true,
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

/// The mean distance of two chains over the second half, and the share of chains outside the ellipse in the end.
fn apart(chains: &[Vec<[f64; 2]>]) -> (f64, f64) {
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
    let far = |[x, y]: [f64; 2]| (c * x * x - 2.0 * b * x * y + a * y * y) / (a * c - b * b) > ELLIPSE;
    let outside = chains.iter().filter(|path| path.last().is_none_or(|&at| far(at))).count();
    (sum / count, outside as f64 / chains.len() as f64)
}

/// Fig. 1.
pub fn figure1(effort: Effort, step: f64) -> Result<Outcome> {
    let repetitions: Vec<u64> = (1..=200 / effort.share).collect();
    let of = |coupling: f64| -> Result<(Vec<f64>, Vec<f64>)> {
        let found = side_by_side(&repetitions, |&seed| Ok(apart(&first_steps(step, coupling, seed)?)))?;
        Ok(found.into_iter().unzip())
    };
    let (alone, coupled) = (of(0.0)?, of(1.0)?);
    let mut case = Case::default();
    case.above("distance of two chains alone less that of coupled ones", minus(&alone.0, &coupled.0), 0.0);
    case.above("share of chains outside the ellipse alone, less that of coupled ones", minus(&alone.1, &coupled.1), -0.02);
    for (name, (apart, outside)) in [("alone", &alone), ("coupled", &coupled)] {
        case.shows(format!("{name}: distance of two chains"), apart, "");
        case.shows(format!("{name}: share outside in the end"), outside, "");
    }
    let shown = |coupling: f64| -> Result<Vec<(f64, f64)>> {
        Ok(first_steps(step, coupling, 1)?.into_iter().flatten().map(|[x, y]| (x, y)).collect())
    };
    let panels = [("four chains alone", shown(0.0)?), ("four coupled chains", shown(1.0)?)];
    let laws = [("99 % of the posterior", [0.0, 0.0], COVARIANCE, ELLIPSE.sqrt())];
    let caption =
        format!("The first 100 steps of {step} from (3.6, -3.6), κ = V = C = 1; one of {} repetitions.", repetitions.len());
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

/// The paper's claim about the same.
pub fn posterior(effort: Effort, files: &[Runs]) -> Result<Outcome> {
    let mut case = Case::default();
    for run in &Runs::all(files).0 {
        let (chains, kappa): (u32, f64) = (value(run, "agents")?, value(run, "method.coupling")?);
        let period: u64 = value(run, "method.period")?;
        if (chains, kappa) == (4, 1.0) && [1, 8].contains(&period) {
            let off = variances(effort, run)?.iter().map(|found| found - 1.0).collect();
            case.within(format!("K = 4, κ = λ, s = {period}: variance of a chain / that of the posterior - 1"), off, 0.03);
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
        let grown = |times: f64| {
            delayed_chain(delay, overdamped(times * threshold, 1.0, 4000, false), 1, 1)
                .map_or(f64::INFINITY, |recording| growth(&recording.values("posterior"), 20))
        };
        let (below, above) = (grown(0.98), grown(1.02));
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
