// SPDX-License-Identifier: MIT OR Apache-2.0
//! What waits for flash translation, and what it has to tell those above. They know neither time nor what becomes of
//! them.

use super::Paid;
use crate::ids::{Lpn, TagRef};

/// What is left of a write whose data waits for room in the buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Incoming {
    /// The write.
    pub tag: TagRef,
    /// Its next logical page.
    pub lpn: Lpn,
    /// The number of that among its blocks.
    pub index: u32,
    /// Blocks left.
    pub blocks: u32,
    /// It is acknowledged from flash only.
    pub fua: bool,
}

/// An UNMAP that waits for room in the table of changes or in the journal.
#[derive(Debug)]
pub(super) struct Unmap {
    /// The command.
    pub tag: TagRef,
    /// First logical page of each range, and how many.
    pub ranges: Vec<(Lpn, u32)>,
    /// Ranges that are done.
    pub ranges_done: usize,
    /// Blocks of the next that are done.
    pub blocks_done: u32,
}

/// Something that those above have to know, in the order in which it happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Effect {
    /// These logical pages are somewhere else now: entries that a host may hold for them are stale.
    Changed {
        /// The first.
        first: Lpn,
        /// How many.
        blocks: u32,
    },
    /// The command may be answered.
    Done(TagRef),
    /// One thing that the command waits for is in flash.
    PartInFlash(TagRef),
    /// There is no space for what the command brought, and none can be had.
    Refused(TagRef),
    /// A map page in flash says something new.
    MapPageWritten(Paid),
}
