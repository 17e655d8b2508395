// SPDX-License-Identifier: MIT OR Apache-2.0
//! A device that is preconditioned holds what it should, whatever the ranges.

use readpath_device::Layout;
use readpath_kit::Prng;
use readpath_testkit::{Bare, device};

/// Ranges may overlap: what lay there before is garbage.
#[test]
fn ranges_may_overlap() {
    const BLOCKS: u32 = 3000;
    let mut overlapping = 0;
    for seed in 0..60 {
        let rng = &mut Prng::stream(seed, "ranges", 0);
        let mut bare = Bare::new(&device(BLOCKS));
        let mut holds = [false; BLOCKS as usize];
        for _ in 0..1 + rng.below(3) {
            let ranges: Vec<(u8, u32, u32)> = (0..rng.below(4))
                .map(|_| {
                    let first = rng.below(u64::from(BLOCKS)) as u32;
                    (0, first, rng.below(u64::from(BLOCKS - first).min(800) + 1) as u32)
                })
                .collect();
            let layout = if rng.below(2) == 0 { Layout::Sequential } else { Layout::Random };
            bare.device.precondition(ranges.iter().copied(), layout, seed, |_, _| ()).expect("room");
            for &(_, first, blocks) in &ranges {
                let range = &mut holds[first as usize..][..blocks as usize];
                overlapping += u32::from(range.contains(&true));
                range.fill(true);
            }
        }
        bare.device.check_consistency().unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        let found: Vec<bool> = (0..BLOCKS).map(|block| bare.device.holds_data(0, block)).collect();
        assert_eq!(found, holds, "seed {seed}");
    }
    assert!(overlapping > 30, "{overlapping} ranges overlap others");
}
