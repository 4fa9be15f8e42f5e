//! Parallel distributed Stein variational gradient descent (P-DSVGD): several agents in each round, whose factors the server multiplies
//! (Kassab & Simeone, arXiv 2009.06419, appendix A.5).
//!
//! This file has the settings: the macro adds the keys and functions that all variants share. The engine is [`dsvgd`](super::dsvgd).

use super::dsvgd::settings::dsvgd_settings;
use crate::kernels::kde::KdeMode;
use crate::methods::common::participation::Participation;
use crate::methods::common::problem::Problem;
use crate::methods::common::settings::{MethodSettings, ResourceEstimate, Table, TableMethod, at_least_one};
use crate::methods::tuning::{Found, TuningNeeds};
use crate::models::Model;
use crate::number::Real;
use crate::settings::{Key, KeyError, keys};

dsvgd_settings! {
    /// The settings of `p_dsvgd`.
    distilled PDsvgdSettings {
        /// Which agents take part in a round: "all", { subset = 20 } (that many, drawn anew for each round), or one agent:
        /// "round_robin", "random_permutation" or "random".
        schedule: Participation = Participation::All,
        /// The steps by which the server moves the particles towards the product of all factors in each round (L_s).
        server_steps: u64 = 200,
    }
}

impl MethodSettings for PDsvgdSettings {
    type Data = Table;

    const NAME: &'static str = "p_dsvgd";

    fn keys() -> Vec<Key> {
        keys::<Self>()
    }

    fn estimate(&self, agents: u32, parameters: usize) -> ResourceEstimate {
        let shared = self.shared(self.tuning().is_some(), parameters);
        let (values_of_sites, sets) = self.cavity.needs(shared.particles, parameters);
        let values_of_set = shared.set(parameters);
        let report = if values_of_sites > 0 { values_of_sites } else { values_of_set };
        shared.estimate(agents, parameters, sets, values_of_set.saturating_add(values_of_sites).saturating_add(report))
    }

    fn for_agents(&self, agents: u32) -> Self {
        self.with_rounds_for(agents)
    }

    fn notes(&self, agents: u32) -> Vec<String> {
        self.schedule.note_on_rounds(self.rounds(), agents).into_iter().collect()
    }

    fn tuning(&self) -> Option<TuningNeeds> {
        TuningNeeds::coordinates(self.whitened && self.cavity.allows_whitening(), self.rounds())
    }

    fn tuned(&self, found: Found, _agents: u32) -> Self {
        Self { whitened: found != Found::Nothing, ..self.clone() }
    }

    fn check(&self) -> Result<(), KeyError> {
        // With one parameter: their number makes no difference to these checks.
        self.shared(self.whitened, 1).check()?;
        at_least_one(&[("server_steps", self.server_steps)])?;
        self.schedule.check()?;
        self.cavity.check(self.prior, self.kde)?;
        match self.kde {
            KdeMode::None => Err(KeyError::invalid(
                "kde",
                "= \"none\" leaves agents nothing to send: with cavity = \"kde\" the factors of their data are density estimates. Remove \
                 the key, and set cavity = { sites = {} }, or use the method dsvgd",
            )),
            _ => Ok(()),
        }
    }

    fn check_agents(&self, agents: u32) -> Result<(), KeyError> {
        self.schedule.check_agents(agents)
    }

    fn check_model(&self, model: &dyn Model<f64>) -> Result<(), KeyError> {
        self.cavity.check_model(model)
    }

    fn method<F: Real>(&self, problem: Problem<F>) -> TableMethod<F> {
        let factors = self.cavity.factors(problem.model.as_ref(), self.distillation_steps, self.prior);
        TableMethod::particles(self.shared_for(&problem).method(problem, factors, Some(self.server_steps)))
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
        for valid in ["", "schedule = { subset = 20 }", "cavity = { sites = { caution = 3.0 } }"] {
            assert_eq!(check::<PDsvgdSettings>(valid), Ok(()), "{valid}");
        }
        for (bad, expected) in [
            ("server_steps = 0", "server_steps"),
            ("schedule = { subset = 0 }", "at least 1"),
            ("cavity = \"kde\"\nkde = \"none\"", "sites"),
            ("cavity = { sites = { caution = -1.0 } }", "caution"),
        ] {
            assert!(check::<PDsvgdSettings>(bad).unwrap_err().to_string().contains(expected), "{bad}");
        }
        let subset = toml::from_str::<PDsvgdSettings>("schedule = { subset = 20 }").unwrap();
        assert!(subset.check_agents(20).is_ok() && subset.check_agents(19).unwrap_err().to_string().contains("at most 19"));
    }
}
