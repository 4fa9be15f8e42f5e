//! What a method needs to be found before its run, and what was found.

use super::plan::Measurement;

/// What a method needs before its run: the mode of the posterior and coordinates in which it is close to a standard normal distribution, and
/// perhaps the noise in them. For models without curvature, methods that need the noise get starting points and scaled coordinates instead.
#[derive(Clone, Debug, PartialEq)]
pub struct TuningNeeds {
    /// The noise that is measured in these coordinates. If no mode is found, a method that needs it ends with an error, and others run in
    /// the coordinates of the model.
    pub noise: Option<NoiseNeeds>,
    /// The rounds of the run; none if they are found too.
    pub rounds: Option<u64>,
    /// How many draws the run keeps.
    pub draws: DrawCount,
}

/// What is known of the number of draws before lengths are found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DrawCount {
    /// It follows from the settings.
    Given,
    /// As many as an effective sample size of all chains together takes.
    OfEss(f64),
    /// It depends on what is found.
    Unknown,
}

impl DrawCount {
    /// For chains of a wanted effective sample size, with the lengths that are given.
    pub fn of_chains(ess: f64, rounds: Option<u64>, burn_in: Option<u64>, thin: Option<u64>) -> Self {
        match (rounds, burn_in, thin) {
            (Some(_), Some(_), Some(_)) | (_, _, Some(0)) => Self::Given,
            (None, _, None) => Self::OfEss(ess),
            _ => Self::Unknown,
        }
    }
}

impl TuningNeeds {
    /// Coordinates alone, for a method of this many rounds, if it wants them.
    pub fn coordinates(are_wanted: bool, rounds: u64) -> Option<Self> {
        are_wanted.then_some(Self { noise: None, rounds: Some(rounds), draws: DrawCount::Given })
    }
}

/// The noise of scores that chains see.
#[derive(Clone, Debug, PartialEq)]
pub struct NoiseNeeds {
    /// Rows in a minibatch.
    pub batch: usize,
    /// How often chains visit an agent.
    pub share: VisitShare,
    /// The number of chains; none for one at each agent.
    pub chains: Option<u32>,
}

/// What was found before a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Found<'a> {
    /// Nothing: the method runs in the coordinates of the model.
    Nothing,
    /// Coordinates in which the posterior is close to a standard normal distribution.
    Coordinates,
    /// Such coordinates, and the noise of scores in them.
    Noise(&'a Measurement),
}

/// The share of all updates that are made at an agent.
#[derive(Clone, Debug, PartialEq)]
pub enum VisitShare {
    /// In proportion to these numbers, one for all agents or one for each.
    Proportional(Vec<f64>),
    /// In proportion to its rows.
    ByRows,
}

impl VisitShare {
    /// The share of an agent that has this share of all rows.
    pub(super) fn of(&self, agent: u32, agents: u32, share_of_rows: f64) -> f64 {
        match self {
            Self::Proportional(weights) => {
                let total: f64 = weights.iter().cycle().take(agents as usize).sum();
                weights.iter().cycle().nth(agent as usize).map_or(0.0, |weight| weight / total)
            }
            Self::ByRows => share_of_rows,
        }
    }
}
