// SPDX-License-Identifier: MIT OR Apache-2.0
//! Millions of random operations on logical blocks against a model of their contents, with moves, flips, failing
//! programs, and power cuts at any operation, including those of an attach and of the repair after a cut.
//! READPATH_SEED=n runs one episode only.

mod run;
mod truth;

use readpath_ubi::cache::{self, Answer, Counters, Lines, Media, Page, PageCache, Policy, ReadCache, Rules, Touch};
use run::{Episode, Stats};
use std::env;

/// Operations of an episode.
const OPERATIONS: u64 = 100_000;
const EPISODES: u64 = 52;

fn seeds() -> Vec<u64> {
    match env::var("READPATH_SEED") {
        Ok(seed) => vec![seed.parse().expect("READPATH_SEED is a number")],
        Err(_) => (0..EPISODES).collect(),
    }
}

/// Operations within which a cache that misses invalidations must be detected.
const DEAF_OPERATIONS: u64 = 20_000;

fn costs(page_bytes: u32) -> readpath_ubi::cost::CostModel {
    readpath_ubi::cost::CostModel {
        page_bytes,
        step_bytes: page_bytes / 2,
        wait_fixed_ns: 1000,
        wait_step_ns: 1000,
        cpu_part_ns: 100,
        cpu_page_ns: 100,
        cpu_core_hit_ns: 0,
    }
}

/// Runs five million operations with caches from `make`; returns their statistics if all reads equal flash.
fn run(make: fn(u32) -> Cache) -> Stats {
    let mut all = Stats::default();
    let seeds = seeds();
    for &seed in &seeds {
        let stats = Episode::new(seed).run(OPERATIONS, make).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        all.add(&stats);
    }
    println!("{all:?}");
    if seeds.len() > 1 {
        // The tested events did occur.
        assert!(all.operations >= 5_000_000, "{all:?}");
        assert!(all.cuts > 5_000 && all.cuts_in_attach > 50 && all.cuts_in_repair > 100, "{all:?}");
        assert!(all.moves > 5_000 && all.scrubs > 1_000 && all.recoveries > 50 && all.bad > 10, "{all:?}");
        assert!(all.torn_pages > 500 && all.came_back > 100, "{all:?}");
    }
    all
}

/// A policy of any kind: so an episode is one function, and compiled once.
struct Any(Box<dyn Policy>);

impl Policy for Any {
    fn touch(&mut self, touch: &Touch) -> Answer {
        self.0.touch(touch)
    }

    fn peek(&mut self, touch: &Touch) -> Option<u32> {
        self.0.peek(touch)
    }

    fn abandon(&mut self, line: u32) {
        self.0.abandon(line);
    }

    fn invalidate(&mut self, first: Page, pages: u32) -> u32 {
        self.0.invalidate(first, pages)
    }

    fn resize(&mut self, lines: u32, freed: &mut dyn FnMut(u32)) {
        self.0.resize(lines, freed);
    }

    fn fit(&mut self, bytes: u64, line_bytes: u32, most: u32, freed: &mut dyn FnMut(u32)) {
        self.0.fit(bytes, line_bytes, most, freed);
    }

    fn resident(&self) -> u32 {
        self.0.resident()
    }

    fn line_of(&self, page: Page) -> Option<u32> {
        self.0.line_of(page)
    }

    fn metadata_bytes(&self) -> u64 {
        self.0.metadata_bytes()
    }
}

/// A cache with any policy.
pub struct Cache {
    pages: PageCache<Any, Lines>,
    /// Whether it gets no notification of writes and erases.
    deaf: bool,
}

impl ReadCache for Cache {
    fn read<M: Media>(&mut self, media: &mut M, peb: u32, offset: u32, bytes: u32) -> Result<(), M::Error> {
        self.pages.read(media, peb, offset, bytes)
    }

    fn written(&mut self, peb: u32, offset: u32, bytes: u32) {
        if !self.deaf {
            self.pages.written(peb, offset, bytes);
        }
    }

    fn erased(&mut self, peb: u32) {
        if !self.deaf {
            self.pages.erased(peb);
        }
    }

    fn counters(&self) -> Counters {
        self.pages.counters()
    }
}

/// For each cache: all episodes, without a fault found; and some without notifications, which are detected.
macro_rules! engine {
    ($($name:ident: $policy:expr, $rules:ident;)*) => {$(
        mod $name {
            use super::*;

            fn cache(page: u32) -> Cache {
                let policy = Any(Box::new($policy));
                Cache { pages: PageCache::new(policy, Lines::new(page, 61), Rules::$rules, costs(page)), deaf: false }
            }

            #[test]
            fn reads_what_flash_holds() {
                let all = run(cache);
                assert!(all.hits > 100_000 || all.operations < 5_000_000, "{all:?}");
            }

            #[test]
            fn is_found_out_if_it_is_not_told_of_changes() {
                for seed in 0..4 {
                    let found = Episode::new(seed).run(DEAF_OPERATIONS, |page| Cache { deaf: true, ..cache(page) });
                    assert!(found.is_err(), "seed {seed}: {found:?}");
                }
            }
        }
    )*};
}

engine! {
    peb_hash: cache::Direct::new(61), Patch;
    lru: cache::Lru::new(61), Split;
    set_assoc: cache::SetAssoc::new(60), Split;
    clock: cache::Clock::new(61), Patch;
    two_q: cache::TwoQ::new(61), Split;
    arc: cache::Arc::new(61), Split;
    adaptive: cache::Adaptive::new(61, &costs(512)), Split;
    learned: cache::Adaptive::learned(61, &costs(512)), Split;
    lru_second: cache::SecondTouch::new(cache::Lru::new(61), 61), Patch;
}
