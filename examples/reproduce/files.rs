//! The run files in `jobs/papers`, which hold the settings of the rows' runs.

use mpibayes::cluster::BoxError;
use mpibayes::config::sweep::{grid, is_sweep};
use mpibayes::config::{ConfigError, Override, Registry, Run, RunFile};
use mpibayes::settings::{Settings, read};
use serde::de::DeserializeOwned;
use std::path::Path;
use toml::{Table, Value};

type Result<T> = std::result::Result<T, BoxError>;

/// The runs of a file: those of its sweep, or the only one.
#[derive(Clone)]
pub struct Runs(pub Vec<Table>);

impl Runs {
    /// Reads `jobs/papers/NAME.toml`.
    pub fn read(name: &str) -> Result<Self> {
        let file = RunFile::read(&Path::new("jobs/papers").join(format!("{name}.toml")), &[])?;
        if !is_sweep(&file) {
            return Ok(Self(vec![file.table().clone()]));
        }
        let sweep = grid(&file).map_err(ConfigError::Problems)?;
        Ok(Self(sweep.points.into_iter().map(|point| point.file.table().clone()).collect()))
    }

    /// The runs of several files.
    pub fn all(files: &[Self]) -> Self {
        Self(files.iter().flat_map(|runs| runs.0.clone()).collect())
    }

    /// The same runs with another value, as with `--set`.
    pub fn set(mut self, setting: &str) -> Result<Self> {
        let parsed = Override::parse(setting).ok_or_else(|| format!("{setting}: write key=value"))?;
        self.0.iter_mut().try_for_each(|run| parsed.apply(run))?;
        Ok(self)
    }

    /// The runs with each value of a key, in the order of the file.
    pub fn by(&self, key: &str) -> Vec<Self> {
        let mut groups: Vec<Self> = Vec::new();
        for run in &self.0 {
            match groups.iter_mut().find(|group| find(&group.0[0], key) == find(run, key)) {
                Some(group) => group.0.push(run.clone()),
                None => groups.push(Self(vec![run.clone()])),
            }
        }
        groups
    }

    /// The value of a key in the first run.
    pub fn value<T: DeserializeOwned>(&self, key: &str) -> Result<T> {
        value(self.0.first().ok_or("a file without runs")?, key)
    }
}

/// The value of a dotted key.
pub fn find<'a>(run: &'a Table, key: &str) -> Option<&'a Value> {
    let mut parts = key.split('.');
    let first = run.get(parts.next()?)?;
    parts.try_fold(first, |value, part| value.get(part))
}

/// The value of a dotted key, which must be there.
pub fn value<T: DeserializeOwned>(run: &Table, key: &str) -> Result<T> {
    let value = find(run, key).ok_or_else(|| format!("{key} is missing in a run file"))?;
    Ok(value.clone().try_into()?)
}

/// The settings of the model or the method, by the section of the file.
pub fn settings<S: Settings>(run: &Table, section: &str) -> Result<S> {
    let mut table: Table = value(run, section)?;
    table.remove("name");
    Ok(read(table).map_err(ConfigError::Settings)?)
}

/// The validated run.
pub fn parse(run: &Table, registry: &Registry) -> Result<Run> {
    Ok(Run::parse(run.clone(), registry).map_err(ConfigError::Settings)?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::dsvgd::runs::{COMPARISON_FILES, contender};
    use super::super::{PAPERS, rows};
    use super::*;
    use std::collections::BTreeSet;

    /// The names of all files, such as `dsvgd/fig5`.
    fn names() -> BTreeSet<String> {
        let files = |paper: &&str| std::fs::read_dir(Path::new("jobs/papers").join(paper)).unwrap();
        let all = PAPERS.iter().flat_map(|paper| files(paper).map(move |file| Path::new(paper).join(file.unwrap().file_name())));
        let of_runs = all.filter(|path| path.extension().is_some_and(|extension| extension == "toml"));
        of_runs.map(|path| path.with_extension("").to_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn every_run_file_is_valid() {
        for name in names() {
            for run in Runs::read(&name).unwrap().0 {
                parse(&run, &Registry::default()).unwrap_or_else(|error| panic!("{name}: {error}"));
                assert!(!name.starts_with("dsvgd/") || contender(&run).is_some(), "{name}: a method without a name in reports");
            }
        }
    }

    #[test]
    fn every_run_file_is_used_by_a_row_and_there() {
        let rows = PAPERS.iter().flat_map(|paper| rows(paper));
        // Runs of hours, which the book describes.
        let long = ["dsgld/wiki-dsgld", "dsgld/wiki-lda"];
        let used = rows.flat_map(|row| row.files).chain(&COMPARISON_FILES).chain(&long).map(|name| (*name).to_owned());
        let (used, names) = (used.collect::<BTreeSet<_>>(), names());
        let odd: Vec<_> = used.symmetric_difference(&names).collect();
        assert!(odd.is_empty(), "used by no row, or not there: {odd:?}");
    }
}
