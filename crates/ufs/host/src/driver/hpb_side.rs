// SPDX-License-Identifier: MIT OR Apache-2.0
//! The driver's part in HPB beside the way of a request: notifications, map loads, timers, sleep, parameters, and what can be
//! asked about it.

use super::{BlockOp, Driver, MAX_SLOTS, TagState, Use};
use crate::hpb::{GroupLu, HostMemory, HpbCounters, HpbLu, HpbParam, HpbRequest, LuState, ParamError, Port, TimedWhat};
use readpath_kit::{FrontQueue, Ns};
use readpath_proto::groups::GroupHint;
use readpath_proto::hpb::is_acceptable;
use readpath_proto::typed::{Cdb, HpbEntry, HpbNotification, Reply, ReplyBody, Response, Status, SubRegion};
use std::collections::VecDeque;

/// What policies of this host's own need of the driver.
pub(super) struct Managed {
    /// When the command of each tag was sent.
    sent: [Ns; MAX_SLOTS],
    /// Limits of memory to come, each with its time and unit.
    limits: VecDeque<(Ns, u8, u64)>,
}

impl Default for Managed {
    fn default() -> Self {
        Managed { sent: [Ns::ZERO; MAX_SLOTS], limits: VecDeque::new() }
    }
}

/// What a unit's worker sends through.
struct Tags<'a> {
    lun: u8,
    tags: &'a mut [TagState; MAX_SLOTS],
    free: &'a mut Vec<u8>,
    out: &'a mut FrontQueue<u8>,
}

impl Port for Tags<'_> {
    fn has_tag(&self) -> bool {
        !self.free.is_empty()
    }

    fn send(&mut self, request: HpbRequest) -> bool {
        let Some(tag) = self.free.pop() else { return false };
        let (used, at, map_bytes) = match request {
            HpbRequest::Load { at, bytes } => (Use::Map, at, bytes),
            HpbRequest::Drop { region } => (Use::Unmap, SubRegion { region, index: 0 }, 0),
        };
        self.tags[usize::from(tag)] = TagState { used, lun: self.lun, at, map_bytes, ..TagState::FREE };
        self.out.push_back(tag);
        true
    }

    fn writes_in_flight(&self, mut each: impl FnMut(u32, u32)) {
        for t in self.tags.iter().filter(|t| t.used == Use::Block && t.lun == self.lun && t.writes()) {
            each(t.block, t.blocks);
        }
    }
}

impl Driver {
    /// When [`Driver::advance`] has something to do; [`Ns::NEVER`] for a host without timers. Only HPB in host control mode
    /// has some, a host that waits for tags as Linux does, and one whose reads wait for their pre-requests.
    #[inline(always)]
    pub fn next_deadline(&self) -> Ns {
        self.timer
    }

    /// Handles timers that are due at `now`. There may be requests to send afterwards.
    pub fn advance(&mut self, now: Ns) {
        self.each_hpb(|hpb| hpb.advance(now));
        self.change_limits(now);
        self.run_map_worker(now);
        self.wake_long_reads();
        self.find_timer();
    }

    /// The host is about to sleep: nothing is sent for HPB any more. Linux does so when it suspends the UFS device, which has
    /// nothing else to do then; here requests go on, without entries.
    pub fn suspend(&mut self) {
        self.each_hpb(HpbLu::suspend);
        self.each_groups(|groups| groups.set_asleep(true));
        self.find_timer();
    }

    /// The host is awake again, and goes on with the maps that it had.
    pub fn resume(&mut self, now: Ns) {
        self.each_hpb(|hpb| hpb.resume(now));
        self.each_groups(|groups| groups.set_asleep(false));
        self.run_map_worker(now);
        self.find_timer();
    }

    /// An application, by any number that means it, comes to the foreground, as far as the system says so (Android does):
    /// policies with lists of applications load ahead. Nothing else depends on it.
    pub fn foreground(&mut self, now: Ns, app: u32) {
        self.each_hpb(|hpb| hpb.foreground(app));
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
        if let Some(groups) = self.groups(lun) {
            return Some(groups.counters());
        }
        self.hpb(lun).filter(|hpb| hpb.state() != LuState::Failed).map(HpbLu::counters)
    }

    /// HPB memory of a unit.
    pub fn memory(&self, lun: u8) -> Option<HostMemory> {
        self.groups(lun).map(|groups| groups.memory()).or_else(|| self.hpb(lun).map(HpbLu::memory))
    }

    /// HPB counters of all units together, if any has some.
    pub fn all_counters(&self) -> Option<HpbCounters> {
        self.luns().filter_map(|lun| self.counters(lun).copied()).reduce(|sum, unit| sum.plus(&unit))
    }

    /// HPB memory of all units together.
    pub fn all_memory(&self) -> Option<HostMemory> {
        self.luns().filter_map(|lun| self.memory(lun)).reduce(|sum, unit| sum.plus(&unit))
    }

    /// Numbers that units may have.
    pub fn luns(&self) -> impl Iterator<Item = u8> + use<> {
        0..self.units.len() as u8
    }

    /// HPB of a unit, for those who look at its states.
    pub fn hpb(&self, lun: u8) -> Option<&HpbLu> {
        self.unit(lun)?.hpb.as_ref()
    }

    /// The prototype's groups of a unit.
    pub(super) fn groups(&self, lun: u8) -> Option<&GroupLu> {
        self.unit(lun)?.groups.as_deref()
    }

    pub(super) fn groups_of(&mut self, lun: u8) -> Option<&mut GroupLu> {
        self.units.get_mut(usize::from(lun))?.as_mut()?.groups.as_deref_mut()
    }

    pub(super) fn hpb_of(&mut self, lun: u8) -> Option<&mut HpbLu> {
        self.units.get_mut(usize::from(lun))?.as_mut()?.hpb.as_mut()
    }

    pub(super) fn each_hpb(&mut self, what: impl FnMut(&mut HpbLu)) {
        self.units.iter_mut().flatten().filter_map(|u| u.hpb.as_mut()).for_each(what);
    }

    pub(super) fn each_groups(&mut self, mut what: impl FnMut(&mut GroupLu)) {
        self.units.iter_mut().flatten().filter_map(|u| u.groups.as_mut()).for_each(|groups| what(groups));
    }

    pub(super) fn find_timer(&mut self) {
        let timers = self.units.iter().flatten().filter_map(|u| u.hpb.as_ref()).map(HpbLu::next_timer);
        let limit = self.managed.as_ref().and_then(|m| m.limits.front()).map_or(Ns::NEVER, |l| l.0);
        self.timer = timers.min().unwrap_or(Ns::NEVER).min(self.requeue_deadline()).min(limit);
    }

    /// Lets the memory of a unit's HPB have other limits, in bytes, at times that do not decrease and are not over. It is
    /// checked now whether they are possible: a limit below what tables and pinned regions take is not.
    ///
    /// # Errors
    /// No HPB, one that follows Linux, or too little memory; and which limit it was, from 0.
    pub fn schedule_limits(&mut self, lun: u8, limits: &[(Ns, u64)]) -> Result<(), (usize, ParamError)> {
        let hpb = self.hpb(lun).ok_or((0, ParamError::NoHpb { lun }))?;
        for (i, &(_, bytes)) in limits.iter().enumerate() {
            hpb.check_limit(bytes).map_err(|error| (i, error))?;
        }
        let Some(m) = &mut self.managed else { return Err((0, ParamError::CannotShrink)) };
        m.limits.extend(limits.iter().map(|&(at, bytes)| (at, lun, bytes)));
        // Those of several units are told one unit after the other.
        m.limits.make_contiguous().sort_by_key(|limit| limit.0);
        self.find_timer();
        Ok(())
    }

    /// Limits the memory of a unit's HPB to `bytes` from now on. There may be requests to send afterwards.
    ///
    /// # Errors
    /// No HPB, one that follows Linux, or too little memory.
    pub fn limit_memory(&mut self, now: Ns, lun: u8, bytes: u64) -> Result<(), ParamError> {
        self.hpb_of(lun).ok_or(ParamError::NoHpb { lun })?.limit_memory(bytes)?;
        self.run_map_worker(now);
        Ok(())
    }

    /// Changes limits whose time has come.
    fn change_limits(&mut self, now: Ns) {
        while let Some(m) = &mut self.managed
            && let Some(&(at, lun, bytes)) = m.limits.front()
            && at <= now
        {
            m.limits.pop_front();
            // Checked when it was scheduled; what tables take does not change.
            let limited = self.hpb_of(lun).map(|hpb| hpb.limit_memory(bytes));
            debug_assert!(!matches!(limited, Some(Err(_))));
        }
    }

    /// The command of `tag` is being sent. What the policy wants loaded now goes out with the next reply.
    #[inline(never)]
    pub(super) fn note_sent(&mut self, now: Ns, tag: u8) {
        if let Some(m) = &mut self.managed {
            m.sent[usize::from(tag)] = now;
        }
        let lun = self.tags[usize::from(tag)].lun;
        self.map_work |= self.hpb(lun).is_some_and(HpbLu::is_kicked);
    }

    /// The read of `tag` is being sent, with the `entry` that HPB has for it as a word, if any: the prototype has its own.
    #[inline(never)]
    pub(super) fn managed_entry(&mut self, now: Ns, tag: u8, entry: Option<u64>) -> Option<u64> {
        let TagState { lun, block, blocks, plain, .. } = self.tags[usize::from(tag)];
        let Some(groups) = self.groups_of(lun) else {
            self.note_sent(now, tag);
            return entry;
        };
        let hint = if plain { None } else { groups.hint_for(block, blocks) };
        let kicked = groups.is_kicked();
        self.map_work |= kicked;
        self.tags[usize::from(tag)].hpb = hint.is_some();
        hint.map(|hint| u64::from_ne_bytes(hint.to_entry().0))
    }

    /// The command for the read of `tag`, which has an `entry`.
    pub(super) fn read_with(&self, tag: u8, entry: HpbEntry) -> Cdb {
        let TagState { lun, block, blocks, .. } = self.tags[usize::from(tag)];
        if self.groups(lun).is_some() {
            return Cdb::HintedRead { lba: block, blocks, hint: GroupHint::from_entry(entry), flags: 0 };
        }
        Cdb::HpbRead { lba: block, blocks: blocks as u8, entry, flags: 0, read_id: 0 }
    }

    /// A reply has come: how long reads of one block and loads took.
    #[inline(never)]
    pub(super) fn note_reply(&mut self, now: Ns, reply: &Reply) {
        if let ReplyBody::Response(Response { status: Status::Good, groups: Some(notice), .. }) = &reply.body
            && let Some(update) = self.groups_of(reply.lun).and_then(|groups| groups.notified(notice))
        {
            self.each_groups(|groups| groups.saw(update));
        }
        let Some(m) = &self.managed else { return };
        let Some(&TagState { used, op, lun, hpb, retries, block, blocks, at, .. }) =
            self.tags.get(usize::from(reply.tag))
        else {
            return;
        };
        let good = matches!(&reply.body, ReplyBody::Response(Response { status: Status::Good, .. }));
        let what = match used {
            Use::Block if op == BlockOp::Read && blocks == 1 && retries == 0 => {
                TimedWhat::Read { block, with_entry: hpb }
            }
            Use::Map => TimedWhat::Load(at),
            _ => return,
        };
        let took = now.saturating_sub(m.sent[usize::from(reply.tag)]);
        if let Some(unit) = self.hpb_of(lun).filter(|_| good) {
            unit.timed(now, what, took);
        }
    }

    pub(super) fn notified(&mut self, n: &HpbNotification) {
        if !is_acceptable(n) {
            return;
        }
        self.map_work = true;
        let strict = self.sent.is_some();
        let heard = self.hpb_of(n.lun).is_some_and(|hpb| hpb.notified(n));
        // A reset concerns every HPB unit, whatever the notification names. Linux hears it only if that is one of them.
        if n.operation == HpbNotification::RESET && (heard || !strict) {
            self.each_hpb(|hpb| {
                if strict || hpb.listens() {
                    hpb.device_reset();
                }
            });
        }
    }

    /// Lets the units' workers send what they have to, as tags allow: before waiting block requests, as Linux inserts it at
    /// the head.
    #[inline(never)]
    pub(super) fn run_map_worker(&mut self, now: Ns) {
        self.map_work = false;
        let Driver { units, tags, free_tags, out, .. } = self;
        for (lun, unit) in units.iter_mut().enumerate() {
            let Some(unit) = unit.as_mut() else { continue };
            let mut port = Tags { lun: lun as u8, tags, free: free_tags, out };
            if let Some(hpb) = &mut unit.hpb {
                hpb.run_worker(now, &mut port);
                self.map_work |= hpb.is_kicked();
            } else if let Some(groups) = &mut unit.groups {
                groups.run_worker(&mut port);
                self.map_work |= groups.is_kicked();
            }
        }
        if self.sent.is_some() {
            // A worker may have begun to wait.
            self.find_timer();
        }
    }
}
