// SPDX-License-Identifier: MIT OR Apache-2.0
//! Causes and durations of the waiting of writes. It does not know what they write.

use crate::back::DeviceStats;
use readpath_kit::Ns;

/// Why data waits before it is programmed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stall {
    /// Programs in progress must end, so that a checkpoint can be put together.
    Checkpoint,
    /// The table of changes is full: map pages have to be written back.
    MapChanges,
    /// Garbage collection has to free space.
    Space,
    /// The journal has to name the superblock first.
    Journal,
    /// The number of programs in progress is at its limit.
    Programs,
}

/// Measures how long writes wait, and for what.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct StallClock {
    since: Option<(Ns, Option<Stall>)>,
}

impl StallClock {
    /// From `now` on writes wait for `cause` (`Some(None)`: for programs in progress), or do not wait (`None`).
    pub(super) fn set(&mut self, now: Ns, cause: Option<Option<Stall>>, stats: &mut DeviceStats) {
        if let Some((since, cause)) = self.since.take() {
            let counter = match cause {
                Some(Stall::Checkpoint) => &mut stats.stall_checkpoint_ns,
                Some(Stall::MapChanges) => &mut stats.stall_map_ns,
                Some(Stall::Space) => &mut stats.stall_space_ns,
                Some(Stall::Journal) => &mut stats.stall_journal_ns,
                Some(Stall::Programs) | None => &mut stats.stall_flash_ns,
            };
            *counter += now.saturating_sub(since).0;
        }
        self.since = cause.map(|cause| (now, cause));
    }
}
