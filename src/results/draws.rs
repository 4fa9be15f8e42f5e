//! Groups of draws in a result file: blocks of draws are appended to their chains during the run.

use super::error::{Result, ResultsError};
use super::netcdf::{self, Cell};
use super::samples::{SampleGroup, SampleKind};
use crate::cluster::record::{DrawBlock, Extents};
use crate::data::hdf;
use crate::number::Number;
use hdf5::Group;
use ndarray::ArrayView;
use std::collections::BTreeMap;

/// The size of a chunk of a variable: at least this if draws are small, at most this unless a single draw is larger.
const CHUNK_BYTES: std::ops::RangeInclusive<usize> = 1 << 12..=netcdf::MAX_CHUNK_BYTES;
/// The statistic that ArviZ uses as an index, for which it must be a boolean.
const DIVERGING: &str = "diverging";
/// The attribute with the number of draws of each chain, which can differ during a run.
pub(super) const LENGTHS: &str = "draws_per_chain";

/// Adds a block to the number of draws of its chain.
///
/// # Errors
/// When the block is not made of whole draws of a known group, leaves a gap, or overlaps.
pub(super) fn count(extents: &mut Extents, block: &DrawBlock, groups: &[SampleGroup]) -> Result<()> {
    let invalid = |what: String| Err(ResultsError::Shape(format!("the draws of {:?}: {what}", block.group)));
    let Some(group) = groups.iter().find(|group| group.name == block.group) else {
        return invalid("no such group was declared".into());
    };
    let dim = group.size();
    let Some(size) = size_of_type(&block.kind) else {
        return invalid(format!("unknown number type {:?}", block.kind));
    };
    if usize::try_from(block.dim) != Ok(dim) {
        return invalid(format!("{} values in a draw, not {dim}", block.dim));
    }
    let (has, bytes) = (extents.of(&block.group, block.chain), (dim * size).max(1));
    if block.first != has || !block.bytes.len().is_multiple_of(bytes) {
        let (chain, first) = (block.chain, block.first);
        return invalid(format!(
            "chain {chain} has {has} draws; the block at draw {first} leaves a gap, overlaps or ends in half a draw"
        ));
    }
    extents.set(&block.group, block.chain, has + (block.bytes.len() / bytes) as u64);
    Ok(())
}

/// The number of draws of each chain of a group, as lengths in memory.
pub(super) fn lengths(extents: &Extents, group: &str) -> Vec<usize> {
    extents.lengths(group).into_iter().map(|length| usize::try_from(length).unwrap_or(usize::MAX)).collect()
}

/// The bytes of a number of this type.
fn size_of_type(kind: &str) -> Option<usize> {
    match kind {
        f32::NAME | i32::NAME => Some(4),
        f64::NAME => Some(8),
        _ => None,
    }
}

/// Copies the draws of a group up to these extents, those of a checkpoint, into a new file: later draws are computed again.
pub(super) fn copy(
    from: &hdf5::File,
    to: &hdf5::File,
    group: &SampleGroup,
    extents: &Extents,
    origin: impl Fn(&Group) -> hdf5::Result<()>,
) -> hdf5::Result<()> {
    let lengths = lengths(extents, &group.name);
    let Some(first) = group.parts.first().filter(|_| !lengths.is_empty()) else { return Ok(()) };
    let from = from.group(&group.name)?;
    let kind = from.dataset(&first.name)?.dtype()?;
    if kind.is::<f32>() {
        copy_as::<f32>(&from, to, group, &lengths, origin)
    } else if kind.is::<f64>() {
        copy_as::<f64>(&from, to, group, &lengths, origin)
    } else {
        copy_as::<i32>(&from, to, group, &lengths, origin)
    }
}

fn copy_as<T: Cell>(
    from: &Group,
    to: &hdf5::File,
    group: &SampleGroup,
    lengths: &[usize],
    origin: impl Fn(&Group) -> hdf5::Result<()>,
) -> hdf5::Result<()> {
    let (chains, draws) = (lengths.len(), lengths.iter().copied().max().unwrap_or(0));
    let at = create::<T>(to, group, draws)?;
    origin(&at)?;
    for part in &group.parts {
        let (before, data) = (from.dataset(&part.name)?, at.dataset(&part.name)?);
        let shape = [&[chains, draws], &part.shape[..]].concat();
        data.resize(shape.clone())?;
        netcdf::copy_blocks::<T>(&before, &data, &shape)?;
        for (chain, &length) in lengths.iter().enumerate().filter(|(_, length)| **length < draws) {
            blank::<T>(&data, [chain, length], &[&[1, draws - length], &part.shape[..]].concat())?;
        }
    }
    set_lengths(&at, lengths)
}

fn blank<T: Cell>(data: &hdf5::Dataset, [chain, draw]: [usize; 2], shape: &[usize]) -> hdf5::Result<()> {
    let blanks = ndarray::ArrayD::from_elem(shape, T::MISSING);
    netcdf::write_block(data, &position(chain, draw, shape.len()), blanks.view())
}

/// The position of a draw in a variable with this many axes.
fn position(chain: usize, draw: usize, axes: usize) -> Vec<usize> {
    [chain, draw].into_iter().chain(std::iter::repeat_n(0, axes - 2)).collect()
}

/// Appends blocks to a group, which is created if needed. `extents` are the numbers of draws afterwards.
pub(super) fn append(
    file: &hdf5::File,
    group: &SampleGroup,
    blocks: &[&DrawBlock],
    extents: &Extents,
    origin: impl Fn(&Group) -> hdf5::Result<()>,
) -> hdf5::Result<()> {
    let mut chains: BTreeMap<u32, Vec<&DrawBlock>> = BTreeMap::new();
    for &block in blocks.iter().filter(|block| block.group == group.name) {
        chains.entry(block.chain).or_default().push(block);
    }
    let Some(kind) = chains.values().flatten().next().map(|block| block.kind.as_str()) else { return Ok(()) };
    match kind {
        f32::NAME => append_as::<f32>(file, group, &chains, extents, origin),
        f64::NAME => append_as::<f64>(file, group, &chains, extents, origin),
        _ => append_as::<i32>(file, group, &chains, extents, origin),
    }
}

fn append_as<T: Cell>(
    file: &hdf5::File,
    group: &SampleGroup,
    chains: &BTreeMap<u32, Vec<&DrawBlock>>,
    extents: &Extents,
    origin: impl Fn(&Group) -> hdf5::Result<()>,
) -> hdf5::Result<()> {
    let lengths = lengths(extents, &group.name);
    let longest = lengths.iter().copied().max().unwrap_or(0);
    let at = match file.link_exists(&group.name) {
        true => file.group(&group.name)?,
        false => {
            let at = create::<T>(file, group, longest)?;
            origin(&at)?;
            at
        }
    };
    let dim = group.size();
    let mut start = 0;
    for part in &group.parts {
        let data = at.dataset(&part.name)?;
        data.resize([&[lengths.len(), longest], &part.shape[..]].concat())?;
        let own = start..start + part.size();
        for (&chain, blocks) in chains {
            // The blocks of a chain are consecutive, so one write is enough for all of them.
            let mut numbers: Vec<T> = Vec::new();
            for draw in blocks.iter().flat_map(|block| block.bytes.chunks_exact(dim * size_of::<T>())) {
                let bytes = &draw[own.start * size_of::<T>()..own.end * size_of::<T>()];
                numbers.extend(bytes.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned::<T>));
            }
            let (Some(first), draws) = (blocks.first(), numbers.len() / part.size().max(1)) else { continue };
            let internal = |what: String| hdf5::Error::Internal(what);
            let shape = [&[1, draws], &part.shape[..]].concat();
            let block = ArrayView::from_shape(shape.as_slice(), &numbers).map_err(|error| internal(error.to_string()))?;
            let first = usize::try_from(first.first).map_err(|error| internal(error.to_string()))?;
            netcdf::write_block(&data, &position(chain as usize, first, shape.len()), block.view())?;
        }
        start += part.size();
    }
    set_lengths(&at, &lengths)
}

/// Creates a group for `draws` draws, and perhaps more later.
fn create<T: Cell>(file: &hdf5::File, group: &SampleGroup, draws: usize) -> hdf5::Result<Group> {
    let at = file.create_group(&group.name)?;
    let names: Vec<String> = group.parts.iter().map(|part| part.name.clone()).collect();
    hdf::write_names_attribute(&at, "parts", &names)?;
    hdf::write_text(&at, "draws", group.kind.name())?;
    netcdf::unlimited_dimension(&at, "chain")?;
    netcdf::unlimited_dimension(&at, "draw")?;
    for part in &group.parts {
        let own = part_dimensions(&part.name, part.shape.len());
        for ((name, &length), labels) in own.iter().zip(&part.shape).zip(&part.labels) {
            match &labels[..] {
                [] => netcdf::dimension(&at, name, length)?,
                labels => netcdf::named_dimension(&at, name, labels)?,
            }
        }
        let dimensions: Vec<String> = ["chain", "draw"].map(str::to_owned).into_iter().chain(own).collect();
        let bytes = (part.size() * size_of::<T>()).max(1);
        let chunk = draws.clamp(CHUNK_BYTES.start().div_ceil(bytes), (CHUNK_BYTES.end() / bytes).max(1));
        netcdf::growing_variable::<T>(&at, &part.name, &dimensions, &part.shape, chunk)?;
        if group.kind == SampleKind::Statistics && part.name == DIVERGING {
            netcdf::mark_as_booleans(&at, &part.name)?;
        }
    }
    Ok(at)
}

/// The names of a variable's own dimensions, as in ArviZ.
pub(super) fn part_dimensions(part: &str, rank: usize) -> Vec<String> {
    (0..rank).map(|axis| format!("{part}_dim_{axis}")).collect()
}

fn set_lengths(at: &Group, lengths: &[usize]) -> hdf5::Result<()> {
    let text: Vec<String> = lengths.iter().map(usize::to_string).collect();
    hdf::write_text(at, LENGTHS, &text.join(" "))?;
    let draws = lengths.iter().copied().max().unwrap_or(0);
    netcdf::set_length(at, "chain", lengths.len())?;
    netcdf::set_length(at, "draw", draws)
}
