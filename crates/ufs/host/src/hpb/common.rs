// SPDX-License-Identifier: MIT OR Apache-2.0
//! The state that both drivers of a unit share: the table of maps, the state of the unit, counters and limits. It
//! knows neither of the drivers.

use super::table::MapTable;
use super::{HpbCounters, HpbRequest, LuState, Port};
use crate::ids::SubRegionId;
use crate::params::HpbParams;
use crate::quirks::Quirks;
use readpath_kit::BLOCK_BYTES;

pub(super) struct Common {
    pub table: MapTable,
    pub state: LuState,
    /// The worker has to run.
    pub kicked: bool,
    pub counters: HpbCounters,
    pub params: HpbParams,
    pub quirks: Quirks,
    /// Writes make entries dirty.
    pub dirty_bitmap: bool,
    /// Blocks that one HPB READ may cover with the entry of the first.
    pub single_blocks: u32,
    /// Blocks that one HPB READ may cover.
    pub max_blocks: u32,
}

impl Common {
    /// The command that loads a sub-region.
    pub(super) fn load_request(&self, srgn: SubRegionId) -> HpbRequest {
        let geometry = self.table.geometry();
        let at = srgn.name(geometry);
        HpbRequest::Load {
            at,
            bytes: geometry.map_bytes_of(at),
            // Linux allocates the same number of pages for every sub-region, also a short one
            // (`ufshpb_execute_map_req`).
            room_bytes: geometry.pages_per_sub_region() * BLOCK_BYTES,
        }
    }

    /// Makes the entries of these blocks dirty, before they are written.
    pub(super) fn mark_dirty(&mut self, block: u32, blocks: u32) {
        if self.dirty_bitmap {
            self.table.mark_dirty(block, blocks, !self.quirks.ignores_writes_during_loads);
        }
    }

    /// Clears the dirty bitmap when the load of a sub-region is sent, except for writes in flight: they may reach the
    /// device before or after it has made the entries, so these cannot be trusted. Linux clears the bitmap when the
    /// load has ended.
    pub(super) fn clean_for_load(&mut self, srgn: SubRegionId, port: &impl Port) {
        self.table.clean(srgn);
        port.writes_in_flight(|block, blocks| self.mark_dirty(block, blocks));
    }
}
