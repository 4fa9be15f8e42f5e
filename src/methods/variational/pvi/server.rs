//! The server of partitioned variational inference: adds up changes of factors, and draws from their product.

use super::client::{COLUMNS, PviClient};
use super::{Covariance, Gaussian, Pvi};
use crate::cluster::{AgentId, Context, Raw, Result};
use crate::methods::common::federated::{Client, ClientState, Global, Responses, Strategy};
use crate::methods::common::problem::Problem;
use crate::number::Real;
use crate::random::{Purpose, Who};
use ndarray::Array2;

/// The most dimensions in which the covariance is written down.
const WRITTEN: usize = 20;

impl<F: Real> Strategy<F> for Pvi {
    fn start(&self, problem: &Problem<F>, cx: &Context) -> Result<Global<F>> {
        let sums = self.prior(problem, cx)?;
        let q = self.product(&sums, problem.model.dim())?;
        Ok(Global { sums: Raw(sums), ..Global::initial(self.draws(&q, cx)) })
    }

    fn message(&self, global: &Global<F>) -> Vec<F> {
        global.sums.0.iter().map(|&sum| F::of(sum)).collect()
    }

    fn adds_up(&self) -> bool {
        true
    }

    fn columns(&self) -> &'static [&'static str] {
        &COLUMNS
    }

    fn aggregate(&self, global: &mut Global<F>, responses: Responses<F>, problem: &Problem<F>, cx: &mut Context) -> Result<()> {
        let change = responses.only()?;
        if change.len() != global.sums.0.len() {
            return Err(format!("{} numbers from a round, not {}", change.len(), global.sums.0.len()).into());
        }
        let dim = problem.model.dim();
        let before = self.product(&global.sums.0, dim)?;
        global.sums.0.iter_mut().zip(change.iter()).for_each(|(sum, change)| *sum += change.f64());
        let q = self.product(&global.sums.0, dim)?;
        let columns = [("kl_of_change", q.divergence(&before)), ("log_determinant", q.log_determinant())];
        cx.log_row("approximation", global.round + 1, columns);
        global.theta = Raw(self.draws(&q, cx));
        Ok(())
    }

    /// Table `gaussian`: a row for each coordinate, its number in the place of the step; in up to 20 dimensions with its row of the
    /// covariance.
    fn finish(&self, global: &Global<F>, problem: &Problem<F>, cx: &mut Context) -> Result<()> {
        let dim = problem.model.dim();
        let q = self.product(&global.sums.0, dim)?;
        let covariance = (self.covariance == Covariance::Full && dim <= WRITTEN).then(|| q.covariance());
        for (place, (step, (&mean, sd))) in (0..).zip(q.mean().iter().zip(q.deviations())).enumerate() {
            let mut columns = vec![("mean".to_owned(), mean), ("sd".to_owned(), sd)];
            if let Some(covariance) = &covariance {
                columns.extend(
                    covariance.row(place).iter().enumerate().map(|(other, &value)| (format!("covariance_{other}"), value)),
                );
            }
            cx.log_row("gaussian", step, columns);
        }
        Ok(())
    }

    fn client(&self, problem: &Problem<F>, agent: AgentId, saved: ClientState<F>) -> Result<Box<dyn Client<F>>> {
        Ok(Box::new(PviClient::new(self.clone(), problem.clone(), agent, saved)?))
    }
}

impl Pvi {
    /// The product of all factors.
    fn product(&self, sums: &[f64], dim: usize) -> Result<Gaussian> {
        Gaussian::of(self.natural(dim), sums).ok_or_else(|| {
            "the agents' factors together are no Gaussian any more: their precision is not positive definite; take a smaller damping".into()
        })
    }

    /// N draws, of the same standard normal numbers always: what differs between rounds is q.
    fn draws<F: Real>(&self, q: &Gaussian, cx: &Context) -> Vec<F> {
        let mut z = Array2::zeros((self.particles, q.mean().len()));
        for (n, mut row) in (0..).zip(z.rows_mut()) {
            let mut normals = vec![0.0; row.len()];
            cx.stream(Who::Run, n, Purpose::Initial).normals(&mut normals);
            row.iter_mut().zip(normals).for_each(|(z, normal)| *z = normal);
        }
        q.place(z.view()).into_iter().map(F::of).collect()
    }
}
