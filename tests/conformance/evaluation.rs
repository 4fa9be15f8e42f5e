//! Evaluation changes nothing: the bits of the method, its overlap of computation, and its clock are those of a run without it.

use crate::methods::{Eager, Elastic, stein};
use crate::subject::{Driver, TestRecorder, Until, carry, plan};
use crate::suite::{Suite, same};
use mpibayes::cluster::Method;
use mpibayes::cluster::record::{Record, Row};
use mpibayes::cluster::simulate::{self, Cluster};
use mpibayes::methods::{EvaluationTask, PARTICLE_PATHS, Posterior};
use mpibayes::number::Real;
use std::collections::BTreeMap;
use std::sync::Arc;

pub fn register(suite: &mut Suite) {
    suite.test("evaluation changes no bit", |group| {
        for driver in [
            Driver::Threads { threads: 1 },
            Driver::Threads { threads: 3 },
            Driver::Simulate { ranks: 3, threads: 1, dedicated: false },
            Driver::Simulate { ranks: 4, threads: 2, dedicated: true },
        ] {
            group.check("dsvgd", looks_on(|| stein::distilling::<f32>(5), driver, true));
            group.check("svgd", looks_on(|| stein::svgd::<f64>(3), driver, true));
            // Its work after responses must be done exactly once, after its own tasks.
            group.check("elastic", looks_on(|| Elastic, driver, true));
            // Responses arrive in any order: none may be lost.
            group.check("eager", looks_on(|| Eager::<2>, driver, false));
        }
    });
    suite.test("evaluation does not overlap distillation and is excluded from the clock", |group| {
        // Seconds of a visit, of the distillation after it, of an agent's part of an evaluation.
        for (ranks, [visit, distillation, share]) in [
            // The distillation overlaps the next visits completely, then partly; one evaluation is as long as a visit.
            (5, [4.0, 4.0, 1.0]),
            (5, [4.0, 15.0, 1.0]),
            (5, [2.0, 30.0, 1.0]),
            (5, [4.0, 4.0, 4.0]),
            // Five agents and one worker: nothing overlaps, and an evaluation takes the time of five agents.
            (1, [4.0, 4.0, 1.0]),
        ] {
            let run = |every| times_of_dsvgd(ranks, every, [visit, distillation, share]);
            let alone = run(None);
            let hidden = (1..=12).map(|round| f64::from(round) * visit).collect::<Vec<_>>();
            // The control: without evaluation, computation overlaps whenever it is short enough.
            let overlaps = ranks > 1 && distillation <= f64::from(ranks - 1) * visit;
            let case = format!("{ranks} ranks, visits of {visit} s, distillations of {distillation} s, shares of {share} s");
            group.check(format!("{case}: overlap"), same("hidden", &(alone.history == hidden), &overlaps));
            for every in [1, 2, 5] {
                let evaluated = run(Some(every));
                let at_rounds = (1..=12).filter(|round| round % every == 0 || *round == 12);
                let expected = at_rounds.map(|round| alone.history[round as usize - 1]).collect::<Vec<_>>();
                let result = same("the history", &evaluated.history, &alone.history)
                    .and_then(|()| same("the times of the metrics", &evaluated.metrics, &expected))
                    .and_then(|()| same("the end", &evaluated.end, &alone.end));
                group.check(format!("{case}, every {every}"), result);
            }
        }
    });
}

/// Checks that evaluation does not change a method's draws, or only their values if responses arrive in any order.
fn looks_on<M: Method>(make: impl Fn() -> M, driver: Driver, bits: bool) -> Result<(), String>
where
    M::Number: Real,
    M::Server: Posterior<M::Number>,
{
    let alone = drawn(make(), driver)?;
    if alone.0.is_empty() || alone.1 > 0 {
        return Err(format!("{} draws and {} evaluations of a method alone", alone.0.len(), alone.1));
    }
    for every in [1, 3, 1000] {
        let (draws, evaluations) = drawn(stein::evaluated(make(), every), driver)?;
        let well = if bits { draws == alone.0 } else { draws.keys().eq(alone.0.keys()) };
        if !well || evaluations == 0 {
            return Err(format!("other draws, or none of {evaluations} evaluations, with one every {every} rounds"));
        }
    }
    Ok(())
}

type Draws = BTreeMap<(String, u32, u64), Vec<u8>>;

/// The draws of a method, and the number of evaluations.
fn drawn<M: Method>(method: M, driver: Driver) -> Result<(Draws, usize), String> {
    let mut recorder = TestRecorder::new(Until::End);
    carry(Arc::new(method), driver, None, &mut recorder).map_err(|fault| fault.to_string())?;
    let (mut draws, mut evaluations) = (Draws::new(), 0);
    for record in recorder.records {
        match record {
            // Draws of the evaluation itself.
            Record::Draws(block) if block.group == PARTICLE_PATHS => {}
            Record::Draws(block) => {
                if draws.insert((block.group.clone(), block.chain, block.first), block.bytes).is_some() {
                    return Err(format!("{} {} {} was written twice", block.group, block.chain, block.first));
                }
            }
            Record::Row(row) => evaluations += usize::from(row.table == "metrics"),
        }
    }
    Ok((draws, evaluations))
}

/// Times in virtual seconds.
struct Times {
    history: Vec<f64>,
    metrics: Vec<f64>,
    end: f64,
}

/// DSVGD on five agents, on a network that takes no time, with declared costs.
fn times_of_dsvgd(ranks: u32, every: Option<u64>, [visit, distillation, share]: [f64; 3]) -> Times {
    let dsvgd = stein::distilling::<f32>(5);
    match every {
        None => timed(dsvgd, ranks, move |_| (visit, distillation)),
        Some(every) => timed(stein::evaluated(dsvgd, every), ranks, move |task| match task {
            EvaluationTask::Inner(_) => (visit, distillation),
            EvaluationTask::Evaluate(_) => (share, 0.0),
        }),
    }
}

fn timed<M: Method>(method: M, ranks: u32, costs: impl Fn(&M::Task) -> (f64, f64) + Copy + 'static) -> Times {
    let cluster = Cluster {
        ranks,
        task: Some(Box::new(move |_, task| costs(task).0)),
        after_report: Some(Box::new(move |_, task| costs(task).1)),
        latency: 0.0,
        bandwidth: f64::INFINITY,
    };
    let mut recorder = TestRecorder::new(Until::End);
    let outcome = simulate::run(Arc::new(method), plan(1, false, false), &cluster, None, &mut recorder).expect("a sound method");
    let rows: Vec<Row> =
        recorder.records.into_iter().filter_map(|record| if let Record::Row(row) = record { Some(row) } else { None }).collect();
    let of = |table: &str| {
        let mut rows: Vec<_> = rows.iter().filter(|row| row.table == table).collect();
        rows.sort_by_key(|row| row.step);
        rows.into_iter().map(|row| row.values.iter().find(|(name, _)| name == "seconds").expect("a time").1).collect()
    };
    Times { history: of("history"), metrics: of("metrics"), end: outcome.seconds }
}
