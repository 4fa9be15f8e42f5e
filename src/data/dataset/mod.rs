//! The HDF5 file of a dataset: its layout, reading and writing, and the scaling of features.

pub mod growing;
pub mod layout;
pub mod principal;
pub mod read;
pub mod scaling;
pub mod targets;
pub mod write;
pub mod write_sparse;
