//! Damaged input of every format: import succeeds or reports the error, without a panic, in bounded time and memory, and leaves no files.
//!
//! A program of its own with one test: it measures the memory and the processor time of its whole process.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use arrow_array::{ArrayRef, Float64Array, Int32Array, RecordBatch, StringArray};
use arrow_ipc::writer::{FileWriter, StreamWriter};
use mpibayes::data::corpus::{
    BagFormat, Corpus, CorpusImport, Input, StopWords, TestSize, Text, Vocabulary, WordFilter, import_corpus,
};
use mpibayes::data::{
    ArrayFile, ArrayImport, ArrayPair, CifarImport, Column, ColumnOptions, Dataset, IdxPair, LibsvmImport, Missing, PngImport,
    Result, Scaling, TableImport, TableLayout, Task, TestRows, import_arrays, import_cifar, import_idx, import_libsvm,
    import_png, import_table,
};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts the bytes that are allocated, and the most that ever were.
struct Counting;

static CURRENT_BYTES: AtomicUsize = AtomicUsize::new(0);
static PEAK_BYTES: AtomicUsize = AtomicUsize::new(0);

// SAFETY: all requests go to the system's allocator as they are.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        PEAK_BYTES.fetch_max(CURRENT_BYTES.fetch_add(layout.size(), Ordering::Relaxed) + layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        CURRENT_BYTES.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Corruptions of each format.
const ROUNDS: u64 = 1_000;
/// What an import may take of the Rust heap beside multiples of its input, most of all the window of a text file, the buffers and
/// state of a decompressor, and blocks of rows on their way to the file.
const CONSTANT: usize = 2 << 20;
/// Numbers of eight bytes from digits of one, four statistics for each column, and copies of them while buffers grow. What a
/// compressed file holds counts as input too.
const MULTIPLE: usize = 64;
/// Seconds of processor time, which a busy machine does not change. An import of a few kilobytes takes milliseconds.
const MAX_SECONDS: f64 = 10.0;

/// The processor time of this process in seconds.
fn processor_time() -> f64 {
    // SAFETY: plain numbers, for which zeros are values, filled in by the call.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        assert_eq!(libc::getrusage(libc::RUSAGE_SELF, &mut usage), 0);
        usage
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 * 1e-6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

/// A format: its name, its files, which of them are damaged in turn, and how they are imported from a folder.
struct Format {
    name: &'static str,
    files: Vec<(&'static str, Vec<u8>)>,
    import: fn(&Path, &Path) -> Result<()>,
    /// Whether nearly everything is what it should be.
    patient: bool,
}

/// A format is a line here.
fn formats() -> Vec<Format> {
    let csv = table(",", "\"a \"\"b\"\"\",x2,x3,kind\n");
    let format = |name, files, import| Format { name, files, import, patient: name == "text" };
    vec![
        format("csv", vec![("x", csv.clone())], import_text),
        format("tsv", vec![("x", table("\t", "x1\tx2\tx3\tkind\n"))], import_text),
        format("blanks", vec![("x", table("  ", ""))], import_text),
        format("csv.gz", vec![("x", gzip(&csv))], import_text),
        format("test rows", vec![("rows", b"1 4 7\n2 5 8\n".to_vec()), ("x", csv)], import_text_with_rows),
        format("parquet", vec![("x", parquet(Compression::SNAPPY))], import_columns),
        format("parquet, zstd", vec![("x", parquet(Compression::ZSTD(Default::default())))], import_columns),
        format("arrow file", vec![("x", arrow_file())], import_columns),
        format("arrow stream", vec![("x", arrow_stream())], import_columns),
        format("npy", vec![("x", npy_features()), ("y", npy("<i4", "(40,)", &integers(40)))], import_npy),
        format("npy.gz", vec![("x", gzip(&npy_features())), ("y", npy("<i4", "(40,)", &integers(40)))], import_npy),
        format("npz", vec![("x", npz())], import_npz),
        format("libsvm", vec![("x", libsvm())], import_sparse),
        format("libsvm.gz", vec![("x", gzip(&libsvm()))], import_sparse),
        format("docword", vec![("x", docword("40\n30\n120\n")), ("v", vocabulary())], import_docword),
        format("docword.gz", vec![("x", gzip(&docword("40\n30\n120\n"))), ("v", gzip(&vocabulary()))], import_docword),
        format("lda-c", vec![("x", lda_c()), ("v", vocabulary())], import_lda_c),
        format("matrix market", vec![("x", docword(MATRIX)), ("v", vocabulary())], import_matrix),
        format("text", vec![("x", text()), ("s", b"with\nnumber".to_vec())], import_words),
        format("text.gz", vec![("x", gzip(&text())), ("s", gzip(b"with\nnumber"))], import_words),
        format("text in a folder", vec![("f/1", gzip(&text())), ("f/2", text()), ("f/3", text())], import_folder),
        format("idx", vec![("x", idx(&[40, 3, 4], 480)), ("y", idx(&[40], 40))], import_images),
        format("npy images", vec![("x", npy_images()), ("y", npy("<i4", "(40,)", &integers(40)))], import_npy),
        format("cifar", vec![("x", cifar())], import_records),
        format("cifar.tar", vec![("x", cifar_archive())], import_records),
        format("cifar.tar.gz", vec![("x", gzip(&cifar_archive()))], import_records),
        format("png", vec![("p/a/1.png", png(1)), ("p/a/2.png", png(2)), ("p/b/1.png", png(3))], import_png_files),
    ]
}

fn table(delimiter: &str, header: &str) -> Vec<u8> {
    let row = |i: usize| {
        let fields = [
            (i * i).to_string(),
            format!("{}.{:03}", i % 7, i * 37 % 1000),
            format!("-{i}e-2"),
            ["a", "b b"][i % 2].replace(' ', if delimiter == "  " { "" } else { " " }),
        ];
        fields.join(delimiter) + "\n"
    };
    (header.to_owned() + &(0..60).map(row).collect::<String>()).into_bytes()
}

/// Numbers, whole numbers with gaps, texts and classes.
fn batch() -> RecordBatch {
    let numbers = Float64Array::from_iter_values((0..60).map(|row| f64::from(row * 7 % 11) / 3.0));
    let whole: Int32Array = (0..60).map(|row| (row % 9 != 5).then_some(row * 5 % 17)).collect();
    let texts = StringArray::from_iter_values((0..60).map(|row| ["north", "east", "south, or so"][row % 3]));
    let classes = StringArray::from_iter_values((0..60).map(|row| ["a", "b"][row * 3 / 7 % 2]));
    let columns: [(&str, ArrayRef); 4] =
        [("x", Arc::new(numbers)), ("n", Arc::new(whole)), ("region", Arc::new(texts)), ("kind", Arc::new(classes))];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn parquet(compression: Compression) -> Vec<u8> {
    let (batch, mut file) = (batch(), Vec::new());
    let properties = WriterProperties::builder().set_compression(compression).set_max_row_group_row_count(Some(32)).build();
    let mut writer = ArrowWriter::try_new(&mut file, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    file
}

fn arrow_file() -> Vec<u8> {
    let (batch, mut file) = (batch(), Vec::new());
    let mut writer = FileWriter::try_new(&mut file, &batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    drop(writer);
    file
}

fn arrow_stream() -> Vec<u8> {
    let (batch, mut file) = (batch(), Vec::new());
    let mut writer = StreamWriter::try_new(&mut file, &batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    drop(writer);
    file
}

fn import_columns(folder: &Path, output: &Path) -> Result<()> {
    let columns = ColumnOptions {
        categorical: vec![Column::Name("region".into())],
        missing: Missing::MeanAndFlag,
        ..ColumnOptions::default()
    };
    let (layout, scaling) = (TableLayout::default(), Scaling::Standardize);
    let (train, test, task) = (vec![folder.join("x")], TestRows::None, Task::Classification);
    import_table(&TableImport { train, test, task, layout, columns, scaling }, output).map(drop)
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

fn npy(kind: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}\n");
    let length = u16::try_from(header.len()).unwrap().to_le_bytes();
    [b"\x93NUMPY\x01\0", &length[..], header.as_bytes(), data].concat()
}

fn npy_features() -> Vec<u8> {
    npy("<f8", "(40, 3)", &(0..120).flat_map(|i| (f64::from(i) / 8.0).to_le_bytes()).collect::<Vec<_>>())
}

fn integers(count: i32) -> Vec<u8> {
    (0..count).flat_map(|i| (i % 3).to_le_bytes()).collect()
}

fn npz() -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, array, method) in [
        ("x", npy_features(), zip::CompressionMethod::Deflated),
        ("y", npy("<i4", "(40,)", &integers(40)), zip::CompressionMethod::Stored),
    ] {
        let options = zip::write::SimpleFileOptions::default().compression_method(method);
        archive.start_file(format!("{name}.npy"), options).unwrap();
        archive.write_all(&array).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

fn idx(shape: &[u32], count: u32) -> Vec<u8> {
    let mut file = vec![0, 0, 8, u8::try_from(shape.len()).unwrap()];
    shape.iter().for_each(|size| file.extend(size.to_be_bytes()));
    file.extend((0..count).map(|i| (i % 5) as u8));
    file
}

fn npy_images() -> Vec<u8> {
    npy("|u1", "(40, 3, 2, 5)", &(0..1200_u32).map(|i| (i % 251) as u8).collect::<Vec<_>>())
}

/// Four records of CIFAR-10.
fn cifar() -> Vec<u8> {
    (0..4_u8).flat_map(|label| std::iter::once(label).chain((0..3072_u32).map(move |i| (i % 251) as u8))).collect()
}

fn cifar_archive() -> Vec<u8> {
    let names = "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n";
    let mut archive = tar::Builder::new(Vec::new());
    for (name, content) in [("data_batch_1.bin", &cifar()[..]), ("batches.meta.txt", names.as_bytes())] {
        let mut header = tar::Header::new_ustar();
        header.set_size(content.len() as u64);
        archive.append_data(&mut header, name, content).unwrap();
    }
    archive.into_inner().unwrap()
}

fn png(color: u8) -> Vec<u8> {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, 16, 8);
    encoder.set_color(png::ColorType::Rgb);
    let pixels: Vec<u8> = (0..16 * 8 * 3).map(|i: u32| (i % 251) as u8 ^ color).collect();
    encoder.write_header().unwrap().write_image_data(&pixels).unwrap();
    file
}

fn import_text(folder: &Path, output: &Path) -> Result<()> {
    import_text_with(TestRows::None, folder, output)
}

fn import_text_with_rows(folder: &Path, output: &Path) -> Result<()> {
    import_text_with(TestRows::Rows { file: folder.join("rows"), split: None }, folder, output)
}

fn import_text_with(test: TestRows, folder: &Path, output: &Path) -> Result<()> {
    let (train, task, layout) = (folder.join("x"), Task::Classification, TableLayout::default());
    import_table(
        &TableImport { train: vec![train], test, task, layout, columns: ColumnOptions::default(), scaling: Scaling::Standardize },
        output,
    )
    .map(drop)
}

fn import_npy(folder: &Path, output: &Path) -> Result<()> {
    let train = ArrayPair { features: ArrayFile::npy(&folder.join("x")), targets: ArrayFile::npy(&folder.join("y")) };
    import_arrays(&ArrayImport { train, test: TestRows::None, task: Task::Classification, scaling: None }, output).map(drop)
}

fn import_npz(folder: &Path, output: &Path) -> Result<()> {
    let (train, test) = ArrayPair::in_npz(&folder.join("x"), None, None)?;
    let test = test.map_or(TestRows::None, TestRows::File);
    import_arrays(&ArrayImport { train, test, task: Task::Classification, scaling: None }, output).map(drop)
}

/// Forty rows of three classes.
fn libsvm() -> Vec<u8> {
    let row = |row: usize| format!("{} {}:{}.5 {}:-1e{} # row {row}\n", row % 3, row % 7 + 1, row, row % 5 + 9, row % 4);
    (0..40).map(row).collect::<String>().into_bytes()
}

fn import_sparse(folder: &Path, output: &Path) -> Result<()> {
    let (test, task) = (TestRows::Fraction(0.2, mpibayes::random::Seed(3)), Task::Classification);
    import_libsvm(&LibsvmImport { train: folder.join("x"), test, task, features: None, scaling: Scaling::MaxAbs }, output)
}

const MATRIX: &str = "%%MatrixMarket matrix coordinate integer general\n% made up\n40 30 120\n";

/// Forty documents of three words each, behind a header.
fn docword(header: &str) -> Vec<u8> {
    let line = |entry: usize| format!("{} {} {}\n", entry / 3 + 1, entry * 7 % 30 + 1, entry % 5 + 1);
    (header.to_owned() + &(0..120).map(line).collect::<String>()).into_bytes()
}

fn lda_c() -> Vec<u8> {
    let document = |row: usize| format!("3 {}:2 {}:{} {}:1\n", row % 10, row % 7 + 10, row % 4 + 1, row % 13 + 17);
    (0..40).map(document).collect::<String>().into_bytes()
}

fn vocabulary() -> Vec<u8> {
    (0..30).map(|word| format!("word{word}\n")).collect::<String>().into_bytes()
}

fn import_documents(folder: &Path, output: &Path, format: BagFormat) -> Result<()> {
    import_input(Input::Counted { documents: folder.join("x"), format, vocabulary: Some(folder.join("v")) }, output)
}

fn import_input(input: Input, output: &Path) -> Result<()> {
    let (held_out, seed) = (TestSize::Share(0.2), mpibayes::random::Seed(3));
    import_corpus(&CorpusImport { input, held_out, scored_share: 0.1, seed }, output).map(drop)
}

fn import_docword(folder: &Path, output: &Path) -> Result<()> {
    import_documents(folder, output, BagFormat::Docword)
}

fn import_lda_c(folder: &Path, output: &Path) -> Result<()> {
    import_documents(folder, output, BagFormat::LdaC)
}

/// Forty documents, some of whose letters are not ASCII.
fn text() -> Vec<u8> {
    let word = |number: usize| char::from_u32(0x61 + u32::try_from(number % 26).unwrap()).unwrap().to_string().repeat(3);
    let line = |row: usize| format!("Document with na\u{ef}ve {} number {} {row}\n", word(row), word(row * 7));
    (0..40).map(line).collect::<String>().into_bytes()
}

fn import_text_of(input: PathBuf, stop_words: StopWords, output: &Path) -> Result<()> {
    let filter = WordFilter { stop_words, least_documents: 2, most_share: 1.0, most_words: 20 };
    import_input(Input::Text(Text { inputs: vec![input], vocabulary: Vocabulary::Chosen { shortest: 3, filter } }), output)
}

fn import_words(folder: &Path, output: &Path) -> Result<()> {
    import_text_of(folder.join("x"), StopWords::File(folder.join("s")), output)
}

/// Of three documents a fifth is one.
fn import_folder(folder: &Path, output: &Path) -> Result<()> {
    import_text_of(folder.join("f"), StopWords::None, output)
}

fn import_matrix(folder: &Path, output: &Path) -> Result<()> {
    import_documents(folder, output, BagFormat::MatrixMarket)
}

/// Opens what an import has made.
fn open(output: &Path) -> Result<()> {
    if Corpus::is_corpus(output) { Corpus::open(output).map(drop) } else { Dataset::open(output).map(drop) }
}

fn import_images(folder: &Path, output: &Path) -> Result<()> {
    let pair = IdxPair { images: folder.join("x"), labels: folder.join("y") };
    import_idx(&pair, None, Scaling::Pixels, output)
}

fn import_records(folder: &Path, output: &Path) -> Result<()> {
    import_cifar(&CifarImport { train: vec![folder.join("x")], ..CifarImport::default() }, output).map(drop)
}

fn import_png_files(folder: &Path, output: &Path) -> Result<()> {
    import_png(&PngImport { train: folder.join("p"), test: None, scaling: None }, output).map(drop)
}

/// Damages a file in one way or in a few.
fn damage(file: &mut Vec<u8>, random: &mut SmallRng) {
    const BYTES: &[u8] = b"\0\x01\x7f\x80\xff\n\r\t ,;\"'-+.eE0919()[]{}:|\x1f\x8b";
    const INSERTS: [&[u8]; 10] = [
        b"1e999",
        b"99999999999999999999999999999999",
        b"nan",
        b"\"",
        b"\n\n\n",
        b",,,,",
        b"\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\x7f\xff\xff\xff",
        b"4294967295, ",
        b"\x1f\x8b\x08\0",
    ];
    for _ in 0..random.random_range(1..4) {
        if file.is_empty() {
            return;
        }
        let at = random.random_range(0..file.len());
        let span = at..(at + random.random_range(1..64)).min(file.len());
        match random.random_range(0..8) {
            0 => file[at] ^= 1 << random.random_range(0..8),
            1 => file[at] = BYTES[random.random_range(0..BYTES.len())],
            2 => file.truncate(at),
            3 => drop(file.drain(span)),
            4 => {
                let copy = file[span].to_vec();
                let to = random.random_range(0..=file.len());
                file.splice(to..to, copy);
            }
            5 => drop(file.splice(at..at, INSERTS[random.random_range(0..INSERTS.len())].iter().copied())),
            6 => {
                // Headers stand at the start.
                let at = at % 100.min(file.len());
                file[at] = random.random();
            }
            _ => {
                let other = random.random_range(0..file.len());
                let end = other.max(at);
                drop(file.splice(at.min(other)..end, BYTES.iter().copied()));
            }
        }
    }
}

/// The size of what is read when these bytes are.
fn uncompressed(file: &[u8]) -> usize {
    let mut content = Vec::new();
    // What comes before the damage counts.
    let _ = std::io::Read::read_to_end(&mut flate2::bufread::MultiGzDecoder::new(file), &mut content);
    file.len() + content.len()
}

#[test]
fn damaged_files_are_imported_or_refused() {
    // In memory where that can be: thousands of files are made durable here.
    let shared = Path::new("/dev/shm");
    let folder = if shared.is_dir() { tempfile::tempdir_in(shared) } else { tempfile::tempdir() }.unwrap();
    let output = folder.path().join("out.h5");
    for format in formats() {
        let write = |files: &[(&str, Vec<u8>)]| {
            for (name, content) in files {
                let path = folder.path().join(name);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, content).unwrap();
            }
        };
        write(&format.files);
        (format.import)(folder.path(), &output).unwrap_or_else(|error| panic!("{}, undamaged: {error}", format.name));
        open(&output).unwrap();
        std::fs::remove_file(&output).unwrap();
        let (mut refused, mut most) = (0, 0);
        for round in 0..ROUNDS {
            let mut random = SmallRng::seed_from_u64(round);
            let mut files = format.files.clone();
            let which = random.random_range(0..files.len());
            damage(&mut files[which].1, &mut random);
            write(&files);
            let size: usize = files.iter().map(|(_, content)| uncompressed(content)).sum();
            let before = CURRENT_BYTES.load(Ordering::Relaxed);
            PEAK_BYTES.store(before, Ordering::Relaxed);
            let start = processor_time();
            let result = (format.import)(folder.path(), &output);
            let (took, used) = (processor_time() - start, PEAK_BYTES.load(Ordering::Relaxed) - before);
            let what = format!("{} round {round}: {result:?}", format.name);
            assert!(took < MAX_SECONDS, "{took} s for {what}");
            // The library for Arrow reserves up to 128 MiB for a message that is incomplete.
            let reserved = if format.name.starts_with("arrow") { 1 << 27 } else { 0 };
            assert!(used < CONSTANT + reserved + MULTIPLE * size, "{used} bytes for {size} bytes of {what}");
            most = most.max(used);
            match result {
                Ok(()) => {
                    open(&output).unwrap();
                    std::fs::remove_file(&output).unwrap();
                }
                Err(error) => {
                    refused += 1;
                    let message = error.to_string();
                    assert!(!message.contains('\n') && message.len() < 500, "{what}");
                    // Which file it is, unless the request as a whole is at fault.
                    assert!(message.starts_with(&folder.path().display().to_string()), "{what}");
                }
            }
            let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            assert!(left.iter().all(|name| !name.to_string_lossy().starts_with("out")), "{left:?} stayed after {what}");
        }
        println!("{}: {refused} of {ROUNDS} refused, at most {most} bytes", format.name);
        // The damage is neither harmless nor always fatal, or the test would show nothing.
        let least = if format.patient { 1 } else { ROUNDS / 5 };
        assert!((least..ROUNDS).contains(&refused), "{}: {refused} refused", format.name);
    }
}
