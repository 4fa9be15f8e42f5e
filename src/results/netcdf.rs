//! Dimensions and variables as netCDF-4 lays them out in HDF5: dimension scales, and lists of references to them.

use hdf5::types::{FixedAscii, VarLenArray};
use hdf5::{Datatype, Group, H5Type, Location, ObjectReference, ObjectReference1};
use ndarray::{ArrayView, Dimension};
use std::ffi::c_int;

/// The longest name of a dimension.
const LONGEST: usize = 256;

// The binding of the C library is not re-exported by the crate that we use, which links it. `hid_t` is i64 since HDF5 1.10;
// with an older library `H5T_C_S1` has another type and this file does not compile.
unsafe extern "C" {
    fn H5Tcopy(kind: i64) -> i64;
    fn H5Tset_size(kind: i64, size: usize) -> c_int;
}

/// The type of a fixed-length, null-terminated C string of this size, terminator included.
fn c_string(size: usize) -> hdf5::Result<Datatype> {
    hdf5::sync::sync(|| {
        // SAFETY: `H5T_C_S1` is a type of the initialised library, the copy is ours, and the library is locked.
        let kind = unsafe { H5Tcopy(*hdf5::globals::H5T_C_S1) };
        // SAFETY: the copy was just made and nobody else holds it; `from_id` checks that it is a type, and takes it over.
        let datatype: Datatype = unsafe { hdf5::from_id(kind) }?;
        // SAFETY: the identifier is that of the live type.
        if unsafe { H5Tset_size(datatype.id(), size) } < 0 {
            return Err(hdf5::Error::Internal(format!("no C string of {size} bytes")));
        }
        Ok(datatype)
    })
}

/// Writes an attribute as a null-terminated string: the netCDF C library does not recognise the scales of null-padded ones.
fn write_c_string(at: &Location, name: &str, value: &str) -> hdf5::Result<()> {
    let text = FixedAscii::<LONGEST>::from_ascii(value)
        .map_err(|error| hdf5::Error::Internal(format!("{value:?} is no name of a dimension: {error}")))?;
    at.new_attr_builder().with_data_as(ndarray::aview0(&text), c_string(value.len() + 1)?).create(name).map(drop)
}

/// Makes a dimension of this length, whose coordinates count from 0.
pub(super) fn dimension(group: &Group, name: &str, length: usize) -> hdf5::Result<()> {
    let coordinates: Vec<i64> = (0..).take(length).collect();
    let scale = group.new_dataset_builder().with_data(&coordinates).obj_track_times(false).create(name)?;
    write_c_string(&scale, "CLASS", "DIMENSION_SCALE")?;
    write_c_string(&scale, "NAME", name)
}

/// Writes a variable over dimensions that were made before.
pub(super) fn variable<T: H5Type, D: Dimension>(
    group: &Group,
    name: &str,
    dimensions: &[String],
    values: ArrayView<T, D>,
) -> hdf5::Result<()> {
    let data = group.new_dataset_builder().with_data(values).obj_track_times(false).create(name)?;
    let list = dimensions
        .iter()
        .map(|dimension| Ok(VarLenArray::from_slice(&[ObjectReference1::create(group, dimension)?])))
        .collect::<hdf5::Result<Vec<_>>>()?;
    data.new_attr_builder().with_data(&list).create("DIMENSION_LIST").map(drop)
}
