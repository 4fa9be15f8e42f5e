//! Results that all ranks agree on.

use crate::job::{JobError, Ranks};

/// The value of this rank if all ranks succeeded, otherwise the error of the lowest rank that failed. Rank 0 keeps its own error as it is, so
/// that callers see its type. Every rank calls this.
pub(super) fn agree<T>(ranks: &Ranks, mine: anyhow::Result<T>) -> anyhow::Result<T> {
    match mine {
        Ok(value) => Ok(ranks.agree(Ok(value))?),
        Err(error) => {
            let of_some_rank = ranks.agree::<T>(Err(JobError::Topics(format!("{error:#}"))));
            if ranks.is_root() { Err(error) } else { Ok(of_some_rank?) }
        }
    }
}
