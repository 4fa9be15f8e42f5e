//! Benchmarks on two ranks that start themselves under `mpirun`.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "not shipped: a failure here shall stop it")]

use mpibayes::cluster::mpi::World;
use std::process::Command;

/// Goes on where this process is a rank; otherwise starts two that do, and ends with them.
pub fn start() {
    if World::is_launched() {
        return;
    }
    let mut command = Command::new("mpirun");
    command.args(["-n", "2"]).arg(std::env::current_exe().unwrap());
    for variable in ["OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "OPENBLAS_NUM_THREADS"] {
        command.env(variable, "1");
    }
    std::process::exit(command.status().expect("mpirun is not on the PATH").code().unwrap_or(1));
}
