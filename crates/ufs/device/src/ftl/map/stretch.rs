// SPDX-License-Identifier: MIT OR Apache-2.0
//! Entries of many blocks in few places: a TRIM may concern all blocks of the device. It knows no map page and no
//! time.

use super::Entry;
use crate::ids::Lpn;

/// Consecutive blocks and their entry: one block in a slice, or any number of unmapped ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::ftl) struct Stretch {
    /// First logical page.
    pub first: Lpn,
    /// The logical page after the last.
    pub end: Lpn,
    pub entry: Entry,
}

impl Stretch {
    /// One block.
    pub(crate) fn of(lpn: Lpn, entry: Entry) -> Stretch {
        Stretch { first: lpn, end: lpn + 1, entry }
    }

    pub(crate) fn blocks(self) -> impl Iterator<Item = Lpn> {
        self.first.run(self.end - self.first)
    }

    /// Extends the stretch by `next`, if they touch or overlap and both are unmapped.
    #[inline]
    fn goes_on(&mut self, next: Stretch) -> bool {
        let goes_on = self.entry == next.entry
            && self.entry.clean() == Entry::UNMAPPED
            && (self.first..=self.end).contains(&next.first);
        if goes_on {
            self.end = self.end.max(next.end);
        }
        goes_on
    }
}

/// Appends a stretch.
#[inline]
pub(crate) fn push(stretches: &mut Vec<Stretch>, next: Stretch) {
    if !stretches.last_mut().is_some_and(|last| last.goes_on(next)) {
        stretches.push(next);
    }
}

/// Sorts stretches and joins them. They overlap only where their entries are equal.
pub(crate) fn in_order(mut stretches: Vec<Stretch>) -> Vec<Stretch> {
    stretches.sort_by_key(|stretch| stretch.first);
    stretches.dedup_by(|next, last| last.goes_on(*next));
    stretches
}

/// The parts of `first..end` that none of the ordered `stretches` covers.
pub(crate) fn gaps(stretches: &[Stretch], first: Lpn, end: Lpn) -> impl Iterator<Item = (Lpn, Lpn)> {
    let from = stretches.partition_point(|stretch| stretch.end <= first);
    let inside = stretches[from..].iter().take_while(move |stretch| stretch.first < end);
    let bounds = inside.map(|stretch| (stretch.first, stretch.end)).chain([(end, end)]);
    let gap = move |at: &mut Lpn, (from, to): (Lpn, Lpn)| Some((std::mem::replace(at, to), from));
    bounds.scan(first, gap).filter(|(from, to)| from < to)
}

/// `upper`, and `lower` where `upper` has a gap. Both are in order, and so is the result.
pub(crate) fn overlay(mut upper: Vec<Stretch>, lower: impl IntoIterator<Item = Stretch>) -> Vec<Stretch> {
    let mut seen = Vec::new();
    for Stretch { first, end, entry } in lower {
        seen.extend(gaps(&upper, first, end).map(|(first, end)| Stretch { first, end, entry }));
    }
    upper.extend(seen);
    in_order(upper)
}

#[cfg(test)]
mod tests {
    use super::*;
    use readpath_flash::Ppn;
    use readpath_kit::Prng;

    const BLOCKS: u32 = 40;

    /// The entry of each block.
    fn by_block(stretches: &[Stretch]) -> Vec<Option<Entry>> {
        let mut known = vec![None; BLOCKS as usize];
        for stretch in stretches {
            stretch.blocks().for_each(|lpn| assert_eq!(known[lpn.index()].replace(stretch.entry), None));
        }
        known
    }

    #[test]
    fn stretches_say_what_blocks_would_say_one_by_one() {
        let rng = &mut Prng::new(1);
        for _ in 0..2000 {
            // Blocks that were trimmed, are mapped, or have no known entry, in any order.
            let mut some = |known: u64| {
                let mut blocks: Vec<Option<Entry>> = vec![None; BLOCKS as usize];
                let mut stretches = Vec::new();
                for _ in 0..rng.below(known) {
                    let lpn = Lpn(rng.below(u64::from(BLOCKS)) as u32);
                    let entry = if rng.below(4) == 0 { Entry::at(Ppn(lpn.0 / 2)) } else { Entry::UNMAPPED };
                    let count = if entry == Entry::UNMAPPED { rng.below(6) as u32 + 1 } else { 1 };
                    for lpn in lpn.run(count.min(BLOCKS - lpn.0)) {
                        if blocks[lpn.index()].is_none() {
                            blocks[lpn.index()] = Some(entry);
                            push(&mut stretches, Stretch::of(lpn, entry));
                        }
                    }
                }
                let stretches = in_order(stretches);
                assert_eq!(by_block(&stretches), blocks);
                let is_split = |two: &[Stretch]| two[0].end == two[1].first && two[0].entry == two[1].entry;
                assert!(stretches.windows(2).all(|two| two[0].end <= two[1].first));
                let trimmed: Vec<_> = stretches.iter().filter(|s| s.entry == Entry::UNMAPPED).copied().collect();
                assert!(!trimmed.windows(2).any(is_split), "{stretches:?}");
                (blocks, stretches)
            };
            let ((above, upper), (below, lower)) = (some(12), some(12));
            let both: Vec<_> = above.iter().zip(&below).map(|(above, below)| above.or(*below)).collect();
            assert_eq!(by_block(&overlay(upper.clone(), lower)), both, "{upper:?}");
            let first = Lpn(rng.below(u64::from(BLOCKS)) as u32);
            let end = first + rng.below(u64::from(BLOCKS - first.0) + 1) as u32;
            let gaps: Vec<Lpn> = gaps(&upper, first, end).flat_map(|(from, to)| from.run(to - from)).collect();
            let missing: Vec<Lpn> = first.run(end - first).filter(|lpn| above[lpn.index()].is_none()).collect();
            assert_eq!(gaps, missing, "{first:?} to {end:?} of {upper:?}");
        }
    }
}
