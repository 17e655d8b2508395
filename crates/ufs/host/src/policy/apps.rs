// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which sub-regions each application reads, for a system that says which one comes to the foreground: those that
//! served reads when the application was there last, in the order in which they first did. What it did not read again
//! falls out.

use crate::ids::{Id, SubRegionId};
use fixedbitset::FixedBitSet;

/// Applications that are remembered; one more takes the place of the one that was launched longest ago.
const APPS: usize = 64;
/// Sub-regions of an application.
const LIST: usize = 256;

#[derive(Clone, Copy)]
struct Slot {
    app: u32,
    len: u32,
    /// When it was launched last.
    launched: u64,
}

/// Lists of all applications, as long as they will ever be.
pub(super) struct Apps {
    slots: Vec<Slot>,
    lists: Vec<SubRegionId>,
    most: usize,
    launches: u64,
    /// The one in the foreground, once the system has said so.
    current: Option<usize>,
    /// What has served reads since it is there, in order, and the same as bits.
    served: Vec<SubRegionId>,
    has_served: FixedBitSet,
    /// Its list is loaded from here on.
    ahead: usize,
}

impl Apps {
    pub(super) fn new(sub_regions: u32) -> Self {
        let most = LIST.min(sub_regions as usize);
        Apps {
            slots: Vec::with_capacity(APPS),
            lists: vec![SubRegionId::new(0); APPS * most],
            most,
            launches: 0,
            current: None,
            served: Vec::with_capacity(most),
            has_served: FixedBitSet::with_capacity(sub_regions as usize),
            ahead: 0,
        }
    }

    pub(super) fn foreground(&mut self, app: u32) {
        self.keep();
        self.launches += 1;
        let known = self.slots.iter().position(|slot| slot.app == app);
        let at = known.unwrap_or_else(|| self.place());
        if known.is_none() {
            self.slots[at] = Slot { app, len: 0, launched: 0 };
        }
        self.slots[at].launched = self.launches;
        (self.current, self.ahead) = (Some(at), 0);
    }

    /// A place for one more, which may be somebody's.
    fn place(&mut self) -> usize {
        if self.slots.len() < APPS {
            self.slots.push(Slot { app: 0, len: 0, launched: 0 });
            return self.slots.len() - 1;
        }
        (0..APPS).min_by_key(|&at| self.slots[at].launched).unwrap_or(0)
    }

    /// What the application in the foreground has read, if anything, is its list from now on.
    fn keep(&mut self) {
        let Some(at) = self.current.filter(|_| !self.served.is_empty()) else { return };
        self.lists[at * self.most..][..self.served.len()].copy_from_slice(&self.served);
        self.slots[at].len = self.served.len() as u32;
        for sub_region in self.served.drain(..) {
            self.has_served.set(sub_region.row(), false);
        }
    }

    /// The map of a sub-region serves a read.
    pub(super) fn served(&mut self, sub_region: SubRegionId) {
        if self.current.is_some() && self.served.len() < self.most && !self.has_served.put(sub_region.row()) {
            self.served.push(sub_region);
        }
    }

    pub(super) fn next_ahead(&mut self) -> Option<SubRegionId> {
        let at = self.current?;
        if self.ahead >= self.slots[at].len as usize {
            return None;
        }
        self.ahead += 1;
        Some(self.lists[at * self.most + self.ahead - 1])
    }

    pub(super) fn bytes(&self) -> u64 {
        let words = self.lists.len() + self.served.capacity();
        (words * 4 + APPS * size_of::<Slot>() + self.has_served.len().div_ceil(8)) as u64
    }
}
