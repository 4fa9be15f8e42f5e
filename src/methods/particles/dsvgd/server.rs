//! The server of distributed SVGD: hands particles on, adds up sites, and moves particles itself where agents send their factors.

use super::client::DsvgdClient;
use super::sites::Sites;
use super::{Dsvgd, Factors};
use crate::cluster::{AgentId, Context, Raw, Result};
use crate::kernels::kde::KdeFactor;
use crate::kernels::svgd::SvgdLoop;
use crate::methods::common::federated::{Client, ClientState, Global, Responses, Strategy};
use crate::methods::common::problem::Problem;
use crate::number::Real;
use ndarray::{Array2, ArrayView2};

impl<F: Real> Strategy<F> for Dsvgd {
    fn start(&self, problem: &Problem<F>, cx: &Context) -> Result<Global<F>> {
        let theta = problem.initial_particles(self.particles, cx).into_raw_vec_and_offset().0;
        let sums = match self.factors {
            Factors::Sites(sites) => vec![0.0; sites.size(self.particles, problem.model.dim())],
            Factors::Distilled { .. } | Factors::Remembered => Vec::new(),
        };
        let sets = match self.factors {
            Factors::Distilled { .. } if self.server_steps.is_some() => vec![Raw(Vec::new()); problem.agents as usize],
            _ => Vec::new(),
        };
        Ok(Global { sums: Raw(sums), sets, ..Global::initial(theta) })
    }

    fn message(&self, global: &Global<F>) -> Vec<F> {
        let mut message = global.theta.0.clone();
        message.extend(global.sums.0.iter().map(|&sum| F::of(sum)));
        message
    }

    fn adds_up(&self) -> bool {
        self.server_steps.is_some() && self.factors.sites().is_some()
    }

    fn columns(&self) -> &'static [&'static str] {
        &super::client::COLUMNS
    }

    fn aggregate(&self, global: &mut Global<F>, responses: Responses<F>, problem: &Problem<F>, _cx: &mut Context) -> Result<()> {
        let size = self.particles * problem.model.dim();
        let wanted = match (self.server_steps, global.sums.0.len()) {
            (None, sums) => size + sums,
            (Some(_), 0) => size,
            (Some(_), sums) => sums,
        };
        if let Some(body) = responses.bodies.iter().find(|body| body.len() != wanted) {
            return Err(format!("{} numbers from a visit, not {wanted}", body.len()).into());
        }
        let add = |sums: &mut [f64], changes: &[F]| sums.iter_mut().zip(changes).for_each(|(sum, change)| *sum += change.f64());
        let Some(steps) = self.server_steps else {
            let mut theta = responses.only()?.into_vec();
            add(&mut global.sums.0, &theta[size..]);
            theta.truncate(size);
            global.theta = Raw(theta);
            return Ok(());
        };
        if self.factors.sites().is_some() {
            add(&mut global.sums.0, &responses.only()?);
        } else {
            for (agent, body) in responses.agents.into_iter().zip(responses.bodies) {
                *global.sets.get_mut(agent as usize).ok_or("an answer of an agent that there is not")? = Raw(body.into_vec());
            }
        }
        global.theta = Raw(self.walk(global, steps, problem)?.into_raw_vec_and_offset().0);
        Ok(())
    }

    fn client(&self, problem: &Problem<F>, agent: AgentId, saved: ClientState<F>) -> Result<Box<dyn Client<F>>> {
        Ok(Box::new(DsvgdClient::new(self.clone(), problem.clone(), agent, saved)?))
    }
}

impl Dsvgd {
    /// Stein steps from the particles with the product of the prior and all factors. An agent that has not been visited has the factor
    /// 1, or p0 where factors contain the prior.
    fn walk<F: Real>(&self, global: &Global<F>, steps: u64, problem: &Problem<F>) -> Result<Array2<F>> {
        let shape = (self.particles, problem.model.dim());
        let before = ArrayView2::from_shape(shape, &global.theta.0)?;
        let visited = global.sets.iter().filter(|set| !set.0.is_empty());
        let factors: Vec<KdeFactor<F>> =
            visited.map(|set| Ok(KdeFactor::plus(ArrayView2::from_shape(shape, &set.0)?))).collect::<Result<_>>()?;
        let priors = F::of(if self.factors.absorb() { 1.0 - factors.len() as f64 } else { 1.0 });
        let sites = self.factors.sites().map(|settings| {
            let sums = global.sums.0.iter().map(|&sum| F::of(sum)).collect();
            Sites::of(settings.curvature, shape, sums)
        });
        let sites = sites.transpose()?;
        let mut stein = SvgdLoop::new(shape.0, shape.1, self.stein);
        stein.begin(before, &factors);
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
