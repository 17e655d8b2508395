// SPDX-License-Identifier: MIT OR Apache-2.0
//! States, memory and dirty bits of a table, without a driver.

use super::*;

/// 8 regions of two sub-regions of 16 entries; the last sub-region has 4.
const BLOCKS: u64 = 244;

fn table(pinned: Range<u32>, maps: u32) -> MapTable {
    MapTable::new(HpbGeometry::new(8, 7, BLOCKS).unwrap(), pinned, maps)
}

fn id(index: u32) -> SubRegionId {
    SubRegionId::new(index)
}

/// Entry `i` of a map is `seed` + i.
fn entries(seed: u64) -> Vec<u8> {
    (seed..seed + 16).flat_map(u64::to_ne_bytes).collect()
}

fn word(entry: Option<HpbEntry>) -> Option<u64> {
    entry.map(|HpbEntry(bytes)| u64::from_ne_bytes(bytes))
}

fn load(table: &mut MapTable, srgn: u32, seed: u64) {
    table.activate(table.region_of(id(srgn)));
    table.begin_load(id(srgn));
    table.end_load(id(srgn), Some(&entries(seed)));
}

#[test]
fn entries_are_used_while_valid_and_clean() {
    let mut table = table(0..0, 4);
    assert_eq!((word(table.usable_entry(17, 1)), table.prefetch(17)), (None, false));
    table.begin_load(id(1));
    assert_eq!(word(table.usable_entry(17, 1)), None, "a load is under way");
    table.end_load(id(1), Some(&entries(100)));
    assert_eq!((word(table.usable_entry(17, 1)), table.prefetch(17)), (Some(101), true));
    assert_eq!(word(table.usable_entry(20, 12)), Some(104));
    assert_eq!(word(table.usable_entry(20, 13)), None, "the next sub-region is not held");
    load(&mut table, 2, 200);
    assert_eq!(word(table.usable_entry(20, 13)), Some(104));
    table.mark_dirty(31, 2, true);
    assert_eq!([30, 31, 32, 33].map(|block| word(table.usable_entry(block, 1))), [Some(114), None, None, Some(201)]);
    assert_eq!(word(table.usable_entry(20, 13)), None, "its last two blocks are dirty");
    assert_eq!(table.stored_entry(31).0, 115u64.to_ne_bytes(), "dirty entries are still there");
    assert!(table.is_dirty(id(1)) && table.is_dirty(id(2)) && !table.is_dirty(id(3)));
    table.clean(id(1));
    assert!(!table.is_dirty(id(1)) && word(table.usable_entry(31, 1)) == Some(115));
    table.invalidate(id(1));
    assert_eq!((word(table.usable_entry(17, 1)), table.sub_region(id(1))), (None, SubRegionState::Invalid));
    assert_eq!(word(table.usable_entry(33, 1)), Some(201), "others stay");
}

#[test]
fn writes_during_a_load_count_if_they_are_to() {
    for during_loads in [false, true] {
        let mut table = table(0..0, 1);
        table.begin_load(id(0));
        table.mark_dirty(3, 1, during_loads);
        table.end_load(id(0), Some(&entries(0)));
        assert_eq!(table.is_dirty(id(0)), during_loads);
        table.stop_use(id(0));
        table.mark_dirty(4, 1, true);
        table.end_load(id(0), None);
        assert_eq!(
            word(table.usable_entry(4, 1)),
            Some(4),
            "INVALID tracks no writes, and a load without entries leaves them"
        );
    }
}

#[test]
fn requests_are_cut_at_sub_regions_and_at_the_end_of_the_unit() {
    let table = table(0..0, 1);
    let parts = |block, blocks| {
        table.parts(block, blocks).map(|p| (p.sub_region.index(), p.block, p.blocks)).collect::<Vec<_>>()
    };
    assert_eq!(parts(14, 20), [(0, 14, 2), (1, 16, 16), (2, 32, 2)]);
    assert_eq!(parts(238, 20), [(14, 238, 2), (15, 240, 4)]);
    assert_eq!(parts(244, 1), []);
    assert_eq!(parts(u32::MAX, u32::MAX), []);
    assert_eq!(parts(7, 0), []);
}

#[test]
fn memory_is_given_and_given_back() {
    let mut table = table(3..4, 4);
    let map = 16 * 8 + 2;
    let used = |table: &MapTable| table.memory().map_bytes + table.memory().bitmap_bytes;
    assert_eq!((table.used(), used(&table), table.bytes_per_map()), (2, 2 * map, map), "pinned ones have theirs");
    assert_eq!(table.pinned_sub_regions().map(Id::index).collect::<Vec<_>>(), [6, 7]);
    assert!(table.is_pinned(RegionId::new(3)) && !table.is_pinned(RegionId::new(2)));
    assert_eq!(
        (table.region(RegionId::new(3)), table.sub_region(id(6))),
        (RegionState::Pinned, SubRegionState::Invalid)
    );
    load(&mut table, 0, 0);
    load(&mut table, 1, 0);
    assert_eq!((table.used(), table.region(RegionId::new(0))), (4, RegionState::Active));
    table.mark_dirty(0, 32, true);
    table.begin_load(id(1));
    assert!(table.is_loading_any(RegionId::new(0)) && !table.is_loading_any(RegionId::new(1)));
    assert_eq!(table.used(), 4, "a map that is there is loaded into");
    table.release_region(RegionId::new(0));
    assert_eq!((table.used(), table.memory().peak_bytes), (2, 4 * map));
    assert_eq!(
        (table.region(RegionId::new(0)), table.sub_region(id(1))),
        (RegionState::Inactive, SubRegionState::Unused)
    );
    table.release(id(1));
    assert_eq!(table.used(), 2, "nothing is given back twice");
    // Reused memory is cleared.
    table.begin_load(id(9));
    assert_eq!(table.stored_entry(9 * 16 + 5), HpbEntry::ZERO);
    table.end_load(id(9), None);
    assert!(!table.is_dirty(id(9)));
    assert_eq!(table.memory().table_bytes, 8 + 16 * 10);
}

#[test]
fn failures_in_a_row_are_counted() {
    let mut table = table(0..0, 2);
    table.begin_load(id(0));
    let fails = |table: &mut MapTable| table.load_failed(id(0), 3);
    assert_eq!([0; 5].map(|_| fails(&mut table)), [true, true, true, false, true], "the fourth ends the row");
    table.forget_failures(id(0));
    assert_eq!([0; 4].map(|_| fails(&mut table)), [true, true, true, false]);
    fails(&mut table);
    table.end_load(id(0), Some(&[]));
    assert_eq!([0; 4].map(|_| fails(&mut table)), [true, true, true, false], "a load that succeeds ends the row");
    assert_eq!(table.sub_region(id(0)), SubRegionState::Invalid);
}
