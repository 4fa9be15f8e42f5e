//! Which steps, periods and springs are stable, by the linear dynamics of the chains' mean and the center on U = λθ²/2.
//!
//! Springs alone are stable wherever the chain's own steps are, ε²κ below [`Hamiltonian::stable_below`]: chains and center then move
//! by turns, each with its own law kept. A center that chains extrapolate, and kicks, are not of that kind.

use super::center::CenterDynamics;
use crate::kernels::hamiltonian::Hamiltonian;

/// θ̄, v̄, c, u, and what chains know of c and u.
const SIZE: usize = 6;
/// Curvatures in units of κ at which a map must not grow: those of directions of which the data know little up to those of which they
/// know more than the springs.
const CURVATURES: [f64; 5] = [1e-3, 1e-2, 0.1, 1.0, 10.0];

type Map = [[f64; SIZE]; SIZE];

const IDENTITY: Map = {
    let mut map = [[0.0; SIZE]; SIZE];
    let mut i = 0;
    while i < SIZE {
        map[i][i] = 1.0;
        i += 1;
    }
    map
};

fn product(a: &Map, b: &Map) -> Map {
    std::array::from_fn(|i| std::array::from_fn(|j| (0..SIZE).map(|k| a[i][k] * b[k][j]).sum()))
}

/// The factor by which a map grows in the long run.
fn growth(map: &Map) -> f64 {
    let (mut power, mut log, mut times) = (*map, 0.0, 1.0);
    for _ in 0..24 {
        let largest = power.as_flattened().iter().fold(0.0_f64, |most, entry| most.max(entry.abs()));
        if !largest.is_finite() {
            return f64::INFINITY;
        }
        if largest == 0.0 {
            return 0.0;
        }
        power.as_flattened_mut().iter_mut().for_each(|entry| *entry /= largest);
        log += largest.ln() / times;
        power = product(&power, &power);
        times *= 2.0;
    }
    log.exp()
}

/// Whether chains that extrapolate the center over a period of so many steps are stable.
pub(super) fn extrapolation_is_stable(
    dynamics: Hamiltonian,
    kappa: f64,
    chains: u32,
    center: CenterDynamics,
    period: u64,
) -> bool {
    CURVATURES
        .iter()
        .map(|share| share * kappa)
        .filter(|lambda| dynamics.step.powi(2) * (lambda + kappa) < dynamics.stable_below())
        .all(|lambda| {
            let Hamiltonian { step, .. } = dynamics;
            let change = |rows: &[(usize, usize, f64)]| {
                let mut map = IDENTITY;
                rows.iter().for_each(|&(i, j, entry)| map[i][j] = entry);
                map
            };
            let [[a, b], [c, d]] = center.flow(kappa * f64::from(chains), step * period as f64, false).drift;
            // Chains learn, then the center moves about their mean.
            let learns = change(&[(4, 4, 0.0), (4, 2, 1.0), (5, 5, 0.0), (5, 3, 1.0)]);
            let flows = change(&[(2, 2, a), (2, 3, b), (2, 0, 1.0 - a), (3, 2, c), (3, 3, d), (3, 0, -c)]);
            let mut map = product(&flows, &learns);
            let opens = product(&change(&[(0, 1, 0.5 * step)]), &change(&[(1, 1, dynamics.kept())]));
            let kicks = change(&[(1, 0, -step * (lambda + kappa)), (1, 4, step * kappa)]);
            let closes = product(&change(&[(0, 1, 0.5 * step), (4, 5, step)]), &kicks);
            let once = product(&closes, &opens);
            for _ in 0..period {
                map = product(&once, &map);
            }
            growth(&map) < 1.0 + 1e-6
        })
}

/// Whether kicks towards a center of this mass are stable that come after every period of this time: those of a spring between the mean
/// of the chains and the center, of which neither knows in between.
pub(super) fn kicks_are_stable(kappa: f64, chains: u32, mass: f64, time: f64) -> bool {
    time * time * kappa * (1.0 + f64::from(chains) / mass) < 4.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::hamiltonian::Scheme;

    const DYNAMICS: Hamiltonian =
        Hamiltonian { scheme: Scheme::Middle, step: 0.1, friction: 1.0, gradient_noise: 0.0, noise: true };
    const CENTER: CenterDynamics = CenterDynamics::SecondOrder { mass: 1.0, friction: 1.0 };

    #[test]
    fn growth_is_that_of_the_largest_eigenvalue() {
        let mut turn = IDENTITY;
        let (sine, cosine) = 0.3_f64.sin_cos();
        (turn[0][0], turn[0][1], turn[1][0], turn[1][1]) = (1.1 * cosine, -1.1 * sine, 1.1 * sine, 1.1 * cosine);
        assert!((growth(&turn) - 1.1).abs() < 1e-6);
        let mut shear = IDENTITY;
        shear[0][5] = 1e3;
        assert!((growth(&shear) - 1.0).abs() < 1e-4);
    }

    #[test]
    fn extrapolation_is_stable_over_short_periods_alone() {
        let stable = |kappa, period| extrapolation_is_stable(DYNAMICS, kappa, 4, CENTER, period);
        assert!(stable(0.1, 1) && stable(0.1, 4));
        assert!(!stable(1.0, 64) && !stable(10.0, 16));
        assert!(kicks_are_stable(1.0, 4, 1.0, 0.8) && !kicks_are_stable(1.0, 4, 1.0, 0.9));
    }
}
