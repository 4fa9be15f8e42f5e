//! Models whose parameters have no unique values.

use crate::models::ModelSettings;
use crate::models::convolutional::{ConvolutionalSettings, ResnetSettings};
use crate::models::network::NetworkSettings;

/// Whether units of this model can change places without changing what it predicts, so that single parameters of chains need not agree.
pub(super) fn has_exchangeable_units(model: &str) -> bool {
    [NetworkSettings::NAME, ConvolutionalSettings::NAME, ResnetSettings::NAME].contains(&model)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_have_exchangeable_units_and_regressions_have_not() {
        let exchangeable = ["network", "convolutional", "resnet"].map(has_exchangeable_units);
        assert_eq!((exchangeable, has_exchangeable_units("logistic")), ([true; 3], false));
    }
}
