//! Arrays of a run that are no draws, such as predictions: variables over named dimensions, written whole, or one of them row by row.

use super::error::{Result, ResultsError};
use super::netcdf;
use crate::data::hdf;
use hdf5::{Dataset, File, Group};
use ndarray::{ArrayD, ArrayView2, IxDyn};
use std::path::{Path, PathBuf};

/// A group of arrays.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid {
    /// Its name: `test_predictions`.
    pub group: String,
    /// The dimensions by name, with their lengths.
    pub dimensions: Vec<(String, usize)>,
    /// The arrays by name, each over some of these dimensions, by number.
    pub variables: Vec<(String, Vec<usize>, Vec<f64>)>,
    /// Names along some of these dimensions, such as those of the classes: what they are called, the dimension's number, the names.
    pub names: Vec<(String, usize, Vec<String>)>,
}

impl Grid {
    /// Writes the arrays into a file of their own, at its root.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_file(&self, path: &Path) -> Result<()> {
        let write = || -> hdf5::Result<()> {
            let file = hdf5::File::create(path)?;
            self.write(&file)
        };
        write().map_err(ResultsError::hdf5(path, "write the arrays"))
    }

    /// Reads the arrays of such a file.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read_file(path: &Path) -> Result<Self> {
        let read = || -> hdf5::Result<Self> {
            let file = hdf5::File::open(path)?;
            Self::read(&file, "")
        };
        read().map_err(ResultsError::hdf5(path, "read the arrays"))
    }

    /// An array by its name, with its shape.
    pub fn array(&self, name: &str) -> Option<ArrayD<f64>> {
        let (_, axes, values) = self.variables.iter().find(|variable| variable.0 == name)?;
        let shape: Option<Vec<usize>> = axes.iter().map(|&axis| Some(self.dimensions.get(axis)?.1)).collect();
        ArrayD::from_shape_vec(IxDyn(&shape?), values.clone()).ok()
    }

    /// A list of names by its own; empty if there is none.
    pub fn list(&self, name: &str) -> &[String] {
        self.names.iter().find(|list| list.0 == name).map_or(&[], |list| &list.2)
    }

    pub(super) fn write(&self, group: &Group) -> hdf5::Result<()> {
        self.write_dimensions(group)?;
        self.write_arrays(group, &[])
    }

    fn write_dimensions(&self, group: &Group) -> hdf5::Result<()> {
        hdf::write_names_attribute(group, "dimensions", &self.dimensions.iter().map(|of| of.0.clone()).collect::<Vec<_>>())?;
        self.dimensions.iter().try_for_each(|(name, length)| netcdf::dimension(group, name, *length))
    }

    /// The names of the dimensions with these numbers.
    fn over(&self, axes: &[usize]) -> Vec<String> {
        axes.iter().filter_map(|&axis| Some(self.dimensions.get(axis)?.0.clone())).collect()
    }

    /// Writes variables and names; some variables are `there` already.
    fn write_arrays(&self, group: &Group, there: &[String]) -> hdf5::Result<()> {
        let variables: Vec<String> = there.iter().chain(self.variables.iter().map(|of| &of.0)).cloned().collect();
        hdf::write_names_attribute(group, "variables", &variables)?;
        hdf::write_names_attribute(group, "lists", &self.names.iter().map(|of| of.0.clone()).collect::<Vec<_>>())?;
        for (name, axes, _) in &self.variables {
            let over = self.over(axes);
            let Some(array) = self.array(name) else {
                return Err(hdf5::Error::Internal(format!("the numbers of {name:?} do not fill its dimensions")));
            };
            netcdf::variable(group, name, &over, array.view())?;
            hdf::write_names_attribute(group, &format!("{name}_over"), &over)?;
        }
        self.names.iter().try_for_each(|(name, axis, list)| {
            let over = self.over(&[*axis]);
            netcdf::variable(group, name, &over, ndarray::aview1(&hdf::texts(list)?).into_dyn())?;
            hdf::write_names_attribute(group, &format!("{name}_over"), &over)
        })
    }

    pub(super) fn read(group: &Group, name: &str) -> hdf5::Result<Self> {
        let lengths = |name: String| group.dataset(&name).map(|scale| (name, scale.size()));
        let dimensions =
            hdf::read_names_attribute(group, "dimensions")?.into_iter().map(lengths).collect::<hdf5::Result<Vec<_>>>()?;
        let mut variables = Vec::new();
        let axes = |name: &str| -> hdf5::Result<Vec<usize>> {
            let over = hdf::read_names_attribute(group, &format!("{name}_over"))?;
            let axis = |over: &String| dimensions.iter().position(|of| of.0 == *over);
            over.iter().map(|over| axis(over).ok_or_else(|| hdf5::Error::Internal(format!("no dimension {over:?}")))).collect()
        };
        for name in hdf::read_names_attribute(group, "variables")? {
            let axes = axes(&name)?;
            let values = group.dataset(&name)?.read_raw()?;
            variables.push((name, axes, values));
        }
        let mut names = Vec::new();
        for name in hdf::read_names_attribute(group, "lists")? {
            let axis = axes(&name)?.first().copied().unwrap_or(0);
            names.push((name.clone(), axis, hdf::read_names(group, &name)?));
        }
        Ok(Self { group: name.to_owned(), dimensions, variables, names })
    }
}

/// A file as [`Grid::write_file`] makes it, of whose arrays one comes row by row, and is never in memory whole.
pub struct GridFile {
    path: PathBuf,
    file: File,
    name: String,
    rows: Dataset,
    written: usize,
}

impl GridFile {
    /// Begins with the dimensions of a grid, and with the array of this name over two of them, by number.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn create(path: &Path, grid: &Grid, name: &str, axes: [usize; 2]) -> Result<Self> {
        let write = || -> hdf5::Result<_> {
            let file = File::create(path)?;
            grid.write_dimensions(&file)?;
            let over = grid.over(&axes);
            let shape: Vec<usize> = axes.iter().filter_map(|&axis| Some(grid.dimensions.get(axis)?.1)).collect();
            let rows = netcdf::empty_variable::<f64>(&file, name, &over, &shape)?;
            hdf::write_names_attribute(&file, &format!("{name}_over"), &over)?;
            Ok((file, rows))
        };
        let (file, rows) = write().map_err(ResultsError::hdf5(path, "write the arrays"))?;
        Ok(Self { path: path.to_path_buf(), file, name: name.to_owned(), rows, written: 0 })
    }

    /// The next rows.
    ///
    /// # Errors
    /// When they cannot be written, or are not as the dimensions say.
    pub fn push(&mut self, rows: ArrayView2<'_, f64>) -> Result<()> {
        let written = netcdf::write_block(&self.rows, &[self.written, 0], rows.into_dyn());
        written.map_err(ResultsError::hdf5(&self.path, "write rows of an array"))?;
        self.written += rows.nrows();
        Ok(())
    }

    /// Ends with the variables and names of the grid.
    ///
    /// # Errors
    /// When they cannot be written, or rows are missing.
    pub fn finish(self, grid: &Grid) -> Result<()> {
        let Self { path, file, name, rows, written } = self;
        let write = || -> hdf5::Result<()> {
            if rows.shape().first() != Some(&written) {
                return Err(hdf5::Error::Internal(format!("{written} rows of {name:?}, not {:?}", rows.shape())));
            }
            grid.write_arrays(&file, &[name])?;
            file.flush()
        };
        write().map_err(ResultsError::hdf5(&path, "write the arrays"))
    }
}
