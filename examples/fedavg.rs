//! Federated averaging as a method of one's own: the listing of CONTRIBUTING.md, run on quadratic losses.
//!
//! `cargo run --release --example fedavg`

#![allow(missing_docs)]

// listing: begin
use mpibayes::cluster::{Agent, AgentId, Answer, Body, BoxError, Context, Method, Outbox, Progress, Server};
use serde::{Deserialize, Serialize};

type Result<T> = std::result::Result<T, BoxError>;

/// Federated averaging (McMahan et al. 2017, arXiv 1602.05629): every client takes a few gradient steps from the common
/// weights w on its own loss F_k; the next w is the mean of their results, weighted by rows: w ← Σ_k n_k/n · w_k.
/// Here F_k(w) = a_k/2 · |w − c_k|², whose answer is known.
pub struct FedAvg {
    pub rounds: u64,
    pub steps: u32,
    pub rate: f64,
    pub clients: Vec<Client>,
}

#[derive(Clone)]
pub struct Client {
    pub rows: f64,
    pub curvature: f64,
    pub center: Vec<f64>,
}

/// What a resumed run needs: all else is made again from the configuration.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Weights {
    round: u64,
    w: Vec<f64>,
}

pub struct Average {
    rounds: u64,
    clients: u32,
    state: Weights,
}

impl Average {
    /// Sends the weights to all clients; the sum of what they report comes back.
    fn post(&self, out: &mut Outbox<FedAvg>) {
        if self.state.round < self.rounds {
            out.ask(0..self.clients, ()).with(self.state.w.clone()).sum();
        }
    }
}

impl Method for FedAvg {
    const NAME: &'static str = "fedavg";
    type Number = f64;
    type Task = ();
    type Report = ();
    type Server = Average;
    type Agent = Learner;

    fn agents(&self) -> u32 {
        self.clients.len() as u32
    }

    fn server(&self, saved: Option<Weights>) -> Result<Average> {
        let dim = self.clients.first().ok_or("no clients")?.center.len();
        let state = saved.unwrap_or(Weights { round: 0, w: vec![0.0; dim] });
        Ok(Average { rounds: self.rounds, clients: self.agents(), state })
    }

    fn agent(&self, id: AgentId, _saved: Option<()>) -> Result<Learner> {
        let rows: f64 = self.clients.iter().map(|client| client.rows).sum();
        let client = self.clients[id as usize].clone();
        Ok(Learner { share: client.rows / rows, client, steps: self.steps, rate: self.rate })
    }
}

impl Server<FedAvg> for Average {
    type State = Weights;

    fn state(&self) -> &Weights {
        &self.state
    }

    fn start(&mut self, out: &mut Outbox<FedAvg>, _cx: &mut Context) -> Result<()> {
        self.post(out);
        Ok(())
    }

    fn receive(&mut self, answer: Answer<FedAvg>, out: &mut Outbox<FedAvg>, cx: &mut Context) -> Result<()> {
        self.state = Weights { round: self.state.round + 1, w: answer.sum.into_vec() };
        cx.record("weights", 0, self.state.round - 1, self.state.w.len(), &self.state.w);
        self.post(out);
        Ok(())
    }

    fn progress(&self) -> Progress {
        Progress { done: self.state.round, total: self.rounds }
    }
}

pub struct Learner {
    share: f64,
    client: Client,
    steps: u32,
    rate: f64,
}

impl Agent<FedAvg> for Learner {
    type State = ();

    fn state(&self) -> &() {
        &()
    }

    fn perform(&mut self, _task: &(), body: Body<f64>, _cx: &mut Context) -> Result<((), Body<f64>)> {
        let mut w = body.into_vec();
        for (w, c) in w.iter_mut().zip(&self.client.center) {
            for _ in 0..self.steps {
                *w -= self.rate * self.client.curvature * (*w - c);
            }
            *w *= self.share;
        }
        Ok(((), w.into()))
    }
}
// listing: end

use mpibayes::cluster::record::Record;
use mpibayes::cluster::{Checkpoint, Collectives, Keeper, Plan, Status, Then, threads};
use mpibayes::random::Seed;
use std::sync::Arc;

/// Keeps the weights of every round.
#[derive(Default)]
struct Notes(Vec<Vec<f64>>);

impl Keeper<FedAvg> for Notes {
    fn write(&mut self, records: Vec<Record>) {
        self.0.extend(records.into_iter().filter_map(|record| match record {
            Record::Draws(draws) => Some(draws.bytes.chunks_exact(8).map(bytemuck::pod_read_unaligned).collect()),
            Record::Row(_) => None,
        }));
    }

    fn wants_rest(&mut self, _status: Status) -> bool {
        false
    }

    fn rested(&mut self, _checkpoint: Checkpoint<FedAvg>) -> Result<Then> {
        Ok(Then::GoOn)
    }
}

/// Three clients that disagree.
fn example() -> FedAvg {
    let client = |rows, curvature, center: [f64; 2]| Client { rows, curvature, center: center.to_vec() };
    let clients = vec![client(10.0, 1.0, [1.0, -2.0]), client(30.0, 0.5, [5.0, 0.0]), client(60.0, 2.0, [-1.0, 4.0])];
    FedAvg { rounds: 60, steps: 5, rate: 0.1, clients }
}

fn run(method: FedAvg, workers: usize) -> Result<Vec<Vec<f64>>> {
    let plan = Plan { seed: Seed(1), threads: workers, dedicated: false, collectives: Collectives::default() };
    let mut notes = Notes::default();
    threads::run(Arc::new(method), plan, None, &mut notes)?;
    Ok(notes.0)
}

fn main() -> Result<()> {
    let rounds = run(example(), 2)?;
    for (round, w) in (1..).zip(&rounds).filter(|(round, _)| round % 10 == 0) {
        println!("round {round:2}: w = {w:.6?}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// E gradient steps shrink the distance to c_k by r_k = (1 − ηa_k)^E, so that one coordinate follows
    /// w ← Σ p_k (c_k + r_k (w − c_k)) = ρw + b, hence w_t = b (1 − ρ^t)/(1 − ρ) from w_0 = 0.
    fn closed_form(method: &FedAvg, coordinate: usize, round: i32) -> f64 {
        let rows: f64 = method.clients.iter().map(|client| client.rows).sum();
        let (mut rho, mut b) = (0.0, 0.0);
        for client in &method.clients {
            let shrink = (1.0 - method.rate * client.curvature).powi(method.steps as i32);
            rho += client.rows / rows * shrink;
            b += client.rows / rows * (1.0 - shrink) * client.center[coordinate];
        }
        b * (1.0 - rho.powi(round)) / (1.0 - rho)
    }

    #[test]
    fn every_round_is_the_closed_form() {
        let rounds = run(example(), 2).unwrap();
        assert_eq!(rounds.len(), 60);
        for (round, w) in (1..).zip(&rounds) {
            for (coordinate, w) in w.iter().enumerate() {
                // Sixty rounds of some ten roundings of numbers below 5, each 1e-15, and errors shrink with ρ < 1.
                let exact = closed_form(&example(), coordinate, round);
                assert!((w - exact).abs() < 1e-13, "round {round}, coordinate {coordinate}: {w} and {exact}");
            }
        }
        // The control: the mean of the centers, weighted by rows, is another point unless all curvatures are equal.
        let mean = 0.1 * 1.0 + 0.3 * 5.0 - 0.6;
        assert!((rounds[59][0] - mean).abs() > 0.1);
    }

    #[test]
    fn with_equal_curvatures_it_ends_in_the_weighted_mean() {
        let mut method = example();
        method.rounds = 200;
        method.clients.iter_mut().for_each(|client| client.curvature = 1.0);
        let rounds = run(method, 1).unwrap();
        // (1 − 0.1)^(5·200) = 2e-46 of the way is left.
        assert!((rounds[199][0] - 1.0).abs() < 1e-13 && (rounds[199][1] - 2.2).abs() < 1e-13, "{:?}", rounds[199]);
    }

    #[test]
    fn the_number_of_threads_changes_no_bit() {
        assert_eq!(run(example(), 1).unwrap(), run(example(), 3).unwrap());
    }
}
