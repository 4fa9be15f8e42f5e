//! Import of PNG images in folders: one folder for each class.

use crate::data::dataset::layout::Split;
use crate::data::dataset::scaling::Scaling;
use crate::data::error::{DataError, Place, Result};
use crate::data::import::labelled_images::ImageWriter;
use crate::data::readers::png::read_png;
use crate::data::readers::source::file_name;
use std::path::{Path, PathBuf};

/// What to import from folders of PNG files, and how.
#[derive(Clone, Debug)]
pub struct PngImport {
    /// A folder with one subfolder of training images per class, which has the name of the class; or a folder with subfolders `train` and
    /// `test` of this form.
    pub train: PathBuf,
    /// A folder with one subfolder of test images per class.
    pub test: Option<PathBuf>,
    /// The scaling; by default that of each channel for colors, and of pixels for gray.
    pub scaling: Option<Scaling>,
}

/// Imports PNG images into the dataset `output`; returns the scaling. Rows have the shape [height, width] for gray images, and
/// [height, width, 3] for colors. Rows are in the order of the names of classes and then of files, by their bytes.
///
/// # Errors
/// If a file cannot be read or is not a PNG file of 8 bits, images differ in size or in their number of channels, a folder is
/// empty, or a class of test images has no training images. No partial output remains.
pub fn import_png(import: &PngImport, output: &Path) -> Result<Scaling> {
    let (train, test) = import.folders()?;
    let mut writer: Option<(ImageWriter, PathBuf)> = None;
    for (split, root) in [(Split::Train, Some(&train)), (Split::Test, test.as_ref())] {
        let Some(root) = root else { continue };
        for class in class_folders(root)? {
            let label = class.file_name().and_then(|name| name.to_str());
            let label = label.ok_or_else(|| folder_error(&class, "the name of this class is not UTF-8: rename the folder"))?;
            for path in image_files(&class)? {
                let image = read_png(&path)?;
                let (writer, first) = match &mut writer {
                    Some(writer) => writer,
                    None => writer.insert((ImageWriter::new(output, image.shape.clone(), import.scaling)?, path.clone())),
                };
                if writer.shape() != image.shape {
                    let what = format!(
                        "this image is {}, but {} is {}: all images must have one size and the same channels",
                        described(&image.shape),
                        first.display(),
                        described(writer.shape())
                    );
                    return Err(DataError::content(&path, Place::File, what));
                }
                writer.push(split, &image.pixels, label, &path, Place::File)?;
            }
        }
    }
    let (writer, _) = writer.ok_or_else(|| folder_error(&train, "there are no images here"))?;
    let sources: Vec<String> = [&import.train].into_iter().chain(&import.test).map(|folder| file_name(folder)).collect();
    writer.finish(sources.join(", "), &[], &train)
}

impl PngImport {
    /// The folders of training and test images.
    fn folders(&self) -> Result<(PathBuf, Option<PathBuf>)> {
        let names: Vec<String> = folders_in(&self.train)?.iter().map(|folder| file_name(folder)).collect();
        let has = |name: &str| names.iter().any(|other| other == name);
        if !(has("train") && has("test")) && names != ["train"] {
            return Ok((self.train.clone(), self.test.clone()));
        }
        if let Some(other) = names.iter().find(|name| !["train", "test"].contains(&name.as_str())) {
            let what = format!("beside train and test there is another folder, {other:?}: move it elsewhere");
            return Err(folder_error(&self.train, &what));
        }
        match (&self.test, has("test")) {
            (Some(_), true) => Err(folder_error(&self.train, "this folder has a subfolder test: remove --test-images")),
            (Some(test), false) => Ok((self.train.join("train"), Some(test.clone()))),
            (None, has_test) => Ok((self.train.join("train"), has_test.then(|| self.train.join("test")))),
        }
    }
}

/// Height, width and channels, for messages.
fn described(shape: &[usize]) -> String {
    match shape {
        [height, width, channels] => format!("{width} × {height} with {channels} channels"),
        [height, width] => format!("{width} × {height} with 1 channel"),
        _ => format!("{shape:?}"),
    }
}

fn folder_error(path: &Path, what: &str) -> DataError {
    DataError::content(path, Place::File, what)
}

/// What a folder contains, without hidden files, in the order of the bytes of the names, which is the same on every machine.
fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(DataError::io(folder, "open"))? {
        let entry = entry.map_err(DataError::io(folder, "read"))?;
        if !entry.file_name().as_encoded_bytes().starts_with(b".") {
            paths.push(entry.path());
        }
    }
    paths.sort();
    Ok(paths)
}

fn folders_in(folder: &Path) -> Result<Vec<PathBuf>> {
    Ok(entries(folder)?.into_iter().filter(|path| path.is_dir()).collect())
}

/// The folders of classes; other files, such as a description, are ignored, but not images.
fn class_folders(root: &Path) -> Result<Vec<PathBuf>> {
    let is_image = |path: &PathBuf| path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("png"));
    if let Some(image) = entries(root)?.into_iter().find(|path| path.is_file() && is_image(path)) {
        return Err(folder_error(&image, "this image is outside the class folders: move it into the folder of its class"));
    }
    let folders = folders_in(root)?;
    if folders.is_empty() {
        return Err(folder_error(
            root,
            "no class folders here: put the PNG files of each class into a folder with the name of the class",
        ));
    }
    Ok(folders)
}

/// The files of a class.
fn image_files(class: &Path) -> Result<Vec<PathBuf>> {
    let files = entries(class)?;
    if files.is_empty() {
        return Err(folder_error(class, "this class has no images: remove the folder, or put PNG files into it"));
    }
    if let Some(folder) = files.iter().find(|path| path.is_dir()) {
        return Err(folder_error(folder, "class folders cannot have subfolders: move these images up"));
    }
    Ok(files)
}

#[cfg(test)]
mod tests;
