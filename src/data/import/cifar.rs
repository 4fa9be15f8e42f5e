//! Import of CIFAR-10 and CIFAR-100 images: files of records, or the original archives.

use crate::data::dataset::layout::Split;
use crate::data::dataset::scaling::Scaling;
use crate::data::error::{DataError, Place, Result, listed};
use crate::data::import::channels::append_pixels;
use crate::data::import::labelled_images::ImageWriter;
use crate::data::readers::cifar::{CHANNELS, CifarFormat, SIDE, detect_cifar, for_records};
use crate::data::readers::source::{Source, file_name, read_error};
use crate::data::readers::tar::{for_members, is_tar};
use std::borrow::Cow;
use std::io::Read;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// The most bytes of a list of class names.
const MAX_NAMES: u64 = 1 << 16;

/// What to import from CIFAR files, and how.
#[derive(Clone, Debug, Default)]
pub struct CifarImport {
    /// The training images: an original archive, which has test images too, or files of records of the same format, in this order.
    pub train: Vec<PathBuf>,
    /// A file of records with the test images.
    pub test: Option<PathBuf>,
    /// Whether the coarse labels of CIFAR-100 are the classes, instead of the fine ones.
    pub coarse_labels: bool,
    /// Imports only the first training images, and at most as many test images. `None` imports all.
    pub first: Option<usize>,
    /// The scaling; by default that of each channel.
    pub scaling: Option<Scaling>,
}

/// Records in a file, or in a member of an archive.
struct Records {
    /// The file or archive.
    file: PathBuf,
    member: Option<String>,
    format: CifarFormat,
}

/// The records of an import and the names of classes, if they are known.
#[derive(Default)]
struct Inputs {
    train: Vec<Records>,
    test: Vec<Records>,
    names: Vec<String>,
}

/// Imports CIFAR images into the dataset `output`; returns the scaling. Rows have the shape [32, 32, 3]. Classes have the names of the
/// archive, or else their numbers.
///
/// # Errors
/// If a file cannot be read or has no records of CIFAR-10 or CIFAR-100, formats differ, an archive lacks training images,
/// or a test label does not occur in the training images. No partial output remains.
pub fn import_cifar(import: &CifarImport, output: &Path) -> Result<Scaling> {
    let path = import.train.first().ok_or_else(|| DataError::Request("no images to import".into()))?;
    let inputs = import.inputs()?;
    let format = inputs.train.first().map_or(CifarFormat::Ten, |records| records.format);
    if import.coarse_labels && format != CifarFormat::Hundred {
        let what = format!("only CIFAR-100 has coarse labels, and this is {}: remove --coarse-labels", format.name());
        return Err(DataError::content(path, Place::File, what));
    }
    let label = if import.coarse_labels { 0 } else { format.classes().len() - 1 };
    if let Some(other) = inputs.train.iter().chain(&inputs.test).find(|records| records.format != format) {
        let (name, first) = (other.format.name(), format.name());
        let what = format!("records of {name}, but those of {} are of {first}: all files must have one format", path.display());
        return Err(DataError::content(&other.path(), Place::File, what));
    }
    let mut writer = ImageWriter::new(output, vec![SIDE, SIDE, CHANNELS], import.scaling)?;
    // The classes of the training images, in the order of their labels.
    let mut present = vec![false; usize::from(format.classes()[label])];
    for (split, all) in [(Split::Train, &inputs.train), (Split::Test, &inputs.test)] {
        let mut left = import.first.unwrap_or(usize::MAX);
        for records in all {
            if left == 0 {
                break;
            }
            let path = records.path();
            records.read(&mut left, |labels, pixels, number| {
                let class = usize::from(labels[label]);
                present[class] |= split == Split::Train;
                let name = inputs.names.get(class).map_or_else(|| Cow::from(class.to_string()), Cow::from);
                writer.push(split, pixels, &name, &path, Place::Record(number))
            })?;
        }
        if let (Split::Train, Some(first)) = (split, import.first)
            && (first == 0 || left > 0)
        {
            let what = format!("the first {first} training images are wanted, but there are {}", first - left);
            return Err(DataError::content(path, Place::File, what));
        }
    }
    let order: Vec<String> =
        inputs.names.into_iter().zip(present).filter(|(_, is_present)| *is_present).map(|(name, _)| name).collect();
    let sources: Vec<String> = import.train.iter().chain(&import.test).map(|path| file_name(path)).collect();
    writer.finish(sources.join(", "), &order, path)
}

impl CifarImport {
    fn inputs(&self) -> Result<Inputs> {
        let mut inputs = Inputs::default();
        for path in &self.train {
            if is_tar(&Source::head(path, 512)?) {
                if self.train.len() > 1 || self.test.is_some() {
                    let what = "import an archive alone: it already has training and test images";
                    return Err(DataError::content(path, Place::File, what));
                }
                return read_contents(path, self.coarse_labels);
            }
            inputs.train.push(Records::in_file(path)?);
        }
        if let Some(path) = &self.test {
            if is_tar(&Source::head(path, 512)?) {
                let what = "an archive cannot be used as test images: import it alone";
                return Err(DataError::content(path, Place::File, what));
            }
            inputs.test.push(Records::in_file(path)?);
        }
        Ok(inputs)
    }
}

/// What a member of an original archive is.
#[derive(Clone, Copy)]
enum Role {
    Train,
    Test,
    Names,
    Other,
}

fn role(member: &str, coarse_labels: bool) -> Role {
    let batch = member.strip_prefix("data_batch_").and_then(|rest| rest.strip_suffix(".bin"));
    match member {
        "train.bin" => Role::Train,
        _ if batch.is_some_and(|number| number.parse::<u32>().is_ok()) => Role::Train,
        "test.bin" | "test_batch.bin" => Role::Test,
        "batches.meta.txt" => Role::Names,
        "fine_label_names.txt" if !coarse_labels => Role::Names,
        "coarse_label_names.txt" if coarse_labels => Role::Names,
        _ => Role::Other,
    }
}

/// Finds the records and the names of classes in an original archive.
fn read_contents(path: &Path, coarse_labels: bool) -> Result<Inputs> {
    let wrong = |what: String| DataError::content(path, Place::File, what);
    let mut inputs = Inputs::default();
    let mut others = Vec::new();
    for_members(path, |name, reader| {
        let split = match role(name, coarse_labels) {
            Role::Train => &mut inputs.train,
            Role::Test => &mut inputs.test,
            Role::Names => {
                inputs.names = read_names(&member_path(path, name), reader)?;
                return Ok(ControlFlow::Continue(()));
            }
            Role::Other => {
                // A message names the first dozen.
                others.extend((others.len() < 13).then(|| name.escape_debug().to_string()));
                return Ok(ControlFlow::Continue(()));
            }
        };
        if split.iter().any(|records| records.member.as_deref() == Some(name)) {
            return Err(wrong(format!("two files {name} are in this archive: fetch the original archive")));
        }
        let format = detect_cifar(&member_path(path, name), reader)?;
        split.push(Records { file: path.to_path_buf(), member: Some(name.to_owned()), format });
        Ok(ControlFlow::Continue(()))
    })?;
    // The archive does not store the batches in order. With fewer than ten, names sort like numbers.
    inputs.train.sort_by(|a, b| a.member.cmp(&b.member));
    let Some(records) = inputs.train.first() else {
        return Err(wrong(format!(
            "no training images (data_batch_1.bin or train.bin) are in this archive; it has {}: fetch the binary version of CIFAR",
            listed(&others)
        )));
    };
    let (names, classes) = (inputs.names.len(), records.format.classes());
    let expected = if coarse_labels { classes[0] } else { classes[classes.len() - 1] };
    if names > 0 && names != usize::from(expected) {
        let name = records.format.name();
        return Err(wrong(format!("{names} names of classes, but {name} has {expected}: fetch the archive again")));
    }
    Ok(inputs)
}

fn read_names(path: &Path, reader: &mut dyn Read) -> Result<Vec<String>> {
    let mut text = String::new();
    let read = reader.take(MAX_NAMES).read_to_string(&mut text);
    read.map_err(|error| read_error(path, Place::File, error))?;
    Ok(text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect())
}

/// The name of a member of an archive in messages.
fn member_path(archive: &Path, member: &str) -> PathBuf {
    PathBuf::from(format!("{}[{member}]", archive.display()))
}

impl Records {
    fn in_file(path: &Path) -> Result<Self> {
        let format = detect_cifar(path, &mut Source::open(path)?.reader)?;
        Ok(Self { file: path.to_path_buf(), member: None, format })
    }

    /// The path for messages.
    fn path(&self) -> PathBuf {
        self.member.as_ref().map_or_else(|| self.file.clone(), |member| member_path(&self.file, member))
    }

    /// Calls `each` with the labels, the pixels (height, width, channels) and the number of each of the next `left` records, and lowers `left`
    /// by the number of records.
    fn read(&self, left: &mut usize, mut each: impl FnMut(&[u8], &[u8], u64) -> Result<()>) -> Result<()> {
        let (path, mut pixels) = (self.path(), Vec::new());
        let mut read = |reader: &mut dyn Read| {
            for_records(&path, reader, self.format, |record| {
                pixels.clear();
                append_pixels(record.planes, CHANNELS, &mut pixels);
                each(record.labels, &pixels, record.number)?;
                *left -= 1;
                Ok(*left > 0)
            })
        };
        match &self.member {
            None => read(&mut Source::open(&self.file)?.reader),
            Some(member) => for_members(&self.file, |name, reader| {
                if name != member {
                    return Ok(ControlFlow::Continue(()));
                }
                read(reader)?;
                Ok(ControlFlow::Break(()))
            }),
        }
    }
}

#[cfg(test)]
mod tests;
