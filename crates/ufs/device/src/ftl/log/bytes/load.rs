// SPDX-License-Identifier: MIT OR Apache-2.0
//! Begins from a medium: fills the tables of a new device with what a power cut would have left in those of the
//! device that wrote it. Recovery then interprets them, as after every power cut.
//!
//! *Which programs count.* A process that dies leaves all that it programmed. If the whole machine dies, programs
//! that had not reached the disk may be missing, in any order. Programs are numbered without gaps, and everything up
//! to a flush, or to the erase of something older than it, is known to be on the medium, so the first gap after that is
//! the moment of the loss: programs with higher numbers count as torn.
//!
//! *What is damaged.* For a damaged spare area of data that is older than the newest checkpoint, the map gives the
//! logical page: reading it fails, and moving it moves the failure. No map knows data that was programmed later, so
//! the device does not begin: it would silently return older data.

use super::super::Log;
use super::super::durable::{Checkpoint, Durable, Held, Logged};
use super::super::journal::Journal;
use super::super::spare_refs::Refs;
use super::pages::{Limits, Page};
use super::records::{Anchored, BlockRecord, Head, Take};
use super::{FlashArray, SPARE_REST_BYTES, Seen, SliceKind, Spare};
use crate::back::{Hardware, MediaOp};
use crate::config::ANCHORS;
use crate::ftl::map::Map;
use crate::ftl::space::{Space, State, Stream};
use crate::ids::{Lpn, MapPage, SuperblockId};
use readpath_flash::Ppn;
use readpath_kit::BLOCK_BYTES;

const SLICE: usize = BLOCK_BYTES as usize;

/// Why a device cannot begin from a medium.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct LoadError(String);

impl From<String> for LoadError {
    fn from(message: String) -> Self {
        LoadError(message)
    }
}

/// State of a unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Unit {
    Blank,
    Torn,
    Damaged,
    Programmed(Spare),
}

impl Unit {
    /// The state of a unit if units of later programs count only when they are complete. A sealed device does not
    /// report all slices of its units.
    fn whole_behind(self, program: u64, slices: &[Seen]) -> Unit {
        let last = slices.iter().rfind(|seen| **seen != Seen::Blank);
        match (self, last) {
            (Unit::Programmed(spare), Some(Seen::Programmed(last))) if spare.program > program && !last.ends_unit => {
                Unit::Torn
            }
            (unit, _) => unit,
        }
    }
}

fn unit_of(slices: &[Seen]) -> Unit {
    let mut unit = Unit::Blank;
    for seen in slices {
        unit = match (*seen, unit) {
            (Seen::Blank, unit) => unit,
            (Seen::Damaged, _) => return Unit::Damaged,
            (Seen::Torn, _) | (_, Unit::Torn) => Unit::Torn,
            (Seen::Programmed(spare), Unit::Blank) => Unit::Programmed(spare),
            (Seen::Programmed(spare), Unit::Programmed(first)) if spare.program == first.program => unit,
            _ => Unit::Torn,
        };
    }
    unit
}

/// The unit of the next anchor, `next` or later: a torn unit is not written again, and a crash may have left blank
/// ones before it.
fn next_anchor(shown: &[Unit], next: u32, units: u32) -> u32 {
    let end = if next == 0 { units } else { next.next_multiple_of(units) };
    (next..end).rfind(|&at| shown[at as usize] != Unit::Blank).map_or(next, |at| at + 1)
}

/// A unit programmed after the checkpoint.
struct Behind {
    program: u64,
    first: Ppn,
    stream: Stream,
}

impl Log {
    /// Takes over the contents of `array`. The device is new; recovery must follow.
    ///
    /// # Errors
    /// The array cannot be read, is of another device, or is damaged where the device cannot do without.
    pub(crate) fn load(
        &mut self,
        space: &mut Space,
        map: &mut Map,
        array: &mut impl FlashArray,
        hw: &mut impl Hardware,
    ) -> Result<(), LoadError> {
        self.keep_in_flash();
        let (anchored, checkpoint) = self.newest_checkpoint((space, map), array, hw)?;
        (self.export.base, self.export.programs) = (anchored.base, anchored.programs);
        space.spares_mut().begin_at(checkpoint.oldest.saturating_sub(1));
        let (mut behind, damaged) = self.look_at_data(space, array, &anchored, &checkpoint)?;
        let known = array.kept().map(|kept| kept.max(anchored.programs));
        self.leave_out_what_is_behind_a_gap(space, array, known, &mut behind, hw)?;
        let limits = Limits {
            superblocks: self.geometry().superblocks(),
            map_pages: map.pages(),
            blocks: [map.zones_from().0, self.logical_blocks()],
            base: anchored.base,
        };
        let (mut log, mut refs) = (Vec::new(), Vec::new());
        for Behind { first, stream, .. } in behind {
            match stream {
                Stream::Meta => self.read_meta_unit(array, first, &limits, (&mut log, &mut refs))?,
                _ => log.push(Logged::Data { first }),
            }
        }
        self.check_journal(&checkpoint, &log)?;
        self.read_map(map, array, &checkpoint, &log)?;
        name_damaged(space, map, &damaged, &checkpoint);
        array.goes_on(self.export.programs);
        self.durable = Durable::new(checkpoint, log, refs);
        Ok(())
    }

    /// Finds the newest anchor, or else the state with which the device was sealed, and reads the checkpoint.
    fn newest_checkpoint(
        &mut self,
        (space, map): (&mut Space, &Map),
        array: &mut impl FlashArray,
        hw: &mut impl Hardware,
    ) -> Result<(Anchored, Checkpoint), LoadError> {
        let units = self.geometry().units_per_superblock();
        let unit_slices = self.geometry().slices_per_unit() as usize;
        let mut anchors: Vec<(u64, u32, bool)> = Vec::new();
        let mut shown = Vec::new();
        let mut seen = Vec::new();
        for sb in 0..ANCHORS {
            self.take_block_record(space, array, SuperblockId(sb))?;
            array.look(sb, &mut seen)?;
            for (i, slices) in (0..).zip(seen.chunks_exact(unit_slices)) {
                let unit = unit_of(slices);
                if let Unit::Programmed(Spare { kind: SliceKind::Anchor, program, .. }) = unit {
                    anchors.push((program, sb * units + i, unit.whole_behind(0, slices) == unit));
                }
                shown.push(unit);
            }
        }
        anchors.sort_unstable();
        for of_superblock in shown.chunks_exact(units as usize) {
            // Units are programmed in order, so the last is the newest.
            let last = of_superblock.iter().rfind(|unit| matches!(unit, Unit::Damaged | Unit::Programmed(_)));
            if last == Some(&Unit::Damaged) {
                return Err("an anchor is damaged, and may be the newest".to_owned().into());
            }
        }
        // An incomplete anchor was being programmed at the loss; and the checkpoint of another may be missing.
        let kept = array.kept().unwrap_or(u64::MAX);
        let mut newest = None;
        while let (None, Some((program, at, is_whole))) = (&newest, anchors.pop()) {
            let read = if is_whole { self.read_anchor(array, at, program) } else { Ok(None) };
            newest = match read {
                Ok(bytes) if program <= kept => bytes.map(|bytes| (at, bytes)),
                Err(error) if program < kept => return Err(format!("an anchor: {error}").into()),
                _ => None,
            };
            if newest.is_none() {
                // The superblocks of anchors are the first.
                let slices = self.geometry().slices_per_unit();
                hw.emit(MediaOp::Torn { first: Ppn(at * slices), slices });
            }
        }
        let factory = array.factory()?;
        let lengths = [map.pages(), self.geometry().superblocks()];
        let Some(made) = Head::take(&mut Take(&factory), lengths) else {
            return Err("the state in which the image was made is not complete".to_owned().into());
        };
        let erases: u64 = (0..ANCHORS).map(|sb| u64::from(space.get(SuperblockId(sb)).erases)).sum();
        let next = newest.as_ref().map_or(0, |(at, _)| at + 1);
        // Flash shows how far anchors are written, and the newest of them.
        let next = next_anchor(&shown, next, units);
        (self.checkpoint.anchor, self.checkpoint.newest) = (next, newest.as_ref().map(|(at, _)| *at));
        let (head, body) = match newest {
            None if erases > made.anchored.anchor_erases => {
                return Err("no anchor is left, so nothing leads to the map".to_owned().into());
            }
            None => {
                let mut take = Take(&factory);
                (Head::take(&mut take, lengths), take.0.to_vec())
            }
            Some((at, bytes)) => {
                let mut take = Take(&bytes);
                let mut head = Head::take(&mut take, lengths);
                let body = match (&mut head, take.u32()) {
                    (Some(head), Some(parts)) if self.is_ours(head) && parts == head.checkpoint.slots => {
                        self.read_body(array, &mut take, head)?
                    }
                    _ => return Err(format!("anchor {at} is not one of this device").into()),
                };
                (head, body)
            }
        };
        let head = head.filter(|head| self.is_ours(head));
        let mapped = map.zones_from().0;
        let sizes = [self.geometry().slices(), mapped, self.logical_blocks(), map.page_entries()];
        let whole = head.and_then(|head| head.with_body(&body, sizes, self.config.zone_blocks()));
        let whole = whole.filter(|(_, checkpoint)| checkpoint.zones.are_possible(&self.config));
        whole.ok_or_else(|| "the newest checkpoint is not one of this device".to_owned().into())
    }

    /// The bytes of an anchor, if all of it was programmed.
    fn read_anchor(&self, array: &mut impl FlashArray, at: u32, program: u64) -> Result<Option<Vec<u8>>, String> {
        let first = at * self.geometry().slices_per_unit();
        let mut bytes = Vec::new();
        for ppn in (first..first + self.geometry().slices_per_unit()).map(Ppn) {
            let from = bytes.len();
            bytes.resize(from + SLICE, 0);
            if array.is_blank(ppn)? {
                break;
            }
            let spare = array.read(ppn, &mut [0; SPARE_REST_BYTES], &mut bytes[from..])?;
            if spare.program == program && spare.ends_unit {
                return Ok(Some(bytes));
            }
        }
        Ok(None)
    }

    fn is_ours(&self, head: &Head) -> bool {
        // The anchor, a unit, names the place of each part.
        let most = self.geometry().slices_per_unit() * BLOCK_BYTES / 4;
        head.fits(most)
    }

    /// The body of a checkpoint, from the places that its anchor names.
    fn read_body(&self, array: &mut impl FlashArray, places: &mut Take, head: &mut Head) -> Result<Vec<u8>, LoadError> {
        let mut body = Vec::new();
        for _ in 0..head.checkpoint.slots {
            let at = places.u32().map(Ppn).ok_or_else(|| "an anchor is cut off".to_owned())?;
            let read = self.read_page(array, at);
            let (spare, page) = read.map_err(|LoadError(error)| format!("a part of the checkpoint: {error}"))?;
            if spare.kind != SliceKind::Checkpoint {
                return Err(format!("slice {} holds no part of a checkpoint", at.0).into());
            }
            body.extend(page.data);
            head.checkpoint.places.push(at);
        }
        let bytes = head.body_bytes(self.config.zone_blocks().count(), &body);
        body.truncate(bytes.min(body.len() as u64) as usize);
        Ok(body)
    }

    /// Reads a page as long as a map page.
    fn read_page(&self, array: &mut impl FlashArray, at: Ppn) -> Result<(Spare, Page), LoadError> {
        let slices = self.config.map_page_bytes / BLOCK_BYTES;
        if at.0 >= self.geometry().slices() || !at.0.is_multiple_of(slices) {
            return Err(format!("slice {} is not the first of a page of the map", at.0).into());
        }
        let mut page = Page { data: vec![0; slices as usize * SLICE], rest: Vec::new() };
        let mut spare = None;
        for (i, data) in (0..).zip(page.data.chunks_exact_mut(SLICE)) {
            let mut rest = [0; SPARE_REST_BYTES];
            let of_slice = array.read(Ppn(at.0 + i), &mut rest, data)?;
            page.rest.extend(rest);
            let first: &mut Spare = spare.get_or_insert(of_slice);
            if (first.kind, first.page, first.program) != (of_slice.kind, of_slice.page, of_slice.program) {
                return Err(format!("the slices of the page at slice {} do not belong together", at.0).into());
            }
        }
        Ok((spare.expect("a page has a slice"), page))
    }

    fn take_block_record(
        &mut self,
        space: &mut Space,
        array: &mut impl FlashArray,
        sb: SuperblockId,
    ) -> Result<BlockRecord, LoadError> {
        let Some(bytes) = array.block_record(sb.0)? else { return Ok(BlockRecord::default()) };
        let record = BlockRecord::from_bytes(&bytes).unwrap_or_default();
        if let Some(die) = record.bad.iter().find(|&&die| die >= self.geometry().dies()) {
            return Err(format!("superblock {sb} has a bad block on die {die}, which the device does not have").into());
        }
        space.load_record(sb, record.erases, record.slc_erases, record.failed, &record.bad);
        self.export.slc_erases[sb.index()] = record.slc_erases;
        Ok(record)
    }

    /// Looks at all superblocks but those of anchors. Returns the units programmed after the checkpoint, in order,
    /// and the slices of older units that are damaged or torn.
    fn look_at_data(
        &mut self,
        space: &mut Space,
        array: &mut impl FlashArray,
        anchored: &Anchored,
        checkpoint: &Checkpoint,
    ) -> Result<(Vec<Behind>, Vec<Ppn>), LoadError> {
        let unit_slices = self.geometry().slices_per_unit();
        let (mut behind, mut damaged): (Vec<Behind>, Vec<Ppn>) = Default::default();
        let mut seen = Vec::new();
        for sb in (0..self.geometry().superblocks()).map(SuperblockId) {
            let record = self.take_block_record(space, array, sb)?;
            if sb.0 < ANCHORS {
                continue;
            }
            array.look(sb.0, &mut seen)?;
            let (mut programmed, mut torn, mut stream, mut tables) = (0, 0, None, Vec::new());
            // Of a zone, units are programmed in another order.
            let mut in_programs = 0;
            for (unit, slices) in (0..).zip(seen.chunks_exact(unit_slices as usize)) {
                let first = Ppn(space.first(sb).0 + unit * unit_slices);
                let shown = match self.settings().without.spare_check {
                    true => unit_of(slices),
                    false => unit_of(slices).whole_behind(anchored.programs, slices),
                };
                if shown != Unit::Blank {
                    in_programs = in_programs.max(space.program_of_unit(sb, unit) + 1);
                }
                match shown {
                    Unit::Blank => {}
                    shown @ (Unit::Torn | Unit::Damaged) => {
                        let then = &checkpoint.superblocks[sb.index()];
                        let at = match then.state {
                            State::Open(Stream::Zone) | State::Closed(Stream::Zone) => {
                                space.program_of_unit(sb, unit) * self.config.zone_program_units()
                            }
                            _ => unit,
                        };
                        if record.erases == then.erases && at < then.next_unit {
                            damaged.extend((first.0..first.0 + unit_slices).map(Ppn));
                        } else if shown == Unit::Damaged {
                            let what = "what is damaged in the unit of slice";
                            return Err(format!("{what} {} was not there when the map was written", first.0).into());
                        }
                        torn = unit + 1;
                    }
                    Unit::Programmed(spare) => {
                        match spare.kind {
                            SliceKind::Table => tables.push(unit),
                            _ => programmed = unit + 1,
                        }
                        stream = Some(spare.stream);
                        if spare.program > anchored.programs {
                            behind.push(Behind { program: spare.program, first, stream: spare.stream });
                        }
                        self.take_spares(space, first, slices, anchored)?;
                    }
                }
            }
            if stream == Some(Stream::Zone) {
                (programmed, torn) = (0, in_programs * self.config.zone_program_units());
            }
            space.load(sb, record.retired, stream, (programmed, torn), &tables);
        }
        behind.sort_unstable_by_key(|unit| unit.program);
        if let Some(two) = behind.windows(2).find(|two| two[0].program == two[1].program) {
            let (a, b) = (two[0].first.0, two[1].first.0);
            return Err(format!("the units of slices {a} and {b} have the same number").into());
        }
        Ok((behind, damaged))
    }

    fn take_spares(
        &mut self,
        space: &mut Space,
        first: Ppn,
        slices: &[Seen],
        anchored: &Anchored,
    ) -> Result<(), LoadError> {
        for (ppn, seen) in (first.0..).map(Ppn).zip(slices) {
            let Seen::Programmed(Spare { kind: SliceKind::Data, page: Some(page), sequence, .. }) = *seen else {
                continue;
            };
            let sequence = u32::try_from(sequence.saturating_sub(anchored.base)).ok();
            let sequence = sequence.filter(|&sequence| space.spares().has_room_for(sequence));
            let (true, Some(sequence)) = (page < self.logical_blocks(), sequence) else {
                return Err(format!("slice {}: block {page} or its sequence number is out of range", ppn.0).into());
            };
            space.spares_mut().load(ppn, Lpn(page), sequence);
        }
        Ok(())
    }

    /// Drops the units behind the first gap. Programs up to `known` are known to be complete; without a number, all
    /// are.
    fn leave_out_what_is_behind_a_gap(
        &mut self,
        space: &mut Space,
        array: &mut impl FlashArray,
        known: Option<u64>,
        behind: &mut Vec<Behind>,
        hw: &mut impl Hardware,
    ) -> Result<(), LoadError> {
        let slices = self.geometry().slices_per_unit();
        let newest = behind.last().map_or(0, |unit| unit.program);
        let known = known.unwrap_or(newest.max(self.export.programs));
        let (mut last, mut counts) = (known, 0);
        for unit in behind.iter() {
            if unit.program > known {
                if unit.program != last + 1 || !is_whole(array, unit.first, slices)? {
                    break;
                }
                last = unit.program;
            }
            counts += 1;
        }
        self.export.programs = last;
        for Behind { first, .. } in behind.drain(counts..) {
            space.spares_mut().erase(first, slices);
            hw.emit(MediaOp::Torn { first, slices });
        }
        Ok(())
    }

    /// Reads the pages of a unit of the meta stream into the log.
    fn read_meta_unit(
        &self,
        array: &mut impl FlashArray,
        first: Ppn,
        limits: &Limits,
        (log, refs): (&mut Vec<Logged>, &mut Vec<Refs>),
    ) -> Result<(), LoadError> {
        let slices = self.config.map_page_bytes / BLOCK_BYTES;
        let mut parts = Vec::new();
        let mut next = None;
        for at in (first.0..first.0 + self.geometry().slices_per_unit()).step_by(slices as usize).map(Ppn) {
            if array.is_blank(at)? {
                break;
            }
            let (spare, page) = self.read_page(array, at)?;
            next = next.or(page.next(limits.superblocks).transpose()?);
            if spare.kind != SliceKind::Checkpoint {
                parts.push(Logged::Part(page.held(spare, at, limits, refs)?));
            }
        }
        if let Some((superblock, opened_at)) = next {
            parts.push(Logged::Part(Held::Next { superblock, opened_at }));
        }
        if !parts.is_empty() {
            log.push(Logged::Meta { first, parts: parts.len() as u32 });
            log.extend(parts);
        }
        Ok(())
    }

    /// Checks that the journal continues behind the checkpoint without gaps, and sets its count.
    fn check_journal(&mut self, checkpoint: &Checkpoint, log: &[Logged]) -> Result<(), LoadError> {
        let mut newest = None;
        for logged in log {
            let Logged::Part(Held::Journal { first, records }) = logged else { continue };
            // The first page behind the checkpoint may begin with older records. Records that were not in flash at
            // the cut are lost; numbers then continue behind the checkpoint's.
            let expected = newest.map_or(*first.min(&(checkpoint.journal + 1)), |newest| newest + 1);
            let goes_on = *first == expected || (expected <= checkpoint.journal && *first == checkpoint.journal + 1);
            if !goes_on || first.checked_add(records.len() as u64).is_none() {
                return Err(format!("records {expected} to {first} of the journal are missing").into());
            }
            newest = Some(first + records.len() as u64 - 1);
        }
        self.journal = Journal::up_to(newest.unwrap_or(0).max(checkpoint.journal));
        Ok(())
    }

    /// Reads the newest version of every map page.
    fn read_map(
        &mut self,
        map: &mut Map,
        array: &mut impl FlashArray,
        checkpoint: &Checkpoint,
        log: &[Logged],
    ) -> Result<(), LoadError> {
        let mut directory = checkpoint.directory.clone();
        for logged in log {
            if let Logged::Part(Held::Map { page, at, .. }) = logged {
                directory[page.index()] = Some(*at);
            }
        }
        for (page, at) in (0..).map(MapPage).zip(directory) {
            let Some(at) = at else { continue };
            let read = self.read_page(array, at);
            let (spare, bytes) = read.map_err(|LoadError(error)| format!("map page {}: {error}", page.0))?;
            if spare.kind != SliceKind::Map || spare.page != Some(page.0) {
                return Err(format!("slice {} does not hold map page {}", at.0, page.0).into());
            }
            let entries = bytes.entries(map.blocks_of(page).count(), self.geometry().slices());
            let entries = entries.ok_or_else(|| format!("map page {} points beyond the flash", page.0))?;
            map.load_page(page, at, bytes.written_at(), entries.into_iter());
        }
        Ok(())
    }
}

/// Names the slices of damaged units by the map or the changes of the checkpoint; slices of torn units stay unnamed.
fn name_damaged(space: &mut Space, map: &Map, damaged: &[Ppn], checkpoint: &Checkpoint) {
    if damaged.is_empty() {
        return;
    }
    let of_map = map.all_pages().flat_map(|page| map.blocks_of(page)).map(|lpn| (lpn, map.get(lpn)));
    let of_changes = checkpoint.changes().iter().map(|change| (change.first, change.entry.mapping()));
    let places = of_map.chain(of_changes).filter_map(|(lpn, at)| Some((at.flash()?, lpn)));
    for (ppn, lpn) in places.filter(|(ppn, _)| damaged.binary_search(ppn).is_ok()) {
        // No write or trim since the checkpoint is older.
        space.spares_mut().load(ppn, lpn, checkpoint.sequence);
    }
}

/// Whether everything that is programmed in a unit can be read.
fn is_whole(array: &mut impl FlashArray, first: Ppn, slices: u32) -> Result<bool, LoadError> {
    let mut data = [0; SLICE];
    for ppn in (first.0..first.0 + slices).map(Ppn) {
        if array.is_blank(ppn)? {
            return Ok(false);
        }
        match array.read(ppn, &mut [0; SPARE_REST_BYTES], &mut data) {
            Ok(spare) if spare.ends_unit => return Ok(true),
            Ok(_) => {}
            Err(_) => return Ok(false),
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_anchor_is_written_over_a_torn_one() {
        let mut shown = [Unit::Blank; 8];
        assert_eq!((next_anchor(&shown, 0, 4), next_anchor(&shown, 2, 4)), (0, 2));
        shown[2] = Unit::Torn;
        assert_eq!((next_anchor(&shown, 0, 4), next_anchor(&shown, 3, 4)), (3, 3), "two are blank, the third is torn");
        shown[5] = Unit::Torn;
        assert_eq!((next_anchor(&shown, 4, 4), next_anchor(&shown, 5, 4)), (4, 6), "the first superblock is full");
        shown[7] = Unit::Torn;
        assert_eq!((next_anchor(&shown, 5, 4), next_anchor(&shown, 8, 4)), (8, 8));
    }
}
