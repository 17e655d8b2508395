// SPDX-License-Identifier: MIT OR Apache-2.0
//! A memory budget holds for lines and their metadata together.

use crate::common::{costs, replay};
use readpath_ubi::stream::{Geometry, Limits, Outcome, Pressure, Step, load};

#[test]
fn tables_are_paid_for_before_lines() {
    let text: String = (0..200).map(|i| format!("r,1,{},64,0,a\n", i % 40 * 2048)).collect();
    let geometry = Geometry { page_bytes: 2048, peb_bytes: None };
    let stream = load("s.csv", &mut text.as_bytes(), geometry, false, Limits::default()).expect("a stream");
    for name in ["lru", "2q", "arc", "clock", "set-assoc"] {
        let with = |steps: Vec<Step>| replay(&stream.records, 2048, name, 32, &Pressure { steps });
        let tables = with(Vec::new()).metadata_bytes;
        assert!(tables > 0, "{name}");
        for (bytes, lines) in [(tables + 3 * 2048, 3), (tables + 3 * 2048 - 1, 2), (tables, 0), (tables - 1, 0), (0, 0)]
        {
            let outcome = with(vec![Step { read: 0, bytes }]);
            assert!(outcome.resident_most <= lines, "{name}: {} lines for {bytes} bytes", outcome.resident_most);
        }
        if name == "lru" {
            assert_eq!(with(vec![Step { read: 0, bytes: tables + 3 * 2048 }]).resident_most, 3);
        }
    }
}

/// Reads of 40 pages, most of them of the first 6: short, so that caching pays; some are of pages that are never read
/// again.
fn stream() -> String {
    let mut state = 1u32;
    let mut next = |n: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) % n
    };
    let page = |i: u32, next: &mut dyn FnMut(u32) -> u32| match next(10) {
        0 => 1000 + i,
        1..3 => next(40),
        _ => next(6),
    };
    (0..20_000).map(|i| format!("r,1,{},64,0,a\n", page(i, &mut next) * 2048)).collect()
}

/// Tables to learn with give way to lines where memory is short, and come back.
#[test]
fn the_adaptive_cache_does_with_any_budget_what_lru_does() {
    let geometry = Geometry { page_bytes: 2048, peb_bytes: None };
    let stream = load("s.csv", &mut stream().as_bytes(), geometry, false, Limits::default()).expect("a stream");
    let replay = |name: &str, steps: &[(u64, u64)]| {
        let steps = steps.iter().map(|&(read, bytes)| Step { read, bytes }).collect();
        replay(&stream.records, 2048, name, 61, &Pressure { steps })
    };
    let ns = |name: &str, steps: &[(u64, u64)]| replay(name, steps).totals.cost.total_ns();
    let fills = 3 * costs(2048).page().total_ns();
    for kib in [0, 1, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 160, 192] {
        let steps = [(0, kib * 1024)];
        for name in ["learned", "adaptive"] {
            let Outcome { resident_most, metadata_bytes, .. } = replay(name, &steps);
            let all = u64::from(resident_most) * 2048 + metadata_bytes;
            assert!(resident_most == 0 || all <= kib * 1024, "{name}: {all} bytes of {kib} KiB");
        }
        let best = ns("lru", &steps).min(ns("none", &[]));
        let adaptive = ns("adaptive", &steps);
        assert!(adaptive <= best + best / 50 + fills, "{kib} KiB: {adaptive} ns, and {best} ns at best");
    }
    let up_and_down: Vec<(u64, u64)> = (0..100).map(|i| (i * 200, [192, 20, 64, 8, 0][i as usize % 5] << 10)).collect();
    let best = ns("lru", &up_and_down).min(ns("none", &[]));
    let adaptive = ns("adaptive", &up_and_down);
    assert!(adaptive <= best + best / 20, "up and down: {adaptive} ns, and {best} ns at best");
}
