//! The RBF kernel, its bandwidth modes, and squared distances by one product of matrices.
