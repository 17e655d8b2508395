// SPDX-License-Identifier: MIT OR Apache-2.0
//! The exchange with host memory, which holds copies of map pages: the transfers over the link, and how fetched
//! entries are used.

use crate::back::{Hardware, MediaMode, Op, Probe, Resource, StageOf, Work};
use crate::config::{DeviceConfig, HostMap, MAP_ENTRY_BYTES, Protocol};
use crate::device::{OPS_PER_REQUEST, Run, UfsDevice};
use crate::ftl::{Mapping, Paid};
use crate::host_map::{Ask, Coming, Held, Next};
use crate::ids::Lpn;
use readpath_flash::{DieSched, OpId, Ppn};
use readpath_kit::Ns;

/// Data of a packet of PCI Express, as root ports of desktop and phone chips set it (Max_Payload_Size).
const PACKET_BYTES: usize = 256;

/// The most blocks of one fetch of entries: those of a request's operations, and all that one array operation reads.
pub(crate) fn blocks_per_fetch(config: &DeviceConfig) -> u32 {
    OPS_PER_REQUEST.max(config.geometry.slices_per_read(config.flash.plane_reads))
}

impl<S: DieSched, M: MediaMode, P: Probe> UfsDevice<S, M, P> {
    /// Announces a request of the host, which arrives at the link after a delay, between answers from host memory.
    #[cold]
    pub(crate) fn announce(&mut self, coming: Coming) {
        self.host_map.announce(coming);
        self.find_rare();
    }

    /// Computes the deadline of rare events again.
    pub(crate) fn find_rare(&mut self) {
        self.rare = self.ftl.background().min(self.host_map.next_deadline()).min(self.back.engine().next());
        self.find_soon();
    }

    /// Handles a rare event that is due.
    #[inline(never)]
    pub(crate) fn rare_due(&mut self, now: Ns) {
        if self.back.engine().next() == now {
            self.engine_done(now);
            return self.find_rare();
        }
        match self.host_map.take(now) {
            Some(Next::Request(coming)) => self.request_comes(now, coming),
            Some(Next::Ready(ask)) => self.answer_comes(now, ask),
            Some(Next::Answered(ask)) => self.answered(now, ask),
            None => {
                let busy = self.front.is_busy();
                self.ftl.background_due(now, busy, &mut self.back);
                self.settle(now);
            }
        }
        self.find_rare();
    }

    fn request_comes(&mut self, now: Ns, coming: Coming) {
        let Coming { tag, span, .. } = coming;
        let start = self.front.down_from(now);
        let end = start + span;
        self.front.set_down_free(end);
        if P::ACTIVE {
            self.back.probe_mut().stage(StageOf::Request(tag.tag), Resource::LinkDown, start, end);
        }
        self.will_arrive(end, tag);
    }

    /// Fetches the entries of a read whose map page is held in host memory.
    #[inline(never)]
    pub(crate) fn fetch_from_host(&mut self, now: Ns, id: OpId) {
        let cost = self.host_map.host().map_or(Ns::ZERO, |host| host.firmware);
        self.back.work(now, cost, Work::AskHost(id));
    }

    /// The firmware has prepared a fetch for the link.
    pub(crate) fn ask_host(&mut self, now: Ns, id: OpId) {
        self.host_map.queue(Ask::Fetch(id));
        self.send_waiting(now);
    }

    /// Writes map page `page` to host memory, if there is any. A new page may replace another.
    #[inline]
    pub(crate) fn copy_to_host(&mut self, now: Ns, page: Paid) {
        if self.host_map.is_there() {
            self.write_copy(now, page);
            self.back.stats().host_map_fills += 1;
        }
    }

    /// A map page has changed in flash.
    #[inline]
    pub(crate) fn renew_copy(&mut self, now: Ns, page: Paid) {
        if self.host_map.wants_renewal(page.page()) {
            self.write_copy(now, page);
            self.back.stats().host_map_updates += 1;
        }
    }

    #[inline(never)]
    fn write_copy(&mut self, now: Ns, paid: Paid) {
        self.ftl.map_mut().will_be_read(paid.page());
        let ftl = &self.ftl;
        let blocks = self.config.logical_blocks() as u32;
        let place = |lpn: Lpn| if lpn.0 < blocks { ftl.map().translate_in_flash(paid, lpn).flash() } else { None };
        if let Some(cost) = self.host_map.write(paid.page(), place) {
            self.back.work(now, cost, Work::WriteHost);
        }
    }

    /// The firmware has prepared a page for the link to host memory.
    pub(crate) fn write_host(&mut self, now: Ns) {
        let Some(host) = self.host_map.host() else { return };
        match host.protocol {
            Protocol::Hmb => drop(self.send_page(now, &host)),
            Protocol::Ume => {
                self.host_map.queue(Ask::Write);
                self.send_waiting(now);
            }
        }
    }

    /// Sends a page up the link; returns when it arrives.
    fn send_page(&mut self, now: Ns, host: &HostMap) -> Ns {
        let bytes = self.host_map.page_bytes();
        self.back.stats().host_map_bytes_written += bytes;
        let span = host.request + self.front.link().bytes(bytes as usize);
        self.map_up(now, span)
    }

    /// Reserves the link to the host for the map.
    fn map_up(&mut self, now: Ns, span: Ns) -> Ns {
        self.back.stats().host_map_link_up_ns += span.0;
        self.front.reserve_up(now, span).1
    }

    /// When something small that is ready at `now` has crossed the link at the latest. PCI Express sends data in
    /// packets, between which requests and answers go, so that these wait for a packet at most. What they take is taken
    /// from the data behind them. A message of UFS waits for the data before it.
    fn among_packets(&self, now: Ns, span: Ns, host: &HostMap) -> Ns {
        match host.protocol {
            Protocol::Hmb => now + self.front.link().bytes(PACKET_BYTES) + span,
            Protocol::Ume => Ns::NEVER,
        }
    }

    /// Sends the waiting requests that may be sent now.
    fn send_waiting(&mut self, now: Ns) {
        let Some(host) = self.host_map.host() else { return };
        while let Some(ask) = self.host_map.next_to_ask() {
            let at = match ask {
                Ask::Write => self.send_page(now, &host),
                Ask::Fetch(id) => {
                    let Some(at) = self.send_fetch(now, id, &host) else { continue };
                    at
                }
            };
            self.host_map.asked(at, ask);
        }
        self.find_rare();
    }

    /// Sends a fetch up the link; returns when it arrives. `None` if the fetch is no longer needed.
    fn send_fetch(&mut self, now: Ns, id: OpId, host: &HostMap) -> Option<Ns> {
        let op = *self.back.ops().get(id);
        if !self.front.is_alive(op.tag) {
            self.back.ops_mut().free(id);
            return None;
        }
        let Some(held) = self.host_map.held(self.ftl.map().page_of(Lpn(op.lpn))) else {
            self.look_in_device(now, id);
            return None;
        };
        let op = self.back.ops_mut().get_mut(id);
        // The frame and the copy that the fetch reads.
        (op.frame, op.ppn) = (held.frame, Ppn(held.copy));
        let tag = op.tag;
        self.back.stats().host_map_fetches += 1;
        let end = self.map_up(now, host.request).min(self.among_packets(now, host.request, host));
        if P::ACTIVE {
            let start = end.saturating_sub(host.request);
            self.back.probe_mut().stage(StageOf::Request(tag.tag), Resource::LinkUp, start, end);
        }
        Some(end)
    }

    /// Blocks from `lpn` on whose entries one fetch brings: [`blocks_per_fetch`], rounded up to a whole line.
    pub(crate) fn fetched_at_once(&self, lpn: Lpn) -> u32 {
        let entries = self.host_map.host().map_or(1, |host| host.line_bytes / MAP_ENTRY_BYTES);
        (lpn.0 + blocks_per_fetch(&self.config)).next_multiple_of(entries) - lpn.0
    }

    /// Lines that hold the entries of `op`.
    fn lines_of(&self, op: &Op, host: &HostMap) -> u32 {
        let entries = host.line_bytes / MAP_ENTRY_BYTES;
        (op.lpn + u32::from(op.count) - 1) / entries - op.lpn / entries + 1
    }

    /// Host memory has an answer ready for the link.
    fn answer_comes(&mut self, now: Ns, ask: Ask) {
        let Some(host) = self.host_map.host() else { return };
        let (bytes, of) = match ask {
            Ask::Fetch(id) => {
                let op = *self.back.ops().get(id);
                (self.lines_of(&op, &host) * host.stored_line_bytes(), Some(StageOf::Request(op.tag.tag)))
            }
            Ask::Write => (0, None),
        };
        let span = host.response + self.front.link().bytes(bytes as usize);
        let free = self.front.down_from(now) + span;
        self.front.set_down_free(free);
        let end = self.host_map.answer_at(free.min(self.among_packets(now, span, &host)), ask);
        self.back.stats().host_map_bytes_read += u64::from(bytes);
        self.back.stats().host_map_link_down_ns += span.0;
        if let Some(of) = of
            && P::ACTIVE
        {
            self.back.probe_mut().stage(of, Resource::LinkDown, end.saturating_sub(span), end);
        }
    }

    /// An answer has arrived in the device.
    fn answered(&mut self, now: Ns, ask: Ask) {
        self.host_map.answered();
        if let Ask::Fetch(id) = ask {
            self.fetched(now, id);
        }
        self.send_waiting(now);
        if self.front.has_starved() {
            self.feed_starved(now);
        }
    }

    /// The lines with the entries of an operation have arrived in the device.
    fn fetched(&mut self, now: Ns, id: OpId) {
        let op = *self.back.ops().get(id);
        if !self.front.is_alive(op.tag) {
            return self.back.ops_mut().free(id);
        }
        let held = Held { frame: op.frame, copy: op.ppn.0 };
        let page = self.ftl.map().page_of(Lpn(op.lpn));
        if !self.host_map.still_holds(held) {
            // The copy was rewritten, dropped or withdrawn meanwhile: the fetched bytes may be neither old nor new.
            self.back.stats().host_map_stale += 1;
            return match self.host_map.touch(page) {
                true => self.fetch_from_host(now, id),
                false => self.look_in_device(now, id),
            };
        }
        let lines = self.host_map.host().map_or(0, |host| self.lines_of(&op, &host));
        let cost = self.host_map.check_cost(lines);
        if !self.host_map.is_sound(held, Lpn(op.lpn), u32::from(op.count), self.array_slices()) {
            self.back.stats().host_map_bad += 1;
            self.back.cpu_mut().occupy(now, cost);
            self.host_map.drop_page(page);
            return self.look_in_device(now, id);
        }
        self.back.ops_mut().free(id);
        self.translate_copied(now, &op, held, cost);
    }

    /// An operation whose page is no longer on the host looks in the map cache, then in flash.
    fn look_in_device(&mut self, now: Ns, id: OpId) {
        let op = self.back.ops().get(id);
        if self.front.slot(op.tag.tag).issued > op.index {
            let count = u64::from(op.count);
            self.back.stats().map_misses += count;
        }
        self.look_up_again(now, id);
    }

    /// Reads the blocks of an operation where SRAM, or else the copy, says. Blocks beyond the request's limit of
    /// operations are fetched again later. So is the beginning of a flash page that extends beyond the fetched
    /// entries, so that this page is read once.
    fn translate_copied(&mut self, now: Ns, op: &Op, held: Held, mut extra: Ns) {
        let behind = self.end_wait(op).unwrap_or(0);
        let mut left = Run::of(op);
        while left.blocks > 0 && self.front.slot(op.tag.tag).in_flight < OPS_PER_REQUEST {
            let first = self.copied(held, left.lpn);
            let n = self.run_length(left, first, |lpn| Some(self.copied(held, lpn)));
            if let Mapping::Flash(ppn) = first
                && n == left.blocks
                && n < self.ftl.slices_per_read_from(ppn)
                && behind > 0
                && left.index > op.index
            {
                break;
            }
            self.serve(now, left.at_most(n), first, extra);
            extra = Ns::ZERO;
            left = left.behind(n);
        }
        self.back.stats().host_map_hits += u64::from(left.index - op.index);
        self.read_on(now, left);
    }

    fn copied(&self, held: Held, lpn: Lpn) -> Mapping {
        // Where the contents of copies are not kept, the map stands for them: a valid copy equals its page.
        let in_copy = || match self.host_map.place(held, lpn) {
            Some(place) => place.map_or(Mapping::Unmapped, Mapping::Flash),
            None => self.ftl.map().translate_fetched(held, lpn),
        };
        self.ftl.map().known(lpn).unwrap_or_else(in_copy)
    }

    /// Bytes of host memory that the device uses.
    pub fn host_map_bytes(&self) -> u64 {
        self.host_map.given()
    }

    /// The host grants `bytes` of its memory, before it sends any request. The device takes at most what it would
    /// like, which is the default. NVMe: Set Features, Host Memory Buffer, without Memory Return.
    pub fn give_host_memory(&mut self, bytes: u64) {
        self.host_map.give(&self.config, bytes);
    }

    /// The host withdraws its memory until it returns it. Answers in flight are still accepted; waiting fetches read
    /// flash instead. NVMe: Set Features with Enable Host Memory cleared, as Linux does before it suspends.
    pub fn take_host_memory(&mut self) {
        self.host_map.take_away();
    }

    /// The host returns its memory with its contents. NVMe: Memory Return (MR).
    pub fn return_host_memory(&mut self) {
        self.host_map.give_back();
    }

    /// Simulates a host fault that alters the copies of map pages: for each logical page held, `change` gets the page
    /// and its slice and returns another slice. Has an effect only on a device whose data moves, because only that
    /// keeps the contents of copies.
    pub fn tamper_with_host_map(&mut self, change: impl FnMut(u32, u32) -> u32) {
        self.host_map.tamper(change);
    }
}
