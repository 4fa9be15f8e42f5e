//! A test method with one agent and one long task, to measure the CPU time of a waiting rank.

use mpibayes::cluster::{Agent, AgentId, Body, Context, Method, Outbox, Progress, Response, Result, SerializesAs, Server};
use std::time::{Duration, Instant};

/// Duration of the task.
const BUSY: Duration = Duration::from_secs(5);

pub struct Burn;

pub struct BurnServer;

pub struct BurnAgent;

impl Method for Burn {
    const NAME: &'static str = "burn";
    type Number = f64;
    type Task = ();
    type Report = f64;
    type Server = BurnServer;
    type Agent = BurnAgent;

    fn agents(&self) -> u32 {
        1
    }

    fn server(&self, _saved: Option<()>) -> Result<BurnServer> {
        Ok(BurnServer)
    }

    fn agent(&self, _id: AgentId, _saved: Option<()>) -> Result<BurnAgent> {
        Ok(BurnAgent)
    }
}

impl Server<Burn> for BurnServer {
    type State = ();

    fn state(&self) -> impl SerializesAs<()> {
        &()
    }

    fn start(&mut self, out: &mut Outbox<Burn>, _cx: &mut Context) -> Result<()> {
        out.request([0], ());
        Ok(())
    }

    fn receive(&mut self, _answer: Response<Burn>, _out: &mut Outbox<Burn>, _cx: &mut Context) -> Result<()> {
        Ok(())
    }

    fn progress(&self) -> Progress {
        Progress::default()
    }
}

impl Agent<Burn> for BurnAgent {
    type State = ();

    fn state(&self) -> impl SerializesAs<()> {
        &()
    }

    fn perform(&mut self, _task: &(), _body: Body<f64>, _cx: &mut Context) -> Result<(f64, Body<f64>)> {
        let since = Instant::now();
        let mut value = 0.3;
        while since.elapsed() < BUSY {
            value = (0..100_000).fold(value, |x: f64, _| 3.9 * x * (1.0 - x));
        }
        Ok((value, Body::empty()))
    }
}
