//! A test method whose server posts given requests, valid or not: for invalid requests and the simulator's clock.

use mpibayes::cluster::{Agent, AgentId, Body, Context, Method, Outbox, Progress, Response, Result, SerializesAs, Server};

/// Posts `posts` at the start; each agent reports a body of its own length.
pub struct Scripted {
    pub agents: u32,
    pub posts: Vec<Post>,
    /// For each agent, the length of the bodies that it sends.
    pub lengths: Vec<usize>,
}

#[derive(Clone, Default)]
pub struct Post {
    pub to: Vec<AgentId>,
    pub body: usize,
    pub handed: bool,
    pub sum: bool,
    pub sum_to: Option<Vec<AgentId>>,
}

impl Post {
    pub fn to(to: &[AgentId]) -> Self {
        Self { to: to.to_vec(), ..Self::default() }
    }

    pub fn with(self, body: usize) -> Self {
        Self { body, ..self }
    }

    pub fn with_transfer(self) -> Self {
        Self { handed: true, ..self }
    }

    pub fn sum(self) -> Self {
        Self { sum: true, ..self }
    }

    pub fn sum_to(self, to: &[AgentId]) -> Self {
        Self { sum_to: Some(to.to_vec()), ..self }
    }
}

pub struct ScriptedServer {
    posts: Vec<Post>,
}

pub struct ScriptedAgent {
    length: usize,
}

impl Method for Scripted {
    const NAME: &'static str = "scripted";
    type Number = f64;
    type Task = ();
    type Report = ();
    type Server = ScriptedServer;
    type Agent = ScriptedAgent;

    fn agents(&self) -> u32 {
        self.agents
    }

    fn server(&self, _saved: Option<()>) -> Result<ScriptedServer> {
        Ok(ScriptedServer { posts: self.posts.clone() })
    }

    fn agent(&self, id: AgentId, _saved: Option<()>) -> Result<ScriptedAgent> {
        Ok(ScriptedAgent { length: self.lengths[id as usize] })
    }
}

impl Server<Scripted> for ScriptedServer {
    type State = ();

    fn state(&self) -> impl SerializesAs<()> {
        &()
    }

    fn start(&mut self, out: &mut Outbox<Scripted>, _cx: &mut Context) -> Result<()> {
        for post in &self.posts {
            let request = out.request(post.to.iter().copied(), ()).with(vec![1.0; post.body]);
            if post.handed {
                request.with_transfer();
            }
            if post.sum {
                request.sum();
            }
            if let Some(to) = &post.sum_to {
                request.sum_to(to.iter().copied());
            }
        }
        Ok(())
    }

    fn receive(&mut self, response: Response<Scripted>, _out: &mut Outbox<Scripted>, cx: &mut Context) -> Result<()> {
        let longest = response.reports.iter().map(|reported| reported.seconds).fold(0.0, f64::max);
        let now = cx.seconds();
        cx.log_row("responses", 0, [("now", now), ("longest", longest)]);
        Ok(())
    }

    fn progress(&self) -> Progress {
        Progress::default()
    }
}

impl Agent<Scripted> for ScriptedAgent {
    type State = ();

    fn state(&self) -> impl SerializesAs<()> {
        &()
    }

    fn perform(&mut self, _task: &(), _body: Body<f64>, cx: &mut Context) -> Result<((), Body<f64>)> {
        let now = cx.seconds();
        cx.log_row("starts", 0, [("now", now)]);
        Ok(((), vec![1.0; self.length].into()))
    }
}
