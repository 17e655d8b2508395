// SPDX-License-Identifier: MIT OR Apache-2.0
//! Devices and controllers that do not do as they should, each in one way of its own, so that a host's handling of it
//! can be tried. What they acknowledge is true all the same. What goes wrong does so by count, not by chance.

use crate::register::interrupt;
use readpath_kit::Ns;
use readpath_proto::query::{flag, opcode};
use readpath_proto::typed::{QueryResponse, Reply, ReplyBody};
use std::fmt;
use std::str::FromStr;

readpath_kit::named! {
    /// In which way.
    pub enum Misbehaviour {
        /// fDeviceInit stays set for 600 ms.
        SlowInit = "slow-init",
        /// Every other DME_HIBERNATE_ENTER gets no completion.
        LostHibernate = "lost-hibernate",
        /// Every 1000th read or write is kept and never answered, until it is aborted.
        HungTag = "hung-tag",
        /// Every 1000th read or write completes without an interrupt, unless another one comes along.
        LostCompletion = "lost-completion",
        /// With every 200th read or write a layer of UIC reports an error: of lanes, of a frame that was refused, of
        /// the data link layer that begins anew.
        UicErrors = "uic-errors",
        /// Every 1000th read or write is never answered, and the controller reports that the device has failed.
        FatalError = "fatal-error",
    }
}

impl Misbehaviour {
    /// With which of the reads and writes it shows.
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

/// How long a slow device takes to become ready.
const INIT: Ns = Ns::from_ms(600);

/// What goes wrong with a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wrong {
    Nothing,
    /// It is never answered.
    Hangs,
    /// Its completion raises no interrupt.
    Silent,
    /// It goes well, and the controller also raises this; the register at the offset from UECPA has this code.
    Uic(usize, u32),
    /// It is never answered, and the controller raises this.
    Fatal(u32),
}

/// One way, and how often it has shown.
#[derive(Clone, Debug)]
pub(crate) struct Misbehaving {
    how: Misbehaviour,
    commands: u64,
    pub times: u64,
    hibernations: u64,
    init_until: Ns,
    /// Commands whose completion is to be silent, a bit each.
    silent: u32,
}

impl Misbehaving {
    pub(crate) fn new(how: Misbehaviour) -> Self {
        Misbehaving { how, commands: 0, times: 0, hibernations: 0, init_until: Ns::ZERO, silent: 0 }
    }

    /// A read or write comes in `slot`.
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

    /// Commands are dropped, a bit each.
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

    /// A reply is on its way to the host at `now`.
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
