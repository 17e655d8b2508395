// SPDX-License-Identifier: MIT OR Apache-2.0
//! Searches from several places: one may stop where whole pages or regions are in the way of something better.

use super::model::{ModelError, Values};
use super::{Minimum, Search, ln};

/// Times of further starts, as multiples of what the first search found.
const TIMES: [f64; 2] = [0.7, 1.4];

/// Differences in misfit that are next to nothing: what a search leaves on the table when it ends.
fn slack(misfit: f64) -> f64 {
    0.1_f64.max(0.02 * misfit)
}

impl Search<'_> {
    /// The best of several searches, with the steps of all, and how far from it, in logarithms, those ended that are as
    /// good.
    pub(super) fn search_from_several(&mut self, start: &Values, most: u32) -> Result<(Minimum, Vec<f64>), ModelError> {
        let first = self.run(start, most)?;
        let mut ends = vec![(self.simulated(&first.values).map(|s| self.misfit(&s))?, first)];
        for factor in TIMES {
            let from = self.with_other_times(&ends[0].1.values, factor);
            let end = self.run(&from, most)?;
            ends.push((self.simulated(&end.values).map(|s| self.misfit(&s))?, end));
        }
        let steps = ends.iter().map(|(_, end)| end.iterations).sum();
        // An earlier one stands unless a later one is better by more than nothing: what no measurement depends on stays
        // as it was.
        let mut best = 0;
        for (i, (misfit, _)) in ends.iter().enumerate() {
            if *misfit < ends[best].0 - slack(*misfit) {
                best = i;
            }
        }
        let (least, found) = ends.swap_remove(best);
        let mut apart = vec![0.0; start.len()];
        for (_, end) in ends.iter().filter(|(misfit, _)| *misfit <= least + slack(least)) {
            for ((apart, a), b) in apart.iter_mut().zip(&end.values).zip(&found.values) {
                *apart = f64::max(*apart, (ln(*a as f64) - ln(*b as f64)).abs());
            }
        }
        Ok((Minimum { iterations: steps, ..found }, apart))
    }

    fn with_other_times(&self, values: &Values, factor: f64) -> Values {
        let other = |(param, value): (&super::Param, &u64)| match param.is_size() {
            true => *value,
            false => param.realize(*value as f64 * factor, self.preset),
        };
        self.params.iter().zip(values).map(other).collect()
    }
}
