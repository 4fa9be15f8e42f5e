//! Which runs of a sweep a job carries out: all, those of `--task N/M`, or those of one task of a Slurm job array.

use anyhow::ensure;

/// The share of a sweep that one task carries out: every `tasks`-th run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskShare {
    /// The place of the task among all tasks, from 1. The ID of a task in a job array may be another number.
    pub(super) task: usize,
    /// How many tasks share the runs.
    pub(super) tasks: usize,
}

impl TaskShare {
    /// Whether the task carries out the run with this number, from 0.
    pub(super) fn carries_out(self, run_number: usize) -> bool {
        run_number % self.tasks == self.task - 1
    }

    /// How many of `runs` runs the task carries out.
    pub(super) fn size(self, runs: usize) -> usize {
        (0..runs).filter(|&number| self.carries_out(number)).count()
    }
}

pub(super) fn parse_task(typed: &str) -> Result<TaskShare, String> {
    let parts = typed.split_once('/').and_then(|(task, tasks)| Some((task.parse().ok()?, tasks.parse().ok()?)));
    match parts {
        Some((task, tasks)) if (1..=tasks).contains(&task) => Ok(TaskShare { task, tasks }),
        _ => Err("write N/M with N from 1 to M, such as 2/8".into()),
    }
}

/// The share of this task among the tasks of its Slurm job array; none outside of an array. The only task of an array carries out all runs.
pub(super) fn share_in_array(variable: impl Fn(&str) -> Option<usize>) -> anyhow::Result<Option<TaskShare>> {
    let Some(id) = variable("SLURM_ARRAY_TASK_ID") else { return Ok(None) };
    let first = variable("SLURM_ARRAY_TASK_MIN").unwrap_or(id);
    let last = variable("SLURM_ARRAY_TASK_MAX").unwrap_or(id);
    let tasks = variable("SLURM_ARRAY_TASK_COUNT").unwrap_or(1);
    let step = variable("SLURM_ARRAY_TASK_STEP").unwrap_or(1).max(1);
    let numbers_fit =
        tasks > 0 && (first..=last).contains(&id) && (last - first) / step + 1 == tasks && (id - first).is_multiple_of(step);
    ensure!(
        numbers_fit,
        "mpibayes cannot tell from the numbers of this job array which runs this task has to carry out: submit the array with \
         --array=1-M, or give --task N/M"
    );
    Ok(Some(TaskShare { task: (id - first) / step + 1, tasks }))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_shares_of_all_tasks_cover_every_run_once() {
        for tasks in 1..5 {
            let shares: Vec<TaskShare> = (1..=tasks).map(|task| parse_task(&format!("{task}/{tasks}")).unwrap()).collect();
            for number in 0..10 {
                assert_eq!(shares.iter().filter(|share| share.carries_out(number)).count(), 1);
            }
            assert_eq!(shares.iter().map(|share| share.size(10)).sum::<usize>(), 10);
        }
        let second = parse_task("2/3").unwrap();
        assert!(second.carries_out(1) && second.carries_out(4) && !second.carries_out(2));
        assert_eq!([0, 1, 2, 4, 5].map(|runs| second.size(runs)), [0, 0, 1, 1, 2]);
        for wrong in ["0/3", "4/3", "1", "1/0", "a/b", "-1/2"] {
            assert!(parse_task(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_task_of_a_slurm_array_knows_its_share() {
        let of = |id: usize, min: usize, max: usize, step: usize, count: usize| {
            share_in_array(|name| match name.strip_prefix("SLURM_ARRAY_TASK_").unwrap() {
                "ID" => Some(id),
                "MIN" => Some(min),
                "MAX" => Some(max),
                "STEP" => Some(step),
                "COUNT" => Some(count),
                other => panic!("{other}"),
            })
        };
        assert_eq!(of(3, 1, 4, 1, 4).unwrap(), Some(TaskShare { task: 3, tasks: 4 }));
        assert_eq!(of(0, 0, 7, 1, 8).unwrap(), Some(TaskShare { task: 1, tasks: 8 }));
        assert_eq!(of(6, 2, 8, 2, 4).unwrap(), Some(TaskShare { task: 3, tasks: 4 }));
        assert!(of(5, 1, 9, 1, 3).unwrap_err().to_string().contains("--array=1-M"));
        assert_eq!(share_in_array(|_| None).unwrap(), None);
    }
}
