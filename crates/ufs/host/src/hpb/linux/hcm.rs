// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counters and timers of host control mode: reads of regions, whether they were written, and read timeouts (Linux
//! 6.1 `ufshpb.c`). It decides nothing about loads and drops, and does not know the states of regions.

use crate::ids::{Id, RegionId, SubRegionId};
use crate::params::HpbParams;
use fixedbitset::FixedBitSet;
use readpath_kit::Ns;
use readpath_proto::hpb::HpbGeometry;

pub(super) struct Hcm {
    pub params: HpbParams,
    /// Each sub-region has an UPDATE mark; on Linux each region has one, which the first touched sub-region takes.
    marks_are_fine: bool,
    reads: Vec<u32>,
    /// Reads of each region: the sum over its sub-regions.
    region_reads: Vec<u32>,
    /// Regions written since one of their maps was loaded (Linux `RGN_FLAG_DIRTY`).
    dirty: FixedBitSet,
    /// To be loaded again at the next access (Linux `RGN_FLAG_UPDATE`).
    update: FixedBitSet,
    /// Read timeout of each region; valid while the region is active.
    deadlines: Vec<Ns>,
    /// Timeouts left before the region is dropped.
    expiries: Vec<u32>,
    pub in_flight: u32,
    pub poll_at: Ns,
}

fn ms(n: u32) -> Ns {
    Ns::from_ms(u64::from(n))
}

impl Hcm {
    pub(super) fn new(geometry: &HpbGeometry, params: HpbParams, marks_are_fine: bool, now: Ns) -> Self {
        let (regions, sub_regions) = (geometry.regions() as usize, geometry.sub_regions() as usize);
        Hcm {
            params,
            marks_are_fine,
            reads: vec![0; sub_regions],
            region_reads: vec![0; regions],
            dirty: FixedBitSet::with_capacity(regions),
            update: FixedBitSet::with_capacity(if marks_are_fine { sub_regions } else { regions }),
            deadlines: vec![Ns::NEVER; regions],
            expiries: vec![0; regions],
            in_flight: 0,
            poll_at: now + ms(params.timeout_polling_interval_ms),
        }
    }

    /// Counts a read of the sub-region; returns whether it is to be queued for loading.
    pub(super) fn read(&mut self, region: RegionId, srgn: SubRegionId) -> bool {
        let reads = &mut self.reads[srgn];
        *reads = reads.wrapping_add(1);
        let region_reads = &mut self.region_reads[region];
        *region_reads = region_reads.wrapping_add(1);
        let due = self.reads[srgn] == self.params.activation_thld;
        // Linux leaves the mark in place when the counter already requires a load.
        due || self.take_mark(region, srgn)
    }

    /// Counts a write to the sub-region; returns whether it is to be queued for loading.
    pub(super) fn write(&mut self, region: RegionId, srgn: SubRegionId) -> bool {
        let reads = std::mem::take(&mut self.reads[srgn]);
        let region_reads = &mut self.region_reads[region];
        *region_reads = region_reads.wrapping_sub(reads);
        self.dirty.insert(region.row());
        self.take_mark(region, srgn)
    }

    pub(super) fn reads_of(&self, region: RegionId) -> u32 {
        self.region_reads[region]
    }

    /// Whether a region has enough reads to displace another.
    pub(super) fn may_displace(&self, region: RegionId) -> bool {
        self.reads_of(region) >= self.params.eviction_thld_enter
    }

    /// Whether a region has too many reads to be displaced.
    pub(super) fn keeps(&self, region: RegionId) -> bool {
        self.reads_of(region) > self.params.eviction_thld_exit
    }

    pub(super) fn is_throttled(&self) -> bool {
        self.in_flight >= self.params.inflight_map_req
    }

    pub(super) fn load_ends(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    pub(super) fn is_dirty(&self, region: RegionId) -> bool {
        self.dirty.contains(region.row())
    }

    /// A map of the region has been loaded.
    pub(super) fn clean(&mut self, region: RegionId) {
        self.dirty.set(region.row(), false);
    }

    fn mark_of(&self, region: RegionId, srgn: SubRegionId) -> usize {
        if self.marks_are_fine { srgn.row() } else { region.row() }
    }

    /// Marks the sub-region (for Linux: its region) to be loaded again at the next access.
    pub(super) fn mark(&mut self, region: RegionId, srgn: SubRegionId) {
        let at = self.mark_of(region, srgn);
        self.update.insert(at);
    }

    fn take_mark(&mut self, region: RegionId, srgn: SubRegionId) -> bool {
        let at = self.mark_of(region, srgn);
        let marked = self.update.contains(at);
        self.update.set(at, false);
        marked
    }

    pub(super) fn rewind(&mut self, now: Ns, region: RegionId) {
        self.deadlines[region] = now + ms(self.params.read_timeout_ms);
        self.expiries[region] = self.params.read_timeout_expiries;
    }

    /// Checks the timer of an active region; returns whether the region is to be dropped.
    pub(super) fn is_over(&mut self, now: Ns, region: RegionId) -> bool {
        if now <= self.deadlines[region] {
            return false;
        }
        let expiries = &mut self.expiries[region];
        *expiries = expiries.wrapping_sub(1);
        if *expiries == 0 || self.is_dirty(region) {
            return true;
        }
        self.deadlines[region] = now + ms(self.params.read_timeout_ms);
        false
    }

    pub(super) fn stop_polling(&mut self) {
        self.poll_at = Ns::NEVER;
    }

    pub(super) fn poll_again(&mut self, now: Ns) {
        self.poll_at = now + ms(self.params.timeout_polling_interval_ms);
    }

    /// Whether counters have to be normalised after a read of `region`.
    pub(super) fn is_too_high(&self, region: RegionId, geometry: &HpbGeometry) -> bool {
        self.reads_of(region) > geometry.entries_per_sub_region()
    }

    /// Shifts all counters down (Linux `ufshpb_normalization_work_handler`).
    pub(super) fn normalize(&mut self, geometry: &HpbGeometry) {
        // A shift of 32 and more leaves nothing. Linux allows 16 at most.
        let factor = self.params.normalization_factor.min(31);
        let of_regions = self.reads.chunks_mut(geometry.sub_regions_per_region() as usize);
        for (sum, reads) in self.region_reads.iter_mut().zip(of_regions) {
            *sum = 0;
            for reads in reads {
                *reads >>= factor;
                *sum = sum.wrapping_add(*reads);
            }
        }
    }

    pub(super) fn forget(&mut self, region: RegionId, geometry: &HpbGeometry) {
        self.region_reads[region] = 0;
        region.sub_regions(geometry).for_each(|srgn| self.reads[srgn] = 0);
    }

    pub(super) fn bytes(&self) -> u64 {
        let bitmaps = (self.dirty.len() + self.update.len()).div_ceil(8);
        (self.reads.len() * 4 + self.region_reads.len() * (4 + 8 + 4) + bitmaps) as u64
    }
}
