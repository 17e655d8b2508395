// SPDX-License-Identifier: MIT OR Apache-2.0
//! Commands and responses of the prototype of HPB (W. Jeong et al., "Improving Flash Storage Performance by Caching
//! Address Mapping Table in Host Memory", HotStorage 2017): entries of 4 bytes, groups of them, hints in READ (16),
//! and dirty groups in responses.

use crate::names::{HpbEntry, SubRegion};

/// Bytes of the data segment of a response with a changed entry.
pub const PAIR_BYTES: usize = 8;

readpath_kit::named! {
    /// How the host gets changed entries.
    pub enum GroupUpdate {
        /// Responses name a dirty group, and the host loads it again.
        Host = "host",
        /// Responses carry changed entries. Those that they cannot carry are treated as with [`GroupUpdate::Host`].
        Device = "device",
    }
}

/// The 4 bytes that stand for one 4 KiB logical block: its physical address, big-endian.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[repr(transparent)]
pub struct GroupEntry(pub [u8; 4]);

impl GroupEntry {
    /// All zeros: no entry, or the block is not in flash.
    pub const ZERO: GroupEntry = GroupEntry([0; 4]);
    /// Bytes of an entry.
    pub const BYTES: usize = 4;

    /// The entry of a physical address.
    pub const fn of(address: u32) -> Self {
        GroupEntry(address.to_be_bytes())
    }

    /// The physical address.
    pub const fn address(self) -> u32 {
        u32::from_be_bytes(self.0)
    }
}

/// The HPB part of a READ (16) whose HPB flag is set.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct GroupHint {
    /// Entry of the first block; the others lie behind it.
    pub entry: GroupEntry,
    /// Number of the newest update that the host has seen in a response ([`GroupNotice::update`]).
    pub seen: u8,
}

impl GroupHint {
    /// The hint in the 8 bytes of an [`HpbEntry`], for paths that carry entries outside of commands.
    pub const fn to_entry(self) -> HpbEntry {
        let [a, b, c, d] = self.entry.0;
        HpbEntry([a, b, c, d, self.seen, 0, 0, 0])
    }

    /// The inverse of [`GroupHint::to_entry`].
    pub const fn from_entry(entry: HpbEntry) -> Self {
        let [a, b, c, d, seen, ..] = entry.0;
        GroupHint { entry: GroupEntry([a, b, c, d]), seen }
    }
}

/// A block whose entry has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GroupPair {
    /// Logical block of the response's unit.
    pub lba: u32,
    /// Its entry.
    pub entry: GroupEntry,
}

/// The group part of a GOOD response. Kept small, because every response has room for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GroupNotice {
    dirty: [u8; 4],
    lba: [u8; 4],
    entry: GroupEntry,
    update: u8,
    has: u8,
}

const HAS_DIRTY: u8 = 1;
const HAS_PAIR: u8 = 2;

impl GroupNotice {
    /// The notice of a dirty group, a changed entry, or both; `None` without either. `update` is the number of the
    /// response among those with a changed entry, modulo 256; without one it is not sent.
    pub fn new(dirty: Option<u32>, pair: Option<GroupPair>, update: u8) -> Option<Self> {
        let has = if dirty.is_some() { HAS_DIRTY } else { 0 } | if pair.is_some() { HAS_PAIR } else { 0 };
        (has != 0).then(|| GroupNotice {
            dirty: dirty.unwrap_or(0).to_be_bytes(),
            lba: pair.map_or(0, |p| p.lba).to_be_bytes(),
            entry: pair.map_or(GroupEntry::ZERO, |p| p.entry),
            update: if pair.is_some() { update } else { 0 },
            has,
        })
    }

    /// A group of the response's unit with entries that have changed since their hand-out.
    pub fn dirty(&self) -> Option<u32> {
        (self.has & HAS_DIRTY != 0).then(|| u32::from_be_bytes(self.dirty))
    }

    /// A changed entry.
    pub fn pair(&self) -> Option<GroupPair> {
        (self.has & HAS_PAIR != 0).then(|| GroupPair { lba: u32::from_be_bytes(self.lba), entry: self.entry })
    }

    /// Number of the update, if there is a changed entry.
    pub fn update(&self) -> u8 {
        self.update
    }
}

/// A group's number as HPB READ BUFFER names it: 32 bits where JESD220-3 has region and sub-region.
pub const fn group_at(group: u32) -> SubRegion {
    SubRegion { region: (group >> 16) as u16, index: group as u16 }
}

/// The inverse of [`group_at`].
pub const fn group_of(at: SubRegion) -> u32 {
    (at.region as u32) << 16 | at.index as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_in_comes_out() {
        let pair = GroupPair { lba: 0x0102_0304, entry: GroupEntry::of(0xA1A2_A3A4) };
        assert_eq!(GroupNotice::new(None, None, 9), None);
        for (dirty, pair) in [(Some(0), None), (None, Some(pair)), (Some(u32::MAX), Some(pair))] {
            let n = GroupNotice::new(dirty, pair, 200).expect("a dirty group or a changed entry");
            assert_eq!((n.dirty(), n.pair(), n.update()), (dirty, pair, if pair.is_some() { 200 } else { 0 }));
        }
        assert_eq!(pair.entry.address(), 0xA1A2_A3A4);
        let hint = GroupHint { entry: pair.entry, seen: 7 };
        assert_eq!(hint.to_entry().0, [0xA1, 0xA2, 0xA3, 0xA4, 7, 0, 0, 0]);
        assert_eq!(GroupHint::from_entry(hint.to_entry()), hint);
        for group in [0, 5, 65_535, 65_536, u32::MAX] {
            assert_eq!(group_of(group_at(group)), group);
        }
        assert_eq!(group_at(0x0001_0002), SubRegion { region: 1, index: 2 });
    }
}
