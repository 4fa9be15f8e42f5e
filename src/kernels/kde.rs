//! Kernel density estimates of particle sets and their scores, in log space.
