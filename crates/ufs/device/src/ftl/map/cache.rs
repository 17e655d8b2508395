// SPDX-License-Identifier: MIT OR Apache-2.0
//! The map cache: map pages in SRAM, loaded on demand, the least recently used evicted first. It knows page numbers
//! and frames, not the contents of pages.

use super::Paid;
use crate::ids::MapPage;
use readpath_kit::IndexLru;

const NONE: u32 = u32::MAX;
/// The bit of [`MapCache::frame_of_page`] beside its frame, which is below [`NONE`] without it. [`NONE`] has it too, so
/// that a lookup has only one test.
const AHEAD: u32 = 1 << 31;

/// State of a map page in the cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FrameState {
    /// In SRAM.
    Present(Paid),
    /// On its way from flash into this frame.
    Loading(u32),
    /// Not in the cache.
    Absent,
}

/// A fixed number of frames, each holding one map page.
pub(in crate::ftl) struct MapCache {
    /// With [`AHEAD`] if the page was loaded ahead and no read has looked it up.
    frame_of_page: Vec<u32>,
    page_of_frame: Vec<u32>,
    /// Only frames whose page is present; a frame with a load in progress cannot be evicted.
    lru: IndexLru,
    free: Vec<u32>,
}

impl MapCache {
    /// `frames` empty frames for a map of `pages` pages.
    pub(crate) fn new(pages: u32, frames: u32) -> Self {
        let frames = frames.min(pages.max(1));
        assert!(frames < AHEAD);
        MapCache {
            frame_of_page: vec![NONE; pages as usize],
            page_of_frame: vec![NONE; frames as usize],
            lru: IndexLru::new(frames as usize),
            free: (0..frames).rev().collect(),
        }
    }

    /// Looks `page` up for a translation; a present page becomes the most recently used.
    #[inline]
    pub(crate) fn lookup(&mut self, page: MapPage) -> FrameState {
        let mut frame = self.frame_of_page[page.index()];
        if frame & AHEAD != 0 {
            if frame == NONE {
                return FrameState::Absent;
            }
            frame &= !AHEAD;
            self.frame_of_page[page.index()] = frame;
        }
        if self.lru.contains(frame) {
            self.lru.touch(frame);
            FrameState::Present(Paid::for_page(page))
        } else {
            FrameState::Loading(frame)
        }
    }

    /// The frame of `page`, if that is in SRAM and was not loaded ahead; does not count as use.
    #[inline(always)]
    pub(crate) fn frame(&self, page: MapPage) -> Option<u32> {
        let frame = self.frame_of_page[page.index()];
        (frame & AHEAD == 0 && self.lru.contains(frame)).then_some(frame)
    }

    /// The page in `frame` becomes the most recently used.
    #[inline(always)]
    pub(crate) fn touch(&mut self, frame: u32) {
        self.lru.touch(frame);
    }

    /// Whether `page` is in SRAM or on its way there; does not count as use.
    pub(crate) fn has_frame(&self, page: MapPage) -> bool {
        self.frame_of_page[page.index()] != NONE
    }

    /// `page`, which has a frame, is loaded ahead.
    pub(crate) fn mark_ahead(&mut self, page: MapPage) {
        self.frame_of_page[page.index()] |= AHEAD;
    }

    /// Whether `page`, which has a frame, was loaded ahead and has not been looked up.
    pub(crate) fn is_ahead(&self, page: MapPage) -> bool {
        self.frame_of_page[page.index()] & AHEAD != 0
    }

    /// `page`, if it is in SRAM; does not count as use.
    pub(crate) fn present(&self, page: MapPage) -> Option<Paid> {
        let frame = self.frame_of_page[page.index()];
        (frame != NONE && self.lru.contains(frame & !AHEAD)).then(|| Paid::for_page(page))
    }

    /// Takes a frame for `page`, which is absent, evicting the least recently used page if need be, and says whether
    /// that was loaded ahead in vain. `None` when every frame has a load in progress.
    #[inline]
    pub(crate) fn begin_load(&mut self, page: MapPage) -> Option<(u32, bool)> {
        let frame = self.free.pop().or_else(|| self.lru.pop_front())?;
        let old = std::mem::replace(&mut self.page_of_frame[frame as usize], page.0);
        let mut in_vain = false;
        if old != NONE {
            in_vain = std::mem::replace(&mut self.frame_of_page[old as usize], NONE) & AHEAD != 0;
        }
        self.frame_of_page[page.index()] = frame;
        Some((frame, in_vain))
    }

    /// Whether [`MapCache::begin_load`] takes a frame.
    pub(crate) fn can_take_frame(&self) -> bool {
        !self.free.is_empty() || self.lru.front().is_some()
    }

    #[inline]
    pub(crate) fn finish_load(&mut self, frame: u32) {
        self.lru.push_back(frame);
    }

    /// Puts the first pages into free frames, as if each had been loaded.
    pub(crate) fn load_first(&mut self) {
        for page in 0..self.frames() {
            if self.frame_of_page[page as usize] == NONE
                && let Some((frame, _)) = self.begin_load(MapPage(page))
            {
                self.finish_load(frame);
            }
        }
    }

    pub(crate) fn frames(&self) -> u32 {
        self.page_of_frame.len() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evicts_the_least_recently_used_and_never_a_load() {
        let mut cache = MapCache::new(10, 2);
        let (a, _) = cache.begin_load(MapPage(1)).unwrap();
        assert_eq!(cache.lookup(MapPage(1)), FrameState::Loading(a));
        cache.finish_load(a);
        let (b, _) = cache.begin_load(MapPage(2)).unwrap();
        cache.finish_load(b);
        assert_eq!(cache.lookup(MapPage(1)), FrameState::Present(Paid::for_page(MapPage(1))));
        let (c, _) = cache.begin_load(MapPage(3)).unwrap();
        assert_eq!((cache.lookup(MapPage(2)), c), (FrameState::Absent, b), "page 2 was the coldest");
        let (d, _) = cache.begin_load(MapPage(4)).unwrap();
        assert_eq!((cache.lookup(MapPage(1)), d), (FrameState::Absent, a));
        assert_eq!(cache.begin_load(MapPage(5)), None, "both frames are being loaded");
        cache.finish_load(c);
        assert_eq!(cache.begin_load(MapPage(5)), Some((c, false)));
    }

    #[test]
    fn a_page_loaded_ahead_is_unused_until_it_is_looked_up() {
        let mut cache = MapCache::new(10, 2);
        let [one, two] = [1, 2].map(MapPage);
        let [(a, _), (b, _)] = [one, two].map(|page| cache.begin_load(page).unwrap());
        cache.mark_ahead(two);
        assert!(cache.has_frame(two) && cache.is_ahead(two) && !cache.is_ahead(one));
        assert_eq!(cache.lookup(one), FrameState::Loading(a));
        assert!(cache.is_ahead(two), "another page was looked up");
        assert_eq!(cache.lookup(two), FrameState::Loading(b));
        assert!(!cache.is_ahead(two), "a read waits for it");
        [a, b].into_iter().for_each(|frame| cache.finish_load(frame));
        cache.mark_ahead(one);
        assert_eq!(cache.present(one), Some(Paid::for_page(one)));
        assert_eq!(cache.begin_load(MapPage(3)), Some((a, true)), "page 1 was loaded in vain");
        assert_eq!(cache.begin_load(MapPage(4)), Some((b, false)));
        assert_eq!((cache.lookup(one), cache.lookup(two)), (FrameState::Absent, FrameState::Absent));
    }
}
