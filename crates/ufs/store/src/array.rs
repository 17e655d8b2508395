// SPDX-License-Identifier: MIT OR Apache-2.0
//! The array: programs, erases and reads of slices with their spare areas, as bytes of a disk.
//!
//! *Order of writes.* The data of a unit is written first, then its spare areas, in one write: before that, nothing
//! counts as programmed. When a flush is answered, and before something is erased that was programmed before the last
//! sync, everything before is synced, and the number of the newest program is recorded; so after a crash of the
//! machine a reader of the array knows up to which program it is complete. While the machine runs, it is complete
//! anyway. An array that gathers ([`FlashFile::gather`]) makes the writes of several units together, when it is settled
//! or anything else is written: the data of all first, then the spare areas in the order of the programs.
//!
//! *Torn or damaged.* A crash of the machine cuts a write between two sectors, a kill between two pages of memory;
//! nothing is cut once the array was sealed. So a head of a spare area with a wrong check is torn only if such a
//! place lies in it and one side is gone: it was not written, or was erased. The program of a unit that had reached the
//! disk before a flush was answered was written; an erase takes all of the unit on that side. Any other is damaged.
//!
//! *After a failed write* nothing is written any more. The array then has the state that a power cut at that moment
//! would have left, from which the device can recover. What the device moves then is read where the disk holds it.

mod head;
mod kept;
mod rpmb;
mod runs;
#[cfg(test)]
mod tests;

pub use head::torn;
pub use kept::Boot;

use crate::disk::Disk;
use crate::error::ImageError;
use crate::layout::{Format, HEAD_BYTES, RECORD_BYTES};
use head::{ENDS_UNIT, Head, Read, checked, is_cut};
use kept::Kept;
use readpath_device::{
    BLOCK_RECORD_BYTES, FlashArray, OwnSlice, RpmbState, SETTINGS_BYTES, SPARE_REST_BYTES, Seen, SliceKind, Spare,
    Stream,
};
use readpath_flash::Ppn;
use readpath_kit::BLOCK_BYTES;
use runs::Runs;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use thiserror::Error;

const SLICE: usize = BLOCK_BYTES as usize;
/// Bytes of data, and of heads, that are gathered at most.
const MOST_DATA: usize = 1 << 18;
const MOST_HEADS: usize = 1 << 12;

/// Why a slice cannot be read.
#[derive(Debug, Error)]
pub enum ArrayFault {
    /// The disk reports an error.
    #[error("slice {slice} (byte {offset} of the image): {error}")]
    Disk {
        /// Slice.
        slice: u32,
        /// Offset of its data.
        offset: u64,
        /// The disk's error.
        error: io::Error,
    },
    /// Its contents differ from what was written.
    #[error("slice {slice} is damaged: {what} (byte {offset} of the image) is not what was written")]
    Damaged {
        /// Slice.
        slice: u32,
        /// Its data, or its spare area.
        what: &'static str,
        /// Offset of the damaged part.
        offset: u64,
    },
    /// It holds another logical page than the map says.
    #[error("slice {slice} holds {holds:?} and not logical page {page}")]
    Another {
        /// Slice.
        slice: u32,
        /// The page in its spare area.
        holds: Option<u32>,
        /// The requested page.
        page: u32,
    },
    /// Its program was lost because a write had failed.
    #[error("slice {slice} could not be written")]
    Lost {
        /// Slice.
        slice: u32,
    },
    /// It is not programmed.
    #[error("slice {slice} was read though nothing is programmed there")]
    Blank {
        /// Slice.
        slice: u32,
    },
}

/// Result of an examination of an array.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Damage {
    /// Programmed slices.
    pub programmed: u64,
    /// Of those, slices with stored data; the others are zeros.
    pub with_data: u64,
    /// Slices whose program was interrupted.
    pub torn: u64,
    /// Slices whose spare area or data differs from what was written.
    pub damaged: u64,
}

/// The spare area of a slice of data. The end of its unit adds its stream and the number of its program.
fn spare_of_data(page: Option<u32>, sequence: u64) -> Spare {
    Spare { kind: SliceKind::Data, stream: Stream::Host, page, sequence, program: 0, ends_unit: false }
}

fn is_zero(data: &[u8]) -> bool {
    data.chunks_exact(64).all(|chunk| chunk == [0; 64]) && data.chunks_exact(64).remainder().iter().all(|&b| b == 0)
}

/// An array on a disk.
#[derive(Debug)]
pub struct FlashFile<D> {
    disk: D,
    format: Format,
    /// Syncs, so that acknowledged data survives a crash of the machine; otherwise programs only survive the process.
    syncs: bool,
    /// There were writes since the last sync.
    is_dirty: bool,
    /// Number of the newest program.
    newest: u64,
    kept: Kept,
    /// A slice was programmed, torn or erased since the array was opened or sealed.
    is_written: bool,
    /// Earlier writes must reach the disk before any further program.
    comes_first: bool,
    failure: Option<String>,
    /// Slices whose programs were lost since, where the disk holds older contents; and for moved data, the slice where
    /// the disk holds it.
    lost: BTreeMap<u32, Option<u32>>,
    /// Moved data that is still to be written: where to, and the slice where the disk holds it.
    moved: Vec<(u32, u32)>,
    /// Slices whose heads a crash or a kill has cut. They are marked as torn before a kept record says that there are
    /// none.
    cut: BTreeSet<u32>,
    /// Superblocks (first slice, slices) erased since the last sync. Their data is freed when their spare areas are
    /// certainly gone: otherwise a crash could leave a spare area without its data.
    erased: Vec<(Ppn, u32)>,
    /// The lowest number of a program in each superblock since its erase; 0 if that may have been before the array was
    /// opened, [`u64::MAX`] if there was none.
    begun: Vec<u64>,
    /// Programs since the kept one were erased: behind that gap the kept record alone tells what a crash has left.
    has_gap: bool,
    /// Number of the newest change of RPMB, once it is known and earlier changes are in place.
    rpmb_newest: Option<u64>,
    /// Heads of the unit being assembled.
    heads: Vec<u8>,
    /// Heads of complete units, and data of slices, that are still to be written.
    held: Runs,
    data: Runs,
    /// Units are held until they are settled.
    gathers: bool,
}

impl<D: Disk> FlashFile<D> {
    /// Opens the array on `disk`, which must have the layout.
    ///
    /// # Errors
    /// It cannot be read, or a kept record is damaged.
    pub(crate) fn new(disk: D, format: Format, syncs: bool, boot: Boot) -> Result<Self, ImageError> {
        let kept = Kept::read(&disk, boot)?;
        Ok(FlashFile {
            disk,
            format,
            syncs,
            // What another process wrote may not have reached the disk yet.
            is_dirty: true,
            newest: kept.program,
            kept,
            is_written: false,
            comes_first: false,
            failure: None,
            lost: BTreeMap::new(),
            moved: Vec::new(),
            cut: BTreeSet::new(),
            erased: Vec::new(),
            begun: vec![0; format.shape.superblocks as usize],
            has_gap: false,
            rpmb_newest: None,
            heads: Vec::new(),
            held: Runs::default(),
            data: Runs::default(),
            gathers: false,
        })
    }

    /// The layout.
    pub fn format(&self) -> &Format {
        &self.format
    }

    /// The disk.
    pub fn disk(&self) -> &D {
        &self.disk
    }

    /// The disk, for tests that change it.
    pub fn disk_mut(&mut self) -> &mut D {
        &mut self.disk
    }

    /// The failure after which nothing is written any more, if there was one.
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// Writes after all units that are complete, unless a write has failed before.
    fn write(&mut self, what: impl FnOnce(&mut D) -> io::Result<()>) {
        self.settle();
        self.write_now(what);
    }

    fn write_now(&mut self, what: impl FnOnce(&mut D) -> io::Result<()>) {
        if self.failure.is_some() {
            return;
        }
        self.is_dirty = true;
        if let Err(error) = what(&mut self.disk) {
            self.failure = Some(error.to_string());
        }
    }

    /// Programs a slice of a unit of data.
    pub(crate) fn program(&mut self, ppn: Ppn, page: Option<u32>, sequence: u64, data: &[u8]) {
        self.add(ppn, spare_of_data(page, sequence), None, data);
    }

    /// Programs a slice of a unit of data with the contents of another slice, which holds `page`.
    pub(crate) fn copy(&mut self, from: Ppn, to: Ppn, page: u32, sequence: u64) {
        let mut data = [0; SLICE];
        self.settle_slice(from);
        match self.read_page(from, page, &mut data) {
            Ok(()) => {
                self.moved.push((to.0, self.lost.get(&from.0).copied().flatten().unwrap_or(from.0)));
                return self.program(to, Some(page), sequence, &data);
            }
            // The source may be readable next time: nothing is written any more, and so nothing is erased.
            Err(fault @ ArrayFault::Disk { .. }) => _ = self.failure.get_or_insert(fault.to_string()),
            Err(_) => {}
        }
        // The copy is unreadable too. Other slices of the unit are not affected.
        let (spare, check) = (spare_of_data(Some(page), sequence), !crc32fast::hash(&[0; SLICE]));
        self.heads.extend(Head { spare, check, has_data: true, has_rest: false }.to_bytes());
    }

    fn add(&mut self, ppn: Ppn, spare: Spare, rest: Option<&[u8; SPARE_REST_BYTES]>, data: &[u8]) {
        // The slice is overwritten, and a crash must not leave its earlier head with the new data.
        let erased = self.erased.len();
        self.erased.retain(|&(first, slices)| !(first.0..first.0 + slices).contains(&ppn.0));
        if self.erased.len() < erased {
            self.sync_at_once();
        }
        let has_data = !is_zero(data);
        let mut check = crc32fast::Hasher::new();
        let format = self.format;
        if let Some(rest) = rest {
            check.update(rest);
            // As with data, nothing names it yet.
            self.write_now(|disk| disk.write_at(rest, format.rest(ppn.0)));
        }
        if has_data {
            check.update(self.data.add(format.data(ppn.0), data, SLICE));
            if self.data.bytes() >= MOST_DATA {
                self.write_data();
            }
        }
        self.heads.extend(Head { spare, check: check.finalize(), has_data, has_rest: rest.is_some() }.to_bytes());
    }

    /// Completes the unit that begins at `first`.
    pub(crate) fn programmed(&mut self, first: Ppn, stream: Stream, program: u64) {
        let mut heads = std::mem::take(&mut self.heads);
        for head in heads.chunks_exact_mut(HEAD_BYTES) {
            let bytes: &mut [u8; HEAD_BYTES] = head.try_into().expect("an exact chunk");
            bytes[7] = bytes[7] & !(0xf | ENDS_UNIT) | stream.index() as u8;
            bytes[18..24].copy_from_slice(&program.to_le_bytes()[..6]);
            *bytes = checked(*bytes);
        }
        self.end_unit(first, program, heads);
    }

    /// Records that slices will be programmed, torn or erased from now on.
    fn begin_writing(&mut self) {
        if std::mem::replace(&mut self.is_written, true) {
            return;
        }
        let was_sealed = std::mem::take(&mut self.kept.is_sealed);
        self.put_kept();
        if was_sealed {
            self.sync_at_once();
        }
    }

    fn end_unit(&mut self, first: Ppn, program: u64, mut heads: Vec<u8>) {
        if let Some(last) = heads.last_chunk_mut::<HEAD_BYTES>() {
            last[7] |= ENDS_UNIT;
            *last = checked(*last);
        }
        if std::mem::take(&mut self.comes_first) && self.syncs {
            self.write(Disk::sync);
        }
        self.begin_writing();
        self.held.add(self.format.head(first.0), &heads, heads.len());
        let begun = self.begun(first);
        *begun = program.min(*begun);
        self.newest = self.newest.max(program);
        heads.clear();
        self.heads = heads;
        if !self.gathers || self.held.bytes() >= MOST_HEADS {
            self.settle();
        }
    }

    /// Programs a unit of metadata.
    pub(crate) fn program_own(&mut self, unit: &[OwnSlice]) {
        let Some(first) = unit.first() else { return };
        for slice in unit {
            self.add(slice.ppn, slice.spare, Some(&slice.rest), &slice.data);
        }
        let heads = std::mem::take(&mut self.heads);
        self.end_unit(first.ppn, first.spare.program, heads);
    }

    /// Writes the spare areas of a device that is being sealed; their data is zeros.
    pub(crate) fn seal_heads(&mut self, first: Ppn, spares: &[Option<Spare>]) {
        let head = |spare: &Option<Spare>| match *spare {
            Some(spare) => Head { spare, check: 0, has_data: false, has_rest: false }.to_bytes(),
            None => [0; HEAD_BYTES],
        };
        let heads: Vec<u8> = spares.iter().flat_map(head).collect();
        let offset = self.format.head(first.0);
        self.write(|disk| disk.write_at(&heads, offset));
    }

    /// Writes a slice of metadata of a device that is being sealed.
    pub(crate) fn seal_own(&mut self, slice: &OwnSlice) {
        self.program_own(std::slice::from_ref(slice));
    }

    /// Marks slices whose programs were interrupted. Their program numbers may be reused, so the marks are written
    /// before anything that follows: also before a record of this start of the machine, after which all programs count.
    pub(crate) fn tear(&mut self, first: Ppn, slices: u32) {
        if self.kept.is_sealed {
            self.begin_writing();
        }
        self.comes_first = true;
        let heads: Vec<u8> = (0..slices).flat_map(|_| torn()).collect();
        let offset = self.format.head(first.0);
        self.write(|disk| disk.write_at(&heads, offset));
    }

    /// As [`FlashFile::begun`], for the superblock of a slice.
    fn begun(&mut self, slice: Ppn) -> &mut u64 {
        &mut self.begun[(slice.0 / self.format.shape.superblock_slices) as usize]
    }

    /// Erases a superblock. Of what was programmed since the last sync a crash of the machine may leave anything, so
    /// it may leave any part of such a superblock, too.
    pub(crate) fn erase(&mut self, first: Ppn, slices: u32) {
        self.begin_writing();
        // No program is newer than the kept one by more than the slices of the array.
        let shape = self.format.shape;
        let is_near = self.newest + shape.slices() / u64::from(shape.unit_slices) < self.kept.program + shape.slices();
        let may_be_lost = std::mem::replace(self.begun(first), u64::MAX) > self.kept.program && is_near;
        match may_be_lost {
            true => self.has_gap = true,
            false => self.put_down(),
        }
        let offset = self.format.head(first.0);
        self.write(|disk| disk.zero(offset, u64::from(slices) * HEAD_BYTES as u64));
        if self.syncs && !may_be_lost {
            self.erased.push((first, slices));
        } else {
            self.drop_data(first, slices);
        }
    }

    /// Frees the space of erased slices that have not been programmed since.
    fn drop_erased_data(&mut self) {
        for (first, slices) in std::mem::take(&mut self.erased) {
            self.drop_data(first, slices);
        }
    }

    fn drop_data(&mut self, first: Ppn, slices: u32) {
        let parts = [(self.format.rest(first.0), SPARE_REST_BYTES), (self.format.data(first.0), SLICE)];
        for (offset, each) in parts {
            self.write(|disk| disk.zero(offset, u64::from(slices) * each as u64));
        }
    }

    /// Writes the record of a superblock.
    pub(crate) fn put_record(&mut self, superblock: u32, record: &[u8; BLOCK_RECORD_BYTES]) {
        let mut bytes = [0; RECORD_BYTES];
        bytes[..BLOCK_RECORD_BYTES].copy_from_slice(record);
        bytes[BLOCK_RECORD_BYTES] = 1;
        let check = crc32fast::hash(&bytes[..RECORD_BYTES - 4]);
        bytes[RECORD_BYTES - 4..].copy_from_slice(&check.to_le_bytes());
        let offset = self.format.record(superblock);
        self.write(|disk| disk.write_at(&bytes, offset));
    }

    /// Writes the non-volatile attributes and flags. They survive a crash of the machine when this returns, unless a
    /// write has failed.
    pub(crate) fn put_settings(&mut self, settings: &[u8; SETTINGS_BYTES]) {
        self.put_part(Format::SETTINGS, settings);
        self.sync_at_once();
    }

    /// Syncs, so that earlier writes precede later ones.
    fn sync_at_once(&mut self) {
        if self.syncs {
            self.write(Disk::sync);
        }
    }

    /// Makes all programs survive a crash of the machine.
    ///
    /// # Errors
    /// The failure.
    pub fn sync(&mut self) -> Result<(), String> {
        self.settle();
        if self.is_dirty && self.syncs && self.failure.is_none() {
            if let Err(error) = self.disk.sync() {
                self.failure = Some(error.to_string());
            }
            self.is_dirty = self.failure.is_some();
            self.drop_erased_data();
        }
        match &self.failure {
            Some(failure) => Err(failure.clone()),
            None => {
                if self.kept.program != self.newest {
                    self.kept.program = self.newest;
                    self.put_kept();
                    if std::mem::take(&mut self.has_gap) {
                        self.sync_at_once();
                    }
                }
                Ok(())
            }
        }
    }

    /// Seals the array after the last write: it survives a crash of the machine, and records that only marked slices
    /// are torn. Without syncs it is not sealed.
    ///
    /// # Errors
    /// As [`FlashFile::sync`].
    pub fn seal(&mut self) -> Result<(), String> {
        self.sync()?;
        if self.syncs && !self.kept.is_sealed {
            self.kept.is_sealed = true;
            self.put_kept();
            self.write(Disk::sync);
            self.is_written = false;
        }
        self.failure.clone().map_or(Ok(()), Err)
    }

    /// Records that programs up to the newest survive a crash of the machine.
    fn put_down(&mut self) {
        if self.sync().is_ok() {
            self.sync_at_once();
        }
    }

    fn put_kept(&mut self) {
        let cut = std::mem::take(&mut self.cut);
        for &slice in &cut {
            let offset = self.format.head(slice);
            self.write(|disk| disk.write_at(&torn(), offset));
        }
        if !cut.is_empty() {
            self.sync_at_once();
        }
        self.settle();
        let (offset, bytes) = self.kept.next();
        let was_dirty = self.is_dirty;
        self.write(|disk| disk.write_at(&bytes, offset));
        // If this number is lost, an older one is used, which is safe.
        self.is_dirty = was_dirty;
    }

    fn head(&self, ppn: Ppn) -> io::Result<Read> {
        let mut bytes = [0; HEAD_BYTES];
        self.disk.read_at(&mut bytes, self.format.head(ppn.0))?;
        Ok(Head::from_bytes(&bytes))
    }

    /// Parses the heads of a superblock, and tells damaged ones from those that a crash or a kill has cut.
    fn heads_of<'a>(&'a self, superblock: u32, heads: &'a [u8]) -> impl Iterator<Item = (u32, &'a [u8], Read)> {
        let first = superblock * self.format.shape.superblock_slices;
        let unit_slices = self.format.shape.unit_slices as usize;
        (0..).zip(heads.chunks_exact(HEAD_BYTES)).map(move |(place, bytes)| {
            let slice = first + place as u32;
            let read = match Head::from_bytes(bytes.try_into().expect("the bytes of a head")) {
                Read::Damaged => {
                    let unit = place / unit_slices * unit_slices;
                    let unit_bytes = &heads[unit * HEAD_BYTES..(unit + unit_slices) * HEAD_BYTES];
                    let cut_at = self.kept.can_be_cut(self.format.head(slice), HEAD_BYTES);
                    let newest = self.kept.program.saturating_add(self.format.shape.slices());
                    let is_cut = |at| is_cut(unit_bytes, (place - unit, at), self.kept.program, newest);
                    if cut_at.is_some_and(is_cut) { Read::Torn } else { Read::Damaged }
                }
                read => read,
            };
            (slice, bytes, read)
        })
    }

    /// Reads the data of a slice, and the rest of its spare area, and checks both.
    ///
    /// # Errors
    /// The disk cannot be read, or they differ from what was written.
    pub(crate) fn read_slice(
        &self,
        ppn: Ppn,
        rest: Option<&mut [u8; SPARE_REST_BYTES]>,
        data: &mut [u8],
    ) -> Result<Spare, ArrayFault> {
        let slice = match self.lost.get(&ppn.0) {
            None => ppn.0,
            Some(&Some(slice)) => slice,
            Some(None) => return Err(ArrayFault::Lost { slice: ppn.0 }),
        };
        let ppn = Ppn(slice);
        let disk = |offset| move |error| ArrayFault::Disk { slice, offset, error };
        let at = self.format.head(slice);
        let head = match self.head(ppn).map_err(disk(at))? {
            Read::Head(head) => head,
            Read::Blank => return Err(ArrayFault::Blank { slice }),
            Read::Torn | Read::Damaged => {
                return Err(ArrayFault::Damaged { slice, what: "its spare area", offset: at });
            }
        };
        let mut check = crc32fast::Hasher::new();
        if head.has_rest {
            let mut bytes = [0; SPARE_REST_BYTES];
            let at = self.format.rest(slice);
            self.disk.read_at(&mut bytes, at).map_err(disk(at))?;
            check.update(&bytes);
            if let Some(rest) = rest {
                *rest = bytes;
            }
        }
        let at = self.format.data(slice);
        if head.has_data {
            self.disk.read_at(data, at).map_err(disk(at))?;
            check.update(data);
        } else {
            data.fill(0);
        }
        match check.finalize() == head.check {
            true => Ok(head.spare),
            false => Err(ArrayFault::Damaged { slice, what: "its data", offset: at }),
        }
    }

    /// Reads the data of a logical page from the slice that holds it.
    ///
    /// # Errors
    /// As a read of one slice, or the slice holds another page.
    pub fn read_page(&self, ppn: Ppn, page: u32, data: &mut [u8]) -> Result<(), ArrayFault> {
        match self.read_slice(ppn, None, data)?.page {
            holds if holds == Some(page) => Ok(()),
            holds => Err(ArrayFault::Another { slice: ppn.0, holds, page }),
        }
    }

    fn heads(&self, superblock: u32) -> Result<Vec<u8>, String> {
        let first = superblock * self.format.shape.superblock_slices;
        let mut heads = vec![0; self.format.shape.superblock_slices as usize * HEAD_BYTES];
        let at = self.format.head(first);
        let read = self.disk.read_at(&mut heads, at);
        read.map_err(|error| format!("the spare areas of superblock {superblock} (byte {at} of the image): {error}"))?;
        Ok(heads)
    }

    /// Examines every slice of a superblock; `each` gets the faults.
    ///
    /// # Errors
    /// The spare areas cannot be read.
    pub fn examine(&self, superblock: u32, found: &mut Damage, mut each: impl FnMut(ArrayFault)) -> Result<(), String> {
        let mut data = [0; SLICE];
        for (slice, _, read) in self.heads_of(superblock, &self.heads(superblock)?) {
            match read {
                Read::Blank => {}
                Read::Torn => found.torn += 1,
                Read::Damaged => {
                    found.damaged += 1;
                    each(ArrayFault::Damaged { slice, what: "its spare area", offset: self.format.head(slice) });
                }
                Read::Head(head) => {
                    found.programmed += 1;
                    found.with_data += u64::from(head.has_data);
                    if (head.has_data || head.has_rest)
                        && let Err(fault) = self.read_slice(Ppn(slice), None, &mut data)
                    {
                        found.damaged += 1;
                        each(fault);
                    }
                }
            }
        }
        Ok(())
    }

    /// Writes the first page, which makes it an image.
    pub(crate) fn put_format(&mut self) {
        let page = self.format.to_bytes();
        self.write(|disk| disk.write_at(&page, 0));
    }

    /// Reads a part with a check behind it.
    pub(crate) fn part(&self, offset: u64, bytes: u32, what: &str) -> Result<Vec<u8>, String> {
        let mut part = vec![0; bytes as usize + 4];
        self.disk
            .read_at(&mut part, offset)
            .map_err(|error| format!("{what} (byte {offset} of the image): {error}"))?;
        let check = part.split_off(bytes as usize);
        match check == crc32fast::hash(&part).to_le_bytes() {
            true => Ok(part),
            false => Err(format!("{what} (byte {offset} of the image) is damaged")),
        }
    }

    /// Writes a part with a check behind it.
    pub(crate) fn put_part(&mut self, offset: u64, part: &[u8]) {
        let mut bytes = part.to_vec();
        bytes.extend(crc32fast::hash(part).to_le_bytes());
        self.write(|disk| disk.write_at(&bytes, offset));
    }
}

impl<D: Disk> FlashArray for FlashFile<D> {
    fn look(&mut self, superblock: u32, seen: &mut Vec<Seen>) -> Result<(), String> {
        self.settle();
        let heads = self.heads(superblock)?;
        let mut cut = Vec::new();
        let look = |(slice, bytes, read): (u32, &[u8], Read)| match read {
            Read::Blank => Seen::Blank,
            Read::Torn => {
                if bytes != torn() {
                    cut.push(slice);
                }
                Seen::Torn
            }
            Read::Damaged => Seen::Damaged,
            Read::Head(head) => Seen::Programmed(head.spare),
        };
        seen.clear();
        seen.extend(self.heads_of(superblock, &heads).map(look));
        self.cut.extend(cut);
        if seen.iter().all(|seen| *seen == Seen::Blank) {
            self.begun[superblock as usize] = u64::MAX;
        }
        Ok(())
    }

    fn read(&mut self, ppn: Ppn, rest: &mut [u8; SPARE_REST_BYTES], data: &mut [u8]) -> Result<Spare, String> {
        self.settle();
        self.read_slice(ppn, Some(rest), data).map_err(|fault| fault.to_string())
    }

    fn is_blank(&mut self, ppn: Ppn) -> Result<bool, String> {
        self.settle();
        let at = self.format.head(ppn.0);
        let head = self.head(ppn).map_err(|error| format!("slice {} (byte {at} of the image): {error}", ppn.0))?;
        Ok(head == Read::Blank)
    }

    fn block_record(&mut self, superblock: u32) -> Result<Option<[u8; BLOCK_RECORD_BYTES]>, String> {
        let mut bytes = [0; RECORD_BYTES];
        let at = self.format.record(superblock);
        let what = format!("the record of superblock {superblock} (byte {at} of the image)");
        self.disk.read_at(&mut bytes, at).map_err(|error| format!("{what}: {error}"))?;
        if bytes == [0; RECORD_BYTES] {
            return Ok(None);
        }
        if bytes[RECORD_BYTES - 4..] != crc32fast::hash(&bytes[..RECORD_BYTES - 4]).to_le_bytes() {
            return Err(format!("{what} is damaged"));
        }
        Ok(Some(bytes[..BLOCK_RECORD_BYTES].try_into().expect("the bytes of a record")))
    }

    fn factory(&mut self) -> Result<Vec<u8>, String> {
        self.part(self.format.factory(), self.format.factory_bytes, "the state in which the image was made")
    }

    fn rpmb(&mut self) -> Result<Option<RpmbState>, String> {
        self.load_rpmb()
    }

    fn settings(&mut self) -> Result<Option<[u8; SETTINGS_BYTES]>, String> {
        let what = "the record of attributes and flags";
        let mut bytes = [0; SETTINGS_BYTES + 4];
        let at = Format::SETTINGS;
        self.disk.read_at(&mut bytes, at).map_err(|error| format!("{what} (byte {at} of the image): {error}"))?;
        if bytes == [0; SETTINGS_BYTES + 4] {
            return Ok(None);
        }
        let settings = self.part(at, SETTINGS_BYTES as u32, what)?;
        Ok(Some(settings.try_into().expect("as many bytes as were read")))
    }

    fn goes_on(&mut self, newest: u64) {
        self.newest = newest;
    }

    fn kept(&self) -> Option<u64> {
        (!self.kept.has_all()).then_some(self.kept.program)
    }
}
