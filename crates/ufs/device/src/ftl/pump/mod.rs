// SPDX-License-Identifier: MIT OR Apache-2.0
//! Orders the six parts of flash translation and carries out what concerns several of them. It owns only the
//! configuration and the queue of effects, and leaves every decision to the part that can make it alone.
//!
//! `order` runs background work; `ended` handles operations that have ended; `power` handles cuts and the start of a
//! device; `zones` and `refresh` are for zones. This file is the interface to the parts above.

mod ended;
mod order;
mod power;
mod refresh;
#[cfg(test)]
pub(super) mod tests;
mod zones;

use super::bytes::Own;
use super::collect::Collect;
use super::effects::{Effect, Effects};
use super::log::Log;
use super::map::Map;
use super::space::Space;
use super::write::Write;
use super::{BoosterFlags, Mapping, Stream, Superblock, Wear, Zones};
use crate::SramTable;
use crate::back::Hardware;
use crate::config::{CellMode, DeviceConfig};
use crate::ids::Lpn;
use readpath_flash::{Geometry, Ppn};
use readpath_kit::{BLOCK_BYTES, Ns};
use readpath_proto::booster::LIFE_EXCEEDED;
use readpath_proto::desc::{HEALTH_BYTES, health};
use std::sync::Arc;

pub(crate) struct Ftl {
    config: Arc<DeviceConfig>,
    geometry: Geometry,
    /// The most slices that one array operation reads, a power of two, less one.
    read_mask: u32,
    space: Space,
    map: Map,
    zones: Zones,
    write: Write,
    log: Log,
    collect: Collect,
    effects: Effects,
}

impl Ftl {
    /// Fresh from the factory: nothing is mapped, everything but the map's superblocks is erased.
    pub(crate) fn new(config: Arc<DeviceConfig>) -> Self {
        let mut space = Space::new(&config);
        space.open(Stream::Meta, 0).expect("the configuration leaves erased superblocks");
        Ftl {
            map: Map::new(&config),
            zones: Zones::new(&config),
            write: Write::new(&config),
            log: Log::new(config.clone(), &space),
            collect: Collect::new(&config),
            effects: Effects::new(),
            geometry: config.geometry,
            read_mask: config.geometry.slices_per_read(config.flash.plane_reads) - 1,
            space,
            config,
        }
    }

    fn logical_blocks(&self) -> u32 {
        self.config.logical_blocks() as u32
    }

    /// The map, as far as the parts above may ask it.
    #[inline(always)]
    pub(crate) fn map(&self) -> &Map {
        &self.map
    }

    /// The map, to look pages up and to wait for them.
    #[inline(always)]
    pub(crate) fn map_mut(&mut self) -> &mut Map {
        &mut self.map
    }

    /// The zones of all units.
    pub(crate) fn zones(&self) -> &Zones {
        &self.zones
    }

    /// The zones, to write to them.
    pub(crate) fn zones_mut(&mut self) -> &mut Zones {
        &mut self.zones
    }

    #[inline(always)]
    pub(crate) fn take_effect(&mut self) -> Option<Effect> {
        self.effects.take()
    }

    pub(crate) fn background(&self) -> Ns {
        self.collect.idle().check_at()
    }

    /// Slices from `ppn` on that one array operation reads at most: those to the end of its page or multi-plane page.
    #[inline(always)]
    pub(crate) fn slices_per_read_from(&self, ppn: Ppn) -> u32 {
        self.read_mask + 1 - (ppn.0 & self.read_mask)
    }

    /// The logical page that the spare area of a slice names. The caller must have read the slice.
    pub(crate) fn spare_area(&self, ppn: Ppn) -> Option<Lpn> {
        self.space.spares().lpn(ppn)
    }

    /// Cell mode of the superblock of a slice.
    pub(crate) fn mode_of(&self, ppn: Ppn) -> CellMode {
        self.space.mode_of(ppn)
    }

    /// Whether records of the journal have to be written that are not being written.
    pub(crate) fn must_write_journal(&self) -> bool {
        self.log.journal().must_write()
    }

    /// After a recovery: generations up to this one may have been handed out.
    pub(crate) fn generations_durable(&self) -> u64 {
        self.log.generations().durable()
    }

    /// Programs may fail from now on.
    pub(crate) fn expect_failing_programs(&mut self) {
        self.space.expect_failing_programs();
    }

    /// How worn the superblocks are, over the device's life.
    pub(crate) fn wear(&self) -> Wear {
        self.space.wear()
    }

    /// The health descriptor: bad blocks against the reserve, what all erases have used of the cells' life, and the
    /// life of the cache in SLC mode.
    pub(crate) fn health(&self) -> [u8; HEALTH_BYTES] {
        let pre_eol = match self.config.reserve_used_percent(self.space.given_up().1) {
            0..80 => 1,
            80..90 => 2,
            _ => 3,
        };
        let dies = f64::from(self.geometry.dies());
        let used = self.config.life_used(self.space.erases_by_mode().map(|erases| erases as f64 * dies));
        let tenths = (10.0 * used.iter().sum::<f64>()) as u64;
        let cells = (1 + tenths).min(u64::from(LIFE_EXCEEDED)) as u8;
        health(pre_eol, [cells, self.collect.slc_cache().life(&self.space)])
    }

    /// Slots of the write buffer.
    pub(crate) fn buffer_slots(&self) -> usize {
        self.write.buffer().capacity()
    }

    /// Mapped blocks in flash, for tests of conservation.
    pub(crate) fn valid_slices(&self) -> u64 {
        let in_flash = |&lpn: &Lpn| match self.map.is_zoned(lpn) {
            true => self.zones.mapping(&self.space, &self.map, lpn).flash().is_some(),
            false => self.map.flash_entry(lpn).mapping().flash().is_some(),
        };
        Lpn(0).run(self.logical_blocks()).filter(in_flash).count() as u64
    }

    /// Numbers of retired superblocks and of bad blocks.
    pub(crate) fn given_up(&self) -> (u32, u32) {
        self.space.given_up()
    }

    /// Whether a block was written and not trimmed since.
    pub(crate) fn holds_data(&self, lpn: Lpn) -> bool {
        self.mapping(lpn) != Mapping::Unmapped
    }

    /// The slice that holds a block, if it is in flash.
    pub(crate) fn slice_of(&self, lpn: Lpn) -> Option<Ppn> {
        self.mapping(lpn).flash()
    }

    /// Where a block is, at no cost: not for decisions of the device, but for blocks of zones.
    pub(crate) fn mapping(&self, lpn: Lpn) -> Mapping {
        match self.map.is_zoned(lpn) {
            true => self.zones.mapping(&self.space, &self.map, lpn),
            false => self.map.get(lpn),
        }
    }

    /// The logical page of a block of a unit with zones, and where that is, if it is in flash.
    pub(crate) fn in_zone(&self, lun: u8, block: u32) -> Option<(Lpn, Ppn)> {
        self.zones.in_flash(&self.space, &self.map, lun, block)
    }

    /// Bytes of this process's memory that grow with the size of the modelled device.
    pub(crate) fn process_bytes(&self) -> u64 {
        self.map.process_bytes() + self.space.spares().process_bytes()
    }

    /// SRAM of the modelled device without the map cache: each table and its bytes.
    pub(crate) fn sram(&self) -> Vec<(SramTable, u64)> {
        let (settings, geometry) = (&self.config.ftl, &self.geometry);
        let slices = u64::from(geometry.slices_per_superblock());
        let zones = self.zones.any().then(|| (SramTable::Zones, self.zones.sram_bytes()));
        let parts = self.zones.any().then(|| (SramTable::ZoneParts, self.config.zone_parts_bytes()));
        let tables = vec![
            (SramTable::MapDirectory, self.map.directory_bytes()),
            // Logical page and state of each slot.
            (SramTable::WriteBufferIndex, self.write.buffer().capacity() as u64 * 8),
            (SramTable::Superblocks, u64::from(geometry.superblocks()) * Superblock::SRAM_BYTES),
            (SramTable::WriteBuffer, self.write.buffer().capacity() as u64 * u64::from(BLOCK_BYTES)),
            (SramTable::Changes, self.map.changes().sram_bytes()),
            (SramTable::Journal, Log::JOURNAL_BYTES),
            // Each page with the time at which the version that it replaces was put together.
            (SramTable::MapWrites, u64::from(settings.map_write_pages) * u64::from(self.config.map_page_bytes + 4)),
            (SramTable::MoveBuffer, u64::from(settings.move_buffer_blocks) * u64::from(BLOCK_BYTES)),
            // Logical page of each slice of the victims, and whether it is current.
            (SramTable::SlicesToMove, u64::from(settings.collect_together) * slices * 4),
            // Logical page of each slice of the open superblocks of data.
            (
                SramTable::OpenSuperblocks,
                match settings.superblock_tables {
                    true => u64::from(3 + u32::from(settings.hot_table_entries > 0)) * slices * 4,
                    false => 0,
                },
            ),
            (SramTable::WrittenBlocks, u64::from(settings.hot_table_entries) * 4),
        ];
        tables.into_iter().chain(zones).chain(parts).collect()
    }

    /// Attributes 1Ch to 1Fh of a device that has WriteBooster.
    pub(crate) fn booster_attribute(&self, idn: u8) -> u32 {
        self.collect.slc_cache().attribute(idn, &self.space, self.geometry.slices_per_unit())
    }

    /// The host has changed one of WriteBooster's flags.
    pub(crate) fn set_booster_flags(&mut self, flags: BoosterFlags) {
        self.collect.slc_cache_mut().set_flags(flags);
    }

    /// Schedules a check for idleness if background work may be useful then; returns whether it did.
    pub(crate) fn arm_background(&mut self, now: Ns) -> bool {
        self.collect.arm_background(now)
    }

    /// Sets whether the host allows background operations (fBackgroundOpsEn).
    pub(crate) fn set_background(&mut self, on: bool) {
        self.collect.idle_mut().allow_collection(on);
    }

    /// Urgency of collection (bBackgroundOpStatus): 0 none, 1 not critical, 2 writes are slowed, 3 writes wait.
    pub(crate) fn background_need(&self) -> u8 {
        self.collect.need(&self.space)
    }

    /// Whether the hand-out number `next` may be used. No number may be used twice under one key, not even after a
    /// power cut, so the journal names numbers long before they are used.
    pub(crate) fn reserve_generation(&mut self, next: u64) -> bool {
        self.log.reserve_generation(next)
    }

    /// For tests: makes spare areas forget their order within `span` writes and trims, and renumbers from
    /// `renumber_at` on. There must not have been any.
    pub(crate) fn limit_numbers(&mut self, span: u32, renumber_at: u32) {
        assert!(self.write.sequence() == 0, "from the beginning");
        self.log.limit_numbers(span, renumber_at);
    }

    /// From now on everything that is programmed is reported as bytes. Nothing has been programmed yet, or the device
    /// was loaded.
    pub(crate) fn keep_in_flash(&mut self) {
        self.log.keep_in_flash();
    }

    /// Takes the metadata to be stored, once for each [`crate::MediaOp::Own`].
    pub(crate) fn take_own(&mut self) -> Option<Own> {
        self.log.take_own()
    }

    /// Queues metadata that does not come from flash translation.
    pub(crate) fn export_other(&mut self, own: Own, hw: &mut impl Hardware) {
        self.log.export_other(own, hw);
    }
}
