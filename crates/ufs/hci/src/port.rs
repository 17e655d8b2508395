// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lower half of a host driver: requests become descriptors in memory and register writes, and interrupts become
//! replies. It follows Linux 6.1 (`ufshcd_hba_enable`, `ufshcd_link_startup`, `ufshcd_make_hba_operational`,
//! `ufshcd_change_power_mode`, `ufshcd_queuecommand`, `ufshcd_intr`) and knows neither the meaning of requests nor
//! when they are sent.

use crate::memory::{GuestMem, Unreachable};
use crate::register::{self as reg, interrupt, status};
use readpath_proto::transfer::{
    COMMAND_TYPE_UFS, OCS_OFFSET, PRDT_ENTRY_BYTES, PRDT_ENTRY_MOST, PrdtEntry, TransferDescriptor, UTMRD_BYTES,
    UTMRD_REQUEST_OFFSET, UTMRD_RESPONSE_OFFSET, UTRD_BYTES, ocs,
};
use readpath_proto::typed::{Cdb, Reply, ReplyBody, Request, RequestBody, Residual, TaskRequest, TaskResponse};
use readpath_proto::uic::{self, attribute};
use readpath_proto::upiu::{self, Direction, UPIU_BYTES, UpiuError};
use std::ops::Range;
use thiserror::Error;

/// Access to registers.
pub trait Bus {
    /// Reads a register.
    fn read(&mut self, offset: u32) -> u32;
    /// Writes a register.
    fn write(&mut self, offset: u32, value: u32);
}

/// A violation of JESD223 by the controller, or another failure.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum PortError {
    /// A step of enabling it failed.
    #[error("{step} failed: register {register:#04x} reads {value:#x}")]
    Start {
        /// The step.
        step: &'static str,
        /// The register that was read.
        register: u32,
        /// Its value.
        value: u32,
    },
    /// A UIC command failed.
    #[error("UIC command {command:#04x} failed with {code:#04x}")]
    Uic {
        /// The command.
        command: u8,
        /// Its result.
        code: u8,
    },
    /// The controller raised an error.
    #[error("the controller failed: interrupt status {0:#x}")]
    Fatal(u32),
    /// A command ended without response UPIU.
    #[error("command {tag} ended with overall status {ocs}")]
    Command {
        /// Its tag.
        tag: u8,
        /// The overall status in its descriptor.
        ocs: u8,
    },
    /// The response cannot be parsed.
    #[error(transparent)]
    Upiu(#[from] UpiuError),
    /// The tag or the data of a command exceeds the port's memory.
    #[error("a command with tag {tag} and {bytes} bytes has no room")]
    Room {
        /// Its tag.
        tag: u8,
        /// Its bytes.
        bytes: usize,
    },
    /// The memory is smaller than required.
    #[error(transparent)]
    Memory(#[from] Unreachable),
}

/// Completions reported by an interrupt, a bit for each slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Completed {
    /// Commands.
    pub transfers: u32,
    /// Task management requests.
    pub tasks: u32,
}

const TASK_LIST: u64 = 0x400;
const COMMANDS: u64 = 0x1000;
/// A UCD: the request, the response, the PRDT.
const COMMAND_BYTES: u64 = 0x6000;
const RESPONSE_OFFSET: u32 = 0xC00;
const RESPONSE_ROOM: u32 = 0x200;
const PRDT_OFFSET: u32 = 0x1000;
const MOST_ENTRIES: usize = (COMMAND_BYTES as usize - PRDT_OFFSET as usize) / PRDT_ENTRY_BYTES;
/// Data of each command.
const DATA: u64 = 0x10_0000;
const DATA_BYTES: u64 = 1 << 24;
/// PRDT entries cover a page each, unless there were more than Linux allows.
const PAGE: u32 = 4096;
const ENTRIES_OF_LINUX: u32 = 128;
/// Bytes of a response that are cleared before a command is sent.
const CLEARED: [u8; 52] = [0; 52];

/// See the module.
pub struct Port {
    base: u64,
    slots: u8,
    moves_blocks: bool,
    outstanding: u32,
    tasks: u32,
    /// Bytes that each command returns, if they have to be read.
    returns: [u32; 32],
    bytes: Vec<u8>,
    data: Vec<u8>,
}

impl Port {
    /// Bytes of memory that it uses from `base` on.
    pub const MEMORY: u64 = DATA + 32 * DATA_BYTES;

    /// A port with memory from `base` on, a multiple of 4096, and `slots` slots. Blocks of data are moved through
    /// that memory only if `moves_blocks`; otherwise the caller moves them.
    pub fn new(base: u64, slots: u8, moves_blocks: bool) -> Self {
        let (bytes, data) = (Vec::new(), Vec::new());
        Port { base, slots: slots.min(32), moves_blocks, outstanding: 0, tasks: 0, returns: [0; 32], bytes, data }
    }

    /// Resets the controller, starts the link and gives the controller its lists.
    ///
    /// # Errors
    /// The controller does not respond as required.
    pub fn start(&mut self, bus: &mut impl Bus) -> Result<(), PortError> {
        (self.outstanding, self.tasks) = (0, 0);
        let expect = |bus: &mut dyn Bus, step, register, mask, wanted| {
            let value = bus.read(register);
            if value & mask == wanted { Ok(()) } else { Err(PortError::Start { step, register, value }) }
        };
        bus.write(reg::HCE, 0);
        expect(bus, "disabling the controller", reg::HCE, 1, 0)?;
        bus.write(reg::HCE, 1);
        expect(bus, "enabling the controller", reg::HCE, 1, 1)?;
        expect(bus, "enabling the controller", reg::HCS, status::UIC_READY, status::UIC_READY)?;
        self.uic(bus, uic::opcode::LINK_STARTUP, 0, 0)?;
        let ready = status::DEVICE_PRESENT | status::TRANSFERS_READY | status::TASKS_READY | status::UIC_READY;
        expect(bus, "starting the link", reg::HCS, ready, ready)?;
        for register in (reg::UECPA..=reg::UECDME).step_by(4) {
            bus.read(register);
        }
        bus.write(reg::IE, interrupt::ALL);
        for (register, address) in [(reg::UTRLBA, self.base), (reg::UTMRLBA, self.base + TASK_LIST)] {
            bus.write(register, address as u32);
            bus.write(register + 4, (address >> 32) as u32);
        }
        bus.write(reg::UTMRLRSR, 1);
        bus.write(reg::UTRLRSR, 1);
        let lanes = self.uic(bus, uic::opcode::GET, attribute::CONNECTED_RX_LANES, 0)?;
        let gear = self.uic(bus, uic::opcode::PEER_GET, attribute::MAX_RX_HS_GEAR, 0)?;
        let fast = [
            (attribute::RX_GEAR, gear),
            (attribute::ACTIVE_RX_LANES, lanes),
            (attribute::RX_TERMINATION, 1),
            (attribute::TX_GEAR, gear),
            (attribute::ACTIVE_TX_LANES, lanes),
            (attribute::TX_TERMINATION, 1),
            (attribute::HS_SERIES, 2),
            (attribute::POWER_MODE, 0x11),
        ];
        for (attribute, value) in fast {
            self.uic(bus, uic::opcode::SET, attribute, value)?;
        }
        expect(bus, "changing the power mode", reg::HCS, status::POWER_RESULT, status::POWER_LOCAL)?;
        expect(bus, "changing the power mode", reg::IS, interrupt::POWER_MODE, interrupt::POWER_MODE)?;
        bus.write(reg::IS, interrupt::POWER_MODE);
        Ok(())
    }

    /// Runs a UIC command; returns the value.
    ///
    /// # Errors
    /// It fails.
    pub fn uic(&mut self, bus: &mut impl Bus, command: u8, attribute: u16, value: u32) -> Result<u32, PortError> {
        bus.write(reg::UCMDARG1, u32::from(attribute) << 16);
        bus.write(reg::UCMDARG2, 0);
        bus.write(reg::UCMDARG3, value);
        bus.write(reg::UICCMD, command.into());
        let raised = bus.read(reg::IS);
        if raised & interrupt::UIC_COMMAND == 0 {
            return Err(PortError::Start { step: "a UIC command", register: reg::IS, value: raised });
        }
        bus.write(reg::IS, interrupt::UIC_COMMAND);
        match bus.read(reg::UCMDARG2) as u8 {
            uic::result::SUCCESS => Ok(bus.read(reg::UCMDARG3)),
            code => Err(PortError::Uic { command, code }),
        }
    }

    fn command(&self, tag: u8) -> u64 {
        self.base + COMMANDS + u64::from(tag) * COMMAND_BYTES
    }

    fn window(&self, tag: u8) -> u64 {
        self.base + DATA + u64::from(tag) * DATA_BYTES
    }

    /// Sends a request. `data` is its data-out: parameters, a descriptor, or blocks.
    ///
    /// # Errors
    /// It exceeds the port's memory, or the memory is too small.
    pub fn send<M: GuestMem>(
        &mut self,
        bus: &mut impl Bus,
        mem: &mut M,
        request: &Request,
        data: &[u8],
    ) -> Result<(), PortError> {
        let tag = request.tag;
        let (in_upiu, bytes, direction, returns) = match &request.body {
            RequestBody::Command(command) => {
                let returns_blocks =
                    matches!(command.cdb, Cdb::Read { .. } | Cdb::HpbRead { .. } | Cdb::HintedRead { .. });
                let (direction, returns) = match upiu::direction(&command.cdb) {
                    Direction::None => (0, 0),
                    Direction::Out => (1, 0),
                    Direction::In if returns_blocks && !self.moves_blocks => (2, 0),
                    Direction::In => (2, command.expected_bytes),
                };
                (matches!(command.cdb, Cdb::HpbRead { .. }), command.expected_bytes, direction, returns)
            }
            _ => (true, 0, 0, 0),
        };
        let entry_bytes = if bytes <= ENTRIES_OF_LINUX * PAGE { PAGE } else { PRDT_ENTRY_MOST };
        let entries = bytes.div_ceil(entry_bytes) as usize;
        let out_of_upiu = if in_upiu { 0 } else { data.len() };
        if tag >= self.slots || entries > MOST_ENTRIES || u64::from(returns).max(out_of_upiu as u64) > DATA_BYTES {
            return Err(PortError::Room { tag, bytes: bytes as usize });
        }
        self.returns[usize::from(tag)] = returns;
        let (command, window) = (self.command(tag), self.window(tag));
        upiu::encode_request(request, if in_upiu { data } else { &[] }, &mut self.bytes);
        mem.write(command, &self.bytes)?;
        if out_of_upiu > 0 {
            mem.write(window, data)?;
        }
        mem.write(command + u64::from(RESPONSE_OFFSET), &CLEARED)?;
        for i in 0..entries as u32 {
            let from = i * entry_bytes;
            // The last entry is rounded up to whole words.
            let entry = PrdtEntry {
                address: window + u64::from(from),
                bytes: entry_bytes.min((bytes - from).next_multiple_of(4)),
            };
            let at = command + u64::from(PRDT_OFFSET) + u64::from(i) * PRDT_ENTRY_BYTES as u64;
            mem.write(at, &entry.to_bytes())?;
        }
        let descriptor = TransferDescriptor {
            command_type: COMMAND_TYPE_UFS,
            direction,
            interrupt: true,
            crypto: false,
            ocs: ocs::INVALID,
            command_base: command,
            response_offset: RESPONSE_OFFSET,
            response_bytes: RESPONSE_ROOM,
            prdt_offset: PRDT_OFFSET,
            prdt_entries: entries as u16,
        };
        mem.write(self.base + u64::from(tag) * UTRD_BYTES as u64, &descriptor.to_bytes())?;
        self.outstanding |= 1 << tag;
        bus.write(reg::UTRLDBR, 1 << tag);
        Ok(())
    }

    /// Sends a task management request in a slot of its own list.
    ///
    /// # Errors
    /// The memory is too small.
    pub fn manage<M: GuestMem>(
        &mut self,
        bus: &mut impl Bus,
        mem: &mut M,
        slot: u8,
        task: TaskRequest,
    ) -> Result<(), PortError> {
        let mut bytes = [0; UTMRD_BYTES];
        bytes[3] = 1;
        bytes[OCS_OFFSET] = ocs::INVALID;
        let request = Request { lun: task.lun, tag: slot, body: RequestBody::Task(task) };
        upiu::encode_request(&request, &[], &mut self.bytes);
        bytes[UTMRD_REQUEST_OFFSET..UTMRD_RESPONSE_OFFSET].copy_from_slice(&self.bytes);
        mem.write(self.base + TASK_LIST + u64::from(slot) * UTMRD_BYTES as u64, &bytes)?;
        self.tasks |= 1 << slot;
        bus.write(reg::UTMRLDBR, 1 << slot);
        Ok(())
    }

    /// Handles an interrupt.
    ///
    /// # Errors
    /// The controller reports a failure.
    #[inline]
    pub fn interrupt(&mut self, bus: &mut impl Bus) -> Result<Completed, PortError> {
        let mut completed = Completed::default();
        loop {
            let raised = bus.read(reg::IS);
            if raised == 0 {
                return Ok(completed);
            }
            bus.write(reg::IS, raised);
            let failures = interrupt::DEVICE_FATAL | interrupt::CONTROLLER_FATAL | interrupt::BUS_FATAL;
            if raised & (failures | interrupt::UIC_ERROR) != 0 {
                return Err(PortError::Fatal(raised));
            }
            if raised & interrupt::TRANSFER != 0 {
                let busy = bus.read(reg::UTRLDBR);
                completed.transfers |= self.outstanding & !busy;
                self.outstanding &= busy;
            }
            if raised & interrupt::TASK != 0 {
                let busy = bus.read(reg::UTMRLDBR);
                completed.tasks |= self.tasks & !busy;
                self.tasks &= busy;
            }
        }
    }

    /// Clears commands, a bit each: they get no response any more.
    pub fn clear(&mut self, bus: &mut impl Bus, transfers: u32) {
        bus.write(reg::UTRLCLR, !transfers);
        self.outstanding &= !transfers;
    }

    /// The reply to the command `tag`, which has completed, and its data-in.
    ///
    /// # Errors
    /// It ended without a response, or the response cannot be parsed.
    #[inline]
    pub fn reply<M: GuestMem>(&mut self, mem: &M, tag: u8) -> Result<(Reply, &[u8]), PortError> {
        let mut status = [0; 4];
        mem.read(self.base + u64::from(tag) * UTRD_BYTES as u64 + OCS_OFFSET as u64, &mut status)?;
        if status[0] & 0xF != ocs::SUCCESS {
            return Err(PortError::Command { tag, ocs: status[0] & 0xF });
        }
        let at = self.command(tag) + u64::from(RESPONSE_OFFSET);
        self.bytes.resize(CLEARED.len(), 0);
        mem.read(at, &mut self.bytes)?;
        let segment = usize::from(u16::from_be_bytes([self.bytes[10], self.bytes[11]]));
        let length = (UPIU_BYTES + segment).min(RESPONSE_ROOM as usize);
        if length > self.bytes.len() {
            self.bytes.resize(length, 0);
            mem.read(at, &mut self.bytes)?;
        }
        let (reply, segment) = upiu::parse_reply(&self.bytes)?;
        let moved = match &reply.body {
            ReplyBody::Query(_) => return Ok((reply, segment)),
            ReplyBody::Response(response) => match response.residual {
                // A dirty group replaces the residual count; then all bytes have moved.
                Residual::Under(bytes) => self.returns[usize::from(tag)].saturating_sub(bytes),
                _ => self.returns[usize::from(tag)],
            },
            _ => 0,
        };
        self.data.resize(moved as usize, 0);
        if moved > 0 {
            mem.read(self.window(tag), &mut self.data)?;
        }
        Ok((reply, &self.data))
    }

    /// The reply to the task management request in a slot, which has completed.
    ///
    /// # Errors
    /// As [`Port::reply`].
    pub fn task_reply<M: GuestMem>(&mut self, mem: &M, slot: u8) -> Result<TaskResponse, PortError> {
        const RESPONSE: Range<usize> = UTMRD_RESPONSE_OFFSET..UTMRD_BYTES;
        let mut bytes = [0; UTMRD_BYTES];
        mem.read(self.base + TASK_LIST + u64::from(slot) * UTMRD_BYTES as u64, &mut bytes)?;
        match (bytes[OCS_OFFSET] & 0xF, upiu::parse_reply(&bytes[RESPONSE])?.0.body) {
            (ocs::SUCCESS, ReplyBody::Task(response)) => Ok(response),
            (ocs, _) => Err(PortError::Command { tag: slot, ocs }),
        }
    }
}
