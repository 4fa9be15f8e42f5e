//! Exact stationary distributions of elastically coupled chains, and of a chain with delayed gradients, on a one-dimensional Gaussian target:
//! solutions of the Lyapunov equation of their linear maps.
#![allow(clippy::unwrap_used, reason = "not shipped: a failure here stops the test")]

use ndarray::Array2;

/// K chains with U = λθ²/2, coupled by κ to a center.
#[derive(Clone, Copy)]
pub struct Joint {
    pub chains: usize,
    pub lambda: f64,
    pub kappa: f64,
    /// ε.
    pub step: f64,
    /// V.
    pub friction: f64,
    /// M_c.
    pub mass: f64,
    /// C.
    pub center_friction: f64,
}

/// The order of steps and exchanges of chains and center.
#[derive(Clone, Copy, PartialEq)]
pub enum Scheme {
    /// The scheme of the paper: chains and center step at the same time, each with the positions of the last exchange; positions first.
    Stale,
    /// The same for first-order dynamics.
    StaleFirstOrder,
    /// The center flows with fixed chains, then the chains step with a fixed center.
    Alternate,
    /// The same for first-order dynamics.
    AlternateFirstOrder,
    /// All chains get a kick towards the center, then step independently.
    Mean,
    /// Chains take turns: a chain sends its position, the center flows for its part of the time, and the chain steps until its next turn.
    Turns,
    /// Turns in this order, in which some chains have more turns than others.
    Order(&'static [usize]),
    /// All chains send their positions and receive that of the center. It flows, while they step with the received position.
    Behind,
    /// The same, but they receive its velocity too, and extrapolate its position.
    Ahead,
}

pub struct Moments {
    /// The variance of the first chain, and of each chain.
    pub variance: f64,
    pub of_each: Vec<f64>,
    /// The covariance of the first two chains, if both have the same number of turns.
    pub covariance: f64,
}

/// x ← A x + B ξ with standard normal ξ that are new in every step. A sequence of such maps is such a map.
struct Map {
    a: Array2<f64>,
    b: Array2<f64>,
    /// The number of ξ so far.
    sources: usize,
}

/// The position of a chain at some time within the map.
struct Look {
    chain: usize,
    row: Array2<f64>,
    noise: Array2<f64>,
}

impl Map {
    fn identity(n: usize, sources: usize) -> Self {
        Self { a: Array2::eye(n), b: Array2::zeros((n, sources)), sources: 0 }
    }

    /// Appends a step: row `to` becomes a linear combination of rows, with noise of these variances and covariances.
    fn then(&mut self, rows: &[(usize, Vec<(usize, f64)>)], noise: &[(usize, usize, f64)]) {
        for matrix in [&mut self.a, &mut self.b] {
            let before = matrix.clone();
            for (to, from) in rows {
                let mut row = matrix.row_mut(*to);
                row.fill(0.0);
                for (source, times) in from {
                    row.scaled_add(*times, &before.row(*source));
                }
            }
        }
        match *noise {
            [] => {}
            [(i, _, variance)] => {
                self.b[[i, self.sources]] = variance.sqrt();
                self.sources += 1;
            }
            [(i, _, one), (_, j, both), (_, _, other)] => {
                let shared = both / one.sqrt();
                self.b[[i, self.sources]] = one.sqrt();
                self.b[[j, self.sources]] = shared;
                self.b[[j, self.sources + 1]] = (other - shared * shared).max(0.0).sqrt();
                self.sources += 2;
            }
            _ => unreachable!("noise of one row, or of two"),
        }
    }

    fn look(&self, chain: usize) -> Look {
        self.look_at(chain, chain)
    }

    /// Records the present position of a chain.
    fn look_at(&self, row: usize, chain: usize) -> Look {
        let row = |matrix: &Array2<f64>| matrix.slice(ndarray::s![row..=row, ..]).to_owned();
        Look { chain, row: row(&self.a), noise: row(&self.b) }
    }

    /// Σ = A Σ Aᵀ + B Bᵀ, by doubling.
    fn stationary(&self) -> Array2<f64> {
        let (mut a, mut sigma) = (self.a.clone(), self.b.dot(&self.b.t()));
        for _ in 0..40 {
            sigma = &sigma + &a.dot(&sigma).dot(&a.t());
            a = a.dot(&a);
            if a.iter().all(|entry| entry.abs() < 1e-300) {
                break;
            }
        }
        sigma
    }
}

/// The stationary moments of recorded positions, averaged over the steps of a period.
pub fn stationary(joint: Joint, scheme: Scheme, s: u64) -> Moments {
    let (map, looks) = period(joint, scheme, s);
    let sigma = map.stationary();
    assert!(sigma.iter().all(|entry| entry.is_finite() && entry.abs() < 1e6), "no stationary law");
    // Positions of all chains at their looks in the same step belong together.
    let at = |one: &Look, other: &Look| {
        let both = one.row.dot(&sigma).dot(&other.row.t())[[0, 0]];
        both + one.noise.dot(&other.noise.t())[[0, 0]]
    };
    let of = |chain: usize| looks.iter().filter(move |look| look.chain == chain);
    let mean = |one: usize, other: usize| of(one).zip(of(other)).map(|(a, b)| at(a, b)).sum::<f64>() / of(one).count() as f64;
    let of_each = (0..joint.chains).map(|chain| mean(chain, chain)).collect();
    Moments { variance: mean(0, 0), of_each, covariance: mean(0, 1) }
}

/// The stationary variance on U = λθ²/2 of a chain whose gradients are `delay` steps old, with the semi-implicit or the middle scheme.
pub fn delayed(lambda: f64, step: f64, friction: f64, delay: usize, middle: bool) -> f64 {
    // θ of this step and of those before it, v.
    let v = delay + 1;
    let mut map = Map::identity(delay + 2, 1);
    let mut history: Vec<_> = (1..=delay).map(|age| (age, vec![(age - 1, 1.0)])).collect();
    let kick = |kept: f64| (v, vec![(v, kept), (delay, -step * lambda)]);
    let drift = |time: f64| (0, vec![(0, 1.0), (v, time)]);
    if middle {
        let left = (-step * friction).exp();
        history.extend([kick(1.0)]);
        map.then(&history, &[]);
        map.then(&[drift(0.5 * step)], &[]);
        map.then(&[(v, vec![(v, left)])], &[(v, v, 1.0 - left * left)]);
        map.then(&[drift(0.5 * step)], &[]);
    } else {
        history.extend([kick(1.0 - step * friction)]);
        map.then(&history, &[(v, v, 2.0 * step * friction)]);
        map.then(&[drift(step)], &[]);
    }
    map.stationary()[[0, 0]]
}

/// The positions of all chains in every step, and of the center in every period, without noise. Chains start at rest in these positions, and
/// the center at their mean.
pub fn noiseless(joint: Joint, scheme: Scheme, s: u64, start: &[f64], periods: u64) -> Vec<Vec<f64>> {
    let (map, looks) = period(joint, scheme, s);
    let mut state = Array2::zeros((map.a.nrows(), 1));
    start.iter().enumerate().for_each(|(chain, &theta)| state[[chain, 0]] = theta);
    state[[2 * joint.chains, 0]] = start.iter().sum::<f64>() / start.len() as f64;
    let mut paths = vec![Vec::new(); joint.chains + 1];
    for _ in 0..periods {
        looks.iter().for_each(|look| paths[look.chain].push(look.row.dot(&state)[[0, 0]]));
        state = map.a.dot(&state);
    }
    paths
}

/// The map of a period, and the positions of chains within it.
fn period(joint: Joint, scheme: Scheme, s: u64) -> (Map, Vec<Look>) {
    let Joint { chains: k, lambda, kappa, step, friction, mass, center_friction } = joint;
    // θ_i, v_i, c, u, the c that each chain knows, the θ_i that the center knows, the u that each chain knows.
    let (v, c, u, known, told, velocity) = (k, 2 * k, 2 * k + 1, 2 * k + 2, 3 * k + 2, 4 * k + 2);
    let n = if scheme == Scheme::Ahead { 5 } else { 4 } * k + 2;
    let first_order = matches!(scheme, Scheme::StaleFirstOrder | Scheme::AlternateFirstOrder);
    let all = 0..k;

    // A step of a chain with what it knows, and what the map is where its position is looked at.
    let chain_step = |map: &mut Map, i: usize, spring: f64, looks: &mut Vec<Look>| {
        let force = |times: f64| [(i, -times * (lambda + spring)), (known + i, times * spring)];
        if first_order {
            let mut row = vec![(i, 1.0)];
            row.extend(force(step));
            map.then(&[(i, row)], &[(i, i, 2.0 * step)]);
            looks.push(map.look(i));
            return;
        }
        let drift = |time: f64| vec![(i, vec![(i, 1.0), (v + i, time)])];
        let kick = |kept: f64| {
            let mut row = vec![(v + i, kept)];
            row.extend(force(step));
            vec![(v + i, row)]
        };
        if scheme == Scheme::Stale {
            map.then(&drift(step), &[]);
            map.then(&kick(1.0 - step * friction), &[(v + i, v + i, 2.0 * step * friction)]);
            looks.push(map.look(i));
        } else {
            let left = (-step * friction).exp();
            map.then(&[(v + i, vec![(v + i, left)])], &[(v + i, v + i, 1.0 - left * left)]);
            map.then(&drift(0.5 * step), &[]);
            looks.push(map.look(i));
            map.then(&kick(1.0), &[]);
            map.then(&drift(0.5 * step), &[]);
        }
        if scheme == Scheme::Ahead {
            map.then(&[(known + i, vec![(known + i, 1.0), (velocity + i, step)])], &[]);
        }
    };
    // The exact flow of the center for this time about the mean of what it was told, in small steps of its generator.
    let center_flow = |map: &mut Map, time: f64, spring: f64| {
        let mean: Vec<(usize, f64)> = all.clone().map(|j| (told + j, 1.0 / k as f64)).collect();
        let stiff = spring * k as f64;
        if first_order {
            let left = (-stiff * time).exp();
            let mut row = vec![(c, left)];
            row.extend(mean.iter().map(|&(j, share)| (j, share * (1.0 - left))));
            map.then(&[(c, row)], &[(c, c, (1.0 - left * left) / stiff)]);
            return;
        }
        let pieces = 20_000;
        let h = time / f64::from(pieces);
        // A piece by the midpoint rule: errors of h² over the whole time. It is a map of (c, u) and the mean alone, doubled up.
        let rate = [[0.0, 1.0], [-stiff / mass, -center_friction / mass]];
        let mut m = [[1.0, h], [rate[1][0] * h, 1.0 + rate[1][1] * h]];
        let square = |i: usize, j: usize| (0..2).map(|l| rate[i][l] * rate[l][j]).sum::<f64>() * 0.5 * h * h;
        for (i, row) in m.iter_mut().enumerate() {
            for (j, entry) in row.iter_mut().enumerate() {
                *entry += square(i, j);
            }
        }
        let mut drift = [[1.0, 0.0], [0.0, 1.0]];
        let mut cov = [[0.0; 2]; 2];
        let d = 2.0 * center_friction / (mass * mass) * h;
        for _ in 0..pieces {
            let next = |x: [[f64; 2]; 2]| -> [[f64; 2]; 2] {
                std::array::from_fn(|i| std::array::from_fn(|j| m[i][0] * x[0][j] + m[i][1] * x[1][j]))
            };
            drift = next(drift);
            let half = next(cov);
            cov = std::array::from_fn(|i| std::array::from_fn(|j| half[i][0] * m[j][0] + half[i][1] * m[j][1]));
            cov[0][0] += d * h * h / 3.0;
            cov[0][1] += d * h / 2.0;
            cov[1][0] += d * h / 2.0;
            cov[1][1] += d * (1.0 + rate[1][1] * h);
        }
        let row = |i: usize| {
            let mut row = vec![(c, drift[i][0]), (u, drift[i][1])];
            let back = if i == 0 { 1.0 - drift[0][0] } else { -drift[1][0] };
            if spring > 0.0 {
                row.extend(mean.iter().map(|&(j, share)| (j, share * back)));
            }
            row
        };
        map.then(&[(c, row(0)), (u, row(1))], &[(c, c, cov[0][0]), (c, u, cov[0][1]), (u, u, cov[1][1])]);
    };
    let tell = |map: &mut Map, i: usize| map.then(&[(told + i, vec![(i, 1.0)])], &[]);
    let learn = |map: &mut Map, i: usize| map.then(&[(known + i, vec![(c, 1.0)])], &[]);

    let order = match scheme {
        Scheme::Order(order) => order.to_vec(),
        _ => all.clone().collect(),
    };
    let mut map = Map::identity(n, 2 * order.len() * (s as usize + 2) + 2 * s as usize);
    let mut looks = Vec::new();
    match scheme {
        Scheme::Stale | Scheme::StaleFirstOrder => {
            all.clone().for_each(|i| {
                tell(&mut map, i);
                learn(&mut map, i);
            });
            for _ in 0..s {
                let mean_force: Vec<(usize, f64)> = all.clone().map(|j| (told + j, step * kappa)).collect();
                if first_order {
                    let mut row = vec![(c, 1.0 - step * kappa * k as f64)];
                    row.extend(mean_force);
                    map.then(&[(c, row)], &[(c, c, 2.0 * step)]);
                } else {
                    map.then(&[(c, vec![(c, 1.0), (u, step / mass)])], &[]);
                    let mut row = vec![(u, 1.0 - step * center_friction / mass), (c, -step * kappa * k as f64)];
                    row.extend(mean_force);
                    map.then(&[(u, row)], &[(u, u, 2.0 * step * center_friction)]);
                }
                all.clone().for_each(|i| chain_step(&mut map, i, kappa, &mut looks));
            }
        }
        Scheme::Alternate | Scheme::AlternateFirstOrder | Scheme::Mean => {
            all.clone().for_each(|i| tell(&mut map, i));
            let time = step * s as f64;
            if scheme == Scheme::Mean {
                let share = 1.0 / k as f64;
                let kick = |times: f64, to: usize| {
                    let mut row = vec![(to, 1.0), (c, times)];
                    row.extend(all.clone().map(|j| (told + j, -times * share)));
                    (to, row)
                };
                let mut rows: Vec<_> = all.clone().map(|i| kick(time * kappa, v + i)).collect();
                rows.push(kick(-time * kappa * k as f64 / mass, u));
                map.then(&rows, &[]);
                center_flow(&mut map, time, 0.0);
            } else {
                center_flow(&mut map, time, kappa);
                all.clone().for_each(|i| learn(&mut map, i));
                looks.push(map.look_at(c, k));
            }
            let spring = if scheme == Scheme::Mean { 0.0 } else { kappa };
            for _ in 0..s {
                all.clone().for_each(|i| chain_step(&mut map, i, spring, &mut looks));
            }
        }
        Scheme::Behind | Scheme::Ahead => {
            all.clone().for_each(|i| {
                tell(&mut map, i);
                learn(&mut map, i);
                if scheme == Scheme::Ahead {
                    map.then(&[(velocity + i, vec![(u, 1.0)])], &[]);
                }
            });
            center_flow(&mut map, step * s as f64, kappa);
            for _ in 0..s {
                all.clone().for_each(|i| chain_step(&mut map, i, kappa, &mut looks));
            }
        }
        Scheme::Turns | Scheme::Order(_) => {
            for i in order {
                tell(&mut map, i);
                center_flow(&mut map, step * s as f64 / k as f64, kappa);
                learn(&mut map, i);
                for _ in 0..s {
                    chain_step(&mut map, i, kappa, &mut looks);
                }
            }
        }
    }
    if matches!(scheme, Scheme::Stale | Scheme::StaleFirstOrder) {
        // As they were published: at the ends of periods.
        looks.drain(..looks.len() - k);
    }
    (map, looks)
}
