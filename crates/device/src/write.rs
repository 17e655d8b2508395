// SPDX-License-Identifier: MIT OR Apache-2.0
//! The way of a write: firmware, write buffer (where it is acknowledged, unless FUA), then a multi-plane page of an open
//! superblock. Also TRIM, SYNCHRONIZE CACHE and the erase of superblocks without valid data.
//!
//! Changed map entries stay in SRAM; what it costs to write map pages back is not modelled yet.

use crate::buffer::NO_SLOT;
use crate::device::{UfsDevice, Work};
use crate::ftl::{Mapping, NoSpace};
use crate::media::{MediaMode, MediaOp};
use crate::ops::{Job, NO_OP, Op};
use crate::probe::Probe;
use readpath_flash::{DieSched, OpId, Ppn};
use readpath_kit::Ns;
use readpath_proto::typed::{FLAG_FUA, Sense};

/// Programs that may be in progress at once, far more than there are dies to serve them.
const PROGRAMS_IN_FLIGHT: u32 = 512;

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
        let life = slot.life;
        self.work(now, self.config.firmware.write_command, Work::Accept { tag, life });
    }

    /// The firmware takes the data of a write into the buffer, or lets it wait its turn.
    pub(crate) fn accept(&mut self, now: Ns, tag: u8) {
        let slot = &self.slots[usize::from(tag)];
        if slot.blocks == 0 {
            return self.send_reply(now, tag);
        }
        let life = slot.life;
        self.waiting_writes.push_back((tag, life));
        self.drain_writes(now);
    }

    /// Moves waiting writes into free buffer slots, and full pages of the buffer to flash.
    pub(crate) fn drain_writes(&mut self, now: Ns) {
        while let Some(&(tag, life)) = self.waiting_writes.front() {
            if self.is_alive(tag, life) && !self.fill_from(now, tag) {
                break;
            }
            self.waiting_writes.pop_front();
        }
        self.program_full_pages(now);
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
            let old = self.map.get(lpn);
            let reuse = match old {
                Mapping::Buffered(s) if !fua && self.buffer.may_overwrite(s) => Some(s),
                _ => None,
            };
            let Some(target) = reuse.or_else(|| self.buffer.put(lpn, fua.then_some((tag, life)))) else {
                self.program_full_pages(now);
                return false;
            };
            self.emit(MediaOp::Fill { tag, index, slot: target });
            self.remap(lun, lpn, Mapping::Buffered(target));
            self.slots[usize::from(tag)].issued += 1;
        }
    }

    /// The mapping of a logical page changes: its old slice, if any, becomes invalid, and entries for it stale.
    fn remap(&mut self, lun: usize, lpn: u32, mapping: Mapping) {
        if let Mapping::Flash(ppn) = self.map.set(lpn, mapping) {
            self.alloc.invalidate(ppn);
        }
        if let Some(unit) = &mut self.hpb[lun] {
            unit.block_changed(lpn - self.bases[lun]);
        }
    }

    /// Programs what fills a multi-plane page, and what somebody waits for even if it does not.
    pub(crate) fn program_full_pages(&mut self, now: Ns) {
        self.begin_erase(now);
        let unit = self.config.geometry.slices_per_unit();
        while (self.buffer.filled() >= unit as usize || self.buffer.must_flush())
            && self.programs_in_flight < PROGRAMS_IN_FLIGHT
        {
            let ppn = match self.alloc.next_unit() {
                Ok(Some(ppn)) => ppn,
                Ok(None) => return,
                Err(NoSpace) => return self.refuse_writes(now),
            };
            let (first, count) = self.buffer.take_for_program(unit);
            let op = Op {
                job: Job::Program,
                tag: 0,
                count: count as u16,
                next: NO_OP,
                life: 0,
                index: u32::from(first),
                lpn: 0,
                ppn,
                frame: 0,
            };
            let id = self.ops.take(op);
            self.programs_in_flight += 1;
            self.stats.programs += 1;
            self.stats.slices_programmed += u64::from(count);
            self.stats.slices_padded += u64::from(unit - count);
            self.work(now, self.config.firmware.flash_op, Work::Flash(id));
        }
    }

    /// No erased superblock is left: whoever waits for one is told, once.
    fn refuse_writes(&mut self, now: Ns) {
        let mut waiters: Vec<(u8, u32)> = self.waiting_writes.drain(..).collect();
        waiters.extend(self.buffer.take_waiters());
        waiters.sort_unstable();
        waiters.dedup();
        for (tag, life) in waiters {
            if self.is_alive(tag, life) {
                self.stats.no_space += 1;
                self.check(now, tag, Sense::NO_SPACE);
            }
        }
    }

    /// A multi-plane page has been programmed: the map follows, the buffer is free for others.
    pub(crate) fn programmed(&mut self, now: Ns, id: OpId) {
        let op = *self.ops.get(id);
        self.ops.free(id);
        self.programs_in_flight -= 1;
        let mut valid = 0;
        let mut ppn = op.ppn;
        let mut next = op.index as u16;
        // A SYNCHRONIZE CACHE can end here at most once per request slot, so this does not allocate in the long run.
        let mut ended: Vec<(u8, u32)> = Vec::new();
        while next != NO_SLOT {
            let slot = next;
            let freed = self.buffer.release(slot, |tag, life| ended.push((tag, life)));
            next = freed.next;
            self.emit(MediaOp::Program { slot, ppn });
            // Newer data or a TRIM may have come meanwhile; then this copy is born invalid.
            if self.map.get(freed.lpn) == Mapping::Buffered(slot) {
                self.map.set(freed.lpn, Mapping::Flash(ppn));
                valid += 1;
            }
            if let Some((tag, life)) = freed.fua
                && self.is_alive(tag, life)
            {
                let waiting = &mut self.slots[usize::from(tag)];
                waiting.left -= 1;
                if waiting.left == 0 {
                    self.send_reply(now, tag);
                }
            }
            ppn = Ppn(ppn.0 + 1);
        }
        self.alloc.programmed(op.ppn, valid);
        for (tag, life) in ended {
            if self.is_alive(tag, life) {
                self.send_reply(now, tag);
            }
        }
        self.drain_writes(now);
    }

    /// UNMAP of one range of the unit `lun`, within its bounds.
    pub(crate) fn trim(&mut self, lun: usize, block: u32, blocks: u32) {
        let base = self.bases[lun];
        for lpn in base + block..base + block + blocks {
            if self.map.get(lpn) != Mapping::Unmapped {
                self.remap(lun, lpn, Mapping::Unmapped);
            }
        }
    }

    /// Begins to erase a superblock without valid data, one at a time.
    pub(crate) fn begin_erase(&mut self, now: Ns) {
        if self.erasing.is_some() {
            return;
        }
        let Some(superblock) = self.alloc.take_erase() else { return };
        self.erasing = Some(superblock);
        let g = self.config.geometry;
        for die in 0..g.dies() {
            let ppn = Ppn(superblock * g.slices_per_superblock() + die * g.slices_per_unit());
            let op = Op {
                job: Job::Erase,
                tag: 0,
                count: 0,
                next: NO_OP,
                life: 0,
                index: 0,
                lpn: superblock,
                ppn,
                frame: 0,
            };
            let id = self.ops.take(op);
            self.stats.erases += 1;
            self.work(now, self.config.firmware.flash_op, Work::Flash(id));
        }
    }

    /// One die of a superblock is erased.
    pub(crate) fn erased(&mut self, now: Ns, id: OpId) {
        let superblock = self.ops.get(id).lpn;
        self.ops.free(id);
        if self.alloc.die_erased(superblock) {
            self.erasing = None;
            let slices = self.config.geometry.slices_per_superblock();
            self.emit(MediaOp::Erase { first: Ppn(superblock * slices), slices });
            self.drain_writes(now);
        }
    }
}
