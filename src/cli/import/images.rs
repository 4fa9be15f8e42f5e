//! `mpibayes import images`: images with labels in IDX files, CIFAR files or folders of PNG files become a dataset.

use super::args::{OutputArgs, ScalingName};
use super::rows::describe;
use crate::data::{
    CifarImport, DataError, Format, Idx, IdxPair, PNG_MAGIC, PngImport, Scaling, Source, detect, image_scaling, import_cifar,
    import_first_idx, import_png,
};
use anyhow::{Context, bail, ensure};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  IDX files, the format of MNIST and Fashion-MNIST:
    mpibayes import images train-images-idx3-ubyte.gz --labels train-labels-idx1-ubyte.gz \\
        --test-images t10k-images-idx3-ubyte.gz --test-labels t10k-labels-idx1-ubyte.gz \\
        -o fashion.h5

  The original archives of CIFAR-10 and CIFAR-100, with test images and names of classes:
    mpibayes import images cifar-10-binary.tar.gz -o cifar10.h5
    mpibayes import images cifar-100-binary.tar.gz --coarse-labels -o cifar20.h5

  Files of CIFAR records, plain or gzip, which contain their labels:
    mpibayes import images data_batch_*.bin --test-images test_batch.bin -o cifar10.h5

  PNG files in a folder for each class, such as pets/cat/1.png:
    mpibayes import images pets/ --test-images more-pets/ -o pets.h5";

/// Arguments of `mpibayes import images`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct ImagesArgs {
    /// The training images: an IDX file of bytes, files of CIFAR records, an archive of CIFAR, or a folder with a folder of PNG files for each
    /// class (or with `train` and `test`, each of which has them). Files may be compressed by gzip
    #[arg(value_name = "IMAGES", required = true)]
    pub files: Vec<PathBuf>,
    /// The labels of an IDX file
    #[arg(long, value_name = "FILE")]
    pub labels: Option<PathBuf>,
    /// The test images, in the format of the training images
    #[arg(long, value_name = "IMAGES")]
    pub test_images: Option<PathBuf>,
    /// The labels of an IDX file of test images
    #[arg(long, value_name = "FILE", requires_all = ["test_images", "labels"])]
    pub test_labels: Option<PathBuf>,
    /// The 20 coarse classes of CIFAR-100 instead of its 100 fine ones
    #[arg(long)]
    pub coarse_labels: bool,
    /// Import only the first N training images, and at most the first N test images; not for folders [default: all]
    #[arg(long, value_name = "N")]
    pub rows: Option<usize>,
    /// How pixels are scaled for models [default: channels for images with several channels, else pixels]
    #[arg(long, value_enum)]
    pub scaling: Option<ScalingName>,
    #[command(flatten)]
    pub output: OutputArgs,
}

impl ImagesArgs {
    pub fn import(&self) -> anyhow::Result<String> {
        let inputs = self.files.iter().chain(&self.labels).chain(&self.test_images).chain(&self.test_labels);
        self.output.prepare(inputs.map(PathBuf::as_path))?;
        let first = self.files.first().context("name the images to import")?;
        if self.files.iter().chain(&self.test_images).any(|path| path.is_dir()) {
            return self.folders(first);
        }
        match &self.labels {
            Some(labels) => self.idx(first, labels),
            None => self.cifar(first),
        }
    }

    fn refuse_second_file(&self, what: &str) -> anyhow::Result<()> {
        match self.files.get(1) {
            Some(second) => bail!("{}: only one {what} can be imported as training images: leave this one out", second.display()),
            None => Ok(()),
        }
    }

    fn folders(&self, folder: &Path) -> anyhow::Result<String> {
        for path in self.files.iter().chain(&self.test_images) {
            ensure!(path.is_dir(), "{}: this is not a folder, but the other images are in folders", path.display());
        }
        self.refuse_second_file("folder")?;
        let by_name = ", whose classes are the names of folders";
        let for_others = [
            (self.labels.is_some(), "--labels", by_name),
            (self.coarse_labels, "--coarse-labels", by_name),
            (self.rows.is_some(), "--rows", ""),
        ];
        if let Some((_, option, why)) = for_others.iter().find(|(is_given, ..)| *is_given) {
            bail!("{}: {option} is not for folders of PNG files{why}: remove it", folder.display());
        }
        let scaling = self.scaling.map(Scaling::from);
        let import = PngImport { train: folder.to_path_buf(), test: self.test_images.clone(), scaling };
        let scaling = import_png(&import, &self.output.output)?;
        describe(&self.output.output, scaling)
    }

    fn idx(&self, images: &Path, labels: &Path) -> anyhow::Result<String> {
        self.refuse_second_file("IDX file")?;
        let path = images.display();
        match detect(images)? {
            Format::Idx => {}
            Format::Npy | Format::Npz => {
                bail!("{path}: this file contains NumPy arrays: use `mpibayes import arrays`, also with --labels")
            }
            _ => bail!(
                "{path}: --labels needs an IDX file of images, and this is not one; CIFAR files and folders contain their labels: remove --labels"
            ),
        }
        ensure!(
            !self.coarse_labels,
            "{}: --coarse-labels is for CIFAR-100, and this is an IDX file: remove it",
            images.display()
        );
        if let (Some(test), None) = (&self.test_images, &self.test_labels) {
            bail!("{}: test images in an IDX file need their labels: give them with --test-labels FILE", test.display());
        }
        let test = self.test_images.as_deref().zip(self.test_labels.as_deref());
        idx((images, labels), test, self.rows, self.scaling, &self.output.output)
    }

    fn cifar(&self, first: &Path) -> anyhow::Result<String> {
        let import = CifarImport {
            train: self.files.clone(),
            test: self.test_images.clone(),
            coarse_labels: self.coarse_labels,
            first: self.rows,
            scaling: self.scaling.map(Scaling::from),
        };
        let scaling = import_cifar(&import, &self.output.output).map_err(|error| explained(first, error))?;
        describe(&self.output.output, scaling)
    }
}

/// Replaces the error of a failed import of CIFAR records by a better one if the file has another format. The format is not detected first,
/// because a file of CIFAR-10 may begin with the bytes of an IDX file.
fn explained(path: &Path, error: DataError) -> anyhow::Error {
    // Not that of another file, nor a full disk.
    if !matches!(&error, DataError::Content { path: refused, .. } if refused == path) {
        return error.into();
    }
    let is_png = Source::head(path, 8).is_ok_and(|head| head == PNG_MAGIC);
    match detect(path) {
        Ok(Format::Idx) => {
            anyhow::anyhow!("{}: images in an IDX file need their labels: give them with --labels FILE", path.display())
        }
        Ok(Format::Npy | Format::Npz) => {
            anyhow::anyhow!("{}: this file contains NumPy arrays: use `mpibayes import arrays`", path.display())
        }
        _ if is_png => anyhow::anyhow!(
            "{}: this is one PNG file: name the folder that has a folder of PNG files for each class",
            path.display()
        ),
        _ => error.into(),
    }
}

/// Imports images in IDX files with their labels, and perhaps test images with theirs, and describes the dataset.
pub fn idx(
    train: (&Path, &Path),
    test: Option<(&Path, &Path)>,
    first: Option<usize>,
    scaling: Option<ScalingName>,
    output: &Path,
) -> anyhow::Result<String> {
    let pair = |(images, labels): (&Path, &Path)| IdxPair { images: images.to_path_buf(), labels: labels.to_path_buf() };
    let scaling = match scaling {
        Some(scaling) => scaling.into(),
        None => image_scaling(Idx::open(Source::open(train.0)?)?.row_shape()),
    };
    import_first_idx(&pair(train), test.map(pair).as_ref(), first, scaling, output)?;
    describe(output, scaling)
}
