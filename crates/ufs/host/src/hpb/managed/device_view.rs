// SPDX-License-Identifier: MIT OR Apache-2.0
//! The assumptions of a managed unit about the device, if its policy or its long reads need them: which maps the
//! device has needed recently ([`DeviceReads`]), and whether it is idle. They decide the reads for which a
//! pre-request pays, and the loads that wait until the device is idle. They derive from the host's own commands and
//! their times only.

use super::pre_requests::{PreRequestGain, Route};
use super::written::Written;
use super::{MOST_WANTED, ManagedDriver};
use crate::hpb::table::Part;
use crate::ids::{Id, SubRegionId};
use crate::policy::{Age, DeviceReads, MapPolicy};
use readpath_kit::Ns;
use std::collections::VecDeque;

/// Host memory of counters and means; a constant for the same reason as that of [`ManagedDriver`].
const STATE_BYTES: u64 = 920;

pub(super) struct DeviceView {
    reads: DeviceReads,
    written: Written,
    gain: PreRequestGain,
    /// Pre-requests are sent only where they pay.
    measures: bool,
    /// How the newest read was sent.
    route: Route,
    /// Other commands in flight, and waiting requests, at the last count.
    others: u32,
    /// Sub-regions to be loaded when the device is idle, in order.
    later: VecDeque<SubRegionId>,
    /// When the last block request ended; below, how long after that the device counts as idle.
    ended: Ns,
    quiet: Ns,
    /// When to check for idleness again.
    timer: Ns,
}

/// Work for the idle device.
pub(super) enum Idle {
    Load(SubRegionId),
    /// The device is busy: check again with the next reply.
    Busy,
    Nothing,
}

impl DeviceView {
    pub(super) fn new(sub_regions: u32, measures: bool, quiet: Ns) -> Self {
        DeviceView {
            reads: DeviceReads::new(sub_regions),
            written: Written::new(),
            gain: PreRequestGain::new(),
            measures,
            route: Route::Other,
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

    pub(super) fn note_written(&mut self, part: Part) {
        self.written.add(part.block, part.blocks);
    }

    /// How long ago the device needed the map for a part of a read; `None` if the part needs no map.
    pub(super) fn age(&self, part: Part) -> Option<Age> {
        (!self.written.all(part.block, part.blocks)).then(|| self.reads.age(part.sub_region))
    }

    /// Notes the time of a read, with `others` other commands in flight.
    pub(super) fn timed(&mut self, route: Route, blocks: u32, took: Ns, others: u32) {
        self.others = others;
        if others == 0 {
            self.gain.timed(route, blocks, took.0);
        }
    }
}

impl ManagedDriver {
    /// How the newest read was sent.
    pub(in crate::hpb) fn route(&self) -> Route {
        self.view.as_ref().map_or(Route::Other, |view| view.route)
    }

    /// A block request of the unit has ended.
    pub(in crate::hpb) fn block_ended(&mut self, now: Ns) {
        self.view.iter_mut().for_each(|view| view.ended = now);
    }

    pub(super) fn view_timer(&self) -> Ns {
        self.view.as_ref().map_or(Ns::NEVER, |view| view.timer)
    }

    /// Whether the timer was due.
    pub(super) fn view_timer_is_over(&mut self, now: Ns) -> bool {
        let Some(view) = self.view.as_mut().filter(|view| view.timer <= now) else { return false };
        view.timer = Ns::NEVER;
        true
    }

    /// Whether a read with entries is to be sent without them. The device needed its map `age` ago, or does not need
    /// it (`None`).
    pub(super) fn avoids_pre_request(&mut self, age: Option<Age>) -> bool {
        let Some(view) = self.view.as_mut().filter(|view| view.measures) else { return false };
        !view.gain.pays(age.unwrap_or(Age::IN_WINDOW))
    }

    pub(super) fn set_route(&mut self, route: Route) {
        self.view.iter_mut().for_each(|view| view.route = route);
    }

    /// Notes that the device will need the map for a part of a read; returns whether the worker may have work.
    pub(super) fn device_reads(&mut self, part: Part) -> bool {
        let Some(view) = self.view.as_mut().filter(|view| !view.written.all(part.block, part.blocks)) else {
            return false;
        };
        let Some(left) = view.reads.read(part.sub_region) else { return false };
        let now = self.policy.loads_at_once(left, view.others);
        if !now && !self.policy.loads_when_idle(left, true) {
            return false;
        }
        if self.is_wanted.contains(left.row()) {
            let waits = view.later.iter().position(|&srgn| srgn == left).filter(|_| now);
            let Some(i) = waits else { return true };
            view.later.remove(i);
            self.is_wanted.set(left.row(), false);
        }
        if now {
            return self.want(left);
        }
        if view.later.len() >= MOST_WANTED {
            self.next_later();
        }
        self.is_wanted.insert(left.row());
        self.view.iter_mut().for_each(|view| view.later.push_back(left));
        true
    }

    fn next_later(&mut self) -> Option<SubRegionId> {
        let srgn = self.view.as_mut()?.later.pop_front()?;
        self.is_wanted.set(srgn.row(), false);
        Some(srgn)
    }

    pub(super) fn forget_later(&mut self) {
        while self.next_later().is_some() {}
    }

    /// Sets the number of other commands in flight and waiting requests.
    pub(super) fn set_others(&mut self, others: u32) {
        self.view.iter_mut().for_each(|view| view.others = others);
    }

    /// What to load while no other load is queued.
    pub(super) fn when_idle(&mut self, now: Ns) -> Idle {
        loop {
            let Some(view) = self.view.as_mut().filter(|view| !view.later.is_empty()) else { return Idle::Nothing };
            if view.others > 0 {
                return Idle::Busy;
            }
            if now < view.ended + view.quiet {
                view.timer = view.ended + view.quiet;
                return Idle::Nothing;
            }
            let Some(srgn) = self.next_later() else { return Idle::Nothing };
            let in_sram = self.view.as_ref().is_some_and(|view| view.reads.age(srgn) <= Age::JUST_LEFT);
            if self.policy.loads_when_idle(srgn, in_sram) {
                return Idle::Load(srgn);
            }
        }
    }
}
