//! Update rules on arrays: Stein directions, kernel density estimates, optimisers; knows no server and no file.

pub mod adagrad;
pub mod kde;
pub mod rbf;
pub mod svgd;
