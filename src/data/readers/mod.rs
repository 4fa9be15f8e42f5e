//! Readers of input files: text tables, LIBSVM, NumPy arrays and IDX images, plain or gzip.

pub mod decimal;
pub mod fields;
pub mod format;
pub mod idx;
pub mod levels;
pub mod libsvm;
pub mod lines;
pub mod npy;
pub mod npz;
pub mod source;
pub mod table;
