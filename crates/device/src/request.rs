// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the device keeps of each command from arrival to reply, indexed by task tag.

use readpath_flash::Ppn;
use readpath_proto::typed::{ReplyBody, RequestBody};

/// Tags that the device can hold.
pub const TAGS: usize = 64;

/// A request slot.
#[derive(Clone, Debug)]
pub struct Slot {
    /// The command has arrived or is on the link, and its reply has not been taken.
    pub active: bool,
    /// Counts the uses of this slot, so that work of an aborted command is recognised.
    pub life: u32,
    /// Logical unit.
    pub lun: u8,
    /// A write that is acknowledged from flash only.
    pub fua: bool,
    /// The request as it came.
    pub body: RequestBody,
    /// First logical page.
    pub lpn: u32,
    /// Blocks in all.
    pub blocks: u32,
    /// Blocks (or map pages) for which work has begun.
    pub issued: u32,
    /// Blocks (or map pages) whose work is not done.
    pub left: u32,
    /// Operations in progress.
    pub in_flight: u32,
    /// Address of the first block from a good HPB entry.
    pub hinted: Option<Ppn>,
    /// The reply, unless it is GOOD with nothing to tell.
    pub outcome: Option<ReplyBody>,
    /// Data-in of commands that return bytes other than blocks.
    pub data_in: Vec<u8>,
    /// Data-out of commands with a parameter list.
    pub data_out: Vec<u8>,
}

impl Slot {
    /// An empty slot.
    pub fn new() -> Self {
        Slot {
            active: false,
            life: 0,
            lun: 0,
            fua: false,
            body: RequestBody::NopOut,
            lpn: 0,
            blocks: 0,
            issued: 0,
            left: 0,
            in_flight: 0,
            hinted: None,
            outcome: None,
            data_in: Vec::new(),
            data_out: Vec::new(),
        }
    }
}
