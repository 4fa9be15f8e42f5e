//! CSV files: comma-separated numbers, one row an example, one column its label or target.

use super::classes::Labels;
use super::error::{DataError, Place, Result};
use super::partition::Draw;
use super::scaling::Scaling;
use super::source::{self, file_name, read_error};
use super::write::{Description, Targets, Writer};
use super::{Split, Task};
use crate::random::Seed;
use ::csv::{ByteRecord, ErrorKind, Reader, ReaderBuilder};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Which column holds the label or target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LabelColumn {
    /// The last one.
    #[default]
    Last,
    /// This one, counting from 1.
    Number(usize),
    /// The one that the header calls so.
    Name(String),
}

/// Whether the first line names the columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Header {
    /// It does if none of its features is a number.
    #[default]
    Detect,
    /// It does.
    Yes,
    /// It is a row of data.
    No,
}

/// Where the test rows come from.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Test {
    /// There are none.
    #[default]
    None,
    /// Another file with the same columns, plain or gzip.
    File(PathBuf),
    /// This share of the rows, rounded to whole rows, drawn at random.
    Fraction(f64, Seed),
}

/// What to import from a CSV file, and how.
#[derive(Clone, Debug)]
pub struct CsvImport {
    /// The file, plain or gzip.
    pub train: PathBuf,
    /// The test rows.
    pub test: Test,
    /// What the label column holds.
    pub task: Task,
    /// The label column.
    pub label: LabelColumn,
    /// The first line.
    pub header: Header,
    /// How feature values become what models see.
    pub scaling: Scaling,
}

/// Imports CSV files into the dataset `output`.
///
/// Features and regression targets are stored in double precision whatever precision a run computes in: it holds every decimal
/// number of up to 15 digits exactly enough to give it back, and scaling a large column in single precision would lose its
/// digits.
///
/// # Errors
/// When a file cannot be read, has no rows, lines of different length, something that is no finite number where one is expected,
/// or a test label that does not occur in the training rows. Nothing half written stays.
pub fn import_csv(import: &CsvImport, output: &Path) -> Result<()> {
    let in_test = match import.test {
        Test::Fraction(fraction, seed) => Some(draw_test_rows(import, fraction, seed)?),
        Test::None | Test::File(_) => None,
    };
    let mut table = Table::open(import, &import.train)?;
    let mut writer = Writer::new(output, table.features(), import.scaling)?;
    let mut collected = Collected::default();
    let mut first_seen = FirstSeen::default();
    table.rows(|row, index, label, line| {
        let split = if in_test.as_ref().and_then(|rows| rows.get(index)) == Some(&true) { Split::Test } else { Split::Train };
        collected.add(import.task, split, label, &import.train, line, |labels, label| {
            let class = labels.index(label, &import.train, Place::Line(line))?;
            first_seen.note(class, split, line);
            Ok(class)
        })?;
        writer.push(split, row)
    })?;
    first_seen.check(&collected.labels, &import.train)?;
    let mut source = file_name(&import.train);
    match &import.test {
        Test::None => {}
        Test::Fraction(fraction, seed) => source.push_str(&format!(", test fraction {fraction} by seed {}", seed.0)),
        Test::File(path) => {
            let mut held_out = Table::open(import, path)?;
            held_out.must_match(&table)?;
            held_out.rows(|row, _, label, line| {
                collected.add(import.task, Split::Test, label, path, line, |labels, label| {
                    labels.known(label, path, Place::Line(line))
                })?;
                writer.push(Split::Test, row)
            })?;
            source.push_str(&format!(", {}", file_name(path)));
        }
    }
    let (classes, train, test) = collected.finish(import.task, &import.train)?;
    let shape = vec![table.features()];
    let about = Description { task: import.task, source, features: Some(table.feature_names()), shape, classes };
    writer.finish(&about, train, test, &import.train)
}

/// Which rows are test rows: exactly the rounded share of them. A first pass over the file counts its rows.
fn draw_test_rows(import: &CsvImport, fraction: f64, seed: Seed) -> Result<Vec<bool>> {
    let rows = Table::open(import, &import.train)?.count()?;
    if !(fraction > 0.0 && fraction < 1.0) {
        return Err(DataError::Request(format!("a test fraction of {fraction} is not between 0 and 1")));
    }
    // The number of rows is exact in double precision and the product is at most it.
    let test = (rows as f64 * fraction).round() as usize;
    if test == 0 || test == rows {
        let what =
            format!("a test fraction of {fraction} of {rows} rows leaves {test} test rows and {} to train on", rows - test);
        return Err(DataError::content(&import.train, Place::File, what));
    }
    let order = Draw::Hold.stream(seed).permutation(rows);
    let mut in_test = vec![false; rows];
    order.into_iter().take(test).for_each(|row| in_test[row] = true);
    Ok(in_test)
}

/// In which split each class was seen, and where first: a random split may leave a rare class without training rows.
#[derive(Default)]
struct FirstSeen {
    in_train: Vec<bool>,
    line: Vec<u64>,
}

impl FirstSeen {
    fn note(&mut self, class: u32, split: Split, line: u64) {
        let class = class as usize;
        if class == self.line.len() {
            self.line.push(line);
            self.in_train.push(false);
        }
        if split == Split::Train {
            self.in_train[class] = true;
        }
    }

    fn check(&self, labels: &Labels, path: &Path) -> Result<()> {
        match (0..).zip(&self.in_train).find(|(_, in_train)| !**in_train) {
            None => Ok(()),
            Some((class, _)) => {
                let label = labels.name(class);
                let what = format!("all rows with label {label:?} fell into the test split: choose another seed or fraction");
                Err(DataError::content(path, Place::Line(self.line[class as usize]), what))
            }
        }
    }
}

/// The targets so far: a few bytes a row, kept in memory because class indices are known only at the end.
#[derive(Default)]
struct Collected {
    labels: Labels,
    classes: [Vec<u32>; 2],
    numbers: [Vec<f64>; 2],
}

impl Collected {
    fn add(
        &mut self,
        task: Task,
        split: Split,
        label: &str,
        path: &Path,
        line: u64,
        class: impl FnOnce(&mut Labels, &str) -> Result<u32>,
    ) -> Result<()> {
        match task {
            Task::Classification => self.classes[split as usize].push(class(&mut self.labels, label)?),
            Task::Regression => {
                let target =
                    number(label).map_err(|what| DataError::content(path, Place::Line(line), format!("the target {what}")))?;
                self.numbers[split as usize].push(target);
            }
        }
        Ok(())
    }

    /// Class names, training targets, test targets.
    fn finish(self, task: Task, path: &Path) -> Result<(Vec<String>, Targets, Option<Targets>)> {
        let some = |targets: Targets, empty: bool| if empty { None } else { Some(targets) };
        match task {
            Task::Classification => {
                let (names, finals) = self.labels.sort(path)?;
                let [train, test] =
                    self.classes.map(|classes| classes.into_iter().map(|class| finals[class as usize]).collect::<Vec<_>>());
                let empty = test.is_empty();
                Ok((names, Targets::Classes(train), some(Targets::Classes(test), empty)))
            }
            Task::Regression => {
                let [train, test] = self.numbers;
                let empty = test.is_empty();
                Ok((Vec::new(), Targets::Numbers(train), some(Targets::Numbers(test), empty)))
            }
        }
    }
}

/// A field as a finite number, or what is wrong with it.
fn number(field: &str) -> std::result::Result<f64, String> {
    match field.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(number),
        Ok(_) => Err(format!("{field:?} is not a finite number: remove the row or fill in a value")),
        Err(_) if field.is_empty() => Err("is missing: remove the row or fill in a value".to_owned()),
        Err(_) => Err(format!("{field:?} is not a number: code texts as numbers, or remove the column")),
    }
}

/// A field without the blanks around it.
fn text(field: &[u8]) -> std::result::Result<&str, String> {
    std::str::from_utf8(field.trim_ascii()).map_err(|_| "is not text (UTF-8)".to_owned())
}

/// A CSV file whose columns are known.
struct Table {
    path: PathBuf,
    reader: Reader<Box<dyn Read + Send>>,
    /// Names of all columns, if the file has a header.
    names: Option<Vec<String>>,
    width: usize,
    label: usize,
    /// The first row of data, read to learn about the columns.
    first: ByteRecord,
}

impl Table {
    fn open(import: &CsvImport, path: &Path) -> Result<Self> {
        let reader = source::open(path)?.reader;
        let mut reader = ReaderBuilder::new().has_headers(false).flexible(true).from_reader(reader);
        let mut first = ByteRecord::new();
        let empty = || DataError::content(path, Place::File, "the file has no rows");
        if !next(&mut reader, &mut first, path)? {
            return Err(empty());
        }
        let wrong = |record: &ByteRecord, what: String| DataError::content(path, Place::Line(line(record)), what);
        let width = first.len();
        if width < 2 {
            let what = "only one column: a label and at least one feature are needed, separated by commas".to_owned();
            return Err(wrong(&first, what));
        }
        let named = matches!(import.label, LabelColumn::Name(_));
        let label = match import.label {
            LabelColumn::Last => width - 1,
            LabelColumn::Number(column) if (1..=width).contains(&column) => column - 1,
            LabelColumn::Number(column) => {
                return Err(wrong(&first, format!("there is no column {column}: the file has columns 1 to {width}")));
            }
            LabelColumn::Name(ref name) => match first.iter().position(|field| field.trim_ascii() == name.as_bytes()) {
                Some(column) => column,
                None => {
                    return Err(wrong(
                        &first,
                        format!("no column is called {name:?} here: name one of this line, or give its number"),
                    ));
                }
            },
        };
        let has_header = match import.header {
            Header::Yes => true,
            Header::No if named => {
                return Err(DataError::Request(
                    "a label column can be named only if the file has a header: give its number".into(),
                ));
            }
            Header::No => false,
            Header::Detect if named => true,
            Header::Detect => {
                let is_number = |field: &[u8]| text(field).is_ok_and(|field| field.parse::<f64>().is_ok());
                let features = first.iter().enumerate().filter(|&(column, _)| column != label);
                let numbers = features.filter(|(_, field)| is_number(field)).count();
                if numbers > 0 && numbers < width - 1 {
                    let what = format!(
                        "{numbers} of {} features are numbers: neither a header nor a row of data; say which it is",
                        width - 1
                    );
                    return Err(wrong(&first, what));
                }
                numbers == 0
            }
        };
        let mut names = None;
        if has_header {
            let fields = first.iter().zip(1..).map(|(field, column)| {
                text(field).map(str::to_owned).map_err(|what| wrong(&first, format!("the name of column {column} {what}")))
            });
            names = Some(fields.collect::<Result<Vec<String>>>()?);
            if !next(&mut reader, &mut first, path)? {
                return Err(empty());
            }
        }
        Ok(Self { path: path.to_path_buf(), reader, names, width, label, first })
    }

    fn features(&self) -> usize {
        self.width - 1
    }

    /// The names of the features: the header's, or `x1`, `x2`, ... by column.
    fn feature_names(&self) -> Vec<String> {
        let name = |column: usize| match &self.names {
            Some(names) => names[column].clone(),
            None => format!("x{}", column + 1),
        };
        (0..self.width).filter(|&column| column != self.label).map(name).collect()
    }

    /// Refuses a test table whose columns are not those of the training table.
    fn must_match(&self, train: &Self) -> Result<()> {
        let what = if self.width != train.width {
            format!("{} columns, but {} has {}", self.width, train.path.display(), train.width)
        } else if self.label != train.label || (self.names.is_some() && train.names.is_some() && self.names != train.names) {
            format!("the columns have other names than, or another order than, those of {}", train.path.display())
        } else {
            return Ok(());
        };
        Err(DataError::content(&self.path, Place::Line(1), format!("{what}: the two files do not belong together")))
    }

    /// Counts the rows.
    fn count(mut self) -> Result<usize> {
        let mut rows = 1;
        while next(&mut self.reader, &mut self.first, &self.path)? {
            rows += 1;
        }
        Ok(rows)
    }

    /// Hands over every row: its features, its number from 0, its label, its line.
    fn rows(&mut self, mut each: impl FnMut(&[f64], usize, &str, u64) -> Result<()>) -> Result<()> {
        let mut row = vec![0.0; self.features()];
        let mut record = std::mem::take(&mut self.first);
        for index in 0.. {
            let line = line(&record);
            let wrong = |what: String| DataError::content(&self.path, Place::Line(line), what);
            if record.len() != self.width {
                return Err(wrong(format!("{} fields, but the first line has {}", record.len(), self.width)));
            }
            let (mut label, mut column) = ("", 0);
            for (position, field) in record.iter().enumerate() {
                let in_column = |what| wrong(format!("column {}: {what}", position + 1));
                let field = text(field).map_err(in_column)?;
                if position == self.label {
                    label = field;
                } else {
                    row[column] = number(field).map_err(in_column)?;
                    column += 1;
                }
            }
            each(&row, index, label, line)?;
            if !next(&mut self.reader, &mut record, &self.path)? {
                break;
            }
        }
        Ok(())
    }
}

/// The line that a record begins on.
fn line(record: &ByteRecord) -> u64 {
    record.position().map_or(0, ::csv::Position::line)
}

/// Reads the next record; false at the end.
fn next(reader: &mut Reader<Box<dyn Read + Send>>, record: &mut ByteRecord, path: &Path) -> Result<bool> {
    reader.read_byte_record(record).map_err(|error| {
        let place = Place::Line(reader.position().line());
        let text = error.to_string();
        match error.into_kind() {
            ErrorKind::Io(error) => read_error(path, place, error),
            _ => DataError::content(path, place, text),
        }
    })
}
