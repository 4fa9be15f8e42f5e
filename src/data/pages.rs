//! Large pages for large arrays: with small pages, reading random rows costs a walk through the page tables for each row.

/// Smaller arrays gain nothing: the cache of page-table entries (TLB) covers a few megabytes of small pages.
#[cfg(target_os = "linux")]
const FROM_BYTES: usize = 4 << 20;
#[cfg(target_os = "linux")]
const MAX_AT_ONCE: usize = 4 << 30;

/// Asks the system to move a filled array to large pages, which takes a fraction of a second for a large array. Does nothing where the
/// system cannot do that.
pub(crate) fn make_large<T>(numbers: &[T]) {
    #[cfg(target_os = "linux")]
    {
        const LARGE: usize = 2 << 20;
        /// Since Linux 6.1: at once, and not some time later.
        const MADV_COLLAPSE: libc::c_int = 25;
        let range = numbers.as_ptr_range();
        let (start, end) = ((range.start as usize).next_multiple_of(LARGE), range.end as usize / LARGE * LARGE);
        if size_of_val(numbers) < FROM_BYTES || start >= end {
            return;
        }
        let allowed = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
        if allowed.is_ok_and(|allowed| allowed.contains("[never]")) {
            return;
        }
        // Moving some gigabytes takes a second. Larger arrays are left to the kernel, which moves them in the background.
        let advices = [libc::MADV_HUGEPAGE, MADV_COLLAPSE];
        for &advice in if end - start > MAX_AT_ONCE { &advices[..1] } else { &advices[..] } {
            // SAFETY: advice about pages that lie within the array; what is in them stays as it is.
            unsafe { libc::madvise(start as *mut libc::c_void, end - start, advice) };
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = numbers;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_stay() {
        for length in [0, 1, 1000, 3 << 20] {
            let numbers: Vec<u32> = (0..length).collect();
            make_large(&numbers);
            assert!(numbers.iter().copied().eq(0..length));
        }
    }
}
