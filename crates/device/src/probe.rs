// SPDX-License-Identifier: MIT OR Apache-2.0
//! Observation of stages in time. A probe sees; it cannot change anything.

use readpath_kit::Ns;

/// A resource that serves one stage of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Resource {
    /// Link, host to device.
    LinkDown,
    /// The firmware core.
    Firmware,
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
    /// The load of a map page that requests wait for.
    MapLoad(u32),
    /// The program of a multi-plane page.
    Program,
    /// The erase of a block.
    Erase,
}

/// Receives every stage of every request; implementations choose what to keep.
pub trait Probe {
    /// False compiles the calls out.
    const ACTIVE: bool;

    /// `resource` worked from `start` to `end` for `of`.
    fn stage(&mut self, of: StageOf, resource: Resource, start: Ns, end: Ns);
}

/// No observation.
impl Probe for () {
    const ACTIVE: bool = false;

    #[inline(always)]
    fn stage(&mut self, _: StageOf, _: Resource, _: Ns, _: Ns) {}
}
