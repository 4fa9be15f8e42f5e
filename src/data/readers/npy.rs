//! Reads NumPy's NPY files row by row.
//!
//! The header is a Python literal.

use crate::data::error::{DataError, Place, Result};
use crate::data::readers::source::{Source, read_error};
use std::io::{ErrorKind, Read, Write};

/// The first bytes of every NPY file.
pub(crate) const MAGIC: &[u8] = b"\x93NUMPY";
/// The maximum number of bytes of a header. NumPy refuses headers longer than 10,000 characters by default.
const MAX_HEADER: u32 = 1 << 16;
/// The maximum number of dimensions.
pub(crate) const MAX_DIMENSIONS: usize = 16;
/// The maximum number of bytes of an array in Fortran order, which is read as a whole.
const MAX_BY_COLUMNS: u64 = 1 << 30;

/// The type of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Element {
    Bool,
    U8,
    U16,
    U32,
    U64,
    I8,
    I16,
    I32,
    I64,
    F32,
    F64,
}

impl Element {
    const ALL: [(&'static str, Self); 11] = [
        ("b1", Self::Bool),
        ("u1", Self::U8),
        ("u2", Self::U16),
        ("u4", Self::U32),
        ("u8", Self::U64),
        ("i1", Self::I8),
        ("i2", Self::I16),
        ("i4", Self::I32),
        ("i8", Self::I64),
        ("f4", Self::F32),
        ("f8", Self::F64),
    ];

    fn size(self) -> usize {
        match self {
            Self::Bool | Self::U8 | Self::I8 => 1,
            Self::U16 | Self::I16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
        }
    }

    /// Appends the elements as numbers; integers beyond 2⁵³ are rounded, as in NumPy.
    fn numbers(self, bytes: &[u8], big_endian: bool, numbers: &mut Vec<f64>) {
        fn each<const N: usize>(bytes: &[u8], big_endian: bool, numbers: &mut Vec<f64>, number: impl Fn([u8; N]) -> f64) {
            let (elements, _) = bytes.as_chunks::<N>();
            numbers.extend(elements.iter().map(|&(mut element)| {
                if big_endian {
                    element.reverse();
                }
                number(element)
            }));
        }
        match self {
            Self::Bool | Self::U8 => each(bytes, big_endian, numbers, |[byte]| f64::from(byte)),
            Self::I8 => each(bytes, big_endian, numbers, |element| f64::from(i8::from_le_bytes(element))),
            Self::U16 => each(bytes, big_endian, numbers, |element| f64::from(u16::from_le_bytes(element))),
            Self::I16 => each(bytes, big_endian, numbers, |element| f64::from(i16::from_le_bytes(element))),
            Self::U32 => each(bytes, big_endian, numbers, |element| f64::from(u32::from_le_bytes(element))),
            Self::I32 => each(bytes, big_endian, numbers, |element| f64::from(i32::from_le_bytes(element))),
            Self::U64 => each(bytes, big_endian, numbers, |element| u64::from_le_bytes(element) as f64),
            Self::I64 => each(bytes, big_endian, numbers, |element| i64::from_le_bytes(element) as f64),
            Self::F32 => each(bytes, big_endian, numbers, |element| f64::from(f32::from_le_bytes(element))),
            Self::F64 => each(bytes, big_endian, numbers, f64::from_le_bytes),
        }
    }
}

/// The content of a header.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Header {
    element: Element,
    big_endian: bool,
    /// Whether elements are in Fortran order.
    by_columns: bool,
    shape: Vec<usize>,
}

/// An NPY array, whose header has been checked against its size. A row is the part that one index of the first dimension selects.
pub struct Npy<'a> {
    source: Source<'a>,
    header: Header,
    /// The bytes of the last row that was read; of an array in Fortran order, all bytes.
    raw: Vec<u8>,
}

/// Writes the header of a float64 matrix. The caller writes the rows next, in little-endian order.
pub(crate) fn write_header(out: &mut impl Write, rows: usize, columns: usize) -> std::io::Result<()> {
    let literal = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({rows}, {columns}), }}");
    // The header is padded to 128 bytes, which suffice for two numbers of 20 digits.
    out.write_all(MAGIC)?;
    out.write_all(&[1, 0, 118, 0])?;
    writeln!(out, "{literal:<117}")
}

impl<'a> Npy<'a> {
    /// Reads the header and the first row, so that a caller does not allocate memory for rows that do not exist.
    ///
    /// # Errors
    /// If the input is not an NPY file of real numbers, its header does not match its size, or it is empty.
    pub fn open(mut source: Source<'a>) -> Result<Self> {
        let path = source.path.clone();
        let wrong = |what: String| DataError::content(&path, Place::File, what);
        let mut read = |bytes: &mut [u8]| match source.reader.read_exact(bytes) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                Err(wrong("the file ends inside the NPY header: fetch or save it again".into()))
            }
            Err(error) => Err(read_error(&path, Place::File, error)),
        };
        let mut start = [0; 8];
        read(&mut start)?;
        let [.., version, _] = start;
        if !start.starts_with(MAGIC) {
            return Err(wrong("this is no NPY file: it does not begin with \\x93NUMPY".into()));
        }
        let (length, header_start) = match version {
            1 => {
                let mut length = [0; 2];
                read(&mut length)?;
                (u32::from(u16::from_le_bytes(length)), 10)
            }
            2 | 3 => {
                let mut length = [0; 4];
                read(&mut length)?;
                (u32::from_le_bytes(length), 12)
            }
            _ => return Err(wrong(format!("version {version} of NPY: only 1 to 3 are known"))),
        };
        if length > MAX_HEADER {
            return Err(wrong(format!("an NPY header of {length} bytes: the file is damaged, or no array of numbers")));
        }
        // At most `MAX_HEADER` bytes.
        let mut header = vec![0; length as usize];
        read(&mut header)?;
        let header = HeaderParser::new(&header).header().map_err(|what| wrong(format!("the NPY header {what}")))?;
        let elements = header.shape.iter().try_fold(1_u64, |product, &size| product.checked_mul(size as u64));
        let bytes = elements.and_then(|elements| elements.checked_mul(header.element.size() as u64));
        let available = source.most_bytes.saturating_sub(header_start + u64::from(length));
        let shape = &header.shape;
        match bytes {
            _ if shape.is_empty() => return Err(wrong("a single number: an array with a row for each example is needed".into())),
            Some(0) => return Err(wrong(format!("an array of shape {shape:?} has no numbers"))),
            Some(bytes) if bytes > available => {
                return Err(wrong(format!(
                    "the header promises an array of shape {shape:?}, which a file of this size cannot hold: it is damaged or cut short"
                )));
            }
            Some(bytes) if header.by_columns && bytes > MAX_BY_COLUMNS => {
                return Err(wrong(
                    "an array of more than 1 GiB in Fortran order would have to be read as a whole: save it with \
                     numpy.ascontiguousarray"
                        .into(),
                ));
            }
            Some(_) => {}
            None => return Err(wrong(format!("an array of shape {shape:?} is larger than any file"))),
        }
        let mut npy = Self { source, header, raw: Vec::new() };
        // A single row or column has the same layout in both orders.
        npy.header.by_columns &= npy.header.shape.iter().filter(|&&size| size > 1).count() > 1;
        npy.read(1)?;
        Ok(npy)
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.header.shape.first().copied().unwrap_or(0)
    }

    /// The shape of a row; empty for single numbers.
    pub fn row_shape(&self) -> &[usize] {
        self.header.shape.get(1..).unwrap_or_default()
    }

    /// The number of elements in a row.
    pub fn row_size(&self) -> usize {
        self.row_shape().iter().product()
    }

    /// Whether elements are unsigned bytes, as in images.
    pub fn is_bytes(&self) -> bool {
        self.header.element == Element::U8
    }

    /// The path of the file.
    pub(crate) fn path(&self) -> std::path::PathBuf {
        self.source.path.clone()
    }

    /// Calls `each` with every row and its number from 1, and checks that the input ends after the last row.
    ///
    /// # Errors
    /// If the input is too short or too long, has a number that is not finite, or cannot be read; and those of `each`.
    pub fn for_numbers(&mut self, mut each: impl FnMut(&[f64], u64) -> Result<()>) -> Result<()> {
        let (element, big_endian, path) = (self.header.element, self.header.big_endian, self.path());
        let mut numbers = Vec::new();
        self.for_raw(|raw, record| {
            numbers.clear();
            element.numbers(raw, big_endian, &mut numbers);
            if let Some(at) = numbers.iter().position(|number| !number.is_finite()) {
                let what = format!("number {} is {}: remove the row or fill in a value", at + 1, numbers[at]);
                return Err(DataError::content(&path, Place::Record(record), what));
            }
            each(&numbers, record)
        })
    }

    /// Calls `each` with every row of an array of bytes and its number from 1.
    ///
    /// # Errors
    /// Those of [`Self::for_numbers`]; and if the elements are not bytes.
    pub fn for_bytes(&mut self, each: impl FnMut(&[u8], u64) -> Result<()>) -> Result<()> {
        if !self.is_bytes() {
            return Err(DataError::Request(format!("{}: this is no array of bytes", self.source.path.display())));
        }
        self.for_raw(each)
    }

    fn for_raw(&mut self, mut each: impl FnMut(&[u8], u64) -> Result<()>) -> Result<()> {
        if self.header.by_columns {
            self.for_raw_by_columns(each)?;
        } else {
            for record in (1..).take(self.rows()) {
                if record > 1 {
                    self.read(record)?;
                }
                each(&self.raw, record)?;
            }
        }
        self.source.check_end(self.rows())
    }

    fn for_raw_by_columns(&self, mut each: impl FnMut(&[u8], u64) -> Result<()>) -> Result<()> {
        let (rows, size) = (self.rows(), self.header.element.size());
        // The positions of the elements of row 0, with the last index varying fastest. Those of row i are i positions further.
        let mut positions = vec![0];
        let mut stride = rows;
        let mut strides = Vec::new();
        for &length in self.row_shape() {
            strides.push((length, stride));
            stride *= length;
        }
        for (length, stride) in strides {
            positions = positions.iter().flat_map(|&position| (0..length).map(move |index| position + index * stride)).collect();
        }
        let mut row = Vec::with_capacity(positions.len() * size);
        for (index, record) in (0..rows).zip(1..) {
            row.clear();
            for &position in &positions {
                let start = (position + index) * size;
                row.extend_from_slice(self.raw.get(start..start + size).unwrap_or_default());
            }
            each(&row, record)?;
        }
        Ok(())
    }

    /// Reads the next row, or all rows if they are in Fortran order.
    fn read(&mut self, record: u64) -> Result<()> {
        let rows = if self.header.by_columns { self.rows() } else { 1 };
        // `open` checked that this does not overflow.
        let bytes = rows * self.row_size() * self.header.element.size();
        let read = self.source.fill(&mut self.raw, bytes as u64);
        read.map_err(|error| read_error(&self.source.path, Place::Record(record), error))?;
        if self.raw.len() < bytes {
            let what = format!("the file ends here, its header promises {} rows: fetch or save it again", self.rows());
            return Err(DataError::content(&self.source.path, Place::Record(record), what));
        }
        Ok(())
    }
}

/// Parses the Python literal of a header.
struct HeaderParser<'a> {
    rest: &'a [u8],
}

type Parsed<T> = std::result::Result<T, String>;

impl<'a> HeaderParser<'a> {
    fn new(text: &'a [u8]) -> Self {
        Self { rest: text }
    }

    /// Parses `{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }`, with keys in any order.
    fn header(mut self) -> Parsed<Header> {
        let (mut element, mut by_columns, mut shape) = (None, None, None);
        self.require(b'{')?;
        while !self.accept(b'}') {
            let key = self.string()?;
            self.require(b':')?;
            match key {
                b"descr" => element = Some(self.element()?),
                b"fortran_order" => by_columns = Some(self.boolean()?),
                b"shape" => shape = Some(self.shape()?),
                _ => return Err(format!("has the unknown key {:?}", String::from_utf8_lossy(key))),
            }
            if !self.accept(b',') {
                self.require(b'}')?;
                break;
            }
        }
        if !self.rest.trim_ascii().is_empty() {
            return Err("goes on behind its end: the file is damaged".into());
        }
        match (element, by_columns, shape) {
            (Some((element, big_endian)), Some(by_columns), Some(shape)) => Ok(Header { element, big_endian, by_columns, shape }),
            _ => Err("does not have all of descr, fortran_order and shape: the file is damaged".into()),
        }
    }

    fn accept(&mut self, byte: u8) -> bool {
        self.rest = self.rest.trim_ascii_start();
        match self.rest.split_first() {
            Some((&first, rest)) if first == byte => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    fn require(&mut self, byte: u8) -> Parsed<()> {
        if self.accept(byte) {
            Ok(())
        } else {
            Err(format!("has no {:?} where one belongs: the file is damaged", char::from(byte)))
        }
    }

    fn string(&mut self) -> Parsed<&'a [u8]> {
        let quote = if self.accept(b'"') {
            b'"'
        } else {
            self.require(b'\'')?;
            b'\''
        };
        let end = self.rest.iter().position(|&byte| byte == quote).ok_or("has a text without an end: the file is damaged")?;
        let (text, rest) = self.rest.split_at(end);
        self.rest = rest.get(1..).unwrap_or_default();
        Ok(text)
    }

    fn boolean(&mut self) -> Parsed<bool> {
        self.rest = self.rest.trim_ascii_start();
        for (word, value) in [(&b"True"[..], true), (b"False", false)] {
            if let Some(rest) = self.rest.strip_prefix(word) {
                self.rest = rest;
                return Ok(value);
            }
        }
        Err("has a fortran_order that is neither True nor False: the file is damaged".into())
    }

    fn element(&mut self) -> Parsed<(Element, bool)> {
        self.rest = self.rest.trim_ascii_start();
        if self.rest.starts_with(b"[") {
            return Err("describes a structured array: save its columns as one array of numbers".into());
        }
        let text = self.string()?;
        let (order, kind) = match text {
            [order @ (b'<' | b'>' | b'|' | b'='), kind @ ..] => (*order, kind),
            kind => (b'<', kind),
        };
        match Element::ALL.into_iter().find(|(name, _)| name.as_bytes() == kind) {
            Some((_, element)) => Ok((element, order == b'>')),
            None => {
                let text = String::from_utf8_lossy(text);
                Err(format!(
                    "says that the elements are {text:?}: only booleans, integers, float32 and float64 can be read; use astype"
                ))
            }
        }
    }

    fn shape(&mut self) -> Parsed<Vec<usize>> {
        let mut shape = Vec::new();
        self.require(b'(')?;
        while !self.accept(b')') {
            self.rest = self.rest.trim_ascii_start();
            let digits = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let (number, rest) = self.rest.split_at(digits);
            let number = std::str::from_utf8(number).ok().and_then(|number| number.parse().ok());
            shape.push(number.ok_or("has a shape that is not made of sizes: the file is damaged")?);
            if shape.len() > MAX_DIMENSIONS {
                return Err(format!("has a shape of more than {MAX_DIMENSIONS} dimensions: the file is damaged"));
            }
            // Python 2 wrote long integers with an `L`.
            self.rest = rest.strip_prefix(b"L").unwrap_or(rest);
            if !self.accept(b',') {
                self.require(b')')?;
                break;
            }
        }
        Ok(shape)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn file(version: u8, header: &str, data: &[u8]) -> Vec<u8> {
        let length = u16::try_from(header.len()).unwrap();
        let length = if version == 1 { length.to_le_bytes().to_vec() } else { u32::from(length).to_le_bytes().to_vec() };
        [MAGIC, &[version, 0], &length, header.as_bytes(), data].concat()
    }

    fn numbers(file: &[u8]) -> Result<(Vec<usize>, Vec<Vec<f64>>)> {
        let mut npy = Npy::open(Source::of_bytes("x.npy".as_ref(), file)?)?;
        let mut rows = Vec::new();
        npy.for_numbers(|row, _| {
            rows.push(row.to_vec());
            Ok(())
        })?;
        Ok((npy.row_shape().to_vec(), rows))
    }

    fn header(kind: &str, by_columns: bool, shape: &str) -> String {
        let order = if by_columns { "True" } else { "False" };
        format!("{{'descr': '{kind}', 'fortran_order': {order}, 'shape': {shape}, }}          \n")
    }

    #[test]
    fn every_kind_of_number_in_both_byte_orders() {
        let both = |kind: &str, little: &[u8]| {
            let mut big = little.to_vec();
            big.chunks_mut(little.len() / 2).for_each(<[u8]>::reverse);
            for (order, data) in [("<", little), (">", &big)] {
                for version in 1..=3 {
                    let found = numbers(&file(version, &header(&format!("{order}{kind}"), false, "(2,)"), data)).unwrap();
                    assert_eq!(
                        found,
                        (
                            vec![],
                            vec![
                                vec![1.0],
                                vec![if kind == "b1" {
                                    0.0
                                } else if kind.starts_with('u') {
                                    7.0
                                } else {
                                    -2.0
                                }]
                            ]
                        ),
                        "{kind}"
                    );
                }
            }
        };
        both("b1", &[1, 0]);
        both("u1", &[1, 7]);
        both("i1", &[1, 254]);
        both("u2", &[1_u16, 7].map(u16::to_le_bytes).concat());
        both("i2", &[1_i16, -2].map(i16::to_le_bytes).concat());
        both("u4", &[1_u32, 7].map(u32::to_le_bytes).concat());
        both("i4", &[1_i32, -2].map(i32::to_le_bytes).concat());
        both("u8", &[1_u64, 7].map(u64::to_le_bytes).concat());
        both("i8", &[1_i64, -2].map(i64::to_le_bytes).concat());
        both("f4", &[1_f32, -2.0].map(f32::to_le_bytes).concat());
        both("f8", &[1_f64, -2.0].map(f64::to_le_bytes).concat());
    }

    #[test]
    fn the_order_of_the_elements_does_not_matter() {
        // The array [[[0, 1], [2, 3], [4, 5]], [[6, 7], [8, 9], [10, 11]]].
        let rows: Vec<u8> = (0..12).collect();
        let columns = [0, 6, 2, 8, 4, 10, 1, 7, 3, 9, 5, 11];
        let of_rows = numbers(&file(1, &header("|u1", false, "(2, 3, 2)"), &rows)).unwrap();
        assert_eq!(of_rows.1[1], [6.0, 7.0, 8.0, 9.0, 10.0, 11.0]);
        assert_eq!(numbers(&file(1, &header("|u1", true, "(2L, 3L, 2L)"), &columns)).unwrap(), of_rows);
        // The same bytes in the wrong order.
        assert_ne!(numbers(&file(1, &header("|u1", true, "(2, 3, 2)"), &rows)).unwrap(), of_rows);
        let one = numbers(&file(1, &header("|u1", true, "(1, 2, 3)"), &[0, 3, 1, 4, 2, 5])).unwrap();
        assert_eq!(one.1, [[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]]);
    }

    #[test]
    fn headers_that_lie_or_say_something_else_are_refused() {
        let f8 = |shape: &str| header("<f8", false, shape);
        let cases = [
            (file(1, &f8("(3,)"), &[0; 16]), "a file of this size cannot hold"),
            (file(1, &f8("(4000000000, 4000000000, 4000000000)"), &[0; 16]), "larger than any file"),
            (file(1, &f8("(1000000000000,)"), &[0; 16]), "a file of this size cannot hold"),
            (file(1, &f8("(2,)"), &[0; 17]), "there is more after the 2 records"),
            (file(1, &f8("(0, 3)"), &[]), "has no numbers"),
            (file(1, &f8("()"), &[0; 8]), "a single number"),
            (file(1, &f8("(99999999999999999999999,)"), &[0; 8]), "not made of sizes"),
            (file(1, &f8("(-1,)"), &[0; 8]), "not made of sizes"),
            (file(1, &f8(&format!("({})", "1,".repeat(17))), &[0; 8]), "more than 16 dimensions"),
            (file(1, &header("<c16", false, "(1,)"), &[0; 16]), "\"<c16\": only"),
            (file(1, &header("|O", false, "(1,)"), &[0; 16]), "\"|O\": only"),
            (file(1, "{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,), }", &[0; 8]), "structured"),
            (file(1, "{'descr': '<f8', 'shape': (1,), }", &[0; 8]), "does not have all of"),
            (file(1, "{'descr': '<f8", &[0; 8]), "without an end"),
            (file(1, "{'x': 1}", &[0; 8]), "unknown key \"x\""),
            (file(4, &f8("(1,)"), &[0; 8]), "version 4 of NPY"),
            (b"\x93NUMPY\x02\0\xff\xff\xff\xff{".to_vec(), "header of 4294967295 bytes"),
            (b"\x93NUMPY\x01\0\xff\xff{".to_vec(), "ends inside the NPY header"),
            (b"\x93NUM".to_vec(), "ends inside the NPY header"),
            (b"1,2,3,4,5\n".to_vec(), "no NPY file"),
            (file(1, &f8("(2, 1)"), &[1_f64, f64::NAN].map(f64::to_le_bytes).concat()), "x.npy, record 2: number 1 is NaN"),
        ];
        for (file, says) in cases {
            let message = numbers(&file).unwrap_err().to_string();
            assert!(message.starts_with("x.npy") && message.contains(says), "{message} must say {says}");
        }
    }
}
