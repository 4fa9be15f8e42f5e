//! `mpibayes import`: turns IDX or CSV files into the dataset that runs read, and says what it made.

use super::entry::print;
use super::text;
use crate::data::{
    Column, Dataset, Header, IdxPair, Scaling, Split, TableImport, TableLayout, Task, Test, import_idx, import_table, is_idx,
};
use crate::random::Seed;
use anyhow::{Context, bail, ensure};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  Images with labels in IDX files, as MNIST and Fashion-MNIST come, plain or gzip:
    mpibayes import --images train-images-idx3-ubyte.gz --labels train-labels-idx1-ubyte.gz \\
        --test-images t10k-images-idx3-ubyte.gz --test-labels t10k-labels-idx1-ubyte.gz -o fashion.h5

  A CSV file with the class in the last column; a fifth of its rows become test rows:
    mpibayes import flowers.csv --test-fraction 0.2 -o flowers.h5

  A CSV file with a number to predict in the column `price`, and test rows of its own:
    mpibayes import train.csv --test test.csv --task regression --label price -o houses.h5";

/// What can be typed after `mpibayes import`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct ImportArgs {
    /// The training rows as CSV, plain or gzip: numbers, one row an example, one column its label or target
    #[arg(value_name = "TRAIN.csv", required_unless_present = "images", conflicts_with = "images")]
    pub train: Option<PathBuf>,
    /// Where to write the dataset
    #[arg(short, long, value_name = "DATA.h5")]
    pub output: PathBuf,
    /// Replace the dataset if it exists
    #[arg(short, long)]
    pub force: bool,
    /// How feature values become what models see [default: pixels for IDX, standardize for CSV]
    #[arg(long, value_enum)]
    pub scaling: Option<ScalingName>,

    /// Test rows: another CSV file with the same columns
    #[arg(long, value_name = "TEST.csv", conflicts_with_all = ["images", "test_fraction"], help_heading = "CSV")]
    pub test: Option<PathBuf>,
    /// Test rows: this share of the rows, drawn at random
    #[arg(long, value_name = "SHARE", value_parser = share, conflicts_with = "images", help_heading = "CSV")]
    pub test_fraction: Option<f64>,
    /// The seed of that draw [default: 1]
    #[arg(long, requires = "test_fraction", help_heading = "CSV")]
    pub seed: Option<u64>,
    /// The column of the label or target: `last`, its number from 1, or its name in the header [default: last]
    #[arg(long, value_name = "COLUMN", value_parser = label_column, conflicts_with = "images", help_heading = "CSV")]
    pub label: Option<Column>,
    /// What that column holds [default: classification]
    #[arg(long, value_enum, conflicts_with = "images", help_heading = "CSV")]
    pub task: Option<TaskName>,
    /// Whether the first line names the columns [default: auto]
    #[arg(long, value_enum, conflicts_with = "images", help_heading = "CSV")]
    pub header: Option<HeaderName>,

    /// The training images
    #[arg(long, value_name = "FILE", requires = "labels", help_heading = "IDX")]
    pub images: Option<PathBuf>,
    /// Their labels
    #[arg(long, value_name = "FILE", requires = "images", help_heading = "IDX")]
    pub labels: Option<PathBuf>,
    /// The test images
    #[arg(long, value_name = "FILE", requires_all = ["images", "test_labels"], help_heading = "IDX")]
    pub test_images: Option<PathBuf>,
    /// Their labels
    #[arg(long, value_name = "FILE", requires_all = ["images", "test_images"], help_heading = "IDX")]
    pub test_labels: Option<PathBuf>,
}

/// A scaling as it is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ScalingName {
    /// The values as they are
    None,
    /// Mean 0 and standard deviation 1 over the training rows
    Standardize,
    /// 0..255 to 0.01..1
    Pixels,
    /// 0..1 over the training rows
    UnitInterval,
}

impl From<ScalingName> for Scaling {
    fn from(name: ScalingName) -> Self {
        match name {
            ScalingName::None => Self::None,
            ScalingName::Standardize => Self::Standardize,
            ScalingName::Pixels => Self::Pixels,
            ScalingName::UnitInterval => Self::UnitInterval,
        }
    }
}

/// A task as it is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum TaskName {
    /// A class: any text or number
    Classification,
    /// A number
    Regression,
}

/// What is typed about the first line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum HeaderName {
    /// It does if none of its features is a number
    Auto,
    /// It does
    Yes,
    /// It is a row of data
    No,
}

fn share(typed: &str) -> Result<f64, String> {
    match typed.parse::<f64>() {
        Ok(share) if share > 0.0 && share < 1.0 => Ok(share),
        _ => Err("give a share between 0 and 1, such as 0.2".into()),
    }
}

fn label_column(typed: &str) -> Result<Column, String> {
    match (typed, typed.parse::<usize>()) {
        ("last", _) => Ok(Column::Last),
        (_, Ok(0)) => Err("columns are counted from 1".into()),
        (_, Ok(number)) => Ok(Column::Number(number)),
        (name, Err(_)) => Ok(Column::Name(name.to_owned())),
    }
}

/// Imports, and prints what was made.
///
/// # Errors
/// See [`import`].
pub fn run(args: &ImportArgs) -> anyhow::Result<ExitCode> {
    print(&import(args)?).context("cannot print what was made")?;
    Ok(ExitCode::SUCCESS)
}

/// Imports what the arguments name, and describes the dataset that was made, in lines for people.
///
/// # Errors
/// When the output exists (unless `force`) or is one of the inputs, an input cannot be read or is not what it should be, or the
/// output or its folder, which is made, cannot be written. No half dataset stays, and an older one is then untouched.
pub fn import(args: &ImportArgs) -> anyhow::Result<String> {
    check_output(args)?;
    let scaling = |default| args.scaling.map_or(default, Scaling::from);
    let pair = |images: &Option<PathBuf>, labels: &Option<PathBuf>| {
        images.clone().zip(labels.clone()).map(|(images, labels)| IdxPair { images, labels })
    };
    let scaling = if let Some(train) = pair(&args.images, &args.labels) {
        let scaling = scaling(Scaling::Pixels);
        import_idx(&train, pair(&args.test_images, &args.test_labels).as_ref(), scaling, &args.output)?;
        scaling
    } else if let Some(train) = &args.train {
        if is_idx(train)? {
            bail!("{}: this is an IDX file, not CSV: give images with --images and labels with --labels", train.display());
        }
        let scaling = scaling(Scaling::Standardize);
        import_table(&csv(args, train, scaling), &args.output)?;
        scaling
    } else {
        bail!("name a CSV file, or IDX files with --images and --labels");
    };
    describe(&args.output, scaling)
}

fn csv(args: &ImportArgs, train: &Path, scaling: Scaling) -> TableImport {
    TableImport {
        train: train.to_path_buf(),
        test: match (&args.test, args.test_fraction) {
            (Some(test), _) => Test::File(test.clone()),
            (None, Some(fraction)) => Test::Fraction(fraction, Seed(args.seed.unwrap_or(1))),
            (None, None) => Test::None,
        },
        task: match args.task {
            None | Some(TaskName::Classification) => Task::Classification,
            Some(TaskName::Regression) => Task::Regression,
        },
        layout: TableLayout {
            label: args.label.clone().unwrap_or_default(),
            header: match args.header {
                None | Some(HeaderName::Auto) => Header::Detect,
                Some(HeaderName::Yes) => Header::Yes,
                Some(HeaderName::No) => Header::No,
            },
            ..TableLayout::default()
        },
        scaling,
    }
}

/// Refuses to replace what the user may still want, and makes the folder of the output.
fn check_output(args: &ImportArgs) -> anyhow::Result<()> {
    let output = &args.output;
    if !output.exists() {
        let Some(folder) = output.parent() else { return Ok(()) };
        return std::fs::create_dir_all(folder).with_context(|| format!("{}: cannot make this folder", folder.display()));
    }
    ensure!(!output.is_dir(), "{}: this is a folder; name the file to write", output.display());
    let canonical = output.canonicalize().with_context(|| output.display().to_string())?;
    let inputs = [&args.train, &args.test, &args.images, &args.labels, &args.test_images, &args.test_labels];
    if inputs.into_iter().flatten().any(|input| input.canonicalize().is_ok_and(|input| input == canonical)) {
        bail!("{}: this file is to be read, and would be replaced by the dataset", output.display());
    }
    ensure!(args.force, "{}: this file exists; choose another name, or replace it with --force", output.display());
    Ok(())
}

/// How many class labels are listed before the rest is left out.
const LISTED: usize = 12;

fn describe(path: &Path, scaling: Scaling) -> anyhow::Result<String> {
    let data = Dataset::open(path)?;
    let size = std::fs::metadata(path).with_context(|| path.display().to_string())?.len();
    let number = |number: usize| text::count(number as u64);
    let mut lines = vec![("task", data.task().name().to_owned()), ("train", format!("{} rows", number(data.rows(Split::Train))))];
    lines.push(match data.rows(Split::Test) {
        0 => ("test", "none: runs cannot judge predictions".into()),
        rows => ("test", format!("{} rows", number(rows))),
    });
    let shape = match data.shape() {
        [_] => String::new(),
        sides => format!(" ({})", sides.iter().map(usize::to_string).collect::<Vec<_>>().join(" × ")),
    };
    lines.push(("features", format!("{}{shape}", number(data.features()))));
    lines.push(("scaling", scaling.name().to_owned()));
    if data.task() == Task::Classification {
        let classes = data.classes();
        let listed: Vec<&str> = classes.iter().take(LISTED).map(String::as_str).collect();
        let rest = if classes.len() > LISTED { ", ..." } else { "" };
        lines.push(("classes", format!("{}: {}{rest}", number(classes.len()), listed.join(", "))));
    } else {
        let (scale, offset) = data.target_scaling();
        lines
            .push(("targets", format!("mean {}, standard deviation {}", text::value(-offset / scale), text::value(1.0 / scale))));
    }
    lines.push(("digest", data.digest().chars().take(super::DIGEST_SHOWN).collect()));
    Ok(format!("wrote {} ({})\n{}", path.display(), text::bytes(size), text::pairs(&lines)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::cli::{Cli, Command};
    use clap::Parser;

    fn args(folder: &Path, rest: &str) -> ImportArgs {
        let place = |word: &str| word.replace("@", &format!("{}/", folder.display()));
        let typed = ["mpibayes", "import"].map(str::to_owned).into_iter().chain(rest.split(' ').map(place));
        match Cli::try_parse_from(typed).unwrap().command {
            Command::Import(args) => args,
            other => panic!("{other:?}"),
        }
    }

    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.csv"), "x,y,kind\n1,10,b\n2,20,a\n3,30,b\n4,40,a\n5,50,a\n").unwrap();
        std::fs::write(
            folder.path().join("images"),
            [&[0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2][..], &[0, 255, 9, 8]].concat(),
        )
        .unwrap();
        std::fs::write(folder.path().join("labels"), [0, 0, 8, 1, 0, 0, 0, 2, 7, 3]).unwrap();
        folder
    }

    #[test]
    fn a_csv_import_says_what_it_made() {
        let folder = folder();
        let said = import(&args(folder.path(), "@a.csv --test-fraction 0.4 --seed 2 -o @a.h5")).unwrap();
        for line in [
            "task      classification",
            "train     3 rows",
            "test      2 rows",
            "features  2\n",
            "scaling   standardize",
            "classes   2: a, b",
        ] {
            assert!(said.contains(&format!("\n  {line}")), "{line:?} in\n{said}");
        }
        let data = Dataset::open(&folder.path().join("a.h5")).unwrap();
        assert!(said.contains(&format!("digest    {}\n", &data.digest()[..12])), "{said}");
        std::fs::write(folder.path().join("c.csv"), "x,price\n1,90\n2,110\n").unwrap();
        let said = import(&args(folder.path(), "@c.csv --task regression --label price -o @c.h5")).unwrap();
        assert!(said.contains(&format!("\n  targets   mean {}, standard deviation {}\n", text::value(100.0), text::value(10.0))));
        let said = import(&args(folder.path(), "@a.csv --label 2 --header yes --task regression -o @b.h5"));
        // The control: the label is then a feature, and no number.
        assert!(said.unwrap_err().to_string().contains("a.csv, line 2"));
    }

    #[test]
    fn an_idx_import_says_what_it_made() {
        let folder = folder();
        let said = import(&args(folder.path(), "--images @images --labels @labels -o @i.h5")).unwrap();
        for line in ["features  2 (1 × 2)", "scaling   pixels", "classes   2: 3, 7", "test      none"] {
            assert!(said.contains(line), "{line:?} in\n{said}");
        }
        let refused = import(&args(folder.path(), "@images -o @j.h5")).unwrap_err().to_string();
        assert!(refused.contains("--images"), "{refused}");
    }

    #[test]
    fn nothing_is_replaced_unasked_and_no_input_ever() {
        let folder = folder();
        let output = folder.path().join("a.h5");
        std::fs::write(&output, "precious").unwrap();
        let refused = import(&args(folder.path(), "@a.csv -o @a.h5")).unwrap_err().to_string();
        assert!(refused.contains("--force"), "{refused}");
        assert_eq!(std::fs::read(&output).unwrap(), b"precious");
        import(&args(folder.path(), "@a.csv -o @a.h5 --force")).unwrap();
        assert!(Dataset::open(&output).is_ok());
        let refused = import(&args(folder.path(), "@a.csv -o @a.csv --force")).unwrap_err().to_string();
        assert!(refused.contains("is to be read"), "{refused}");
        let refused = import(&args(folder.path(), "@a.csv -o @a.csv/a.h5")).unwrap_err().to_string();
        assert!(refused.contains("a.csv: cannot make this folder"), "{refused}");
        import(&args(folder.path(), "@a.csv -o @new/folder/a.h5")).unwrap();
        assert!(Dataset::open(&folder.path().join("new/folder/a.h5")).is_ok());
    }
}
