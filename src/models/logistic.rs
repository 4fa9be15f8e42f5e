//! Bayesian logistic regression with a Gamma hyper-prior on the precision of its weights.
