// SPDX-License-Identifier: MIT OR Apache-2.0
//! Block requests to commands and back: tags, splitting, READ to HPB READ, map loads, and what to do about errors.

use crate::config::HostConfig;
use crate::hpb::{HostMemory, HpbCounters, HpbLu};
use crate::probe::{Probe, ProbeError};
use readpath_proto::hpb::is_acceptable;
use readpath_proto::scsi::encode_unmap;
use readpath_proto::typed::{
    Cdb, Command, FLAG_FUA, Form, HpbNotification, Reply, ReplyBody, Request, RequestBody, Response, Sense, Status,
    SubRegion,
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

/// How often a command is sent again after a unit attention or a busy device (Linux sd: 5).
const RETRIES: u8 = 5;
const NO_JOIN: u16 = u16::MAX;

#[derive(Clone, Copy, PartialEq, Debug)]
enum Use {
    Free,
    /// Carries a block request, or the part of one that belongs to a join.
    Block {
        part: BlockRequest,
        join: u16,
        retries: u8,
        hpb: bool,
    },
    /// Carries an HPB READ BUFFER.
    Map {
        lun: u8,
        at: SubRegion,
    },
    /// Belongs to the probe.
    Probe,
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
}

/// The host driver of one UFS device.
pub struct Driver {
    config: HostConfig,
    units: Vec<Option<Unit>>,
    probe: Option<Probe>,
    failed: Option<ProbeError>,
    tags: Vec<Use>,
    free_tags: Vec<u8>,
    /// Parts that wait for a tag.
    waiting: VecDeque<(BlockRequest, u16)>,
    joins: Vec<Join>,
    free_joins: Vec<u16>,
    out: VecDeque<Request>,
    done: VecDeque<BlockDone>,
    data_out: Vec<Vec<u8>>,
}

impl Driver {
    /// A driver that has not looked for a device yet.
    pub fn new(config: HostConfig) -> Self {
        let slots = config.slots.clamp(2, 64);
        Driver {
            config: HostConfig { slots, max_transfer_blocks: config.max_transfer_blocks.max(1), ..config },
            units: Vec::new(),
            probe: None,
            failed: None,
            tags: vec![Use::Free; usize::from(slots)],
            // The last slot is kept for queries.
            free_tags: (0..slots - 1).rev().collect(),
            waiting: VecDeque::new(),
            joins: Vec::new(),
            free_joins: Vec::new(),
            out: VecDeque::with_capacity(usize::from(slots)),
            done: VecDeque::with_capacity(usize::from(slots)),
            data_out: vec![Vec::new(); usize::from(slots)],
        }
    }

    /// Begins to find out what the device is. Block requests may be submitted when [`Driver::is_ready`].
    pub fn start(&mut self) {
        self.probe = Some(Probe::new(self.config.hpb));
        self.step_probe();
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
    #[inline]
    pub fn submit(&mut self, request: &BlockRequest) {
        let in_range = self
            .unit(request.lun)
            .is_some_and(|u| u64::from(request.block) + u64::from(request.blocks) <= u64::from(u.blocks));
        if !in_range {
            let error = Some(Sense::LBA_OUT_OF_RANGE);
            return self.done.push_back(BlockDone { cookie: request.cookie, tag: 0, error });
        }
        let most = u32::from(self.config.max_transfer_blocks);
        if request.blocks <= most || matches!(request.op, BlockOp::Discard | BlockOp::Flush) {
            return self.send_or_wait(*request, NO_JOIN);
        }
        let join = self.new_join(request.cookie, request.blocks.div_ceil(most));
        let mut part = *request;
        let mut left = request.blocks;
        while left > 0 {
            part.blocks = left.min(most);
            self.send_or_wait(part, join);
            part.block += part.blocks;
            left -= part.blocks;
        }
    }

    /// The next request for the device; its [`Driver::data_out`] is valid until the next input.
    #[inline]
    #[must_use]
    pub fn poll_request(&mut self) -> Option<Request> {
        self.out.pop_front()
    }

    /// The next block request that has ended.
    #[inline]
    #[must_use]
    pub fn poll_done(&mut self) -> Option<BlockDone> {
        self.done.pop_front()
    }

    /// Parameter list of the request with `tag`; empty for most.
    pub fn data_out(&self, tag: u8) -> &[u8] {
        match self.tags[usize::from(tag)] {
            Use::Block { part: BlockRequest { op: BlockOp::Discard, .. }, .. } => &self.data_out[usize::from(tag)],
            _ => &[],
        }
    }

    /// The block request that `tag` carries, as cookie, first block and blocks; for whoever moves its data.
    #[inline]
    pub fn carried(&self, tag: u8) -> Option<BlockRequest> {
        match self.tags[usize::from(tag)] {
            Use::Block { part, .. } => Some(part),
            _ => None,
        }
    }

    /// A reply of the device with its data-in. One whose tag is not in use is ignored.
    #[inline]
    pub fn on_reply(&mut self, reply: &Reply, data_in: &[u8]) {
        let Some(&used) = self.tags.get(usize::from(reply.tag)) else { return };
        if let ReplyBody::Response(Response { status: Status::Good, hpb: Some(n), .. }) = &reply.body {
            self.notified(n);
        }
        match used {
            Use::Free => return,
            Use::Probe => return self.on_probe_reply(reply, data_in),
            Use::Map { lun, at } => {
                let good = matches!(&reply.body, ReplyBody::Response(r) if r.status == Status::Good);
                self.release(reply.tag);
                if let Some(lu) = self.hpb_of(lun) {
                    lu.loaded(at, good.then_some(data_in));
                }
            }
            Use::Block { part, join, retries, hpb } => {
                let response = match &reply.body {
                    ReplyBody::Response(r) => r,
                    _ => &Response { status: Status::TaskAborted, ..Response::GOOD },
                };
                if response.status == Status::Good {
                    self.release(reply.tag);
                    self.end(part.cookie, reply.tag, join, None);
                } else {
                    self.on_error(reply.tag, part, join, retries, hpb, response);
                }
            }
        }
        self.run_map_worker();
        self.send_waiting();
    }

    fn on_error(&mut self, tag: u8, part: BlockRequest, join: u16, retries: u8, hpb: bool, r: &Response) {
        const UNIT_ATTENTION: u8 = 6;
        const ILLEGAL_REQUEST: u8 = 5;
        let key = r.sense.map_or(0, |s| s.key);
        let busy = matches!(r.status, Status::Busy | Status::TaskSetFull | Status::TaskAborted);
        // A device that refuses an HPB READ may still serve the READ: Linux has no such way back.
        let plain = hpb && key == ILLEGAL_REQUEST;
        if retries < RETRIES && (busy || key == UNIT_ATTENTION || plain) {
            self.tags[usize::from(tag)] = Use::Block { part, join, retries: retries + 1, hpb: false };
            let request = self.build(tag, &part, plain);
            return self.out.push_back(request);
        }
        self.release(tag);
        self.end(part.cookie, tag, join, r.sense.or(Some(Sense { key: 0x0B, asc: 0, ascq: 0 })));
    }

    /// The controller and the device are being reset: commands in flight are sent again, map loads are forgotten.
    pub fn reset(&mut self) {
        self.out.clear();
        for unit in self.units.iter_mut().flatten() {
            if let Some(hpb) = &mut unit.hpb {
                hpb.reset();
            }
        }
        let mut again = Vec::new();
        for tag in 0..self.tags.len() as u8 {
            match self.tags[usize::from(tag)] {
                Use::Block { part, join, .. } => {
                    again.push((part, join));
                    self.release(tag);
                }
                Use::Map { .. } => self.release(tag),
                Use::Free | Use::Probe => {}
            }
        }
        for unit in self.units.iter_mut().flatten() {
            if let Some(hpb) = &mut unit.hpb {
                hpb.present();
            }
        }
        for item in again.into_iter().rev() {
            self.waiting.push_front(item);
        }
        self.send_waiting();
    }

    /// HPB counters of a unit.
    pub fn counters(&self, lun: u8) -> Option<&HpbCounters> {
        self.unit(lun)?.hpb.as_ref().map(HpbLu::counters)
    }

    /// HPB memory of a unit.
    pub fn memory(&self, lun: u8) -> Option<HostMemory> {
        self.unit(lun)?.hpb.as_ref().map(HpbLu::memory)
    }

    /// HPB of a unit, for those who look at its states.
    pub fn hpb(&self, lun: u8) -> Option<&HpbLu> {
        self.unit(lun)?.hpb.as_ref()
    }

    /// Blocks of a unit.
    pub fn unit_blocks(&self, lun: u8) -> Option<u32> {
        self.unit(lun).map(|u| u.blocks)
    }

    /// Whether nothing is in flight or waiting.
    pub fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.tags.iter().all(|t| *t == Use::Free)
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

    fn hpb_of(&mut self, lun: u8) -> Option<&mut HpbLu> {
        self.units.get_mut(usize::from(lun))?.as_mut()?.hpb.as_mut()
    }

    fn notified(&mut self, n: &HpbNotification) {
        if !is_acceptable(n) {
            return;
        }
        if n.operation == HpbNotification::RESET {
            // A reset concerns every HPB unit, whatever the notification names (Linux ufshpb_dev_reset_handler).
            self.units.iter_mut().flatten().filter_map(|u| u.hpb.as_mut()).for_each(|hpb| {
                hpb.notified(n);
            });
        } else if let Some(hpb) = self.hpb_of(n.lun) {
            hpb.notified(n);
        }
    }

    #[inline]
    fn send_or_wait(&mut self, part: BlockRequest, join: u16) {
        match self.free_tags.pop() {
            Some(tag) => self.send(tag, part, join),
            None => self.waiting.push_back((part, join)),
        }
    }

    #[inline]
    fn send(&mut self, tag: u8, part: BlockRequest, join: u16) {
        self.tags[usize::from(tag)] = Use::Block { part, join, retries: 0, hpb: false };
        let request = self.build(tag, &part, false);
        self.out.push_back(request);
    }

    /// The command for a part. Writes make their entries dirty here, before they are sent.
    #[inline]
    fn build(&mut self, tag: u8, part: &BlockRequest, plain: bool) -> Request {
        let bytes = part.blocks * readpath_kit::BLOCK_BYTES;
        let lba = u64::from(part.block);
        let hpb = self.units[usize::from(part.lun)].as_mut().and_then(|u| u.hpb.as_mut());
        let (expected_bytes, cdb) = match part.op {
            BlockOp::Read => {
                let entry = if plain { None } else { hpb.and_then(|h| h.entry_for(part.block, part.blocks)) };
                let cdb = match entry {
                    Some(entry) => {
                        if let Use::Block { hpb, .. } = &mut self.tags[usize::from(tag)] {
                            *hpb = true;
                        }
                        Cdb::HpbRead { lba: part.block, blocks: part.blocks as u8, entry, flags: 0, read_id: 0 }
                    }
                    None => Cdb::Read { form: Form::Ten, lba, blocks: part.blocks, flags: 0 },
                };
                (bytes, cdb)
            }
            BlockOp::Write | BlockOp::WriteFua => {
                if let Some(hpb) = hpb {
                    hpb.mark_dirty(part.block, part.blocks);
                }
                let flags = if part.op == BlockOp::WriteFua { FLAG_FUA } else { 0 };
                (bytes, Cdb::Write { form: Form::Ten, lba, blocks: part.blocks, flags })
            }
            BlockOp::Discard => {
                if let Some(hpb) = hpb {
                    hpb.mark_dirty(part.block, part.blocks);
                }
                let list = &mut self.data_out[usize::from(tag)];
                encode_unmap(&[(lba, part.blocks)], list);
                (list.len() as u32, Cdb::Unmap { list_bytes: list.len() as u16 })
            }
            BlockOp::Flush => (0, Cdb::SynchronizeCache { form: Form::Ten, lba: 0, blocks: 0, immed: false }),
        };
        Request { lun: part.lun, tag, body: RequestBody::Command(Command { expected_bytes, cdb }) }
    }

    fn send_waiting(&mut self) {
        while !self.waiting.is_empty()
            && let Some(tag) = self.free_tags.pop()
        {
            let (part, join) = self.waiting.pop_front().expect("not empty");
            self.send(tag, part, join);
        }
    }

    /// Sends map loads as tags allow; they go before waiting block requests, as Linux inserts them at the head.
    fn run_map_worker(&mut self) {
        for lun in 0..self.units.len() {
            let Some(unit) = &mut self.units[lun] else { continue };
            let Some(hpb) = &mut unit.hpb else { continue };
            while hpb.has_work()
                && let Some(request) = hpb.next_work(!self.free_tags.is_empty())
            {
                let tag = self.free_tags.pop().expect("checked above");
                self.tags[usize::from(tag)] = Use::Map { lun: lun as u8, at: request.at };
                // The bitmap starts clean now, but writes that are already in flight may reach the device after it has
                // put the entries together, or before: their entries are not to be trusted.
                for used in &self.tags {
                    if let Use::Block { part, .. } = used
                        && usize::from(part.lun) == lun
                        && matches!(part.op, BlockOp::Write | BlockOp::WriteFua | BlockOp::Discard)
                    {
                        hpb.mark_dirty(part.block, part.blocks);
                    }
                }
                let pages = request.bytes.next_multiple_of(readpath_kit::BLOCK_BYTES);
                let cdb = Cdb::HpbReadBuffer { buffer_id: 1, at: request.at, alloc: request.bytes };
                let command = Command { expected_bytes: pages, cdb };
                self.out.push_back(Request { lun: lun as u8, tag, body: RequestBody::Command(command) });
            }
        }
    }

    #[inline]
    fn release(&mut self, tag: u8) {
        self.tags[usize::from(tag)] = Use::Free;
        if tag != self.config.slots - 1 {
            self.free_tags.push(tag);
        }
    }

    #[inline]
    fn end(&mut self, cookie: u32, tag: u8, join: u16, error: Option<Sense>) {
        if join == NO_JOIN {
            return self.done.push_back(BlockDone { cookie, tag, error });
        }
        let j = &mut self.joins[usize::from(join)];
        j.error = j.error.or(error);
        j.left -= 1;
        if j.left == 0 {
            self.done.push_back(BlockDone { cookie: j.cookie, tag, error: j.error });
            self.free_joins.push(join);
        }
    }

    fn new_join(&mut self, cookie: u32, left: u32) -> u16 {
        let join = Join { cookie, left, error: None };
        match self.free_joins.pop() {
            Some(i) => {
                self.joins[usize::from(i)] = join;
                i
            }
            None => {
                self.joins.push(join);
                (self.joins.len() - 1) as u16
            }
        }
    }

    fn step_probe(&mut self) {
        let Some(probe) = &self.probe else { return };
        match probe.request() {
            Some(body) => {
                let tag = self.config.slots - 1;
                self.tags[usize::from(tag)] = Use::Probe;
                self.out.push_back(Request { lun: 0, tag, body });
            }
            None => {
                let probe = self.probe.take().expect("seen above");
                for (lun, blocks, hpb) in probe.units {
                    let lun = usize::from(lun);
                    if self.units.len() <= lun {
                        self.units.resize_with(lun + 1, || None);
                    }
                    self.units[lun] = Some(Unit { blocks, hpb });
                }
                self.run_map_worker();
            }
        }
    }

    fn on_probe_reply(&mut self, reply: &Reply, data_in: &[u8]) {
        self.tags[usize::from(reply.tag)] = Use::Free;
        let Some(probe) = &mut self.probe else { return };
        match probe.on_reply(&reply.body, data_in) {
            Ok(()) => self.step_probe(),
            Err(e) => {
                self.failed = Some(e);
                self.probe = None;
            }
        }
    }
}
