// SPDX-License-Identifier: MIT OR Apache-2.0
//! The path of a read: entry, map cache or map page, then the data page, then the link.

use super::hpb_read::Hint;
use super::run::{OPS_PER_REQUEST, Run, residual};
use crate::back::{Hardware, Job, MediaMode, MediaOp, NO_OP, Op, Probe, Work};
use crate::config::CellMode;
use crate::device::UfsDevice;
use crate::front::{HpbRead, Kind, Slot};
use crate::ftl::{FrameState, Mapping, Paid};
use crate::hpb::Verdict;
use crate::ids::{Lpn, TagRef};
use readpath_flash::{DieSched, Done, OpId, Ppn};
use readpath_kit::{BLOCK_BYTES, Ns};
use readpath_proto::typed::{Cdb, Command, Form, HpbEntry, ReplyBody, Request, RequestBody, Response, Sense};

/// A READ or, if it has an entry, an HPB READ.
#[derive(Clone, Copy)]
struct ReadCommand {
    lun: u8,
    lba: u64,
    blocks: u32,
    expected_bytes: u32,
    entry: Option<HpbEntry>,
}

impl<S: DieSched, M: MediaMode, P: Probe> UfsDevice<S, M, P> {
    /// [`UfsDevice::submit`] for READ (10), or HPB READ if there is an `entry`, whose expected length is exact, as
    /// for nearly every request: the same in fewer instructions. An HPB READ has at most 255 blocks.
    #[inline(always)]
    pub fn submit_read(&mut self, now: Ns, lun: u8, tag: u8, block: u32, blocks: u32, entry: Option<HpbEntry>) {
        let lba = u64::from(block);
        let expected_bytes = blocks.wrapping_mul(BLOCK_BYTES);
        let is_plain = self.front.is_free(tag)
            && usize::from(lun) < self.front.units()
            && (entry.is_none() || self.hpb.standard(lun).is_some());
        if P::ACTIVE || !is_plain {
            // Passed as a word: bytes would go through memory, at a cost for every read.
            let word = entry.map(|HpbEntry(bytes)| u64::from_ne_bytes(bytes));
            return self.submit_as_command(now, lun, tag, block, blocks, word);
        }
        let slot = self.front.slot_mut(tag);
        slot.begin(lun);
        slot.kind = if entry.is_some() { Kind::HpbRead } else { Kind::Read };
        slot.lba = lba;
        slot.blocks = blocks;
        slot.flags = 0;
        slot.expected_bytes = expected_bytes;
        if let Some(entry) = entry {
            slot.hpb.entry = entry;
        }
        if let Some(at) = self.link_down(now, tag, self.front.link().request) {
            if self.front.target().is_direct(lun) {
                self.read_command(at, tag, ReadCommand { lun, lba, blocks, expected_bytes, entry });
            } else {
                self.arrive(at, tag);
            }
        }
    }

    #[inline(never)]
    fn submit_as_command(&mut self, now: Ns, lun: u8, tag: u8, block: u32, blocks: u32, entry: Option<u64>) {
        let cdb = match entry {
            Some(entry) => self.read_with(lun, block, blocks, HpbEntry(entry.to_ne_bytes())),
            None => Cdb::Read { form: Form::Ten, lba: u64::from(block), blocks, flags: 0 },
        };
        let body = RequestBody::Command(Command { expected_bytes: blocks.wrapping_mul(BLOCK_BYTES), cdb });
        self.submit(now, &Request { lun, tag, body }, &[]);
    }

    /// A READ or HPB READ arrives, or the engine has checked its entries. An entry that is not good is ignored: the
    /// data is the same either way.
    #[inline(never)]
    pub(crate) fn read(&mut self, now: Ns, tag: u8) {
        let &Slot { lun, lba, blocks, expected_bytes, hpb: HpbRead { entry, read_id, .. }, kind, .. } =
            self.front.slot(tag);
        let entry = (kind == Kind::HpbRead).then_some(entry);
        if entry.is_some() && (read_id != 0 || self.back.engine().checks()) && !self.prepare_hpb_read(now, tag) {
            return;
        }
        self.read_command(now, tag, ReadCommand { lun, lba, blocks, expected_bytes, entry });
    }

    /// Finds the pre-request of an HPB READ, and sends the entries to the engine if that checks them. False if the
    /// command has to wait for the engine.
    #[cold]
    fn prepare_hpb_read(&mut self, now: Ns, tag: u8) -> bool {
        let slot = self.front.slot(tag);
        if slot.hpb.checked {
            return true;
        }
        if slot.hpb.read_id != 0 {
            self.find_pre_request(tag);
        }
        if self.back.engine().checks() {
            self.check_on_engine(now, tag);
        }
        !self.back.engine().checks()
    }

    #[inline(always)]
    fn read_command(&mut self, now: Ns, tag: u8, command: ReadCommand) {
        let ReadCommand { lun, lba, blocks, expected_bytes, entry } = command;
        let Some(lpn) = self.front.lpn_of(lun, lba, blocks) else {
            return self.check(now, tag, Sense::LBA_OUT_OF_RANGE);
        };
        let block = lba as u32;
        let slot = self.front.slot_mut(tag);
        slot.lpn = lpn;
        slot.issued = 0;
        slot.left = blocks;
        slot.in_flight = 0;
        let bytes = u64::from(blocks) * u64::from(BLOCK_BYTES);
        if u64::from(expected_bytes) != bytes {
            let residual = residual(bytes, expected_bytes);
            slot.outcome = Some(ReplyBody::Response(Response { residual, ..Response::GOOD }));
        }
        if blocks == 0 {
            let (tag, cost) = (self.front.tag_ref(tag), self.back.cpu().timing().control);
            return self.back.work(now, cost, Work::Served { tag, count: 0 });
        }
        let life = slot.life;
        // Not a closure: the compiler would make it a separate function with all its arguments on the stack.
        let hinted = match entry {
            Some(entry) => self.judge(now, tag, lun, block, entry),
            None => None,
        };
        if self.hpb.notes(blocks) {
            self.note_read(lun, block, blocks);
            self.front.slot_mut(tag).missed = hinted.is_none();
        }
        if entry.is_none() {
            return self.issue_reads(now, tag, self.read_extra);
        }
        if blocks == 1
            && let Some(ppn) = hinted
            && self.back.ops().has_room()
        {
            // Inlined from `issue_reads`.
            self.front.slot_mut(tag).issued = 1;
            self.back.stats().hpb_hits += 1;
            let run = Run { tag: TagRef { tag, life }, index: 0, lpn, blocks: 1 };
            return self.begin_flash_read(now, run, ppn, self.hpb_command);
        }
        self.issue_hpb_reads(now, tag, hinted.is_some());
    }

    /// [`UfsDevice::issue_reads`] for an HPB READ, after its first entry was judged.
    #[inline(never)]
    fn issue_hpb_reads(&mut self, now: Ns, tag: u8, is_good: bool) {
        let slot = self.front.slot_mut(tag);
        slot.hpb.hinted = is_good || slot.hpb.listed;
        slot.hpb.counted = 1;
        self.issue_reads(now, tag, self.time_to_check(tag));
    }

    #[inline(always)]
    fn judge(&mut self, now: Ns, tag: u8, lun: u8, block: u32, entry: HpbEntry) -> Option<Ppn> {
        let unit = self.hpb.standard(lun)?;
        self.back.stats().hpb_reads += 1;
        match self.hpb.judge(unit, block, entry) {
            Verdict::Good(ppn) => return Some(ppn),
            Verdict::Inactive => self.back.stats().hpb_inactive += 1,
            bad => self.bad_entry(now, tag, block, entry, bad),
        }
        None
    }

    #[inline(always)]
    fn note_read(&mut self, lun: u8, block: u32, blocks: u32) {
        self.hpb.note_read(lun, block);
        if blocks > 1 {
            self.note_end(lun, block, block + (blocks - 1));
        }
    }

    #[inline(never)]
    fn note_end(&mut self, lun: u8, first: u32, last: u32) {
        if self.hpb.standard(lun).is_some_and(|unit| !unit.is_one_sub_region(first, last)) {
            self.hpb.note_read(lun, last);
        }
    }

    /// Notes a miss of blocks that the map places in flash or buffer. Unmapped blocks do not count: loading their
    /// entries again would not help.
    #[inline(always)]
    fn note_missed(&mut self, now: Ns, run: Run) {
        if self.front.slot(run.tag.tag).missed {
            self.note_missed_ends(now, run);
        }
    }

    /// Notes a miss in each sub-region of a read: the host sends an entry only if it holds all of them.
    #[inline(never)]
    fn note_missed_ends(&mut self, now: Ns, run: Run) {
        let &Slot { lun, lba, blocks, .. } = self.front.slot(run.tag.tag);
        let (first, last) = (lba as u32, lba as u32 + (blocks - 1));
        if run.index == 0 {
            self.hpb.note_miss(now, lun, first);
        }
        if run.index + run.blocks == blocks
            && self.hpb.standard(lun).is_some_and(|unit| !unit.is_one_sub_region(first, last))
        {
            self.hpb.note_miss(now, lun, last);
        }
    }

    /// Begins work for as much of the request as its limit allows. The firmware spends `extra` on top of the first
    /// operation.
    pub(crate) fn issue_reads(&mut self, now: Ns, tag: u8, mut extra: Ns) {
        loop {
            let slot = self.front.slot(tag);
            if slot.issued == slot.blocks || slot.in_flight >= OPS_PER_REQUEST || slot.is_cut {
                return;
            }
            if !self.back.ops().has_room() {
                // If the request has operations in flight, their end resumes it.
                if slot.in_flight == 0 {
                    self.front.starve(TagRef { tag, life: slot.life });
                }
                return;
            }
            let all = Run { tag: TagRef { tag, life: slot.life }, index: 0, lpn: slot.lpn, blocks: slot.blocks };
            let left = all.behind(slot.issued);
            let count =
                if slot.hpb.hinted { self.issue_hinted(now, left, extra) } else { self.issue_run(now, left, extra) };
            if count == 0 {
                return;
            }
            extra = Ns::ZERO;
            self.front.slot_mut(tag).issued += count;
        }
    }

    /// [`UfsDevice::issue_run`] for an HPB READ whose entries may place the blocks.
    #[inline(never)]
    fn issue_hinted(&mut self, now: Ns, left: Run, extra: Ns) -> u32 {
        let tag = left.tag.tag;
        if self.front.is_zoned(self.front.slot(tag).lun) {
            return self.issue_zoned(now, left, extra);
        }
        match self.by_entries(now, tag, left.index) {
            Hint::At(ppn, run) => {
                let n = run.min(self.ftl.slices_per_read_from(ppn));
                self.back.stats().hpb_hits += u64::from(n);
                if self.front.slot(tag).blocks > 1 {
                    self.back.stats().hpb_long_hits += u64::from(n);
                }
                self.begin_flash_read(now, left.at_most(n), ppn, extra);
                n
            }
            Hint::Translate(n) => {
                let slot = self.front.slot_mut(tag);
                slot.hpb.hinted = slot.hpb.listed;
                self.issue_run(now, left.at_most(n), extra)
            }
        }
    }

    /// Begins work for the longest run of blocks from `lpn` on that one operation can serve; returns its length.
    /// Returns 0 if the request has to wait until its operations end.
    pub(crate) fn issue_run(&mut self, now: Ns, left: Run, extra: Ns) -> u32 {
        let Run { tag, index, lpn, .. } = left;
        // The write buffer's index and the table of changes are SRAM; map pages have to be paid for. So only a run of
        // buffered blocks may continue into the next map page; every other run ends with its map page.
        match self.ftl.map().known(lpn) {
            Some(Mapping::Buffered(_)) => return self.serve_buffered(now, left, extra),
            Some(mapping) => return self.serve_recent(now, left, mapping, extra),
            None => {}
        }
        if self.ftl.map().keeps_runs()
            && let Some(n) = self.serve_run(now, left, extra)
        {
            return n;
        }
        let page = self.ftl.map().page_of(lpn);
        let to_page_end = (page.0 + 1) * self.ftl.map().page_entries() - lpn.0;
        let most = left.at_most(to_page_end.min(u32::from(u16::MAX)));
        if let Some(paid) = self.ftl.map().missing(page) {
            return self.translate_run(now, most, paid, extra);
        }
        match self.ftl.map_mut().look_up(page) {
            FrameState::Present(paid) => {
                let n = self.translate_run(now, most, paid, extra + self.map_access);
                self.back.stats().map_hits += u64::from(n);
                n
            }
            state => {
                // The firmware has checked the entry, if there was one, in vain.
                self.back.cpu_mut().occupy(now, extra);
                let room = OPS_PER_REQUEST - self.front.slot(tag.tag).in_flight;
                let is_on_host = state == FrameState::Absent && self.host_map.touch(page);
                // Each waiting block counts as one operation, because it may need one. If the limit does not cover
                // all blocks, how many one operation serves is known only after translation, and nothing behind them
                // begins before that: otherwise two operations might read one flash page.
                let is_cut = room < most.blocks;
                let count = match is_cut {
                    true if is_on_host => most.blocks.min(self.fetched_at_once(lpn)),
                    _ => most.blocks.min(room),
                };
                // Translation finds buffered blocks further on.
                let id = self.back.ops_mut().take(Op {
                    tag,
                    count: count as u16,
                    index,
                    lpn: lpn.0,
                    ..Op::new(Job::HostRead, Ppn(0))
                });
                let slot = self.front.slot_mut(tag.tag);
                slot.is_cut |= is_cut;
                slot.in_flight += if is_cut { 0 } else { count };
                if is_on_host {
                    self.fetch_from_host(now, id);
                } else {
                    // How many blocks of a cut run wait is not known yet.
                    self.back.stats().map_misses += if is_cut { 0 } else { u64::from(count) };
                    self.ftl.map_mut().wait_for(now, id, page, state, &mut self.back);
                }
                if is_cut { 0 } else { count }
            }
        }
    }

    /// Serves the first run of blocks that the table of changes places together, the first of them as `mapping` says;
    /// returns its length.
    fn serve_recent(&mut self, now: Ns, left: Run, mapping: Mapping, extra: Ns) -> u32 {
        // The blocks behind may be clean, and then have to be looked up.
        let n = self.run_length(left.at_most(u32::from(u16::MAX)), mapping, |lpn| self.ftl.map().known(lpn));
        if mapping != Mapping::Unmapped {
            self.back.stats().recent_hits += u64::from(n);
        }
        self.serve(now, left.at_most(n), mapping, extra);
        n
    }

    /// Serves blocks that a run of the map places, if one does; returns how many.
    #[inline(never)]
    fn serve_run(&mut self, now: Ns, left: Run, extra: Ns) -> Option<u32> {
        let (first, blocks) = self.ftl.map_mut().in_run(left.lpn)?;
        let place = |lpn: Lpn| {
            let by_run = Mapping::Flash(Ppn(first.0 + (lpn.0 - left.lpn.0)));
            self.ftl.map().known(lpn).or(Some(by_run))
        };
        let n = self.run_length(left.at_most(blocks), Mapping::Flash(first), place);
        self.back.stats().map_hits += u64::from(n);
        self.back.stats().run_hits += u64::from(n);
        self.serve(now, left.at_most(n), Mapping::Flash(first), extra);
        Some(n)
    }

    /// A map page has been loaded into SRAM: its waiters continue, in order of arrival.
    #[inline(never)]
    pub(crate) fn map_loaded(&mut self, now: Ns, id: OpId) {
        let load = self.back.end(id);
        let paid = self.ftl.map_mut().loaded(&load);
        self.copy_to_host(now, paid);
        let reads_ahead = self.config.map_read_ahead > 0 && !self.ftl.map().is_ahead(paid.page());
        let mut waiting = self.ftl.map_mut().take_waiters(load.frame, &mut self.back);
        while waiting != NO_OP {
            let op = self.back.end(waiting);
            waiting = op.next;
            self.translate_all(now, &op, paid);
        }
        if reads_ahead {
            let (host_map, most) = (&self.host_map, self.config.map_read_ahead);
            let is_held = |page| host_map.held(page).is_some();
            self.ftl.map_mut().load_ahead(now, paid.page(), most, is_held, &mut self.back);
        }
        for _ in 0..self.ftl.map().stalled() {
            let id = self.ftl.map_mut().next_stalled().expect("counted");
            self.look_up_again(now, id);
        }
    }

    /// An operation whose map page it could not wait for until now looks it up.
    pub(crate) fn look_up_again(&mut self, now: Ns, id: OpId) {
        let op = *self.back.ops().get(id);
        let page = self.ftl.map().page_of(Lpn(op.lpn));
        match self.ftl.map_mut().look_up(page) {
            FrameState::Present(paid) => {
                self.back.ops_mut().free(id);
                self.translate_all(now, &op, paid);
            }
            state => self.ftl.map_mut().wait_for(now, id, page, state, &mut self.back),
        }
    }

    /// Translates and reads the blocks of a waiting operation, whose map page is now in SRAM. If the operation was
    /// cut at the request's limit, its last flash page is read as far as the request goes.
    pub(crate) fn translate_all(&mut self, now: Ns, op: &Op, paid: Paid) {
        if !self.front.is_alive(op.tag) {
            return;
        }
        self.ftl.map_mut().count_lookups(op.count.into());
        let cut = self.end_wait(op);
        let behind = cut.unwrap_or(0);
        let mut left = Run { blocks: u32::from(op.count) + behind, ..Run::of(op) };
        while left.blocks > behind && self.front.slot(op.tag.tag).in_flight < OPS_PER_REQUEST {
            if self.ftl.map().keeps_runs() {
                self.ftl.map_mut().enter_run(paid, left.lpn);
            }
            left = left.behind(self.translate_run(now, left, paid, Ns::ZERO));
        }
        if cut.is_some() {
            let (served, waited) = (left.index - op.index, u32::from(op.count));
            self.back.stats().map_misses += u64::from(served.min(waited));
            self.back.stats().map_hits += u64::from(served.saturating_sub(waited));
        }
        self.read_on(now, left);
    }

    /// Map entries for `op` are in SRAM. If it was cut at the request's limit, returns how many further blocks of the
    /// request the same map page covers.
    pub(crate) fn end_wait(&mut self, op: &Op) -> Option<u32> {
        let count = u32::from(op.count);
        let slot = self.front.slot_mut(op.tag.tag);
        if slot.issued > op.index {
            slot.in_flight -= count;
            return None;
        }
        slot.is_cut = false;
        let to_request_end = slot.blocks - op.index;
        let to_page_end = self.ftl.map().page_entries() - op.lpn % self.ftl.map().page_entries();
        Some(to_request_end.min(to_page_end) - count)
    }

    /// Continues a read behind blocks that have waited; `left` is what was cut off.
    pub(crate) fn read_on(&mut self, now: Ns, left: Run) {
        let slot = self.front.slot_mut(left.tag.tag);
        slot.issued = slot.issued.max(left.index);
        if slot.issued < slot.blocks {
            self.issue_reads(now, left.tag.tag, Ns::ZERO);
        }
    }

    /// Serves the first contiguous run of blocks, whose map page is in SRAM; returns its length.
    #[inline]
    fn translate_run(&mut self, now: Ns, most: Run, paid: Paid, extra: Ns) -> u32 {
        let first = self.ftl.map().translate(paid, most.lpn);
        let n = self.run_length(most, first, |lpn| Some(self.ftl.map().translate(paid, lpn)));
        self.serve(now, most.at_most(n), first, extra);
        n
    }

    /// How many blocks of `most` one operation serves. The first lies at `first`; `place` gives the others.
    #[inline(always)]
    pub(crate) fn run_length(&self, most: Run, first: Mapping, place: impl Fn(Lpn) -> Option<Mapping>) -> u32 {
        if most.blocks == 1 {
            return 1;
        }
        let blocks = match first {
            Mapping::Flash(ppn) => most.blocks.min(self.ftl.slices_per_read_from(ppn)),
            _ => most.blocks,
        };
        let mut n = 1;
        while n < blocks {
            let goes_on = match (first, place(most.lpn + n)) {
                (Mapping::Flash(ppn), Some(Mapping::Flash(next))) => next.0 == ppn.0 + n,
                (Mapping::Buffered(_), Some(Mapping::Buffered(_))) => true,
                (Mapping::Unmapped, Some(Mapping::Unmapped)) => true,
                _ => false,
            };
            if !goes_on {
                break;
            }
            n += 1;
        }
        n
    }

    /// Serves a run of blocks with one operation; the first block lies at `first`.
    #[inline(always)]
    pub(crate) fn serve(&mut self, now: Ns, run: Run, first: Mapping, extra: Ns) {
        match first {
            Mapping::Flash(ppn) => self.begin_translated_read(now, run, ppn, extra),
            Mapping::Buffered(_) => drop(self.serve_buffered(now, run, extra)),
            Mapping::Unmapped => self.serve_zeros(now, run, extra),
        }
    }

    /// [`UfsDevice::begin_flash_read`] of blocks whose address came from the map.
    #[inline(always)]
    fn begin_translated_read(&mut self, now: Ns, run: Run, ppn: Ppn, extra: Ns) {
        self.note_missed(now, run);
        self.begin_flash_read(now, run, ppn, extra);
    }

    #[inline(always)]
    pub(crate) fn begin_flash_read(&mut self, now: Ns, run: Run, ppn: Ppn, extra: Ns) {
        let Run { tag, index, lpn, blocks } = run;
        let op = Op { tag, count: blocks as u16, index, lpn: lpn.0, ..Op::new(Job::HostRead, ppn) };
        let id = self.back.ops_mut().take(op);
        self.front.slot_mut(tag.tag).in_flight += 1;
        self.back.stats().data_reads += 1;
        if !self.reads_are_plain {
            return self.begin_other_read(now, extra, id);
        }
        self.back.begin_read::<true>(now, extra, id, &op);
    }

    /// Begins a read of data whose superblock counts, or whose planes may read together.
    #[inline(never)]
    pub(crate) fn begin_other_read(&mut self, now: Ns, extra: Ns, id: OpId) {
        let mut op = *self.back.ops().get(id);
        if self.looks_at_superblocks {
            op.cells = self.look_at_superblock(now, op.ppn);
            self.back.ops_mut().get_mut(id).cells = op.cells;
        }
        self.back.begin_read::<false>(now, extra, id, &op);
    }

    /// Counts a read of the superblock of `ppn`; returns its cell mode.
    fn look_at_superblock(&mut self, now: Ns, ppn: Ppn) -> CellMode {
        let cells = self.ftl.note_read(now, ppn, &mut self.back);
        self.settle(now);
        cells
    }

    /// A page of data has been read from flash.
    #[inline(always)]
    pub(crate) fn read_done(&mut self, now: Ns, done: Done) {
        let op = self.back.end(done.op);
        if !self.front.is_alive(op.tag) {
            return;
        }
        if M::ACTIVE {
            for i in 0..u32::from(op.count) {
                self.back.emit(MediaOp::ReadFlash { tag: op.tag.tag, index: op.index + i, ppn: Ppn(op.ppn.0 + i) });
            }
        }
        let slot = self.front.slot_mut(op.tag.tag);
        slot.in_flight -= 1;
        if slot.issued < slot.blocks {
            self.issue_reads(now, op.tag.tag, Ns::ZERO);
        }
        self.blocks_ready(done.at, op.tag.tag, op.count);
    }

    /// Serves the first run of buffered blocks without flash; returns its length. The data is read now; only the
    /// firmware's time passes.
    pub(crate) fn serve_buffered(&mut self, now: Ns, most: Run, extra: Ns) -> u32 {
        let mut n = 0;
        while n < most.blocks.min(u32::from(u16::MAX))
            && let Some(Mapping::Buffered(slot)) = self.ftl.map().known(most.lpn + n)
        {
            self.back.emit(MediaOp::ReadBuffer { tag: most.tag.tag, index: most.index + n, slot });
            n += 1;
        }
        self.back.stats().buffer_hits += u64::from(n);
        self.note_missed(now, most.at_most(n));
        let cost = self.back.cpu().timing().buffer_read;
        self.served_from_sram(now, most.at_most(n), cost + extra);
        n
    }

    /// Serves blocks that are not mapped.
    fn serve_zeros(&mut self, now: Ns, run: Run, extra: Ns) {
        for index in run.index..run.index + run.blocks {
            self.back.emit(MediaOp::ReadZeros { tag: run.tag.tag, index });
        }
        self.back.stats().unmapped_reads += u64::from(run.blocks);
        let timing = self.back.cpu().timing();
        let cost = timing.unmapped_read.unwrap_or(timing.buffer_read);
        self.served_from_sram(now, run, cost + extra);
    }

    pub(super) fn served_from_sram(&mut self, now: Ns, run: Run, cost: Ns) {
        self.back.work(now, cost, Work::Served { tag: run.tag, count: run.blocks as u16 });
    }
}
