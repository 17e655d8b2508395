// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bytes of journal records, checkpoints, anchors and superblock records. All numbers are little-endian.

use super::super::durable::{Checkpoint, Record};
use super::BLOCK_RECORD_BYTES;
use crate::config::CellMode;
use crate::ftl::map::Entry;
use crate::ftl::map::stretch::{self, Stretch};
use crate::ftl::space::{State, Stream, Superblock};
use crate::ftl::zones::{Extent, ZoneState, ZoneStates};
use crate::ids::{Lpn, MapPage, SuperblockId};
use readpath_flash::Ppn;
use std::collections::BTreeMap;

/// Takes numbers from bytes; `None` at the end of the bytes.
pub(super) struct Take<'a>(pub &'a [u8]);

impl<'a> Take<'a> {
    pub(super) fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        Some(self.bytes(1)?[0])
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.bytes(4)?.try_into().ok().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.bytes(8)?.try_into().ok().map(u64::from_le_bytes)
    }
}

/// The place of a map page, or none.
fn put_place(at: Option<Ppn>) -> [u8; 4] {
    at.map_or(0, |ppn| ppn.0 + 1).to_le_bytes()
}

fn take_place(take: &mut Take, slices: u32) -> Option<Option<Ppn>> {
    let number = take.u32()?;
    (number <= slices).then(|| number.checked_sub(1).map(Ppn))
}

/// An entry of a map page or of the table of changes.
pub(super) fn put_entry(entry: Entry) -> [u8; 4] {
    put_place(entry.mapping().flash())
}

pub(super) fn take_entry(take: &mut Take, slices: u32) -> Option<Entry> {
    Some(take_place(take, slices)?.map_or(Entry::UNMAPPED, Entry::at))
}

impl Stream {
    /// The stream with a number in flash.
    pub(super) fn from_number(number: u8) -> Option<Stream> {
        Stream::ALL.get(usize::from(number)).copied()
    }
}

impl Record {
    /// The bytes of the record; sequence numbers in flash are larger by `base`.
    pub(super) fn to_bytes(self, base: u64) -> [u8; Record::BYTES as usize] {
        let mut bytes = [0; Record::BYTES as usize];
        match self {
            Record::Open { stream, superblock, opened_at } => {
                (bytes[0], bytes[1]) = (1, stream.index() as u8);
                bytes[4..8].copy_from_slice(&superblock.0.to_le_bytes());
                bytes[8..12].copy_from_slice(&opened_at.to_le_bytes());
            }
            Record::Erase { superblock } => {
                bytes[0] = 2;
                bytes[4..8].copy_from_slice(&superblock.0.to_le_bytes());
            }
            Record::Trim { lpn, count, sequence } => {
                bytes[0] = 3;
                bytes[1..7].copy_from_slice(&(base + u64::from(sequence)).to_le_bytes()[..6]);
                bytes[8..12].copy_from_slice(&lpn.0.to_le_bytes());
                bytes[12..16].copy_from_slice(&count.to_le_bytes());
            }
            Record::Finish { lpn, written, sequence } => {
                bytes[0] = 5;
                bytes[1..7].copy_from_slice(&(base + u64::from(sequence)).to_le_bytes()[..6]);
                bytes[8..12].copy_from_slice(&lpn.0.to_le_bytes());
                bytes[12..16].copy_from_slice(&written.to_le_bytes());
            }
            Record::Generations { up_to } => {
                bytes[0] = 4;
                bytes[8..16].copy_from_slice(&up_to.to_le_bytes());
            }
        }
        bytes
    }

    /// Parses a record of a device with this many superblocks and logical pages; `None` if the bytes are invalid.
    pub(super) fn from_bytes(bytes: &[u8], base: u64, superblocks: u32, blocks: [u32; 2]) -> Option<Record> {
        let number = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let superblock = |at| number(at).filter(|&sb| sb < superblocks).map(SuperblockId);
        Some(match *bytes.first()? {
            1 => Record::Open {
                stream: Stream::from_number(bytes[1])?,
                superblock: superblock(4)?,
                opened_at: number(8)?,
            },
            2 => Record::Erase { superblock: superblock(4)? },
            kind @ (3 | 5) => {
                let mut sequence = [0; 8];
                sequence[..6].copy_from_slice(&bytes[1..7]);
                let (lpn, count) = (number(8)?, number(12)?);
                // None reaches from units without zones into zones.
                let [mapped, all] = blocks;
                let end = if lpn < mapped { mapped } else { all };
                (lpn < end && count <= end - lpn).then_some(())?;
                let (lpn, sequence) = (Lpn(lpn), u64::from_le_bytes(sequence).saturating_sub(base));
                let sequence = u32::try_from(sequence).ok()?;
                match kind {
                    3 => Record::Trim { lpn, count, sequence },
                    _ => Record::Finish { lpn, written: count, sequence },
                }
            }
            4 => Record::Generations { up_to: u64::from_le_bytes(bytes[8..16].try_into().ok()?) },
            _ => return None,
        })
    }
}

impl Superblock {
    /// The bytes of a superblock in a checkpoint, without what its own blocks record.
    fn to_bytes(self) -> [u8; Superblock::SRAM_BYTES as usize] {
        let (state, of) = match self.state {
            State::Anchor => (0, 0),
            State::Erased => (1, 0),
            State::Open(stream) => (2, stream.index() as u8),
            State::Closed(stream) => (3, stream.index() as u8),
            State::Erasing(_) => (4, 0),
            State::Retired => (5, 0),
        };
        let mut bytes = [0; Superblock::SRAM_BYTES as usize];
        bytes[..3].copy_from_slice(&[state, of, u8::from(self.failed) | (self.mode as u8) << 1]);
        let numbers = [self.refs, self.next_unit, self.erases, self.opened_at, self.closed_at, self.reads];
        for (at, number) in bytes[4..].chunks_exact_mut(4).zip(numbers) {
            at.copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    fn take(take: &mut Take) -> Option<Superblock> {
        let (state, of, flags, _) = (take.u8()?, take.u8()?, take.u8()?, take.u8()?);
        let stream = Stream::from_number(of)?;
        let state = match state {
            0 => State::Anchor,
            1 => State::Erased,
            2 => State::Open(stream),
            3 => State::Closed(stream),
            4 => State::Erasing(0),
            5 => State::Retired,
            _ => return None,
        };
        Some(Superblock {
            state,
            refs: take.u32()?,
            next_unit: take.u32()?,
            erases: take.u32()?,
            opened_at: take.u32()?,
            closed_at: take.u32()?,
            reads: take.u32()?,
            failed: flags & 1 != 0,
            mode: *CellMode::ALL.get(usize::from(flags >> 1 & 3))?,
            ..Superblock::NEW
        })
    }
}

/// Contents of an anchor, apart from the places of its checkpoint's parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Anchored {
    /// Difference between sequence numbers in flash and those of the checkpoint.
    pub base: u64,
    /// Number of the newest program at the time of the checkpoint.
    pub programs: u64,
    /// How often the superblocks of anchors had been erased when the device was sealed; 0 in an anchor itself.
    pub anchor_erases: u64,
}

/// The changes of a checkpoint in flash: a place for each block that is in flash, and one for each trimmed stretch,
/// as in SRAM.
pub(super) struct Packed {
    in_flash: Vec<(Lpn, Entry)>,
    /// First block and number of blocks. Some of them may have been written again.
    trimmed: Vec<(Lpn, u32)>,
}

impl Packed {
    /// Places taken, of 8 bytes each.
    pub(super) fn places(&self) -> usize {
        self.in_flash.len() + self.trimmed.len()
    }

    /// Packs ordered changes, each block once. `may_join` says whether the blocks between two changes may count as
    /// trimmed because they hold nothing anyway. A trimmed stretch lies within one row of changes and joined blocks,
    /// even if blocks in it were written since; so there are no more stretches than in SRAM.
    pub(super) fn new(changes: Vec<Stretch>, may_join: impl Fn(Lpn, Lpn) -> bool) -> Packed {
        let is_gone = |stretch: &&Stretch| stretch.entry == Entry::UNMAPPED;
        let mut trimmed = Vec::new();
        for row in changes.chunk_by(|a, b| a.end == b.first || may_join(a.end, b.first)) {
            let mut gone = row.iter().filter(is_gone);
            if let Some(first) = gone.next() {
                trimmed.push((first.first, gone.next_back().unwrap_or(first).end - first.first));
            }
        }
        let in_flash = changes.iter().filter(|stretch| !is_gone(stretch));
        Packed { in_flash: in_flash.map(|stretch| (stretch.first, stretch.entry)).collect(), trimmed }
    }
}

impl ZoneStates {
    /// Their bytes: how many parts and rests there are, each zone, each part, each rest. None without zones.
    fn put(&self, bytes: &mut Vec<u8>) {
        if self.zones.is_empty() {
            return;
        }
        let mut put = |number: u32| bytes.extend(number.to_le_bytes());
        put(self.others.len() as u32);
        put(self.rests.len() as u32);
        for zone in &self.zones {
            put(zone.begins.map_or(0, |sb| sb.0 + 1));
            put(zone.placed);
            put(zone.finished.map_or(0, |written| written + 1));
        }
        for &(zone, from, extent) in &self.others {
            [zone, from, extent.superblock.0, extent.program].into_iter().for_each(&mut put);
        }
        for &(lpn, ppn) in &self.rests {
            [lpn.0, ppn.0].into_iter().for_each(&mut put);
        }
    }

    /// How many bytes of a body, from `at` on, they take, of so many zones.
    fn bytes_of(zones: usize, body: &[u8], at: usize) -> u64 {
        if zones == 0 {
            return 0;
        }
        let mut take = Take(body.get(at..).unwrap_or_default());
        let (others, rests) = (take.u32().unwrap_or(0), take.u32().unwrap_or(0));
        8 + zones as u64 * 12 + u64::from(others) * 16 + u64::from(rests) * 8
    }

    /// The states of zones of so many blocks each, on a device of so many slices, logical blocks and superblocks.
    fn take(
        take: &mut Take,
        zones: impl Iterator<Item = u32>,
        [slices, blocks, superblocks]: [u32; 3],
    ) -> Option<ZoneStates> {
        let capacities: Vec<u32> = zones.collect();
        let mut states = ZoneStates::default();
        if capacities.is_empty() {
            return Some(states);
        }
        let (others, rests) = (take.u32()?, take.u32()?);
        for &capacity in &capacities {
            let (begins, placed, finished) = (take.u32()?, take.u32()?, take.u32()?);
            (begins <= superblocks && placed <= capacity && finished <= capacity + 1).then_some(())?;
            (begins > 0 || placed == 0).then_some(())?;
            let (begins, finished) = (begins.checked_sub(1).map(SuperblockId), finished.checked_sub(1));
            states.zones.push(ZoneState { begins, placed, finished });
        }
        for _ in 0..others {
            let (zone, from, superblock, program) = (take.u32()?, take.u32()?, take.u32()?, take.u32()?);
            (superblock < superblocks && from < *capacities.get(zone as usize)? && program < slices).then_some(())?;
            let after_last = states.others.last().is_none_or(|&(z, f, _)| (z, f) < (zone, from));
            after_last.then_some(())?;
            states.others.push((zone, from, Extent { superblock: SuperblockId(superblock), program }));
        }
        for _ in 0..rests {
            let (lpn, ppn) = (take.u32()?, take.u32()?);
            (lpn < blocks && ppn < slices && states.rests.last().is_none_or(|(last, _)| last.0 < lpn)).then_some(())?;
            states.rests.push((Lpn(lpn), Ppn(ppn)));
        }
        Some(states)
    }
}

impl Checkpoint {
    /// The contents of the anchor; [`Checkpoint::body`] is the rest.
    pub(super) fn head(&self, anchored: Anchored, changes: &Packed) -> Vec<u8> {
        let mut bytes = Vec::new();
        for number in [anchored.base, anchored.programs, anchored.anchor_erases, self.generations, self.journal] {
            bytes.extend(number.to_le_bytes());
        }
        let (in_flash, trimmed) = (changes.in_flash.len(), changes.trimmed.len());
        let lengths = [self.directory.len(), self.superblocks.len(), in_flash, trimmed];
        for number in [self.sequence, self.oldest, self.ticks, self.used, self.slots] {
            bytes.extend(number.to_le_bytes());
        }
        lengths.iter().for_each(|&length| bytes.extend((length as u32).to_le_bytes()));
        bytes
    }

    /// The contents of the checkpoint's own pages: the map directory, the table of superblocks, zones, and `changes`.
    pub(super) fn body(&self, changes: &Packed) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.directory.iter().for_each(|&at| bytes.extend(put_place(at)));
        self.superblocks.iter().for_each(|sb| bytes.extend(sb.to_bytes()));
        self.zones.put(&mut bytes);
        for &(lpn, entry) in &changes.in_flash {
            bytes.extend(lpn.0.to_le_bytes());
            bytes.extend(put_entry(entry));
        }
        for &(first, count) in &changes.trimmed {
            bytes.extend(first.0.to_le_bytes());
            bytes.extend(count.to_le_bytes());
        }
        bytes
    }
}

/// A checkpoint whose body has not been read.
pub(super) struct Head {
    /// Numbers as of the checkpoint.
    pub anchored: Anchored,
    /// The checkpoint without directory, superblocks, changes and trims.
    pub checkpoint: Checkpoint,
    in_flash: u32,
    trimmed: u32,
}

impl Head {
    /// Parses the bytes of [`Checkpoint::head`]; `expected` are the numbers of map pages and superblocks.
    pub(super) fn take(take: &mut Take, expected: [u32; 2]) -> Option<Head> {
        let anchored = Anchored { base: take.u64()?, programs: take.u64()?, anchor_erases: take.u64()? };
        let (generations, journal) = (take.u64()?, take.u64()?);
        let [sequence, oldest, ticks, used, slots] = [take.u32()?, take.u32()?, take.u32()?, take.u32()?, take.u32()?];
        let [pages, superblocks] = Some([take.u32()?, take.u32()?]).filter(|lengths| *lengths == expected)?;
        let [in_flash, trimmed] = [take.u32()?, take.u32()?];
        let checkpoint = Checkpoint {
            sequence,
            oldest,
            ticks,
            generations,
            journal,
            directory: vec![None; pages as usize],
            superblocks: vec![Superblock::NEW; superblocks as usize],
            used,
            slots,
            ..Checkpoint::default()
        };
        Some(Head { anchored, checkpoint, in_flash, trimmed })
    }

    /// Whether the checkpoint has no more parts than one can have.
    pub(super) fn fits(&self, most_parts: u32) -> bool {
        self.checkpoint.slots <= most_parts && self.checkpoint.oldest <= self.checkpoint.sequence
    }

    /// Bytes of the body of a device with this number of zones.
    pub(super) fn body_bytes(&self, zones: usize, body: &[u8]) -> u64 {
        let checkpoint = &self.checkpoint;
        checkpoint.directory.len() as u64 * 4
            + ZoneStates::bytes_of(zones, body, self.zones_at())
            + checkpoint.superblocks.len() as u64 * Superblock::SRAM_BYTES
            + (u64::from(self.in_flash) + u64::from(self.trimmed)) * 8
    }

    /// The whole checkpoint, with its body, of a device with these numbers of slices, logical blocks, and entries of
    /// a map page, and with `zones` of so many blocks.
    /// Where zones begin in the body.
    fn zones_at(&self) -> usize {
        self.checkpoint.directory.len() * 4 + self.checkpoint.superblocks.len() * Superblock::SRAM_BYTES as usize
    }

    pub(super) fn with_body(
        self,
        body: &[u8],
        [slices, blocks, with_zones, page]: [u32; 4],
        zones: impl Iterator<Item = u32>,
    ) -> Option<(Anchored, Checkpoint)> {
        let mut take = Take(body);
        let mut checkpoint = self.checkpoint;
        for at in &mut checkpoint.directory {
            *at = take_place(&mut take, slices)?;
        }
        for sb in &mut checkpoint.superblocks {
            *sb = Superblock::take(&mut take)?;
        }
        checkpoint.zones =
            ZoneStates::take(&mut take, zones, [slices, with_zones, checkpoint.superblocks.len() as u32])?;
        let (mut in_flash, mut gone, mut trims) = (BTreeMap::new(), Vec::new(), BTreeMap::new());
        let mut trimmed = 0u32;
        for _ in 0..self.in_flash {
            let lpn = take.u32().filter(|&lpn| lpn < blocks)?;
            in_flash.insert(Lpn(lpn), take_entry(&mut take, slices)?);
        }
        for _ in 0..self.trimmed {
            let first = take.u32().filter(|&lpn| lpn < blocks)?;
            let count = take.u32().filter(|&count| count <= blocks - first)?;
            // Stretches must not overlap.
            trimmed += count;
            (trimmed <= blocks).then_some(())?;
            gone.push(Stretch { first: Lpn(first), end: Lpn(first + count), entry: Entry::UNMAPPED });
            // The stretch takes a place for each of its map pages.
            for page in first / page..(first + count).div_ceil(page) {
                *trims.entry(MapPage(page)).or_insert(0) += 1;
            }
        }
        checkpoint.trims = trims.into_iter().collect();
        // Blocks that were trimmed and written again are among those in flash.
        let in_flash = in_flash.into_iter().map(|(lpn, entry)| Stretch::of(lpn, entry)).collect();
        checkpoint.changes = Some(stretch::overlay(in_flash, stretch::in_order(gone)));
        Some((self.anchored, checkpoint))
    }
}

/// The record of a superblock: it survives erases.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct BlockRecord {
    /// How often it was erased.
    pub erases: u32,
    /// How many of these erases were in SLC mode, for the cache and for the map.
    pub slc_erases: [u32; 2],
    /// A program in the superblock failed: it is not programmed again before it is erased.
    pub failed: bool,
    /// Too many of its blocks are bad.
    pub retired: bool,
    /// Dies whose block is bad.
    pub bad: Vec<u32>,
}

impl BlockRecord {
    const HEAD: usize = 12;
    /// The most erases for the map that a record counts, in three bytes.
    const MOST_OF_MAP: u32 = (1 << 24) - 1;
    /// Dies that fit into a record.
    pub(super) const MOST_DIES: u32 = (BLOCK_RECORD_BYTES - BlockRecord::HEAD) as u32 * 8;

    pub(super) fn to_bytes(&self) -> [u8; BLOCK_RECORD_BYTES] {
        let mut bytes = [0; BLOCK_RECORD_BYTES];
        bytes[..4].copy_from_slice(&self.erases.to_le_bytes());
        let [cache, map] = self.slc_erases;
        bytes[4..8].copy_from_slice(&cache.to_le_bytes());
        bytes[8] = u8::from(self.failed) | u8::from(self.retired) << 1;
        bytes[9..12].copy_from_slice(&map.min(BlockRecord::MOST_OF_MAP).to_le_bytes()[..3]);
        for &die in &self.bad {
            bytes[BlockRecord::HEAD + die as usize / 8] |= 1 << (die % 8);
        }
        bytes
    }

    pub(super) fn from_bytes(bytes: &[u8; BLOCK_RECORD_BYTES]) -> Option<BlockRecord> {
        let mut take = Take(bytes);
        let (erases, cache, flags) = (take.u32()?, take.u32()?, take.u8()?);
        let slc_erases = [cache, u32::from_le_bytes([bytes[9], bytes[10], bytes[11], 0])];
        let is_bad = |&die: &u32| bytes[BlockRecord::HEAD + die as usize / 8] & 1 << (die % 8) != 0;
        let bad = (0..BlockRecord::MOST_DIES).filter(is_bad).collect();
        Some(BlockRecord { erases, slc_erases, failed: flags & 1 != 0, retired: flags & 2 != 0, bad })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back_as_they_went() {
        let records = [
            Record::Open { stream: Stream::Cold, superblock: SuperblockId(9), opened_at: 77 },
            Record::Erase { superblock: SuperblockId(3) },
            Record::Trim { lpn: Lpn(5), count: 95, sequence: 12 },
            Record::Generations { up_to: 1 << 40 },
            Record::Finish { lpn: Lpn(90), written: 9, sequence: 13 },
        ];
        let base = 1 << 40;
        for record in records {
            let bytes = record.to_bytes(base);
            assert_eq!(Record::from_bytes(&bytes, base, 10, [100, 100]), Some(record));
        }
        let trim = records[2].to_bytes(base);
        assert_eq!(Record::from_bytes(&trim, base, 10, [99, 99]), None, "it reaches beyond the device");
        assert_eq!(Record::from_bytes(&trim, base, 10, [50, 100]), None, "it reaches into zones");
        let renumbered = Record::Trim { lpn: Lpn(5), count: 95, sequence: 2 };
        assert_eq!(Record::from_bytes(&trim, base + 10, 10, [100, 100]), Some(renumbered));
        assert_eq!(Record::from_bytes(&records[0].to_bytes(0), 0, 9, [100, 100]), None, "there is no such superblock");
        assert_eq!(Record::from_bytes(&[0; 16], 0, 10, [100, 100]), None);
    }

    #[test]
    fn a_checkpoint_comes_back_as_it_went() {
        let superblock =
            Superblock { state: State::Open(Stream::Hot), refs: 3, reads: 9, failed: true, ..Superblock::NEW };
        // Four blocks were trimmed together, and one of them was written again.
        let changes = vec![
            Stretch::of(Lpn(2), Entry::at(Ppn(3))),
            Stretch::of(Lpn(4), Entry::UNMAPPED),
            Stretch::of(Lpn(5), Entry::at(Ppn(17))),
            Stretch { first: Lpn(6), end: Lpn(8), entry: Entry::UNMAPPED },
        ];
        let checkpoint = Checkpoint {
            sequence: 40,
            oldest: 38,
            ticks: 7,
            generations: 1 << 33,
            journal: 12,
            directory: vec![None, Some(Ppn(8))],
            superblocks: CellMode::ALL.map(|mode| Superblock { mode, ..superblock }).to_vec(),
            changes: Some(changes.clone()),
            used: 3,
            trims: vec![(MapPage(1), 1)],
            zones: ZoneStates {
                zones: vec![
                    ZoneState { begins: Some(SuperblockId(2)), placed: 7, finished: Some(9) },
                    ZoneState::EMPTY,
                ],
                others: vec![(0, 4, Extent { superblock: SuperblockId(1), program: 5 })],
                rests: vec![(Lpn(8), Ppn(3)), (Lpn(9), Ppn(17))],
            },
            slots: 1,
            places: Vec::new(),
        };
        let anchored = Anchored { base: 1 << 35, programs: 99, anchor_erases: 2 };
        let packed = Packed::new(changes, |_, _| false);
        assert_eq!((packed.in_flash.len(), &packed.trimmed), (2, &vec![(Lpn(4), 4)]));
        let head = checkpoint.head(anchored, &packed);
        let body = checkpoint.body(&packed);
        let take = |expected| Head::take(&mut Take(&head), expected);
        assert!(take([3, 3]).is_none() && take([2, 2]).is_none());
        let taken = take([2, 3]).unwrap();
        assert!(taken.fits(1) && !taken.fits(0));
        assert_eq!(taken.body_bytes(2, &body), body.len() as u64);
        let (again, whole) = taken.with_body(&body, [18, 8, 20, 4], [9, 9].into_iter()).unwrap();
        assert_eq!((again, format!("{whole:?}")), (anchored, format!("{checkpoint:?}")));
        let read = |body, sizes, zones: [u32; 2]| take([2, 3]).unwrap().with_body(body, sizes, zones.into_iter());
        assert!(read(&body, [18, 7, 20, 4], [9, 9]).is_none(), "block 7 of 7");
        assert!(read(&body, [18, 8, 20, 4], [8, 9]).is_none(), "a zone of 8 blocks, finished at 9");
        assert!(read(&body, [18, 8, 9, 4], [9, 9]).is_none(), "a rest beyond the device");
        assert!(read(&body, [17, 8, 20, 4], [9, 9]).is_none(), "a rest beyond the flash");
        assert!(read(&body[1..], [18, 8, 20, 4], [9, 9]).is_none());
    }

    #[test]
    fn block_records_come_back_as_they_went() {
        let record = BlockRecord {
            erases: 5,
            slc_erases: [2, 1 << 16 | 7],
            failed: true,
            retired: false,
            bad: vec![0, 9, BlockRecord::MOST_DIES - 1],
        };
        assert_eq!(BlockRecord::from_bytes(&record.to_bytes()), Some(record));
    }
}
