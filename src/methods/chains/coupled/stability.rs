//! Which steps, periods and springs are stable, by the linear dynamics of chains and center on U = λθ²/2, for all λ that the chains'
//! own steps can do with.
//!
//! Springs between chains that all meet the center at once are stable wherever the chains' steps are: chains and center move by turns,
//! each with its own law kept. Chains that meet it one by one, a center that is extrapolated, and kicks have resonances.

use super::center::CenterDynamics;
use crate::kernels::hamiltonian::{Scheme, SghmcDynamics};
use ndarray::Array2;

/// Curvatures λ that are looked at: from this share of κ to what steps can do with, so many, in equal ratios.
const LEAST_CURVATURE: f64 = 1e-3;
const CURVATURES: u32 = 40;
/// More chains than this are looked at as so many.
const MOST_CHAINS: u32 = 12;
/// A map that grows by less than this is one that does not.
const ROUNDING: f64 = 1e-6;

/// How a chain steps, as far as a mean knows.
#[derive(Clone, Copy)]
pub(in crate::methods) enum Steps {
    /// Of first order, of this time.
    FirstOrder(f64),
    /// Of second order.
    SecondOrder(SghmcDynamics),
}

impl Steps {
    fn time(self) -> f64 {
        match self {
            Self::FirstOrder(time) => time,
            Self::SecondOrder(dynamics) => dynamics.step,
        }
    }

    /// The largest stiffness that steps are stable with.
    fn stiffest(self) -> f64 {
        match self {
            Self::FirstOrder(time) => 2.0 / time,
            Self::SecondOrder(dynamics) => dynamics.stability_limit() / dynamics.step.powi(2),
        }
    }

    /// Curvatures beside a spring.
    fn curvatures(self, kappa: f64, spring: f64) -> impl Iterator<Item = f64> {
        let (least, most) = (LEAST_CURVATURE * kappa, 0.999 * (self.stiffest() - spring));
        let ratio = (most / least).max(1.0).powf(1.0 / f64::from(CURVATURES));
        (0..=CURVATURES).map(move |place| least * ratio.powf(f64::from(place)))
    }

    /// A step under the force −λθ + κ(c − θ); `drift` moves what is known of the center along with its velocity, in the end.
    fn step(self, size: usize, [x, v, c]: [usize; 3], lambda: f64, kappa: f64, drift: Option<usize>) -> Array2<f64> {
        let force = |time: f64| [(x, -time * (lambda + kappa)), (c, time * kappa)];
        let along = |map: Array2<f64>| match drift {
            Some(u) => change(size, &[(c, &[(c, 1.0), (u, self.time())])]).dot(&map),
            None => map,
        };
        match self {
            Self::FirstOrder(time) => {
                let [own, center] = force(time);
                along(change(size, &[(x, &[(x, 1.0), own, center])]))
            }
            Self::SecondOrder(dynamics) => {
                let SghmcDynamics { step, scheme, .. } = dynamics;
                let [own, center] = force(step);
                let move_by = |time: f64| change(size, &[(x, &[(x, 1.0), (v, time)])]);
                match scheme {
                    Scheme::Middle => {
                        let forget = change(size, &[(v, &[(v, dynamics.velocity_decay())])]);
                        let kick = change(size, &[(v, &[(v, 1.0), own, center])]);
                        along(move_by(0.5 * step).dot(&kick).dot(&move_by(0.5 * step)).dot(&forget))
                    }
                    Scheme::SemiImplicit => {
                        along(move_by(step).dot(&change(size, &[(v, &[(v, dynamics.velocity_decay()), own, center])])))
                    }
                }
            }
        }
    }
}

/// The identity but for some rows, which are sums of these multiples of rows.
fn change(size: usize, rows: &[(usize, &[(usize, f64)])]) -> Array2<f64> {
    let mut map = Array2::eye(size);
    for (to, from) in rows {
        map.row_mut(*to).fill(0.0);
        from.iter().for_each(|&(source, times)| map[[*to, source]] += times);
    }
    map
}

/// A map so many times, by squaring.
fn power(map: &Array2<f64>, mut times: u64) -> Array2<f64> {
    let (mut done, mut square) = (Array2::eye(map.nrows()), map.clone());
    while times > 0 {
        if times % 2 == 1 {
            done = square.dot(&done);
        }
        square = square.dot(&square);
        times /= 2;
    }
    done
}

/// The factor by which a map grows in the long run.
fn growth(mut map: Array2<f64>) -> f64 {
    let (mut log, mut times) = (0.0, 1.0);
    for _ in 0..24 {
        let largest = map.iter().fold(0.0_f64, |most, entry| most.max(entry.abs()));
        if !(largest.is_finite() && map.iter().all(|entry| entry.is_finite())) {
            return f64::INFINITY;
        }
        if largest == 0.0 {
            return 0.0;
        }
        map /= largest;
        log += largest.ln() / times;
        map = map.dot(&map);
        times *= 2.0;
    }
    log.exp()
}

/// Rows that move a center at (c, u) along its flow, about the mean of these places.
fn flows(size: usize, center: CenterDynamics, stiffness: f64, time: f64, [c, u]: [usize; 2], chains: &[usize]) -> Array2<f64> {
    let [[a, b], [d, e]] = center.flow(stiffness, time, false).drift;
    let share = if stiffness > 0.0 { 1.0 / chains.len() as f64 } else { 0.0 };
    let row = |own: f64, velocity: f64, back: f64| -> Vec<(usize, f64)> {
        [(c, own), (u, velocity)].into_iter().chain(chains.iter().map(|&chain| (chain, share * back))).collect()
    };
    change(size, &[(c, &row(a, b, 1.0 - a)), (u, &row(d, e, -d))])
}

/// Whether chains are stable that meet the center one by one, in turn.
pub(in crate::methods) fn turns_are_stable(steps: Steps, kappa: f64, chains: u32, center: CenterDynamics, period: u64) -> bool {
    let k = chains.min(MOST_CHAINS) as usize;
    // θ_i, v_i, what each chain knows of the center, what the center knows of each; c, u.
    let size = 4 * k + 2;
    let center_at = [4 * k, 4 * k + 1];
    let told: Vec<usize> = (3 * k..4 * k).collect();
    let time = steps.time() * period as f64 / k as f64;
    let flow = flows(size, center, kappa * k as f64, time, center_at, &told);
    steps.curvatures(kappa, kappa).all(|lambda| {
        let round = (0..k).fold(Array2::eye(size), |map, i| {
            let meets = change(size, &[(3 * k + i, &[(i, 1.0)])]);
            let learns = change(size, &[(2 * k + i, &[(4 * k, 1.0)])]);
            let moves = power(&steps.step(size, [i, k + i, 2 * k + i], lambda, kappa, None), period);
            moves.dot(&learns).dot(&flow).dot(&meets).dot(&map)
        });
        growth(round) < 1.0 + ROUNDING
    })
}

/// Whether chains are stable that follow the center's velocity from where it was at an exchange of all.
pub(in crate::methods) fn extrapolation_is_stable(
    steps: Steps,
    kappa: f64,
    chains: u32,
    center: CenterDynamics,
    period: u64,
) -> bool {
    // θ̄, v̄, c, u, and what chains know of c and u.
    let size = 6;
    let learns = change(size, &[(4, &[(2, 1.0)]), (5, &[(3, 1.0)])]);
    let flow = flows(size, center, kappa * f64::from(chains), steps.time() * period as f64, [2, 3], &[0]);
    steps.curvatures(kappa, kappa).all(|lambda| {
        let moves = power(&steps.step(size, [0, 1, 4], lambda, kappa, Some(5)), period);
        growth(moves.dot(&flow).dot(&learns)) < 1.0 + ROUNDING
    })
}

/// Whether kicks between the mean of the chains and a center are stable that come before every period.
pub(in crate::methods) fn kicks_are_stable(steps: Steps, kappa: f64, chains: u32, mass: f64, friction: f64, period: u64) -> bool {
    // θ̄, v̄, c, u; nothing is known in between.
    let size = 5;
    let time = steps.time() * period as f64;
    let (kick, back) = (kappa * time, -kappa * time * f64::from(chains) / mass);
    let kicks = change(size, &[(1, &[(1, 1.0), (2, kick), (0, -kick)]), (3, &[(3, 1.0), (2, back), (0, -back)])]);
    let flow = flows(size, CenterDynamics::SecondOrder { mass, friction }, 0.0, time, [2, 3], &[0]);
    steps.curvatures(kappa, 0.0).all(|lambda| {
        let moves = power(&steps.step(size, [0, 1, 4], lambda, 0.0, None), period);
        growth(moves.dot(&flow).dot(&kicks)) < 1.0 + ROUNDING
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const DYNAMICS: SghmcDynamics =
        SghmcDynamics { scheme: Scheme::Middle, step: 0.1, friction: 1.0, gradient_noise: 0.0, noise: true };
    const CENTER: CenterDynamics = CenterDynamics::SecondOrder { mass: 1.0, friction: 1.0 };

    #[test]
    fn growth_is_that_of_the_largest_eigenvalue() {
        let (sine, cosine) = 0.3_f64.sin_cos();
        let turn = change(6, &[(0, &[(0, 1.1 * cosine), (1, -1.1 * sine)]), (1, &[(0, 1.1 * sine), (1, 1.1 * cosine)])]);
        assert!((growth(turn.clone()) - 1.1).abs() < 1e-6);
        assert!((growth(change(6, &[(0, &[(0, 1.0), (5, 1e3)])])) - 1.0).abs() < 1e-4);
        let five = (0..5).fold(Array2::eye(6), |map, _| turn.dot(&map));
        assert!((&power(&turn, 5) - &five).iter().all(|entry: &f64| entry.abs() < 1e-12));
    }

    /// Known cases on both sides: found with another program, by eigenvalues and by simulation.
    #[test]
    fn resonances_are_found() {
        let chains = Steps::SecondOrder(DYNAMICS);
        let turns = |kappa, period| turns_are_stable(chains, kappa, 4, CENTER, period);
        assert!(turns(1.0, 1) && turns(1.0, 2));
        assert!(!turns(2.5, 16) && !turns(10.0, 8));
        let extrapolated = |kappa, period| extrapolation_is_stable(chains, kappa, 4, CENTER, period);
        assert!(extrapolated(0.01, 1) && extrapolated(1.0, 8) && !extrapolated(1.0, 16) && !extrapolated(5.0, 16));
        // T²κ(1 + K/M) = 4 is the bound without friction and data; with friction it is a little further.
        let kicks = |kappa: f64| kicks_are_stable(chains, kappa, 4, 1.0, 1.0, 1);
        assert!(kicks(1.0) && !kicks(200.0));
        assert!(!turns_are_stable(Steps::FirstOrder(1.0), 1.9, 6, CenterDynamics::FirstOrder, 1));
    }
}
