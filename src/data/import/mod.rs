//! Imports: rows are read from input files, split into training and test rows, and written into a dataset.

pub mod arrays;
pub mod images;
pub mod labels;
pub mod libsvm;
pub(crate) mod recipe;
pub mod suspects;
pub mod table;
pub mod targets;
pub mod test_rows;
