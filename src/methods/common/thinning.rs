//! Thinning: which updates of a chain are draws, and which rounds of a run get a row in the history.

/// The largest number of rows in the history of a run.
const MAX_HISTORY_ROWS: u64 = 2000;

/// Rounds between two rows of the history.
pub(crate) fn between_rows(rounds: u64) -> u64 {
    rounds.div_ceil(MAX_HISTORY_ROWS)
}

/// Whether the history gets a row after `done` of `rounds` rounds.
pub(crate) fn has_row(done: u64, rounds: u64) -> bool {
    is_due(done, between_rows(rounds), rounds)
}

/// Whether something that happens every `every` rounds and after the last round is due after `done` rounds.
pub(crate) fn is_due(done: u64, every: u64, rounds: u64) -> bool {
    done.is_multiple_of(every) || done == rounds
}

/// The number of draws among the first `updates` updates of a chain.
pub(crate) fn draws(updates: u64, burn_in: u64, thin: u64) -> u64 {
    updates.saturating_sub(burn_in).checked_div(thin).unwrap_or(0)
}

/// The number of the draw that a chain's last of `updates` updates is; none if it is no draw.
pub(crate) fn draw_after(updates: u64, burn_in: u64, thin: u64) -> Option<u64> {
    let before = draws(updates.saturating_sub(1), burn_in, thin);
    (draws(updates, burn_in, thin) > before).then_some(before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_history_is_thinned_and_has_the_last_row() {
        for (rounds, rows) in [(1, 1), (1999, 1999), (2000, 2000), (2001, 1001), (4001, 1334), (1_000_000, 2000)] {
            let due: Vec<u64> = (1..=rounds).filter(|&done| has_row(done, rounds)).collect();
            assert_eq!((due.len(), due.last()), (rows, Some(&rounds)));
        }
    }

    #[test]
    fn every_third_update_after_burn_in_is_a_draw() {
        let kept: Vec<(u64, u64)> = (0..=20).filter_map(|updates| Some((updates, draw_after(updates, 5, 3)?))).collect();
        assert_eq!(kept, [(8, 0), (11, 1), (14, 2), (17, 3), (20, 4)]);
        assert_eq!(draw_after(20, 5, 0), None);
        assert_eq!((draws(20, 0, 1), draws(20, 0, 0)), (20, 0));
    }
}
