//! Evaluation, written once: wraps any method and has its agents judge the posterior every so many rounds, beside the run and outside of
//! its clock.
//!
//! What is judged, and by what, is a [`Judge`]'s. The server keeps nothing of an evaluation, so that a run can be saved in the middle
//! of one.

use crate::cluster::{
    Agent, AgentId, AgentReportOf, AgentState, Body, Context, Method, Order, Outbox, Placement, Progress, Response, ResponseOf,
    Result, Serializable, SerializesAs, Server, ServerState,
};
use serde::{Deserialize, Serialize};

/// A server that can show its posterior at any time.
pub trait Posterior<N> {
    /// Whether the posterior lies at the agents ([`Agent::posterior`]), and the server tells of its round alone.
    const AT_AGENTS: bool = false;

    /// Says that it will be asked after every so many rounds, and after the last, before anything else: for servers that have to
    /// send for it.
    fn watch(&mut self, _every: u64) {}

    /// The round, and the particles after it (N × d, row-major).
    fn posterior(&self) -> (u64, &[N]);
}

/// What judges a posterior; the value is a validated configuration.
pub trait Judge<N>: Clone + Send + Sync + 'static {
    /// The half that sees an agent's data.
    type Local: LocalJudge<N>;

    /// Rounds between evaluations, at least 1.
    fn every(&self) -> u64;

    /// Whether agents are asked at all.
    fn asks(&self) -> bool;

    /// Whether the bodies that agents give are added up.
    fn sums(&self) -> bool {
        false
    }

    /// The half of an agent, on the rank that hosts it.
    ///
    /// # Errors
    /// Where its data cannot be read, or are none for the model.
    fn open(&self, agent: AgentId) -> Result<Self::Local>;

    /// At the server: this round is evaluated, and the one before was `before`.
    fn begin(&self, _before: u64, _round: u64, _posterior: &[N], _cx: &mut Context) {}

    /// At the server: all agents have judged the round of this second of the run; `sum` is that of their bodies.
    ///
    /// # Errors
    /// Where what they tell does not fit together.
    fn note(&self, evaluated: Evaluated, shares: Vec<ShareOf<N, Self>>, sum: Body<N>, cx: &mut Context) -> Result<()>;
}

/// What the agents of a judge tell.
pub type ShareOf<N, J> = <<J as Judge<N>>::Local as LocalJudge<N>>::Share;

/// A judge at an agent.
pub trait LocalJudge<N>: Send {
    /// What a resumed run needs of it.
    type State: Serializable + Default;
    /// What it tells of an evaluation: small.
    type Share: Serializable;

    /// Judges the posterior after a round; gives its share, and a body to be added up.
    ///
    /// # Errors
    /// Where the posterior is none of the model.
    fn judge(&mut self, state: &mut Self::State, round: u64, posterior: &[N], cx: &Context) -> Result<(Self::Share, Body<N>)>;
}

/// The state that a judge keeps at an agent.
type JudgeState<N, J> = <<J as Judge<N>>::Local as LocalJudge<N>>::State;

/// When something was evaluated.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Evaluated {
    /// The round.
    pub round: u64,
    /// The second of the run at which that was asked for.
    pub seconds: f64,
}

/// A method whose posterior is judged every so many rounds, and after the last.
pub struct Monitored<M: Method, J> {
    /// The method itself.
    pub inner: M,
    /// What judges.
    pub judge: J,
}

/// A task of the method, or an evaluation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum MonitoredTask<T> {
    /// The method's own.
    Inner(T),
    /// Judge the posterior.
    Evaluate(Evaluated),
}

/// A report of the method, or an agent's share of an evaluation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Report<R, S> {
    /// The method's own.
    Inner(R),
    /// Of which evaluation, and what the agent tells.
    Evaluated(Evaluated, S),
}

impl<M, J> Method for Monitored<M, J>
where
    M: Method,
    M::Server: Posterior<M::Number>,
    J: Judge<M::Number>,
{
    const NAME: &'static str = M::NAME;
    type Number = M::Number;
    type Task = MonitoredTask<M::Task>;
    type Report = Report<M::Report, ShareOf<M::Number, J>>;
    type Server = MonitoredServer<M, J>;
    type Agent = MonitoredAgent<M, J>;

    fn agents(&self) -> u32 {
        self.inner.agents()
    }

    fn order(&self) -> Order {
        self.inner.order()
    }

    fn placement(&self) -> Placement {
        self.inner.placement()
    }

    fn server(&self, saved: Option<ServerState<M>>) -> Result<MonitoredServer<M, J>> {
        let mut inner = self.inner.server(saved)?;
        inner.watch(self.judge.every());
        let evaluated = inner.posterior().0;
        Ok(MonitoredServer { agents: self.agents(), inner, unsettled: false, judge: self.judge.clone(), evaluated })
    }

    fn agent(&self, id: AgentId, saved: Option<(AgentState<M>, JudgeState<M::Number, J>)>) -> Result<MonitoredAgent<M, J>> {
        let (saved, state) = saved.unzip();
        Ok(MonitoredAgent {
            inner: self.inner.agent(id, saved)?,
            unsettled: false,
            judge: self.judge.open(id)?,
            state: state.unwrap_or_default(),
        })
    }
}

/// The method's server, which sees nothing of evaluations.
pub struct MonitoredServer<M: Method, J> {
    agents: u32,
    inner: M::Server,
    /// Whether the method's half was called last, and has work that may wait.
    unsettled: bool,
    judge: J,
    /// The round of the last evaluation.
    evaluated: u64,
}

impl<M, J> MonitoredServer<M, J>
where
    M: Method,
    M::Server: Posterior<M::Number>,
    J: Judge<M::Number>,
{
    /// Posts what the method has posted, and an evaluation where one is due. A posterior that is sent goes before, for agents then
    /// judge between their tasks, and the method's asks wait for no answer; one that lies at agents is there behind the next task.
    fn forward(&mut self, inner: Outbox<M>, out: &mut Outbox<Monitored<M, J>>, cx: &mut Context) {
        self.unsettled = true;
        let at_agents = <M::Server as Posterior<M::Number>>::AT_AGENTS;
        let tasks = inner.into_requests().into_iter().map(|request| request.map_task(MonitoredTask::Inner));
        if at_agents {
            tasks.for_each(|request| out.post(request));
            self.evaluate(out, cx);
        } else {
            self.evaluate(out, cx);
            tasks.for_each(|request| out.post(request));
        }
    }

    fn evaluate(&mut self, out: &mut Outbox<Monitored<M, J>>, cx: &mut Context) {
        let (round, posterior) = self.inner.posterior();
        let progress = self.inner.progress();
        let due = round != self.evaluated && (round.is_multiple_of(self.judge.every()) || progress.done == progress.total);
        if !due {
            return;
        }
        self.judge.begin(self.evaluated, round, posterior, cx);
        if self.judge.asks() {
            let evaluated = Evaluated { round, seconds: cx.seconds() };
            let request = out.request(0..self.agents, MonitoredTask::Evaluate(evaluated)).with(posterior.to_vec()).monitoring();
            if self.judge.sums() {
                request.sum();
            }
        }
        self.evaluated = round;
    }
}

impl<M, J> Server<Monitored<M, J>> for MonitoredServer<M, J>
where
    M: Method,
    M::Server: Posterior<M::Number>,
    J: Judge<M::Number>,
{
    type State = ServerState<M>;

    fn state(&self) -> impl SerializesAs<ServerState<M>> {
        self.inner.state()
    }

    fn start(&mut self, out: &mut Outbox<Monitored<M, J>>, cx: &mut Context) -> Result<()> {
        let mut inner = Outbox::default();
        self.inner.start(&mut inner, cx)?;
        self.forward(inner, out, cx);
        Ok(())
    }

    fn receive(
        &mut self,
        response: Response<Monitored<M, J>>,
        out: &mut Outbox<Monitored<M, J>>,
        cx: &mut Context,
    ) -> Result<()> {
        let mut reports = Vec::with_capacity(response.reports.len());
        let mut shares = Vec::new();
        let mut evaluated = None;
        for AgentReportOf { from, seconds, report, body } in response.reports {
            match report {
                Report::Inner(report) => reports.push(AgentReportOf { from, seconds, report, body }),
                Report::Evaluated(of, share) => {
                    evaluated = Some(of);
                    shares.push(share);
                }
            }
        }
        if let Some(evaluated) = evaluated {
            return self.judge.note(evaluated, shares, response.sum, cx);
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

/// The method's agent, and a judge beside it.
pub struct MonitoredAgent<M: Method, J: Judge<M::Number>> {
    inner: M::Agent,
    /// Whether the last task was the method's, and left work that may wait.
    unsettled: bool,
    judge: J::Local,
    state: JudgeState<M::Number, J>,
}

impl<M, J> Agent<Monitored<M, J>> for MonitoredAgent<M, J>
where
    M: Method,
    M::Server: Posterior<M::Number>,
    J: Judge<M::Number>,
{
    type State = (AgentState<M>, JudgeState<M::Number, J>);

    fn state(&self) -> impl SerializesAs<Self::State> {
        (self.inner.state(), &self.state)
    }

    fn perform(
        &mut self,
        task: &MonitoredTask<M::Task>,
        body: Body<M::Number>,
        cx: &mut Context,
    ) -> Result<(Report<M::Report, ShareOf<M::Number, J>>, Body<M::Number>)> {
        match task {
            MonitoredTask::Inner(task) => {
                self.unsettled = true;
                let (report, body) = self.inner.perform(task, body, cx)?;
                Ok((Report::Inner(report), body))
            }
            MonitoredTask::Evaluate(evaluated) => {
                let at_agents = <M::Server as Posterior<M::Number>>::AT_AGENTS;
                let posterior = if at_agents { self.inner.posterior() } else { &*body };
                let (share, body) = self.judge.judge(&mut self.state, evaluated.round, posterior, cx)?;
                Ok((Report::Evaluated(*evaluated, share), body))
            }
        }
    }

    fn after_report(&mut self, cx: &mut Context) -> Result<()> {
        if std::mem::take(&mut self.unsettled) { self.inner.after_report(cx) } else { Ok(()) }
    }
}
