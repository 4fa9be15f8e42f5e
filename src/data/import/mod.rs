//! Imports: rows are read from input files, split into training and test rows, and written into a dataset.

pub mod arrays;
pub mod channels;
pub mod cifar;
pub mod images;
pub(crate) mod labelled_images;
pub mod labels;
pub mod libsvm;
pub mod png_folders;
pub(crate) mod recipe;
pub mod suspects;
pub mod table;
pub mod targets;
pub mod test_rows;
