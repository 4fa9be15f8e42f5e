//! Carries out a method before or after a run, and collects what it records.

use super::error::JobError;
use super::ranks::Ranks;
use crate::cluster::record::{DrawBlock, Record};
use crate::cluster::{self, AfterCheckpoint, Checkpoint, JobOptions, Method, Recorder, Status, erase};
use crate::results::{RunFolder, Stage};

/// Carries out a short method on all ranks; the values of all its records, in their order, are on rank 0. Every rank calls this.
///
/// # Errors
/// If the method failed.
pub(super) fn records_of<M: Method>(method: M, ranks: &Ranks, options: &JobOptions) -> Result<Vec<f64>, JobError> {
    let mut records = Records::default();
    ranks.carry_out(erase(method, M::NAME), options.clone(), None, &mut records)?;
    Ok(records.0)
}

/// The same for a method that takes long: shows its progress as that of a stage of the run, and ends early when the job is asked to stop. None
/// if it was. Every rank calls this.
///
/// # Errors
/// If the method failed.
pub(super) fn records_of_long<M: Method>(
    method: M,
    ranks: &Ranks,
    options: &JobOptions,
    stage: Stage,
    folder: &mut RunFolder,
) -> Result<Option<Vec<f64>>, JobError> {
    let mut recorder = WithProgress { records: Records::default(), stage, must_end: false, folder };
    let outcome = ranks.carry_out(erase(method, M::NAME), options.clone(), None, &mut recorder)?;
    let finished = ranks.broadcast(&[u8::from(outcome.is_some_and(|outcome| outcome.finished))]) == [1];
    let WithProgress { records, folder, .. } = recorder;
    folder.end_stage(stage, finished);
    Ok(finished.then_some(records.0))
}

/// Records of a method, with its progress.
struct WithProgress<'a> {
    records: Records,
    stage: Stage,
    /// Whether the method ends at its next checkpoint, before it is complete.
    must_end: bool,
    folder: &'a mut RunFolder,
}

impl Recorder for WithProgress<'_> {
    fn write(&mut self, records: Vec<Record>) -> cluster::Result<()> {
        self.records.write(records)
    }

    fn wants_checkpoint(&mut self, status: Status) -> cluster::Result<bool> {
        self.folder.show_stage(self.stage, status.progress);
        self.must_end = self.folder.must_end_stage(status.longest_response);
        Ok(self.must_end)
    }

    fn on_checkpoint(&mut self, _checkpoint: Checkpoint) -> cluster::Result<AfterCheckpoint> {
        Ok(if self.must_end { AfterCheckpoint::Stop } else { AfterCheckpoint::Continue })
    }
}

#[derive(Default)]
struct Records(Vec<f64>);

impl Recorder for Records {
    fn write(&mut self, records: Vec<Record>) -> cluster::Result<()> {
        for record in records {
            if let Record::Draws(DrawBlock { kind, bytes, .. }) = record {
                match kind.as_str() {
                    "f32" => self.0.extend(bytes.as_chunks().0.iter().map(|bytes| f64::from(f32::from_le_bytes(*bytes)))),
                    "f64" => self.0.extend(bytes.as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes))),
                    other => return Err(format!("records of numbers of the kind {other}: f32 and f64 are expected").into()),
                }
            }
        }
        Ok(())
    }
}
