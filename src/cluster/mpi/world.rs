//! The MPI job: starts it, checks that it has the number of ranks that the launcher started, ends it.

use super::super::nap::Meanwhile;
use super::comm::Comm;
use super::frame::{PIECE, test};
use super::wait::Backoff;
use super::watchdog::{Silence, Watchdog};
use mpi::Threading;
use mpi::ffi;
use mpi::raw::AsRaw;
use mpi::topology::{Communicator, SimpleCommunicator};
use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::time::Duration;

/// The initialized MPI library on this rank; finalizes it when dropped.
pub struct World {
    // Declared before the universe, because communicators must not outlive it.
    watchdog: Option<Watchdog>,
    comm: SimpleCommunicator,
    _universe: mpi::environment::Universe,
}

/// Why MPI cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum WorldError {
    /// MPI was initialized before, or initialization failed.
    #[error("cannot initialize MPI in this process (was it initialized before?)")]
    Start,
    /// The MPI library has too little thread support.
    #[error(
        "this MPI library offers thread level {0:?}, and mpibayes needs at least Funneled (threads beside the one that calls MPI)"
    )]
    Threads(Threading),
    /// A launcher started several processes, but each is an MPI job of its own.
    #[error(
        "the launcher started {started} processes ({variable}={started}), but each of them is an MPI job of its own: mpibayes was \
         built against another MPI ({library}) than the launcher's. Load the MPI module that it was built with, or build it again \
         with this one (cargo clean && jobs/setup.sh)"
    )]
    Singletons {
        /// The number of processes that the launcher started.
        started: u32,
        /// The environment variable with this number.
        variable: &'static str,
        /// The MPI library in use.
        library: String,
    },
}

/// The variables in which launchers pass the number of processes and the number of this process.
const LAUNCHERS: [(&str, &str); 3] =
    [("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"), ("PMI_SIZE", "PMI_RANK"), ("SLURM_STEP_NUM_TASKS", "SLURM_PROCID")];

/// The launcher's variables: (number of processes, number of this process, name of the first variable).
fn launched() -> Option<(u32, u32, &'static str)> {
    let number = |name| std::env::var(name).ok()?.parse().ok();
    LAUNCHERS.iter().find_map(|&(size, rank)| Some((number(size)?, number(rank).unwrap_or(0), size)))
}

impl World {
    /// Whether a launcher started this process.
    pub fn is_launched() -> bool {
        launched().is_some()
    }

    /// Whether this process prints messages to the user: rank 0 according to the launcher's variables.
    pub fn is_primary() -> bool {
        launched().is_none_or(|(_, rank, _)| rank == 0)
    }

    /// The number of this process according to the launcher's variables; 0 without a launcher.
    pub fn launched_rank() -> u32 {
        launched().map_or(0, |(_, rank, _)| rank)
    }

    /// Initializes MPI with thread support.
    ///
    /// # Errors
    /// If initialization fails, thread support is insufficient, or the MPI library is not the launcher's.
    pub fn start() -> Result<Self, WorldError> {
        Self::start_with(Threading::Funneled)
    }

    /// The same for ranks that are to be watched, if the MPI library allows it.
    ///
    /// # Errors
    /// As above.
    pub fn start_watchable() -> Result<Self, WorldError> {
        Self::start_with(Threading::Multiple)
    }

    fn start_with(wanted: Threading) -> Result<Self, WorldError> {
        let (universe, threading) = mpi::initialize_with_threading(wanted).ok_or(WorldError::Start)?;
        if threading < Threading::Funneled {
            return Err(WorldError::Threads(threading));
        }
        let comm = universe.world();
        match launched() {
            Some((started, _, variable)) if started > 1 && comm.size() == 1 => {
                Err(WorldError::Singletons { started, variable, library: Self::library() })
            }
            _ => Ok(Self { watchdog: None, comm, _universe: universe }),
        }
    }

    /// From now on, the job ends with exit code `code` if any rank is silent for `max_silence`, after a call of `on_silence` on a rank that
    /// has noticed it. Returns whether ranks are watched: not if `max_silence` is zero, if there is one rank, or if MPI on any rank allows
    /// calls on one thread only. Every rank calls this.
    pub fn watch(&mut self, max_silence: Duration, code: i32, on_silence: impl Fn(&Silence) + Send + 'static) -> bool {
        let is_possible = !max_silence.is_zero() && mpi::environment::threading_support() >= Threading::Multiple;
        // All ranks or none.
        let is_possible = self.agree(if is_possible { Ok(()) } else { Err(String::new()) }).is_ok();
        if self.size() == 1 || !is_possible {
            return false;
        }
        match Watchdog::start(self.duplicate(), self.rank(), self.size(), max_silence, code, on_silence) {
            Ok(watchdog) => self.watchdog = Some(watchdog),
            // Nothing works without threads, and the others would miss the beats of this rank.
            Err(cause) => {
                crate::log::print_error(&format!("error: rank {}: cannot start a thread: {cause}", self.rank()));
                self.abort(super::EXIT_CODE)
            }
        }
        true
    }

    /// The MPI library in use, initialized or not.
    pub fn library() -> String {
        let library = mpi::environment::library_version().unwrap_or_default();
        library.split(',').next().unwrap_or_default().trim().to_owned()
    }

    /// The version of the MPI standard that it implements.
    pub fn standard() -> String {
        let (major, minor) = mpi::environment::version();
        format!("{major}.{minor}")
    }

    /// The thread support level: `Multiple` if ranks can be watched.
    pub fn thread_level(&self) -> String {
        format!("{:?}", mpi::environment::threading_support())
    }

    /// This rank's number.
    pub fn rank(&self) -> u32 {
        self.comm.rank().unsigned_abs()
    }

    /// The number of ranks.
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

    /// Broadcasts bytes of rank 0, such as the run's configuration; other ranks pass none. Every rank calls this. Waiting takes almost
    /// no CPU time.
    pub fn broadcast_bytes(&self, bytes: Option<Vec<u8>>) -> Vec<u8> {
        self.broadcast_from(0, bytes.unwrap_or_default())
    }

    /// Gathers the bytes of all ranks on every rank; for small data. Every rank calls this.
    pub fn gather_bytes(&self, mine: &[u8]) -> Vec<Vec<u8>> {
        let of = |root| self.broadcast_from(root, if root == self.comm.rank() { mine.to_vec() } else { Vec::new() });
        (0..self.comm.size()).map(of).collect()
    }

    /// The bytes of all ranks on rank 0, at most 2 GiB together; nothing on the others. Every rank calls this.
    pub fn collect_bytes(&self, mine: &[u8]) -> Vec<Vec<u8>> {
        let comm = self.comm.as_raw();
        let length = mine.len() as c_int;
        let mut lengths: Vec<c_int> = vec![0; self.comm.size() as usize];
        // SAFETY: the numbers outlive the wait, and there is a place for that of every rank.
        self.complete(|request| unsafe {
            let (send, receive) = ((&raw const length).cast::<c_void>(), lengths.as_mut_ptr().cast());
            ffi::MPI_Igather(send, 1, ffi::RSMPI_INT32_T, receive, 1, ffi::RSMPI_INT32_T, 0, comm, request)
        });
        if lengths.iter().try_fold(0, |sum: c_int, length| sum.checked_add(*length)).is_none() {
            // Only rank 0 knows all lengths, and the others already wait for it.
            crate::log::print_error("error: rank 0: the ranks have more than 2 GiB for it in one message");
            self.abort(super::EXIT_CODE)
        }
        let starts: Vec<c_int> = std::iter::once(0)
            .chain(lengths.iter().scan(0, |end, length| {
                *end += length;
                Some(*end)
            }))
            .collect();
        let total = starts.last().map_or(0, |&end| end as usize);
        // The address of an empty array may be that of MPI_IN_PLACE, 1, which is refused here.
        let mut all = vec![0_u8; total.max(1)];
        let mine = if mine.is_empty() { &[0][..] } else { mine };
        // SAFETY: lengths and starts outlive the wait, and the pieces lie side by side within the buffer; only rank 0 receives.
        self.complete(|request| unsafe {
            let (send, receive) = (mine.as_ptr().cast::<c_void>(), all.as_mut_ptr().cast());
            let kind = ffi::RSMPI_UINT8_T;
            ffi::MPI_Igatherv(send, length, kind, receive, lengths.as_ptr(), starts.as_ptr(), kind, 0, comm, request)
        });
        if self.comm.rank() != 0 {
            return Vec::new();
        }
        lengths.iter().zip(&starts).map(|(&length, &start)| all[start as usize..(start + length) as usize].to_vec()).collect()
    }

    fn broadcast_from(&self, root: c_int, mut bytes: Vec<u8>) -> Vec<u8> {
        let comm = self.comm.as_raw();
        let mut len = bytes.len() as u64;
        // SAFETY: the number outlives the wait.
        self.complete(|request| unsafe { ffi::MPI_Ibcast((&raw mut len).cast(), 1, ffi::RSMPI_UINT64_T, root, comm, request) });
        bytes.resize(usize::try_from(len).unwrap_or(usize::MAX), 0);
        for piece in bytes.chunks_mut(PIECE) {
            // SAFETY: the bytes outlive the wait; a piece's length fits a C int.
            self.complete(|request| unsafe {
                ffi::MPI_Ibcast(piece.as_mut_ptr().cast(), piece.len() as c_int, ffi::RSMPI_UINT8_T, root, comm, request)
            });
        }
        bytes
    }

    /// Agrees on whether an action, such as opening the data, succeeded on every rank. Every rank calls this. Waiting takes almost no
    /// CPU time.
    ///
    /// # Errors
    /// On every rank, the error of the lowest rank that failed, with the number of that rank.
    pub fn agree<T>(&self, mine: Result<T, String>) -> Result<T, String> {
        let own = if mine.is_ok() { self.comm.size() } else { self.comm.rank() };
        let mut lowest = own;
        // SAFETY: both numbers outlive the wait.
        self.complete(|request| unsafe {
            let (send, receive) = ((&raw const own).cast::<c_void>(), (&raw mut lowest).cast());
            ffi::MPI_Iallreduce(send, receive, 1, ffi::RSMPI_INT32_T, ffi::RSMPI_MIN, self.comm.as_raw(), request)
        });
        if lowest == self.comm.size() {
            return mine;
        }
        let error = self.broadcast_from(lowest, mine.err().unwrap_or_default().into_bytes());
        Err(format!("rank {lowest}: {}", String::from_utf8_lossy(&error)))
    }

    /// A communicator of all ranks of its own. Every rank calls this.
    pub(super) fn duplicate(&self) -> Comm {
        Comm::duplicate(self.comm.as_raw())
    }

    /// A communicator of the ranks with `member`, in order. Every rank calls this; the others get none.
    pub(super) fn split(&self, member: bool) -> Option<Comm> {
        Comm::split(self.comm.as_raw(), self.comm.rank(), member)
    }

    /// Whether all ranks share the memory of one host. Every rank calls this.
    pub(super) fn is_on_one_host(&self) -> bool {
        self.comm.split_shared(self.comm.rank()).size() == self.comm.size()
    }

    /// Waits for all ranks.
    pub(super) fn barrier(&self) {
        // SAFETY: takes no buffers.
        self.complete(|request| unsafe { ffi::MPI_Ibarrier(self.comm.as_raw(), request) });
    }

    /// Starts an MPI operation and waits for its completion.
    fn complete(&self, start: impl FnOnce(*mut ffi::MPI_Request) -> c_int) {
        let mut request = MaybeUninit::uninit();
        // MPI ends the job on an error, so the return code carries no information.
        start(request.as_mut_ptr());
        // SAFETY: the operation has written its request.
        let mut request = unsafe { request.assume_init() };
        let (backoff, no_results) = (Backoff::new(self.size()), crossbeam_channel::never::<()>());
        while !test(&mut request) {
            backoff.wait(&no_results, Meanwhile::default());
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // Finalizing MPI would wait for the other ranks, which wait for this one.
        if std::thread::panicking() {
            self.abort(super::EXIT_CODE);
        }
    }
}
