//! A map of topics: places in the plane whose distances are near those of the topics.

use ndarray::{Array2, Axis};
use ndarray_linalg::{Eigh, UPLO};

/// The first two coordinates of each topic by classical multidimensional scaling of Hellinger distances, from the similarities
/// Σ_w √(p_w q_w) of all pairs.
///
/// The Hellinger distance of two topics is that of the vectors √φ_k, up to a factor. Classical scaling of distances between vectors gives
/// their principal components.
///
/// # Errors
/// When the eigenvalues cannot be computed.
pub(super) fn places(products: &Array2<f64>) -> Result<Vec<[f64; 2]>, String> {
    let topics = products.nrows();
    let row_means = products.sum_axis(Axis(1)) / topics as f64;
    let mean = row_means.sum() / topics as f64;
    let centered = Array2::from_shape_fn((topics, topics), |(i, j)| products[(i, j)] - row_means[i] - row_means[j] + mean);
    let (values, vectors) = centered.eigh(UPLO::Lower).map_err(|cause| format!("the map of topics: {cause}"))?;
    let mut places = vec![[0.0; 2]; topics];
    // Eigenvalues ascend.
    for (coordinate, at) in (0..topics).rev().take(2).enumerate() {
        let vector = vectors.column(at);
        let largest = vector.iter().copied().fold(0.0, |a: f64, b| if b.abs() > a.abs() { b } else { a });
        // An eigenvector has no sign of its own.
        let scale = values[at].max(0.0).sqrt().copysign(largest);
        places.iter_mut().zip(vector).for_each(|(place, value)| place[coordinate] = scale * value);
    }
    Ok(places)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use ndarray::{Array2, array};

    fn similarities(phi: &Array2<f32>) -> Array2<f64> {
        let roots = phi.mapv(|phi| f64::from(phi).sqrt());
        roots.t().dot(&roots)
    }

    #[test]
    fn distances_on_the_map_are_those_of_three_topics() {
        // Three topics span a plane, so that the map is exact.
        let phi = array![[0.7_f32, 0.1, 0.2], [0.2, 0.1, 0.2], [0.1, 0.8, 0.6]];
        let places = places(&similarities(&phi)).unwrap();
        for (i, j) in [(0, 1), (0, 2), (1, 2)] {
            let hellinger: f32 = (0..3).map(|word| (phi[(word, i)].sqrt() - phi[(word, j)].sqrt()).powi(2)).sum();
            let on_map = (places[i][0] - places[j][0]).powi(2) + (places[i][1] - places[j][1]).powi(2);
            assert!((on_map - f64::from(hellinger)).abs() < 1e-6, "{i} {j} {on_map} {hellinger}");
        }
    }

    #[test]
    fn one_topic_and_equal_topics_have_places() {
        assert_eq!(places(&similarities(&array![[0.5_f32], [0.5]])).unwrap(), [[0.0, 0.0]]);
        let same = places(&similarities(&Array2::from_elem((4, 3), 0.25))).unwrap();
        assert!(same.iter().flatten().all(|place| place.abs() < 1e-4), "{same:?}");
    }
}
