//! Server of distributed SVGD: passes particles on, adds up the agents' sites, and moves particles itself if agents send their factors.

use super::agent::METRICS;
use super::sites::Sites;
use super::{Dsvgd, Factors};
use crate::cluster::{Context, Outbox, Progress, Raw, Response, Result, SerializesAs, Server};
use crate::kernels::kde::KdeFactor;
use crate::kernels::svgd::SvgdLoop;
use crate::methods::common::participation::log_round;
use crate::methods::common::particles::{Particles, raw};
use crate::methods::common::with_evaluation::Posterior;
use crate::number::Real;
use ndarray::{Array2, ArrayView2};
use serde::{Deserialize, Serialize};

/// Keeps the global particles, and the factors that travel.
pub struct DsvgdServer<F: Real> {
    pub(super) method: Dsvgd<F>,
    pub(super) state: ServerState<F>,
}

/// Saved state of the server.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct ServerState<F: Real> {
    /// The global particles.
    global: Particles<F>,
    /// Natural parameters of the product of all agents' sites; in double precision, as the changes of all rounds are added up. Empty
    /// without sites.
    sites: Raw<f64>,
    /// P-DSVGD without sites: the particles of each agent's factor, empty before its first round. Empty otherwise.
    factors: Vec<Raw<F>>,
}

impl<F: Real> DsvgdServer<F> {
    fn request_round(&self, out: &mut Outbox<Dsvgd<F>>, cx: &Context) {
        let Dsvgd { problem, rounds, schedule, factors, server_steps, .. } = &self.method;
        let ServerState { global: Particles { round, theta }, sites, .. } = &self.state;
        if round < rounds {
            let message: Vec<F> = theta.0.iter().copied().chain(sites.0.iter().map(|&value| F::of(value))).collect();
            let request = out.request(schedule.agents(*round, problem.agents, cx), round + 1).with(message);
            if server_steps.is_some() && factors.sites().is_some() {
                request.sum();
            }
        }
    }

    /// Multiplies the product of all sites by changes of sites.
    fn add_sites(&mut self, changes: &[F]) -> Result<()> {
        let sites = &mut self.state.sites.0;
        if changes.len() != sites.len() {
            return Err(format!("dsvgd: {} values of sites, not {}", changes.len(), sites.len()).into());
        }
        sites.iter_mut().zip(changes).for_each(|(sum, change)| *sum += change.f64());
        Ok(())
    }

    /// The particles after the server's Stein steps, whose target is the product of the prior and all factors. The factor of an agent
    /// that has not been visited is 1, or p0 if factors contain the prior.
    fn server_loop(&self, steps: u64) -> Result<Array2<F>> {
        let Dsvgd { problem, factors, stein, .. } = &self.method;
        let shape = self.method.shape();
        let before = ArrayView2::from_shape(shape, &self.state.global.theta.0)?;
        let visited = self.state.factors.iter().filter(|factor| !factor.0.is_empty());
        let frozen: Vec<KdeFactor<F>> =
            visited.map(|factor| Ok(KdeFactor::plus(ArrayView2::from_shape(shape, &factor.0)?))).collect::<Result<_>>()?;
        let priors = F::of(if factors.absorb() { 1.0 - frozen.len() as f64 } else { 1.0 });
        let sites = factors.sites().map(|settings| {
            let values = self.state.sites.0.iter().map(|&value| F::of(value)).collect();
            Sites::new(settings.curvature, shape, values)
        });
        let sites = sites.transpose()?;
        let mut stein = SvgdLoop::new(shape.0, shape.1, *stein);
        stein.begin(before, &frozen);
        let (mut theta, mut score) = (before.to_owned(), Array2::zeros(shape));
        for _ in 0..steps {
            problem.model.prior_score(theta.view(), score.view_mut());
            score.mapv_inplace(|score| priors * score);
            if let Some(sites) = &sites {
                sites.add_score(theta.view(), score.view_mut())?;
            }
            stein.step(Some(score.view()), Some(theta.view_mut()));
        }
        Ok(theta)
    }
}

impl<F: Real> Server<Dsvgd<F>> for DsvgdServer<F> {
    type State = ServerState<F>;

    fn state(&self) -> impl SerializesAs<ServerState<F>> {
        &self.state
    }

    fn start(&mut self, out: &mut Outbox<Dsvgd<F>>, cx: &mut Context) -> Result<()> {
        let Dsvgd { problem, particles, factors, server_steps, .. } = &self.method;
        let agents = match factors {
            Factors::Distilled { .. } if server_steps.is_some() => problem.agents as usize,
            _ => 0,
        };
        self.state = ServerState {
            global: Particles::initial(problem.initial_particles(*particles, cx)),
            sites: Raw(vec![0.0; self.method.site_size()]),
            factors: vec![Raw::default(); agents],
        };
        self.request_round(out, cx);
        Ok(())
    }

    fn receive(&mut self, response: Response<Dsvgd<F>>, out: &mut Outbox<Dsvgd<F>>, cx: &mut Context) -> Result<()> {
        let Dsvgd { rounds, factors, server_steps, .. } = self.method;
        let (particles, dim) = self.method.shape();
        let size = particles * dim;
        log_round(self.state.global.round + 1, METRICS, &response.reports, cx);
        let theta = if let Some(steps) = server_steps {
            if factors.sites().is_some() {
                self.add_sites(&response.sum)?;
            } else {
                for reported in response.reports {
                    if reported.body.len() != size {
                        return Err(format!("dsvgd: {} values of a factor, not {size}", reported.body.len()).into());
                    }
                    let factor = self.state.factors.get_mut(reported.from as usize);
                    *factor.ok_or("dsvgd: a factor of an unknown agent")? = Raw(reported.body.into_vec());
                }
            }
            raw(self.server_loop(steps)?).0
        } else {
            let mut body = response.only()?.body.into_vec();
            if body.len() < size {
                return Err(format!("dsvgd: {} values of particles, not {size}", body.len()).into());
            }
            self.add_sites(&body[size..])?;
            body.truncate(size);
            body
        };
        self.state.global.end_round(theta, dim, rounds, cx);
        self.request_round(out, cx);
        Ok(())
    }

    fn progress(&self) -> Progress {
        self.state.global.progress(self.method.rounds)
    }
}

impl<F: Real> Posterior<F> for DsvgdServer<F> {
    fn posterior(&self) -> (u64, &[F]) {
        self.state.global.posterior()
    }
}
