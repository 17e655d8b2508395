// SPDX-License-Identifier: MIT OR Apache-2.0
//! Exact distances against a plain stack, and samples against exact distances.

use super::*;
use proptest::prelude::*;
use readpath_kit::Prng;

fn by_stack(pages: &[u64]) -> Vec<Option<usize>> {
    let mut stack: Vec<u64> = Vec::new();
    let mut access = |p: u64| {
        let at = stack.iter().position(|&x| x == p);
        at.map(|i| stack.remove(i));
        stack.insert(0, p);
        at
    };
    pages.iter().map(|&p| access(p)).collect()
}

fn exact(pages: &[u64]) -> Curve {
    let mut exact = Exact::default();
    pages.iter().for_each(|&page| exact.access(page));
    exact.curve()
}

fn check(pages: &[u64]) {
    let curve = exact(pages);
    let distances = by_stack(pages);
    assert_eq!(curve.accesses, pages.len() as u64);
    assert_eq!(curve.pages, distances.iter().filter(|d| d.is_none()).count() as u64);
    for size in (0..50).chain([100, 3000, 9000, u64::MAX]) {
        let expected = distances.iter().flatten().filter(|&&d| (d as u64) < size).count();
        assert_eq!(curve.hits(size), expected as f64, "cache of {size} pages");
    }
    assert_eq!(curve.hits(curve.enough()), (curve.accesses - curve.pages) as f64);
    assert!(curve.enough() == 0 || curve.hits(curve.enough() - 1) < curve.hits(curve.enough()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn distances_are_those_of_an_lru_stack(pages in proptest::collection::vec(0u64..40, 0..400), far in any::<bool>()) {
        let shift = if far { LOW - 20 } else { 0 };
        check(&pages.iter().map(|page| page + shift).collect::<Vec<_>>());
    }

    #[test]
    fn ranks_are_those_of_a_row_of_flags(
        slots in proptest::collection::vec(0usize..300_000, 1..200),
        probe in 0usize..300_000,
    ) {
        let mut ranks = Ranks::new(300_000);
        let mut flags = vec![false; ranks.slots()];
        for slot in slots {
            if flags[slot] { ranks.free(slot) } else { ranks.take(slot) }
            flags[slot] = !flags[slot];
        }
        for at in [0, probe, ranks.slots() - 1] {
            let expected = flags[at + 1..].iter().filter(|f| **f).count();
            prop_assert_eq!(ranks.behind(at) as usize, expected);
        }
        let taken: Vec<usize> = flags.iter().enumerate().filter(|(_, f)| **f).map(|(i, _)| i).collect();
        prop_assert_eq!(ranks.taken().collect::<Vec<_>>(), taken);
    }
}

#[test]
fn renumbering_changes_nothing() {
    // Many times the slots of the first row, with few and with many live pages.
    for distinct in [7u64, 3000, 9000] {
        let pages: Vec<u64> = (0..20_000u64).map(|i| (i * i + i / 3) % distinct).collect();
        check(&pages);
    }
}

/// Typical reads of pages: some pages often, most rarely, and a scan of all.
fn skewed(accesses: u64, distinct: u64) -> Vec<u64> {
    let mut rng = Prng::new(5);
    let mut page = |i: u64| match i % 4 {
        0 => i / 4 % distinct,
        _ => (distinct as f64 * rng.unit_f64().powi(3)) as u64,
    };
    (0..accesses).map(&mut page).collect()
}

#[test]
fn a_sample_of_all_pages_is_exact() {
    let pages = skewed(50_000, 100);
    let mut sampled = Sampled::new(100);
    pages.iter().for_each(|&page| sampled.access(page));
    assert_eq!(sampled.share(), 1.0);
    assert_eq!(sampled.curve(), exact(&pages));
}

#[test]
fn a_sample_in_little_memory_is_near() {
    let pages = skewed(1_000_000, 200_000);
    let whole = exact(&pages);
    let mut sampled = Sampled::new(8_000);
    let mut most = 0;
    for &page in &pages {
        sampled.access(page);
        most = most.max(sampled.bytes());
    }
    let curve = sampled.curve();
    assert!(sampled.share() < 0.05 && most < 1_200_000, "{} {most}", sampled.share());
    assert!(curve.pages.abs_diff(whole.pages) < whole.pages / 20, "{} of {}", curve.pages, whole.pages);
    // For smaller caches, the sample has too few pages.
    for size in [2_000u64, 5_000, 20_000, 50_000, 100_000, 200_000] {
        let (near, right) = (curve.hit_ratio(size).unwrap(), whole.hit_ratio(size).unwrap());
        assert!((near - right).abs() < 0.02, "{size} pages: {near} and {right}");
    }
    assert!(curve.steps.is_sorted_by(|a, b| a.0 < b.0 && a.1 < b.1));
}

#[test]
fn nothing_has_no_ratio() {
    assert_eq!((exact(&[]).hit_ratio(9), Sampled::new(1).curve()), (None, Curve::default()));
}
