// SPDX-License-Identifier: MIT OR Apache-2.0
//! A port between a source and another port, for sources around sources: what is submitted goes to a taker, and all
//! else passes. It knows neither cores nor rules.

use crate::drive::Port;
use readpath_host::BlockRequest;
use readpath_kit::Ns;
use readpath_stack::{Fault, Ruled};

/// Gets what a source submits, before the port does.
pub(crate) trait Taker {
    /// Thread `thread` submits a request.
    fn submit(&mut self, port: &mut impl Port, now: Ns, thread: u32, request: &BlockRequest);
}

/// The port of an inner source.
pub(crate) struct Through<'a, P, T> {
    /// The port of the outer source.
    pub port: &'a mut P,
    /// What stands between them.
    pub taker: &'a mut T,
}

impl<P: Port, T: Taker> Port for Through<'_, P, T> {
    fn submit(&mut self, now: Ns, request: &BlockRequest) {
        self.submit_from(now, request.cookie, request);
    }

    fn submit_from(&mut self, now: Ns, thread: u32, request: &BlockRequest) {
        self.taker.submit(self.port, now, thread, request);
    }

    fn prefetch(&self, lun: u8, block: u32) {
        self.port.prefetch(lun, block);
    }

    fn prefetch_write(&self, lun: u8, block: u32) {
        self.port.prefetch_write(lun, block);
    }

    fn holds_data(&self, lun: u8, block: u32) -> bool {
        self.port.holds_data(lun, block)
    }

    fn zone_pointers(&self, lun: u8) -> Vec<u32> {
        self.port.zone_pointers(lun)
    }

    fn bring(&mut self, cookie: u32, block: u32, data: Vec<u8>) {
        self.port.bring(cookie, block, data);
    }

    fn take(&mut self, cookie: u32) -> (Vec<u8>, Option<Fault>) {
        self.port.take(cookie)
    }

    fn settle(&mut self) {
        self.port.settle();
    }

    fn rule(&mut self, request: &BlockRequest, ruled: Ruled) {
        self.port.rule(request, ruled);
    }
}
