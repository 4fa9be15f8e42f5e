//! Where the ranks of a job run, and whether their hosts have enough cores for all threads.

use crate::text::counted;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The host and the cores of a rank.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The rank.
    pub rank: u32,
    /// The name of its host.
    pub host: String,
    /// The indices of the cores that it may use.
    pub cores: Vec<usize>,
}

impl Place {
    /// The place of this process.
    pub fn here(rank: u32) -> Self {
        Self { rank, host: host(), cores: cores() }
    }
}

/// Warnings about hosts with more threads than cores, and ranks that are bound to fewer cores than they have threads.
pub fn oversubscription(placement: &[Place], threads: usize) -> Vec<String> {
    let threads = threads.max(1);
    let mut hosts: BTreeMap<&str, (usize, BTreeSet<usize>)> = BTreeMap::new();
    for place in placement {
        let (ranks, cores) = hosts.entry(&place.host).or_default();
        *ranks += 1;
        cores.extend(&place.cores);
    }
    let mut warnings: Vec<String> = hosts
        .iter()
        .filter(|(_, (ranks, cores))| ranks.saturating_mul(threads) > cores.len())
        .map(|(host, (ranks, cores))| {
            let (ranks, threads) = (counted(*ranks, "rank"), counted(threads, "thread"));
            let cores = counted(cores.len(), "core");
            format!("{host}: {ranks} × {threads} on {cores}: use fewer ranks or threads, or more cores")
        })
        .collect();
    let bound = placement.iter().find(|place| place.cores.len() < threads);
    if let (Some(place), true) = (bound, warnings.is_empty()) {
        let (threads, cores) = (counted(threads, "thread"), counted(place.cores.len(), "core"));
        let rank = place.rank;
        warnings.push(format!(
            "rank {rank} is bound to {cores} but needs {threads}: use mpirun --bind-to none, or srun --cpus-per-task"
        ));
    }
    warnings
}

/// The name of this host.
pub fn host() -> String {
    let mut name = [0_u8; 256];
    // SAFETY: the length is that of the buffer without its last byte, which stays zero.
    let failed = unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len() - 1) } != 0;
    let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
    if failed { "unknown".into() } else { String::from_utf8_lossy(&name[..end]).into_owned() }
}

/// The indices of the cores that this process may use.
pub fn cores() -> Vec<usize> {
    #[cfg(target_os = "linux")]
    {
        // SAFETY: all zeros are a valid empty set, and the call writes at most its size.
        let (set, failed) = unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            let failed = libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set) != 0;
            (set, failed)
        };
        if !failed {
            let most = 8 * size_of::<libc::cpu_set_t>();
            // SAFETY: the indices are within the set.
            return (0..most).filter(|&core| unsafe { libc::CPU_ISSET(core, &set) }).collect();
        }
    }
    (0..std::thread::available_parallelism().map_or(1, std::num::NonZero::get)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(rank: u32, host: &str, cores: &[usize]) -> Place {
        Place { rank, host: host.into(), cores: cores.to_vec() }
    }

    #[test]
    fn too_many_threads_give_a_warning() {
        let two = [place(0, "a", &[0, 1]), place(1, "a", &[0, 1]), place(2, "b", &[0, 1])];
        assert!(oversubscription(&two, 1).is_empty());
        let warnings = oversubscription(&two, 2);
        assert!(warnings.len() == 1 && warnings[0].starts_with("a: 2 ranks × 2 threads on 2 cores"), "{warnings:?}");
        // There are enough cores, but this rank may not use them.
        let bound = [place(0, "a", &[0]), place(1, "a", &[1, 2, 3])];
        assert!(oversubscription(&bound, 1).is_empty());
        let warnings = oversubscription(&bound, 2);
        assert!(warnings.len() == 1 && warnings[0].starts_with("rank 0 is bound to 1 core"), "{warnings:?}");
    }

    #[test]
    fn this_host_has_cores() {
        assert!(!cores().is_empty() && !host().is_empty());
    }
}
