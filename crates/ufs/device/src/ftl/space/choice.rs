// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which superblock is emptied, and which erased one is written next, for garbage collection and wear levelling. It
//! sees only references and erase counts; it knows neither time nor data.
//!
//! *Wear levelling.* Superblocks with data that is not overwritten are never erased, so the others wear out early.
//! Two measures counter that. A superblock is opened for data that suits its wear: cold data goes where wear is. And
//! data that has stayed while other superblocks were erased is moved onto the most worn of the erased superblocks,
//! into a stream of its own: mixed with other data it would be collected, and moved, again and again.
//!
//! *When levelling is due.* Let *m* be the mean of all erase counts and *w* the width of a band around it. A
//! superblock that was erased *m* + *w* times is parked: it takes the data of the least erased one. And a superblock
//! that was erased fewer than *m* - *w* times is emptied as soon as an erased one is worn more than the mean. So what
//! is parked at *m* + *w* stays until the mean has advanced by 2 *w*: if a share *s* of all superblocks holds cold
//! data, *s* / 2*w* of all erases are due to levelling, and no scheme that keeps such a band can do with fewer.

use super::{Space, State, Stream, Superblock};
use crate::config::VictimPolicy;
use crate::ids::SuperblockId;

/// Erase counts of the superblocks that hold data or the map, or may. Superblocks of anchors and retired superblocks
/// do not count.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Wear {
    /// Number of superblocks that count.
    pub superblocks: u32,
    /// Mean erase count.
    pub mean: f64,
    /// Least erase count.
    pub min: u32,
    /// Greatest erase count.
    pub max: u32,
    /// Greatest erase count of the superblocks of anchors.
    pub anchors_max: u32,
    /// Bad blocks, one per die and superblock.
    pub bad_blocks: u32,
    /// Retired superblocks: too many of their blocks are bad.
    pub retired: u32,
}

impl Wear {
    /// The greatest deviation of an erase count from the mean, in percent of the mean; 0 if nothing was erased.
    pub fn spread_percent(&self) -> f64 {
        if self.mean == 0.0 {
            return 0.0;
        }
        100.0 * (self.mean - f64::from(self.min)).max(f64::from(self.max) - self.mean) / self.mean
    }
}

/// Erase counts at which levelling acts, and the fill of open superblocks at its last look.
#[derive(Clone, Copy, Debug)]
pub(super) struct WearBand {
    /// Superblocks erased fewer times are to be emptied.
    below: u32,
    /// Erased superblocks with at least this wear are kept for cold data.
    above: u32,
    /// Next unit of the open superblock of each stream.
    next_units: [u32; Stream::COUNT],
}

impl WearBand {
    /// Levelling never acts.
    pub(super) const NONE: WearBand = WearBand { below: 0, above: u32::MAX, next_units: [0; Stream::COUNT] };
}

impl Space {
    /// Index, in the list of erased superblocks, of the one that suits `stream`; of equals the first superblock. Data
    /// that levelling moves gets the most worn. Data that collection moves, which has proved to live longer than
    /// other data, gets the most worn within the band if there is one. All other data gets the least worn.
    pub(super) fn erased_for(&self, stream: Stream) -> Option<usize> {
        let order = |&(_, &sb): &(usize, &SuperblockId)| self.suits(stream, sb);
        self.erased.iter().enumerate().min_by_key(order).map(|(at, _)| at)
    }

    /// Sorts the list of erased superblocks: the one that suits `stream` best is the last.
    pub(super) fn sort_erased_for(&mut self, stream: Stream) {
        let mut erased = std::mem::take(&mut self.erased);
        erased.sort_unstable_by_key(|&sb| std::cmp::Reverse(self.suits(stream, sb)));
        self.erased = erased;
    }

    /// Order of erased superblocks for `stream`: the least suits best.
    pub(super) fn suits(&self, stream: Stream, sb: SuperblockId) -> ((bool, u32), SuperblockId) {
        let erases = self.table[sb.index()].erases;
        let order = match stream {
            Stream::Cold => (false, u32::MAX - erases),
            Stream::Moved => (erases >= self.wear_band.above, u32::MAX - erases),
            Stream::Host | Stream::Hot | Stream::Boosted | Stream::Meta | Stream::Rest | Stream::Zone => {
                (erases >= self.wear_band.above, erases)
            }
        };
        (order, sb)
    }

    /// Slices for data in the good blocks of a superblock.
    fn capacity(&self, sb: &Superblock) -> u32 {
        (self.shape.units - sb.bad_dies * self.shape.units / self.shape.dies).saturating_sub(self.shape.table_units)
            * self.shape.slices_per_unit
    }

    /// The used share of a superblock, in an arbitrary unit. The number of references alone would not do where blocks
    /// are bad: the smallest superblocks have the fewest even without garbage.
    fn share_in_use(&self, sb: &Superblock) -> u64 {
        if self.any_bad { (u64::from(sb.refs) << 32) / u64::from(self.capacity(sb).max(1)) } else { u64::from(sb.refs) }
    }

    /// The best closed superblock of data to collect, with a unit of garbage at least: the last unit that its data
    /// moves to may be padded, so with less there would be as much garbage as before, and collection might never end.
    pub(crate) fn victim(&self, policy: VictimPolicy, now: u32) -> Option<SuperblockId> {
        self.victim_beside(policy, now, &[])
    }

    /// Extends `victims`, which has one, to at most `most`, by the next best with nearly as much garbage as the
    /// first. Those with less are worth more when collected later.
    pub(crate) fn more_victims(&self, policy: VictimPolicy, now: u32, most: u32, victims: &mut Vec<SuperblockId>) {
        let garbage = |sb: SuperblockId| u64::from(self.capacity(self.get(sb)).saturating_sub(self.get(sb).refs));
        let enough = victims.first().map_or(0, |&sb| garbage(sb) * 15);
        while (victims.len() as u32) < most
            && let Some(next) = self.victim_beside(policy, now, victims)
            && garbage(next) * 16 >= enough
        {
            victims.push(next);
        }
    }

    fn victim_beside(&self, policy: VictimPolicy, now: u32, others: &[SuperblockId]) -> Option<SuperblockId> {
        let capacity = |sb: &Superblock| self.capacity(sb);
        let boosted = others.iter().filter(|&&sb| self.get(sb).state == State::Closed(Stream::Boosted)).count() as u32;
        let movable = || self.iter().filter(|(i, sb)| self.may_empty(sb, boosted) && !others.contains(i));
        if self.failed > 0
            && let Some((failed, _)) = movable().find(|(_, sb)| sb.failed)
        {
            return Some(failed);
        }
        let candidates = movable().filter(|(_, sb)| sb.refs + self.shape.slices_per_unit <= capacity(sb));
        match policy {
            VictimPolicy::Greedy => candidates.min_by_key(|&(i, sb)| (self.share_in_use(sb), i)).map(|(i, _)| i),
            VictimPolicy::CostBenefit => candidates
                .max_by_key(|&(i, sb)| {
                    let (used, age) = (u64::from(sb.refs), u64::from(now.wrapping_sub(sb.closed_at)) + 1);
                    let free = u64::from(capacity(sb)) - used;
                    // The benefit as a ratio of integers with a fixed point of 16 bits.
                    let benefit = (u128::from(free * age) << 16) / u128::from((2 * used).max(1));
                    (benefit, std::cmp::Reverse(i))
                })
                .map(|(i, _)| i),
        }
    }

    fn counted(&self) -> impl Iterator<Item = &Superblock> {
        self.table.iter().filter(|sb| !matches!(sb.state, State::Anchor | State::Retired))
    }

    /// How worn the superblocks are.
    pub(crate) fn wear(&self) -> Wear {
        let superblocks = self.counted().count() as u32;
        let sum: u64 = self.counted().map(|sb| u64::from(sb.erases)).sum();
        let (retired, bad_blocks) = self.given_up();
        Wear {
            superblocks,
            mean: sum as f64 / f64::from(superblocks.max(1)),
            min: self.counted().map(|sb| sb.erases).min().unwrap_or(0),
            max: self.counted().map(|sb| sb.erases).max().unwrap_or(0),
            anchors_max: self
                .table
                .iter()
                .filter(|sb| sb.state == State::Anchor)
                .map(|sb| sb.erases)
                .max()
                .unwrap_or(0),
            bad_blocks,
            retired,
        }
    }

    /// Looks at the erase counts and returns the superblock that levelling has to empty, if any. The band is
    /// `percent` of the mean wide to either side, and at least `least` erases: a narrower one would cost much while
    /// counts are small, and a few erases do not matter among the thousands that flash endures.
    pub(crate) fn look_at_wear(&mut self, percent: u32, least: u32) -> Option<SuperblockId> {
        let (n, sum) = self.counted().fold((0u64, 0u64), |(n, sum), sb| (n + 1, sum + u64::from(sb.erases)));
        // All terms are multiplied by n, so that the mean is a whole number.
        let band = (sum * u64::from(percent) / 100).max(u64::from(least) * n);
        self.wear_band.below = (sum.saturating_sub(band) / n.max(1)) as u32;
        self.wear_band.above = ((sum + band) / n.max(1)) as u32;
        let worn = self.erased.iter().map(|&sb| u64::from(self.table[sb.index()].erases)).max()? * n;
        let due = |sb: &Superblock| {
            let behind = sum.saturating_sub(u64::from(sb.erases) * n);
            (behind >= band && worn >= sum) || (2 * behind >= band && worn >= sum + band)
        };
        // Of equals, the one that has held its data longest.
        let candidates = self.iter().filter(|(_, sb)| self.may_empty(sb, 0) && due(sb));
        candidates.min_by_key(|&(i, sb)| (sb.erases, sb.closed_at, i)).map(|(i, _)| i)
    }

    /// Closes the open superblock of a stream that has not been written since the last call, if its wear is below the
    /// band: open superblocks cannot be emptied.
    pub(crate) fn close_left_behind(&mut self, stream: Stream, now: u32) -> Option<SuperblockId> {
        let sb = self.open_of(stream)?;
        let Superblock { next_unit, erases, .. } = *self.get(sb);
        let before = std::mem::replace(&mut self.wear_band.next_units[stream.index()], next_unit);
        let left = stream != Stream::Meta && next_unit == before && erases < self.wear_band.below;
        left.then(|| {
            self.close(stream, now);
            sb
        })
    }

    /// A closed superblock of map pages for which `free_to_go` holds: one whose wear is below the band, or else the
    /// one with the fewest references.
    pub(crate) fn meta_victim(&self, free_to_go: impl Fn(SuperblockId) -> bool) -> Option<SuperblockId> {
        self.iter()
            .filter(|&(i, sb)| sb.state == State::Closed(Stream::Meta) && sb.in_flight == 0 && free_to_go(i))
            .min_by_key(|&(i, sb)| (sb.erases >= self.wear_band.below, sb.refs, i))
            .map(|(i, _)| i)
    }
}

#[cfg(test)]
#[path = "choice_tests.rs"]
mod tests;
