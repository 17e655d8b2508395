// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is dropped, and what stays, at an abort, a reset of a logical unit or of the device, and a loss of power.

use crate::back::{Hardware, Job, MediaMode, Probe};
use crate::device::UfsDevice;
use crate::front::{Kind, TAGS};
use readpath_flash::DieSched;
use readpath_kit::Ns;
use readpath_proto::typed::{ReplyBody, Request, TaskRequest, TaskResponse};

impl<S: DieSched, M: MediaMode, P: Probe> UfsDevice<S, M, P> {
    /// Hardware reset (RST_n) or link startup at `now`: every request in progress is dropped without reply; the
    /// mapping and the write buffer stay; HPB state is lost and the host is informed (HPB operation 02h). RPMB drops
    /// its request and its response.
    pub fn hardware_reset(&mut self, now: Ns) {
        if P::ACTIVE {
            self.back.probe_mut().reset(now);
        }
        self.ftl.drop_requests(now, &mut self.back);
        self.front.reset(&self.config);
        self.follow_flags();
        self.host_map.hardware_reset();
        self.hpb.hardware_reset();
        self.rpmb.reset();
        self.find_rare();
    }

    /// Drops what a power cut takes besides the state of flash translation: requests, operations, caches, HPB.
    pub(crate) fn lose_sram(&mut self) {
        // The requests of these reads no longer exist.
        let owner_reads = self.back.ops().in_progress().filter(|op| op.job == Job::OwnerRead).count();
        self.back.stats().hpb_forged += owner_reads as u64;
        self.back.lose_power();
        self.front.lose_power(&self.config);
        self.follow_flags();
        self.host_map.lose_power(&self.config);
        self.hpb.lose_power();
        self.rpmb.lose_power();
        self.find_rare();
    }

    /// Carries out a task management function; the requests that it drops get no reply.
    pub(crate) fn manage(&mut self, now: Ns, tag: u8, lun: u8, task: TaskRequest) {
        let service_response = if usize::from(lun) >= self.front.units() && lun & 0x80 == 0 {
            0x09
        } else {
            let mut present = false;
            for other in 0..TAGS {
                let slot = self.front.slot(other as u8);
                let meant = slot.active
                    && other != usize::from(tag)
                    && slot.lun == task.lun
                    && slot.is_command()
                    && match task.function {
                        0x01 | 0x80 => other == usize::from(task.task_tag),
                        _ => true,
                    };
                present |= meant;
                if meant && matches!(task.function, 0x01 | 0x02 | 0x04 | 0x08) {
                    self.drop_request(now, other as u8);
                }
            }
            match task.function {
                0x01 | 0x02 | 0x04 => 0x00,
                0x08 => {
                    self.front.target_mut().attention(task.lun);
                    0x00
                }
                0x80 | 0x81 => {
                    if present {
                        0x08
                    } else {
                        0x00
                    }
                }
                _ => 0x04,
            }
        };
        self.front.slot_mut(tag).outcome = Some(ReplyBody::Task(TaskResponse { service_response }));
        self.send_reply(now, tag);
    }

    /// Frees the link at `now`: dropped transfers do not occupy it.
    pub fn free_link(&mut self, now: Ns) {
        self.front.set_busy_until(now);
    }

    /// Accepts a request at `now` that is never answered: its tag is in use until it is dropped.
    pub fn swallow(&mut self, now: Ns, request: &Request) {
        if self.front.is_free(request.tag) {
            if P::ACTIVE {
                self.back.probe_mut().request(now, request, &[]);
            }
            let slot = self.front.slot_mut(request.tag);
            slot.begin(request.lun);
            slot.kind = Kind::Other;
            slot.body = request.body;
        }
    }

    /// Drops the command `tag`, if it exists, without reply.
    pub fn drop_command(&mut self, now: Ns, tag: u8) {
        if !self.front.is_free(tag) {
            self.drop_request(now, tag);
        }
    }

    pub(crate) fn drop_request(&mut self, now: Ns, tag: u8) {
        if P::ACTIVE {
            self.back.probe_mut().dropped(now, tag);
        }
        self.front.drop_request(tag);
        self.ftl.drop_request(now, tag, &mut self.back);
        self.hpb.read_buffers().leave(tag);
        self.end_read_buffer(now, tag);
    }
}
