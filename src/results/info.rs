//! The description of a run in its result file: method, model, seed, configuration, progress.

/// The root attribute `format`.
pub(super) const FORMAT: &str = "mpibayes-run";
/// The version of the layout.
pub(super) const VERSION: u32 = 2;
/// The root attribute `inference_library`.
pub(super) const LIBRARY: &str = "mpibayes";

/// The progress of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunState {
    /// Whether it is finished.
    pub finished: bool,
    /// Completed rounds.
    pub done: u64,
    /// All rounds.
    pub total: u64,
    /// Seconds since it began, without evaluation.
    pub seconds: f64,
}

impl RunState {
    /// The state of a finished run with unknown rounds and seconds.
    pub fn over() -> Self {
        Self { finished: true, done: 0, total: 0, seconds: 0.0 }
    }
}

/// The description of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunInfo {
    /// When the file was created: ISO 8601, UTC.
    pub created_at: String,
    /// The version of this program.
    pub version: String,
    /// The method, by its name in the configuration.
    pub method: String,
    /// The model, by its name in the configuration.
    pub model: String,
    /// The seed.
    pub seed: u64,
    /// The digest of the dataset; empty if the run had none.
    pub data_digest: String,
    /// The resolved configuration as TOML.
    pub config: String,
    /// Its progress.
    pub state: RunState,
}

impl RunInfo {
    /// The description of a finished run by this version of the program, created now.
    pub fn new(method: &str, model: &str, seed: u64, data_digest: &str, config: &str) -> Self {
        Self {
            created_at: now(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            method: method.to_owned(),
            model: model.to_owned(),
            seed,
            data_digest: data_digest.to_owned(),
            config: config.to_owned(),
            state: RunState::over(),
        }
    }
}

/// The time now: ISO 8601, UTC, to the second.
fn now() -> String {
    // A clock before 1970 must not prevent writing results.
    iso(std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_secs()))
}

/// ISO 8601 of seconds since 1970, by the calendar of Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms".
pub(super) fn iso(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400 + 719_468, seconds % 86_400);
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}
