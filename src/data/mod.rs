//! From files to shards: readers, the HDF5 dataset, and the rows that an agent owns.
