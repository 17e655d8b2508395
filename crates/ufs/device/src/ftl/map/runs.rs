// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs of the map in SRAM: consecutive blocks at consecutive places in flash, one entry each. They are found in map
//! pages that were loaded for a read, and serve reads after the page has left the map cache.
//!
//! An entry is the present: the map cuts it when one of its blocks moves or is trimmed ([`Runs::cut`]). Runs end with
//! their map page. Those of a page share a set, the most recently used first, so the table needs no links and no index.

use crate::config::MAP_RUN_BYTES;
use crate::ids::{Lpn, MapPage};
use readpath_flash::Ppn;

/// Runs of a set.
const WAYS: usize = 8;

/// Consecutive blocks at consecutive slices; none if `blocks` is 0.
#[derive(Clone, Copy, Debug)]
pub(super) struct MapRun {
    pub first: Lpn,
    pub at: Ppn,
    /// At most the entries of a map page.
    pub blocks: u16,
}

const _: () = assert!(size_of::<MapRun>() == MAP_RUN_BYTES as usize);

impl MapRun {
    const NONE: MapRun = MapRun { first: Lpn(0), at: Ppn(0), blocks: 0 };

    fn holds(&self, lpn: Lpn) -> bool {
        lpn.0.wrapping_sub(self.first.0) < u32::from(self.blocks)
    }

    /// The run from the `n`th of its blocks on.
    fn behind(&self, n: u16) -> MapRun {
        MapRun { first: self.first + u32::from(n), at: Ppn(self.at.0 + u32::from(n)), blocks: self.blocks - n }
    }
}

pub(super) struct Runs {
    sets: Vec<[MapRun; WAYS]>,
    is_empty: bool,
}

impl Runs {
    /// No runs, in a table of `bytes`, whole sets of it. Without a set it is off.
    pub(super) fn new(bytes: u32) -> Self {
        let sets = bytes / (MAP_RUN_BYTES * WAYS as u32);
        Runs { sets: vec![[MapRun::NONE; WAYS]; sets as usize], is_empty: true }
    }

    #[inline(always)]
    pub(super) fn is_on(&self) -> bool {
        !self.sets.is_empty()
    }

    /// Bytes of SRAM.
    pub(super) fn sram_bytes(&self) -> u64 {
        size_of_val(&self.sets[..]) as u64
    }

    fn set(&mut self, page: MapPage) -> &mut [MapRun; WAYS] {
        let sets = self.sets.len();
        &mut self.sets[page.index() % sets]
    }

    /// The run of `page` from `lpn` on, if it is known. It becomes the most recently used.
    pub(super) fn look_up(&mut self, page: MapPage, lpn: Lpn) -> Option<MapRun> {
        let set = self.set(page);
        let at = set.iter().position(|run| run.holds(lpn))?;
        set[..=at].rotate_right(1);
        Some(set[0].behind((lpn.0 - set[0].first.0) as u16))
    }

    /// Enters a run of `page`, which is as long as it can be: what is left of it from earlier lies within.
    pub(super) fn enter(&mut self, page: MapPage, run: MapRun) {
        self.is_empty = false;
        let set = self.set(page);
        set.iter_mut().filter(|old| run.holds(old.first)).for_each(|old| *old = MapRun::NONE);
        let at = set.iter().position(|old| old.blocks == 0).unwrap_or(WAYS - 1);
        set[..=at].rotate_right(1);
        set[0] = run;
    }

    /// A block of `page` moves or is trimmed: of its run the longer side stays.
    pub(super) fn cut(&mut self, page: MapPage, lpn: Lpn) {
        if self.is_empty {
            return;
        }
        let Some(run) = self.set(page).iter_mut().find(|run| run.holds(lpn)) else { return };
        let before = (lpn.0 - run.first.0) as u16;
        let after = run.behind(before + 1);
        *run = if before < after.blocks { after } else { MapRun { blocks: before, ..*run } };
    }

    pub(super) fn clear(&mut self) {
        if !self.is_empty {
            self.sets.fill([MapRun::NONE; WAYS]);
            self.is_empty = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(first: u32, at: u32, blocks: u16) -> MapRun {
        MapRun { first: Lpn(first), at: Ppn(at), blocks }
    }

    /// Slice of a block, and how many blocks follow with it.
    fn found(runs: &mut Runs, page: u32, lpn: u32) -> Option<(u32, u16)> {
        runs.look_up(MapPage(page), Lpn(lpn)).map(|run| (run.at.0, run.blocks))
    }

    #[test]
    fn a_set_holds_eight_runs_and_gives_up_the_least_recently_used() {
        assert!(!Runs::new(95).is_on());
        let runs = &mut Runs::new(2 * 96 + 95);
        assert_eq!(runs.sram_bytes(), 2 * 96);
        (0..8).for_each(|i| runs.enter(MapPage(2), run(1000 + 10 * i, 100 * i, 5)));
        assert_eq!(found(runs, 2, 1003), Some((3, 2)));
        // Pages 2 and 4 share a set, page 3 has another.
        runs.enter(MapPage(4), run(2000, 7, 1));
        runs.enter(MapPage(3), run(3000, 8, 1));
        assert_eq!((found(runs, 2, 1012), found(runs, 2, 1000)), (None, Some((0, 5))));
        assert_eq!(
            (found(runs, 4, 2000), found(runs, 3, 3000), found(runs, 4, 2001)),
            (Some((7, 1)), Some((8, 1)), None)
        );
        runs.clear();
        assert_eq!((found(runs, 2, 1000), found(runs, 3, 3000)), (None, None));
    }

    #[test]
    fn the_longer_side_of_a_cut_stays_until_the_whole_run_is_found_again() {
        let runs = &mut Runs::new(96);
        runs.enter(MapPage(0), run(10, 500, 10));
        runs.cut(MapPage(0), Lpn(9));
        runs.cut(MapPage(0), Lpn(20));
        assert_eq!(found(runs, 0, 10), Some((500, 10)));
        runs.cut(MapPage(0), Lpn(13));
        assert_eq!([12, 13, 14].map(|lpn| found(runs, 0, lpn)), [None, None, Some((504, 6))]);
        runs.cut(MapPage(0), Lpn(19));
        runs.cut(MapPage(0), Lpn(16));
        assert_eq!([14, 15, 16, 17].map(|lpn| found(runs, 0, lpn)), [Some((504, 2)), Some((505, 1)), None, None]);
        // The same blocks again, moved: one entry, not two.
        runs.enter(MapPage(0), run(10, 800, 10));
        assert_eq!([10, 14, 19].map(|lpn| found(runs, 0, lpn)), [Some((800, 10)), Some((804, 6)), Some((809, 1))]);
        (0..10).for_each(|i| runs.cut(MapPage(0), Lpn(10 + i)));
        assert!((10..20).all(|lpn| found(runs, 0, lpn).is_none()), "nothing is left");
    }
}
