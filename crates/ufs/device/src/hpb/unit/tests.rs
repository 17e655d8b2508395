// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hand-outs, freshness and recommendations of one unit.

use super::*;
use crate::config::EntryConfig;
use crate::config::LuConfig;
use crate::hpb::recommend::Recommendations;

fn config() -> HpbConfig {
    HpbConfig {
        control: Control::Device,
        region_size: 8,
        sub_region_size: 7,
        max_active_regions: 2,
        activate_after: 2,
        refresh_after: 3,
        replace_after: 5,
        repeat_after: Ns::from_ms(1),
        freshness_chunk_entries: 4,
        read_buffers: 2,
        verification: Verification::On,
        entries: EntryConfig::DEFAULT,
        v2: None,
        prototype: None,
    }
}

/// 100 blocks: regions of 32 entries in two sub-regions of 16; the last region has only 4 blocks.
fn unit(config: HpbConfig) -> HpbUnit {
    let lu =
        LuConfig { blocks: 100, hpb: true, max_active_regions: 2, pinned_start: 0, pinned_regions: 0, zones: None };
    HpbUnit::new(1000, &lu, &config)
}

fn make(codec: &EntryCodec, lpn: u32, ppn: Ppn, generation: u32) -> HpbEntry {
    let mut out = Vec::new();
    codec.make_all(lpn, 1, generation, |_| Some(ppn), &mut out);
    HpbEntry(out.try_into().unwrap())
}

/// Reads a block that lies in flash, with a good entry or without.
fn read(u: &mut HpbUnit, now: Ns, block: u32, good_entry: bool) -> Option<Recommended> {
    u.note_read(block);
    if good_entry { None } else { u.note_miss(now, block) }
}

const A: SubRegion = SubRegion { region: 0, index: 1 };

#[test]
fn an_entry_is_good_until_its_chunk_changes_or_it_is_superseded() {
    let (mut u, codec) = (unit(config()), EntryCodec::new([5, 6]));
    let entry = make(&codec, 1000 + 20, Ppn(77), 1);
    let verify = |u: &HpbUnit, block, e| u.verify(&codec, block, e, 1 << 20);
    assert_eq!(verify(&u, 20, entry), Verdict::Inactive);
    assert!(u.hand_out(A, 1));
    assert_eq!(verify(&u, 20, entry), Verdict::Good(Ppn(77)));
    assert_eq!(verify(&u, 21, entry), Verdict::Forged, "made for another block");
    assert_eq!(verify(&u, 20, HpbEntry::ZERO), Verdict::Zero);
    u.block_changed(24);
    assert_eq!(verify(&u, 20, entry), Verdict::Good(Ppn(77)), "another chunk");
    u.block_changed(23);
    assert_eq!(verify(&u, 20, entry), Verdict::Stale, "a neighbour in the chunk changed");
    assert!(u.hand_out(A, 2));
    assert_eq!(verify(&u, 20, entry), Verdict::Stale, "of the hand-out before");
    assert_eq!(verify(&u, 20, make(&codec, 1020, Ppn(77), 2)), Verdict::Good(Ppn(77)));
    assert!(u.hand_out(A, 3));
    assert_eq!(verify(&u, 20, entry), Verdict::Forged, "too old to be told from a forgery");
    u.reset();
    assert_eq!(verify(&u, 20, make(&codec, 1020, Ppn(77), 3)), Verdict::Inactive);
}

#[test]
fn a_slot_tells_nothing_of_the_region_that_had_it() {
    let (mut u, codec) = (unit(config()), EntryCodec::new([5, 6]));
    assert!(u.hand_out(A, 1));
    u.inactivate(0);
    assert!(u.hand_out(SubRegion { region: 1, index: 0 }, 2), "in the same slot");
    let entry = make(&codec, 1000 + 48, Ppn(77), 1);
    assert_eq!(u.verify(&codec, 48, entry, 1 << 20), Verdict::Inactive, "its other sub-region is not handed out");
}

#[test]
fn the_short_last_region_has_one_short_sub_region() {
    let u = unit(config());
    assert_eq!(u.regions(), 4);
    assert_eq!(u.blocks_of(SubRegion { region: 3, index: 0 }), Some(96..100));
    assert_eq!(u.blocks_of(SubRegion { region: 3, index: 1 }), None);
    assert_eq!(u.blocks_of(SubRegion { region: 4, index: 0 }), None);
    assert_eq!(u.blocks_of(SubRegion { region: 0, index: 2 }), None);
}

#[test]
fn misses_lead_to_recommendations_that_are_repeated_until_followed() {
    let mut u = unit(config());
    let recommended = Some(Recommended { activate: A, inactivate: None });
    assert_eq!(read(&mut u, Ns(0), 16, false), None);
    assert_eq!(read(&mut u, Ns(1), 17, false), recommended);
    for t in 2..20 {
        assert_eq!(read(&mut u, Ns(t), 17, false), None, "not again so soon");
    }
    assert_eq!(read(&mut u, Ns::from_ms(2), 17, false), recommended, "it was not followed");
    u.hand_out(A, 1);
    assert_eq!(read(&mut u, Ns::from_ms(9), 17, true), None);
    assert_eq!(read(&mut u, Ns::from_ms(9), 17, false), None);
    assert_eq!(read(&mut u, Ns::from_ms(9), 17, false), None);
    assert_eq!(read(&mut u, Ns::from_ms(9), 17, false), recommended, "three reads of entries that were no good");
}

#[test]
fn a_full_set_gives_way_at_its_coldest_region_after_more_reads() {
    let mut u = unit(config());
    for block in [0, 32] {
        read(&mut u, Ns(0), block, false);
        assert!(read(&mut u, Ns(0), block, false).is_some());
    }
    for _ in 0..20 {
        read(&mut u, Ns(0), 0, true);
    }
    for _ in 0..4 {
        assert_eq!(read(&mut u, Ns(0), 64, false), None);
    }
    let expected = Recommended { activate: SubRegion { region: 2, index: 0 }, inactivate: Some(1) };
    assert_eq!(read(&mut u, Ns(0), 64, false), Some(expected), "region 1 is read least");
}

/// A region that was read much long ago is colder than one that is read now, even if its total is greater: counts are
/// halved every 1024 reads.
#[test]
fn what_was_read_long_ago_counts_for_less() {
    let mut u = unit(config());
    for (block, reads) in [(0, 8_000), (32, 4_000)] {
        (0..reads).for_each(|_| u.note_read(block));
        read(&mut u, Ns(0), block, false);
        assert!(read(&mut u, Ns(0), block, false).is_some());
    }
    for _ in 0..4 {
        assert_eq!(read(&mut u, Ns(0), 64, false), None);
    }
    let expected = Recommended { activate: SubRegion { region: 2, index: 0 }, inactivate: Some(0) };
    assert_eq!(read(&mut u, Ns(0), 64, false), Some(expected));
}

#[test]
fn notifications_carry_two_of_each_and_keep_units_apart() {
    let mut line = Recommendations::new(0);
    let r = |i| Recommended { activate: SubRegion { region: i, index: 0 }, inactivate: Some(i + 100) };
    for i in 0..3 {
        assert!(line.push(0, r(i)));
    }
    assert!(line.push(1, r(9)));
    let n = line.take().unwrap();
    assert_eq!((n.lun, n.active_count, n.inactive_count, n.inactive), (0, 2, 2, [100, 101]));
    let n = line.take().unwrap();
    assert_eq!((n.lun, n.active_count, n.inactive_count, n.active[0].region), (0, 1, 1, 2));
    assert_eq!(line.take().unwrap().lun, 1);
    assert_eq!(line.take(), None);
    while line.push(0, r(1)) {}
    line.announce_reset();
    assert_eq!(line.take().unwrap().operation, HpbNotification::RESET);
    line.reset_seen();
    assert!(line.is_empty());
}
use readpath_proto::typed::HpbNotification;

/// In host control mode the host holds what it loads until it reports a drop; the device only reports that a held
/// sub-region has become worthless.
#[test]
fn in_host_control_mode_the_host_decides() {
    let mut u = unit(HpbConfig { control: Control::Host, ..config() });
    for t in 0..50 {
        assert_eq!(read(&mut u, Ns(t), 16, false), None, "nothing that the host does not hold is recommended");
    }
    let at = |region| SubRegion { region, index: 0 };
    for region in [0, 1, 2] {
        assert!(u.hand_out(at(region), 5 + u32::from(region)), "one more than may be active");
    }
    let verdict = |u: &HpbUnit, block| {
        let codec = EntryCodec::new([5, 6]);
        u.verify(&codec, block, make(&codec, 1000 + block, Ppn(77), 5 + block / 32), 1 << 20)
    };
    for block in [0, 32, 64] {
        assert_eq!(verdict(&u, block), Verdict::Good(Ppn(77)));
    }
    u.inactivate(1);
    u.inactivate(1);
    assert_eq!([verdict(&u, 0), verdict(&u, 32)], [Verdict::Good(Ppn(77)), Verdict::Inactive]);
    // A region of which another sub-region is held; then one with stale entries.
    assert_eq!([read(&mut u, Ns(0), 16, false), read(&mut u, Ns(0), 17, false)], [None; 2]);
    u.block_changed(3);
    assert_eq!([read(&mut u, Ns(0), 3, false), read(&mut u, Ns(0), 3, false)], [None; 2]);
    let again = Some(Recommended { activate: at(0), inactivate: None });
    assert_eq!([read(&mut u, Ns(0), 3, false), read(&mut u, Ns(0), 3, false)], [again, None]);
    // No drop was reported, but a slot is needed: the least read region loses its own.
    for _ in 0..9 {
        read(&mut u, Ns(0), 64, true);
    }
    assert!(u.hand_out(at(1), 9) && u.hand_out(at(3), 10));
    assert_eq!([verdict(&u, 8), verdict(&u, 64)], [Verdict::Good(Ppn(77)), Verdict::Good(Ppn(77))]);
    assert!(!u.has_slot(1));
}

#[test]
fn pinned_regions_stay_whatever_the_host_drops() {
    let lu =
        LuConfig { blocks: 100, hpb: true, max_active_regions: 2, pinned_start: 1, pinned_regions: 1, zones: None };
    let mut u = HpbUnit::new(1000, &lu, &HpbConfig { control: Control::Host, ..config() });
    (0..4).for_each(|region| u.inactivate(region));
    assert!(u.has_slot(1));
}
