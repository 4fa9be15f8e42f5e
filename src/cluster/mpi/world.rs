//! The MPI job as a whole: starting it, checking that it is the one the launcher meant, ending it.

use super::frame::{PIECE, test};
use super::wait::Backoff;
use mpi::Threading;
use mpi::ffi;
use mpi::raw::AsRaw;
use mpi::topology::{Communicator, SimpleCommunicator};
use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;

/// MPI, started on this rank; ends it when dropped.
pub struct World {
    // Before the universe: communicators must not outlive it.
    comm: SimpleCommunicator,
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
    pub fn is_primary() -> bool {
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
                Err(WorldError::Singletons { meant, variable, library: Self::library() })
            }
            _ => Ok(Self { comm, _universe: universe }),
        }
    }

    /// The MPI library in use, whether started or not.
    pub fn library() -> String {
        let library = mpi::environment::library_version().unwrap_or_default();
        library.split(',').next().unwrap_or_default().trim().to_owned()
    }

    /// The version of the standard that it follows.
    pub fn standard() -> String {
        let (major, minor) = mpi::environment::version();
        format!("{major}.{minor}")
    }

    /// What threads may do while MPI runs: `Funneled` or more.
    pub fn thread_level(&self) -> String {
        format!("{:?}", mpi::environment::threading_support())
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

    /// Ends the job on all ranks at once.
    pub fn abort(&self, code: i32) -> ! {
        self.comm.abort(code)
    }

    /// Rank 0's bytes on every rank, such as the run's configuration; the others give nothing. Every rank calls this. Waiting
    /// takes next to no CPU.
    pub fn broadcast_bytes(&self, bytes: Option<Vec<u8>>) -> Vec<u8> {
        self.broadcast_from(0, bytes.unwrap_or_default())
    }

    /// Every rank's bytes on every rank, by rank; for small things. Every rank calls this.
    pub fn gather_bytes(&self, mine: &[u8]) -> Vec<Vec<u8>> {
        let of = |root| self.broadcast_from(root, if root == self.comm.rank() { mine.to_vec() } else { Vec::new() });
        (0..self.comm.size()).map(of).collect()
    }

    fn broadcast_from(&self, root: c_int, mut bytes: Vec<u8>) -> Vec<u8> {
        let comm = self.comm.as_raw();
        let mut len = bytes.len() as u64;
        // SAFETY: the number outlives the wait.
        complete(|request| unsafe { ffi::MPI_Ibcast((&raw mut len).cast(), 1, ffi::RSMPI_UINT64_T, root, comm, request) });
        bytes.resize(usize::try_from(len).unwrap_or(usize::MAX), 0);
        for piece in bytes.chunks_mut(PIECE) {
            // SAFETY: the bytes outlive the wait; a piece's length fits a C int.
            complete(|request| unsafe {
                ffi::MPI_Ibcast(piece.as_mut_ptr().cast(), piece.len() as c_int, ffi::RSMPI_UINT8_T, root, comm, request)
            });
        }
        bytes
    }

    /// Whether something went well on every rank, such as opening the data. Every rank calls this. Waiting takes next to no CPU.
    ///
    /// # Errors
    /// On every rank the error of the lowest rank that has one, with the number of that rank.
    pub fn agree<T>(&self, mine: Result<T, String>) -> Result<T, String> {
        let own = if mine.is_ok() { self.comm.size() } else { self.comm.rank() };
        let mut lowest = own;
        // SAFETY: both numbers outlive the wait.
        complete(|request| unsafe {
            let (send, receive) = ((&raw const own).cast::<c_void>(), (&raw mut lowest).cast());
            ffi::MPI_Iallreduce(send, receive, 1, ffi::RSMPI_INT32_T, ffi::RSMPI_MIN, self.comm.as_raw(), request)
        });
        if lowest == self.comm.size() {
            return mine;
        }
        let error = self.broadcast_from(lowest, mine.err().unwrap_or_default().into_bytes());
        Err(format!("rank {lowest}: {}", String::from_utf8_lossy(&error)))
    }

    /// Waits for all ranks.
    pub(super) fn barrier(&self) {
        // SAFETY: takes no buffers.
        complete(|request| unsafe { ffi::MPI_Ibarrier(self.comm.as_raw(), request) });
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // Ending MPI in the ordinary way waits for the other ranks, which wait for this one.
        if std::thread::panicking() {
            self.abort(super::EXIT_CODE);
        }
    }
}

/// Starts an operation and waits until it is complete.
fn complete(start: impl FnOnce(*mut ffi::MPI_Request) -> c_int) {
    let mut request = MaybeUninit::uninit();
    // MPI ends the job on an error, so the result says nothing.
    start(request.as_mut_ptr());
    // SAFETY: the operation has written its request.
    let mut request = unsafe { request.assume_init() };
    let (backoff, nobody) = (Backoff::new(), crossbeam_channel::never::<()>());
    while !test(&mut request) {
        backoff.wait(&nobody, false);
    }
}

/// A communicator of the engine's own; nothing may be under way on it when it is dropped.
pub(super) struct Comm(ffi::MPI_Comm);

impl Comm {
    /// All ranks; every rank calls this.
    pub fn duplicate(world: &World) -> Self {
        let mut comm = MaybeUninit::uninit();
        // SAFETY: the call writes the new communicator.
        Self(unsafe {
            ffi::MPI_Comm_dup(world.comm.as_raw(), comm.as_mut_ptr());
            comm.assume_init()
        })
    }

    /// The ranks that say `member`, in order; every rank calls this, and those outside get nothing.
    pub fn split(world: &World, member: bool) -> Option<Self> {
        let mut comm = MaybeUninit::uninit();
        // SAFETY: the call writes the new communicator, the null one outside.
        let comm = unsafe {
            let colour = if member { 0 } else { ffi::RSMPI_UNDEFINED };
            ffi::MPI_Comm_split(world.comm.as_raw(), colour, world.comm.rank(), comm.as_mut_ptr());
            comm.assume_init()
        };
        // Not `then_some`: outside, the null communicator must not be freed.
        member.then(|| Self(comm))
    }

    /// For MPI calls.
    pub fn raw(&self) -> ffi::MPI_Comm {
        self.0
    }
}

impl Drop for Comm {
    fn drop(&mut self) {
        // SAFETY: the communicator was made by this type and is used no more.
        unsafe { ffi::MPI_Comm_free(&raw mut self.0) };
    }
}
