//! Ordinal logistic regression: classes with an order, such as ratings.
//!
//! p(y ≤ k) = σ(c_k − η) with cutpoints c_0 < c_1 < ... between the classes. The parameters are c_0 and the logarithms of the gaps between
//! neighbors. A priori, the probabilities of the classes at η = 0 are uniform on the simplex. The cutpoints take the place of an intercept.

use super::regression::family::Family;
use super::regression::logistic_function::{log_sigmoid, sigmoid};
use super::regression::model::Regression;
use super::regression::prior::Prior;
use super::regression::settings::define_settings;
use super::{DataSchema, ModelError, Output, Part};
use crate::layout::index;
use crate::random::Stream;
use crate::settings::KeyError;
use rand::RngExt;

define_settings! {
    /// The settings of the model `ordinal`.
    OrdinalSettings = "ordinal", prior: Prior::Normal(1.0), intercept: |_settings| None,
}

impl OrdinalSettings {
    /// The model for these data.
    ///
    /// # Errors
    /// If a setting is out of its range, there are no features, or the targets are not at least three classes.
    pub fn build(&self, data: &DataSchema) -> Result<Regression<Ordinal>, KeyError> {
        let classes = match data.output {
            Output::Classes(classes @ 3..) => classes,
            Output::Classes(classes) => {
                return Err(ModelError::Classes { classes, hint: ": for two, the model is logistic" }.into());
            }
            Output::Number | Output::Count | Output::Nothing => {
                return Err(
                    ModelError::Target { needed: "classes as targets, in their order: it is an ordinal regression" }.into()
                );
            }
        };
        self.shared()?.regression(data, Ordinal { classes })
    }
}

/// One of several classes with an order.
#[derive(Clone, Debug)]
pub struct Ordinal {
    classes: usize,
}

/// σ'(z).
fn slope(z: f64) -> f64 {
    sigmoid(z) * sigmoid(-z)
}

/// The cutpoints and the gaps between them.
pub struct Cutpoints {
    values: Vec<f64>,
    gaps: Vec<f64>,
}

impl Cutpoints {
    fn new(psi: &[f64]) -> Self {
        let gaps: Vec<f64> = psi.iter().skip(1).map(|log| log.clamp(-30.0, 30.0).exp()).collect();
        let mut last = psi.first().copied().unwrap_or(0.0);
        let mut values = vec![last];
        for gap in &gaps {
            last += gap;
            values.push(last);
        }
        Self { values, gaps }
    }

    /// The cutpoints below and above a class; none at either end.
    fn around(&self, class: usize) -> (Option<f64>, Option<f64>) {
        (class.checked_sub(1).map(|below| self.values[below]), self.values.get(class).copied())
    }

    /// log(1 − e^−gap) of the gap above a cutpoint.
    fn log_share(&self, below: usize) -> f64 {
        (-(-self.gaps[below]).exp_m1()).ln()
    }

    /// The logarithm of the probability of a class, without cancellation and underflow.
    fn log_probability(&self, class: usize, eta: f64) -> f64 {
        match self.around(class) {
            (None, Some(above)) => log_sigmoid(above - eta),
            (Some(below), None) => log_sigmoid(eta - below),
            // σ(a) − σ(b) = σ(a) σ(−b) (1 − e^(b − a))
            (Some(below), Some(above)) => log_sigmoid(above - eta) + log_sigmoid(eta - below) + self.log_share(class - 1),
            (None, None) => 0.0,
        }
    }

    /// The probability of a class.
    fn probability(&self, class: usize, eta: f64) -> f64 {
        self.log_probability(class, eta).exp()
    }

    /// Turns derivatives by the cutpoints into those by ψ, in place.
    fn to_psi(&self, by_cutpoints: &mut [f64]) {
        let mut sum = 0.0;
        for k in (0..by_cutpoints.len()).rev() {
            sum += by_cutpoints[k];
            by_cutpoints[k] = if k == 0 { sum } else { sum * self.gaps[k - 1] };
        }
    }

    /// The derivatives of a class's probability by η and, in `by_psi`, by ψ.
    fn derivatives(&self, class: usize, eta: f64, by_psi: &mut [f64]) -> f64 {
        by_psi.fill(0.0);
        let (below, above) = self.around(class);
        let mut by_eta = 0.0;
        if let Some(above) = above {
            by_psi[class] = slope(above - eta);
            by_eta -= by_psi[class];
        }
        if let Some(below) = below {
            by_psi[class - 1] = -slope(below - eta);
            by_eta -= by_psi[class - 1];
        }
        self.to_psi(by_psi);
        by_eta
    }
}

impl Family for Ordinal {
    type Prepared = Cutpoints;

    fn output(&self) -> Output {
        Output::Classes(self.classes)
    }

    fn parts(&self) -> Vec<Part> {
        vec![Part::new("first_cutpoint", &[]), Part::new("log_gaps", &[self.classes - 2])]
    }

    /// Draws cutpoints near those of equally probable classes.
    fn draw_initial(&self, stream: &mut Stream, psi: &mut [f64]) {
        stream.normals(psi);
        let quantile = |class: usize| {
            let share = class as f64 / self.classes as f64;
            (share / (1.0 - share)).ln()
        };
        for (k, value) in (1..).zip(psi) {
            let center = if k == 1 { quantile(1) } else { (quantile(k) - quantile(k - 1)).ln() };
            *value = center + 0.3 * *value;
        }
    }

    /// log Π σ'(c_k), and the logarithm of the Jacobian of the gaps.
    fn log_prior(&self, psi: &[f64]) -> f64 {
        let density: f64 =
            Cutpoints::new(psi).values.iter().map(|&cutpoint| log_sigmoid(cutpoint) + log_sigmoid(-cutpoint)).sum();
        density + psi.iter().skip(1).sum::<f64>()
    }

    fn prior_score(&self, psi: &[f64], score: &mut [f64]) {
        let cutpoints = Cutpoints::new(psi);
        score.iter_mut().zip(&cutpoints.values).for_each(|(score, &cutpoint)| *score = sigmoid(-cutpoint) - sigmoid(cutpoint));
        cutpoints.to_psi(score);
        score.iter_mut().skip(1).for_each(|score| *score += 1.0);
    }

    fn prepare(&self, psi: &[f64]) -> Cutpoints {
        Cutpoints::new(psi)
    }

    fn loss(&self, cutpoints: &Cutpoints, eta: f64, y: f64) -> f64 {
        -cutpoints.log_probability(index(y, self.classes), eta)
    }

    fn score(&self, cutpoints: &Cutpoints, eta: f64, y: f64, psi: &mut [f64]) -> f64 {
        let class = index(y, self.classes);
        let (below, above) = cutpoints.around(class);
        // ∂ log(σ(a) − σ(b)) = (σ'(a) da − σ'(b) db)/(σ(a) − σ(b)), where σ(a) − σ(b) = σ(a) σ(−b) (1 − e^(b − a)): σ(a) cancels
        // in the first term, σ(−b) in the second.
        let ratio = |own: f64, other: Option<f64>, sign: f64| match other {
            None => sigmoid(-sign * own),
            Some(other) => (log_sigmoid(-sign * own) - log_sigmoid(-sign * other) - cutpoints.log_share(class - 1)).exp(),
        };
        let by_above = above.map_or(0.0, |above| ratio(above - eta, below.map(|below| below - eta), 1.0));
        let by_below = below.map_or(0.0, |below| ratio(below - eta, above.map(|above| above - eta), -1.0));
        let mut by_cutpoints = vec![0.0; psi.len()];
        if above.is_some() {
            by_cutpoints[class] = by_above;
        }
        if below.is_some() {
            by_cutpoints[class - 1] = -by_below;
        }
        cutpoints.to_psi(&mut by_cutpoints);
        psi.iter_mut().zip(by_cutpoints).for_each(|(psi, value)| *psi += value);
        by_below - by_above
    }

    fn add_information(&self, cutpoints: &Cutpoints, eta: f64, _: f64, weight: f64, information: &mut [f64]) {
        let own = self.classes - 1;
        let mut derivatives = vec![0.0; 1 + own];
        for class in 0..self.classes {
            derivatives[0] = cutpoints.derivatives(class, eta, &mut derivatives[1..]);
            let factor = weight / cutpoints.probability(class, eta).max(f64::MIN_POSITIVE);
            for (row, one) in information.chunks_exact_mut(1 + own).zip(&derivatives) {
                row.iter_mut().zip(&derivatives).for_each(|(value, other)| *value += factor * one * other);
            }
        }
    }

    fn draw(&self, cutpoints: &Cutpoints, eta: f64, stream: &mut Stream) -> f64 {
        let mut left = stream.random::<f64>();
        let class = (0..self.classes - 1).find(|&class| {
            left -= cutpoints.probability(class, eta);
            left < 0.0
        });
        class.unwrap_or(self.classes - 1) as f64
    }

    fn predict(&self, cutpoints: &Cutpoints, eta: f64, y: f64, weight: f64, mean: &mut [f64]) -> f64 {
        mean.iter_mut().enumerate().for_each(|(class, mean)| *mean += weight * cutpoints.probability(class, eta));
        cutpoints.probability(index(y, self.classes), eta)
    }
}
