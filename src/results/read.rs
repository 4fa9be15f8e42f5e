//! Reading a result file: description, tables and draws.

use super::POSTERIOR;
use super::draws::part_dimensions;
use super::error::{REMEDY, Result, ResultsError};
use super::events::{self, Event};
use super::grid::Grid;
use super::info::{DIGEST, RunInfo, RunState, VERSION};
use super::netcdf;
use super::samples::{Samples, Values};
use super::table::Table;
use crate::data::hdf;
use crate::data::self_contained::Refusal;
use crate::models::Part;
use crate::number::Number;
use hdf5::{Dataset, Group, H5Type};
use ndarray::{Array3, Axis, Ix3, concatenate};
use std::path::{Path, PathBuf};

/// The name of the result file in the folder of a run.
pub(super) const RESULT_FILE: &str = "result.h5";

/// A result file, open for reading.
#[derive(Debug)]
pub struct ResultFile {
    pub(super) path: PathBuf,
    pub(super) file: hdf5::File,
    info: RunInfo,
    /// Arrays that were added after the file was opened; none if it was not asked to add any.
    added: Option<Vec<Grid>>,
}

impl ResultFile {
    /// Opens a result file and reads its description.
    ///
    /// # Errors
    /// When the file cannot be opened, is not a result file of mpibayes, or has another format version.
    pub fn open(path: &Path) -> Result<Self> {
        // HDF5 reports a missing file in many lines.
        std::fs::File::open(path).map_err(ResultsError::io(path, "open"))?;
        let invalid = |what: String| ResultsError::Content { path: path.to_path_buf(), what };
        let foreign = || {
            invalid(match path.ends_with(RESULT_FILE) {
                true => format!("this result file is damaged: {REMEDY}"),
                false => "this is not a result file of mpibayes: name the folder of a run, such as runs/my".into(),
            })
        };
        let file = hdf::open(path).map_err(|refusal| match refusal {
            Refusal::NotSelfContained(what) => invalid(what),
            Refusal::Unchecked(cause) => ResultsError::hdf5(path, "open")(cause),
            Refusal::Unreadable(_) => foreign(),
        })?;
        match hdf::read_text(&file, "format").as_deref() {
            Ok(hdf::RESULT_FORMAT) => {}
            Ok(hdf::DATASET_FORMAT) => {
                return Err(invalid(
                    "this is a dataset, not the result of a run: name the folder of a run, such as runs/my".into(),
                ));
            }
            _ => return Err(foreign()),
        }
        let version = || -> hdf5::Result<u32> { file.attr("format_version")?.read_scalar() };
        match version().map_err(ResultsError::hdf5(path, "read the description"))? {
            VERSION => {}
            other => return Err(invalid(format!("this file has format version {other}; this mpibayes reads version {VERSION}"))),
        }
        let read = || -> hdf5::Result<RunInfo> {
            let text = |name| hdf::read_text(&file, name);
            // Files of earlier versions have none.
            let optional = |name| if file.attr(name).is_ok() { text(name) } else { Ok(String::new()) };
            Ok(RunInfo {
                created_at: text("created_at")?,
                version: text("inference_library_version")?,
                method: text("method")?,
                model: text("model")?,
                seed: file.attr("seed")?.read_scalar()?,
                data_digest: text("data_digest")?,
                config: text("config")?,
                state: RunState {
                    finished: file.attr("finished")?.read_scalar::<u8>()? != 0,
                    done: file.attr("progress_done")?.read_scalar()?,
                    total: file.attr("progress_total")?.read_scalar()?,
                    seconds: file.attr("sampling_time")?.read_scalar()?,
                },
                hosts: optional("hosts")?.lines().map(str::to_owned).collect(),
                events: events::from_lines(&optional("events")?),
            })
        };
        let info = read().map_err(ResultsError::hdf5(path, "read the description"))?;
        if is_damaged(&file, || info.digest()) {
            return Err(invalid(format!("the description of the run in this file is damaged: {REMEDY}")));
        }
        Ok(Self { path: path.to_path_buf(), file, info, added: None })
    }

    /// The description of the run.
    pub fn info(&self) -> &RunInfo {
        &self.info
    }

    /// What happened to the run, according to the file and its folder.
    pub fn events(&self) -> Vec<Event> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        events::with_those_in_folder(self.info.events.clone(), folder)
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the file has a group of this name.
    pub fn has(&self, group: &str) -> bool {
        self.added.iter().flatten().any(|grid| grid.group == group) || self.file.link_exists(group)
    }

    /// Adds arrays that are read from now on as if they were in the file, which stays as it is.
    pub fn add_arrays(&mut self, grids: impl IntoIterator<Item = Grid>) {
        self.added.get_or_insert_default().extend(grids);
    }

    /// Whether arrays were added, if only none of them.
    pub fn has_additions(&self) -> bool {
        self.added.is_some()
    }

    /// The names of the tables, sorted.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn tables(&self) -> Result<Vec<String>> {
        self.groups_with("columns")
    }

    /// The names of the groups of draws, sorted.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn sample_groups(&self) -> Result<Vec<String>> {
        self.groups_with("parts")
    }

    fn groups_with(&self, attribute: &str) -> Result<Vec<String>> {
        let read = || -> hdf5::Result<Vec<String>> {
            let mut names = Vec::new();
            for name in self.file.member_names()? {
                if self.file.group(&name)?.attr_names()?.iter().any(|other| other == attribute) {
                    names.push(name);
                }
            }
            names.sort();
            Ok(names)
        };
        read().map_err(ResultsError::hdf5(&self.path, "list the groups"))
    }

    /// A table.
    ///
    /// # Errors
    /// When there is no such table, or it cannot be read.
    pub fn table(&self, name: &str) -> Result<Table> {
        let read = || -> hdf5::Result<Table> {
            let group = self.file.group(name)?;
            let step: Vec<u64> = group.dataset("step")?.read_raw()?;
            let column = |name: &str| -> hdf5::Result<Dataset> {
                let data = group.dataset(name)?;
                match data.shape()[..] == [step.len()] {
                    true => Ok(data),
                    false => {
                        let (shape, rows) = (data.shape(), step.len());
                        let what = format!("{name:?} has shape {shape:?}, not {rows}. The file is damaged: restore it");
                        Err(hdf5::Error::Internal(what))
                    }
                }
            };
            let names = hdf::read_text(&group, "columns")?.split_whitespace().map(str::to_owned).collect();
            let columns = hdf::distinct(names)?
                .into_iter()
                .map(|name| column(&name)?.read_raw().map(|values| (name, values)))
                .collect::<hdf5::Result<_>>()?;
            let agents: Vec<i64> = column("agent")?.read_raw()?;
            let agent = agents.into_iter().map(|agent| u32::try_from(agent).ok()).collect();
            let table = Table { step, agent, columns };
            match is_damaged(&group, || table.digest()) {
                true => Err(hdf5::Error::Internal("its digest is another one. The file is damaged: restore it".into())),
                false => Ok(table),
            }
        };
        read().map_err(ResultsError::hdf5(&self.path, format!("read the table {name:?}")))
    }

    /// A table, or `None` if there is no table of this name.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn find_table(&self, name: &str) -> Result<Option<Table>> {
        if self.tables()?.iter().any(|table| table == name) { self.table(name).map(Some) } else { Ok(None) }
    }

    /// Whether there are draws of a posterior: runs of optimizers have none.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn has_posterior(&self) -> Result<bool> {
        Ok(self.sample_groups()?.iter().any(|group| group == POSTERIOR))
    }

    /// A group of arrays, or `None` if there is no such group.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn grid(&self, name: &str) -> Result<Option<Grid>> {
        if let Some(grid) = self.added.iter().flatten().find(|grid| grid.group == name) {
            return Ok(Some(grid.clone()));
        }
        if !self.has(name) {
            return Ok(None);
        }
        let read = || Grid::read(&self.file.group(name)?, name);
        read().map(Some).map_err(ResultsError::hdf5(&self.path, format!("read the arrays {name:?}")))
    }

    /// The shape of a group of draws: chains, draws of each chain, variables.
    ///
    /// # Errors
    /// When there is no such group, or it cannot be read.
    pub fn shape(&self, group: &str) -> Result<(usize, usize, Vec<Part>)> {
        let read = || -> hdf5::Result<(usize, usize, Vec<Part>)> {
            let at = self.file.group(group)?;
            let (chains, draws) = (at.dataset("chain")?.size(), at.dataset("draw")?.size());
            let parts = hdf::distinct(hdf::read_names_attribute(&at, "parts")?)?
                .into_iter()
                .map(|name| {
                    let shape = at.dataset(&name)?.shape();
                    match shape.as_slice() {
                        [c, d, own @ ..] if (*c, *d) == (chains, draws) => {
                            let dimensions = part_dimensions(&name, own.len());
                            let labels = dimensions.iter().map(|dimension| netcdf::names_along(&at, dimension));
                            Ok(Part { labels: labels.collect::<hdf5::Result<_>>()?, ..Part::new(name, own) })
                        }
                        _ => Err(hdf5::Error::Internal(format!("{name} has shape {shape:?}, not {chains} × {draws} × ..."))),
                    }
                })
                .collect::<hdf5::Result<_>>()?;
            Ok((chains, draws, parts))
        };
        read().map_err(ResultsError::hdf5(&self.path, format!("read the draws of {group:?}")))
    }

    /// The draws of a group.
    ///
    /// # Errors
    /// When there is no such group, or it cannot be read.
    pub fn samples(&self, group: &str) -> Result<Samples> {
        let (chains, draws, parts) = self.shape(group)?;
        let read = || -> hdf5::Result<Values> {
            let at = self.file.group(group)?;
            let kind = match parts.first() {
                Some(part) => at.dataset(&part.name)?.dtype()?,
                None => return Ok(Values::F64(Array3::zeros((chains, draws, 0)))),
            };
            if kind.is::<f32>() {
                read_parts(&at, chains, draws, &parts).map(Values::F32)
            } else if kind.is::<f64>() {
                read_parts(&at, chains, draws, &parts).map(Values::F64)
            } else {
                read_parts(&at, chains, draws, &parts).map(Values::I32)
            }
        };
        let values = read().map_err(ResultsError::hdf5(&self.path, format!("read the draws of {group:?}")))?;
        Ok(Samples { group: group.to_owned(), kind: self.kind(group)?, parts, values })
    }
}

/// Whether a description or a table has another digest than the one that is stored with it. Earlier versions stored none.
fn is_damaged(at: &Group, digest: impl FnOnce() -> String) -> bool {
    at.attr(DIGEST).is_ok() && hdf::read_text(at, DIGEST).is_ok_and(|stored| stored != digest())
}

pub(super) fn read_parts<T: Number + H5Type>(
    group: &Group,
    chains: usize,
    draws: usize,
    parts: &[Part],
) -> hdf5::Result<Array3<T>> {
    let internal = |error: ndarray::ShapeError| hdf5::Error::Internal(error.to_string());
    let arrays = parts
        .iter()
        .map(|part| {
            let numbers: Vec<T> = group.dataset(&part.name)?.read_raw()?;
            Array3::from_shape_vec(Ix3(chains, draws, part.size()), numbers).map_err(internal)
        })
        .collect::<hdf5::Result<Vec<_>>>()?;
    let views: Vec<_> = arrays.iter().map(|array| array.view()).collect();
    concatenate(Axis(2), &views).map_err(internal)
}
