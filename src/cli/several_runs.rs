//! The runs that `mpibayes compare` and `mpibayes plot` are given: their folders, their result files, and folders of sweeps.

use crate::report::{RunResults, runs_of_sweep};
use crate::results::result_file;
use anyhow::{bail, ensure};
use std::path::PathBuf;

/// Runs with the paths that name them.
pub(super) struct SeveralRuns {
    /// The folders or result files.
    pub paths: Vec<PathBuf>,
    /// Their results.
    pub results: Vec<RunResults>,
}

impl SeveralRuns {
    /// Opens the runs. The folder of a sweep stands for all of its runs that have results.
    ///
    /// # Errors
    /// When there is no such run, one is given twice, or a file cannot be read.
    pub fn open(named: &[PathBuf]) -> anyhow::Result<Self> {
        let (mut paths, mut results) = (Vec::new(), Vec::new());
        for path in named {
            let of_sweep = runs_of_sweep(path);
            let runs = if of_sweep.is_empty() { vec![path.clone()] } else { of_sweep };
            for run in runs {
                match RunResults::open(&run) {
                    Ok(opened) => {
                        paths.push(run);
                        results.push(opened);
                    }
                    // `runs/*` also matches folders of figures, and runs that have just begun.
                    Err(error) if named.len() > 1 && run.is_dir() && !result_file(&run).exists() => {
                        eprintln!("mpibayes: left out: {error}")
                    }
                    Err(error) => return Err(error.into()),
                }
            }
        }
        ensure!(!paths.is_empty(), "none of these is a run: give the folders of runs, such as runs/first");
        let files: Vec<_> = results.iter().map(|run| std::fs::canonicalize(&run.path).ok()).collect();
        if let Some(place) = (1..files.len()).find(|&place| files[place].is_some() && files[..place].contains(&files[place])) {
            bail!("{}: this run is given twice", paths[place].display());
        }
        Ok(Self { paths, results })
    }
}
