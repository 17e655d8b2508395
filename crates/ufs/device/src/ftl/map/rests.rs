// SPDX-License-Identifier: MIT OR Apache-2.0
//! Blocks of zones that lie in no whole program, one by one. The table is SRAM, and checkpoints hold it: there are few.

use crate::ids::Lpn;
use readpath_flash::Ppn;
use std::collections::BTreeMap;

#[derive(Default)]
pub(super) struct Rests {
    places: BTreeMap<Lpn, Ppn>,
}

impl Rests {
    pub(super) fn get(&self, lpn: Lpn) -> Option<Ppn> {
        self.places.get(&lpn).copied()
    }

    /// Moves a block to `to`, or removes it; returns where it was.
    pub(super) fn set(&mut self, lpn: Lpn, to: Option<Ppn>) -> Option<Ppn> {
        match to {
            Some(ppn) => self.places.insert(lpn, ppn),
            None => self.places.remove(&lpn),
        }
    }

    /// Blocks from `first` on, before `end`, in order.
    pub(super) fn range(&self, first: Lpn, end: Lpn) -> impl Iterator<Item = (Lpn, Ppn)> {
        self.places.range(first..end).map(|(lpn, ppn)| (*lpn, *ppn))
    }

    pub(super) fn clear(&mut self) {
        self.places.clear();
    }
}
