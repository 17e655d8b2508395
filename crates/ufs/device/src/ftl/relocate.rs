// SPDX-License-Identifier: MIT OR Apache-2.0
//! How the flash's own view of a block changes. It knows nothing of time.

use super::buffer::WriteBuffer;
use super::map::{Entry, PageMap};
use super::{Effect, Ftl, Mapping};
use crate::ids::Lpn;

impl Ftl {
    /// What flash, and the changes that SRAM holds, say of `lpn`, whatever the write buffer holds.
    #[inline]
    pub(super) fn flash_entry(&self, lpn: Lpn) -> Entry {
        flash_entry(&self.map, &self.buffer, lpn)
    }

    /// Sets what [`UfsDevice::flash_entry`] says, which was `old` until now.
    #[inline]
    pub(super) fn set_flash_entry(&mut self, lpn: Lpn, old: Entry, entry: Entry) {
        self.durable.note_changed(lpn, old);
        match self.map.get(lpn) {
            Mapping::Buffered(slot) => self.buffer.set_under(slot, entry),
            _ => self.map.set(lpn, entry),
        }
    }

    /// Brings near what [`UfsDevice::relocate`] will touch.
    #[inline]
    pub(super) fn prefetch_change(&self, lpn: Lpn) {
        self.map.prefetch(lpn);
        self.changes.prefetch(self.map.page_of(lpn));
    }

    /// As far as flash is concerned, `lpn` is now at `to` (clean). The change goes into the table.
    pub(super) fn relocate(&mut self, lpn: Lpn, to: Entry) {
        let old = self.flash_entry(lpn);
        if let Mapping::Flash(ppn) = old.mapping() {
            self.collector.gone(ppn);
        }
        let mut left = None;
        if old.is_recent() {
            if let Mapping::Flash(ppn) = old.mapping() {
                self.changes.names_slice(false);
                self.space.drop_ref(ppn);
                left = Some(self.space.of(ppn));
            }
        } else {
            self.changes.add(self.map.page_of(lpn), lpn, old);
        }
        if let Mapping::Flash(ppn) = to.mapping() {
            self.changes.names_slice(true);
            self.space.add_ref(ppn);
        }
        self.set_flash_entry(lpn, old, to.recent());
        if let Some(sb) = left {
            self.discard_if_empty(sb);
        }
    }

    /// Entries that a host may hold for a block are stale.
    pub(super) fn note_change(&mut self, lpn: Lpn) {
        if let Some(Effect::Changed { first, blocks }) = self.effects.back_mut()
            && *first + *blocks == lpn
        {
            *blocks += 1;
            return;
        }
        self.effects.push_back(Effect::Changed { first: lpn, blocks: 1 });
    }
}

/// See [`Ftl::flash_entry`].
#[inline]
pub(super) fn flash_entry(map: &PageMap, buffer: &WriteBuffer, lpn: Lpn) -> Entry {
    let entry = map.entry(lpn);
    match entry.mapping() {
        Mapping::Buffered(slot) => buffer.under(slot),
        _ => entry,
    }
}
