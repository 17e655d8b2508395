// SPDX-License-Identifier: MIT OR Apache-2.0
//! Passes each flash operation that has ended to the part that it belongs to.

use crate::back::{Hardware, Job, MediaMode, Probe};
use crate::device::UfsDevice;
use crate::front::Kind;
use readpath_flash::{DieSched, Done};
use readpath_kit::Ns;

impl<S: DieSched, M: MediaMode, P: Probe> UfsDevice<S, M, P> {
    #[cold]
    pub(crate) fn feed_starved(&mut self, now: Ns) {
        while self.front.has_starved() && self.back.ops().has_room() {
            let Some(tag) = self.front.next_starved() else { return };
            if self.front.is_alive(tag) {
                match self.front.slot(tag.tag).kind {
                    Kind::Other => self.issue_map_loads(now, tag.tag),
                    _ => self.issue_reads(now, tag.tag, Ns::ZERO),
                }
            }
        }
    }

    #[inline(always)]
    pub(crate) fn flash_done(&mut self, now: Ns, done: Done) {
        if P::ACTIVE {
            let is_alive = self.front.is_alive(self.back.ops().get(done.op).tag);
            self.back.probe_flash(done, is_alive);
        }
        match self.back.ops().get(done.op).job {
            Job::HostRead => self.read_done(now, done),
            Job::MapLoad => self.map_loaded(now, done.op),
            job => self.other_done(now, done, job),
        }
        if self.front.has_starved() {
            self.feed_starved(now);
        }
    }

    #[inline(never)]
    fn other_done(&mut self, now: Ns, done: Done, job: Job) {
        let (ftl, back) = (&mut self.ftl, &mut self.back);
        if job.writes() {
            back.write_ended();
        }
        match job {
            Job::SpareRead | Job::TableRead | Job::CollectMapLoad => ftl.collect_read_done(now, done.op, back),
            Job::MoveRead => ftl.move_read_done(now, done.op, back),
            Job::WriteBackLoad => ftl.write_back_loaded(now, done.op, back),
            Job::Program => ftl.programmed(now, done.op, back),
            Job::ZoneProgram => ftl.zone_programmed(now, done.op, back),
            Job::RestProgram => ftl.rest_programmed(now, done.op, back),
            Job::RestRead => ftl.rests_loaded(now, done.op, back),
            Job::RefreshRead => ftl.refresh_read(now, done.op, back),
            Job::RefreshProgram => ftl.refresh_programmed(now, done.op, back),
            Job::MoveProgram => ftl.move_programmed(now, done.op, back),
            Job::TableProgram => ftl.table_programmed(now, done.op, back),
            Job::AnchorProgram => ftl.anchor_programmed(now, done.op, back),
            Job::Erase => ftl.erased(now, done.op, back),
            Job::RpmbRead | Job::RpmbProgram => return self.rpmb_done(now, done.op),
            Job::MetaProgram => {
                ftl.meta_programmed(done.op, back);
                // Copies of the written page are renewed before other work begins.
                self.settle(now);
                return self.pump(now);
            }
            _ => return self.read_op_done(now, done, job),
        }
        self.settle(now);
    }

    /// An operation has ended that belongs to a request, or that requests wait for.
    fn read_op_done(&mut self, now: Ns, done: Done, job: Job) {
        match job {
            Job::BufferLoad => self.buffer_map_loaded(now, done.op),
            Job::OwnerRead => self.owner_known(now, done.op),
            Job::HintedRead => self.hinted_read_done(now, done),
            _ => unreachable!("{job:?} is not one of them"),
        }
    }
}
