//! Figures of a run and of a comparison; drawing them needs the cargo feature `plots`.

#[cfg(feature = "plots")]
mod comparison;
#[cfg(feature = "plots")]
mod draw;
mod kind;

#[cfg(feature = "plots")]
pub use comparison::ComparisonFigure;
#[cfg(feature = "plots")]
pub use draw::RunFigures;
pub use kind::FigureKind;
