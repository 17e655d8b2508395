// SPDX-License-Identifier: MIT OR Apache-2.0
//! Zones that are written beforehand: many programs at once are as one after the other, and what is said to lie
//! somewhere lies there.

use super::anchors::{Device, config};
use crate::config::{LuConfig, ZoneConfig, ZoneLayout, ZoneRule};
use crate::front::Delays;
use crate::ftl::Layout;
use readpath_flash::Ppn;
use readpath_kit::Prng;

const ZONES: u32 = 6;
const PROGRAM: u32 = 4;

/// Places of blocks, the table of superblocks, and what a walk over everything finds.
fn preset(zone: ZoneConfig, capacity: u32, blocks: u32, at_once: bool) -> (Vec<(u32, u32)>, String) {
    let mut config = config();
    config.lus.push(LuConfig { blocks: ZONES * zone.stride(), zones: Some(zone), ..config.lus[0] });
    let mut device = Device::new(&config, Delays::default(), ()).expect("a possible device");
    // Whole programs of a zone, and what is left of it.
    let begins = |&block: &u32| if at_once { block == 0 } else { (block % capacity).is_multiple_of(PROGRAM) };
    let pieces: Vec<u32> = (0..blocks).filter(begins).chain([blocks]).collect();
    let base = device.ftl.zones.first_of(0);
    let ranges = pieces.windows(2).map(|piece| (base + piece[0], piece[1] - piece[0]));
    let mut placed = Vec::new();
    let place = |lpn, ppn: Ppn| placed.push((lpn, ppn.0));
    device.ftl.precondition(ranges, Layout::Sequential, 1, Some(place)).expect("room");
    for (block, &(lpn, ppn)) in (0..).zip(&placed) {
        let lba = block / capacity * zone.stride() + block % capacity;
        let found = device.ftl.in_zone(1, lba).map(|(lpn, ppn)| (lpn.0, ppn.0));
        assert_eq!(found, Some((lpn, ppn)), "block {block}");
    }
    assert_eq!(device.ftl.check_consistency(device.stats()), Ok(()));
    (placed, format!("{:?}", device.ftl.space.iter().collect::<Vec<_>>()))
}

#[test]
fn many_programs_at_once_are_as_one_after_the_other() {
    for seed in 0..60 {
        let rng = &mut Prng::new(seed);
        // In zones with gaps the last program may hold less than others.
        let (layout, capacity) =
            [(ZoneLayout::PowerOfTwo, 32), (ZoneLayout::Gaps, 24), (ZoneLayout::Gaps, 27)][rng.below(3) as usize];
        let zone = ZoneConfig {
            layout,
            blocks: capacity,
            most_open: 2,
            rule: ZoneRule::Zbc,
            program_blocks: PROGRAM,
            flush_blocks: PROGRAM,
        };
        let blocks = 1 + rng.below(u64::from(ZONES * capacity)) as u32;
        let [at_once, one_by_one] = [true, false].map(|at_once| preset(zone, capacity, blocks, at_once));
        assert_eq!(at_once.0.len(), blocks as usize, "seed {seed}");
        assert_eq!(at_once, one_by_one, "seed {seed}");
    }
}
