// SPDX-License-Identifier: MIT OR Apache-2.0
//! The optimum against exhaustive search: streams go through the cache itself, whole pages, long reads and changes of
//! size included, and no choice of pages to keep, nor any other policy, reads fewer pages of flash.

use crate::common::{costs, replay};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use readpath_ubi::cache::BULK_PAGES;
use readpath_ubi::stream::{Op, Pressure, Record, Setup, Step, run};
use readpath_ubi::variant::Variant;
use std::collections::BTreeMap;

const PAGE: u32 = 2048;
/// Pages of an erase block.
const PAGES: u32 = 5;
const MOST: u32 = 3;

type Place = (u32, u32);

fn pages_read(records: &[Record], cache: &str, lines: u32, pressure: &Pressure) -> u64 {
    let totals = replay(records, PAGE, cache, lines, pressure).totals;
    totals.page_reads + totals.part_reads
}

/// The pages that a read looks up, and whether each may be given a line; `None` for a read that bypasses the cache.
fn asked(r: &Record, split: bool) -> Option<Vec<(Place, bool)>> {
    let end = r.offset + r.bytes;
    let pages: Vec<u32> = (r.offset / PAGE..end.div_ceil(PAGE)).collect();
    let whole = |page: u32| r.offset <= page * PAGE && (page + 1) * PAGE <= end;
    if !split && (pages.len() > 1 || whole(pages[0])) {
        return None;
    }
    let bulk = pages.len() >= BULK_PAGES as usize;
    Some(pages.into_iter().map(|page| ((r.peb, page), !bulk && !whole(page))).collect())
}

/// Fewest pages read for each set of pages that may be held.
type States = BTreeMap<Vec<Place>, u64>;

fn note(states: &mut States, mut held: Vec<Place>, read: u64) {
    held.sort_unstable();
    let best = states.entry(held).or_insert(read);
    *best = read.min(*best);
}

/// The fewest pages read, found by exhaustive search.
fn fewest(records: &[Record], split: bool, lines: u32, pressure: &Pressure) -> u64 {
    let mut limit = lines as usize;
    let mut states = States::from([(Vec::new(), 0)]);
    let (mut passed_by, mut reads) = (0, 0);
    for r in records {
        let mut next = States::new();
        if matches!(r.op, Op::Write | Op::Erase) {
            let gone = |p: &Place| {
                p.0 == r.peb && (r.op == Op::Erase || (r.offset..r.offset + r.bytes).contains(&(p.1 * PAGE)))
            };
            for (mut held, read) in states {
                held.retain(|p| !gone(p));
                note(&mut next, held, read);
            }
            states = next;
            continue;
        }
        if let Some(step) = pressure.steps.iter().find(|step| step.read == reads) {
            limit = (step.bytes / u64::from(PAGE)).min(u64::from(lines)) as usize;
            // Evictions: one line at a time, in every order.
            while states.keys().any(|held| held.len() > limit) {
                for (held, read) in std::mem::take(&mut states) {
                    match held.len() > limit {
                        false => note(&mut next, held, read),
                        true => (0..held.len()).for_each(|i| {
                            let rest = held.iter().enumerate().filter(|(at, _)| *at != i).map(|(_, p)| *p);
                            note(&mut next, rest.collect(), read);
                        }),
                    }
                }
                states = std::mem::take(&mut next);
            }
        }
        reads += 1;
        let Some(pages) = asked(r, split) else {
            passed_by += u64::from((r.offset + r.bytes).div_ceil(PAGE) - r.offset / PAGE);
            continue;
        };
        for (page, may_fill) in pages {
            let mut next = States::new();
            for (held, read) in states {
                if held.contains(&page) {
                    note(&mut next, held, read);
                    continue;
                }
                if may_fill && held.len() < limit {
                    note(&mut next, [&held[..], &[page]].concat(), read + 1);
                } else if may_fill {
                    for i in 0..held.len() {
                        let mut other = held.clone();
                        other[i] = page;
                        note(&mut next, other, read + 1);
                    }
                }
                note(&mut next, held, read + 1);
            }
            states = next;
        }
    }
    passed_by + states.into_values().min().expect("some choice")
}

fn records() -> impl Strategy<Value = Vec<Record>> {
    let size = PAGES * PAGE;
    let read = move |(peb, first, skip, bytes): (u32, u32, u32, u32)| {
        let offset = first * PAGE + skip;
        Record { op: Op::Read, peb, offset, bytes: bytes.min(size - offset) }
    };
    let place = || (0u32..2, 0..PAGES);
    let record = prop_oneof![
        12 => (place(), 0..PAGE - 100, 1u32..100).prop_map(move |((peb, page), at, n)| read((peb, page, at, n))),
        8 => (place(), 1u32..4).prop_map(move |((peb, page), n)| read((peb, page, 0, n * PAGE))),
        4 => (place(), 0..PAGE, 1..size).prop_map(move |((peb, page), at, n)| read((peb, page, at, n))),
        1 => place().prop_map(|(peb, page)| Record { op: Op::Write, peb, offset: page * PAGE, bytes: PAGE }),
        1 => (0u32..2).prop_map(|peb| Record { op: Op::Erase, peb, offset: 0, bytes: PAGE }),
    ];
    proptest::collection::vec(record, 1..40)
}

/// Budgets in bytes from a read on; not all are whole lines.
fn pressure() -> impl Strategy<Value = Pressure> {
    let step = (0u64..40, 0..u64::from((MOST + 1) * PAGE));
    proptest::collection::vec(step, 0..4).prop_map(|steps| {
        let steps: BTreeMap<u64, u64> = steps.into_iter().collect();
        Pressure { steps: steps.into_iter().map(|(read, bytes)| Step { read, bytes }).collect() }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, rng_seed: RngSeed::Fixed(5), ..ProptestConfig::default() })]

    #[test]
    fn nothing_reads_fewer_pages(records in records(), lines in 1..=MOST, pressure in pressure()) {
        for split in [false, true] {
            let name = |cache: &str| if split { format!("{cache}+split") } else { cache.to_owned() };
            let opt = pages_read(&records, &name("opt"), lines, &pressure);
            prop_assert_eq!(opt, fewest(&records, split, lines, &pressure), "split: {}", split);
            let caches = ["peb-hash", "lru", "lru+second", "set-assoc", "clock", "2q", "arc", "learned", "adaptive"];
            for cache in caches.map(name) {
                let other = pages_read(&records, &cache, lines, &pressure);
                prop_assert!(opt <= other, "{}: {}, and {} at best", cache, other, opt);
            }
        }
    }
}

/// A page that is read whole often is worth its line although another is read again sooner; and pages read in parts,
/// then whole, are kept for that.
#[test]
fn reads_of_whole_pages_are_foreseen() {
    let read = |page: u32, bytes| Record { op: Op::Read, peb: 0, offset: page * PAGE, bytes };
    let mut records = vec![read(0, 64), read(1, 64), read(1, 64)];
    records.extend([read(0, PAGE); 5]);
    assert_eq!(pages_read(&records, "opt+split", 1, &Pressure::default()), 3);
    let records: Vec<Record> =
        (0..40).flat_map(|page| std::iter::once(read(page, 64)).chain([read(page, PAGE); 50])).collect();
    for cache in ["lru+split", "opt+split"] {
        assert_eq!(pages_read(&records, cache, 4, &Pressure::default()), 40, "{cache}");
    }
}

/// The optimum needs no tables: a budget of three lines is three lines, however many there might be.
#[test]
fn the_optimum_has_all_of_a_budget() {
    let records: Vec<Record> =
        (0..300).map(|i| Record { op: Op::Read, peb: 0, offset: i % 3 * PAGE, bytes: 64 }).collect();
    let pressure = Pressure { steps: vec![Step { read: 0, bytes: u64::from(3 * PAGE) }] };
    for cache in ["opt", "opt+split"] {
        let outcome = replay(&records, PAGE, cache, 4096, &pressure);
        assert_eq!((outcome.counters.misses, outcome.resident_most, outcome.metadata_bytes), (3, 3, 0), "{cache}");
    }
}

/// Streams that would take hours to plan, or too much memory, are refused at once.
#[test]
fn what_is_too_much_to_plan_is_refused() {
    let costs = costs(PAGE);
    let read = |page: u32, bytes| Record { op: Op::Read, peb: page / 64, offset: page % 64 * PAGE, bytes };
    let fault = |records: &[Record], cache: &str, lines| {
        let variant = Variant::parse(cache, lines).unwrap_or_else(|e| panic!("{cache}: {e}"));
        run(records, &Setup { variant, costs, pressure: &Pressure::default() }).err().map(|e| e.to_string())
    };
    // 40,000 pages in parts, then whole, twice: with fewer lines than pages it matters which are kept.
    let many: Vec<Record> = [64, PAGE, 64, PAGE].iter().flat_map(|&n| (0..40_000).map(move |i| read(i, n))).collect();
    let says = fault(&many, "opt+split", 39_000).expect("an error");
    assert!(says.contains("planned for 199999 pages of reads and 39000 lines, but"), "{says}");
    assert_eq!(fault(&many, "opt+split", 1), None);
    assert_eq!(fault(&many, "opt+split", 40_000), None, "all pages have a line");
    assert_eq!(fault(&many, "opt", 39_000), None, "no page is read whole through it");
    // 64 pages, each of which a read of all may find at every moment.
    let bulk = |i: u32| [read(i % 64, 64), read(0, 64 * PAGE)];
    let wide: Vec<Record> = (0..150_000).flat_map(bulk).collect();
    let says = fault(&wide, "opt+split", 1).expect("an error");
    assert!(says.contains("pages of reads and 1 lines, but pages may be 8388608 at most"), "{says}");
}
