// SPDX-License-Identifier: MIT OR Apache-2.0
//! How a map page changed the references into superblocks, packed into its spare area: for each superblock, in order,
//! the distance from the one before it and the change, as numbers of 7 bits a byte. It knows no superblock's state.

use crate::config::DeviceConfig;
use crate::ids::SuperblockId;
use readpath_kit::BLOCK_BYTES;

/// Bytes of spare area of each slice of 4 KiB.
pub(super) const SPARE_BYTES: u32 = 128;

/// What a spare area says beside: the map page, when it was put together, the newest sequence number, how many
/// superblocks follow, the superblock that the meta stream goes on in and when that was opened, and a check.
const OTHER_BYTES: u32 = 28;

/// Bytes that a map page has for this.
fn room(map_page_bytes: u32) -> u32 {
    map_page_bytes / BLOCK_BYTES * SPARE_BYTES - OTHER_BYTES
}

/// Bytes that `value` takes.
fn packed_bytes(value: u32) -> u32 {
    (32 - (value | 1).leading_zeros()).div_ceil(7)
}

/// Whether the references that a map page gave (`true`) or took fit into its spare area.
pub(super) fn fit(refs: &[(SuperblockId, bool)], map_page_bytes: u32) -> bool {
    // Not one of them takes more than 5 and 2 bytes.
    if refs.len() as u32 * 7 <= room(map_page_bytes) {
        return true;
    }
    let mut refs = refs.to_vec();
    refs.sort_unstable();
    let (mut bytes, mut last) = (0, 0);
    for of_one in refs.chunk_by(|a, b| a.0 == b.0) {
        let gained = of_one.iter().filter(|(_, gained)| *gained).count();
        let change = gained.abs_diff(of_one.len() - gained) as u32;
        if change > 0 {
            // The lowest bit is the sign.
            bytes += packed_bytes(of_one[0].0.0 - last) + packed_bytes(change << 1);
            last = of_one[0].0.0;
        }
    }
    bytes <= room(map_page_bytes)
}

/// Whether they fit whatever they are: there are few superblocks.
pub(super) fn always_fit(config: &DeviceConfig) -> bool {
    if config.ftl.without.spare_refs {
        return false;
    }
    let superblocks = config.geometry.superblocks();
    // Every entry takes at most one reference and gives one.
    let largest = packed_bytes((config.map_page_entries() << 1) | 1);
    // All distances are 1 if all of them change.
    u64::from(superblocks) * u64::from(1 + largest) <= u64::from(room(config.map_page_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refs(of: impl Iterator<Item = u32>) -> Vec<(SuperblockId, bool)> {
        of.map(|sb| (SuperblockId(sb), false)).collect()
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
        // However many are lost by one.
        assert!(fit(&refs((0..4096).map(|_| 7)), 16384));
        // What is gained and lost is no change.
        let mut both = refs(0..400);
        both.extend((0..400).map(|sb| (SuperblockId(sb), true)));
        assert!(fit(&both, 16384));
    }
}
