// SPDX-License-Identifier: MIT OR Apache-2.0
//! Volumes read through the caches of `readpath_ubi`: trees and bytes equal the kernel's with every cache, and the
//! cache sees the same reads as a device without one.

use crate::common::{DUMPS, SLC, dump, listing, manifest};
use readpath_ubi::attach::Options;
use readpath_ubi::cache::{Adaptive, Arc, Direct, Lines, Lru, PageCache, Policy, ReadCache, Rules, SecondTouch, TwoQ};
use readpath_ubi::cost::CostModel;
use readpath_ubi::mtd::Image;
use readpath_ubi::preset::CostPreset;
use readpath_ubi::{NoCache, Ubi};
use readpath_ubifs::{FlashRead, MountMode, Recorder, UbiVolume, Ubifs};

const LINES: u32 = 13;

fn costs() -> CostModel {
    CostPreset::builtin("mlc-16k").expect("a preset").model(SLC.page_bytes)
}

type Mounted<C> = Ubifs<Recorder<UbiVolume<Image<Vec<u8>>, C>>>;

fn mounted<C: readpath_ubi::ReadCache>(name: &str, cache: C) -> Mounted<C> {
    let image = Image::new(dump(name), SLC).expect("an image of this device");
    let ubi = Ubi::attach(image, cache, &Options::image()).expect("an image of UBI");
    let lebs = Recorder::new(UbiVolume::new(ubi, 0).expect("volume 0"));
    Ubifs::mount(lebs, MountMode::ReadOnly).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// Reads of a dump without a cache: the mount and all contents.
fn plain(name: &str) -> Vec<FlashRead> {
    let mut fs = mounted(name, NoCache);
    listing(&mut fs);
    fs.lebs().take()
}

/// Hits in all dumps.
fn hits<P: Policy>(name: &str, policy: fn() -> P, rules: Rules) -> u64 {
    let mut hits = 0;
    for (dump, manifest_name) in DUMPS {
        let mut fs = mounted(dump, PageCache::new(policy(), Lines::new(SLC.page_bytes, LINES), rules, costs()));
        let mut wanted = manifest(manifest_name);
        wanted.sort();
        assert_eq!(listing(&mut fs), wanted, "{name}, {dump}");
        let made = fs.lebs().take();
        assert!(made == plain(dump), "{name}, {dump}: other reads than without a cache");
        let mut lebs = fs.into_lebs();
        let counters = lebs.inner().ubi().cache.counters();
        assert_eq!(counters.hits + counters.misses + counters.no_query, made.len() as u64, "{name}, {dump}");
        hits += counters.hits;
    }
    hits
}

#[test]
fn whatever_the_cache_trees_and_bytes_are_the_kernels() {
    let all = [
        ("peb-hash", hits("peb-hash", || Direct::new(LINES), Rules::Patch)),
        ("lru", hits("lru", || Lru::new(LINES), Rules::Split)),
        ("lru+second", hits("lru+second", || SecondTouch::new(Lru::new(LINES), LINES), Rules::Split)),
        ("2q", hits("2q", || TwoQ::new(LINES), Rules::Patch)),
        ("arc", hits("arc", || Arc::new(LINES), Rules::Split)),
        ("learned", hits("learned", || Adaptive::learned(LINES, &costs()), Rules::Split)),
        ("adaptive", hits("adaptive", || Adaptive::new(LINES, &costs()), Rules::Split)),
    ];
    assert!(all.iter().all(|(_, hits)| *hits > 100), "{all:?}");
}
