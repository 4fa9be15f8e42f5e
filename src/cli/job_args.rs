//! Options about the job that carries out runs: its time limit, how long ranks may be silent, its log.

use super::termination::{self, CurrentRun, JobKind};
use crate::cluster::mpi::{World, WorldError};
use crate::cluster::placement;
use crate::log;
use crate::results::{self, Reporting};
use std::time::Duration;

/// Arguments about the job.
#[derive(clap::Args, Debug)]
pub struct JobArgs {
    /// End the job if a rank gives no sign of life for this long. Ranks give signs during long tasks too. The run can be resumed. 0 waits forever
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_silence, overrides_with = "max_silence")]
    pub max_silence: Duration,
    /// How messages are written on standard error
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    pub log: LogFormat,
    /// Put the host of rank 0 into each line about a run, if the log is text
    #[arg(long)]
    pub log_host: bool,
}

/// The time limit of commands that save and stop.
#[derive(clap::Args, Debug)]
pub struct TimeLimit {
    /// Save and stop before this time is over: 90m, 2h, or as Slurm writes it, 02:00:00 or 1-12:00:00
    #[arg(long, value_name = "TIME", value_parser = parse_time_limit, overrides_with = "max_time")]
    pub max_time: Option<Duration>,
}

/// How messages are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// Lines for people
    Text,
    /// One JSON object per line, with time, level, host, rank and message
    Json,
}

impl JobArgs {
    /// Sets up the log and, for a job that can be stopped and resumed, its time limit and the handling of signals, before MPI starts.
    pub(super) fn begin(&self, limit: Option<&TimeLimit>) {
        if self.log == LogFormat::Json {
            log::use_json(placement::host(), World::launched_rank());
        }
        if World::is_launched() || self.log_host {
            log::date_errors(self.log_host.then(placement::host));
        }
        // Other jobs are short, and cannot stop early: signals end them.
        let Some(limit) = limit else { return };
        if let Some(limit) = limit.max_time {
            results::limit_time(limit);
        }
        results::listen();
        termination::announce_long_stops(self.reporting());
    }

    /// Starts MPI if a launcher started this process.
    pub(super) fn start_mpi(&self) -> Result<Option<World>, WorldError> {
        match (World::is_launched(), self.max_silence.is_zero()) {
            (false, _) => Ok(None),
            (true, true) => World::start().map(Some),
            (true, false) => World::start_watchable().map(Some),
        }
    }

    /// Watches for silent ranks, for faults, and for the end of the job by its launcher. Every rank calls this.
    pub(super) fn watch(&self, world: &mut World, current: &CurrentRun, kind: JobKind) {
        termination::watch(world, self.max_silence, current, kind);
        termination::note_faults(current, kind);
        termination::report_when_terminated(world, current, kind);
    }

    /// What this process prints during a run.
    pub(super) fn reporting(&self) -> Reporting {
        match (World::is_primary(), World::is_launched()) {
            (false, _) => Reporting::Quiet,
            (true, false) if !self.log_host => Reporting::Direct,
            (true, _) => Reporting::Log { host: self.log_host.then(placement::host) },
        }
    }
}

/// Units of time, each with its seconds.
const UNITS: [(char, f64); 4] = [('s', 1.0), ('m', 60.0), ('h', 3600.0), ('d', 86_400.0)];

/// The least `--max-silence`, apart from 0.
const SHORTEST_SILENCE: Duration = Duration::from_secs(1);

fn parse_silence(typed: &str) -> Result<Duration, String> {
    match parse_duration(typed)? {
        silence if silence.is_zero() || silence >= SHORTEST_SILENCE => Ok(silence),
        _ => Err("give at least 1s, or 0 to wait forever".into()),
    }
}

/// The least `--max-time`: a run saves and stops some seconds before its end.
const SHORTEST_LIMIT: Duration = Duration::from_secs(1);

fn parse_time_limit(typed: &str) -> Result<Duration, String> {
    match parse_duration(typed)? {
        limit if limit >= SHORTEST_LIMIT => Ok(limit),
        _ => Err("give at least 1s, or leave --max-time out to run without a limit".into()),
    }
}

/// Parses a time: `0`, `90s`, `1.5h`, or days, hours, minutes and seconds as Slurm writes them, `1-12:00:00` or `30:00`.
fn parse_duration(typed: &str) -> Result<Duration, String> {
    let parsed = if typed.contains([':', '-']) { parse_slurm_time(typed) } else { parse_with_unit(typed) };
    let seconds = parsed.filter(|seconds| seconds.is_finite() && *seconds >= 0.0);
    let duration = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    duration.ok_or_else(|| "write a time such as 90s, 30m, 2h, 02:00:00 or 1-12:00:00".into())
}

fn parse_with_unit(typed: &str) -> Option<f64> {
    let unit = UNITS.into_iter().find_map(|(letter, seconds)| Some((typed.strip_suffix(letter)?, seconds)));
    // A bare number would be seconds here and minutes in Slurm.
    let (number, seconds) = unit.or_else(|| (typed.trim() == "0").then_some((typed, 1.0)))?;
    Some(number.trim().parse::<f64>().ok()? * seconds)
}

/// The seconds of `[DAYS-]HOURS:MINUTES:SECONDS` or `MINUTES:SECONDS`; with days, the last parts may be missing.
fn parse_slurm_time(typed: &str) -> Option<f64> {
    let (days, rest) = match typed.split_once('-') {
        Some((days, rest)) => (Some(days.parse::<u32>().ok()?), rest),
        None => (None, typed),
    };
    let parts: Vec<f64> = rest.split(':').map(|part| part.parse::<u32>().ok().map(f64::from)).collect::<Option<_>>()?;
    let clock = match (parts.as_slice(), days) {
        ([hours, minutes, seconds], _) => 3600.0 * hours + 60.0 * minutes + seconds,
        ([hours, minutes], Some(_)) => 3600.0 * hours + 60.0 * minutes,
        ([hours], Some(_)) => 3600.0 * hours,
        ([minutes, seconds], None) => 60.0 * minutes + seconds,
        _ => return None,
    };
    Some(86_400.0 * f64::from(days.unwrap_or(0)) + clock)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_people_and_slurm_write_them() {
        for (typed, seconds) in [
            ("90s", 90.0),
            ("1.5h", 5400.0),
            ("30m", 1800.0),
            ("2d", 172_800.0),
            ("0", 0.0),
            ("30:05", 1805.0),
            ("02:00:00", 7200.0),
            ("1-12:00:00", 129_600.0),
            ("1-12", 129_600.0),
            ("1-12:30", 131_400.0),
        ] {
            assert_eq!(parse_duration(typed).unwrap().as_secs_f64(), seconds, "{typed}");
        }
        for typed in ["", "90", "soon", "-1", "1-", "1:2:3:4", "UNLIMITED", "1e400", "nan", "5ss", ":", "1h30m"] {
            assert!(parse_duration(typed).is_err_and(|why| why.contains("02:00:00")), "{typed}");
        }
        assert!(parse_time_limit("0").is_err() && parse_time_limit("1s").is_ok());
        assert!(parse_silence("0.5s").is_err() && parse_silence("0").is_ok() && parse_silence("5m").is_ok());
    }
}
