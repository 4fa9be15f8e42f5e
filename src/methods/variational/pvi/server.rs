//! Server of partitioned variational inference: adds up the changes of the agents' factors and draws from their product.

use super::{Covariance, Gaussian, Pvi, double};
use crate::cluster::{Context, Outbox, Raw, Response, Result};
use crate::methods::common::participation::log_round;
use crate::methods::common::particles::Particles;
use crate::methods::common::rounds::Rounds;
use crate::number::Real;
use crate::random::{Purpose, Who};
use ndarray::{Array2, Axis};
use ndarray_linalg::{Cholesky, Diag, SolveTriangular, UPLO};

/// The largest dimension in which the covariance is written to the result file.
const MAX_COVARIANCE_DIM: usize = 20;

/// The server keeps the natural parameters of q, in double precision, as the changes of all rounds are added up.
impl<F: Real> Rounds for Pvi<F> {
    type State = Raw<f64>;

    fn start(&self, cx: &Context) -> Result<(Vec<F>, Raw<f64>)> {
        let parameters = self.start_parameters(cx)?;
        Ok((self.draws(&self.gaussian(&parameters)?, cx), Raw(parameters)))
    }

    fn request(&self, draws: &Particles<F>, parameters: &Raw<f64>, out: &mut Outbox<Self>, cx: &Context) {
        let agents = self.schedule.agents(draws.round, self.problem.agents, cx);
        let parameters: Vec<F> = parameters.0.iter().map(|&value| F::of(value)).collect();
        out.request(agents, draws.round + 1).with(parameters).sum();
    }

    fn update(
        &self,
        draws: &Particles<F>,
        Raw(parameters): &mut Raw<f64>,
        response: Response<Self>,
        cx: &mut Context,
    ) -> Result<Option<Vec<F>>> {
        let (round, change) = (draws.round + 1, response.sum);
        log_round(round, ["damping"], &response.reports, cx);
        if change.len() != parameters.len() {
            return Err(format!("pvi: changes of {} natural parameters, not {}", change.len(), parameters.len()).into());
        }
        let before = self.gaussian(parameters)?;
        parameters.iter_mut().zip(change.iter()).for_each(|(sum, change)| *sum += change.f64());
        let q = self.gaussian(parameters)?;
        let columns = [("kl_of_change", q.divergence(&before)), ("log_determinant", q.log_determinant())];
        cx.log_row("approximation", round, columns);
        if round == self.rounds {
            self.log_gaussian(&q, cx);
        }
        Ok(Some(self.draws(&q, cx)))
    }
}

impl<F: Real> Pvi<F> {
    /// The product of all factors.
    fn gaussian(&self, natural_parameters: &[f64]) -> Result<Gaussian> {
        Gaussian::of(self.natural(), natural_parameters).ok_or_else(|| {
            "pvi: the product of the agents' factors is not a Gaussian: its precision is not positive definite; use a smaller damping"
                .into()
        })
    }

    /// N draws from q (N × d). They come from the same standard normal numbers in every round, so that only q changes them. More than d
    /// draws have the mean and the covariance of q exactly.
    fn draws(&self, q: &Gaussian, cx: &Context) -> Vec<F> {
        let mut z = Array2::zeros((self.particles, self.dim()));
        for (n, mut row) in (0..).zip(z.rows_mut()) {
            let mut normals = vec![0.0; row.len()];
            cx.stream(Who::Run, n, Purpose::Initial).normals(&mut normals);
            row.iter_mut().zip(normals).for_each(|(z, normal)| *z = normal);
        }
        standardize(&mut z);
        q.place(z.view()).into_iter().map(F::of).collect()
    }

    /// Writes the table `gaussian`: one row for each coordinate, whose number takes the place of the step; in up to 20 dimensions with
    /// its row of the covariance.
    fn log_gaussian(&self, q: &Gaussian, cx: &mut Context) {
        let covariance_of_parameters = self.problem.model.whitening().map(|whitening| whitening.covariance(&q.covariance()));
        let deviations = match &covariance_of_parameters {
            Some(covariance) => covariance.diag().mapv(f64::sqrt),
            None => q.deviations(),
        };
        let position: Vec<F> = q.mean().iter().map(|&mean| F::of(mean)).collect();
        let mut mean = Vec::with_capacity(position.len());
        self.problem.model.append_parameters(&position, &mut mean);
        let is_written = self.covariance == Covariance::Full && self.dim() <= MAX_COVARIANCE_DIM;
        let covariance = is_written.then(|| covariance_of_parameters.unwrap_or_else(|| q.covariance()));
        for (place, (step, (mean, sd))) in (0..).zip(double(&mean).into_iter().zip(deviations)).enumerate() {
            let mut columns = vec![("mean".to_owned(), mean), ("sd".to_owned(), sd)];
            if let Some(covariance) = &covariance {
                let row = covariance.row(place);
                columns.extend(row.iter().enumerate().map(|(other, &value)| (format!("covariance_{other}"), value)));
            }
            cx.log_row("gaussian", step, columns);
        }
    }
}

/// Moves more than d points in d dimensions linearly, so that their mean is 0 and their covariance the identity.
fn standardize(points: &mut Array2<f64>) {
    let (count, dim) = points.dim();
    let Some(mean) = points.mean_axis(Axis(0)).filter(|_| count > dim) else { return };
    *points -= &mean;
    let covariance = points.t().dot(points) / (count as f64 - 1.0);
    let factor = covariance.cholesky(UPLO::Lower);
    let standardized = factor.and_then(|factor| factor.solve_triangular(UPLO::Lower, Diag::NonUnit, &points.t().to_owned()));
    // Independent points in general position have this factor.
    if let Ok(standardized) = standardized {
        *points = standardized.t().to_owned();
    }
}
