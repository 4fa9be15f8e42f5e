//! Foreign launchers are detected, and a waiting rank uses almost no CPU time.

use crate::launch::{Launcher, command, watched, work};
use crate::suite::Suite;
use crate::worker::{Became, Script, Step, Work, WorkerDriver};

/// The largest share of a core that a waiting rank may use: it wakes up about 100 times per second. On three machines it used 0.5 to 0.8 %.
const WAITING: f64 = 0.02;

pub fn register(suite: &mut Suite) {
    suite.test("processes of another MPI's launcher are refused", |group| {
        let started = |variables: &[(&str, &str)]| {
            let mut command = command(Launcher::Alone, &["--start"])?;
            command.envs(variables.iter().copied());
            watched(command)
        };
        let refused = started(&[("PMI_SIZE", "4"), ("PMI_RANK", "0")]).and_then(|ended| {
            let clear = ended.stderr.contains("started 4 processes") && ended.stderr.contains("PMI_SIZE");
            if ended.code == 70 && clear { Ok(()) } else { Err(format!("code {}\n{}{}", ended.code, ended.stdout, ended.stderr)) }
        });
        group.check("four processes that do not know each other", refused);
        for variables in [&[][..], &[("PMI_SIZE", "1"), ("PMI_RANK", "0")]] {
            let accepted = started(variables).and_then(|ended| {
                let sound = ended.code == 0 && ended.stdout.contains("rank 0 of 1");
                if sound { Ok(()) } else { Err(format!("code {}\n{}{}", ended.code, ended.stdout, ended.stderr)) }
            });
            group.check(format!("one process, {variables:?}"), accepted);
        }
    });
    // The CPU time of a thread is measured on Linux only.
    if !cfg!(target_os = "linux") {
        return;
    }
    suite.test("a rank that waits leaves its core to others", |group| {
        let results = group.folder.join("waited.jsonl");
        let step = Step { method: "burn".into(), threads: 1, dedicated: true, collectives: false, work: Work::Wait };
        let script = Script { driver: WorkerDriver::Mpi, steps: vec![step], results: results.clone() };
        let measured = work(Launcher::Mpirun(2), &script, group.folder).and_then(|ended| {
            let line = std::fs::read_to_string(&results).map_err(|error| format!("{error}\n{}", ended.stderr))?;
            serde_json::from_str::<Became>(&line).map_err(|error| error.to_string())
        });
        let result = match measured {
            Ok(Became::Waited { share, seconds }) => {
                eprintln!("rank 0 took {:.2} % of a core in {seconds:.1} s", 100.0 * share);
                if seconds < 3.0 {
                    Err(format!("the busy rank was busy for {seconds:.2} s only: too short to measure"))
                } else if share > WAITING {
                    Err(format!("rank 0 took {:.2} % of a core while it waited", 100.0 * share))
                } else {
                    Ok(())
                }
            }
            Ok(other) => Err(format!("an unexpected result: {other:?}")),
            Err(cause) => Err(cause),
        };
        group.check("rank 0, dedicated", result);
    });
}
