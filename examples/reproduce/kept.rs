//! Kept results of rows, which stay up to date when code changes that does not affect their numbers.

use super::origin::Origin;
use super::{Effort, Outcome, Row};
use anyhow::Context;
use mpibayes::cli::blas;
use mpibayes::cluster::BoxError;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::Instant;

/// What came of a row and what made it.
#[derive(Serialize, Deserialize)]
pub struct Kept {
    pub outcome: Outcome,
    pub seconds: f64,
    #[serde(flatten)]
    pub origin: Origin,
    /// What the row's quick version gives with the same sources.
    #[serde(default)]
    quick: Option<Quick>,
    /// The latest commit at which the quick version gave `quick.numbers` again; none if that was never needed.
    #[serde(default)]
    confirmed: Option<String>,
}

/// What is kept of a quick version.
#[derive(Serialize, Deserialize)]
pub struct Quick {
    /// A hash of its numbers.
    numbers: String,
    seconds: f64,
    /// The version and kernels of OpenBLAS, on which last digits depend; none if they were not noted.
    #[serde(default)]
    blas: Option<String>,
}

impl Quick {
    pub fn of(row: &Row) -> Result<Self, BoxError> {
        let since = Instant::now();
        let numbers = row.carry_out(Effort::QUICK)?.hash();
        Ok(Self { numbers, seconds: since.elapsed().as_secs_f64(), blas: Some(blas::configuration()) })
    }
}

/// Whether a kept result still holds.
pub enum Confirmation {
    /// It was made from the sources of now.
    UpToDate,
    /// It was made from other sources, but the quick version gives the same numbers.
    Confirmed,
    /// It may no longer hold, and why.
    Stale(String),
}

impl Kept {
    /// The result of a row.
    pub fn new(outcome: Outcome, seconds: f64, origin: Origin) -> Self {
        Self { outcome, seconds, origin, quick: None, confirmed: None }
    }

    pub fn read(path: &Path) -> anyhow::Result<Option<Self>> {
        if !path.exists() {
            return Ok(None);
        }
        let what = || format!("{}: delete this file, and run the row again", path.display());
        Ok(Some(serde_json::from_str(&std::fs::read_to_string(path).with_context(what)?).with_context(what)?))
    }

    pub fn write(&self, path: &Path) -> anyhow::Result<()> {
        std::fs::write(path, serde_json::to_string_pretty(self)?).with_context(|| path.display().to_string())
    }

    /// What came out and how long it took, for people.
    pub fn verdict_and_time(&self, row: &Row) -> String {
        format!("{}, {:.0} s", self.outcome.verdict.name(row), self.seconds)
    }

    /// How long it took and what made it, for people.
    pub fn made_by(&self) -> String {
        let quick = self.quick.as_ref().map(|quick| format!(" (quick version: {:.0} s)", quick.seconds)).unwrap_or_default();
        let confirmed =
            self.confirmed.as_ref().map(|commit| format!("; the quick version gave the same numbers at commit {commit}"));
        format!("{:.0} s{quick}, {}{}", self.seconds, self.origin, confirmed.unwrap_or_default())
    }

    /// Compares the quick version of the row as it is now with that of the sources that made this. A result whose sources are those of now gets
    /// the numbers to compare with later.
    pub fn confirm(&mut self, row: &Row, now: &Origin) -> anyhow::Result<Confirmation> {
        if self.origin.is_same(now) {
            if self.quick.is_none() {
                self.quick = Some(Quick::of(row).map_err(anyhow::Error::from_boxed)?);
            }
            return Ok(Confirmation::UpToDate);
        }
        let Some(before) = &mut self.quick else {
            return Ok(Confirmation::Stale("the numbers of its quick version are not known".into()));
        };
        if !self.origin.has_settings_of(now) {
            return Ok(Confirmation::Stale("its settings are others".into()));
        }
        let again = Quick::of(row).map_err(anyhow::Error::from_boxed)?;
        if again.numbers != before.numbers {
            let name = |blas: &Option<String>| blas.clone().unwrap_or_else(|| "not noted".into());
            let changed = if again.blas == before.blas {
                String::new()
            } else {
                let (now, then) = (name(&again.blas), name(&before.blas));
                format!("; OpenBLAS is now {now}, and was {then} (OPENBLAS_CORETYPE selects kernels)")
            };
            return Ok(Confirmation::Stale(format!("its quick version gives other numbers{changed}")));
        }
        // The kernels that first gave these numbers, as far as it is known.
        before.blas = before.blas.take().or(again.blas);
        self.confirmed = Some(now.commit().to_owned());
        self.origin = now.clone().with_commit_of(&self.origin);
        Ok(Confirmation::Confirmed)
    }
}

impl Outcome {
    /// A hash of the numbers.
    fn hash(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for (name, found, expected) in &self.numbers {
            for text in [name, found, expected] {
                hasher.update(text.as_bytes()).update(&[0]);
            }
        }
        hasher.finalize().to_hex()[..16].to_owned()
    }
}
