//! The parameters that a figure shows: named ones such as `weights_1[0,3]`, or a selection if there are too many.

use super::error::{PlotError, Result};
use crate::results::{Samples, Values};
use crate::text::counted;

/// The parameters of a figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// The name of each parameter and its position in a draw.
    pub shown: Vec<(String, usize)>,
    /// A sentence about parameters that are not shown; empty if all are.
    pub remark: String,
}

impl Selection {
    /// The parameters of these names. Without names, the first element of each variable, then the second of each, and so on. At most
    /// `most` parameters.
    ///
    /// # Errors
    /// When there is no parameter of such a name.
    pub fn new(samples: &Samples, names: &[String], most: usize) -> Result<Self> {
        if names.is_empty() {
            return Ok(Self::spread(samples, most));
        }
        let mut shown: Vec<(String, usize)> = Vec::new();
        for name in names {
            shown.extend(find(samples, name)?);
        }
        let named = shown.len();
        shown.truncate(most);
        let remark = if named > most {
            format!("The first {most} of {} that were named.", counted(named, "parameter"))
        } else {
            String::new()
        };
        Ok(Self { shown, remark })
    }

    fn spread(samples: &Samples, most: usize) -> Self {
        let sizes: Vec<usize> = samples.parts.iter().map(|part| part.size()).collect();
        let (total, rounds) = (sizes.iter().sum::<usize>(), sizes.iter().copied().max().unwrap_or(0));
        let starts = sizes.iter().scan(0, |start, size| {
            let this = *start;
            *start += size;
            Some(this)
        });
        let starts: Vec<usize> = starts.collect();
        let turns = (0..rounds).flat_map(|turn| (0..sizes.len()).map(move |part| (part, turn)));
        let mut chosen: Vec<(usize, usize)> = turns.filter(|&(part, turn)| turn < sizes[part]).take(most).collect();
        chosen.sort_unstable();
        let shown = chosen.iter().map(|&(part, place)| (samples.parts[part].element_name(place), starts[part] + place)).collect();
        let remark = match total > chosen.len() {
            true => format!("{} of {}: the first of each variable.", chosen.len(), counted(total, "parameter")),
            false => String::new(),
        };
        Self { shown, remark }
    }
}

/// The elements with this name, such as `weights[age]`, or with this label, such as `age`.
fn labelled(samples: &Samples, typed: &str) -> Vec<(String, usize)> {
    let mut start = 0;
    let mut found = Vec::new();
    for part in &samples.parts {
        let has_label = part.labels.iter().flatten().any(|label| typed.contains(label.as_str()));
        if has_label {
            let names = (0..part.size()).map(|place| (part.element_name(place), start + place));
            let inside =
                |name: &str| Some(name.strip_prefix(part.name.as_str())?.strip_prefix('[')?.strip_suffix(']')?.to_owned());
            let is_label = |inside: String| {
                inside == typed || inside.ends_with(&format!(",{typed}")) || inside.starts_with(&format!("{typed},"))
            };
            let of_label = |name: &str| inside(name).is_some_and(is_label);
            found.extend(names.filter(|(name, _)| name == typed || of_label(name)));
        }
        start += part.size();
    }
    found
}

/// This many elements of a variable are listed.
const LISTED: usize = 8;

/// The parameters that a name refers to: one element, or all elements of a variable.
fn find(samples: &Samples, typed: &str) -> Result<Vec<(String, usize)>> {
    // A text that is not a name with numeric indices may be one with labels.
    let error = |message: String| match labelled(samples, typed.trim()) {
        found if found.is_empty() => Err(PlotError::Parameter(message)),
        found => Ok(found),
    };
    let (name, indices) = match typed.split_once('[') {
        None => (typed.trim(), None),
        Some((name, rest)) => match rest.trim().strip_suffix(']') {
            Some(inside) => (name.trim(), Some(inside)),
            None => return error(format!("{typed:?} is not a parameter: write NAME or NAME[0,3]")),
        },
    };
    let Some(at) = samples.parts.iter().position(|part| part.name == name) else {
        // Such as `weights[age] to weights[stay]`.
        let variables = samples.parts.iter().map(|part| match part.size() {
            0 | 1 => part.element_name(0),
            2 => format!("{}, {}", part.element_name(0), part.element_name(1)),
            size => format!("{} to {}", part.element_name(0), part.element_name(size - 1)),
        });
        let variables: Vec<String> = variables.collect();
        return error(format!("there is no parameter {name:?}; the run has {}", variables.join(", ")));
    };
    let start: usize = samples.parts[..at].iter().map(|part| part.size()).sum();
    let part = &samples.parts[at];
    let Some(indices) = indices else {
        return Ok((0..part.size()).map(|place| (samples.parts[at].element_name(place), start + place)).collect());
    };
    let parsed: Option<Vec<usize>> = indices.split(',').map(|index| index.trim().parse().ok()).collect();
    let fits =
        |indices: &Vec<usize>| indices.len() == part.shape.len() && indices.iter().zip(&part.shape).all(|(i, side)| i < side);
    match parsed.filter(fits) {
        Some(indices) => {
            let place = indices.iter().zip(&part.shape).fold(0, |place, (index, side)| place * side + index);
            Ok(vec![(samples.parts[at].element_name(place), start + place)])
        }
        None if part.shape.is_empty() => error(format!("{typed:?}: {name} is a scalar and has no indices")),
        None => {
            let last: Vec<String> = part.shape.iter().map(|side| side.saturating_sub(1).to_string()).collect();
            let elements: Vec<String> = (0..part.size().min(LISTED)).map(|place| part.element_name(place)).collect();
            let more = if part.size() > LISTED { ", ..." } else { "" };
            let last = last.join(" and ");
            error(format!("there is no {typed:?}: {name} has {}{more}; its indices go from 0 to {last}", elements.join(", ")))
        }
    }
}

/// The draws of one parameter, chain by chain.
pub(super) fn column(samples: &Samples, index: usize) -> Vec<Vec<f64>> {
    let (chains, draws, _) = samples.values.dim();
    let value = |chain, draw| match &samples.values {
        Values::F32(values) => f64::from(values[[chain, draw, index]]),
        Values::F64(values) => values[[chain, draw, index]],
        Values::I32(values) => f64::from(values[[chain, draw, index]]),
    };
    (0..chains).map(|chain| (0..draws).map(|draw| value(chain, draw)).collect()).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::models::Part;
    use crate::results::SampleKind;
    use ndarray::Array3;

    fn samples() -> Samples {
        let parts = vec![Part::new("weights", &[3, 4]), Part::new("bias", &[2]), Part::new("log_precision", &[])];
        let values = Array3::from_shape_fn((2, 5, 15), |(chain, draw, index)| (1000 * chain + 100 * draw + index) as f64);
        Samples { group: "posterior".into(), kind: SampleKind::Chains, parts, values: Values::F64(values) }
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.into()).collect()
    }

    /// A variable's own name comes before a label that is the same, and indices before labels.
    #[test]
    fn parameters_are_found_by_label() {
        let labels = |labels: &[&str]| labels.iter().map(|&label| label.to_owned()).collect::<Vec<_>>();
        let parts = vec![
            Part::new("weights", &[2]).labelled(0, &labels(&["age", "region[south]"])),
            Part::new("intercept", &[]),
            Part::new("effects", &[2, 2]).labelled(0, &labels(&["s1", "s2"])).labelled(1, &labels(&["intercept", "age"])),
        ];
        let values = Values::F64(Array3::zeros((1, 3, 7)));
        let samples = Samples { group: "posterior".into(), kind: SampleKind::Chains, parts, values };
        for (typed, expected) in [
            ("intercept", &[2][..]),
            ("weights[age]", &[0]),
            ("weights[1]", &[1]),
            ("region[south]", &[1]),
            ("age", &[0, 4, 6]),
            ("s2", &[5, 6]),
            ("effects[s2,age]", &[6]),
        ] {
            let found = Selection::new(&samples, &names(&[typed]), 12).unwrap();
            assert_eq!(found.shown.iter().map(|(_, index)| *index).collect::<Vec<_>>(), expected, "{typed}");
        }
        assert!(Selection::new(&samples, &names(&["height"]), 12).is_err());
    }

    #[test]
    fn parameters_are_found_by_name() {
        let samples = samples();
        let found = Selection::new(&samples, &names(&["weights[1,3]", "log_precision", " bias [ 1 ] ", "bias"]), 12).unwrap();
        let expected = [("weights[1,3]", 7), ("log_precision", 14), ("bias[1]", 13), ("bias[0]", 12), ("bias[1]", 13)];
        assert_eq!(found.shown, expected.map(|(name, index)| (name.to_owned(), index)));
        assert_eq!(column(&samples, 7)[1], [1007.0, 1107.0, 1207.0, 1307.0, 1407.0]);
        assert_eq!(Selection::new(&samples, &names(&["weights"]), 5).unwrap().shown.len(), 5);
        for (typed, says) in [
            ("weight[0]", "the run has weights[0,0] to weights[2,3], bias[0], bias[1], log_precision"),
            ("weights[3,0]", "from 0 to 2 and 3"),
            ("weights[1]", "from 0 to 2 and 3"),
            ("weights[-1,0]", "from 0"),
            ("weights[1,0", "write NAME"),
            ("bias[99999999999999999999999]", "from 0 to 1"),
            ("log_precision[0]", "is a scalar"),
            ("", "the run has"),
        ] {
            let message = Selection::new(&samples, &names(&[typed]), 12).unwrap_err().to_string();
            assert!(message.contains(says), "{typed}: {message}");
        }
    }

    #[test]
    fn every_variable_is_selected() {
        let shown = |most| -> Vec<String> {
            Selection::new(&samples(), &[], most).unwrap().shown.into_iter().map(|(name, _)| name).collect()
        };
        assert_eq!(shown(3), ["weights[0,0]", "bias[0]", "log_precision"]);
        assert_eq!(shown(6), ["weights[0,0]", "weights[0,1]", "weights[0,2]", "bias[0]", "bias[1]", "log_precision"]);
        assert_eq!(Selection::new(&samples(), &[], 6).unwrap().remark, "6 of 15 parameters: the first of each variable.");
        assert_eq!((shown(15).len(), Selection::new(&samples(), &[], 15).unwrap().remark.as_str()), (15, ""));
    }
}
