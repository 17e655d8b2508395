// SPDX-License-Identifier: MIT OR Apache-2.0
//! The driver of a unit whose maps a policy of this host manages ([`crate::policy`]), in host control mode, over the
//! table of maps: it loads what the policy requests as tags and memory allow, evicts what the policy names, and keeps
//! memory below a limit that may change at any time. Every sub-region is loaded and dropped on its own; the device is
//! informed about a region when nothing of it is left.
//!
//! It knows nothing of Linux's lists and counters, nor how a policy decides.

mod device_view;
mod pre_requests;
mod reads;
#[cfg(test)]
mod tests;
mod worker;
mod written;

use super::table::MapTable;
use super::{Common, LuState};
use crate::config::{HpbOptions, LongReads};
use crate::ids::{Id, RegionId, SubRegionId};
use crate::policy::{ManagedPolicy, MapPolicy, Policy};
use device_view::DeviceView;
use fixedbitset::FixedBitSet;
use readpath_kit::Ns;
use readpath_proto::typed::SubRegion;
use std::collections::VecDeque;

pub(crate) use pre_requests::Route;
pub(crate) use reads::TimedWhat;

/// The most sub-regions that wait to be loaded. Further ones are refused; the next read requests them again.
const MOST_WANTED: usize = 64;
/// Host memory of the counters and constants of a managed unit and its policy, for any policy. A constant, not
/// measured: results must not depend on how a compiler lays out structs.
const STATE_BYTES: u64 = 824;

pub(super) struct ManagedDriver {
    kind: ManagedPolicy,
    policy: Policy,
    /// Sub-regions to be loaded, in order; below, as bits.
    wanted: VecDeque<SubRegionId>,
    is_wanted: FixedBitSet,
    /// Assumptions about the device, if the policy or long reads need them.
    view: Option<Box<DeviceView>>,
    /// Dropped regions that are not announced to the device yet.
    unannounced: FixedBitSet,
    unannounced_count: u32,
    /// Active regions besides pinned ones; below, the most of them.
    active: u32,
    capacity: u32,
    most_maps: u32,
    /// Loads in flight; below, when the last one ended.
    in_flight: u32,
    loaded_at: Ns,
    /// Sub-regions that were dropped during their load, and are not to be loaded before it ends.
    abandoned: Vec<SubRegionId>,
}

impl ManagedDriver {
    /// A driver that keeps at most `capacity` regions active besides pinned ones.
    pub(super) fn new(kind: ManagedPolicy, options: &HpbOptions, table: &MapTable, capacity: u32) -> Self {
        let (regions, sub_regions) = (table.geometry().regions(), table.geometry().sub_regions());
        let measures = options.long_reads == LongReads::Measured;
        let needs_view = measures || kind == ManagedPolicy::Exclusive;
        let view = needs_view.then(|| Box::new(DeviceView::new(sub_regions, measures, options.exclusive.quiet)));
        let mut managed = ManagedDriver {
            kind,
            policy: Policy::new(kind, options, sub_regions),
            wanted: VecDeque::with_capacity(MOST_WANTED),
            is_wanted: FixedBitSet::with_capacity(sub_regions as usize),
            view,
            unannounced: FixedBitSet::with_capacity(regions as usize),
            unannounced_count: 0,
            active: 0,
            capacity,
            most_maps: table.maps(),
            in_flight: 0,
            loaded_at: Ns::ZERO,
            abandoned: Vec::with_capacity(64),
        };
        managed.want_pinned(table);
        managed
    }

    pub(super) fn policy_name(&self) -> &'static str {
        self.kind.name()
    }

    /// Memory of the driver, its policy, and the list of free maps.
    pub(super) fn bytes(&self, table: &MapTable) -> u64 {
        let lists = self.wanted.capacity() * 4 + self.abandoned.capacity() * 4;
        let bits = self.is_wanted.len().div_ceil(8) + self.unannounced.len().div_ceil(8);
        let view = self.view.as_ref().map_or(0, |view| view.bytes());
        STATE_BYTES + (lists + bits) as u64 + view + self.policy.bytes() + table.free_list_bytes()
    }

    /// Lowers the number of maps to at most `most`.
    pub(super) fn bound_maps(&mut self, most: u64) {
        self.most_maps = self.most_maps.min(most.min(u64::from(u32::MAX)) as u32);
    }

    /// Sets the most maps held. Maps beyond are dropped at once.
    pub(super) fn limit_maps(&mut self, common: &mut Common, most: u64) {
        self.most_maps = most.min(u64::from(common.table.maps())) as u32;
        while common.table.used() > self.most_maps {
            let victim = self.victim_for(&common.table, None).or_else(|| loading_victim(&common.table));
            let Some(victim) = victim else { break };
            self.drop_sub_region(common, victim);
            common.counters.shrink_cnt += 1;
        }
    }

    pub(super) fn present(&mut self, common: &mut Common) {
        common.kicked = true;
    }

    /// The unit has released its memory and will not be used any more.
    pub(super) fn destroy(&mut self) {}

    pub(super) fn suspend(&mut self) {}

    pub(super) fn resume(&mut self, common: &mut Common, _: Ns) {
        common.kicked = true;
    }

    /// The controller is being reset: commands in flight will not be answered.
    pub(super) fn reset(&mut self, common: &mut Common, _: bool) {
        for srgn in common.table.all_sub_regions() {
            if common.table.is_loading(srgn) {
                self.drop_or_stop_use(common, srgn);
            }
        }
        self.forget_wanted();
        self.in_flight = 0;
        self.abandoned.clear();
        self.want_pinned(&common.table);
    }

    pub(super) fn restored(&mut self, common: &mut Common, _: Ns) {
        common.kicked = true;
    }

    pub(super) fn next_timer(&self, common: &Common) -> Ns {
        if common.state == LuState::Present { self.view_timer() } else { Ns::NEVER }
    }

    pub(super) fn advance(&mut self, common: &mut Common, now: Ns) {
        common.kicked |= self.view_timer_is_over(now);
    }

    /// Handles the device's recommendations to load. Sub-regions that are not held are left to the policy. Held ones
    /// without writes since their load were recommended only because reads were sent without an entry on purpose.
    /// Recommendations to drop are left to the policy as well.
    pub(super) fn region_update(&mut self, common: &mut Common, active: &[SubRegion], _: &[u16]) {
        for &at in active {
            let srgn = SubRegionId::named(common.table.geometry(), at);
            if self.policy.heeds_advice() && common.table.is_dirty(srgn) {
                common.counters.rcmd_active_cnt += 1;
                common.kicked = true;
                common.counters.refuse_cnt += u64::from(!self.want(srgn));
            }
        }
    }

    /// The device has lost its HPB state: all entries are invalid.
    pub(super) fn device_reset(&mut self, common: &mut Common) {
        common.table.all_sub_regions().for_each(|srgn| self.drop_or_stop_use(common, srgn));
        self.forget_wanted();
        // The device no longer knows them either.
        self.unannounced.clear();
        self.unannounced_count = 0;
        self.want_pinned(&common.table);
    }

    /// Queues a sub-region. False if the queue is full.
    fn want(&mut self, srgn: SubRegionId) -> bool {
        if self.is_wanted.contains(srgn.row()) {
            return true;
        }
        if self.wanted.len() >= MOST_WANTED {
            return false;
        }
        self.is_wanted.insert(srgn.row());
        self.wanted.push_back(srgn);
        true
    }

    /// Queues the sub-regions of pinned regions, which are always held.
    fn want_pinned(&mut self, table: &MapTable) {
        table.pinned_sub_regions().for_each(|srgn| {
            self.want(srgn);
        });
    }

    fn next_wanted(&mut self) -> Option<SubRegionId> {
        let srgn = self.wanted.pop_front()?;
        self.is_wanted.set(srgn.row(), false);
        Some(srgn)
    }

    fn forget_wanted(&mut self) {
        while self.next_wanted().is_some() {}
        self.forget_later();
    }

    fn announce_later(&mut self, region: RegionId) {
        self.unannounced_count += u32::from(!self.unannounced.put(region.row()));
    }

    fn victim_for(&mut self, table: &MapTable, candidate: Option<SubRegionId>) -> Option<SubRegionId> {
        self.policy.victim(candidate, |srgn| Some(srgn) != candidate && !table.is_loading(srgn))
    }

    /// Releases the map of a sub-region at once, even during its load.
    fn drop_sub_region(&mut self, common: &mut Common, srgn: SubRegionId) {
        let table = &mut common.table;
        if !table.has_memory(srgn) {
            return;
        }
        if table.is_loading(srgn) {
            self.abandoned.push(srgn);
        }
        table.release(srgn);
        self.policy.dropped(srgn);
        let region = table.region_of(srgn);
        let is_empty = !table.sub_regions_of(region).any(|srgn| table.has_memory(srgn));
        if is_empty && !table.is_pinned(region) {
            table.deactivate(region);
            self.active -= 1;
            self.announce_later(region);
            common.kicked |= common.state == LuState::Present;
        }
    }

    /// Drops a sub-region; one of a pinned region keeps its memory, and is loaded again at the next read.
    fn drop_or_stop_use(&mut self, common: &mut Common, srgn: SubRegionId) {
        if !common.table.is_pinned(common.table.region_of(srgn)) {
            return self.drop_sub_region(common, srgn);
        }
        if common.table.is_loading(srgn) {
            self.abandoned.push(srgn);
        }
        common.table.stop_use(srgn);
    }
}

/// A sub-region that is being loaded, to be dropped if no other is left.
fn loading_victim(table: &MapTable) -> Option<SubRegionId> {
    table.all_sub_regions().find(|&srgn| table.has_memory(srgn) && !table.is_pinned(table.region_of(srgn)))
}
