//! Loop of rounds of a federated method: its server requests work from agents, updates its state, and has new particles after each round.

use crate::cluster::{Context, Method, Outbox, Progress, Response, Result, Serializable, SerializesAs, Server};
use crate::methods::common::particles::Particles;
use crate::methods::common::problem::Problem;
use crate::methods::common::with_evaluation::Posterior;
use crate::number::Real;

/// A method whose server is a [`RoundServer`].
pub trait Rounds: Method<Number: Real> + Clone {
    /// What the server saves beside the particles.
    type State: Serializable + Default;

    /// The particles (N × d, row-major) and the state before the first round.
    ///
    /// # Errors
    /// If the method cannot be used for the problem.
    fn start(&self, cx: &Context) -> Result<(Vec<Self::Number>, Self::State)>;

    /// Requests the work of the next round, all at once.
    fn request(&self, particles: &Particles<Self::Number>, state: &Self::State, out: &mut Outbox<Self>, cx: &Context);

    /// Updates the state from a response. Returns the particles after the round, or `None` if the round has more responses.
    ///
    /// # Errors
    /// If the response does not fit the state.
    fn update(
        &self,
        particles: &Particles<Self::Number>,
        state: &mut Self::State,
        response: Response<Self>,
        cx: &mut Context,
    ) -> Result<Option<Vec<Self::Number>>>;
}

/// The server of a method that runs in rounds.
pub struct RoundServer<M: Rounds> {
    method: M,
    rounds: u64,
    problem: Problem<M::Number>,
    /// The rounds done and the particles after them.
    pub particles: Particles<M::Number>,
    /// What the method saves beside them.
    pub state: M::State,
}

impl<M: Rounds> RoundServer<M> {
    /// The server of this method for this many rounds, at the start or from a saved state.
    pub fn new(method: &M, problem: &Problem<M::Number>, rounds: u64, saved: Option<(Particles<M::Number>, M::State)>) -> Self {
        let (particles, state) = saved.unwrap_or_default();
        Self { method: method.clone(), rounds, problem: problem.clone(), particles, state }
    }

    fn request(&self, out: &mut Outbox<M>, cx: &Context) {
        if self.particles.round < self.rounds {
            self.method.request(&self.particles, &self.state, out, cx);
        }
    }
}

impl<M: Rounds> Server<M> for RoundServer<M> {
    type State = (Particles<M::Number>, M::State);

    fn state(&self) -> impl SerializesAs<Self::State> {
        (&self.particles, &self.state)
    }

    fn start(&mut self, out: &mut Outbox<M>, cx: &mut Context) -> Result<()> {
        (self.particles.theta.0, self.state) = self.method.start(cx)?;
        self.request(out, cx);
        Ok(())
    }

    fn receive(&mut self, response: Response<M>, out: &mut Outbox<M>, cx: &mut Context) -> Result<()> {
        if let Some(theta) = self.method.update(&self.particles, &mut self.state, response, cx)? {
            self.particles.end_round(theta, &self.problem, self.rounds, cx);
            self.request(out, cx);
        }
        Ok(())
    }

    fn progress(&self) -> Progress {
        self.particles.progress(self.rounds)
    }
}

impl<M: Rounds> Posterior<M::Number> for RoundServer<M> {
    fn posterior(&self) -> (u64, &[M::Number]) {
        self.particles.posterior()
    }
}
