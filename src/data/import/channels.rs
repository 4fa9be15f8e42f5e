//! The order of the dimensions of images: datasets have them in the order height, width, channels.

use crate::data::dataset::scaling::Scaling;
use crate::data::error::{DataError, Place, Result};
use std::path::Path;

/// Where the channels of images are among the dimensions of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelOrder {
    /// Channels, height, width: one plane after the other.
    First,
    /// Height, width, channels.
    Last,
}

/// Appends an image that consists of `channels` planes, pixel by pixel.
pub(crate) fn append_pixels<T: Copy>(planes: &[T], channels: usize, pixels: &mut Vec<T>) {
    let size = planes.len() / channels.max(1);
    pixels.extend((0..size).flat_map(|pixel| planes.iter().copied().skip(pixel).step_by(size)));
}

/// How the rows of an array become rows of a dataset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RowOrder {
    /// The shape of rows in the dataset.
    pub shape: Vec<usize>,
    /// The number of planes of a row, if it consists of planes.
    planes: Option<usize>,
}

impl RowOrder {
    /// The order of rows of this shape. Rows of three dimensions are images. Without `wanted`, the channels come first if only the first size
    /// is 1, 3 or 4, and last otherwise. An image with one channel has two dimensions in the dataset.
    ///
    /// # Errors
    /// If the first and the last size are both 1, 3 or 4, or `wanted` is given for rows that do not have three dimensions.
    pub(crate) fn of(shape: &[usize], wanted: Option<ChannelOrder>, path: &Path) -> Result<Self> {
        let wrong = |what: String| Err(DataError::content(path, Place::File, what));
        let &[first, middle, last] = shape else {
            return match wanted {
                None => Ok(Self { shape: shape.to_vec(), planes: None }),
                Some(_) => wrong(format!(
                    "--channels is for images in an array of four dimensions, but its rows have the shape {shape:?}: remove it"
                )),
            };
        };
        let may_be = |size: usize| matches!(size, 1 | 3 | 4);
        let order = match (wanted, may_be(first), may_be(last)) {
            (Some(order), _, _) => order,
            (None, true, false) => ChannelOrder::First,
            (None, false, _) => ChannelOrder::Last,
            (None, true, true) => {
                return wrong(format!(
                    "images of shape {shape:?} may have {first} channels in front or {last} channels at the end: choose with --channels \
                     first or --channels last, an option of `mpibayes import arrays` and `mpibayes predict`"
                ));
            }
        };
        let (sides, channels) = match order {
            ChannelOrder::First => ([middle, last], first),
            ChannelOrder::Last => ([first, middle], last),
        };
        let mut shape = sides.to_vec();
        if channels > 1 {
            shape.push(channels);
        }
        Ok(Self { shape, planes: (order == ChannelOrder::First && channels > 1).then_some(channels) })
    }

    /// Passes rows to `each` in the order of the dataset.
    pub(crate) fn rows<T: Copy>(&self, mut each: impl FnMut(&[T], u64) -> Result<()>) -> impl FnMut(&[T], u64) -> Result<()> {
        let planes = self.planes;
        let mut pixels = Vec::new();
        move |row, record| match planes {
            None => each(row, record),
            Some(channels) => {
                pixels.clear();
                append_pixels(row, channels, &mut pixels);
                each(&pixels, record)
            }
        }
    }
}

/// The scaling of images of this shape, unless another one is wanted.
pub fn image_scaling(shape: &[usize]) -> Scaling {
    match shape {
        [_, _, channels] if *channels > 1 => Scaling::Channels,
        _ => Scaling::Pixels,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn order(shape: &[usize], wanted: Option<ChannelOrder>) -> Result<RowOrder> {
        RowOrder::of(shape, wanted, Path::new("x.npy"))
    }

    #[test]
    fn the_sizes_show_where_the_channels_are() {
        use ChannelOrder::{First, Last};
        for (shape, wanted, stored, planes) in [
            (&[32, 32, 3][..], None, &[32, 32, 3][..], None),
            (&[3, 32, 32], None, &[32, 32, 3], Some(3)),
            (&[4, 5, 6], None, &[5, 6, 4], Some(4)),
            (&[1, 28, 28], None, &[28, 28], None),
            (&[28, 28, 1], None, &[28, 28], None),
            (&[8, 9, 2], None, &[8, 9, 2], None),
            (&[3, 5, 3], Some(First), &[5, 3, 3], Some(3)),
            (&[3, 5, 3], Some(Last), &[3, 5, 3], None),
            (&[2, 5, 6], Some(First), &[5, 6, 2], Some(2)),
            (&[28, 28], None, &[28, 28], None),
            (&[7], None, &[7], None),
        ] {
            let expected = RowOrder { shape: stored.to_vec(), planes };
            assert_eq!(order(shape, wanted).unwrap(), expected, "{shape:?} {wanted:?}");
        }
        let message = order(&[3, 32, 4], None).unwrap_err().to_string();
        assert!(message.contains("x.npy: images of shape [3, 32, 4]") && message.contains("--channels first"), "{message}");
        let message = order(&[28, 28], Some(Last)).unwrap_err().to_string();
        assert!(message.contains("--channels is for images"), "{message}");
    }

    #[test]
    fn planes_become_pixels() {
        let mut pixels = vec![9];
        append_pixels(&[1, 2, 3, 4, 5, 6], 3, &mut pixels);
        assert_eq!(pixels, [9, 1, 3, 5, 2, 4, 6]);
    }
}
