// SPDX-License-Identifier: MIT OR Apache-2.0
//! Commands and task management requests in a host's memory: how they are read and answered. Their fields are copied
//! when they are read, so that a host that changes them later changes nothing.

use crate::controller::{Controller, MOST_TASKS, MOST_TRANSFERS, Slot, TaskSlot};
use crate::memory::{GuestMem, Unreachable};
use crate::prdt::{Prdt, PrdtError};
use crate::register::interrupt;
use readpath_proto::transfer::{
    COMMAND_TYPE_UFS, OCS_OFFSET, TransferDescriptor, UTMRD_BYTES, UTMRD_REQUEST_OFFSET, UTMRD_RESPONSE_OFFSET,
    UTRD_BYTES, ocs,
};
use readpath_proto::typed::{Cdb, Command, Reply, ReplyBody, Request, RequestBody};
use readpath_proto::upiu::{self, Direction, RESPONSE_BYTES, UPIU_BYTES};

/// The most bytes of parameters of one command: the limit of a list of UNMAP.
const MOST_PARAMETERS: u32 = 1 << 16;
/// COMMAND UPIU.
const COMMAND: u8 = 0x01;
/// QUERY REQUEST UPIU.
const QUERY: u8 = 0x16;

/// Why a command gets no response UPIU.
struct Refused(u8);

impl From<Unreachable> for Refused {
    fn from(_: Unreachable) -> Self {
        Refused(ocs::INVALID_TABLE)
    }
}

impl From<PrdtError> for Refused {
    fn from(error: PrdtError) -> Self {
        match error {
            PrdtError::Unreachable => Refused(ocs::INVALID_PRDT),
            PrdtError::Short => Refused(ocs::DATA_SIZE),
        }
    }
}

impl Controller {
    /// The device's tag for the task management request in a slot.
    pub fn task_tag(slot: u8) -> u8 {
        MOST_TRANSFERS as u8 + slot
    }

    /// The slot of a task management request by the tag of its reply; `None` for another request.
    pub(crate) fn task_slot(tag: u8) -> Option<u8> {
        tag.checked_sub(MOST_TRANSFERS as u8).filter(|slot| usize::from(*slot) < MOST_TASKS)
    }

    /// Reads the command in a slot that was started; its tag becomes the slot. `None` if it cannot be read: then it
    /// has been answered.
    #[inline]
    pub fn fetch<M: GuestMem>(&mut self, slot: u8, mem: &mut M) -> Option<Request> {
        self.try_fetch(slot, mem).unwrap_or_else(|Refused(status)| {
            self.finish(slot, status, mem);
            None
        })
    }

    /// Parameters of the last fetched request: the parameter list of a command, the descriptor of a query, or the
    /// entries of an HPB READ.
    pub fn parameters(&self) -> &[u8] {
        &self.parameters
    }

    fn try_fetch<M: GuestMem>(&mut self, index: u8, mem: &mut M) -> Result<Option<Request>, Refused> {
        let mut bytes = [0; UTRD_BYTES];
        let slot = &mut self.transfer[usize::from(index)];
        *slot = Slot { is_busy: true, interrupts: true, ..Slot::default() };
        mem.read(self.transfers.base.wrapping_add(u64::from(index) * UTRD_BYTES as u64), &mut bytes)?;
        let descriptor = TransferDescriptor::parse(&bytes);
        slot.interrupts = descriptor.interrupt;
        if descriptor.command_type != COMMAND_TYPE_UFS || descriptor.crypto {
            return Err(Refused(ocs::INVALID_TABLE));
        }
        let base = descriptor.command_base;
        slot.response = base.wrapping_add(descriptor.response_offset.into());
        slot.response_room = descriptor.response_bytes;
        slot.prdt =
            Prdt { address: base.wrapping_add(descriptor.prdt_offset.into()), entries: descriptor.prdt_entries };
        let mut head = [0; UPIU_BYTES];
        mem.read(base, &mut head)?;
        slot.tag = head[3];
        self.bytes.clear();
        self.bytes.extend_from_slice(&head);
        let segment = match head[0] & 0x3F {
            QUERY => usize::from(u16::from_be_bytes([head[10], head[11]])),
            COMMAND => usize::from(head[8]) * 32,
            _ => 0,
        };
        // Bytes that do not fit before the response are left out, and the UPIU is then too short.
        if segment > 0 && UPIU_BYTES + segment <= descriptor.response_offset as usize {
            self.bytes.resize(UPIU_BYTES + segment, 0);
            mem.read(base.wrapping_add(UPIU_BYTES as u64), &mut self.bytes[UPIU_BYTES..])?;
        }
        let Ok((mut request, segment)) = upiu::parse_request(&self.bytes) else {
            let reply = Reply { lun: head[2], tag: index, body: ReplyBody::Reject };
            self.complete(&reply, &[], mem);
            return Ok(None);
        };
        self.parameters.clear();
        self.parameters.extend_from_slice(segment);
        match request.body {
            RequestBody::Command(Command { expected_bytes, cdb }) => {
                slot.expected_bytes = expected_bytes;
                let is_list = upiu::direction(&cdb) == Direction::Out && !matches!(cdb, Cdb::Write { .. });
                if is_list && expected_bytes > 0 {
                    self.parameters.resize(expected_bytes.min(MOST_PARAMETERS) as usize, 0);
                    slot.prdt.gather(mem, &mut self.parameters)?;
                }
            }
            // Task management requests have a list of their own.
            RequestBody::Task(_) => return Err(Refused(ocs::INVALID_TABLE)),
            RequestBody::NopOut | RequestBody::Query(_) => {}
        }
        request.tag = index;
        Ok(Some(request))
    }

    /// Reads the data of a write that was fetched. False if it cannot be read: then the command has been answered.
    pub(crate) fn gather<M: GuestMem>(&mut self, slot: u8, mem: &mut M, data: &mut [u8]) -> bool {
        match self.transfer[usize::from(slot)].prdt.gather(mem, data) {
            Ok(()) => true,
            Err(error) => {
                self.finish(slot, Refused::from(error).0, mem);
                false
            }
        }
    }

    /// Answers the command in slot `reply.tag`. `data` is its data-in: blocks or other bytes, limited to what the
    /// host expects, or a descriptor. A command that is no longer in flight is not answered.
    #[inline]
    pub fn complete<M: GuestMem>(&mut self, reply: &Reply, data: &[u8], mem: &mut M) {
        let Some(&slot) = self.transfer.get(usize::from(reply.tag)).filter(|slot| slot.is_busy) else { return };
        let is_query = matches!(reply.body, ReplyBody::Query(_));
        if !is_query && !data.is_empty() {
            let moved = &data[..data.len().min(slot.expected_bytes as usize)];
            if let Err(error) = slot.prdt.scatter(mem, moved) {
                return self.finish(reply.tag, Refused::from(error).0, mem);
            }
        }
        let answer = Reply { tag: slot.tag, ..*reply };
        upiu::encode_reply(&answer, if is_query { data } else { &[] }, &mut self.bytes);
        // A host may read the full length of a response.
        let length = self.bytes.len().max(RESPONSE_BYTES.min(slot.response_room as usize));
        self.bytes.resize(length, 0);
        let status = match self.bytes.len() <= slot.response_room as usize {
            true => mem.write(slot.response, &self.bytes).map_or(ocs::INVALID_TABLE, |()| ocs::SUCCESS),
            false => ocs::RESPONSE_SIZE,
        };
        self.finish(reply.tag, status, mem);
    }

    /// Ends a command with an overall status: writes it to the descriptor, then raises the interrupt.
    fn finish<M: GuestMem>(&mut self, index: u8, status: u8, mem: &mut M) {
        let at = u64::from(index) * UTRD_BYTES as u64 + OCS_OFFSET as u64;
        if mem.write(self.transfers.base.wrapping_add(at), &[status, 0, 0, 0]).is_err() {
            self.bus_failed();
        }
        let bit = 1 << index;
        self.transfers.doorbell &= !bit;
        self.notified |= bit;
        let slot = &mut self.transfer[usize::from(index)];
        slot.is_busy = false;
        if slot.interrupts || status != ocs::SUCCESS || self.aggregates() {
            self.raised |= interrupt::TRANSFER;
        }
    }

    /// Reads the task management request in a slot that was started, in the device's form. `None` if it cannot be
    /// read: then it has been answered.
    pub(crate) fn fetch_task<M: GuestMem>(&mut self, slot: u8, mem: &mut M) -> Option<Request> {
        let mut bytes = [0; UTMRD_BYTES];
        self.task[usize::from(slot)] = TaskSlot { is_busy: true, interrupts: true, tag: 0 };
        let at = self.tasks.base.wrapping_add(u64::from(slot) * UTMRD_BYTES as u64);
        let parsed = match mem.read(at, &mut bytes) {
            Ok(()) => upiu::parse_request(&bytes[UTMRD_REQUEST_OFFSET..UTMRD_RESPONSE_OFFSET]),
            Err(_) => {
                self.finish_task(slot, ocs::INVALID_TABLE, mem);
                return None;
            }
        };
        let Ok((Request { lun, tag, body: RequestBody::Task(mut task) }, _)) = parsed else {
            self.finish_task(slot, ocs::INVALID_TABLE, mem);
            return None;
        };
        let interrupts = bytes[3] & 1 == 1;
        self.task[usize::from(slot)] = TaskSlot { is_busy: true, interrupts, tag };
        // The device knows commands by their slots.
        let meant = self.transfer.iter().position(|slot| slot.is_busy && slot.tag == task.task_tag);
        task.task_tag = meant.map_or(u8::MAX, |slot| slot as u8);
        Some(Request { lun, tag: Controller::task_tag(slot), body: RequestBody::Task(task) })
    }

    /// Answers the task management request in a slot.
    pub(crate) fn complete_task<M: GuestMem>(&mut self, slot: u8, reply: &Reply, mem: &mut M) {
        let Some(&TaskSlot { is_busy: true, tag, .. }) = self.task.get(usize::from(slot)) else { return };
        upiu::encode_reply(&Reply { tag, ..*reply }, &[], &mut self.bytes);
        let at = u64::from(slot) * UTMRD_BYTES as u64 + UTMRD_RESPONSE_OFFSET as u64;
        let written = mem.write(self.tasks.base.wrapping_add(at), &self.bytes);
        self.finish_task(slot, if written.is_ok() { ocs::SUCCESS } else { ocs::INVALID_TABLE }, mem);
    }

    fn finish_task<M: GuestMem>(&mut self, index: u8, status: u8, mem: &mut M) {
        let at = u64::from(index) * UTMRD_BYTES as u64 + OCS_OFFSET as u64;
        if mem.write(self.tasks.base.wrapping_add(at), &[status, 0, 0, 0]).is_err() {
            self.bus_failed();
        }
        self.tasks.doorbell &= !(1 << index);
        let slot = &mut self.task[usize::from(index)];
        slot.is_busy = false;
        if slot.interrupts || status != ocs::SUCCESS {
            self.raised |= interrupt::TASK;
        }
    }
}
