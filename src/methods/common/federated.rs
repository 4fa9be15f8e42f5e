//! Federated methods in one frame: in each round the server sends what it knows to some agents, each responds from its own rows alone,
//! and the server makes the next state of their responses.
//!
//! A strategy says what is sent, what an agent makes of it and how responses are put together; rounds, schedule, checkpoints, evaluation
//! and history are the same for all of them.

use crate::cluster::record::HISTORY;
use crate::cluster::{
    Agent, AgentId, Body, Context, Method, Outbox, Placement, Progress, Raw, Response, Result, SerializesAs, Server,
};
use crate::methods::common::kind::Launcher;
use crate::methods::common::participation::Participation;
use crate::methods::common::problem::Problem;
use crate::methods::common::with_evaluation::Posterior;
use crate::number::Real;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A federated method.
#[derive(Clone)]
pub struct Federated<F> {
    /// What is inferred.
    pub problem: Problem<F>,
    /// I, the number of rounds.
    pub rounds: u64,
    /// Who takes part in them.
    pub schedule: Participation,
    /// What happens in a round.
    pub strategy: Arc<dyn Strategy<F>>,
}

/// What happens in a round.
pub trait Strategy<F: Real>: Send + Sync {
    /// The state before the first round.
    ///
    /// # Errors
    /// Where the problem is none for the strategy.
    fn start(&self, problem: &Problem<F>, cx: &Context) -> Result<Global<F>>;

    /// Whether all agents are asked before the first round, as round 0, for numbers that add up; [`Self::prepare`] gets the sum.
    fn prepares(&self) -> bool {
        false
    }

    /// Puts the sum of what all agents answered before the first round into the state.
    ///
    /// # Errors
    /// Where it is none for it.
    fn prepare(&self, _global: &mut Global<F>, _sum: Body<F>) -> Result<()> {
        Ok(())
    }

    /// What is sent to the agents of a round.
    fn message(&self, global: &Global<F>) -> Vec<F>;

    /// Whether responses are only wanted as their sum, which is then formed on the way.
    fn adds_up(&self) -> bool {
        false
    }

    /// Puts the responses of a round, or their sum alone, into the state.
    ///
    /// # Errors
    /// Where they are none for it.
    fn aggregate(&self, global: &mut Global<F>, responses: Responses<F>, problem: &Problem<F>, cx: &mut Context) -> Result<()>;

    /// Writes down what there is to say of the state after the last round, beside its particles.
    ///
    /// # Errors
    /// Where the state is none for it.
    fn finish(&self, _global: &Global<F>, _problem: &Problem<F>, _cx: &mut Context) -> Result<()> {
        Ok(())
    }

    /// The names of the numbers that a client reports beside its answer.
    fn columns(&self) -> &'static [&'static str] {
        &[]
    }

    /// An agent's half.
    ///
    /// # Errors
    /// Where its shard cannot be read, or the problem is none for the strategy.
    fn client(&self, problem: &Problem<F>, agent: AgentId, saved: ClientState<F>) -> Result<Box<dyn Client<F>>>;
}

/// An agent's half of a strategy.
pub trait Client<F: Real>: Send {
    /// What a checkpoint keeps of it.
    fn state(&self) -> &ClientState<F>;

    /// Responses the server's message of this round, which counts from 1 (0: [`Strategy::prepares`]); with the numbers of [`Strategy::columns`].
    ///
    /// # Errors
    /// Where the message is none for it.
    fn respond(&mut self, round: u64, message: Body<F>, cx: &mut Context) -> Result<(Vec<f64>, Body<F>)>;

    /// Work that may wait until the answer is on its way.
    ///
    /// # Errors
    /// Where it fails.
    fn after_report(&mut self, _cx: &mut Context) -> Result<()> {
        Ok(())
    }
}

/// What the server keeps.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Global<F: Real> {
    /// Rounds done.
    pub round: u64,
    /// The particles after them (N × d, row-major) that stand for the posterior.
    pub theta: Raw<F>,
    /// Sums over agents; in double precision, as changes of all rounds are added up.
    pub sums: Raw<f64>,
    /// What is kept of each agent; nothing where the strategy keeps nothing, or before an agent's first round.
    pub sets: Vec<Raw<F>>,
}

impl<F: Real> Global<F> {
    /// Particles before the first round.
    pub fn initial(theta: Vec<F>) -> Self {
        Self { theta: Raw(theta), ..Self::default() }
    }
}

impl<F: Real> Default for Global<F> {
    fn default() -> Self {
        Self { round: 0, theta: Raw(Vec::new()), sums: Raw(Vec::new()), sets: Vec::new() }
    }
}

/// What an agent keeps between rounds.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct ClientState<F: Real> {
    /// Its numbers; none before the first round.
    pub numbers: Raw<F>,
    /// The rounds that the numbers know of.
    pub visits: Vec<u64>,
}

impl<F: Real> Default for ClientState<F> {
    fn default() -> Self {
        Self { numbers: Raw(Vec::new()), visits: Vec::new() }
    }
}

/// What came back in a round.
pub struct Responses<F> {
    /// Who took part, ascending.
    pub agents: Vec<AgentId>,
    /// Their responses, in this order; or the sum of them alone.
    pub bodies: Vec<Body<F>>,
}

impl<F> Responses<F> {
    /// The only answer, or the sum.
    ///
    /// # Errors
    /// Where there is none, or several.
    pub fn only(self) -> Result<Body<F>> {
        let count = self.bodies.len();
        let mut bodies = self.bodies.into_iter();
        match (bodies.next(), count) {
            (Some(body), 1) => Ok(body),
            _ => Err(format!("{count} responses where one is wanted").into()),
        }
    }
}

impl<F: Real> Federated<F> {
    /// Hands a strategy over these rounds to the launcher.
    pub fn launch<L: Launcher<F>>(
        problem: Problem<F>,
        rounds: u64,
        schedule: Participation,
        strategy: impl Strategy<F> + 'static,
        launcher: L,
    ) -> L::Outcome {
        let model = problem.model.clone();
        launcher.particles(Self { problem, rounds, schedule, strategy: Arc::new(strategy) }, model)
    }
}

/// Response in this round, counted from 1.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Task {
    round: u64,
}

/// The numbers that a client reports of this round.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    round: u64,
    values: Vec<f64>,
}

impl<F: Real> Method for Federated<F> {
    const NAME: &'static str = "federated";
    type Number = F;
    type Task = Task;
    type Report = Report;
    type Server = FederatedServer<F>;
    type Agent = FederatedAgent<F>;

    fn agents(&self) -> u32 {
        self.problem.agents
    }

    /// Where agents are visited one after another, the next works while this one settles: they should not share a rank.
    fn placement(&self) -> Placement {
        Placement::Cyclic
    }

    fn server(&self, saved: Option<Global<F>>) -> Result<FederatedServer<F>> {
        Ok(FederatedServer { method: self.clone(), global: saved.unwrap_or_default() })
    }

    fn agent(&self, id: AgentId, saved: Option<ClientState<F>>) -> Result<FederatedAgent<F>> {
        Ok(FederatedAgent(self.strategy.client(&self.problem, id, saved.unwrap_or_default())?))
    }
}

/// Posts the rounds and keeps the state.
pub struct FederatedServer<F: Real> {
    method: Federated<F>,
    global: Global<F>,
}

impl<F: Real> FederatedServer<F> {
    fn post(&self, out: &mut Outbox<Federated<F>>, cx: &Context) {
        let Federated { problem, rounds, schedule, strategy } = &self.method;
        if self.global.round == *rounds {
            return;
        }
        let agents = schedule.agents(self.global.round, problem.agents, cx);
        let request = out.request(agents, Task { round: self.global.round + 1 }).with(strategy.message(&self.global));
        if strategy.adds_up() {
            request.sum();
        }
    }
}

impl<F: Real> Server<Federated<F>> for FederatedServer<F> {
    type State = Global<F>;

    fn state(&self) -> impl SerializesAs<Global<F>> {
        &self.global
    }

    fn start(&mut self, out: &mut Outbox<Federated<F>>, cx: &mut Context) -> Result<()> {
        let Federated { problem, strategy, .. } = &self.method;
        self.global = strategy.start(problem, cx)?;
        if strategy.prepares() {
            out.request(0..problem.agents, Task { round: 0 }).sum();
        } else {
            self.post(out, cx);
        }
        Ok(())
    }

    fn receive(&mut self, response: Response<Federated<F>>, out: &mut Outbox<Federated<F>>, cx: &mut Context) -> Result<()> {
        let Federated { problem, rounds, strategy, .. } = &self.method;
        if response.reports.iter().all(|reported| reported.report.round == 0) {
            strategy.prepare(&mut self.global, response.sum)?;
            self.post(out, cx);
            return Ok(());
        }
        let agents: Vec<AgentId> = response.reports.iter().map(|reported| reported.from).collect();
        let mut columns = vec![("seconds", cx.seconds())];
        match agents[..] {
            [agent] => columns.push(("visited", f64::from(agent))),
            _ => columns.push(("agents", agents.len() as f64)),
        }
        for (place, &name) in strategy.columns().iter().enumerate() {
            let told = response.reports.iter().filter_map(|reported| reported.report.values.get(place));
            columns.push((name, told.sum::<f64>() / agents.len() as f64));
        }
        cx.log_row(HISTORY, self.global.round + 1, columns);
        let bodies = if strategy.adds_up() {
            vec![response.sum]
        } else {
            response.reports.into_iter().map(|reported| reported.body).collect()
        };
        strategy.aggregate(&mut self.global, Responses { agents, bodies }, problem, cx)?;
        self.global.round += 1;
        if self.global.round == *rounds {
            cx.record("posterior", 0, 0, problem.model.dim(), &self.global.theta.0);
            strategy.finish(&self.global, problem, cx)?;
        }
        self.post(out, cx);
        Ok(())
    }

    fn progress(&self) -> Progress {
        Progress { done: self.global.round, total: self.method.rounds }
    }
}

impl<F: Real> Posterior<F> for FederatedServer<F> {
    fn posterior(&self) -> (u64, &[F]) {
        (self.global.round, &self.global.theta.0)
    }
}

/// Holds a shard.
pub struct FederatedAgent<F>(Box<dyn Client<F>>);

impl<F: Real> Agent<Federated<F>> for FederatedAgent<F> {
    type State = ClientState<F>;

    fn state(&self) -> impl SerializesAs<ClientState<F>> {
        self.0.state()
    }

    fn perform(&mut self, task: &Task, body: Body<F>, cx: &mut Context) -> Result<(Report, Body<F>)> {
        let (values, body) = self.0.respond(task.round, body, cx)?;
        Ok((Report { round: task.round, values }, body))
    }

    fn after_report(&mut self, cx: &mut Context) -> Result<()> {
        self.0.after_report(cx)
    }
}
