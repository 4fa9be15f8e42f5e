//! The Gaussian that stands for the prior before any data are seen.

use super::{Gaussian, Pvi};
use crate::cluster::{Context, Result};
use crate::methods::common::problem::Problem;
use crate::number::Real;
use crate::random::{Purpose, Who};
use ndarray::Array2;

/// The most steps of the fit: it is where factors begin, and need not be exact.
const STEPS: u64 = 200;

/// A step that changes the fit by less than this KL divergence for each parameter is the last; above the rounding of single precision.
const SMALL: f64 = 1e-13;

impl Pvi {
    /// The natural parameters of the Gaussian that is fitted to p0, the same on the server and all agents: a first step that is not damped,
    /// which of a Gaussian p0 finds p0 itself, and damped ones.
    ///
    /// # Errors
    /// Where p0 does not pin down every parameter.
    pub(super) fn prior<F: Real>(&self, problem: &Problem<F>, cx: &Context) -> Result<Vec<f64>> {
        let dim = problem.model.dim();
        let (natural, cubature) = (self.natural(dim), self.cubature(dim)?);
        let mut numbers = natural.standard();
        let mut q = Gaussian::of(natural, &numbers).ok_or("no parameters to infer")?;
        let mut pinned = false;
        for step in 0..STEPS {
            let nodes = cubature.nodes(cx.stream(Who::Server, step, Purpose::Nodes))?;
            let theta = q.place(nodes.z.view()).mapv(F::of);
            let mut score = Array2::zeros(theta.raw_dim());
            problem.model.prior_score(theta.view(), score.view_mut());
            let target = q.fitted(&nodes, score.mapv(F::f64).view());
            let mut slack = numbers.clone();
            natural.step(&mut numbers, &target, &mut slack, 1.0, if step == 0 { 1.0 } else { 0.5 });
            pinned |= natural.precisions(&target).all(|precision| precision > 0.0);
            let new = Gaussian::of(natural, &numbers).ok_or("the prior's precision cannot be told from 0")?;
            let change = new.divergence(&q);
            q = new;
            if pinned && change < SMALL * dim as f64 {
                break;
            }
        }
        if !pinned {
            return Err(
                "the prior does not pin down every parameter, as a flat one does not, and no Gaussian can stand for it before \
                        data are seen; take a proper prior, or a method with particles or chains"
                    .into(),
            );
        }
        Ok(numbers)
    }
}
