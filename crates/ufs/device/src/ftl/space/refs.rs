// SPDX-License-Identifier: MIT OR Apache-2.0
//! References of the map into superblocks: one without references holds no current data.

use super::{Space, State};
use crate::ids::SuperblockId;
use readpath_flash::Ppn;

impl Space {
    /// A map entry now points to `ppn`.
    #[inline]
    pub(crate) fn add_ref(&mut self, ppn: Ppn) {
        let sb = self.of(ppn);
        self.table[sb.index()].refs += 1;
    }

    /// Further map entries point into a superblock.
    pub(crate) fn add_refs(&mut self, sb: SuperblockId, refs: u32) {
        self.table[sb.index()].refs += refs;
    }

    /// A map entry no longer points to `ppn`.
    #[inline]
    pub(crate) fn drop_ref(&mut self, ppn: Ppn) {
        let sb = self.of(ppn);
        let refs = &mut self.table[sb.index()].refs;
        debug_assert!(*refs > 0, "superblock {sb} has no references left");
        *refs = refs.saturating_sub(1);
    }

    /// An entry of a map page that was written at `written_at` no longer points to `ppn`. If the superblock was
    /// opened later, the entry pointed to older data and was not counted.
    pub(crate) fn drop_written_ref(&mut self, ppn: Ppn, written_at: u32) {
        if self.is_counted(ppn, written_at) {
            self.drop_ref(ppn);
        }
    }

    /// An entry of a map page that was put together at `written_at` points to `ppn`; it counts unless the superblock
    /// has been discarded since.
    pub(crate) fn add_written_ref(&mut self, ppn: Ppn, written_at: u32) {
        if self.is_counted(ppn, written_at) {
            self.add_ref(ppn);
        }
    }

    /// Whether an entry of a map page put together at `written_at` refers to the present data of its superblock.
    pub(crate) fn is_counted(&self, ppn: Ppn, written_at: u32) -> bool {
        let sb = self.get(self.of(ppn));
        matches!(sb.state, State::Open(_) | State::Closed(_)) && sb.opened_at <= written_at
    }

    /// Whether a closed superblock has no references and is not being emptied, so that it can be erased.
    pub(crate) fn is_empty(&self, id: SuperblockId) -> bool {
        let sb = self.get(id);
        matches!(sb.state, State::Closed(_)) && sb.refs == 0 && sb.in_flight == 0 && !self.emptying.contains(&id)
    }
}
