// SPDX-License-Identifier: MIT OR Apache-2.0
//! Block requests to commands and back: tags, splitting, READ to HPB READ, and what to do about errors. The commands of
//! HPB's own, its timers and its sleep are in [`hpb_side`].

mod hpb_side;
mod long_reads;

use crate::booster;
use crate::config::{HostConfig, LongReads as LongReadsOption};
use crate::hpb::{GroupLu, HpbLu};
use crate::probe::{FoundUnit, Probe, ProbeError};
use long_reads::LongReads;
use readpath_kit::{BLOCK_BYTES, FrontQueue, Ns};
use readpath_proto::groups::group_of;
use readpath_proto::scsi::encode_unmap;
use readpath_proto::typed::{
    Cdb, Command, FLAG_FUA, Form, HpbEntry, Reply, ReplyBody, Request, RequestBody, Response, Sense, Status, SubRegion,
};
use std::collections::VecDeque;

/// What a block request does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlockOp {
    /// Read blocks.
    Read,
    /// Write blocks.
    Write,
    /// Write blocks, acknowledged from flash.
    WriteFua,
    /// Discard blocks.
    Discard,
    /// Make everything acknowledged durable.
    Flush,
}

/// A block request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockRequest {
    /// The submitter's name for it, returned with its end.
    pub cookie: u32,
    /// Logical unit.
    pub lun: u8,
    /// What to do.
    pub op: BlockOp,
    /// First block of 4 KiB.
    pub block: u32,
    /// Blocks.
    pub blocks: u32,
}

/// The end of a block request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockDone {
    /// The submitter's name for it.
    pub cookie: u32,
    /// The last command that carried it (or a part of it).
    pub tag: u8,
    /// The sense data of the first part that failed, if any did.
    pub error: Option<Sense>,
}

/// A READ or, if there is an entry, an HPB READ on its way to the device. All of its blocks are expected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReadRequest {
    /// Logical unit.
    pub lun: u8,
    /// Task tag.
    pub tag: u8,
    /// First block of 4 KiB.
    pub block: u32,
    /// Blocks.
    pub blocks: u32,
    /// HPB entry of the first block.
    pub entry: Option<HpbEntry>,
}

/// How often a command is sent again after a unit attention or a busy device (Linux sd: 5).
const RETRIES: u8 = 5;
const NO_JOIN: u32 = u32::MAX;
/// Slots that a controller can have.
const MAX_SLOTS: usize = 64;
/// Buffer id of HPB entries (JESD220-3).
const HPB_ENTRIES: u8 = 1;
/// ABORTED COMMAND, for what ended without saying why.
const ABORTED: Sense = Sense { key: 0x0B, asc: 0, ascq: 0 };

#[derive(Clone, Copy, PartialEq, Debug)]
enum Use {
    Free,
    /// A block request, or the part of one that belongs to a join.
    Block,
    /// An HPB READ BUFFER.
    Map,
    /// An HPB WRITE BUFFER that drops a region.
    Unmap,
    /// An HPB WRITE BUFFER with the entries of a read that follows.
    PreRequest,
    /// A step of the probe.
    Probe,
    /// WriteBooster is being switched on again, in step `booster_step`.
    Booster,
}

/// What a tag carries. The request itself is built when it is taken: it is never stored, and entries are looked up when
/// the command goes to the controller, as Linux does. Aligned so that its place among the tags is a shift away.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
struct TagState {
    used: Use,
    op: BlockOp,
    lun: u8,
    retries: u8,
    /// Sent as HPB READ.
    hpb: bool,
    /// Not to be sent as HPB READ (again).
    plain: bool,
    /// Entries of all its blocks are in `data_out`.
    listed: bool,
    /// READ ID of its pre-request; 0 if it has none.
    read_id: u8,
    join: u32,
    cookie: u32,
    block: u32,
    blocks: u32,
    /// Sub-region to load, or in its region the one to drop.
    at: SubRegion,
    /// Bytes of its map.
    map_bytes: u32,
}

impl TagState {
    const FREE: TagState = TagState {
        used: Use::Free,
        op: BlockOp::Flush,
        lun: 0,
        retries: 0,
        hpb: false,
        plain: false,
        listed: false,
        read_id: 0,
        join: NO_JOIN,
        cookie: 0,
        block: 0,
        blocks: 0,
        at: SubRegion { region: 0, index: 0 },
        map_bytes: 0,
    };

    fn part(&self) -> BlockRequest {
        let TagState { cookie, lun, op, block, blocks, .. } = *self;
        BlockRequest { cookie, lun, op, block, blocks }
    }

    fn writes(&self) -> bool {
        matches!(self.op, BlockOp::Write | BlockOp::WriteFua | BlockOp::Discard)
    }
}

#[derive(Clone, Copy)]
struct Join {
    cookie: u32,
    left: u32,
    error: Option<Sense>,
}

struct Unit {
    blocks: u32,
    hpb: Option<HpbLu>,
    /// Of the prototype, in the place of `hpb`.
    groups: Option<Box<GroupLu>>,
}

/// The host driver of one UFS device.
pub struct Driver {
    config: HostConfig,
    units: Vec<Option<Unit>>,
    probe: Option<Probe>,
    failed: Option<ProbeError>,
    /// The probe has switched WriteBooster on.
    booster: bool,
    booster_step: u8,
    /// Those from `config.slots` on are never used.
    tags: Box<[TagState; MAX_SLOTS]>,
    free_tags: Vec<u8>,
    /// What waits for a tag. A request longer than the limit waits as a whole and is cut when there is one.
    waiting: VecDeque<(BlockRequest, u32)>,
    joins: Vec<Join>,
    free_joins: Vec<u32>,
    /// Tags whose request is to be sent.
    out: FrontQueue<u8>,
    done: FrontQueue<BlockDone>,
    /// Whether a unit may have sub-regions to load or drop; false is certain.
    map_work: bool,
    /// Policies of this host's own are told how long commands take, and the prototype sees commands here.
    managed: Option<Box<hpb_side::Managed>>,
    /// Whether reads wait for their pre-requests.
    reads_wait: bool,
    /// When a unit's timer is due next.
    timer: Ns,
    /// Reads that may have more entries than one, for a host that sends such.
    long_reads: Option<Box<LongReads>>,
    /// Entries last sent under each tag, as words, for a host that sends them again as Linux does.
    sent: Option<Box<[u64; MAX_SLOTS]>>,
    /// `managed` or `sent` is there.
    keeps_account: bool,
    data_out: Vec<Vec<u8>>,
}

impl Driver {
    /// A driver that has not looked for a device yet.
    pub fn new(config: HostConfig) -> Self {
        let slots = config.slots.clamp(2, MAX_SLOTS as u8);
        Driver {
            config: HostConfig { slots, max_transfer_blocks: config.max_transfer_blocks.max(1), ..config },
            units: Vec::new(),
            probe: None,
            failed: None,
            booster: false,
            booster_step: 0,
            tags: Box::new([TagState::FREE; MAX_SLOTS]),
            // The last slot is kept for queries.
            free_tags: (0..slots - 1).rev().collect(),
            waiting: VecDeque::new(),
            joins: Vec::new(),
            free_joins: Vec::new(),
            out: FrontQueue::with_capacity(usize::from(slots)),
            done: FrontQueue::with_capacity(usize::from(slots)),
            map_work: false,
            managed: (config.hpb).filter(|hpb| hpb.policy.is_some() || hpb.prototype.is_some()).map(|_| Box::default()),
            reads_wait: false,
            timer: Ns::NEVER,
            long_reads: (config.hpb)
                .filter(|hpb| hpb.long_reads != LongReadsOption::First)
                .map(|_| Box::new(LongReads::new())),
            sent: config.hpb.filter(|hpb| hpb.strict_linux).map(|_| Box::new([0; MAX_SLOTS])),
            keeps_account: config
                .hpb
                .is_some_and(|hpb| hpb.policy.is_some() || hpb.strict_linux || hpb.prototype.is_some()),
            data_out: vec![Vec::new(); usize::from(slots)],
        }
    }

    /// Begins to find out what the device is. Block requests may be submitted when [`Driver::is_ready`].
    pub fn start(&mut self, now: Ns) {
        self.probe = Some(Probe::new(&self.config));
        self.step_probe(now);
    }

    /// Whether the probe has ended well.
    pub fn is_ready(&self) -> bool {
        self.probe.is_none() && self.failed.is_none() && !self.units.is_empty()
    }

    /// Why the probe failed.
    pub fn failure(&self) -> Option<&ProbeError> {
        self.failed.as_ref()
    }

    /// Takes a block request. One that goes beyond its unit ends with LBA OUT OF RANGE without being sent.
    #[inline(always)]
    pub fn submit(&mut self, request: &BlockRequest) {
        let in_range = self
            .unit(request.lun)
            .is_some_and(|u| u64::from(request.block) + u64::from(request.blocks) <= u64::from(u.blocks));
        if !in_range {
            let error = Some(Sense::LBA_OUT_OF_RANGE);
            return self.done.push_back(BlockDone { cookie: request.cookie, tag: 0, error });
        }
        if request.blocks <= u32::from(self.config.max_transfer_blocks) {
            return self.send_or_wait(*request, NO_JOIN);
        }
        self.submit_large(request);
    }

    /// A request that may be longer than a command.
    #[inline(never)]
    fn submit_large(&mut self, request: &BlockRequest) {
        if matches!(request.op, BlockOp::Discard | BlockOp::Flush) {
            return self.send_or_wait(*request, NO_JOIN);
        }
        let most = u32::from(self.config.max_transfer_blocks);
        let join = self.new_join(request.cookie, request.blocks.div_ceil(most));
        self.waiting.push_back((*request, join));
        self.send_waiting();
    }

    /// The next request for the device, at `now`, if it is the READ or HPB READ of a block request; what it says, without
    /// the form of a command. What this does not give, [`Driver::poll_request`] does.
    #[inline(always)]
    #[must_use]
    pub fn poll_read(&mut self, now: Ns) -> Option<ReadRequest> {
        let &tag = self.out.front()?;
        let state = &self.tags[usize::from(tag)];
        let TagState { used: Use::Block, op: BlockOp::Read, lun, block, blocks, .. } = *state else { return None };
        if self.is_long_read(state) {
            return None;
        }
        self.out.pop_front();
        Some(ReadRequest { lun, tag, block, blocks, entry: self.entry_for(now, tag) })
    }

    /// The next request for the device, at `now`; its [`Driver::data_out`] is valid until the next input.
    #[must_use]
    pub fn poll_request(&mut self, now: Ns) -> Option<Request> {
        let mut tag = self.out.pop_front()?;
        while self.is_long_read(&self.tags[usize::from(tag)]) {
            if let Some(request) = self.long_read(now, tag) {
                return Some(request);
            }
            // It has to wait.
            tag = self.out.pop_front()?;
        }
        let state = &self.tags[usize::from(tag)];
        let lun = state.lun;
        let body = match state.used {
            Use::Block => RequestBody::Command(self.command(now, tag)),
            Use::Map => {
                let TagState { at, map_bytes, .. } = *state;
                if self.managed.is_some() {
                    self.note_sent(now, tag);
                }
                let expected_bytes = map_bytes.next_multiple_of(BLOCK_BYTES);
                let cdb = Cdb::HpbReadBuffer { buffer_id: HPB_ENTRIES, at, alloc: map_bytes };
                RequestBody::Command(Command { expected_bytes, cdb })
            }
            Use::Unmap => {
                let cdb = Cdb::HpbInactivate { region: state.at.region };
                RequestBody::Command(Command { expected_bytes: 0, cdb })
            }
            Use::Probe => self.probe.as_ref()?.request()?,
            Use::Booster => booster::request(self.booster_step)?,
            Use::Free | Use::PreRequest => return None,
        };
        Some(Request { lun, tag, body })
    }

    /// Whether [`Driver::poll_request`] has something to give.
    #[inline(always)]
    pub fn has_requests(&self) -> bool {
        !self.out.is_empty()
    }

    /// Whether [`Driver::poll_done`] has something to give.
    #[inline(always)]
    pub fn has_done(&self) -> bool {
        !self.done.is_empty()
    }

    /// The next block request that has ended.
    #[inline(always)]
    #[must_use]
    pub fn poll_done(&mut self) -> Option<BlockDone> {
        self.done.pop_front()
    }

    /// Parameter list of the request with `tag`, or the entries in its extra header segment; empty for most.
    pub fn data_out(&self, tag: u8) -> &[u8] {
        match self.tags[usize::from(tag)] {
            TagState { used: Use::Block, op: BlockOp::Discard, .. }
            | TagState { used: Use::Block, listed: true, .. }
            | TagState { used: Use::PreRequest, .. } => &self.data_out[usize::from(tag)],
            _ => &[],
        }
    }

    /// The block request (or part of one) that `tag` carries, for whoever moves its data.
    pub fn carried(&self, tag: u8) -> Option<BlockRequest> {
        let state = self.tags.get(usize::from(tag))?;
        (state.used == Use::Block).then(|| state.part())
    }

    /// A reply of the device, at `now`, with its data-in. One whose tag is not in use is ignored.
    #[inline(always)]
    pub fn on_reply(&mut self, now: Ns, reply: &Reply, data_in: &[u8]) {
        if self.managed.is_some() {
            self.note_reply(now, reply);
        }
        let Some(state) = self.tags.get(usize::from(reply.tag)) else { return };
        if state.used == Use::Block
            && let ReplyBody::Response(Response { status: Status::Good, hpb: None, .. }) = &reply.body
        {
            let (cookie, join) = (state.cookie, state.join);
            self.release(reply.tag);
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

    /// A reply that does more than end a block request well; false if it has nothing to do with block requests or maps.
    #[inline(never)]
    fn on_other_reply(&mut self, now: Ns, reply: &Reply, data_in: &[u8]) -> bool {
        let state = &self.tags[usize::from(reply.tag)];
        let good = matches!(&reply.body, ReplyBody::Response(Response { status: Status::Good, .. }));
        match state.used {
            Use::Free => return false,
            Use::Probe => {
                self.on_probe_reply(now, reply, data_in);
                return false;
            }
            Use::Booster => {
                self.tags[usize::from(reply.tag)].used = Use::Free;
                self.ask_booster(self.booster_step + 1);
                return false;
            }
            Use::Map => {
                let TagState { lun, at, .. } = *state;
                self.release(reply.tag);
                if let Some(lu) = self.hpb_of(lun) {
                    lu.loaded(at, good.then_some(data_in));
                    self.map_work = true;
                } else if let Some(groups) = self.groups_of(lun) {
                    groups.loaded(group_of(at), good.then_some(data_in));
                    self.map_work = true;
                }
            }
            // What has become of it does not matter: the region is dropped.
            Use::Unmap => self.release(reply.tag),
            // Nor here: the read behind it is served in any case.
            Use::PreRequest => {
                let lun = state.lun;
                self.release(reply.tag);
                self.pre_request_ended(lun);
            }
            Use::Block if good => {
                let (cookie, join) = (state.cookie, state.join);
                self.release(reply.tag);
                self.end(cookie, reply.tag, join, None);
            }
            Use::Block => self.on_error(reply),
        }
        if let ReplyBody::Response(Response { status: Status::Good, hpb: Some(n), .. }) = &reply.body {
            self.notified(n);
        }
        true
    }

    #[cold]
    fn on_error(&mut self, reply: &Reply) {
        const NOT_READY: u8 = 2;
        const ILLEGAL_REQUEST: u8 = 5;
        const UNIT_ATTENTION: u8 = 6;
        const ABORTED_COMMAND: u8 = 0xB;
        let (status, sense) = match &reply.body {
            ReplyBody::Response(r) => (r.status, r.sense),
            _ => (Status::TaskAborted, None),
        };
        let state = &mut self.tags[usize::from(reply.tag)];
        let key = sense.map_or(0, |s| s.key);
        // What passes by itself (Linux, drivers/scsi/scsi_error.c: `scsi_decide_disposition`, `scsi_check_sense`).
        let becoming_ready = sense.is_some_and(|s| (s.key, s.asc, s.ascq) == (NOT_READY, 4, 1));
        let passing =
            status == Status::TaskAborted || matches!(key, UNIT_ATTENTION | ABORTED_COMMAND) || becoming_ready;
        let busy = matches!(status, Status::Busy | Status::TaskSetFull);
        // Linux does not count how often a device was busy.
        let counts = !busy || self.sent.is_none();
        // A device that refuses an HPB READ may still serve the READ: Linux has no such way back.
        let refused = state.hpb && key == ILLEGAL_REQUEST && self.sent.is_none();
        if (busy || passing || refused) && (state.retries < RETRIES || !counts) {
            // A retry is a retry even if it does not count: it keeps its form on Linux.
            state.retries = if counts { state.retries + 1 } else { state.retries.max(1) };
            state.plain |= refused;
            (state.listed, state.read_id) = (false, 0);
            return self.out.push_back(reply.tag);
        }
        let (cookie, join) = (state.cookie, state.join);
        self.release(reply.tag);
        self.end(cookie, reply.tag, join, sense.or(Some(ABORTED)));
    }

    /// The controller and the device are being reset: commands in flight are sent again, map loads are forgotten.
    pub fn reset(&mut self, now: Ns) {
        self.out.clear();
        if self.probe.is_some() {
            // What was asked will not be answered: from the beginning.
            return self.start(now);
        }
        self.each_hpb(HpbLu::reset);
        self.each_groups(GroupLu::reset);
        let mut again = Vec::new();
        for tag in 0..self.tags.len() as u8 {
            let state = self.tags[usize::from(tag)];
            if state.used == Use::Block {
                again.push((state.part(), state.join));
            }
            if matches!(state.used, Use::Block | Use::Map | Use::Unmap | Use::PreRequest) {
                self.release(tag);
            }
        }
        self.long_reads.iter_mut().for_each(|long| long.clear());
        self.each_hpb(|hpb| hpb.restored(now));
        self.find_timer();
        for item in again.into_iter().rev() {
            self.waiting.push_front(item);
        }
        if self.booster {
            self.ask_booster(0);
        }
        self.send_waiting();
    }

    /// The host has lost its power as well: everything it knew is gone, block requests included.
    pub fn power_cut(&mut self) {
        *self = Driver::new(self.config);
    }

    /// Blocks of a unit.
    pub fn unit_blocks(&self, lun: u8) -> Option<u32> {
        self.unit(lun).map(|u| u.blocks)
    }

    /// Whether nothing is in flight or waiting.
    pub fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.tags.iter().all(|t| t.used == Use::Free)
    }

    /// Brings near what a read of `block` will touch; false if the host holds no entry for it.
    #[inline]
    pub fn prefetch(&self, lun: u8, block: u32) -> bool {
        self.unit(lun).and_then(|u| u.hpb.as_ref()).is_some_and(|hpb| hpb.prefetch(block))
    }

    #[inline]
    fn unit(&self, lun: u8) -> Option<&Unit> {
        self.units.get(usize::from(lun))?.as_ref()
    }

    #[inline(always)]
    fn send_or_wait(&mut self, part: BlockRequest, join: u32) {
        match self.free_tags.pop() {
            Some(tag) => self.send(tag, part, join),
            None => self.waiting.push_back((part, join)),
        }
    }

    #[inline(always)]
    fn send(&mut self, tag: u8, part: BlockRequest, join: u32) {
        let BlockRequest { cookie, lun, op, block, blocks } = part;
        let used = Use::Block;
        self.tags[usize::from(tag)] = TagState { used, op, lun, join, cookie, block, blocks, ..TagState::FREE };
        self.out.push_back(tag);
    }

    /// The entry to send with the read that `tag` carries.
    #[inline(always)]
    fn entry_for(&mut self, now: Ns, tag: u8) -> Option<HpbEntry> {
        let state = &mut self.tags[usize::from(tag)];
        let hpb = self.units[usize::from(state.lun)].as_mut().and_then(|u| u.hpb.as_mut());
        let entry = hpb.filter(|_| !state.plain).and_then(|hpb| hpb.entry_for(now, state.block, state.blocks));
        if self.keeps_account {
            // As words: bytes would cross memory, which every read would pay for.
            let word = entry.map(|HpbEntry(bytes)| u64::from_ne_bytes(bytes));
            return self.account_for(now, tag, word).map(|word| HpbEntry(word.to_ne_bytes()));
        }
        state.hpb = entry.is_some();
        entry
    }

    /// What a host that sends entries again, or tells a policy how long commands take, has to do with each read; returns the
    /// entry to send.
    #[inline(never)]
    fn account_for(&mut self, now: Ns, tag: u8, mut entry: Option<u64>) -> Option<u64> {
        let state = &mut self.tags[usize::from(tag)];
        if let Some(sent) = &mut self.sent {
            match entry {
                Some(entry) => sent[usize::from(tag)] = entry,
                // A command that is sent again keeps the form that it had been given.
                None if state.hpb => entry = Some(sent[usize::from(tag)]),
                None => {}
            }
        }
        state.hpb = entry.is_some();
        if self.managed.is_some() {
            return self.managed_entry(now, tag, entry);
        }
        entry
    }

    /// The command for what `tag` carries. Writes make their entries dirty here, before they are sent.
    fn command(&mut self, now: Ns, tag: u8) -> Command {
        let state = &mut self.tags[usize::from(tag)];
        let (block, blocks) = (state.block, state.blocks);
        let lba = u64::from(block);
        if state.op == BlockOp::Read {
            let bytes = blocks * BLOCK_BYTES;
            let cdb = match self.entry_for(now, tag) {
                Some(entry) => self.read_with(tag, entry),
                None => Cdb::Read { form: Form::Ten, lba, blocks, flags: 0 },
            };
            return Command { expected_bytes: bytes, cdb };
        }
        let hpb = self.units[usize::from(state.lun)].as_mut().and_then(|u| u.hpb.as_mut());
        if let Some(hpb) = hpb
            && state.writes()
        {
            hpb.write(block, blocks);
        }
        match state.op {
            BlockOp::Discard => {
                let list = &mut self.data_out[usize::from(tag)];
                encode_unmap(&[(lba, blocks)], list);
                Command { expected_bytes: list.len() as u32, cdb: Cdb::Unmap { list_bytes: list.len() as u16 } }
            }
            BlockOp::Flush => {
                let cdb = Cdb::SynchronizeCache { form: Form::Ten, lba: 0, blocks: 0, immed: false };
                Command { expected_bytes: 0, cdb }
            }
            op => {
                let flags = if op == BlockOp::WriteFua { FLAG_FUA } else { 0 };
                Command {
                    expected_bytes: blocks * BLOCK_BYTES,
                    cdb: Cdb::Write { form: Form::Ten, lba, blocks, flags },
                }
            }
        }
    }

    fn send_waiting(&mut self) {
        while !self.waiting.is_empty()
            && let Some(tag) = self.free_tags.pop()
        {
            let most = u32::from(self.config.max_transfer_blocks);
            let (front, join) = self.waiting.front_mut().expect("not empty");
            let (mut part, join) = (*front, *join);
            if part.blocks > most && join != NO_JOIN {
                part.blocks = most;
                front.block += most;
                front.blocks -= most;
            } else {
                self.waiting.pop_front();
            }
            self.send(tag, part, join);
        }
    }

    #[inline(always)]
    fn release(&mut self, tag: u8) {
        self.tags[usize::from(tag)].used = Use::Free;
        if tag != self.config.slots - 1 {
            self.free_tags.push(tag);
        }
    }

    #[inline(always)]
    fn end(&mut self, cookie: u32, tag: u8, join: u32, error: Option<Sense>) {
        if join == NO_JOIN {
            return self.done.push_back(BlockDone { cookie, tag, error });
        }
        self.end_part(tag, join, error);
    }

    #[inline(never)]
    fn end_part(&mut self, tag: u8, join: u32, error: Option<Sense>) {
        let j = &mut self.joins[join as usize];
        j.error = j.error.or(error);
        j.left -= 1;
        if j.left == 0 {
            self.done.push_back(BlockDone { cookie: j.cookie, tag, error: j.error });
            self.free_joins.push(join);
        }
    }

    fn new_join(&mut self, cookie: u32, left: u32) -> u32 {
        let join = Join { cookie, left, error: None };
        match self.free_joins.pop() {
            Some(i) => {
                self.joins[i as usize] = join;
                i
            }
            None => {
                self.joins.push(join);
                (self.joins.len() - 1) as u32
            }
        }
    }

    /// Goes on with switching WriteBooster on.
    fn ask_booster(&mut self, step: u8) {
        if booster::request(step).is_some() {
            let tag = self.config.slots - 1;
            self.tags[usize::from(tag)].used = Use::Booster;
            self.booster_step = step;
            self.out.push_back(tag);
        }
    }

    fn step_probe(&mut self, now: Ns) {
        let Some(probe) = &self.probe else { return };
        match probe.request() {
            Some(_) => {
                let tag = self.config.slots - 1;
                self.tags[usize::from(tag)].used = Use::Probe;
                self.out.push_back(tag);
            }
            None => {
                let probe = self.probe.take().expect("seen above");
                self.booster = probe.booster;
                // Linux `ufshcd_lu_init`: units share the device's queue, whose length bQueueDepth is (0: not stated).
                let depth = Some(probe.device_depth()).filter(|&depth| depth > 0);
                self.free_tags.retain(|&tag| depth.is_none_or(|depth| tag < depth));
                for FoundUnit { lun, blocks, hpb, groups } in probe.units {
                    let lun = usize::from(lun);
                    if self.units.len() <= lun {
                        self.units.resize_with(lun + 1, || None);
                    }
                    self.units[lun] = Some(Unit { blocks, hpb, groups });
                }
                self.run_map_worker(now);
                self.find_timer();
            }
        }
    }

    fn on_probe_reply(&mut self, now: Ns, reply: &Reply, data_in: &[u8]) {
        self.tags[usize::from(reply.tag)].used = Use::Free;
        let Some(probe) = &mut self.probe else { return };
        match probe.on_reply(now, &reply.body, data_in) {
            Ok(()) => self.step_probe(now),
            Err(e) => {
                self.failed = Some(e);
                self.probe = None;
            }
        }
    }
}
