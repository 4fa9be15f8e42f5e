//! Stability of coupled chains: the spectral radius of the linear map that a period is on U = λθ²/2, for all λ at which the chains' own
//! steps are stable.
//!
//! With synchronous exchanges, springs are stable whenever the chains' steps are: chains and center move in turn, and each part leaves the
//! joint distribution invariant. Asynchronous exchanges, an extrapolated center, and kicks have resonances.

use super::center::CenterDynamics;
use crate::kernels::hamiltonian::{Scheme, SghmcDynamics};
use ndarray::{Array2, Axis};

/// The smallest curvature λ that is tested, in units of κ.
const MIN_CURVATURE: f64 = 1e-3;
/// The number of curvatures that are tested, in a geometric sequence up to the largest one that the steps allow.
const CURVATURES: u32 = 40;
/// At most this many chains are simulated; if there are more, each stands for several that exchange at the same time.
const MAX_CHAINS: u32 = 32;
/// Tolerance on a spectral radius of 1.
const TOLERANCE: f64 = 1e-6;
/// A spectral radius is estimated from the size of so high a power, 2 to this, that constant factors no longer count.
const SQUARINGS: u32 = 29;

/// The mean dynamics of a step of a chain.
#[derive(Clone, Copy)]
pub(in crate::methods) enum Steps {
    /// First order, over this time.
    FirstOrder(f64),
    /// Second order.
    SecondOrder(SghmcDynamics),
}

impl Steps {
    fn time(self) -> f64 {
        match self {
            Self::FirstOrder(time) => time,
            Self::SecondOrder(dynamics) => dynamics.step,
        }
    }

    /// The largest stiffness at which steps are stable.
    fn max_stiffness(self) -> f64 {
        match self {
            Self::FirstOrder(time) => 2.0 / time,
            Self::SecondOrder(dynamics) => dynamics.stability_limit() / dynamics.step.powi(2),
        }
    }

    /// The curvatures to test, in addition to the stiffness of a spring.
    fn curvatures(self, kappa: f64, spring: f64) -> impl Iterator<Item = f64> {
        let (least, most) = (MIN_CURVATURE * kappa, 0.999 * (self.max_stiffness() - spring));
        let ratio = (most / least).max(1.0).powf(1.0 / f64::from(CURVATURES));
        (0..=CURVATURES).map(move |place| least * ratio.powf(f64::from(place)))
    }

    /// A step under the force −λθ + κ(c − θ). With `drift`, the chain's copy of the center then moves with the velocity at this index.
    fn step(self, size: usize, [x, v, c]: [usize; 3], lambda: f64, kappa: f64, drift: Option<usize>) -> Array2<f64> {
        let force = |time: f64| [(x, -time * (lambda + kappa)), (c, time * kappa)];
        let along = |map: Array2<f64>| match drift {
            Some(u) => identity_except(size, &[(c, &[(c, 1.0), (u, self.time())])]).dot(&map),
            None => map,
        };
        match self {
            Self::FirstOrder(time) => {
                let [own, center] = force(time);
                along(identity_except(size, &[(x, &[(x, 1.0), own, center])]))
            }
            Self::SecondOrder(dynamics) => {
                let SghmcDynamics { step, scheme, .. } = dynamics;
                let [own, center] = force(step);
                let move_by = |time: f64| identity_except(size, &[(x, &[(x, 1.0), (v, time)])]);
                match scheme {
                    Scheme::Middle => {
                        let forget = identity_except(size, &[(v, &[(v, dynamics.velocity_decay())])]);
                        let kick = identity_except(size, &[(v, &[(v, 1.0), own, center])]);
                        along(move_by(0.5 * step).dot(&kick).dot(&move_by(0.5 * step)).dot(&forget))
                    }
                    Scheme::SemiImplicit => {
                        along(move_by(step).dot(&identity_except(size, &[(v, &[(v, dynamics.velocity_decay()), own, center])])))
                    }
                }
            }
        }
    }
}

/// The identity with some rows replaced by linear combinations.
fn identity_except(size: usize, rows: &[(usize, &[(usize, f64)])]) -> Array2<f64> {
    let mut map = Array2::eye(size);
    for (to, from) in rows {
        map.row_mut(*to).fill(0.0);
        from.iter().for_each(|&(source, times)| map[[*to, source]] += times);
    }
    map
}

/// A power of a map, by repeated squaring.
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

/// The spectral radius of a map, by repeated squaring.
fn spectral_radius(mut map: Array2<f64>) -> f64 {
    let (mut log, mut times) = (0.0, 1.0);
    for _ in 0..=SQUARINGS {
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

/// The map that moves a center (c, u) along its flow about the mean of the values at these indices.
fn center_flow(
    size: usize,
    center: CenterDynamics,
    stiffness: f64,
    time: f64,
    [c, u]: [usize; 2],
    chains: &[usize],
) -> Array2<f64> {
    let [[a, b], [d, e]] = center.flow(stiffness, time, false).drift;
    let share = if stiffness > 0.0 { 1.0 / chains.len() as f64 } else { 0.0 };
    let row = |own: f64, velocity: f64, back: f64| -> Vec<(usize, f64)> {
        [(c, own), (u, velocity)].into_iter().chain(chains.iter().map(|&chain| (chain, share * back))).collect()
    };
    identity_except(size, &[(c, &row(a, b, 1.0 - a)), (u, &row(d, e, -d))])
}

/// Whether asynchronous exchanges are stable: chains that exchange with the center one after the other.
pub(in crate::methods) fn asynchronous_is_stable(
    steps: Steps,
    kappa: f64,
    chains: u32,
    center: CenterDynamics,
    period: u64,
) -> bool {
    steps
        .curvatures(kappa, kappa)
        .all(|lambda| asynchronous_growth(steps, kappa, lambda, chains, center, period) < 1.0 + TOLERANCE)
}

/// The spectral radius of a round in which each chain exchanges once.
fn asynchronous_growth(steps: Steps, kappa: f64, lambda: f64, chains: u32, center: CenterDynamics, period: u64) -> f64 {
    let k = chains.min(MAX_CHAINS) as usize;
    // θ_i, v_i, the center's copy of each chain; c, u. A chain moves right after it has received c, so that it needs no copy.
    let size = 3 * k + 2;
    let (copies, center_at) = (2 * k, [3 * k, 3 * k + 1]);
    let known: Vec<usize> = (copies..3 * k).collect();
    let time = steps.time() * period as f64 / k as f64;
    let flow = center_flow(size, center, kappa * f64::from(chains), time, center_at, &known);
    let sends = identity_except(size, &[(copies, &[(0, 1.0)])]);
    let moves = power(&steps.step(3, [0, 1, 2], lambda, kappa, None), period);
    let row = |of: usize| [0, k, center_at[0]].into_iter().zip(moves.row(of).to_vec()).collect::<Vec<_>>();
    let moves = identity_except(size, &[(0, &row(0)), (k, &row(1))]);
    // With the chains renumbered after each exchange, all exchanges of a round are the same map.
    let renumbered = |of: usize| if of < 3 * k { of / k * k + (of + 1) % k } else { of };
    let exchange = moves.dot(&flow).dot(&sends).select(Axis(0), &(0..size).map(renumbered).collect::<Vec<_>>());
    spectral_radius(exchange).powi(k as i32)
}

/// Whether synchronous chains are stable that extrapolate the center with its velocity.
pub(in crate::methods) fn extrapolation_is_stable(
    steps: Steps,
    kappa: f64,
    chains: u32,
    center: CenterDynamics,
    period: u64,
) -> bool {
    // θ̄, v̄, c, u, and the chains' copies of c and u.
    let size = 6;
    let receives = identity_except(size, &[(4, &[(2, 1.0)]), (5, &[(3, 1.0)])]);
    let flow = center_flow(size, center, kappa * f64::from(chains), steps.time() * period as f64, [2, 3], &[0]);
    steps.curvatures(kappa, kappa).all(|lambda| {
        let moves = power(&steps.step(size, [0, 1, 4], lambda, kappa, Some(5)), period);
        spectral_radius(moves.dot(&flow).dot(&receives)) < 1.0 + TOLERANCE
    })
}

/// Whether kicks between the mean of the chains and the center before every period are stable.
pub(in crate::methods) fn kicks_are_stable(steps: Steps, kappa: f64, chains: u32, mass: f64, friction: f64, period: u64) -> bool {
    // θ̄, v̄, c, u, and a center of the chains that stays 0.
    let size = 5;
    let time = steps.time() * period as f64;
    let (kick, back) = (kappa * time, -kappa * time * f64::from(chains) / mass);
    let kicks = identity_except(size, &[(1, &[(1, 1.0), (2, kick), (0, -kick)]), (3, &[(3, 1.0), (2, back), (0, -back)])]);
    let flow = center_flow(size, CenterDynamics::SecondOrder { mass, friction }, 0.0, time, [2, 3], &[0]);
    steps.curvatures(kappa, 0.0).all(|lambda| {
        let moves = power(&steps.step(size, [0, 1, 4], lambda, 0.0, None), period);
        spectral_radius(moves.dot(&flow).dot(&kicks)) < 1.0 + TOLERANCE
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const DYNAMICS: SghmcDynamics =
        SghmcDynamics { scheme: Scheme::Middle, step: 0.1, friction: 1.0, gradient_noise: 0.0, noise: true };
    const CENTER: CenterDynamics = CenterDynamics::SecondOrder { mass: 1.0, friction: 1.0 };

    #[test]
    fn the_spectral_radius_is_that_of_the_largest_eigenvalue() {
        let (sine, cosine) = 0.3_f64.sin_cos();
        let turn = identity_except(6, &[(0, &[(0, 1.1 * cosine), (1, -1.1 * sine)]), (1, &[(0, 1.1 * sine), (1, 1.1 * cosine)])]);
        assert!((spectral_radius(turn.clone()) - 1.1).abs() < 1e-6);
        assert!((spectral_radius(identity_except(6, &[(0, &[(0, 1.0), (5, 1e3)])])) - 1.0).abs() < 1e-4);
        let five = (0..5).fold(Array2::eye(6), |map, _| turn.dot(&map));
        assert!((&power(&turn, 5) - &five).iter().all(|entry: &f64| entry.abs() < 1e-12));
    }

    /// Cases on both sides of the bound, found with another program by eigenvalues and by simulation.
    #[test]
    fn resonances_are_found() {
        let chains = Steps::SecondOrder(DYNAMICS);
        let asynchronous = |kappa, period| asynchronous_is_stable(chains, kappa, 4, CENTER, period);
        assert!(asynchronous(1.0, 1) && asynchronous(1.0, 2));
        assert!(!asynchronous(2.5, 16) && !asynchronous(10.0, 8));
        let extrapolated = |kappa, period| extrapolation_is_stable(chains, kappa, 4, CENTER, period);
        assert!(extrapolated(0.01, 1) && extrapolated(1.0, 8) && !extrapolated(1.0, 16) && !extrapolated(5.0, 16));
        // T²κ(1 + K/M) = 4 is the bound without friction and data; friction moves it a little.
        let kicks = |kappa: f64| kicks_are_stable(chains, kappa, 4, 1.0, 1.0, 1);
        assert!(kicks(1.0) && !kicks(200.0));
        assert!(!asynchronous_is_stable(Steps::FirstOrder(1.0), 1.9, 6, CenterDynamics::FirstOrder, 1));
    }

    /// The same for many chains, found by eigenvalues of the whole map.
    #[test]
    fn resonances_of_many_chains_are_found() {
        let is_stable =
            |kappa, period, chains| asynchronous_is_stable(Steps::SecondOrder(DYNAMICS), kappa, chains, CENTER, period);
        assert!(!is_stable(2.0, 16, 20) && is_stable(1.5, 8, 20) && is_stable(2.5, 8, 32));
    }

    /// A round of exchanges as one map of all values, each chain's copy of the center among them.
    fn whole_round(steps: Steps, kappa: f64, lambda: f64, k: usize, center: CenterDynamics, period: u64) -> Array2<f64> {
        let size = 4 * k + 2;
        let known: Vec<usize> = (3 * k..4 * k).collect();
        let time = steps.time() * period as f64 / k as f64;
        let flow = center_flow(size, center, kappa * k as f64, time, [4 * k, 4 * k + 1], &known);
        (0..k).fold(Array2::eye(size), |map, i| {
            let sends = identity_except(size, &[(3 * k + i, &[(i, 1.0)])]);
            let receives = identity_except(size, &[(2 * k + i, &[(4 * k, 1.0)])]);
            let moves = power(&steps.step(size, [i, k + i, 2 * k + i], lambda, kappa, None), period);
            moves.dot(&receives).dot(&flow).dot(&sends).dot(&map)
        })
    }

    #[test]
    fn a_round_is_a_power_of_an_exchange() {
        let second = Steps::SecondOrder(DYNAMICS);
        let cases = [
            (second, CENTER, 2.0, 0.05, 16, 20),
            (second, CENTER, 1.5, 0.01, 8, 20),
            (second, CENTER, 2.5, 30.0, 8, 32),
            (second, CENTER, 1.0, 1.0, 3, 1),
            (second, CENTER, 0.3, 2.0, 40, 16),
            (Steps::FirstOrder(1.0), CenterDynamics::FirstOrder, 1.9, 0.05, 1, 16),
        ];
        for (steps, center, kappa, lambda, period, chains) in cases {
            let whole = spectral_radius(whole_round(steps, kappa, lambda, chains as usize, center, period));
            let found = asynchronous_growth(steps, kappa, lambda, chains, center, period);
            assert!((found - whole).abs() < 1e-6, "{chains} chains, κ = {kappa}: {found}, not {whole}");
        }
    }

    #[test]
    fn few_chains_represent_many_near_the_bound() {
        let second = Steps::SecondOrder(DYNAMICS);
        for (kappa, lambda, period) in [(2.0, 0.05, 16), (1.5, 0.01, 8)] {
            let whole = spectral_radius(whole_round(second, kappa, lambda, 48, CENTER, period));
            let found = asynchronous_growth(second, kappa, lambda, 48, CENTER, period);
            assert!((found - whole).abs() < 0.01 * (1.0 - whole).abs().max(0.01), "κ = {kappa}: {found}, not {whole}");
        }
    }
}
