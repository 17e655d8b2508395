// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reports of flash translation to the parts above it.

use super::Paid;
use crate::ids::{Lpn, TagRef};
use std::collections::VecDeque;

/// An event that the parts above must handle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Effect {
    /// These logical pages have moved: entries that a host may hold for them are stale.
    Changed {
        /// The first.
        first: Lpn,
        /// How many.
        blocks: u32,
    },
    /// The command may be answered.
    Done(TagRef),
    /// One part of what the command waits for is in flash.
    PartInFlash(TagRef),
    /// The command is refused: no space is left for its data, and collection can free none.
    Refused(TagRef),
    /// The command is refused: an earlier write to its zone was dropped, so it is not at the write pointer.
    Unaligned(TagRef),
    /// A map page has been written to flash with new contents.
    MapPageWritten(Paid),
}

/// Effects in the order in which they occurred.
pub(super) struct Effects(VecDeque<Effect>);

impl Effects {
    pub(super) fn new() -> Self {
        Effects(VecDeque::with_capacity(256))
    }

    #[inline]
    pub(super) fn push(&mut self, effect: Effect) {
        self.0.push_back(effect);
    }

    /// Entries that a host may hold for a block are stale.
    #[inline]
    pub(super) fn changed(&mut self, lpn: Lpn) {
        if let Some(Effect::Changed { first, blocks }) = self.0.back_mut()
            && *first + *blocks == lpn
        {
            *blocks += 1;
            return;
        }
        self.push(Effect::Changed { first: lpn, blocks: 1 });
    }

    #[inline(always)]
    pub(super) fn take(&mut self) -> Option<Effect> {
        self.0.pop_front()
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}
