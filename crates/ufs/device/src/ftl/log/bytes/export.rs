// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reports each page that the device programs as bytes, in its state when the program has ended, for a medium that
//! keeps them.

use super::super::Log;
use super::super::durable::{Checkpoint, Record};
use super::super::spare_refs::{self, Refs};
use super::super::state::MapPart;
use super::pages::{Next, Page};
use super::records::{Anchored, BlockRecord, Packed, put_entry};
use super::{BLOCK_RECORD_BYTES, Own, OwnSlice, SPARE_REST_BYTES, SliceKind, Spare};
use crate::back::{Hardware, MediaOp};
use crate::ftl::map::{Map, Mapping};
use crate::ftl::space::{Space, State, Stream};
use crate::ids::{MapPage, Mark, SuperblockId};
use readpath_flash::Ppn;
use readpath_kit::BLOCK_BYTES;
use std::collections::VecDeque;

/// State of the reports, and reports that wait to be taken.
#[derive(Default)]
pub(in crate::ftl::log) struct Export {
    /// Programmed pages are reported.
    pub(super) is_on: bool,
    own: VecDeque<Own>,
    /// Slices of the unit of the meta stream that is being reported.
    unit: Vec<OwnSlice>,
    /// Programs that have ended, over the life of the device.
    pub(super) programs: u64,
    /// Difference between sequence numbers in flash and those in SRAM.
    pub(super) base: u64,
    /// The checkpoint that is being written: the contents of its anchor, and its body.
    head: Vec<u8>,
    body: Vec<u8>,
    /// Erases in SLC mode by superblock, for the cache and for the map.
    pub(super) slc_erases: Vec<[u32; 2]>,
}

impl Export {
    /// The sequence number as flash has it.
    #[inline]
    pub(crate) fn sequence(&self, sequence: u32) -> u64 {
        self.base + u64::from(sequence)
    }

    /// Sequence numbers in SRAM now count from `base` on.
    pub(crate) fn renumber(&mut self, base: u32) {
        self.base += u64::from(base);
    }
}

impl Log {
    /// From now on everything that is programmed is reported. Nothing has been programmed yet, or the device was
    /// loaded.
    pub(crate) fn keep_in_flash(&mut self) {
        self.export.is_on = true;
        self.export.slc_erases.resize(self.geometry().superblocks() as usize, [0; 2]);
    }

    /// Takes the metadata to be stored, once for each [`MediaOp::Own`].
    pub(crate) fn take_own(&mut self) -> Option<Own> {
        self.export.own.pop_front()
    }

    /// Queues metadata that does not come from flash translation.
    pub(crate) fn export_other(&mut self, own: Own, hw: &mut impl Hardware) {
        if self.export.is_on {
            self.push_own(own, hw);
        }
    }

    fn push_own(&mut self, own: Own, hw: &mut impl Hardware) {
        self.export.own.push_back(own);
        hw.emit(MediaOp::Own);
    }

    /// A unit of data has been programmed; its slices were reported.
    #[inline]
    pub(crate) fn export_data(&mut self, first: Ppn, space: &Space, hw: &mut impl Hardware) {
        if self.export.is_on {
            self.export.programs += 1;
            let (stream, program) = (stream_of(space, first), self.export.programs);
            hw.emit(MediaOp::Programmed { first, stream, program });
        }
    }

    /// A unit of the table of a superblock has been programmed.
    pub(crate) fn export_table(&mut self, first: Ppn, space: &Space, hw: &mut impl Hardware) {
        if !self.export.is_on {
            return;
        }
        self.export.programs += 1;
        let slices = self.table_slices(space, first, self.export.programs);
        self.push_own(Own::Unit(slices), hw);
    }

    /// The slices of a unit of the table of its superblock: 4 bytes a slice, written by
    /// [`super::records::put_entry`].
    pub(super) fn table_slices(&self, space: &Space, first: Ppn, program: u64) -> Vec<OwnSlice> {
        let sb = space.of(first);
        let start = space.first(sb);
        let unit = (first.0 - start.0) / self.geometry().slices_per_unit();
        let place = space.units_of_table(sb).position(|of_table| of_table == unit).unwrap_or(0) as u32;
        let per_slice = BLOCK_BYTES / 4;
        let spare = Spare {
            kind: SliceKind::Table,
            stream: stream_of(space, first),
            page: Some(place),
            sequence: 0,
            program,
            ends_unit: false,
        };
        (0..self.geometry().slices_per_unit())
            .map(|i| {
                let from = (place * self.geometry().slices_per_unit() + i) * per_slice;
                let slices = (from..from + per_slice).take_while(|&slice| slice < space.slices());
                let page_of = |slice| space.spares().lpn(Ppn(start.0 + slice)).map_or(0, |lpn| lpn.0 + 1);
                let data = slices.flat_map(|slice| page_of(slice).to_le_bytes()).collect();
                OwnSlice { ppn: Ppn(first.0 + i), spare, rest: [0; SPARE_REST_BYTES], data }
            })
            .collect()
    }

    /// The spare area of a page of the meta stream.
    fn own_spare(&self, kind: SliceKind, page: Option<u32>, sequence: u64) -> Spare {
        // The program is counted when its unit is complete.
        Spare { kind, stream: Stream::Meta, page, sequence, program: self.export.programs + 1, ends_unit: false }
    }

    /// Adds a map page to the unit that has been programmed; the last `refs` changes of references belong to it.
    /// Returns how many of them it keeps, and whether they fit into its spare area. If not, they are dropped, because
    /// there may be one for each trimmed block; recovery then reads the whole map.
    pub(crate) fn export_map(&mut self, map: &Map, part: &MapPart, at: Ppn, refs: u32) -> (u32, bool) {
        if !self.export.is_on {
            return (refs, true);
        }
        let page = part.page.page();
        let before = self.durable.refs.len() - refs as usize;
        let refs = spare_refs::sums(self.durable.refs.split_off(before));
        let fits = spare_refs::fit(&refs, self.config.map_page_bytes);
        let bytes = self.map_page(map, page, part.put_together, &refs);
        let spare = self.own_spare(SliceKind::Map, Some(page.0), self.export.sequence(part.sequence));
        self.export.unit.extend(bytes.into_slices(at, spare));
        if !fits {
            return (0, false);
        }
        self.durable.refs.extend(&refs);
        (refs.len() as u32, true)
    }

    /// The bytes of a map page.
    pub(super) fn map_page(&self, map: &Map, page: MapPage, put_together: u32, refs: &[Refs]) -> Page {
        let mut entries = vec![0; self.config.map_page_bytes as usize];
        for (at, lpn) in entries.chunks_exact_mut(4).zip(map.blocks_of(page)) {
            at.copy_from_slice(&put_entry(map.flash_entry(lpn)));
        }
        // Changes since the page was put together are in the table of changes.
        let first = map.blocks_of(page).next().map_or(0, |lpn| lpn.0);
        map.changes().each_of_page(page, |change| {
            let at = (change.lpn.0 - first) as usize * 4;
            entries[at..at + 4].copy_from_slice(&put_entry(change.persisted));
        });
        Page::of_map(self.config.map_page_bytes, put_together, refs, entries)
    }

    /// Adds a page of the journal to the unit that has been programmed.
    pub(crate) fn export_journal(&mut self, at: Ppn, first: Mark, records: &[Record]) {
        if self.export.is_on {
            let page = Page::of_journal(self.config.map_page_bytes, first, records, self.export.base);
            let spare = self.own_spare(SliceKind::Journal, None, 0);
            self.export.unit.extend(page.into_slices(at, spare));
        }
    }

    /// Adds part `number` of the checkpoint that is being written to the unit that has been programmed.
    pub(crate) fn export_part(&mut self, number: usize, at: Ppn) {
        if !self.export.is_on {
            return;
        }
        let bytes = self.config.map_page_bytes as usize;
        let from = (number * bytes).min(self.export.body.len());
        let part = &self.export.body[from..(from + bytes).min(self.export.body.len())];
        let page = Page::of_checkpoint(self.config.map_page_bytes, part);
        let spare = self.own_spare(SliceKind::Checkpoint, None, 0);
        self.export.unit.extend(page.into_slices(at, spare));
    }

    /// Reports the unit of the meta stream, whose pages have been added.
    pub(crate) fn export_meta_unit(&mut self, next: Option<Next>, hw: &mut impl Hardware) {
        if !self.export.is_on {
            return;
        }
        let mut unit = std::mem::take(&mut self.export.unit);
        if let (Some(next), Some(slice)) = (next, unit.first_mut()) {
            Page::name_next(&mut slice.rest, next);
        }
        self.export.programs += 1;
        self.push_own(Own::Unit(unit), hw);
    }

    /// Keeps the bytes of a checkpoint that is going to be written.
    pub(crate) fn export_checkpoint(&mut self, map: &Map, checkpoint: &Checkpoint) {
        if self.export.is_on {
            let (head, body) = self.checkpoint_bytes(map, checkpoint, 0);
            (self.export.head, self.export.body) = (head, body);
        }
    }

    /// Head and body of a checkpoint as of now.
    pub(super) fn checkpoint_bytes(
        &self,
        map: &Map,
        checkpoint: &Checkpoint,
        anchor_erases: u64,
    ) -> (Vec<u8>, Vec<u8>) {
        let anchored = Anchored { base: self.export.base, programs: self.export.programs, anchor_erases };
        let packed = Packed::new(self.changes_now(map), |first, end| {
            map.page_of(first) == map.page_of(end)
                && first.run(end - first).all(|lpn| map.flash_entry(lpn).mapping() == Mapping::Unmapped)
        });
        debug_assert!(packed.places() <= checkpoint.used as usize, "it does not fit its pages");
        (checkpoint.head(anchored, &packed), checkpoint.body(&packed))
    }

    /// The anchor of that checkpoint has been programmed.
    pub(crate) fn export_anchor(&mut self, first: Ppn, hw: &mut impl Hardware) {
        if !self.export.is_on {
            return;
        }
        // It has the number of the program before it, so that other programs are numbered without gaps. The parts of
        // its own checkpoint lie between it and the anchor before it.
        let mut bytes = self.export.head.clone();
        let places = self.durable.pending_places();
        bytes.extend((places.len() as u32).to_le_bytes());
        places.iter().for_each(|at| bytes.extend(at.0.to_le_bytes()));
        let (kind, program) = (SliceKind::Anchor, self.export.programs);
        let spare = Spare { kind, stream: Stream::Meta, page: None, sequence: 0, program, ends_unit: false };
        let slices = (first.0..).zip(bytes.chunks(BLOCK_BYTES as usize));
        let own = |(ppn, data): (u32, &[u8])| OwnSlice {
            ppn: Ppn(ppn),
            spare,
            rest: [0; SPARE_REST_BYTES],
            data: data.to_vec(),
        };
        let unit: Vec<OwnSlice> = slices.map(own).collect();
        debug_assert!(unit.len() as u32 <= self.geometry().slices_per_unit(), "an anchor is longer than a unit");
        self.push_own(Own::Unit(unit), hw);
    }

    /// A superblock has been erased, or a block of it has gone bad.
    pub(crate) fn export_block(&mut self, superblock: SuperblockId, space: &Space, hw: &mut impl Hardware) {
        if self.export.is_on {
            let record = self.block_record(superblock, space);
            self.push_own(Own::Block { superblock: superblock.0, record }, hw);
        }
    }

    /// The record of a superblock, which survives erases.
    pub(super) fn block_record(&self, superblock: SuperblockId, space: &Space) -> [u8; BLOCK_RECORD_BYTES] {
        let sb = space.get(superblock);
        let record = BlockRecord {
            erases: sb.erases,
            slc_erases: self.export.slc_erases.get(superblock.index()).copied().unwrap_or_default(),
            failed: sb.failed,
            retired: sb.state == State::Retired,
            bad: (0..self.geometry().dies()).filter(|&die| space.is_bad(superblock, die)).collect(),
        };
        record.to_bytes()
    }

    /// An erase in SLC mode begins.
    pub(crate) fn note_slc_erase(&mut self, superblock: SuperblockId, is_of_map: bool) {
        if let Some(erases) = self.export.slc_erases.get_mut(superblock.index()) {
            erases[usize::from(is_of_map)] += 1;
        }
    }
}

fn stream_of(space: &Space, ppn: Ppn) -> Stream {
    space.stream_of(space.of(ppn)).unwrap_or(Stream::Host)
}
