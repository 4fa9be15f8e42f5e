//! Evaluation of any method: agents evaluate the posterior every `every` rounds, beside the run and outside of its clock.
//!
//! An [`Evaluator`] defines what is measured. The server keeps no evaluation in its state, so a run can be saved in the middle of one.

use crate::cluster::{
    Agent, AgentId, AgentReportOf, AgentState, Body, Context, Method, Order, Outbox, Placement, Progress, Response, ResponseOf,
    Result, Serializable, SerializesAs, Server, ServerState,
};
use serde::{Deserialize, Serialize};

/// A server that can show its posterior at any time.
pub trait Posterior<N> {
    /// Whether the posterior lies at the agents ([`Agent::posterior`]); the server then returns its round alone.
    const AT_AGENTS: bool = false;

    /// Called before anything else with the number of rounds between evaluations; the last round is evaluated too. For servers that have
    /// to collect their posterior.
    fn set_evaluation_interval(&mut self, _every: u64) {}

    /// The round, and the particles after it (N × d, row-major).
    fn posterior(&self) -> (u64, &[N]);
}

/// What is measured of a posterior; the value is a validated configuration.
pub trait Evaluator<N>: Clone + Send + Sync + 'static {
    /// The part that sees an agent's data.
    type Local: LocalEvaluator<N>;

    /// Rounds between evaluations, at least 1.
    fn every(&self) -> u64;

    /// Whether agents take part.
    fn needs_agents(&self) -> bool;

    /// Whether the bodies that agents return are summed.
    fn sums_bodies(&self) -> bool {
        false
    }

    /// The part of an agent, on the rank that hosts it.
    ///
    /// # Errors
    /// If its data cannot be read or do not fit the model.
    fn open(&self, agent: AgentId) -> Result<Self::Local>;

    /// At the server: evaluation of `round` begins; the last evaluated round was `before`.
    fn begin(&self, _before: u64, _round: u64, _posterior: &[N], _cx: &mut Context) {}

    /// At the server: all agents have evaluated a round; `sum` is the sum of their bodies.
    ///
    /// # Errors
    /// If the contributions do not fit together.
    fn finish(
        &self,
        evaluated: Evaluated,
        contributions: Vec<ContributionOf<N, Self>>,
        sum: Body<N>,
        cx: &mut Context,
    ) -> Result<()>;
}

/// What an agent contributes to an evaluation.
pub type ContributionOf<N, E> = <<E as Evaluator<N>>::Local as LocalEvaluator<N>>::Contribution;

/// An evaluator at an agent.
pub trait LocalEvaluator<N>: Send {
    /// What a resumed run needs of it.
    type State: Serializable + Default;
    /// What the agent reports of an evaluation: small.
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

/// When something was evaluated.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Evaluated {
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
    /// Evaluate the posterior.
    Evaluate(Evaluated),
}

/// A report of the method, or an agent's contribution to an evaluation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Report<R, C> {
    /// The method's own.
    Inner(R),
    /// The evaluation, and what the agent contributes to it.
    Evaluated(Evaluated, C),
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
        let evaluated = inner.posterior().0;
        Ok(ServerWithEvaluation { agents: self.agents(), inner, unsettled: false, evaluator: self.evaluator.clone(), evaluated })
    }

    fn agent(
        &self,
        id: AgentId,
        saved: Option<(AgentState<M>, EvaluatorState<M::Number, E>)>,
    ) -> Result<AgentWithEvaluation<M, E>> {
        let (saved, state) = saved.unzip();
        Ok(AgentWithEvaluation {
            inner: self.inner.agent(id, saved)?,
            unsettled: false,
            evaluator: self.evaluator.open(id)?,
            state: state.unwrap_or_default(),
        })
    }
}

/// The method's server, which does not see evaluations.
pub struct ServerWithEvaluation<M: Method, E> {
    agents: u32,
    inner: M::Server,
    /// Whether the method's server was called last, and may have deferred work.
    unsettled: bool,
    evaluator: E,
    /// The round of the last evaluation.
    evaluated: u64,
}

impl<M, E> ServerWithEvaluation<M, E>
where
    M: Method,
    M::Server: Posterior<M::Number>,
    E: Evaluator<M::Number>,
{
    /// Posts the method's requests, and an evaluation if one is due. A posterior that the server sends goes before them: agents then
    /// evaluate between their tasks, and no request of the method waits. A posterior at the agents is complete after their next task.
    fn forward(&mut self, inner: Outbox<M>, out: &mut Outbox<WithEvaluation<M, E>>, cx: &mut Context) {
        self.unsettled = true;
        let at_agents = <M::Server as Posterior<M::Number>>::AT_AGENTS;
        let tasks = inner.into_requests().into_iter().map(|request| request.map_task(EvaluationTask::Inner));
        if !at_agents {
            self.evaluate(out, cx);
        }
        tasks.for_each(|request| out.post(request));
        if at_agents {
            self.evaluate(out, cx);
        }
    }

    fn evaluate(&mut self, out: &mut Outbox<WithEvaluation<M, E>>, cx: &mut Context) {
        let (round, posterior) = self.inner.posterior();
        let progress = self.inner.progress();
        let due = round != self.evaluated && (round.is_multiple_of(self.evaluator.every()) || progress.done == progress.total);
        if !due {
            return;
        }
        self.evaluator.begin(self.evaluated, round, posterior, cx);
        if self.evaluator.needs_agents() {
            let evaluated = Evaluated { round, seconds: cx.seconds() };
            let request = out.request(0..self.agents, EvaluationTask::Evaluate(evaluated)).with(posterior.to_vec()).monitoring();
            if self.evaluator.sums_bodies() {
                request.sum();
            }
        }
        self.evaluated = round;
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
        self.forward(inner, out, cx);
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
                Report::Evaluated(of, contribution) => {
                    evaluated = Some(of);
                    contributions.push(contribution);
                }
            }
        }
        if let Some(evaluated) = evaluated {
            return self.evaluator.finish(evaluated, contributions, response.sum, cx);
        }
        let mut inner = Outbox::default();
        self.inner.receive(ResponseOf { reports, sum: response.sum }, &mut inner, cx)?;
        self.forward(inner, out, cx);
        Ok(())
    }

    fn after_requests(&mut self, cx: &mut Context) -> Result<()> {
        if std::mem::take(&mut self.unsettled) { self.inner.after_requests(cx) } else { Ok(()) }
    }

    fn progress(&self) -> Progress {
        self.inner.progress()
    }
}

/// The method's agent, with the evaluator's part beside it.
pub struct AgentWithEvaluation<M: Method, E: Evaluator<M::Number>> {
    inner: M::Agent,
    /// Whether the last task was the method's, and may have left deferred work.
    unsettled: bool,
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
                self.unsettled = true;
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
        if std::mem::take(&mut self.unsettled) { self.inner.after_report(cx) } else { Ok(()) }
    }
}
