//! The settings of convolutional networks, and the networks built from them.

use super::architecture::{Activation, Architecture, Normalization, Shortcuts, Unit};
use super::model::{ConvolutionalNetwork, set_initial_factors};
use crate::models::error::positive;
use crate::models::network::{Likelihood, Loss, NetworkSettings};
use crate::models::{BuiltModel, DataSchema, ModelSettings, require_data};
use crate::number::Real;
use crate::settings::{Key, KeyError, in_range, keys};

/// Defines the settings of a convolutional network: its own keys with these defaults, and the keys that all such networks share. The type
/// must have a function `architecture`.
macro_rules! image_network_settings {
    ($(#[$doc:meta])* $name:ident = $model:literal, $($(#[$key_doc:meta])* $key:ident: $type:ty = $default:expr,)*) => {
        $(#[$doc])*
        #[derive(serde::Deserialize, serde::Serialize, Clone, Debug, PartialEq, documented::DocumentedFields)]
        #[serde(deny_unknown_fields, default)]
        pub struct $name {
            $($(#[$key_doc])* pub $key: $type,)*
            /// What follows each convolution: `"filter_response"` normalizes each image by itself, `"none"` adds a bias. Batch normalization is
            /// not offered, because with it there is no posterior.
            pub normalization: Normalization,
            /// Activation: `"swish"`, which is smooth, or `"relu"`.
            pub activation: Activation,
            /// Precision λ of the prior N(0, 1/λ) of each weight, bias and offset, and N(1, 1/λ) of each gain. The default is that of Izmailov
            /// et al. (2021) for CIFAR-10.
            pub prior_precision: f64,
            /// Loss: `"cross_entropy"` for classes; `"gaussian"` or `{ huber = 1.0 }` for numbers, with δ in standard deviations of the
            /// targets. Without it, cross-entropy for classes and Gaussian noise for numbers.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub loss: Option<Loss>,
            /// Shape of the Gamma prior of the noise precision; only for the Gaussian loss.
            pub gamma_shape: f64,
            /// Rate (not scale) of the Gamma prior of the noise precision; only for the Gaussian loss.
            pub gamma_rate: f64,
        }

        impl Default for $name {
            fn default() -> Self {
                Self {
                    $($key: $default,)*
                    normalization: Normalization::FilterResponse,
                    activation: Activation::Swish,
                    prior_precision: 5.0,
                    loss: None,
                    gamma_shape: 1.0,
                    gamma_rate: 0.1,
                }
            }
        }

        impl $name {
            /// The network for these images.
            ///
            /// # Errors
            /// If a setting is out of its range, the rows are not images, or the loss does not fit the targets.
            pub fn build(&self, data: &DataSchema) -> Result<ConvolutionalNetwork, KeyError> {
                let image = image_shape(data)?;
                let mut architecture = self.architecture(Architecture::new(image, self.activation))?;
                check_size(&architecture)?;
                refuse_single_pixels(&architecture)?;
                set_initial_factors(&mut architecture, self.normalization);
                let (outputs, likelihood) = Likelihood::new(data.output, self.loss, (self.gamma_shape, self.gamma_rate))?;
                architecture.outputs = outputs;
                let prior_precision = positive("prior_precision", self.prior_precision)?;
                Ok(ConvolutionalNetwork { architecture, likelihood, prior_precision })
            }
        }

        impl ModelSettings for $name {
            const NAME: &'static str = $model;

            fn keys() -> Vec<Key> {
                keys::<Self>()
            }

            fn other_defaults() -> toml::Table {
                NetworkSettings::other_defaults()
            }

            fn build_model<F: Real>(&self, data: Option<&DataSchema>) -> Result<BuiltModel<F>, KeyError> {
                Ok(BuiltModel::for_data(self.build(require_data(data)?)?))
            }
        }
    };
}

image_network_settings! {
    /// The settings of the model `resnet`.
    ResnetSettings = "resnet",
    /// Number of layers with weights: 6n + 2 for three stages of n residual blocks, such as 8, 20, 32 or 56.
    depth: usize = 32,
    /// Channels of the first stage; the second has twice, the third four times as many. Multiples of 16 are fastest.
    width: usize = 16,
    /// Shortcut of blocks that halve the image: `"padding"` takes every other pixel and has no parameters, `"projection"` is a 1 × 1
    /// convolution.
    shortcuts: Shortcuts = Shortcuts::Padding,
}

image_network_settings! {
    /// The settings of the model `convolutional`.
    ConvolutionalSettings = "convolutional",
    /// The convolutions from the image to the average over its pixels, such as `[{ channels = 32 }, { channels = 64, stride = 2 }]`. `size` is 3
    /// (the default) or 1 pixels, and `stride` 1 (the default) or 2.
    layers: Vec<LayerSettings> =
        vec![LayerSettings::new(32, 1), LayerSettings::new(32, 2), LayerSettings::new(64, 2)],
}

/// A convolution of the model `convolutional`.
#[derive(serde::Deserialize, serde::Serialize, Clone, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct LayerSettings {
    /// Channels of the output.
    pub channels: usize,
    /// Pixels of a side of its filters: 1 or 3.
    #[serde(default = "default_size", skip_serializing_if = "is_default_size")]
    pub size: usize,
    /// From a pixel of the input to that of the next output pixel: 1 or 2.
    #[serde(default = "default_stride", skip_serializing_if = "is_default_stride")]
    pub stride: usize,
}

fn default_size() -> usize {
    3
}

fn default_stride() -> usize {
    1
}

fn is_default_size(size: &usize) -> bool {
    *size == default_size()
}

fn is_default_stride(stride: &usize) -> bool {
    *stride == default_stride()
}

impl LayerSettings {
    /// A layer with filters of 3 × 3 pixels.
    pub fn new(channels: usize, stride: usize) -> Self {
        Self { channels, size: default_size(), stride }
    }
}

/// Limits that catch typing errors.
const MAX_CHANNELS: usize = 1 << 14;
const MAX_LAYERS: usize = 2000;
/// The most weights of a network: more would not fit in the memory of a node.
const MAX_WEIGHTS: usize = 1 << 32;

/// Refuses networks with too many weights.
fn check_size(architecture: &Architecture) -> Result<(), KeyError> {
    // With all channels and layers that are allowed, the number of weights fits into 64 bits.
    let weights = architecture.head;
    if weights > MAX_WEIGHTS {
        return Err(KeyError::table(format!("has {weights} weights; at most {MAX_WEIGHTS} are possible: use fewer channels")));
    }
    Ok(())
}

/// Refuses to normalize images of one pixel: what is left is their sign.
fn refuse_single_pixels(architecture: &Architecture) -> Result<(), KeyError> {
    let is_single = |unit: &Unit| unit.gains.is_some() && unit.output().height * unit.output().width == 1;
    match architecture.units.iter().position(is_single) {
        None => Ok(()),
        Some(unit) => Err(KeyError::invalid(
            "normalization",
            format!(
                "= \"filter_response\" needs images of several pixels, and the output of layer {} has one: use \"none\", larger images, \
                 or fewer layers that halve the image",
                unit + 1
            ),
        )),
    }
}

impl ResnetSettings {
    fn architecture(&self, mut architecture: Architecture) -> Result<Architecture, KeyError> {
        let most = MAX_CHANNELS / 4;
        in_range("width", self.width, (1..=most).contains(&self.width), &format!("from 1 to {most}"))?;
        let is_depth = self.depth >= 8 && self.depth % 6 == 2 && self.depth <= MAX_LAYERS;
        in_range(
            "depth",
            self.depth,
            is_depth,
            &format!("6n + 2 for n blocks in each of three stages, at most {MAX_LAYERS}, such as 8, 20, 32 or 56"),
        )?;
        architecture.add_unit(self.width, 3, 1, self.normalization);
        for stage in 0..3 {
            for block in 0..(self.depth - 2) / 6 {
                let stride = if stage > 0 && block == 0 { 2 } else { 1 };
                architecture.add_block(self.width << stage, stride, self.normalization, self.shortcuts);
            }
        }
        Ok(architecture)
    }
}

impl ConvolutionalSettings {
    fn architecture(&self, mut architecture: Architecture) -> Result<Architecture, KeyError> {
        if self.layers.is_empty() || self.layers.len() > MAX_LAYERS {
            return Err(KeyError::invalid(
                "layers",
                format!("must have from 1 to {MAX_LAYERS} layers, not {}", self.layers.len()),
            ));
        }
        for (number, layer) in self.layers.iter().enumerate() {
            let key = |name: &str| format!("layers.{number}.{name}");
            let channels = format!("from 1 to {MAX_CHANNELS}");
            in_range(&key("channels"), layer.channels, (1..=MAX_CHANNELS).contains(&layer.channels), &channels)?;
            in_range(&key("size"), layer.size, matches!(layer.size, 1 | 3), "1 or 3")?;
            in_range(&key("stride"), layer.stride, matches!(layer.stride, 1 | 2), "1 or 2")?;
            architecture.add_unit(layer.channels, layer.size, layer.stride, self.normalization);
        }
        Ok(architecture)
    }
}

/// The height, width and channels of the images in the rows.
fn image_shape(data: &DataSchema) -> Result<[usize; 3], KeyError> {
    data.refuse_extra_columns("a convolutional network")?;
    let mistake = |what: &str| Err(KeyError::table(format!("does not suit the data: {what}")));
    if data.scales.is_none() {
        return mistake("a convolutional network needs pixels: import dense images, without --scaling principal");
    }
    let shape = match *data.shape {
        [height, width] => [height, width, 1],
        [height, width, channels] => [height, width, channels],
        _ => {
            return mistake(
                "a convolutional network needs images, whose rows have a height and a width; see `mpibayes import images --help`",
            );
        }
    };
    let may_be_channels = |size: usize| matches!(size, 3 | 4);
    if may_be_channels(shape[0]) && shape[1] == shape[2] {
        return mistake("the channels of these images come first; import them again");
    }
    if shape.iter().product::<usize>() != data.features || data.features == 0 {
        return mistake("the shape of the images differs from the number of features");
    }
    Ok(shape)
}
