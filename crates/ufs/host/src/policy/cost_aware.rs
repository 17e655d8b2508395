// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cost-aware`: a load has to pay. The cost of a load and the gain of an entry are measured; their ratio is the
//! number of reads that a load has to save. Correlated reads of a sub-region count as one: any device still holds its
//! map (the correlated references of LRU-K, O'Neil et al., SIGMOD 1993).
//! - A sub-region is loaded after that many misses: by then not loading it has cost as much. In the worst case that
//!   is twice the cost of an optimal choice with knowledge of the future (the rent-or-buy rule).
//! - If it has to evict another, it must have been read more often recently, by a margin. The margin is learned:
//!   after some replacements the reads of both are counted. While the gain does not pay for the load, the margin
//!   doubles; while it does, it is halved.

use super::costs::Costs;
use super::lru::Lru;
use super::reads::Reads;
use super::{MapPolicy, Timed, Touch};
use crate::ids::{Id, SubRegionId};
use fixedbitset::FixedBitSet;
use readpath_kit::Ns;

/// Sub-regions whose reads are correlated: fewer than the maps that any device holds.
const TOGETHER: usize = 16;
/// Replacements that are observed at the same time.
const FOLLOWED: usize = 8;
const MOST_MARGIN: u32 = 1 << 12;
/// Sub-regions compared for a victim, the least recently read ones. Comparing all would take too long.
const CANDIDATES: usize = 8;

#[derive(Clone, Copy)]
struct Trial {
    newcomer: SubRegionId,
    victim: SubRegionId,
    /// Reads of the newcomer before; below, of the victim.
    newcomer_reads: u16,
    victim_reads: u16,
    /// The read at which the trial ends.
    until: u64,
}

pub(crate) struct CostAware {
    lru: Lru,
    costs: Costs,
    /// The sub-regions read last, newest first.
    last: [SubRegionId; TOGETHER],
    /// Sub-regions with an uncorrelated read in flight, whose time is the cost of a miss.
    first: FixedBitSet,
    recent: Reads,
    /// All reads, modulo 2^16.
    all: Vec<u16>,
    /// Misses of each sub-region since it was last held.
    missed: Vec<u8>,
    reads: u64,
    margin: u32,
    most_margin: u32,
    trials: [Option<Trial>; FOLLOWED],
    /// The read at which the first trial ends.
    next_end: u64,
    /// Mean gain of a replacement in reads, in 1/8.
    gain: i64,
}

impl CostAware {
    pub(crate) fn new(sub_regions: u32) -> Self {
        CostAware {
            lru: Lru::new(sub_regions),
            costs: Costs::default(),
            last: [SubRegionId::new(u32::MAX); TOGETHER],
            first: FixedBitSet::with_capacity(sub_regions as usize),
            recent: Reads::new(sub_regions),
            all: vec![0; sub_regions as usize],
            missed: vec![0; sub_regions as usize],
            reads: 0,
            margin: 0,
            most_margin: MOST_MARGIN,
            trials: [None; FOLLOWED],
            next_end: u64::MAX,
            gain: 0,
        }
    }

    /// The policy with a margin of at most `most_margin` reads.
    pub(super) fn with_most_margin(self, most_margin: u32) -> Self {
        CostAware { most_margin, ..self }
    }

    /// Whether this read is not correlated with a recent one.
    fn is_first(&mut self, sub_region: SubRegionId) -> bool {
        let before = self.last.iter().position(|&s| s == sub_region);
        self.last[..=before.unwrap_or(TOGETHER - 1)].rotate_right(1);
        self.last[0] = sub_region;
        before.is_none()
    }

    fn count(&mut self, sub_region: SubRegionId) {
        let all = &mut self.all[sub_region];
        *all = all.wrapping_add(1);
        self.reads += 1;
        if self.recent.count(sub_region, self.lru.held()) {
            self.missed.iter_mut().for_each(|m| *m /= 2);
            if self.next_end == u64::MAX {
                // Without replacements the learned margin may be outdated.
                self.margin /= 2;
            }
        }
        if self.reads >= self.next_end {
            self.end_trials();
        }
    }

    #[cold]
    fn end_trials(&mut self) {
        let break_even = i64::from(self.costs.break_even());
        self.next_end = u64::MAX;
        for slot in &mut self.trials {
            let Some(trial) = slot else { continue };
            if trial.until > self.reads {
                self.next_end = self.next_end.min(trial.until);
                continue;
            }
            let since = |now: u16, then: u16| i64::from(now.wrapping_sub(then));
            let newcomer = since(self.all[trial.newcomer], trial.newcomer_reads);
            let victim = since(self.all[trial.victim], trial.victim_reads);
            self.gain += newcomer - victim - self.gain / 8;
            self.margin = match self.gain < break_even * 8 {
                true => (self.margin * 2 + 1).min(self.most_margin),
                false => self.margin / 2,
            };
            *slot = None;
        }
    }

    fn follow(&mut self, newcomer: SubRegionId, victim: SubRegionId) {
        let Some(slot) = self.trials.iter_mut().find(|t| t.is_none()) else { return };
        // Long enough to read each held map a few times.
        let until = self.reads + u64::from(self.lru.held()).max(64) * 4;
        *slot =
            Some(Trial { newcomer, victim, newcomer_reads: self.all[newcomer], victim_reads: self.all[victim], until });
        self.next_end = self.next_end.min(until);
    }
}

impl MapPolicy for CostAware {
    fn read(&mut self, touch: &Touch) -> bool {
        self.lru.touch(touch.sub_region);
        if !self.is_first(touch.sub_region) || !touch.eligible {
            return false;
        }
        self.first.set(touch.sub_region.row(), touch.timed);
        self.count(touch.sub_region);
        if touch.clean {
            return false;
        }
        let missed = &mut self.missed[touch.sub_region];
        *missed = missed.saturating_add(1);
        u32::from(*missed) >= self.costs.break_even()
    }

    fn timed(&mut self, sub_region: SubRegionId, what: Timed, took: Ns, during_load: bool) {
        let first = what != Timed::Load && self.first.contains(sub_region.row());
        self.first.set(sub_region.row(), false);
        if first || what != Timed::Read {
            self.costs.timed(what, took, during_load);
        }
    }

    fn loaded(&mut self, sub_region: SubRegionId) {
        self.missed[sub_region] = 0;
        self.lru.loaded(sub_region);
    }

    fn dropped(&mut self, sub_region: SubRegionId) {
        self.lru.dropped(sub_region);
    }

    fn victim(&mut self, candidate: Option<SubRegionId>, free: impl Fn(SubRegionId) -> bool) -> Option<SubRegionId> {
        let free = self.lru.coldest().filter(|&s| free(s)).take(CANDIDATES);
        let victim = free.min_by_key(|&s| self.recent.of(s))?;
        let Some(candidate) = candidate else { return Some(victim) };
        if self.recent.of(candidate) < self.recent.of(victim) + self.margin {
            return None;
        }
        self.follow(candidate, victim);
        Some(victim)
    }

    fn bytes(&self) -> u64 {
        self.lru.bytes()
            + self.recent.bytes()
            + self.all.len() as u64 * 2
            + self.missed.len() as u64
            + self.first.len().div_ceil(8) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_margin_that_nothing_confirms_is_halved_with_the_counters() {
        let mut policy = CostAware { margin: 5, ..CostAware::new(4) };
        let mut margins = vec![policy.margin];
        for _ in 0..4096 {
            policy.count(SubRegionId::new(0));
            margins.push(policy.margin);
        }
        margins.dedup();
        assert_eq!(margins, [5, 2, 1, 0]);
    }

    #[test]
    fn a_replacement_that_pays_halves_the_margin_and_one_that_does_not_doubles_it() {
        for (newcomer_reads, victim_reads, margin) in [(100, 0, 2), (0, 100, 11)] {
            let mut policy = CostAware { margin: 5, reads: 9, ..CostAware::new(4) };
            let (newcomer, victim) = (SubRegionId::new(0), SubRegionId::new(1));
            policy.trials[0] = Some(Trial { newcomer, victim, newcomer_reads: 0, victim_reads: 0, until: 9 });
            (policy.all[newcomer], policy.all[victim]) = (newcomer_reads, victim_reads);
            policy.end_trials();
            assert!(policy.trials[0].is_none());
            assert_eq!(policy.margin, margin, "{newcomer_reads} reads beside {victim_reads}");
        }
    }
}
