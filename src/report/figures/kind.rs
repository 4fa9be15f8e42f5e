//! The kinds of figures of a run.

/// A kind of figure of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FigureKind {
    /// Metrics over rounds or seconds.
    History,
    /// Accuracy by confidence, with the number of rows in each bin.
    Reliability,
    /// Marginal posterior densities of parameters.
    Posterior,
    /// The draws of chains in order.
    Chains,
    /// How far the draws are from the posterior.
    Bias,
    /// The coefficients of a regression with their intervals.
    Coefficients,
}

impl FigureKind {
    /// All kinds.
    pub const ALL: [Self; 6] = [Self::Coefficients, Self::History, Self::Reliability, Self::Posterior, Self::Chains, Self::Bias];

    /// Its name on the command line and in file names.
    pub fn name(self) -> &'static str {
        match self {
            Self::History => "history",
            Self::Reliability => "reliability",
            Self::Posterior => "posterior",
            Self::Chains => "chains",
            Self::Bias => "bias",
            Self::Coefficients => "coefficients",
        }
    }

    /// What it shows.
    pub fn description(self) -> &'static str {
        match self {
            Self::History => "Metrics over rounds or seconds",
            Self::Reliability => "Accuracy by confidence, with the number of rows in each bin",
            Self::Posterior => "Marginal posterior densities of parameters, with mean and 90 % interval",
            Self::Chains => "Trace plots: the draws of chains in order",
            Self::Bias => "Standard deviations and means of the draws beside those of the posterior",
            Self::Coefficients => "Coefficients of a regression in the units of the data, or odds or rate ratios, with intervals",
        }
    }

    /// Whether it shows the parameters or terms that `--parameter` chooses.
    pub fn shows_parameters(self) -> bool {
        matches!(self, Self::Posterior | Self::Chains | Self::Coefficients)
    }

    /// Why a run cannot have this figure.
    pub fn missing(self) -> &'static str {
        match self {
            Self::History => "it has neither metrics nor a history",
            Self::Reliability => "it has no reliability table, which needs classes and test rows",
            Self::Posterior => "it has no draws of parameters (`mpibayes topics` shows those of a topic model)",
            Self::Chains => "it has no chains of draws; particles have no order",
            Self::Bias => "its bias was not measured, or could not be",
            Self::Coefficients => "it has no coefficients in the units of the data, or no draws yet",
        }
    }
}
