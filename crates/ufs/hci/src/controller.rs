// SPDX-License-Identifier: MIT OR Apache-2.0
//! The registers of a controller, and the effects of accesses to them. `lists` reads commands and writes responses.
//! The device makes all decisions of its own.

use crate::prdt::Prdt;
use crate::register::{self as reg, interrupt, status};
use crate::unipro::{Attributes, Link};
use readpath_proto::desc::UfsVersion;
use readpath_proto::uic::{attribute, opcode, result};

/// The most slots of a controller.
pub(crate) const MOST_TRANSFERS: usize = 32;
/// Slots for task management requests.
pub(crate) const MOST_TASKS: usize = 8;
/// 64-bit addresses (bit 24); 3 outstanding RTTs (bits 15:8).
const CAPABILITIES: u32 = 1 << 24 | 2 << 8;
/// UTRIACR: interrupt aggregation is on.
const AGGREGATION_ENABLED: u32 = 1 << 31;

/// Effect of a register access, for the owner of controller and device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Effect {
    /// Nothing.
    None,
    /// Commands and task management requests in these slots, a bit each, have been started and have to be fetched.
    Started {
        /// Commands.
        transfers: u32,
        /// Task management requests.
        tasks: u32,
    },
    /// Commands in these slots are dropped without response.
    Cleared(u32),
    /// Task management requests in these slots are dropped without response.
    ClearedTasks(u32),
    /// The controller was disabled or the link was started: everything in flight is dropped, and the device is reset.
    Reset,
}

/// A list of requests in a host's memory.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct List {
    pub base: u64,
    pub doorbell: u32,
    pub runs: bool,
}

impl List {
    fn set_base(&mut self, is_upper: bool, value: u32) {
        let kept = if is_upper { self.base & 0xFFFF_FFFF } else { self.base & !0xFFFF_FFFF };
        // A list begins at a multiple of 1 KiB.
        self.base = kept | if is_upper { u64::from(value) << 32 } else { u64::from(value & !0x3FF) };
    }

    fn ring(&mut self, value: u32, slots: u8) -> u32 {
        let there = u32::MAX >> (32 - u32::from(slots));
        let new = if self.runs { value & there & !self.doorbell } else { 0 };
        self.doorbell |= new;
        new
    }

    fn clear(&mut self, value: u32) -> u32 {
        let cleared = !value & self.doorbell;
        self.doorbell &= !cleared;
        cleared
    }
}

/// State of a command from its start to its response.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Slot {
    pub is_busy: bool,
    /// Its completion raises an interrupt.
    pub interrupts: bool,
    /// Task tag of its UPIU, which the host chooses.
    pub tag: u8,
    pub expected_bytes: u32,
    pub prdt: Prdt,
    pub response: u64,
    pub response_room: u32,
}

/// State of a task management request.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TaskSlot {
    pub is_busy: bool,
    pub interrupts: bool,
    pub tag: u8,
}

/// See the module.
#[derive(Default)]
pub struct Controller {
    slots: u8,
    version: UfsVersion,
    is_enabled: bool,
    status: u32,
    pub(crate) raised: u32,
    /// Bits of IE.
    enabled: u32,
    errors: [u32; 5],
    aggregation: u32,
    pub(crate) notified: u32,
    pub(crate) transfers: List,
    pub(crate) tasks: List,
    uic: [u32; 4],
    link: Link,
    local: Attributes,
    peer: Attributes,
    /// Commands, and task management requests, started while the link hibernated.
    held: (u32, u32),
    pub(crate) transfer: [Slot; MOST_TRANSFERS],
    pub(crate) task: [TaskSlot; MOST_TASKS],
    /// A UPIU being read or written, and the parameters of the last fetched command.
    pub(crate) bytes: Vec<u8>,
    pub(crate) parameters: Vec<u8>,
}

impl Controller {
    /// A controller of a version, with `slots` slots for commands, 1 to 32, that has just been switched on.
    pub fn new(slots: u8, version: UfsVersion) -> Self {
        Controller {
            slots: slots.clamp(1, MOST_TRANSFERS as u8),
            version,
            local: Attributes::new(version),
            peer: Attributes::new(version),
            ..Controller::default()
        }
    }

    /// Slots for commands.
    pub fn slots(&self) -> u8 {
        self.slots
    }

    /// Whether the controller raises its interrupt, which is level-triggered.
    #[inline]
    pub fn line(&self) -> bool {
        self.raised & self.enabled != 0
    }

    /// Whether interrupts of completed commands may be aggregated.
    #[inline]
    pub(crate) fn aggregates(&self) -> bool {
        self.aggregation & AGGREGATION_ENABLED != 0
    }

    /// Reads the register at `offset`, a multiple of 4; unknown registers read as 0.
    #[inline]
    pub fn read(&mut self, offset: u32) -> u32 {
        match offset {
            reg::IS => self.raised,
            reg::UTRLDBR => self.transfers.doorbell,
            reg::CAP => CAPABILITIES | u32::from(self.slots - 1) | (MOST_TASKS as u32 - 1) << 16,
            reg::VER => self.version.bcd().into(),
            reg::IE => self.enabled,
            reg::HCS => self.status,
            reg::HCE => u32::from(self.is_enabled),
            reg::UECPA..=reg::UECDME => std::mem::take(&mut self.errors[(offset - reg::UECPA) as usize / 4]),
            reg::UTRIACR => self.aggregation,
            reg::UTRLBA => self.transfers.base as u32,
            reg::UTRLBAU => (self.transfers.base >> 32) as u32,
            reg::UTRLRSR => u32::from(self.transfers.runs),
            reg::UTRLCNR => self.notified,
            reg::UTMRLBA => self.tasks.base as u32,
            reg::UTMRLBAU => (self.tasks.base >> 32) as u32,
            reg::UTMRLDBR => self.tasks.doorbell,
            reg::UTMRLRSR => u32::from(self.tasks.runs),
            reg::UICCMD..=reg::UCMDARG3 => self.uic[(offset - reg::UICCMD) as usize / 4],
            _ => 0,
        }
    }

    /// Writes the register at `offset`, a multiple of 4. Writes to unknown or read-only registers are ignored, and
    /// all but those to HCE while the controller is disabled.
    #[inline]
    pub fn write(&mut self, offset: u32, value: u32) -> Effect {
        if !self.is_enabled && offset != reg::HCE {
            return Effect::None;
        }
        match offset {
            reg::IS => self.raised &= !value,
            reg::UTRLDBR => {
                let new = self.transfers.ring(value, self.slots);
                return self.started(new, 0);
            }
            reg::IE => self.enabled = value & interrupt::ALL,
            reg::HCE => return self.enable(value & 1 == 1),
            // Bit 16 resets the counter of the aggregation, which does not exist here, and bit 24 enables the write
            // of the rest.
            reg::UTRIACR => self.aggregation = value & (AGGREGATION_ENABLED | 0x1FFF),
            reg::UTRLBA | reg::UTRLBAU => self.transfers.set_base(offset == reg::UTRLBAU, value),
            reg::UTMRLBA | reg::UTMRLBAU => self.tasks.set_base(offset == reg::UTMRLBAU, value),
            reg::UTRLCLR => {
                let cleared = self.transfers.clear(value);
                self.each_transfer(cleared, |slot| slot.is_busy = false);
                self.held.0 &= !cleared;
                return if cleared == 0 { Effect::None } else { Effect::Cleared(cleared) };
            }
            reg::UTMRLCLR => {
                let cleared = self.tasks.clear(value);
                for i in (0..MOST_TASKS).filter(|i| cleared >> i & 1 == 1) {
                    self.task[i].is_busy = false;
                }
                self.held.1 &= !cleared;
                return if cleared == 0 { Effect::None } else { Effect::ClearedTasks(cleared) };
            }
            reg::UTRLRSR => self.transfers.runs = value & 1 == 1 && self.has(status::TRANSFERS_READY),
            reg::UTMRLRSR => self.tasks.runs = value & 1 == 1 && self.has(status::TASKS_READY),
            reg::UTRLCNR => self.notified &= !value,
            reg::UTMRLDBR => {
                let new = self.tasks.ring(value, MOST_TASKS as u8);
                return self.started(0, new);
            }
            reg::UCMDARG1..=reg::UCMDARG3 => self.uic[(offset - reg::UICCMD) as usize / 4] = value,
            reg::UICCMD => return self.uic_command(value),
            _ => {}
        }
        Effect::None
    }

    fn has(&self, bits: u32) -> bool {
        self.status & bits == bits
    }

    fn each_transfer(&mut self, mask: u32, mut what: impl FnMut(&mut Slot)) {
        let meant = self.transfer.iter_mut().enumerate().filter(|(i, _)| mask >> i & 1 == 1);
        meant.for_each(|(_, slot)| what(slot));
    }

    /// Sends started commands over the link if it is awake.
    #[inline]
    fn started(&mut self, transfers: u32, tasks: u32) -> Effect {
        if self.link == Link::Hibernated {
            self.held.0 |= transfers;
            self.held.1 |= tasks;
            return Effect::None;
        }
        if transfers | tasks == 0 { Effect::None } else { Effect::Started { transfers, tasks } }
    }

    /// HCE: 1 to 0 resets the controller.
    fn enable(&mut self, on: bool) -> Effect {
        match (self.is_enabled, on) {
            (true, false) => {
                self.reset();
                Effect::Reset
            }
            (false, true) => {
                self.is_enabled = true;
                self.status = status::UIC_READY;
                Effect::None
            }
            _ => Effect::None,
        }
    }

    /// Returns to the state after power-on.
    pub fn reset(&mut self) {
        let (bytes, parameters) = (std::mem::take(&mut self.bytes), std::mem::take(&mut self.parameters));
        let link = if self.link == Link::Gone { Link::Gone } else { Link::default() };
        *self = Controller { bytes, parameters, link, ..Controller::new(self.slots, self.version) };
    }

    /// Whether a host has started the link.
    pub(crate) fn is_in_use(&self) -> bool {
        self.has(status::DEVICE_PRESENT)
    }

    /// Whether the device was taken away.
    pub(crate) fn is_gone(&self) -> bool {
        self.link == Link::Gone
    }

    /// The device is taken away: nothing is fetched or answered any more, and the host is told of a fatal error. Its
    /// attempts to start the link anew find no device.
    pub(crate) fn take_away(&mut self) {
        self.link = Link::Gone;
        self.status &= !(status::DEVICE_PRESENT | status::TRANSFERS_READY | status::TASKS_READY);
        (self.transfers.runs, self.tasks.runs) = (false, false);
        self.failed(interrupt::DEVICE_FATAL);
    }

    /// A list is not in accessible memory: no response is possible any more.
    pub(crate) fn bus_failed(&mut self) {
        self.raised |= interrupt::BUS_FATAL;
    }

    /// Raises bits of IS for a failure that only a reset ends.
    pub(crate) fn failed(&mut self, bits: u32) {
        self.raised |= bits;
    }

    /// Reports an error of a UIC layer, counted from UECPA.
    pub(crate) fn uic_failed(&mut self, layer: usize, code: u32) {
        self.errors[layer] |= code;
        self.raised |= interrupt::UIC_ERROR;
    }

    /// Whether all of these bits of IS are set.
    pub(crate) fn is_raised(&self, bits: u32) -> bool {
        self.raised & bits == bits
    }

    /// Withdraws bits of IS that have just been raised.
    pub(crate) fn withdraw(&mut self, bits: u32) {
        self.raised &= !bits;
    }

    /// Handles a write of UICCMD. Every command ends at once.
    fn uic_command(&mut self, value: u32) -> Effect {
        if !self.has(status::UIC_READY) {
            return Effect::None;
        }
        self.uic[0] = value;
        let [_, first, _, third] = self.uic;
        let name = (first >> 16) as u16;
        let mut effect = Effect::None;
        let is_up = self.link == Link::Up;
        let done = match value as u8 {
            opcode::GET => self.local.get(name).map(|value| self.uic[3] = value),
            opcode::PEER_GET if is_up => self.peer.get(name).map(|value| self.uic[3] = value),
            opcode::SET if name == attribute::POWER_MODE => self.change_power_mode(third, is_up),
            opcode::SET => self.local.set(name, third),
            opcode::PEER_SET if is_up => self.peer.set(name, third),
            opcode::PEER_GET | opcode::PEER_SET => Err(result::PEER_COMMUNICATION),
            opcode::LINK_STARTUP if self.link == Link::Gone => Ok(()),
            opcode::LINK_STARTUP => {
                self.start_link();
                effect = Effect::Reset;
                Ok(())
            }
            opcode::HIBERNATE_ENTER if is_up => {
                self.link = Link::Hibernated;
                self.power_changed(interrupt::HIBERNATE_ENTER);
                Ok(())
            }
            opcode::HIBERNATE_EXIT if self.link == Link::Hibernated => {
                self.link = Link::Up;
                self.power_changed(interrupt::HIBERNATE_EXIT);
                let (transfers, tasks) = std::mem::take(&mut self.held);
                effect = self.started(transfers, tasks);
                Ok(())
            }
            opcode::POWER_ON | opcode::POWER_OFF | opcode::ENABLE | opcode::RESET | opcode::ENDPOINT_RESET => Ok(()),
            _ => Err(result::FAILURE),
        };
        self.uic[2] = self.uic[2] & !0xFF | u32::from(done.err().unwrap_or(result::SUCCESS));
        self.raised |= interrupt::UIC_COMMAND;
        effect
    }

    fn change_power_mode(&mut self, mode: u32, is_up: bool) -> Result<(), u8> {
        if !is_up {
            return Err(result::FAILURE);
        }
        self.local.set(attribute::POWER_MODE, mode)?;
        self.power_changed(interrupt::POWER_MODE);
        Ok(())
    }

    fn power_changed(&mut self, how: u32) {
        self.status = self.status & !status::POWER_RESULT | status::POWER_LOCAL;
        self.raised |= how;
    }

    /// Resets both sides of the link, and the lists.
    fn start_link(&mut self) {
        (self.local, self.peer) = (Attributes::new(self.version), Attributes::new(self.version));
        self.link = Link::Up;
        self.status |= status::DEVICE_PRESENT | status::TRANSFERS_READY | status::TASKS_READY;
        (self.transfers.doorbell, self.tasks.doorbell, self.held) = (0, 0, (0, 0));
        self.transfer = [Slot::default(); MOST_TRANSFERS];
        self.task = [TaskSlot::default(); MOST_TASKS];
    }
}
