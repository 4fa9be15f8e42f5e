//! Round trips through the MPI driver compared with raw MPI, and collectives with point-to-point: `cargo bench --bench messages`.

mod two_ranks;

use mpi::collective::SystemOperation;
use mpi::traits::{Communicator, CommunicatorCollectives, Destination, Source};
use mpibayes::cluster::mpi::{World, run, tune_allocator};
use mpibayes::cluster::{
    Agent, AgentId, Body, Collectives, Context, IntegerSums, JobOptions, Method, Outbox, Progress, RequestDelivery, Response,
    Result, SerializesAs, Server, Sums,
};
use mpibayes::random::Seed;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The round trip that is timed.
#[derive(Clone, Copy, PartialEq)]
enum Move {
    /// A body to the last agent and back.
    Echo,
    /// A body to all agents, no bodies back.
    Tell,
    /// A sum to all agents.
    Sum,
    /// The last agent sleeps.
    Sleep,
}

/// The method that is timed; seconds of each round trip end up in `times`.
struct Trip {
    kind: Move,
    agents: u32,
    numbers: usize,
    rounds: usize,
    times: Arc<Mutex<Vec<f64>>>,
}

struct Clerk {
    trip: Trip,
    since: Instant,
    left: usize,
}

struct Echo {
    kind: Move,
    numbers: usize,
}

impl Method for Trip {
    const NAME: &'static str = "trip";
    type Number = i32;
    type Task = ();
    type Report = ();
    type Server = Clerk;
    type Agent = Echo;

    fn agents(&self) -> u32 {
        self.agents
    }

    fn server(&self, _: Option<()>) -> Result<Clerk> {
        let trip = Trip { times: self.times.clone(), ..*self };
        Ok(Clerk { left: self.rounds, trip, since: Instant::now() })
    }

    fn agent(&self, _: AgentId, _: Option<()>) -> Result<Echo> {
        Ok(Echo { kind: self.kind, numbers: self.numbers })
    }
}

impl Clerk {
    fn post(&mut self, body: Body<i32>, out: &mut Outbox<Trip>) {
        self.since = Instant::now();
        let all = 0..self.trip.agents;
        match self.trip.kind {
            Move::Echo | Move::Sleep => drop(out.request([self.trip.agents - 1], ()).with(body)),
            Move::Tell => drop(out.request(all, ()).with(body)),
            Move::Sum if self.left == self.trip.rounds => drop(out.request(all.clone(), ()).sum_to(all)),
            Move::Sum => drop(out.request(all.clone(), ()).with_transfer().sum_to(all)),
        }
    }
}

impl Server<Trip> for Clerk {
    type State = ();

    fn state(&self) -> impl SerializesAs<()> {
        &()
    }

    fn start(&mut self, out: &mut Outbox<Trip>, _: &mut Context) -> Result<()> {
        let body = if self.trip.kind == Move::Sleep { Body::empty() } else { vec![1; self.trip.numbers].into() };
        self.post(body, out);
        Ok(())
    }

    fn receive(&mut self, mut response: Response<Trip>, out: &mut Outbox<Trip>, _: &mut Context) -> Result<()> {
        self.trip.times.lock().map_err(|error| error.to_string())?.push(self.since.elapsed().as_secs_f64());
        self.left -= 1;
        if self.left > 0 {
            let body = match self.trip.kind {
                Move::Tell => vec![1; self.trip.numbers].into(),
                _ => response.reports.pop().map_or_else(Body::empty, |report| report.body),
            };
            self.post(body, out);
        }
        Ok(())
    }

    fn progress(&self) -> Progress {
        Progress::default()
    }
}

impl Agent<Trip> for Echo {
    type State = ();

    fn state(&self) -> impl SerializesAs<()> {
        &()
    }

    fn perform(&mut self, _: &(), body: Body<i32>, _: &mut Context) -> Result<((), Body<i32>)> {
        Ok((
            (),
            match self.kind {
                Move::Echo => body,
                Move::Tell => Body::empty(),
                Move::Sum if body.is_empty() => vec![1; self.numbers].into(),
                Move::Sum => body,
                Move::Sleep => {
                    std::thread::sleep(Duration::from_secs(2));
                    body
                }
            },
        ))
    }
}

/// Seconds of CPU time of this process.
fn cpu() -> f64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: the call fills the structure.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
        usage.assume_init()
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 * 1e-6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

/// The 10 %, 50 % and 90 % quantiles of the second half, in µs.
fn quantiles(times: &[f64]) -> [f64; 3] {
    let mut times = times[times.len() / 2..].to_vec();
    times.sort_by(f64::total_cmp);
    [10, 50, 90].map(|percent| times.get(times.len() * percent / 100).copied().unwrap_or(f64::NAN) * 1e6)
}

fn trip(world: &World, kind: Move, numbers: usize, rounds: usize, collectives: Collectives) -> Vec<f64> {
    let times = Arc::new(Mutex::new(Vec::new()));
    let dedicated = matches!(kind, Move::Echo | Move::Sleep);
    let agents = world.size() - u32::from(dedicated);
    let method = Trip { kind, agents, numbers, rounds, times: times.clone() };
    let plan = JobOptions { dedicated, collectives, ..JobOptions::new(Seed(1)) };
    run(world, Arc::new(method), plan, None, &mut ());
    let mut times = times.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    std::mem::take(&mut times)
}

fn raw_echo(world: &World, numbers: usize, rounds: usize) -> Vec<f64> {
    let mut body = vec![1_i32; numbers];
    let other = world.comm().process_at_rank(1 - world.comm().rank().min(1));
    let mut times = Vec::new();
    for _ in 0..rounds {
        let since = Instant::now();
        match world.rank() {
            0 => {
                other.send(&body[..]);
                other.receive_into(&mut body[..]);
            }
            1 => {
                other.receive_into(&mut body[..]);
                other.send(&body[..]);
            }
            _ => {}
        }
        times.push(since.elapsed().as_secs_f64());
    }
    times
}

fn raw_sum(world: &World, numbers: usize, rounds: usize) -> Vec<f64> {
    let (body, mut sum) = (vec![1_i32; numbers], vec![0_i32; numbers]);
    let mut times = Vec::new();
    for _ in 0..rounds {
        let since = Instant::now();
        world.comm().all_reduce_into(&body[..], &mut sum[..], SystemOperation::sum());
        times.push(since.elapsed().as_secs_f64());
    }
    times
}

fn main() {
    two_ranks::start();
    if std::env::var_os("MPIBAYES_UNTUNED").is_none() {
        tune_allocator();
    }
    let world = match World::start() {
        Ok(world) => world,
        Err(error) => {
            eprintln!("messages: {error}");
            std::process::exit(1);
        }
    };
    let is_primary = world.rank() == 0;
    let off = Collectives {
        requests: RequestDelivery::PointToPoint,
        integer_sums: IntegerSums::PointToPoint,
        float_sums: Sums::PointToPoint,
    };
    let on =
        Collectives { requests: RequestDelivery::Broadcast, integer_sums: IntegerSums::Allreduce, float_sums: Sums::Allreduce };
    if is_primary {
        println!("{} ranks; µs: 10 % / median / 90 %", world.size());
    }
    let line = |what: &str, size: &str, times: &[f64]| {
        if is_primary {
            let [low, median, high] = quantiles(times);
            println!("{what:<34} {size:>5} {low:>9.1} {median:>9.1} {high:>9.1}");
        }
    };
    for (size, numbers, rounds) in [("8 B", 2, 2000), ("4 KB", 1024, 2000), ("5 MB", 1_310_720, 100)] {
        line("echo, raw", size, &raw_echo(&world, numbers, rounds));
        line("echo, driver", size, &trip(&world, Move::Echo, numbers, rounds, off));
        line("request to all, point-to-point", size, &trip(&world, Move::Tell, numbers, rounds, off));
        line("request to all, broadcast", size, &trip(&world, Move::Tell, numbers, rounds, on));
        line("sum to all, raw MPI_Allreduce", size, &raw_sum(&world, numbers, rounds));
        line("sum to all, point-to-point", size, &trip(&world, Move::Sum, numbers, rounds, off));
        let sums_on = Collectives { requests: RequestDelivery::PointToPoint, ..on };
        line("sum to all, all-reduce", size, &trip(&world, Move::Sum, numbers, rounds, sums_on));
    }
    for (what, collectives) in [("off", off), ("on", on)] {
        let (cpu_before, since) = (cpu(), Instant::now());
        trip(&world, Move::Sleep, 0, 1, collectives);
        if is_primary {
            let share = 100.0 * (cpu() - cpu_before) / since.elapsed().as_secs_f64();
            println!("a waiting rank, collectives {what}: {share:.2} % of a core");
        }
    }
}
