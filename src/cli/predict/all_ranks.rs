//! Results that all ranks agree on.

use crate::job::{JobError, Ranks};

/// The result of this rank if all ranks succeeded. Otherwise an error: rank 0's own if it failed, and on the others that of the first that
/// failed. Every rank calls this.
pub(super) fn agree<T>(ranks: &Ranks, mine: anyhow::Result<T>) -> anyhow::Result<T> {
    match mine {
        Ok(value) => Ok(ranks.agree(Ok(value))?),
        Err(error) => {
            let of_some_rank = ranks.agree::<T>(Err(JobError::Topics(format!("{error:#}"))));
            if ranks.is_root() { Err(error) } else { Ok(of_some_rank?) }
        }
    }
}
