// SPDX-License-Identifier: MIT OR Apache-2.0
//! The commands of HPB, and the port through which a unit sends them.

use readpath_proto::typed::SubRegion;

/// A command of HPB.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum HpbRequest {
    /// HPB READ BUFFER: load a sub-region, or a group of the prototype.
    Load {
        /// The sub-region or group.
        at: SubRegion,
        bytes: u32,
        /// Bytes of host memory for the entries: whole pages.
        room_bytes: u32,
    },
    /// HPB WRITE BUFFER 01h: the host drops a region.
    Drop { region: u16 },
}

/// Sends commands, and knows what is in flight.
pub(crate) trait Port {
    fn has_tag(&self) -> bool;
    /// Number of commands in flight, and of requests that wait for a tag.
    fn in_flight(&self) -> u32;
    /// Sends a request; false if there is no tag for it.
    fn send(&mut self, request: HpbRequest) -> bool;
    /// Calls `each` with first block and number of blocks of every write and discard of this unit that is in flight.
    fn writes_in_flight(&self, each: impl FnMut(u32, u32));
}
