//! The table of topics of a sweep, which the agents of a process share: all of them would compute the same.

use crate::cluster::Result;
use crate::lda::TopicTable;
use std::sync::{Arc, Mutex, PoisonError};

/// The latest table.
#[derive(Clone, Default)]
pub(super) struct SharedTable(Arc<Mutex<Option<TableOfSweep>>>);

struct TableOfSweep {
    id: (u64, u64),
    table: Arc<TopicTable>,
}

impl SharedTable {
    /// The table of the sweep with this id. The first agent that asks for it computes it with `fill`, in the memory of an earlier table if
    /// there is one, else in that of a `new` one.
    pub fn at(
        &self,
        id: (u64, u64),
        new: impl FnOnce() -> TopicTable,
        fill: impl FnOnce(&mut TopicTable) -> Result<()>,
    ) -> Result<Arc<TopicTable>> {
        let mut shared = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shared) = shared.as_ref().filter(|shared| shared.id == id) {
            return Ok(shared.table.clone());
        }
        let earlier = shared.take().and_then(|earlier| Arc::try_unwrap(earlier.table).ok());
        let mut table = earlier.unwrap_or_else(new);
        fill(&mut table)?;
        let table = Arc::new(table);
        *shared = Some(TableOfSweep { id, table: table.clone() });
        Ok(table)
    }
}
