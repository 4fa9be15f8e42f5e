//! Restarts a benchmark on two ranks under `mpirun`.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "not shipped: a failure must stop it")]

use mpibayes::cluster::mpi::World;
use std::process::Command;

/// Returns if this process is a rank; otherwise starts two ranks and ends when they end.
pub fn start() {
    if World::is_launched() {
        return;
    }
    let mut command = Command::new("mpirun");
    command.args(["--oversubscribe", "-n", "2"]).arg(std::env::current_exe().unwrap());
    for variable in ["OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "OPENBLAS_NUM_THREADS"] {
        command.env(variable, "1");
    }
    std::process::exit(command.status().expect("cannot start mpirun").code().unwrap_or(1));
}
