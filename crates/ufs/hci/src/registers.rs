// SPDX-License-Identifier: MIT OR Apache-2.0
//! A wire that is a host controller: requests of a stack's host driver become descriptors in simulated memory and
//! register writes, a controller reads them there, and replies come back by an interrupt. Blocks of data do not pass
//! through it.

use crate::controller::{Controller, Effect};
use crate::memory::Ram;
use crate::port::{Bus, Completed, Port, PortError};
use readpath_proto::desc::UfsVersion;
use readpath_proto::typed::{Reply, Request};
use readpath_stack::{Crossed, Wire, WireError};

/// Base address of the simulated host's memory.
const BASE: u64 = 0x8000_0000;

/// A controller with its host; the effect of the last access is stored here.
struct Local<'a>(&'a mut Controller, Effect);

impl Bus for Local<'_> {
    #[inline(always)]
    fn read(&mut self, offset: u32) -> u32 {
        self.0.read(offset)
    }

    #[inline(always)]
    fn write(&mut self, offset: u32, value: u32) {
        self.1 = self.0.write(offset, value);
    }
}

/// See the module.
pub struct Registers {
    controller: Controller,
    port: Port,
    memory: Ram,
    request: Option<Request>,
    reply: Option<Reply>,
    failed: Option<PortError>,
}

impl Registers {
    /// A controller with `slots` slots, 1 to 32, that its host has enabled.
    pub fn new(slots: u8) -> Self {
        let mut registers = Registers {
            controller: Controller::new(slots, UfsVersion::V31),
            port: Port::new(BASE, slots, false),
            memory: Ram::new(BASE, Port::MEMORY as usize),
            request: None,
            reply: None,
            failed: None,
        };
        registers.reset();
        registers
    }
}

impl Default for Registers {
    fn default() -> Self {
        Registers::new(32)
    }
}

fn failed(error: PortError) -> WireError {
    match error {
        PortError::Upiu(error) => error.into(),
        error => WireError::Controller(error.to_string()),
    }
}

impl Wire for Registers {
    fn request<'a>(&'a mut self, request: &'a Request, data: &'a [u8]) -> Result<Crossed<'a>, WireError> {
        if let Some(error) = &self.failed {
            return Err(failed(error.clone()));
        }
        let mut bus = Local(&mut self.controller, Effect::None);
        self.port.send(&mut bus, &mut self.memory, request, data).map_err(failed)?;
        if bus.1 != (Effect::Started { transfers: 1 << request.tag, tasks: 0 }) {
            return Err(WireError::Controller(format!("the doorbell of command {} does not ring", request.tag)));
        }
        let Some(fetched) = self.controller.fetch(request.tag, &mut self.memory) else {
            return Err(WireError::Controller(format!("command {} cannot be read", request.tag)));
        };
        Ok((self.request.insert(fetched), self.controller.parameters()))
    }

    fn reply<'a>(&'a mut self, reply: &'a Reply, data: &'a [u8]) -> Result<Crossed<'a, Reply>, WireError> {
        let tag = reply.tag;
        self.controller.complete(reply, data, &mut self.memory);
        if !self.controller.line() {
            return Err(WireError::Controller(format!("the end of command {tag} raises no interrupt")));
        }
        let completed = self.port.interrupt(&mut Local(&mut self.controller, Effect::None)).map_err(failed)?;
        if completed != (Completed { transfers: 1 << tag, tasks: 0 }) {
            return Err(WireError::Controller(format!("not command {tag} has completed, but {completed:x?}")));
        }
        let (reply, data) = self.port.reply(&self.memory, tag).map_err(failed)?;
        Ok((self.reply.insert(reply), data))
    }

    fn reset(&mut self) {
        self.failed = self.port.start(&mut Local(&mut self.controller, Effect::None)).err();
    }
}
