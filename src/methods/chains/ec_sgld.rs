//! EC-SGLD: chains of stochastic gradient Langevin dynamics with elastic coupling to a center variable.

use crate::kernels::langevin::StepSize;
use crate::methods::chains::coupled::settings::{check_steps, coupled_method, needs_of, notes_of, strength, unstable};
use crate::methods::chains::coupled::stability::{Steps, asynchronous_is_stable};
use crate::methods::chains::coupled::{CenterDynamics, Coupling, CouplingPlan, CouplingSchedule, CouplingStrength};
use crate::methods::chains::ec_sghmc::EcSghmcSettings;
use crate::methods::common::settings::{MethodSettings, ResourceEstimate, Sharing, Table, TableMethod};

use crate::methods::common::problem::Problem;
use crate::methods::common::scores::Estimator;
use crate::methods::transitions::sgld::Sgld;
use crate::number::Real;
use crate::settings::{Key, KeyError, in_range, keys};
use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

/// The settings of `ec_sgld`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields, default)]
pub struct EcSgldSettings {
    /// Steps of each chain. Every agent runs a chain on all data.
    pub steps: u64,
    /// Steps between exchanges with the center (s).
    pub period: u64,
    /// Rows in a minibatch, drawn anew for every step.
    pub batch: usize,
    /// Variance of the noise of a step, whose drift is half of it times the score.
    pub step: f64,
    /// Strength of the springs between chains and center (κ).
    pub coupling: f64,
    /// How the coupling changes: `"constant"` (draws are then not from the posterior), `{ anneal = { from = 500, over = 500 } }`, or
    /// `{ cyclic = { coupled = 100, free = 400, settle = 100 } }`. By default it is annealed to 0 in the second half of burn-in.
    pub coupling_schedule: Option<CouplingSchedule>,
    /// Whether each chain exchanges with the center on its own time; `false` waits for the slowest at every exchange.
    pub asynchronous: bool,
    /// Estimator of the score: `"plain"`, or `{ control_variate = 100 }`, which from that period on corrects the score of a minibatch by
    /// the score at a fixed point.
    pub gradient: Estimator,
    /// Whether all chains start at the same state.
    pub same_start: bool,
    /// Steps of each chain before its first draw.
    pub burn_in: u64,
    /// Keep every `thin`-th step after burn-in; 0 keeps no draws.
    pub thin: u64,
}

impl Default for EcSgldSettings {
    fn default() -> Self {
        let EcSghmcSettings { steps, period, batch, coupling, burn_in, thin, .. } = EcSghmcSettings::default();
        let gradient = Estimator::default();
        let (asynchronous, same_start) = (false, false);
        Self {
            steps,
            period,
            batch,
            step: 1e-5,
            coupling,
            coupling_schedule: None,
            asynchronous,
            gradient,
            same_start,
            burn_in,
            thin,
        }
    }
}

impl EcSgldSettings {
    fn strength(&self) -> CouplingStrength {
        strength(self.coupling, self.coupling_schedule, self.burn_in)
    }

    /// The plan of its chains.
    pub fn plan(&self) -> CouplingPlan {
        let Self { steps, period, burn_in, thin, same_start, .. } = *self;
        let coupling = Coupling::Elastic(CenterDynamics::FirstOrder);
        let (strength, extrapolate, sleep_ms) = (self.strength(), false, Vec::new());
        CouplingPlan { steps, period, burn_in, thin, same_start, strength, coupling, extrapolate, sleep_ms }
    }

    /// The transition of its chains.
    pub fn transition<F: Real>(&self, problem: Problem<F>) -> Sgld<F> {
        Sgld { problem, batch: self.batch, step: StepSize::Constant(self.step), gradient: self.gradient }
    }
}

impl MethodSettings for EcSgldSettings {
    type Data = Table;

    const NAME: &'static str = "ec_sgld";

    const SHARING: Sharing = Sharing::Replicated;

    fn keys() -> Vec<Key> {
        keys::<Self>()
    }

    fn estimate(&self, agents: u32, parameters: usize) -> ResourceEstimate {
        needs_of(agents, parameters, self.steps, self.period, self.batch, 5)
    }

    fn notes(&self, agents: u32) -> Vec<String> {
        notes_of(self.strength(), false, agents)
    }

    fn check_agents(&self, agents: u32) -> Result<(), KeyError> {
        let (kappa, period) = (self.coupling, self.period.min(self.steps));
        let steps = Steps::FirstOrder(0.5 * self.step);
        if self.asynchronous && kappa > 0.0 && !asynchronous_is_stable(steps, kappa, agents, CenterDynamics::FirstOrder, period) {
            return unstable(kappa, period, self.step, "asynchronous = true");
        }
        Ok(())
    }

    fn check(&self) -> Result<(), KeyError> {
        check_steps(self.steps, self.period, self.batch, self.strength(), self.burn_in, self.thin)?;
        in_range("step", self.step, self.step.is_finite() && self.step > 0.0, "above 0")?;
        let stiff = 0.5 * self.step * self.coupling;
        if stiff >= 2.0 {
            let sentence = format!("= {} is unstable: step · coupling/2 = {stiff:.3} must be below 2", self.coupling);
            return Err(KeyError::invalid("coupling", sentence));
        }
        Ok(())
    }

    fn method<F: Real>(&self, problem: Problem<F>) -> TableMethod<F> {
        let (agents, plan) = (problem.agents, self.plan());
        let transition = self.transition(problem);
        coupled_method(self.asynchronous, agents, transition, plan)
    }
}
