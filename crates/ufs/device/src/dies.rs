// SPDX-License-Identifier: MIT OR Apache-2.0
//! Between firmware and dies: how long each flash operation takes, and who is told when it ends.

use crate::device::{UfsDevice, Work};
use crate::media::MediaMode;
use crate::ops::{Job, Op};
use crate::probe::{Probe, Resource, StageOf};
use crate::request::Kind;
use readpath_flash::{DieSched, Done, FlashOp, OpId, OpKind};
use readpath_kit::Ns;

impl<S: DieSched, M: MediaMode, P: Probe> UfsDevice<S, M, P> {
    #[cold]
    pub(crate) fn feed_starved(&mut self, now: Ns) {
        while !self.starved.is_empty() && self.ops.has_room() {
            let Some((tag, life)) = self.starved.pop_front() else { return };
            if self.is_alive(tag, life) {
                match self.slots[usize::from(tag)].kind {
                    Kind::Other => self.issue_map_loads(now, tag),
                    _ => self.issue_reads(now, tag, Ns::ZERO),
                }
            }
        }
    }

    pub(crate) fn stage_of(&self, id: OpId) -> StageOf {
        let op = self.ops.get(id);
        match op.job {
            Job::MapLoad => StageOf::MapLoad(op.lpn),
            Job::Program | Job::TableProgram => StageOf::Program,
            Job::Erase => StageOf::Erase,
            Job::SpareRead | Job::TableRead | Job::CollectMapLoad | Job::MoveRead | Job::MoveProgram => {
                StageOf::Collect
            }
            Job::WriteBackLoad | Job::MetaProgram | Job::AnchorProgram => StageOf::WriteBack,
            _ if self.is_alive(op.tag, op.life) => StageOf::Request(op.tag),
            _ => StageOf::Dropped,
        }
    }

    /// The firmware core is reserved for `op`; its die comes next. All operations pass the firmware before their dies, so the
    /// order of arrival at the dies is known here.
    #[inline(always)]
    pub(crate) fn go_to_die(&mut self, id: OpId, op: &Op) {
        let die = self.dies_of_slices.die_of(op.ppn);
        if !op.job.is_program() && self.nand.plans_ahead(die) {
            return self.start_on_die(self.firmware_free, id, op, die, false);
        }
        self.nand.expect(die);
        self.will_be_done(self.firmware_free, Work::Flash(id));
    }

    /// Hands an operation to its die.
    #[inline(always)]
    pub(crate) fn start_on_die(&mut self, arrival: Ns, id: OpId, op: &Op, die: u32, expected: bool) {
        let t = &self.config.flash;
        let (kind, array, transfer) = match op.job {
            Job::HostRead | Job::HintedRead | Job::MoveRead | Job::TableRead => {
                (OpKind::Read, t.read, Ns(t.transfer_block.0 * u64::from(op.count)))
            }
            Job::MapLoad | Job::BufferLoad | Job::CollectMapLoad | Job::WriteBackLoad => {
                (OpKind::Read, t.map_read, t.map_transfer)
            }
            Job::SpareRead | Job::OwnerRead => (OpKind::Read, t.read, self.config.spare_transfer()),
            Job::Program | Job::MoveProgram | Job::TableProgram | Job::MetaProgram | Job::AnchorProgram => {
                let slices = self.config.geometry.slices_per_unit();
                (OpKind::Program, t.program, Ns(t.transfer_block.0 * u64::from(slices)))
            }
            Job::Erase => (OpKind::Erase, t.erase, Ns::ZERO),
            Job::Free => unreachable!("a freed operation has no work"),
        };
        let array = if op.slc { self.slc_time(kind) } else { array };
        let array = if kind == OpKind::Read { self.faults.with_retries(array) } else { array };
        let report_at_end = self.reports_at_end | (op.job != Job::HostRead);
        self.nand.submit(arrival, id, FlashOp { die, kind, array, transfer, report_at_end, expected });
    }

    #[inline(always)]
    pub(crate) fn flash_done(&mut self, now: Ns, done: Done) {
        if P::ACTIVE {
            self.probe_flash(done);
        }
        match self.ops.get(done.op).job {
            Job::HostRead => self.read_done(now, done),
            job => self.other_done(now, done, job),
        }
        if !self.starved.is_empty() {
            self.feed_starved(now);
        }
    }

    #[inline(never)]
    pub(crate) fn other_done(&mut self, now: Ns, done: Done, job: Job) {
        match job {
            Job::HostRead => self.read_done(now, done),
            Job::MapLoad => self.map_loaded(now, done.op),
            Job::BufferLoad => self.buffer_map_loaded(now, done.op),
            Job::SpareRead | Job::TableRead | Job::CollectMapLoad => self.collect_read_done(now, done.op),
            Job::MoveRead => self.move_read_done(now, done.op),
            Job::WriteBackLoad => self.write_back_loaded(now, done.op),
            Job::OwnerRead => self.owner_known(now, done.op),
            Job::HintedRead => self.hinted_read_done(now, done),
            Job::Program
            | Job::MoveProgram
            | Job::TableProgram
            | Job::MetaProgram
            | Job::AnchorProgram
            | Job::Erase => {
                self.array_writes -= 1;
                match job {
                    Job::Program => self.programmed(now, done.op),
                    Job::MoveProgram => self.move_programmed(now, done.op),
                    Job::TableProgram => self.table_programmed(now, done.op),
                    Job::MetaProgram => self.meta_programmed(now, done.op),
                    Job::AnchorProgram => self.anchor_programmed(now, done.op),
                    _ => self.erased(now, done.op),
                }
            }
            Job::Free => unreachable!("a freed operation is not scheduled"),
        }
    }

    pub(crate) fn probe_flash(&mut self, done: Done) {
        let op = *self.ops.get(done.op);
        let of = self.stage_of(done.op);
        let (t, g) = (&self.config.flash, &self.config.geometry);
        let slc = [OpKind::Read, OpKind::Program, OpKind::Erase].map(|kind| self.slc_time(kind));
        let [read, program, erase] = if op.slc { slc } else { [t.read, t.program, t.erase] };
        let die = g.die_of(op.ppn);
        let channel = g.channel_of(die);
        let (die, channel) = (Resource::Die(die), Resource::Channel(channel));
        let from = |end: Ns, span: Ns| end.saturating_sub(span);
        match op.job {
            Job::Erase => self.probe.stage(of, die, from(done.at, erase), done.at),
            job if job.writes() => {
                let transfer = Ns(t.transfer_block.0 * u64::from(g.slices_per_unit()));
                self.probe.stage(of, channel, from(done.first_stage, transfer), done.first_stage);
                self.probe.stage(of, die, from(done.at, program), done.at);
            }
            job => {
                let (array, transfer) = match job {
                    Job::HostRead | Job::HintedRead | Job::MoveRead | Job::TableRead => {
                        (read, Ns(t.transfer_block.0 * u64::from(op.count)))
                    }
                    Job::SpareRead | Job::OwnerRead => (read, self.config.spare_transfer()),
                    _ => (t.map_read, t.map_transfer),
                };
                self.probe.stage(of, die, from(done.first_stage, array), done.first_stage);
                self.probe.stage(of, channel, from(done.at, transfer), done.at);
            }
        }
    }
}
