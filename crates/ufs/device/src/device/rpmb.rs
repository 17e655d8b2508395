// SPDX-License-Identifier: MIT OR Apache-2.0
//! SECURITY PROTOCOL IN and OUT of the RPMB well-known logical unit. Messages are served one at a time: while flash
//! reads or programs for one of them, later ones wait.
//!
//! A read takes the time of a page read, a write or a key that of a program, on die 0, behind the die's other work.
//! The authentication code of a message costs no time of its own.

use crate::back::{Hardware, Job, MediaMode, Op, Probe};
use crate::device::UfsDevice;
use crate::ftl::bytes::Own;
use crate::rpmb::Next;
use readpath_flash::{DieSched, OpId, Ppn};
use readpath_kit::{BLOCK_BYTES, Ns};
use readpath_proto::rpmb::{self, FRAME_BYTES, Frame, PROTOCOL_INFORMATION, PROTOCOL_UFS, REGION_0, SecurityProtocol};
use readpath_proto::typed::{Cdb, ReplyBody, Residual, Response, Sense};

/// Supported protocols (SPC-4): this list, and that of UFS.
const PROTOCOLS: [u8; 10] = [0, 0, 0, 0, 0, 0, 0, 2, PROTOCOL_INFORMATION, PROTOCOL_UFS];
/// There is no certificate (SPC-4).
const NO_CERTIFICATE: [u8; 4] = [0; 4];

impl<S: DieSched, M: MediaMode, P: Probe> UfsDevice<S, M, P> {
    /// Serves a command that only the RPMB unit has.
    pub(crate) fn security_protocol(&mut self, now: Ns, tag: u8, cdb: &Cdb) {
        let Some(command) = SecurityProtocol::parse(cdb) else { return self.check(now, tag, Sense::INVALID_OPCODE) };
        let SecurityProtocol { out, protocol, specific, in_sectors, length } = command;
        match (protocol, specific) {
            _ if in_sectors => self.check(now, tag, Sense::INVALID_FIELD),
            (PROTOCOL_INFORMATION, 0) if !out => self.answer(now, tag, length, |data| data.extend(PROTOCOLS)),
            (PROTOCOL_INFORMATION, 1) if !out => self.answer(now, tag, length, |data| data.extend(NO_CERTIFICATE)),
            (PROTOCOL_UFS, REGION_0) if length.is_multiple_of(FRAME_BYTES as u32) => {
                if self.rpmb.is_busy() {
                    return self.rpmb.wait(self.front.tag_ref(tag));
                }
                match out {
                    true => self.take_message(now, tag, length as usize),
                    false => self.give_response(now, tag, length),
                }
            }
            _ => self.check(now, tag, Sense::INVALID_FIELD),
        }
    }

    fn take_message(&mut self, now: Ns, tag: u8, length: usize) {
        let slot = self.front.slot_mut(tag);
        let data = std::mem::take(&mut slot.data_out);
        let Some(message) = data.get(..length) else { return self.check(now, tag, Sense::INVALID_FIELD) };
        // Only writes have more than one frame.
        let kind = message.first_chunk().map(|frame| Frame::parse(frame).kind);
        if length > FRAME_BYTES && kind != Some(rpmb::request::WRITE) {
            return self.check(now, tag, Sense::INVALID_FIELD);
        }
        if slot.expected_bytes > length as u32 {
            let residual = Residual::Under(slot.expected_bytes - length as u32);
            slot.outcome = Some(ReplyBody::Response(Response { residual, ..Response::GOOD }));
        }
        let (job, blocks) = match self.rpmb.take(message) {
            Next::Reply => return self.send_reply(now, tag),
            Next::Read(blocks) => (Job::RpmbRead, blocks),
            Next::Program => (Job::RpmbProgram, 0),
        };
        let count = (usize::from(blocks) * rpmb::BLOCK_BYTES).div_ceil(BLOCK_BYTES as usize) as u16;
        // RPMB has its own place on the first die, which no slice names.
        let op = Op { tag: self.front.tag_ref(tag), count, ..Op::new(job, Ppn(0)) };
        self.back.begin(now, op);
    }

    fn give_response(&mut self, now: Ns, tag: u8, length: u32) {
        if length > 0 && self.rpmb.response().is_empty() {
            return self.check(now, tag, Sense::COMMAND_SEQUENCE);
        }
        let response = self.rpmb.response().to_vec();
        self.answer(now, tag, length, |data| data.extend(response));
    }

    /// A read or a program for a message has ended.
    pub(crate) fn rpmb_done(&mut self, now: Ns, id: OpId) {
        let op = self.back.end(id);
        let is_alive = self.front.is_alive(op.tag);
        if op.job == Job::RpmbRead {
            self.rpmb.was_read(is_alive);
        } else {
            let has_failed = self.back.program_fails();
            if let Some(update) = self.rpmb.was_programmed(has_failed, is_alive) {
                self.ftl.export_other(Own::Rpmb(update), &mut self.back);
            }
        }
        if is_alive {
            self.send_reply(now, op.tag.tag);
        }
        while !self.rpmb.is_busy()
            && let Some(tag) = self.rpmb.next_waiting()
        {
            if self.front.is_alive(tag) {
                self.control(now, tag.tag);
            }
        }
    }
}
