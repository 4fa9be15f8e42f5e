//! Evaluation, written once: wraps any particle method and has the agents judge the particles on slices of the test data, beside the
//! run and outside of its clock.

use crate::cluster::{
    Agent, AgentId, AgentState, Answer, Body, BoxError, Context, Dealing, Method, Order, Outbox, Progress, Reported, Result,
    Server, ServerState,
};
use crate::data::Shard;
use crate::metrics::Tally;
use crate::models::{Model, Output, Scratch};
use crate::number::Real;
use ndarray::{Array2, ArrayView2};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A server that can show its posterior at any time.
pub trait Posterior<F> {
    /// The round, and the particles after it (N × d, row-major).
    fn posterior(&self) -> (u64, &[F]);
}

/// A method whose particles are judged every so many rounds, and after the last.
pub struct Monitored<M: Method> {
    /// The method itself.
    pub inner: M,
    /// What predicts.
    pub model: Arc<dyn Model<M::Number>>,
    /// Opens an agent's slice of the test data.
    pub slice: super::problem::OpenShard<M::Number>,
    /// Rounds between evaluations.
    pub every: u64,
}

/// A task of the method, or an evaluation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum MonitoredTask<T> {
    /// The method's own.
    Inner(T),
    /// Judge the particles of this round; asked for at this second of the run.
    Evaluate(u64, f64),
}

/// A report of the method, or an agent's share of an evaluation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Report<R> {
    /// The method's own.
    Inner(R),
    /// Round and second of the evaluation, and the sums over the agent's slice.
    Evaluated(u64, f64, Tally),
}

impl<M: Method> Method for Monitored<M>
where
    M::Number: Real,
    M::Server: Posterior<M::Number>,
{
    const NAME: &'static str = M::NAME;
    const ORDER: Order = M::ORDER;
    type Number = M::Number;
    type Task = MonitoredTask<M::Task>;
    type Report = Report<M::Report>;
    type Server = MonitoredServer<M>;
    type Agent = MonitoredAgent<M>;

    fn agents(&self) -> u32 {
        self.inner.agents()
    }

    fn dealing(&self) -> Dealing {
        self.inner.dealing()
    }

    fn server(&self, saved: Option<ServerState<M>>) -> Result<MonitoredServer<M>> {
        let inner = self.inner.server(saved)?;
        let evaluated = inner.posterior().0;
        Ok(MonitoredServer { agents: self.agents(), inner, unsettled: false, every: self.every.max(1), evaluated })
    }

    fn agent(&self, id: AgentId, saved: Option<AgentState<M>>) -> Result<MonitoredAgent<M>> {
        let slice = (self.slice)(id)?;
        self.model.check(slice.batch())?;
        Ok(MonitoredAgent {
            inner: self.inner.agent(id, saved)?,
            unsettled: false,
            model: self.model.clone(),
            slice,
            scratch: Scratch::new(),
        })
    }
}

/// The method's server, which sees nothing of evaluations.
pub struct MonitoredServer<M: Method> {
    agents: u32,
    inner: M::Server,
    /// Whether the method's half was called last, and has work that may wait.
    unsettled: bool,
    every: u64,
    /// The round of the last evaluation.
    evaluated: u64,
}

impl<M: Method> MonitoredServer<M>
where
    M::Number: Real,
    M::Server: Posterior<M::Number>,
{
    /// Posts what the method has posted, behind an evaluation where one is due: agents then judge between their tasks, and the
    /// method's asks wait for no answer.
    fn forward(&mut self, inner: Outbox<M>, out: &mut Outbox<Monitored<M>>, cx: &Context) {
        self.unsettled = true;
        let (round, theta) = self.inner.posterior();
        let progress = self.inner.progress();
        let due = round != self.evaluated && (round % self.every == 0 || progress.done == progress.total);
        if due {
            out.ask(0..self.agents, MonitoredTask::Evaluate(round, cx.seconds())).with(theta.to_vec()).aside();
            self.evaluated = round;
        }
        inner.into_asks().into_iter().for_each(|ask| out.post(ask.map_task(MonitoredTask::Inner)));
    }
}

impl<M: Method> Server<Monitored<M>> for MonitoredServer<M>
where
    M::Number: Real,
    M::Server: Posterior<M::Number>,
{
    type State = ServerState<M>;

    fn state(&self) -> &ServerState<M> {
        self.inner.state()
    }

    fn start(&mut self, out: &mut Outbox<Monitored<M>>, cx: &mut Context) -> Result<()> {
        let mut inner = Outbox::default();
        self.inner.start(&mut inner, cx)?;
        self.forward(inner, out, cx);
        Ok(())
    }

    fn receive(&mut self, answer: Answer<Monitored<M>>, out: &mut Outbox<Monitored<M>>, cx: &mut Context) -> Result<()> {
        let mut reports = Vec::with_capacity(answer.reports.len());
        let mut tallies: Option<(u64, f64, Tally)> = None;
        for Reported { from, seconds, report, body } in answer.reports {
            match report {
                Report::Inner(report) => reports.push(Reported { from, seconds, report, body }),
                Report::Evaluated(round, since, tally) => match &mut tallies {
                    Some((.., sum)) => sum.merge(&tally)?,
                    None => tallies = Some((round, since, tally)),
                },
            }
        }
        let Some((round, since, tally)) = tallies else {
            let mut inner = Outbox::default();
            self.inner.receive(Answer { reports, sum: answer.sum }, &mut inner, cx)?;
            self.forward(inner, out, cx);
            return Ok(());
        };
        let mut values = vec![("seconds".to_owned(), since)];
        values.extend(tally.finish().values());
        cx.info("metrics", round, values);
        Ok(())
    }

    fn settle(&mut self, cx: &mut Context) -> Result<()> {
        if std::mem::take(&mut self.unsettled) { self.inner.settle(cx) } else { Ok(()) }
    }

    fn progress(&self) -> Progress {
        self.inner.progress()
    }
}

/// The method's agent with a slice of the test data.
pub struct MonitoredAgent<M: Method> {
    inner: M::Agent,
    /// Whether the last task was the method's, and left work that may wait.
    unsettled: bool,
    model: Arc<dyn Model<M::Number>>,
    slice: Shard<M::Number>,
    scratch: Scratch<M::Number>,
}

impl<M: Method> Agent<Monitored<M>> for MonitoredAgent<M>
where
    M::Number: Real,
    M::Server: Posterior<M::Number>,
{
    type State = AgentState<M>;

    fn state(&self) -> &AgentState<M> {
        self.inner.state()
    }

    fn perform(
        &mut self,
        task: &MonitoredTask<M::Task>,
        body: Body<M::Number>,
        cx: &mut Context,
    ) -> Result<(Report<M::Report>, Body<M::Number>)> {
        match task {
            MonitoredTask::Inner(task) => {
                self.unsettled = true;
                let (report, body) = self.inner.perform(task, body, cx)?;
                Ok((Report::Inner(report), body))
            }
            MonitoredTask::Evaluate(round, since) => {
                let theta = ArrayView2::from_shape((body.len() / self.model.dim(), self.model.dim()), &body)?;
                let tally = judge(self.model.as_ref(), theta, &self.slice, &mut self.scratch)?;
                Ok((Report::Evaluated(*round, *since, tally), Body::empty()))
            }
        }
    }

    fn settle(&mut self, cx: &mut Context) -> Result<()> {
        if std::mem::take(&mut self.unsettled) { self.inner.settle(cx) } else { Ok(()) }
    }
}

/// The sums of all metrics of these particles (N × d) over a shard; those of numbers are in the dataset's own units.
///
/// # Errors
/// Where the model predicts nothing.
pub fn judge<F: Real>(
    model: &dyn Model<F>,
    theta: ArrayView2<F>,
    shard: &Shard<F>,
    scratch: &mut Scratch<F>,
) -> Result<Tally, BoxError> {
    let (mut tally, outputs) = match model.output() {
        Output::Classes(classes) => (Tally::classes(classes), classes),
        Output::Number => (Tally::number(), 1),
        Output::Nothing => return Err("this model predicts nothing that could be evaluated".into()),
    };
    let mut mean = Array2::zeros((shard.rows(), outputs));
    let mut density = vec![0.0; shard.rows()];
    model.predict(theta, shard.batch(), mean.view_mut(), &mut density, scratch);
    let unit = shard.target_unit();
    mean.mapv_inplace(|mean| mean * unit);
    density.iter_mut().for_each(|density| *density /= unit);
    tally.add(mean.view(), &density, shard.y().mapv(|y| y.f64() * unit).view());
    Ok(tally)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::metrics::Quality;
    use crate::models::logistic::LogisticSettings;
    use crate::models::network::NetworkSettings;
    use ndarray::{Array1, array};

    /// Targets in units of 20: errors are 20 times as large as in the model's own units, densities a twentieth.
    #[test]
    fn numbers_are_judged_in_the_units_of_the_dataset() {
        let model = NetworkSettings { hidden: vec![], ..NetworkSettings::default() }.build(1, Output::Number).unwrap();
        let theta = array![[0.5, 0.25, 0.3], [-0.5, 1.0, -0.2]];
        let shard = Shard::new(array![[1.0], [-2.0], [0.5]], array![0.5, -1.0, 2.0]);
        let metrics = |shard: &Shard<f64>| {
            let metrics = judge(&model, theta.view(), shard, &mut Scratch::new()).unwrap().finish();
            match metrics.quality {
                Quality::Number { rmse } => (rmse, metrics.log_likelihood),
                Quality::Classes(_) => panic!("not a number"),
            }
        };
        let (rmse, log_likelihood) = metrics(&shard);
        // Means of (w x + b) over particles: 0.625 for every x, as the slopes cancel.
        let exact = ((0.125_f64.powi(2) + 1.625_f64.powi(2) + 1.375_f64.powi(2)) / 3.0).sqrt();
        assert!((rmse - exact).abs() < 1e-14, "{rmse} {exact}");
        let (larger, smaller) = metrics(&shard.with_target_unit(20.0));
        assert!((larger - 20.0 * rmse).abs() < 1e-13 && (smaller - (log_likelihood - 20_f64.ln())).abs() < 1e-14);
    }

    /// With fewer test rows than agents some have none: their sums change nothing.
    #[test]
    fn an_agent_without_test_rows_adds_nothing() {
        let logistic = LogisticSettings::default().build(2, Output::Classes(2)).unwrap();
        let network = NetworkSettings::default().build(2, Output::Classes(2)).unwrap();
        let models: [&dyn Model<f64>; 2] = [&logistic, &network];
        for model in models {
            let theta = Array2::from_elem((3, model.dim()), 0.1);
            let judge = |shard: &Shard<f64>| judge(model, theta.view(), shard, &mut Scratch::new()).unwrap();
            let one = judge(&Shard::new(array![[1.0, -2.0]], array![1.0]));
            let mut both = one.clone();
            both.merge(&judge(&Shard::new(Array2::zeros((0, 2)), Array1::zeros(0)))).unwrap();
            assert_eq!(both, one);
        }
    }
}
