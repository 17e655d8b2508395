// SPDX-License-Identifier: MIT OR Apache-2.0
//! Zones: the write pointer and the condition of each, which writes and which actions they allow, how many may be open,
//! where their data lies in flash and in the write buffer. Its table is SRAM of the modelled device, 8 bytes a zone.
//!
//! It may not know commands beyond the blocks that they name. A zone's blocks have consecutive logical pages, behind
//! those of all units without zones; gaps have none.
//!
//! *States* (ZBC-2). A write pointer moves when a write is accepted, before its data is in flash. A zone that is being
//! reset takes no write until its blocks are trimmed and the journal says so: otherwise old data could show behind the
//! pointer after a power cut.

mod placed;
mod recover;
mod refresh;
mod tails;
#[cfg(test)]
mod tests;

pub(in crate::ftl) use placed::Extent;
use placed::Placed;
pub(in crate::ftl) use recover::{Found, ZoneState, ZoneStates};
pub(in crate::ftl) use refresh::{Refresh, Step};
use tails::Tails;
pub(in crate::ftl) use tails::{Kind, Tail};

use super::map::{Map, Mapping};
use super::space::Space;
use crate::config::{DeviceConfig, ZoneConfig, ZoneRule};
use crate::ids::{Lpn, Mark, SuperblockId, TagRef};
use readpath_flash::Ppn;
use readpath_kit::Divisor;
use readpath_proto::typed::{Sense, ZoneAction};
use readpath_proto::zones::{Listed, Zone as Described, ZoneCondition};
use std::collections::BTreeMap;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Condition {
    Empty,
    ImplicitOpen,
    ExplicitOpen,
    Closed,
    Full,
}

/// A zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Zone {
    /// Blocks up to the write pointer. Of a full zone, those that were written.
    written: u32,
    condition: Condition,
    /// It is being reset.
    resets: bool,
}

impl Zone {
    const EMPTY: Zone = Zone { written: 0, condition: Condition::Empty, resets: false };

    fn is_open(&self) -> bool {
        matches!(self.condition, Condition::ImplicitOpen | Condition::ExplicitOpen)
    }

    /// It is no longer open.
    fn close(&mut self) {
        if self.is_open() {
            self.condition = if self.written == 0 { Condition::Empty } else { Condition::Closed };
        }
    }
}

/// A zone of a unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ZoneId {
    unit: usize,
    zone: usize,
}

/// The zones of a unit.
struct Unit {
    config: ZoneConfig,
    lun: u8,
    /// The first logical page.
    base: Lpn,
    /// Number of the first zone, counted through all units.
    first_zone: u32,
    /// Logical blocks, those of gaps included.
    blocks: u64,
    zones: Vec<Zone>,
    /// Blocks of a zone, and those from the start of a zone to that of the next.
    capacity: Divisor,
    stride: Divisor,
}

/// A reset in progress.
struct Reset {
    /// The command. It may have been aborted; the reset goes on.
    tag: TagRef,
    zones: Vec<ZoneId>,
}

/// What flash translation asks of a zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::ftl) struct Seen {
    pub written: u32,
    pub capacity: u32,
    pub is_full: bool,
    pub is_open: bool,
    pub resets: bool,
}

pub(crate) struct Zones {
    units: Vec<Unit>,
    resets: Vec<Reset>,
    placed: Placed,
    tails: Tails,
    /// By zone, the superblock that its next program goes to, and the record of the journal that has to be in flash
    /// before.
    writes_to: BTreeMap<u32, (SuperblockId, Mark)>,
    refresh: Option<Refresh>,
}

impl Zones {
    pub(in crate::ftl) fn new(config: &DeviceConfig) -> Self {
        let mut base = Lpn(0);
        let mut first_zone = 0;
        let mut units = Vec::new();
        for (lun, lu) in (0..).zip(&config.lus) {
            if let Some(zones) = lu.zones {
                let table = vec![Zone::EMPTY; lu.zone_count() as usize];
                units.push(Unit::new((lun, lu.blocks), zones, base, first_zone, table));
                first_zone += lu.zone_count();
            }
            base = base + lu.data_blocks();
        }
        let program = config.zone_program_blocks();
        Zones {
            units,
            resets: Vec::new(),
            placed: Placed::new(first_zone as usize, program, config.zone_extents()),
            tails: Tails::default(),
            writes_to: BTreeMap::new(),
            refresh: None,
        }
    }

    /// Whether the device has a zoned unit.
    pub(crate) fn any(&self) -> bool {
        !self.units.is_empty()
    }

    /// Whether a logical page is in a zone.
    pub(in crate::ftl) fn holds(&self, lpn: Lpn) -> bool {
        self.units.iter().any(|unit| unit.holds(lpn))
    }

    /// Number of zones of all units.
    pub(in crate::ftl) fn count(&self) -> u32 {
        self.units.iter().map(|unit| unit.zones.len() as u32).sum()
    }

    /// The zone of a logical page, counted through all units, and the block within.
    #[inline]
    pub(in crate::ftl) fn zone_of(&self, lpn: Lpn) -> Option<(u32, u32)> {
        let unit = self.units.iter().find(|unit| unit.holds(lpn))?;
        let at = lpn - unit.base;
        Some((unit.first_zone + unit.capacity.divide(at), unit.capacity.remainder(at)))
    }

    fn unit_of_zone(&self, zone: u32) -> &Unit {
        let of = |unit: &&Unit| (unit.first_zone..unit.first_zone + unit.zones.len() as u32).contains(&zone);
        self.units.iter().find(of).expect("a zone belongs to a unit")
    }

    /// The first logical page of a zone.
    pub(in crate::ftl) fn first_of(&self, zone: u32) -> Lpn {
        let unit = self.unit_of_zone(zone);
        unit.first((zone - unit.first_zone) as usize)
    }

    /// What there is to know of a zone.
    pub(in crate::ftl) fn see(&self, zone: u32) -> Seen {
        let unit = self.unit_of_zone(zone);
        let at = &unit.zones[(zone - unit.first_zone) as usize];
        Seen {
            written: at.written,
            capacity: unit.config.blocks,
            is_full: at.condition == Condition::Full,
            is_open: at.is_open(),
            resets: at.resets,
        }
    }

    /// Blocks of a zone that wait in the write buffer before they are programmed.
    pub(in crate::ftl) fn flush_blocks(&self, zone: u32) -> u32 {
        self.unit_of_zone(zone).config.flush_blocks
    }

    /// Where a block of a zone is. Nothing is behind write pointers.
    #[inline]
    pub(in crate::ftl) fn mapping(&self, space: &Space, map: &Map, lpn: Lpn) -> Mapping {
        let Some((zone, block)) = self.zone_of(lpn) else { return Mapping::Unmapped };
        if let Some(ppn) = self.placed.slice(space, zone, block) {
            return Mapping::Flash(ppn);
        }
        if let Some(slot) = self.tails.get(zone).and_then(|tail| tail.slot(block)) {
            return Mapping::Buffered(slot);
        }
        map.rest(lpn).map_or(Mapping::Unmapped, Mapping::Flash)
    }

    /// The logical page of a block of a unit, and where that is, if it is in flash.
    pub(in crate::ftl) fn in_flash(&self, space: &Space, map: &Map, lun: u8, block: u32) -> Option<(Lpn, Ppn)> {
        let unit = self.units.iter().find(|unit| unit.lun == lun && u64::from(block) < unit.blocks)?;
        let (zone, offset) = unit.within(block.into())?;
        let lpn = unit.first(zone) + offset;
        let placed = self.placed.slice(space, unit.first_zone + zone as u32, offset);
        Some((lpn, placed.or_else(|| self.mapping(space, map, lpn).flash())?))
    }

    pub(in crate::ftl) fn placed(&self) -> &Placed {
        &self.placed
    }

    pub(in crate::ftl) fn placed_mut(&mut self) -> &mut Placed {
        &mut self.placed
    }

    pub(in crate::ftl) fn tails(&self) -> &Tails {
        &self.tails
    }

    pub(in crate::ftl) fn tails_mut(&mut self) -> &mut Tails {
        &mut self.tails
    }

    /// A block of a zone has entered the write buffer.
    #[inline]
    pub(in crate::ftl) fn entered_buffer(&mut self, lpn: Lpn, slot: u16) {
        let Some((zone, block)) = self.zone_of(lpn) else { return };
        self.tails.of(zone, block).push(slot);
    }

    /// The superblock that the next program of a zone goes to, and the record that has to be in flash before.
    pub(in crate::ftl) fn writes_to(&self, zone: u32) -> Option<(SuperblockId, Mark)> {
        self.writes_to.get(&zone).copied()
    }

    /// Sets the superblock that the next program of a zone goes to; returns the one before.
    pub(in crate::ftl) fn write_to(&mut self, zone: u32, to: Option<(SuperblockId, Mark)>) -> Option<SuperblockId> {
        let before = match to {
            Some(to) => self.writes_to.insert(zone, to),
            None => self.writes_to.remove(&zone),
        };
        before.map(|(superblock, _)| superblock)
    }

    /// After recovery: superblocks of zones are referenced by what they hold; those that no zone goes on with are
    /// closed.
    pub(in crate::ftl) fn hold(&self, space: &mut Space) {
        for zone in 0..self.count() {
            let extents = self.placed.extents(zone);
            let ends = extents.iter().skip(1).map(|(from, _)| *from).chain([self.placed.blocks(zone)]);
            for ((from, extent), end) in extents.iter().zip(ends) {
                space.add_refs(extent.superblock, end - from);
            }
        }
        let goes_on = |sb| self.writes_to.values().any(|(to, _)| *to == sb);
        for sb in space.all().filter(|sb| !goes_on(*sb)) {
            space.close_for_zone(sb, 0);
        }
    }

    /// The data of a zone that is being reset is gone.
    pub(in crate::ftl) fn emptied(&mut self, zone: u32) {
        let Some(unit) = self
            .units
            .iter_mut()
            .find(|unit| (unit.first_zone..unit.first_zone + unit.zones.len() as u32).contains(&zone))
        else {
            return;
        };
        unit.zones[(zone - unit.first_zone) as usize] = Zone { resets: true, ..Zone::EMPTY };
    }

    /// Bytes of SRAM that the table takes.
    pub(in crate::ftl) fn sram_bytes(&self) -> u64 {
        u64::from(self.count()) * ZoneConfig::ENTRY_BYTES
    }

    fn unit(&self, lun: u8) -> Option<usize> {
        self.units.iter().position(|unit| unit.lun == lun)
    }

    /// The settings of a unit, if it has zones.
    pub(crate) fn config(&self, lun: u8) -> Option<&ZoneConfig> {
        self.unit(lun).map(|unit| &self.units[unit].config)
    }

    /// The first logical page of a read. Reads above write pointers and across zones succeed.
    ///
    /// # Errors
    /// If blocks do not exist, or lie in a gap.
    pub(crate) fn read(&self, lun: u8, lba: u64, blocks: u32) -> Result<Lpn, Sense> {
        let unit = self.unit(lun).map(|unit| &self.units[unit]).ok_or(Sense::LUN_NOT_SUPPORTED)?;
        unit.place(lba, blocks)
    }

    /// Accepts a write: its write pointer moves. Returns the first logical page.
    ///
    /// # Errors
    /// If the zone takes no write of these blocks; then nothing has changed. Rules are looked at in the order of Linux
    /// `scsi_debug`: range, gap, end of the zone, full, write pointer, open zones.
    pub(crate) fn write(&mut self, lun: u8, lba: u64, blocks: u32) -> Result<Lpn, Sense> {
        let unit = self.unit(lun).ok_or(Sense::LUN_NOT_SUPPORTED)?;
        let unit = &mut self.units[unit];
        if lba.saturating_add(blocks.into()) > unit.blocks {
            return Err(Sense::LBA_OUT_OF_RANGE);
        }
        if blocks == 0 {
            return Ok(unit.base);
        }
        let (zone, offset) = unit.within(lba).ok_or(Sense::GAP_ZONE)?;
        if blocks > unit.config.blocks - offset {
            return Err(Sense::WRITE_BOUNDARY);
        }
        let at = unit.zones[zone];
        if at.condition == Condition::Full {
            return Err(Sense::INVALID_FIELD);
        }
        if offset != at.written || at.resets {
            return Err(Sense::UNALIGNED_WRITE);
        }
        if !at.is_open() {
            unit.make_room(zone)?;
            unit.zones[zone].condition = Condition::ImplicitOpen;
        }
        let capacity = unit.config.blocks;
        let at = &mut unit.zones[zone];
        at.written += blocks;
        if at.written == capacity {
            at.condition = Condition::Full;
        }
        Ok(unit.first(zone) + offset)
    }

    /// The data of a write from `lpn` on was dropped before it was accepted. The write pointer falls back to it;
    /// returns the logical pages of its zone from there on.
    pub(in crate::ftl) fn take_back(&mut self, lpn: Lpn) -> Option<(Lpn, u32)> {
        let unit = self.units.iter_mut().find(|unit| unit.holds(lpn))?;
        let at = lpn - unit.base;
        let (zone, offset) = ((at / unit.config.blocks) as usize, at % unit.config.blocks);
        let (capacity, found) = (unit.config.blocks, &mut unit.zones[zone]);
        if offset < found.written {
            if found.condition == Condition::Full && found.written == capacity {
                found.condition = Condition::Closed;
            }
            found.written = offset;
            if offset == 0 && found.condition == Condition::Closed {
                found.condition = Condition::Empty;
            }
        }
        Some((lpn, capacity - offset))
    }

    /// OPEN, CLOSE or FINISH ZONE of the zone that begins at `lba`, or of all zones. Returns the logical pages of the
    /// zones that are full from now on without having been written to the end: the first, and how many were written.
    ///
    /// # Errors
    /// If there is no such zone, or too many would be open; then nothing has changed.
    pub(crate) fn change(&mut self, lun: u8, action: ZoneAction, lba: Option<u64>) -> Result<Vec<(Lpn, u32)>, Sense> {
        let unit = self.unit(lun).ok_or(Sense::LUN_NOT_SUPPORTED)?;
        let unit = &mut self.units[unit];
        let one = lba.map(|lba| unit.begins(lba)).transpose()?;
        match action {
            ZoneAction::Open => unit.open(one)?,
            ZoneAction::Close => unit.meant(one).for_each(|zone| unit.zones[zone].close()),
            ZoneAction::Finish => return Ok(unit.finish(one)),
            ZoneAction::Reset => debug_assert!(false, "a reset needs a trim"),
        }
        Ok(Vec::new())
    }

    /// Begins RESET WRITE POINTER of the zone that begins at `lba`, or of all zones. Returns the blocks to be trimmed:
    /// the first logical page of each zone and its length; none if that changes nothing.
    ///
    /// # Errors
    /// If there is no such zone.
    pub(crate) fn reset(&mut self, tag: TagRef, lun: u8, lba: Option<u64>) -> Result<Vec<(Lpn, u32)>, Sense> {
        let index = self.unit(lun).ok_or(Sense::LUN_NOT_SUPPORTED)?;
        let unit = &mut self.units[index];
        let one = lba.map(|lba| unit.begins(lba)).transpose()?;
        let (mut ranges, mut zones) = (Vec::new(), Vec::new());
        for zone in unit.meant(one) {
            let first = unit.first(zone);
            let at = &mut unit.zones[zone];
            if at.resets || at.condition == Condition::Empty {
                continue;
            }
            if at.written == 0 && at.is_open() {
                at.condition = Condition::Empty;
                continue;
            }
            at.resets = true;
            ranges.push((first, unit.config.blocks));
            zones.push(ZoneId { unit: index, zone });
        }
        if !ranges.is_empty() {
            self.resets.push(Reset { tag, zones });
        }
        Ok(ranges)
    }

    /// Whether a command resets zones.
    #[inline]
    pub(crate) fn is_resetting(&self, tag: TagRef) -> bool {
        self.resets.iter().any(|reset| reset.tag == tag)
    }

    /// The trims of a reset are in flash: its zones are empty.
    pub(crate) fn reset_ended(&mut self, tag: TagRef) {
        let Some(at) = self.resets.iter().position(|reset| reset.tag == tag) else { return };
        for ZoneId { unit, zone } in self.resets.swap_remove(at).zones {
            self.units[unit].zones[zone] = Zone::EMPTY;
        }
    }

    /// The zones of a unit from the one with block `start` on, as REPORT ZONES lists them; gaps follow their zones.
    ///
    /// # Errors
    /// If there is no such block.
    pub(crate) fn report(
        &self,
        lun: u8,
        start: u64,
        listed: Listed,
    ) -> Result<impl Iterator<Item = Described> + '_, Sense> {
        let unit = self.unit(lun).map(|unit| &self.units[unit]).ok_or(Sense::LUN_NOT_SUPPORTED)?;
        if start >= unit.blocks {
            return Err(Sense::LBA_OUT_OF_RANGE);
        }
        let stride = u64::from(unit.config.stride());
        let first = (start / stride) as usize;
        let in_gap = start % stride >= u64::from(unit.config.blocks);
        let all = (first..unit.zones.len()).flat_map(move |zone| unit.described(zone));
        Ok(all.skip(usize::from(in_gap)).filter(move |zone| listed.lists(zone.condition)))
    }

    /// Blocks were written in no time, before the device began its work, from `first` on: write pointers follow. Of the
    /// zones that they touch, all before them must have been filled so.
    pub(in crate::ftl) fn preset(&mut self, first: Lpn, blocks: u32) {
        let Some(unit) = self.units.iter_mut().find(|unit| unit.holds(first)) else { return };
        let (from, capacity) = (first - unit.base, unit.config.blocks);
        let end = from + blocks;
        for zone in from / capacity..end.div_ceil(capacity) {
            let written = (end - zone * capacity).min(capacity);
            let at = &mut unit.zones[zone as usize];
            at.written = at.written.max(written);
            at.condition = if at.written == capacity { Condition::Full } else { Condition::Closed };
        }
    }

    /// A hardware reset: open zones are closed. Resets in progress go on.
    pub(crate) fn hardware_reset(&mut self) {
        for unit in &mut self.units {
            unit.zones.iter_mut().for_each(Zone::close);
        }
    }
}

impl Unit {
    fn new((lun, blocks): (u8, u32), config: ZoneConfig, base: Lpn, first_zone: u32, zones: Vec<Zone>) -> Unit {
        let (capacity, stride) = (Divisor::new(config.blocks), Divisor::new(config.stride()));
        Unit { config, lun, base, first_zone, blocks: blocks.into(), zones, capacity, stride }
    }

    fn capacity(&self) -> u32 {
        self.zones.len() as u32 * self.config.blocks
    }

    /// Whether a logical page is one of the unit's.
    fn holds(&self, lpn: Lpn) -> bool {
        (self.base..self.base + self.capacity()).contains(&lpn)
    }

    /// The first logical page of a zone.
    fn first(&self, zone: usize) -> Lpn {
        self.base + zone as u32 * self.config.blocks
    }

    /// The zone of a block, and the block's offset; `None` in a gap.
    fn within(&self, lba: u64) -> Option<(usize, u32)> {
        let lba = u32::try_from(lba).ok()?;
        let offset = self.stride.remainder(lba);
        (offset < self.config.blocks).then_some((self.stride.divide(lba) as usize, offset))
    }

    fn place(&self, lba: u64, blocks: u32) -> Result<Lpn, Sense> {
        if lba.saturating_add(blocks.into()) > self.blocks {
            return Err(Sense::LBA_OUT_OF_RANGE);
        }
        if blocks == 0 {
            return Ok(self.base);
        }
        let (zone, offset) = self.within(lba).ok_or(Sense::GAP_ZONE)?;
        match self.config.gap() > 0 && blocks > self.config.blocks - offset {
            true => Err(Sense::GAP_ZONE),
            false => Ok(self.first(zone) + offset),
        }
    }

    /// The zone that begins at a block.
    fn begins(&self, lba: u64) -> Result<usize, Sense> {
        if lba >= self.blocks {
            return Err(Sense::LBA_OUT_OF_RANGE);
        }
        match self.within(lba) {
            Some((zone, 0)) => Ok(zone),
            _ => Err(Sense::INVALID_FIELD),
        }
    }

    /// One zone, or all.
    fn meant(&self, one: Option<usize>) -> std::ops::Range<usize> {
        one.map_or(0..self.zones.len(), |zone| zone..zone + 1)
    }

    fn count(&self, counts: impl Fn(&Zone) -> bool) -> u32 {
        self.zones.iter().filter(|zone| counts(zone)).count() as u32
    }

    /// Makes room for one more open zone, which is `zone`. Where closed zones count, it may be one of them already.
    fn make_room(&mut self, zone: usize) -> Result<(), Sense> {
        let most = self.config.most_open;
        if self.config.rule == ZoneRule::Zufs {
            let counts = |zone: &Zone| zone.is_open() || zone.condition == Condition::Closed;
            return match counts(&self.zones[zone]) || self.count(counts) < most {
                true => Ok(()),
                false => Err(Sense::ZONE_RESOURCES),
            };
        }
        if self.count(Zone::is_open) < most {
            return Ok(());
        }
        let implicit = self.zones.iter_mut().find(|zone| zone.condition == Condition::ImplicitOpen);
        implicit.map(Zone::close).ok_or(Sense::ZONE_RESOURCES)
    }

    /// OPEN ZONE; of all zones, it means those that are closed, and opens all or none.
    fn open(&mut self, one: Option<usize>) -> Result<(), Sense> {
        let Some(zone) = one else {
            let closed = |zone: &Zone| zone.condition == Condition::Closed;
            let explicit = |zone: &Zone| zone.condition == Condition::ExplicitOpen;
            if self.count(closed) + self.count(explicit) > self.config.most_open {
                return Err(Sense::ZONE_RESOURCES);
            }
            let all: Vec<usize> = (0..self.zones.len()).filter(|zone| closed(&self.zones[*zone])).collect();
            return all.into_iter().try_for_each(|zone| self.open(Some(zone)));
        };
        match self.zones[zone].condition {
            Condition::Full | Condition::ExplicitOpen => return Ok(()),
            Condition::ImplicitOpen => {}
            Condition::Empty | Condition::Closed => self.make_room(zone)?,
        }
        self.zones[zone].condition = Condition::ExplicitOpen;
        Ok(())
    }

    /// FINISH ZONE; of all zones, it means those that are open or closed. Returns those that became full.
    fn finish(&mut self, one: Option<usize>) -> Vec<(Lpn, u32)> {
        let mut finished = Vec::new();
        for zone in self.meant(one) {
            let at = &mut self.zones[zone];
            let is_meant = match at.condition {
                Condition::Full => false,
                Condition::Empty => one.is_some(),
                _ => true,
            };
            if is_meant && !at.resets {
                at.condition = Condition::Full;
                finished.push((self.first(zone), self.zones[zone].written));
            }
        }
        finished
    }

    /// A zone and, where there are gaps, the gap behind it.
    fn described(&self, zone: usize) -> impl Iterator<Item = Described> + use<> {
        let (config, at) = (self.config, self.zones[zone]);
        let start = zone as u64 * u64::from(config.stride());
        let end = start + u64::from(config.blocks);
        let condition = match at.condition {
            Condition::Empty => ZoneCondition::Empty,
            Condition::ImplicitOpen => ZoneCondition::ImplicitOpen,
            Condition::ExplicitOpen => ZoneCondition::ExplicitOpen,
            Condition::Closed => ZoneCondition::Closed,
            Condition::Full => ZoneCondition::Full,
        };
        let write_pointer = if at.condition == Condition::Full { end } else { start + u64::from(at.written) };
        let data = Described { start, blocks: config.blocks.into(), condition, write_pointer };
        let gap = (config.gap() > 0).then_some(Described {
            start: end,
            blocks: config.gap().into(),
            condition: ZoneCondition::NotWritePointer,
            write_pointer: u64::MAX,
        });
        std::iter::once(data).chain(gap)
    }
}
