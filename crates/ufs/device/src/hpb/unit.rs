// SPDX-License-Identifier: MIT OR Apache-2.0
//! HPB of one logical unit: which sub-regions the host holds, which of their entries are still current, the counts of
//! reads, and recommendations. In host control mode the host loads and drops what it decides, and the device only
//! reports which of its sub-regions have become worthless.
//!
//! All tables are SRAM of the modelled device and counted by [`HpbUnit::sram_bytes`]. Whether an entry is *fresh* is
//! decided without the map: each handed-out sub-region has a generation, which its entries carry in their tags, or
//! under which they are encrypted, and a bit for every few entries that is set when one of them changes. A change
//! makes the good entries of its chunk slower, never wrong.

#[cfg(test)]
mod tests;

use super::entry::EntryCodec;
use super::recommend::Recommended;
use crate::back::DeviceStats;
use crate::config::{HpbConfig, LuConfig, Protection, Verification};
use fixedbitset::FixedBitSet;
use readpath_flash::Ppn;
use readpath_kit::Ns;
use readpath_proto::hpb::Control;
use readpath_proto::typed::{HpbEntry, SubRegion};

/// First chunk of a region that has no slot.
const NO_SLOT: u32 = u32::MAX;

/// Result of judging an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// Authentic and fresh: the block is at this address.
    Good(Ppn),
    /// All zeros: the host holds nothing.
    Zero,
    /// Its sub-region is not handed out.
    Inactive,
    /// Authentic, but outdated.
    Stale,
    /// Not made by this device for this block.
    Forged,
}

impl Verdict {
    /// Counts an entry that was not good.
    pub(crate) fn count(self, stats: &mut DeviceStats) {
        let counter = match self {
            Verdict::Good(_) => return,
            Verdict::Zero => &mut stats.hpb_zero,
            Verdict::Inactive => &mut stats.hpb_inactive,
            Verdict::Stale => &mut stats.hpb_stale,
            Verdict::Forged => &mut stats.hpb_forged,
        };
        *counter += 1;
    }
}

/// HPB state of one logical unit.
pub(crate) struct HpbUnit {
    /// First logical page of the unit, so that tags name blocks uniquely across units.
    base: u32,
    region_shift: u32,
    sub_region_shift: u32,
    sub_regions_per_region: u32,
    chunk_shift: u32,
    sub_region_chunks_shift: u32,
    /// Chunks of a region, a power of two, minus one.
    region_chunks_mask: u32,
    blocks: u32,
    config: HpbConfig,
    pinned: std::ops::Range<u32>,

    /// First chunk of each region; [`NO_SLOT`] unless the host may hold the region.
    first_chunk_of_region: Vec<u32>,
    region_of_slot: Vec<u16>,
    free_slots: Vec<u16>,
    handed: HandOuts,
    /// Per slot, sub-region and chunk: an entry changed since the hand-out.
    changed: FixedBitSet,
    /// Reads of each region, halved periodically.
    reads: Vec<u16>,
    /// Misses of each sub-region since the last hand-out or recommendation.
    misses: Vec<u8>,
    reads_until_decay: u32,
    hand: u32,
    /// Entries are verified, by their tags.
    tagged: bool,
}

/// States of the sub-regions that the host may hold, per slot.
struct HandOuts {
    /// The generation of the entries given out last; 0 = none. Every check looks it up, so it is not with what is
    /// rarely needed.
    generations: Vec<u32>,
    others: Vec<HandOut>,
}

/// What else is known of a sub-region that the host may hold.
#[derive(Clone, Copy)]
struct HandOut {
    /// The generation before the last, only to distinguish a stale entry from a forged one.
    previous: u32,
    /// A recommendation is not repeated before this time.
    quiet_until: Ns,
}

impl HandOut {
    const NONE: HandOut = HandOut { previous: 0, quiet_until: Ns::ZERO };
}

impl HandOuts {
    fn new(sub_regions: usize) -> HandOuts {
        HandOuts { generations: vec![0; sub_regions], others: vec![HandOut::NONE; sub_regions] }
    }

    fn forget(&mut self, sub_regions: std::ops::Range<usize>) {
        self.generations[sub_regions.clone()].fill(0);
        self.others[sub_regions].fill(HandOut::NONE);
    }

    fn forget_all(&mut self) {
        self.forget(0..self.generations.len());
    }
}

impl HpbUnit {
    /// A unit without hand-outs. `base` is its first logical page.
    pub(crate) fn new(base: u32, lu: &LuConfig, config: &HpbConfig) -> Self {
        let region_shift = u32::from(config.region_size) - 3;
        let sub_region_shift = u32::from(config.sub_region_size) - 3;
        let regions = (u64::from(lu.blocks)).div_ceil(1 << region_shift) as u32;
        let per_region = 1u32 << (region_shift - sub_region_shift);
        // The host drops a region before it loads another, but the commands may arrive in either order.
        let more = u32::from(config.control == Control::Host);
        let slots = (u32::from(lu.max_active_regions) + more).min(regions.max(1)).min(u32::from(u16::MAX));
        let chunk_shift = config.freshness_chunk_entries.trailing_zeros();
        let chunks = 1u32 << (sub_region_shift - chunk_shift);
        let mut unit = HpbUnit {
            base,
            region_shift,
            sub_region_shift,
            sub_regions_per_region: per_region,
            chunk_shift,
            sub_region_chunks_shift: sub_region_shift - chunk_shift,
            region_chunks_mask: (1 << (region_shift - chunk_shift)) - 1,
            blocks: lu.blocks,
            config: *config,
            pinned: u32::from(lu.pinned_start)..u32::from(lu.pinned_start) + u32::from(lu.pinned_regions),
            first_chunk_of_region: vec![NO_SLOT; regions as usize],
            region_of_slot: vec![0; slots as usize],
            free_slots: Vec::with_capacity(slots as usize),
            handed: HandOuts::new((slots * per_region) as usize),
            changed: FixedBitSet::with_capacity((slots * per_region * chunks) as usize),
            reads: vec![0; regions as usize],
            misses: vec![0; (regions * per_region) as usize],
            reads_until_decay: 0,
            hand: 0,
            tagged: config.verification == Verification::On && config.entries.protection == Protection::Mac,
        };
        unit.reset();
        unit
    }

    /// Forgets all hand-outs; only the pinned regions keep their slots. Older entries no longer verify.
    pub(crate) fn reset(&mut self) {
        self.first_chunk_of_region.fill(NO_SLOT);
        self.handed.forget_all();
        self.misses.fill(0);
        let slots = self.region_of_slot.len() as u16;
        self.free_slots.clear();
        self.free_slots.extend((0..slots).rev());
        for region in self.pinned.clone() {
            self.assign_slot(region);
        }
        self.reads_until_decay = self.decay_period();
    }

    /// Bytes of device SRAM that this unit's tables take.
    pub(crate) fn sram_bytes(&self) -> u64 {
        let slots = self.region_of_slot.len() as u64;
        let sub_regions = slots * u64::from(self.sub_regions_per_region);
        // Region of each slot, the free slots, slot of each region: numbers of 2 bytes each.
        let slot_tables = slots * 4 + self.first_chunk_of_region.len() as u64 * 2;
        // Generation, the one before, and the time of the last recommendation in milliseconds: 4 bytes each.
        let hand_outs = sub_regions * 12;
        let freshness = (sub_regions << self.sub_region_chunks_shift).div_ceil(8);
        let activity = self.reads.len() as u64 * 2 + self.misses.len() as u64;
        slot_tables + hand_outs + freshness + activity
    }

    /// Number of regions of the unit.
    pub(crate) fn regions(&self) -> u32 {
        self.first_chunk_of_region.len() as u32
    }

    /// The blocks of a sub-region, or `None` if it does not exist (the last region may be short).
    pub(crate) fn blocks_of(&self, at: SubRegion) -> Option<std::ops::Range<u32>> {
        if u32::from(at.region) >= self.regions() || u32::from(at.index) >= self.sub_regions_per_region {
            return None;
        }
        let first = (u64::from(at.region) << self.region_shift) + (u64::from(at.index) << self.sub_region_shift);
        let end = (first + (1 << self.sub_region_shift)).min(u64::from(self.blocks));
        (first < end).then_some(first as u32..end as u32)
    }

    /// Judges the entry that came with an HPB READ of `block`.
    #[inline(always)]
    pub(crate) fn verify(&self, codec: &EntryCodec, block: u32, entry: HpbEntry, array_slices: u32) -> Verdict {
        if self.tagged {
            self.verify_as::<true>(codec, block, entry, array_slices)
        } else {
            self.verify_untagged(codec, block, entry, array_slices)
        }
    }

    #[inline(never)]
    fn verify_untagged(&self, codec: &EntryCodec, block: u32, entry: HpbEntry, array_slices: u32) -> Verdict {
        if self.config.verification == Verification::Off {
            let ppn = codec.address(entry);
            return if entry != HpbEntry::ZERO && ppn.0 < array_slices { Verdict::Good(ppn) } else { Verdict::Zero };
        }
        self.verify_as::<false>(codec, block, entry, array_slices)
    }

    #[inline(always)]
    fn verify_as<const TAGGED: bool>(
        &self,
        codec: &EntryCodec,
        block: u32,
        entry: HpbEntry,
        array_slices: u32,
    ) -> Verdict {
        if entry == HpbEntry::ZERO {
            return Verdict::Zero;
        }
        let Some(chunk) = self.chunk_of(block) else { return Verdict::Inactive };
        let generation = self.handed.generations[self.hand_out_of(chunk)];
        if generation == 0 {
            return Verdict::Inactive;
        }
        let lpn = self.base + block;
        let opened =
            if TAGGED { codec.open_tagged(lpn, entry, generation) } else { codec.open(lpn, entry, generation) };
        let Some(place) = opened else {
            return unopened(codec, lpn, entry, self.handed.others[self.hand_out_of(chunk)].previous);
        };
        let ppn = codec.address_in(place);
        if ppn.0 >= array_slices {
            Verdict::Forged
        } else if self.changed.contains(chunk) {
            Verdict::Stale
        } else {
            Verdict::Good(ppn)
        }
    }

    /// Whether the `verdict` on an entry for `block` took a second check, against the hand-out before.
    pub(crate) fn was_checked_twice(&self, block: u32, verdict: Verdict) -> bool {
        let Some(chunk) = self.chunk_of(block) else { return false };
        let is_current = verdict == Verdict::Stale && self.changed.contains(chunk);
        let previous = self.handed.others[self.hand_out_of(chunk)].previous;
        matches!(verdict, Verdict::Stale | Verdict::Forged) && !is_current && previous != 0
    }

    /// Whether `entry` was made for `block`, in the current hand-out or the one before.
    pub(crate) fn made(&self, codec: &EntryCodec, block: u32, entry: HpbEntry) -> bool {
        let Some(chunk) = self.chunk_of(block) else { return false };
        let index = self.hand_out_of(chunk);
        let generations = [self.handed.generations[index], self.handed.others[index].previous];
        generations.iter().any(|&g| g != 0 && codec.open(self.base + block, entry, g).is_some())
    }

    /// How many of `blocks` blocks from `block` on lie in a row, if its `entry` is good. The run in the entry never
    /// extends beyond its sub-region; none of its blocks may have changed since.
    pub(crate) fn run(&self, codec: &EntryCodec, block: u32, entry: HpbEntry, blocks: u32) -> u32 {
        let Some(mut chunk) = self.chunk_of(block).filter(|_| self.config.verification == Verification::On) else {
            return codec.run(entry).min(blocks);
        };
        let place = codec.open(self.base + block, entry, self.handed.generations[self.hand_out_of(chunk)]);
        let most = place.map_or(1, |place| codec.run_in(place)).min(blocks);
        let per_chunk = 1 << self.chunk_shift;
        let mut fresh = per_chunk - (block & (per_chunk - 1));
        while fresh < most {
            chunk += 1;
            if self.changed.contains(chunk) {
                break;
            }
            fresh += per_chunk;
        }
        fresh.min(most)
    }

    /// Whether `first` and `last` are in the same sub-region.
    pub(crate) fn is_one_sub_region(&self, first: u32, last: u32) -> bool {
        first >> self.sub_region_shift == last >> self.sub_region_shift
    }

    /// The mapping of `block` changes now.
    #[inline]
    pub(crate) fn block_changed(&mut self, block: u32) {
        if let Some(chunk) = self.chunk_of(block) {
            self.changed.insert(chunk);
        }
    }

    /// Notes that the present entries of `at` are handed out, under a generation never used before. False when the
    /// region has no slot and can get none: the entries then must not be handed out. In host control mode a host that
    /// forgot to report a dropped region does not block itself: the least read region loses its slot.
    pub(crate) fn hand_out(&mut self, at: SubRegion, generation: u32) -> bool {
        let region = u32::from(at.region);
        if !self.has_slot(region) && !self.assign_slot(region) {
            let Some(victim) = self.is_host_control().then(|| self.coldest()).flatten() else { return false };
            self.release_slot(victim);
            self.assign_slot(region);
        }
        let index = self.index(region, u32::from(at.index));
        self.changed.remove_range(index << self.sub_region_chunks_shift..(index + 1) << self.sub_region_chunks_shift);
        let previous = std::mem::replace(&mut self.handed.generations[index], generation);
        self.handed.others[index] = HandOut { previous, quiet_until: Ns::ZERO };
        self.misses[(region * self.sub_regions_per_region + u32::from(at.index)) as usize] = 0;
        true
    }

    /// Whether the unit is in host control mode.
    pub(crate) fn is_host_control(&self) -> bool {
        self.config.control == Control::Host
    }

    /// The host no longer holds `region`. Pinned regions stay.
    pub(crate) fn inactivate(&mut self, region: u32) {
        if self.has_slot(region) && !self.pinned.contains(&region) {
            self.release_slot(region);
        }
    }

    /// Notes a read of `block`.
    #[inline(always)]
    pub(crate) fn note_read(&mut self, block: u32) {
        let reads = &mut self.reads[(block >> self.region_shift) as usize];
        *reads = reads.saturating_add(1);
        self.reads_until_decay -= 1;
        if self.reads_until_decay == 0 {
            self.decay();
        }
    }

    /// Notes a read of `block`, which is mapped, without a good entry. Returns a recommendation to be made, if any.
    pub(crate) fn note_miss(&mut self, now: Ns, block: u32) -> Option<Recommended> {
        let region = block >> self.region_shift;
        let sub = block >> self.sub_region_shift;
        let at = SubRegion { region: region as u16, index: (sub % self.sub_regions_per_region) as u16 };
        let misses = &mut self.misses[sub as usize];
        *misses = misses.saturating_add(1);
        let count = *misses;
        if self.has_slot(region) {
            let index = self.index(region, u32::from(at.index));
            let host = self.is_host_control();
            let is_handed_out = self.handed.generations[index] != 0;
            if host && !is_handed_out {
                return None;
            }
            let handed = &mut self.handed.others[index];
            let after = if is_handed_out { self.config.refresh_after } else { self.config.activate_after };
            if count < after || now < handed.quiet_until {
                return None;
            }
            handed.quiet_until = now + self.config.repeat_after;
            self.misses[sub as usize] = 0;
            return Some(Recommended { activate: at, inactivate: None });
        }
        if self.is_host_control() {
            return None;
        }
        let full = self.free_slots.is_empty();
        if count < if full { self.config.replace_after } else { self.config.activate_after } {
            return None;
        }
        self.misses[sub as usize] = 0;
        let mut inactivate = None;
        if full {
            let victim = self.coldest()?;
            self.release_slot(victim);
            inactivate = Some(victim as u16);
        }
        self.assign_slot(region);
        let index = self.index(region, u32::from(at.index));
        self.handed.others[index].quiet_until = now + self.config.repeat_after;
        Some(Recommended { activate: at, inactivate })
    }

    /// A recommendation could not be queued and has to be made again later.
    pub(crate) fn not_recommended(&mut self, at: SubRegion) {
        if self.has_slot(u32::from(at.region)) {
            let index = self.index(u32::from(at.region), u32::from(at.index));
            self.handed.others[index].quiet_until = Ns::ZERO;
        }
    }

    /// The chunk of `block`, if its region has a slot. Chunks are numbered over all slots, and each sub-region has a
    /// power of two of them, so that one lookup of the region suffices to check an entry.
    #[inline(always)]
    fn chunk_of(&self, block: u32) -> Option<usize> {
        let first = self.first_chunk_of_region[(block >> self.region_shift) as usize];
        let chunk = first.wrapping_add(block >> self.chunk_shift & self.region_chunks_mask);
        (first != NO_SLOT).then_some(chunk as usize)
    }

    /// Index of a chunk's sub-region in [`HandOuts`].
    #[inline(always)]
    fn hand_out_of(&self, chunk: usize) -> usize {
        chunk >> self.sub_region_chunks_shift
    }

    /// Index in [`HandOuts`] of a sub-region whose region has a slot.
    fn index(&self, region: u32, sub: u32) -> usize {
        self.hand_out_of(self.first_chunk_of_region[region as usize] as usize) + sub as usize
    }

    fn has_slot(&self, region: u32) -> bool {
        self.first_chunk_of_region[region as usize] != NO_SLOT
    }

    fn chunks_per_region(&self) -> u32 {
        self.region_chunks_mask + 1
    }

    fn assign_slot(&mut self, region: u32) -> bool {
        let Some(slot) = self.free_slots.pop() else { return false };
        self.first_chunk_of_region[region as usize] = u32::from(slot) * self.chunks_per_region();
        self.region_of_slot[usize::from(slot)] = region as u16;
        let first = usize::from(slot) * self.sub_regions_per_region as usize;
        let sub_regions = first..first + self.sub_regions_per_region as usize;
        self.handed.forget(sub_regions);
        true
    }

    fn release_slot(&mut self, region: u32) {
        let first = std::mem::replace(&mut self.first_chunk_of_region[region as usize], NO_SLOT);
        self.free_slots.push((first / self.chunks_per_region()) as u16);
    }

    /// The least read of a few active regions, examined in turn; `None` if all are pinned.
    fn coldest(&mut self) -> Option<u32> {
        const CANDIDATES: u32 = 8;
        let slots = self.region_of_slot.len() as u32;
        let mut coldest: Option<(u16, u32)> = None;
        let mut seen = 0;
        for _ in 0..slots {
            self.hand = (self.hand + 1) % slots;
            let candidate = u32::from(self.region_of_slot[self.hand as usize]);
            if self.pinned.contains(&candidate) {
                continue;
            }
            let reads = self.reads[candidate as usize];
            if coldest.is_none_or(|(r, _)| reads < r) {
                coldest = Some((reads, candidate));
            }
            seen += 1;
            if seen == CANDIDATES {
                break;
            }
        }
        coldest.map(|(_, region)| region)
    }

    /// Reads between two halvings: enough that a region's count is meaningful when reads are spread evenly.
    fn decay_period(&self) -> u32 {
        const READS_PER_REGION: u32 = 64;
        (self.regions() * READS_PER_REGION).max(1024)
    }

    fn decay(&mut self) {
        self.reads.iter_mut().for_each(|r| *r /= 2);
        self.reads_until_decay = self.decay_period();
    }
}

/// The verdict on an entry that does not open under the newest hand-out; `previous` is the one before.
#[cold]
fn unopened(codec: &EntryCodec, lpn: u32, entry: HpbEntry, previous: u32) -> Verdict {
    if previous != 0 && codec.open(lpn, entry, previous).is_some() { Verdict::Stale } else { Verdict::Forged }
}
