// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the prototype of HPB puts into commands and responses (W. Jeong et al., "Improving Flash Storage Performance by
//! Caching Address Mapping Table in Host Memory", HotStorage 2017): entries of 4 bytes, groups of them, hints in READ (16),
//! and dirty groups in responses. Knows nothing of what a group holds or who asks.

use crate::typed::{HpbEntry, Residual, Response, Status, SubRegion};
use crate::upiu::{INFO_HPB_ALERT, UpiuError};

/// Device information (byte 9 of a RESPONSE): bytes 12 to 15 are the number of a dirty group. The paper gives the place of
/// the number, not of the bit.
pub const INFO_DIRTY: u8 = 0x04;
/// Device information (byte 9 of a RESPONSE): the data segment is a logical block and its entry, byte 8 the number of the
/// update. The paper says neither.
pub const INFO_PAIR: u8 = 0x08;
/// Bytes of the data segment of a response with a changed entry.
pub const PAIR_BYTES: usize = 8;

/// How the host gets the entries that have changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GroupUpdate {
    /// Responses name a dirty group, and the host loads it again.
    Host,
    /// Responses bring changed entries. What they cannot bring is as with [`GroupUpdate::Host`].
    Device,
}

impl GroupUpdate {
    /// Names and values.
    pub const ALL: [(&'static str, GroupUpdate); 2] = [("host", GroupUpdate::Host), ("device", GroupUpdate::Device)];

    /// A word for people and files: who begins an update.
    pub const fn name(self) -> &'static str {
        match self {
            GroupUpdate::Host => "host",
            GroupUpdate::Device => "device",
        }
    }
}

/// The 4 bytes that stand for one 4 KiB logical block: its physical address, in the byte order of the wire (big-endian).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[repr(transparent)]
pub struct GroupEntry(pub [u8; 4]);

impl GroupEntry {
    /// All zeros: nothing is held, or the block is not in flash.
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

/// What goes with a READ (16) whose HPB flag is set.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct GroupHint {
    /// Entry of the first block; the others lie behind it.
    pub entry: GroupEntry,
    /// Number of the newest update that the host has taken from a response ([`GroupNotice::update`]).
    pub seen: u8,
}

impl GroupHint {
    /// The same in the 8 bytes in which entries pass where they take no form of a command.
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

/// A block whose entry is now another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GroupPair {
    /// Logical block of the response's unit.
    pub lba: u32,
    /// Its entry.
    pub entry: GroupEntry,
}

/// What a GOOD response tells of groups. Kept small: every response has room for it.
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
    /// The notice of a dirty group, a changed entry, or both; `None` without either. `update` is the number of the response
    /// among those with a changed entry, modulo 256; without one it is not told.
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

    /// A group of the response's unit some of whose entries have changed since they were given out.
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

/// Writes `notice` into the first 32 bytes `b` of a RESPONSE UPIU and the data segment behind them; returns the bytes of that.
/// A dirty group is left out unless bytes 12 to 15 are free (`has_room`).
pub(crate) fn put_notice(notice: &GroupNotice, has_room: bool, b: &mut [u8; 32], segment: &mut [u8]) -> usize {
    debug_assert!(has_room || notice.dirty().is_none(), "a dirty group stands in the place of the residual count");
    if let Some(group) = notice.dirty().filter(|_| has_room) {
        b[9] |= INFO_DIRTY;
        b[12..16].copy_from_slice(&group.to_be_bytes());
    }
    let Some(pair) = notice.pair() else { return 0 };
    b[8] = notice.update;
    b[9] |= INFO_PAIR;
    segment[..4].copy_from_slice(&pair.lba.to_be_bytes());
    segment[4..PAIR_BYTES].copy_from_slice(&pair.entry.0);
    PAIR_BYTES
}

/// The inverse of [`put_notice`], for what else the response says: a notice stands only where nothing else does.
pub(crate) fn parse_notice(
    b: &[u8; 32],
    segment: &[u8],
    response: &Response,
) -> Result<Option<GroupNotice>, UpiuError> {
    let alone = response.status == Status::Good && b[9] & INFO_HPB_ALERT == 0;
    let is_dirty = b[9] & INFO_DIRTY != 0;
    if !alone || (is_dirty && response.residual != Residual::None) {
        let expected =
            "without bits 2 and 3, which go with GOOD and no notification; bit 2 also with no residual count";
        return Err(UpiuError::Field { offset: 9, found: b[9].into(), expected });
    }
    let pair = match (b[9] & INFO_PAIR != 0, segment) {
        (false, []) => None,
        (true, &[a, b, c, d, e, f, g, h]) => {
            Some(GroupPair { lba: u32::from_be_bytes([a, b, c, d]), entry: GroupEntry([e, f, g, h]) })
        }
        _ => {
            let expected = "8 (logical block and entry) with bit 3 of byte 9, 0 without";
            return Err(UpiuError::Field { offset: 10, found: segment.len() as u32, expected });
        }
    };
    let dirty = is_dirty.then(|| u32::from_be_bytes([b[12], b[13], b[14], b[15]]));
    Ok(GroupNotice::new(dirty, pair, b[8]))
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
            let n = GroupNotice::new(dirty, pair, 200).expect("something to tell");
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
