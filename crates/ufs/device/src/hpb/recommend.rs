// SPDX-License-Identifier: MIT OR Apache-2.0
//! The queue of recommendations that wait for a response: one response carries at most two sub-regions to activate
//! and two regions to inactivate (JESD220-3). It does not know why they are made.

use readpath_proto::typed::{HpbNotification, SubRegion};
use std::collections::VecDeque;

/// A sub-region to activate, and the region that has to make room for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Recommended {
    /// Sub-region that the host should load.
    pub activate: SubRegion,
    /// Region that the host should drop first.
    pub inactivate: Option<u16>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Item {
    Activate(SubRegion),
    Inactivate(u16),
}

/// A bounded first-in-first-out queue; a notification concerns one logical unit only.
pub(super) struct Recommendations {
    line: VecDeque<(u8, Item)>,
    reset_pending: u8,
    reset_lun: u8,
}

impl Recommendations {
    /// Entries the line can hold.
    pub(super) const CAPACITY: usize = 128;
    /// How often an HPB reset is announced to a host that does not react.
    const RESET_REPEATS: u8 = 4;
    /// Flag in `reset_pending`: another part may have a report for every response.
    const ALWAYS: u8 = 0x80;

    /// An empty queue. A reset concerns all units; its announcement names `reset_lun`, which must be a unit with HPB:
    /// otherwise Linux ignores it.
    pub(super) fn new(reset_lun: u8) -> Self {
        Recommendations { line: VecDeque::with_capacity(Self::CAPACITY), reset_pending: 0, reset_lun }
    }

    /// Sets that another part may have a report for every response.
    pub(super) fn never_empty(self) -> Self {
        Recommendations { reset_pending: self.reset_pending | Self::ALWAYS, ..self }
    }

    /// Adds a recommendation for `lun`; false when the line is full and nothing was added.
    pub(super) fn push(&mut self, lun: u8, what: Recommended) -> bool {
        if self.line.len() + 2 > Self::CAPACITY {
            return false;
        }
        if let Some(region) = what.inactivate {
            self.line.push_back((lun, Item::Inactivate(region)));
        }
        self.line.push_back((lun, Item::Activate(what.activate)));
        true
    }

    /// Announces to the host that its entries are lost.
    pub(super) fn announce_reset(&mut self) {
        self.line.clear();
        self.reset_pending = self.reset_pending & Self::ALWAYS | Self::RESET_REPEATS;
    }

    /// The host has reacted: it loads entries again or has requested the reset itself.
    pub(super) fn reset_seen(&mut self) {
        self.reset_pending &= Self::ALWAYS;
    }

    pub(super) fn clear(&mut self) {
        self.line.clear();
        self.reset_pending &= Self::ALWAYS;
    }

    /// Whether a response has nothing to carry.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.line.is_empty() && self.reset_pending == 0
    }

    /// The notification of the next GOOD response.
    pub(super) fn take(&mut self) -> Option<HpbNotification> {
        if self.reset_pending & !Self::ALWAYS > 0 {
            self.reset_pending -= 1;
            let (operation, lun) = (HpbNotification::RESET, self.reset_lun);
            return Some(HpbNotification { operation, lun, ..HpbNotification::default() });
        }
        let &(lun, _) = self.line.front()?;
        let mut n = HpbNotification { operation: HpbNotification::REGION_UPDATE, lun, ..HpbNotification::default() };
        while let Some(&(of, item)) = self.line.front() {
            let inactivated = &n.inactive[..usize::from(n.inactive_count)];
            let activated = &n.active[..usize::from(n.active_count)];
            match item {
                _ if of != lun => break,
                // The two lists of a response have no common order, so a region may be in one of them only.
                Item::Activate(at) if inactivated.contains(&at.region) => break,
                Item::Inactivate(region) if activated.iter().any(|at| at.region == region) => break,
                Item::Activate(at) if n.active_count < 2 => {
                    n.active[usize::from(n.active_count)] = at;
                    n.active_count += 1;
                }
                Item::Inactivate(region) if n.inactive_count < 2 => {
                    n.inactive[usize::from(n.inactive_count)] = region;
                    n.inactive_count += 1;
                }
                _ => break,
            }
            self.line.pop_front();
        }
        Some(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_is_in_one_list_of_a_notification_only() {
        let mut line = Recommendations::new(0);
        let at = |region| SubRegion { region, index: 1 };
        for (inactivate, activate) in [(Some(5), 6), (Some(7), 5), (Some(5), 8)] {
            assert!(line.push(0, Recommended { activate: at(activate), inactivate }));
        }
        let mut told = Vec::new();
        while let Some(n) = line.take() {
            let active: Vec<u16> = n.active[..usize::from(n.active_count)].iter().map(|at| at.region).collect();
            told.push((n.inactive[..usize::from(n.inactive_count)].to_vec(), active));
        }
        assert_eq!(told, [(vec![5, 7], vec![6]), (vec![], vec![5]), (vec![5], vec![8])]);
    }
}
