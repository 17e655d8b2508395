// SPDX-License-Identifier: MIT OR Apache-2.0
//! The map cache: map pages in SRAM, loaded on demand, the least recently used evicted first. It knows page numbers
//! and frames, not the contents of pages.

use super::Paid;
use crate::ids::MapPage;
use fixedbitset::FixedBitSet;
use readpath_kit::IndexLru;

const NONE: u32 = u32::MAX;

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
    frame_of_page: Vec<u32>,
    page_of_frame: Vec<u32>,
    /// Only frames whose page is present; a frame with a load in progress cannot be evicted.
    lru: IndexLru,
    free: Vec<u32>,
    /// Frames whose page was loaded ahead and that no read has looked up, and how many.
    ahead: FixedBitSet,
    unused: u32,
}

impl MapCache {
    /// `frames` empty frames for a map of `pages` pages.
    pub(crate) fn new(pages: u32, frames: u32) -> Self {
        let frames = frames.min(pages.max(1));
        MapCache {
            frame_of_page: vec![NONE; pages as usize],
            page_of_frame: vec![NONE; frames as usize],
            lru: IndexLru::new(frames as usize),
            free: (0..frames).rev().collect(),
            ahead: FixedBitSet::with_capacity(frames as usize),
            unused: 0,
        }
    }

    /// Looks `page` up for a translation; a present page becomes the most recently used.
    #[inline]
    pub(crate) fn lookup(&mut self, page: MapPage) -> FrameState {
        let frame = self.frame_of_page[page.index()];
        if frame == NONE {
            return FrameState::Absent;
        }
        if self.unused > 0 {
            self.take_ahead(frame);
        }
        if self.lru.contains(frame) {
            self.lru.touch(frame);
            FrameState::Present(Paid::for_page(page))
        } else {
            FrameState::Loading(frame)
        }
    }

    /// Whether `page` is in SRAM or on its way there; does not count as use.
    pub(crate) fn has_frame(&self, page: MapPage) -> bool {
        self.frame_of_page[page.index()] != NONE
    }

    /// The page in `frame` is loaded ahead.
    pub(crate) fn mark_ahead(&mut self, frame: u32) {
        self.unused += u32::from(!self.ahead.put(frame as usize));
    }

    /// Whether the page in `frame` was loaded ahead and has not been looked up.
    pub(crate) fn is_ahead(&self, frame: u32) -> bool {
        self.ahead.contains(frame as usize)
    }

    /// [`MapCache::is_ahead`] until now.
    #[inline(never)]
    pub(crate) fn take_ahead(&mut self, frame: u32) -> bool {
        let was = self.is_ahead(frame);
        self.ahead.remove(frame as usize);
        self.unused -= u32::from(was);
        was
    }

    /// `page`, if it is in SRAM; does not count as use.
    pub(crate) fn present(&self, page: MapPage) -> Option<Paid> {
        let frame = self.frame_of_page[page.index()];
        (frame != NONE && self.lru.contains(frame)).then(|| Paid::for_page(page))
    }

    /// Takes a frame for `page`, which is absent, evicting the least recently used page if need be. `None` when every
    /// frame has a load in progress.
    pub(crate) fn begin_load(&mut self, page: MapPage) -> Option<u32> {
        let frame = self.free.pop().or_else(|| self.lru.pop_front())?;
        let old = std::mem::replace(&mut self.page_of_frame[frame as usize], page.0);
        if old != NONE {
            self.frame_of_page[old as usize] = NONE;
        }
        self.frame_of_page[page.index()] = frame;
        Some(frame)
    }

    pub(crate) fn finish_load(&mut self, frame: u32) {
        self.lru.push_back(frame);
    }

    /// Puts the first pages into free frames, as if each had been loaded.
    pub(crate) fn load_first(&mut self) {
        for page in 0..self.frames() {
            if self.frame_of_page[page as usize] == NONE
                && let Some(frame) = self.begin_load(MapPage(page))
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
        let a = cache.begin_load(MapPage(1)).unwrap();
        assert_eq!(cache.lookup(MapPage(1)), FrameState::Loading(a));
        cache.finish_load(a);
        let b = cache.begin_load(MapPage(2)).unwrap();
        cache.finish_load(b);
        assert_eq!(cache.lookup(MapPage(1)), FrameState::Present(Paid::for_page(MapPage(1))));
        let c = cache.begin_load(MapPage(3)).unwrap();
        assert_eq!((cache.lookup(MapPage(2)), c), (FrameState::Absent, b), "page 2 was the coldest");
        let d = cache.begin_load(MapPage(4)).unwrap();
        assert_eq!((cache.lookup(MapPage(1)), d), (FrameState::Absent, a));
        assert_eq!(cache.begin_load(MapPage(5)), None, "both frames are being loaded");
        cache.finish_load(c);
        assert_eq!(cache.begin_load(MapPage(5)), Some(c));
    }

    #[test]
    fn a_page_loaded_ahead_is_unused_until_it_is_looked_up() {
        let mut cache = MapCache::new(10, 2);
        let [a, b] = [1, 2].map(|page| cache.begin_load(MapPage(page)).unwrap());
        cache.mark_ahead(b);
        assert!(cache.has_frame(MapPage(2)) && cache.is_ahead(b) && !cache.is_ahead(a));
        assert_eq!(cache.lookup(MapPage(1)), FrameState::Loading(a));
        assert!(cache.is_ahead(b), "another page was looked up");
        assert_eq!(cache.lookup(MapPage(2)), FrameState::Loading(b));
        assert_eq!((cache.take_ahead(b), cache.unused), (false, 0), "a read waits for it");
    }
}
