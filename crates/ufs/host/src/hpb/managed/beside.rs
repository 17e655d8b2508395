// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a managed unit knows of the device beside its own maps, if its policy or its long reads ask for it: which maps
//! the device has needed of late ([`DeviceReads`]), and whether it has anything to do. From this follow the reads for
//! which a pre-request pays, and the loads that wait until the device is idle.

use super::pays::{Pays, Went};
use super::written::Written;
use super::{MOST_WANTED, Manager};
use crate::hpb::HpbLu;
use crate::ids::{Id, SubRegionId};
use crate::policy::{Age, DeviceReads, MapPolicy};
use readpath_kit::Ns;
use std::collections::VecDeque;

/// Host memory that counters and means take; stated as for [`Manager`].
const STATE_BYTES: u64 = 920;

/// See the module.
pub(super) struct Beside {
    reads: DeviceReads,
    written: Written,
    pays: Pays,
    /// Pre-requests are sent where they pay.
    measures: bool,
    /// How the read went that was sent last.
    went: Went,
    /// Other commands in flight, and requests that wait, as far as was seen.
    others: u32,
    /// Sub-regions to be loaded when the device is idle, in order.
    later: VecDeque<SubRegionId>,
    /// When a block request has ended last, and how long after that the device counts as idle.
    ended: Ns,
    quiet: Ns,
    /// When to look again whether it is.
    timer: Ns,
}

/// What the idle device is to do.
pub(super) enum Idle {
    /// To load this.
    Load(SubRegionId),
    /// Nothing yet: it has to be looked at again with the next reply.
    Busy,
    Nothing,
}

impl Beside {
    pub(super) fn new(sub_regions: u32, measures: bool, quiet: Ns) -> Self {
        Beside {
            reads: DeviceReads::new(sub_regions),
            written: Written::new(),
            pays: Pays::new(),
            measures,
            went: Went::Other,
            others: 0,
            later: VecDeque::with_capacity(MOST_WANTED),
            ended: Ns::ZERO,
            quiet,
            timer: Ns::NEVER,
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        let later = self.later.capacity() * size_of::<SubRegionId>();
        STATE_BYTES + later as u64 + self.reads.bytes() + self.written.bytes()
    }

    pub(super) fn note_written(&mut self, block: u32, blocks: u32) {
        self.written.add(block, blocks);
    }

    /// How long ago the device needed the map for these blocks of a sub-region; `None` if it does not need it.
    pub(super) fn age(&self, srgn: SubRegionId, block: u32, blocks: u32) -> Option<Age> {
        (!self.written.all(block, blocks)).then(|| self.reads.age(srgn))
    }

    pub(super) fn next_timer(&self) -> Ns {
        self.timer
    }

    /// Whether the timer was due.
    pub(super) fn timer_is_over(&mut self, now: Ns) -> bool {
        let over = self.timer <= now;
        if over {
            self.timer = Ns::NEVER;
        }
        over
    }

    /// A read with so many other commands beside it, or one without.
    pub(super) fn timed(&mut self, went: Went, blocks: u32, took: Ns, others: u32) {
        self.others = others;
        if others == 0 {
            self.pays.timed(went, blocks, took.0);
        }
    }
}

impl Manager {
    pub(in crate::hpb) fn timer_is_over(&mut self, now: Ns) -> bool {
        self.beside.as_mut().is_some_and(|b| b.timer_is_over(now))
    }

    /// A read is about to be sent, whose map the device needed so long ago, if it needs it. Whether it is to go without
    /// an entry after all.
    pub(super) fn avoids_pre_request(&mut self, age: Option<Age>) -> bool {
        let Some(beside) = self.beside.as_mut().filter(|b| b.measures) else { return false };
        !beside.pays.pays(age.unwrap_or(Age::IN_WINDOW))
    }

    /// How the read about to be sent goes.
    pub(super) fn goes(&mut self, went: Went) {
        if let Some(beside) = &mut self.beside {
            beside.went = went;
        }
    }

    /// The device will need the map of `srgn` for these blocks. Whether the worker may have something to do.
    pub(super) fn device_reads(&mut self, srgn: SubRegionId, block: u32, blocks: u32) -> bool {
        let Some(beside) = self.beside.as_mut().filter(|b| !b.written.all(block, blocks)) else { return false };
        let Some(left) = beside.reads.read(srgn) else { return false };
        let now = self.policy.loads_at_once(left, beside.others);
        if !now && !self.policy.loads_when_idle(left, true) {
            return false;
        }
        if self.is_wanted.contains(left.row()) {
            let waits = beside.later.iter().position(|&s| s == left).filter(|_| now);
            let Some(i) = waits else { return true };
            beside.later.remove(i);
            self.is_wanted.set(left.row(), false);
        }
        if now {
            return self.want(left);
        }
        if beside.later.len() >= MOST_WANTED {
            self.forget_one();
        }
        self.is_wanted.insert(left.row());
        self.beside.iter_mut().for_each(|b| b.later.push_back(left));
        true
    }

    fn forget_one(&mut self) -> Option<SubRegionId> {
        let srgn = self.beside.as_mut()?.later.pop_front()?;
        self.is_wanted.set(srgn.row(), false);
        Some(srgn)
    }

    pub(super) fn forget_later(&mut self) {
        while self.forget_one().is_some() {}
    }

    /// So many commands are in flight or wait.
    pub(super) fn sees_others(&mut self, others: u32) {
        if let Some(beside) = &mut self.beside {
            beside.others = others;
        }
    }

    /// What to load while nothing else is wanted.
    pub(super) fn when_idle(&mut self, now: Ns) -> Idle {
        loop {
            let Some(beside) = self.beside.as_mut().filter(|b| !b.later.is_empty()) else { return Idle::Nothing };
            if beside.others > 0 {
                return Idle::Busy;
            }
            if now < beside.ended + beside.quiet {
                beside.timer = beside.ended + beside.quiet;
                return Idle::Nothing;
            }
            let Some(srgn) = self.forget_one() else { return Idle::Nothing };
            let in_sram = self.beside.as_ref().is_some_and(|b| b.reads.age(srgn) <= Age::JUST_LEFT);
            if self.policy.loads_when_idle(srgn, in_sram) {
                return Idle::Load(srgn);
            }
        }
    }
}

impl HpbLu {
    /// How the read went that was sent last.
    pub(crate) fn went(&self) -> Went {
        self.mode.manager().and_then(|m| m.beside.as_ref()).map_or(Went::Other, |b| b.went)
    }

    /// A block request of the unit has ended.
    pub(crate) fn block_ended(&mut self, now: Ns) {
        if let Some(beside) = self.mode.manager_mut().and_then(|m| m.beside.as_mut()) {
            beside.ended = now;
        }
    }
}
