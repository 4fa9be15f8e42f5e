//! The least of all methods, for tests of the engine: agents give their bodies back.

use super::body::Body;
use super::codec::SerializesAs;
use super::method::{Agent, AgentId, Method, Progress, Response, Result, Server};
use super::{Context, Outbox};

/// Three agents with a state of one number each; the server asks for nothing.
pub(super) struct Plain;

pub(super) struct PlainAgent(u32);

impl Method for Plain {
    const NAME: &'static str = "plain";
    type Number = f64;
    type Task = ();
    type Report = ();
    type Server = Plain;
    type Agent = PlainAgent;

    fn agents(&self) -> u32 {
        3
    }

    fn server(&self, _saved: Option<()>) -> Result<Plain> {
        Ok(Plain)
    }

    fn agent(&self, id: AgentId, saved: Option<u32>) -> Result<PlainAgent> {
        Ok(PlainAgent(saved.unwrap_or(id)))
    }
}

impl Server<Plain> for Plain {
    type State = ();

    fn state(&self) -> impl SerializesAs<()> {
        &()
    }

    fn start(&mut self, _out: &mut Outbox<Plain>, _cx: &mut Context) -> Result<()> {
        Ok(())
    }

    fn receive(&mut self, _answer: Response<Plain>, _out: &mut Outbox<Plain>, _cx: &mut Context) -> Result<()> {
        Ok(())
    }

    fn progress(&self) -> Progress {
        Progress::default()
    }
}

impl Agent<Plain> for PlainAgent {
    type State = u32;

    fn state(&self) -> impl SerializesAs<u32> {
        &self.0
    }

    fn perform(&mut self, _task: &(), body: Body<f64>, _cx: &mut Context) -> Result<((), Body<f64>)> {
        Ok(((), body))
    }
}
