// SPDX-License-Identifier: MIT OR Apache-2.0
//! Observation of the stages of requests. A probe cannot change anything.

use readpath_kit::Ns;
use readpath_proto::typed::{Reply, Request};

/// A resource that serves one stage of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Resource {
    /// Link, host to device.
    LinkDown,
    /// The firmware core.
    Firmware,
    /// The engine that checks HPB entries.
    Engine,
    /// A die's array.
    Die(u32),
    /// A channel.
    Channel(u32),
    /// Link, device to host.
    LinkUp,
}

/// What a stage is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StageOf {
    /// A request of the host, by tag.
    Request(u8),
    /// A request that was dropped or has been answered; its tag may be in use again.
    Dropped,
    /// The load of a map page that requests wait for.
    MapLoad(u32),
    /// The program of a multi-plane page.
    Program,
    /// The erase of a block.
    Erase,
    /// Garbage collection, wear levelling or the repair of disturbed data.
    Collect,
    /// The write-back of map pages, the journal, or a checkpoint.
    WriteBack,
}

/// Receives every stage of every request; implementations choose which to keep.
pub trait Probe {
    /// False removes the calls at compile time.
    const ACTIVE: bool;

    /// `resource` worked from `start` to `end` for `of`.
    fn stage(&mut self, of: StageOf, resource: Resource, start: Ns, end: Ns);

    /// The host's software sends `request` at `now`; `data` is its parameter list or the data segment of a query, empty
    /// for most. Called before any stage of the request.
    fn request(&mut self, now: Ns, request: &Request, data: &[u8]) {
        let _ = (now, request, data);
    }

    /// `reply` reaches the host's software at `now`; `data` is the data-in of the last request with its tag that
    /// returned bytes other than blocks. A request that is dropped (reset, task management) has no reply.
    fn reply(&mut self, now: Ns, reply: &Reply, data: &[u8]) {
        let _ = (now, reply, data);
    }

    /// The request that has `tag` is dropped at `now` by task management or by the controller: it gets no reply.
    fn dropped(&mut self, now: Ns, tag: u8) {
        let _ = (now, tag);
    }

    /// The device is reset at `now`: what is in progress gets no reply.
    fn reset(&mut self, now: Ns) {
        let _ = now;
    }

    /// The host's driver looks for completions at `now` and sees all replies until then at once. Called only behind a
    /// host controller, where a driver's look can be seen.
    fn heard(&mut self, now: Ns) {
        let _ = now;
    }
}

/// The owner of a lent probe gets it back when the device is dropped.
impl<P: Probe> Probe for &mut P {
    const ACTIVE: bool = P::ACTIVE;

    #[inline(always)]
    fn stage(&mut self, of: StageOf, resource: Resource, start: Ns, end: Ns) {
        (**self).stage(of, resource, start, end);
    }

    fn request(&mut self, now: Ns, request: &Request, data: &[u8]) {
        (**self).request(now, request, data);
    }

    fn reply(&mut self, now: Ns, reply: &Reply, data: &[u8]) {
        (**self).reply(now, reply, data);
    }

    fn dropped(&mut self, now: Ns, tag: u8) {
        (**self).dropped(now, tag);
    }

    fn reset(&mut self, now: Ns) {
        (**self).reset(now);
    }

    fn heard(&mut self, now: Ns) {
        (**self).heard(now);
    }
}

/// No observation.
impl Probe for () {
    const ACTIVE: bool = false;

    #[inline(always)]
    fn stage(&mut self, _: StageOf, _: Resource, _: Ns, _: Ns) {}
}
