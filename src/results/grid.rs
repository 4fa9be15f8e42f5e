//! Arrays of a run that are no draws, such as predictions: variables over named dimensions, written whole.

use super::error::{Result, ResultsError};
use super::netcdf;
use crate::data::hdf;
use hdf5::Group;
use ndarray::{ArrayD, IxDyn};
use std::path::Path;

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
        hdf::write_names_attribute(group, "dimensions", &self.dimensions.iter().map(|of| of.0.clone()).collect::<Vec<_>>())?;
        hdf::write_names_attribute(group, "variables", &self.variables.iter().map(|of| of.0.clone()).collect::<Vec<_>>())?;
        hdf::write_names_attribute(group, "lists", &self.names.iter().map(|of| of.0.clone()).collect::<Vec<_>>())?;
        for (name, length) in &self.dimensions {
            netcdf::dimension(group, name, *length)?;
        }
        for (name, axes, _) in &self.variables {
            let over: Vec<String> = axes.iter().filter_map(|&axis| Some(self.dimensions.get(axis)?.0.clone())).collect();
            let Some(array) = self.array(name) else {
                return Err(hdf5::Error::Internal(format!("the numbers of {name:?} do not fill its dimensions")));
            };
            netcdf::variable(group, name, &over, array.view())?;
            hdf::write_names_attribute(group, &format!("{name}_over"), &over)?;
        }
        self.names.iter().try_for_each(|(name, axis, list)| {
            let over: Vec<String> = self.dimensions.get(*axis).map(|of| of.0.clone()).into_iter().collect();
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
