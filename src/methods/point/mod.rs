//! Point estimates: methods that end in one set of parameters instead of a posterior.

pub mod easgd;
pub mod fedavg;
