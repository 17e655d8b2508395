// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes and trims that wait for room.

use crate::ids::{Lpn, TagRef};

/// The rest of a write whose data waits for room in the buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Incoming {
    /// The write.
    pub tag: TagRef,
    /// Its next logical page.
    pub lpn: Lpn,
    /// Index of that page among the blocks of the write.
    pub index: u32,
    /// Blocks left.
    pub blocks: u32,
    /// The write is acknowledged only when it is in flash.
    pub fua: bool,
}

/// An UNMAP that waits for room in the table of changes or in the journal.
#[derive(Debug)]
pub(in crate::ftl) struct Unmap {
    /// The command.
    pub tag: TagRef,
    /// First logical page and length of each range.
    pub ranges: Vec<(Lpn, u32)>,
    ranges_done: usize,
    /// Blocks of the next range that are done.
    blocks_done: u32,
}

impl Unmap {
    /// A new UNMAP. `list` is cleared and reused for `ranges`.
    pub(super) fn new(tag: TagRef, mut list: Vec<(Lpn, u32)>, ranges: impl Iterator<Item = (Lpn, u32)>) -> Unmap {
        list.clear();
        list.extend(ranges);
        Unmap { tag, ranges: list, ranges_done: 0, blocks_done: 0 }
    }

    /// The next blocks to be trimmed: first and number; `None` if all are done.
    pub(crate) fn next(&mut self) -> Option<(Lpn, u32)> {
        while let Some(&(first, blocks)) = self.ranges.get(self.ranges_done) {
            if self.blocks_done < blocks {
                return Some((first + self.blocks_done, blocks - self.blocks_done));
            }
            self.ranges_done += 1;
            self.blocks_done = 0;
        }
        None
    }

    /// Notes that `blocks` of them have been trimmed.
    pub(crate) fn done(&mut self, blocks: u32) {
        self.blocks_done += blocks;
    }
}
