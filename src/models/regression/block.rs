//! The linear predictors of some rows for some particles, as models and effects of groups read and change them.

use crate::number::Real;
use ndarray::ArrayView1;
use std::ops::Range;

/// Evaluates an expression in which the constant L is this number of lanes: 1, 8 or 16.
macro_rules! with_lanes {
    ($lanes:expr, $L:ident => $call:expr) => {
        match $lanes {
            1 => {
                const $L: usize = 1;
                $call
            }
            16 => {
                const $L: usize = 16;
                $call
            }
            _ => {
                const $L: usize = 8;
                $call
            }
        }
    };
}
pub(super) use with_lanes;

/// The linear predictors of a block of rows and a block of particles. Lanes beyond the number of particles are unused.
pub struct Block<'a, F> {
    /// The number of rows in earlier blocks.
    pub first: usize,
    /// All columns of all rows, row-major.
    pub x: &'a [F],
    /// The indices of this block's rows.
    pub rows: &'a [usize],
    /// The indices of its particles.
    pub particles: Range<usize>,
    /// The number of lanes: columns of `values`.
    pub lanes: usize,
    /// η, rows × lanes.
    pub values: &'a mut [F],
}

/// A [`Block`] whose number of lanes is known at compile time.
pub(super) struct LaneBlock<'a, F, const L: usize> {
    pub first: usize,
    pub x: &'a [F],
    pub rows: &'a [usize],
    pub particles: Range<usize>,
    pub values: &'a mut [[F; L]],
}

impl<F, const L: usize> LaneBlock<'_, F, L> {
    pub fn any_lanes(&mut self) -> Block<'_, F> {
        let Self { first, x, rows, particles, values } = self;
        Block { first: *first, x, rows, particles: particles.clone(), lanes: L, values: values.as_flattened_mut() }
    }
}

impl<F: Real> Block<'_, F> {
    /// Calls `visit` with each run of rows for which `property` is the same, and with what it is.
    pub fn for_runs(&mut self, property: impl Fn(usize) -> bool, mut visit: impl FnMut(&mut Block<F>, bool)) {
        let Block { first, x, rows, particles, lanes, values } = self;
        let (mut rows, mut values) = (*rows, &mut **values);
        while let Some(&row) = rows.first() {
            let is = property(row);
            let length = 1 + rows[1..].iter().take_while(|&&row| property(row) == is).count();
            let (run, later) = rows.split_at(length);
            let (own, rest) = values.split_at_mut(length * *lanes);
            (rows, values) = (later, rest);
            visit(&mut Block { first: *first, x, rows: run, particles: particles.clone(), lanes: *lanes, values: own }, is);
        }
    }

    /// Calls `visit` with each row, the particles, and the row's values, one for each particle.
    #[inline]
    pub fn for_each_row(&mut self, mut visit: impl FnMut(usize, Range<usize>, &mut [F])) {
        let particles = &self.particles;
        for (&row, values) in self.rows.iter().zip(self.values.chunks_exact_mut(self.lanes)) {
            visit(row, particles.clone(), &mut values[..particles.len()]);
        }
    }

    /// Calls `visit` with the particle, the row and the value of each element, without unused lanes.
    #[inline]
    pub fn for_each(&mut self, mut visit: impl FnMut(usize, usize, &mut F)) {
        self.for_each_row(|row, particles, values| {
            particles.zip(values).for_each(|(particle, value)| visit(particle, row, value))
        });
    }

    /// Replaces means of targets by the residuals y − mean.
    pub fn subtract_from(&mut self, y: ArrayView1<F>) {
        fn subtract<F: Real, const L: usize>(rows: &[usize], values: &mut [F], y: ArrayView1<F>) {
            for (&row, means) in rows.iter().zip(values.as_chunks_mut::<L>().0) {
                let y = y[row];
                means.iter_mut().for_each(|mean| *mean = y - *mean);
            }
        }
        with_lanes!(self.lanes, L => subtract::<F, L>(self.rows, self.values, y));
    }
}
