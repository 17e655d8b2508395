// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long flash, firmware and link take.

use readpath_flash::PlaneReads;
use readpath_kit::{BLOCK_BYTES, Ns};

/// Array and channel times of the flash, and how long its cells live.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlashTiming {
    /// tR of a page that holds data.
    pub read: Ns,
    /// tR of a page that holds part of the map (shorter if the map lives in SLC blocks).
    pub map_read: Ns,
    /// tPROG of a multi-plane page.
    pub program: Ns,
    /// tBERS of a block.
    pub erase: Ns,
    /// Channel time of 4 KiB of data.
    pub transfer_block: Ns,
    /// Channel time of a map page, all of it: the map cache holds whole pages.
    pub map_transfer: Ns,
    /// How the planes of a die read.
    pub plane_reads: PlaneReads,
    /// Erases that a block endures when all bits of its cells are used.
    pub life_erases: u32,
}

/// Times of the firmware: first-in-first-out servers, from which work leaves in the order in which it came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FirmwareTiming {
    /// Cores, 1 to 16.
    pub cores: u8,
    /// Per READ, before its first flash operation.
    pub read_command: Ns,
    /// Per flash operation: a page of data, a map page, a program, an erase.
    pub flash_op: Ns,
    /// Cost of an HPB READ above that of a READ: the check of its entry.
    pub hpb_read_extra: Ns,
    /// Per write command, before its data is in the write buffer.
    pub write_command: Ns,
    /// Per read of blocks that need no flash operation: buffered ones, and unmapped ones without a time of their own.
    pub buffer_read: Ns,
    /// Per read of unmapped blocks; `None` for [`FirmwareTiming::buffer_read`].
    pub unmapped_read: Option<Ns>,
    /// Per entry that HPB READ BUFFER returns: its lookup and its authentication.
    pub make_entry: Ns,
    /// Per query, and per SCSI command without media access.
    pub control: Ns,
    /// Per map page that a range of UNMAP touches, on top of [`FirmwareTiming::control`].
    pub trim_map_page: Ns,
}

/// Times of the link, one server in each direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkTiming {
    /// A request UPIU.
    pub request: Ns,
    /// A response UPIU.
    pub response: Ns,
    /// 4 KiB of data.
    pub block: Ns,
}

impl LinkTiming {
    /// Time of `bytes` that travel with a request, other than blocks of data.
    pub fn bytes(&self, bytes: usize) -> Ns {
        Ns((self.block.0 * bytes as u64).div_ceil(u64::from(BLOCK_BYTES)))
    }
}
