//! Runs of the methods that a row compares, carried out as `mpibayes run` does, with their metrics and particles.

use super::super::files::{Runs, find, parse, value};
use super::super::pictures::Curves;
use super::super::workers::side_by_side;
use super::authors::registry;
use super::sets::Set;
use mpibayes::cluster::BoxError;
use mpibayes::config::Override;
use mpibayes::job::{Ranks, start};
use mpibayes::methods::PARTICLE_PATHS;
use mpibayes::results::{METRICS, Reporting, ResultFile, RunFolder, Samples, Table, result_file};
use ndarray::{Array2, Axis};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use toml::{Table as Run, Value};

pub type Result<T> = std::result::Result<T, BoxError>;

/// Metrics and particles of a run.
pub struct Course {
    metrics: Table,
    reliability: Table,
    /// The path of each particle over the evaluated rounds, if it is kept.
    paths: Option<Samples>,
}

impl Course {
    /// Carries out a run with this seed, on a data set if it needs one.
    pub fn of(run: &Run, set: Option<&Set>, seed: u64) -> Result<Self> {
        // Runs are side by side, and nothing here looks at what is computed after the last round.
        let settings = ["cluster.threads=1", "evaluate.bias=false", "evaluate.predictions=false", &format!("seed={seed}")];
        let mut runs = settings.iter().try_fold(Runs(vec![run.clone()]), |runs, setting| runs.set(setting))?;
        if let Some(set) = set {
            runs = runs.set(&format!("data.file={}", set.file.display()))?;
        }
        let (registry, folder) = (registry(), TempDir::new()?);
        let mut results = RunFolder::new(folder.path(), Duration::MAX, Reporting::Quiet);
        start(&parse(&runs.0[0], &registry)?, &registry, &Ranks::One, &mut results)?;
        let file = ResultFile::open(&result_file(folder.path()))?;
        Ok(Self {
            metrics: file.find_table(METRICS)?.unwrap_or_default(),
            reliability: file.find_table("reliability")?.unwrap_or_default(),
            paths: if file.has(PARTICLE_PATHS) { Some(file.samples(PARTICLE_PATHS)?) } else { None },
        })
    }

    /// A metric after each evaluated round.
    pub fn curve(&self, metric: &str) -> Vec<(f64, f64)> {
        let values = self.metrics.column(metric).unwrap_or_default();
        self.metrics.step.iter().zip(values).map(|(&step, &value)| (step as f64, value)).collect()
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
        let paths = self.paths.as_ref().ok_or("the run does not keep particle_paths")?;
        let (particles, rounds, dim) = paths.values.dim();
        let all = paths.values.matrix().into_shape_with_order((particles, rounds, dim))?;
        Ok(all.axis_iter(Axis(1)).map(|round| round.to_owned()).collect())
    }

    /// Confidence and accuracy of the bins with at least 20 rows, in the last evaluation.
    pub fn reliability(&self) -> Vec<(f64, f64)> {
        let column = |name| self.reliability.column(name).unwrap_or_default();
        let (rows, confidence, accuracy) = (column("rows"), column("confidence"), column("accuracy"));
        let last = self.reliability.step.last();
        let bins = (0..rows.len()).filter(|&bin| self.reliability.step.get(bin) == last && rows[bin] >= 20.0);
        bins.map(|bin| (confidence[bin], accuracy[bin])).collect()
    }
}

/// A method of a comparison, by the name that it has in reports.
pub type Contender = &'static str;

pub const FLOOR: Contender = "DSVGD";
/// DSVGD without a floor of the density estimates.
pub const EXACT: Contender = "DSVGD, no floor";
pub const AUTHORS: Contender = "DSVGD, authors' estimate";
pub const NO_CAVITY: Contender = "DSVGD, no cavity";
/// DSVGD with quadratic sites, which the paper does not have: diagonals at each particle, one diagonal, and whole matrices.
pub const SITES: Contender = "sites";
pub const SHARED: Contender = "sites, shared";
pub const FULL: Contender = "sites, whole matrices";
/// U-DSVGD.
pub const REMEMBERED: Contender = "U-DSVGD";
pub const PARALLEL: Contender = "P-DSVGD";
pub const PARALLEL_EXACT: Contender = "P-DSVGD, no floor";
pub const PARALLEL_SITES: Contender = "P-DSVGD, sites (ours)";
pub const SVGD: Contender = "SVGD, all data";
pub const PARTICIPANTS: Contender = "FedAvg, participants";
pub const TOTAL: Contender = "FedAvg, total";
pub const SGLD: Contender = "SGLD, all data";
pub const DSGLD: Contender = "DSGLD";
pub const PVI: Contender = "PVI";
pub const GVI: Contender = "GVI, all data";
pub const NPV: Contender = "NPV, all data";
pub const PMD: Contender = "PMD, all data";
/// SGLD and D-SGLD with errors of the authors' code.
pub const SGLD_NOISE: Contender = "SGLD, authors' noise";
pub const DSGLD_SCALE: Contender = "DSGLD, authors' scale";
pub const DSGLD_BOTH: Contender = "DSGLD, authors' noise and scale";

/// Which method of the comparisons a run is.
pub fn contender(run: &Run) -> Option<Contender> {
    let text = |key: &str| find(run, key).and_then(Value::as_str);
    let has_sites = find(run, "method.cavity.sites").is_some();
    let has_floor = find(run, "method.kde.lse.floor").and_then(Value::as_float) != Some(0.0);
    let is_pooled = find(run, "agents").and_then(Value::as_integer) == Some(1);
    Some(match text("method.name")? {
        "dsvgd" if has_sites => match text("method.cavity.sites.curvature") {
            Some("full") => FULL,
            Some("shared") => SHARED,
            _ => SITES,
        },
        "dsvgd" => match text("method.kde") {
            Some("none") => NO_CAVITY,
            Some("authors_compat") => AUTHORS,
            _ if has_floor => FLOOR,
            _ => EXACT,
        },
        "u_dsvgd" => REMEMBERED,
        "p_dsvgd" if has_sites => PARALLEL_SITES,
        "p_dsvgd" if has_floor => PARALLEL,
        "p_dsvgd" => PARALLEL_EXACT,
        "fedavg" if text("method.weighting") == Some("total") => TOTAL,
        "fedavg" => PARTICIPANTS,
        "dsgld" if is_pooled => SGLD,
        "dsgld" => DSGLD,
        "pvi" if is_pooled => GVI,
        "pvi" => PVI,
        "svgd" => SVGD,
        "npv" => NPV,
        "pmd" => PMD,
        _ => return None,
    })
}

/// The files of the methods beside DSVGD.
pub const COMPARISON_FILES: [&str; 2] = ["dsvgd/distributed", "dsvgd/pooled"];

/// Keys of DSVGD, and their names in other methods, the first that a run has. NPV has other `particles`.
const SHARED_KEYS: [(&str, &[&str]); 6] = [
    ("particles", &["components", "chains", "particles"]),
    ("rounds", &["rounds"]),
    ("local_steps", &["local_steps", "steps", "trajectory"]),
    ("batch", &["batch"]),
    ("optimizer", &["optimizer"]),
    ("schedule", &["schedule"]),
];

/// The run of a method in a comparison with the runs of a figure: one of these, or a run of [`COMPARISON_FILES`] with the data, the
/// model and the shared settings of the figure.
fn entrant(figure: &Runs, wanted: Contender) -> Result<Run> {
    let named = |runs: &[Run], name| runs.iter().find(|run| contender(run) == Some(name)).cloned();
    if let Some(own) = named(&figure.0, wanted) {
        return Ok(own);
    }
    // The authors' chains have the settings of the right ones.
    let (right, errors) = match wanted {
        SGLD_NOISE => (SGLD, Some("authors_noise")),
        DSGLD_SCALE => (DSGLD, Some("authors_scale")),
        DSGLD_BOTH => (DSGLD, Some("authors_noise_and_scale")),
        other => (other, None),
    };
    let others = COMPARISON_FILES.iter().map(|name| Ok(Runs::read(name)?.0)).collect::<Result<Vec<_>>>()?.concat();
    let mut run = named(&others, right).ok_or_else(|| format!("no run file has the method {wanted:?}"))?;
    let figure = figure.0.first().ok_or("a file without runs")?;
    let is_pooled = [SVGD, SGLD, NPV, PMD].contains(&right);
    run.remove("data");
    for key in ["dtype", "data", "model", "evaluate"].into_iter().chain((!is_pooled).then_some("agents")) {
        run.extend(figure.get(key).map(|value| (key.to_owned(), value.clone())));
    }
    if is_pooled && let Some(data) = run.get_mut("data").and_then(Value::as_table_mut) {
        data.remove("partition");
    }
    let (mut method, of_figure): (Run, Run) = (value(&run, "method")?, value(figure, "method")?);
    for (key, names) in SHARED_KEYS {
        let Some(shared) = of_figure.get(key) else { continue };
        match names.iter().copied().find(|name| method.contains_key(*name)) {
            // Chains travel by a schedule of their own.
            Some("schedule") if method.contains_key("chains") => {}
            Some("chains") => {
                let chains = shared.clone().try_into()?;
                divide_step(&mut method, chains)?;
                set_chains(&mut method, chains);
            }
            Some("trajectory") => drop(method.insert("trajectory".into(), shared.clone().try_into::<f64>()?.into())),
            Some(name) => drop(method.insert(name.into(), shared.clone())),
            None => {}
        }
    }
    method.extend(errors.map(|name| ("name".to_owned(), name.into())));
    run.insert("method".into(), method.into());
    Ok(run)
}

/// Makes the step what it is to be with so many chains instead of those of the run: in proportion to the inverse of their number.
fn divide_step(method: &mut Run, chains: u32) -> Result<()> {
    let a = value::<f64>(method, "step.annealed.a")? * f64::from(value::<u32>(method, "chains")?) / f64::from(chains);
    Ok(Override::parse(&format!("step.annealed.a={a:?}")).ok_or("an override")?.apply(method)?)
}

/// Sets the number of chains. The latest state of each makes predictions.
fn set_chains(method: &mut Run, chains: u32) {
    method.insert("chains".into(), chains.into());
    method.insert("evaluation_window".into(), chains.into());
}

impl Runs {
    /// The same runs with L steps in a visit, and as many of each other loop that they have.
    pub fn steps(mut self, steps: u64) -> Result<Self> {
        let steps = i64::try_from(steps)?;
        for method in self.0.iter_mut().filter_map(|run| run.get_mut("method")?.as_table_mut()) {
            for key in ["local_steps", "distillation_steps", "trajectory"] {
                match method.get_mut(key) {
                    Some(Value::Integer(old)) if *old > 0 => *old = steps,
                    Some(Value::Float(old)) => *old = steps as f64,
                    _ => {}
                }
            }
        }
        Ok(self)
    }

    /// Runs of chains with the number that a figure gives particles or local steps.
    pub fn of_chains(mut self, key: &str, number: u32) -> Result<Self> {
        for run in &mut self.0 {
            let method = run.get_mut("method").and_then(Value::as_table_mut).ok_or("a run without a method")?;
            match key {
                "method.particles" => set_chains(method, number),
                "method.local_steps" => drop(method.insert("trajectory".into(), f64::from(number).into())),
                _ => return Err(format!("{key} is nothing that chains have").into()),
            }
        }
        Ok(self)
    }

    /// The courses of these methods for several seeds, each on its data set, if there are any.
    pub fn courses(&self, lineup: &[Contender], sets: &[Option<Arc<Set>>]) -> Result<Vec<Vec<Course>>> {
        let entrants = lineup.iter().map(|wanted| entrant(self, wanted)).collect::<Result<Vec<_>>>()?;
        let jobs: Vec<_> = entrants.iter().flat_map(|run| (1..).zip(sets).map(move |(seed, set)| (run, seed, set))).collect();
        let mut all = side_by_side(&jobs, |&(run, seed, set)| Course::of(run, set.as_deref(), seed))?.into_iter();
        Ok(lineup.iter().map(|_| all.by_ref().take(sets.len()).collect()).collect())
    }
}

/// The runs of all methods of a comparison, seed by seed.
pub struct Race {
    pub courses: Vec<(Contender, Vec<Course>)>,
}

impl Race {
    /// Runs all methods with the settings of these runs on the data set of each seed.
    pub fn run(lineup: &[Contender], runs: &Runs, sets: &[Arc<Set>]) -> Result<Self> {
        let sets: Vec<_> = sets.iter().cloned().map(Some).collect();
        Ok(Self { courses: lineup.iter().copied().zip(runs.courses(lineup, &sets)?).collect() })
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
            ((*contender).to_owned(), courses.iter().map(|course| course.curve(metric)).collect())
        };
        self.courses.iter().map(of).collect()
    }
}
