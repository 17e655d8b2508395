// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pages that are read in parts and later whole, or in bulk: the judgement whether caching pays counts the savings of
//! such reads.

use crate::common::replay;
use readpath_ubi::stream::{Op, Pressure, Record, Step};

const PAGE: u32 = 16384;
const PAGES: u32 = 128;

fn read(page: u32, bytes: u32) -> Record {
    Record { op: Op::Read, peb: page / PAGES, offset: page % PAGES * PAGE, bytes }
}

fn ns(records: &[Record], cache: &str, lines: u32, pressure: &Pressure) -> u64 {
    replay(records, PAGE, cache, lines, pressure).totals.cost.total_ns()
}

/// The loss allowed before any hit.
fn first_fills() -> u64 {
    2 * (ns(&[read(0, PAGE)], "none", 1, &Pressure::default()) - ns(&[read(0, 64)], "none", 1, &Pressure::default()))
}

fn within_2_percent_of_lru(records: &[Record], what: &str) {
    // The reads of the first page, which show that fills pay, and a fill or two.
    let late = 52 * ns(&[read(0, PAGE)], "none", 1, &Pressure::default());
    // With tables to learn with and, in a budget, without.
    let free = Pressure::default();
    let lean = Pressure { steps: vec![Step { read: 0, bytes: 61 * 16384 }] };
    for (pressure, lines) in [(&free, 61), (&lean, 60)] {
        let lru = ns(records, "lru+split", lines, &free);
        let adaptive = ns(records, "adaptive+split", 61, pressure);
        assert!(2 * lru < ns(records, "none", 1, &free), "{what}: caching pays");
        assert!(adaptive <= lru + lru / 50 + late, "{what}: {adaptive} ns, and {lru} with LRU");
    }
}

#[test]
fn reads_of_whole_pages_count() {
    let once_in_part = |page| std::iter::once(read(page, 64)).chain([read(page, PAGE); 50]);
    within_2_percent_of_lru(&(0..400).flat_map(once_in_part).collect::<Vec<_>>(), "whole pages");
}

#[test]
fn reads_of_many_pages_count() {
    // Eight pages in parts, then all together, a few times.
    let group = |g: u32| (0..8).map(move |i| read(8 * g + i, 64)).chain([read(8 * g, 8 * PAGE); 5]);
    within_2_percent_of_lru(&(0..400).flat_map(group).collect::<Vec<_>>(), "in bulk");
}

/// Savings of other pages are no reason to fill: pages that are never read in parts, or so long ago that they would
/// have lost their lines.
#[test]
fn reads_of_other_pages_do_not_count() {
    let never: Vec<Record> = (0..5000).flat_map(|i| [read(i % 2500, 64), read(3000 + i % 40, PAGE)]).collect();
    let long_ago: Vec<Record> = (200..5000).flat_map(|i| [read(i, 64), read(i - 200, PAGE)]).collect();
    let free = Pressure::default();
    for (records, what) in [(never, "never in parts"), (long_ago, "long ago")] {
        let (none, adaptive) = (ns(&records, "none", 1, &free), ns(&records, "adaptive+split", 61, &free));
        assert!(adaptive <= none + first_fills(), "{what}: {adaptive} ns, and {none} without a cache");
    }
}

/// Reads of whole pages that no line serves allow a risk of 2 % too, because they suggest that a fill would have
/// paid. Here it never does: the following pages are read once.
#[test]
fn no_more_than_its_share_is_risked() {
    let cycle = |c: u32| {
        let page = c * 2000;
        std::iter::once(read(page, 64)).chain([read(page, PAGE); 400]).chain((1..1500).map(move |i| read(page + i, 64)))
    };
    let records: Vec<Record> = (0..20).flat_map(cycle).collect();
    let free = Pressure::default();
    let (none, adaptive) = (ns(&records, "none", 1, &free), ns(&records, "adaptive+split", 61, &free));
    assert!(adaptive > none, "some fills were risked");
    assert!(adaptive <= none + none / 50 + first_fills(), "{adaptive} ns, and {none} without a cache");
}
