//! Collects what a short method records, for computations before and after a run.

use crate::cluster::record::{DrawBlock, Record};
use crate::cluster::{self, Recorder};

/// The values of all records, in their order.
#[derive(Default)]
pub(super) struct Records(pub Vec<f64>);

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
