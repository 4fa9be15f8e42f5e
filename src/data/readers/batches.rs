//! Reads tables in columns: Parquet and Arrow files, a batch of rows at a time.

use crate::data::error::{DataError, Place, Result};
use crate::data::readers::arrow::ArrowStream;
use crate::data::readers::cells::Cells;
use crate::data::readers::columns::{Column, Columns, Role, TableLayout};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, Float64Array, RecordBatch, StringArray};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{ArrowError, DataType, SchemaRef, TimeUnit};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::borrow::Cow;
use std::cell::Cell;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Once;

/// Rows that are decoded together.
const BATCH: usize = 8192;

/// A format of tables in columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchFormat {
    /// Parquet.
    Parquet,
    /// An Arrow file, or Feather of version 2.
    ArrowFile,
    /// A stream of Arrow batches.
    ArrowStream,
}

/// The batches of a table.
pub(crate) struct Batches {
    path: PathBuf,
    /// The places of the columns that are read.
    read: Vec<usize>,
    batches: Box<dyn Iterator<Item = std::result::Result<RecordBatch, ArrowError>>>,
    /// The number of rows, if the file says it.
    count: Option<usize>,
}

/// A row of a batch.
pub(crate) struct BatchRow<'a> {
    pub path: &'a Path,
    pub index: u64,
    row: usize,
    columns: &'a [(usize, Role, Values)],
}

/// The values of a column in a batch.
enum Values {
    Numbers(Float64Array),
    Texts(StringArray),
    Missing,
}

/// A file whose schema is known, and of which no batch is decoded yet.
enum Opened {
    Parquet(ParquetRecordBatchReaderBuilder<File>),
    Arrow(ArrowStream),
}

impl Opened {
    fn new(path: &Path, format: BatchFormat) -> Result<Self> {
        match format {
            BatchFormat::Parquet => {
                let file = File::open(path).map_err(DataError::io(path, "open"))?;
                guarded(path, || Ok(Self::Parquet(ParquetRecordBatchReaderBuilder::try_new(file)?)))
            }
            BatchFormat::ArrowFile | BatchFormat::ArrowStream => {
                guarded(path, || ArrowStream::open(path, format == BatchFormat::ArrowFile).map(Self::Arrow))
            }
        }
    }

    fn schema(&self) -> &SchemaRef {
        match self {
            Self::Parquet(builder) => builder.schema(),
            Self::Arrow(stream) => stream.schema(),
        }
    }

    fn names(&self) -> Vec<String> {
        self.schema().fields().iter().map(|field| field.name().clone()).collect()
    }
}

impl Batches {
    /// Opens a file and finds its columns.
    pub(crate) fn open(path: &Path, format: BatchFormat, layout: &TableLayout) -> Result<(Self, Columns)> {
        let wrong = |what: String| DataError::content(path, Place::File, what);
        let opened = Opened::new(path, format)?;
        let names = opened.names();
        if layout.label == Column::Last && names.last().is_some_and(|name| name.starts_with("__index_level_")) {
            let what =
                "the last column is an index of pandas: name the label with --label, and leave the index out with --drop last";
            return Err(wrong(what.into()));
        }
        let columns = layout.columns(&names, wrong)?.named(names, wrong)?;
        let read: Vec<usize> = (0..columns.roles.len()).filter(|&column| columns.roles[column] != Role::Dropped).collect();
        for &column in &read {
            check_type(columns.roles[column], opened.schema().field(column).data_type()).map_err(|what| {
                let (name, option) = columns.described(column);
                wrong(format!("{name} {}", what.replace("COLUMN", &option)))
            })?;
        }
        let (batches, count): (Box<dyn Iterator<Item = _>>, _) = match opened {
            Opened::Parquet(builder) => {
                let count = usize::try_from(builder.metadata().file_metadata().num_rows()).ok();
                let mask = ProjectionMask::roots(builder.parquet_schema(), read.iter().copied());
                let reader = guarded(path, || Ok(builder.with_projection(mask).with_batch_size(BATCH).build()?))?;
                (Box::new(reader), count)
            }
            Opened::Arrow(stream) => {
                let kept = read.clone();
                (Box::new(stream.map(move |batch| batch?.project(&kept))), None)
            }
        };
        Ok((Self { path: path.to_path_buf(), read, batches, count }, columns))
    }

    /// The names of the columns of a file.
    pub(crate) fn names(path: &Path, format: BatchFormat) -> Result<Vec<String>> {
        Ok(Opened::new(path, format)?.names())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Counts the rows.
    pub(crate) fn count(mut self) -> Result<usize> {
        if let Some(count) = self.count {
            return Ok(count);
        }
        let mut rows = 0;
        while let Some(batch) = self.next()? {
            rows += batch.num_rows();
        }
        Ok(rows)
    }

    fn next(&mut self) -> Result<Option<RecordBatch>> {
        let Self { path, batches, .. } = self;
        guarded(path, || batches.next().transpose())
    }

    /// Calls `each` with every row and its place.
    pub(crate) fn rows(&mut self, roles: &[Role], mut each: impl FnMut(BatchRow<'_>, Place) -> Result<()>) -> Result<()> {
        let mut index = 0;
        let path = self.path.clone();
        while let Some(batch) = self.next()? {
            let read = self.read.iter().zip(batch.columns());
            let columns = read.map(|(&column, values)| Ok((column, roles[column], Values::of(values, roles[column])?)));
            let columns = guarded(&path, || columns.collect::<std::result::Result<Vec<_>, ArrowError>>())?;
            for row in 0..batch.num_rows() {
                each(BatchRow { path: &path, index, row, columns: &columns }, Place::Record(index + 1))?;
                index += 1;
            }
        }
        if index == 0 {
            return Err(DataError::content(&path, Place::File, "the file has no rows"));
        }
        Ok(())
    }
}

impl BatchRow<'_> {
    /// Stores the values of the row; the error is the column and the text of a value that cannot be stored.
    pub(crate) fn store(&self, cells: &mut Cells<'_>) -> std::result::Result<(), (usize, Vec<u8>)> {
        for (column, role, values) in self.columns {
            let field: Cow<'_, [u8]> = match values {
                Values::Numbers(numbers) if !numbers.is_null(self.row) => {
                    let value = numbers.value(self.row);
                    let stored = if *role == Role::Date { Cells::store } else { Cells::number };
                    if value.is_finite() && stored(cells, value).is_some() {
                        continue;
                    }
                    // NaN stands for a missing value.
                    if value.is_nan() { Cow::Borrowed(b"") } else { Cow::Owned(value.to_string().into_bytes()) }
                }
                Values::Texts(texts) if !texts.is_null(self.row) => Cow::Borrowed(texts.value(self.row).trim().as_bytes()),
                Values::Numbers(_) | Values::Texts(_) | Values::Missing => Cow::Borrowed(b""),
            };
            if cells.field(&field, *role).is_none() {
                return Err((*column, field.into_owned()));
            }
        }
        Ok(())
    }
}

impl Values {
    /// The values of a column with this role.
    fn of(column: &ArrayRef, role: Role) -> std::result::Result<Self, ArrowError> {
        let cast = |to: &DataType| cast_with_options(column, to, &CastOptions { safe: false, ..CastOptions::default() });
        let kind = column.data_type();
        if *kind == DataType::Null {
            return Ok(Self::Missing);
        }
        if role == Role::Date && kind.is_temporal() {
            return days(column).map(Self::Numbers);
        }
        if role == Role::Feature && is_number(kind) {
            return Ok(Self::Numbers(cast(&DataType::Float64)?.as_primitive::<Float64Type>().clone()));
        }
        let texts = cast(&DataType::Utf8)?.as_string::<i32>().clone();
        // Whole numbers of a column that became floating because a value is missing.
        let whole = |text: &str| text.strip_suffix(".0").unwrap_or(text).to_owned();
        Ok(Self::Texts(if kind.is_floating() { texts.iter().map(|text| text.map(whole)).collect() } else { texts }))
    }
}

fn is_number(kind: &DataType) -> bool {
    kind.is_numeric() || *kind == DataType::Boolean
}

/// The days since 1970.
fn days(column: &ArrayRef) -> std::result::Result<Float64Array, ArrowError> {
    let units_a_day = match column.data_type() {
        DataType::Date32 => 1.0,
        DataType::Timestamp(TimeUnit::Second, _) => 86_400.0,
        DataType::Timestamp(TimeUnit::Millisecond, _) | DataType::Date64 => 86_400e3,
        DataType::Timestamp(TimeUnit::Microsecond, _) => 86_400e6,
        _ => 86_400e9,
    };
    // Dates of 32 bits become integers of 64 bits by way of those of 32 bits.
    let column =
        if column.data_type() == &DataType::Date32 { arrow_cast::cast(column, &DataType::Int32)? } else { column.clone() };
    let units = arrow_cast::cast(&column, &DataType::Int64)?;
    Ok(units.as_primitive::<Int64Type>().iter().map(|value| value.map(|value| value as f64 / units_a_day)).collect())
}

/// Whether a column with this role may have this type; the error says why not. COLUMN stands for the name of the column in options.
fn check_type(role: Role, kind: &DataType) -> std::result::Result<(), &'static str> {
    let kind = match kind {
        DataType::Dictionary(_, values) => values,
        kind => kind,
    };
    let is_text = matches!(kind, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    let is_date = matches!(kind, DataType::Date32 | DataType::Date64 | DataType::Timestamp(..));
    match role {
        Role::Dropped => Ok(()),
        _ if *kind == DataType::Null || is_text => Ok(()),
        Role::Date if is_date => Ok(()),
        Role::Date => Err("holds no dates"),
        Role::Feature if is_date => {
            Err("holds dates: read them as days since 1970 with --date COLUMN, or leave them out with --drop COLUMN")
        }
        _ if is_date || is_number(kind) => Ok(()),
        _ => Err("holds lists, bytes or structures, which cannot be read: leave it out with --drop COLUMN"),
    }
}

thread_local! {
    /// Whether a decoder runs on this thread.
    static DECODES: Cell<bool> = const { Cell::new(false) };
}

/// Silences panics of decoders, which become errors.
fn silence_decoders() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let print = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !DECODES.get() {
                print(info);
            }
        }));
    });
}

/// Runs a decoder. Decoders panic at some damaged files.
fn guarded<T>(path: &Path, decode: impl FnOnce() -> std::result::Result<T, ArrowError>) -> Result<T> {
    const MAX_SHOWN: usize = 160;
    silence_decoders();
    DECODES.set(true);
    let decoded = catch_unwind(AssertUnwindSafe(decode));
    DECODES.set(false);
    let what: String = match decoded {
        Ok(Ok(decoded)) => return Ok(decoded),
        Ok(Err(error)) => error.to_string().lines().next().unwrap_or_default().chars().take(MAX_SHOWN).collect(),
        Err(_) => "its content does not fit its description".into(),
    };
    // The decoders have no kind of error for what they were not built for.
    let is_unsupported = ["NYI", "not supported", "Disabled feature", "not yet"].iter().any(|words| what.contains(words));
    Err(DataError::content(
        path,
        Place::File,
        match is_unsupported {
            true => {
                format!("the file has a form that cannot be read here ({what}): save it with another compression or encoding")
            }
            false => format!("the file is damaged or cut short ({what}): fetch or save it again"),
        },
    ))
}
