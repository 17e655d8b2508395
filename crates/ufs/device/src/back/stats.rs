// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counters of the device. No decision depends on them.

use crate::config::CellMode;

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// What the device has done since it was made or since the counters were taken.
        #[derive(Clone, Copy, Default, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
        pub struct DeviceStats {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl DeviceStats {
            /// What was counted since `earlier`, an older copy of the same counters.
            pub fn since(&self, earlier: &DeviceStats) -> DeviceStats {
                DeviceStats { $($name: self.$name - earlier.$name,)* }
            }

            /// Every counter with its name.
            pub fn by_name(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name),)*].into_iter()
            }
        }
    };
}

counters! {
    /// Blocks translated from the map cache.
    map_hits,
    /// Of those, by a run.
    run_hits,
    /// Blocks translated from the table of changes.
    recent_hits,
    /// Blocks of zones, whose place follows from their number.
    zone_hits,
    /// Blocks of zones programmed before they filled a whole program.
    zone_rests,
    /// Of those, read back for one.
    zone_rests_loaded,
    /// Times that a zone had to leave the write buffer, because more zones were written than fit.
    zone_early_flushes,
    /// Blocks that had to wait for a map page.
    map_misses,
    /// Map pages read from flash for translation.
    map_loads,
    /// Of those, ahead of any read.
    map_loads_ahead,
    /// Map pages read ahead that left the map cache before any read asked for them.
    map_ahead_unused,
    /// Blocks translated from a copy of their map page in host memory.
    host_map_hits,
    /// Fetches from host memory.
    host_map_fetches,
    /// Fetches from host memory whose copy had changed meanwhile; they were fetched again or read from flash.
    host_map_stale,
    /// Fetches from host memory that failed their check or named no slice.
    host_map_bad,
    /// Map pages written to host memory because they were read from flash.
    host_map_fills,
    /// Map pages written to host memory because they were written back.
    host_map_updates,
    /// Bytes of entries that came from host memory.
    host_map_bytes_read,
    /// Bytes of entries written to host memory.
    host_map_bytes_written,
    /// Time for which the link to the host was busy with the map, in nanoseconds.
    host_map_link_up_ns,
    /// Time for which the link to the device was busy with the map, in nanoseconds.
    host_map_link_down_ns,
    /// Map pages read from flash for HPB READ BUFFER.
    buffer_map_loads,
    /// Pages of data read from flash.
    data_reads,
    /// Blocks accepted from the host.
    slices_written,
    /// Multi-plane pages programmed, for all purposes.
    programs,
    /// Of those, in SLC mode for the cache.
    slc_programs,
    /// Of those, in SLC mode for map pages, journal and checkpoints.
    slc_map_programs,
    /// Of those, with map pages, the journal or parts of checkpoints.
    meta_programs,
    /// Of those, with the anchor of a checkpoint.
    anchor_programs,
    /// Slices programmed with data from the host.
    slices_programmed,
    /// Of those, into the WriteBooster buffer.
    slices_boosted,
    /// Slices programmed with data that was moved.
    slices_moved,
    /// Of those, out of the WriteBooster buffer, by a flush or because space was short.
    slices_flushed,
    /// Of the other moved ones, to level wear.
    slices_levelled,
    /// Of the other moved ones, because of read disturb.
    slices_refreshed,
    /// Slices programmed as padding of a page that did not fill.
    slices_padded,
    /// Map pages programmed.
    map_writes,
    /// Parts of the journal programmed, each as long as a map page.
    journal_writes,
    /// Parts of checkpoints programmed, each as long as a map page.
    checkpoint_writes,
    /// Units programmed with the table of a superblock.
    table_writes,
    /// Checkpoints taken.
    checkpoints,
    /// Blocks erased (one per die and superblock).
    erases,
    /// Of those, in SLC mode.
    slc_erases,
    /// Of those, for map pages, journal and checkpoints.
    slc_map_erases,
    /// Blocks of superblocks of anchors erased.
    anchor_erases,
    /// Units whose spare areas were read to find the logical pages of a superblock.
    spare_reads,
    /// Units of tables of superblocks read to find their logical pages.
    table_reads,
    /// Map pages read to find which slices of a superblock are current.
    collect_map_loads,
    /// Pages of data read to be moved.
    moved_reads,
    /// Map pages read to be written back with changes.
    write_back_loads,
    /// Superblocks emptied because space was short.
    collected,
    /// Superblocks emptied while the host was idle.
    collected_idle,
    /// Superblocks emptied to level wear.
    levelled,
    /// Superblocks emptied because they were read very often.
    refreshed,
    /// Superblocks emptied to flush the WriteBooster buffer.
    flushed,
    /// Programs that failed.
    program_failures,
    /// Erases that failed.
    erase_failures,
    /// Blocks that went bad (one per die and superblock).
    bad_blocks,
    /// Superblocks retired because too many of their blocks are bad.
    retired_superblocks,
    /// Recoveries after a power cut.
    recoveries,
    /// Time for which writes waited for a checkpoint to be taken, in nanoseconds.
    stall_checkpoint_ns,
    /// Time for which writes waited for map pages to be written back, in nanoseconds.
    stall_map_ns,
    /// Time for which writes waited for space, in nanoseconds.
    stall_space_ns,
    /// Time for which writes waited for the journal, in nanoseconds.
    stall_journal_ns,
    /// Time for which writes waited for programs in progress, in nanoseconds.
    stall_flash_ns,
    /// Blocks read that were served by the write buffer.
    buffer_hits,
    /// Blocks read that are not mapped.
    unmapped_reads,
    /// Writes refused because no erased superblock was left and collection could free none.
    no_space,
    /// HPB READ commands, or READ (16) with a hint to the prototype.
    hpb_reads,
    /// Blocks read at an address from an HPB entry that was found authentic and fresh.
    hpb_hits,
    /// Hits of HPB READs of more than one block.
    hpb_long_hits,
    /// HPB entries of all zeros.
    hpb_zero,
    /// HPB entries for a sub-region that is not handed out, or no longer.
    hpb_inactive,
    /// Authentic entries that are no longer current.
    hpb_stale,
    /// Entries that this device did not make for the block of the read.
    hpb_forged,
    /// Entries that the device made for another block, where they can be distinguished from forged ones; of the
    /// prototype, blocks that were not at the address of a hint.
    hpb_foreign,
    /// Spare areas read to find foreign entries.
    owner_reads,
    /// HPB WRITE BUFFER commands with entries for a coming HPB READ.
    pre_requests,
    /// HPB READ commands that used the entries of their pre-request.
    pre_requests_used,
    /// HPB READ BUFFER commands.
    read_buffers,
    /// HPB WRITE BUFFER commands that drop regions.
    write_buffers,
    /// Responses that carried recommendations, or announced a reset.
    hpb_notifications,
    /// Recommendations sent to activate a sub-region.
    recommended_active,
    /// Recommendations sent to inactivate a region.
    recommended_inactive,
    /// HPB resets announced (operation 02h).
    resets_announced,
    /// Responses of the prototype that named a dirty group.
    dirty_groups_named,
    /// Changed entries sent with responses of the prototype.
    entries_piggybacked,
}

impl DeviceStats {
    /// Blocks erased, by cell mode; those of anchors do not count.
    pub fn erases_by_mode(&self) -> [u64; CellMode::COUNT] {
        let slc = self.slc_erases - self.slc_map_erases;
        [self.erases - self.slc_erases - self.anchor_erases, slc, self.slc_map_erases]
    }

    /// Blocks read whose address in flash had to be found, in any part of the map.
    pub fn translated_reads(&self) -> u64 {
        self.map_hits + self.recent_hits + self.host_map_hits + self.map_misses + self.hpb_hits
    }

    /// Whether data was moved for other reasons than a lack of space.
    pub fn has_moved_unasked(&self) -> bool {
        self.collected_idle + self.levelled + self.refreshed > 0
    }

    /// Slices of data programmed, for the host and moved, per slice programmed for the host, as in formulas of write
    /// amplification. Padding, the map, the journal and checkpoints are not included. `None` if nothing was
    /// programmed for the host.
    pub fn write_amplification(&self) -> Option<f64> {
        let data = self.slices_programmed + self.slices_moved;
        (self.slices_programmed > 0).then(|| data as f64 / self.slices_programmed as f64)
    }
}
