//! The ticks of logarithmic axes, whose positions are natural logarithms.

/// Numbers that get a tick, from coarse to fine: these times powers of ten.
const LADDERS: [&[f64]; 4] = [
    &[1.0],
    &[1.0, 2.0, 5.0],
    &[1.0, 1.5, 2.0, 3.0, 5.0, 7.0],
    &[1.0, 1.1, 1.2, 1.3, 1.5, 1.7, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0],
];
/// More powers of ten than this do not fit.
const MOST_DECADES: i32 = 8;
/// Fewer ticks than this are too few.
const ENOUGH_TICKS: usize = 4;

/// Round numbers between these logarithms, at their logarithms.
pub(super) fn logarithmic_ticks((low, high): (f64, f64)) -> Vec<(f64, String)> {
    let decade = |at: f64| (at / std::f64::consts::LN_10).floor() as i32;
    let (first, last) = (decade(low), decade(high));
    // Wide ranges have powers of ten only, and not all of them.
    let step = usize::try_from((last - first) / MOST_DECADES + 1).unwrap_or(1);
    let ticks = |ladder: &[f64]| -> Vec<(f64, String)> {
        let numbers = (first..=last).step_by(step).flat_map(|decade| ladder.iter().map(move |digit| (digit, decade)));
        let named = numbers.map(|(digit, decade)| {
            // 0.2 and 20, without the rounding of powers.
            let number: f64 = format!("{digit}e{decade}").parse().unwrap_or(f64::NAN);
            let name = if (-4..6).contains(&decade) { number.to_string() } else { format!("{digit}e{decade}") };
            (number.ln(), name)
        });
        named.filter(|(at, _)| (low..=high).contains(at)).collect()
    };
    if last - first > MOST_DECADES / 2 {
        return ticks(LADDERS[0]);
    }
    let enough = LADDERS.iter().map(|ladder| ticks(ladder)).find(|ticks| ticks.len() >= ENOUGH_TICKS);
    enough.unwrap_or_else(|| ticks(LADDERS[LADDERS.len() - 1]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_numbers() {
        let labels =
            |low: f64, high: f64| logarithmic_ticks((low.ln(), high.ln())).into_iter().map(|tick| tick.1).collect::<Vec<_>>();
        assert_eq!(labels(0.09, 11.0), ["0.1", "0.2", "0.5", "1", "2", "5", "10"]);
        assert_eq!(labels(0.65, 2.1), ["0.7", "1", "1.5", "2"]);
        assert_eq!(labels(0.88, 1.25), ["0.9", "1", "1.1", "1.2"]);
        assert_eq!(labels(5e2, 2e6), ["1000", "10000", "100000", "1e6"]);
        assert_eq!(labels(0.5, 2e5), ["1", "10", "100", "1000", "10000", "100000"]);
        let wide = labels(1e-30, 1e30);
        assert!(wide.len() <= 9 && wide.contains(&"1e-30".to_owned()), "{wide:?}");
    }
}
