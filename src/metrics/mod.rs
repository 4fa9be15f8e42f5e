//! What a model is judged by: accuracy, log-likelihood, RMSE, calibration.
