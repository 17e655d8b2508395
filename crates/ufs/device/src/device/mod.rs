// SPDX-License-Identifier: MIT OR Apache-2.0
//! The device as a whole: its parts, time, and the effects of one part on another. The modules of this folder hold no
//! state; each serves one kind of request.

mod alone;
mod bad_entries;
mod control;
mod entry_engine;
mod faults;
mod flash;
mod getters;
mod host_map;
mod hpb_read;
mod maintain;
mod power;
mod prototype;
mod query;
mod read;
mod reset;
mod rpmb;
mod run;
mod together;
mod write;
mod zones;

use run::{OPS_PER_REQUEST, Run, residual};
use together::Together;

use crate::back::{Back, Hardware, MediaMode, MediaOp, Probe, Resource, StageOf, Work};
use crate::config::{ConfigError, DeviceConfig, EntryConfig, MapMemory};
use crate::front::{Delays, Front, Kind};
use crate::ftl::Ftl;
use crate::host_map::{Coming, HostMemory};
use crate::hpb::Hpb;
use crate::ids::{Lpn, TagRef};
use crate::rpmb::Rpmb;
use readpath_flash::{DieSched, PlaneReads};
use readpath_kit::Ns;
use readpath_proto::cdb::opcode;
use readpath_proto::rpmb::SecurityProtocol;
use readpath_proto::typed::{
    Cdb, Command, FLAGS_PROTECT, Reply, ReplyBody, Request, RequestBody, Response, Sense, Status,
};
use readpath_proto::upiu::ehs_bytes;
use std::sync::Arc;

/// A UFS device. `S` schedules its dies, `M` says whether data moves, `P` observes.
///
/// *Parts.* `back` (firmware core, dies), `ftl`, `hpb`, `host_map`, `rpmb` and `front` depend only on earlier parts.
/// Flash translation queues its effects; `settle` applies them after every call of it, before other work begins.
///
/// *Order.* The driver of the device takes the earliest of [`UfsDevice::next_deadline`] and its own events, calls
/// [`UfsDevice::advance`], then [`UfsDevice::poll_media`] until `None`, then [`UfsDevice::take_reply`] until false,
/// and only then submits further requests. Inside, simultaneous events are handled in the order flash (as its
/// scheduler reports it), firmware core, the engine that checks HPB entries, arriving commands, host memory's answers
/// and the requests between them, idle time; events of one kind in the order in which they were begun.
pub struct UfsDevice<S: DieSched, M: MediaMode, P: Probe> {
    pub(crate) config: Arc<DeviceConfig>,
    pub(crate) front: Front,
    pub(crate) ftl: Ftl,
    pub(crate) hpb: Hpb,
    pub(crate) host_map: HostMemory,
    pub(crate) rpmb: Rpmb,
    pub(crate) back: Back<S, M, P>,
    /// Deadline of rare events: idle time, host memory, the engine's work.
    rare: Ns,
    /// Time of a lookup in the map cache: that of DRAM, if the map is there.
    pub(crate) map_access: Ns,
    /// Cost of an HPB READ on the firmware above that of a READ.
    pub(crate) hpb_read_extra: Ns,
    /// Cost of a READ on the firmware above that of its flash operations, and that of an HPB READ.
    pub(crate) read_extra: Ns,
    pub(crate) hpb_command: Ns,
    /// Data is sent at its own time, not ahead: the link also carries traffic to and from host memory.
    reports_at_end: bool,
    /// Set if reads are counted by superblock, or superblocks may be in SLC mode.
    pub(crate) looks_at_superblocks: bool,
    /// Set if a read of data neither looks at its superblock nor may take several planes that read apart.
    pub(crate) reads_are_plain: bool,
    /// Set if nothing in the configuration prevents a read from being served alone, or together with others.
    may_read_alone: bool,
    together: Box<Together>,
}

impl<S: DieSched, M: MediaMode, P: Probe> UfsDevice<S, M, P> {
    /// A device fresh from the factory: nothing is mapped, everything but the map's superblocks is erased.
    pub fn new(config: &DeviceConfig, delays: Delays, probe: P) -> Result<Self, ConfigError> {
        config.check()?;
        let config = Arc::new(config.clone());
        let entries = config.hpb.map_or(EntryConfig::DEFAULT, |hpb| hpb.entries);
        let front = Front::new(&config, delays);
        let hpb_read_extra = config.firmware.hpb_read_extra + entries.check_on_firmware();
        let looks_at_superblocks = config.ftl.read_disturb_limit > 0 || config.slc_cache.is_some();
        let reads_are_plain = !looks_at_superblocks && config.flash.plane_reads != PlaneReads::Both;
        Ok(UfsDevice {
            ftl: Ftl::new(config.clone()),
            hpb: Hpb::new(&config, front.bases().collect()),
            host_map: HostMemory::new(&config, M::ACTIVE),
            rpmb: Rpmb::default(),
            back: Back::new(&config, probe),
            front,
            rare: Ns::NEVER,
            map_access: match config.map_memory {
                Some(MapMemory::Dram { access }) => access,
                _ => Ns::ZERO,
            },
            hpb_read_extra,
            read_extra: config.firmware.read_command,
            hpb_command: config.firmware.read_command + hpb_read_extra,
            reports_at_end: config.host_map().is_some(),
            looks_at_superblocks,
            may_read_alone: alone::is_possible(&config),
            reads_are_plain,
            together: Together::new(),
            config,
        })
    }

    /// Submits a request, which leaves the host's software at `now`, not before any earlier request. `data_out` is
    /// the parameter list of UNMAP, WRITE BUFFER or HPB WRITE BUFFER, the frames of SECURITY PROTOCOL OUT, the entries
    /// in the extra header segment of HPB READ, or the descriptor of WRITE DESCRIPTOR; the executor of the media
    /// operations moves the data of writes.
    ///
    /// A request whose tag is in use or out of range is dropped; a controller never sends one.
    pub fn submit(&mut self, now: Ns, request: &Request, data_out: &[u8]) {
        let tag = request.tag;
        if !self.front.is_free(tag) {
            debug_assert!(false, "tag {tag} is in use or out of range");
            return;
        }
        if P::ACTIVE {
            self.back.probe_mut().request(now, request, data_out);
        }
        let link = *self.front.link();
        let mut span = link.request;
        // A write that is refused for its address carries no data.
        let data_blocks = match &request.body {
            RequestBody::Command(Command { cdb: Cdb::Write { lba, blocks, .. }, .. })
                if self.front.has_blocks(request.lun, *lba, *blocks) =>
            {
                *blocks
            }
            _ => 0,
        };
        let slot = self.front.slot_mut(tag);
        slot.begin(request.lun);
        let mut fast = |kind, lba, blocks, flags, expected_bytes| {
            slot.kind = kind;
            slot.lba = lba;
            slot.blocks = blocks;
            slot.flags = flags;
            slot.expected_bytes = expected_bytes;
        };
        match &request.body {
            RequestBody::Command(Command { expected_bytes, cdb: Cdb::Read { lba, blocks, flags, .. } })
                if flags & FLAGS_PROTECT == 0 =>
            {
                fast(Kind::Read, *lba, *blocks, *flags, *expected_bytes);
            }
            RequestBody::Command(Command {
                expected_bytes,
                cdb: Cdb::HpbRead { lba, blocks, entry, flags, read_id },
            }) if self.hpb.standard(request.lun).is_some() && flags & FLAGS_PROTECT == 0 => {
                fast(Kind::HpbRead, u64::from(*lba), u32::from(*blocks), *flags, *expected_bytes);
                slot.hpb.entry = *entry;
                slot.hpb.read_id = *read_id;
                if !data_out.is_empty() {
                    span += link.bytes(ehs_bytes(data_out.len()));
                    self.keep_listed(tag, data_out);
                }
            }
            RequestBody::Command(Command { expected_bytes, cdb: Cdb::Write { lba, blocks, flags, .. } })
                if flags & FLAGS_PROTECT == 0 =>
            {
                fast(Kind::Write, *lba, *blocks, *flags, *expected_bytes);
                span += Ns(link.block.0 * u64::from(data_blocks));
            }
            body => {
                slot.kind = Kind::Other;
                slot.expected_bytes = if let RequestBody::Command(c) = body { c.expected_bytes } else { 0 };
                slot.body = *body;
                slot.data_in.clear();
                slot.data_out.clear();
                slot.data_out.extend_from_slice(data_out);
                if let RequestBody::Command(Command { cdb, .. }) = body
                    && (matches!(cdb, Cdb::HpbPreRequest { .. })
                        || SecurityProtocol::parse(cdb).is_some()
                        || matches!(cdb, Cdb::Other([opcode::WRITE_BUFFER, ..])))
                {
                    span += link.bytes(data_out.len());
                }
            }
        }
        if let Some(at) = self.link_down(now, tag, span) {
            self.arrive(at, tag);
        }
    }

    /// Sends a request down the link from `now` on for `span`. Returns its arrival time if no event can precede that;
    /// otherwise queues it and returns `None`.
    #[inline(always)]
    pub(crate) fn link_down(&mut self, now: Ns, tag: u8, span: Ns) -> Option<Ns> {
        let start = self.front.down_from(self.front.at_link(now));
        let at = start + span;
        self.back.cpu_mut().command_at(at);
        let alone = self.front.next_reply() == Ns::NEVER && at < self.back.next_event();
        if !alone && self.reports_at_end {
            let tag = self.front.tag_ref(tag);
            self.announce(Coming { at: self.front.at_link(now), tag, span });
            return None;
        }
        self.front.set_down_free(at);
        if P::ACTIVE {
            self.back.probe_mut().stage(StageOf::Request(tag), Resource::LinkDown, start, at);
        }
        if alone {
            // No other request can come between: later requests arrive later.
            return Some(at);
        }
        self.will_arrive(at, self.front.tag_ref(tag));
        None
    }

    /// Time of the next internal event or reply.
    #[inline(always)]
    pub fn next_deadline(&self) -> Ns {
        self.front.next_reply().min(self.back.next_event())
    }

    /// A command will arrive, after those queued before it.
    #[inline(always)]
    pub(crate) fn will_arrive(&mut self, at: Ns, tag: TagRef) {
        self.front.will_arrive(at, tag);
        self.back.cpu_mut().wake_at(at);
    }

    pub(crate) fn find_soon(&mut self) {
        let others = self.front.next_arrival().min(self.rare);
        self.back.cpu_mut().find_soon(others);
    }

    /// Handles internal events in order until a reply reaches the host or `limit` comes; returns that time. The host
    /// does not act before.
    #[inline(always)]
    pub fn advance_to_reply(&mut self, limit: Ns) -> Ns {
        loop {
            let reply = self.front.next_reply().min(limit);
            // An event at the time of a reply is handled first, as `advance` would.
            if !self.step(reply) {
                return reply;
            }
        }
    }

    /// Handles everything that is due at `now`. [`UfsDevice`] gives the order of simultaneous events.
    pub fn advance(&mut self, now: Ns) {
        while self.step(now) {}
    }

    /// Handles the next event if it is due at `now`; false if none is.
    #[inline(always)]
    fn step(&mut self, now: Ns) -> bool {
        let flash = self.back.next_flash();
        let at = flash.min(self.back.cpu().soon());
        if at > now || at == Ns::NEVER {
            return false;
        }
        if flash == at {
            // If another operation ends now, that is the next event.
            if let Some(done) = self.back.poll_flash(at) {
                self.flash_done(at, done);
            }
        } else {
            self.step_rest(at);
        }
        true
    }

    /// Handles an event of the firmware, an arrival or a rare event. The engine's completions come before arrivals.
    #[inline(never)]
    fn step_rest(&mut self, at: Ns) {
        if self.back.cpu().next() == at {
            let work = self.back.cpu_mut().take().expect("just seen");
            self.find_soon();
            self.firmware_done(at, work);
        } else if self.front.next_arrival() == at && self.back.engine().next() != at {
            let tag = self.front.take_arrival().expect("just seen");
            self.find_soon();
            if self.front.is_alive(tag) {
                self.arrive(at, tag.tag);
            }
        } else {
            self.rare_due(at);
        }
    }

    /// The next movement of data. Poll until `None` after every [`UfsDevice::advance`], before taking replies.
    #[inline]
    #[must_use]
    pub fn poll_media(&mut self) -> Option<MediaOp> {
        self.back.poll_media()
    }

    /// Takes the next reply that has reached the host by `now`; [`UfsDevice::reply`] then returns it, and
    /// [`UfsDevice::data_in`] its data until the tag is used again. Call until false.
    #[inline(always)]
    #[must_use]
    pub fn take_reply(&mut self, now: Ns) -> bool {
        let Some((at, tag)) = self.front.take_reply(now) else { return false };
        let wanted = self.front.target().query.exceptions_wanted();
        let event_alert = wanted != 0 && wanted & self.exceptions() != 0;
        // Most replies are equal; rewriting only the differing fields makes them cheap.
        let plain = self.front.slot(tag).outcome.is_none() && self.hpb.has_nothing_to_tell() && !event_alert;
        let was_plain = self.front.end(tag, plain);
        if !plain || !was_plain {
            let body = self.special_reply(now, tag, event_alert);
            self.front.set_reply(body);
        }
        if P::ACTIVE {
            self.back.probe_mut().reply(at, self.front.reply(), &self.front.slot(tag).data_in);
        }
        true
    }

    /// The reply that was taken last.
    #[inline]
    pub fn reply(&self) -> &Reply {
        self.front.reply()
    }

    /// [`UfsDevice::take_reply`] and a copy of the reply.
    #[must_use]
    pub fn poll_reply(&mut self, now: Ns) -> Option<Reply> {
        self.take_reply(now).then(|| *self.front.reply())
    }

    /// Builds the reply of `tag`, with notifications.
    #[inline(never)]
    fn special_reply(&mut self, now: Ns, tag: u8, event_alert: bool) -> ReplyBody {
        self.end_read_buffer(now, tag);
        let outcome = self.front.slot_mut(tag).outcome.take();
        let mut body = outcome.unwrap_or(ReplyBody::Response(Response::GOOD));
        if let ReplyBody::Response(response) = &mut body {
            response.event_alert = event_alert;
            if response.status == Status::Good
                && let Some(n) = self.hpb.next_notification(self.back.stats())
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
        &self.front.slot(tag).data_in
    }

    /// Prefetches the memory that a read of `block` touches if the host has no entry for it.
    #[inline(always)]
    pub fn prefetch(&self, lun: u8, block: u32) {
        // Between zones with gaps it is the memory of another block, which changes nothing.
        self.ftl.map().prefetch(Lpn(self.front.base(lun).0.wrapping_add(block)));
    }

    /// Reserves the link to the host from `at` on for `span`; returns the end.
    #[inline(always)]
    pub(crate) fn link_up(&mut self, at: Ns, tag: u8, span: Ns) -> Ns {
        let (start, end) = self.front.reserve_up(at, span);
        if P::ACTIVE {
            self.back.probe_mut().stage(StageOf::Request(tag), Resource::LinkUp, start, end);
        }
        end
    }

    /// The reply of `tag` is ready for the link at `at`.
    #[inline(always)]
    pub(crate) fn send_reply(&mut self, at: Ns, tag: u8) {
        let end = self.link_up(at, tag, self.front.link().response);
        self.front.will_reply(end, tag);
    }

    /// Ends a command with CHECK CONDITION.
    pub(crate) fn check(&mut self, at: Ns, tag: u8, sense: Sense) {
        let slot = self.front.slot_mut(tag);
        slot.outcome = Some(ReplyBody::Response(Response::check(sense, slot.expected_bytes)));
        slot.data_in.clear();
        self.send_reply(at, tag);
    }

    pub(crate) fn arrive(&mut self, now: Ns, tag: u8) {
        let slot = self.front.slot(tag);
        let ready = usize::from(slot.lun) < self.front.units() && self.front.target().is_ready(slot.lun);
        match slot.kind {
            Kind::Read if ready && self.front.is_zoned(slot.lun) => self.zoned_read(now, tag),
            Kind::Write if ready && self.front.is_zoned(slot.lun) => self.zoned_write(now, tag),
            Kind::Read | Kind::HpbRead if ready => self.read(now, tag),
            Kind::Write if ready => self.write(now, tag),
            _ => self.arrive_control(now, tag),
        }
    }

    fn arrive_control(&mut self, now: Ns, tag: u8) {
        let slot = self.front.slot(tag);
        let has_hpb = self.hpb.standard(slot.lun).is_some();
        if slot.kind == Kind::Other && has_hpb && self.front.target().is_ready(slot.lun) {
            self.pre_request(tag);
        } else if self.has_groups(slot.lun) && self.front.target().is_ready(slot.lun) && self.hinted_read(now, tag) {
            return;
        }
        self.back.work(now, self.back.cpu().timing().control, Work::Control(self.front.tag_ref(tag)));
    }

    fn firmware_done(&mut self, now: Ns, work: Work) {
        match work {
            Work::Flash(id) => self.back.start_flash(now, id),
            Work::AskHost(id) => self.ask_host(now, id),
            Work::WriteHost => self.write_host(now),
            Work::Served { tag, count } if self.front.is_alive(tag) => self.blocks_ready(now, tag.tag, count),
            Work::Accept(tag) if self.front.is_alive(tag) => self.accept(now, tag),
            Work::HandOut(tag) if self.front.is_alive(tag) => self.entries_found(now, tag.tag),
            Work::Trimmed(tag) => self.trimmed(now, tag),
            Work::Control(tag) if self.front.is_alive(tag) => self.control(now, tag.tag),
            _ => {}
        }
    }

    /// Blocks of a read are ready for the link at `at`, and with the last of them the reply.
    #[inline(always)]
    pub(crate) fn blocks_ready(&mut self, at: Ns, tag: u8, count: u16) {
        self.link_up(at, tag, Ns(self.front.link().block.0 * u64::from(count)));
        let slot = self.front.slot_mut(tag);
        slot.left -= u32::from(count);
        if slot.left == 0 {
            self.send_reply(at, tag);
        }
    }
}
