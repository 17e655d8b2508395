// SPDX-License-Identifier: MIT OR Apache-2.0
//! The state of each command from arrival to reply, indexed by task tag.

use crate::ids::Lpn;
use readpath_proto::typed::{HpbEntry, ReplyBody, RequestBody};

/// Tags that the device can hold.
pub(crate) const TAGS: usize = 64;

/// Kind of a request, as far as its path through the device depends on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Read,
    HpbRead,
    Write,
    /// Any other command; it is in the slot's `body`.
    Other,
}

/// Every slot, by task tag.
pub(super) type Slots = Box<[Slot; TAGS]>;

/// Entries of an HPB READ.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HpbRead {
    /// The entry of its first block.
    pub entry: HpbEntry,
    /// HPB READ ID; 0 without a pre-request.
    pub read_id: u8,
    /// `data_out` has an entry for each block; of a pre-request, the entries have been stored.
    pub listed: bool,
    /// The engine has checked the entries.
    pub checked: bool,
    /// Entries may place blocks for which work has not begun.
    pub hinted: bool,
    /// Number of blocks whose entry has been counted.
    pub counted: u32,
}

/// A request slot. Reads and writes are stored as plain fields: copying the whole request would cost more than
/// serving it.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(crate) struct Slot {
    /// The command has arrived or is on the link, and its reply has not been taken.
    pub active: bool,
    /// Counts the uses of this slot, so that work of an aborted command is recognised.
    pub life: u32,
    /// Logical unit.
    pub lun: u8,
    /// The write is acknowledged only when it is in flash.
    pub fua: bool,
    pub kind: Kind,
    /// CDB byte 1 of a read or write.
    pub flags: u8,
    /// Expected data transfer length of a command.
    pub expected_bytes: u32,
    /// First logical block of a read or write.
    pub lba: u64,
    /// The entries of an HPB READ.
    pub hpb: HpbRead,
    /// The request itself, if it is neither a read nor a write.
    pub body: RequestBody,
    /// First logical page.
    pub lpn: Lpn,
    pub blocks: u32,
    /// Blocks (or map pages) for which work has begun.
    pub issued: u32,
    /// Blocks (or map pages) whose work is not done.
    pub left: u32,
    /// Operations in progress, and blocks that wait for their map page.
    pub in_flight: u32,
    /// An operation that was cut at the request's limit waits for map entries of the next blocks; how many it serves
    /// is open.
    pub is_cut: bool,
    /// No good entry came with this read, and it counts for recommendations.
    pub missed: bool,
    /// The reply, unless it is GOOD with nothing to report.
    pub outcome: Option<ReplyBody>,
    /// Data-in of commands that return bytes other than blocks.
    pub data_in: Vec<u8>,
    /// Data-out of commands with a parameter list.
    pub data_out: Vec<u8>,
}

// Three cache lines: every command would have to touch a fourth.
const _: () = assert!(size_of::<Slot>() == 192);

impl Slot {
    pub(crate) fn new() -> Self {
        Slot {
            active: false,
            life: 0,
            lun: 0,
            fua: false,
            kind: Kind::Other,
            flags: 0,
            expected_bytes: 0,
            lba: 0,
            hpb: HpbRead {
                entry: HpbEntry::ZERO,
                read_id: 0,
                listed: false,
                checked: false,
                hinted: false,
                counted: 0,
            },
            body: RequestBody::NopOut,
            lpn: Lpn(0),
            blocks: 0,
            issued: 0,
            left: 0,
            in_flight: 0,
            is_cut: false,
            missed: false,
            outcome: None,
            data_in: Vec::new(),
            data_out: Vec::new(),
        }
    }

    /// Initialises the slot for a request to `lun`.
    #[inline(always)]
    pub(crate) fn begin(&mut self, lun: u8) {
        self.active = true;
        self.life = self.life.wrapping_add(1);
        self.lun = lun;
        self.outcome = None;
        self.hpb.hinted = false;
        self.is_cut = false;
        self.missed = false;
        self.hpb.read_id = 0;
        self.hpb.listed = false;
        self.hpb.checked = false;
        self.fua = false;
    }

    /// Whether it is a SCSI command.
    pub(crate) fn is_command(&self) -> bool {
        self.kind != Kind::Other || matches!(self.body, RequestBody::Command(_))
    }
}
