// SPDX-License-Identifier: MIT OR Apache-2.0
//! The head of a slice's spare area, as bytes.

use crate::layout::HEAD_BYTES;
use readpath_device::{SliceKind, Spare, Stream};

/// The kind of a slice whose program was interrupted.
const TORN: u8 = 0xff;
const HAS_DATA: u8 = 1 << 4;
const HAS_REST: u8 = 1 << 5;
pub(super) const ENDS_UNIT: u8 = 1 << 6;
const NUMBER: std::ops::Range<u64> = 0..1 << 48;

/// The head of a spare area in the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Head {
    pub spare: Spare,
    /// Check of the rest and the data, as far as they exist.
    pub check: u32,
    pub has_data: bool,
    pub has_rest: bool,
}

/// Result of parsing a head.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Read {
    Blank,
    Torn,
    Damaged,
    Head(Head),
}

impl Head {
    pub(super) fn to_bytes(self) -> [u8; HEAD_BYTES] {
        let Spare { kind, stream, page, sequence, program, ends_unit } = self.spare;
        debug_assert!(NUMBER.contains(&sequence) && NUMBER.contains(&program));
        let mut bytes = [0; HEAD_BYTES];
        bytes[..4].copy_from_slice(&self.check.to_le_bytes());
        // Never 0, so that no head is blank.
        bytes[6] = kind as u8 + 1;
        let flags = [(HAS_DATA, self.has_data), (HAS_REST, self.has_rest), (ENDS_UNIT, ends_unit)];
        bytes[7] = flags.iter().filter(|(_, is_set)| *is_set).fold(stream.index() as u8, |byte, (flag, _)| byte | flag);
        bytes[8..12].copy_from_slice(&page.map_or(0, |page| page + 1).to_le_bytes());
        bytes[12..18].copy_from_slice(&sequence.to_le_bytes()[..6]);
        bytes[18..24].copy_from_slice(&program.to_le_bytes()[..6]);
        checked(bytes)
    }

    pub(super) fn from_bytes(bytes: &[u8; HEAD_BYTES]) -> Read {
        if *bytes == [0; HEAD_BYTES] {
            return Read::Blank;
        }
        if own_check(*bytes) != [bytes[4], bytes[5]] {
            return Read::Damaged;
        }
        if bytes[6] == TORN {
            return Read::Torn;
        }
        // Hot: every slice of an array passes here when a device is switched on.
        let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let (page, program) = (number(8) as u32, number(16) >> 16);
        let sequence = number(10) >> 16;
        let kind = SliceKind::ALL.get(usize::from(bytes[6]).wrapping_sub(1));
        let stream = Stream::ALL.get(usize::from(bytes[7] & 0xf));
        let (Some(&kind), Some(&stream)) = (kind, stream) else { return Read::Damaged };
        Read::Head(Head {
            spare: Spare {
                kind,
                stream,
                page: page.checked_sub(1),
                sequence,
                program,
                ends_unit: bytes[7] & ENDS_UNIT != 0,
            },
            check: number(0) as u32,
            has_data: bytes[7] & HAS_DATA != 0,
            has_rest: bytes[7] & HAS_REST != 0,
        })
    }
}

/// The head with its own check, which is never 0.
pub(super) fn checked(mut bytes: [u8; HEAD_BYTES]) -> [u8; HEAD_BYTES] {
    let check = own_check(bytes);
    bytes[4..6].copy_from_slice(&check);
    bytes
}

fn own_check(mut bytes: [u8; HEAD_BYTES]) -> [u8; 2] {
    bytes[4..6].fill(0);
    (crc32fast::hash(&bytes) as u16).to_le_bytes()
}

/// The head of a slice whose program was interrupted.
pub fn torn() -> [u8; HEAD_BYTES] {
    let mut bytes = [0; HEAD_BYTES];
    bytes[6] = TORN;
    checked(bytes)
}

/// Whether a head with a wrong check, in its place among those of its unit, can have been cut at byte `at`: one side is
/// gone, of a program or in an erase, or is of the mark of a torn one. Programs up to `kept` had been written whole;
/// none is newer than `newest`.
pub(super) fn is_cut(unit: &[u8], (place, at): (usize, usize), kept: u64, newest: u64) -> bool {
    let (before, rest) = unit.split_at(place * HEAD_BYTES);
    let (head, behind) = rest.split_at(HEAD_BYTES);
    let (first, last) = head.split_at(at);
    let (mark, blank) = (torn(), [0; HEAD_BYTES]);
    let is_of_mark = |side: &[u8], of_mark: &[u8]| side == of_mark && side != &blank[..side.len()];
    if is_of_mark(first, &mark[..at]) || is_of_mark(last, &mark[at..]) {
        return true;
    }
    // Behind the end of a unit nothing is written.
    if before.chunks_exact(HEAD_BYTES).any(|head| head[7] & ENDS_UNIT != 0) {
        return false;
    }
    let program = before.chunks_exact(HEAD_BYTES).chain(behind.chunks_exact(HEAD_BYTES)).find_map(|bytes| {
        let read = Head::from_bytes(bytes.try_into().expect("the bytes of a head"));
        if let Read::Head(head) = read { Some(head.spare.program) } else { None }
    });
    let is_gone = |side: &[u8], others: &[u8]| {
        let are_gone = |head: &[u8]| head == blank || head == mark;
        let were_written = program.is_some_and(|program| program <= kept);
        side == &blank[..side.len()] && (!were_written || others.chunks_exact(HEAD_BYTES).all(are_gone))
    };
    // What is gone was not zeros, or the check would be right.
    let has_check = at > 4 || head[7] & (HAS_DATA | HAS_REST) != 0;
    let has_program = program.unwrap_or(newest) >> (at.saturating_sub(18) * 8) != 0;
    (has_check && is_gone(first, before)) || (has_program && is_gone(last, behind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_come_back_and_tell_damage() {
        let spare = Spare {
            kind: SliceKind::Map,
            stream: Stream::Meta,
            page: Some(7),
            sequence: (1 << 48) - 1,
            program: 1 << 47,
            ends_unit: true,
        };
        let head = Head { spare, check: 0xdead_beef, has_data: true, has_rest: false };
        let bytes = head.to_bytes();
        assert_eq!(Head::from_bytes(&bytes), Read::Head(head));
        for bit in 0..HEAD_BYTES * 8 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Head::from_bytes(&flipped), Read::Damaged, "bit {bit}");
        }
        assert_eq!((Head::from_bytes(&[0; HEAD_BYTES]), Head::from_bytes(&torn())), (Read::Blank, Read::Torn));
    }
}
