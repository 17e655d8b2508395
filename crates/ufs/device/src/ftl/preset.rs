// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the data of a preconditioned range lies, as a formula. Tables as large as the device need neither time nor
//! memory for it, until something of it changes.
//!
//! It may not know the map, superblocks, or what has changed since.

use crate::ids::Lpn;
use readpath_flash::Ppn;
use readpath_kit::{Divisor, Permutation};

/// Layout of preconditioned blocks in flash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Layout {
    /// As if written once in ascending order.
    Sequential,
    /// As if written once, block by block in random order.
    Random,
}

/// Consecutive slices in the order in which a range was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::ftl) struct SliceRun {
    /// Slices of the range before it.
    pub before: u32,
    pub first: Ppn,
    pub slices: u32,
}

/// A preconditioned range.
#[derive(Clone)]
pub(in crate::ftl) struct Preset {
    base: Lpn,
    blocks: u32,
    /// For a random layout: how many blocks were written before each.
    order: Option<Permutation>,
    /// In the order in which they were written.
    runs: Vec<SliceRun>,
    /// For each run what is added, modulo 2^32, to the number of slices before one to get that.
    offsets: Vec<u32>,
    /// Slices of the longest run, of which nearly all are; and how many the first is shorter.
    longest: Divisor,
    missing: u32,
    /// Only the first and the last run may be shorter than the longest. Otherwise runs have to be searched.
    is_regular: bool,
}

impl Preset {
    /// `blocks` blocks from `base` on, at least one.
    pub(in crate::ftl) fn new(base: Lpn, blocks: u32, layout: Layout, seed: u64, runs: Vec<SliceRun>) -> Self {
        debug_assert!(runs.is_sorted_by_key(|run| run.before));
        let longest = runs.iter().map(|run| run.slices).max().unwrap_or(1).max(1);
        let missing = runs.first().map_or(0, |run| longest - run.slices);
        let inner = runs.get(1..runs.len() - 1).unwrap_or_default();
        Preset {
            base,
            blocks,
            order: (layout == Layout::Random).then(|| Permutation::new(u64::from(blocks), seed)),
            is_regular: inner.iter().all(|run| run.slices == longest),
            offsets: runs.iter().map(|run| run.first.0.wrapping_sub(run.before)).collect(),
            longest: Divisor::new(longest),
            missing,
            runs,
        }
    }

    /// The first block, and how many.
    pub(in crate::ftl) fn range(&self) -> (Lpn, u32) {
        (self.base, self.blocks)
    }

    pub(in crate::ftl) fn runs(&self) -> &[SliceRun] {
        &self.runs
    }

    /// Whether slices were written in ascending order, as on a device of which nothing was erased. Otherwise the
    /// block of a slice cannot be found.
    pub(in crate::ftl) fn ascends(&self) -> bool {
        self.runs.is_sorted_by_key(|run| run.first)
    }

    /// Whether a table of the same would be faster.
    pub(in crate::ftl) fn is_slow(&self) -> bool {
        self.order.is_some() || !self.is_regular
    }

    /// The slice of a block of the range.
    #[inline(always)]
    pub(in crate::ftl) fn slice(&self, lpn: Lpn) -> Ppn {
        let mut at = lpn - self.base;
        if let Some(order) = &self.order {
            at = order.get(u64::from(at)) as u32;
        }
        let run = match self.is_regular {
            true => self.longest.divide(at + self.missing) as usize,
            false => self.run_of(at),
        };
        Ppn(at.wrapping_add(self.offsets[run]))
    }

    /// The run of the slice before which there are `at`.
    #[inline(never)]
    fn run_of(&self, at: u32) -> usize {
        let run = self.longest.divide(at + self.missing) as usize;
        let SliceRun { before, slices, .. } = self.runs[run];
        match at.wrapping_sub(before) < slices {
            true => run,
            false => self.runs.partition_point(|run| run.before <= at) - 1,
        }
    }

    /// The block whose data a slice holds, if it is of the range, which ascends.
    pub(in crate::ftl) fn block(&self, ppn: Ppn) -> Option<Lpn> {
        let run = self.runs[self.runs.partition_point(|run| run.first <= ppn).checked_sub(1)?];
        let within = Some(ppn.0 - run.first.0).filter(|&at| at < run.slices)?;
        Some(self.block_at(run.before + within))
    }

    /// The blocks of the range, which ascends, whose data any of these slices hold, with their slices.
    pub(in crate::ftl) fn blocks_in(&self, first: Ppn, slices: u32) -> impl Iterator<Item = (Ppn, Lpn)> + '_ {
        let end = first.0 + slices;
        let from = self.runs.partition_point(|run| run.first.0 + run.slices <= first.0);
        self.runs[from..].iter().take_while(move |run| run.first.0 < end).flat_map(move |run| {
            let ppns = run.first.0.max(first.0)..(run.first.0 + run.slices).min(end);
            ppns.map(|ppn| (Ppn(ppn), self.block_at(run.before + (ppn - run.first.0))))
        })
    }

    /// The block of the range before which so many others were written.
    fn block_at(&self, before: u32) -> Lpn {
        self.base + self.order.as_ref().map_or(before, |order| order.find(u64::from(before)) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_formula_says_what_a_list_of_the_slices_says(
            base in 0u32..1000,
            gaps in proptest::collection::vec((0u32..3, 0u32..5), 1..8),
            first in 1u32..=24,
            last in 1u32..=24,
            random: bool,
            irregular: bool,
            descends: bool,
        ) {
            let n = gaps.len();
            let (mut slices, mut runs) = (Vec::new(), Vec::new());
            let mut at = if descends { 1000 } else { 0 };
            for (i, (gap, shorter)) in gaps.into_iter().enumerate() {
                let length = match i {
                    0 => first,
                    i if i + 1 == n => last,
                    _ if irregular => 24 - shorter,
                    _ => 24,
                };
                let first = if descends { at - length - gap - 1 } else { at + gap + u32::from(i > 0) };
                runs.push(SliceRun { before: slices.len() as u32, first: Ppn(first), slices: length });
                slices.extend(first..first + length);
                at = if descends { first } else { first + length };
            }
            let blocks = slices.len() as u32;
            let layout = if random { Layout::Random } else { Layout::Sequential };
            let preset = Preset::new(Lpn(base), blocks, layout, 7, runs);
            let mut found: Vec<u32> = (0..blocks).map(|i| preset.slice(Lpn(base + i)).0).collect();
            prop_assert_eq!(preset.ascends(), !descends || n == 1);
            let asked = if preset.ascends() { at + 3 } else { 0 };
            for ppn in 0..asked {
                let block = found.iter().position(|&slice| slice == ppn);
                prop_assert_eq!(preset.block(Ppn(ppn)), block.map(|i| Lpn(base + i as u32)));
            }
            for (first, length) in [(0, asked), (asked / 3, 1), (asked / 2, 7), (asked, 3)] {
                let length = length.min(asked);
                let some: Vec<_> = preset.blocks_in(Ppn(first), length).collect();
                let each = (first..first + length).filter_map(|ppn| Some((Ppn(ppn), preset.block(Ppn(ppn))?)));
                prop_assert_eq!(some, each.collect::<Vec<_>>(), "{} from {}", length, first);
            }
            if random {
                found.sort_unstable();
                slices.sort_unstable();
            }
            prop_assert_eq!(found, slices);
        }
    }
}
