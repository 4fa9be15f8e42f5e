//! A method that wraps another one and evaluates its posterior every `every` rounds.
//!
//! The run's clock excludes evaluations.
//!
//! An [`Evaluator`] defines what is measured. The server's state contains nothing of an evaluation, so a checkpoint can be taken while
//! one is in progress.

use crate::cluster::{
    Agent, AgentId, AgentReportOf, AgentState, Body, Context, Method, Order, Outbox, Placement, Progress, Response, ResponseOf,
    Result, Serializable, SerializesAs, Server, ServerState,
};
use serde::{Deserialize, Serialize};

/// A server whose posterior can be read at any time.
pub trait Posterior<N> {
    /// Whether the agents hold the posterior ([`Agent::posterior`]). The server then returns only the round.
    const AT_AGENTS: bool = false;

    /// Sets the number of rounds between evaluations, for servers that collect the posterior only when it is needed. Called once, before
    /// the run starts or resumes. The last round is always evaluated.
    fn set_evaluation_interval(&mut self, _every: u64) {}

    /// The round, and the particles after it (N × d, row-major).
    fn posterior(&self) -> (u64, &[N]);
}

/// The validated settings of an evaluation of posteriors.
pub trait Evaluator<N>: Clone + Send + Sync + 'static {
    /// The part at an agent, which uses the agent's data.
    type Local: LocalEvaluator<N>;

    /// Rounds between evaluations, at least 1.
    fn every(&self) -> u64;

    /// Whether agents take part.
    fn needs_agents(&self) -> bool;

    /// Whether the bodies that agents return are summed.
    fn sums_bodies(&self) -> bool {
        false
    }

    /// Creates the part at an agent, on the rank that hosts the agent.
    ///
    /// # Errors
    /// If the agent's data cannot be read or do not fit the model.
    fn open(&self, agent: AgentId) -> Result<Self::Local>;

    /// Called at the server when the evaluation of `round` begins.
    fn begin(&self, _last_evaluated: u64, _round: u64, _posterior: &[N], _cx: &mut Context) {}

    /// Called at the server when all agents have evaluated a round; `sum` is the sum of their bodies.
    ///
    /// # Errors
    /// If the contributions do not fit together.
    fn finish(
        &self,
        evaluated: EvaluatedRound,
        contributions: Vec<ContributionOf<N, Self>>,
        sum: Body<N>,
        cx: &mut Context,
    ) -> Result<()>;
}

/// What an agent contributes to an evaluation.
pub type ContributionOf<N, E> = <<E as Evaluator<N>>::Local as LocalEvaluator<N>>::Contribution;

/// An evaluator at an agent.
pub trait LocalEvaluator<N>: Send {
    /// What it saves in a checkpoint.
    type State: Serializable + Default;
    /// The agent's result of an evaluation; must be small.
    type Contribution: Serializable;

    /// Evaluates the posterior after a round; returns the contribution, and a body that may be summed over agents.
    ///
    /// # Errors
    /// If the posterior does not have the model's shape.
    fn evaluate(
        &mut self,
        state: &mut Self::State,
        round: u64,
        posterior: &[N],
        cx: &Context,
    ) -> Result<(Self::Contribution, Body<N>)>;
}

/// The state that an evaluator keeps at an agent.
type EvaluatorState<N, E> = <<E as Evaluator<N>>::Local as LocalEvaluator<N>>::State;

/// An evaluated round.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct EvaluatedRound {
    /// The round.
    pub round: u64,
    /// Seconds of the run when the evaluation was requested.
    pub seconds: f64,
}

/// A method whose posterior is evaluated every `every` rounds and after the last.
pub struct WithEvaluation<M: Method, E> {
    /// The method itself.
    pub inner: M,
    /// What is measured.
    pub evaluator: E,
}

/// A task of the method, or an evaluation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum EvaluationTask<T> {
    /// The method's own.
    Inner(T),
    /// Evaluate the posterior after this round.
    Evaluate(EvaluatedRound),
}

/// A report of the method, or an agent's contribution to an evaluation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Report<R, C> {
    /// The method's own.
    Inner(R),
    /// The evaluated round and the agent's contribution.
    Evaluated(EvaluatedRound, C),
}

impl<M, E> Method for WithEvaluation<M, E>
where
    M: Method,
    M::Server: Posterior<M::Number>,
    E: Evaluator<M::Number>,
{
    const NAME: &'static str = M::NAME;
    type Number = M::Number;
    type Task = EvaluationTask<M::Task>;
    type Report = Report<M::Report, ContributionOf<M::Number, E>>;
    type Server = ServerWithEvaluation<M, E>;
    type Agent = AgentWithEvaluation<M, E>;

    fn agents(&self) -> u32 {
        self.inner.agents()
    }

    fn order(&self) -> Order {
        self.inner.order()
    }

    fn placement(&self) -> Placement {
        self.inner.placement()
    }

    fn server(&self, saved: Option<ServerState<M>>) -> Result<ServerWithEvaluation<M, E>> {
        let mut inner = self.inner.server(saved)?;
        inner.set_evaluation_interval(self.evaluator.every());
        let last_evaluated = inner.posterior().0;
        let (agents, evaluator) = (self.agents(), self.evaluator.clone());
        Ok(ServerWithEvaluation { agents, inner, after_requests_due: false, evaluator, last_evaluated })
    }

    fn agent(
        &self,
        id: AgentId,
        saved: Option<(AgentState<M>, EvaluatorState<M::Number, E>)>,
    ) -> Result<AgentWithEvaluation<M, E>> {
        let (saved, state) = saved.unzip();
        Ok(AgentWithEvaluation {
            inner: self.inner.agent(id, saved)?,
            after_report_due: false,
            evaluator: self.evaluator.open(id)?,
            state: state.unwrap_or_default(),
        })
    }
}

/// The method's server and the evaluator. The method's server is not involved in evaluations.
pub struct ServerWithEvaluation<M: Method, E> {
    agents: u32,
    inner: M::Server,
    /// Whether the method's server has handled an event and its `after_requests` has not run since.
    after_requests_due: bool,
    evaluator: E,
    /// The round of the last evaluation, or the round of the checkpoint that the run resumed from.
    last_evaluated: u64,
}

impl<M, E> ServerWithEvaluation<M, E>
where
    M: Method,
    M::Server: Posterior<M::Number>,
    E: Evaluator<M::Number>,
{
    /// Posts the method's requests, and an evaluation if one is due. If the server sends the posterior, the evaluation comes first, so
    /// that agents evaluate before their next task. If agents hold the posterior, it comes last: the agents' next task completes the posterior.
    fn post_requests(&mut self, inner: Outbox<M>, out: &mut Outbox<WithEvaluation<M, E>>, cx: &mut Context) {
        self.after_requests_due = true;
        let at_agents = <M::Server as Posterior<M::Number>>::AT_AGENTS;
        let tasks = inner.into_requests().into_iter().map(|request| request.map_task(EvaluationTask::Inner));
        if !at_agents {
            self.evaluate_if_due(out, cx);
        }
        tasks.for_each(|request| out.post(request));
        if at_agents {
            self.evaluate_if_due(out, cx);
        }
    }

    fn evaluate_if_due(&mut self, out: &mut Outbox<WithEvaluation<M, E>>, cx: &mut Context) {
        let (round, posterior) = self.inner.posterior();
        let progress = self.inner.progress();
        let is_due =
            round != self.last_evaluated && (round.is_multiple_of(self.evaluator.every()) || progress.done == progress.total);
        if !is_due {
            return;
        }
        self.evaluator.begin(self.last_evaluated, round, posterior, cx);
        if self.evaluator.needs_agents() {
            let evaluated = EvaluatedRound { round, seconds: cx.seconds() };
            let request = out.request(0..self.agents, EvaluationTask::Evaluate(evaluated)).with(posterior.to_vec()).monitoring();
            if self.evaluator.sums_bodies() {
                request.sum();
            }
        }
        self.last_evaluated = round;
    }
}

impl<M, E> Server<WithEvaluation<M, E>> for ServerWithEvaluation<M, E>
where
    M: Method,
    M::Server: Posterior<M::Number>,
    E: Evaluator<M::Number>,
{
    type State = ServerState<M>;

    fn state(&self) -> impl SerializesAs<ServerState<M>> {
        self.inner.state()
    }

    fn start(&mut self, out: &mut Outbox<WithEvaluation<M, E>>, cx: &mut Context) -> Result<()> {
        let mut inner = Outbox::default();
        self.inner.start(&mut inner, cx)?;
        self.post_requests(inner, out, cx);
        Ok(())
    }

    fn receive(
        &mut self,
        response: Response<WithEvaluation<M, E>>,
        out: &mut Outbox<WithEvaluation<M, E>>,
        cx: &mut Context,
    ) -> Result<()> {
        let mut reports = Vec::with_capacity(response.reports.len());
        let mut contributions = Vec::new();
        let mut evaluated = None;
        for AgentReportOf { from, seconds, report, body } in response.reports {
            match report {
                Report::Inner(report) => reports.push(AgentReportOf { from, seconds, report, body }),
                Report::Evaluated(round, contribution) => {
                    evaluated = Some(round);
                    contributions.push(contribution);
                }
            }
        }
        if let Some(evaluated) = evaluated {
            return self.evaluator.finish(evaluated, contributions, response.sum, cx);
        }
        let mut inner = Outbox::default();
        self.inner.receive(ResponseOf { reports, sum: response.sum }, &mut inner, cx)?;
        self.post_requests(inner, out, cx);
        Ok(())
    }

    fn after_requests(&mut self, cx: &mut Context) -> Result<()> {
        if std::mem::take(&mut self.after_requests_due) { self.inner.after_requests(cx) } else { Ok(()) }
    }

    fn progress(&self) -> Progress {
        self.inner.progress()
    }
}

/// The method's agent and the evaluator at this agent.
pub struct AgentWithEvaluation<M: Method, E: Evaluator<M::Number>> {
    inner: M::Agent,
    /// Whether the method's agent has performed a task and its `after_report` has not run since.
    after_report_due: bool,
    evaluator: E::Local,
    state: EvaluatorState<M::Number, E>,
}

impl<M, E> Agent<WithEvaluation<M, E>> for AgentWithEvaluation<M, E>
where
    M: Method,
    M::Server: Posterior<M::Number>,
    E: Evaluator<M::Number>,
{
    type State = (AgentState<M>, EvaluatorState<M::Number, E>);

    fn state(&self) -> impl SerializesAs<Self::State> {
        (self.inner.state(), &self.state)
    }

    fn perform(
        &mut self,
        task: &EvaluationTask<M::Task>,
        body: Body<M::Number>,
        cx: &mut Context,
    ) -> Result<(Report<M::Report, ContributionOf<M::Number, E>>, Body<M::Number>)> {
        match task {
            EvaluationTask::Inner(task) => {
                self.after_report_due = true;
                let (report, body) = self.inner.perform(task, body, cx)?;
                Ok((Report::Inner(report), body))
            }
            EvaluationTask::Evaluate(evaluated) => {
                let at_agents = <M::Server as Posterior<M::Number>>::AT_AGENTS;
                let posterior = if at_agents { self.inner.posterior() } else { &*body };
                let (contribution, body) = self.evaluator.evaluate(&mut self.state, evaluated.round, posterior, cx)?;
                Ok((Report::Evaluated(*evaluated, contribution), body))
            }
        }
    }

    fn after_report(&mut self, cx: &mut Context) -> Result<()> {
        if std::mem::take(&mut self.after_report_due) { self.inner.after_report(cx) } else { Ok(()) }
    }
}
