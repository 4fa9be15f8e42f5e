//! How strong the coupling is from step to step, and which steps may be draws.

use serde::{Deserialize, Serialize};

/// How κ changes over the steps of a chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum CouplingSchedule {
    /// It stays. For two chains and more their law is then not the posterior.
    #[default]
    Constant,
    /// It falls to 0; draws are taken from there on.
    Anneal {
        /// The step from which it falls.
        from: u64,
        /// Steps in which it falls, linearly.
        over: u64,
    },
    /// It is there and not, in turn; draws are taken where it is not.
    Cyclic {
        /// Steps with it.
        coupled: u64,
        /// Steps without it.
        free: u64,
        /// How many of those without it come before the draws.
        settle: u64,
    },
}

/// κ over the steps of a chain, and what is kept of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CouplingStrength {
    /// κ where it is there in full.
    pub full: f64,
    /// How it changes.
    pub schedule: CouplingSchedule,
}

impl CouplingStrength {
    /// No coupling.
    pub const NONE: Self = Self { full: 0.0, schedule: CouplingSchedule::Constant };

    /// κ in a step (0, 1, ...).
    pub fn at(self, step: u64) -> f64 {
        self.full
            * match self.schedule {
                CouplingSchedule::Constant => 1.0,
                CouplingSchedule::Anneal { from, over } => {
                    let left = (from + over).saturating_sub(step);
                    if step < from { 1.0 } else { left as f64 / over.max(1) as f64 }
                }
                CouplingSchedule::Cyclic { coupled, free, .. } => f64::from(u8::from(step % (coupled + free) < coupled)),
            }
    }

    /// Whether there is any coupling in these steps; as many as at least one.
    pub fn acts(self, first: u64, steps: u64) -> bool {
        let last = first + steps - 1;
        let turns = matches!(self.schedule, CouplingSchedule::Cyclic { coupled, free, .. } if first / (coupled + free) < last / (coupled + free));
        self.full > 0.0 && (turns || self.at(first) > 0.0)
    }

    /// How many of the first `steps` steps may be draws, whatever the burn-in.
    fn usable(self, steps: u64) -> u64 {
        match self.schedule {
            _ if self.full == 0.0 => steps,
            CouplingSchedule::Constant => steps,
            CouplingSchedule::Anneal { from, over } => steps.saturating_sub(from + over),
            CouplingSchedule::Cyclic { coupled, free, settle } => {
                let whole = steps / (coupled + free) * (free - settle);
                whole + (steps % (coupled + free)).saturating_sub(coupled + settle)
            }
        }
    }

    /// How many draws are kept of the first `steps` steps: every so-many-th of those that may be, after the burn-in.
    pub fn draws(self, steps: u64, burn_in: u64, thin: u64) -> u64 {
        self.usable(steps).saturating_sub(self.usable(burn_in)).checked_div(thin).unwrap_or(0)
    }

    /// Whether it can be run.
    ///
    /// # Errors
    /// Says which number is out of its range.
    pub fn check(self) -> Result<(), String> {
        if !(self.full.is_finite() && self.full >= 0.0) {
            return Err(format!("coupling = {} must be a number from 0", self.full));
        }
        match self.schedule {
            CouplingSchedule::Cyclic { coupled, free, settle } if coupled == 0 || free <= settle => Err(format!(
                "schedule: of {free} free steps {settle} are to settle, after {coupled} coupled ones: there must be coupled steps, and more free ones than settle"
            )),
            CouplingSchedule::Cyclic { coupled, free, .. } if coupled.checked_add(free).is_none() => {
                Err(format!("schedule: {coupled} coupled and {free} free steps are more than can be counted"))
            }
            CouplingSchedule::Anneal { from, over } if from.checked_add(over).is_none() => {
                Err(format!("schedule: {over} steps from {from} on are more than can be counted"))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_coupling_is_annealed_to_nothing_and_draws_begin_there() {
        let strength = CouplingStrength { full: 2.0, schedule: CouplingSchedule::Anneal { from: 10, over: 4 } };
        let found: Vec<f64> = [0, 9, 10, 11, 12, 13, 14, 15].iter().map(|&step| strength.at(step)).collect();
        assert_eq!(found, [2.0, 2.0, 2.0, 1.5, 1.0, 0.5, 0.0, 0.0]);
        assert!(strength.acts(13, 4) && !strength.acts(14, 4));
        assert_eq!([strength.draws(14, 0, 1), strength.draws(20, 0, 2), strength.draws(20, 16, 2)], [0, 3, 2]);
        let at_once = CouplingStrength { full: 2.0, schedule: CouplingSchedule::Anneal { from: 3, over: 0 } };
        assert_eq!([at_once.at(2), at_once.at(3)], [2.0, 0.0]);
    }

    #[test]
    fn cyclic_coupling_comes_and_goes_and_draws_lie_between() {
        let strength = CouplingStrength { full: 1.0, schedule: CouplingSchedule::Cyclic { coupled: 3, free: 5, settle: 2 } };
        let kept: Vec<u64> = (0..16).filter(|&step| strength.draws(step + 1, 0, 1) > strength.draws(step, 0, 1)).collect();
        assert_eq!(kept, [5, 6, 7, 13, 14, 15]);
        assert!(kept.iter().all(|&step| strength.at(step) == 0.0));
        let acting: Vec<u64> = (0..16).filter(|&first| strength.acts(first, 2)).collect();
        assert_eq!(acting, [0, 1, 2, 7, 8, 9, 10, 15]);
    }

    #[test]
    fn without_coupling_every_step_may_be_a_draw() {
        let strength = CouplingStrength { full: 0.0, schedule: CouplingSchedule::Anneal { from: 10, over: 4 } };
        assert_eq!([strength.draws(20, 5, 3), CouplingStrength::NONE.draws(20, 0, 1)], [5, 20]);
        let wrong = CouplingStrength { full: 1.0, schedule: CouplingSchedule::Cyclic { coupled: 5, free: 2, settle: 2 } };
        assert!(wrong.check().is_err() && CouplingStrength { full: f64::NAN, ..CouplingStrength::NONE }.check().is_err());
    }
}
