//! Convolutions of images by direct sums, at nearly the highest arithmetic rate of a core: forward passes, and gradients of inputs and
//! filters.
//!
//! The channels of a pixel are adjacent (NHWC), and padded with zeros to a multiple of sixteen except in the input of a first layer. Images
//! have a border of zeros, so that no pixel is a special case. Each number of a result is summed in the same order on every processor: results
//! have the same bits with AVX2 and AVX-512.

mod correlation;
mod filter_gradient;
mod lanes;
mod layer;
mod layout;
#[cfg(test)]
mod tests;

pub use lanes::LANES;
pub use layer::Convolution;
pub use layout::ImageLayout;
