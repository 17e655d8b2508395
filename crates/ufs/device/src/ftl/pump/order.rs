// SPDX-License-Identifier: MIT OR Apache-2.0
//! Background work and its order: writes into the buffer and out of it, trims, collection, write-back, checkpoints.

use super::Ftl;
use crate::back::{Hardware, Job, Op, Work};
use crate::config::CellMode;
use crate::ftl::collect::Around;
use crate::ftl::effects::Effect;
use crate::ftl::map::{Entry, Mapping};
use crate::ftl::space::{Purpose, Stream};
use crate::ftl::write::{Incoming, Stall, Unmap};
use crate::ftl::zones::Tail;
use crate::ids::{Lpn, TagRef};
use readpath_flash::Ppn;
use readpath_kit::Ns;

impl Ftl {
    /// Lets all background work continue.
    pub(crate) fn pump(&mut self, now: Ns, hw: &mut impl Hardware) {
        self.log.begin_erase(now, &mut self.space, hw);
        self.drain_writes(now, hw);
        self.pump_behind_writes(now, hw);
    }

    /// Lets the work behind the write buffer continue.
    fn pump_behind_writes(&mut self, now: Ns, hw: &mut impl Hardware) {
        self.collect(now, hw);
        self.refresh(now, hw);
        self.drain_trims(now, hw);
        self.write_back(now, hw);
        self.program_meta(now, hw);
        self.step_checkpoint(now, hw);
        self.refuse_writes_if_hopeless(now, hw);
    }

    /// Continues collection.
    pub(super) fn collect(&mut self, now: Ns, hw: &mut impl Hardware) {
        let Ftl { space, map, log, .. } = self;
        self.collect.advance(now, Around { space, map, log, sequence: self.write.sequence() }, hw);
    }

    /// Begins to write map pages back, if that is due.
    pub(crate) fn write_back(&mut self, now: Ns, hw: &mut impl Hardware) {
        self.log.write_back(now, (&mut self.space, &mut self.map), self.write.settles_changes(), hw);
    }

    /// Programs units of the meta stream, as far as data is queued and no unit has to wait.
    pub(crate) fn program_meta(&mut self, now: Ns, hw: &mut impl Hardware) {
        self.log.program_meta(now, (&mut self.space, &mut self.map), self.write.sequence(), hw);
    }

    /// Begins or continues a checkpoint.
    pub(super) fn step_checkpoint(&mut self, now: Ns, hw: &mut impl Hardware) {
        if self.log.step_checkpoint(now, &mut self.space, &self.map, (&self.write, &self.zones), hw) {
            self.pump(now, hw);
        }
    }

    /// Accepts the data of a write into the buffer, or queues it.
    pub(crate) fn accept(&mut self, now: Ns, write: Incoming, hw: &mut impl Hardware) {
        self.write.accept(write);
        self.drain_writes(now, hw);
        // A block that only enters the buffer enables no other work.
        if self.write.waits_for().is_some() || self.log.order_is_long(&self.space, self.write.sequence()) {
            self.pump_behind_writes(now, hw);
        }
    }

    /// Moves waiting writes into free buffer slots, and full pages of the buffer to flash.
    fn drain_writes(&mut self, now: Ns, hw: &mut impl Hardware) {
        if self.write.waits_for_buffer(now, hw.stats()) {
            return;
        }
        let mut stall = None;
        while !self.write.fill((&mut self.map, &mut self.zones), &mut self.effects, hw) {
            stall = self.program_buffer(now, hw);
            if self.write.buffer().is_full() {
                break;
            }
        }
        if !self.write.has_waiting() {
            stall = self.program_buffer(now, hw);
        }
        self.write.set_stall(now, stall, hw.stats());
    }

    /// Programs buffered blocks that fill a multi-plane page, and those that a request waits for. Returns the cause
    /// for which programming has to wait.
    fn program_buffer(&mut self, now: Ns, hw: &mut impl Hardware) -> Option<Stall> {
        let unit = self.geometry.slices_per_unit();
        let mut stall = if self.zones.any() { self.program_zones(now, hw) } else { None };
        for (hot, stream) in [(false, Stream::Host), (true, Stream::Hot)] {
            while self.write.has_unit(hot, unit, self.space.programs() == 0) {
                let ppn = match self.unit_for_host(stream) {
                    Ok(ppn) => ppn,
                    Err(cause) => {
                        stall = Some(cause);
                        break;
                    }
                };
                let (first, count) = self.write.buffer_mut().take_for_program(hot, unit, self.log.journal().durable());
                hw.stats().slices_padded += u64::from(unit - count);
                let op = Op { count: count as u16, index: u32::from(first), ..Op::new(Job::Program, ppn) };
                self.space.program(now, op, hw);
            }
        }
        stall
    }

    /// A unit for data from the host: in the cache in SLC mode while there is room, of `stream` otherwise.
    fn unit_for_host(&mut self, stream: Stream) -> Result<Ppn, Stall> {
        let Ftl { config, geometry, space, map, log, collect, write, .. } = self;
        let stream = collect.slc_cache().stream_for(stream, space);
        let purpose = if stream == Stream::Boosted { Purpose::Cache } else { Purpose::Host };
        log.prepare_unit(space, map, stream, purpose)?;
        // The rest of a shared superblock belongs to moved data, which frees the next superblock.
        let is_shared = stream == Stream::Host && !config.ftl.separate_moved;
        if is_shared && space.spare() == 0 || !collect.host_may_write(geometry.slices_per_unit(), space) {
            return Err(Stall::Space);
        }
        log.take_unit(space, map, stream, write.sequence())
    }

    /// Whether writes wait for space and no work in progress could free any.
    pub(crate) fn is_stuck(&self, hw: &impl Hardware) -> bool {
        let loads = self.zones.tails().iter().any(Tail::is_loading) || self.space.has_duplicate();
        let going_on = hw.writes() > 0 || self.collect.is_reading() || self.log.is_busy() || loads;
        self.write.waits_for() == Some(Stall::Space) && !going_on
    }

    /// If writes wait for space and no work in progress could free any, all changes of the map are written back. If
    /// that frees nothing, the waiting requests are refused: so many blocks are bad that the rest does not hold the
    /// logical capacity.
    fn refuse_writes_if_hopeless(&mut self, now: Ns, hw: &mut impl Hardware) {
        if !self.is_stuck(hw) {
            return;
        }
        // Overwritten slices count as valid until their map page is written back.
        if self.map.changes().used() > 0 && self.write.settle_changes() {
            return self.pump(now, hw);
        }
        self.take_back_writes(|_| true);
        for tag in self.write.take_waiters(now, hw.stats()) {
            self.effects.push(Effect::Refused(tag));
        }
    }

    /// UNMAP of ranges, each a first logical page and a length. They are trimmed as soon as there is room.
    pub(crate) fn unmap(
        &mut self,
        now: Ns,
        tag: TagRef,
        ranges: impl Iterator<Item = (Lpn, u32)>,
        hw: &mut impl Hardware,
    ) {
        self.write.unmap(tag, ranges);
        self.drain_trims(now, hw);
    }

    /// Carries out UNMAPs in order, as far as the table of changes and the journal have room.
    fn drain_trims(&mut self, now: Ns, hw: &mut impl Hardware) {
        while let Some(mut unmap) = self.write.next_trim() {
            while let Some((first, blocks)) = unmap.next() {
                if self.map.is_zoned(first) {
                    if !self.empty_zone(first, blocks) {
                        return self.write.put_trim_back(unmap);
                    }
                    unmap.done(blocks);
                    continue;
                }
                let pages = self.pages_to_trim();
                if pages == 0 {
                    return self.write.put_trim_back(unmap);
                }
                let end = u64::from(self.map.page_of(first).0 + pages) * u64::from(self.map.page_entries());
                let count = (end - u64::from(first.0)).min(u64::from(blocks)) as u32;
                self.trim(first, count);
                unmap.done(count);
            }
            self.answer_trim(now, &unmap, hw);
            self.write.end_trim(unmap);
        }
    }

    /// Map pages in which blocks may be trimmed now: each takes a place of the table of changes. A unit's worth of
    /// places is left to data; otherwise trims could block it for ever.
    fn pages_to_trim(&self) -> u32 {
        if self.write.is_lent() || self.log.journal().is_full() {
            return 0;
        }
        self.map.room().saturating_sub(self.geometry.slices_per_unit())
    }

    /// Trims blocks from the logical page `first` on. Each counts as changed unless SRAM knows that it is unmapped:
    /// its map page has not been paid for.
    fn trim(&mut self, first: Lpn, blocks: u32) {
        let sequence = self.write.next_number();
        let record = self.log.journal().newest() + 1;
        let mut page = None;
        for lpn in first.run(blocks) {
            if let Mapping::Buffered(slot) = self.map.get(lpn) {
                self.write.buffer_mut().kill(slot, record);
                self.map.leave_buffer(lpn, slot);
            } else if self.map.is_known_unmapped(lpn) {
                continue;
            }
            if !self.map.is_known_unmapped(lpn) {
                self.relocate(lpn, Entry::UNMAPPED);
                if page != Some(self.map.page_of(lpn)) {
                    page = Some(self.map.page_of(lpn));
                    self.map.add_trims(self.map.page_of(lpn), 1);
                }
            }
            self.effects.changed(lpn);
        }
        self.log.note_trim(first, blocks, sequence);
    }

    /// Answers an UNMAP after the firmware's time for the map pages that it touched.
    fn answer_trim(&mut self, now: Ns, unmap: &Unmap, hw: &mut impl Hardware) {
        let page = |lpn: Lpn| u64::from(self.map.page_of(lpn).0);
        let touched = unmap.ranges.iter().filter(|&&(first, blocks)| blocks > 0 && !self.map.is_zoned(first));
        let pages: u64 = touched.map(|&(first, blocks)| page(first + (blocks - 1)) - page(first) + 1).sum();
        match Ns(hw.cpu().timing().trim_map_page.0 * pages) {
            Ns::ZERO => self.effects.push(Effect::Done(unmap.tag)),
            cost => hw.work(now, cost, Work::Trimmed(unmap.tag)),
        }
    }

    /// Moves `lpn` in flash to `to` (clean). The change goes into the table.
    pub(crate) fn relocate(&mut self, lpn: Lpn, to: Entry) {
        if self.map.is_zoned(lpn) {
            return self.place_rest(lpn, to.mapping().flash());
        }
        let old = self.map.relocate(lpn, to);
        self.log.note_changed(lpn, old);
        if let Mapping::Flash(ppn) = to.mapping() {
            self.space.add_ref(ppn);
        }
        let Mapping::Flash(ppn) = old.mapping() else { return };
        self.collect.gone(ppn);
        if old.is_recent() {
            self.space.drop_ref(ppn);
            let sb = self.space.of(ppn);
            self.log.discard_if_empty(&mut self.space, sb);
        }
    }

    /// Requests that accepted data and trims reach flash; returns for how many of the two `tag` has to wait.
    pub(crate) fn sync(&mut self, tag: TagRef) -> u32 {
        u32::from(!self.write.buffer_mut().sync(tag)) + u32::from(self.log.sync_trims(tag))
    }

    /// Requests that all trims so far reach flash. `tag` waits for that; false if they already are there.
    pub(crate) fn sync_trims(&mut self, tag: TagRef) -> bool {
        self.log.sync_trims(tag)
    }

    /// Requests that accepted data and trims reach flash; no request waits.
    pub(crate) fn flush(&mut self) {
        self.write.buffer_mut().flush();
        self.log.flush_trims();
    }

    /// A command is dropped: the rest of its data is no longer accepted.
    pub(crate) fn drop_request(&mut self, now: Ns, tag: u8, hw: &mut impl Hardware) {
        self.take_back_writes(|write| write.tag.tag == tag);
        self.write.drop_request(now, tag, |tag| self.zones.is_resetting(tag), hw.stats());
    }

    /// All commands are dropped. The contents of the write buffer stay.
    pub(crate) fn drop_requests(&mut self, now: Ns, hw: &mut impl Hardware) {
        self.take_back_writes(|_| true);
        self.write.drop_requests(now, |tag| self.zones.is_resetting(tag), hw.stats());
        self.log.forget_waiters(|tag| self.zones.is_resetting(tag));
        self.zones.hardware_reset();
        self.collect.slc_cache_mut().reset();
    }

    /// Counts a read of the superblock of `ppn`, if reads are counted; returns its cell mode.
    #[inline(never)]
    pub(crate) fn note_read(&mut self, now: Ns, ppn: Ppn, hw: &mut impl Hardware) -> CellMode {
        let limit = self.config.ftl.read_disturb_limit;
        if limit > 0 && self.space.note_read(ppn, limit) {
            match self.space.is_of_zone(ppn) {
                true => self.begin_refresh(ppn),
                false => self.collect.disturbed(self.space.of(ppn)),
            }
            self.pump(now, hw);
        }
        self.space.mode_of(ppn)
    }

    /// A check for idleness is due: background work begins if the host has been idle for long enough. `busy` says
    /// that commands are in progress.
    pub(crate) fn background_due(&mut self, now: Ns, busy: bool, hw: &mut impl Hardware) {
        if !self.collect.idle_mut().look(now, busy, hw) {
            return;
        }
        self.pump(now, hw);
        // If the host interrupts work in progress, another check resumes it. Without work, time alone changes
        // nothing.
        if hw.ops().in_use() > 0 {
            self.arm_background(now);
        }
    }
}
