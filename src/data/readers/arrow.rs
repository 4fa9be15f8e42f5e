//! Reads Arrow streams and files without trust in the sizes that they declare.

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::reader::StreamDecoder;
use arrow_schema::{ArrowError, SchemaRef};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// Bytes of a read.
const CHUNK: u64 = 1 << 20;
/// What begins and ends a file.
const MAGIC: &[u8; 6] = b"ARROW1";
/// The stream of a file begins within this many bytes.
const MAX_PADDING: u64 = 256;
/// The length of the footer's size and the magic bytes after it.
const TRAILER: u64 = 10;

/// The batches of an Arrow stream.
pub(crate) struct ArrowStream {
    reader: std::io::Take<File>,
    decoder: StreamDecoder,
    chunk: Buffer,
    schema: SchemaRef,
    is_file: bool,
    /// A batch that was decoded with the schema.
    first: Option<RecordBatch>,
}

impl ArrowStream {
    /// Opens a stream, or a file, whose content is a stream between the magic bytes and a footer.
    pub(crate) fn open(path: &Path, is_file: bool) -> Result<Self, ArrowError> {
        let mut file = File::open(path)?;
        let length = if is_file { stream_length(&mut file)? } else { u64::MAX };
        let (reader, decoder, chunk) = (file.take(length), StreamDecoder::new(), Buffer::default());
        let mut stream =
            Self { reader, decoder, chunk, schema: SchemaRef::new(arrow_schema::Schema::empty()), is_file, first: None };
        stream.first = stream.decode_until(|decoder| decoder.schema().is_some())?;
        stream.schema = stream.decoder.schema().ok_or_else(|| ArrowError::IpcError("there is no schema".into()))?;
        Ok(stream)
    }

    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Decodes up to the next batch, which it returns, or until the decoder is as wanted, or to the end.
    fn decode_until(&mut self, is_done: impl Fn(&StreamDecoder) -> bool) -> Result<Option<RecordBatch>, ArrowError> {
        loop {
            if self.chunk.is_empty() {
                let mut bytes = Vec::new();
                self.reader.by_ref().take(CHUNK).read_to_end(&mut bytes)?;
                if bytes.is_empty() {
                    self.decoder.finish()?;
                    return Ok(None);
                }
                self.chunk = Buffer::from_vec(bytes);
            }
            let batch = match self.decoder.decode(&mut self.chunk) {
                // Files may have more bytes after the mark that ends the stream.
                Err(_) if self.is_file && self.decoder.finish().is_ok() => return Ok(None),
                batch => batch?,
            };
            if batch.is_some() || is_done(&self.decoder) {
                return Ok(batch);
            }
        }
    }
}

impl Iterator for ArrowStream {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.first.take() {
            Some(batch) => Some(Ok(batch)),
            None => self.decode_until(|_| false).transpose(),
        }
    }
}

/// The length of the stream in a file, which is then read from there.
fn stream_length(file: &mut File) -> Result<u64, ArrowError> {
    let mut head = Vec::new();
    file.by_ref().take(MAX_PADDING).read_to_end(&mut head)?;
    // Writers fill up the magic bytes with zeros to 8 or more bytes; the stream begins with other ones.
    let padding = head.iter().skip(MAGIC.len()).take_while(|&&byte| byte == 0).count();
    let start = (MAGIC.len() + padding) as u64;
    let mut trailer = [0; TRAILER as usize];
    let length = file.seek(SeekFrom::End(0))?;
    let wrong = || ArrowError::ParseError("the footer is missing".into());
    file.seek(SeekFrom::Start(length.checked_sub(TRAILER).ok_or_else(wrong)?))?;
    file.read_exact(&mut trailer)?;
    let [a, b, c, d, magic @ ..] = trailer;
    let footer = u64::try_from(i32::from_le_bytes([a, b, c, d])).map_err(|_| wrong())?;
    let stream = length.checked_sub(TRAILER + footer).and_then(|end| end.checked_sub(start));
    file.seek(SeekFrom::Start(start))?;
    stream.filter(|_| magic == *MAGIC).ok_or_else(wrong)
}
