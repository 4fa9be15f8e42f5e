//! `mpibayes env`: shows libraries, cores and launcher, and warns about settings that are slow or wrong.

use super::blas;
use super::output::{print, print_error};
use crate::cluster::mpi::World;
use crate::cluster::placement::{Place, oversubscription};
use crate::results::hdf5_version;
use crate::text;
use anyhow::anyhow;
use serde::Serialize;
use std::collections::BTreeMap;
use std::process::ExitCode;

/// Arguments of `mpibayes env`.
#[derive(clap::Args, Debug)]
pub struct EnvArgs {
    /// Threads of each rank, as in `[cluster] threads`
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub threads: usize,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Relevant variables of launchers, schedulers and libraries.
const VARIABLES: [&str; 19] = [
    "OMPI_COMM_WORLD_SIZE",
    "OMPI_COMM_WORLD_LOCAL_SIZE",
    "PMI_SIZE",
    "PMIX_NAMESPACE",
    "SLURM_JOB_ID",
    "SLURM_JOB_NODELIST",
    "SLURM_JOB_NUM_NODES",
    "SLURM_NTASKS",
    "SLURM_STEP_NUM_TASKS",
    "SLURM_CPUS_PER_TASK",
    "SLURM_ARRAY_TASK_ID",
    "SLURM_ARRAY_TASK_COUNT",
    "PBS_JOBID",
    "LSB_JOBID",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    blas::CORE_TYPE,
    "OPENBLAS_L2_SIZE",
    "MPIBAYES_DATA",
];

/// The environment of all ranks.
#[derive(Debug, Serialize)]
struct Environment {
    version: &'static str,
    mpi: String,
    mpi_standard: String,
    /// Known only under a launcher.
    thread_level: Option<String>,
    hdf5: String,
    blas: String,
    blas_threads: i32,
    processor: String,
    variables: BTreeMap<&'static str, String>,
    placement: Vec<Place>,
    warnings: Vec<String>,
}

/// Collects the environment of all ranks and prints it.
///
/// # Errors
/// When standard output cannot be written.
pub fn run(args: &EnvArgs) -> anyhow::Result<ExitCode> {
    let mut warnings = Vec::new();
    let world = if World::is_launched() {
        // Started as for runs. A mismatch between this MPI and the launcher is what this command should report.
        World::start_watchable().map_err(|error| warnings.push(error.to_string())).ok()
    } else {
        None
    };
    let mine = Place::here(world.as_ref().map_or(0, World::rank));
    let placement = match &world {
        None => vec![mine],
        Some(world) => {
            let texts = world.gather_bytes(&serde_json::to_vec(&mine)?);
            texts.iter().map(|text| serde_json::from_slice(text)).collect::<Result<_, _>>()?
        }
    };
    if World::is_primary() {
        let variables: BTreeMap<_, _> = VARIABLES.iter().filter_map(|&name| Some((name, std::env::var(name).ok()?))).collect();
        warnings.extend(oversubscription(&placement, args.threads));
        warnings.extend(library_threads(&variables));
        warnings.extend(blas::warning());
        let environment = Environment {
            version: env!("CARGO_PKG_VERSION"),
            mpi: World::library(),
            mpi_standard: World::standard(),
            thread_level: world.as_ref().map(World::thread_level),
            hdf5: hdf5_version(),
            blas: blas::configuration(),
            blas_threads: blas::threads(),
            processor: processor(),
            variables,
            placement,
            warnings,
        };
        let shown =
            if args.json { format!("{}\n", serde_json::to_string_pretty(&environment)?) } else { environment.to_string() };
        // No `?` here, because the other ranks wait below.
        if let Err(cause) = print(&shown) {
            print_error(&anyhow!("cannot print: {cause}"));
        }
    }
    if let Some(world) = &world {
        drop(world.agree(Ok(())));
    }
    Ok(ExitCode::SUCCESS)
}

/// Warnings about variables that give libraries more than one thread.
fn library_threads(variables: &BTreeMap<&'static str, String>) -> Vec<String> {
    let many = |name: &&str| variables.get(name).and_then(|value| value.parse::<usize>().ok()).is_some_and(|threads| threads > 1);
    ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"]
        .iter()
        .filter(|name| many(name))
        .map(|name| {
            let what = "agents use all cores, and threads of matrix products would compete with them";
            format!("{name}={}: {what}; set it to 1", variables[*name])
        })
        .collect()
}

impl std::fmt::Display for Environment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut lines = vec![
            ("mpibayes".to_owned(), self.version.to_owned()),
            ("MPI".into(), format!("{} (standard {})", self.mpi, self.mpi_standard)),
        ];
        lines.push(("thread level".into(), self.thread_level.clone().unwrap_or_else(|| "known only under a launcher".into())));
        lines.push(("HDF5".into(), self.hdf5.clone()));
        lines.push(("BLAS".into(), format!("{}, {}", self.blas, text::counted(self.blas_threads, "thread"))));
        lines.push(("processor".into(), self.processor.clone()));
        lines.extend(self.variables.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        f.write_str(&text::pairs(&lines))?;
        let launcher = if self.thread_level.is_some() { "" } else { ", no launcher" };
        writeln!(f, "\n{}{launcher}", text::counted(self.placement.len(), "rank"))?;
        let columns = [
            ("rank".into(), self.placement.iter().map(|place| place.rank.to_string()).collect()),
            ("host".into(), self.placement.iter().map(|place| place.host.clone()).collect()),
            ("cores".into(), self.placement.iter().map(|place| place.cores.len().to_string()).collect()),
            ("core numbers".into(), self.placement.iter().map(|place| ranges(&place.cores)).collect()),
        ];
        f.write_str(&text::table(&columns))?;
        for warning in &self.warnings {
            writeln!(f, "warning: {warning}")?;
        }
        Ok(())
    }
}

/// Ascending numbers as ranges: `0-3,8`.
fn ranges(numbers: &[usize]) -> String {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for &number in numbers {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => runs.push((number, number)),
        }
    }
    let shown = runs.iter().map(|&(first, last)| if first == last { first.to_string() } else { format!("{first}-{last}") });
    shown.collect::<Vec<_>>().join(",")
}

/// The name of the processor, or else the architecture.
fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ").map(|(_, name)| name.to_owned()));
    name.unwrap_or_else(|| std::env::consts::ARCH.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn library_threads_give_a_warning() {
        let with = |value: &str| library_threads(&BTreeMap::from([("OMP_NUM_THREADS", value.to_owned())]));
        assert!(with("1").is_empty() && with("x").is_empty() && with("4")[0].starts_with("OMP_NUM_THREADS=4"));
    }

    #[test]
    fn numbers_are_shown_as_ranges() {
        assert_eq!(ranges(&[0, 1, 2, 5, 7, 8]), "0-2,5,7-8");
        assert_eq!(ranges(&[]), "");
    }
}
