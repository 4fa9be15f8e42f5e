//! The layers of a convolutional network, and where their parameters are in θ.

use crate::kernels::convolution::{Convolution, ImageLayout};
use crate::models::Part;

/// What follows each convolution before the activation.
#[derive(serde::Deserialize, serde::Serialize, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Normalization {
    /// The numbers of a channel are divided by their root mean square over the pixels of the image, then multiplied by a gain and shifted by
    /// an offset (Singh & Krishnan 2020): `"filter_response"`.
    FilterResponse,
    /// A bias: `"none"`.
    None,
}

/// The function between layers.
#[derive(serde::Deserialize, serde::Serialize, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Activation {
    /// max(x, 0): `"relu"`.
    Relu,
    /// x/(1 + exp(−x)), which is smooth: `"swish"`.
    Swish,
}

/// The shortcut of a residual block whose output and input differ in shape.
#[derive(serde::Deserialize, serde::Serialize, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Shortcuts {
    /// Every other pixel, with zeros as further channels (option A of He et al.): `"padding"`.
    Padding,
    /// A 1 × 1 convolution (option B of He et al.): `"projection"`.
    Projection,
}

/// The shortcut of a residual block, which adds the block's input to the normalized sums of its second unit.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Shortcut {
    /// Every `stride`-th pixel. Nothing is added to channels that the input does not have.
    Copy {
        from: ImageLayout,
        stride: usize,
    },
    Projection(Box<Filters>),
}

/// A convolution with the position of its filters in θ.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Filters {
    pub convolution: Convolution,
    pub offset: usize,
}

/// A convolution, normalization, perhaps a shortcut, and the activation.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Unit {
    pub filters: Filters,
    /// The position of the gains in θ, if the unit is normalized; the offsets or biases follow.
    pub gains: Option<usize>,
    /// The position of the offsets or biases in θ.
    pub offsets: usize,
    pub shortcut: Option<Shortcut>,
    /// The factor of the initial filters' standard deviation.
    pub initial_factor: f64,
}

impl Unit {
    /// The number of channels of the output.
    pub fn channels(&self) -> usize {
        self.filters.convolution.outputs()
    }

    /// The layout of the output.
    pub fn output(&self) -> ImageLayout {
        self.filters.convolution.output()
    }
}

/// The layers from an image to the outputs.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Architecture {
    /// The shape of an image: height, width, channels.
    pub image: [usize; 3],
    pub units: Vec<Unit>,
    pub activation: Activation,
    /// The number of outputs.
    pub outputs: usize,
    /// The position of the dense layer's weights in θ, which its biases follow. While units are added, the number of parameters so far.
    pub head: usize,
}

/// The pixels around each image: the reach of 3 × 3 filters.
const BORDER: usize = 1;

impl Architecture {
    /// No layers yet, for images of this shape.
    pub fn new(image: [usize; 3], activation: Activation) -> Self {
        Self { image, units: Vec::new(), activation, outputs: 0, head: 0 }
    }

    /// The layout of the images.
    pub fn input(&self) -> ImageLayout {
        let [height, width, channels] = self.image;
        ImageLayout { height, width, channels, border: BORDER }
    }

    /// The channels and the layout of the input of the next unit.
    fn last(&self) -> (usize, ImageLayout) {
        self.units.last().map_or((self.image[2], self.input()), |unit| (unit.channels(), unit.output()))
    }

    fn place_filters(&mut self, convolution: Convolution) -> Filters {
        let filters = Filters { offset: self.head, convolution };
        self.head += filters.convolution.weights();
        filters
    }

    /// Adds a unit without a shortcut.
    pub fn add_unit(&mut self, channels: usize, size: usize, stride: usize, normalization: Normalization) {
        let filters = self.place_filters(Convolution::new(self.last(), channels, size, stride, BORDER));
        let gains = (normalization == Normalization::FilterResponse).then_some(self.head);
        let offsets = self.head + gains.map_or(0, |_| channels);
        self.head = offsets + channels;
        self.units.push(Unit { filters, gains, offsets, shortcut: None, initial_factor: 1.0 });
    }

    /// Adds a residual block: two units, and the block's input added before the last activation.
    pub fn add_block(&mut self, channels: usize, stride: usize, normalization: Normalization, shortcuts: Shortcuts) {
        let (inputs, from) = self.last();
        self.add_unit(channels, 3, stride, normalization);
        self.add_unit(channels, 3, 1, normalization);
        let is_changed = stride > 1 || channels != inputs;
        let shortcut = if is_changed && shortcuts == Shortcuts::Projection {
            Shortcut::Projection(Box::new(self.place_filters(Convolution::new((inputs, from), channels, 1, stride, BORDER))))
        } else {
            Shortcut::Copy { from, stride }
        };
        if let Some(unit) = self.units.last_mut() {
            unit.shortcut = Some(shortcut);
        }
    }

    /// The number of residual blocks.
    pub fn residual_blocks(&self) -> usize {
        self.units.iter().filter(|unit| unit.shortcut.is_some()).count()
    }

    /// The number of channels that the dense layer sees.
    pub fn features(&self) -> usize {
        self.last().0
    }

    /// The layout of what the dense layer sees.
    pub fn last_layout(&self) -> ImageLayout {
        self.last().1
    }

    /// The number of weights, biases, gains and offsets.
    pub fn parameters(&self) -> usize {
        self.head + (self.features() + 1) * self.outputs
    }

    /// All filters, those of the units and of the projections, with the factors of their initial standard deviations.
    pub fn all_filters(&self) -> impl Iterator<Item = (&Filters, f64)> {
        self.units.iter().flat_map(|unit| {
            let projection = match &unit.shortcut {
                // No activation halves their second moment.
                Some(Shortcut::Projection(filters)) => Some((&**filters, std::f64::consts::FRAC_1_SQRT_2)),
                Some(Shortcut::Copy { .. }) | None => None,
            };
            std::iter::once((&unit.filters, unit.initial_factor)).chain(projection)
        })
    }

    /// The multiply-adds of an image's forward pass.
    pub fn products(&self) -> usize {
        self.all_filters().map(|(filters, _)| filters.convolution.products()).sum()
    }

    /// The named parts of θ, without a parameter of the noise.
    pub fn parts(&self) -> Vec<Part> {
        let mut parts = Vec::new();
        for (number, unit) in (1..).zip(&self.units) {
            parts.push(Part::new(format!("filters_{number}"), &unit.filters.convolution.shape()));
            if unit.gains.is_some() {
                parts.push(Part::new(format!("gains_{number}"), &[unit.channels()]));
                parts.push(Part::new(format!("offsets_{number}"), &[unit.channels()]));
            } else {
                parts.push(Part::new(format!("biases_{number}"), &[unit.channels()]));
            }
            if let Some(Shortcut::Projection(filters)) = &unit.shortcut {
                parts.push(Part::new(format!("shortcut_{number}"), &filters.convolution.shape()));
            }
        }
        parts.push(Part::new("weights", &[self.features(), self.outputs]));
        parts.push(Part::new("biases", &[self.outputs]));
        parts
    }
}
