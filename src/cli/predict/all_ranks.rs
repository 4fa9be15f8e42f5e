//! Results that all ranks agree on.

use crate::job::Ranks;
use anyhow::anyhow;

/// The value of this rank if all ranks succeeded, otherwise the error of the lowest rank that failed. Rank 0 keeps its own error as it is, so
/// that callers see its type. Every rank calls this.
pub(super) fn agree<T>(ranks: &Ranks, mine: anyhow::Result<T>) -> anyhow::Result<T> {
    let Ranks::Mpi(world) = ranks else { return mine };
    match mine {
        Ok(value) => world.agree(Ok(value)).map_err(|what| anyhow!(what)),
        Err(error) => {
            let of_some_rank = world.agree::<T>(Err(format!("{error:#}")));
            if ranks.is_root() { Err(error) } else { of_some_rank.map_err(|what| anyhow!(what)) }
        }
    }
}
