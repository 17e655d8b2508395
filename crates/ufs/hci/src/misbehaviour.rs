// SPDX-License-Identifier: MIT OR Apache-2.0
//! Devices and controllers that misbehave, each in one way, so that a host's handling of it can be tested.
//! Acknowledged data is safe all the same. Misbehaviour is counted, not random.

use crate::register::interrupt;
use readpath_kit::Ns;
use readpath_proto::query::{flag, opcode};
use readpath_proto::typed::{QueryResponse, Reply, ReplyBody};
use std::fmt;
use std::str::FromStr;

readpath_kit::named! {
    /// Kind of misbehaviour.
    pub enum Misbehaviour {
        /// fDeviceInit stays set for 600 ms.
        SlowInit = "slow-init",
        /// Every other DME_HIBERNATE_ENTER gets no completion.
        LostHibernate = "lost-hibernate",
        /// Every 1000th read or write is not answered until it is aborted.
        HungTag = "hung-tag",
        /// Every 1000th read or write completes without an interrupt, unless another completion raises one.
        LostCompletion = "lost-completion",
        /// With every 200th read or write a UIC layer reports an error, in turn: of a lane, of a NAC frame, of a data
        /// link layer that reinitialises.
        UicErrors = "uic-errors",
        /// Every 1000th read or write is never answered, and the controller reports a device failure.
        FatalError = "fatal-error",
    }
}

impl Misbehaviour {
    /// Every how many reads and writes it occurs.
    fn every(self) -> u64 {
        if self == Misbehaviour::UicErrors { 200 } else { 1000 }
    }
}

impl fmt::Display for Misbehaviour {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Misbehaviour {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names = || Misbehaviour::ALL.map(Misbehaviour::name).join(", ");
        Misbehaviour::by_name(text).ok_or_else(|| format!("'{text}' is not one of {}", names()))
    }
}

/// Time until a slow device is ready.
const INIT: Ns = Ns::from_ms(600);

/// Misbehaviour with a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wrong {
    Nothing,
    /// It is never answered.
    Hangs,
    /// Its completion raises no interrupt.
    Silent,
    /// It succeeds, and the controller also raises a UIC error: offset of the register from UECPA, and its code.
    Uic(usize, u32),
    /// It is never answered, and the controller raises these bits.
    Fatal(u32),
}

/// A kind, and how often it has occurred.
#[derive(Clone, Debug)]
pub(crate) struct Misbehaving {
    how: Misbehaviour,
    commands: u64,
    pub times: u64,
    hibernations: u64,
    init_until: Ns,
    /// Commands to be completed silently, a bit each.
    silent: u32,
}

impl Misbehaving {
    pub(crate) fn new(how: Misbehaviour) -> Self {
        Misbehaving { how, commands: 0, times: 0, hibernations: 0, init_until: Ns::ZERO, silent: 0 }
    }

    /// A read or write arrives in `slot`.
    pub(crate) fn command(&mut self, slot: u8) -> Wrong {
        self.commands += 1;
        if !self.commands.is_multiple_of(self.how.every()) {
            return Wrong::Nothing;
        }
        let wrong = match self.how {
            Misbehaviour::SlowInit | Misbehaviour::LostHibernate => return Wrong::Nothing,
            Misbehaviour::HungTag => Wrong::Hangs,
            Misbehaviour::LostCompletion => {
                self.silent |= 1 << slot;
                Wrong::Silent
            }
            // UECPA: lane 0. UECDL: NAC received, PA_INIT. Bit 31: there was an error.
            Misbehaviour::UicErrors => match self.times % 3 {
                0 => Wrong::Uic(0, 1 << 31 | 1),
                1 => Wrong::Uic(1, 1 << 31 | 1),
                _ => Wrong::Uic(1, 1 << 31 | 1 << 13),
            },
            Misbehaviour::FatalError => Wrong::Fatal(interrupt::DEVICE_FATAL),
        };
        self.times += 1;
        wrong
    }

    /// Whether the completion of the command in `slot` raises no interrupt.
    pub(crate) fn is_silent(&mut self, slot: u8) -> bool {
        let is_silent = self.silent >> slot & 1 == 1;
        self.silent &= !(1 << slot);
        is_silent
    }

    /// Forgets dropped commands, a bit each.
    pub(crate) fn dropped(&mut self, slots: u32) {
        self.silent &= !slots;
    }

    /// Whether a DME_HIBERNATE_ENTER gets no completion.
    pub(crate) fn loses_hibernation(&mut self) -> bool {
        if self.how != Misbehaviour::LostHibernate {
            return false;
        }
        self.hibernations += 1;
        let is_lost = self.hibernations % 2 == 1;
        self.times += u64::from(is_lost);
        is_lost
    }

    /// Changes a reply to the host at `now`.
    pub(crate) fn reply(&mut self, now: Ns, reply: &mut Reply) {
        let ReplyBody::Query(QueryResponse { opcode, idn: flag::DEVICE_INIT, value, .. }) = &mut reply.body else {
            return;
        };
        if self.how != Misbehaviour::SlowInit {
            return;
        }
        match *opcode {
            opcode::SET_FLAG => {
                self.init_until = now + INIT;
                self.times += 1;
            }
            opcode::READ_FLAG if now < self.init_until => *value = 1,
            _ => {}
        }
    }
}
