//! LIBSVM files: a row a line, its label and then the features that are not zero as `index:value`; sparse rows stay sparse.
//!
//! Indices count from 1 and ascend within a line; blank lines, and what follows a `#`, are passed over. The reader itself,
//! [`read_libsvm`], knows nothing of HDF5: its memory is one line.

use super::error::{DataError, Place, Result};
use super::held_out::HeldOut;
use super::lines::{lines, shown};
use super::scaling::Scaling;
use super::source::{Source, file_name};
use super::sparse::SparseWriter;
use super::targets::Collected;
use super::write::Description;
use super::{Split, Task, Test};
use std::io::BufRead;
use std::path::{Path, PathBuf};

/// The most features that a sparse dataset may have, 2^31: an index beyond is taken for damage.
pub const MOST_FEATURES: u32 = 1 << 31;
/// By so many bytes from its beginning a file is told to be LIBSVM.
const HEAD: u64 = 1 << 16;

/// What to import from a LIBSVM file, and how.
#[derive(Clone, Debug)]
pub struct LibsvmImport {
    /// The file, plain or gzip.
    pub train: PathBuf,
    /// The test rows.
    pub test: Test,
    /// What the labels are.
    pub task: Task,
    /// How many features rows have; without it, the largest index in the training file.
    pub features: Option<u32>,
    /// How feature values become what models see; it must keep zeros.
    pub scaling: Scaling,
}

/// A row of a LIBSVM file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LibsvmRow<'a> {
    /// The line, from 1.
    pub line: u64,
    /// The label; a number has lost its leading `+`.
    pub label: &'a str,
    /// The columns, from 0 and ascending, of the values that are not zero.
    pub columns: &'a [u32],
    /// These values: finite and not zero.
    pub values: &'a [f64],
    /// The largest index that is written, from 1, also if its value is zero; 0 for a row without features.
    pub largest: u32,
}

/// How large an index may be, and why.
#[derive(Clone, Copy, Debug)]
pub struct IndexLimit<'a> {
    /// The largest index.
    pub most: u32,
    /// What it is, for the message about an index beyond it.
    pub is: &'a str,
}

impl IndexLimit<'_> {
    /// The limit of all datasets, [`MOST_FEATURES`].
    pub const ANY: Self = Self { most: MOST_FEATURES, is: "the most features that a dataset may have" };
}

/// Imports LIBSVM files into the dataset `output`, as sparse rows.
///
/// # Errors
/// When a file cannot be read, has no rows or a damaged line, a test label or index does not occur in the training file, or the scaling
/// would turn zeros into other numbers. Nothing half written stays.
pub fn import_libsvm(import: &LibsvmImport, output: &Path) -> Result<()> {
    let mut held_out = HeldOut::of(&import.test, &import.train, || count_rows(&import.train))?;
    let mut writer = SparseWriter::new(output, import.scaling)?;
    let mut targets = Collected::new(import.task);
    let limit = match import.features {
        Some(0) => return Err(DataError::Request("0 features: rows have at least one".into())),
        Some(most) if most > MOST_FEATURES => {
            return Err(DataError::Request(format!("{most} features: a dataset may have at most {MOST_FEATURES}")));
        }
        Some(most) => IndexLimit { most, is: "the number of features that was asked for" },
        None => IndexLimit::ANY,
    };
    let (mut rows, mut largest) = (0, 0);
    read_libsvm(Source::open(&import.train)?, limit, |row| {
        let split = held_out.split(rows);
        (rows, largest) = (rows + 1, row.largest.max(largest));
        targets.text(split, row.label, &import.train, Place::Line(row.line))?;
        writer.push(split, row.columns, row.values)
    })?;
    held_out.finish(rows, &import.train)?;
    targets.check(&held_out, &import.train)?;
    let features = import.features.unwrap_or(largest);
    if features == 0 {
        let what = "no row has a feature: a row is its label and then index:value pairs, such as 1 3:0.5";
        return Err(DataError::content(&import.train, Place::File, what));
    }
    let mut source = format!("{}{}", file_name(&import.train), held_out.source);
    if let Test::File(path) = &import.test {
        let is = format!("the largest in {}: say with --features how many there are in both files", import.train.display());
        let limit = if import.features.is_some() { limit } else { IndexLimit { most: features, is: &is } };
        read_libsvm(Source::open(path)?, limit, |row| {
            let place = Place::Line(row.line);
            targets.must_know(row.label, path, place)?;
            targets.text(Split::Test, row.label, path, place)?;
            writer.push(Split::Test, row.columns, row.values)
        })?;
        source.push_str(&format!(", {}", file_name(path)));
    }
    let (classes, train, test) = targets.finish(&import.train)?;
    let shape = vec![features as usize];
    let about = Description { task: import.task, source, features: None, shape, classes };
    writer.finish(&about, &train, test.as_ref(), &import.train)
}

/// Whether a file, plain or gzip, begins as a LIBSVM file does: with a label and `index:value` pairs.
///
/// # Errors
/// When the file cannot be read or is empty.
pub fn is_libsvm(path: &Path) -> Result<bool> {
    let head = Source::head(path, HEAD)?;
    // The last token may be cut off, unless the file ends here; the first line of data with features decides.
    let whole = (head.len() as u64) < HEAD;
    for line in head.split(|&byte| byte == b'\n') {
        let mut tokens = without_comment(line).split(u8::is_ascii_whitespace).filter(|token| !token.is_empty());
        let (Some(label), Some(pair)) = (tokens.next(), tokens.next()) else { continue };
        let cut = !whole && pair.as_ptr_range().end == head.as_ptr_range().end;
        let is_pair = |pair: &[u8]| {
            let (index, value) = pair.split_at(pair.iter().position(|&byte| byte == b':').unwrap_or(pair.len()));
            let value = value.get(1..).and_then(|value| std::str::from_utf8(value).ok());
            let number = value.is_some_and(|value| value.parse::<f64>().is_ok() || cut);
            (index == b"qid" || (!index.is_empty() && index.iter().all(u8::is_ascii_digit))) && number
        };
        return Ok(!label.contains(&b':') && is_pair(pair));
    }
    Ok(false)
}

/// Reads rows and hands them over one by one.
///
/// # Errors
/// When the text cannot be read, has no rows, or a line is no row: each with its line; and what `each` returns.
pub fn read_libsvm(source: Source<'_>, limit: IndexLimit, mut each: impl FnMut(LibsvmRow) -> Result<()>) -> Result<()> {
    let (mut columns, mut values) = (Vec::new(), Vec::new());
    let mut rows = 0_u64;
    let Source { path, reader, .. } = source;
    let path = &path;
    each_row(reader, path, |line, bytes| {
        let wrong = |what: String| DataError::content(path, Place::Line(line), what);
        let (label, largest) = parse(bytes, limit, &mut columns, &mut values).map_err(wrong)?;
        rows += 1;
        each(LibsvmRow { line, label, columns: &columns, values: &values, largest })
    })?;
    if rows == 0 { Err(DataError::content(path, Place::File, "the file has no rows")) } else { Ok(()) }
}

/// Counts the rows, without a look at what is in them.
fn count_rows(path: &Path) -> Result<usize> {
    let mut rows = 0;
    each_row(Source::open(path)?.reader, path, |_, _| {
        rows += 1;
        Ok(())
    })?;
    Ok(rows)
}

fn without_comment(line: &[u8]) -> &[u8] {
    // The library's search is far faster than a split, and most lines have no comment.
    let line = if line.contains(&b'#') { line.split(|&byte| byte == b'#').next().unwrap_or(line) } else { line };
    line.trim_ascii()
}

/// Hands over every line that is neither blank nor a comment, with its number from 1.
fn each_row(reader: impl BufRead, path: &Path, mut each: impl FnMut(u64, &[u8]) -> Result<()>) -> Result<()> {
    lines(reader, path, |line, bytes| {
        let row = without_comment(bytes);
        if row.is_empty() { Ok(()) } else { each(line, row) }
    })
}

/// Cuts the next token off, and the blanks in front of it.
fn token<'a>(rest: &mut &'a [u8]) -> &'a [u8] {
    let text = rest.trim_ascii_start();
    let end = text.iter().position(u8::is_ascii_whitespace).unwrap_or(text.len());
    let (token, later) = text.split_at(end);
    *rest = later;
    token
}

/// Takes a row apart: its label and its largest index, its columns and values into the vectors.
fn parse<'a>(
    mut rest: &'a [u8],
    limit: IndexLimit,
    columns: &mut Vec<u32>,
    values: &mut Vec<f64>,
) -> std::result::Result<(&'a str, u32), String> {
    columns.clear();
    values.clear();
    let label = label(token(&mut rest))?;
    let mut last = 0_u32;
    loop {
        rest = rest.trim_ascii_start();
        if rest.is_empty() {
            return Ok((label, last));
        }
        let (index, value) = match plain_pair(rest) {
            Some((index, value, length)) if (1..=limit.most).contains(&index) => {
                rest = &rest[length..];
                (index, value)
            }
            _ => any_pair(token(&mut rest), limit)?,
        };
        if index <= last {
            let how = if index == last { "comes twice" } else { "comes after a larger one" };
            return Err(format!("index {index} {how} ({last} before it): indices must ascend within a line"));
        }
        last = index;
        // Zeros are what is not stored.
        if value != 0.0 {
            columns.push(index - 1);
            values.push(value);
        }
    }
}

/// A pair as nearly all are written: up to nine digits, a colon, and a decimal number; index, value and length.
#[inline]
fn plain_pair(text: &[u8]) -> Option<(u32, f64, usize)> {
    let (mut index, mut at) = (0_u32, 0);
    while let Some(digit) = digit(text, at) {
        if at == 9 {
            return None;
        }
        index = index * 10 + u32::from(digit);
        at += 1;
    }
    if at == 0 || text.get(at) != Some(&b':') {
        return None;
    }
    let (value, length) = plain_number(&text[at + 1..])?;
    let end = at + 1 + length;
    text.get(end).is_none_or(u8::is_ascii_whitespace).then_some((index, value, end))
}

#[inline]
fn digit(text: &[u8], at: usize) -> Option<u8> {
    text.get(at).map(|byte| byte.wrapping_sub(b'0')).filter(|digit| *digit <= 9)
}

/// 10^k, all exact in double precision.
const POWERS: [f64; 20] =
    [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19];
/// Digits that always fit into 64 bits.
const MOST_DIGITS: usize = 19;

/// The number that the text begins with, and its length, if it has no exponent and its digits are a whole number up to 2^53: over a power of
/// ten, both exact in double precision, so that one division rounds correctly (Clinger 1990).
#[inline]
fn plain_number(text: &[u8]) -> Option<(f64, usize)> {
    let negative = text.first() == Some(&b'-');
    let mut at = usize::from(negative);
    let (mut mantissa, mut digits, mut behind_point) = (0_u64, 0, 0);
    while let Some(digit) = digit(text, at) {
        if digits == MOST_DIGITS {
            return None;
        }
        (mantissa, digits, at) = (mantissa * 10 + u64::from(digit), digits + 1, at + 1);
    }
    if text.get(at) == Some(&b'.') {
        at += 1;
        while let Some(digit) = digit(text, at) {
            if digits == MOST_DIGITS {
                return None;
            }
            (mantissa, digits, at) = (mantissa * 10 + u64::from(digit), digits + 1, at + 1);
            behind_point += 1;
        }
    }
    if digits == 0 || mantissa > 1 << 53 {
        return None;
    }
    let value = mantissa as f64 / POWERS[behind_point];
    Some((if negative { -value } else { value }, at))
}

/// A pair in any notation, or what is wrong with it.
fn any_pair(pair: &[u8], limit: IndexLimit) -> std::result::Result<(u32, f64), String> {
    let (index, at) = leading_number(pair);
    if at == 0 || pair.get(at) != Some(&b':') {
        return Err(if pair.starts_with(b"qid:") {
            "has a qid: rankings are not supported; remove the qid: pairs to read the labels as they are".into()
        } else {
            format!("{} is not index:value, such as 3:0.5", shown(pair))
        });
    }
    let index = match index.and_then(|index| u32::try_from(index).ok()) {
        Some(0) => return Err(format!("{}: indices count from 1", shown(pair))),
        Some(index) if index <= limit.most => index,
        _ => return Err(format!("{}: the index is above {}, {}", shown(pair), limit.most, limit.is)),
    };
    let value = value(&pair[at + 1..]).map_err(|what| format!("{}: the value {what}", shown(pair)))?;
    Ok((index, value))
}

/// A label as text.
fn label(token: &[u8]) -> std::result::Result<&str, String> {
    let label = std::str::from_utf8(token).map_err(|_| format!("the label {} is not text (UTF-8)", shown(token)))?;
    if label.contains(':') {
        return Err(format!("begins with {}, not with a label", shown(token)));
    }
    if label.contains(',') {
        return Err(format!("{} are several labels: a row has one", shown(token)));
    }
    Ok(match label.strip_prefix('+') {
        Some(number) if number.starts_with(|first: char| first.is_ascii_digit() || first == '.') => number,
        _ => label,
    })
}

/// The number that the leading digits write, if it fits, and how many digits there are.
fn leading_number(text: &[u8]) -> (Option<u64>, usize) {
    let mut number = Some(0_u64);
    let mut digits = 0;
    for byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        number = number.and_then(|number| number.checked_mul(10)?.checked_add(u64::from(digit)));
        digits += 1;
    }
    (number, digits)
}

fn value(text: &[u8]) -> std::result::Result<f64, String> {
    let number = std::str::from_utf8(text).ok().and_then(|text| text.parse::<f64>().ok());
    match number {
        Some(number) if number.is_finite() => Ok(number),
        Some(number) if number.is_infinite() && text.iter().any(u8::is_ascii_digit) => {
            Err("is beyond double precision: scale the column before importing".into())
        }
        Some(_) => Err("is not a finite number: remove the pair or fill in a value".into()),
        None if text.is_empty() => Err("is missing".into()),
        None => Err("is not a number".into()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::super::{Dataset, Header, TableImport, TableLayout, import_table};
    use super::*;
    use crate::models::Scratch;
    use crate::random::{Purpose, Seed, Who};
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use ndarray::array;
    use rand::RngExt;
    use std::io::Write;
    use tempfile::TempDir;

    /// A folder with a file in it.
    fn file(content: impl AsRef<[u8]>) -> (TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.svm");
        std::fs::write(&path, content).unwrap();
        (folder, path)
    }

    fn gzip(content: &str) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(content.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    fn import(train: &Path) -> LibsvmImport {
        let (test, task) = (Test::None, Task::Classification);
        LibsvmImport { train: train.to_path_buf(), test, task, features: None, scaling: Scaling::None }
    }

    fn imported(import: &LibsvmImport) -> Dataset {
        let output = import.train.with_extension("h5");
        import_libsvm(import, &output).unwrap();
        Dataset::open(&output).unwrap()
    }

    /// Asserts that an import is refused with a message of one line that says all of this, and leaves nothing behind.
    fn refused(import: &LibsvmImport, says: &[&str]) {
        let output = import.train.with_extension("h5");
        let message = import_libsvm(import, &output).expect_err("must be refused").to_string();
        assert!(says.iter().all(|says| message.contains(says)) && !message.contains('\n'), "{message:?} must say {says:?}");
        assert!(!output.exists() && !import.train.with_extension("h5.partial").exists());
    }

    const SMALL: &str = "# a comment\n+1 1:0.5 3:-2 # and one more\r\n\n-1\n+1 2:0 4:1e2 6:0\n";

    #[test]
    fn what_went_in_comes_out_and_stays_sparse() {
        for content in [SMALL.as_bytes().to_vec(), gzip(SMALL), [b"\xef\xbb\xbf", SMALL.as_bytes()].concat()] {
            let (_folder, path) = file(content);
            assert!(is_libsvm(&path).unwrap());
            let data = imported(&import(&path));
            assert_eq!((data.rows(Split::Train), data.rows(Split::Test), data.features()), (3, 0, 6));
            assert_eq!((data.classes(), data.shape(), data.source()), (&["-1".into(), "1".into()][..], &[6][..], "a.svm"));
            assert!(data.is_sparse() && data.values(Split::Train).unwrap() == 3 && data.feature_names().unwrap().is_none());
            assert_eq!(data.raw::<u64>("train/indptr"), [0, 2, 2, 3]);
            assert_eq!(data.raw::<u32>("train/indices"), [0, 2, 3]);
            assert_eq!(data.raw::<f32>("train/values"), [0.5, -2.0, 100.0]);
            let shard = data.read_rows::<f64>(Split::Train, &[2, 0, 1, 0]).unwrap();
            let row = [0.5, 0.0, -2.0, 0.0, 0.0, 0.0];
            assert_eq!(shard.x(), array![[0.0, 0.0, 0.0, 100.0, 0.0, 0.0], row, [0.0; 6], row]);
            assert_eq!(shard.y(), array![1.0, 1.0, 0.0, 1.0]);
            assert!(shard.dense().is_none());
            assert_eq!(data.read_rows::<f32>(Split::Train, &[]).unwrap().rows(), 0);
        }
    }

    #[test]
    fn values_are_those_of_the_standard_library() {
        let mut stream = Seed(1).stream(Who::Run, 0, Purpose::Synthetic);
        let mut texts: Vec<String> =
            ["0", "-0", "1", "1.", ".5", "+3", "-7.25", "1e3", "1E-3", "123456789012345", "0.000000000000001"]
                .into_iter()
                .chain(["1234567890123456", "0.1234567890123456", "9007199254740993", "1e308", "5e-324", "1e-400", "00012.50"])
                .map(str::to_owned)
                .collect();
        for _ in 0..20_000 {
            let (digits, point) = (stream.random_range(1..25), stream.random_range(0..25));
            let mut text: String = (0..digits).map(|_| char::from(b'0' + stream.random_range(0..10_u8))).collect();
            if point <= digits {
                text.insert(point, '.');
            }
            if text != "." {
                texts.push(if stream.random() { format!("-{text}") } else { text });
            }
        }
        for text in texts {
            let (mut columns, mut values) = (Vec::new(), Vec::new());
            let line = format!("1 7:{text} 9:1");
            assert_eq!(parse(line.as_bytes(), IndexLimit::ANY, &mut columns, &mut values).unwrap(), ("1", 9));
            let kept = if values.len() == 2 { values[0] } else { 0.0 };
            assert_eq!(kept, text.parse::<f64>().unwrap(), "{text}");
        }
        for (text, says) in [
            ("", "missing"),
            ("x", "not a number"),
            ("1.2.3", "not a number"),
            ("1e999", "beyond double"),
            ("nan", "finite"),
            ("-inf", "finite"),
        ] {
            assert!(value(text.as_bytes()).unwrap_err().contains(says), "{text}");
        }
    }

    #[test]
    fn values_are_kept_in_single_precision_only_where_it_holds_them() {
        // The last value of many needs double precision.
        let mut text: String = (0..70_000).map(|row| format!("{} 1:{} 2:0.25\n", row % 2, row + 1)).collect();
        let (_folder, path) = file(&text);
        let single = imported(&import(&path));
        assert_eq!(single.raw::<f32>("train/values").len(), 140_000);
        assert!(single.stored_in::<f32>("train/values"));
        text.push_str("1 2:0.1\n");
        let (_folder, path) = file(&text);
        let double = imported(&import(&path));
        assert!(double.stored_in::<f64>("train/values"));
        let values = double.raw::<f64>("train/values");
        assert_eq!((values.len(), values[0], values[139_998], values[140_000]), (140_001, 1.0, 70_000.0, 0.1));
        // Rows far apart and in any order, over many chunks.
        let wanted = [69_999, 3, 40_000, 40_001, 0];
        let shard = double.read_rows::<f64>(Split::Train, &wanted).unwrap();
        assert_eq!(shard.x().column(0), array![70_000.0, 4.0, 40_001.0, 40_002.0, 1.0]);
    }

    #[test]
    fn the_digest_is_that_of_the_content() {
        let same = |text: &str| {
            let (_folder, path) = file(text);
            imported(&import(&path)).digest().to_owned()
        };
        let base = same("1 1:0.5 3:1\n2 2:7\n");
        for equal in ["# x\n+1 1:.5 2:0 3:1.0\n\n2\t2:7 3:0\n", "1 1:5e-1 3:1\r\n2 2:7"] {
            assert_eq!(same(equal), base, "{equal:?}");
        }
        for other in [
            "1 1:0.5 3:1\n2 2:8\n",
            "1 1:0.5 3:1\n2 1:7\n",
            "1 1:0.5\n2 2:7 3:1\n",
            "1 1:0.5 3:1\n2 2:7 4:0\n",
            "2 1:0.5 3:1\n1 2:7\n",
        ] {
            assert_ne!(same(other), base, "{other:?}");
        }
    }

    #[test]
    fn bad_files_are_refused_with_their_line() {
        let good = "1 1:1\n2 2:1\n";
        for (line, says) in [
            ("1 0:1", "count from 1"),
            ("1 3:1 2:1", "index 2 comes after a larger one"),
            ("1 3:1 3:1", "index 3 comes twice"),
            ("1 a:1", "\"a:1\" is not index:value"),
            ("1 3", "\"3\" is not index:value"),
            ("1 -3:1", "is not index:value"),
            ("1 3:", "the value is missing"),
            ("1 3:x", "the value is not a number"),
            ("1 3:nan", "not a finite number"),
            ("1 3:-inf", "not a finite number"),
            ("1 3:1e999", "beyond double precision"),
            ("1 2147483649:1", "above 2147483648, the most features"),
            ("1 99999999999999999999999:1", "above 2147483648"),
            ("1 qid:3 1:1", "qid"),
            ("3:1 4:1", "not with a label"),
            ("1,2 3:1", "several labels"),
            ("\u{fffd}\u{fffd} 3:1:2", "not a number"),
        ] {
            let (_folder, path) = file(format!("{good}\n{line}\n"));
            refused(&import(&path), &["a.svm, line 4: ", says]);
        }
        let (_folder, path) = file(b"1 1:1\n\xff 1:1\n");
        refused(&import(&path), &["line 2", "UTF-8"]);
        for (text, says) in
            [("# nothing\n\n", "no rows"), ("1\n2\n", "no row has a feature"), ("1 1:1\n1 2:1\n", "two classes"), ("", "empty")]
        {
            let (_folder, path) = file(text);
            refused(&import(&path), &["a.svm: ", says]);
        }
        let whole = gzip(&good.repeat(1000));
        let (_folder, path) = file(&whole[..whole.len() / 2]);
        refused(&import(&path), &["a.svm, line ", "cut short"]);
        let (_folder, path) = file("a 1:1\n2 1:1\n");
        refused(&LibsvmImport { task: Task::Regression, ..import(&path) }, &["line 1", "the target \"a\" is not a number"]);
        for scaling in [Scaling::Standardize, Scaling::Pixels, Scaling::UnitInterval, Scaling::Principal] {
            refused(&LibsvmImport { scaling, ..import(&path) }, &[scaling.name(), "max-abs"]);
        }
        refused(&LibsvmImport { features: Some(0), ..import(&path) }, &["at least one"]);
        refused(&LibsvmImport { features: Some(MOST_FEATURES + 1), ..import(&path) }, &["at most 2147483648"]);
    }

    #[test]
    fn test_rows_must_fit_the_training_rows() {
        let (folder, path) = file("1 1:1\n2 3:1\n");
        let with = |text: &str, features| {
            let test = folder.path().join("t.svm");
            std::fs::write(&test, text).unwrap();
            LibsvmImport { test: Test::File(test), features, ..import(&path) }
        };
        refused(&with("1 1:1\n1 4:1\n", None), &["t.svm, line 2", "\"4:1\"", "above 3", "a.svm", "--features"]);
        refused(&with("1 1:1\n3 2:1\n", None), &["t.svm, line 2", "\"3\" does not occur in the training data"]);
        refused(&with("1 5:1\n", Some(4)), &["t.svm, line 1", "above 4"]);
        refused(&with("1 1:1\n", Some(2)), &["a.svm, line 2", "above 2"]);
        let data = imported(&with("+1 1:1 4:2\n", Some(4)));
        assert_eq!((data.rows(Split::Test), data.features(), data.source()), (1, 4, "a.svm, t.svm"));
        assert_eq!(data.read_rows::<f64>(Split::Test, &[0]).unwrap().x(), array![[1.0, 0.0, 0.0, 2.0]]);
    }

    /// An index of 2^31 takes no memory; a dense column list would take 17 GB.
    #[test]
    fn a_wide_dataset_is_small() {
        let (_folder, path) = file("1 1:-4 2147483648:2\n2 7:8 2147483648:-1\n");
        let data = imported(&LibsvmImport { scaling: Scaling::MaxAbs, ..import(&path) });
        assert_eq!(data.features(), 1 << 31);
        assert!(std::fs::metadata(data.path()).unwrap().len() < 1 << 21);
        assert_eq!(data.raw::<u32>("features/column"), [0, 6, (1 << 31) - 1]);
        assert_eq!(data.raw::<f64>("features/scale"), [0.25, 0.125, 0.5]);
        assert_eq!(data.read_rows::<f64>(Split::Train, &[1, 0]).unwrap().features(), 1 << 31);
    }

    /// The same table once sparse and once dense: the same rows in each split, the same numbers in the same bits.
    #[test]
    fn sparse_rows_are_those_of_a_dense_import() {
        let (folder, path) = file("");
        let mut stream = Seed(2).stream(Who::Run, 0, Purpose::Synthetic);
        let (mut dense, mut sparse) = (String::new(), String::new());
        for row in 0..300 {
            let values: Vec<f64> = (0..9).map(|_| if stream.random() { 0.0 } else { stream.random_range(-3.0..5.0) }).collect();
            sparse.push_str(&(row % 3).to_string());
            for (column, value) in values.iter().enumerate() {
                dense.push_str(&format!("{value},"));
                if *value != 0.0 {
                    sparse.push_str(&format!(" {}:{value}", column + 1));
                }
            }
            sparse.push('\n');
            dense.push_str(&format!("{}\n", row % 3));
        }
        std::fs::write(&path, sparse).unwrap();
        let train = folder.path().join("a.csv");
        std::fs::write(&train, dense).unwrap();
        assert!(!is_libsvm(&train).unwrap());
        for scaling in [Scaling::None, Scaling::MaxAbs] {
            for task in [Task::Classification, Task::Regression] {
                let test = Test::Fraction(0.2, Seed(5));
                let sparse = imported(&LibsvmImport { scaling, task, test: test.clone(), ..import(&path) });
                let output = folder.path().join("dense.h5");
                let layout = TableLayout { header: Header::No, ..TableLayout::default() };
                import_table(&TableImport { train: train.clone(), test, task, layout, scaling }, &output).unwrap();
                let dense = Dataset::open(&output).unwrap();
                for split in [Split::Train, Split::Test] {
                    let rows: Vec<usize> = (0..dense.rows(split)).collect();
                    let read = |data: &Dataset| data.read_rows::<f64>(split, &rows).unwrap();
                    let (sparse, dense) = (read(&sparse), read(&dense));
                    assert_eq!((sparse.x(), sparse.y(), sparse.target_unit()), (dense.x(), dense.y(), dense.target_unit()));
                    sparse.blocks(&mut Scratch::new(), |rows, batch, _| {
                        assert_eq!((rows, Some(batch.x)), (0..dense.rows(), dense.dense().map(|batch| batch.x)));
                    });
                }
            }
        }
    }
}
