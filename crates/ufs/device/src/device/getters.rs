// SPDX-License-Identifier: MIT OR Apache-2.0
//! Getters of the device: configuration, counters, sizes. None changes its state, except preconditioning.

use super::host_map::blocks_per_fetch;
use crate::SramTable;
use crate::back::{DeviceStats, Hardware, MediaMode, Probe};
use crate::config::{DeviceConfig, MapMemory};
use crate::device::UfsDevice;
use crate::ftl::{Layout, NoSpace, Wear};
use crate::ids::Lpn;
use readpath_flash::{DieSched, Ppn};
use readpath_kit::{BLOCK_BYTES, Ns};
use readpath_proto::zones::{Listed, ZoneCondition};

impl<S: DieSched, M: MediaMode, P: Probe> UfsDevice<S, M, P> {
    /// Counters so far.
    pub fn stats(&self) -> &DeviceStats {
        self.back.counters()
    }

    /// How worn the superblocks are, over the device's life.
    pub fn wear(&self) -> Wear {
        self.ftl.wear()
    }

    /// The configuration this device was made from.
    pub fn config(&self) -> &DeviceConfig {
        &self.config
    }

    /// The serial number, by which hosts tell devices of the same kind apart.
    pub fn serial(&self) -> u64 {
        self.front.target().serial()
    }

    /// Gives the device another serial number than 1. Power cuts and resets leave it.
    pub fn set_serial(&mut self, serial: u64) {
        self.front.target_mut().set_serial(serial);
    }

    /// The observer.
    pub fn probe_mut(&mut self) -> &mut P {
        self.back.probe_mut()
    }

    /// Ends the device and returns its observer.
    pub fn into_probe(self) -> P {
        self.back.into_probe()
    }

    /// SRAM of the modelled device: each table and its bytes.
    pub fn sram(&self) -> Vec<(SramTable, u64)> {
        let (frames, reads_ahead) = (self.ftl.map().cache_frames(), self.config.map_read_ahead > 0);
        let mut tables = match self.config.map_memory {
            // A bit for each page: whether it has been loaded.
            Some(MapMemory::Dram { .. }) => {
                vec![(SramTable::MapPagesInDram, u64::from(self.config.map_pages()).div_ceil(8))]
            }
            _ => vec![
                (SramTable::MapCache, u64::from(frames) * u64::from(self.config.map_page_bytes)),
                (SramTable::MapCacheIndex, map_cache_index(frames, self.config.map_pages(), reads_ahead)),
            ],
        };
        if self.ftl.map().keeps_runs() {
            tables.push((SramTable::MapRuns, self.ftl.map().runs_bytes()));
        }
        tables.extend(self.host_map.sram(&self.config, blocks_per_fetch(&self.config)));
        tables.extend(self.ftl.sram());
        let read_buffers = self.config.hpb.map_or(0, |hpb| u64::from(hpb.read_buffers));
        tables.extend(self.hpb.sram(read_buffers * self.config.read_buffer_bytes()));
        // One block for each command. The model does not hold back longer reads while their data waits for the link.
        tables.push((SramTable::ReadData, u64::from(self.config.queue_depth) * u64::from(BLOCK_BYTES)));
        tables.extend(self.hpb.sram_of_entries(self.config.queue_depth));
        tables
    }

    /// Bytes of this process's memory that grow with the size of the modelled device.
    pub fn process_bytes(&self) -> u64 {
        self.ftl.process_bytes() + self.hpb.process_bytes()
    }

    /// Slices of the flash array, for payloads that keep data per slice.
    pub fn array_slices(&self) -> u32 {
        self.config.geometry.slices()
    }

    /// Slices of the write buffer, for payloads that keep data per slot.
    pub fn buffer_slots(&self) -> usize {
        self.ftl.buffer_slots()
    }

    /// Valid slices as the superblocks count them, for tests of conservation.
    pub fn valid_slices(&self) -> u64 {
        self.ftl.valid_slices()
    }

    /// Whether no request uses `tag`, for users of the device other than a driver.
    pub fn is_tag_free(&self, tag: u8) -> bool {
        self.front.is_free(tag)
    }

    /// Whether a block of a unit was written and not trimmed since, for reports; the device itself would have to read
    /// its map. False beyond the unit.
    pub fn holds_data(&self, lun: u8, block: u32) -> bool {
        self.lpn_of_block(lun, block).is_some_and(|lpn| self.ftl.holds_data(lpn))
    }

    /// The slice that holds a block of a unit, if it is in flash, for those who read an array without its device. None
    /// beyond the unit.
    pub fn slice_of(&self, lun: u8, block: u32) -> Option<Ppn> {
        self.ftl.slice_of(self.lpn_of_block(lun, block)?)
    }

    /// The logical page of a block of a unit, if both exist and the block does not lie in a gap.
    fn lpn_of_block(&self, lun: u8, block: u32) -> Option<Lpn> {
        let lu = self.config.lus.get(usize::from(lun)).filter(|lu| block < lu.blocks)?;
        Some(self.front.base(lun) + lu.data_block(block)?)
    }

    /// Zones of a unit that are empty, written in part, and full; none if it has no zones. For reports: no time passes.
    pub fn zone_counts(&self, lun: u8) -> Option<[usize; 3]> {
        let zones: Vec<_> = self.ftl.zones().report(lun, 0, Listed::NoGaps).ok()?.map(|zone| zone.condition).collect();
        let count = |condition| zones.iter().filter(|zone| **zone == condition).count();
        let (empty, full) = (count(ZoneCondition::Empty), count(ZoneCondition::Full));
        Some([empty, zones.len() - empty - full, full])
    }

    /// Blocks up to the write pointer of each zone of a unit, all of them for a full one; empty if it has no zones. As
    /// REPORT ZONES would say: no time passes.
    pub fn zone_pointers(&self, lun: u8) -> Vec<u32> {
        let zones = self.ftl.zones().report(lun, 0, Listed::NoGaps);
        zones.map_or_else(|_| Vec::new(), |zones| zones.map(|zone| (zone.write_pointer - zone.start) as u32).collect())
    }

    /// Operations in progress, for tests that none leaks.
    pub fn ops_in_use(&self) -> usize {
        self.back.ops().in_use()
    }

    /// Checks that every mapped block's spare area names it; that the references into each superblock equal its
    /// count; that every superblock is on the list of its state; and that the retired superblocks and bad blocks
    /// equal those ever counted, across all power cuts. For tests only: it walks over everything.
    ///
    /// # Errors
    /// The first disagreement found.
    pub fn check_consistency(&self) -> Result<(), String> {
        self.ftl.check_consistency(self.back.counters())?;
        // Without events nothing continues.
        match self.next_deadline() == Ns::NEVER && self.ftl.copies_a_zone() {
            true => Err("a copy of a superblock of a zone has come to a halt".to_owned()),
            false => Ok(()),
        }
    }

    /// Maps these ranges, each a logical unit, its first block and how many, as if they had been written one after the
    /// other, in no time. `place` is called with each logical page and its slice, for payloads that keep data.
    ///
    /// # Errors
    /// [`NoSpace`] when there are not enough erased superblocks.
    ///
    /// # Panics
    /// If the device has been written to.
    pub fn precondition(
        &mut self,
        ranges: impl IntoIterator<Item = (u8, u32, u32)>,
        layout: Layout,
        seed: u64,
        place: impl FnMut(u32, Ppn),
    ) -> Result<(), NoSpace> {
        let front = &self.front;
        // Gaps hold nothing, so the range begins at the next block of data.
        let config = &self.config;
        let at = |lun: u8, block: u32| config.lus[usize::from(lun)].data_blocks_before(block);
        let ranges = ranges.into_iter().map(|(lun, first, blocks)| {
            let (from, to) = (at(lun, first), at(lun, first + blocks));
            (front.base(lun) + from, to - from)
        });
        self.ftl.precondition(ranges, layout, seed, M::ACTIVE.then_some(place))
    }

    /// Loads map pages into SRAM in no time, from the first on, as many as the map cache holds. A loss of power drops
    /// them.
    pub fn preload_map(&mut self) {
        self.ftl.map_mut().preload();
    }
}

/// Bytes of the page of each frame, its two links, and the frame of each map page, each of 2 bytes as long as 16 bits
/// suffice; of 4 bytes that say when the page of each frame was written; and, if pages are read ahead, of a bit that
/// says whether its page is used.
fn map_cache_index(frames: u32, pages: u32, reads_ahead: bool) -> u64 {
    let bytes = |of: u32| if of > 1 << 16 { 4 } else { 2 };
    let marks = if reads_ahead { u64::from(frames).div_ceil(8) } else { 0 };
    u64::from(frames) * (bytes(pages) + 2 * bytes(frames) + 4) + u64::from(pages) * bytes(frames) + marks
}

#[cfg(test)]
mod tests {
    #[test]
    fn numbers_above_16_bits_take_4_bytes() {
        assert_eq!(super::map_cache_index(90, 4096, false), 90 * 10 + 4096 * 2);
        assert_eq!(super::map_cache_index(90, 65_537, true), 12 + 90 * (4 + 2 * 2 + 4) + 65_537 * 2);
        assert_eq!(super::map_cache_index(70_000, 131_072, false), 70_000 * (4 + 2 * 4 + 4) + 131_072 * 4);
    }
}
