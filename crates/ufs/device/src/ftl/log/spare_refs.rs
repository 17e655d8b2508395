// SPDX-License-Identifier: MIT OR Apache-2.0
//! How a map page changed the references into superblocks, packed into its spare area: for each superblock, in order,
//! the distance from the one before it and the change, as numbers of 7 bits a byte. It knows no superblock's state.

use crate::config::DeviceConfig;
use crate::ids::SuperblockId;
use readpath_kit::BLOCK_BYTES;

/// Bytes of spare area of each slice of 4 KiB.
pub(super) const SPARE_BYTES: u32 = 128;

/// Bytes of the other contents of the spare area: the map page, when it was put together, the newest sequence number,
/// how many superblocks follow, where the meta stream continues and when that superblock was opened, and a check.
const OTHER_BYTES: u32 = 28;

fn room(map_page_bytes: u32) -> u32 {
    map_page_bytes / BLOCK_BYTES * SPARE_BYTES - OTHER_BYTES
}

/// Bytes that `value` takes.
fn packed_bytes(value: u32) -> u32 {
    (32 - (value | 1).leading_zeros()).div_ceil(7)
}

/// A superblock, and how many references a map page added; negative if it removed some.
pub(super) type Refs = (SuperblockId, i32);

/// The sum for each superblock, in order, unless it is 0.
pub(super) fn sums(mut refs: Vec<Refs>) -> Vec<Refs> {
    refs.sort_unstable_by_key(|&(superblock, _)| superblock);
    refs.dedup_by(|next, last| {
        let is_same = next.0 == last.0;
        last.1 += if is_same { next.1 } else { 0 };
        is_same
    });
    refs.retain(|&(_, gained)| gained != 0);
    refs
}

/// Whether a map page's changes of references fit into its spare area. Before [`sums`] each counts one reference.
pub(super) fn fit(refs: &[Refs], map_page_bytes: u32) -> bool {
    // Each takes at most 5 and 2 bytes.
    if refs.len() as u32 * 7 <= room(map_page_bytes) {
        return true;
    }
    let (mut bytes, mut last) = (0, 0);
    for (superblock, gained) in sums(refs.to_vec()) {
        // The lowest bit is the sign.
        bytes += packed_bytes(superblock.0 - last) + packed_bytes(gained.unsigned_abs() << 1);
        last = superblock.0;
    }
    bytes <= room(map_page_bytes)
}

/// The bytes of [`sums`], if they fit.
pub(super) fn pack(sums: &[Refs]) -> Vec<u8> {
    let (mut bytes, mut last) = (Vec::new(), 0);
    for &(superblock, gained) in sums {
        put(&mut bytes, superblock.0 - last);
        put(&mut bytes, gained.unsigned_abs() << 1 | u32::from(gained < 0));
        last = superblock.0;
    }
    bytes
}

/// Inverse of [`pack`], on a device with `superblocks` superblocks; `None` if the bytes are invalid.
pub(super) fn unpack(mut bytes: &[u8], superblocks: u32) -> Option<Vec<Refs>> {
    /// Each entry of a map page twice: one reference lost and one gained.
    const MOST: u32 = 2 * (1 << 14);
    let (mut refs, mut superblock, mut changes) = (Vec::new(), 0u32, 0u32);
    while !bytes.is_empty() {
        superblock = superblock.checked_add(take(&mut bytes)?).filter(|&sb| sb < superblocks)?;
        let change = take(&mut bytes)?;
        changes = changes.saturating_add(change >> 1);
        if changes > MOST {
            return None;
        }
        let sign = if change & 1 == 0 { 1 } else { -1 };
        refs.push((SuperblockId(superblock), sign * (change >> 1) as i32));
    }
    Some(refs)
}

fn put(bytes: &mut Vec<u8>, mut value: u32) {
    while value >= 1 << 7 {
        bytes.push(value as u8 | 1 << 7);
        value >>= 7;
    }
    bytes.push(value as u8);
}

fn take(bytes: &mut &[u8]) -> Option<u32> {
    let mut value = 0;
    for i in 0..5 {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u32::from(byte & 0x7f).checked_shl(7 * i)?;
        if byte < 1 << 7 {
            return Some(value);
        }
    }
    None
}

/// Whether any changes fit, because there are few superblocks.
pub(super) fn always_fit(config: &DeviceConfig) -> bool {
    if config.ftl.without.spare_refs {
        return false;
    }
    let superblocks = config.geometry.superblocks();
    // Every entry removes at most one reference and adds one.
    let largest = packed_bytes((config.map_page_entries() << 1) | 1);
    // If all superblocks change, all distances are 1.
    u64::from(superblocks) * u64::from(1 + largest) <= u64::from(room(config.map_page_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use readpath_kit::Prng;

    fn refs(of: impl Iterator<Item = u32>) -> Vec<Refs> {
        of.map(|sb| (SuperblockId(sb), -1)).collect()
    }

    #[test]
    fn as_many_fit_as_the_spare_area_has_bytes_for() {
        assert_eq!(room(16384), 484);
        // Neighbours that lose one each take 2 bytes.
        assert!(fit(&refs(0..242), 16384));
        assert!(!fit(&refs(0..243), 16384));
        // Distances of 200 take one byte more, but for the first.
        assert!(fit(&refs((0..161).map(|i| i * 200)), 16384));
        assert!(!fit(&refs((0..162).map(|i| i * 200)), 16384));
        // Any number of references lost by one superblock fits.
        assert!(fit(&refs((0..4096).map(|_| 7)), 16384));
        // A reference gained and lost is no change.
        let mut both = refs(0..400);
        both.extend((0..400).map(|sb| (SuperblockId(sb), 1)));
        assert!(fit(&both, 16384));
    }

    #[test]
    fn packed_refs_come_back_as_they_went() {
        let rng = &mut Prng::new(1);
        for _ in 0..500 {
            let of = rng.below(30) * 100 + 1;
            let refs: Vec<Refs> = (0..rng.below(60))
                .map(|_| (SuperblockId(rng.below(of) as u32), if rng.below(2) == 0 { 1 } else { -1 }))
                .collect();
            let mut left = std::collections::BTreeMap::new();
            refs.iter().for_each(|&(sb, gained)| *left.entry(sb).or_insert(0) += gained);
            left.retain(|_, gained| *gained != 0);
            let sums = sums(refs.clone());
            assert!(sums.iter().copied().eq(left), "{refs:?} have the sums {sums:?}");
            let packed = pack(&sums);
            assert!(fit(&refs, 16384) && packed.len() <= room(16384) as usize);
            assert_eq!(unpack(&packed, 3000).as_ref(), Some(&sums));
            let most = sums.last().map_or(0, |&(sb, _)| sb.0);
            assert_eq!(unpack(&packed, most).is_some(), packed.is_empty(), "superblock {most} of {most}");
        }
    }
}
