//! Dimensions and variables in the HDF5 layout of netCDF-4: dimension scales, and references to them.

use crate::data::hdf;
use crate::number::Number;
use hdf5::types::{FixedAscii, OwnedDynValue, TypeDescriptor, VarLenArray};
use hdf5::{Dataset, Datatype, Extent, Group, H5Type, Hyperslab, Location, ObjectReference, ObjectReference1};
use hdf5::{SimpleExtents, SliceOrIndex};
use ndarray::{ArrayD, ArrayView1, ArrayViewD};
use std::ffi::c_int;
use std::ops::Range;

/// The length limit for texts in attributes, which are mostly names of dimensions.
const MAX_LENGTH: usize = 256;
/// The type of booleans in xarray.
const BOOLEANS: &str = "bool";
/// Entries in a chunk of an unlimited dimension, and of a column along it.
const COORDINATES_CHUNK: usize = 512;

// The hdf5 crate links the C library but does not re-export these functions. `hid_t` is i64 since HDF5 1.10; with an older library
// `H5T_C_S1` has another type, and this file does not compile.
unsafe extern "C" {
    fn H5Tcopy(kind: i64) -> i64;
    fn H5Tset_size(kind: i64, size: usize) -> c_int;
}

/// The type of a fixed-length, null-terminated C string of this size, terminator included.
fn c_string(size: usize) -> hdf5::Result<Datatype> {
    hdf5::sync::sync(|| {
        // SAFETY: `H5T_C_S1` is a type of the initialized library, the copy is ours, and the library is locked.
        let kind = unsafe { H5Tcopy(*hdf5::globals::H5T_C_S1) };
        // SAFETY: the copy was just made and has no other owner; `from_id` checks that it is a type, and takes ownership.
        let datatype: Datatype = unsafe { hdf5::from_id(kind) }?;
        // SAFETY: the identifier belongs to a live type.
        if unsafe { H5Tset_size(datatype.id(), size) } < 0 {
            return Err(hdf5::Error::Internal(format!("cannot create a C string of {size} bytes")));
        }
        Ok(datatype)
    })
}

/// Writes an attribute as a null-terminated string: the netCDF C library does not recognise the scales of null-padded ones.
fn write_c_string(at: &Location, name: &str, value: &str) -> hdf5::Result<()> {
    let text = FixedAscii::<MAX_LENGTH>::from_ascii(value)
        .map_err(|error| hdf5::Error::Internal(format!("{value:?} cannot be the name of a dimension: {error}")))?;
    at.new_attr_builder().with_data_as(ndarray::aview0(&text), c_string(value.len() + 1)?).create(name).map(drop)
}

/// Creates a dimension of this length, whose coordinates count from 0.
pub(super) fn dimension(group: &Group, name: &str, length: usize) -> hdf5::Result<()> {
    let scale = group.new_dataset_builder().with_data(&coordinates(length)).obj_track_times(false).create(name)?;
    make_scale(&scale, name)
}

/// Creates a dimension whose coordinates are these names.
pub(super) fn named_dimension(group: &Group, name: &str, names: &[String]) -> hdf5::Result<()> {
    let scale = group.new_dataset_builder().with_data(hdf::texts(names)?.as_slice()).obj_track_times(false).create(name)?;
    make_scale(&scale, name)
}

/// The names along a dimension; none if its coordinates are numbers.
pub(super) fn names_along(group: &Group, name: &str) -> hdf5::Result<Vec<String>> {
    match group.dataset(name)?.dtype()?.to_descriptor()? {
        TypeDescriptor::VarLenUnicode => hdf::read_names(group, name),
        _ => Ok(Vec::new()),
    }
}

/// Creates an unlimited dimension of length 0; [`set_length`] changes its length.
pub(super) fn unlimited_dimension(group: &Group, name: &str) -> hdf5::Result<()> {
    let builder = group.new_dataset::<i64>().obj_track_times(false).chunk(COORDINATES_CHUNK);
    make_scale(&builder.shape((0..,)).create(name)?, name)
}

/// Changes the length of an unlimited dimension, whose coordinates count from 0.
pub(super) fn set_length(group: &Group, name: &str, length: usize) -> hdf5::Result<()> {
    let scale = group.dataset(name)?;
    if scale.size() == length {
        return Ok(());
    }
    scale.resize(length)?;
    scale.write_raw(&coordinates(length))
}

fn coordinates(length: usize) -> Vec<i64> {
    (0..).take(length).collect()
}

fn make_scale(scale: &Dataset, name: &str) -> hdf5::Result<()> {
    write_c_string(scale, "CLASS", "DIMENSION_SCALE")?;
    write_c_string(scale, "NAME", name)
}

/// Writes a variable over existing dimensions.
pub(super) fn variable(group: &Group, name: &str, dimensions: &[String], values: ArrayViewD<f64>) -> hdf5::Result<()> {
    let data = empty_variable::<f64>(group, name, dimensions, values.shape())?;
    if values.is_empty() { Ok(()) } else { data.write(values) }
}

/// Writes texts over an existing dimension. They have no checksums, which would cover their places in the file only.
pub(super) fn text_variable(group: &Group, name: &str, dimensions: &[String], values: &[String]) -> hdf5::Result<()> {
    let data = group.new_dataset_builder().with_data(hdf::texts(values)?.as_slice()).obj_track_times(false).create(name)?;
    attach(group, &data, dimensions)
}

/// Creates a variable of this shape over existing dimensions, for [`write_block`], with checksums. Blocks should be large, and
/// neighbors should follow one another: a chunk that is written in parts is read again once it has left the cache of the library.
pub(super) fn empty_variable<T: H5Type>(
    group: &Group,
    name: &str,
    dimensions: &[String],
    shape: &[usize],
) -> hdf5::Result<Dataset> {
    let builder = group.new_dataset::<T>().obj_track_times(false);
    // A single value and an empty array have no chunks.
    let data = match shape.is_empty() || shape.contains(&0) {
        true => builder.shape(shape).create(name)?,
        false => builder.chunk(chunk_of(shape, size_of::<T>())).fletcher32().shape(shape).create(name)?,
    };
    attach(group, &data, dimensions)?;
    Ok(data)
}

/// The same without checksums, for blocks of any size and order.
pub(super) fn contiguous_variable<T: H5Type>(
    group: &Group,
    name: &str,
    dimensions: &[String],
    shape: &[usize],
) -> hdf5::Result<Dataset> {
    let data = group.new_dataset::<T>().obj_track_times(false).shape(shape).create(name)?;
    attach(group, &data, dimensions)?;
    Ok(data)
}

/// The most bytes of a chunk, unless a single draw is larger: few enough for the cache of the library, which holds chunks that are written in parts.
pub(super) const MAX_CHUNK_BYTES: usize = 1 << 18;

/// A chunk of an array: whole last axes as far as they have room, and a part of the axis before them.
fn chunk_of(shape: &[usize], bytes_of_value: usize) -> Vec<usize> {
    let mut room = (MAX_CHUNK_BYTES / bytes_of_value).max(1);
    let mut chunk: Vec<usize> = shape
        .iter()
        .rev()
        .map(|&length| {
            let part = length.min(room);
            room /= part;
            part
        })
        .collect();
    chunk.reverse();
    chunk
}

/// Creates a variable over existing dimensions: the last ones have the lengths `fixed`, the ones before are unlimited and empty. Chunks hold
/// `chunk` entries along the last unlimited dimension, and have checksums. Unwritten values read as [`Cell::MISSING`].
pub(super) fn growing_variable<T: Cell>(
    group: &Group,
    name: &str,
    dimensions: &[String],
    fixed: &[usize],
    chunk: usize,
) -> hdf5::Result<()> {
    let growing = dimensions.len() - fixed.len();
    let extents = std::iter::repeat_n(Extent::resizable(0), growing).chain(fixed.iter().map(|&length| Extent::fixed(length)));
    let mut chunks = vec![1; growing];
    if let Some(last) = chunks.last_mut() {
        *last = chunk.max(1);
    }
    chunks.extend(fixed.iter().map(|&length| length.max(1)));
    let builder = group.new_dataset::<T>().obj_track_times(false).chunk(chunks).fletcher32().fill_value(T::MISSING);
    attach(group, &builder.shape(SimpleExtents::from_vec(extents.collect())).create(name)?, dimensions)
}

/// Makes xarray read a variable of numbers as booleans, by its convention.
pub(super) fn mark_as_booleans(group: &Group, name: &str) -> hdf5::Result<()> {
    write_c_string(&*group.dataset(name)?, "dtype", BOOLEANS)
}

/// Attaches dimensions to a variable.
fn attach(group: &Group, data: &Dataset, dimensions: &[String]) -> hdf5::Result<()> {
    let list = dimensions
        .iter()
        .map(|dimension| Ok(VarLenArray::from_slice(&[ObjectReference1::create(group, dimension)?])))
        .collect::<hdf5::Result<Vec<_>>>()?;
    data.new_attr_builder().with_data(&list).create("DIMENSION_LIST").map(drop)
}

/// Writes a block of a variable, starting at these indices.
pub(super) fn write_block<T: H5Type>(data: &Dataset, at: &[usize], block: ArrayViewD<T>) -> hdf5::Result<()> {
    data.write_slice(block.view(), slab(at.iter().zip(block.shape()).map(|(&start, &length)| start..start + length)))
}

/// Copies a variable up to this shape, a block at a time.
pub(super) fn copy_blocks<T: H5Type>(from: &Dataset, to: &Dataset, shape: &[usize]) -> hdf5::Result<()> {
    for block in blocks(shape) {
        let start: Vec<usize> = block.iter().map(|range| range.start).collect();
        let values: ArrayD<T> = from.read_slice(slab(block))?;
        write_block(to, &start, values.view())?;
    }
    Ok(())
}

/// The part of a variable with these indices along its dimensions.
pub(super) fn slab(ranges: impl IntoIterator<Item = Range<usize>>) -> Hyperslab {
    Hyperslab::from(ranges.into_iter().map(SliceOrIndex::from).collect::<Vec<_>>())
}

/// The most values that are read at a time: 64 MiB of the largest type.
const BLOCK_VALUES: usize = 1 << 23;

/// Blocks that make up an array of this shape, in its order.
pub(super) fn blocks(shape: &[usize]) -> Vec<Vec<Range<usize>>> {
    let whole: Vec<Range<usize>> = shape.iter().map(|&length| 0..length).collect();
    let (mut large, mut small) = (vec![whole], Vec::new());
    while let Some(block) = large.pop() {
        match block.iter().position(|range| range.len() > 1) {
            Some(axis) if block.iter().map(Range::len).product::<usize>() > BLOCK_VALUES => {
                let Range { start, end } = block[axis];
                let middle = start + (end - start) / 2;
                // The last one that is pushed comes first.
                for part in [middle..end, start..middle] {
                    let mut block = block.clone();
                    block[axis] = part;
                    large.push(block);
                }
            }
            _ => small.push(block),
        }
    }
    small
}

/// Writes a column along an existing unlimited dimension; creates the column if needed.
pub(super) fn write_column<T: H5Type>(group: &Group, name: &str, dimension: &str, values: &[T]) -> hdf5::Result<()> {
    let data = match group.link_exists(name) {
        true => group.dataset(name)?,
        false => {
            let builder = group.new_dataset::<T>().obj_track_times(false).chunk(COORDINATES_CHUNK);
            let data = builder.shape((0..,)).create(name)?;
            attach(group, &data, &[dimension.to_owned()])?;
            data
        }
    };
    data.resize(values.len())?;
    if values.is_empty() { Ok(()) } else { data.write_raw(ArrayView1::from(values)) }
}

/// A number type of draws.
pub(super) trait Cell: Number + H5Type + Into<OwnedDynValue> {
    /// The fill value of unwritten draws: NaN, or the default of netCDF for integers.
    const MISSING: Self;
}

impl Cell for f32 {
    const MISSING: Self = f32::NAN;
}

impl Cell for f64 {
    const MISSING: Self = f64::NAN;
}

impl Cell for i32 {
    const MISSING: Self = -2_147_483_647;
}
