// SPDX-License-Identifier: MIT OR Apache-2.0
//! What flash translation reports to the parts above it. It knows neither time nor what becomes of a report.

use super::Paid;
use crate::ids::{Lpn, TagRef};
use std::collections::VecDeque;

/// Something that the parts above have to know.
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
    /// One part of what the command waits for is in flash.
    PartInFlash(TagRef),
    /// There is no space for what the command brought, and none can be had.
    Refused(TagRef),
    /// A map page in flash says something new.
    MapPageWritten(Paid),
}

/// Effects in the order in which they happened.
pub(super) struct Effects(VecDeque<Effect>);

impl Effects {
    /// None yet.
    pub(super) fn new() -> Self {
        Effects(VecDeque::with_capacity(256))
    }

    /// Adds one.
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

    /// Takes the first.
    #[inline(always)]
    pub(super) fn take(&mut self) -> Option<Effect> {
        self.0.pop_front()
    }

    /// Nothing is to be reported any more.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}
