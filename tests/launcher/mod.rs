//! Commands that know of no launcher: a suite that itself runs under one must not hand its word on.

use std::ffi::OsStr;
use std::process::Command;

/// The command without what `mpirun` or `srun` has told the tests.
pub fn unlaunched(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        if ["OMPI_", "PMIX_", "PMI_", "SLURM_"].iter().any(|prefix| name.starts_with(prefix)) {
            command.env_remove(name);
        }
    }
    command
}
