// SPDX-License-Identifier: MIT OR Apache-2.0
//! The path of every read and write of a unit (Linux `ufshpb_prep`): the entry to send, and the entries that become
//! dirty. Nothing is sent here.

use super::{HpbLu, MapDriver, each};
use crate::hpb::LuState;
use crate::hpb::managed::{Route, TimedWhat};
use crate::ids::RegionId;
use readpath_kit::Ns;
use readpath_proto::typed::HpbEntry;

impl HpbLu {
    /// The entry to send with a read of `blocks` blocks from `block`, if all their entries may be used.
    #[inline(always)]
    pub(crate) fn entry_for(&mut self, now: Ns, block: u32, blocks: u32) -> Option<HpbEntry> {
        let asks = blocks != self.direct_blocks;
        if asks && !self.may_have_entry(now, block, blocks) {
            return None;
        }
        let Some(entry) = self.common.table.usable_entry(block, blocks) else {
            self.common.counters.miss_cnt += 1;
            return None;
        };
        self.common.counters.hit_cnt += 1;
        if asks && self.order_by_use {
            self.touch(block);
        }
        Some(entry)
    }

    /// The entry to send with a read of one block, if there is a usable one and the read needs no question to the map's
    /// driver. Nothing is counted.
    #[inline(always)]
    pub(crate) fn direct_entry(&self, block: u32) -> Option<HpbEntry> {
        if self.direct_blocks != 1 {
            return None;
        }
        self.common.table.usable_entry(block, 1)
    }

    /// A read was sent with its [`HpbLu::direct_entry`].
    #[inline(always)]
    pub(crate) fn count_hit(&mut self) {
        self.common.counters.hit_cnt += 1;
    }

    /// Asks the driver about this read. It does not return the entry itself, which would go through memory.
    #[inline(never)]
    fn may_have_entry(&mut self, now: Ns, block: u32, blocks: u32) -> bool {
        if self.common.state != LuState::Present || blocks == 0 {
            return false;
        }
        match &mut self.driver {
            // A policy also sees reads that are too long for an entry.
            MapDriver::Managed(managed) => {
                !managed.sends_plain(&mut self.common, block, blocks) && blocks <= self.common.max_blocks
            }
            MapDriver::Linux(_) if blocks > self.common.max_blocks => false,
            MapDriver::Linux(linux) => {
                linux.note_read(&mut self.common, now, block, blocks);
                true
            }
        }
    }

    #[inline(never)]
    fn touch(&mut self, block: u32) {
        if let MapDriver::Linux(linux) = &mut self.driver {
            linux.touch(RegionId::from(self.common.table.geometry().region_of(block)));
        }
    }

    /// Prefetches the memory that [`HpbLu::entry_for`] touches; false if no entry is held for `block`.
    #[inline]
    pub(crate) fn prefetch(&self, block: u32) -> bool {
        self.common.table.prefetch(block)
    }

    /// A write or discard of these blocks is about to be sent.
    pub(crate) fn write(&mut self, block: u32, blocks: u32) {
        if self.common.state == LuState::Present || !self.common.quirks.ignores_writes_unless_present {
            self.common.mark_dirty(block, blocks);
        }
        each!(&mut self.driver, d => d.note_written(&mut self.common, block, blocks));
    }

    /// How the newest read was sent: with a pre-request or without an entry.
    pub(crate) fn route(&self) -> Route {
        if let MapDriver::Managed(managed) = &self.driver { managed.route() } else { Route::Other }
    }

    /// Notes the time of a command, with `others` commands in flight or waiting at its end.
    pub(crate) fn timed(&mut self, now: Ns, what: TimedWhat, took: Ns, others: u32) {
        if let MapDriver::Managed(managed) = &mut self.driver {
            managed.timed(&self.common.table, now, what, took, others);
        }
    }

    /// A block request of the unit has ended.
    pub(crate) fn block_ended(&mut self, now: Ns) {
        if let MapDriver::Managed(managed) = &mut self.driver {
            managed.block_ended(now);
        }
    }
}
