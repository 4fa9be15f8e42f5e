//! The Gaussian with which partitioned variational inference starts: around the mode of the posterior, or fitted to the prior.

use super::{Gaussian, Pvi};
use crate::cluster::{Context, Result};
use crate::number::Real;
use crate::random::{Purpose, Who};
use ndarray::Array2;

/// The maximum number of steps of the fit. Factors start from its result, which need not be exact.
const MAX_STEPS: u64 = 200;

/// The fit stops when a step changes it by less than this KL divergence per parameter, which exceeds rounding in single precision.
const TOLERANCE: f64 = 1e-13;

impl<F: Real> Pvi<F> {
    /// Natural parameters of the first Gaussian, the same on the server and all agents. In whitened coordinates this is N(0, I), the Gaussian
    /// around the mode of the posterior; otherwise it is fitted to p0. The first step of the fit is not damped, so that it is exact
    /// if p0 is Gaussian; the others are damped.
    ///
    /// # Errors
    /// If p0 is flat in some parameter.
    pub(super) fn start_parameters(&self, cx: &Context) -> Result<Vec<f64>> {
        let (natural, cubature) = (self.natural(), self.cubature()?);
        if self.problem.model.whitening().is_some() {
            return Ok(natural.standard());
        }
        let mut parameters = natural.standard();
        let mut q = Gaussian::of(natural, &parameters).ok_or("pvi: the model has no parameters")?;
        let mut bounded = false;
        for step in 0..MAX_STEPS {
            let nodes = cubature.nodes(cx.stream(Who::Server, step, Purpose::Nodes))?;
            let theta = q.place(nodes.z.view()).mapv(F::of);
            let mut score = Array2::zeros(theta.raw_dim());
            self.problem.model.prior_score(theta.view(), score.view_mut());
            let target = q.fitted(&nodes, score.mapv(F::f64).view());
            let mut slack = parameters.clone();
            natural.step(&mut parameters, &target, &mut slack, 1.0, if step == 0 { 1.0 } else { 0.5 });
            bounded |= natural.precisions(&target).all(|precision| precision > 0.0);
            let new =
                Gaussian::of(natural, &parameters).ok_or("pvi: the prior's precision is 0 to rounding; use a stronger prior")?;
            let change = new.divergence(&q);
            q = new;
            if bounded && change < TOLERANCE * natural.dim as f64 {
                break;
            }
        }
        if !bounded {
            return Err(
                "pvi: the prior is flat in some parameters and no Gaussian approximates it; use a proper prior, or a method with \
                        particles or chains"
                    .into(),
            );
        }
        Ok(parameters)
    }
}
