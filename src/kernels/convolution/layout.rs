//! Where the numbers of an image are in memory.

/// Images row by row, pixel by pixel, with all channels of a pixel together, and a border of zeros around each image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageLayout {
    /// The number of rows, without the border.
    pub height: usize,
    /// The number of pixels in a row, without the border.
    pub width: usize,
    /// The number of values in a pixel.
    pub channels: usize,
    /// Pixels of zeros on each side.
    pub border: usize,
}

#[allow(clippy::len_without_is_empty, reason = "no image is empty")]
impl ImageLayout {
    /// The number of values in an image, with its border.
    pub fn len(self) -> usize {
        (self.height + 2 * self.border) * self.row_step()
    }

    /// The distance between a pixel and the one below it.
    pub fn row_step(self) -> usize {
        (self.width + 2 * self.border) * self.channels
    }

    /// The index of a pixel's first channel. `row` and `column` do not count the border.
    pub fn position(self, row: usize, column: usize) -> usize {
        (row + self.border) * self.row_step() + (column + self.border) * self.channels
    }

    /// The rows of an image without its border.
    pub fn rows<F>(self, image: &[F]) -> impl Iterator<Item = &[F]> {
        let (first, len) = (self.position(0, 0), self.width * self.channels);
        image[first..].chunks(self.row_step()).take(self.height).map(move |row| &row[..len])
    }

    /// The mutable rows of an image without its border.
    pub fn rows_mut<F>(self, image: &mut [F]) -> impl Iterator<Item = &mut [F]> {
        let (first, len) = (self.position(0, 0), self.width * self.channels);
        image[first..].chunks_mut(self.row_step()).take(self.height).map(move |row| &mut row[..len])
    }
}
