//! Where the numbers of an image are in memory.

/// Images row by row, pixel by pixel, with all channels of a pixel together, and a border of zeros around each image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageLayout {
    /// Rows of pixels without the border.
    pub height: usize,
    /// Pixels of a row without the border.
    pub width: usize,
    /// Numbers of a pixel.
    pub channels: usize,
    /// Pixels of zeros on each side.
    pub border: usize,
}

impl ImageLayout {
    /// The length of an image.
    pub fn len(self) -> usize {
        (self.height + 2 * self.border) * self.row_step()
    }

    /// From a pixel to the one below it.
    pub fn row_step(self) -> usize {
        (self.width + 2 * self.border) * self.channels
    }

    /// The position of a pixel; of a pixel of the border with coordinates below 0 there is none.
    pub fn position(self, row: usize, column: usize) -> usize {
        (row + self.border) * self.row_step() + (column + self.border) * self.channels
    }

    /// The rows of an image without its border.
    pub fn rows<F>(self, image: &[F]) -> impl Iterator<Item = &[F]> {
        let (first, len) = (self.position(0, 0), self.width * self.channels);
        image[first..].chunks(self.row_step()).take(self.height).map(move |row| &row[..len])
    }

    /// The rows of an image without its border, to be changed.
    pub fn rows_mut<F>(self, image: &mut [F]) -> impl Iterator<Item = &mut [F]> {
        let (first, len) = (self.position(0, 0), self.width * self.channels);
        image[first..].chunks_mut(self.row_step()).take(self.height).map(move |row| &mut row[..len])
    }
}
