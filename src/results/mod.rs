//! The HDF5 file of a run: particles, trace, and the resolved configuration.
