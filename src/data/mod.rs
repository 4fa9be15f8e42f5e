//! Data sets: readers of common formats, the HDF5 dataset of an import, partitions into shards, and shards in memory.
//!
//! # The file
//!
//! `mpibayes import` turns its input into one HDF5 file:
//!
//! | object | type | content |
//! | --- | --- | --- |
//! | attribute `format` | text | `mpibayes-dataset` |
//! | attribute `version` | u32 | 2 for dense rows, 3 for sparse rows, 4 for dense rows with a rotation, 5 for documents, 6 for dense rows that end with an offset, a weight or a group; readers refuse later versions. Version 1 had no `targets`, and its targets are not scaled |
//! | attribute `task` | text | `classification`, `regression` or `counts`; `topics` for documents |
//! | attribute `source` | text | names of the imported files |
//! | attribute `digest` | text | BLAKE3 of the canonical content: equal digests mean equal data (names and number types included) |
//! | `train/x`, `test/x` | u8 or f64, rows × features | **raw** feature values, in chunks of whole rows of about 256 KiB |
//! | `train/y`, `test/y` | u32 or f64, rows | class indices from 0, **raw** regression targets, or counts |
//! | `features` attribute `shape` | u64 | the shape of a row, such as 28 × 28 for images, or height × width × channels (32 × 32 × 3); else the number of features |
//! | `features` attribute `scaling` | text | the rule that determined scale, offset and rotation |
//! | `features/scale`, `features/offset` | f64, features | models see x·scale + offset, applied on reading |
//! | `features/rotation` | f64, features × features | models see (x·scale + offset)·rotation, applied on reading: a row times this matrix. Only with the scaling `principal`; absent, x·scale + offset |
//! | `targets/scale`, `targets/offset` | f64, 1 | models see y·scale + offset: mean 0 and standard deviation 1 over the training rows; metrics are in units of y. Regression only; absent, models see y |
//! | `features/recipe` | text, 1 | JSON: what was made of each column of a table ([`Recipe`]), unless columns are what they were. The offset, the weight of the row and the index of the group, if there are any, are the last columns of `x`, with scale 1 and offset 0; the scale of the offset of a regression is that of the targets |
//! | `features/name` | text, features | names of the features; absent for pixels |
//! | `classes/name` | text, classes | the labels by class index: in the order of `--classes`, or else sorted, as numbers if all are numbers and as texts otherwise; absent for regression |
//!
//! `test` is absent if there are no test rows. Documents have a layout of their own: [`corpus`].
//!
//! Sparse rows (compressed sparse rows, CSR) have these instead of `x`, scale and offset, each a list in chunks of 256 KiB:
//!
//! | object | type | content |
//! | --- | --- | --- |
//! | `train/indptr`, `test/indptr` | u64, rows + 1 | row i has the entries indptr\[i\] .. indptr\[i + 1\] of the next two |
//! | `train/indices`, `test/indices` | u32, entries | columns from 0, ascending within a row |
//! | `train/values`, `test/values` | f32 or f64, entries | **raw** values, none of them zero: f32 where it holds all of the split exactly |
//! | `features/column`, `features/scale` | u32 and f64 | models see x·scale in these columns, ascending, and x in all others; absent, x everywhere |
//!
//! The file is not compressed: every agent of every rank reads its own rows, and would decompress all chunks to do so;
//! `h5repack -f SHUF -f GZIP=1` makes a smaller file that reads the same.
//!
//! Text formats may come from untrusted sources. HDF5 files that refer to other files are refused, and lengths in them are checked before
//! memory is reserved. The C library itself is not safe against malicious files, see `SECURITY.md`: open HDF5 files from strangers in a
//! container or a virtual machine.

pub mod corpus;
mod dataset;
mod error;
mod generate;
pub(crate) mod hdf;
mod import;
mod pages;
mod partition;
mod readers;
pub(crate) mod self_contained;
mod shard;
mod sparse;
mod verification;

pub use dataset::layout::{Split, Task};
pub use dataset::read::Dataset;
pub use dataset::scaling::{FeatureScaling, Scaling};
pub use dataset::targets::Targets;
pub(crate) use error::listed;
pub use error::{DataError, Place, Result};
pub use generate::Generator;
pub use import::arrays::{ArrayFile, ArrayImport, ArrayPair, import_arrays};
pub use import::channels::{ChannelOrder, image_scaling};
pub use import::cifar::{CifarImport, import_cifar};
pub use import::images::{IdxPair, import_first_idx, import_idx};
pub use import::libsvm::{LibsvmImport, import_libsvm};
pub use import::png_folders::{PngImport, import_png};
pub(crate) use import::recipe::ExtraColumns;
pub use import::recipe::{ColumnUse, Recipe, UnusableValue, UsedColumn};
pub use import::table::{ColumnOptions, Missing, TableImport, import_table};
pub use import::test_rows::TestRows;
pub use partition::{Label, Partition, ShardAssignment, document_ranges};
pub use readers::batches::BatchFormat;
pub use readers::cells::is_missing;
pub use readers::columns::{Column, Header, TableLayout};
pub use readers::fields::Delimiter;
pub use readers::format::{Format, detect};
pub use readers::idx::Idx;
pub use readers::levels::Levels;
pub use readers::libsvm::{IndexLimit, LibsvmRow, MAX_FEATURES, is_libsvm, read_libsvm};
pub use readers::npy::Npy;
pub use readers::npz::Npz;
pub(crate) use readers::png::MAGIC as PNG_MAGIC;
pub use readers::source::Source;
pub use readers::table::{Row, Table};
pub use readers::text_column::{TextColumn, read_text_column};
pub use shard::Shard;
pub use sparse::SparseRows;
pub use verification::Verified;

#[cfg(test)]
mod tests;
