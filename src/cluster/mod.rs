//! Who computes what, and how it travels: methods, the engine, and the drivers that carry it.

pub mod record;
