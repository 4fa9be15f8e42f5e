//! The processes that carry out a job: this one alone, the ranks of an MPI job, or virtual ranks in this process.

use super::error::JobError;
use crate::cluster::mpi::World;
use crate::cluster::simulate::{Load, Network};
use crate::cluster::{self, AnyMethod, Checkpoint, JobOptions, Outcome, Recorder};
use std::cell::RefCell;

/// The processes that carry out a job.
pub enum Ranks<'a> {
    /// This process, with threads.
    One,
    /// The ranks of an MPI job.
    Mpi(&'a World),
    /// This process as ranks that it imitates, where everything takes the time that it takes here.
    Virtual(&'a VirtualRanks),
}

/// Virtual ranks and their clock.
pub struct VirtualRanks {
    /// The ranks and the network between them.
    pub network: Network,
    /// What each method showed that was carried out: the preparation, then the run.
    pub parts: RefCell<Vec<Part>>,
}

/// What virtual ranks showed while they carried out a method.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// Seconds on the virtual cluster.
    pub seconds: f64,
    /// The most that a rank sent and received for one request.
    pub load: Load,
}

impl Ranks<'_> {
    /// Whether this is rank 0, which writes the run's folder.
    pub fn is_root(&self) -> bool {
        self.rank() == 0
    }

    /// The number of this process.
    pub fn rank(&self) -> u32 {
        match self {
            Self::One | Self::Virtual(_) => 0,
            Self::Mpi(world) => world.rank(),
        }
    }

    /// Whether one process hosts all agents.
    pub fn are_one_process(&self) -> bool {
        match self {
            Self::One | Self::Virtual(_) => true,
            Self::Mpi(world) => world.size() == 1,
        }
    }

    /// How many processes there are.
    pub fn count(&self) -> u32 {
        match self {
            Self::One => 1,
            Self::Mpi(world) => world.size(),
            Self::Virtual(ranks) => ranks.network.ranks,
        }
    }

    /// Carries out a method; the outcome is on rank 0. Every rank calls this.
    ///
    /// # Errors
    /// If the method failed. With several ranks, a failure ends the job.
    pub fn carry_out(
        &self,
        method: AnyMethod,
        options: JobOptions,
        saved: Option<Checkpoint>,
        recorder: &mut dyn Recorder,
    ) -> Result<Option<Outcome>, JobError> {
        Ok(match self {
            Self::One => Some(cluster::threads::run_any(method, options, saved, recorder)?),
            Self::Mpi(world) => cluster::mpi::run_any(world, method, options, saved, recorder),
            Self::Virtual(ranks) => {
                let measured = cluster::simulate::run_measured(method, options, ranks.network, saved, recorder)?;
                ranks.parts.borrow_mut().push(Part { seconds: measured.seconds, load: measured.load });
                Some(measured.outcome)
            }
        })
    }

    /// The bytes of rank 0. Every rank calls this.
    pub fn broadcast(&self, bytes: &[u8]) -> Vec<u8> {
        match self {
            Self::One | Self::Virtual(_) => bytes.to_vec(),
            Self::Mpi(world) => world.broadcast_bytes(self.is_root().then(|| bytes.to_vec())),
        }
    }

    /// The bytes of all ranks on rank 0, at most 2 GiB together; nothing on the others. Every rank calls this.
    pub fn collect(&self, mine: &[u8]) -> Vec<Vec<u8>> {
        match self {
            Self::One | Self::Virtual(_) => vec![mine.to_vec()],
            Self::Mpi(world) => world.collect_bytes(mine),
        }
    }

    /// The result of this rank, if every rank succeeded; otherwise the error of the first that failed. Every rank calls this.
    ///
    /// # Errors
    /// If any rank failed.
    pub fn agree<T>(&self, result: Result<T, JobError>) -> Result<T, JobError> {
        match (self, result) {
            // All ranks have this error already.
            (_, Err(known @ JobError::OnSomeRank(_))) => Err(known),
            (Self::One | Self::Virtual(_), result) => result,
            (Self::Mpi(world), result) => world.agree(result.map_err(|error| error.to_string())).map_err(JobError::OnSomeRank),
        }
    }
}
