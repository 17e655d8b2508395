// SPDX-License-Identifier: MIT OR Apache-2.0
//! The driver's HPB work apart from requests: notifications, map loads, timers, sleep, parameters, and getters. How a
//! unit uses them is not known here.

use super::Driver;
use super::tags::{MAX_SLOTS, Tag, TagState, Tags, Use};
use crate::block::BlockOp;
use crate::hpb::{HostMemory, HpbCounters, HpbLu, HpbRequest, LuState, Port, Route, TimedWhat, UnitHpb};
use crate::params::{HpbParam, ParamError};
use readpath_kit::{BLOCK_BYTES, FrontQueue, Ns};
use readpath_proto::hpb::is_acceptable;
use readpath_proto::typed::{HpbNotification, Reply, ReplyBody, Response, Status, SubRegion};

/// When and how each command was sent, for policies and the prototype.
pub(super) struct SendTimes {
    sent: [Ns; MAX_SLOTS],
    route: [Route; MAX_SLOTS],
}

/// A limit on the memory of a unit's HPB from `at` on.
pub(super) struct Limit {
    at: Ns,
    lun: u8,
    bytes: u64,
}

impl Default for SendTimes {
    fn default() -> Self {
        SendTimes { sent: [Ns::ZERO; MAX_SLOTS], route: [Route::Other; MAX_SLOTS] }
    }
}

struct UnitPort<'a> {
    lun: u8,
    tags: &'a mut Tags,
    out: &'a mut FrontQueue<Tag>,
    waiting: u32,
}

impl Port for UnitPort<'_> {
    fn has_tag(&self) -> bool {
        self.tags.has_free()
    }

    fn in_flight(&self) -> u32 {
        self.tags.in_use() + self.waiting
    }

    fn send(&mut self, request: HpbRequest) -> bool {
        let Some(tag) = self.tags.take() else { return false };
        let (used, at, map_bytes, blocks) = match request {
            HpbRequest::Load { at, bytes, room_bytes } => (Use::Map, at, bytes, room_bytes / BLOCK_BYTES),
            HpbRequest::Drop { region } => (Use::Unmap, SubRegion { region, index: 0 }, 0, 0),
        };
        self.tags[tag] = TagState { used, lun: self.lun, at, map_bytes, blocks, ..TagState::FREE };
        self.out.push_back(tag);
        true
    }

    fn writes_in_flight(&self, mut each: impl FnMut(u32, u32)) {
        let states = self.tags.iter().map(|(_, state)| state);
        for t in states.filter(|t| t.used == Use::Block && t.lun == self.lun && t.writes()) {
            each(t.block, t.blocks);
        }
    }
}

impl Driver {
    /// The next deadline for [`Driver::advance`]; [`Ns::NEVER`] for a host without timers. Timers exist for HPB in
    /// host control mode, for a host that waits for tags as Linux does, and for one whose reads wait for their
    /// pre-requests.
    #[inline(always)]
    pub fn next_deadline(&self) -> Ns {
        self.timer
    }

    /// Handles timers that are due at `now`. It may queue requests.
    pub fn advance(&mut self, now: Ns) {
        self.each_standard(|hpb| hpb.advance(now));
        self.change_limits(now);
        self.run_map_worker(now);
        self.wake_long_reads();
        self.find_timer();
    }

    /// Runs the timer of host control mode at `now`, whenever it is due: for a replay of another host's commands,
    /// whose timer has another phase.
    pub fn poll_hpb(&mut self, now: Ns) {
        self.each_standard(|hpb| hpb.poll(now));
        self.run_map_worker(now);
        self.find_timer();
    }

    /// Before the host sleeps: nothing is sent for HPB any more. Linux does this when it suspends the UFS device,
    /// which then gets no other requests either; here requests continue, without entries.
    pub fn suspend(&mut self) {
        self.each_unit(UnitHpb::suspend);
        self.find_timer();
    }

    /// The host is awake again, and continues with its maps.
    pub fn resume(&mut self, now: Ns) {
        self.each_unit(|hpb| hpb.resume(now));
        self.run_map_worker(now);
        self.find_timer();
    }

    /// Changes a parameter of HPB of a unit, as a write to its file in `hpb_params` does.
    ///
    /// # Errors
    /// As on Linux: no HPB (ENODEV), not in host control mode (EOPNOTSUPP), out of range (EINVAL).
    pub fn store_hpb_param(&mut self, lun: u8, param: HpbParam, value: u32) -> Result<(), ParamError> {
        let hpb = self.hpb_of(lun).filter(|hpb| hpb.state() != LuState::Failed);
        hpb.ok_or(ParamError::NoHpb { lun })?.store_param(param, value)
    }

    /// HPB counters of a unit.
    pub fn counters(&self, lun: u8) -> Option<&HpbCounters> {
        self.unit(lun)?.hpb.counters()
    }

    /// HPB memory of a unit.
    pub fn memory(&self, lun: u8) -> Option<HostMemory> {
        self.unit(lun)?.hpb.memory()
    }

    /// HPB counters of all units together, if any unit has HPB.
    pub fn all_counters(&self) -> Option<HpbCounters> {
        self.luns().filter_map(|lun| self.counters(lun).copied()).reduce(|sum, unit| sum.plus(&unit))
    }

    /// HPB memory of all units together.
    pub fn all_memory(&self) -> Option<HostMemory> {
        self.luns().filter_map(|lun| self.memory(lun)).reduce(|sum, unit| sum.plus(&unit))
    }

    /// All possible unit numbers.
    pub fn luns(&self) -> impl Iterator<Item = u8> + use<> {
        0..self.units.len() as u8
    }

    /// HPB of a unit, for readers of its states.
    pub fn hpb(&self, lun: u8) -> Option<&HpbLu> {
        self.unit(lun)?.hpb.standard()
    }

    fn unit_hpb(&mut self, lun: u8) -> Option<&mut UnitHpb> {
        Some(&mut self.units.get_mut(usize::from(lun))?.as_mut()?.hpb)
    }

    pub(super) fn hpb_of(&mut self, lun: u8) -> Option<&mut HpbLu> {
        self.unit_hpb(lun)?.standard_mut()
    }

    pub(super) fn each_unit(&mut self, mut what: impl FnMut(&mut UnitHpb)) {
        self.units.iter_mut().flatten().for_each(|unit| what(&mut unit.hpb));
    }

    pub(super) fn each_standard(&mut self, mut what: impl FnMut(&mut HpbLu)) {
        self.each_unit(|hpb| hpb.standard_mut().into_iter().for_each(&mut what));
    }

    pub(super) fn find_timer(&mut self) {
        let timers = self.units.iter().flatten().filter_map(|unit| unit.hpb.standard()).map(HpbLu::next_timer);
        let limit = self.limits.front().map_or(Ns::NEVER, |limit| limit.at);
        self.timer = timers.min().unwrap_or(Ns::NEVER).min(self.requeue_deadline()).min(limit);
    }

    /// Schedules limits of the memory of a unit's HPB, in bytes, at times that are in order and not in the past. They
    /// are checked now: a limit below the size of tables and pinned regions is refused.
    ///
    /// # Errors
    /// The index of the refused limit, and why: no HPB, a unit that follows Linux, or too little memory.
    pub fn schedule_limits(&mut self, lun: u8, limits: &[(Ns, u64)]) -> Result<(), (usize, ParamError)> {
        let hpb = self.hpb(lun).ok_or((0, ParamError::NoHpb { lun }))?;
        for (i, &(_, bytes)) in limits.iter().enumerate() {
            hpb.check_limit(bytes).map_err(|error| (i, error))?;
        }
        self.limits.extend(limits.iter().map(|&(at, bytes)| Limit { at, lun, bytes }));
        // The limits of several units were queued one unit after the other.
        self.limits.make_contiguous().sort_by_key(|limit| limit.at);
        self.find_timer();
        Ok(())
    }

    /// Limits the memory of a unit's HPB to `bytes` from now on. It may queue requests.
    ///
    /// # Errors
    /// No HPB, one that follows Linux, or too little memory.
    pub fn limit_memory(&mut self, now: Ns, lun: u8, bytes: u64) -> Result<(), ParamError> {
        self.hpb_of(lun).ok_or(ParamError::NoHpb { lun })?.limit_memory(bytes)?;
        self.run_map_worker(now);
        Ok(())
    }

    fn change_limits(&mut self, now: Ns) {
        while let Some(&Limit { at, lun, bytes }) = self.limits.front()
            && at <= now
        {
            self.limits.pop_front();
            // The limit was checked when it was scheduled, and the size of tables is constant.
            let limited = self.hpb_of(lun).map(|hpb| hpb.limit_memory(bytes));
            debug_assert!(!matches!(limited, Some(Err(_))));
        }
    }

    /// Notes that the command of `tag` is being sent. Loads that a policy requests now are sent with the next reply.
    #[inline(never)]
    pub(super) fn note_sent(&mut self, now: Ns, tag: Tag) {
        let Some(times) = &mut self.times else { return };
        times.sent[tag.row()] = now;
        let alone = self.tags.in_use() == 1;
        let lun = self.tags[tag].lun;
        let Some(unit) = self.units.get(usize::from(lun)).and_then(Option::as_ref) else { return };
        times.route[tag.row()] = unit.hpb.standard().filter(|_| alone).map_or(Route::Other, |hpb| hpb.route());
        self.map_work |= unit.hpb.is_kicked();
    }

    /// Passes on the prototype's notices and the times of reads and loads, and sends the next command that waits for
    /// its unit's queue depth.
    #[inline(never)]
    pub(super) fn note_reply(&mut self, now: Ns, reply: &Reply) {
        if let ReplyBody::Response(Response { status: Status::Good, groups: Some(notice), .. }) = &reply.body
            && let Some(update) = self.unit_hpb(reply.lun).and_then(|hpb| hpb.noticed(notice))
        {
            self.each_unit(|hpb| hpb.saw(update));
        }
        let Some(&state) = self.tags.get(reply.tag) else { return };
        if let Some(depths) = &mut self.depths {
            depths.ended(Tag(reply.tag), &mut self.out, &self.tags);
        }
        if matches!(state.used, Use::Block | Use::Ordered) {
            self.hpb_of(state.lun).into_iter().for_each(|hpb| hpb.block_ended(now));
        }
        let Some(times) = &self.times else { return };
        let TagState { used, op, lun, hpb, retries, block, blocks, at, .. } = state;
        let good = matches!(&reply.body, ReplyBody::Response(Response { status: Status::Good, .. }));
        let what = match used {
            Use::Block if op == BlockOp::Read && retries == 0 => {
                let route = times.route[usize::from(reply.tag)];
                TimedWhat::Read { block, blocks, with_entry: hpb, route }
            }
            Use::Map => TimedWhat::Load(at),
            _ => return,
        };
        let took = now.saturating_sub(times.sent[usize::from(reply.tag)]);
        let others = self.tags.in_use().saturating_sub(1) + self.waiting.len() as u32;
        if let Some(unit) = self.hpb_of(lun).filter(|_| good) {
            unit.timed(now, what, took, others);
        }
    }

    pub(super) fn notified(&mut self, n: &HpbNotification) {
        if !is_acceptable(n) {
            return;
        }
        self.map_work = true;
        let needs_unit = self.quirks.resets_need_hpb_unit;
        let heard = self.hpb_of(n.lun).is_some_and(|hpb| hpb.notified(n));
        // A reset concerns every HPB unit, whatever the notification names.
        if n.operation == HpbNotification::RESET && (heard || !needs_unit) {
            self.each_standard(|hpb| {
                if needs_unit || hpb.listens() {
                    hpb.device_reset();
                }
            });
        }
    }

    /// Lets the units' workers send as tags allow: before waiting block requests, as Linux does.
    #[inline(never)]
    pub(super) fn run_map_worker(&mut self, now: Ns) {
        self.map_work = false;
        let Driver { units, tags, out, waiting, .. } = self;
        for (lun, unit) in units.iter_mut().enumerate() {
            let Some(unit) = unit else { continue };
            let mut port = UnitPort { lun: lun as u8, tags, out, waiting: waiting.len() as u32 };
            self.map_work |= unit.hpb.run_worker(now, &mut port);
        }
        if self.quirks.worker_sleeps_for_tags || self.times.is_some() {
            // A worker may have begun to wait.
            self.find_timer();
        }
    }
}
