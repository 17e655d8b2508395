// SPDX-License-Identifier: MIT OR Apache-2.0
//! The device as a whole: who waits for what, and what follows when something is done. The ways of reads, writes and
//! everything else are in the modules beside this one.

use crate::buffer::WriteBuffer;
use crate::collect::Collector;
use crate::config::{ConfigError, DeviceConfig};
use crate::control::Target;
use crate::engine::Engine;
use crate::entry_config::EntryConfig;
use crate::faults::Faults;
use crate::ftl::{Changes, Checkpoint, Durable, MapCache, PageMap, Spares, Stream, Superblocks};
use crate::hpb::{EntryCodec, Groups, HpbUnit, PreRequests, ReadBuffers, Recommendations};
use crate::hpb2_config::MOST_ENTRIES;
use crate::journal::{Journal, Mark};
use crate::map_memory::{Coming, Copies, Exchange, MapMemory};
use crate::media::{MediaMode, MediaOp};
use crate::meta::{Checkpoints, Meta, Numbers};
use crate::ops::{NO_OP, Op, OpPool};
use crate::probe::{Probe, Resource, StageOf};
use crate::request::{Kind, Slot, Slots, TAGS};
use crate::space::Stall;
use crate::stats::{DeviceStats, StallClock};
use readpath_flash::{DieSched, DiesOfSlices, OpId};
use readpath_kit::{FrontQueue, Ns};
use readpath_proto::typed::{
    Cdb, Command, HpbNotification, Reply, ReplyBody, Request, RequestBody, Response, Sense, Status,
};
use readpath_proto::upiu::ehs_bytes;
use std::collections::VecDeque;

/// HPB generations that may be given out before the journal has to name more.
pub(crate) const FIRST_GENERATIONS: u64 = 1 << 20;

/// Constant delays between the host's software and the link: they hold nobody else up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Delays {
    /// From the host's submission to the link.
    pub to_link: Ns,
    /// From the link to the host's completion (interrupt, wake-up).
    pub from_link: Ns,
}

/// Work of the firmware core whose end is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Work {
    /// A flash operation is handed to its die.
    Flash(OpId),
    /// A fetch from host memory is ready for the link.
    AskHost(OpId),
    /// A map page for host memory is ready for the link.
    WriteHost,
    /// Blocks from SRAM are ready for the link.
    Served { tag: u8, life: u32, count: u16 },
    /// The data of a write may enter the buffer.
    Accept { tag: u8, life: u32 },
    /// The entries of a sub-region are put together.
    HandOut { tag: u8, life: u32 },
    /// UNMAP has marked its map pages.
    Trimmed { tag: u8, life: u32 },
    /// A command without media access is carried out.
    Control { tag: u8, life: u32 },
}

/// A UFS device. `S` schedules its dies, `M` says whether data moves, `P` observes.
pub struct UfsDevice<S: DieSched, M: MediaMode, P: Probe> {
    pub(crate) config: DeviceConfig,
    delays: Delays,
    pub(crate) nand: S,
    pub(crate) arrivals: FrontQueue<(Ns, u8, u32)>,
    pub(crate) firmware: FrontQueue<(Ns, Work)>,
    pub(crate) replies: FrontQueue<(Ns, u8, u32)>,
    pub(crate) link_down_free: Ns,
    pub(crate) link_up_free: Ns,
    pub(crate) firmware_free: Ns,
    pub(crate) ops: OpPool,
    pub(crate) slots: Slots,
    pub(crate) bases: Vec<u32>,
    pub(crate) map: PageMap,
    pub(crate) cache: MapCache,
    /// What a look at a page in the map cache takes: time of DRAM, if it is there.
    pub(crate) map_access: Ns,
    /// Copies of map pages in host memory, and what is on its way there and back.
    pub(crate) copies: Copies,
    pub(crate) exchange: Exchange,
    /// First operation waiting for the page in each frame.
    pub(crate) waiters: Vec<OpId>,
    /// Reads whose map page found every frame taken by a load.
    pub(crate) stalled: VecDeque<OpId>,
    /// Requests that go on when enough operations are free again.
    pub(crate) starved: VecDeque<(u8, u32)>,
    pub(crate) buffer: WriteBuffer,
    pub(crate) waiting_writes: VecDeque<(u8, u32)>,
    /// UNMAPs that wait for room in the table of changes or in the journal.
    pub(crate) waiting_trims: VecDeque<(u8, u32)>,
    /// Recovery has found more changes than their table holds, and they lie in the SRAM of the write buffer. It is free
    /// again when they have been written back and a checkpoint says so: otherwise one power cut after the other would
    /// add to them.
    pub(crate) buffer_is_lent: bool,
    pub(crate) superblocks: Superblocks,
    pub(crate) spares: Spares,
    pub(crate) changes: Changes,
    /// Places of the table of changes that programs in progress will take.
    pub(crate) changes_reserved: u32,
    pub(crate) journal: Journal,
    /// The record that has to be in flash before the open superblock of each stream is written.
    pub(crate) announced: [Mark; Stream::COUNT],
    /// Who waits for a record of the journal.
    pub(crate) journal_waiters: Vec<(u8, u32, Mark)>,
    pub(crate) meta: Meta,
    /// [`DeviceConfig::meta_superblocks`], which is asked for often.
    pub(crate) meta_superblocks: u32,
    pub(crate) checkpoint: Checkpoints,
    pub(crate) collector: Collector,
    pub(crate) durable: Durable,
    pub(crate) faults: Faults,
    /// Number of the newest write or trim, and how far numbers go.
    pub(crate) sequence: u32,
    pub(crate) numbers: Numbers,
    /// Openings of superblocks and map pages put together.
    pub(crate) ticks: u32,
    /// Logical pages written lately, plus one, by hash.
    pub(crate) lately: Vec<u32>,
    /// When to see whether the host is idle.
    pub(crate) background: Ns,
    /// The earliest of that, of what `exchange` waits for and of what the engine has done.
    pub(crate) rare: Ns,
    /// The earliest of that, of what the firmware does and of arrivals: everything but flash.
    soon: Ns,
    /// When the newest command arrived or will arrive, and since when the host was known to be idle then.
    pub(crate) last_command: Ns,
    pub(crate) idle_from: Ns,
    /// Programs of data in progress.
    pub(crate) data_programs: u32,
    /// Programs and erases of any kind that have begun.
    pub(crate) array_writes: u32,
    pub(crate) erasing: Option<u32>,
    pub(crate) codec: EntryCodec,
    pub(crate) engine: Engine,
    /// What an HPB READ costs the firmware core more than a READ.
    pub(crate) hpb_read_extra: Ns,
    pub(crate) generations_used: u64,
    /// Generations up to these have been named in the journal, and are in flash there.
    pub(crate) generations_named: u64,
    pub(crate) generations_durable: u64,
    pub(crate) generations_mark: Mark,
    pub(crate) hpb: Vec<Option<HpbUnit>>,
    /// Of the prototype, which has them in the place of HPB units.
    pub(crate) groups: Option<Box<Groups>>,
    pub(crate) recommendations: Recommendations,
    pub(crate) read_buffers: ReadBuffers,
    pub(crate) pre_requests: PreRequests,
    /// fHPBEn, which survives the loss of power; always on with HPB 1.0.
    pub(crate) hpb_enabled: bool,
    /// Reads of so many blocks count for what is recommended: those for which an HPB READ could be sent.
    pub(crate) noted_blocks: u32,
    pub(crate) target: Target,
    pub(crate) media: VecDeque<MediaOp>,
    pub(crate) stats: DeviceStats,
    pub(crate) stalls: StallClock,
    /// What the write buffer waited for when it was looked at last.
    pub(crate) waits_for: Option<Stall>,
    reply: Reply,
    /// `reply` says GOOD and nothing else.
    reply_is_plain: bool,
    pub(crate) probe: P,
    pub(crate) array_slices: u32,
    pub(crate) dies_of_slices: DiesOfSlices,
    /// The link is shared with what is on its way to and from host memory, so data comes to it when it comes, not earlier.
    pub(crate) reports_at_end: bool,
    /// Reads are counted by superblock, or there may be superblocks in SLC mode.
    pub(crate) looks_at_superblocks: bool,
    mode: std::marker::PhantomData<M>,
}

impl<S: DieSched, M: MediaMode, P: Probe> UfsDevice<S, M, P> {
    /// A device fresh from the factory: nothing is mapped, everything but the map's superblocks is erased.
    pub fn new(config: &DeviceConfig, delays: Delays, probe: P) -> Result<Self, ConfigError> {
        config.check()?;
        let g = &config.geometry;
        let mut bases = Vec::with_capacity(config.lus.len());
        let mut next = 0;
        for lu in &config.lus {
            bases.push(next);
            next += lu.blocks;
        }
        let map = PageMap::new(config.logical_blocks(), config.map_page_entries());
        let cache = MapCache::new(config.map_pages(), config.map_cache_frames());
        let unit = |(lun, lu): (usize, &crate::config::LuConfig)| {
            let hpb = config.standard_hpb().filter(|_| lu.hpb)?;
            Some(HpbUnit::new(lun as u8, bases[lun], lu, hpb))
        };
        let groups = config
            .prototype()
            .map(|prototype| Box::new(Groups::new(prototype, config.lus.iter().map(|lu| (lu.blocks, lu.hpb)))));
        let recommendations = Recommendations::new(config.lus.iter().position(|lu| lu.hpb).unwrap_or(0) as u8);
        let v2 = config.hpb.and_then(|hpb| hpb.v2);
        let entries = config.hpb.map_or(EntryConfig::DEFAULT, |hpb| hpb.entries);
        let codec = EntryCodec::new(config.entry_key).protecting(&entries);
        let ftl = &config.ftl;
        let mut superblocks = Superblocks::new(g);
        superblocks.set_slc_units(config.booster_units());
        superblocks.set_table_units(config.table_units());
        superblocks.open(Stream::Meta, 0).expect("the configuration leaves erased superblocks");
        let factory = Checkpoint {
            sequence: 0,
            oldest: 0,
            ticks: 0,
            generations: FIRST_GENERATIONS,
            journal: 0,
            directory: vec![None; map.pages() as usize],
            superblocks: superblocks.snapshot(),
            changes: Some(Vec::new()),
            places: 0,
            trims: Vec::new(),
            slots: 1,
        };
        Ok(UfsDevice {
            delays,
            nand: S::new(g.channels, g.dies(), config.suspend),
            arrivals: FrontQueue::with_capacity(TAGS),
            firmware: FrontQueue::with_capacity(256),
            replies: FrontQueue::with_capacity(TAGS),
            link_down_free: Ns::ZERO,
            link_up_free: Ns::ZERO,
            firmware_free: Ns::ZERO,
            ops: OpPool::new(),
            slots: Box::new(std::array::from_fn(|_| Slot::new())),
            waiters: vec![NO_OP; cache.frames() as usize],
            cache,
            map_access: match config.map_memory {
                Some(MapMemory::Dram { access }) => access,
                _ => Ns::ZERO,
            },
            copies: Copies::new(config, M::ACTIVE),
            exchange: Exchange::new(),
            stalled: VecDeque::new(),
            starved: VecDeque::new(),
            buffer: WriteBuffer::new(config.write_buffer_blocks),
            waiting_writes: VecDeque::new(),
            waiting_trims: VecDeque::new(),
            buffer_is_lent: false,
            superblocks,
            spares: Spares::new(g.slices()),
            changes: Changes::new(map.pages(), ftl.map_changes),
            changes_reserved: 0,
            journal: Journal::default(),
            announced: [0; Stream::COUNT],
            journal_waiters: Vec::new(),
            meta: Meta::new(config),
            meta_superblocks: config.meta_superblocks(),
            checkpoint: Checkpoints::new(),
            collector: Collector::new(map.pages(), config),
            durable: Durable::new(factory),
            faults: Faults::new(&ftl.faults),
            sequence: 0,
            numbers: Numbers::ALL,
            ticks: 0,
            lately: vec![0; ftl.hot_table_entries as usize],
            background: Ns::NEVER,
            rare: Ns::NEVER,
            soon: Ns::NEVER,
            last_command: Ns::ZERO,
            idle_from: Ns::ZERO,
            data_programs: 0,
            array_writes: 0,
            erasing: None,
            engine: Engine::new(&entries),
            hpb_read_extra: config.firmware.hpb_read_extra + entries.check_on_firmware(),
            codec: if v2.is_some() { codec.with_runs() } else { codec },
            generations_used: 0,
            generations_named: FIRST_GENERATIONS,
            generations_durable: FIRST_GENERATIONS,
            generations_mark: 0,
            hpb: config.lus.iter().enumerate().map(unit).collect(),
            recommendations: if groups.is_some() { recommendations.never_empty() } else { recommendations },
            groups,
            read_buffers: ReadBuffers::new(config.hpb.map_or(0, |hpb| hpb.read_buffers)),
            pre_requests: PreRequests::new(v2.map_or(0, |v2| v2.pre_requests)),
            hpb_enabled: v2.is_none_or(|v2| v2.enabled),
            noted_blocks: v2.map_or(1, |_| u32::from(MOST_ENTRIES)),
            target: Target::new(config),
            media: VecDeque::new(),
            stats: DeviceStats::default(),
            stalls: StallClock::default(),
            waits_for: None,
            reply: Reply { lun: 0, tag: 0, body: ReplyBody::Response(Response::GOOD) },
            reply_is_plain: true,
            probe,
            array_slices: g.slices(),
            dies_of_slices: g.dies_of_slices(),
            reports_at_end: config.host_map().is_some(),
            looks_at_superblocks: ftl.read_disturb_limit > 0 || config.write_booster.is_some(),
            bases,
            map,
            mode: std::marker::PhantomData,
            config: config.clone(),
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
            self.probe.request(now, request, data_out);
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
            }) if self.hpb.get(usize::from(request.lun)).is_some_and(Option::is_some) => {
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
        self.last_command = at;
        let alone = self.replies.is_empty() && at < self.next_event();
        if !alone && self.reports_at_end {
            let life = self.slots[usize::from(tag)].life;
            self.announce(Coming { at: now + self.delays.to_link, tag, life, span });
            return None;
        }
        self.link_down_free = at;
        if P::ACTIVE {
            self.probe.stage(StageOf::Request(tag), Resource::LinkDown, start, at);
        }
        if alone {
            // Nothing can come between: later requests arrive later.
            return Some(at);
        }
        self.will_arrive(at, tag, self.slots[usize::from(tag)].life);
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
        self.soon.min(self.nand.next_deadline())
    }

    /// A command will arrive, after those that are on their way.
    #[inline(always)]
    pub(crate) fn will_arrive(&mut self, at: Ns, tag: u8, life: u32) {
        self.arrivals.push_back((at, tag, life));
        self.soon = self.soon.min(at);
    }

    /// The firmware will be done with something, after what it does before.
    #[inline(always)]
    pub(crate) fn will_be_done(&mut self, at: Ns, work: Work) {
        self.firmware.push_back((at, work));
        self.soon = self.soon.min(at);
    }

    #[inline]
    fn next_firmware(&self) -> Ns {
        self.firmware.front().map_or(Ns::NEVER, |f| f.0)
    }

    #[inline]
    fn next_arrival(&self) -> Ns {
        self.arrivals.front().map_or(Ns::NEVER, |a| a.0)
    }

    pub(crate) fn find_soon(&mut self) {
        self.soon = self.next_firmware().min(self.next_arrival()).min(self.rare);
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
        let flash = self.nand.next_deadline();
        let at = flash.min(self.soon);
        if at > now || at == Ns::NEVER {
            return false;
        }
        if flash == at {
            // Should another operation end now, it is what comes next.
            if let Some(done) = self.nand.poll(at) {
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
        if self.next_firmware() == at {
            let (_, work) = self.firmware.pop_front().expect("just seen");
            self.find_soon();
            self.firmware_done(at, work);
        } else if self.next_arrival() == at && self.engine.next() != at {
            let (_, tag, life) = self.arrivals.pop_front().expect("just seen");
            self.find_soon();
            if self.is_alive(tag, life) {
                self.arrive(at, tag);
            }
        } else {
            self.rare_due(at);
        }
    }

    /// The next movement of data, in order. Poll until `None` after every [`UfsDevice::advance`], before replies.
    #[inline]
    #[must_use]
    pub fn poll_media(&mut self) -> Option<MediaOp> {
        if M::ACTIVE { self.media.pop_front() } else { None }
    }

    /// Takes the next reply that has reached the host by `now`; [`UfsDevice::reply`] then is that reply, and
    /// [`UfsDevice::data_in`] its data until the tag is used again. Call until false.
    #[inline(always)]
    #[must_use]
    pub fn take_reply(&mut self, now: Ns) -> bool {
        loop {
            let Some(&(at, tag, life)) = self.replies.front() else { return false };
            if at > now {
                return false;
            }
            self.replies.pop_front();
            if !self.is_alive(tag, life) {
                continue;
            }
            let event_alert = self.target.event_alert();
            let slot = &mut self.slots[usize::from(tag)];
            slot.active = false;
            self.reply.lun = slot.lun;
            self.reply.tag = tag;
            // Most replies are the same; rewriting only what differs is what makes them cheap.
            let plain = slot.outcome.is_none() && self.recommendations.is_empty() && !event_alert;
            if !plain || !self.reply_is_plain {
                self.reply.body = self.special_reply(now, tag, event_alert);
                self.reply_is_plain = plain;
            }
            if P::ACTIVE {
                self.probe.reply(at, &self.reply, &self.slots[usize::from(tag)].data_in);
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
                && let Some(n) = self.recommendations.take()
            {
                response.hpb = Some(n);
                self.stats.recommended_active += u64::from(n.active_count);
                self.stats.recommended_inactive += u64::from(n.inactive_count);
                self.stats.resets_announced += u64::from(n.operation == HpbNotification::RESET);
            }
            if self.groups.is_some() {
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
        self.map.prefetch(self.bases[usize::from(lun)] + block);
    }

    #[inline(always)]
    pub(crate) fn is_alive(&self, tag: u8, life: u32) -> bool {
        let slot = &self.slots[usize::from(tag)];
        slot.active && slot.life == life
    }

    /// Reserves the firmware core for `cost` from `now` on.
    #[inline]
    pub(crate) fn work(&mut self, now: Ns, cost: Ns, work: Work) {
        let start = now.max(self.firmware_free);
        self.firmware_free = start + cost;
        if P::ACTIVE {
            let of = match work {
                Work::Flash(id) | Work::AskHost(id) => self.stage_of(id),
                Work::WriteHost => StageOf::WriteBack,
                Work::Served { tag, .. }
                | Work::Accept { tag, .. }
                | Work::HandOut { tag, .. }
                | Work::Trimmed { tag, .. }
                | Work::Control { tag, .. } => StageOf::Request(tag),
            };
            self.probe.stage(of, Resource::Firmware, start, self.firmware_free);
        }
        if let Work::Flash(id) = work {
            let op = *self.ops.get(id);
            return self.go_to_die(id, &op);
        }
        self.will_be_done(self.firmware_free, work);
    }

    /// [`UfsDevice::work`] for a read of data that has just been put into the pool.
    #[inline(always)]
    pub(crate) fn work_for_read(&mut self, now: Ns, cost: Ns, id: OpId, op: &Op) {
        let start = now.max(self.firmware_free);
        self.firmware_free = start + cost;
        if P::ACTIVE {
            self.probe.stage(StageOf::Request(op.tag), Resource::Firmware, start, self.firmware_free);
        }
        self.go_to_die(id, op);
    }

    /// The firmware core is busy for `cost` from `now` on, with nothing that anybody waits for.
    pub(crate) fn occupy_firmware(&mut self, now: Ns, cost: Ns) {
        if cost > Ns::ZERO {
            self.firmware_free = now.max(self.firmware_free) + cost;
        }
    }

    /// Reserves the link to the host from `at` on for `span`; returns the end.
    #[inline(always)]
    pub(crate) fn link_up(&mut self, at: Ns, tag: u8, span: Ns) -> Ns {
        let start = at.max(self.link_up_free);
        self.link_up_free = start + span;
        if P::ACTIVE {
            self.probe.stage(StageOf::Request(tag), Resource::LinkUp, start, self.link_up_free);
        }
        self.link_up_free
    }

    /// The reply of `tag` is ready for the link at `at`.
    #[inline(always)]
    pub(crate) fn send_reply(&mut self, at: Ns, tag: u8) {
        let end = self.link_up(at, tag, self.config.link.response);
        let life = self.slots[usize::from(tag)].life;
        self.replies.push_back((end + self.delays.from_link, tag, life));
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
        let life = slot.life;
        let has_hpb = self.hpb.get(usize::from(slot.lun)).is_some_and(Option::is_some);
        if slot.kind == Kind::Other && has_hpb && self.target.is_ready(slot.lun) {
            self.pre_request(tag);
        } else if self.has_groups(slot.lun) && self.target.is_ready(slot.lun) && self.hinted_read(now, tag) {
            return;
        }
        self.work(now, self.config.firmware.control, Work::Control { tag, life });
    }

    fn firmware_done(&mut self, now: Ns, work: Work) {
        match work {
            Work::Flash(id) => {
                let op = *self.ops.get(id);
                self.start_on_die(now, id, &op, self.dies_of_slices.die_of(op.ppn), true);
            }
            Work::AskHost(id) => self.ask_host(now, id),
            Work::WriteHost => self.write_host(now),
            Work::Served { tag, life, count } if self.is_alive(tag, life) => self.blocks_ready(now, tag, count),
            Work::Accept { tag, life } if self.is_alive(tag, life) => self.accept(now, tag),
            Work::HandOut { tag, life } if self.is_alive(tag, life) => self.entries_found(now, tag),
            Work::Trimmed { tag, life } if self.is_alive(tag, life) => self.send_reply(now, tag),
            Work::Control { tag, life } if self.is_alive(tag, life) => self.control(now, tag),
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

    #[inline]
    pub(crate) fn emit(&mut self, op: MediaOp) {
        if M::ACTIVE {
            self.media.push_back(op);
        }
    }
}
