//! A minimal method for tests of the engine: agents return the bodies they receive.

use super::body::Body;
use super::codec::SerializesAs;
use super::fault::Result;
use super::layout::AgentId;
use super::method::{Agent, Method, Progress, Response, Server};
use super::{Context, Outbox};

/// Three agents whose state is one number; the server posts no requests.
pub(super) struct Echo;

pub(super) struct EchoAgent(u32);

impl Method for Echo {
    const NAME: &'static str = "echo";
    type Number = f64;
    type Task = ();
    type Report = ();
    type Server = Echo;
    type Agent = EchoAgent;

    fn agents(&self) -> u32 {
        3
    }

    fn server(&self, _saved: Option<()>) -> Result<Echo> {
        Ok(Echo)
    }

    fn agent(&self, id: AgentId, saved: Option<u32>) -> Result<EchoAgent> {
        Ok(EchoAgent(saved.unwrap_or(id)))
    }
}

impl Server<Echo> for Echo {
    type State = ();

    fn state(&self) -> impl SerializesAs<()> {
        &()
    }

    fn start(&mut self, _out: &mut Outbox<Echo>, _cx: &mut Context) -> Result<()> {
        Ok(())
    }

    fn receive(&mut self, _answer: Response<Echo>, _out: &mut Outbox<Echo>, _cx: &mut Context) -> Result<()> {
        Ok(())
    }

    fn progress(&self) -> Progress {
        Progress::default()
    }
}

impl Agent<Echo> for EchoAgent {
    type State = u32;

    fn state(&self) -> impl SerializesAs<u32> {
        &self.0
    }

    fn perform(&mut self, _task: &(), body: Body<f64>, _cx: &mut Context) -> Result<((), Body<f64>)> {
        Ok(((), body))
    }
}
