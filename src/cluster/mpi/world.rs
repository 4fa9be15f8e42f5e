//! The MPI job as a whole: starting it, checking that it is the one the launcher meant, ending it.

use mpi::Threading;
use mpi::topology::{Communicator, SimpleCommunicator};
use std::cell::Cell;

/// MPI, started on this rank; ends it when dropped.
pub struct World {
    // Before the universe: communicators must not outlive it.
    comm: SimpleCommunicator,
    runs: Cell<u32>,
    _universe: mpi::environment::Universe,
}

/// Why MPI cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum WorldError {
    /// MPI was started already, or does not start.
    #[error("MPI does not start in this process (was it started before?)")]
    Start,
    /// The MPI library gives too little thread support.
    #[error("this MPI library offers thread level {0:?}, and mpibayes needs Funneled (threads beside the one that calls MPI)")]
    Threads(Threading),
    /// A launcher started several processes, and each is a job of its own.
    #[error(
        "the launcher started {meant} processes ({variable}={meant}), but each of them is an MPI job of its own: mpibayes was \
         built against another MPI ({library}) than the launcher's. Load the MPI module that it was built with, or build it again \
         with this one (cargo clean && jobs/setup.sh)"
    )]
    Singletons {
        /// How many the launcher meant.
        meant: u32,
        /// What says so.
        variable: &'static str,
        /// The library in use.
        library: String,
    },
}

/// Variables in which launchers say how many processes they started, and which of them this is.
const LAUNCHERS: [(&str, &str); 3] =
    [("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"), ("PMI_SIZE", "PMI_RANK"), ("SLURM_STEP_NUM_TASKS", "SLURM_PROCID")];

/// What a launcher told this process, without asking MPI: (processes, this one, the variable that says so).
fn launched() -> Option<(u32, u32, &'static str)> {
    let number = |name| std::env::var(name).ok()?.parse().ok();
    LAUNCHERS.iter().find_map(|&(size, rank)| Some((number(size)?, number(rank).unwrap_or(0), size)))
}

impl World {
    /// Whether a launcher started this process.
    pub fn is_launched() -> bool {
        launched().is_some()
    }

    /// Whether this is the process that speaks to the user, as far as the launcher's variables tell.
    pub fn speaks() -> bool {
        launched().is_none_or(|(_, rank, _)| rank == 0)
    }

    /// Starts MPI with thread support.
    ///
    /// # Errors
    /// Where MPI does not start, has too little thread support, or is another one than the launcher's.
    pub fn start() -> Result<Self, WorldError> {
        let (universe, threading) = mpi::initialize_with_threading(Threading::Funneled).ok_or(WorldError::Start)?;
        if threading < Threading::Funneled {
            return Err(WorldError::Threads(threading));
        }
        let comm = universe.world();
        match launched() {
            Some((meant, _, variable)) if meant > 1 && comm.size() == 1 => {
                let library = mpi::environment::library_version().unwrap_or_default();
                let library = library.split(',').next().unwrap_or_default().trim().to_owned();
                Err(WorldError::Singletons { meant, variable, library })
            }
            _ => Ok(Self { comm, runs: Cell::new(0), _universe: universe }),
        }
    }

    /// This rank's number.
    pub fn rank(&self) -> u32 {
        self.comm.rank().unsigned_abs()
    }

    /// How many ranks there are.
    pub fn size(&self) -> u32 {
        self.comm.size().unsigned_abs()
    }

    /// The communicator of all ranks.
    pub fn comm(&self) -> &SimpleCommunicator {
        &self.comm
    }

    /// The number of the run that begins: the same on every rank, because all ranks run the same runs.
    pub(super) fn next_run(&self) -> u32 {
        self.runs.replace(self.runs.get().wrapping_add(1))
    }

    /// Ends the job on all ranks at once.
    pub fn abort(&self, code: i32) -> ! {
        self.comm.abort(code)
    }
}
