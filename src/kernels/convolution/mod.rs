//! Convolutions of images by direct sums, at nearly the peak of a core: forward passes, and gradients of inputs and filters.
//!
//! The channels of a pixel are adjacent (NHWC), in sixteens, and images have a border of zeros, so that no pixel is a special case. Each
//! number of a result is summed in the same order on every processor: results have the same bits with AVX2 and AVX-512.

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
