//! Communicators of the engine, freed when they are dropped.

use mpi::ffi;
use std::ffi::c_int;
use std::mem::MaybeUninit;

/// A communicator of the engine; all its operations must have completed when it is dropped.
pub(super) struct Comm(ffi::MPI_Comm);

// SAFETY: a handle. It is moved to another thread only where MPI allows calls on several threads.
unsafe impl Send for Comm {}

impl Comm {
    /// The ranks of another communicator; all of them call this.
    pub fn duplicate(all: ffi::MPI_Comm) -> Self {
        let mut comm = MaybeUninit::uninit();
        // SAFETY: the call writes the new communicator.
        Self(unsafe {
            ffi::MPI_Comm_dup(all, comm.as_mut_ptr());
            comm.assume_init()
        })
    }

    /// The ranks of another communicator with `member`, in order. All of them call this; the others get none.
    pub fn split(all: ffi::MPI_Comm, rank: c_int, member: bool) -> Option<Self> {
        let mut comm = MaybeUninit::uninit();
        // SAFETY: the call writes the new communicator, which is null on the other ranks.
        let comm = unsafe {
            let color = if member { 0 } else { ffi::RSMPI_UNDEFINED };
            ffi::MPI_Comm_split(all, color, rank, comm.as_mut_ptr());
            comm.assume_init()
        };
        // Not `then_some`: the null communicator of the other ranks must not be freed.
        member.then(|| Self(comm))
    }

    /// For MPI calls.
    pub fn raw(&self) -> ffi::MPI_Comm {
        self.0
    }
}

impl Drop for Comm {
    fn drop(&mut self) {
        // SAFETY: the communicator was made by this type and is not used any more.
        unsafe { ffi::MPI_Comm_free(&raw mut self.0) };
    }
}
