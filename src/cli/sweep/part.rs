//! Which runs of a sweep a job carries out: all, or those of one task of a Slurm job array.

use anyhow::ensure;

/// The part of a sweep that one job carries out: every `tasks`-th run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// From 1.
    pub(super) task: usize,
    pub(super) tasks: usize,
}

impl Part {
    pub(super) fn has(self, number: usize) -> bool {
        number % self.tasks == self.task - 1
    }
}

pub(super) fn parse_part(typed: &str) -> Result<Part, String> {
    let parts = typed.split_once('/').and_then(|(task, tasks)| Some((task.parse().ok()?, tasks.parse().ok()?)));
    match parts {
        Some((task, tasks)) if (1..=tasks).contains(&task) => Ok(Part { task, tasks }),
        _ => Err("write N/M with N from 1 to M, such as 2/8".into()),
    }
}

/// The part of this task of a Slurm job array; none outside of an array.
pub(super) fn part_of_array(variable: impl Fn(&str) -> Option<usize>) -> anyhow::Result<Option<Part>> {
    let Some(id) = variable("SLURM_ARRAY_TASK_ID") else { return Ok(None) };
    let first = variable("SLURM_ARRAY_TASK_MIN").unwrap_or(id);
    let last = variable("SLURM_ARRAY_TASK_MAX").unwrap_or(id);
    let tasks = variable("SLURM_ARRAY_TASK_COUNT").unwrap_or(1);
    let step = variable("SLURM_ARRAY_TASK_STEP").unwrap_or(1).max(1);
    let even =
        tasks > 0 && (first..=last).contains(&id) && (last - first) / step + 1 == tasks && (id - first).is_multiple_of(step);
    ensure!(
        even,
        "the tasks of this job array are not evenly numbered, so mpibayes cannot tell which runs are this one's: submit it with \
         --array=1-M, or give --task N/M"
    );
    Ok(Some(Part { task: (id - first) / step + 1, tasks }))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_all_tasks_cover_every_run_once() {
        for tasks in 1..5 {
            let parts: Vec<Part> = (1..=tasks).map(|task| parse_part(&format!("{task}/{tasks}")).unwrap()).collect();
            for number in 0..10 {
                assert_eq!(parts.iter().filter(|part| part.has(number)).count(), 1);
            }
        }
        assert!(parse_part("2/3").unwrap().has(1) && parse_part("2/3").unwrap().has(4));
        for wrong in ["0/3", "4/3", "1", "1/0", "a/b", "-1/2"] {
            assert!(parse_part(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_task_of_a_slurm_array_knows_its_part() {
        let of = |id: usize, min: usize, max: usize, step: usize, count: usize| {
            part_of_array(|name| match name.strip_prefix("SLURM_ARRAY_TASK_").unwrap() {
                "ID" => Some(id),
                "MIN" => Some(min),
                "MAX" => Some(max),
                "STEP" => Some(step),
                "COUNT" => Some(count),
                other => panic!("{other}"),
            })
        };
        assert_eq!(of(3, 1, 4, 1, 4).unwrap(), Some(Part { task: 3, tasks: 4 }));
        assert_eq!(of(0, 0, 7, 1, 8).unwrap(), Some(Part { task: 1, tasks: 8 }));
        assert_eq!(of(6, 2, 8, 2, 4).unwrap(), Some(Part { task: 3, tasks: 4 }));
        assert!(of(5, 1, 9, 1, 3).unwrap_err().to_string().contains("--array=1-M"));
        assert_eq!(part_of_array(|_| None).unwrap(), None);
    }
}
