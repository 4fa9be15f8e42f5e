//! The configurational temperatures of a run's draws, which are known for models with many parameters.

use super::error::{ReportError, Result};
use crate::job::TEMPERATURE;
use crate::metrics::temperature::{Temperature, temperatures};
use crate::results::{Grid, ResultFile};
use crate::text;
use ndarray::{Ix1, Ix2};

/// The temperatures of all variables; none if they were not measured.
///
/// # Errors
/// When the file cannot be read.
pub fn temperatures_of(file: &ResultFile) -> Result<Vec<Temperature>> {
    let Some(grid) = file.grid(TEMPERATURE)? else { return Ok(Vec::new()) };
    read(&grid).ok_or_else(|| ReportError::Missing(format!("the group {TEMPERATURE} of the result file is not complete")))
}

fn read(grid: &Grid) -> Option<Vec<Temperature>> {
    let by_draw = grid.array("temperature")?.into_dimensionality::<Ix2>().ok()?;
    // Whole numbers that this program has written.
    let whole_numbers =
        |name: &str| Some(grid.array(name)?.into_dimensionality::<Ix1>().ok()?.mapv(|number| number as usize).to_vec());
    let (chains, sizes) = (whole_numbers("chain")?, whole_numbers("parameters")?);
    let names = grid.list("names");
    let fits = by_draw.dim() == (chains.len(), sizes.len()) && names.len() == sizes.len();
    let variables: Vec<(String, usize)> = names.iter().cloned().zip(sizes).collect();
    fits.then(|| temperatures(&variables, by_draw.view(), &chains))
}

/// Of those that are surely wrong, the one farthest from 1 (by ratio); none if none is wrong.
pub(super) fn worst(temperatures: &[Temperature]) -> Option<&Temperature> {
    let distance = |one: &Temperature| if one.temperature > 0.0 { one.temperature.ln().abs() } else { f64::INFINITY };
    temperatures.iter().filter(|one| one.is_wrong()).max_by(|a, b| distance(a).total_cmp(&distance(b)))
}

/// A clause with the variable, its temperature, the error, and the right value.
pub(super) fn described(found: &Temperature) -> String {
    format!(
        "the configurational temperature of {} is {:.2} ± {:.2}, and 1 is right",
        found.variable, found.temperature, found.error
    )
}

/// The table of all variables.
pub(super) fn table(temperatures: &[Temperature]) -> String {
    if temperatures.is_empty() {
        return String::new();
    }
    let cells = |of: &dyn Fn(&Temperature) -> String| temperatures.iter().map(of).collect::<Vec<_>>();
    let columns = [
        ("variable".to_owned(), cells(&|found| found.variable.clone())),
        ("parameters".into(), cells(&|found| text::count(found.parameters))),
        ("temperature".into(), cells(&|found| format!("{:.3}", found.temperature))),
        ("error".into(), cells(&|found| format!("{:.3}", found.error))),
    ];
    format!(
        "\nconfigurational temperature (1 for draws from the posterior; the square of the factor by which sds are too large)\n{}",
        text::table(&columns)
    )
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn grid(chains: &[f64]) -> Grid {
        Grid {
            group: TEMPERATURE.into(),
            dimensions: vec![("scored_draw".into(), 3), ("variable".into(), 2)],
            variables: vec![
                ("temperature".into(), vec![0, 1], vec![1.99, 1.0, 2.0, 1.01, 2.01, 0.99]),
                ("chain".into(), vec![0], chains.to_vec()),
                ("parameters".into(), vec![1], vec![400.0, 40.0]),
            ],
            names: vec![("names".into(), 1, vec!["weights_1".into(), "biases_1".into()])],
        }
    }

    #[test]
    fn the_variable_with_the_wrong_temperature_is_named() {
        let found = read(&grid(&[0.0, 0.0, 1.0])).unwrap();
        let wrong = worst(&found).unwrap();
        assert!(described(wrong).contains("of weights_1 is 2.00 ± 0.01"), "{}", described(wrong));
        assert!(!found[1].is_wrong() && worst(&found[1..]).is_none());
        let table = table(&found);
        assert!(table.contains("biases_1") && table.contains("2.000"), "{table}");
        // Some draws of many chains.
        assert!(read(&grid(&[0.0, 7.0, 41.0])).is_some());
    }
}
