//! Arrays with named dimensions, such as predictions: written whole, or with one array block by block.

use super::error::{Result, ResultsError};
use super::netcdf;
use crate::data::hdf;
use hdf5::{Dataset, File, Group};
use ndarray::{ArrayD, ArrayViewD, IxDyn};
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

impl Grid {
    /// Writes the arrays to the root of a new file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_file(&self, path: &Path) -> Result<()> {
        let write = || -> hdf5::Result<()> {
            let file = hdf::create(path)?;
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
            let file = hdf::open(path)?;
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
            netcdf::text_variable(group, name, &over, list)?;
            hdf::write_names_attribute(group, &format!("{name}_over"), &over)
        })
    }

    pub(super) fn read(group: &Group, name: &str) -> hdf5::Result<Self> {
        let mut grid = Self::read_without_values(group, name)?;
        for (name, _, values) in &mut grid.variables {
            *values = group.dataset(name)?.read_raw()?;
        }
        Ok(grid)
    }

    fn read_without_values(group: &Group, name: &str) -> hdf5::Result<Self> {
        let listed = |attribute: &str| hdf::distinct(hdf::read_names_attribute(group, attribute)?);
        let lengths = |name: String| group.dataset(&name).map(|scale| (name, scale.size()));
        let dimensions = listed("dimensions")?.into_iter().map(lengths).collect::<hdf5::Result<Vec<_>>>()?;
        let mut variables = Vec::new();
        let axes = |name: &str| -> hdf5::Result<Vec<usize>> {
            let over = hdf::read_names_attribute(group, &format!("{name}_over"))?;
            let axis = |over: &String| dimensions.iter().position(|of| of.0 == *over);
            over.iter().map(|over| axis(over).ok_or_else(|| hdf5::Error::Internal(format!("no dimension {over:?}")))).collect()
        };
        for name in listed("variables")? {
            let axes = axes(&name)?;
            variables.push((name, axes, Vec::new()));
        }
        let mut names = Vec::new();
        for name in listed("lists")? {
            let axis = axes(&name)?.first().copied().unwrap_or(0);
            names.push((name.clone(), axis, hdf::read_names(group, &name)?));
        }
        Ok(Self { group: name.to_owned(), dimensions, variables, names })
    }

    /// Copies the arrays of a file into a group, a block at a time.
    pub(super) fn copy_file(path: &Path, to: &Group) -> hdf5::Result<()> {
        let file = hdf::open(path)?;
        let mut grid = Self::read_without_values(&file, "")?;
        let variables = std::mem::take(&mut grid.variables);
        grid.write_dimensions(to)?;
        for (name, axes, _) in &variables {
            let (from, over) = (file.dataset(name)?, grid.over(axes));
            let copy = netcdf::empty_variable::<f64>(to, name, &over, &from.shape())?;
            hdf::write_names_attribute(to, &format!("{name}_over"), &over)?;
            netcdf::copy_blocks::<f64>(&from, &copy, &from.shape())?;
        }
        grid.write_arrays(to, &variables.into_iter().map(|(name, ..)| name).collect::<Vec<_>>())
    }
}

/// A file like that of [`Grid::write_file`], with one array that is written block by block and never held in memory.
pub struct GridFile {
    path: PathBuf,
    file: File,
    name: String,
    array: Dataset,
    written: usize,
}

impl GridFile {
    /// Creates the file with the dimensions of a grid, and an empty array over some of them, given by index.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn create(path: &Path, grid: &Grid, name: &str, axes: &[usize]) -> Result<Self> {
        let write = || -> hdf5::Result<_> {
            let file = hdf::create(path)?;
            grid.write_dimensions(&file)?;
            let over = grid.over(axes);
            let shape: Vec<usize> = axes.iter().filter_map(|&axis| Some(grid.dimensions.get(axis)?.1)).collect();
            let array = netcdf::contiguous_variable::<f64>(&file, name, &over, &shape)?;
            hdf::write_names_attribute(&file, &format!("{name}_over"), &over)?;
            Ok((file, array))
        };
        let (file, array) = write().map_err(ResultsError::hdf5(path, "write the arrays"))?;
        Ok(Self { path: path.to_path_buf(), file, name: name.to_owned(), array, written: 0 })
    }

    /// Writes a block, starting at these indices. Every value is written once.
    ///
    /// # Errors
    /// When it cannot be written, or does not match the dimensions.
    pub fn write(&mut self, at: &[usize], block: ArrayViewD<'_, f64>) -> Result<()> {
        self.written += block.len();
        netcdf::write_block(&self.array, at, block).map_err(ResultsError::hdf5(&self.path, "write a block of an array"))
    }

    /// Writes the other variables and the lists of names.
    ///
    /// # Errors
    /// When they cannot be written, or values are missing.
    pub fn finish(self, grid: &Grid) -> Result<()> {
        let Self { path, file, name, array, written } = self;
        let write = || -> hdf5::Result<()> {
            if array.size() != written {
                return Err(hdf5::Error::Internal(format!("{written} values of {name:?}, not {:?}", array.shape())));
            }
            grid.write_arrays(&file, &[name])?;
            file.flush()
        };
        write().map_err(ResultsError::hdf5(&path, "write the arrays"))
    }
}
