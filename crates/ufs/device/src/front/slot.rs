// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the device keeps of each command from arrival to reply, indexed by task tag.

use crate::ids::Lpn;
use readpath_proto::typed::{HpbEntry, ReplyBody, RequestBody};

/// Tags that the device can hold.
pub(crate) const TAGS: usize = 64;

/// What a request is, as far as its way through the device depends on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// READ.
    Read,
    /// HPB READ.
    HpbRead,
    /// WRITE.
    Write,
    /// Any other command; the slot's `body` has it.
    Other,
}

/// Every slot, by task tag.
pub(super) type Slots = Box<[Slot; TAGS]>;

/// What a slot keeps of the entries of an HPB READ.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HpbRead {
    /// The entry of its first block.
    pub entry: HpbEntry,
    /// HPB READ ID; 0 without a pre-request.
    pub read_id: u8,
    /// `data_out` has an entry for each block; those of a pre-request have been kept.
    pub listed: bool,
    /// The engine has checked the entries.
    pub checked: bool,
    /// Entries may say where blocks are for which work has not begun.
    pub hinted: bool,
    /// So many blocks have had their entry counted.
    pub counted: u32,
}

/// A request slot. Reads and writes are kept as plain fields: copying the whole request would cost more than serving
/// it.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(crate) struct Slot {
    /// The command has arrived or is on the link, and its reply has not been taken.
    pub active: bool,
    /// Counts the uses of this slot, so that work of an aborted command is recognised.
    pub life: u32,
    /// Logical unit.
    pub lun: u8,
    /// A write that is acknowledged from flash only.
    pub fua: bool,
    /// What it is.
    pub kind: Kind,
    /// CDB byte 1 of a read or write.
    pub flags: u8,
    /// Expected data transfer length of a command.
    pub expected_bytes: u32,
    /// First logical block of a read or write.
    pub lba: u64,
    /// The entries of an HPB READ.
    pub hpb: HpbRead,
    /// The request as it came, if it is neither a read nor a write.
    pub body: RequestBody,
    /// First logical page.
    pub lpn: Lpn,
    /// Blocks in all.
    pub blocks: u32,
    /// Blocks (or map pages) for which work has begun.
    pub issued: u32,
    /// Blocks (or map pages) whose work is not done.
    pub left: u32,
    /// Operations in progress, and blocks that wait for their map page.
    pub in_flight: u32,
    /// An operation waits for map entries, of the next blocks, that there was no room for: how many it serves is open.
    pub is_cut: bool,
    /// No good entry came with a read that counts for what is recommended.
    pub missed: bool,
    /// The reply, unless it is GOOD with nothing to report.
    pub outcome: Option<ReplyBody>,
    /// Data-in of commands that return bytes other than blocks.
    pub data_in: Vec<u8>,
    /// Data-out of commands with a parameter list.
    pub data_out: Vec<u8>,
}

// Three cache lines; a fourth would be touched with every command.
const _: () = assert!(size_of::<Slot>() == 192);

impl Slot {
    /// An empty slot.
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

    /// A request for `lun` takes this slot.
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
