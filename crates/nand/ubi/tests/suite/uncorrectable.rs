// SPDX-License-Identifier: MIT OR Apache-2.0
//! A page with more flips than its ECC corrects, behind a cache: its correctable part is read, and the rest is
//! reported at every read.

use crate::common::{SMALL_COSTS, one_page};
use readpath_nand_testkit::{Device, Ecc, Nand, NewVolume, Options};
use readpath_ubi::NoCache;
use readpath_ubi::cache::{
    Adaptive, Arc, Clock, Direct, Lines, Lru, PageCache, Policy, ReadCache, Rules, SecondTouch, SetAssoc, TwoQ,
};
use readpath_ubi::mtd::{Geometry, ReadOutcome};

const PAGE: u32 = 512;
const STEP: u32 = 256;
const STRENGTH: u8 = 8;
const LINES: u32 = 4;
const GEOMETRY: Geometry = Geometry { peb_bytes: 8 * PAGE, page_bytes: PAGE, subpage_bytes: STEP, pebs: 24 };

/// Reads both steps of a page, of which only the first can be corrected, and then a good page.
fn read_around<C: ReadCache>(cache: C) {
    let nand = Nand::new(GEOMETRY, Ecc::new(STEP, STRENGTH), 1).expect("a device");
    let mut ubi = Device::attach(nand, cache, &Options::default()).expect("an empty device");
    ubi.create_volume(&NewVolume::dynamic("data", 2)).expect("room");
    ubi.write(0, 0, 0, &[0x5A; 2 * PAGE as usize]).expect("two pages");
    let peb = ubi.volume(0).expect("it is there").peb(0).expect("it is mapped");
    let second_step = ubi.layout().data_offset + STEP;
    ubi.mtd_mut().flip(peb, second_step, STRENGTH + 1);
    for round in 0..3 {
        for (offset, expected) in
            [(0, ReadOutcome::Clean), (STEP, ReadOutcome::Uncorrectable), (PAGE, ReadOutcome::Clean)]
        {
            let mut out = [0; 100];
            let outcome = ubi.read(0, 0, offset, &mut out, 0).expect("the device works");
            assert_eq!((outcome, out == [0x5A; 100]), (expected, expected == ReadOutcome::Clean), "{offset}, {round}");
        }
    }
}

/// The same with each set of rules.
fn with_rules<P: Policy>(policy: impl Fn() -> P) {
    for rules in [Rules::Patch, Rules::Split] {
        read_around(PageCache::new(policy(), Lines::new(PAGE, LINES), rules, SMALL_COSTS));
    }
}

#[test]
fn a_page_that_cannot_be_corrected_is_not_kept() {
    read_around(NoCache);
    read_around(one_page(PAGE));
    with_rules(|| Direct::new(LINES));
    with_rules(|| Lru::new(LINES));
    with_rules(|| SecondTouch::new(Lru::new(LINES), LINES));
    with_rules(|| SetAssoc::new(LINES));
    with_rules(|| Clock::new(LINES));
    with_rules(|| TwoQ::new(LINES));
    with_rules(|| Arc::new(LINES));
    with_rules(|| Adaptive::learned(LINES, &SMALL_COSTS));
    with_rules(|| Adaptive::new(LINES, &SMALL_COSTS));
}
