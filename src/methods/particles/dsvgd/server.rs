//! Server of distributed SVGD: passes particles on, adds up the agents' sites, and moves particles itself if agents send their factors.

use super::agent::METRICS;
use super::sites::{Sites, sites_at_zero};
use super::{Dsvgd, Factors};
use crate::cluster::{Context, Outbox, Raw, Response, Result};
use crate::kernels::kde::KdeFactor;
use crate::kernels::svgd::SvgdLoop;
use crate::kernels::triangle;
use crate::methods::common::participation::log_round;
use crate::methods::common::particles::{Particles, raw};
use crate::methods::common::rounds::Rounds;
use crate::methods::tuning::prior_curvature;
use crate::number::Real;
use ndarray::{Array2, ArrayView2};
use serde::{Deserialize, Serialize};

/// What the server keeps of the agents' factors.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct GlobalFactors<F: Real> {
    /// Natural parameters of the product of all agents' sites; in double precision, as the changes of all rounds are added up. Empty
    /// without sites.
    sites: Raw<f64>,
    /// P-DSVGD without sites: the particles of each agent's factor, empty before its first round. Empty otherwise.
    particles: Vec<Raw<F>>,
}

impl<F: Real> GlobalFactors<F> {
    /// Multiplies the product of all sites by changes of sites.
    fn add_sites(&mut self, changes: &[F]) -> Result<()> {
        if changes.len() != self.sites.0.len() {
            return Err(format!("dsvgd: {} values of sites, not {}", changes.len(), self.sites.0.len()).into());
        }
        self.sites.0.iter_mut().zip(changes).for_each(|(sum, change)| *sum += change.f64());
        Ok(())
    }
}

impl<F: Real> Rounds for Dsvgd<F> {
    type State = GlobalFactors<F>;

    fn start(&self, cx: &Context) -> Result<(Vec<F>, GlobalFactors<F>)> {
        let theta = raw(self.problem.initial_particles(self.particles, cx)).0;
        let agents = match self.factors {
            Factors::Distilled { .. } if self.server_steps.is_some() => self.problem.agents as usize,
            _ => 0,
        };
        let sites = Raw(match self.problem.model.whitening() {
            Some(whitening) if self.starts_at_mode() => {
                // The curvatures of all losses and the prior add up to the identity.
                let dim = self.problem.model.dim();
                let losses = Array2::eye(dim) - prior_curvature(self.problem.model.as_ref(), &vec![0.0; dim]);
                let score: Vec<f64> = whitening.center_score().iter().map(|score| score.f64()).collect();
                sites_at_zero(self.particles, &score, &triangle::pack(losses.view()))
            }
            _ => vec![0.0; self.sites_len()],
        });
        Ok((theta, GlobalFactors { sites, particles: vec![Raw::default(); agents] }))
    }

    fn request(&self, global: &Particles<F>, factors: &GlobalFactors<F>, out: &mut Outbox<Self>, cx: &Context) {
        let agents = self.schedule.agents(global.round, self.problem.agents, cx);
        let sites = factors.sites.0.iter().map(|&value| F::of(value));
        let message: Vec<F> = global.theta.0.iter().copied().chain(sites).collect();
        let request = out.request(agents, global.round + 1).with(message);
        if self.server_steps.is_some() && self.factors.sites().is_some() {
            request.sum();
        }
    }

    fn update(
        &self,
        global: &Particles<F>,
        factors: &mut GlobalFactors<F>,
        response: Response<Self>,
        cx: &mut Context,
    ) -> Result<Option<Vec<F>>> {
        let (particles, dim) = self.shape();
        let size = particles * dim;
        log_round(global.round + 1, METRICS, &response.reports, cx);
        let Some(steps) = self.server_steps else {
            let mut body = response.only()?.body.into_vec();
            if body.len() < size {
                return Err(format!("dsvgd: {} values of particles, not {size}", body.len()).into());
            }
            factors.add_sites(&body[size..])?;
            body.truncate(size);
            return Ok(Some(body));
        };
        if self.factors.sites().is_some() {
            factors.add_sites(&response.sum)?;
        } else {
            for reported in response.reports {
                if reported.body.len() != size {
                    return Err(format!("dsvgd: {} values of a factor, not {size}", reported.body.len()).into());
                }
                let factor = factors.particles.get_mut(reported.from as usize);
                *factor.ok_or("dsvgd: a factor of an unknown agent")? = Raw(reported.body.into_vec());
            }
        }
        Ok(Some(raw(self.server_loop(global, factors, steps)?).0))
    }
}

impl<F: Real> Dsvgd<F> {
    /// The particles after the server's Stein steps, whose target is the product of the prior and all factors. The factor of an agent
    /// that has not been visited is 1, or p0 if factors contain the prior.
    fn server_loop(&self, global: &Particles<F>, factors: &GlobalFactors<F>, steps: u64) -> Result<Array2<F>> {
        let shape = self.shape();
        let before = ArrayView2::from_shape(shape, &global.theta.0)?;
        let visited = factors.particles.iter().filter(|factor| !factor.0.is_empty());
        let frozen: Vec<KdeFactor<F>> =
            visited.map(|factor| Ok(KdeFactor::plus(ArrayView2::from_shape(shape, &factor.0)?))).collect::<Result<_>>()?;
        let priors = F::of(if self.factors.contain_prior() { 1.0 - frozen.len() as f64 } else { 1.0 });
        let sites = self.factors.sites().map(|settings| {
            let values = factors.sites.0.iter().map(|&value| F::of(value)).collect();
            Sites::new(settings.curvature, shape, values)
        });
        let sites = sites.transpose()?;
        let mut stein = SvgdLoop::new(shape.0, shape.1, self.stein);
        stein.begin(before, &frozen);
        let (mut theta, mut score) = (before.to_owned(), Array2::zeros(shape));
        for _ in 0..steps {
            self.problem.model.prior_score(theta.view(), score.view_mut());
            score.mapv_inplace(|score| priors * score);
            if let Some(sites) = &sites {
                sites.add_score(theta.view(), score.view_mut())?;
            }
            stein.step(Some(score.view()), Some(theta.view_mut()));
        }
        Ok(theta)
    }
}
