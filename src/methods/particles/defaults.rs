//! Numbers of particles and bandwidths where a run file gives none.

use crate::kernels::rbf::Bandwidth;

/// Particles in the coordinates of the model.
const PARTICLES: usize = 20;
/// Particles in whitened coordinates: enough for a verdict on their bias, which counts them as independent draws.
const WHITENED_PARTICLES: usize = 500;
/// Fewer for each parameter leave standard deviations of skewed posteriors wrong by 10 % and more.
const PARTICLES_PER_PARAMETER: usize = 3;
/// The cost of a step grows with the square of their number.
const MAX_PARTICLES: usize = 1000;
/// The bandwidth in whitened coordinates, for each parameter. Squared distances between draws of N(0, I) are about 2 d. So wide a kernel is
/// nearly linear among the particles, and its fixed points have nearly the mean and the covariance of the target (Liu & Wang 2018, "SVGD as
/// moment matching"), where a kernel of the median distance leaves 50 particles in 15 dimensions with half of its standard deviations. Unlike a
/// linear kernel it leaves no particle far from the others.
const WHITENED_BANDWIDTH: f64 = 20.0;

/// The number of particles.
pub(super) fn particles(given: Option<usize>, is_whitened: bool, parameters: usize) -> usize {
    given.unwrap_or(if is_whitened {
        (PARTICLES_PER_PARAMETER * parameters).clamp(WHITENED_PARTICLES, MAX_PARTICLES)
    } else {
        PARTICLES
    })
}

/// The bandwidth of the kernel between particles.
pub(super) fn bandwidth(given: Option<Bandwidth>, is_whitened: bool, parameters: usize) -> Bandwidth {
    let found = if is_whitened { Bandwidth::Fixed(WHITENED_BANDWIDTH * parameters.max(1) as f64) } else { Bandwidth::default() };
    given.unwrap_or(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_follow_the_coordinates_and_given_values_win() {
        assert_eq!([particles(None, false, 50), particles(None, true, 10), particles(None, true, 200)], [20, 500, 600]);
        assert_eq!([particles(Some(7), true, 50), particles(None, true, 1000)], [7, 1000]);
        assert_eq!(bandwidth(None, true, 10), Bandwidth::Fixed(200.0));
        assert_eq!(bandwidth(None, false, 10), Bandwidth::Repository);
        assert_eq!(bandwidth(Some(Bandwidth::Paper), true, 10), Bandwidth::Paper);
    }
}
