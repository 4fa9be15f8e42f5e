//! Selects the test rows of an import: another file, a random share, or rows listed in a file.

use crate::data::dataset::layout::Split;
use crate::data::error::{DataError, Place, Result};
use crate::data::partition::RandomChoice;
use crate::data::readers::source::{Source, file_name, read_error};
use crate::random::Seed;
use std::io::{BufRead, Read};
use std::path::{Path, PathBuf};

/// Where the test rows come from; `F` is the type of input that the training rows come from.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum TestRows<F = PathBuf> {
    /// There are no test rows.
    #[default]
    None,
    /// Another input with the same columns.
    File(F),
    /// This share of the rows, rounded to whole rows, drawn at random.
    Fraction(f64, Seed),
    /// The rows listed in a text file, plain or gzip: row numbers from 0, one split per line.
    Rows {
        /// The file.
        file: PathBuf,
        /// The line, from 1, not counting empty ones.
        split: Option<usize>,
    },
}

/// Assigns the rows of the input to training and test rows, in ascending order.
#[derive(Clone)]
pub(crate) struct RowSplitter {
    /// The test rows, ascending.
    rows: Vec<u64>,
    /// The position in `rows` of the next test row.
    next: usize,
    /// The file and line that list the test rows, if any.
    listed: Option<(PathBuf, Place)>,
    /// Describes the choice, for the description of the dataset.
    pub source: String,
}

impl RowSplitter {
    /// Selects the test rows. `count` returns the number of rows of the input `from`, and is called only if needed.
    pub(crate) fn new<F>(test: &TestRows<F>, from: &Path, count: impl FnOnce() -> Result<usize>) -> Result<Self> {
        match test {
            TestRows::None | TestRows::File(_) => Ok(Self { rows: Vec::new(), next: 0, listed: None, source: String::new() }),
            TestRows::Fraction(fraction, seed) => Self::draw(*fraction, *seed, from, count()?),
            TestRows::Rows { file, split } => Self::read_list(file, *split),
        }
    }

    /// Draws exactly the rounded share of the rows.
    fn draw(fraction: f64, seed: Seed, from: &Path, rows: usize) -> Result<Self> {
        if !(fraction > 0.0 && fraction < 1.0) {
            return Err(DataError::Request(format!("a test fraction of {fraction} is not between 0 and 1")));
        }
        // The number of rows is exact in double precision, and the result is at most this number.
        let test = (rows as f64 * fraction).round() as usize;
        if test == 0 || test == rows {
            let left = rows - test;
            let what = format!(
                "a test fraction of {fraction} of {rows} rows leaves {test} test rows and {left} training rows: choose another fraction"
            );
            return Err(DataError::content(from, Place::File, what));
        }
        let order = RandomChoice::HeldOutRows.stream(seed).permutation(rows);
        let mut rows: Vec<u64> = order.into_iter().take(test).map(|row| row as u64).collect();
        rows.sort_unstable();
        let source = format!(", test fraction {fraction} by seed {}", seed.0);
        Ok(Self { rows, next: 0, listed: None, source })
    }

    fn read_list(path: &Path, split: Option<usize>) -> Result<Self> {
        let wrong = |place, what: String| DataError::content(path, place, what);
        let wanted = split.unwrap_or(1);
        let mut reader = Source::open(path)?.reader;
        // Other splits are counted, and the longest length is kept: it shows whether one split was written as a column.
        let (mut splits, mut longest, mut rows, mut place) = (0, 0, Vec::new(), Place::File);
        let (mut line, mut number) = (Vec::new(), 0_u64);
        loop {
            line.clear();
            number += 1;
            let most = crate::data::readers::fields::MAX_RECORD as u64;
            let read = reader.by_ref().take(most).read_until(b'\n', &mut line);
            let read = read.map_err(|error| read_error(path, Place::Line(number), error))?;
            if read == 0 {
                break;
            }
            if read as u64 == most {
                return Err(wrong(Place::Line(number), "a line of more than 64 MiB: this is no list of rows".into()));
            }
            let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&line).trim_ascii();
            if line.is_empty() {
                continue;
            }
            splits += 1;
            let words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
            if splits != wanted {
                longest = longest.max(words.take(2).count());
                continue;
            }
            place = Place::Line(number);
            for word in words {
                let row = std::str::from_utf8(word).ok().and_then(|word| word.parse::<u64>().ok()).ok_or_else(|| {
                    let word: String = String::from_utf8_lossy(word).chars().take(40).collect();
                    wrong(place, format!("{word:?} is not the number of a row: list numbers from 0, separated by blanks"))
                })?;
                rows.push(row);
            }
            longest = longest.max(rows.len());
        }
        match splits {
            0 => return Err(wrong(Place::File, "the file lists no rows".into())),
            _ if wanted == 0 || wanted > splits => {
                return Err(wrong(
                    Place::File,
                    format!("there is no split {wanted}: the file has splits 1 to {splits}, one per line"),
                ));
            }
            2.. if longest == 1 && split.is_none() => {
                let what = format!(
                    "{splits} lines with one number each are {splits} splits: write the rows of a split into one line, or \
                     choose a split with --split"
                );
                return Err(wrong(Place::File, what));
            }
            _ => {}
        }
        rows.sort_unstable();
        if let Some(pair) = rows.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(wrong(place, format!("row {} is listed twice: list it once", pair[0])));
        }
        let source = format!(", test rows by {} split {wanted}", file_name(path));
        Ok(Self { rows, next: 0, listed: Some((path.to_path_buf(), place)), source })
    }

    /// The split of the next row; rows must come in order, from 0.
    pub(crate) fn split(&mut self, row: u64) -> Split {
        if self.rows.get(self.next) == Some(&row) {
            self.next += 1;
            Split::Test
        } else {
            Split::Train
        }
    }

    /// Advice for the message about a class without training rows.
    pub(crate) fn advice(&self) -> &'static str {
        if self.listed.is_some() { "choose other test rows" } else { "choose another seed or fraction" }
    }

    /// Checks that the listed rows exist in the files of the input, which have `rows` rows in all, and that training rows remain.
    pub(crate) fn finish<P: AsRef<Path>>(&self, rows: u64, files: &[P]) -> Result<()> {
        let Some((path, place)) = &self.listed else { return Ok(()) };
        // Row numbers go on from file to file.
        let (have, of_file) = match files {
            [file] => (format!("{} has", file.as_ref().display()), format!(" of {}", file.as_ref().display())),
            _ => ("the files together have".to_owned(), String::new()),
        };
        if let Some(row) = self.rows.get(self.next) {
            let what = format!("row {row} is past the end: {have} rows 0 to {}", rows.saturating_sub(1));
            return Err(DataError::content(path, *place, what));
        }
        if self.rows.len() as u64 == rows {
            let what = format!("all {rows} rows{of_file} are test rows: leave some for training");
            return Err(DataError::content(path, *place, what));
        }
        Ok(())
    }
}
