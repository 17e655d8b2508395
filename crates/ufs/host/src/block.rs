// SPDX-License-Identifier: MIT OR Apache-2.0
//! Block requests, their completions, and a read as it is sent to the device.

use readpath_proto::typed::{HpbEntry, Sense};

/// What a block request does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlockOp {
    /// Read blocks.
    Read,
    /// Write blocks.
    Write,
    /// Write blocks, acknowledged when they are in flash.
    WriteFua,
    /// Discard blocks.
    Discard,
    /// Make everything acknowledged durable.
    Flush,
    /// RESET WRITE POINTER of the zone that consists of the blocks: it is empty afterwards.
    ResetZone,
    /// FINISH ZONE of the zone that consists of the blocks: it is full afterwards.
    FinishZone,
}

impl BlockOp {
    /// Whether it moves the write pointer of a zone.
    pub fn moves_pointer(self) -> bool {
        matches!(self, BlockOp::Write | BlockOp::WriteFua | BlockOp::ResetZone | BlockOp::FinishZone)
    }

    /// Whether blocks cross the link.
    pub fn moves_data(self) -> bool {
        matches!(self, BlockOp::Read | BlockOp::Write | BlockOp::WriteFua)
    }
}

/// A block request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockRequest {
    /// The submitter's identifier, returned with the completion.
    pub cookie: u32,
    /// Logical unit.
    pub lun: u8,
    /// The operation.
    pub op: BlockOp,
    /// First block of 4 KiB.
    pub block: u32,
    /// Blocks.
    pub blocks: u32,
}

/// The completion of a block request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockDone {
    /// The submitter's identifier.
    pub cookie: u32,
    /// The last command that carried the request or a part of it.
    pub tag: u8,
    /// The sense data of the first part that failed, if any did.
    pub error: Option<Sense>,
}

/// A READ or, if there is an entry, an HPB READ as it is sent to the device. The expected length covers all blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReadRequest {
    /// Logical unit.
    pub lun: u8,
    /// Task tag.
    pub tag: u8,
    /// First block of 4 KiB.
    pub block: u32,
    /// Blocks.
    pub blocks: u32,
    /// HPB entry of the first block.
    pub entry: Option<HpbEntry>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_cross_the_link_when_they_are_read_or_written() {
        let [read, write, fua, discard, flush] =
            [BlockOp::Read, BlockOp::Write, BlockOp::WriteFua, BlockOp::Discard, BlockOp::Flush]
                .map(BlockOp::moves_data);
        assert!(read && write && fua && !discard && !flush);
    }
}
