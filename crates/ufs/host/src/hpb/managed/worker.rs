// SPDX-License-Identifier: MIT OR Apache-2.0
//! The worker of a managed unit: announces drops, then loads queued sub-regions. It sends commands through a
//! [`Port`].

use super::ManagedDriver;
use super::device_view::Idle;
use crate::hpb::{Common, HpbRequest, LuState, Port, RegionState};
use crate::ids::{Id, RegionId, SubRegionId};
use crate::policy::MapPolicy;
use readpath_kit::Ns;
use readpath_proto::typed::SubRegion;

impl ManagedDriver {
    pub(in crate::hpb) fn run_worker(&mut self, common: &mut Common, now: Ns, port: &mut impl Port) {
        if common.state != LuState::Present || !common.kicked {
            return;
        }
        common.kicked = false;
        self.announce_drops(common, port);
        loop {
            self.set_others(port.in_flight());
            // The end of a load starts the worker again.
            if self.in_flight >= common.params.inflight_map_req {
                return;
            }
            if !port.has_tag() {
                // Tags come back with replies.
                common.kicked |= !self.wanted.is_empty();
                return;
            }
            let srgn = match self.next_wanted() {
                Some(srgn) => srgn,
                None => match self.when_idle(now) {
                    Idle::Load(srgn) => srgn,
                    Idle::Busy => return common.kicked = true,
                    Idle::Nothing => return,
                },
            };
            if common.table.is_loading(srgn) {
                continue;
            }
            if self.abandoned.contains(&srgn) || !self.make_room_for(common, srgn) {
                common.counters.refuse_cnt += 1;
                continue;
            }
            // The device has to learn of the old region's drop before it hands out the new one.
            self.announce_drops(common, port);
            if !port.has_tag() {
                self.want(srgn);
                return common.kicked = true;
            }
            self.begin_load(common, srgn, port);
        }
    }

    fn begin_load(&mut self, common: &mut Common, srgn: SubRegionId, port: &mut impl Port) {
        self.activate(common, common.table.region_of(srgn));
        common.table.begin_load(srgn);
        debug_assert!(common.table.used() <= self.most_maps, "the limit of memory");
        // There was a tag, and no other command has taken it.
        port.send(common.load_request(srgn));
        common.counters.map_req_cnt += 1;
        self.in_flight += 1;
        common.clean_for_load(srgn, port);
    }

    /// Announces dropped regions to the device, as long as there are tags.
    fn announce_drops(&mut self, common: &mut Common, port: &mut impl Port) {
        while self.unannounced_count > 0 {
            let Some(region) = self.unannounced.ones().next() else { return };
            if !port.send(HpbRequest::Drop { region: RegionId::new(region as u32).number() }) {
                common.kicked = true;
                return;
            }
            self.unannounced.set(region, false);
            self.unannounced_count -= 1;
            common.counters.umap_req_cnt += 1;
        }
    }

    /// Makes room for a map, if it is worth more than another. False if there is none.
    fn make_room_for(&mut self, common: &mut Common, srgn: SubRegionId) -> bool {
        if common.table.has_memory(srgn) {
            return true;
        }
        let region = common.table.region_of(srgn);
        loop {
            let is_new = common.table.region(region) == RegionState::Inactive;
            let too_many_regions = is_new && self.active >= self.capacity;
            if common.table.used() < self.most_maps && !too_many_regions {
                return true;
            }
            if self.most_maps == 0 {
                return false;
            }
            let Some(victim) = self.victim_for(&common.table, Some(srgn)) else { return false };
            common.counters.evict_cnt += 1;
            if too_many_regions {
                let region = common.table.region_of(victim);
                common.table.sub_regions_of(region).for_each(|srgn| self.drop_sub_region(common, srgn));
            } else {
                self.drop_sub_region(common, victim);
            }
        }
    }

    fn activate(&mut self, common: &mut Common, region: RegionId) {
        if common.table.region(region) != RegionState::Inactive {
            return;
        }
        common.table.activate(region);
        self.active += 1;
        if self.unannounced.contains(region.row()) {
            self.unannounced.set(region.row(), false);
            self.unannounced_count -= 1;
        }
    }

    /// A load has ended, with its entries or (`None`) an error.
    pub(in crate::hpb) fn loaded(&mut self, common: &mut Common, at: SubRegion, entries: Option<&[u8]>) {
        let srgn = SubRegionId::named(common.table.geometry(), at);
        let region = RegionId::from(at.region);
        common.kicked |= common.state == LuState::Present;
        self.in_flight = self.in_flight.saturating_sub(1);
        if let Some(i) = self.abandoned.iter().position(|&s| s == srgn) {
            self.abandoned.swap_remove(i);
            if common.table.region(region) == RegionState::Inactive {
                // The device has just handed the sub-region out, so an earlier announcement of its drop does not
                // count.
                self.announce_later(region);
            }
            return;
        }
        if !common.table.is_loading(srgn) {
            return;
        }
        if entries.is_none() {
            // The next read requests it again.
            common.counters.map_error_cnt += 1;
            common.table.stop_use(srgn);
            return self.drop_or_stop_use(common, srgn);
        }
        common.table.end_load(srgn, entries);
        if !common.table.is_pinned(region) {
            self.policy.loaded(srgn);
        }
    }
}
