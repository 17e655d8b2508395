// SPDX-License-Identifier: MIT OR Apache-2.0
//! How the flash's own view of a block changes. It knows nothing of time.

use super::map::Entry;
use super::{Effect, Ftl, Mapping};
use crate::ids::Lpn;

impl Ftl {
    /// As far as flash is concerned, `lpn` is now at `to` (clean). The change goes into the table.
    pub(super) fn relocate(&mut self, lpn: Lpn, to: Entry) {
        let old = self.map.relocate(lpn, to);
        self.durable.note_changed(lpn, old);
        if let Mapping::Flash(ppn) = to.mapping() {
            self.space.add_ref(ppn);
        }
        let Mapping::Flash(ppn) = old.mapping() else { return };
        self.collector.gone(ppn);
        if old.is_recent() {
            self.space.drop_ref(ppn);
            self.discard_if_empty(self.space.of(ppn));
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
