// SPDX-License-Identifier: MIT OR Apache-2.0
//! The array: programs, erases and reads of slices with their spare areas, as bytes of a disk.
//!
//! *Order of writes.* The data of a unit is written first, then its spare areas, in one write: until that, nothing was
//! programmed. When a flush is answered, and before a superblock is erased, everything before that is synced, and the
//! number of the newest program is put down; so a reader after a crash of the machine knows up to which program it is
//! complete. As long as the machine runs, it is complete anyway.
//!
//! *After a write that failed* nothing is written any more. What the array holds then is what a power cut at that
//! moment would have left, which the device can recover from.

mod rpmb;

use crate::disk::Disk;
use crate::layout::{Format, HEAD_BYTES, RECORD_BYTES};
use readpath_device::{
    BLOCK_RECORD_BYTES, FlashArray, OwnSlice, RpmbState, SETTINGS_BYTES, SPARE_REST_BYTES, Seen, SliceKind, Spare,
    Stream,
};
use readpath_flash::Ppn;
use readpath_kit::BLOCK_BYTES;
use std::collections::BTreeSet;
use std::io;
use thiserror::Error;

const SLICE: usize = BLOCK_BYTES as usize;
/// The kind of a slice whose program was interrupted.
const TORN: u8 = 0xff;
const HAS_DATA: u8 = 1 << 4;
const HAS_REST: u8 = 1 << 5;
const ENDS_UNIT: u8 = 1 << 6;
const NUMBER: std::ops::Range<u64> = 0..1 << 48;

/// Bytes of what is put down of programs.
const KEPT_BYTES: usize = 36;

/// Tells one start of the machine from another; zeros if it is not known, which is never the same as before.
pub type Boot = [u8; 16];

/// Why a slice cannot be read.
#[derive(Debug, Error)]
pub enum ArrayFault {
    /// The disk says so.
    #[error("slice {slice} (byte {offset} of the image): {error}")]
    Disk {
        /// Slice.
        slice: u32,
        /// Where its data lies.
        offset: u64,
        /// What the disk says.
        error: io::Error,
    },
    /// It is not what was written.
    #[error("slice {slice} is damaged: {what} (byte {offset} of the image) is not what was written")]
    Damaged {
        /// Slice.
        slice: u32,
        /// Its data, or its spare area.
        what: &'static str,
        /// Where that lies.
        offset: u64,
    },
    /// It was to be programmed after a write had failed.
    #[error("slice {slice} could not be written")]
    Lost {
        /// Slice.
        slice: u32,
    },
    /// There is nothing.
    #[error("slice {slice} was read though nothing is programmed there")]
    Blank {
        /// Slice.
        slice: u32,
    },
}

/// What is wrong with an array, found by looking at all of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Damage {
    /// Slices that hold something.
    pub programmed: u64,
    /// Of those, slices whose data is kept; the others are zeros.
    pub with_data: u64,
    /// Slices whose program was interrupted.
    pub torn: u64,
    /// Slices whose spare area or data is not what was written.
    pub damaged: u64,
}

/// The spare area of a slice as the file has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Head {
    spare: Spare,
    /// Of the rest and the data, whichever there is.
    check: u32,
    has_data: bool,
    has_rest: bool,
}

/// What the bytes of a head are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Read {
    Blank,
    Torn,
    Damaged,
    Head(Head),
}

impl Head {
    fn to_bytes(self) -> [u8; HEAD_BYTES] {
        let Spare { kind, stream, page, sequence, program, ends_unit } = self.spare;
        debug_assert!(NUMBER.contains(&sequence) && NUMBER.contains(&program));
        let mut bytes = [0; HEAD_BYTES];
        bytes[..4].copy_from_slice(&self.check.to_le_bytes());
        // Never 0, so that no head is blank.
        bytes[6] = kind as u8 + 1;
        let flags = [(HAS_DATA, self.has_data), (HAS_REST, self.has_rest), (ENDS_UNIT, ends_unit)];
        bytes[7] = flags.iter().filter(|(_, is_set)| *is_set).fold(stream.index() as u8, |byte, (flag, _)| byte | flag);
        bytes[8..12].copy_from_slice(&page.map_or(0, |page| page + 1).to_le_bytes());
        bytes[12..18].copy_from_slice(&sequence.to_le_bytes()[..6]);
        bytes[18..24].copy_from_slice(&program.to_le_bytes()[..6]);
        checked(bytes)
    }

    fn from_bytes(bytes: &[u8; HEAD_BYTES]) -> Read {
        if *bytes == [0; HEAD_BYTES] {
            return Read::Blank;
        }
        if own_check(*bytes) != [bytes[4], bytes[5]] {
            return Read::Damaged;
        }
        if bytes[6] == TORN {
            return Read::Torn;
        }
        // Every slice of an array passes here when a device is switched on.
        let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let (page, program) = (number(8) as u32, number(16) >> 16);
        let sequence = number(10) >> 16;
        let kind = SliceKind::ALL.get(usize::from(bytes[6]).wrapping_sub(1));
        let stream = Stream::ALL.get(usize::from(bytes[7] & 0xf));
        let (Some(&kind), Some(&stream)) = (kind, stream) else { return Read::Damaged };
        Read::Head(Head {
            spare: Spare {
                kind,
                stream,
                page: page.checked_sub(1),
                sequence,
                program,
                ends_unit: bytes[7] & ENDS_UNIT != 0,
            },
            check: number(0) as u32,
            has_data: bytes[7] & HAS_DATA != 0,
            has_rest: bytes[7] & HAS_REST != 0,
        })
    }
}

/// The same head with its own check, which is never 0 for a head that is.
fn checked(mut bytes: [u8; HEAD_BYTES]) -> [u8; HEAD_BYTES] {
    let check = own_check(bytes);
    bytes[4..6].copy_from_slice(&check);
    bytes
}

fn own_check(mut bytes: [u8; HEAD_BYTES]) -> [u8; 2] {
    bytes[4..6].fill(0);
    (crc32fast::hash(&bytes) as u16).to_le_bytes()
}

fn torn() -> [u8; HEAD_BYTES] {
    let mut bytes = [0; HEAD_BYTES];
    bytes[6] = TORN;
    checked(bytes)
}

fn is_zero(data: &[u8]) -> bool {
    data.chunks_exact(64).all(|chunk| chunk == [0; 64]) && data.chunks_exact(64).remainder().iter().all(|&b| b == 0)
}

/// An array in a disk. See the module.
#[derive(Debug)]
pub struct FlashFile<D> {
    disk: D,
    format: Format,
    /// Everything is synced where a crash of the machine could lose it; else only what was programmed survives the
    /// process.
    syncs: bool,
    /// Something was written since the last sync.
    is_dirty: bool,
    /// Number of the newest program, and of the newest that is known to have reached the disk.
    newest: u64,
    kept: u64,
    /// The machine has not been started anew since the array was written last.
    is_whole: bool,
    /// The start of the machine that this is; it has been put down.
    boot: Boot,
    is_put: bool,
    /// How often `kept` was put down.
    puts: u64,
    /// Something is to have reached the disk before anything else is programmed.
    comes_first: bool,
    failure: Option<String>,
    /// Slices that were to be programmed since. What the disk holds there is something else.
    lost: BTreeSet<u32>,
    /// Superblocks (first slice, slices) that were erased since the last sync. Their data goes when it is certain that
    /// their spare areas are gone: else a crash could leave a spare area without its data.
    erased: Vec<(Ppn, u32)>,
    /// Number of the newest change of RPMB, once it is known and the changes before it are where they belong.
    rpmb_newest: Option<u64>,
    /// The unit that is being put together.
    heads: Vec<u8>,
    data: Vec<u8>,
}

impl<D: Disk> FlashFile<D> {
    /// An array in `disk`, which has been laid out.
    pub(crate) fn new(disk: D, format: Format, syncs: bool, boot: Boot) -> io::Result<Self> {
        let mut array = FlashFile {
            disk,
            format,
            syncs,
            // What another process wrote may not have reached the disk yet.
            is_dirty: true,
            newest: 0,
            kept: 0,
            is_whole: false,
            boot,
            is_put: false,
            puts: 0,
            comes_first: false,
            failure: None,
            lost: BTreeSet::new(),
            erased: Vec::new(),
            rpmb_newest: None,
            heads: Vec::new(),
            data: Vec::new(),
        };
        for copy in 0..2 {
            let mut bytes = [0; KEPT_BYTES];
            array.disk.read_at(&mut bytes, Format::kept(copy))?;
            let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
            let is_right = bytes[32..] == crc32fast::hash(&bytes[..32]).to_le_bytes();
            if is_right && number(0) >= array.puts {
                (array.puts, array.kept) = (number(0), number(8));
                array.is_whole = bytes[16..32] == boot && boot != Boot::default();
            }
        }
        array.newest = array.kept;
        Ok(array)
    }

    /// The same array on what is made of its disk.
    pub fn map_disk<E>(self, made: impl FnOnce(D) -> E) -> FlashFile<E> {
        let FlashFile {
            disk,
            format,
            syncs,
            is_dirty,
            newest,
            kept,
            is_whole,
            boot,
            is_put,
            puts,
            comes_first,
            failure,
            lost,
            erased,
            rpmb_newest,
            heads,
            data,
        } = self;
        let disk = made(disk);
        FlashFile {
            disk,
            format,
            syncs,
            is_dirty,
            newest,
            kept,
            is_whole,
            boot,
            is_put,
            puts,
            comes_first,
            failure,
            lost,
            erased,
            rpmb_newest,
            heads,
            data,
        }
    }

    /// Where everything lies.
    pub fn format(&self) -> &Format {
        &self.format
    }

    /// The disk.
    pub fn disk(&self) -> &D {
        &self.disk
    }

    /// The disk, to do with as tests do.
    pub fn disk_mut(&mut self) -> &mut D {
        &mut self.disk
    }

    /// Why nothing is written any more, if that is so.
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// Writes, unless a write has failed before.
    fn write(&mut self, what: impl FnOnce(&mut D) -> io::Result<()>) {
        if self.failure.is_some() {
            return;
        }
        self.is_dirty = true;
        if let Err(error) = what(&mut self.disk) {
            self.failure = Some(error.to_string());
        }
    }

    /// A slice of a unit of data is being programmed.
    pub(crate) fn program(&mut self, ppn: Ppn, page: Option<u32>, sequence: u64, data: &[u8]) {
        // The stream and the number of the program come with the end of the unit.
        let spare = Spare { kind: SliceKind::Data, stream: Stream::Host, page, sequence, program: 0, ends_unit: false };
        self.add(ppn, spare, None, data);
    }

    /// A slice of a unit of data is being programmed with what another holds.
    pub(crate) fn copy(&mut self, from: Ppn, to: Ppn) {
        let mut data = [0; SLICE];
        match self.read_slice(from, None, &mut data) {
            Ok(spare) => return self.add(to, spare, None, &data),
            // It may be there again next time: nothing is written any more, and so nothing is erased.
            Err(fault @ ArrayFault::Disk { .. }) => _ = self.failure.get_or_insert(fault.to_string()),
            Err(_) => {}
        }
        // It stays what it is: something that cannot be read. Nobody else's data is lost with it.
        let unknown = Spare {
            kind: SliceKind::Data,
            stream: Stream::Host,
            page: None,
            sequence: 0,
            program: 0,
            ends_unit: false,
        };
        let spare = match self.head(from) {
            Ok(Read::Head(head)) => head.spare,
            _ => unknown,
        };
        self.write_data(Ppn(to.0.wrapping_sub(1)));
        let check = !crc32fast::hash(&[0; SLICE]);
        self.heads.extend(Head { spare, check, has_data: true, has_rest: false }.to_bytes());
    }

    fn add(&mut self, ppn: Ppn, spare: Spare, rest: Option<&[u8; SPARE_REST_BYTES]>, data: &[u8]) {
        // It is written over.
        self.erased.retain(|&(first, slices)| !(first.0..first.0 + slices).contains(&ppn.0));
        let has_data = !is_zero(data);
        let mut check = crc32fast::Hasher::new();
        let format = self.format;
        if let Some(rest) = rest {
            check.update(rest);
            self.write(|disk| disk.write_at(rest, format.rest(ppn.0)));
        }
        let at = self.data.len();
        if has_data {
            self.data.extend(data);
            self.data.resize(at + SLICE, 0);
            check.update(&self.data[at..]);
            if self.data.len() == 1 << 18 {
                self.write_data(ppn);
            }
        } else {
            self.write_data(Ppn(ppn.0.wrapping_sub(1)));
        }
        self.heads.extend(Head { spare, check: check.finalize(), has_data, has_rest: rest.is_some() }.to_bytes());
    }

    /// Writes the data of slices up to `last`.
    fn write_data(&mut self, last: Ppn) {
        if !self.data.is_empty() {
            let data = std::mem::take(&mut self.data);
            let first = last.0 + 1 - (data.len() / SLICE) as u32;
            let offset = self.format.data(first);
            self.write(|disk| disk.write_at(&data, offset));
            self.data = data;
            self.data.clear();
        }
    }

    /// The unit that begins at `first` is complete.
    pub(crate) fn programmed(&mut self, first: Ppn, stream: Stream, program: u64) {
        let mut heads = std::mem::take(&mut self.heads);
        self.write_data(Ppn(first.0 + (heads.len() / HEAD_BYTES) as u32 - 1));
        for head in heads.chunks_exact_mut(HEAD_BYTES) {
            let bytes: &mut [u8; HEAD_BYTES] = head.try_into().expect("an exact chunk");
            bytes[7] = bytes[7] & !(0xf | ENDS_UNIT) | stream.index() as u8;
            bytes[18..24].copy_from_slice(&program.to_le_bytes()[..6]);
            *bytes = checked(*bytes);
        }
        self.end_unit(first, program, heads);
    }

    fn end_unit(&mut self, first: Ppn, program: u64, mut heads: Vec<u8>) {
        if let Some(last) = heads.last_chunk_mut::<HEAD_BYTES>() {
            last[7] |= ENDS_UNIT;
            *last = checked(*last);
        }
        if std::mem::take(&mut self.comes_first) && self.syncs {
            self.write(Disk::sync);
        }
        if !std::mem::replace(&mut self.is_put, true) {
            self.put_kept();
        }
        let offset = self.format.head(first.0);
        self.write(|disk| disk.write_at(&heads, offset));
        self.newest = self.newest.max(program);
        if self.failure.is_some() {
            self.lost.extend(first.0..first.0 + (heads.len() / HEAD_BYTES) as u32);
        }
        heads.clear();
        self.heads = heads;
    }

    /// A unit of the device's own has been programmed.
    pub(crate) fn program_own(&mut self, unit: &[OwnSlice]) {
        let Some(first) = unit.first() else { return };
        for slice in unit {
            self.add(slice.ppn, slice.spare, Some(&slice.rest), &slice.data);
        }
        let heads = std::mem::take(&mut self.heads);
        self.write_data(Ppn(first.ppn.0 + unit.len() as u32 - 1));
        self.end_unit(first.ppn, first.spare.program, heads);
    }

    /// A slice is as a device that is being sealed says: data of zeros.
    pub(crate) fn seal_heads(&mut self, first: Ppn, spares: &[Option<Spare>]) {
        let head = |spare: &Option<Spare>| match *spare {
            Some(spare) => Head { spare, check: 0, has_data: false, has_rest: false }.to_bytes(),
            None => [0; HEAD_BYTES],
        };
        let heads: Vec<u8> = spares.iter().flat_map(head).collect();
        let offset = self.format.head(first.0);
        self.write(|disk| disk.write_at(&heads, offset));
    }

    /// A slice of the device's own, of a device that is being sealed.
    pub(crate) fn seal_own(&mut self, slice: &OwnSlice) {
        self.program_own(std::slice::from_ref(slice));
    }

    /// The programs of these slices were interrupted. Their numbers may be given out again, so the marks come before
    /// all that follows.
    pub(crate) fn tear(&mut self, first: Ppn, slices: u32) {
        self.comes_first = true;
        let heads: Vec<u8> = (0..slices).flat_map(|_| torn()).collect();
        let offset = self.format.head(first.0);
        self.write(|disk| disk.write_at(&heads, offset));
    }

    /// A superblock is erased.
    pub(crate) fn erase(&mut self, first: Ppn, slices: u32) {
        self.put_down();
        let offset = self.format.head(first.0);
        self.write(|disk| disk.zero(offset, u64::from(slices) * HEAD_BYTES as u64));
        self.erased.push((first, slices));
        if !self.syncs {
            self.drop_erased_data();
        }
    }

    /// Gives the space back of what was erased and has not been programmed since.
    fn drop_erased_data(&mut self) {
        for (first, slices) in std::mem::take(&mut self.erased) {
            let parts = [(self.format.rest(first.0), SPARE_REST_BYTES), (self.format.data(first.0), SLICE)];
            for (offset, each) in parts {
                self.write(|disk| disk.zero(offset, u64::from(slices) * each as u64));
            }
        }
    }

    /// The record of a superblock is another now.
    pub(crate) fn put_record(&mut self, superblock: u32, record: &[u8; BLOCK_RECORD_BYTES]) {
        let mut bytes = [0; RECORD_BYTES];
        bytes[..BLOCK_RECORD_BYTES].copy_from_slice(record);
        bytes[BLOCK_RECORD_BYTES] = 1;
        let check = crc32fast::hash(&bytes[..RECORD_BYTES - 4]);
        bytes[RECORD_BYTES - 4..].copy_from_slice(&check.to_le_bytes());
        let offset = self.format.record(superblock);
        self.write(|disk| disk.write_at(&bytes, offset));
    }

    /// Attributes or flags that outlive the power have changed. They survive a crash of the machine when this returns,
    /// unless a write has failed.
    pub(crate) fn put_settings(&mut self, settings: &[u8; SETTINGS_BYTES]) {
        self.put_part(Format::SETTINGS, settings);
        self.sync_at_once();
    }

    /// What was written before comes before what is written next.
    fn sync_at_once(&mut self) {
        if self.syncs {
            self.write(Disk::sync);
        }
    }

    /// Everything that was programmed survives a crash of the machine.
    ///
    /// # Errors
    /// Why it does not.
    pub fn sync(&mut self) -> Result<(), String> {
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
                if self.kept != self.newest {
                    self.kept = self.newest;
                    self.put_kept();
                }
                Ok(())
            }
        }
    }

    /// Programs up to the newest survive a crash of the machine, and the array says so.
    fn put_down(&mut self) {
        if self.sync().is_ok() {
            self.sync_at_once();
        }
    }

    fn put_kept(&mut self) {
        self.puts += 1;
        let mut bytes = [0; KEPT_BYTES];
        bytes[..8].copy_from_slice(&self.puts.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.kept.to_le_bytes());
        bytes[16..32].copy_from_slice(&self.boot);
        let check = crc32fast::hash(&bytes[..32]);
        bytes[32..].copy_from_slice(&check.to_le_bytes());
        let offset = Format::kept(self.puts % 2);
        let was_dirty = self.is_dirty;
        self.write(|disk| disk.write_at(&bytes, offset));
        // A number that is lost is only less than what is known.
        self.is_dirty = was_dirty;
    }

    fn head(&self, ppn: Ppn) -> io::Result<Read> {
        let mut bytes = [0; HEAD_BYTES];
        self.disk.read_at(&mut bytes, self.format.head(ppn.0))?;
        Ok(Head::from_bytes(&bytes))
    }

    /// Reads the data of a slice, and the rest of its spare area, and checks both.
    ///
    /// # Errors
    /// The disk cannot be read, or they are not what was written.
    pub fn read_slice(
        &self,
        ppn: Ppn,
        rest: Option<&mut [u8; SPARE_REST_BYTES]>,
        data: &mut [u8],
    ) -> Result<Spare, ArrayFault> {
        let slice = ppn.0;
        let disk = |offset| move |error| ArrayFault::Disk { slice, offset, error };
        if self.failure.is_some() && self.lost.contains(&slice) {
            return Err(ArrayFault::Lost { slice });
        }
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

    fn heads(&self, superblock: u32) -> Result<Vec<u8>, String> {
        let first = superblock * self.format.shape.superblock_slices;
        let mut heads = vec![0; self.format.shape.superblock_slices as usize * HEAD_BYTES];
        let at = self.format.head(first);
        let read = self.disk.read_at(&mut heads, at);
        read.map_err(|error| format!("the spare areas of superblock {superblock} (byte {at} of the image): {error}"))?;
        Ok(heads)
    }

    /// Looks at every slice of a superblock; `each` is told what is wrong.
    ///
    /// # Errors
    /// The spare areas cannot be read.
    pub fn examine(&self, superblock: u32, found: &mut Damage, mut each: impl FnMut(ArrayFault)) -> Result<(), String> {
        let first = superblock * self.format.shape.superblock_slices;
        let mut data = [0; SLICE];
        for (slice, bytes) in (first..).zip(self.heads(superblock)?.chunks_exact(HEAD_BYTES)) {
            match Head::from_bytes(bytes.try_into().expect("an exact chunk")) {
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
        let heads = self.heads(superblock)?;
        let look = |bytes: &[u8]| match Head::from_bytes(bytes.try_into().expect("an exact chunk")) {
            Read::Blank => Seen::Blank,
            Read::Torn | Read::Damaged => Seen::Torn,
            Read::Head(head) => Seen::Programmed(head.spare),
        };
        seen.clear();
        seen.extend(heads.chunks_exact(HEAD_BYTES).map(look));
        Ok(())
    }

    fn read(&mut self, ppn: Ppn, rest: &mut [u8; SPARE_REST_BYTES], data: &mut [u8]) -> Result<Spare, String> {
        self.read_slice(ppn, Some(rest), data).map_err(|fault| fault.to_string())
    }

    fn is_blank(&mut self, ppn: Ppn) -> Result<bool, String> {
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
        (!self.is_whole).then_some(self.kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_come_back_and_tell_damage() {
        let spare = Spare {
            kind: SliceKind::Map,
            stream: Stream::Meta,
            page: Some(7),
            sequence: (1 << 48) - 1,
            program: 1 << 47,
            ends_unit: true,
        };
        let head = Head { spare, check: 0xdead_beef, has_data: true, has_rest: false };
        let bytes = head.to_bytes();
        assert_eq!(Head::from_bytes(&bytes), Read::Head(head));
        for bit in 0..HEAD_BYTES * 8 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Head::from_bytes(&flipped), Read::Damaged, "bit {bit}");
        }
        assert_eq!((Head::from_bytes(&[0; HEAD_BYTES]), Head::from_bytes(&torn())), (Read::Blank, Read::Torn));
    }

    #[test]
    fn only_zeros_are_zero() {
        let mut data = [0; SLICE];
        assert!(is_zero(&data) && is_zero(&[]) && is_zero(&data[..70]));
        data[4095] = 1;
        assert!(!is_zero(&data) && !is_zero(&data[4090..]));
    }
}
