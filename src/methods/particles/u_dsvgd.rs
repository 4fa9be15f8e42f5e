//! Unconstrained-memory distributed Stein variational gradient descent (U-DSVGD): agents keep the particles before and after all of their
//! visits (Kassab & Simeone, arXiv 2009.06419, section 5.1).
//!
//! This file has the settings. The engine is [`dsvgd`](super::dsvgd).

use super::dsvgd::Factors;
use super::dsvgd::settings::dsvgd_settings;
use crate::kernels::kde::KdeMode;
use crate::methods::common::participation::Participation;
use crate::methods::common::problem::Problem;
use crate::methods::common::settings::{MethodSettings, ResourceEstimate, Table, TableMethod};
use crate::methods::tuning::{Found, TuningNeeds};
use crate::number::Real;
use crate::settings::{Key, KeyError, keys};

dsvgd_settings! {
    /// The settings of `u_dsvgd`.
    UDsvgdSettings {
        /// Order in which agents are visited, one in each round: "round_robin", "random_permutation" (all agents in a new random order in
        /// every cycle) or "random".
        schedule: Participation = Participation::default(),
    }
}

impl MethodSettings for UDsvgdSettings {
    type Data = Table;

    const NAME: &'static str = "u_dsvgd";

    fn keys() -> Vec<Key> {
        keys::<Self>()
    }

    fn estimate(&self, agents: u32, parameters: usize) -> ResourceEstimate {
        let shared = self.shared(self.tuning().is_some(), parameters);
        let visits = self.rounds().div_ceil(u64::from(agents.max(1)));
        // Two sets for each visit, twice: in memory, and among the rows of the loop. Particles, score, direction, the optimizer's mean
        // square.
        let sets = visits.saturating_mul(4).saturating_add(5);
        shared.estimate(agents, parameters, sets, shared.set(parameters).saturating_mul(2))
    }

    fn for_agents(&self, agents: u32) -> Self {
        self.with_rounds_for(agents)
    }

    fn notes(&self, agents: u32) -> Vec<String> {
        self.schedule.note_on_rounds(self.rounds(), agents).into_iter().collect()
    }

    fn tuning(&self) -> Option<TuningNeeds> {
        TuningNeeds::coordinates(self.whitened, self.rounds())
    }

    fn tuned(&self, found: Found, _agents: u32) -> Self {
        Self { whitened: found != Found::Nothing, ..self.clone() }
    }

    fn check(&self) -> Result<(), KeyError> {
        self.shared(self.whitened, 1).check()?;
        self.schedule.check_one()?;
        match self.kde {
            KdeMode::None => Err(KeyError::invalid(
                "kde",
                "= \"none\" loses the prior and the data of other agents, because only density estimates carry them. The method dsvgd \
                 can run without them",
            )),
            _ => Ok(()),
        }
    }

    fn method<F: Real>(&self, problem: Problem<F>) -> TableMethod<F> {
        TableMethod::particles(self.shared_for(&problem).method(problem, Factors::Remembered, None))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn check<K: MethodSettings>(text: &str) -> Result<(), String> {
        toml::from_str::<K>(text).unwrap().check().map_err(|error| error.to_string())
    }

    #[test]
    fn invalid_settings_are_refused() {
        for valid in ["", "schedule = \"random_permutation\"", "kde = \"authors_compat\""] {
            assert_eq!(check::<UDsvgdSettings>(valid), Ok(()), "{valid}");
        }
        for (bad, expected) in
            [("rounds = 0", "rounds"), ("batch = 0", "batch"), ("kde = \"none\"", "the prior"), ("schedule = \"all\"", "p_dsvgd")]
        {
            assert!(check::<UDsvgdSettings>(bad).unwrap_err().contains(expected), "{bad}");
        }
    }
}
