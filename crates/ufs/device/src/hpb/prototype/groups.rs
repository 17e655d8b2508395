// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the prototype's device knows of the entries that its host may hold: a dirty bit for each group and, if the
//! device begins updates, a list of changed entries. It is SRAM, and counted by [`Groups::sram_bytes`].
//!
//! An entry is a plain address: it does not say when it was made. So a hint is believed only if its group is not
//! dirty, and its block is either not listed or was sent in an update that the host has seen when it sends the hint.
//! That is enough if commands arrive in the order in which they are sent and the host keeps two rules: while a group
//! is being loaded, it sends no hint of the group, and it ignores updates of its entries.

use crate::config::PrototypeConfig;
use fixedbitset::FixedBitSet;
use readpath_proto::groups::{GroupHint, GroupUpdate};
use std::ops::Range;

/// The most updates that the host may not have seen yet. The count has 8 bits; a difference above half of its range
/// would be taken for a future update.
const UNSEEN_UPDATES: u8 = 100;
/// The most changes examined to find one that can be sent with a response.
const LOOKS: usize = 16;

/// An entry that changed since its group was handed out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Change {
    lpn: u32,
    /// The update that sent it to the host, unless it changed again.
    sent: Option<u8>,
}

/// A logical unit with groups.
struct Unit {
    /// First logical page, and one past the last.
    pages: Range<u32>,
    first_bit: u32,
}

pub(crate) struct Groups {
    config: PrototypeConfig,
    shift: u32,
    units: Vec<Option<Unit>>,
    dirty: FixedBitSet,
    /// Sorted by logical page.
    changes: Vec<Change>,
    /// Where the next search of the changes begins.
    hand: usize,
    /// Number of the newest update, modulo 256; below, of the newest that the host is known to have seen.
    updates: u8,
    seen: u8,
    /// Counts hand-outs and removals from the list, so that a long read notices them.
    hand_outs: u32,
}

impl Groups {
    /// Groups of units with these numbers of blocks, none for those marked false; nothing was handed out.
    pub(crate) fn new(config: &PrototypeConfig, unit_blocks: impl Iterator<Item = (u32, bool)>) -> Self {
        let shift = config.group_entries.trailing_zeros();
        let (mut base, mut bits) = (0, 0);
        let units = unit_blocks
            .map(|(blocks, has_groups)| {
                let unit = Unit { pages: base..base + blocks, first_bit: bits };
                base += blocks;
                bits += if has_groups { blocks.div_ceil(config.group_entries) } else { 0 };
                has_groups.then_some(unit)
            })
            .collect();
        let room = if config.update == GroupUpdate::Device { usize::from(config.listed_changes) } else { 0 };
        let mut groups = Groups {
            config: *config,
            shift,
            units,
            dirty: FixedBitSet::with_capacity(bits as usize),
            changes: Vec::with_capacity(room),
            hand: 0,
            updates: 0,
            seen: 0,
            hand_outs: 0,
        };
        groups.reset();
        groups
    }

    /// Invalidates everything that was handed out.
    pub(crate) fn reset(&mut self) {
        self.dirty.insert_range(..);
        self.changes.clear();
        (self.hand, self.updates, self.seen) = (0, 0, 0);
        self.hand_outs = self.hand_outs.wrapping_add(1);
    }

    /// Bytes of device SRAM: the dirty bits, and the list with the two counts of updates.
    pub(crate) fn sram_bytes(&self) -> u64 {
        let list = match self.config.update {
            GroupUpdate::Host => 0,
            GroupUpdate::Device => u64::from(self.config.listed_changes) * PrototypeConfig::CHANGE_BYTES + 2,
        };
        self.dirty.len().div_ceil(8) as u64 + list
    }

    /// Whether the unit has groups.
    pub(crate) fn has(&self, lun: u8) -> bool {
        self.unit(lun).is_some()
    }

    pub(crate) fn group_entries(&self) -> u32 {
        self.config.group_entries
    }

    /// Blocks of a group of a unit, or `None` if there is no such group. The last may be short.
    pub(crate) fn blocks_of(&self, lun: u8, group: u32) -> Option<Range<u32>> {
        let blocks = self.unit(lun)?.pages.len() as u64;
        let first = u64::from(group) << self.shift;
        let end = (first + u64::from(self.config.group_entries)).min(blocks);
        (first < end).then_some(first as u32..end as u32)
    }

    /// The first dirty group of a unit's blocks.
    pub(crate) fn first_dirty(&self, lun: u8, blocks: Range<u32>) -> Option<u32> {
        let unit = self.unit(lun).filter(|unit| !blocks.is_empty() && blocks.end <= unit.pages.len() as u32)?;
        (blocks.start >> self.shift..=(blocks.end - 1) >> self.shift)
            .find(|&group| self.dirty.contains((unit.first_bit + group) as usize))
    }

    /// Whether the entries of these blocks of a unit are current at a host that has seen the update `seen`. An entry
    /// that has not changed since its hand-out is current at every host.
    pub(crate) fn are_current(&self, lun: u8, blocks: Range<u32>, seen: u8) -> bool {
        let Some(unit) = self.unit(lun) else { return false };
        if self.first_dirty(lun, blocks.clone()).is_some() {
            return false;
        }
        // The host can have seen only updates that were sent, and no fewer than it was known to have seen.
        let is_possible = seen.wrapping_sub(self.seen) <= self.updates.wrapping_sub(self.seen);
        let seen = if is_possible { seen } else { self.seen };
        let from = self.changes.partition_point(|c| c.lpn < unit.pages.start + blocks.start);
        let listed = self.changes[from..].iter().take_while(|c| c.lpn < unit.pages.start + blocks.end);
        listed.into_iter().all(|c| c.sent.is_some_and(|sent| is_seen(sent, seen)))
    }

    /// Handles a hint. Its host has seen the updates that it names, so their entries need not be listed any more.
    pub(crate) fn hint_came(&mut self, hint: GroupHint) {
        if self.seen != hint.seen && is_seen(self.seen, hint.seen) && is_seen(hint.seen, self.updates) {
            self.seen = hint.seen;
            let listed = self.changes.len();
            self.changes.retain(|c| c.sent.is_none_or(|sent| !is_seen(sent, hint.seen)));
            if self.changes.len() < listed {
                // A long read in progress with an older hint would not find the removed changes.
                self.hand_outs = self.hand_outs.wrapping_add(1);
            }
        }
    }

    /// The entry of logical page `lpn` of any unit changes now.
    pub(crate) fn changed(&mut self, lpn: u32) {
        let Some(bit) = self.bit_of(lpn) else { return };
        if self.dirty.contains(bit) {
            return;
        }
        if self.config.update == GroupUpdate::Device {
            let at = self.changes.partition_point(|c| c.lpn < lpn);
            if let Some(change) = self.changes.get_mut(at).filter(|c| c.lpn == lpn) {
                change.sent = None;
                return;
            }
            if self.changes.len() < usize::from(self.config.listed_changes) {
                return self.changes.insert(at, Change { lpn, sent: None });
            }
        }
        self.make_dirty(lpn);
    }

    /// Makes the group of `lpn` dirty; its listed changes are dropped.
    fn make_dirty(&mut self, lpn: u32) {
        if let Some(bit) = self.bit_of(lpn) {
            self.dirty.insert(bit);
            self.forget_group_of(lpn);
        }
    }

    /// All entries of a group of a unit are handed out as of now.
    pub(crate) fn handed_out(&mut self, lun: u8, group: u32) {
        let Some(unit) = self.unit(lun) else { return };
        let (bit, first) = ((unit.first_bit + group) as usize, unit.pages.start + (group << self.shift));
        self.dirty.set(bit, false);
        self.hand_outs = self.hand_outs.wrapping_add(1);
        self.forget_group_of(first);
    }

    /// Number of hand-outs and of removals from the list of changes.
    pub(crate) fn hand_outs(&self) -> u32 {
        self.hand_outs
    }

    /// A changed entry of the unit for a response, and the number of that update. `entry_of` gives the present entry:
    /// `Ok(None)` if it is not known yet, an error if SRAM no longer knows it, which makes its group dirty.
    pub(crate) fn next_update<T>(
        &mut self,
        lun: u8,
        entry_of: impl Fn(u32) -> Result<Option<T>, Forgotten>,
    ) -> Option<(u32, T, u8)> {
        let pages = self.unit(lun)?.pages.clone();
        if self.updates.wrapping_sub(self.seen) >= UNSEEN_UPDATES {
            return None;
        }
        for _ in 0..LOOKS.min(self.changes.len()) {
            self.hand = if self.hand < self.changes.len() { self.hand } else { 0 };
            let change = self.changes.get_mut(self.hand)?;
            let lpn = change.lpn;
            if change.sent.is_some() || !pages.contains(&lpn) {
                self.hand += 1;
                continue;
            }
            match entry_of(lpn) {
                Ok(Some(entry)) => {
                    self.updates = self.updates.wrapping_add(1);
                    change.sent = Some(self.updates);
                    self.hand += 1;
                    return Some((lpn - pages.start, entry, self.updates));
                }
                Ok(None) => self.hand += 1,
                Err(Forgotten) => self.make_dirty(lpn),
            }
        }
        None
    }

    fn forget_group_of(&mut self, lpn: u32) {
        let Some(unit) = self.units.iter().flatten().find(|u| u.pages.contains(&lpn)) else { return };
        let first = unit.pages.start + ((lpn - unit.pages.start) >> self.shift << self.shift);
        let from = self.changes.partition_point(|c| c.lpn < first);
        let to = self
            .changes
            .partition_point(|c| u64::from(c.lpn) < u64::from(first) + u64::from(self.config.group_entries));
        // Changes of the next unit belong to other groups, however near their logical pages are.
        let to = to.min(self.changes.partition_point(|c| c.lpn < unit.pages.end));
        self.changes.drain(from..to);
    }

    fn unit(&self, lun: u8) -> Option<&Unit> {
        self.units.get(usize::from(lun))?.as_ref()
    }

    fn bit_of(&self, lpn: u32) -> Option<usize> {
        let unit = self.units.iter().flatten().find(|u| u.pages.contains(&lpn))?;
        Some((unit.first_bit + ((lpn - unit.pages.start) >> self.shift)) as usize)
    }
}

/// SRAM no longer knows an entry: its map page has been written back.
pub(crate) struct Forgotten;

/// Whether a host that has seen the update `seen` has seen `update`, at most half of 256 away.
fn is_seen(update: u8, seen: u8) -> bool {
    seen.wrapping_sub(update) < 128
}

#[cfg(test)]
mod tests {
    use super::*;
    use readpath_proto::groups::GroupEntry;

    fn groups(update: GroupUpdate, listed_changes: u16) -> Groups {
        let config = PrototypeConfig { update, group_entries: 64, listed_changes };
        // 100 blocks in two groups, 10 without, 64 in one.
        Groups::new(&config, [(100, true), (10, false), (64, true)].into_iter())
    }

    fn hand_out_all(g: &mut Groups) {
        for (lun, group) in [(0, 0), (0, 1), (2, 0)] {
            g.handed_out(lun, group);
        }
    }

    fn hint(g: &mut Groups, seen: u8) {
        g.hint_came(GroupHint { entry: GroupEntry::ZERO, seen });
    }

    fn update(g: &mut Groups, lun: u8) -> Option<(u32, u32, u8)> {
        g.next_update(lun, |lpn| Ok(Some(lpn * 2)))
    }

    #[test]
    fn a_bit_for_each_group_that_starts_dirty() {
        let mut g = groups(GroupUpdate::Host, 1);
        assert_eq!((g.has(0), g.has(1), g.has(2), g.has(3)), (true, false, true, false));
        assert_eq!((g.blocks_of(0, 0), g.blocks_of(0, 1), g.blocks_of(0, 2)), (Some(0..64), Some(64..100), None));
        assert_eq!((g.blocks_of(1, 0), g.blocks_of(2, 0), g.blocks_of(2, u32::MAX)), (None, Some(0..64), None));
        assert_eq!((g.sram_bytes(), groups(GroupUpdate::Device, 10).sram_bytes()), (1, 1 + 62));
        assert_eq!(
            (g.first_dirty(0, 0..100), g.first_dirty(0, 64..65), g.are_current(2, 0..1, 0)),
            (Some(0), Some(1), false)
        );
        hand_out_all(&mut g);
        assert_eq!((g.first_dirty(0, 0..100), g.first_dirty(1, 0..1), g.are_current(2, 0..64, 0)), (None, None, true));
        g.changed(99);
        g.changed(105);
        assert_eq!((g.first_dirty(0, 63..65), g.first_dirty(0, 0..64), g.first_dirty(2, 0..64)), (Some(1), None, None));
        assert!(g.are_current(0, 0..64, 0) && !g.are_current(0, 63..65, 0), "a group, not a block");
        g.changed(110);
        assert_eq!(g.first_dirty(2, 5..6), Some(0));
        let before = g.hand_outs();
        g.reset();
        assert!(g.first_dirty(0, 0..1).is_some() && g.hand_outs() != before);
    }

    #[test]
    fn a_change_is_sent_and_believed_when_the_host_says_that_it_has_it() {
        let mut g = groups(GroupUpdate::Device, 4);
        hand_out_all(&mut g);
        g.changed(7);
        assert!(!g.are_current(0, 7..8, 0) && g.are_current(0, 8..64, 0) && g.first_dirty(0, 0..64).is_none());
        assert_eq!(update(&mut g, 2), None, "of another unit");
        assert_eq!(g.next_update(0, |_| Ok(None::<u32>)), None, "in no place yet");
        assert_eq!(update(&mut g, 0), Some((7, 14, 1)));
        assert_eq!(update(&mut g, 0), None, "once");
        assert!(!g.are_current(0, 7..8, 0), "the hint was sent before the update came");
        assert!(g.are_current(0, 7..8, 1) && !g.are_current(0, 7..8, 0));
        g.changed(7);
        assert!(!g.are_current(0, 7..8, 1), "it has changed again");
        assert_eq!(update(&mut g, 0), Some((7, 14, 2)));
        hint(&mut g, 1);
        assert!(!g.are_current(0, 7..8, 1));
        hint(&mut g, 2);
        assert!(g.are_current(0, 7..8, 2) && g.changes.is_empty());
    }

    /// Otherwise the `u8` counter wraps, and a stale host looks newer.
    #[test]
    fn a_host_cannot_have_seen_what_was_not_sent() {
        let mut g = groups(GroupUpdate::Device, 4);
        hand_out_all(&mut g);
        for _ in 0..129 {
            g.changed(110);
            let (.., number) = update(&mut g, 2).expect("a change");
            hint(&mut g, number);
        }
        g.changed(7);
        assert_eq!(update(&mut g, 0), Some((7, 14, 130)));
        assert!(!g.are_current(0, 7..8, 0) && !g.are_current(0, 7..8, 131) && g.are_current(0, 7..8, 130));
    }

    #[test]
    fn what_finds_no_room_makes_its_group_dirty() {
        let mut g = groups(GroupUpdate::Device, 3);
        hand_out_all(&mut g);
        [5, 70, 6].into_iter().for_each(|lpn| g.changed(lpn));
        g.changed(71);
        assert_eq!((g.first_dirty(0, 64..100), g.first_dirty(0, 0..64), g.changes.len()), (Some(1), None, 2));
        g.changed(80);
        assert_eq!(g.changes.len(), 2, "of a dirty group nothing is listed");
        g.changed(112);
        // Entries that SRAM has forgotten can only be loaded with their group.
        assert_eq!(g.next_update(2, |_| Err::<Option<u32>, _>(Forgotten)), None);
        assert_eq!((g.first_dirty(2, 0..64), g.changes.len()), (Some(0), 2));
        g.handed_out(0, 0);
        assert!(g.changes.is_empty() && g.are_current(0, 5..7, 0), "what is given out is as of now");
    }

    /// A host that has seen no update, or claims to have seen a future one, gets a bounded number of updates.
    #[test]
    fn updates_wait_for_the_host() {
        let mut g = groups(GroupUpdate::Device, 8);
        hand_out_all(&mut g);
        let mut sent = 0;
        for _ in 0..300 {
            g.changed(3);
            sent += u32::from(update(&mut g, 0).is_some());
        }
        assert_eq!(sent, u32::from(UNSEEN_UPDATES));
        hint(&mut g, 120);
        assert_eq!((g.seen, update(&mut g, 0)), (0, None));
        for round in 1..=10u32 {
            let newest = g.updates;
            hint(&mut g, newest);
            g.changed(3);
            assert_eq!(update(&mut g, 0), Some((3, 6, (u32::from(UNSEEN_UPDATES) + round) as u8)));
        }
    }
}
