// SPDX-License-Identifier: MIT OR Apache-2.0
//! The device as a whole: who waits for what, and what follows when something is done. The ways of reads, writes and
//! everything else are in the modules beside this one.

mod account;
mod check;
mod control;
mod flash;
mod foreign;
mod host_map;
mod hpb_read;
mod power;
mod query;
mod read;
mod reset;
mod write;

pub(crate) use read::{OPS_PER_REQUEST, Run, residual};

use crate::back::{Back, Cpu, Dies, Engine, MediaMode, MediaOp, Probe, Resource, StageOf, Work};
use crate::config::{ConfigError, DeviceConfig};
use crate::device::control::Target;
use crate::ftl::Ftl;
use crate::host_map::{Coming, HostMemory, MapMemory};
use crate::hpb::{EntryConfig, Hpb};
use crate::ids::TagRef;
use crate::request::{Kind, Slot, Slots, TAGS};
use readpath_flash::DieSched;
use readpath_kit::{FrontQueue, Ns};
use readpath_proto::typed::{Cdb, Command, Reply, ReplyBody, Request, RequestBody, Response, Sense, Status};
use readpath_proto::upiu::ehs_bytes;
use std::collections::VecDeque;
use std::sync::Arc;

/// Constant delays between the host's software and the link: they hold nobody else up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Delays {
    /// From the host's submission to the link.
    pub to_link: Ns,
    /// From the link to the host's completion (interrupt, wake-up).
    pub from_link: Ns,
}

/// A UFS device. `S` schedules its dies, `M` says whether data moves, `P` observes.
pub struct UfsDevice<S: DieSched, M: MediaMode, P: Probe> {
    pub(crate) config: Arc<DeviceConfig>,
    delays: Delays,
    pub(crate) back: Back<S, M, P>,
    pub(crate) arrivals: FrontQueue<(Ns, TagRef)>,
    pub(crate) replies: FrontQueue<(Ns, TagRef)>,
    pub(crate) link_down_free: Ns,
    pub(crate) link_up_free: Ns,
    pub(crate) slots: Slots,
    pub(crate) bases: Vec<u32>,
    pub(crate) ftl: Ftl,
    /// What a look at a page in the map cache takes: time of DRAM, if it is there.
    pub(crate) map_access: Ns,
    pub(crate) host_map: HostMemory,
    /// Requests that go on when enough operations are free again.
    pub(crate) starved: VecDeque<TagRef>,
    /// The earliest of that, of what host memory is waited for and of what the engine has done.
    pub(crate) rare: Ns,
    /// What an HPB READ costs the firmware core more than a READ.
    pub(crate) hpb_read_extra: Ns,
    pub(crate) hpb: Hpb,
    pub(crate) target: Target,
    reply: Reply,
    /// `reply` says GOOD and nothing else.
    reply_is_plain: bool,
    /// The link is shared with what is on its way to and from host memory, so data comes to it when it comes, not earlier.
    pub(crate) reports_at_end: bool,
    /// Reads are counted by superblock, or there may be superblocks in SLC mode.
    pub(crate) looks_at_superblocks: bool,
}

impl<S: DieSched, M: MediaMode, P: Probe> UfsDevice<S, M, P> {
    /// A device fresh from the factory: nothing is mapped, everything but the map's superblocks is erased.
    pub fn new(config: &DeviceConfig, delays: Delays, probe: P) -> Result<Self, ConfigError> {
        config.check()?;
        let mut bases = Vec::with_capacity(config.lus.len());
        let mut next = 0;
        for lu in &config.lus {
            bases.push(next);
            next += lu.blocks;
        }
        let entries = config.hpb.map_or(EntryConfig::DEFAULT, |hpb| hpb.entries);
        let config = Arc::new(config.clone());
        Ok(UfsDevice {
            delays,
            back: Back::new(Cpu::new(config.firmware, Engine::new(&entries)), Dies::new(&config), probe),
            arrivals: FrontQueue::with_capacity(TAGS),
            replies: FrontQueue::with_capacity(TAGS),
            link_down_free: Ns::ZERO,
            link_up_free: Ns::ZERO,
            slots: Box::new(std::array::from_fn(|_| Slot::new())),
            ftl: Ftl::new(config.clone()),
            map_access: match config.map_memory {
                Some(MapMemory::Dram { access }) => access,
                _ => Ns::ZERO,
            },
            host_map: HostMemory::new(&config, M::ACTIVE),
            starved: VecDeque::new(),
            rare: Ns::NEVER,
            hpb_read_extra: config.firmware.hpb_read_extra + entries.check_on_firmware(),
            hpb: Hpb::new(&config, &bases),
            target: Target::new(&config),
            reply: Reply { lun: 0, tag: 0, body: ReplyBody::Response(Response::GOOD) },
            reply_is_plain: true,
            reports_at_end: config.host_map().is_some(),
            looks_at_superblocks: config.ftl.read_disturb_limit > 0 || config.write_booster.is_some(),
            bases,
            config,
        })
    }

    /// A request leaves the host's software at `now`, not earlier than any request before it. `data_out` is the
    /// parameter list of UNMAP or HPB WRITE BUFFER, the entries in the extra header segment of HPB READ, or the descriptor of
    /// WRITE DESCRIPTOR; the data of writes is moved by
    /// whoever executes the media operations.
    ///
    /// A request whose tag is in use or out of range is dropped, as a controller would never send it.
    pub fn submit(&mut self, now: Ns, request: &Request, data_out: &[u8]) {
        let tag = request.tag;
        let Some(slot) = self.slots.get_mut(usize::from(tag)).filter(|s| !s.active) else {
            debug_assert!(false, "tag {tag} is in use or out of range");
            return;
        };
        if P::ACTIVE {
            self.back.probe.request(now, request, data_out);
        }
        slot.begin(request.lun);
        let mut span = self.config.link.request;
        let mut fast = |kind, lba, blocks, flags, expected_bytes| {
            slot.kind = kind;
            slot.lba = lba;
            slot.blocks = blocks;
            slot.flags = flags;
            slot.expected_bytes = expected_bytes;
        };
        match &request.body {
            RequestBody::Command(Command { expected_bytes, cdb: Cdb::Read { lba, blocks, flags, .. } }) => {
                fast(Kind::Read, *lba, *blocks, *flags, *expected_bytes);
            }
            RequestBody::Command(Command {
                expected_bytes,
                cdb: Cdb::HpbRead { lba, blocks, entry, flags, read_id },
            }) if self.hpb.standard(request.lun).is_some() => {
                fast(Kind::HpbRead, u64::from(*lba), u32::from(*blocks), *flags, *expected_bytes);
                slot.entry = *entry;
                slot.read_id = *read_id;
                if !data_out.is_empty() {
                    span += self.config.link.bytes(ehs_bytes(data_out.len()));
                    self.keep_listed(tag, data_out);
                }
            }
            RequestBody::Command(Command { expected_bytes, cdb: Cdb::Write { lba, blocks, flags, .. } }) => {
                fast(Kind::Write, *lba, *blocks, *flags, *expected_bytes);
                span += Ns(self.config.link.block.0 * u64::from(*blocks));
            }
            body => {
                slot.kind = Kind::Other;
                slot.expected_bytes = if let RequestBody::Command(c) = body { c.expected_bytes } else { 0 };
                slot.body = *body;
                slot.data_in.clear();
                slot.data_out.clear();
                slot.data_out.extend_from_slice(data_out);
                if let RequestBody::Command(Command { cdb: Cdb::HpbPreRequest { .. }, .. }) = body {
                    span += self.config.link.bytes(data_out.len());
                }
            }
        }
        if let Some(at) = self.link_down(now, tag, span) {
            self.arrive(at, tag);
        }
    }

    /// Sends a request down the link from `now` on for `span`. It arrives at the time returned, at once, or is put into
    /// the line of those that will arrive.
    #[inline(always)]
    pub(crate) fn link_down(&mut self, now: Ns, tag: u8, span: Ns) -> Option<Ns> {
        let start = (now + self.delays.to_link).max(self.link_down_free);
        let at = start + span;
        self.back.cpu.command_at(at);
        let alone = self.replies.is_empty() && at < self.next_event();
        if !alone && self.reports_at_end {
            let tag = self.tag_ref(tag);
            self.announce(Coming { at: now + self.delays.to_link, tag, span });
            return None;
        }
        self.link_down_free = at;
        if P::ACTIVE {
            self.back.probe.stage(StageOf::Request(tag), Resource::LinkDown, start, at);
        }
        if alone {
            // Nothing can come between: later requests arrive later.
            return Some(at);
        }
        self.will_arrive(at, self.tag_ref(tag));
        None
    }

    /// When something happens next: internally, or a reply reaches the host.
    #[inline(always)]
    pub fn next_deadline(&self) -> Ns {
        let reply = self.replies.front().map_or(Ns::NEVER, |r| r.0);
        reply.min(self.next_event())
    }

    #[inline(always)]
    fn next_event(&self) -> Ns {
        self.back.next_event()
    }

    /// A command will arrive, after those that are on their way.
    #[inline(always)]
    pub(crate) fn will_arrive(&mut self, at: Ns, tag: TagRef) {
        self.arrivals.push_back((at, tag));
        self.back.cpu.wake_at(at);
    }

    #[inline]
    fn next_arrival(&self) -> Ns {
        self.arrivals.front().map_or(Ns::NEVER, |a| a.0)
    }

    pub(crate) fn find_soon(&mut self) {
        let others = self.next_arrival().min(self.rare);
        self.back.cpu.find_soon(others);
    }

    /// Handles internal events in order until a reply reaches the host or `limit` comes; returns that time. The host has
    /// no part in what happens before.
    #[inline(always)]
    pub fn advance_to_reply(&mut self, limit: Ns) -> Ns {
        loop {
            let reply = self.replies.front().map_or(Ns::NEVER, |r| r.0).min(limit);
            // An event at the time of a reply is handled first, as `advance` would.
            if !self.step(reply) {
                return reply;
            }
        }
    }

    /// Handles everything that is due at `now`. Simultaneous events are taken in the order flash, firmware, the
    /// engine that checks HPB entries, arrivals.
    pub fn advance(&mut self, now: Ns) {
        while self.step(now) {}
    }

    /// Handles what comes next if it is due at `now`; false if nothing is.
    #[inline(always)]
    fn step(&mut self, now: Ns) -> bool {
        let flash = self.back.dies.next_deadline();
        let at = flash.min(self.back.cpu.soon());
        if at > now || at == Ns::NEVER {
            return false;
        }
        if flash == at {
            // Should another operation end now, it is what comes next.
            if let Some(done) = self.back.dies.poll(at) {
                self.flash_done(at, done);
            }
        } else {
            self.step_rest(at);
        }
        true
    }

    /// An event of the firmware, an arrival or, if it is neither, something that seldom happens. What the engine has done
    /// comes before an arrival.
    #[inline(never)]
    fn step_rest(&mut self, at: Ns) {
        if self.back.cpu.next() == at {
            let work = self.back.cpu.take().expect("just seen");
            self.find_soon();
            self.firmware_done(at, work);
        } else if self.next_arrival() == at && self.back.cpu.engine.next() != at {
            let (_, tag) = self.arrivals.pop_front().expect("just seen");
            self.find_soon();
            if self.is_alive(tag) {
                self.arrive(at, tag.tag);
            }
        } else {
            self.rare_due(at);
        }
    }

    /// The next movement of data, in order. Poll until `None` after every [`UfsDevice::advance`], before replies.
    #[inline]
    #[must_use]
    pub fn poll_media(&mut self) -> Option<MediaOp> {
        self.back.poll_media()
    }

    /// Takes the next reply that has reached the host by `now`; [`UfsDevice::reply`] then is that reply, and
    /// [`UfsDevice::data_in`] its data until the tag is used again. Call until false.
    #[inline(always)]
    #[must_use]
    pub fn take_reply(&mut self, now: Ns) -> bool {
        loop {
            let Some(&(at, tag)) = self.replies.front() else { return false };
            if at > now {
                return false;
            }
            self.replies.pop_front();
            if !self.is_alive(tag) {
                continue;
            }
            let tag = tag.tag;
            let event_alert = self.target.event_alert();
            let slot = &mut self.slots[usize::from(tag)];
            slot.active = false;
            self.reply.lun = slot.lun;
            self.reply.tag = tag;
            // Most replies are the same; rewriting only what differs is what makes them cheap.
            let plain = slot.outcome.is_none() && self.hpb.has_nothing_to_tell() && !event_alert;
            if !plain || !self.reply_is_plain {
                self.reply.body = self.special_reply(now, tag, event_alert);
                self.reply_is_plain = plain;
            }
            if P::ACTIVE {
                self.back.probe.reply(at, &self.reply, &self.slots[usize::from(tag)].data_in);
            }
            return true;
        }
    }

    /// The reply that was taken last.
    #[inline]
    pub fn reply(&self) -> &Reply {
        &self.reply
    }

    /// [`UfsDevice::take_reply`] and a copy of the reply.
    #[must_use]
    pub fn poll_reply(&mut self, now: Ns) -> Option<Reply> {
        self.take_reply(now).then_some(self.reply)
    }

    /// The reply of `tag`, with what it has to tell.
    #[inline(never)]
    fn special_reply(&mut self, now: Ns, tag: u8, event_alert: bool) -> ReplyBody {
        self.end_read_buffer(now, tag);
        let outcome = self.slots[usize::from(tag)].outcome.take();
        let mut body = outcome.unwrap_or(ReplyBody::Response(Response::GOOD));
        if let ReplyBody::Response(response) = &mut body {
            response.event_alert = event_alert;
            if response.status == Status::Good
                && let Some(n) = self.hpb.next_notification(&mut self.back.stats)
            {
                response.hpb = Some(n);
            }
            if self.hpb.prototype().is_some() {
                self.tell_of_groups(now, tag, response);
            }
        }
        body
    }

    /// Data-in of the last command with `tag` that returned bytes other than blocks.
    pub fn data_in(&self, tag: u8) -> &[u8] {
        &self.slots[usize::from(tag)].data_in
    }

    /// Brings near what a read of `block` will touch if the host has no entry for it.
    #[inline]
    pub fn prefetch(&self, lun: u8, block: u32) {
        self.ftl.prefetch(self.bases[usize::from(lun)] + block);
    }

    #[inline(always)]
    pub(crate) fn is_alive(&self, tag: TagRef) -> bool {
        let slot = &self.slots[tag.index() % TAGS];
        slot.active && slot.life == tag.life
    }

    /// The present use of `tag`.
    #[inline(always)]
    pub(crate) fn tag_ref(&self, tag: u8) -> TagRef {
        TagRef { tag, life: self.slots[usize::from(tag)].life }
    }

    /// Reserves the link to the host from `at` on for `span`; returns the end.
    #[inline(always)]
    pub(crate) fn link_up(&mut self, at: Ns, tag: u8, span: Ns) -> Ns {
        let start = at.max(self.link_up_free);
        self.link_up_free = start + span;
        if P::ACTIVE {
            self.back.probe.stage(StageOf::Request(tag), Resource::LinkUp, start, self.link_up_free);
        }
        self.link_up_free
    }

    /// The reply of `tag` is ready for the link at `at`.
    #[inline(always)]
    pub(crate) fn send_reply(&mut self, at: Ns, tag: u8) {
        let end = self.link_up(at, tag, self.config.link.response);
        self.replies.push_back((end + self.delays.from_link, self.tag_ref(tag)));
    }

    /// Ends a command with CHECK CONDITION.
    pub(crate) fn check(&mut self, at: Ns, tag: u8, sense: Sense) {
        let slot = &mut self.slots[usize::from(tag)];
        slot.outcome = Some(ReplyBody::Response(Response::check(sense, slot.expected_bytes)));
        slot.data_in.clear();
        self.send_reply(at, tag);
    }

    pub(crate) fn arrive(&mut self, now: Ns, tag: u8) {
        let slot = &self.slots[usize::from(tag)];
        let ready = usize::from(slot.lun) < self.bases.len() && self.target.is_ready(slot.lun);
        match slot.kind {
            Kind::Read | Kind::HpbRead if ready => self.read(now, tag),
            Kind::Write if ready => self.write(now, tag),
            _ => self.arrive_control(now, tag),
        }
    }

    fn arrive_control(&mut self, now: Ns, tag: u8) {
        let slot = &self.slots[usize::from(tag)];
        let has_hpb = self.hpb.standard(slot.lun).is_some();
        if slot.kind == Kind::Other && has_hpb && self.target.is_ready(slot.lun) {
            self.pre_request(tag);
        } else if self.has_groups(slot.lun) && self.target.is_ready(slot.lun) && self.hinted_read(now, tag) {
            return;
        }
        self.back.work(now, self.back.cpu.timing().control, Work::Control(self.tag_ref(tag)));
    }

    fn firmware_done(&mut self, now: Ns, work: Work) {
        match work {
            Work::Flash(id) => self.back.dies.start(now, id),
            Work::AskHost(id) => self.ask_host(now, id),
            Work::WriteHost => self.write_host(now),
            Work::Served { tag, count } if self.is_alive(tag) => self.blocks_ready(now, tag.tag, count),
            Work::Accept(tag) if self.is_alive(tag) => self.accept(now, tag),
            Work::HandOut(tag) if self.is_alive(tag) => self.entries_found(now, tag.tag),
            Work::Trimmed(tag) if self.is_alive(tag) => self.send_reply(now, tag.tag),
            Work::Control(tag) if self.is_alive(tag) => self.control(now, tag.tag),
            _ => {}
        }
    }

    /// Blocks of a read are ready for the link at `at`, and with the last of them the reply.
    #[inline(always)]
    pub(crate) fn blocks_ready(&mut self, at: Ns, tag: u8, count: u16) {
        self.link_up(at, tag, Ns(self.config.link.block.0 * u64::from(count)));
        let slot = &mut self.slots[usize::from(tag)];
        slot.left -= u32::from(count);
        if slot.left == 0 {
            self.send_reply(at, tag);
        }
    }
}
