//! Evaluation, written once: wraps any particle method and has the agents judge the particles on slices of the test data and against
//! the posterior itself, beside the run and outside of its clock.
//!
//! The kernelised Stein discrepancy needs ∇log p at the particles: every agent gives the score of its shard's loss, on all of its
//! rows, and the sums meet at the server. The first agent gives the particles back behind its score: the server keeps nothing of an
//! evaluation, so that a run can be saved in the middle of one.

use super::predict::{Predicted, predict};
use super::problem::{LocalLoss, OpenShard, Problem};
use crate::cluster::{
    Agent, AgentId, AgentState, Answer, AnswerOf, Body, BoxError, Context, Dealing, Method, Order, Outbox, Progress, ReportedOf,
    Result, Server, ServerState,
};
use crate::data::Shard;
use crate::kernels::ksd::ksd;
use crate::kernels::rbf::Bandwidth;
use crate::metrics::{Quality, Tally};
use crate::models::{Model, Output, Scratch};
use crate::number::Real;
use ndarray::{Array2, ArrayView1, ArrayView2, Axis};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A server that can show its posterior at any time.
pub trait Posterior<F> {
    /// Says that it will be asked after every so many rounds, and after the last, before anything else: for servers that have to
    /// send for it.
    fn watch(&mut self, _every: u64) {}

    /// The round, and the particles after it (N × d, row-major).
    fn posterior(&self) -> (u64, &[F]);
}

/// What is measured of the particles, every so many rounds and after the last.
#[derive(Clone)]
pub struct Evaluation<F> {
    /// Rounds between evaluations.
    pub every: u64,
    /// Opens an agent's slice of the test data, where there are any.
    pub tests: Option<OpenShard<F>>,
    /// Whether each particle is judged by itself as well.
    pub single: bool,
    /// The problem, for the discrepancy of the particles from its posterior.
    pub discrepancy: Option<Problem<F>>,
    /// Whether the particles are kept: each is a chain of the group [`HISTORY`], with a draw for each evaluation.
    pub history: bool,
}

/// The group of draws that holds the paths of the particles over the evaluated rounds.
pub const HISTORY: &str = "particles";
/// The table of the lowest and highest accuracy or RMSE among the agents' slices of the test data, a row for each evaluation.
pub const SPREAD: &str = "spread";

/// A method whose particles are judged every so many rounds, and after the last.
pub struct Monitored<M: Method> {
    /// The method itself.
    pub inner: M,
    /// What predicts.
    pub model: Arc<dyn Model<M::Number>>,
    /// What is measured.
    pub evaluation: Evaluation<M::Number>,
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
    Evaluated(u64, f64, Judged),
}

/// An agent's share of what is told of predictions, where there are test data.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Judged {
    /// Of the particles' averaged predictions.
    averaged: Option<Tally>,
    /// Of each particle's own predictions.
    single: Option<Tally>,
}

impl Judged {
    fn merge(&mut self, other: &Self) -> Result<()> {
        for (sum, more) in [(&mut self.averaged, &other.averaged), (&mut self.single, &other.single)] {
            if let (Some(sum), Some(more)) = (sum, more) {
                sum.merge(more)?;
            }
        }
        Ok(())
    }
}

/// The lowest and the highest accuracy or RMSE of the agents' slices of the test data.
#[derive(Clone, Copy, Debug, Default)]
struct Spread {
    agents: u32,
    range: Option<(f64, f64)>,
}

impl Spread {
    /// Takes an agent into account; one without test rows tells nothing.
    fn add(&mut self, quality: &Quality) {
        self.agents += 1;
        let (_, value) = quality.main();
        if !value.is_nan() {
            let (lowest, highest) = self.range.unwrap_or((value, value));
            self.range = Some((lowest.min(value), highest.max(value)));
        }
    }

    /// Both by name, where there are several agents.
    fn values(self, all: &Quality) -> Option<[(String, f64); 2]> {
        let (name, _) = all.main();
        let (lowest, highest) = self.range.filter(|_| self.agents > 1)?;
        Some([(format!("{name}_lowest"), lowest), (format!("{name}_highest"), highest)])
    }
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
        let mut inner = self.inner.server(saved)?;
        let every = self.evaluation.every.max(1);
        inner.watch(every);
        let evaluated = inner.posterior().0;
        Ok(MonitoredServer {
            agents: self.agents(),
            inner,
            unsettled: false,
            model: self.model.clone(),
            evaluation: Evaluation { every, ..self.evaluation.clone() },
            evaluated,
        })
    }

    fn agent(&self, id: AgentId, saved: Option<AgentState<M>>) -> Result<MonitoredAgent<M>> {
        let Evaluation { tests, discrepancy, single, .. } = &self.evaluation;
        let slice = tests.as_ref().map(|tests| tests(id)).transpose()?;
        let mut scratch = Scratch::new();
        slice.as_ref().map_or(Ok(()), |slice| slice.check(self.model.as_ref(), &mut scratch))?;
        Ok(MonitoredAgent {
            inner: self.inner.agent(id, saved)?,
            unsettled: false,
            model: self.model.clone(),
            slice,
            single: *single,
            is_first: id == 0,
            loss: discrepancy.as_ref().map(|problem| problem.open(id, usize::MAX)).transpose()?,
            scratch,
        })
    }
}

/// The method's server, which sees nothing of evaluations.
pub struct MonitoredServer<M: Method> {
    agents: u32,
    inner: M::Server,
    /// Whether the method's half was called last, and has work that may wait.
    unsettled: bool,
    model: Arc<dyn Model<M::Number>>,
    evaluation: Evaluation<M::Number>,
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
    fn forward(&mut self, inner: Outbox<M>, out: &mut Outbox<Monitored<M>>, cx: &mut Context) {
        self.unsettled = true;
        let (round, theta) = self.inner.posterior();
        let progress = self.inner.progress();
        let Evaluation { every, tests, discrepancy, history, .. } = &self.evaluation;
        let due = round != self.evaluated && (round % every == 0 || progress.done == progress.total);
        if due {
            if *history {
                // A method that skips a round leaves no gap: the particles that came next stand for it.
                for place in self.evaluated / every..round.div_ceil(*every) {
                    for (particle, theta) in (0..).zip(theta.chunks_exact(self.model.dim())) {
                        cx.record(HISTORY, particle, place, theta.len(), theta);
                    }
                }
            }
            if tests.is_some() || discrepancy.is_some() {
                let ask = out.ask(0..self.agents, MonitoredTask::Evaluate(round, cx.seconds())).with(theta.to_vec()).aside();
                if discrepancy.is_some() {
                    ask.sum();
                }
            }
            self.evaluated = round;
        }
        inner.into_asks().into_iter().for_each(|ask| out.post(ask.map_task(MonitoredTask::Inner)));
    }

    /// Writes down an evaluation, of which all agents have told; `score` is the sum of their shards' scores at the
    /// particles, and then these.
    fn note(
        &mut self,
        round: u64,
        since: f64,
        judged: &Judged,
        spread: Spread,
        score: Body<M::Number>,
        cx: &mut Context,
    ) -> Result<()> {
        let mut values = vec![("seconds".to_owned(), since)];
        if let Some(tally) = &judged.averaged {
            let metrics = tally.finish();
            values.extend(metrics.values());
            if let Some(range) = spread.values(&metrics.quality) {
                cx.info(SPREAD, round, range);
            }
            if let Quality::Classes(quality) = &metrics.quality {
                for bin in &quality.reliability {
                    let edges = [("lower", bin.lower), ("upper", bin.upper), ("rows", bin.rows as f64)];
                    cx.info(
                        "reliability",
                        round,
                        edges.into_iter().chain([("accuracy", bin.accuracy), ("confidence", bin.confidence)]),
                    );
                }
                for (class, (&accuracy, &rows)) in quality.per_class.iter().zip(&quality.class_rows).enumerate() {
                    cx.info("classes", round, [("class", class as f64), ("rows", rows as f64), ("accuracy", accuracy)]);
                }
            }
        }
        if let Some(tally) = &judged.single {
            let metrics = tally.finish();
            let (name, value) = metrics.quality.main();
            values.push((format!("particle_{name}"), value));
            values.push(("particle_log_likelihood".into(), metrics.log_likelihood));
        }
        if self.evaluation.discrepancy.is_some() {
            let (score, theta) = score.split_at(score.len() / 2);
            let shape = (theta.len() / self.model.dim(), self.model.dim());
            let theta = ArrayView2::from_shape(shape, theta)?;
            let mut full = Array2::zeros(shape);
            self.model.prior_score(theta, full.view_mut());
            full += &ArrayView2::from_shape(shape, score)?;
            let squared = ksd(theta, full.view(), Bandwidth::Paper.of(theta));
            // Rounding may take it below 0; `max` would turn the NaN of particles that have diverged into a perfect score.
            values.push(("ksd".into(), if squared < 0.0 { 0.0 } else { squared.sqrt() }));
        }
        cx.info("metrics", round, values);
        Ok(())
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
        let mut evaluated: Option<(u64, f64, Judged)> = None;
        let mut spread = Spread::default();
        for ReportedOf { from, seconds, report, body } in answer.reports {
            match report {
                Report::Inner(report) => reports.push(ReportedOf { from, seconds, report, body }),
                Report::Evaluated(round, since, judged) => {
                    judged.averaged.iter().for_each(|tally| spread.add(&tally.finish().quality));
                    match &mut evaluated {
                        Some((.., sum)) => sum.merge(&judged)?,
                        None => evaluated = Some((round, since, judged)),
                    }
                }
            }
        }
        if let Some((round, since, judged)) = evaluated {
            return self.note(round, since, &judged, spread, answer.sum, cx);
        }
        let mut inner = Outbox::default();
        self.inner.receive(AnswerOf { reports, sum: answer.sum }, &mut inner, cx)?;
        self.forward(inner, out, cx);
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
    slice: Option<Shard<M::Number>>,
    single: bool,
    is_first: bool,
    loss: Option<LocalLoss<M::Number>>,
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
                let mut judged = Judged::default();
                if let Some(slice) = &self.slice {
                    judged.averaged = Some(judge(self.model.as_ref(), theta, slice, &mut self.scratch)?);
                    if self.single {
                        let mut each = theta
                            .outer_iter()
                            .map(|particle| judge(self.model.as_ref(), particle.insert_axis(Axis(0)), slice, &mut self.scratch));
                        let mut sum = each.next().ok_or("there are no particles")??;
                        each.try_for_each(|one| Ok::<_, BoxError>(sum.merge(&one?)?))?;
                        judged.single = Some(sum);
                    }
                }
                let mut score = Body::empty();
                if let Some(loss) = &mut self.loss {
                    let mut sum = Array2::zeros(theta.dim());
                    loss.add_score(theta, *round, sum.view_mut(), cx);
                    let mut both = sum.into_raw_vec_and_offset().0;
                    match self.is_first {
                        true => both.extend_from_slice(&body),
                        false => both.resize(2 * body.len(), num_traits::Zero::zero()),
                    }
                    score = both.into();
                }
                Ok((Report::Evaluated(*round, *since, judged), score))
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
    let mut tally = match model.output() {
        Output::Classes(classes) => Tally::classes(classes),
        Output::Number | Output::Nothing => Tally::number(),
    };
    predict(model, theta, shard, scratch, |Predicted { mean, density, targets, .. }| {
        tally.add(mean.view(), &density, ArrayView1::from(&targets));
        Ok::<_, BoxError>(())
    })?;
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
