//! Reads PNG images of 8 bits, whose alpha channel is dropped if they are opaque.

use crate::data::error::{DataError, Place, Result};
use png::{BitDepth, ColorType, Decoder, DecodingError, Limits, Transformations};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

/// The first bytes of every PNG file.
pub(crate) const MAGIC: &[u8] = b"\x89PNG\r\n\x1a\n";
/// The most pixels of an image, so that a header cannot claim any amount of memory.
const MAX_PIXELS: u64 = 1 << 24;
/// The most bytes that the decoder takes beside the pixels.
const MAX_DECODER_BYTES: usize = 1 << 26;

/// An image.
#[derive(Debug)]
pub(crate) struct PngImage {
    /// Height and width, and the number of channels if it is not 1.
    pub shape: Vec<usize>,
    /// One byte for each channel of each pixel, row by row.
    pub pixels: Vec<u8>,
}

/// Reads an image: gray, gray with alpha, RGB, RGBA or with a palette. Palettes become RGB.
///
/// # Errors
/// If the file cannot be read, is not a PNG file, is damaged, is animated, has 16 bits, more than 16 million pixels or transparent pixels.
pub(crate) fn read_png(path: &Path) -> Result<PngImage> {
    let wrong = |what: String| DataError::content(path, Place::File, what);
    let failed = |error| png_error(path, error);
    let file = File::open(path).map_err(DataError::io(path, "open"))?;
    let mut decoder = Decoder::new_with_limits(BufReader::new(file), Limits { bytes: MAX_DECODER_BYTES });
    decoder.set_transformations(Transformations::EXPAND);
    let header = decoder.read_header_info().map_err(failed)?;
    let (width, height) = (header.width, header.height);
    if header.bit_depth == BitDepth::Sixteen {
        return Err(wrong("an image of 16 bits: convert it to 8 bits".into()));
    }
    if u64::from(width) * u64::from(height) > MAX_PIXELS {
        return Err(wrong(format!("an image of {width} × {height} pixels: at most {MAX_PIXELS} are supported, scale it down")));
    }
    let mut reader = decoder.read_info().map_err(failed)?;
    if reader.info().animation_control.is_some() {
        return Err(wrong("an animated image: save each frame as a file".into()));
    }
    let size = reader.output_buffer_size().ok_or_else(|| wrong("an image that is too large for this machine".into()))?;
    let mut pixels = vec![0; size];
    let frame = reader.next_frame(&mut pixels).map_err(failed)?;
    pixels.truncate(frame.buffer_size());
    let colors = match frame.color_type {
        ColorType::Grayscale | ColorType::GrayscaleAlpha => 1,
        // `EXPAND` turns palettes into RGB.
        ColorType::Rgb | ColorType::Rgba | ColorType::Indexed => 3,
    };
    if matches!(frame.color_type, ColorType::GrayscaleAlpha | ColorType::Rgba) {
        pixels = without_alpha(&pixels, colors).ok_or_else(|| {
            wrong("an image with transparent pixels, whose color is not defined: save it without an alpha channel".into())
        })?;
    }
    let side = |size: u32| usize::try_from(size).map_err(|_| wrong(format!("a side of {size} pixels is too large")));
    let mut shape = vec![side(height)?, side(width)?];
    if colors > 1 {
        shape.push(colors);
    }
    if shape.iter().product::<usize>() != pixels.len() {
        return Err(wrong("the pixels of this PNG file do not fill its image: save it again".into()));
    }
    Ok(PngImage { shape, pixels })
}

/// The colors of opaque pixels; nothing if a pixel is not opaque.
fn without_alpha(pixels: &[u8], colors: usize) -> Option<Vec<u8>> {
    let mut all = Vec::with_capacity(pixels.len());
    for pixel in pixels.chunks_exact(colors + 1) {
        match pixel.split_last() {
            Some((&u8::MAX, colors)) => all.extend_from_slice(colors),
            _ => return None,
        }
    }
    Some(all)
}

fn png_error(path: &Path, error: DecodingError) -> DataError {
    match error {
        DecodingError::IoError(error) if error.kind() != std::io::ErrorKind::UnexpectedEof => DataError::io(path, "read")(error),
        DecodingError::IoError(_) => {
            DataError::content(path, Place::File, "this is not a PNG file, or it is cut short: convert or fetch it again")
        }
        error => DataError::content(
            path,
            Place::File,
            format!("this is not a PNG file, or it is damaged ({error}): convert or fetch it again"),
        ),
    }
}
