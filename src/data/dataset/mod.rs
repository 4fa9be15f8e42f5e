//! The HDF5 file of a dataset: its layout, reading and writing, and the scaling of features.

pub mod digest;
pub mod growing;
pub mod layout;
pub mod list_reader;
pub mod principal;
pub mod read;
pub mod scaling;
pub mod targets;
mod verify;
pub mod write;
pub mod write_sparse;
