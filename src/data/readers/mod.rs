//! Readers of input files: tables in text or columns, LIBSVM, NumPy arrays and images, plain or gzip.

pub mod arrow;
pub mod batches;
pub mod cells;
pub(crate) mod cifar;
pub mod columns;
pub mod decimal;
pub mod fields;
pub mod format;
pub mod idx;
pub mod levels;
pub mod libsvm;
pub mod lines;
pub mod npy;
pub mod npz;
pub(crate) mod png;
pub mod source;
pub mod table;
pub(crate) mod tar;
pub mod text_column;
