// SPDX-License-Identifier: MIT OR Apache-2.0
//! Searches from several places: a single search may stop where steps of whole pages or regions block the way to a
//! better place.

use super::identify::{Verdict, identify};
use super::model::{ModelError, Values};
use super::{BEYOND_CHANCE, FitOptions, Minimum, Search, ln};

/// Times of further starts, as multiples of what the first search found.
const TIMES: [f64; 2] = [0.7, 1.4];
/// Factors by which a hidden time is made longer, until it dominates, and by which the time that hides it is made
/// shorter.
const LONGER: [f64; 4] = [1.5, 2.0, 3.0, 5.0];
const SHORTER: f64 = 0.7;
/// A time of which a value is this share or more decides it alone.
const DECIDES: f64 = 0.8;
/// Where a time takes over, values fall below this share.
const TAKES_OVER: f64 = 0.95;
/// Most steps of a search from such a start.
const FEW_STEPS: u32 = 12;

/// Superblocks by which the size of a cache is changed, alone and against another.
const JUMPS: [f64; 6] = [-3.0, -2.0, -1.0, 1.0, 2.0, 3.0];
const SWAPS: [f64; 4] = [2.0, 5.0, 10.0, 20.0];
const MOST_JUMPS: u32 = 4;
/// More superblocks are not changed at once.
const MOST_SUPERBLOCKS: f64 = 1e5;

/// Three standard errors: in a rough search, places that differ by less are taken to be as good.
pub(super) const AS_GOOD: f64 = 9.0;

/// Differences in misfit that do not matter: what a search may still have to gain when it ends.
fn slack(misfit: f64) -> f64 {
    0.1_f64.max(0.02 * misfit)
}

impl Search<'_> {
    /// The best of several searches, with the steps of all, and how far from it, in logarithms, those ended that are as
    /// good.
    pub(super) fn search_from_several(
        &mut self,
        start: &Values,
        options: &FitOptions,
    ) -> Result<(Minimum, Vec<f64>), ModelError> {
        let most = options.iterations;
        let first = self.run(start, most, false)?;
        let mut ends = vec![(self.simulated(&first.values).map(|s| self.misfit(&s))?, first)];
        for factor in TIMES {
            let from = self.with_other_times(&ends[0].1.values, factor);
            self.search_from(&from, most, &mut ends)?;
        }
        if options.rough {
            let best = ends.iter().min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, end)| end.clone());
            let places = best.map_or_else(|| Ok(Vec::new()), |best| self.uncovered(&best))?;
            for from in places {
                self.search_from(&from, most.min(FEW_STEPS), &mut ends)?;
            }
            self.jumps(most.min(FEW_STEPS), &mut ends)?;
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
        let slack = if options.rough { AS_GOOD } else { slack(least) };
        for (_, end) in ends.iter().filter(|(misfit, _)| *misfit <= least + slack) {
            for ((apart, a), b) in apart.iter_mut().zip(&end.values).zip(&found.values) {
                *apart = f64::max(*apart, (ln(*a as f64) - ln(*b as f64)).abs());
            }
        }
        if options.rough {
            self.reach(&found.values, least + slack, &mut apart)?;
        }
        Ok((Minimum { iterations: steps, ..found }, apart))
    }

    /// How far sizes of caches can be changed, alone or one for another, until the misfit is more than `most`: slopes
    /// of what leaps from superblock to superblock tell little of it.
    fn reach(&mut self, found: &Values, most: f64, apart: &mut [f64]) -> Result<(), ModelError> {
        let sizes = self.caches();
        for &size in &sizes {
            let others = sizes.iter().copied().filter(|other| *other != size).map(Some);
            for other in others.chain([None]) {
                for sign in [-1.0, 1.0] {
                    let mut superblocks = sign;
                    loop {
                        let place = self.jumped(found, size, superblocks);
                        let place = other.map_or(place.clone(), |other| self.jumped(&place, other, -superblocks));
                        let moved = place[size] != found[size] && other.is_none_or(|at| place[at] != found[at]);
                        if !moved || !self.possible(&place) || self.simulated(&place).map(|s| self.misfit(&s))? > most {
                            break;
                        }
                        for at in [Some(size), other].into_iter().flatten() {
                            apart[at] = apart[at].max((ln(place[at] as f64) - ln(found[at] as f64)).abs());
                        }
                        superblocks *= 2.0;
                        if superblocks.abs() > MOST_SUPERBLOCKS {
                            break;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Which parameters are sizes of caches.
    fn caches(&self) -> Vec<usize> {
        (0..self.params.len()).filter(|i| matches!(self.params[*i], super::Param::Cache(_))).collect()
    }

    fn search_from(&mut self, from: &Values, most: u32, ends: &mut Vec<(f64, Minimum)>) -> Result<(), ModelError> {
        if self.possible(from) {
            let end = self.run(from, most, self.rough)?;
            ends.push((self.simulated(&end.values).map(|s| self.misfit(&s))?, end));
        }
        Ok(())
    }

    /// Sizes of caches of a few superblocks more or less than the best: throughput leaps where one more is filled,
    /// which no slope shows. Two of them may also make up for each other.
    fn jumps(&mut self, most: u32, ends: &mut Vec<(f64, Minimum)>) -> Result<(), ModelError> {
        let sizes = self.caches();
        for _ in 0..MOST_JUMPS {
            let Some(best) = ends.iter().min_by(|a, b| a.0.total_cmp(&b.0)) else { break };
            let (misfit, values) = (best.0, best.1.values.clone());
            let mut places = Vec::new();
            for &size in &sizes {
                places.extend(JUMPS.map(|superblocks| self.jumped(&values, size, superblocks)));
                for &other in sizes.iter().filter(|other| **other != size) {
                    places.extend(SWAPS.map(|n| self.jumped(&self.jumped(&values, size, n), other, -n)));
                }
            }
            let mut better: Option<(f64, Values)> = None;
            for place in places {
                if place == values || !self.possible(&place) {
                    continue;
                }
                let there = self.simulated(&place).map(|s| self.misfit(&s))?;
                if there < better.as_ref().map_or(misfit - BEYOND_CHANCE, |(least, _)| *least) {
                    better = Some((there, place));
                }
            }
            let Some((_, place)) = better else { break };
            self.search_from(&place, most, ends)?;
        }
        Ok(())
    }

    fn jumped(&self, values: &Values, which: usize, superblocks: f64) -> Values {
        let mut jumped = values.clone();
        let by = superblocks * self.params[which].grain(self.preset);
        jumped[which] = self.params[which].realize(values[which] as f64 + by, self.preset);
        jumped
    }

    /// Places to begin from where one time is longer and another shorter. What several stages share, the slowest
    /// decides alone, and a search for another slowest has no slope to follow.
    fn uncovered(&mut self, found: &Minimum) -> Result<Vec<Values>, ModelError> {
        let known = identify(&self.params, &found.values, &self.weighted(&found.jacobian));
        let here = self.simulated(&found.values)?;
        let mut places = Vec::new();
        for hidden in 0..self.params.len() {
            if known.verdicts[hidden] == Verdict::Identified || self.params[hidden].is_size() {
                continue;
            }
            for factor in LONGER {
                let longer = self.scaled(&found.values, hidden, factor);
                let others = self.taken_over(found, &here, &longer)?;
                if !others.is_empty() {
                    places.extend(others.into_iter().map(|other| self.scaled(&longer, other, SHORTER)));
                    break;
                }
            }
        }
        Ok(places)
    }

    /// Times that alone decide a value which is smaller at the other values of the parameters.
    fn taken_over(&mut self, found: &Minimum, here: &[f64], other: &Values) -> Result<Vec<usize>, ModelError> {
        if !self.possible(other) {
            return Ok(Vec::new());
        }
        let there = self.simulated(other)?;
        let falls: Vec<bool> = here.iter().zip(&there).map(|(a, b)| *b < TAKES_OVER * a).collect();
        let changed = |i: usize| found.values[i] != other[i];
        let decides = |i: &usize| {
            let mut rows = found.jacobian.iter().zip(&falls);
            !changed(*i) && !self.params[*i].is_size() && rows.any(|(d, falls)| *falls && d[*i] <= -DECIDES)
        };
        Ok((0..self.params.len()).filter(decides).collect())
    }

    fn scaled(&self, values: &Values, which: usize, factor: f64) -> Values {
        let mut scaled = values.clone();
        scaled[which] = self.params[which].realize(values[which] as f64 * factor, self.preset);
        scaled
    }

    fn with_other_times(&self, values: &Values, factor: f64) -> Values {
        let other = |(param, value): (&super::Param, &u64)| match param.is_size() {
            true => *value,
            false => param.realize(*value as f64 * factor, self.preset),
        };
        self.params.iter().zip(values).map(other).collect()
    }
}
