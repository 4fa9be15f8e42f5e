//! Dense networks of any depth for regression and classification, written on BLAS.
