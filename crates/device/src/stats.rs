// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counters of the device. Plain numbers; nothing here influences a decision.

/// What the device has done since it was made or since the counters were taken.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct DeviceStats {
    /// Blocks translated from the map cache.
    pub map_hits: u64,
    /// Blocks that had to wait for a map page.
    pub map_misses: u64,
    /// Map pages read from flash for translation.
    pub map_loads: u64,
    /// Map pages read from flash for HPB READ BUFFER.
    pub buffer_map_loads: u64,
    /// Pages of data read from flash.
    pub data_reads: u64,
    /// Multi-plane pages programmed.
    pub programs: u64,
    /// Slices programmed with data.
    pub slices_programmed: u64,
    /// Slices programmed as padding of a page that could not wait.
    pub slices_padded: u64,
    /// Blocks erased (one per die and superblock).
    pub erases: u64,
    /// Blocks read that were served by the write buffer.
    pub buffer_hits: u64,
    /// Blocks read that are not mapped.
    pub unmapped_reads: u64,
    /// Writes refused because no erased superblock was left.
    pub no_space: u64,
    /// HPB READ commands.
    pub hpb_reads: u64,
    /// HPB entries found authentic and fresh.
    pub hpb_hits: u64,
    /// HPB entries of all zeros.
    pub hpb_zero: u64,
    /// HPB entries for a sub-region that the device has not given out (any more).
    pub hpb_inactive: u64,
    /// Authentic entries that are no longer current.
    pub hpb_stale: u64,
    /// Entries that this device did not make for this block.
    pub hpb_forged: u64,
    /// HPB READ BUFFER commands.
    pub read_buffers: u64,
    /// Recommendations sent, sub-regions to activate.
    pub recommended_active: u64,
    /// Recommendations sent, regions to inactivate.
    pub recommended_inactive: u64,
    /// HPB resets announced (operation 02h).
    pub resets_announced: u64,
}

impl DeviceStats {
    /// What was counted since `earlier`, an older copy of the same counters.
    pub fn since(&self, earlier: &DeviceStats) -> DeviceStats {
        DeviceStats {
            map_hits: self.map_hits - earlier.map_hits,
            map_misses: self.map_misses - earlier.map_misses,
            map_loads: self.map_loads - earlier.map_loads,
            buffer_map_loads: self.buffer_map_loads - earlier.buffer_map_loads,
            data_reads: self.data_reads - earlier.data_reads,
            programs: self.programs - earlier.programs,
            slices_programmed: self.slices_programmed - earlier.slices_programmed,
            slices_padded: self.slices_padded - earlier.slices_padded,
            erases: self.erases - earlier.erases,
            buffer_hits: self.buffer_hits - earlier.buffer_hits,
            unmapped_reads: self.unmapped_reads - earlier.unmapped_reads,
            no_space: self.no_space - earlier.no_space,
            hpb_reads: self.hpb_reads - earlier.hpb_reads,
            hpb_hits: self.hpb_hits - earlier.hpb_hits,
            hpb_zero: self.hpb_zero - earlier.hpb_zero,
            hpb_inactive: self.hpb_inactive - earlier.hpb_inactive,
            hpb_stale: self.hpb_stale - earlier.hpb_stale,
            hpb_forged: self.hpb_forged - earlier.hpb_forged,
            read_buffers: self.read_buffers - earlier.read_buffers,
            recommended_active: self.recommended_active - earlier.recommended_active,
            recommended_inactive: self.recommended_inactive - earlier.recommended_inactive,
            resets_announced: self.resets_announced - earlier.resets_announced,
        }
    }
}
