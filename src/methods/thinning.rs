//! Which of a chain's updates are draws.

/// How many draws are kept of the first `updates` updates of a chain.
pub(super) fn draws(updates: u64, burn_in: u64, thin: u64) -> u64 {
    updates.saturating_sub(burn_in).checked_div(thin).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_so_many_th_update_after_the_burn_in_is_a_draw() {
        let kept: Vec<u64> = (0..20).filter(|&update| draws(update + 1, 5, 3) > draws(update, 5, 3)).collect();
        assert_eq!(kept, [7, 10, 13, 16, 19]);
        assert_eq!((draws(20, 0, 1), draws(20, 0, 0)), (20, 0));
    }
}
