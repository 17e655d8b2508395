// SPDX-License-Identifier: MIT OR Apache-2.0
//! Millions of random operations on logical blocks against a model that knows what each has to hold, with moves, flips,
//! failing programs, and power cuts at any operation, those of an attach and of the repair after a cut included.
//! READPATH_SEED=n runs one episode only.

mod lines;
mod run;
mod truth;

use lines::Lines;
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

#[test]
fn a_read_through_the_cache_is_what_flash_holds() {
    let mut all = Stats::default();
    let seeds = seeds();
    for &seed in &seeds {
        let stats = Episode::new(seed).run(OPERATIONS, Lines::new).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        all.add(&stats);
    }
    println!("{all:?}");
    if seeds.len() > 1 {
        // That what is to be tested did happen.
        assert!(all.operations >= 5_000_000, "{all:?}");
        assert!(all.cuts > 5_000 && all.cuts_in_attach > 50 && all.cuts_in_repair > 100, "{all:?}");
        assert!(all.moves > 5_000 && all.scrubs > 1_000 && all.recoveries > 50 && all.bad > 10, "{all:?}");
        assert!(all.torn_pages > 500 && all.came_back > 100 && all.hits > 500_000, "{all:?}");
    }
}

#[test]
fn a_cache_that_is_not_told_of_changes_is_found_out() {
    let found = (0..4).filter(|&seed| Episode::new(seed).run(20_000, Lines::forgetful).is_err()).count();
    assert_eq!(found, 4);
}
