//! Writing a result file: changes are made in a copy, which then atomically replaces the file.

use super::draws::{self, part_dimensions};
use super::error::{REMEDY, Result, ResultsError, system_error};
use super::events::{self, Event};
use super::grid::Grid;
use super::info::{DIGEST, LIBRARY, RunInfo, RunState, VERSION};
use super::merged_blocks::MergedBlocks;
use super::netcdf;
use super::read::ResultFile;
use super::samples::{SampleGroup, Samples, Values};
use super::table::Table;
use super::whole::{check_draws, check_lengths};
use crate::cluster::record::{DrawBlock, Extents, Row};
use crate::data::hdf;
use crate::data::self_contained::Refusal;
use crate::number::Number;
use crate::partial::PartialFile;
use hdf5::Group;
use ndarray::{ArrayView2, ArrayView3};
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

/// The result file of a run in progress. From the first [`RunWriter::write`] on, the file on disk is always complete: a reader that has it open
/// keeps its version, and a job that is killed leaves the last one.
pub struct RunWriter {
    path: PathBuf,
    info: RunInfo,
    groups: Vec<SampleGroup>,
    /// The draws in the file that are kept.
    extents: Extents,
    /// Whether this writer wrote the file on disk, not an earlier job.
    written_by_this_writer: bool,
    /// Draws that are not yet in the file.
    pending: Vec<DrawBlock>,
    /// The bytes of these draws.
    pending_bytes: usize,
    /// Arrays, which are written once.
    grids: Vec<Grid>,
    /// Groups of arrays that lie in files of their own, and these files.
    large_grids: Vec<(String, PartialFile)>,
}

impl RunWriter {
    /// The file at `path` with these groups of draws; existing draws up to `extents` are kept.
    ///
    /// # Errors
    /// When a name is invalid in netCDF-4, or draws up to `extents` are missing or damaged.
    pub fn new(path: &Path, info: RunInfo, groups: Vec<SampleGroup>, extents: Extents) -> Result<Self> {
        check_groups(&groups)?;
        if !extents.is_empty() && !path.exists() {
            let what = format!("this file with the draws before the checkpoint is missing: {REMEDY}");
            return Err(ResultsError::Content { path: path.to_path_buf(), what });
        }
        if !extents.is_empty() {
            check_draws(path, &groups, &extents)?;
        }
        Ok(Self {
            path: path.to_path_buf(),
            info,
            groups,
            extents,
            written_by_this_writer: false,
            pending: Vec::new(),
            pending_bytes: 0,
            grids: Vec::new(),
            large_grids: Vec::new(),
        })
    }

    /// Describes the job that writes, and what happened to the run, from the next [`RunWriter::write`] on.
    pub fn describe_job(&mut self, hosts: Vec<String>, events: Vec<Event>) {
        (self.info.hosts, self.info.events) = (hosts, events);
    }

    /// Adds draws for the next [`RunWriter::write`].
    pub fn push(&mut self, draws: DrawBlock) {
        self.pending_bytes += bytes_of(&draws);
        self.pending.push(draws);
    }

    /// Adds all draws of a chain, as rows.
    pub fn push_chain<T: Number>(&mut self, group: &str, chain: u32, draws: ArrayView2<T>) {
        let numbers: Vec<T> = draws.iter().copied().collect();
        let bytes = bytemuck::cast_slice(&numbers).to_vec();
        let (group, kind, dim) = (group.to_owned(), T::NAME.to_owned(), draws.ncols() as u64);
        self.push(DrawBlock { group, chain, first: 0, dim, kind, bytes });
    }

    /// Adds arrays for the next [`RunWriter::write`]; an existing group is not changed.
    pub fn push_grid(&mut self, grid: Grid) {
        self.grids.push(grid);
    }

    /// Adds a group of arrays, which are copied from a file of [`super::GridFile`]; see [`RunWriter::push_grid`].
    pub fn push_large_grid(&mut self, group: &str, file: PartialFile) {
        self.large_grids.push((group.to_owned(), file));
    }

    /// The bytes of draws that are not yet in the file.
    pub fn pending(&self) -> usize {
        self.pending_bytes
    }

    /// If an error of the HDF5 library comes from damage to the kept draws, that damage; otherwise the error itself, such as a full disk.
    pub(super) fn cause_of(&self, error: ResultsError) -> ResultsError {
        match error {
            ResultsError::Hdf5 { ref source, .. } if !self.extents.is_empty() && system_error(source).is_none() => {
                let checked = check_draws(&self.path, &self.groups, &self.extents);
                checked.err().filter(|damage| !damage.may_be_temporary()).unwrap_or(error)
            }
            _ => error,
        }
    }

    /// The number of draws in the file, by group and chain.
    pub fn extents(&self) -> &Extents {
        &self.extents
    }

    /// Appends all pending draws, and replaces the tables by these rows. Draws of a chain that moves between ranks can arrive out of order;
    /// they wait until their predecessors have arrived.
    ///
    /// # Errors
    /// When a block does not match its group, a name is invalid in netCDF-4, or the file cannot be written. The file is then unchanged, and
    /// the draws stay pending.
    pub fn write(&mut self, rows: &[Row], state: RunState) -> Result<()> {
        self.write_if(rows, state, &|| Ok(()))
    }

    /// The same, unless `check` fails right before the file is replaced.
    ///
    /// # Errors
    /// As for [`RunWriter::write`], and the error of `check`.
    pub fn write_if(&mut self, rows: &[Row], state: RunState, check: &dyn Fn() -> Result<()>) -> Result<()> {
        self.write_with(rows, state, None::<std::iter::Empty<_>>, check)
    }

    /// The same at a checkpoint, when all draws must have their predecessors. `more` are further draws, those of each chain in
    /// order, which are read as they are written and need not fit into memory. Pending draws that follow some of them are put in between.
    ///
    /// # Errors
    /// As for [`RunWriter::write`], and when a draw lacks its predecessors.
    pub fn write_complete(&mut self, rows: &[Row], state: RunState, more: impl Iterator<Item = Result<DrawBlock>>) -> Result<()> {
        self.write_complete_if(rows, state, more, &|| Ok(()))
    }

    /// The same, unless `check` fails right before the file is replaced.
    ///
    /// # Errors
    /// As for [`RunWriter::write_complete`], and the error of `check`.
    pub fn write_complete_if(
        &mut self,
        rows: &[Row],
        state: RunState,
        more: impl Iterator<Item = Result<DrawBlock>>,
        check: &dyn Fn() -> Result<()>,
    ) -> Result<()> {
        self.write_with(rows, state, Some(more), check)
    }

    fn write_with(
        &mut self,
        rows: &[Row],
        state: RunState,
        more: Option<impl Iterator<Item = Result<DrawBlock>>>,
        check: &dyn Fn() -> Result<()>,
    ) -> Result<()> {
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
        let partial = PartialFile::new(&self.path);
        let file = self.begin_partial(&partial)?;
        self.info.state = state;
        write_info(&file, &self.info).map_err(ResultsError::hdf5(&self.path, "write the description"))?;
        let append = |ready: &[&DrawBlock], extents: &Extents| {
            self.groups.iter().try_for_each(|group| {
                let failed = ResultsError::hdf5(&self.path, format!("write the draws of {:?}", group.name));
                draws::append(&file, group, ready, extents, |at| write_origin(at, &self.info)).map_err(failed)
            })
        };
        append(&ready, &extents)?;
        if let Some(more) = more {
            let mut more = MergedBlocks::new(std::mem::take(&mut early), more);
            loop {
                let (mut batch, mut bytes) = (Vec::new(), 0);
                while bytes < BATCH_BYTES
                    && let Some(block) = more.next(&extents)?
                {
                    draws::count(&mut extents, &block, &self.groups)?;
                    bytes += bytes_of(&block);
                    batch.push(block);
                }
                if batch.is_empty() {
                    break;
                }
                append(&batch.iter().collect::<Vec<_>>(), &extents)?;
            }
            more.check_end()?;
        }
        for (name, table) in &tables {
            let failed = ResultsError::hdf5(&self.path, format!("write the table {name:?}"));
            write_table(&file, &self.info, name, table).map_err(failed)?;
        }
        let write_arrays = |name: &str, write: &dyn Fn(&Group) -> hdf5::Result<()>| {
            if file.link_exists(name) {
                return Ok(());
            }
            let group = file.create_group(name).and_then(|group| write_origin(&group, &self.info).map(|()| group));
            group.and_then(|group| write(&group)).map_err(ResultsError::hdf5(&self.path, format!("write the arrays {name:?}")))
        };
        self.grids.iter().try_for_each(|grid| write_arrays(&grid.group, &|group| grid.write(group)))?;
        self.large_grids.iter().try_for_each(|(name, from)| write_arrays(name, &|group| Grid::copy_file(from.path(), group)))?;
        file.flush().and_then(|()| file.close()).map_err(ResultsError::hdf5(&self.path, "close"))?;
        check()?;
        partial.commit().map_err(ResultsError::io(&self.path, "finish"))?;
        self.pending = early.into_iter().cloned().collect();
        self.pending_bytes = self.pending.iter().map(bytes_of).sum();
        (self.extents, self.written_by_this_writer) = (extents, true);
        Ok(())
    }

    /// The file to change: a copy of the last one that this writer wrote, or a new one with only the kept draws.
    fn begin_partial(&self, partial: &PartialFile) -> Result<hdf5::File> {
        let path = &self.path;
        let open_failed = |refusal| match refusal {
            Refusal::NotSelfContained(what) => ResultsError::Content { path: path.clone(), what },
            Refusal::Unreadable(cause) | Refusal::Unchecked(cause) => ResultsError::hdf5(path, "open")(cause),
        };
        if self.written_by_this_writer && !self.extents.is_empty() {
            check_lengths(&ResultFile::open(path)?, &self.groups, &self.extents)?;
            std::fs::copy(path, partial.path()).map_err(ResultsError::io(path, "copy"))?;
            return hdf::open_rw(partial.path()).map_err(open_failed);
        }
        // HDF5 reports a missing folder or a full disk in many lines.
        std::fs::File::create(partial.path()).map_err(ResultsError::io(partial.path(), "create"))?;
        let file = hdf::create(partial.path()).map_err(ResultsError::hdf5(path, "create"))?;
        if !self.extents.is_empty() {
            // Of the file of an earlier job, nothing else is kept: not its draws after the checkpoint, nor the arrays of its end if the run is made
            // longer, nor damage outside of the draws.
            let before = hdf::open(path).map_err(open_failed)?;
            for group in &self.groups {
                draws::copy(&before, &file, group, &self.extents, |at| write_origin(at, &self.info))
                    .map_err(ResultsError::hdf5(path, format!("copy the draws of {:?}", group.name)))?;
            }
        }
        Ok(file)
    }
}

/// The bytes of `more` draws that are written at a time.
const BATCH_BYTES: usize = 64 << 20;

/// The bytes of a block in memory, including its names.
pub(super) fn bytes_of(block: &DrawBlock) -> usize {
    size_of::<DrawBlock>() + block.group.len() + block.kind.len() + block.bytes.len()
}

/// Writes the result file of a finished run.
///
/// # Errors
/// When names or shapes are invalid in netCDF-4, or the file cannot be written; an existing file is then unchanged.
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
    writer.write_complete(rows, info.state, std::iter::empty())
}

fn push_chains<T: Number>(writer: &mut RunWriter, group: &str, values: ArrayView3<T>) {
    (0..).zip(values.outer_iter()).for_each(|(chain, draws)| writer.push_chain(group, chain, draws));
}

/// Checks that all names are valid in netCDF-4 and distinct.
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
            return Err(ResultsError::Shape(format!("the result file would have two groups {name:?}")));
        }
    }
    Ok(())
}

fn check_name(name: &str) -> Result<()> {
    let starts_well = name.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '_');
    if starts_well && name.len() < 200 && name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'/') {
        return Ok(());
    }
    Err(ResultsError::Shape(format!(
        "{name:?} is not a valid name in the result file: use at most 199 letters, digits and underscores"
    )))
}

fn check_distinct(group: &str, names: impl Iterator<Item = String>) -> Result<()> {
    let mut seen = HashSet::new();
    for name in names {
        check_name(&name)?;
        if seen.contains(&name) {
            return Err(ResultsError::Shape(format!("the group {group:?} would have two variables or dimensions {name:?}")));
        }
        seen.insert(name);
    }
    Ok(())
}

fn write_info(file: &Group, info: &RunInfo) -> hdf5::Result<()> {
    hdf::write_text(file, "format", hdf::RESULT_FORMAT)?;
    hdf::write_scalar(file, "format_version", &VERSION)?;
    write_origin(file, info)?;
    hdf::write_text(file, "method", &info.method)?;
    hdf::write_text(file, "model", &info.model)?;
    hdf::write_scalar(file, "seed", &info.seed)?;
    hdf::write_text(file, "data_digest", &info.data_digest)?;
    hdf::write_text(file, "config", &info.config)?;
    hdf::write_text(file, DIGEST, &info.digest())?;
    let RunState { finished, done, total, seconds } = info.state;
    hdf::write_scalar(file, "finished", &u8::from(finished))?;
    hdf::write_scalar(file, "progress_done", &done)?;
    hdf::write_scalar(file, "progress_total", &total)?;
    hdf::write_scalar(file, "sampling_time", &seconds)?;
    hdf::write_text(file, "hosts", &info.hosts.join("\n"))?;
    hdf::write_text(file, "events", &events::to_lines(&info.events))
}

/// Writes the attributes that InferenceData requires in every group.
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
    hdf::write_text(&group, DIGEST, &table.digest())?;
    netcdf::set_length(&group, "row", table.rows())?;
    let agents: Vec<i64> = table.agent.iter().map(|agent| agent.map_or(-1, i64::from)).collect();
    netcdf::write_column(&group, "step", "row", &table.step)?;
    netcdf::write_column(&group, "agent", "row", &agents)?;
    for (name, values) in &table.columns {
        netcdf::write_column(&group, name, "row", values)?;
    }
    Ok(())
}
