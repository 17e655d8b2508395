// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bytes of the pages that flash translation writes for itself, each as long as a map page: map pages, pages of the
//! journal, parts of checkpoints. It knows no state of the device.
//!
//! ```text
//! spare area behind its beginning (128 bytes a slice, one after the other)
//!  0  4  when the map page was put together
//!  4  2  bytes of the changes of references
//!  6  1  1: references do not fit; 2: the meta stream goes on elsewhere
//!  8  4  the superblock that it goes on in
//! 12  4  when that was opened
//! 16  8  journal: number of the first record     | map page: superblocks and how their
//! 24  4  journal: records                        | references changed, packed
//! ```

use super::super::durable::{Held, Record};
use super::super::spare_refs::{self, Refs};
use super::records::{Take, take_entry};
use super::{OwnSlice, SPARE_REST_BYTES, SliceKind, Spare};
use crate::ftl::map::Entry;
use crate::ids::{MapPage, Mark, SuperblockId};
use readpath_flash::Ppn;
use readpath_kit::BLOCK_BYTES;

const SLICE: usize = BLOCK_BYTES as usize;
const REFS_LOST: u8 = 1;
const HAS_NEXT: u8 = 2;
const FIXED: usize = 16;

/// One page: as many slices as a map page.
#[derive(Clone, Debug)]
pub(super) struct Page {
    pub data: Vec<u8>,
    /// The spare areas of its slices behind their beginnings.
    pub rest: Vec<u8>,
}

/// Where the meta stream goes on: superblock, and when it was opened.
pub(super) type Next = (SuperblockId, u32);

impl Page {
    fn new(map_page_bytes: u32) -> Page {
        let slices = map_page_bytes as usize / SLICE;
        Page { data: Vec::with_capacity(map_page_bytes as usize), rest: vec![0; slices * SPARE_REST_BYTES] }
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.rest[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// The bytes of a map page with `entries`, and the changes of references that its write caused: each superblock
    /// once, in order.
    pub(super) fn of_map(map_page_bytes: u32, put_together: u32, refs: &[Refs], entries: Vec<u8>) -> Page {
        let mut page = Page::new(map_page_bytes);
        page.put(0, &put_together.to_le_bytes());
        if spare_refs::fit(refs, map_page_bytes) {
            let packed = spare_refs::pack(refs);
            page.put(4, &(packed.len() as u16).to_le_bytes());
            page.put(FIXED, &packed);
        } else {
            page.rest[6] |= REFS_LOST;
        }
        page.data = entries;
        page
    }

    pub(super) fn of_journal(map_page_bytes: u32, first: Mark, records: &[Record], base: u64) -> Page {
        let mut page = Page::new(map_page_bytes);
        page.put(FIXED, &first.to_le_bytes());
        page.put(FIXED + 8, &(records.len() as u32).to_le_bytes());
        records.iter().for_each(|record| page.data.extend(record.to_bytes(base)));
        page
    }

    pub(super) fn of_checkpoint(map_page_bytes: u32, part: &[u8]) -> Page {
        let mut page = Page::new(map_page_bytes);
        page.data.extend(part);
        page
    }

    /// Adds to a spare area where the meta stream continues.
    pub(super) fn name_next(rest: &mut [u8; SPARE_REST_BYTES], (superblock, opened_at): Next) {
        rest[6] |= HAS_NEXT;
        rest[8..12].copy_from_slice(&superblock.0.to_le_bytes());
        rest[12..16].copy_from_slice(&opened_at.to_le_bytes());
    }

    pub(super) fn into_slices(self, at: Ppn, spare: Spare) -> impl Iterator<Item = OwnSlice> {
        let rests = self.rest.chunks_exact(SPARE_REST_BYTES).map(|rest| rest.try_into().expect("an exact chunk"));
        let slices: Vec<OwnSlice> = (0..)
            .zip(rests)
            .map(|(i, rest)| {
                let from = (i as usize * SLICE).min(self.data.len());
                let data = self.data[from..(from + SLICE).min(self.data.len())].to_vec();
                OwnSlice { ppn: Ppn(at.0 + i), spare, rest, data }
            })
            .collect();
        slices.into_iter()
    }

    /// Where the meta stream continues, if this page says so, on a device with `superblocks` superblocks.
    pub(super) fn next(&self, superblocks: u32) -> Option<Result<Next, String>> {
        if self.rest[6] & HAS_NEXT == 0 {
            return None;
        }
        let mut take = Take(&self.rest[8..16]);
        let (superblock, opened_at) = (take.u32().unwrap_or(u32::MAX), take.u32().unwrap_or(0));
        Some(match superblock < superblocks {
            true => Ok((SuperblockId(superblock), opened_at)),
            false => Err(format!("the map goes on in superblock {superblock}, and there are {superblocks}")),
        })
    }

    /// When this map page was put together.
    pub(super) fn written_at(&self) -> u32 {
        Take(&self.rest).u32().unwrap_or(0)
    }

    /// The `count` entries of this map page, on a device with `slices` slices.
    pub(super) fn entries(&self, count: usize, slices: u32) -> Option<Vec<Entry>> {
        let mut take = Take(&self.data);
        (0..count).map(|_| take_entry(&mut take, slices)).collect()
    }

    /// The log record of this page, which lies at `at` with spare area `spare`; its changes of references are added
    /// to `refs`.
    pub(super) fn held(&self, spare: Spare, at: Ppn, device: &Limits, refs: &mut Vec<Refs>) -> Result<Held, String> {
        let damaged = |what: &str| format!("{what} in slice {} makes no sense", at.0);
        if spare.kind == SliceKind::Journal {
            let mut take = Take(&self.rest[FIXED..]);
            let (first, count) = (take.u64().unwrap_or(0), take.u32().unwrap_or(0) as usize);
            let bytes = self.data.get(..count.saturating_mul(Record::BYTES as usize));
            let bytes = bytes.ok_or_else(|| damaged("the number of records of the journal"))?;
            let record = |bytes| Record::from_bytes(bytes, device.base, device.superblocks, device.blocks);
            let records = bytes.chunks_exact(Record::BYTES as usize).map(record).collect::<Option<Vec<_>>>();
            let records = records.ok_or_else(|| damaged("a record of the journal"))?;
            return Ok(Held::Journal { first, records });
        }
        let page = spare.page.filter(|&page| page < device.map_pages);
        let page = MapPage(page.ok_or_else(|| damaged("the number of the map page"))?);
        let sequence = u32::try_from(spare.sequence.saturating_sub(device.base));
        let sequence = sequence.map_err(|_| damaged("the sequence number of the map page"))?;
        let length = usize::from(u16::from_le_bytes([self.rest[4], self.rest[5]]));
        let packed = self.rest.get(FIXED..FIXED + length);
        let unpacked = packed.and_then(|packed| spare_refs::unpack(packed, device.superblocks));
        let unpacked = unpacked.ok_or_else(|| damaged("the list of references"))?;
        let fits = self.rest[6] & REFS_LOST == 0;
        let count = unpacked.len() as u32;
        refs.extend(unpacked);
        Ok(Held::Map { page, at, written_at: self.written_at(), sequence, refs: count, fits })
    }
}

/// Bounds of numbers in flash, and the difference of sequence numbers from those in SRAM.
pub(super) struct Limits {
    /// Superblocks of the array.
    pub superblocks: u32,
    pub map_pages: u32,
    /// Logical blocks of units without zones, and of all units.
    pub blocks: [u32; 2],
    /// See [`super::records::Anchored::base`].
    pub base: u64,
}
