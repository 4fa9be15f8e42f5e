//! Coupling strength: a schedule of κ over the steps of a chain, and which of these steps may be draws.

use crate::settings::{KeyError, in_range};
use serde::{Deserialize, Serialize};

/// How κ changes over the steps of a chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum CouplingSchedule {
    /// κ stays the same. The stationary distribution of two or more chains is then not the posterior.
    #[default]
    Constant,
    /// κ falls linearly to 0; draws come after that.
    Anneal {
        /// The last step with the full κ, if `over` > 0; the fall ends at step `from` + `over`.
        from: u64,
        /// The number of steps from the full κ to 0.
        over: u64,
    },
    /// κ is switched on and off in cycles; draws come from steps without coupling.
    Cyclic {
        /// Steps with coupling in each cycle.
        coupled: u64,
        /// Steps without coupling in each cycle.
        free: u64,
        /// Steps without coupling before the first draw of each cycle.
        settle: u64,
    },
}

/// κ over the steps of a chain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CouplingStrength {
    /// The largest κ.
    pub full: f64,
    /// How it changes.
    pub schedule: CouplingSchedule,
}

impl CouplingStrength {
    /// No coupling.
    pub const NONE: Self = Self { full: 0.0, schedule: CouplingSchedule::Constant };

    /// κ at a step, counted from 0.
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

    /// Whether κ is above 0 at any of these steps (`steps` ≥ 1).
    pub fn is_active(self, first: u64, steps: u64) -> bool {
        // κ never rises within a cycle, so the first step decides unless the steps reach the next cycle.
        let last = first + steps - 1;
        let spans_cycles = matches!(self.schedule, CouplingSchedule::Cyclic { coupled, free, .. } if first / (coupled + free) < last / (coupled + free));
        self.full > 0.0 && (spans_cycles || self.at(first) > 0.0)
    }

    /// How many of the first `steps` steps may be draws, before burn-in is considered.
    fn eligible(self, steps: u64) -> u64 {
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

    /// How many draws are kept of the first `steps` steps: every `thin`-th step after burn-in that may be a draw; none if `thin` is 0.
    pub fn draws(self, steps: u64, burn_in: u64, thin: u64) -> u64 {
        self.eligible(steps).saturating_sub(self.eligible(burn_in)).checked_div(thin).unwrap_or(0)
    }

    /// Checks all values.
    ///
    /// # Errors
    /// If a value is out of its range; the error names the key.
    pub fn check(self) -> Result<(), KeyError> {
        in_range("coupling", self.full, self.full.is_finite() && self.full >= 0.0, "a finite number, 0 or above")?;
        let wrong = |key: &str, sentence: String| Err(KeyError::invalid(&format!("coupling_schedule.{key}"), sentence));
        match self.schedule {
            CouplingSchedule::Cyclic { coupled: 0, .. } => wrong("cyclic.coupled", "must be at least 1, not 0".into()),
            CouplingSchedule::Cyclic { free, settle, .. } if free <= settle => {
                wrong("cyclic.free", format!("must be above settle = {settle}, not {free}"))
            }
            CouplingSchedule::Cyclic { coupled, free, .. } if coupled.checked_add(free).is_none() => {
                wrong("cyclic.free", format!("= {free} plus coupled = {coupled} is above 2^64 − 1"))
            }
            CouplingSchedule::Anneal { from, over } if from.checked_add(over).is_none() => {
                wrong("anneal.over", format!("= {over} plus from = {from} is above 2^64 − 1"))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn annealed_coupling_falls_to_zero_and_draws_begin_there() {
        let strength = CouplingStrength { full: 2.0, schedule: CouplingSchedule::Anneal { from: 10, over: 4 } };
        let found: Vec<f64> = [0, 9, 10, 11, 12, 13, 14, 15].iter().map(|&step| strength.at(step)).collect();
        assert_eq!(found, [2.0, 2.0, 2.0, 1.5, 1.0, 0.5, 0.0, 0.0]);
        assert!(strength.is_active(13, 4) && !strength.is_active(14, 4));
        assert_eq!([strength.draws(14, 0, 1), strength.draws(20, 0, 2), strength.draws(20, 16, 2)], [0, 3, 2]);
        let at_once = CouplingStrength { full: 2.0, schedule: CouplingSchedule::Anneal { from: 3, over: 0 } };
        assert_eq!([at_once.at(2), at_once.at(3)], [2.0, 0.0]);
    }

    #[test]
    fn draws_of_cyclic_coupling_come_from_free_steps() {
        let strength = CouplingStrength { full: 1.0, schedule: CouplingSchedule::Cyclic { coupled: 3, free: 5, settle: 2 } };
        let kept: Vec<u64> = (0..16).filter(|&step| strength.draws(step + 1, 0, 1) > strength.draws(step, 0, 1)).collect();
        assert_eq!(kept, [5, 6, 7, 13, 14, 15]);
        assert!(kept.iter().all(|&step| strength.at(step) == 0.0));
        let active: Vec<u64> = (0..16).filter(|&first| strength.is_active(first, 2)).collect();
        assert_eq!(active, [0, 1, 2, 7, 8, 9, 10, 15]);
    }

    #[test]
    fn without_coupling_every_step_may_be_a_draw() {
        let strength = CouplingStrength { full: 0.0, schedule: CouplingSchedule::Anneal { from: 10, over: 4 } };
        assert_eq!([strength.draws(20, 5, 3), CouplingStrength::NONE.draws(20, 0, 1)], [5, 20]);
        let wrong = CouplingStrength { full: 1.0, schedule: CouplingSchedule::Cyclic { coupled: 5, free: 2, settle: 2 } };
        assert!(wrong.check().is_err() && CouplingStrength { full: f64::NAN, ..CouplingStrength::NONE }.check().is_err());
    }
}
