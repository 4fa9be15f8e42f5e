//! Convolutional networks for images: residual networks (He et al. 2016) and plain stacks of convolutions.
//!
//! After each convolution come a normalization, the shortcut of a residual block, and the activation; at the end the average over all
//! pixels and a dense layer. Each image is normalized by itself (filter response normalization, Singh & Krishnan 2020), so that the
//! likelihood is a product over images. Batch normalization is not offered: with it the loss of an image depends on the other images of
//! its minibatch, and there is no posterior.

mod architecture;
mod elementwise;
mod head;
mod model;
mod pass;
mod settings;
#[cfg(test)]
mod tests;

pub use architecture::{Activation, Normalization, Shortcuts};
pub use model::ConvolutionalNetwork;
pub use settings::{ConvolutionalSettings, LayerSettings, ResnetSettings};
