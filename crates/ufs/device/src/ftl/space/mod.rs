// SPDX-License-Identifier: MIT OR Apache-2.0
//! Space: superblocks by stream and cell mode, which slices are written next, references into superblocks, victims,
//! wear, bad blocks, erases, and the spare areas of slices. Its table is SRAM of the modelled device.
//!
//! It may not know the map, the journal or the write buffer. It does not know why a unit is written, nor whether a
//! superblock without references may be discarded: its caller does.

mod choice;
mod consistency;
mod erase;
mod fill;
mod refs;
mod restore;
mod spare;
mod superblock;
#[cfg(test)]
pub(in crate::ftl) mod tests;
mod zones;

pub use choice::Wear;
pub(in crate::ftl) use spare::Spares;
pub(in crate::ftl) use superblock::UNKNOWN_END;
pub use superblock::{NoSpace, State, Stream, Superblock};

use crate::back::{Hardware, Op};
use crate::config::{ANCHORS, CellMode, DeviceConfig, FtlConfig, OwnCells};
use crate::ids::{Mark, SuperblockId};
use choice::WearBand;
use fixedbitset::FixedBitSet;
use readpath_flash::{Geometry, Ppn};
use readpath_kit::{Divisor, Ns};
use std::collections::VecDeque;
use zones::ZoneSpace;

/// Constant sizes.
#[derive(Clone, Copy)]
struct Shape {
    slices_per_superblock: Divisor,
    slices_per_unit: u32,
    units: u32,
    dies: u32,
    /// `slices_per_unit` and `dies`, to divide by.
    per_unit: Divisor,
    per_die: Divisor,
    /// Units of the table of a superblock of data.
    table_units: u32,
    /// Superblocks that map pages, journal and checkpoints may take.
    meta_superblocks: u32,
    own_cells: OwnCells,
    /// Superblocks that serve the cache in SLC mode only.
    static_superblocks: u32,
    /// Superblocks that zones fill.
    zone_superblocks: u32,
    /// Multi-plane pages of a die that are programmed together in a zone.
    program_units: u32,
}

/// The superblocks of one cell mode.
#[derive(Clone, Copy, Default)]
struct InMode {
    units: u32,
    /// Their number, those being erased included.
    superblocks: u32,
    /// Number of closed ones.
    closed: u32,
    /// Erases so far. Blocks hold their counts, so they survive a power cut.
    erases: u64,
}

/// The purpose of a unit, which decides how much space it must leave to others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::ftl) enum Purpose {
    /// Data from the host.
    Host,
    /// Data from the host for the cache in SLC mode.
    Cache,
    /// Data that is moved.
    Move,
}

pub(in crate::ftl) struct Space {
    shape: Shape,
    table: Vec<Superblock>,
    open: [Option<SuperblockId>; Stream::COUNT],
    erased: Vec<SuperblockId>,
    /// Discarded superblocks, and the record of the journal that has to be in flash before each erase.
    to_erase: VecDeque<(SuperblockId, Mark)>,
    erasing: Option<SuperblockId>,
    /// Victims: they are not discarded before they are empty.
    emptying: Vec<SuperblockId>,
    /// Bad blocks, by superblock and die.
    bad: FixedBitSet,
    any_bad: bool,
    meta_in_use: u32,
    /// Number of superblocks in which a program failed.
    failed: u32,
    wear_band: WearBand,
    modes: [InMode; CellMode::COUNT],
    spares: Spares,
    /// Programs of data in progress.
    programs: u32,
    /// Space is short with fewer erased superblocks than this, beyond those kept for the map.
    collect_below: u32,
    programs_may_fail: bool,
    zones: ZoneSpace,
}

impl Space {
    /// The first [`ANCHORS`] superblocks hold anchors, all others are erased.
    pub(crate) fn new(config: &DeviceConfig) -> Self {
        let mut space = Space::shaped(&config.geometry, &config.ftl, CellMode::ALL.map(|mode| config.units_in(mode)));
        space.shape = Shape {
            table_units: config.table_units(),
            meta_superblocks: config.meta_superblocks(),
            own_cells: config.own_cells(),
            zone_superblocks: config.kept_for_zones(),
            program_units: config.zone_program_units(),
            static_superblocks: config.static_superblocks(),
            ..space.shape
        };
        space
    }

    /// Without tables, superblocks kept for something, and a map in SLC mode.
    fn shaped(g: &Geometry, settings: &FtlConfig, units: [u32; CellMode::COUNT]) -> Self {
        let n = g.superblocks();
        let mode = |units| InMode { units, ..InMode::default() };
        let mut table = vec![Superblock::NEW; n as usize];
        table.iter_mut().take(ANCHORS as usize).for_each(|sb| sb.state = State::Anchor);
        Space {
            shape: Shape {
                slices_per_superblock: Divisor::new(g.slices_per_superblock()),
                slices_per_unit: g.slices_per_unit(),
                per_unit: Divisor::new(g.slices_per_unit()),
                per_die: Divisor::new(g.dies()),
                units: g.units_per_superblock(),
                dies: g.dies(),
                table_units: 0,
                meta_superblocks: 0,
                own_cells: OwnCells::default(),
                zone_superblocks: 0,
                program_units: 1,
                static_superblocks: 0,
            },
            table,
            open: [None; Stream::COUNT],
            erased: (ANCHORS.min(n)..n).map(SuperblockId).collect(),
            to_erase: VecDeque::new(),
            erasing: None,
            emptying: Vec::new(),
            bad: FixedBitSet::with_capacity((n * g.dies()) as usize),
            any_bad: false,
            meta_in_use: 0,
            failed: 0,
            wear_band: WearBand::NONE,
            modes: units.map(mode),
            spares: Spares::new(g.slices(), Divisor::new(g.slices_per_superblock())),
            programs: 0,
            collect_below: settings.collect_below,
            programs_may_fail: settings.faults.program_failures_ppm > 0,
            zones: ZoneSpace::default(),
        }
    }

    #[inline]
    pub(crate) fn spares(&self) -> &Spares {
        &self.spares
    }

    #[inline]
    pub(crate) fn spares_mut(&mut self) -> &mut Spares {
        &mut self.spares
    }

    /// Number of superblocks written in a mode, those being erased included.
    #[inline]
    pub(crate) fn in_mode(&self, mode: CellMode) -> u32 {
        self.modes[mode.index()].superblocks
    }

    /// Erases of superblocks in a mode; those of anchors do not count.
    pub(crate) fn erases_in(&self, mode: CellMode) -> u64 {
        self.modes[mode.index()].erases
    }

    /// Erases of superblocks by mode.
    pub(crate) fn erases_by_mode(&self) -> [u64; CellMode::COUNT] {
        self.modes.map(|mode| mode.erases)
    }

    /// Cell mode of the superblock of `ppn`.
    #[inline]
    pub(crate) fn mode_of(&self, ppn: Ppn) -> CellMode {
        // Most devices have one mode only: then the superblock is not looked up.
        match self.in_mode(CellMode::Cache) + self.in_mode(CellMode::SlcMap) {
            0 => CellMode::Full,
            _ => self.table[self.of(ppn).index()].mode,
        }
    }

    /// The mode in which superblocks of a stream are written.
    #[inline]
    pub(crate) fn mode_for(&self, stream: Stream) -> CellMode {
        stream.mode(self.shape.own_cells)
    }

    /// Begins a flash operation of flash translation, which passes the firmware first.
    pub(crate) fn begin(&self, now: Ns, mut op: Op, hw: &mut impl Hardware) {
        op.cells = self.mode_of(op.ppn);
        hw.begin(now, op);
    }

    /// Begins to program a unit, and counts it.
    pub(crate) fn program(&self, now: Ns, op: Op, hw: &mut impl Hardware) {
        let cells = self.mode_of(op.ppn);
        let stats = hw.stats();
        stats.programs += 1;
        stats.slc_programs += u64::from(cells == CellMode::Cache);
        stats.slc_map_programs += u64::from(cells == CellMode::SlcMap);
        hw.begin(now, Op { cells, ..op });
    }

    /// Programs of data in progress.
    #[inline]
    pub(crate) fn programs(&self) -> u32 {
        self.programs
    }

    /// Erased superblocks that are kept neither for map pages, journal and checkpoints, which must always find room,
    /// nor for the static part of the cache, nor for zones. One is kept even if the former have all that they may
    /// take: before the journal can say that others may be erased, a unit may have to name the next.
    pub(crate) fn spare(&self) -> u32 {
        self.erased().saturating_sub(self.kept_for_meta() + self.kept_for_cache() + self.kept_for_zones())
    }

    /// Erased superblocks that are kept for map pages, journal and checkpoints.
    fn kept_for_meta(&self) -> u32 {
        self.shape.meta_superblocks.saturating_sub(self.meta_in_use).max(1)
    }

    /// Erased superblocks that are kept for the static part of the cache. Moved data may have taken some of them.
    pub(crate) fn kept_for_cache(&self) -> u32 {
        self.shape.static_superblocks.saturating_sub(self.in_mode(CellMode::Cache))
    }

    /// Superblocks of the static part that the cache may open.
    pub(crate) fn static_left(&self) -> u32 {
        self.kept_for_cache().min(self.erased().saturating_sub(2))
    }

    /// Whether the cache has no more superblocks than those that serve it only.
    pub(crate) fn cache_is_static(&self) -> bool {
        self.in_mode(CellMode::Cache) <= self.shape.static_superblocks
    }

    /// Spare superblocks required for the host to open one, so that moved data always finds one. Where programs may
    /// fail, one more is needed, because the first failure closes the superblock to which data is being moved. And a
    /// superblock with bad blocks may not hold all of another's data.
    pub(crate) fn spare_for_host(&self) -> u32 {
        2 + u32::from(self.any_bad || self.programs_may_fail)
    }

    /// Whether a superblock may be opened for this purpose.
    pub(crate) fn may_open(&self, purpose: Purpose) -> bool {
        match purpose {
            Purpose::Cache => self.static_left() > 0 || self.may_open(Purpose::Host),
            Purpose::Host => self.spare() >= self.spare_for_host(),
            // A power cut during a move wastes the superblock prepared for it. Then the move may take one that is
            // kept for the map, unless the map needs it soon: emptying the victim gives it back.
            Purpose::Move => self.spare() >= 1 || self.erased() >= 3,
        }
    }

    /// Programs may fail from now on.
    pub(crate) fn expect_failing_programs(&mut self) {
        self.programs_may_fail = true;
    }

    /// Space is short with fewer spare superblocks than this.
    pub(crate) fn short_below(&self) -> u32 {
        self.collect_below.max(self.spare_for_host())
    }

    /// Whether space is so short that collection must run beside the host's writes.
    pub(crate) fn is_short(&self) -> bool {
        self.spare() < self.short_below()
    }

    /// Whether map pages, journal and checkpoints may take no more than `left` further superblocks.
    pub(crate) fn meta_may_take_at_most(&self, left: u32) -> bool {
        self.meta_in_use + left >= self.shape.meta_superblocks
    }

    /// Begins to empty `victims`: they are not discarded before [`Space::discard`].
    pub(crate) fn begin_emptying(&mut self, victims: &[SuperblockId]) {
        self.emptying.extend(victims);
        victims.iter().for_each(|&sb| self.spares.will_be_read(sb));
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = SuperblockId> + use<> {
        (0..self.table.len() as u32).map(SuperblockId)
    }

    /// The stream whose data a superblock holds, if it holds any.
    pub(crate) fn stream_of(&self, sb: SuperblockId) -> Option<Stream> {
        match self.table[sb.index()].state {
            State::Open(stream) | State::Closed(stream) => Some(stream),
            _ => None,
        }
    }

    /// Whether a stream has an open superblock in which nothing has been written.
    pub(crate) fn is_blank(&self, stream: Stream) -> bool {
        self.open_of(stream).is_some_and(|sb| self.table[sb.index()].next_unit == 0)
    }

    /// Whether `sb` may be emptied now, after `before` others of the cache. A superblock of its static part gives its
    /// space back to the cache only, and what is moved out of it needs room: so not while space is short.
    pub(super) fn may_empty(&self, sb: &Superblock, before: u32) -> bool {
        let kept = self.shape.static_superblocks;
        if kept == 0 || sb.state != State::Closed(Stream::Boosted) {
            return sb.is_movable();
        }
        let held = self.modes[CellMode::Cache.index()].closed + u32::from(self.open_of(Stream::Boosted).is_some());
        sb.is_movable() && (held > kept + before || !self.is_short())
    }

    /// Whether `sb` holds data that may be moved now.
    pub(crate) fn may_move(&self, sb: SuperblockId) -> bool {
        self.may_empty(self.get(sb), 0)
    }

    /// The superblock of the cache in SLC mode that was opened first, among those that can be emptied.
    pub(crate) fn oldest_boosted(&self) -> Option<SuperblockId> {
        if self.modes[CellMode::Cache.index()].closed == 0 {
            return None;
        }
        let boosted = self.iter().filter(|(_, sb)| sb.state == State::Closed(Stream::Boosted) && self.may_empty(sb, 0));
        boosted.min_by_key(|&(i, sb)| (sb.opened_at, i)).map(|(i, _)| i)
    }

    /// The superblock of a slice.
    #[inline]
    pub(crate) fn of(&self, ppn: Ppn) -> SuperblockId {
        SuperblockId(self.shape.slices_per_superblock.divide(ppn.0))
    }

    /// The first slice of a superblock.
    pub(crate) fn first(&self, sb: SuperblockId) -> Ppn {
        Ppn(sb.0 * self.slices())
    }

    /// Slices of a superblock.
    pub(crate) fn slices(&self) -> u32 {
        self.shape.slices_per_superblock.get()
    }

    #[inline]
    pub(crate) fn get(&self, sb: SuperblockId) -> &Superblock {
        &self.table[sb.index()]
    }

    /// Counts a read of a page of the superblock of `ppn`. True when it has been read `limit` times as often as it
    /// has pages, so that its data should move. The superblock may be open then, or the power may be cut; so true
    /// again after as many further reads as it has pages.
    #[inline]
    pub(crate) fn note_read(&mut self, ppn: Ppn, limit: u32) -> bool {
        let sb = self.of(ppn);
        let reads = &mut self.table[sb.index()].reads;
        *reads = reads.saturating_add(1);
        self.is_disturbed(sb, limit)
            && (u64::from(self.table[sb.index()].reads) - self.most_reads(limit))
                .is_multiple_of(u64::from(self.shape.units))
    }

    /// Whether `sb` has been read so often that its data should move.
    pub(crate) fn is_disturbed(&self, sb: SuperblockId, limit: u32) -> bool {
        u64::from(self.table[sb.index()].reads) >= self.most_reads(limit)
    }

    fn most_reads(&self, limit: u32) -> u64 {
        u64::from(limit) * u64::from(self.shape.units)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (SuperblockId, &Superblock)> {
        self.table.iter().enumerate().map(|(i, sb)| (SuperblockId(i as u32), sb))
    }

    /// Number of erased superblocks.
    pub(crate) fn erased(&self) -> u32 {
        self.erased.len() as u32
    }

    pub(crate) fn open_of(&self, stream: Stream) -> Option<SuperblockId> {
        self.open[stream.index()]
    }

    /// Whether a superblock with a failed program can be emptied.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed > 0 && self.iter().any(|(_, sb)| sb.failed && sb.is_movable())
    }
}
