// SPDX-License-Identifier: MIT OR Apache-2.0
//! Converts block requests to commands and replies to completions: tags, splitting, and errors. [`commands`] builds
//! the command for a tag; [`hpb`] has the commands, timers and sleep of HPB.
//!
//! It knows tags and requests; not which entry a read may use, nor which maps are loaded.

mod alone;
mod commands;
mod depths;
mod errors;
mod hpb;
mod joins;
mod long_reads;
mod tags;
mod together;
mod zones;

use crate::block::{BlockDone, BlockOp, BlockRequest, ReadRequest};
use crate::booster;
use crate::config::{HostConfig, HostCores, HpbOptions, LongReads as LongReadsOption, ZoneMapper};
use crate::hpb::UnitHpb;
use crate::probe::{Probe, ProbeError, ProbedUnit};
use crate::quirks::Quirks;
use depths::UnitDepths;
use errors::Failure;
use joins::{JoinId, Joins};
use long_reads::LongReads;
use readpath_kit::{BLOCK_BYTES, FrontQueue, Ns};
use readpath_proto::cdb::READ_BUFFER_ENTRIES;
use readpath_proto::typed::{Cdb, Command, Reply, ReplyBody, Request, RequestBody, Response, Sense, Status};
use std::collections::VecDeque;
use tags::{MAX_SLOTS, Tag, TagState, Tags, Use};
use zones::ZoneOrder;

/// How often a command is sent again after a unit attention or a busy device (Linux sd: 5).
const RETRIES: u8 = 5;
/// ABORTED COMMAND, for a command that ended without sense data.
const ABORTED: Sense = Sense { key: 0x0B, asc: 0, ascq: 0 };

struct Unit {
    blocks: u32,
    /// The same, but 0 if it has zones: its requests are looked at more closely.
    plain_blocks: u32,
    hpb: UnitHpb,
}

/// The entry last sent under each tag, as a word, for a host that sends old entries again.
struct LastEntries([u64; MAX_SLOTS]);

/// The probe, and the features that it has enabled.
#[derive(Default)]
struct Setup {
    probe: Option<Probe>,
    failed: Option<ProbeError>,
    /// The probe has switched WriteBooster on.
    booster: bool,
    booster_step: u8,
}

/// Which rare paths requests and replies take; checked for every request.
struct Paths {
    /// `times` or `depths` exists.
    notes_replies: bool,
    /// `long_reads` or `depths` exists.
    reads_may_wait: bool,
    /// `times` or `last_entries` exists.
    follows_reads: bool,
}

/// The host driver of one UFS device.
pub struct Driver {
    config: HostConfig,
    units: Vec<Option<Unit>>,
    quirks: Quirks,
    setup: Setup,
    tags: Tags,
    /// Requests that wait for a tag. A request above the transfer limit waits as a whole and is split when it gets
    /// tags.
    waiting: VecDeque<(BlockRequest, JoinId)>,
    joins: Joins,
    /// Tags whose request is to be sent.
    out: FrontQueue<Tag>,
    done: FrontQueue<BlockDone>,
    /// False if no unit has sub-regions to load or drop.
    map_work: bool,
    /// Exists for a policy of this host, and for the prototype.
    times: Option<Box<hpb::SendTimes>>,
    /// Scheduled limits of HPB's memory, in order of time.
    limits: VecDeque<hpb::Limit>,
    /// Exists if units accept fewer commands than the controller.
    depths: Option<Box<UnitDepths>>,
    paths: Paths,
    /// Reads wait for a tag for their pre-request.
    reads_wait: bool,
    /// When a unit's timer is due next.
    timer: Ns,
    /// Exists for a host that sends several entries with a read.
    long_reads: Option<Box<LongReads>>,
    /// Exists for a host that sends old entries again.
    last_entries: Option<Box<LastEntries>>,
    data_out: Vec<Vec<u8>>,
    /// Exists if units have zones.
    zones: Option<Box<ZoneOrder>>,
}

impl Driver {
    /// A driver before the probe.
    pub fn new(config: HostConfig) -> Self {
        let slots = config.slots.clamp(2, MAX_SLOTS as u8);
        let if_hpb = |of: fn(&HpbOptions) -> bool| config.hpb.as_ref().is_some_and(of);
        let quirks = Quirks::of(config.hpb.as_ref());
        let needs_times = if_hpb(|hpb| hpb.policy.is_some() || hpb.prototype.is_some());
        let keeps_entries = quirks.resends_old_entries;
        let has_long_reads = if_hpb(|hpb| hpb.long_reads != LongReadsOption::First);
        Driver {
            config: HostConfig { slots, max_transfer_blocks: config.max_transfer_blocks.max(1), ..config },
            units: Vec::new(),
            quirks,
            setup: Setup::default(),
            tags: Tags::new(slots),
            waiting: VecDeque::new(),
            joins: Joins::default(),
            out: FrontQueue::with_capacity(usize::from(slots)),
            done: FrontQueue::with_capacity(usize::from(slots)),
            map_work: false,
            times: needs_times.then(Box::default),
            limits: VecDeque::new(),
            depths: None,
            paths: Paths {
                notes_replies: needs_times,
                reads_may_wait: has_long_reads,
                follows_reads: needs_times || keeps_entries,
            },
            reads_wait: false,
            timer: Ns::NEVER,
            long_reads: has_long_reads.then(|| Box::new(LongReads::new())),
            last_entries: keeps_entries.then(|| Box::new(LastEntries([0; MAX_SLOTS]))),
            data_out: vec![Vec::new(); usize::from(slots)],
            zones: None,
        }
    }

    /// Begins the probe. Block requests may be submitted when [`Driver::is_ready`].
    pub fn start(&mut self, now: Ns) {
        self.setup.probe = Some(Probe::new(&self.config));
        self.step_probe(now);
    }

    /// Whether the probe has succeeded.
    pub fn is_ready(&self) -> bool {
        self.setup.probe.is_none() && self.setup.failed.is_none() && !self.units.is_empty()
    }

    /// Why the probe failed.
    pub fn failure(&self) -> Option<&ProbeError> {
        self.setup.failed.as_ref()
    }

    /// Submits a block request. One beyond the end of its unit ends with LBA OUT OF RANGE without being sent.
    #[inline(always)]
    pub fn submit(&mut self, request: &BlockRequest) {
        let in_range = self
            .unit(request.lun)
            .is_some_and(|u| u64::from(request.block) + u64::from(request.blocks) <= u64::from(u.plain_blocks));
        if !in_range {
            return self.submit_apart(request);
        }
        if request.blocks <= u32::from(self.config.max_transfer_blocks) {
            return self.send_or_wait(*request, JoinId::NONE);
        }
        self.submit_large(request);
    }

    #[inline(never)]
    fn submit_large(&mut self, request: &BlockRequest) {
        if !request.op.moves_data() {
            return self.send_or_wait(*request, JoinId::NONE);
        }
        let most = u32::from(self.config.max_transfer_blocks);
        let join = self.joins.begin(request.cookie, request.blocks.div_ceil(most));
        self.waiting.push_back((*request, join));
        self.send_waiting();
    }

    /// The next request for the device, at `now`, if it is the READ or HPB READ of a block request, without the form
    /// of a command. [`Driver::poll_request`] returns all others.
    #[inline(always)]
    #[must_use]
    pub fn poll_read(&mut self, now: Ns) -> Option<ReadRequest> {
        let &tag = self.out.front()?;
        let state = &self.tags[tag];
        let TagState { used: Use::Block, op: BlockOp::Read, lun, block, blocks, .. } = *state else { return None };
        if self.paths.reads_may_wait && (self.depths.is_some() || self.is_long_read(state)) {
            return None;
        }
        self.out.pop_front();
        Some(ReadRequest { lun, tag: tag.0, block, blocks, entry: self.entry_for(now, tag) })
    }

    /// The next request for the device, at `now`; its [`Driver::data_out`] is valid until the next input.
    #[must_use]
    pub fn poll_request(&mut self, now: Ns) -> Option<Request> {
        let mut tag = self.next_out()?;
        while self.is_long_read(&self.tags[tag]) {
            if let Some(request) = self.long_read(now, tag) {
                return Some(request);
            }
            // It has to wait.
            tag = self.next_out()?;
        }
        let state = &self.tags[tag];
        let lun = state.lun;
        let body = match state.used {
            Use::Block | Use::Ordered => RequestBody::Command(self.command(now, tag)),
            Use::Map => {
                let TagState { at, map_bytes, blocks, .. } = *state;
                self.note_sent(now, tag);
                let expected_bytes = blocks * BLOCK_BYTES;
                let cdb = Cdb::HpbReadBuffer { buffer_id: READ_BUFFER_ENTRIES, at, alloc: map_bytes };
                RequestBody::Command(Command { expected_bytes, cdb })
            }
            Use::Unmap => {
                let cdb = Cdb::HpbInactivate { region: state.at.region };
                RequestBody::Command(Command { expected_bytes: 0, cdb })
            }
            Use::Probe => self.setup.probe.as_ref()?.request()?,
            Use::Booster => booster::request(self.setup.booster_step)?,
            Use::Free | Use::PreRequest => return None,
        };
        Some(Request { lun, tag: tag.0, body })
    }

    fn next_out(&mut self) -> Option<Tag> {
        match &mut self.depths {
            Some(depths) => depths.next(&mut self.out, &self.tags),
            None => self.out.pop_front(),
        }
    }

    /// Whether [`Driver::poll_request`] may return a request.
    #[inline(always)]
    pub fn has_requests(&self) -> bool {
        !self.out.is_empty()
    }

    /// Whether [`Driver::poll_done`] has a completion to return.
    #[inline(always)]
    pub fn has_done(&self) -> bool {
        !self.done.is_empty()
    }

    /// The next completion of a block request.
    #[inline(always)]
    #[must_use]
    pub fn poll_done(&mut self) -> Option<BlockDone> {
        self.done.pop_front()
    }

    /// Parameter list of the request with `tag`, or the entries in its extra header segment; empty for most.
    pub fn data_out(&self, tag: u8) -> &[u8] {
        match self.tags[Tag(tag)] {
            TagState { used: Use::Block, op: BlockOp::Discard, .. }
            | TagState { used: Use::Block, listed: true, .. }
            | TagState { used: Use::PreRequest, .. } => &self.data_out[usize::from(tag)],
            _ => &[],
        }
    }

    /// The block request (or part of one) that `tag` carries, for the code that moves its data.
    pub fn carried(&self, tag: u8) -> Option<BlockRequest> {
        let state = self.tags.get(tag)?;
        matches!(state.used, Use::Block | Use::Ordered).then(|| state.part())
    }

    /// Handles a reply of the device, at `now`, with its data-in. A reply whose tag is not in use is ignored.
    #[inline(always)]
    pub fn on_reply(&mut self, now: Ns, reply: &Reply, data_in: &[u8]) {
        if self.paths.notes_replies {
            self.note_reply(now, reply);
        }
        let Some(state) = self.tags.get(reply.tag) else { return };
        if state.used == Use::Block
            && let ReplyBody::Response(Response { status: Status::Good, hpb: None, .. }) = &reply.body
        {
            let (cookie, join) = (state.cookie, state.join);
            self.tags.release(Tag(reply.tag));
            self.end(cookie, reply.tag, join, None);
        } else if !self.on_other_reply(now, reply, data_in) {
            return;
        }
        if self.map_work {
            self.run_map_worker(now);
        }
        if !self.waiting.is_empty() {
            self.send_waiting();
        }
        if self.reads_wait {
            self.wake_long_reads();
        }
    }

    /// Handles a reply that does more than complete a block request; false if it concerns neither block requests nor
    /// maps.
    #[inline(never)]
    fn on_other_reply(&mut self, now: Ns, reply: &Reply, data_in: &[u8]) -> bool {
        let tag = Tag(reply.tag);
        let TagState { used, lun, at, cookie, join, .. } = self.tags[tag];
        let good = matches!(&reply.body, ReplyBody::Response(Response { status: Status::Good, .. }));
        match used {
            Use::Free => return false,
            Use::Probe => {
                self.on_probe_reply(now, reply, data_in);
                return false;
            }
            Use::Booster => {
                self.tags[tag].used = Use::Free;
                self.ask_booster(self.setup.booster_step + 1);
                return false;
            }
            // Linux also retries its own commands while the device is busy (`scsi_decide_disposition`).
            Use::Map | Use::Unmap if self.quirks.retries_busy_without_end && Failure::of(&reply.body).busy => {
                self.out.push_back(tag)
            }
            Use::Map => {
                self.tags.release(tag);
                let unit = self.units[usize::from(lun)].as_mut();
                self.map_work |= unit.is_some_and(|unit| unit.hpb.loaded(at, good.then_some(data_in)));
            }
            // The result does not matter: the host has dropped the region.
            Use::Unmap => self.tags.release(tag),
            // The result does not matter: the device serves the read in any case.
            Use::PreRequest => {
                self.tags.release(tag);
                self.pre_request_ended(lun);
            }
            Use::Block if good => {
                self.tags.release(tag);
                self.end(cookie, reply.tag, join, None);
            }
            Use::Ordered if good => {
                let state = self.tags[tag];
                self.tags.release(tag);
                self.zone_is_free(&state, true);
                self.end(cookie, reply.tag, join, None);
            }
            Use::Block | Use::Ordered => self.on_error(reply),
        }
        if let ReplyBody::Response(Response { status: Status::Good, hpb: Some(n), .. }) = &reply.body {
            self.notified(n);
        }
        true
    }

    #[cold]
    fn on_error(&mut self, reply: &Reply) {
        let Failure { busy, passing, attention, refused, sense } = Failure::of(&reply.body);
        let tag = Tag(reply.tag);
        let state = &mut self.tags[tag];
        let counts = !(busy || attention) || !self.quirks.retries_busy_without_end;
        // A device that refuses an HPB READ may still serve the READ.
        let refused = refused && state.hpb && !self.quirks.reports_refused_hpb_reads;
        if (busy || passing || refused) && (state.retries < RETRIES || !counts) {
            // An uncounted retry still counts as one: on Linux it keeps its form.
            state.retries = if counts { state.retries + 1 } else { state.retries.max(1) };
            state.plain |= refused;
            (state.listed, state.read_id) = (false, 0);
            return self.out.push_back(tag);
        }
        let state = *state;
        self.tags.release(tag);
        if state.used == Use::Ordered {
            self.zone_is_free(&state, false);
        }
        self.end(state.cookie, reply.tag, state.join, sense.or(Some(ABORTED)));
    }

    /// The controller and the device are being reset. Commands in flight are started again, and map loads are
    /// forgotten. On Linux they end with OCS_INVALID_COMMAND_STATUS, for which the SCSI mid-layer sends each again
    /// unchanged: also a load, and an HPB READ with its old entry if there is no new one
    /// (`ufshcd_transfer_rsp_status`, DID_REQUEUE).
    pub fn reset(&mut self, now: Ns) {
        self.out.clear();
        self.depths.iter_mut().for_each(|depths| depths.clear());
        if self.setup.probe.is_some() {
            // The probe's request will not be answered: start again.
            return self.start(now);
        }
        // The device is initialised before commands continue.
        if self.setup.booster {
            self.ask_booster(0);
        }
        self.each_unit(UnitHpb::reset);
        let (mut again, resends) = (Vec::new(), self.quirks.resends_at_reset);
        for tag in (0..MAX_SLOTS as u8).map(Tag) {
            let state = &mut self.tags[tag];
            match state.used {
                Use::Block | Use::Ordered | Use::Map | Use::Unmap if resends => {
                    (state.listed, state.read_id) = (false, 0);
                    self.out.push_back(tag);
                }
                Use::Block | Use::Ordered => {
                    again.push((state.part(), state.join));
                    self.tags.release(tag);
                }
                Use::Map | Use::Unmap | Use::PreRequest => self.tags.release(tag),
                Use::Free | Use::Probe | Use::Booster => {}
            }
        }
        self.long_reads.iter_mut().for_each(|long| long.clear());
        self.each_standard(|hpb| hpb.restored(now));
        self.find_timer();
        for item in again.into_iter().rev() {
            self.waiting.push_front(item);
        }
        self.send_waiting();
    }

    /// The host has lost its power as well: its whole state is lost, block requests included.
    pub fn power_cut(&mut self) {
        let mut zones = self.zones.take();
        zones.iter_mut().for_each(|zones| zones.clear());
        *self = Driver { zones, ..Driver::new(self.config) };
    }

    /// CPU of the host, if requests cost some, and the blocks of its longest command.
    pub fn cores(&self) -> Option<(HostCores, u32)> {
        self.config.cores.map(|cores| (cores, u32::from(self.config.max_transfer_blocks)))
    }

    /// The mapper in front of units with zones, if there is one.
    pub fn mapper(&self) -> Option<ZoneMapper> {
        self.config.mapper()
    }

    /// Blocks of a unit.
    pub fn unit_blocks(&self, lun: u8) -> Option<u32> {
        self.unit(lun).map(|u| u.blocks)
    }

    /// Whether nothing is in flight or waiting.
    pub fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.tags.iter().all(|(_, state)| state.used == Use::Free)
    }

    /// Prefetches the memory that a read of `block` touches; false if the host holds no entry for it.
    #[inline(always)]
    pub fn prefetch(&self, lun: u8, block: u32) -> bool {
        self.hpb(lun).is_some_and(|hpb| hpb.prefetch(block))
    }

    #[inline]
    fn unit(&self, lun: u8) -> Option<&Unit> {
        self.units.get(usize::from(lun))?.as_ref()
    }

    #[inline(always)]
    fn send_or_wait(&mut self, part: BlockRequest, join: JoinId) {
        match self.tags.take() {
            Some(tag) => self.send(tag, part, join, Use::Block),
            None => self.waiting.push_back((part, join)),
        }
    }

    #[inline(always)]
    fn send(&mut self, tag: Tag, part: BlockRequest, join: JoinId, used: Use) {
        let BlockRequest { cookie, lun, op, block, blocks } = part;
        self.tags[tag] = TagState { used, op, lun, join, cookie, block, blocks, ..TagState::FREE };
        self.out.push_back(tag);
    }

    fn send_waiting(&mut self) {
        while !self.waiting.is_empty()
            && let Some(tag) = self.tags.take()
        {
            let most = u32::from(self.config.max_transfer_blocks);
            let (part, join) = take_part(&mut self.waiting, most).expect("not empty");
            let used = if self.is_ordered(&part) { Use::Ordered } else { Use::Block };
            self.send(tag, part, join, used);
        }
    }

    #[inline(always)]
    fn end(&mut self, cookie: u32, tag: u8, join: JoinId, error: Option<Sense>) {
        if join == JoinId::NONE {
            return self.done.push_back(BlockDone { cookie, tag, error });
        }
        self.end_part(tag, join, error);
    }

    #[inline(never)]
    fn end_part(&mut self, tag: u8, join: JoinId, error: Option<Sense>) {
        if let Some((cookie, error)) = self.joins.end_part(join, error) {
            self.done.push_back(BlockDone { cookie, tag, error });
        }
    }

    fn ask_booster(&mut self, step: u8) {
        if booster::request(step).is_some() {
            let tag = self.tags.for_queries();
            self.tags[tag].used = Use::Booster;
            self.setup.booster_step = step;
            self.out.push_back(tag);
        }
    }

    fn step_probe(&mut self, now: Ns) {
        let Some(probe) = &self.setup.probe else { return };
        match probe.request() {
            Some(_) => {
                let tag = self.tags.for_queries();
                self.tags[tag].used = Use::Probe;
                self.out.push_back(tag);
            }
            None => {
                let probe = self.setup.probe.take().expect("seen above");
                self.setup.booster = probe.booster;
                // The depth of the queue that units share (0: not stated).
                if probe.device_depth() > 0 && !self.quirks.ignores_device_queue_depth {
                    self.tags.limit(probe.device_depth());
                }
                let mut depths = vec![0; 256];
                for ProbedUnit { lun, blocks, depth, hpb } in probe.units {
                    let lun = usize::from(lun);
                    depths[lun] = depth;
                    if self.units.len() <= lun {
                        self.units.resize_with(lun + 1, || None);
                    }
                    let plain_blocks = if self.has_zones(lun as u8) { 0 } else { blocks };
                    self.units[lun] = Some(Unit { blocks, plain_blocks, hpb });
                }
                depths.truncate(self.units.len());
                self.depths = UnitDepths::new(depths);
                self.paths.notes_replies |= self.depths.is_some();
                self.paths.reads_may_wait |= self.depths.is_some();
                self.run_map_worker(now);
                self.find_timer();
            }
        }
    }

    fn on_probe_reply(&mut self, now: Ns, reply: &Reply, data_in: &[u8]) {
        self.tags[Tag(reply.tag)].used = Use::Free;
        let Some(probe) = &mut self.setup.probe else { return };
        match probe.on_reply(now, &reply.body, data_in) {
            Ok(()) => self.step_probe(now),
            Err(e) => {
                self.setup.failed = Some(e);
                self.setup.probe = None;
            }
        }
    }
}

/// Takes the first of the waiting requests, or its first `most` blocks if it is longer and may be sent in parts.
fn take_part(waiting: &mut VecDeque<(BlockRequest, JoinId)>, most: u32) -> Option<(BlockRequest, JoinId)> {
    let (front, join) = waiting.front_mut()?;
    let (mut part, join) = (*front, *join);
    if part.blocks > most && join != JoinId::NONE {
        part.blocks = most;
        front.block += most;
        front.blocks -= most;
    } else {
        waiting.pop_front();
    }
    Some((part, join))
}
