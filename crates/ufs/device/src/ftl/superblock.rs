// SPDX-License-Identifier: MIT OR Apache-2.0
//! Superblocks: what each is used for, how many map entries point into it, how often it was erased; and which slices
//! are written next. It knows nothing of time, of logical pages, or of why something is written.

mod choice;
mod consistency;

use choice::WearBand;
pub use choice::{VictimPolicy, Wear};

use crate::ids::{Mark, SuperblockId};
use fixedbitset::FixedBitSet;
use readpath_flash::{Geometry, Ppn};
use readpath_kit::Divisor;
use std::collections::VecDeque;

/// No erased superblock is left for this purpose.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoSpace;

/// Data that is written together, because it is expected to live about as long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stream {
    /// Data from the host.
    Host,
    /// Data from the host that was overwritten not long ago.
    Hot,
    /// Data from the host in the WriteBooster buffer: in SLC mode.
    Boosted,
    /// Data that garbage collection moved.
    Moved,
    /// Map pages, journal and checkpoints.
    Meta,
    /// Data that wear levelling moved: it had stayed where it was for longest.
    Cold,
}

impl Stream {
    /// How many there are.
    pub const COUNT: usize = 6;
    /// All of them.
    pub const ALL: [Stream; Stream::COUNT] =
        [Stream::Host, Stream::Hot, Stream::Boosted, Stream::Moved, Stream::Meta, Stream::Cold];

    /// Number from 0 on.
    #[inline]
    pub fn index(self) -> usize {
        self as usize
    }
}

/// What a superblock is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Holds the anchors, which lead to the newest checkpoint.
    Anchor,
    /// Ready to be written.
    Erased,
    /// Being written.
    Open(Stream),
    /// Written; holds data of a stream.
    Closed(Stream),
    /// Nothing in it is needed; its dies are being erased, so many still to come, or wait for that.
    Erasing(u32),
    /// Too many of its blocks are bad.
    Retired,
}

/// One superblock. Its table is SRAM: [`Superblock::SRAM_BYTES`] each.
#[derive(Clone, Copy, Debug)]
pub struct Superblock {
    /// What it is.
    pub state: State,
    /// Map entries, in map pages and in the table of changes, that point into it. Slices that are no longer current but
    /// whose map page was not read since still count.
    pub refs: u32,
    /// Units handed out whose program has not ended.
    pub in_flight: u32,
    /// The unit that is written next.
    pub next_unit: u32,
    /// The unit at which data ends: behind it is the table of what is in it, or in SLC mode nothing.
    pub end: u32,
    /// How often it was erased.
    pub erases: u32,
    /// When it was opened last, by the count of openings and map writes.
    pub opened_at: u32,
    /// When it was closed last, by sequence number.
    pub closed_at: u32,
    /// Reads since it was erased.
    pub reads: u32,
    /// Blocks of it that are bad, by die.
    pub bad_dies: u32,
    /// A program in it failed: it is to be emptied soon.
    pub failed: bool,
    /// It was written in SLC mode and has not been erased since.
    pub slc: bool,
    /// It is full, and its table is in flash: whoever reads the units behind its data sees that they are one.
    pub has_table: bool,
}

impl Superblock {
    /// State, references, next unit, erases, opened, closed, reads: 4 bytes each, packed state and flags.
    pub const SRAM_BYTES: u64 = 28;

    /// Erased, and never used.
    pub(super) const NEW: Superblock = Superblock {
        state: State::Erased,
        refs: 0,
        in_flight: 0,
        next_unit: 0,
        end: 0,
        erases: 0,
        opened_at: 0,
        closed_at: 0,
        reads: 0,
        bad_dies: 0,
        failed: false,
        slc: false,
        has_table: false,
    };

    /// Whether it holds data that could be moved now.
    pub fn is_movable(&self) -> bool {
        matches!(self.state, State::Closed(stream) if stream != Stream::Meta) && self.in_flight == 0
    }
}

/// See the module.
pub(crate) struct Superblocks {
    table: Vec<Superblock>,
    open: [Option<SuperblockId>; Stream::COUNT],
    erased: Vec<SuperblockId>,
    /// What waits to be erased, and the record of the journal that has to be in flash first.
    to_erase: VecDeque<(SuperblockId, Mark)>,
    /// Bad blocks, by superblock and die.
    bad: FixedBitSet,
    any_bad: bool,
    meta_in_use: u32,
    /// Superblocks in which a program failed.
    failed: u32,
    wear_band: WearBand,
    slices_per_superblock: Divisor,
    slices_per_unit: u32,
    units: u32,
    dies: u32,
    /// Units of a superblock in SLC mode.
    slc_units: u32,
    /// Units of the table of a superblock of data.
    table_units: u32,
    /// Superblocks in SLC mode, those being erased included; and those of them that are closed.
    slc: u32,
    slc_closed: u32,
    /// Superblocks in SLC mode that were ever erased. Blocks carry their counts, so a power cut leaves it.
    slc_erases: u64,
}

/// The end of data in a superblock that shows no stream.
pub(super) const UNKNOWN_END: u32 = u32::MAX;

/// Superblocks that hold anchors, at the start of the array.
pub const ANCHORS: u32 = 2;

impl Superblocks {
    /// The first [`ANCHORS`] hold anchors, all others are erased.
    pub(crate) fn new(geometry: &Geometry) -> Self {
        let n = geometry.superblocks();
        let mut table = vec![Superblock::NEW; n as usize];
        table.iter_mut().take(ANCHORS as usize).for_each(|sb| sb.state = State::Anchor);
        Superblocks {
            table,
            open: [None; Stream::COUNT],
            erased: (ANCHORS.min(n)..n).map(SuperblockId).collect(),
            to_erase: VecDeque::new(),
            bad: FixedBitSet::with_capacity((n * geometry.dies()) as usize),
            any_bad: false,
            meta_in_use: 0,
            failed: 0,
            wear_band: WearBand::NONE,
            slices_per_superblock: Divisor::new(geometry.slices_per_superblock()),
            slices_per_unit: geometry.slices_per_unit(),
            units: geometry.units_per_superblock(),
            dies: geometry.dies(),
            slc_units: 0,
            table_units: 0,
            slc: 0,
            slc_closed: 0,
            slc_erases: 0,
        }
    }

    /// Says how many units a superblock of [`Stream::Boosted`] has.
    pub(crate) fn set_slc_units(&mut self, units: u32) {
        self.slc_units = units;
    }

    /// Says how many units the table of a superblock of data takes.
    pub(crate) fn set_table_units(&mut self, units: u32) {
        self.table_units = units;
    }

    /// Superblocks in SLC mode, those being erased included.
    #[inline]
    pub(crate) fn slc(&self) -> u32 {
        self.slc
    }

    /// Erases of superblocks in SLC mode.
    pub(crate) fn slc_erases(&self) -> u64 {
        self.slc_erases
    }

    /// Whether the superblock of `ppn` is in SLC mode.
    #[inline]
    pub(crate) fn is_slc(&self, ppn: Ppn) -> bool {
        self.slc > 0 && self.table[self.of(ppn).index()].slc
    }

    /// The stream whose data a superblock holds, if it holds any.
    pub(crate) fn stream_of(&self, sb: SuperblockId) -> Option<Stream> {
        match self.table[sb.index()].state {
            State::Open(stream) | State::Closed(stream) => Some(stream),
            _ => None,
        }
    }

    /// Whether a stream has an open superblock in which nothing was written.
    pub(crate) fn is_blank(&self, stream: Stream) -> bool {
        self.open_of(stream).is_some_and(|sb| self.table[sb.index()].next_unit == 0)
    }

    /// The superblock of the WriteBooster buffer that was opened first, of those that can be emptied.
    pub(crate) fn oldest_boosted(&self) -> Option<SuperblockId> {
        if self.slc_closed == 0 {
            return None;
        }
        let boosted = self.iter().filter(|(_, sb)| sb.state == State::Closed(Stream::Boosted) && sb.is_movable());
        boosted.min_by_key(|&(i, sb)| (sb.opened_at, i)).map(|(i, _)| i)
    }

    /// The unit of `sb` at which data of `stream` ends.
    fn end_of_data(&self, sb: SuperblockId, stream: Stream) -> u32 {
        match stream {
            Stream::Boosted => self.slc_units,
            Stream::Meta => self.units,
            Stream::Host | Stream::Hot | Stream::Moved | Stream::Cold => {
                let good = (0..self.units).rev().filter(|unit| !self.is_bad(sb, unit % self.dies));
                good.take(self.table_units as usize).last().unwrap_or(self.units)
            }
        }
    }

    /// Whether `sb` has just been filled with data, so that its table is to be written.
    #[inline]
    pub(crate) fn wants_table(&self, sb: SuperblockId) -> bool {
        let sb = self.get(sb);
        self.table_units > 0
            && matches!(sb.state, State::Closed(Stream::Host | Stream::Hot | Stream::Moved | Stream::Cold))
            && (sb.in_flight, sb.next_unit, sb.failed, sb.has_table) == (0, sb.end, false, false)
            && sb.refs > 0
    }

    /// The units of the table of `sb`, which is full, by number.
    pub(crate) fn units_of_table(&self, sb: SuperblockId) -> impl Iterator<Item = u32> {
        (self.get(sb).end..self.units).filter(move |unit| !self.is_bad(sb, unit % self.dies))
    }

    /// The program of a unit of the table of `sb` begins.
    pub(crate) fn begin_table_unit(&mut self, sb: SuperblockId) {
        self.table[sb.index()].in_flight += 1;
    }

    /// The program of a unit of the table of `sb` has ended well; the last of them makes it a table.
    pub(crate) fn table_unit_written(&mut self, sb: SuperblockId) {
        let slot = &mut self.table[sb.index()];
        slot.has_table = slot.in_flight == 0 && !slot.failed;
    }

    /// The superblock of a slice.
    #[inline]
    pub(crate) fn of(&self, ppn: Ppn) -> SuperblockId {
        SuperblockId(self.slices_per_superblock.divide(ppn.0))
    }

    /// The first slice of a superblock.
    pub(crate) fn first(&self, sb: SuperblockId) -> Ppn {
        Ppn(sb.0 * self.slices())
    }

    /// Slices of a superblock.
    pub(crate) fn slices(&self) -> u32 {
        self.slices_per_superblock.get()
    }

    /// A superblock.
    #[inline]
    pub(crate) fn get(&self, sb: SuperblockId) -> &Superblock {
        &self.table[sb.index()]
    }

    /// A page of the superblock of `ppn` is read. True when it has now been read so often that its data should move:
    /// `limit` times as often as it has pages. It may be open then, or the power may go; so true again each time that
    /// it has been read as many times more as it has pages.
    #[inline]
    pub(crate) fn note_read(&mut self, ppn: Ppn, limit: u32) -> bool {
        let sb = self.of(ppn);
        let reads = &mut self.table[sb.index()].reads;
        *reads = reads.saturating_add(1);
        self.is_disturbed(sb, limit)
            && (u64::from(self.table[sb.index()].reads) - self.most_reads(limit)).is_multiple_of(u64::from(self.units))
    }

    /// Whether `sb` has been read so often that its data should move.
    pub(crate) fn is_disturbed(&self, sb: SuperblockId, limit: u32) -> bool {
        u64::from(self.table[sb.index()].reads) >= self.most_reads(limit)
    }

    fn most_reads(&self, limit: u32) -> u64 {
        u64::from(limit) * u64::from(self.units)
    }

    /// All superblocks.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (SuperblockId, &Superblock)> {
        self.table.iter().enumerate().map(|(i, sb)| (SuperblockId(i as u32), sb))
    }

    /// Erased superblocks.
    pub(crate) fn erased(&self) -> u32 {
        self.erased.len() as u32
    }

    /// Superblocks that hold, or are about to hold, map pages, journal or checkpoints.
    pub(crate) fn meta_in_use(&self) -> u32 {
        self.meta_in_use
    }

    /// The open superblock of a stream.
    pub(crate) fn open_of(&self, stream: Stream) -> Option<SuperblockId> {
        self.open[stream.index()]
    }

    /// Opens an erased superblock for a stream; `choice.rs` says which.
    pub(crate) fn open(&mut self, stream: Stream, now: u32) -> Result<SuperblockId, NoSpace> {
        debug_assert!(self.open[stream.index()].is_none());
        let at = self.erased_for(stream).ok_or(NoSpace)?;
        Ok(self.open_erased(at, stream, now))
    }

    /// Opens the superblock at place `at` of the list of those that are erased.
    fn open_erased(&mut self, at: usize, stream: Stream, now: u32) -> SuperblockId {
        let sb = self.erased.swap_remove(at);
        let end = self.end_of_data(sb, stream);
        let slot = &mut self.table[sb.index()];
        slot.state = State::Open(stream);
        slot.refs = 0;
        slot.next_unit = 0;
        slot.opened_at = now;
        slot.reads = 0;
        slot.slc = stream == Stream::Boosted;
        slot.has_table = false;
        slot.end = end;
        self.slc += u32::from(stream == Stream::Boosted);
        self.skip_bad(sb);
        self.open[stream.index()] = Some(sb);
        self.meta_in_use += u32::from(stream == Stream::Meta);
        sb
    }

    /// The next unit (multi-plane page) of a stream, if it has an open superblock. After the last one it is closed.
    pub(crate) fn next_unit(&mut self, stream: Stream, now: u32) -> Option<Ppn> {
        let sb = self.open[stream.index()]?;
        let unit = self.table[sb.index()].next_unit;
        debug_assert!(unit < self.table[sb.index()].end && !self.is_bad(sb, unit % self.dies));
        let slot = &mut self.table[sb.index()];
        slot.in_flight += 1;
        slot.next_unit = unit + 1;
        self.skip_bad(sb);
        if self.table[sb.index()].next_unit == self.table[sb.index()].end {
            self.close(stream, now);
        }
        Some(Ppn(sb.0 * self.slices() + unit * self.slices_per_unit))
    }

    /// Units left in the open superblock of a stream.
    pub(crate) fn units_left(&self, stream: Stream) -> u32 {
        let Some(sb) = self.open[stream.index()] else { return 0 };
        let (next, units) = (self.table[sb.index()].next_unit, self.table[sb.index()].end);
        if self.table[sb.index()].bad_dies == 0 {
            units - next
        } else {
            (next..units).filter(|u| !self.is_bad(sb, u % self.dies)).count() as u32
        }
    }

    fn skip_bad(&mut self, sb: SuperblockId) {
        while self.table[sb.index()].next_unit < self.table[sb.index()].end
            && self.is_bad(sb, self.table[sb.index()].next_unit % self.dies)
        {
            self.table[sb.index()].next_unit += 1;
        }
    }

    /// Closes the open superblock of a stream before it is full.
    pub(crate) fn close(&mut self, stream: Stream, now: u32) {
        if let Some(sb) = self.open[stream.index()].take() {
            let slot = &mut self.table[sb.index()];
            slot.state = State::Closed(stream);
            slot.closed_at = now;
            self.slc_closed += u32::from(stream == Stream::Boosted);
        }
    }

    /// The program of a unit at `first` has ended.
    pub(crate) fn program_ended(&mut self, first: Ppn) {
        let sb = self.of(first);
        self.table[sb.index()].in_flight -= 1;
    }

    /// A map entry points to `ppn` now.
    #[inline]
    pub(crate) fn add_ref(&mut self, ppn: Ppn) {
        let sb = self.of(ppn);
        self.table[sb.index()].refs += 1;
    }

    /// Further map entries point into a superblock.
    pub(crate) fn add_refs(&mut self, sb: SuperblockId, refs: u32) {
        self.table[sb.index()].refs += refs;
    }

    /// Whether a superblock is to be emptied because a program in it failed, and can be.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed > 0 && self.iter().any(|(_, sb)| sb.failed && sb.is_movable())
    }

    /// A program in `sb` failed on `die`: that block is bad, and the superblock is to be emptied soon. False if the
    /// block was known to be bad: several units of it may be in flight.
    pub(crate) fn program_failed(&mut self, sb: SuperblockId, die: u32, now: u32) -> bool {
        let is_news = self.mark_bad(sb, die);
        if !std::mem::replace(&mut self.table[sb.index()].failed, true) {
            self.failed += 1;
        }
        for stream in Stream::ALL {
            if self.open[stream.index()] == Some(sb) {
                self.close(stream, now);
            }
        }
        is_news
    }

    /// Sequence numbers now count from `base` on.
    pub(crate) fn renumber(&mut self, base: u32) {
        self.table.iter_mut().for_each(|sb| sb.closed_at = sb.closed_at.saturating_sub(base));
    }

    /// A map entry that pointed to `ppn` does no longer.
    #[inline]
    pub(crate) fn drop_ref(&mut self, ppn: Ppn) {
        let sb = self.of(ppn);
        let refs = &mut self.table[sb.index()].refs;
        debug_assert!(*refs > 0, "superblock {sb} has no references left");
        *refs = refs.saturating_sub(1);
    }

    /// An entry of a map page that was written at `written_at` no longer points to `ppn`. If the superblock has been
    /// opened since, the entry pointed to what is long gone and was not counted.
    pub(crate) fn drop_written_ref(&mut self, ppn: Ppn, written_at: u32) {
        if self.is_counted(ppn, written_at) {
            self.drop_ref(ppn);
        }
    }

    /// An entry of a map page that was put together at `written_at` points to `ppn`; it counts unless the superblock
    /// has been given up since.
    pub(crate) fn add_written_ref(&mut self, ppn: Ppn, written_at: u32) {
        if self.is_counted(ppn, written_at) {
            self.add_ref(ppn);
        }
    }

    /// Whether an entry of a map page put together at `written_at` means the data that its superblock holds today.
    pub(crate) fn is_counted(&self, ppn: Ppn, written_at: u32) -> bool {
        let sb = self.get(self.of(ppn));
        matches!(sb.state, State::Open(_) | State::Closed(_)) && sb.opened_at <= written_at
    }

    /// Superblocks that nothing points into any more, so that they can be erased as they are.
    pub(crate) fn is_empty(&self, sb: SuperblockId) -> bool {
        let sb = self.get(sb);
        matches!(sb.state, State::Closed(_)) && sb.refs == 0 && sb.in_flight == 0
    }

    /// Nothing in a closed superblock is needed any more: it waits to be erased until the journal's `record` is in
    /// flash.
    pub(crate) fn discard(&mut self, sb: SuperblockId, record: Mark) {
        let slot = &mut self.table[sb.index()];
        debug_assert!(matches!(slot.state, State::Closed(_)) && slot.in_flight == 0);
        self.meta_in_use -= u32::from(slot.state == State::Closed(Stream::Meta));
        self.slc_closed -= u32::from(slot.state == State::Closed(Stream::Boosted));
        let good = self.dies - slot.bad_dies;
        slot.state = State::Erasing(good);
        slot.refs = 0;
        self.to_erase.push_back((sb, record));
    }

    /// The record that has to be in flash before the next superblock is erased, if one waits for that.
    pub(crate) fn waits_to_be_erased(&self) -> Option<Mark> {
        self.to_erase.front().map(|&(_, record)| record)
    }

    /// The next superblock to erase, on its good dies. What it held is undefined from here on. If it has none, it is
    /// retired.
    pub(crate) fn begin_erase(&mut self) -> Option<SuperblockId> {
        let (sb, _) = self.to_erase.pop_front()?;
        let slot = &mut self.table[sb.index()];
        if slot.state == State::Erasing(0) {
            // All its blocks are bad.
            self.failed -= u32::from(std::mem::take(&mut slot.failed));
            slot.state = State::Retired;
            self.slc -= u32::from(std::mem::take(&mut slot.slc));
        } else {
            slot.erases += 1;
            self.slc_erases += u64::from(slot.slc);
        }
        Some(sb)
    }

    /// A superblock of anchors is being erased.
    pub(crate) fn count_anchor_erase(&mut self, sb: SuperblockId) {
        self.table[sb.index()].erases += 1;
    }

    /// One die of `sb` has been erased, or turned out to be bad (`failed`); true when it was the last.
    pub(crate) fn die_erased(&mut self, sb: SuperblockId, die: u32, failed: bool) -> bool {
        if failed {
            self.mark_bad(sb, die);
        }
        let State::Erasing(left) = &mut self.table[sb.index()].state else {
            unreachable!("only superblocks that are being erased")
        };
        *left -= 1;
        if *left > 0 {
            return false;
        }
        let slot = &mut self.table[sb.index()];
        self.failed -= u32::from(std::mem::take(&mut slot.failed));
        self.slc -= u32::from(std::mem::take(&mut slot.slc));
        slot.next_unit = 0;
        slot.end = self.units;
        if slot.bad_dies * 2 > self.dies {
            slot.state = State::Retired;
        } else {
            slot.state = State::Erased;
            self.skip_bad(sb);
            self.erased.push(sb);
        }
        true
    }

    /// The block of `sb` on `die` is not to be written again; false if that was known.
    fn mark_bad(&mut self, sb: SuperblockId, die: u32) -> bool {
        let is_news = !self.bad.put((sb.0 * self.dies + die) as usize);
        if is_news {
            self.table[sb.index()].bad_dies += 1;
            self.any_bad = true;
        }
        is_news
    }

    /// Blocks of `sb` that the table of bad blocks names.
    fn bad_dies(&self, sb: SuperblockId) -> u32 {
        (0..self.dies).filter(|die| self.bad.contains((sb.0 * self.dies + die) as usize)).count() as u32
    }

    /// Whether any block is bad.
    pub(crate) fn has_bad_blocks(&self) -> bool {
        self.any_bad
    }

    /// Whether the block of `sb` on `die` is bad.
    #[inline]
    pub(crate) fn is_bad(&self, sb: SuperblockId, die: u32) -> bool {
        self.table[sb.index()].bad_dies > 0 && self.bad.contains((sb.0 * self.dies + die) as usize)
    }

    /// Takes whole units for `slices` slices as if they had been written; `each` is told runs of consecutive slices.
    /// Who refers to them is the caller's business.
    pub(crate) fn preset(
        &mut self,
        slices: u32,
        stream: Stream,
        mut each: impl FnMut(Ppn, u32),
    ) -> Result<(), NoSpace> {
        let mut left = slices;
        let mut sorted = false;
        while left > 0 {
            if self.open[stream.index()].is_none() {
                // In the order in which they would be opened, the first last, so that a large device is not searched
                // each time.
                if !std::mem::replace(&mut sorted, true) {
                    self.sort_erased_for(stream);
                }
                let last = self.erased.len().checked_sub(1).ok_or(NoSpace)?;
                self.open_erased(last, stream, 0);
            }
            let Some(ppn) = self.next_unit(stream, 0) else { return Err(NoSpace) };
            self.program_ended(ppn);
            let filled = &mut self.table[self.slices_per_superblock.divide(ppn.0) as usize];
            filled.has_table = self.table_units > 0 && stream != Stream::Meta && filled.next_unit == filled.end;
            let n = left.min(self.slices_per_unit);
            each(ppn, n);
            left -= n;
        }
        Ok(())
    }

    /// What is kept for a superblock says how often it was erased, whether a program in it failed, and which of its
    /// blocks are bad.
    pub(crate) fn load_record(&mut self, sb: SuperblockId, erases: u32, slc_erases: u32, failed: bool, bad: &[u32]) {
        bad.iter().for_each(|&die| _ = self.mark_bad(sb, die));
        let slot = &mut self.table[sb.index()];
        (slot.erases, slot.failed) = (erases, failed);
        self.slc_erases += u64::from(slc_erases);
    }

    /// What a superblock was found to hold: data of `stream`, how far units are programmed or torn, and those of its
    /// table. What it is comes out in recovery.
    pub(crate) fn load(
        &mut self,
        sb: SuperblockId,
        retired: bool,
        stream: Option<Stream>,
        (programmed, torn): (u32, u32),
        tables: &[u32],
    ) {
        self.table[sb.index()].shows(retired, stream, programmed.max(torn));
        if let Some(stream) = stream {
            self.set_end(sb, stream, programmed);
        }
        let has_table =
            self.table_units > 0 && !tables.is_empty() && self.units_of_table(sb).eq(tables.iter().copied());
        self.table[sb.index()].has_table = has_table && !self.table[sb.index()].failed;
    }

    /// Says for which stream a superblock is written, which what it holds may not show; before unit `programmed` is
    /// data.
    pub(crate) fn set_end(&mut self, sb: SuperblockId, stream: Stream, programmed: u32) {
        let end = self.end_of_data(sb, stream);
        let slot = &mut self.table[sb.index()];
        // Behind its data is its table, which may be torn. If a block has gone bad since, data may go beyond where the
        // table would be now.
        slot.next_unit = slot.next_unit.min(end).max(programmed);
        slot.end = end.max(programmed);
        slot.slc = stream == Stream::Boosted;
        self.skip_bad(sb);
    }

    /// The state that a checkpoint keeps.
    pub(crate) fn snapshot(&self) -> Vec<Superblock> {
        self.table.clone()
    }

    /// Takes over a table that recovery has put together. Superblocks that were open stay so, after what was torn.
    pub(crate) fn restore(&mut self, table: Vec<Superblock>, now: u32) {
        self.table = table;
        self.open = [None; Stream::COUNT];
        self.erased.clear();
        self.to_erase.clear();
        self.meta_in_use = 0;
        self.wear_band = WearBand::NONE;
        (self.slc, self.slc_closed) = (0, 0);
        self.failed = self.table.iter().filter(|sb| sb.failed).count() as u32;
        for i in (0..self.table.len() as u32).map(SuperblockId) {
            let bad = self.bad_dies(i);
            let slot = &mut self.table[i.index()];
            slot.in_flight = 0;
            slot.bad_dies = bad;
            if slot.state == State::Erased && bad * 2 > self.dies {
                // So many went bad when it was erased last, and that is all that is left of its life since.
                slot.state = State::Retired;
            }
            if let State::Open(stream) = slot.state {
                if slot.next_unit == slot.end || slot.failed {
                    slot.state = State::Closed(stream);
                    slot.closed_at = now;
                } else {
                    self.open[stream.index()] = Some(i);
                }
            }
            slot.slc &= !matches!(slot.state, State::Erased | State::Retired);
            self.slc += u32::from(slot.slc);
            self.slc_closed += u32::from(slot.state == State::Closed(Stream::Boosted));
            match slot.state {
                State::Erased => {
                    slot.next_unit = 0;
                    slot.end = self.units;
                    self.skip_bad(i);
                    self.erased.push(i);
                }
                State::Erasing(_) => {
                    slot.state = State::Erasing(self.dies - bad);
                    self.to_erase.push_back((i, 0));
                }
                State::Open(Stream::Meta) | State::Closed(Stream::Meta) => self.meta_in_use += 1,
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const G: Geometry = Geometry {
        channels: 1,
        dies_per_channel: 2,
        planes: 1,
        blocks_per_plane: 5,
        pages_per_block: 2,
        page_bytes: 4096,
    };

    #[test]
    fn superblocks_are_opened_by_wear_and_come_back_when_erased() {
        let mut s = Superblocks::new(&G);
        assert_eq!((s.erased(), s.open(Stream::Host, 1)), (3, Ok(SuperblockId(2))));
        let units: Vec<_> = (0..4).map(|_| s.next_unit(Stream::Host, 9).unwrap()).collect();
        assert_eq!(units, [8, 9, 10, 11].map(Ppn));
        assert_eq!((s.next_unit(Stream::Host, 9), s.get(SuperblockId(2)).state), (None, State::Closed(Stream::Host)));
        units.iter().for_each(|&u| s.program_ended(u));
        s.add_ref(Ppn(9));
        assert_eq!(s.victim(VictimPolicy::Greedy, 10), Some(SuperblockId(2)));
        s.drop_ref(Ppn(9));
        assert!(s.is_empty(SuperblockId(2)));
        s.discard(SuperblockId(2), 0);
        assert_eq!(s.begin_erase(), Some(SuperblockId(2)));
        assert!(!s.die_erased(SuperblockId(2), 0, false));
        assert!(s.die_erased(SuperblockId(2), 1, false));
        assert_eq!(s.open(Stream::Host, 20), Ok(SuperblockId(3)), "not the one that was erased before");
        assert_eq!(s.open(Stream::Moved, 20), Ok(SuperblockId(2)), "moved data goes where wear is");
    }

    #[test]
    fn references_of_earlier_lives_do_not_count() {
        let mut s = Superblocks::new(&G);
        s.open(Stream::Host, 100).unwrap();
        s.add_ref(Ppn(8));
        s.drop_written_ref(Ppn(8), 99);
        assert_eq!(s.get(SuperblockId(2)).refs, 1, "the map page was written before the superblock was opened");
        s.drop_written_ref(Ppn(8), 100);
        assert_eq!(s.get(SuperblockId(2)).refs, 0);
        s.drop_written_ref(Ppn(12), 100);
    }

    #[test]
    fn bad_blocks_are_skipped_and_retire_superblocks() {
        let mut s = Superblocks::new(&G);
        s.open(Stream::Host, 1).unwrap();
        s.close(Stream::Host, 1);
        s.discard(SuperblockId(2), 0);
        s.begin_erase();
        assert!(!s.die_erased(SuperblockId(2), 0, true) && s.die_erased(SuperblockId(2), 1, false));
        s.open(Stream::Hot, 2).unwrap();
        s.open(Stream::Moved, 2).unwrap();
        assert_eq!((s.open_of(Stream::Moved), s.units_left(Stream::Moved)), (Some(SuperblockId(2)), 2));
        assert_eq!(s.next_unit(Stream::Moved, 3), Some(Ppn(9)), "die 0 is skipped");
        assert_eq!(s.next_unit(Stream::Moved, 3), Some(Ppn(11)));
        s.program_ended(Ppn(9));
        s.program_ended(Ppn(11));
        s.discard(SuperblockId(2), 0);
        s.begin_erase();
        assert!(s.die_erased(SuperblockId(2), 1, true));
        assert_eq!(s.get(SuperblockId(2)).state, State::Retired);
        assert_eq!((s.open(Stream::Cold, 4), s.erased()), (Ok(SuperblockId(4)), 0));
        s.close(Stream::Cold, 4);
        assert_eq!(s.open(Stream::Cold, 5), Err(NoSpace), "what is retired is not opened again");
    }
}
