//! Server of partitioned variational inference: adds up the changes of the agents' factors and draws from their product.

use super::{Covariance, Gaussian, Pvi};
use crate::cluster::{Context, Outbox, Progress, Raw, Response, Result, SerializesAs, Server};
use crate::methods::common::participation::log_round;
use crate::methods::common::particles::Particles;
use crate::methods::common::with_evaluation::Posterior;
use crate::number::Real;
use crate::random::{Purpose, Who};
use ndarray::Array2;
use serde::{Deserialize, Serialize};

/// The largest dimension in which the covariance is written to the result file.
const MAX_COVARIANCE_DIM: usize = 20;

/// Keeps the product of all factors.
pub struct PviServer<F: Real> {
    pub(super) method: Pvi<F>,
    /// What a checkpoint keeps.
    pub state: ServerState<F>,
}

/// Saved state of the server.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct ServerState<F: Real> {
    /// Draws from q.
    pub draws: Particles<F>,
    /// Natural parameters of q; in double precision, as the changes of all rounds are added up.
    pub natural_parameters: Raw<f64>,
}

impl<F: Real> PviServer<F> {
    fn request_round(&self, out: &mut Outbox<Pvi<F>>, cx: &Context) {
        let Pvi { problem, rounds, schedule, .. } = &self.method;
        let round = self.state.draws.round;
        if round < *rounds {
            let parameters: Vec<F> = self.state.natural_parameters.0.iter().map(|&value| F::of(value)).collect();
            out.request(schedule.agents(round, problem.agents, cx), round + 1).with(parameters).sum();
        }
    }
}

impl<F: Real> Server<Pvi<F>> for PviServer<F> {
    type State = ServerState<F>;

    fn state(&self) -> impl SerializesAs<ServerState<F>> {
        &self.state
    }

    fn start(&mut self, out: &mut Outbox<Pvi<F>>, cx: &mut Context) -> Result<()> {
        let natural_parameters = self.method.prior(cx)?;
        let draws = self.method.draws(&self.method.gaussian(&natural_parameters)?, cx);
        self.state =
            ServerState { draws: Particles { round: 0, theta: Raw(draws) }, natural_parameters: Raw(natural_parameters) };
        self.request_round(out, cx);
        Ok(())
    }

    fn receive(&mut self, response: Response<Pvi<F>>, out: &mut Outbox<Pvi<F>>, cx: &mut Context) -> Result<()> {
        let Self { method, state: ServerState { draws, natural_parameters: Raw(parameters) } } = self;
        let (round, change) = (draws.round + 1, response.sum);
        log_round(round, ["damping"], &response.reports, cx);
        if change.len() != parameters.len() {
            return Err(format!("pvi: changes of {} natural parameters, not {}", change.len(), parameters.len()).into());
        }
        let before = method.gaussian(parameters)?;
        parameters.iter_mut().zip(change.iter()).for_each(|(sum, change)| *sum += change.f64());
        let q = method.gaussian(parameters)?;
        cx.log_row("approximation", round, [("kl_of_change", q.divergence(&before)), ("log_determinant", q.log_determinant())]);
        draws.end_round(method.draws(&q, cx), method.dim(), method.rounds, cx);
        if round == method.rounds {
            method.log_gaussian(&q, cx);
        }
        self.request_round(out, cx);
        Ok(())
    }

    fn progress(&self) -> Progress {
        self.state.draws.progress(self.method.rounds)
    }
}

impl<F: Real> Posterior<F> for PviServer<F> {
    fn posterior(&self) -> (u64, &[F]) {
        self.state.draws.posterior()
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

    /// N draws from q (N × d). They come from the same standard normal numbers in every round, so that only q changes them.
    fn draws(&self, q: &Gaussian, cx: &Context) -> Vec<F> {
        let mut z = Array2::zeros((self.particles, self.dim()));
        for (n, mut row) in (0..).zip(z.rows_mut()) {
            let mut normals = vec![0.0; row.len()];
            cx.stream(Who::Run, n, Purpose::Initial).normals(&mut normals);
            row.iter_mut().zip(normals).for_each(|(z, normal)| *z = normal);
        }
        q.place(z.view()).into_iter().map(F::of).collect()
    }

    /// Writes the table `gaussian`: one row for each coordinate, whose number takes the place of the step; in up to 20 dimensions with
    /// its row of the covariance.
    fn log_gaussian(&self, q: &Gaussian, cx: &mut Context) {
        let covariance = (self.covariance == Covariance::Full && self.dim() <= MAX_COVARIANCE_DIM).then(|| q.covariance());
        for (place, (step, (&mean, sd))) in (0..).zip(q.mean().iter().zip(q.deviations())).enumerate() {
            let mut columns = vec![("mean".to_owned(), mean), ("sd".to_owned(), sd)];
            if let Some(covariance) = &covariance {
                let row = covariance.row(place);
                columns.extend(row.iter().enumerate().map(|(other, &value)| (format!("covariance_{other}"), value)));
            }
            cx.log_row("gaussian", step, columns);
        }
    }
}
