// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lookups in the read caches of UBI, by a replay of reads that are nearly all hits.

use readpath_kit::Prng;
use readpath_ubi::preset::CostPreset;
use readpath_ubi::stream::{Op, Pressure, Record, Setup, run};
use readpath_ubi::variant::Variant;

/// A cache to look up in.
#[derive(Clone, Copy, Debug)]
pub struct LookupCase {
    /// Name.
    pub name: &'static str,
    /// Description.
    pub what: &'static str,
    cache: &'static str,
}

/// All caches.
pub const LOOKUPS: &[LookupCase] = &[
    LookupCase { name: "ubi-peb-hash", what: "61 lines, the erase block selects the line", cache: "peb-hash" },
    LookupCase { name: "ubi-lru", what: "61 lines, least recently used", cache: "lru" },
    LookupCase { name: "ubi-set-assoc", what: "61 lines in sets of four", cache: "set-assoc" },
    LookupCase { name: "ubi-clock", what: "61 lines on a ring", cache: "clock" },
    LookupCase { name: "ubi-2q", what: "61 lines, 2Q", cache: "2q" },
    LookupCase { name: "ubi-arc", what: "61 lines, ARC", cache: "arc" },
    LookupCase { name: "ubi-learned", what: "61 lines, learned", cache: "learned" },
    LookupCase { name: "ubi-adaptive", what: "61 lines, adaptive", cache: "adaptive" },
];

/// Records of a stream that is replayed again and again.
const RECORDS: usize = 1 << 16;
const LINES: u32 = 61;
const PAGE_BYTES: u32 = 16384;

/// Looks up `ios` times at least, in erase blocks that have a line each; how often, how many were hits, and the seconds
/// that `clock` counted.
pub fn lookups(case: &LookupCase, ios: u64, clock: impl Fn() -> f64) -> (u64, u64, f64) {
    let mut random = Prng::stream(1, "ubi-bench", 0);
    let records: Vec<Record> = (0..RECORDS)
        .map(|_| {
            let offset = random.below(u64::from(PAGE_BYTES - 188)) as u32;
            Record { peb: random.below(u64::from(LINES)) as u32, offset, bytes: 188, op: Op::Read }
        })
        .collect();
    let variant = Variant::parse(case.cache, LINES).expect("the name of a cache");
    let costs = CostPreset::builtin("mlc-16k").expect("a built-in preset").model(PAGE_BYTES);
    let setup = Setup { variant, costs, pressure: &Pressure::default() };
    let passes = ios.div_ceil(RECORDS as u64).max(1);
    let (mut reads, mut hits) = (0, 0);
    let start = clock();
    for _ in 0..passes {
        let counters = run(&records, &setup).expect("no cache that knows the future").counters;
        reads += counters.reads();
        hits += counters.hits;
    }
    (reads, hits, clock() - start)
}
