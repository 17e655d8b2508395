// SPDX-License-Identifier: MIT OR Apache-2.0
//! The way of a write: firmware, write buffer (where it is acknowledged, unless FUA), then a multi-plane page of an open
//! superblock. Also TRIM.

use crate::back::Probe;
use crate::back::Work;
use crate::back::{Job, Op};
use crate::back::{MediaMode, MediaOp};
use crate::buffer::{Accepted, NO_SLOT};
use crate::device::UfsDevice;
use crate::ftl::{Entry, Logged, Mapping, Record, Stream};
use crate::ids::TagRef;
use crate::stalls::Stall;
use readpath_flash::{DieSched, OpId, Ppn};
use readpath_kit::Ns;
use readpath_proto::scsi;
use readpath_proto::typed::{FLAG_FUA, Sense};

impl<S: DieSched, M: MediaMode, P: Probe> UfsDevice<S, M, P> {
    pub(crate) fn write(&mut self, now: Ns, tag: u8) {
        let slot = &mut self.slots[usize::from(tag)];
        let (lba, blocks, flags) = (slot.lba, slot.blocks, slot.flags);
        let lun = usize::from(slot.lun);
        if lba.saturating_add(u64::from(blocks)) > u64::from(self.config.lus[lun].blocks) {
            return self.check(now, tag, Sense::LBA_OUT_OF_RANGE);
        }
        slot.lpn = self.bases[lun] + lba as u32;
        slot.issued = 0;
        slot.left = blocks;
        slot.fua = flags & FLAG_FUA != 0;
        self.map.prefetch(slot.lpn);
        let cost = self.back.cpu.timing().write_command;
        self.back.work(now, cost, Work::Accept(self.tag_ref(tag)));
    }

    /// The firmware takes the data of a write into the buffer, or lets it wait its turn.
    pub(crate) fn accept(&mut self, now: Ns, tag: u8) {
        let slot = &self.slots[usize::from(tag)];
        if slot.blocks == 0 {
            return self.send_reply(now, tag);
        }
        self.waiting_writes.push_back(self.tag_ref(tag));
        self.arm_background(now);
        self.drain_writes(now);
        // A block that only fills the buffer wakes nothing else.
        if self.waits_for.is_some() || self.order_is_long() {
            self.pump_behind_writes(now);
        }
    }

    /// Moves waiting writes into free buffer slots, and full pages of the buffer to flash.
    pub(crate) fn drain_writes(&mut self, now: Ns) {
        if self.buffer_is_lent {
            let waits = !self.waiting_writes.is_empty();
            self.waits_for = waits.then_some(Stall::MapChanges);
            return self.stalls.set(now, waits.then_some(self.waits_for), &mut self.back.stats);
        }
        let mut stall = None;
        while let Some(&tag) = self.waiting_writes.front() {
            if self.is_alive(tag) && !self.fill_from(now, tag.tag) {
                stall = self.program_buffer(now);
                if self.buffer.is_full() {
                    break;
                }
                continue;
            }
            self.waiting_writes.pop_front();
        }
        if self.waiting_writes.is_empty() {
            stall = self.program_buffer(now);
        }
        let waits = !self.waiting_writes.is_empty();
        self.waits_for = stall;
        self.stalls.set(now, waits.then_some(stall), &mut self.back.stats);
    }

    /// Fills buffer slots with the rest of a write; false when the buffer is full before the write is in.
    fn fill_from(&mut self, now: Ns, tag: u8) -> bool {
        loop {
            let slot = &self.slots[usize::from(tag)];
            let (index, fua, life) = (slot.issued, slot.fua, slot.life);
            if index == slot.blocks {
                if !fua {
                    self.send_reply(now, tag);
                }
                return true;
            }
            let lpn = slot.lpn + index;
            let lun = usize::from(slot.lun);
            let old = match self.map.get(lpn) {
                Mapping::Buffered(slot) => Some(slot),
                _ => None,
            };
            let target = match old {
                Some(slot) if !fua && self.buffer.may_overwrite(slot) => {
                    self.buffer.overwrite(slot, self.sequence + 1);
                    slot
                }
                older => {
                    let block = Accepted {
                        lpn,
                        sequence: self.sequence + 1,
                        under: self.flash_entry(lpn),
                        older,
                        hot: self.was_written_lately(lpn),
                        fua: fua.then_some(TagRef { tag, life }),
                    };
                    let Some(slot) = self.buffer.put(block) else { return false };
                    slot
                }
            };
            self.sequence += 1;
            self.back.stats.slices_written += 1;
            self.back.emit(MediaOp::Fill { tag, index, slot: target });
            self.map.set(lpn, Entry::buffered(target));
            self.block_changed(lun, lpn);
            self.slots[usize::from(tag)].issued += 1;
        }
    }

    /// Entries that the host holds for a block are stale.
    pub(crate) fn block_changed(&mut self, lun: usize, lpn: u32) {
        if let Some(unit) = &mut self.hpb[lun] {
            unit.block_changed(lpn - self.bases[lun]);
        } else if let Some(groups) = &mut self.groups {
            groups.changed(lpn);
        }
    }

    /// [`UfsDevice::block_changed`] for a block of whatever unit.
    pub(crate) fn block_moved(&mut self, lpn: u32) {
        let lun = self.bases.partition_point(|&base| base <= lpn) - 1;
        self.block_changed(lun, lpn);
    }

    /// Whether `lpn` is among those written lately, as far as the table remembers; from now on it is.
    fn was_written_lately(&mut self, lpn: u32) -> bool {
        if self.lately.is_empty() {
            return false;
        }
        let hash = lpn.wrapping_mul(0x9E37_79B1) >> (32 - self.lately.len().trailing_zeros());
        std::mem::replace(&mut self.lately[hash as usize], lpn + 1) == lpn + 1
    }

    /// Programs what fills a multi-plane page, and what somebody waits for even if it does not. Returns what it waits for.
    pub(crate) fn program_buffer(&mut self, now: Ns) -> Option<Stall> {
        let unit = self.config.geometry.slices_per_unit();
        let mut stall = None;
        for (hot, stream) in [(false, Stream::Host), (true, Stream::Hot)] {
            // With few slots neither kind may fill a page: then whatever there is must go. If one does, it is enough to
            // wait for that: padding is space lost.
            while self.buffer.filled(hot) >= unit as usize
                || self.buffer.must_flush(hot)
                || (self.buffer.is_full()
                    && self.data_programs == 0
                    && self.buffer.filled(hot) > 0
                    && self.buffer.filled(!hot) < unit as usize)
            {
                let ppn = match self.unit_for_host(stream) {
                    Ok(ppn) => ppn,
                    Err(cause) => {
                        stall = Some(cause);
                        break;
                    }
                };
                let (first, count) = self.buffer.take_for_program(hot, unit, self.journal.durable());
                self.back.stats.programs += 1;
                self.back.stats.slices_padded += u64::from(unit - count);
                let op = Op { count: count as u16, index: u32::from(first), ..Op::new(Job::Program, ppn) };
                self.begin_flash(now, op);
            }
        }
        stall
    }

    /// Whether writes wait for space and nothing is under way that could give some.
    pub(crate) fn is_stuck(&self) -> bool {
        let going_on = self.back.dies.writes() > 0 || self.collector.is_reading() || self.meta.is_busy();
        self.waits_for == Some(Stall::Space) && !going_on
    }

    /// If what waits is space and nothing is going on that could give some, whoever waits is told, once: so many blocks
    /// have gone bad that what is left does not hold the logical capacity.
    pub(crate) fn refuse_writes_if_hopeless(&mut self, now: Ns) {
        if !self.is_stuck() {
            return;
        }
        let mut waiters: Vec<TagRef> = self.waiting_writes.drain(..).collect();
        self.stalls.set(now, None, &mut self.back.stats);
        waiters.extend(self.buffer.take_waiters());
        waiters.sort_unstable();
        waiters.dedup();
        for tag in waiters {
            if self.is_alive(tag) {
                self.back.stats.no_space += 1;
                self.check(now, tag.tag, Sense::NO_SPACE);
            }
        }
    }

    /// A multi-plane page has been programmed: the map follows, the buffer is free for others.
    pub(crate) fn programmed(&mut self, now: Ns, id: OpId) {
        let op = self.back.end(id);
        self.data_program_ended(op.ppn);
        if self.back.dies.program_fails() {
            self.program_went_wrong(op.ppn);
            self.buffer.program_failed(op.index as u16);
            return self.pump(now);
        }
        self.back.stats.slices_programmed += u64::from(op.count);
        self.back.stats.slices_boosted += if op.slc { u64::from(op.count) } else { 0 };
        let mut ppn = op.ppn;
        let mut next = op.index as u16;
        // A SYNCHRONIZE CACHE can end here at most once per request slot, so this does not allocate in the long run.
        let mut ended: Vec<TagRef> = Vec::new();
        while next != NO_SLOT {
            let slot = next;
            self.buffer.kill_older(slot);
            let freed = self.buffer.release(slot, |tag| ended.push(tag));
            next = freed.next;
            self.back.emit(MediaOp::Program { slot, ppn });
            if !freed.void {
                self.spares.program(ppn, freed.lpn, freed.sequence);
            }
            // Newer data in flash or a TRIM may have come meanwhile; then this copy is born invalid.
            if !freed.dead {
                if self.map.get(freed.lpn) == Mapping::Buffered(slot) {
                    self.map.set(freed.lpn, freed.under);
                }
                self.relocate(freed.lpn, Entry::at(ppn));
            }
            if let Some(tag) = freed.fua {
                self.sync_part_done(now, tag);
            }
            ppn = Ppn(ppn.0 + 1);
        }
        self.durable.log.push(Logged::Data { first: op.ppn });
        self.discard_if_empty(self.superblocks.of(op.ppn));
        self.write_table_if_full(now, op.ppn);
        for tag in ended {
            self.sync_part_done(now, tag);
        }
        self.pump(now);
    }

    /// Carries out UNMAPs in order, as far as the table of changes and the journal have room.
    pub(crate) fn drain_trims(&mut self, now: Ns) {
        while let Some(&tag) = self.waiting_trims.front() {
            if self.is_alive(tag) {
                let tag = tag.tag;
                let list = std::mem::take(&mut self.slots[usize::from(tag)].data_out);
                let done = self.trim_list(tag, &list);
                let map_pages = if done { self.map_pages_of(tag, &list) } else { 0 };
                self.slots[usize::from(tag)].data_out = list;
                if !done {
                    return;
                }
                self.answer_trim(now, tag, map_pages);
            }
            self.waiting_trims.pop_front();
        }
    }

    /// Goes on with the ranges of an UNMAP, which were checked on arrival: `issued` of them are done, and `left` blocks of
    /// the next. False when there is no room for all.
    fn trim_list(&mut self, tag: u8, list: &[u8]) -> bool {
        let slot = &self.slots[usize::from(tag)];
        let (lun, ranges_done) = (usize::from(slot.lun), slot.issued as usize);
        let ranges = scsi::parse_unmap(list).into_iter().flatten();
        for (lba, blocks) in ranges.skip(ranges_done) {
            loop {
                let done = self.slots[usize::from(tag)].left;
                if done == blocks {
                    break;
                }
                let pages = self.pages_to_trim();
                if pages == 0 {
                    return false;
                }
                let first = self.bases[lun] + lba as u32 + done;
                let end = u64::from(self.map.page_of(first) + pages) * u64::from(self.map.page_entries());
                let count = (end - u64::from(first)).min(u64::from(blocks - done)) as u32;
                self.trim(lun, first, count);
                self.slots[usize::from(tag)].left += count;
            }
            let slot = &mut self.slots[usize::from(tag)];
            slot.issued += 1;
            slot.left = 0;
        }
        true
    }

    /// Map pages within which blocks may be trimmed now: each takes a place of the table of changes. A unit's worth of
    /// places is left to data, or trims could hold it up for ever.
    fn pages_to_trim(&self) -> u32 {
        if self.buffer_is_lent || self.journal.is_full() {
            return 0;
        }
        let kept = self.changes_reserved + self.config.geometry.slices_per_unit();
        self.changes.room().saturating_sub(kept)
    }

    /// Blocks from the logical page `first` on, all of them of the unit `lun`, mean nothing any more.
    fn trim(&mut self, lun: usize, first: u32, blocks: u32) {
        self.sequence += 1;
        let record = self.journal.newest() + 1;
        let mut page = None;
        for lpn in first..first + blocks {
            if let Mapping::Buffered(slot) = self.map.get(lpn) {
                self.buffer.kill(slot, record);
                self.map.set(lpn, self.buffer.under(slot));
            } else if self.map.get(lpn) == Mapping::Unmapped {
                continue;
            }
            if self.map.get(lpn) != Mapping::Unmapped {
                self.relocate(lpn, Entry::UNMAPPED);
                if page != Some(self.map.page_of(lpn)) {
                    page = Some(self.map.page_of(lpn));
                    self.changes.add_trims(self.map.page_of(lpn), 1);
                }
            }
            self.block_changed(lun, lpn);
        }
        let record = Record::Trim { lpn: first, count: blocks, sequence: self.sequence };
        self.journal.trims = self.journal.push(record);
    }

    /// Map pages that the ranges of an UNMAP touch.
    fn map_pages_of(&self, tag: u8, list: &[u8]) -> u64 {
        let base = self.bases[usize::from(self.slots[usize::from(tag)].lun)];
        let ranges = scsi::parse_unmap(list).into_iter().flatten().filter(|&(_, blocks)| blocks > 0);
        let page = |block: u32| u64::from(self.map.page_of(base + block));
        ranges.map(|(lba, blocks)| page(lba as u32 + blocks - 1) - page(lba as u32) + 1).sum()
    }

    /// UNMAP has touched `map_pages` map pages, which takes the firmware its time before it answers.
    fn answer_trim(&mut self, now: Ns, tag: u8, map_pages: u64) {
        match Ns(self.back.cpu.timing().trim_map_page.0 * map_pages) {
            Ns::ZERO => self.send_reply(now, tag),
            cost => {
                self.back.work(now, cost, Work::Trimmed(self.tag_ref(tag)));
            }
        }
    }
}
