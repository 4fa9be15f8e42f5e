//! When a download retries and when it gives up.

use std::time::Duration;

/// When a download retries and when it gives up.
#[derive(Clone, Copy, Debug)]
pub struct RetryPolicy {
    /// Consecutive attempts without progress before giving up.
    pub attempts: u32,
    /// The wait before the second attempt; it doubles with each further one.
    pub wait: Duration,
    /// How long a server may stay silent before an attempt fails.
    pub timeout: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { attempts: 5, wait: Duration::from_secs(1), timeout: Duration::from_secs(60) }
    }
}
