//! Writing the file of a run: changed in a copy, which then takes the place of the old one in a single step.

use super::draws::{self, part_dimensions};
use super::error::{Result, ResultsError};
use super::grid::Grid;
use super::samples::{SampleGroup, Samples, Values};
use super::table::Table;
use super::{FORMAT, LIBRARY, RunInfo, RunState, VERSION, netcdf};
use crate::cluster::record::{Draws, Extents, Row};
use crate::data::hdf;
use crate::number::Number;
use crate::partial::PartialFile;
use hdf5::Group;
use ndarray::ArrayView3;
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

/// The file of a run that goes on. At every moment there is a whole file, with all draws and rows of the last [`RunWriter::write`]:
/// who has it open keeps what was there then, and a job that is killed leaves what was written last.
pub struct RunWriter {
    path: PathBuf,
    info: RunInfo,
    groups: Vec<SampleGroup>,
    /// What the file holds that may stay.
    extents: Extents,
    /// Whether this value has written the file, rather than a job before it.
    is_mine: bool,
    /// Draws that are not in the file yet.
    pending: Vec<Draws>,
    /// Bytes that these take.
    pending_bytes: usize,
    /// Arrays, which do not change.
    grids: Vec<Grid>,
}

impl RunWriter {
    /// The file at `path`, of which the draws up to `extents` may stay; these groups of draws may come.
    ///
    /// # Errors
    /// When names do not make a netCDF-4 file, or draws that should be there are not.
    pub fn new(path: &Path, info: RunInfo, groups: Vec<SampleGroup>, extents: Extents) -> Result<Self> {
        check_groups(&groups)?;
        if !extents.is_empty() && !path.exists() {
            let what =
                "this file held the draws before the checkpoint, and is gone: give it back, or delete the folder to begin anew";
            return Err(ResultsError::Content { path: path.to_path_buf(), what: what.into() });
        }
        Ok(Self {
            path: path.to_path_buf(),
            info,
            groups,
            extents,
            is_mine: false,
            pending: Vec::new(),
            pending_bytes: 0,
            grids: Vec::new(),
        })
    }

    /// Takes draws that the next [`RunWriter::write`] shall put into the file.
    pub fn push(&mut self, draws: Draws) {
        self.pending_bytes += bytes_of(&draws);
        self.pending.push(draws);
    }

    /// Takes arrays that the next [`RunWriter::write`] shall put into the file; those of a group that is there stay.
    pub fn push_grid(&mut self, grid: Grid) {
        self.grids.push(grid);
    }

    /// Bytes that draws take that are not in the file yet.
    pub fn pending(&self) -> usize {
        self.pending_bytes
    }

    /// Draws in the file.
    pub fn extents(&self) -> &Extents {
        &self.extents
    }

    /// Writes all draws that follow on those in the file, and these rows in place of those in the file. Draws of a chain that travels
    /// may come out of order: what lacks its predecessors waits for them.
    ///
    /// # Errors
    /// When a block of draws is not what was announced, rows do not make a netCDF-4 file, or the file cannot be written; it is then as
    /// it was before, and the draws are still pending.
    pub fn write(&mut self, rows: &[Row], state: RunState) -> Result<()> {
        self.write_with(rows, state, None::<std::iter::Empty<_>>)
    }

    /// The same with the run at rest, where every draw must find its place, and behind them these draws, those of each chain in order,
    /// of which only some are in memory at a time.
    ///
    /// # Errors
    /// As those of [`RunWriter::write`]; and when a draw lacks its predecessors.
    pub fn write_at_rest(&mut self, rows: &[Row], state: RunState, more: impl Iterator<Item = Result<Draws>>) -> Result<()> {
        self.write_with(rows, state, Some(more))
    }

    fn write_with(&mut self, rows: &[Row], state: RunState, more: Option<impl Iterator<Item = Result<Draws>>>) -> Result<()> {
        let tables = Table::collect(rows);
        check_tables(&self.groups, &tables)?;
        self.pending.sort_by(|a, b| (&a.group, a.chain, a.first).cmp(&(&b.group, b.chain, b.first)));
        let mut extents = self.extents.clone();
        let (mut ready, mut early) = (Vec::new(), Vec::new());
        for block in &self.pending {
            if extents.of(&block.group, block.chain) < block.first {
                early.push(block);
            } else {
                draws::count(&mut extents, block, &self.groups)?;
                ready.push(block);
            }
        }
        if let (Some(_), Some(block)) = (&more, early.first()) {
            return Err(ResultsError::Shape(format!(
                "the draws of {:?}: chain {} has a gap before draw {}",
                block.group, block.chain, block.first
            )));
        }
        let partial = PartialFile::new(&self.path);
        let file = self.copy(&partial)?;
        self.info.state = state;
        write_info(&file, &self.info).map_err(ResultsError::hdf5(&self.path, "write the description"))?;
        let append = |ready: &[&Draws], extents: &Extents| {
            self.groups.iter().try_for_each(|group| {
                let failed = ResultsError::hdf5(&self.path, format!("write the draws of {:?}", group.name));
                draws::append(&file, group, ready, extents, |at| write_origin(at, &self.info)).map_err(failed)
            })
        };
        append(&ready, &extents)?;
        let mut more = more.into_iter().flatten();
        loop {
            let mut some = Vec::new();
            let mut bytes = 0;
            while bytes < SOME_BYTES
                && let Some(block) = more.next().transpose()?
            {
                draws::count(&mut extents, &block, &self.groups)?;
                bytes += bytes_of(&block);
                some.push(block);
            }
            if some.is_empty() {
                break;
            }
            append(&some.iter().collect::<Vec<_>>(), &extents)?;
        }
        for (name, table) in &tables {
            let failed = ResultsError::hdf5(&self.path, format!("write the table {name:?}"));
            write_table(&file, &self.info, name, table).map_err(failed)?;
        }
        for grid in self.grids.iter().filter(|grid| !file.link_exists(&grid.group)) {
            let write = || {
                let group = file.create_group(&grid.group)?;
                write_origin(&group, &self.info)?;
                grid.write(&group)
            };
            write().map_err(ResultsError::hdf5(&self.path, format!("write the arrays {:?}", grid.group)))?;
        }
        file.flush().and_then(|()| file.close()).map_err(ResultsError::hdf5(&self.path, "close"))?;
        partial.commit().map_err(ResultsError::io(&self.path, "finish"))?;
        self.pending = early.into_iter().cloned().collect();
        self.pending_bytes = self.pending.iter().map(bytes_of).sum();
        (self.extents, self.is_mine) = (extents, true);
        Ok(())
    }

    /// The file that shall take the place of the one that is there: a copy of what of it may stay, or a new one.
    fn copy(&self, partial: &PartialFile) -> Result<hdf5::File> {
        let path = &self.path;
        if self.extents.is_empty() {
            // HDF5's own messages for a missing folder or a full disk run over many lines.
            std::fs::File::create(partial.path()).map_err(ResultsError::io(partial.path(), "create"))?;
            return hdf::create(partial.path()).map_err(ResultsError::hdf5(path, "create"));
        }
        std::fs::copy(path, partial.path()).map_err(ResultsError::io(path, "copy"))?;
        let file = hdf::open_rw(partial.path()).map_err(ResultsError::hdf5(path, "open"))?;
        if !self.is_mine {
            for group in &self.groups {
                draws::cut(&file, group, &self.extents)
                    .map_err(ResultsError::hdf5(path, format!("cut the draws of {:?}", group.name)))?;
            }
        }
        Ok(file)
    }
}

/// Draws that come from elsewhere are written when there are so many bytes of them.
const SOME_BYTES: usize = 64 << 20;

/// Bytes that a block takes in memory, its names included.
fn bytes_of(block: &Draws) -> usize {
    size_of::<Draws>() + block.group.len() + block.kind.len() + block.bytes.len()
}

/// Writes the file of a run that is over, with all its draws.
///
/// # Errors
/// When names or shapes do not make a netCDF-4 file, or the file cannot be written; an older file is then untouched.
pub fn write_run(path: &Path, info: &RunInfo, samples: &[Samples], rows: &[Row]) -> Result<()> {
    let group = |samples: &Samples| SampleGroup { name: samples.group.clone(), parts: samples.parts.clone(), kind: samples.kind };
    let mut writer = RunWriter::new(path, info.clone(), samples.iter().map(group).collect(), Extents::default())?;
    for samples in samples {
        match &samples.values {
            Values::F32(values) => push_chains(&mut writer, &samples.group, values.view()),
            Values::F64(values) => push_chains(&mut writer, &samples.group, values.view()),
            Values::I32(values) => push_chains(&mut writer, &samples.group, values.view()),
        }
    }
    writer.write_at_rest(rows, info.state, std::iter::empty())
}

fn push_chains<T: Number>(writer: &mut RunWriter, group: &str, values: ArrayView3<T>) {
    for (chain, draws) in (0..).zip(values.outer_iter()) {
        let numbers: Vec<T> = draws.iter().copied().collect();
        let bytes = bytemuck::cast_slice(&numbers).to_vec();
        let (group, kind, dim) = (group.to_owned(), T::NAME.to_owned(), draws.ncols() as u64);
        writer.push(Draws { group, chain, first: 0, dim, kind, bytes });
    }
}

/// Refuses names that netCDF-4 cannot have, and names that clash.
fn check_groups(groups: &[SampleGroup]) -> Result<()> {
    check_distinct_groups(groups.iter().map(|group| &group.name))?;
    for group in groups {
        let dimensions = group.parts.iter().flat_map(|part| part_dimensions(&part.name, part.shape.len()));
        let names = group.parts.iter().map(|part| part.name.clone());
        check_distinct(&group.name, ["chain".to_owned(), "draw".to_owned()].into_iter().chain(names).chain(dimensions))?;
    }
    Ok(())
}

fn check_tables(groups: &[SampleGroup], tables: &BTreeMap<String, Table>) -> Result<()> {
    check_distinct_groups(groups.iter().map(|group| &group.name).chain(tables.keys()))?;
    for (name, table) in tables {
        let columns = table.columns.iter().map(|column| column.0.clone());
        check_distinct(name, ["row", "step", "agent"].map(str::to_owned).into_iter().chain(columns))?;
    }
    Ok(())
}

fn check_distinct_groups<'a>(names: impl Iterator<Item = &'a String>) -> Result<()> {
    let mut groups = HashSet::new();
    for name in names {
        check_name(name)?;
        if !groups.insert(name) {
            return Err(ResultsError::Shape(format!("two groups of the result file would be called {name:?}")));
        }
    }
    Ok(())
}

fn check_name(name: &str) -> Result<()> {
    let starts_well = name.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '_');
    if starts_well && name.len() < 200 && name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'/') {
        return Ok(());
    }
    Err(ResultsError::Shape(format!("{name:?} cannot be a name in the result file: use letters, digits and underscores")))
}

fn check_distinct(group: &str, names: impl Iterator<Item = String>) -> Result<()> {
    let mut seen = HashSet::new();
    for name in names {
        check_name(&name)?;
        if seen.contains(&name) {
            return Err(ResultsError::Shape(format!("two variables or dimensions of {group:?} would be called {name:?}")));
        }
        seen.insert(name);
    }
    Ok(())
}

fn write_info(file: &Group, info: &RunInfo) -> hdf5::Result<()> {
    hdf::write_text(file, "format", FORMAT)?;
    hdf::write_scalar(file, "format_version", &VERSION)?;
    write_origin(file, info)?;
    hdf::write_text(file, "method", &info.method)?;
    hdf::write_text(file, "model", &info.model)?;
    hdf::write_scalar(file, "seed", &info.seed)?;
    hdf::write_text(file, "data_digest", &info.data_digest)?;
    hdf::write_text(file, "config", &info.config)?;
    let RunState { finished, done, total, seconds } = info.state;
    hdf::write_scalar(file, "finished", &u8::from(finished))?;
    hdf::write_scalar(file, "progress_done", &done)?;
    hdf::write_scalar(file, "progress_total", &total)?;
    hdf::write_scalar(file, "sampling_time", &seconds)
}

/// The attributes that InferenceData wants of every group.
fn write_origin(group: &Group, info: &RunInfo) -> hdf5::Result<()> {
    hdf::write_text(group, "created_at", &info.created_at)?;
    hdf::write_text(group, "inference_library", LIBRARY)?;
    hdf::write_text(group, "inference_library_version", &info.version)
}

fn write_table(file: &Group, info: &RunInfo, name: &str, table: &Table) -> hdf5::Result<()> {
    let group = match file.link_exists(name) {
        true => file.group(name)?,
        false => {
            let group = file.create_group(name)?;
            write_origin(&group, info)?;
            netcdf::unlimited_dimension(&group, "row")?;
            group
        }
    };
    let names: Vec<String> = table.columns.iter().map(|column| column.0.clone()).collect();
    hdf::write_text(&group, "columns", &names.join(" "))?;
    netcdf::set_length(&group, "row", table.rows())?;
    let agents: Vec<i64> = table.agent.iter().map(|agent| agent.map_or(-1, i64::from)).collect();
    netcdf::write_column(&group, "step", "row", &table.step)?;
    netcdf::write_column(&group, "agent", "row", &agents)?;
    for (name, values) in &table.columns {
        netcdf::write_column(&group, name, "row", values)?;
    }
    Ok(())
}
