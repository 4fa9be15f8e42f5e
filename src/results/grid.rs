//! Arrays with named dimensions, such as predictions: written whole, or with one array row by row.

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
    /// Names and lengths of the dimensions.
    pub dimensions: Vec<(String, usize)>,
    /// The arrays: name, indices of the dimensions, values.
    pub variables: Vec<(String, Vec<usize>, Vec<f64>)>,
    /// Lists of names along a dimension, such as the classes: name of the list, index of the dimension, names.
    pub names: Vec<(String, usize, Vec<String>)>,
}

/// Deletes all groups of arrays in a file.
pub(super) fn delete_all(file: &File) -> hdf5::Result<()> {
    for name in file.member_names()? {
        if file.group(&name).is_ok_and(|group| group.attr("variables").is_ok() && group.attr("lists").is_ok()) {
            file.unlink(&name)?;
        }
    }
    Ok(())
}

impl Grid {
    /// Writes the arrays to the root of a new file.
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

    /// Reads the arrays at the root of a file.
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

    /// The names in a list; empty if there is no such list.
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

    /// The names of the dimensions with these indices.
    fn over(&self, axes: &[usize]) -> Vec<String> {
        axes.iter().filter_map(|&axis| Some(self.dimensions.get(axis)?.0.clone())).collect()
    }

    /// Writes variables and lists of names; the variables in `written` exist already.
    fn write_arrays(&self, group: &Group, written: &[String]) -> hdf5::Result<()> {
        let variables: Vec<String> = written.iter().chain(self.variables.iter().map(|of| &of.0)).cloned().collect();
        hdf::write_names_attribute(group, "variables", &variables)?;
        hdf::write_names_attribute(group, "lists", &self.names.iter().map(|of| of.0.clone()).collect::<Vec<_>>())?;
        for (name, axes, _) in &self.variables {
            let over = self.over(axes);
            let Some(array) = self.array(name) else {
                return Err(hdf5::Error::Internal(format!("the values of {name:?} do not match its dimensions")));
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

/// A file like that of [`Grid::write_file`], with one array that is written row by row and never held in memory.
pub struct GridFile {
    path: PathBuf,
    file: File,
    name: String,
    rows: Dataset,
    written: usize,
}

impl GridFile {
    /// Creates the file with the dimensions of a grid, and an empty array over two of them, given by index.
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

    /// Appends rows.
    ///
    /// # Errors
    /// When they cannot be written, or do not match the dimensions.
    pub fn push(&mut self, rows: ArrayView2<'_, f64>) -> Result<()> {
        let written = netcdf::write_block(&self.rows, &[self.written, 0], rows.into_dyn());
        written.map_err(ResultsError::hdf5(&self.path, "write rows of an array"))?;
        self.written += rows.nrows();
        Ok(())
    }

    /// Writes the other variables and the lists of names.
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
