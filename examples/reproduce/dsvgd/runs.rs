//! Runs of all methods in this process, one thread each, with the metrics and particles after their rounds.

use super::super::pictures::Curves;
use super::super::workers::side_by_side;
use super::authors::Authors;
use mpibayes::cluster::record::{Record, Row};
use mpibayes::cluster::{BoxError, JobOptions, Method, Recorder, threads};
use mpibayes::data::Shard;
use mpibayes::kernels::adagrad::Optimizer;
use mpibayes::kernels::kde::{Kde, KdeMode};
use mpibayes::kernels::langevin::StepSize;
use mpibayes::kernels::rbf::Bandwidth;
use mpibayes::kernels::svgd::Settings;
use mpibayes::methods::chains::dsgld::{Dsgld, DsgldSettings, Schedule, Trajectory};
use mpibayes::methods::common::participation::Participation;
use mpibayes::methods::common::problem::OpenShard;
use mpibayes::methods::particles::dsvgd::{Caution, Curvature, Dsvgd, Factors, Found, PriorConvention, SiteSettings};
use mpibayes::methods::particles::pmd::Pmd;
use mpibayes::methods::particles::svgd::Svgd;
use mpibayes::methods::point::fedavg::{FedAvg, Weighting};
use mpibayes::methods::variational::npv::Npv;
use mpibayes::methods::variational::pvi::{Covariance, Pvi};
use mpibayes::methods::{Evaluation, PARTICLE_PATHS, Posterior, Problem, WithEvaluation};
use mpibayes::models::Model;
use mpibayes::number::Real;
use mpibayes::random::Seed;
use ndarray::{Array1, Array2};
use std::collections::BTreeMap;
use std::sync::Arc;

pub type Result<T> = std::result::Result<T, BoxError>;

/// Metrics and particles of a run.
#[derive(Default)]
pub struct Course {
    rows: Vec<Row>,
    /// The particles, by their number, for each evaluated round.
    particle_paths: BTreeMap<u64, BTreeMap<u32, Vec<f64>>>,
}

impl Recorder for Course {
    fn write(&mut self, records: Vec<Record>) -> Result<()> {
        for record in records {
            match record {
                Record::Row(row) => self.rows.push(row),
                Record::Draws(draws) if draws.group == PARTICLE_PATHS => {
                    let values = bytemuck::pod_collect_to_vec(&draws.bytes);
                    self.particle_paths.entry(draws.first).or_default().insert(draws.chain, values);
                }
                Record::Draws(_) => {}
            }
        }
        Ok(())
    }
}

impl Course {
    /// A metric after each evaluated round.
    pub fn curve(&self, metric: &str) -> Vec<(f64, f64)> {
        let rows = self.rows.iter().filter(|row| row.table == "metrics");
        let value = |row: &Row| row.values.iter().find(|(name, _)| name == metric).map(|value| value.1);
        rows.filter_map(|row| Some((row.step as f64, value(row)?))).collect()
    }

    /// A metric after the last round.
    pub fn last(&self, metric: &str) -> f64 {
        self.curve(metric).last().map_or(f64::NAN, |point| point.1)
    }

    /// A metric after this round.
    pub fn at(&self, metric: &str, round: u64) -> f64 {
        self.curve(metric).iter().find(|point| point.0 == round as f64).map_or(f64::NAN, |point| point.1)
    }

    /// The particles (N × d) after each round, if every round is evaluated.
    pub fn particles(&self) -> Result<Vec<Array2<f64>>> {
        let of = |set: &BTreeMap<u32, Vec<f64>>| {
            let dim = set.values().next().map_or(0, Vec::len);
            Ok(Array2::from_shape_vec((set.len(), dim), set.values().flatten().copied().collect())?)
        };
        self.particle_paths.values().map(of).collect()
    }

    /// Confidence and accuracy of the bins with at least 20 rows, in the last evaluation.
    pub fn reliability(&self) -> Vec<(f64, f64)> {
        let bins = || self.rows.iter().filter(|row| row.table == "reliability");
        let last = bins().map(|row| row.step).max();
        let value = |row: &Row, name: &str| row.values.iter().find(|value| value.0 == name).map_or(f64::NAN, |value| value.1);
        let solid = bins().filter(|row| Some(row.step) == last && value(row, "rows") >= 20.0);
        solid.map(|row| (value(row, "confidence"), value(row, "accuracy"))).collect()
    }
}

/// An inference problem with the shards of all agents.
#[derive(Clone)]
pub struct Shared<F: Real> {
    pub model: Arc<dyn Model<F>>,
    /// The shard of each agent.
    pub shards: Vec<Shard<F>>,
    /// The rows of all agents.
    pub pooled: Shard<F>,
    /// Test rows; `None` for bare densities, whose particles are kept instead.
    pub tests: Option<Shard<F>>,
}

impl<F: Real> Shared<F> {
    fn problem(&self, pooled: bool) -> Problem<F> {
        let shards = if pooled { vec![self.pooled.clone()] } else { self.shards.clone() };
        let agents = shards.len() as u32;
        let open = move |agent: u32| Ok(shards.get(agent as usize).ok_or("there is no such agent")?.clone());
        Problem { model: self.model.clone(), agents, temperature: 1.0, shard: Arc::new(open) }
    }

    /// The first agent evaluates all test rows: agents run on one thread anyway.
    fn evaluation(&self, every: u64) -> Evaluation<F> {
        let slice = |tests: &Shard<F>| -> OpenShard<F> {
            let tests = tests.clone();
            let none = Shard::new(Array2::zeros((0, tests.features())), Array1::zeros(0));
            Arc::new(move |agent| Ok(if agent == 0 { tests.clone() } else { none.clone() }))
        };
        let test_rows = self.tests.as_ref().map(slice);
        Evaluation {
            model: self.model.clone(),
            every,
            particle_paths: test_rows.is_none(),
            test_rows,
            per_particle: false,
            average_from: None,
            ksd: None,
        }
    }
}

/// The constants that all methods of a comparison share.
#[derive(Clone, Copy)]
pub struct Setup {
    /// N, the number of particles.
    pub particles: usize,
    /// I, the number of rounds.
    pub rounds: u64,
    /// L, the steps of a visit.
    pub steps: u64,
    /// L', the steps of distillation.
    pub distillation: u64,
    pub batch: usize,
    pub optimizer: Optimizer,
    pub schedule: Participation,
    /// Rounds between evaluations.
    pub every: u64,
    /// a0 of Langevin steps a0 (0.5 + l)^(−0.55)/N.
    pub langevin: f64,
}

/// The constants of the logistic regressions and of the toys.
pub const LOGISTIC: Setup = Setup {
    particles: 6,
    rounds: 10,
    steps: 200,
    distillation: 200,
    batch: 100,
    optimizer: Optimizer::Adagrad { step: 0.05, decay: 0.9, fudge: 1e-9 },
    schedule: Participation::RoundRobin,
    every: 1,
    langevin: 0.01,
};

/// A method of a comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Contender {
    Dsvgd(KdeMode),
    /// U-DSVGD.
    Remembered,
    /// DSVGD with quadratic sites, which the paper does not have.
    Sites(SiteSettings),
    /// P-DSVGD with distilled factors.
    Parallel,
    /// P-DSVGD without a floor of the density estimates.
    ParallelExact,
    /// P-DSVGD with sites.
    ParallelSites,
    /// SVGD on all data.
    Svgd,
    FedAvg(Weighting),
    /// SGLD on all data.
    Sgld,
    Dsgld,
    /// D-SGLD with all chains in every round, each at another agent.
    DsgldAtOnce,
    /// PVI with 20,000 draws, whose moments agree with the Gaussian's to a hundredth.
    Pvi,
    /// GVI on all data.
    Gvi,
    /// NPV on all data.
    Npv,
    /// PMD on all data.
    Pmd,
    /// SGLD or D-SGLD with the noise or the scale of local losses of the authors' code.
    Theirs {
        central: bool,
        noise: bool,
        scale: bool,
    },
}

/// Sites with diagonals at each particle and measured caution.
pub const SITES: Contender =
    Contender::Sites(SiteSettings { caution: Caution::Found(Found::Measured), curvature: Curvature::PerParticle, rows: 2000 });
/// DSVGD without a floor of the density estimates.
pub const EXACT: Contender = Contender::Dsvgd(KdeMode::Lse { floor: 0.0 });
pub const FLOOR: Contender = Contender::Dsvgd(KdeMode::Lse { floor: 1e-9 });
pub const AUTHORS: Contender = Contender::Dsvgd(KdeMode::AuthorsCompat);
pub const NO_CAVITY: Contender = Contender::Dsvgd(KdeMode::None);
pub const PARTICIPANTS: Contender = Contender::FedAvg(Weighting::Participants);
pub const TOTAL: Contender = Contender::FedAvg(Weighting::Total);

impl Contender {
    pub fn name(self) -> &'static str {
        match self {
            Self::Dsvgd(KdeMode::Lse { floor: 0.0 }) => "DSVGD, no floor",
            Self::Dsvgd(KdeMode::Lse { .. }) => "DSVGD",
            Self::Dsvgd(KdeMode::AuthorsCompat) => "DSVGD, authors' estimate",
            Self::Dsvgd(KdeMode::None) => "DSVGD, no cavity",
            Self::Remembered => "U-DSVGD",
            Self::Sites(SiteSettings { curvature: Curvature::PerParticle, .. }) => "sites",
            Self::Sites(SiteSettings { curvature: Curvature::Shared, .. }) => "sites, shared",
            Self::Sites(SiteSettings { curvature: Curvature::Full, .. }) => "sites, whole matrices",
            Self::Parallel => "P-DSVGD",
            Self::ParallelExact => "P-DSVGD, no floor",
            Self::ParallelSites => "P-DSVGD, sites (ours)",
            Self::Svgd => "SVGD, all data",
            Self::FedAvg(Weighting::Participants) => "FedAvg, participants",
            Self::FedAvg(Weighting::Total) => "FedAvg, total",
            Self::Sgld => "SGLD, all data",
            Self::Dsgld | Self::DsgldAtOnce => "DSGLD",
            Self::Pvi => "PVI",
            Self::Gvi => "GVI, all data",
            Self::Npv => "NPV, all data",
            Self::Pmd => "PMD, all data",
            Self::Theirs { central: true, .. } => "SGLD, authors' noise",
            Self::Theirs { noise: true, .. } => "DSGLD, authors' noise and scale",
            Self::Theirs { .. } => "DSGLD, authors' scale",
        }
    }

    /// Runs the method.
    pub fn run<F: Real>(self, setup: Setup, shared: &Shared<F>, seed: u64) -> Result<Course> {
        let Setup { particles, rounds, steps, distillation, batch, optimizer, schedule, every, .. } = setup;
        let kde = |mode| Settings::rbf(Bandwidth::default(), optimizer, Kde { mode, ..Kde::default() });
        let problem = |central| shared.problem(central);
        let gaussian = |central| {
            let (covariance, particles) = (Covariance::Full, 20_000);
            let (problem, iterations) = (problem(central), steps);
            Pvi { problem, rounds, schedule, iterations, damping: 0.2, covariance, nodes: None, batch: None, particles }
        };
        let distilled = Factors::Distilled { steps: distillation, prior: PriorConvention::Absorbed };
        let dsvgd = |mode, factors, server_steps| {
            let (problem, stein) = (problem(false), kde(mode));
            let method = Dsvgd { problem, rounds, schedule, particles, local_steps: steps, factors, batch, stein, server_steps };
            watch(method, shared, every, seed)
        };
        match self {
            // Without density estimates there is no distillation.
            Self::Dsvgd(KdeMode::None) => {
                dsvgd(KdeMode::None, Factors::Distilled { steps: 0, prior: PriorConvention::Absorbed }, None)
            }
            Self::Dsvgd(mode) => dsvgd(mode, distilled, None),
            Self::Sites(sites) => dsvgd(KdeMode::None, Factors::Sites(sites), None),
            Self::Remembered => dsvgd(KdeMode::default(), Factors::Remembered, None),
            Self::Parallel => dsvgd(KdeMode::default(), distilled, Some(steps)),
            Self::ParallelExact => dsvgd(KdeMode::Lse { floor: 0.0 }, distilled, Some(steps)),
            Self::ParallelSites => dsvgd(KdeMode::default(), Factors::Sites(SiteSettings::default()), Some(steps)),
            Self::Svgd => {
                let stein = kde(KdeMode::None);
                watch(Svgd { problem: shared.problem(true), particles, rounds, steps, batch, stein }, shared, every, seed)
            }
            Self::FedAvg(weighting) => {
                let problem = problem(false);
                let method = FedAvg { problem, rounds, schedule, local_steps: steps, batch, optimizer, weighting };
                watch(method, shared, every, seed)
            }
            Self::Sgld => {
                let method = Dsgld::sgld(shared.problem(true), setup.chains(rounds, Schedule::Permutation)?);
                watch(method, shared, every, seed)
            }
            Self::Dsgld | Self::DsgldAtOnce => {
                let schedule = if self == Self::Dsgld { Schedule::Rotating } else { Schedule::Permutation };
                let method = Dsgld::sgld(shared.problem(false), setup.chains(rounds, schedule)?);
                watch(method, shared, every, seed)
            }
            Self::Pvi => watch(gaussian(false), shared, every, seed),
            Self::Gvi => watch(gaussian(true), shared, every, seed),
            Self::Npv => {
                let problem = problem(true);
                let method = Npv { problem, rounds, components: particles, iterations: 20, particles: 100 };
                watch(method, shared, every, seed)
            }
            Self::Pmd => {
                let problem = problem(true);
                let method = Pmd { problem, rounds, particles, steps, batch, gain: 5000.0, jitter: 0.002 };
                watch(method, shared, every, seed)
            }
            Self::Theirs { central, noise, scale } => {
                let problem = shared.problem(central);
                let schedule = if central { Schedule::Permutation } else { Schedule::Rotating };
                let settings = setup.chains(rounds, schedule)?;
                let transition = Authors { problem: problem.clone(), batch, step: settings.step, particles, noise, scale };
                watch(Dsgld { agents: problem.agents, transition, settings }, shared, every, seed)
            }
        }
    }
}

impl Setup {
    /// As many chains as particles, whose latest states make predictions. The step size is divided by N in drift and noise.
    pub fn chains(self, rounds: u64, schedule: Schedule) -> Result<DsgldSettings> {
        let step = StepSize::Annealed { a: self.langevin / self.particles as f64, b: 0.5, c: 0.55 };
        Ok(DsgldSettings {
            chains: u32::try_from(self.particles)?,
            rounds: Some(rounds),
            trajectory: Trajectory::Same(self.steps as f64),
            batch: self.batch,
            step,
            schedule,
            burn_in: Some(0),
            thin: Some(0),
            evaluation_window: self.particles,
            ..DsgldSettings::default()
        })
    }
}

/// Runs a method to its end, on one thread, with evaluations.
pub fn watch<F: Real, M: Method<Number = F>>(method: M, shared: &Shared<F>, every: u64, seed: u64) -> Result<Course>
where
    M::Server: Posterior<F>,
{
    let mut course = Course::default();
    let evaluated = WithEvaluation { inner: method, evaluator: shared.evaluation(every) };
    threads::run(Arc::new(evaluated), JobOptions::new(Seed(seed)), None, &mut course)?;
    Ok(course)
}

/// The runs of all methods of a comparison, seed by seed.
pub struct Race {
    pub courses: Vec<(Contender, Vec<Course>)>,
}

impl Race {
    /// Runs all methods on the problem of each seed.
    pub fn run<F: Real>(lineup: &[Contender], setup: Setup, problems: &[Shared<F>]) -> Result<Self> {
        let jobs: Vec<(Contender, usize)> =
            lineup.iter().flat_map(|&contender| (0..problems.len()).map(move |place| (contender, place))).collect();
        let mut all =
            side_by_side(&jobs, |&(contender, place)| contender.run(setup, &problems[place], place as u64 + 1))?.into_iter();
        let courses = lineup.iter().map(|&contender| (contender, all.by_ref().take(problems.len()).collect())).collect();
        Ok(Self { courses })
    }

    fn of(&self, contender: Contender) -> &[Course] {
        self.courses.iter().find(|course| course.0 == contender).map_or(&[], |course| &course.1)
    }

    /// A metric after the last round, seed by seed.
    pub fn last(&self, contender: Contender, metric: &str) -> Vec<f64> {
        self.of(contender).iter().map(|course| course.last(metric)).collect()
    }

    /// A metric after this round.
    pub fn at(&self, contender: Contender, metric: &str, round: u64) -> Vec<f64> {
        self.of(contender).iter().map(|course| course.at(metric, round)).collect()
    }

    /// The mean of a metric over the rounds from `from` on, which has less noise than the last round.
    pub fn late(&self, contender: Contender, metric: &str, from: u64) -> Vec<f64> {
        let mean = |course: &Course| {
            let late: Vec<f64> =
                course.curve(metric).into_iter().filter(|point| point.0 >= from as f64).map(|point| point.1).collect();
            late.iter().sum::<f64>() / late.len() as f64
        };
        self.of(contender).iter().map(mean).collect()
    }

    /// The curves of all methods, for plots.
    pub fn lines(&self, metric: &str) -> Curves {
        let of = |(contender, courses): &(Contender, Vec<Course>)| {
            (contender.name().to_owned(), courses.iter().map(|course| course.curve(metric)).collect())
        };
        self.courses.iter().map(of).collect()
    }
}
