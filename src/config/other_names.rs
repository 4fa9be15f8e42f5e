//! What other programs for Bayesian inference call the keys of run files.

/// A name in another program, and the keys that it may stand for, likely ones first. Which of them a run has depends on its method.
const NAMES: &[(&str, &[&str])] = &[
    ("adapt_delta", &["acceptance"]),
    ("batch_size", &["batch"]),
    ("cores", &["threads"]),
    ("draws", &["ess", "rounds", "steps"]),
    ("epochs", &["rounds", "steps"]),
    ("epsilon", &["step"]),
    ("eta", &["beta", "step"]),
    ("eta0", &["step"]),
    ("iter", &["draws", "rounds", "steps"]),
    ("iter_sampling", &["draws", "ess", "rounds", "steps"]),
    ("iter_warmup", &["burn_in"]),
    ("iterations", &["rounds", "steps"]),
    ("learning_rate", &["step"]),
    ("lr", &["step"]),
    ("max_iter", &["rounds", "steps"]),
    ("minibatch", &["batch"]),
    ("minibatch_size", &["batch"]),
    ("n_chains", &["chains", "agents"]),
    ("n_components", &["components", "topics"]),
    ("n_iter", &["draws", "rounds", "steps"]),
    ("n_jobs", &["threads"]),
    ("n_particles", &["particles"]),
    ("n_topics", &["topics"]),
    ("n_workers", &["agents"]),
    ("nchains", &["chains", "agents"]),
    ("nsample", &["draws", "ess", "rounds", "steps"]),
    ("num_chains", &["chains", "agents"]),
    ("num_epochs", &["rounds", "steps"]),
    ("num_iterations", &["rounds", "steps"]),
    ("num_particles", &["particles"]),
    ("num_samples", &["draws", "ess", "rounds", "steps"]),
    ("num_topics", &["topics"]),
    ("num_warmup", &["burn_in"]),
    ("passes", &["rounds"]),
    ("random_seed", &["seed"]),
    ("random_state", &["seed"]),
    ("samples", &["draws", "ess", "rounds", "steps"]),
    ("step_size", &["step"]),
    ("stepsize", &["step"]),
    ("target_accept", &["acceptance"]),
    ("thinning", &["thin"]),
    ("tune", &["burn_in"]),
    ("warmup", &["burn_in"]),
];

/// The keys that a user of other programs means by `typed`, likely ones first.
pub(super) fn meant_by(typed: &str) -> &'static [&'static str] {
    let typed = typed.to_lowercase().replace('-', "_");
    NAMES.iter().find(|(name, _)| *name == typed).map_or(&[], |(_, keys)| keys)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::config::Registry;

    #[test]
    fn names_are_sorted_and_none_is_listed_twice() {
        assert!(NAMES.is_sorted_by(|(one, _), (next, _)| one < next));
        assert_eq!(meant_by("Batch-Size"), ["batch"]);
        assert!(meant_by("batch").is_empty());
    }

    #[test]
    fn all_meant_keys_are_keys_of_run_files() {
        let reference = crate::config::reference(&Registry::default()).unwrap();
        for key in NAMES.iter().flat_map(|(_, keys)| *keys) {
            assert!(reference.contains(&format!("| `{key}` |")), "{key}");
        }
    }
}
