// SPDX-License-Identifier: MIT OR Apache-2.0
//! The copy of a superblock of a full zone that has been read so often that its data has to move: how far it is. It
//! knows places, but neither flash operations nor the journal.

use super::Zones;
use crate::ids::{Mark, SuperblockId};

/// What a copy waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::ftl) enum Step {
    /// To read the next program.
    Next,
    /// For so many reads of it.
    Reads(u32),
    /// To program what was read.
    Read,
    /// For the end of that.
    Programs,
}

/// A copy in progress.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::ftl) struct Refresh {
    pub zone: u32,
    pub from: SuperblockId,
    pub to: SuperblockId,
    /// The record of the journal that has to be in flash before `to` is written.
    pub record: Mark,
    /// The next block that is copied, and the one behind the last.
    pub next: u32,
    pub end: u32,
    /// Sequence number of the program in progress.
    pub sequence: u32,
    pub step: Step,
    /// The zone was reset.
    pub in_vain: bool,
}

impl Zones {
    pub(in crate::ftl) fn refresh(&self) -> Option<Refresh> {
        self.refresh
    }

    pub(in crate::ftl) fn set_refresh(&mut self, refresh: Option<Refresh>) {
        self.refresh = refresh;
    }

    /// A zone is reset: what is being copied of it is not needed.
    pub(in crate::ftl) fn refresh_in_vain(&mut self, zone: u32) {
        if let Some(refresh) = self.refresh.as_mut().filter(|refresh| refresh.zone == zone) {
            refresh.in_vain = true;
        }
    }
}
