//! Collects what a short method records, for computations before and after a run.

use super::error::JobError;
use super::ranks::Ranks;
use crate::cluster::record::{DrawBlock, Record};
use crate::cluster::{self, JobOptions, Method, Recorder, erase};

/// Carries out a short method on all ranks; the values of all its records, in their order, are on rank 0. Every rank calls this.
///
/// # Errors
/// If the method failed.
pub(super) fn records_of<M: Method>(method: M, ranks: &Ranks, options: &JobOptions) -> Result<Vec<f64>, JobError> {
    let mut records = Records::default();
    ranks.carry_out(erase(method, M::NAME), options.clone(), None, &mut records)?;
    Ok(records.0)
}

#[derive(Default)]
struct Records(Vec<f64>);

impl Recorder for Records {
    fn write(&mut self, records: Vec<Record>) -> cluster::Result<()> {
        for record in records {
            if let Record::Draws(DrawBlock { kind, bytes, .. }) = record {
                match kind.as_str() {
                    "f32" => self.0.extend(bytes.as_chunks().0.iter().map(|bytes| f64::from(f32::from_le_bytes(*bytes)))),
                    _ => self.0.extend(bytes.as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes))),
                }
            }
        }
        Ok(())
    }
}
