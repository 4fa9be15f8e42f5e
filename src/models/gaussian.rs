//! Gaussian and mixture targets: bare densities, and factors of a product that agents share.
