// SPDX-License-Identifier: MIT OR Apache-2.0
//! Host and device wired together.

use crate::payload::Payload;
use crate::wire::{Wire, WireError};
use readpath_device::{ConfigError, Delays, DeviceConfig, Layout, NoSpace, Probe, UfsDevice};
use readpath_flash::DieSched;
use readpath_host::{BlockDone, BlockRequest, Driver, HostConfig, ProbeError};
use readpath_kit::Ns;
use readpath_proto::typed::{Reply, ReplyBody, Status};
use thiserror::Error;

/// Why a stack cannot be used.
#[derive(Debug, Error)]
pub enum StackError {
    /// The device cannot exist.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The host could not make sense of the device.
    #[error("the host cannot use the device: {0}")]
    Probe(#[from] ProbeError),
    /// Host and device stopped talking before the probe was over.
    #[error("the probe did not end")]
    NoAnswer,
    /// A UPIU did not survive.
    #[error(transparent)]
    Wire(#[from] WireError),
}

/// Host driver, link and device.
pub struct Stack<S: DieSched, X: Payload, P: Probe, W: Wire> {
    /// The host driver.
    pub host: Driver,
    /// The device.
    pub device: UfsDevice<S, X::Mode, P>,
    /// The data.
    pub payload: X,
    wire: W,
    bases: Vec<u32>,
    wire_error: Option<WireError>,
    /// Changes replies on their way to the host, for tests of what a host must survive.
    tamper: Option<fn(&mut Reply)>,
}

impl<S: DieSched, X: Payload, P: Probe, W: Wire> Stack<S, X, P, W> {
    /// A device and a host that do not know each other yet.
    pub fn new(
        device: &DeviceConfig,
        host: HostConfig,
        delays: Delays,
        mut payload: X,
        probe: P,
        wire: W,
    ) -> Result<Self, StackError> {
        let mut bases = Vec::new();
        let mut next = 0;
        for lu in &device.lus {
            bases.push(next);
            next += lu.blocks;
        }
        let device = UfsDevice::new(device, delays, probe)?;
        payload.attach(device.array_slices(), device.buffer_slots(), next);
        Ok(Stack { host: Driver::new(host), device, payload, wire, bases, wire_error: None, tamper: None })
    }

    /// Maps blocks of a unit as if they had been written, in no time.
    pub fn precondition(&mut self, lun: u8, first: u32, blocks: u32, layout: Layout, seed: u64) -> Result<(), NoSpace> {
        let payload = &mut self.payload;
        self.device.precondition(lun, first, blocks, layout, seed, |lpn, ppn| payload.preset(lpn, ppn))
    }

    /// Lets the host find the device; returns when it has, and the time that took.
    pub fn start(&mut self, mut now: Ns) -> Result<Ns, StackError> {
        self.host.start();
        self.exchange(now);
        while !self.host.is_ready() {
            if let Some(e) = self.host.failure() {
                return Err(e.clone().into());
            }
            now = self.next_deadline();
            if now == Ns::NEVER {
                return Err(self.wire_error.take().map_or(StackError::NoAnswer, StackError::Wire));
            }
            self.advance(now);
        }
        Ok(now)
    }

    /// Takes a block request of the host's user.
    #[inline]
    pub fn submit(&mut self, now: Ns, request: &BlockRequest) {
        self.host.submit(request);
        self.exchange(now);
    }

    /// When something happens next.
    #[inline]
    pub fn next_deadline(&self) -> Ns {
        self.device.next_deadline()
    }

    /// Handles what is due at `now`.
    #[inline]
    pub fn advance(&mut self, now: Ns) {
        self.device.advance(now);
        while let Some(op) = self.device.poll_media() {
            self.payload.execute(op);
        }
        while let Some(mut reply) = self.device.poll_reply(now) {
            if let Some(tamper) = self.tamper {
                tamper(&mut reply);
            }
            match self.wire.reply(&reply) {
                Ok(reply) => self.deliver(&reply),
                Err(e) => self.wire_error = Some(e),
            }
        }
        self.exchange(now);
    }

    #[inline]
    fn deliver(&mut self, reply: &Reply) {
        if let Some(part) = self.host.carried(reply.tag) {
            let good = matches!(&reply.body, ReplyBody::Response(r) if r.status == Status::Good);
            let lpn = self.bases[usize::from(part.lun)] + part.block;
            self.payload.end(reply.tag, &part, lpn, good);
        }
        self.host.on_reply(reply, self.device.data_in(reply.tag));
    }

    /// The next block request that has ended.
    #[inline]
    #[must_use]
    pub fn poll_done(&mut self) -> Option<BlockDone> {
        self.host.poll_done()
    }

    /// Controller and device are reset; commands in flight are sent again.
    pub fn reset(&mut self, now: Ns) {
        self.device.hardware_reset();
        self.payload.reset();
        self.host.reset();
        self.exchange(now);
    }

    /// A UPIU that did not survive its encoding, if there was one: the run is then worth nothing.
    pub fn wire_error(&self) -> Option<&WireError> {
        self.wire_error.as_ref()
    }

    /// Lets `tamper` change every reply before the host sees it.
    pub fn tamper_with_replies(&mut self, tamper: Option<fn(&mut Reply)>) {
        self.tamper = tamper;
    }

    /// Brings near what a read of `block` will touch.
    #[inline]
    pub fn prefetch(&self, lun: u8, block: u32) {
        if !self.host.prefetch(lun, block) {
            self.device.prefetch(lun, block);
        }
    }

    #[inline]
    fn exchange(&mut self, now: Ns) {
        while let Some(request) = self.host.poll_request() {
            match self.wire.request(&request) {
                Ok(request) => {
                    if let Some(part) = self.host.carried(request.tag) {
                        let lpn = self.bases[usize::from(part.lun)] + part.block;
                        self.payload.begin(request.tag, &part, lpn);
                    }
                    self.device.submit(now, &request, self.host.data_out(request.tag));
                }
                Err(e) => self.wire_error = Some(e),
            }
        }
    }
}
