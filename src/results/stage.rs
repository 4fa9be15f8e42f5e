//! The parts of a job before the first round of its run and after the last one.

/// A part of a job before the first round or after the last one. If the job is stopped meanwhile, the next job computes all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Before: taking the folder, and finding settings that the run file leaves open.
    Preparation,
    /// After: gradients of the posterior at draws, from which bias or the configurational temperature is measured.
    Gradients,
    /// After: log-likelihoods of rows at draws.
    LogLikelihoods,
}

impl Stage {
    /// Its name beside its progress.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Preparation => "preparing",
            Self::Gradients => "gradients at draws",
            Self::LogLikelihoods => "log-likelihoods of rows",
        }
    }
}
