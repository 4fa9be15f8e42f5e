//! The simulator's clock in exact virtual seconds: declared costs, latency, bandwidth, busy links and cores.

use crate::methods::{Post, Scripted, Visits};
use crate::subject::{TestRecorder, Until, plan};
use crate::suite::{Suite, same};
use mpibayes::cluster::Method;
use mpibayes::cluster::record::Record;
use mpibayes::cluster::simulate::{self, Cluster, Cost};
use std::sync::Arc;

pub fn register(suite: &mut Suite) {
    suite.test("the simulated clock", |group| {
        // Ahn, Shahbaba and Welling 2014, figure 1: steps take (3, 1, 2, 4) on the four agents.
        let delays = [3.0, 1.0, 2.0, 4.0];
        for (steps, waits) in [
            ([3.0, 3.0, 3.0, 3.0], [3.0, 9.0, 6.0, 0.0]),
            ([4.0, 12.0, 6.0, 3.0], [0.0; 4]),
            ([3.0, 9.0, 4.0, 2.0], [0.0, 0.0, 1.0, 1.0]),
        ] {
            let visits = std::array::from_fn(|k| steps[k] * delays[k]);
            let measured = waits_of(visits, 1);
            let expected = vec![waits; 7];
            group.check(format!("waits by round for {steps:?} steps"), same("waits", &measured, &expected));
            for ahead in [2, 3] {
                // A visit begins when the agent is free, the chain is here, and the round was posted: when round r - ahead was over.
                let expected = recursion(visits, ahead);
                group.check(
                    format!("waits with {ahead} rounds ahead for {steps:?} steps"),
                    same("waits", &waits_of(visits, ahead), &expected),
                );
            }
        }
        let ahead = waits_of([9.0, 3.0, 6.0, 12.0], 3);
        let third: Vec<f64> = ahead.iter().map(|round| round[2]).collect();
        group.check("agent 3 of figure 1, three rounds ahead", same("waits", &third[..4].to_vec(), &vec![0.0, 0.0, 6.0, 6.0]));

        // One agent on rank 1, the server on a dedicated rank 0; latency 0.5 s, 8 MB/s.
        // Task: 0.5 + 8 MB / (8 MB/s) = 1.5 s; work to 3.5 s; report 0.5 + 0.5 = 4.5 s; the last checkpoint takes two messages of 0.5 s.
        let post = Post::to(&[0]).with(1_000_000);
        let simulated = play(2, 1, true, vec![post], vec![500_000], 2.0);
        group.check("latency and bandwidth", same("(starts, responses, end)", &simulated, &(vec![1.5], vec![4.5], 5.5)));

        // Two agents report 8 MB each to rank 0 at the same time: its link takes one
        // after the other, at 4 s and 5 s.
        let simulated = play(3, 2, true, vec![Post::to(&[0, 1])], vec![1_000_000; 2], 2.0);
        group.check("a busy receiver", same("(starts, responses, end)", &simulated, &(vec![0.5, 0.5], vec![5.0], 6.0)));

        // Three agents share the one core of their rank, then have two.
        let one = play(2, 3, true, vec![Post::to(&[0, 1, 2])], vec![0; 3], 2.0);
        group.check("one core for three agents", same("(starts, responses, end)", &one, &(vec![0.5, 2.5, 4.5], vec![7.0], 8.0)));

        // The agent's work after its report (0.25 s) delays its next task, not its report.
        let cluster = Cluster { after_report: Some(Box::new(|_, _| 0.25)), ..cluster(1, 2.0) };
        let two = Scripted { agents: 1, posts: vec![Post::to(&[0]), Post::to(&[0])], lengths: vec![0] };
        let timed = log(two, 1, false, &cluster);
        group.check("work after the report", same("(starts, responses, end)", &timed, &(vec![0.0, 2.25], vec![2.0, 4.25], 4.5)));
    });
}

/// Rounds × agents: how long each agent waited before each visit after its first.
fn waits_of(visits: [f64; 4], ahead: usize) -> Vec<[f64; 4]> {
    let cost: Cost<Visits> = Box::new(move |agent, _| visits[agent as usize]);
    let cluster = Cluster { ranks: 4, task: Some(cost), after_report: None, latency: 0.0, bandwidth: f64::INFINITY };
    let rows = rows(Visits { agents: 4, rounds: ROUNDS as u64, ahead: ahead as u64 }, 1, false, &cluster).0;
    let mut starts = [[0.0; 4]; ROUNDS];
    for (table, round, agent, value) in rows {
        if table == "visits" {
            starts[round as usize][agent.expect("an agent wrote it") as usize] = value;
        }
    }
    starts.windows(2).map(|pair| std::array::from_fn(|k| pair[1][k] - (pair[0][k] + visits[k]))).collect()
}

const ROUNDS: usize = 8;

/// The same by the rules of the protocol alone.
fn recursion(visits: [f64; 4], ahead: usize) -> Vec<[f64; 4]> {
    let mut ends: Vec<[f64; 4]> = vec![visits];
    let mut waits = Vec::new();
    for round in 1..ROUNDS {
        let last = ends[round - 1];
        let posted = if round < ahead { 0.0 } else { ends[round - ahead].into_iter().fold(0.0, f64::max) };
        let starts: [f64; 4] = std::array::from_fn(|k| last[k].max(last[(k + 3) % 4]).max(posted));
        waits.push(std::array::from_fn(|k| starts[k] - last[k]));
        ends.push(std::array::from_fn(|k| starts[k] + visits[k]));
    }
    waits
}

fn cluster<M: Method>(ranks: u32, task: f64) -> Cluster<M> {
    Cluster { ranks, task: Some(Box::new(move |_, _| task)), after_report: None, latency: 0.5, bandwidth: 8e6 }
}

fn play(ranks: u32, agents: u32, dedicated: bool, posts: Vec<Post>, lengths: Vec<usize>, task: f64) -> (Vec<f64>, Vec<f64>, f64) {
    log(Scripted { agents, posts, lengths }, 1, dedicated, &cluster(ranks, task))
}

/// The times of the starts of tasks, of the responses, and of the end of the run.
fn log(method: Scripted, threads: usize, dedicated: bool, cluster: &Cluster<Scripted>) -> (Vec<f64>, Vec<f64>, f64) {
    let (rows, end) = rows(method, threads, dedicated, cluster);
    let of = |wanted: &str| {
        let mut times: Vec<f64> = rows.iter().filter(|(table, ..)| table == wanted).map(|&(_, _, _, value)| value).collect();
        times.sort_by(f64::total_cmp);
        times
    };
    (of("starts"), of("responses"), end)
}

type Rows = Vec<(String, u64, Option<u32>, f64)>;

/// The first value of each row that was written, and the end of the run.
fn rows<M: Method>(method: M, threads: usize, dedicated: bool, cluster: &Cluster<M>) -> (Rows, f64) {
    let mut recorder = TestRecorder::new(Until::End);
    let outcome =
        simulate::run(Arc::new(method), plan(threads, dedicated, false), cluster, None, &mut recorder).expect("a sound method");
    let rows = recorder.records.iter().filter_map(|record| match record {
        Record::Row(row) => Some((row.table.clone(), row.step, row.agent, row.values[0].1)),
        Record::Draws(_) => None,
    });
    (rows.collect(), outcome.seconds)
}
