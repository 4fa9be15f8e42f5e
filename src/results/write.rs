//! Writing the file of a run: beside the old one, then renamed over it.

use super::error::{Result, ResultsError};
use super::samples::{Samples, Values};
use super::table::Table;
use super::{FORMAT, LIBRARY, RunInfo, RunState, VERSION, netcdf};
use crate::cluster::record::Row;
use crate::data::hdf;
use crate::number::Number;
use crate::partial::PartialFile;
use hdf5::{Group, H5Type};
use ndarray::{ArrayView1, ArrayView3, IxDyn, s};
use std::collections::HashSet;
use std::path::Path;

/// Writes the file of a run, replacing an older one in a single step: at every moment there is a whole file, the old or the new
/// one.
///
/// # Errors
/// When names or shapes do not make a netCDF-4 file, or the file cannot be written; the older file is then untouched.
pub fn write_run(path: &Path, info: &RunInfo, samples: &[Samples], rows: &[Row]) -> Result<()> {
    let tables = Table::collect(rows);
    check(samples, &tables)?;
    let partial = PartialFile::new(path);
    // HDF5's own messages for a missing folder or a full disk run over many lines.
    std::fs::File::create(partial.path()).map_err(ResultsError::io(partial.path(), "create"))?;
    let file = hdf::create(partial.path()).map_err(ResultsError::hdf5(path, "create"))?;
    write_info(&file, info).map_err(ResultsError::hdf5(path, "write the description"))?;
    for samples in samples {
        let failed = ResultsError::hdf5(path, format!("write the draws of {:?}", samples.group));
        write_samples(&file, info, samples).map_err(failed)?;
    }
    for (name, table) in &tables {
        write_table(&file, info, name, table).map_err(ResultsError::hdf5(path, format!("write the table {name:?}")))?;
    }
    file.flush().and_then(|()| file.close()).map_err(ResultsError::hdf5(path, "close"))?;
    partial.commit().map_err(ResultsError::io(path, "finish"))
}

/// Refuses names that netCDF-4 cannot have, and names and shapes that clash.
fn check(samples: &[Samples], tables: &std::collections::BTreeMap<String, Table>) -> Result<()> {
    let mut groups = HashSet::new();
    for name in samples.iter().map(|samples| &samples.group).chain(tables.keys()) {
        check_name(name)?;
        if !groups.insert(name) {
            return Err(ResultsError::Shape(format!("two groups of the result file would be called {name:?}")));
        }
    }
    for samples in samples {
        let (_, _, dim) = samples.values.dim();
        let parts: usize = samples.parts.iter().map(crate::models::Part::size).sum();
        if parts != dim {
            let group = &samples.group;
            return Err(ResultsError::Shape(format!("the parts of {group:?} have {parts} numbers, its draws {dim}")));
        }
        let dimensions = samples.parts.iter().flat_map(|part| part_dimensions(&part.name, part.shape.len()));
        let names = samples.parts.iter().map(|part| part.name.clone());
        check_distinct(&samples.group, ["chain".to_owned(), "draw".to_owned()].into_iter().chain(names).chain(dimensions))?;
    }
    for (name, table) in tables {
        let columns = table.columns.iter().map(|column| column.0.clone());
        check_distinct(name, ["row", "step", "agent"].map(str::to_owned).into_iter().chain(columns))?;
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

/// The names of a part's own dimensions, as ArviZ calls them.
fn part_dimensions(part: &str, rank: usize) -> Vec<String> {
    (0..rank).map(|axis| format!("{part}_dim_{axis}")).collect()
}

fn write_info(file: &Group, info: &RunInfo) -> hdf5::Result<()> {
    hdf::write_text(file, "format", FORMAT)?;
    file.new_attr::<u32>().create("format_version")?.write_scalar(&VERSION)?;
    write_origin(file, info)?;
    hdf::write_text(file, "method", &info.method)?;
    hdf::write_text(file, "model", &info.model)?;
    file.new_attr::<u64>().create("seed")?.write_scalar(&info.seed)?;
    hdf::write_text(file, "data_digest", &info.data_digest)?;
    hdf::write_text(file, "config", &info.config)?;
    let RunState { finished, done, total, seconds } = info.state;
    file.new_attr::<u8>().create("finished")?.write_scalar(&u8::from(finished))?;
    file.new_attr::<u64>().create("progress_done")?.write_scalar(&done)?;
    file.new_attr::<u64>().create("progress_total")?.write_scalar(&total)?;
    file.new_attr::<f64>().create("sampling_time")?.write_scalar(&seconds)
}

/// The attributes that InferenceData wants of every group.
fn write_origin(group: &Group, info: &RunInfo) -> hdf5::Result<()> {
    hdf::write_text(group, "created_at", &info.created_at)?;
    hdf::write_text(group, "inference_library", LIBRARY)?;
    hdf::write_text(group, "inference_library_version", &info.version)
}

fn write_samples(file: &Group, info: &RunInfo, samples: &Samples) -> hdf5::Result<()> {
    let group = file.create_group(&samples.group)?;
    write_origin(&group, info)?;
    let names: Vec<String> = samples.parts.iter().map(|part| part.name.clone()).collect();
    hdf::write_names_attribute(&group, "parts", &names)?;
    hdf::write_text(&group, "draws", samples.kind.name())?;
    let (chains, draws, _) = samples.values.dim();
    netcdf::dimension(&group, "chain", chains)?;
    netcdf::dimension(&group, "draw", draws)?;
    match &samples.values {
        Values::F32(values) => write_parts(&group, samples, values.view()),
        Values::F64(values) => write_parts(&group, samples, values.view()),
        Values::I32(values) => write_parts(&group, samples, values.view()),
    }
}

fn write_parts<T: Number + H5Type>(group: &Group, samples: &Samples, values: ArrayView3<T>) -> hdf5::Result<()> {
    let (chains, draws, _) = values.dim();
    let mut start = 0;
    for part in &samples.parts {
        let own = part_dimensions(&part.name, part.shape.len());
        for (name, &length) in own.iter().zip(&part.shape) {
            netcdf::dimension(group, name, length)?;
        }
        let dimensions: Vec<String> = ["chain", "draw"].map(str::to_owned).into_iter().chain(own).collect();
        let shape: Vec<usize> = [chains, draws].into_iter().chain(part.shape.iter().copied()).collect();
        let numbers: Vec<T> = values.slice(s![.., .., start..start + part.size()]).iter().copied().collect();
        let numbers =
            ndarray::ArrayView::from_shape(IxDyn(&shape), &numbers).map_err(|error| hdf5::Error::Internal(error.to_string()))?;
        netcdf::variable(group, &part.name, &dimensions, numbers)?;
        start += part.size();
    }
    Ok(())
}

fn write_table(file: &Group, info: &RunInfo, name: &str, table: &Table) -> hdf5::Result<()> {
    let group = file.create_group(name)?;
    write_origin(&group, info)?;
    let names: Vec<String> = table.columns.iter().map(|column| column.0.clone()).collect();
    hdf::write_names_attribute(&group, "columns", &names)?;
    netcdf::dimension(&group, "row", table.rows())?;
    let row = ["row".to_owned()];
    let agents: Vec<i64> = table.agent.iter().map(|agent| agent.map_or(-1, i64::from)).collect();
    netcdf::variable(&group, "step", &row, ArrayView1::from(&table.step))?;
    netcdf::variable(&group, "agent", &row, ArrayView1::from(&agents))?;
    for (name, values) in &table.columns {
        netcdf::variable(&group, name, &row, ArrayView1::from(values))?;
    }
    Ok(())
}
